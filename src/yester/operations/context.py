"""What an agent gets, by what has happened: one request for hooks and for every face; and a session
taken up again, in its own client, or handed over to another with what that needs.

Nothing of it is written into the ledger here: that is for what an agent's hook was answered, and
`worker/answers.py` does it.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta, Struct

from yester import git
from yester.agents.descriptors import Agent, find_agent
from yester.agents.values import relative_path
from yester.config import narrow_config
from yester.context.block import Context, Here, Left, Shown
from yester.context.cards import find_open_ends, read_cards
from yester.context.lines import quote_text
from yester.context.prompt import Given, at_prompt, at_read
from yester.context.start import at_start, for_agent
from yester.context.talk import trivial
from yester.errors import NotFound, UsageError
from yester.fence import MOST_UNITS, strip_fenced
from yester.folders import open_projects
from yester.memories.files import narrow_limit
from yester.memories.rules import applicable_rules
from yester.memory import Memory
from yester.model import TAKEN_UP, Filters, Paging, Project, Session, replace, team_user
from yester.operations import fields
from yester.operations.request import Request
from yester.recall.beginning import changed_files
from yester.recall.conversation import read_conversation
from yester.recall.rank import Weights
from yester.recall.recall import Cut
from yester.redact import redact
from yester.store.contract import Store
from yester.text.document import estimate_tokens
from yester.text.sentences import shorten_text

# The events that are answered, by the names of Claude Code → what happens.
EVENTS: Mapping[str, str] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "read",
    "SubagentStart": "agent start",
}
_STARTS = ("SessionStart", "SubagentStart")
_BUDGET = 700  # tokens at a start
# At a prompt; who wants more lines gets more, and a session ten times as many.
_PROMPT_TOKENS, _LINE_TOKENS = 300, 120


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What has happened and where; and, for a hook, what its session has been given before.

    `cwd` is the folder it happens in, "" where a `project` that is known by name has none.
    """

    event: str = "SessionStart"
    cwd: str = ""
    prompt: str = ""
    file: str = ""  # about to be read
    budget: int = 0  # tokens at a start; 0: as the setting `start_tokens` says
    project: Project | None = None
    session: str = ""
    source: str = ""  # of a start: startup, resume, clear, compact, fork
    now: int = 0  # ms; 0: the present
    known: Container[int] = ()  # items
    spent: int = 0  # tokens
    known_files: Container[str] = ()  # of which the session was told, as seen from the project
    units: int = MOST_UNITS  # that something else in the answer has left
    variables: Mapping[str, str] = field(default_factory=dict)  # can only have less shown
    client: str = ""  # that is told


def build_context(memory: Memory, request: ContextRequest) -> Context:
    if request.event not in EVENTS:
        known = ", ".join(EVENTS)
        raise UsageError(f"event is {request.event!r}, but must be one of {known}")
    config = narrow_config(memory.config, request.variables)
    store, cwd = memory.reading, request.cwd
    projects = open_projects(config)
    project = request.project or projects.by_folder(cwd)
    root = git.find_top(cwd, project.root) if cwd else ""
    file = relative_path(request.file, root)
    if request.event == "PreToolUse" and file in request.known_files:
        return Context()
    starts = request.event in _STARTS
    signals = memory.git_signals(cwd, wait=starts)
    asking = request.session if request.event == "UserPromptSubmit" else ""
    before, worked = read_conversation(store, asking)
    private = projects.private - {project.key}
    here = Here(
        project, request.session, request.now or memory.now, signals=signals,
        rules=applicable_rules(store, project, changed_files(signals)) if starts else (),
        weights=Weights().with_half_life(config.number("recency_halflife_days")),
        embedder=memory.search_embedder, fates=memory.judge_staleness(root),
        everywhere=config.flag("cross_project"), private=tuple(sorted(private)), before=before,
        worked=worked, client=request.client,
    )  # fmt: skip
    most = narrow_limit(config.number("max_inject"), root)
    given = Given(request.known, request.spent, min(most, 3), 250, units=request.units)
    if request.event == "UserPromptSubmit":
        budget = max(_PROMPT_TOKENS, _LINE_TOKENS * most)
        given = Given(request.known, request.spent, most, budget, 10 * budget, units=request.units)
    exchange = config.flag("last_exchange")
    budget = request.budget or config.number("start_tokens")
    asked = replace(request, file=file, budget=budget)
    return choose_context(store, asked, here, given, exchange)


def choose_context(
    store: Store,
    request: ContextRequest,
    here: Here,
    given: Given | None = None,
    exchange: bool = False,
) -> Context:
    """By the event. Its file is seen from the project; `exchange`: at a start with the last words
    of the session before."""
    if request.event == "SessionStart":
        return at_start(
            store, here, request.budget or _BUDGET, exchange,
            of_session=request.source == "compact", again=request.source in TAKEN_UP,
        )  # fmt: skip
    if request.event == "SubagentStart":
        return for_agent(store, here)
    if request.event == "UserPromptSubmit":
        return at_prompt(store, request.prompt, here, given)
    return at_read(store, request.file, here, given)


