"""A request over HTTP, read once into the request of an operation; and what is answered where
something is wrong: problem+json (RFC 9457), never a traceback.

`detail` is one sentence for whoever must act; `parameter`, `value` and `fix` say the same apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

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
from yester.operations.request import Request, list_parameters, make_request
from yester.redact import redact

CONTENT_TYPE = "application/problem+json"
R = TypeVar("R", bound=Request)
_MOST = 100  # parameters
# What claude-mem's scripts send: the value ("": any), and what to use instead.
_CLAUDE_MEM: Mapping[str, tuple[str, str]] = {
    "format": ("json", "use index or full, or on the command line: yester export jsonl FILE"),
    "platformSource": ("", "use agent, e.g. agent=claude-code"),
    "projects": ("", "use project, one a request"),
}
# Where they ask for a type of observations, it stands in the parameter that chooses among kinds.
_TYPES = ("bugfix", "change", "decision", "discovery", "feature", "refactor")


def read_query(kind: type[R], query: bytes, path: Mapping[str, str]) -> R:
    pairs, known = _read_pairs(kind, query), list_parameters(kind)
    for name, (value, fix) in _CLAUDE_MEM.items():
        if name in pairs and (pairs[name] == value or name not in known):
            raise UsageError(
                f"{name} {quote_value(pairs[name])} is claude-mem's and not known here", fix,
                parameter=name, value=pairs[name],
            )  # fmt: skip
    if pairs.get("type") in _TYPES and "obs_type" in known:
        pairs["obs_type"] = pairs.pop("type")
    return make_request(kind, {**pairs, **path}, {})


def read_body(kind: type[R], body: bytes, path: Mapping[str, str]) -> R:
    if not body.strip():
        raise UsageError("the body is missing", "send a JSON object")
    try:
        table = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the body is not JSON ({error})", "send a JSON object") from None
    if not isinstance(table, dict):
        raise UsageError("the body is JSON, but no object", 'send {"name": value, …}')
    for name in path:
        if name in table:
            raise UsageError(
                f"{name} stands in the path and in the body", "leave it out of the body",
                parameter=name,
            )  # fmt: skip
    return make_request(kind, path, _whole_numbers(table))


def _whole_numbers(value: Any) -> Any:
    """To JSON 12.0 is a whole number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_whole_numbers(part) for part in value]
    if isinstance(value, dict):
        return {name: _whole_numbers(part) for name, part in value.items()}
    return value


def _read_pairs(kind: type[Request], query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict",
            max_num_fields=_MOST,
        )  # fmt: skip
    except UnicodeDecodeError:
        raise UsageError("the query is not UTF-8", "percent-encode the bytes of UTF-8") from None
    except ValueError:
        raise UsageError(f"more than {_MOST} parameters", "leave some out") from None
    known = list_parameters(kind)
    found: dict[str, str] = {}
    for name, text in pairs:
        if name not in found:
            found[name] = text
        elif name in known and known[name].is_list:
            found[name] += f",{text}"
        else:
            raise UsageError(
                f"{name} is there twice", "give it once", parameter=quote_value(name), value=text
            )
    return found


# --- what is wrong --------------------------------------------------------------------------------


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


def make_problem(error: YesterError) -> tuple[Problem, Mapping[str, str]]:
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


def make_problem_response(error: YesterError) -> Response:
    problem, headers = make_problem(error)
    return Response(msgspec.json.encode(problem), problem.status, headers, CONTENT_TYPE)


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
