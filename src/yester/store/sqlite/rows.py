"""Items, sessions and filters as SQLite rows and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from yester.model import ECHO, Filters, Item, ToolCall

COLUMNS = (
    "id", "ref", "kind", "source", "hash", "project", "session", "agent", "actor", "role",
    "prompt_number", "epoch", "updated", "type", "tool", "origin", "trust", "confidence", "status",
    "supersedes", "discovery_tokens", "title", "subtitle", "files_read", "files_modified",
    "concepts", "tags", "facts", "sections", "call", "body",
)  # fmt: skip

INSERT = f"INSERT INTO item({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
REPLACE = f"{INSERT} ON CONFLICT(id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in COLUMNS[4:]
)

# Reads give the project's key and the session's own id; the row numbers come last.
READ = (
    "i.id, i.ref, i.kind, i.source, p.key, coalesce(s.key, ''), i.agent, i.actor, i.role,"
    " i.prompt_number, i.epoch, i.updated, i.type, i.tool, i.origin, i.trust, i.confidence,"
    " i.status, i.supersedes, i.discovery_tokens, i.title, i.subtitle, i.files_read,"
    " i.files_modified, i.concepts, i.tags, i.facts, i.sections, i.call, i.body,"
    " i.project, i.session"
)
FROM = " FROM item i JOIN project p ON p.id = i.project LEFT JOIN session s ON s.id = i.session"
SELECT = f"SELECT {READ}{FROM}"


def _to_json(value: Sequence[str] | Mapping[str, str]) -> str:
    return msgspec.json.encode(value).decode()


def item_row(item: Item, id_: int, hash_: bytes, project: int, session: int) -> tuple[object, ...]:
    return (
        id_, item.ref, item.kind, item.source, hash_, project, session, item.agent, item.actor,
        item.role, item.prompt_number, item.epoch, item.updated or item.epoch, item.type, item.tool,
        item.origin, item.trust, item.confidence, item.status, item.supersedes,
        item.discovery_tokens, item.title, item.subtitle,
        _to_json(item.files_read) if item.files_read else "[]",
        _to_json(item.files_modified) if item.files_modified else "[]",
        _to_json(item.concepts) if item.concepts else "[]",
        _to_json(item.tags) if item.tags else "[]",
        _to_json(item.facts) if item.facts else "[]",
        _to_json(item.sections) if item.sections else "{}",
        _call_text(item.call) if item.call else "",
        item.body,
    )  # fmt: skip


def _call_text(call: ToolCall) -> str:
    """A call as JSON, without what it has not: there are many."""
    values = ((name, getattr(call, name)) for name in ToolCall.__struct_fields__)
    told = {name: value for name, value in values if value or type(value) is int}
    return msgspec.json.encode(told).decode()


def _text_tuple(text: str) -> tuple[str, ...]:
    return () if text == "[]" else msgspec.json.decode(text, type=tuple[str, ...])


def item_of(values: tuple[Any, ...]) -> Item:
    (id_, ref, kind, source, project, session, agent, actor, role, prompt_number, epoch, updated,
     type_, tool, origin, trust, confidence, status, supersedes, discovery_tokens, title, subtitle,
     files_read, files_modified, concepts, tags, facts, sections, call, body,
     ) = values[:30]  # fmt: skip
    return Item(
        ref=ref, kind=kind, project=project, session=session, source=source, agent=agent,
        actor=actor, role=role, prompt_number=prompt_number, epoch=epoch, updated=updated,
        type=type_, title=title, subtitle=subtitle, body=body, facts=_text_tuple(facts),
        concepts=_text_tuple(concepts), tags=_text_tuple(tags), files_read=_text_tuple(files_read),
        files_modified=_text_tuple(files_modified), sections=msgspec.json.decode(sections),
        call=msgspec.json.decode(call, type=ToolCall) if call else None, tool=tool, origin=origin,
        trust=trust, confidence=confidence, status=status, supersedes=supersedes,
        discovery_tokens=discovery_tokens, id=id_,
    )  # fmt: skip


_TALK = frozenset(("message", "prompt"))


def filter_condition(
    filters: Filters,
    projects: Sequence[int],
    sessions: Sequence[int],
    statuses: Sequence[str] = ("active",),
) -> tuple[str, tuple[object, ...]]:
    """The filters as an exact condition on `item i`, never empty; no `statuses` are any."""
    parts, args = ["1"], list[object]()

    def add_values(column: str, values: Sequence[object], collate: str = "") -> None:
        if values:
            parts.append(f"{column}{collate} IN ({','.join('?' * len(values))})")
            args.extend(values)

    if statuses:
        add_values("i.status", (*statuses, ECHO) if filters.echoes else statuses)
    add_values("i.project", projects)
    if sessions:
        parts.append("i.session <> 0")  # in so many words: only then their index is used
        add_values("i.session", sessions)
    if filters.source:
        parts.append("i.source = ?")
        args.append(filters.source)
    add_values("i.kind", filters.kinds)
    if projects and filters.kinds and not sessions and not _TALK & set(filters.kinds):
        parts.append("i.kind NOT IN ('message', 'prompt')")  # again: so their index is used
    if filters.types and "" not in filters.types:
        parts.append("i.type <> ''")  # for its index
    add_values("i.type", filters.types, " COLLATE NOCASE")
    add_values("i.agent", [filters.agent] if filters.agent else [], " COLLATE NOCASE")
    add_values("i.tool", [filters.tool] if filters.tool else [], " COLLATE NOCASE")
    if filters.since is not None:
        parts.append("i.epoch >= ?")
        args.append(filters.since)
    if filters.until is not None:
        parts.append("i.epoch < ?")
        args.append(filters.until)
    if filters.concepts:
        marks = ",".join("?" * len(filters.concepts))
        parts.append(f"i.id IN (SELECT item FROM item_concept WHERE concept IN ({marks}))")
        args.extend(concept.lower() for concept in filters.concepts)
    if filters.files:
        parts.append(
            "i.id IN ("
            + " UNION ".join(
                [f"SELECT item FROM item_file WHERE name = ? AND {same_file('path', '?')}"]
                * len(filters.files)
            )
            + ")"
        )
        for file in filters.files:
            args += [file_name(file), *[rooted_path(file)] * 3]
    return " AND ".join(parts), tuple(args)


def same_file(stored: str, asked: str) -> str:
    """SQL: one path is the end of the other. `asked` stands there three times, `rooted`.

    Either may be the longer one: a stored path is relative where it could be. SQLite folds ASCII
    alone, so both go through it."""
    return (
        f"(substr(lower({asked}), -length({stored}) - 1) = '/' || lower({stored})"
        f" OR substr('/' || lower({stored}), -length({asked})) = lower({asked}))"
    )


def rooted_path(path: str) -> str:
    return "/" + path.strip("/")


def file_name(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1].lower()


def prefix_pattern(text: str) -> str:
    return _escape_like(text) + "%"


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
