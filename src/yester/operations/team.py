"""On a server that many use: who asks, and what was done."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from yester.caller import Act, Caller, Role, Scope
from yester.memory import Memory
from yester.operations.request import NoRequest, Request, make_answer
from yester.store import read_audit


class CallerShown(Struct, kw_only=True):
    """Times are milliseconds, 0 for never. `projects`: by name those that the token is good for;
    none means all that this user may see."""

    tenant: str
    user: str
    role: Role
    token: int
    scopes: list[Scope]
    projects: list[str]
    expires: int


class AuditRequest(Request, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class Audit(Struct, kw_only=True):
    acts: list[Act]


def find_caller(memory: Memory) -> Caller:
    """Who asks; only a server that many use is asked by somebody."""
    if memory.caller is None:
        raise RuntimeError("this is asked of a server that many use")
    return memory.caller


def show_caller(memory: Memory, request: NoRequest) -> CallerShown:  # noqa: ARG001
    """Whose token this is, and what it is good for."""
    caller = find_caller(memory)
    projects = [] if caller.projects is None else [one.name for one in memory.reading.projects()]
    return make_answer(
        CallerShown, caller, tenant=caller.tenant_name, scopes=sorted(caller.scopes),
        projects=projects, role=caller.role,
    )  # fmt: skip


def list_acts(memory: Memory, request: AuditRequest) -> Audit:
    """What was written, changed and refused, the newest first. Nobody can change this list."""
    find_caller(memory)
    return Audit(acts=read_audit(memory.store, request.limit))
