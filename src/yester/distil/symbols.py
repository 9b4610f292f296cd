"""What a change touches, by name: the functions, classes and types whose definition it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable

from yester.distil.turns import Step

_MOST = 10
_READ_CHARS = 8_000

_EXPORTED = r"(?:export )?(?:default )?"
_PUB = r"(?:pub(?:\([^)]{1,20}\))? )?"
# language, definition with `name`, example. Patches have a sign before the line.
DEFINITIONS: tuple[tuple[str, str, str], ...] = (
    ("Python", r"(?:async )?def (?P<name>\w+)\(", "async def total(cart):"),
    ("class", rf"{_EXPORTED}(?:abstract |final |public |data )*class (?P<name>\w+)",
     "export default class Cart {"),
    ("Go", r"func (?:\([^)]{1,60}\) )?(?P<name>\w+)[\[(]", "func (c *Cart) Total(x int) int {"),
    ("type", r"(?:export )?(?:type|interface) (?P<name>[A-Z]\w+)\b", "type Cart struct {"),
    ("JavaScript", rf"{_EXPORTED}(?:async )?function\*? (?P<name>\w+)\s?\(",
     "export async function total(cart) {"),
    ("arrow function",
     r"(?:export )?const (?P<name>\w+)(?:: [^=\n]{1,80})? = (?:async )?"
     r"\(?[\w\s,{}:]{0,80}\)?[^=\n]{0,40}=>",
     "export const total = (cart) => {"),
    ("Rust", rf"{_PUB}(?:async )?(?:unsafe )?fn (?P<name>\w+)[<(]", "pub async fn total(&self) {"),
    ("Rust and C", rf"{_PUB}(?:struct|enum|trait|union) (?P<name>[A-Z]\w+)\b", "pub struct Cart {"),
    ("Java and C#",
     r"(?:public|private|protected)(?: static| final| async| override)* [\w<>\[\], ]{1,40}"
     r" (?P<name>\w+)\(",
     "public static int total(Cart cart) {"),
    ("shell", r"(?:function )?(?P<name>[a-z_]\w+)\(\) ?\{", "run_tests() {"),
    ("SQL", r"(?i:create (?:table|view|index|function)(?: if not exists)?) (?P<name>\w+)",
     "CREATE TABLE cart ("),
)  # fmt: skip
_DEFINITIONS = tuple(
    re.compile(rf"^[+-]?[ \t]{{0,40}}{pattern}", re.M) for _, pattern, _ in DEFINITIONS
)


def symbols(text: str) -> list[str]:
    """The names defined in a change, in order."""
    found = [
        (match.start(), match["name"])
        for pattern in _DEFINITIONS
        for match in pattern.finditer(text[:_READ_CHARS])
    ]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def touched(steps: Iterable[Step]) -> str:
    """The names of what was changed, most of all in one line."""
    names: dict[str, None] = {}
    for step in steps:
        if step.edited:
            names.update(dict.fromkeys(symbols(step.item.body)))
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(list(names)[:_MOST]) + more
