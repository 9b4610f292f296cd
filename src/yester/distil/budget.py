"""What language models may cost. Money is reserved before a call, and what is left given back.

A call is entered with the most it can cost in the same transaction that looks at what the day has
cost so far, so that any number of processes together stay within the limit. A process that dies
leaves its entry as it is: taken for spent. A day is one of UTC, which no environment can move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from re import compile as pattern
from typing import TYPE_CHECKING, NamedTuple

from yester.config import Config
from yester.errors import ConfigError, OverBudget
from yester.model import Spend
from yester.store.contract import Store
from yester.store.figures import Spent, spent_since

if TYPE_CHECKING:
    from yester.distil.llm import Answer, Model

DAY = 86_400_000  # ms
OVER, CROWDED = "over budget", "too many at once"  # outcomes of calls that were not made


class Price(NamedTuple):
    """Dollars for a million tokens."""

    read: float
    written: float


AS_OF = "2026-11-15"
PRICES: Mapping[str, Price] = {
    "claude-haiku-5-5": Price(0.10, 0.50),
    "claude-haiku-4-5": Price(1.00, 5.00),
    "claude-sonnet-5-5": Price(2.00, 10.00),
    "claude-sonnet-4-6": Price(3.00, 15.00),
    "claude-sonnet-4-5": Price(3.00, 15.00),
    "claude-opus-5-5": Price(4.00, 20.00),
    "claude-opus-5": Price(5.00, 25.00),
    "claude-opus-4-6": Price(5.00, 25.00),
    "claude-opus-4-5": Price(5.00, 25.00),
    "claude-fable-5-1": Price(10.00, 50.00),
    "gpt-6-luna": Price(0.10, 0.50),
    "gpt-6-sol": Price(2.00, 10.00),
    "gpt-6-astra": Price(10.00, 50.00),
    "gpt-5.6-luna": Price(0.20, 1.20),
    "gpt-5.6-terra": Price(2.00, 12.00),
    "gpt-5.6-sol": Price(5.00, 30.00),
    "gpt-5.4": Price(2.50, 15.00),
    "gpt-5.4-mini": Price(0.75, 4.50),
    "gpt-5.4-nano": Price(0.20, 1.25),
    "gpt-4.1-mini": Price(0.40, 1.60),
    "gpt-4o-mini": Price(0.15, 0.60),
    "gemini-3-flash": Price(0.50, 3.00),
    "gemini-2.5-flash": Price(0.30, 2.50),
    "gemini-2.5-flash-lite": Price(0.10, 0.40),
}
# What may follow a name without making it another model: a date, or the word.
_SAME = pattern(r"-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})$")
_OWN_PRICE = pattern(r"(\d{1,4}(?:\.\d{1,6})?)/(\d{1,4}(?:\.\d{1,6})?)")
_OVERHEAD = 2_000  # tokens that a provider adds around what it is given
_SLACK = 5_000  # ms between the end of a call and the note of it


def price_of(model: Model, given: str) -> Price:
    """By the setting, else nothing on this machine, else by the table; ConfigError where unknown:
    a limit that guesses is none."""
    if given:
        match = _OWN_PRICE.fullmatch(given.replace(" ", ""))
        if match is None:
            raise ConfigError(f'llm.price is {given!r}, but must be like "0.10/0.50"')
        return Price(float(match[1]), float(match[2]))
    if model.here:
        return Price(0.0, 0.0)
    known = {_plain(name): price for name, price in PRICES.items()}
    found = known.get(_plain(model.name)) or known.get(_SAME.sub("", _plain(model.name)))
    if found is None:
        raise ConfigError(
            f"no price is known for {model.name!r}; set llm.price to dollars for a million tokens "
            'in and out, such as "0.10/0.50"'
        )
    return found


def _plain(name: str) -> str:
    """anthropic/claude-haiku-4.5, as some resellers write it, is claude-haiku-4-5."""
    return name.lower().rpartition("/")[2].replace(".", "-")


@dataclass(frozen=True, slots=True)
class Limits:
    dollars: float = 0.20
    tokens: int = 2_000_000
    in_flight: int = 1

    @classmethod
    def of(cls, config: Config) -> Limits:
        return cls(
            config.decimal("llm.daily_dollars"),
            config.number("llm.daily_tokens"),
            config.number("llm.in_flight"),
        )


def day_of(now: int) -> int:
    """When the day began."""
    return now - now % DAY


def most(
    model: Model, price: Price, purpose: str, text: str, most_out: int, now: int, seconds: float
) -> Spend:
    """A call at the most it can cost: no token is shorter than a byte."""
    read = model.calls * (len(text.encode("utf-8", "replace")) + _OVERHEAD)
    written = model.calls * most_out
    return Spend(
        now, model.name, purpose, read, written, cost(price, read, written),
        until=now + int(seconds * 1000) + _SLACK,
    )  # fmt: skip


def cost(price: Price, read: int, written: int) -> float:
    return (read * price.read + written * price.written) / 1e6


def reserve(store: Store, limits: Limits, call: Spend) -> int:
    """Enter a call before it is made. OverBudget, which is entered too, where it may not be.

    Not inside a transaction: this is one."""
    with store.transaction("spend"):
        spent = spent_since(store, day_of(call.epoch), call.epoch)
        outcome, reason = _refused(spent, limits, call)
        if outcome:
            call = replace(call, tokens_in=0, tokens_out=0, cost=0.0, outcome=outcome)
        (number,) = store.append([call])
    if outcome:
        raise OverBudget(reason)
    return number


def _refused(spent: Spent, limits: Limits, call: Spend) -> tuple[str, str]:
    if spent.in_flight >= limits.in_flight:
        return CROWDED, f"{spent.in_flight} of {limits.in_flight} calls are under way"
    if spent.cost + call.cost > limits.dollars + 1e-9:
        return OVER, (
            f"the day's ${limits.dollars:.2f} do not last: ${spent.cost:.4f} are spent and this "
            f"may cost ${call.cost:.4f}; llm.daily_dollars sets the limit"
        )
    if spent.tokens + call.tokens_in + call.tokens_out > limits.tokens:
        return OVER, (
            f"the day's {limits.tokens:,} tokens do not last: {spent.tokens:,} are used and this "
            f"may take {call.tokens_in + call.tokens_out:,}; llm.daily_tokens sets the limit"
        )
    return "", ""


def settle(
    store: Store, number: int, call: Spend, price: Price, answer: Answer | None, outcome: str
) -> None:
    """What a call has cost in the end; None: nothing. What is not known stays as it was entered."""
    if answer is None:
        read, written, paid = 0, 0, 0.0
    elif answer.tokens_in or answer.tokens_out or answer.cost is not None:
        read, written = answer.tokens_in, answer.tokens_out
        paid = cost(price, read, written) if answer.cost is None else answer.cost
    else:
        read, written, paid = call.tokens_in, call.tokens_out, call.cost
    with store.transaction():
        store.append(
            [
                replace(
                    call, id=number, tokens_in=read, tokens_out=written, cost=paid, outcome=outcome
                )
            ]
        )


def forecast(store: Store, limits: Limits, model: Model, price: Price, call: Spend) -> str:
    """What a call will cost, for the person who pays, before it is made."""
    spent = spent_since(store, day_of(call.epoch), call.epoch)
    usual = 4 * model.calls  # a token is about four characters, and an answer seldom the longest
    read, written = call.tokens_in // usual, call.tokens_out // usual
    return (
        f"asking {call.model} ({call.purpose}): about {read + written:,} tokens and "
        f"${cost(price, read, written):.4f}, at most ${call.cost:.4f}; today ${spent.cost:.4f} of "
        f"${limits.dollars:.2f} are spent"
    )
