"""What an agent gets at a prompt: what is recorded about what the prompt is about, or nothing.

And before it reads a file: what is known about that file.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import takewhile

from yester.agents.notes import loads_itself
from yester.context.block import Context, Here, Left, Page
from yester.context.cards import MOST_CARDS, describe_hit, holds, is_unstarted, read_cards
from yester.context.lines import (
    card_line,
    card_status,
    clean_text,
    hit_line,
    join_title,
    one_line,
    origin_text,
    replace_quotes,
    short_name,
    stale_text,
)
from yester.context.talk import asks_back, says_little, trivial
from yester.fence import MOST_UNITS, strip_fenced
from yester.git import Signals
from yester.memories.categories import order_hits
from yester.memories.memory import GLOBAL
from yester.memories.utterances import is_only_ruling
from yester.model import Filters, Hit, Item, Paging, replace
from yester.recall.beginning import branch_words, changed_files
from yester.recall.floor import LEAST_CHANCE, judge_hits
from yester.recall.rank import Weights
from yester.recall.recall import Answer, Asked, answer_question, make_hit, recall_hits
from yester.store.contract import Store
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

_ASKED, _OWN = 12, 4  # hits, of which some are known or below the floor; of the own project
# A few lines are shown: fewer candidates than where ten answers are wanted.
_WORDS, _NEAREST = 80, 60
_LONGEST_PROMPT = 20_000  # characters; the question stands at the beginning or the end
_SNIPPET, _NOTE = 240, 200  # characters
_TALK = ("message", "prompt")
_TURN = 60  # items after a question among which its answer is looked for
# What can be known about a file besides that it was opened.
_ABOUT_FILES = ("observation", "memory", "note")


@dataclass(frozen=True, slots=True)
class Given:
    """What a session has been given before, and how much it may still get."""

    known: Container[int] = ()  # items
    spent: int = 0  # tokens
    most: int = 2  # lines
    budget: int = 300  # tokens
    session_budget: int = 3_000
    units: int = MOST_UNITS  # of the answer, that something else in it has left

    @property
    def room(self) -> int:
        return min(self.budget, self.session_budget - self.spent)


def at_prompt(store: Store, prompt: str, here: Here, given: Given | None = None) -> Context:
    """A turn is told once, by its card; one without a card by what the agent said last in it."""
    given = given or Given()
    prompt = strip_fenced(prompt)  # Gemini hands back what it was given at the start
    page = Page(
        "memory", "what fits the prompt",
        "Found in earlier sessions for this prompt; one as a whole: yester show ID.", "",
        given.room, given.units,
    )  # fmt: skip
    if trivial(prompt) or not page.has_room:
        return Context()
    if len(prompt) > _LONGEST_PROMPT:
        half = _LONGEST_PROMPT // 2
        prompt = f"{prompt[:half]}\n{prompt[-half:]}"
    answer = _ask_store(store, prompt, here)
    # Who asks for what was before does not mind how long ago it was.
    now = 0 if asks_back(prompt, begins=not here.before) else here.now
    judged = judge_hits(answer.hits, prompt, answer.project, now)
    by_id = {one.hit.id: one for one in judged}
    for one in judged:
        if one.chance < LEAST_CHANCE:
            why = f"unlikely to help: a chance of {one.chance:.2f}, and {LEAST_CHANCE} is wanted"
            page.left.append(Left(one.hit.id, one.hit.score, why))
    fitting = [one for one in judged if one.chance >= LEAST_CHANCE]
    # Of equals those of this project come first.
    ordered = order_hits(
        [replace(one.hit, score=one.rank) for one in fitting],
        {one.hit.id for one in fitting if one.hit.project == answer.project},
    )
    cards = _Cards(store, ordered)
    asked = query_terms(prompt)
    for hit, _, names, _ in (by_id[one.id] for one in ordered):
        own = hit.project == answer.project
        loaded = hit.project in (answer.project, GLOBAL.name) and loads_itself(here.client, hit.ref)
        why, told = _choose_words(store, hit, loaded, given, page, cards)
        if told is None:
            page.left.append(Left(hit.id, hit.score, why))
            continue
        origin = origin_text(hit) or ("" if own else f" [from: {short_name(hit.project)}]")
        if isinstance(told, Hit):
            words = find_snippet(clean_text(told.text), asked, _SNIPPET)
            line = hit_line(told, here.calendar, join_title(told.title, words), origin)
        else:
            answers = hit.excerpt and hit.speaker in ("assistant", "") and holds(told)
            words = find_snippet(clean_text(hit.excerpt), asked, _SNIPPET) if answers else ""
            # Of an answer the words that fit the prompt, of work its cause.
            why = words if card_status(told) == "answered" else told.body or words
            line = card_line(told, here.calendar, why, origin, names=names) + stale_text(hit)
        page.add_line(line, told.id, "same project" if own else "other project", hit.score)
    return page.finish_page()


def _ask_store(store: Store, prompt: str, here: Here) -> Answer:
    """Turns, memories and notes, the best first."""
    signals = here.signals or Signals()
    filters = Filters(
        projects=() if here.everywhere else (here.project.key,), without_projects=here.private
    )
    asked = Asked(
        "\n".join((prompt, *branch_words(signals))), filters, _ASKED, explain=True, now=here.now,
        project=here.project.key, files=changed_files(signals), own=_OWN, raw=True,
    )  # fmt: skip
    asked = asked.in_conversation(here.before, here.session, here.worked)
    weights = replace(here.weights or Weights(), words=_WORDS, nearest=_NEAREST)
    return answer_question(store, asked, weights, here.embedder, here.fates)


class _Cards:
    """The cards of some hits, as later sessions have left them, and which sessions have any."""

    def __init__(self, store: Store, hits: Sequence[Hit]) -> None:
        told = [hit for hit in hits if hit.kind in (*_TALK, "summary")]
        since = int(min((hit.epoch for hit in told), default=0) * 1000)
        projects = tuple(dict.fromkeys(hit.project for hit in told))
        newest = read_cards(store, Filters(projects=projects, since=since)) if told else []
        turns = {hit.id for hit in told if hit.kind == "summary" and hit.type == "turn"}
        older = turns.difference(card.id for card in newest)
        self.by_id = {card.id: card for card in (*newest, *(store.get([*older]) if older else ()))}
        self._sessions = {card.session for card in newest}
        # What is older than all that were looked at has been judged long ago.
        self._oldest = newest[-1].epoch if len(newest) >= MOST_CARDS else 0

    def judged_session(self, hit: Hit) -> bool:
        """Was its turn judged? Then there was nothing to tell of it, since it has no card."""
        return hit.session in self._sessions or hit.epoch * 1000 < self._oldest


def _choose_words(
    store: Store, hit: Hit, loaded: bool, given: Given, page: Page, cards: _Cards
) -> tuple[str, Hit | Item | None]:
    """What is told of a hit that fits: its card, itself, the answer to a prompt; else why not."""
    card = cards.by_id.get(hit.id)
    told: Hit | None = hit
    if len(page.shown) >= given.most:
        return f"more than {given.most}", None
    if loaded:
        return "in the agent's own notes", None
    if hit.kind == "summary" and hit.type != "turn":
        return "says little: a summary", None
    if card is None and hit.kind in _TALK:
        told = None
        if not cards.judged_session(hit):
            told = _find_answer(store, hit) if hit.kind == "prompt" else hit
    if told is None or (hit.kind == "note" and hit.session):
        return "says little: no card", None  # plans and lists of a session long over
    if card is not None and is_unstarted(card):
        return "says little: a plan that nobody has begun", None
    if little := says_little(told):
        return f"says little: {little}", None
    if any(id_ in given.known for id_ in (hit.id, told.id, *hit.parts)):
        return "given before", None
    if told.id in {one.item for one in page.shown}:
        return f"of the same turn as #{told.id}", None
    request = _request_of(store, told, card)
    return ("told by a rule", None) if is_only_ruling(request) else ("", card or told)


def _request_of(store: Store, told: Hit, card: Item | None) -> str:
    """The prompt of its turn. What answers one that only says rules is told by these rules."""
    if card is not None or told.kind not in _TALK or not told.session:
        return card.sections.get("request", "") if card is not None else ""
    before = Filters(session=told.session, agent=told.agent, kinds=("prompt",),
                     until=int(told.epoch * 1000))  # fmt: skip
    return next((prompt.body for prompt in store.select(before, Paging(1))), "")


def _find_answer(store: Store, question: Hit) -> Hit | None:
    """The last thing the agent said to it, of what says something."""
    about = Filters(session=question.session, kinds=_TALK, since=int(question.epoch * 1000))
    later = store.select(about, Paging(_TURN, oldest_first=True)) if question.session else []
    turn = takewhile(lambda item: item.kind != "prompt" or item.id == question.id, later)
    names = {later[0].project: question.project} if later else {}
    said = (item for item in turn if item.role == "assistant")
    answers = [make_hit(item, names, question.score, raw=True) for item in said]
    return next((one for one in reversed(answers) if not says_little(one)), None)


def at_read(store: Store, file: str, here: Here, given: Given | None = None) -> Context:
    """What is recorded about a file that is about to be read; `file` as seen from the project."""
    given = given or Given(most=3, budget=250)
    head = f"Recorded about {replace_quotes(one_line(file, 120))}; one as a whole: yester show ID."
    page = Page("memory", "the file", head, "", given.room, given.units)
    if not page.has_room or not file:
        return Context()
    about = Filters(projects=(here.project.key,), kinds=_ABOUT_FILES, files=(file,))
    asked = Asked("", about, _ASKED, now=here.now, project=here.project.key, raw=True)
    for hit in recall_hits(store, asked, here.weights, None, here.fates):
        own = here.session and hit.session == here.session
        if own or hit.id in given.known or loads_itself(here.client, hit.ref):
            continue
        if len(page.shown) >= given.most:
            page.left.append(Left(hit.id, hit.score, f"more than {given.most}"))
            continue
        id_, line = describe_hit(store, hit, here.calendar, _NOTE)
        if id_ not in given.known and id_ not in {one.item for one in page.shown}:
            page.add_line(line, id_, f"file {file}")
    return page.finish_page()
