"""`bench/learn.py` computes what recall would answer, and finds the weights a set was made for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.learn import CASES, GRID, WORDS_ALONE, Trials, ascended, fold_of, in_use, main
from bench.signals import Signals, extract, file_of, numbers, with_values
from yester.model import replace
from yester.recall.rank import Weights

pytestmark = pytest.mark.requirement("REC-05")

DAY = 86_400
TOPICS = ("barley", "canoe", "lantern", "violin", "chimney", "walnut")
BESIDE = ("amber", "bronze", "copper", "damask", "ebony", "flint", "garnet", "hazel", "ivory",
          "jasper", "khaki", "linen", "maple", "nickel")  # fmt: skip


def write_lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Of fourteen memories that match as well, one is right: an old one that touched the file
    asked for, or the newest, whose words match less well. Files and age must both count."""
    memories, questions = [], []
    for number, topic in enumerate(TOPICS):
        by_file = number % 2 == 0
        for at, word in enumerate(BESIDE):
            twice = "" if by_file or at > 11 else f" and {topic}"
            memories.append({
                "id": f"{topic}-{at}", "project": "mill", "epoch": (at + 1) * 30 * DAY + number,
                "title": f"The {word} {topic}{twice}", "body": "", "files": [f"{topic}/{word}.c"],
            })  # fmt: skip
        right = number // 2 if by_file else 13
        questions.append({
            "qid": topic, "project": "mill", "epoch": 450 * DAY, "text": f"where is the {topic}",
            "short": f"{BESIDE[right]} {topic}", "relevant_ids": [f"{topic}-{right}"],
            "files": [f"{topic}/{BESIDE[right]}.c"] if by_file else [],
        })  # fmt: skip
    write_lines(tmp_path / "memories.jsonl", memories)
    write_lines(tmp_path / "queries.jsonl", questions)
    return tmp_path


def rows_of(printed: str) -> dict[str, list[str]]:
    split = (line.strip("| ").split(" | ") for line in printed.splitlines() if line[:1] == "|")
    return {cells[0]: cells[1:] for cells in split}


def test_the_weights_a_set_was_made_for_are_found(planted, tmp_path, capsys):
    work = tmp_path / "work"
    assert main(["extract", str(work), str(planted), "--embedder", "none"]) == 0
    told = capsys.readouterr()
    assert "locomo is left out" in told.err
    assert told.out.count(".npz") == 5
    search = ["search", str(work), "--start", "words", "--folds", "3"]
    assert main(search) == 0
    printed = capsys.readouterr().out
    assert "0 of 30 questions differ from recall" in printed
    rows = rows_of(printed)
    assert rows["codemem, files"][3] == "1.0000"
    assert float(rows["files"][1]) > 0
    assert float(rows["recency"][1]) > 0
    assert rows["named"][1] == "0"  # no question names a file: no reason to take any value
    assert len(rows["files"][2].split()) == 3
    assert main(search) == 0
    assert capsys.readouterr().out == printed


