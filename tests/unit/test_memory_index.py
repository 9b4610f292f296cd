"""A line of index.md says what it was made from and nothing else, whatever a title holds."""

from __future__ import annotations

import os
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table import each
from tests.written import HOSTILE, titles
from yester.memories.files import MemoryFile
from yester.memories.folder import (
    INDEX_HEADER,
    IndexLine,
    make_index_line,
    parse_index,
    parse_index_line,
    update_index,
)

pytestmark = pytest.mark.requirement("MEM-04", "MEM-06")


def index_line(category, title, path, tags=(), name="x"):
    return make_index_line(
        MemoryFile({"category": category, "title": title, "tags": tags, "id": name}), path
    )


def theirs(text):
    """(title, path, tags) as a simple reader takes a line apart: the first arrow counts, a path
    ends at the next space, and what is left over must be tags."""
    label, _, rest = text.removeprefix("- [").partition("] ")
    assert re.fullmatch(r"[A-Z_]+", label)
    title, _, rest = rest.partition(" -> ")
    path, _, rest = rest.partition(" ")
    assert not rest or rest.startswith("#tags:")
    return title, path, rest.removeprefix("#tags:")


PATH = ".claude/memory/decisions/x.json"
categories = st.sampled_from(["decision", "tech_debt", "session_summary", "a-b"])


def a_path(text):
    """As the system gives it: any bytes but null, what is no UTF-8 as it stands for that."""
    data = f"{text.strip()}x.json".encode("utf-8", "surrogatepass").replace(b"\0", b"")
    return os.fsdecode(data)


paths = titles.map(a_path)


def shown(category, title, path, tags=()):
    return str(index_line(category, title, path, tags, "x"))


def test_a_line_looks_as_it_always_did():
    text = shown("tech_debt", "Defer the migration", PATH, ["postgres", "data-base"])
    assert text == f"- [TECH_DEBT] Defer the migration -> {PATH} #tags:postgres,data-base"
    assert shown("decision", "Use A", PATH) == f"- [DECISION] Use A -> {PATH}"


@each("title", HOSTILE.values())
def test_title_delimiter_injection_is_not_possible(title):
    text = shown("decision", title, PATH, ["ours"])
    assert len(text.splitlines()) == 1
    assert theirs(text)[1:] == (PATH, "ours")
    assert (parse_index_line(text).path, parse_index_line(text).tags) == (PATH, ("ours",))
    assert (text.count("->"), text.count("#tags:")) == (1, 1)
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")]


@each("tag", HOSTILE.values())
def test_a_hostile_tag_stays_one_tag(tag):
    text = shown("decision", "Title", PATH, ["first", tag, "last"])
    found = parse_index_line(text)
    assert (found.path, found.title) == (PATH, "Title")
    assert (found.tags[0], found.tags[-1]) == ("first", "last")
    assert len(found.tags) in (2, 3)
    assert theirs(text)[1] == PATH


@given(categories, titles, paths, st.lists(titles, max_size=3))
def test_reading_a_line_gives_back_what_it_was_made_from(category, title, path, tags):
    one = index_line(category, title, path, tags, "x")
    text = str(one)
    assert "\n" not in text
    assert text.splitlines() == [text]
    assert parse_index_line(text) == one
    assert index_line(category, one.title, path, one.tags, "x") == one, "neutral stays neutral"
    assert one.path == path
    title, _, tags = theirs(text)
    assert (title, tags) == (one.title, ",".join(one.tags))


def test_paths_with_spaces_are_one_path():
    path = ".claude/memory/my decisions/100% done.json"
    text = shown("decision", "Title", path)
    assert text == "- [DECISION] Title -> .claude/memory/my%20decisions/100%25%20done.json"
    assert parse_index_line(text).path == path
    other = parse_index_line("- [DECISION] Title -> .claude/memory/my decisions/x.json #tags:a")
    assert (other.path, other.tags) == (".claude/memory/my decisions/x.json", ("a",))


def test_hyphenated_tags_and_other_scripts_stay_what_they_are():
    text = shown("decision", "数据库 Größe", PATH, ["docker-compose", "базы", "a,b"])
    assert text.endswith("数据库 Größe -> " + PATH + " #tags:docker-compose,базы,a b")
    assert parse_index_line(text).tags == ("docker-compose", "базы", "a b")


@each(
    "text",
    ["", "# Memory Index", "- a list", "- [DECISION] no arrow", "- [decision] x -> y.json",
     "- [D] -> y.json", "- [D] x -> y.txt", "text - [D] x -> y.json", "- [D] " + "x" * 20_000],
)  # fmt: skip
def test_what_is_no_entry_is_not_taken_for_one(text):
    assert parse_index_line(text) is None


def test_a_line_another_tool_let_through_is_read_by_its_last_arrow():
    found = parse_index_line("- [DECISION] Use a -> b -> decisions/x.json #tags:c -> d")
    assert (found.title, found.path, found.tags) == ("Use a -> b", "decisions/x.json", ("c -> d",))


INDEX = (
    "# Our memories\r\n\r\nHand-made, mind the order.\r\n"
    "-  [RUNBOOK]  Restart   ->   runbooks/b.json\r\n"
    "- [DECISION] Use A -> decisions/a.json #tags: x , y\r\n\r\nThe end"
)
A = IndexLine("DECISION", "Use A", "decisions/a.json", ("x", "y"))
B = IndexLine("RUNBOOK", "Restart", "runbooks/b.json")


def test_an_index_that_is_right_keeps_every_byte():
    assert update_index(INDEX, [A, B]) == INDEX
    assert update_index(INDEX, [B, A]) == INDEX


def test_an_index_is_corrected_line_by_line():
    new = IndexLine("DECISION", "New", "decisions/c.json")
    text = update_index(INDEX, [IndexLine("DECISION", "Use B", "decisions/a.json"), new])
    assert text == (
        "# Our memories\r\n\r\nHand-made, mind the order.\r\n"
        "- [DECISION] Use B -> decisions/a.json\r\n\r\nThe end\r\n"
        "- [DECISION] New -> decisions/c.json\r\n"
    )


def test_a_missing_index_is_made():
    assert update_index("", [B, A]) == f"{INDEX_HEADER}{B!s}\n{A!s}\n"


def test_a_line_with_signs_nobody_sees_is_not_right():
    text = "- [RUNBOOK] Restart\u2028-> runbooks/b.json\n"
    assert update_index(text, [B]) == str(B) + "\n"


@settings(max_examples=15)
@given(st.lists(st.tuples(titles, st.integers(0, 6)), max_size=6), st.text(max_size=80))
def test_an_updated_index_lists_exactly_what_it_should_and_then_stays(rows, before):
    wanted = list({n: index_line("decision", t, f"d/{n}.json") for t, n in rows}.values())
    text = update_index(before, wanted)
    assert parse_index(text) == {one.path: one for one in wanted}
    assert update_index(text, wanted) == text
