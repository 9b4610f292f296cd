"""Searching on PostgreSQL: lists of terms, and codes of vectors compared by the server.

Each trip to the server is one statement with everything that can be asked by then: a search makes
two for what is found, one for what stands beside it, one for texts. So ids of projects are looked
up by the statements that need them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
from yester.store.postgres import index
from yester.store.postgres.connection import Connection
from yester.store.postgres.index import signed_hash
from yester.store.rows import rows, search
from yester.store.rows.rows import Condition
from yester.store.rows.search import EACH, FEWEST, WIDER, SearchRows, Weighted
from yester.store.rows.vectors import nearest_parts
from yester.text.terms import term_hash
from yester.text.vectors import sign_code

_POSTINGS = 3_500  # looked at per query: enough for the rarest terms of any question
_PARTS = 400  # of a list that are looked at for where its newest items lie
_LISTS = 32  # terms that choose candidates; all of them score
_NOTHING = "SELECT 0::bigint AS id WHERE false"
# What has come and gone since lists were written, looked up once however often it is asked for:
# while others write, it is much.
_FRESH = ("fresh", "SELECT item, sign, project, terms FROM unfolded")


class Passing(NamedTuple):
    """What items must fulfil, as a condition on `i`: of their ids alone, or of their rows."""

    condition: Condition
    needs_rows: bool


class ServerSearch(Connection, SearchRows):
    """The part of `PostgresStore` that is asked in the way of PostgreSQL."""

    def _read(self, width: int, sql: str, *values: object) -> Iterable[tuple[Any, ...]]:
        found: Iterable[tuple[Any, ...]] = self._db.read(width, sql, *values)
        return found

    def _filter_items(self, filters: Filters, statuses: Sequence[str] = ("active",)) -> Condition:
        others = replace(filters, projects=(), session="", session_id=0)
        condition = rows.filter_condition(others, (), (), statuses)
        within = _within("i.project", filters.projects)
        condition.require(within.sql, *within.values)
        if filters.session_id:
            condition.require("i.session = ? AND i.session <> 0", filters.session_id)
        elif filters.session:
            condition.require(
                "i.session <> 0 AND i.session = ANY (ARRAY(SELECT find_sessions(?, ?)))",
                filters.session, rows.prefix_pattern(filters.session),
            )  # fmt: skip
        return condition

    # --- what is found ---------------------------------------------------------------------------

    def probe(self, probe: Probe) -> ProbeResult:
        self._db.forget_reads()
        filters = probe.filters
        own = replace(filters, projects=(probe.project,))
        asked = [filters, own] if probe.own and not filters.projects else [filters]
        places = self._read(3, "SELECT id, key, name FROM project ORDER BY name")
        lengths = self._read_lengths(filters)
        self._share_frequencies([*probe.terms, *probe.begin], filters)
        frequencies = self._read(2, "SELECT term, items FROM held")
        names_alike = self._read_alike(probe)
        concepts = self._read(
            1, "SELECT j.value FROM unnest(?::text[]) j(value)"
            " WHERE EXISTS (SELECT 1 FROM item_concept c WHERE c.concept = j.value)",
            list(dict.fromkeys(probe.names)),
        ) if probe.names else ()  # fmt: skip
        touching = self._read_touching(probe.files, filters, probe.most_files)
        named = self._read_touching(probe.paths, filters, probe.most_files)
        editing = self._read_editing(probe.worked, filters, probe.most_files)
        changed = self._read_changed(filters) if probe.worked else ()
        written = self._read_written(probe.written, filters)
        near = self._nearest_of(probe, asked)

        items, means = search.mean_lengths(lengths)
        by_hash: Mapping[int, int] = dict(frequencies)
        held = {term: by_hash.get(signed_hash(term_hash(term)), 0) for term in probe.terms}
        chosen, among = _choose_alike(names_alike, list(probe.begin))
        alike = {
            term: chosen.get(term, [])
            for term, share in probe.begin.items()
            if share == 1.0 or not held.get(term)
        }
        shares = dict(probe.terms)
        for term, names in alike.items():
            for name in names:
                shares[name] = max(shares.get(name, 0.0), probe.begin[term])
        held |= {name: among[name] for name in shares if name not in held}
        weighted = search.weigh_terms(shares, held, items, probe.rarest)

        touched = self._lines_by_path(changed)
        rewritten = self._read_written(list(touched), filters)
        edited = search.turns_of(editing)
        about, about_named = dict(touching), dict(named)
        known = [name for (name,) in concepts]
        others: Iterable[int] = ()
        if probe.must is None:
            others = (*near, *about, *about_named, *(item for _, item in edited.values()))
        self._share_choice(weighted, probe, asked)
        in_order = self._read(1, "SELECT id FROM chosen")
        beside = list(dict.fromkeys(others))
        self._db.share(
            "wanted",
            "SELECT id AS value FROM chosen UNION SELECT value FROM json_each(?)", str(beside),
        )  # fmt: skip
        found = self._read_candidates("wanted")
        having = self._read_having("wanted", known)
        by_id = {row[0]: Candidate._make(row) for row in found}
        chosen_ids = [id_ for (id_,) in in_order]
        words = frozenset(chosen_ids) & by_id.keys()
        ids = dict.fromkeys((*chosen_ids, *beside))
        candidates = [by_id[id_] for id_ in ids if id_ in by_id]
        projects = list(places)
        here = (id_ for id_, key, name in projects if probe.project in (key, name))
        return ProbeResult(
            model.Statistics(items, held, means), alike,
            candidates, words, near, about, about_named, len(known), dict(having),
            next(here, 0), {key: name for _, key, name in projects} if probe.words else {},
            search.add_rewritten(
                edited, self._count_rewritten(touched, self._edits_of(rewritten))
            ),
            self._edits_of(written), self._hash_lines(probe.lines),
        )  # fmt: skip

    def _read_candidates(self, source: str) -> Iterable[Any]:
        """Of the items whose ids are the source's values, what is ranked, by id. All that is ranked
        stands beside an item's terms, and of items in use alone. All ids are asked for at once,
        which takes two thirds of looking them up one by one."""
        columns = (*search.CANDIDATE[:-1], "i.vector", search.CANDIDATE[-1])
        return self._read(
            10,
            f"SELECT {', '.join(columns)} FROM (SELECT item AS id, * FROM item_terms) i"
            f" WHERE i.id = ANY (ARRAY(SELECT value FROM {source})) ORDER BY i.id",
        )

    def _read_having(self, source: str, names: Sequence[str]) -> Iterable[Any]:
        """How many of these concepts each item has."""
        if not names:
            return ()
        return self._read(
            2,
            f"SELECT c.item, count(*) FROM {source} j CROSS JOIN item_concept c"
            " ON c.item = j.value AND c.concept = ANY (?::text[]) GROUP BY c.item",
            list(names),
        )

    # --- by words --------------------------------------------------------------------------------

    def _read_lengths(self, filters: Filters) -> Iterable[Any]:
        within = _within("project", filters.projects)
        return self._read(
            4, "SELECT kind, field, sum(items)::bigint, sum(terms)::bigint FROM length"
            f" WHERE {within.sql} GROUP BY kind, field", *within.values,
        )  # fmt: skip

    def _share_frequencies(self, terms: Sequence[str], filters: Filters) -> None:
        """How many items hold each of these terms, by its hash: known to other questions as
        `held`."""
        hashes = [signed_hash(term_hash(term)) for term in terms]
        within = _within("project", filters.projects)
        self._db.share(*_FRESH)
        self._db.share(
            "held",
            "SELECT x.term, sum(x.items)::bigint AS items FROM (SELECT term, items FROM posting"
            f" WHERE term = ANY (?::int[]) AND part = 0 AND {within.sql}"
            " UNION ALL SELECT y.term, u.sign FROM fresh u CROSS JOIN unnest(u.terms) y(term)"
            f" WHERE y.term = ANY (?::int[]) AND {within.sql}) x GROUP BY x.term",
            hashes, *within.values, hashes, *within.values,
        )  # fmt: skip

    def _read_alike(self, probe: Probe) -> Iterable[Any]:
        """Known terms that may stand for those nobody has, or for any that is only the beginning of
        one: (its place, the name, how many items hold it, how many of the projects asked for)."""
        begin = probe.begin
        if not begin:
            return ()
        shorter = [
            (place, name)
            for place, term in enumerate(begin, 1)
            for name in search.shorter_terms(term)
        ]
        within = _within("project", probe.filters.projects)
        return self._read(
            4,
            "WITH lacking AS MATERIALIZED (SELECT w.n, w.term FROM"
            " unnest(?::text[], ?::int[], ?::boolean[]) WITH ORDINALITY w(term, hash, always, n)"
            " WHERE w.always OR coalesce((SELECT items FROM held WHERE term = w.hash), 0) <= 0),"
            " name AS MATERIALIZED (SELECT l.n, t.text, t.hash FROM lacking l CROSS JOIN LATERAL"
            " (SELECT DISTINCT text, hash FROM term WHERE text > l.term"
            f" AND text < l.term || chr(1114111) ORDER BY text LIMIT {search.MOST_ALIKE}) t"
            " UNION ALL SELECT s.n, s.text, s.hash"
            " FROM unnest(?::int[], ?::text[], ?::int[]) s(n, text, hash)"
            " WHERE s.n IN (SELECT n FROM lacking)),"
            " beside AS MATERIALIZED (SELECT y.term, sum(u.sign) AS items,"
            f" sum(u.sign) FILTER (WHERE {within.sql}) AS own FROM fresh u"
            " CROSS JOIN unnest(u.terms) y(term)"
            " WHERE y.term IN (SELECT hash FROM name) GROUP BY y.term),"
            " counted AS MATERIALIZED (SELECT p.term, sum(p.items) AS items,"
            f" sum(p.items) FILTER (WHERE {within.sql}) AS own"
            " FROM (SELECT DISTINCT hash FROM name) h CROSS JOIN posting p"
            " ON p.term = h.hash AND p.part = 0 GROUP BY p.term)"
            " SELECT n.n, n.text, (coalesce(c.items, 0) + coalesce(b.items, 0))::bigint,"
            " (coalesce(c.own, 0) + coalesce(b.own, 0))::bigint FROM name n"
            " LEFT JOIN counted c ON c.term = n.hash LEFT JOIN beside b ON b.term = n.hash",
            list(begin), [signed_hash(term_hash(term)) for term in begin],
            [share == 1.0 or term not in probe.terms for term, share in begin.items()],
            [place for place, _ in shorter], [name for _, name in shorter],
            [signed_hash(term_hash(name)) for _, name in shorter],
            *within.values, *within.values,
        )  # fmt: skip

    def _share_choice(self, weighted: Weighted, probe: Probe, asked: Sequence[Filters]) -> None:
        """The ids of what the words choose, known to other questions as `chosen`, in order."""
        parts, values = [], list[Any]()
        if probe.words and (weighted or probe.must is not None):
            self._db.share(*_FRESH)
            self._db.share("gone", "SELECT u.item FROM fresh u WHERE u.sign < 0")
            self._db.share(
                "beside",
                "SELECT u.item, u.project, y.term FROM fresh u CROSS JOIN"
                " unnest(u.terms) y(term) WHERE u.sign > 0 AND y.term = ANY (?::int[])",
                _hashes_of(weighted),
            )  # fmt: skip
            for filters in asked:
                counted = filters == probe.filters  # how many items of these hold a term
                sql, more = self._choice_sql(weighted, replace(probe, filters=filters), counted)
                parts.append(f"({sql})")
                values += more
        self._db.share("chosen", " UNION ALL ".join(parts) or _NOTHING, *values)

    def _choice_sql(self, weighted: Weighted, probe: Probe, counted: bool) -> tuple[str, list[Any]]:
        filters, limit = probe.filters, probe.words
        passing = self._passing_of(probe, {term: held for term, _, held in weighted})
        narrowed = bool(filters.projects or passing)
        if not weighted:
            if not narrowed:
                return _NOTHING, []
            condition = passing.condition if passing else Condition()
            within = _within("i.project", filters.projects)
            condition.require(within.sql, *within.values)
            condition.require("i.status = 'active'")
            return (
                f"SELECT i.id FROM item i WHERE {condition.sql} ORDER BY i.id DESC LIMIT ?",
                [*condition.values, limit],
            )
        by_rarity = sorted(weighted, key=lambda entry: entry[2])[:_LISTS]
        chosen, left = 0, _POSTINGS
        for _, _, postings in by_rarity:
            if left <= 0 or (chosen and postings > left):
                break
            chosen += 1
            left -= postings
        first, rest = by_rarity[:chosen], by_rarity[chosen:] if narrowed else []
        if counted and passing is None:  # a list of so many is enough: none behind it is looked at
            enough = (place for place, one in enumerate(by_rarity, 1) if one[2] >= limit)
            rest = rest[: max(0, next(enough, _LISTS) - chosen)]
        most = _POSTINGS if first[0][2] > _POSTINGS else 0
        if chosen == 1 and not (rest or filters.without_session):
            most = limit  # of a list alone the newest are the best
        lists, values = _lists_sql(first, filters.projects, passing, most)
        named, taken = "", f"({lists})"
        if rest:
            # How rare a term is says nothing of what passes a filter: the rarest may be nowhere
            # there, and then further ones are taken, one by one.
            further, more = _lists_sql(rest, filters.projects, passing, _POSTINGS)
            values += [*more, limit, limit]
            taken = "taken"
            named = (
                f"WITH first AS MATERIALIZED ({lists}), further AS MATERIALIZED (SELECT x.n,"
                f" x.weight, x.id FROM ({further}) x"
                " WHERE (SELECT count(DISTINCT f.id) FROM first f) < ?),"
                " seen AS MATERIALIZED (SELECT a.id, min(a.n) AS n FROM (SELECT id, 0 AS n"
                " FROM first UNION ALL SELECT id, n FROM further) a GROUP BY a.id),"
                " needed AS MATERIALIZED (SELECT d.n FROM (SELECT DISTINCT n FROM further) d"
                " WHERE (SELECT count(*) FROM seen s WHERE s.n < d.n) < ?),"
                " taken AS (SELECT n, weight, id FROM first UNION ALL"
                " SELECT n, weight, id FROM further"
                " WHERE n IN (SELECT n FROM needed)) "
            )
        asking, own = "", []
        if filters.without_session:
            asking = (
                " WHERE l.id NOT IN (SELECT id FROM item WHERE session <> 0 AND session IN"
                " (SELECT id FROM session WHERE key = ?))"
            )
            own = [filters.without_session]
        return (
            f"{named}SELECT l.id::bigint AS id FROM {taken} l{asking} GROUP BY l.id"
            " ORDER BY sum(l.weight) DESC, l.id DESC LIMIT ?",
            [*values, *own, limit],
        )

    def _passing_of(self, probe: Probe, held: Mapping[str, int]) -> Passing | None:
        """What must hold besides the project; None: nothing."""
        filters = replace(probe.filters, without_session="", projects=())
        condition, needs_rows = Condition(), filters != ANYTHING
        if needs_rows:
            wanted = self._filter_items(filters)
            condition.require(wanted.sql, *wanted.values)
        must = probe.must
        for part in (index.must_condition(must, held), index.excluded_condition(must, held)):
            if part:
                condition.require(part.sql, *part.values)
        return Passing(condition, needs_rows) if condition.values else None

    # --- by meaning ------------------------------------------------------------------------------

    def _nearest_of(self, probe: Probe, asked: Sequence[Filters]) -> dict[int, Nearness]:
        """What is nearest under each of these filters."""
        vector = probe.vector() if probe.vector is not None else None
        if vector is None or probe.nearest < 1:
            return {}
        wanted = max(EACH * probe.nearest, FEWEST)
        reads = [self._read_near(vector, probe.model, filters, wanted) for filters in asked]
        near: dict[int, Nearness] = {}
        for filters, read in zip(asked, reads, strict=True):
            looked_at, most = list(read), wanted
            while True:
                there = [row for row in looked_at if row[2] is not None]
                found = nearest_parts(vector, there)
                if len(found) >= probe.nearest or len(looked_at) < most or filters == ANYTHING:
                    break
                most *= WIDER
                looked_at = list(self._read_near(vector, probe.model, filters, most))
            ordered = sorted(found.items(), key=lambda pair: (-pair[1].cosine, -pair[0]))
            near |= dict(ordered[: probe.nearest])
        return near

    def _read_near(self, vector: Any, model: str, filters: Filters, most: int) -> Iterable[Any]:
        """(item, its parts, value) of those with the least distant codes; without a value where the
        item does not pass the filters."""
        among, others = Condition(), replace(filters, projects=(), without_session="")
        if len(filters.projects) == 1 and others == ANYTHING:
            within = _within("c.project", filters.projects)
            among.require(within.sql, *within.values)
        passing = self._filter_items(filters) if filters != ANYTHING else Condition()
        # LIMIT keeps the planner from reading all items that pass, however few are asked about.
        values_of = " LEFT JOIN vector v ON v.id = n.id"
        if passing.values:
            values_of = (
                f" LEFT JOIN LATERAL (SELECT i.id FROM item i WHERE i.id = n.item AND {passing.sql}"
                f" LIMIT 1) p ON true{values_of} AND p.id IS NOT NULL"
            )
        return self._read(
            3,
            "WITH near AS MATERIALIZED (SELECT c.id, c.item FROM vector_code c"
            f" WHERE c.model = ? AND {among.sql}"
            " ORDER BY bit_count(c.code # ?::bit varying), c.item DESC, c.id LIMIT ?)"
            f" SELECT n.item, v.parts, v.value FROM near n{values_of} ORDER BY n.id",
            model, *among.values, self._stored_code(sign_code(vector, model)), most,
            *passing.values,
        )  # fmt: skip

    # --- what stands beside it -------------------------------------------------------------------

    def around(
        self,
        probe: Probe,
        likeliest: Sequence[int],
        known: Collection[int],
        near: Collection[int],
        turns: Collection[TurnKey] = (),
    ) -> Neighbours:
        self._db.forget_reads()
        self._db.share("pair", search.NEIGHBOURS, str(list(likeliest)))
        self._db.share(
            "missing",
            "SELECT DISTINCT v.id AS value FROM pair p CROSS JOIN LATERAL"
            " (VALUES (p.before), (p.behind)) v(id) WHERE v.id IS NOT NULL"
            " AND v.id NOT IN (SELECT value FROM json_each(?))", str(list(known)),
        )  # fmt: skip
        pairs = self._read(3, "SELECT id, coalesce(before, 0), coalesce(behind, 0) FROM pair")
        found = self._read_candidates("missing")
        # A session is of one project, so these filters its neighbours pass by themselves.
        own = replace(probe.filters, projects=(), without_session="", without_projects=())
        passing: Iterable[Any] | None = None
        if own != ANYTHING:
            condition = self._filter_items(probe.filters)
            passing = self._read(
                1, "SELECT i.id FROM missing j CROSS JOIN item i ON i.id = j.value"
                f" WHERE {condition.sql}", *condition.values,
            )  # fmt: skip
        vector = probe.vector() if probe.vector is not None else None
        parts: Iterable[Any] = ()
        if vector is not None:
            unknown = str([id_ for id_ in known if id_ not in near])
            parts = self._read(
                3, "SELECT v.item, v.parts, v.value FROM (SELECT value FROM json_each(?)"
                " UNION ALL SELECT value FROM missing) j CROSS JOIN vector v ON v.item = j.value"
                " WHERE v.model = ? ORDER BY v.id", unknown, probe.model,
            )  # fmt: skip
        having = self._read_having("missing", probe.names)
        said, cards = search.split_said(self._read_said(turns))
        more = list(map(Candidate._make, found))
        ids = (one.id for one in more) if passing is None else (id_ for (id_,) in passing)
        return Neighbours(
            {id_: (before, behind) for id_, before, behind in pairs}, more, frozenset(ids),
            nearest_parts(vector, list(parts)) if vector is not None else {},
            dict(having), said, cards,
        )  # fmt: skip

    def texts(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> model.Texts:
        self._db.forget_reads()
        return super().texts(ids, use_of)

    def _take_vector_ids(self, number: int) -> int:
        sql = "SELECT min(nextval('vector_number')) FROM generate_series(1, ?)"
        return int(self._first_value(sql, number) or 0)

    def _forget_vectors(self, item: int) -> None:
        self._db.execute(
            "WITH waiting AS (DELETE FROM unembedded WHERE item = ?1),"
            " gone AS (DELETE FROM vector WHERE item = ?1 RETURNING id)"
            " DELETE FROM vector_code WHERE id IN (SELECT id FROM gone)", (item,),
        )  # fmt: skip

    def _count_embedded(self, more: int) -> None:
        """Nobody counts: every writer would have to wait for that row."""

    def _stored_code(self, code: bytes) -> str:
        return format(int.from_bytes(code, "big"), f"0{8 * len(code)}b")

    def _read_code(self, stored: Any) -> bytes:
        return int(stored, 2).to_bytes(len(stored) // 8, "big")


def _within(column: str, projects: Sequence[str]) -> Condition:
    """It is one of these projects', given by name or key; any, where none is given."""
    condition = Condition()
    if projects:
        names = list(projects)
        condition.require(
            f"{column} = ANY (ARRAY(SELECT id FROM project"
            " WHERE name = ANY (?::text[]) OR key = ANY (?::text[])))", names, names,
        )  # fmt: skip
    return condition