def test_words_alone_would_not_find_them(planted, tmp_path, capsys):
    work = tmp_path / "work"
    labels = ["--case", "codemem, files", "--case", "codemem:short"]
    assert main(["extract", str(work), str(planted), "--embedder", "none", *labels]) == 0
    assert main(["measure", str(work), "files=0", "recency=0"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["codemem, files"][3] == "0.0000"
    assert rows["codemem:short"][3] == "1.0000"
    with pytest.raises(SystemExit):
        main(["measure", str(work), "luck=1"])
    assert "no weight is called luck" in capsys.readouterr().err


def test_a_case_that_is_there_is_not_asked_again(planted, tmp_path):
    work, case = tmp_path / "work", CASES[0]
    first = extract(planted, work, case, embedder="none").stat()
    assert extract(planted, work, case, embedder="none").stat() == first
    assert len(Signals(extract(planted, work, case, 4, "none"), case).qids) == 4
    file_of(work, case).write_bytes(b"cut off")
    assert len(Signals(extract(planted, work, case, 4, "none"), case).qids) == 4
    with pytest.raises(SystemExit, match="holds no case"):
        main(["search", str(tmp_path / "elsewhere")])


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A conversation in which the answers stand behind the words of the question; some are long,
    and one is given twice."""
    said, asked = [], []
    for number, topic in enumerate(TOPICS):
        for at in range(3):
            moved = [f"The {one} was moved to the {BESIDE[at]} room." for one in TOPICS * 2]
            much = " ".join(moved) if number == at else ""
            said += [
                f"Who saw the {topic} in week {at}?",
                f"Near the {BESIDE[number]} gate. {much}",
            ]
        behind = [f"D1:{6 * number + 2 * at + 1}" for at in range(3)]
        asked.append({"question": f"Who saw the {topic}?", "evidence": behind, "category": 1})
    turns = [
        {"speaker": "Ada" if at % 2 else "Ben", "dia_id": f"D1:{at}", "text": text}
        for at, text in enumerate(said)
    ]
    spoken = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    (tmp_path / "locomo10.json").write_text(
        json.dumps([{"sample_id": "a", "conversation": spoken, "qa": asked}])
    )
    return tmp_path


TALKING = (
    {"vector": 0.3, "neighbour": 0.9, "parts": 0.0},
    {"vector": 2.0, "neighbour": 0.2, "parts": 0.15, "telling_terms": 1},
)
FILED = (
    {"files": 0.0, "recency": 0.0, "telling_terms": 0},
    {"files": 0.1, "recency": 1.0, "half_life": 90, "spread": 1.0, "importance": 0.3},
)


@pytest.mark.parametrize(
    ("which", "case", "others"), [("talk", CASES[5], TALKING), ("planted", CASES[1], FILED)]
)
def test_other_weights_find_here_what_recall_finds_with_them(
    which, case, others, request, tmp_path, monkeypatch
):
    folder = request.getfixturevalue(which)
    if which == "talk":
        pytest.importorskip("onnxruntime")
        monkeypatch.delenv("YESTER_EMBEDDER")
        monkeypatch.setenv("YESTER_VECTOR_CACHE", str(tmp_path / "vectors"))
    kept = Signals(extract(folder, tmp_path / "first", case), case)
    assert kept.found(Weights()) == pytest.approx(kept.product)
    results = {tuple(kept.product)}
    for number, values in enumerate(others):
        weights = with_values(Weights(), values)
        product = Signals(
            extract(folder, tmp_path / str(number), case, weights=weights), case
        ).product
        assert kept.found(weights) == pytest.approx(product), values
        results.add(tuple(product))
    assert len(results) > 1  # else the comparison would have shown nothing


def test_every_weight_of_the_grid_is_one_of_the_score_and_in_use():
    assert GRID.keys() <= numbers(Weights()).keys()
    for name, value in in_use().items():
        assert value in GRID[name], f"{name} = {value:g} is not tried"
    assert with_values(Weights(), numbers(Weights())) == Weights()


def test_what_lets_one_case_fall_is_not_taken(planted, tmp_path):
    cases = []
    for case in (CASES[0], CASES[4], CASES[1]):
        path = extract(planted, tmp_path / "work", case, embedder="none")
        cases.append(Signals(path, replace(case, target=0.0)))
    newest = np.array([qid in TOPICS[1::2] for qid in cases[0].qids])
    asked = [newest, newest, ~newest]
    # With files counting, the last case is found. Age alone would find the two others instead.
    files = WORDS_ALONE | {"files": 0.1, "half_life": 90}
    age = files | {"recency": 5.0}
    trials = Trials(cases, {**GRID, "files": (0.1,), "recency": (0.0, 5.0)})
    assert trials.worth(files, asked) == pytest.approx(1 / 3)
    assert trials.worth(age, asked) == pytest.approx(2 / 3)
    assert trials.falls(age, files, asked)
    assert ascended(trials, files, asked) == files
    assert ascended(trials, files, asked, guarded=False)["recency"] == 5.0
    assert ascended(trials, files, [newest, newest, newest])["recency"] == 5.0


def test_the_folds_are_the_same_whatever_the_question_was_asked_with():
    folds = [fold_of(f"q{number}", 5, seed=1) for number in range(500)]
    assert folds == [fold_of(f"q{number}", 5, seed=1) for number in range(500)]
    assert folds != [fold_of(f"q{number}", 5, seed=2) for number in range(500)]
    assert min(np.bincount(folds, minlength=5)) > 70
