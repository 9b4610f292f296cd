"""Projects: listed, renamed and merged. Their names are the user's word, so the user alone gives
them: in the store, and in [projects] of config.toml so that what is captured from now on goes the
same way.

A project the user has named has the key name:NAME. So both projects of a merge get the name of the
one that stays; their own keys stand in config.toml and lead there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from yester import config
from yester.errors import UsageError
from yester.folders import open_projects
from yester.ingest.projects import join_all
from yester.memories.memory import GLOBAL
from yester.memory import Memory
from yester.model import Join, Paging
from yester.model import Project as Place
from yester.operations import fields
from yester.operations.request import Request, make_answer
from yester.project import (
    EXCLUDED,
    bare_project,
    find_claim,
    identify_project,
    named_project,
    work_tree_place,
)
from yester.project import Projects as Folders
from yester.redact import redact
from yester.store.contract import Store
from yester.store.figures import project_parts
from yester.text.sentences import count_noun

_RESERVED = (GLOBAL.name, EXCLUDED.name)
_THEIRS = "what projects are called and who sees them is the user's; a program cannot change it"


class RenameRequest(Request, kw_only=True):
    key: fields.GivenName
    name: Annotated[
        str, Meta(min_length=1, max_length=80, pattern="^[\\w.~/@+-]+( [\\w.~/@+-]+)*$")
    ]


class MergeRequest(Request, kw_only=True):
    source: fields.GivenName = field(name="from")
    into: fields.GivenName
    dry_run: bool = True


class PrivateRequest(Request, kw_only=True):
    key: fields.GivenName
    private: bool = True


class JoinRequest(Request, kw_only=True):
    folder: fields.GivenName


class JoinedFolder(Struct, kw_only=True):
    """A folder that is the project's now, and how many items came with it."""

    folder: str
    project: str
    key: str
    items: int


class Project(Place, frozen=True, kw_only=True):
    private: bool
    items: int
    kinds: dict[str, int]
    sessions: int
    last: int


class Projects(Struct, kw_only=True):
    projects: list[Project]


class Merged(Struct, kw_only=True):
    """What was moved, or would be."""

    items: int
    sessions: int
    memories: int
    done: bool
    message: str


def list_projects(memory: Memory) -> Projects:
    """Projects, and what there is of each."""
    private = memory.private_projects
    return Projects(
        projects=[
            make_answer(
                Project, part.project, items=sum(part.items.values()), kinds=part.items,
                sessions=part.sessions, last=part.last, private=part.project.key in private,
            )
            for part in project_parts(memory.reading)
        ]
    )  # fmt: skip


def rename_project(memory: Memory, request: RenameRequest) -> Projects:
    """Give a project another name, for good; the user's alone."""
    memory.require_user(_THEIRS)
    project, name = memory.find_project(request.key, "key"), request.name
    _refuse_ours(project)
    if name in _RESERVED:
        raise UsageError(f"{name!r} is a name of yester's own; choose another one")
    if name != project.name:
        into = named_project(name, project.root)
        for other in memory.store.projects():
            if other.key != project.key and (other.name == name or other.key == into.key):
                raise UsageError(
                    f"another project is called {name!r} ({other.key}); choose another name, or "
                    "merge the two"
                )
        _move_items(memory, [project], into)
    return list_projects(memory)


def set_private(memory: Memory, request: PrivateRequest) -> Projects:
    """Keep a project's memory inside it, or no longer; the user's alone."""
    memory.require_user(_THEIRS)
    project = memory.find_project(request.key, "key")
    _refuse_ours(project)
    known = config.load_config(memory.home, {})
    if request.private:
        # By its folder as well: a repository that gets a remote gets another key, and one that
        # names this remote is not the project for that.
        lines = [line for line in (project.key, project.root) if line]
        if memory.cwd and identify_project(memory.cwd).key == project.key:
            lines.append(identify_project(memory.cwd).root)
    else:
        lines = [
            line
            for line in known.private
            if project.key in Folders(known.projects, private=[line]).private
        ]
    changes = {line: _write_line(known, line, request.private) for line in lines}
    config.change_config(memory.home, changes, "projects")
    memory.reload_config()
    return list_projects(memory)


def _write_line(known: config.Config, line: str, private: bool, name: str = "") -> Any:
    """What [projects] says of a path or key; None: nothing."""
    name = name or known.projects.get(line, "")
    marks = {"private": private, "joined": line in known.joined}
    marked = {mark: True for mark, yes in marks.items() if yes}
    return {"name": name, **marked} if name and marked else name or marked or None


