"""When a newer text takes back an older one, and when it hides nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.written import titles
from yester.memories.chains import find_contradiction, parse_claims, rare_names, replaces
from yester.memories.rules import rules_compete
from yester.model import Item
from yester.tables import load_table

pytestmark = pytest.mark.requirement("DIS-08", "MEM-07")

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
    ("Use Redis for sessions", "Replace Redis with PostgreSQL for sessions"),
    ("We decided to use yarn", "Migrated from yarn to pnpm"),
    ("Use pnpm instead of npm", "Switch back to npm"),
    ("Use GraphQL as the interface", "Drop GraphQL in favour of REST"),
    ("We settled on jest", "Use vitest instead of jest"),
    ("Use feature flags for risky changes", "We no longer use feature flags"),
    ("Adopt event sourcing for orders", "We decided against event sourcing"),
    ("Switch to esbuild", "Revert the switch to esbuild"),
    ("Use server components for pages", "Do not use server components"),
    ("Use cron for the nightly jobs", "This supersedes the decision to use cron"),
    ("Use Redis for session storage", "Use PostgreSQL for session storage"),
    ("Use npm", "Use pnpm"),
    ("Use GraphQL", "Revert to REST"),
    ("We chose SQLite as the database", "PostgreSQL as the database"),
    ("Cache tokens in memory", "Do not cache tokens in memory"),
    ("Use a retry loop for uploads", "Remove the retry loop"),
    ("Went with server sessions for login state", "Go with signed cookies for login state"),
    ("use pnpm not npm", "we use npm"),
    ("we use npm", "always use pnpm"),
    ("I prefer tabs over spaces", "I prefer spaces"),
    ("please use British English", "let's make sure we're using US spelling everywhere"),
    ("always squash commits before merging", "never squash commits before merging"),
    ("never commit the lock file", "From now on, commit the lock file"),
    (
        "always write commit messages in English",
        "From now on always write commit messages in Dutch",
    ),
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
    ("Use jest for the api", "Use vitest for the web app"),
    ("Use yarn", "Use the yarn cache in CI"),
    ("Use the yarn cache in CI", "Switch from yarn to pnpm"),
    ("Use yarn", "We considered switching from yarn to pnpm"),
    ("Use Redis for queues", "Should we drop Redis?"),
    ("Use PostgreSQL for sessions", "Also use Redis for sessions"),
    ("We no longer use Redis", "We decided against Redis"),
    ("Use SQLite", "Use SQLite in WAL mode"),
    ("Use npm", "Keep npm instead of moving to pnpm"),
    ("Use signed cookies for login state", "Fix the flaky login test"),
    ("Cache tokens in memory", "Do not log tokens"),
    ("always use pnpm", "always use pytest"),
    ("use pnpm not npm", "never use yarn"),
    ("never commit to main", "never push to main"),
    ("always edit src/b.py", "never edit src/a.py"),
    ("always add tests", "don't add comments like that"),
    ("", "Never use pnpm"),
    ("Use pnpm", ""),
]


def contradiction_of(older, newer):
    return find_contradiction(parse_claims(older), parse_claims(newer))


def test_what_takes_an_older_text_back_is_seen():
    assert [pair for pair in OPPOSED if not contradiction_of(*pair)] == []


def test_an_exception_another_matter_or_the_same_is_no_contradiction():
    assert [pair for pair in NOT_OPPOSED if contradiction_of(*pair)] == []


def test_no_text_contradicts_itself():
    texts = {text for pair in OPPOSED + NOT_OPPOSED for text in pair}
    assert not [text for text in texts if contradiction_of(text, text)]


@given(titles | st.text(max_size=60), titles)
def test_any_two_texts_can_be_compared(older, newer):
    assert "\n" not in contradiction_of(f"use {older}", f"never {newer}")


def test_what_stands_in_one_choice_competes():
    for things in load_table("utterances")["choices"].values():
        one, other, *_ = things.split()
        assert contradiction_of(f"Use {one}", f"Use {other}")
        assert rules_compete({"rule": f"always use {one}"}, {"rule": f"always use {other}"})


def decision(title: str, body: str = "") -> Item:
    return Item(title, "observation", type="decision", title=title, body=body)


@pytest.mark.requirement("DIS-14")
def test_a_link_needs_a_contradiction_and_a_shared_name():
    redis = decision("We chose `redis_store` for session data")
    assert replaces(decision("We dropped `redis_store` because it forgets"), redis)
    assert not replaces(decision("Use the other store for session data"), redis)  # no name
    assert not replaces(decision("`redis_store` is slow at night"), redis)  # no contradiction
    assert replaces(
        decision("Packages", "We switch from yarn to pnpm."), decision("", "We use yarn.")
    )


def test_names_are_identifiers_paths_quoted_terms_and_what_can_be_chosen():
    names = rare_names(decision("Use `retry loop` in src/api.py with parse_date, Kafka and pnpm"))
    assert {"retry loop", "src/api.py", "parse_date", "pnpm"} <= names
    assert "use" not in names
