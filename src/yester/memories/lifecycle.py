"""The life of a memory: written, changed, retired or archived, superseded, brought back, let go.

    active ──retire──► retired ──30 days, gc──► gone: its ref never comes back
      │  ▲◄─restore──────┘
      ├──archive──► archived ──restore──► active
      └──supersede──► superseded: the newer one shows what it replaces
    proposed ──keep──► active, ──drop──► archived: a rule that waits for the user's yes

Only active memories are found or shown to an agent. Every function reads inside the transaction it
writes in, so of several writers none overwrites another, and each change and its line in the
history are committed together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec import Struct

from yester.clock import DAY
from yester.errors import ConfigError, NotFound, NotYours, UsageError
from yester.ingest.prepare import prepare_item
from yester.ingest.transcripts import rebuild_if_stale
from yester.memories import memory
from yester.memories.categories import CATEGORIES, category_of, get_category, merge_changes
from yester.memories.memory import (
    EDITABLE,
    TRUST,
    Author,
    Plain,
    plain_form,
    read_history,
    shorten_reason,
)
from yester.model import Change, Filters, Memo, Paging, replace
from yester.store.contract import Store

GRACE = 30 * DAY  # from being retired to being let go
PATIENCE = 14 * DAY  # that a proposed rule waits for the user's yes
_RETENTION = re.compile(r"(?:(retire|archive|keep) )?([1-9][0-9]{0,8})")
_COMMANDS = {"update": "edit"}  # what the history calls otherwise than the command line
# what is done → the statuses it can be done from, and the one it leads to
STEPS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "retire": (("active", "archived", "superseded", "proposed"), "retired"),
    "archive": (("active", "proposed"), "archived"),
    "restore": (("retired", "archived", "proposed"), "active"),
    "keep": (("proposed",), "active"),
    "drop": (("proposed", "active"), "archived"),
}


# --- found ---------------------------------------------------------------------------------------


def get_memory(store: Store, id_: int) -> Memo:
    for memo in store.memos(ids=[id_]):
        return memo
    raise NotFound(f"no memory #{id_}; `yester memory list --status all` shows them")


def find_memory(store: Store, name: str) -> Memo:
    """A memory by its id (12 or #12) or its slug."""
    number = name.strip().removeprefix("#")
    if number.isdecimal():
        return get_memory(store, int(number))
    alike = sorted(store.memos(slug=name.strip()), key=lambda memo: memo.item.id)
    if len(alike) > 1:
        ids = ", ".join(f"#{memo.item.id}" for memo in alike)
        raise UsageError(f"{name!r} is the name of {ids}; say which one by its number")
    if not alike:
        raise NotFound(f"no memory {name!r}; `yester memory list --status all` shows them")
    return alike[0]


def successor_id(store: Store, item: int) -> int:
    """The memory that supersedes this one, or 0."""
    if not item:
        return 0
    newer = store.memos(Filters(supersedes=item), Paging(statuses=()))
    return max((memo.item.id for memo in newer), default=0)


def form_at_version(store: Store, memo: Memo, version: int) -> Plain:
    """Its plain form when it had been written so often; UsageError where that is not known."""
    back = memo.version - version
    changes = read_history(store, memo.item.id, back) if back > 0 else []
    if back < 0 or len(changes) < back or any(one.before is None for one in changes):
        raise UsageError(
            f"version is {version}, but memory #{memo.item.id} is at version {memo.version}; read "
            "it again"
        )
    values = plain_form(memo)
    for change in changes:  # the newest first
        values |= change.before or {}
    return values


# --- written -------------------------------------------------------------------------------------


@contextmanager
def memory_transaction(store: Store) -> Iterator[None]:
    rebuild_if_stale(store)
    with store.transaction("memories"):
        yield


def write_memory(
    store: Store, old: Memo, values: Plain, by: Author, what: str, act: int = 0
) -> Memo:
    """One change, inside a transaction: the memory with these normal values and its history line.

    All writing goes through here. Without a difference nothing is written.
    """
    _refuse_rules(by, (old.item.type, values["type"]), old.item.id, what)
    have = plain_form(old) if old.item.id else {}
    after = {name: value for name, value in values.items() if have.get(name) != value}
    if not after:
        return old
    before = {name: have.get(name) for name in after} if have else None
    replaces = next(iter(store.memos(ids=[values["supersedes"]])), None)
    memo = memory.apply_form(old, values, by, replaces)
    change = Change(
        memo.item.id, by.now, shorten_reason(by.who), what, shorten_reason(by.why),
        before, after, act,
    )  # fmt: skip
    return get_memory(store, store.put_memo(prepare_item(memo.item), memo, change))


def rewrite_memory(
    store: Store,
    memo: Memo,
    wanted: Plain,
    by: Author,
    what: str = "update",
    *,
    root: str = "",
    said: int = 0,
) -> Memo:
    """Another form of a memory, inside a transaction, whoever wants it: an edit, a text that says
    more, a file. What two have written is believed as far as the less trusted of them. `said` is
    when a rule that is worded anew holds from."""
    have, values = plain_form(memo), memory.normalise_form(wanted, root)
    if any(values[name] != have[name] for name in ("title", "content")):
        values["origin"] = min(have["origin"], by.origin, key=lambda origin: TRUST.get(origin, 0.0))
        if values["type"] == "rule" and said:
            values["said"] = said
    return write_memory(store, memo, values, by, what)


def _refuse_rules(by: Author, types: Collection[str], old: int, what: str) -> None:
    """A rule is what the user has said. Nobody else makes, changes or ends one. `old` is the memory
    that something (`what`) would be done to, 0 for a new one."""
    if by.origin == "user" or "rule" not in types:
        return
    fix = "type it in your own terminal: yester remember --type rule …"
    if old:
        command = f"yester memory {_COMMANDS.get(what, what)} {old}"
        fix = (
            f"change or end #{old} yourself, in the viewer (yester ui) or in your own terminal: "
            f"{command}"
        )
    raise NotYours(f"a rule must come from you, not from {by.origin} ({by.who}); {fix}")


def edit_memory(
    store: Store, id_: int, changes: Mapping[str, Any], by: Author, *, base: Plain | None = None
) -> Memo:
    """Change what a memory says. `changes` are parts of its plain form; of the content only the
    fields that are different, where None takes one away; and `text`, the sentence it is about.

    With `base`, the form they were made from, what others have changed meanwhile is kept.
    """
    for name in changes:
        if name not in (*EDITABLE, "text"):
            raise UsageError(f"{name!r} cannot be edited; what can is {', '.join(EDITABLE)}")
    with memory_transaction(store):
        old = get_memory(store, id_)
        have = plain_form(old)
        base = {**have, **(base or {})}
        wanted = merge_changes(base, _apply_edit(base, changes), have)
        root = next((one.root for one in store.projects() if one.key == old.item.project), "")
        return rewrite_memory(store, old, wanted, by, root=root, said=by.now)


def _apply_edit(have: Plain, changes: Mapping[str, Any]) -> Plain:
    new = {**have, **changes}
    category, content = get_category(new["type"]), have["content"]
    # Of another category, or a program's item, which has the form of none.
    if category.name != have["type"] or (category.text not in content and "text" in content):
        lead = category_of(have["type"]).lead_text(content) or content.get("text", "")
        content = category.draft_content(str(lead), {})
    lead = {category.text: new.pop("text")} if "text" in new else {}
    content = {**content, **changes.get("content", {}), **lead}
    return {**new, "type": category.name, "content": content}


def renew_rule(store: Store, memo: Memo, epoch: int, by: Author) -> Memo:
    """A rule whose very words the user has used once more, inside a transaction: it has the date of
    the newest word, whichever is met first."""
    if memo.item.type != "rule" or epoch <= memo.item.epoch:
        return memo
    return write_memory(store, memo, {**plain_form(memo), "said": epoch}, by, "update")


# --- another status ------------------------------------------------------------------------------


def change_status(store: Store, id_: int, what: str, by: Author, *, force: bool = False) -> Memo:
    """retire: take it out of use; after the grace it may be let go. archive: put it away for good,
    never shown, never let go. restore: bring it back.

    What is never deleted (a decision, a preference, a session's summary) is only retired with
    `force`, which is the user's alone.
    """
    with memory_transaction(store):
        memo = get_memory(store, id_)
        kept = what == "retire" and not category_of(memo.item.type).deletable
        if kept and not (force and by.origin == "user"):
            raise UsageError(
                f"{memo.item.type} #{id_} is not deleted, so that what was once true can be told; "
                f"supersede it (yester memory supersede {id_} …) or archive it (yester memory "
                f"archive {id_})"
                + ("; --force retires it all the same" if by.origin == "user" else "")
            )
        return set_status(store, memo, what, by)


def set_status(store: Store, memo: Memo, what: str, by: Author) -> Memo:
    """The same inside a transaction, also for what is otherwise never deleted."""
    allowed, status = STEPS[what]
    have = memo.item.status
    if have not in allowed:
        id_, newer = memo.item.id, successor_id(store, memo.item.id) if have == "superseded" else 0
        told = f"memory #{id_} is {have}{f' by #{newer}' if newer else ''}, so you cannot {what} it"
        undo_it = f"; edit #{newer}, or take back that it was superseded: yester memory undo {id_}"
        raise UsageError(told + (undo_it if newer else ""))
    values = {**plain_form(memo), "status": status, "reason": shorten_reason(by.why)}
    return write_memory(store, memo, values, by, what)


def supersede_memory(store: Store, old: int, new: int, by: Author) -> tuple[Memo, Memo]:
    """Let one memory stand in the place of another; (the old one, the new one)."""
    with memory_transaction(store):
        return link_successor(store, get_memory(store, old), get_memory(store, new), by, 0)


def link_successor(store: Store, old: Memo, new: Memo, by: Author, act: int) -> tuple[Memo, Memo]:
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
    values = {**plain_form(new), "supersedes": old.item.id}
    newer = write_memory(store, new, values, by, "supersede", act)
    act = act or _act_of(store, new, newer)
    status = {"status": "superseded", "reason": f"by #{newer.item.id}"}
    older = write_memory(store, old, {**plain_form(old), **status}, by, "supersede", act)
    return older, newer


def _act_of(store: Store, before: Memo, after: Memo) -> int:
    """What was just written belongs to this act; 0 where nothing was written."""
    return 0 if after is before else read_history(store, after.item.id, 1)[0].act


# --- taken back ----------------------------------------------------------------------------------


def undo_change(store: Store, by: Author, id_: int = 0) -> list[Memo]:
    """Take back the last thing that was done, to this memory or at all; what comes out of it.

    Undoing is a change like others: done again, it brings back what was undone.
    """
    with memory_transaction(store):
        done, newer = _last_act(store, id_)
        if not done:
            raise NotFound("there is nothing to undo" + (f" for memory #{id_}" if id_ else ""))
        if newer:
            raise UsageError(
                f"memory #{newer.item} has been changed since ({newer.what}); undo that first: "
                f"yester memory undo {newer.item}"
            )
        act = 0
        for change in done:
            memo = get_memory(store, change.item)
            before = change.before or {"status": "retired", "reason": "undone"}
            author = replace(by, why=by.why or f"undo of {change.what}")
            new = write_memory(store, memo, {**plain_form(memo), **before}, author, "undo", act)
            act = act or _act_of(store, memo, new)
        return [get_memory(store, item) for item in dict.fromkeys(one.item for one in done)]


def find_undoable(store: Store, id_: int) -> list[Change]:
    """What `undo_change` of this memory would take back; nothing where it cannot."""
    done, newer = _last_act(store, id_)
    return [] if newer else done


def _last_act(store: Store, id_: int) -> tuple[list[Change], Change | None]:
    """What was last done, to this memory or at all, and what was done later to another one of the
    same act."""
    done: list[Change] = []
    for last in read_history(store, id_, 1):
        done = store.entries(Change, {"act": last.act})
    newest = (read_history(store, item, 1)[0] for item in {change.item for change in done})
    return done, next((one for one in newest if one.act != done[0].act), None)


# --- let go --------------------------------------------------------------------------------------

# What may go: what was retired and had its grace, and what the user's own rules say. Without a rule
# nothing is retired or archived by itself.
#
#     [retention]                      in config.toml; a category on the left
#     note = 90                        retired when not written to for 90 days
#     tech_debt = "archive 365"        put away instead, never let go
#     session_summary = "keep 50"      a rolling window: the newest 50 of each project


class RetentionRule(NamedTuple):
    verb: str  # retire, archive, keep
    number: int  # days, or how many are kept

    def __str__(self) -> str:
        return f"{self.verb} {self.number}{'' if self.verb == 'keep' else ' days'}"


class Due(Struct, frozen=True):
    """A memory whose time is over, what happens to it, and by what right."""

    memo: Memo
    what: str  # retire, archive, drop
    why: str


def parse_retention(table: Mapping[str, int | str]) -> dict[str, RetentionRule]:
    """The user's table, checked; ConfigError names what is wrong."""
    found = {}
    for name, value in table.items():
        if name not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            raise ConfigError(f"[retention]: {name!r} is no category; they are {known}")
        said = _RETENTION.fullmatch(str(value))
        if said is None:
            raise ConfigError(
                f"[retention]: {name} is {value!r}, but must be a number of days, or "
                '"retire DAYS", "archive DAYS" or "keep NUMBER"'
            )
        found[name] = RetentionRule(said[1] or "retire", int(said[2]))
    return found


def find_due(store: Store, rules: Mapping[str, RetentionRule], now: int) -> Iterator[Due]:
    """What would go now; nothing is written."""
    for name, rule in rules.items():
        kept: Counter[str] = Counter()
        for memo in store.memos(Filters(types=(name,))):
            if rule.verb == "keep":
                kept[memo.item.project] += 1
                over = kept[memo.item.project] > rule.number
            else:
                over = memo.item.updated + rule.number * DAY <= now
            if over:
                what = "archive" if rule.verb == "archive" else "retire"
                yield Due(memo, what, f"[retention] {name}: {rule}")
    for memo in store.memos(Filters(), Paging(statuses=("retired",))):
        if memo.since + GRACE <= now:
            yield Due(memo, "drop", f"retired for more than {GRACE // DAY} days")


def collect_due(store: Store, rules: Mapping[str, RetentionRule], now: int) -> list[Due]:
    """Do what is due; each memory in a transaction of its own, looked at again inside it."""
    done = []
    for one in list(find_due(store, rules, now)):
        with memory_transaction(store):
            if store.memos(ids=[one.memo.item.id]) != [one.memo]:
                continue  # it has been touched meanwhile, or somebody else was faster: not now
            if one.what == "drop":
                store.remove([one.memo.item.id], (now, one.why))
            else:
                # By the user's own rule, so even what is otherwise not deleted, and rules.
                author = Author("yester (retention)", now, "user", one.why)
                set_status(store, one.memo, one.what, author)
            done.append(one)
    return done
