"""Hits and items on the terminal, as plain text, and as JSON: the index form and the full form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import click

from yester.cli.app import App
from yester.deliver.lines import icon
from yester.model import Hit
from yester.recall.rank import TOLD
from yester.recall.recall import Answer, by_session
from yester.recall.snippet import snippet
from yester.text.terms import query_terms

NO_WEIGHTS: Mapping[str, float] = {}
MARK = "▶"  # the one that was asked for, among others


def tokens(text: str) -> int:
    """What the full form would cost a model, about."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4


def as_json(hit: Hit, asked: Collection[str], full: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": hit.id, "ref": hit.ref, "kind": hit.kind, "type": hit.type, "project": hit.project,
        "session": hit.session, "title": hit.title, "snippet": snippet(hit.text, asked),
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
    for name, value in hit.factors.items():
        if name not in TOLD:
            most = f" of {weights[name]:.3f}" if name in weights else ""
            yield f"{name} {value:.3f}{most}"
    facts = [f"{name} {hit.factors[name]:.3f}" for name in TOLD if name in hit.factors]
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


def title(hit: Hit, asked: Collection[str], mark: Callable[[str], str] | None = None) -> str:
    """One line that stands for the item: its title, else the part of its text that answers."""
    head = f"{hit.tool}: " if hit.tool else ""
    return head + (hit.title or snippet(hit.text, asked, 110, mark) or "(empty)")


def print_index(
    app: App, hits: Sequence[Hit], query: str, weights: Mapping[str, float] = NO_WEIGHTS
) -> None:
    """A line or two per hit, under the session it comes from."""
    asked, mark = query_terms(query), _mark(app)
    for number, (session, group) in enumerate(by_session(hits)):
        first = group[0]
        head = " · ".join(
            filter(None, [first.project, session[:8] if first.session else "", first.agent])
        )
        click.echo(("\n" if number else "") + click.style(head, bold=True))
        for hit in group:
            score = f"{hit.score:.2f}  " if hit.score else ""
            more = f"  (+{hit.duplicates} alike)" if hit.duplicates else ""
            click.echo(
                f"  {icon(hit.kind, hit.type)} #{hit.id}  {app.day(int(hit.epoch * 1000))}  {score}"
                f"{title(hit, asked, mark)}  ~{tokens(hit.text)}t{more}"
            )
            if hit.title and not _repeats(hit.title, hit.text):
                click.echo(f"      {snippet(hit.text, asked, 160, mark)}")
            if hit.stale:
                click.echo(f"      ! {hit.stale}")
            for line in _explained(hit, weights):
                click.echo(f"      {line}")


def _repeats(title: str, text: str) -> bool:
    return " ".join(text.split()).strip("# ") == title


def print_full(
    app: App, hits: Sequence[Hit], marked: int = 0, weights: Mapping[str, float] = NO_WEIGHTS
) -> None:
    """Everything there is of each hit."""
    for number, hit in enumerate(hits):
        if number:
            click.echo("\n" + "─" * 72 + "\n")
        facts = [
            hit.project,
            hit.kind,
            hit.type,
            hit.role,
            hit.tool,
            app.day(int(hit.epoch * 1000)),
        ]
        name = f"{MARK} #{hit.id}  " if hit.id == marked else f"#{hit.id}  "
        click.echo(click.style(name, bold=True) + " · ".join(filter(None, facts)))
        if hit.session:
            click.echo(f"session {hit.session}, prompt {hit.prompt_number}")
        if hit.files:
            click.echo(f"files {', '.join(hit.files)}")
        if hit.stale:
            click.echo(f"! {hit.stale}")
        for line in _explained(hit, weights):
            click.echo(line)
        click.echo("")
        if hit.title and not hit.text.lstrip("# ").startswith(hit.title.rstrip("…")):
            click.echo(click.style(hit.title, bold=True) + "\n")
        click.echo(hit.text)
