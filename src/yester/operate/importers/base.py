"""What all importers share: where memories of other programs are, and the way into the store.

An importer reads one file and yields items, as the reader of an agent's transcripts does, and what
it yields goes the same way (`ingest.transcripts.Ingest`): without secrets, in batches, nothing
twice, and nothing of what the user keeps out. The file is never written. What is imported has the
origin "import": it is no user's word, so no rule comes of it, and it is not distilled again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from yester.agents.base import Options, Reader, Reading
from yester.agents.descriptors import Agent
from yester.agents.sources import Database, DatabaseProblem
from yester.agents.values import decode_json, dict_at, load_object, parse_time, relative_path
from yester.capture.rules import Rules
from yester.ingest.transcripts import Ingest, rebuild_if_stale
from yester.memories.memory import TRUST
from yester.model import Filters, Item, Paging, Project, Session
from yester.project import EXCLUDED, Projects, named_project
from yester.store import find_item
from yester.store.contract import Store
from yester.tables import load_table

ORIGIN = "import"
_PAGE = 500  # rows asked for at a time: the program's writes must not wait
_SECONDS = 100_000_000_000  # a time that is smaller is none in milliseconds
_ABOUT = 4_000  # records; of a file without a known number of them progress is told by place


class MemoryReader(NamedTuple):
    """What an importer's module knows of its files; kept there in `READERS`."""

    is_own_file: Callable[[Path], bool]
    read_items: Callable[[Import], Iterator[Item]]
    # further files, as the program's own settings name them; given the user's home
    list_more: Callable[[Path], Iterable[Path]] = lambda _home: ()


class Importer(msgspec.Struct, frozen=True):
    """A row of the table."""

    name: str
    label: str
    module: str
    places: tuple[str, ...]

    @property
    def reader(self) -> MemoryReader:
        found: dict[str, MemoryReader]
        found = import_module(f"yester.operate.importers.{self.module}").READERS
        return found[self.name]

    def read_items(self, reading: Reading, places: Places) -> Iterator[Item]:
        try:
            yield from self.reader.read_items(Import(reading, places))
        except DatabaseProblem as problem:
            reading.report_bad(0, str(problem))


def load_importers() -> dict[str, Importer]:
    rows = load_table("importers")
    return {name: msgspec.convert(row | {"name": name}, Importer) for name, row in rows.items()}


# --- where something is --------------------------------------------------------------------------


class Found(NamedTuple):
    """Files of one program in one place."""

    importer: Importer
    where: Path
    files: tuple[Path, ...]


def find_memories(home: Path, importers: Iterable[Importer]) -> list[Found]:
    """What there is to import, in the places where these programs keep it."""
    found = []
    for importer in importers:
        places: dict[Path, Iterable[Path]] = {}
        for pattern in importer.places:
            fixed, star, rest = pattern.removeprefix("~/").partition("*")
            places[home / fixed] = (home / fixed).glob(f"*{rest}") if star else [home / fixed]
        for file in importer.reader.list_more(home):
            places[file.parent] = [*places.get(file.parent, ()), file]
        for where, files in places.items():
            if own := tuple(name_files(importer, sorted(files))):
                found.append(Found(importer, own[0] if len(own) == 1 else where, own))
    return found


