"""Hits on the terminal, as plain text and as JSON: a line each, or everything there is of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yester.clock import format_minute
from yester.context import lines
from yester.faces.cli.app import App
from yester.faces.cli.screen import Cell, align_rows, fact_lines, link_text, make_bold
from yester.model import Hit
from yester.recall.rank import TOLD
from yester.recall.recall import Answer, group_by_session
from yester.store.figures import name_origins
from yester.text.document import reading_cost
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

_OF_A_SESSION = 3  # lines, where there are others; for a person, who wants to see what there is
NO_WEIGHTS: Mapping[str, float] = {}
MARK = "▶"  # the one that was asked for, among others
_RULE = "\n" + "─" * 72 + "\n"  # between two that are shown whole
_FULL = ("text", "role", "tool", "agent", "files", "prompt_number", "duplicates", "parts")


def hit_as_json(hit: Hit, terms: Collection[str] = (), full: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": hit.id, "ref": hit.ref, "kind": hit.kind, "type": hit.type, "project": hit.project,
        "session": hit.session, "title": hit.title,
        "snippet": find_snippet(hit.excerpt or hit.text, terms), "epoch": hit.epoch,
        "score": round(hit.score, 4), "factors": hit.factors,
    }  # fmt: skip
    row |= {name: value for name in ("stale", "arms") if (value := getattr(hit, name))}
    return row | {name: getattr(hit, name) for name in _FULL if full}


def explain_score(hit: Hit, weights: Mapping[str, float]) -> Iterator[str]:
    """Who found it, what each factor added of what it could have, and what else is known of it."""
    if hit.arms:
        yield f"found by {', '.join(hit.arms)}"
    for factor, value in hit.factors.items():
        if factor not in TOLD:
            most = f" of {weights[factor]:.3f}" if factor in weights else ""
            yield f"{factor} {value:.3f}{most}"
    facts = [f"{factor} {hit.factors[factor]:.3f}" for factor in TOLD if factor in hit.factors]
    if facts:
        yield f"({', '.join(facts)})"


def explain_omissions(answer: Answer) -> Iterator[str]:
    """What was looked at and left out."""
    found = ", ".join(f"{arm} {number}" for arm, number in answer.arms.items())
    if found:
        yield f"\nCandidates: {found}"
    for one in answer.cut:
        yield f"left out #{one.item}  {one.score:.2f}  {one.why}"
    if answer.more:
        yield f"left out {answer.more} more that fit less"


def join_names(app: App, *names: str) -> str:
    """shop · 0b5f92c4 · claude-code"""
    return " · ".join(filter(None, map(lines.short_name, names) if app.read_by_agent else names))


def _excerpt(app: App, hit: Hit, terms: Collection[str], most: int) -> str:
    """The part of its text that answers."""
    text = hit.excerpt or hit.text
    if app.read_by_agent:
        return lines.quote_text(find_snippet(lines.clean_text(text), terms, most))
    return find_snippet(text, terms, most, _highlight_word if app.width else None)


def _highlight_word(word: str) -> str:
    return f"\x1b[33m{make_bold(word)}"


# Colours by what became of a turn, else by the type or kind.
_COLOURS: Mapping[str, str] = {
    "done": "32", "failed": "31", "reverted": "31", "open": "33", "changed": "34",
    "answered": "36", "decision": "33", "bugfix": "32", "feature": "32", "refactor": "34",
    "change": "34", "discovery": "35", "rule": "33", "memory": "33", "prompt": "36", "note": "2",
}  # fmt: skip
ROOMY = 100  # columns with which there is room for the time of day
_TITLE = 3  # the cell that gives way


def hit_rows(
    app: App, hits: Sequence[Hit], terms: Collection[str] = (), clock: bool = False
) -> Iterator[str]:
    """A line for each: `❯ #12  2026-05-19 08:36  0.71  Drop redis  ~40t`; with `clock`, the time of
    day alone. In columns on a terminal, where a card also says what became of its turn."""
    statuses = _read_statuses(app, hits) if app.width else {}
    rows = [_hit_cells(app, hit, terms, clock, statuses.get(hit.id, "")) for hit in hits]
    return align_rows(rows, max(app.width - 2, 0), _TITLE)


def _read_statuses(app: App, hits: Sequence[Hit]) -> dict[int, str]:
    cards = [hit.id for hit in hits if hit.kind == "summary"]
    return {item.id: lines.card_status(item) for item in app.reading.get(cards)} if cards else {}


def _hit_cells(app: App, hit: Hit, terms: Collection[str], clock: bool, status: str) -> list[Cell]:
    when = format_minute(int(hit.epoch * 1000))
    when = when[11:] if clock else when[:10] if 0 < app.width < ROOMY else when
    tool = join_names(app, hit.tool) + ": " if hit.tool else ""
    title = app.quote_line(hit.title) or _excerpt(app, hit, terms, 110) or "(empty)"
    others = (hit.duplicates, "≈", "alike"), (len(hit.parts), "+", "of this turn")
    more = "  ".join(
        f"{sign}{number}" if app.width else f"(+{number} {what})"
        for number, sign, what in others
        if number
    )
    told = f"{status}: " if status and not title.lower().startswith(status) else ""
    colour = next((_COLOURS[one] for one in (status, hit.type, hit.kind) if one in _COLOURS), "")
    number = link_text(f"#{hit.id}", app.viewer and f"{app.viewer}{hit.id}")
    return [
        (f"{lines.item_icon(hit.kind, hit.type)} {number}", colour),
        (when, "2"),
        (f"{hit.score:.2f}" if hit.score and not clock else "", ""),
        f"{tool}{told}{title}", (f"~{reading_cost(hit)}t", "2"), (more, "2"),
    ]  # fmt: skip


def hit_lines(
    app: App, hits: Sequence[Hit], query: str = "", weights: Mapping[str, float] = NO_WEIGHTS
) -> Iterator[str]:
    """A line or two per hit, under the session it comes from."""
    terms = query_terms(query)
    sessions = group_by_session(hits)
    origins = name_origins(app.reading, [hit.id for hit in hits])
    ordered = [hit for _, group in sessions for hit in group]
    rows = dict(zip((hit.id for hit in ordered), hit_rows(app, ordered, terms), strict=True))
    for number, (session, group) in enumerate(sessions):
        first = group[0]
        shown = group[:_OF_A_SESSION] if len(sessions) > 1 and not app.read_by_agent else group
        head = join_names(app, first.project, session[:8] if first.session else "", first.agent)
        if origin := origins.get(first.id) or first.sharer:
            head += f" · from {app.quote_line(origin, 40)}"
        yield ("\n" if number else "") + make_bold(head)
        for hit in shown:
            yield f"  {rows[hit.id]}"
            if hit.title and " ".join(hit.text.split()).strip("# ") != hit.title:
                room = min(max(app.width - 10, 40), 200) if app.width else 160
                yield f"      {_excerpt(app, hit, terms, room)}"
            if hit.stale:
                yield f"      ! {hit.stale}"
            yield from (f"      {reason}" for reason in explain_score(hit, weights))
        if len(group) > len(shown):
            yield f"  {len(group) - len(shown)} more of this session: --session {session[:8]}"


class Page(NamedTuple):
    """Something whole: what it is, what is known of it, and what it says."""

    head: str
    facts: Iterable[tuple[str, object]]
    text: str = ""


def page_lines(app: App, pages: Iterable[Page]) -> Iterator[str]:
    """Everything there is of each. For an agent all but the head is quoted, line by line."""
    for number, page in enumerate(pages):
        if number:
            yield _RULE
        yield make_bold(page.head)
        text = f"\n{page.text}" if page.text else ""
        rest = "\n".join(filter(None, (*fact_lines(10, page.facts), text)))
        yield lines.quote_lines(lines.clean_text(rest)) if app.read_by_agent else rest


def whole_lines(
    app: App, hits: Iterable[Hit], marked: int = 0, weights: Mapping[str, float] = NO_WEIGHTS
) -> Iterator[str]:
    return page_lines(app, (_hit_page(app, hit, marked, weights) for hit in hits))


def _hit_page(app: App, hit: Hit, marked: int, weights: Mapping[str, float]) -> Page:
    mark = f"{MARK} " if hit.id == marked else ""
    names = join_names(app, hit.project, hit.kind, hit.type, hit.role, hit.tool)
    facts = {
        "from": name_origins(app.reading, [hit.id]).get(hit.id, hit.sharer),
        "session": f"{hit.session}, prompt {hit.prompt_number}" if hit.session else "",
        "files": ", ".join(hit.files),
        "stale": hit.stale,
        "score": ", ".join(explain_score(hit, weights)),
    }
    head = f"{mark}#{hit.id}  {names} · {format_minute(int(hit.epoch * 1000))}"
    return Page(head, facts.items(), title_text(hit.title, hit.text))


def title_text(title: str, text: str) -> str:
    """With the title over it, where it does not begin with that."""
    said = not title or text.lstrip("# ").startswith(title.rstrip("…"))
    return text if said else f"{make_bold(title)}\n\n{text}"
