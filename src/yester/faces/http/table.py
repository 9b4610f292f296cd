"""Every endpoint, a row each: routes, the OpenAPI document, the help for a model and the reference
page are made from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Struct

from yester.memory import Memory
from yester.model import replace
from yester.operate.doctor import examine_quickly
from yester.operations import (
    actions,
    authorship,
    forget,
    items,
    ledger,
    memories,
    preview,
    privacy,
    projects,
    search,
    sessions,
    settings,
    stats,
)
from yester.operations.answer import make_answer
from yester.operations.fields import about
from yester.operations.request import NoRequest, Parameter, Request, list_parameters

TEXT = "text/plain; charset=utf-8"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`operation` is None for what the app answers itself: login, stream, the document. Where there
    is a `conflict`, what cannot be done is at odds with what there is, whatever was sent: it is
    answered with 409, and this is the way out."""

    method: str
    path: str
    does: str
    request: type[Request]
    answer: Any
    operation: Callable[[Memory, Any], Any] | None = None
    group: str = ""
    example: str = ""  # what stands behind the path
    open: bool = False  # without a token
    content: str = "application/json"
    conflict: str = ""

    @property
    def path_parameters(self) -> Mapping[str, Parameter]:
        known = list_parameters(self.request)
        return {name: one for name, one in known.items() if f"{{{name}}}" in self.path}

    @property
    def other_parameters(self) -> Mapping[str, Parameter]:
        known = list_parameters(self.request)
        return {name: one for name, one in known.items() if f"{{{name}}}" not in self.path}

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PATCH", "PUT")


def _row(
    where: str,
    operation: Callable[[Memory, Any], Any],
    example: str = "",
    request: type[Request] | None = None,
    does: str = "",
    **more: Any,
) -> Endpoint:
    """An operation at its place. What it is asked and answers stands in its signature, what it does
    in the first paragraph of its docstring or, where several ask the same, of the request's."""
    method, path = where.split()
    hints = get_type_hints(operation)
    help_ = does or (request and request.__doc__) or operation.__doc__ or ""
    return Endpoint(
        method, path, " ".join(help_.split("\n\n")[0].split()), request or hints["request"],
        hints["return"], operation, example=example, **more,
    )  # fmt: skip


def _group(name: str, *rows: Endpoint) -> Sequence[Endpoint]:
    return [replace(row, group=name) for row in rows]


# --- what the app answers itself ------------------------------------------------------------------


class Login(Request, kw_only=True):
    code: Annotated[str, about("The one-time code.", min_length=1, max_length=200)]


class Bearer(Struct, kw_only=True):
    token: str
    expires_in: int


class Health(Struct, kw_only=True):
    status: Literal["ok"]
    version: str


class Operation(Struct, kw_only=True):
    endpoint: str
    does: str
    parameters: dict[str, str]
    also: Annotated[str, about("Which of the parameters many share it takes as well.")]
    example: str


class Manual(Struct, kw_only=True):
    """How to use the API, for a model."""

    title: str
    workflow: list[str]
    rules: list[str]
    headers: str
    search: Annotated[dict[str, str], about("Parameters of every search.")]
    filters: Annotated[dict[str, str], about("What narrows it.")]
    operations: list[Operation]
    more: str


# --- what the doctor says; nothing is put right over HTTP -----------------------------------------

_KEPT = 15.0  # seconds: it looks at many files
_NOTE = (
    "A glance: hooks are not run and the store is not read through; `yester doctor` does both. The "
    "server knows the HOME of your account ({home}) and the system's PATH, not those of your shell."
)
_AREAS: Mapping[str, str] = {
    "versions": "yester", "settings": "yester", "home": "yester", "disk": "yester",
    "folders": "yester", "permissions": "yester", "python3": "capture", "launch": "capture",
    "worker": "capture", "socket": "capture", "spool": "capture", "log": "capture",
    "transcripts": "capture", "model": "store", "store": "store", "index": "store",
    "backups": "store",
}  # fmt: skip


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


