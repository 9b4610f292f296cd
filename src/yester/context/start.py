"""What an agent gets when a session begins, goes on after compaction, or starts a sub-agent.

    rules       what the user wants observed, in a block of its own
    open        what is not done, as far as no later turn has closed it
    this        after compaction: what the session itself did, a line a turn
    last        the last session in which something was done, likewise
    before      the turn that says most of each of the two sessions before that
    decided     decisions and what was kept on purpose
    failing     commands that do not work here, and what does instead
    checks      commands by which the work of several sessions was checked
    at hand     what is known about the branch and the files that are changed
    earlier     titles of other sessions, one each

A turn is told once, with the status that evidence gives it. Of the clock only the name of the day
counts: the same memory gives the same text, so that a model's prompt cache survives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from yester.agents.notes import loads_itself
from yester.clock import Calendar
from yester.context.block import Context, Here, Page, Shown, join_contexts
from yester.context.cards import (
    MOST_CARDS,
    TO_COMMIT,
    OpenEnd,
    add_details,
    drop_doubles,
    drop_overtaken,
    drop_undoing,
    find_card,
    find_checks,
    find_open_ends,
    is_finished,
    is_passing,
    is_past,
    is_work,
    is_worth_telling,
    read_cards,
    read_facts,
)
from yester.context.lines import (
    TITLE,
    card_line,
    card_status,
    hit_line,
    item_line,
    join_title,
    one_line,
    origin_text,
    quote_text,
    replace_quotes,
    short_name,
    stale_text,
)
from yester.context.talk import phrase_meaning, trivial
from yester.fence import MOST_UNITS, count_units
from yester.git import Signals
from yester.model import (
    CURATED,
    Feedback,
    Filters,
    Hit,
    Item,
    Paging,
    Queue,
    Session,
    replace,
    sharer_of,
    team_user,
)
from yester.recall.beginning import branch_words, relevant_hits
from yester.store.contract import Store
from yester.tables import load_pattern
from yester.text.document import estimate_tokens
from yester.text.statements import is_chore

_SESSIONS = 40  # last sessions among which one is looked for that has no summary yet
_WAITING = 500  # newest sessions that wait to be distilled
_OPEN, _LAST, _DECIDED, _AT_HAND, _EARLIER = 5, 6, 4, 3, 3  # lines; titles
_ANSWERS = 2  # beside work
_BEFORE = 2  # sessions before the last one of which a line is told
_DETAILS = 900  # characters of what is told of all turns of a session besides their titles
_LONGEST = 360  # … of one turn
_RULES = 400  # tokens of all rules together
_WHY, _NOTE, _RULE, _WORDS = 200, 300, 240, 300  # characters
_FILES = 2  # named in a line
_UNCOMMITTED = 4  # files named
_TELLING = 12  # characters of last words that say something
_NEXT = 5  # prompts after a card, sub-agents' among them
_FAILING = 2  # commands that do not work here
_CHECKS = 4  # commands that do
_FINE = re.compile(r"\b(?:works|done|fine|good|perfect|passt)\b|没问题", re.I)
_IN_FOLDER = re.compile(r"\bcd \S+ && ")
_NOT_COMMITTED = re.compile(r"changes after (\w+) not committed(?:, `git commit` failed)?")
_ASKED_FOR = ("fetched", "opened", "useful")  # what came of an item
_CHOSEN = re.compile(r":(?:answers|chosen(?::\d)?)\Z")
_KEPT = ("decision", "constraint", "preference", "runbook", "tech_debt")


class _Line(NamedTuple):
    """A line that may be told; with it, what need not be told again."""

    text: str
    item: int
    whole: Item | Hit | None = None
    score: float = 0.0


@dataclass(slots=True)
class _Block:
    """The block being written, what it tells already, and for whom; nothing of the session `own`,
    which has it before its eyes."""

    store: Store
    page: Page
    here: Here
    own: str = ""
    cards: Sequence[Item] = ()  # of the project, the newest first
    told: set[int] = field(default_factory=set)
    turns: set[tuple[str, int]] = field(default_factory=set)  # session, prompt
    titles: set[str] = field(default_factory=set)
    facts: dict[str, dict[int, list[str]]] = field(default_factory=dict)  # by session and prompt

    @property
    def knows_git(self) -> bool:
        """Is there a repository, which says what is committed by now?"""
        return self.here.signals is not None and bool(self.here.signals.head)

    def add_lines(
        self, heading: str, reason: str, lines: Iterable[_Line], most: int | None = None
    ) -> None:
        """At most so many lines of a section; each is asked for when those before are told."""
        number = 0
        for line in lines:
            if self.page.add_line(f"- {line.text}", line.item, reason, line.score, heading):
                number += 1
                if line.whole is not None:
                    self.told |= {line.item, line.whole.id}
                    self.turns.add((line.whole.session, line.whole.prompt_number))
                    self.titles.add(line.whole.title)
            if number == most:
                return

    def read_facts(self, card: Item) -> Mapping[int, list[str]]:
        if card.session not in self.facts:
            self.facts[card.session] = read_facts(self.store, card.session, card.agent)
        return self.facts[card.session]

    def dated_line(self, item: Item, text: str) -> str:
        day = self.here.calendar.day_label(item.epoch)
        return f"{item.id}{origin_text(item)}: {quote_text(text)} ({day})"

    def is_told(self, one: Item | Hit) -> bool:
        if one.id in self.told or (self.own and one.session == self.own):
            return True
        if one.kind == "summary" and one.title and one.title in self.titles:
            return True
        of_turn = one.kind not in ("memory", "note") and one.session and one.prompt_number
        return bool(of_turn) and (one.session, one.prompt_number) in self.turns


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
    project = Filters(projects=(here.project.key,))
    rules_told = here.rules
    if again:
        left_off = _left_off(store, here)
        project = replace(project, since=left_off + 1)
        rules_told = [rule for rule in here.rules if rule.updated > left_off]
        here = replace(here, signals=None)
    rules = _rules(rules_told, here.calendar, min(_RULES, budget))
    counts = store.totals("indexed", ("project", "kind"))
    kinds = {kind: number for key, kind, number in counts if key == here.project.key}
    if not kinds:
        return rules
    page = Page(
        "memory", short_name(here.project.name),
        "Numbers are ids: `yester show 12`, or get_observations.",
        f'{_count_turns(kinds.get("prompt", 0))}More: `yester recall "words"`.',
        budget - estimate_tokens(rules.text), MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    block = _Block(store, page, here, "" if of_session else here.session)
    block.cards = read_cards(store, project)
    cards = [card for card in block.cards if not block.is_told(card)]
    block.add_lines("Open", "open", _open_lines(block, cards), _OPEN)
    own = [card for card in cards if not sharer_of(card)]
    block.add_lines("Open", "open", _uncommitted_lines(block, own))
    if of_session and here.session:
        _add_own(block, project, [c for c in own if c.session == here.session])
    _add_last(block, project, [c for c in own if c.session != here.session], exchange)
    best = _best_turns(block, [*cards, *_loose(store, project, cards)])
    if not again:
        told = filter(card_status, _put_branch_first(block, project, best))
        before = sorted(told, key=lambda card: card_status(card) == "answered")  # rather work
        heading = "Before that" if block.turns else "Earlier sessions"
        lines = _card_lines(block, before, _DETAILS // 4, dated=True)
        block.add_lines(heading, "before", lines, _BEFORE)
    block.add_lines("Decided", "decided", _decided_lines(block, project), _DECIDED)
    failing = _failing_lines(store, project)
    block.add_lines("Does not work here", "fails here", failing, _FAILING)
    _add_checks(block)
    _add_at_hand(block)
    _add_titles(block, best)
    return join_contexts(rules, page.finish_page())


def for_agent(store: Store, here: Here, budget: int = 400) -> Context:
    """What a sub-agent gets: the rules, and what is known about the work at hand."""
    rules = _rules(here.rules, here.calendar, min(_RULES, budget // 2))
    page = Page(
        "memory", "the work at hand", "", "One as a whole: `yester show 12`.",
        budget - estimate_tokens(rules.text), MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    _add_at_hand(_Block(store, page, here))
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
    for rule in rules:
        # Only what a user typed may speak as a user: whatever else calls itself a rule is none.
        if rule.origin == "user":
            text = one_line(rule.body or rule.title, _RULE)
            day = calendar.day_label(rule.epoch)
            page.add_line(f"- {text} (#{rule.id}, {day})", rule.id, "rule")
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


def _open_lines(block: _Block, cards: Sequence[Item]) -> Iterator[_Line]:
    """Turns that failed or were broken off, as their cards; and what was said to be left undone."""
    for end in find_open_ends(cards):
        if _is_settled(block, end):
            continue
        if end.whole:
            line = card_line(end.card, block.here.calendar, end.text)
            yield _Line(line, end.card.id, end.card)
        else:
            yield _Line(block.dated_line(end.card, one_line(end.text, _WHY)), end.card.id)


def _is_settled(block: _Block, end: OpenEnd) -> bool:
    """Has the user said next that it is fine, or does git know better?"""
    if end.text.startswith(TO_COMMIT) and block.knows_git:
        return True
    after = Filters(session=end.card.session, kinds=("prompt",), since=end.card.epoch + 1)
    prompts = block.store.select(after, Paging(_NEXT, oldest_first=True))
    typed = next((item.body for item in prompts if not item.actor), "")
    fine = bool(_FINE.search(typed)) and phrase_meaning(typed) == "acknowledgement"
    return fine or load_pattern("talk", "says it works").match(typed) is not None


def _uncommitted_lines(block: _Block, cards: Sequence[Item]) -> Iterator[_Line]:
    """What the last session in which something was done has left uncommitted: git still says that
    its files are changed."""
    changed = block.here.signals.changed if block.here.signals is not None else ()
    newest = next(filter(is_work, cards), None)
    files: dict[str, Item] = {}
    for card in cards:
        left = card_status(card) in ("done", "changed") and ": committed" not in card.subtitle
        if left and newest is not None and card.session == newest.session:
            files |= {file: card for file in card.files_modified if file in changed}
    if files:
        card = next(iter(files.values()))
        names = _join_files(files, _UNCOMMITTED)
        day = block.here.calendar.day_label(card.epoch)
        yield _Line(f"{card.id}: not committed: {names} ({day})", card.id)


# --- the last session -----------------------------------------------------------------------------


def _add_own(block: _Block, project: Filters, cards: Sequence[Item]) -> None:
    """What the session itself did, of which compaction has left it a summary at most."""
    if not _add_cards(block, "This session", "this session", cards):
        mine = replace(project, session=block.here.session)
        for session in block.store.sessions(mine, Paging(1)):
            _add_words(block, session, "This session")


def _add_last(block: _Block, project: Filters, cards: Sequence[Item], exchange: bool) -> None:
    newest = next(filter(is_work, cards), None)
    raw = _undistilled(block, project, newest)
    if raw is not None:
        _add_words(block, raw, _heading(block, raw, raw.ended))
    elif newest is not None:
        session = block.store.session(newest.session, newest.agent)
        own = [card for card in cards if card.session == newest.session]
        heading = _heading(block, session, newest.epoch, own)
        _add_cards(block, heading, "last session", own)
        if exchange and session is not None:
            _add_words(block, session, heading)


def _add_cards(block: _Block, heading: str, reason: str, cards: Sequence[Item]) -> bool:
    """The last turns of a session, the oldest first; is there something to tell of it? Of answers
    those that later turns have not overtaken."""
    telling = drop_doubles([card for card in cards if is_work(card)])
    if all(card_status(card) == "answered" for card in telling):  # then each answer counts
        telling = [card for card in cards if card_status(card) == "answered"]
    new = [card for card in telling if not (block.is_told(card) or is_past(card, cards))]
    work = [card for card in new if card_status(card) != "answered"]
    answers = [card for card in new if card not in work and not (work and is_passing(card, cards))]
    done = max((card.epoch for card in work if _is_finished(card)), default=0)
    answers = [card for card in answers if card.epoch > done]  # what came of the others is told
    best = [*work, *answers[: _ANSWERS if work else _LAST]][:_LAST]
    best.sort(key=lambda card: card.epoch)
    block.add_lines(heading, reason, _card_lines(block, best, _DETAILS // max(len(best), 1)))
    return bool(telling)


def _card_lines(
    block: _Block, cards: Iterable[Item], room: int, dated: bool = False
) -> Iterator[_Line]:
    """Turns with what is known of them in detail."""
    for card in cards:
        yield _Line(_detailed_line(block, card, room, dated), card.id, card)


def _detailed_line(block: _Block, card: Item, room: int, dated: bool) -> str:
    facts = block.read_facts(card)
    later = [one for one in block.cards if one.session == card.session and one.files_modified]
    later = [one for one in later if one.epoch > card.epoch]
    said = [fact for one in later for fact in facts.get(one.prompt_number, [])]
    titles = [one.title for one in later]
    own = drop_overtaken(facts.get(card.prompt_number, []), said, titles)
    body, evidence = card.body, card.subtitle
    # What an answer explains stays.
    if card_status(card) != "answered" and not drop_overtaken([card.body], [*own, *said]):
        body = ""
    if dated:  # what was left then may be committed by now
        evidence = _NOT_COMMITTED.sub(r"committed \1", evidence)
    holds = replace(card, body=body, subtitle=evidence)
    why = add_details(holds, own, min(room, _LONGEST), later)
    return card_line(holds, block.here.calendar, why, dated=dated, most=_LONGEST)


def _add_words(block: _Block, session: Session, heading: str) -> None:
    """The last question of a session and how it was answered."""
    lines = (
        _Line(item_line(item, block.here.calendar, one_line(item.body, _WORDS)), item.id, item)
        for item in _last_words(block.store, session)
    )
    block.add_lines(heading, "last words", lines)


def _undistilled(block: _Block, project: Filters, newest: Item | None) -> Session | None:
    """The last session in which something telling was typed, if it is newer than every card and
    waits to be distilled, or there is no card."""
    store = block.store
    waiting: set[str] | None = None
    for session in store.sessions(project, Paging(_SESSIONS)):
        if session.key == block.here.session or team_user(session.key):
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


def _heading(block: _Block, session: Session | None, ended: int, cards: Sequence[Item] = ()) -> str:
    calendar, prompts = block.here.calendar, 0
    if session is not None:
        ended, prompts = session.ended, session.prompts
    day = calendar.day_label(ended)
    near = day in ("today", "yesterday")
    told = [f"{day} {calendar.time_label(ended)}" if near else day]
    if prompts:
        told.append(f"{prompts} prompt{'' if prompts == 1 else 's'}")
    if session is not None and session.branch:
        told.append(f"branch {short_name(session.branch)}")
    if not block.knows_git and any(map(_is_finished, cards)) and not any(map(_has_commit, cards)):
        told.append("nothing committed")  # git knows what was committed since
    return f"Last session ({', '.join(told)})"


# --- decided, at hand, earlier --------------------------------------------------------------------


def _decided_lines(block: _Block, project: Filters) -> Iterator[_Line]:
    kept = block.store.select(
        replace(project, kinds=("memory",), types=_KEPT), Paging(2 * _DECIDED)
    )
    found = block.store.select(
        replace(project, kinds=("observation",), types=("decision",)), Paging(4 * _DECIDED)
    )
    for item in (*kept, *found):
        # What the user chose is told though its turn is: the card may say only what came of it.
        chosen = _CHOSEN.search(item.ref) and item.session != block.own
        said = block.page.says(replace_quotes(one_line(item.body or item.title, _WHY)))
        if not block.is_told(item) or (chosen and item.id not in block.told and not said):
            text = join_title(item.title, one_line(item.body, _WHY))
            yield _Line(block.dated_line(item, text), item.id, item)


def _failing_lines(store: Store, project: Filters) -> Iterator[_Line]:
    """Commands that do not work here, and what does instead; each is kept once for a project."""
    found = store.select(
        replace(project, kinds=("observation",), types=("discovery",)), Paging(MOST_CARDS)
    )
    for item in found:
        if item.ref.startswith("project:"):
            said = (_IN_FOLDER.sub("", text) for text in (item.title, item.subtitle) if text)
            words = (one_line(text, TITLE) for text in said)
            text = f"{item.id}{origin_text(item)}: {' '.join(map(quote_text, words))}"
            yield _Line(text, item.id, item)


def _add_checks(block: _Block) -> None:
    """How the work is checked here, by what has passed."""
    checks = find_checks(block.cards)[:_CHECKS]
    if checks:
        line = f"Checks here: {' · '.join(one_line(run, TITLE) for run, _ in checks)}"
        block.page.add_line(line, checks[0][1].id, "passes here")


def _add_at_hand(block: _Block) -> None:
    signals = block.here.signals
    if signals is not None:
        heading = f"About what you are changing{_signs(signals)}"
        block.add_lines(heading, "at hand", _lines_at_hand(block, signals), _AT_HAND)


def _lines_at_hand(block: _Block, signals: Signals) -> Iterator[_Line]:
    here = block.here
    hits = relevant_hits(
        block.store, here.project.key, signals, here.now, 4 * _AT_HAND, here.weights,
        here.embedder, here.fates,
    )  # fmt: skip
    for hit in hits:
        if block.is_told(hit) or loads_itself(here.client, hit.ref):
            continue
        card = find_card(block.store, hit, block.cards)
        if card is not None:
            line = _detailed_line(block, card, _NOTE, dated=True) + stale_text(hit)
            yield _Line(line, card.id, hit, hit.score)
        elif hit.kind != "prompt":  # what came of it is not known
            line = hit_line(hit, here.calendar, join_title(hit.title, one_line(hit.text, _NOTE)))
            yield _Line(line, hit.id, hit, hit.score)


def _signs(signals: Signals) -> str:
    """(client.py, cli.py, branch fix/retries)"""
    names = _join_files(signals.changed, _FILES, ", ")
    branch = f"branch {short_name(signals.branch)}" if signals.branch else ""
    told = ", ".join(filter(None, (names, branch)))
    return f" ({told})" if told else ""


def _join_files(files: Collection[str], most: int, ahead: str = " and ") -> str:
    """The names of some files, and how many more there are."""
    names = [short_name(file.rsplit("/", 1)[-1]) for file in list(files)[:most]]
    more = f"{ahead}{len(files) - most} more" if len(files) > most else ""
    return ", ".join(names) + more


def _best_turns(block: _Block, cards: Iterable[Item]) -> list[Item]:
    """Of each session of which nothing is told yet the turn that says most of it: those about the
    files that are changed, then the newest."""
    signals = block.here.signals
    files = frozenset(signals.changed if signals is not None else ())
    told = {session for session, _ in block.turns if session}
    by_session: dict[str, list[Item]] = {}
    cards = sorted(cards, key=lambda one: -one.epoch)
    for card in drop_undoing(drop_doubles(cards)):
        telling = card.kind != "summary" or is_worth_telling(card)
        if telling and card_status(card) == "failed":
            telling = not is_finished(card, [one for one in cards if one.epoch > card.epoch])
        if telling and not (card.session in told or block.is_told(card)):
            by_session.setdefault(card.session or f"item {card.id}", []).append(card)
    best = [max(own, key=lambda card: _weight(card, files)) for own in by_session.values()]
    return sorted(best, key=lambda card: files.isdisjoint(card.files_modified))


def _put_branch_first(block: _Block, project: Filters, cards: Sequence[Item]) -> list[Item]:
    """Turns of sessions on the branch that is checked out go before others, unless all work is."""
    signals = block.here.signals
    if signals is None or not branch_words(signals):
        return list(cards)
    sessions = block.store.sessions(project, Paging(_SESSIONS))
    own = {one.key for one in sessions if one.branch == signals.branch}
    return sorted(cards, key=lambda card: card.session not in own)


def _add_titles(block: _Block, cards: Iterable[Item]) -> None:
    """On one line, as many as there is room for; first what was asked for most often."""
    new = [card for card in cards if not block.is_told(card)]
    wanted = {"item": [card.id for card in new], "what": _ASKED_FOR}
    asked = Counter(one.item for one in block.store.entries(Feedback, wanted))
    new = sorted(new, key=lambda card: -asked[card.id])[:_EARLIER]
    while new:
        titles = (
            f"{one.id}{origin_text(one)} {quote_text(one_line(one.title or one.body, TITLE))}"
            for one in new
        )
        if block.page.add_line("Earlier: " + " · ".join(titles), new[0].id, "earlier"):
            block.page.shown += [Shown(card.id, 0.0, 0, "earlier") for card in new[1:]]
            return
        new.pop()


def _is_finished(card: Item) -> bool:
    return card_status(card) in ("done", "changed")


def _has_commit(card: Item) -> bool:
    """In the words of cards/status.py: of its evidence, not of a command in it."""
    evidence = card.subtitle.partition(": ")[2]
    return evidence.startswith(("committed", "changes after", "later changes"))


def _weight(card: Item, files: Set[str]) -> tuple[bool, bool, bool, bool, bool, int]:
    """Which turn of a session says most of it: one about these files, a commit that is no chore,
    any commit, what holds, one with a whole title, the one that changed most."""
    committed = ": committed" in card.subtitle
    about, whole = not files.isdisjoint(card.files_modified), card.title[-1:] != "…"
    named, finished = committed and not is_chore(card.title), _is_finished(card)
    return about, named, committed, finished, whole, len(card.files_modified)
