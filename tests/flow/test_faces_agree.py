"""One question, four faces, one answer: what the command line (--json), HTTP, the MCP tools and
Python are asked in the same words they answer with the same items in the same order.

A row of the table has the question as each face takes it; a face that has no such question has
None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yester
from tests.serving import Serving, serving
from yester.faces.mcp.calls import answer_call
from yester.faces.mcp.memory import open_for_tools
from yester.faces.mcp.server import load_tools

TOOLS = load_tools()
NO_MODEL = {"YESTER_EMBEDDER": "none"}
DAY = 86_400
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
        None,
        ("/api/search", {"dateEnd": "2026-03-04"}),
        ("search", {"dateEnd": "2026-03-04"}),
        lambda memory: memory.recall("", until="2026-03-04"),
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


def ask_http(api: Serving, path: str, query: dict[str, Any]) -> list[int]:
    answer = api.get(path, **query)
    return [row["id"] for row in answer.get("results") or answer["timeline"] if row["id"]]


def ask_mcp(memory: Any, tool: str, given: dict[str, Any]) -> list[int]:
    text, failed = answer_call(TOOLS[tool], lambda: memory, given)
    assert not failed, text
    return [int(found) for found in re.findall(r"^\W*#(\d+)", text, re.MULTILINE)]


def test_the_same_question_has_the_same_answer_at_every_face(home, run, tmp_path):
    with yester.open(home) as memory:
        memory.add(ITEMS)
        assert [hit.title for hit in memory.get([3])] == ["No redis any more"]
    answers: dict[str, dict[str, list[int]]] = {}
    with serving(home) as api, yester.open(home) as opened:
        tools = open_for_tools(str(home), str(tmp_path), NO_MODEL)
        for one in QUESTIONS:
            found = answers[one.name] = {}
            if one.cli:
                found["cli"] = [hit["id"] for hit in run(*one.cli, "--json").json["hits"]]
            if one.http:
                found["http"] = ask_http(api, *one.http)
            if one.mcp:
                found["mcp"] = ask_mcp(tools, *one.mcp)
            if one.python:
                found["python"] = [hit.id for hit in one.python(opened)]
        tools.close()
    differing = {
        name: found for name, found in answers.items() if len(set(map(tuple, found.values()))) != 1
    }
    assert not differing, json.dumps(differing, indent=1)
    assert all(next(iter(found.values())) for found in answers.values())
