"""What a session leaves for good: the rules its user typed, and decisions that undo earlier ones.

Sessions are distilled in any order, the newest first when there are many. So what is older never
takes the place of what is newer, whichever is met first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from yester.distil.amend import amends
from yester.distil.turns import View
from yester.ingest.prepare import prepared
from yester.memories.memo import GLOBAL, By
from yester.memories.remember import Draft, remember
from yester.memories.rules import same_subject
from yester.memories.standing import Rule, rules_in
from yester.model import Filters, Item, Project, Session
from yester.project import bare
from yester.recall.recall import Asked, recall
from yester.store.base import Store

_ALIKE = 15  # earlier or later decisions that are compared
_WHO, _SOURCE = "prompt", "typed"


def keep_rules(store: Store, session: Session, turns: Sequence[View], now: int) -> int:
    """Rules in what was typed, kept as memories with the user's own words; how many are new."""
    number = 0
    project: Project | None = None
    for turn in turns:
        prompt = turn.prompt
        if prompt is None or prompt.kind != "prompt" or prompt.actor:
            continue
        for place, rule in enumerate(rules_in(prompt.body)):
            project = project or _project(store, session.project)
            if _outdated(store, rule, prompt, project):
                continue
            draft = Draft(
                rule.text, "rule", scope=rule.scope, path=rule.path, confidence=rule.confidence,
                source=_SOURCE, ref=f"rule:{prompt.ref}:{place}", session=session.key,
                agent=session.agent, epoch=prompt.epoch,
            )  # fmt: skip
            by = By(_WHO, now, "user", f"typed in session {session.key[:8]}")
            number += remember(store, draft, project, by).done == "created"
    return number


def _project(store: Store, key: str) -> Project:
    return next((one for one in store.projects() if one.key == key), bare(key))


def _outdated(store: Store, rule: Rule, prompt: Item, project: Project) -> bool:
    """Has the user said otherwise since?"""
    where = GLOBAL.key if rule.scope == "global" else project.key
    known = store.memories(Filters(projects=(where,), types=("rule",)))
    return any(
        memo.item.epoch > prompt.epoch and same_subject(memo.content, {"rule": rule.text})
        for memo in known
    )


def link_decisions(store: Store, session: Session) -> Iterator[int]:
    """Decisions of this session and those they undo, or are undone by, made a chain: the newer one
    names the older, which is found no more. Yields how many links were made, step by step."""
    for one in store.distilled(session.id):
        if one.type != "decision" or one.status != "active":
            continue
        asked = Asked(
            "\n".join(one.title.split()), k=_ALIKE, now=one.epoch,
            filters=Filters(
                projects=(session.project,), kinds=("observation",), types=("decision",)
            ),
        )  # fmt: skip
        others = store.get([hit.id for hit in recall(store, asked) if hit.id != one.id])
        undone = [o for o in others if o.epoch < one.epoch and amends(one, o)]
        undoing = [o for o in others if o.epoch > one.epoch and amends(o, one)]
        if undone and not one.supersedes:
            yield _link(store, one, max(undone, key=lambda o: o.epoch))
        if undoing:
            yield _link(store, min(undoing, key=lambda o: o.epoch), one)
        yield 0


def _link(store: Store, newer: Item, older: Item) -> int:
    changed = [replace(older, status="superseded")]
    if not newer.supersedes:
        changed.append(replace(newer, supersedes=older.id))
    with store.transaction():
        return store.put([prepared(item) for item in changed]).changed
