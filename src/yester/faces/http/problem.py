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


class Refusal(YesterError):
    """What is wrong with a request besides its parameters; it has a status of its own."""

    def __init__(
        self,
        status: int,
        what: str,
        fix: str = "",
        *,
        parameter: str = "",
        value: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, fix, parameter=parameter, value=value)
        self.status, self.headers = status, headers or {}


def describe_error(error: YesterError) -> tuple[Problem, Mapping[str, str]]:
    """What yester raises on purpose, as an answer and its headers."""
    if isinstance(error, Refusal):
        status, fix, headers = error.status, error.fix, error.headers
    else:
        status, fix, headers = next(row[1:] for row in _ANSWERS if isinstance(error, row[0]))
    fix = redact(error.fix or fix)
    guessed = fix.startswith("did you mean")
    if isinstance(error, NotFound) and error.parameter in _LISTS and not guessed:
        fix += f" ({_LISTS[error.parameter]})"
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=redact(error.what),
        parameter=error.parameter or UNSET,
        value=UNSET if error.value is None else quote_value(error.value),
        fix=fix or UNSET,
    )
    return problem, headers


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
