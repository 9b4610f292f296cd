"""Items in SQLite: rows, the index that follows them, and what they were made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from yester.model import (
    DISTILLED,
    ECHO,
    EVERYTHING,
    EditedLines,
    Entry,
    Filters,
    Item,
    Paging,
    PutCounts,
)
from yester.project import bare_project
from yester.store.records import shorten_body
from yester.store.rows import rows
from yester.store.rows.lines import LineRows
from yester.store.rows.places import PlaceRows
from yester.store.rows.vectors import NOT_EMBEDDED, VectorRows
from yester.text.document import expand_item

_BATCH = 2_000  # documents held while the whole index is written


class ItemRows(PlaceRows, VectorRows, LineRows):
    """The part of `SqliteStore` that knows items."""

    # --- writing, inside a transaction -------------------------------------------------------

    def put(self, entries: Sequence[Entry], lifted: bool = False) -> PutCounts:
        """`lifted`: structured memories may be written as well; what changed of one need not stand
        in its texts."""
        told = len(entries)
        if self._tombstones and not lifted:
            entries = [one for one in entries if not self._tombstones.hides(one.item)]
        # The same identity twice in one batch: the later one is the truth.
        latest = {(e.item.source, e.item.kind, e.item.ref): e for e in entries}
        unchanged, added = told - len(entries), 0
        found = self._find_known(list(latest))
        any_event = self._db.execute("SELECT 1 FROM event LIMIT 1")
        first_id = self._next_id("item")
        known, hooked = dict(found), any_event.fetchone() is not None
        values: dict[int, dict[str, Any]] = {}
        written: list[tuple[int, Item]] = []
        edits: list[tuple[int, Sequence[EditedLines]]] = []
        touched: dict[int, int] = {}
        for (source, kind, ref), entry in latest.items():
            old: Any = known.get((source, kind, ref))
            item = entry.item
            adopted = old is None and hooked and bool(item.alias)
            if adopted:
                old = self._adopt_row(item)
                known.pop((source, kind, item.alias), None)
            same = old is not None and old[1] == entry.hash
            if not lifted and kind == "memory":
                same = same or self._is_protected(old[0] if old else 0, source, ref)
            if same and not lifted:
                unchanged += 1
                if adopted and kind == "prompt":  # it was typed indeed, and may say a rule
                    (session,) = self._first_row("SELECT session FROM item WHERE id = ?", old[0])
                    touched[session] = min(item.epoch, touched.get(session, item.epoch))
                continue
            project = self._make_project(bare_project(item.project))
            session = self._session_id(item, project)
            # What comes of a session, or was noted of it by another program, changes nothing of it.
            if session and source != DISTILLED and kind != "memory" and item.origin != "import":
                touched[session] = min(item.epoch, touched.get(session, item.epoch))
            if old is None:
                id_ = first_id + added
                added += 1
            else:
                id_ = old[0]
                self._unlink_item(id_, old[2], kind)
                # It quotes what may be redacted now; its session is distilled anew.
                self._db.execute("DELETE FROM failure WHERE item = ?", (id_,))
                if old[2] != project:
                    self._count_move()
            written.append((id_, item))
            edits.append((id_, entry.edits))
            values[id_] = rows.item_values(item, id_, entry.hash, project, session)
            if item.status == "active":
                self._index.add_item(id_, project, session, item, entry.document)
        self._db.executemany(rows.PUT, values.values())
        self._link_items(written)
        self._put_lines(edits)
        self.queue_sessions(touched)
        self._put_evidence(latest.values())
        self._index.write_batch()
        return PutCounts(added, len(written) - added, unchanged)

    def _put_evidence(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.evidence is None:
                continue
            item = entry.item
            id_ = self._known_row(item.source, item.kind, item.ref)[0]
            self._db.execute("DELETE FROM item_evidence WHERE item = ?", (id_,))
            self._db.executemany(
                "INSERT INTO item_evidence(item, fact, source) VALUES (?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                [(id_, fact, source) for fact, source in entry.evidence],
            )

    def _find_known(
        self, identities: Sequence[tuple[str, str, str]]
    ) -> Iterator[tuple[tuple[str, str, str], tuple[int, bytes, int]]]:
        """Of the items with these (source, kind, ref) what `_known_row` gives."""
        wanted = [[self._stored_text(text) for text in identity] for identity in identities]
        found = self._db.execute(
            "WITH w AS MATERIALIZED (SELECT key, value ->> 'a' AS source, value ->> 'b' AS kind,"
            " value ->> 'c' AS ref FROM json_each(?, '$'))"
            " SELECT w.key, i.id, i.hash, i.project FROM w CROSS JOIN item i"
            " ON i.ref = w.ref AND i.kind = w.kind AND i.source = w.source",
            (rows.json_text([dict(zip("abc", one, strict=True)) for one in wanted]),),
        )
        return ((identities[int(row[0])], row[1:]) for row in found)

    def _known_row(self, source: str, kind: str, ref: str) -> Any:
        """(id, hash, project) of the item with this identity, or None."""
        return self._first_row(
            "SELECT id, hash, project FROM item WHERE ref = ? AND kind = ? AND source = ?",
            ref, kind, source,
        )  # fmt: skip

    def _adopt_row(self, item: Item) -> Any:
        """The row a hook made of the same thing, from now on under the transcript's ref; who said
        it, a user or a program, is known to the transcript alone."""
        old = self._known_row(item.source, item.kind, item.alias)
        if old is not None:
            values = (item.ref, item.origin, old[0])
            self._db.execute("UPDATE item SET ref = ?, origin = ? WHERE id = ?", values)
        return old

    def _is_protected(self, id_: int, source: str, ref: str) -> bool:
        """Is this a memory that only `put_memo` may write, or none that may come back?"""
        if not id_:
            return self.was_dropped(source, ref)
        found = self._first_row(
            "SELECT 1 FROM item i WHERE i.id = ? AND (i.status <> 'active'"
            " OR EXISTS (SELECT 1 FROM memory m WHERE m.item = i.id))",
            id_,
        )
        return found is not None

    def _link_items(self, items: Sequence[tuple[int, Item]]) -> None:
        """Files and concepts into tables of their own; what is told in words wants vectors."""
        self._db.executemany(
            "INSERT INTO item_file(name, item, path, modified) VALUES (?, ?, ?, ?)"
            " ON CONFLICT(name, item, path) DO UPDATE SET"
            " modified = max(item_file.modified, excluded.modified)",
            [
                (rows.file_name(path), id_, path, path in item.files_modified)
                for id_, item in items
                for path in item.files
            ],
        )
        self._db.executemany(
            "INSERT INTO item_concept(concept, item) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(concept.lower(), id_) for id_, item in items for concept in item.concepts],
        )
        self._db.executemany(
            "INSERT INTO unembedded(item, epoch, queued)"
            " VALUES (?, ?, cast(1000 * unixepoch('subsec') AS BIGINT))"
            " ON CONFLICT(item) DO UPDATE SET epoch = excluded.epoch, queued = excluded.queued",
            [
                (id_, item.epoch)
                for id_, item in items
                if item.role not in NOT_EMBEDDED and item.status == "active"
            ],
        )

    def _unlink_item(self, id_: int, project: int, kind: str) -> None:
        self._index.remove_item(id_, project, kind)
        self._forget_vectors(id_)
        self._forget_lines(id_)
        (old,) = self.get([id_])
        self._db.executemany(
            "DELETE FROM item_file WHERE name = ? AND item = ?",
            [(rows.file_name(path), id_) for path in old.files],
        )
        self._db.executemany(
            "DELETE FROM item_concept WHERE concept = ? AND item = ?",
            [(concept.lower(), id_) for concept in old.concepts],
        )

    def remove(self, ids: Sequence[int], gone: tuple[int, str] | None = None) -> None:
        if gone is not None:
            self._require_lock("memories")
            self._remember_refs(ids, *gone)
        for id_ in ids:
            row = self._first_row("SELECT project, kind FROM item WHERE id = ?", id_)
            if row is not None:
                self._unlink_item(id_, *row)
                self._db.execute("DELETE FROM item WHERE id = ?", (id_,))
                self._db.execute("DELETE FROM item_evidence WHERE item = ?", (id_,))
                self._db.execute("DELETE FROM failure WHERE item = ?", (id_,))
        self._index.write_batch()

    def _remember_refs(self, ids: Sequence[int], epoch: int, why: str) -> None:
        self._db.execute(
            "INSERT INTO memory_gone"
            " SELECT i.source, i.ref, coalesce(m.slug, ''), i.type, p.key, ?, ? FROM item i"
            " JOIN project p ON p.id = i.project LEFT JOIN memory m ON m.item = i.id"
            " WHERE i.id IN (SELECT value FROM json_each(?)) AND i.kind = 'memory'"
            " ON CONFLICT(source, ref) DO UPDATE SET slug = excluded.slug, type = excluded.type,"
            " project = excluded.project, epoch = excluded.epoch, why = excluded.why",
            (epoch, why, str(list(ids))),
        )
        self._keep_ids()

    def _keep_ids(self) -> None:
        """No other item ever gets the id of one that is taken out now."""
        self._set_meta("last_item", str(self._next_id("item") - 1))

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

    # --- reading -----------------------------------------------------------------------------

    def get(self, ids: Sequence[int]) -> list[Item]:
        found = {item.id: item for item in self._read_items(rows.LISTED, str(list(ids)))}
        return [found[id_] for id_ in ids if id_ in found]

    def find_by_ref(self, ref: str) -> list[Item]:
        return self._read_items(" WHERE i.ref = ? ORDER BY i.id", ref)

    def select(self, filters: Filters, page: Paging = EVERYTHING) -> list[Item]:
        condition = self._filter_items(filters, page.statuses)
        where = condition.page_clause(page, "i.epoch", "i.id")
        return self._read_items(where, *condition.values)

    def history(
        self, session: int, brief: Collection[str], chars: int, after: tuple[int, int], limit: int
    ) -> list[tuple[Item, int]]:
        found = self._read_items(
            " WHERE i.session = ? AND i.session <> 0 AND i.source <> ? AND i.kind <> 'memory'"
            " AND i.origin <> 'import'"
            " AND i.status IN ('active', ?) AND (i.epoch, i.id) > (?, ?)"
            " ORDER BY i.epoch, i.id LIMIT ?", session, DISTILLED, ECHO, *after, limit,
        )  # fmt: skip
        return [(shorten_body(item, brief, chars), len(item.body)) for item in found]

    def _read_items(self, where: str, *args: object) -> list[Item]:
        return [rows.item_of(row) for row in self._db.execute(rows.SELECT + where, args)]

    def evidence(
        self, items: Sequence[int], into: bool = False
    ) -> dict[int, tuple[tuple[int, int], ...]]:
        one, other = ("source", "item") if into else ("item", "source")
        active = " AND i.status = 'active'" if into else ""
        found: defaultdict[int, tuple[tuple[int, int], ...]] = defaultdict(tuple)
        for id_, fact, behind in self._db.execute(
            f"SELECT e.{one}, e.fact, e.{other} FROM item_evidence e"
            f" JOIN item i ON i.id = e.{other}"
            f" WHERE e.{one} IN (SELECT value FROM json_each(?)){active}"
            f" ORDER BY e.{one}, i.epoch, e.{other}, e.fact",
            (str(list(items)),),
        ):
            found[id_] += ((fact, behind),)
        return dict(found)

    def was_dropped(self, source: str, ref: str) -> bool:
        row = self._first_row("SELECT 1 FROM memory_gone WHERE source = ? AND ref = ?", source, ref)
        return row is not None or self._tombstones.knows("ref", source, "memory", ref)
