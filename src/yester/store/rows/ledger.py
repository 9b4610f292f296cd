"""Rows that are written down as they happen, in SQLite (`records.LEDGER`), and sums over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct, convert

from yester.clock import DAY, QUARTER
from yester.model import (
    ANYTHING,
    EVERYTHING,
    Answered,
    Change,
    Filters,
    Paging,
    Source,
    replace,
)
from yester.store.contract import Row
from yester.store.records import LEDGER, Table
from yester.store.rows.base import Rows
from yester.store.rows.rows import Condition, put_sql
from yester.tables import fill_parts, load_table

R = TypeVar("R", bound=Struct)
_BY_REF = "SELECT 1 FROM item WHERE ref = ?"
_LONGEST = 60_000  # ms; whoever waits longer for an answer has gone


class _Sums(Struct, frozen=True):
    """A row of tables/totals.toml, whose head says what the fields mean."""

    source: str
    by: Mapping[str, str] = {}
    sums: Mapping[str, str] = {}
    time: str = ""
    only: str = "true"


@cache
def _load_totals() -> Mapping[str, _Sums]:
    table = load_table("totals")
    parts = {**table["parts"], "DAY": str(DAY), "QUARTER": str(QUARTER)}

    def fill_in(value: Any) -> Any:
        if isinstance(value, str):
            return fill_parts(value, parts)
        return {name: fill_in(part) for name, part in value.items()}

    rows = table["totals"].items()
    return {name: convert({"source": name, **fill_in(row)}, _Sums) for name, row in rows}


class LedgerRows(Rows):
    """The part of `SqliteStore` that writes down what happens."""

    # --- writing, inside a transaction -------------------------------------------------------

    def append(self, rows: Sequence[Row]) -> list[int]:
        return [self._append_row(row) for row in rows]

    def _append_row(self, row: Row | Change) -> int:
        table = LEDGER[type(row)]
        if isinstance(row, Source) and self._tombstones:
            state = self._clean_state(row)
            if state is None:
                return 0
            row = replace(row, state=state)
        values = table.values_of(row)
        if isinstance(row, Answered):
            values["ms"] = min(max(row.ms, 0), _LONGEST)
        if table.numbered and not (values["id"] and table.known and table.key == ("id",)):
            del values["id"]
        if table.known in ("replaced", "added up"):
            sql = put_sql(table.name, values, table.key, table.known == "added up")
        else:
            columns = ", ".join(table.columns[name] for name in values)
            sql = f"INSERT INTO {table.name}({columns}) SELECT :{', :'.join(values)}"
            if table.known:
                same = " AND ".join(f"{name} = :{name}" for name in table.key)
                sql += f" WHERE NOT EXISTS (SELECT 1 FROM {table.name} WHERE {same})"
        if table.numbered:
            sql += " RETURNING id"
        made = self._db.execute(sql, values).fetchone()
        return int(made[0]) if made else 0

    def _clean_state(self, row: Source) -> dict[str, object] | None:
        """Without names of what was forgotten; None where its path is one as well. It is read
        again then, in vain."""
        state: Any = row.state
        if "notes" in state:  # a ref has words of its note: what is not stored has none
            notes = [ref for ref in state["notes"] if self._first_row(_BY_REF, ref)]
            return {**state, "notes": notes} if notes or not state["notes"] else None
        if self._is_forgotten(str(state.get("project"))):
            return None
        labels = {name: str(state[name]) for name in ("title", "branch") if name in state}
        return {**state, **self._tombstones.clean_labels(str(state.get("session")), labels)}

    def retract(self, kind: type[Row], where: Mapping[str, object]) -> int:
        condition = _row_condition(LEDGER[kind], where)
        sql = f"DELETE FROM {LEDGER[kind].name} WHERE {condition.sql} RETURNING 1"
        return len(self._db.execute(sql, condition.values).fetchall())

    # --- reading -----------------------------------------------------------------------------

    def entries(
        self, kind: type[R], where: Mapping[str, object] = {}, page: Paging = EVERYTHING
    ) -> list[R]:
        table = LEDGER[kind]
        condition = _row_condition(table, where)
        columns = ", ".join(table.columns.values())
        found = self._db.execute(
            f"SELECT {columns} FROM {table.name}{condition.page_clause(page, *table.order)}",
            condition.values,
        )
        return [table.record_of(row) for row in found]

    def totals(
        self,
        table: str,
        by: Sequence[str] = (),
        sums: Sequence[str] = ("number",),
        where: Mapping[str, object] = {},
        since: int = 0,
        filters: Filters = ANYTHING,
    ) -> list[tuple[Any, ...]]:
        if table == "concept" and filters != ANYTHING:
            table = "concept of item"
        spec = _load_totals().get(table) or _Sums(table)
        condition = Condition()
        condition.require(spec.only)
        if filters != ANYTHING:
            passing = self._filter_items(filters)
            condition.require(passing.sql, *passing.values)
        for name, value in where.items():
            condition.require(f"{spec.by.get(name, name)} = ?", value)
        if since:
            condition.require(f"{spec.time} >= ?", since)
        columns = [spec.by.get(name, name) for name in by]
        columns += [spec.sums.get(name, "count(*)") for name in sums]
        sql = f"SELECT {', '.join(columns)} FROM {spec.source} WHERE {condition.sql}"
        if by:
            places = ", ".join(map(str, range(1, len(by) + 1)))
            sql += f" GROUP BY {places} ORDER BY {places}"
        return list(self._db.execute(sql, condition.values))


def _row_condition(table: Table, where: Mapping[str, Any]) -> Condition:
    """Each field has its value, or one of its values."""
    condition = Condition()
    for name, value in where.items():
        if isinstance(value, str | int):
            condition.require(f"{table.columns[name]} = ?", value)
        else:
            condition.require_one_listed(table.columns[name], list(value))
        if name == table.partial:
            condition.require(f"{name} <> 0")
    return condition
