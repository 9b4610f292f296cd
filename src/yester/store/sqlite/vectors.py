"""Vectors in SQLite, searched in numpy: codes of one bit a dimension first, then the values.

The codes lie in memory, 48 bytes each for 384 dimensions, and grow with what others write. Values
stay in the file; a search reads those of the nearest few hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import apsw

from yester.model import Filters, Nearness, replace
from yester.store.sqlite import rows
from yester.store.sqlite.connection import NO_SUCH_ID, Connection
from yester.store.sqlite.maintenance import explains_errors
from yester.text.vectors import differing_bits, load_numpy, pack_vector, sign_code, unpack_vectors

# Codes whose values are looked at: so many for each one wanted, and never fewer than these.
_EACH, _FEWEST = 3, 300
_WIDER = 8  # times as many, when filters leave too few
# What is told in words is embedded; what tools print is found by its words.
NOT_EMBEDDED = ("tool", "thinking", "task")  # roles
_WORTH = f"i.status = 'active' AND i.role NOT IN {NOT_EMBEDDED}"


class Codes:
    """All codes of one model in one store, one bit a dimension, as arrays in memory: what a search
    by meaning compares first."""

    def __init__(self, db: apsw.Connection, model: str) -> None:
        np = load_numpy()
        self._db = db
        self._model = model
        self._last = 0
        self._seen: Any = None
        self.ids = np.zeros(0, np.int64)
        self.items = np.zeros(0, np.int64)
        self.codes: Any = None
        self._asked: tuple[bytes, Any] | None = None

    def read_new_codes(self) -> None:
        """What has been written since; what was deleted is noticed when its value is missing."""
        np = load_numpy()
        seen = self._db.execute("PRAGMA data_version").fetchone(), self._db.total_changes()
        if seen == self._seen:
            return
        self._seen = seen
        found = self._db.execute(
            "SELECT id, item, code FROM vector_code WHERE model = ? AND id > ? ORDER BY id",
            (self._model, self._last),
        ).fetchall()
        if not found:
            return
        ids, items, codes = zip(*found, strict=True)
        self._last = ids[-1]
        new = np.frombuffer(b"".join(codes), np.uint8).reshape(len(codes), -1)
        if new.shape[1] % 8 == 0:
            new = new.view(np.uint64)
        self.ids = np.concatenate([self.ids, np.array(ids, np.int64)])
        self.items = np.concatenate([self.items, np.array(items, np.int64)])
        self.codes = new if self.codes is None else np.concatenate([self.codes, new])
        self._asked = None

    def distances_to(self, wanted: bytes) -> Any:
        """How far each code is from the wanted one. A prompt asks twice, here and everywhere."""
        if self._asked is None or self._asked[0] != wanted:
            self._asked = wanted, differing_bits(self.codes, wanted)
        return self._asked[1]

    def forget_codes(self, gone: Collection[int]) -> None:
        """Those whose values are no longer there."""
        np = load_numpy()
        kept = ~np.isin(self.ids, list(gone))
        self.ids, self.items, self.codes = self.ids[kept], self.items[kept], self.codes[kept]
        self._asked = None

    def __len__(self) -> int:
        return len(self.ids)


class VectorRows(Connection):
    """The part of `SqliteStore` that knows vectors."""

    # --- writing, inside a transaction -------------------------------------------------------

    def use_model(self, model: str) -> int:
        """Vectors of this model are wanted from now on; the number of items still without them."""
        if self.wanted_model() != model:
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
        return int(self._first_row("SELECT count(*) FROM unembedded")[0])

    def put_vectors(self, item: int, model: str, vectors: Sequence[Any]) -> None:
        self._forget_vectors(item)
        first = self._next_id("vector")
        self._keep_last_id("vector", first + len(vectors) - 1)
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
        self._db.execute("DELETE FROM unembedded WHERE item = ?", (item,))

    def _forget_vectors(self, item: int) -> None:
        self._db.execute(
            "DELETE FROM vector_code WHERE id IN (SELECT id FROM vector WHERE item = ?)", (item,)
        )
        self._db.execute("DELETE FROM vector WHERE item = ?", (item,))

    # --- reading -----------------------------------------------------------------------------

    @explains_errors
    def wanted_model(self) -> str:
        return self._get_meta("embedder")

    @explains_errors
    def unembedded(self, limit: int, since: int = 0) -> list[int]:
        found = self._db.execute(
            "SELECT item FROM unembedded WHERE queued >= ? ORDER BY epoch DESC, item DESC LIMIT ?",
            (since, limit),
        )
        return [row[0] for row in found]

    def _nearest_items(
        self, vector: Any, model: str, filters: Filters, limit: int
    ) -> list[tuple[int, Nearness]]:
        np = load_numpy()
        known = self._known_codes(model)
        if not len(known) or limit < 1:
            return []
        far = known.distances_to(sign_code(vector, model))
        mask = self._project_mask(filters)
        narrowed = filters != Filters() and mask is None
        if narrowed:
            condition, args = rows.filter_condition(filters, *self._filter_ids(filters))
        if mask is not None:
            far = np.where(_marked_items(mask, known.items), far, np.iinfo(far.dtype).max)
        enough = max(_EACH * limit, _FEWEST)
        wanted = min(enough, len(known))
        while True:
            near = _closest_codes(far, known.items, wanted) if wanted < len(known) else None
            ids = known.ids if near is None else known.ids[near]
            items = known.items if near is None else known.items[near]
            if narrowed:
                passing = self._passing_items(np.unique(items), condition, args)
                ids = ids[np.isin(items, passing)]
            elif mask is not None:
                ids = ids[_marked_items(mask, items)]
            found, gone = self._cosines_by_id(vector, model, ids)
            if gone:
                if 2 * len(gone) > len(ids):
                    del self._codes[model]  # most of it: read anew
                else:
                    known.forget_codes(gone)
                return self._nearest_items(vector, model, filters, limit)
            if len(found) >= limit or near is None or (not narrowed and wanted >= enough):
                break
            wanted = min(wanted * _WIDER, len(known))
        ordered = sorted(found.items(), key=lambda pair: (-pair[1].cosine, -pair[0]))
        return self._active_items(ordered, limit)

    def _active_items(
        self, ordered: Sequence[tuple[int, Nearness]], limit: int
    ) -> list[tuple[int, Nearness]]:
        """The first ones that are in use; nearly all are, so few more than wanted are looked up."""
        kept: list[tuple[int, Nearness]] = []
        for at in range(0, len(ordered), limit):
            some = ordered[at : at + limit]
            found = self._db.execute(
                "SELECT i.id FROM json_each(?) j CROSS JOIN item i ON i.id = j.value"
                " WHERE i.status = 'active'",
                (str([item for item, _ in some]),),
            )
            active = {row[0] for row in found}
            kept += [one for one in some if one[0] in active]
            if len(kept) >= limit:
                break
        return kept[:limit]

    def _cosines_of(self, vector: Any, model: str, items: Sequence[int]) -> dict[int, Nearness]:
        found = self._db.execute(
            "SELECT v.item, v.parts, v.value FROM json_each(?) j"
            " CROSS JOIN vector v ON v.item = j.value"
            " WHERE v.model = ?",
            (str(list(items)), model),
        ).fetchall()
        return _best_parts(vector, found)

    def _known_codes(self, model: str) -> Codes:
        self._notice_moves()
        if model not in self._codes:
            self._codes[model] = Codes(self._db, model)
        self._codes[model].read_new_codes()
        return self._codes[model]

    def _passing_items(self, items: Any, condition: str, args: tuple[object, ...]) -> list[int]:
        found = self._db.execute(
            "SELECT i.id FROM json_each(?) j CROSS JOIN item i ON i.id = j.value"
            f" WHERE {condition}",
            (str(items.tolist()), *args),
        )
        return [row[0] for row in found]

    def _cosines_by_id(
        self, vector: Any, model: str, ids: Any
    ) -> tuple[dict[int, Nearness], set[int]]:
        """item → cosine for vectors by id, and the ids that are no longer there."""
        wanted = sorted(ids.tolist())  # as they lie in the file
        found = self._db.execute(
            "SELECT v.item, v.parts, v.value, v.id FROM json_each(?) j"
            " CROSS JOIN vector v ON v.id = j.value WHERE v.model = ?",
            (str(wanted), model),
        ).fetchall()
        gone = {*wanted} - {row[3] for row in found} if len(found) < len(wanted) else set()
        return _best_parts(vector, found), gone

    def _project_mask(self, filters: Filters) -> bytearray | None:
        """Which items pass, for filters that name one project and nothing else."""
        if replace(filters, projects=()) != Filters() or len(filters.projects) != 1:
            return None
        project = self._filter_ids(filters)[0][0]
        return self._members_of(project) if project != NO_SUCH_ID else bytearray()

    def _members_of(self, project: int) -> bytearray:
        self._notice_moves()
        return self._members.marks_of(self._db, project)


def _closest_codes(far: Any, items: Any, number: int) -> Any:
    """Places of the codes that are least far, of equally far ones those of the newer items."""
    np = load_numpy()
    edge = np.partition(far, number - 1)[number - 1]
    nearer = np.flatnonzero(far < edge)
    equal = np.flatnonzero(far == edge)
    newest_first = np.argsort(-items[equal], kind="stable")
    return np.concatenate([nearer, equal[newest_first[: number - len(nearer)]]])


def _marked_items(mask: bytearray, items: Any) -> Any:
    np = load_numpy()
    marks = np.zeros(int(items.max(initial=0)) + 1, bool)
    held = np.frombuffer(mask, np.uint8)[: len(marks)]
    marks[: len(held)] = held
    return marks[items]


def _best_parts(vector: Any, found: Sequence[Any]) -> dict[int, Nearness]:
    """item → its nearest part."""
    if not found:
        return {}
    values = unpack_vectors([row[2] for row in found]) @ vector
    best: dict[int, Nearness] = {}
    for row, cosine in zip(found, values.tolist(), strict=True):
        known = best.get(row[0])
        if known is None or cosine > known.cosine:
            best[row[0]] = Nearness(cosine, row[1])
    return best
