"""One question, four faces, one answer: what the command line (--json), HTTP, the MCP tools and
Python are asked in the same words they answer with the same items in the same order.

A row of the table has the question as each face takes it; a face that has no such question has
None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import yester
from tests.serving import Serving, serving
from yester.faces.cli.app import render_json
from yester.faces.mcp.calls import answer_call, open_for_tools
from yester.faces.mcp.server import load_tools

TOOLS = load_tools()
NO_MODEL = {"YESTER_EMBEDDER": "none"}
DAY = 86_400
PROMPT = "why did we drop redis, were the prices stale?"
NOON = 1_772_366_400  # 2026-03-01T12:00:00Z


def item(number: int, text: str, **more: Any) -> dict[str, Any]:
    day = NOON + number * DAY
    return {"ref": str(number), "text": text, "project": "shop", "epoch": day, **more}


ITEMS = [
    item(1, "Cache the pages with redis?", kind="prompt", role="user", session="aaaaaa-1"),
    item(2, "Redis keeps pages for a minute.", kind="message", session="aaaaaa-1"),
    item(3, "We dropped redis: prices were stale.", kind="observation", type="decision",
         title="No redis any more", concepts=["trade-off"], files=["shop/pages.py"],
         session="aaaaaa-1"),
    item(4, "Never cache prices, redis or not.", kind="prompt", role="user", session="bbbbbb-2"),
    item(5, "The price view reads the table.", kind="observation", type="bugfix",
         title="Prices are fresh", concepts=["gotcha"], session="bbbbbb-2"),
    item(6, "Redis runs in the bakery, too.", kind="observation", type="discovery",
         title="Bakery redis", project="bakery", session="cccccc-3"),
]  # fmt: skip


@dataclass(frozen=True)
class Question:
    """`python` is asked of an open memory and gives hits."""

    name: str
    cli: tuple[str, ...] | None
    http: tuple[str, dict[str, Any]] | None
    mcp: tuple[str, dict[str, Any]] | None
    python: Callable[[Any], Any] | None


QUESTIONS = [
    Question(
        "search",
        ("recall", "redis"),
        ("/api/search", {"query": "redis"}),
        ("search", {"query": "redis"}),
        lambda memory: memory.recall("redis"),
    ),
    Question(
        "search in a conversation",
        None,
        ("/api/search", {"query": "redis", "before": "the cache", "session": "s1", "limit": 9}),
        None,
        lambda memory: memory.recall("redis", 9, before="the cache", session="s1"),
    ),
    Question(
        "search, a page of it",
        ("recall", "redis", "-n", "2", "--offset", "1"),
        ("/api/search", {"query": "redis", "limit": 2, "offset": 1}),
        ("search", {"query": "redis", "limit": 2, "offset": 1}),
        lambda memory: memory.recall("redis", k=2, offset=1),
    ),
    Question(
        "search, the oldest first",
        ("recall", "redis", "--order", "date_asc"),
        ("/api/search", {"query": "redis", "orderBy": "date_asc"}),
        ("search", {"query": "redis", "orderBy": "date_asc"}),
        lambda memory: memory.recall("redis", order="date_asc"),
    ),
    Question(
        "search without words",
        ("recall",),
        ("/api/search", {}),
        ("search", {}),
        lambda memory: memory.recall(""),
    ),
    Question(
        "search in a project",
        ("recall", "redis", "--project", "shop"),
        ("/api/search", {"query": "redis", "project": "shop"}),
        ("search", {"query": "redis", "project": "shop"}),
        lambda memory: memory.recall("redis", project="shop", scope="project"),
    ),
    Question(
        "search of a type",
        ("recall", "--type", "decision", "--type", "bugfix"),
        ("/api/search/by-type", {"type": "decision,bugfix"}),
        ("search", {"obs_type": "decision,bugfix"}),
        lambda memory: memory.recall("", types=("decision", "bugfix")),
    ),
    Question(
        "search of prompts",
        ("recall", "redis", "--kind", "prompt"),
        ("/api/search/prompts", {"query": "redis"}),
        ("search", {"query": "redis", "type": "prompts"}),
        lambda memory: memory.recall("redis", kinds=("prompt",)),
    ),
    Question(
        "search of observations, memories and notes",
        ("recall", "redis", "--kind", "observation", "--kind", "memory", "--kind", "note"),
        ("/api/search/observations", {"query": "redis"}),
        ("search", {"query": "redis", "type": "observations"}),
        lambda memory: memory.recall("redis", kinds=("observation", "memory", "note")),
    ),
    Question(
        "search by concept",
        ("recall", "--concept", "gotcha"),
        ("/api/search/by-concept", {"concept": "gotcha"}),
        None,
        lambda memory: memory.recall("", concepts=("gotcha",)),
    ),
    Question(
        "search by file",
        ("recall", "--file", "pages.py"),
        ("/api/search/by-file", {"filePath": "pages.py"}),
        None,
        None,
    ),
    Question(
        "search in a session",
        ("recall", "--session", "aaaaaa"),
        ("/api/search", {"session": "aaaaaa"}),
        None,
        lambda memory: memory.recall("", session="aaaaaa"),
    ),
    Question(
        "search since a day",
        ("recall", "--since", "2026-03-04"),
        ("/api/search", {"dateStart": "2026-03-04"}),
        ("search", {"dateStart": "2026-03-04"}),
        lambda memory: memory.recall("", since="2026-03-04"),
    ),
    Question(
        "search until a day, which belongs to it",
        ("recall", "--until", "2026-03-04"),
        ("/api/search", {"dateEnd": "2026-03-04"}),
        ("search", {"dateEnd": "2026-03-04"}),
        lambda memory: memory.recall("", until="2026-03-04"),
    ),
    Question(
        "search with the dates in the question",
        ("recall", "redis since:2026-03-02 until:2026-03-04"),
        ("/api/search", {"query": "redis since:2026-03-02 until:2026-03-04"}),
        ("search", {"query": "redis since:2026-03-02 until:2026-03-04"}),
        lambda memory: memory.recall("redis since:2026-03-02 until:2026-03-04"),
    ),
    Question(
        "items by their id",
        ("show", "5", "2"),
        None,
        ("get_observations", {"ids": [5, 2]}),
        lambda memory: memory.get([5, 2]),
    ),
    Question(
        "timeline around an item",
        ("timeline", "3", "-b", "2", "-a", "1"),
        ("/api/timeline", {"anchor": "3", "depth_before": 2, "depth_after": 1}),
        ("timeline", {"anchor": "3", "depth_before": 2, "depth_after": 1}),
        lambda memory: memory.timeline("3", 2, 1),
    ),
    Question(
        "timeline around a session",
        ("timeline", "Sbbbbbb", "-b", "1", "-a", "1"),
        ("/api/search/timeline", {"anchor": "Sbbbbbb", "depth_before": 1, "depth_after": 1}),
        ("timeline", {"anchor": "Sbbbbbb", "depth_before": 1, "depth_after": 1}),
        lambda memory: memory.timeline("Sbbbbbb", 1, 1),
    ),
    Question(
        "timeline around the newest that fits",
        ("timeline", "latest", "--query", "redis", "-b", "1", "-a", "1"),
        ("/api/search/timeline-by-query",
         {"query": "redis", "anchor": "latest", "depth_before": 1, "depth_after": 1}),
        ("timeline", {"query": "redis", "anchor": "latest", "depth_before": 1, "depth_after": 1}),
        lambda memory: memory.timeline("latest", 1, 1, query="redis"),
    ),
    Question(
        "timeline around a day",
        ("timeline", "2026-03-05", "-b", "2", "-a", "2"),
        ("/api/timeline", {"anchor": "2026-03-05", "depth_before": 2, "depth_after": 2}),
        ("timeline", {"anchor": "2026-03-05", "depth_before": 2, "depth_after": 2}),
        lambda memory: memory.timeline("2026-03-05", 2, 2),
    ),
]  # fmt: skip


class Faces:
    """The four faces of one memory."""

    def __init__(self, run: Callable[..., Any], api: Serving, tools: Any, memory: Any) -> None:
        self._run, self._api, self._tools, self.memory = run, api, tools, memory

    def cli(self, *words: str) -> Any:
        return self._run(*words, "--json").json

    def http(self, path: str, **query: Any) -> Any:
        return self._api.get(path, **query)

    def http_rows(self, path: str, name: str) -> Any:
        """Rows with their times as the command line tells them: in seconds, and in ISO 8601."""
        return json.loads(render_json(self._api.get(path)[name]))

    def post(self, path: str, **table: Any) -> Any:
        return self._api.send(path, table, token=self._api.user()).json

    def mcp(self, tool: str, **given: Any) -> str:
        text, failed = answer_call(TOOLS[tool], lambda: self._tools, given)
        assert not failed, text
        return text

    def mcp_ids(self, tool: str, **given: Any) -> list[int]:
        return ids_in(self.mcp(tool, **given))


@pytest.fixture
def faces(home, run, tmp_path) -> Iterator[Faces]:
    with yester.open(home) as memory:
        memory.add(ITEMS)
        assert [hit.title for hit in memory.get([3])] == ["No redis any more"]
        memory.remember("We decided to keep prices in cents.", type="decision", project="shop")
        memory.remember("Use British spelling.", type="preference")
    with serving(home) as api, yester.open(home) as memory:
        tools = open_for_tools(str(home), str(tmp_path), NO_MODEL)
        yield Faces(run, api, tools, memory)
        tools.close()


def ids_in(text: str) -> list[int]:
    """Of the lines of a text for a model."""
    return [int(found) for found in re.findall(r"^\W*#(\d+)", text, re.MULTILINE)]


def ids_of(rows: Iterable[Any]) -> list[int]:
    return [row["id"] if isinstance(row, dict) else row.id for row in rows]


def assert_agree(answers: Mapping[str, Mapping[str, Any]]) -> None:
    """All of a question are the same, and something was found."""
    differing = {
        name: found
        for name, found in answers.items()
        if any(one != next(iter(found.values())) for one in found.values())
    }
    assert not differing, json.dumps(differing, indent=1, default=str)
    empty = [name for name, found in answers.items() if not next(iter(found.values()))]
    assert not empty


def test_the_same_question_has_the_same_answer_at_every_face(faces):
    answers: dict[str, dict[str, list[int]]] = {}
    for one in QUESTIONS:
        found = answers[one.name] = {}
        if one.cli:
            found["cli"] = ids_of(faces.cli(*one.cli)["hits"])
        if one.http:
            path, query = one.http
            answer = faces.http(path, **query)
            rows = answer.get("results") or answer["timeline"]
            found["http"] = [id_ for id_ in ids_of(rows) if id_]  # an anchor's place has none
        if one.mcp:
            tool, given = one.mcp
            found["mcp"] = faces.mcp_ids(tool, **given)
        if one.python:
            found["python"] = ids_of(one.python(faces.memory))
    assert_agree(answers)


# What is asked in other words at each face: name → face → the answer, brought to one form.
READING: Mapping[str, Mapping[str, Callable[[Faces], Any]]] = {
    "items by id": {
        "cli": lambda faces: ids_of(faces.cli("show", "3", "1")["hits"]),
        "http": lambda faces: ids_of(
            faces.post("/api/observations/batch", ids=[3, 1])["results"]
        ),
        "mcp": lambda faces: faces.mcp_ids("get_observations", ids=[3, 1]),
        "python": lambda faces: ids_of(faces.memory.get([3, 1])),
    },
    "sessions": {
        "cli": lambda faces: [one["session"] for one in faces.cli("sessions")["sessions"]],
        "http": lambda faces: [one["session"] for one in faces.http("/api/sessions")["sessions"]],
        "mcp": lambda faces: re.findall(
            r"^\W*S(\S+)", faces.mcp("search", type="sessions"), re.MULTILINE
        ),
    },
    "sessions by what was said in them": {
        "http": lambda faces: [
            row["session"]
            for row in faces.http("/api/search/sessions", query="redis")["results"]
        ],
        "mcp": lambda faces: re.findall(
            r"^\W*S(\S+)", faces.mcp("search", type="sessions", query="redis"), re.MULTILINE
        ),
    },
    "the last sessions": {
        "cli": lambda faces: [
            (one["session"], ids_of(one["hits"]))
            for one in faces.cli("recent", "--rows", "3")["sessions"]
        ],
        "http": lambda faces: [
            (one["session"]["session"], ids_of(one["observations"]))
            for one in faces.http("/api/search/recent-context", rows=3)["sessions"]
        ],
        "python": lambda faces: [
            (session.key, ids_of(hits)) for session, hits in faces.memory.recent(3, rows=3)
        ],
    },
    "memories": {
        "cli": lambda faces: ids_of(faces.cli("memory", "list", "--all-projects")["hits"]),
        "http": lambda faces: ids_of(faces.http("/api/memories")["results"]),
        "python": lambda faces: [memo.item.id for memo in faces.memory.memories.list()],
    },
    "memories of a type": {
        "cli": lambda faces: ids_of(
            faces.cli("memory", "list", "--all-projects", "--type", "decision")["hits"]
        ),
        "http": lambda faces: ids_of(faces.http("/api/memories", type="decision")["results"]),
        "python": lambda faces: [
            memo.item.id for memo in faces.memory.memories.list(types=["decision"])
        ],
    },
    "a memory": {
        "cli": lambda faces: faces.cli("memory", "show", "7")["hits"][0]["content"],
        "http": lambda faces: faces.http("/api/memories/7")["memory"]["content"],
        "python": lambda faces: dict(faces.memory.memories.get(7).content),
    },
    "its history": {
        "cli": lambda faces: [
            (one["id"], one["what"]) for one in faces.cli("memory", "history", "7")["changes"]
        ],
        "http": lambda faces: [
            (one["id"], one["what"]) for one in faces.http("/api/memories/7")["history"]
        ],
        "python": lambda faces: [
            (one.id, one.what) for one in faces.memory.memories.history(7)
        ],
    },
    "what a text would meet": {
        "cli": lambda faces: faces.cli(
            "memory", "candidate", "--type", "decision", "--project", "shop",
            "We decided to keep prices in cents.",
        )["action"],
        "http": lambda faces: faces.http(
            "/api/memory/candidate", type="decision", project="shop",
            text="We decided to keep prices in cents.",
        )["action"],
        "python": lambda faces: faces.memory.memories.candidate(
            "We decided to keep prices in cents.", "decision", "shop"
        ).action,
    },
    "numbers": {
        "cli": lambda faces: faces.cli("stats")["items"],
        "http": lambda faces: faces.http("/api/stats")["items"],
    },
    "limits": {
        "cli": lambda faces: faces.cli("stats")["limits"],
        "http": lambda faces: faces.http("/api/spend")["limits"],
    },
    "projects": {
        "cli": lambda faces: faces.cli("projects")["projects"],
        "http": lambda faces: faces.http_rows("/api/projects", "projects"),
    },
    "what is stored of each": {
        "cli": lambda faces: faces.cli("privacy")["projects"],
        "http": lambda faces: faces.http_rows("/api/privacy", "projects"),
    },
    "settings": {
        "cli": lambda faces: [*faces.cli("config")["settings"]],
        "http": lambda faces: [one["name"] for one in faces.http("/api/settings")["settings"]],
    },
    "what would be forgotten": {
        "cli": lambda faces: faces.cli("forget", "3")["kinds"],
        "http": lambda faces: faces.post("/api/forget", ids=[3])["kinds"],
        "python": lambda faces: faces.memory.forget(ids=[3]).kinds,
    },
    "a context for a prompt": {
        "cli": lambda faces: ids_in(faces.cli("context", "--cwd", "/tmp", PROMPT)["text"]),
        "http": lambda faces: ids_in(
            faces.http(
                "/api/context/preview", cwd="/tmp", event="UserPromptSubmit", prompt=PROMPT
            )["text"]
        ),
        "python": lambda faces: ids_in(
            faces.memory.context("UserPromptSubmit", "/tmp", PROMPT)
        ),
    },
}  # fmt: skip


def test_what_is_asked_in_other_words_has_the_same_answer(faces):
    assert_agree({
        name: {face: ask(faces) for face, ask in asked.items()} for name, asked in READING.items()
    })  # fmt: skip


def test_where_nothing_is_recorded_every_face_would_say_nothing(faces):
    assert faces.cli("context", "--cwd", "/tmp")["text"] == ""
    assert faces.http("/api/context/preview", cwd="/tmp")["text"] == ""
    assert faces.memory.context(cwd="/tmp") == ""


def test_what_is_said_at_one_face_is_known_at_the_others(faces):
    """Kept once, whoever keeps it again; and the last word on its use counts."""
    text, project = "We decided to ship on Fridays.", {"project": "shop"}
    kept = faces.post("/api/memory/save", text=text, **project)["id"]
    assert faces.cli("remember", text, "--project", "shop")["id"] == kept
    assert f"#{kept}" in faces.mcp("save_memory", text=text, **project)
    assert faces.memory.remember(text, **project) == kept
    faces.cli("feedback", str(kept), "--useless")
    (use,) = faces.post("/api/feedback", ids=[kept], what="useful")["items"]
    (known,) = faces.cli("feedback", str(kept))["items"]
    assert (known["use"], known["feedback"]) == (use["use"], use["feedback"])
    assert use["feedback"] == {"useful": 1}
