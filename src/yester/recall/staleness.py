"""Whether what an item says may be out of date: its files changed, moved or vanished since.

`GitFacts.gather_facts` asks git and the file system once for many items; `judge_staleness` judges
from these facts alone. Where git was silent or late nothing is claimed; what it did say is kept for
the next time.

Which commit was the item's own work? What an item changed is in the first commit of that file from
then on, however late it was made; so of the commits of a file an item MODIFIED the first does not
count. Of a file it only READ, those of the next few minutes do not. Times are the authors': a
rebase moves a commit, it does not make the change again.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp2
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from yester import git
from yester.model import Item

MARGIN = 10 * 60_000  # ms around an item in which a commit is of the same piece of work
_PAGE = 500  # commits asked for at once
_MOST_COMMITS = 2_000
_MOST_CHANGES = 50_000  # of files, remembered per repository
_MOST_FILES = 50  # looked at per item
_MOST_MOVES = 20
_RESERVE = 0.015  # seconds before the deadline for taking in what git said
_FAIR_SECONDS = 0.05  # a page that does not yield a commit in this time never will

# What each fate of a file makes of 0 (as it was) to 1 (gone).
_CHANGED = 0.6  # approached by ever more changes: half of it at
_HALF = 3.0
_RENAMED = 0.1


class Work(NamedTuple):
    """What must be known of an item to judge it."""

    item: int
    epoch: int  # ms
    modified: tuple[str, ...] = ()  # as seen from the project's root
    read: tuple[str, ...] = ()


class Touch(NamedTuple):
    """A commit's effect on a file. `to`: the name the file has from then on."""

    epoch: int  # ms
    how: str  # A M D T, R: away from this name
    to: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of some files, as of one HEAD."""

    present: Mapping[str, bool] = field(default_factory=dict)  # not in it: not known
    touches: Mapping[str, tuple[Touch, ...]] = field(default_factory=dict)
    reach: int | None = None  # ms; from here on `touches` is complete. None: nothing is known

    def reaches(self, epoch: int) -> bool:
        """Is every change since then known?"""
        return self.reach is not None and self.reach <= epoch


@dataclass(frozen=True, slots=True)
class Staleness:
    state: str = ""  # "", changed, gone, renamed
    text: str = ""  # for people: what happened to which file
    factor: float = 0.0  # 0 as it was … 1 gone


FRESH = Staleness()


class _Fate(NamedTuple):
    """What became of one file."""

    file: str
    state: str  # "", changed, gone, renamed
    changes: int = 0
    now: str = ""


def work_of(item: Item) -> Work:
    return Work(item.id, item.epoch, item.files_modified, item.files_read)


# --- the judgement: pure -------------------------------------------------------------------------


def judge_staleness(works: Iterable[Work], facts: Facts) -> dict[int, Staleness]:
    """By item; an item of which nothing can be said is not in it."""
    judged = ((one.item, _judge_work(one, facts)) for one in works)
    return {item: found for item, found in judged if found is not None}


def _judge_work(one: Work, facts: Facts) -> Staleness | None:
    looked = [
        (weight, _file_fate(file, weight, one.epoch, facts)) for file, weight in _weighed_files(one)
    ]
    known = [(weight, fate) for weight, fate in looked if fate is not None]
    total = sum(weight for weight, _ in known)
    factor = sum(weight * _fate_factor(fate) for weight, fate in known) / total if total else 0.0
    if not known:
        return None
    fates = [fate for _, fate in known if fate.state]
    if not fates:
        return FRESH if len(known) == len(looked) else None
    gone = sum(fate.state == "gone" for fate in fates)
    least = not facts.reaches(one.epoch)  # there may be changes not seen
    if gone == len(looked):
        return Staleness("gone", _describe_fates(fates, least), 1.0)
    moved = all(fate.state == "renamed" for fate in fates)
    return Staleness("renamed" if moved else "changed", _describe_fates(fates, least), factor)


def _weighed_files(one: Work) -> list[tuple[str, int]]:
    """Its files within the project, each once, with weights: what it changed is what it is about.

    Sorted, so that nothing depends on the order in which they were met.
    """
    modified = {file for file in one.modified if _is_inside(file)}
    read = {file for file in one.read if _is_inside(file)} - modified
    weighed = [(file, 2) for file in sorted(modified)] + [(file, 1) for file in sorted(read)]
    return weighed[:_MOST_FILES]


def _is_inside(file: str) -> bool:
    parts = file.replace("\\", "/").split("/")
    return bool(file) and parts[0] not in ("", "~") and ".." not in parts and "\0" not in file


def _file_fate(file: str, weight: int, epoch: int, facts: Facts) -> _Fate | None:
    """What became of a file since; None: not known."""
    name, since, changes = file, epoch - MARGIN, 0
    own = weight > 1  # its first commit is still to come
    for _ in range(_MOST_MOVES):
        if name not in facts.present:
            return None
        touches = sorted(touch for touch in facts.touches.get(name, ()) if touch.epoch >= since)
        renames = (touch for touch in touches if touch.how == "R")
        away = None if facts.present[name] else next(renames, None)
        if away is not None:
            touches = touches[: touches.index(away)]
        counted, own = _count_changes(touches, epoch, own)
        changes += counted
        if away is None:
            break
        name, since = away.to, away.epoch
    if facts.present.get(name):
        if name != file:
            return _Fate(file, "renamed", changes, name)
        if changes:
            return _Fate(file, "changed", changes)
        return _Fate(file, "") if facts.reaches(epoch) else None
    seen = any(touch.how == "D" and touch.epoch >= since for touch in facts.touches.get(name, ()))
    return _Fate(file, "gone") if seen or facts.reaches(epoch) else None


def _count_changes(touches: list[Touch], epoch: int, own: bool) -> tuple[int, bool]:
    """How many of a file's commits are changes to what the item knew; is its own still to come?"""
    if own:
        return max(len(touches) - 1, 0), not touches
    # that a file came to git, or to this name, says nothing of what is in it
    return sum(touch.epoch > epoch + MARGIN and touch.how != "A" for touch in touches), False


