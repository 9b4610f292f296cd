"""Everything that is remembered as JSON lines, and back: nothing but the index and the vectors,
which are made anew, and what would undo the joining of projects, is left out.

    {"yester": {"format": 1, …}}          first
    {"item": {"id": 12, "ref": …, …}}     a record a line; ids are those of the store it is from
    {"end": {"records": 1234}}            last: what lacks it was cut off

A line names what stands in lines before it. Read back, records get new ids, and what named the old
ones names the new. What is known already stays as it is, so a run that was killed is simply run
again, and two exports of one store are one.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from yester import __version__, model
from yester.agents.base import Options
from yester.agents.sources import BadLine, read_records
from yester.errors import SourceError, StoreChanged, UsageError
from yester.ingest.prepare import prepare_item
from yester.ingest.transcripts import Ingest, rebuild_if_stale
from yester.memories.memory import TRUST
from yester.model import ANYTHING, DISTILLED, Change, Filters, Item, Memo, Paging, replace
from yester.project import Projects
from yester.redact import redact, redact_value
from yester.sharing.wire import told_fields
from yester.store import find_item, walk_items
from yester.store.contract import Row, Store
from yester.tombstones import lost_words

R = TypeVar("R")
FORMAT = 1
_PAGE = 1_000
_MANY = 1_000_000_000
_BATCH = 500  # rows in one transaction
# Rows of the ledger, in an order in which each names only what came before it, and what tells
# whether a row is known already.
_LEDGER: Mapping[type[Row], tuple[str, ...]] = {
    model.Source: ("path",), model.Muted: ("session",), model.Turn: ("session", "key"),
    model.Event: ("id",), model.Injection: ("item", "session", "epoch", "event"),
    model.Feedback: ("item", "what", "session"), model.Spend: ("epoch", "model", "purpose"),
    model.Refinement: ("session", "turn"), model.Archived: ("session",),
    model.OwedStart: ("session",), model.Skipped: ("agent", "reason"),
    model.Answered: ("day", "ms"),
}  # fmt: skip
_KINDS = {kind.__name__.lower(): kind for kind in _LEDGER}
# Fields that name another record by its id.
_REFS = {
    "item": "item", "prompt": "item", "closing": "item", "session": "session", "turn": "turn",
}  # fmt: skip
# Items are written in batches of their own, all else in transactions that protect these.
_LOCKS: Mapping[str, Any] = {
    "project": "places", "session": "places", "change": "memories", "dropped": "memories",
    "evidence": "items", "item": None, "memory": None,
}  # fmt: skip
_OWN_ERRORS = (msgspec.MsgspecError, UsageError, StoreChanged)
_DROPPED = ("source", "ref", "slug", "type", "project", "epoch", "why")


# --- out -----------------------------------------------------------------------------------------


def export_lines(store: Store, now: int) -> Iterator[bytes]:
    """The store as lines, a few at a time; others may write meanwhile."""
    yield _encode_line("yester", {"format": FORMAT, "version": __version__, "exported": now})
    number = 0
    for number, (name, record) in enumerate(_list_records(store), 1):  # noqa: B007
        yield _encode_line(name, record)
    yield _encode_line("end", {"records": number})


def _encode_line(name: str, record: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({name: record}) + b"\n"


def _list_records(store: Store) -> Iterator[tuple[str, dict[str, Any]]]:
    for project in store.projects():
        yield "project", told_fields(project)
    since = {one.session.id: one.since for one in _list_waiting(store)}
    for one in _all_rows(partial(store.sessions, ANYTHING)):
        told = told_fields(replace(one, prompts=0, items=0))
        yield "session", told | ({"waits": since[one.id]} if one.id in since else {})
    yield from _list_items(store)
    for change in _all_rows(partial(store.entries, Change, {})):
        yield "change", told_fields(change)
    made = (item.id for item in walk_items(store, Filters(source=DISTILLED)))
    while ids := list(islice(made, _PAGE)):
        for id_, pairs in store.evidence(ids).items():
            yield "evidence", {"item": id_, "of": pairs}
    for *gone, _ in store.totals("memory_gone", by=_DROPPED):
        yield "dropped", dict(zip(_DROPPED, gone, strict=True))
    for kind in _LEDGER:
        for row in _all_rows(partial(store.entries, kind, {})):
            yield kind.__name__.lower(), told_fields(row)


def _list_items(store: Store) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is recallable; of structured memories also what an item has no place for."""
    memos = [memo for memo in store.memos(page=Paging(statuses=())) if memo.version]
    structured = {memo.item.id for memo in memos}
    for item in walk_items(store):
        if item.id not in structured:
            yield "item", told_fields(item)
    files = store.memo_files([*structured])
    for memo in sorted(memos, key=lambda one: one.item.id):
        told = told_fields(memo) | {"item": told_fields(memo.item)}
        if file := files.get(memo.item.id):
            raw = b64encode(file.raw).decode()
            told["file"] = {"raw": raw, "hash": file.hash, "version": file.version}
        yield "memory", told


