"""Curves, the doctor, and what was made of what, over HTTP."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import yester
from tests.distilling import Story, distilled, fixed_bug
from tests.serving import serving
from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.model import Answered, Event, Injection, Item, Spend
from yester.store import open_store

DAY = 86_400_000


@pytest.mark.requirement("DEL-07", "DEL-11")
def test_curves_have_a_number_for_each_day(tmp_path):
    now = int(time.time() * 1000)
    with yester.open(with_store(tmp_path / "memory")) as memory:
        store = memory.store
        with store.transaction("items"):
            store.put([
                prepare_item(Item("1", "observation", "name:a", type="bugfix", body="a", epoch=now,
                              discovery_tokens=90)),
                prepare_item(Item("2", "message", "name:a", body="b", epoch=now - DAY)),
                prepare_item(Item("3", "message", "name:a", body="c", epoch=now - 9 * DAY)),
            ])  # fmt: skip
            store.append([Injection(1, "SessionStart", 1, 0.5, 12, now)])
            store.append([Event("e", "Stop", epoch=now - DAY, lag=40)])
            store.append([Answered(at // DAY, ms) for at, ms in [(now, 7)]])
            store.append([Spend(now, "m", "p", cost=0.25, outcome="ok")])
    with serving(tmp_path / "memory") as api:
        found = api.get("/api/series", days=3)
        last = time.strftime("%Y-%m-%d", time.gmtime(now / 1000))
        if found["days"][-1] != last:
            pytest.skip("midnight")
        assert len(found["days"]) == 3
        assert found["items"] == {"bugfix": [0, 0, 1], "message": [0, 1, 0]}
        assert found["shown_tokens"] == [0, 0, 12]
        assert found["discovered_tokens"] == [0, 0, 90]
        assert found["shown_lines"] == [0, 0, 1]
        assert found["lag_ms"] == {"p50": [None, 40, None], "p99": [None, 40, None]}
        assert found["answer_ms"]["p99"] == [None, None, 7]
        assert found["spend"] == [0, 0, 0.25]
        assert "not what you save" in found["note"]
        assert len(api.get("/api/series")["days"]) == 30


@pytest.mark.requirement("DEL-07")
def test_only_the_most_frequent_types_have_a_curve_of_their_own(tmp_path):
    with yester.open(with_store(tmp_path / "memory")) as memory:
        memory.add([
            {"ref": f"{n}-{k}", "kind": "observation", "type": f"type{n}", "text": f"{n} {k}"}
            for n in range(30)
            for k in range(1 + n % 3)
        ])  # fmt: skip
    with serving(tmp_path / "memory") as api:
        curves = api.get("/api/series", days=2)["items"]
        assert len(curves) == 21
        assert sum(map(sum, curves.values())) == 60


@pytest.mark.requirement("DIS-01", "DEL-07")
def test_observations_name_the_messages_they_were_made_of_and_these_name_them(tmp_path):
    home = tmp_path / "memory"
    store = open_store(home, now=1)
    fixed_bug(Story()).store(store)
    distilled(store)
    store.close()
    with serving(home) as api:
        (row, *_) = api.get("/api/items", kinds="observation", limit=1)["results"]
        shown = api.get(f"/api/items/{row['id']}")
        assert shown["sources"]
        assert {one["kind"] for one in shown["sources"]} <= {"message", "prompt"}
        assert "narrative" not in shown["sources"][0]
        made = api.get(f"/api/items/{shown['sources'][0]['id']}")["made"]
        assert row["id"] in [one["id"] for one in made]
        session = shown["item"]["session"]
        rows = api.get(f"/api/sessions/{session}/transcript", limit=200)["results"]
        told = {one["id"]: one.get("sources") for one in rows}
        assert told[row["id"]] == [one["id"] for one in shown["sources"]]
        assert set(told[row["id"]]) <= set(told)
        assert told[shown["sources"][0]["id"]] is None


@pytest.mark.requirement("OPS-04", "DEL-07")
def test_the_doctor_is_asked_and_changes_nothing(tmp_path, monkeypatch):
    home = tmp_path / "memory"
    yester.open(home).close()
    monkeypatch.setenv("HOME", str(tmp_path))
    (home / "logs").mkdir(mode=0o700)
    (home / "open.txt").write_text("x")
    (home / "open.txt").chmod(0o644)
    with serving(home) as api:
        before = sorted(home.iterdir())
        found = api.get("/api/doctor")
        by_name = {one["name"]: one for one in found["findings"]}
        assert by_name["permissions"]["state"] == "bad"
        assert by_name["permissions"]["fix"]
        assert found["ok"] is False
        assert by_name["store"]["state"] == "ok"
        assert by_name["worker"]["state"] == "warn"
        assert {one["area"] for one in found["findings"]} >= {"yester", "capture", "store"}
        assert (home / "open.txt").stat().st_mode & 0o077
        assert sorted(home.iterdir()) == before
        assert api.ask("GET", "/api/doctor?fix=true").status == 400
        assert api.send("/api/doctor", {"fix": True}).status == 405


@pytest.mark.requirement("DEL-07")
def test_the_doctor_says_whose_home_the_server_knows(tmp_path):
    with serving(tmp_path / "memory") as api:
        note = api.get("/api/doctor")["note"]
    assert f"the HOME of your account ({Path.home()})" in note
