"""What stores tell each other, a line a record: a JSON object with one name.

    {"machine": {"name": "laptop", …}}     who writes
    {"forgotten": {"key": …, "marks": …}}  what was forgotten there (`yester.tombstones`)
    {"project": …} {"session": …}          where things happened, without any path
    {"item": {"item": …, "hash": …}}       immutable by (source, kind, ref) and hash
    {"memory": {"memo": …, "mark": …}}     a version of a structured memory, and its parents
    {"gone": {"kind": …, "ref": …}}        what was distilled, and is distilled otherwise by now
    {"withdrawn": {"user": …}}             a member of a team shares no more of a project

Nothing names another record by the id it has in one store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct, structs

from yester import model
from yester.errors import SourceError
from yester.ingest.prepare import prepare_item
from yester.memories.memory import TRUST, Plain
from yester.redact import may_hold_secrets, redact, redact_value
from yester.text.document import content_hash
from yester.tombstones import Key, Marks

_FOREIGN = "import"  # what has come from elsewhere: never distilled, never a rule, trusted little
_NEVER = object()  # what no value is
_OWN = ("was", "anew", "origin", "place")  # fields of lines between machines of one owner
MOST_LINES = 500  # that a server takes or tells at once
FORGOTTEN = "forgotten"  # in place of a memory, for sets of marks that the log has
FOR_EVER = 1 << 52  # ms; the time of a mark that nothing is newer than
GONE = "gone:"  # how the mark of a version begins that says: it was let go


class MachineLine(Struct, frozen=True):
    name: str
    at: int  # by its clock, for people: nothing is ordered by it


class ForgottenLine(Struct, frozen=True):
    key: bytes
    marks: bytes
    user: str = ""  # of a team: whose it was, which the server says


class ItemLine(Struct, frozen=True):
    item: model.Item
    hash: str
    of: tuple[tuple[int, model.Identity], ...] = ()  # what a distilled one was made of, by fact
    supersedes: model.Identity | None = None
    was: str = ""  # the ref it had before
    anew: bool = False  # said again after it had been forgotten
    origin: str = ""  # the machine it is from, where another one tells it …
    place: int = 0  # … and the segment there


class MemoryLine(Struct, frozen=True):
    """A version of a memory: what it became, and the versions it was made of. `source` and `ref`
    name the memory, whatever this one of two is called; without a memo it was let go."""

    source: str
    ref: str
    mark: str
    parents: tuple[str, ...] = ()
    memo: model.Memo | None = None
    supersedes: model.Identity | None = None
    who: str = ""
    why: str = ""
    at: int = 0
    anew: bool = False


class GoneLine(Struct, frozen=True):
    kind: str
    ref: str
    origin: str = ""
    place: int = 0
    source: str = model.DISTILLED


class WithdrawnLine(Struct, frozen=True):
    user: str


Line = (
    MachineLine | ForgottenLine | model.Project | model.Session | ItemLine | MemoryLine | GoneLine
    | WithdrawnLine
)  # fmt: skip
_KINDS: dict[str, type[Line]] = {
    "machine": MachineLine, "forgotten": ForgottenLine, "project": model.Project,
    "session": model.Session, "item": ItemLine, "memory": MemoryLine, "gone": GoneLine,
    "withdrawn": WithdrawnLine,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}


def kind_of_line(line: Line | None) -> str:
    """What reports call it; "" where there is none."""
    return _NAMES[type(line)] if line is not None else ""


def encode_line(line: Line) -> bytes:
    return msgspec.json.encode(form_line(line)) + b"\n"


def decode_line(data: bytes) -> Line | None:
    """None: a record that a newer yester knows; SourceError where it makes no sense."""
    try:
        return parse_line(msgspec.json.decode(data, type=dict[str, Any]))
    except msgspec.MsgspecError as error:
        raise SourceError(f"a line is not understood ({error})") from None


def form_line(line: Line) -> dict[str, Any]:
    """A line as an object of JSON."""
    return {_NAMES[type(line)]: told_fields(line)}


def parse_line(form: dict[str, Any]) -> Line | None:
    """The same back, as `decode_line` does."""
    try:
        ((name, value),) = form.items()
        return msgspec.convert(value, _KINDS[name]) if name in _KINDS else None
    except (msgspec.MsgspecError, ValueError) as error:
        raise SourceError(f"a line is not understood ({error})") from None


def told_fields(record: Struct) -> dict[str, Any]:
    """What of a record is not as it is by default."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    usual = _usual_values(type(record))
    told = {name: value for name, value in plain.items() if value != usual.get(name, _NEVER)}
    nested = ((name, getattr(record, name)) for name in told)
    return told | {name: told_fields(one) for name, one in nested if isinstance(one, Struct)}