def _list_waiting(store: Store) -> list[model.Waiting]:
    return store.queued_sessions(model.Queue("distil", quiet_since=_MANY * _MANY, limit=_MANY))


def _all_rows(select: Callable[[Paging], list[R]]) -> Iterator[R]:
    """Oldest first: what is added meanwhile comes at the end."""
    for start in count(0, _PAGE):
        page = select(Paging(_PAGE, start, oldest_first=True))
        yield from page
        if len(page) < _PAGE:
            return


def write_export(path: Path, lines: Iterable[bytes]) -> None:
    """The whole of it or nothing, under its name; closed to others. What a killed run has left is
    written over by the next."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with part.open("wb") as file:
        file.writelines(lines)
    part.replace(path)


# --- and back ------------------------------------------------------------------------------------


class ExportReport(Struct):
    """What came of an import: of each kind of record, how many there were and how many were new."""

    records: dict[str, int] = {}
    added: dict[str, int] = {}
    problems: list[str] = []


def count_records(path: Path) -> dict[str, int]:
    """How many records of each kind an export has."""
    kinds: Counter[str] = Counter()
    for *_, record in read_records(path, 0, 0):
        kinds.update([] if isinstance(record, BadLine) else record.keys())
    if not kinds.pop("yester", 0):
        raise SourceError(f"{path}: is not an export of yester's")
    return {name: number for name, number in kinds.items() if name != "end"}


class _Told(Struct):
    """A structured memory as the export tells it, until its history comes, which writes it."""

    memo: Memo
    file: Mapping[str, Any]
    history: list[Change] = []  # what the store has of it, oldest first
    stays: bool = False  # as it is here
    met: int = 0  # lines of its history


class ExportReader:
    """One pass over one export. With `mine` it comes back as it was. Else nothing of it counts as
    the user's word, rules are proposed, and what would steer yester (transcripts read, sessions
    muted, memories let go) is left out."""

    def __init__(self, store: Store, path: Path, mine: bool) -> None:
        self.store, self.path, self.mine = store, path, mine
        self.report = ExportReport()
        self._ingest = Ingest(store, Projects({}), Options())
        self._placed: list[tuple[int, Item]] = []  # old id, what it is now; not yet looked up
        # What → old id → new; 0: it was forgotten here.
        self._ids: dict[str, dict[int, int]] = {"item": {}, "session": {}, "turn": {}, "act": {}}
        self._memories: dict[int, _Told] = {}  # by old id
        self._settled: set[int] = set()  # sessions that are new here and do not wait
        self._rows: list[tuple[int, str, dict[str, Any]]] = []

    def read_slices(self) -> Iterator[int]:
        """Read it; yields how many bytes each step has dealt with."""
        rebuild_if_stale(self.store)
        before, line, ended, name = 0, 0, False, ""
        for _, end, line, record in read_records(self.path, 0, 0):
            yield end - before
            before = end
            if isinstance(record, BadLine) or len(record) != 1:
                self._complain(line, getattr(record, "reason", "not one record"))
                continue
            last, (name, value) = name, next(iter(record.items()))
            if line == 1:
                self._check_head(name, value)
            elif name == "end":
                ended = True
            else:
                if name != last or len(self._rows) >= _BATCH:
                    self._write_rows()
                self._rows.append((line, name, value))
                self.report.records[name] = self.report.records.get(name, 0) + 1
        self._write_rows()
        self._settle_sessions()
        if not ended:
            self._complain(line, "ends here, but was longer: it was cut off")

    def _check_head(self, name: str, value: Any) -> None:
        if name != "yester" or not isinstance(value, dict):
            raise SourceError(f"{self.path}: is not an export of yester's")
        if value.get("format") != FORMAT:
            raise SourceError(
                f"{self.path}: has the format {value.get('format')}, and this yester knows "
                f"{FORMAT}; update yester"
            )

    def _complain(self, line: int, reason: str) -> None:
        self.report.problems.append(f"{self.path}:{line}: {reason}")

    def _write_rows(self) -> None:
        """What has been collected, all of one kind, in one transaction; items in batches."""
        rows, self._rows = self._rows, []
        lock = _LOCKS.get(rows[0][1], "ledger") if rows else None
        with self.store.transaction(lock) if lock else nullcontext():
            for line, name, value in rows:
                try:
                    new = self._read_record(name, value)
                    self.report.added[name] = self.report.added.get(name, 0) + new
                except (LookupError, TypeError, ValueError, *_OWN_ERRORS) as error:
                    self._complain(line, f"not understood ({error})")
        if lock is None:
            self._place_items()

    def _read_record(self, name: str, value: dict[str, Any]) -> bool:
        """Is it new?"""
        if not self.mine and name in ("dropped", *_KINDS):
            return False
        if name in _KINDS:
            return self._read_entry(value, _KINDS[name])
        if name not in _LOCKS:
            raise LookupError("no such record")
        return bool(getattr(self, f"_read_{name}")(value))

    # --- a record of each kind -------------------------------------------------------------------

    def _read_project(self, value: dict[str, Any]) -> bool:
        project = msgspec.convert(value, model.Project)
        known = any(one.key == project.key for one in self.store.projects())
        return bool(self.store.put_project(project)) and not known

    def _read_session(self, value: dict[str, Any]) -> bool:
        waits = value.pop("waits", None)
        told = msgspec.convert(value, model.Session)
        same = Filters((told.project,), session=told.key, agent=told.agent)
        id_ = next((one.id for one in self.store.sessions(same) if one.key == told.key), 0)
        known = bool(id_)
        if not known or self.mine:
            clean = replace(told, title=redact(told.title), branch=redact(told.branch), id=0)
            id_ = self.store.put_session(clean)
        self._ids["session"][told.id] = id_
        if not known and waits is None:
            self._settled.add(id_)
        return bool(id_) and not known

    def _read_item(self, value: dict[str, Any]) -> bool:
        item = msgspec.convert(value, Item)
        if known := self._find_id(item):
            self._ids["item"][item.id] = known
            return False
        if item.supersedes and item.supersedes not in self._ids["item"]:
            self._place_items()  # it may be among those that wait
        entry = prepare_item(replace(self._own_item(item), id=0), cut=False)
        self._ingest.add_entry(entry)
        self._placed.append((item.id, entry.item))
        return False  # counted when they are written

    def _own_item(self, item: Item) -> Item:
        """An item as it may be taken over. What is somebody else's is an import, however it came to
        them; only a rule says that it was typed, since it is proposed as one."""
        item = replace(item, supersedes=self._ids["item"].get(item.supersedes, 0))
        if self.mine:
            return item
        if item.type == "rule" and item.kind == "memory":
            status = "proposed" if item.status == "active" else item.status
            return replace(item, origin="user", status=status)
        return replace(item, origin="import", trust=TRUST["import"])

    def _place_items(self) -> None:
        """Write the items that wait, and learn their new ids."""
        if self._placed:
            put = self._ingest.flush()
            self.report.added["item"] = self.report.added.get("item", 0) + put.added
        self._ids["item"] |= {old: self._find_id(item) for old, item in self._placed}
        self._placed = []

    def _find_id(self, item: Item) -> int:
        found = find_item(self.store, item.identity)
        return found.id if found else 0

    def _read_memory(self, value: dict[str, Any]) -> bool:
        file = value.pop("file", {})
        memo = msgspec.convert(value, Memo)
        self._memories[memo.item.id] = _Told(memo, file)
        return False

    def _find_memory(self, told: _Told, first: Change) -> None:
        """What there is of it here. One that is called by a secret has lost its name."""
        memo, item = told.memo, told.memo.item
        texts = [*item.texts, msgspec.json.encode(first.after).decode()]
        lost = {word for text in texts for word in lost_words(text, redact(text))}
        if lost & {*memo.slug.split("-")}:
            slug = f"memory-{item.id}"
            item = replace(item, ref=item.ref.replace(memo.slug, slug))
            memo = replace(memo, slug=slug)
        told.memo = replace(memo, item=item, content=redact_value(memo.content))
        id_ = self._ids["item"][item.id] = self._find_id(item)
        told.history = self.store.entries(Change, {"item": id_})[::-1] if id_ else []
        # Let go here, or a plain item here.
        told.stays = self.store.was_dropped(item.source, item.ref) or bool(id_ and not told.history)

    def _read_change(self, value: dict[str, Any]) -> bool:
        """The next line of a memory's history: known already, or written with the memory as it is
        in the end, so that a run which is killed leaves one that can be gone on with."""
        change = msgspec.convert(value, Change)
        told = self._memories[change.item]
        if not told.met:
            self._find_memory(told, change)
        at, told.met = told.met, told.met + 1
        if told.stays:
            return False
        if at >= len(told.history):
            self._write_memory(told, change, at)
            return True
        here = told.history[at]
        self._ids["act"][change.act] = here.act
        if (here.epoch, here.who, here.what) != (change.epoch, change.who, change.what):
            told.stays = True
            raise UsageError(f"{told.memo.slug} has another history here and stays as it is")
        return False

    def _write_memory(self, told: _Told, change: Change, at: int) -> None:
        items, acts, store = self._ids["item"], self._ids["act"], self.store
        old, slug = told.memo.item.id, told.memo.slug
        item = self._own_item(told.memo.item)
        known = store.memos(ids=[items[old]]) if items[old] else ()
        slug = known[0].slug if known else store.free_slug(item.project, slug)
        entry = prepare_item(replace(item, id=items[old]))
        memo = replace(told.memo, item=entry.item, slug=slug, version=at)
        before, after = (self._own_values(part) for part in (change.before, change.after))
        line = replace(
            change, item=items[old], before=before, after=after or {}, id=0,
            act=acts.get(change.act, 0),
        )  # fmt: skip
        items[old] = store.put_memo(entry, memo, line)
        (written,) = store.entries(Change, {"item": items[old]}, Paging(1))
        acts[change.act] = written.act
        if told.file.get("version") == at + 1:
            raw = redact(b64decode(told.file["raw"]).decode("utf-8", "surrogateescape"))
            clean = raw.encode("utf-8", "surrogateescape")
            store.put_memo_file(items[old], clean, told.file["hash"])

    def _own_values(self, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """What a line of the history says, of the memories as they are called here."""
        if values is None:
            return None
        own: dict[str, Any] = redact_value(values)
        if own.get("supersedes"):
            own["supersedes"] = self._ids["item"].get(own["supersedes"], 0)
        return own

    def _read_evidence(self, value: dict[str, Any]) -> bool:
        items = self._ids["item"]
        pairs = tuple((fact, items[old]) for fact, old in value["of"] if items.get(old))
        id_ = items[value["item"]]
        found = [] if self.store.evidence([id_]) else self.store.get([id_])
        self.store.put([replace(prepare_item(one, cut=False), evidence=pairs) for one in found])
        return False

    def _read_dropped(self, value: dict[str, Any]) -> bool:
        """What was let go stays so: it is made, and let go again."""
        if self.store.was_dropped(value["source"], value["ref"]):
            return False
        item = Item(value["ref"], "memory", value["project"], source=value["source"])
        item = replace(item, type=value["type"], epoch=value["epoch"])
        if self._find_id(item):
            return False  # it has come back since, by the user's hand
        memo = Memo(item, value["slug"])
        change = Change(0, value["epoch"], "import", "create")
        id_ = self.store.put_memo(prepare_item(item), memo, change)
        self.store.remove([id_], (value["epoch"], value["why"]))
        return True

    def _read_entry(self, value: dict[str, Any], kind: type[Row]) -> bool:
        """A row of the ledger; one that is known already stays as it is, and one about what was
        forgotten here stays out."""
        row: Any = msgspec.convert(value, kind)
        own: dict[str, Any] = {}
        for name, what in _REFS.items():
            old = getattr(row, name, 0)
            if isinstance(old, int) and old:
                own[name] = self._ids[what].get(old, 0)
                if self._ids[what].get(old) == 0 and name in ("session", *_LEDGER[kind]):
                    return False
        if isinstance(row, model.Source):
            own["state"] = redact_value(row.state)
        if not isinstance(row, model.Event) and hasattr(row, "id"):
            own["id"] = 0
        new = replace(row, **own)
        same = {name: getattr(new, name) for name in _LEDGER[kind]}
        known: list[Any] = self.store.entries(kind, same, Paging(1))
        added = [] if known else self.store.append([new])
        if isinstance(row, model.Turn):
            self._ids["turn"][row.id] = known[0].id if known else added[0]
        return not known

    def _settle_sessions(self) -> None:
        """What had been distilled there need not be distilled again here."""
        if not self._settled:
            return
        with self.store.transaction("work"):
            for one in _list_waiting(self.store):
                if one.session.id in self._settled:
                    self.store.settle_session(one)
