"""Distilling in the worker: sessions whose turn has ended, in steps between everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from yester.config import Config
from yester.distil import QUIET
from yester.errors import StoreError
from yester.model import Queue, Waiting
from yester.store.contract import Store
from yester.worker.archiving import Archiving
from yester.worker.log import Log
from yester.worker.working import TWICE, Piece, Working

if TYPE_CHECKING:
    from yester.distil.distil import Report

_MOST_ITEMS = 1_000  # new ones of a session, in one go: memory is bounded
_MODULES = (
    "distil.cues", "distil.sentences", "distil.titles", "distil.commands", "distil.fingerprint",
    "distil.runners", "distil.outcomes", "distil.decided", "memories.standing", "distil.amend",
    "distil.distil",
)  # fmt: skip


class Distilling:
    """Call `wake` when there may be something to do, and `step` when nothing else is. `done` is
    given each session that was distilled."""

    def __init__(
        self,
        store: Store,
        log: Log,
        now: Callable[[], float],
        done: Callable[[int], None] = lambda _: None,
        working: Working | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self._now = now
        self._done = done
        self._working = working
        self._piece = Piece("session", "")  # what it is at, for `working`
        self._archiving = Archiving(log)
        self._steps: Iterator[None] | None = None
        self._session = 0
        self._failed: set[int] = set()  # sessions that cannot be distilled; the others still can
        self._wanted = True
        self._report: Report | None = None

    @property
    def busy(self) -> bool:
        return self._wanted or self._steps is not None

    def wake(self) -> None:
        self._wanted = True

    def step(self, config: Config) -> bool:
        """A few milliseconds of work; False: nothing waits any more."""
        try:
            if self._steps is None:
                self._steps = self._next(config)
            if self._steps is None:
                # With a language model the thread that asks it does this.
                if config["llm.provider"] == "none" and self._archiving.step(self._store, config):
                    return True
                self._wanted = False
                return False
            if self._working:
                self._working.begin(self._piece)
            if next(self._steps, self) is self:
                self._steps = None
                if self._working:
                    self._working.settle(self._piece)
        except StoreError:
            self._steps = None  # it waits still, and is begun again
            raise
        except Exception as error:  # noqa: BLE001 -- one session's fault must not stop the worker
            self._log.failed("distilling a session", error)
            self._steps = None
            self._failed.add(self._session)
        return True

    def _next(self, config: Config) -> Iterator[None] | None:
        quiet_since = int(self._now() * 1000) - QUIET
        found = self._store.queued_sessions(
            Queue("distil", hooked=True, quiet_since=quiet_since, limit=len(self._failed) + 1)
        )
        for waiting in found:
            if waiting.session.id in self._failed:
                continue
            self._session = waiting.session.id
            self._piece = Piece("session", waiting.session.key, waiting.since, waiting.changes)
            if self._working and self._working.ended(self._piece) >= TWICE:
                self._log.say("distilling a session failed: it has ended the worker twice")
                self._failed.add(self._session)
                return self._next(config)
            return self._distil(waiting, config)
        return None

    def _distil(self, waiting: Waiting, config: Config) -> Iterator[None]:
        for name in _MODULES:  # their tables are a tenth of a second's work together
            import_module(f"yester.{name}")
            yield
        from yester.distil.distil import Report, distil
        from yester.distil.history import Rules

        self._report = self._report or Report()
        rules = replace(Rules.of(config), most=_MOST_ITEMS)
        yield from distil(self._store, waiting, rules, self._report, int(self._now() * 1000))
        self._done(waiting.session.id)

    @property
    def made(self) -> int:
        """Observations so far."""
        return self._report.observations if self._report is not None else 0
