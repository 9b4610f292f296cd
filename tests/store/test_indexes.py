"""No question of a filter reads the whole table: each is answered through an index."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from yester.ingest.prepare import prepare_item
from yester.model import Filters, Item, Paging, Project
from yester.store import open_store

DAY = 86_400_000
PROJECTS = [Project(f"name:p{n}", f"p{n}") for n in range(5)]


def items() -> list[Item]:
    return [
        Item(
            ref=str(n), kind="observation", project=f"name:p{n % 5}", epoch=n * DAY,
            type="bugfix" if n % 50 == 0 else "change", title=f"Change {n}",
            concepts=("gotcha",) if n % 70 == 0 else (), files_modified=(f"src/f{n % 300}.py",),
        )
        for n in range(1, 1_500)
    ]  # fmt: skip


def plans(path: Path, filters: Filters, page: Paging) -> list[str]:
    """How SQLite answers what the store asks it, statement by statement."""
    store = open_store(path, now=1)
    asked: list[str] = []
    store._db.trace_v2(  # type: ignore[attr-defined]
        apsw.SQLITE_TRACE_STMT, lambda event: asked.append(event["sql"])
    )
    assert store.select(filters, page)
    store.close()
    db = apsw.Connection(str(path / "yester.db"))
    told = [
        row[3]
        for sql in asked
        if "item" in sql and sql.lstrip().upper().startswith(("SELECT", "WITH"))
        for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * sql.count("?"))
    ]
    db.close()
    return told


@pytest.mark.requirement("STO-03")
def test_a_filter_is_answered_through_an_index(tmp_path):
    store = open_store(tmp_path, now=1)
    with store.transaction("items"):
        for project in PROJECTS:
            store.put_project(project)
        store.put([prepare_item(one) for one in items()])
    store.close()
    for filters in (
        Filters(projects=("p1",)),
        Filters(since=1_400 * DAY),
        Filters(types=("bugfix",)),
        Filters(concepts=("gotcha",)),
        Filters(files=("src/f7.py",)),
    ):
        found = plans(tmp_path, filters, Paging(5))
        assert found, filters
        assert not [line for line in found if line.startswith("SCAN i")], (filters, found)
