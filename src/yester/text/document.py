"""An item as text. For the index: its terms per field and their compact stored form (term vector).
For readers: what there is to read of it, and what that costs; one text and one estimate on every
face, so that the same item never has two prices.

Stored form, little endian (as every machine is that our libraries run on), one block per field that
has terms: field number (1 byte), number of distinct terms (4), number of terms (4), the terms'
hashes (4 each), their counts (1 each, at most 255). Hashes instead of words make it small and need
no dictionary; among the few hundred terms of one item a 32-bit hash is as good as the word.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from yester.libraries import load_library
from yester.model import DISTILLED, Document, Hit, Item, ToolCall
from yester.text.terms import term_hash, text_terms

FIELDS = ("title", "subtitle", "body", "facts", "concepts", "files", "tool", "sections")
_BODY = FIELDS.index("body")
_MANY = 60  # bytes for each wanted term, up to which looking at all is cheaper than searching
_HEADER = struct.Struct("<BII")


def expand_item(item: Item) -> Document:
    """Expand an item. Pure, and by far the dearest step of indexing after parsing."""
    texts = (
        item.title,
        item.subtitle,
        item.body,
        "\n".join(item.facts) if item.facts else "",
        " ".join((*item.concepts, *_telling_tags(item))) if item.concepts or item.tags else "",
        " ".join(item.files) if item.files_read or item.files_modified else "",
        item.tool,
        "\n".join(item.sections.values()) if item.sections else "",
    )
    vector: list[bytes] = []
    lengths: list[tuple[int, int]] = []
    terms: dict[str, int] = {}
    for number, text in enumerate(texts):
        counts = Counter(text_terms(text)) if text else None
        if not counts:
            continue
        length, values = counts.total(), counts.values()
        vector += (
            _HEADER.pack(number, len(counts), length),
            array("I", map(term_hash, counts)).tobytes(),
            bytes(values if max(values) <= 255 else [min(n, 255) for n in values]),
        )
        lengths.append((number, length))
        terms.update(counts)
    return Document(list(terms), b"".join(vector), tuple(lengths))


def _telling_tags(item: Item) -> list[str]:
    """A tag that repeats the type would make all of a type answers to a question with its name."""
    own = item.type.replace("_", "-")
    return [tag for tag in item.tags if tag != own]


class FieldTerms(Struct, frozen=True):
    """A field of a stored form; the count of each term stands where its hash does."""

    field: int
    length: int  # of its terms, with repetitions
    hashes: Sequence[int]
    counts: bytes


def read_fields(vector: bytes) -> list[FieldTerms]:
    """The stored form back as terms per field."""
    return [
        FieldTerms(number, length, array("I", vector[begin:end]), vector[end:stop])
        for number, length, begin, end, stop in _walk_fields(vector)
    ]


def _walk_fields(vector: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(field number, number of terms, where hashes begin, where they end, where counts end)."""
    at = 0
    while at < len(vector):
        number, distinct, length = _HEADER.unpack_from(vector, at)
        begin = at + _HEADER.size
        end = begin + 4 * distinct
        at = end + distinct
        yield number, length, begin, end, at


def find_matches(
    vector: bytes, wanted: Mapping[int, bytes]
) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """(field number, number of terms, [(hash, count)]) of the wanted terms alone, given by their
    hashes.

    Scoring looks at hundreds of vectors for a handful of terms: in long ones those are searched for
    as the four bytes they are stored as (`hash_bytes`), and nothing is decoded.
    """
    found: list[tuple[int, int, list[tuple[int, int]]]] = []
    if _MANY * len(wanted) > len(vector):
        for number, length, begin, end, _ in _walk_fields(vector):
            hashes = array("I", vector[begin:end])
            if both := wanted.keys() & hashes:
                at = hashes.index
                found.append((number, length, [(term, vector[end + at(term)]) for term in both]))
        return found
    there = [one for one in wanted.items() if one[1] in vector]
    find = vector.find
    for number, length, begin, end, _ in _walk_fields(vector) if there else ():
        held = []
        for term, stored in there:
            place = find(stored, begin, end)
            while place >= 0 and (place - begin) & 3:  # across two hashes: not this one
                place = find(stored, place + 1, end)
            if place >= 0:
                held.append((term, vector[end + ((place - begin) >> 2)]))
        if held:
            found.append((number, length, held))
    return found


def count_said(
    vectors: Collection[bytes], wanted: Mapping[int, bytes]
) -> tuple[int, dict[int, int]]:
    """Of several bodies as one text: the number of terms, and how often each wanted one is there;
    (0, none) where none is."""
    hashes, numbers, total = bytearray(), bytearray(), 0
    for vector in vectors:
        for part, length, begin, end, stop in _walk_fields(vector):
            if part == _BODY:
                hashes += vector[begin:end]
                numbers += vector[end:stop]
                total += length
    counts: dict[int, int] = {}
    for term, stored in wanted.items():
        place = hashes.find(stored)
        while place >= 0:
            if not place & 3:  # else across two hashes
                counts[term] = counts.get(term, 0) + numbers[place >> 2]
            place = hashes.find(stored, place + 1)
    return (total, counts) if counts else (0, counts)


def hash_bytes(term: int) -> bytes:
    return term.to_bytes(4, "little")


# --- what there is to read of an item, and what reading it costs a model --------------------------

_BYTES = 4  # of a text, to a token; closer than characters where a script is not Latin


def item_text(item: Item) -> str:
    """All there is to read of an item: its text, its facts as a list, its sections by name. What
    somebody stored with a text comes back with that text."""
    if item.body and item.source != DISTILLED:
        return item.body
    facts = "\n".join(f"- {fact}" for fact in item.facts)
    sections = "\n".join(
        f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in item.sections.items()
    )
    return "\n\n".join(filter(None, (item.subtitle, item.body, facts, sections)))


def estimate_tokens(text: str) -> int:
    return tokens_of_length(len(text.encode("utf-8", "replace")))


def tokens_of_length(length: int) -> int:
    """For a text of which only the length is known."""
    return (length + _BYTES - 1) // _BYTES


def reading_cost(one: Item | Hit) -> int:
    """Tokens to read all of it, with its title where the text does not begin with that."""
    text = one.text if isinstance(one, Hit) else item_text(one)
    begins = text.lstrip("# ").startswith(one.title.rstrip("…"))
    return estimate_tokens(text if begins else f"{one.title}\n{text}")


def content_hash(item: Item) -> bytes:
    """Equal for equal content, whoever said it and when."""
    lists = (item.facts, item.concepts, item.tags, item.files_read, item.files_modified)
    content = "\x1e".join(
        (
            item.type, item.tool, item.role, item.status, item.title, item.subtitle, item.body,
            *("\x1f".join(values) for values in lists),
            *(f"{name}\x1f{text}" for name, text in item.sections.items()),
            f"{item.confidence} {item.supersedes} {item.discovery_tokens}",
            *(_call_parts(item.call) if item.call else ()),
        )
    )  # fmt: skip
    hashlib = load_library("hashlib")  # brings OpenSSL, which what only reads has no use for
    digest: bytes = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=16).digest()
    return digest


def _call_parts(call: ToolCall) -> tuple[str, ...]:
    about = (call.result, call.status, call.cut)
    return tuple(map(str, (*call.fields, *call.options.items(), *about)))