def _fate_factor(fate: _Fate) -> float:
    if fate.state == "gone":
        return 1.0
    changed = _CHANGED * (1.0 - exp2(-fate.changes / _HALF))
    return _RENAMED + (1.0 - _RENAMED) * changed if fate.state == "renamed" else changed


def _describe_fates(fates: list[_Fate], least: bool) -> str:
    """The worst in words, the others as a number."""
    worst = min(fates, key=lambda fate: (-_fate_factor(fate), fate.file))
    times = "once" if worst.changes == 1 else f"{worst.changes} times"
    changed = f"changed {'at least ' if least else ''}{times} since"
    text = _printable_name(worst.file)
    if worst.state == "gone":
        text += " is gone"
    elif worst.state == "renamed":
        text += f" renamed to {_printable_name(worst.now)}"
        text += f", {changed}" if worst.changes else ""
    else:
        text += f" {changed}"
    if others := len(fates) - 1:
        text += f"; {others} more file{'s' if others > 1 else ''} changed, moved or gone"
    return text


def _printable_name(name: str) -> str:
    """A name as one short line: whoever made the repository chose it."""
    clean = "".join(char if char.isprintable() else "?" for char in name)
    return clean if len(clean) <= 120 else f"…{clean[-119:]}"


# --- the facts -----------------------------------------------------------------------------------


# A question to git about one repository, by its name and values, to be answered by the deadline.
_Ask = Callable[..., git.Answer]


class _History:
    """What has been read of the commits before one HEAD, newest first."""

    def __init__(self, head: str) -> None:
        self.head = head
        self.reach: int | None = None
        self.touches: defaultdict[str, list[Touch]] = defaultdict(list)
        self._start = head  # pages are counted from here: HEAD when reading began
        self._read = 0
        self._ended = False
        self._by_name = False  # contents are missing or take too long: exact renames only
        self._changes = 0

    def _add_commits(self, commits: Iterable[git.Commit], edge: frozenset[str]) -> None:
        """Take in commits. What those at the `edge` of a shallow clone changed is not known."""
        for commit in commits:
            when = min(commit.authored, commit.committed)
            for change in () if commit.id in edge else commit.changes:
                self._changes += 1
                if change.old:
                    self.touches[change.old].append(Touch(when, "R", change.path))
                how = ("A" if change.same else "M") if change.how == "R" else change.how
                self.touches[change.path].append(Touch(when, how))

    def move_on(self, head: str, ask: _Ask, edge: frozenset[str]) -> bool:
        """Add what is new, if HEAD has only moved on from where it was."""
        if self.reach is None or not head:
            return False
        base = ask("base", self.head, head).whole_output or b""  # the last commit that both have
        if base.decode().strip() != self.head:
            return False
        news = ask("news", _PAGE, 0, head, self.head).whole_output
        new = list(git.parse_commits(news)) if news is not None else []
        if news is None or len(new) >= _PAGE:  # there may be more of them than were asked for
            return False
        self._add_commits(new, edge)
        self.head = head
        return True

    def read_back(self, oldest: int, ask: _Ask, edge: frozenset[str], deadline: float) -> None:
        """Read on until that time is reached, time runs out, or it is enough."""
        while (
            (self.reach is None or self.reach > oldest)
            and not (self._ended or self._read >= _MOST_COMMITS or self._changes >= _MOST_CHANGES)
            and (left := deadline - monotonic()) > 0
        ):
            name = "history by name" if self._by_name else "history"
            answer = ask(name, _PAGE, self._read, self._start)
            whole = answer.end == "whole"
            new = list(git.parse_commits(answer.out, whole))
            self._add_commits(new, edge)
            self._read += len(new)
            if new:
                self.reach = new[-1].committed
            if whole and len(new) < _PAGE:
                self._ended = True
                self.reach = self.reach if edge else 0
            stuck = answer.end == "late" and not new and left > _FAIR_SECONDS
            if answer.end == "failed" or stuck:
                # A second time is final: from here on this history cannot be read.
                self._ended = self._by_name and not new
                self._by_name = True


