"""MEMORY.md, the layer people curate: read as notes, added to by one line, never rewritten.

A note is a list item with what is nested in it, or a paragraph, under the headings above it. What
is added is a pure insertion: every byte that was there stays, with its line endings, a missing last
newline and the byte order mark. The agent loads the first 200 lines, so there is no adding beyond.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import blake2b

from yester.errors import UsageError
from yester.fence import neutral
from yester.text.sentences import first_sentence

MOST_LINES = 200
LONGEST_LINE = 240  # characters of a line that is added
BETWEEN = " › "  # between the headings of a path
_ALIKE = 0.6  # two texts under one heading that are so much the same are one note, edited
_FRONT_MATTER = 60  # lines
_MOST_COMPARED = 10_000  # pairs of texts
_LONGEST_MARKUP = 2_000  # characters; a longer line is text whatever it begins with

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_BULLET = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|[ \t]*)")
_FENCE = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(`{3,}|~{3,})([^`]*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_CODE = re.compile(r"(`[^`\n]+`)")
_IMPORT = re.compile(r"(?<!\w)@[\w~./\\-][^\s`]*")
_LEADING = re.compile(r"(?:[-*+>#=~\s]|\d{1,9}[.)]\s|\[[ xX]?\]\s)+")


@dataclass(frozen=True, slots=True)
class Entry:
    heading: tuple[str, ...]  # from the outermost one inwards
    text: str
    line: int  # from 1
    last: int
    mark: str = ""  # of its list, with the spaces before it; "" for a paragraph

    @property
    def title(self) -> str:
        return BETWEEN.join(self.heading)

    @property
    def name(self) -> str:
        """What it is known by as long as it is not edited."""
        return blake2b(
            "\0".join((*self.heading, " ".join(self.text.split()))).encode("utf-8", "replace"),
            digest_size=8,
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    level: int
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    entries: tuple[Entry, ...]
    headings: tuple[Heading, ...]
    lines: int
    unclosed: int = 0  # the line of a code block or comment that has no end


def lines(text: str) -> list[str]:
    """As an editor counts them; a last newline begins no line."""
    found = text.removeprefix("\ufeff").split("\n")
    if not found[-1]:
        found.pop()
    return [line.removesuffix("\r") for line in found]


# --- reading -----------------------------------------------------------------------------------


class _Reader:
    """One pass over the lines: what is open at the moment, and what has been found."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.headings: list[Heading] = []
        self.fence = ""  # the mark that ends the code block
        self.comment = False
        self.begun = 0  # line of what is open
        self._path: list[Heading] = []
        self._block: list[tuple[int, str]] = []
        self._mark = ""
        self._blank = False

    def read(self, number: int, line: str) -> None:
        if self.fence or self.comment:
            self._inside(number, line)
        elif not line.strip():
            self._blank = True
        elif len(line) > _LONGEST_MARKUP:
            self._say(number, line)
        elif found := _FENCE.fullmatch(line):
            self._begins_code(number, line, found)
        elif line.lstrip().startswith("<!--"):
            self.close()
            self.comment, self.begun = "-->" not in line, number
        elif self._is_underline(line):
            self._path_to(Heading(self._block[0][1].strip(), _level(line), self._block[0][0]))
            self._block = []
        elif found := _HEADING.fullmatch(line):
            self.close()
            self._path_to(Heading((found[2] or "").strip(), len(found[1]), number))
        elif _RULE.fullmatch(line):
            self.close()
        elif found := _BULLET.fullmatch(line):
            if not (self._mark and _indent(line) > _indent(self._mark)):
                self.close()
                self._mark = found[1] + found[2]
            self._add(number, line)
        else:
            self._say(number, line)

    def close(self) -> None:
        if self._block:
            text = _dedented([line for _, line in self._block], self._mark)
            if text:
                heading = tuple(one.title for one in self._path if one.title)
                first, last = self._block[0][0], self._block[-1][0]
                self.entries.append(Entry(heading, text, first, last, self._mark))
        self._block, self._mark, self._blank = [], "", False

    def _inside(self, number: int, line: str) -> None:
        if self.comment:
            self.comment = "-->" not in line
            return
        self._block.append((number, line))
        if line.strip().startswith(self.fence) and not line.strip().strip(self.fence[0]):
            self.fence = ""

    def _begins_code(self, number: int, line: str, found: re.Match[str]) -> None:
        if bullet := _BULLET.fullmatch(line):
            self.close()
            self._mark = bullet[1] + bullet[2]
            self._add(number, line)
        else:
            self._say(number, line)
        self.fence, self.begun = found[1], number

    def _say(self, number: int, line: str) -> None:
        if self._block and self._blank and not self._goes_on(line):
            self.close()
        self._add(number, line)

    def _goes_on(self, line: str) -> bool:
        """After an empty line only what is indented still belongs to a list item."""
        return bool(self._mark) and _indent(line) > _indent(self._mark)

    def _is_underline(self, line: str) -> bool:
        return (
            _UNDERLINE.fullmatch(line) is not None
            and len(self._block) == 1
            and not (self._mark or self._blank)
        )

    def _add(self, number: int, line: str) -> None:
        self._block.append((number, line))
        self._blank = False

    def _path_to(self, heading: Heading) -> None:
        self.headings.append(heading)
        self._path = [one for one in self._path if one.level < heading.level] + [heading]
        self._blank = False


