"""What a team shares over its server: begun, run, looked at, ended.

Only the user says what goes where: an agent may look, and nothing else.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from yester.errors import NotFound, SourceError, StoreError, UsageError
from yester.memory import Memory
from yester.model import Project, team_user
from yester.operations.forget import forget_marked
from yester.project import bare_project
from yester.redact import redact, secret_kinds
from yester.sharing.exchange import Progress, Side, exchange_lock
from yester.sharing.server import NotAdmitted, TeamServer, check_address
from yester.sharing.share import (
    Share,
    ShareReport,
    Shares,
    Sharing,
    Unshared,
    load_shares,
    load_token,
    save_shares,
    save_token,
)
from yester.sharing.wire import kind_of_line

_KEYS = ("git:", "name:")
_NOBODY = "you"  # who this is on a server that was not asked yet
_STOPPED = "you stopped it"
_THEIRS = "what goes to a server is the user's word: they run `yester share`"


class Refused(Struct, kw_only=True):
    why: str
    items: list[int]


class SharedProject(Struct, kw_only=True):
    project: str
    key: str
    to: str
    user: str
    state: Literal["on", "reading", "ending", "ended"]
    waiting: int
    refused: list[Refused]
    others: dict[str, int]
    last: int
    ended: str
    problems: list[str]


class SharingState(Struct, kw_only=True):
    projects: list[SharedProject]


class Outlook(Struct, kw_only=True):
    """What would be sent: each line as it would go."""

    project: str
    key: str
    to: str
    user: str
    kinds: dict[str, int]
    redacted: dict[str, int]
    stays: dict[str, int]
    lines: list[dict[str, Any]]


# --- looked at ------------------------------------------------------------------------------------


def show_sharing(memory: Memory) -> SharingState:
    """Which projects are shared with which server, what waits, and what was refused."""
    shares = load_shares(memory.home).projects
    return SharingState(projects=[_describe_share(memory, one) for one in shares])


def _describe_share(memory: Memory, share: Share) -> SharedProject:
    store, names = memory.reading, memory.project_names()
    waiting = 0 if share.ended else Unshared(Side(memory.home, store, memory.now), share).count()
    on: Literal["on", "reading"] = "reading" if share.reads else "on"
    return SharedProject(
        project=redact(names.get(share.project) or bare_project(share.project).name),
        key=redact(share.project), to=redact(share.to), user=share.user,
        state="ended" if share.ended else "ending" if share.ending else on, waiting=waiting,
        refused=[Refused(why=redact(why), items=ids) for why, ids in share.refused.items()],
        others=_count_others(memory, share), last=share.last,
        ended=redact(share.ended or share.ending), problems=share.problems,
    )  # fmt: skip


def _count_others(memory: Memory, share: Share) -> dict[str, int]:
    found: Counter[str] = Counter()
    counts = memory.reading.totals("item", ("source",), where={"project": share.project})
    for source, number in counts:
        if user := team_user(source):
            found[user] += number
    return dict(found)


def preview_share(memory: Memory, name: str, url: str = "") -> Outlook:
    """Each line that the next run would send, without sending anything."""
    project = _find_shareable(memory, name)
    _refuse_private(memory, project)
    share = load_shares(memory.home).find(project.key)
    if share is None or share.ended or (url and share.to != url):
        share = Share(project.key, url, _NOBODY, "")
    store = memory.reading
    kinds, redacted = Counter[str](), Counter[str]()
    lines = []
    for one in Unshared(Side(memory.home, store, memory.now), share).tellings():
        if one.line is not None:
            kinds[kind_of_line(one.line)] += 1
            lines.append(one.form)
            kept = store.get([one.row.item]) if one.row is not None and not one.ends else ()
            texts = (text for item in kept for text in item.texts)
            redacted.update(name for text in texts for name in secret_kinds(text))
    totals = store.totals("item", ("kind", "type"), where={"project": project.key})
    stays = {
        type_ or kind: number
        for kind, type_, number in totals
        if kind == "note" or (kind == "memory" and type_ == "rule")
    }
    return Outlook(
        project=redact(project.name), key=redact(project.key), to=redact(share.to),
        user=share.user, kinds=dict(kinds), redacted=dict(redacted), stays=stays, lines=lines,
    )  # fmt: skip


# --- what only the user does ----------------------------------------------------------------------


def _find_shareable(memory: Memory, name: str) -> Project:
    """One that is known here, that of the current folder, or the key of one that others share."""
    try:
        found = memory.find_project(name)
    except NotFound:
        here = memory.current_project
        if memory.cwd and name in (here.name, here.key):
            found = here
        elif name.startswith(_KEYS):
            found = bare_project(name)
        else:
            raise
    if not found.key.startswith(_KEYS):
        raise UsageError(
            f"{found.name} is a folder without a git remote, which others do not have",
            f'give it a name in config.toml: [projects] "{found.root or found.key}" = '
            f'"{found.name}", then run yester index',
        )
    return found


def _refuse_private(memory: Memory, project: Project) -> None:
    if project.key in memory.private_projects:
        raise UsageError(
            f"{project.name} is private (config.toml, [projects]), so it is never shared; "
            f"yester projects --not-private {project.name} says otherwise"
        )


def check_share(memory: Memory, name: str, url: str, plain: bool) -> tuple[Project, str]:
    """The project and the server's address, before anything is asked of anybody; UsageError where
    that project does not go there."""
    memory.require_user(_THEIRS)
    url, project = check_address(url, plain), _find_shareable(memory, name)
    _refuse_private(memory, project)
    share = load_shares(memory.home).find(project.key)
    if share is not None and not share.ended and share.to != url:
        raise UsageError(
            f"{project.name} is shared over {redact(share.to)} already; `yester share "
            f"{project.name} --stop`, then --to {redact(url)}"
        )
    if share is not None and share.ending:
        raise UsageError(f"{project.name} is still to be withdrawn; yester share --now does it")
    return project, url


def begin_share(
    memory: Memory, name: str, url: str, token: str, progress: Progress,
    *, plain: bool = False, trust: Path | None = None,
) -> ShareReport:  # fmt: skip
    """From now on this project's memory goes to that server, and what others share of it comes
    here. Without a token, the one that is known for that server."""
    with exchange_lock(memory.home):
        project, url = check_share(memory, name, url, plain)
        shares = load_shares(memory.home)
        share = shares.find(project.key)
        if share is None or share.ended:
            share = Share(project.key, url, "", os.urandom(8).hex())
        share.plain, share.trust = plain, str(trust.absolute()) if trust else share.trust
        token = token or load_token(memory.home, url)
        sharing = _open_sharing(memory, share, progress, token)
        sharing.meet()  # nothing is kept of what the server does not take
        save_token(memory.home, url, token)
        others = [one for one in shares.projects if one.project != project.key]
        shares.projects = [*others, share]
        with suppress(SourceError):  # it is in the report, and tried again
            return _run_one(memory, shares, sharing)
        return sharing.report


def warn_shared(memory: Memory, private: str) -> str:
    """What becomes of a project that is made private and was shared; "" where it was not."""
    share = load_shares(memory.home).find(memory.find_project(private).key)
    if share is None or share.ended:
        return ""
    return (
        f"{private} is shared over {redact(share.to)}: nothing more is sent, and the next run "
        "withdraws what was (yester share --now does it at once)"
    )


def run_shares(memory: Memory, progress: Progress) -> list[ShareReport]:
    """Read what others have told, tell what they lack, withdraw what is to be: each project by
    itself."""
    memory.require_user(_THEIRS)
    reports = []
    with exchange_lock(memory.home):
        shares = load_shares(memory.home)
        for share in shares.projects:
            sharing = _open_sharing(memory, share, progress)
            if not share.ended:
                try:
                    reports.append(_run_one(memory, shares, sharing))
                except SourceError:  # it stands in the report
                    reports.append(sharing.report)
            elif _count_others(memory, share):  # a backup was put back
                sharing.take_others_out()
    return reports


def stop_share(memory: Memory, name: str, progress: Progress, anyway: bool = False) -> ShareReport:
    """Withdraw what was sent of a project, and share no more of it. What others have shared goes
    from here. `anyway`: also where the server cannot be asked, and what was sent remains there."""
    memory.require_user(_THEIRS)
    project = _find_shareable(memory, name)
    with exchange_lock(memory.home):
        shares = load_shares(memory.home)
        share = shares.find(project.key)
        if share is None:
            raise UsageError(f"{project.name} is not shared")
        if share.ended:  # it was read
            shares.projects.remove(share)
            save_shares(memory.home, shares)
            return ShareReport(share.project, ended=share.ended)
        share.ending = share.ending or _STOPPED
        save_shares(memory.home, shares)
        sharing = _open_sharing(memory, share, progress)
        try:
            report = _run_one(memory, shares, sharing)
        except SourceError as error:
            if not anyway:
                fix = f"yester share {project.name} --stop --anyway ends it here alone"
                again = "" if isinstance(error, NotAdmitted) else "it is tried again; "
                raise SourceError(f"not withdrawn: {error}", f"{again}{fix}") from None
            report = sharing.give_up()
        shares.projects.remove(share)
        save_shares(memory.home, shares)
        _drop_token(memory, shares, share.to)
        return report


def _open_sharing(
    memory: Memory, share: Share, progress: Progress, token: str | None = None
) -> Sharing:
    known = load_token(memory.home, share.to) if token is None else token
    server = TeamServer(share.to, known, plain=share.plain, trust=share.trust)
    forget = forget_marked(memory, progress)
    side = Side(memory.home, memory.store, memory.now, forget, progress)
    return Sharing(side, share, server, lambda key: key in memory.private_projects)


def _run_one(memory: Memory, shares: Shares, sharing: Sharing) -> ShareReport:
    """What has become of it is written down, however it ends."""
    save_shares(memory.home, shares)  # its origin: what is sent under it can be withdrawn
    try:
        return sharing.exchange()
    except StoreError as error:
        sharing.report.problems = sharing.share.problems = [str(error)]
        raise
    finally:
        save_shares(memory.home, shares)
        if sharing.share.ended:
            _drop_token(memory, shares, sharing.share.to)


def _drop_token(memory: Memory, shares: Shares, url: str) -> None:
    if not any(one.to == url and not one.ended for one in shares.projects):
        save_token(memory.home, url, "")
