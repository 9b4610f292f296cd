"""What deserves a look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from msgspec import Struct

from yester.clock import DAY, parse_iso
from yester.memories.categories import category_of
from yester.memories.chains import Claims, find_contradiction, parse_claims
from yester.memories.lifecycle import GRACE, PATIENCE
from yester.model import Filters, Memo, Paging
from yester.store.contract import Store
from yester.text.terms import query_terms

LOW_CONFIDENCE = 0.5
PROPOSED = Paging(statuses=("proposed",))
_SOON = 7 * DAY
_UNDECIDED = 90 * DAY
_OVER = {
    ("tech_debt", "resolved"), ("tech_debt", "wont_fix"), ("decision", "deprecated"),
    ("decision", "superseded"),
}  # fmt: skip
_DECIDED = ("rule", "preference", "decision")  # what is compared with each other


class Finding(Struct, frozen=True):
    memo: Memo
    check: str
    text: str
    fix: str


def review_memories(store: Store, filters: Filters, now: int) -> list[Finding]:
    """What a person should look at; nothing in it is wrong as such."""
    active = store.memos(filters)
    found = []
    for memo in store.memos(filters, PROPOSED):
        left, id_ = max(memo.since + PATIENCE - now, 0) // DAY, memo.item.id
        text = f"no agent is told of it until you say yes; it is dropped in {left} days"
        fix = f"yester memory keep {id_}, or yester memory drop {id_}"
        found.append(Finding(memo, "proposed", text, fix))
    found += [finding for memo in active for finding in _review_memory(memo, now)]
    found += _find_contradictions(one for one in active if one.item.type in _DECIDED)
    alike: defaultdict[Hashable, list[Memo]] = defaultdict(list)
    for memo in active:
        item = memo.item
        place = (item.type, item.project, memo.scope, memo.path)
        alike[place, frozenset(query_terms(item.title))].append(memo)
    for first, *others in alike.values():
        if others:
            ids = ", ".join(f"#{memo.item.id}" for memo in others)
            fix = f"yester memory supersede {others[-1].item.id} {first.item.id}, or edit one"
            found.append(Finding(first, "alike", f"has the same title as {ids}", fix))
    for memo in store.memos(filters, Paging(statuses=("retired",))):
        left = memo.since + GRACE - now
        if left <= _SOON:
            when = f"in {left // DAY + 1} days" if left > 0 else "by the next `yester memory gc`"
            fix = f"to keep it: yester memory restore {memo.item.id}"
            found.append(Finding(memo, "soon gone", f"is let go {when}", fix))
    return found


def _review_memory(memo: Memo, now: int) -> Iterator[Finding]:
    item, content = memo.item, memo.content
    edit, status = f"yester memory edit {item.id}", content.get("status")
    if item.confidence < LOW_CONFIDENCE:
        sure = f"is {item.confidence:.0%} sure"
        yield Finding(memo, "low confidence", sure, f"{edit} --confidence 1, or retire it")
    if item.type == "constraint":
        until = parse_iso(content.get("expires"))
        if content.get("active") is False or 0 < until < now:
            over = "is no longer in effect" if content.get("active") is False else "has expired"
            yield Finding(memo, "over", over, f"yester memory retire {item.id}")
    if (item.type, status) in _OVER:
        fix = f"yester memory archive {item.id}"
        yield Finding(memo, "over", f"is {status}, but still shown", fix)
    if status == "proposed" and item.updated + _UNDECIDED < now:
        fix = f"{edit} --set status=accepted, or retire it"
        yield Finding(memo, "undecided", "has been only proposed for over 90 days", fix)


def _find_contradictions(memos: Iterable[Memo]) -> Iterator[Finding]:
    """What one of them says and a newer one of the same scope takes back."""
    known: defaultdict[Hashable, list[tuple[Memo, Claims]]] = defaultdict(list)
    for memo in sorted(memos, key=lambda memo: (memo.item.epoch, memo.item.id)):
        said = parse_claims(category_of(memo.item.type).lead_text(memo.content))
        earlier = known[memo.item.project, memo.scope, memo.path]
        for old, before in earlier:
            if reason := find_contradiction(before, said):
                text = f"says otherwise than #{old.item.id}: {reason}"
                fix = f"yester memory supersede {old.item.id} {memo.item.id}"
                yield Finding(memo, "contradiction", text, fix)
        earlier.append((memo, said))
