"""`bench/quality.py` reads every format and counts right, on small sets made up here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.quality import SETS, NotThere, Options, answered, loaded, main
from tests.table import each
from yester.operate.bench import Mean, bootstrap_mean, chance_figures, rank_figures

ALL = ("hit@5", "hit@10", "all@5", "all@10", "recall@10", "mrr@10")


@each(
    ("ranked", "relevant", "expected"),
    [
        ("abc", "a", (1, 1, 1, 1, 1, 1)),
        ("abc", "c", (1, 1, 1, 1, 1, 1 / 3)),
        ("abc", "xyz", (0, 0, 0, 0, 0, 0)),
        ("", "a", (0, 0, 0, 0, 0, 0)),
        ("abc", "bx", (1, 1, 0, 0, 0.5, 0.5)),
        ("abcdef", "f", (0, 1, 0, 1, 1, 1 / 6)),
        ("abcdef", "af", (1, 1, 0, 1, 1, 1)),
        ("abcdefghijk", "k", (0, 0, 0, 0, 0, 0)),
        ("abcdefghijk", "ajk", (1, 1, 0, 0, 2 / 3, 1)),
    ],
)
def test_the_first_ten_decide_what_a_ranking_is_worth(ranked, relevant, expected):
    found = rank_figures(ranked, set(relevant))
    assert tuple(found[name] for name in ALL) == pytest.approx(expected)


def test_the_bootstrap_gives_the_same_interval_every_time():
    values = [0.0, 1.0, 0.5, 1.0, 0.0, 0.25, 1.0]
    once = bootstrap_mean(values)
    assert once == bootstrap_mean(values)
    assert len({bootstrap_mean(values, rounds=40, seed=seed) for seed in range(5)}) > 1
    assert once.mean == pytest.approx(sum(values) / 7)
    assert once.low < once.mean < once.high
    assert bootstrap_mean([0.5] * 4) == Mean(0.5, 0.5, 0.5)


def test_more_questions_make_the_interval_narrower():
    few, many = bootstrap_mean([0.0, 1.0] * 5), bootstrap_mean([0.0, 1.0] * 500)
    assert many.high - many.low < (few.high - few.low) / 5


@each(("total", "right"), [(1, 1), (3, 2), (6, 1), (12, 1), (13, 4), (12, 12)])
def test_chance_is_the_average_over_every_order(total, right):
    from itertools import combinations

    rows = [rank_figures(range(total), set(places)) for places in combinations(range(total), right)]
    for name, value in chance_figures(total, right).items():
        assert value == pytest.approx(sum(row[name] for row in rows) / len(rows)), name


# --- sets of our own -------------------------------------------------------------------------


def write_lines(path: Path, *rows: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def memory(id_: str, epoch: int, title: str, project: str = "mill", **more) -> dict:
    return {"id": id_, "project": project, "epoch": epoch, "title": title, "body": "", **more}


def asked(qid: str, epoch: int, text: str, *relevant: str, **more) -> dict:
    row = {"qid": qid, "project": "mill", "epoch": epoch, "text": text, "short": text}
    return {**row, "relevant_ids": list(relevant), **more}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Every set there is, a few lines each."""
    write_lines(
        tmp_path / "codemem" / "dev" / "memories.jsonl",
        memory("later", 5_000, "Grind the barley twice"),
        memory("wheel", 1_000, "The water wheel turns backwards", files=["wheel.c"]),
        memory("barley", 2_000, "Barley was ground too coarse", files=["stone.c"]),
        memory("foreign", 1_500, "Barley soup for the guests", project="inn"),
    )
    write_lines(
        tmp_path / "codemem" / "dev" / "queries.jsonl",
        asked("q2", 6_000, "barley ground twice", "later", "barley", short="water wheel"),
        asked("q1", 4_000, "grind the barley", "barley", files=["stone.c"]),
    )
    write_lines(
        tmp_path / "sessionmem" / "data" / "memories.jsonl",
        memory("s1", 100, "Make the door of the shed close", files=["door.py"], type="session"),
        memory("s2", 200, "Paint the fence", files=["fence.py"], type="session"),
    )
    write_lines(
        tmp_path / "sessionmem" / "data" / "queries.jsonl",
        asked("p1", 300, "the shed door is open again", "s1", files=["door.py"]),
    )
    talk = {
        "sample_id": "conv-a",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I bought a red canoe in April."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Ah!", "blip_caption": "a lighthouse"},
            ],
            "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "My sister sings."}],
        },
        "qa": [
            {"question": "When did Ada buy the canoe?", "evidence": ["D1:1"], "category": 2},
            {"question": "Who shared a lighthouse?", "evidence": ["D:1:02; D9:9"], "category": 1},
            {"question": "What was never said?", "evidence": ["D1:1"], "category": 5},
            {"question": "What has no evidence?", "evidence": [], "category": 1},
        ],
    }  # fmt: skip
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo10.json").write_text(json.dumps([talk]))
    chat = tmp_path / "beam" / "chats" / "100K" / "3"
    (chat / "probing_questions").mkdir(parents=True)
    said = [
        {"role": "user", "id": 1, "content": "My rye bread does not rise. ->-> 1,2"},
        {"role": "assistant", "id": 2, "content": "Feed the sourdough the evening before."},
    ]
    (chat / "chat.json").write_text(json.dumps([{"turns": [said]}]))
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps({
        "information_extraction": [
            {"question": "When to feed the sourdough?", "source_chat_ids": {"a": [2], "b": ["2"]}},
            {"question": "Which message is missing?", "source_chat_ids": [77]},
        ],
        "abstention": [{"question": "What about cake?", "source_chat_ids": [1]}],
    }))  # fmt: skip
    entry = {
        "question_id": "k1",
        "question_type": "multi-session",
        "question": "Which instruments do I own, the cello and what else?",
        "question_date": "2023/06/02 (Fri) 10:00",
        "haystack_session_ids": ["one", "two", "three"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 03:00", "2023/05/30"],
        "haystack_sessions": [
            [{"role": "user", "content": "The cello needs strings.", "has_answer": True},
             {"role": "assistant", "content": "A cello has four; the cello shop has them."}],
            [{"role": "user", "content": "What is a good soup?"}],
            [{"role": "user", "content": "My other instrument is a flute.", "has_answer": True}],
        ],
        "answer_session_ids": ["one", "three"],
    }  # fmt: skip
    (tmp_path / "longmemeval").mkdir()
    (tmp_path / "longmemeval" / "longmemeval_s.json").write_text(
        json.dumps([entry, {**entry, "question_id": "k2_abs"}])
    )
    return tmp_path


def rows(folder: Path, name: str, **options) -> dict[str, tuple[str, ...]]:
    chosen = Options(embedder="none", **options)
    found = [row for group in loaded(folder, name) for row in answered(group, chosen)]
    assert len(found) == len({row.qid for row in found})
    return {row.qid: row.ranked for row in found}


def test_only_older_memories_of_the_project_can_be_found_in_a_replay(folder):
    found = rows(folder, "codemem")
    assert list(found) == ["q1", "q2"]
    assert found["q1"][0] == "barley"
    assert {"later", "foreign"}.isdisjoint(found["q1"])
    assert set(found["q2"][:2]) == {"later", "barley"}


def test_a_question_over_all_projects_finds_the_other_ones_too(folder):
    assert set(rows(folder, "codemem", scope="all")["q1"]) >= {"barley", "foreign"}


def test_the_short_form_asks_the_other_text(folder):
    assert rows(folder, "codemem:short")["q2"][0] == "wheel"


def test_two_files_are_a_set_of_that_format_wherever_they_are(folder):
    assert rows(folder / "codemem" / "dev", "codemem") == rows(folder, "codemem")


def test_files_are_part_of_a_question_where_they_are_no_label(folder):
    (group,) = loaded(folder, "codemem")
    assert [question.files for question in group.questions] == [("stone.c",), ()]
    (group,) = loaded(folder, "sessionmem")
    assert [question.files for question in group.questions] == [()]
    assert rows(folder, "codemem", files=True)["q1"][0] == "barley"


def test_sessions_are_memories_in_sessionmem(folder):
    assert rows(folder, "sessionmem")["p1"][0] == "s1"


def test_locomo_asks_what_has_evidence_in_categories_one_to_four(folder):
    found = rows(folder, "locomo")
    assert {name: ranked[0] for name, ranked in found.items()} == {
        "conv-a#0": "D1:1", "conv-a#1": "D1:2",
    }  # fmt: skip
    (group,) = loaded(folder, "locomo")
    assert [sorted(question.relevant) for question in group.questions] == [["D1:1"], ["D1:2"]]
    assert group.items()[0]["epoch"] == 1_683_554_160
    assert "[shares image: a lighthouse]" in group.items()[1]["text"]


def test_beam_asks_what_has_a_source_message(folder):
    found = rows(folder, "beam")
    assert {name: ranked[0] for name, ranked in found.items()} == {
        "3/information_extraction/0": "2"
    }
    (group,) = loaded(folder, "beam")
    assert [item["text"] for item in group.items()] == [
        "user: My rye bread does not rise.",
        "assistant: Feed the sourdough the evening before.",
    ]


def test_longmemeval_counts_sessions_and_leaves_out_what_has_no_answer(folder):
    found = rows(folder, "longmemeval")
    assert list(found) == ["k1"]
    assert set(found["k1"][:2]) == {"one", "three"}
    (group,) = loaded(folder, "longmemeval")
    (question,) = group.questions
    assert question.epoch == 1_685_700_000
    first, second = group.items()[:2]
    assert (first["session"], first["epoch"], second["epoch"]) == ("one", 1684549260, 1684549290)


def test_the_cleaned_and_the_oracle_file_are_known_by_name(folder):
    there = folder / "longmemeval" / "longmemeval_s.json"
    with pytest.raises(NotThere, match=r"longmemeval_oracle\.json"):
        loaded(folder, "longmemeval:oracle")
    (folder / "longmemeval_oracle.json").write_bytes(there.read_bytes())
    assert len(loaded(folder, "longmemeval:oracle")) == 1
    there.rename(there.with_name("longmemeval_s_cleaned.json"))
    assert len(loaded(folder, "longmemeval")) == 1


def test_a_limit_draws_the_same_questions_and_a_larger_one_keeps_them(tmp_path):
    write_lines(tmp_path / "memories.jsonl", memory("m", 1, "Flour"))
    write_lines(
        tmp_path / "queries.jsonl", *(asked(f"q{n:02}", 10 + n, "flour", "m") for n in range(40))
    )

    def drawn(limit: int) -> list[str]:
        groups = loaded(tmp_path, "codemem", limit)
        return [question.qid for group in groups for question in group.questions]

    assert len(drawn(8)) == 8
    assert drawn(8) == drawn(8) == sorted(drawn(8))
    assert set(drawn(8)) < set(drawn(20)) < set(drawn(0))
    assert drawn(8) != drawn(0)[:8]


def test_every_set_in_the_folder_is_run_and_makes_a_row(folder, capsys, monkeypatch):
    monkeypatch.setenv("MEMDATA", str(folder))
    assert main(["--embedder", "none"]) == 0
    table = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [cells[0].strip("| ") for cells in table[2:]] == list(SETS)
    by_name = {cells[0].strip("| "): cells for cells in table[2:]}
    assert by_name["codemem"][1:4] == ["project", "2", "1.000"]
    assert by_name["longmemeval"][7:11] == ["1.000"] * 4


def test_a_run_is_compared_with_another_question_by_question(folder, tmp_path, capsys):
    out, other = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    assert main([str(folder), "--set", "codemem", "--embedder", "none", "--out", str(out)]) == 0
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["set"], row["qid"], row["recall@10"]) for row in written] == [
        ("codemem", "q1", 1.0), ("codemem", "q2", 1.0),
    ]  # fmt: skip
    write_lines(other, {**written[0], "recall@10": 0.5, "mrr@10": 1.0})
    words = ["--set", "codemem", "--embedder", "none", "--against", str(other)]
    assert main([str(folder), *words]) == 0
    said = capsys.readouterr().out
    assert "codemem recall@10: +0.500 (+0.500 to +0.500) on 1 questions" in said
    assert "codemem mrr@10: +0.000 (+0.000 to +0.000) on 1 questions" in said


def test_a_set_that_was_asked_for_and_is_not_there_is_a_failure(folder, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main([str(empty), "--set", "beam"]) == 1
    assert "beam is left out" in capsys.readouterr().err
    assert main([str(empty)]) == 1
    with pytest.raises(SystemExit):
        main([str(folder), "--set", "poems"])
    assert "no set is called poems" in capsys.readouterr().err
