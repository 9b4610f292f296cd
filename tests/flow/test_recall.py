"""`yester recall` and the other reading commands."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import yester
from yester.recall.rank import TOLD


@pytest.fixture
def filled(run, transcript):
    t = transcript()
    t.user("Should the orders table use local time or UTC?")
    t.assistant("UTC. Local time breaks the reports twice a year.")
    t.result(t.call("Bash", command="alembic upgrade head"), "ok: orders migrated to UTC")
    t.result(
        t.call(
            "Edit", file_path="/home/sam/code/shop/db/orders.py", old_string="a", new_string="UTC"
        ),
        "ok",
    )
    other = transcript(
        "bbbbbbbb-0000-4000-8000-000000000002", cwd="/home/sam/code/blog", clock=1_775_000_000
    )
    other.user("Render dates in the visitor's time zone")
    other.assistant("Done in templates/date.html.")
    assert run("index").code == 0
    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("recall", "--agent", "claude"), "no agent is called 'claude'; did you mean claude-code"),
        (("recall", "dates", "--type", "decsion"), "no type is called 'decsion'; did you mean dec"),
        (("recall", "--tool", "Bsh"), "no call of a tool 'Bsh' is recorded"),
        (("recall", "--session", "abcdef"), "no session 'abcdef'"),
        (("sessions", "--agent", "clade-code"), "no agent is called 'clade-code'; did you mean"),
        (("recent", "--agent", "clade-code"), "no agent is called 'clade-code'; did you mean"),
        (("sessions", "--since", "2030-01-01"), "No sessions found. Try fewer filters"),
        (("recall", "--agent", "aider"), "Nothing found"),
    ],
    ids=str,
)
@pytest.mark.requirement("OPS-04")
def test_a_name_that_nobody_has_is_told_from_an_empty_answer(filled, words, said):
    done = filled(*words)
    assert done.code == 1
    assert said in done.err
    assert done.err.count("claude-code") <= 1
    assert filled(*words, "--json").json


@pytest.mark.requirement("DEL-09")
def test_with_nothing_indexed_it_says_how_to_index(run):
    done = run("recall", "anything")
    assert done.code == 1
    assert done.err == "Nothing is indexed yet. Run: yester index\n"
    assert run("recall", "anything", "--json").json["hits"] == []
    assert run("sessions").code == run("recent").code == 1


@pytest.mark.requirement("DEL-09")
def test_nothing_found_is_exit_code_one(filled):
    done = filled("recall", "pterodactyl")
    assert (done.code, done.out) == (1, "")
    assert "Nothing found" in done.err


@pytest.mark.requirement("DEL-09")
def test_the_json_has_exactly_the_promised_shape(filled):
    answer = filled("recall", "utc orders", "--json").json
    assert set(answer) == {"query", "hits", "took_ms"}
    assert answer["query"] == "utc orders"
    assert set(answer["hits"][0]) == {
        "id", "ref", "kind", "type", "project", "session", "title", "snippet", "epoch",
        "epoch_iso", "score", "factors",
    }  # fmt: skip
    scores = [hit["score"] for hit in answer["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@pytest.mark.requirement("DEL-09")
def test_index_form_is_grouped_by_session_and_plain_when_piped(filled):
    out = filled("recall", "utc local time reports").out
    heads = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert heads[0].startswith("shop · aaaaaaaa · claude-code")
    assert len(heads) == len(set(heads)) == 2
    assert "\x1b[" not in out


@pytest.mark.requirement("DEL-09")
def test_full_form_and_raw_show_the_whole_text(filled):
    for option in (("--format", "full"), ("--raw",)):
        out = filled("recall", "reports twice a year", *option).out
        assert "UTC. Local time breaks the reports twice a year." in out


@pytest.mark.requirement("DEL-09", "REC-09")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--project", "blog"), {"blog"}),
        (("--project", "shop", "--project", "blog"), {"shop", "blog"}),
        (("--kind", "prompt"), {"shop", "blog"}),
        (("--tool", "Bash"), {"shop"}),
        (("--file", "orders.py"), {"shop"}),
        (("--session", "bbbbbb"), {"blog"}),
        (("--since", "2026-03-01"), {"blog"}),
        (("--until", "2026-02-28"), {"shop"}),
        (("--agent", "claude-code"), {"shop", "blog"}),
        (("--type", "first_prompt"), {"shop", "blog"}),
    ],
)
def test_filters_alone_list_the_newest(filled, options, expected):
    hits = filled("recall", *options, "--json").json["hits"]
    assert {hit["project"] for hit in hits} == expected
    epochs = [hit["epoch"] for hit in hits]
    assert epochs == sorted(epochs, reverse=True)


def test_a_command_that_only_reads_makes_no_file(filled, home):
    (home / "run" / "launch").unlink()
    before = sorted(home.rglob("*"))
    commands = ("recall utc", "status", "sessions", "recent", "timeline", "show 1", "stats",
                "memory list", "memory history", "context", "config", "feedback 1")  # fmt: skip
    for words in commands:
        filled(*words.split())
    assert sorted(home.rglob("*")) == before
    assert filled("remember", "Orders keep UTC.").code == 0
    assert (home / "run" / "launch").exists(), "from now on a session can start the worker"


@pytest.mark.requirement("REC-09")
def test_order_limit_and_offset(filled):
    everything = filled("recall", "--order", "date_asc", "--json").json["hits"]
    ids = [hit["id"] for hit in everything]
    assert [h["epoch"] for h in everything] == sorted(h["epoch"] for h in everything)
    page = filled("recall", "--order", "date_asc", "--limit", "2", "--offset", "1", "--json").json
    assert [hit["id"] for hit in page["hits"]] == ids[1:3]
    dated = filled("recall", "utc time", "--order", "date_desc", "--json").json["hits"]
    assert [h["epoch"] for h in dated] == sorted((h["epoch"] for h in dated), reverse=True)


@pytest.mark.requirement("DEL-09")
@pytest.mark.parametrize(
    "words",
    [
        ("recall", "x", "--since", "whenever"),
        ("recall", "x", "--kind", "poem"),
        ("recall", "x", "--limit", "many"),
        ("recall", "x", "--no-such-option"),
        ("no-such-command",),
        ("show",),
    ],
)
def test_a_wrong_call_is_exit_code_two_with_one_message(run, words):
    done = run(*words)
    assert done.code == 2
    assert done.err
    assert "Traceback" not in done.err


@pytest.mark.requirement("DEL-09")
def test_any_text_is_a_question(filled):
    for text in (
        '"',
        "AND OR NOT",
        "a*b(c",
        "'; DROP TABLE item;--",
        "🙂",
        "-- -x",
        "NEAR(",
        ":",
        "%",
    ):
        assert filled("recall", "--", text).code in (0, 1), text


@pytest.mark.requirement("REC-16")
def test_explain_names_the_factors(filled):
    hit = filled("recall", "utc", "--explain", "--json").json["hits"][0]
    added = {name: value for name, value in hit["factors"].items() if name not in TOLD}
    assert {"keyword", "recency", "importance"} <= set(added)
    assert sum(added.values()) == pytest.approx(hit["score"], abs=1e-4)
    assert "keyword 0." in filled("recall", "utc", "--explain").out


@pytest.mark.requirement("REC-10")
def test_a_recency_window_lowers_rank_and_leaves_nothing_out(home):
    home.mkdir(mode=0o700)
    day, now = 86_400, 1_780_000_000
    notes = [
        {"ref": "old", "title": "cache key layout", "text": "cache key", "epoch": now - 200 * day},
        {"ref": "new", "text": "a word on the cache among several others", "epoch": now - day},
    ]
    with yester.open(home) as memory:
        memory.add(notes)
        assert [h.ref for h in memory.recall("cache key layout", now=now)] == ["old", "new"]
        before = memory.recall("cache", now=now)
    (home / "config.toml").write_text("recency_window_days = 90\n")
    with yester.open(home) as memory:
        after = memory.recall("cache", now=now, explain=True)
        assert {h.ref for h in after} == {h.ref for h in before} == {"old", "new"}
        old = next(h for h in after if h.ref == "old")
        assert old.score < next(h for h in before if h.ref == "old").score
        assert old.factors["window"] < 0
        assert [h.ref for h in memory.recall("cache", since=now - 90 * day, now=now)] == ["new"]


@pytest.mark.requirement("REC-15")
def test_a_person_sees_three_hits_of_a_session_and_an_agent_all(home, run):
    with yester.open(home) as memory:
        memory.add([
            {"ref": str(n), "text": f"Tide gauge {n} reads {n * 7} low", "session": f"tides-{n//5}",
             "project": "harbour"} for n in range(7)
        ])  # fmt: skip
    asked = ("recall", "tide gauge", "--all-projects")
    person, agent = run(*asked).out, run(*asked, env={"CLAUDECODE": "1"}).out
    assert person.count("Tide gauge") == 5
    assert "2 more of this session: --session tides-0" in person
    assert agent.count("Tide gauge") == len(run(*asked, "--json").json["hits"]) == 7


@pytest.mark.requirement("REC-22")
def test_in_the_order_of_time_stands_what_fits_and_nothing_that_hardly_does(home):
    with yester.open(home) as memory:
        texts = ["the webhook retry limit is five"] * 3 + ["the limit of the page"] * 30
        memory.add([
            {"ref": str(n), "text": f"{one} {n}", "epoch": 1_000 + n} for n, one in enumerate(texts)
        ])  # fmt: skip
        asked = {"query": "webhook retry limit", "k": 100}
        assert len(memory.recall(**asked)) > 3
        assert [hit.ref for hit in memory.recall(**asked, order="date_desc")] == ["2", "1", "0"]
        # A page is a part of that list, wherever it begins.
        pages = [memory.recall(asked["query"], 2, order="date_asc", offset=n) for n in (0, 2, 4)]
        assert [[hit.ref for hit in page] for page in pages] == [["0", "1"], ["2"], []]


@pytest.mark.requirement("REC-14")
def test_it_is_said_when_the_words_themselves_did_not_answer(filled):
    assert "The question names nothing" in filled("recall", "what was that").err
    assert "No such word; these begin alike" in filled("recall", "migratedx").err
    assert filled("recall", "utc").err == ""


def test_show_prints_an_item_by_number_or_by_the_clients_id(filled):
    hit = filled("recall", "reports twice", "--json").json["hits"][0]
    for name in (str(hit["id"]), f"#{hit['id']}", hit["ref"]):
        done = filled("show", name)
        assert done.code == 0
        assert "Local time breaks the reports" in done.out
    missing = filled("show", "999999")
    assert missing.code == 1
    assert "no item 999999" in missing.err


def test_sessions_are_listed_newest_first(filled):
    sessions = filled("sessions", "--json").json["sessions"]
    assert [s["project"] for s in sessions] == ["blog", "shop"]
    assert sessions[1]["title"] == "Should the orders table use local time or UTC?"
    assert (sessions[1]["prompts"], sessions[1]["items"]) == (1, 4)
    assert filled("sessions", "--project", "shop").out.startswith("aaaaaaaa  2026-02-02")


def test_recent_shows_the_last_sessions_with_their_prompts(filled):
    out = filled("recent", "-n", "1").out
    assert "Render dates in the visitor's time zone" in out
    assert "orders" not in out
    sessions = filled("recent", "--json").json["sessions"]
    assert [s["project"] for s in sessions] == ["blog", "shop"]


@pytest.mark.requirement("OPS-04")
def test_status_has_the_promised_numbers(filled):
    status = filled("status", "--json").json
    assert status["items"] == {"message": 4, "prompt": 2}
    assert status["spool"] == {"waiting": 0, "oldest_s": None, "bad": 0}
    assert status["lag_ms"] == {"p50": None, "p99": None}
    assert status["worker"]["running"] is False
    assert {"events", "skipped", "vectors"} <= set(status)
    assert "items        6" in filled("status").out


@pytest.mark.requirement("REC-15")
def test_the_same_text_twice_is_one_hit_that_says_so(run, transcript):
    for name in ("aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"):
        t = transcript(name)
        t.user("hello")
        t.assistant("The deploy key lives in the vault, ask Kim for it.")
    run("index")
    (hit,) = run("recall", "deploy key vault", "--json", "--raw").json["hits"]
    assert hit["duplicates"] == 1
    assert "(+1 alike)" in run("recall", "deploy key vault").out


def test_a_closed_pipe_is_no_error(filled, home, tmp_path):
    command = f"{sys.executable} -m yester --home {home} recall utc --raw"
    done = subprocess.run(
        ["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.requirement("DEL-05")
def test_a_row_of_the_index_tells_what_the_whole_would_cost_and_costs_little_itself(filled):
    out = filled("recall", "local time UTC zone orders", "-n", "2").out
    rows = [line for line in out.splitlines() if line.startswith("  ") and "#" in line[:8]]
    assert len(rows) == 2
    for row in rows:
        assert re.match(r"  \S #\d+  \d{4}-\d\d-\d\d \d\d:\d\d  0\.\d\d  .+  ~\d+t", row)
        assert len(row) <= 4 * 100
