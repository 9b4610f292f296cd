"""MEMORY.md, the layer people curate: read as notes, looked over, added to by one line, never
rewritten.

A note is a list item with what is nested in it, or a paragraph, under the headings above it. What
is added is a pure insertion: every byte that was there stays, with its line endings, a missing last
newline and the byte order mark. The agent loads the first 200 lines, so there is no adding beyond.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import blake2b

from yester.errors import UsageError
from yester.fence import neutralize_text
from yester.memories.contradiction import find_contradiction, parse_claims
from yester.text.sentences import first_sentence

MOST_LINES = 200
NEARLY_FULL = 180  # lines
MOST_BYTES = 25_000  # newer clients stop here if it comes before line 200
LONGEST_LINE = 240  # characters of a line that is added
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
class Note:
    heading: tuple[str, ...]  # from the outermost one inwards
    text: str
    line: int  # from 1
    last: int
    mark: str = ""  # of its list, with the spaces before it; "" for a paragraph

    @property
    def title(self) -> str:
        return " › ".join(self.heading)

    @property
    def name(self) -> str:
        """What it is known by as long as it is not edited."""
        words = "\0".join((*self.heading, _join_words(self.text)))
        return blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    level: int
    line: int


@dataclass(frozen=True, slots=True)
class Page:
    notes: tuple[Note, ...]
    headings: tuple[Heading, ...]
    lines: int
    unclosed: int = 0  # the line of a code block or comment that has no end


# --- reading -------------------------------------------------------------------------------------


class _PageReader:
    """One pass over the lines: what is open at the moment, and what has been found."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.headings: list[Heading] = []
        self.fence = ""  # the mark that ends the code block
        self.comment = False
        self.opened = 0  # line of the code block or comment
        self._path: list[Heading] = []
        self._block: list[tuple[int, str]] = []
        self._mark = ""
        self._blank = False

    def read_line(self, number: int, line: str) -> None:
        if self.comment:
            self.comment = "-->" not in line
        elif self.fence:
            self._block.append((number, line))
            if line.strip().startswith(self.fence) and not line.strip().strip(self.fence[0]):
                self.fence = ""
        elif not line.strip():
            self._blank = True
        elif len(line) > _LONGEST_MARKUP:
            self._add_text(number, line)
        elif found := _FENCE.fullmatch(line):
            if bullet := _BULLET.fullmatch(line):
                self.close_note()
                self._mark = bullet[1] + bullet[2]
            self._add_text(number, line)
            self.fence, self.opened = found[1], number
        elif line.lstrip().startswith("<!--"):
            self.close_note()
            self.comment, self.opened = "-->" not in line, number
        elif self._is_underline(line):
            level = 1 if "=" in line else 2
            self._add_heading(Heading(self._block[0][1].strip(), level, self._block[0][0]))
            self._block = []
        elif found := _HEADING.fullmatch(line):
            self.close_note()
            self._add_heading(Heading((found[2] or "").strip(), len(found[1]), number))
        elif _RULE.fullmatch(line):
            self.close_note()
        elif found := _BULLET.fullmatch(line):
            if not self._is_nested(line):
                self.close_note()
                self._mark = found[1] + found[2]
            self._blank = False
            self._block.append((number, line))
        else:
            self._add_text(number, line)

    def close_note(self) -> None:
        if self._block:
            text = _dedent_lines([line for _, line in self._block], self._mark)
            if text:
                heading = tuple(one.title for one in self._path if one.title)
                first, last = self._block[0][0], self._block[-1][0]
                self.notes.append(Note(heading, text, first, last, self._mark))
        self._block, self._mark, self._blank = [], "", False

    def _add_text(self, number: int, line: str) -> None:
        """After an empty line only what is indented still belongs to a list item."""
        if self._block and self._blank and not self._is_nested(line):
            self.close_note()
        self._block.append((number, line))
        self._blank = False

    def _is_nested(self, line: str) -> bool:
        return bool(self._mark) and _indent_of(line) > _indent_of(self._mark)

    def _is_underline(self, line: str) -> bool:
        alone = len(self._block) == 1 and not (self._mark or self._blank)
        return alone and _UNDERLINE.fullmatch(line) is not None

    def _add_heading(self, heading: Heading) -> None:
        self.headings.append(heading)
        self._path = [one for one in self._path if one.level < heading.level] + [heading]
        self._blank = False


def split_lines(text: str) -> list[str]:
    """As an editor counts them; a last newline begins no line."""
    found = text.removeprefix("\ufeff").split("\n")
    if not found[-1]:
        found.pop()
    return [line.removesuffix("\r") for line in found]


