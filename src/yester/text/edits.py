"""What an edit put into a file and took out of it, by any agent's tool, and the lines of it that
can be known again.

A line is known by its words: indent, runs of blanks and a comma or semicolon at its end do not
count. One too short to say anything is none, and neither is one in which something was redacted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from yester.agents.values import decode_json, text_at, to_text
from yester.model import EditedLines, Item

OLD_TEXT = ("old_string", "oldString", "old_str", "oldText")
NEW_TEXT = ("new_string", "newString", "new_str", "newText")
PATCH = ("patchText", "patch", "input")
# What a file, or a place in it, is to hold from now on: what was there before is not told.
_WHOLE = ("content", "contents", "file_text")
_PART = ("new_source", "code_edit", "streamingContent")
_PATCHED = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*")
_MOVED = re.compile(r"\*\*\* Move to: (.+?)\s*")
_SHORTEST = 8  # characters
_LETTER = re.compile(r"[^\W\d_]")
_REDACTED = ("[redacted:", "[private]")


def is_prose(path: str) -> bool:
    return path.endswith((".md", ".mdx", ".rst", ".txt"))


class Edit(NamedTuple):
    """A place that was changed; `blind` as in `EditedLines`."""

    file: str
    before: str
    after: str
    blind: int = 0


def find_edits(item: Item) -> list[Edit]:
    """The places that a use of a tool has changed, as far as it tells."""
    if item.changes:
        return [Edit(item.files_modified[0], *pair) for pair in item.changes]
    cut = int(item.call is not None and item.call.cut)
    return _read_edits(item.call_field, item.files_modified, cut)


def planned_edits(given: Mapping[str, Any], file: str) -> list[Edit]:
    """The same of a tool that is still to be used, by its input."""

    def find_field(*names: str) -> str | None:
        return next((to_text(given[name]) for name in names if name in given), None)

    return _read_edits(find_field, (file,) if file else (), 0)


def _read_edits(
    find_field: Callable[..., str | None], files: Sequence[str], cut: int
) -> list[Edit]:
    file = files[0] if files else ""
    old, new = find_field(*OLD_TEXT), find_field(*NEW_TEXT)
    if old is not None or new is not None:
        return [Edit(file, old or "", new or "", cut)]
    if (content := find_field(*_WHOLE)) is not None:
        return [Edit(file, "", content, 1 if cut else 2)]
    if (part := find_field(*_PART)) is not None:
        return [Edit(file, "", part, 1)]
    if patch := find_field(*PATCH):
        return [one._replace(blind=cut) for one in _read_patch(patch, files)]
    edits = decode_json(find_field("edits") or "")
    if not isinstance(edits, list):
        return []
    pairs = [(text_at(edit, *OLD_TEXT), text_at(edit, *NEW_TEXT)) for edit in edits]
    return [Edit(file, *pair, cut) for pair in pairs if any(pair)]


def _read_patch(patch: str, files: Sequence[str]) -> Iterator[Edit]:
    """A place for each hunk. A patch names files as the agent does, `files` as they are stored."""
    file, before, after = "", list[str](), list[str]()
    for line in (*patch.split("\n"), "@@"):
        header = _PATCHED.fullmatch(line)
        if header or line.startswith(("@@", "*** ")):
            if before or after:
                yield Edit(file, "\n".join(before), "\n".join(after))
            before, after = [], []
            if name := header[2] if header else (moved := _MOVED.fullmatch(line)) and moved[1]:
                file = _stored_name(name, files)
            continue
        if not file and line.startswith(("--- ", "+++ ")):
            continue
        if not line.startswith("+"):
            before.append(line[1:])
        if not line.startswith("-"):
            after.append(line[1:])


def _stored_name(name: str, files: Sequence[str]) -> str:
    path = "/" + name.replace("\\", "/").removeprefix("./").lstrip("/")
    ends = (one for one in files if path.endswith("/" + one.lstrip("/")))
    return max(ends, key=len, default=name)


def normalise_line(line: str) -> str:
    """The line as it is compared; "" for one that is not."""
    words = " ".join(line.split()).rstrip(",; ")
    if len(words) < _SHORTEST or not _LETTER.search(words):
        return ""
    return "" if any(mark in words for mark in _REDACTED) else words


def normalise_lines(text: str) -> list[str]:
    return list(filter(None, map(normalise_line, text.split("\n"))))


def edited_lines(item: Item) -> tuple[EditedLines, ...]:
    """The lines that a use of a tool has written, place by place; none of one that failed."""
    if item.call is None or not item.files_modified or "error" in item.tags:
        return ()
    places = [_Place(edit) for edit in find_edits(item) if edit.file]
    for place in places:  # first where they were, then where else they were taken out
        place.match_moved(place.removed)
    for place in places:
        for other in places:
            if other is not place and other.edit.file == place.edit.file:
                place.match_moved(other.removed)
    found = (place.make_lines() for place in places)
    return tuple(one for one in found if one.lines or one.removed)


class _Place:
    """Which lines of a change are new: what only moved was not written now."""

    def __init__(self, edit: Edit) -> None:
        self.edit = edit
        before, self.lines = normalise_lines(edit.before), normalise_lines(edit.after)
        start, end = (0, 0) if edit.blind else _common_ends(before, self.lines)
        self.removed = Counter(() if edit.blind else before[start : len(before) - end])
        self.added = dict.fromkeys(range(start, len(self.lines) - end))

    def match_moved(self, removed: Counter[str]) -> None:
        if not removed or self.edit.blind:
            return
        for at in list(self.added):
            if removed[line := self.lines[at]] > 0:
                removed[line] -= 1
                del self.added[at]

    def make_lines(self) -> EditedLines:
        every = len(self.added) == len(self.lines)
        added = b"" if every else bytes(at in self.added for at in range(len(self.lines)))
        left = tuple(self.removed.elements())
        return EditedLines(self.edit.file, tuple(self.lines), added, left, self.edit.blind)


def _common_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the rest both end with."""
    start = _count_same(one, other)
    return start, _count_same(one[start:][::-1], other[start:][::-1])


def _count_same(one: Sequence[str], other: Sequence[str]) -> int:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)
