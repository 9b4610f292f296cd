"""Two keepers of the same memories brought into step: a tree of files, and the store.

What each had after the last sync (`Base`) tells who has changed what since then:

    one has changed it              the other gets it
    one has it no more              the other lets go of it
    both changed it, differently    both versions stay: the later one under its name, the other one
                                    under a name of its own
    changed here, gone there        the change stays

The plan is worked out first, from values alone, and then carried out. Each step names what it
replaces, so what somebody changes meanwhile is left alone and met by the next sync. Hashes are kept
for each side: one may hold a memory in its own words (without a secret, say) without the other
taking that for a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from yester.errors import SourceError, UsageError
from yester.memories import tree as trees
from yester.memories.tree import Tree
from yester.memories.written import LONGEST_ID, Written

# key → (hash in the tree, hash in the store) after the last sync; "" where it was not there
Base = Mapping[str, tuple[str, str]]

# How many memories a side must have had that none of them being there is taken for an accident.
_SUSPICIOUS = 3


@dataclass(frozen=True, slots=True)
class Action:
    """A step. `version` is what both sides are to hold under `key` (None: nothing); `other` is the
    version that stays beside it in a conflict, under a key of its own."""

    what: str  # write, take, delete, retire, conflict
    key: str
    version: Written | None = None
    other: Written | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.key}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True, slots=True)
class View:
    """What a side holds. `unread` says what of it could not be read: while there is something,
    nothing counts as gone, since the missing one may be the unread one."""

    memories: Mapping[str, Written] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


class MemoriesSide(Protocol):
    """One of the two keepers."""

    @property
    def name(self) -> str:
        """What to call it in a message."""

    def view(self) -> View:
        """Everything it holds now, retired and archived memories included."""

    def put(self, one: Written, instead_of: str) -> Written:
        """Keep this version in place of the one with that hash ("": there is none); the version as
        it is kept. SourceError, and nothing done, where another one is there by now."""

    def let_go(self, key: str, instead_of: str) -> str:
        """The other side has no such memory any more: delete it, or retire it and keep it to
        yourself. The hash of what `view` will show under this key from now on, "" for nothing.
        SourceError, and nothing done, where another version is there by now."""

    def settle(self) -> None:
        """All steps are done: bring up to date what is made from the memories."""


@dataclass(frozen=True, slots=True)
class Synced:
    done: tuple[Action, ...]
    problems: tuple[str, ...]
    base: Base


def plan(base: Base, tree: View, store: View) -> list[Action]:
    """What must be done, by key. Two equal states give an empty plan, the same states the same."""
    keys = sorted({*base, *tree.memories, *store.memories})
    names = _Names(tree, store)
    steps = [_step(key, base.get(key, ("", "")), tree, store, names) for key in keys]
    # A copy that an interrupted sync has left on one side comes to the other with its conflict.
    copies = {action.other.key for action in steps if action and action.other}
    return [action for action in steps if action and action.key not in copies]


class _Names:
    """What a version may be called that stays beside another one."""

    def __init__(self, tree: View, store: View) -> None:
        self._views = (tree, store)
        self._given: set[str] = set()

    def beside(self, one: Written) -> Written:
        """The version under a name made from its content: the same conflict again gives the same
        name, and a name that holds something else is not taken."""
        mark, number = f"-conflict-{one.hash[:8]}", 1
        while True:
            end = mark if number == 1 else f"{mark}-{number}"
            copy = one.changed(id=f"{one.id[: LONGEST_ID - len(end)]}{end}")
            if copy.key not in self._given and all(
                copy.key not in view.memories or view.memories[copy.key].hash == copy.hash
                for view in self._views
            ):
                self._given.add(copy.key)
                return copy
            number += 1


def _step(
    key: str, before: tuple[str, str], tree: View, store: View, names: _Names
) -> Action | None:
    here, there = tree.memories.get(key), store.memories.get(key)
    hashes = (here.hash if here else "", there.hash if there else "")
    changed_here, changed_there = hashes[0] != before[0], hashes[1] != before[1]
    if hashes[0] == hashes[1] or not (changed_here or changed_there):
        return None
    if (not here and before[0] and tree.unread) or (not there and before[1] and store.unread):
        return None
    if here and there and changed_here and changed_there:
        return _conflict(key, here, there, names)
    if changed_here and not changed_there:
        if here:
            return Action("take", key, here)
        return Action("retire", key, why="its file is gone")
    if changed_there and not changed_here:
        if there:
            return Action("write", key, there)
        return Action("delete", key, why="the store has it no more")
    if here:
        return Action("take", key, here, why="gone from the store, but its file has changed since")
    return Action("write", key, there, why="its file is gone, but it has changed in the store")


def _conflict(key: str, here: Written, there: Written, names: _Names) -> Action:
    first, second = (here, there) if _time(here) >= _time(there) else (there, here)
    other = names.beside(second)
    where = "file" if first is here else "store"
    why = f"changed on both sides; the {where}'s version keeps the name, the other is {other.key}"
    return Action("conflict", key, first, other, why)


def _time(one: Written) -> datetime:
    try:
        found = datetime.fromisoformat(one.updated_at)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# --- carried out -------------------------------------------------------------------------------


def refuse_emptied(side: MemoriesSide, view: View, had: int) -> None:
    """UsageError where a side that held memories holds none: a folder that is not mounted must not
    empty the store."""
    if had >= _SUSPICIOUS and not view.memories and not view.unread:
        raise UsageError(
            f"{side.name} holds no memory, but held {had} at the last sync; look whether it is the "
            "right one, and if they are meant to go, say so: --emptied"
        )


def sync(
    tree: MemoriesSide,
    store: MemoriesSide,
    base: Base,
    emptied: bool = False,
    views: tuple[View, View] | None = None,
    dry_run: bool = False,
) -> Synced:
    """One sync. Keep `base` of the result for the next one, also where there were problems.

    `emptied` says that a side which holds nothing any more is meant to (else it is refused).
    `views` are what both hold, where that was looked at already. A dry run only plans."""
    here, there = views or (tree.view(), store.view())
    if not emptied:
        for side, view, at in ((tree, here, 0), (store, there, 1)):
            refuse_emptied(side, view, sum(1 for hashes in base.values() if hashes[at]))
    if dry_run:
        return Synced(tuple(plan(base, here, there)), (*here.unread, *there.unread), base)
    keys = sorted({*base, *here.memories, *there.memories})
    after = {key: _hashes(key, here, there) for key in keys}
    problems = [*here.unread, *there.unread]
    done: list[Action] = []
    for action in plan(base, here, there):
        try:
            after |= _carried_out(action, tree, store, here, there)
            done.append(action)
        except SourceError as error:
            problems.append(f"{action}: {error}")
            after[action.key] = base.get(action.key, ("", ""))
    for key in keys:
        if _hidden(key, base, here, there):
            after[key] = base[key]
    for side in (tree, store):
        try:
            side.settle()
        except SourceError as error:
            problems.append(str(error))
    return Synced(
        tuple(done), tuple(problems), {key: both for key, both in after.items() if any(both)}
    )


def _hashes(key: str, here: View, there: View) -> tuple[str, str]:
    mine, theirs = here.memories.get(key), there.memories.get(key)
    return mine.hash if mine else "", theirs.hash if theirs else ""


def _hidden(key: str, base: Base, here: View, there: View) -> bool:
    """Gone, but perhaps only unreadable: what was known of it is still what is known."""
    had = base.get(key, ("", ""))
    return any(
        before and key not in view.memories and view.unread
        for before, view in zip(had, (here, there), strict=True)
    )


def _carried_out(
    action: Action, tree: MemoriesSide, store: MemoriesSide, here: View, there: View
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Do it; (key, hashes) of what both sides hold now. The copy of a conflict comes first: nothing
    is replaced before it is safe."""
    sides, key = (tree, store), action.key
    present = _hashes(key, here, there)
    if copy := action.other:
        yield copy.key, _both(sides, copy, _hashes(copy.key, here, there))
    if action.version:
        yield key, _both(sides, action.version, present)
    elif action.what == "delete":
        yield key, (tree.let_go(key, present[0]), "")
    else:
        yield key, ("", store.let_go(key, present[1]))


