"""What is answered when something is wrong: problem+json (RFC 9457), never a traceback.

`detail` is one sentence for whoever must act; `parameter`, `value` and `fix` say the same apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType

from yester.errors import (
    ConfigError,
    NotFound,
    NotYours,
    StoreBusy,
    StoreChanged,
    StoreError,
    UsageError,
    YesterError,
)
from yester.redact import redact

CONTENT_TYPE = "application/problem+json"
_LONGEST = 200  # characters of a value that is quoted


class Problem(msgspec.Struct, kw_only=True):
    """An answer that is none."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    parameter: str | UnsetType = UNSET
    value: str | UnsetType = UNSET
    fix: str | UnsetType = UNSET


class Refusal(Exception):
    """Raised wherever a request cannot be answered; it becomes a Problem."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        parameter: str = "",
        value: str | None = None,
        fix: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}
        self.parameter, self.value, self.fix = parameter, value, fix

    def problem(self) -> Problem:
        return Problem(
            title=HTTPStatus(self.status).phrase,
            status=self.status,
            detail=self.detail,
            parameter=self.parameter or UNSET,
            value=UNSET if self.value is None else shown(self.value),
            fix=self.fix or UNSET,
        )


def shown(text: str) -> str:
    """A value as it may be quoted: short, and without a secret somebody has put there."""
    text = redact(text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def named(names: Sequence[str], most: int = 8) -> str:
    """Some of many, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def unknown(what: str, value: str, known: Sequence[str], parameter: str, where: str) -> Refusal:
    """404: a name nobody has; those like it, else some there are. `where` lists them all."""
    alike = get_close_matches(value, known, 3, 0.5)
    there = f"there is {named(sorted(known))}" if known else "there is none yet"
    return Refusal(
        404, f"no {what} is called {shown(value)!r}", parameter=parameter, value=value,
        fix=redact(f"did you mean {' or '.join(alike)}?" if alike else f"{there} ({where})"),
    )  # fmt: skip


def refusal(error: YesterError) -> Refusal:
    """What yester raises on purpose, as an answer."""
    text = redact(str(error))
    match error:
        case ConfigError():  # not what was asked is wrong
            return Refusal(500, text, fix="correct config.toml")
        case NotYours():
            return Refusal(403, text, fix="let the user do it: yester ui, or in their own terminal")
        case UsageError():
            return Refusal(400, text)
        case NotFound(what=what, fix=fix):
            return Refusal(404, redact(what), fix=redact(fix))
        case StoreChanged():
            return Refusal(409, text, fix="read it again")
        case StoreBusy():
            return Refusal(503, text, fix="try again", headers={"retry-after": "1"})
        case StoreError():
            return Refusal(500, text, fix="run: yester doctor")
    return Refusal(500, text)
