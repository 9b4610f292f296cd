"""What a folder says about the work in it, as git tells it, asked in the background.

A hook does not wait for git, or not for long. What was seen last is used, and looked at again for
the next time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue

from yester import git
from yester.recall.staleness import GitFacts, Staleness, Work, judge_staleness
from yester.worker.process import Log

_PATIENCE = 0.15  # seconds for all that git is asked about a folder
_FOLDERS = 32  # remembered
_BACK = 90 * 86_400_000  # ms of history read ahead
_NOTHING = git.Signals()


class Surroundings:
    """Begins with the first folder; `close` it at the end."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, git.Signals] = {}  # the one looked at last at the end
        self._looks: dict[str, threading.Event] = {}  # set when the look is over
        self._wanted: SimpleQueue[str | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._facts = GitFacts()

    def current_signals(self, folder: str, patience: float) -> git.Signals:
        """What it looks like, where that is known within `patience` seconds, else looked like."""
        self.look_again(folder).wait(patience)
        return self.last_signals(folder)

    def last_signals(self, folder: str) -> git.Signals:
        """What it looked like last."""
        return self._known.get(folder, _NOTHING)

    def look_again(self, folder: str) -> threading.Event:
        """For the next time. Not while an answer is made: git and Python would slow it down."""
        under_way = self._looks.get(folder)
        if under_way is None or under_way.is_set():
            self._looks[folder] = under_way = threading.Event()
            self._wanted.put(folder)
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_on, name="git", daemon=True)
            self._thread.start()
        return under_way

    def judge_files(
        self, folder: str, works: Sequence[Work], patience: float
    ) -> Mapping[int, Staleness]:
        """What has become of these items' files, as far as it is known or quickly found out."""
        try:
            facts = self._facts.gather_facts(folder, works, time.monotonic() + patience)
            return judge_staleness(works, facts)
        except Exception as error:  # noqa: BLE001 -- whatever a repository holds, recall goes on
            self._log.say_failure("asking git", error)
            return {}

    def close(self) -> None:
        self._closing = True
        self._wanted.put(None)
        if self._thread is not None:
            self._thread.join()

    def _look_on(self) -> None:
        while (folder := self._wanted.get()) is not None and not self._closing:
            over, found = self._looks.get(folder), _NOTHING
            try:
                found = git.collect_signals(folder, time.monotonic() + _PATIENCE)
            except Exception as error:  # noqa: BLE001 -- whatever a repository holds, recall goes on
                self._log.say_failure("asking git", error)
            known = {key: value for key, value in self._known.items() if key != folder}
            if len(known) >= _FOLDERS:
                oldest = next(iter(known))
                del known[oldest]
                self._looks.pop(oldest, None)
            self._known = {**known, folder: found}  # at once: the worker's thread reads it
            if over is not None:
                over.set()
            if found.head and found.recent:
                # The history, before a hook needs it to judge what it found.
                since = int(time.time() * 1000) - _BACK
                self.judge_files(folder, [Work(0, since, found.recent[:1])], _PATIENCE)
