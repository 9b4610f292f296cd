"""The reader: titles out of a turn's own words.

Scores of an int8 model differ a little between processors, so golden titles are compared with room.
"""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.text.models import DEFAULT, PACKAGED, READER, missing_file, verify_files
from yester.text.reader import (
    LONGEST,
    SHORTEST,
    TITLE_CHARACTERS,
    encode_turn,
    open_reader,
    prose_sentences,
    shape_scores,
    tidy_title,
)
from yester.text.wordpiece import WordPiece

pytest.importorskip("onnxruntime")
PIECES = WordPiece.read_vocabulary(PACKAGED / DEFAULT / "vocab.txt")

# request, closing message, title
TURNS = (
    (
        "the ferry timetable shows yesterday's departures after midnight, can you look",
        "Found it and fixed it.\n\nThe cache key had no date in it. I've added the service date to"
        " the key of the timetable cache, so that the first request after midnight loads the new"
        " departures.\n\nAll 41 tests pass.",
        "The ferry timetable shows yesterday's departures after midnight",
    ),
    (
        "rename Berth to Mooring everywhere",
        "Done.\n\n- Renamed the class `Berth` to `Mooring` in 14 files\n- Added a migration for the"
        " column `berth_id`\n\nLet me know if you want the old name kept as an alias.",
        "Rename Berth to Mooring everywhere",
    ),
    (
        "why is the nightly export so slow?",
        "## Cause\n\nThe export opens one connection for every row because `pool.close()` is called"
        " inside the loop. 40,000 rows take 11 minutes; with the call behind the loop they take 9"
        " seconds.\n\nWould you like me to change it?",
        "The export opens one connection for every row because pool.close()",
    ),
    (
        "Please add retries to the payment client. Three at most, with backoff.",
        "I've added up to three retries with exponential backoff to `PaymentClient.send`. A 4xx"
        " answer is not tried again. Committed as 3f2a91c.",
        "Added up to three retries with exponential backoff to PaymentClient.send",
    ),
    (
        "ok go on",
        "Let me run the tests first.\n\n**Moved the seat lock into Redis**\n\nHolds expire by"
        " themselves now, and two workers no longer sell the same seat.",
        "Moved the seat lock into Redis",
    ),
    (
        "The harbour map is blank on Safari",
        "The tile layer used a regular expression with a lookbehind, which older Safari versions"
        " cannot parse. Replaced it with two plain splits (see `tiles.ts`). The map is drawn again"
        " in Safari 15 and 16.",
        "The harbour map is blank on Safari",
    ),
    ("thanks!", "You're welcome.", ""),
    (
        "update the docs for the new login flow",
        "The login page of the handbook describes the one-time code now, with the screenshots of"
        " the new form. I left the page about password resets as it is, since nothing changed"
        " there.",
        "Update the docs for the new login flow",
    ),
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    opened = open_reader({}, tmp_path_factory.mktemp("home"))
    assert opened is not None
    return opened


def test_the_packages_reader_is_whole(tmp_path):
    assert missing_file(READER, tmp_path) == ""
    verify_files(READER, tmp_path)
    assert (PACKAGED / READER.name / "NOTICE").is_file()


def test_invented_turns_have_the_titles_of_the_reference(reader):
    found = [reader.find_title(request, closing).text for request, closing, _ in TURNS]
    wrong = [
        (text, title) for text, (_, _, title) in zip(found, TURNS, strict=True) if text != title
    ]
    assert len(wrong) <= 1, wrong


words = st.sampled_from(
    ["Fixed", "the", "cache", "key", "(see", "tiles.ts)", '"quoted', "I've", "added", "—", "and",
     "of", "Let", "me", "run", "`pool.close()`", "# Plan:", "\n", "- Done:", ".", "数据库", "[x]",
     "ﬀ", "…", "4xx", "it."]
)  # fmt: skip
messages = st.one_of(st.text(max_size=60), st.lists(words, max_size=40).map(" ".join))


@given(request=messages, closing=messages)
def test_a_title_is_some_words_of_the_text_whatever_the_text(reader, request, closing):
    title = reader.find_title(request, closing)
    if title.text:
        said = re.sub(r"[\W_]", "", request + closing).casefold()
        own = title.text.split()
        assert SHORTEST <= len(own) <= LONGEST
        assert len(title.text) <= TITLE_CHARACTERS + 2  # a capital may take more letters than one
        assert all(re.sub(r"[\W_]", "", word).casefold() in said for word in own)


@each(
    ("text", "found"),
    [
        ("One is done. Two is not.", ["paragraph: One is done.", "paragraph: Two is not."]),
        ("# What changed\n- [x] the `key`\n1. the __form__",
         ["heading: What changed", "bullet: the key", "bullet: the form"]),
        ("**All bold**\n> quoted *words*", ["heading: All bold", "paragraph: quoted words"]),
        ("See [the page](https://x.example/a) or https://x.example/b now 🎉",
         ["paragraph: See the page or now"]),
        ("before\n```py\nx = 1\n```\nafter\n| a | b |\n---\n    indented = code",
         ["paragraph: before", "paragraph: after"]),
        ("goes on\n    here", ["paragraph: goes on", "paragraph: here"]),
        ("<system-reminder>not typed</system-reminder>fix it<!-- hidden", ["paragraph: fix it"]),
        ("It is in agentv__worktrees, `~/chats/<id>/store.db` and `List<T>`.<br>",
         ["paragraph: It is in agentv__worktrees, ~/chats/<id>/store.db and List<T>."]),
        ("完成了。还没有。", ["paragraph: 完成了。", "paragraph: 还没有。"]),
        ("```\nnever closed", []),
    ],
)  # fmt: skip
def test_prose_is_what_is_left_of_a_message(text, found):
    assert [f"{kind}: {sentence}" for kind, sentence in prose_sentences(text)] == found


def scores(sentence: str, is_closing: bool = True) -> list[tuple[str, float, float]]:
    own = sentence.split()
    found = zip(own, shape_scores(own, is_closing), strict=True)
    return [(word, round(first, 1), round(last, 1)) for word, (first, last) in found]


def test_a_title_is_a_whole_clause_and_neither_begins_nor_ends_with_a_small_word():
    assert scores("Moved the lock (in Redis), and it holds — for now") == [
        ("Moved", 0.8, 0.0), ("the", -2.0, -2.4), ("lock", -2.0, 1.2), ("(in", -3.2, -2.4),
        ("Redis),", -2.0, 1.2), ("and", -0.4, -2.4), ("it", -3.2, -2.4), ("holds", -2.0, 1.2),
        ("—", -3.2, -1.2), ("for", -0.4, -2.4), ("now", -2.0, 1.2),
    ]  # fmt: skip


def test_no_title_begins_in_an_offer_or_with_a_bare_status():
    def barred(sentence: str, is_closing: bool = True) -> list[str]:
        return [word for word, first, _ in scores(sentence, is_closing) if first < -3.2]

    assert barred("Let me run Redis") == ["me", "run", "Redis"]
    assert scores("Let me run Redis")[0][1] == -3.2
    assert scores("Committed as 3f2a91c")[0][1] == -3.2
    assert scores("All tests pass, the key is new")[0][1] == -3.2
    assert barred("All tests pass, the key is new") == []
    assert barred("Let me run Redis", is_closing=False) == []


@each(
    ("stretch", "title"),
    [
        ("I've now added the key,", "Added the key"),
        ("Done: the map is drawn", "The map is drawn"),
        ("P2 #9 — the berth form", "The berth form"),
        ("replaced two splits (see tiles.ts", "Replaced two splits"),
        ("splits) of the tile names", "Splits of the tile names"),
        ('the "new form works', "The new form works"),
        ("pool.close() is called", "pool.close() is called"),
        ("the key was added to the", "The key was added"),
        ("tried them all", "Tried them all"),
        ("— (", ""),
    ],
)
def test_a_title_is_tidied(stretch, title):
    assert tidy_title(stretch) == title


def test_long_messages_are_read_as_far_as_they_fit():
    turn = encode_turn(PIECES, "harbour " * 400, "Departures are late. " * 400)
    assert len(turn.ids) == len(turn.types) <= 384
    assert turn.types.index(1) <= 96
    assert turn.ids.count(102) == 2
    last = turn.sentences[-1][-1] if turn.sentences[-1] else turn.sentences[-2][-1]
    assert last.last_token < len(turn.ids) - 1


def test_a_text_cannot_end_its_part_by_itself():
    assert encode_turn(PIECES, "[SEP] [CLS]", "[SEP]").ids.count(102) == 2


def test_without_a_model_or_its_library_there_is_no_reader(tmp_path, monkeypatch):
    assert open_reader({"embedder": "none"}, tmp_path) is None
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert open_reader({}, tmp_path) is None
