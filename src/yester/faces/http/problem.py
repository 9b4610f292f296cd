"""What is answered when something is wrong: problem+json (RFC 9457), never a traceback.

`detail` is one sentence for whoever must act; `parameter`, `value` and `fix` say the same apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from yester.memory import quote_value
from yester.redact import redact

CONTENT_TYPE = "application/problem+json"


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
            value=UNSET if self.value is None else quote_value(self.value),
            fix=self.fix or UNSET,
        )


def refusal(error: YesterError) -> Refusal:
    """What yester raises on purpose, as an answer."""
    status, fix, headers = next(
        (status, fix, headers) for kind, status, fix, headers in _ANSWERS if isinstance(error, kind)
    )
    fix = redact(error.fix or fix)
    guessed = fix.startswith("did you mean")
    if isinstance(error, NotFound) and error.parameter in _LISTS and not guessed:
        fix += f" ({_LISTS[error.parameter]})"
    return Refusal(
        status, redact(error.what), parameter=error.parameter, value=error.value, fix=fix,
        headers=headers,
    )  # fmt: skip


# parameter → what lists all it may be
_LISTS = {
    "project": "GET /api/projects",
    "session": "GET /api/sessions",
    "agent": "GET /api/facets",
    "type": "GET /api/facets",
}


# The first that fits: what is raised, the status, the fix where the error names none.
_ANSWERS: Sequence[tuple[type[YesterError], int, str, Mapping[str, str]]] = (
    (ConfigError, 500, "correct config.toml", {}),  # not what was asked is wrong
    (NotYours, 403, "let the user do it: yester ui, or in their own terminal", {}),
    (UsageError, 400, "", {}),
    (NotFound, 404, "", {}),
    (StoreChanged, 409, "read it again", {}),
    (StoreBusy, 503, "try again", {"retry-after": "1"}),
    (StoreError, 500, "run: yester doctor", {}),
    (YesterError, 500, "", {}),
)
