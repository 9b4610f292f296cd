"""What the user's own history shows at a first look: errors that came back and what ended them,
requests typed again and again, ends left open. At most three, and only what holds.

Nothing is asked of a model, and nothing is written: what the user has judged (`yester feedback`) or
made a rule of is not shown again.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from yester.cards.outcomes import error_title
from yester.cards.tools import typed_command
from yester.clock import Calendar, format_day
from yester.context.block import Here
from yester.context.cards import TO_COMMIT, OpenEnd, find_open_ends, read_cards
from yester.context.endings import Ending, ending_lines, find_ending
from yester.context.lines import card_status, one_line
from yester.context.talk import phrase_meaning
from yester.memories import utterances
from yester.memories.rules import list_rules, rules_agree
from yester.memory import Memory
from yester.model import Failure, Feedback, Filters, Item, Paging, Project
from yester.project import bare_project
from yester.store.contract import Store
from yester.text.terms import query_terms

MOST = 3
_FAILURES, _PROMPTS = 4_000, 2_000  # the newest that are looked through
_OFTEN = 3  # sessions in which an error was met, or a request typed
_SAME = 0.6  # share of the words that two requests have in common
_FEWEST, _MOST_WORDS = 3, 24  # words of a request
_REQUEST, _OPEN, _TITLE, _COMMAND = 160, 200, 80, 60  # characters
_FILLERS = frozenset(
    ["ok", "okay", "yes", "let", "lets", "get", "go", "back", "now", "then", "please", "again"]
)
_OF_A_TASK = "remember"  # "remember to use pagination"
_SHARED = re.compile(r"\b(?:merge|PR\b|pull request|push)", re.I)
_NAME = re.compile(r"[A-Za-z]{4,}")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_VAGUE = frozenset("""
    error errors fail failed failing test tests found file files line code module command script
    index main should with from does this that expected received cannot could type value
