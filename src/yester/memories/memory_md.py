"""MEMORY.md, the layer people curate: read as notes, added to by one line, never
rewritten; and where Claude Code keeps it.

    CONFIG/projects/SLUG/memory/MEMORY.md    the agent's own notes, loaded into every session
    CLAUDE.md, .claude/CLAUDE.md,            the project's instructions, in its folder
    CLAUDE.local.md

A note is a list item with what is nested in it, or a paragraph, under the headings above it. What
is added is a pure insertion: every byte that was there stays, with its line endings, a missing last
newline and the byte order mark. The agent loads the first 200 lines, so there is no adding beyond.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from textwrap import dedent

from msgspec import Struct

from yester.agents.values import scan_slug
from yester.errors import UsageError
from yester.fence import neutralize_text
from yester.project import identify_project
from yester.text.sentences import first_sentence

MEMORY = "MEMORY.md"
_LONGEST_SLUG = 200
MOST_LINES = 200
NEARLY_FULL = 180  # lines
LONGEST_LINE = 240  # characters of a line that is added
_FRONT_MATTER = 60  # lines
_LONGEST_MARKUP = 2_000  # characters; a longer line is text whatever it begins with

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_BULLET = re.compile(r"\A([ \t]*)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|[ \t]*)")
_FENCE = re.compile(r"\A[ \t]*(?:[-*+][ \t]+)?(`{3,}|~{3,})([^`]*)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_CODE = re.compile(r"(`[^`\n]+`)")
_IMPORT = re.compile(r"(?<!\w)@[\w~./\\-][^\s`]*")
_LEADING = re.compile(r"(?:[-*+>#=~\s]|\d{1,9}[.)]\s|\[[ xX]?\]\s)+")


class Note(Struct, frozen=True):
    heading: tuple[str, ...]  # from the outermost one inwards
    text: str
    line: int = 0  # from 1; 0: as it was met before
    last: int = 0
    mark: str = ""  # of its list, with the spaces before it; "" for a paragraph

    @property
    def title(self) -> str:
        return " › ".join(self.heading)

    @property
    def name(self) -> str:
        """What it is known by in its file: an edited one is another note."""
        words = "\0".join((*self.heading, join_words(self.text)))
        return blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()


class Heading(Struct, frozen=True):
    title: str
    level: int
    line: int


# --- reading -------------------------------------------------------------------------------------


class Page:
    """A Markdown file as notes and headings, read line by line; whatever it holds, it is read."""

    def __init__(self, text: str) -> None:
        self.notes: list[Note] = []
        self.headings: list[Heading] = []
        self._fence = ""  # the mark that ends the code block
        self._comment = False
        self._opened = 0  # line of the code block or comment
        self._path: list[Heading] = []
        self._block: list[tuple[int, str]] = []
        self._mark = ""
        self._blank = False
        self.lines = found = split_lines(text)
        begin = 0  # how many lines at the beginning are data about the file and no notes
        if found and found[0].rstrip() == "---":
            matter = enumerate(found[1:_FRONT_MATTER], 2)
            begin = next((at for at, line in matter if line.rstrip() == "---"), 0)
        for number, line in enumerate(found[begin:], begin + 1):
            self._read_line(number, line)
        self._close_note()

    @property
    def unclosed(self) -> int:
        """The line of a code block or comment that has no end; 0."""
        return self._opened if self._fence or self._comment else 0

    def _read_line(self, number: int, line: str) -> None:
        shape = line if len(line) <= _LONGEST_MARKUP else ""
        if self._comment:
            self._comment = "-->" not in line
        elif self._fence:
            self._block.append((number, line))
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
        elif not line.strip():
            self._blank = True
        elif shape.lstrip().startswith("<!--"):
            self._close_note()
            self._comment, self._opened = "-->" not in line, number
        elif found := _HEADING.fullmatch(shape):
            self._close_note()
            heading = Heading((found[2] or "").strip(), len(found[1]), number)
            self.headings.append(heading)
            self._path = [one for one in self._path if one.level < heading.level] + [heading]
        elif _RULE.fullmatch(shape):
            self._close_note()
        else:
            bullet, fence = _BULLET.fullmatch(shape), _FENCE.fullmatch(shape)
            # After an empty line only what is indented still belongs to a list item.
            nested = bool(self._mark) and _indent_of(line) > _indent_of(self._mark)
            if not nested and (bullet or self._blank):
                self._close_note()
                self._mark = bullet[1] + bullet[2] if bullet else ""
            self._block.append((number, line))
            self._blank = False
            if fence:
                self._fence, self._opened = fence[1], number

    def _close_note(self) -> None:
        if self._block:
            text = _dedent_lines([line for _, line in self._block], self._mark)
            if text:
                heading = tuple(one.title for one in self._path if one.title)
                first, last = self._block[0][0], self._block[-1][0]
                self.notes.append(Note(heading, text, first, last, self._mark))
        self._block, self._mark, self._blank = [], "", False


def split_lines(text: str) -> list[str]:
    """As an editor counts them; a last newline begins no line."""
    found = text.removeprefix("\ufeff").split("\n")
    if not found[-1]:
        found.pop()
    return [line.removesuffix("\r") for line in found]


def _indent_of(line: str) -> int:
    spaces = line.expandtabs(4)
    return len(spaces) - len(spaces.lstrip())


def _dedent_lines(found: Sequence[str], mark: str) -> str:
    first = found[0].strip().removeprefix(mark.strip())
    rest = dedent("\n".join(line.expandtabs(4).rstrip() for line in found[1:]))
    return f"{first.strip()}\n{rest}".strip()


def join_words(text: str) -> str:
    return " ".join(text.split())


# --- adding --------------------------------------------------------------------------------------


def add_line(text: str, line: str, heading: str = "") -> tuple[str, int]:
    """The page with one list item more, and its line: at the end of the section with this heading,
    which is made at the end of the page where there is none; without a heading, at the end of the
    page.

    UsageError where the line says nothing, is there already, or there is no room for it."""
    added = render_line(line)
    if not added:
        raise UsageError("the line to add says nothing; give it with words")
    page = Page(text)
    if page.unclosed:
        raise UsageError(
            f"line {page.unclosed} begins a code block or comment that has no end; close it first"
        )
    for number, one in enumerate(page.lines, 1):
        if _fold_line(one) == _fold_line(added):
            raise UsageError(f"line {number} says so already: {added}")
    after, before = _choose_place(page, heading)
    new = [*before, f"- {added}"]
    if len(page.lines) + len(new) > MOST_LINES:
        raise UsageError(
            f"it has {len(page.lines)} lines, and {len(new)} more would pass the {MOST_LINES} that "
            "are loaded; take out or merge something first"
        )
    end = "\r\n" if "\r\n" in text else "\n"
    begin = len(text) - len(text.removeprefix("\ufeff"))
    rows = re.findall(r"[^\n]*\n|[^\n]+", text[begin:])
    inserted = "".join(f"{one}{end}" for one in new)
    if rows[after - 1 : after] and not rows[after - 1].endswith("\n"):
        inserted = end + inserted.removesuffix(end)  # the last line has no newline, and gets none
    whole = (text[:begin], *rows[:after], inserted, *rows[after:])
    return "".join(whole), after + len(new)


def _choose_place(page: Page, heading: str) -> tuple[int, list[str]]:
    """The line to add behind, and what must stand before the new item."""
    wanted = _fold_line(heading)
    fitting = (one for one in page.headings if wanted and _fold_line(one.title) == wanted)
    section = next(fitting, None)
    first, last = (section.line if section else 0), len(page.lines)
    if section:
        last = next((one.line for one in page.headings if one.line > first), last + 1) - 1
    while last > first and not page.lines[last - 1].strip():
        last -= 1
    if wanted and not section:
        return last, [*([""] if last else []), f"## {render_line(heading)}", ""]
    in_list = any(one.mark and one.last == last for one in page.notes)
    return last, [""] if last and not in_list else []


def _fold_line(text: str) -> str:
    return join_words(_drop_marks(text)).rstrip(" .#").casefold()


def _drop_marks(text: str) -> str:
    """Without the marks of lists, headings and quotations it begins with."""
    found = _LEADING.match(text)
    return text[found.end() :] if found else text


def render_line(text: str) -> str:
    """A text as one harmless line of Markdown: it opens no block, ends none, and names no file for
    the client to load (`@path` does)."""
    line = join_words(neutralize_text(text)).replace("<!--", "‹!--").replace("-->", "--›")
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
    return first_sentence(join_words(_drop_marks(neutralize_text(text))), 160, least=15)


# --- where they are ------------------------------------------------------------------------------

# SLUG is the folder in which every character that is not an ASCII letter or digit has become a
# dash, so several folders may share one; of a long one the beginning and a checksum are left. Work
# trees and folders below a repository share the memory of its main folder.


def project_slug(folder: str) -> str:
    """The name of a folder's folder; of a long one without the checksum at its end.

    JavaScript counts a character beyond the first 65,536 twice."""
    dashed = re.sub(r"[^A-Za-z0-9]", lambda one: "--" if one[0] > "\uffff" else "-", folder)
    return dashed[:_LONGEST_SLUG]


def note_source(path: Path) -> str:
    """Which of the two kinds of file this is: an agent's own memory, or instructions."""
    own = path.name == MEMORY or path.parent.name in ("memory", "memories")
    return "memory-md" if own else "claude-md"


def memory_paths(configs: Iterable[Path], cwd: Path) -> list[Path]:
    """Where the MEMORY.md of a folder may be, there or not, the likeliest first: that of its
    repository's main folder, then its own."""
    folders = dict.fromkeys(filter(None, (identify_project(str(cwd)).root, str(cwd))))
    found = []
    for config in configs:
        for folder in folders:
            name = project_slug(folder)
            if len(name) == _LONGEST_SLUG:  # with a checksum we cannot make: look who has it
                listed = sorted((config / "projects").glob(f"{name}-*"))
                name = listed[0].name if len(listed) == 1 else name
            found.append(config / "projects" / name / "memory" / MEMORY)
    return list(dict.fromkeys(found))


def folder_from_slug(name: str, hints: Iterable[str] = (), above: Path = Path("/")) -> str:
    """The folder a slug stands for: the first of the hints that fits, else one that is there; "".

    Hints are folders known from elsewhere, such as those that transcripts name."""
    for hint in hints:
        dashed = project_slug(hint)
        long = len(dashed) == _LONGEST_SLUG and name.startswith(f"{dashed}-")
        if name == dashed or long:
            return hint
    return next(scan_slug(name.removeprefix("-"), project_slug, above), "")
