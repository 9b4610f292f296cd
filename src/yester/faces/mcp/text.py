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
from yester.context import lines
from yester.fence import fence_text
from yester.model import Hit, Item, Session
from yester.text.document import item_text, reading_cost
from yester.text.sentences import find_snippet

MOST = 2_500  # tokens of an answer
ROW = 96  # tokens of a row
_FOOT = 150  # tokens kept for the last lines
_TITLE, _SNIPPET = 100, 240  # characters
_NAME = 14  # tokens of a name
_QUOTES = 3  # tokens of the quotation marks around a row's words
_PER_LINE = 2  # tokens of the mark before each line of what is whole

MARK = "▶"

# --- tokens ------------------------------------------------------------------------------------

# What a model's tokenizer makes of a text is not known here and differs between models; this is
# meant to be more, for prose and code as for hashes, numbers and other scripts.
_PIECE = re.compile(
    r"(?P<lump>[A-Za-z0-9]{24,64})|(?P<word>[A-Z]?[a-z]{1,24})|(?P<dense>[A-Z]{1,24}|[0-9]{1,24})"
    r"|(?P<blank> )|(?P<other>[^\x00-\x7f])|(?P<sign>[\x00-\x7f])"
)


def _token_cost(piece: re.Match[str]) -> float:
    size = len(piece[0])
    if piece["word"]:
        return (size + 4) // 5
    if piece["lump"] or piece["dense"]:
        return (size + 1) // 2
    if piece["other"]:
        return len(piece[0].encode("utf-8", "replace")) / 2
    return 0.2 if piece["blank"] else 1


def most_tokens(text: str) -> int:
    return int(sum(map(_token_cost, _PIECE.finditer(text)))) + 1


def cut_text(text: str, most: int, per_line: int = 0) -> tuple[str, int]:
    """As much of the text as is surely within so many tokens, and where it ends.

    `per_line` is what each line will cost besides.
    """
    left = float(most)
    for piece in _PIECE.finditer(text):
        left -= _token_cost(piece) + (per_line if piece[0] == "\n" else 0)
        if left < 1:
            return text[: piece.start()], piece.start()
    return text, len(text)


# --- words of others ---------------------------------------------------------------------------


def name_within(text: str) -> str:
    """The beginning of something short, such as a project's name."""
    short = lines.one_line(text, 120)
    quotes = _QUOTES if lines.quote_name(short) != short else 0
    return lines.quote_name(cut_text(short, _NAME - quotes)[0].rstrip())


def short_session(session: str) -> str:
    """As much of a session's id as finds it again."""
    return lines.replace_quotes(lines.one_line(session, 100)[:8])


def format_time(epoch: float, clock: bool = False) -> str:
    """A time (seconds) as a person here reads it."""
    form = format_minute if clock else format_day
    return form(int(epoch * 1000), missing="undated")


# --- rows --------------------------------------------------------------------------------------


def hit_row(hit: Hit, asked: Collection[str], clock: bool = False, mark: str = "") -> str:
    """`#138 · message, 2026-05-19, tidepool, 0.47, ~103t: We dropped Redis because …`"""
    facts = [
        " ".join(filter(None, (hit.kind, name_within(hit.type or hit.tool)))),
        format_time(hit.epoch, clock), name_within(hit.project),
        f"{hit.score:.2f}" if hit.score else "",
        f"~{reading_cost(hit)}t", f"{hit.duplicates} more alike" if hit.duplicates else "",
        f"{len(hit.parts)} more of this turn" if hit.parts else "",
        f"since then: {_stale_note(hit.stale)}" if hit.stale else "",
    ]  # fmt: skip
    snippet = find_snippet(lines.clean_text(hit.excerpt or hit.text), asked, _SNIPPET)
    head = f"{mark}#{hit.id} {lines.item_icon(hit.kind, hit.type)} {_join_facts(facts)}: "
    return _fit_row(head, lines.join_title(hit.title, snippet))


def _join_facts(facts: Sequence[str]) -> str:
    return ", ".join(filter(None, facts))


def _stale_note(text: str) -> str:
    return lines.replace_quotes(cut_text(lines.one_line(text, 120), 24)[0])


