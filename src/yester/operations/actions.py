"""What an agent is told around a tool that is used, and by hand: what ended an error before.

Apart from `context.py`: nothing here is looked for where a prompt waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from yester.agents.hooks import HookEvent
from yester.cards.failures import error_mark
from yester.cards.tools import Error, error_fingerprint, find_errors
from yester.config import Config, narrow_config
from yester.context.actions import SETTINGS, Action, at_action
from yester.context.block import Context, Here
from yester.context.endings import Ending, ending_lines, find_ending
from yester.folders import open_projects
from yester.git import find_top
from yester.memory import Memory
from yester.model import ANYTHING, Project, replace
from yester.operations import fields
from yester.operations.request import Request
from yester.project import named_project
from yester.redact import redact

# By the names of Claude Code → what happens. Answered where there is something to say (run/armed).
EVENTS: Mapping[str, str] = {
    "PreToolUse": "act", "PostToolUse": "tool", "PostToolUseFailure": "failure",
}  # fmt: skip


def build_action_context(
    memory: Memory, event: HookEvent, project: Project, facts: Collection[str]
) -> Context:
    """For a use of a tool in a project; `facts`: of what its session was told at such moments."""
    config = narrow_config(memory.config, event.hints)
    private = open_projects(config).private
    # A file's path is seen from the work tree at hand.
    top = find_top(event.cwd, project.root) if event.cwd else project.root
    here = Here(
        replace(project, root=top), event.session, event.epoch,
        everywhere=config.flag("cross_project"), private=tuple(private - {project.key}),
    )  # fmt: skip
    action = Action(event.tool, event.given, event.output, event.failed)
    return at_action(memory.reading, action, here, facts, switched_off(config))


def switched_off(config: Config) -> list[str]:
    """The reflexes that the user does not want; who wants nothing at prompts wants none of them."""
    wanted = config.number("max_inject") > 0
    return [name for name in SETTINGS if not (wanted and config.flag(name))]


# --- asked by hand --------------------------------------------------------------------------------


class FixRequest(Request, kw_only=True):
    text: fields.GivenText
    project: fields.ProjectName = ""


class Fix(Struct, kw_only=True):
    """An error that was met before, and what came of it."""

    error: str
    line: str
    ended: bool
    times: int
    last: int
    project: str
    turn: int
    item: int
    run: int
    files: list[str]
    cause: str


class Fixes(Struct, kw_only=True):
    count: int
    fixes: list[Fix]


def find_fixes(memory: Memory, request: FixRequest) -> Fixes:
    """What ended an error before, in the project, else in any."""
    store = memory.reading
    project = memory.find_project(request.project) if request.project else named_project("")
    private = memory.hide_private(ANYTHING, request.project).without_projects
    here = Here(project, "", memory.now, private=private)
    names = {one.key: one.name for one in store.projects()}
    text = redact(request.text)
    found = {error_mark(one): one for one in find_errors(text)}
    # What no table knows as an error may be the very line that one told, or it without its label,
    # as we print it ourselves.
    for line in text.split("\n"):
        for typed in (line.strip(), f"error: {line.strip()}"):
            plain = Error(typed, error_fingerprint(typed), len(found))
            found.setdefault(error_mark(plain), plain)
    endings = [find_ending(store, [mark], here, asked=True) for mark in found]
    fixes = [_describe(one, here, names) for one in endings if one is not None]
    return Fixes(count=len(fixes), fixes=fixes)


def _describe(one: Ending, here: Here, names: Mapping[str, str]) -> Fix:
    return Fix(
        error=one.failure.text, line=ending_lines(one, here.calendar)[0], ended=one.ended,
        times=one.times, last=one.last, project=names.get(one.failing.project, ""),
        turn=one.card.id if one.card else 0, item=one.failing.id, run=one.failure.run,
        files=list(one.files), cause=one.cause,
    )  # fmt: skip
