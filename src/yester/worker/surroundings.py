"""What a folder says about the work in it, as git tells it, asked in the background.

A hook does not wait for git, or not for long. What was seen last is used, and looked at again for
the next time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from yester import git
from yester.recall.staleness import GitFacts, Staleness, Work, judge_staleness
from yester.worker.process import Log

_PATIENCE = 0.15  # seconds for all that git is asked about a folder
_FOLDERS = 32  # remembered
_BACK = 90 * 86_400_000  # ms of history read ahead


class Surroundings:
    """Begins with the first folder; `close` it at the end."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, git.Signals] = {}  # the one looked at last at the end
        self._looks: dict[str, Future[None]] = {}  # those that are not over
        self._thread = ThreadPoolExecutor(1, "git")
        self._facts = GitFacts()

    def current_signals(self, folder: str, patience: float) -> git.Signals:
        """What it looks like, where that is known within `patience` seconds, else looked like."""
        wait([self.look_again(folder)], patience)
        return self.last_signals(folder)

    def last_signals(self, folder: str) -> git.Signals:
        """What it looked like last."""
        return self._known.get(folder, git.Signals())

    def look_again(self, folder: str) -> Future[None]:
        """For the next time. Not while an answer is made: git and Python would slow it down."""
        self._looks = {key: look for key, look in self._looks.items() if not look.done()}
        if folder not in self._looks:
            self._looks[folder] = self._thread.submit(self._look, folder)
        return self._looks[folder]

    def judge_files(
        self, folder: str, works: Sequence[Work], patience: float
    ) -> Mapping[int, Staleness]:
        """What has become of these items' files, as far as it is known or quickly found out."""
        with self._log.survive("asking git"):
            facts = self._facts.gather_facts(folder, works, time.monotonic() + patience)
            return judge_staleness(works, facts)
        return {}

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _look(self, folder: str) -> None:
        found = git.Signals()
        with self._log.survive("asking git"):
            found = git.collect_signals(folder, time.monotonic() + _PATIENCE)
        known = [(key, value) for key, value in self._known.items() if key != folder]
        # At once: the worker's thread reads it.
        self._known = {**dict(known[1 - _FOLDERS :]), folder: found}
        if found.head and found.recent:
            # The history, before a hook needs it to judge what it found.
            since = int(time.time() * 1000) - _BACK
            self._thread.submit(
                self.judge_files, folder, [Work(0, since, found.recent[:1])], _PATIENCE
            )
