"""A turn and a session in six fields: what was asked, looked at, learned, done, what is left.

Nothing new is said here: the fields are made of prompts, facts, titles and names of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from yester.distil.cues import tells
from yester.distil.drafts import Draft, Gate
from yester.distil.phrases import cut, plain
from yester.distil.status import Status
from yester.distil.titles import asked, file_names, request_title, telling_request, words
from yester.distil.trouble import WARNING
from yester.distil.turns import View
from yester.model import replace
from yester.text.sentences import split_sentences

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
TAKEN_BACK = ("reverted", "failed")


@dataclass(frozen=True, slots=True)
class Summary:
    """`sections` has those of FIELDS that are not empty."""

    title: str
    epoch: int
    sections: dict[str, str]
    files_read: tuple[str, ...] = ()
    files_edited: tuple[str, ...] = ()
    status: str = ""  # of a turn: its word, and the evidence
    why: str = ""  # of a turn: what the agent found to be the cause

    def __bool__(self) -> bool:
        return any(
            self.sections.get(name) for name in ("completed", "learned", "notes", "next_steps")
        )


def turn_summary(turn: View, drafts: Sequence[Draft], gate: Gate, status: Status) -> Summary:
    """What a turn came to. Only what holds by evidence is completed; what failed, or was taken
    back, says so. It is empty (false) where there is nothing to tell."""
    request = asked(turn.prompt)
    done = [draft for draft in drafts if draft.slot.split(":")[0] in ("work", "commit")]
    told = [
        *done,
        *(draft for draft in drafts if draft.slot.split(":")[0] == "chosen"),
    ]  # by the request
    found = [
        draft
        for draft in drafts
        if draft not in told
        and WARNING not in draft.tags
        and not (draft.slot == "checked" and status.holds)  # how it failed is not what was done
    ]
    wanted = request_title(request) if telling_request(request) else ""
    undone = wanted if status.evidence.startswith("`git revert") else ""
    titles = [*(draft.title for draft in (*done, *found)), wanted, *(one.title for one in drafts)]
    title = next(filter(None, titles), "")
    fields = {
        "request": [request],
        "investigated": [_investigated(turn)],
        "learned": [
            *(fact.text for draft in drafts for fact in draft.facts if _learned(fact.text)),
            *(draft.title for draft in found if not _asks(draft.title, request)),
        ],
        "completed": ([draft.title for draft in done] or [undone]) if status.holds else [],
        "next_steps": [*_broken_off(turn, wanted, status), *_left_undone(turn, gate)],
        "notes": [
            *([f"{status.word}: {title}"] if status.word in TAKEN_BACK and title else []),
            *(draft.title for draft in drafts if WARNING in draft.tags),
        ],
    }
    return Summary(
        title, turn.ended, _filled(fields, _ROOM),
        tuple(dict.fromkeys(turn.looked_at))[:_MOST_FILES], turn.edited[:_MOST_FILES],
        status.text if status.word != "talk" else "", _cause(drafts),
    )  # fmt: skip


def _broken_off(turn: View, wanted: str, status: Status) -> list[str]:
    """What the turn leaves open: what was wanted, or what the user has to decide."""
    if status.word != "open":
        return []
    if turn.closing is not None and (asks := split_sentences(turn.closing.body)[-1:]):
        return [plain(asks[0])]
    return [wanted]


def _cause(drafts: Sequence[Draft]) -> str:
    """The first that the last message names: what was guessed before it may have been refuted."""
    causes = [
        fact
        for draft in drafts
        for fact in draft.facts
        if "cause" in tells(fact.text) and not _EXPLAINED_AWAY.search(fact.text)
    ]
    return next((plain(fact.text) for fact in causes if fact.source == causes[-1].source), "")


# What is said to be nobody's fault, or no fault at all, is often neither.
_EXPLAINED_AWAY = re.compile(
    r"\b(?:pre-?existing|expected|unrelated|not related|stale|not from (?:our|my)|harmless)\b", re.I
)


def mark_attempts(turn: View, drafts: Sequence[Draft], status: Status) -> list[Draft]:
    """Work that failed or was taken back says so, and is called what was asked for: what the agent
    claims of it did not come true."""
    if status.word not in TAKEN_BACK:
        return list(drafts)
    request = asked(turn.prompt)
    wanted = request_title(request) if telling_request(request) else ""
    wanted = wanted or f"Changed {file_names(turn.edited)}"
    marked = []
    for draft in drafts:
        slot = draft.slot.split(":")[0]
        if slot in ("work", "commit"):
            own = words(draft.title)
            claimed = slot == "work" and len(own & words(request)) < _SAME * len(own)
            title = wanted if claimed else draft.title
            draft = replace(draft, title=title, tags=(*draft.tags, status.word))
        marked.append(draft)
    return marked


def session_summary(turns: Sequence[Summary], todo: str = "") -> Summary:
    """What a session came to, of what its turns did; `todo` is its list of things to do."""
    telling = [one for one in turns if one]
    if not telling:
        return Summary("", 0, {})
    last = telling[-1]
    fields: dict[str, Iterable[str]] = {
        name: [line for one in telling for line in one.sections.get(name, "").split("\n")]
        for name in FIELDS
    }
    fields["next_steps"] = [*last.sections.get("next_steps", "").split("\n"), *_pending(todo)]
    fields["investigated"] = [_looked_at([f for one in telling for f in one.files_read])]
    return Summary(
        max(telling, key=_weight).title, last.epoch, _filled(fields, _SESSION_ROOM),
        _first(file for one in telling for file in one.files_read),
        _first(file for one in telling for file in one.files_edited),
    )  # fmt: skip


_WEIGHTS = {"done": 3, "changed": 2, "failed": 1, "reverted": 1, "open": 1}


def _weight(turn: Summary) -> tuple[int, int, int]:
    """How much of a session a turn is: what came of it, how many files it changed, how late."""
    word = turn.status.partition(":")[0]
    return _WEIGHTS.get(word, 0), len(turn.files_edited), turn.epoch


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


# What a closing message leaves undone, by sentences that were read: 12 of 13 of them right in the
# closing messages of 798 turns. Offers and plans are not among them.
_UNDONE = re.compile(
    r"(?<!\bwe )(?<!\byou )\bstill (?:needs? (?:to|human|your|review)|pending|blocked"
    r"|fail(?:s|ing)?\b(?! gracefully|-))"
    r"|\b(?:is|are)(?:n't| not) (?:yet )?(?:committed|pushed|deployed|implemented|fixed)(?: yet)?\b"
    r"|\bnot yet (?:mergeable|committed|pushed|deployed|implemented|fixed|done)\b"
    r"|\bremaining (?:issue|failure|problem|error)s? (?:is|are)\b|\bis unverified\b"
    r"|\b(?:haven't|have not|couldn't|could not|was(?:n't| not) able to) (?:yet )?(?:push|commit"
    r"|verif|fix|reproduc|run)\w*"
    r"|(?:ist|sind) noch nicht (?:fertig|behoben|umgesetzt)|尚未(?:完成|修复|提交)",
    re.I,
)
_OFFERS = re.compile(
    r"\?\W*\Z|\b(?:want me|would you like|let me know|shall i|should i|if you(?:'d| would)? (?:like"
    r"|want)|ready to|you (?:can|could|may|might))\b",
    re.I,
)


def _left_undone(turn: View, gate: Gate) -> list[str]:
    """What the agent said at its end is not done."""
    if turn.closing is None:
        return []
    return [
        plain(one.text)
        for one in gate.statements(turn.closing)
        if one.kind != "heading" and _UNDONE.search(one.text) and not _OFFERS.search(one.text)
        and not gate.echoes(one.text, turn.closing)
    ][:3]  # fmt: skip


def _first(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(files))[:_MOST_FILES]


_TO_DO = "to do: "


def _pending(todo: str) -> list[str]:
    """The entries of a list of things to do that are not done, marked as such."""
    return [_TO_DO + line[4:] for line in todo.split("\n") if line[:3] in ("[ ]", "[>]")][:4]


def as_session(one: Summary, todo: str) -> Summary:
    """A single turn is its session: the same, dated after it, with what is left to do."""
    left = [*one.sections.get("next_steps", "").split("\n"), *_pending(todo)]
    steps = _lines(left, _SESSION_ROOM["next_steps"])
    sections = {**one.sections, **({"next_steps": steps} if steps else {})}
    return replace(one, epoch=one.epoch + 1, sections=sections)


def as_turn(sections: Mapping[str, str]) -> dict[str, str]:
    """The sections of a turn that was its session: its list of things to do is the session's."""
    steps = sections.get("next_steps", "").split("\n")
    kept = "\n".join(line for line in steps if not line.startswith(_TO_DO))
    others = {name: text for name, text in sections.items() if name != "next_steps"}
    return {**others, **({"next_steps": kept} if kept else {})}
