"""The command that shares projects with a team over its server: share."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from yester.clock import format_minute
from yester.errors import UsageError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.screen import count_noun
from yester.files import read_bytes
from yester.operations import share
from yester.operations.request import NoRequest
from yester.sharing.server import NotAdmitted
from yester.sharing.share import ShareReport, load_shares, load_token
from yester.text.sentences import shorten_text

_HOW = "Share one with: yester share PROJECT --to https://HOST"
_ENDED = "is shared no more: "
_REMAINS = (
    "What you wrote into memories of others is theirs, and stays; members take the rest out at "
    "their next run. Backups of theirs, and of the server, may hold it."
)
_SAMPLES, _IDS = 8, 10


@command("share")
def share_command(
    app: App,
    project: str | None,
    to: str | None,
    token_file: Path | None,
    trust: Path | None,
    plain: bool,
    dry_run: bool,
    now: bool,
    stop: bool,
    anyway: bool,
    quietly: bool,
) -> Output:
    """Share a project's memory with a team over its server; says what is shared, and what waits.

    What was said and done in it and its memories go there, without secrets; what others share of it
    comes here, marked with who it is from. Rules, notes and private projects never leave. The first
    time a token is asked for, which whoever runs the server gives you. From then on the worker does
    it every ten minutes, and --now at once.
    """
    asked = [name for name, one in (("--to", to), ("--now", now), ("--stop", stop)) if one]
    if len(asked) > 1 or (dry_run and (now or stop)):
        raise UsageError("say one of --to, --now, --stop, --dry-run (or --to with it)")
    if project is None and (to or stop or dry_run):
        raise UsageError("say which project: yester share PROJECT …; yester projects lists them")
    if project is None or not (to or stop or dry_run):
        if now or quietly:
            return _run(app, quietly)
        return _show(app, project)
    if dry_run:
        return _preview(share.preview_share(app.memory, project, to or ""))
    if stop:
        report = share.stop_share(app.memory, project, _tell_progress, anyway)
        lines = [*_report_lines(app, report), f"{_name(app, report)} {_ENDED}{report.ended}"]
        return Output({"report": report}, [*lines, _REMAINS])
    assert to is not None
    return _begin(app, project, to, token_file, trust, plain)


def _begin(
    app: App, project: str, to: str, token_file: Path | None, trust: Path | None, plain: bool
) -> Output:
    def begin(token: str) -> ShareReport:
        return share.begin_share(
            app.memory, project, to, token, _tell_progress, plain=plain, trust=trust
        )

    _, to = share.check_share(app.memory, project, to, plain)
    known = "" if token_file else load_token(app.home, to)
    try:
        report = begin(known or _read_token(token_file))
    except NotAdmitted as error:
        if not known or error.status != 401:
            raise
        report = begin(_read_token(None))
    return _answer(app, [report])


def _read_token(file: Path | None) -> str:
    """Never an argument: whoever lists processes would read it. Never a variable: a repository may
    set those."""
    if file is not None:
        try:
            token = read_bytes(file).decode("ascii", "replace").strip()
        except OSError as error:
            raise UsageError(f"{file} cannot be read ({error.strerror})") from None
    elif sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True)).strip()
    else:
        token = sys.stdin.readline().strip()
    if not token:
        raise UsageError("a token is needed; who runs the server makes one: yester team token NAME")
    return token


def _tell_progress(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty() and of > 1:
        click.echo(f"{what} {done}/{of}", err=True)


def _run(app: App, quietly: bool) -> Output:
    if quietly and not load_shares(app.home).projects:
        return Output(())
    reports = share.run_shares(app.memory, (lambda *_: None) if quietly else _tell_progress)
    if quietly:
        return Output((), code=int(any(one.problems for one in reports)))
    return _answer(app, reports)


def _answer(app: App, reports: Sequence[ShareReport]) -> Output:
    state = share.show_sharing(app.memory, NoRequest())
    lines = [line for one in reports for line in _report_lines(app, one)]
    code = int(any(one.problems for one in reports))
    value = {"reports": list(reports), "projects": state.projects}
    return Output(value, [*lines, *_state_lines(state.projects)], code=code)


def _show(app: App, project: str | None) -> Output:
    state = share.show_sharing(app.memory, NoRequest())
    found = [one for one in state.projects if project in (None, one.project, one.key)]
    if project is not None and not found:
        name = app.memory.find_project(project).name
        raise UsageError(f"{name} is not shared; yester share {name} --to https://HOST")
    lines = list(_state_lines(found, details=project is not None))
    return Output({"projects": found}, lines or ["Nothing is shared."], hint="" if found else _HOW)


def _preview(found: share.Outlook) -> Output:
    to, counts = found.to or "the server that you name", _counts(found.kinds)
    lines = [f"Would go of {found.project} to {to}: {counts or 'nothing'}"]
    for form in found.lines[:_SAMPLES]:
        lines.append(f"  {_sample(form)}")
    if len(found.lines) > _SAMPLES:
        lines.append(f"  and {count_noun(len(found.lines) - _SAMPLES, 'line')} more")
    taken = _counts(found.redacted)
    lines.append(f"Taken out on the way: {taken or 'nothing; no secret was found in them'}")
    if found.stays:
        lines.append(f"Stays here: {_counts(found.stays)}")
    return Output(found, lines, hint="nothing was sent; --json shows each line as it would go")


def _counts(kinds: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in kinds.items())


def _sample(form: dict[str, Any]) -> str:
    ((kind, line),) = form.items()
    item = line.get("item") or (line.get("memo") or {}).get("item") or {}
    text = item.get("title") or item.get("body") or line.get("key") or line.get("ref") or ""
    return f"{item.get('kind', kind)}: {shorten_text(' '.join(str(text).split()), 90)}"


def _name(app: App, report: ShareReport) -> str:
    return app.names.get(report.project, report.project)


def _report_lines(app: App, report: ShareReport) -> Iterator[str]:
    name = _name(app, report)
    if report.told:
        yield f"{name}: sent {_counts(report.told)}"
    read = {why: number for why, number in report.outcome.items() if number}
    if read:
        yield f"{name}: read {_counts(read)}"
    if report.beside:
        yield f"written by two at the same time, and both kept: {', '.join(report.beside)}"
    if report.forgotten:
        gone = count_noun(report.forgotten, "item")
        yield f"{name}: {gone} gone from here, since their owners have forgotten them"
    for user, number in report.withdrawn.items():
        yield f"{name}: {count_noun(number, 'item')} of {user} gone from here"
    for why, number in report.passed.items():
        yield f"! {count_noun(number, 'line')} of the server not taken: {why}"


def _state_lines(projects: Sequence[share.SharedProject], details: bool = True) -> Iterator[str]:
    for one in projects:
        between = "" if one.state == "ended" else ":"
        yield f"{one.project}{between} {_describe(one)}"
        for refused in one.refused:
            ids = ", ".join(f"#{item}" for item in refused.items[:_IDS] if item > 0)
            more = " …" if len(refused.items) > _IDS else ""
            where = f" ({ids}{more})" if details and ids else ""
            yield f"  not taken: {count_noun(len(refused.items), 'item')}: {refused.why}{where}"
        yield from (f"! {problem}" for problem in one.problems)


def _describe(one: share.SharedProject) -> str:
    if one.state == "ended":
        return f"{_ENDED}{one.ended} (over {one.to})"
    if one.state == "ending":
        return f"to be withdrawn from {one.to}, since {one.ended}"
    last = format_minute(one.last) if one.last else "never"
    verb = "read" if one.state == "reading" else "shared"
    waits = f"{count_noun(one.waiting, 'line')} waiting" if one.waiting else "nothing waits"
    waiting = f"; {waits}" if one.state == "on" else ""
    theirs = ", ".join(f"{number:,} of {user}" for user, number in one.others.items())
    from_others = f"; here of others: {theirs}" if theirs else ""
    return f"{verb} over {one.to} as {one.user}, last in step: {last}{waiting}{from_others}"
