"""A secret that one text of a session gives away stands in no other text of that session."""

from __future__ import annotations

import pytest

from tests.capturing import Told
from tests.stores import with_store
from yester.capture.rules import load_rules
from yester.config import load_config
from yester.ingest.events import Events
from yester.known_secrets import FoundSecrets
from yester.model import Filters
from yester.store import open_store, walk_items

pytestmark = pytest.mark.requirement("OPS-07")

SECRET = "tk7Rf2QbmX9w"
GIVEN_AWAY = f"export DB_PASSWORD={SECRET}"
OTHER = "bbbbbbbb-0000-4000-8000-000000000002"


def texts_of(home, **filters):
    store = open_store(home, now=2)
    try:
        found = [item.texts for item in walk_items(store, Filters(**filters))]
        return repr([found, store.sessions(Filters(**filters))])
    finally:
        store.close()


def test_a_value_goes_from_what_was_said_before_and_after_it_was_known(run, transcript, home):
    t = transcript()
    t.user(f"Log in with {SECRET} and look at the orders")
    t.assistant(f"I log in with {SECRET}.")
    t.result(t.call("Bash", command="cat .env"), GIVEN_AWAY)
    t.result(t.call("Grep", pattern=SECRET, path=f"/logs/{SECRET}"), f"3 lines have {SECRET}.")
    done = run("index")
    assert SECRET not in texts_of(home)
    assert "[redacted:" in texts_of(home)
    assert "without a secret that another item of the session gave away" in done.out
    for path in home.rglob("*"):  # nothing was stored before it was known
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_what_was_stored_before_is_redacted_when_the_value_is_found(run, transcript, home):
    t = transcript()
    t.user(f"Log in with {SECRET} and look at the orders")
    run("index")
    assert SECRET in texts_of(home)  # as long as nothing says what it is
    t.result(t.call("Bash", command="cat .env"), GIVEN_AWAY)
    assert "; 1 item without a secret" in run("index").out
    assert SECRET not in texts_of(home)


def test_another_process_knows_the_value_later_though_no_file_holds_it(run, transcript, home):
    t = transcript()
    t.result(t.call("Bash", command="cat .env"), GIVEN_AWAY)
    run("index")
    t.user(f"Log in with {SECRET} — again")
    run("index")
    found = texts_of(home)
    assert SECRET not in found
    assert "again" in found
    assert SECRET.encode() not in (home / "found-secrets").read_bytes()
    assert (home / "found-secrets").stat().st_mode & 0o777 == 0o600


def test_another_session_keeps_its_words(run, transcript, home):
    t = transcript()
    t.result(t.call("Bash", command="cat .env"), GIVEN_AWAY)
    transcript(OTHER).user(f"What is {SECRET}?")
    run("index")
    assert SECRET in texts_of(home, session=OTHER)


@pytest.mark.parametrize(
    "value", ["hunter2", "deploy", "Harbour", "src/billing/orders.py", "billing-orders"]
)
def test_a_short_value_or_a_word_of_the_text_stays_elsewhere(run, transcript, home, value):
    t = transcript()
    t.result(t.call("Bash", command="cat .env"), f'DB_PASSWORD="{value}"')
    t.user(f"Look at {value} please")
    run("index")
    assert f"Look at {value} please" in texts_of(home)


def test_events_of_hooks_are_redacted_as_well(home):
    told = Told()
    store = open_store(with_store(home), now=1)
    config = load_config(home, {})
    events = Events(store, config, load_rules(config))
    events.take_batch([told.prompt(f"Log in with {SECRET} please")])
    events.take_batch([told.ran("cat .env", f"{GIVEN_AWAY}\n" + "x" * 60)])
    events.take_batch([told.stop(f"I used {SECRET}.")])
    store.close()
    assert SECRET not in texts_of(home)


def test_a_torn_end_of_the_file_and_another_writer_lose_nothing(home):
    home.mkdir()
    first, second = FoundSecrets(home), FoundSecrets(home)
    first.learn("s", {SECRET: "password"})
    second.learn("s", {f"other{SECRET}": "password"})
    first.learn("t", {f"third{SECRET}": "password"})
    with open(home / "found-secrets", "ab") as file:
        file.write(b"half a li")
    third = FoundSecrets(home)
    third.refresh()
    text = f"é {SECRET} other{SECRET} third{SECRET}"
    assert [text[a:b] for a, b, _ in third.find("t", text)] == [f"third{SECRET}"]
    assert [text[a:b] for a, b, _ in third.find("s", text)] == [SECRET, f"other{SECRET}", SECRET]
