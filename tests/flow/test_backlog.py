"""Vectors are made when things are indexed, by the worker or while one waits; what has none yet is
said."""

from __future__ import annotations

import pytest

from yester.capture.question import ask_health, ask_worker
from yester.machine import on_battery

pytestmark = pytest.mark.requirement("REC-25")
EMPTYING = {"type": "Battery", "status": "Discharging"}


@pytest.fixture
def indexed(run, transcript, monkeypatch):
    monkeypatch.delenv("YESTER_EMBEDDER")
    t = transcript()
    t.user("Should the orders table use local time or UTC?")
    t.assistant("UTC. Local time breaks the reports twice a year.")

    def index(*words):
        return run("index", *words)

    return index


def test_what_has_no_vector_yet_is_said_until_somebody_has_waited(indexed, run):
    assert "2 of 2 texts have no vector yet" in indexed("--no-vectors").out
    assert "2 of 2 texts have no vector yet" in run("status").out
    assert "2 of 2 texts have no vector yet" in run("doctor").out
    first = run("recall", "orders table", "--all-projects")
    assert "2 of 2 texts have no vector yet: found by their words" in first.err
    explained = run("recall", "orders", "--all-projects", "--explain", "--json").json["explain"]
    assert explained["unembedded"] == 2
    assert "2 texts can be found by meaning" in indexed("--wait").out
    status = run("status", "--json").json
    assert status["vectors"] == {"done": 2, "waiting": 0}
    assert "no vector" not in run("recall", "orders table", "--all-projects").err
    assert indexed("--wait", "--no-vectors").code == 2


def test_indexing_has_a_worker_make_them(indexed, run, home):
    try:
        assert "the worker is making them" in indexed().out
        assert ask_health(home) is not None
        assert indexed("--wait").code == 0  # the worker makes them: it only looks on
        assert run("status", "--json").json["vectors"] == {"done": 2, "waiting": 0}
    finally:
        ask_worker(home / "run", "POST /stop", 5.0)


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({}, False),
        ({"AC": {"type": "Mains", "online": "1"}, "BAT0": EMPTYING}, False),
        ({"AC": {"type": "Mains", "online": "0"}, "BAT0": EMPTYING}, True),
        ({"BAT0": {"type": "Battery", "status": "Charging"}}, False),
    ],
)  # fmt: skip
def test_on_battery_they_can_wait(tmp_path, supplies, expected):
    for name, values in supplies.items():
        (tmp_path / name).mkdir()
        for file, text in values.items():
            (tmp_path / name / file).write_text(text + "\n")
    assert on_battery(tmp_path) is expected
    assert on_battery(tmp_path / "nowhere") is False
