"""What a language model is asked, and what of its answer is believed.

What it is to read stands in a fence (`yester.fence`), made neutral, so that no text can end the
fence and go on as if it were us. It was redacted before it was cut, and blocks that yester injected
are not in it. The wording is in tables/prompts.toml.

An answer is believed only as far as the text it was given bears it out. The shape must be right
(Malformed). What is in it must come from the text: a sentence stays if most of its telling words
stand there and all of its numbers do; others are dropped. Secrets are taken out again, and nothing
comes through that could pass for a fence, or that repeats what yester has shown to the agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct, inspect

from yester.errors import Malformed
from yester.fence import fence_text
from yester.ingest.prepare import Shown, is_repeated
from yester.model import Hit, Item, replace
from yester.tables import load_table
from yester.text.sentences import clean_text, one_line, split_sentences
from yester.text.terms import query_terms, text_terms

T = TypeVar("T")
H = TypeVar("H", bound="Headed")

# Characters that are sent of a turn (its beginning and its end), a hit, a question; paths.
MOST_TURN, MOST_HIT, MOST_QUERY, MOST_FILES = 24_000, 2_500, 500, 60
HEADINGS: Mapping[str, str] = load_table("digest")["headings"]
# What is kept of an answer, in characters and in numbers.
TITLE, SUBTITLE, FACT, SECTION, LINE = 120, 240, 400, 1_200, 400
NARRATIVE, FACTS, OBSERVATIONS, LINES = 2_000, 12, 8, 8
# The share of a text's telling words that must stand in what it was made from. A fact is nearly a
# quotation; a sentence of a story has words of its own.
FACT_SHARE, _STORY = 0.7, 0.5
_NOTHING_HOLDS = "nothing of it stands in the text"

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.S | re.I)
_BLOCK = re.compile(r"\A```(?:json)?\s*\n(?P<inner>.*?)\n?```\s*\Z", re.S | re.I)
_PLACE = re.compile(r"\$[\w.\[\]]{0,80}")


# --- shapes: what is asked for is what is read ---------------------------------------------------

Kind = Literal["bugfix", "feature", "refactor", "change", "discovery", "decision"]
TYPES: tuple[str, ...] = get_args(Kind)
# Another word is no reason to refuse an answer.
CONCEPTS = (
    "how-it-works", "why-it-exists", "what-changed", "problem-solution", "gotcha", "pattern",
    "trade-off",
)  # fmt: skip
_Concept = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(CONCEPTS)})]


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    type: Annotated[Kind, msgspec.Meta(extra_json_schema={"enum": list(TYPES)})]
    title: str
    subtitle: str = ""
    narrative: str
    facts: tuple[str, ...] = ()
    concepts: tuple[_Concept, ...] = ()
    files: tuple[str, ...] = ()


class Summed(msgspec.Struct, frozen=True):
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    notes: str = ""


SECTIONS = Summed.__struct_fields__


class TurnNotes(msgspec.Struct, frozen=True):
    observations: tuple[Observed, ...]
    summary: Summed


class Entry(msgspec.Struct, frozen=True):
    """A sentence of a digest and the items it comes from."""

    text: str
    items: tuple[int, ...]


class Headed(msgspec.Struct, frozen=True):
    """Fields are headings; true where something stands under one."""

    def __bool__(self) -> bool:
        return any(msgspec.structs.astuple(self))


class Headings(Headed, frozen=True):
    decisions: tuple[Entry, ...] = ()
    tried: tuple[Entry, ...] = ()
    files: tuple[Entry, ...] = ()
    warnings: tuple[Entry, ...] = ()
    open: tuple[Entry, ...] = ()


def json_schema(shape: inspect.Type) -> dict[str, Any]:
    """Every field is there, no field is unknown, as strict providers want it."""
    match shape:
        case inspect.Metadata():
            return {**json_schema(shape.type), **(shape.extra_json_schema or {})}
        case inspect.StructType():
            fields = {field.name: json_schema(field.type) for field in shape.fields}
            return {
                "type": "object",
                "properties": fields,
                "required": list(fields),
                "additionalProperties": False,
            }
        case inspect.VarTupleType():
            return {"type": "array", "items": json_schema(shape.item_type)}
        case inspect.IntType():
            return {"type": "integer"}
    return {"type": "string"}


# --- questions -----------------------------------------------------------------------------------


class Prompt(Struct, frozen=True):
    purpose: str  # its name and version, written beside what it cost
    system: str
    text: str
    schema: Mapping[str, Any]
    most_tokens: int

    def after_failure(self, reason: str) -> Prompt:
        """The same question after an answer that could not be used; the reason is in our words."""
        note = f"\n\nYour last answer could not be used: {reason}. Answer again, and shorter."
        return replace(self, system=self.system + note)


def make_prompt(name: str, shape: type, material: str, ahead: str = "") -> Prompt:
    """A question of the table about some material; `ahead` stands outside of the fence."""
    table = load_table("prompts")
    row = table[name]
    return Prompt(
        f"{name}/{row['version']}",
        row["system"].format(material=table["material"], concepts=", ".join(CONCEPTS)),
        ahead + fence_text("memory", material, row["label"]),
        json_schema(inspect.type_info(shape)),
        row["most_tokens"],
    )


def turn_prompt(text: str, seen: Sequence[Item], files: Sequence[str]) -> Prompt:
    """One turn. `seen` is what was found in it without a model, `files` what it has touched."""
    lines = [cut_middle(clean_text(text), MOST_TURN)]
    if seen:
        lines += ["", "Already noted:"]
        lines += [f"- {one.type or one.kind}: {clean_text(one.title)[:200]}" for one in seen[:12]]
    if files:
        lines += ["", "Files:", *(f"- {clean_text(path)[:300]}" for path in files[:MOST_FILES])]
    return make_prompt("turn", TurnNotes, "\n".join(lines))


def digest_prompt(query: str, hits: Sequence[Hit]) -> Prompt:
    notes = []
    for hit in hits:
        head = f"Note {hit.id} ({hit.kind}{', ' + hit.type if hit.type else ''})"
        paths = f"\nFiles: {', '.join(hit.files[:12])}" if hit.files else ""
        title = f"\n{clean_text(hit.title)[:200]}" if hit.title else ""
        notes.append(f"{head}{title}\n{cut_middle(clean_text(hit.text), MOST_HIT)}{paths}")
    asked = one_line(query, MOST_QUERY) or "what happened here?"
    ahead = f"The question: {asked}\n\n"
    return make_prompt("digest", Headings, "\n\n".join(notes), ahead)


def cut_middle(text: str, most: int) -> str:
    """The beginning and the end of a text: the question stands in one, the outcome in the other."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


