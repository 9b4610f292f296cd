"""Sessions into what is distilled from them: read, judge, compose, write; in small steps.

A session is written in one transaction with the mark that it is done, so it can be stopped at any
time. Distilled again, it gives the same items under the same refs; what no longer comes of it goes.
Of a long session only the turns since something new, and some before them, are made anew, and none
that a language model has noted since it last grew (`llm.refine`). Where memory is bounded it is
done in several goes. Turn by turn, in several goes and all at once give the same, with the same
reader. What this session or another has told already within the hour is folded into that
(`repeats`); what is kept once for a project is left out where it was met more recently.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from yester.cards.cards import (
    Distilled,
    add_todo,
    has_news,
    is_kept_once,
    make_card,
    make_session_card,
    turn_sources,
)
from yester.cards.drafts import Draft, Gate, Looked, may_find
from yester.cards.failures import find_failures, refuted_failures
from yester.cards.observations import observe_turn
from yester.cards.outcomes import find_outcomes
from yester.cards.repeats import (
    find_insight,
    find_stored_insight,
    fold_insight,
    keep_foreign,
    read_insight,
    unfold_insight,
)
from yester.cards.status import Changes, Committed, judge_turns, narrow_turn
from yester.cards.titles import title_mender
from yester.cards.turns import LOOK_BACK, DistilRules, History, View, distilled_items
from yester.ingest.prepare import prepare_item, shown_texts
from yester.memories.chains import link_attempts, link_decisions
from yester.memories.typed import keep_rules
from yester.memories.utterances import find_kind
from yester.model import (
    DISTILLED,
    Entry,
    Failure,
    Item,
    PutCounts,
    Refinement,
    Session,
    Waiting,
    replace,
)
from yester.store.contract import Store
from yester.tables import load_rows, load_table
from yester.text.statements import is_boilerplate, split_statements, statement_worth

if TYPE_CHECKING:
    from yester.text.reader import Title, TitleFinder

# Work in steps, some of which wait.
Steps: TypeAlias = "Iterator[Future[Title] | None]"

_AT_ONCE = 60  # statements that are looked at in a step


@dataclass(slots=True)
class DistilReport:
    sessions: int = 0
    turns: int = 0
    steps: int = 0  # uses of tools
    observations: int = 0
    summaries: int = 0
    repeated: int = 0  # told before: folded into that, or left out where it was met since
    rules: int = 0  # that a user typed
    links: int = 0  # between a decision and the one it undoes
    put: PutCounts = field(default_factory=PutCounts)


class _Session:
    """A session while it is distilled: its turns, which of them stay as they are, what came of it
    before (`known`) and which of that is not made anew (`older`)."""

    def __init__(self, store: Store, waiting: Waiting) -> None:
        self.store, self.waiting, self.session = store, waiting, waiting.session
        self.noted = _noted_turns(store, waiting.session)
        self.known = distilled_items(store, waiting.session.id)
        # Earlier versions had no card for the only turn of a session: there it is made, too.
        types = {item.type for item in self.known if item.kind == "summary"}
        since = 0 if types == {"session"} else waiting.since
        self.history = History(store, waiting.session.id, since)
        self.turns: list[View] = []
        self.looked: list[Looked] = []  # those that do not stay
        self.stay: frozenset[str] = frozenset()
        self.older: list[Item] = []
        self.made: dict[str, Distilled] = {}
        self.repeated = 0
        self.failures: list[Failure] = []

    def read_session(self, rules: DistilRules) -> Iterator[None]:
        yield from self.history.read_items(rules)
        self.turns = turns = self.history.turns()
        yield
        changes = Changes(turns).follow()
        commits = changes.commits_by_turn(LOOK_BACK)
        yield
        outcomes = find_outcomes(turns, LOOK_BACK)
        yield
        self.failures = find_failures(turns, LOOK_BACK)
        yield
        statuses = judge_turns(changes, LOOK_BACK)
        first = self.history.first
        self.stay = frozenset(
            turn.key
            for turn, done in zip(turns, commits, strict=True)
            if turn.started < first or self.noted.get(turn.key) == turn_shape(turn, done)
        )
        found = zip(turns, statuses, commits, outcomes, strict=True)
        self.looked = [
            Looked(
                narrow_turn(one[0], one[1]),
                *one[1:],
                subject=changes.find_subject(at, LOOK_BACK),
                later=turns[at + 1 : at + 1 + LOOK_BACK],
            )
            for at, one in enumerate(found)
            if one[0].key not in self.stay
        ]
        self.older = [item for item in self.known if self._is_older(item)]

    def _is_older(self, item: Item) -> bool:
        """Is it of a turn that is not made anew?"""
        for turn in self.turns:
            if f":{turn.key}:" in item.ref:
                return turn.key in self.stay
        stays = (t for t in self.turns if t.number == item.prompt_number != 0)
        return any(t.key in self.stay for t in stays) or item.epoch < self.history.first

    def compose(self, rules: DistilRules) -> Steps:
        """The items of the turns that do not stay, and the session's card."""
        insights: dict[str, Distilled] = {}  # of the session so far
        anew = [looked.turn for looked in self.looked]
        for item in self.older:
            if item.kind == "observation" and not is_kept_once(item):
                before = read_insight(self.store, item)
                insights[item.ref] = bare = unfold_insight(before, anew)
                if bare != before:
                    self.made[item.ref] = bare
        told = [fact for one in insights.values() for fact in one.item.facts]
        gate = Gate(shown_texts(self.store, self.session.id, self.session.key), told)
        cards: list[Distilled] = []
        for looked in self.looked:
            turn = looked.turn
            named = replace(looked, read_title=(yield from _read_title(looked, rules.reader)))
            yield None
            yield from _take_apart(turn)
            drafts = observe_turn(named, gate)
            yield None
            card = make_card(named, drafts, gate)
            yield None
            # A turn's tokens are shared out among all that may be made of it, its own card and the
            # session's among them: none are counted twice.
            share = turn.tokens // max(len(drafts) + 2 * has_news(card), 1)
            facts: list[str] = []
            for draft in drafts:
                facts += self._observe(turn, draft, share, insights)
                yield None
            gate.keep(facts)
            if has_news(card):
                item = self._own_item(card, f"{self._turn_ref(turn)}:summary", turn.number, share)
                cards.append(Distilled(item, turn_sources(turn)))
        if cards and (todo := self.history.todo(self.turns)):
            cards[-1] = replace(cards[-1], item=add_todo(cards[-1].item, todo))
        self._add_cards(cards)

    def _turn_ref(self, turn: View) -> str:
        return f"turn:{self.session.key}:{turn.key}"

    def _own_item(self, item: Item, ref: str, number: int, tokens: int) -> Item:
        """An item as one of the session's."""
        session = self.session
        return replace(
            item, ref=ref, project=session.project, session=session.key,
            source=DISTILLED, agent=session.agent, prompt_number=number, discovery_tokens=tokens,
        )  # fmt: skip

    def _observe(
        self, turn: View, draft: Draft, share: int, insights: dict[str, Distilled]
    ) -> tuple[str, ...]:
        """Its facts, unless another session may take it over."""
        store, known = self.store, {item.ref for item in self.known}
        ref = f"{self._turn_ref(turn)}:{draft.slot}"
        if draft.slot.startswith("/"):
            ref = f"project:{self.session.project}:{draft.slot[1:]}"
        item = self._own_item(draft.item, ref, turn.number, share)
        sources = tuple((number, fact.source) for number, fact in enumerate(draft.facts))
        one = Distilled(item, sources + turn_sources(turn))
        if is_kept_once(item):
            old = [old for old in store.find_by_ref(item.ref) if old.source == DISTILLED]
            if any(other.epoch > item.epoch for other in old):
                self.repeated += 1
            else:
                self.made[item.ref] = one
            return ()
        earlier = find_insight(insights.values(), item)
        if earlier is None and item.ref not in known:
            other = find_stored_insight(store, item, known)
            earlier = unfold_insight(other, [turn]) if other is not None else None
        if earlier is not None:
            one = fold_insight(earlier, one)
            self.repeated += 1
        insights[one.item.ref] = self.made[one.item.ref] = one
        return item.facts

    def _add_cards(self, cards: Sequence[Distilled]) -> None:
        """Of each turn that has something to tell; and of the session, where there are several."""
        self.made |= {one.item.ref: one for one in cards}
        before = [item for item in self.older if item.kind == "summary" and item.type == "turn"]
        every = sorted(
            [*(read_insight(self.store, item) for item in before), *cards],
            key=lambda one: one.item.epoch,
        )
        if len(every) < 2:
            return
        items = [one.item for one in every]
        number = max(item.prompt_number for item in items)
        tokens = sum(item.discovery_tokens for item in items)
        ref = f"session:{self.session.key}:{self.session.project}"
        item = self._own_item(make_session_card(items), ref, number, tokens)
        sources = (source for one in every for source in one.sources if source[0] == -1)
        self.made[item.ref] = Distilled(item, tuple(dict.fromkeys(sources)))

    def merge_known(self) -> None:
        """What was there before keeps its id, its place in a chain of decisions, and what others
        folded into it and was not made of any item that is looked at now."""
        first = self.history.first
        again = (turn for turn in self.turns if turn.started < first or turn.key not in self.stay)
        looked_at = frozenset(id_ for turn in again for id_ in turn.ids)
        for ref, had in self._find_former().items():
            one = self.made[ref]
            alias = had.ref if had.ref != ref else ""
            item = replace(one.item, status=had.status, supersedes=had.supersedes, alias=alias)
            one = replace(one, item=item)
            if had.kind == "observation" and not is_kept_once(had):
                one = keep_foreign(self.store, one, had, looked_at)
            self.made[ref] = one

    def _find_former(self) -> dict[str, Item]:
        """What each item that is made anew was before, by its ref of now: a turn is named by its
        prompt, and what a hook told of that gets another ref from the transcript."""
        known = {item.ref: item for item in self.known if item not in self.older}
        renamed = {_place_in_turn(had): had for had in known.values() if had.ref not in self.made}
        found = {}
        for ref, one in self.made.items():
            former = known.get(ref) or renamed.get(_place_in_turn(one.item))
            if former is not None:
                found[ref] = former
        return found

    def write(self, entries: Sequence[Entry]) -> PutCounts | None:
        """None, and nothing done, where a language model has noted a turn meanwhile."""
        store, rest = self.store, self.history.rest
        kept = {item.ref for item in self.older} | self.made.keys()
        kept |= {one.item.alias for one in self.made.values()}
        gone = [
            item
            for item in self.known
            # What came of turns that are looked at another time stays until then.
            if item.ref not in kept and not (rest and item.epoch >= rest)
        ]
        # What a decision had undone that is none any more holds again.
        freed = store.get([item.supersedes for item in gone if item.supersedes])
        with store.transaction("work"):
            if _noted_turns(store, self.session) != self.noted:
                return None
            if gone:
                store.remove([item.id for item in gone])
                store.put([prepare_item(replace(item, status="active")) for item in freed])
            put = store.put(entries)
            runs = [step.item.id for turn in self.turns for step in turn.steps if step.ran.command]
            store.retract(Failure, {"item": runs})
            store.append(self.failures)
            store.append(refuted_failures(store, self.session.project, self.turns))
            store.settle_session(self.waiting, rest)
        return put

    def count(self, report: DistilReport, put: PutCounts) -> None:
        report.put += put
        report.repeated += self.repeated
        report.sessions += not self.history.rest
        report.turns += len(self.looked)
        report.steps += sum(len(looked.turn.steps) for looked in self.looked)
        own = [one.item for one in self.made.values() if one.item.session == self.session.key]
        observed = sum(item.kind == "observation" for item in own)
        report.observations += observed
        report.summaries += len(own) - observed


