"""Searching in SQLite: full text, and codes of vectors in numpy.

The codes lie in memory, 48 bytes each for 384 dimensions, and grow with what others write. Values
stay in the file; a search reads those of the nearest few hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from yester.libraries import load_numpy
from yester.model import ANYTHING, Filters, Nearness, Probe, replace
from yester.store.rows import rows
from yester.store.rows.search import EACH, FEWEST, WIDER, Lengths, SearchRows, Weighted
from yester.store.sqlite import index
from yester.store.sqlite.connection import Connection
from yester.store.sqlite.index import decode_ids
from yester.text.vectors import differing_bits, sign_code

_PROJECTS_MARKED = 16


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


class FileSearch(Connection, SearchRows):
    """The part of `SqliteStore` that is asked in the way of SQLite."""

    _measured: tuple[Any, dict[tuple[int, ...], Lengths]] = (None, {})

    def _by_words(
        self, weighted: Weighted, probe: Probe, projects: Sequence[int], _sessions: Sequence[int]
    ) -> list[int]:
        filters = probe.filters
        narrowing = index.filter_query(filters, projects, _sessions)
        if wanted := index.match_expression(probe.must):
            narrowing.append(wanted)
        private = map(self._project_id, filters.without_projects)
        excluded = index.excluded_expression(probe.must, filter(None, private))
        exact = members = None
        if (
            filters.files or filters.concepts or filters.source
            or filters.since is not None or filters.until is not None
        ):  # fmt: skip
            exact = rows.filter_condition(filters, projects, _sessions)
        elif len(narrowing) == len(projects) == 1 and not (excluded or wanted):
            members = self._members_of(projects[0])
        own = self._all_ids(
            "SELECT id FROM item WHERE session <> 0 AND session IN"
            " (SELECT id FROM session WHERE key = ?)", filters.without_session,
        ) if filters.without_session else ()  # fmt: skip
        postings = index.Postings(self._db, narrowing, excluded, exact, members, own)
        return postings.choose_likeliest(weighted, probe.words)

    def _term_frequencies(self, terms: Iterable[str], projects: Sequence[int]) -> dict[str, int]:
        return index.count_items(self._db, list(terms), projects)

    def _terms_between(self, low: str, high: str, most: int) -> list[str]:
        found = self._db.execute(
            "SELECT text FROM term WHERE text > ? AND text < ? LIMIT ?", (low, high, most)
        )
        return [row[0] for row in found]

    def _mean_lengths(self, projects: tuple[int, ...]) -> Lengths:
        """Remembered until somebody writes."""
        state = self._file_state()
        if self._measured[0] != state:
            self._measured = (state, {})
        known = self._measured[1]
        if projects not in known:
            known[projects] = super()._mean_lengths(projects)
        return known[projects]

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
        wanted = max(EACH * limit, FEWEST)
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
            wanted *= WIDER
        ordered = sorted(found.items(), key=lambda pair: (-pair[1].cosine, -pair[0]))
        return dict(ordered[:limit])

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
                len(marks),
                project,
            )
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
