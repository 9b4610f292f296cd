"""Looks at everything yester stands on and says what is wrong and how to put it right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from yester.config import Config, load_config
from yester.errors import YesterError
from yester.model import replace
from yester.operate.doctor import agents, checks
from yester.operate.doctor.finding import Check, Examination, Finding, explain_error, walk_checks
from yester.operate.install import Place

# In the order in which one stands on the other. These need no settings.
_FIRST = (
    Check("versions", checks.look_at_versions),
    Check("home", checks.look_at_disk),
    Check("permissions", checks.look_at_modes),
)
# The way of an agent's event. The hooks of an installed plugin are run, and start the worker as
# they would for the agent.
_WAY = (
    Check("python3", checks.look_at_python),
    Check("launch", checks.look_at_launch, needs_home=True),
    Check("plugin", agents.look_at_plugin, needs_home=True),
    Check("agents", agents.look_at_agents, needs_home=True),
    Check("hooks", agents.look_at_hooks, needs_home=True, slow=True),
    Check("mcp", agents.look_at_servers, needs_home=True, slow=True),
    Check("path", agents.look_at_path, needs_home=True, slow=True),
    Check("worker", checks.look_at_worker, needs_home=True),
)
_CHECKS = (
    Check("settings", checks.look_at_settings),
    *_WAY,
    Check("spool", checks.look_at_spool),
    Check("gap", checks.look_at_gap),
    Check("log", checks.look_at_log),
    Check("model", checks.look_at_model),
    Check("transcripts", checks.look_at_transcripts, slow=True),
    Check("store", checks.look_at_store),
    Check("roam", checks.look_at_roaming, needs_home=True),
    Check("share", checks.look_at_sharing, needs_home=True),
)


def examine(home: Path, now: int, fix: bool = False, thorough: bool = True) -> Iterator[Finding]:
    """Each finding as it is made."""
    case = Examination(home, Config(home, {}, {}), os.environ, now, fix, thorough)
    yield from walk_checks(_FIRST, case)
    try:
        config = load_config(home, case.environ)
    except YesterError as error:
        yield explain_error("settings", error)
        return
    yield from walk_checks(_CHECKS, replace(case, config=config))


def examine_quickly(home: Path, now: int) -> list[Finding]:
    """What can be seen within a second: no hook is run, no agent asked, and of the store only what
    it says of itself. Nothing is changed."""
    return list(examine(home, now, thorough=False))


def examine_way(home: Path, config: Config, places: Sequence[Place]) -> Iterator[Finding]:
    """From the agents in these places to the worker."""
    return walk_checks(_WAY, Examination(home, config, os.environ, places=places))
