"""The points of a message's lists, and a title that names several of them.

Where a turn did several things, none of them stands for all: `Skip empty lines; Cache the key` says
more than either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from yester.cards.titles import find_type
from yester.tables import load_pattern
from yester.text.prose import strip_marks
from yester.text.statements import (
    TITLE,
    Statement,
    as_title,
    drop_asides,
    find_cues,
    is_boilerplate,
    is_fragment,
    is_generic_heading,
    shorten_title,
    telling_terms,
)

_pattern = partial(load_pattern, "statements")

_LINE = re.compile(
    r"\A(?:(?P<mark>[-*+•]|\d{1,2}[.)]|#{1,6})[ \t]+|(?=\*\*[^*]{3,120}\*\*:?\s*\Z))(?P<text>\S.*)"
)
_BOLD = re.compile(r"\A\W*\*\*([^*\n]{3,120})\*\*")
_LABEL = re.compile(r"\A(.{3,70}?)(?:: | [-—–→] )(?=\S)")
_PLACE = re.compile(r"\A\S*[./_]\S*\Z|\A\S+\Z")
_PARTS = re.compile(r"(?:[:—–.]|\s-)\s+")
_SHORTEST, _LONGEST = 14, 48  # characters of a part
_MOST = 8  # points of a list that a title may stand for
_BEGINNING = 40  # letters by which a statement is known
_COVERED = 1 / 3  # of the points at least


def combine_points(text: str, said: Statement | None = None, title: str = "") -> str:
    """A title that is one point of a list with as many of the others as there is room for, or the
    headings below one of which it stands; without one, the last list of results. "" where there is
    room for too few."""
    every = (
        [point for point in map(_drop_number, group) if not _is_generic(point)]
        for group in _find_lists(text)
    )
    lists = [points for points in every if 1 < len(points) <= _MOST]
    told = sum(map(_tells_result, text.split("\n")))
    for points in lists if said else reversed(lists):
        parts, rest = [title], points
        if said is None:
            tells = told >= len(points) or all(map(_tells_result, points))
            parts, rest = [], points if tells else []
        elif any(_says(point, said.text) for point in points):
            rest = [point for point in points if not _says(point, said.text)]
        elif any(_says(point, _drop_number(said.heading)) for point in points):
            parts = []
        else:
            continue
        if found := _join_parts(parts, filter(None, map(_name_point, rest)), len(points)):
            return found
    return ""


def _join_parts(known: Sequence[str], names: Iterable[str], number: int) -> str:
    parts = list(known)
    for name in names:
        adds = (_does(name) or not known) and name not in "; ".join(parts)
        if adds and len("; ".join([*parts, name])) <= TITLE:
            parts.append(name)
    return "; ".join(parts) if len(parts) > 1 and len(parts) >= _COVERED * number else ""


def _says(point: str, statement: str) -> bool:
    letters = _letters_of(statement)[:_BEGINNING]
    return bool(letters) and letters in _letters_of(strip_marks(point))


def _find_lists(text: str) -> Iterator[Sequence[str]]:
    """The points of each list, those of lists below headings before the headings themselves."""
    lists: dict[str, list[str]] = {}
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        if line[:1] == "|" and not fenced:  # the cell of a row that says what was done
            cells = map(str.strip, line.strip("| ").split("|"))
            lists.setdefault("|", []).extend([one for one in cells if _tells_result(one)][:1])
            continue
        found = None if fenced else _LINE.match(line)
        begins = found is not None or (line[:1].strip() and not fenced)
        mark = (found["mark"] or "**") if found else ""
        mark = "1" if mark[:1].isdigit() else mark
        heading = mark[:1] == "#" or mark == "**"
        if begins and mark != "1":  # a paragraph or another list ends what is no list of headings
            over = [one for one in lists if one != mark and one[:1] != "#" and one != "**"]
            yield from (lists.pop(one) for one in over if heading or one != "1")
        if found is not None:
            lists.setdefault(mark, []).append(found["text"])
    yield from lists.values()


def _name_point(point: str) -> str:
    """What a point is called, or what it says where that is only the name of a place."""
    text, bold = strip_marks(point), _BOLD.match(point)
    head = strip_marks(bold[1]).strip(" :") if bold else ""
    label = _LABEL.match(text)
    head = head or (label[1] if label else "")
    rest = text[text.find(head) + len(head) :].lstrip(" :—–-")
    bare = drop_asides(head)
    if not _does(bare) and (_PLACE.match(bare) or find_type(rest)):
        head = re.split(r"(?<=\w[.!]) |: ", rest)[0]
    named = shorten_title(drop_asides(as_title(head)), _LONGEST)
    tells = len(named) >= _SHORTEST and len(telling_terms(named)) > 1
    broken = is_fragment(named) or len(named) > _LONGEST or named[-1:] == "…"
    return named.rstrip(" .") if tells and not broken else ""


def _drop_number(point: str) -> str:
    mark = point[: len(point) - len(point.lstrip("*"))]
    return mark + _pattern("numbered point").sub("", point[len(mark) :])


def _does(part: str) -> bool:
    return bool(find_type(part)) or "result" in find_cues(part)


def _tells_result(point: str) -> bool:
    parts = _PARTS.split(strip_marks(point))
    return any("result" in find_cues(part[:1].upper() + part[1:]) for part in parts)


def _is_generic(point: str) -> bool:
    bare = strip_marks(point)
    return is_boilerplate(bare) or (len(bare) <= TITLE and is_generic_heading(bare))


def _letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
