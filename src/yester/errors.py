"""Everything yester raises on purpose.

    YesterError                 exit code 3
    ├── UsageError              exit code 2
    │   ├── ConfigError
    │   └── NotYours
    ├── NotFound                exit code 1
    ├── SourceError, InstallError, ModelError
    ├── LlmError
    │   └── Busy, Refused, Truncated, Malformed, Unreachable, OverBudget
    └── StoreError
        └── StoreNewer, StoreDamaged, StoreBusy, StoreAway, StoreChanged, StoreReplaced, FeedExpired

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
    """A value the caller gave cannot be used."""

    exit_code = 2


class ConfigError(UsageError):
    """A value in config.toml or in a variable cannot be used."""


class NotYours(UsageError):
    """It is the user's alone to give this value."""


class NotFound(YesterError):
    """What was asked for is not in the store."""

    exit_code = 1


class SourceError(YesterError):
    """A transcript or an import cannot be read at all."""


class InstallError(YesterError):
    """yester cannot be put into an agent, or taken out."""


class ModelError(YesterError):
    """An embedding model cannot be fetched, read or run."""


class LlmError(YesterError):
    """A language model gave nothing that can be used. `sent`: the question may have been read, and
    then it may have to be paid. `status`: of HTTP, where that is all that is known."""

    def __init__(self, text: str, sent: bool = False, status: int = 0) -> None:
        super().__init__(text)
        self.sent, self.status = sent, status


class Busy(LlmError):
    """It asks to be left alone for `retry_after` seconds, None where it did not say."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class Refused(LlmError):
    """It will not answer this."""


class Truncated(LlmError):
    """The answer ends in the middle."""


class Malformed(LlmError):
    """The answer is not of the shape asked for."""


class Unreachable(LlmError):
    """No answer came."""


class OverBudget(LlmError):
    """The day's money, tokens or calls are used up."""


class StoreError(YesterError):
    """The store cannot be used."""


class StoreNewer(StoreError):
    """It was written by a newer yester."""


TOO_MANY_FILES = "this process may open no file more; allow it some: ulimit -n 1024"
NO_DATABASE = "is not a yester database"


class StoreDamaged(StoreError):
    """It is not a database, or a broken one."""


class StoreBusy(StoreError):
    """Another process keeps the write lock."""


class StoreAway(StoreError):
    """Its server cannot be reached."""


class StoreChanged(StoreError):
    """What was read has been written anew since."""


class FeedExpired(StoreError):
    """A cursor of the feed that this store has not given, or not in its present life."""


class StoreReplaced(StoreError):
    """Another file is in its place: open it anew."""
