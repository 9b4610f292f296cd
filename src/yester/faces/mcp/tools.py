"""The tools of the MCP server as a client is told of them; what they do stands in `mcp_calls`.

    search            an index: one row for each hit, with its id and what reading it whole costs
    timeline          what happened before and after one of them
    get_observations  some of them whole
    save_memory       something to be kept
    __IMPORTANT       how the three belong together

Descriptions and schemas go into a model's context in every session that uses them: all together
they stay under 900 tokens. Types are plain ones, since clients hand schemas on to models of all
kinds; what a model may write besides is understood by `mcp_arguments`. Listing the tools imports
nothing of the rest of yester.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # see `mcp`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from yester.faces.mcp.memory import ToolMemory

    Arguments = Mapping[str, Any]
    Call = Callable[[ToolMemory, Arguments], str]


class Tool:
    """One row of the table; not a dataclass, which would be a third of the start."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        parameters: Mapping[str, Mapping[str, Any]],
        required: tuple[str, ...],
        hints: Mapping[str, bool],
        call: Call,
    ) -> None:
        self.name, self.title, self.description = name, title, description
        self.parameters, self.required = parameters, required
        self.hints, self.call = hints, call

    def describe_tool(self) -> dict[str, Any]:
        """As a client is told of it."""
        schema: dict[str, Any] = {"type": "object", "properties": self.parameters}
        if self.required:
            schema["required"] = list(self.required)
        return {
            "name": self.name, "title": self.title, "description": self.description,
            "inputSchema": schema, "annotations": self.hints,
        }  # fmt: skip

    def answer_call(self, opened: Callable[[], ToolMemory], given: Arguments) -> tuple[str, bool]:
        """The text for the model, and whether it tells of an error; `opened` gives the memory.

        A wrong argument is no error of the protocol: it is the model that can put it right.
        """
        from yester.deliver.lines import one_line
        from yester.errors import YesterError
        from yester.faces.mcp.arguments import check_arguments

        try:
            memory = opened()
            memory.check_allowed()
            return self.call(memory, check_arguments(self, given)), False
        except YesterError as error:
            return f"{self.name}: {one_line(str(error), 600)}", True


def _load_call(name: str) -> Call:
    """A function of `mcp_calls`, imported when it is called."""

    def call(memory: ToolMemory, given: Arguments) -> str:
        text = getattr(importlib.import_module("yester.faces.mcp.calls"), name)(memory, given)
        assert isinstance(text, str)
        return text

    return call


_READS = {"readOnlyHint": True, "openWorldHint": False}
_ADDS = {
    "readOnlyHint": False, "destructiveHint": False, "idempotentHint": True,
    "openWorldHint": False,
}  # fmt: skip
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}

_TABLE = (
    Tool(
        "__IMPORTANT", "How to search",
        "Workflow: 1. search gives an index with ids. 2. timeline(anchor=id) gives what happened "
        "around one. 3. get_observations(ids) gives whole texts, only of those that matter. Never "
        "fetch what the index already answers.",
        {}, (), _READS, _load_call("important"),
    ),
    Tool(
        "search", "Search memory",
        "Step 1: search earlier sessions (decisions, fixes, prompts, what was tried). Returns an "
        "index: id, kind, date, project, score, cost. Without query: newest first.",
        {
            "query": _TEXT | {"description": 'words; also AND OR NOT "phrase" prefix*'},
            "limit": _NUMBER | {"minimum": 1, "maximum": 100, "default": 20},
            "project": _TEXT,
            "type": _TEXT | {"enum": ["observations", "sessions", "prompts"]},
            "obs_type": _TEXT | {"description": "decision, bugfix, feature, plan … by comma"},
            "dateStart": _TEXT | {"description": "2026-03-01, 3d, 2w, yesterday"},
            "dateEnd": _TEXT | {"description": "inclusive"},
            "offset": _NUMBER | {"minimum": 0},
            "orderBy": _TEXT | {"enum": ["relevance", "date_desc", "date_asc"]},
        },
        (), _READS, _load_call("search"),
    ),
    Tool(
        "timeline", "Around a moment",
        "Step 2: what happened before and after an anchor, or around the best match of query.",
        {
            "anchor": _TEXT | {"description": "id, S + session id, time, or latest"},
            "query": _TEXT,
            "depth_before": _NUMBER | {"minimum": 0, "maximum": 50, "default": 3},
            "depth_after": _NUMBER | {"minimum": 0, "maximum": 50, "default": 3},
            "project": _TEXT,
        },
        (), _READS, _load_call("timeline"),
    ),
    Tool(
        "get_observations", "Read in full",
        "Step 3: whole texts of the few ids that matter, all in one call.",
        {"ids": {"type": "array", "items": _TEXT}},
        ("ids",), _READS, _load_call("get_observations"),
    ),
    Tool(
        "save_memory", "Keep something",
        "Keep a decision, lesson or fact for later sessions.",
        {
            "text": _TEXT,
            "title": _TEXT,
            "project": _TEXT | {"description": "default: the current one"},
        },
        ("text",), _ADDS, _load_call("save_memory"),
    ),
)  # fmt: skip
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _TABLE}
