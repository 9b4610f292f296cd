"""Who wrote a line: by its words, and by the lines around it where they are everybody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distilling import Story
from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.model import Filters, Item, replace
from yester.recall.authors import Stretch, find_line_authors
from yester.store import open_store

pytestmark = pytest.mark.requirement("REC-23")

LOAD = "def load(path):\n    data = read(path)\n    return None"
SAVE = "def save(path):\n    write(path, data)\n    return None"


class Edits:
    """Edits of one file, a turn each; `find` asks who wrote a text."""

    def __init__(self, home: Path) -> None:
        self.store = open_store(with_store(home), now=1)
        self.story = Story()

    def add(self, *edits: tuple[str, str], blind: bool = False) -> int:
        """The number of the turn."""
        self.story.prompt("go on")
        for old, new in edits:
            item = self.story.replaces("a.py", old, new)
            if blind:
                item = _as_write(item, new)
            with self.store.transaction("items"):
                self.store.put([prepare_item(item)])
        return self.story.number

    def find(self, text: str) -> list[Stretch]:
        return find_line_authors(self.store, ["a.py"], text.splitlines(), Filters())

    def turns(self, text: str) -> list[tuple[int, int, int]]:
        """(first line, last line, turn); 0: nobody"""
        return [(one.first, one.last, one.turn[1] if one.turn else 0) for one in self.find(text)]


def _as_write(item: Item, text: str) -> Item:
    assert item.call
    call = replace(item.call, fields=(("content", 0, len(text)),), result=None)
    return replace(item, tool="Write", body=text, call=call)


@pytest.fixture
def edits(home):
    made = Edits(home)
    yield made
    made.store.close()


def test_lines_of_many_go_with_the_lines_around_them(edits):
    first, second = edits.add(("", LOAD)), edits.add(("", SAVE))
    text = f"import os_path_tools\n\n{SAVE}\n\n\n{LOAD}\n"
    assert edits.turns(text) == [(1, 2, 0), (3, 7, second), (8, 10, first)]
    assert not any(one.ambiguous for one in edits.find(text))


def test_what_was_put_there_once_is_there_once(edits):
    edits.add(("", LOAD))
    by_hand = "def other(path):\n    seek(path, 0)\n    return None\n"
    assert edits.turns(by_hand + LOAD) == [(1, 3, 0), (4, 6, 1)]


def test_the_latest_writer_wins_and_what_was_taken_out_is_no_longer_anybodys(edits):
    edits.add(("", "limit_seconds = 8"))
    edits.add(("limit_seconds = 8", "limit_seconds = 5"))
    assert edits.turns("limit_seconds = 8") == [(1, 1, 1)]  # put back by hand, or by git
    third = edits.add(("limit_seconds = 5", "limit_seconds = 8"))
    assert edits.turns("limit_seconds = 8") == [(1, 1, third)]


def test_a_line_that_two_could_have_written_says_so(edits):
    edits.add(("", "    return None"))
    second = edits.add(("", "    return None"))
    (only,) = edits.find("if broken(order):\n    return None")[1:]
    assert (only.turn[1], only.ambiguous) == (second, (2,))


def test_writing_a_file_over_claims_only_what_nobody_had_written(edits):
    first = edits.add(("", LOAD))
    second = edits.add(("", f"{LOAD}\n{SAVE}"), blind=True)
    (old, new) = edits.find(f"{LOAD}\n{SAVE}")
    assert (old.turn[1], new.turn[1]) == (first, second)
    # What stood there before is not known: it may have been there.
    assert not old.ambiguous
    assert new.ambiguous == (4, 5, 6)


def test_a_stretch_knows_what_it_replaced_and_who_else_had_tried(edits):
    first = edits.add(("", "link = open_link(host)"))
    tried = edits.add(("link = open_link(host)", "link = pool.take_link(host)"))
    edits.add(("link = pool.take_link(host)", "link = open_link(host)"))
    third = edits.add(("link = open_link(host)", "link = open_link(host, fresh=True)"))
    (only,) = edits.find("link = open_link(host, fresh=True)")
    assert only.turn[1] == third == 4
    assert [number for _, number in only.former] == [3]
    assert {tried} <= {number for _, number in only.others}
    assert first not in {number for _, number in only.former}