def load_patterns() -> None:
    """All that a first session would load: some tenths of a second, for a thread."""
    for table in ("statements", "tools", "utterances"):
        for section, rows in load_table(table).items():
            if isinstance(rows, list) and rows and "pattern" in rows[0]:
                for row in load_rows(table, section):
                    assert row.pattern
    assert not find_kind("The sea is calm.", "rule")  # with patterns that are made of these


def distil_session(
    store: Store, waiting: Waiting, rules: DistilRules, report: DistilReport, now: int = 0
) -> Steps:
    """Distil a session and store what comes of it, in steps of a few milliseconds; one that yields
    something waits for it. `now` dates what is kept for good; 0: the session's end. With
    `rules.most` it may wait still afterwards."""
    one = _Session(store, waiting)
    yield from one.read_session(rules)
    yield from one.compose(rules)
    one.merge_known()
    entries = []
    for each in one.made.values():
        entries.append(replace(prepare_item(each.item), evidence=tuple(each.sources)))
        yield None
    if (put := one.write(entries)) is None:
        yield from distil_session(store, waiting, rules, report, now)
        return
    yield None
    typed = [turn for turn in one.turns if turn.started >= one.history.first]
    prompts = [turn.prompt for turn in typed if turn.prompt is not None]
    for prompt in prompts:
        report.rules += keep_rules(store, one.session, [prompt], now or one.session.ended)
        yield None
    for links in chain(link_decisions(store, one.session), link_attempts(store, one.session)):
        report.links += links
        yield None
    one.count(report, put)