def _both(
    sides: tuple[MemoriesSide, MemoriesSide], one: Written, present: tuple[str, str]
) -> tuple[str, str]:
    """A version to whoever has another one or none; the hashes of what both hold then."""
    first, second = (
        had if had == one.hash else side.put(one, had).hash
        for side, had in zip(sides, present, strict=True)
    )
    return first, second


class TreeSide:
    """A tree as one of the two keepers, or as both: two trees can be kept in step as well."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tree: Tree | None = None

    @property
    def name(self) -> str:
        return str(self._root)

    @property
    def tree(self) -> Tree:
        """As it was read last, with what was done since."""
        if self._tree is None:
            self._tree = trees.read(self._root)
        return self._tree

    @property
    def warnings(self) -> Sequence[str]:
        return self.tree.config.warnings

    def view(self) -> View:
        self._tree = None
        return View(self.tree.memories, tuple(self.tree.unread.values()))

    def put(self, one: Written, instead_of: str) -> Written:
        self._expect(one.key, instead_of)
        self._tree = trees.put(self.tree, one)
        return self._tree.memories[one.key]

    def let_go(self, key: str, instead_of: str) -> str:
        self._expect(key, instead_of)
        self._tree = trees.drop(self.tree, key)
        return ""

    def settle(self) -> None:
        trees.refresh_index(self.tree)

    def _expect(self, key: str, wanted: str) -> None:
        present = self.tree.memories.get(key)
        if (present.hash if present else "") != wanted:
            raise SourceError(f"{self._root}: {key} is another version by now; it is left as it is")
