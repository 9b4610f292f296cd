"""What an agent gets: at the start what happened last here, at a prompt what fits it.

Everything shown is somebody's words of another day, so every line says whose and when, carries the
number to ask for the whole, and stands in a fence (`yester.fence`). Lines are added in the order of
their worth as long as the budget lasts; one that does not fit is passed over for the next.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from yester.deliver.gate import trivial
from yester.fence import MOST_UNITS, fenced, neutral, strip_fenced, units
from yester.git import Signals
from yester.model import Filters, Hit, Item, Project, Session
from yester.recall.arms import OneQuestion
from yester.recall.beginning import relevant
from yester.recall.floor import worth_showing
from yester.recall.rank import Weights
from yester.recall.recall import Asked, Fates, recall
from yester.recall.snippet import snippet
from yester.redact import redact
from yester.store.base import Store
from yester.text.terms import query_terms

if TYPE_CHECKING:
    from yester.text.embed import Embedder

_LOOKED_AT = 10  # last sessions, of which some tell nothing
_ASKED = 30  # hits, of which some are known, of this session or below the floor
_LONGEST_PROMPT = 20_000  # characters; the question stands at the beginning or the end
_TAIL = 40  # last messages of a session among which its closing words are looked for
_PROMPTS = (4, 2, 2)  # shown of the newest session, of the one before, …: so many sessions
_RELEVANT = 5  # about the work at hand
_TALK = ("message", "prompt")
_ENDING, _PROMPT, _NOTE, _TITLE, _SNIPPET, _NAME = 500, 160, 300, 100, 240, 40  # characters
_STALE = 100

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SPEAKERS = {
    "user": "user", "assistant": "agent", "thinking": "agent (thinking)", "task": "agent (task)",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of a context, for the ledger. `score` is 0 where nothing was ranked."""

    item: int
    score: float
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """The fenced text and what it shows; both empty when there is nothing to say."""

    text: str = ""
    shown: tuple[Shown, ...] = ()


def tokens(text: str) -> int:
    """What a text costs a model, about."""
    return (len(text) + 3) // 4


def at_start(
    store: Store,
    project: Project,
    session: str,
    now: int,
    budget: int = 2_000,
    zone: tzinfo | None = None,
    signals: Signals | None = None,
    weights: Weights | None = None,
    embedder: Embedder | None = None,
    fates: Fates | None = None,
) -> Context:
    """What happened last in this project, before the session that begins now, and what is known
    about the work at hand (`signals`)."""
    here = Filters(projects=(project.key,))
    number = store.statistics((), here).items
    if not number:
        return Context()
    name = _line(project.name, _NAME)
    page = _Page(
        f"{name}, what happened last",
        f"Project {name}: what happened last, the newest session first.",
        f'{number:,} items are recorded here. More: yester recall "words"; one as a whole: '
        "yester show ID.",
        budget,
    )
    calendar = _Calendar(now, zone)
    place = 0
    for one in store.sessions(here, _LOOKED_AT):
        if place == len(_PROMPTS):
            break
        entries = _session_entries(store, one, place) if one.key != session else []
        if not entries:
            continue
        heading = _heading(one, calendar, [entry.item for entry in entries])
        for entry in entries:
            item = entry.item
            line = _said(item, calendar, _line(item.body or item.title, entry.most), entry.label)
            page.add(line, item.id, entry.reason, (place, item.epoch, item.id), heading=heading)
        place += 1
    told = {one.item for one in page.shown}
    if signals is not None:
        found = relevant(
            store, project.key, signals, now, _RELEVANT + len(told), weights, embedder, fates
        )
        new = [hit for hit in found if hit.id not in told and hit.session != session]
        for number, hit in enumerate(new[:_RELEVANT]):
            line = _found_line(hit, calendar, _titled(hit.title, _line(hit.text, _NOTE)))
            heading = f"About the work at hand{_at_hand(signals)}:"
            page.add(line, hit.id, "at hand", (place, number, 0), hit.score, heading)
        place += 1
        told |= {hit.id for hit in new}
    for item in _loose(store, here):
        if item.id in told:
            continue
        line = _said(item, calendar, _titled(item.title, _line(item.body, _NOTE)))
        order = (place, -item.epoch, -item.id)
        page.add(line, item.id, "recent", order, heading="Recorded outside of sessions:")
    return page.context()


