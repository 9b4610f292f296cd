"""Documents: what the index keeps of an item, and back."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from yester.model import Item
from yester.text.document import (
    FIELDS,
    count_said,
    expand_item,
    find_matches,
    hash_bytes,
    read_fields,
)
from yester.text.terms import term_hash
from yester.text.terms import text_terms as expanded


def terms(text):
    return list(expanded(text))


_texts = st.text(max_size=200)


@given(_texts, _texts, st.lists(_texts, max_size=3), st.dictionaries(_texts, _texts, max_size=3))
def test_the_stored_vector_gives_every_count_back(title, body, facts, sections):
    item = Item("r", "observation", title=title, body=body, facts=tuple(facts), sections=sections)
    by_field = {part.field: part for part in read_fields(expand_item(item).vector)}
    expected = {
        "title": terms(title),
        "body": terms(body),
        "facts": terms("\n".join(facts)),
        "sections": terms("\n".join(sections.values())),
    }
    for name, found in expected.items():
        number = FIELDS.index(name)
        if not found:
            assert number not in by_field
            continue
        counts = Counter(term_hash(term) for term in found)
        assert dict(zip(by_field[number].hashes, by_field[number].counts, strict=True)) == counts
        assert by_field[number].length == len(found)


@given(_texts, _texts, st.lists(_texts, max_size=3))
def test_searching_the_bytes_finds_what_decoding_finds(title, body, asked):
    vector = expand_item(Item("r", "observation", title=title, body=body)).vector
    wanted = {term_hash(term) for text in (*asked, body[:40]) for term in terms(text)} | {0, 256}
    found = {
        (field, term): (length, count)
        for field, length, held in find_matches(vector, {term: hash_bytes(term) for term in wanted})
        for term, count in held
    }
    assert found == {
        (part.field, term): (part.length, count)
        for part in read_fields(vector)
        for term, count in zip(part.hashes, part.counts, strict=True)
        if term in wanted
    }


@given(st.lists(st.tuples(_texts, _texts), max_size=4), _texts)
def test_what_was_said_in_a_turn_is_counted_as_one_text(said, asked):
    vectors = [expand_item(Item("r", "message", title=t, body=b)).vector for t, b in said]
    wanted = {term_hash(term) for term in terms(asked + (said[0][1] if said else ""))}
    bodies = Counter(term_hash(term) for _, body in said for term in terms(body))
    counts = {term: bodies[term] for term in wanted if bodies[term]}
    length = bodies.total() if counts else 0
    assert count_said(vectors, {term: hash_bytes(term) for term in wanted}) == (length, counts)


def test_counts_stop_at_what_a_byte_holds():
    (part,) = read_fields(expand_item(Item("r", "message", body="cache " * 1000)).vector)
    assert list(part.counts) == [255]
    assert part.length == 1000


def test_an_item_without_text_has_an_empty_vector():
    assert read_fields(expand_item(Item("r", "message")).vector) == []
