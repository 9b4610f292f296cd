"""Vectors kept between runs, for programs that ask for it: embedding is most of their time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import apsw

from yester.libraries import load_numpy
from yester.text.embed import DOCUMENT_TOKENS, QUERY_TOKENS, Embedder

if TYPE_CHECKING:
    from yester.text.embed import Vectors


class CachedEmbedder:
    """Keeps vectors in a folder by (model sha, text sha), so that no text is embedded twice.

    One small database for each model: any number of processes may use it at a time, and a killed
    one leaves nothing half written. It holds hashes and vectors, no text.
    """

    def __init__(self, embedder: Embedder, place: Path) -> None:
        self._inner = embedder
        self.name, self.sha = embedder.name, embedder.sha
        self.dims, self.band = embedder.dims, embedder.band
        self._np = load_numpy()
        self._lock = Lock()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._db = apsw.Connection(str(place / f"{self.sha[:16]}.db"))
        self._db.set_busy_timeout(60_000)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = normal")
        self._db.execute(
            "create table if not exists vector(text blob not null unique, vector blob not null)"
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._cached_rows(texts, f"document {DOCUMENT_TOKENS}", self._inner.embed)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._cached_rows(
            [text], f"query {QUERY_TOKENS}", lambda _: [self._inner.embed_query(text)]
        )[0]
        return vector

    def _cached_rows(
        self, texts: Sequence[str], read_as: str, make: Callable[[list[str]], Iterable[Any]]
    ) -> Vectors:
        """`read_as`: a text read as a question has another vector."""
        asked = [f"{read_as}\n{text}".encode("utf-8", "surrogatepass") for text in texts]
        keys = [hashlib.sha256(one).digest() for one in asked]
        found: dict[bytes, Any] = {}
        # A full disk or a broken file costs time, never an answer.
        with suppress(apsw.Error), self._lock:
            for key in set(keys):
                for (blob,) in self._db.execute("select vector from vector where text = ?", (key,)):
                    if len(blob) == 4 * self.dims:
                        found[key] = self._np.frombuffer(blob, self._np.float32)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if new:
            made = dict(zip(new, make(list(new.values())), strict=True))
            with suppress(apsw.Error), self._lock, self._db:
                self._db.executemany(
                    "insert or ignore into vector values (?, ?)",
                    [(key, vector.tobytes()) for key, vector in made.items()],
                )
            found |= made
        rows: Vectors = self._np.zeros((len(texts), self.dims), self._np.float32)
        for at, key in enumerate(keys):
            rows[at] = found[key]
        return rows

    def close(self) -> None:
        with self._lock:
            self._db.close()
