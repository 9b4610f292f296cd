"""The factors of a score: pure functions with values from 0 to 1.

None of them knows what else was found, how many answers are wanted or what time it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

DAY = 86_400_000


def recency(age: int, half_life: float, spread: float = 1.0) -> float:
    """1 now (and for what is dated tomorrow), falling with a half-life in days.

    With a spread, half of it falls so many times faster and half so many times slower: what is of
    yesterday stands out, and what is a year old still differs from what is three.
    """
    if half_life <= 0:
        return 0.0
    days = max(age, 0) / DAY
    if spread == 1.0:
        return float(2.0 ** (-days / half_life))
    fast, slow = half_life / spread, half_life * spread
    return float((2.0 ** (-days / fast) + 2.0 ** (-days / slow)) / 2)


def share(matched: int, wanted: int) -> float:
    return min(1.0, matched / wanted) if wanted > 0 else 0.0


def overlap(files: Collection[str], here: Collection[str]) -> float:
    """The share of an item's files that are among those here; the end of a path will do."""
    ends = {"/" + path.strip("/").lower() for path in here}
    found = 0
    for path in files:
        end = "/" + path.strip("/").lower()
        found += any(one.endswith(end) or end.endswith(one) for one in ends)
    return share(found, len(files))


def closeness(cosine: float, band: tuple[float, float]) -> float:
    """A cosine as 0–1: 0 at or below what unrelated texts have, 1 at or above what equals have."""
    low, high = band
    return min(1.0, max(0.0, (cosine - low) / (high - low)))


def by_type(table: Mapping[str, float], kind: str, type_: str) -> float:
    """The row of the type, else of the kind, else of "" (whatever is not in the table)."""
    if type_ and type_ in table:
        return table[type_]
    return table.get(kind, table[""])


# How much a kind of item is worth before anything is known of its text.
SEED_IMPORTANCE: Mapping[str, float] = {
    "decision": 0.8, "bugfix": 0.7, "discovery": 0.6, "feature": 0.5, "refactor": 0.4,
    "change": 0.3, "": 0.3,
}  # fmt: skip
IMPORTANCE: Mapping[str, float] = {
    **SEED_IMPORTANCE,
    "constraint": 0.9, "preference": 0.8, "runbook": 0.7, "tech_debt": 0.6, "rule": 0.9,
    "session_summary": 0.5, "summary": 0.5, "plan": 0.5, "memory": 0.6, "prompt": 0.4,
    "message": 0.3,
}  # fmt: skip

# Days after which something counts half as new.
SEED_HALF_LIFE: Mapping[str, float] = {"": 2.0}
HALF_LIFE: Mapping[str, float] = {
    "decision": 180.0, "constraint": 365.0, "preference": 365.0, "rule": 365.0, "runbook": 180.0,
    "tech_debt": 180.0, "": 35.0,
}  # fmt: skip
