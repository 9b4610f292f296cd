"""The SQLite index: full text, term vectors, document frequencies, filter tokens.

Plain functions on a connection, called by SqliteStore inside its transaction. Everything here is
derived from the rows of `item` and can be rebuilt.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, islice

import apsw
import msgspec
from msgspec import Struct

from yester import model
from yester.model import Document, Expression, Filters, Item
from yester.store.rows.rows import Condition, put_sql
from yester.store.rows.search import Weighted
from yester.text.document import read_fields
from yester.text.terms import term_hash

_PROJECT_BITS = 24
# Postings looked at per query: enough for the rarest terms of any question, bounded at any size.
_POSTINGS = 3_500
_KNOWN_TERMS = 50_000  # bound of the set that saves writing known terms again
_RARE = 2_000  # postings of a term that is cheaper to read whole than together with a filter
_LISTS = 32  # terms that choose candidates; all of them score
decode_ids = msgspec.json.Decoder(list[int]).decode
_OF_LENGTHS = ("project", "kind", "field")
_ADD_LENGTHS = put_sql("length", (*_OF_LENGTHS, "items", "terms"), _OF_LENGTHS, adding=True)
_ADD_FREQUENCIES = put_sql("frequency", ("key", "items"), ("key",), adding=True)
_NOT_TOKEN = re.compile(r"[^a-z0-9_.-]+")


class IndexWriter:
    """Collects what happens to the index within a transaction and writes it in one go.

    Frequencies and lengths are summed up first: a batch touches most of its terms many times.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._known: set[str] = set()  # terms that stand in `term` already
        self._clear_batch()

    def _clear_batch(self) -> None:
        self._documents: list[tuple[int, str, Document]] = []
        self._added: defaultdict[int, Counter[str]] = defaultdict(Counter)  # project → terms
        self._changes: Counter[int] = Counter()  # of frequencies, by key
        self._lengths: defaultdict[tuple[int, str, int], list[int]] = defaultdict(lambda: [0, 0])

    def forget_batch(self) -> None:
        """After a rollback: nothing of it happened."""
        self._known.clear()
        self._clear_batch()

    def __len__(self) -> int:
        return len(self._documents)

    def add_item(
        self, id_: int, project: int, session: int, item: Item, document: Document
    ) -> None:
        named = (
            ("p", project), ("k", item.kind), ("s", session), ("t", item.type), ("a", item.agent),
            ("o", item.tool),
        )  # fmt: skip
        tokens = [filter_token(prefix, value) for prefix, value in named if value]
        self._documents.append((id_, " ".join(tokens), document))
        self._added[project].update(document.terms)
        self._measure_fields(project, item.kind, document.lengths, 1)

    def remove_item(self, id_: int, project: int, kind: str) -> None:
        """Take an item out; harmless where it is not in."""
        row = self._db.execute("SELECT vector FROM item_terms WHERE item = ?", (id_,)).fetchone()
        if row is None:
            return
        fields = read_fields(row[0])
        for hashed in set[int]().union(*(field.hashes for field in fields)):
            self._changes[hashed << _PROJECT_BITS | project] -= 1
        self._measure_fields(project, kind, [(field.field, field.length) for field in fields], -1)
        self._db.execute("DELETE FROM item_text WHERE rowid = ?", (id_,))
        self._db.execute("DELETE FROM item_terms WHERE item = ?", (id_,))

    def _measure_fields(
        self, project: int, kind: str, lengths: Iterable[tuple[int, int]], sign: int
    ) -> None:
        for field, terms in ((-1, 0), *lengths):  # field -1 counts the items themselves
            sums = self._lengths[project, kind, field]
            sums[0] += sign
            sums[1] += sign * terms

    def clear_index(self) -> None:
        """Empty the whole index."""
        self.forget_batch()
        self._db.execute("INSERT INTO item_text(item_text) VALUES ('delete-all')")
        for table in ("item_terms", "frequency", "length", "term"):
            self._db.execute(f"DELETE FROM {table}")

    def write_batch(self) -> None:
        many = self._db.executemany
        many(
            "INSERT INTO item_text(rowid, terms) VALUES (?, ?)",
            ((id_, f"{tokens} {' '.join(doc.terms)}") for id_, tokens, doc in self._documents),
        )
        many(
            "INSERT INTO item_terms(item, vector) VALUES (?, ?)",
            ((id_, doc.vector) for id_, _, doc in self._documents),
        )
        self._write_frequencies()
        many(_ADD_LENGTHS, [(*key, *sums) for key, sums in self._lengths.items()])
        new = set[str]().union(*self._added.values()) - self._known
        many(
            "INSERT OR IGNORE INTO term(hash, text) VALUES (?, ?)",
            sorted((term_hash(term), term) for term in new),
        )
        if len(self._known) > _KNOWN_TERMS:
            self._known.clear()
        self._known |= new
        self._clear_batch()

    def _write_frequencies(self) -> None:
        changes = self._changes
        for project, terms in self._added.items():
            for term, n in terms.items():
                changes[term_hash(term) << _PROJECT_BITS | project] += n
        self._db.executemany(_ADD_FREQUENCIES, sorted(changes.items()))
        self._db.executemany(
            "DELETE FROM frequency WHERE key = ? AND items <= 0",
            [(key,) for key, n in changes.items() if n < 0],
        )


