"""Hits on the terminal, as plain text and as JSON: a line each, or everything there is of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import click

from yester.clock import format_minute
from yester.deliver.lines import (
    clean_text,
    item_icon,
    one_line,
    quote_lines,
    quote_text,
    replace_quotes,
    short_name,
)
from yester.faces.cli.app import App, make_bold
from yester.model import Hit
from yester.recall.rank import TOLD
from yester.recall.recall import Answer, group_by_session
from yester.text.document import reading_cost
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

NO_WEIGHTS: Mapping[str, float] = {}
MARK = "▶"  # the one that was asked for, among others
RULE = "\n" + "─" * 72 + "\n"  # between two that are shown whole
Highlight = Callable[[str], str] | None
_FULL = ("text", "role", "tool", "agent", "files", "prompt_number", "duplicates")


def hit_as_json(hit: Hit, terms: Collection[str] = (), full: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": hit.id, "ref": hit.ref, "kind": hit.kind, "type": hit.type, "project": hit.project,
        "session": hit.session, "title": hit.title, "snippet": find_snippet(hit.text, terms),
        "epoch": hit.epoch, "score": round(hit.score, 4), "factors": hit.factors,
    }  # fmt: skip
    row |= {name: value for name in ("stale", "arms") if (value := getattr(hit, name))}
    return row | {name: getattr(hit, name) for name in _FULL if full}


def explanation_as_json(answer: Answer) -> dict[str, Any]:
    return {
        "arms": answer.arms, "weights": answer.weights,
        "cut": [{"id": one.item, "score": round(one.score, 4), "why": one.why}
                for one in answer.cut],
        "more": answer.more,
    }  # fmt: skip


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
    return " · ".join(filter(None, map(short_name, names) if app.read_by_agent else names))


def _excerpt(
    app: App, hit: Hit, terms: Collection[str], most: int, highlight: Highlight = None
) -> str:
    if app.read_by_agent:
        return quote_text(find_snippet(clean_text(hit.text), terms, most))
    return find_snippet(hit.text, terms, most, highlight)


def format_title(
    app: App, hit: Hit, terms: Collection[str] = (), highlight: Highlight = None
) -> str:
    """One line that stands for the item: its title, else the part of its text that answers."""
    title = quote_text(one_line(hit.title, 200)) if app.read_by_agent and hit.title else hit.title
    tool = short_name(hit.tool) if app.read_by_agent else hit.tool
    head = f"{tool}: " if tool else ""
    return head + (title or _excerpt(app, hit, terms, 110, highlight) or "(empty)")


def format_hit(
    app: App,
    hit: Hit,
    terms: Collection[str] = (),
    highlight: Highlight = None,
    clock: bool = False,
) -> str:
    """`❯ #12  2026-05-19 08:36  0.71  Drop redis  ~40t`; with `clock`, the time of day alone."""
    when = format_minute(int(hit.epoch * 1000))
    score = f"{hit.score:.2f}  " if hit.score and not clock else ""
    title = format_title(app, hit, terms, highlight)
    more = f"  (+{hit.duplicates} alike)" if hit.duplicates else ""
    return (
        f"{item_icon(hit.kind, hit.type)} #{hit.id}  {when[11:] if clock else when}  {score}{title}"
        f"  ~{reading_cost(hit)}t{more}"
    )


def hit_lines(
    app: App, hits: Sequence[Hit], query: str = "", weights: Mapping[str, float] = NO_WEIGHTS
) -> Iterator[str]:
    """A line or two per hit, under the session it comes from."""
    terms = query_terms(query)
    highlight = (lambda word: click.style(word, bold=True, fg="yellow")) if app.terminal else None
    for number, (session, group) in enumerate(group_by_session(hits)):
        first = group[0]
        head = join_names(app, first.project, session[:8] if first.session else "", first.agent)
        yield ("\n" if number else "") + make_bold(head)
        for hit in group:
            yield f"  {format_hit(app, hit, terms, highlight)}"
            if hit.title and " ".join(hit.text.split()).strip("# ") != hit.title:
                yield f"      {_excerpt(app, hit, terms, 160, highlight)}"
            if hit.stale:
                yield f"      ! {hit.stale}"
            yield from (f"      {reason}" for reason in explain_score(hit, weights))


def whole_lines(
    app: App, hits: Sequence[Hit], marked: int = 0, weights: Mapping[str, float] = NO_WEIGHTS
) -> Iterator[str]:
    """Everything there is of each hit."""
    for number, hit in enumerate(hits):
        if number:
            yield RULE
        text = clean_text(hit.text) if app.read_by_agent else hit.text
        day = format_minute(int(hit.epoch * 1000))
        facts = join_names(app, hit.project, hit.kind, hit.type, hit.role, hit.tool)
        mark = f"{MARK} " if hit.id == marked else ""
        yield make_bold(f"{mark}#{hit.id}  ") + " · ".join(filter(None, (facts, day)))
        if hit.session:
            yield f"session {join_names(app, hit.session)}, prompt {hit.prompt_number}"
        if hit.files:
            files = ", ".join(hit.files)
            yield f"files {replace_quotes(one_line(files, 900)) if app.read_by_agent else files}"
        if hit.stale:
            yield f"! {hit.stale}"
        yield from explain_score(hit, weights)
        yield ""
        if hit.title and not hit.text.lstrip("# ").startswith(hit.title.rstrip("…")):
            if app.read_by_agent:
                text = f"{one_line(hit.title, 300)}\n\n{text}"
            else:
                yield make_bold(hit.title) + "\n"
        yield quote_lines(text) if app.read_by_agent else text
