"""What an agent would be given: the text alone, or with the reason of each line.

Nothing of it is written into the ledger: that is for what an agent's hook was answered.
"""

from __future__ import annotations

from yester.deliver.gate import trivial
from yester.deliver.page import Context
from yester.faces.http import shapes
from yester.faces.http.parameters import ContextFor
from yester.fence import strip_fenced
from yester.memory import Memory
from yester.model import Filters, Paging
from yester.operations.context import ContextRequest, build_context
from yester.redact import redact
from yester.text.document import estimate_tokens

_FLOOR = "below the floor"
# What a prompt may be that needs no search, besides short.
_NOT_LOOKED_UP = {
    "slash command": "a slash command is not looked up",
    "directive": "it only says what to do, so it is not looked up",
}


def inject(memory: Memory, given: ContextFor) -> str:
    return _given(memory, given).text


def preview(memory: Memory, given: ContextFor) -> shapes.ContextShown:
    found = _given(memory, given)
    return shapes.ContextShown(
        text=found.text,
        tokens=estimate_tokens(found.text),
        shown=[
            shapes.Line(
                item=one.item, score=round(one.score, 4), tokens=one.tokens,
                reason=redact(one.reason),
            )
            for one in found.shown
        ],
        left=[
            shapes.LeftOut(id=one.item, score=round(one.score, 4), why=one.why)
            for one in found.left
        ],
        why="" if found.text else _why(given, found),
    )  # fmt: skip


def _why(given: ContextFor, found: Context) -> str:
    """Why nothing is said."""
    asks = given.event == "UserPromptSubmit"
    if asks and (kind := trivial(strip_fenced(given.prompt))):
        return _NOT_LOOKED_UP.get(kind, "too short to look up")
    reasons = [one.why for one in found.left]
    return next((why for why in (_FLOOR, *reasons) if why in reasons), "nothing found")


def _given(memory: Memory, given: ContextFor) -> Context:
    project, cwd = None, given.cwd
    if not cwd:
        if given.project:
            project = memory.find_project(given.project)
        else:
            newest = memory.store.sessions(Filters(), Paging(1))
            if not newest:
                return Context()
            project = memory.find_project(newest[0].project)
        cwd = project.root
    request = ContextRequest(given.event, cwd, given.prompt, given.file, given.budget, project)
    return build_context(memory, request)
