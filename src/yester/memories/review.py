"""What deserves a look (`review`), and what is not as it should be (`lint`)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from yester.clock import DAY
from yester.memories import tags as tagging
from yester.memories.categories import CATEGORIES, LONGEST_TITLE, category_of
from yester.memories.content import find_problems, is_same_saying, lead_text
from yester.memories.contradiction import Claims, against, claims, named
from yester.memories.lifecycle import GRACE
from yester.memories.rules import rule_subject
from yester.model import Filters, Memo, Paging
from yester.store.contract import Store
from yester.text.terms import query_terms

LOW_CONFIDENCE = 0.5
_SOON = 7 * DAY
_UNDECIDED = 90 * DAY
_OVER = {
    ("tech_debt", "resolved"), ("tech_debt", "wont_fix"), ("decision", "deprecated"),
    ("decision", "superseded"),
}  # fmt: skip
_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,78}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Finding:
    memo: Memo
    check: str
    text: str
    fix: str


def review_memories(store: Store, filters: Filters, now: int) -> list[Finding]:
    """What a person should look at; nothing in it is wrong as such."""
    active = store.memos(filters)
    found = [finding for memo in active for finding in _worth_a_look(memo, now)]
    found += _alike(active)
    for memo in store.memos(filters, Paging(statuses=("retired",))):
        left = memo.since + GRACE - now
        if left <= _SOON:
            when = f"in {left // DAY + 1} days" if left > 0 else "by the next `yester memory gc`"
            fix = f"yester memory restore {memo.item.id}"
            found.append(Finding(memo, "soon gone", f"is let go {when}", f"to keep it: {fix}"))
    return found


def _worth_a_look(memo: Memo, now: int) -> Iterator[Finding]:
    item, content = memo.item, memo.content
    if item.confidence < LOW_CONFIDENCE:
        yield Finding(
            memo, "low confidence", f"is {item.confidence:.0%} sure",
            f"yester memory edit {item.id} --confidence 1, or retire it",
        )  # fmt: skip
    if item.type == "constraint":
        until = _date(content.get("expires"))
        if content.get("active") is False or (until is not None and until < now):
            over = "is no longer in effect" if content.get("active") is False else "has expired"
            yield Finding(memo, "over", over, f"yester memory retire {item.id}")
    if (item.type, content.get("status")) in _OVER:
        yield Finding(
            memo, "over", f"is {content['status']}, but still shown",
            f"yester memory archive {item.id}",
        )  # fmt: skip
    if content.get("status") == "proposed" and item.updated + _UNDECIDED < now:
        yield Finding(
            memo, "undecided", "has been only proposed for over 90 days",
            f"yester memory edit {item.id} --set status=accepted, or retire it",
        )  # fmt: skip


def _date(text: object) -> int | None:
    try:
        day = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp() * 1000)


def _alike(memos: Iterable[Memo]) -> Iterator[Finding]:
    groups = _grouped(memos, lambda memo: (_place(memo), frozenset(query_terms(memo.item.title))))
    for group in groups:
        ids = ", ".join(f"#{one.item.id}" for one in group[1:])
        yield Finding(
            group[0], "alike", f"has the same title as {ids}",
            f"yester memory supersede {group[-1].item.id} {group[0].item.id}, or edit one",
        )  # fmt: skip


def _place(memo: Memo) -> tuple[str, ...]:
    return (memo.item.type, memo.item.project, memo.scope, memo.path)


def _grouped(memos: Iterable[Memo], key: Callable[[Memo], Hashable]) -> list[list[Memo]]:
    groups: defaultdict[Hashable, list[Memo]] = defaultdict(list)
    for memo in memos:
        groups[key(memo)].append(memo)
    return [group for group in groups.values() if len(group) > 1]


def lint_memories(store: Store, filters: Filters) -> list[Finding]:
    """What does not hold to the form of its category, and what contradicts itself; items a program
    stored as memories have no form to hold to."""
    active = [memo for memo in store.memos(filters) if memo.version]
    by_id = {memo.item.id: memo for memo in active}
    found = [finding for memo in active for finding in _unlike_its_form(memo)]
    found += [finding for memo in active for finding in _wrong_chain(memo, by_id)]
    found += _contradictions(active)
    for group in _grouped(active, lambda memo: (memo.item.project, memo.slug)):
        ids = ", ".join(f"#{one.item.id}" for one in group)
        fix = "say which one you mean by its number"
        found.append(Finding(group[0], "name", f"{group[0].slug} is the name of {ids}", fix))
    return found


def _unlike_its_form(memo: Memo) -> Iterator[Finding]:
    item = memo.item
    edit = f"yester memory edit {item.id}"
    if item.type not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        yield Finding(memo, "type", f"{item.type!r} is no category", f"{edit} --type TYPE: {known}")
        return
    for problem in find_problems(category_of(item.type), memo.content):
        yield Finding(memo, "content", problem, edit)
    if not item.title or len(item.title) > LONGEST_TITLE:
        text = f"the title has {len(item.title)} characters, it should have 1 to {LONGEST_TITLE}"
        yield Finding(memo, "title", text, f"{edit} --title …")
    if not _SLUG.fullmatch(memo.slug):
        yield Finding(memo, "name", f"{memo.slug!r} is no kebab-case name", edit)
    if odd := [tag for tag in item.tags if tagging.normalise_tag(tag) != tag]:
        yield Finding(memo, "tags", f"{', '.join(odd)} could be spelled otherwise", edit)
    if not item.tags:
        yield Finding(memo, "tags", "there are none", f"{edit} --tag NAME")


def _wrong_chain(memo: Memo, active: Mapping[int, Memo]) -> Iterator[Finding]:
    older = active.get(memo.item.supersedes)
    if older is not None:
        yield Finding(
            memo, "chain", f"supersedes #{older.item.id}, which is active as well",
            f"yester memory retire {older.item.id}",
        )  # fmt: skip


def _contradictions(active: Iterable[Memo]) -> Iterator[Finding]:
    told = [memo for memo in active if memo.item.type in ("rule", "preference")]
    decided = [*told, *(memo for memo in active if memo.item.type == "decision")]
    yield from _at_odds(sorted(decided, key=lambda memo: (memo.item.epoch, memo.item.id)))
    groups = _grouped(told, lambda memo: (_place(memo), rule_subject({"rule": _says(memo)})))
    for group in groups:
        others = [one for one in group[1:] if not is_same_saying(_says(one), _says(group[0]))]
        if others:
            ids = ", ".join(f"#{one.item.id} ({_says(one)})" for one in others)
            yield Finding(
                group[0], "contradiction", f"says about the same as {ids} something else",
                f"yester memory supersede {others[0].item.id} {group[0].item.id}",
            )  # fmt: skip


def _at_odds(memos: Iterable[Memo]) -> Iterator[Finding]:
    """Oldest first: what one of them says and a newer one takes back. Only those that name a common
    thing are compared."""
    known: defaultdict[tuple[str, str, str, str], list[tuple[Memo, Claims]]] = defaultdict(list)
    for memo in memos:
        said = claims(_says(memo))
        places = [(memo.item.project, memo.scope, memo.path, name) for name in sorted(named(said))]
        earlier = {old.item.id: (old, before) for place in places for old, before in known[place]}
        for old, before in earlier.values():
            if reason := against(before, said):
                yield Finding(
                    memo, "contradiction", f"says otherwise than #{old.item.id}: {reason}",
                    f"yester memory supersede {old.item.id} {memo.item.id}",
                )  # fmt: skip
        for place in places:
            known[place].append((memo, said))


def _says(memo: Memo) -> str:
    return lead_text(category_of(memo.item.type), memo.content)
