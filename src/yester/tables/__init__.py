"""Rules that are lists: one TOML file a list, read when it is first asked for.

A row is data and says itself what it must and must not match; the tests walk the rows.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load_table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
