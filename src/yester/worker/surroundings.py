"""What a folder says about the work in it, as git tells it, asked in the background.

A hook does not wait for git, or not for long. What was seen last is used, and looked at again for
the next time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

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
        self._looks: dict[str, Future[None]] = {}  # under way
        self._thread = ThreadPoolExecutor(1, "git")
        self._facts = GitFacts()

    def current_signals(self, folder: str, patience: float) -> git.Signals:
        """What it looks like, where that is known within `patience` seconds, else looked like."""
        with suppress(TimeoutError):
            self.look_again(folder).result(patience)
        return self.last_signals(folder)

    def last_signals(self, folder: str) -> git.Signals:
        """What it looked like last."""
        return self._known.get(folder, _NOTHING)

    def look_again(self, folder: str) -> Future[None]:
        """For the next time. Not while an answer is made: git and Python would slow it down."""
        under_way = self._looks.get(folder)
        if under_way is None or under_way.done():
            self._looks[folder] = under_way = self._thread.submit(self._look_now, folder)
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
        self._thread.shutdown(cancel_futures=True)

    def _look_now(self, folder: str) -> None:
        found = _NOTHING
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
        if (
            found.head and found.recent
        ):  # the history, before a hook needs it to judge what it found
            since = int(time.time() * 1000) - _BACK
            ahead = [Work(0, since, found.recent[:1])]
            with suppress(RuntimeError):  # it was closed meanwhile
                self._thread.submit(self.judge_files, folder, ahead, _PATIENCE)
