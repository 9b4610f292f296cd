"""The categories of structured memories: ONE table of what each one holds.

Six of them, with their fields, are those of `.claude/memory/` folders, so that such a folder can be
read and written; `rule` and `note` are ours and have no folder. A label is what stands before a
field in the readable text of a memory. All labels are stop words: a word like "rationale" in every
decision would make every decision an answer to a question with that word in it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yester.errors import UsageError
from yester.model import Hit

LONGEST_TITLE, LONGEST_SLUG, LONGEST_REASON = 120, 80, 300
UNSTATED = "not stated"  # where a field must hold something and nobody has said anything
TIE = 0.01  # of the better score: hits that are so close fit equally well
_OTHER_PRIORITY = 10


@dataclass(frozen=True, slots=True)
class Field:
    """`kind` is text, texts, choice, flag, record or records (of `fields`)."""

    name: str
    kind: str = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    default: Any = None  # what a plain text leaves open; None: the field is left out
    label: str = ""
    least: int = 0  # texts
    most: int = 20_000  # characters of one text
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Category:
    """`text` is the field a plain text fills, `because` the one for what follows "because", `lines`
    the one for all lines but the first."""

    name: str
    priority: int  # the smaller one comes first among equals
    folder: str  # in the files form; "": it has none
    deletable: bool  # may be deleted where something new contradicts it; else it is superseded
    help: str
    text: str
    fields: tuple[Field, ...]
    because: str = ""
    lines: str = ""

    def field(self, name: str) -> Field | None:
        return next((one for one in self.fields if one.name == name), None)


def _text(
    name: str, label: str = "", *, required: bool = False, default: str | None = None
) -> Field:
    return Field(name, required=required, label=label, default=default)


def _texts(name: str, label: str = "", *, required: bool = False, least: int = 0) -> Field:
    default = [UNSTATED] if least else [] if required else None
    return Field(name, "texts", required, label=label, least=least, default=default)


def _choice(name: str, *choices: str, default: str) -> Field:
    return Field(name, "choice", True, choices, default)


_LEVELS = ("high", "medium", "low")

_TABLE = (
    Category(
        "decision", 1, "decisions", False, "a choice that was made, and why", "decision",
        (
            _text("decision", required=True),
            _choice("status", "proposed", "accepted", "deprecated", "superseded",
                    default="accepted"),
            _text("context", "About", required=True, default=UNSTATED),
            _texts("rationale", "Why", required=True, least=1),
            Field("alternatives", "records", label="Not", fields=(
                _text("option", required=True),
                _text("rejected_reason", required=True, default=UNSTATED),
            )),
            _texts("consequences", "So"),
        ),
        because="rationale",
    ),
    Category(
        "constraint", 2, "constraints", True, "a limit that work has to keep within", "rule",
        (
            _text("rule", required=True),
            _choice("kind", "limitation", "gap", "policy", "technical", default="limitation"),
            _texts("impact", "So", required=True, least=1),
            _texts("workarounds", "But"),
            _choice("severity", *_LEVELS, default="medium"),
            Field("active", "flag", True, default=True),
            _text("expires", "Over when"),
        ),
    ),
    Category(
        "preference", 3, "preferences", False, "how somebody likes things done", "value",
        (
            _text("value", required=True),
            _text("topic", "About", required=True, default=UNSTATED),
            _text("reason", "Why"),
            _choice("strength", "strong", "default", "soft", default="default"),
            Field("examples", "record", fields=(_texts("prefer", "Like"), _texts("avoid", "Not"))),
        ),
        because="reason",
    ),
    Category(
        "runbook", 4, "runbooks", True, "what to do when something happens", "trigger",
        (
            _text("trigger", required=True),
            _texts("symptoms", "What"),
            _texts("steps", "Do", required=True, least=1),
            _text("verification", "Then", required=True, default=UNSTATED),
            _text("root_cause", "Why"),
            _text("environment", "Where"),
        ),
        because="root_cause", lines="steps",
    ),
    Category(
        "tech_debt", 5, "tech-debt", True, "what was put off, and why", "description",
        (
            _text("description", required=True),
            _choice("status", "open", "in_progress", "resolved", "wont_fix", default="open"),
            _choice("priority", "critical", *_LEVELS, default="medium"),
            _text("reason_deferred", "Why", required=True, default=UNSTATED),
            _texts("impact", "So"),
            _texts("suggested_fix", "Do"),
            _texts("acceptance_criteria", "Then"),
        ),
        because="reason_deferred",
    ),
    Category(
        "session_summary", 6, "sessions", False, "what a session was for and what came of it",
        "goal",
        (
            _text("goal", required=True),
            _choice("outcome", "success", "partial", "blocked", "abandoned", default="partial"),
            _texts("completed", "Did", required=True),
            _texts("in_progress", "Doing"),
            _texts("blockers", "But"),
            _texts("next_actions", "Then", required=True),
            _texts("key_changes", "With"),
        ),
        lines="completed",
    ),
    Category(
        "rule", _OTHER_PRIORITY, "", True, "what you have told your agents to do or not to do, "
        "always", "rule",
        (_text("rule", required=True), _text("subject", "About"), _text("reason", "Why")),
        because="reason",
    ),
    Category(
        "note", _OTHER_PRIORITY, "", True, "anything else worth keeping", "text",
        (_text("text", required=True),),
    ),
)  # fmt: skip

CATEGORIES: Mapping[str, Category] = {one.name: one for one in _TABLE}
_NOTE = CATEGORIES["note"]


def category_of(name: str) -> Category:
    """The row of this name; memories that a program gave another type count as notes."""
    return CATEGORIES.get(name, _NOTE)


def get_category(name: str) -> Category:
    """The category somebody has named, however it is spelled; UsageError where there is none."""
    folded = name.strip().lower().replace("-", "_")
    if folded not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        raise UsageError(f"type {name!r} is no category; the categories are {known}")
    return CATEGORIES[folded]


def category_priority(kind: str, type_: str) -> int:
    """Who comes first among equals: 1 before 10. Only memories have a category."""
    return category_of(type_).priority if kind == "memory" else _OTHER_PRIORITY


def order_hits(hits: Sequence[Hit], own: Container[int] = ()) -> list[Hit]:
    """The best first; of those within 1 % of each other what is `own` (ids: of the project that is
    asked in) before others, then decisions before constraints and so on.

    A category adds nothing to a score: it decides between hits that fit equally well, so none can
    bring in its entries by itself."""
    ranked = sorted(hits, key=lambda hit: (-hit.score, hit.id))
    ordered: list[Hit] = []
    while ranked:
        floor = ranked[0].score - TIE * abs(ranked[0].score)
        tied = [hit for hit in ranked if hit.score >= floor]
        ordered += sorted(
            tied,
            key=lambda hit: (hit.id not in own, category_priority(hit.kind, hit.type), -hit.score),
        )
        ranked = ranked[len(tied) :]
    return ordered
