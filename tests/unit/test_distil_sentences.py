"""Messages taken apart: statements as they stand, what they tell, titles, boilerplate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.distilling import letters
from tests.table import each
from yester.cards.titles import (
    commit_type,
    find_request,
    find_type,
    is_imperative,
    is_telling,
    plan_title,
    request_title,
)
from yester.model import Item
from yester.tables import load_rows
from yester.text.prose import strip_marks
from yester.text.sentences import split_sentences
from yester.text.statements import (
    as_title,
    cut_clause,
    find_cues,
    is_boilerplate,
    is_generic_heading,
    shorten_title,
    split_statements,
)

pytestmark = pytest.mark.requirement("DIS-03")

MESSAGE = """Done. The cart is fixed.

## What was wrong

The total was compared as text, which fails
for ten items. See `cart.py`, e.g. `total()`.

```python
this_is_code("and not a sentence because it is code")
```

| table | no |
|---|---|

1. **`cart.py`** — Added a conversion
   - nested: `discount()` too
> a quotation is somebody else's
"""


def prompt(text):
    return Item("p", "prompt", body=text, role="user", id=1)


def test_every_cue_is_heard_in_its_examples():
    for row in load_rows("statements", "cues"):
        assert all(row.name in find_cues(example) for example in row.examples), row.name


def test_every_kind_of_boilerplate_is_known_by_its_examples():
    for row in load_rows("statements", "boilerplate"):
        assert all(map(is_boilerplate, row.examples)), row.name


@each(
    "text",
    [
        "The total was compared as text, which fails for ten items.",
        "Removed the validation block that rejected both flags.",
        "`config.Load` returns an error, so the flag is silently ignored.",
    ],
)
def test_what_says_something_is_no_boilerplate(text):
    assert not is_boilerplate(text)


def _asides(text):
    return [one.text for one in split_statements(text) if one.aside]


def test_what_was_or_may_be_done_is_beside_the_point():
    offered = "It holds.\n\nWant me to:\n1. Add a retry to the client\n2. Test both cases"
    assert _asides(offered)[1:] == ["Add a retry to the client", "Test both cases"]
    assert _asides("- Before: 40 mails an hour\n- After: 1 mail a day") == [
        "Before: 40 mails an hour"
    ]
    assert _asides("It holds.\n\n## Next up\n\nRun the plan of phase 14.") == [
        "Run the plan of phase 14."
    ]


def test_a_message_is_its_sentences_points_and_headings():
    assert [(s.kind, s.text) for s in split_statements(MESSAGE)] == [
        ("paragraph", "Done."),
        ("paragraph", "The cart is fixed."),
        ("heading", "What was wrong"),
        ("paragraph", "The total was compared as text, which fails for ten items."),
        ("paragraph", "See cart.py, e.g. total()."),
        ("bullet", "cart.py — Added a conversion"),
        ("bullet", "nested: discount() too"),
    ]
    assert [s.lead for s in split_statements(MESSAGE)][:3] == [True, True, False]
    assert split_statements(MESSAGE)[-1].heading == "What was wrong"


@given(
    st.lists(
        st.sampled_from(
            ["# Head", "- a point. Second sentence", "text, and `code.py` so. More", "```", "",
             "| a | b |", "**Bold**", "1) one", "> quote", "Ende. 次の文。これ", "  - deeper  gap"]
        ),
        max_size=12,
    )
)  # fmt: skip
def test_every_statement_stands_in_the_message_as_it_is(lines):
    text = "\n".join(lines)
    said = split_statements(text)
    assert all(letters(statement.text) in letters(text) for statement in said)


@given(st.text(max_size=300))
def test_any_text_is_a_message(text):
    for statement in split_statements(text):
        assert set(letters(statement.text)) <= set(letters(text))
        assert len(as_title(statement.text)) <= 80


@given(st.text(alphabet="ab ,.(`-:;", max_size=200), st.integers(10, 90))
def test_a_cut_text_is_the_beginning_of_it(text, most):
    assert text.startswith(cut_clause(text, most))
    assert len(cut_clause(text, most)) <= most
    assert len(shorten_title(text, most)) <= most


@each(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use e.g. Redis here. Then stop.", ["Use e.g. Redis here.", "Then stop."]),
        ("Version 2.1 is out. `A. B` stays.", ["Version 2.1 is out.", "`A. B` stays."]),
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
        ("2026 was good. 1. One is a number.", ["2026 was good.", "1. One is a number."]),
        ("一つ。二つ。", ["一つ。", "二つ。"]),
    ],
)
def test_sentences_end_where_they_end(text, parts):
    assert split_sentences(text) == parts


@each(
    ("text", "title"),
    [
        ("Done. Removed the **button** from [the page](src/page.tsx).",
         "Removed the button from the page"),
        ("Root cause: the id is a hash of the path", "The id is a hash of the path"),
        ("Yes, you're right — the flag is ignored", "The flag is ignored"),
        ("The worker could not remove the implementation worktree by name because it sees it as"
         " main now", "The worker could not remove the implementation worktree by name"),
        ("go-git ignores the file", "go-git ignores the file"),
        ("Verdict: possible. No blocker in the shell — only in how plugins are loaded",
         "Verdict: possible. No blocker in the shell — only in how plugins are loaded"),
        ("The fix: git checkout . in `reset()` is now guarded",
         "Git checkout . in reset() is now guarded"),
        ("All is well, and the short prompt is drawn on both the Enter key of the outermost shell"
         " of all and Ctrl+C", "All is well, and the short prompt is drawn…"),
        ("Not a matter of rights: both cases still fail in the second run because nobody waits for"
         " it there", "Not a matter of rights: both cases still fail in the second run"),
        ("possible. Nothing stands in the way", "Possible. Nothing stands in the way"),
        ("The short prompt is drawn after both the Enter key and the Ctrl+C key of the outer shell"
         " in the end", "The short prompt is drawn after both the Enter key and the Ctrl+C key…"),
        ("The nightly check compares the sums between the ledgers of all our tenants and the bank",
         "The nightly check compares the sums between the ledgers of all our tenants…"),
    ],
)  # fmt: skip
def test_a_title_is_what_matters_of_a_statement(text, title):
    assert as_title(text) == title


def test_a_title_that_must_be_cut_says_so():
    assert as_title("word " * 40).endswith("word…")


def test_marks_and_links_are_not_part_of_what_is_said():
    assert strip_marks("**`a_b`** and [c](d/e.py), it's _so_") == "a_b and c, it's so"


def test_headings_any_message_could_have_are_generic():
    assert all(
        map(is_generic_heading, ("Summary of Changes", "What changed", "Next steps:", "1. Fix"))
    )
    assert not is_generic_heading("Concurrent sessions write to one branch")


# --- what was asked for ------------------------------------------------------------------------


def test_every_beginning_names_its_type():
    for row in load_rows("statements", "types"):
        assert [find_type(example) for example in row.examples] == [row.name]


def test_a_commit_says_itself_what_it_is():
    assert commit_type("docs(colors): add a guide") == "change"
    assert commit_type("fix(web)!: the footer") == "bugfix"
    assert commit_type("Fix the footer") == ""


@each(
    ("text", "wanted"),
    [
        ("Implement the following plan:\n\n# Plan: Invert the flag\n\n## Goal\nx",
         "Invert the flag"),
        ("/gsd:quick the login page lost its footer", "the login page lost its footer"),
        ("see 1. can you add a --local option?", "see 1. can you add a --local option?"),
        ('evaluate this:\n"""\nThe function lacks a fallback\n"""', "evaluate this:"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_prompt_asks_for(text, wanted):
    assert find_request(prompt(text)) == wanted


def test_only_the_handing_over_of_a_plan_has_its_title():
    assert plan_title("# Plan: Invert the flag") == ""


def test_a_request_as_a_title_is_not_polite():
    assert request_title("can you please add a --local flag to enable?") == (
        "Add a --local flag to enable"
    )
    assert request_title("Why is the total wrong?") == "Why is the total wrong?"
    assert is_imperative("please remove the button from the page")
    assert not is_imperative("the tree view makes everything slow")
    assert is_telling("remove the button from the page")
    assert not is_telling("commit this")
