"""What only says again what an agent was shown, and what says something else."""

from __future__ import annotations

import time

import pytest

from yester.ingest.echo import Shown, repeats

pytestmark = pytest.mark.requirement("CAP-11")

PORT = "The service listens on port 8080"
UTC = "Orders are stored in UTC because reports broke in March when clocks changed"
CACHE = "The cache layer of the shop uses redis"
LONG = (
    "The ledger service listens on port 8080 behind the office proxy. The admin page listens on"
    " port 7443 for operators. The result is cached in redis, postgres and s3 because it is slow."
)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (PORT, "As noted, the service listens on port 8080, as we saw earlier."),
        (UTC, f"{UTC}."),
        (UTC, f"As recorded: {UTC}."),
        (UTC, f"I remember that {UTC[0].lower()}{UTC[1:]}."),
        (UTC, UTC.replace("reports", "the reports")),
        (LONG, "The ledger service listens on port 8080."),
        (LONG, LONG.replace("redis, postgres", "redis and postgres")),
        ("every line in cart/total.py was rounded, then the sum again",
         "In cart/total.py every line was rounded, and then the sum again."),
    ],
)  # fmt: skip
def test_a_quotation_and_a_frame_around_it_are_an_echo(shown, said):
    assert repeats(said, [Shown.of("something else"), Shown.of(shown)])


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (PORT, "The service listens on port 7443"),
        (LONG, "The ledger service listens on port 7443 behind the office proxy."),
        (LONG, "The ledger service listens on port 7443 for operators."),
        (LONG, LONG.replace("postgres", "mysql")),
        (CACHE, "The cache layer of the shop uses memcached"),
        (CACHE, f"{CACHE} and memcached"),
        (CACHE, f"{CACHE}, plus memcached"),
        (CACHE, "Memcached backs the cache layer of the shop"),
        ("Cache backend of the whole shop: redis", "Cache backend of the whole shop: memcached"),
        ("The price of an order is cached", "The price of an order is not cached"),
        ("The price of an order is not cached", "The price of an order is cached here"),
        (UTC, UTC.replace("stored", "no longer stored")),
        (UTC, f"{UTC}, which doesn't hold any more"),
        (UTC, f"{UTC}. We rewrote the parser."),
        (UTC, f"As Redis users know, {UTC}"),
        ("The client must retry a failed call", "The client may retry a failed call"),
        ("Use plan A for big customers first", "Use plan B for big customers first"),
        ("retry while the number of tries is x < 5", "retry while the number of tries is x > 5"),
        ("the settings live in src/app/settings.py", "the settings live in src/core/settings.py"),
        ("Der Dienst lauscht auf Port 80", "Der Dienst lauscht nicht auf Port 80"),
        ("a b c d e", "a b c d e"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_stands_in_the_place_of_a_word_or_is_added_makes_another_statement(shown, said):
    assert not repeats(said, [Shown.of(shown)])


def test_what_was_said_before_it_was_shown_is_no_echo_of_it():
    shown = [Shown.of(UTC, epoch=10)]
    assert not repeats(UTC, shown, 9)
    assert repeats(UTC, shown, 10)


def test_nothing_is_put_together_from_two_things_that_were_shown():
    first, second = "The ledger service listens on a port", "The admin page is behind the proxy"
    shown = [Shown.of(first), Shown.of(second)]
    assert not repeats(f"{first}. {second}.", shown)
    assert repeats(first, shown)


def test_a_huge_repetition_takes_no_time():
    text = "the port of the service is in the file of the port, " * 4_000
    began = time.process_time()
    repeats(text, [Shown.of(text)])
    repeats(text, [Shown.of(text.replace("file", "page"))])
    assert time.process_time() - began < 4.0
