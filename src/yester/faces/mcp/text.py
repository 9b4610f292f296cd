"""What is stored, as text for a model that asked: rows of an index, or whole, within a budget.

Words of others stand in quotation marks on one line behind what says whose they are, or on lines
that each begin with the mark of a quotation, so that no stored text can pass for a row, a heading
or the line about what was left out; and all of it stands in the fence (`yester.fence`), from which
nothing can break out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from yester.clock import format_day, format_minute
from yester.deliver.lines import clean, icon, line
from yester.deliver.quote import block, named, plain
from yester.deliver.quote import quoted as in_quotes
from yester.fence import fenced
from yester.model import Hit, Item, Session
from yester.text.document import reading_cost
from yester.text.sentences import find_snippet

MOST = 2_500  # tokens of an answer
ROW = 96  # tokens of a row
_FOOT = 150  # tokens kept for the last lines
_TITLE, _SNIPPET = 100, 240  # characters
_QUOTES = 3  # tokens of the quotation marks around a row's words
PER_LINE = 2  # tokens of the mark before each line of what is whole

MARK = "▶"

# --- tokens ------------------------------------------------------------------------------------

# What a model's tokenizer makes of a text is not known here and differs between models; this is
# meant to be more, for prose and code as for hashes, numbers and other scripts.
_PIECE = re.compile(
    r"(?P<lump>[A-Za-z0-9]{24,64})|(?P<word>[A-Z]?[a-z]{1,24})|(?P<dense>[A-Z]{1,24}|[0-9]{1,24})"
    r"|(?P<blank> )|(?P<other>[^\x00-\x7f])|(?P<sign>[\x00-\x7f])"
)


def _cost(piece: re.Match[str]) -> float:
    size = len(piece[0])
    if piece["word"]:
        return (size + 4) // 5
    if piece["lump"] or piece["dense"]:
        return (size + 1) // 2
    if piece["other"]:
        return len(piece[0].encode("utf-8", "replace")) / 2
    return 0.2 if piece["blank"] else 1


def tokens_at_most(text: str) -> int:
    return int(sum(map(_cost, _PIECE.finditer(text)))) + 1


def cut(text: str, most: int, per_line: int = 0) -> tuple[str, int]:
    """As much of the text as is surely within so many tokens, and where it ends.

    `per_line` is what each line will cost besides.
    """
    left = float(most)
    for piece in _PIECE.finditer(text):
        left -= _cost(piece) + (per_line if piece[0] == "\n" else 0)
        if left < 1:
            return text[: piece.start()], piece.start()
    return text, len(text)


# --- words of others ---------------------------------------------------------------------------


def name(text: str, most: int = 14) -> str:
    """The beginning of something short, such as a project's name; no more than so many tokens."""
    short = line(text, 120)
    quotes = _QUOTES if named(short) != short else 0
    return named(cut(short, most - quotes)[0].rstrip())


def short(session: str) -> str:
    """As much of a session's id as finds it again."""
    return plain(line(session, 100)[:8])


def quoted(text: str) -> str:
    """For a message: on one line, in quotation marks."""
    return f'"{plain(line(text, 120))}"'


def day(epoch: float, clock: bool = False) -> str:
    """A time (seconds) as a person here reads it."""
    form = format_minute if clock else format_day
    return form(int(epoch * 1000), missing="undated")


# --- rows --------------------------------------------------------------------------------------


def row(hit: Hit, asked: Collection[str], clock: bool = False, mark: str = "") -> str:
    """`#138 · message, 2026-05-19, tidepool, 0.47, ~103t: We dropped Redis because …`"""
    facts = [
        " ".join(filter(None, (hit.kind, name(hit.type or hit.tool)))),
        day(hit.epoch, clock), name(hit.project), f"{hit.score:.2f}" if hit.score else "",
        f"~{reading_cost(hit)}t", f"{hit.duplicates} more alike" if hit.duplicates else "",
        f"since then: {plain(cut(line(hit.stale, 120), 24)[0])}" if hit.stale else "",
    ]  # fmt: skip
    title = line(hit.title, _TITLE)
    text = find_snippet(clean(hit.text), asked, _SNIPPET)
    if title and not text.lstrip("# ").startswith(title.rstrip("…")):
        text = f"{title}: {text}" if text else title
    head = f"{mark}#{hit.id} {icon(hit.kind, hit.type)} {', '.join(filter(None, facts))}: "
    return _fitted(head, text)


