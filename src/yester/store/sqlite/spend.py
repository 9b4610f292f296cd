"""What language models cost, and what was shown for what it took to find out, in SQLite."""

from __future__ import annotations

import apsw

from yester.model import Spend
from yester.store.contract import Discovered, Shown, Spending, Spent
from yester.store.sqlite.maintenance import explains


class SpendRows:
    """The part of `SqliteStore` that budgets and `yester stats` need."""

    _db: apsw.Connection

    # --- writing, inside a transaction -------------------------------------------------------

    def put_spend(self, spend: Spend) -> int:
        self._db.execute(
            "INSERT INTO spend(epoch, model, purpose, tokens_in, tokens_out, cost, until, outcome)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (spend.epoch, spend.model, spend.purpose, spend.tokens_in, spend.tokens_out,
             spend.cost, spend.until, spend.outcome),
        )  # fmt: skip
        return self._db.last_insert_rowid()

    def settle_spend(
        self, spend: int, tokens_in: int, tokens_out: int, cost: float, outcome: str
    ) -> None:
        self._db.execute(
            "UPDATE spend SET tokens_in = ?, tokens_out = ?, cost = ?, outcome = ? WHERE id = ?",
            (tokens_in, tokens_out, cost, outcome, spend),
        )

    # --- reading -----------------------------------------------------------------------------

    @explains
    def spent(self, since: int, now: int) -> Spent:
        row = self._db.execute(
            "SELECT total(cost), cast(total(tokens_in + tokens_out) AS INTEGER),"
            " (SELECT count(*) FROM spend WHERE outcome = '' AND until > ?2)"
            " FROM spend WHERE epoch >= ?1",
            (since, now),
        ).fetchone()
        assert row is not None
        return Spent(*row)

    @explains
    def spending(self, since: int) -> list[Spending]:
        found = self._db.execute(
            "SELECT date(epoch / 1000, 'unixepoch') AS day, model, purpose, outcome, count(*),"
            " sum(tokens_in), sum(tokens_out), sum(cost) FROM spend WHERE epoch >= ?"
            " GROUP BY day, model, purpose, outcome ORDER BY day DESC, model, purpose, outcome",
            (since,),
        )
        return [Spending(*row) for row in found]

    @explains
    def discovered(self) -> list[Discovered]:
        found = self._db.execute(
            "SELECT kind, count(*), sum(discovery_tokens),"
            " sum(length(title) + length(subtitle) + length(body)"
            " + iif(facts = '[]', 0, length(facts))"
            # What a summary says stands in its sections, each under its name.
            " + iif(sections = '{}', 0, (SELECT coalesce(sum(length(key) + length(value) + 2), 0)"
            " FROM json_each(sections))))"
            " FROM item WHERE discovery_tokens > 0 AND status = 'active' GROUP BY kind"
            " ORDER BY kind"
        )
        return [Discovered(*row) for row in found]

    @explains
    def shown(self, since: int) -> list[Shown]:
        found = self._db.execute(
            "SELECT n.event, count(DISTINCT n.session || ' ' || n.epoch), count(*), sum(n.tokens),"
            " coalesce(sum(i.discovery_tokens), 0)"
            " FROM injection n LEFT JOIN item i ON i.id = n.item WHERE n.epoch >= ?"
            " GROUP BY n.event ORDER BY n.event",
            (since,),
        )
        return [Shown(*row) for row in found]
