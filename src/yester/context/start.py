"""What an agent gets when a session begins, goes on after compaction, or starts a sub-agent.

    rules       what the user wants observed, in a block of its own
    open        what is not done, as far as no later turn has closed it
    this        after compaction: what the session itself did, a line a turn
    last        the last session in which something was done, likewise
    decided     decisions and what was kept on purpose
    failing     commands that do not work here, and what does instead
    at hand     what is known about the branch and the files that are changed
    earlier     titles of other sessions, one each

A turn is told once, with the status that evidence gives it. Of the clock only the day counts (its
name, and how long something is open): the same memory gives the same text, so that a model's prompt
cache survives.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING

from yester.clock import Calendar
from yester.context.block import Context, Page, Shown, join_contexts
from yester.context.cards import (
    MOST_CARDS,
    describe_hit,
    drop_doubles,
    find_card,
    find_open_ends,
    is_work,
    read_cards,
)
from yester.context.lines import (
    TITLE,
    card_line,
    card_status,
    item_line,
    join_title,
    one_line,
    quote_text,
    short_name,
)
from yester.context.talk import trivial
from yester.fence import MOST_UNITS, count_units
from yester.git import Signals
from yester.memories.memory_md import is_curated_note
from yester.model import CURATED, Filters, Item, Paging, Project, Queue, Session, replace
from yester.recall.beginning import relevant_hits
from yester.recall.rank import Weights
from yester.recall.recall import Fates
from yester.store.contract import Store
from yester.store.figures import count_kinds
from yester.text.document import estimate_tokens

if TYPE_CHECKING:
    from yester.text.embed import Embedder

_SESSIONS = 40  # last sessions among which one is looked for that has no summary yet
_WAITING = 500  # newest sessions that wait to be distilled
_OPEN, _LAST, _DECIDED, _AT_HAND, _EARLIER = 5, 6, 4, 3, 6  # lines; titles
_RULES = 400  # tokens of all rules together
_WHY, _NOTE, _RULE, _WORDS = 200, 300, 240, 300  # characters
_FILES = 2  # named in a line
_UNCOMMITTED = 4  # files named
_LATEST = 3  # sessions among which the last one is
_TELLING = 12  # characters of last words that say something
_PLACES = {
    "open": 0, "this": 1, "last": 2, "decided": 3, "failing": 4, "at hand": 5, "earlier": 6,
}  # fmt: skip
_FAILING = 2  # commands that do not work here
_KEPT = ("decision", "constraint", "preference", "runbook", "tech_debt")


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
    now: int
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
    kinds = count_kinds(store, here.project.key)
    if not kinds:
        return rules
    name = short_name(here.project.name)
    page = Page(
        "memory", name,
        "Numbers are ids: `yester show 12`, or get_observations.",
        f'{_count_turns(kinds.get("prompt", 0))}More: `yester recall "words"`.',
        budget - estimate_tokens(rules.text), MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    block = _Block(store, page, calendar, here.now)
    own = "" if of_session else here.session
    cards = [c for c in read_cards(store, project) if not (own and c.session == own)]
    _add_open(block, cards)
    if here.signals is not None:
        _add_uncommitted(block, cards, set(here.signals.changed))
    if of_session and here.session:
        _add_own(block, project, here.session, [c for c in cards if c.session == here.session])
    others = [card for card in cards if card.session != here.session]
    _add_last(block, project, here.session, others, exchange)
    _add_decided(block, project, own)
    _add_failing(block, project)
    if here.signals is not None:
        _add_at_hand(block, here, own)
    loose = [item for item in _loose(store, project, cards) if not (own and item.session == own)]
    _add_earlier(block, sorted((*cards, *loose), key=lambda one: -one.epoch))
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
    _add_at_hand(_Block(store, page, calendar, here.now), here, "")
    return join_contexts(rules, page.finish_page())


def _count_turns(number: int) -> str:
    if not number:  # programs have stored something
        return ""
    return f"{number:,} turns are recorded. " if number > 1 else "1 turn is recorded. "


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


# --- open -----------------------------------------------------------------------------------------


def _loose(store: Store, project: Filters, cards: Sequence[Item]) -> list[Item]:
    """Observations and notes that belong to no card: a program has stored them, or nothing else is
    known of their session."""
    sessions = {card.session for card in cards}
    found = store.select(replace(project, kinds=("observation", "note")), Paging(MOST_CARDS))
    return [
        item
        for item in found
        if item.session not in sessions
        and item.source not in CURATED  # the agent has it before its eyes
        and not (item.kind == "note" and item.session)  # plans and lists of a session long over
    ]


def _add_open(block: _Block, cards: Sequence[Item]) -> None:
    """Turns that failed or were broken off, as their cards; and what was said to be left undone."""
    number = 0
    for end in find_open_ends(cards, block.now):
        card = end.card
        day = block.calendar.day_label(card.epoch)
        line = f"{card.id}: {quote_text(one_line(end.text, _WHY))} ({day})"
        if end.whole:
            line = card_line(card, block.calendar, end.text)
        place = (_PLACES["open"], number, 0)
        if block.page.add_line(f"- {line}", card.id, "open", place, heading="Open"):
            number += 1
            if end.whole:
                block.told.add(card.id)
                block.turns.add((card.session, card.prompt_number))
        if number == _OPEN:
            return


def _add_uncommitted(block: _Block, cards: Sequence[Item], changed: Collection[str]) -> None:
    """What the last session in which something was done has left uncommitted: git still says that
    its files are changed."""
    newest = _newest_work(block.store, cards)
    own = [card for card in cards if newest is not None and card.session == newest.session]
    files: dict[str, Item] = {}
    for card in own:
        if card_status(card) in ("done", "changed") and "committed" not in card.subtitle:
            files |= {file: card for file in card.files_modified if file in changed}
    if files:
        card = next(iter(files.values()))
        names = [short_name(file.rsplit("/", 1)[-1]) for file in list(files)[:_UNCOMMITTED]]
        more = f" and {len(files) - len(names)} more" if len(files) > len(names) else ""
        day = block.calendar.day_label(card.epoch)
        line = f"- {card.id}: not committed: {', '.join(names)}{more} ({day})"
        place = (_PLACES["open"], _OPEN, 0)
        block.page.add_line(line, card.id, "open", place, heading="Open")


# --- the last session -----------------------------------------------------------------------------


def _add_own(block: _Block, project: Filters, own: str, cards: Sequence[Item]) -> None:
    """What the session itself did, of which compaction has left it a summary at most."""
    if _add_cards(block, "This session", "this", cards):
        return
    for session in block.store.sessions(replace(project, session=own), Paging(1)):
        _add_words(block, session, "This session", "this")


def _add_last(
    block: _Block, project: Filters, own: str, cards: Sequence[Item], exchange: bool
) -> None:
    newest = _newest_work(block.store, cards)
    raw = _undistilled(block.store, project, own, newest)
    if raw is not None:
        _add_words(block, raw, _heading(raw, None, block.calendar), "last")
    elif newest is not None:
        session = block.store.session(newest.session, newest.agent)
        heading = _heading(session, newest, block.calendar)
        _add_cards(block, heading, "last", [c for c in cards if c.session == newest.session])
        if exchange and session is not None:
            _add_words(block, session, heading, "last")


def _newest_work(store: Store, cards: Sequence[Item]) -> Item | None:
    """The newest card of the session that ended last, of those in which something was done."""
    work: dict[str, Item] = {}
    for card in cards:
        if is_work(card):
            work.setdefault(card.session, card)
    latest = list(work.values())[:_LATEST]  # they may have ended in another order
    ends = {one.session: store.session(one.session, one.agent) for one in latest}
    return max(
        latest,
        key=lambda one: found.ended if (found := ends[one.session]) else one.epoch,
        default=None,
    )


def _add_cards(block: _Block, heading: str, place: str, cards: Sequence[Item]) -> bool:
    """The last turns of a session, the oldest first; is there something to tell of it?"""
    telling = drop_doubles([card for card in cards if is_work(card)])
    new = [card for card in telling if not block.is_told(card)]
    best = sorted(new, key=lambda card: card_status(card) == "answered")[:_LAST]
    for card in sorted(best, key=lambda card: card.epoch):
        text = card_line(card, block.calendar, dated=False)
        if block.add(text, card, f"{place} session", _PLACES[place], heading):
            block.turns.add((card.session, card.prompt_number))
    return bool(telling)


def _add_words(block: _Block, session: Session, heading: str, place: str) -> None:
    """The last question of a session and how it was answered."""
    for item in _last_words(block.store, session):
        text = item_line(item, block.calendar, one_line(item.body, _WORDS))
        block.add(text, item, "last words", _PLACES[place], heading)


def _undistilled(store: Store, project: Filters, own: str, newest: Item | None) -> Session | None:
    """The last session in which something telling was typed, if it is newer than every card and
    waits to be distilled, or there is no card."""
    waiting: set[str] | None = None
    for session in store.sessions(project, Paging(_SESSIONS)):
        if session.key == own:
            continue
        if newest is not None and (session.key == newest.session or session.ended <= newest.epoch):
            return None
        made = Filters(projects=project.projects, session=session.key, kinds=("summary",))
        words = _last_words(store, session)
        if not words or store.select(made, Paging(1)):
            continue
        if newest is None and not trivial(words[0].body):
            return session  # a question and its answer are all that is known
        if waiting is None:
            queue = Queue("distil", quiet_since=session.ended, limit=_WAITING)
            waiting = {one.session.key for one in store.queued_sessions(queue)}
        if session.key in waiting:
            return session
    return None


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

    asked = last("prompt", "user")
    if session.prompts and not asked:
        return []  # what was answered to small talk
    return [*asked, *last("message", "assistant")]


def _heading(session: Session | None, card: Item | None, calendar: Calendar) -> str:
    ended = session.ended if session is not None else card.epoch if card is not None else 0
    prompts = session.prompts if session is not None else 0
    day = calendar.day_label(ended)
    near = day in ("today", "yesterday")
    told = [f"{day} {calendar.time_label(ended)}" if near else day]
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
        line = f"{item.id}: {quote_text(text)} ({day})"
        if block.add(line, item, "decided", _PLACES["decided"], "Decided"):
            number += 1
            if item.session and item.prompt_number:
                block.turns.add((item.session, item.prompt_number))


def _add_failing(block: _Block, project: Filters) -> None:
    """Commands that do not work here, and what does instead; each is kept once for a project."""
    found = block.store.select(
        replace(project, kinds=("observation",), types=("discovery",)), Paging(MOST_CARDS)
    )
    for item in [one for one in found if one.ref.startswith("project:")][:_FAILING]:
        text = one_line(item.title, TITLE)
        instead = one_line(item.subtitle, TITLE)
        told = f"{item.id}: {quote_text(text)}" + (f" {quote_text(instead)}" if instead else "")
        block.add(told, item, "fails here", _PLACES["failing"], "Does not work here")


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
        if hit.kind == "prompt" and find_card(block.store, hit) is None:
            continue  # what came of it is not known
        id_, line = describe_hit(block.store, hit, block.calendar, _NOTE)
        place = (_PLACES["at hand"], number, 0)
        if block.page.add_line(f"- {line}", id_, "at hand", place, hit.score, heading):
            number += 1
            block.told |= {hit.id, id_}
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
        if block.page.add_line(line, parts[0][0].id, "earlier", (_PLACES["earlier"], 0, 0)):
            block.page.shown += [Shown(card.id, 0.0, 0, "earlier") for card, _ in parts[1:]]
            return
        parts.pop()
