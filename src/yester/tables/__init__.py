"""Rules that are lists: one TOML file a list, read when it is first asked for.

A row is data and says itself what it must and must not match; the tests walk the rows.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

_PART = re.compile(r"\{([A-Z_]+)\}")


@dataclass(frozen=True, eq=False)
class Row:
    """A rule: its pattern is found in every example and in no near miss."""

    name: str
    source: str
    examples: Sequence[str]
    near_misses: Sequence[str]
    values: Mapping[str, Any]  # the whole row, with what only rows of its section have

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


@cache
def load_table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


@cache
def load_rows(table: str, section: str) -> tuple[Row, ...]:
    """The rows of a section, in the order in which they stand."""
    parts = load_table(table).get("parts", {})
    return tuple(
        Row(
            row["name"],
            fill_parts(row["pattern"], parts),
            row["examples"],
            row["near_misses"],
            row,
        )
        for row in load_table(table)[section]
    )


@cache
def load_pattern(table: str, name: str) -> re.Pattern[str]:
    """The pattern of this name in the section `patterns`."""
    return next(row.pattern for row in load_rows(table, "patterns") if row.name == name)


def fill_parts(pieces: str | Sequence[str], parts: Mapping[str, str | Sequence[str]]) -> str:
    """A text and its pieces as one, with the parts that it names as {NAME}."""
    source = pieces if isinstance(pieces, str) else "".join(pieces)
    return _PART.sub(lambda found: fill_parts(parts[found[1]], parts), source)