def at_prompt(
    store: Store,
    prompt: str,
    project: Project,
    session: str,
    known: Container[int],
    spent: int,
    now: int,
    most: int = 5,
    budget: int = 600,
    session_budget: int = 6_000,
    zone: tzinfo | None = None,
    embedder: Embedder | None = None,
    files: tuple[str, ...] = (),
    weights: Weights | None = None,
    fates: Fates | None = None,
    everywhere: bool = True,
) -> Context:
    """What is recorded elsewhere about what this prompt is about.

    `known` are the items this session was given before, `spent` the tokens of all it was given,
    `files` what is being worked on. Other projects are looked at where `everywhere` allows it.
    """
    prompt = strip_fenced(prompt)  # Gemini hands back what it was given at the start
    if trivial(prompt):
        return Context()
    page = _Page(
        "what fits the prompt",
        "Found in earlier sessions for this prompt; one as a whole: yester show ID.",
        "",
        min(budget, session_budget - spent),
    )
    if not page.room:
        return Context()
    if len(prompt) > _LONGEST_PROMPT:
        half = _LONGEST_PROMPT // 2
        prompt = f"{prompt[:half]}\n{prompt[-half:]}"
    asked = query_terms(prompt)
    items = store.statistics((), Filters()).items
    calendar = _Calendar(now, zone)
    turns: set[tuple[str, int]] = set()
    asks = _Asks(weights, embedder, fates)
    for hit, own in _found(store, prompt, project, now, files, asks, everywhere):
        if len(page.shown) >= most:
            break
        if hit.id in known or (session and hit.session == session):
            continue
        if not worth_showing(hit.factors, len(asked), items, own):
            continue
        turn = (hit.session, hit.prompt_number)
        if hit.session and hit.kind in _TALK and turn in turns:
            continue  # the best of a turn stands for it
        turns.add(turn)
        text = _titled(hit.title, snippet(_clean(hit.text), asked, _SNIPPET))
        origin = "" if own else f" [from: {_line(hit.project, _NAME)}]"
        reason = "same project" if own else "other project"
        order = (0, len(page.shown), 0)
        page.add(_found_line(hit, calendar, text, origin), hit.id, reason, order, hit.score)
    return page.context()


@dataclass(frozen=True, slots=True)
class _Asks:
    """What a search needs besides its question."""

    weights: Weights | None
    embedder: Embedder | None
    fates: Fates | None


def _found(
    store: Store,
    prompt: str,
    project: Project,
    now: int,
    files: tuple[str, ...],
    asks: _Asks,
    everywhere: bool,
) -> list[tuple[Hit, bool]]:
    """Hits, the best first, and whether they are of this project, whose come first among equals."""
    # On lines of their own the words are words: nobody writes operators to an agent.
    query = "\n".join(prompt.split())
    asked = Asked(query, k=_ASKED, explain=True, now=now, project=project.key, files=files)
    asked_here = replace(asked, filters=Filters(projects=(project.key,)))
    once = OneQuestion(asks.embedder) if asks.embedder is not None else None
    # Asked for itself as well, no busy project can push the present one out. Found both ways, the
    # score over everything counts: in a small project every word is rare.
    own = {hit.id: hit for hit in recall(store, asked_here, asks.weights, once, asks.fates)}
    merged = dict(own)
    if everywhere:
        merged |= {h.id: h for h in recall(store, asked, asks.weights, once, asks.fates)}
    names = {known.key: known.name for known in store.projects()}
    name = names.get(project.key)  # two projects may call themselves the same
    said_here = {(hit.title, hit.text) for hit in own.values()}
    ranked = [
        (hit, here)
        for hit in merged.values()
        if (here := hit.project == name) or (hit.title, hit.text) not in said_here
    ]
    ranked.sort(key=lambda pair: (-round(pair[0].score, 2), not pair[1], -pair[0].epoch))
    return ranked


# --- what is worth a line of a session ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    item: Item
    reason: str
    most: int  # characters to show
    label: str = ""


def _session_entries(store: Store, session: Session, place: int) -> list[_Entry]:
    """What tells a session's story, the most telling first."""

    def last(kinds: tuple[str, ...], limit: int) -> list[Item]:
        filters = Filters(
            projects=(session.project,), kinds=kinds, session=session.key, agent=session.agent
        )
        return [item for item in store.newest(filters, limit) if not item.actor]

    said = [item for item in last(("message",), _TAIL) if item.role == "assistant"]
    entries = [_Entry(item, "ending", _ENDING, ", at the end") for item in said[:1]]
    prompts = [item for item in last(("prompt",), 4 * _PROMPTS[place]) if _telling(item.body)]
    entries += [_Entry(item, "prompt", _PROMPT) for item in prompts[: _PROMPTS[place]]]
    if place == 0:
        notes = last(("summary", "note"), 4)
        entries += [_Entry(item, _what(item), _NOTE) for item in notes]
    return entries


def _telling(prompt: str) -> bool:
    return trivial(prompt) in ("", "short")


def _loose(store: Store, here: Filters) -> list[Item]:
    """The newest that belong to no session: given by a program, or by hand."""
    found = store.newest(replace(here, kinds=("observation", "memory", "note", "summary")), 30)
    return [item for item in found if not item.session][:5]


