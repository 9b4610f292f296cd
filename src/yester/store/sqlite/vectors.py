"""Vectors in SQLite, searched in numpy: codes of one bit a dimension first, then the values.

The codes lie in memory, 48 bytes each for 384 dimensions, and grow with what others write. Values
stay in the file; a search reads those of the nearest few hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from yester.model import ANYTHING, Filters, Nearness, replace
from yester.store.sqlite.connection import Connection
from yester.store.sqlite.index import decode_ids
from yester.store.sqlite.rows import Condition
from yester.text.vectors import differing_bits, load_numpy, pack_vector, sign_code, unpack_vectors

# Codes whose values are looked at: so many for each one wanted, and never fewer than these.
_EACH, _FEWEST = 3, 300
_WIDER = 8  # times as many, when filters leave too few
_PROJECTS_MARKED = 16
# What is told in words is embedded; what tools print is found by its words.
NOT_EMBEDDED = ("tool", "thinking", "task")  # roles
_WORTH = f"i.status = 'active' AND i.role NOT IN {NOT_EMBEDDED}"


class Codes:
    """All codes of one model in one store, one bit a dimension, as arrays in memory: what a search
    by meaning compares first."""

    def __init__(self) -> None:
        np = load_numpy()
        self.state: Any = None  # of the file when it was read
        self.ids = np.zeros(0, np.int64)
        self.items = np.zeros(0, np.int64)
        self.codes: Any = None

    def add_codes(self, found: Sequence[Any]) -> None:
        """(id, item, code) of what has been written since."""
        np = load_numpy()
        ids, items, codes = zip(*found, strict=True)
        new = np.frombuffer(b"".join(codes), np.uint8).reshape(len(codes), -1)
        if new.shape[1] % 8 == 0:
            new = new.view(np.uint64)
        self.ids = np.concatenate([self.ids, np.array(ids, np.int64)])
        self.items = np.concatenate([self.items, np.array(items, np.int64)])
        self.codes = new if self.codes is None else np.concatenate([self.codes, new])

    def forget_codes(self, gone: Collection[int]) -> None:
        """Those whose values are no longer there."""
        kept = ~load_numpy().isin(self.ids, list(gone))
        self.ids, self.items, self.codes = self.ids[kept], self.items[kept], self.codes[kept]


class VectorRows(Connection):
    """The part of `SqliteStore` that knows vectors."""

    # --- writing, inside a transaction -------------------------------------------------------

    def use_model(self, model: str) -> int:
        """Vectors of this model are wanted from now on; the number of items still without them."""
        if self._get_meta("embedder") != model:
            self._db.execute(
                "DELETE FROM unembedded WHERE EXISTS"
                " (SELECT 1 FROM vector v WHERE v.item = unembedded.item AND v.model = ?)",
                (model,),
            )
            self._db.execute(
                "INSERT OR IGNORE INTO unembedded"
                f" SELECT i.id, i.epoch, 0 FROM item i WHERE {_WORTH}"
                " AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.item = i.id AND v.model = ?)",
                (model,),
            )
            self._set_meta("embedder", model)
        return int(self._first_value("SELECT count(*) FROM unembedded"))

    def put_vectors(self, item: int, model: str, vectors: Sequence[Any]) -> None:
        self._forget_vectors(item)
        if not self._passing_items([item], self._filter_items(ANYTHING)):
            return  # retired while they were made
        self._count_embedded(bool(vectors))
        first = self._next_id("vector")
        self._set_meta("last_vector", str(first + len(vectors) - 1))
        for part, vector in enumerate(vectors):
            id_ = first + part
            self._db.execute(
                "INSERT INTO vector(id, item, part, parts, model, value) VALUES (?, ?, ?, ?, ?, ?)",
                (id_, item, part, len(vectors), model, pack_vector(vector)),
            )
            self._db.execute(
                "INSERT INTO vector_code(id, item, model, code) VALUES (?, ?, ?, ?)",
                (id_, item, model, sign_code(vector, model)),
            )

    def _forget_vectors(self, item: int) -> None:
        """An item's vectors, and that it waits for some."""
        self._db.execute(
            "DELETE FROM vector_code WHERE id IN (SELECT id FROM vector WHERE item = ?)", (item,)
        )
        before = self._db.total_changes()
        self._db.execute("DELETE FROM vector WHERE item = ?", (item,))
        self._count_embedded(-(self._db.total_changes() > before))
        self._db.execute("DELETE FROM unembedded WHERE item = ?", (item,))

    def _count_embedded(self, more: int) -> None:
        """How many items have vectors, so that nobody has to count them."""
        if not more:
            return
        known = self._get_meta("embedded")
        if known:
            self._set_meta("embedded", str(int(known) + more))
        else:  # the first to write them, or a store of an older version: as it is now, then
            items = self._first_value("SELECT count(DISTINCT item) FROM vector_code")
            self._set_meta("embedded", str(items + max(more, 0)))

    # --- reading -----------------------------------------------------------------------------

    def unembedded(self, limit: int, since: int = 0, model: str = "") -> list[int] | None:
        if model and self._get_meta("embedder") != model:
            return None
        return self._all_ids(
            "SELECT item FROM unembedded WHERE queued >= ? ORDER BY epoch DESC, item DESC LIMIT ?",
            since, limit,
        )  # fmt: skip

    def _nearest_items(
        self, vector: Any, model: str, filters: Filters, limit: int
    ) -> dict[int, Nearness]:
        np = load_numpy()
        known = self._known_codes(model)
        if not len(known.ids) or limit < 1:
            return {}
        ids, items, codes = known.ids, known.items, known.codes
        narrowed = filters != ANYTHING
        others = replace(filters, projects=(), without_session="")
        if len(filters.projects) == 1 and others == ANYTHING:
            marks = self._members_of(self._filter_ids(filters)[0][0])
            # What is newer than the marks is gone, and nobody's.
            held = np.append(np.frombuffer(marks, np.uint8), 0)
            own = np.flatnonzero(held[np.minimum(items, len(marks))])
            ids, items, codes = ids[own], items[own], codes[own]
            narrowed = bool(filters.without_session)
        far = differing_bits(codes, sign_code(vector, model))
        wanted = max(_EACH * limit, _FEWEST)
        while True:
            all_of_them = wanted >= len(ids)
            near = slice(None) if all_of_them else _closest_codes(far, items, wanted)
            looked_at = ids[near]
            if narrowed:
                condition = self._filter_items(filters)
                passing = self._passing_items(np.unique(items[near]).tolist(), condition)
                looked_at = looked_at[np.isin(items[near], passing)]
            in_order = sorted(looked_at.tolist())  # as they lie in the file
            found, there = self._cosines_of(vector, model, in_order, "id")
            if gone := {*in_order} - there:
                if 2 * len(gone) > len(in_order):
                    del self._codes[model]  # most of it: read anew
                else:
                    known.forget_codes(gone)
                return self._nearest_items(vector, model, filters, limit)
            if len(found) >= limit or all_of_them or not narrowed:
                break
            wanted *= _WIDER
        ordered = sorted(found.items(), key=lambda pair: (-pair[1].cosine, -pair[0]))
        return dict(ordered[:limit])

    def _passing_items(self, items: Sequence[int], condition: Condition) -> list[int]:
        return self._all_ids(
            "SELECT i.id FROM json_each(?) j CROSS JOIN item i ON i.id = j.value"
            f" WHERE {condition.sql}", str(items), *condition.values,
        )  # fmt: skip

    def _cosines_of(
        self, vector: Any, model: str, ids: Sequence[int], by: str = "item"
    ) -> tuple[dict[int, Nearness], set[int]]:
        """item → its nearest part, of vectors by item or by their own id; and the ids of those that
        are there."""
        found: list[Any] = self._db.execute(
            "SELECT v.item, v.parts, v.value, v.id FROM json_each(?) j"
            f" CROSS JOIN vector v ON v.{by} = j.value WHERE v.model = ?",
            (str(ids), model),
        ).fetchall()
        values = (unpack_vectors([row[2] for row in found]) @ vector).tolist() if found else []
        best: dict[int, Nearness] = {}
        for row, cosine in zip(found, values, strict=True):
            known = best.get(row[0])
            if known is None or cosine > known.cosine:
                best[row[0]] = Nearness(cosine, row[1])
        return best, {row[3] for row in found}

    def _known_codes(self, model: str) -> Codes:
        """With what has been written since; what was deleted is noticed when its value is gone."""
        self._notice_moves()
        known = self._codes.setdefault(model, Codes())
        if known.state != (state := self._file_state()):
            known.state = state
            last = int(known.ids[-1]) if len(known.ids) else 0
            found = self._db.execute(
                "SELECT id, item, code FROM vector_code WHERE model = ? AND id > ? ORDER BY id",
                (model, last),
            ).fetchall()
            if found:
                known.add_codes(found)
        return known

    def _members_of(self, project: int) -> bytearray:
        """A byte for each item up to the newest, 1 where it is the project's; only what is new is
        read again."""
        self._notice_moves()
        if project not in self._members and len(self._members) >= _PROJECTS_MARKED:
            self._members.clear()
        marks = self._members.setdefault(project, bytearray(1))
        newest = self._first_value("SELECT max(id) FROM item") or 0
        if newest >= len(marks):
            ids = self._first_value(
                "SELECT json_group_array(id) FROM item WHERE id >= ? AND project = ?",
                len(marks), project,
            )  # fmt: skip
            marks.extend(bytes(newest + 1 - len(marks)))
            for id_ in decode_ids(ids):
                marks[id_] = 1
        return marks


def _closest_codes(far: Any, items: Any, number: int) -> Any:
    """Places of the codes that are least far, of equally far ones those of the newer items."""
    np = load_numpy()
    edge = np.partition(far, number - 1)[number - 1]
    nearer = np.flatnonzero(far < edge)
    equal = np.flatnonzero(far == edge)
    newest_first = np.argsort(-items[equal], kind="stable")
    return np.concatenate([nearer, equal[newest_first[: number - len(nearer)]]])
