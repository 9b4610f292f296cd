"""What language models may cost: prices, and a limit that any number of processes keep together."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stores import with_store
from tests.table import each
from yester.config import load_config
from yester.errors import ConfigError, OverBudget
from yester.llm import budget
from yester.llm.budget import (
    DAY,
    Limits,
    Price,
    costliest_call,
    day_of,
    known_prices,
    price_of,
    reserve_call,
    settle_call,
)
from yester.llm.client import Answer
from yester.llm.questions import Prompt
from yester.model import Spend
from yester.store import open_store
from yester.store.figures import spending_by_day, spent_since

pytestmark = pytest.mark.requirement("DIS-05")

NOON = 20_000 * DAY + DAY // 2


@dataclass(frozen=True)
class Named:
    """As much of a model as a price wants to know."""

    name: str
    here: bool = False
    calls: int = 1


@pytest.fixture
def store(tmp_path):
    opened = open_store(with_store(tmp_path / "store"), now=1)
    yield opened
    opened.close()


def call(cost=0.01, tokens=(100, 10), epoch=NOON, until=None, model="m", purpose="turn/1"):
    return Spend(
        epoch, model, purpose, *tokens, cost, until=epoch + 60_000 if until is None else until
    )


def prompt(text, most_tokens):
    return Prompt("turn/1", "", text, {}, most_tokens)


# --- prices --------------------------------------------------------------------------------------


def test_every_row_of_the_table_is_a_price():
    for name, price in known_prices().items():
        assert price_of(Named(name), "") == price
        assert 0 < price.read < price.written < 1000


@each(
    ("name", "row"),
    [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
        ("openai/gpt-5.4-mini", "gpt-5.4-mini"),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini"),
        ("claude-haiku-5-5-latest", "claude-haiku-5-5"),
        ("GPT-6-Luna", "gpt-6-luna"),
    ],
)
def test_a_name_is_known_in_the_forms_it_is_written_in(name, row):
    assert price_of(Named(name), "") == known_prices()[row]


@each("name", ["gpt-5.4-pro", "gpt-6", "claude-haiku-9", "qwen3:8b", ""])
def test_an_unknown_price_is_not_guessed(name):
    with pytest.raises(ConfigError, match=r"no price is known for .*; set llm\.price"):
        price_of(Named(name), "")


def test_the_setting_goes_over_the_table_and_a_model_here_costs_nothing():
    assert price_of(Named("qwen3:8b", here=True), "") == Price(0, 0)
    assert price_of(Named("claude-haiku-5-5"), "3/15.5") == Price(3, 15.5)
    assert price_of(Named("x"), " 0.1 / 0.5 ") == Price(0.1, 0.5)
    for bad in ("cheap", "1", "1/2/3", "-1/2", "1e9/1"):
        with pytest.raises(ConfigError, match=r"llm\.price is"):
            price_of(Named("x"), bad)


def test_the_most_a_call_can_cost_counts_a_token_for_every_byte():
    spend = costliest_call(Named("m"), Price(1, 5), prompt("é" * 1000, 400), NOON, 30)
    assert spend.tokens_in == 2000 + 2 + 2000
    assert spend.cost == pytest.approx((4002 * 1 + 400 * 5) / 1e6)
    assert spend.until == NOON + 35_000
    often = costliest_call(Named("m", calls=6), Price(1, 5), prompt("é" * 1000, 400), NOON, 30)
    assert often.cost == pytest.approx(6 * spend.cost)


def test_the_default_is_twenty_cents_a_day(tmp_path):
    assert Limits.from_config(load_config(tmp_path, {})) == Limits(0.20, 2_000_000, 1)
    (tmp_path / "config.toml").write_text("[llm]\ndaily_dollars = 1\nin_flight = 3\n")
    assert Limits.from_config(load_config(tmp_path, {})) == Limits(1.0, 2_000_000, 3)


# --- one process ---------------------------------------------------------------------------------


def test_what_was_reserved_is_spent_until_it_is_settled(store):
    limits = Limits(dollars=0.05, in_flight=9)
    number = reserve_call(store, limits, call(0.04))
    assert spent_since(store, day_of(NOON), NOON) == (0.04, 110, 1)
    with pytest.raises(OverBudget, match=r"the day's \$0\.05 do not last: \$0\.0400 are spent"):
        reserve_call(store, limits, call(0.02))
    settle_call(store, number, call(0.04), Price(10, 50), Answer("", 200, 20), "ok")
    assert spent_since(store, day_of(NOON), NOON) == (pytest.approx(0.003), 220, 0)
    reserve_call(store, limits, call(0.02))


def test_a_call_that_was_not_made_is_written_down_and_costs_nothing(store):
    with pytest.raises(OverBudget, match=r"llm\.daily_dollars sets the limit"):
        reserve_call(store, Limits(dollars=0), call())
    with pytest.raises(OverBudget, match="100 tokens do not last"):
        reserve_call(store, Limits(tokens=100), call())
    rows = spending_by_day(store, 0)
    assert [(row.outcome, row.calls, row.tokens_in, row.cost) for row in rows] == [
        ("over budget", 2, 0, 0.0)
    ]


def test_a_new_day_has_its_own_money_and_a_wrong_clock_none_to_give(store):
    limits = Limits(dollars=0.01, in_flight=9)
    reserve_call(store, limits, call(0.01, until=NOON))
    tomorrow = day_of(NOON) + DAY
    number = reserve_call(store, limits, call(0.01, epoch=tomorrow, until=tomorrow))
    assert number
    with pytest.raises(OverBudget):  # the clock was put back: tomorrow's money counts
        reserve_call(store, limits, call(0.001))


def test_only_so_many_are_under_way_and_a_dead_one_is_not_waited_for_forever(store):
    limits = Limits(in_flight=1)
    reserve_call(store, limits, call(until=NOON + 60_000))
    with pytest.raises(OverBudget, match="1 of 1 calls are under way"):
        reserve_call(store, limits, call(epoch=NOON + 59_999))
    reserve_call(store, limits, call(epoch=NOON + 60_000))
    assert {row.outcome for row in spending_by_day(store, 0)} == {"", "too many at once"}


@pytest.mark.parametrize(
    ("answer", "cost", "tokens"),
    [
        (None, 0.0, (0, 0)),  # it never arrived
        (Answer("", 1000, 100), 0.0015, (1000, 100)),
        (Answer("", 1000, 100, cost=0.5), 0.5, (1000, 100)),  # the provider knows best
        (Answer("", 0, 0), 0.01, (100, 10)),  # nobody knows: what was entered stays
        (Answer("", 0, 0, cost=0.0), 0.0, (0, 0)),
    ],
)
def test_a_call_is_settled_by_what_is_known_of_it(store, answer, cost, tokens):
    number = reserve_call(store, Limits(), call(0.01))
    settle_call(store, number, call(0.01), Price(1, 5), answer, "ok")
    (row,) = spending_by_day(store, 0)
    assert (row.cost, (row.tokens_in, row.tokens_out)) == (pytest.approx(cost), tokens)


def test_what_it_will_cost_is_said_beforehand(store):
    spend = costliest_call(Named("m", calls=2), Price(1, 5), prompt("x" * 2000, 400), NOON, 30)
    said = budget.forecast_cost(store, Limits(), Named("m", calls=2), Price(1, 5), spend)
    assert said == (
        "asking m (turn/1): about 1,100 tokens and $0.0015, at most $0.0120; "
        "today $0.0000 of $0.20 are spent"
    )


# --- many -----------------------------------------------------------------------------------------

DAYS = count(30_000)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # whose turn it is
        st.sampled_from(["reserve", "settle", "fail", "die"]),
        st.integers(1, 60),  # thousandths of a dollar it may cost
        st.integers(0, 100),  # per cent of that it does
    ),
    max_size=25,
)


@settings(max_examples=15)
@given(steps=STEPS, limit=st.integers(0, 150), flights=st.integers(1, 3))
def test_however_processes_interleave_the_limit_holds(tmp_path_factory, steps, limit, flights):
    """Three open stores stand for three processes; each does its part of the steps in turn."""
    folder = tmp_path_factory.getbasetemp() / "budget"
    stores = [open_store(folder, now=1) for _ in range(3)]
    limits = Limits(limit / 1000, 10**9, flights)
    now, price = next(DAYS) * DAY, Price(0, 0)
    open_calls: list[list[tuple[int, Spend]]] = [[], [], []]
    try:
        for who, what, thousandths, share in steps:
            now += 1
            mine = open_calls[who]
            if what == "reserve":
                spend = call(thousandths / 1000, epoch=now, until=now + 10)
                with suppress(OverBudget):
                    mine.append((reserve_call(stores[who], limits, spend), spend))
            elif mine:
                number, spend = mine.pop()
                paid = Answer("", 1, 1, cost=spend.cost * share / 100)
                if what != "die":
                    ended = paid if what == "settle" else None
                    settle_call(stores[who], number, spend, price, ended, "ok")
            spent = spent_since(stores[(who + 1) % 3], day_of(now), now)
            assert spent.cost <= limits.dollars + 1e-6
            assert spent.in_flight <= flights
    finally:
        for one in stores:
            one.close()


WORKER = """
import random, sys
from pathlib import Path
from yester.llm.budget import Limits, Price, day_of, reserve_call, settle_call
from yester.llm.client import Answer
from yester.errors import OverBudget
from yester.llm.questions import Prompt
from yester.model import Spend
from yester.store import open_store
from yester.store.figures import spent_since

