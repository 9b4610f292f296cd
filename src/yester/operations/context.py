"""What an agent would be given now, in a folder: the text, why each line is there, what was left
out. Nothing of it is written into the ledger: that is for what an agent's hook was answered."""

from __future__ import annotations

import time
from dataclasses import dataclass

from yester import git
from yester.agents.values import relative_path
from yester.deliver.context import EVENTS, Moment, context
from yester.deliver.page import Context
from yester.deliver.prompt import Given, Search
from yester.deliver.start import Here
from yester.errors import UsageError
from yester.memories.folder import narrow_limit
from yester.memories.rules import applicable_rules
from yester.memory import Memory
from yester.model import Project
from yester.project import Projects
from yester.recall.beginning import changed_files
from yester.store.figures import has_vectors

_PATIENCE = 0.15  # seconds for git


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """`cwd` is the folder it happens in, "" where a `project` that is known by name has none."""

    event: str = "SessionStart"
    cwd: str = ""
    prompt: str = ""
    file: str = ""
    budget: int = 2_000
    project: Project | None = None


def build_context(memory: Memory, request: ContextRequest) -> Context:
    if request.event not in EVENTS:
        known = ", ".join(EVENTS)
        raise UsageError(f"event is {request.event!r}, but must be one of {known}")
    config, store, cwd = memory.config, memory.reading, request.cwd
    project = request.project or Projects(config.projects).of(cwd)
    root = git.top(cwd, project.root) if cwd else ""
    signals = git.signals(cwd, time.monotonic() + _PATIENCE) if cwd else git.Signals()
    fates = memory.judge_staleness(root)
    embedder = memory.embedder if has_vectors(store) else None
    search = Search(
        memory.weights, embedder, fates, changed_files(signals), config.flag("cross_project")
    )
    here = Here(
        project, "", memory.now, signals=signals,
        rules=applicable_rules(store, project, search.files), weights=search.weights,
        embedder=embedder, fates=fates,
    )  # fmt: skip
    file = relative_path(request.file, root) if root else request.file
    moment = Moment(
        EVENTS[request.event], request.prompt, file, exchange=config.flag("last_exchange"),
        budget=request.budget,
    )  # fmt: skip
    most = narrow_limit(config.number("max_inject"), root)
    at_prompt = request.event == "UserPromptSubmit"
    given = Given(most=most) if at_prompt else Given((), 0, min(most, 3), 250)
    return context(store, moment, here, given, search)
