"""What a folder says about the work in it, as git tells it, asked in the background.

A hook does not wait for git, or not for long. What was seen last is used, and looked at again for
the next time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from yester import git
from yester.recall.staleness import GitFacts, Staleness, Work, judge_staleness
from yester.worker.log import Log

_PATIENCE = 0.15  # seconds for all that git is asked about a folder
_FOLDERS = 32  # remembered
_BACK = 90 * 86_400_000  # ms of history read ahead
_NOTHING = git.Signals()


class Surroundings:
    """Begins with the first folder; `close` it at the end."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: OrderedDict[str, git.Signals] = OrderedDict()
        self._looks: dict[str, int] = {}
        self._wanted: dict[str, None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._cache = GitFacts()

    def around(self, folder: str, patience: float) -> git.Signals:
        """What it looks like, where that is known within `patience` seconds, else looked like."""
        with self._changed:
            before = self._looks.get(folder, 0)
            self._look_again(folder)
            self._changed.wait_for(lambda: self._looks.get(folder, 0) > before, patience)
            return self._known.get(folder, _NOTHING)

    def seen(self, folder: str) -> git.Signals:
        """What it looked like last."""
        with self._changed:
            return self._known.get(folder, _NOTHING)

    def look(self, folder: str) -> None:
        """For the next time. Not while an answer is made: git and Python would slow it down."""
        with self._changed:
            self._look_again(folder)

    def _look_again(self, folder: str) -> None:
        self._wanted[folder] = None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="git", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def fates(self, folder: str, works: Sequence[Work], patience: float) -> Mapping[int, Staleness]:
        """What has become of these items' files, as far as it is known or quickly found out."""
        try:
            return judge_staleness(
                works, self._cache.gather_facts(folder, works, time.monotonic() + patience)
            )
        except Exception as error:  # noqa: BLE001 -- whatever a repository holds, recall goes on
            self._log.failed("asking git", error)
            return {}

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._wanted)
                if self._ended:
                    return
                folder = next(iter(self._wanted))
                del self._wanted[folder]
            seen = self._look(folder)
            with self._changed:
                self._known[folder] = seen
                self._known.move_to_end(folder)
                if len(self._known) > _FOLDERS:
                    self._looks.pop(self._known.popitem(last=False)[0], None)
                self._looks[folder] = self._looks.get(folder, 0) + 1
                self._changed.notify_all()
            self._read_ahead(folder, seen)

    def _look(self, folder: str) -> git.Signals:
        try:
            return git.collect_signals(folder, time.monotonic() + _PATIENCE)
        except Exception as error:  # noqa: BLE001 -- whatever a repository holds, recall goes on
            self._log.failed("asking git", error)
            return _NOTHING

    def _read_ahead(self, folder: str, seen: git.Signals) -> None:
        """The history, before a hook needs it to judge what it found."""
        if seen.head and seen.recent:
            since = int(time.time() * 1000) - _BACK
            self.fates(folder, [Work(0, since, seen.recent[:1])], _PATIENCE)