def parse_page(text: str) -> Page:
    """A Markdown file as notes and headings; whatever it holds, it is read."""
    found, reader = split_lines(text), _PageReader()
    begin = 0  # how many lines at the beginning are data about the file and no notes
    if found and found[0].rstrip() == "---":
        matter = enumerate(found[1:_FRONT_MATTER], 2)
        begin = next((at for at, line in matter if line.rstrip() == "---"), 0)
    for number, line in enumerate(found[begin:], begin + 1):
        reader.read_line(number, line)
    reader.close_note()
    unclosed = reader.opened if reader.fence or reader.comment else 0
    return Page(tuple(reader.notes), tuple(reader.headings), len(found), unclosed)


def _indent_of(line: str) -> int:
    spaces = line.expandtabs(4)
    return len(spaces) - len(spaces.lstrip())


def _dedent_lines(found: Sequence[str], mark: str) -> str:
    if not mark:
        return "\n".join(line.rstrip() for line in found).strip()
    width = _indent_of(mark) + len(mark.strip()) + 1
    first = found[0].lstrip()[len(mark.strip()) :].strip()
    rest = [line.expandtabs(4).rstrip() for line in found[1:]]
    return "\n".join([first, *(line[min(_indent_of(line), width) :] for line in rest)]).strip()


def _join_words(text: str) -> str:
    return " ".join(text.split())


# --- which note is which -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownNote:
    """A note as it was met before: under which name, heading and text."""

    name: str
    title: str
    text: str


def name_notes(notes: Sequence[Note], known: Sequence[KnownNote]) -> list[tuple[str, Note]]:
    """Each note with its name. One that was edited, or moved under another heading, keeps the name
    it had; a new one gets the name its content gives it. No name is given twice."""
    left = {one.name: one for one in known}
    given: dict[int, str] = {}
    for key in (_title_and_words, _words_alone):
        waiting: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for one in left.values():
            waiting[key(one)].append(one.name)
        for at, note in enumerate(notes):
            if at not in given and (names := waiting[key(note)]):
                given[at] = names.pop(0)
                del left[given[at]]
    given |= _match_edited({at: n for at, n in enumerate(notes) if at not in given}, left)
    taken = {one.name for one in known}
    result = []
    for at, note in enumerate(notes):
        name, number = given.get(at) or note.name, 1
        while at not in given and name in taken:
            number += 1
            name = f"{note.name}-{number}"
        taken.add(name)
        result.append((name, note))
    return result


def _title_and_words(one: Note | KnownNote) -> tuple[str, ...]:
    return one.title, _join_words(one.text)


def _words_alone(one: Note | KnownNote) -> tuple[str, ...]:
    return (_join_words(one.text),)


def _match_edited(
    notes: Mapping[int, Note], left: Mapping[str, KnownNote]
) -> Iterator[tuple[int, str]]:
    """Which of the remaining notes is which of the remaining known ones, the likest first."""
    if len(notes) * len(left) > _MOST_COMPARED:
        return  # a file written anew
    pairs = sorted(
        (-SequenceMatcher(None, one.text.split(), note.text.split(), False).ratio(), at, one.name)
        for at, note in notes.items()
        for one in left.values()
        if note.title == one.title
    )
    done: set[int | str] = set()
    for score, at, name in pairs:
        if -score >= _ALIKE and not done & {at, name}:
            done |= {at, name}
            yield at, name


# --- looked over: too long, said twice, taken back by something newer ----------------------------


@dataclass(frozen=True, slots=True)
class PageFinding:
    line: int  # from 1
    what: str  # long, nearly long, twice, unclosed, contradicted
    text: str


@dataclass(frozen=True, slots=True)
class NewerText:
    """Something recorded after the note: `name` is what to call it, "#12" say, `epoch` when."""

    name: str
    text: str
    epoch: int = 0


def lint_page(
    text: str,
    newer: Iterable[NewerText] = (),
    most: int = MOST_LINES,
    written: Callable[[Note], int] | None = None,
) -> list[PageFinding]:
    """By line. `newer` is what the caller knows to be newer than the page, of the same project;
    where it says when each note was `written`, only what came after that note counts."""
    page = parse_page(text)
    result = [*_lint_length(text, page.lines, most), *_lint_repetition(page.notes)]
    if page.unclosed:
        problem = "a code block or comment that has no end"
        result.append(PageFinding(page.unclosed, "unclosed", problem))
    told = [(one, parse_claims(one.text)) for one in newer]
    for note in page.notes if told else ():
        own, since = parse_claims(note.text), written(note) if written else -1
        for one, later in told:
            if one.epoch > since and (reason := find_contradiction(own, later)):
                said = f"{one.name} is newer and says otherwise: {reason}"
                result.append(PageFinding(note.line, "contradicted", said))
    return sorted(result, key=lambda finding: (finding.line, finding.what, finding.text))


def _lint_length(text: str, number: int, most: int) -> Iterator[PageFinding]:
    if number > most:
        told = f"{number} lines; from here on nothing is loaded into a session"
        yield PageFinding(most + 1, "long", told)
    elif number >= min(NEARLY_FULL, most):
        yield PageFinding(number, "nearly long", f"{number} of the {most} lines that are loaded")
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MOST_BYTES:
        line = data[:MOST_BYTES].count(b"\n") + 1
        told = f"{len(data):,} bytes; clients that load {MOST_BYTES:,} stop here"
        yield PageFinding(line, "long", told)


