"""A digest on the terminal and as JSON, for `yester recall --digest`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from yester.deliver.lines import one_line, quote_text
from yester.errors import ConfigError
from yester.faces.cli.app import App
from yester.model import Hit

if TYPE_CHECKING:
    from yester.llm.digest import Digest


def make_digest(app: App, query: str, hits: Sequence[Hit]) -> Digest:
    """Imported when asked for: a plain search pays nothing for it."""
    from yester.llm.digest import Digest, digest_hits, extract_headings

    if app.config["llm.provider"] == "none" or not hits:
        return Digest(extract_headings(query, hits))
    from yester.llm.budget import open_asker

    try:
        asker = open_asker(app.config, app.store, _tell)
    except ConfigError as error:
        made = Digest(extract_headings(query, hits), reason=str(error))
    else:
        made = digest_hits(query, hits, asker)
    if made.reason:
        _tell(f"the digest is made without a language model: {made.reason}")
    return made


def _tell(text: str) -> None:
    click.echo(f"yester: {text}", err=True)


def print_digest(app: App, made: Digest) -> None:
    from yester.llm.questions import HEADINGS

    for name, heading in HEADINGS.items():
        entries = getattr(made.headings, name)
        if not entries:
            continue
        click.echo(click.style(heading, bold=True))
        for entry in entries:
            numbers = " ".join(f"#{item}" for item in entry.items[:6])
            text = quote_text(one_line(entry.text, 600)) if app.read_by_agent else entry.text
            click.echo(f"  - {text}  {click.style(numbers, dim=True)}")
    if not made.headings:
        click.echo("No sentence of the hits tells of a decision, an attempt or a warning.")
    click.echo("")
