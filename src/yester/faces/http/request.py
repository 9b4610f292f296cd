"""A request over HTTP, read once into the request of an operation; and what is answered where
something is wrong: problem+json (RFC 9457), never a traceback.

`detail` is one sentence for whoever must act; `parameter`, `value` and `fix` say the same apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from math import isinf
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from yester.errors import NotFound, UsageError, YesterError
from yester.memory import quote_value
from yester.operations.request import Request, list_parameters, make_request
from yester.redact import redact
from yester.tables import load_table

CONTENT_TYPE = "application/problem+json"
R = TypeVar("R", bound=Request)
_MOST = 100  # parameters
# Where claude-mem's scripts ask for a type of observations, it stands in the parameter that chooses
# among kinds.
_TYPES = ("bugfix", "change", "decision", "discovery", "feature", "refactor")


def read_query(kind: type[R], query: bytes, path: Mapping[str, str]) -> R:
    pairs, known = _read_pairs(kind, query), list_parameters(kind)
    for name, row in load_table("api")["claude_mem"].items():
        if name in pairs and (pairs[name] == row.get("value") or name not in known):
            raise UsageError(
                f"{name} {quote_value(pairs[name])} is claude-mem's and not known here",
                row["fix"], parameter=name, value=pairs[name],
            )  # fmt: skip
    if pairs.get("type") in _TYPES and "obs_type" in known:
        pairs["obs_type"] = pairs.pop("type")
    return make_request(kind, {**pairs, **path}, {})


def _read_number(text: str) -> float:
    """To JSON 12.0 is a whole number."""
    number = float(text)
    if isinf(number):
        raise ValueError("a number is out of range")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


_DECODER = msgspec.json.Decoder(float_hook=_read_number)


def read_body(kind: type[R], body: bytes, path: Mapping[str, str]) -> R:
    if not body.strip():
        raise UsageError("the body is missing", "send a JSON object")
    try:
        table = _DECODER.decode(body)
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
    return make_request(kind, path, table)


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
    """What is wrong with a request besides its parameters: a row of `tables/api.toml`."""

    def __init__(
        self, name: str, value: str | None = None, parameter: str = "", **words: object
    ) -> None:
        row = load_table("api")["refusals"][name]
        parameter = parameter or row.get("parameter", "")
        what, fix = (row[part].format(**words) for part in ("what", "fix"))
        super().__init__(what, fix, parameter=parameter, value=value)
        headers = row.get("headers", {}).items()
        self.row = row | {"headers": {header: text.format(**words) for header, text in headers}}


def make_problem(error: YesterError) -> tuple[Problem, Mapping[str, str]]:
    """What yester raises on purpose, as an answer and its headers."""
    rows = load_table("api")["errors"]
    kinds = (kind.__name__ for kind in type(error).__mro__)
    row = error.row if isinstance(error, Refusal) else next(rows[k] for k in kinds if k in rows)
    fix = redact(error.fix or row.get("fix", ""))
    lists = load_table("api")["lists"].get(error.parameter)
    if isinstance(error, NotFound) and lists and not fix.startswith("did you mean"):
        fix += f" ({lists})"
    problem = Problem(
        title=HTTPStatus(row["status"]).phrase,
        status=row["status"],
        detail=redact(error.what),
        parameter=error.parameter or UNSET,
        value=UNSET if error.value is None else quote_value(error.value),
        fix=fix or UNSET,
    )
    return problem, row.get("headers", {})


def make_problem_response(error: YesterError) -> Response:
    problem, headers = make_problem(error)
    return Response(msgspec.json.encode(problem), problem.status, headers, CONTENT_TYPE)
