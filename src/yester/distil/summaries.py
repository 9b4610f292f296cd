"""A turn and a session in six fields: what was asked, looked at, learned, done, what is left.

Nothing new is said here: the fields are made of prompts, facts, titles and names of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from yester.distil.cues import tells
from yester.distil.drafts import Draft, Gate
from yester.distil.phrases import cut, plain
from yester.distil.sentences import Statement
from yester.distil.titles import asked, file_names, request_title, telling_request, words
from yester.distil.trouble import WARNING
from yester.distil.turns import View

FIELDS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_ROOM = {
    "request": 240, "investigated": 200, "learned": 320, "completed": 320, "next_steps": 220,
    "notes": 220,
}  # fmt: skip
_SESSION_ROOM = {
    "request": 600, "investigated": 260, "learned": 800, "completed": 900, "next_steps": 400,
    "notes": 400,
}  # fmt: skip
_SAME = 0.8  # a line that has so many of its words in common with another says nothing new
_LEARNED = frozenset({"cause", "gotcha", "how", "failed"})
_MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """`sections` has those of FIELDS that are not empty."""

    title: str
    epoch: int
    sections: dict[str, str]
    files_read: tuple[str, ...] = ()
    files_edited: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self.sections.get(name) for name in ("completed", "learned", "notes"))


def turn_summary(turn: View, drafts: Sequence[Draft], gate: Gate) -> Summary:
    """What a turn came to. It is empty (false) where the turn has no observation."""
    request = asked(turn.prompt)
    done = [draft for draft in drafts if draft.slot.split(":")[0] in ("work", "commit")]
    told = [
        *done,
        *(draft for draft in drafts if draft.slot.split(":")[0] == "chosen"),
    ]  # by the request
    found = [draft for draft in drafts if draft not in told and WARNING not in draft.tags]
    fields = {
        "request": [request],
        "investigated": [_investigated(turn)],
        "learned": [
            *(fact.text for draft in drafts for fact in draft.facts if _learned(fact.text)),
            *(draft.title for draft in found if not _asks(draft.title, request)),
        ],
        "completed": [draft.title for draft in done],
        "next_steps": _next_steps(turn, gate),
        "notes": [draft.title for draft in drafts if WARNING in draft.tags],
    }
    title = request_title(request) if telling_request(request) else ""
    title = title or next((draft.title for draft in drafts), "")
    return Summary(
        title, turn.ended, _filled(fields, _ROOM),
        tuple(dict.fromkeys(turn.looked_at))[:_MOST_FILES], turn.edited[:_MOST_FILES],
    )  # fmt: skip


def session_summary(turns: Sequence[Summary], todo: str = "") -> Summary:
    """What a session came to, of what its turns did; `todo` is its list of things to do."""
    telling = [one for one in turns if one]
    if not telling:
        return Summary("", 0, {})
    last = telling[-1]
    left = [line[4:] for line in todo.split("\n") if line[:3] in ("[ ]", "[>]")]
    fields: dict[str, Iterable[str]] = {
        name: [line for one in telling for line in one.sections.get(name, "").split("\n")]
        for name in FIELDS
    }
    fields["next_steps"] = [*last.sections.get("next_steps", "").split("\n"), *left[:4]]
    fields["investigated"] = [_looked_at([f for one in telling for f in one.files_read])]
    return Summary(
        telling[0].title, last.epoch, _filled(fields, _SESSION_ROOM),
        _first(file for one in telling for file in one.files_read),
        _first(file for one in telling for file in one.files_edited),
    )  # fmt: skip


def _filled(fields: Mapping[str, Iterable[str]], room: dict[str, int]) -> dict[str, str]:
    kept = {name: _lines(fields[name], room[name]) for name in FIELDS}
    return {name: text for name, text in kept.items() if text}


def _lines(texts: Iterable[str], room: int) -> str:
    """As many different ones as there is room for, a line each."""
    kept: list[str] = []
    known: list[set[str]] = []
    for text in texts:
        line = cut(plain(text), 240)
        own = words(line)
        if not line or (own and any(len(own & other) >= _SAME * len(own) for other in known)):
            continue
        if len(line) > room:
            if kept:
                continue
            line = cut(line, room)
        room -= len(line) + 1
        kept.append(line)
        known.append(own)
    return "\n".join(kept)


def _learned(text: str) -> bool:
    return bool(tells(text) & _LEARNED) and not text.rstrip(" \"')*_").endswith("?")


def _asks(title: str, request: str) -> bool:
    """An answer of many parts is named by its question; nobody has learned that."""
    return title.endswith("?") or words(title) <= words(request)


def _investigated(turn: View) -> str:
    searches = [_first_line(step.item.body) for step in turn.steps if step.searches]
    looked = _looked_at(turn.looked_at)
    patterns = ", ".join(f"“{cut(one, 40)}”" for one in dict.fromkeys(searches[:3]))
    return "; ".join(filter(None, (looked, f"searched for {patterns}" if patterns else "")))


def _looked_at(files: Sequence[str]) -> str:
    return f"read {file_names(files, 6)}" if files else ""


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


def _next_steps(turn: View, gate: Gate) -> list[str]:
    """What the agent left open or offered at its end."""
    if turn.closing is None:
        return []
    ends = [one for one in gate.statements(turn.closing) if one.kind != "heading"][-8:]
    open_ones = (one for one in ends if _open(one) and not gate.echoes(one.text, turn.closing))
    return [plain(one.text) for one in open_ones][:3]


def _open(statement: Statement) -> bool:
    heading = statement.heading.lower()
    listed = heading.startswith(("next step", "remaining", "todo", "to do", "follow", "open "))
    return len(statement.text) >= 20 and (listed or "next" in statement.tells)


def _first(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(files))[:_MOST_FILES]


def as_session(one: Summary) -> Summary:
    """A single turn is its session: the same, dated after it."""
    return replace(one, epoch=one.epoch + 1)
