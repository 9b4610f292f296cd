"""The commands about what others have written down: import, memory sync, promote."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from difflib import unified_diff
from pathlib import Path

import click

from yester import git
from yester.agents.notes import find_instructions
from yester.capture.rules import load_rules
from yester.errors import NotFound, SourceError, UsageError
from yester.faces.cli.app import App, Output, command, print_warning
from yester.faces.cli.recall import find_items
from yester.faces.cli.screen import count_noun, join_counts, join_kinds
from yester.files import make_folder, read_shared, swap_shared
from yester.ingest.transcripts import rebuild_if_stale
from yester.memories import memory_md
from yester.memories.files import find_memory_folder, locate_folder
from yester.memories.memory import Author
from yester.memories.memory_md import MEMORY, memory_paths
from yester.memories.sync import ImportReport, SyncReport, import_folder, sync_folder
from yester.model import Item
from yester.operate import notes
from yester.redact import redact
from yester.store.lock import write_lock

_SYNC_PATIENCE = 60.0  # seconds for another sync
_DONE: Mapping[str, str] = {
    "write": "written", "take": "taken", "delete": "deleted", "retire": "put away",
    "conflict": "conflict",
}  # fmt: skip


@command("import notes")
def notes_command(app: App, paths: tuple[Path, ...]) -> Output:
    """Import the notes in Markdown files: MEMORY.md, CLAUDE.md and the like.

    PATHS are files, or projects' folders whose CLAUDE.md files and MEMORY.md are meant; without
    any it is the current folder. Each list item and each paragraph is a note. Run it again after
    an edit: an edited note is updated, and one that was taken out is not found any more.
    """
    files = [file for path in paths or (Path(),) for file in _find_note_files(app, path)]
    if not files:
        where = ", ".join(map(str, paths)) or "this folder"
        raise NotFound(f"no CLAUDE.md and no {MEMORY} for {where}; name a file")
    rebuild_if_stale(app.store)
    report = notes.import_notes(app.store, files, app.projects, load_rules(app.config), again=True)
    said = summarise_notes(report) or f"nothing new in {count_noun(report.files, 'file')}"
    return _show_report(report, said, "file")


def _show_report(report: ImportReport, said: str, what: str) -> Output:
    failed = report.problems and not report.files
    error = SourceError(f"no {what} could be read; see above") if failed else None
    return Output(report, [said], warnings=report.problems, error=error)


def _find_note_files(app: App, path: Path) -> list[tuple[Path, str]]:
    """Files, and the folder that they are about where that is known."""
    whole = path.absolute()
    if whole.is_dir():
        own = [(file, str(whole)) for file in find_instructions(whole)]
        kept = app.find_memory_md(whole)
        return own + ([(kept, str(whole))] if kept else [])
    if not whole.exists():
        raise SourceError(f"{path}: no such file or folder")
    if whole.suffix != ".md":
        raise SourceError(f"{path}: is not a Markdown file (.md)")
    return [(whole, "")]


def summarise_notes(report: ImportReport) -> str:
    """What a run did, in a line; "" where nothing."""
    said = join_counts(
        (report.added, count_noun(report.added, "new note")),
        (report.changed, f"{report.changed:,} changed"),
        (report.gone, f"{report.gone:,} gone"),
    )
    return f"{said} in {count_noun(report.files, 'file')}" if said and report.files else said


@command("import claude-memory")
def claude_memory_command(app: App, folder: Path | None, project: str | None) -> Output:
    """Import the memories of a `.claude/memory` folder; nothing is written there.

    DIR is the folder or the project that has it; without DIR, the current one. Run it again after
    a change: what has changed is updated, and what you have retired stays retired. To keep both
    sides in step use `yester memory sync`.

    Exit code 1 when there is no memory in it, 3 when none could be read.
    """
    place = folder or Path()
    if not place.is_dir():
        raise SourceError(f"{place}: no such folder; name a project or its .claude/memory")
    root, owner = locate_folder(place)
    if not root.is_dir():
        raise NotFound(f"{place}: has no .claude/memory; name the folder")
    whose = app.choose_project(project, owner if owner != root else None, instead="")
    by = Author("import", app.now, "import", f"from {root}")
    report = import_folder(app.store, root, whose, by)
    said = join_counts(
        (report.added, f"{report.added:,} new"),
        (report.changed, f"{report.changed:,} changed"),
        (report.stayed, f"{report.stayed:,} left as they are (retired or let go here)"),
    )
    said = said or f"nothing new in {count_noun(report.files, 'memory file')}"
    return _show_report(report, said, "memory")._replace(code=int(not report.files))


# --- both ways ------------------------------------------------------------------------------------


@command("memory sync")
def sync_command(
    app: App, folder: Path | None, project: str | None, dry_run: bool, emptied: bool
) -> Output:
    """Keep the memory files in DIR and the store in step, both ways.

    DIR is a folder of JSON files as in `.claude/memory`, or a project that has one; without DIR,
    that of the current project if it is there. What changed on one side goes over, and what was
    deleted on one side is retired or archived in the store, or deleted in DIR. Where both have
    changed a memory both versions stay, and you are told. Rules and notes have no files.

    Exit code 3 when there was a conflict, or something could not be done.
    """
    if folder is None:
        top = git.find_top(str(Path.cwd()), app.choose_project(None).root)
        folder = find_memory_folder(Path.cwd(), top)
    root, owner = locate_folder(folder)
    whose = app.choose_project(project, owner if owner != root else None, instead="")
    by = Author("sync", app.now, "file", f"from {root}")
    store, lock = app.reading if dry_run else app.store, app.home / "run" / "sync.lock"
    with nullcontext() if dry_run else write_lock(lock, _SYNC_PATIENCE):
        done = sync_folder(store, root, whose, by, emptied=emptied, dry_run=dry_run)
    hints = [*done.folder.warnings, *_retention_hints(app, done)]
    lines = [
        *(f"{_DONE[one.what]:9}{one.key}{f': {one.why}' if one.why else ''}" for one in done.done),
        _summarise_sync(done, dry_run),
    ]
    value = {
        "folder": str(done.folder.root), "project": whose.name, "dry_run": dry_run,
        "done": [
            {"what": one.what, "key": one.key, "why": one.why,
             "copy": one.other.key if one.other else ""}
            for one in done.done
        ],
        "conflicts": done.conflicts, "problems": done.problems, "notes": hints,
        "memories": len(done.folder.memories),
    }  # fmt: skip
    wrong = bool(done.problems or done.conflicts)
    return Output(value, lines, warnings=(*done.problems, *hints), code=3 * wrong)


def _retention_hints(app: App, done: SyncReport) -> list[str]:
    """A repository deletes nothing of the user's: what its configuration asks for is only told."""
    return [
        f"{done.folder.root}: its memory-config.json wants {name} kept for {row.retention_days} "
        f"days; that is yours to decide: [retention] {name} = {row.retention_days} in config.toml"
        for name, row in done.folder.config.categories.items()
        if row.retention_days and name not in app.config.retention
    ]


