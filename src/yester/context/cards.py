"""The cards of a project as they stand now: what later sessions took back, and what is still open.

A card is judged when its session is distilled (`cards/status.py`). What other sessions did to its
work afterwards is looked up here, whenever it is told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from yester.clock import DAY, Calendar
from yester.context.lines import card_line, card_status, hit_line, join_title, one_line, stale_text
from yester.model import DISTILLED, Filters, Hit, Item, Paging, Probe, TurnKey, replace
from yester.store.contract import Store
from yester.tables import load_pattern
from yester.text.edits import is_prose
from yester.text.statements import (
    Statement,
    find_cues,
    statement_worth,
    telling_terms,
    title_words,
)
from yester.text.terms import STOP, text_terms

MOST_CARDS = 120  # newest ones that are looked at
_TURNS = 200  # of a session
_OF_A_TURN = ("message", "prompt", "observation", "summary")
_FINDINGS = ("decision", "discovery")
OPEN_FOR = 21 * DAY
_WORK = ("done", "changed", "failed", "reverted", "replaced", "open")
_CAME_TO_AN_END = ("reverted", "failed", "answered")
_TAKEN_BACK_BY_HAND = ("edited back", "in the next prompts")  # in the words of cards/status.py
TO_COMMIT = "not committed"  # in the words of cards/cards.py
_UNSTARTED = "plan not started"  # in the words of cards/status.py
_BROKEN_INTO = "broken into by the next prompt"  # likewise
_ASKS = "asks the user"  # likewise
_SEEN = 5  # turns after one that are looked at when it is distilled
_SHARED_TERMS = 2
_SAME = 0.5  # share of the words of what is open that closes it, in a later turn
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_RUN = re.compile(r"`[^`]+`")
_CHECKED, _SEVERAL = 5, 2  # sessions in which runs are looked for, and are found at least
_COMMITTED = re.compile(r"\b(?:un)?commit", re.I)
_FAILS = re.compile(r"\bfail(?:s|ing|ed|ures?)?\b|\bschlägt\b.*\bfehl\b|失败", re.I)
# What a later session, or its user in a shell, has done without a word.
_SHARED = re.compile(r"\b(?:merge|PR\b|pull request|push|worth watching)", re.I)
_GOES_ON = re.compile(r"(?:also|still|then|however|and|but)\b", re.I)
_GAP = re.compile(r"\s[.,;](?:\s|\Z)")  # a mark that was dropped has left it
_NEW = 0.5  # share of the words of a fact that its line does not have yet
_OF_TESTS = re.compile(r"\b[Tt]ests?\b|\bTest[A-Z]|_test\.|\.(?:spec|test)\.")
_CODE = 2
_TELLING = 0.4  # what a fact is worth at least
_OF_WORK = re.compile(r":(?:work|found|commit:\w+)\Z")  # observations that tell what came of a turn
_NOW = re.compile(r"\b(?:now|no longer|instead)\b|\A(?:remov|delet|renam|replac|drop)\w*\b", re.I)
_UNVERIFIED = re.compile(
    r"(?:n't|\bnot) (?:\w+ ){0,2}?(?:run|tested|test|tried|verified|checked) (?:anything|it|this"
    r"|that|them|the (?:tests?|change|code|suite))\b(?! (?:on|with|against|in|for)\b)", re.I
)  # fmt: skip
_FILE_WORDS = re.compile(r"[\W_]+")
_NAMES = re.compile(r"(?<![\w./-])[\w./-]*\w[._/-]\w+|\b[a-z]+[A-Z]\w+|`[^`]+`")


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """What is not done: something said at the end of a turn, or the turn itself (`whole`), which
    failed or was broken off; the text is what it waits for then."""

    card: Item
    text: str
    whole: bool = False


def read_cards(store: Store, filters: Filters) -> list[Item]:
    """The cards of turns, the newest first, as later sessions have left them. A session that an
    earlier version has distilled may have one summary instead."""
    found = store.select(replace(filters, kinds=("summary",)), Paging(MOST_CARDS))
    turns = {item.session for item in found if item.type == "turn"}
    cards = (item for item in found if item.type == "turn" or item.session not in turns)
    return _drop_overruled(store, filters, _mark_reverts([one for one in cards if one.sections]))


def _drop_overruled(store: Store, filters: Filters, cards: list[Item]) -> list[Item]:
    """Without the reason of what was decided otherwise since."""
    decided = replace(filters, kinds=("observation",), types=("decision",), since=None)
    over = store.select(decided, Paging(MOST_CARDS, statuses=("superseded",)))
    said = {(one.session, one.prompt_number): f"{one.title} {one.body}" for one in over}
    return [
        replace(card, body="")
        if card.body and card.body in said.get((card.session, card.prompt_number), "")
        else card
        for card in cards
    ]


def read_status(store: Store, card: Item) -> Item:
    """A card as later sessions have left it."""
    since = Filters(projects=(card.project,), since=card.epoch)
    return next((one for one in read_cards(store, since) if one.id == card.id), card)


def find_card(store: Store, hit: Hit | Item, known: Iterable[Item] = ()) -> Item | None:
    """The card of the turn that a hit is of; among those that are `known` it is not asked for."""
    if hit.kind not in _OF_A_TURN or not hit.session or not hit.prompt_number:
        return None
    turn = ("turn", hit.session, hit.prompt_number)
    for card in known:
        if (card.type, card.session, card.prompt_number) == turn:
            return card
    filters = Filters(session=hit.session, agent=hit.agent, kinds=("summary",), source=DISTILLED)
    cards = store.select(filters, Paging(_TURNS))
    cards = [item for item in cards if item.type == "turn"] or cards
    found = next((item for item in cards if item.prompt_number == hit.prompt_number), None)
    return read_status(store, found) if found is not None else None


def find_turn_cards(store: Store, turns: Collection[TurnKey]) -> dict[TurnKey, Item]:
    """The cards of turns, as later sessions have left them."""
    numbers = store.around(Probe(), (), (), (), turns).cards
    cards = {card.id: card for card in store.get(list(numbers.values()))}
    if cards:
        projects = tuple({card.project for card in cards.values()})
        since = min(card.epoch for card in cards.values())
        later = read_cards(store, Filters(projects=projects, since=since))
        cards |= {card.id: card for card in later if card.id in cards}
    return {turn: cards[id_] for turn, id_ in numbers.items()}


def find_turns(store: Store, turns: Collection[TurnKey]) -> dict[TurnKey, Item]:
    """The same, and of a turn without a card its prompt."""
    found = find_turn_cards(store, turns)
    for session in {session for session, _ in turns if session}:
        missing = {number for one, number in turns if one == session} - {
            number for one, number in found if one == session
        }
        asked = Filters(session_id=session, kinds=("prompt",))
        for prompt in store.select(asked, Paging(_TURNS)) if missing else ():
            if prompt.prompt_number in missing:
                found[session, prompt.prompt_number] = prompt
    return found


def is_unstarted(card: Item) -> bool:
    """Is it a plan that nobody was told to carry out?"""
    return card.subtitle.endswith(_UNSTARTED)


def holds(card: Item) -> bool:
    """What was said of work that failed or was taken back did not come true."""
    return card_status(card) not in ("reverted", "failed", "replaced")


def describe_hit(store: Store, hit: Hit, calendar: Calendar, most: int) -> tuple[int, str]:
    """The line that tells of a hit, after the item it is of: the card of its turn, with what was
    decided or found out there, else the hit itself."""
    card = find_card(store, hit)
    if card is None:
        return hit.id, hit_line(hit, calendar, join_title(hit.title, one_line(hit.text, most)))
    words = hit.text if hit.type in _FINDINGS and holds(card) else ""
    return card.id, card_line(card, calendar, words) + stale_text(hit)


def _mark_reverts(cards: Sequence[Item]) -> list[Item]:
    """A commit that a later session has reverted does not hold, nor does work whose lines a later
    turn took out; a plan that another one was told to carry out waits no more."""
    reverts: dict[str, tuple[str, str]] = {}  # commit → the command and why it was run
    begun: dict[str, int] = {}  # the plan that was to be carried out → the newest card
    replaced = {card.supersedes: card.id for card in cards if card.supersedes}
    marked = []
    for card in cards:  # the newest first
        commits = _HASH.findall(card.subtitle.partition("committed ")[2])
        by, why = next((run for hash_, run in reverts.items() for one in commits
                        if hash_.startswith(one) or one.startswith(hash_)), ("", ""))  # fmt: skip
        successor = replaced.get(card.id) if card_status(card) in ("done", "changed") else None
        if is_unstarted(card):
            successor = begun.get(card.title)
        if not by and successor:
            card = replace(card, subtitle=f"replaced: by {successor}")
        begun[card.sections.get("request", "")] = card.id
        taken = replace(card, subtitle=f"reverted: {by}", body=why or card.body)
        marked.append(taken if by else card)
        for run in _RUN.findall(card.subtitle):
            if run.startswith("`git revert"):
                why = card.body or (card.title if card.files_modified == () else "")
                reverts |= dict.fromkeys(_HASH.findall(run), (run, why))
    return marked


def is_work(card: Item) -> bool:
    """Was something done, or a cause found?"""
    word = card_status(card)
    if card.subtitle.endswith(_BROKEN_INTO) and not card.files_modified:
        return False  # the next turn has gone on from there
    return not card.subtitle or word in _WORK or (word == "answered" and _tells(card))


def _tells(card: Item) -> bool:
    """Does it say why, or answer something? That a check passes again is no answer."""
    return bool(card.body or (card.subtitle == "answered" and card.sections.get("learned")))


def is_worth_telling(card: Item) -> bool:
    """Can it stand for its session: work that holds, what was tried and why in vain, an answer?"""
    word = card_status(card)
    return not word or word in ("done", "changed") or (word in _CAME_TO_AN_END and _tells(card))


def drop_undoing(cards: Sequence[Item]) -> list[Item]:
    """Without the turns that only took back what one of these had tried: that one says it, and
    why."""
    tried = [one for one in cards if card_status(one) == "reverted" and one.body]
    tried = [one for one in tried if one.subtitle.endswith(_TAKEN_BACK_BY_HAND)]
    undoing: set[int] = set()
    for one in tried:
        files = set(one.files_modified)
        later = (
            card for card in cards
            if card.session == one.session and card.epoch > one.epoch
            and not files.isdisjoint(card.files_modified)
        )  # fmt: skip
        after = min(later, key=lambda card: card.epoch, default=None)
        if after is not None and files.issuperset(after.files_modified):
            undoing.add(after.id)
    return [card for card in cards if card.id not in undoing]


def is_past(card: Item, cards: Sequence[Item]) -> bool:
    """Did a later turn of these put something else in its place, or go on with what had failed?"""
    word, files = card_status(card), set(card.files_modified)
    went_on = (
        one for one in cards if one.epoch > card.epoch and card_status(one) in ("done", "changed")
    )
    if word == "replaced" or (card.subtitle.endswith(_BROKEN_INTO) and all(map(is_prose, files))):
        return True
    again = any(not files.isdisjoint(one.files_modified) for one in went_on)
    undone = word in ("failed", "open") or load_pattern("statements", "undone").search(card.title)
    return again and bool(undone)


def find_checks(cards: Sequence[Item]) -> list[tuple[str, Item]]:
    """Checks that passed in several of the last sessions in which something was done, and not
    failed since: those of most sessions first. Each with a turn that ran it."""
    passed: dict[str, dict[str, Item]] = {}
    failed: set[str] = set()
    last: dict[str, None] = {}
    for card in filter(is_work, cards):  # the newest first
        last.setdefault(card.session)
        if len(last) > _CHECKED:
            break
        if card_status(card) == "failed":
            failed.update(_RUN.findall(card.subtitle))
        for run in card.tags:
            if _RUN.fullmatch(run) and run not in failed:
                passed.setdefault(run, {}).setdefault(card.session, card)
    often = [(run, list(own.values())) for run, own in passed.items() if len(own) >= _SEVERAL]
    often.sort(key=lambda pair: -len(pair[1]))
    return [(run, own[0]) for run, own in often]


def is_passing(card: Item, cards: Sequence[Item]) -> bool:
    """Does an answer tell how things stood before a later turn of these?"""
    later = any(one.epoch > card.epoch for one in cards if one.session == card.session)
    told = load_pattern("statements", "passing").search(f"{card.title} {card.body}")
    return later and told is not None


def drop_doubles(cards: Sequence[Item]) -> list[Item]:
    """Without turns that only committed what another one has done, without what is not verified and
    was changed again, and without the same title twice; the newest first."""
    best: dict[str, int] = {}  # a title or commit → what the card changed that has most of it
    for card in cards:
        for name in _names_of(card):
            best[name] = max(best.get(name, 0), _amount_of_work(card))
    kept: dict[str, Item] = {}
    later: set[str] = set()
    for card in cards:
        again = card_status(card) == "changed" and later.issuperset(card.files_modified)
        later.update(card.files_modified)
        title, *commits = _names_of(card)
        amount = _amount_of_work(card)
        known = amount < _CODE and any(best[name] > amount for name in (title, *commits))
        former = kept.get(title, card)  # of two of the same name the one that changed more
        if not known and not (again and card.files_modified):
            kept[title] = max(former, card, key=lambda one: len(one.files_modified))
    return list(kept.values())


def _names_of(card: Item) -> tuple[str, ...]:
    """Its title (what programs store may have none) and its commits."""
    return card.title or card.body, *_HASH.findall(card.subtitle)


def _amount_of_work(card: Item) -> int:
    """Did it change code, only pages (a log of changes goes along with a commit), or nothing? What
    was tested is code, though a sub-agent may have written it."""
    if not card.files_modified:
        return 0
    tested = _RUN.search(card.subtitle) is not None
    return 1 if all(map(is_prose, card.files_modified)) and not tested else _CODE


# --- what came of them in detail -----------------------------------------------------------------


def read_facts(store: Store, session: str, agent: str) -> dict[int, list[str]]:
    """What was said at the end of each turn of a session, or in its commits, by the number of its
    prompt. What was said on the way may have been refuted, and a plan tells how things were."""
    filters = Filters(session=session, agent=agent, kinds=("observation",), source=DISTILLED)
    found = [one for one in store.select(filters, Paging(_TURNS)) if _OF_WORK.search(one.ref)]
    evidence = store.evidence([one.id for one in found])
    sources = {source for pairs in evidence.values() for _, source in pairs}
    items = {item.id: item for item in store.get(list(sources))}
    tools = {id_ for id_, item in items.items() if item.role == "tool"}
    said = {id_ for id_, item in items.items() if item.kind == "message"} - tools
    final = tools.union(
        source for pairs in evidence.values() for number, source in pairs if number == -1
    ) & (tools | said)
    facts: dict[int, list[str]] = {}
    for one in found:
        pairs = evidence.get(one.id, ())
        told = {number for number, source in pairs if source in final}
        own = facts.setdefault(one.prompt_number, [])
        own += [fact for number, fact in enumerate(one.facts) if number in told]
    return facts


def add_details(card: Item, facts: Sequence[str], room: int, later: Sequence[Item] = ()) -> str:
    """Why, and the most telling facts that nothing else in its line says, as many as there is room
    for. What was said of work that failed or was taken back did not come true; but for the cause,
    an answer may be settled otherwise by the work that came of it (`later`, in the next turns of
    its session), and so may what those are named by that changed the same files."""
    word = card_status(card)
    looked = not card.files_modified and ": committed" not in card.subtitle
    if word not in ("done", "changed", "answered") or (later and looked):
        return card.body
    again = [one for one in later if not set(one.files_modified).isdisjoint(card.files_modified)]
    named = [telling_terms(one.title) for one in again]
    left = card.sections.get("next_steps", "")  # told as open
    facts = [fact for fact in facts if fact.rstrip(" .") not in left]
    facts = [fact for fact in facts if not any(_mostly_names(fact, terms) for terms in named)]
    told = [card.body] if card.body else []
    room -= len(card.body)
    known = title_words(" ".join((card.title, card.body, *card.files_modified)))
    worth = {fact: _fact_worth(fact, at) for at, fact in enumerate(facts)}
    for fact in sorted(worth, key=lambda one: -worth[one]):
        own = title_words(fact)
        new = len(own - known) >= _NEW * len(own)
        if new and worth[fact] >= _TELLING and len(fact) <= room:
            told.append(fact)
            known |= own
            room -= len(fact)
    return " ".join(one if one[-1] in ".!?。" else f"{one}." for one in told)


def drop_overtaken(
    facts: Sequence[str], later: Sequence[str], titles: Iterable[str] = ()
) -> list[str]:
    """Without those about a name of which one that was said after them tells how it is now, or by
    which later work is called."""
    kept: list[str] = []
    now = {name for fact in later for name in _names_now(fact)}
    now.update(name for title in titles for name in _NAMES.findall(title))
    for fact in reversed(facts):
        if now.isdisjoint(_NAMES.findall(fact)):
            kept.insert(0, fact)
        now.update(_names_now(fact))
    return kept


def _names_now(fact: str) -> list[str]:
    return _NAMES.findall(fact) if _NOW.search(fact) else []


def _mostly_names(fact: str, terms: frozenset[str]) -> bool:
    shared = len(terms & telling_terms(fact))
    return shared > _SHARED_TERMS and shared >= _SAME * len(terms)


def _fact_worth(fact: str, place: int) -> float:
    """What comes first says what it is about; what leans on a sentence before it says little, and
    nothing is said by what only leads on, tells of a moment that is over, is about the agent or
    explains something away."""
    names = "explained away", "of the agent", "of a moment", "commit refused"
    if (
        fact[-1] == ":"
        or _GAP.search(fact)
        or any(load_pattern("statements", one).search(fact) for one in names)
    ):
        return 0.0
    leans = load_pattern("statements", "leans").match(fact) or _GOES_ON.match(fact)
    added = find_cues(fact) <= {"result"} and load_pattern("statements", "an addition").match(fact)
    less = bool(leans) + bool(added)  # the code itself says what was added
    less += _OF_TESTS.search(fact) is not None  # go along with it
    return statement_worth(Statement(fact)) + max(0.8 - 0.2 * place, 0.0) - less


# --- open -----------------------------------------------------------------------------------------


def find_open_ends(cards: Sequence[Item]) -> Iterator[OpenEnd]:
    """What no later turn has closed, the newest first. It grows old by the days in which work went
    on without it: a project that rests for months is taken up where it was left. What was said to
    be left is over when the same session goes on with the same files."""
    later: list[Item] = []
    sessions: dict[str, set[str]] = {}  # those seen so far, and which files were changed there
    unpushed: set[str] = set()  # sessions of which it is told
    for card in cards:
        if card.epoch < cards[0].epoch - OPEN_FOR:
            return
        ends = [text for text in card.sections.get("next_steps", "").split("\n") if text]
        since = sum(one.session == card.session for one in later)
        last = not since  # within a session only how it ended counts
        near = since <= _SEEN  # whether it was pushed then, its distiller has seen
        changed = sessions.setdefault(card.session, set())
        worked = not changed.isdisjoint((*card.files_modified, *card.files_read))
        changed.update(card.files_modified)
        reason = _unfinished_reason(card, ends)
        whole = card_status(card) == "open" or (last and card_status(card) == "failed")
        went_on = card.subtitle.endswith(_BROKEN_INTO)  # the same session has, with something
        whole = whole and not went_on and not is_finished(card, later)
        ends = [] if went_on or card_status(card) == "replaced" else ends
        if card_status(card) == "changed":  # the status says so
            ends = [text for text in ends if not _UNVERIFIED.search(text)]
        later.append(card)
        tries = card.subtitle.endswith(_ASKS) and reason[-1:] not in ("?", "？")
        if tries and len(sessions) > 1:
            continue  # the user has tried it
        if whole:
            # Of a turn that was broken off only the request is known, and part of it may be done.
            bare = card.subtitle.endswith(("broken off", _UNSTARTED))
            yield OpenEnd(card, "" if bare else reason, True)
        for text in ends:
            told = text == reason or (whole and text == card.body)
            stays = near and load_pattern("statements", "unpushed").search(text) is not None
            if stays and card.session in unpushed:
                continue  # a later turn says so, too
            passes = _passes(text, card, last or stays, len(sessions)) or (worked and not stays)
            if not passes and not told and not any(_closes(one, text, card) for one in later[:-1]):
                unpushed |= {card.session} if stays else set()
                yield OpenEnd(card, text)


def _passes(text: str, card: Item, last: bool, sessions: int) -> bool:
    """Is it over with its turn or session, whatever became of it?"""
    if not last and (not card.files_modified or load_pattern("statements", "passing").search(text)):
        return True
    return sessions > 1 and _SHARED.search(text) is not None


def _unfinished_reason(card: Item, ends: Sequence[str]) -> str:
    """What an open turn waits for, or what a failed one says of its failure: it is told with the
    turn, and over with it."""
    if card_status(card) == "open":
        return ends[0] if ends else ""
    failed = card_status(card) == "failed"
    return next((text for text in ends if _FAILS.search(text)), "") if failed else ""


def is_finished(card: Item, later: Sequence[Item]) -> bool:
    return any(_finishes(one, card) for one in later)


def _finishes(later: Item, card: Item) -> bool:
    """Has a later turn finished what failed, or was broken off? It has worked on the same files, or
    run the same command with success; a question is answered by what speaks of the same."""
    word, _, evidence = later.subtitle.partition(": ")
    failed = card_status(card) == "failed"
    if is_unstarted(card):
        return word in _WORK and (_speaks_of(later, card.title) or _changes_read(later, card))
    if later.title == card.title:  # of two that say the same the later one holds
        return word in ("done", "changed")
    if set(later.files_modified) & set(card.files_modified):
        return word == "done" or (word == "changed" and not failed)
    run = _RUN.search(card.subtitle)
    if failed and run is not None:
        return run[0] in evidence and evidence.endswith("passed")
    return word in ("done", "changed", "answered") and _speaks_of(later, card.title)


def _changes_read(later: Item, card: Item) -> bool:
    """Is a file that a plan was made from changed later? A client may refuse a plan on purpose and
    carry it out in a session of its own: rather one open end less than one that is none."""
    return not set(later.files_modified).isdisjoint(card.files_read)


def _closes(later: Item, text: str, card: Item) -> bool:
    """Has a later turn done what a card said to be left? It says so, or names the same; within a
    session less will do."""
    if card_status(later) not in ("done", "changed"):
        return False
    if _COMMITTED.search(text) and ": committed" in later.subtitle:
        return True
    files = " ".join(_FILE_WORDS.split(" ".join(later.files_modified)))
    if later.session == card.session and later.files_modified:
        return len(telling_terms(text) & telling_terms(f"{later.title} {files}")) >= _SHARED_TERMS
    return _speaks_of(later, text) or _does(later, text, files)


def _does(later: Item, text: str, files: str) -> bool:
    """Does a later turn name most of what was left, in its title, its prompt or its files?"""
    for name in ("undone", "filler"):
        text = load_pattern("statements", name).sub("", text)
    wanted = telling_terms(text)
    if len(wanted) <= _SHARED_TERMS:  # of few words "test" counts, too
        wanted = _terms_of(text) - STOP
    said = _terms_of(f"{later.title} {later.sections.get('request', '')} {files}")
    shared = wanted & said
    return len(shared) >= _SHARED_TERMS and len(shared) >= _SAME * len(wanted)


def _speaks_of(card: Item, text: str) -> bool:
    said = f"{card.title} {card.sections.get('request', '')} {card.sections.get('completed', '')}"
    wanted = _terms_of(text)
    return bool(wanted) and (
        len(wanted & _terms_of(said)) >= _SAME * len(wanted)
        or any(name.strip("`") in said for name in _NAMES.findall(text))
    )


@lru_cache(maxsize=512)
def _terms_of(text: str) -> frozenset[str]:
    """Each text is compared with many."""
    return frozenset(text_terms(text))
