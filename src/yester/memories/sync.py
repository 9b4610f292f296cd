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

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from yester.errors import SourceError, StoreChanged, UsageError
from yester.memories.categories import category_of
from yester.memories.files import (
    FILED,
    LONGEST_ID,
    MemoryFile,
    apply_file_changes,
    draft_from_file,
    file_from_memory,
    parse_memory_file,
    redact_memory_file,
)
from yester.memories.folder import FolderConfig, MemoryFolder
from yester.memories.lifecycle import memory_transaction, rewrite_memory, set_status, successor_id
from yester.memories.memory import Author, plain_form
from yester.memories.remember import create_memory, form_from_draft
from yester.model import STATUSES, Filters, Memo, MemoFile, Paging, Project, Source, replace
from yester.store.contract import Store

# key → (hash in the folder, hash in the store) after the last sync; "" where it was not there
Base = Mapping[str, tuple[str, str]]

SOURCE = "claude-memory"  # of memories that came from a file
_AGENT, _BASE = "memory-sync", "base"  # of the sources that hold a base, and where
_STEPS = {"active": "restore", "retired": "retire", "archived": "archive"}
# How many memories a side must have had that none of them being there is taken for an accident.
_SUSPICIOUS = 3


class Keeper(Protocol):
    """One of the two sides; `name` is what to call it in a message. `memories` are those it held
    when it was opened, retired and archived ones included, with what was put and let go since.
    `unread` says what could not be read: while there is something, nothing counts as gone, since
    the missing one may be the unread one."""

    name: str
    memories: dict[str, MemoryFile]
    unread: dict[str, str]

    def put(self, one: MemoryFile, instead_of: str) -> MemoryFile:
        """Keep this version in place of the one with that hash ("": there is none); the version as
        it is kept. SourceError, and nothing done, where another one is there by now."""

    def let_go(self, key: str, instead_of: str) -> str:
        """The other side has no such memory any more: delete it, or retire it and keep it to
        yourself. The hash of what is held under this key from now on, "" for nothing."""

    def settle(self) -> object:
        """All steps are done: bring up to date what is made from the memories."""


