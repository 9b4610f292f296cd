"""`yester remember` and `yester memory`, as somebody types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from yester.faces.cli.app import GROUPS

pytestmark = pytest.mark.requirement("MEM-01")


@pytest.fixture
def editor(tmp_path):
    """An editor that runs a line of Python over the text."""

    def make(line):
        path = tmp_path / "editor.py"
        path.write_text(
            f"#!{sys.executable}\nimport sys, os, stat, pathlib\n"
            "path = pathlib.Path(sys.argv[1])\n"
            "assert stat.S_IMODE(path.stat().st_mode) == 0o600\n"
            f"text = path.read_text()\n{line}\npath.write_text(text)\n"
        )
        path.chmod(0o700)
        return {"EDITOR": str(path)}

    return make


def remember(run, *words, **more):
    ran = run("remember", *words, "--json", **more)
    assert ran.code == 0, ran.err
    return ran.json


def test_a_text_is_remembered_listed_shown_and_recalled(run):
    ran = run("remember", "Use UTC in orders because reports broke", "--type", "decision",
              "--tags", "Time,orders", "--file", "src/orders.py")  # fmt: skip
    assert ran.code == 0
    assert ran.out.startswith("remembered ★ #1")
    listed = run("memory", "list")
    assert "decision  Use UTC in orders  [time, orders]" in listed.out
    shown = run("memory", "show", "use-utc-in-orders").out
    for text in ("Why: reports broke", "files       src/orders.py", "by user", "trust 1"):
        assert text in shown
    (hit,) = run("recall", "reports broke", "--json").json["hits"]
    assert (hit["id"], hit["kind"], hit["type"]) == (1, "memory", "decision")
    full = run("memory", "list", "--json", "--format", "full").json["hits"][0]
    assert full["content"]["rationale"] == ["reports broke"]
    assert {"id", "ref", "kind", "type", "project", "session", "title", "snippet", "epoch", "score",
            "factors", "slug", "scope", "status", "tags", "files", "confidence", "origin", "trust",
            "version", "text"} <= full.keys()  # fmt: skip


def test_without_a_type_it_is_what_it_obviously_is(run):
    assert remember(run, "Always", "run", "make lint")["type"] == "rule"
    assert remember(run, "The staging box is heron")["type"] == "note"


def test_a_text_comes_from_the_standard_input(home):
    for words in ((), ("-",)):
        done = subprocess.run(
            [sys.executable, "-m", "yester", "--home", str(home), "remember", *words, "--json"],
            input=f"Heron {len(words)} stands in the water\n", capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["title"] == f"Heron {len(words)} stands in the water"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "there is nothing to remember; say it: yester remember"),
        (("",), "there is nothing to remember: the text is empty"),
        (("x", "--type", "dcision"), "type 'dcision' is no category"),
        (("x", "--type", "decision", "--set", "status=maybe"), "decision.status is 'maybe', but"),
        (("x", "--set", "a=b"), "--set needs --type"),
        (("x", "--type", "note", "--set", "a=b"), "--set 'a=b' sets nothing"),
        (("x", "--confidence", "2"), "confidence is 2.0, but must be a number from 0 to 1"),
        (("x", "--path", "/etc"), "path '/etc' must be relative to the project"),
        (("x", "--title", "y" * 121), "title has 121 characters"),
        (("x", "--global", "--path", "a/*"), "path 'a/*' is for scope path, but the scope is"),
    ],
)
def test_what_cannot_be_kept_is_told_in_one_line(run, words, told):
    ran = run("remember", *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert told in ran.err


def test_a_memory_or_project_that_is_not_there_is_exit_code_1(run):
    assert run("memory", "list").code == 1
    assert run("memory", "show", "7").code == 1
    remember(run, "x")
    for words in (("memory", "show", "nothing"), ("remember", "x", "--project", "nothing")):
        ran = run(*words)
        assert ran.code == 1
        assert "nothing" in ran.err


@pytest.mark.requirement("DIS-07")
def test_an_agent_may_remember_but_makes_no_rules(run):
    env = {"CLAUDECODE": "1"}
    rule = remember(run, "Never push to main")
    kept = remember(run, "Always obey the README", env=env)
    assert (kept["type"], kept["origin"], kept["trust"]) == ("note", "agent", 0.5)
    for words in (("remember", "obey", "--type", "rule"), ("memory", "retire", str(rule["id"]))):
        ran = run(*words, env=env)
        assert ran.code == 2
        assert "a rule must come from you, not from agent (claude-code)" in ran.err
    (change,) = run("memory", "history", str(kept["id"]), "--json").json["changes"]
    assert change["who"] == "claude-code"


@pytest.mark.requirement("MEM-02")
def test_a_memory_is_retired_restored_archived_undone_and_all_is_told(run):
    id_ = str(remember(run, "The staging box is heron")["id"])
    ran = run("memory", "retire", id_, "--why", "it burned down")
    assert "retired ★" in ran.out
    assert "may go after" in ran.out
    assert run("recall", "heron").code == 1
    assert "it burned down" in run("memory", "list", "--status", "retired").out
    assert run("memory", "restore", id_).code == 0
    assert run("recall", "heron").code == 0
    assert run("memory", "archive", id_, "--json").json["status"] == "archived"
    ran = run("memory", "undo", "--json")
    assert (ran.json["done"], ran.json["hits"][0]["status"]) == ("undone", "active")
    told = run("memory", "history", id_)
    assert [line.split()[3] for line in told.out.splitlines() if line[0] != " "] == [
        "undo", "archive", "restore", "retire", "create",
    ]  # fmt: skip
    assert 'status: "active" → "retired"' in told.out
    assert "(it burned down)" in told.out
    assert run("memory", "history", "--json", "-n", "1").json["changes"][0]["what"] == "undo"


@pytest.mark.requirement("MEM-02", "DIS-08")
def test_a_memory_takes_the_place_of_another(run):
    old = remember(run, "Sessions live in Redis", "--type", "decision", "--tags", "session")
    ran = run("memory", "supersede", str(old["id"]), "Sessions live in memory because it is gone")
    assert ran.out.startswith("superseded #1: ★ #2")
    newer = remember(run, "Sessions live in PostgreSQL", "--type", "decision")
    assert "sessions-live-in-memory" in run("memory", "show", "2").out
    assert run("memory", "supersede", "2", str(newer["id"])).code == 0
    shown = run("memory", "show", "3").out
    assert "replaces    ★ #2" in shown
    assert "replaces    ★ #1" in shown
    assert "replaced by ★ #3" in run("memory", "show", "1").out
    assert [h["id"] for h in run("recall", "sessions", "--json").json["hits"]] == [3]
    assert run("memory", "supersede", "3", "99").code == 1


def test_a_memory_is_edited_by_options(run):
    id_ = str(remember(run, "Disk full\n- look", "--type", "runbook", "--tags", "a,b")["id"])
    edited = run(
        "memory", "edit", id_, "--title", "Disk is full", "--tag", "C", "--untag", "a", "--file",
        "x.py", "--set", "steps=look", "--set", "steps=clean", "--confidence", "0.5", "--json",
    ).json  # fmt: skip
    assert edited["done"] == "changed"
    assert (edited["title"], edited["tags"], edited["files"]) == (
        "Disk is full",
        ["b", "c"],
        ["x.py"],
    )
    assert (edited["content"]["steps"], edited["confidence"]) == (["look", "clean"], 0.5)
    assert run("memory", "edit", id_, "--tag", "c", "--json").json["done"] == "unchanged"
    assert run("memory", "edit", id_, "--global", "--json").json["project"] == "global"
    assert run("memory", "edit", id_, "--path", "src/**", "--json").json["scope"] == "path"
    changed = run("memory", "edit", id_, "--type", "note", "--json").json
    assert (changed["type"], changed["content"]) == ("note", {"text": "Disk full"})


def test_a_memory_is_edited_in_the_editor_and_unchanged_nothing_is_written(run, editor, home):
    id_ = str(remember(run, "Use UTC", "--type", "decision")["id"])
    env = editor("text = text.replace('= \"accepted', '= \"proposed')")
    ran = run("memory", "edit", id_, "--why", "not sure", env=env)
    assert ran.out.startswith("changed ★")
    assert run("memory", "show", id_, "--json").json["hits"][0]["content"]["status"] == "proposed"
    assert run("memory", "edit", id_, env=editor("pass")).out.startswith("unchanged ★")
    assert run("memory", "edit", id_, env=editor("text = ''")).out.startswith("unchanged ★")
    assert len(run("memory", "history", id_, "--json").json["changes"]) == 2
    assert not list((home / "run").glob("memory-*"))


def test_a_text_that_cannot_be_read_back_is_kept_for_another_try(run, editor, home):
    id_ = str(remember(run, "Use UTC", "--type", "decision")["id"])
    ran = run("memory", "edit", id_, env=editor("text += 'oops ='"))
    assert ran.code == 2
    (kept,) = (home / "run").glob("memory-*")
    assert f"your text is kept: yester memory edit {id_} --from {kept}" in ran.err
    kept.write_text(kept.read_text().removesuffix("oops =").replace("Use UTC", "Use TAI"))
    assert run("memory", "edit", id_, "--from", str(kept), "--json").json["title"] == "Use TAI"
    assert run("memory", "edit", id_, env=editor("sys.exit(3)")).code == 2
    assert "Editing failed" in run("memory", "edit", id_, env={"EDITOR": "/no/such"}).err


@pytest.mark.requirement("MEM-03")
def test_candidate_says_what_would_happen_and_writes_nothing(run, home):
    remember(run, "Global migration lock causes startup delays", "--type", "tech_debt", "--tags",
             "lock,migration,startup")  # fmt: skip
    said = ("memory", "candidate", "--type", "tech_debt", "Removed the global lock on migrations")
    answer = run(*said, "--json").json
    assert answer["action"] == "UPDATE_OR_DELETE"
    assert answer["candidate"]["id"] == 1
    assert answer["candidate"]["tags"] == ["lock", "migration"]
    assert (answer["compared"], answer["deletable"]) == (1, True)
    assert run(*said).out.startswith("UPDATE_OR_DELETE  (compared with 1 memory of this category)")
    answer = run("memory", "candidate", "--type", "decision", "redis", "--json").json
    assert (answer["action"], answer["candidate"]) == ("CREATE", None)
    same = "Global migration lock causes startup delays"
    answer = run("memory", "candidate", "--type", "tech_debt", same, "--json").json
    assert answer["action"] == "NOOP"
    assert len(run("memory", "history", "--json").json["changes"]) == 1


@pytest.mark.requirement("STO-08")
def test_gc_shows_what_is_due_and_does_it_when_told(run, home):
    remember(run, "One", "--type", "session_summary")
    remember(run, "Two", "--type", "session_summary")
    assert run("memory", "gc").code == 1
    (home / "config.toml").write_text('[retention]\nsession_summary = "keep 1"\n')
    for _ in range(2):
        ran = run("memory", "gc")
        assert ran.out.startswith("would retire ★ #1")
        assert "[retention] session_summary: keep 1" in ran.out
        assert "Nothing has been changed" in ran.err
    assert run("memory", "gc", "--apply").out.startswith("retired ★ #1")
    assert run("memory", "gc", "--apply", "--json").code == 1
    (home / "config.toml").write_text("[retention]\nsessions = 1\n")
    ran = run("memory", "gc")
    assert (ran.code, "'sessions' is no category" in ran.err) == (2, True)


def test_review_has_its_exit_codes_and_a_second_name(run):
    remember(run, "Use tabs", "--type", "preference", "--confidence", "0.2")
    ran = run("memory", "review", "--json")
    assert (ran.code, ran.json["findings"][0]["check"]) == (0, "low confidence")
    remember(run, "Use spaces", "--type", "preference")
    ran = run("memory", "lint")
    assert (ran.code, "contradiction: says otherwise than #1" in ran.out) == (0, True)
    assert run("memory", "review").out == ran.out
    run("memory", "retire", "1", "2", "--force")
    ran = run("memory", "review")
    assert (ran.code, ran.err) == (1, "Nothing to look at.\n")


def test_memories_are_listed_by_what_they_are(run, tmp_path):
    blog = tmp_path / "blog"
    blog.mkdir()
    remember(run, "One", "--type", "decision", "--tags", "a")
    remember(run, "Two", "--tags", "a,b", "--file", "x/y.py", cwd=blog)
    remember(run, "Three", "--global")

    def listed(*words, **more):
        ran = run("memory", "list", *words, "--json", **more)
        return [hit["title"] for hit in ran.json["hits"]]

    assert listed("--all-projects") == ["Three", "Two", "One"]
    assert listed() == ["Three", "One"]  # those that hold here
    assert "of all: --all-projects" in run("memory", "list").err
    assert listed("--all-projects", "--type", "decision") == ["One"]
    assert listed("--all-projects", "--tag", "A") == ["Two", "One"]
    assert listed("--all-projects", "--tag", "a", "--tag", "b") == ["Two"]
    assert listed("--all-projects", "--file", "y.py") == ["Two"]
    assert listed("-p", "blog") == ["Two"]
    assert listed("-p", "global") == ["Three"]
    assert listed("--all-projects", "-n", "1", "--offset", "1") == ["Two"]
    assert listed(cwd=blog, env={"YESTER_CROSS_PROJECT": "false"}) == ["Three", "Two"]


def test_a_file_named_narrows_the_list_of_the_current_project_too(run):
    env = {"YESTER_CROSS_PROJECT": "false"}
    remember(run, "One", "--file", "x/y.py")
    remember(run, "Two")
    listed = run("memory", "list", "--file", "y.py", "--json", env=env).json["hits"]
    assert [hit["title"] for hit in listed] == ["One"]


def test_of_an_excluded_folder_nothing_is_remembered_unasked(run, home, tmp_path):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'exclude = ["{tmp_path}/secret"]\n')
    secret = tmp_path / "secret"
    secret.mkdir()
    ran = run("remember", "x", cwd=secret)
    assert (ran.code, "is excluded (setting `exclude`)" in ran.err) == (2, True)
    assert remember(run, "x", "--global", cwd=secret)["scope"] == "global"


@pytest.mark.parametrize("name", GROUPS["memory"])
def test_every_command_says_what_it_does(run, name):
    ran = run("memory", name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: yester memory {name} ")


def test_reading_commands_make_no_store(run, home):
    for words in (("list",), ("history",), ("review",), ("candidate", "--type", "note", "x")):
        run("memory", *words)
    assert not (home / "yester.db").exists()
    assert not os.path.exists(home / "run")  # noqa: PTH110
