"""`yester` alone: what there is on this machine, in one screen, and the next step."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS
from yester.capture.question import ask_health
from yester.clock import format_day
from yester.faces.cli.app import App, Output
from yester.faces.cli.screen import Whole, count_noun, make_bold, style_text
from yester.operate import install
from yester.operations.findings import Finding, find_findings
from yester.store.figures import Counts, content_counts

_LOOK = 3.0  # seconds for which transcripts are counted
_RATE = 6e6  # bytes of transcripts that are indexed in a second, about


def show_welcome(app: App) -> Output:
    app.records = False  # nothing is made by looking
    exists = app.memory.exists()
    counts = content_counts(app.reading)
    if exists and any(counts.items.values()):
        return Output(None, _stored_lines(app, counts, find_findings(app.memory)))
    return Output(None, _found_lines(app))


def _found_lines(app: App) -> Iterator[str]:
    """Nothing is stored yet: what could be read."""
    sessions, size, oldest, newest, began = Counter[str](), 0, 0.0, 0.0, time.monotonic()
    for agent in AGENTS.values():
        for path in find_transcripts(agent, app.config):
            try:
                about = path.stat()
            except OSError:
                continue
            sessions[agent.label] += 1
            size += about.st_size
            oldest = min(oldest or about.st_mtime, about.st_mtime)
            newest = max(newest, about.st_mtime)
            if time.monotonic() > began + _LOOK:
                break
    yield "yester: long-term memory for coding agents. It stays on this machine.\n"
    if not sessions:
        yield "No sessions of coding agents were found here, so there is nothing to read yet."
        yield _next_step(
            "yester install", "lets your agents use it; what they do from then on is kept"
        )
        yield _next_step("yester index FOLDER", "reads transcripts that lie elsewhere")
        return
    agents = ", ".join(f"{number:,} of {name}" for name, number in sessions.most_common())
    days = dict.fromkeys((format_day(int(oldest * 1000)), format_day(int(newest * 1000))))
    yield f"Found {count_noun(sessions.total(), 'session')}: {agents}"
    yield f"  {size / 1e6:,.1f} MB, {' to '.join(days)}. None of it is in yester's memory yet.\n"
    took = "seconds" if size < 60 * _RATE else f"about {size / _RATE / 60:.0f} min"
    yield _next_step("yester index", f"reads them ({took}; stop it whenever you like)")
    if not _installed_in(app):
        yield _next_step("yester install", "lets your agents use it (asks first)")
    yield "\nAll commands: yester --help"


def _stored_lines(app: App, counts: Counts, found: list[Finding]) -> Iterator[str]:
    agents, worker = _installed_in(app), ask_health(app.home)
    kept = f"{count_noun(counts.sessions, 'session')} in {count_noun(counts.projects, 'project')}"
    since = f", since {format_day(counts.oldest)}" if counts.oldest else ""
    yield make_bold(f"yester remembers {kept}{since}.")
    if agents:
        running = "the worker runs" if worker else "the worker starts with the next session"
        yield f"It is used by {', '.join(agents)}; {running}."
    else:
        yield "No agent uses it yet."
    if found:
        yield ""
        yield from describe_findings(found)
    yield ""
    if not agents:
        yield _next_step("yester install", "lets your agents use it (asks first)")
    if undistilled := app.reading.totals("undistilled")[0][0]:
        what = f"looks through {count_noun(undistilled, 'session')} for findings"
        yield _next_step("yester distil --backfill", what)
    yield _next_step('yester recall "why did we …"', "asks")
    yield _next_step("yester ui", "opens the viewer")
    yield "\nAll commands: yester --help"


def describe_findings(found: list[Finding]) -> Iterator[str]:
    yield make_bold("From your own history:")
    for one in found:
        yield f"  {one.project}: {one.text}" if one.project else f"  {one.text}"
        yield Whole(f"      keep:    {one.keep}")
        yield Whole(f"      dismiss: {one.dismiss}")


def _next_step(words: str, what: str) -> str:
    return f"  {style_text(f'{words:<28}', '1')}  {what}"


def _installed_in(app: App) -> list[str]:
    there = install.recorded_places(app.home)
    return list(dict.fromkeys(place.agent.label for place in there if place.is_installed))