def _lint_repetition(notes: Iterable[Note]) -> Iterator[PageFinding]:
    first: dict[str, int] = {}
    for note in notes:
        line = first.setdefault(_join_words(note.text).rstrip(".").casefold(), note.line)
        if line != note.line:
            yield PageFinding(note.line, "twice", f"says the same as line {line}")


# --- adding --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddedLine:
    text: str  # the whole page
    line: int  # where the new line stands
    lines: int  # how many there are now


def add_line(text: str, line: str, heading: str = "", most: int = MOST_LINES) -> AddedLine:
    """The page with one list item more: at the end of the section with this heading, which is made
    at the end of the page where there is none; without a heading, at the end of the page.

    UsageError where the line says nothing, is there already, or there is no room for it."""
    added = render_line(line)
    if not added:
        raise UsageError("the line to add says nothing; give it with words")
    page = parse_page(text)
    if page.unclosed:
        raise UsageError(
            f"line {page.unclosed} begins a code block or comment that has no end; close it first"
        )
    if (twin := find_line(text, added)) is not None:
        raise UsageError(f"line {twin} says so already: {added}")
    after, before, mark = _choose_place(page, text, heading)
    end = "\r\n" if "\r\n" in text else "\n"
    new = [*before, f"{mark} {added}"]
    total = page.lines + len(new)
    if total > most:
        raise UsageError(
            f"it has {_count_lines(page.lines)}, and {_count_lines(len(new))} more would pass the "
            f"{most} that are loaded; take out or merge something first"
        )
    at = sum(len(one) + 1 for one in text.split("\n")[:after])
    if at > len(text):  # behind a last line that has no newline, and gets none at the new end
        inserted = end + end.join(new)
        at = len(text)
    else:
        inserted = "".join(f"{one}{end}" for one in new)
    if at == 0 and text.startswith("\ufeff"):
        at = 1
    return AddedLine(text[:at] + inserted + text[at:], after + len(new), total)


def _choose_place(page: Page, text: str, heading: str) -> tuple[int, list[str], str]:
    """The line to add behind, what must stand before the new item, and the mark of its list."""
    shown, wanted = split_lines(text), _fold_line(heading)
    section = next(
        (one for one in page.headings if wanted and _fold_line(one.title) == wanted), None
    )
    first, last = (section.line if section else 0), page.lines
    if section:
        last = next((one.line for one in page.headings if one.line > first), last + 1) - 1
    while last > first and not shown[last - 1].strip():
        last -= 1
    if wanted and not section:
        return last, [*([""] if last else []), f"## {render_line(heading)}", ""], "-"
    here = [one for one in page.notes if first < one.line <= last]
    if here and here[-1].mark and here[-1].last == last:
        mark = here[-1].mark
        return last, [], mark if mark.strip() in "-*+" else f"{mark[: -len(mark.strip())]}-"
    return last, [""] if last else [], "-"


def find_line(text: str, line: str) -> int | None:
    """Where a page says exactly this, list marks, case and spaces aside."""
    wanted = _fold_line(line)
    numbers = (at for at, one in enumerate(split_lines(text), 1) if _fold_line(one) == wanted)
    return next(numbers, None)


def _fold_line(text: str) -> str:
    return _join_words(_drop_marks(text)).rstrip(" .#").casefold()


def _drop_marks(text: str) -> str:
    """Without the marks of lists, headings and quotations it begins with."""
    found = _LEADING.match(text)
    return text[found.end() :] if found else text


def render_line(text: str) -> str:
    """A text as one harmless line of Markdown: it opens no block, ends none, and names no file for
    the client to load (`@path` does)."""
    line = _join_words(neutralize_text(text)).replace("<!--", "‹!--").replace("-->", "--›")
    line = re.sub(r"`{3,}", "`", line)
    while (tamed := _tame_line(line)) != line:
        line = tamed  # without one mark the next one leads
    if len(line) > LONGEST_LINE:
        line = line[: LONGEST_LINE - 2].rstrip() + "…"
        line = f"{line[:-1]}`…" if line.count("`") % 2 else line
    return line


def _tame_line(line: str) -> str:
    parts = _CODE.split(_drop_marks(line))
    for at in range(0, len(parts), 2):
        parts[at] = _IMPORT.sub(r"`\g<0>`", parts[at].replace("`", ""))
    return "".join(parts).strip()


def lead_sentence(text: str) -> str:
    """What a line of MEMORY.md says of a text: its first sentence, where that comes soon."""
    return first_sentence(_join_words(_drop_marks(neutralize_text(text))), 160, least=15)


def _count_lines(number: int) -> str:
    return f"{number:,} line" + ("" if number == 1 else "s")