folder, seed, now = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
store = open_store(Path(folder), now=1)
limits = Limits(0.05, 10**9, 3)
made = refused = 0
for step in range(25):
    spend = Spend(now + step, f"m{seed}", "turn/1", 9, 9, chance.uniform(0, 0.012), now + 10**6)
    try:
        number = reserve_call(store, limits, spend)
        made += 1
    except OverBudget:
        refused += 1
        continue
    spent = spent_since(store, day_of(now), now + step)
    assert spent.cost <= limits.dollars + 1e-9 and spent.in_flight <= 3, spent
    if seed == 2 and made == 4:
        sys.exit(9)  # dies with money in its hands
    paid = spend.cost * chance.random()
    settle_call(store, number, spend, Price(0, 0), Answer("", 9, 9, cost=paid), "ok")
print(made, refused)
"""


def test_real_processes_at_the_same_time_keep_the_limit_together(tmp_path, store):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path / "store"), str(seed), str(NOON)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in range(3)
    ]  # fmt: skip
    done = [(child.communicate(timeout=60), child.returncode) for child in children]
    for (_, err), code in done:
        assert code in (0, 9), err
    counts = [tuple(map(int, out.split())) for (out, _), code in done if code == 0]
    spent = spent_since(store, day_of(NOON), NOON + 10**7)
    assert 0 < spent.cost <= 0.05 + 1e-9
    assert spent.in_flight == 0
    assert sum(made for made, _ in counts) > 3
    assert sum(refused for _, refused in counts) > 3
    rows = spending_by_day(store, 0)
    assert {row.day for row in rows} == {"2024-10-04"}
