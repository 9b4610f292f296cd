"""Projects renamed and merged by the user's word: in the store, and in [projects] of config.toml so
that what is captured from now on goes the same way.

A project the user has named has the key name:NAME. So both projects of a merge get the name of the
one that stays; their own keys stand in config.toml and lead there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from yester import config
from yester.errors import UsageError
from yester.memories.memory import GLOBAL
from yester.model import Join, Paging, Project
from yester.project import EXCLUDED, Projects, bare, named, work_tree_place
from yester.store.contract import Store
from yester.store.figures import project_parts

R = TypeVar("R")
_RESERVED = (GLOBAL.name, EXCLUDED.name)


@dataclass(frozen=True, slots=True)
class Moved:
    """What a merge moves, or would, whatever its status."""

    items: int
    sessions: int
    memories: int


def rename(home: Path, store: Store, project: Project, name: str) -> Project:
    """Call it so from now on."""
    _refuse_ours(project)
    if name in _RESERVED:
        raise UsageError(f"{name!r} is a name of yester's own; choose another one")
    if name == project.name:
        return project
    into = named(name, project.root)
    for other in store.projects():
        if other.key != project.key and (other.name == name or other.key == into.key):
            raise UsageError(
                f"another project is called {name!r} ({other.key}); choose another name, or merge "
                "the two"
            )
    _carry_out(home, store, [project], into)
    return into


def merge(
    home: Path, store: Store, project: Project, into: Project, dry_run: bool = False
) -> Moved:
    """Everything of a project becomes another's, also what is captured later."""
    for one in (project, into):
        _refuse_ours(one)
    if project.key == into.key:
        raise UsageError(f"{project.name!r} cannot be merged into itself; name two projects")
    part = next(part for part in project_parts(store) if part.project.key == project.key)
    held = dict(store.totals("item", ("kind",), where={"project": project.key}))
    found = Moved(sum(held.values()), part.sessions, held.get("memory", 0))
    if not dry_run:
        _carry_out(home, store, [into, project], named(into.name, into.root))
    return found


def _refuse_ours(project: Project) -> None:
    if project.key in (GLOBAL.key, EXCLUDED.key):
        raise UsageError(f"{project.name!r} is no project of yours; it stays as it is")


def undo_join(home: Path, store: Store, wanted: str, now: int) -> tuple[Project, int]:
    """What yester has joined by itself becomes a project of its own again, and stays one, since its
    folder stands in [projects] from now on. The project, and how many items it has got back."""
    joined = store.entries(Join, {"undone": 0}, Paging(oldest_first=True))
    found = [join for join in joined if wanted in (join.key, join.name, join.root)]
    if len(found) != 1:
        there = ", ".join(join.key if found else join.name for join in found or joined)
        known = f"name one of {there}" if there else "nothing is joined"
        several = "several joined projects are" if found else "no joined project is"
        raise UsageError(f"{several} called {wanted!r}; {known}")
    join = found[0]
    path = join.root or join.key.removeprefix("dir:")
    into = named(_free_name(store, join), path)

    def carry_out(file: Path, before: str) -> int:
        after = config.edit_config_text(before, {path: into.name}, "projects")
        if after is None:
            raise UsageError(_by_hand(file, {path: into.name}))
        moved = store.part_project(join, into, now)
        config.write_config_text(file, after)
        return moved

    return into, _in_step(home, store, carry_out)


def _free_name(store: Store, join: Join) -> str:
    """What it was called, unless that was a number or is taken."""
    taken = {name for one in store.projects() for name in (one.name, one.key)}
    place = join.key.removeprefix("dir:")
    owner, last = work_tree_place(place), bare(join.key).name.rpartition("/")[2]
    names = [join.name, f"{owner[0].name}/{last}" if owner else last, place]
    return next(name for name in names if not name.isdigit() and not {name, f"name:{name}"} & taken)


def _in_step(home: Path, store: Store, carry_out: Callable[[Path, str], R]) -> R:
    """The file is replaced just before the store commits: both, or neither."""
    path = config.config_file(home)
    with config.one_at_a_time:
        before = config.read_config_text(path)
        try:
            with store.transaction("places"):
                return carry_out(path, before)
        except BaseException:
            if config.read_config_text(path) != before:
                config.write_config_text(path, before)
            raise


def _carry_out(home: Path, store: Store, projects: list[Project], into: Project) -> None:
    _in_step(home, store, lambda path, before: _move(home, path, before, store, projects, into))


def _by_hand(path: Path, names: Mapping[str, str | None]) -> str:
    return (
        f"{path} is written in a way that cannot be changed line by line; put "
        f"{_told(names)} into [projects] yourself, then run: yester index"
    )


def _move(
    home: Path, path: Path, before: str, store: Store, projects: list[Project], into: Project
) -> None:
    overrides = config.load(home, {}).projects
    names = lines_for(overrides, projects, into.name)
    after = config.edit_config_text(before, names, "projects")
    kept = {k: v for k, v in {**overrides, **names}.items() if v is not None}
    if after is None or not _leads_there(overrides, kept, projects, into.key):
        raise UsageError(_by_hand(path, names))
    for project in projects:
        store.merge_project(project.key, into)
    config.write_config_text(path, after)


def lines_for(
    overrides: Mapping[str, str], projects: list[Project], name: str
) -> dict[str, str | None]:
    """What [projects] must say so that all of these have this name; None: a line goes."""
    own = {f"name:{name}"}
    keys = {project.key for project in projects}
    found: dict[str, str | None] = {
        line: name for line, old in overrides.items() if f"name:{old}" in keys - own
    }
    found |= dict.fromkeys(sorted(keys - own), name)
    # A name that was merged away earlier and is used again leads nowhere else any more.
    return found | {line: None for line in own if line in overrides}


def _leads_there(
    before: Mapping[str, str], after: Mapping[str, str], projects: list[Project], key: str
) -> bool:
    """Would what is captured in their folders go there?"""
    old, new = Projects(before), Projects(after)
    return all(
        new.renamed(one).key == key
        and (not one.root or old.of(one.root).key != one.key or new.of(one.root).key == key)
        for one in projects
        if one.key != key
    )


def _told(names: Mapping[str, str | None]) -> str:
    return ", ".join(f'"{key}" = "{name}"' for key, name in names.items() if name is not None)
