"""All checks, in the order in which one stands on the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from yester.config import Config, load
from yester.doctor import agents, folder, running, store
from yester.doctor.finding import Finding, problem
from yester.errors import YesterError


def examine(home: Path, now: int, fix: bool = False) -> list[Finding]:
    """A check that itself fails is a finding, never an exception."""
    findings = [folder.versions(), *folder.home(home, fix)]
    try:
        config = load(home, os.environ)
    except YesterError as error:
        return [*findings, problem("settings", str(error), "Correct it there.")]
    findings.append(folder.settings(config))
    findings += [Finding("settings", "note", warning) for warning in config.warnings]
    if home.exists():
        findings += walk(home, config, fix)
    else:
        findings += running.interpreter(os.environ, home)
    findings += running.spool(home, now, fix)
    findings += running.log(home, now)
    findings += store.model(home, config)
    findings += folder.transcripts(config)
    findings += store.store(home, config, now, fix)
    return findings


def glance(home: Path, now: int) -> list[Finding]:
    """What can be seen within a second: no hook is run, no agent asked, and of the store only what
    it says of itself. Nothing is changed."""
    findings = [folder.versions(), *folder.home(home, False)]
    try:
        config = load(home, os.environ)
    except YesterError as error:
        return [*findings, problem("settings", str(error), "Correct it there.")]
    findings.append(folder.settings(config))
    findings += [Finding("settings", "note", warning) for warning in config.warnings]
    findings += running.interpreter(os.environ, home)
    findings += running.launching(home, False)
    findings += agents.installed(home, config)
    findings += running.worker(home, os.environ, False)
    findings += running.spool(home, now, False)
    findings += running.log(home, now)
    findings += store.model(home, config, thoroughly=False)
    findings += store.store(home, config, now, False, thoroughly=False)
    return findings


def walk(
    home: Path, config: Config, fix: bool = False, folders: Sequence[Path] = ()
) -> Iterator[Finding]:
    """The way of an agent's event: interpreter, how the worker is started, plugin, hooks, worker.

    The hooks of an installed plugin are run, and start the worker as they would for the agent.
    """
    environ = os.environ
    yield from running.interpreter(environ, home)
    yield from running.launching(home, fix)
    yield from agents.agents(home, config, environ, fix, folders)
    yield from running.worker(home, environ, fix)
