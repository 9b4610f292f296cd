"""Something to be kept: a text and what is known of it, made into a memory, compared, written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from yester.errors import UsageError
from yester.memories import rules
from yester.memories import tags as tagging
from yester.memories.candidates import Choice, candidate
from yester.memories.categories import Category, get_category
from yester.memories.content import (
    clean_text,
    draft_content,
    drop_surrogates,
    join_contents,
    lead_text,
)
from yester.memories.lifecycle import found, refuse_rules, say_again, superseded, write, writing
from yester.memories.memory import (
    GLOBAL,
    Author,
    Plain,
    less_trusted_origin,
    make_slug,
    new_memo,
    normalise_form,
    plain_form,
    shorten_reason,
)
from yester.model import Item, Memo, Project
from yester.store.contract import Store
from yester.store.figures import tag_counts

# What a text without a type obviously is; everything else is a note. The first one that fits.
CUES: tuple[tuple[str, str], ...] = (
    ("rule", r"(please )?(always|never|don't|do not|from now on|make sure|stop \S+ing)\b"),
    ("rule", r"use \S.* (not|instead of|rather than) \S"),
    ("preference", r"((i|we) )?(prefer|dislike|hate)\b|(i|we) (would )?like\b"),
    ("decision", r"(we|i)( have|'ve)? (decided|chose|chosen|agreed|settled)\b|decision:"),
    ("tech_debt", r"(todo|fixme|hack|tech(nical)? debt)\b"),
    ("constraint", r".*\b(must not|must never|is limited to|no more than)\b"),
)


_STATUSES = {"active": "update", "retired": "retire", "archived": "archive"}  # and what leads there


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be kept. Without a type it is guessed, without a title the first sentence."""

    text: str = ""
    type: str = ""
    title: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
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
    status: str = "active"  # what it has there; active or not, it is not brought back here
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What has become of it. `done` is created, updated, known or refused."""

    memo: Memo
    done: str
    choice: Choice
    replaced: Memo | None = None
    suggested: Mapping[str, str] = field(default_factory=dict)  # tag → the one in use


def guessed(text: str) -> str:
    """The category of a text that names none."""
    line = " ".join(text.split()).lower().replace("’", "'")
    return next((name for name, cue in CUES if re.match(cue, line)), "note")


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
    values, category = values_of(store, draft, project, by)
    given = tagging.normalise_tags(draft.tags)
    suggested = tagging.suggest_tags(given, tag_counts(store)) if given else {}
    refuse_rules(by, category.name)
    where = GLOBAL if values["scope"] == "global" else project
    says = lead_text(category, values["content"])
    with writing(store):
        store.put_project(where)
        if draft.ref and (kept := _delivered_before(store, draft, values, by)):
            return kept
        if draft.status != "active":
            return Kept(create(store, draft, values, where, by), "created", Choice("CREATE"))
        if update:
            return _put_into(store, found(store, update), values, category, by, Choice("UPDATE"))
        choice = candidate(store, category, says, where.key, draft.tags, values["files"])
        best = choice.best
        if best and best.same and not supersedes and best.memo.item.project == where.key:
            known_ = say_again(store, best.memo, draft.epoch or by.now, by)
            if choice.action == "NOOP":
                return Kept(known_, "known", choice)
            return _put_into(store, known_, values, category, by, choice)
        old = found(store, supersedes) if supersedes else rules.about_the_same(store, values)
        memo, act = create(store, draft, values, where, by), 0
        if old is not None:
            act = store.changes(memo.item.id, limit=1)[0].act
            replaced, memo = superseded(store, old, memo, by.with_reason("newer"), act)
            old = replaced
        return Kept(memo, "created", choice, old, suggested)


def in_place_of(store: Store, old: Memo, text: str, by: Author, title: str = "") -> Kept:
    """A text that takes the place of a memory; type, scope, tags and files are those of the old."""
    item = old.item
    draft = Draft(
        text, item.type, title, tags=item.tags, files=item.files, scope=old.scope, path=old.path
    )
    project = next(one for one in store.projects() if one.key == item.project)
    return remember(store, draft, project, by, supersedes=item.id)


def values_of(store: Store, draft: Draft, project: Project, by: Author) -> tuple[Plain, Category]:
    """A draft checked and in its normal form, with its category."""
    text = clean_text(draft.text)
    if not text and not draft.content:
        raise UsageError("there is nothing to remember: the text is empty")
    if draft.status not in _STATUSES:
        raise UsageError(f"status is {draft.status!r}, but must be one of {', '.join(_STATUSES)}")
    category = get_category(draft.type) if draft.type else get_category(_guess(text, by))
    content = draft_content(category, text, draft.content)
    scope = draft.scope or ("path" if draft.path else "project")
    values = normalise_form(
        {
            "project": GLOBAL.key if scope == "global" else project.key,
            "type": category.name, "title": draft.title, "tags": draft.tags,
            "files": draft.files, "confidence": draft.confidence, "scope": scope,
            "path": draft.path, "content": content, "status": draft.status,
            "reason": shorten_reason(draft.reason),
            "supersedes": 0, "origin": by.origin,
        },
        project.root,
    )  # fmt: skip
    if not values["tags"]:
        concepts = [clean_text(concept) for concept in draft.concepts]
        found = tagging.fill_tags(category.name, concepts, values["files"], text, tag_counts(store))
        values["tags"] = list(found)
    return values, category


def _guess(text: str, by: Author) -> str:
    guess = guessed(text)
    # An agent's "never do this" is its opinion; rules are the user's.
    return "note" if guess == "rule" and by.origin != "user" else guess


def create(store: Store, draft: Draft, values: Plain, project: Project, by: Author) -> Memo:
    """A memory of its own, inside a transaction, whatever else there is."""
    name = store.free_slug(project.key, make_slug(clean_text(draft.slug) or values["title"]))
    begun = new_memo(project.key, name, by, draft.source, draft.ref)
    # What holds everywhere belongs to no session of a project.
    session = "" if values["scope"] == "global" else draft.session
    item = replace(begun.item, session=session, agent=draft.agent)
    if draft.epoch:
        item = replace(item, epoch=draft.epoch)
    return write(store, replace(begun, item=item), values, by, "create", new=True)


def _put_into(
    store: Store, memo: Memo, values: Plain, category: Category, by: Author, choice: Choice
) -> Kept:
    have = plain_form(memo)
    if memo.item.type != category.name:
        raise UsageError(
            f"memory #{memo.item.id} is a {memo.item.type}, and this is a {category.name}; "
            f"say --type {memo.item.type}, or remember it as a memory of its own"
        )
    if memo.item.status != "active":
        raise UsageError(f"memory #{memo.item.id} is {memo.item.status}; restore it first")
    wanted = {
        **have,
        "content": join_contents(category.fields, have["content"], values["content"]),
        "tags": list(dict.fromkeys((*have["tags"], *values["tags"]))),
        "files": list(dict.fromkeys((*have["files"], *values["files"]))),
    }
    wanted = normalise_form(wanted)
    if wanted["content"] != have["content"]:
        wanted["origin"] = less_trusted_origin(have["origin"], by.origin)
    new = write(store, memo, wanted, by, "update")
    return Kept(new, "known" if new is memo else "updated", choice)


def _delivered_before(store: Store, draft: Draft, values: Plain, by: Author) -> Kept | None:
    """What is known under this ref: taken over where it is active and says something else now."""
    choice = Choice("NOOP")
    if store.gone(draft.source, draft.ref):
        # Nothing of it is left to show but that it was here.
        nothing = Item(draft.ref, "memory", source=draft.source, status="retired")
        return Kept(Memo(nothing), "refused", choice)
    for item in store.find(draft.ref):
        if item.kind != "memory" or item.source != draft.source:
            continue
        (memo,) = store.memos(ids=[item.id])
        if item.status != "active":
            return Kept(memo, "refused", choice)
        have = plain_form(memo)
        unchanged = ("supersedes", "origin", *(() if draft.tags else ("tags",)))
        wanted = {**values, **{name: have[name] for name in unchanged}}
        if any(wanted[name] != have[name] for name in ("title", "content")):
            wanted["origin"] = less_trusted_origin(have["origin"], by.origin)
        new = write(store, memo, wanted, by, _STATUSES[draft.status])
        return Kept(new, "known" if new is memo else "updated", replace(choice, action="UPDATE"))
    return None
