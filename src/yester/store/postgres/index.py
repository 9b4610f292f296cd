"""The index on PostgreSQL: lists of items by term and project, and how to choose from them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from yester import model
from yester.model import Document, Expression, Item
from yester.store.rows.rows import Condition, put_sql
from yester.text.document import read_fields
from yester.text.terms import term_hash

_FOLDED = 200  # items that may stand beside the lists
_MANY = 1_000  # items at once that are folded with the batch
_EACH = 100  # items of ours, until we look how many there are
_SECONDS = 1.0  # how often few of them are folded: every search reads what is not
_KNOWN_TERMS = 500_000  # bound of the set that saves writing known terms again
_OF_LENGTHS = ("project", "kind", "field")
_ADD_LENGTHS = put_sql("length", (*_OF_LENGTHS, "items", "terms"), _OF_LENGTHS, adding=True)
_HALF = 1 << 31


def signed_hash(hashed: int) -> int:
    """As four bytes with a sign, which is what there is."""
    return hashed - 2 * _HALF if hashed >= _HALF else hashed


def array_text(numbers: Iterable[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


class IndexWriter:
    """Collects what happens to the index within a transaction and writes it in one go."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self._known: set[tuple[int, str]] = set()  # terms that stand in `term` already
        self.written = 0  # items, since lists were folded by us
        self._folded = -_SECONDS  # when we last did so, however few there were
        self._clear_batch()

    def _clear_batch(self) -> None:
        self._documents: list[tuple[int, int, Document]] = []
        self._lengths: defaultdict[tuple[int, str, int], list[int]] = defaultdict(lambda: [0, 0])

    def forget_batch(self) -> None:
        """After a rollback: nothing of it happened."""
        self._known.clear()
        self._clear_batch()

    def __len__(self) -> int:
        return len(self._documents)

    def add_item(
        self, id_: int, project: int, session: int, item: Item, document: Document  # noqa: ARG002
    ) -> None:  # fmt: skip
        self._documents.append((id_, project, document))
        self._measure_fields(project, item.kind, document.lengths, 1)

    def remove_item(self, id_: int, project: int, kind: str) -> None:
        """Take an item out; harmless where it is not in."""
        row = self._db.execute(
            "DELETE FROM item_terms WHERE item = ? RETURNING vector", (id_,)
        ).fetchone()
        if row is None:
            return
        fields = read_fields(row[0])
        hashes = set[int]().union(*(field.hashes for field in fields))
        self._measure_fields(project, kind, [(field.field, field.length) for field in fields], -1)
        beside = self._db.execute(
            "DELETE FROM unfolded WHERE item = ? AND sign > 0 RETURNING 1", (id_,)
        ).fetchone()
        if beside is None:  # it is in the lists
            self._db.execute(
                "INSERT INTO unfolded(item, sign, project, terms) VALUES (?, -1, ?, ?)",
                (id_, project, array_text(map(signed_hash, hashes))),
            )

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
        self._db.ask("SELECT fold(0)")  # from here on to the end nobody else does
        for table in ("item_terms", "posting", "unfolded", "length", "term"):
            self._db.execute(f"DELETE FROM {table}")

    def write_batch(self) -> None:
        many, documents = self._db.executemany, self._documents
        if not (documents or self._lengths):
            return
        many(
            "INSERT INTO item_terms(item, vector) VALUES (?, ?)",
            [(id_, document.vector) for id_, _, document in documents],
        )
        many(
            "INSERT INTO unfolded(item, sign, project, terms) VALUES (?, 1, ?, ?)",
            [
                (id_, project, [signed_hash(term_hash(term)) for term in document.terms])
                for id_, project, document in documents
            ],
        )
        columns = (*_OF_LENGTHS, "items", "terms")
        sums = [(*key, *both) for key, both in sorted(self._lengths.items())]
        many(_ADD_LENGTHS, [dict(zip(columns, row, strict=True)) for row in sums])
        self._write_terms()
        self.written += len(documents)
        if len(documents) >= _MANY:
            self._db.ask("SELECT fold(1)")
            self.written = 0
        self._clear_batch()

    def fold_many(self) -> None:
        """After a transaction: what has been written goes into the lists, where it is much, and all
        of it once a second. Others write meanwhile; where one of them is at it already, it is left
        to that one."""
        resting = time.monotonic() - self._folded >= _SECONDS
        if self.written >= _EACH or (self.written and resting):
            self._folded = time.monotonic() if resting else self._folded
            self.written = 0
            self._db.ask(f"SELECT fold({1 if resting else _FOLDED})")

    def _write_terms(self) -> None:
        new = {(project, term) for _, project, doc in self._documents for term in doc.terms}
        new -= self._known
        if len(self._known) > _KNOWN_TERMS:
            self._known.clear()
        self._known |= new
        if new:
            ordered = sorted(new)
            self._db.ask(
                "INSERT INTO term(text, hash, project) SELECT * FROM"
                " unnest($1::text[], $2::int[], $3::int[]) ON CONFLICT DO NOTHING",
                [
                    [term for _, term in ordered],
                    array_text(signed_hash(term_hash(term)) for _, term in ordered),
                    array_text(project for project, _ in ordered),
                ],
            )


