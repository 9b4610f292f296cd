"""Items and filters as SQLite has them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from yester.model import ECHO, Filters, Item, Paging
from yester.store.records import ITEM

ALL = 1 << 62  # rows: more than there are


def put_sql(
    table: str, columns: Collection[str], key: Collection[str], adding: bool = False
) -> str:
    """To write a row, its values by column. One with the same key is replaced, or (`adding`) both
    are added up."""
    others = [name for name in columns if name not in key]
    former = f"{table}.{{0}} + " if adding else ""
    changes = ", ".join(f"{name} = {former.format(name)}excluded.{name}" for name in others)
    return (
        f"INSERT INTO {table}({', '.join(columns)}) VALUES (:{', :'.join(columns)})"
        f" ON CONFLICT({', '.join(key)}) DO UPDATE SET {changes}"
    )


PUT = put_sql("item", [name for name in ITEM.fields if name != "alias"] + ["hash"], ["id"])
# Reads give the project's key and the session's own id; the row numbers come last.
_READ_AS = {"project": "p.key", "session": "coalesce(s.key, '')", "alias": "''"}
READ = ", ".join([_READ_AS.get(name, f"i.{name}") for name in ITEM.fields])
READ += ", i.project, i.session"
FROM = " FROM item i JOIN project p ON p.id = i.project LEFT JOIN session s ON s.id = i.session"
SELECT = f"SELECT {READ}{FROM}"
WIDTH = len(ITEM.fields) + 2
LISTED = " WHERE i.id IN (SELECT value FROM json_each(?))"


def item_values(item: Item, id_: int, hash_: bytes, project: int, session: int) -> dict[str, Any]:
    values = ITEM.values_of(item)
    values |= {"id": id_, "hash": hash_, "project": project, "session": session}
    values["updated"] = item.updated or item.epoch
    if item.call is None:
        values["call"] = ""
    return values


def item_of(row: Sequence[Any]) -> Item:
    found: Item = ITEM.record_of(row[: len(ITEM.fields)])
    return found


class Condition:
    """What must hold of rows, part by part, and the values asked for."""

    def __init__(self) -> None:
        self._parts = ["true"]
        self.values: list[Any] = []

    @property
    def sql(self) -> str:
        return " AND ".join(self._parts)

    def require(self, sql: str, *values: object) -> None:
        self._parts.append(sql)
        self.values += values

    def page_clause(self, page: Paging, *columns: str) -> str:
        """What stands behind FROM: the condition, and the page of what fulfils it in the order of
        these columns."""
        if page.behind:
            places = ", ".join("?" * len(page.behind))
            sign = ">" if page.oldest_first else "<"
            self.require(f"({', '.join(columns)}) {sign} ({places})", *page.behind)
        end = "" if page.oldest_first else " DESC"
        order = ", ".join(f"{name}{end}" for name in columns)
        limited = page.limit is not None and page.limit >= 0  # Python's own callers say -1, too
        self.values += (page.limit if limited else ALL, page.offset)
        return f" WHERE {self.sql} ORDER BY {order} LIMIT ? OFFSET ?"

    def require_one_of(self, column: str, values: Iterable[object]) -> None:
        """The column has one of these values; without values, any."""
        if wanted := list(values):
            self.require(f"{column} IN ({','.join('?' * len(wanted))})", *wanted)

    def require_one_listed(self, column: str, values: Sequence[object]) -> None:
        """The column has one of these values, however many; without values, none has."""
        if not values:
            return self.require("false")
        place = ", '$'" if isinstance(values[0], str) else ""
        listed = f"{column} IN (SELECT value FROM json_each(?{place}))"
        return self.require(listed, json_text(values))

    def leave_out_projects(self, column: str, filters: Filters) -> None:
        if filters.without_projects:
            keys = json_text(filters.without_projects)
            self.require(
                f"{column} NOT IN (SELECT id FROM project WHERE key IN"
                " (SELECT value FROM json_each(?, '$')))",
                keys,
            )


_TALK = frozenset(("message", "prompt"))
# The files asked for, as `wanted_files` gives them, and which items are about them. One path is the
# end of the other, and either may be the longer one: a stored path is relative where it could be.
# SQLite folds ASCII alone, so both go through it.
# PostgreSQL looks rows up only by what does not have to be taken out of a document first.
NAMED_FILES = (
    "(WITH w AS MATERIALIZED (SELECT key, value ->> 'name' AS name, value ->> 'path' AS path"
    " FROM json_each(?, '$')) SELECT * FROM w) j"
)
TOUCHING = (
    f"{NAMED_FILES} CROSS JOIN item_file f ON f.name = j.name"
    " AND (substr(lower(j.path), -length(f.path) - 1) = '/' || lower(f.path)"
    " OR substr('/' || lower(f.path), -length(j.path)) = lower(j.path))"
)


def filter_condition(
    filters: Filters,
    projects: Sequence[int],
    sessions: Sequence[int],
    statuses: Sequence[str] = ("active",),
) -> Condition:
    """The filters as an exact condition on `item i`; no `statuses` are any."""
    condition = Condition()
    for column, values in (
        ("i.status", (*statuses, ECHO) if statuses and filters.echoes else statuses),
        ("i.project", projects),
        ("i.session", sessions),
        ("i.source", filter(None, [filters.source])),
        ("i.supersedes", filter(None, [filters.supersedes])),
        ("i.kind", filters.kinds),
        ("i.type COLLATE NOCASE", filters.types),
        ("i.agent COLLATE NOCASE", filter(None, [filters.agent])),
        ("i.tool COLLATE NOCASE", filter(None, [filters.tool])),
    ):
        condition.require_one_of(column, values)
    # Said again in so many words: only then the indexes of these are used.
    if sessions:
        condition.require("i.session <> 0")
    elif projects and filters.kinds and not _TALK & set(filters.kinds):
        condition.require("i.kind NOT IN ('message', 'prompt')")
    if filters.supersedes:
        condition.require("i.supersedes <> 0")
    if filters.types and "" not in filters.types:
        condition.require("i.type <> ''")
    if filters.without_session:
        condition.require(
            "i.session NOT IN (SELECT id FROM session WHERE key = ?)", filters.without_session
        )
    condition.leave_out_projects("i.project", filters)
    if filters.since is not None:
        condition.require("i.epoch >= ?", filters.since)
    if filters.until is not None:
        condition.require("i.epoch < ?", filters.until)
    if filters.concepts:
        having = Condition()
        having.require_one_of("concept", [concept.lower() for concept in filters.concepts])
        condition.require(
            f"i.id IN (SELECT item FROM item_concept WHERE {having.sql})", *having.values
        )
    if filters.files:
        condition.require(f"i.id IN (SELECT f.item FROM {TOUCHING})", wanted_files(filters.files))
    return condition


def wanted_files(paths: Iterable[str]) -> str:
    wanted = [{"name": file_name(p), "path": "/" + p.strip("/")} for p in dict.fromkeys(paths)]
    return json_text(wanted)


def file_name(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1].lower()


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def prefix_pattern(text: str) -> str:
    """For LIKE … ESCAPE '\\'."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
