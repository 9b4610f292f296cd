"""Something to be kept: a text and what is known of it, made into a memory, compared, written.

Before something is written: is there a memory of the same kind about the same? An entry is a
candidate when one of its tags is named, or a word of its title and the beginning of another: three
points, where a tag is worth 3, a word of the title 2, a beginning or another name 1. A word counts
once, with the most it is worth, and the candidate is who shares most of what is said; so a long
list of tags is no advantage over a title that fits. All of it goes by the terms of
`yester.text.terms`, as the search does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from yester.errors import UsageError
from yester.memories import lifecycle, memory, rules
from yester.memories.categories import (
    CATEGORIES,
    Category,
    clean_text,
    drop_surrogates,
    get_category,
    is_same_saying,
    merge_changes,
)
from yester.memories.lifecycle import memory_transaction
from yester.memories.memory import (
    GLOBAL,
    PARTS,
    Author,
    Plain,
    make_slug,
    normalise_tags,
    plain_form,
    read_history,
)
from yester.model import Filters, Item, Memo, Probe, Project, replace
from yester.store import find_item
from yester.store.contract import Store
from yester.store.figures import tag_counts
from yester.tables import load_rows
from yester.text.query import other_names
from yester.text.terms import query_terms, text_terms

TAG, TITLE, ALIKE = 3, 2, 1
THRESHOLD = 3
_MOST_TERMS = 24  # of what is said: the rarest ones
_MOST_ENTRIES = 100  # that are compared
_SHORTEST_PREFIX = 4


class Draft(Struct, frozen=True):
    """What is to be kept. Without a type it is guessed, without a title the first sentence."""

    text: str = ""
    type: str = ""
    title: str = ""
    content: Mapping[str, Any] = {}
    tags: Sequence[str] = ()
    files: Sequence[str] = ()
    concepts: Sequence[str] = ()
    scope: str = ""  # global, project or path; by default what the path says
    path: str = ""
    confidence: float = 1.0
    slug: str = ""
    # Where it comes from, for what is delivered again and again: then this is its identity.
    source: str = ""
    ref: str = ""
    session: str = ""
    agent: str = ""
    epoch: int = 0  # when it was said; 0: now
    status: str = "active"  # what it has there
    reason: str = ""


class Likeness(Struct, frozen=True):
    """How an entry is like what is said."""

    memo: Memo
    points: int
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # of the title
    alike: tuple[str, ...] = ()
    same: bool = False  # it says the very same

    @property
    def fits(self) -> bool:
        """Beginnings alone make no candidate: one must be the very word."""
        return self.points >= THRESHOLD and bool(self.tags or self.words)

    @property
    def reasons(self) -> list[str]:
        """Why it is a candidate, in words."""
        rows = [("tags", self.tags), ("title", self.words), ("alike", self.alike)]
        named = [f"{name} {', '.join(words)}" for name, words in rows if words]
        return [*(["says the same"] if self.same else []), *named]

    @property
    def shared(self) -> float:
        return (
            len({*self.words, *(t for tag in self.tags for t in text_terms(tag))})
            + len(self.alike) / 2
        )


class Choice(Struct, frozen=True):
    """What to do with something new, and what it was compared with, the likeliest first."""

    action: str
    best: Likeness | None = None
    others: tuple[Likeness, ...] = ()
    compared: int = 0


class Kept(Struct, frozen=True):
    """What has become of it. `done` is created, updated, known or refused."""

    memo: Memo
    done: str
    choice: Choice
    replaced: Memo | None = None
    suggested: Mapping[str, str] = {}  # tag → the one in use


def guess_type(text: str) -> str:
    """The category of a text that names none: what it obviously is, else a note."""
    line = " ".join(text.split()).lower().replace("’", "'")
    rows = load_rows("categories", "cues")
    return next((row.name for row in rows if row.pattern.match(line)), "note")


def remember(
    store: Store,
    draft: Draft,
    project: Project,
    by: Author,
    *,
    update: int = 0,
    supersedes: int = 0,
) -> Kept:
    """Keep it, unless it is known already.

    What says the very same as an active memory only adds its tags and files to that one; anything
    else is a memory of its own, and `choice` names those that are like it. `update` names one to
    put it into, `supersedes` one whose place it takes. A rule takes the place of the rule about the
    same. What was retired or let go under the same `ref` stays so.
    """
    if update and supersedes:
        raise UsageError("update and supersedes exclude each other; name one memory")
    draft = replace(draft, ref=drop_surrogates(draft.ref), source=drop_surrogates(draft.source))
    values = form_from_draft(store, draft, project, by)
    category = CATEGORIES[values["type"]]
    given = normalise_tags(draft.tags)
    suggested = memory.suggest_tags(given, tag_counts(store)) if given else {}
    where = GLOBAL if values["scope"] == "global" else project
    says = category.lead_text(values["content"])
    with memory_transaction(store):
        store.put_project(where)
        if draft.ref and (kept := _deliver_again(store, draft, values, by)):
            return kept
        if draft.status != "active":
            memo = create_memory(store, draft, values, where, by)
            return Kept(memo, "created", Choice("CREATE"))
        if update:
            known = lifecycle.get_memory(store, update)
            return _add_to_memory(store, known, values, by, Choice("UPDATE"))
        choice = find_candidate(store, category, says, where.key, draft.tags, values["files"])
        best = choice.best
        if best and best.same and not supersedes and best.memo.item.project == where.key:
            known = lifecycle.renew_rule(store, best.memo, draft.epoch or by.now, by)
            if choice.action == "NOOP":
                return Kept(known, "known", choice)
            return _add_to_memory(store, known, values, by, choice)
        old = rules.find_same_rule(store, values)
        if supersedes:
            old = lifecycle.get_memory(store, supersedes)
        memo = create_memory(store, draft, values, where, by)
        if old is not None:
            act = read_history(store, memo.item.id, 1)[0].act
            newer = replace(by, why=by.why or "newer")
            old, memo = lifecycle.link_successor(store, old, memo, newer, act)
        return Kept(memo, "created", choice, old, suggested)


def remember_instead(store: Store, old: Memo, text: str, by: Author, title: str = "") -> Kept:
    """A text that takes the place of a memory; type, scope, tags and files are those of the old."""
    item = old.item
    draft = Draft(
        text, item.type, title, tags=item.tags, files=item.files, scope=old.scope, path=old.path
    )
    project = next(one for one in store.projects() if one.key == item.project)
    return remember(store, draft, project, by, supersedes=item.id)


def form_from_draft(store: Store, draft: Draft, project: Project, by: Author) -> Plain:
    """A draft checked and in its normal form."""
    text = clean_text(draft.text)
    if not text and not draft.content:
        raise UsageError("there is nothing to remember: the text is empty")
    type_ = draft.type or guess_type(text)
    if not draft.type and type_ == "rule" and by.origin != "user":
        type_ = "note"  # an agent's "never do this" is its opinion; rules are the user's
    category = get_category(type_)
    scope = draft.scope or ("path" if draft.path else "project")
    values = {part.name: getattr(draft, part.name) for part in PARTS} | {
        "project": GLOBAL.key if scope == "global" else project.key, "type": category.name,
        "scope": scope, "content": category.draft_content(text, draft.content),
        "status": draft.status, "reason": memory.shorten_reason(draft.reason), "supersedes": 0,
        "origin": by.origin,
    }  # fmt: skip
    values = memory.normalise_form(values, project.root)
    if not values["tags"]:
        concepts = [clean_text(concept) for concept in draft.concepts]
        found = memory.fill_tags(category.name, concepts, values["files"], text, tag_counts(store))
        values["tags"] = list(found)
    return values


def create_memory(store: Store, draft: Draft, values: Plain, project: Project, by: Author) -> Memo:
    """A memory of its own, inside a transaction, whatever else there is."""
    slug = store.free_slug(project.key, make_slug(clean_text(draft.slug) or values["title"]))
    item = Item(
        draft.ref or f"memo:{project.key}#{slug}", "memory", source=draft.source,
        # What holds everywhere belongs to no session of a project.
        session="" if values["scope"] == "global" else draft.session, agent=draft.agent,
        epoch=draft.epoch or by.now,
    )  # fmt: skip
    return lifecycle.write_memory(store, Memo(item, slug), values, by, "create")


def _add_to_memory(store: Store, memo: Memo, values: Plain, by: Author, choice: Choice) -> Kept:
    have, category = plain_form(memo), get_category(values["type"])
    if memo.item.type != category.name:
        raise UsageError(
            f"memory #{memo.item.id} is a {memo.item.type}, and this is a {category.name}; "
            f"say --type {memo.item.type}, or remember it as a memory of its own"
        )
    if memo.item.status != "active":
        raise UsageError(f"memory #{memo.item.id} is {memo.item.status}; restore it first")
    old, new = have["content"], values["content"]
    wanted = {
        **have,
        "content": merge_changes(category.defaults, new, old, overrule=True),
        "tags": list(dict.fromkeys((*have["tags"], *values["tags"]))),
        "files": list(dict.fromkeys((*have["files"], *values["files"]))),
    }
    changed = lifecycle.rewrite_memory(store, memo, wanted, by)
    return Kept(changed, "known" if changed is memo else "updated", choice)


def _deliver_again(store: Store, draft: Draft, values: Plain, by: Author) -> Kept | None:
    """What is known under this ref: taken over where it is active and says something else now."""
    choice = Choice("NOOP")
    if store.was_dropped(draft.source, draft.ref):
        # Nothing of it is left to show but that it was here.
        nothing = Item(draft.ref, "memory", source=draft.source, status="retired")
        return Kept(Memo(nothing), "refused", choice)
    if item := find_item(store, (draft.source, "memory", draft.ref)):
        (memo,) = store.memos(ids=[item.id])
        if item.status != "active":
            return Kept(memo, "refused", choice)
        have = plain_form(memo)
        unchanged = ("status", "reason", "supersedes", "origin", *(() if draft.tags else ("tags",)))
        wanted = {**values, **{name: have[name] for name in unchanged}}
        new = lifecycle.rewrite_memory(store, memo, wanted, by)
        return Kept(new, "known" if new is memo else "updated", replace(choice, action="UPDATE"))
    return None


# --- what is like it -----------------------------------------------------------------------------


def find_candidate(
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
    asked = Probe(filters, terms, rarest=_MOST_TERMS, words=_MOST_ENTRIES)
    entries = store.memos(ids=[one.id for one in store.probe(asked).candidates])
    found = [_compare_memory(category, memo, text, said) for memo in entries]
    found = [one for one in found if one.fits or one.same]
    found.sort(key=lambda one: (not one.same, -one.shared, -one.points, one.memo.item.id))
    if not found:
        return Choice("CREATE", compared=len(entries))
    best = found[0]
    action = "UPDATE_OR_DELETE" if category.deletable else "UPDATE"
    if best.same:
        item = best.memo.item
        new = {*normalise_tags(tags)} - {*item.tags} or {*files} - {*item.files}
        action = "UPDATE" if new else "NOOP"
    return Choice(action, best, tuple(found[1:4]), len(entries))


def _compare_memory(category: Category, memo: Memo, text: str, said: Sequence[str]) -> Likeness:
    """What an entry has in common with what is said."""
    left = frozenset(said)
    own = memory.normalise_tag(category.name)
    parts = {tag: tuple(text_terms(tag)) for tag in memo.item.tags if tag != own}
    tags = tuple(tag for tag, names in parts.items() if names and left.issuperset(names))
    tagged = {name for tag in tags for name in parts[tag]}
    titled = set(text_terms(memo.item.title))
    words = tuple(term for term in said if term in titled and term not in tagged)
    targets = titled.union(*parts.values())
    rest = [term for term in said if term not in tagged and term not in words]
    names = other_names(rest)
    alike = tuple(
        term
        for term in rest
        if any(targets.issuperset(group) for group in names.get(term, ()))
        or any(_share_beginning(term, other) for other in targets)
    )
    own_words = (memo.item.title, *category.list_texts(memo.content))
    same = any(is_same_saying(text, one) for one in own_words)
    points = TAG * len(tags) + TITLE * len(words) + ALIKE * len(alike)
    return Likeness(memo, points, tags, words, alike, same)


def _share_beginning(one: str, other: str) -> bool:
    """Are they the same, or does a longer one begin with the other?"""
    if min(len(one), len(other)) < _SHORTEST_PREFIX:
        return one == other
    return one.startswith(other) or other.startswith(one)
