"""Searching in SQLite: candidates by words, by meaning and by files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from yester.model import ON_REQUEST, WHOLE, Filters
from yester.store.contract import Candidate, Statistics, Used
from yester.store.sqlite import index, rows
from yester.store.sqlite.items import ItemRows
from yester.store.sqlite.maintenance import explains
from yester.text.query import Expression


class SearchRows(ItemRows):
    """The part of `SqliteStore` that finds items; it does not rank them."""

    @explains
    def candidates(
        self,
        terms: Sequence[tuple[str, float, int]],
        filters: Filters,
        limit: int,
        must: Expression | None = None,
    ) -> list[Candidate]:
        projects, sessions = self._filter_ids(filters)
        by_token = (
            not (filters.files or filters.concepts) and filters.since is filters.until is None
        )
        exact = ("", ()) if by_token else rows.where(filters, projects, sessions)
        narrowing = index.filter_query(filters, projects, sessions)
        if wanted := index.match(must):
            narrowing.append(wanted)
        excluded = index.unwanted(must)
        members = None
        if by_token and len(narrowing) == len(projects) == 1 and not (excluded or wanted):
            members = self._members_of(projects[0])
        ids = index.likeliest(self._db, terms, narrowing, excluded, exact, limit, members)
        return index.load(self._db, ids)

    @explains
    def load(self, ids: Sequence[int], filters: Filters | None = None) -> list[Candidate]:
        if not ids:
            return []
        filters = filters or Filters()
        return index.load(self._db, ids, rows.where(filters, *self._filter_ids(filters)))

    @explains
    def touching(self, files: Sequence[str], filters: Filters, limit: int) -> dict[int, int]:
        condition, args = rows.where(filters, *self._filter_ids(filters))
        return index.touching(self._db, files, condition, args, limit)

    @explains
    def concepts(self, names: Sequence[str], items: Sequence[int]) -> tuple[int, dict[int, int]]:
        return index.concepts(self._db, names, items)

    @explains
    def project_number(self, name: str) -> int:
        found = self._one("SELECT id FROM project WHERE name = ?1 OR key = ?1", name)
        return int(found[0]) if found else 0

    @explains
    def neighbours(self, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        return index.neighbours(self._db, ids)

    @explains
    def alike(self, term: str, most: int) -> list[str]:
        return index.alike(self._db, term, most)

    @explains
    def statistics(self, terms: Sequence[str], filters: Filters) -> Statistics:
        projects = self._filter_ids(filters)[0]
        items, lengths = self._lengths(tuple(projects))
        return Statistics(items, index.frequencies(self._db, terms, projects), lengths)

    def _lengths(self, projects: tuple[int, ...]) -> tuple[int, Mapping[tuple[str, int], float]]:
        """Remembered until somebody writes: `data_version` tells of others."""
        version = (self._one("PRAGMA data_version")[0], self._writes)
        if self._measured[0] != version:
            self._measured = (version, {})
        known = self._measured[1]
        if projects not in known:
            known[projects] = index.lengths(self._db, projects)
        found: tuple[int, Mapping[tuple[str, int], float]] = known[projects]
        return found

    @explains
    def used(self, items: Sequence[int]) -> dict[int, Used]:
        marks = ",".join("?" * len(items))
        told: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for item, what, number in self._db.execute(
            f"SELECT item, what, count(*) FROM feedback WHERE item IN ({marks})"
            " GROUP BY item, what",
            tuple(items),
        ):
            told[item][what] = number
        shown = {
            item: (number, used)
            for item, number, used in self._db.execute(
                "SELECT i.item, count(DISTINCT i.session), count(DISTINCT f.session)"
                " FROM injection i LEFT JOIN feedback f ON f.item = i.item AND f.session ="
                f" i.session WHERE i.item IN ({marks}) AND i.event <> ? GROUP BY i.item",
                (*items, ON_REQUEST),
            )
        }
        listed = dict(
            self._db.execute(
                f"SELECT item, count(*) FROM injection WHERE item IN ({marks}) AND event = ?"
                " AND reason <> ? GROUP BY item",
                (*items, ON_REQUEST, WHOLE),
            )
        )
        return {
            item: Used(*shown.get(item, (0, 0)), told.get(item, {}), listed.get(item, 0))
            for item in {*told, *shown, *listed}
        }
