"""A table of cases that one test walks: as tests of their own they would cost more than they do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Any]:
    """As `pytest.mark.parametrize`, where nothing has to be made anew for a case. A failure names
    its case."""
    several = not isinstance(names, str)
    rows = [dict(zip(names, case, strict=True)) if several else {names: case} for case in cases]
    assert rows

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def walk(**shared: Any) -> None:
            for row in rows:
                try:
                    test(**shared, **row)
                except BaseException as error:
                    error.add_note(f"in the case {row!r}")
                    raise

        known = inspect.signature(test)
        shared = [one for name, one in known.parameters.items() if name not in rows[0]]
        walk.__signature__ = known.replace(parameters=shared)  # type: ignore[attr-defined]
        return walk

    return decorate
