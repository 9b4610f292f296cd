"""The SQLite index: full text, term vectors, document frequencies, filter tokens.

Plain functions on a connection, called by SqliteStore inside its transaction. Everything here is
derived from the rows of `item` and can be rebuilt.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from heapq import nlargest

import apsw
import msgspec

from yester.clock import DAY
from yester.model import (
    Document,
    Every,
    Expression,
    Filters,
    Item,
    Phrase,
    Prefix,
    Some,
    Without,
    Word,
)
from yester.text.document import decode_vector
from yester.text.terms import term_hash

PROJECT_BITS = 24
# Postings looked at per query: enough for the rarest terms of any question, bounded at any size.
POSTINGS = 3_500
_KNOWN_TERMS = 500_000  # bound of the set that saves writing known terms again
_PROJECTS_MARKED = 16
_RARE = 2_000  # postings of a term that is cheaper to read whole than together with a filter
_LISTS = 32  # terms that choose candidates; all of them score
_decode_ids = msgspec.json.Decoder(list[int]).decode
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
        # by project: what was added is known by its terms, what was taken by their hashes
        self._added: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._taken: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._terms: Counter[tuple[int, str, int]] = Counter()
        self._items: Counter[tuple[int, str, int]] = Counter()

    def forget_batch(self) -> None:
        """After a rollback: nothing of it happened."""
        self._known.clear()
        self._clear_batch()

    def __len__(self) -> int:
        return len(self._documents)

    def add_item(
        self, id_: int, project: int, session: int, item: Item, document: Document
    ) -> None:
        month = _month_of(item.epoch // DAY)
        tokens = [
            filter_token("p", project),
            filter_token("k", item.kind),
            filter_token("m", month),
        ]
        if session:
            tokens.append(filter_token("s", session))
        for prefix, value in (("t", item.type), ("a", item.agent), ("o", item.tool)):
            if value:
                tokens.append(filter_token(prefix, value))
        self._documents.append((id_, " ".join(tokens), document))
        self._added[project].update(document.terms)
        self._measure_fields(project, item.kind, document.lengths, 1)

    def remove_item(self, id_: int, project: int, kind: str) -> None:
        """Take an item out; harmless where it is not in."""
        row = self._db.execute("SELECT vector FROM item_terms WHERE item = ?", (id_,)).fetchone()
        if row is None:
            return
        fields = decode_vector(row[0])
        distinct: set[int] = set()
        for field in fields:
            distinct.update(field.counts)
        self._taken[project].update(distinct)
        self._measure_fields(project, kind, [(field.field, field.length) for field in fields], -1)
        self._db.execute("DELETE FROM item_text WHERE rowid = ?", (id_,))
        self._db.execute("DELETE FROM item_terms WHERE item = ?", (id_,))

    def _measure_fields(
        self, project: int, kind: str, lengths: Iterable[tuple[int, int]], sign: int
    ) -> None:
        self._items[project, kind, -1] += sign  # field -1 counts the items themselves
        for field, terms in lengths:
            self._items[project, kind, field] += sign
            self._terms[project, kind, field] += sign * terms

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
        many(
            "INSERT INTO length(project, kind, field, items, terms) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET items = items + excluded.items,"
            " terms = terms + excluded.terms",
            [(*key, n, self._terms[key]) for key, n in self._items.items()],
        )
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
        changes: Counter[int] = Counter()
        for project, terms in self._added.items():
            for term, n in terms.items():
                changes[term_hash(term) << PROJECT_BITS | project] += n
        for project, hashes in self._taken.items():
            for number, n in hashes.items():
                changes[number << PROJECT_BITS | project] -= n
        self._db.executemany(
            "INSERT INTO frequency(key, items) VALUES (?, ?)"
            " ON CONFLICT(key) DO UPDATE SET items = items + excluded.items",
            sorted(changes.items()),
        )
        self._db.executemany(
            "DELETE FROM frequency WHERE key = ? AND items <= 0",
            [(key,) for key, n in changes.items() if n < 0],
        )


@lru_cache(4096)
def filter_token(prefix: str, value: str | int) -> str:
    """A filter token: `p:12`, `t:bugfix`. Values are folded, so filters do not mind case."""
    return f"{prefix}:{_NOT_TOKEN.sub('-', str(value).lower())}"


@lru_cache(4096)
def _month_of(day: int) -> str:
    """The month of a day counted from 1970, as 202602; absurd days become the nearest sane one."""
    moment = date(1970, 1, 1) + timedelta(days=min(max(day, 0), 2_932_896))
    return f"{moment.year:04d}{moment.month:02d}"


def filter_query(filters: Filters, projects: Sequence[int], sessions: Sequence[int]) -> list[str]:
    """The filters as full-text expressions over filter tokens."""
    groups = [
        [filter_token("p", project) for project in projects],
        [filter_token("k", kind) for kind in filters.kinds],
        [filter_token("t", type_) for type_ in filters.types],
        [filter_token("s", session) for session in sessions],
        [filter_token("a", filters.agent)] if filters.agent else [],
        [filter_token("o", filters.tool)] if filters.tool else [],
        [filter_token("m", m) for m in _months_between(filters)],
    ]
    return ["(" + " OR ".join(f'"{t}"' for t in group) + ")" for group in groups if group]


def _months_between(filters: Filters) -> list[str]:
    """The months of a bounded range, to narrow it; more than two years are not worth the terms."""
    if filters.since is None or filters.until is None:
        return []
    first, last = _month_of(filters.since // DAY), _month_of(filters.until // DAY)
    year, number = int(first[:4]), int(first[4:])
    months = []
    while f"{year:04d}{number:02d}" <= last:
        months.append(f"{year:04d}{number:02d}")
        if len(months) > 24:
            return []
        year, number = (year + 1, 1) if number == 12 else (year, number + 1)
    return months


def match_expression(must: Expression | None) -> str:
    """What every answer must fulfil as a full-text expression. A phrase becomes its terms: there
    are no positions here, whoever asks looks at the text. "" where it restricts nothing."""
    match must:
        case Word(terms) | Phrase(terms):
            return "(" + " AND ".join(f'"{term}"' for term in terms) + ")" if terms else ""
        case Prefix(text):
            return f'("{text}" *)'
        case Every(parts):
            wanted = [m for p in parts if not isinstance(p, Without) and (m := match_expression(p))]
            unwanted = [
                m for p in parts if isinstance(p, Without) and (m := match_expression(p.part))
            ]
            if not wanted:
                return ""  # NOT alone: the caller's own terms come before it
            found = "(" + " AND ".join(wanted) + ")"
            return f"({found} NOT ({' OR '.join(unwanted)}))" if unwanted else found
        case Some(parts):
            either = [match_expression(part) for part in parts]
            return "(" + " OR ".join(either) + ")" if all(either) else ""
    return ""


def excluded_expression(must: Expression | None) -> str:
    """What the question excludes at its top level."""
    parts = must.parts if isinstance(must, Every) else (must,)
    found = [m for p in parts if isinstance(p, Without) and (m := match_expression(p.part))]
    return " OR ".join(found)


def choose_likeliest(
    db: apsw.Connection,
    weighted: Sequence[tuple[str, float, int]],
    narrowing: Sequence[str],
    excluded: str,
    exact: tuple[str, tuple[object, ...]],
    limit: int,
    members: bytearray | None = None,
) -> list[int]:
    """Ids by the summed weight of the (term, weight, postings) they hold, rarest terms first.

    Terms are taken until the posting budget is spent (always at least one, then its newest
    postings), so the cost has a ceiling whatever the size of the store; newer ids win ties.
    `narrowing` are expressions every answer fulfils; without terms they alone decide. `exact` is a
    condition on `item i`, joined in only where tokens cannot express the filter. `members` marks
    the ids that pass, where the filter is one project.
    """
    chosen: list[tuple[str, float]] = []
    left = POSTINGS
    by_rarity = sorted(weighted, key=lambda entry: entry[2])
    for term, weight, postings in by_rarity:
        if left <= 0 or len(chosen) >= _LISTS or (chosen and postings > left):
            break
        chosen.append((f'"{term}"', weight))
        left -= postings
    search = _Search(db, narrowing, excluded, exact, members)
    if not weighted:
        return search.narrowed_ids("", limit)
    scores: dict[int, float] = {}
    held = scores.get
    for weight, ids in search.posting_lists(chosen):
        for id_ in ids:
            scores[id_] = held(id_, 0.0) + weight
    if search.is_filtered:
        # How rare a term is says nothing of what passes: the rarest may be nowhere there.
        for term, weight, _ in by_rarity[len(chosen) : _LISTS]:
            if len(scores) >= limit:
                break
            for id_ in search.narrowed_ids(f'"{term}"', POSTINGS):
                scores[id_] = held(id_, 0.0) + weight
    best = nlargest(limit, zip(scores.values(), scores.keys(), strict=True))
    return [id_ for _, id_ in best]


class Members:
    """Which items belong to a project, a byte for each; only new items are read again."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[int, bytearray]] = {}

    def marks_of(self, db: apsw.Connection, project: int) -> bytearray:
        """A byte per id up to the newest; 1 where the item is the project's."""
        row = db.execute("SELECT coalesce(max(id), 0) FROM item").fetchone()
        newest: int = row[0] if row else 0
        seen, marks = self._marks.get(project, (0, bytearray(1)))
        if newest > seen:
            new = db.execute(
                "SELECT json_group_array(id) FROM item WHERE id > ? AND project = ?",
                (seen, project),
            ).fetchone()
            if len(self._marks) >= _PROJECTS_MARKED:
                self._marks.clear()
            marks.extend(bytes(newest + 1 - len(marks)))
            for id_ in _decode_ids(new[0] if new else "[]"):
                marks[id_] = 1
            self._marks[project] = (newest, marks)
        return marks

    def forget_marks(self) -> None:
        """Items have changed their project."""
        self._marks.clear()


