"""One question to a language model, within its budget, its time and its second chance.

Nothing is raised: who asks has an answer of his own to fall back on, and wants the reason. What was
asked and how it ended is entered in the store (`yester stats`). Not inside a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from yester.config import Config
from yester.distil.budget import Limits, Price, forecast, most, price_of, reserve, settle
from yester.distil.llm import Answer, Model, open_model
from yester.distil.prompts import Prompt
from yester.errors import (
    Busy,
    LlmError,
    Malformed,
    Refused,
    StoreError,
    Truncated,
    Unreachable,
    YesterError,
)
from yester.store.contract import Store

T = TypeVar("T")
SECONDS = 60.0
_PAUSE = 2.0  # seconds, where a busy provider does not say how long
_SHORTEST = 0.5  # seconds; less is not worth a call
_UNKNOWN = Answer("", 0, 0)  # it may have been paid
_OUTCOMES: Mapping[type[LlmError], str] = {
    Busy: "busy",
    Refused: "refused",
    Truncated: "truncated",
    Malformed: "malformed",
    Unreachable: "unreachable",
}


@dataclass(frozen=True, slots=True)
class Said(Generic[T]):
    """What came of a question: a value, or the reason why there is none."""

    value: T | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """`tell` is given what a question will cost, before it is asked."""

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
                return Said(self._once(prompt, check, until - self.clock()))
            except Busy as error:
                pause = _PAUSE if error.retry_after is None else error.retry_after
                if not waits or self.clock() + pause + _SHORTEST > until:
                    return Said(reason=str(error))
                waits -= 1
                self.sleep(pause)
            except (Malformed, Truncated) as error:
                if not repeats:
                    return Said(reason=str(error))
                repeats -= 1
                prompt = prompt.again(str(error))
            except YesterError as error:
                return Said(reason=str(error))
            except Exception as error:  # noqa: BLE001 -- nothing that comes from outside may stop the work
                return Said(reason=f"unforeseen: {type(error).__name__}")

    def _once(self, prompt: Prompt, check: Callable[[str], T], seconds: float) -> T:
        if seconds < _SHORTEST:
            raise Unreachable("the time is over")
        sent = prompt.system + prompt.text + msgspec.json.encode(prompt.schema).decode()
        call = most(
            self.model, self.price, prompt.purpose, sent, prompt.most_tokens, self.now(), seconds
        )
        if self.tell is not None:
            self.tell(forecast(self.store, self.limits, self.model, self.price, call))
        number = reserve(self.store, self.limits, call)
        answer: Answer | None = _UNKNOWN
        outcome = "failed"
        try:
            answer = self.model.complete(
                prompt.system, prompt.text, prompt.schema, prompt.most_tokens, seconds
            )
            value = check(_finished(answer))
            outcome = "ok"
            return value
        except LlmError as error:
            outcome = _OUTCOMES.get(type(error), outcome)
            if answer is _UNKNOWN and not error.sent:
                answer = None
            raise
        finally:
            with suppress(StoreError):  # it stays as it was entered: taken for spent
                settle(self.store, number, call, self.price, answer, outcome)


def _finished(answer: Answer) -> str:
    if answer.stop == "refusal":
        raise Refused("the model refuses to answer this")
    if answer.stop == "length":
        raise Truncated("it was too long and is cut off")
    return answer.text


def open_asker(
    config: Config, store: Store, tell: Callable[[str], None] | None = None
) -> Asker | None:
    """What the settings allow; None where no model is set, ConfigError where they are wrong."""
    model = open_model(config)
    if model is None:
        return None
    price = price_of(model, config.text("llm.price"))
    return Asker(model, price, store, Limits.of(config), tell)
