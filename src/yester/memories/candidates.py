"""Before something is written: is there a memory of the same kind about the same?

An entry is a candidate when one of its tags is named, or a word of its title and the beginning of
another: three points, where a tag is worth 3, a word of the title 2, a beginning or another name 1.
A word counts once, with the most it is worth, and the candidate is who shares most of what is said;
so a long list of tags is no advantage over a title that fits. All of it goes by the terms of
`yester.text.terms`, as the search does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yester.memories import tags as tagging
from yester.memories.categories import Category
from yester.memories.content import is_same_saying, list_texts
from yester.memories.memory import GLOBAL
from yester.model import Candidate, Filters, Memo, Probe
from yester.store.contract import Store
from yester.text.document import FIELDS, field_hashes
from yester.text.query import other_names
from yester.text.terms import query_terms, term_hash, text_terms

ACTIONS = ("CREATE", "UPDATE", "UPDATE_OR_DELETE", "NOOP")
TAG, TITLE, ALIKE = 3, 2, 1
THRESHOLD = 3
_MOST_TERMS = 24  # of what is said: the rarest ones
_LOOKED_AT = 200  # entries the index supplies
_READ = 30  # entries that are compared word by word
_SHORTEST_PREFIX = 4
_NAMED = (FIELDS.index("title"), FIELDS.index("concepts"))  # tags stand beside the concepts
_NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Likeness:
    """How an entry is like what is said."""

    memo: Memo
    points: int
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # of the title
    alike: tuple[str, ...] = ()
    same: bool = False  # it says the very same

    @property
    def reasons(self) -> list[str]:
        """Why it is a candidate, in words."""
        told = [("tags", self.tags), ("title", self.words), ("alike", self.alike)]
        named = [f"{name} {', '.join(words)}" for name, words in told if words]
        return [*(["says the same"] if self.same else []), *named]

    @property
    def shared(self) -> float:
        return (
            len({*self.words, *(t for tag in self.tags for t in text_terms(tag))})
            + len(self.alike) / 2
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do with something new, and what it was compared with, the likeliest first."""

    action: str
    best: Likeness | None = None
    others: tuple[Likeness, ...] = ()
    compared: int = 0


def candidate(
    store: Store,
    category: Category,
    text: str,
    project: str,
    tags: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Choice:
    """Look for it among the active memories of the category, in the project (a key) and among those
    that hold everywhere; without a project, among those of all projects. Writes nothing; the same
    store and text give the same answer."""
    projects = tuple(dict.fromkeys((project, GLOBAL.key))) if project else ()
    filters = Filters(projects=projects, kinds=("memory",), types=(category.name,))
    said = query_terms(f"{text} {' '.join(tags)}")
    terms = dict.fromkeys(sorted(set(said)), 1.0)
    found_for = store.probe(Probe(filters, terms, rarest=_MOST_TERMS, words=_LOOKED_AT))
    entries = found_for.candidates
    likeliest = _likeliest(entries, said)
    found = [likeness(category, memo, text, said) for memo in store.memos(ids=likeliest)]
    found = [one for one in found if one.points >= THRESHOLD or one.same]
    found.sort(key=lambda one: (not one.same, -one.shared, -one.points, one.memo.item.id))
    if not found:
        return Choice("CREATE", compared=len(entries))
    best = found[0]
    action = "UPDATE_OR_DELETE" if category.deletable else "UPDATE"
    if best.same:
        item = best.memo.item
        new = {*tagging.normalise_tags(tags)} - {*item.tags} or {*files} - {*item.files}
        action = "UPDATE" if new else "NOOP"
    return Choice(action, best, tuple(found[1:4]), len(entries))


def _likeliest(entries: Sequence[Candidate], said: Sequence[str]) -> list[int]:
    """Ids of those whose title or tags have the most of the words. One of them must be the very
    word: beginnings alone make no candidate."""
    asked = set(map(term_hash, said))
    found = []
    for one in entries:
        there = field_hashes(one.vector, _NAMED)
        title, tags = (asked & there.get(field, _NOTHING) for field in _NAMED)
        if title or tags:
            found.append((-len(title | tags), -len(tags), one.id))
    return [id_ for _, _, id_ in sorted(found)[:_READ]]


def likeness(category: Category, memo: Memo, text: str, said: Sequence[str]) -> Likeness:
    """What an entry has in common with what is said."""
    left = frozenset(said)
    own = tagging.normalise_tag(category.name)
    parts = {tag: tuple(text_terms(tag)) for tag in memo.item.tags if tag != own}
    tags = tuple(tag for tag, names in parts.items() if names and left.issuperset(names))
    tagged = {name for tag in tags for name in parts[tag]}
    titled = set(text_terms(memo.item.title))
    words = tuple(term for term in said if term in titled and term not in tagged)
    targets = titled.union(*parts.values())
    rest = [term for term in said if term not in tagged and term not in words]
    names = other_names(rest)
    starts = {target[:_SHORTEST_PREFIX] for target in targets}
    alike = tuple(
        term
        for term in rest
        if term in targets
        or any(targets.issuperset(group) for group in names.get(term, ()))
        or (term[:_SHORTEST_PREFIX] in starts and any(_begins(term, other) for other in targets))
    )
    own_words = (memo.item.title, *list_texts(category, memo.content))
    same = any(is_same_saying(text, one) for one in own_words)
    points = TAG * len(tags) + TITLE * len(words) + ALIKE * len(alike)
    return Likeness(memo, points, tags, words, alike, same)


def _begins(one: str, other: str) -> bool:
    """Does either begin with the other?"""
    shorter, longer = (one, other) if len(one) <= len(other) else (other, one)
    return len(shorter) >= _SHORTEST_PREFIX and longer.startswith(shorter)
