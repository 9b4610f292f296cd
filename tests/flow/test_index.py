"""`yester index` as a user meets it: finds, reads only what is new, survives being stopped."""

from __future__ import annotations

import json
import os

import pytest

pytestmark = pytest.mark.requirement("STO-05")


def test_it_finds_the_transcripts_by_itself_and_makes_them_recallable(run, transcript):
    t = transcript()
    t.user("Why is the redis cache cold after every deploy?")
    t.assistant("Because the deploy flushes it.")
    done = run("index", "--json")
    assert done.code == 0
    assert (done.json["files"], done.json["added"]) == (1, 2)
    found = run("recall", "redis deploy", "--json")
    assert found.code == 0
    assert found.json["hits"][0]["snippet"].startswith("Why is the redis cache cold")
    assert found.json["hits"][0]["project"] == "shop"


def test_a_second_run_over_unchanged_files_does_nothing(run, transcript, home):
    transcript().talk(5)
    run("index")
    before = (home / "yester.db").read_bytes()
    again = run("index", "--json")
    assert again.json["unchanged"] == 1
    assert (again.json["files"], again.json["added"], again.json["changed"]) == (0, 0, 0)
    assert (home / "yester.db").read_bytes() == before


def test_only_what_was_appended_is_read(run, transcript):
    t = transcript()
    t.talk(5)
    run("index")
    size = t.path.stat().st_size
    t.user("one more question about invoices")
    again = run("index", "--json")
    assert (again.json["files"], again.json["added"]) == (1, 1)
    assert again.json["bytes"] == t.path.stat().st_size - size
    assert run("recall", "invoices", "--json").json["hits"][0]["ref"] == t.lines[-1]["uuid"]


def test_a_rewritten_file_is_read_from_the_start(run, transcript):
    t = transcript()
    t.talk(5)
    run("index")
    t.path.unlink()
    t.user("an entirely new beginning with pelicans")
    t.talk(8)
    again = run("index", "--json")
    assert again.json["bytes"] == t.path.stat().st_size
    assert run("recall", "pelicans").code == 0


def test_a_truncated_file_is_read_from_the_start(run, transcript):
    t = transcript()
    t.talk(5)
    run("index")
    data = t.path.read_bytes()
    t.path.write_bytes(data[: data.index(b"\n") + 1])
    assert run("index", "--json").json["unchanged"] == 0
    assert run("doctor").code == 0


def test_named_files_and_folders_are_read_too(run, transcript, tmp_path):
    t = transcript()
    t.talk(2)
    elsewhere = tmp_path / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    t.path.rename(elsewhere / "x.jsonl")
    (elsewhere / "notes.txt").write_text("not a transcript")
    assert run("index").code == 1
    assert run("index", str(tmp_path / "elsewhere"), "--json").json["files"] == 1
    assert run("index", str(elsewhere / "x.jsonl"), "--json").json["unchanged"] == 1


def test_a_file_of_nobody_is_refused_with_its_name(run, tmp_path):
    (tmp_path / "list.txt").write_text("eggs")
    done = run("index", str(tmp_path / "list.txt"))
    assert done.code == 3
    assert "list.txt: not a transcript of Claude Code" in done.err
    missing = run("index", str(tmp_path / "gone"))
    assert missing.code == 3
    assert "gone: no such file or folder" in missing.err


def test_since_leaves_older_transcripts_out(run, transcript):
    old, new = transcript(), transcript("bbbbbbbb-0000-4000-8000-000000000002")
    old.talk(1)
    new.talk(1)
    os.utime(old.path, (1_000_000_000, 1_000_000_000))
    assert run("index", "--since", "1w", "--json").json["files"] == 1


def test_bad_lines_are_named_and_do_not_stop_the_run(run, transcript):
    t = transcript()
    t.user("first")
    t.raw('{"type": "user", "broken\n')
    t.user("second")
    done = run("index")
    assert done.code == 0
    assert f"{t.path}:2: not JSON" in done.err
    assert "2 new items" in done.out
    assert "1 of them unreadable" in done.out
    assert done.out.count("\n") == 1


def test_counts_of_what_was_left_out_are_kept(run, transcript):
    t = transcript()
    t.user("hello there")
    t.other("progress", data={})
    t.other("mode", mode="plan")
    run("index")
    assert run("status", "--json").json["skipped"] == {"progress": 1, "mode": 1}


@pytest.mark.requirement("CAP-07")
def test_a_name_set_later_moves_what_is_already_stored(run, transcript, home):
    transcript().talk(1)
    run("index")
    (home / "config.toml").write_text('[projects]\n"/home/sam/code" = "everything"\n')
    run("index")
    found = run("recall", "checkout", "--project", "everything", "--json")
    assert {hit["project"] for hit in found.json["hits"]} == {"everything"}
    assert run("recall", "checkout", "--project", "shop").code == 1


def test_thinking_can_be_left_out_by_a_variable(run, transcript):
    t = transcript()
    t.assistant({"type": "thinking", "thinking": "the flamingo is to blame"})
    assert run("index", env={"YESTER_THINKING": "false"}).code == 0
    assert run("recall", "flamingo").code == 1


@pytest.mark.requirement("IMP-05")
def test_a_result_that_arrives_later_completes_its_call(run, transcript):
    t = transcript()
    key = t.call("Bash", command="make deploy")
    run("index")
    assert run("recall", "deploy", "--json").json["hits"][0]["ref"] == key
    t.result(key, "error: certificate has expired")
    again = run("index", "--json").json
    assert (again["added"], again["changed"]) == (0, 1)
    (hit,) = run("recall", "certificate expired", "--json", "--format", "full").json["hits"]
    assert hit["text"] == "make deploy\n\nerror: certificate has expired"


def test_long_output_is_cut_in_the_middle_and_prompts_never(run, transcript):
    t = transcript()
    t.user("start " + "word " * 5000 + "prompt-end")
    t.result(t.call("Bash", command="cat log"), "first line\n" + "x y z\n" * 5000 + "last line")
    run("index")
    (prompt,) = run("recall", "--kind", "prompt", "--json", "--raw").json["hits"]
    assert prompt["text"].endswith("prompt-end")
    (output,) = run("recall", "--tool", "Bash", "--json", "--raw").json["hits"]
    assert len(output["text"]) < 8_200
    assert "characters left out" in output["text"]
    assert output["text"].startswith("cat log")
    assert output["text"].endswith("last line")


def test_the_samples_can_be_indexed(run, samples):
    done = run("index", str(samples), "--json")
    assert done.code == 0
    assert done.json["problems"] == []
    assert done.json["files"] == len(list(samples.rglob("*.jsonl")))
    json.dumps(done.json)