@dataclass(frozen=True, slots=True)
class Action:
    """A step. `version` is what both sides are to hold under `key` (None: nothing); `other` is the
    version that stays beside it in a conflict, under a key of its own."""

    what: str  # write, take, delete, retire, conflict
    key: str
    version: MemoryFile | None = None
    other: MemoryFile | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.key}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did and what it could not do."""

    done: tuple[Action, ...]
    problems: tuple[str, ...]
    base: Base  # for the next one, also where there were problems
    folder: Path = Path()
    memories: int = 0  # in the folder
    config: FolderConfig = field(default_factory=FolderConfig)

    @property
    def conflicts(self) -> int:
        return sum(1 for action in self.done if action.what == "conflict")


# --- the plan ------------------------------------------------------------------------------------


def plan_sync(base: Base, folder: Keeper, store: Keeper) -> list[Action]:
    """What must be done, by key. Two equal states give an empty plan, the same states the same."""
    keys = sorted({*base, *folder.memories, *store.memories})
    given: set[str] = set()
    actions = [_plan_memory(key, base.get(key, ("", "")), folder, store, given) for key in keys]
    # A copy that an interrupted sync has left on one side comes to the other with its conflict.
    copies = {action.other.key for action in actions if action and action.other}
    return [action for action in actions if action and action.key not in copies]


def _plan_memory(
    key: str, before: tuple[str, str], folder: Keeper, store: Keeper, given: set[str]
) -> Action | None:
    here, there = folder.memories.get(key), store.memories.get(key)
    hashes = _hash_of(folder, key), _hash_of(store, key)
    changed_here, changed_there = hashes[0] != before[0], hashes[1] != before[1]
    if hashes[0] == hashes[1] or not (changed_here or changed_there):
        return None
    if _is_hidden(key, before, folder, store):
        return None
    if here and there and changed_here and changed_there:
        first, second = (here, there) if here.updated >= there.updated else (there, here)
        other = _rename_beside(second, folder, store, given)
        where = "file" if first is here else "store"
        why = f"changed on both sides; the {where}'s version keeps the name, the other is "
        return Action("conflict", key, first, other, why + other.key)
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


def _hash_of(side: Keeper, key: str) -> str:
    one = side.memories.get(key)
    return one.hash if one else ""


def _is_hidden(key: str, before: tuple[str, str], *sides: Keeper) -> bool:
    """Gone, but perhaps only unreadable: what was known of it is still what is known."""
    return any(
        had and key not in side.memories and side.unread
        for had, side in zip(before, sides, strict=True)
    )


def _rename_beside(one: MemoryFile, folder: Keeper, store: Keeper, given: set[str]) -> MemoryFile:
    """The version under a name made from its content: the same conflict again gives the same name,
    and a name that holds something else is not taken."""
    mark, number = f"-conflict-{one.hash[:8]}", 1
    while True:
        end = mark if number == 1 else f"{mark}-{number}"
        copy = one.with_values(id=f"{one.id[: LONGEST_ID - len(end)]}{end}")
        there = {_hash_of(side, copy.key) for side in (folder, store)}
        if copy.key not in given and there <= {"", copy.hash}:
            given.add(copy.key)
            return copy
        number += 1


# --- carried out ---------------------------------------------------------------------------------


def sync_keepers(
    folder: Keeper, store: Keeper, base: Base, emptied: bool = False, dry_run: bool = False
) -> SyncReport:
    """One sync. `emptied` says that a side which holds nothing any more is meant to; else it is
    refused. A dry run only plans."""
    if not emptied:
        for at, side in enumerate((folder, store)):
            _refuse_emptied(side, sum(1 for hashes in base.values() if hashes[at]))
    problems = [*folder.unread.values(), *store.unread.values()]
    actions = plan_sync(base, folder, store)
    if dry_run:
        return SyncReport(tuple(actions), tuple(problems), base)
    done: list[Action] = []
    failed: set[str] = set()
    for action in actions:
        try:
            _carry_out(action, folder, store)
            done.append(action)
        except SourceError as error:
            problems.append(f"{action}: {error}")
            failed |= {action.key, action.other.key if action.other else ""}
    for side in (folder, store):
        try:
            side.settle()
        except SourceError as error:
            problems.append(str(error))
    after = {}
    for key in {*base, *folder.memories, *store.memories}:
        had = base.get(key, ("", ""))
        kept = key in failed or _is_hidden(key, had, folder, store)
        after[key] = had if kept else (_hash_of(folder, key), _hash_of(store, key))
    return SyncReport(
        tuple(done), tuple(problems), {key: both for key, both in after.items() if any(both)}
    )


def _refuse_emptied(side: Keeper, had: int) -> None:
    """A folder that is not mounted must not empty the store."""
    if had >= _SUSPICIOUS and not side.memories and not side.unread:
        raise UsageError(
            f"{side.name} holds no memory, but held {had} at the last sync; look whether it is the "
            "right one, and if they are meant to go, say so: --emptied"
        )


def _carry_out(action: Action, folder: Keeper, store: Keeper) -> None:
    """The copy of a conflict comes first: nothing is replaced before it is safe."""
    for one in filter(None, (action.other, action.version)):
        for side in (folder, store):
            if (have := _hash_of(side, one.key)) != one.hash:
                side.put(one, have)
    if action.version is None:
        side = folder if action.what == "delete" else store
        side.let_go(action.key, _hash_of(side, action.key))


# --- the store as a keeper -----------------------------------------------------------------------


class LetGo(SourceError):
    """It was in the store, and was let go for good."""


class StoreKeeper:
    """The memories of a project that have a place in the files form. A memory is known by its
    category and the id its file had, else by its slug. `by` is who syncs; everything is written
    through `remember` and `lifecycle`: checked, cleaned, and a line of its own in the history."""

    def __init__(self, store: Store, project: Project, by: Author) -> None:
        self.name = f"the store ({project.name})"
        self.memories: dict[str, MemoryFile] = {}
        self.unread: dict[str, str] = {}
        self._store, self._project, self._by = store, project, by
        self._ids: dict[str, int] = {}
        self._files: dict[str, MemoFile] = {}
        self._load()

    def met_before(self, key: str) -> tuple[str, str] | None:
        """What a file and the store had when this memory was last read from one; None: never."""
        file = self._files.get(key)
        return None if file is None else (file.hash, parse_memory_file(file.raw).hash)

    def put(self, one: MemoryFile, instead_of: str) -> MemoryFile:
        with self._writing():
            present = self._find_present(one.key)
            if present is not None and present[1].hash == one.hash:
                return present[1]
            self._expect(one.key, present, instead_of)
            memo = self._change(*present, one) if present else self._create(one)
            raw = redact_memory_file(one)
            if raw:
                self._store.put_memo_file(memo.item.id, raw, one.hash)
            return self._hold(one.key, memo)

    def let_go(self, key: str, instead_of: str) -> str:
        """Retired, or archived where the category is never deleted: a file that is missing may be
        an accident, and nothing of it may be lost."""
        with self._writing():
            present = self._find_present(key)
            self._expect(key, present, instead_of)
            if present is None:
                return ""
            memo, one = present
            if memo.item.status != "active":
                return one.hash
            what = "retire" if category_of(memo.item.type).deletable else "archive"
            memo = set_status(self._store, memo, what, replace(self._by, why="its file is gone"))
            return self._hold(key, memo).hash

    def settle(self) -> None:
        """Nothing is made from memories that would not be made with them."""

    def _load(self) -> None:
        chosen = Filters(projects=(self._project.key,), types=FILED)
        memos = filter(self._holds, self._store.memos(chosen, Paging(statuses=STATUSES)))
        rows = sorted(memos, key=lambda memo: memo.item.id)
        files = self._store.memo_files([memo.item.id for memo in rows])
        for memo in rows:
            file = files.get(memo.item.id)
            one = self._file_of(memo, file)
            # Another category may have been given to one of two with the same id.
            for name in (memo.slug, f"{memo.slug[:60]}-{memo.item.id}"):
                if one.key in self.memories:
                    one = self._file_of(memo, file, name)
            self.memories[one.key], self._ids[one.key] = one, memo.item.id
            if file is not None:
                self._files[one.key] = file

    def _hold(self, key: str, memo: Memo) -> MemoryFile:
        file = self._store.memo_files([memo.item.id]).get(memo.item.id)
        self._ids[key] = memo.item.id
        self.memories[key] = self._file_of(memo, file)
        return self.memories[key]

    def _holds(self, memo: Memo) -> bool:
        """What a program has put as a plain item has no fields to write into a file."""
        item = memo.item
        return memo.version > 0 and item.project == self._project.key and item.type in FILED

    def _file_of(self, memo: Memo, file: MemoFile | None, id_: str = "") -> MemoryFile:
        unseen = memo.version - (file.version if file else 0)
        history = self._store.changes(memo.item.id, limit=unseen) if unseen > 0 else []
        successor = ""
        if memo.item.status == "superseded":
            newer = self._store.memos(ids=[successor_id(self._store, memo.item.id)])
            successor = newer[0].slug if newer else ""
        return file_from_memory(memo, id_ or _file_id(memo), file, history, successor)

    def _find_present(self, key: str) -> tuple[Memo, MemoryFile] | None:
        """The memory of this key as it is now, also one that somebody else has made meanwhile."""
        id_ = self._ids.get(key) or self._find_new(key)
        memo = next(iter(self._store.memos(ids=[id_] if id_ else [])), None)
        if memo is None or not self._holds(memo):
            return None
        one = self._file_of(memo, self._store.memo_files([memo.item.id]).get(memo.item.id))
        return memo, one if one.key == key else one.with_values(id=key.partition("/")[2])

    def _expect(self, key: str, present: tuple[Memo, MemoryFile] | None, wanted: str) -> None:
        if (present[1].hash if present else "") != wanted:
            raise SourceError(f"{self.name}: {key} is another version by now; it is left as it is")

    def _find_new(self, key: str) -> int:
        for item in self._store.find_by_ref(self._ref_of(key)):
            if (item.kind, item.source, item.project) == ("memory", SOURCE, self._project.key):
                return item.id
        name, _, id_ = key.partition("/")
        for memo in self._store.memos(slug=id_):
            if self._holds(memo) and memo.item.type == name and _file_id(memo) == id_:
                return memo.item.id
        return 0

    def _ref_of(self, key: str) -> str:
        """The identity of what came from a file. It keeps it, whatever its category becomes."""
        return f"{self._project.key}#{key}"

    def _create(self, one: MemoryFile) -> Memo:
        ref, own = self._ref_of(one.key), f"memo:{self._project.key}#{one.id}"
        if self._store.was_dropped(SOURCE, ref) or self._store.was_dropped("", own):
            raise LetGo(
                "was let go from the store and does not come back by itself; delete the file, or "
                "give it another id"
            )
        self._store.put_project(self._project)
        draft = draft_from_file(one)
        draft = replace(draft, source=SOURCE, ref=ref, epoch=self._trust_time(draft.epoch))
        by = replace(
            self._by,
            updated=self._trust_time(one.updated),
            since=self._trust_time(one.time_of(f"{one.status}_at")),
        )
        values, _ = form_from_draft(self._store, draft, self._project, by)
        return create_memory(self._store, draft, values, self._project, by)

    def _change(self, memo: Memo, before: MemoryFile, one: MemoryFile) -> Memo:
        have = plain_form(memo)
        was, now = (
            form_from_draft(self._store, draft_from_file(file), self._project, self._by)[0]
            for file in (before, one)
        )
        wanted = apply_file_changes(have, was, now, tagged=bool(one.tags))
        what = "update"
        if wanted["status"] != have["status"]:
            what = _STEPS[wanted["status"]]
            self._refuse_revival(memo, what, one)
        updated = self._trust_time(one.updated)
        by = replace(self._by, updated=updated if updated > memo.item.updated else 0)
        return rewrite_memory(self._store, memo, wanted, by, what, root=self._project.root)

    def _refuse_revival(self, memo: Memo, what: str, one: MemoryFile) -> None:
        """What the user has taken out of use in the store does not come back with an old file, from
        another branch say: only by a file that was written after that."""
        id_ = memo.item.id
        if memo.item.status == "superseded":
            raise SourceError(f"is superseded in the store (#{id_}); yester memory undo {id_}")
        if what != "restore":
            return
        last = next((c for c in self._store.changes(id_) if "status" in c.after), None)
        if last and last.who != self._by.who and one.updated <= memo.since:
            raise SourceError(
                f"is {memo.item.status} in the store since this file was written; to bring it "
                f"back: yester memory restore {id_}"
            )

    def _trust_time(self, epoch: int) -> int:
        """A time that can be believed, else 0: nothing was written in the future."""
        return epoch if epoch <= self._by.now else 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with memory_transaction(self._store):
                yield
        except (UsageError, StoreChanged) as error:
            raise SourceError(str(error)) from None


def _file_id(memo: Memo) -> str:
    """Under which id it stands in files."""
    return memo.item.ref.rpartition("/")[2] if memo.item.source == SOURCE else memo.slug


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
    folder, keeper = MemoryFolder(root), StoreKeeper(store, project, by)
    path = f"{_AGENT}:{project.key}:{root}"
    known = next(iter(store.entries(Source, {"path": path})), None)
    base = _complete_base(known, folder, keeper)
    report = sync_keepers(folder, keeper, base, emptied, dry_run)
    state = {_BASE: {key: list(both) for key, both in report.base.items()}}
    if not dry_run and (known.state if known else {_BASE: {}}) != state:
        with store.transaction("places"):
            store.append([Source(path, _AGENT, 0, 0, 0, 0, "", state)])
    return replace(report, folder=root, memories=len(folder.memories), config=folder.config)


def _complete_base(
    source: Source | None, folder: MemoryFolder, keeper: StoreKeeper
) -> dict[str, tuple[str, str]]:
    """What both had at the last sync of this folder; of files that are new to it, what the store
    had read elsewhere or imported. Without that an old copy of a file would be a conflict."""
    found = source.state.get(_BASE) if source else None
    rows = found if isinstance(found, Mapping) else {}
    base = {str(key): (str(one), str(other)) for key, (one, other) in rows.items()}
    met = {key: keeper.met_before(key) for key in folder.memories if key not in base}
    return base | {key: both for key, both in met.items() if both}


@dataclass(slots=True)
class ImportReport:
    """What an import did. `stayed` are memories that were retired or let go, and stay so."""

    files: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    stayed: int = 0
    problems: list[str] = field(default_factory=list)


def import_folder(store: Store, root: Path, project: Project, by: Author) -> ImportReport:
    """The memories of a folder into the store; nothing is written into the folder.

    Imported again, what has changed in its file since is brought up to date. What was changed in
    the store as well is left as it is, and named."""
    if not root.is_dir():
        raise SourceError(f"{root}: no such folder; name a project or its .claude/memory")
    folder, keeper = MemoryFolder(root), StoreKeeper(store, project, by)
    plan = plan_sync(_complete_base(None, folder, keeper), folder, keeper)
    what = {action.key: action.what for action in plan}
    problems = [*folder.config.warnings, *folder.unread.values()]
    report = ImportReport(len(folder.memories), problems=problems)
    for key, one in folder.memories.items():
        have, where = keeper.memories.get(key), root / folder.paths[key]
        if have is not None and have.status != "active" and one.status == "active":
            report.stayed += 1
        elif what.get(key) == "conflict":
            report.problems.append(
                f"{where}: {key} is another one in the store; to keep both: "
                f"yester memory sync {root}"
            )
        elif what.get(key) != "take":
            report.unchanged += 1
        else:
            try:
                keeper.put(one, have.hash if have else "")
            except LetGo:
                report.stayed += 1
            except SourceError as error:
                report.problems.append(f"{where}: {error}")
            else:
                report.changed += have is not None
                report.added += have is None
    return report
