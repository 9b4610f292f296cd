"""The lines that edits have written, in SQLite: as hashes with this store's own key."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

from yester.libraries import load_library
from yester.model import EditedLines, Filters, LineEdit, TurnKey
from yester.store.rows import rows
from yester.store.rows.base import Rows

_BYTES = 8  # of a hash
# Files as they are named from the project's root; one stored with its whole path ends so.
_WRITTEN = (
    f"{rows.NAMED_FILES} CROSS JOIN item_file f ON f.name = j.name AND f.modified <> 0"
    " AND (f.path = substr(j.path, 2) OR f.path = j.path"
    " OR (substr(f.path, 1, 1) = '/' AND substr(f.path, -length(j.path)) = j.path))"
    " CROSS JOIN line_edit e ON e.item = f.item AND e.path = f.path"
    " CROSS JOIN item i ON i.id = f.item"
)


class LineRows(Rows):
    """The part of `SqliteStore` that knows written lines."""

    def _put_lines(self, edits: Iterable[tuple[int, Sequence[EditedLines]]]) -> None:
        """Inside a transaction; of an item that has none yet."""
        self._db.executemany(
            "INSERT INTO line_edit(item, path, lines, added, removed, blind)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [
                (item, one.path, self._hash_lines(one.lines).tobytes(),
                 one.added, self._hash_lines(one.removed).tobytes(), one.blind)
                for item, several in edits
                for one in several
            ],
        )  # fmt: skip

    def _forget_lines(self, item: int) -> None:
        self._db.execute("DELETE FROM line_edit WHERE item = ?", (item,))

    def _read_written(self, paths: Sequence[str], filters: Filters) -> Iterable[Any]:
        if not paths:
            return ()
        condition = self._filter_items(filters)
        return self._read(
            10,
            "SELECT DISTINCT e.item, i.session, i.prompt_number, i.epoch, e.path, e.lines, e.added,"
            f" e.removed, e.blind, e.rowid FROM {_WRITTEN} WHERE {condition.sql}"
            " ORDER BY i.epoch, e.item, e.rowid",
            rows.wanted_files(paths),
            *condition.values,
        )

    def _edits_of(self, written: Iterable[Any]) -> list[LineEdit]:
        return [
            LineEdit(item, (session, number), epoch, path, array("Q", lines),
                     added or b"\1" * (len(lines) // _BYTES), array("Q", removed), blind)
            for item, session, number, epoch, path, lines, added, removed, blind, _ in written
        ]  # fmt: skip

    def _read_changed(self, filters: Filters) -> Iterable[Any]:
        """What the session that asks has edited."""
        return self._read(
            4,
            "SELECT e.path, e.lines, e.added, e.removed FROM session s"
            " CROSS JOIN item i ON i.session = s.id AND i.session <> 0"
            " CROSS JOIN line_edit e ON e.item = i.id WHERE s.key = ?",
            filters.without_session,
        )

    def _lines_by_path(self, changed: Iterable[Any]) -> dict[str, set[int]]:
        """The lines that were changed there, or kept in a place that was."""
        touched: defaultdict[str, set[int]] = defaultdict(set)
        for path, lines, added, removed in changed:
            kept = (line for line, new in zip(array("Q", lines), added, strict=False) if not new)
            touched[path].update(array("Q", removed), kept)
        return {path: lines for path, lines in touched.items() if lines}

    def _count_rewritten(
        self, touched: Mapping[str, set[int]], edits: Iterable[LineEdit]
    ) -> Counter[TurnKey]:
        """turn → in how many files it wrote lines that the session which asks has touched; of one
        that either of them named with its whole path, too."""
        found = {
            (edit.turn, path)
            for edit in edits
            for path, lines in touched.items()
            if f"/{edit.path}".endswith(f"/{path.lstrip('/')}")
            and not lines.isdisjoint(compress(edit.lines, edit.added))
        }
        return Counter(turn for turn, _ in found)

    def _hash_lines(self, lines: Sequence[str]) -> array[int]:
        if not lines:
            return array("Q")
        key = bytes.fromhex(self._get_meta("line_key"))
        keyed = load_library("hashlib").blake2b(digest_size=_BYTES, key=key)
        hashes = []
        for line in lines:
            one = keyed.copy()
            one.update(line.encode("utf-8", "replace"))
            hashes.append(one.digest())
        return array("Q", b"".join(hashes))