class GitFacts:
    """Facts by work tree; the least recently used is forgotten. Safe across threads."""

    def __init__(self, size: int = 8, path: str = git.PATH) -> None:
        self._size = size
        self._path = path
        self._kept: OrderedDict[str, _History] = OrderedDict()
        self._lock = threading.Lock()

    def gather_facts(self, root: str, works: Iterable[Work], deadline: float) -> Facts:
        """What can be known by `deadline` (time.monotonic()) about the files of these items."""
        asked = list(works)
        files = {file for one in asked for file, _ in _weighed_files(one)}
        if not files or not Path(root).is_dir():
            return Facts()
        repository = git.find_repository(root)
        present = _find_present(root, files, deadline)
        if repository is None:
            # Without versions there is nothing to know but what is there.
            return Facts(present, reach=0)
        oldest = min(one.epoch for one in asked) - MARGIN
        with self._open_history(repository, oldest, deadline - _RESERVE) as history:
            touches = _find_touches(history, files, git.path_prefix(repository, root))
            reach = history.reach
        targets = {touch.to for several in touches.values() for touch in several} - {""}
        present |= _find_present(root, targets - files, deadline)
        return Facts(present, touches, reach)

    def former_names(self, root: str, file: str, deadline: float) -> list[str]:
        """What a file was called before, as far as can be known by `deadline`; named from `root`
        like the file itself, the latest first."""
        repository = git.find_repository(root)
        if repository is None:
            return []
        with self._open_history(repository, 0, deadline) as history:
            moves = {
                touch.to: old
                for old, several in history.touches.items()
                for touch in several
                if touch.how == "R"
            }
        prefix = git.path_prefix(repository, root)
        names = [prefix + file]
        while (old := moves.get(names[-1], names[0])) not in names and len(names) <= _MOST_MOVES:
            names.append(old)
        return [name.removeprefix(prefix) for name in names[1:] if name.startswith(prefix)]

    @contextmanager
    def _open_history(
        self, repository: git.Repository, oldest: int, until: float
    ) -> Iterator[_History]:
        """That of this HEAD, read back to `oldest` where there is time for it, and continued from
        where the work tree was before where it can be; an empty one while another thread reads."""
        root, head = str(repository.top), repository.head
        if not self._lock.acquire(timeout=max(until - monotonic(), 0)):
            yield _History(head)
            return

        def ask_git(name: str, *values: int | str) -> git.Answer:
            return git.ask_git(name, repository, *values, deadline=until, path=self._path)

        try:
            edge = git.shallow_commits(repository)
            history = self._kept.pop(root, None)
            if history is None or not (
                history.head == head or history.move_on(head, ask_git, edge)
            ):
                history = _History(head)
            self._kept[root] = history
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
            if head:
                history.read_back(oldest, ask_git, edge, until)
            yield history
        finally:
            self._lock.release()


def _find_touches(history: _History, files: set[str], prefix: str) -> dict[str, tuple[Touch, ...]]:
    """The touches of these files and of those they were renamed to, named from the root."""
    found: dict[str, tuple[Touch, ...]] = {}
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file in found or prefix + file not in history.touches:
            continue
        found[file] = tuple(
            touch._replace(to=touch.to.removeprefix(prefix))
            for touch in history.touches[prefix + file]
            if touch.to.startswith(prefix) or not touch.to  # moved out of the root is gone
        )
        waiting += [touch.to for touch in found[file] if touch.to]
    return found


def _find_present(root: str, files: set[str], deadline: float) -> dict[str, bool]:
    """Which of the files are there now; those not looked at in time are not in it."""
    found: dict[str, bool] = {}
    for number, file in enumerate(sorted(files)):
        if number % 64 == 63 and monotonic() > deadline:
            break
        found[file] = _is_inside(file) and os.path.lexists(f"{root}/{file}")
    return found