class _Search:
    """Postings of terms under one set of filters.

    A filter token may have more postings than the term it narrows, and walking them costs the same
    for every term. So rare terms are read without the filter and compared with the answer of one
    query that asks for all of them with the filter, or with the marks of a project's members.
    """

    def __init__(
        self, db: apsw.Connection, narrowing: Sequence[str], excluded: str,
        exact: tuple[str, tuple[object, ...]], members: bytearray | None,
    ) -> None:  # fmt: skip
        self._db = db
        self._narrowing = list(narrowing)
        self._excluded = excluded
        self._condition, self._args = exact
        self._plain = not (narrowing or excluded or self._condition)
        self._members = members

    @property
    def is_filtered(self) -> bool:
        return not self._plain

    def posting_lists(
        self, chosen: Sequence[tuple[str, float]]
    ) -> Iterator[tuple[float, Sequence[int]]]:
        rare: list[tuple[str, float, list[int]]] = []
        for term, weight in chosen:
            if self._plain:
                yield weight, self._matching_ids(term, POSTINGS)
                continue
            ids = self._matching_ids(term, _RARE + 1)
            if len(ids) > _RARE:
                yield weight, self.narrowed_ids(term, POSTINGS)
            elif self._members is not None:
                mark = self._members
                yield weight, [id_ for id_ in ids if mark[id_]]
            else:
                rare.append((term, weight, ids))
        if rare:
            any_of = " OR ".join(term for term, _, _ in rare)
            most = sum(len(ids) for _, _, ids in rare)
            allowed = frozenset(self.narrowed_ids(f"({any_of})", most))
            for _, weight, ids in rare:
                yield weight, [id_ for id_ in ids if id_ in allowed]

    def narrowed_ids(self, expression: str, most: int) -> list[int]:
        """Ids, newest first, for an expression and everything that must hold besides."""
        parts = [expression, *self._narrowing] if expression else self._narrowing
        if not parts:
            return []
        found = " AND ".join(parts)
        if self._excluded:
            found = f"({found}) NOT ({self._excluded})"
        return self._matching_ids(found, most, self._condition, self._args)

    def _matching_ids(
        self, match: str, most: int, condition: str = "", args: tuple[object, ...] = ()
    ) -> list[int]:
        # CROSS: the planner must not walk the items and ask the full text about each of them. One
        # JSON text instead of a row per posting takes half the time.
        join = " CROSS JOIN item i ON i.id = item_text.rowid" if condition else ""
        row = self._db.execute(
            f"SELECT json_group_array(id) FROM (SELECT item_text.rowid AS id FROM item_text{join}"
            f" WHERE item_text MATCH ?{' AND ' + condition if condition else ''}"
            " ORDER BY item_text.rowid DESC LIMIT ?)",
            (match, *args, most),
        ).fetchone()
        return _decode_ids(row[0] if row else "[]")
