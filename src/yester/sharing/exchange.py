"""What a log of one's own machines and a team's server have in common: one run of a home at a time,
and a file that says how the last one ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from yester.errors import ConfigError
from yester.files import read_bytes, replace_file
from yester.store.contract import Store
from yester.store.lock import write_lock

_WAITING = 60.0  # seconds for another run of the same home
Progress = Callable[[str, int, int], None]  # what, how many of it are done, of how many
S = TypeVar("S", bound=Struct)


def exchange_lock(home: Path) -> AbstractContextManager[None]:
    """Nobody else reads or writes for this home meanwhile; StoreBusy where somebody goes on."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)  # the mode is that of the last one alone
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    return write_lock(home / "run" / "roam.lock", _WAITING)


class Side(Struct):
    """One side of an exchange. `forget` takes out of everything what was forgotten elsewhere, and
    gives back the store, opened anew."""

    home: Path
    store: Store
    now: int
    forget: Callable[[], Store] | None = None
    progress: Progress = lambda *_: None

    def forget_marked(self) -> Store:
        if self.forget is not None:
            self.store = self.forget()
        return self.store


class Part:
    """Something that one side does."""

    def __init__(self, side: Side) -> None:
        self.side, self.store = side, side.store
        self._home, self._now = side.home, side.now


def add_counts(known: dict[str, int], more: Mapping[str, int]) -> None:
    known |= {name: known.get(name, 0) + number for name, number in more.items() if number}


def load_state(path: Path, kind: type[S], fix: str) -> S | None:
    """None where there is no such file; ConfigError with the fix where it makes no sense."""
    with suppress(FileNotFoundError):
        try:
            return msgspec.json.decode(read_bytes(path, 64 << 20), type=kind)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{path} cannot be read ({error}); {fix}") from None
    return None


def save_state(path: Path, state: Struct) -> None:
    replace_file(path, msgspec.json.encode(state), sync=True)
