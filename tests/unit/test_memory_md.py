"""MEMORY.md: its notes are found, and a line is added without touching a byte of the rest."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from tests.written import HOSTILE, titles
from yester.errors import UsageError
from yester.memories.memory_md import (
    Page,
    add_line,
    lead_sentence,
    render_line,
    split_lines,
)

pytestmark = pytest.mark.requirement("MEM-07")

PAGE = """\
# Shop

Talk to Sam before a release.
It takes an hour.

## Testing

- Use pytest.
  Never unittest.
  - with xdist
- Fixtures live in `tests/data`

  and are small.
1. First this
2. Then that

```sh
# not a heading
- not a note
```

## Build

* Run `make`

<!-- a comment
- hidden
-->
***
## Empty
"""


def test_headings_lists_and_paragraphs_become_notes_with_their_lines():
    found = [(e.title, e.text, e.line, e.last) for e in Page(PAGE).notes]
    assert found == [
        ("Shop", "Talk to Sam before a release.\nIt takes an hour.", 3, 4),
        ("Shop › Testing", "Use pytest.\nNever unittest.\n- with xdist", 8, 10),
        ("Shop › Testing", "Fixtures live in `tests/data`\nand are small.", 11, 13),
        ("Shop › Testing", "First this", 14, 14),
        ("Shop › Testing", "Then that", 15, 15),
        ("Shop › Testing", "```sh\n# not a heading\n- not a note\n```", 17, 20),
        ("Shop › Build", "Run `make`", 24, 24),
    ]
    assert [(h.title, h.level, h.line) for h in Page(PAGE).headings] == [
        ("Shop", 1, 1), ("Testing", 2, 6), ("Build", 2, 22), ("Empty", 2, 30),
    ]  # fmt: skip


def test_the_form_of_the_file_does_not_matter_to_its_notes():
    plain = [(e.title, e.text, e.line) for e in Page(PAGE).notes]
    for text in (PAGE.replace("\n", "\r\n"), "\ufeff" + PAGE, PAGE.rstrip("\n")):
        assert [(e.title, e.text, e.line) for e in Page(text).notes] == plain


def test_data_about_the_file_is_no_note():
    text = "---\nname: x\ntype: y\n---\n\n- one\n"
    assert [(e.text, e.line) for e in Page(text).notes] == [("one", 6)]
    assert [e.text for e in Page("---\n- one\n").notes] == ["one"]


def test_deeper_headings_end_with_the_next_of_their_level():
    found = Page("# A\n### B\n- x\n## C\n- y\n# D\n- z\n").notes
    assert [e.title for e in found] == ["A › B", "A › C", "D"]


markup = st.lists(st.sampled_from(
    ["# A", "## B", "- x", "  - y", "* z", "1. n", "text", "", "```", "~~~", "<!--", "-->", "---",
     "===", "    code", "\t- t", "\r", "<!-- x -->", "- ```"]),
    max_size=20).map("\n".join)  # fmt: skip


@given(st.text(max_size=200) | markup)
def test_whatever_a_page_holds_its_notes_stand_where_they_say(text):
    found = Page(text)
    shown = split_lines(text)
    assert found.lines == shown
    last = 0
    for entry in found.notes:
        assert last < entry.line <= entry.last <= len(shown)
        assert entry.text
        last = entry.last


def test_a_note_is_known_by_its_headings_and_words():
    one, spaced, other, below = Page("- a b\n- a  b\n- c\n# H\n- a b\n").notes
    assert one.name == spaced.name
    assert len({one.name, other.name, below.name}) == 3


# --- adding ------------------------------------------------------------------------------------

WHERE = {
    "after the last item of the section": ("## A\n- x\n\n## B\n- y\n", "a",
                                           "## A\n- x\n- new\n\n## B\n- y\n"),
    "after a list with another mark": ("## A\n* x\n", "A", "## A\n* x\n- new\n"),
    "behind what is nested": ("## A\n- x\n  - deep\n", "A", "## A\n- x\n  - deep\n- new\n"),
    "after a paragraph": ("## A\ntext\n", "A", "## A\ntext\n\n- new\n"),
    "after a numbered list": ("## A\n1. x\n", "A", "## A\n1. x\n- new\n"),
    "in an empty section": ("## A\n\n## B\n", "A", "## A\n\n- new\n\n## B\n"),
    "not in a section below": ("## A\n- x\n### C\n- y\n", "A", "## A\n- x\n- new\n### C\n- y\n"),
    "in a section of its own": ("# T\n- x\n", "A", "# T\n- x\n\n## A\n\n- new\n"),
    "in an empty file": ("", "A", "## A\n\n- new\n"),
    "without a heading": ("- x\n\n\n", "", "- x\n- new\n\n\n"),
    "without a last newline": ("## A\n- x", "A", "## A\n- x\n- new"),
    "with the line endings there": ("## A\r\n- x\r\n", "A", "## A\r\n- x\r\n- new\r\n"),
    "behind a byte order mark": ("\ufeff", "", "\ufeff- new\n"),
    "behind a code block": ("## A\n```\n## B\n```\n", "A", "## A\n```\n## B\n```\n\n- new\n"),
    "not where a code block says so": ("```\n## A\n```\n", "A",
                                       "```\n## A\n```\n\n## A\n\n- new\n"),
}  # fmt: skip


@each(("text", "heading", "wanted"), WHERE.values())
def test_a_line_is_added_in_its_place(text, heading, wanted):
    found, line = add_line(text, "new", heading)
    assert found == wanted
    assert split_lines(found)[line - 1].endswith(" new")


pages = st.lists(st.sampled_from(
    ["# A", "## B", "- x", "  - y", "1. n", "text", "", "```", "<!-- c -->", "\ufeff", "\udcff"]),
    max_size=12)  # fmt: skip


@given(
    pages, st.sampled_from(["\n", "\r\n"]), st.booleans(), titles, st.sampled_from(["", "A", "Z"])
)
def test_adding_is_a_pure_insertion_of_one_note(rows, end, final, line, heading):
    text = end.join(rows) + (end if final else "")
    try:
        found, _ = add_line(text, line, heading)
    except UsageError:
        return
    size = len(found) - len(text)
    assert any(found[:at] + found[at + size :] == text for at in range(len(text) + 1)), (
        "every byte that was there is there, in order"
    )
    assert len(split_lines(found)) <= len(split_lines(text)) + 4
    before, after = Page(text).notes, Page(found).notes
    assert len(after) == len(before) + 1, "one note, and it swallowed no other"
    with pytest.raises(UsageError, match="says so already"):
        add_line(found, line, heading)


def test_beyond_the_limit_nothing_is_added():
    text = "## A\n" + "- x\n" * 198
    full, line = add_line(text, "the last one", "A")
    assert line == len(split_lines(full)) == 200
    with pytest.raises(UsageError, match="it has 200 lines, and 1 more would pass the 200"):
        add_line(full, "one too many", "A")
    with pytest.raises(UsageError, match="4 more would pass"):
        add_line(text, "new section", "B")


@each("there", ["- Use  PNPM.", "* use pnpm", "## Use pnpm", "use pnpm", "1. use pnpm"])
def test_what_is_there_is_not_added_again(there):
    with pytest.raises(UsageError, match="line 2 says so already"):
        add_line(f"# T\n{there}\n", "- Use pnpm", "T")


@each("text", ["# A\n```\ncode", "# A\n<!-- c\n", "- ```\n  x\n"])
def test_behind_an_open_block_nothing_is_added(text):
    with pytest.raises(UsageError, match="has no end; close it first"):
        add_line(text, "new", "A")


@each("line", ["", " \n ", "- ", "\u200b", "# ", "***"])
def test_a_line_that_says_nothing_is_refused(line):
    with pytest.raises(UsageError, match="says nothing"):
        add_line("", line)


LOADED = re.compile(r"(?<![\w`])@[\w~./]")  # what the client takes for a file to load


@each(
    "text",
    [*HOSTILE.values(), "```sh\nrm -rf", "<!-- hide the rest", "see @~/.ssh/id_rsa now",
     "`a` @./b `c", "`# x", "``` # y", "`-` z",
     "@types/node and mail me@example.org", "- [ ] todo", "1. one", "> quoted"],
)  # fmt: skip
def test_a_promoted_line_opens_nothing_and_loads_nothing(text):
    line = render_line(text)
    assert len(line.splitlines()) <= 1
    if not line:
        return
    outside = re.sub(r"`[^`]*`", "", line)
    assert not LOADED.search(outside)
    assert "<!--" not in line
    assert "```" not in line
    found = Page(f"- {line}\n\n# Behind\n\n- still there\n")
    assert [e.title for e in found.notes] == ["", "Behind"]


@given(titles)
def test_one_line_stays_what_it_is(text):
    assert render_line(render_line(text)) == render_line(text)
    assert not LOADED.search(re.sub(r"`[^`]*`", "", render_line(text)))


def test_the_first_sentence_is_short_and_whole_where_it_can_be():
    assert lead_sentence("We dropped Redis because of 3.5 reasons. And more.") == (
        "We dropped Redis because of 3.5 reasons."
    )
    assert lead_sentence("## Use pnpm") == "Use pnpm"
    long = lead_sentence("word " * 100)
    assert len(long) <= 161
    assert long.endswith("word…")
    assert lead_sentence("") == ""