def page(text: str) -> Page:
    """A Markdown file as notes and headings; whatever it holds, it is read."""
    found, reader = lines(text), _Reader()
    for number, line in enumerate(found, 1):
        if number > _matter(found):
            reader.read(number, line)
    reader.close()
    open_ = reader.begun if reader.fence or reader.comment else 0
    return Page(tuple(reader.entries), tuple(reader.headings), len(found), open_)


def _matter(found: Sequence[str]) -> int:
    """How many lines at the beginning are data about the file and no notes."""
    if not found or found[0].rstrip() != "---":
        return 0
    ends = (at for at, line in enumerate(found[1:_FRONT_MATTER], 2) if line.rstrip() == "---")
    return next(ends, 0)


def _indent(line: str) -> int:
    spaces = line.expandtabs(4)
    return len(spaces) - len(spaces.lstrip())


def _level(underline: str) -> int:
    return 1 if "=" in underline else 2


def _dedented(found: Sequence[str], mark: str) -> str:
    if not mark:
        return "\n".join(line.rstrip() for line in found).strip()
    width = _indent(mark) + len(mark.strip()) + 1
    first = found[0].lstrip()[len(mark.strip()) :].strip()
    rest = [line.expandtabs(4).rstrip() for line in found[1:]]
    return "\n".join([first, *(line[min(_indent(line), width) :] for line in rest)]).strip()


# --- which note is which -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """A note as it was met before: under which name, heading and text."""

    name: str
    title: str
    text: str


def named(entries: Sequence[Entry], known: Sequence[Known]) -> list[tuple[str, Entry]]:
    """Each note with its name. One that was edited, or moved under another heading, keeps the name
    it had; a new one gets the name its content gives it. No name is given twice."""
    left = {one.name: one for one in known}
    given: dict[int, str] = {}
    for key in (_place_and_text, _text):
        waiting: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for one in left.values():
            waiting[key(one)].append(one.name)
        for at, entry in enumerate(entries):
            if at not in given and (names := waiting[key(entry)]):
                given[at] = names.pop(0)
                del left[given[at]]
    for at, name in _edited([(at, e) for at, e in enumerate(entries) if at not in given], left):
        given[at] = name
    taken = {one.name for one in known}
    result = []
    for at, entry in enumerate(entries):
        name = given.get(at) or _free(entry.name, taken)
        taken.add(name)
        result.append((name, entry))
    return result


def _place_and_text(one: Entry | Known) -> tuple[str, ...]:
    return one.title, *_text(one)


def _text(one: Entry | Known) -> tuple[str, ...]:
    return (" ".join(one.text.split()),)


def _edited(
    entries: Sequence[tuple[int, Entry]], left: Mapping[str, Known]
) -> Iterator[tuple[int, str]]:
    """Which of the remaining notes is which of the remaining known ones, the likest first."""
    if len(entries) * len(left) > _MOST_COMPARED:
        return  # a file written anew
    pairs = sorted(
        (-_likeness(entry, one), at, one.name)
        for at, entry in entries
        for one in left.values()
        if entry.title == one.title
    )
    done: set[int | str] = set()
    for score, at, name in pairs:
        if -score >= _ALIKE and not done & {at, name}:
            done |= {at, name}
            yield at, name


def _likeness(entry: Entry, one: Known) -> float:
    before, after = one.text.split(), entry.text.split()
    return SequenceMatcher(None, before, after, autojunk=False).ratio()


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


