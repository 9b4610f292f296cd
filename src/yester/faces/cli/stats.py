"""The commands that count and measure: stats, projects, bench; and `yester` alone, which shows what
there is on this machine in one screen, and the next step."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from msgspec import structs

from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS
from yester.capture.question import ask_health
from yester.clock import DAY, format_day
from yester.context.talk import trivial
from yester.errors import ConfigError
from yester.faces.cli import screen
from yester.faces.cli.app import App, Output, choose_filters, command, print_note
from yester.llm.budget import day_of, known_prices, open_asker
from yester.memory import Memory
from yester.model import Filters, Hit, replace
from yester.operate import bench, install
from yester.operations import stats as figures
from yester.operations.findings import Finding, find_findings
from yester.recall.recall import Asked
from yester.store import walk_items
from yester.store.figures import Counts, Refinements, content_counts, refinement_totals
from yester.tables import load_table

_MOST_DAYS = 366  # of errors day by day


@command("stats")
def stats_command(app: App, days: int, prices: bool) -> Output:
    """Show what the memory holds, what language models have cost, what agents were shown and what
    came of it, and the errors that runs showed.

    Costs are by day (UTC), model and purpose (with the version of what is asked); calls that were
    not made or could not be used are counted with the reason. Discovery tokens are what an item was
    made from, read tokens what it costs to read.
    """
    if prices:
        return _show_prices()
    request, since = figures.StatsRequest(days=days), day_of(app.now) - (days - 1) * DAY
    contents = figures.count_contents(app.memory, request)
    spend = figures.count_spending(app.memory, request)
    series = figures.count_days(app.memory, figures.SeriesRequest(days=min(days, _MOST_DAYS)))
    refined, llm = refinement_totals(app.reading, since), _describe_llm(app)
    value = structs.asdict(contents) | structs.asdict(spend)
    return Output(
        {**value, "llm": llm, "refined": refined._asdict(), "errors": _error_rows(series)},
        chain(_total_lines(contents, spend, llm), _stats_lines(contents, spend, refined, series)),
    )


@command("projects")
def projects_command(
    app: App, private: tuple[str, ...], shared: tuple[str, ...], joined: tuple[str, ...]
) -> Output:
    """List projects, and keep what one remembers inside it (--private).

    A folder that names a project's remote without holding its first commit (a shallow clone, a copy
    that began anew) is a project of its own until you say that it is the same (--join).
    """
    from yester.operations import projects
    from yester.operations.share import warn_shared

    for names, kept in ((private, True), (shared, False)):
        for name in names:
            projects.set_private(app.memory, projects.PrivateRequest(key=name, private=kept))
    for folder in joined:
        done = projects.join_folder(app.memory, projects.JoinRequest(folder=folder))
        items = screen.count_noun(done.items, "item")
        print_note(f"{done.folder} belongs to {done.project} now, with {items} stored before")
    warnings = filter(None, [warn_shared(app.memory, name) for name in private])
    found = projects.list_projects(app.memory)
    nothing = "No projects yet. Run: yester index"
    lines = screen.table_lines(found.projects, "", "name", "private", "items", "sessions", "root")
    return Output(found, lines, nothing, found.projects, warnings=warnings)


def _total_lines(
    contents: figures.Stats, spend: figures.Spend, llm: dict[str, Any]
) -> Iterator[str]:
    today, limits, price = spend.today, spend.limits, llm["price"]
    model = ", ".join(filter(None, (llm["provider"], llm["model"])))
    if price:
        model += f" (${price.read:.2f} in and ${price.written:.2f} out per million tokens)"
    unset = llm["provider"] == "none"
    return screen.fact_lines(9, {
        "items": screen.describe_items(contents.items),
        "llm": "none is set; nothing is sent and nothing costs anything" if unset else model,
        "": llm["problem"] and f"not used: {llm['problem']}",
        "today": (today.tokens or not unset) and f"${today.cost:.4f} of ${limits.dollars:.2f}, "
                 f"{today.tokens:,} of {limits.tokens:,} tokens",
    }.items())  # fmt: skip


def _describe_llm(app: App) -> dict[str, Any]:
    """What is set, and what is wrong with it: nothing is asked to find out."""
    found: dict[str, Any] = {
        "provider": app.config["llm.provider"], "model": app.config["llm.model"] or None,
        "price": None, "problem": None,
    }  # fmt: skip
    try:
        if asker := open_asker(app.config, app.reading):
            found |= {"model": asker.model.name, "price": asker.price}
    except ConfigError as error:
        found["problem"] = str(error)
    return found


def _error_rows(series: figures.Series) -> list[dict[str, Any]]:
    """The days on which runs showed errors."""
    days = zip(series.days, series.errors_met, series.errors_ended, strict=True)
    return [{"day": day, "met": met, "ended": ended} for day, met, ended in days if met]


def _stats_lines(
    contents: figures.Stats, spend: figures.Spend, refined: Refinements, series: figures.Series
) -> Iterator[str]:
    days = screen.count_noun(contents.days, "day")
    if refined.turns or refined.kept:
        turns = screen.count_noun(refined.turns, "turn")
        why = f"; the last of these: {refined.reason}" if refined.reason else ""
        yield f"refined    {turns} in {days}, {refined.kept:,} kept as found{why}"
    calls = [row if row.outcome else replace(row, outcome="under way") for row in spend.spend]
    for rows, title in (
        (calls, f"spent in {days} (UTC)"),
        (contents.distilled, "what it took to find out, and what it costs to read"),
        (contents.shown, f"shown to agents in {days}"),
        (contents.reflexes, f"told at the moment of action in {days}, and what followed"),
        (_error_rows(series), f"errors in {days} (UTC)"),
    ):
        yield from screen.table_lines(rows, title)
    if contents.distilled or contents.shown:
        yield contents.note


def _show_prices() -> Output:
    prices, as_of = known_prices(), load_table("prices")["as_of"]
    rows = [{"model": name, "in": one.read, "out": one.written} for name, one in prices.items()]
    title = f"dollars for a million tokens, as of {as_of}; llm.price goes over it"
    return Output({"as_of": as_of, "dollars_per_million": prices}, screen.table_lines(rows, title))


# --- how well recall does on what is really stored here -------------------------------------------

_ROWS = {"recall": "recall", "newest": "newest first", "random": "random"}
_TOO_FEW = (
    f"Not enough history: {{}} from {{}}, and {bench.LEAST_QUESTIONS} are needed.\n"
    "A question is a session that begins with a meaningful prompt and changes files that one of at "
    "least eleven earlier sessions of the project had changed."
)
_NOT_MEASURED = (
    "A right answer is an earlier session that changed the same files. Two sessions may share a "
    "file and no topic, and a session may help that changed none of them. So compare the rows with "
    "each other, and recall with itself before and after a change. Not measured: whether an answer "
    "helped, questions in the middle of a session, what other projects know, and when to show "
    "nothing at all."
)


@command("bench self")
def self_command(app: App, projects: tuple[str, ...], limit: int) -> Output:
    """Ask the first prompts of past sessions again, as of the moment each session began.

    Right answers are earlier sessions of the project that changed the same files. Beside recall
    stand the newest sessions first, and the average of all orders there are. It only reads, and
    nothing leaves this machine.
    """
    chosen = choose_filters(app.memory, {"projects": projects}).projects
    keys = {key for key, name in app.names.items() if key in chosen or name in chosen}
    items = (item for item in walk_items(app.reading) if not keys or item.project in keys)
    past = bench.read_history(items, trivial)
    asked = bench.make_questions(past, limit)
    if len(asked) < bench.LEAST_QUESTIONS:
        value = {"questions": len(asked), "sessions": len(past)}
        questions = screen.count_noun(len(asked), "question")
        sessions = screen.count_noun(len(past), "session")
        return Output(value, (), _TOO_FEW.format(questions, sessions))
    with Memory(app.home, os.environ, ask_worker=None, database=app.database) as memory:

        def recall(question: bench.Question) -> Sequence[Hit]:
            session = question.session
            filters = Filters((session.project,), until=session.begun)
            request = Asked(session.prompt, filters, bench.DEPTH, now=session.begun)
            return memory.answer(request).hits

        report = bench.measure_recall(asked, recall)
    waiting = app.reading.totals("unembedded")[0][0]
    return Output(
        {**structs.asdict(report), "sessions": len(past), "unembedded": waiting},
        _report_lines(report, len(past), waiting),
    )


def _report_lines(report: bench.Report, sessions: int, waiting: int) -> Iterator[str]:
    yield (
        f"{screen.count_noun(report.questions, 'question')} from "
        f"{screen.count_noun(sessions, 'session')} in "
        f"{screen.count_noun(report.projects, 'project')}; on average {report.relevant:.1f} of "
        f"{report.earlier:.0f} earlier sessions are right\n"
    )
    yield from screen.table_lines([
        {"ranking": label}
        | {name: _format_mean(mean) for name, mean in report.rankings[of].items()}
        for of, label in _ROWS.items()
    ])  # fmt: skip
    gain = report.gain["recall@10"]
    verdict = "more" if gain.low > 0 else "less" if gain.high < 0 else "no clear difference"
    yield (
        f"\nRecall against newest first, recall@10: {_format_mean(gain, '+')}: {verdict}.\n"
        "In brackets: 95 % intervals (bootstrap over the questions)."
    )
    if waiting:
        items = screen.count_noun(waiting, "item")
        yield f"{items} wait for vectors: found by words alone until then."
    yield f"\n{_NOT_MEASURED}"


def _format_mean(mean: bench.Mean, sign: str = "") -> str:
    return f"{mean.mean:{sign}.3f} ({mean.low:{sign}.3f} to {mean.high:{sign}.3f})"


# --- at a glance ----------------------------------------------------------------------------------

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
    found, deadline = list[tuple[str, os.stat_result]](), time.monotonic() + _LOOK
    for agent in AGENTS.values():
        for path in find_transcripts(agent, app.config):
            with suppress(OSError):
                found.append((agent.label, path.stat()))
            if time.monotonic() > deadline:
                break
    yield "yester: long-term memory for coding agents. It stays on this machine.\n"
    if not found:
        yield "No sessions of coding agents were found here, so there is nothing to read yet."
        used = "lets your agents use it; what they do from then on is kept"
        yield _next_step("yester install", used)
        yield _next_step("yester index FOLDER", "reads transcripts that lie elsewhere")
        return
    sessions, size = Counter(name for name, _ in found), sum(one.st_size for _, one in found)
    agents = ", ".join(f"{number:,} of {name}" for name, number in sessions.most_common())
    times = sorted(one.st_mtime for _, one in found)
    days = dict.fromkeys(format_day(int(at * 1000)) for at in (times[0], times[-1]))
    yield f"Found {screen.count_noun(len(found), 'session')}: {agents}"
    yield f"  {size / 1e6:,.1f} MB, {' to '.join(days)}. None of it is in yester's memory yet.\n"
    took = "seconds" if size < 60 * _RATE else f"about {size / _RATE / 60:.0f} min"
    yield _next_step("yester index", f"reads them ({took}; stop it whenever you like)")
    if not _installed_in(app):
        yield _next_step("yester install", "lets your agents use it (asks first)")
    yield "\nAll commands: yester --help"


def _stored_lines(app: App, counts: Counts, found: list[Finding]) -> Iterator[str]:
    agents, worker = _installed_in(app), ask_health(app.home)
    projects = screen.count_noun(counts.projects, "project")
    kept = f"{screen.count_noun(counts.sessions, 'session')} in {projects}"
    since = f", since {format_day(counts.oldest)}" if counts.oldest else ""
    yield screen.make_bold(f"yester remembers {kept}{since}.")
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
        what = f"looks through {screen.count_noun(undistilled, 'session')} for findings"
        yield _next_step("yester distil --backfill", what)
    yield _next_step('yester recall "why did we …"', "asks")
    yield _next_step("yester ui", "opens the viewer")
    yield "\nAll commands: yester --help"


def describe_findings(found: list[Finding]) -> Iterator[str]:
    yield screen.make_bold("From your own history:")
    for one in found:
        yield f"  {one.project}: {one.text}" if one.project else f"  {one.text}"
        yield screen.Whole(f"      keep:    {one.keep}")
        yield screen.Whole(f"      dismiss: {one.dismiss}")


def _next_step(words: str, what: str) -> str:
    return f"  {screen.style_text(f'{words:<28}', '1')}  {what}"


def _installed_in(app: App) -> list[str]:
    there = install.recorded_places(app.home)
    return list(dict.fromkeys(place.agent.label for place in there if place.is_installed))
