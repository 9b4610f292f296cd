"""What is known of a file: its lines with the turns that wrote them, turns about it, what was
decided, what failed and what is open about it.

A file is read only where its name is recorded and it lies in that project's folder; otherwise the
recorded edits stand for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from yester.context.cards import find_open_ends, read_cards
from yester.errors import NotFound
from yester.memory import Memory, quote_value
from yester.model import Filters, Item, Paging, Project
from yester.operations import fields, items
from yester.operations.authorship import (
    LineHistory,
    LinesRequest,
    explain_lines,
    find_decisions,
    read_lines,
)
from yester.operations.fields import about
from yester.operations.request import Request
from yester.operations.turns import TurnRow, describe_turns
from yester.redact import redact
from yester.spans import Span

_MOST_ITEMS = 500  # the newest about the file that are looked at
_MOST_LINES = 4_000
_MOST_EDITS = 25
_MOST_TEXT = 1_000_000  # characters


class FileRequest(Request, kw_only=True):
    project: Annotated[fields.GivenName, about("Whose file it is, by its name or key.")]
    path: Annotated[str, about("As it is recorded.", min_length=1, max_length=4_000)]


class OpenEnd(Struct, kw_only=True):
    """What is left to do, and the card that says so."""

    card: int
    title: str
    text: str
    created_at_epoch: int


class FileShown(Struct, kw_only=True):
    path: str
    project: str
    lines: Annotated[list[str], about("As they are now, without secrets.")]
    missing: Annotated[str, about("Why there are no lines.")]
    history: LineHistory | None
    turns: Annotated[list[TurnRow], about("Those that have to do with it, the newest first.")]
    edits: Annotated[list[items.Row], about("The last edits, where there are no lines.")]
    decisions: list[items.Row]
    open: list[OpenEnd]
    sessions: list[items.Session]


def show_file(memory: Memory, request: FileRequest) -> FileShown:
    """Everything about one file: its lines and who wrote them, turns, decisions, open ends."""
    project = memory.find_project(request.project)
    store, path = memory.reading, request.path
    about_it = Filters((project.key,), files=(path,), echoes=True)
    known = [one for one in store.select(about_it, Paging(_MOST_ITEMS)) if path in one.files]
    if not known:
        raise NotFound(
            f"nothing is recorded about {quote_value(path)} in {project.name}",
            "name it as it stands in a session", parameter="path", value=path,
        )  # fmt: skip
    lines, history, missing = _read_history(memory, project, path)
    rows = items.Rows(store, full=True)
    edits = [one for one in known if path in one.files_modified and one.call is not None]
    cards = read_cards(store, Filters((project.key,)))
    sessions = store.find_sessions({(one.session, one.agent) for one in known if one.session})
    return FileShown(
        path=redact(path), project=redact(project.name), lines=lines, missing=missing,
        history=history, turns=describe_turns(store, _find_prompts(memory, known)),
        edits=rows.item_rows([] if lines else edits[:_MOST_EDITS]),
        decisions=items.Rows(store).item_rows(find_decisions(store, project.key, path)),
        open=[
            OpenEnd(
                card=end.card.id, title=redact(end.card.title), text=redact(end.text),
                created_at_epoch=end.card.epoch,
            )
            for end in find_open_ends(cards, memory.now)
            if path in end.card.files
        ],
        sessions=[
            rows.describe_session(sessions[key])
            for key in dict.fromkeys((one.session, one.agent) for one in known)
            if key in sessions
        ],
    )  # fmt: skip


def _find_prompts(memory: Memory, known: Sequence[Item]) -> list[Item]:
    """The prompts of the turns in which something was recorded about the file."""
    turns = {
        (one.session, one.prompt_number)
        for one in known
        if one.prompt_number and (one.kind, one.type) != ("summary", "session")  # of all its turns
    }
    found = []
    for session in sorted({session for session, _ in turns if session}):
        asked = Filters(session=session, kinds=("prompt",), echoes=True)
        prompts = memory.reading.select(asked, Paging(_MOST_ITEMS))
        found += [one for one in prompts if (session, one.prompt_number) in turns]
    return sorted(found, key=lambda one: (one.epoch, one.id), reverse=True)


def _read_history(
    memory: Memory, project: Project, path: str
) -> tuple[list[str], LineHistory | None, str]:
    """Lines and their history; else why there are none."""
    try:
        if not project.root:
            raise NotFound("the project's folder is not known")
        if not Path(project.root, path).is_file():
            raise NotFound(f"there is no file {quote_value(path)} in {quote_value(project.root)}")
        history = explain_lines(memory, LinesRequest(file=path, project=project.key))
        # A link may lead elsewhere: to another project's file, or to another name.
        if history.project != project.name or history.file != path:
            raise NotFound(f"{quote_value(path)} is another file's name")
        lines = read_lines(Path(history.path))
    except (NotFound, OSError, ValueError) as error:  # ValueError: a name no system has
        return [], None, redact(str(error))
    return _redact_lines(lines[:_MOST_LINES]), history, ""


def _redact_lines(lines: Sequence[str]) -> list[str]:
    """Line by line, though a secret may reach over several; no more than can be shown."""
    spans, at = list[Span](), 0
    for line in lines:
        spans.append((at, at + len(line)))
        at += len(line) + 1
        if at > _MOST_TEXT:
            break
    clean = redact("\n".join(lines[: len(spans)]), spans)
    return [clean[start:end] for start, end in spans]
