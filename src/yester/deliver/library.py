"""The Python interface: `yester.open()` gives a Memory. Everything runs in process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from yester import ingest
from yester.config import Config
from yester.errors import UsageError
from yester.model import KINDS, Filters, Hit, Item, Project
from yester.project import named
from yester.recall.recall import DAY, Asked, hit, recall
from yester.store.base import Store
from yester.when import moment

Moment = float | int | datetime | str | None

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


class Memory:
    """A store that is open. Use it as a context manager, or call close()."""

    def __init__(self, store: Store, config: Config) -> None:
        self.store = store
        self.config = config

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    def add(self, items: Iterable[Mapping[str, Any]], embed: str = "now") -> int:
        """Store dicts as items; returns how many were new or changed.

        Idempotent by (source, kind, ref); without a ref the content is its own identity. `embed`
        is "now" or "later" and matters where an embedding model is present.
        """
        if embed not in ("now", "later"):
            raise UsageError(f'embed is {embed!r}, but must be "now" or "later"')
        projects = {project.name: project for project in self.store.projects()}
        now = int(time.time() * 1000)
        converted = (_item(given, projects, now) for given in items)
        return ingest.add(self.store, converted).written

    def recall(
        self,
        query: str = "",
        k: int = 10,
        *,
        project: str | None = None,
        scope: str = "all",
        files: Sequence[str] = (),  # noqa: ARG002 -- the file arm comes with ranking
        kinds: Sequence[str] = (),
        types: Sequence[str] = (),
        concepts: Sequence[str] = (),
        session: str | None = None,
        agent: str | None = None,
        tool: str | None = None,
        since: Moment = None,
        until: Moment = None,
        now: float | None = None,
        order: str = "relevance",
        offset: int = 0,
        explain: bool = False,
    ) -> list[Hit]:
        """The best k answers. `scope="project"` looks in `project` alone; `files` are what the
        caller is touching, not a filter; times are seconds, datetimes or texts such as "3d"."""
        if scope not in ("all", "project"):
            raise UsageError(f'scope is {scope!r}, but must be "all" or "project"')
        if scope == "project" and not project:
            raise UsageError('scope="project" needs the name of a project')
        present = int((time.time() if now is None else now) * 1000)
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
        window = self.config.number("recency_window_days") * DAY
        return recall(self.store, Asked(query, filters, k, offset, order, explain, present, window))

    def get(self, ids: Sequence[int]) -> list[Hit]:
        """Items by id, in this order; unknown ids are left out."""
        names = {project.key: project.name for project in self.store.projects()}
        return [hit(item, names) for item in self.store.get(ids)]


def _kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"kind {kind!r} is not known; the kinds are {', '.join(KINDS)}")
    return tuple(kinds)


def _moment(value: Moment, now: int, option: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        return moment(value, now, option=option)
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
    project = projects.setdefault(name, named(name))
    values["project"] = project.key
    values["origin"] = "user" if values["role"] == "user" else "agent"
    item = Item(**values)
    if not item.ref:
        item = Item(**{**values, "ref": "sha:" + ingest.content_hash(item).hex()})
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


def open_home(home: Path, config: Config, now: int | None = None) -> Memory:
    from yester.store.sqlite import SqliteStore

    present = int(time.time() * 1000) if now is None else now
    return Memory(SqliteStore.open(home, now=present), config)
