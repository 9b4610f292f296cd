"""index.md: a line for each memory that is in force, for people and for tools that only read lines.

    - [DECISION] Use Postgres for the ledger -> .claude/memory/decisions/use-postgres.json #tags:db

Whatever a title, tag or path holds, a line stays one line with one arrow, and reading it gives back
what it was made from (title and tags in their neutral form). Other tools take the first ` -> ` for
the arrow and a path without spaces; so neither can stand anywhere else in a line of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from yester.fence import neutral

NAME = "index.md"
HEADER = "# Memory Index\n\n"
LONGEST_TITLE = 120
_LONGEST_TAG = 60

# The last arrow with a path behind it counts: a title that another tool has let through may hold
# one, and so may a tag. Paths of other tools may hold spaces.
_LINE = re.compile(
    r"-\s+\[(?P<label>[A-Z][A-Z0-9_]*)\]\s+(?P<title>\S.*)\s->\s+(?P<path>\S.*?\.json)"
    r"(?:\s+#tags:(?P<tags>.*))?"
)
_LONGEST_LINE = 10_000
_RAW = re.compile(r"[^\n]*\n|[^\n]+")
_MARK = re.compile(r"(#\s*tags)\s*:[\s:]*", re.IGNORECASE)
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_NO_LABEL = re.compile(r"[^A-Z0-9_]")


@dataclass(frozen=True, slots=True)
class Line:
    label: str  # the category in capitals
    title: str
    path: str
    tags: tuple[str, ...] = ()


def line(category: str, title: str, path: str, tags: Iterable[str] = (), name: str = "") -> Line:
    """What can be said of a memory in one line; `name` stands in for a title of nothing visible."""
    label = _NO_LABEL.sub("_", category.upper())
    shown = tuple(dict.fromkeys(tag for tag in map(_tag, tags) if tag))
    return Line(label, _plain(title, LONGEST_TITLE) or _plain(name, 80) or "untitled", path, shown)


def rendered(one: Line) -> str:
    tags = f" #tags:{','.join(one.tags)}" if one.tags else ""
    return f"- [{one.label}] {one.title} -> {_quoted(one.path)}{tags}"


def parsed(text: str) -> Line | None:
    """A line of an index, ours or another tool's; None: it is none."""
    found = _LINE.fullmatch(text.strip()) if len(text) <= _LONGEST_LINE else None
    if found is None:
        return None
    words = (word.strip() for word in (found["tags"] or "").split(","))
    tags = tuple(word for word in words if word)
    return Line(found["label"], found["title"].strip(), _unquoted(found["path"]), tags)


def entries(text: str) -> dict[str, Line]:
    """path → line, of everything in an index that is one."""
    found = (parsed(one) for one in text.split("\n"))
    return {one.path: one for one in found if one}


def updated(text: str, wanted: Iterable[Line]) -> str:
    """An index that lists exactly these. Lines that are right stay as they are, and so does
    everything that is no entry; what is missing comes at the end, in the order given."""
    waiting = {one.path: one for one in wanted}
    end = "\r\n" if "\r\n" in text else "\n"
    kept: list[str] = []
    for raw in _RAW.findall(text) if text else [HEADER]:
        have = parsed(raw)
        if have is None:
            kept.append(raw)
        elif one := waiting.pop(have.path, None):
            visible = all(char.isprintable() or char in "\t\r\n" for char in raw)
            kept.append(raw if visible and have == one else rendered(one) + _ending(raw))
    if waiting and kept and not _ending(kept[-1]):
        kept[-1] += end
    return "".join(kept) + "".join(rendered(one) + end for one in waiting.values())


def _ending(raw: str) -> str:
    return raw[len(raw.rstrip("\r\n")) :]


def _plain(text: str, most: int) -> str:
    """One visible line without an arrow or a mark of tags."""
    clean = " ".join(neutral(text).split())
    clean = _MARK.sub(r"\1 ", clean.replace("->", "→"))
    clean = " ".join(clean.split())
    return clean if len(clean) <= most else clean[: most - 1].rstrip() + "…"


def _tag(text: str) -> str:
    return _plain(text.replace(",", " "), _LONGEST_TAG)


def _quoted(path: str) -> str:
    """Spaces, signs nobody sees and the percent sign itself as %XX, as in an address."""
    return "".join(
        char
        if char.isprintable() and not char.isspace() and char != "%"
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in path
    )


def _unquoted(path: str) -> str:
    return _PERCENT.sub(
        lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogateescape"),
        path,
    )
