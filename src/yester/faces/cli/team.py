"""Who may use a server for many: the commands of whoever owns its database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from yester.agents.descriptors import find_agent_here
from yester.caller import Role, Scope
from yester.clock import DAY, format_day, format_minute
from yester.errors import NotYours, UsageError
from yester.faces.cli.app import App, Output, command, read_address
from yester.faces.cli.screen import count_noun
from yester.store import is_server_url, open_directory

if TYPE_CHECKING:
    from yester.store.postgres.team import Directory

_ROLE = (
    "the server's own role is missing: as one who may make roles, CREATE ROLE yester_app NOLOGIN;"
    " then run this again"
)


Answer = Callable[..., Output]


def _team_command(name: str) -> Callable[[Answer], click.Command]:
    """A command about the accounts of a database, which its owner alone opens."""

    def decorate(answer: Answer) -> click.Command:
        @wraps(answer)
        def run(app: App, /, database: str, **given: Any) -> Output:
            if find_agent_here():
                raise NotYours("who may use a server is the user's to say", "yester team is theirs")
            url = read_address(database) or app.database
            if not is_server_url(url):
                raise UsageError("say which database: --database postgresql://OWNER@HOST/DATABASE")
            with open_directory(url, app.now) as directory:
                return answer(app, directory, **given)

        return command(f"team {name}")(run)

    return decorate


@_team_command("init")
def team_init_command(app: App, directory: Directory, owner: str) -> Output:
    """Make the tables where there are none, the tenant that the address names, and its first owner.

    Prints the owner's token, once. After an update of yester, and when the server's role was made
    later: run it again; whoever is in stays in, and who is known gets another token.
    """
    ready = directory.protect_tables()
    known = [one.role for one in directory.accounts() if one.name == owner and not one.ended]
    if known not in ([], ["owner"]):
        raise UsageError(f"{owner} is {known[0]} here; yester team add {owner} --role owner")
    directory.put_account(owner, "owner")
    made = _issue_token(app, directory, owner, "team init", 90)
    lines = [f"tenant {directory.tenant} is ready; {owner} is its owner", *made.lines]
    return made._replace(lines=lines, warnings=[] if ready else [_ROLE])


@_team_command("add")
def team_add_command(_: App, directory: Directory, name: str, role: Role) -> Output:
    """Let somebody in, or give somebody another role; their tokens can do no more than it allows.

    An owner may do everything, a member read and write, a reader read.
    """
    directory.put_account(name, role)
    return Output({"user": name, "role": role}, [f"{name} is {role}"])


@_team_command("remove")
def team_remove_command(_: App, directory: Directory, name: str) -> Output:
    """Let somebody in no longer; what they wrote stays."""
    ended = directory.end_account(name)
    lines = [f"{name} is out; {count_noun(ended, 'token')} ended"]
    return Output({"user": name, "tokens": ended}, lines)


@_team_command("users")
def team_users_command(_: App, directory: Directory) -> Output:
    """List who is in, with their roles and how many tokens are good."""
    found = directory.accounts()
    lines = [
        f"{one.name:<20} {'out' if one.ended else one.role:<7} {count_noun(one.tokens, 'token')}"
        for one in found
    ]
    return Output({"users": found}, lines, "nobody is in; yester team init NAME", found)


@_team_command("token")
def team_token_command(
    app: App, directory: Directory, user: str, label: str, days: int, **allowed: Sequence[Any]
) -> Output:
    """Make a token for somebody, and print it, once.

    It goes into the header `Authorization: Bearer TOKEN`.
    """
    return _issue_token(app, directory, user, label, days, **allowed)


def _issue_token(
    app: App, directory: Directory, user: str, label: str, days: int,
    scopes: Sequence[Scope] = (), projects: Sequence[str] = (),
) -> Output:  # fmt: skip
    """Without scopes or projects whatever the role allows."""
    expires = app.now + days * DAY if days else 0
    number, token = directory.issue_token(user, label, scopes, projects, expires)
    value = {
        "tenant": directory.tenant, "user": user, "number": number, "token": token,
        "expires": expires,
    }  # fmt: skip
    hint = "the token is shown this once; the database keeps its hash alone"
    return Output(value, [token], hint=hint)


@_team_command("tokens")
def team_tokens_command(app: App, directory: Directory) -> Output:
    """List tokens by number: whose, what for, until when, and when each was last used."""
    found = directory.tokens()
    lines = []
    for one in found:
        ends = f"{'until' if one.expires > app.now else 'ended'} {format_day(one.expires)}"
        state = "revoked" if one.revoked else ends if one.expires else "for good"
        used = f"used {format_minute(one.used)}" if one.used else "never used"
        where = f" in {', '.join(one.projects)}" if one.projects else ""
        name = f" ({one.name})" if one.name else ""
        lines.append(
            f"{one.id:>4} {one.user}{name}: {', '.join(one.scopes)}{where}; {state}; {used}"
        )
    nothing = "there is none; yester team token NAME makes one"
    return Output({"tokens": found}, lines, nothing, found)


@_team_command("revoke")
def team_revoke_command(_: App, directory: Directory, ids: Sequence[str]) -> Output:
    """End tokens by their numbers (yester team tokens); from now on they open nothing."""
    if wrong := [one for one in ids if not one.isdecimal()]:
        raise UsageError(f"{wrong[0]!r} is no number of a token; yester team tokens lists them")
    found = [(one, directory.revoke_token(int(one))) for one in ids]
    lines = [f"token {number} of {user} is revoked" for number, user in found]
    return Output({"revoked": [int(number) for number, _ in found]}, lines)


@_team_command("members")
def team_members_command(
    _: App, directory: Directory, project: str, names: Sequence[str], everybody: bool
) -> Output:
    """Make a project the named users' alone, or the whole tenant's again.

    For everybody else it is as if it were not there: in no answer, no number, no list.
    """
    if bool(names) == everybody:
        raise UsageError("name the members, or say --everybody")
    name = directory.limit_project(project, names)
    whose = ", ".join(names) if names else "everybody"
    return Output({"project": name, "members": [*names]}, [f"{name} is seen by {whose}"])


@_team_command("audit")
def team_audit_command(_: App, directory: Directory, limit: int) -> Output:
    """Show what was written, changed and refused, the newest first."""
    found = directory.audit(limit)
    lines = [
        f"{format_minute(one.epoch)} {one.user or '(database)'}"
        f"{f' [{one.token}]' if one.token else ''} {one.action} {one.about} {one.outcome}"
        for one in found
    ]
    return Output({"acts": found}, lines, "nothing yet", found)
