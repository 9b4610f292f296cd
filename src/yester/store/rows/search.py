"""Searching: candidates by words, by meaning and by files. Rules: `contract.Search`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from yester import model
from yester.model import (
    ANYTHING,
    Candidate,
    Filters,
    Nearness,
    Neighbours,
    Probe,
    ProbeResult,
    TurnKey,
    replace,
)
from yester.store.rows import rows
from yester.store.rows.items import ItemRows
from yester.text.terms import inverse_frequency

_ALIKE = 12  # known terms that stand for one nobody has
# Codes whose values are looked at: so many for each one wanted, and never fewer than these.
EACH, FEWEST = 3, 300
WIDER = 8  # times as many, when filters leave too few
_SHORTEST_PREFIX = 4  # of a term that stands for a longer one
Weighted = Sequence[tuple[str, float, int]]  # (term, weight, number of items that hold it)
Lengths = tuple[int, Mapping[tuple[str, int], float]]


class SearchRows(ItemRows):
    """The part of `SqliteStore` that finds items; it does not rank them."""

    def probe(self, probe: Probe) -> ProbeResult:
        filters = probe.filters
        projects, sessions = self._filter_ids(filters)
        items, lengths = self._mean_lengths(tuple(projects))
        shares = dict(probe.terms)
        held = self._term_frequencies(shares, projects)
        alike = {
            term: self._find_alike_terms(term)
            for term, share in probe.begin.items()
            if share == 1.0 or not held.get(term)
        }
        for term, names in alike.items():
            for name in names:
                shares[name] = max(shares.get(name, 0.0), probe.begin[term])
        held |= self._term_frequencies([term for term in shares if term not in held], projects)
        weighted = [
            (term, share * inverse_frequency(held[term], items), held[term])
            for term, share in shares.items()
            if held[term]
        ]
        if probe.rarest:
            weighted = sorted(weighted, key=lambda one: one[2])[: probe.rarest]
        chosen: list[int] = []
        here = self._project_id(probe.project) if probe.own and not projects else 0
        if probe.words and (weighted or probe.must is not None):
            chosen = self._by_words(weighted, probe, projects, sessions)
            if here:
                chosen += self._by_words(weighted, probe, [here], sessions)
        vector = probe.vector() if probe.vector is not None else None
        near = {}
        if vector is not None:
            near = self._nearest_items(vector, probe.model, filters, probe.nearest)
            if here:
                own = replace(filters, projects=(probe.project,))
                near = self._nearest_items(vector, probe.model, own, probe.nearest) | near
        touching = self._items_touching(probe.files, filters, probe.most_files)
        named = self._items_touching(probe.paths, filters, probe.most_files)
        edited = self._turns_editing(probe.worked, filters, probe.most_files)
        worked = (item for _, item in edited.values())
        others = (*near, *touching, *named, *worked) if probe.must is None else ()
        candidates = self._load_candidates(dict.fromkeys((*chosen, *others)))
        concepts, having = self._count_concepts(
            probe.names, [candidate.id for candidate in candidates]
        )
        return ProbeResult(
            model.Statistics(items, held, lengths), alike, candidates, frozenset(chosen), near,
            touching, named, concepts, having, self._project_id(probe.project),
            {project.key: project.name for project in self.projects()} if probe.words else {},
            edited, self._find_written(probe.written, filters), self._hash_lines(probe.lines),
        )  # fmt: skip

    def around(
        self,
        probe: Probe,
        likeliest: Sequence[int],
        known: Collection[int],
        near: Collection[int],
        turns: Collection[TurnKey] = (),
    ) -> Neighbours:
        pairs = self._find_neighbours(likeliest)
        seen = frozenset(known)
        missing = sorted({id_ for pair in pairs.values() for id_ in pair if id_} - seen)
        more = self._load_candidates(missing)
        # A session is of one project, so these filters its neighbours pass by themselves.
        passing = more
        own = replace(probe.filters, projects=(), without_session="", without_projects=())
        if own != ANYTHING:
            passing = self._load_candidates(missing, probe.filters)
        vector = probe.vector() if probe.vector is not None else None
        wanted = [id_ for id_ in (*known, *missing) if id_ not in near]
        cosines: Mapping[int, model.Nearness] = {}
        if vector is not None:
            cosines, _ = self._cosines_of(vector, probe.model, wanted)
        _, having = self._count_concepts(probe.names, missing)
        said, cards = self._turns_said(turns)
        return Neighbours(
            pairs, more, frozenset(one.id for one in passing), cosines, having, said, cards
        )

    def texts(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> model.Texts:
        return model.Texts(self.get(ids), self._use_of([*ids, *use_of]))

    # Where an engine goes its own way: what it indexes, and how it is asked.

    def _by_words(
        self,
        weighted: Weighted,
        probe: Probe,
        projects: Sequence[int],
        _sessions: Sequence[int],
    ) -> list[int]:
        raise NotImplementedError

    def _term_frequencies(self, terms: Iterable[str], projects: Sequence[int]) -> dict[str, int]:
        raise NotImplementedError

    def _terms_between(self, low: str, high: str, most: int) -> list[str]:
        """Known terms in order."""
        raise NotImplementedError

    def _nearest_items(
        self, vector: Any, model: str, filters: Filters, limit: int
    ) -> dict[int, Nearness]:
        raise NotImplementedError

    def _find_alike_terms(self, term: str) -> list[str]:
        """Known terms that begin with this one, the most frequent first, then those it begins
        with."""
        names = self._terms_between(term, term + "\U0010ffff", 20 * _ALIKE)
        shorter = [term[:size] for size in range(len(term) - 1, _SHORTEST_PREFIX - 1, -1)]
        held = self._term_frequencies([*names, *shorter], ())
        names.sort(key=lambda name: (-held[name], name))
        return [name for name in (*names, *shorter) if held[name]][:_ALIKE]

    def _find_neighbours(self, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """id → the one before and the one behind it in its session, else in its project."""

        def neighbour_query(scope: str, sign: str, order: str) -> str:
            # `session <> 0` in so many words: only then the index of sessions is used.
            own = "n.session <> 0" if scope == "session" else "n.session = 0"
            return (
                f"(SELECT n.id FROM item n WHERE n.{scope} = c.{scope} AND {own}"
                " AND n.status = 'active'"
                f" AND (n.epoch, n.id) {sign} (c.epoch, c.id)"
                f" ORDER BY n.epoch {order}, n.id {order} LIMIT 1)"
            )

        found = {}
        for scope, which in (("session", "c.session <> 0"), ("project", "c.session = 0")):
            for id_, before, behind in self._db.execute(
                f"SELECT c.id, {neighbour_query(scope, '<', 'DESC')},"
                f" {neighbour_query(scope, '>', 'ASC')}"
                f" FROM json_each(?) j CROSS JOIN item c ON c.id = j.value WHERE {which}",
                (str(list(ids)),),
            ):
                found[id_] = (before or 0, behind or 0)
        return found

    def _load_candidates(
        self, ids: Collection[int], filters: Filters = ANYTHING
    ) -> list[Candidate]:
        """Those that pass the filters and are in use."""
        if not ids:
            return []
        condition = self._filter_items(filters)
        found = self._db.execute(
            "SELECT i.id, i.kind, i.role, i.type, i.project, i.session,"
            # A rule is as old as its words; its `updated` is when it was distilled.
            " iif(i.kind = 'memory' AND i.type <> 'rule', i.updated, i.epoch), i.hash, t.vector,"
            " i.prompt_number"
            # CROSS: with filters the planner would walk a whole project to find a few hundred.
            " FROM json_each(?) j CROSS JOIN item i ON i.id = j.value"
            f" CROSS JOIN item_terms t ON t.item = i.id WHERE {condition.sql}",
            (str(list(ids)), *condition.values),
        )
        return list(map(Candidate._make, found))

    def _items_touching(self, files: Sequence[str], filters: Filters, most: int) -> dict[int, int]:
        """item → how many of the files it is about."""
        if not files:
            return {}
        condition = self._filter_items(filters)
        found = self._db.execute(
            "SELECT f.item, count(DISTINCT j.key) AS n"
            f" FROM {rows.TOUCHING} CROSS JOIN item i ON i.id = f.item"
            f" WHERE {condition.sql} GROUP BY f.item"
            " ORDER BY n DESC, max(i.epoch) DESC, f.item DESC LIMIT ?",
            (rows.wanted_files(files), *condition.values, most),
        )
        return dict(found)

    def _turns_editing(
        self, files: Sequence[str], filters: Filters, most: int
    ) -> dict[TurnKey, tuple[int, int]]:
        """turn → how many of the files it has edited, those twice of which it wrote lines that the
        asking session has changed; and the last item of it that did."""
        if not files:
            return {}
        condition = self._filter_items(filters)
        found = self._db.execute(
            "SELECT i.session, i.prompt_number, count(DISTINCT j.key) AS n, max(i.id)"
            f" FROM {rows.TOUCHING} AND f.modified <> 0 CROSS JOIN item i ON i.id = f.item"
            f" WHERE i.session <> 0 AND i.prompt_number <> 0 AND {condition.sql}"
            " GROUP BY i.session, i.prompt_number ORDER BY n DESC, max(i.epoch) DESC LIMIT ?",
            (rows.wanted_files(files), *condition.values, most),
        )
        edited = {(session, number): (n, item) for session, number, n, item in found}
        written = self._count_rewritten(filters)
        return {turn: (n + written[turn], item) for turn, (n, item) in edited.items()}

    def _turns_said(
        self, turns: Collection[TurnKey]
    ) -> tuple[dict[TurnKey, list[bytes]], dict[TurnKey, int]]:
        said: defaultdict[TurnKey, list[bytes]] = defaultdict(list)
        cards: dict[TurnKey, int] = {}
        for session, number, id_, kind, type_, vector in (
            self._db.execute(
                "WITH wanted AS MATERIALIZED (SELECT j.value ->> 0 AS session,"
                " j.value ->> 1 AS number FROM json_each(?, '$') j)"
                " SELECT i.session, i.prompt_number, i.id, i.kind, i.type, t.vector"
                " FROM wanted w CROSS JOIN item i"
                " ON i.session = w.session AND i.prompt_number = w.number"
                " CROSS JOIN item_terms t ON t.item = i.id"
                " WHERE i.prompt_number <> 0 AND i.role NOT IN ('tool', 'thinking')"
                " AND i.status = 'active' AND i.kind IN ('prompt', 'message', 'summary')",
                (rows.json_text(list(turns)),),
            )
            if turns
            else ()
        ):
            if kind != "summary":
                said[session, number].append(vector)
            elif type_ == "turn":
                cards[session, number] = id_
        return said, cards

    def _count_concepts(
        self, names: Sequence[str], items: Sequence[int]
    ) -> tuple[int, dict[int, int]]:
        """How many of the names are concepts, and item → how many of these it has."""
        known = self._all_ids(
            "SELECT j.value FROM json_each(?, '$') j WHERE EXISTS"
            " (SELECT 1 FROM item_concept c WHERE c.concept = j.value)",
            rows.json_text(list(dict.fromkeys(names))),
        )
        if not known:
            return 0, {}
        marks = ",".join("?" * len(known))
        found = self._db.execute(
            "SELECT c.item, count(*) FROM json_each(?) j CROSS JOIN item_concept c"
            f" ON c.item = j.value AND c.concept IN ({marks}) GROUP BY c.item",
            (str(list(items)), *known),
        )
        return len(known), dict(found)

    def _mean_lengths(self, projects: tuple[int, ...]) -> Lengths:
        """The number of items, and the mean number of terms by (kind, field)."""
        within = rows.Condition()
        within.require_one_of("project", projects)
        items, means = 0, dict[tuple[str, int], float]()
        for kind, field, number, total in self._db.execute(
            "SELECT kind, field, sum(items), sum(terms) FROM length"
            f" WHERE {within.sql} GROUP BY kind, field",
            within.values,
        ):
            if field == -1:
                items += number
            elif number > 0:
                means[kind, field] = total / number
        return items, means

    def _use_of(self, items: Sequence[int]) -> dict[int, model.UseCounts]:
        ids = str(list(items))
        wanted = "item IN (SELECT value FROM json_each(?))"
        came: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for item, what, number in self._db.execute(
            f"SELECT item, what, count(*) FROM feedback WHERE {wanted} GROUP BY item, what", (ids,)
        ):
            came[item][what] = number
        shown = self._db.execute(
            "SELECT i.item, count(DISTINCT iif(i.event <> ?1, i.session, NULL)),"
            " count(DISTINCT iif(i.event <> ?1, f.session, NULL)),"
            " count(DISTINCT iif(i.event = ?1 AND i.reason <> ?2, i.id, NULL)) FROM injection i"
            " LEFT JOIN feedback f ON f.item = i.item AND f.session = i.session"
            f" WHERE i.{wanted.replace('?', '?3')} GROUP BY i.item",
            (model.ON_REQUEST, model.WHOLE, ids),
        )
        used = {
            item: model.UseCounts(number, used_in, came.get(item, {}), listed)
            for item, number, used_in, listed in shown
            if number or listed or item in came
        }
        return {item: model.UseCounts(0, 0, came[item]) for item in came} | used
