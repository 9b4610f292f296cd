"""The Python interface: `yester.open()` gives a Memory. Everything runs in process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yester.clock import DAY, parse_time
from yester.errors import UsageError
from yester.faces.python_memories import Memories
from yester.ingest.prepare import content_hash
from yester.ingest.transcripts import add_items
from yester.memories.memory import Author
from yester.memories.remember import Draft
from yester.memory import Memory
from yester.model import KINDS, Filters, Hit, Item, Project, Session
from yester.operations.context import ContextRequest, build_context
from yester.project import named_project
from yester.recall.recall import Answer, Asked, make_hit
from yester.recall.timeline import Timeline, build_timeline, recent_sessions

if TYPE_CHECKING:
    from yester.store.contract import Store

Time = float | int | datetime | str | None

# What `add` takes, and what of it becomes which field of an item.
_TEXTS = ("ref", "title", "subtitle", "type", "session", "role", "source", "agent", "tool")
_LISTS = ("facts", "concepts", "tags", "files_read", "files_modified")
_OTHERS = (
    "kind",
    "project",
    "text",
    "files",
    "epoch",
    "sections",
    "prompt_number",
    "discovery_tokens",
)
_KNOWN = frozenset((*_TEXTS, *_LISTS, *_OTHERS))


class Explained(list[Hit]):
    """Hits, and how they came about: `arms` (how many candidates each search found), `weights` (the
    most each factor can add), `cut` (the best of what was left out, and why), `more` (left out
    besides)."""

    def __init__(self, found: Answer) -> None:
        super().__init__(found.hits)
        self.arms, self.weights, self.cut, self.more = (
            found.arms, found.weights, found.cut, found.more,
        )  # fmt: skip


class OpenMemory(Memory):
    """What `yester.open` gives. Use it as a context manager, or call close()."""

    @property
    def store(self) -> Store:
        """The one that was opened. After a restore it raises `StoreReplaced` when it is written to:
        a program may hold ids of the former one."""
        return self._store if self._store is not None else super().store

    def add(self, items: Iterable[Mapping[str, Any]], embed: str = "now") -> int:
        """Store dicts as items; returns how many were new or changed.

        Idempotent by (source, kind, ref); without a ref the content is its own identity. `embed`
        is "now" or "later" and matters where an embedding model is present.
        """
        _check_embed(embed)
        projects = {project.name: project for project in self.store.projects()}
        now = int(time.time() * 1000)
        converted = (_item(given, projects, now) for given in items)
        written = add_items(self.store, converted).total_written
        if written:
            self._embed(embed, now)
        return written

    def _embed(self, when: str, since: int) -> None:
        if when == "now" and self.embedder is not None:
            from yester.ingest.vectors import embed_waiting

            for _ in embed_waiting(self.store, self.embedder, since=since):
                pass

    def recall(
        self,
        query: str = "",
        k: int = 10,
        *,
        project: str | None = None,
        scope: str | None = None,
        files: Sequence[str] = (),
        kinds: Sequence[str] = (),
        types: Sequence[str] = (),
        concepts: Sequence[str] = (),
        session: str | None = None,
        agent: str | None = None,
        tool: str | None = None,
        since: Time = None,
        until: Time = None,
        now: float | None = None,
        order: str = "relevance",
        offset: int = 0,
        explain: bool = False,
    ) -> list[Hit]:
        """The best k answers. `scope="project"` looks in `project` alone, "all" everywhere; without
        it the setting `cross_project` decides. `files` are what the caller is touching, not a
        filter; times are seconds, datetimes or texts such as "3d". With `explain` every hit has its
        factors, and the list says what was left out (`Explained`)."""
        if scope is None:
            scope = "all" if self.config.flag("cross_project") or not project else "project"
        _check_scope(scope)
        if scope == "project" and not project:
            raise UsageError('scope="project" needs the name of a project')
        present = _present(now)
        filters = Filters(
            projects=(project,) if project and scope == "project" else (),
            kinds=_kinds(kinds),
            types=tuple(types),
            concepts=tuple(concepts),
            session=session or "",
            agent=agent or "",
            tool=tool or "",
            since=_moment(since, present, "since"),
            until=_moment(until, present, "until"),
        )
        asked = Asked(
            query, filters, k, offset, order, explain, present, project=project or "",
            files=tuple(files),
        )  # fmt: skip
        found = self.answer(asked)
        return Explained(found) if explain else found.hits

    def timeline(
        self,
        anchor: int | str | datetime | None = None,
        before: int = 10,
        after: int = 10,
        *,
        query: str = "",
        project: str | None = None,
        scope: str = "project",
        kinds: Sequence[str] = (),
        types: Sequence[str] = (),
        concepts: Sequence[str] = (),
        session: str | None = None,
        agent: str | None = None,
        tool: str | None = None,
        since: Time = None,
        until: Time = None,
        now: float | None = None,
    ) -> Timeline:
        """What happened around an item (its id), the first item of a session ("S" and its id), a
        time, the "latest" item, or what fits a text best.

        With `query` and "latest" it is the newest item that fits the query well. The neighbours are
        of `project`, else of the anchor's own; of all projects with `scope="all"`. The timeline is
        an iterable of hits, the oldest first, with `.before`, `.anchor` and `.after`.
        """
        _check_scope(scope)
        present = _present(now)
        if isinstance(anchor, datetime):
            anchor = anchor.astimezone().isoformat()
        filters = Filters(
            projects=(project,) if project else (),
            kinds=_kinds(kinds),
            types=tuple(types),
            concepts=tuple(concepts),
            session=session or "",
            agent=agent or "",
            tool=tool or "",
            since=_moment(since, present, "since"),
            until=_moment(until, present, "until"),
        )
        return build_timeline(
            self.store, anchor, before, after, filters, present,
            query=query, everywhere=scope == "all", answer=self.answer,
            window=self.config.number("recency_window_days") * DAY,
        )  # fmt: skip

    def recent(
        self, limit: int = 3, project: str | None = None, rows: int = 12
    ) -> list[tuple[Session, list[Hit]]]:
        """The last sessions, the newest first, each with what tells its story, the oldest first:
        its summary (without one its prompts and closing message), observations, notes and memories.

        A session's times are in milliseconds.
        """
        filters = Filters(projects=(project,) if project else ())
        return recent_sessions(self.store, filters, limit, rows)

    def remember(
        self,
        text: str = "",
        *,
        type: str = "",  # noqa: A002 -- the word of the data model
        project: str | None = None,
        title: str = "",
        tags: Sequence[str] = (),
        files: Sequence[str] = (),
        scope: str = "",
        path: str = "",
        content: Mapping[str, Any] | None = None,
        confidence: float = 1.0,
        update: int = 0,
        supersedes: int = 0,
        who: str = "python",
        why: str = "",
        origin: str = "user",
        embed: str = "now",
    ) -> int:
        """Keep something for good; the id of the memory. What is known already is not kept twice.

        `type` is a category (decision, constraint, preference, runbook, tech_debt, session_summary,
        rule, note); without one, what the text obviously is. `content` gives its fields one by one.
        Without a project it holds everywhere. `memory.memories` changes what is there.
        """
        _check_embed(embed)
        by = Author(who, _present(None), origin, why)
        draft = Draft(
            _text("text", text), type, _text("title", title), content or {}, tags, files,
            scope=scope, path=path, confidence=confidence,
        )  # fmt: skip
        kept = self.memories.keep(draft, project, by, update=update, supersedes=supersedes)
        self._embed(embed, by.now)
        return kept.memo.item.id

    @cached_property
    def memories(self) -> Memories:
        """What was remembered: list, show, edit, retire, archive, restore, supersede, undo …"""
        return Memories(self.store)

    def context(
        self,
        event: str = "SessionStart",
        cwd: str | Path | None = None,
        prompt: str | None = None,
        budget: int = 2_000,
        *,
        file: str = "",
    ) -> str:
        """The text an agent would get: at "SessionStart", for a `prompt` at "UserPromptSubmit",
        about a `file` at "PreToolUse", or at "SubagentStart". "" where there is nothing to say."""
        folder = str(cwd or Path.cwd())
        request = ContextRequest(event, folder, prompt or "", file, budget)
        return build_context(self, request).text

    def get(self, ids: Sequence[int]) -> list[Hit]:
        """Items by id, in this order; unknown ids are left out."""
        names = self.project_names()
        return [make_hit(item, names) for item in self.store.get(ids)]


def _present(now: float | None) -> int:
    return int((time.time() if now is None else now) * 1000)


def _check_embed(embed: str) -> None:
    if embed not in ("now", "later"):
        raise UsageError(f'embed is {embed!r}, but must be "now" or "later"')


def _check_scope(scope: str) -> None:
    if scope not in ("all", "project"):
        raise UsageError(f'scope is {scope!r}, but must be "all" or "project"')


def _kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"kind {kind!r} is not known; the kinds are {', '.join(KINDS)}")
    return tuple(kinds)


def _moment(value: Time, now: int, option: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        return parse_time(value, now, option=option)
    return int((value.timestamp() if isinstance(value, datetime) else value) * 1000)


def _item(given: Mapping[str, Any], projects: dict[str, Project], now: int) -> tuple[Item, Project]:
    unknown = given.keys() - _KNOWN
    if unknown:
        raise UsageError(
            f"an item has no field {min(unknown)!r}; the fields are {', '.join(sorted(_KNOWN))}"
        )
    values: dict[str, Any] = {}
    for name in _TEXTS:
        values[name] = _text(name, given.get(name))
    for name in _LISTS:
        values[name] = _list(name, given.get(name))
    values["files_read"] += _list("files", given.get("files"))
    (values["kind"],) = _kinds([given.get("kind") or "observation"])
    values["body"] = _text("text", given.get("text"))
    epoch = given.get("epoch")
    if epoch is not None and (isinstance(epoch, bool) or not isinstance(epoch, int | float)):
        raise UsageError(f"epoch is {epoch!r}, but must be seconds since 1970 as a number")
    values["epoch"] = now if epoch is None else int(epoch * 1000)
    sections = given.get("sections") or {}
    if not isinstance(sections, Mapping):
        raise UsageError(f"sections is {sections!r}, but must map names to texts")
    values["sections"] = {str(name): _text(name, text) for name, text in sections.items()}
    for name in ("prompt_number", "discovery_tokens"):
        values[name] = int(given.get(name) or 0)
    name = _text("project", given.get("project")) or "unknown"
    project = projects.setdefault(name, named_project(name))
    values["project"] = project.key
    values["origin"] = "user" if values["role"] == "user" else "agent"
    item = Item(**values)
    if not item.ref:
        item = Item(**{**values, "ref": "sha:" + content_hash(item).hex()})
    return item, project


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{name} is {value!r}, but must be a text")
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _list(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(f"{name} is {value!r}, but must be a list of texts")
    return tuple(_text(name, part) for part in value)


def open_memory(home: Path, environ: Mapping[str, str]) -> OpenMemory:
    """The memory of a home, made if needed; everything runs in this process."""
    cache = environ.get("YESTER_VECTOR_CACHE")  # vectors by hash, for programs that ask for it
    memory = OpenMemory(home, environ, ask_worker=None, vector_cache=Path(cache) if cache else None)
    _ = memory.store
    return memory
