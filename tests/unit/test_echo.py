"""What only says again what an agent was shown, and what says something else."""

from __future__ import annotations

import pytest

from tests.table import each
from yester.ingest.prepare import Shown, is_repeated

pytestmark = pytest.mark.requirement("CAP-11")

PORT = "The service listens on port 8080"
UTC = "Orders are stored in UTC because reports broke in March when clocks changed"
CACHE = "The cache layer of the shop uses redis"
CHINESE = "不要在生产环境使用缓存服务，因为夜间批处理需要六秒以上的时间。"
LONG = (
    "The ledger service listens on port 8080 behind the office proxy. The admin page listens on"
    " port 7443 for operators. The result is cached in redis, postgres and s3 because it is slow."
)


@each(
    ("shown", "said"),
    [
        (UTC, UTC),
        (UTC, f"{UTC}."),
        (UTC, f"- {UTC}.\n"),
        (LONG, LONG),
        (LONG, "The admin page listens on port 7443 for  operators."),
        (CHINESE, CHINESE),
    ],
)  # fmt: skip
def test_whole_sentences_that_were_shown_are_an_echo(shown, said):
    assert is_repeated(said, [Shown.from_text("something else"), Shown.from_text(shown)])


@each(
    ("shown", "said"),
    [
        (PORT, "The service listens on port 7443"),
        (PORT, f"It is wrong that {PORT}"),
        (PORT, f"Not any more: {PORT}"),
        (LONG, "The ledger service listens on port 8080."),
        (LONG, LONG.replace("8080", "443").replace("7443", "8080").replace("443", "7443")),
        (CACHE, "The cache layer of the shop uses memcached"),
        (CACHE, f"{CACHE}, plus memcached"),
        ("The price of an order is cached", "The price of an order is not cached"),
        ("Do not use the shared session, it drops", "Use the shared session, it drops"),
        ("Staging: port 8080 with TLS behind nginx", "Production: port 8080 with TLS behind nginx"),
        ("Done: the batch runs with four workers", "Failed: the batch runs with four workers"),
        ("client waits 5 s, the server waits 8 s", "client waits 8 s, the server waits 5 s"),
        ("the queue holds ≤ 500 jobs at a time", "the queue holds ≥ 500 jobs at a time"),
        ("the settings live in ~/app/settings.py", "the settings live in /app/settings.py"),
        ("Prices are integer cents everywhere.", "Prices are integer cents everywhere?"),
        ("Keine geteilte Sitzung verwenden, sie trennt", "Geteilte Sitzung verwenden, sie trennt"),
        (CHINESE, CHINESE.replace("不要", "要")),
        (UTC, f"{UTC}. We rewrote the parser."),
        ("a b c d e", "a b c d e"),
        ("", ""),
    ],
)  # fmt: skip
def test_whatever_adds_leaves_out_or_moves_a_word_is_a_message_of_its_own(shown, said):
    assert not is_repeated(said, [Shown.from_text(shown)])


def test_what_was_said_before_it_was_shown_is_no_echo_of_it():
    shown = [Shown.from_text(UTC, epoch=10)]
    assert not is_repeated(UTC, shown, 9)
    assert is_repeated(UTC, shown, 10)


def test_sentences_of_several_things_that_were_shown_are_an_echo():
    first, second = "The ledger service listens on a port", "The admin page is behind the proxy"
    shown = [Shown.from_text(first), Shown.from_text(second)]
    assert is_repeated(f"{first}. {second}.", shown)
    assert not is_repeated(f"{first}. {second}. Neither is tested.", shown)
