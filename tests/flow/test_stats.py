"""`yester stats`: spend by day, model and purpose; what was shown for what it took to find out."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.stores import with_store
from yester.clock import DAY
from yester.ingest.prepare import prepare_item
from yester.llm.budget import day_of, known_prices
from yester.model import Injection, Item, Session, Spend
from yester.store import open_store
from yester.tables import load_table


@pytest.fixture
def today():
    return day_of(int(time.time() * 1000))


@pytest.fixture
def store(home):
    opened = open_store(with_store(home), now=1)
    yield opened
    opened.close()


def put(store, *spends):
    with store.transaction("items"):
        for spend in spends:
            store.append([spend])


@pytest.mark.requirement("DIS-05")
def test_spend_is_shown_by_day_model_and_purpose(run, store, today):
    now, before, old = today + 5, today - DAY, today - 9 * DAY
    put(
        store,
        Spend(now, "haiku", "turn/1", 1000, 100, 0.0015, outcome="ok"),
        Spend(now, "haiku", "turn/1", 2000, 200, 0.003, outcome="ok"),
        Spend(now, "haiku", "turn/1", outcome="over budget"),
        Spend(now, "haiku", "digest/1", 10, 1, 0.5, outcome="ok"),
        Spend(before, "sonnet", "turn/1", 7, 7, 0.25, outcome="malformed"),
        Spend(old, "haiku", "turn/1", 9, 9, 9.0, outcome="ok"),
    )
    day = time.strftime("%Y-%m-%d", time.gmtime(today / 1000))
    out = run("stats").out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "day model purpose outcome calls tokens in tokens out cost" in rows
    assert f"{day} haiku turn/1 ok 2 3,000 300 0.0045" in rows
    assert f"{day} haiku turn/1 over budget 1 0 0 0.0000" in rows
    assert f"{day} haiku digest/1 ok 1 10 1 0.5000" in rows
    assert any(row.endswith("sonnet turn/1 malformed 1 7 7 0.2500") for row in rows)
    assert "9.0000" not in out
    assert "today      $0.5045 of $0.20, 3,311 of 2,000,000 tokens" in out
    found = run("stats", "--json", "--days", "10").json
    assert {row["cost"] for row in found["spend"]} == {0.0045, 0.0, 0.5, 0.25, 9.0}
    assert found["limits"] == {"dollars": 0.2, "tokens": 2_000_000, "in_flight": 1}
    assert found["today"] == {"cost": 0.5045, "tokens": 3311, "in_flight": 0}
    assert len(run("stats", "--json", "--days", "1").json["spend"]) == 3


@pytest.mark.requirement("DIS-05")
def test_a_call_that_is_under_way_is_shown_as_such(run, store, today):
    put(store, Spend(today, "m", "turn/1", 5, 5, 0.1, until=today + 2 * DAY))
    assert "turn/1   under way      1" in run("stats").out
    assert run("stats", "--json").json["today"]["in_flight"] == 1


@pytest.mark.requirement("DEL-11")
def test_what_was_found_out_is_set_against_what_reading_costs(run, store, today):
    items = [
        Item("o1", "observation", project="name:p", title="A title", body="b" * 391, epoch=5,
             discovery_tokens=4_000),
        Item("o2", "observation", project="name:p", title="T", body="b" * 397, epoch=5,
             discovery_tokens=2_000),
        Item("s1", "summary", project="name:p", body="b" * 98, epoch=5, discovery_tokens=500),
        Item("m1", "message", project="name:p", body="b" * 9_000, epoch=5),
        Item("o3", "observation", project="name:p", body="b", epoch=5, discovery_tokens=9,
             status="retired"),
    ]  # fmt: skip
    with store.transaction("items"):
        store.put([prepare_item(one) for one in items])
        session = store.put_session(Session("s", "claude-code", "name:p"))
        first, second = (store.find_by_ref(ref)[0].id for ref in ("o1", "m1"))
        store.append(
            [
                Injection(session, "SessionStart", first, 0.0, 20, today + 1),
                Injection(session, "SessionStart", second, 0.0, 30, today + 1),
                Injection(session, "UserPromptSubmit", first, 0.7, 25, today + 2),
                Injection(session, "UserPromptSubmit", first, 0.7, 25, today + 3),
                Injection(session, "UserPromptSubmit", first, 0.7, 25, today - 30 * DAY),
            ]
        )
    found = run("stats", "--json").json
    assert found["distilled"] == [
        {"kind": "observation", "items": 2, "discovery_tokens": 6_000, "read_tokens": 199},
        {"kind": "summary", "items": 1, "discovery_tokens": 500, "read_tokens": 25},
    ]
    assert found["shown"] == [
        {"event": "SessionStart", "times": 1, "items": 2, "tokens": 50, "discovery_tokens": 4_000},
        {"event": "UserPromptSubmit", "times": 2, "items": 2, "tokens": 50,
         "discovery_tokens": 8_000},
    ]  # fmt: skip
    assert found["items"] == {"observation": 3, "summary": 1, "message": 1}
    out = run("stats").out
    rows = [line.split() for line in out.splitlines()]
    assert ["observation", "2", "6,000", "199"] in rows
    assert ["UserPromptSubmit", "2", "2", "50", "8,000"] in rows
    assert "not what you save" in out


def test_an_empty_memory_has_statistics_too(run, home):
    ran = run("stats")
    assert ran.code == 0
    assert "none is set; nothing is sent and nothing costs anything" in ran.out
    assert run("stats", "--json").json["spend"] == []
    assert not home.exists()  # reading makes nothing


def test_what_is_wrong_with_the_settings_is_shown_without_asking_anybody(run, home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[llm]\nprovider = 'openai'\nmodel = 'x'\nkey = 'k'\n")
    ran = run("stats")
    assert "llm        openai, x" in ran.out
    assert "not used: no price is known for 'x'; set llm.price" in ran.out
    (home / "config.toml").write_text("[llm]\nprovider = 'anthropic'\nkey = 'k'\n")
    assert (
        "anthropic, claude-haiku-5-5 ($0.10 in and $0.50 out per million tokens)"
        in run("stats").out
    )


def test_the_prices_that_are_known_can_be_looked_at(run):
    out = run("stats", "--prices").out
    assert f"as of {load_table('prices')['as_of']}" in out
    assert all(name in out for name in known_prices())
    found = run("stats", "--prices", "--json").json
    assert found["dollars_per_million"]["claude-haiku-5-5"] == [0.1, 0.5]


def test_a_refused_number_of_days_is_a_usage_error(run):
    assert run("stats", "--days", "0").code == 2


@pytest.mark.requirement("OPS-04")
def test_status_shows_what_today_has_cost(run, store, today, home):
    assert "spent today" not in run("status").out
    put(store, Spend(today, "m", "turn/1", 5, 5, 0.0123, outcome="ok"))
    put(store, Spend(today - 1, "m", "turn/1", 5, 5, 7.0, outcome="ok"))
    assert "spent today  $0.0123 of $0.20 (yester stats)" in run("status").out
    assert run("status", "--json").json["spend"] == {"today": 0.0123, "limit": 0.2}


def test_nothing_that_could_send_is_loaded_where_no_model_is_set():
    code = (
        "import sys, yester.llm.budget\n"
        "import yester.faces.cli.recall, yester.faces.cli.stats\n"
        "print([m for m in ('http.client', 'ssl', 'yester.text.server') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
