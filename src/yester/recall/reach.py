"""How far a search had to go for what it found, where that was farther than the words asked.

prefix     no item has these words; the answers have words that begin alike
meaning    the answers have none of the words: they are nearest in meaning, near or not
recent     the question names nothing to look for; the answers are the newest
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from yester.model import Hit
from yester.store.contract import Probe, Store
from yester.text.document import document
from yester.text.query import Query, parse
from yester.text.synonyms import alternatives


def reach(store: Store, query: str, hits: Sequence[Hit]) -> str:
    """The name of it; "" where the words were enough, or nothing was asked or found."""
    if not hits or not query.strip():
        return ""
    if hits[0].rung == "recent":
        return "recent" if _words(parse(query)) else ""
    asked = parse(query)
    if asked.must is not None or not asked.terms:
        return ""
    if hits[0].rung == "stem":
        if _shows(hits[0], asked.terms):  # nearly always
            return ""
        others = alternatives(asked.terms)
        words = {*asked.terms, *(word for groups in others.values() for g in groups for word in g)}
        return "" if _holds(store, hits, words) else "meaning"
    found = store.probe(Probe(begin=dict.fromkeys(asked.terms, 1.0)))
    begin = {word for names in found.alike.values() for word in names}
    return "prefix" if begin and _holds(store, hits, begin) else "meaning"


def told(store: Store, query: str, hits: Sequence[Hit]) -> str:
    """The same as a sentence without its full stop, or ""."""
    how = reach(store, query, hits)
    if not how:
        return ""
    if how == "recent":
        return "the question names nothing to look for; these are the newest"
    words = "this word" if len(parse(query).terms) == 1 else "any of these words"
    if hits[0].rung == "stem":  # others may, which the filters or better ones keep out
        return f"none of these has {words}; they are nearest in meaning"
    end = "these begin alike" if how == "prefix" else "these are nearest in meaning"
    return f"no item has {words}; {end}"


def _words(query: Query) -> bool:
    """Was anything asked besides filters?"""
    return bool(query.terms or not query.filters)


def _shows(hit: Hit, words: Iterable[str]) -> bool:
    """Do the letters of a word stand in what there is to read?"""
    text = f"{hit.title}\n{hit.text}".casefold()
    return any(word in text for word in words)


def _holds(store: Store, hits: Sequence[Hit], words: Iterable[str]) -> bool:
    """Does any of them hold one of the words, in whatever field?"""
    wanted = set(words)
    items = store.get([hit.id for hit in hits])
    return any(wanted.intersection(document(item).terms) for item in items)
