"""Turns into observations: what is worth one, how it is named, and what its facts are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from tests.distilling import Story, fixed_bug, letters
from tests.table import each
from yester.cards.cards import FIELDS, add_todo, has_news, make_card, make_session_card
from yester.cards.drafts import Gate
from yester.cards.titles import title_mender
from yester.cards.tools import defined_names
from yester.cards.turns import group_turns
from yester.ingest.prepare import Shown
from yester.llm.questions import CONCEPTS, TYPES
from yester.model import Event
from yester.tables import load_rows

pytestmark = pytest.mark.requirement("DIS-01", "DIS-03")


def by_slot(drafts):
    return {draft.slot.split(":")[0]: draft for draft in drafts}


def occurs(fact, story):
    source = story.items[fact.source - 1]
    return letters(fact.text) in letters(source.body)


# --- turns ---------------------------------------------------------------------------------------


def test_items_are_grouped_by_their_prompt_also_when_they_come_late():
    story = Story()
    story.prompt("first")
    story.reads("a.py")
    story.prompt("second")
    late = story.reads("b.py")
    force_setattr(late, "prompt_number", 1)  # its call was made before the second prompt
    story.says("done")
    first, second = story.turns()
    assert [step.item.files_read[0] for step in first.steps] == ["a.py", "b.py"]
    assert [item.body for item in second.said] == ["done"]
    assert (first.number, second.number) == (1, 2)


def test_what_happened_before_the_first_prompt_is_a_turn_of_its_own():
    story = Story()
    story.reads("a.py")
    story.prompt("go")
    assert [(turn.number, turn.key == "0") for turn in story.turns()] == [(0, True), (1, False)]


def test_a_sub_agents_work_belongs_to_the_turn_it_was_done_in():
    story = Story()
    story.prompt("go")
    story.edits("a.py", actor="Explore:1")
    story.says("a sub-agent's words", actor="Explore:1")
    story.says("the answer")
    (turn,) = story.turns()
    assert turn.edited == ("a.py",)
    assert [item.body for item in turn.said] == ["the answer"]


def test_the_last_word_closes_a_turn_only_if_it_comes_last():
    story = Story()
    story.prompt("go")
    story.says("I begin.")
    story.edits("a.py")
    assert story.turns()[0].closing is None
    story.says("Done with it.")
    assert story.turns()[0].closing.body == "Done with it."


@pytest.mark.requirement("CAP-04", "CAP-05")
def test_skip_rules_hold_for_what_was_read_from_a_transcript_too():
    story = Story()
    story.prompt("look around")
    story.reads("a.py")
    story._add("message", "tool", "x" * 90, tool="LS")
    story.ran("pwd", "/x")
    story.fails("false", "")
    (turn,) = story.turns()
    assert [step.why_not for step in turn.steps] == ["", "skipped tool", "short", ""]


@pytest.mark.requirement("CAP-04")
def test_a_sessions_own_switch_holds_as_the_hooks_told_it():
    story = Story()
    story.prompt("look around")
    read = story.reads("a.py")
    told = Event("1", "PostToolUse", 0, tool="Read", item=read.id, skipped="skipped tool")
    assert story.turns({read.id: told})[0].steps[0].why_not == "skipped tool"


def test_a_view_knows_its_tokens_though_it_holds_only_part_of_the_text():
    story = Story()
    item = story.prompt("go")
    (turn,) = group_turns([(item, 4_000)], {})
    assert turn.tokens == 1_000


# --- work ----------------------------------------------------------------------------------------


def test_a_bugfix_with_all_its_fields():
    story = fixed_bug(Story())
    (draft,) = story.drafted()
    assert (draft.type, draft.title) == ("bugfix", "Fix the cart's total for ten and more items")
    assert draft.subtitle.startswith("The totals in the cart are wrong")
    assert draft.files_modified == ("src/cart.py",)
    texts = [fact.text for fact in draft.facts]
    assert any("because total() compares item counts as text" in text for text in texts)
    assert "total() now converts them to numbers first" in texts
    assert "problem-solution" in draft.concepts
    assert "`pytest -q tests/test_cart.py` ended with status 1, 0" in draft.sections["outcome"]
    assert "1 failed, then 5 passed" in draft.sections["outcome"]
    assert "committed as abc1234" in draft.sections["outcome"]
    assert all(occurs(fact, story) for fact in draft.facts)


@each(
    ("said", "title"),
    [
        (
            "Fixed: calc.py failed with ModuleNotFoundError because `numpy` was missing.",
            "Fixed: calc.py failed with ModuleNotFoundError because numpy was missing",
        ),
        (
            "**Fixed:** calc.py failed with `ModuleNotFoundError` in line 12.",
            "Fixed: calc.py failed with ModuleNotFoundError in line 12",
        ),
        (
            "Fixed. calc.py failed with `ModuleNotFoundError` in line 12.",
            "Fixed. calc.py failed with ModuleNotFoundError in line 12",
        ),
        (
            "Done. Fixed: the worker crashed when `spool/` was empty.",
            "Fixed: the worker crashed when spool/ was empty",
        ),
        (
            "Fixed the login crash: `session.user` was None after a timeout.",
            "Fixed the login crash: session.user was None after a timeout",
        ),
        (
            "Fixed! `total()` now converts counts before it compares them.",
            "total() now converts counts before it compares them",
        ),
    ],
)
def test_what_is_said_to_be_fixed_is_a_bugfix_and_never_reads_as_a_failure(said, title):
    story = Story()
    story.prompt("have a look at the calculator")
    story.edits("calc.py")
    story.says(said)
    (draft,) = story.drafted()
    assert (draft.type, draft.title) == ("bugfix", title)


RESULTS = {
    "before the points of a list": (
        "All tests pass. I've added a limit to `discount()`:\n\n"
        "- `cart.py`: new constant\n- `shop.py`: reads it\n- tests for both",
        "Added a limit to discount()",
    ),
    "behind a label": (
        "**Root cause**: `total()` compared counts as text, because they come from the form.\n\n"
        "**Fix**: Converted the counts in `total()`.",
        "Converted the counts in total()",
    ),
    "under a heading that says nothing": (
        "## Summary\n\nFixed the rounding of `total()` for three currencies.\n\n- a point",
        "Fixed the rounding of total() for three currencies",
    ),
    "as what the fix does": (
        "All clean. The fix sorts the items of `cart.py` by their price.",
        "Sorts the items of cart.py by their price",
    ),
    "without the way to git": (
        "Done — `total()` now rounds to cents, committed as `a5e4b9d2` on main.",
        "total() now rounds to cents",
    ),
}


@each(("said", "title"), RESULTS.values())
def test_work_is_named_by_the_sentence_that_says_the_result(said, title):
    story = Story()
    story.prompt("can we have a generic fallback label for unknown currencies?")
    story.edits("cart.py")
    story.says(said)
    (draft,) = story.drafted()
    assert draft.title == title


def test_work_that_ended_without_a_word_is_named_by_the_commit_that_holds_it():
    story = Story()
    story.prompt("yeah, address all of them")
    story.edits("cart.py")
    story.prompt("and add a test")
    story.edits("test_cart.py")
    story.commits("Round totals to cents")
    first, second = story.drafts()
    assert [one.title for one in (*first, *second)] == ["Round totals to cents"] * 2


def test_an_answer_is_named_by_the_sentence_that_has_the_words_of_the_question():
    story = Story()
    story.prompt("do we log the deleted items of the cart?")
    story.reads("cart.py")
    story.says(
        "**No, deleted items are not logged.** There are ways:\n\n"
        "1. **Remove `reason`** because nobody reads it in `cart.py`\n2. **Log** each of them"
    )
    (card,) = (make_card(looked, [], Gate()) for looked in story.looked())
    assert card.title == "Deleted items are not logged"


@each(
    ("prompt", "answer", "title"),
    (
        (
            "can we just drop the old harbour tables?",
            "No — they are what the ferries are billed by.",
            "Can we just drop the old harbour tables? No",
        ),
        (
            "maybe the tide column isn't allowed to be empty?",
            "No, it may. The check is in `tide.py` and asks for a number only where there is one.",
            "Maybe the tide column isn't allowed to be empty? No",
        ),
        (  # not a question that yes answers
            "what is the problem with the harbour tables?",
            "Yes, there are two. The harbour tables lack a key, because `ferries.py` writes twice.",
            "The harbour tables lack a key, because ferries.py writes twice",
        ),
    ),
)
def test_a_question_that_got_a_yes_or_a_no_is_named_by_both(prompt, answer, title):
    story = Story()
    story.prompt(prompt)
    story.reads("tables.py")
    story.says(f"{answer}\n\n- `bill.py` reads them because nobody has moved the sums")
    (card,) = (make_card(looked, [], Gate()) for looked in story.looked())
    assert card.title == title


def test_an_answer_that_asks_back_is_named_by_what_it_says_before_it_asks():
    story = Story()
    story.prompt("how would we get that token?")
    story.says(
        "Two options:\n\n1. A token of the settings\n2. An app\n\nThe app is better for teams,"
        " because its tokens in `harbour.toml` live for an hour. Which way do you want to go?"
    )
    (card,) = (make_card(looked, [], Gate()) for looked in story.looked())
    assert card.subtitle == "open: asks the user"
    assert card.title.startswith("The app is better for teams, because its tokens")


SEVERAL = (
    # what was said at the end, title
    ("Both are in.\n\n- **Empty lines are skipped** (`cart.py:97`): added a check to the reader\n"
     "- **Totals of carts in cents** (`cart.py:120`): changed the type",
     "Empty lines are skipped; Totals of carts in cents"),
    ("Two fixes.\n\n## Task 1: the key\n\n- Added the tenant to the key of the cart\n- Renamed"
     " `total_of` to `count_total`\n- Removed the cache of carts, which nobody has read for years",
     "Added the tenant to the key of the cart; Renamed total_of to count_total"),
    ("Fixed both issues in 8d8be6a:\n\n1. **Tenant**: added the tenant to the cache\n2. **Cents**:"
     " changed totals to cents",
     "Added the tenant to the cache; Changed totals to cents"),
    ("Updated `web/cart.ts:50` — the cart now keeps what a guest has put into it.",
     "The cart now keeps what a guest has put into it"),
    ("All five are done:\n\n| Point | What it is now |\n|---|---|\n| 3 | Removed the local total of"
     " carts; the sum is used |\n| 5 | Added the tenant to the cache |",
     "Removed the local total of carts; Added the tenant to the cache"),
    ("I made three edits to `cart.py`, each in the style of the file:\n\n- Added the tenant to its"
     " key\n- Removed the cache of totals",
     "Added the tenant to its key; Removed the cache of totals"),
)  # fmt: skip


@pytest.mark.requirement("DIS-15")
@each(("said", "title"), SEVERAL)
def test_work_of_several_parts_is_named_by_as_many_of_them_as_there_is_room_for(said, title):
    story = Story()
    story.prompt("ok, go on with them")
    story.edits("cart.py")
    story.says(said)
    (draft,) = story.drafted()
    assert draft.title == title


def test_an_answer_that_tells_nothing_to_be_kept_is_named_by_its_first_sentence():
    story = Story()
    story.prompt("the linter of the harbour map does fire a few times")
    story.reads("cart.py")
    story.says(
        "The linter reports 0 issues here. Are you looking at the files that are not staged, or at"
        " another branch? It mends what it can by itself when it is run, so a second run finds"
        " nothing of what the first one has found, and says so."
    )
    (card,) = (make_card(looked, [], Gate()) for looked in story.looked())
    assert card.title == "The linter reports 0 issues here"


def test_a_title_of_the_reader_keeps_the_marks_that_a_name_begins_with():
    mend = title_mender("why?", "It is gone: `--clean` wipes the cart before it is counted.")
    assert mend("Clean wipes the cart before it is counted") == (
        "--clean wipes the cart before it is counted"
    )


def test_what_holds_on_a_condition_is_named_by_what_holds():
    story = Story()
    story.prompt("fix test")
    story.edits("resume.py")
    story.says(
        "Passes. When `restore()` returns an empty list (all of them skipped for want of a name),"
        " resume now falls back to the one session that is there."
    )
    (draft,) = story.drafted()
    assert draft.title == "Resume now falls back to the one session that is there"


ANNOUNCED = (
    (["Now let me fix it:"], "Changed berths.yml: can't each berth have its own"),
    (["Let me check the log of the quay:"], "Changed berths.yml: can't each berth have its own"),
    (
        ["The simplest fix is to use the berth number as the key instead of the name. Let me:"],
        "Use the berth number as the key instead of the name",
    ),
    (
        ["Let me add a note about the tide tables:", "Next, keep each berth in the quay's file:"],
        "Keep each berth in the quay's file",
    ),
)


@each(("said", "title"), ANNOUNCED)
def test_a_change_nobody_speaks_of_at_the_end_is_named_by_what_was_announced(said, title):
    story = Story()
    story.prompt("hmm, can't each berth have its own?")
    for text in said:
        story.says(text)
        story.edits("berths.yml")
    story.says("You can try it now.")
    (draft,) = story.drafted()
    assert draft.title == title


def test_an_addition_to_an_older_commit_is_not_named_by_that_commit():
    story = Story()
    story.prompt("use the constants, and fixup in the right commit")
    story.edits("segments.py")
    story.commits("fixup! refactor: migrate the languages to an engine")
    story.says("All 19 calls now use the constants instead of literal strings.")
    (draft,) = story.drafted()
    assert draft.title == "All 19 calls now use the constants instead of literal strings"


ANSWERS = (
    # what was said, title
    ("Three places store it.\n\n- **Key** - of the `cart_id`\n\nSo to answer your question"
     " directly: the happy path of `cart.py` is tested, nothing else.",
     "The happy path of cart.py is tested, nothing else"),
    ("## Root cause\n\n1. **Run the importer (cart.py:80)** - writes text\n\n`--clean` wipes the"
     " cart of `cart.py` before it is counted.",
     "--clean wipes the cart of cart.py before it is counted"),
    ("A few options:\n\n1. **Cache the totals of a cart**: fast\n2. **Count them each time**: slow"
     "\n\nI'd lean toward option 1, since `cart.py` is read often.",
     "Recommended: cache the totals of a cart"),
    ("Two ways:\n\n## Option A: ids first\n\nLong.\n\n## Option B: names first\n\nShort.\n\n**I"
     " recommend Option B** - name first, without ids. Guests never read an id of `cart.py`.",
     "Recommended: name first, without ids"),
    ("I looked at all six files of the cart, not only at `cart.py`.\n\n- **`cart_id`**: easy\n"
     "- **Totals**: hard\n\n**Recommendation:** the key and the totals are the best to begin with.",
     "Recommended: the key and the totals are the best to begin with"),
    ("Time isn't O(carts) — it's O(carts × rules of `cart.py`), because each rule reads each cart.",
     "Time isn't O(carts) — it's O(carts × rules of cart.py)"),
    ("Let me say it once.\n\nThat settles it: **the total of a cart is never stored**, and each"
     " page counts it.\n\nThe loop runs twice because `cart.py` is read twice.",
     "The total of a cart is never stored"),
    ("**For guests, `cart_id` is never written.**\n\n- **Key** - of the `cart_id`\n\nThe loop of"
     " `cart.py` fails because the key is read twice.",
     "For guests, cart_id is never written"),
    ("# Review of `cart.py`: rounding totals\n\n**Verdict: approve with minor changes**\n\nThe key"
     " of `cart_id` is read twice because of the loop.",
     "Review of cart.py: rounding totals: approve with minor changes"),
)  # fmt: skip


@pytest.mark.requirement("DIS-15")
@each(("said", "title"), ANSWERS)
def test_an_answer_is_named_by_what_it_comes_to_and_not_by_one_of_its_points(said, title):
    story = Story()
    story.prompt("do we test the cart?")
    story.reads("cart.py")
    story.says(said)
    (card,) = (make_card(looked, [], Gate()) for looked in story.looked())
    assert card.title == title


def test_what_holds_on_a_condition_is_no_title_without_it():
    mend = title_mender("is it safe?", "If both carts are there, the total works for any of them.")
    assert mend("The total works for any of them") == ""


@pytest.mark.requirement("DIS-13")
def test_what_is_left_to_do_names_no_result():
    closing = "Rounded the totals of the cart. The export of a cart is not fixed yet."
    mend = title_mender("mend the cart", closing)
    assert mend("Rounded the totals of the cart") == "Rounded the totals of the cart"
    assert mend("The export of a cart is not fixed yet") == ""


@pytest.mark.requirement("DIS-15")
def test_a_change_nobody_has_said_a_word_of_is_named_by_what_it_brings():
    story = Story()
    story.prompt("make the cart wait for a lost connection")
    story.edits("src/retry.py", "def connect_each_call():\n    pass\n")
    story.ran("pytest -q", "5 passed in 0.20s")
    (draft,) = story.drafted()
    assert draft.title == "retry.py: connect_each_call"


@pytest.mark.requirement("DIS-15")
def test_a_file_that_nobody_says_a_word_of_was_given_another_name():
    story = Story()
    story.prompt("Instead of cart.py name it basket.py")
    story.ran("git mv web/cart.py web/basket.py")
    story.says("Done.")
    (draft,) = story.drafted()
    assert draft.title == "Renamed cart.py to basket.py"


def test_of_several_commits_the_one_of_the_work_names_the_turn():
    story = Story()
    story.prompt("add gradients, as our guidelines say")
    story.commits("test(color): restore the mode after the tests of strings", hash_="aaa1111")
    story.commits("feat: add linear gradients to the harbour map", hash_="bbb2222")
    story.says("Both are on the branch. The tests of strings left the mode of colors behind.")
    card, *_ = summarized(story, story.drafts())
    assert card.title == "Add linear gradients to the harbour map"


def test_a_sentence_of_a_commit_is_read_to_its_end_on_the_next_line():
    story = Story()
    story.prompt("commit this")
    story.edits("map.tsx")
    body = (
        "- Move the berths from the summary because nobody has found them there since\n"
        "  Harbour 3 was opened\n- Show the tides"
    )
    story.commits("Add a tab for the berths", body)
    facts = [fact.text for draft in story.drafted() for fact in draft.facts]
    assert facts == [
        "Move the berths from the summary because nobody has found them there since Harbour 3 was"
        " opened"
    ]


def test_a_fix_without_an_edit_is_a_bugfix_too():
    story = Story()
    story.prompt("why does calc.py not start?")
    story.ran("python calc.py", "ModuleNotFoundError: numpy" + "." * 90)
    story.says(
        "Fixed: calc.py failed with ModuleNotFoundError because `numpy` was missing in .venv."
    )
    (draft,) = story.drafted()
    assert draft.type == "bugfix"
    assert draft.title.startswith("Fixed: calc.py failed")


def test_a_decision_typed_beside_a_request_is_not_what_was_asked_for():
    story = Story()
    story.prompt(
        "We decided to keep the monolith because two teams are too few. Now make the calculator"
        " start again on machines without numpy."
    )
    story.edits("calc.py")
    story.says("Fixed: calc.py failed with ModuleNotFoundError in line 12.")
    work = by_slot(story.drafted())["work"]
    assert work.subtitle.startswith("Now make the calculator start again")


def test_a_merge_is_named_by_what_was_said_of_it_and_not_by_git():
    story = Story()
    story.prompt("merge main")
    story.edits("cart.py")
    story.ran("git commit --no-edit", "[fix 1a2b3c4] Merge remote-tracking branch 'origin/main'")
    story.says("Kept both fields of the cart where `main` and this branch had added one each.")
    (draft,) = story.drafted()
    assert draft.title.startswith("Kept both fields of the cart")


def test_work_that_is_committed_in_a_later_turn_has_one_observation_where_it_was_done():
    story = Story()
    story.prompt("Add a --local option to the enable command of the program")
    story.edits("src/enable.py")
    story.says("Added the `--local` option to `enable`; it writes to `settings.local.json`.")
    story.prompt("commit this")
    story.commits("Add --local to enable", "It writes to settings.local.json instead.")
    story.says("Committed.")
    first, second = story.drafts()
    assert [draft.title for draft in first] == ["Add --local to enable"]
    assert first[0].files_modified == ("src/enable.py",)
    assert second == []


def test_what_is_said_when_work_is_committed_counts_for_it():
    story = Story()
    story.prompt("Build one static binary for linux that runs on the old box")
    story.edits("Cargo.toml")
    story.says("Built; `strip` halves it.")
    story.prompt("tag it")
    story.commits("Release 0.4.0")
    story.says("To repeat the build: `musl-tools` installed, `rusqlite` with feature `bundled`.")
    (draft,) = story.drafted()
    assert draft.facts[-1].text.startswith("To repeat the build: musl-tools")
    assert all(occurs(fact, story) for fact in draft.facts)


def test_what_is_said_right_after_a_failure_explains_it():
    story = Story()
    story.prompt("Build one static binary for linux that runs on the old box")
    story.fails(
        "cargo build --release", "  = note: /usr/bin/ld: cannot find -lsqlite3: No such file"
    )
    story.says("`rusqlite` links the system's SQLite. Its feature `bundled` compiles it in.")
    story.edits("Cargo.toml")
    story.fails("cargo build --release", "error occurred in cc: failed to find tool musl-gcc")
    story.ran("apt-get install musl-tools && CC=musl-gcc cargo build --release", "Finished release")
    (draft,) = story.drafted()
    assert len(draft.facts) == 2
    assert (
        "cannot find -lsqlite3: No such file: gone after changes to Cargo.toml"
        in (draft.sections["outcome"])
    )
    assert "musl-gcc: gone after `apt-get install musl-tools && " in draft.sections["outcome"]


def test_other_scripts_and_languages_are_understood_by_their_commonest_words():
    story = Story()
    story.prompt("商品検索で日本語の商品名がヒットしません。原因を調べてください。")
    story.reads("search.py")
    story.says(
        "索引が単語を分けていないため、`search()` は「ランプ」を見つけません。\n\n"
        "注意: `tokenize()` は空白だけで分けるので、日本語では失敗します。"
    )
    (draft,) = story.drafted()
    assert draft.type == "discovery"
    assert len(draft.facts) == 2
    assert draft.subtitle.startswith("商品検索で")


def test_two_commits_of_a_turn_are_two_observations_with_their_own_files():
    story = Story()
    story.prompt("Do both of the things we have talked about in the plan")
    story.edits("a.py")
    story.commits("Add parsing of dates", "Dates were taken as text before.")
    story.edits("b.py")
    story.commits("Remove the old cache", "Nobody used the cache any more.")
    drafts = story.drafted()
    assert {draft.title: draft.files_modified for draft in drafts} == {
        "Add parsing of dates": ("a.py",), "Remove the old cache": ("b.py",),
    }  # fmt: skip


@each(
    ("prompt", "closing", "title", "type_"),
    [
        ("Implement the following plan:\n\n# Plan: Tree view for the context tab\n\n## Context\n"
         "The tab shows a flat list because nobody had time for more.",
         "All done.\n\n- Added `tree.ts` with the builder\n- Added `TreeView.tsx`",
         "Tree view for the context tab", "feature"),
        ("Remove the button from the remediation module please",
         "Done. Removed the `Generate` button from the remediation module, with its state.",
         "Removed the Generate button from the remediation module, with its state", "change"),
        ("the tree view makes everything slow, it is broken",
         "The `buildTree()` call is memoised now, it no longer runs on every key.",
         "The buildTree() call is memoised now, it no longer runs on every key", "bugfix"),
        ("rename the helper functions in utils to say what they do",
         "Everything is in place.", "Rename the helper functions in utils to say what they do",
         "refactor"),
    ],
)  # fmt: skip
def test_work_without_a_commit_is_named_by_plan_result_or_request(prompt, closing, title, type_):
    story = Story()
    story.prompt(prompt)
    story.edits("src/a.ts")
    story.edits("src/b.ts")
    story.says(closing)
    (draft,) = story.drafted()
    assert (draft.title, draft.type) == (title, type_)


def test_scratch_files_and_failed_edits_are_nobodys_work():
    story = Story()
    story.prompt("try something out for me in the scratch folder")
    story.edits("scratchpad/try.py")
    story.edits("src/a.py", tags=("error",))
    story.says("Tried it.")
    assert story.turns()[0].edited == ()
    assert story.drafted() == []


def test_every_definition_is_found_in_its_examples_and_in_a_patch():
    for row in load_rows("tools", "definitions"):
        for example in row.examples:
            assert len(defined_names(example)) == 1, row.name
            assert defined_names(f"*** Update File: a\n+    {example}\n") == defined_names(example)


def test_a_change_tells_what_it_touched_by_name():
    story = Story()
    story.prompt("Add a total to the cart and use it in the page of the shop")
    story.edits("src/cart.py", "def old():\n    pass\ndef total(cart):\n    return 1\n")
    story.edits("src/page.ts", "export const page = (cart) => {\n  total(cart)\n}\n")
    story.says("Added `total()` to `cart.py`; the page uses it.")
    (draft,) = story.drafted()
    assert draft.sections["changed"] == "old, total, page"


def summarized(story, drafts):
    pairs = zip(story.looked(), drafts, strict=True)
    return [make_card(looked, drafts_, Gate()) for looked, drafts_ in pairs]


# --- nothing to tell -----------------------------------------------------------------------------


@each(
    "tell",
    [
        lambda s: (s.prompt("yes"), s.says("Great, let me know!")),
        lambda s: (s.prompt("ok back to main"), s.ran("git checkout main", "Switched to main"),
                   s.says("On `main`, up to date. What's next?")),
        lambda s: (s.prompt("run the tests"), s.ran("pytest", "5 passed in 1s" + " " * 50),
                   s.says("All tests pass.")),
        lambda s: (s.prompt("are you there?"),),
        lambda s: (s.prompt("read the file"), s.reads("a.py"),
                   s.says("I have read the file. What would you like to know?")),
    ],
)  # fmt: skip
def test_a_trivial_turn_gives_nothing(tell):
    story = Story()
    tell(story)
    assert story.drafted() == []
    assert not has_news(summarized(story, [[]])[0])


# --- found ---------------------------------------------------------------------------------------


def test_an_answer_that_explains_is_a_discovery():
    story = Story()
    story.prompt("main branch tests failing - why?")
    story.reads("agent_test.go")
    story.says(
        "Found the issue. `TestDetect` uses `t.Parallel()` together with `os.Chdir()`, which is a"
        " race condition because `os.Chdir()` affects the whole process.\n\nThe cache in"
        " `RepoRoot()` is keyed by the folder, so another test's folder silently wins."
    )
    (draft,) = story.drafted()
    assert draft.type == "discovery"
    assert draft.title.startswith("TestDetect uses t.Parallel() together with os.Chdir()")
    assert draft.subtitle == "main branch tests failing - why?"
    assert draft.files_read == ("agent_test.go",)
    assert len(draft.facts) == 2
    assert set(draft.concepts) >= {"how-it-works", "gotcha"}


# --- decided -------------------------------------------------------------------------------------


def test_answers_to_questions_are_decisions():
    story = Story()
    story.prompt("set up the tap")
    story.asks("Auth method", "Which method for pushing to the tap?", "GitHub App")
    story.asks("Next", "Ready to continue with the next step?", "Yes")
    (draft,) = story.drafted()
    assert (draft.type, draft.title) == ("decision", "Auth method: GitHub App")
    assert [f.text for f in draft.facts] == ['"Which method for pushing to the tap?"="GitHub App"']


@each(
    ("typed", "title"),
    [
        (
            "Decision: we use Postgres and not MySQL for the orders, because of its row locks",
            "We use Postgres and not MySQL for the orders, because of its row locks",
        ),
        (
            "Let's go with Kafka instead of RabbitMQ, since we want to replay events",
            "Go with Kafka instead of RabbitMQ, since we want to replay events",
        ),
        (
            "We decided to keep the monolith because two teams are too few",
            "We decided to keep the monolith because two teams are too few",
        ),
        ("Set up the tables. Decision: tabs for indentation", "Tabs for indentation"),
    ],
)
def test_what_is_typed_as_decided_is_a_decision_also_in_a_first_prompt(typed, title):
    story = Story()
    story.prompt(typed)
    story.says("Noted.")
    (draft,) = story.drafted()
    assert (draft.type, draft.title) == ("decision", title)
    assert [fact.text in typed for fact in draft.facts] == [True]
    assert all(occurs(fact, story) for fact in draft.facts)


def test_two_decisions_of_one_prompt_are_two():
    story = Story()
    story.prompt("Decision: REST for the public interface. Decision: one database per tenant.")
    assert [draft.title for draft in story.drafted()] == [
        "REST for the public interface", "One database per tenant",
    ]  # fmt: skip


def test_a_decision_the_agent_states_with_its_reason_is_said_once():
    story = Story()
    story.prompt("write the pages and note it in decisions.md")
    story.edits("views.py")
    story.says(
        "Product pages now come from the view `product_page`.\n\n"
        "We dropped Redis because the cache served stale prices after every promotion."
    )
    drafts = by_slot(story.drafted())
    decision, work = drafts["stated"], drafts["work"]
    assert decision.type == "decision"
    assert decision.title.startswith("We dropped Redis because")
    assert "Redis" not in work.body + " ".join(fact.text for fact in work.facts)


@each(
    "text",
    [
        "Should we not rather use the shared utils instead of the provider for this?",
        "can you please look at why we should not do this instead of that thing",
        "let's go with option B",
    ],
)
def test_questions_and_requests_are_no_decisions(text):
    story = Story()
    story.prompt("first")
    story.prompt(text)
    assert story.drafted() == []


# --- trouble -------------------------------------------------------------------------------------


@pytest.mark.requirement("DIS-09")
def test_an_error_that_took_several_tries_says_what_did_not_help():
    story = Story()
    story.prompt("make the resume test pass")
    error = "    resume_test.go:830: resume failed: process timed out\n--- FAIL: TestResume (5s)\n"
    story.fails("go test ./... -run TestResume", error + "FAIL\tx/y\t5s")
    story.edits("resume.go")
    story.fails("go test ./... -run TestResume", error + "FAIL\tx/y\t5s")
    story.says("Raising the timeout did not help, because the prompt waits for a terminal.")
    story.edits("prompt.go")
    story.ran("go test ./... -run TestResume", "ok  \tx/y\t0.5s" + " " * 40)
    draft = by_slot(story.drafted())["error"]
    assert (draft.type, draft.title) == ("bugfix", "resume failed: process timed out")
    assert draft.facts[0].text == "resume_test.go:830: resume failed: process timed out"
    assert draft.facts[1].text.startswith("Raising the timeout did not help")
    assert draft.sections["tried"] == "Did not help: a change to resume.go"
    assert draft.files_modified == ("prompt.go",)
    assert "warning" in draft.tags
    assert all(occurs(fact, story) for fact in draft.facts)


@pytest.mark.requirement("DIS-09")
def test_an_error_that_stayed_is_a_warning():
    story = Story()
    story.prompt("make the build pass")
    for file in ("a.go", "b.go"):
        story.fails("go build ./...", "x/a.go:1:2: undefined: frobnicate in this package")
        story.edits(file)
    story.fails("go build ./...", "x/a.go:1:2: undefined: frobnicate in this package")
    draft = by_slot(story.drafted())["stuck"]
    assert draft.title == "Still failing: undefined: frobnicate in this package"
    assert draft.concepts == ("gotcha",)


@pytest.mark.requirement("DIS-09")
def test_an_error_that_stayed_is_told_as_the_last_run_said_it():
    story = Story()
    story.prompt("make the tide table exact")
    for file, off in (("tides.py", 31), ("moon.py", 29)):
        story.fails("pytest -q", f"E   AssertionError: the tide is {off} minutes late\n1 failed")
        story.edits(file)
    story.fails("pytest -q", "E   AssertionError: the tide is 12 minutes late\n1 failed")
    draft = by_slot(story.drafted())["stuck"]
    assert "12 minutes" in draft.title
    assert "12 minutes" in draft.facts[0].text
    assert all(occurs(fact, story) for fact in draft.facts)


@pytest.mark.requirement("DIS-09")
def test_a_command_that_does_not_work_here_is_kept_once_for_the_project():
    story = Story()
    story.prompt("run the tests")
    story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
    story.ran("bun run test", " 5 pass\n 0 fail" + " " * 50)
    (draft,) = story.drafted()
    assert draft.slot.startswith("/command:")
    assert draft.title == "rtk bun run test fails: unrecognized subcommand 'bun'"
    assert draft.subtitle == "works instead: bun run test"


@pytest.mark.parametrize(("failed", "worked", "told"), [
    ("rtk git add src/a.py", "git add src/a.py", "git add …"),
    ("workmux add --branch feat/x", "workmux add feat/x", "workmux add feat/x"),
])  # fmt: skip
def test_what_works_instead_is_told_without_files_unless_they_are_the_difference(
    failed, worked, told
):
    story = Story()
    story.prompt("begin the work")
    story.fails(failed, f"error: unexpected argument in '{failed}'", 2)
    story.ran(worked, "done" + " " * 50)
    (draft,) = story.drafted()
    assert draft.subtitle == f"works instead: {told}"


# --- gates ---------------------------------------------------------------------------------------


def test_what_was_said_before_in_the_session_is_not_taken_again():
    story = Story()
    for number in range(3):
        story.prompt(f"try again, number {number} of the attempts to build it")
        story.edits("a.py")
        story.says("The build fails because `frob()` is missing in `lib/core.c` since yesterday.")
    facts = [fact.text for drafts in story.drafts() for d in drafts for fact in d.facts]
    assert len(facts) == len(set(facts)) == 1


@pytest.mark.requirement("CAP-11")
def test_what_only_repeats_what_was_shown_is_not_stored():
    given = "Orders are stored in UTC because reports broke in March when clocks changed"
    story = Story()
    story.prompt("why is the report wrong?")
    story.reads("report.py")
    story.says(
        "Orders are stored in UTC because reports broke in March when clocks changed."
        "\n\nThe `render()` call fails because `zone` is read from the wrong `settings.toml`."
        "\n\nThe page is wrong because `render()` caches `zone` for each `Report` it makes."
    )
    gate = Gate([Shown.from_text(given)])
    (draft,) = [d for drafts in story.drafts(gate) for d in drafts]
    assert all("March" not in fact.text for fact in draft.facts)
    assert "March" not in draft.body + draft.title


@pytest.mark.requirement("CAP-11")
def test_a_fact_that_corrects_what_was_shown_is_a_fact():
    shown = "The `ledger` listens on port 8080 because the office proxy forwards to it"
    new = shown.replace("8080", "7443")
    story = Story()
    story.prompt("where does the ledger listen?")
    story.says(f"{shown}.\n\n{new}.")
    gate = Gate([Shown.from_text(shown)])
    (said,) = story.turns()[0].said
    assert [fact.text for fact in gate.take(said)] == [f"{new}.".replace("`", "")]


WORDS = st.sampled_from(
    ["The total is wrong because `a()` fails", "Added `x.py`", "fix the bug in the cart", "yes",
     "## Root cause: the id", "- Note that `b` breaks", "Would you like more?", "ok\n\nok",
     "Instead of `x` we should use `y` because it is not slow", "次の文。", "$(cat <<EOF"]
)  # fmt: skip


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("prompt"), WORDS),
            st.tuples(st.just("says"), WORDS),
            st.tuples(st.just("edits"), st.sampled_from(["a.py", "b/c.go"])),
            st.tuples(st.just("reads"), st.sampled_from(["a.py", "d.md"])),
            st.tuples(st.just("fails"), st.sampled_from(["pytest -q", "go build ./..."])),
            st.tuples(st.just("ran"), st.sampled_from(["pytest -q", "go build ./...", "ls"])),
            st.tuples(st.just("commits"), WORDS),
        ),
        max_size=14,
    )
)
def test_whatever_happens_observations_are_what_they_promise(steps):
    story = Story()
    for name, text in steps:
        if name == "fails":
            story.fails(text, "E       KeyError: 'total'\nx.go:1:2: undefined: total of it")
        else:
            getattr(story, name)(text)
    for turn, drafts in zip(story.turns(), story.drafts(), strict=True):
        assert len(drafts) <= 6
        assert len({draft.slot for draft in drafts}) == len(drafts)
        for draft in drafts:
            assert draft.type in TYPES
            assert 0 < len(draft.title) <= 80
            assert set(draft.concepts) <= set(CONCEPTS)
            assert turn.started <= draft.epoch
            assert all(occurs(fact, story) for fact in draft.facts)


# --- summaries -----------------------------------------------------------------------------------


@pytest.mark.requirement("DIS-02")
def test_a_turn_in_six_fields():
    story = fixed_bug(Story())
    (summary,) = summarized(story, story.drafts())
    assert set(summary.sections) <= set(FIELDS)
    assert summary.sections["request"].startswith("The totals in the cart are wrong")
    assert summary.sections["completed"] == "Fix the cart's total for ten and more items"
    assert "compares item counts as text" in summary.sections["learned"]
    assert "next_steps" not in summary.sections  # an offer is nothing that is open
    assert summary.files_modified == ("src/cart.py",)


@pytest.mark.requirement("DIS-02")
@each(
    "question",
    [
        "Where does the studio logic come from to generate the themes?",
        "where does the studio logic come from to generate the themes of all the many pages that"
        " we have here and elsewhere",
    ],
)
def test_what_was_asked_is_not_what_was_learned(question):
    story = Story()
    story.prompt(question)
    story.reads("studio.py")
    story.says(
        "- `studio.py` reads `themes.json` because the exporter writes it\n"
        "- it fails when `themes.json` is missing, since `load()` does not look for it\n"
        "- does it fail because `load()` is called twice?\n"
    )
    (drafts,) = story.drafts()
    learned = summarized(story, [drafts])[0].sections["learned"]
    assert drafts[0].title.startswith("Where does the studio logic come from")
    assert "because the exporter writes it" in learned
    assert "?" not in learned
    assert "studio logic" not in learned


@pytest.mark.requirement("DIS-02")
def test_a_session_is_what_its_turns_came_to_and_what_is_left():
    story = fixed_bug(Story())
    story.prompt("Explain why discount() has the same weakness as total() had")
    story.reads("src/discount.py")
    story.says(
        "`discount()` reads counts from `cart.json`, where they are text because the importer"
        " writes them so.\n\nIt fails when `count` has two digits, since `max()` compares text."
    )
    todo = "[x] fix total\n[ ] fix discount"
    *cards, last = summarized(story, story.drafts())
    summary = make_session_card([*cards, add_todo(last, todo)])
    assert summary.sections["request"].count("\n") == 1
    assert "fix discount" in summary.sections["next_steps"]
    assert summary.sections["completed"] == "Fix the cart's total for ten and more items"
    assert summary.sections["investigated"] == "read discount.py"


# --- titles of the reader, mended -----------------------------------------------------------------

MENDED = (
    (
        "Added debug logging to all the error",
        "Added debug logging to all the error paths in hooks.py",
    ),
    (
        "The store drops the oldest entry using",
        "The store drops the oldest entry using the clock of the host machine itself",
    ),
    ("The token names the pilot", "The token names the pilot, but it may not write to the log"),
    ("plus their tests now live in tides", "All tables plus their tests now live in tides"),
    ("It is the same between 1.9", "It is the same between 1.9 and 2.0"),
    ("Step 1 - the key of the cache", ""),
    ("The wide table at the top", ""),  # begins within a clause
    ("The entire status command outputs", ""),  # leads up to a list
    ("The harbour map is blank on Safari", ""),  # what the request says
)


@each(("title", "mended"), MENDED)
def test_a_title_of_the_reader_is_whole_clauses_of_the_closing_message(title, mended):
    closing = (
        "I added debug logging to all the error paths in `hooks.py`, then replaced the wide table"
        " at the top by five. The store drops the oldest entry using the clock of the host machine"
        " itself. The token names the pilot (so it is sent along with the request), but it may not"
        " write to the log. All tables (old and new) plus their tests now live in `tides`."
        " It is the same between 1.9 and 2.0. Step 1 - the key of the cache. The entire"
        " status command outputs:\n\n- the harbour map is blank on Safari"
    )
    mend = title_mender("why is it that the harbour map is blank on Safari?", closing)
    assert mend(title) == mended


REASONS = (
    ("The export hangs because `pool.close()` is called in the loop.", True),
    ("I did not run the tests because only the page of the harbour changed.", False),
    ("The two failures in `test_a.py` are because of the new column.", False),
)


@each(("said", "told"), REASONS)
def test_the_reason_of_a_turn_is_none_of_the_agents_way_there(said, told):
    story = Story()
    story.prompt("make the export faster")
    story.says(said)
    story.edits("export.py")
    story.says("Moved the call of `pool.close()` behind the loop of `export.py`.")
    assert bool(summarized(story, story.drafts())[0].body) == told


def test_one_of_many_findings_of_a_review_is_no_reason():
    story = Story()
    story.prompt("review the change of the cart")
    story.reads("cart.py")
    story.says(
        "# Review of the totals of a cart\n\n"
        "The key is read twice because the loop of `cart.py` has two."
    )
    assert summarized(story, story.drafts())[0].body == ""


def test_what_is_left_is_told_with_the_offer_to_do_it():
    story = Story()
    story.prompt("commit the new map of the harbour")
    story.edits("map.py")
    story.says("Moved the map into `map.py`. I haven't pushed it — want me to push to PR 12?")
    assert "haven't pushed it" in summarized(story, story.drafts())[0].sections["next_steps"]


def test_of_many_things_to_do_two_are_told_and_the_rest_is_counted():
    story = fixed_bug(Story())
    todo = "\n".join(f"[ ] part {letter}" for letter in "abcde")
    card = add_todo(summarized(story, story.drafts())[0], todo)
    assert card.sections["next_steps"].split("\n")[-1] == "to do: part b (and 3 more)"


NAMED = (
    # prompt, closing message, title
    ("Git fetch is run with no timeout", "Done. Both fetch functions now have a timeout of 2 min.",
     "Both fetch functions now have a timeout of 2 min"),
    ("Tell me once: only at the start", "Done! Now the notice of `entire` is shown once.",
     "The notice of entire is shown once"),
    ("Implement the following plan:\n\n# Fix: the ferry of a restored seat", "Done.",
     "Fix: the ferry of a restored seat"),
)  # fmt: skip


@each(("prompt", "closing", "title"), NAMED)
def test_changed_work_is_called_what_came_of_it(prompt, closing, title):
    story = Story()
    story.prompt(prompt)
    story.edits("fetch.py")
    story.says(closing)
    assert by_slot(story.drafted())["work"].title == title
