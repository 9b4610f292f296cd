"""The turns of a session, noted by a language model: which, of what text, and what becomes of it.

A turn is written down as asked about before the model is, so that it is asked once however often we
are killed, and again only when the turn has grown or somebody says so. What it writes goes in place
of what was found, item for item: same refs, same session, same time, the same tokens of discovery
shared out; in one transaction, and where the turn was distilled anew meanwhile, it is dropped. What
was found stays where the model fails. Which files were changed is known from what happened, not
from what a model says about it; what went wrong (warnings) and what is kept once for a project
stays as it was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from yester.cards.drafts import WARNING
from yester.cards.sessions import turn_shape
from yester.cards.status import Changes
from yester.cards.turns import LOOK_BACK, DistilRules, History, View, distilled_items
from yester.clock import DAY
from yester.ingest.prepare import Shown, prepare_item, shown_texts
from yester.llm.budget import SECONDS, Asker, Said, day_of
from yester.llm.questions import SECTIONS, TurnNotes, check_turn_notes, turn_prompt
from yester.model import Item, Refinement, Session, replace
from yester.store.contract import Store
from yester.store.figures import spent_since
from yester.text.sentences import clean_text

LATELY = DAY  # older turns are not asked about unless somebody names their session
CUT_SHORT = "cut short: it was asked, and nobody was there for the answer"
MEANWHILE = "the turn went on meanwhile"
_STEP_CHARS = 1_500  # of what a tool was given and gave


class Draft(Struct, frozen=True):
    """What was found in a turn without a model, the text of the turn, and the items that is made
    of. `shown` is what the agent was shown in the session (`ingest.prepare.shown_texts`), which is
    never noted as something new."""

    observations: tuple[Item, ...] = ()
    summary: Item | None = None
    text: str = ""
    shown: tuple[Shown, ...] = ()
    key: str = ""  # of the turn
    number: int = 0
    started: int = 0
    shape: str = ""
    sources: tuple[int, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        return self.observations if self.summary is None else (*self.observations, self.summary)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for one in self.items for path in one.files))


# --- one turn ------------------------------------------------------------------------------------


def refine_draft(asker: Asker, draft: Draft, seconds: float = SECONDS) -> Said[Draft]:
    """A model's notes of a turn from its text, which is what is new since the last one, or the
    reason why it stays as it was found; never raises."""
    if not draft.items or not draft.text.strip():
        return Said(reason="there is nothing to refine")
    prompt = turn_prompt(draft.text, draft.observations, draft.files)
    given = clean_text(draft.text)
    check = partial(check_turn_notes, given=given, files=draft.files, shown=draft.shown)
    said = asker.ask(prompt, check, seconds)
    if said.value is None:
        return Said(reason=said.reason)
    observations = _noted_observations(said.value, draft) or draft.observations
    summary = _noted_summary(said.value, draft.summary)
    return Said(replace(draft, observations=observations, summary=summary))


def _noted_observations(notes: TurnNotes, draft: Draft) -> tuple[Item, ...]:
    """None from the model is no reason to forget what was seen to happen: the caller keeps it."""
    base = draft.items[0]
    changed = {path for item in draft.items for path in item.files_modified}
    # The tokens of all that was found, shared out: the sum stays what it was.
    whole, parts = sum(one.discovery_tokens for one in draft.observations), len(notes.observations)
    made = []
    for number, one in enumerate(notes.observations):
        known = number < len(draft.observations)
        place = draft.observations[number] if known else base
        made.append(
            replace(
                place, ref=place.ref if known else f"{base.ref}+{number}", kind="observation",
                type=one.type, title=one.title, subtitle=one.subtitle,
                body=one.narrative or " ".join(one.facts), facts=one.facts, concepts=one.concepts,
                files_read=tuple(path for path in one.files if path not in changed),
                files_modified=tuple(path for path in one.files if path in changed),
                sections={}, alias="", id=0,
                discovery_tokens=whole // parts + (number < whole % parts),
            )
        )  # fmt: skip
    return tuple(made)


def _noted_summary(notes: TurnNotes, found: Item | None) -> Item | None:
    """Section by section: what the model left empty stays as it was found, and so does what was
    completed: evidence decides that."""
    if found is None:
        return None
    written = {name: text for name in SECTIONS if (text := getattr(notes.summary, name))}
    if "completed" not in found.sections:
        written.pop("completed", None)
    return replace(found, sections={**found.sections, **written})


# --- the turns of a session ----------------------------------------------------------------------


def find_unrefined(
    store: Store, session: Session, since: int, rules: DistilRules, again: bool = False
) -> list[Draft]:
    """The distilled turns since then which no model was asked about as they are now; with `again`
    those, too, for which that came to nothing."""
    known = distilled_items(store, session.id)
    marks = {mark.turn: mark for mark in store.entries(Refinement, {"session": session.id})}
    # The same turns must look the same here as where they are distilled: with those before them.
    history = History(store, session.id, since)
    for _ in history.read_items(replace(rules, most=0), _STEP_CHARS):
        pass
    turns = history.turns()
    shown = tuple(shown_texts(store, session.id, session.key))
    found = []
    committed = Changes(turns).follow().commits_by_turn(LOOK_BACK)
    for turn, commits in zip(turns, committed, strict=True):
        now, mark = turn_shape(turn, commits), marks.get(turn.key)
        asked = mark is not None and mark.shape == now and not (again and mark.reason)
        own = [item for item in known if f":{turn.key}:" in item.ref]
        if turn.started < since or asked or not own:
            continue
        observed = (i for i in own if i.kind == "observation" and WARNING not in i.tags)
        summary = next((item for item in own if item.kind == "summary"), None)
        sources, text = _text_of_turn(turn, history.texts)
        draft = Draft(
            tuple(observed), summary, text, shown, turn.key, turn.number, turn.started, now, sources
        )
        if draft.items:
            found.append(draft)
    return found


def refine_turns(
    store: Store,
    asker: Asker,
    session: Session,
    drafts: Sequence[Draft],
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Draft, str]]:
    """Ask about turns, one after the other: each, and why it stays as it was found. Ends early
    where so many calls are under way already as may be: those that are left are still to be asked
    about."""
    for draft in drafts:
        now = asker.now()
        if stopped() or spent_since(store, day_of(now), now).in_flight >= asker.limits.in_flight:
            return
        mark = Refinement(session.id, draft.key, draft.shape, now, asker.model.name, CUT_SHORT)
        with store.transaction("ledger"):
            store.append([mark])
        refined = refine_draft(asker, draft)
        reason, noted = refined.reason, refined.value
        if noted is not None and not _store_refined(store, session, draft, noted, mark):
            reason = MEANWHILE
        if reason:
            with store.transaction("ledger"):
                store.append([replace(mark, reason=reason)])
        yield draft, reason


def _text_of_turn(turn: View, texts: Mapping[int, str]) -> tuple[tuple[int, ...], str]:
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


def _store_refined(
    store: Store, session: Session, draft: Draft, noted: Draft, mark: Refinement
) -> bool:
    """Put what a model wrote in place of what was found; False where that is there no more."""
    whole = tuple((-1, source) for source in draft.sources)
    entries = [replace(prepare_item(replace(one, id=0)), evidence=whole) for one in noted.items]
    refs = {one.ref for one in noted.items}
    with store.transaction("work"):
        there = {item.ref: item for item in distilled_items(store, session.id)}
        if any(there.get(one.ref) != one for one in draft.items):
            return False
        store.remove([one.id for one in draft.items if one.ref not in refs])
        store.put(entries)
        store.append([replace(mark, reason="")])
        store.queue_sessions({session.id: draft.started})  # its session's summary is made of it
    return True
