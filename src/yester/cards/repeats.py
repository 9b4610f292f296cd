"""The same insight is told once: what has nearly the same title as another, about the same files of
a project and within an hour of it, is folded into that one, if it has nothing to add. What it was
made of (so when, and in which session) is the earlier one's evidence then. Two turns that changed
the same file under the same name and tell different things are two insights."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from yester.cards.cards import Distilled, turn_sources
from yester.cards.turns import View
from yester.model import Filters, Item, Paging, replace
from yester.store.contract import Store
from yester.text.statements import same_form, word_overlap
from yester.text.terms import text_terms

HOUR = 3_600_000
SAME = 0.8  # share of common words from which on two titles are one
_MOST = 200  # observations of two hours that are looked at


def is_same_insight(one: Item, earlier: Item) -> bool:
    return (
        abs(one.epoch - earlier.epoch) <= HOUR
        and _insight_files(one) == _insight_files(earlier)
        and word_overlap(text_terms(one.title), text_terms(earlier.title)) > SAME
        and not _adds_facts(one, earlier)
    )


def _adds_facts(one: Item, earlier: Item) -> bool:
    """Does it tell anything that the earlier one does not? Work of which nothing is known but its
    files ("Changed p.py") is never the same as other work; a commit has a name."""
    if one.ref.endswith(":work") and not one.facts and not one.body:
        return True
    new_facts = set(map(same_form, one.facts)) - set(map(same_form, earlier.facts))
    return bool(new_facts) or not set(one.body.split("\n")) <= {"", *earlier.body.split("\n")}


def _insight_files(item: Item) -> frozenset[str]:
    return frozenset(item.files_modified or item.files_read)


def find_insight(found: Iterable[Distilled], item: Item) -> Distilled | None:
    """The earlier one of a session that this is the same as."""
    return next((one for one in found if is_same_insight(item, one.item)), None)


def find_stored_insight(store: Store, item: Item, own: Collection[str] = ()) -> Distilled | None:
    """The observation another session has stored of the same thing. `own` are refs that do not
    count: those this item may replace."""
    filters = Filters(
        projects=(item.project,), kinds=("observation",), since=item.epoch - HOUR,
        until=item.epoch + HOUR + 1, files=item.files_modified[:1],
    )  # fmt: skip
    for other in store.select(filters, Paging(_MOST, oldest_first=True)):
        if other.ref not in own and is_same_insight(item, other):
            return read_insight(store, other)
    return None


def read_insight(store: Store, item: Item) -> Distilled:
    """A stored observation and what it was made of."""
    return Distilled(item, store.evidence([item.id]).get(item.id, ()))


def fold_insight(earlier: Distilled, later: Distilled) -> Distilled:
    """The earlier one with the turn that the later one was made of. Folding twice changes nothing.
    Its facts are the earlier one's: those have their own evidence."""
    turn = (one for one in later.sources if one[0] == -1)
    return replace(earlier, sources=tuple(dict.fromkeys((*earlier.sources, *turn))))


def unfold_insight(made: Distilled, turns: Iterable[View]) -> Distilled:
    """Without these turns, which are looked at again."""
    again = {source for turn in turns for source in turn_sources(turn)}
    return replace(made, sources=tuple(one for one in made.sources if one not in again))


def keep_foreign(store: Store, made: Distilled, had: Item, own: frozenset[int]) -> Distilled:
    """An observation that is made anew, with what was folded into it (it is `had` in the store) and
    was not made of any of these `own` items: whoever folds that in is not looked at now."""
    before = read_insight(store, had)
    foreign = tuple(one for one in before.sources if one[1] not in own)
    return fold_insight(made, replace(before, sources=foreign))
