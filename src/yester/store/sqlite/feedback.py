"""What came of what was shown, in SQLite."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw

from yester.model import ON_REQUEST, WHOLE
from yester.store.contract import Used
from yester.store.sqlite.maintenance import explains


class FeedbackRows:
    """The part of `SqliteStore` that knows what was of use."""

    _db: apsw.Connection

    @explains
    def used(self, items: Sequence[int]) -> dict[int, Used]:
        marks = ",".join("?" * len(items))
        told: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for item, what, number in self._db.execute(
            f"SELECT item, what, count(*) FROM feedback WHERE item IN ({marks})"
            " GROUP BY item, what",
            tuple(items),
        ):
            told[item][what] = number
        shown = {
            item: (number, used)
            for item, number, used in self._db.execute(
                "SELECT i.item, count(DISTINCT i.session), count(DISTINCT f.session)"
                " FROM injection i LEFT JOIN feedback f ON f.item = i.item AND f.session ="
                f" i.session WHERE i.item IN ({marks}) AND i.event <> ? GROUP BY i.item",
                (*items, ON_REQUEST),
            )
        }
        listed = dict(
            self._db.execute(
                f"SELECT item, count(*) FROM injection WHERE item IN ({marks}) AND event = ?"
                " AND reason <> ? GROUP BY item",
                (*items, ON_REQUEST, WHOLE),
            )
        )
        return {
            item: Used(*shown.get(item, (0, 0)), told.get(item, {}), listed.get(item, 0))
            for item in {*told, *shown, *listed}
        }