def session_row(session: Session, best: Hit | None, asked: Collection[str], summary: int) -> str:
    """`S0b5f92c4 2026-10-06, tidepool, claude-code, 3 prompts, 0.47, summary #12: …`"""
    facts = [
        format_time(session.started / 1000), name_within(session.project),
        name_within(session.agent),
        f"{session.prompts} prompt{'' if session.prompts == 1 else 's'}",
        f"{best.score:.2f}" if best and best.score else "",
        f"summary #{summary}" if summary else "",
    ]  # fmt: skip
    title = lines.one_line(session.title, _TITLE)
    named = lines.quote_text(title) if title else "(untitled)"
    head = f"S{short_session(session.key)} {_join_facts(facts)}: {named}"
    if best is None:
        return head
    text = find_snippet(lines.clean_text(best.text), asked, _SNIPPET)
    return _fit_row(f"{head}; best #{best.id}: ", text)


def _fit_row(head: str, text: str) -> str:
    shown, end = cut_text(text, ROW - _QUOTES - most_tokens(head))
    return head + lines.quote_text(shown if end == len(text) else f"{shown.rstrip()}…")


# --- whole -------------------------------------------------------------------------------------


def item_heading(item: Item, project: str) -> str:
    """Whose words, of which day, what they cost to read and what was spent on finding them out."""
    speaker = item.tool if item.role == "tool" else item.role
    spent = f"made from about {item.discovery_tokens:,} tokens of work"
    facts = [
        item.kind, name_within(item.type), name_within(speaker), name_within(project),
        format_time(item.epoch / 1000, clock=True),
        f"session {short_session(item.session)}" if item.session else "",
        f"~{reading_cost(item)}t to read", spent if item.discovery_tokens else "",
    ]  # fmt: skip
    return f"#{item.id} {lines.item_icon(item.kind, item.type)} {_join_facts(facts)}"


def whole_item(item: Item) -> str:
    """All there is of an item: its text, and what stands beside it."""
    text = lines.clean_text(item_text(item))
    sections = {name_within(name): lines.clean_text(part) for name, part in item.sections.items()}
    subtitle, facts = lines.one_line(item.subtitle, 300), map(lines.clean_text, item.facts)
    repeats = text.lstrip("# ").startswith(item.title.rstrip("…"))
    parts = [
        "" if repeats else lines.one_line(item.title, 300),
        subtitle if subtitle not in text else "",
        text,
        *(f"{name}: {part}" for name, part in sections.items() if part not in text),
        *(f"- {fact}" for fact in facts if fact not in text),
        _join_values("concepts", item.concepts),
        _join_values("files changed", item.files_modified),
        _join_values("files read", item.files_read),
    ]
    return "\n".join(filter(None, parts))


def _join_values(what: str, values: Sequence[str]) -> str:
    return f"{what}: {lines.one_line(', '.join(values), 900)}" if values else ""


# --- an answer ---------------------------------------------------------------------------------


class Page:
    """Rows between a head and a foot, as many as the budget holds."""

    def __init__(self, note: str, head: str) -> None:
        self._note, self._rows = note, [head]
        self.tokens_left = MOST - _FOOT - most_tokens(fence_text("memory", head, note))

    def add_row(self, text: str, first: bool = False) -> bool:
        """Put it at the end (or behind the head), if it fits."""
        cost = most_tokens(text) + 1
        if cost > self.tokens_left:
            return False
        self.tokens_left -= cost
        self._rows.insert(1 if first else len(self._rows), text)
        return True

    def add_rows(self, rows: Sequence[str]) -> int:
        """Put in as many as fit, in their order; how many."""
        for number, one in enumerate(rows):
            if not self.add_row(one):
                return number
        return len(rows)

    def add_beginning(self, head: str, text: str) -> str:
        """Put in as much of a text as fits, quoted; what of it that is."""
        most = self.tokens_left - most_tokens(head) - 4
        shown, _ = cut_text(text, most, per_line=_PER_LINE)
        fits = self.add_row(f"{head}\n{lines.quote_lines(shown)}")
        assert fits
        return shown

    def finish_page(self, *foot: str) -> str:
        """The whole answer with what is said at its end."""
        end, _ = cut_text("\n".join(filter(None, foot)), _FOOT)
        return fence_text("memory", "\n".join([*self._rows, *filter(None, [end])]), self._note)
