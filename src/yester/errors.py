"""Everything yester raises on purpose.

    YesterError                 exit code 3
    ├── UsageError              exit code 2   a value the caller gave cannot be used
    │   └── ConfigError                       … and it stands in config.toml or a variable
    ├── NotFound                exit code 1   what was asked for is not in the store
    ├── SourceError                           a transcript or import cannot be read at all
    ├── ModelError                            an embedding model cannot be fetched, read or run
    └── StoreError                            the store cannot be used
        ├── StoreNewer                        written by a newer yester
        ├── StoreDamaged                      not a database, or a broken one
        ├── StoreBusy                         another process keeps the write lock
        └── StoreReplaced                     another file is in its place: open it anew

Messages are one sentence for the person who must act: the thing, the value, the fix.
The library raises; only the command line prints.
"""


class YesterError(Exception):
    exit_code = 3


class UsageError(YesterError):
    exit_code = 2


class ConfigError(UsageError):
    pass


class NotFound(YesterError):
    exit_code = 1


class SourceError(YesterError):
    pass


class ModelError(YesterError):
    pass


class StoreError(YesterError):
    pass


class StoreNewer(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class StoreBusy(StoreError):
    pass


class StoreReplaced(StoreError):
    pass
