"""One owner's machines kept in step, without a server: begun, joined, run, looked at, ended.

Only the user says where memory goes: an agent may look, and nothing else.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from yester.errors import SourceError, UsageError
from yester.memory import Memory
from yester.model import LogSegment, Machine
from yester.operations.forget import forget_marked
from yester.redact import redact
from yester.sharing.exchange import Progress, Side
from yester.sharing.keys import Key, key_file, load_sodium
from yester.sharing.roam import Outgoing, Report, Roam, load_roaming, state_file
from yester.sharing.transports import open_transport
from yester.store import store_exists
from yester.store.contract import Store


class RoamMachine(Struct, kw_only=True):
    machine: str
    name: str
    own: bool
    seen: int
    segments: int
    items: int


class RoamState(Struct, kw_only=True):
    on: bool
    to: str
    machines: list[RoamMachine]
    waiting: int
    private: int
    last: int
    problems: list[str]


class Outlook(Struct, kw_only=True):
    """What would be sent."""

    to: str
    projects: dict[str, dict[str, int]]
    private: int
    items: int


def show_roam(memory: Memory) -> RoamState:
    """Which machines share this memory, when each was last heard of, and what waits."""
    if not store_exists(memory.home):
        return RoamState(on=False, to="", machines=[], waiting=0, private=0, last=0, problems=[])
    state, store = load_roaming(memory.home), memory.reading
    found, private = _outgoing(memory, store).summarise() if state else (Counter(), 0)
    return RoamState(
        on=state is not None, to=redact(state.to) if state else "", machines=_list_machines(store),
        waiting=found.total() + private, private=private, last=state.last if state else 0,
        problems=state.problems if state else [],
    )  # fmt: skip


def _list_machines(store: Store) -> list[RoamMachine]:
    """Each once, whatever names it has had; this one first."""
    found: dict[str, RoamMachine] = {}
    for one in sorted(store.entries(Machine), key=lambda one: one.key):
        stem = one.key.partition("-")[0]
        new = RoamMachine(machine=stem[:4], name="", own=bool(one.own), seen=0, segments=0, items=0)
        known = found.setdefault(stem, new)
        known.name, known.seen = redact(one.name) or known.name, max(known.seen, one.seen)
        known.segments += store.totals("roam_segment", where={"machine": one.key})[0][0]
        if not one.own:
            known.items += store.totals("roam_item", where={"origin": one.key})[0][0]
    return sorted(found.values(), key=lambda one: (not one.own, -one.seen))


def preview_roam(memory: Memory) -> Outlook:
    """What the next run would write into the log, by project and kind."""
    state, names = load_roaming(memory.home), memory.project_names()
    found, private = _outgoing(memory, memory.reading).summarise()
    projects: dict[str, dict[str, int]] = {}
    for (project, kind), number in sorted(found.items()):
        projects.setdefault(redact(names.get(project, project)), {})[kind] = number
    projects = dict(sorted(projects.items(), key=lambda one: -sum(one[1].values())))
    to = redact(state.to) if state else ""
    return Outlook(to=to, projects=projects, private=private, items=found.total())


def _outgoing(memory: Memory, store: Store) -> Outgoing:
    names = sorted(one.key for one in store.entries(Machine, {"own": 1}))
    own = names[-1] if names else ""
    return Outgoing(Side(memory.home, store, memory.now), own, names, memory.private_projects)


# --- what only the user does ---------------------------------------------------------------------


def _open_roam(memory: Memory, url: str, progress: Progress) -> Roam:
    memory.require_user("where memory goes is the user's word: they run `yester roam`")
    load_sodium()
    forget = forget_marked(memory, progress)
    side = Side(memory.home, memory.store, memory.now, forget, progress)
    transport = open_transport(url, memory.home, os.environ)
    return Roam(side, transport, memory.private_projects)


def begin_roam(memory: Memory, url: str, progress: Progress) -> tuple[Key, Report]:
    """A new log there, with everything but private projects; its recovery code is told once."""
    if (state := load_roaming(memory.home)) is not None:
        there = f"this home roams to {redact(state.to)} already"
        raise UsageError(f"{there}; `yester roam --stop`, then --to {url}")
    url = _full_path(url)
    roam = _open_roam(memory, url, progress)
    if "://" not in url:
        Path(url).mkdir(mode=0o700, exist_ok=True)
    key = roam.begin_log()
    with suppress(SourceError):  # it is in the report, and the code must be told
        roam.exchange()
    return key, roam.report


def join_roam(memory: Memory, url: str, code: str, progress: Progress) -> Report:
    """Take part in a log that another machine has begun."""
    url = _full_path(url)
    roam = _open_roam(memory, url, progress)
    roam.join_log(Key.from_code(code))
    return roam.exchange()


def run_roam(memory: Memory, progress: Progress) -> Report:
    """Read what others have written, write what they lack."""
    return _present_roam(memory, progress).exchange()


def renew_key(memory: Memory, progress: Progress) -> tuple[Key, Report]:
    """The log anew under another key: a machine that is lost reads no more of it, and is not
    believed. Every other one joins again."""
    roam = _present_roam(memory, progress)
    return roam.change_key(), roam.report


def stop_roam(memory: Memory) -> str:
    """Everything stays here, and nothing is sent or read any more; what remains elsewhere."""
    memory.require_user("where memory goes is the user's word: they run `yester roam --stop`")
    state = load_roaming(memory.home)
    if state is None:
        raise UsageError("this home does not roam")
    segments = {(one.machine, one.number) for one in memory.store.entries(LogSegment)}
    items = memory.store.totals("roam_item")[0][0]
    state_file(memory.home).unlink()
    key_file(memory.home).unlink(missing_ok=True)
    return (
        f"{redact(state.to)} keeps what was written there, encrypted (segments: {len(segments)}, "
        f"items: {items:,}), and your other machines go on with it. Remove that place to remove "
        "it: yester does not"
    )


def _present_roam(memory: Memory, progress: Progress) -> Roam:
    state = load_roaming(memory.home)
    if state is None:
        raise UsageError("this home does not roam; yester roam --to FOLDER begins it")
    return _open_roam(memory, state.to, progress)


def _full_path(url: str) -> str:
    return url if "://" in url else str(Path(url).expanduser().absolute())
