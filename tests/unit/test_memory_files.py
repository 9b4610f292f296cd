"""A memory's file: read with care, given back as it was, written so that it reads back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table import each
from tests.written import HOSTILE, memory, titles, values
from yester.errors import SourceError
from yester.memories.files import parse_memory_file

pytestmark = pytest.mark.requirement("MEM-06")

BASE = dict(memory(title="Größe der Schlange").values)
# The same memory as different tools write it.
WAYS = {
    "two spaces": json.dumps(BASE, indent=2, ensure_ascii=False) + "\n",
    "four spaces, no last newline": json.dumps(BASE, indent=4, ensure_ascii=False),
    "tabs": json.dumps(BASE, indent="\t", ensure_ascii=False) + "\n",
    "escapes": json.dumps(BASE, indent=2) + "\n",
    "one line": json.dumps(BASE),
    "compact": json.dumps(BASE, separators=(",", ":"), ensure_ascii=False) + "\n\n",
    "other order": json.dumps(dict(reversed(BASE.items())), indent=2, ensure_ascii=False) + "\n",
    "windows": json.dumps(BASE, indent=2, ensure_ascii=False).replace("\n", "\r\n") + "\r\n",
    "byte order mark": "\ufeff" + json.dumps(BASE, indent=2, ensure_ascii=False) + "\n",
    "unknown keys": json.dumps(
        {"$schema": "x", **BASE, "x-tool": {"b": [1.50, 1e3]}}, indent=2, ensure_ascii=False
    ),
    "odd spaces and escapes": (
        json.dumps(BASE, indent=2)
        .replace('"category":', '"category"  :\t')
        .replace('["', '[ "')
        .replace("/", "\\/")
    ),
}
objects = st.dictionaries(
    st.one_of(st.sampled_from([*BASE]), st.text(max_size=5)), values, min_size=1, max_size=6
)


@each("text", WAYS.values())
def test_what_is_not_changed_keeps_every_byte(text):
    one = parse_memory_file(text.encode())
    assert one.to_bytes() == text.encode()
    assert (
        one.hash == parse_memory_file(WAYS["two spaces"].encode()).hash
        or "unknown" in text
        or "$" in text
    )


@each("text", WAYS.values())
def test_a_changed_file_keeps_its_keys_in_their_order(text):
    one = parse_memory_file(text.encode())
    new = parse_memory_file(one.with_values(title="Größer", retired_reason="über").to_bytes())
    assert list(new.values) == [*one.values, "retired_reason"]
    assert dict(new.values) == {**one.values, "title": "Größer", "retired_reason": "über"}
    back = new.with_values(title=one.title, retired_reason=None)
    assert (back.hash, list(back.values)) == (one.hash, list(one.values))


@settings(max_examples=15)
@given(titles.filter(str.strip), values)
def test_any_title_and_content_comes_back_as_it_was(title, content):
    one = memory(title=title, content={"decision": content})
    again = parse_memory_file(one.to_bytes())
    assert (again.hash, again.title) == (one.hash, title)
    assert parse_memory_file(again.to_bytes()).to_bytes() == again.to_bytes()


@each("title", HOSTILE.values())
def test_a_hostile_title_is_kept_as_it_is_in_the_file(title):
    assert parse_memory_file(memory(title=title).to_bytes()).title == title


def test_true_is_not_one():
    assert memory(x=True).hash != memory(x=1).hash != memory(x=1.0).hash


BAD = {
    b"": "is not JSON",
    b"[]": "is no memory",
    b"null": "is no memory",
    b'{"a": 1,}': "is not JSON",
    b'{"a" 1}': "is not JSON",
    b'{"a": 1} x': "is not JSON",
    b'{"a": ' + b"9" * 5000 + b"}": "is not JSON",
    b'{"a": "\xff"}': "is not JSON ('utf-8' codec",
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}": "is nested too deeply",
    b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}": "is nested too deeply",
    b"{}": "missing required field `category`",
}  # fmt: skip


@each(("data", "reason"), BAD.items())
def test_what_is_no_memory_is_said_in_a_sentence(data, reason):
    with pytest.raises(SourceError, match=r"^x\.json: ") as caught:
        parse_memory_file(data, "x.json")
    assert reason in str(caught.value)


WRONG = {
    "id": ["", "../../etc/passwd", "a/b", ".hidden", "a b", "x" * 81, "a\n", 7, "naïve"],
    "category": ["", "Decision", "a/b", "..", 1],
    "title": ["", " \n", 3, []],
    "record_status": ["deleted", 1],
    "tags": ["a", [1], {}],
    "related_files": ["a", [None]],
    "confidence": [2, -0.1, "1", True],
    "changes": [{}, ["x"]],
    "times_updated": [-1, 1.5, True],
    "content": [[], "x", None],
    "updated_at": [5],
}


@each(("name", "value"), [(name, value) for name, row in WRONG.items() for value in row])
def test_a_value_that_cannot_be_is_named(name, value):
    with pytest.raises(SourceError, match=name):
        parse_memory_file(memory(**{name: value}).to_bytes())


@settings(max_examples=15)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | objects.map(
    lambda value: json.dumps(value).encode()))  # fmt: skip
def test_nothing_but_a_sentence_comes_of_any_bytes(data):
    try:
        parse_memory_file(data)
    except SourceError:
        return
