"""What an agent gets at a prompt: what is recorded about what the prompt is about, or nothing.

And before it reads a file: what is known about that file.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from yester.agents.notes import loads_itself
from yester.context.block import Context, Here, Left, Page
from yester.context.cards import describe_hit, holds, read_cards
from yester.context.lines import (
    card_line,
    card_status,
    clean_text,
    hit_line,
    join_title,
    one_line,
    replace_quotes,
    short_name,
    stale_text,
)
from yester.context.talk import asks_back, says_little, trivial
from yester.fence import MOST_UNITS, strip_fenced
from yester.memories.categories import order_hits
from yester.memories.memory import GLOBAL
from yester.memories.utterances import is_only_ruling
from yester.model import DISTILLED, Filters, Hit, Item, Paging, Probe, replace
from yester.recall.beginning import changed_files
from yester.recall.candidates import OneQuestion
from yester.recall.floor import (
    LEAST_ASKED_BACK,
    LEAST_CHANCE,
    describe_lack,
    find_names,
    helpful_chance,
    passing_hits,
)
from yester.recall.rank import FEWEST, Weights
from yester.recall.recall import BEFORE, Asked, recall_hits
from yester.recall.recall import make_hit as hit_of
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
    own_name = _project_name(store, here)
    hits = _find_hits(store, prompt, here, own_name)
    names = find_names(f"{prompt}\n{here.before[-BEFORE:]}")
    shared = {
        hit.id: [names[name] for name in names.keys() & find_names(_words_of(hit))] for hit in hits
    }
    lacks = _below_floor(store, prompt, hits, own_name, shared if names else {})
    page.left += [Left(hit.id, hit.score, lacks[hit.id]) for hit in hits if hit.id in lacks]
    fitting = [hit for hit in hits if hit.id not in lacks]
    if names:
        fitting.sort(key=lambda hit: -helpful_chance(hit.score, len(shared[hit.id])))
    cards = _read_cards(store, fitting)
    asked = query_terms(prompt)
    for hit in fitting:
        own = hit.project == own_name
        card = cards.get(hit.id)
        told = hit if card is not None or hit.kind not in _TALK else _find_words(store, hit)
        loaded = hit.project in (own_name, GLOBAL.name) and loads_itself(here.client, hit.ref)
        if why := _reason_to_leave(store, hit, told, loaded, given, page):
            page.left.append(Left(hit.id, hit.score, why))
            continue
        assert told is not None  # else there was a reason
        origin = "" if own else f" [from: {short_name(hit.project)}]"
        if card is None:
            words = find_snippet(clean_text(told.text), asked, _SNIPPET)
            line = hit_line(told, here.calendar, join_title(told.title, words), origin)
        else:
            answers = hit.excerpt and hit.speaker in ("assistant", "") and holds(card)
            words = find_snippet(clean_text(hit.excerpt), asked, _SNIPPET) if answers else ""
            # Of an answer the words that fit the prompt, of work its cause.
            why = words if card_status(card) == "answered" else card.body or words
            line = card_line(card, here.calendar, why, origin, names=sorted(shared[hit.id]))
            line += stale_text(hit)
        page.add_line(line, told.id, "same project" if own else "other project", hit.score)
    return page.finish_page()


def _words_of(hit: Hit) -> str:
    return "\n".join((hit.title, hit.text, hit.excerpt, *hit.files))


def _below_floor(
    store: Store, prompt: str, hits: Sequence[Hit], own_name: str, shared: Mapping[int, list[str]]
) -> dict[int, str]:
    """What is not worth telling, and why. Turns are judged by the names they share with what was
    said, where it names anything; all else by how it stands against the rest."""
    least = LEAST_ASKED_BACK if asks_back(prompt) else LEAST_CHANCE
    lacks, others = {}, []
    for hit in hits:
        if hit.id in shared and hit.prompt_number and hit.kind != "memory":
            chance = helpful_chance(hit.score, len(shared[hit.id]))
            if chance < least:
                lacks[hit.id] = f"below the floor: a chance of {chance:.2f}, less than {least:.2f}"
        elif not says_little(hit):
            # Without what its turn has added: that says nothing of how it stands.
            added = sum(hit.factors.get(name, 0.0) for name in ("said", "worked"))
            others.append((replace(hit, score=hit.score - added), hit.project == own_name))
    if others:
        items = max(store.probe(Probe()).statistics.items, FEWEST)
        passing = {hit.id for hit, _ in passing_hits(others, len(query_terms(prompt)), items)}
        reasons = describe_lack(others)
        lacks |= {hit.id: reasons[own] for hit, own in others if hit.id not in passing}
    return lacks


def _reason_to_leave(
    store: Store, hit: Hit, told: Hit | None, loaded: bool, given: Given, page: Page
) -> str:
    """Why a hit that fits is not told; "" where it is."""
    if loaded:
        return "in the agent's own notes"
    if told is None:
        return "says little: no card"
    if little := says_little(told):
        return f"says little: {little}"
    if hit.kind == "summary" and hit.type != "turn":
        return "says little: a summary"
    if any(id_ in given.known for id_ in (hit.id, told.id, *hit.parts)):
        return "given before"
    if told.id in {one.item for one in page.shown}:
        return f"of the same turn as #{told.id}"
    if _is_ruling(store, told):
        return "told by a rule"
    return f"more than {given.most}" if len(page.shown) >= given.most else ""


def _read_cards(store: Store, hits: Sequence[Hit]) -> dict[int, Item]:
    """id → the card, as later sessions have left it."""
    turns = [hit for hit in hits if hit.kind == "summary" and hit.type == "turn"]
    if not turns:
        return {}
    since = int(min(hit.epoch for hit in turns) * 1000)
    projects = tuple(dict.fromkeys(hit.project for hit in turns))
    known = {card.id: card for card in read_cards(store, Filters(projects=projects, since=since))}
    older = [hit.id for hit in turns if hit.id not in known]
    return known | {card.id: card for card in (store.get(older) if older else ())}


def _project_name(store: Store, here: Here) -> str:
    """As hits have it; two projects may call themselves the same, so a new one has none yet."""
    return next((one.name for one in store.projects() if one.key == here.project.key), "")


def _is_ruling(store: Store, told: Hit) -> bool:
    """Does it answer a prompt that only says rules? While these hold, they are told themselves."""
    if not told.session or told.kind not in (*_TALK, "summary"):
        return False
    before = Filters(session=told.session, agent=told.agent, kinds=("prompt",),
                     until=int(told.epoch * 1000))  # fmt: skip
    return any(is_only_ruling(prompt.body) for prompt in store.select(before, Paging(1)))


def _find_hits(store: Store, prompt: str, here: Here, own_name: str) -> list[Hit]:
    """Turns, memories and notes, the best first; of equals those of this project come first."""
    files = changed_files(here.signals) if here.signals is not None else ()
    filters = Filters(
        projects=() if here.everywhere else (here.project.key,), without_projects=here.private
    )
    asked = Asked(
        prompt, filters, _ASKED, explain=True, now=here.now, project=here.project.key,
        files=files, own=_OWN,
    )  # fmt: skip
    asked = asked.in_conversation(here.before, here.session, here.worked)
    weights = replace(here.weights or Weights(), words=_WORDS, nearest=_NEAREST)
    embedder = OneQuestion(here.embedder, asked.query) if here.embedder is not None else None
    hits = recall_hits(store, asked, weights, embedder, here.fates)
    return order_hits(hits, {hit.id for hit in hits if hit.project == own_name})


def _find_words(store: Store, hit: Hit) -> Hit | None:
    """What is told of talk without a card: how a prompt was answered, else the words themselves;
    nothing where the turn was judged, and there was nothing to tell."""
    if _was_distilled(store, hit):
        return None
    return _find_answer(store, hit) if hit.kind == "prompt" else hit


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


def _was_distilled(store: Store, hit: Hit) -> bool:
    """Is a later turn of its session told? Then there was nothing to tell of this one."""
    since = Filters(session=hit.session, agent=hit.agent, kinds=("summary",), source=DISTILLED,
                    since=int(hit.epoch * 1000))  # fmt: skip
    return bool(hit.session and hit.prompt_number and store.select(since, Paging(1)))


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
        if own or hit.id in given.known or loads_itself(here.client, hit.ref):
            continue
        if len(page.shown) >= given.most:
            page.left.append(Left(hit.id, hit.score, f"more than {given.most}"))
            continue
        id_, line = describe_hit(store, hit, here.calendar, _NOTE)
        if id_ not in given.known and id_ not in {one.item for one in page.shown}:
            page.add_line(line, id_, f"file {file}")
    return page.finish_page()
