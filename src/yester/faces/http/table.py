"""Every endpoint, a row each of `tables/api.toml`: routes, the OpenAPI document, the help for a
model (`/api/search/help`) and the reference page are made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct

from yester import __version__
from yester.caller import Scope
from yester.faces.http.login import Grants, GrantUse
from yester.faces.http.request import Problem
from yester.memory import Memory
from yester.operate.doctor import examine_quickly
from yester.operations import request as requests
from yester.operations.search import SearchRequest
from yester.tables import load_table

TEXT = "text/plain; charset=utf-8"
EVENTS = "text/event-stream"
LARGEST_BODY = 256 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of the table, whose head explains it. `operation` is None for what the app answers
    itself: login, stream, the document."""

    method: str
    path: str
    does: str
    request: type[requests.Request]
    answer: Any
    operation: Callable[[Memory, Any], Any] | None = None
    group: str = ""
    fixed: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    open: bool = False
    scope: Scope | None = None
    team: bool = False
    largest: int = LARGEST_BODY
    content: str = "application/json"
    conflict: str = ""

    @property
    def path_parameters(self) -> Mapping[str, requests.Parameter]:
        return self._choose_parameters(in_path=True)

    @property
    def other_parameters(self) -> Mapping[str, requests.Parameter]:
        return self._choose_parameters(in_path=False)

    def _choose_parameters(self, in_path: bool) -> Mapping[str, requests.Parameter]:
        return {
            name: one
            for name, one in requests.list_parameters(self.request).items()
            if name not in self.fixed and (f"{{{name}}}" in self.path) == in_path
        }

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PATCH", "PUT")


# --- what the app answers itself ------------------------------------------------------------------


_Secret = Annotated[str, Meta(max_length=200)]


class Login(requests.Request, kw_only=True):
    code: _Secret = ""
    grant: _Secret = ""


class Bearer(Struct, kw_only=True):
    token: str
    expires_in: int


class Prove(requests.Request, kw_only=True):
    grant: _Secret
    nonce: Annotated[str, Meta(min_length=16, max_length=200)]


class Proof(Struct, kw_only=True):
    proof: str


class NewGrant(requests.Request, kw_only=True):
    browser: Annotated[str, Meta(max_length=100)] = ""


class NewGranted(Struct, kw_only=True):
    grant: str


class Health(Struct, kw_only=True):
    status: Literal["ok"]
    version: str


class Operation(Struct, kw_only=True):
    endpoint: str
    does: str
    parameters: dict[str, str]
    also: str
    example: str


class Manual(Struct, kw_only=True):
    """How to use the API, for a model."""

    title: str
    workflow: list[str]
    rules: list[str]
    headers: str
    search: dict[str, str]
    filters: dict[str, str]
    operations: list[Operation]
    more: str


# --- what the doctor says; nothing is put right over HTTP -----------------------------------------

_KEPT = 15.0  # seconds: it looks at many files
_NOTE = (
    "A glance: hooks are not run and the store is not read through; `yester doctor` does both. The "
    "server knows the HOME of your account ({home}) and the system's PATH, not those of your shell."
)


class Finding(Struct, kw_only=True):
    """What the doctor says of one thing."""

    area: str
    name: str
    state: Literal["ok", "warn", "bad"]
    text: str
    fix: str


class Doctor(Struct, kw_only=True):
    ok: bool
    findings: list[Finding]
    note: str


def show_health(memory: Memory) -> Doctor:
    """Is everything as it should be? Nothing is changed."""
    return memory.cached("doctor", _KEPT, lambda: _examine_home(memory))


def _examine_home(memory: Memory) -> Doctor:
    areas = {check: area for area, checks in load_table("api")["areas"].items() for check in checks}
    findings = [
        requests.make_answer(
            Finding, one, area=areas.get(one.check, "agents"), name=one.check,
            state=_name_state(one.state, one.fix),
        )
        for one in examine_quickly(memory.home, memory.now)
    ]  # fmt: skip
    ok = all(one.state != "bad" for one in findings)
    return Doctor(ok=ok, findings=findings, note=_NOTE.format(home=Path.home()))


def _name_state(state: str, fix: str) -> Literal["ok", "warn", "bad"]:
    """A note with something to do is a warning; one without is no more than said."""
    if state == "problem":
        return "bad"
    return "warn" if state == "note" and fix else "ok"


# --- tabs that may come back ----------------------------------------------------------------------


class GrantsShown(Struct, kw_only=True):
    grants: list[GrantUse]


