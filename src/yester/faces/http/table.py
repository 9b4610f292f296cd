"""Every endpoint, a row each: routes, the OpenAPI document, the help for a model and the reference
page are made from this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from yester.faces.http import (
    context,
    figures,
    items,
    ledger,
    memories,
    parameters,
    projects,
    search,
    sessions,
    settings,
    shapes,
    timeline,
)
from yester.faces.http import memory_shapes as told
from yester.faces.http.given import Parameter, taken
from yester.faces.http.parameters import Given
from yester.memory import Memory

TEXT = "text/plain; charset=utf-8"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`call` is None for what the app answers itself: login, stream, the document."""

    method: str
    path: str
    does: str
    given: type[Given]
    answer: Any
    call: Callable[[Memory, Any], Any] | None = None
    group: str = ""
    example: str = ""  # what stands behind the path
    open: bool = False  # without a token
    content: str = "application/json"

    @property
    def in_path(self) -> Mapping[str, Parameter]:
        return {n: p for n, p in taken(self.given).items() if f"{{{n}}}" in self.path}

    @property
    def others(self) -> Mapping[str, Parameter]:
        return {n: p for n, p in taken(self.given).items() if f"{{{n}}}" not in self.path}

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PATCH", "PUT")


def _rows(group: str, *rows: Endpoint) -> Sequence[Endpoint]:
    return [replace(row, group=group) for row in rows]


_SEARCH = _rows(
    "Search",
    Endpoint("GET", "/api/search", "Search everything, or one kind of thing.",
             parameters.SearchAll, shapes.Found, search.everything,
             example="?query=retry+webhook&limit=5"),
    Endpoint("GET", "/api/search/observations", "What was found out, decided, fixed.",
             parameters.SearchObservations, shapes.Found, search.observations,
             example="?query=authentication&limit=5"),
    Endpoint("GET", "/api/search/sessions", "Sessions, by anything said in them.",
             parameters.SearchSessions, shapes.Found, search.sessions,
             example="?query=deadlock&limit=5"),
    Endpoint("GET", "/api/search/prompts", "What the user typed.",
             parameters.SearchPrompts, shapes.Found, search.prompts,
             example="?query=never&limit=5"),
    Endpoint("GET", "/api/search/by-type", "Items of one type.",
             parameters.ByType, shapes.Found, search.by_type,
             example="?type=bugfix&dateStart=1w&limit=5"),
    Endpoint("GET", "/api/search/by-file", "Items about a file.",
             parameters.ByFile, shapes.Found, search.by_file,
             example="?filePath=src/auth.py&limit=5"),
    Endpoint("GET", "/api/search/by-concept", "Items with a concept.",
             parameters.ByConcept, shapes.Found, search.by_concept,
             example="?concept=gotcha&limit=5"),
    Endpoint("GET", "/api/search/recent-context", "The last sessions with their summaries.",
             parameters.RecentOf, shapes.Recent, timeline.last, example="?project=shop"),
    Endpoint("GET", "/api/search/timeline", "What happened before and after something.",
             parameters.TimelineAt, shapes.Timeline, timeline.at,
             example="?anchor=138&depth_before=5"),
    Endpoint("GET", "/api/search/timeline-by-query", "The same around what fits a question best.",
             parameters.TimelineBy, shapes.Timeline, timeline.by_query,
             example="?query=drop+redis"),
    Endpoint("GET", "/api/search/help", "How to use all this, for a model.",
             parameters.Nothing, shapes.Manual),
    Endpoint("GET", "/api/timeline", "The same as /api/search/timeline: what happened around "
             "something.",
             parameters.TimelineAt, shapes.Timeline, timeline.at, example="?anchor=S12"),
)  # fmt: skip

_READ = _rows(
    "Items",
    Endpoint("POST", "/api/observations/batch", "Whole items by their ids.",
             parameters.Batch, shapes.Items, items.batch, example='{"ids": [138, 139]}'),
    Endpoint("GET", "/api/items", "Items by what they are, the newest first.",
             parameters.ItemsOf, shapes.Items, items.listed, example="?kinds=prompt&limit=5"),
    Endpoint("GET", "/api/items/{id}", "One item whole, and what is known of its use.",
             parameters.ItemAt, shapes.Item, items.one, example="/api/items/138"),
    Endpoint("GET", "/api/sessions", "Sessions, the newest first.",
             parameters.SessionsOf, shapes.Sessions, sessions.listed, example="?project=shop"),
    Endpoint("GET", "/api/sessions/{session}", "One session with its summary.",
             parameters.SessionAt, shapes.SessionShown, sessions.one, example="/api/sessions/S12"),
    Endpoint("GET", "/api/sessions/{session}/transcript", "What was recorded of it, in order.",
             parameters.TranscriptOf, shapes.Transcript, sessions.transcript,
             example="/api/sessions/S12/transcript?limit=20"),
    Endpoint("GET", "/api/memories", "What was remembered for its own sake.",
             parameters.MemoriesOf, told.Memories, memories.listed, example="?status=all"),
    Endpoint("GET", "/api/memories/{id}", "One memory, its history, and what can be done with it.",
             parameters.ItemAt, told.MemoryShown, memories.one, example="/api/memories/12"),
    Endpoint("PATCH", "/api/memories/{id}", "Change what it says. 409 where somebody else has "
             "changed the same since `version`.",
             parameters.EditMemory, told.MemoryShown, memories.edit,
             example='{"version": 3, "title": "Times are UTC", "content": {"severity": "high"}}'),
    Endpoint("POST", "/api/memories/{id}/retire", "Take it out of use; it is let go after 30 days.",
             parameters.RetireMemory, told.MemoryShown, memories.retire,
             example='{"why": "no longer true"}'),
    Endpoint("POST", "/api/memories/{id}/archive", "Put it away for good, without losing it.",
             parameters.MemoryStep, told.MemoryShown, memories.archive, example="{}"),
    Endpoint("POST", "/api/memories/{id}/restore", "Bring it back into use.",
             parameters.MemoryStep, told.MemoryShown, memories.restore, example="{}"),
    Endpoint("POST", "/api/memories/{id}/undo", "Take back the last change; twice brings it back.",
             parameters.MemoryStep, told.MemoryShown, memories.undo, example="{}"),
    Endpoint("POST", "/api/memories/{id}/supersede", "Put another in its place; answers with that.",
             parameters.SupersedeMemory, told.MemoryShown, memories.supersede,
             example='{"text": "Orders keep local time and zone.", "why": "audit"}'),
    Endpoint("POST", "/api/memory/save", "Keep something.",
             parameters.Save, shapes.Saved, memories.save,
             example='{"text": "Orders keep UTC.", "project": "shop"}'),
    Endpoint("GET", "/api/memory/candidate", "What saving a text would meet; writes nothing.",
             parameters.WouldBe, told.Candidate, memories.would_be,
             example="?type=decision&text=Orders+keep+UTC&project=shop"),
    Endpoint("GET", "/api/review", "Memories that deserve a look.",
             parameters.ReviewOf, told.Review, memories.review, example="?project=shop"),
)  # fmt: skip

