"""Items in SQLite: rows, the index that follows them, and what they were made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

from yester.model import (
    DISTILLED,
    ECHO,
    EVERYTHING,
    Entry,
    Filters,
    Item,
    Paging,
    PutCounts,
    replace,
)
from yester.project import bare_project
from yester.spans import move_spans
from yester.store.sqlite import rows
from yester.store.sqlite.maintenance import explains_errors
from yester.store.sqlite.places import PlaceRows
from yester.store.sqlite.vectors import NOT_EMBEDDED, VectorRows
from yester.text.document import expand_item

_BATCH = 2_000  # documents held while the whole index is written
_ENDS = (3_000, 2_000)  # characters of a tool's input and output that are looked at
_GAP = "\n…\n"  # between them


class ItemRows(PlaceRows, VectorRows):
    """The part of `SqliteStore` that knows items."""

    # --- writing, inside a transaction -------------------------------------------------------

    def put(self, entries: Sequence[Entry]) -> PutCounts:
        return self._put_entries(entries)

    def _put_entries(self, entries: Sequence[Entry], lifted: bool = False) -> PutCounts:
        """`lifted`: structured memories may be written as well; what changed of one need not stand
        in its texts."""
        # The same identity twice in one batch: the later one is the truth.
        latest = {(e.item.source, e.item.kind, e.item.ref): e for e in entries}
        unchanged = 0
        next_id = self._next_id("item")
        hooked = self._first_row("SELECT 1 FROM event LIMIT 1") is not None
        new: list[tuple[object, ...]] = []
        replaced: list[tuple[object, ...]] = []
        touched: dict[int, int] = {}
        evidence: list[Entry] = []
        for (source, kind, ref), entry in latest.items():
            old = self._known_row(source, kind, ref)
            item = entry.item
            if old is None and hooked and item.alias:
                old = self._adopt_row(item)
            same = old is not None and old[1] == entry.hash
            if entry.evidence is not None:
                evidence.append(entry)
            if not lifted and kind == "memory":
                same = same or self._is_protected(old[0] if old else 0, source, ref)
            if same and not lifted:
                unchanged += 1
                continue
            project = self.put_project(bare_project(item.project))
            session = self._session_id(item, project)
            if session and source != DISTILLED and kind != "memory":  # what comes of a session
                touched[session] = min(item.epoch, touched.get(session, item.epoch))
            if old is None:
                id_, next_id = next_id, next_id + 1
            else:
                id_ = old[0]
                self._unlink_item(id_, old[2], kind)
                if old[2] != project:
                    self._count_move()
            into = new if old is None else replaced
            into.append(rows.item_row(item, id_, entry.hash, project, session))
            if item.status == "active":
                self._index.add_item(id_, project, session, item, entry.document)
        self._db.executemany(rows.INSERT, new)
        self._db.executemany(rows.REPLACE, replaced)
        self._link_names(chain(new, replaced))
        self._want_vectors(chain(new, replaced))
        self.queue_sessions(touched)
        self._put_evidence(evidence)
        self._index.write_batch()
        return PutCounts(len(new), len(replaced), unchanged)

    def _put_evidence(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            item = entry.item
            id_ = self._known_row(item.source, item.kind, item.ref)[0]
            self._db.execute("DELETE FROM item_evidence WHERE item = ?", (id_,))
            self._db.executemany(
                "INSERT OR IGNORE INTO item_evidence VALUES (?, ?, ?)",
                [(id_, fact, source) for fact, source in entry.evidence or ()],
            )

    def _known_row(self, source: str, kind: str, ref: str) -> Any:
        """(id, hash, project) of the item with this identity, or None."""
        return self._first_row(
            "SELECT id, hash, project FROM item WHERE ref = ? AND kind = ? AND source = ?",
            ref, kind, source,
        )  # fmt: skip

    def _drop_item(self, id_: int, project: int, kind: str) -> None:
        self._keep_last_id("item", self._next_id("item") - 1)
        self._unlink_item(id_, project, kind)
        self._index.write_batch()
        self._db.execute("DELETE FROM item WHERE id = ?", (id_,))

    def _adopt_row(self, item: Item) -> Any:
        """The row a hook made of the same thing, from now on under the transcript's ref."""
        old = self._known_row(item.source, item.kind, item.alias)
        if old is not None:
            self._db.execute("UPDATE item SET ref = ? WHERE id = ?", (item.ref, old[0]))
        return old

    def _link_names(self, item_rows: Iterable[tuple[object, ...]]) -> None:
        """Files and concepts into tables of their own."""
        column = {name: at for at, name in enumerate(rows.COLUMNS)}
        files, concepts = [], []
        for row in item_rows:
            id_ = row[0]
            for modified, name in enumerate(("files_read", "files_modified")):
                text = row[column[name]]
                if text != "[]":
                    assert isinstance(text, str)
                    files += [
                        (rows.file_name(p), id_, p, modified) for p in msgspec.json.decode(text)
                    ]
            text = row[column["concepts"]]
            if text != "[]":
                assert isinstance(text, str)
                concepts += [(concept.lower(), id_) for concept in msgspec.json.decode(text)]
        self._db.executemany(
            "INSERT INTO item_file(name, item, path, modified) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET modified = max(modified, excluded.modified)",
            files,
        )
        self._db.executemany("INSERT OR IGNORE INTO item_concept VALUES (?, ?)", concepts)

    def _want_vectors(self, item_rows: Iterable[tuple[object, ...]]) -> None:
        role, status, epoch = (rows.COLUMNS.index(name) for name in ("role", "status", "epoch"))
        self._db.executemany(
            "INSERT OR REPLACE INTO unembedded"
            " VALUES (?, ?, cast(1000 * unixepoch('subsec') AS INTEGER))",
            [
                (row[0], row[epoch])
                for row in item_rows
                if row[role] not in NOT_EMBEDDED and row[status] == "active"
            ],
        )

    def _unlink_item(self, id_: int, project: int, kind: str) -> None:
        self._index.remove_item(id_, project, kind)
        self._forget_vectors(id_)
        self._db.execute("DELETE FROM unembedded WHERE item = ?", (id_,))
        (old,) = self.get([id_])
        for path in old.files:
            self._db.execute(
                "DELETE FROM item_file WHERE name = ? AND item = ?", (rows.file_name(path), id_)
            )
        for concept in old.concepts:
            self._db.execute(
                "DELETE FROM item_concept WHERE concept = ? AND item = ?", (concept.lower(), id_)
            )

    def remove(self, ids: Sequence[int]) -> None:
        for id_ in ids:
            row = self._first_row("SELECT project, kind FROM item WHERE id = ?", id_)
            if row is not None:
                self._unlink_item(id_, *row)
                self._db.execute("DELETE FROM item WHERE id = ?", (id_,))
                self._db.execute("DELETE FROM item_evidence WHERE item = ?", (id_,))
        self._index.write_batch()

    def _move_items(self, ids: Sequence[int], project: int) -> None:
        for id_ in ids:
            values = self._first_row(f"{rows.SELECT} WHERE i.id = ?", id_)
            item = rows.item_of(values)
            self._index.remove_item(id_, values[-2], item.kind)
            self._db.execute("UPDATE item SET project = ? WHERE id = ?", (project, id_))
            self._index_again(item, project, values[-1])
        self._index.write_batch()

    def _index_again(self, item: Item, project: int, session: int) -> None:
        if item.status == "active":
            self._index.add_item(item.id, project, session, item, expand_item(item))
        if len(self._index) >= _BATCH:
            self._index.write_batch()

    def _is_gone(self, source: str, ref: str) -> bool:
        return (
            self._first_row("SELECT 1 FROM memory_gone WHERE source = ? AND ref = ?", source, ref)
            is not None
        )

    def _is_protected(self, id_: int, source: str, ref: str) -> bool:
        """Is this a memory that only `put_memo` may write, or none that may come back?"""
        if not id_:
            return self._is_gone(source, ref)
        return (
            self._first_row(
                "SELECT 1 FROM item i WHERE i.id = ? AND (i.status <> 'active'"
                " OR EXISTS (SELECT 1 FROM memory m WHERE m.item = i.id))", id_,
            )
            is not None
        )  # fmt: skip

    # --- reading -----------------------------------------------------------------------------

    @explains_errors
    def get(self, ids: Sequence[int]) -> list[Item]:
        found = {
            row[0]: rows.item_of(row)
            for row in self._db.execute(
                rows.SELECT + " WHERE i.id IN (SELECT value FROM json_each(?))", (str(list(ids)),)
            )
        }
        return [found[id_] for id_ in ids if id_ in found]

    @explains_errors
    def find_by_ref(self, ref: str) -> list[Item]:
        found = self._db.execute(rows.SELECT + " WHERE i.ref = ? ORDER BY i.id", (ref,))
        return [rows.item_of(row) for row in found]

    @explains_errors
    def select(self, filters: Filters, page: Paging = EVERYTHING) -> list[Item]:
        condition, args = rows.filter_condition(filters, *self._filter_ids(filters), page.statuses)
        columns = ("i.id",) if page.by_id else ("i.epoch", "i.id")
        order = ", ".join(name if page.oldest_first else f"{name} DESC" for name in columns)
        if page.after:
            condition, args = f"{condition} AND i.id > ?", (*args, page.after)
        if page.before:
            condition, args = f"{condition} AND i.id < ?", (*args, page.before)
        found = self._db.execute(
            f"{rows.SELECT} WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?",
            (*args, page.sql_limit, page.offset),
        )
        return [rows.item_of(row) for row in found]

    @explains_errors
    def history(
        self, session: int, brief: Collection[str], chars: int, after: tuple[int, int], limit: int
    ) -> list[tuple[Item, int]]:
        names = sorted(brief)
        # The whole body of what is only glanced at would be most of what is read, and of long
        # output the middle.
        body = (
            f"CASE WHEN i.role = 'thinking' OR i.tool IN ({','.join('?' * len(names))})"
            " THEN substr(i.body, 1, ?) WHEN i.role = 'tool' AND length(i.body) > ?"
            f" THEN substr(i.body, 1, ?) || '{_GAP}' || substr(i.body, ?)"
            " ELSE i.body END"
        )
        head, tail = _ENDS
        select = rows.SELECT.replace("i.body,", f"{body},", 1).replace(
            "i.session FROM", "i.session, length(i.body) FROM", 1
        )
        found = self._db.execute(
            f"{select} WHERE i.session = ? AND i.session <> 0 AND i.source <> ?"
            " AND i.kind <> 'memory' AND i.status IN ('active', ?) AND (i.epoch, i.id) > (?, ?)"
            " ORDER BY i.epoch, i.id LIMIT ?",
            (*names, chars, head + tail, head, -tail, session, DISTILLED, ECHO, *after, limit),
        )
        read = ((rows.item_of(row), row[-1]) for row in found)
        return [(_fit_call(item, length), length) for item, length in read]

    @explains_errors
    def evidence(
        self, items: Sequence[int], into: bool = False
    ) -> dict[int, tuple[tuple[int, int], ...]]:
        one, other = ("source", "item") if into else ("item", "source")
        active = " AND i.status = 'active'" if into else ""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for id_, fact, behind in self._db.execute(
            f"SELECT e.{one}, e.fact, e.{other} FROM item_evidence e"
            f" JOIN item i ON i.id = e.{other}"
            f" WHERE e.{one} IN (SELECT value FROM json_each(?)){active}"
            f" ORDER BY e.{one}, i.epoch, e.{other}, e.fact",
            (str(list(items)),),
        ):
            found[id_].append((fact, behind))
        return {id_: tuple(pairs) for id_, pairs in found.items()}


def _fit_call(item: Item, length: int) -> Item:
    """The item with its call fitted to a body of which only the beginning, or both ends, were
    read of so many characters."""
    read = len(item.body)
    if item.call is None or read >= length:
        return item
    head, tail = _ENDS
    both = read == head + len(_GAP) + tail
    edit = (head, length - tail, _GAP) if both else (read, length, "")
    call = item.call.move_to(move_spans(item.call.spans, [edit]))
    return replace(item, call=replace(call, cut=True))