class RevokeRequest(requests.Request, kw_only=True):
    names: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(min_length=1, max_length=200)]


class Revoked(Struct, kw_only=True):
    revoked: int


def list_grants(memory: Memory) -> GrantsShown:
    """Tabs of browsers that may come back without a new link."""
    return GrantsShown(grants=Grants(memory.home).list_grants())


def revoke_grants(memory: Memory, request: RevokeRequest) -> Revoked:
    """Lock tabs out: their grants are removed, and what they have been given ends at once."""
    memory.require_user("tabs are locked by the user alone")
    grants = Grants(memory.home)
    return Revoked(revoked=sum(grants.remove(name) for name in set(request.names)))


# --- the table ------------------------------------------------------------------------------------

# What the rows name of what the app answers itself.
_OWN = {one.__name__: one for one in (
    Login, Bearer, Prove, Proof, NewGrant, NewGranted, Health, Manual, dict, str,
)}  # fmt: skip


def _load_endpoints() -> Iterator[Endpoint]:
    for group, rows in load_table("api")["endpoints"].items():
        for where, row in rows.items():
            method, path = where.split()
            make = _operation_row if "operation" in row else _own_row
            yield Endpoint(method=method, path=path, group=group, **make(**row))


Row = dict[str, Any]  # what an endpoint is made of


def _own_row(answer: str, request: str = "", **more: Any) -> Row:
    return {"request": _OWN.get(request, requests.NoRequest), "answer": _OWN[answer], **more}


def _operation_row(operation: str, request: str = "", does: str = "", **more: Any) -> Row:
    module = operation.partition(":")[0]
    made = resolve_name(f"yester.{operation}")
    hints = {"request": requests.NoRequest} | get_type_hints(made)
    kind = resolve_name(f"yester.{module}:{request}") if request else hints["request"]
    asked = made if kind is not requests.NoRequest else lambda memory, _: made(memory)
    help_ = does or (request and kind.__doc__) or made.__doc__ or ""
    return {
        "operation": asked, "request": kind, "answer": hints["return"],
        "does": " ".join(help_.split("\n\n")[0].split()), **more,
    }  # fmt: skip


ALL_ENDPOINTS = tuple(_load_endpoints())
ENDPOINTS: Sequence[Endpoint] = tuple(one for one in ALL_ENDPOINTS if not one.team)
# Of a server that many use: what needs no machine of one's own, and what it has besides.
TEAM_ENDPOINTS: Sequence[Endpoint] = tuple(
    one for one in ALL_ENDPOINTS if one.scope or (one.open and one.team) or one.path == "/health"
)


# --- described: an OpenAPI 3.1 document, whose schemas come from the types that validate ----------

_REF = "#/components/schemas/{name}"


def make_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    document: dict[str, Any] = load_table("api")["document"]
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _describe_endpoint(one)
    return document | {
        "info": {"version": __version__, **document["info"]},
        "paths": paths,
        "components": {"schemas": _answer_schemas(endpoints), **document["components"]},
    }