@lru_cache(4096)
def filter_token(prefix: str, value: str | int) -> str:
    """A filter token: `p:12`, `t:bugfix`. Values are folded, so filters do not mind case."""
    return f"{prefix}:{_NOT_TOKEN.sub('-', str(value).lower())}"


def filter_query(filters: Filters, projects: Sequence[int], sessions: Sequence[int]) -> list[str]:
    """The filters as full-text expressions over filter tokens."""
    groups: Sequence[tuple[str, Iterable[str | int]]] = (
        ("p", projects), ("k", filters.kinds), ("t", filters.types), ("s", sessions),
        ("a", filter(None, [filters.agent])), ("o", filter(None, [filters.tool])),
    )  # fmt: skip
    found = [[f'"{filter_token(prefix, one)}"' for one in values] for prefix, values in groups]
    return [f"({' OR '.join(tokens)})" for tokens in found if tokens]


def match_expression(must: Expression | None) -> str:
    """What every answer must fulfil as a full-text expression. A phrase becomes its terms: there
    are no positions here, whoever asks looks at the text. "" where it restricts nothing."""
    match must:
        case model.Word(terms) | model.Phrase(terms):
            return "(" + " AND ".join(f'"{term}"' for term in terms) + ")" if terms else ""
        case model.Prefix(text):
            return f'("{text}" *)'
        case model.Every(parts):
            wanted = list(filter(None, map(match_expression, parts)))
            if not wanted:
                return ""  # NOT alone: the caller's own terms come before it
            found = "(" + " AND ".join(wanted) + ")"
            unwanted = excluded_expression(must)
            return f"({found} NOT ({unwanted}))" if unwanted else found
        case model.Some(parts):
            either = [match_expression(part) for part in parts]
            return "(" + " OR ".join(either) + ")" if all(either) else ""
    return ""


def excluded_expression(must: Expression | None, projects: Iterable[int] = ()) -> str:
    """What the question excludes at its top level, and everything of these projects."""
    parts = must.parts if isinstance(must, model.Every) else (must,)
    found = [match_expression(part.part) for part in parts if isinstance(part, model.Without)]
    found += [f'"{filter_token("p", one)}"' for one in projects]
    return " OR ".join(filter(None, found))


def count_items(
    db: apsw.Connection, terms: Collection[str], projects: Sequence[int] = ()
) -> dict[str, int]:
    """How many items hold each term, of these projects or of all."""
    lowest = [term_hash(term) << _PROJECT_BITS for term in terms]
    if projects:
        where = f"key IN ({','.join(f'j.value + {one}' for one in projects)})"
    else:
        where = f"key BETWEEN j.value AND j.value + {(1 << _PROJECT_BITS) - 1}"
    counts = db.execute(
        f"SELECT (SELECT sum(items) FROM frequency WHERE {where})"
        " FROM json_each(?) j ORDER BY j.key",
        (str(lowest),),
    )
    return {term: count or 0 for term, (count,) in zip(terms, counts, strict=True)}


