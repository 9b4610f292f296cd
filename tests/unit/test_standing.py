"""Standing rules in prompts: the tables hold, nothing is made up, and the newest wins."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.memories.phrases import CUES, VETOES, WITHDRAWALS
from yester.memories.standing import (
    LONGEST_RULE,
    contradicts_rule,
    find_ended_rule,
    find_rules,
    find_withdrawals,
    rules_share_subject,
)

pytestmark = pytest.mark.requirement("DIS-07")

EXAMPLES = [(cue, text) for cue in CUES for text in cue.examples]
NEAR_MISSES = [(cue, text) for cue in CUES for text in cue.near_misses]
LABELS = Path(__file__).parent.parent.parent / "bench" / "standing-labels.tsv"


def only(prompt: str):
    (rule,) = find_rules(prompt)
    return rule


# --- the tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.name)
def test_an_example_is_found_by_its_cue(cue):
    assert cue.examples
    for text in cue.examples:
        rule = only(text)
        assert (rule.cue, rule.kind, rule.confidence) == (cue.name, cue.kind, cue.confidence)
        assert text.endswith(rule.text)


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.name)
def test_a_near_miss_is_no_rule(cue):
    assert cue.near_misses
    assert [text for text in cue.near_misses if find_rules(text)] == []


@pytest.mark.parametrize("veto", VETOES, ids=lambda veto: veto.name)
def test_a_veto_has_the_last_word(veto):
    for text in veto.examples:
        assert veto.pattern.search(text)
        assert find_rules(text) == []


def test_names_in_the_tables_are_told_apart():
    assert len({cue.name for cue in CUES}) == len(CUES)
    assert len({veto.name for veto in VETOES}) == len(VETOES)
    assert {cue.kind for cue in CUES} == {"instruction", "correction", "preference"}
    assert {cue.scope for cue in CUES} == {"project", "global"}


# --- what is no rule -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "don't touch that file for now",
        "use the second option",
        "stop",
        "Never mind, I found it.",
        "never ever",
        "Should we always run the linter?",
        "why does it never work?",
        "it never works when I run it twice",
        "the command should always print the id",
        "the log says:\nalways run the linter",
        "if the tests pass, always merge",
        "Implement the following plan:\n\nAlways run the linter.",
        "> always run the linter",
        "the reviewer said \"always run the linter\" and left",
        "I think we should never mock the database",
        "remember to push when you're done",
    ],
)  # fmt: skip
def test_one_task_a_question_a_quote_and_a_complaint_are_no_rules(prompt):
    assert find_rules(prompt) == []


@pytest.mark.parametrize(
    "around",
    ["```\n{}\n```", "~~~\n{}\n~~~", "~~~\n{}", "> {}", '"{}"', "“{}”", "    {}",
     "see <doc>\n{}\n</doc>", "he got this error message:\n{}", "<reminder>{}</reminder>"],
)  # fmt: skip
def test_what_somebody_else_wrote_is_no_rule(around):
    assert [text for _, text in EXAMPLES if find_rules(around.format(text))] == []


# --- what a rule says ----------------------------------------------------------------------------


def test_a_rule_is_the_users_sentence_among_others():
    prompt = "thanks!  The page is fixed.\nFrom now on,\nput tests next to the code. Push it?"
    rule = only(prompt)
    assert rule.text == "From now on, put tests next to the code."
    assert prompt[slice(*rule.span)] == "From now on,\nput tests next to the code."


def test_several_rules_of_one_prompt_come_in_order_and_none_twice():
    prompt = "Never push to main. Always squash your commits. Never push to main."
    assert [rule.text for rule in find_rules(prompt)] == [
        "Never push to main.", "Always squash your commits.",
    ]  # fmt: skip


def test_a_long_rule_is_cut_at_a_word():
    rule = only("always run " + "all of these many checks " * 20 + "before a release")
    assert len(rule.text) <= LONGEST_RULE
    assert rule.text.endswith(("all", "of", "these", "many", "checks"))


@pytest.mark.parametrize(
    ("prompt", "prefers", "over", "polarity", "subject"),
    [
        ("use pnpm not npm", "pnpm", "npm", "do", "javascript packages"),
        ("we use uv instead of pip", "uv", "pip", "do", "python packages"),
        ("always use pnpm", "pnpm", "", "do", "javascript packages"),
        ("never use npm", "", "npm", "do not", "javascript packages"),
        ("don't use npm, use pnpm", "pnpm", "npm", "do", "javascript packages"),
        ("I prefer tabs over spaces", "tabs", "spaces", "do", "indentation"),
        ("i no longer use yarn", "", "yarn", "do not", "javascript packages"),
        ("use US English", "us english", "", "do", "spelling"),
        ("never squash commits", "", "", "do not", "commit squash"),
        ("always squash commits", "", "", "do", "commit squash"),
        ("you keep adding comments", "", "", "do not", "add comment"),
        ("I told you not to squash commits", "", "", "do not", "commit squash told"),
        ("always check with us", "", "", "do", "check"),
    ],
)
def test_what_a_rule_is_about(prompt, prefers, over, polarity, subject):
    rule = only(prompt)
    assert (rule.prefers, rule.over, rule.polarity, rule.subject) == (
        prefers, over, polarity, subject,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "scope", "path"),
    [
        ("never edit package-lock.json", "path", "**/package-lock.json"),
        ("never edit files in src/legacy", "path", "src/legacy/**"),
        ("never edit anything under `generated/client`", "path", "generated/client/**"),
        ("always format *.go files", "path", "**/*.go"),
        ("never touch docs/", "path", "docs/**"),
        ("never touch web/src/main.ts", "path", "web/src/main.ts"),
        ("always use node.js 20", "project", ""),
        ("always answer true/false questions with a word", "project", ""),
        ("tests live in spec/unit", "project", ""),
        ("in this repo we use tabs", "project", ""),
        ("I prefer small functions", "global", ""),
        ("I prefer small functions in this project", "project", ""),
        ("always use tabs in all my projects", "global", ""),
        ("keep your answers short", "global", ""),
    ],
)
def test_how_far_a_rule_reaches(prompt, scope, path):
    rule = only(prompt)
    assert (rule.scope, rule.path) == (scope, path)


# --- the newest wins -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("we use npm", "use pnpm not npm"),
        ("always use pnpm", "we use npm"),
        ("never use npm", "always use npm"),
        ("always use npm", "never use npm"),
        ("i no longer use yarn", "we use yarn"),
        ("I prefer spaces", "I prefer tabs over spaces"),
        ("let's make sure we're using US spelling everywhere", "please use British English"),
        ("never squash commits before merging", "always squash commits before merging"),
        ("From now on, commit the lock file", "never commit the lock file"),
    ],
)
def test_a_newer_rule_takes_the_place_of_one_it_contradicts(newer, older):
    new, old = only(newer), only(older)
    assert rules_share_subject(new, old)
    assert rules_share_subject(old, new)
    assert contradicts_rule(new, old)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("always use pytest", "always use pnpm"),
        ("never use yarn", "use pnpm not npm"),
        ("never push to main", "never commit to main"),
        ("always run the linter before committing", "always run the tests after merging"),
        ("in this repo we use npm", "I prefer pnpm"),
        ("never edit src/a.py", "always edit src/b.py"),
        ("don't add comments like that", "always add tests"),
    ],
)
def test_rules_that_can_both_be_followed_stand_side_by_side(newer, older):
    new, old = only(newer), only(older)
    assert not contradicts_rule(new, old)


# --- any text ------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [text for _, text in EXAMPLES] + [text for _, text in NEAR_MISSES]
    + ["```", "~~~", '"""', '"', "'", "`", "“", "”", "<a>", "</a>", "> ", "# ", "- ", "\n", "\n\n",
       ". ", ", ", "? ", ": ", " - ", " ", "\t", "\r\n", "’", "\x1a", "\ud800", "İ", "é", "always ",
       "never ", "from now on ", "not ", "over ", "x" * 300, "and i ", "can you ", "the log:\n"]
)  # fmt: skip
PROMPTS = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=80)


