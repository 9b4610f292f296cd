"""On a server that many use: who asks, what was done, and what members share with each other."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from yester.caller import Act, Caller, Role, Scope
from yester.memory import Memory
from yester.operations import fields
from yester.operations.request import Request, make_answer
from yester.sharing.team import Member, Pushed, Told
from yester.sharing.wire import MOST_LINES
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


def show_caller(memory: Memory) -> CallerShown:
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


# --- what members share ---------------------------------------------------------------------------

_Origin = Annotated[str, Meta(min_length=8, max_length=80, pattern="^[0-9a-zA-Z-]+$")]
_Cursor = Annotated[str, Meta(max_length=80)]


class PushRequest(Request, kw_only=True):
    project: fields.GivenName
    origin: _Origin
    batch: Annotated[int, Meta(ge=1, lt=fields.LARGEST)]
    lines: Annotated[list[dict[str, Any]], Meta(max_length=MOST_LINES)]
    cursor: _Cursor = ""


class PullRequest(Request, kw_only=True):
    project: fields.GivenName
    cursor: _Cursor = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_LINES)] = MOST_LINES
    wait: Annotated[int, Meta(ge=0, le=20)] = 0


class WithdrawRequest(Request, kw_only=True):
    project: fields.GivenName
    origin: _Origin


class Withdrawn(Struct, kw_only=True):
    lines: int


def _find_member(memory: Memory) -> Member:
    return Member(memory.store, memory.home, find_caller(memory).user, memory.now)


def push_lines(memory: Memory, request: PushRequest) -> Pushed:
    """Tell the others what a store has of a project, line by line; each is answered by itself. The
    same batch again is answered as before, and stored once."""
    return _find_member(memory).push_lines(
        request.project, request.origin, request.batch, request.lines, request.cursor
    )


def pull_lines(memory: Memory, request: PullRequest) -> Told:
    """What the members have told of a project behind a cursor. 410: begin anew, without one."""
    project = memory.find_project(request.project)
    return _find_member(memory).read_lines(project.key, request.cursor, request.limit, request.wait)


def withdraw_lines(memory: Memory, request: WithdrawRequest) -> Withdrawn:
    """Share no more of a project: what is the caller's goes here and from every member's store."""
    lines = _find_member(memory).withdraw_project(request.project, request.origin)
    return Withdrawn(lines=lines)
