"""What reading costs against what finding out has cost, in words that promise nothing."""

from __future__ import annotations

from yester.store.figures import Discovered

HONEST = (
    "Tokens are estimates (four characters each). They are no saving: nobody would have found all "
    "of it out again."
)


def read_tokens(row: Discovered) -> int:
    return (row.characters + 3) // 4
