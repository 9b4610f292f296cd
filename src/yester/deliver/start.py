"""What an agent gets when a session begins, goes on after compaction, or starts a sub-agent.

    rules       what the user wants observed, in a block of its own
    open        what is not done, as far as no later turn has closed it
    last        the last session in which something was done, a line a turn
    decided     decisions and what was kept on purpose
    at hand     what is known about the branch and the files that are changed
    earlier     titles of other sessions, one each

A turn is told once, with the status that evidence gives it. Nothing depends on the clock but the
names of days: the same memory gives the same text, so that a model's prompt cache survives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import TYPE_CHECKING

from yester.clock import Calendar
from yester.deliver.gate import trivial
from yester.deliver.lines import (
    TITLE,
    card_line,
    card_status,
    hit_line,
    item_line,
    join_title,
    one_line,
    quote_text,
    short_name,
)
from yester.deliver.page import Context, Page, Shown, join_contexts
from yester.fence import MOST_UNITS, count_units
from yester.git import Signals
from yester.memories.places import is_curated_note
from yester.model import CURATED, Filters, Item, Paging, Probe, Project, Session
from yester.recall.beginning import relevant_hits
from yester.recall.rank import Weights
from yester.recall.recall import Fates
from yester.store.contract import Store
from yester.text.document import estimate_tokens
from yester.text.terms import text_terms

if TYPE_CHECKING:
    from yester.text.embed import Embedder

_CARDS = 120  # newest summaries that are looked at
_SESSIONS = 40  # last sessions among which one is looked for that has no summary yet
_OPEN, _LAST, _DECIDED, _AT_HAND, _EARLIER = 5, 6, 4, 3, 6  # lines; titles
_RULES = 400  # tokens of all rules together
_WHY, _NOTE, _RULE, _WORDS = 200, 300, 240, 300  # characters
_FILES = 2  # named in a line
_TELLING = 12  # characters of last words that say something
_WORK = ("done", "changed", "failed", "reverted", "open")
_KEPT = ("decision", "constraint", "preference", "runbook", "tech_debt")
_SAME = 0.5  # share of the words of what is open that closes it, in a later turn
_NAMES = re.compile(r"[\w./-]*[\w]+(?:[._/-][\w]+)+|\b[a-z]+[A-Z]\w+|`[^`]+`")


@dataclass(frozen=True, slots=True)
class Here:
    """Where and when a session begins, and what is known besides the store."""

    project: Project
    session: str
    now: int
    zone: tzinfo | None = None
    signals: Signals | None = None
    rules: Sequence[Item] = ()  # standing ones that apply here, the most important first
    weights: Weights | None = None
    embedder: Embedder | None = None
    fates: Fates | None = None


@dataclass(slots=True)
class _Block:
    """The block being written, what it tells already, and for whom."""

    store: Store
    page: Page
    calendar: Calendar
    told: set[int] = field(default_factory=set)
    turns: set[tuple[str, int]] = field(default_factory=set)  # session, prompt

    def add(self, text: str, item: Item, reason: str, section: int, heading: str) -> bool:
        place = (section, len(self.page.shown), 0)
        if not self.page.add_line(f"- {text}", item.id, reason, place, heading=heading):
            return False
        self.told.add(item.id)
        return True

    def is_told(self, item: Item) -> bool:
        own = item.session and item.prompt_number and item.kind in ("summary", "observation")
        return item.id in self.told or bool(
            own and (item.session, item.prompt_number) in self.turns
        )


def at_start(
    store: Store,
    here: Here,
    budget: int = 700,
    exchange: bool = False,
    of_session: bool = False,
    again: bool = False,
) -> Context:
    """`exchange`: with the last words of user and agent. `of_session`: what the session itself did
    is told too, since compaction has taken it from the agent. `again`: the session is taken up
    again and has its words back, so only what others did meanwhile is told."""
    calendar = Calendar(here.now, here.zone)
    project = Filters(projects=(here.project.key,))
    rules_told = here.rules
    if again:
        left_off = _left_off(store, here)
        project = replace(project, since=left_off + 1)
        rules_told = [rule for rule in here.rules if rule.updated > left_off]
        here = replace(here, signals=None)
    rules = _rules(rules_told, calendar, min(_RULES, budget))
    number = store.probe(Probe(replace(project, since=None))).statistics.items
    if not number:
        return rules
    name = short_name(here.project.name)
    page = Page(
        "memory", name,
        "Numbers are ids: `yester show 12`, or get_observations.",
        f'{number:,} items are recorded here. More: `yester recall "words"`.',
        budget - estimate_tokens(rules.text), MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    block = _Block(store, page, calendar)
    own = "" if of_session else here.session
    cards = [card for card in _cards(store, project) if not (own and card.session == own)]
    _add_open(block, cards)
    _add_last(block, project, own, cards, exchange)
    _add_decided(block, project, own)
    if here.signals is not None:
        _add_at_hand(block, here, own)
    others = [item for item in _loose(store, project, cards) if not (own and item.session == own)]
    _add_earlier(block, sorted((*cards, *others), key=lambda one: -one.epoch))
    return join_contexts(rules, page.finish_page())


def for_agent(store: Store, here: Here, budget: int = 400) -> Context:
    """What a sub-agent gets: the rules, and what is known about the work at hand."""
    calendar = Calendar(here.now, here.zone)
    rules = _rules(here.rules, calendar, min(_RULES, budget // 2))
    if here.signals is None:
        return rules
    page = Page(
        "memory", "the work at hand", "", "One as a whole: `yester show 12`.",
        budget - estimate_tokens(rules.text), MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    _add_at_hand(_Block(store, page, calendar), here, "")
    return join_contexts(rules, page.finish_page())


def _left_off(store: Store, here: Here) -> int:
    """When the session had last said something by now; now, where it is not known."""
    mine = Filters(projects=(here.project.key,), session=here.session, until=here.now)
    last = store.select(mine, Paging(1)) if here.session else []
    return last[0].epoch if last else here.now


def _rules(rules: Sequence[Item], calendar: Calendar, budget: int) -> Context:
    page = Page("rules", "", "", "", budget)
    for number, rule in enumerate(rules):
        # Only what a user typed may speak as a user: whatever else calls itself a rule is none.
        if rule.origin == "user":
            text = one_line(rule.body or rule.title, _RULE)
            page.add_line(f"- {text} (#{rule.id}, {calendar.day_label(rule.epoch)})",
                     rule.id, "rule", (0, number, 0))  # fmt: skip
    return page.finish_page()


# --- cards ----------------------------------------------------------------------------------------


def _cards(store: Store, project: Filters) -> list[Item]:
    """The cards of turns, the newest first: their summaries, or that of a session which is one."""
    found = store.select(replace(project, kinds=("summary",)), Paging(_CARDS))
    turns = {item.session for item in found if item.type == "turn"}
    return [
        item
        for item in found
        if item.sections and (item.type == "turn" or item.session not in turns)
    ]


def _loose(store: Store, project: Filters, cards: Sequence[Item]) -> list[Item]:
    """Observations and notes that belong to no card: a program has stored them, or nothing else is
    known of their session."""
    sessions = {card.session for card in cards}
    found = store.select(replace(project, kinds=("observation", "note")), Paging(_CARDS))
    return [
        item
        for item in found
        if item.session not in sessions
        and item.source not in CURATED  # the agent has it before its eyes
        and not (item.kind == "note" and item.session)  # plans and lists of a session long over
    ]


def _is_work(card: Item) -> bool:
    return not card.subtitle or card_status(card) in _WORK


# --- open -----------------------------------------------------------------------------------------


def _add_open(block: _Block, cards: Sequence[Item]) -> None:
    later: list[Item] = []
    number = 0
    for card in cards:
        for text in _open_ends(card):
            if number < _OPEN and not any(_closes(one, card, text) for one in later):
                day = block.calendar.day_label(card.epoch)
                line = f"{card.id}: {quote_text(one_line(text, _WHY))} ({day})"
                if block.page.add_line(
                    f"- {line}", card.id, "open", (0, number, 0), heading="Open"
                ):
                    number += 1
        later.append(card)


def _open_ends(card: Item) -> Iterator[str]:
    yield from filter(None, card.sections.get("next_steps", "").split("\n"))
    if card_status(card) == "failed":
        yield f"{card.title}: {card.subtitle.partition(': ')[2]}"


def _closes(later: Item, card: Item, text: str) -> bool:
    """Has a later turn done what was open? It has worked on the same files, or says so."""
    if card_status(later) not in ("done", "changed", "answered"):
        return False
    if set(later.files_modified) & set(card.files_modified):
        return True
    if later.session == card.session and later.prompt_number == card.prompt_number:
        return False
    wanted = set(text_terms(text))
    told = set(text_terms(f"{later.title} {later.sections.get('completed', '')}"))
    named = {name.strip("`") for name in _NAMES.findall(text)}
    said = f"{later.title} {later.sections.get('request', '')}"
    return bool(wanted) and (
        len(wanted & told) >= _SAME * len(wanted) or any(name in said for name in named)
    )


# --- the last session -----------------------------------------------------------------------------


def _add_last(
    block: _Block, project: Filters, own: str, cards: Sequence[Item], exchange: bool
) -> None:
    newest = next((card for card in cards if _is_work(card)), None)
    raw = _undistilled(block.store, project, own, newest)
    if raw is not None:
        _add_raw(block, raw)
    elif newest is not None:
        session = block.store.session(newest.session, newest.agent)
        heading = _heading(session, newest, block.calendar)
        lines = [c for c in cards if c.session == newest.session and _is_work(c)]
        for card in reversed(lines[:_LAST]):
            if block.add(
                card_line(card, block.calendar, dated=False), card, "last session", 1, heading
            ):
                block.turns.add((card.session, card.prompt_number))
        raw = session if exchange else None
    if exchange and raw is not None:
        for item in _last_words(block.store, raw):
            words = one_line(item.body, _WORDS)
            block.add(item_line(item, block.calendar, words), item, "last words", 1, "Last session")


def _undistilled(store: Store, project: Filters, own: str, newest: Item | None) -> Session | None:
    """The last session, if it is newer than every card and something telling was typed in it."""
    for session in store.sessions(project, Paging(_SESSIONS)):
        if session.key == own:
            continue
        if newest is not None and (session.key == newest.session or session.ended <= newest.epoch):
            return None
        made = Filters(projects=project.projects, session=session.key, kinds=("summary",))
        if not store.select(made, Paging(1)) and _last_words(store, session):
            return session
    return None


def _add_raw(block: _Block, session: Session) -> None:
    """A session that nothing is distilled of: its last question and how it was answered."""
    heading = _heading(session, None, block.calendar)
    for item in _last_words(block.store, session):
        text = item_line(item, block.calendar, one_line(item.body, _WORDS))
        block.add(text, item, "last words", 1, heading)


def _last_words(store: Store, session: Session) -> list[Item]:
    def last(kind: str, role: str) -> list[Item]:
        filters = Filters(
            projects=(session.project,), kinds=(kind,), session=session.key, agent=session.agent
        )
        found = (item for item in store.select(filters, Paging(20)) if not item.actor)
        return [
            item
            for item in found
            if item.role == role
            and len(item.body.strip()) >= _TELLING
            and (role != "user" or trivial(item.body) in ("", "short"))
        ][:1]

    return [*last("prompt", "user"), *last("message", "assistant")]


def _heading(session: Session | None, card: Item | None, calendar: Calendar) -> str:
    ended = session.ended if session is not None else card.epoch if card is not None else 0
    prompts = session.prompts if session is not None else 0
    told = [calendar.day_label(ended)]
    if prompts:
        told.append(f"{prompts} prompt{'' if prompts == 1 else 's'}")
    return f"Last session ({', '.join(told)})"


# --- decided, at hand, earlier --------------------------------------------------------------------


def _add_decided(block: _Block, project: Filters, own: str) -> None:
    kept = block.store.select(
        replace(project, kinds=("memory",), types=_KEPT), Paging(2 * _DECIDED)
    )
    found = block.store.select(
        replace(project, kinds=("observation",), types=("decision",)), Paging(4 * _DECIDED)
    )
    number = 0
    for item in (*kept, *found):
        if number == _DECIDED:
            break
        if block.is_told(item) or (own and item.session == own):
            continue
        text = join_title(item.title, one_line(item.body, _WHY))
        day = block.calendar.day_label(item.epoch)
        if block.add(f"{item.id}: {quote_text(text)} ({day})", item, "decided", 2, "Decided"):
            number += 1
            if item.session and item.prompt_number:
                block.turns.add((item.session, item.prompt_number))


def _add_at_hand(block: _Block, here: Here, own: str) -> None:
    assert here.signals is not None
    hits = relevant_hits(
        block.store, here.project.key, here.signals, here.now, 4 * _AT_HAND, here.weights,
        here.embedder, here.fates,
    )  # fmt: skip
    heading = f"About what you are changing{_signs(here.signals)}"
    number = 0
    for hit in hits:
        turn = (hit.session, hit.prompt_number)
        if number == _AT_HAND:
            break
        if hit.id in block.told or (own and hit.session == own) or is_curated_note(hit.ref):
            continue
        if hit.kind not in ("memory", "note") and turn in block.turns:
            continue
        text = hit_line(hit, block.calendar, join_title(hit.title, one_line(hit.text, _NOTE)))
        place = (3, number, 0)
        if block.page.add_line(f"- {text}", hit.id, "at hand", place, hit.score, heading):
            number += 1
            block.told.add(hit.id)
            block.turns.add(turn)


def _signs(signals: Signals) -> str:
    """(branch fix/retries, client.py, cli.py)"""
    names = [short_name(file.rsplit("/", 1)[-1]) for file in signals.changed[:_FILES]]
    more = len(signals.changed) - len(names)
    branch = f"branch {short_name(signals.branch)}" if signals.branch else ""
    told = ", ".join(filter(None, (*names, f"{more} more" if more > 0 else "", branch)))
    return f" ({told})" if told else ""


def _add_earlier(block: _Block, cards: Sequence[Item]) -> None:
    """Titles of other sessions, one each, on one line."""
    sessions: set[str] = {session for session, _ in block.turns}
    parts: list[tuple[Item, str]] = []
    for card in cards:
        if len(parts) == _EARLIER:
            break
        status = card_status(card)
        if (card.session and card.session in sessions) or card.id in block.told:
            continue
        if card.kind == "summary" and card.subtitle and status not in ("done", "changed"):
            continue
        if card.session:
            sessions.add(card.session)
        title = one_line(card.title or card.body, TITLE)
        parts.append((card, f"{card.id} {quote_text(title)}"))
    while parts:
        line = "Earlier: " + " · ".join(text for _, text in parts)
        if block.page.add_line(line, parts[0][0].id, "earlier", (4, 0, 0)):
            block.page.shown += [Shown(card.id, 0.0, 0, "earlier") for card, _ in parts[1:]]
            return
        parts.pop()
