"""The store on PostgreSQL. Contract: `contract.Store`, `Maintenance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yester.store.postgres.lines import TeamLines
from yester.store.postgres.search import ServerSearch
from yester.store.rows.feed import FeedRows
from yester.store.rows.forgetting import ForgetRows
from yester.store.rows.joins import JoinRows
from yester.store.rows.sharing import ShareRows


class PostgresStore(ServerSearch, TeamLines, ForgetRows, JoinRows, FeedRows, ShareRows):
    """All parts together, and what looks after the index."""

    def limit_project(self, key: str, accounts: Sequence[int]) -> None:
        """From now on a project is these accounts' alone; without any, the whole tenant's. Needs a
        transaction of who opened the store by its address."""
        self._require_lock("places")
        id_ = self._project_id(key)
        self._db.ask("DELETE FROM member WHERE project = $1", [id_])
        self._db.executemany(
            "INSERT INTO member(project, account) VALUES (?, ?)", [(id_, one) for one in accounts]
        )

    def reindex(self) -> int:
        return self._rebuild_index()

    def check(self, by_hash: bool = False) -> list[str]:  # noqa: ARG002
        """What is broken of the index; the rows are the server's to look after."""
        ((active, worded, counted, listed),) = self._db.ask(
            "SELECT (SELECT count(*) FROM item WHERE status = 'active'),"
            " (SELECT count(*) FROM item_terms),"
            " (SELECT coalesce(sum(items), 0) FROM posting WHERE part = 0),"
            " (SELECT coalesce(sum(cardinality(ids)), 0) FROM posting)"
        )
        problems = []
        if active != worded:
            problems.append(f"index: {active} items, but {worded} term vectors")
        if counted != listed:
            problems.append(f"index: {listed} entries in the lists of terms, but {counted} counted")
        return problems

    def read_values(self) -> Iterator[bytes]:
        """Every text and blob of this tenant's, row by row."""
        for (table,) in self._db.ask(
            "SELECT table_name FROM information_schema.columns"
            " WHERE table_schema = 'yester' AND column_name = 'tenant'"
        ):
            for row in self._db.ask(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, str | bytes):
                        yield value.encode() if isinstance(value, str) else value

    def _count_restore(self) -> None:
        super()._count_restore()
        self._db.ask("SELECT fold(0)")
        self._db.ask(
            "DELETE FROM term t WHERE NOT EXISTS"
            " (SELECT 1 FROM posting p WHERE p.term = t.hash AND p.project = t.project)"
        )