def _read_title(
    looked: Looked, reader: TitleFinder | None
) -> Generator[Future[Title] | None, None, str]:
    """What the reader calls a turn. One whose work was committed is named by its commit; one
    without a closing message was broken off."""
    prompt, closing = looked.turn.prompt, looked.turn.closing
    if reader is None or looked.named_commits or closing is None:
        return ""
    request = prompt.body if prompt is not None else ""
    mend = title_mender(request, closing.body, answers=not looked.turn.edited)
    title = reader.find_title(request, closing.body, mend)
    if isinstance(title, Future):
        while not title.done():
            yield title
        title = title.result()
    return title.text if title.usable else ""


def _place_in_turn(item: Item) -> tuple[str, int, str]:
    """What of which turn it is, whatever the turn's key."""
    slot = item.ref.removeprefix(f"turn:{item.session}:").partition(":")[2]
    return item.kind, item.prompt_number, slot


def _take_apart(turn: View) -> Iterator[None]:
    """The messages of a turn that may tell something, so many statements at a time: what they are
    worth is remembered."""
    for item in turn.said:
        if item is turn.closing or may_find(item.body):
            for number, one in enumerate(split_statements(item.body), 1):
                statement_worth(one)
                is_boilerplate(one.text)
                if not number % _AT_ONCE:
                    yield
        yield


def turn_shape(turn: View, commits: Sequence[Committed]) -> str:
    """How far a turn has come: another one when something was added to it, or its work was
    committed later."""
    return f"{turn.ended}-{turn.tokens}-{len(turn.steps)}-{len(commits)}"


def _noted_turns(store: Store, session: Session) -> Mapping[str, str]:
    """The turns whose notes are a language model's, and how far they had come."""
    made = store.entries(Refinement, {"session": session.id})
    return {one.turn: one.shape for one in made if not one.reason}
