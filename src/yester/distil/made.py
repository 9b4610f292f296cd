"""The items that are made of a session, under refs that are the same whenever it is distilled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from yester.distil.drafts import Draft
from yester.distil.summaries import Summary
from yester.distil.turns import View
from yester.model import DISTILLED, Item, Session, replace

Sources = tuple[tuple[int, int], ...]  # (number of the fact, item it was taken from); -1: no fact


@dataclass(frozen=True, slots=True)
class Made:
    """An item and what it was made of. One that is `repeated` is stored already and not written;
    one that is `folded` was there before and has got what was found once more."""

    item: Item
    sources: Sources
    repeated: bool = False
    folded: bool = False


def kept_once(item: Item) -> bool:
    """For a project, whichever session has met it last."""
    return item.ref.startswith("project:")


def observation(session: Session, turn: View, draft: Draft, tokens: int) -> Made:
    ref = f"turn:{session.key}:{turn.key}:{draft.slot}"
    if draft.slot.startswith("/"):
        ref = f"project:{session.project}:{draft.slot[1:]}"
    item = _item(
        session, ref, "observation", turn.number, draft.epoch, type=draft.type, title=draft.title,
        subtitle=draft.subtitle, body=draft.body, facts=tuple(fact.text for fact in draft.facts),
        concepts=draft.concepts, tags=draft.tags, files_read=draft.files_read,
        files_modified=draft.files_modified, sections=dict(draft.sections), discovery_tokens=tokens,
    )  # fmt: skip
    facts = tuple((number, fact.source) for number, fact in enumerate(draft.facts))
    return Made(item, facts + whole(turn))


def turn_ref(session: Session, key: str) -> str:
    return f"turn:{session.key}:{key}:summary"


def of_turn(session: Session, turn: View, one: Summary, tokens: int) -> Made:
    ref = turn_ref(session, turn.key)
    item = _item(
        session, ref, "summary", turn.number, one.epoch, type="turn", title=one.title,
        subtitle=one.status, body=one.why, sections=one.sections, files_read=one.files_read,
        files_modified=one.files_edited, discovery_tokens=tokens,
    )  # fmt: skip
    return Made(item, whole(turn))


def of_session(
    session: Session, number: int, one: Summary, tokens: int, sources: Iterable[tuple[int, int]]
) -> Made:
    ref = f"session:{session.key}:{session.project}"
    item = _item(
        session, ref, "summary", number, one.epoch, type="session", title=one.title,
        subtitle=one.status, body=one.why, sections=one.sections, files_read=one.files_read,
        files_modified=one.files_edited, discovery_tokens=tokens,
    )  # fmt: skip
    return Made(item, tuple(dict.fromkeys(sources)))


def _item(session: Session, ref: str, kind: str, number: int, epoch: int, **more: object) -> Item:
    base = Item(
        ref, kind, project=session.project, session=session.key, source=DISTILLED,
        agent=session.agent, prompt_number=number, epoch=epoch,
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


def whole(turn: View) -> Sources:
    """What title, text and sections are made of."""
    return tuple((-1, item.id) for item in (turn.prompt, turn.closing) if item is not None)


def as_summary(item: Item) -> Summary:
    return Summary(
        item.title,
        item.epoch,
        dict(item.sections),
        item.files_read,
        item.files_modified,
        item.subtitle,
        item.body,
    )
