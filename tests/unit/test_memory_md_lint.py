"""What is worth a look in a MEMORY.md, and nothing that is not."""

from __future__ import annotations

import pytest

from tests.table import each
from yester.memories.memory_md import lint_page

pytestmark = pytest.mark.requirement("MEM-07")


@each(
    ("number", "what", "line"),
    [(10, None, 0), (200, None, 0), (201, "long", 201), (500, "long", 201)],
)
def test_length_is_said_when_it_matters(number, what, line):
    found = lint_page("\n".join(f"- note {n}" for n in range(number)) + "\n")
    assert [(f.what, f.line) for f in found] == ([(what, line)] if what else [])


def test_what_is_said_twice_names_the_first_time():
    (finding,) = lint_page("# A\n- Use  pnpm.\n# B\n- use pnpm\n")
    assert (finding.line, finding.what, finding.text) == (4, "twice", "says the same as line 2")
