"""Everything yester raises on purpose.

    YesterError                 exit code 3
    ├── UsageError              exit code 2   a value the caller gave cannot be used
    │   ├── ConfigError                       … and it stands in config.toml or a variable
    │   └── NotYours                          … because it is the user's alone to give it
    ├── NotFound                exit code 1   what was asked for is not in the store
    ├── SourceError                           a transcript or import cannot be read at all
    ├── InstallError                          yester cannot be put into an agent, or taken out
    ├── ModelError                            an embedding model cannot be fetched, read or run
    ├── LlmError                              a language model gave nothing that can be used
    │   ├── Busy                              it asks to be left alone for a while
    │   ├── Refused                           it will not answer this
    │   ├── Truncated                         the answer ends in the middle
    │   ├── Malformed                         the answer is not of the shape asked for
    │   ├── Unreachable                       no answer came
    │   └── OverBudget                        the day's money, tokens or calls are used up
    └── StoreError                            the store cannot be used
        ├── StoreNewer                        written by a newer yester
        ├── StoreDamaged                      not a database, or a broken one
        ├── StoreBusy                         another process keeps the write lock
        ├── StoreChanged                      what was read has been written anew since
        └── StoreReplaced                     another file is in its place: open it anew

Messages are one sentence for the person who must act: the thing, the value, the fix.
The library raises; only the command line prints.
"""


class YesterError(Exception):
    """`what` is wrong and the `fix`; where it is about a value, which `parameter` has it."""

    exit_code = 3

    def __init__(
        self, what: str = "", fix: str = "", *, parameter: str = "", value: str | None = None
    ) -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what, self.fix, self.parameter, self.value = what, fix, parameter, value


class UsageError(YesterError):
    exit_code = 2


class ConfigError(UsageError):
    pass


class NotYours(UsageError):
    pass


class NotFound(YesterError):
    exit_code = 1


class SourceError(YesterError):
    pass


class InstallError(YesterError):
    pass


class ModelError(YesterError):
    pass


class LlmError(YesterError):
    """`sent`: the question may have been read, and then it may have to be paid."""

    def __init__(self, text: str, sent: bool = False) -> None:
        super().__init__(text)
        self.sent = sent


class Busy(LlmError):
    """`retry_after` are the seconds it asks for, None where it did not say."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class Refused(LlmError):
    pass


class Truncated(LlmError):
    pass


class Malformed(LlmError):
    pass


class Unreachable(LlmError):
    pass


class OverBudget(LlmError):
    pass


class StoreError(YesterError):
    pass


class StoreNewer(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class StoreBusy(StoreError):
    pass


class StoreChanged(StoreError):
    pass


class FeedExpired(StoreError):
    """A cursor of the feed that this store has not given, or not in its present life."""


class StoreReplaced(StoreError):
    pass
