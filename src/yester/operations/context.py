"""What an agent gets, by what has happened: one request for hooks and for every face.

Nothing of it is written into the ledger here: that is for what an agent's hook was answered, and
`worker/answers.py` does it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from yester import git
from yester.agents.values import relative_path
from yester.config import narrow_config
from yester.context.block import Context, Here
from yester.context.prompt import Given, at_prompt, at_read
from yester.context.start import at_start, for_agent
from yester.errors import UsageError
from yester.fence import MOST_UNITS
from yester.memories.files import narrow_limit
from yester.memories.rules import applicable_rules
from yester.memory import Memory
from yester.model import TAKEN_UP, Project, replace
from yester.project import Projects
from yester.recall.beginning import changed_files
from yester.recall.conversation import read_conversation
from yester.recall.rank import Weights
from yester.store.contract import Store

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
    projects = Projects(config.projects, private=config.private)
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