_CONTEXT = _rows(
    "Context",
    Endpoint("GET", "/api/context/inject", "The text an agent would be given.",
             parameters.ContextFor, str, context.inject, example="?project=shop", content=TEXT),
    Endpoint("GET", "/api/context/preview", "The same, with the reason of each line.",
             parameters.ContextFor, shapes.ContextShown, context.preview, example="?project=shop"),
    Endpoint("GET", "/api/context/recent", "The same as /api/search/recent-context.",
             parameters.RecentOf, shapes.Recent, timeline.last, example="?limit=3"),
    Endpoint("GET", "/api/injections", "What agents were shown, the newest first.",
             parameters.LedgerOf, shapes.Ledger, ledger.injections, example="?session=S12"),
    Endpoint("GET", "/api/feedback", "What came of it, the newest first.",
             parameters.FeedbackOf, shapes.Feedback, ledger.feedback),
    Endpoint("POST", "/api/feedback", "Say whether items were of use.",
             parameters.GiveFeedback, shapes.Uses, ledger.give,
             example='{"ids": [138], "what": "useful"}'),
)  # fmt: skip

_ABOUT = _rows(
    "About the memory",
    Endpoint("GET", "/api/stats", "What the memory holds, what was shown.",
             parameters.Within, shapes.Stats, figures.stats),
    Endpoint("GET", "/api/series", "What happened day by day.",
             parameters.Series, shapes.Series, figures.series, example="?days=30"),
    Endpoint("GET", "/api/doctor", "Is everything as it should be? Nothing is changed.",
             parameters.Nothing, shapes.Doctor),
    Endpoint("GET", "/api/spend", "What language models have cost.",
             parameters.Within, shapes.Spend, figures.spend),
    Endpoint("GET", "/api/projects", "Projects, and what there is of each.",
             parameters.Nothing, shapes.Projects, projects.listed),
    Endpoint("PATCH", "/api/projects", "Give a project another name, for good; the user's alone.",
             parameters.RenameProject, shapes.Projects, projects.rename,
             example='{"key": "git:example.org/acme/shop", "name": "shop"}'),
    Endpoint("POST", "/api/projects/merge", "Make one project part of another, with what is "
             "captured later; the user's alone.",
             parameters.MergeProjects, shapes.Merged, projects.merge,
             example='{"from": "shop-old", "into": "shop", "dry_run": false}'),
    Endpoint("GET", "/api/facets", "What there is to filter for.",
             parameters.Nothing, shapes.Facets, figures.facets),
    Endpoint("GET", "/api/settings", "Every setting; secrets are masked.",
             parameters.Nothing, shapes.Settings, settings.listed),
    Endpoint("PATCH", "/api/settings", "Change some; not those that send data or name a path.",
             parameters.Change, shapes.Settings, settings.change,
             example='{"thinking": false}'),
)  # fmt: skip

_DOOR = _rows(
    "The door",
    Endpoint("GET", "/health", "Is it there?", parameters.Nothing, shapes.Health, open=True),
    Endpoint("POST", "/api/login", "A bearer for the one-time code of `yester ui`.",
             parameters.Login, shapes.Bearer, open=True, example='{"code": "…"}'),
    Endpoint("GET", "/api/openapi.json", "All this as an OpenAPI document.",
             parameters.Nothing, dict[str, Any]),
    Endpoint("GET", "/stream", "What is new, as it happens (server-sent events): `ready` (first, "
             "where the stream stands), `item` (a row), `injection` (a line of the ledger), "
             "`memory` (id, status and version of a memory that was written), `gap` (too much was "
             "missed: load anew). Send the last event's id as the header Last-Event-ID to go on "
             "there.",
             parameters.Nothing, str, content=EVENTS),
)  # fmt: skip

ENDPOINTS: Sequence[Endpoint] = (*_SEARCH, *_READ, *_CONTEXT, *_ABOUT, *_DOOR)
