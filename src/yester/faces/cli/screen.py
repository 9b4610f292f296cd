"""The door everything printed goes through: recorded text must not steer a terminal.

What was captured may hold anything: sequences that clear the screen, rename the window or write to
the clipboard, marks that turn the reading direction. No command has to think of that: standard
output and standard error let pass what can be seen and the colours we use ourselves, whoever reads
them. Recorded text can so be bold, but neither hidden nor moved.
"""

from __future__ import annotations

import os
import re
import sys
from codecs import lookup
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from typing import Any, TextIO, cast

_NONCE = os.urandom(4).hex()  # of our own links: recorded text cannot know it
# Back to normal, bold, dim, colours that are never the background's, and links to the viewer.
_OURS = re.compile(
    rf"(\x1b\[(?:[012]|3[1-6])m|\x1b\]8;id={_NONCE}[0-9]*;[!-~]*\x1b\\|\x1b\]8;;{_NONCE}\x1b\\)"
)
_WIDE = 100  # columns that running text takes at most
_LEAST = 20  # columns that a text keeps in a table
_HANGING = re.compile(r"\s*(?:[-·#✓✗] |[\w ]{1,12}\s{2,})?")


def strip_steering(text: str) -> str:
    """The text without what steers a terminal or hides from a reader, but for our own colours."""
    one_line = text.replace("\n", "").replace("\t", "")
    if one_line.isascii() and one_line.isprintable():
        return text  # nearly everything; the patterns below take a while to load
    from yester.fence import strip_hidden

    parts = _OURS.split(text)
    parts[::2] = map(strip_hidden, parts[::2])
    return "".join(parts)


def has_colours(stream: TextIO) -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def terminal_width(stream: TextIO) -> int:
    """The columns of the terminal that a stream goes to; 0 where it goes elsewhere."""
    if not stream.isatty():
        return 0
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(stream.fileno())[0]
    except (ValueError, OSError):
        columns = 0
    return columns or 80


def terminal_height() -> int:
    try:
        return os.get_terminal_size(1)[1] or 24
    except OSError:
        return 24


class _Screen:
    """A text stream that writes what is harmless, and is the one behind it in all else."""

    def __init__(self, stream: TextIO) -> None:
        # click takes ASCII for a mistake, too, but would write to the bytes behind us.
        if isinstance(stream, TextIOWrapper) and lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8", errors="replace")
        self._stream = stream
        self._coloured = has_colours(stream)

    def write(self, text: str) -> int:
        PATIENCE.end()
        if isinstance(text, str):
            self._stream.write(screen_text(text, self._coloured))
        else:
            self._stream.write(text)
        return len(text)

    def writelines(self, texts: Iterator[str]) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def screen_text(text: str, coloured: bool) -> str:
    safe = strip_steering(text)
    return safe if coloured or "\x1b" not in safe else _OURS.sub("", safe)


@contextmanager
def screen_streams() -> Iterator[None]:
    """While it lasts both streams are screened. What draws for itself, as a progress bar does,
    writes to `sys.__stderr__`."""
    streams = sys.stdout, sys.stderr
    if sys.stdout is not None:
        sys.stdout = cast(TextIO, _Screen(sys.stdout))
    if sys.stderr is not None:
        sys.stderr = cast(TextIO, _Screen(sys.stderr))
    try:
        yield
    finally:
        PATIENCE.end()
        sys.stdout, sys.stderr = streams


class _Patience:
    """Says on a terminal, after a second without a word, what is being done and for how long."""

    def __init__(self) -> None:
        self._over: Any = None
        self._thread: Any = None

    def begin(self, what: str) -> None:
        if sys.__stderr__ is None or not sys.__stderr__.isatty():
            return
        import threading

        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, args=(what, self._over), daemon=True)
        self._thread.start()

    def _tell(self, what: str, over: Any) -> None:
        seconds, stream = 0, cast(TextIO, sys.__stderr__)
        while not over.wait(1.0):
            seconds += 1
            stream.write(f"\r{what} … {seconds} s")
            stream.flush()
        if seconds:
            stream.write("\r\x1b[K")
            stream.flush()

    def end(self) -> None:
        if self._over is not None and not self._over.is_set():
            self._over.set()
            self._thread.join()


PATIENCE = _Patience()


# --- words and lines ------------------------------------------------------------------------------


def count_noun(number: int, noun: str) -> str:
    """1 item, 1,200 items, 2 memories"""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun}"


def join_counts(*parts: tuple[int, str], between: str = ", ") -> str:
    """What is not zero, in a line."""
    return between.join(text for number, text in parts if number)


def make_bold(text: str) -> str:
    return style_text(text, "1")


def style_text(text: str, code: str) -> str:
    """With a colour (31 to 36), bold (1) or dim (2); as it is without."""
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def link_text(text: str, address: str) -> str:
    """A link where there is an address: only the terminals that know links are given one."""
    if not address:
        return text
    return f"\x1b]8;id={_NONCE};{address}\x1b\\{text}\x1b]8;;{_NONCE}\x1b\\"


def text_width(text: str) -> int:
    """The columns that a text takes on a terminal."""
    text = _OURS.sub("", text) if "\x1b" in text else text
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    from unicodedata import category, east_asian_width

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 1 + (east_asian_width(character) in "WF")


def cut_text(text: str, room: int) -> str:
    """At most so many columns of a plain text on one line."""
    if text_width(text) <= room:
        return text
    while text and text_width(text) >= room:
        text = text[:-1]
    return f"{text.rstrip()}…"


class Whole(str):
    """A line that is never broken: a command, which is copied as it stands."""