def _answer_schemas(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    answers = list(dict.fromkeys(one.answer for one in endpoints))
    shapes = [one for one in answers if _is_struct(one)]
    _, schemas = msgspec.json.schema_components([*shapes, Problem], ref_template=_REF)
    for name, schema in schemas.items():
        for part, one in schema.get("properties", {}).items():
            if meaning := requests.find_meaning([name], part):
                one["description"] = meaning
    return schemas


def _is_struct(answer: Any) -> bool:
    return isinstance(answer, type) and issubclass(answer, msgspec.Struct)


def _describe_endpoint(one: Endpoint) -> dict[str, Any]:
    content = {one.content.partition(";")[0]: {"schema": _answer_schema(one)}}
    found: dict[str, Any] = {
        "summary": one.does,
        "operationId": _operation_id(one),
        "tags": [one.group],
        "responses": {
            "200": {"description": one.does, "content": content},
            "default": {"$ref": "#/components/responses/problem"},
        },
    }
    if one.open:
        found["security"] = []
    parameters = [_describe_parameter(p, "path") for p in one.path_parameters.values()]
    if one.has_body:
        body = {"application/json": {"schema": _body_schema(one.other_parameters)}}
        found["requestBody"] = {"required": True, "content": body}
    else:
        parameters += [_describe_parameter(p, "query") for p in one.other_parameters.values()]
    if one.content == EVENTS:
        parameters.append(load_table("api")["last_event"])
        found["description"] = one.does
        found["summary"] = "What is new, as it happens (server-sent events)."
    return found | ({"parameters": parameters} if parameters else {})


def _operation_id(one: Endpoint) -> str:
    words = one.path.replace("{", "").replace("}", "").replace(".json", "").split("/")
    path = "_".join(word.replace("-", "_") for word in words if word and word != "api")
    return f"{one.method.lower()}_{path}"


def _answer_schema(one: Endpoint) -> Mapping[str, Any]:
    if one.content in (TEXT, EVENTS):
        return {"type": "string"}
    if _is_struct(one.answer):
        return {"$ref": _REF.format(name=one.answer.__name__)}
    return {"type": "object"}


def _describe_parameter(one: requests.Parameter, where: str) -> dict[str, Any]:
    schema = {name: value for name, value in one.schema.items() if name != "description"}
    help_ = one.help
    if one.is_list:
        schema, help_ = _list_schema(schema), f"{help_} Several are written with commas."
    elif not one.required and one.default not in ("", 0):
        schema["default"] = one.default
    found: dict[str, Any] = {"name": one.name, "in": where, "schema": schema, "description": help_}
    return found | ({"required": True} if one.required else {})


def _list_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A list as it stands in an address. Not an array of style form: once it is written down,
    nobody can tell a comma in a value from one between two."""
    known = schema["items"].get("enum")
    if not known:
        return {"type": "string"}
    one = "|".join(known)
    return {"type": "string", "pattern": f"^(({one})(,({one}))*)?$"}


def _body_schema(parameters: Mapping[str, requests.Parameter]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, one in parameters.items():
        properties[name] = dict(one.schema)
        if not one.required and one.default is not UNSET:
            properties[name]["default"] = one.default
    required = [name for name, one in parameters.items() if one.required]
    return {
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


# --- for a model ----------------------------------------------------------------------------------

_AUTH, _JSON = '-H "$AUTH"', '-H "Content-Type: application/json"'
_OBVIOUS = ("a text", "a list of texts", "a time")
NONE = "–"
SHARED = frozenset(requests.FilteredRequest.__struct_fields__)
SEARCH = frozenset(SearchRequest.__struct_fields__) - SHARED
# What many take, and what it is called together.
_KNOWN: Sequence[tuple[str, type[requests.Request], frozenset[str]]] = (
    ("search", SearchRequest, SEARCH), ("filters", requests.FilteredRequest, SHARED),
)  # fmt: skip


def make_manual(base: str) -> Manual:
    table = load_table("api")
    wanted = [one for path in table["manual_of"]["paths"] for one in ENDPOINTS if one.path == path]
    shared = {
        name: _explain_parameters(requests.list_parameters(kind), SEARCH ^ SHARED ^ known)
        for name, kind, known in _KNOWN
    }
    operations = [_explain_endpoint(one, base) for one in wanted]
    return Manual(**table["manual"], **shared, operations=operations)  # type: ignore[arg-type]


def _explain_endpoint(one: Endpoint, base: str) -> Operation:
    also = {name: known for name, kind, known in _KNOWN if issubclass(one.request, kind)}
    return Operation(
        endpoint=f"{one.method} {one.path}",
        does=one.does,
        parameters=_explain_parameters(one.other_parameters, frozenset().union(*also.values())),
        also=" and ".join(also),
        example=_curl_command(one, base),
    )


def _curl_command(one: Endpoint, base: str) -> str:
    if one.has_body:
        return f"curl {_AUTH} {_JSON} -d '{one.example}' {base}{one.path}"
    path = one.example if one.example.startswith("/") else one.path + one.example
    return f"curl {_AUTH} '{base}{path}'"


def _explain_parameters(
    parameters: Mapping[str, requests.Parameter], known: frozenset[str]
) -> dict[str, str]:
    """Those besides what is known: what each is for, what may stand there, and what does where it
    is left out."""
    found = {}
    for name, one in parameters.items():
        if one.attribute not in known and not name.endswith("]"):  # the range in bracket form
            must, default = requests.describe_schema(one.schema), write_default(one)
            told = (
                one.help.rstrip("."),
                "" if must.startswith(_OBVIOUS) else must,
                "required" if one.required else "" if default == NONE else f"default {default}",
            )
            found[name] = "; ".join(filter(None, told))
    return found


def write_default(one: requests.Parameter) -> str:
    if one.default in ("", []) or one.default is UNSET:
        return NONE
    return f"`{str(one.default).lower() if isinstance(one.default, bool) else one.default}`"
