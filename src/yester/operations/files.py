"""Files: the turns that wrote their lines, what those replaced, what had been tried there, and why;
and all that is known of one: turns about it, what was decided, what failed, what is open.

A file is read only where its name is recorded and it lies in that project's folder; otherwise the
recorded edits stand for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from yester import git
from yester.clock import Calendar
from yester.context.cards import find_card, find_open_ends, find_turns, holds, read_cards
from yester.context.lines import card_line, card_status, item_line, one_line
from yester.errors import NotFound
from yester.files import read_bytes
from yester.memory import Memory, join_names, quote_value
from yester.model import Filters, Item, Paging, Project, TurnKey
from yester.operations import fields, items
from yester.operations.request import Request
from yester.operations.turns import TurnRow, describe_turns
from yester.recall.authors import Stretch, find_line_authors
from yester.recall.recall import make_hit
from yester.redact import redact
from yester.spans import Span
from yester.store.contract import Store
from yester.text.edits import find_edits, normalise_lines

NOBODY = "not written in any recorded session"
_MOST_BYTES = 8 << 20
_LONGEST_NAME = 400
_DECISIONS = 5
_TRIED = 3  # attempts told of one stretch
_EXCERPT = 80  # characters of what was replaced
_LINES = re.compile(r":(\d{1,9})(?:-(\d{1,9}))?$", re.A)
_FAILED = ("failed", "reverted")


class LinesRequest(Request, kw_only=True):
    file: Annotated[fields.Name, Meta(min_length=1)]
    project: fields.Name = ""


class Turn(Struct, kw_only=True):
    """A turn of a recorded session; `id` is its card, or its prompt where it has none."""

    id: int
    status: str
    title: str
    why: str
    created_at_epoch: int
    session: str
    line: str


class LineStretch(Struct, kw_only=True):
    """Lines one below the other by one turn; null: not written in any recorded session."""

    first: int
    last: int
    turn: Turn | None
    edits: list[int]
    ambiguous: list[int]
    replaced: str
    replaced_lines: int
    former: list[Turn]
    attempts: list[Turn]


class LineHistory(Struct, kw_only=True):
    file: str
    path: str
    project: str
    first: int
    last: int
    lines: int
    recorded: int
    former_names: list[str]
    stretches: list[LineStretch]
    decisions: list[Turn]

    @property
    def turns(self) -> Iterator[Turn]:
        """All that are named in it."""
        for one in self.stretches:
            yield from filter(None, (one.turn, *one.former, *one.attempts))
        yield from self.decisions


class _Place(NamedTuple):
    """A file of a project, and the lines of it that are asked for; 0: to the end."""

    path: Path
    root: str
    project: Project
    first: int
    last: int

    @property
    def name(self) -> str:
        """As it is stored: from the project's root."""
        return os.path.relpath(self.path, self.root)


def explain_lines(memory: Memory, request: LinesRequest) -> LineHistory:
    """Which turns wrote a file's lines, what they replaced, what was tried before, and why."""
    place = _find_place(memory, request)
    lines = read_lines(place.path)
    if place.first > max(len(lines), 1) or not place.first:
        fix = f"name one of them instead of {place.first}"
        raise _unknown_file(f"{place.name} has {len(lines)} lines", fix, request.file)
    store, last = memory.reading, place.last or len(lines)
    old_names = memory.former_names(place.root, place.name)
    filters = Filters(projects=(place.project.key,))
    found = find_line_authors(store, [place.name, *old_names], lines, filters)
    wanted = [one for one in found if one.first <= last and one.last >= place.first]
    told = _Teller(store, Calendar(memory.now, None), wanted)
    return LineHistory(
        file=place.name, path=str(place.path), project=place.project.name,
        first=place.first, last=min(last, len(lines)), lines=len(lines),
        recorded=sum(one.last - one.first + 1 for one in found if one.turn),
        former_names=old_names, stretches=[told.tell_stretch(one) for one in wanted],
        decisions=[*map(told.tell_item, find_decisions(store, place.project.key, place.name))],
    )  # fmt: skip


