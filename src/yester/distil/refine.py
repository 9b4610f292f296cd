"""A turn's notes once more, by a language model; what was found without one stays where it fails.

What a model writes takes the place of what was found, item for item: same refs, same session, same
time, the same tokens of discovery shared out. Which files were changed is known from what happened,
not from what a model says about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from yester.distil.asking import SECONDS, Asker
from yester.distil.prompts import SECTIONS, clean, turn_prompt
from yester.distil.validate import Observed, TurnNotes, turn_notes
from yester.ingest.echo import Shown
from yester.model import Item

NO_MODEL = "no language model is set"


@dataclass(frozen=True, slots=True)
class Draft:
    """What was found in a turn without a model. `shown` is what the agent was shown in the
    session (`ingest.echo.shown_texts`), which is never noted as something new."""

    observations: tuple[Item, ...] = ()
    summary: Item | None = None
    shown: tuple[Shown, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        found = (one for one in (*self.observations, self.summary) if one is not None)
        return tuple(dict.fromkeys(path for one in found for path in one.files))


@dataclass(frozen=True, slots=True)
class Refined:
    """What to keep of a turn; `model` and `prompt` made it, or `reason` says why none did."""

    observations: tuple[Item, ...]
    summary: Item | None
    model: str = ""
    prompt: str = ""
    reason: str = ""


def refine(asker: Asker | None, draft: Draft, text: str, seconds: float = SECONDS) -> Refined:
    """The notes of a turn from its text, which is what is new since the last one; never raises."""
    if asker is None:
        return Refined(draft.observations, draft.summary, reason=NO_MODEL)
    base = draft.observations[0] if draft.observations else draft.summary
    if base is None or not text.strip():
        return Refined(draft.observations, draft.summary, reason="there is nothing to refine")
    prompt = turn_prompt(text, draft.observations, draft.files)
    check = partial(turn_notes, given=clean(text), files=draft.files, shown=draft.shown)
    said = asker.ask(prompt, check, seconds)
    if said.value is None:
        return Refined(draft.observations, draft.summary, reason=said.reason)
    return Refined(
        _observations(said.value, draft, base) or draft.observations,
        _summary(said.value, draft.summary),
        asker.model.name,
        prompt.purpose,
    )


def _observations(notes: TurnNotes, draft: Draft, base: Item) -> tuple[Item, ...]:
    """None from the model is no reason to forget what was seen to happen: the caller keeps it."""
    shares = _shares(draft.observations, len(notes.observations))
    made = []
    for number, (one, tokens) in enumerate(zip(notes.observations, shares, strict=True)):
        known = number < len(draft.observations)
        place = draft.observations[number] if known else base
        ref = place.ref if known else f"{base.ref}+{number}"
        read, modified = _touched(one, draft)
        made.append(
            replace(
                place, ref=ref, kind="observation", type=one.type, title=one.title,
                subtitle=one.subtitle, body=one.narrative or " ".join(one.facts), facts=one.facts,
                concepts=one.concepts, files_read=read, files_modified=modified, sections={},
                discovery_tokens=tokens, alias="", id=0,
            )
        )  # fmt: skip
    return tuple(made)


def _shares(found: Sequence[Item], parts: int) -> list[int]:
    """The tokens of all that was found, shared out: the sum stays what it was."""
    whole = sum(one.discovery_tokens for one in found)
    return [whole // parts + (number < whole % parts) for number in range(parts)]


def _touched(one: Observed, draft: Draft) -> tuple[tuple[str, ...], tuple[str, ...]]:
    changed = {path for item in draft.observations for path in item.files_modified}
    if draft.summary is not None:
        changed.update(draft.summary.files_modified)
    modified = tuple(path for path in one.files if path in changed)
    return tuple(path for path in one.files if path not in changed), modified


def _summary(notes: TurnNotes, found: Item | None) -> Item | None:
    """Section by section: what the model left empty stays as it was found."""
    if found is None:
        return None
    written = {name: text for name in SECTIONS if (text := getattr(notes.summary, name))}
    sections = {**found.sections, **written}
    body = summary_text(sections) if found.body else ""
    return replace(found, sections=sections, body=body)


def summary_text(sections: Mapping[str, str]) -> str:
    """A summary to be read: a line for each section that says something."""
    told = ((name.replace("_", " ").capitalize(), text) for name, text in sections.items())
    return "\n".join(f"{name}: {text}" for name, text in told if text)
