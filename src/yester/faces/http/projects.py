"""Projects: listed, renamed and merged. Their names are the user's word, so the user alone gives
them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from yester.deliver import projects as moving
from yester.errors import ConfigError, NotYours, UsageError
from yester.faces.http import shapes
from yester.faces.http.login import USER
from yester.faces.http.parameters import MergeProjects, Nothing, RenameProject
from yester.faces.http.problem import Refusal
from yester.memory import Memory
from yester.redact import redact
from yester.store.figures import project_parts


def listed(memory: Memory, given: Nothing) -> shapes.Projects:  # noqa: ARG001
    return shapes.Projects(
        projects=[
            shapes.Project(
                name=redact(part.project.name), key=redact(part.project.key),
                root=part.project.root, parent=part.project.parent,
                items=sum(part.items.values()), kinds=dict(part.items), sessions=part.sessions,
                last=part.last,
            )
            for part in project_parts(memory.store)
        ]
    )  # fmt: skip


def rename(memory: Memory, given: RenameProject) -> shapes.Projects:
    _refuse_programs(memory)
    project = memory.find_project(given.key, "key")
    with _as_it_is():
        moving.rename(memory.home, memory.store, project, given.name)
    memory.reload_config()
    return listed(memory, Nothing())


def merge(memory: Memory, given: MergeProjects) -> shapes.Merged:
    if not given.dry_run:
        _refuse_programs(memory)
    source = memory.find_project(given.source, "from")
    into = memory.find_project(given.into, "into")
    with _as_it_is():
        found = moving.merge(memory.home, memory.store, source, into, given.dry_run)
    memory.reload_config()
    told = (
        f"{counted(found.items, 'item')} of {counted(found.sessions, 'session')}, "
        f"{counted(found.memories, 'memory', 'memories')} among them (also what is put away), "
        f"{'would become' if given.dry_run else 'are now'} part of {into.name}"
    )
    later = (
        "" if given.dry_run else "; what is captured there later goes the same way (config.toml)"
    )
    return shapes.Merged(
        items=found.items, sessions=found.sessions, memories=found.memories,
        done=not given.dry_run, message=redact(told + later),
    )  # fmt: skip


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _refuse_programs(memory: Memory) -> None:
    if memory.origin != USER:
        raise NotYours("the names of projects are the user's; a program cannot change them")


@contextmanager
def _as_it_is() -> Iterator[None]:
    """What cannot be done is at odds with the projects there are."""
    try:
        yield
    except ConfigError as error:
        raise Refusal(409, str(error), fix="correct config.toml with an editor") from None
    except UsageError as error:
        raise Refusal(409, redact(str(error)), fix="GET /api/projects lists them") from None
