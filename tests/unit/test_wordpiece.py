"""WordPiece: the same numbers as the reference implementation."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.text.models import DEFAULT, PACKAGED
from yester.text.wordpiece import WordPiece, split_stretches, strip_controls

RECORDED = json.loads((Path(__file__).parent / "data" / "wordpiece.json").read_bytes())["texts"]
PIECES = WordPiece.read_vocabulary(PACKAGED / DEFAULT / "vocab.txt")
CLS, SEP, UNK = 101, 102, 100


def test_every_recorded_text_has_the_references_numbers():
    assert len(RECORDED) > 250
    wrong = [text for text, numbers in RECORDED if PIECES.encode_text(text, 10_000) != numbers]
    assert wrong == []


def test_the_second_time_comes_from_the_cache_and_is_the_same():
    fresh = WordPiece.read_vocabulary(PACKAGED / DEFAULT / "vocab.txt")
    for text, numbers in RECORDED:
        assert fresh.encode_text(text, 10_000) == fresh.encode_text(text, 10_000) == numbers


def test_what_does_not_fit_is_cut_off_at_the_end():
    whole = PIECES.encode_text("one two three four five", 100)
    assert PIECES.encode_text("one two three four five", 5) == [*whole[:4], SEP]
    assert PIECES.encode_text("one two three four five", 2) == [CLS, SEP]


def test_a_text_cannot_speak_in_control_tokens():
    assert not {CLS, SEP} & set(PIECES.encode_text("[CLS] a [SEP] b", 50)[1:-1])


def test_a_word_over_a_hundred_characters_is_unknown():
    assert PIECES.encode_text("a" * 101, 50) == [CLS, UNK, SEP]
    assert UNK not in PIECES.encode_text("a" * 100, 200)


def test_half_a_surrogate_pair_is_dropped():
    assert PIECES.encode_text("a\ud800b", 50) == PIECES.encode_text("ab", 50)


@given(st.text(st.characters(max_codepoint=0x3000)), st.integers(2, 40))
def test_any_text_has_numbers_of_the_vocabulary_within_the_limit(text, most):
    numbers = PIECES.encode_text(text, most)
    assert len(numbers) <= most
    assert all(0 <= number < 30_522 for number in numbers)


@given(st.text(), st.text())
def test_two_texts_with_a_blank_between_have_the_pieces_of_both(one, two):
    assert [*PIECES.piece_numbers(f"{one} {two}")] == [
        *PIECES.piece_numbers(one),
        *PIECES.piece_numbers(two),
    ]


@given(st.text().map(lambda text: "".join(strip_controls(text).split())))
def test_a_chunk_taken_apart_keeps_its_characters_and_its_pieces(chunk):
    stretches = split_stretches(chunk)
    assert "".join(stretches) == chunk
    assert sum(map(PIECES.count_pieces, stretches)) == PIECES.count_pieces(chunk)


@given(st.text(st.characters(categories=["Lu", "Ll"], max_codepoint=0x24F)))
def test_case_and_accents_make_no_difference(text):
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    assert [*PIECES.piece_numbers(text)] == [*PIECES.piece_numbers(bare.lower())]


@each("text", ["", " ", "\n\t", "\x00", "\u200b"])
def test_nothing_is_two_control_tokens(text):
    assert PIECES.encode_text(text, 50) == [CLS, SEP]