# --- answers -------------------------------------------------------------------------------------


def parse_answer(text: str, shape: type[T]) -> T:
    """The JSON of an answer; around it may stand what local models like to add."""
    inner = _THOUGHT.sub("", text).strip()
    if block := _BLOCK.match(inner):
        inner = block["inner"]
    try:
        return msgspec.json.decode(inner, type=shape)
    except msgspec.ValidationError as error:
        # The place alone: the message quotes the answer, and the reason goes back to the model.
        place = _PLACE.search(str(error))
        raise Malformed(f"it is not of the schema, at {place[0] if place else '$'}") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise Malformed("it is not JSON") from None


def check_turn_notes(
    answer: str, given: str, files: Collection[str], shown: Sequence[Shown] = ()
) -> TurnNotes:
    """Notes of a turn as far as `given` bears them out; `shown` is what the agent was
    shown. Malformed where nothing of what came does."""
    notes = parse_answer(answer, TurnNotes)
    evidence = Evidence.of_texts(given, *files, shown=shown)
    observed = (_check_observation(one, evidence, files) for one in notes.observations)
    kept = tuple(one for one in islice(observed, OBSERVATIONS) if one is not None)
    sections = {
        name: evidence.keep_story(getattr(notes.summary, name), SECTION) for name in SECTIONS
    }
    if not kept and not any(sections.values()):
        raise Malformed(_NOTHING_HOLDS)
    return TurnNotes(kept, Summed(**sections))


def _check_observation(
    one: Observed, evidence: Evidence, files: Collection[str]
) -> Observed | None:
    title, subtitle = one_line(one.title, TITLE), one_line(one.subtitle, SUBTITLE)
    facts = evidence.keep_lines(one.facts[: 2 * FACTS], FACT_SHARE, FACT)[:FACTS]
    narrative = evidence.keep_story(one.narrative, NARRATIVE)
    if not evidence.holds(title, _STORY) or not (narrative or facts):
        return None
    named = {concept.strip().lower() for concept in one.concepts}
    return Observed(
        type=one.type,
        title=title,
        subtitle=subtitle if evidence.bears_out(subtitle, _STORY) else "",
        narrative=narrative,
        facts=facts,
        concepts=tuple(concept for concept in CONCEPTS if concept in named),
        files=tuple(path for path in files if path in one.files),
    )


def check_digest(answer: str, given: Mapping[int, str]) -> Headings:
    """A digest as far as the items bear it out that it names; `given` is item → its text."""
    known = {item: Evidence.of_texts(text).terms for item, text in given.items()}

    def keep_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
        kept: dict[str, Entry] = {}
        for entry in entries:
            text = one_line(entry.text, LINE)
            items = tuple(item for item in dict.fromkeys(entry.items) if item in known)
            evidence = Evidence(frozenset[str]().union(*(known[item] for item in items)))
            if evidence.bears_out(text, _STORY):
                kept.setdefault(text, Entry(text, items))
        return tuple(kept.values())[:LINES]

    return check_headed(answer, Headings, keep_entries)


def check_headed(answer: str, shape: type[H], keep: Callable[[Any], tuple[Any, ...]]) -> H:
    """What `keep` leaves under each heading of an answer; Malformed where that is nothing."""
    found = parse_answer(answer, shape)
    kept = shape(**{name: keep(getattr(found, name)) for name in shape.__struct_fields__})
    if found and not kept:
        raise Malformed(_NOTHING_HOLDS)
    return kept


class Evidence(Struct, frozen=True):
    """What an answer must come from, by its terms; and what the agent was shown, which is never
    something new."""

    terms: frozenset[str]
    shown: Sequence[Shown] = ()

    @classmethod
    def of_texts(cls, *texts: str, shown: Sequence[Shown] = ()) -> Evidence:
        return cls(frozenset(term for text in texts for term in text_terms(text)), shown)

    def bears_out(self, text: str, share: float) -> bool:
        """Do so many of the telling words stand there, and every number?"""
        telling = query_terms(text)
        strange = [term for term in telling if term not in self.terms]
        if any(sign.isdigit() for term in strange for sign in term):
            return False
        return bool(telling) and len(telling) - len(strange) >= share * len(telling)

    def holds(self, text: str, share: float) -> bool:
        return self.bears_out(text, share) and not is_repeated(text, self.shown)

    def keep_lines(self, texts: Iterable[str], share: float, most: int) -> tuple[str, ...]:
        """Those texts that hold, each on one line."""
        lines = dict.fromkeys(one_line(text, most) for text in texts)
        return tuple(line for line in lines if self.holds(line, share))

    def keep_story(self, text: str, most: int) -> str:
        """The sentences that hold."""
        sentences = split_sentences(clean_text(text))
        return one_line(" ".join(self.keep_lines(sentences, _STORY, most)), most)
