"""The parts of the HTTP API that need no server: parameters, codes and keys, config.toml, times."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import os
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.conftest import ROOT
from tests.table import each
from yester.clock import parse_bound
from yester.errors import ConfigError, NotFound, StoreBusy, StoreError, UsageError, YesterError
from yester.faces.http import login
from yester.faces.http.app import load_files
from yester.faces.http.request import make_problem, read_body, read_query
from yester.faces.http.table import ALL_ENDPOINTS, ENDPOINTS, make_document
from yester.operations.items import BatchRequest
from yester.operations.request import describe_schema, list_parameters
from yester.operations.search import EverythingSearch, ObservationSearch, TypeSearch
from yester.tables import load_table

# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.requirement("DEL-07")
def test_the_defaults_are_those_of_the_seeds():
    search = read_query(ObservationSearch, b"", {})
    assert (search.limit, search.offset, search.format, search.order) == (
        20,
        0,
        "index",
        "relevance",
    )
    by_path = {one.path: one for one in ENDPOINTS}
    near = by_path["/api/search/timeline"].other_parameters
    assert (near["depth_before"].default, near["depth_after"].default) == (10, 10)
    assert by_path["/api/search/recent-context"].other_parameters["limit"].default == 3
    assert by_path["/api/context/recent"].other_parameters["limit"].default == 3


def test_lists_are_written_with_commas_or_given_several_times():
    found = read_query(EverythingSearch, b"concepts=a,%20b,,c&files=x&files=y,z", {})
    assert found.concepts == ["a", "b", "c"]
    assert found.files == ["x", "y", "z"]


WRONG = [
    (EverythingSearch, b"limit=0", "limit", "from 1 to 100"),
    (EverythingSearch, b"limit=many", "limit", "whole number"),
    (EverythingSearch, b"format=long", "format", "full, index"),
    (EverythingSearch, b"explain=perhaps", "explain", "true or false"),
    (EverythingSearch, b"kinds=prompt,dream", "kinds", "memory, message"),
    (EverythingSearch, b"qery=x", "qery", "query"),
    (EverythingSearch, b"zzz=x", "zzz", "there is"),
    (EverythingSearch, b"limit=1&limit=2", "limit", "once"),
    (EverythingSearch, b"project=" + b"x" * 401, "project", "at most 400"),
    (TypeSearch, b"", "type", "bugfix"),
    (TypeSearch, b"type=", "type", "not empty"),
]


@pytest.mark.requirement("DEL-07", "OPS-04")
@each(("kind", "query", "parameter", "fix"), WRONG)
def test_what_is_wrong_is_named_with_its_value_and_the_fix(kind, query, parameter, fix):
    with pytest.raises(UsageError) as refused:
        read_query(kind, query, {})
    problem = make_problem(refused.value)[0]
    assert (problem.status, problem.parameter) == (400, parameter)
    assert fix in problem.fix


def test_a_whole_number_may_be_written_with_a_point_in_json():
    assert read_body(BatchRequest, b'{"ids": [3.0, "#4", 5]}', {}).ids == [3, "#4", 5]
    for body in (b'{"ids": [3.5]}', b'{"ids": []}', b'{"ids": [0]}', b'{"ids": ["4x"]}', b"", b"7"):
        with pytest.raises(UsageError):
            read_body(BatchRequest, body, {})


@each(
    ("error", "status"),
    [(UsageError("x"), 400), (NotFound("x"), 404), (StoreBusy("x"), 503), (StoreError("x"), 500),
     (ConfigError("x"), 500), (YesterError("x"), 500)],
)  # fmt: skip
def test_what_yester_raises_becomes_an_answer(error, status):
    assert make_problem(error)[0].status == status


# --- the table ------------------------------------------------------------------------------------


@pytest.mark.requirement("DEL-07")
def test_every_endpoint_that_was_promised_is_there():
    promised = {
        *(f"/api/search/{name}" for name in (
            "observations", "sessions", "prompts", "by-type", "by-file", "by-concept",
            "recent-context", "timeline", "timeline-by-query", "help")),
        "/api/search", "/api/timeline", "/api/observations/batch", "/api/memory/save",
        "/api/context/inject", "/api/context/preview", "/api/context/recent", "/health", "/stream",
    }  # fmt: skip
    assert promised <= {one.path for one in ENDPOINTS}


def test_a_number_in_a_body_is_whole_where_it_is_and_never_beyond_all_bounds():
    assert read_body(BatchRequest, b'{"ids": [12.0]}', {}).ids == [12]
    with pytest.raises(UsageError, match="the body is not JSON"):
        read_body(BatchRequest, b'{"ids": [1e400]}', {})


def test_every_endpoint_and_parameter_is_explained():
    for one in ALL_ENDPOINTS:
        assert one.does.endswith((".", "?"))
        for name, parameter in list_parameters(one.request).items():
            assert parameter.help, f"{one.path}: {name}"
            assert describe_schema(parameter.schema)
    found = make_document(ALL_ENDPOINTS)
    ids = [op["operationId"] for path in found["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids)) == len(ALL_ENDPOINTS)
    page = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    assert all(f"### {one.method} {one.path}\n" in page for one in ALL_ENDPOINTS)


def test_every_sentence_about_a_field_belongs_to_one():
    known = {}
    importlib.import_module("yester.faces.mcp.calls")
    waiting = [Struct]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(("yester.operations", "yester.faces")):
            known.setdefault(kind.__name__, set()).update(kind.__struct_fields__)
    for name, rows in load_table("meanings").items():
        assert rows.keys() <= known[name], name
        assert all(text.strip() for text in rows.values())


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-03")
def test_the_token_is_made_once_and_for_this_user_alone(tmp_path):
    home = tmp_path / "home"
    first = login.load_token(home)
    assert len(first) >= 43
    assert (home / "token").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert login.load_token(home) == first
    assert [path.name for path in home.iterdir()] == ["token"]


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize("damage", ["open", "short", "link"])
def test_a_token_that_others_could_know_is_replaced(tmp_path, damage):
    first, path = login.load_token(tmp_path), tmp_path / "token"
    if damage == "open":
        path.chmod(0o644)
    elif damage == "short":
        path.write_text("x\n")
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    assert login.load_token(tmp_path) not in (first, "x")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("OPS-03")
def test_a_code_is_good_for_one_use_within_a_minute(tmp_path):
    code = login.new_code(tmp_path)
    (file,) = (tmp_path / "run" / "codes").iterdir()
    assert code not in file.name
    assert file.stat().st_mode & 0o777 == 0o600
    made = file.stat().st_mtime
    assert not login.take_code(tmp_path, code + "x", made)
    assert login.take_code(tmp_path, code, made + 30)
    assert not login.take_code(tmp_path, code, made + 30)
    late = login.new_code(tmp_path)
    (file,) = (tmp_path / "run" / "codes").iterdir()
    os.utime(file, (made, made))
    assert not login.take_code(tmp_path, late, made + 61)
    assert not list((tmp_path / "run" / "codes").iterdir())


@pytest.mark.requirement("OPS-03")
def test_a_grant_is_kept_hashed_proved_by_its_hash_and_good_for_thirty_days(tmp_path):
    now = [1_800_000_000.0]
    grants = login.Grants(tmp_path, lambda: now[0])
    grant = grants.create(login.USER, "a browser")
    name, _, secret = grant.partition(".")
    (file,) = (tmp_path / "run" / "grants").iterdir()
    assert file.name == name
    assert secret not in file.read_text("utf-8")
    assert file.stat().st_mode & 0o777 == 0o600
    key = hashlib.sha256(secret.encode()).digest()
    words = b"127.0.0.1:80\nnonce"
    assert grants.prove(name, "127.0.0.1:80", "nonce") == hmac.digest(key, words, "sha256").hex()
    assert grants.prove(name, "127.0.0.1:81", "nonce") != hmac.digest(key, words, "sha256").hex()
    assert grants.find_origin(grant) == login.USER
    assert grants.find_origin(f"{name}.{secret}x") == ""
    for wrong in ("", "../token", "f" * 24, f"..{name}"):
        assert grants.prove(wrong, "127.0.0.1:80", "nonce") == ""
        assert grants.find_origin(wrong) == ""
    now[0] += 31 * 86_400
    assert grants.find_origin(grant) == ""
    assert not list((tmp_path / "run" / "grants").iterdir())


@pytest.mark.requirement("OPS-03")
def test_a_bearer_of_a_grant_ends_with_it(tmp_path):
    grants = login.Grants(tmp_path)
    keys = login.Keys("t" * 43, grants)
    name = grants.create(login.USER, "").partition(".")[0]
    bearer = keys.issue_bearer(login.USER, name).encode()
    assert keys.find_origin(bearer) == login.USER
    assert grants.remove(name)
    assert not keys.find_origin(bearer)
    assert not grants.remove(name)


@pytest.mark.requirement("OPS-03")
def test_a_bearer_lasts_while_it_is_used_and_the_oldest_goes_first(tmp_path):
    now = [0.0]
    keys = login.Keys("t" * 43, login.Grants(tmp_path), lambda: now[0])
    bearer = keys.issue_bearer()
    assert keys.find_origin(b"t" * 43)
    for _ in range(3):
        now[0] += login.BEARER_SECONDS - 1
        assert keys.find_origin(bearer.encode())
    now[0] += login.BEARER_SECONDS + 1
    assert not keys.find_origin(bearer.encode())
    first = keys.issue_bearer()
    for _ in range(100):
        now[0] += 1
        keys.issue_bearer()
    assert not keys.find_origin(first.encode())
    assert not keys.find_origin(b"")
    assert not keys.find_origin("ü".encode())


# --- times, files ---------------------------------------------------------------------------------

NOW = int(datetime(2026, 3, 15, 14, 30, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000


def test_the_end_of_a_range_includes_a_whole_day():
    start = parse_bound("2026-03-01", NOW, UTC)
    assert parse_bound("2026-03-01", NOW, UTC, end=True) == start + DAY
    assert parse_bound("today", NOW, UTC, end=True) == parse_bound("today", NOW, UTC) + DAY
    assert parse_bound("2026-03-01T10:00:00Z", NOW, UTC, end=True) == start + 10 * 3_600_000
    assert parse_bound("3d", NOW, UTC, end=True) == NOW - 3 * DAY
    assert parse_bound("9999-12-31", NOW, UTC, end=True) > NOW
    assert parse_bound("1772323200", NOW) == parse_bound("1772323200000", NOW) == start


@given(st.text(max_size=25) | st.from_regex(r"\d{4}-\d\d-\d\d", fullmatch=True), st.booleans())
def test_any_text_is_a_time_or_a_usage_error(text, end):
    with suppress(UsageError):
        assert isinstance(parse_bound(text, NOW, UTC, end=end), int)


def test_the_viewer_comes_with_the_package():
    files = load_files()
    assert files["/"] is files["/index.html"]
    assert files["/"].headers["content-type"] == "text/html; charset=utf-8"


def test_a_whole_day_ends_with_the_calendars_day_also_where_clocks_change():
    zone = ZoneInfo("Europe/Berlin")
    start, end = (parse_bound("2026-03-29", NOW, zone, end=end) for end in (False, True))
    assert end - start == 23 * 3_600_000