def _summarise_sync(done: SyncReport, dry_run: bool) -> str:
    if not done.done:
        held = count_noun(len(done.folder.memories), "memory file")
        return f"nothing to do in {done.folder.root} ({held})"
    said = join_kinds(Counter(_DONE[action.what] for action in done.done))
    return f"{'would be: ' if dry_run else ''}{said} ({done.folder.root})"


# --- a line for MEMORY.md, which the agent reads at the start of every session --------------------


@command("promote", plain=True)
def promote_command(
    app: App, item_id: str, words: str | None, under: str, file: Path | None, create: bool,
    dry_run: bool,
) -> None:  # fmt: skip
    """Add item ID as one line to the MEMORY.md of the current project.

    The line is a memory's title, of anything else the first sentence. One line is added and nothing
    else is touched. MEMORY.md is loaded up to line 200; where there is no room it is left alone.
    """
    item = _find_active_item(app, item_id)
    path = file.absolute() if file else _find_memory_file(app, Path.cwd(), create)
    real = path.resolve()
    present, before = read_present(real)
    if present is None and not create:
        raise NotFound(f"{path} is not there; to make it: --create")
    if "\0" in before:
        raise SourceError(f"{path}: is not a text file")
    # The title of a note or a prompt only says where it stood.
    titled = item.kind in ("memory", "observation") and item.title
    line = titled or memory_md.lead_sentence(item.body) or item.title
    try:
        wanted = redact(line if words is None else words)
        after, number = memory_md.add_line(before, wanted, under)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if dry_run:
        click.echo(format_diff(path, before, after))
        return
    if present is None:
        make_folder(real.parent, "")
    replace_present(real, after, present, path)
    lines = memory_md.split_lines(after)
    click.echo(f"{path}:{number}: {lines[number - 1]}")
    if len(lines) >= memory_md.NEARLY_FULL:
        print_warning(f"{len(lines)} of the {memory_md.MOST_LINES} lines that are loaded")


def read_present(path: Path) -> tuple[bytes | None, str]:
    """A file that others write too, as it is (None: not there) and as text."""
    present = read_shared(path)
    return present, (present or b"").decode("utf-8", "surrogateescape")


def replace_present(path: Path, text: str, present: bytes | None, named: Path) -> None:
    """Unless somebody has written it meanwhile."""
    if not swap_shared(path, text.encode("utf-8", "surrogateescape"), present):
        raise SourceError(f"{named}: has changed while it was looked at; run it again")


def _find_active_item(app: App, text: str) -> Item:
    found = find_items(app, text)
    if not found:
        raise NotFound(f"no item {text}; `yester recall` shows ids")
    if found[0].status != "active":
        raise UsageError(f"item {text} is {found[0].status}; only active ones can be promoted")
    return found[0]


def _find_memory_file(app: App, cwd: Path, create: bool) -> Path:
    """The project's MEMORY.md, or where it would be.

    $CLAUDE_CONFIG_DIR chooses among the folders the user has told of; a repository can set it, so
    it cannot name another one."""
    configs = app.claude_folders()
    if other := os.environ.get("CLAUDE_CONFIG_DIR"):
        if Path(other) not in configs:
            raise UsageError(
                f"CLAUDE_CONFIG_DIR={other} is not among claude_code_dirs; add it in "
                f"{app.home / 'config.toml'}, or name the file with --to"
            )
        configs = [Path(other)]
    places = memory_paths(configs, cwd)
    if there := next(filter(Path.is_file, places), next(iter(places if create else ()), None)):
        return there
    raise NotFound(f"{cwd} has no {MEMORY} in {configs[0]}; to make it: --create; or name it: --to")


def format_diff(path: Path, before: str, after: str) -> str:
    name, texts = str(path), (before.splitlines(), after.splitlines())
    lines = unified_diff(*texts, name, name, lineterm="")
    return "\n".join(lines).encode("utf-8", "replace").decode()
