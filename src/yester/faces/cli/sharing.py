"""The commands by which memory goes elsewhere, without secrets: roam, to the user's own machines;
share, to a team."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from yester.clock import format_minute
from yester.errors import UsageError
from yester.faces.cli.app import App, Output, command, read_secret, tell_progress
from yester.faces.cli.screen import count_noun, describe_items, join_kinds
from yester.operations import roam, share
from yester.sharing.keys import Key
from yester.sharing.roam import Report, load_roaming
from yester.sharing.server import NotAdmitted
from yester.sharing.share import ShareReport, load_shares, load_token
from yester.text.sentences import shorten_text

# --- one's own machines ---------------------------------------------------------------------------

_ROAM_HOW = "Begin with: yester roam --to FOLDER | ssh://HOST/FOLDER | git+ssh://HOST/REPOSITORY"


@command("roam")
def roam_command(
    app: App, /, to: str | None, join: str | None, code_file: Path | None, new_key: bool,
    stop: bool, dry_run: bool, quietly: bool,
) -> Output:  # fmt: skip
    """Keep your own machines in step, without a server; says which there are and what waits.

    Each machine writes an encrypted log into a place that all of them reach: a folder (synced by
    whatever you use), a folder behind ssh, a branch of a git repository. The first one begins it
    with --to and prints a recovery code; the others --join with that code. From then on the worker
    keeps them in step, and `yester roam` does so at once. Private projects never leave.
    """
    if sum(map(bool, (to, join, new_key, stop, dry_run and not to))) > 1:
        raise UsageError("say one of --to, --join, --new-key, --stop, --dry-run (or --to with it)")
    memory, key = app.memory, None
    if dry_run:
        return _preview_roam(app)
    if quietly:
        if load_roaming(app.home) is not None:
            roam.run_roam(memory, lambda *_: None)
        return Output(())
    if stop:
        said = roam.stop_roam(memory)
        return Output({"remains": said}, ["Stopped; everything here stays.", said])
    if to:
        key, report = roam.begin_roam(memory, to, tell_progress)
    elif join:
        code = read_secret("Recovery code", code_file)
        report = roam.join_roam(memory, join, code, tell_progress)
    elif new_key:
        key, report = roam.renew_key(memory, tell_progress)
    elif load_roaming(app.home) is None or memory.origin != "user":
        state = roam.show_roam(memory)
        return Output(state, _roam_lines(state), hint="" if state.on else _ROAM_HOW)
    else:
        report = roam.run_roam(memory, tell_progress)
    state = roam.show_roam(memory)
    value = {"report": report, "state": state} | ({"code": key.code} if key else {})
    lines = [*_key_lines(key), *_exchange_lines(report), *_roam_lines(state)]
    return Output(value, lines, code=int(bool(report.problems)))


def _preview_roam(app: App) -> Output:
    found = roam.preview_roam(app.memory)
    to = found.to or "the place that you name"
    lines = [f"Would go to {to}: {count_noun(found.items, 'item')}"]
    lines += [f"  {name}: {describe_items(kinds)}" for name, kinds in found.projects.items()]
    if found.private:
        lines.append(f"Stays here, of private projects: {count_noun(found.private, 'item')}")
    return Output(found, lines, hint="nothing was sent")


def _key_lines(key: Key | None) -> Iterator[str]:
    if key is not None:
        yield "Recovery code; every other machine joins with it, and without it nobody reads the"
        yield f"log. Keep it where this machine is not:\n\n  {key.code}\n"


def _exchange_lines(report: Report) -> Iterator[str]:
    if report.read:
        read = join_kinds(report.outcome) or "nothing new"
        yield f"read {count_noun(report.read, 'segment')}: {read}"
    if report.written:
        size = f"{report.bytes_written / 1e6:,.2f} MB"
        yield f"written {count_noun(report.written, 'segment')}, {size}"
    if report.beside:
        names = ", ".join(report.beside)
        yield f"written on two machines at the same time, and both kept: {names}"


def _roam_lines(state: roam.RoamState) -> Iterator[str]:
    if state.on:
        last = format_minute(state.last) if state.last else "never"
        yield f"{state.to}, last in step: {last}"
    for one in state.machines:
        own = " (this one)" if one.own else f", {count_noun(one.items, 'item')} from there"
        seen = f", wrote {format_minute(one.seen)}" if one.seen else ""
        yield f"  {one.name or '?'} [{one.machine}]{own}{seen}"
    if state.on:
        private = f" (and {state.private:,} private, which stay)" if state.private else ""
        yield f"  waiting: {count_noun(state.waiting - state.private, 'item')}{private}"
    yield from (f"! {one}" for one in state.problems)


# --- a team ---------------------------------------------------------------------------------------

_SHARE_HOW = "Share one with: yester share PROJECT --to https://HOST"
_ENDED = "is shared no more: "
_REMAINS = (
    "What you wrote into memories of others is theirs, and stays; members take the rest out at "
    "their next run. Backups of theirs, and of the server, may hold it."
)
_SAMPLES, _IDS = 8, 10


@command("share")
def share_command(
    app: App, /, project: str | None, to: str | None, token_file: Path | None, trust: Path | None,
    plain: bool, dry_run: bool, now: bool, stop: bool, anyway: bool, quietly: bool,
) -> Output:  # fmt: skip
    """Share a project's memory with a team over its server; says what is shared, and what waits.

    What was said and done in it and its memories go there, without secrets; what others share of it
    comes here, marked with who it is from. Rules, notes and private projects never leave. The first
    time a token is asked for, which whoever runs the server gives you. From then on the worker does
    it every ten minutes, and --now at once.
    """
    if sum(map(bool, (to, now, stop))) > 1 or (dry_run and (now or stop)):
        raise UsageError("say one of --to, --now, --stop, --dry-run (or --to with it)")
    if project is None and (to or stop or dry_run):
        raise UsageError("say which project: yester share PROJECT …; yester projects lists them")
    if dry_run and project:
        return _preview_share(share.preview_share(app.memory, project, to or ""))
    if stop and project:
        report = share.stop_share(app.memory, project, tell_progress, anyway)
        lines = [*_share_lines(app, report), f"{_name(app, report)} {_ENDED}{report.ended}"]
        return Output({"report": report}, [*lines, _REMAINS])
    if to and project:
        return _begin_share(app, project, to, token_file, trust, plain)
    return _run_shares(app, quietly) if now or quietly else _show_shares(app, project)


def _begin_share(
    app: App, project: str, to: str, token_file: Path | None, trust: Path | None, plain: bool
) -> Output:
    _, to = share.check_share(app.memory, project, to, plain)
    known = "" if token_file else load_token(app.home, to)
    begin = partial(share.begin_share, app.memory, project, to, plain=plain, trust=trust)
    try:
        report = begin(known or _read_token(token_file), tell_progress)
    except NotAdmitted as error:
        if not known or error.status != 401:
            raise
        report = begin(_read_token(None), tell_progress)
    return _answer_shares(app, [report])


def _read_token(file: Path | None) -> str:
    if token := read_secret("Token", file).strip():
        return token
    raise UsageError("a token is needed; who runs the server makes one: yester team token NAME")


def _run_shares(app: App, quietly: bool) -> Output:
    if not quietly:
        return _answer_shares(app, share.run_shares(app.memory, tell_progress))
    known = load_shares(app.home).projects
    reports = share.run_shares(app.memory, lambda *_: None) if known else []
    return Output((), code=int(any(one.problems for one in reports)))


def _answer_shares(app: App, reports: Sequence[ShareReport]) -> Output:
    state = share.show_sharing(app.memory)
    lines = [line for one in reports for line in _share_lines(app, one)]
    code = int(any(one.problems for one in reports))
    value = {"reports": list(reports), "projects": state.projects}
    return Output(value, [*lines, *_shared_lines(state.projects)], code=code)


def _show_shares(app: App, project: str | None) -> Output:
    state = share.show_sharing(app.memory)
    found = [one for one in state.projects if project in (None, one.project, one.key)]
    if project is not None and not found:
        name = app.memory.find_project(project).name
        raise UsageError(f"{name} is not shared; yester share {name} --to https://HOST")
    lines = list(_shared_lines(found, details=project is not None)) or ["Nothing is shared."]
    return Output({"projects": found}, lines, hint="" if found else _SHARE_HOW)


def _preview_share(found: share.Outlook) -> Output:
    to = found.to or "the server that you name"
    lines = [f"Would go of {found.project} to {to}: {join_kinds(found.kinds) or 'nothing'}"]
    lines += [f"  {_sample(form)}" for form in found.lines[:_SAMPLES]]
    if len(found.lines) > _SAMPLES:
        lines.append(f"  and {count_noun(len(found.lines) - _SAMPLES, 'line')} more")
    taken = join_kinds(found.redacted) or "nothing; no secret was found in them"
    lines.append(f"Taken out on the way: {taken}")
    if found.stays:
        lines.append(f"Stays here: {join_kinds(found.stays)}")
    return Output(found, lines, hint="nothing was sent; --json shows each line as it would go")


def _sample(form: Mapping[str, Any]) -> str:
    ((kind, line),) = form.items()
    item = line.get("item") or (line.get("memo") or {}).get("item") or {}
    text = item.get("title") or item.get("body") or line.get("key") or line.get("ref") or ""
    return f"{item.get('kind', kind)}: {shorten_text(' '.join(str(text).split()), 90)}"


def _name(app: App, report: ShareReport) -> str:
    return app.names.get(report.project, report.project)


def _share_lines(app: App, report: ShareReport) -> Iterator[str]:
    name = _name(app, report)
    if report.told:
        yield f"{name}: sent {join_kinds(report.told)}"
    if read := join_kinds(report.outcome):
        yield f"{name}: read {read}"
    if report.beside:
        yield f"written by two at the same time, and both kept: {', '.join(report.beside)}"
    if report.forgotten:
        gone = count_noun(report.forgotten, "item")
        yield f"{name}: {gone} gone from here, since their owners have forgotten them"
    for user, number in report.withdrawn.items():
        yield f"{name}: {count_noun(number, 'item')} of {user} gone from here"
    for why, number in report.passed.items():
        yield f"! {count_noun(number, 'line')} of the server not taken: {why}"


def _shared_lines(projects: Sequence[share.SharedProject], details: bool = True) -> Iterator[str]:
    for one in projects:
        between = "" if one.state == "ended" else ":"
        yield f"{one.project}{between} {_describe_share(one)}"
        for refused in one.refused:
            ids = ", ".join(f"#{item}" for item in refused.items[:_IDS] if item > 0)
            more = " …" if len(refused.items) > _IDS else ""
            where = f" ({ids}{more})" if details and ids else ""
            yield f"  not taken: {count_noun(len(refused.items), 'item')}: {refused.why}{where}"
        yield from (f"! {problem}" for problem in one.problems)


def _describe_share(one: share.SharedProject) -> str:
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