@cache
def _usual_values(kind: type[Struct]) -> dict[str, Any]:
    fields = ((one.name, one.default, one.default_factory) for one in structs.fields(kind))
    given = ((name, usual if callable(make) is False else make()) for name, usual, make in fields)
    return {name: usual for name, usual in given if usual is not msgspec.NODEFAULT}


# --- out -----------------------------------------------------------------------------------------


def hash_item(item: model.Item) -> str:
    return content_hash(item).hex()


def clean_item(item: model.Item) -> model.Item:
    """Without secrets by today's rules, which may be newer than the item."""
    if not may_hold_secrets("\n".join(item.texts)):
        return item
    return prepare_item(item, cut=False).item


def clean_memo(memo: model.Memo) -> model.Memo:
    """The same of a structured memory."""
    return model.replace(
        memo, item=clean_item(memo.item), version=0, slug=redact(memo.slug),
        content=redact_value(memo.content), reason=redact(memo.reason),
    )  # fmt: skip


def clean_session(session: model.Session) -> model.Session:
    """Without secrets, and without what only its machine knows of it."""
    return model.replace(
        session, id=0, items=0, prompts=0, cwd="", transcript="",
        title=redact(session.title), branch=redact(session.branch),
    )  # fmt: skip


def drop_own(line: Line) -> Line:
    """A line without what only one of the owner's machines tells another."""
    usual = _usual_values(type(line))
    return model.replace(line, **{name: usual[name] for name in _OWN if name in usual})


# --- versions of memories ------------------------------------------------------------------------

Versions = Mapping[str, Collection[str]]  # of a memory: the parents of each mark
_BESIDE = "~"  # what follows it in a ref names one of two versions that were written side by side


def family_ref(ref: str) -> str:
    """What a memory is called, of which this one may stand beside another."""
    name, beside, mark = ref.rpartition(_BESIDE)
    plain = len(mark) == 8 and not mark.strip("0123456789abcdef")
    return family_ref(name) if beside and plain else ref


def root_of(source: str, ref: str) -> str:
    """A digest of what a memory is called: the log's rows hold no words."""
    return _digest_value([source, family_ref(ref)])


def mark_form(form: Plain, supersedes: model.Identity | None, parents: Collection[str]) -> str:
    """The version of a memory that says this, and was made of these."""
    return _digest_value([form | {"supersedes": supersedes}, sorted(parents)])


def mark_of_set(marks: Marks) -> str:
    return blake2b(marks.key + marks.records, digest_size=16).hexdigest()


def _digest_value(value: Any) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).hexdigest()


def find_heads(versions: Versions) -> list[str]:
    """The versions (mark → parents) of which no other was made; one that was let go counts only
    where there is no other."""
    old = {parent for parents in versions.values() for parent in parents}
    heads = sorted(mark for mark in versions if mark not in old)
    return [mark for mark in heads if not mark.startswith(GONE)] or heads[:1]


def name_heads(ref: str, versions: Versions) -> dict[str, str]:
    """What each version is called: of two that were made of the same one, the first in the order of
    their marks keeps its name. The same wherever the same versions are known."""
    children: dict[str, list[str]] = {}
    for mark, parents in versions.items():
        children.setdefault(min(parents, default=""), []).append(mark)
    names: dict[str, str] = {}
    waiting = [("", ref)]
    tops = [mark for mark in children if mark and mark not in versions]  # of which none was told
    children[""] = [*children.get("", ()), *tops]
    while waiting:
        parent, name = waiting.pop()
        own = sorted(children.get(parent, ()), key=lambda one: (one.startswith(GONE), one))
        for at, mark in enumerate(own):
            names[mark] = f"{name}{_BESIDE}{mark[:8]}" if at else name
            waiting.append((mark, names[mark]))
    return names


