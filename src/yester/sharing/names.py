"""What a store calls its items, and what its team calls them: a member's name stands before the
source of what is theirs, and before the key of its session, so that two members' never mix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from yester.memories.memory import TRUST
from yester.model import TEAM, Identity, Item, Session, replace, team_name, team_user
from yester.redact import redact
from yester.sharing.lines import (
    GoneLine,
    ItemLine,
    Line,
    MemoryLine,
    clean_item,
    clean_memo,
    clean_session,
    drop_own,
    family_ref,
)
from yester.tombstones import Key

_FOREIGN = "import"  # what has come from elsewhere: never distilled, never a rule, trusted little
FOR_EVER = 1 << 52  # ms; the time of a mark that nothing is newer than


def to_team(name: str, user: str) -> str:
    return name if name.startswith(TEAM) else team_name(user, name)


def from_team(name: str, user: str) -> str:
    return name.partition(":")[2].partition(":")[2] if team_user(name) == user else name


def team_key(identity: Identity, user: str) -> Key:
    """What the digest of an item is made of; one for all versions of a memory."""
    source, kind, ref = identity
    return ("ref", to_team(source, user), kind, family_ref(ref) if kind == "memory" else ref)


def _rename_line(
    line: Line, user: str, rename: Callable[[str, str], str], item: Callable[[Item], Item]
) -> Line:
    """A line with other names: `item` gives the one that is told."""

    def named(identity: Identity | None) -> Identity | None:
        return identity and (rename(identity[0], user), *identity[1:])

    match line:
        case Session():
            return replace(line, key=rename(line.key, user))
        case GoneLine():
            return replace(line, source=rename(line.source, user))
        case ItemLine():
            of = tuple((n, (rename(one[0], user), *one[1:])) for n, one in line.of)
            return replace(line, item=item(line.item), of=of, supersedes=named(line.supersedes))
        case MemoryLine():
            memo = line.memo and replace(line.memo, item=item(line.memo.item))
            source, over = rename(line.source, user), named(line.supersedes)
            return replace(line, source=source, memo=memo, supersedes=over)
    return line


def tell_team(line: Line, user: str) -> Line:
    """A line of a store as its team is told it: by the team's names, without places of this machine
    and without what only this store makes of it."""
    line = _rename_line(drop_own(line), user, to_team, lambda item: _tell_item(item, user))
    match line:
        case Session():
            return replace(line, title="", branch="")
        case MemoryLine():
            return replace(line, who=user)
    return line


def _tell_item(item: Item, user: str) -> Item:
    return replace(
        item, id=0, alias="", changes=(), files_read=_drop_places(item.files_read),
        files_modified=_drop_places(item.files_modified), source=to_team(item.source, user),
        session=item.session and to_team(item.session, user),
        actor="" if item.actor.startswith(TEAM) else item.actor,
    )  # fmt: skip


def _drop_places(files: tuple[str, ...]) -> tuple[str, ...]:
    """What lies outside of a project is this machine's."""
    return tuple(one for one in files if not PurePath(one).is_absolute())


def clean_line(line: Line) -> Line:
    """Without secrets by the rules of whoever reads it, and without places of a machine."""
    line = drop_own(line)
    match line:
        case Session():
            return clean_session(line)
        case ItemLine():
            return replace(line, item=clean_item(line.item))
        case MemoryLine():
            return replace(line, memo=line.memo and clean_memo(line.memo), why=redact(line.why))
    return line


def read_team(line: Line, user: str) -> Line:
    """A team's line as the store of this user keeps it: what is theirs under its own name, and all
    of it as what it is, something that has come from elsewhere."""
    who = line.who if isinstance(line, MemoryLine) else ""
    return _rename_line(line, user, from_team, lambda item: _read_item(item, user, who))


def _read_item(item: Item, user: str, who: str) -> Item:
    source = from_team(item.source, user)
    # Of a memory of the user's own, it must be seen who has written it last.
    written = who and who != user and not source.startswith(TEAM)
    return replace(
        item, source=source, session=from_team(item.session, user), origin=_FOREIGN,
        trust=min(item.trust, TRUST[_FOREIGN]),
        actor=team_name(who, "") if written else item.actor,
    )  # fmt: skip
