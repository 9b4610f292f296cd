"""A query string, a path and a body, read once, into the request of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from yester.errors import UsageError
from yester.memory import quote_value
from yester.operations.request import Request, list_parameters, make_request, split_list

R = TypeVar("R", bound=Request)
_MOST = 100  # parameters


def read_query(kind: type[R], query: bytes, path: Mapping[str, str]) -> R:
    return make_request(kind, {**_read_pairs(kind, query), **path}, {})


def read_body(kind: type[R], body: bytes, path: Mapping[str, str]) -> R:
    if not body.strip():
        raise UsageError("the body is missing", "send a JSON object")
    try:
        table = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the body is not JSON ({error})", "send a JSON object") from None
    except RecursionError:
        raise UsageError("the body is nested too deeply", "send a flat object") from None
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


def _read_pairs(kind: type[Request], query: bytes) -> dict[str, Any]:
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
    found: dict[str, Any] = {}
    for name, text in pairs:
        one = known.get(name)
        if one is not None and one.is_list:
            found.setdefault(name, []).extend(split_list(text))
        elif name in found:
            raise UsageError(
                f"{name} is there twice", "give it once", parameter=quote_value(name), value=text
            )
        else:
            found[name] = text
    return found
