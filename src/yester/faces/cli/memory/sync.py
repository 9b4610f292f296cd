"""`yester memory sync`: a folder of memory files and the store in step, both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from yester import git
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.faces.cli.memory.said import here
from yester.memories.folder import find_folder, locate_folder
from yester.memories.memory import Author
from yester.memories.sync import Action, SyncReport, sync_folder
from yester.model import Project
from yester.store.lock import write_lock

_PATIENCE = 60.0  # seconds for another sync
_DONE: Mapping[str, str] = {
    "write": "written", "take": "taken", "delete": "deleted", "retire": "put away",
    "conflict": "conflict",
}  # fmt: skip


@click.command("sync")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--project", "-p", metavar="NAME", help="Memories of this project, not DIR's own.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--emptied", is_flag=True, help="All memories are gone from one side on purpose.")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(
    app: App,
    folder: Path | None,
    project: str | None,
    dry_run: bool,
    emptied: bool,
    as_json_: bool,
) -> None:
    """Keep the memory files in DIR and the store in step, both ways.

    DIR is a folder of JSON files as in `.claude/memory`, or a project that has one; without DIR,
    that of the current project if it is there. What changed on one side goes over, and what was
    deleted on one side is retired or archived in the store, or deleted in DIR. Where both have
    changed a memory both versions stay, and you are told. Rules and notes have no files.

    Exit code 3 when there was a conflict, or something could not be done.
    """
    root, owner = locate_folder(folder or find_folder(Path.cwd(), _top(app)))
    whose = here(app, project, owner if owner != root else None, instead="")
    by = Author("sync", app.now, "file", f"from {root}")
    if dry_run:
        done = sync_folder(app.reading, root, whose, by, emptied=emptied, dry_run=True)
    else:
        store = app.store
        with write_lock(app.home / "run" / "sync.lock", _PATIENCE):
            done = sync_folder(store, root, whose, by, emptied=emptied)
    notes = [*done.config.warnings, *_told(app, done)]
    if as_json_:
        print_json(_json(done, whose, dry_run, notes))
    else:
        for note in (*done.problems, *notes):
            click.echo(f"yester: {note}", err=True)
        for action in done.done:
            click.echo(_said(action))
        click.echo(_summary(done, dry_run))
    if done.problems or done.conflicts:
        click.get_current_context().exit(3)


def _top(app: App) -> str:
    cwd = str(Path.cwd())
    return git.find_top(cwd, here(app).root)


def _told(app: App, done: SyncReport) -> list[str]:
    """A repository deletes nothing of the user's: what its configuration asks for is only told."""
    return [
        f"{done.folder}: its memory-config.json wants {name} kept for {days} days; "
        f"that is yours to decide: [retention] {name} = {days} in config.toml"
        for name, days in done.config.retention_days.items()
        if days and name not in app.config.retention
    ]


def _said(action: Action) -> str:
    why = f": {action.why}" if action.why else ""
    return f"{_DONE[action.what]:9}{action.key}{why}"


def _summary(done: SyncReport, dry_run: bool) -> str:
    if not done.done:
        return f"nothing to do in {done.folder} ({count(done.memories, 'memory file')})"
    numbers = Counter(_DONE[action.what] for action in done.done)
    told = ", ".join(f"{number:,} {name}" for name, number in numbers.items())
    return f"{'would be: ' if dry_run else ''}{told} ({done.folder})"


def _json(done: SyncReport, project: Project, dry_run: bool, notes: list[str]) -> dict[str, Any]:
    return {
        "folder": str(done.folder), "project": project.name, "dry_run": dry_run,
        "done": [
            {"what": one.what, "key": one.key, "why": one.why,
             "copy": one.other.key if one.other else ""}
            for one in done.done
        ],
        "conflicts": done.conflicts, "problems": done.problems, "notes": notes,
        "memories": done.memories,
    }  # fmt: skip
