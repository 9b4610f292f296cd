"""Answers made from records."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

from yester.redact import redact_value

A = TypeVar("A", bound=Struct)


def make_answer(kind: type[A], record: object, /, **more: Any) -> A:
    """An answer with what a record has under the same names, its texts without secrets, and with
    `more`, which is taken as it is."""
    same = (name for name in kind.__struct_fields__ if name not in more and hasattr(record, name))
    return kind(**{name: redact_value(getattr(record, name)) for name in same}, **more)
