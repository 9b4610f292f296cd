"""yester in the agents besides Claude Code: is it still in place, and do their hooks work?"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from yester.agents.descriptors import CLAUDE_CODE, Agent, find_agent
from yester.capture.rules import load_pauses
from yester.operate import install
from yester.operate.doctor.finding import Examination, Finding, list_paths, make_finding
from yester.operate.doctor.trial import TRIAL_PAYLOAD, Trial, time_program

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_USUAL_EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
_ANSWERED = ("SessionStart", "UserPromptSubmit")
_ASKED_SECONDS = 10.0


def look_at_agents(case: Examination) -> Iterator[Finding]:
    for row in install.read_installed(case.home).values():
        agent = find_agent(row.agent)
        if agent is CLAUDE_CODE or agent.setup is None:
            continue
        place = install.Place(case.home, agent, Path(row.folder))
        say = partial(make_finding, label=agent.label, name=agent.name, folder=row.folder)
        if lacking := install.plan_agent(place):
            yield say("agents.changed", what=list_paths([change.path for change in lacking]))
        elif not case.thorough or any(not one.until for one in load_pauses(case.home)):
            yield say("agents.linked")
        else:
            yield _try_agent(case, agent, say)
        for sentence in agent.cannot:
            yield say("agents.cannot", sentence=sentence)


def _try_agent(case: Examination, agent: Agent, say: partial[Finding]) -> Finding:
    """Every hook that its client would run, once, with a made-up event."""
    events = list(agent.events.values()) or list(_USUAL_EVENTS)
    slowest = 0.0
    for event in events:
        trial = _try_event(case, agent, event)
        if trial.wrong:
            return say("agents.wrong", event=event, wrong=trial.wrong)
        slowest = max(slowest, trial.seconds)
    version = ".".join(map(str, read_version(agent.program, case.environ, case.home)))
    milliseconds = slowest * 1000
    return say("agents.right", version=version or "?", number=len(events), ms=milliseconds)


def _try_event(case: Examination, agent: Agent, event: str) -> Trial:
    cwd = case.home / "run" / "trial"
    cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    payload = {**TRIAL_PAYLOAD, "cwd": str(cwd), "hook_event_name": event}
    environ = {name: value for name, value in case.environ.items() if not name.startswith("CLAUDE")}
    words = ["/bin/sh", "-c", install.hook_command(agent, case.home, event)]
    trial = time_program(words, msgspec.json.encode(payload), cwd, environ)
    if not trial.wrong and event in _ANSWERED and not trial.out:
        return trial._replace(wrong="got no answer")
    return trial


def read_version(program: str, environ: Mapping[str, str], cwd: Path) -> tuple[int, ...]:
    """What a program on the PATH says its version is; () where it does not say."""
    path = shutil.which(program, path=environ.get("PATH", "")) if program else None
    if path is None:
        return ()
    said = time_program([path, "--version"], b"", cwd, environ, _ASKED_SECONDS)
    match = _VERSION.search(said.out.decode("utf-8", "replace"))
    return tuple(map(int, match.groups())) if match else ()
