"""`bench/floor.py` asks what it says it asks, and counts what passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.floor import DEFAULT, GENERIC, Case, cases, main, measured
from yester.context.talk import trivial

pytestmark = pytest.mark.requirement("REC-17")


def write_lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def memory(id_: str, epoch: int, title: str, project: str) -> dict:
    return {"id": id_, "project": project, "epoch": epoch, "title": title, "body": ""}


WHEEL = "The water wheel of the lower mill turns backwards in flood"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two projects, a question of each, and one memory that says what another one says."""
    write_lines(tmp_path / "codemem" / "dev" / "memories.jsonl", [
        memory("wheel", 1_000, WHEEL, "mill"),
        memory("wheel again", 1_100, f"{WHEEL} once more", "mill"),
        memory("stone", 1_200, "Flour comes out coarse since the stone was dressed", "mill"),
        memory("soup", 1_300, "Barley soup for the guests is served too cold", "inn"),
    ])  # fmt: skip
    asked = {"epoch": 2_000, "files": []}
    write_lines(tmp_path / "codemem" / "dev" / "queries.jsonl", [
        {"qid": "q1", "project": "mill", "text": "water wheel turns backwards in flood",
         "short": "wheel", "relevant_ids": ["wheel"], **asked},
        {"qid": "q2", "project": "inn", "text": "barley soup served cold", "short": "soup",
         "relevant_ids": ["soup"], **asked},
    ])  # fmt: skip
    talk = {
        "sample_id": "conv-a",
        "conversation": {
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I bought a red canoe in April."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "My sister sings in a choir."},
            ]
        },
        "qa": [
            {"question": "When did Ada buy the red canoe?", "evidence": ["D1:1"], "category": 2},
            {"question": "When did Ben buy a canoe?", "evidence": ["D1:1"], "category": 5},
        ],
    }
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo10.json").write_text(json.dumps([talk]))
    return tmp_path


def by_kind(folder: Path, name: str) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases(folder, name, embedder="none"):
        found.setdefault(case.kind, []).append(case)
    return found


def test_a_question_is_asked_of_its_own_project_of_another_and_without_its_answer(folder):
    found = by_kind(folder, "codemem")
    own, none, foreign = (
        {case.question.qid: {hit.ref for hit in case.hits} for case in found[kind]}
        for kind in ("own", "no answer", "foreign")
    )
    assert own["q1"] >= {"wheel"}
    assert own["q2"] == {"soup"}
    assert none["q1"].isdisjoint({"wheel", "wheel again"})  # nor what says the same
    assert none["q2"] == set()
    assert foreign["q1"] <= {"soup"}
    assert foreign["q2"] <= {"wheel", "wheel again", "stone"}


def test_what_the_set_calls_unanswerable_is_asked_too(folder):
    found = by_kind(folder, "locomo")
    (case,) = found["unanswerable"]
    assert (case.question.text, case.right()) == ("When did Ben buy a canoe?", 0)
    assert "foreign" not in found  # there is no other conversation


def test_the_generic_prompts_are_ones_that_would_be_searched_for(folder):
    assert not any(map(trivial, GENERIC))
    assert len(by_kind(folder, "codemem")["generic"]) == 2 * len(GENERIC)


def test_the_figures_count_what_passes(folder):
    found = list(cases(folder, "codemem", embedder="none"))
    figures = measured(found)
    assert (figures.questions, figures.kept) == (2, 1.0)
    assert figures.passed == {"foreign": 0.0, "no answer": 0.0, "generic": 0.0}
    assert figures.lines == sum(len(c.shown()) for c in found if c.kind == "own") / 2


def test_every_set_that_is_there_makes_a_row(folder, capsys):
    assert main([str(folder), "--embedder", "none"]) == 0
    out = capsys.readouterr()
    named = [line.split(" | ")[0].strip("| ") for line in out.out.splitlines()[2:]]
    assert named == [name for name in DEFAULT if name != "beam"]
    assert "beam is left out" in out.err
    assert main([str(folder / "locomo" / "nowhere")]) == 1
