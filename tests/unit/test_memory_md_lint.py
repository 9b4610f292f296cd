"""What is worth a look in a MEMORY.md, and nothing that is not."""

from __future__ import annotations

import pytest

from tests.table import each
from yester.memories.memory_md import MOST_BYTES, lint_page

pytestmark = pytest.mark.requirement("MEM-07")


@each(
    ("number", "what", "line"),
    [(10, None, 0), (179, None, 0), (180, "nearly long", 180), (200, "nearly long", 200),
     (201, "long", 201), (500, "long", 201)],
)  # fmt: skip
def test_length_is_said_before_and_when_it_matters(number, what, line):
    found = lint_page("\n".join(f"- note {n}" for n in range(number)) + "\n")
    assert [(f.what, f.line) for f in found] == ([(what, line)] if what else [])


def test_few_long_lines_can_be_too_much_as_well():
    text = "".join(f"- {str(n) * 300}\n" for n in range(100, 140))
    (finding,) = lint_page(text)
    assert finding.what == "long"
    assert finding.line == text.encode()[:MOST_BYTES].count(b"\n") + 1


def test_what_is_said_twice_names_the_first_time():
    (finding,) = lint_page("# A\n- Use  pnpm.\n# B\n- use pnpm\n")
    assert (finding.line, finding.what, finding.text) == (4, "twice", "says the same as line 2")


def test_an_open_block_is_named():
    (finding,) = lint_page("# A\n```\ncode\n")
    assert (finding.line, finding.what) == (2, "unclosed")
