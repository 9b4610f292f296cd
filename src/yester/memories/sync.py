"""Two keepers of the same memories brought into step: a folder of files, and the store.

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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from yester.errors import SourceError, StoreChanged, UsageError
from yester.memories import files
from yester.memories.categories import category_of
from yester.memories.lifecycle import memory_transaction, rewrite_memory, set_status
from yester.memories.memory import Author, plain_form, read_history
from yester.memories.remember import create_memory, form_from_draft
from yester.model import Filters, Memo, MemoFile, Paging, Project, Source, replace
from yester.store.contract import Store

# A rule that only waits for the user's yes is nothing that files tell others.
_STATUSES = ("active", "retired", "archived", "superseded")
# key → (hash in the folder, hash in the store) after the last sync; "" where it was not there
Base = Mapping[str, tuple[str, ...]]
Keeper: TypeAlias = "files.MemoryFolder | StoreKeeper"
_NEVER = ("", "")

SOURCE = "claude-memory"  # of memories that came from a file
_AGENT, _BASE = "memory-sync", "base"  # of the sources that hold a base, and where
_STEPS = {"active": "restore", "retired": "retire", "archived": "archive"}
# How many memories a side must have had that none of them being there is taken for an accident.
_SUSPICIOUS = 3
_id_of = attrgetter("item.id")


class Action(Struct, frozen=True):
    """A step. `version` is what both sides are to hold under `key` (None: nothing); `other` is the
    version that stays beside it in a conflict, under a key of its own."""

    what: str  # write, take, delete, retire, conflict
    key: str
    version: files.MemoryFile | None = None
    other: files.MemoryFile | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.key}" + (f": {self.why}" if self.why else "")


class SyncReport(Struct, frozen=True):
    """What a sync did and what it could not do. `base` is for the next one, also where there were
    problems."""

    folder: files.MemoryFolder
    done: Sequence[Action]
    problems: Sequence[str]
    base: Base

    @property
    def conflicts(self) -> int:
        return sum(1 for action in self.done if action.what == "conflict")


# --- the plan ------------------------------------------------------------------------------------


def plan_sync(base: Base, folder: files.MemoryFolder, store: Keeper) -> list[Action]:
    """What must be done, by key. Two equal states give an empty plan, the same states the same."""
    keys = sorted({*base, *folder.memories, *store.memories})
    actions = [_plan_memory(key, base.get(key, _NEVER), folder, store) for key in keys]
    # A copy that an interrupted sync has left on one side comes to the other with its conflict.
    copies = {action.other.key for action in actions if action and action.other}
    return [action for action in actions if action and action.key not in copies]


def _plan_memory(
    key: str, before: tuple[str, ...], folder: files.MemoryFolder, store: Keeper
) -> Action | None:
    here, there = folder.memories.get(key), store.memories.get(key)
    hashes = _hashes_of(key, folder, store)
    here_changed, there_changed = hashes[0] != before[0], hashes[1] != before[1]
    same = hashes[0] == hashes[1] or not (here_changed or there_changed)
    if same or _is_hidden(key, before, folder):
        return None
    if here and there and here_changed and there_changed:
        newer, older, where = here, there, "file"
        if there.updated > here.updated:
            newer, older, where = there, here, "store"
        # A name made from its content: the same conflict again gives the same.
        mark = f"-conflict-{older.hash[:8]}"
        other = older.with_values(id=f"{older.id[: files.LONGEST_ID - len(mark)]}{mark}")
        why = f"changed on both sides; the {where}'s version keeps the name, the other is "
        return Action("conflict", key, newer, other, why + other.key)
    why = "gone from the other side, but changed since" if here_changed and there_changed else ""
    if here and here_changed:
        return Action("take", key, here, why=why)
    if there and there_changed:
        return Action("write", key, there, why=why)
    if here_changed:
        return Action("retire", key, why="its file is gone")
    return Action("delete", key, why="the store has it no more")


def _hashes_of(key: str, *sides: Keeper) -> tuple[str, ...]:
    found = (side.memories.get(key) for side in sides)
    return tuple(one.hash if one else "" for one in found)


def _is_hidden(key: str, before: tuple[str, ...], folder: files.MemoryFolder) -> bool:
    """Gone, but perhaps only unreadable: what was known of it is still what is known."""
    return bool(before[0] and key not in folder.memories and folder.unread)


# --- the steps -----------------------------------------------------------------------------------


def sync_keepers(
    folder: files.MemoryFolder,
    store: Keeper,
    base: Base,
    emptied: bool = False,
    dry_run: bool = False,
) -> SyncReport:
    """One sync. `emptied` says that a side which holds nothing any more is meant to; else it is
    refused. A dry run only plans."""
    for at, side in enumerate((folder, store)):
        had = sum(1 for hashes in base.values() if hashes[at])
        unread = side is folder and folder.unread
        if had >= _SUSPICIOUS and not (emptied or side.memories or unread):
            raise UsageError(  # a folder that is not mounted must not empty the store
                f"{side.name} holds no memory, but held {had} at the last sync; look whether it is "
                "the right one, and if they are meant to go, say so: --emptied"
            )
    problems, done, failed = [*folder.unread.values()], list[Action](), set[str]()
    actions = plan_sync(base, folder, store)
    if dry_run:
        return SyncReport(folder, actions, problems, base)
    for action in actions:
        try:
            _carry_out(action, folder, store)
            done.append(action)
        except SourceError as error:
            problems.append(f"{action}: {error}")
            failed |= {action.key, action.other.key if action.other else ""}
    try:
        folder.write_index()
    except SourceError as error:
        problems.append(str(error))
    after = {}
    for key in {*base, *folder.memories, *store.memories}:
        before = base.get(key, _NEVER)
        as_before = key in failed or _is_hidden(key, before, folder)
        after[key] = before if as_before else _hashes_of(key, folder, store)
    return SyncReport(
        folder, done, problems, {key: both for key, both in after.items() if any(both)}
    )


def _carry_out(action: Action, folder: files.MemoryFolder, store: Keeper) -> None:
    """The copy of a conflict comes first: nothing is replaced before it is safe. Where it is known
    already, somebody may have edited it since."""
    for side in (folder, store):
        if action.other and action.other.key not in side.memories:
            side.put_memory(action.other)
    for side in (folder, store):
        if action.version and _hashes_of(action.key, side) != (action.version.hash,):
            side.put_memory(action.version)
    if action.version is None:
        (folder if action.what == "delete" else store).drop_memory(action.key)


# --- the store as a keeper -----------------------------------------------------------------------


class LetGo(SourceError):
    """It was in the store, and was let go for good."""


class StoreKeeper:
    """The memories of a project that have a place in the files form, retired and archived ones
    included; what a folder is to a sync. A memory is known by its category and the id its file had,
    else by its slug. `by` is who syncs; everything is written through `remember` and `lifecycle`:
    checked, cleaned, and a line of its own in the history."""

    def __init__(self, store: Store, project: Project, by: Author) -> None:
        self.name = f"the store ({project.name})"
        self.memories: dict[str, files.MemoryFile] = {}
        self.files: dict[str, MemoFile] = {}  # what memories were last read from, by key
        self._memos: dict[str, Memo] = {}  # as they were when they were looked at
        self._store, self._project, self._by = store, project, by
        chosen = Filters(projects=(project.key,), types=files.FILED)
        for memo in sorted(store.memos(chosen, Paging(statuses=_STATUSES)), key=_id_of):
            # What a program has put as a plain item has no fields to write into a file.
            if memo.version:
                self._hold_memory(memo)

    def put_memory(self, one: files.MemoryFile) -> None:
        with self._writing(one.key):
            old = self._memos.get(one.key)
            memo = self._create_memory(one) if old is None else self._change_memory(old, one)
            if raw := files.redact_memory_file(one):
                self._store.put_memo_file(memo.item.id, raw, one.hash)
            self._hold_memory(memo, one.key)

    def drop_memory(self, key: str) -> None:
        """Retired, or archived where the category is never deleted: a file that is missing may be
        an accident, and nothing of it may be lost."""
        with self._writing(key):
            memo = self._memos[key]
            if memo.item.status == "active":
                what = "retire" if category_of(memo.item.type).deletable else "archive"
                by = replace(self._by, why="its file is gone")
                self._hold_memory(set_status(self._store, memo, what, by), key)

    def _hold_memory(self, memo: Memo, key: str = "") -> None:
        id_, store = memo.item.id, self._store
        file = store.memo_files([id_]).get(id_)
        unseen = memo.version - (file.version if file else 0)
        history = read_history(store, id_, unseen) if unseen else []
        newer = []
        if memo.item.status == "superseded":
            newer = store.memos(Filters(supersedes=id_), Paging(statuses=()))
        successor = max(newer, key=_id_of).slug if newer else ""
        own = memo.item.ref.rpartition("/")[2] if memo.item.source == SOURCE else memo.slug
        name = key.partition("/")[2] or own
        one = files.file_from_memory(memo, name, file, history, successor)
        if not key and one.key in self.memories:  # one of two has got another category
            one = files.file_from_memory(memo, f"{memo.slug[:60]}-{id_}", file, history, successor)
        key = key or one.key
        self.memories[key], self._memos[key] = one, memo
        if file is not None:
            self.files[key] = file

    def _create_memory(self, one: files.MemoryFile) -> Memo:
        # The identity of what came from a file. It keeps it, whatever its category becomes.
        ref = f"{self._project.key}#{one.key}"
        own = f"memo:{self._project.key}#{one.id}"
        if self._store.was_dropped(SOURCE, ref) or self._store.was_dropped("", own):
            raise LetGo(
                "was let go from the store and does not come back by itself; delete the file, or "
                "give it another id"
            )
        self._store.put_project(self._project)
        draft = files.draft_from_file(one)
        draft = replace(draft, source=SOURCE, ref=ref, epoch=self._trust_time(draft.epoch))
        by = replace(
            self._by,
            updated=self._trust_time(one.updated),
            since=self._trust_time(one.time_of(f"{one.status}_at")),
        )
        values = form_from_draft(self._store, draft, self._project, by)
        return create_memory(self._store, draft, values, self._project, by)

    def _change_memory(self, memo: Memo, one: files.MemoryFile) -> Memo:
        have = plain_form(memo)
        told = form_from_draft(self._store, files.draft_from_file(one), self._project, self._by)
        names = {*files.TOLD}
        if not one.tags:
            names.remove("tags")  # else those that were filled in
        if have["status"] != one.status == self.memories[one.key].status:
            names -= {"status", "reason"}  # superseded, which is retired in a file
        wanted = {**have, **{name: told[name] for name in names}}
        what = "update"
        if wanted["status"] != have["status"]:
            what = _STEPS[wanted["status"]]
            self._refuse_revival(memo, what, one)
        updated = self._trust_time(one.updated)
        by = replace(self._by, updated=updated if updated > memo.item.updated else 0)
        return rewrite_memory(self._store, memo, wanted, by, what, root=self._project.root)

    def _refuse_revival(self, memo: Memo, what: str, one: files.MemoryFile) -> None:
        """What the user has taken out of use in the store does not come back with an old file, from
        another branch say: only by a file that was written after that."""
        id_ = memo.item.id
        if memo.item.status == "superseded":
            raise SourceError(f"is superseded in the store (#{id_}); yester memory undo {id_}")
        last = next((c for c in read_history(self._store, id_) if "status" in c.after), None)
        if what == "restore" and last and last.who != self._by.who and one.updated <= memo.since:
            raise SourceError(
                f"is {memo.item.status} in the store since this file was written; to bring it "
                f"back: yester memory restore {id_}"
            )

    def _trust_time(self, epoch: int) -> int:
        """A time that can be believed, else 0: nothing was written in the future."""
        return epoch if epoch <= self._by.now else 0

    @contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """A transaction in which the memory of this key is the one that was looked at. That a new
        one is new the store itself makes sure."""
        seen = self._memos.get(key)
        try:
            with memory_transaction(self._store):
                if seen and self._store.memos(ids=[seen.item.id]) != [seen]:
                    raise SourceError(
                        f"{self.name}: {key} is another version by now; it is left as it is"
                    )
                yield
        except (UsageError, StoreChanged) as error:
            raise SourceError(str(error)) from None


# --- a folder and a project ----------------------------------------------------------------------


def sync_folder(
    store: Store,
    root: Path,
    project: Project,
    by: Author,
    *,
    emptied: bool = False,
    dry_run: bool = False,
) -> SyncReport:
    """Bring the files of a folder and a project's memories into step. What both had the last time
    is remembered in the store, for each project and folder."""
    folder, keeper = files.MemoryFolder(root), StoreKeeper(store, project, by)
    path = f"{_AGENT}:{project.key}:{root}"
    known = next(iter(store.entries(Source, {"path": path})), None)
    base = _complete_base(known, folder, keeper)
    report = sync_keepers(folder, keeper, base, emptied, dry_run)
    state = {_BASE: {key: list(both) for key, both in report.base.items()}}
    if not dry_run and (known.state if known else {_BASE: {}}) != state:
        with store.transaction("places"):
            store.append([Source(path, _AGENT, 0, 0, 0, 0, "", state)])
    return report


def _complete_base(source: Source | None, folder: files.MemoryFolder, keeper: StoreKeeper) -> Base:
    """What both had at the last sync of this folder; of files that are new to it, what the store
    had read elsewhere or imported. Without that an old copy of a file would be a conflict."""
    rows: Any = source.state.get(_BASE, {}) if source else {}
    met = {
        key: (file.hash, files.parse_memory_file(file.raw).hash)
        for key, file in keeper.files.items()
        if key in folder.memories
    }
    return met | {key: (one, other) for key, (one, other) in rows.items()}


class ImportReport(Struct):
    """What an import did. `gone` are notes that stand in no file any more, `stayed` memories that
    were retired or let go, and stay so."""

    files: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: int = 0
    stayed: int = 0
    problems: list[str] = []


def import_folder(store: Store, root: Path, project: Project, by: Author) -> ImportReport:
    """The memories of a folder into the store; nothing is written into the folder.

    Imported again, what has changed in its file since is brought up to date. What was changed in
    the store as well is left as it is, and named."""
    if not root.is_dir():
        raise SourceError(f"{root}: no such folder; name a project or its .claude/memory")
    folder, keeper = files.MemoryFolder(root), StoreKeeper(store, project, by)
    plan = plan_sync(_complete_base(None, folder, keeper), folder, keeper)
    steps = {action.key: action.what for action in plan}
    done: Counter[str] = Counter()
    problems = [*folder.warnings, *folder.unread.values()]
    for key, one in folder.memories.items():
        have, step = keeper.memories.get(key), steps.get(key)
        put_away = have is not None and have.status != "active" and one.status == "active"
        try:
            if step == "take" and not put_away:
                keeper.put_memory(one)
                done["changed" if have else "added"] += 1
            elif step == "conflict" and not put_away:
                problems.append(
                    f"{root / folder.paths[key]}: {key} is another one in the store; to keep both: "
                    f"yester memory sync {root}"
                )
            else:
                done["stayed" if put_away else "unchanged"] += 1
        except LetGo:
            done["stayed"] += 1
        except SourceError as error:
            problems.append(f"{root / folder.paths[key]}: {error}")
    return ImportReport(len(folder.memories), problems=problems, **done)