def _heading(session: Session, calendar: _Calendar, shown: Iterable[Item]) -> str:
    title = _line(session.title, _TITLE)
    told = title.rstrip("…")
    if any(told and _line(item.body, len(told) + 1).startswith(told) for item in shown):
        title = ""  # its first prompt says it as well
    prompts = f"{session.prompts} prompt{'' if session.prompts == 1 else 's'}"
    named = f', titled "{title}"' if title else ""
    agent = _line(session.agent, _NAME) or "an agent"
    return f"Session of {calendar.day(session.ended)} with {agent}{named} ({prompts}):"


# --- lines -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Calendar:
    now: int
    zone: tzinfo | None

    def day(self, epoch: int) -> str:
        """12 Nov; with the year where it is another one."""
        if epoch <= 0:
            return "undated"
        try:
            date = datetime.fromtimestamp(epoch / 1000, self.zone)
            this_year = datetime.fromtimestamp(self.now / 1000, self.zone).year
        except (ValueError, OverflowError, OSError):
            return "undated"
        year = "" if date.year == this_year else f" {date.year}"
        return f"{date.day} {_MONTHS[date.month - 1]}{year}"


def _clean(text: str) -> str:
    """Without secrets, without what we injected ourselves, without anything that could harm."""
    return neutral(strip_fenced(redact(text)))


def _line(text: str, most: int) -> str:
    """The beginning of a text on one line: no line is without the name of who said it."""
    line = " ".join(_clean(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _titled(title: str, text: str) -> str:
    title = _line(title, _TITLE)
    if not title or text.lstrip("# ").startswith(title.rstrip("…")):
        return text
    return f"{title}: {text}" if text else title


def _said(one: Item | Hit, calendar: _Calendar, text: str, more: str = "") -> str:
    """`#12 user, 12 Nov: …`: whose words, of which day."""
    if one.role == "tool":
        speaker = _line(one.tool, _NAME) or "tool"
    else:
        speaker = _SPEAKERS.get(one.role, "")
    who = ", ".join(filter(None, (speaker, _what(one)))) or one.kind
    epoch = one.epoch if isinstance(one, Item) else int(one.epoch * 1000)
    return f"#{one.id} {who}, {calendar.day(epoch)}{more}: {text or '(empty)'}"


def _found_line(hit: Hit, calendar: _Calendar, text: str, origin: str = "") -> str:
    """The same for what was looked for, with what has happened to its files since."""
    stale = f" (since then: {_line(hit.stale, _STALE)})" if hit.stale else ""
    return _said(hit, calendar, text + stale, origin)


def _at_hand(signals: Signals) -> str:
    """(branch fix/retries, 3 files changed)"""
    number = len(signals.changed)
    changed = f"{number} file{'' if number == 1 else 's'} changed" if number else ""
    branch = f"branch {_line(signals.branch, _NAME)}" if signals.branch else ""
    told = ", ".join(filter(None, (branch, changed)))
    return f" ({told})" if told else ""


def _what(one: Item | Hit) -> str:
    """plan, todo, decision, summary …; talk needs no name."""
    if one.kind in ("message", "prompt"):
        return ""
    return one.kind if one.kind == "summary" else _line(one.type, _NAME) or one.kind


class _Page:
    """Lines between a head and a foot, as many as the budget and the clients' limit allow."""

    def __init__(self, note: str, head: str, foot: str, budget: int) -> None:
        self._note, self._head, self._foot = note, head, foot
        empty = self._text(())
        self._characters = 4 * budget - len(empty)
        self._units = MOST_UNITS - units(empty)
        self._lines: list[tuple[tuple[int, int, int], str]] = []
        self._headings: dict[int, str] = {}
        self.shown: list[Shown] = []

    @property
    def room(self) -> bool:
        return self._characters > 0 and self._units > 0

    def add(
        self,
        line: str,
        item: int,
        reason: str,
        place: tuple[int, int, int],
        score: float = 0.0,
        heading: str = "",
    ) -> None:
        """Put a line into its place, if it fits; the first one of a section brings its heading."""
        known = not heading or place[0] in self._headings
        added = f"{line}\n" if known else f"{heading}\n{line}\n"
        if len(added) > self._characters or units(added) > self._units:
            return
        self._characters -= len(added)
        self._units -= units(added)
        if not known:
            self._headings[place[0]] = heading
        self._lines.append((place, line))
        self.shown.append(Shown(item, score, tokens(line), reason))

    def context(self) -> Context:
        if not self._lines:
            return Context()
        lines: list[str] = []
        section = -1
        for place, line in sorted(self._lines):
            if place[0] != section and (heading := self._headings.get(place[0])):
                lines.append(heading)
            section = place[0]
            lines.append(line)
        return Context(self._text(lines), tuple(self.shown))

    def _text(self, lines: Iterable[str]) -> str:
        body = "\n".join(filter(None, (self._head, *lines, self._foot)))
        return fenced("memory", body, self._note)
