"""A store compared with what the team of a project has of it, and with the log that its owner's
machines share."""

from __future__ import annotations

from collections.abc import Collection

from yester.model import TEAM, LogItem, SharedItem
from yester.store.rows.ledger import LedgerRows
from yester.store.rows.rows import json_text

# A rule is its user's alone, and a note is a file that everybody has or nobody else should.
_SHARED = "i.kind <> 'note' AND (i.kind <> 'memory' OR i.type <> 'rule')"


class ShareRows(LedgerRows):
    """The part of a store that knows what its teams have."""

    def find_unshared(self, project: str) -> list[int]:
        """Items of a project (a key) that its team does not have, or has otherwise, the oldest rows
        first; without rules, notes and what others have shared."""
        return self._all_ids(
            "SELECT i.id FROM item i JOIN project p ON p.id = i.project"
            " LEFT JOIN share_item s ON s.project = p.key AND s.item = i.id"
            " LEFT JOIN memory m ON m.item = i.id LEFT JOIN roam_item r ON r.item = i.id"
            f" WHERE p.key = ? AND {_SHARED}"
            f" AND (m.item IS NOT NULL OR i.source NOT LIKE '{TEAM}%')"
            " AND (s.item IS NULL OR iif(m.item IS NULL, s.mark <> lower(hex(i.hash)),"
            " r.item IS NULL OR s.mark <> r.head OR r.version <> m.version)) ORDER BY i.id",
            project,
        )

    def find_unshared_ends(self, project: str) -> list[SharedItem]:
        """What the team has, and what is here no more, is no longer of this project, or was
        forgotten: as far as the team was not told."""
        gone = self._all_ids(
            "SELECT s.item FROM share_item s WHERE s.project = ?1 AND"
            " ((s.forgotten = 1 AND s.mark = '') OR (s.forgotten = 0 AND NOT EXISTS"
            " (SELECT 1 FROM item i JOIN project p ON p.id = i.project WHERE i.id = s.item"
            f" AND p.key = ?1 AND {_SHARED}))) ORDER BY s.item",
            project,
        )
        return self.entries(SharedItem, {"project": project, "item": gone}) if gone else []

    def drop_team_sessions(self, project: str) -> list[str]:
        """Inside a transaction: those that others have shared and of which nothing is left; their
        keys."""
        found = self._db.execute(
            f"DELETE FROM session AS s WHERE s.key LIKE '{TEAM}%'"
            " AND s.project IN (SELECT id FROM project WHERE key = ?) AND NOT EXISTS"
            " (SELECT 1 FROM item i WHERE i.session = s.id AND i.session <> 0) RETURNING key",
            (project,),
        )
        keys = [str(row[0]) for row in found]
        self._forget_rows()
        return keys


class RoamRows(LedgerRows):
    """The part of `SqliteStore` that knows what stands in the log; on a server there is none."""

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
