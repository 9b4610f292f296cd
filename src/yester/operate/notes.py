"""MEMORY.md, CLAUDE.md, AGENTS.md and their like as items: a note each, kept in step with the file.

A note is known by its file, the headings above it and its words, so reading a file twice stores it
once, and an edited line is another note. What stands there no more is retired: it is not found any
more, and comes back as the same item when it is written down again. What was there when a file was
first read has no date, since it may be years old or new. What another file of the project or a
memory of ours says in the same words is not stored a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from yester.agents.base import list_folders
from yester.agents.descriptors import AGENTS
from yester.agents.notes import EVERYWHERE, list_note_files, note_owner
from yester.agents.sources import first_records
from yester.capture.rules import Rules
from yester.clock import DAY
from yester.config import Config
from yester.fence import strip_fenced
from yester.files import read_bytes
from yester.folders import open_projects
from yester.ingest.prepare import prepare_item
from yester.llm.archive import is_archive_heading
from yester.memories import memory_md
from yester.memories.chains import find_contradiction, parse_claims
from yester.memories.memory import GLOBAL, Author
from yester.memories.memory_md import MEMORY, Page, join_words, note_source
from yester.memories.sync import ImportReport, import_folder
from yester.model import CURATED, Filters, Item, Project, PutCounts, Source, replace
from yester.project import EXCLUDED, Projects, named_project
from yester.redact import redact
from yester.store.contract import Store

KIND = TYPE = "note"
_NOTES = "notes"  # in a source's state: the refs of its notes
_ASKED = "asked"  # … whether the user has asked for it: then it stays when the file goes
_COPIES = "copies"  # … and how many were left out because they stand elsewhere
_TRANSCRIPTS = 3  # of a project, looked at for the folder they were written in
_RECORDS = 20
# Categories that say how things are or should be; the goal of a session claims nothing.
_CLAIM = ("decision", "constraint", "preference", "rule", "note")
_NAMED = re.compile(r"`((?:[\w.-]+/)+[\w-]+\.[a-z]{1,5})`")  # a file, by its path
_LATELY = 14 * DAY  # a repository in which nobody has worked since is not looked at


def make_note_items(
    text: str, path: str, project: str, written: int, known: Sequence[Item] = ()
) -> list[Item]:
    """The notes of a file as items; `written` is its time, `known` are its active items.

    Secrets and private spans go before anything is compared, since they are not in what is known
    either."""
    before, owner = {item.ref: item for item in known}, note_owner(path)
    found = {}
    for note in Page(text).notes:
        said = redact(strip_fenced(note.text)).strip()
        if not said or any(map(is_archive_heading, note.heading)):
            continue  # of our own archive: the store has it already
        clean = replace(note, text=said, heading=tuple(map(redact, note.heading)))
        ref = f"{path}#{clean.name}"
        first_seen = written if before else 0
        found[ref] = Item(
            ref=ref, kind=KIND, project=project, source=note_source(Path(path)), agent=owner,
            epoch=before[ref].epoch if ref in before else first_seen, updated=written, type=TYPE,
            title=clean.title, body=clean.text, origin="file",
        )  # fmt: skip
    return list(found.values())


# --- into the store ----------------------------------------------------------------------------


def import_notes(
    store: Store,
    files: Iterable[tuple[Path, str]],
    projects: Projects,
    rules: Rules,
    again: bool = False,
) -> ImportReport:
    """Read these files into the store, each with the folder its notes are about, where that is
    known. One that has not changed costs a stat, unless `again`."""
    report = ImportReport()
    for file, about in files:
        path = str(file)
        known = next(iter(store.entries(Source, {"path": path})), None)
        try:
            state = file.stat()
            same = known and (known.size, known.mtime_ns) == (state.st_size, state.st_mtime_ns)
            if same and not again:
                report.unchanged += 1
                continue
            text = read_bytes(file).decode("utf-8", "replace")
        except OSError as error:
            report.problems.append(f"{path}: {error.strerror or error}")
            continue
        before, folder = find_notes(store, known), about or find_note_folder(file, store)
        project = projects.by_folder(folder) if folder else _guess_project(file, before)
        if about == EVERYWHERE:
            folder, project = "", GLOBAL
        written = state.st_mtime_ns // 1_000_000
        if project == EXCLUDED or rules.is_off(folder or project.root, "", written):
            continue
        every = make_note_items(text, path, project.key, written, before)
        now = _drop_copies(store, every, path, project.key)
        source = Source(
            path, note_source(file), state.st_size, state.st_mtime_ns, state.st_size, 0, "",
            state={_COPIES: len(every) - len(now), _ASKED: again or _was_asked_for(known)},
        )  # fmt: skip
        put, gone = _put_notes(store, source, now, before, project)
        report.files += 1
        report.added += put.added
        report.changed += put.changed - gone
        report.gone += gone
    return report


def _drop_copies(store: Store, notes: Sequence[Item], path: str, project: str) -> list[Item]:
    """Those that no other file of the project and no memory of ours says in the same words."""
    here = Filters(projects=(project, GLOBAL.key))
    known = store.select(replace(here, kinds=("memory",)))
    for source in CURATED:
        others = store.select(replace(here, source=source))
        known += [item for item in others if not item.ref.startswith(f"{path}#")]
    said = {_fold(text) for item in known for text in (item.title, item.body)}
    return [item for item in notes if _fold(item.body) not in said]


def _was_asked_for(source: Source | None) -> bool:
    return bool(source and source.state.get(_ASKED))


def _fold(text: str) -> str:
    return join_words(text).rstrip(".").casefold()


def follow_notes(store: Store, config: Config, rules: Rules, now: int) -> Iterator[int]:
    """Bring the notes of all agents, and those of the repositories that are worked in, up to date,
    a file in a step: how many notes that changed. `.claude/memory` is read and never written."""
    projects = open_projects(config, rules.excludes)
    lately = store.sessions(Filters(since=now - _LATELY))
    worked = {session.project for session in lately}
    roots = {one.root: one for one in store.projects() if one.root and one.key in worked}
    for file in list_note_files(config, roots):
        report = import_notes(store, [file], projects, rules)
        yield report.added + report.changed + report.gone
    yield retire_vanished(store, config, roots)
    for root, project in roots.items():
        folder = Path(root) / ".claude" / "memory"
        if folder.is_dir() and not rules.is_off(root, "", now):
            by = Author("import", now, "import", f"from {folder}")
            done = import_folder(store, folder, project, by)
            yield done.added + done.changed


def retire_vanished(store: Store, config: Config, roots: Iterable[str]) -> int:
    """Retire the notes of every file of the agents and of these repositories that is there no more.

    Of a folder that is not there itself (a disk that is not mounted) nothing is taken to be gone.
    What was imported from elsewhere stays."""
    own = (folder for agent in AGENTS.values() for folder in list_folders(agent, config))
    above = tuple(f"{folder}/" for folder in (*own, *map(Path, roots)) if folder.is_dir())
    number = 0
    for source in (row for kind in CURATED for row in store.entries(Source, {"agent": kind})):
        ours = source.path.startswith(above) and not _was_asked_for(source)
        vanished = ours and not Path(source.path).exists()
        if vanished and (before := find_notes(store, source)):
            number += _put_notes(store, replace(source, size=-1, mtime_ns=0), (), before)[1]
    return number


def find_notes(store: Store, source: Source | None) -> list[Item]:
    """The notes of a file that are in force, as they were when it was last read."""
    refs: Any = source.state.get(_NOTES, ()) if source else ()
    found = [item for ref in refs for item in store.find_by_ref(ref)]
    return [item for item in found if item.source in CURATED and item.status == "active"]


def _put_notes(
    store: Store,
    source: Source,
    now: Sequence[Item],
    before: Sequence[Item],
    project: Project | None = None,
) -> tuple[PutCounts, int]:
    """What stands in a file now; what does not any more is retired, and counted."""
    refs = [item.ref for item in now]
    gone = [replace(item, status="retired") for item in before if item.ref not in refs]
    entries = [prepare_item(item) for item in (*now, *gone)]
    with store.transaction("items"):
        if project is not None:
            store.put_project(project)
        put = store.put(entries)
        store.append([replace(source, state={**source.state, _NOTES: refs})])
        if gone:  # a copy of it that was left out may be wanted now
            rows = (row for kind in CURATED for row in store.entries(Source, {"agent": kind}))
            store.append([replace(row, size=-1) for row in rows if row.state.get(_COPIES)])
    return put, len(gone)


def _guess_project(path: Path, before: Sequence[Item]) -> Project:
    """The project of a file nobody can place: the one it had, else one called as its folder is."""
    if before:
        return Project(before[0].project, "")
    return named_project(path.parent.parent.name if path.name == MEMORY else path.parent.name)


# --- looked over -------------------------------------------------------------------------------


class NoteFinding(NamedTuple):
    file: str
    line: int  # from 1
    last: int
    check: str  # copy, stale, contradicted
    text: str


def lint_notes(
    store: Store, files: Iterable[Path], root: Path, project: str
) -> Iterator[NoteFinding]:
    """What is worth a look in the notes of a project: what stands elsewhere as well, names a file
    that is not there, or what a newer memory says otherwise."""
    projects, said = (project, GLOBAL.key), dict[str, str]()
    memos = store.memos(Filters(projects=projects, types=_CLAIM))
    newer = [(one.item, parse_claims(one.item.body)) for one in memos]
    for path in files:
        written = path.stat().st_mtime_ns // 1_000_000
        for note in Page(read_bytes(path).decode("utf-8", "replace")).notes:
            say = partial(NoteFinding, str(path), note.line, note.last)
            place = f"{path}:{note.line}"
            if (first := said.setdefault(_fold(note.text), place)) != place:
                yield say("copy", f"stands in {first} as well")
            for name in _NAMED.findall(note.text):
                if not (root / name).exists():
                    yield say("stale", f"{name} is not there")
            own = parse_claims(note.text)
            for item, later in newer:
                if item.updated > written and (reason := find_contradiction(own, later)):
                    yield say("contradicted", f"#{item.id} is newer: {reason}")


def propose_changes(found: Sequence[NoteFinding]) -> Iterator[tuple[Path, str, str]]:
    """Each file as it is, and without the notes that were found there."""
    for name in dict.fromkeys(one.file for one in found):
        before = read_bytes(Path(name)).decode("utf-8", "replace")
        own = [range(one.line, one.last + 1) for one in found if one.file == name]
        gone = {number for lines in own for number in lines}
        rows = enumerate(before.splitlines(keepends=True), 1)
        yield Path(name), before, "".join(row for number, row in rows if number not in gone)


# --- which folder ------------------------------------------------------------------------------


def find_note_folder(path: Path, store: Store) -> str:
    """The folder that a file's notes are about: by its slug where Claude Code keeps it, else the
    one it stands in, or in whose `.claude`; "" where nobody knows."""
    place, folder = path.parent.parent, path.absolute().parent
    kept_by_client = place.parent.name == "projects" or any(place.glob("*.jsonl"))
    if path.parent.name == "memory" and kept_by_client:
        return memory_md.folder_from_slug(place.name, _possible_folders(place, store))
    return str(folder.parent if folder.name == ".claude" else folder)


def _possible_folders(place: Path, store: Store) -> Iterator[str]:
    """Folders a project may be in: those its transcripts name, then all that are known."""
    for transcript in islice(sorted(place.glob("*.jsonl")), _TRANSCRIPTS):
        for record in islice(first_records(transcript), _RECORDS):
            if isinstance(cwd := record.get("cwd"), str) and cwd:
                yield cwd
    for project in store.projects():
        if project.root:
            yield project.root
