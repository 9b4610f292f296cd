"""`bench/floor.py` asks what it says it asks, and its fit finds what was put in."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bench.floor import DEFAULT, GENERIC, Case, cases, main, measured
from bench.floor_fit import facts, fitted
from bench.quality import Question
from yester.context.talk import trivial
from yester.model import Hit

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


# --- the fit -------------------------------------------------------------------------------------


def made(kind: str, number: int, rise: float, peak: float) -> Case:
    """Twelve hits, the first of which stands so high above the others."""
    scores = [0.3 + rise, *(0.3 for _ in range(11))]
    hits = tuple(
        Hit(n, f"m{n}", "observation", "", "p", "", "", "x" * 90, 0.0, score, {"cosine": peak})
        for n, score in enumerate(scores)
    )
    relevant = frozenset({"m0"} if kind == "own" else ())
    project = f"p{number % 3}"
    return Case(kind, project, Question(f"{kind}{number}", "", project, relevant), hits, 8, 100)


def test_the_fit_finds_that_height_and_nearness_tell_an_answer(folder):
    chance = random.Random(5)
    found = []
    for number in range(150):
        for kind, rise, peak in (
            ("own", 0.25, 0.8),
            ("no answer", 0.1, 0.8),
            ("foreign", 0.05, 0.6),
        ):
            height = max(0.0, chance.gauss(rise, 0.03))
            found.append(made(kind, number, height, chance.gauss(peak, 0.02)))
    said = fitted({"made up": found}, keep=0.9)
    weights = json.loads(said[0].partition("= ")[2].replace("'", '"'))
    assert weights["rise"] > 0 < weights["peak"]
    row = next(line for line in said if line.startswith("| made up"))
    kept, foreign, none = (cell.strip(" %|") for cell in row.split(" | ")[1:])
    assert float(kept) >= 0.9
    assert (float(foreign), float(none)) == (0.0, 0.0)


def test_the_facts_of_a_case_are_those_the_floor_looks_at():
    found = facts(made("own", 0, 0.25, 0.8))
    assert found.rise == pytest.approx(0.25)
    assert (found.peak, found.talk, found.length, found.files) == (0.8, 0.0, 0.0, 0.0)
