"""The Python interface: `yester.open()` gives a memory. Everything runs in process.

Names, defaults and dates are those of the command line and of HTTP: an end that is a day belongs to
the range, a project goes by its name or key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

import msgspec
from msgspec import field
from msgspec.structs import asdict

from yester import model
from yester.agents.descriptors import find_agent_here
from yester.errors import StoreError, UsageError
from yester.ingest.transcripts import add_items
from yester.memories import lifecycle
from yester.memories.categories import clean_text, drop_surrogates, get_category
from yester.memories.memory import GLOBAL, Author, read_history
from yester.memories.remember import Choice, Draft, Kept, find_candidate, remember
from yester.memory import Memory
from yester.operations import fields
from yester.operations.actions import Fix, FixRequest, find_fixes
from yester.operations.context import ContextRequest, build_context
from yester.operations.files import LineHistory, LinesRequest, explain_lines
from yester.operations.forget import ForgetRequest, Forgetting, forget_items
from yester.operations.memories import find_place
from yester.operations.request import Request, Time, make_request, read_filters
from yester.operations.search import find_neighbours
from yester.project import named_project
from yester.recall.recall import Answer, Asked, make_hit
from yester.recall.timeline import Timeline, recent_sessions
from yester.redact import change_texts
from yester.store.contract import Store
from yester.text.document import content_hash


class Narrowing(TypedDict, total=False):
    """What a question may be narrowed by. Times are seconds, datetimes or texts such as "3d"."""

    kinds: Sequence[str]
    types: Sequence[str]
    concepts: Sequence[str]
    session: str | None
    agent: str | None
    tool: str | None
    since: Time
    until: Time


class Explained(list[model.Hit]):
    """Hits, and how they came about: `arms` (how many candidates each search found), `weights` (the
    most each factor can add), `cut` (the best of what was left out, and why), `more` (left out
    besides)."""

    def __init__(self, found: Answer) -> None:
        super().__init__(found.hits)
        self.arms, self.weights = found.arms, found.weights
        self.cut, self.more = found.cut, found.more


class OpenMemory(Memory):
    """What `yester.open` gives. Use it as a context manager, or call close()."""

    @property
    def store(self) -> Store:
        """The one that was opened. After a restore it raises `StoreReplaced` when it is written to:
        a program may hold ids of the former one."""
        if self._store is None:
            raise StoreError(f"the memory in {self.home} is closed", "open it anew: yester.open()")
        return self._store

    def open_store(self) -> None:
        """Make the store where there is none, and keep it until `close`."""
        _ = super().store

    def add(self, items: Iterable[Mapping[str, Any]], embed: str = "now") -> int:
        """Store dicts as items; returns how many were new or changed.

        Idempotent by (source, kind, ref); without a ref the content is its own identity. `embed`
        is "now" or "later" and matters where an embedding model is present.
        """
        _check_choice("embed", embed, "now", "later")
        projects = {project.name: project for project in self.store.projects()}
        now = self.now
        converted = (_make_item(given, projects, now) for given in items)
        written = add_items(self.store, converted).total_written
        if written:
            self._embed_new(embed, now)
        return written

    def _embed_new(self, when: str, since: int) -> None:
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
        now: float | None = None,
        order: str = "relevance",
        offset: int = 0,
        explain: bool = False,
        before: str | None = None,
        near: bool = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[model.Hit]:
        """The best k answers. `scope="project"` looks in `project` alone, "all" everywhere; without
        it the setting `cross_project` decides. `files` are what the caller is touching, not a
        filter; what is one see `Narrowing`. With `explain` every hit has its factors, and the list
        says what was left out (`Explained`). Where nothing has any word of the query there are no
        hits, or with `near` those that are nearest in meaning.

        With `before`, what the agent said last, the query is a prompt in a conversation: `files`
        are those of the session so far, edited ones first, and `session` is the one that asks, of
        which nothing is answered."""
        if scope is None:
            scope = "all" if self.config.flag("cross_project") or not project else "project"
        _check_choice("scope", scope, "all", "project")
        if scope == "project" and not project:
            raise UsageError('scope="project" needs the name of a project')
        present = self.now if now is None else int(now * 1000)
        where = project if scope == "project" else None
        filters = self._read_filters(where, present, narrowing, project or "")
        asked = Asked(
            query, filters, k, offset, order, explain, present, project=project or "",
            files=tuple(files), near=near,
        )  # fmt: skip
        if before is not None:
            asked = model.replace(asked, filters=model.replace(filters, session=""), files=())
            asked = asked.in_conversation(before, filters.session, files)
        found = self.answer(asked)
        return Explained(found) if explain else found.hits

    def _read_filters(
        self, project: str | None, now: int, narrowing: Narrowing, named: str = ""
    ) -> model.Filters:
        if unknown := set(narrowing.get("kinds", ())) - set(model.KINDS):
            known = ", ".join(model.KINDS)
            raise UsageError(f"kind {min(unknown)!r} is not known; the kinds are {known}")
        given = {**narrowing, "projects": (project,) if project else ()}
        return self.hide_private(read_filters(given, now), named)

    def fix(self, text: str, *, project: str | None = None) -> list[Fix]:
        """What ended an error before, given as it was printed: in `project`, else in any."""
        given = {"text": text, "project": project or ""}
        return find_fixes(self, make_request(FixRequest, {}, given)).fixes

    def timeline(
        self,
        anchor: int | str | datetime | None = None,
        before: int = 10,
        after: int = 10,
        *,
        query: str = "",
        project: str | None = None,
        scope: str = "project",
        now: float | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> Timeline:
        """What happened around an item (its id), the first item of a session ("S" and its id or
        number), a time, the "latest" item, or what fits a text best.

        With `query` and "latest" it is the newest item that fits the query well. The neighbours are
        of `project`, else of the anchor's own; of all projects with `scope="all"`. The timeline is
        an iterable of hits, the oldest first, with `.before`, `.anchor` and `.after`.
        """
        _check_choice("scope", scope, "all", "project")
        present = self.now if now is None else int(now * 1000)
        if isinstance(anchor, datetime):
            anchor = anchor.astimezone().isoformat()
        filters = self._read_filters(project, present, narrowing)
        return find_neighbours(
            self, anchor, before, after, filters, query, scope == "all", now=present
        )

    def why(self, file: str, project: str = "") -> LineHistory:
        """Which turns wrote the lines of a file (`FILE`, `FILE:LINE`, `FILE:FIRST-LAST`), what they
        replaced, what had failed there, and why. The path is absolute, or from the root of
        `project`."""
        return explain_lines(self, LinesRequest(file=file, project=project))

    def recent(
        self, limit: int = 3, project: str | None = None, rows: int = 12
    ) -> list[tuple[model.Session, list[model.Hit]]]:
        """The last sessions, the newest first, each with what tells its story, the oldest first:
        its summary (without one its prompts and closing message), observations, notes and memories.

        A session's times are in milliseconds.
        """
        filters = self.hide_private(model.Filters(projects=(project,) if project else ()))
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
        _check_choice("embed", embed, "now", "later")
        # An agent that runs Python speaks for itself.
        origin = "agent" if origin == "user" and find_agent_here() else origin
        by = Author(who, self.now, origin, why)
        for name, value in (("text", text), ("title", title)):
            if not isinstance(value, str):
                raise UsageError(f"{name} is {value!r}, but must be a text")
        draft = Draft(
            text, type, title, content or {}, tags, files, scope=scope, path=path,
            confidence=confidence,
        )  # fmt: skip
        kept = self.memories.keep(draft, project, by, update=update, supersedes=supersedes)
        self._embed_new(embed, by.now)
        return kept.memo.item.id

    @cached_property
    def memories(self) -> Memories:
        """What was remembered: list, show, edit, retire, archive, restore, supersede, undo …"""
        return Memories(self)

    def context(
        self,
        event: str = "SessionStart",
        cwd: str | Path | None = None,
        prompt: str | None = None,
        budget: int = 0,
        *,
        file: str = "",
    ) -> str:
        """The text an agent would get: at "SessionStart", for a `prompt` at "UserPromptSubmit",
        about a `file` at "PreToolUse", or at "SubagentStart". "" where there is nothing to say."""
        folder = str(cwd or Path.cwd())
        request = ContextRequest(event, folder, prompt or "", file, budget)
        return build_context(self, request).text

    def forget(self, yes: bool = False, **what: Any) -> Forgetting:
        """Take items out for good, with all that came of them, also from backups: `ids`, or all
        that have `query`, `session`, `project`, `files`, `agent`, `dateStart`, `dateEnd`. Without
        `yes` it only says what would go. There is no undo."""
        return forget_items(self, make_request(ForgetRequest, {}, {**what, "yes": yes}))

    def get(self, ids: Sequence[int]) -> list[model.Hit]:
        """Items by id, in this order; unknown ids are left out."""
        names = self.project_names()
        return [make_hit(item, names) for item in self.store.get(ids)]


def _check_choice(name: str, value: str, *choices: str) -> None:
    if value not in choices:
        allowed = " or ".join(f'"{choice}"' for choice in choices)
        raise UsageError(f"{name} is {value!r}, but must be {allowed}")


# --- what `add` takes ----------------------------------------------------------------------------


class NewItem(Request, kw_only=True):
    """An item as a program gives it; `epoch` in seconds, `files` were read."""

    ref: str = ""
    kind: fields.Kind = "observation"
    type: str = ""
    title: str = ""
    subtitle: str = ""
    body: str = field(default="", name="text")
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    sections: dict[str, str] = field(default_factory=dict)
    project: str = ""
    session: str = ""
    role: str = ""
    agent: str = ""
    tool: str = ""
    source: str = ""
    prompt_number: int = 0
    discovery_tokens: int = 0
    epoch: float | None = None


def _make_item(
    given: Mapping[str, Any], projects: dict[str, model.Project], now: int
) -> tuple[model.Item, model.Project]:
    if not isinstance(given, Mapping):
        raise UsageError(f"an item is {given!r}, but must be a dict")
    meant = {name: value for name, value in given.items() if value not in (None, "")}
    values = change_texts(meant, drop_surrogates)
    try:
        new = msgspec.convert(values, NewItem)
    except msgspec.ValidationError:
        new = make_request(NewItem, {}, values)  # says which value is wrong, and what it must be
    name = new.project or "unknown"
    project = projects.setdefault(name, named_project(name))
    known = asdict(new) | {
        "files_read": (*new.files_read, *new.files), "project": project.key,
        "epoch": now if new.epoch is None else int(new.epoch * 1000),
        "origin": "user" if new.role == "user" else "agent",
    }  # fmt: skip
    del known["files"]
    item = model.Item(**known)
    return item if item.ref else model.replace(item, ref="sha:" + content_hash(item).hex()), project


# --- memories ------------------------------------------------------------------------------------


class Memories:
    """Structured memories; every change goes into the history. A memory is named by its id or its
    slug."""

    def __init__(self, memory: OpenMemory) -> None:
        self._memory, self._store = memory, memory.store

    def list(
        self,
        project: str | None = None,
        *,
        types: Sequence[str] = (),
        status: str = "active",
        tags: Sequence[str] = (),
        limit: int = -1,
    ) -> Sequence[model.Memo]:
        """Memories, the last changed first; `status` may be "all"."""
        filters = model.Filters(projects=(project,) if project else (), types=tuple(types))
        statuses = model.STATUSES if status == "all" else (status,)
        return self._store.memos(filters, model.Paging(limit, statuses=statuses), tags=tags)

    def get(self, name: int | str) -> model.Memo:
        return lifecycle.find_memory(self._store, str(name))

    def keep(
        self,
        draft: Draft,
        project: str | None = None,
        by: Author | None = None,
        *,
        update: int = 0,
        supersedes: int = 0,
    ) -> Kept:
        """What `remember` does, with everything that came of it. Without a project it holds
        everywhere."""
        where = GLOBAL if draft.scope == "global" else self._find_place(project)
        if where is GLOBAL and not (draft.scope or draft.path):
            draft = model.replace(draft, scope="global")
        by = by or self._memory.by()
        return remember(self._store, draft, where, by, update=update, supersedes=supersedes)

    def candidate(
        self,
        text: str,
        type: str,  # noqa: A002 -- the word of the data model
        project: str | None = None,
        tags: Sequence[str] = (),
    ) -> Choice:
        """What would become of a text; nothing is written."""
        category, where = get_category(type), self._find_place(project)
        return find_candidate(self._store, category, clean_text(text), where.key, tags)

    def edit(self, name: int | str, changes: Mapping[str, Any]) -> model.Memo:
        """Change title, tags, files, confidence, scope, path, type or fields of the content."""
        return lifecycle.edit_memory(self._store, self._find_id(name), changes, self._memory.by())

    def retire(self, name: int | str, *, force: bool = False) -> model.Memo:
        return self._change_status(name, "retire", force)

    def archive(self, name: int | str) -> model.Memo:
        return self._change_status(name, "archive")

    def restore(self, name: int | str) -> model.Memo:
        return self._change_status(name, "restore")

    def _change_status(self, name: int | str, step: str, force: bool = False) -> model.Memo:
        id_, by = self._find_id(name), self._memory.by()
        return lifecycle.change_status(self._store, id_, step, by, force=force)

    def supersede(self, old: int | str, new: int | str) -> model.Memo:
        """Let `new` stand in the place of `old`; what is new."""
        ids = self._find_id(old), self._find_id(new)
        return lifecycle.supersede_memory(self._store, *ids, self._memory.by())[1]

    def undo(self, name: int | str = 0) -> Sequence[model.Memo]:
        """Take back the last change, of this memory or at all."""
        return lifecycle.undo_change(self._store, self._memory.by(), self._find_id(name))

    def history(self, name: int | str = 0, limit: int = -1) -> Sequence[model.Change]:
        return read_history(self._store, self._find_id(name), limit)

    def _find_id(self, name: int | str) -> int:
        return self.get(name).item.id if name else 0

    def _find_place(self, project: str | None) -> model.Project:
        return find_place(self._memory, project or "")[0]


def open_memory(home: Path, environ: Mapping[str, str], database: str = "") -> OpenMemory:
    """The memory of a home, or of a server, made if needed; everything runs in this process."""
    memory = OpenMemory(home, environ, ask_worker=None, database=database)
    memory.open_store()
    folder = environ.get("YESTER_VECTOR_CACHE")
    if folder and (embedder := memory.embedder) is not None:
        from yester.text.vector_cache import CachedEmbedder

        memory.embedder = CachedEmbedder(embedder, Path(folder))
    return memory