""".split())  # fmt: skip  # noqa: SIM905 -- words of errors that say nothing about which


class Finding(Struct, kw_only=True):
    """One thing from the history, and what the user can do about it."""

    kind: str  # error, request, open
    project: str
    text: str
    items: list[int]
    keep: str  # the command that keeps it
    dismiss: str  # the command after which it is not shown again
    sessions: int = 1


def find_findings(memory: Memory) -> list[Finding]:
    """One of each kind first, then the next best of any."""
    store = memory.reading
    names = {one.key: one for one in store.projects()}
    words = store.entries(Feedback, {"what": ("useful", "useless")}, Paging(_FAILURES))
    judged = {row.item for row in words}
    sorts = (
        _find_errors(memory, names),
        _find_requests(store, names),
        _find_open(memory, names.values()),
    )
    kinds = [[one for one in found if judged.isdisjoint(one.items)] for found in sorts]
    ranked = [one for turn in range(MOST) for found in kinds for one in found[turn : turn + 1]]
    return ranked[:MOST]


# --- errors that came back ------------------------------------------------------------------------


def _find_errors(memory: Memory, names: Mapping[str, Project]) -> Iterator[Finding]:
    """Those met in several sessions of a project, with an end that has to do with them."""
    store = memory.reading
    rows: defaultdict[str, list[Failure]] = defaultdict(list)
    for row in store.entries(Failure, page=Paging(_FAILURES)):
        rows[row.mark].append(row)
    often = {mark: found for mark, found in rows.items() if len(found) > 1}
    runs = [row.item for found in often.values() for row in found]
    items = {item.id: item for item in store.get(runs)}
    told: list[tuple[int, Ending]] = []
    for mark, found in often.items():
        places = Counter(items[row.item].project for row in found if row.item in items)
        for key in list(places)[:1]:
            met = {items[row.item].session for row in found if row.item in items}
            here = Here(names.get(key, bare_project(key)), "", memory.now, everywhere=False)
            ending = find_ending(store, [mark], here, asked=True) if len(met) > 1 else None
            if ending is not None and ending.ended and _belong_together(ending, len(met)):
                told.append((len(met), ending))
    told.sort(key=lambda one: (-one[0], -one[1].last))
    known: set[tuple[int, ...]] = set()
    for number, ending in told:
        changes = tuple(item.id for item in ending.changes) or (ending.run.id if ending.run else 0,)
        if changes not in known:  # errors that went together
            known.add(changes)
            yield _describe_error(ending, number, names, memory.now)


def _belong_together(ending: Ending, sessions: int) -> bool:
    """Has what ended it a name in common with the error? Else anything may have."""
    if sessions < _OFTEN and not ending.cause:
        return False
    if ending.failure.came == "instead":
        return sessions >= _OFTEN
    typed = " ".join(map(typed_command, ending.changes))
    files = " ".join(file.rsplit("/", 1)[-1] for file in ending.files)
    return bool(_name_parts(ending.failure.text) & _name_parts(f"{files} {typed} {ending.cause}"))


def _name_parts(text: str) -> set[str]:
    words = (part.lower() for word in _NAME.findall(text) for part in _PART.findall(word))
    return {word for word in words if len(word) > 3 and word not in _VAGUE}


def _describe_error(
    ending: Ending, sessions: int, names: Mapping[str, Project], now: int
) -> Finding:
    way = ending_lines(ending, Calendar(now, None))[0].partition("): ")[2]
    error, item = error_title(ending.failure.text), ending.shown_item
    key = ending.failing.project
    told = f"{error} — met in {sessions} sessions"
    if ending.failure.came == "instead":
        typed = one_line(typed_command(ending.failing), _COMMAND)
        told = f"“{typed}” failed in {sessions} sessions ({error})"
    return Finding(
        kind="error", project=names[key].name if key in names else "", sessions=sessions,
        text=f"{told}; {way}", items=[item, ending.failing.id],
        keep=f"yester feedback {item} --useful",
        dismiss=f"yester feedback {item} --useless",
    )  # fmt: skip


# --- requests typed again and again ---------------------------------------------------------------

_Typed = tuple[Item, str]  # a prompt, and the sentence of it


def _find_requests(store: Store, names: Mapping[str, Project]) -> Iterator[Finding]:
    """What was typed in several sessions, then the instructions that were meant to last, the newest
    first: those of which nothing is kept yet. Only an instruction is offered as a rule: an agent
    would follow a request such as "commit and push" in every session, unasked."""
    prompts = [
        item
        for item in store.select(Filters(kinds=("prompt",)), Paging(_PROMPTS))
        if not item.actor and item.origin == "user"
    ]
    preferences = store.memos(Filters(types=("preference",)))
    known = [memo.item.body or memo.item.title for memo in (*list_rules(store, ()), *preferences)]
    for group in chain(_group_requests(prompts), _list_instructions(prompts)):
        item, text = min(group, key=lambda one: len(one[1]))
        if any(rules_agree(text, one) for one in known):
            continue
        known.append(text)
        name = names[item.project].name if item.project in names else ""
        place = f"--project {shlex.quote(name)} " if name else ""
        times, day = f"in {len(group)} sessions", format_day(item.epoch)
        lasts = any(one.kind == "rule" for one in utterances.find_utterances(text))
        type_ = "rule" if lasts else "preference"
        told = times if len(group) > 1 else f"on {day}, and no rule says it yet"
        yield Finding(
            kind="request", project=name, text=f"“{text}” — you typed this {told}",
            sessions=len(group), items=[one.id for one, _ in group],
            keep=f"yester remember --type {type_} {place}{shlex.quote(text)}",
            dismiss=f"yester feedback {item.id} --useless",
        )  # fmt: skip


def _group_requests(prompts: Iterable[Item]) -> Iterator[Sequence[_Typed]]:
    """One of each session in which nearly the same words were typed, the most often typed first."""
    groups: list[tuple[frozenset[str], dict[str, _Typed]]] = []
    for item in prompts:
        for text, words in _read_requests(item.body):
            for known, group in groups:
                if len(words & known) >= _SAME * len(words | known):
                    group.setdefault(item.session, (item, text))
                    break
            else:
                groups.append((words, {item.session: (item, text)}))
    groups.sort(key=lambda one: -len(one[1]))
    return (list(group.values()) for _, group in groups if len(group) >= _OFTEN)


def _list_instructions(prompts: Iterable[Item]) -> Iterator[Sequence[_Typed]]:
    """Nothing that was taken back since, that asks for less care, or that is of one task alone."""
    taken_back: list[utterances.Utterance] = []
    for item in prompts:
        found = utterances.find_utterances(item.body)
        taken_back += [one for one in found if one.kind == "withdrawal"]
        for one in found:
            lasts = one.kind == "rule" and one.own and (one.sure or one.row != _OF_A_TASK)
            gone = any(utterances.takes_back(other, one.text) for other in taken_back)
            if lasts and not gone and not utterances.weakens_safety(one.text):
                yield [(item, one_line(one.text, _REQUEST).strip(" .!"))]


def _read_requests(prompt: str) -> Iterator[tuple[str, frozenset[str]]]:
    for sentence in utterances.own_sentences(prompt):
        text = one_line(sentence.text, _REQUEST).strip(" .!")
        if (
            sentence.asked
            or utterances.MASK in sentence.text
            or text.startswith("/")
            or "\n" in text
        ):
            continue
        words = frozenset(query_terms(text)) - _FILLERS
        if _FEWEST <= len(words) <= _MOST_WORDS and not phrase_meaning(text):
            yield text, words


# --- ends left open -------------------------------------------------------------------------------


def _find_open(memory: Memory, projects: Iterable[Project]) -> Iterator[Finding]:
    """What was said to be left undone, and plans that nobody began: one of each turn, the newest
    first."""
    store = memory.reading
    found: dict[int, tuple[int, Finding]] = {}
    for project in projects:
        cards = read_cards(store, Filters(projects=(project.key,)))
        last = {card.session: card.id for card in reversed(cards)}
        for end in find_open_ends(cards):
            # Within a session only how it ended counts.
            text = _describe_end(end) if last[end.card.session] == end.card.id else ""
            id_ = end.card.id
            if text and id_ not in found and not _was_taken_up(store, end.card):
                one = Finding(
                    kind="open", project=project.name, text=text, items=[id_],
                    keep=f"yester feedback {id_} --useful",
                    dismiss=f"yester feedback {id_} --useless",
                )  # fmt: skip
                found[id_] = end.card.epoch, one
    yield from (one for _, one in sorted(found.values(), key=lambda pair: -pair[0]))


def _was_taken_up(store: Store, card: Item) -> bool:
    """Has the user named it since, in whichever work tree?"""
    later = store.select(Filters(kinds=("prompt",), since=card.epoch + 1), Paging(_PROMPTS))
    return any(card.title in item.body for item in later)


def _describe_end(end: OpenEnd) -> str:
    """Nothing for what was merely broken off, of which only the request is known; nor for what is
    to be committed, pushed or merged, which git knows better."""
    card = end.card
    title, text = one_line(card.title, _TITLE), one_line(end.text, _OPEN)
    if not end.whole:
        if end.text.startswith(TO_COMMIT) or _SHARED.search(end.text):
            return ""
        told = title.rstrip("…") in text
        return f"left open: {text}" if told else f"“{title}” left open: {text}"
    if card_status(card) == "failed":
        return f"failed, and not taken up since: {one_line(card.title, _OPEN)}"
    if card.subtitle.endswith("plan not started"):
        return f"planned, and not begun: {one_line(card.title, _OPEN)}"
    if card.subtitle.endswith("asks the user") and end.text:
        return f"“{title}” ended with a question to you: {text}"
    return ""
