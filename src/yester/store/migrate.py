"""Schema versions. A migration is a numbered SQL file, applied in one transaction with its record.

Files are append-only: an applied one is never edited. A database written by a newer yester is
refused before anything is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
from msgspec import Struct

from yester.errors import StoreNewer


class Migration(Struct, frozen=True):
    version: int
    name: str
    sql: str


def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """The steps of a dialect in order, from `sql/DIALECT/NNN_name.sql`."""
    folder = Path(__file__).parent / "sql" / dialect  # importlib.resources would load zipfile
    found = []
    for path in sorted(folder.glob("*.sql")):
        number, name = path.stem.split("_", 1)
        found.append(Migration(int(number), name, path.read_text("utf-8")))
    return tuple(found)


def schema_version(db: apsw.Connection) -> int:
    return int(db.pragma("user_version"))


def pending_migrations(
    db: apsw.Connection, steps: Sequence[Migration], where: str
) -> list[Migration]:
    """What is still to be applied; read-only."""
    have = check_version(db, steps[-1].version, where)
    return [step for step in steps if step.version > have]


def check_version(db: apsw.Connection, newest: int, where: str) -> int:
    """The schema's version; StoreNewer where it is beyond the newest this yester knows. It may be
    raised while we have the store open, by a newer yester that was started beside us."""
    have = schema_version(db)
    if have > newest:
        raise StoreNewer(
            f"{where} has schema version {have}, this yester knows up to {newest}; "
            "update yester (pip install -U yester), or name another folder with --home"
        )
    return have


def apply_migrations(db: apsw.Connection, steps: Sequence[Migration], now: int) -> None:
    """Apply what is pending, each step all or nothing. The caller holds the write lock."""
    for step in steps:
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute(step.sql)
            db.execute(f"PRAGMA user_version = {step.version}")
            db.execute(
                "INSERT INTO migration(version, name, applied) VALUES (?, ?, ?)",
                (step.version, step.name, now),
            )
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # else BEGIN or COMMIT was interrupted
                db.execute("ROLLBACK")
            raise