class Postings(Struct):
    """Which items hold a term, under one set of filters.

    `narrowing` are expressions every answer fulfils. `exact` is a condition on `item i`, joined in
    only where tokens cannot express the filter. `members` marks the ids that pass, where the filter
    is one project; of what is `left_out` nothing is answered.

    A filter token may have more postings than the term it narrows, and walking them costs the same
    for every term. So rare terms are read without the filter and compared with the answer of one
    query that asks for all of them with the filter, or with the marks of a project's members.
    """

    db: apsw.Connection
    narrowing: Sequence[str]
    excluded: str = ""
    exact: Condition | None = None
    members: bytearray | None = None
    left_out: Collection[int] = ()

    @property
    def _filtered(self) -> bool:
        return bool(self.narrowing or self.excluded or self.exact)

    def choose_likeliest(self, weighted: Weighted, limit: int) -> list[int]:
        """Ids by the summed weight of the (term, weight, postings) they hold, rarest terms first.

        Terms are taken until the posting budget is spent (always at least one, then its newest
        postings), so the cost has a ceiling whatever the size of the store; newer ids win ties.
        Without terms what narrows decides alone.
        """
        if not weighted:
            return self._narrowed_ids("", limit)
        chosen: list[tuple[str, float]] = []
        left = _POSTINGS
        by_rarity = sorted(weighted, key=lambda entry: entry[2])
        for term, weight, postings in by_rarity[:_LISTS]:
            if left <= 0 or (chosen and postings > left):
                break
            chosen.append((term, weight))
            left -= postings
        scores: dict[int, float] = {}
        held = scores.get
        for weight, ids in self._posting_lists(chosen):
            for id_ in ids:
                scores[id_] = held(id_, 0.0) + weight
        if self._filtered:
            # How rare a term is says nothing of what passes: the rarest may be nowhere there.
            for term, weight, _ in by_rarity[len(chosen) : _LISTS]:
                if len(scores) >= limit:
                    break
                for id_ in self._narrowed_ids(f'"{term}"', _POSTINGS):
                    scores[id_] = held(id_, 0.0) + weight
        for id_ in self.left_out:
            scores.pop(id_, None)
        return _best_ids(scores, limit)

    def _posting_lists(
        self, chosen: Sequence[tuple[str, float]]
    ) -> Iterator[tuple[float, Sequence[int]]]:
        marks = self.members
        # Reading a posting costs as much as a dozen that are walked past to find both words.
        most = _RARE if marks is None else max(_RARE, marks.count(1) // 12)
        held = count_items(self.db, [term for term, _ in chosen]) if self._filtered else {}
        rare: list[tuple[str, float, list[int]]] = []
        for term, weight in chosen:
            quoted = f'"{term}"'
            if not self._filtered or held[term] > most:
                yield weight, self._narrowed_ids(quoted, _POSTINGS)
                continue
            ids = self._matching_ids(quoted, most)
            if marks is not None:
                own = compress(ids, map(marks.__getitem__, ids))
                yield weight, list(islice(own, _POSTINGS))
            else:
                rare.append((quoted, weight, ids))
        if rare:
            any_of = " OR ".join(term for term, _, _ in rare)
            longest = sum(len(ids) for _, _, ids in rare)
            allowed = frozenset(self._narrowed_ids(f"({any_of})", longest))
            for _, weight, ids in rare:
                yield weight, [id_ for id_ in ids if id_ in allowed]

    def _narrowed_ids(self, expression: str, most: int) -> list[int]:
        """Ids, newest first, for an expression and everything that must hold besides."""
        found = " AND ".join(filter(None, (expression, *self.narrowing)))
        if not found:
            return []
        if self.excluded:
            found = f"({found}) NOT ({self.excluded})"
        return self._matching_ids(found, most, self.exact)

    def _matching_ids(self, match: str, most: int, exact: Condition | None = None) -> list[int]:
        # CROSS: the planner must not walk the items and ask the full text about each of them. One
        # JSON text instead of a row per posting takes half the time.
        join, where, values = "", "", []
        if exact is not None:
            join = " CROSS JOIN item i ON i.id = item_text.rowid"
            where, values = f" AND {exact.sql}", exact.values
        found = self.db.execute(
            f"SELECT json_group_array(id) FROM (SELECT item_text.rowid AS id FROM item_text{join}"
            f" WHERE item_text MATCH ?{where} ORDER BY item_text.rowid DESC LIMIT ?)",
            (match, *values, most),
        )
        return decode_ids(found.get)


def _best_ids(scores: Mapping[int, float], most: int) -> list[int]:
    """The best first, of equals the newest. Of thousands few are wanted: to sort their bare scores
    costs a third of sorting them with their ids."""
    least = sorted(scores.values(), reverse=True)[most - 1] if 0 < most < len(scores) else 0.0
    best = [id_ for id_, score in scores.items() if score > least]
    best.sort(key=lambda id_: (-scores[id_], -id_))
    equal = sorted((id_ for id_, score in scores.items() if score == least), reverse=True)
    return (best + equal)[:most]
