"""The codes of vectors, one bit a dimension, in memory: what a search by meaning compares first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import apsw

from yester.text.vectors import differing_bits, load_numpy


class Codes:
    """All codes of one model in one store, as arrays."""

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
