"""The examples of the rows of `tables/redact.toml`."""

from __future__ import annotations

from typing import NamedTuple

from yester.redact import Rule, fill_pieces

_MARK = "§"  # before and after the secret in an example


class Example(NamedTuple):
    """A text with a secret in it."""

    text: str
    secret: str


def list_examples(rule: Rule) -> list[Example]:
    examples = []
    for row in rule.examples:
        for prefix in rule.prefix if "«prefix»" in row else [""]:
            before, secret, after = fill_pieces(row, {"prefix": prefix}).split(_MARK)
            examples.append(Example(before + secret + after, secret))
    return examples


def list_near_misses(rule: Rule) -> list[str]:
    return [fill_pieces(row) for row in rule.near_misses] + [f"{p}..." for p in rule.prefix]
