"""Turns noted by a language model after they were distilled: once, in the background, or on
command; real stores, real worker processes, scripted servers."""

from __future__ import annotations

import json
import signal
import sys
import time

import pytest

from tests.capturing import HOOK, Told, leave, until
from tests.capturing import SESSION as HOOKED
from tests.distilling import RULES, SESSION, Story, distilled, fixed_bug, made
from tests.models import KEY, Reply, serving
from tests.readings import every_item
from tests.stores import with_store
from yester.cards.sessions import DistilReport, distil_session
from yester.config import load_config
from yester.llm.budget import open_asker
from yester.llm.questions import SECTIONS
from yester.llm.refine import CUT_SHORT, MEANWHILE, find_unrefined, refine_turns
from yester.model import Filters, Paging, Queue, Refinement, Spend, replace
from yester.store import maintenance_of, open_store
from yester.store.figures import refinement_totals

pytestmark = pytest.mark.requirement("DIS-04")

TITLE = "total() compared item counts as text"


def answer(*titles, **summary):
    observations = [
        {
            "type": "bugfix", "title": title, "subtitle": "", "concepts": ["gotcha"],
            "narrative": "Counts were compared as text.", "files": ["src/cart.py"],
            "facts": ["Counts were compared as text."],
        }
        for title in titles
    ]  # fmt: skip
    return {"observations": observations, "summary": dict.fromkeys(SECTIONS, "") | summary}


GOOD = answer(TITLE, learned="Counts were compared as text.")


def settings(home, server, **more):
    home.mkdir(mode=0o700, exist_ok=True)
    lines = {
        "provider": "openai", "model": "m", "url": server.url, "key": KEY, "price": "1/5", **more,
    }  # fmt: skip
    text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items())
    (home / "config.toml").write_text(f"[llm]\n{text}\n")


@pytest.fixture
def server():
    with serving("openai") as scripted:
        scripted.say(GOOD)
        yield scripted


@pytest.fixture
def desk(server, home):
    settings(home, server)
    desk = Desk(home)
    yield desk
    desk.store.close()


class Desk:
    def __init__(self, home):
        self.home = home
        self.key = SESSION
        self.store = open_store(with_store(home), now=1)

    @property
    def session(self):
        return self.store.session(self.key, "claude-code")

    def turns(self, since=0, again=False):
        return find_unrefined(self.store, self.session, since, RULES, again)

    def refine(self, turns=None, **more):
        asker = replace(open_asker(load_config(self.home, {}), self.store), sleep=lambda _: None)
        turns = self.turns(**more) if turns is None else turns
        return [reason for _, reason in refine_turns(self.store, asker, self.session, turns)]

    def distil(self):
        return distilled(self.store)

    def titles(self):
        return [item.title for item in made(self.store, "observation")]


def second_turn(story):
    story.prompt("Explain why discount() has the same weakness as total() had")
    story.reads("src/discount.py")
    story.says(
        "`discount()` reads counts from `cart.json`, where they are text because the importer"
        " writes them so.\n\nIt fails when `count` has two digits, since `max()` compares text."
    )
    return story


# --- one turn ------------------------------------------------------------------------------------


def test_what_a_model_wrote_takes_the_place_of_what_was_found_and_stays(desk, server):
    fixed_bug(Story()).store(desk.store)
    desk.distil()
    before = sum(item.discovery_tokens for item in made(desk.store))
    refs = {item.ref for item in made(desk.store)}
    assert desk.refine() == [""]
    assert desk.titles() == [TITLE]
    (summary,) = made(desk.store, "summary")
    assert summary.sections["learned"] == "Counts were compared as text."
    assert summary.sections["completed"] == "Fix the cart's total for ten and more items"
    assert {item.ref for item in made(desk.store)} <= refs
    assert sum(item.discovery_tokens for item in made(desk.store)) == before
    after = {item.ref: item for item in made(desk.store)}
    with desk.store.transaction("items"):
        desk.store.queue_sessions()
    desk.distil()
    assert {item.ref: item for item in made(desk.store)} == after
    assert desk.turns() == []
    assert len(server.asked) == 1
    assert maintenance_of(desk.store).check() == []


