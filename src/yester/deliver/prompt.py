"""What an agent gets at a prompt: what is recorded about what the prompt is about, or nothing.

And before it reads a file: what is known about that file.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import tzinfo
from itertools import takewhile
from typing import TYPE_CHECKING

from yester.clock import Calendar
from yester.deliver.empty import QUESTION, says_little
from yester.deliver.gate import trivial
from yester.deliver.lines import (
    card_line,
    clean_text,
    hit_line,
    join_title,
    one_line,
    replace_quotes,
    short_name,
    stale_text,
)
from yester.deliver.page import Context, Left, Page, Shown
from yester.fence import MOST_UNITS, strip_fenced
from yester.memories.categories import order_hits
from yester.memories.memory_md import is_curated_note
from yester.memories.utterances import is_only_ruling
from yester.model import DISTILLED, Filters, Hit, Item, Paging, Probe, Project, replace
from yester.recall.candidates import OneQuestion
from yester.recall.floor import describe_lack, passing_hits
from yester.recall.rank import FEWEST, Weights
from yester.recall.recall import Asked, Fates, recall_hits
from yester.recall.recall import make_hit as hit_of
from yester.store.contract import Store
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

if TYPE_CHECKING:
    from yester.text.embed import Embedder

_ASKED = 20  # hits, of which some are known, of this session or below the floor
# Two searches, of which a few lines are shown: fewer candidates than where ten answers are wanted.
_WORDS, _NEAREST = 80, 60
_LONGEST_PROMPT = 20_000  # characters; the question stands at the beginning or the end
_SNIPPET, _NOTE = 240, 200  # characters
_TALK = ("message", "prompt")
_OF_A_TURN = ("message", "prompt", "observation", "summary")
_ANSWERS = ("message", "observation")  # whose words are told with the card; a question is not
_CARDS = 200  # of a session
_TURN = 60  # items after a question among which its answer is looked for
# What can be known about a file besides that it was opened.
_ABOUT_FILES = ("observation", "memory", "note")


@dataclass(frozen=True, slots=True)
class Given:
    """What a session has been given before, and how much it may still get."""

    known: Container[int] = ()  # items
    spent: int = 0  # tokens
    most: int = 5  # items
    budget: int = 600  # tokens
    session_budget: int = 6_000
    units: int = MOST_UNITS  # of the answer, that something else in it has left

    @property
    def room(self) -> int:
        return min(self.budget, self.session_budget - self.spent)


@dataclass(frozen=True, slots=True)
class Search:
    """What a search needs besides its question."""

    weights: Weights | None = None
    embedder: Embedder | None = None
    fates: Fates | None = None
    files: tuple[str, ...] = ()  # being worked on
    everywhere: bool = True  # look in other projects too


def at_prompt(
    store: Store,
    prompt: str,
    project: Project,
    session: str,
    now: int,
    given: Given | None = None,
    search: Search | None = None,
    zone: tzinfo | None = None,
) -> Context:
    given, search = given or Given(), search or Search()
    prompt = strip_fenced(prompt)  # Gemini hands back what it was given at the start
    if trivial(prompt):
        return Context()
    page = Page(
        "memory", "what fits the prompt",
        "Found in earlier sessions for this prompt; one as a whole: yester show ID.", "",
        given.room, given.units,
    )  # fmt: skip
    if not page.has_room:
        return Context()
    if len(prompt) > _LONGEST_PROMPT:
        half = _LONGEST_PROMPT // 2
        prompt = f"{prompt[:half]}\n{prompt[-half:]}"
    asked = query_terms(prompt)
    items = max(store.probe(Probe()).statistics.items, FEWEST)
    calendar = Calendar(now, zone)
    turns: dict[tuple[str, int], int] = {}
    pairs = [
        (hit, own)
        for hit, own in _found(store, prompt, project, now, search)
        if not (session and hit.session == session)
    ]
    # What is known already must not open the door to what is merely like it.
    known = {
        hit.id for hit, own in pairs if hit.id in given.known or (own and is_curated_note(hit.ref))
    }
    empty = {hit.id: why for hit, _ in pairs if (why := says_little(hit))}
    silent = {id_ for id_, why in empty.items() if why != QUESTION}
    new = [pair for pair in pairs if pair[0].id not in known and pair[0].id not in silent]
    fitting = {hit.id for hit, _ in passing_hits(new, len(asked), items)}
    lacks = describe_lack(new)
    questions = [(hit, own) for hit, own in new if hit.id in empty and hit.id in fitting]
    for question, own in questions[: given.most]:
        # Of a question that was asked before, what it was answered is given and not itself.
        answer = _answer(store, question)
        if answer is not None and answer.id not in fitting and answer.id not in given.known:
            fitting.add(answer.id)
            at = pairs.index((question, own))
            others = [pair for pair in pairs if pair[0].id != answer.id]
            pairs = [*others[: at + 1], (answer, own), *others[at + 1 :]]
    cards: dict[tuple[str, int], Item | None] = {}
    ruled = {
        (hit.session, hit.prompt_number)
        for hit, _ in pairs
        if hit.id in fitting and hit.kind == "prompt" and is_only_ruling(hit.text)
    }
    lines = 0
    for hit, own in pairs:
        turn = (hit.session, hit.prompt_number)
        if hit.id in fitting and all(turn) and turn not in cards:
            cards[turn] = _card(store, hit)
        card = cards.get(turn) if hit.kind in _OF_A_TURN else None
        why = (
            "in the agent's own notes" if own and is_curated_note(hit.ref)
            else "given before"
            if hit.id in given.known or (card is not None and card.id in given.known)
            else f"says little: {empty[hit.id]}" if hit.id in empty
            else lacks[own] if hit.id not in fitting
            else "told by a rule" if turn in ruled and hit.kind in _TALK
            else f"of the same turn as #{turns[turn]}"
            # Without a number no turn is known.
            if all(turn) and (hit.kind in _TALK or card is not None) and turn in turns
            else f"more than {given.most}" if lines >= given.most
            else ""
        )  # fmt: skip
        if why:
            page.left.append(Left(hit.id, hit.score, why))
            continue
        words = find_snippet(clean_text(hit.text), asked, _SNIPPET)
        origin = "" if own else f" [from: {short_name(hit.project)}]"
        reason = "same project" if own else "other project"
        if card is None:
            line = hit_line(hit, calendar, join_title(hit.title, words), origin)
        else:
            line = card_line(card, calendar, words if hit.kind in _ANSWERS else "", origin)
            line += stale_text(hit)
        if page.add_line(line, hit.id, reason, (0, lines, 0), hit.score):
            lines += 1
            turns[turn] = hit.id
            if card is not None and card.id != hit.id:
                page.shown.append(Shown(card.id, 0.0, 0, reason))
    return page.finish_page()


def _card(store: Store, hit: Hit) -> Item | None:
    """The card of the turn that a hit is of: a turn is told once, with what came of it."""
    filters = Filters(session=hit.session, agent=hit.agent, kinds=("summary",), source=DISTILLED)
    made = store.select(filters, Paging(_CARDS))
    turns = [item for item in made if item.type == "turn"] or made
    return next((item for item in turns if item.prompt_number == hit.prompt_number), None)


def _found(
    store: Store, prompt: str, project: Project, now: int, search: Search
) -> list[tuple[Hit, bool]]:
    """Hits, the best first, and whether they are of this project, whose come first among equals."""
    # On lines of their own the words are words: nobody writes operators to an agent.
    query = "\n".join(prompt.split())
    asked = Asked(query, k=_ASKED, explain=True, now=now, project=project.key, files=search.files)
    asked_here = replace(asked, filters=Filters(projects=(project.key,)))
    once = OneQuestion(search.embedder, query) if search.embedder is not None else None

    weights = replace(search.weights or Weights(), words=_WORDS, nearest=_NEAREST)

    def hits(question: Asked) -> dict[int, Hit]:
        return {h.id: h for h in recall_hits(store, question, weights, once, search.fates)}

    # Asked for itself as well, no busy project can push the present one out. Found both ways, the
    # score over everything counts: in a small project every word is rare.
    own = hits(asked_here)
    merged = own | (hits(asked) if search.everywhere else {})
    names = {known.key: known.name for known in store.projects()}
    here_name = names.get(project.key)  # two projects may call themselves the same
    said_here = {(hit.title, hit.text) for hit in own.values()}
    here = {hit.id for hit in merged.values() if hit.project == here_name}
    found = [
        hit for hit in merged.values() if hit.id in here or (hit.title, hit.text) not in said_here
    ]
    return [(hit, hit.id in here) for hit in order_hits(found, here)]


def _answer(store: Store, question: Hit) -> Hit | None:
    """The last thing the agent said to it, of what says something."""
    if not question.session:
        return None
    about = Filters(session=question.session, kinds=_TALK, since=int(question.epoch * 1000))
    later = store.select(about, Paging(_TURN, oldest_first=True))
    turn = takewhile(lambda item: item.kind != "prompt" or item.id == question.id, later)
    names = {project.key: project.name for project in store.projects()}
    for item in reversed([item for item in turn if item.role == "assistant"]):
        answer = hit_of(item, names, question.score)
        if not says_little(answer):
            return answer
    return None


def at_read(
    store: Store,
    file: str,
    project: Project,
    session: str,
    now: int,
    given: Given | None = None,
    search: Search | None = None,
    zone: tzinfo | None = None,
) -> Context:
    """What is recorded about a file that is about to be read; `file` as seen from the project."""
    given, search = given or Given(most=3, budget=250), search or Search()
    head = f"Recorded about {replace_quotes(one_line(file, 120))}; one as a whole: yester show ID."
    page = Page("memory", "the file", head, "", given.room, given.units)
    if not page.has_room or not file:
        return Context()
    about = Filters(projects=(project.key,), kinds=_ABOUT_FILES, files=(file,))
    asked = Asked("", about, _ASKED, now=now, project=project.key)
    calendar = Calendar(now, zone)
    for hit in recall_hits(store, asked, search.weights, None, search.fates):
        if (
            hit.id in given.known
            or (session and hit.session == session)
            or is_curated_note(hit.ref)
        ):
            continue
        if len(page.shown) >= given.most:
            page.left.append(Left(hit.id, hit.score, f"more than {given.most}"))
            continue
        text = join_title(hit.title, one_line(hit.text, _NOTE))
        page.add_line(
            hit_line(hit, calendar, text), hit.id, f"file {file}", (0, len(page.shown), 0)
        )
    return page.finish_page()
