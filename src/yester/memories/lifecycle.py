"""The life of a memory: written, changed, retired or archived, superseded, brought back, let go.

    active ──retire──► retired ──30 days, gc──► gone: its ref never comes back
      │  ▲◄─restore──────┘
      ├──archive──► archived ──restore──► active
      └──supersede──► superseded: the newer one shows what it replaces

Only active memories are found or shown to an agent. Every function reads inside the transaction it
writes in, so of several writers none overwrites another, and each change and its line in the
history are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from yester.clock import DAY
from yester.errors import NotFound, NotYours, UsageError
from yester.ingest import prepared, rebuild_if_stale
from yester.memories.categories import category_of
from yester.memories.content import merge_changes
from yester.memories.memory import (
    EDITABLE,
    Author,
    Plain,
    apply_form,
    diff_forms,
    less_trusted_origin,
    normalise_form,
    plain_form,
    shorten_reason,
)
from yester.model import Change, Memo
from yester.store.contract import Store

GRACE = 30 * DAY  # from being retired to being let go
_COMMANDS = {"update": "edit"}  # what the history calls otherwise than the command line
# what is done → the statuses it can be done from, and the one it leads to
STEPS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "retire": (("active", "archived", "superseded"), "retired"),
    "archive": (("active",), "archived"),
    "restore": (("retired", "archived"), "active"),
}


@contextmanager
def writing(store: Store) -> Iterator[None]:
    """A transaction to write memories in."""
    rebuild_if_stale(store)
    with store.transaction("memories"):
        yield


def found(store: Store, id_: int) -> Memo:
    for memo in store.memos(ids=[id_]):
        return memo
    raise NotFound(f"no memory #{id_}; `yester memory list --status all` shows them")


def named(store: Store, name: str) -> Memo:
    """A memory by its id (12 or #12) or its slug."""
    number = name.strip().removeprefix("#")
    if number.isdecimal():
        return found(store, int(number))
    alike = sorted(store.memos(slug=name.strip()), key=lambda memo: memo.item.id)
    if len(alike) > 1:
        ids = ", ".join(f"#{memo.item.id}" for memo in alike)
        raise UsageError(f"{name!r} is the name of {ids}; say which one by its number")
    if not alike:
        raise NotFound(f"no memory {name!r}; `yester memory list --status all` shows them")
    return alike[0]


def write(
    store: Store, old: Memo, values: Plain, by: Author, what: str, act: int = 0, new: bool = False
) -> Memo:
    """One change, inside a transaction: the memory with these settled values and its history line.

    All writing goes through here. Without a difference nothing is written.
    """
    refuse_rules(by, old.item.type, str(values["type"]), old=0 if new else old.item.id, what=what)
    before = {} if new else plain_form(old)
    was, is_ = diff_forms(before, values)
    if not is_:
        return old
    replaces = next(iter(store.memos(ids=[values["supersedes"]])), None)
    memo = apply_form(old, values, by, replaces)
    change = Change(
        memo.item.id,
        by.now,
        shorten_reason(by.who),
        what,
        shorten_reason(by.why),
        None if new else was,
        is_,
        act,
    )
    id_ = store.put_memo(prepared(memo.item), memo, change)
    return found(store, id_)


def refuse_rules(by: Author, *types: str, old: int = 0, what: str = "") -> None:
    """A rule is what the user has said. Nobody else makes, changes or ends one. `old` is the memory
    that something (`what`) would be done to."""
    if by.origin == "user" or "rule" not in types:
        return
    command = f"yester memory {_COMMANDS.get(what, what)} {old}"
    raise NotYours(
        f"a rule must come from you, not from {by.origin} ({by.who}); "
        + (f"change or end #{old} yourself, in the viewer (yester ui) or in your own terminal: "
           f"{command}" if old else
           "type it in your own terminal: yester remember --type rule …")
    )  # fmt: skip


def edit(
    store: Store,
    id_: int,
    change: Callable[[Plain], Mapping[str, Any]],
    by: Author,
    *,
    base: Mapping[str, Any] | None = None,
    root: str = "",
) -> Memo:
    """Change what a memory says. `change` gets its plain form and returns what is different.

    With `base`, the form an editor was given, what others have changed meanwhile is kept.
    """
    with writing(store):
        old = found(store, id_)
        have = plain_form(old)
        if base is not None:
            mine = {**base, **change(dict(base))}
            wanted = merge_changes(base, mine, {name: have[name] for name in base})
        else:
            wanted = {**change(dict(have))}
        for name in wanted:
            if name not in EDITABLE:
                raise UsageError(f"{name!r} cannot be edited; what can is {', '.join(EDITABLE)}")
        values = normalise_form({**have, **wanted}, root)
        if any(values[name] != have[name] for name in ("title", "content")):
            values["origin"] = less_trusted_origin(have["origin"], by.origin)
            if values["type"] == "rule":  # it holds from its newest word on
                values["said"] = by.now
        return write(store, old, values, by, "update")


def say_again(store: Store, memo: Memo, epoch: int, by: Author) -> Memo:
    """A rule whose very words the user has used once more, inside a transaction: it has the date of
    the newest word, whichever is met first."""
    if memo.item.type != "rule" or epoch <= memo.item.epoch:
        return memo
    return write(store, memo, {**plain_form(memo), "said": epoch}, by, "update")


def retire(store: Store, id_: int, by: Author, *, force: bool = False) -> Memo:
    """Take it out of use; after the grace it may be let go.

    What is never deleted (a decision, a preference, a session's summary) needs `force`, which is
    the user's alone.
    """
    memo = found(store, id_)
    if not category_of(memo.item.type).deletable and not (force and by.origin == "user"):
        raise UsageError(
            f"{memo.item.type} #{id_} is not deleted, so that what was once true can be told; "
            f"supersede it (yester memory supersede {id_} …) or archive it (yester memory archive "
            f"{id_})" + ("; --force retires it all the same" if by.origin == "user" else "")
        )
    return _step(store, id_, by, "retire")


def archive(store: Store, id_: int, by: Author) -> Memo:
    """Put it away for good: never shown, never let go."""
    return _step(store, id_, by, "archive")


def restore(store: Store, id_: int, by: Author) -> Memo:
    return _step(store, id_, by, "restore")


def _step(store: Store, id_: int, by: Author, what: str) -> Memo:
    with writing(store):
        return step(store, found(store, id_), by, what)


def step(store: Store, memo: Memo, by: Author, what: str, act: int = 0) -> Memo:
    """Another status, inside a transaction."""
    allowed, status = STEPS[what]
    have = memo.item.status
    if have not in allowed:
        id_, newer = memo.item.id, replaced_by(store, memo.item.id) if have == "superseded" else 0
        told = f"memory #{id_} is {have}{f' by #{newer}' if newer else ''}, so you cannot {what} it"
        undo_it = f"; edit #{newer}, or take back that it was superseded: yester memory undo {id_}"
        raise UsageError(told + (undo_it if newer else ""))
    values = {**plain_form(memo), "status": status, "reason": shorten_reason(by.why)}
    return write(store, memo, values, by, what, act)


def supersede(store: Store, old: int, new: int, by: Author) -> tuple[Memo, Memo]:
    """Let one memory stand in the place of another; (the old one, the new one)."""
    with writing(store):
        return superseded(store, found(store, old), found(store, new), by, 0)


def superseded(store: Store, old: Memo, new: Memo, by: Author, act: int) -> tuple[Memo, Memo]:
    """The same inside a transaction."""
    if old.item.id == new.item.id:
        raise UsageError(f"memory #{old.item.id} cannot supersede itself")
    if new.item.supersedes and new.item.supersedes != old.item.id:
        raise UsageError(
            f"memory #{new.item.id} supersedes #{new.item.supersedes} already; "
            "one memory takes the place of one"
        )
    for memo in (old, new):
        if memo.item.status != "active":
            raise UsageError(
                f"memory #{memo.item.id} is {memo.item.status}; restore it first, or name the one "
                "that is active"
            )
    refuse_rules(by, old.item.type, new.item.type, old=old.item.id, what="supersede")
    changes = {"supersedes": old.item.id}
    written = write(store, new, {**plain_form(new), **changes}, by, "supersede", act)
    act, new = act or _act_of(store, new, written), written
    changed = {"status": "superseded", "reason": f"by #{new.item.id}"}
    return write(store, old, {**plain_form(old), **changed}, by, "supersede", act), new


def _act_of(store: Store, before: Memo, after: Memo) -> int:
    """What was just written belongs to this act; 0 where nothing was written."""
    return 0 if after is before else store.changes(after.item.id, limit=1)[0].act


def replaced_by(store: Store, item: int) -> int:
    """The memory that supersedes this one, or 0."""
    if not item:
        return 0
    return max((memo.item.id for memo in store.memos(supersedes=item)), default=0)


def undo(store: Store, by: Author, id_: int = 0) -> list[Memo]:
    """Take back the last thing that was done, to this memory or at all; what comes out of it.

    Undoing is a change like others: done again, it brings back what was undone.
    """
    with writing(store):
        last = store.changes(id_, limit=1)
        if not last:
            raise NotFound("there is nothing to undo" + (f" for memory #{id_}" if id_ else ""))
        done = store.changes(act=last[0].act)
        for item in {change.item for change in done}:
            newest = store.changes(item, limit=1)[0]
            if newest.act != last[0].act:
                raise UsageError(
                    f"memory #{item} has been changed since ({newest.what}); undo that first: "
                    f"yester memory undo {item}"
                )
        act = 0
        for change in done:
            memo = found(store, change.item)
            before = change.before or {"status": "retired", "reason": "undone"}
            values = {**plain_form(memo), **before}
            new = write(store, memo, values, by.with_reason(f"undo of {change.what}"), "undo", act)
            act = act or _act_of(store, memo, new)
        return [found(store, item) for item in dict.fromkeys(change.item for change in done)]


def undoable(store: Store, id_: int) -> list[Change]:
    """What `undo` of this memory would take back; nothing where it cannot."""
    last = store.changes(id_, limit=1)
    done = store.changes(act=last[0].act) if last else []
    fresh = all(store.changes(one.item, limit=1)[0].act == last[0].act for one in done)
    return done if fresh else []


def as_of(store: Store, memo: Memo, version: int) -> Plain:
    """Its plain form when it had been written so often; UsageError where that is not known."""
    back = memo.version - version
    changes = store.changes(memo.item.id, limit=back) if back > 0 else []
    if back < 0 or len(changes) < back or any(one.before is None for one in changes):
        raise UsageError(
            f"version is {version}, but memory #{memo.item.id} is at version {memo.version}; read "
            "it again"
        )
    values = plain_form(memo)
    for change in changes:  # the newest first
        values |= change.before or {}
    return values


def expired(memo: Memo, now: int) -> bool:
    """Is its grace over?"""
    return memo.item.status == "retired" and memo.since + GRACE <= now


def chain(store: Store, memo: Memo) -> list[Memo]:
    """What it replaces, and what that replaced: the newest first, without itself."""
    seen, older = {memo.item.id}, []
    while (id_ := memo.item.supersedes) and id_ not in seen:
        seen.add(id_)
        before = store.memos(ids=[id_])
        if not before:
            break
        memo = before[0]
        older.append(memo)
    return older


def successors(store: Store, memo: Memo) -> list[Memo]:
    """What replaces it, and what replaces that: the newest last, without itself."""
    seen, newer = {memo.item.id}, list[Memo]()
    while (id_ := replaced_by(store, memo.item.id)) and id_ not in seen:
        seen.add(id_)
        memo = found(store, id_)
        newer.append(memo)
    return newer


def newest(store: Store, memo: Memo) -> Memo:
    """What stands in its place today."""
    return next(reversed(successors(store, memo)), memo)