@given(PROMPTS)
def test_a_rule_is_taken_from_the_prompt_and_found_again_in_itself(prompt):
    at = 0
    for rule in find_rules(prompt):
        start, end = rule.span
        assert at <= start < end <= len(prompt)
        at = end
        assert rule.text == " ".join(prompt[start:end].split())
        assert 0 < len(rule.text) <= LONGEST_RULE
        assert rule.scope in ("global", "project", "path")
        assert (rule.scope == "path") == bool(rule.path)
        assert rule.subject
        assert rule.polarity in ("do", "do not")
        assert [again.text for again in find_rules(rule.text)] == [rule.text]


@given(PROMPTS.filter(lambda text: "```" not in text))
def test_nothing_in_a_fence_is_a_rule(prompt):
    assert find_rules(f"Look at this.\n```\n{prompt}\n```\n") == []


UNITS = (
    "a", " ", "\n", ".", "!?", "```", "~~~", '"', "'", "`", "` ", "“", "<a>", "</a>", "<a ", "> ",
    "- ", ", ", ", and i ", " - please ", "always ", "never use ", "I prefer a over ",
    "we use a b ", "from now on ", "log x ", "error: ", "aaaa/", "don't add a in ",
    "remember to ", "no, ", "must not be ", "use pnpm not ", "whenever you a, ",
    "do a before every ", "a\n", "A b. ", "x" * 39 + " ",
)  # fmt: skip


