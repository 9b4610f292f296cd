"""Archiving in the worker: sessions that are over, one at a time, where the settings want it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from yester.config import Config
from yester.errors import SourceError, StoreError
from yester.store.contract import Store
from yester.worker.log import Log

if TYPE_CHECKING:
    from yester.llm.budget import Asker

_PAUSE = 600.0  # seconds


class Archiving:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._again: dict[int, float] = {}  # session that could not be archived → not before then

    def step(self, store: Store, config: Config, asker: Asker | None = None) -> bool:
        """Archive a session; False: none is to be archived."""
        if not config.flag("archive.on"):
            return False
        from yester.llm.archive import archive_session, find_unarchived

        now = int(time.time() * 1000)
        for waiting in find_unarchived(store, now):
            id_ = waiting.session.id
            if self._again.get(id_, 0.0) > time.monotonic():
                continue
            try:
                path, reason = archive_session(store, config, waiting, asker, now)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 -- one session's fault must not stop the others
                if isinstance(error, SourceError):
                    self._log.say(f"a session was not archived: {error}")
                else:
                    self._log.failed("archiving a session", error)
                self._again[id_] = time.monotonic() + _PAUSE
                return True
            if reason:
                self._log.say(f"archived as found: {reason}")
            if path is not None:
                self._log.say(f"session {waiting.session.key[:8]} archived")
            return True
        return False