# --- shown before it happens ----------------------------------------------------------------------

_FLOOR = "unlikely to help"
# What a prompt may be that needs no search, besides short.
_NOT_LOOKED_UP = {
    "slash command": "a slash command is not looked up",
    "directive": "it only says what to do, so it is not looked up",
}


class PreviewRequest(Request, kw_only=True):
    event: Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart"] = (
        "SessionStart"
    )
    project: fields.Name = ""
    cwd: fields.Folder = ""
    prompt: fields.Text = ""
    file: fields.Name = ""
    budget: Annotated[int, Meta(ge=100, le=10000)] = 700


class LeftOut(Struct, kw_only=True):
    id: int
    score: float
    why: str


class ContextShown(Struct, kw_only=True):
    text: str
    tokens: int
    shown: list[Shown]
    left: list[LeftOut]
    why: str


def preview_text(memory: Memory, request: PreviewRequest) -> str:
    """The text an agent would be given."""
    return _build_preview(memory, request).text


def preview_context(memory: Memory, request: PreviewRequest) -> ContextShown:
    """The same, with the reason of each line."""
    found = _build_preview(memory, request)
    shown = [
        replace(one, score=round(one.score, 4), reason=redact(one.reason)) for one in found.shown
    ]
    return ContextShown(
        text=found.text,
        tokens=estimate_tokens(found.text),
        shown=shown,
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
    project, cwd, name = None, request.cwd, request.project
    if not (cwd or name):
        newest = memory.reading.sessions(Filters(), Paging(1))
        if not newest:
            return Context()
        name = newest[0].project
    if not cwd:
        project = memory.find_project(name)
        cwd = project.root
    what = request.event, cwd, request.prompt, request.file, request.budget
    return build_context(memory, ContextRequest(*what, project))


def describe_omissions(cut: Sequence[Cut | Left]) -> list[LeftOut]:
    return [LeftOut(id=one.item, score=round(one.score, 4), why=one.why) for one in cut]


# --- a session taken up again ---------------------------------------------------------------------

TOKENS = 1_500  # of what is handed over
_REQUEST, _LAST, _OPEN = 1_200, 600, 200  # characters: the first request, the last, an open end
_MOST_OPEN = 4
_LATEST = 50  # sessions, among which one is of this machine's user


def find_wanted(memory: Memory, named: str | None) -> Session:
    """The session that is named; without a name the last in this folder's project."""
    if named:
        return memory.find_session(named)
    here = Filters(projects=(memory.current_project.key,))
    found = memory.reading.sessions(here, Paging(_LATEST))
    own = next((one for one in found if not team_user(one.key)), None)
    if own is None:
        raise NotFound("no session is recorded in this project; name one: yester sessions")
    return own


def resume_words(session: Session) -> list[str]:
    """The command by which the session's own client takes it up again."""
    if user := team_user(session.key):
        raise UsageError(f"the session is {user}'s, and goes on on {user}'s machine alone")
    agent = find_agent(session.agent)
    if not agent.resume:
        label = agent.label or session.agent
        raise UsageError(f"{label} has no command that takes up a session by its id")
    return [agent.program, *(word.format(session=session.key) for word in agent.resume)]


def resume_line(session: Session) -> str:
    """The same for a shell, in the session's folder."""
    place = f"cd {shlex.quote(session.cwd)} && " if session.cwd else ""
    return place + shlex.join(resume_words(session))


def begin_words(agent: Agent, text: str) -> list[str]:
    return [agent.program, *(word.format(text=text) for word in agent.begin)]


def pack_session(memory: Memory, session: Session) -> str:
    """What another agent needs to go on: the request, what was done and is open, decisions, files;
    from cards, so that nothing is called done without evidence."""
    label = find_agent(session.agent).label or session.agent
    prompts = Filters(session=session.key, kinds=("prompt",))
    first = memory.reading.select(prompts, Paging(1, oldest_first=True))
    last = memory.reading.select(prompts, Paging(1))
    request = shorten_text(first[0].body, _REQUEST) if first else session.title
    head = f"Go on with work that was begun in {label}. The request was:\n\n{request}\n\n"
    if last and last != first:
        head += f"The last thing asked for:\n\n{shorten_text(last[0].body, _LAST)}\n\n"
    head += "What is known about it:\n\n"
    budget = TOKENS - estimate_tokens(head)
    wanted = ContextRequest(
        "SessionStart", session.cwd, budget=budget, session=session.key, source="compact",
        project=memory.projects.by_key(session.project),
    )  # fmt: skip
    known = build_context(memory, wanted).text or "Nothing besides."
    return head + known + _list_open(memory, session)


def _list_open(memory: Memory, session: Session) -> str:
    """What the session itself has left; a start leaves that out, where its agent knows it."""
    cards = read_cards(memory.reading, Filters(session=session.key))
    ends = [end.text or end.card.title for end in find_open_ends(cards)]
    lines = [f"- {quote_text(shorten_text(end, _OPEN))}" for end in ends[:_MOST_OPEN]]
    return "\n\nLeft open:\n" + "\n".join(lines) if lines else ""
