"""What all parts of a store have in common, whichever engine runs their statements.

The statements are SQLite's, as far as another engine can be taught to understand them: places for
values are `?`, `?1` and `:name`, and lists of ids come as JSON (`json_each`; with `'$'` behind it,
lists of texts and objects).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar

from yester.model import Filters
from yester.store.contract import Lock
from yester.store.rows import rows
from yester.store.rows.rows import Condition
from yester.tombstones import Tombstones

_SHORTEST_PREFIX = 6  # of a session's id, as `yester sessions` shows it
NO_SUCH_ID = -1  # a filter that names something unknown must find nothing, not everything
P = ParamSpec("P")
R = TypeVar("R")


def _explained(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method of a store whose database errors come out as sentences."""

    @wraps(method)
    def run_explained(store: Any, /, *args: P.args, **more: P.kwargs) -> R:
        with store._explain_errors():
            return method(store, *args, **more)

    return run_explained


class Rows:
    """Not shared between threads."""

    def __init_subclass__(cls) -> None:
        """Database errors come out of every public method of a part as sentences."""
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, _explained(method))

    def __init__(self, db: Any, index: Any, tombstones: Tombstones) -> None:
        self._db, self._index, self._tombstones = db, index, tombstones
        self._projects: dict[str, int] = {}
        self._sessions: dict[tuple[str, str, int], int] = {}
        self._moves: Any = None
        self._locked: Lock | None = None
        self._restores = self._restore_count()

    def _explain_errors(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _read(self, width: int, sql: str, *values: object) -> Iterable[tuple[Any, ...]]:  # noqa: ARG002
        """The rows of an answer with so many columns. An engine may put off asking until somebody
        looks at them, and then ask all that waits at once."""
        found: Iterable[tuple[Any, ...]] = self._db.execute(sql, values)
        return found

    def _stored_text(self, text: str) -> str:
        """As it stands in a column."""
        return text

    def _require_lock(self, lock: Lock) -> None:
        if self._locked != lock:
            raise RuntimeError(f"this is written in transaction({lock!r}), not in {self._locked!r}")

    def _restore_count(self) -> int:
        """How often another store's content has taken this one's place; whoever remembers something
        of the rows sees by it that they are others."""
        return int(self._get_meta("restores") or 0)

    def _count_move(self) -> None:
        """Other processes see by this number that items have changed their project."""
        self._set_meta("moves", str(int(self._get_meta("moves") or 0) + 1))

    def _notice_moves(self) -> None:
        """What is remembered of rows goes when somebody, we or others, has moved items or restored
        a backup."""
        self._compare_moves((self._get_meta("moves"), self._restore_count()))

    def _compare_moves(self, moves: tuple[str, int]) -> None:
        if moves != self._moves:
            self._moves = moves
            self._forget_rows()

    def _forget_rows(self) -> None:
        self._projects.clear()
        self._sessions.clear()

    def _filter_items(self, filters: Filters, statuses: Sequence[str] = ("active",)) -> Condition:
        return rows.filter_condition(filters, *self._filter_ids(filters), statuses)

    def _filter_ids(self, filters: Filters) -> tuple[list[int], list[int]]:
        projects = [self._project_id(name) or NO_SUCH_ID for name in filters.projects]
        if filters.session_id or not filters.session:
            return projects, [filters.session_id] if filters.session_id else []
        sessions = self._all_ids("SELECT id FROM session WHERE key = ?", filters.session)
        if not sessions and len(filters.session) >= _SHORTEST_PREFIX:
            sessions = self._all_ids(
                "SELECT id FROM session WHERE key LIKE ? ESCAPE '\\'",
                rows.prefix_pattern(filters.session),
            )
        return projects, sessions or [NO_SUCH_ID]

    def _project_id(self, name: str) -> int:
        """By name or key; 0: there is none."""
        return self._first_value("SELECT id FROM project WHERE name = ?1 OR key = ?1", name) or 0

    def _is_forgotten(self, project: str) -> bool:
        """Was this project (a key) forgotten, and nothing of it stored since?"""
        return self._tombstones.knows("project", project) and not self._project_id(project)

    def _get_meta(self, key: str) -> str:
        return self._first_value("SELECT value FROM meta WHERE key = ?", key) or ""

    def _next_id(self, table: str) -> int:
        """No id is given twice, though the newest row may be gone: what was let go is still named
        in ledgers, on screens and in memory; whoever lets go of rows notes it as `last_TABLE`."""
        newest = self._first_value(f"SELECT max(id) FROM {table}") or 0
        return max(newest, int(self._get_meta(f"last_{table}") or 0)) + 1

    def _last_number(self, table: str) -> int:
        """The last number that was given to a row of this table."""
        raise NotImplementedError

    # --- for `transfer.move_rows`, inside a transaction ------------------------------------------

    def _columns_of(self, table: str) -> dict[str, bool]:
        """The columns of a table: is it part of what names a row?"""
        raise NotImplementedError

    def _stream_rows(self, sql: str) -> Iterable[tuple[Any, ...]]:
        """The rows of an answer, however many, not all in memory at once."""
        raise NotImplementedError

    def _insert_rows(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
        marks = ", ".join("?" * len(columns))
        names = ", ".join(f'"{name}"' for name in columns)
        self._db.executemany(f"INSERT INTO {table}({names}) VALUES ({marks})", values)

    def _numbered_tables(self) -> Sequence[str]:
        """Tables that remember the last number given, whether its row is still there."""
        raise NotImplementedError

    def _continue_numbers(self, last: Mapping[str, int]) -> None:
        """Rows of these tables are numbered from there on."""
        raise NotImplementedError

    def _set_meta(self, key: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta(key, value) VALUES (?, ?)"
            " ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def _first_row(self, sql: str, *args: object) -> Any:
        return self._db.execute(sql, args).fetchone()

    def _first_value(self, sql: str, *args: object) -> Any:
        """Of the first row the first value; None where there is none."""
        row = self._first_row(sql, *args)
        return row and row[0]

    def _all_ids(self, sql: str, *args: object) -> list[int]:
        return [row[0] for row in self._db.execute(sql, args)]
