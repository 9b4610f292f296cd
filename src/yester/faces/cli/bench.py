"""`yester bench`: how well recall does on what is really stored here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import click

from yester.bench import (
    DEPTH,
    LEAST_QUESTIONS,
    METRICS,
    Mean,
    Question,
    Report,
    make_questions,
    measure_recall,
    read_history,
)
from yester.faces.cli.app import App, count, filters, pass_app, print_json
from yester.model import ANYTHING, Hit, Item, Paging
from yester.store.contract import Store

_PAGE = 2_000  # items read at a time
_ROWS = {"recall": "recall", "newest": "newest first", "random": "random"}
_NOT_MEASURED = """\
A right answer is an earlier session that changed the same files: two sessions may share a file and
no topic, and a session may help that changed none of them. So compare the rows with each other,
and recall with itself before and after a change. Not measured: whether an answer helped, questions
in the middle of a session, what other projects know, and when to show nothing at all."""


@click.group("bench")
def command() -> None:
    """Measure recall on your own history."""


@command.command("self")
@click.option("--project", "-p", "projects", multiple=True, metavar="NAME",
              help="Only this project (repeatable).")  # fmt: skip
@click.option("--limit", "-n", type=click.IntRange(LEAST_QUESTIONS, 100_000), default=200,
              show_default=True, help="At most this many questions.")  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def self_(app: App, projects: tuple[str, ...], limit: int, as_json_: bool) -> None:
    """Ask the first prompts of past sessions again, as of the moment each session began.

    Right answers are earlier sessions of the project that changed the same files. Beside recall
    stand the newest sessions first, and the average of all orders there are. It only reads, and
    nothing leaves this machine.
    """
    from yester.deliver.gate import trivial
    from yester.faces.python import OpenMemory

    chosen = filters(app, {"projects": projects}).projects
    keys = {key for key, name in app.names.items() if key in chosen or name in chosen}
    items = (item for item in _every_item(app.reading) if not keys or item.project in keys)
    past = read_history(items, trivial)
    asked = make_questions(past, limit)
    if len(asked) < LEAST_QUESTIONS:
        if as_json_:
            print_json({"questions": len(asked), "sessions": len(past)})
        else:
            click.echo(_too_few(len(asked), len(past)), err=True)
        click.get_current_context().exit(1)
    memory = OpenMemory(app.home, os.environ, ask_worker=None)

    def recall(question: Question) -> Sequence[Hit]:
        begun = question.begun / 1000
        return memory.recall(
            question.prompt, DEPTH, project=question.project, scope="project",
            until=begun, now=begun, explain=False,
        )  # fmt: skip

    report = measure_recall(asked, recall)
    waiting = app.reading.totals("unembedded")[0][0]
    if as_json_:
        print_json({**asdict(report), "sessions": len(past), "unembedded": waiting})
        return
    click.echo(
        f"{count(report.questions, 'question')} from {count(len(past), 'session')} "
        f"in {count(report.projects, 'project')}; on average {report.relevant:.1f} of "
        f"{report.earlier:.0f} earlier sessions are right\n"
    )
    _print_table(report)
    click.echo(f"\n{_verdict(report)}")
    if waiting:
        click.echo(f"{count(waiting, 'item')} wait for vectors: found by words alone until then.")
    click.echo(f"\n{_NOT_MEASURED}")


def _too_few(asked: int, sessions: int) -> str:
    return (
        f"Not enough history: {count(asked, 'question')} from {count(sessions, 'session')}, "
        f"and {LEAST_QUESTIONS} are needed.\nA question is a session that begins with a prompt "
        "which says something and changes files\nthat one of at least eleven earlier sessions of "
        "the project had changed."
    )


def _print_table(report: Report) -> None:
    click.echo(" " * 14 + "".join(f"{metric:<24}" for metric in METRICS).rstrip())
    for name, label in _ROWS.items():
        cells = (f"{_shown(report.rankings[name][metric]):<24}" for metric in METRICS)
        click.echo(f"{label:<14}{''.join(cells)}".rstrip())


def _shown(mean: Mean, sign: str = "") -> str:
    return f"{mean.mean:{sign}.3f} ({mean.low:{sign}.3f} to {mean.high:{sign}.3f})"


def _verdict(report: Report) -> str:
    gain = report.gain["recall@10"]
    words = "more" if gain.low > 0 else "less" if gain.high < 0 else "no clear difference"
    return (
        f"Recall against newest first, recall@10: {_shown(gain, '+')}: {words}.\n"
        "In brackets: 95 % intervals (bootstrap over the questions)."
    )


def _every_item(store: Store) -> Iterator[Item]:
    """Page by page: all of it at once may be more than there is memory."""
    page = Paging(_PAGE, oldest_first=True, by_id=True)
    while found := store.select(ANYTHING, page):
        yield from found
        page = replace(page, after=found[-1].id)
