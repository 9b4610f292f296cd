"""What is known of the work at hand: at the start of a session, and of files that have changed."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC
from functools import partial
from time import monotonic

import pytest

from tests.table import each
from yester import git
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.context.start import at_start
from yester.model import Filters, replace
from yester.project import named_project
from yester.recall.beginning import MOST_FILES, changed_files, folder_question, relevant_hits
from yester.recall.recall import Asked, answer_question, recall_hits
from yester.recall.staleness import GitFacts, judge_staleness

NOW = 1_780_000_000_000
DAY = 86_400_000
SHOP = named_project("shop")


def in_git(folder, *words, when=NOW - 20 * DAY):
    date = f"{when // 1000} +0000"
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Sam", "GIT_AUTHOR_EMAIL": "sam@example.org", "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": "Sam", "GIT_COMMITTER_EMAIL": "sam@example.org",
        "GIT_COMMITTER_DATE": date,
    }  # fmt: skip
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=env)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "shop"
    (folder / "payments").mkdir(parents=True)
    for name in ("charge", "refund", "ledger"):
        (folder / "payments" / f"{name}.py").write_text("one\n")
    in_git(folder, "init", "-q", "-b", "main")
    in_git(folder, "add", ".")
    in_git(folder, "commit", "-qm", "begin")
    return folder


def about(name, text, days_ago=10.0, **more):
    return {
        "ref": name, "project": "shop", "type": "discovery", "text": text, "session": f"s-{name}",
        "files": [f"payments/{name}.py"], "epoch": (NOW - days_ago * DAY) / 1000, **more,
    }  # fmt: skip


NOTES = (
    about("charge", "Retries must carry the same idempotency key."),
    about("refund", "A refund has no lines of its own."),
    about("ledger", "Postings are never edited, only reversed."),
)


def signals(folder):
    return git.collect_signals(str(folder), monotonic() + 30)


# --- the question a folder asks -------------------------------------------------------------------


@pytest.mark.requirement("REC-07")
@each(
    ("seen", "asked"),
    [
        (git.Signals(), ""),
        (git.Signals(branch="main"), ""),  # every branch's beginning says nothing
        (git.Signals(branch="fix/double-charge"), "fix\ndouble\ncharge"),
        (git.Signals(changed=("src/pay_ment.py",)), "pay\nment"),
        (git.Signals(changed=("new/",), recent=("a/ledger.py",)), "ledger"),
        (git.Signals(branch="x", manifests=(("package.json", "@shop/web"),)), "x\nshop\nweb"),
        (git.Signals(branch='OR "NOT" project:other'), "OR\nNOT\nproject\nother"),
    ],
)
def test_a_folder_asks_by_its_branch_its_files_and_its_manifests(seen, asked):
    assert folder_question(seen) == asked


@pytest.mark.requirement("REC-07")
def test_of_a_large_change_no_file_says_what_it_is_about():
    few = tuple(f"f{n}.py" for n in range(MOST_FILES))
    assert changed_files(git.Signals(changed=(*few, "folder/"))) == few
    assert changed_files(git.Signals(changed=(*few, "one-more.py"))) == ()


@pytest.mark.requirement("REC-07")
def test_a_session_begins_with_what_is_known_about_the_changed_files(memory, repository):
    memory.add(NOTES)
    in_git(repository, "switch", "-qc", "fix/charges")
    (repository / "payments" / "charge.py").write_text("two\n")
    given = at_start(memory.store, Here(SHOP, "new", NOW, UTC, signals(repository)))
    lines = given.text.splitlines()
    heading = lines.index("About what you are changing (charge.py, branch fix/charges)")
    assert "idempotency key" in lines[heading + 1]
    assert [one.reason for one in given.shown if "charge" in memory.get([one.item])[0].ref] == [
        "at hand"
    ]
    without = at_start(memory.store, Here(SHOP, "new", NOW, UTC))
    assert "you are changing" not in without.text


@pytest.mark.requirement("REC-07")
def test_where_nothing_is_changed_the_last_commits_tell(memory, repository):
    memory.add(NOTES)
    for number in range(12):
        (repository / f"page{number}.html").write_text("one\n")
    in_git(repository, "add", ".")
    in_git(repository, "commit", "-qm", "pages", when=NOW - 2 * DAY)
    (repository / "payments" / "ledger.py").write_text("two\n")
    in_git(repository, "commit", "-qam", "later", when=NOW - DAY)
    found = relevant_hits(memory.store, SHOP.key, signals(repository), NOW, 5)
    assert [hit.ref for hit in found] == ["ledger"]


@pytest.mark.requirement("REC-07")
def test_nothing_is_relevant_to_a_folder_that_says_nothing_or_something_else(memory, tmp_path):
    memory.add(NOTES)
    assert relevant_hits(memory.store, SHOP.key, git.Signals(), NOW, 5) == []
    other = git.Signals(branch="docs/landing-page", changed=("site/index.html",))
    assert relevant_hits(memory.store, SHOP.key, other, NOW, 5) == []


@pytest.mark.requirement("REC-07")
def test_what_tools_printed_and_what_others_did_is_not_what_a_session_begins_with(memory):
    memory.add(
        [
            about("charge", "grep charge: 14 matches", kind="message", role="tool", tool="Bash"),
            {**about("other", "Charge twice a month", project="blog"),
             "files": ["payments/charge.py"]},
        ]
    )  # fmt: skip
    seen = git.Signals(changed=("payments/charge.py",))
    assert relevant_hits(memory.store, SHOP.key, seen, NOW, 5) == []


# --- what has become of the files -----------------------------------------------------------------


def fates_in(folder):
    def fates(works):
        return judge_staleness(works, GitFacts().gather_facts(str(folder), works, monotonic() + 30))

    return fates


@pytest.mark.requirement("REC-19")
def test_what_is_out_of_date_sinks_and_says_so(memory, repository):
    memory.add(
        [
            about("charge", "The retry limit is in the settings."),
            about("ledger", "The retry limit is in the settings of old.", days_ago=10.1),
        ]
    )
    asked = Asked("where is the retry limit", explain=True, now=NOW, project="shop")
    before = recall_hits(memory.store, asked)
    (repository / "payments" / f"{before[0].ref}.py").unlink()
    in_git(repository, "commit", "-qam", "gone", when=NOW - DAY)
    first, second = recall_hits(memory.store, asked, fates=fates_in(repository))
    assert [first.ref, second.ref] == [before[1].ref, before[0].ref]
    assert second.stale == f"payments/{second.ref}.py is gone"
    assert first.stale == ""
    assert second.factors["stale"] == pytest.approx(-0.15 * before[0].score)
    assert "stale" not in first.factors


@pytest.mark.requirement("REC-19")
def test_other_projects_are_not_judged_by_the_repository_at_hand(memory, repository):
    memory.add([about("vanished", "The retry limit is in the settings.", project="blog")])
    asked = Asked("where is the retry limit", now=NOW, project="shop")
    assert recall_hits(memory.store, asked, fates=fates_in(repository))[0].stale == ""


@pytest.mark.requirement("REC-19", "DEL-02")
def test_an_agent_is_told_what_has_changed_since(memory, repository):
    memory.add(NOTES)
    (repository / "payments" / "charge.py").unlink()
    in_git(repository, "commit", "-qam", "gone", when=NOW - DAY)
    given = at_prompt(
        memory.store, "do retries carry the same idempotency key?",
        Here(SHOP, "new", NOW, UTC, fates=fates_in(repository)),
    )  # fmt: skip
    assert "(payments/charge.py is gone)" in given.text


# --- explaining -----------------------------------------------------------------------------------


@pytest.mark.requirement("REC-16")
def test_an_answer_names_the_arms_the_weights_and_what_was_left_out(memory):
    text = "The nightly export writes one file per customer into the archive bucket"
    memory.add(
        [
            *({"ref": f"same{n}", "project": "shop", "text": text, "epoch": n + 1} for n in (0, 1)),
            *({"ref": f"more{n}", "project": "shop", "text": f"export number {n} of {n * n}",
               "epoch": 9} for n in range(12)),
            {"ref": "file", "project": "shop", "text": "about something else",
             "files": ["jobs/dusk.py"], "epoch": 9},
        ]
    )  # fmt: skip
    asked = Asked(
        "the nightly export", k=3, explain=True, now=NOW, project="shop", files=("jobs/dusk.py",)
    )
    found = answer_question(memory.store, asked)
    assert found.arms == {"words": 14, "files": 1}
    assert sum(found.weights.values()) == pytest.approx(1.0)
    best = found.hits[0]
    assert best.arms == ("words",)
    assert {"keyword", "files", "recency"} <= set(found.weights)
    assert all(best.factors[name] <= most + 1e-9 for name, most in found.weights.items())
    reasons = [one.why for one in found.cut]
    assert f"says the same as #{best.id}" in reasons
    assert "below the first 3" in reasons
    assert len(found.cut) + found.more == 15 - len(found.hits)
    arms = {hit.ref: hit.arms for hit in answer_question(memory.store, replace(asked, k=20)).hits}
    assert arms["file"] == ("files",)
    same = memory.recall("the nightly export", k=3, explain=True, project="shop",
                         files=["jobs/dusk.py"], now=NOW / 1000)  # fmt: skip
    assert list(same) == found.hits
    assert (same.arms, same.weights, same.cut) == (found.arms, found.weights, found.cut)


@pytest.mark.requirement("REC-16")
def test_nothing_is_explained_unasked(memory):
    memory.add(NOTES)
    found = answer_question(memory.store, Asked("idempotency key", now=NOW))
    assert found.hits[0].arms == ()
    assert (found.arms, found.weights, found.cut, found.more) == ({}, {}, (), 0)


@pytest.mark.requirement("REC-16")
def test_the_command_line_prints_it(memory, home, run):
    memory.add(NOTES)
    memory.close()
    told = run("recall", "retries refund postings", "-n", "1", "--explain").out
    assert "found by words" in told
    for part in ("keyword", " of 0.", "left out #", "below the first 1"):
        assert part in told
    explained = run("recall", "retries refund", "-n", "1", "--explain", "--json").json
    assert explained["hits"][0]["arms"] == ["words"]
    assert explained["explain"]["arms"] == {"words": 2}
    assert explained["explain"]["cut"][0]["why"] == "below the first 1"
    assert "explain" not in run("recall", "retries", "--json").json


# --- the files at hand on the command line --------------------------------------------------------


@pytest.mark.requirement("REC-05")
def test_the_command_line_prefers_what_is_about_the_changed_files(memory, repository, run):
    memory.add(
        {"ref": name, "project": "shop", "files": [f"payments/{name}.py"], "epoch": 9,
         "text": f"The limit of the {name} is a setting."}
        for name in ("refund", "charge")
    )  # fmt: skip
    memory.close()
    for name in ("charge", "refund"):
        in_git(repository, "checkout", "-q", ".")
        (repository / "payments" / f"{name}.py").write_text("changed\n")
        hits = run("recall", "what is the limit", "--json", cwd=repository).json["hits"]
        assert hits[0]["ref"] == name


@pytest.mark.requirement("REC-06")
def test_other_projects_stay_out_where_the_user_wants_it(memory):
    memory.add([about("charge", "Retries must carry the same idempotency key.", project="blog")])
    asked = partial(at_prompt, memory.store, "must retries carry the same idempotency key?")
    assert "[from: blog]" in asked(Here(SHOP, "new", NOW, UTC)).text
    assert asked(Here(SHOP, "new", NOW, UTC, everywhere=False)).text == ""


@pytest.mark.requirement("REC-15")
def test_one_line_stands_for_a_turn(memory):
    memory.add(
        {"ref": f"m{n}", "project": "shop", "session": "s1", "prompt_number": turn, "role": role,
         "kind": "prompt" if role == "user" else "message", "epoch": NOW / 1000 - 1000 + n,
         "text": text}
        for n, (turn, role, text) in enumerate([
            (1, "user", "Why do payment retries use another idempotency key?"),
            (1, "assistant", "Payment retries make their idempotency key from the clock."),
            (2, "user", "Make the idempotency key of payment retries from the order."),
            (2, "assistant", "The idempotency key of payment retries is made from the order."),
        ])
    )  # fmt: skip
    given = at_prompt(
        memory.store,
        "which idempotency key do payment retries use?",
        Here(SHOP, "new", NOW, UTC),
    )
    turns = [memory.get([one.item])[0].prompt_number for one in given.shown]
    assert sorted(turns) == [1, 2]


def test_filters_are_not_changed_by_files_at_hand(memory):
    memory.add(NOTES)
    asked = Asked("retries", Filters(kinds=("prompt",)), now=NOW, files=("payments/charge.py",))
    assert recall_hits(memory.store, asked) == []
