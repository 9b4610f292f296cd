"""Looking after the SQLite file: integrity, copies, and errors in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from yester.errors import StoreBusy, StoreDamaged, StoreError, YesterError

P = ParamSpec("P")
R = TypeVar("R")


def check(db: apsw.Connection) -> list[str]:
    """What is broken. Problems of the index begin with "index:", it can be rebuilt."""
    problems = []
    try:
        for (text,) in db.execute("PRAGMA integrity_check(20)"):
            if text != "ok":
                part = "index" if "item_text" in text else "database"
                problems.append(f"{part}: {text}")
        for table, rowid, parent, _ in db.execute("PRAGMA foreign_key_check"):
            problems.append(f"database: {table} row {rowid} points to a missing {parent}")
    except apsw.Error as error:
        return [*problems, f"database: {error}"]
    if any(text.startswith("index:") for text in problems):
        return problems
    try:
        db.execute("INSERT INTO item_text(item_text, rank) VALUES ('integrity-check', 0)")
        row = db.execute(
            "SELECT (SELECT count(*) FROM item WHERE status = 'active'),"
            " (SELECT count(*) FROM item_text_docsize), (SELECT count(*) FROM item_terms)"
        ).fetchone()
        assert row is not None
        active, indexed, worded = row
        if not active == indexed == worded:
            problems.append(
                f"index: {active} items, but {indexed} in the full text and {worded} term vectors"
            )
    except apsw.Error as error:
        problems.append(f"index: {error}")
    return problems


def backup(db: apsw.Connection, path: Path) -> None:
    """Copied page by page under another name, then renamed: a backup that exists is whole."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    copy = apsw.Connection(str(part))
    try:
        with copy.backup("main", db, "main") as work:
            while not work.done:
                work.step(2000)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    part.rename(path)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise explain(error, path) from error


def explain(error: Exception, path: Path) -> YesterError:
    """What went wrong with the database, for the person who must act."""
    match error:
        case apsw.NotADBError():
            return StoreDamaged(
                f"{path} is not a yester database; `yester doctor` says what can be done"
            )
        case apsw.CorruptError() if "fts5" in str(error) or "item_text" in str(error):
            return StoreDamaged(
                f"{path}: the search index is damaged; run `yester reindex`, no item is affected"
            )
        case apsw.CorruptError():
            return StoreDamaged(
                f"{path} is damaged ({error}); `yester doctor` says what can be done"
            )
        case apsw.FullError():
            return StoreError(
                f"{path}: the disk is full; nothing stored was lost, free some space and retry"
            )
        case apsw.BusyError():
            return StoreBusy(f"{path} is locked by another program; close it and retry")
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreError(
                f"{path} cannot be written; check that its folder is yours and writable"
            )
        case apsw.IOError():
            return StoreError(f"{path}: reading or writing failed ({error}); check the disk")
        case OSError():
            reason = error.strerror or str(error)
            return StoreError(f"{error.filename or path}: {reason}; check the folder and the disk")
    return StoreError(f"{path}: {error}")


def explains(read: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A reading method of a store whose database errors come out as sentences."""

    @wraps(read)
    def method(store: Any, /, *args: P.args, **more: P.kwargs) -> R:
        with explained(store._path):
            return read(store, *args, **more)

    return method
