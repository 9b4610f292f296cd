"""What an agent gets at a prompt: what is recorded about what the prompt is about, or nothing.

And before it reads a file: what is known about that file.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from itertools import takewhile

from yester.context.block import Context, Here, Left, Page, Shown
from yester.context.cards import describe_hit, find_card, holds
from yester.context.lines import (
    card_line,
    clean_text,
    hit_line,
    join_title,
    one_line,
    replace_quotes,
    short_name,
    stale_text,
)
from yester.context.talk import says_little, states_something, trivial
from yester.fence import MOST_UNITS, strip_fenced
from yester.memories.categories import order_hits
from yester.memories.memory_md import is_curated_note
from yester.memories.utterances import is_only_ruling
from yester.model import DISTILLED, Filters, Hit, Paging, Probe, replace
from yester.recall.beginning import changed_files
from yester.recall.candidates import OneQuestion
from yester.recall.floor import describe_lack, passing_hits
from yester.recall.rank import FEWEST, Weights
from yester.recall.recall import Asked, recall_hits
from yester.recall.recall import make_hit as hit_of
from yester.store.contract import Store
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

_ASKED = 20  # hits, of which some are known, of this session or below the floor
# Two searches, of which a few lines are shown: fewer candidates than where ten answers are wanted.
_WORDS, _NEAREST = 80, 60
_LONGEST_PROMPT = 20_000  # characters; the question stands at the beginning or the end
_SNIPPET, _NOTE = 240, 200  # characters
_TALK = ("message", "prompt")
_ANSWERS = ("message", "observation")  # whose words are told with the card; a question is not
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
    """A turn is told once, by its card; a question that was asked before, by its answer."""
    given = given or Given()
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
    pairs = [
        (hit, own)
        for hit, own in _find_hits(store, prompt, here)
        if not (here.session and hit.session == here.session)
    ]
    # What is known already must not open the door to what is merely like it.
    known = {
        hit.id for hit, own in pairs if hit.id in given.known or (own and is_curated_note(hit.ref))
    }
    empty = {hit.id: why for hit, _ in pairs if (why := says_little(hit))}
    new = [pair for pair in pairs if pair[0].id not in known and pair[0].id not in empty]
    fitting = {hit.id for hit, _ in passing_hits(new, len(asked), items)}
    lacks = describe_lack(new)
    turns: dict[tuple[str, int], int] = {}
    for hit, own in pairs:
        fits = hit.id in fitting
        card = find_card(store, hit) if fits else None
        told = _find_words(store, hit) if fits and card is None and hit.kind in _TALK else hit
        # Without a number no turn is known.
        turn = (hit.session, hit.prompt_number) if hit.session and hit.prompt_number else None
        why = (
            "in the agent's own notes" if own and is_curated_note(hit.ref)
            else f"says little: {empty[hit.id]}" if hit.id in empty
            else "says little: no card" if told is None
            else "the same prompt" if told.kind == "prompt" and told.text.split() == prompt.split()
            else "given before"
            if any(one.id in given.known for one in (hit, told, card) if one is not None)
            else lacks[own] if not fits
            else "told by a rule" if hit.kind in _TALK and _is_ruling(store, hit)
            else f"of the same turn as #{turns[turn]}"
            if turn in turns and (hit.kind in _TALK or card is not None)
            else f"more than {given.most}" if len(turns) >= given.most
            else ""
        )  # fmt: skip
        if why or told is None:
            page.left.append(Left(hit.id, hit.score, why))
            continue
        words = find_snippet(clean_text(told.text), asked, _SNIPPET)
        origin = "" if own else f" [from: {short_name(hit.project)}]"
        reason = "same project" if own else "other project"
        if card is None:
            line = hit_line(told, here.calendar, join_title(told.title, words), origin)
        else:
            answers = hit.kind in _ANSWERS and holds(card)
            line = card_line(card, here.calendar, words if answers else "", origin)
            line += stale_text(hit)
        if page.add_line(line, told.id, reason, hit.score):
            turns[turn or ("", hit.id)] = told.id
            if card is not None and card.id != hit.id:
                page.shown.append(Shown(card.id, 0.0, 0, reason))
    return page.finish_page()


def _is_ruling(store: Store, hit: Hit) -> bool:
    """Is it a prompt that only says rules, or the answer to one? While it holds, the
    rule itself is told."""
    if hit.kind == "prompt" or not hit.session:
        return hit.kind == "prompt" and is_only_ruling(hit.text)
    before = Filters(session=hit.session, agent=hit.agent, kinds=("prompt",),
                     until=int(hit.epoch * 1000))  # fmt: skip
    return any(is_only_ruling(prompt.body) for prompt in store.select(before, Paging(1)))


def _find_words(store: Store, hit: Hit) -> Hit | None:
    """What is told of a turn without a card: what the user stated in it, else how a prompt was
    answered; nothing where the turn was judged, and there was nothing to tell."""
    if hit.kind == "prompt" and states_something(hit.text):
        return hit
    if _was_distilled(store, hit):
        return None
    return _find_answer(store, hit) if hit.kind == "prompt" else hit


def _was_distilled(store: Store, hit: Hit) -> bool:
    """Is a later turn of its session told? Then there was nothing to tell of this one."""
    since = Filters(session=hit.session, agent=hit.agent, kinds=("summary",), source=DISTILLED,
                    since=int(hit.epoch * 1000))  # fmt: skip
    return bool(hit.session and hit.prompt_number and store.select(since, Paging(1)))


def _find_hits(store: Store, prompt: str, here: Here) -> list[tuple[Hit, bool]]:
    """Hits, the best first, and whether they are of this project, whose come first among equals."""
    # On lines of their own the words are words: nobody writes operators to an agent.
    query, project = "\n".join(prompt.split()), here.project
    files = changed_files(here.signals) if here.signals is not None else ()
    asked = Asked(query, k=_ASKED, explain=True, now=here.now, project=project.key, files=files)
    asked_here = replace(asked, filters=Filters(projects=(project.key,)))
    once = OneQuestion(here.embedder, query) if here.embedder is not None else None
    weights = replace(here.weights or Weights(), words=_WORDS, nearest=_NEAREST)

    def hits(question: Asked) -> dict[int, Hit]:
        return {h.id: h for h in recall_hits(store, question, weights, once, here.fates)}

    # Asked for itself as well, no busy project can push the present one out. Found both ways, the
    # score over everything counts: in a small project every word is rare.
    own = hits(asked_here)
    merged = own | (hits(asked) if here.everywhere else {})
    names = {known.key: known.name for known in store.projects()}
    own_name = names.get(project.key)  # two projects may call themselves the same
    said_here = {(hit.title, hit.text) for hit in own.values()}
    of_here = {hit.id for hit in merged.values() if hit.project == own_name}
    found = [
        hit
        for hit in merged.values()
        if hit.id in of_here or (hit.title, hit.text) not in said_here
    ]
    return [(hit, hit.id in of_here) for hit in order_hits(found, of_here)]


def _find_answer(store: Store, question: Hit) -> Hit | None:
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


def at_read(store: Store, file: str, here: Here, given: Given | None = None) -> Context:
    """What is recorded about a file that is about to be read; `file` as seen from the project."""
    given = given or Given(most=3, budget=250)
    head = f"Recorded about {replace_quotes(one_line(file, 120))}; one as a whole: yester show ID."
    page = Page("memory", "the file", head, "", given.room, given.units)
    if not page.has_room or not file:
        return Context()
    about = Filters(projects=(here.project.key,), kinds=_ABOUT_FILES, files=(file,))
    asked = Asked("", about, _ASKED, now=here.now, project=here.project.key)
    for hit in recall_hits(store, asked, here.weights, None, here.fates):
        own = here.session and hit.session == here.session
        if own or hit.id in given.known or is_curated_note(hit.ref):
            continue
        if len(page.shown) >= given.most:
            page.left.append(Left(hit.id, hit.score, f"more than {given.most}"))
            continue
        id_, line = describe_hit(store, hit, here.calendar, _NOTE)
        if id_ not in given.known and id_ not in {one.item for one in page.shown}:
            page.add_line(line, id_, f"file {file}")
    return page.finish_page()
