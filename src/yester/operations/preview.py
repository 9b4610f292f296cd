"""The context an agent would be given, shown before it happens: the text alone, or with the reason
of each line and what was left out."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from yester.context.block import Context
from yester.context.talk import trivial
from yester.fence import strip_fenced
from yester.memory import Memory
from yester.model import Filters, Paging
from yester.operations import fields
from yester.operations.answer import make_answer
from yester.operations.context import EVENTS, ContextRequest, build_context
from yester.operations.fields import about
from yester.operations.request import Request
from yester.operations.search import LeftOut, describe_omissions
from yester.text.document import estimate_tokens

Event = Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart"]
assert set(Event.__args__) == set(EVENTS)  # type: ignore[attr-defined]
_FLOOR = "below the floor"
# What a prompt may be that needs no search, besides short.
_NOT_LOOKED_UP = {
    "slash command": "a slash command is not looked up",
    "directive": "it only says what to do, so it is not looked up",
}


class PreviewRequest(Request, kw_only=True):
    event: Annotated[Event, about("What happens.")] = "SessionStart"
    project: Annotated[
        fields.Name, about("For this project, by its name or key; default: that of the newest.")
    ] = ""
    cwd: Annotated[
        str,
        about(
            "For this folder, an absolute path; it goes before the project.",
            max_length=4_000,
            pattern=r"^(/[^\x00]*)?$",
            extra_json_schema={"format": "yester-folder"},
        ),
    ] = ""
    prompt: Annotated[fields.Text, about("At UserPromptSubmit: what is typed.")] = ""
    file: Annotated[fields.Name, about("At PreToolUse: the file about to be read.")] = ""
    budget: Annotated[int, about("Tokens at a start.", ge=100, le=10_000)] = 700


class Line(Struct, kw_only=True):
    """A line of a context: what it shows and why."""

    item: int
    score: float
    tokens: int
    reason: str


class ContextShown(Struct, kw_only=True):
    text: str
    tokens: int
    shown: list[Line]
    left: list[LeftOut]
    why: Annotated[str, about('Why there is no text; "" where there is one.')]


def preview_text(memory: Memory, request: PreviewRequest) -> str:
    """The text an agent would be given."""
    return _build_preview(memory, request).text


def preview_context(memory: Memory, request: PreviewRequest) -> ContextShown:
    """The same, with the reason of each line."""
    found = _build_preview(memory, request)
    return ContextShown(
        text=found.text,
        tokens=estimate_tokens(found.text),
        shown=[make_answer(Line, one, score=round(one.score, 4)) for one in found.shown],
        left=describe_omissions(found.left),
        why="" if found.text else _explain_silence(request, found),
    )


def _explain_silence(request: PreviewRequest, found: Context) -> str:
    asks = request.event == "UserPromptSubmit"
    if asks and (kind := trivial(strip_fenced(request.prompt))):
        return _NOT_LOOKED_UP.get(kind, "too short to look up")
    reasons = [one.why for one in found.left]
    return next((why for why in (_FLOOR, *reasons) if why in reasons), "nothing found")


def _build_preview(memory: Memory, request: PreviewRequest) -> Context:
    project, cwd = None, request.cwd
    if not cwd:
        name = request.project
        if not name:
            newest = memory.reading.sessions(Filters(), Paging(1))
            if not newest:
                return Context()
            name = newest[0].project
        project = memory.find_project(name)
        cwd = project.root
    wanted = ContextRequest(
        request.event, cwd, request.prompt, request.file, request.budget, project
    )
    return build_context(memory, wanted)