def fit_line(text: str, width: int) -> str:
    """The text on lines of at most `width` columns (0: any), broken between words and continued
    under where it begins."""
    if not width or isinstance(text, Whole) or text_width(text) <= width:
        return text
    if "\n" in text:
        return "\n".join(fit_line(line, width) for line in text.split("\n"))
    found = _HANGING.match(_OURS.sub("", text))
    indent = " " * min(found.end() if found else 0, width // 3)
    lines, line, used = [], "", 0
    for word in re.findall(r"\s*\S+", text):
        columns = text_width(word)
        fits = len(indent) + text_width(word.lstrip()) <= width or "\x1b" in word
        if line.strip() and used + columns > width and fits:
            lines.append(line)
            line, used, word = indent, len(indent), word.lstrip()
            columns = text_width(word)
        while used + columns > width and "\x1b" not in word:  # a path, a script without spaces
            part = word
            while used + text_width(part) > width:
                part = part[:-1]
            lines.append(line + part)
            line, used, word = indent, len(indent), word[len(part) :]
            columns = text_width(word)
        line, used = line + word, used + columns
    return "\n".join([*lines, line])


def describe_items(items: Mapping[str, int]) -> str:
    """1,240 (40 prompt, 1,200 message)"""
    kinds = join_kinds(dict(sorted(items.items())))
    return f"{sum(items.values()):,}" + (f" ({kinds})" if kinds else "")


def join_kinds(kinds: Mapping[str, int]) -> str:
    """40 prompt, 1,200 message; without what there is none of"""
    return ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)


def fact_lines(width: int, facts: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Names and values in two columns; what says nothing has no line."""
    return (f"{name:<{width}}  {value}" for name, value in facts if value)


Cell = str | tuple[str, str]  # a text, and the code of its colour


def align_rows(rows: Sequence[Sequence[Cell]], room: int, flexible: int) -> Iterator[str]:
    """Rows in columns, the flexible one cut so that they fit; without room for columns (in a pipe)
    the same on lines of their own, uncut."""
    plain = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in rows]
    if not room:
        for row in plain:
            yield "  ".join(text for text, _ in row if text).rstrip()
        return
    if not plain:
        return
    widths = _column_widths(plain)
    gaps = 2 * (sum(map(bool, widths)) - 1)
    left = max(_LEAST, room - gaps - sum(widths) + widths[flexible])
    widths[flexible] = min(widths[flexible], left)
    yield from (_pad_cells(row, widths) for row in plain)


def _column_widths(rows: Sequence[Sequence[tuple[str, str]]]) -> list[int]:
    return [max(text_width(text) for text, _ in column) for column in zip(*rows, strict=True)]


def _pad_cells(
    row: Sequence[tuple[str, str]], widths: Sequence[int], numbers: Collection[int] = ()
) -> str:
    """A line of a table, its `numbers` at the right of their columns."""
    cells = []
    for place, ((text, code), width) in enumerate(zip(row, widths, strict=True)):
        short = cut_text(text, width)
        shown, space = style_text(short, code), " " * (width - text_width(short))
        if width:
            cells.append(space + shown if place in numbers else shown + space)
    return "  ".join(cells).rstrip()


def table_lines(records: Sequence[Any], title: str = "", *columns: str) -> Iterator[str]:
    """What programs get as rows, in columns under their names; nothing where there is none.
    Numbers stand below each other; on a terminal the longest text gives way."""
    from msgspec import to_builtins

    if not records:
        return
    rows = [to_builtins(one) for one in records]
    rows = [{name: row[name] for name in columns or row} for row in rows]
    if title:
        yield f"\n{make_bold(title)}"
    cells = [[(name.replace("_", " "), "") for name in rows[0]]]
    cells += [[(_format_cell(value), "") for value in row.values()] for row in rows]
    width, widths = terminal_width(sys.stdout) - 2, _column_widths(cells)
    while width > 0 and sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    numbers = [
        place
        for place, name in enumerate(rows[0])
        if all(isinstance(row[name], int | float) and row[name] is not True for row in rows)
    ]
    for place, line in enumerate(cells):
        yield "  " + style_text(_pad_cells(line, widths, numbers), "" if place else "2")


def _format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


# --- a pager --------------------------------------------------------------------------------------


def page_lines(lines: Iterable[str]) -> None:
    """Lines on the screen; in a pager where they are more than fit. What a pager is given has no
    links: not all of them know what that is."""
    held: list[str] = []
    rest = iter(lines)
    height = terminal_height() - 1
    for text in rest:
        held += text.split("\n")
        if len(held) > height:
            break
    words = _pager() if len(held) > height else []
    if not words:
        for text in chain(held, rest):
            print(text)  # noqa: T201
        return
    import signal
    import subprocess

    coloured = has_colours(sys.stdout)
    PATIENCE.end()
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        pager = subprocess.Popen(  # noqa: S603 -- the user's own
            words, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
            env={"LESS": "FRX", "LV": "-c", **os.environ},
        )  # fmt: skip
        try:
            with cast(TextIO, pager.stdin) as stream:
                for text in chain(held, rest):
                    shown = screen_text(text, coloured)
                    stream.write(_LINKS.sub("", shown) + "\n")
        except BrokenPipeError:
            pass  # the reader has seen enough
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, former)


_LINKS = re.compile(r"\x1b\]8;[^\x1b]*\x1b\\")


def _pager() -> list[str]:
    """The words of PAGER, else less, where that is there; none: cat."""
    import shlex
    import shutil

    words = shlex.split(os.environ.get("PAGER", "less"))
    return words if words and words != ["cat"] and shutil.which(words[0]) else []