def join_folder(memory: Memory, request: JoinRequest) -> JoinedFolder:
    """Take a folder for the repository whose remote it names, with what was stored of it as a
    project of its own; the user's alone."""
    memory.require_user(_THEIRS)
    cwd = str(Path(request.folder).expanduser().absolute())
    path, key = find_claim(cwd, identify_project(cwd))
    if not key.startswith("git:"):
        raise UsageError(f"{request.folder} names no remote; it is a project of its own")
    known = config.load_config(memory.home, {})
    line = {"joined": True} | ({"private": True} if path in known.private else {})
    config.change_config(memory.home, {path: line}, "projects")
    memory.reload_config()
    projects = open_projects(memory.config)
    into = projects.by_folder(cwd)
    joins = join_all(memory.store, projects, memory.now)
    items = sum(one.items for one in joins if one.into == into.key)
    name = memory.project_names().get(into.key, into.name)
    return JoinedFolder(folder=path, project=name, key=into.key, items=items)


def merge_projects(memory: Memory, request: MergeRequest) -> Merged:
    """Make one project part of another, with what is captured later; the user's alone."""
    if not request.dry_run:
        memory.require_user(_THEIRS)
    project = memory.find_project(request.source, "from")
    into = memory.find_project(request.into, "into")
    for one in (project, into):
        _refuse_ours(one)
    if project.key == into.key:
        raise UsageError(f"{project.name!r} cannot be merged into itself; name two projects")
    store = memory.reading
    part = next(part for part in project_parts(store) if part.project.key == project.key)
    held = dict(store.totals("item", ("kind",), where={"project": project.key}))
    items, memories = sum(held.values()), held.get("memory", 0)
    done, later = "would become", ""
    if not request.dry_run:
        _move_items(memory, [into, project], named_project(into.name, into.root))
        done, later = "are now", "; what is captured there later goes the same way (config.toml)"
    message = (
        f"{count_noun(items, 'item')} of {count_noun(part.sessions, 'session')}, "
        f"{count_noun(memories, 'memory', 'memories')} among them (also what is put away), {done} "
        f"part of {into.name}{later}"
    )
    return Merged(
        items=items, sessions=part.sessions, memories=memories, done=not request.dry_run,
        message=redact(message),
    )  # fmt: skip


def _refuse_ours(project: Place) -> None:
    if project.key in (GLOBAL.key, EXCLUDED.key):
        raise UsageError(f"{project.name!r} is no project of yours; it stays as it is")


def undo_join(home: Path, store: Store, wanted: str, now: int) -> tuple[Place, int]:
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
    into = named_project(_free_name(store, join), path)
    with _change_names(home, store, {path: into.name}):
        moved = store.part_project(join, into, now)
    return into, moved


def _free_name(store: Store, join: Join) -> str:
    """What it was called, unless that was a number or is taken."""
    taken = {name for one in store.projects() for name in (one.name, one.key)}
    place = join.key.removeprefix("dir:")
    owner, last = work_tree_place(place), bare_project(join.key).name.rpartition("/")[2]
    names = [join.name, f"{owner[0].name}/{last}" if owner else last, place]
    return next(name for name in names if not name.isdigit() and not {name, f"name:{name}"} & taken)


def _move_items(memory: Memory, projects: list[Place], into: Place) -> None:
    overrides = config.load_config(memory.home, {}).projects
    names = lines_for(overrides, projects, into.name)
    with _change_names(memory.home, memory.store, names):
        for project in projects:
            memory.store.merge_project(project.key, into)
    memory.reload_config()


@contextmanager
def _change_names(home: Path, store: Store, names: Mapping[str, str | None]) -> Iterator[None]:
    """Items are moved inside. The file is replaced just before the store commits: both, or
    neither."""
    path = config.config_file(home)
    before = config.read_config_text(path)
    try:
        with store.transaction("places"):
            yield
            known = config.load_config(home, {})
            changes = {
                line: name and _write_line(known, line, line in known.private, name)
                for line, name in names.items()
            }
            config.change_config(home, changes, "projects")
    except BaseException:
        if config.read_config_text(path) != before:
            config.write_config_text(path, before)
        raise


def lines_for(
    overrides: Mapping[str, str], projects: list[Place], name: str
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