def read_lines(path: Path) -> list[str]:
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
        return text.removesuffix("\n").split("\n") if text else []  # as editors count them
    except OSError as error:
        what = f"{quote_value(str(path))} cannot be read: {error.strerror}"
        raise _unknown_file(what, "name a file that is there", str(path)) from None


def _unknown_file(what: str, fix: str, value: str) -> NotFound:
    return NotFound(what, fix, parameter="file", value=value)


def names_file(memory: Memory, text: str) -> bool:
    """Is this a file of the project that is asked in, with lines or without? A file called latest
    must be named with a line."""
    named = memory.cwd and len(text) < _LONGEST_NAME and re.search(r"[./:]", text)
    names = (text, _LINES.sub("", text)) if named else ()
    return any(True for name in names for _ in _possible_paths(memory.cwd, name))


def _find_place(memory: Memory, request: LinesRequest) -> _Place:
    """A file that is asked for must lie in a project: nothing else is read."""
    folder = memory.find_project(request.project).root if request.project else memory.cwd
    if not folder and not request.file.startswith("/"):
        named = request.project
        whose = f"{named}, whose folder is not known" if named else "any project"
        raise NotFound(
            f"{quote_value(request.file)} could be a file of {whose}",
            "name the project, or the whole path", parameter="project", value=named,
        )  # fmt: skip
    file, first, last = request.file, 1, 0
    if (match := _LINES.search(file)) and not any(_possible_paths(folder, file)):
        file, first = file[: match.start()], int(match[1])
        last = int(match[2] or first)
        first, last = min(first, last), max(first, last)
    found = next(_possible_paths(folder, file), None)
    if found is None:
        fix = "name it from here, or from the project's root"
        raise _unknown_file(f"there is no file {quote_value(file)}", fix, request.file)
    path = found.resolve()
    project = memory.projects.by_folder(str(path.parent))
    root = os.path.realpath(git.find_top(str(path.parent), project.root) or path.parent)
    recorded = memory.cwd or project.key in memory.project_names()
    if not recorded or not path.is_relative_to(root):
        what = f"{quote_value(file)} is in no project that is recorded"
        raise _unknown_file(what, "name a file of one", request.file)
    return _Place(path, root, project, first, last)


def _possible_paths(folder: str, file: str) -> Iterator[Path]:
    """Files that are meant: from a folder, or from the root of its work tree."""
    repository = git.find_repository(folder) if folder else None
    for above in (folder, *(str(one.top) for one in filter(None, [repository]))):
        path = os.path.join(above, file)  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113 -- that one never raises
            yield Path(path)


class _Teller:
    """The turns of stretches, looked up at once."""

    def __init__(self, store: Store, calendar: Calendar, found: Sequence[Stretch]) -> None:
        self._calendar = calendar
        turns = {turn for one in found for turn in (one.turn, *one.former, *one.others) if turn}
        self._turns: Mapping[TurnKey, Item] = find_turns(store, turns)
        items = {edit.item for one in found for edit in one.edits[-1:]}
        self._edits = {item.id: item for item in store.get(list(items))}

    def tell_stretch(self, one: Stretch) -> LineStretch:
        last = self._edits.get(one.edits[-1].item) if one.edits else None
        author = self._turns.get(one.turn, last) if one.turn else None  # in no numbered turn: last
        replaced = sum(len(edit.removed) for edit in one.edits)
        failed = [turn for turn in self._tell_turns(one.others) if turn.status in _FAILED]
        return LineStretch(
            first=one.first, last=one.last, turn=self.tell_item(author) if author else None,
            edits=[edit.item for edit in one.edits], ambiguous=list(one.ambiguous),
            replaced=_replaced_text(last) if last and replaced else "", replaced_lines=replaced,
            former=self._tell_turns(one.former), attempts=failed[-_TRIED:],
        )  # fmt: skip

    def _tell_turns(self, turns: Collection[TurnKey]) -> list[Turn]:
        return [self.tell_item(self._turns[turn]) for turn in turns if turn in self._turns]

    def tell_item(self, item: Item) -> Turn:
        own = item.kind == "summary"
        title = item.title or one_line(item.body[: 4 * _EXCERPT], _EXCERPT)
        calendar = self._calendar
        return Turn(
            id=item.id, status=card_status(item), title=title, why=item.body if own else "",
            created_at_epoch=item.epoch, session=item.session,
            line=card_line(item, calendar) if own else item_line(item, calendar, title),
        )  # fmt: skip


