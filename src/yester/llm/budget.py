"""What language models may cost, and a question asked within that.

Money is reserved before a call, and what is left given back. A call is entered with the most it can
cost in the same transaction that looks at what the day has cost so far, so that any number of
processes together stay within the limit. A process that dies leaves its entry as it is: taken for
spent. A day is one of UTC, which no environment can move.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from re import compile as pattern
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from yester import errors
from yester.clock import DAY
from yester.config import Config
from yester.model import Spend, replace
from yester.store.contract import Store
from yester.store.figures import Spent, spent_since
from yester.tables import load_table

if TYPE_CHECKING:
    from yester.llm.client import Answer, Model
    from yester.llm.questions import Prompt

T = TypeVar("T")
SECONDS = 60.0  # for a question, unless somebody says otherwise
OVER, CROWDED = "over budget", "too many at once"  # outcomes of calls that were not made
_PAUSE = 2.0  # seconds, where a busy provider does not say how long
_SHORTEST = 0.5  # seconds; less is not worth a call
# What may follow a name without making it another model: a date, or the word.
_SAME = pattern(r"-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})$")
_OWN_PRICE = pattern(r"(\d{1,4}(?:\.\d{1,6})?)/(\d{1,4}(?:\.\d{1,6})?)")
_OVERHEAD = 2_000  # tokens that a provider adds around what it is given
_SLACK = 5_000  # ms between the end of a call and the note of it


class Price(NamedTuple):
    """Dollars for a million tokens."""

    read: float
    written: float


def known_prices() -> Mapping[str, Price]:
    return {name: Price(*row) for name, row in load_table("prices")["prices"].items()}


def price_of(model: Model, given: str) -> Price:
    """By the setting, else nothing on this machine, else by the table; ConfigError where unknown:
    a limit that guesses is none."""
    if given:
        match = _OWN_PRICE.fullmatch(given.replace(" ", ""))
        if match is None:
            raise errors.ConfigError(f'llm.price is {given!r}, but must be like "0.10/0.50"')
        return Price(float(match[1]), float(match[2]))
    if model.here:
        return Price(0.0, 0.0)
    known = {_plain_name(name): price for name, price in known_prices().items()}
    name = _plain_name(model.name)
    found = known.get(name) or known.get(_SAME.sub("", name))
    if found is None:
        raise errors.ConfigError(
            f"no price is known for {model.name!r}; set llm.price to dollars for a million tokens "
            'in and out, such as "0.10/0.50"'
        )
    return found


def _plain_name(name: str) -> str:
    """anthropic/claude-haiku-4.5, as some resellers write it, is claude-haiku-4-5."""
    return name.lower().rpartition("/")[2].replace(".", "-")


def dollar_cost(price: Price, read: int, written: int) -> float:
    return (read * price.read + written * price.written) / 1e6


def day_of(now: int) -> int:
    """When the day began."""
    return now - now % DAY


# --- the ledger ----------------------------------------------------------------------------------


class Limits(Struct, frozen=True):
    dollars: float = 0.20
    tokens: int = 2_000_000
    in_flight: int = 1

    @classmethod
    def from_config(cls, config: Config) -> Limits:
        return cls(
            config.decimal("llm.daily_dollars"),
            config.number("llm.daily_tokens"),
            config.number("llm.in_flight"),
        )


def costliest_call(model: Model, price: Price, prompt: Prompt, now: int, seconds: float) -> Spend:
    """A call at the most it can cost: no token is shorter than a byte."""
    words = (prompt.system + prompt.text).encode("utf-8", "replace")
    read = model.calls * (len(words) + len(msgspec.json.encode(prompt.schema)) + _OVERHEAD)
    written = model.calls * prompt.most_tokens
    return Spend(
        now, model.name, prompt.purpose, read, written, dollar_cost(price, read, written),
        until=now + int(seconds * 1000) + _SLACK,
    )  # fmt: skip


def reserve_call(store: Store, limits: Limits, call: Spend) -> int:
    """Enter a call before it is made. OverBudget, which is entered too, where it may not be.

    Not inside a transaction: this is one."""
    with store.transaction("spend"):
        spent = spent_since(store, day_of(call.epoch), call.epoch)
        outcome, reason = _refuse_call(spent, limits, call)
        if outcome:
            call = replace(call, tokens_in=0, tokens_out=0, cost=0.0, outcome=outcome)
        (number,) = store.append([call])
    if outcome:
        raise errors.OverBudget(reason)
    return number


def _refuse_call(spent: Spent, limits: Limits, call: Spend) -> tuple[str, str]:
    """Outcome and reason, or "" for both where it may be made."""
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


def settle_call(
    store: Store, number: int, call: Spend, price: Price, answer: Answer | None, outcome: str
) -> None:
    """What a call has cost in the end; None: nothing. What is not known stays as it was entered."""
    paid = replace(call, id=number, outcome=outcome)
    if answer is None:
        paid = replace(paid, tokens_in=0, tokens_out=0, cost=0.0)
    elif answer.tokens_in or answer.tokens_out or answer.cost is not None:
        read, written, cost = answer.tokens_in, answer.tokens_out, answer.cost
        cost = dollar_cost(price, read, written) if cost is None else cost
        paid = replace(paid, tokens_in=read, tokens_out=written, cost=cost)
    with store.transaction("spend"):
        store.append([paid])


def forecast_cost(store: Store, limits: Limits, model: Model, price: Price, call: Spend) -> str:
    """What a call will cost, for the person who pays, before it is made."""
    spent = spent_since(store, day_of(call.epoch), call.epoch)
    usual = 4 * model.calls  # a token is about four characters, and an answer seldom the longest
    read, written = call.tokens_in // usual, call.tokens_out // usual
    return (
        f"asking {call.model} ({call.purpose}): about {read + written:,} tokens and "
        f"${dollar_cost(price, read, written):.4f}, at most ${call.cost:.4f}; "
        f"today ${spent.cost:.4f} of ${limits.dollars:.2f} are spent"
    )


# --- asking --------------------------------------------------------------------------------------


class Said(Struct, Generic[T], frozen=True):
    """What came of a question: a value, or the reason why there is none."""

    value: T | None = None
    reason: str = ""


class Asker(Struct, frozen=True):
    """One question to a language model, within its budget, its time and its second chance.

    Nothing is raised: who asks has an answer of his own to fall back on, and wants the reason. What
    was asked and how it ended is entered in the store (`yester stats`). Not inside a transaction.
    `tell` is given what a question will cost, before it is asked."""

    model: Model
    price: Price
    store: Store
    limits: Limits
    tell: Callable[[str], None] | None = None
    now: Callable[[], int] = field(default=lambda: int(time.time() * 1000))
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def ask(self, prompt: Prompt, check: Callable[[str], T], seconds: float = SECONDS) -> Said[T]:
        """The answer after `check`, which raises Malformed where it cannot be used.

        Such an answer is asked for once more; a busy provider is waited for once, if the time
        allows it."""
        until = self.clock() + seconds
        waits, repeats = 1, 1
        while True:
            try:
                return Said(self._ask_once(prompt, check, until - self.clock()))
            except errors.Busy as error:
                pause = _PAUSE if error.retry_after is None else error.retry_after
                if not waits or self.clock() + pause + _SHORTEST > until:
                    return Said(reason=str(error))
                waits -= 1
                self.sleep(pause)
            except (errors.Malformed, errors.Truncated) as error:
                if not repeats:
                    return Said(reason=str(error))
                repeats -= 1
                prompt = prompt.after_failure(str(error))
            except errors.YesterError as error:
                return Said(reason=str(error))
            except Exception as error:  # noqa: BLE001 -- nothing that comes from outside may stop the work
                return Said(reason=f"unforeseen: {type(error).__name__}")

    def _ask_once(self, prompt: Prompt, check: Callable[[str], T], seconds: float) -> T:
        if seconds < _SHORTEST:
            raise errors.Unreachable("the time is over")
        call = costliest_call(self.model, self.price, prompt, self.now(), seconds)
        if self.tell is not None:
            self.tell(forecast_cost(self.store, self.limits, self.model, self.price, call))
        number = reserve_call(self.store, self.limits, call)
        from yester.llm.client import Answer

        unknown = Answer("", 0, 0)  # it may have been paid
        answer: Answer | None = unknown
        outcome = "failed"
        try:
            answer = self.model.complete(prompt, seconds)
            if answer.stop == "refusal":
                raise errors.Refused("the model refuses to answer this")
            if answer.stop == "length":
                raise errors.Truncated("it was too long and is cut off")
            value = check(answer.text)
            outcome = "ok"
            return value
        except errors.LlmError as error:
            if type(error) is not errors.LlmError:
                outcome = type(error).__name__.lower()  # busy, refused, malformed …
            if answer is unknown and not error.sent:
                answer = None
            raise
        finally:
            with suppress(errors.StoreError):  # it stays as it was entered: taken for spent
                settle_call(self.store, number, call, self.price, answer, outcome)


def open_asker(
    config: Config, store: Store, tell: Callable[[str], None] | None = None
) -> Asker | None:
    """What the settings allow; None where no model is set, ConfigError where they are wrong."""
    if config.text("llm.provider") == "none":
        return None
    from yester.llm.client import open_model

    model = open_model(config)
    if model is None:
        return None
    price = price_of(model, config.text("llm.price"))
    return Asker(model, price, store, Limits.from_config(config), tell)