def name_files(importer: Importer, paths: Iterable[Path]) -> Iterator[Path]:
    """Those of its files among these, and in these folders."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and importer.reader.is_own_file(file):
                yield file.absolute()


# --- which project -------------------------------------------------------------------------------


class Places(msgspec.Struct, dict=True):
    """Where records of another program belong: with the session they name, where that is known;
    in their folder's project; in the one project of their name, be it known to the store or as a
    folder in which the user has worked; else in one called so."""

    source: str  # what the items say they are from
    store: Store
    projects: Projects
    rules: Rules
    chosen: Project | None = None  # by the user, for what names no session that is known
    folders: Sequence[str] = ()  # in which the user has worked, as a client knows them

    def __post_init__(self) -> None:
        self.find_project = cache(self._choose_project)
        self.has_transcript = cache(self._has_transcript)

    @cached_property
    def _stored(self) -> Mapping[str, Project]:
        return {name: one for one in self.store.projects() for name in (one.key, one.name)}

    def _choose_project(self, place: str, session: str = "", agent: str = "") -> Project:
        """The project of a name or folder; that of the session counts first."""
        known = self.store.session(session, agent) if session else None
        if known is not None:
            found = self._stored.get(known.project) or self.projects.by_key(known.project)
        elif self.chosen is not None:
            found = self.chosen
        elif place.startswith(("/", "~")):
            return self.projects.by_folder(place)
        else:
            found = self._named_project(place.strip() or "unknown")
        return EXCLUDED if self.rules.excludes(found.root, found) else found

    def _named_project(self, name: str) -> Project:
        for one in dict.fromkeys((name, name.split("/")[0])):  # PROJECT/WORK-TREE
            inside = [folder for folder in self.folders if Path(folder).name == one]
            by_key = {found.key: found for found in map(self.projects.by_folder, inside)}
            by_name = self._stored.get(one)
            if len(by_key) == 1 and (not by_name or by_name.key.startswith("name:")):
                return by_key.popitem()[1]
            if by_name:
                return by_name
        return named_project(name)

    def _has_transcript(self, session: str, agent: str) -> bool:
        """Has the store what was said in this session, from the agent itself?"""
        said = Filters(session=session, source=agent)
        return bool(session and self.store.select(said, Paging(1)))


def list_worked_folders(home: Path) -> list[str]:
    """The folders in which the user has worked with Claude Code, as its own settings list them."""
    folders = dict_at(load_object(home / ".claude.json") or {}, "projects")
    return [folder for folder in folders if folder.startswith("/") and Path(folder).is_dir()]


# --- items ---------------------------------------------------------------------------------------


class Row(dict[str, Any]):
    """A row of a table; None for a column that this version does not have."""

    def __missing__(self, name: str) -> None:
        return None


class Import(NamedTuple):
    """One pass over one file of another program, and where its records belong."""

    reading: Reading
    places: Places

    def make_item(self, ref: str, kind: str, place: str, **more: Any) -> Item:
        """An item of another program's memory, in its project, with its session registered."""
        session, agent = more.get("session", ""), more.get("agent", "")
        project = self.places.find_project(place, session, agent)
        for name in ("files_read", "files_modified"):
            if more.get(name):
                more[name] = tuple(relative_path(path, project.root) for path in more[name])
        item = Item(
            ref, kind, project.key, source=self.places.source, origin=ORIGIN, trust=TRUST[ORIGIN],
            **more,
        )  # fmt: skip
        if session:
            met = self.reading.sessions.get(session) or Session(session, agent, project.key)
            self.reading.sessions[session] = met.widen_to(item.epoch)
        self.reading.messages += 1
        return item

    def read_rows(self, database: Database, table: str) -> Iterator[Row]:
        """The rows of a table by id, page by page. What cannot be read is reported and costs no
        more than its page."""
        reading, columns, last = self.reading, database.table_columns(table), -1
        size, more = reading.path.stat().st_size, bool(columns)
        while more:
            after = f"WHERE rowid > {last} ORDER BY rowid LIMIT {_PAGE}"
            try:
                rows = database.select_records(table, ("rowid", *columns), after)
            except DatabaseProblem as problem:
                reading.report_bad(f"{table}/{last + 1}", str(problem))
                return
            for row in rows:
                last = row["rowid"]
                yield Row(row)
                # How far it is, for whoever waits; there is no place to go on from.
                reading.offset = min(reading.offset + size // _ABOUT, size)
            more = len(rows) == _PAGE


def read_texts(value: Any) -> tuple[str, ...]:
    """A list of texts as a column holds it: as JSON, as one text, or not at all."""
    found = value
    if isinstance(value, str):
        found = decode_json(value) if value.startswith("[") else None
        found = found if isinstance(found, list) else [value]
    texts = [one.strip() for one in found or () if isinstance(one, str)]
    return tuple(dict.fromkeys(filter(None, texts)))


def read_time(*values: Any) -> int:
    """The first of these that tells a time, in milliseconds: a number, or an ISO time."""
    for value in values:
        if isinstance(value, int | float) and value > 0:
            return int(value * 1000 if value < _SECONDS else value)
        if isinstance(value, str) and (found := parse_time(value)):
            return found
    return 0


# --- into the store ------------------------------------------------------------------------------


def open_import(store: Store, importer: Importer, places: Places) -> Ingest:
    """The way in for an importer's files."""
    rebuild_if_stale(store)
    reader = Reader(
        importer.reader.is_own_file, lambda reading: importer.read_items(reading, places)
    )
    return Ingest(store, places.projects, Options(), places.rules, find_reader=lambda _: reader)


def import_files(ingest: Ingest, importer: Importer, files: Iterable[Path]) -> Iterator[int]:
    """Read these files; yields how many bytes each step has dealt with. A file that has not changed
    costs a stat."""
    try:
        for file in files:
            yield from ingest.read_slices(Agent(importer.name), file)
    finally:
        ingest.flush()


class Preview(msgspec.Struct, kw_only=True):
    """What an import would do."""

    records: int = 0
    known: int = 0
    oldest: int = 0
    newest: int = 0
    kinds: Counter[str] = msgspec.field(default_factory=Counter)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    problems: list[str] = []


def preview_files(importer: Importer, files: Iterable[Path], places: Places) -> Preview:
    """What these files hold, and how much of it the store has. Nothing is written."""
    preview = Preview()
    for file in files:
        reading = Reading(file, places.projects, Options())
        for item in filter(reading.keeps, importer.read_items(reading, places)):
            if item.project == EXCLUDED.key:
                reading.skip("excluded")
                continue
            preview.records += 1
            preview.known += find_item(places.store, item.identity) is not None
            preview.kinds[item.kind] += 1
            preview.oldest = min(preview.oldest or item.epoch, item.epoch or preview.oldest)
            preview.newest = max(preview.newest, item.epoch)
        preview.skipped += reading.skipped
        preview.problems += reading.problems
    return preview
