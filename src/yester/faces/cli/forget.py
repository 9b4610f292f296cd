"""The commands that take things out for good, and say what there is: forget, redact, privacy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from yester.clock import format_day
from yester.errors import UsageError, YesterError
from yester.faces.cli import screen
from yester.faces.cli.app import App, Output, command, read_id, read_secret, tell_progress
from yester.faces.cli.services import drain_spool, rest_worker
from yester.operations import forget
from yester.operations.privacy import Privacy, VerifyRequest, show_privacy, verify_absence
from yester.operations.request import make_request

_HOW = "Nothing was done. Do it with: --yes"
_SHOWN = 8  # paths


@command("forget", fenced=True)
def forget_command(
    app: App, /, names: tuple[str, ...], since: str, until: str, verify: bool, **given: Any
) -> Output:
    """Take items out for good, by ID (#12 or 12) or by what they are; shows what would go.

    With --yes it goes, and all that came of it: cards, summaries, rules, vectors, lines of ledgers
    and archives, in the store and in every backup. It does not come back with the next `yester
    index` or `yester restore`. There is no undo. Your agent's own transcripts are listed, not
    touched.

    With --verify the arguments are texts: every byte that yester owns is searched for them. Without
    any, they are read from standard input, a line each. Exit code 1: there is one.
    """
    if verify:
        return _verify_absence(app, names)
    given |= {"dateStart": since, "dateEnd": until, "files": list(given["files"])}
    ids = [read_id(name, "words are searched for with --query") for name in names]
    request = make_request(forget.ForgetRequest, {}, given | {"ids": ids})
    _take_in_spool(app, request.yes)
    found = forget.forget_items(app.memory, request, tell_progress)
    return Output(found, _forgetting_lines(found), hint="" if request.yes else _HOW)


def _take_in_spool(app: App, yes: bool) -> None:
    """What waits is part of what there is. Then the worker ends: it may be writing."""
    with suppress(YesterError):  # what cannot be taken in is looked at where it is
        drain_spool(app.home)
    if yes:
        rest_worker(app.home)


def _forgetting_lines(found: forget.Forgetting) -> Iterator[str]:
    yield found.message
    if found.items:
        span = f"{format_day(found.oldest)} to {format_day(found.newest)}"
        yield f"  {screen.describe_items(found.kinds)}; {span}"
    if found.derived:
        yield f"  {found.derived:,} of these were made from the others (cards, summaries, rules)"
    if found.marked:
        ids = ", ".join(f"#{id_}" for id_ in found.marked)
        yield f"  memories that stay without this evidence: {ids}"
    samples = [
        (f"  #{one.id}", one.kind, format_day(one.date), one.project, one.title)
        for one in found.samples
    ]
    yield from screen.align_rows(samples, screen.terminal_width(sys.stdout), flexible=4)
    yield from _backup_lines(found)
    if found.elsewhere:
        yield "It stands elsewhere too, where yester leaves it alone. To remove it there:"
    for other in found.elsewhere[:_SHOWN]:
        named = other.path in other.command  # it need not be said twice
        yield f"  {other.command}" if named else f"  {other.path}\n    {other.command}"
    if (more := len(found.elsewhere) - _SHOWN) > 0:
        yield f"  and {more:,} more (--json lists them)"


def _backup_lines(found: forget.Removal) -> Iterator[str]:
    if found.backups:
        told = "written anew" if found.done else "to be written anew"
        yield f"  {screen.count_noun(len(found.backups), 'backup')} {told}"
    for name, why in found.dropped.items():
        yield f"  backup {name} could not be read and is gone ({why})"


def _verify_absence(app: App, strings: tuple[str, ...]) -> Output:
    given = list(strings) or [line for line in sys.stdin.read().splitlines() if line]
    request = make_request(VerifyRequest, {}, {"strings": given})
    found = verify_absence(app.memory, request)
    lines = [found.message, f"  as {', '.join(found.forms)}; upper and lower case alike"]
    lines += [f"  {one.path}: text {one.string}, {one.times} times" for one in found.found]
    return Output(found, lines, code=int(not found.absent))


@command("redact")
def redact_command(app: App, again: bool, secret: bool, yes: bool) -> Output:
    """Take secrets out of what is stored already, and out of every backup.

    --again applies the rules of this version to everything: it counts what it would take out, by
    kind, and does it with --yes. --secret asks for a value, which is not shown and not kept, takes
    it out everywhere at once, and keeps it out for ever. There is no undo.
    """
    if again == secret:
        raise UsageError("say --again or --secret")
    _take_in_spool(app, yes or secret)
    if secret:
        found = forget.redact_secret(app.memory, read_secret("The secret"), tell_progress)
    else:
        found = forget.redact_again(app.memory, forget.RedactRequest(yes=yes), tell_progress)
    kinds = [f"  {number:,}  {name}" for name, number in found.secrets.items()]
    lines = [found.message, *kinds, *_backup_lines(found)]
    return Output(found, lines, hint="" if found.done else _HOW)


@command("privacy")
def privacy_command(app: App) -> Output:
    """Say what is stored about what, since when, how big, and what would leave this machine."""
    found = show_privacy(app.memory)
    return Output(found, _privacy_lines(found))


def _privacy_lines(found: Privacy) -> Iterator[str]:
    yield f"Stored in {found.home}, readable for you alone:"
    yield from screen.table_lines([
        {"project": one.project + (" (private)" if one.private else ""), "items": one.items,
         "prompts": one.kinds.get("prompt", 0), "characters": one.characters,
         "from": format_day(one.oldest), "to": format_day(one.newest)}
        for one in found.projects
    ])  # fmt: skip
    yield ""
    for file in found.files:
        size = f"{file.bytes / 1e6:,.1f} MB"
        yield f"  {file.what}: {screen.count_noun(file.files, 'file')}, {size}"
    yield f"\nExcluded, so that nothing is kept of it: {', '.join(found.excluded) or 'nothing'}"
    yield "What leaves this machine:" + ("" if found.leaves else " nothing")
    yield from (f"  {one.what} → {one.where}  ({one.setting})" for one in found.leaves)
    kept_out = f"{found.named_secrets} named secrets, {found.forgotten:,} marks of forgotten things"
    yield f"Kept out for ever: {kept_out}"
    if found.unfinished:
        yield "A forget or redact was interrupted; `yester forget --yes` finishes it"