def session_row(session: Session, best: Hit | None, asked: Collection[str], summary: int) -> str:
    """`S0b5f92c4 2026-10-06, tidepool, claude-code, 3 prompts, 0.47, summary #12: …`"""
    facts = [
        day(session.started / 1000), name(session.project), name(session.agent),
        f"{session.prompts} prompt{'' if session.prompts == 1 else 's'}",
        f"{best.score:.2f}" if best and best.score else "",
        f"summary #{summary}" if summary else "",
    ]  # fmt: skip
    head = f"S{short(session.key)} {', '.join(filter(None, facts))}: "
    title = in_quotes(line(session.title, _TITLE)) if session.title.strip() else "(untitled)"
    if best is None:
        return head + title
    text = find_snippet(clean(best.text), asked, _SNIPPET)
    return _fitted(f"{head}{title}; best #{best.id}: ", text)


def _fitted(head: str, text: str) -> str:
    shown, end = cut(text, ROW - _QUOTES - tokens_at_most(head))
    return head + in_quotes(shown if end == len(text) else f"{shown.rstrip()}…")


# --- whole -------------------------------------------------------------------------------------


def heading(item: Item, project: str) -> str:
    """Whose words, of which day, what they cost to read and what was spent on finding them out."""
    speaker = item.tool if item.role == "tool" else item.role
    spent = f"made from about {item.discovery_tokens:,} tokens of work"
    facts = [
        item.kind, name(item.type), name(speaker), name(project),
        day(item.epoch / 1000, clock=True),
        f"session {short(item.session)}" if item.session else "",
        f"~{reading_cost(item)}t to read", spent if item.discovery_tokens else "",
    ]  # fmt: skip
    return f"#{item.id} {icon(item.kind, item.type)} {', '.join(filter(None, facts))}"


def whole(item: Item) -> str:
    """All there is of an item."""
    body = clean(item.body)
    parts = [
        "" if body.lstrip("# ").startswith(item.title.rstrip("…")) else line(item.title, 300),
        line(item.subtitle, 300),
        body,
        *(f"{name(part)}: {clean(text)}" for part, text in item.sections.items() if text),
        "\n".join(f"- {clean(fact)}" for fact in item.facts),
        _listed("concepts", item.concepts),
        _listed("files changed", item.files_modified),
        _listed("files read", item.files_read),
    ]  # fmt: skip
    return "\n".join(filter(None, parts))


def _listed(what: str, values: Sequence[str]) -> str:
    return f"{what}: {line(', '.join(values), 900)}" if values else ""


def indented(text: str) -> str:
    """Words of others that have lines of their own."""
    return block(text)


# --- an answer ---------------------------------------------------------------------------------


class Page:
    """Rows between a head and a foot, as many as the budget holds."""

    def __init__(self, note: str, head: str) -> None:
        self._note, self._rows = note, [head]
        self._left = MOST - _FOOT - tokens_at_most(fenced("memory", head, note))
        self._foot: list[str] = []

    @property
    def left(self) -> int:
        """Tokens."""
        return self._left

    def add(self, text: str, first: bool = False) -> bool:
        """Put it at the end (or behind the head), if it fits."""
        cost = tokens_at_most(text) + 1
        if cost > self._left:
            return False
        self._left -= cost
        self._rows.insert(1 if first else len(self._rows), text)
        return True

    def close(self, *foot: str) -> str:
        """The whole answer with what is said at its end."""
        told, _ = cut("\n".join(filter(None, foot)), _FOOT)
        return fenced("memory", "\n".join([*self._rows, told] if told else self._rows), self._note)


def rows_that_fit(page: Page, rows: Sequence[str]) -> int:
    """Put in as many as fit, in their order; how many are left."""
    for number, one in enumerate(rows):
        if not page.add(one):
            return len(rows) - number
    return 0
