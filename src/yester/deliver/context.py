"""What an agent gets, by what has happened: one door for hooks, the command line and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yester.deliver.page import Context
from yester.deliver.prompt import Given, Search, at_prompt, at_read
from yester.deliver.start import Here, at_start, for_agent
from yester.model import TAKEN_UP
from yester.store.contract import Store

# The events that are answered, by the names of Claude Code → what is given.
EVENTS: Mapping[str, str] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "read",
    "SubagentStart": "agent start",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """What has happened."""

    what: str  # a value of EVENTS
    prompt: str = ""
    file: str = ""  # about to be read, as seen from the project
    source: str = ""  # of a start: startup, resume, clear, compact, fork
    exchange: bool = False  # at a start: with the last words of the session before
    budget: int = 2_000  # tokens at a start


def context(
    store: Store,
    moment: Moment,
    here: Here,
    given: Given | None = None,
    search: Search | None = None,
) -> Context:
    if moment.what == "start":
        return at_start(
            store, here, moment.budget, moment.exchange, of_session=moment.source == "compact",
            again=moment.source in TAKEN_UP,
        )  # fmt: skip
    if moment.what == "agent start":
        return for_agent(store, here)
    if moment.what == "prompt":
        return at_prompt(
            store, moment.prompt, here.project, here.session, here.now, given, search, here.zone
        )
    if moment.what == "read":
        return at_read(
            store, moment.file, here.project, here.session, here.now, given, search, here.zone
        )
    return Context()
