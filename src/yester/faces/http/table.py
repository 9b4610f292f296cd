"""Every endpoint, a row each: routes, the OpenAPI document, the help for a model and the reference
page are made from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Meta, Struct

from yester.faces.http import doctor
from yester.memory import Memory
from yester.operations import (
    items,
    ledger,
    memories,
    preview,
    projects,
    search,
    sessions,
    settings,
    stats,
    timeline,
)
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
    def in_path(self) -> Mapping[str, Parameter]:
        known = list_parameters(self.request)
        return {name: one for name, one in known.items() if f"{{{name}}}" in self.path}

    @property
    def others(self) -> Mapping[str, Parameter]:
        known = list_parameters(self.request)
        return {name: one for name, one in known.items() if f"{{{name}}}" not in self.path}

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PATCH", "PUT")


def _row(
    where: str,
    operation: Callable[[Memory, Any], Any],
    does: str,
    example: str = "",
    request: type[Request] | None = None,
    **more: Any,
) -> Endpoint:
    """An operation at its place; what it is asked and answers stands in its signature."""
    method, path = where.split()
    hints = get_type_hints(operation)
    return Endpoint(
        method, path, does, request or hints["request"], hints["return"], operation,
        example=example, **more,
    )  # fmt: skip


def _group(name: str, *rows: Endpoint) -> Sequence[Endpoint]:
    return [replace(row, group=name) for row in rows]


# --- what the app answers itself ------------------------------------------------------------------


class Login(Request, kw_only=True):
    code: Annotated[str, Meta(min_length=1, max_length=200, description="The one-time code.")]


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
    also: Annotated[str, Meta(description="Which of the parameters many share it takes as well.")]
    example: str


class Manual(Struct, kw_only=True):
    """How to use the API, for a model."""

    title: str
    workflow: list[str]
    rules: list[str]
    headers: str
    search: Annotated[dict[str, str], Meta(description="Parameters of every search.")]
    filters: Annotated[dict[str, str], Meta(description="What narrows it.")]
    operations: list[Operation]
    more: str


# --- the table ------------------------------------------------------------------------------------

_SEARCH = _group(
    "Search",
    _row("GET /api/search", search.search_items, "Search everything, or one kind of thing.",
         "?query=retry+webhook&limit=5", search.EverythingSearch),
    _row("GET /api/search/observations", search.search_items,
         "What was found out, decided, fixed.",
         "?query=authentication&limit=5", search.ObservationSearch),
    _row("GET /api/search/sessions", search.search_items, "Sessions, by anything said in them.",
         "?query=deadlock&limit=5", search.SessionSearch),
    _row("GET /api/search/prompts", search.search_items, "What the user typed.",
         "?query=never&limit=5", search.PromptSearch),
    _row("GET /api/search/by-type", search.search_items, "Items of one type.",
         "?type=bugfix&dateStart=1w&limit=5", search.TypeSearch),
    _row("GET /api/search/by-file", search.search_items, "Items about a file.",
         "?filePath=src/auth.py&limit=5", search.FileSearch),
    _row("GET /api/search/by-concept", search.search_items, "Items with a concept.",
         "?concept=gotcha&limit=5", search.ConceptSearch),
    _row("GET /api/search/recent-context", timeline.show_recent,
         "The last sessions with their summaries.", "?project=shop"),
    _row("GET /api/search/timeline", timeline.show_timeline,
         "What happened before and after something.", "?anchor=138&depth_before=5",
         timeline.TimelineRequest),
    _row("GET /api/search/timeline-by-query", timeline.show_timeline,
         "The same around what fits a question best.", "?query=drop+redis",
         timeline.TimelineByQuery),
    Endpoint("GET", "/api/search/help", "How to use all this, for a model.", NoRequest, Manual),
    _row("GET /api/timeline", timeline.show_timeline,
         "The same as /api/search/timeline: what happened around something.", "?anchor=S12",
         timeline.TimelineRequest),
)  # fmt: skip

_AS_IT_IS_NOW = "read it again; `actions` and `fields` say what can be done"
_READ = _group(
    "Items",
    _row("POST /api/observations/batch", items.show_items, "Whole items by their ids.",
         '{"ids": [138, 139]}'),
    _row("GET /api/items", items.list_items, "Items by what they are, the newest first.",
         "?kinds=prompt&limit=5"),
    _row("GET /api/items/{id}", items.show_item, "One item whole, and what is known of its use.",
         "/api/items/138"),
    _row("GET /api/sessions", sessions.list_sessions, "Sessions, the newest first.",
         "?project=shop"),
    _row("GET /api/sessions/{session}", sessions.show_session, "One session with its summary.",
         "/api/sessions/S12"),
    _row("GET /api/sessions/{session}/transcript", sessions.show_transcript,
         "What was recorded of it, in order.", "/api/sessions/S12/transcript?limit=20"),
    _row("GET /api/memories", memories.list_memories, "What was remembered for its own sake.",
         "?status=all"),
    _row("GET /api/memories/{id}", memories.show_memory,
         "One memory, its history, and what can be done with it.", "/api/memories/12"),
    _row("PATCH /api/memories/{id}", memories.edit_memory,
         "Change what it says. 409 where somebody else has changed the same since `version`.",
         '{"version": 3, "title": "Times are UTC", "content": {"severity": "high"}}',
         conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/retire", memories.retire_memory,
         "Take it out of use; it is let go after 30 days.", '{"why": "no longer true"}',
         conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/archive", memories.archive_memory,
         "Put it away for good, without losing it.", "{}", conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/restore", memories.restore_memory, "Bring it back into use.",
         "{}", conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/undo", memories.undo_memory,
         "Take back the last change; twice brings it back.", "{}", conflict=_AS_IT_IS_NOW),
    _row("POST /api/memories/{id}/supersede", memories.supersede_memory,
         "Put another in its place; answers with that.",
         '{"text": "Orders keep local time and zone.", "why": "audit"}', conflict=_AS_IT_IS_NOW),
    _row("POST /api/memory/save", memories.save_memory, "Keep something.",
         '{"text": "Orders keep UTC.", "project": "shop"}'),
    _row("GET /api/memory/candidate", memories.find_candidate,
         "What saving a text would meet; writes nothing.",
         "?type=decision&text=Orders+keep+UTC&project=shop"),
    _row("GET /api/review", memories.review_memories, "Memories that deserve a look.",
         "?project=shop"),
)  # fmt: skip

_CONTEXT = _group(
    "Context",
    _row("GET /api/context/inject", preview.preview_text, "The text an agent would be given.",
         "?project=shop", content=TEXT),
    _row("GET /api/context/preview", preview.preview_context,
         "The same, with the reason of each line.", "?project=shop"),
    _row("GET /api/context/recent", timeline.show_recent,
         "The same as /api/search/recent-context.", "?limit=3"),
    _row("GET /api/injections", ledger.list_injections,
         "What agents were shown, the newest first.", "?session=S12"),
    _row("GET /api/feedback", ledger.list_feedback, "What came of it, the newest first."),
    _row("POST /api/feedback", ledger.give_feedback, "Say whether items were of use.",
         '{"ids": [138], "what": "useful"}'),
)  # fmt: skip

_ABOUT = _group(
    "About the memory",
    _row("GET /api/stats", stats.count_contents, "What the memory holds, what was shown."),
    _row("GET /api/series", stats.count_days, "What happened day by day.", "?days=30"),
    _row("GET /api/doctor", doctor.show_health,
         "Is everything as it should be? Nothing is changed."),
    _row("GET /api/spend", stats.count_spending, "What language models have cost."),
    _row("GET /api/projects", projects.list_projects, "Projects, and what there is of each."),
    _row("PATCH /api/projects", projects.rename_project,
         "Give a project another name, for good; the user's alone.",
         '{"key": "git:example.org/acme/shop", "name": "shop"}',
         conflict="GET /api/projects lists them"),
    _row("POST /api/projects/merge", projects.merge_projects,
         "Make one project part of another, with what is captured later; the user's alone.",
         '{"from": "shop-old", "into": "shop", "dry_run": false}',
         conflict="GET /api/projects lists them"),
    _row("GET /api/facets", stats.list_facets, "What there is to filter for."),
    _row("GET /api/settings", settings.list_settings, "Every setting; secrets are masked."),
    _row("PATCH /api/settings", settings.change_settings,
         "Change some; not those that send data or name a path.", '{"thinking": false}',
         settings.SettingsRequest, conflict="edit config.toml with an editor"),
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

ENDPOINTS: Sequence[Endpoint] = (*_SEARCH, *_READ, *_CONTEXT, *_ABOUT, *_DOOR)
