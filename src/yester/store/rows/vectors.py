"""Vectors of items: which are wanted, which there are, how near they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yester.model import ANYTHING, Nearness
from yester.store.rows.base import Rows
from yester.store.rows.rows import Condition
from yester.text.vectors import pack_vector, sign_code, unpack_vectors

# What is told in words is embedded; what tools print is found by its words.
NOT_EMBEDDED = ("tool", "thinking", "task")  # roles
_WORTH = f"i.status = 'active' AND i.role NOT IN {NOT_EMBEDDED}"


class VectorRows(Rows):
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
                "INSERT INTO unembedded"
                f" SELECT i.id, i.epoch, 0 FROM item i WHERE {_WORTH}"
                " AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.item = i.id AND v.model = ?)"
                " ON CONFLICT DO NOTHING",
                (model,),
            )
            self._set_meta("embedder", model)
        return int(self._first_value("SELECT count(*) FROM unembedded"))

    def put_vectors(self, item: int, model: str, vectors: Sequence[Any]) -> None:
        self._forget_vectors(item)
        if not self._passing_items([item], self._filter_items(ANYTHING)):
            return  # retired while they were made
        self._count_embedded(bool(vectors))
        first = self._take_vector_ids(len(vectors))
        self._db.executemany(
            "INSERT INTO vector(id, item, part, parts, model, value) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (first + part, item, part, len(vectors), model, pack_vector(vector))
                for part, vector in enumerate(vectors)
            ],
        )
        self._db.executemany(
            "INSERT INTO vector_code(id, item, model, code) VALUES (?, ?, ?, ?)",
            [
                (first + part, item, model, self._stored_code(sign_code(vector, model)))
                for part, vector in enumerate(vectors)
            ],
        )

    def _take_vector_ids(self, number: int) -> int:
        """The first of so many that no vector had before."""
        first = self._next_id("vector")
        self._set_meta("last_vector", str(first + number - 1))
        return first

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
            since,
            limit,
        )

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
        return nearest_parts(vector, found), {row[3] for row in found}

    def _stored_code(self, code: bytes) -> Any:
        """A code in the form in which it is stored."""
        return code

    def _read_code(self, stored: Any) -> bytes:
        return bytes(stored)


def nearest_parts(vector: Any, rows: Sequence[Any]) -> dict[int, Nearness]:
    """item → its nearest part, of (item, number of its parts, stored value)."""
    values = (unpack_vectors([row[2] for row in rows]) @ vector).tolist() if rows else []
    best: dict[int, Nearness] = {}
    for row, cosine in zip(rows, values, strict=True):
        known = best.get(row[0])
        if known is None or cosine > known.cosine:
            best[row[0]] = Nearness(cosine, row[1])
    return best
