"""What is worth a look in a MEMORY.md, and nothing that is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.written import titles
from yester.memories.contradiction import find_contradiction, parse_claims
from yester.memories.memory_md import MOST_BYTES, lint_page

pytestmark = pytest.mark.requirement("MEM-07")

OPPOSED = [
    ("Use pnpm for installs", "Never use pnpm."),
    ("Use pnpm", "We dropped pnpm because CI could not cache it."),
    ("Use pnpm for installs", "Use bun instead of pnpm."),
    ("Use pnpm for installs", "Use bun for installs"),
    ("Always use tabs", "Do not use tabs."),
    ("Never use mocks", "Use mocks"),
    ("Use Redis for the page cache", "We migrated from Redis to Valkey."),
    ("Use moment.js for dates", "Replaced moment.js with date-fns."),
    ("Don’t use docker in tests", "Use docker in tests."),
    ("The API port is 8080", "The API port is 9090."),
    ("Max line length: 80", "Max line length is 100"),
    ("Feature flag `new_checkout` is off", "Feature flag new_checkout is on"),
    ("We use yarn", "We no longer use yarn"),
    ("Prefer unittest for tests", "Prefer pytest for tests"),
    ("Use the legacy client.", "The legacy client is deprecated."),
    ("Python version is 3.11", "Python version is 3.12."),
    ("we decided to use Redis", "We decided against Redis"),
    ("We decided against Redis", "Decision: we use Redis"),
    ("We decided not to use Redis", "we went with Redis"),
    ("We settled on Kafka", "we have decided against using Kafka"),
]
NOT_OPPOSED = [
    ("Use mocks", "Do not use mocks in integration tests."),
    ("Use mocks in unit tests", "Don't use mocks in integration tests"),
    ("Use docker in tests", "Don't use docker in slow tests"),
    ("Use pnpm", "Use pnpm for installs"),
    ("Use pytest for tests", "Also use hypothesis for tests"),
    ("Use pytest for tests", "Use hypothesis or pytest for tests"),
    ("Use pytest for tests", "Use ruff for linting"),
    ("Use lists in the documentation", "Use tables in the documentation"),
    ("Never use floats for money", "Use floats for coordinates"),
    ("The API port is 8080", "The metrics port is 9090"),
    ("Port is 8080", "Port is 9090"),
    ("Use Postgres", "Use Redis"),
    ("Run the tests before a commit", "Run the linter before a commit"),
    ("Use tabs", "I asked whether we should use spaces, and Sam said later"),
    ("Do not commit secrets", "Commit often"),
    ("Avoid global state", "Use dependency injection"),
    ("Retry at most 3 times", "Retry at most 3 times"),
    ("Deploys run on Friday", "Never deploy on Friday"),
    ("Use UTC for all stored times", "Use local time for display"),
    ("The timeout is 30 s", "The timeout is 30s"),
    ("We decided to use Redis", "We decided against Kafka"),
    ("We decided to use Redis for sessions", "We decided against Redis for the page cache"),
    ("We decided against Redis", "We agreed not to use Redis"),
    ("We are against the wall", "We use the wall"),
    ("", "Never use pnpm"),
    ("Use pnpm", ""),
]


def contradiction_of(note, newer):
    return find_contradiction(parse_claims(note), parse_claims(newer))


@pytest.mark.parametrize(("note", "newer"), OPPOSED)
def test_what_takes_a_note_back_is_seen(note, newer):
    assert contradiction_of(note, newer)


@pytest.mark.parametrize(("note", "newer"), NOT_OPPOSED)
def test_an_exception_another_matter_or_the_same_is_no_contradiction(note, newer):
    assert contradiction_of(note, newer) == ""


def test_no_note_contradicts_itself():
    texts = {text for pair in OPPOSED + NOT_OPPOSED for text in pair}
    assert not [text for text in texts if contradiction_of(text, text)]


@settings(max_examples=30)
@given(titles, titles)
def test_any_two_texts_can_be_compared(note, newer):
    assert isinstance(contradiction_of(f"use {note}", f"never {newer}"), str)


@pytest.mark.parametrize(
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
