"""Projects of what is stored already: names the user has set since, and folders that were stored as
projects of their own, joined with their repository: work trees that are gone, of which older
versions did not know it (`yester.project`), and clones that were not sure to be one
(`yester.folders`).

Each is joined in one transaction that also writes down what was whose; a run that is killed goes on
with the next one. The user's word in [projects] counts first, and what was parted again stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from yester.folders import open_folders
from yester.model import Filters, Join, Project
from yester.project import EXCLUDED, Projects, bare_project, identify_project, work_tree_place
from yester.store.contract import Store


def begin_folders(store: Store, home: Path) -> None:
    """Where nothing is recorded of folders yet, those of the sessions are what they were."""
    folders = open_folders(home)
    if folders.is_new:
        cwds = {one.cwd for one in store.sessions(Filters())}
        cwds |= {one.root for one in store.projects()}
        folders.begin((cwd, identify_project(cwd)) for cwd in sorted(cwds - {""}))


def join_next(store: Store, projects: Projects, now: int) -> Join | None:
    """Join one; None where there is none left to join."""
    for project, into in _find_joinable(store, projects):
        with store.transaction("places"):
            made = store.merge_project(project.key, into, now)
        if made:  # else another process was faster
            return store.entries(Join, {"id": made})[0]
    _rename_numbers(store)
    return None


def join_all(store: Store, projects: Projects, now: int) -> list[Join]:
    """Join all of them."""
    joins = []
    while joined := join_next(store, projects, now):
        joins.append(joined)
    return joins


def _find_joinable(store: Store, projects: Projects) -> Iterator[tuple[Project, Project]]:
    """Projects that are work trees by their path, or name a remote, and the ones that they belong
    to."""
    known = store.projects()
    parted = {join.key for join in store.entries(Join) if join.undone}
    roots = {one.root: one for one in known if one.root and not one.key.startswith("dir:")}
    for project in known:
        path = project.root or project.key.removeprefix("dir:")
        if not project.key.startswith("dir:") or project.key in parted:
            continue
        own = work_tree_place(path) is None
        if (own and not projects.was_apart(path)) or projects.apply_names(project) != project:
            continue
        into = projects.by_folder(path)
        if into == EXCLUDED or into.key == project.key or (not own and into.root in ("", path)):
            continue
        # A repository that is gone as well is known by its remote, if it was met before.
        yield project, roots.get(into.root, into) if into.key.startswith("dir:") else into


def describe_joins(store: Store, joins: Sequence[Join]) -> str:
    """`2 and 3 with shop`, for people."""
    names = {project.key: project.name for project in store.projects()}
    into: dict[str, list[str]] = {}
    for join in joins:
        into.setdefault(names.get(join.into, join.into), []).append(join.name)
    return "; ".join(f"{', '.join(found)} with {name}" for name, found in into.items())


def _rename_numbers(store: Store) -> None:
    """A project that an older version has called by a number alone gets a name that says more."""
    numbered = [one for one in store.projects() if one.name.isdigit()]
    better = [
        one for one in map(bare_project, (one.key for one in numbered)) if not one.name.isdigit()
    ]
    if better:
        with store.transaction("places"):
            for project in better:
                store.put_project(project)


def apply_names(store: Store, projects: Projects) -> int:
    """Give what is already stored the names the user has set since; the number of items moved."""
    moved = 0
    for project in store.projects():
        wanted = projects.apply_names(project)
        if wanted.key != project.key:
            with store.transaction("places"):
                moved += store.merge_project(project.key, wanted)
    return moved