def must_condition(must: Expression | None, held: Mapping[str, int]) -> Condition | None:
    """What every answer must fulfil, as a condition on `item i`. A phrase becomes its terms: there
    are no positions here, whoever asks looks at the text. None where it restricts nothing. `held`:
    how many items hold a term, where that is known."""
    match must:
        case model.Word(terms) | model.Phrase(terms):
            return _hold_all(terms, held)
        case model.Prefix(text):
            found = Condition()
            found.require(
                "i.id IN (SELECT h.item FROM (SELECT DISTINCT hash FROM term"
                " WHERE text >= ? AND text < ?) t, LATERAL holding(t.hash, NULL) h(item))",
                text, text + "\U0010ffff",
            )  # fmt: skip
            return found
        case model.Every():
            parts = list(_every_part(must))
            told = [part for part in parts if isinstance(part, model.Word | model.Phrase)]
            others = (must_condition(part, held) for part in parts if part not in told)
            lists = _hold_all([term for part in told for term in part.terms], held)
            wanted = [part for part in (lists, *others) if part]
            if not wanted:
                return None
            unwanted = excluded_condition(must, held)
            return _join(" AND ", [*wanted, *([unwanted] if unwanted else [])])
        case model.Some(parts):
            either = [must_condition(part, held) for part in parts]
            return _join(" OR ", [part for part in either if part]) if all(either) else None
    return None


def excluded_condition(must: Expression | None, held: Mapping[str, int]) -> Condition | None:
    """Nothing of what the question excludes at its top level."""
    found = Condition()
    for part in _every_part(must):
        if isinstance(part, model.Without) and (one := must_condition(part.part, held)):
            found.require(f"NOT ({one.sql})", *one.values)
    return found if found.values else None


def _every_part(must: Expression | None) -> Iterator[Expression]:
    """What must hold at once, however it was put together."""
    if isinstance(must, model.Every):
        for part in must.parts:
            yield from _every_part(part)
    elif must is not None:
        yield must


def _hold_all(terms: Sequence[str], held: Mapping[str, int]) -> Condition | None:
    """The rarest first: of the others' lists only those parts are read that hold its items."""
    if not terms:
        return None
    rarest = sorted(dict.fromkeys(terms), key=lambda term: held.get(term, 0))
    found = Condition()
    # CASE keeps the planner from joining: it does not know how many items hold a word, and may read
    # all of them for each one that is looked at.
    found.require(
        "CASE WHEN i.id IN (SELECT h.id FROM holding_all(?::int[]) h(id)) THEN true ELSE false END",
        [signed_hash(term_hash(term)) for term in rarest],
    )
    return found


def _join(word: str, parts: Sequence[Condition]) -> Condition | None:
    if not parts:
        return None
    found = Condition()
    values = [value for part in parts for value in part.values]
    found.require("(" + word.join(f"({part.sql})" for part in parts) + ")", *values)
    return found