# --- adding ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Promoted:
    text: str  # the whole page
    line: int  # where the new line stands
    lines: int  # how many there are now


def promoted(text: str, line: str, heading: str = "", most: int = MOST_LINES) -> Promoted:
    """The page with one list item more: at the end of the section with this heading, which is made
    at the end of the page where there is none; without a heading, at the end of the page.

    UsageError where the line says nothing, is there already, or there is no room for it."""
    added = one_line(line)
    if not added:
        raise UsageError("the line to add says nothing; give it with words")
    found = page(text)
    if found.unclosed:
        raise UsageError(
            f"line {found.unclosed} begins a code block or comment that has no end; close it first"
        )
    if (twin := said_at(text, added)) is not None:
        raise UsageError(f"line {twin} says so already: {added}")
    after, before, mark = _place(found, text, heading)
    end = "\r\n" if "\r\n" in text else "\n"
    new = [*before, f"{mark} {added}"]
    total = found.lines + len(new)
    if total > most:
        raise UsageError(
            f"it has {count(found.lines)}, and {count(len(new))} more would pass the {most} that "
            "are loaded; take out or merge something first"
        )
    raw = text.split("\n")
    at = sum(len(one) + 1 for one in raw[:after])
    if at > len(text):  # behind a last line that has no newline, and gets none at the new end
        inserted = end + end.join(new)
        at = len(text)
    else:
        inserted = "".join(f"{one}{end}" for one in new)
    if at == 0 and text.startswith("\ufeff"):
        at = 1
    return Promoted(text[:at] + inserted + text[at:], after + len(new), total)


def _place(found: Page, text: str, heading: str) -> tuple[int, list[str], str]:
    """The line to add behind, what must stand before the new item, and the mark of its list."""
    shown = lines(text)
    wanted = _folded(heading)
    section = next((one for one in found.headings if wanted and _folded(one.title) == wanted), None)
    first, last = (section.line if section else 0), found.lines
    if section:
        last = next((one.line for one in found.headings if one.line > first), last + 1) - 1
    while last > first and not shown[last - 1].strip():
        last -= 1
    if wanted and not section:
        before = ["", f"## {one_line(heading)}", ""] if last else [f"## {one_line(heading)}", ""]
        return last, before, "-"
    here = [one for one in found.entries if first < one.line <= last]
    if here and here[-1].mark and here[-1].last == last:
        mark = here[-1].mark
        return last, [], mark if mark.strip() in "-*+" else f"{mark[: -len(mark.strip())]}-"
    return last, [""] if last else [], "-"


def said_at(text: str, line: str) -> int | None:
    """Where a page says exactly this, list marks, case and spaces aside."""
    wanted = _folded(line)
    numbers = (at for at, one in enumerate(lines(text), 1) if _folded(one) == wanted)
    return next(numbers, None)


def _folded(text: str) -> str:
    return " ".join(_bare(text).split()).rstrip(" .#").casefold()


def _bare(text: str) -> str:
    """Without the marks of lists, headings and quotations it begins with."""
    found = _LEADING.match(text)
    return text[found.end() :] if found else text


def one_line(text: str) -> str:
    """A text as one harmless line of Markdown: it opens no block, ends none, and names no file for
    the client to load (`@path` does)."""
    line = " ".join(neutral(text).split()).replace("<!--", "‹!--").replace("-->", "--›")
    line = re.sub(r"`{3,}", "`", line)
    while (tamed := _tamed(line)) != line:
        line = tamed  # without one mark the next one leads
    if len(line) > LONGEST_LINE:
        line = line[: LONGEST_LINE - 2].rstrip() + "…"
        line = f"{line[:-1]}`…" if line.count("`") % 2 else line
    return line


def _tamed(line: str) -> str:
    parts = _CODE.split(_bare(line))
    for at in range(0, len(parts), 2):
        parts[at] = _IMPORT.sub(r"`\g<0>`", parts[at].replace("`", ""))
    return "".join(parts).strip()


def lead_sentence(text: str) -> str:
    """What a line of MEMORY.md says of a text: its first sentence, where that comes soon."""
    return first_sentence(" ".join(_bare(neutral(text)).split()), 160, least=15)


def count(number: int) -> str:
    return f"{number:,} line" + ("" if number == 1 else "s")