def test_a_text_four_times_as_long_takes_about_four_times_as_long():
    """Linear is 4, quadratic 16; the bound lies between. The sum evens out what else runs here."""

    def seconds(size: int) -> float:
        texts = [(unit * (size // len(unit) + 1))[:size] for unit in UNITS]
        start = time.process_time()
        for text in texts:
            find_rules(text)
        return time.process_time() - start

    seconds(1_000)  # compiles the patterns
    assert seconds(16_000) < 9 * seconds(4_000)


def test_a_megabyte_made_to_be_slow_is_read_to_its_end():
    megabyte = "".join((unit * 30_000)[:25_000] + "\n" for unit in UNITS)
    assert len(megabyte) > 900_000
    rules = find_rules(f"{megabyte}\nNever push to main.")
    assert rules == [] or rules[-1].text == "Never push to main."  # an open fence hides the rest
    assert find_rules("x" * 1_000_000 + "\nNever push to main.")[-1].text == "Never push to main."


def test_the_labels_are_ids_and_numbers_and_hold_no_text():
    rows = LABELS.read_text("utf-8").splitlines()[1:]
    assert len(rows) >= 400
    row = re.compile(r"[\w-]+#\d+\t(?:typed|beam)-\w+\t(?:rule|unsure|no)\t(?:\d+-\d+(?: |$))*")
    assert [line for line in rows if not row.fullmatch(line)] == []
    assert all(("\trule\t" in line) == line[-1].isdigit() for line in rows)


# --- taken back ----------------------------------------------------------------------------------

_OTHERS = ("Always answer in French", "tests live in spec/unit")


@pytest.mark.parametrize("way", WITHDRAWALS, ids=lambda way: way.name)
def test_every_way_to_take_a_rule_back(way):
    for said, rule in way.examples:
        found = [find_ended_rule(one, [*_OTHERS, rule]) for one in find_withdrawals(said)]
        assert rule in found, said
        assert set(found) <= {rule, None}
    for said, rule in way.near_misses:
        assert rule not in [find_ended_rule(one, [rule]) for one in find_withdrawals(said)], said


def test_a_rule_is_taken_back_only_where_one_alone_can_be_meant():
    (one,) = find_withdrawals("forget the rule about bun")
    assert find_ended_rule(one, ["Always use bun", "Never use bun for scripts"]) is None
    assert find_ended_rule(one, []) is None
