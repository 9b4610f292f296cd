"""Searching on PostgreSQL: lists of terms, and codes of vectors compared by the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Any

from yester.model import ANYTHING, Filters, Nearness, Probe, replace
from yester.store.postgres import index
from yester.store.postgres.connection import Connection
from yester.store.postgres.index import array_text, signed_hash
from yester.store.rows.rows import Condition
from yester.store.rows.search import EACH, FEWEST, WIDER, SearchRows, Weighted
from yester.store.rows.vectors import nearest_parts
from yester.text.terms import term_hash
from yester.text.vectors import sign_code

_POSTINGS = 3_500  # looked at per query: enough for the rarest terms of any question
_LISTS = 32  # terms that choose candidates; all of them score


class ServerSearch(Connection, SearchRows):
    """The part of `PostgresStore` that is asked in the way of PostgreSQL."""

    def _by_words(
        self, weighted: Weighted, probe: Probe, projects: Sequence[int], _sessions: Sequence[int]
    ) -> list[int]:
        limit = probe.words
        condition = self._choice_condition(probe)
        if not weighted:
            if not (projects or condition):
                return []
            condition = condition or Condition()
            if projects:
                condition.require_one_of("i.project", projects)
            condition.require("i.status = 'active'")
            return self._all_ids(
                f"SELECT i.id FROM item i WHERE {condition.sql} ORDER BY i.id DESC LIMIT ?",
                *condition.values, limit,
            )  # fmt: skip
        by_rarity = sorted(weighted, key=lambda entry: entry[2])[:_LISTS]
        chosen, left = 0, _POSTINGS
        for _, _, postings in by_rarity:
            if left <= 0 or (chosen and postings > left):
                break
            chosen += 1
            left -= postings
        own = self._all_ids(
            "SELECT id FROM item WHERE session <> 0 AND session IN"
            " (SELECT id FROM session WHERE key = ?)", probe.filters.without_session,
        ) if probe.filters.without_session else ()  # fmt: skip
        lists, values = _lists_sql(by_rarity[:chosen], projects, condition)
        found = self._db.execute(
            f"SELECT l.id, sum(l.weight ORDER BY l.n) AS score FROM ({lists}) l"
            " GROUP BY l.id ORDER BY score DESC, l.id DESC LIMIT ?",
            (*values, limit + len(own)),
        )
        scores = dict[int, float](iter(found))
        if projects or condition:
            self._add_lists(scores, by_rarity[chosen:], projects, condition, limit)
        for id_ in own:
            scores.pop(id_, None)
        best = nlargest(limit, zip(scores.values(), scores.keys(), strict=True))
        return [id_ for _, id_ in best]

    def _add_lists(
        self,
        scores: dict[int, float],
        further: Weighted,
        projects: Sequence[int],
        condition: Condition | None,
        limit: int,
    ) -> None:
        """How rare a term is says nothing of what passes a filter: the rarest may be nowhere there,
        and then further ones are taken, one by one."""
        if len(scores) >= limit or not further:
            return
        lists, values = _lists_sql(further, projects, condition)
        found = self._db.execute(
            f"SELECT l.weight, array_agg(l.id) FROM ({lists}) l GROUP BY l.n, l.weight"
            " ORDER BY l.n", values,
        )  # fmt: skip
        for weight, ids in found:
            if len(scores) >= limit:
                break
            for id_ in ids:
                scores[id_] = scores.get(id_, 0.0) + weight

    def _choice_condition(self, probe: Probe) -> Condition | None:
        """What must hold besides the project; None: nothing."""
        filters = replace(probe.filters, without_session="", projects=())
        condition = Condition()
        if filters != ANYTHING:
            wanted = self._filter_items(filters)
            condition.require(wanted.sql, *wanted.values)
        for part in (index.must_condition(probe.must), index.excluded_condition(probe.must)):
            if part:
                condition.require(part.sql, *part.values)
        return condition if condition.values else None

    def _term_frequencies(self, terms: Iterable[str], projects: Sequence[int]) -> dict[str, int]:
        return index.count_items(self._db, list(terms), projects)

    def _terms_between(self, low: str, high: str, most: int) -> list[str]:
        found = self._db.execute(
            "SELECT DISTINCT text FROM term WHERE text > ? AND text < ? ORDER BY text LIMIT ?",
            (low, high, most),
        )
        return [row[0] for row in found]

    def _nearest_items(
        self, vector: Any, model: str, filters: Filters, limit: int
    ) -> dict[int, Nearness]:
        if limit < 1:
            return {}
        among, narrowed = Condition(), filters != ANYTHING
        others = replace(filters, projects=(), without_session="")
        if len(filters.projects) == 1 and others == ANYTHING:
            (project,) = self._filter_ids(filters)[0]
            among.require("c.item IN (SELECT id FROM item WHERE project = ?)", project)
            narrowed = bool(filters.without_session)
        passing = self._filter_items(filters) if narrowed else Condition()
        exists = f" AND EXISTS (SELECT 1 FROM item i WHERE i.id = n.item AND {passing.sql})"
        exists = exists if narrowed else ""
        code = self._stored_code(sign_code(vector, model))
        wanted = max(EACH * limit, FEWEST)
        while True:
            looked_at: list[Any] = self._db.execute(
                "WITH near AS MATERIALIZED (SELECT c.id, c.item FROM vector_code c"
                f" WHERE c.model = ? AND {among.sql}"
                " ORDER BY bit_count(c.code # ?::bit varying), c.item DESC, c.id LIMIT ?)"
                " SELECT n.item, v.parts, v.value FROM near n LEFT JOIN vector v ON v.id = n.id"
                f"{exists}"
                " ORDER BY n.id",
                (model, *among.values, code, wanted, *passing.values),
            ).fetchall()
            rows = [row for row in looked_at if row[2] is not None]
            found = nearest_parts(vector, rows)
            if len(found) >= limit or len(looked_at) < wanted or not narrowed:
                break
            wanted *= WIDER
        ordered = sorted(found.items(), key=lambda pair: (-pair[1].cosine, -pair[0]))
        return dict(ordered[:limit])

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


def _lists_sql(
    terms: Weighted, projects: Sequence[int], condition: Condition | None
) -> tuple[str, list[object]]:
    """(place, weight, id) of the items that hold each of these terms, the newest of them."""
    join, where, more = "", "", list[object]()
    if condition:
        join, where = " JOIN item i ON i.id = h.id", f" WHERE {condition.sql}"
        more = condition.values
    sql = (
        "SELECT w.n, w.weight, x.id FROM unnest(?::int[], ?::float8[])"
        " WITH ORDINALITY w(term, weight, n) CROSS JOIN LATERAL (SELECT h.id FROM"
        f" holding(w.term, ?::bigint[]) h(id){join}{where} ORDER BY h.id DESC LIMIT {_POSTINGS}) x"
    )
    hashes = array_text(signed_hash(term_hash(term)) for term, _, _ in terms)
    weights = "{" + ",".join(repr(weight) for _, weight, _ in terms) + "}"
    within = array_text(projects) if projects else None
    return sql, [hashes, weights, within, *more]
