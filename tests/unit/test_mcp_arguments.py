"""Arguments as models write them: what is meant is understood, what is wrong is named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.errors import UsageError
from yester.faces.mcp.calls import answer_call, open_for_tools, parse_ids, read_request
from yester.faces.mcp.server import load_tools
from yester.operations.request import read_dates
from yester.operations.search import EverythingSearch

TOOLS = load_tools()
NOW = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000


def search_request(given_):
    return read_request(TOOLS["search"], given_)


@each(
    ("given_", "taken"),
    [
        ({}, {}),
        ({"query": "redis", "project": None}, {"query": "redis"}),
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": 5.0}, {"limit": 5}),
        ({"query": 42}, {"query": "42"}),
        ({"type": "prompts", "orderBy": "date_asc"}, {"what": "prompts", "order": "date_asc"}),
        ({"query": "half \ud800 a pair"}, {"query": "half ? a pair"}),
    ],
)
def test_what_is_meant_is_taken(given_, taken):
    request = search_request(given_)
    assert request == EverythingSearch(**taken)


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize(
    ("tool", "given_", "names"),
    [
        ("search", {"limit": 0}, ("limit", "0", "from 1 to 100")),
        ("search", {"limit": 101}, ("limit", "101", "from 1 to 100")),
        ("search", {"limit": "many"}, ("limit", "'many'", "whole number")),
        ("search", {"limit": True}, ("limit", "true", "whole number")),
        ("search", {"limit": 2.5}, ("limit", "2.5", "whole number")),
        ("search", {"offset": -1}, ("offset", "-1", "from 0 to 1,000,000")),
        ("search", {"query": ["a"]}, ("query", "'a'", "a text")),
        ("search", {"type": "bugs"}, ("type", "'bugs'", "observations, prompts, sessions")),
        ("search", {"orderBy": "newest"}, ("orderBy", "'newest'", "date_desc")),
        ("search", {"qurey": "x"}, ("'qurey'", "did you mean query?")),
        ("__IMPORTANT", {"x": 1}, ("'x'", "there is none")),
        ("timeline", {"depth_before": 101}, ("depth_before", "101", "from 0 to 100")),
        ("get_observations", {}, ("ids", "missing")),
        ("save_memory", {"title": "t"}, ("text", "missing")),
        ("save_memory", {"text": {"a": 1}}, ("text", '{"a":1}', "a text")),
    ],
)
def test_what_is_wrong_is_named_with_its_value_and_the_fix(tmp_path, tool, given_, names):
    memory = open_for_tools(str(tmp_path / "home"), str(tmp_path), {}, lambda *_: None)
    text, failed = answer_call(TOOLS[tool], lambda: memory, given_)
    assert failed
    for name in names:
        assert name in text


@each(
    ("written", "meant"),
    [
        ([12, 13], [(12, 0), (13, 0)]),
        (["12", "#13"], [(12, 0), (13, 0)]),
        ([12, "12", 12], [(12, 0)]),
        (12, [(12, 0)]),
        ("12, 13", [(12, 0), (13, 0)]),
        ("[12, 13]", [(12, 0), (13, 0)]),
        (["12@3800", 12], [(12, 3800), (12, 0)]),
    ],
)
def test_ids_are_understood_as_models_write_them(written, meant):
    assert parse_ids(written) == meant


@each("written", [[], "", None, ["x"], [1.5], [True], [-3], [[1]], {"id": 1}, list(range(101))])
def test_ids_that_are_none_are_refused_with_an_example(written):
    with pytest.raises(UsageError, match="ids has"):
        parse_ids(written)


@each(
    ("given_", "since", "until"),
    [
        ({}, None, None),
        ({"dateStart": "3d"}, NOW - 3 * DAY, None),
        ({"dateStart": "2026-11-01T00:00:00Z"}, NOW - 14 * DAY - DAY // 2, None),
        ({"dateEnd": "2026-11-10"}, None, NOW - 5 * DAY + DAY // 2),
        ({"dateEnd": "2026-11-10T00:00:00Z"}, None, NOW - 5 * DAY - DAY // 2),
        ({"dateEnd": "yesterday"}, None, NOW - DAY // 2),
        ({"dateStart": "1794744000000"}, 1_794_744_000_000, None),
        ({"dateStart": "1794744000"}, 1_794_744_000_000, None),
        ({"dateStart": "2026-11-10", "dateEnd": "2026-11-10"}, NOW - 5 * DAY - DAY // 2,
         NOW - 5 * DAY + DAY // 2),
        ({"dateStart": " "}, None, None),
    ],
)  # fmt: skip
def test_dates_are_understood_and_a_day_that_ends_a_range_is_part_of_it(given_, since, until):
    import time

    time.tzset()  # UTC, see conftest.py
    assert read_dates(search_request(given_), NOW) == (since, until)


@each(
    ("given_", "names"),
    [
        ({"dateStart": "soon"}, ("dateStart", "'soon'", "2026-03-01")),
        ({"dateEnd": "2026-13-45"}, ("dateEnd", "'2026-13-45'")),
        ({"dateStart": "1d", "dateEnd": "2d"}, ("dateStart", "'1d'", "dateEnd", "'2d'")),
    ],
)
def test_dates_that_are_none_are_named(given_, names):
    with pytest.raises(UsageError) as error:
        read_dates(search_request(given_), NOW)
    for name in names:
        assert name in str(error.value)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=3), SCALARS)


@given(st.dictionaries(st.sampled_from([*TOOLS["search"]["inputSchema"]["properties"]]), JSON))
def test_anything_is_taken_or_refused(given_):
    try:
        request = search_request(given_)
    except UsageError:
        return
    assert 1 <= request.limit <= 100
