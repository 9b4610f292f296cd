"""A memory's file keeps its bytes wherever its values are the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.written import HOSTILE, memory, titles, values
from yester.errors import SourceError
from yester.memories.written import KEYS, canonical, parsed, rendered

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
    st.one_of(st.sampled_from(list(KEYS)), st.text(max_size=5)), values, min_size=1, max_size=6
)


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS.keys())
def test_what_is_not_changed_keeps_every_byte(text):
    one = parsed(text.encode())
    assert one.bytes() == text.encode()
    assert one.hash == parsed(WAYS["two spaces"].encode()).hash or "unknown" in text or "$" in text


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS.keys())
def test_a_change_touches_only_the_lines_of_what_changed(text):
    one = parsed(text.encode())
    new = one.changed(title="Ein anderer Titel", record_status="retired").bytes().decode()
    assert parsed(new.encode()).title == "Ein anderer Titel"
    before, after = text.split("\n"), new.split("\n")
    assert len(before) == len(after)
    other = sum(old != now for old, now in zip(before, after, strict=True))
    assert other == (2 if len(before) > 5 else 1)


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS.keys())
def test_keys_come_and_go_in_the_way_of_the_file(text):
    one = parsed(text.encode())
    retired = one.changed(retired_at="2026-04-01T00:00:00Z", retired_reason="über")
    again = parsed(retired.bytes())
    assert (again.values["retired_reason"], again.bytes()) == ("über", retired.bytes())
    assert ("\r\n" in text) == ("\r\n" in retired.bytes().decode())
    back = parsed(again.changed(retired_at=None, retired_reason=None).bytes())
    assert back.bytes() == text.encode()
    first = next(iter(one.values))
    gone = {name: value for name, value in one.values.items() if name != first}
    assert json.loads(rendered(gone, text.encode()).decode("utf-8-sig")) == gone


def test_without_a_pattern_the_keys_stand_in_the_order_of_the_form():
    one = memory(zebra=1, archived_at="x")
    names = list(json.loads(one.bytes()))
    assert names == [*[name for name in KEYS if name in one.values], "zebra"]
    assert one.bytes().endswith(b"}\n")


def test_the_present_file_is_the_pattern_for_a_version_that_has_none():
    text = WAYS["four spaces, no last newline"]
    again = memory(title="Größe der Schlange").bytes(text.encode())
    assert again == text.encode()


@settings(max_examples=30)
@given(objects, objects, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_any_object_can_be_written_in_the_way_of_any_other(old, new, indent, plain):
    pattern = json.dumps(old, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    again = json.loads(rendered(new, pattern))
    assert canonical(again) == canonical(new)
    if canonical(old) == canonical(new) and b"\xed" not in pattern:
        assert rendered(new, pattern) == pattern


@settings(max_examples=30)
@given(titles.filter(str.strip), values)
def test_any_title_and_content_comes_back_as_it_was(title, content):
    one = memory(title=title, content={"decision": content})
    again = parsed(one.bytes())
    assert (again.hash, again.title) == (one.hash, title)
    assert parsed(again.bytes()).bytes() == again.bytes()


@pytest.mark.parametrize("title", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_title_is_kept_as_it_is_in_the_file(title):
    assert parsed(memory(title=title).bytes()).title == title


def test_true_is_not_one():
    assert memory(x=True).hash != memory(x=1).hash != memory(x=1.0).hash


BAD = {
    b"": "is not JSON",
    b"[]": "is not JSON",
    b"null": "is not JSON",
    b'{"a": 1,}': "is not JSON",
    b'{"a" 1}': "is not JSON",
    b'{"a": 1} x': "is not JSON",
    b'{"a": NaN}': "is not JSON (NaN",
    b'{"a": 1e999}': "is not JSON (1e999",
    b'{"a": ' + b"9" * 5000 + b"}": "is not JSON",
    b'{"a": "\xff"}': "is not UTF-8",
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}": "is nested too deeply",
    b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}": "is nested too deeply",
    b'{"title": "a", "title": "b"}': "the key 'title' stands there twice",
    b"{}": "has no category",
}  # fmt: skip


@pytest.mark.parametrize(("data", "reason"), BAD.items(), ids=[repr(d[:20]) for d in BAD])
def test_what_is_no_memory_is_said_in_a_sentence(data, reason):
    with pytest.raises(SourceError, match=r"^x\.json: ") as caught:
        parsed(data, "x.json")
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


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, row in WRONG.items() for value in row]
)
def test_a_value_that_cannot_be_is_named(name, value):
    with pytest.raises(SourceError, match=name):
        parsed(memory(**{name: value}).bytes())


@settings(max_examples=30)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | objects.map(
    lambda value: json.dumps(value).encode()))  # fmt: skip
def test_nothing_but_a_sentence_comes_of_any_bytes(data):
    try:
        parsed(data)
    except SourceError:
        return
