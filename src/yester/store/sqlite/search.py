"""Searching in SQLite: candidates by words, by meaning and by files. Rules: `contract.Search`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from yester.model import (
    ANYTHING,
    ON_REQUEST,
    WHOLE,
    Candidate,
    Filters,
    Neighbours,
    Probe,
    ProbeResult,
    Statistics,
    Texts,
    UseCounts,
)
from yester.store.sqlite import index, rows
from yester.store.sqlite.items import ItemRows
from yester.store.sqlite.maintenance import explains_errors
from yester.text.terms import inverse_frequency

_ALIKE = 12  # known terms that stand for one nobody has


class SearchRows(ItemRows):
    """The part of `SqliteStore` that finds items; it does not rank them."""

    @explains_errors
    def probe(self, probe: Probe) -> ProbeResult:
        filters = probe.filters
        projects, sessions = self._filter_ids(filters)
        items, lengths = self._mean_lengths(tuple(projects))
        shares = dict(probe.terms)
        held = index.term_frequencies(self._db, list(shares), projects)
        alike = {
            term: index.find_alike_terms(self._db, term, _ALIKE)
            for term, share in probe.begin.items()
            if share == 1.0 or not held.get(term)
        }
        for term, names in alike.items():
            for name in names:
                shares[name] = max(shares.get(name, 0.0), probe.begin[term])
        held |= index.term_frequencies(
            self._db, [term for term in shares if term not in held], projects
        )
        weighted = [
            (term, share * inverse_frequency(held[term], items), held[term])
            for term, share in shares.items()
            if held[term]
        ]
        if probe.rarest:
            weighted = sorted(weighted, key=lambda one: one[2])[: probe.rarest]
        chosen: list[int] = []
        if probe.words and (weighted or probe.must is not None):
            chosen = self._by_words(weighted, probe, projects, sessions)
        vector = probe.vector() if probe.vector is not None else None
        near = {}
        if vector is not None:
            near = dict(self._nearest_items(vector, probe.model, filters, probe.nearest))
        touching = self._items_touching(probe.files, filters, probe.most_files)
        named = self._items_touching(probe.paths, filters, probe.most_files)
        candidates = index.load_candidates(self._db, chosen)
        if probe.must is None:
            words = frozenset(chosen)
            others = dict.fromkeys(id_ for id_ in (*near, *touching, *named) if id_ not in words)
            candidates += self._load_candidates(list(others))
        concepts, having = index.count_concepts(
            self._db, probe.names, [candidate.id for candidate in candidates]
        )
        return ProbeResult(
            Statistics(items, held, lengths), alike, candidates, frozenset(chosen), near, touching,
            named, concepts, having, self._project_number(probe.project),
            {project.key: project.name for project in self.projects()} if probe.words else {},
        )  # fmt: skip

    @explains_errors
    def around(
        self, probe: Probe, likeliest: Sequence[int], known: Collection[int], near: Collection[int]
    ) -> Neighbours:
        pairs = index.find_neighbours(self._db, likeliest)
        seen = frozenset(known)
        missing = sorted({id_ for pair in pairs.values() for id_ in pair if id_} - seen)
        more = self._load_candidates(missing)
        # A session is of one project, so that filter its neighbours pass by themselves.
        passing = more
        if replace(probe.filters, projects=()) != ANYTHING:
            passing = self._load_candidates(missing, probe.filters)
        vector = probe.vector() if probe.vector is not None else None
        cosines = {}
        if vector is not None:
            wanted = [id_ for id_ in (*known, *missing) if id_ not in near]
            cosines = self._cosines_of(vector, probe.model, wanted)
        _, having = index.count_concepts(self._db, probe.names, missing)
        return Neighbours(pairs, more, frozenset(one.id for one in passing), cosines, having)

    @explains_errors
    def texts(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> Texts:
        items = self.get(ids)
        branches = {
            (key, agent): branch
            for key, agent, branch in self._db.execute(
                "SELECT s.key, s.agent, s.branch FROM json_each(?) j"
                " CROSS JOIN item i ON i.id = j.value AND i.session <> 0"
                " CROSS JOIN session o ON o.id = i.session"
                " CROSS JOIN session s ON s.key = o.key AND s.agent = o.agent"
                " ORDER BY s.id DESC",  # where it has several projects, the first
                (str(list(ids)),),
            )
        }
        return Texts(items, self._use_of([*ids, *use_of]), branches)

    def _by_words(
        self,
        weighted: Sequence[tuple[str, float, int]],
        probe: Probe,
        projects: Sequence[int],
        sessions: Sequence[int],
    ) -> list[int]:
        filters = probe.filters
        by_token = (
            not (filters.files or filters.concepts or filters.source)
            and filters.since is filters.until is None
        )
        exact = ("", ()) if by_token else rows.filter_condition(filters, projects, sessions)
        narrowing = index.filter_query(filters, projects, sessions)
        if wanted := index.match_expression(probe.must):
            narrowing.append(wanted)
        excluded = index.excluded_expression(probe.must)
        members = None
        if by_token and len(narrowing) == len(projects) == 1 and not (excluded or wanted):
            members = self._members_of(projects[0])
        return index.choose_likeliest(
            self._db, weighted, narrowing, excluded, exact, probe.words, members
        )

    def _load_candidates(self, ids: Sequence[int], filters: Filters = ANYTHING) -> list[Candidate]:
        if not ids:
            return []
        return index.load_candidates(
            self._db, ids, rows.filter_condition(filters, *self._filter_ids(filters))
        )

    def _items_touching(self, files: Sequence[str], filters: Filters, most: int) -> dict[int, int]:
        if not files:
            return {}
        condition, args = rows.filter_condition(filters, *self._filter_ids(filters))
        return index.find_touching(self._db, files, condition, args, most)

    def _project_number(self, name: str) -> int:
        if not name:
            return 0
        found = self._first_row("SELECT id FROM project WHERE name = ?1 OR key = ?1", name)
        return int(found[0]) if found else 0

    def _mean_lengths(
        self, projects: tuple[int, ...]
    ) -> tuple[int, Mapping[tuple[str, int], float]]:
        """Remembered until somebody writes: `data_version` tells of others."""
        version = (self._first_row("PRAGMA data_version")[0], self._writes)
        if self._measured[0] != version:
            self._measured = (version, {})
        known = self._measured[1]
        if projects not in known:
            known[projects] = index.mean_lengths(self._db, projects)
        found: tuple[int, Mapping[tuple[str, int], float]] = known[projects]
        return found

    def _use_of(self, items: Sequence[int]) -> dict[int, UseCounts]:
        wanted = "item IN (SELECT value FROM json_each(?))"
        ids = str(list(items))
        came: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for item, what, number in self._db.execute(
            f"SELECT item, what, count(*) FROM feedback WHERE {wanted} GROUP BY item, what", (ids,)
        ):
            came[item][what] = number
        shown = {
            item: (number, used)
            for item, number, used in self._db.execute(
                "SELECT i.item, count(DISTINCT i.session), count(DISTINCT f.session)"
                " FROM injection i LEFT JOIN feedback f ON f.item = i.item AND f.session ="
                f" i.session WHERE i.{wanted} AND i.event <> ? GROUP BY i.item",
                (ids, ON_REQUEST),
            )
        }
        listed: dict[int, Any] = dict(
            self._db.execute(
                f"SELECT item, count(*) FROM injection WHERE {wanted} AND event = ?"
                " AND reason <> ? GROUP BY item",
                (ids, ON_REQUEST, WHOLE),
            )
        )
        return {
            item: UseCounts(*shown.get(item, (0, 0)), came.get(item, {}), listed.get(item, 0))
            for item in {*came, *shown, *listed}
        }
