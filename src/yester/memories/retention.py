"""What may go: what was retired and had its grace, and what the user's own rules say.

    [retention]                      in config.toml; a category on the left
    note = 90                        retired when not written to for 90 days
    tech_debt = "archive 365"        put away instead, never let go
    session_summary = "keep 50"      a rolling window: the newest 50 of each project

Without a rule nothing is retired or archived by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from yester.clock import DAY
from yester.errors import ConfigError, NotFound
from yester.memories.categories import CATEGORIES
from yester.memories.lifecycle import GRACE, expired, found, step, writing
from yester.memories.memory import Author
from yester.model import Filters, Memo, Paging
from yester.store.contract import Store

VERBS = ("retire", "archive", "keep")
_BY = "yester (retention)"


@dataclass(frozen=True, slots=True)
class Rule:
    verb: str
    number: int  # days, or how many are kept

    @property
    def text(self) -> str:
        return f"keep {self.number}" if self.verb == "keep" else f"{self.verb} {self.number} days"


@dataclass(frozen=True, slots=True)
class Due:
    """A memory whose time is over, what happens to it, and by what right."""

    memo: Memo
    what: str  # retire, archive, drop
    why: str


def rules(table: Mapping[str, int | str]) -> dict[str, Rule]:
    """The user's table, checked; ConfigError names what is wrong."""
    found = {}
    for name, value in table.items():
        if name not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            raise ConfigError(f"[retention]: {name!r} is no category; they are {known}")
        verb, _, number = str(value).partition(" ") if isinstance(value, str) else ("", "", "")
        days = value if isinstance(value, int) else int(number) if number.isdecimal() else 0
        if isinstance(value, bool) or days < 1 or (verb or "retire") not in VERBS:
            raise ConfigError(
                f"[retention]: {name} is {value!r}, but must be a number of days, or "
                '"retire DAYS", "archive DAYS" or "keep NUMBER"'
            )
        found[name] = Rule(verb or "retire", days)
    return found


def due(store: Store, chosen: Mapping[str, Rule], now: int) -> Iterator[Due]:
    """What would go now; nothing is written."""
    for name, rule in chosen.items():
        kept: Counter[str] = Counter()
        for memo in store.memos(Filters(types=(name,))):
            if rule.verb == "keep":
                kept[memo.item.project] += 1
                over = kept[memo.item.project] > rule.number
            else:
                over = memo.item.updated + rule.number * DAY <= now
            if over:
                verb = "archive" if rule.verb == "archive" else "retire"
                yield Due(memo, verb, f"[retention] {name}: {rule.text}")
    for memo in store.memos(Filters(), Paging(statuses=("retired",))):
        if expired(memo, now):
            yield Due(memo, "drop", f"retired for more than {GRACE // DAY} days")


def collect(store: Store, chosen: Mapping[str, Rule], now: int) -> list[Due]:
    """Do what is due; each memory in a transaction of its own, looked at again inside it."""
    done = []
    for one in list(due(store, chosen, now)):
        with writing(store):
            try:
                memo = found(store, one.memo.item.id)
            except NotFound:
                continue  # somebody else was faster
            if memo.version != one.memo.version or memo.item.status != one.memo.item.status:
                continue  # it has been touched meanwhile: not now
            if one.what == "drop":
                store.drop_memo(memo.item.id, now, one.why)
            else:
                # By the user's own rule, so even what is otherwise not deleted, and rules.
                step(store, memo, Author(_BY, now, "user", one.why), one.what)
            done.append(one)
    return done