def test_what_a_model_wrote_is_known_to_come_from_the_whole_turn(desk):
    story = fixed_bug(Story())
    story.store(desk.store)
    desk.distil()
    desk.refine()
    (one,) = made(desk.store, "observation")
    told = {
        item.body
        for item in desk.store.get([id_ for _, id_ in desk.store.evidence([one.id])[one.id]])
    }
    assert told == {item.body for item in story.items}


def test_a_model_is_told_what_commands_printed(desk):
    fixed_bug(Story()).store(desk.store)
    distilled(desk.store)
    session = desk.store.session(SESSION, "claude-code")
    (turn,) = find_unrefined(desk.store, session, 0, RULES)
    assert "Bash: pytest -q tests/test_cart.py\n\nExit code 1\nE       assert 9 == 10" in turn.text


def test_only_what_is_new_is_asked_about(desk, server):
    story = fixed_bug(Story())
    story.store(desk.store)
    desk.distil()
    desk.refine()
    known = len(story.items)
    second_turn(story).store(desk.store, known)
    desk.distil()
    assert [turn.number for turn in desk.turns()] == [2]
    title = "discount() reads counts as text from cart.json"
    server.replies[:] = [Reply(json.dumps(answer(title)))]
    assert desk.refine() == [""]
    assert "The totals in the cart" not in json.dumps(server.asked[-1].body)
    desk.distil()
    assert desk.titles() == [TITLE, title]
    summaries = {(i.type, i.prompt_number): i for i in made(desk.store, "summary")}
    turn, session = summaries["turn", 1], summaries["session", 2]
    assert len(summaries) == 3
    assert turn.sections["learned"] == "Counts were compared as text."
    assert "Counts were compared as text." in session.sections["learned"]
    held = sum((len(item.body) + 3) // 4 for item in story.items)
    assert sum(item.discovery_tokens for item in made(desk.store)) <= held


def test_a_turn_that_grew_is_distilled_and_asked_about_again(desk, server):
    story = fixed_bug(Story())
    story.store(desk.store)
    desk.distil()
    desk.refine()
    known = len(story.items)
    story.says("One more thing: `discount()` rounds every line, because `max()` compares text.")
    story.store(desk.store, known)
    desk.distil()
    assert TITLE not in desk.titles()
    assert desk.refine() == [""]
    assert TITLE in desk.titles()
    assert len(server.asked) == 2


def test_more_and_fewer_notes_than_were_found_leave_nothing_behind(desk, server):
    fixed_bug(Story()).store(desk.store)
    desk.distil()
    more = "Counts sorted as text before the fix of total()"
    server.replies[:] = [Reply(json.dumps(answer(TITLE, more)))]
    desk.refine()
    assert desk.titles() == [TITLE, more]
    desk.distil()
    assert desk.titles() == [TITLE, more]
    with desk.store.transaction("items"):
        mark = desk.store.entries(Refinement, {"session": desk.session.id})[0]
        desk.store.append([replace(mark, reason="not good")])
        desk.store.queue_sessions()
    desk.distil()
    assert desk.titles() == ["Fix the cart's total for ten and more items"]


def test_a_failure_keeps_what_was_found_and_is_not_repeated_by_itself(desk, server):
    fixed_bug(Story()).store(desk.store)
    desk.distil()
    before = made(desk.store)
    server.replies[:] = [Reply(status=404, message="no such model")]
    (reason,) = desk.refine()
    assert "no such model" in reason
    assert made(desk.store) == before
    assert desk.turns() == []
    assert refinement_totals(desk.store, 0) == (0, 1, reason)
    server.replies[:] = [Reply(json.dumps(GOOD))]
    assert desk.refine(again=True) == [""]
    assert refinement_totals(desk.store, 0) == (1, 0, "")


def test_a_turn_that_was_distilled_anew_meanwhile_is_left_alone(desk):
    story = fixed_bug(Story())
    story.store(desk.store)
    desk.distil()
    turns = desk.turns()
    known = len(story.items)
    story.says("It turned out that `discount()` was wrong because `max()` compares text.")
    story.store(desk.store, known)
    desk.distil()
    before = made(desk.store)
    assert desk.refine(turns) == [MEANWHILE]
    assert made(desk.store) == before
    assert len(desk.turns()) == 1


def test_a_session_is_distilled_anew_when_a_model_has_noted_it_meanwhile(desk):
    fixed_bug(Story()).store(desk.store)
    desk.distil()
    with desk.store.transaction("items"):
        desk.store.queue_sessions()
    (waiting,) = desk.store.queued_sessions(Queue("distil", quiet_since=1 << 50, limit=9))

    steps = distil_session(desk.store, waiting, RULES, DistilReport())
    next(steps)
    desk.refine()
    for _ in steps:
        pass
    assert desk.titles() == [TITLE]


def test_warnings_stay_as_they_were_seen(desk):
    story = Story()
    story.prompt("run the tests of total()")
    story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
    story.ran("bun run test", " 5 pass\n 0 fail" + " " * 50)
    story.says("Counts were compared as text, so `total()` was wrong: item counts are numbers now.")
    story.store(desk.store)
    desk.distil()
    warned = [item for item in made(desk.store) if "fails: unrecognized" in item.title]
    assert warned
    desk.refine()
    desk.distil()
    assert [item for item in made(desk.store) if "fails: unrecognized" in item.title] == warned


@pytest.mark.requirement("DIS-05")
def test_while_another_call_is_under_way_nothing_is_asked_and_nothing_given_up(desk, server):
    fixed_bug(Story()).store(desk.store)
    desk.distil()
    now = int(time.time() * 1000)
    with desk.store.transaction("items"):
        desk.store.append([Spend(now, "m", "turn/1", until=now + 60_000)])
    assert desk.refine() == []
    assert len(desk.turns()) == 1
    assert server.asked == []


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.requirement("DIS-05")
def test_the_command_tells_what_it_will_cost_before_it_asks(desk, run, server):
    second_turn(fixed_bug(Story())).store(desk.store)
    done = run("distil", "--refine", "--session", "aaaaaa")
    assert done.code == 0
    assert done.err.startswith("2 turns to refine; asking m (turn/1): about ")
    assert "2 turns refined, 0 kept as found" in done.out
    assert TITLE in desk.titles()
    assert run("distil", "--refine", "--session", "aaaaaa", "--json").json["refined"] == {
        "turns": 0, "kept": 0, "reason": "",
    }  # fmt: skip
    assert len(server.asked) == 2
    assert desk.store.totals("undistilled")[0][0] == 0


@pytest.mark.requirement("DIS-05")
def test_over_budget_the_command_and_stats_say_so(desk, run, server):
    settings(desk.home, server, daily_dollars=0.001)
    fixed_bug(Story()).store(desk.store)
    done = run("distil", "--refine", "--session", "aaaaaa")
    assert "0 turns refined, 1 kept as found: the day's $0.00 do not last" in done.out
    assert desk.titles() == ["Fix the cart's total for ten and more items"]
    assert server.asked == []
    said = run("stats").out
    assert "refined    0 turns in 7 days, 1 kept as found" in said
    assert "the last of these: the day's $0.00 do not last" in said


def test_without_a_model_the_command_says_how_to_name_one(run):
    said = run("distil", "--refine")
    assert said.code == 1
    assert "llm.provider" in said.err
    assert run("distil", "--refine", "--backfill").code == 2


# --- the worker ----------------------------------------------------------------------------------


def events():
    """A turn that ends now."""
    told = Told(clock=int(time.time() * 1000) - 10_000)
    return [
        told.prompt("The totals in the cart are wrong for more than nine items, please fix it"),
        told.failed("pytest -q tests/test_cart.py", "Exit code 1\nE  assert 9 == 10\n1 failed"),
        told.tool("Edit", {"file_path": "/home/sam/code/shop/src/cart.py", "old_string": "a",
                           "new_string": "b" * 80}, {"filePath": "src/cart.py"}),
        told.ran("git commit -m 'Fix the total of the cart for ten items'",
                 "[main abc1234] Fix the total of the cart for ten items\n 1 file changed"),
        told.stop("`total()` compared item counts as text. Counts were compared as text because"
                  " the importer writes them so."),
    ]  # fmt: skip


@pytest.fixture
def worker(home, own_home, zygote_of_commands):
    running = []

    def start():
        running.append(zygote_of_commands.start_worker(home))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


@pytest.mark.requirement("DIS-05")
def test_a_worker_over_budget_keeps_what_was_found_and_says_so(desk, worker, server):
    settings(desk.home, server, daily_tokens=10)
    leave(desk.home, *events())
    worker()
    log = desk.home / "logs" / "worker.log"
    until(lambda: log.exists() and "kept as found: the day's 10 tokens" in log.read_text())
    assert desk.titles() == ["Fix the total of the cart for ten items"]
    assert server.asked == []


def test_a_worker_killed_while_it_asks_does_not_ask_again(desk, worker, server):
    server.replies[:] = [Reply(silent=True)]
    leave(desk.home, *events())
    process = worker()
    until(lambda: server.asked)
    assert [one.title for one in made(desk.store, "observation")]  # there before any answer
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    desk.key = HOOKED
    session = desk.session.id
    ((turn, mark),) = {
        mark.turn: mark for mark in desk.store.entries(Refinement, {"session": session})
    }.items()
    assert mark == Refinement(session, turn, mark.shape, mark.epoch, "m", CUT_SHORT)
    assert desk.turns() == []
    assert [one.key for one in desk.turns(again=True)] == [turn]


def test_a_worker_ends_at_once_while_a_model_keeps_it_waiting(desk, worker, server):
    server.replies[:] = [Reply(silent=True)]
    leave(desk.home, *events())
    process = worker()
    until(lambda: server.asked)
    process.terminate()
    assert process.wait(20) == 0


# As the program of that name: what it does would be captured, were our hooks not switched off.
CLAUDE = """\
import json, os, subprocess, sys
told = {told!r}
env = dict(os.environ, YESTER_HOME={home!r}, CLAUDECODE="1")
for event, payload in told:
    subprocess.run([sys.executable, "-I", "-S", {hook!r}, event], input=payload.encode(), env=env)
print({said!r})
"""


@pytest.mark.requirement("CAP-12")
def test_the_worker_has_turns_noted_and_what_our_own_calls_do_is_not_captured(
    desk, worker, tmp_path
):
    own = Told(session="bbbbbbbb-0000-4000-8000-00000000000b", cwd=str(tmp_path))
    told = [
        (one.event, one.payload.decode())
        for one in (own.prompt("Note this turn"), own.ran("ls", "x" * 80), own.stop("Noted."))
    ]
    said = json.dumps({"type": "result", "result": json.dumps(GOOD), "total_cost_usd": 0.001})
    program = tmp_path / "claude"
    made_of = CLAUDE.format(told=told, home=str(desk.home), hook=str(HOOK), said=said)
    program.write_text(f"#!{sys.executable} -IS\n{made_of}")
    program.chmod(0o700)
    (desk.home / "config.toml").write_text(
        f'[llm]\nprovider = "claude"\nprogram = "{program}"\nkey = "{KEY}"\n'
    )
    leave(desk.home, *events())
    worker()
    until(lambda: desk.titles() == [TITLE])
    until(lambda: desk.store.totals("undistilled", where={"hooked": 1})[0][0] == 0)
    until(lambda: not any((desk.home / "spool" / "new").iterdir()))
    log = (desk.home / "logs" / "worker.log").read_text()
    assert "turn 1 of aaaaaaaa refined" in log
    assert [one.key for one in desk.store.sessions(Filters(), Paging(9))] == [HOOKED]
    assert not [item for item in every_item(desk.store) if item.session != HOOKED]
