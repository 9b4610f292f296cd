"""All checks, in the order in which one stands on the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from yester.config import Config, load
from yester.doctor import agents, folder, messages, running, store
from yester.doctor.finding import Finding, problem, standing
from yester.errors import YesterError


def examine(home: Path, now: int, fix: bool = False) -> list[Finding]:
    return list(examining(home, now, fix))


def examining(home: Path, now: int, fix: bool = False) -> Iterator[Finding]:
    """Each finding as it is made. A check that itself fails is a finding, never an exception."""
    yield folder.versions()
    yield from standing("home", folder.home(home, fix))
    try:
        config = load(home, os.environ)
    except YesterError as error:
        yield problem("settings", str(error), "Correct it there.")
        return
    yield folder.settings(config)
    yield from (Finding("settings", "note", warning) for warning in config.warnings)
    if home.exists():
        yield from walk(home, config, fix)
    else:
        yield from running.interpreter(os.environ, home)
    yield from standing("spool", running.spool(home, now, fix))
    yield from standing("log", running.log(home, now))
    yield from standing("model", store.model(home, config))
    yield from standing("transcripts", folder.transcripts(config))
    yield from standing("store", store.store(home, config, now, fix))
    yield from standing("messages", messages.messages(home, config, now, fix))


def glance(home: Path, now: int) -> list[Finding]:
    """What can be seen within a second: no hook is run, no agent asked, and of the store only what
    it says of itself. Nothing is changed."""
    findings = [folder.versions(), *standing("home", folder.home(home, False))]
    try:
        config = load(home, os.environ)
    except YesterError as error:
        return [*findings, problem("settings", str(error), "Correct it there.")]
    findings.append(folder.settings(config))
    findings += [Finding("settings", "note", warning) for warning in config.warnings]
    findings += running.interpreter(os.environ, home)
    findings += standing("launch", running.launching(home, os.environ, False))
    findings += standing("agents", agents.installed(home, config))
    findings += standing("worker", running.worker(home, os.environ, False))
    findings += standing("spool", running.spool(home, now, False))
    findings += standing("log", running.log(home, now))
    findings += standing("model", store.model(home, config, thoroughly=False))
    findings += standing("store", store.store(home, config, now, False, thoroughly=False))
    return findings


def walk(
    home: Path, config: Config, fix: bool = False, folders: Sequence[Path] = ()
) -> Iterator[Finding]:
    """The way of an agent's event: interpreter, how the worker is started, plugin, hooks, worker.

    The hooks of an installed plugin are run, and start the worker as they would for the agent.
    """
    environ = os.environ
    yield from running.interpreter(environ, home)
    yield from standing("launch", running.launching(home, environ, fix))
    yield from standing("agents", agents.agents(home, config, environ, fix, folders))
    yield from standing("worker", running.worker(home, environ, fix))