def _choose_alike(
    found: Iterable[Any], terms: Sequence[str]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """By term the names that stand for it, and how many items of those asked for hold each."""
    held: dict[str, dict[str, int]] = {}
    among: dict[str, int] = {}
    for place, name, number, own in found:
        held.setdefault(terms[place - 1], {})[name] = number
        among[name] = own
    return {term: search.choose_alike(term, counts) for term, counts in held.items()}, among


def _lists_sql(
    terms: Weighted, projects: Sequence[str], passing: Passing | None, most: int
) -> tuple[str, list[Any]]:
    """(place, weight, id) of the items that hold each of these terms; at most so many of each, the
    newest. 0: all, for their number is known to be small."""
    within = _within("p.project", projects)
    beside = _within("b.project", projects)
    part = f"FROM posting p WHERE p.term = w.term AND {within.sql}"
    values = list(within.values)
    listed, where, more = "i", "", list[Any]()
    if passing is not None:
        where, more = f" WHERE {passing.condition.sql}", passing.condition.values
        if passing.needs_rows:
            listed = "h JOIN item i ON i.id = h.id"
    elif most:
        # In parts above this id there are enough: the others are not taken apart.
        part += (
            " AND p.ids[cardinality(p.ids)] >= coalesce((SELECT max(b.low) FROM (SELECT a.low,"
            " sum(a.items) OVER (ORDER BY a.low DESC ROWS UNBOUNDED PRECEDING) AS upto FROM"
            f" (SELECT p.ids[1] AS low, cardinality(p.ids) AS items {part}"
            f" ORDER BY low DESC NULLS LAST LIMIT {_PARTS}) a) b"
            f" WHERE b.upto >= {most} + (SELECT count(*) FROM gone)), 0)"
        )
        values *= 2
    sql = (
        "SELECT w.n, w.weight, x.id FROM unnest(?::int[], ?::float8[])"
        " WITH ORDINALITY w(term, weight, n) CROSS JOIN LATERAL (SELECT i.id FROM"
        f" (SELECT y.id FROM (SELECT unnest(p.ids) AS id {part}) y"
        " WHERE y.id NOT IN (SELECT item FROM gone)"
        " UNION ALL SELECT b.item FROM beside b WHERE b.term = w.term"
        f" AND {beside.sql}) {listed}{where}"
        f"{f' ORDER BY i.id DESC LIMIT {most}' if most else ''}) x"
    )
    weights = [weight for _, weight, _ in terms]
    return sql, [_hashes_of(terms), weights, *values, *beside.values, *more]


def _hashes_of(terms: Weighted) -> list[int]:
    return [signed_hash(term_hash(term)) for term, _, _ in terms]
