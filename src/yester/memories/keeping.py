"""What a session leaves for good: the rules its user typed or took back, and decisions that undo
earlier ones.

Sessions are distilled in any order, the newest first when there are many. So what is older never
takes the place of what is newer, whichever is met first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from yester.ingest.prepare import prepare_item
from yester.memories.amend import amends
from yester.memories.lifecycle import change_status
from yester.memories.memory import GLOBAL, Author, shorten_reason
from yester.memories.remember import Draft, remember
from yester.memories.rules import contents_share_subject
from yester.memories.standing import Rule, find_ended_rule, find_rules, find_withdrawals
from yester.model import DISTILLED, Filters, Item, Memo, Paging, Project, Session, replace
from yester.project import bare_project
from yester.recall.recall import Asked, recall_hits
from yester.store.contract import Store

_ALIKE = 15  # earlier or later decisions that are compared
_WHO, _SOURCE = "prompt", "typed"


def keep_rules(store: Store, session: Session, prompts: Iterable[Item], now: int) -> int:
    """Rules in what was typed, kept as memories with the user's own words; how many are new."""
    number = 0
    project: Project | None = None
    for prompt in prompts:
        if prompt.kind != "prompt" or prompt.actor:
            continue
        for place, rule in enumerate(find_rules(prompt.body)):
            if any(one.ends == "any" for one in find_withdrawals(rule.text)):
                continue  # it only takes another one back
            project = project or _project(store, session.project)
            ref = f"rule:{prompt.ref}:{place}"
            if _outdated(store, rule, ref, prompt, project):
                continue
            draft = Draft(
                rule.text, "rule", scope=rule.scope, path=rule.path, confidence=rule.confidence,
                source=_SOURCE, ref=ref, session=session.key, agent=session.agent,
                epoch=prompt.epoch,
            )  # fmt: skip
            by = Author(_WHO, now, "user", f"typed in session {session.key[:8]}")
            kept = remember(store, draft, project, by)
            if kept.done == "created":
                number += 1
                for later in _typed_later(store, kept.memo, prompt, project):
                    _end_rules(store, later, project, now)
        project = _end_rules(store, prompt, project, now, session)
    return number


def _end_rules(
    store: Store, prompt: Item, project: Project | None, now: int, session: Session | None = None
) -> Project | None:
    """Retire the rules that a prompt takes back. Done once: what was undone since stays undone.
    One that has been retired is brought back when an older rule turns up that it may mean too."""
    for one in find_withdrawals(prompt.body):
        project = project or _project(store, session.project if session else prompt.project)
        by = Author(_WHO, now, "user", f"taken back in session {prompt.session[:8]}: {one.text}")
        why = shorten_reason(by.why)
        filters = Filters(projects=(project.key, GLOBAL.key), types=("rule",))
        known = [
            memo
            for memo in store.memos(filters, Paging(statuses=("active", "retired")))
            if memo.item.origin == "user"
            and memo.item.epoch < prompt.epoch
            and (memo.item.status == "active" or memo.reason == why)
        ]
        meant = find_ended_rule(one, [memo.item.body for memo in known])
        for memo in known:
            if memo.item.status == "retired":
                if memo.item.body != meant:
                    unclear = replace(by, why="not clear which rule was meant")
                    change_status(store, memo.item.id, "restore", unclear)
            elif memo.item.body == meant and why not in _reasons(store, memo):
                change_status(store, memo.item.id, "retire", by)
    return project


def _reasons(store: Store, memo: Memo) -> list[str]:
    return [change.why for change in store.changes(memo.item.id)]


def _typed_later(store: Store, memo: Memo, prompt: Item, project: Project) -> list[Item]:
    """What was typed after a rule and is about the same: sessions come in any order."""
    asked = Asked(
        memo.item.body, k=_ALIKE, now=prompt.epoch,
        filters=Filters(projects=(project.key,), kinds=("prompt",)),
    )  # fmt: skip
    found = store.get([hit.id for hit in recall_hits(store, asked)])
    return sorted(
        (item for item in found if item.epoch > prompt.epoch and not item.actor),
        key=lambda item: item.epoch,
    )


def _project(store: Store, key: str) -> Project:
    return next((one for one in store.projects() if one.key == key), bare_project(key))


def _outdated(store: Store, rule: Rule, ref: str, prompt: Item, project: Project) -> bool:
    """Has the user said otherwise since, or edited this very one (`ref`)?"""
    where = GLOBAL.key if rule.scope == "global" else project.key
    known = store.memos(Filters(projects=(project.key, GLOBAL.key), types=("rule",)))
    return any(
        memo.item.ref == ref
        or (
            memo.item.project == where and contents_share_subject(memo.content, {"rule": rule.text})
        )
        for memo in known
        if memo.item.epoch > prompt.epoch
    )


def link_decisions(store: Store, session: Session) -> Iterator[int]:
    """Decisions of this session and those they undo, or are undone by, made a chain: the newer one
    names the older, which is found no more. Yields how many links were made, step by step."""
    decisions = Filters(session_id=session.id, source=DISTILLED, types=("decision",))
    for one in store.select(decisions, Paging(oldest_first=True)):
        asked = Asked(
            "\n".join(one.title.split()), k=_ALIKE, now=one.epoch,
            filters=Filters(
                projects=(session.project,), kinds=("observation",), types=("decision",)
            ),
        )  # fmt: skip
        others = store.get([hit.id for hit in recall_hits(store, asked) if hit.id != one.id])
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
    with store.transaction("work"):
        return store.put([prepare_item(item) for item in changed]).changed
