"""What the members of a team share with each other on their server, line by line, as far as the
caller may see it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Sequence

from msgspec import structs

from yester.model import TeamLine
from yester.store.postgres.connection import Connection

_COLUMNS = ", ".join(TeamLine.__struct_fields__)


class TeamLines(Connection):
    """The part of `PostgresStore` that knows them."""

    def user_key(self, user: str) -> bytes:
        """The key of the digests of what is this user's: nobody else can make one of them."""
        if not self._get_meta("share_key"):
            with self.transaction("ledger"):
                if not self._get_meta("share_key"):
                    self._set_meta("share_key", secrets.token_hex(32))
        return hmac.digest(bytes.fromhex(self._get_meta("share_key")), user.encode(), "sha256")

    def find_project_id(self, key: str) -> int:
        """0: there is none, for this caller."""
        return int(self._first_value("SELECT id FROM project WHERE key = ?", key) or 0)

    # --- batches ----------------------------------------------------------------------------------

    def find_batch(self, origin: str, batch: int) -> tuple[str, str] | None:
        """The digest of its body and what was answered."""
        found = self._db.ask(
            "SELECT body, answer FROM share_batch WHERE account = account() AND origin = $1"
            " AND batch = $2", [origin, batch],
        ).fetchone()  # fmt: skip
        return (str(found[0]), str(found[1])) if found else None

    def last_batch(self, origin: str) -> int:
        found = self._db.ask(
            "SELECT coalesce(max(batch), 0) FROM share_batch WHERE account = account()"
            " AND origin = $1", [origin],
        ).fetchone()  # fmt: skip
        return int(found[0]) if found else 0

    def put_batch(self, anchor: str, origin: str, batch: int, body: str, answer: str) -> None:
        self._db.ask(
            "INSERT INTO share_batch(anchor, account, origin, batch, body, answer)"
            " VALUES ($1, account(), $2, $3, $4, $5)", [anchor, origin, batch, body, answer],
        )  # fmt: skip

    def knows_anchor(self, anchor: str) -> bool:
        found = self._db.ask("SELECT 1 FROM share_batch WHERE anchor = $1", [anchor])
        return found.fetchone() is not None

    # --- lines ------------------------------------------------------------------------------------

    def find_team_lines(self, digests: Collection[str]) -> list[TeamLine]:
        """Of all projects that the caller may see."""
        found = self._db.ask(
            f"SELECT {_COLUMNS} FROM share_line WHERE digest = ANY ($1) ORDER BY id",
            [list(digests)],
        )
        return [_line_of(row) for row in found]

    def read_team_lines(
        self, project: int, after: int, most: int, most_bytes: int
    ) -> list[TeamLine]:
        """The next ones of a project; always one where there is any."""
        found = self._db.ask(
            f"SELECT {_COLUMNS} FROM (SELECT *, sum(length(line)) OVER (ORDER BY id) AS size FROM"
            " (SELECT * FROM share_line WHERE project = $1 AND id > $2 ORDER BY id LIMIT $3) s) t"
            " WHERE size - length(line) < $4 ORDER BY id", [project, after, most, most_bytes],
        )  # fmt: skip
        return [_line_of(row) for row in found]

    def last_team_line(self, project: int) -> int:
        found = self._first_value("SELECT max(id) FROM share_line WHERE project = ?", project)
        return int(found or 0)

    def next_team_line(self) -> int:
        """Inside a transaction: what is told now comes behind all that was told before."""
        return self._last_number("share_line") + 1

    def put_team_lines(self, lines: Sequence[TeamLine]) -> None:
        """Inside a transaction."""
        self._db.executemany(
            "INSERT INTO share_line(project, owner, who, digest, kind, mark, line, anchor) VALUES"
            " (:project, :owner, :who, :digest, :kind, :mark, :line, :anchor)",
            [structs.asdict(one) for one in lines],
        )

    def drop_team_lines(self, ids: Collection[int]) -> None:
        self._db.ask("DELETE FROM share_line WHERE id = ANY ($1)", [list(ids)])

    def find_lines_of(self, project: int, owner: str) -> list[int]:
        """The lines of what is this user's; not what was forgotten or taken back."""
        found = self._db.ask(
            "SELECT id FROM share_line WHERE project = $1 AND owner = $2"
            " AND kind NOT IN ('forgotten', 'withdrawn')", [project, owner],
        )  # fmt: skip
        return [int(row[0]) for row in found]

    def scrub_terms(self) -> None:
        """No word is left of what was taken out."""
        self._db.ask("SELECT fold(0)")
        self._db.ask(
            "DELETE FROM term t WHERE NOT EXISTS"
            " (SELECT 1 FROM posting p WHERE p.term = t.hash AND p.project = t.project)"
        )


def _line_of(row: Sequence[object]) -> TeamLine:
    values = dict(zip(TeamLine.__struct_fields__, row, strict=True))
    return TeamLine(**values)  # type: ignore[arg-type]
