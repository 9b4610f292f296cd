"""The store as one of the two keepers of a sync: the memories of a project that have a place in the
files form.

A memory is known by its category and the id its file had, else by its slug. Everything is written
through `remember` and `lifecycle`, so it is checked, cleaned and in the history like all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from yester.errors import SourceError, StoreChanged, UsageError
from yester.memories.categories import category
from yester.memories.filed import (
    FILED,
    drafted_from,
    filed,
    milliseconds,
    taken_over,
    without_secrets,
)
from yester.memories.lifecycle import replaced_by, step, write, writing
from yester.memories.memo import By, less_trusted, plain, settled
from yester.memories.remember import create, values_of
from yester.memories.sync import Base, View
from yester.memories.written import Written, parsed
from yester.model import STATUSES, Filters, Memo, Paging, Project
from yester.store.contract import MemoFile, Store

SOURCE = "claude-memory"  # of memories that came from a file
_STEPS = {"active": "restore", "retired": "retire", "archived": "archive"}


def ref_of(project: str, key: str) -> str:
    """The identity of what came from a file. It keeps it, whatever its category becomes."""
    return f"{project}#{key}"


class LetGo(SourceError):
    """It was in the store, and was let go for good."""


class StoreSide:
    """`by` is who syncs; each change of a sync is a line of its own in the history."""

    def __init__(self, store: Store, project: Project, by: By) -> None:
        self._store = store
        self._project = project
        self._by = by
        self._ids: dict[str, int] = {}
        self._files: dict[str, MemoFile] = {}

    @property
    def name(self) -> str:
        return f"the store ({self._project.name})"

    def view(self) -> View:
        chosen = Filters(projects=(self._project.key,), types=FILED)
        memos = [
            memo
            for memo in self._store.memos(chosen, Paging(statuses=STATUSES))
            if self._holds(memo)
        ]
        files = self._store.files([memo.item.id for memo in memos])
        self._ids, self._files = {}, {}
        found: dict[str, Written] = {}
        for memo in sorted(memos, key=lambda memo: memo.item.id):
            file = files.get(memo.item.id)
            one = self._filed(memo, file)
            if one.key in found:  # another category was given to one of two with the same id
                one = self._filed(memo, file, memo.slug)
            if one.key in found:
                one = self._filed(memo, file, f"{memo.slug[:60]}-{memo.item.id}")
            found[one.key] = one
            self._ids[one.key] = memo.item.id
            if file is not None:
                self._files[one.key] = file
        return View(found)

    def met_before(self, key: str) -> tuple[str, str] | None:
        """What a file and the store had when this memory was last read from one; None: never."""
        file = self._files.get(key)
        return None if file is None else (file.hash, parsed(file.raw).hash)

    def put(self, one: Written, instead_of: str) -> Written:
        with self._writing():
            present = self._present(one.key)
            if present is not None and present[1].hash == one.hash:
                return present[1]
            self._expect(one.key, present, instead_of)
            memo = self._changed(*present, one) if present else self._created(one)
            raw = without_secrets(one)
            if raw:
                self._store.put_file(memo.item.id, raw, one.hash)
            self._ids[one.key] = memo.item.id
            return self._filed(memo, self._store.files([memo.item.id]).get(memo.item.id))

    def let_go(self, key: str, instead_of: str) -> str:
        """Retired, or archived where the category is never deleted: a file that is missing may be
        an accident, and nothing of it may be lost."""
        with self._writing():
            present = self._present(key)
            self._expect(key, present, instead_of)
            if present is None:
                return ""
            memo, one = present
            if memo.item.status != "active":
                return one.hash
            what = "retire" if category(memo.item.type).deletable else "archive"
            memo = step(self._store, memo, replace(self._by, why="its file is gone"), what)
            return self._filed(memo, self._store.files([memo.item.id]).get(memo.item.id)).hash

    def settle(self) -> None:
        """Nothing is made from memories that would not be made with them."""

    # --- one memory --------------------------------------------------------------------------

    def _holds(self, memo: Memo) -> bool:
        """What a program has put as a plain item has no fields to write into a file."""
        return (
            memo.version > 0 and memo.item.project == self._project.key and memo.item.type in FILED
        )

    def _filed(self, memo: Memo, file: MemoFile | None, id_: str = "") -> Written:
        since = file.version if file else 0
        history = (
            self._store.changes(memo.item.id, limit=memo.version - since)
            if memo.version > since
            else []
        )
        newer = ""
        if memo.item.status == "superseded":
            found = self._store.memos(ids=[replaced_by(self._store, memo.item.id)])
            newer = found[0].slug if found else ""
        return filed(memo, id_ or _id(memo), file, history, newer)

    def _present(self, key: str) -> tuple[Memo, Written] | None:
        """The memory of this key as it is now, also one that somebody else has made meanwhile."""
        id_ = self._ids.get(key) or self._made_meanwhile(key)
        memo = next(iter(self._store.memos(ids=[id_] if id_ else [])), None)
        if memo is None or not self._holds(memo):
            return None
        one = self._filed(memo, self._store.files([memo.item.id]).get(memo.item.id))
        return memo, one if one.key == key else one.changed(id=key.partition("/")[2])

    def _made_meanwhile(self, key: str) -> int:
        for item in self._store.find(ref_of(self._project.key, key)):
            if (item.kind, item.source, item.project) == ("memory", SOURCE, self._project.key):
                return item.id
        name, _, id_ = key.partition("/")
        for memo in self._store.memos(slug=id_):
            if self._holds(memo) and memo.item.type == name and _id(memo) == id_:
                return memo.item.id
        return 0

    def _created(self, one: Written) -> Memo:
        ref = ref_of(self._project.key, one.key)
        if self._store.gone(SOURCE, ref) or self._store.gone(
            "", f"memo:{self._project.key}#{one.id}"
        ):
            raise LetGo(
                "was let go from the store and does not come back by itself; delete the file, or "
                "give it another id"
            )
        self._store.put_project(self._project)
        draft = replace(drafted_from(one), source=SOURCE, ref=ref)
        draft = replace(draft, epoch=self._past(draft.epoch))
        by = replace(
            self._by,
            updated=self._past(milliseconds(one.updated_at)),
            since=self._past(milliseconds(one.values.get(f"{one.status}_at"))),
        )
        values, _ = values_of(self._store, draft, self._project, by)
        return create(self._store, draft, values, self._project, by)

    def _changed(self, memo: Memo, present: Written, one: Written) -> Memo:
        have = plain(memo)
        read, _ = values_of(self._store, drafted_from(one), self._project, self._by)
        wanted = settled(taken_over(have, read, present, one), self._project.root)
        what = "update"
        if wanted["status"] != have["status"]:
            what = _STEPS[wanted["status"]]
            self._may(memo, what, one)
        if any(wanted[name] != have[name] for name in ("title", "content")):
            wanted["origin"] = less_trusted(have["origin"], self._by.origin)
        updated = self._past(milliseconds(one.updated_at))
        by = replace(self._by, updated=updated if updated > memo.item.updated else 0)
        return write(self._store, memo, wanted, by, what)

    def _may(self, memo: Memo, what: str, one: Written) -> None:
        """What the user has taken out of use in the store does not come back with an old file, from
        another branch say: only by a file that was written after that."""
        id_ = memo.item.id
        if memo.item.status == "superseded":
            raise SourceError(f"is superseded in the store (#{id_}); yester memory undo {id_}")
        if what != "restore":
            return
        changed = (c for c in self._store.changes(id_) if "status" in c.after)
        last = next(changed, None)
        if last and last.who != self._by.who and milliseconds(one.updated_at) <= memo.since:
            raise SourceError(
                f"is {memo.item.status} in the store since this file was written; to bring it "
                f"back: yester memory restore {id_}"
            )

    def _past(self, epoch: int) -> int:
        """A time that can be believed, else 0: nothing was written in the future."""
        return epoch if epoch <= self._by.now else 0

    # --- with care ---------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with writing(self._store):
                yield
        except (UsageError, StoreChanged) as error:
            raise SourceError(str(error)) from None

    def _expect(self, key: str, present: tuple[Memo, Written] | None, wanted: str) -> None:
        if (present[1].hash if present else "") != wanted:
            raise SourceError(f"{self.name}: {key} is another version by now; it is left as it is")


def _id(memo: Memo) -> str:
    """Under which id it stands in files."""
    if memo.item.source == SOURCE:
        return memo.item.ref.rpartition("/")[2]
    return memo.slug


def completed(base: Base, tree: View, store: StoreSide) -> Base:
    """What both had at the last sync of this folder; of files that are new to it, what the store
    had read elsewhere or imported. Without that an old copy of a file would be a conflict."""
    met = {key: store.met_before(key) for key in tree.memories if key not in base}
    return {**base, **{key: both for key, both in met.items() if both}}
