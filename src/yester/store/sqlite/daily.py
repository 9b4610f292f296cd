"""What happened day by day, in SQLite. Days are those of UTC, counted from 1970."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from yester.store.contract import Daily, Middle
from yester.store.sqlite.maintenance import explains

DAY = 86_400_000
_LONGEST = 60_000  # ms; whoever waits longer has gone


class DailyRows:
    """The part of `SqliteStore` that draws curves."""

    _db: apsw.Connection

    # --- writing, inside a transaction -------------------------------------------------------

    def put_answered(self, answers: Sequence[tuple[int, int]]) -> None:
        self._db.executemany(
            "INSERT INTO answered VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET answers = answers + 1",
            [(epoch // DAY, min(max(ms, 0), _LONGEST)) for epoch, ms in answers],
        )

    # --- reading -----------------------------------------------------------------------------

    @explains
    def daily(self, since: int) -> Daily:
        first = since // DAY
        items: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for day, name, number in self._db.execute(
            f"SELECT epoch / {DAY}, iif(type = '', kind, type), count(*) FROM item"
            " WHERE epoch >= ? AND status = 'active' GROUP BY 1, 2",
            (first * DAY,),
        ):
            items[name][day] = number
        shown = {
            day: (lines, tokens, discovered)
            for day, lines, tokens, discovered in self._db.execute(
                f"SELECT n.epoch / {DAY}, count(*), sum(n.tokens),"
                " coalesce(sum(i.discovery_tokens), 0)"
                " FROM injection n LEFT JOIN item i ON i.id = n.item WHERE n.epoch >= ? GROUP BY 1",
                (first * DAY,),
            )
        }
        lags = self._db.execute(
            f"SELECT epoch / {DAY}, lag, count(*) FROM event WHERE epoch >= ? GROUP BY 1, 2"
            " ORDER BY 1, 2",
            (first * DAY,),
        )
        answers = self._db.execute(
            "SELECT day, ms, answers FROM answered WHERE day >= ? ORDER BY day, ms", (first,)
        )
        return Daily(items, shown, _middles(list(lags)), _middles(list(answers)))


def _middles(rows: Sequence[tuple[int, int, int]]) -> dict[int, Middle]:
    """(day, ms, how often), in order → the middle and the slowest of a day."""
    days: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for day, ms, number in rows:
        days[day].append((ms, number))
    return {day: Middle(_at(found, 50), _at(found, 99)) for day, found in days.items()}


def _at(found: Sequence[tuple[int, int]], percent: int) -> int:
    wanted = sum(number for _, number in found) * percent // 100
    for ms, number in found:
        if wanted < number:
            return ms
        wanted -= number
    return found[-1][0]