def find_decisions(store: Store, project: str, file: str) -> Iterator[Item]:
    """The newest about a file, without those of work that did not hold."""
    kinds = ("observation", "memory")
    filters = Filters((project,), kinds, ("decision",), files=(file,))
    for item in store.select(filters, Paging(_DECISIONS)):
        card = find_card(store, make_hit(item, {}))
        if card is None or holds(card):
            yield item


def _replaced_text(item: Item) -> str:
    """The first line that an edit took out, if its text is kept."""
    for edit in find_edits(item):
        after = set(normalise_lines(edit.after))
        gone = (line for line in normalise_lines(edit.before) if line not in after)
        if text := next(gone, ""):
            return one_line(text, _EXCERPT)
    return ""


# --- as lines -------------------------------------------------------------------------------------


def history_lines(found: LineHistory) -> Iterator[str]:
    """For people and models; of a turn that is told already, only that it was this one."""
    width = max((len(_span(one)) for one in found.stretches), default=0)
    pad, told = " " * (width + 2), set[str]()
    for one in found.stretches:
        line = one.turn.line if one.turn else NOBODY
        known = one.turn is not None and line in told
        yield f"{_span(one):>{width}}  {f'{one.turn.id}, as above' if known and one.turn else line}"
        told.add(line)
        for more in _stretch_details(one):
            if more not in told or not known:
                yield pad + more
            told.add(more)
    if found.decisions:
        yield "Decided about this file:"
        yield from (f"  {one.line}" for one in found.decisions)


def _stretch_details(one: LineStretch) -> Iterator[str]:
    if one.ambiguous:
        lines = join_names([*map(str, one.ambiguous)])
        yield f"ambiguous, another turn may have written: {lines}"
    if number := one.replaced_lines:
        text = f": {one.replaced}" if one.replaced else ""
        yield f"replaced {number} line{'s' if number > 1 else ''}{text}"
    yield from (f"which was {turn.line}" for turn in one.former)
    yield from (f"tried before: {turn.line}" for turn in one.attempts)


def _span(one: LineStretch) -> str:
    return f"{one.first}-{one.last}" if one.last > one.first else str(one.first)


def blame_lines(found: LineHistory) -> Iterator[str]:
    """The lines of the file as it is now, each behind the turn that wrote it: `?` where that is
    ambiguous."""
    lines = read_lines(Path(found.path))
    labels: dict[int, str] = {}
    for one in found.stretches:
        turn = str(one.turn.id) if one.turn else ""
        for number in range(max(one.first, found.first), min(one.last, found.last) + 1):
            labels[number] = turn + "?" * (number in one.ambiguous)
    width = max(map(len, labels.values()), default=0)
    digits = len(str(found.last))
    for number, label in labels.items():
        text = lines[number - 1] if number <= len(lines) else ""
        yield f"{label if text.strip() else '':>{width}} {number:>{digits}} {text}".rstrip()


# --- a file whole ---------------------------------------------------------------------------------

_MOST_ITEMS = 500  # the newest about the file that are looked at
_MOST_LINES = 4_000
_MOST_EDITS = 25
_MOST_TEXT = 1_000_000  # characters


class FileRequest(Request, kw_only=True):
    project: fields.GivenName
    path: Annotated[str, Meta(min_length=1, max_length=4_000)]


class OpenEnd(Struct):
    """What is left to do, and the card that says so."""

    card: int
    title: str
    text: str
    created_at_epoch: int


class FileShown(Struct, kw_only=True):
    path: str
    project: str
    lines: list[str]
    missing: str
    history: LineHistory | None
    turns: list[TurnRow]
    edits: list[items.Row]
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
            OpenEnd(end.card.id, redact(end.card.title), redact(end.text), end.card.epoch)
            for end in find_open_ends(cards)
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
