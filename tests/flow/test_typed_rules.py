"""Rules that were typed become memories, and decisions that undo others take their place."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import closing
from datetime import UTC
from itertools import permutations

import pytest

from tests.distilling import Story, distilled, fixed_bug, made
from tests.stores import with_store
from yester.clock import Calendar
from yester.context.block import Here
from yester.context.cards import holds, read_cards
from yester.context.lines import card_line, card_status
from yester.context.start import at_start
from yester.errors import NotYours
from yester.ingest.prepare import prepare_item
from yester.memories.chains import link_decisions
from yester.memories.lifecycle import change_status, edit_memory, undo_change
from yester.memories.memory import Author
from yester.memories.rules import applicable_rules
from yester.memories.typed import find_news
from yester.model import DISTILLED, Event, Filters, Item, Paging, Session, replace
from yester.project import named_project
from yester.recall.recall import Asked, recall_hits
from yester.store import open_store

SHOP = named_project("shop")
DAY = 86_400_000
FIRST = 1_770_000_000_000  # 2 February 2026
BACKFILL = FIRST + 100 * DAY


@pytest.fixture
def store(tmp_path):
    opened = open_store(with_store(tmp_path), now=1)
    yield opened
    opened.close()


def told(session, text, day):
    story = Story(f"{session}-0000-4000-8000-000000000000", clock=FIRST + day * DAY)
    story.prompt(text)
    story.says("Understood.")
    return story


def rules(store):
    return [item.body for item in applicable_rules(store, SHOP)]


@pytest.mark.requirement("DIS-07")
def test_a_rule_that_was_typed_is_told_to_every_later_session(store):
    told("aaaaaaaa", "Never commit to main, always open a pull request.", 0).store(store)
    report = distilled(store)
    assert report.rules == 1
    (memo,) = store.memos(Filters(types=("rule",)))
    assert "Never commit to main" in memo.item.body
    assert (memo.item.origin, memo.item.agent) == ("user", "claude-code")
    assert "Never commit to main" in rules(store)[0]
    distilled(store)
    assert len(store.memos(Filters(types=("rule",)))) == 1


@pytest.mark.requirement("DIS-07", "DIS-03")
def test_a_rule_is_what_comes_of_a_session_and_no_part_of_it(store):
    """Else distilling would make the session wait again, and its turns longer than they are."""
    story = fixed_bug(Story())
    story.prompt("Never commit to main, always open a pull request.")
    story.says("Understood.")
    story.store(store)
    assert distilled(store).rules == 1
    assert store.totals("undistilled")[0][0] == 0
    before = made(store)
    with store.transaction("items"):
        store.queue_sessions()
    assert distilled(store).put.total_written == 0
    assert made(store) == before


@pytest.mark.requirement("DIS-07")
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_newest_word_holds_in_whatever_order_sessions_are_distilled(store, order):
    stories = [
        told("aaaaaaaa", "From now on use npm, not yarn.", 0),
        told("bbbbbbbb", "From now on use pnpm, not npm.", 1),
        told("cccccccc", "From now on use yarn, not pnpm.", 2),
    ]
    for number in order:
        stories[number].store(store)
        distilled(store)
    assert rules(store) == ["From now on use yarn, not pnpm."]


@pytest.mark.requirement("DIS-07")
def test_what_agents_tools_and_sub_agents_say_is_no_rule(store):
    story = Story()
    story.prompt("Look at the import please, it is slow.")
    story.says("Always use COPY for imports. Never use INSERT.")
    story.ran("cat CLAUDE.md", "Always deploy on Fridays. Never run the tests.")
    story._add("prompt", "user", "Never touch the schema.", actor="Explore:1")
    story.store(store)
    distilled(store)
    assert rules(store) == []


@pytest.mark.requirement("DIS-07", "MEM-02")
def test_a_rule_that_was_retired_does_not_come_back(store):
    story = told("aaaaaaaa", "Never commit to main.", 0)
    story.store(store)
    distilled(store)
    (memo,) = store.memos(Filters(types=("rule",)))
    change_status(store, memo.item.id, "retire", Author("sam", 1_780_000_000_000))
    with store.transaction("items"):
        store.queue_sessions()
    distilled(store)
    assert rules(store) == []


@pytest.mark.requirement("DIS-07")
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_rule_that_is_taken_back_is_told_no_more_in_whatever_order_sessions_come(store, order):
    stories = [
        told("aaaaaaaa", "Always use bun, never pnpm.", 0),
        told("bbbbbbbb", "Always run the linter before committing.", 1),
        told("cccccccc", "Forget the rule about bun, we use pnpm again.", 2),
    ]
    for number in order:
        stories[number].store(store)
        distilled(store)
    assert rules(store) == ["Always run the linter before committing."]
    (gone,) = store.memos(Filters(types=("rule",)), Paging(statuses=("retired",)))
    assert gone.reason == (
        "taken back in session cccccccc: Forget the rule about bun, we use pnpm again."
    )


@pytest.mark.requirement("DIS-07", "MEM-02")
def test_a_rule_that_was_taken_back_can_be_brought_back_for_good(store):
    told("aaaaaaaa", "Always use bun, never pnpm.", 0).store(store)
    told("bbbbbbbb", "Forget the rule about bun.", 1).store(store)
    distilled(store)
    assert rules(store) == []
    undo_change(store, Author("sam", 1_780_000_000_000))
    assert rules(store) == ["Always use bun, never pnpm."]
    with store.transaction("items"):
        store.queue_sessions()
    distilled(store)
    assert rules(store) == ["Always use bun, never pnpm."]


@pytest.mark.requirement("DIS-07")
@pytest.mark.parametrize(
    "text",
    [
        "Forget the rule about commits.",  # two could be meant
        "Should we forget the rule about main?",
        "Forget the rule about main for this task.",
        "The log says: forget the rule about main.",
        "Forget the rule about deployments.",
    ],
)
def test_what_takes_back_no_rule_clearly_ends_none(store, text):
    told("aaaaaaaa", "Never push commits to main.", 0).store(store)
    told("bbbbbbbb", "Keep commits small and focused.", 1).store(store)
    told("cccccccc", text, 2).store(store)
    distilled(store)
    assert len(rules(store)) == 2


@pytest.mark.requirement("DIS-07")
def test_a_rule_typed_anew_after_it_was_taken_back_holds(store):
    told("aaaaaaaa", "Always use bun, never pnpm.", 0).store(store)
    told("bbbbbbbb", "Forget the rule about bun.", 1).store(store)
    told("cccccccc", "Always use bun, never pnpm.", 2).store(store)
    for _ in range(2):
        distilled(store)
        with store.transaction("items"):
            store.queue_sessions()
    assert rules(store) == ["Always use bun, never pnpm."]


def dated_rules(store):
    """The rules as a session is told them at its start."""
    here = Here(SHOP, "new", BACKFILL, UTC, rules=applicable_rules(store, SHOP))
    told = at_start(store, here).text.partition("</yester-rules>")[0]
    return [line for line in told.splitlines() if line.startswith("- ")]


@pytest.mark.requirement("DIS-07", "DEL-01")
def test_a_rule_has_the_day_it_was_typed_on_whenever_it_was_distilled(home, run):
    with closing(open_store(home, now=1)) as store:
        told("aaaaaaaa", "Never commit to main.", 0).store(store)
        told("bbbbbbbb", "Always run the linter before committing.", 9).store(store)
        distilled(store, now=BACKFILL)
        first, second = sorted(
            store.memos(Filters(types=("rule",))), key=lambda memo: memo.item.epoch
        )
        assert dated_rules(store) == [
            f"- Always run the linter before committing. (#{second.item.id}, 11 Feb)",
            f"- Never commit to main. (#{first.item.id}, 2 Feb)",
        ]
        newest = recall_hits(
            store, Asked("commit main committing", k=9, order="date_desc", now=BACKFILL)
        )
        assert {"memory", "prompt"} <= {hit.kind for hit in newest}
        assert [hit.epoch for hit in newest] == sorted((hit.epoch for hit in newest), reverse=True)
    utc = {"TZ": "UTC"}
    listed = run("memory", "list", "-p", "shop", env=utc).out
    assert f"#{first.item.id}  2026-02-02" in listed
    assert "by user 2026-02-02" in run("memory", "show", str(first.item.id), env=utc).out
    again = run("remember", "--type", "rule", "-p", "shop", first.item.body, env=utc)
    assert again.out.startswith("known already:")
    assert 'said: "2026-02-02' in run("memory", "history", str(first.item.id), env=utc).out


@pytest.mark.requirement("DIS-07")
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_rule_that_is_said_again_has_the_day_of_the_newest_word(store, order):
    stories = [
        told("aaaaaaaa", "Always use bun, never pnpm.", 0),
        told("bbbbbbbb", "Forget the rule about bun.", 1),
        told("cccccccc", "Always use bun, never pnpm.", 2),
    ]
    for number in order:
        stories[number].store(store)
        distilled(store, now=BACKFILL)
    with store.transaction("items"):
        store.queue_sessions()
    distilled(store, now=BACKFILL)
    (rule,) = dated_rules(store)
    assert rule.startswith("- Always use bun, never pnpm.")
    assert rule.endswith(", 4 Feb)")


@pytest.mark.requirement("DIS-07", "MEM-02")
def test_a_rule_that_was_edited_has_the_day_of_the_edit_and_keeps_its_words(store):
    told("aaaaaaaa", "Never commit to main.", 0).store(store)
    distilled(store, now=BACKFILL)
    (memo,) = store.memos(Filters(types=("rule",)))
    sam = Author("sam", FIRST + 30 * DAY)
    edit_memory(store, memo.item.id, {"content": {"rule": "Ask before a release."}}, sam)
    with store.transaction("items"):
        store.queue_sessions()
    distilled(store, now=BACKFILL)
    assert dated_rules(store) == [f"- Ask before a release. (#{memo.item.id}, 4 Mar)"]
    undo_change(store, Author("sam", FIRST + 40 * DAY), memo.item.id)
    assert dated_rules(store) == [f"- Never commit to main. (#{memo.item.id}, 2 Feb)"]


def decision(number, title, day):
    return Item(
        f"d{number}", "observation", SHOP.key, session=f"s{number}", source=DISTILLED,
        agent="claude-code", type="decision", title=title, epoch=1_770_000_000_000 + day * DAY,
    )  # fmt: skip


@pytest.mark.requirement("DIS-08")
@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_decision_that_undoes_another_links_to_it_and_only_the_newer_is_found(store, order):
    decisions = [
        decision(0, "Use Redis for sessions", 0),
        decision(1, "Replace Redis with PostgreSQL for sessions", 3),
        decision(2, "Use Kafka for events", 1),
    ]
    for number in (2, *order):
        one = decisions[number]
        with store.transaction("items"):
            id_ = store.put_session(Session(one.session, "claude-code", SHOP.key, one.epoch))
            store.put([prepare_item(one)])
        sum(link_decisions(store, Session(one.session, "claude-code", SHOP.key, id=id_)))
    (old,), (new,), (other,) = (store.find_by_ref(f"d{number}") for number in range(3))
    assert (old.status, new.status, other.status) == ("superseded", "active", "active")
    assert (new.supersedes, other.supersedes) == (old.id, 0)
    hits = recall_hits(store, Asked("redis sessions", now=new.epoch))
    assert [hit.ref for hit in hits] == ["d1"]


# --- proposed ------------------------------------------------------------------------------------


def proposals(store, *statuses):
    found = store.memos(Filters(types=("rule",)), Paging(statuses=statuses or ("proposed",)))
    return [memo.item.body for memo in found]


@pytest.mark.requirement("MEM-08", "DIS-07")
def test_what_does_not_stand_alone_is_proposed_and_told_to_no_agent(store):
    told(
        "aaaaaaaa", "The import is slow. Never commit to main, always open a pull request.", 0
    ).store(store)
    distilled(store)
    assert rules(store) == []
    assert proposals(store) == ["Never commit to main, always open a pull request."]


@pytest.mark.requirement("MEM-08")
def test_a_proposal_becomes_a_rule_by_the_users_yes_alone(store):
    told("aaaaaaaa", "Fix the import. Always use tabs.", 0).store(store)
    distilled(store)
    (memo,) = store.memos(Filters(types=("rule",)), Paging(statuses=("proposed",)))
    with pytest.raises(NotYours):
        change_status(store, memo.item.id, "keep", Author("claude-code", BACKFILL, "agent"))
    change_status(store, memo.item.id, "keep", Author("sam", BACKFILL))
    assert rules(store) == ["Always use tabs."]
    undo_change(store, Author("sam", BACKFILL))
    assert (rules(store), proposals(store)) == ([], ["Always use tabs."])


@pytest.mark.requirement("MEM-08")
@pytest.mark.parametrize(
    ("step", "status", "origin", "ref"),
    [
        ("keep", "active", "user", "p9"),
        ("drop", "archived", "user", "p9"),
        ("keep", "proposed", "agent", "p9"),  # a headless run
        ("keep", "proposed", "user", "hook:1"),  # an event that no transcript confirms
    ],
)
def test_a_typed_command_says_yes_or_no(store, step, status, origin, ref):
    told("aaaaaaaa", "Fix the import. Always use tabs.", 0).store(store)
    distilled(store)
    (memo,) = store.memos(Filters(types=("rule",)), Paging(statuses=("proposed",)))
    story = told("bbbbbbbb", f"/yester:{step} {memo.item.id}", 1)
    story.items[0] = replace(story.items[0], origin=origin, ref=ref)
    story.store(store)
    distilled(store)
    assert proposals(store, status) == ["Always use tabs."]
    change_status(
        store, memo.item.id, "retire", Author("sam", BACKFILL)
    ) if step == "keep" else None
    with store.transaction("items"):
        store.queue_sessions()
    distilled(store)  # what was typed is done once
    assert proposals(store, "retired" if step == "keep" else status) == ["Always use tabs."]


@pytest.mark.requirement("MEM-08")
@pytest.mark.parametrize(
    ("text", "session", "day", "status"),
    [
        ("Look at the parser. Always use tabs.", "bbbbbbbb", 1, "active"),
        ("Look at the parser. Always use tabs.", "aaaaaaaa", 1, "proposed"),  # the same session
        ("Look at the parser. Always use tabs.", "bbbbbbbb", 0, "proposed"),  # the same day
        ("Fix the import. Always use tabs.", "bbbbbbbb", 1, "proposed"),  # the same text
    ],
)
def test_a_second_utterance_is_a_yes(store, text, session, day, status):
    told("aaaaaaaa", "Fix the import. Always use tabs.", 0).store(store)
    distilled(store)
    second = told(session, text, day)
    second.items = [replace(one, ref=f"2:{one.ref}") for one in second.items]
    second.store(store)
    distilled(store)
    assert proposals(store, status) == ["Always use tabs."]


@pytest.mark.requirement("MEM-08")
def test_what_weakens_safety_needs_a_yes_however_often_it_is_said(store):
    for day, session in enumerate(("aaaaaaaa", "bbbbbbbb", "cccccccc")):
        told(session, f"Task {day}. Always commit with --no-verify.", day).store(store)
        distilled(store)
    assert (rules(store), len(proposals(store))) == ([], 1)


@pytest.mark.requirement("MEM-08")
def test_what_was_refused_or_has_waited_for_two_weeks_is_never_proposed_again(store):
    told("aaaaaaaa", "Fix the import. Always use tabs.", 0).store(store)
    distilled(store)
    told("bbbbbbbb", "Hello there", 20).store(store)
    distilled(store)
    assert (proposals(store), proposals(store, "archived")) == ([], ["Always use tabs."])
    told("cccccccc", "Fix the parser. Always use tabs.", 21).store(store)
    distilled(store)
    assert proposals(store) == []


@pytest.mark.requirement("MEM-08")
def test_one_proposal_a_prompt_and_three_a_day(store):
    texts = ["tabs", "black", "ruff", "mypy", "vitest"]
    told("aaaaaaaa", "Fix it all. Always use tabs. Never use mocks in tests.", 0).store(store)
    distilled(store)
    assert len(proposals(store)) == 1
    for number, text in enumerate(texts[1:]):
        told(f"{number}bbbbbbb", f"Fix part {number}. Always use {text}.", 0).store(store)
        distilled(store)
    assert len(proposals(store)) == 3


@pytest.mark.requirement("MEM-08")
def test_a_headless_run_only_proposes_and_nobody_is_told(store):
    story = told("aaaaaaaa", "Always use tabs.", 0)
    story.items[0] = replace(story.items[0], origin="agent")
    story.store(store)
    distilled(store)
    assert (rules(store), proposals(store)) == ([], ["Always use tabs."])
    assert find_news(store, "", FIRST) == []


@pytest.mark.requirement("DEL-16", "MEM-08")
def test_the_user_is_told_once_what_became_of_a_rule(store):
    told("aaaaaaaa", "Never commit to main.", 0).store(store)
    told("bbbbbbbb", "Fix the import. Always use tabs.", 0).store(store)
    distilled(store)
    one, two = (store.memos(Filters(types=("rule",)), Paging(statuses=(status,)))[0].item.id
                for status in ("active", "proposed"))  # fmt: skip
    (kept,) = find_news(store, "aaaaaaaa-0000", FIRST)
    assert kept[1] == f"yester keeps a rule: Never commit to main.  /yester:drop {one}"
    texts = {text for _, text in find_news(store, "", FIRST)}
    assert texts == {
        kept[1],
        f"yester proposes a rule: Always use tabs.  /yester:keep {two} or /yester:drop {two}",
    }
    with store.transaction("ledger"):
        store.append([kept[0]])
    assert find_news(store, "aaaaaaaa-0000", FIRST) == []
    assert find_news(store, "", FIRST + 2 * DAY) == []  # no news any more


@pytest.mark.requirement("MEM-08")
def test_the_command_line_takes_a_yes_from_a_terminal_alone(home, own_home, run):
    with closing(open_store(home, now=1)) as store:
        told("aaaaaaaa", "Fix the import. Always use tabs.", 0).store(store)
        distilled(store)
        (memo,) = store.memos(Filters(types=("rule",)), Paging(statuses=("proposed",)))
    for step in ("keep", "restore"):
        refused = run("memory", step, str(memo.item.id))
        assert refused.code != 0
        assert "waits for your own yes" in refused.err
    assert "proposed: no agent is told of it" in run("review", "--all-projects").out
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "yester", "--home", str(home), "memory", "keep"]
    done = subprocess.run(
        [*command, str(memo.item.id)], stdin=terminal, capture_output=True, text=True,
        cwd=own_home, env={"HOME": str(own_home), "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    os.close(keyboard)
    os.close(terminal)
    assert (done.returncode, done.stdout.partition(" ")[0]) == (0, "kept"), done.stderr
    with closing(open_store(home, now=1)) as store:
        assert rules(store) == ["Always use tabs."]


# --- chains --------------------------------------------------------------------------------------


@pytest.mark.requirement("DIS-14")
@pytest.mark.parametrize(
    "text",
    [
        "Forget what I said about Redis.",
        "we no longer use Redis",
        "Forget the decision about Redis",
    ],
)
def test_a_decision_is_taken_back_as_a_rule_is(store, text):
    one = decision(0, "Use Redis for sessions", 0)
    with store.transaction("items"):
        store.put([prepare_item(one), prepare_item(decision(1, "Use Kafka for events", 0))])
    told("bbbbbbbb", text, 3).store(store)
    distilled(store)
    (old,), (other,) = (store.find_by_ref(ref) for ref in ("d0", "d1"))
    assert (old.status, other.status) == ("superseded", "active")
    (prompt,) = store.select(Filters(kinds=("prompt",)))
    assert prompt.supersedes == old.id


@pytest.mark.requirement("DIS-14", "DIS-08")
def test_a_chain_is_shown_from_either_end(home, run):
    with closing(open_store(home, now=1)) as store:
        for one in (
            decision(0, "Use Redis for sessions", 0),
            decision(1, "Replace Redis with PostgreSQL for sessions", 3),
        ):
            with store.transaction("items"):
                id_ = store.put_session(Session(one.session, "claude-code", SHOP.key, one.epoch))
                store.put([prepare_item(one)])
            sum(link_decisions(store, Session(one.session, "claude-code", SHOP.key, id=id_)))
        (old,), (new,) = (store.find_by_ref(ref) for ref in ("d0", "d1"))
    for id_ in (old.id, new.id):
        shown = run("show", str(id_), env={"TZ": "UTC"}).out
        assert f"was #{old.id}  2026-02-02  Use Redis for sessions" in shown
        assert f"now #{new.id}  2026-02-05  Replace Redis with PostgreSQL for sessions" in shown


@pytest.mark.requirement("MEM-08")
@pytest.mark.parametrize(
    ("origin", "kept", "proposed"),
    [
        ("user", ["Never commit to main."], []),
        ("agent", [], ["Never commit to main."]),  # a hook does not know that the run is headless
    ],
)
def test_a_prompt_of_a_hook_waits_until_the_transcript_has_it(store, origin, kept, proposed):
    story = told("aaaaaaaa", "Never commit to main.", 0)
    typed = story.items[0]
    story.items[0] = replace(typed, ref="hook:aaaaaaaa:1")
    story.store(store)
    distilled(store)
    assert (rules(store), proposals(store)) == ([], [])
    with store.transaction("items"):
        store.append([Event("1-1-a", "UserPromptSubmit", typed.epoch)])
        store.put([prepare_item(replace(typed, alias="hook:aaaaaaaa:1", origin=origin))])
    distilled(store)
    assert (rules(store), proposals(store)) == (kept, proposed)


# --- attempts ------------------------------------------------------------------------------------

OLD = "header = one()\nurl = find_url()\nbar = show(url)\n"
NEW = "below = two()\nplace = find_place()\nstrip = show(place)\n"


def attempt(session, day, *steps):
    """A session of turns that each replace a text in a file by another."""
    story = Story(f"{session}-0000-4000-8000-000000000000", clock=FIRST + day * DAY)
    for number, (file, before, after) in enumerate(steps):
        story.prompt(f"Put the address somewhere else, number {number}.")
        story.replaces(file, before, after)
        story.says(f"The address is now at place {number} of the page.")
    return story


def linked_cards(store):
    """(the number of its prompt, that of the one it replaced) of the cards that name another."""
    cards = {card.id: card for card in store.select(Filters(kinds=("summary",), types=("turn",)))}
    chained = (card for card in cards.values() if card.supersedes)
    return [(card.prompt_number, cards[card.supersedes].prompt_number) for card in chained]


@pytest.mark.requirement("DIS-14")
@pytest.mark.parametrize(
    ("steps", "linked"),
    [
        ([("app.py", "a = 1\n", OLD), ("app.py", OLD, NEW)], [(2, 1)]),
        # Only a part of it was taken out.
        ([("app.py", "a = 1\n", OLD), ("app.py", "url = find_url()\n", NEW)], []),
        # It stands there still, with more below.
        ([("app.py", "a = 1\n", OLD), ("app.py", OLD, OLD + NEW)], []),
        # One line is too little to tell.
        ([("app.py", "a = 1\n", "x = y\n"), ("app.py", "x = y\n", NEW)], []),
    ],
)
def test_a_turn_whose_lines_another_took_out_is_named_by_that_one(store, steps, linked):
    attempt("aaaaaaaa", 0, *steps).store(store)
    for _ in range(2):
        distilled(store)
        assert linked_cards(store) == linked
        with store.transaction("items"):
            store.queue_sessions()


@pytest.mark.requirement("DIS-14")
@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_an_attempt_of_another_session_is_named_in_whatever_order_they_come(store, order):
    stories = [
        attempt("aaaaaaaa", 0, ("app.py", "a = 1\n", OLD)),
        attempt("bbbbbbbb", 1, ("app.py", OLD, NEW)),
    ]
    for number in order:
        stories[number].store(store)
        distilled(store)
    assert linked_cards(store) == [(1, 1)]
    newer, older = read_cards(store, Filters(projects=(SHOP.key,)))  # both are found
    assert (card_status(older), holds(older)) == ("replaced", False)
    assert f"by {newer.id}" in card_line(older, Calendar(BACKFILL, UTC))
    assert holds(newer)


def test_what_is_typed_to_be_remembered_is_kept_once_in_the_users_words(store):
    story = told("aaaaaaaa", "/yester:remember We decided on whole cents because floats lie.", 0)
    story.store(store)
    distilled(store, now=BACKFILL)
    (memo,) = store.memos(Filters(types=("decision",)))
    assert (memo.item.title, memo.item.origin) == ("We decided on whole cents", "user")
    assert [text for _, text in find_news(store, "", BACKFILL)] == [
        f"yester remembers: We decided on whole cents  Undo: yester memory undo {memo.item.id}"
    ]
    undo_change(store, Author("sam", BACKFILL), memo.item.id)
    with store.transaction("work"):
        store.queue_sessions()
    distilled(store, now=BACKFILL + 1)  # the session is distilled anew
    assert store.memos(Filters(types=("decision",))) == []
