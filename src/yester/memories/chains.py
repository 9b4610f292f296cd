"""Whether a newer text takes back what an older one says, and the chains that come of it.

A text is read clause by clause for what it claims, by the rows of tables/utterances.toml:

    for and against     "Use pnpm" – "Never use pnpm", "We dropped pnpm", "Use bun instead of pnpm"
    one or the other    "Use pnpm for installs" – "Use bun for installs"; "Use tabs" – "Use spaces"
    two values          "The API port is 8080" – "The API port is 9090"
    the opposite        "Cache tokens in memory" – "Do not cache tokens in memory"

The thing must be the same, and so must what it is for: "Don't use mocks in integration tests" is an
exception to "Use mocks", not its opposite. A wrong link hides what still holds, a missing one shows
two texts that disagree: what the rows cannot tell is no contradiction.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from msgspec import Struct

from yester.ingest.prepare import prepare_item
from yester.model import DISTILLED, Filters, Item, Memo, Paging, Probe, Session, TurnKey, replace
from yester.recall.recall import Asked, recall_hits
from yester.store.contract import Store
from yester.tables import load_pattern, load_rows, load_table
from yester.text.terms import query_terms

_LONGEST = 4_000  # characters looked at
_MOST_TERMS = 4  # of a thing; a longer one is a sentence, and is not compared
_SAME_WORDS = 0.75  # share of common terms from which two texts are about the same
_SAME_PURPOSE = 0.5

_REPLACED, _FEWEST_LINES = 0.8, 2  # share of a turn's lines that another took out; lines at least
_READ = 1_200  # characters of a decision that are looked at
_ALIKE = 15  # earlier or later decisions that are compared
_WORD = re.compile(r"\w[\w+-]*(?:\.\w+)*")
_NAME = re.compile(
    r"[`\"“](?P<quoted>[^`\"”\n]{2,60})[`\"”]|(?P<code>(?<!\w)\w+(?:[._/:-]\w+)+|(?<![a-z])[a-z]++[A-Z]\w+|[A-Z]{2,}\w*)"
    r"|(?<=[a-z,] )(?P<proper>[A-Z]\w+)"
)
_POINTING = re.compile(r"\b(?:it|this|that|them|these|those)\b", re.I)
_SPELLING = re.compile(r" (?:english|spelling)$")
_DOTTED = re.compile(r"\w[/.]\w")

Terms = frozenset[str]


class Claim(Struct, frozen=True):
    good: bool  # for the thing, or against it
    thing: Terms
    purpose: Terms
    job: bool  # the purpose is what it is for, not where or when
    named: tuple[str, str]  # the thing and the purpose as they are written
    words: str


class Claims(Struct, frozen=True):
    """What a text says, as far as the rows can compare it."""

    claims: tuple[Claim, ...]
    values: tuple[tuple[Terms, str], ...]
    terms: Terms  # of the whole text, without the words that only command
    negated: bool


@lru_cache(2_000)
def parse_claims(text: str) -> Claims:
    text = text[:_LONGEST].replace("’", "'")
    clauses = list(_split_clauses(text))
    whole = ". ".join(clauses)
    return Claims(
        tuple(claim for clause in clauses for claim in _read_claims(clause)),
        tuple(value for clause in clauses for value in _read_values(clause)),
        subject_terms(whole),
        load_pattern("utterances", "negated").search(whole) is not None,
    )


def find_contradiction(older: Claims, newer: Claims) -> str:
    """In what a newer text contradicts an older one, in a few words; "" where it does not."""
    for old in older.claims:
        for new in newer.claims:
            if _are_opposed(old, new):
                return f"{old.words} / {new.words}"
    for thing, value in newer.values:
        for same, before in older.values:
            if thing == same and value != before:
                return f"{before} is now {value}"
    opposite = older.negated != newer.negated and len(newer.terms) > 1
    return "the opposite" if opposite and overlap(older.terms, newer.terms) >= _SAME_WORDS else ""


def _are_opposed(old: Claim, new: Claim) -> bool:
    if old.thing == new.thing:
        if old.good == new.good:
            return old.good and _choose_differently(old.named[1], new.named[1])
        # Said of less than the older one, it is an exception; said of anything else, nothing.
        return new.purpose <= old.purpose
    if not (old.good and new.good) or old.thing & new.thing:
        return False
    if load_pattern("utterances", "also").search(new.words):
        return False
    if old.job and new.job and old.purpose == new.purpose:
        return True
    near = old.purpose == new.purpose or overlap(old.purpose, new.purpose) >= _SAME_PURPOSE
    near = near or (not new.purpose and new.words.endswith(" again"))
    return near and _choose_differently(old.named[0], new.named[0])


def _split_clauses(text: str) -> Iterator[str]:
    """What is decided in a text, clause by clause; without questions, guesses and reasons."""
    for part in load_pattern("utterances", "clause end").split(text.replace("*", "")):
        clause = cut_reason(" ".join(part.replace("`", "").split()).strip(" -"))
        if clause and not load_pattern("utterances", "not decided").search(clause):
            yield clause


def _read_claims(clause: str) -> Iterator[Claim]:
    for row in load_rows("utterances", "claims"):
        for found in row.pattern.finditer(clause):
            groups = {name: text or "" for name, text in found.groupdict().items()}
            purpose, words = groups.get("purpose", ""), " ".join(found[0].split())
            job = groups.get("link", "").lower() in ("for", "as")
            for name, good in (("thing", row.values["good"]), ("other", True)):
                phrase = groups.get(name, "")
                if (
                    _POINTING.search(phrase)
                    or not 0 < len(thing := name_terms(phrase)) <= _MOST_TERMS
                ):
                    continue
                yield Claim(good, thing, name_terms(purpose), job, (phrase, purpose), words)


def _read_values(clause: str) -> Iterator[tuple[Terms, str]]:
    """What is said to have which value; a thing of one plain word is too vague to compare."""
    if found := load_pattern("utterances", "value").match(clause):
        thing = name_terms(found["thing"])
        if 2 <= len(thing) <= _MOST_TERMS + 2:
            yield thing, (found["value"].strip("`") + found["unit"].strip()).lower()


# --- what a text is about ------------------------------------------------------------------------


@cache
def _load_choices() -> tuple[frozenset[str], ...]:
    """What can be chosen among; a thing may stand in several."""
    return tuple(frozenset(one.split()) for one in load_table("utterances")["choices"].values())


def _choose_differently(one: str, other: str) -> bool:
    """Are these two answers to one choice?"""
    both = {_SPELLING.sub("", phrase.lower()) for phrase in (one, other)}
    return len(both) == 2 and any(both <= answers for answers in _load_choices())


def subject_terms(text: str) -> Terms:
    """The terms that say what a rule or decision is about, not how it is commanded."""
    manner = _load_manner()
    found = name_terms(text)
    return frozenset(term for term in found if term not in manner) or found


@cache
def _load_manner() -> Terms:
    return frozenset(query_terms(" ".join(load_table("utterances")["manner"])))


def cut_reason(text: str) -> str:
    """A text without its reason, which may say anything."""
    return load_pattern("utterances", "reason").split(text, maxsplit=1)[0]


def overlap(one: Terms, other: Terms) -> float:
    """Share of the terms that both have, of all that either has."""
    return len(one & other) / len(one | other) if one and other else 0.0


def name_terms(text: str) -> Terms:
    """Its terms; a path or a dotted name is one besides, since its parts are those of others."""
    dotted = {word.strip(".,").lower() for word in text.split() if _DOTTED.search(word)}
    return frozenset((*query_terms(text), *dotted)) if text.strip() else frozenset()


# --- chains --------------------------------------------------------------------------------------


def list_chain(store: Store, item: Item) -> list[Item]:
    """What an item stands in the place of, itself, and what stands in its place; oldest first."""
    chain, seen = [item], {0, item.id}
    while (id_ := chain[0].supersedes) not in seen:
        seen.add(id_)
        chain = [*store.get([id_]), *chain]
    while later := store.select(Filters(supersedes=chain[-1].id), Paging(1, statuses=())):
        if later[0].id in seen:
            break
        seen.add(later[0].id)
        chain += later
    return chain


def list_memory_chain(store: Store, memo: Memo) -> list[Memo]:
    return store.memos(ids=[one.id for one in list_chain(store, memo.item)])


def link_decisions(store: Store, session: Session) -> Iterator[int]:
    """Decisions of this session and those they undo, or are undone by, made a chain: the newer one
    names the older, which is found no more. Yields how many links were made, step by step."""
    decisions = Filters(session_id=session.id, source=DISTILLED, types=("decision",))
    for one in store.select(decisions, Paging(oldest_first=True)):
        asked = Asked(
            "\n".join(one.title.split()), k=_ALIKE, now=one.epoch,
            filters=Filters(
                projects=(session.project,), kinds=("observation",), types=("decision",)
            ),
        )  # fmt: skip
        others = store.get([hit.id for hit in recall_hits(store, asked) if hit.id != one.id])
        undone = [o for o in others if o.epoch < one.epoch and replaces(one, o)]
        undoing = [o for o in others if o.epoch > one.epoch and replaces(o, one)]
        if undone and not one.supersedes:
            yield link_items(store, one, max(undone, key=lambda o: o.epoch))
        if undoing:
            yield link_items(store, min(undoing, key=lambda o: o.epoch), one)
        yield 0


def link_attempts(store: Store, session: Session) -> Iterator[int]:
    """The cards of turns that took out what others had written, made a chain: the newer one names
    the older, which stays, since only its lines are known to be gone. Yields how many links were
    made."""
    own = Filters(session_id=session.id, source=DISTILLED, kinds=("summary",), types=("turn",))
    files = {file for card in store.select(own) for file in card.files_modified}
    found = _find_replaced(store, session.project, files)
    pairs = [pair for pair in found.items() if session.id in (pair[0][0], pair[1][0])]
    ids = store.around(Probe(), (), (), (), {turn for pair in pairs for turn in pair}).cards
    for old, new in pairs:
        cards = store.get([ids.get(old, 0), ids.get(new, 0)])
        if len(cards) < 2 or cards[1].supersedes:
            continue
        # Of another session, it may have written into other files besides.
        there = {*cards[0].files_modified}
        if there <= files or _find_replaced(store, session.project, there).get(old) == new:
            newer = prepare_item(replace(cards[1], supersedes=cards[0].id))
            with store.transaction("work"):
                yield store.put([newer]).changed


def _find_replaced(store: Store, project: str, files: Iterable[str]) -> dict[TurnKey, TurnKey]:
    """Turns of whose lines in these files another one took out nearly all, and that one. What was
    put back elsewhere was only moved."""
    edits = store.probe(Probe(Filters(projects=(project,)), written=sorted(files))).written
    owner: dict[tuple[str, int], TurnKey] = {}
    wrote: defaultdict[TurnKey, set[tuple[str, int]]] = defaultdict(set)
    taken: defaultdict[tuple[TurnKey, TurnKey], set[int]] = defaultdict(set)
    for edit in sorted(edits, key=lambda edit: (edit.epoch, edit.item)):
        for line in edit.removed:
            former = owner.pop((edit.path, line), edit.turn)
            taken[former, edit.turn].add(line)
        for at, line in enumerate(edit.lines):
            if not edit.added or edit.added[at]:
                owner[edit.path, line] = edit.turn
                wrote[edit.turn].add((edit.path, line))
    return {
        old: new
        for (old, new), lines in taken.items()
        if old != new
        and len(lines - {line for _, line in wrote[new]})
        >= max(_FEWEST_LINES, _REPLACED * len(wrote[old]))
    }


def replaces(newer: Item, older: Item) -> bool:
    """Does a newer decision take the place of an older one? They must name a common thing."""
    said, before = (parse_claims(f"{one.title}\n{one.body}"[:_READ]) for one in (newer, older))
    return bool(find_contradiction(before, said)) and bool(rare_names(newer) & rare_names(older))


def rare_names(item: Item) -> frozenset[str]:
    """Identifiers, paths, quoted terms and names in a decision, and what can be chosen."""
    text = f"{item.title}\n{item.body}"[:_READ]
    words = {word.lower() for word in _WORD.findall(text)}
    chosen = frozenset().union(*_load_choices()) & words
    return chosen | {found[found.lastgroup or 0].lower() for found in _NAME.finditer(text)}


def link_items(store: Store, newer: Item, older: Item) -> int:
    changed = [replace(older, status="superseded")]
    if not newer.supersedes:
        changed.append(replace(newer, supersedes=older.id))
    with store.transaction("work"):
        return store.put([prepare_item(item) for item in changed]).changed
