"""A damaged database, read as far as it can be: index and rows may be damaged apart, and a page
that cannot be read costs what stands on it, not what stands behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import apsw

# Built anew from the items, by the store, and (vectors) by the worker.
_REBUILT = frozenset({"item_terms", "term", "frequency", "length", "item_file", "item_concept"})
_VECTORS = ("vector", "vector_code", "unembedded")
_ONE_BY_ONE = 50_000  # numbers tried behind a row; then a whole branch is gone, and steps grow


def is_readable(db: apsw.Connection) -> bool:
    """Can every row be read of what is no index? Then that is all that is damaged."""
    try:
        for table in set(_data_tables(db)).difference(_VECTORS):
            for _ in db.execute(f"SELECT * FROM {table} NOT INDEXED"):
                pass
    except (apsw.Error, UnicodeError):
        return False
    return True


def _data_tables(db: apsw.Connection) -> list[str]:
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    names = [name for (name,) in db.execute(tables) if name not in _REBUILT]
    return [name for name in names if not name.startswith(("sqlite_", "item_text", "migration"))]


def copy_readable(old: apsw.Connection, new: apsw.Connection) -> Counter[str]:
    """Every row that can be read, into a new database of the present form, in its transaction; by
    table how many could not, -1 where that is not known."""
    lost: Counter[str] = Counter()
    # The schema as far as it can be read, whatever it says, and of a file that was cut off.
    old.execute("PRAGMA writable_schema = ON")
    new.execute("PRAGMA defer_foreign_keys = ON")
    for table in _data_tables(new):
        lost[table] = _copy_table(old, new, table)
    if any(lost[table] for table in _VECTORS):
        for table in _VECTORS:
            new.execute(f"DELETE FROM {table}")
    new.execute("DELETE FROM meta WHERE key IN ('embedder', 'embedded')")  # who waits is seen anew
    _tie_rows(new, lost)
    # What is missing may stand in transcripts still, and be distilled from what is there.
    new.execute("UPDATE source SET size = -1, head = '0:'")
    new.execute("INSERT OR REPLACE INTO undistilled SELECT id, 1, 0 FROM session")
    return lost


def _copy_table(old: apsw.Connection, new: apsw.Connection, table: str) -> int:
    info = "SELECT name, type = 'TEXT', pk FROM pragma_table_info(?)"
    try:
        known = {name for name, _, _ in old.execute(info, (table,))}
        number = old.execute(f"SELECT count(*) FROM {table}").get  # an index may be whole
    except apsw.Error:
        known, number = set(), 0
    columns = [one for one in new.execute(info, (table,)) if not known or one[0] in known]
    names = ", ".join(name for name, _, _ in columns)
    # Bytes that are no text any more would stop the reading.
    read = ", ".join(f"CAST({name} AS BLOB)" if text else name for name, text, _ in columns)
    put = f"INSERT OR REPLACE INTO {table}({names}) VALUES ({', '.join('?' * len(columns))})"
    unnumbered = new.execute("SELECT wr FROM pragma_table_list WHERE name = ?", (table,)).get
    keys = [name for _, name in sorted((at, name) for name, _, at in columns if at)]
    rows = _read_ends(old, table, read, keys) if unnumbered else _read_numbered(old, table, read)
    lost = False
    for row in rows:
        if row is None:
            lost = True
            continue
        texts = zip(row, columns, strict=True)
        values = [
            value.decode("utf-8", "replace") if text and isinstance(value, bytes) else value
            for value, (_, text, _) in texts
        ]
        with suppress(apsw.ConstraintError):  # NULL, where none can be
            new.execute(put, values)
    missing: int = number - new.execute(f"SELECT count(*) FROM {table}").get
    return missing if missing > 0 else -lost


def _read_numbered(
    db: apsw.Connection, table: str, columns: str
) -> Iterator[tuple[Any, ...] | None]:
    """Rows by their number; None where some cannot be read."""
    sql = f"SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
    low, failed = 0, 0
    while low < 1 << 62:
        try:
            for number, *row in db.execute(sql, (low,)):
                yield tuple(row)
                low, failed = number + 1, 0
            return
        except apsw.Error:
            yield None
            failed += 1
            low += 1 << max(0, failed - _ONE_BY_ONE)


def _read_ends(
    db: apsw.Connection, table: str, columns: str, keys: Sequence[str]
) -> Iterator[tuple[Any, ...] | None]:
    """Rows of a table without numbers, from both ends; None where some cannot be read."""
    for order in ("", " DESC"):
        by = ", ".join(f"{key}{order}" for key in keys)
        try:
            yield from db.execute(f"SELECT {columns} FROM {table} ORDER BY {by}")
            return
        except apsw.Error:
            yield None


def _tie_rows(new: apsw.Connection, lost: Counter[str]) -> None:
    """What points to rows that are gone goes as well, but no item for its project's sake."""
    new.execute(
        "INSERT INTO project(id, key, name) SELECT DISTINCT project, 'salvaged/' || project,"
        " 'salvaged-' || project FROM item WHERE project NOT IN (SELECT id FROM project)"
    )
    for table, parent, column, to in list(
        new.execute(
            'SELECT t.name, f."table", f."from", f."to" FROM sqlite_schema t,'
            " pragma_foreign_key_list(t.name) f WHERE t.type = 'table'"
        )
    ):
        before = new.total_changes()
        new.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {to} FROM {parent})")
        lost[table] += new.total_changes() - before
