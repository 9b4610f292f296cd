"""The turns of a session, noted by a language model: which, of what text, and what becomes of it.

A turn is written down as asked about before the model is, so that it is asked once however often we
are killed, and again only when the turn has grown or somebody says so. What it writes goes in place
of what was found, in one transaction with that; where the turn was distilled anew meanwhile, it is
dropped. What went wrong (warnings) and what is kept once for a project stays as it was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from yester.distil.asking import Asker
from yester.distil.budget import day_of
from yester.distil.distil import shape
from yester.distil.history import LOOK_BACK, History, Rules, distilled_items
from yester.distil.refine import Draft, Refined, refine
from yester.distil.trouble import WARNING
from yester.distil.turns import View
from yester.distil.work import assigned
from yester.ingest.echo import shown_texts
from yester.ingest.prepare import prepared
from yester.model import Item, Refinement, Session
from yester.store.contract import Store
from yester.store.figures import spent_since

LATELY = 86_400_000  # ms; older turns are not asked about unless somebody names their session
CUT_SHORT = "cut short: it was asked, and nobody was there for the answer"
MEANWHILE = "the turn went on meanwhile"
_STEP_CHARS = 1_500  # of what a tool was given and gave


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn to be asked about: what was found in it, its text, and what that is made of."""

    key: str
    number: int
    started: int
    shape: str
    draft: Draft
    text: str
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a turn: `reason` says why it stays as it was found."""

    turn: Turn
    refined: Refined

    @property
    def reason(self) -> str:
        return self.refined.reason


def unrefined(
    store: Store, session: Session, since: int, rules: Rules, again: bool = False
) -> list[Turn]:
    """The distilled turns since then which no model was asked about as they are now; with `again`
    those, too, for which that came to nothing."""
    known = distilled_items(store, session.id)
    marks = {mark.turn: mark for mark in store.entries(Refinement, {"session": session.id})}
    # The same turns must look the same here as where they are distilled: with those before them.
    history = History(store, session.id, since)
    for _ in history.read(replace(rules, most=0), _STEP_CHARS):
        pass
    turns = history.turns()
    shown = tuple(shown_texts(store, session.id, session.key))
    found = []
    for turn, commits in zip(turns, assigned(turns, LOOK_BACK), strict=True):
        now, mark = shape(turn, commits), marks.get(turn.key)
        if turn.started < since or (
            mark is not None and mark.shape == now and not (again and mark.reason)
        ):
            continue
        draft = replace(_draft(known, turn), shown=shown)
        if draft.observations or draft.summary is not None:
            sources, text = _text(turn, history.texts)
            found.append(Turn(turn.key, turn.number, turn.started, now, draft, text, sources))
    return found


def refine_turns(
    store: Store,
    asker: Asker,
    session: Session,
    turns: Sequence[Turn],
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Done]:
    """Ask about turns, one after the other. Ends early where so many calls are under way already
    as may be: those that are left are still to be asked about."""
    for turn in turns:
        now = asker.now()
        if stopped() or spent_since(store, day_of(now), now).in_flight >= asker.limits.in_flight:
            return
        mark = Refinement(session.id, turn.key, turn.shape, now, asker.model.name, CUT_SHORT)
        with store.transaction():
            store.append([mark])
        refined = refine(asker, turn.draft, turn.text)
        if not refined.reason and not _replace(store, session, turn, refined, mark):
            refined = Refined(turn.draft.observations, turn.draft.summary, reason=MEANWHILE)
        if refined.reason:
            with store.transaction():
                store.append([replace(mark, reason=refined.reason)])
        yield Done(turn, refined)


def _draft(known: Sequence[Item], turn: View) -> Draft:
    """What was found in a turn; the summary of a session of one turn is that of the turn."""
    own = [item for item in known if f":{turn.key}:" in item.ref]
    summary = next((item for item in own if item.kind == "summary"), None)
    if summary is None and not any(i.kind == "summary" and i.type == "turn" for i in known):
        summary = next(
            (i for i in known if i.kind == "summary" and i.prompt_number == turn.number != 0), None
        )
    observed = (i for i in own if i.kind == "observation" and WARNING not in i.tags)
    return Draft(tuple(observed), summary)


def _text(turn: View, texts: Mapping[int, str]) -> tuple[tuple[int, ...], str]:
    """What was said and done in a turn, in its order, and the items it comes from."""
    parts = [("Agent", item, item.body) for item in turn.said]
    parts += [(step.item.tool or "Tool", step.item, texts[step.item.id]) for step in turn.steps]
    parts.sort(key=lambda part: (part[1].epoch, part[1].id))
    if turn.prompt is not None:
        parts.insert(0, ("User", turn.prompt, turn.prompt.body))
    return (
        tuple(item.id for _, item, _ in parts),
        "\n\n".join(f"{who}: {body}" for who, _, body in parts),
    )


def _replace(
    store: Store, session: Session, turn: Turn, refined: Refined, mark: Refinement
) -> bool:
    """Put what a model wrote in place of what was found; False where that is there no more."""
    found = [one for one in (*turn.draft.observations, turn.draft.summary) if one is not None]
    made = [one for one in (*refined.observations, refined.summary) if one is not None]
    whole = tuple((-1, source) for source in turn.sources)
    entries = [replace(prepared(replace(one, id=0)), evidence=whole) for one in made]
    refs = {one.ref for one in made}
    with store.transaction("work"):
        there = {item.ref: item for item in distilled_items(store, session.id)}
        if any(there.get(one.ref) != one for one in found):
            return False
        store.remove([one.id for one in found if one.ref not in refs])
        store.put(entries)
        store.append([replace(mark, reason="")])
        store.queue_sessions({session.id: turn.started})  # its session's summary is made of it
    return True
