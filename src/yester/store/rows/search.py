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
MOST_ALIKE = 20 * _ALIKE  # that are looked at
# Codes whose values are looked at: so many for each one wanted, and never fewer than these.
EACH, FEWEST = 3, 300
WIDER = 8  # times as many, when filters leave too few
_WHOLE = 2.0**40  # of a weight below 16: the sum of 32 of them is exact
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
        weighted = weigh_terms(shares, held, items, probe.rarest)
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
        touching = dict(self._read_touching(probe.files, filters, probe.most_files))
        named = dict(self._read_touching(probe.paths, filters, probe.most_files))
        edited = turns_of(self._read_editing(probe.worked, filters, probe.most_files))
        if probe.worked:
            touched = self._lines_by_path(self._read_changed(filters))
            edits = self._edits_of(self._read_written(list(touched), filters))
            edited = add_rewritten(edited, self._count_rewritten(touched, edits))
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
            edited, self._edits_of(self._read_written(probe.written, filters)),
            self._hash_lines(probe.lines),
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
        said, cards = split_said(self._read_said(turns))
        return Neighbours(
            pairs, more, frozenset(one.id for one in passing), cosines, having, said, cards
        )

    def texts(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> model.Texts:
        found = self._read(rows.WIDTH, f"{rows.SELECT}{rows.LISTED}", str(list(ids)))
        use = self._read_use([*ids, *use_of])
        items = {item.id: item for item in map(rows.item_of, found)}
        return model.Texts([items[id_] for id_ in ids if id_ in items], count_use(*use))

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
        names = self._terms_between(term, term + "\U0010ffff", MOST_ALIKE)
        return choose_alike(term, self._term_frequencies([*names, *shorter_terms(term)], ()))

    def _find_neighbours(self, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """id → the one before and the one behind it in its session, else in its project."""
        listed = str(list(ids))
        found = self._db.execute(NEIGHBOURS, (listed,))
        return {id_: (before or 0, behind or 0) for id_, before, behind in found}

    def _load_candidates(
        self, ids: Collection[int], filters: Filters = ANYTHING
    ) -> list[Candidate]:
        """Those that pass the filters and are in use."""
        if not ids:
            return []
        condition = self._filter_items(filters)
        # CROSS: with filters the planner would walk a whole project to find a few hundred.
        found = self._db.execute(
            f"SELECT {', '.join((*CANDIDATE[:-1], 't.vector', CANDIDATE[-1]))}"
            " FROM json_each(?) j CROSS JOIN item i ON i.id = j.value"
            f" CROSS JOIN item_terms t ON t.item = i.id WHERE {condition.sql}",
            (str(list(ids)), *condition.values),
        )
        return list(map(Candidate._make, found))

    def _read_touching(
        self, files: Sequence[str], filters: Filters, most: int
    ) -> Iterable[tuple[Any, ...]]:
        """(item, how many of the files it is about)."""
        if not files:
            return ()
        condition = self._filter_items(filters)
        return self._read(
            2,
            "SELECT f.item, count(DISTINCT j.key) AS n"
            f" FROM {rows.TOUCHING} CROSS JOIN item i ON i.id = f.item"
            f" WHERE {condition.sql} GROUP BY f.item"
            " ORDER BY n DESC, max(i.epoch) DESC, f.item DESC LIMIT ?",
            rows.wanted_files(files), *condition.values, most,
        )  # fmt: skip

    def _read_editing(self, files: Sequence[str], filters: Filters, most: int) -> Iterable[Any]:
        """Turns, how many of the files they have edited, and the last item of each that did."""
        if not files:
            return ()
        condition = self._filter_items(filters)
        return self._read(
            4,
            "SELECT i.session, i.prompt_number, count(DISTINCT j.key) AS n, max(i.id)"
            f" FROM {rows.TOUCHING} AND f.modified <> 0 CROSS JOIN item i ON i.id = f.item"
            f" WHERE i.session <> 0 AND i.prompt_number <> 0 AND {condition.sql}"
            " GROUP BY i.session, i.prompt_number ORDER BY n DESC, max(i.epoch) DESC LIMIT ?",
            rows.wanted_files(files), *condition.values, most,
        )  # fmt: skip

    def _read_said(self, turns: Collection[TurnKey]) -> Iterable[Any]:
        if not turns:
            return ()
        return self._read(
            6,
            "WITH wanted AS MATERIALIZED (SELECT j.value ->> 0 AS session,"
            " j.value ->> 1 AS number FROM json_each(?, '$') j)"
            " SELECT i.session, i.prompt_number, i.id, i.kind, i.type, t.vector"
            " FROM wanted w CROSS JOIN item i"
            " ON i.session = w.session AND i.prompt_number = w.number"
            " CROSS JOIN item_terms t ON t.item = i.id"
            " WHERE i.prompt_number <> 0 AND i.role NOT IN ('tool', 'thinking')"
            " AND i.status = 'active' AND i.kind IN ('prompt', 'message', 'summary')",
            rows.json_text(list(turns)),
        )

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
        within = rows.Condition()
        within.require_one_of("project", projects)
        return mean_lengths(
            self._db.execute(
                "SELECT kind, field, sum(items), sum(terms) FROM length"
                f" WHERE {within.sql} GROUP BY kind, field",
                within.values,
            )
        )

    def _read_use(self, items: Sequence[int]) -> tuple[Iterable[Any], Iterable[Any]]:
        """What came of these items, and how often they were shown."""
        ids = str(list(items))
        wanted = "item IN (SELECT value FROM json_each(?))"
        came = self._read(
            3, f"SELECT item, what, count(*) FROM feedback WHERE {wanted} GROUP BY item, what", ids
        )
        shown = self._read(
            4,
            "SELECT i.item, count(DISTINCT iif(i.event <> ?1, i.session, NULL)),"
            " count(DISTINCT iif(i.event <> ?1, f.session, NULL)),"
            " count(DISTINCT iif(i.event = ?1 AND i.reason <> ?2, i.id, NULL)) FROM injection i"
            " LEFT JOIN feedback f ON f.item = i.item AND f.session = i.session"
            f" WHERE i.{wanted.replace('?', '?3')} GROUP BY i.item",
            model.ON_REQUEST, model.WHOLE, ids,
        )  # fmt: skip
        return came, shown


def weigh_terms(
    shares: Mapping[str, float], held: Mapping[str, int], items: int, rarest: int = 0
) -> Weighted:
    """The terms that items hold, with what each counts; of many, so many of the rarest. Weights are
    whole numbers: their sum is the same in whatever order an engine adds them up."""
    found = [
        (term, float(round(share * inverse_frequency(held[term], items) * _WHOLE)), held[term])
        for term, share in shares.items()
        if held[term]
    ]
    return sorted(found, key=lambda one: one[2])[:rarest] if rarest else found


def shorter_terms(term: str) -> list[str]:
    return [term[:size] for size in range(len(term) - 1, _SHORTEST_PREFIX - 1, -1)]


def choose_alike(term: str, held: Mapping[str, int]) -> list[str]:
    """Of terms and the number of items that hold each: those that begin with this one, the most
    frequent first, then those it begins with."""
    shorter = shorter_terms(term)
    names = sorted(held.keys() - set(shorter), key=lambda name: (-held[name], name))
    return [name for name in (*names, *shorter) if held.get(name)][:_ALIKE]


def mean_lengths(sums: Iterable[Any]) -> Lengths:
    """The number of items, and the mean number of terms by (kind, field)."""
    items, means = 0, dict[tuple[str, int], float]()
    for kind, field, number, total in sums:
        if field == -1:
            items += number
        elif number > 0:
            means[kind, field] = total / number
    return items, means


def _neighbour_sql(sign: str, order: str) -> str:
    # `session <> 0` in so many words: only then the index of sessions is used.
    nearest = (
        "(SELECT n.id FROM item n WHERE n.{0} = c.{0} AND n.session {1} 0 AND n.status = 'active'"
        f" AND (n.epoch, n.id) {sign} (c.epoch, c.id) ORDER BY n.epoch {order}, n.id {order}"
        " LIMIT 1)"
    )
    within, outside = nearest.format("session", "<>"), nearest.format("project", "=")
    return f"CASE WHEN c.session <> 0 THEN {within} ELSE {outside} END"


NEIGHBOURS = (
    f"SELECT c.id, {_neighbour_sql('<', 'DESC')} AS before, {_neighbour_sql('>', 'ASC')} AS behind"
    " FROM json_each(?) j CROSS JOIN item c ON c.id = j.value"
)
# Of `item i`, what is ranked, in the order of `Candidate` but for its vector.
CANDIDATE = (
    "i.id", "i.kind", "i.role", "i.type", "i.project", "i.session",
    # A rule is as old as its words; its `updated` is when it was distilled.
    "iif(i.kind = 'memory' AND i.type <> 'rule', i.updated, i.epoch)", "i.hash", "i.prompt_number",
)  # fmt: skip


def turns_of(edited: Iterable[Any]) -> dict[TurnKey, tuple[int, int]]:
    return {(session, number): (n, item) for session, number, n, item in edited}


def add_rewritten(
    edited: Mapping[TurnKey, tuple[int, int]], rewritten: Mapping[TurnKey, int]
) -> dict[TurnKey, tuple[int, int]]:
    """Files count twice of which a turn wrote lines that the asking session has changed."""
    return {turn: (n + rewritten.get(turn, 0), item) for turn, (n, item) in edited.items()}


def split_said(found: Iterable[Any]) -> tuple[dict[TurnKey, list[bytes]], dict[TurnKey, int]]:
    """By turn, the terms of what was said in it, and the item that is its card."""
    said: defaultdict[TurnKey, list[bytes]] = defaultdict(list)
    cards: dict[TurnKey, int] = {}
    for session, number, id_, kind, type_, vector in found:
        if kind != "summary":
            said[session, number].append(vector)
        elif type_ == "turn":
            cards[session, number] = id_
    return said, cards


def count_use(feedback: Iterable[Any], shown: Iterable[Any]) -> dict[int, model.UseCounts]:
    came: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for item, what, number in feedback:
        came[item][what] = number
    used = {
        item: model.UseCounts(number, used_in, came.get(item, {}), listed)
        for item, number, used_in, listed in shown
        if number or listed or item in came
    }
    return {item: model.UseCounts(0, 0, came[item]) for item in came} | used
