"""Rules that were typed become memories, and decisions that undo others take their place."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC
from itertools import permutations

import pytest

from tests.distilling import Story, distilled, fixed_bug, made
from yester.deliver.start import Here, at_start
from yester.ingest.prepare import prepare_item
from yester.memories.chains import link_decisions
from yester.memories.lifecycle import change_status, edit_memory, undo_change
from yester.memories.memory import Author
from yester.memories.rules import applicable_rules
from yester.model import DISTILLED, Filters, Item, Paging, Session
from yester.project import named_project
from yester.recall.recall import Asked, recall_hits
from yester.store import open_store

SHOP = named_project("shop")
DAY = 86_400_000
FIRST = 1_770_000_000_000  # 2 February 2026
BACKFILL = FIRST + 100 * DAY


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path, now=1)
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