def show_health(memory: Memory, request: NoRequest) -> Doctor:  # noqa: ARG001
    """Is everything as it should be? Nothing is changed."""
    return memory.cached("doctor", _KEPT, lambda: _examine_home(memory))


def _examine_home(memory: Memory) -> Doctor:
    findings = [
        make_answer(
            Finding, one, area=_AREAS.get(one.check, "agents"), name=one.check,
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


# --- the table ------------------------------------------------------------------------------------

_SEARCH = _group(
    "Search",
    _row("GET /api/search", search.search_items, "?query=retry+webhook&limit=5",
         search.EverythingSearch),
    _row("GET /api/search/observations", search.search_items, "?query=authentication&limit=5",
         search.ObservationSearch),
    _row("GET /api/search/sessions", search.search_items, "?query=deadlock&limit=5",
         search.SessionSearch),
    _row("GET /api/search/prompts", search.search_items, "?query=never&limit=5",
         search.PromptSearch),
    _row("GET /api/search/by-type", search.search_items, "?type=bugfix&dateStart=1w&limit=5",
         search.TypeSearch),
    _row("GET /api/search/by-file", search.search_items, "?filePath=src/auth.py&limit=5",
         search.FileSearch),
    _row("GET /api/search/by-concept", search.search_items, "?concept=gotcha&limit=5",
         search.ConceptSearch),
    _row("GET /api/fix", actions.find_fixes, "?text=error:+unknown+flag+--frob&project=shop"),
    _row("GET /api/search/recent-context", sessions.show_recent, "?project=shop"),
    _row("GET /api/search/timeline", sessions.show_timeline, "?anchor=138&depth_before=5",
         sessions.TimelineRequest),
    _row("GET /api/search/timeline-by-query", sessions.show_timeline, "?query=drop+redis",
         sessions.TimelineByQuery),
    Endpoint("GET", "/api/search/help", "How to use all this, for a model.", NoRequest, Manual),
    _row("GET /api/timeline", sessions.show_timeline, "?anchor=S12", sessions.TimelineRequest,
         "The same as /api/search/timeline: what happened around something."),
    _row("GET /api/why", authorship.explain_lines, "?file=src/auth.py:40-60&project=shop"),
)  # fmt: skip

_AS_IT_IS_NOW = "read it again; `actions` and `fields` say what can be done"
_READ = _group(
    "Items",
    _row("POST /api/observations/batch", items.show_items, '{"ids": [138, 139]}'),
    _row("GET /api/items", items.list_items, "?kinds=prompt&limit=5"),
    _row("GET /api/items/{id}", items.show_item, "/api/items/138"),
    _row("GET /api/sessions", sessions.list_sessions, "?project=shop"),
    _row("GET /api/sessions/{session}", sessions.show_session, "/api/sessions/S12"),
    _row("GET /api/sessions/{session}/transcript", sessions.show_transcript,
         "/api/sessions/S12/transcript?limit=20"),
    _row("GET /api/memories", memories.list_memories, "?status=all"),
    _row("GET /api/memories/{id}", memories.show_memory, "/api/memories/12"),
    _row("PATCH /api/memories/{id}", memories.edit_memory,
         '{"version": 3, "title": "Times are UTC", "content": {"severity": "high"}}',
         conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/retire", memories.retire_memory, '{"why": "no longer true"}',
         conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/archive", memories.archive_memory, "{}", conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/restore", memories.restore_memory, "{}", conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/undo", memories.undo_memory, "{}", conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/supersede", memories.supersede_memory,
         '{"text": "Orders keep local time and zone.", "why": "audit"}', conflict=_AS_IT_IS_NOW),
    _row("POST /api/memory/save", memories.save_memory,
         '{"text": "Orders keep UTC.", "project": "shop"}'),
    _row("GET /api/memory/candidate", memories.find_candidate,
         "?type=decision&text=Orders+keep+UTC&project=shop"),
    _row("GET /api/review", memories.review_memories, "?project=shop"),
)  # fmt: skip

_CONTEXT = _group(
    "Context",
    _row("GET /api/context/inject", preview.preview_text, "?project=shop", content=TEXT),
    _row("GET /api/context/preview", preview.preview_context, "?project=shop"),
    _row("GET /api/context/recent", sessions.show_recent, "?limit=3",
         does="The same as /api/search/recent-context."),
    _row("GET /api/injections", ledger.list_injections, "?session=S12"),
    _row("GET /api/feedback", ledger.list_feedback),
    _row("POST /api/feedback", ledger.give_feedback, '{"ids": [138], "what": "useful"}'),
)  # fmt: skip

_ABOUT = _group(
    "About the memory",
    _row("GET /api/stats", stats.count_contents),
    _row("GET /api/series", stats.count_days, "?days=30"),
    _row("GET /api/doctor", show_health),
    _row("GET /api/spend", stats.count_spending),
    _row("GET /api/projects", projects.list_projects),
    _row("PATCH /api/projects", projects.rename_project,
         '{"key": "git:example.org/acme/shop", "name": "shop"}',
         conflict="GET /api/projects lists them"),
    _row("POST /api/projects/private", projects.set_private,
         '{"key": "shop", "private": true}', conflict="GET /api/projects lists them"),
    _row("POST /api/projects/merge", projects.merge_projects,
         '{"from": "shop-old", "into": "shop", "dry_run": false}',
         conflict="GET /api/projects lists them"),
    _row("GET /api/facets", search.count_facets, request=search.EverythingSearch),
    _row("GET /api/settings", settings.list_settings),
    _row("PATCH /api/settings", settings.change_settings, '{"thinking": false}',
         settings.SettingsRequest, conflict="edit config.toml with an editor"),
)  # fmt: skip

_FORGETTING = _group(
    "Forgetting",
    _row("POST /api/forget", forget.forget_items, '{"query": "project falcon", "yes": false}',
         conflict="say which: ids alone, or a query, session, project, files, agent, dates"),
    _row("POST /api/forget/verify", privacy.verify_absence, '{"strings": ["project falcon"]}'),
    _row("POST /api/redact", forget.redact_again, '{"yes": false}'),
    _row("GET /api/privacy", privacy.show_privacy),
)  # fmt: skip

_DOOR = _group(
    "The door",
    Endpoint("GET", "/health", "Is it there?", NoRequest, Health, open=True),
    Endpoint("POST", "/api/login", "A bearer for the one-time code of `yester ui`.",
             Login, Bearer, open=True, example='{"code": "…"}'),
    Endpoint("GET", "/api/openapi.json", "All this as an OpenAPI document.",
             NoRequest, dict[str, Any]),
    Endpoint("GET", "/stream", "What is new, as it happens (server-sent events): `ready` (first, "
             "where the stream stands), `item` (a row), `injection` (a line of the ledger), "
             "`memory` (id, status and version of a memory that was written), `gap` (too much was "
             "missed: load anew). Send the last event's id as the header Last-Event-ID to go on "
             "there.",
             NoRequest, str, content=EVENTS),
)  # fmt: skip

ENDPOINTS: Sequence[Endpoint] = (*_SEARCH, *_READ, *_CONTEXT, *_ABOUT, *_FORGETTING, *_DOOR)

# What claude-mem's scripts ask for, and what to use here instead.
ELSEWHERE: Mapping[str, str] = {
    "/api/import": "on the command line: yester import claude-mem FILE",
    "/api/sdk-sessions/batch": "use GET /api/sessions; all there is: yester export jsonl FILE",
    "/api/observations": "use GET /api/items?kinds=observation",
    "/api/summaries": "use GET /api/items?kinds=summary",
    "/api/prompts": "use GET /api/items?kinds=prompt",
    "/api/health": "use GET /health",
    "/api/readiness": "use GET /health",
    "/api/version": "use GET /health",
    "/api/observation/": "use GET /api/items/ID",
    "/api/prompt/": "use GET /api/items/ID",
    "/api/session/": "use GET /api/sessions/ID",
    "/api/context/timeline": "use GET /api/timeline",
    "/api/decisions": "use GET /api/search?obs_type=decision",
    "/api/changes": "use GET /api/search?obs_type=change",
    "/api/how-it-works": "use GET /api/search?concepts=how-it-works",
}