# --- a team's names ------------------------------------------------------------------------------

# A member's name stands before the source of what is theirs, and before the key of its session, so
# that two members' never mix.


def to_team(name: str, user: str) -> str:
    return name if name.startswith(model.TEAM) else model.team_name(user, name)


def from_team(name: str, user: str) -> str:
    return name.partition(":")[2].partition(":")[2] if model.team_user(name) == user else name


def team_key(identity: model.Identity, user: str) -> Key:
    """What the digest of an item is made of; one for all versions of a memory."""
    source, kind, ref = identity
    return ("ref", to_team(source, user), kind, family_ref(ref) if kind == "memory" else ref)


def _rename_line(
    line: Line,
    user: str,
    rename: Callable[[str, str], str],
    item: Callable[[model.Item], model.Item],
) -> Line:
    """A line with other names: `item` gives the one that is told."""

    def rename_identity(identity: model.Identity | None) -> model.Identity | None:
        return identity and (rename(identity[0], user), *identity[1:])

    match line:
        case model.Session():
            return model.replace(line, key=rename(line.key, user))
        case GoneLine():
            return model.replace(line, source=rename(line.source, user))
        case ItemLine():
            of = tuple((n, (rename(one[0], user), *one[1:])) for n, one in line.of)
            return model.replace(
                line, item=item(line.item), of=of, supersedes=rename_identity(line.supersedes)
            )
        case MemoryLine():
            memo = line.memo and model.replace(line.memo, item=item(line.memo.item))
            source, over = rename(line.source, user), rename_identity(line.supersedes)
            return model.replace(line, source=source, memo=memo, supersedes=over)
    return line


def tell_team(line: Line, user: str) -> Line:
    """A line of a store as its team is told it: by the team's names, without places of this machine
    and without what only this store makes of it."""
    line = _rename_line(drop_own(line), user, to_team, lambda item: _tell_item(item, user))
    match line:
        case model.Session():
            return model.replace(line, title="", branch="")
        case MemoryLine():
            return model.replace(line, who=user)
    return line


def _tell_item(item: model.Item, user: str) -> model.Item:
    return model.replace(
        item, id=0, alias="", changes=(), files_read=_drop_places(item.files_read),
        files_modified=_drop_places(item.files_modified), source=to_team(item.source, user),
        session=item.session and to_team(item.session, user),
        actor="" if item.actor.startswith(model.TEAM) else item.actor,
    )  # fmt: skip


def _drop_places(files: tuple[str, ...]) -> tuple[str, ...]:
    """What lies outside of a project is this machine's."""
    return tuple(one for one in files if not PurePath(one).is_absolute())


def clean_line(line: Line) -> Line:
    """Without secrets by the rules of whoever reads it, and without places of a machine."""
    line = drop_own(line)
    match line:
        case model.Session():
            return clean_session(line)
        case ItemLine():
            return model.replace(line, item=clean_item(line.item))
        case MemoryLine():
            return model.replace(
                line, memo=line.memo and clean_memo(line.memo), why=redact(line.why)
            )
    return line


def read_team(line: Line, user: str) -> Line:
    """A team's line as the store of this user keeps it: what is theirs under its own name, and all
    of it as what it is, something that has come from elsewhere."""
    who = line.who if isinstance(line, MemoryLine) else ""
    return _rename_line(line, user, from_team, lambda item: _read_item(item, user, who))


def _read_item(item: model.Item, user: str, who: str) -> model.Item:
    source = from_team(item.source, user)
    # Of a memory of the user's own, it must be seen who has written it last.
    written = who and who != user and not source.startswith(model.TEAM)
    return model.replace(
        item, source=source, session=from_team(item.session, user), origin=_FOREIGN,
        trust=min(item.trust, TRUST[_FOREIGN]),
        actor=model.team_name(who, "") if written else item.actor,
    )  # fmt: skip
