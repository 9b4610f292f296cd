"""The same insight is told once: what has nearly the same title as another, about the same files of
a project and within an hour of it, is folded into that one, if it has nothing to add. What it was
made of (so when, and in which session) is the earlier one's evidence then. Two turns that changed
the same file under the same name and tell different things are two insights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from yester.cards.cards import Distilled, Sources, turn_sources
from yester.cards.titles import word_overlap
from yester.cards.turns import View
from yester.model import Filters, Item, Probe, replace
from yester.store.contract import Store
from yester.text.terms import text_terms

HOUR = 3_600_000
SAME = 0.8  # share of common words from which on two titles are one
_CANDIDATES = 20


def title_terms(title: str) -> frozenset[str]:
    return frozenset(text_terms(title))


def is_same_insight(one: Item, earlier: Item) -> bool:
    return (
        abs(one.epoch - earlier.epoch) <= HOUR
        and _insight_files(one) == _insight_files(earlier)
        and word_overlap(title_terms(one.title), title_terms(earlier.title)) > SAME
        and not _adds_facts(one, earlier)
    )


def _adds_facts(one: Item, earlier: Item) -> bool:
    """Does it tell anything that the earlier one does not? Work of which nothing is known but its
    files ("Changed p.py") is never the same as other work; a commit has a name."""
    if one.ref.endswith(":work") and not one.facts and not one.body:
        return True
    facts = {_same_form(fact) for fact in earlier.facts}
    return _united_lines(earlier.body, one.body) != earlier.body or any(
        _same_form(fact) not in facts for fact in one.facts
    )


def _insight_files(item: Item) -> frozenset[str]:
    return frozenset(item.files_modified or item.files_read)


def find_stored_insight(store: Store, item: Item, own: Iterable[str] = ()) -> Item | None:
    """The observation another session has stored of the same thing. `own` are refs that do not
    count: those this item may replace."""
    wanted = title_terms(item.title)
    if not wanted:
        return None
    filters = Filters(
        projects=(item.project,), kinds=("observation",), since=item.epoch - HOUR,
        until=item.epoch + HOUR + 1, files=item.files_modified[:1],
    )  # fmt: skip
    probe = Probe(
        filters,
        dict.fromkeys(sorted(wanted), 1.0),
        rarest=_probed_terms(len(wanted)),
        words=_CANDIDATES,
    )
    found = store.probe(probe)
    held = [term for term, number in found.statistics.frequencies.items() if number]
    if len(held) < SAME * len(wanted):
        return None
    passed_over = frozenset(own)
    alike = (
        other
        for other in store.get([one.id for one in found.candidates])
        if other.ref not in passed_over and is_same_insight(item, other)
    )
    return min(alike, key=lambda other: (other.epoch, other.id), default=None)


class SessionInsights:
    """The observations of a session so far."""

    def __init__(self) -> None:
        self._made: dict[str, Distilled] = {}
        self._by_term: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, made: Distilled) -> None:
        if made.item.ref not in self._made:
            for term in title_terms(made.item.title):
                self._by_term[term].append(made.item.ref)
        self._made[made.item.ref] = made

    def find(self, item: Item) -> Distilled | None:
        """The earlier one that this is the same as."""
        own = title_terms(item.title)
        rarest = sorted(own, key=lambda term: (len(self._by_term.get(term, ())), term))
        for term in rarest[: _probed_terms(len(own))]:
            for ref in self._by_term.get(term, ()):
                if ref != item.ref and is_same_insight(item, self._made[ref].item):
                    return self._made[ref]
        return None


def fold_insight(earlier: Distilled, later: Distilled) -> Distilled:
    """The earlier one with what the later one has besides. Folding twice changes nothing."""
    one, other = earlier.item, later.item
    facts = {_same_form(fact): number for number, fact in enumerate(one.facts)}
    kept, numbers = list(one.facts), {-1: -1}
    for number, fact in enumerate(other.facts):
        if _same_form(fact) not in facts:
            facts[_same_form(fact)] = len(kept)
            kept.append(fact)
        numbers[number] = facts[_same_form(fact)]
    sources = ((numbers[number], source) for number, source in later.sources if number in numbers)
    sections = {
        name: _united_lines(one.sections.get(name, ""), other.sections.get(name, ""))
        for name in (*one.sections, *other.sections)
    }
    item = replace(
        one, body=_united_lines(one.body, other.body), facts=tuple(kept), sections=sections,
        concepts=_united(one.concepts, other.concepts), tags=_united(one.tags, other.tags),
        files_read=_united(one.files_read, other.files_read),
        files_modified=_united(one.files_modified, other.files_modified),
    )  # fmt: skip
    return replace(
        earlier, item=item, sources=tuple(dict.fromkeys((*earlier.sources, *sources))), folded=True
    )


def read_insight(store: Store, item: Item) -> Distilled:
    """A stored observation and what it was made of."""
    return Distilled(item, _stored_evidence(store, item))


def unfold_insight(made: Distilled, turns: Iterable[View]) -> Distilled:
    """Without the facts that these turns, which are looked at again, have brought into it."""
    behind = {source for number, source in made.sources if number == -1}
    folded = frozenset(
        id_
        for turn in turns
        if behind & {source for _, source in turn_sources(turn)}
        for id_ in turn.ids
    )
    if not folded:
        return made
    own = [
        {source for at, source in made.sources if at == number}
        for number in range(len(made.item.facts))
    ]
    kept = [number for number, sources in enumerate(own) if not sources or sources - folded]
    return _keep_facts(made, kept, [one for one in made.sources if one[1] not in folded])


def _keep_facts(
    made: Distilled, facts: Sequence[int], sources: Iterable[tuple[int, int]]
) -> Distilled:
    """With these of its facts, and of these sources those that are about them."""
    place = {-1: -1, **{number: at for at, number in enumerate(facts)}}
    item = replace(made.item, facts=tuple(made.item.facts[number] for number in facts))
    return Distilled(item, tuple((place[at], source) for at, source in sources if at in place))


def keep_foreign_facts(store: Store, made: Distilled, had: Item, own: frozenset[int]) -> Distilled:
    """An observation that is made anew, with what was folded into it (it is `had` in the store) and
    was not made of any of these `own` items: whoever folds that in is not looked at now."""
    evidence = _stored_evidence(store, had)
    foreign = [(number, source) for number, source in evidence if source not in own]
    if not foreign:
        return made
    numbers = sorted({number for number, _ in foreign if 0 <= number < len(had.facts)})
    return replace(
        fold_insight(made, _keep_facts(Distilled(had, ()), numbers, foreign)), folded=made.folded
    )


def _stored_evidence(store: Store, item: Item) -> Sources:
    return store.evidence([item.id]).get(item.id, ())


def _same_form(text: str) -> str:
    return " ".join(text.lower().split())


def _united_lines(one: str, other: str) -> str:
    return "\n".join(_united(tuple(one.split("\n")), tuple(other.split("\n")))).strip("\n")


def _united(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return (*one, *(text for text in dict.fromkeys(other) if text not in one))


def _probed_terms(number: int) -> int:
    """Of so many of its words a title that is the same has at least one."""
    return int(number * (1 - SAME)) + 1
