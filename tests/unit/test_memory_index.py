"""A line of index.md says what it was made from and nothing else, whatever a title holds."""

from __future__ import annotations

import os
import re
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from tests.written import HOSTILE, index_paths, titles
from yester.memories.files import MemoryFile, make_index_line

pytestmark = pytest.mark.requirement("MEM-04", "MEM-06")


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
    values = {"category": category, "title": title, "tags": tags, "id": "x"}
    return make_index_line(MemoryFile(values), path)


def test_a_line_looks_as_it_always_did():
    text = shown("tech_debt", "Defer the migration", PATH, ["postgres", "data-base"])
    assert text == f"- [TECH_DEBT] Defer the migration -> {PATH} #tags:postgres,data-base"
    assert shown("decision", "Use A", PATH) == f"- [DECISION] Use A -> {PATH}"


@each("title", HOSTILE.values())
def test_title_delimiter_injection_is_not_possible(title):
    text = shown("decision", title, PATH, ["ours"])
    assert len(text.splitlines()) == 1
    assert theirs(text)[1:] == (PATH, "ours")
    assert (text.count("->"), text.count("#tags:")) == (1, 1)
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")]


@each("tag", HOSTILE.values())
def test_a_hostile_tag_stays_one_tag(tag):
    title, path, tags = theirs(shown("decision", "Title", PATH, ["first", tag, "last"]))
    assert (title, path) == ("Title", PATH)
    first, *between, last = tags.split(",")
    assert (first, last, len(between) <= 1) == ("first", "last", True)


@given(categories, titles, paths, st.lists(titles, max_size=3))
def test_a_simple_reader_finds_what_a_line_was_made_from(category, title, path, tags):
    text = shown(category, title, path, tags)
    assert text.splitlines() == [text]
    found, where, words = theirs(text)
    assert unquote(where, errors="surrogateescape") == path
    again = shown(category, found, path, words.split(","))
    assert again == text, "neutral stays neutral"


def test_paths_with_spaces_are_one_path():
    path = ".claude/memory/my decisions/100% done.json"
    text = shown("decision", "Title", path)
    assert text == "- [DECISION] Title -> .claude/memory/my%20decisions/100%25%20done.json"
    assert index_paths(text) == [path]


def test_hyphenated_tags_and_other_scripts_stay_what_they_are():
    text = shown("decision", "数据库 Größe", PATH, ["docker-compose", "базы", "a,b"])
    assert text.endswith("数据库 Größe -> " + PATH + " #tags:docker-compose,базы,a b")
