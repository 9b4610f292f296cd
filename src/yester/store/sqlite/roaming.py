"""The store in SQLite compared with the log that its owner's machines share."""

from __future__ import annotations

from collections.abc import Collection

from yester.model import LogItem
from yester.store.rows.ledger import LedgerRows
from yester.store.rows.rows import json_text


class RoamRows(LedgerRows):
    """The part of `SqliteStore` that knows what stands in the log."""

    def find_unsent(self, own: Collection[str]) -> list[int]:
        """Items that the log does not have, or has otherwise: those from here (`own` are this
        machine's names), and memories, whoever wrote them first; the oldest rows first."""
        return self._all_ids(
            "SELECT i.id FROM item i LEFT JOIN roam_item r ON r.item = i.id"
            " LEFT JOIN memory m ON m.item = i.id"
            " WHERE r.item IS NULL OR NOT r.sent"
            " OR iif(m.item IS NULL, r.hash <> lower(hex(i.hash)) AND r.origin IN"
            " (SELECT value FROM json_each(?)), r.version <> m.version)"
            " OR (r.ref <> '' AND r.ref <> i.ref) ORDER BY i.id",
            json_text(list(own)),
        )

    def find_departed(self) -> list[LogItem]:
        """What the log has of items that are here no more, and were not forgotten."""
        gone = self._all_ids(
            "SELECT item FROM roam_item r WHERE NOT EXISTS (SELECT 1 FROM item WHERE id = r.item)"
        )
        return self.entries(LogItem, {"item": gone})

    def forget_log(self) -> None:
        """Inside a transaction: nothing of the log has been read or written yet. What is known of
        where items came from stays."""
        self._db.execute("DELETE FROM roam_segment")
        self._db.execute("DELETE FROM roam_version WHERE root = 'forgotten'")
        self._db.execute("UPDATE roam_item SET sent = 0")
