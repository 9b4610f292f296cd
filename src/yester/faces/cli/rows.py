"""Hits and items on the terminal, as plain text, and as JSON: the index form and the full form."""

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
from yester.faces.cli.app import App
from yester.model import Hit
from yester.recall.rank import TOLD
from yester.recall.recall import Answer, group_by_session
from yester.text.document import reading_cost
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

NO_WEIGHTS: Mapping[str, float] = {}
MARK = "▶"  # the one that was asked for, among others


def as_json(hit: Hit, asked: Collection[str], full: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": hit.id, "ref": hit.ref, "kind": hit.kind, "type": hit.type, "project": hit.project,
        "session": hit.session, "title": hit.title, "snippet": find_snippet(hit.text, asked),
        "epoch": hit.epoch, "score": round(hit.score, 4), "factors": hit.factors,
    }  # fmt: skip
    if hit.stale:
        row["stale"] = hit.stale
    if hit.arms:
        row["arms"] = hit.arms
    if full:
        row |= {
            "text": hit.text, "role": hit.role, "tool": hit.tool, "agent": hit.agent,
            "files": hit.files, "prompt_number": hit.prompt_number, "duplicates": hit.duplicates,
        }  # fmt: skip
    return row


def as_explained(answer: Answer) -> dict[str, Any]:
    return {
        "arms": answer.arms, "weights": answer.weights,
        "cut": [{"id": one.item, "score": round(one.score, 4), "why": one.why}
                for one in answer.cut],
        "more": answer.more,
    }  # fmt: skip


def _explained(hit: Hit, weights: Mapping[str, float]) -> Iterator[str]:
    """Who found it, what each factor added of what it could have, and what else is known of it."""
    if hit.arms:
        yield f"found by {', '.join(hit.arms)}"
    for factor, value in hit.factors.items():
        if factor not in TOLD:
            most = f" of {weights[factor]:.3f}" if factor in weights else ""
            yield f"{factor} {value:.3f}{most}"
    facts = [f"{told} {hit.factors[told]:.3f}" for told in TOLD if told in hit.factors]
    if facts:
        yield f"({', '.join(facts)})"


def print_explained(answer: Answer) -> None:
    """What was looked at and left out."""
    found = ", ".join(f"{name} {number}" for name, number in answer.arms.items())
    if found:
        click.echo(f"\nCandidates: {found}")
    for one in answer.cut:
        click.echo(f"left out #{one.item}  {one.score:.2f}  {one.why}")
    if answer.more:
        click.echo(f"left out {answer.more} more that fit less")


def _mark(app: App) -> Callable[[str], str] | None:
    return (lambda word: click.style(word, bold=True, fg="yellow")) if app.terminal else None


def title(
    app: App, hit: Hit, asked: Collection[str], mark: Callable[[str], str] | None = None
) -> str:
    """One line that stands for the item: its title, else the part of its text that answers."""
    if app.read_by_agent:
        text = one_line(hit.title, 200) or find_snippet(clean_text(hit.text), asked, 110)
        return (f"{short_name(hit.tool)}: " if hit.tool else "") + quote_text(text)
    head = f"{hit.tool}: " if hit.tool else ""
    return head + (hit.title or find_snippet(hit.text, asked, 110, mark) or "(empty)")


def names(app: App, *given: str) -> str:
    """shop · 0b5f92c4 · claude-code"""
    return " · ".join(filter(None, map(short_name, given) if app.read_by_agent else given))


def print_index(
    app: App, hits: Sequence[Hit], query: str, weights: Mapping[str, float] = NO_WEIGHTS
) -> None:
    """A line or two per hit, under the session it comes from."""
    asked, mark = query_terms(query), _mark(app)
    for number, (session, group) in enumerate(group_by_session(hits)):
        first = group[0]
        head = names(app, first.project, session[:8] if first.session else "", first.agent)
        click.echo(("\n" if number else "") + click.style(head, bold=True))
        for hit in group:
            score = f"{hit.score:.2f}  " if hit.score else ""
            more = f"  (+{hit.duplicates} alike)" if hit.duplicates else ""
            click.echo(
                f"  {item_icon(hit.kind, hit.type)} #{hit.id}  "
                f"{format_minute(int(hit.epoch * 1000))}  {score}"
                f"{title(app, hit, asked, mark)}  ~{reading_cost(hit)}t{more}"
            )
            if hit.title and not _repeats(hit.title, hit.text):
                click.echo(f"      {_words(app, hit, asked, mark)}")
            if hit.stale:
                click.echo(f"      ! {hit.stale}")
            for told in _explained(hit, weights):
                click.echo(f"      {told}")


def _words(app: App, hit: Hit, asked: Collection[str], mark: Callable[[str], str] | None) -> str:
    if app.read_by_agent:
        return quote_text(find_snippet(clean_text(hit.text), asked, 160))
    return find_snippet(hit.text, asked, 160, mark)


def _repeats(title: str, text: str) -> bool:
    return " ".join(text.split()).strip("# ") == title


def print_full(
    app: App, hits: Sequence[Hit], marked: int = 0, weights: Mapping[str, float] = NO_WEIGHTS
) -> None:
    """Everything there is of each hit."""
    for number, hit in enumerate(hits):
        if number:
            click.echo("\n" + "─" * 72 + "\n")
        text = clean_text(hit.text) if app.read_by_agent else hit.text
        day = format_minute(int(hit.epoch * 1000))
        facts = names(app, hit.project, hit.kind, hit.type, hit.role, hit.tool)
        id_ = f"{MARK} #{hit.id}  " if hit.id == marked else f"#{hit.id}  "
        click.echo(click.style(id_, bold=True) + " · ".join(filter(None, (facts, day))))
        if hit.session:
            click.echo(f"session {names(app, hit.session)}, prompt {hit.prompt_number}")
        if hit.files:
            files = ", ".join(hit.files)
            click.echo(
                f"files {replace_quotes(one_line(files, 900)) if app.read_by_agent else files}"
            )
        if hit.stale:
            click.echo(f"! {hit.stale}")
        for told in _explained(hit, weights):
            click.echo(told)
        click.echo("")
        if hit.title and not hit.text.lstrip("# ").startswith(hit.title.rstrip("…")):
            if app.read_by_agent:
                text = f"{one_line(hit.title, 300)}\n\n{text}"
            else:
                click.echo(click.style(hit.title, bold=True) + "\n")
        click.echo(quote_lines(text) if app.read_by_agent else text)
