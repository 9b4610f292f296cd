"""The card of a turn, and of a session of several: what was asked, looked at, learned and done,
what is left, a status by evidence, and why.

Nothing new is said here: the fields are made of prompts, facts, titles and names of files. A card
is a summary item; title, text, sections and files are its own fields, `subtitle` holds the status
with its evidence, and the text is the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from yester.cards.drafts import MOST_FILES, TAKEN_BACK, WARNING, Draft, Fact, Gate, Looked
from yester.cards.outcomes import error_title
from yester.cards.results import find_answer, name_answer, question_title
from yester.cards.status import ASKS, BROKEN_INTO, BROKEN_OFF, COMMIT_FAILED, UNSTARTED
from yester.cards.titles import (
    find_request,
    heading_title,
    is_imperative,
    is_telling,
    names_fault,
    request_title,
)
from yester.cards.tools import file_name, file_names, split_command
from yester.cards.turns import PLANS, View
from yester.cards.unfinished import find_offer, find_unfinished
from yester.model import Item, replace
from yester.tables import load_pattern
from yester.text.statements import (
    Statement,
    bare_text,
    count_words,
    cut_clause,
    find_cues,
    is_boilerplate,
    is_reason,
    split_statements,
    telling_terms,
    title_words,
)

_pattern = partial(load_pattern, "statements")

_ROOM = {
    "request": 240, "investigated": 200, "learned": 320, "completed": 320, "next_steps": 400,
    "notes": 220,
}  # fmt: skip
FIELDS = tuple(_ROOM)
_SESSION = 2.5  # times as much is told of a session
_SAME = 0.8  # a line that has so many of its words in common with another says nothing new
_LEARNED = frozenset({"cause", "gotcha", "how", "failed"})
_WEIGHTS = {"done": 3, "changed": 2, "failed": 1, "reverted": 1, "open": 1}
_TODO = 2  # lines of a list of things to do; of more, their number
_SHARED = 3  # rare words of what is left in what was done later
_FEW_WORDS = 5
_ANSWER = 160  # characters of an answer that says something
_CHECK = 60  # characters of a command
_OBJECTION = 600  # characters of a prompt; a longer one is pasted
_LEAD, _CHOICE = 180, 90  # characters of a sentence that another one leans on; of a choice

_MERGED = re.compile(r"`gh pr merge (\d+)")
_FENCE = re.compile(r"\A```\w*\n")

Sources = tuple[tuple[int, int], ...]  # (number of the fact, item it was taken from); -1: no fact


def make_card(looked: Looked, drafts: Sequence[Draft], gate: Gate) -> Item:
    """What a turn came to. Only what holds by evidence is completed; what failed, or was taken
    back, says so. Whether there is anything to tell, `has_news` says."""
    turn, status, request = looked.turn, looked.status, looked.request
    files = turn.edited or (turn.put_back if status.word == "reverted" else ())
    in_vain = status.word in TAKEN_BACK and not turn.edited
    done = [draft.title for draft in drafts if draft.is_work]
    found = [
        draft.title
        for draft in drafts
        if not draft.is_work and not draft.slot.startswith("chosen") and WARNING not in draft.tags
        and not (draft.slot == "checked" and status.holds)  # how it failed is not what was done
    ]  # fmt: skip
    did = status.holds and not turn.edited and status.evidence.startswith("`")
    only_checked = status.word == "answered" and all(one.slot == "checked" for one in drafts)
    answers = (did or status.word in ("answered", "open")) and (not drafts or only_checked)
    answer, taken = find_answer(looked, gate) if answers else ("", [])
    facts = [fact for draft in drafts for fact in draft.facts] or (taken if answer else [])
    deed = turn.last_deed if status.evidence == UNSTARTED else None
    plan = _plan_title(turn) if deed is not None else ""
    wanted = plan or question_title(looked) or request_title(request)
    # What was wanted is more than what was said of it before it broke off.
    asks = status.word == "open" and (status.evidence != ASKS or bool(turn.edited))
    merged = _MERGED.match(status.evidence)
    if merged and not turn.edited:
        answer = f"Merged PR #{merged[1]}"
    told = "" if asks or looked.commit_title else answer
    named = (plan, told, *done, looked.commit_title, *found, wanted, answer)
    titles = (wanted if in_vain else "", *named, *(draft.title for draft in drafts))
    title = next(filter(None, titles), "")
    if title == request_title(request) and status.word == "answered":
        title = name_answer(looked, gate) or title
    said_first = _said_first(turn, request, gate) if status.word == "answered" else []
    undid = status.evidence.startswith("`git revert")
    tells = found or undid or answer not in ("", looked.request_title)
    left, committed = [plan] if plan else [], status.is_committed
    if status.word == "open" and not plan and (turn.edited or status.evidence != BROKEN_INTO):
        left = _broken_off(turn, wanted)
    if status.holds and COMMIT_FAILED in status.evidence:
        why = _find_sentence(turn, "commit refused")
        reason = f"{COMMIT_FAILED}: {why}" if why else COMMIT_FAILED
        left.append(f"not committed: {_uncommitted(turn) or title}; {reason}")
    name = looked.commit_title or title
    said: Iterable[str] = find_unfinished(turn, name, gate)
    if not (said or left):
        said = find_offer(turn, name, committed)
    left += [one for one in said if not _is_overtaken(one, looked.later)]
    learned = [
        *(fact.text for fact in facts if _is_learned(fact.text) and not answers),
        *(one for one in (*found, answer) if not (in_vain or _is_question(one, request))),
    ]  # fmt: skip
    cut_off = status.word == "open" and status.evidence == BROKEN_OFF and turn.closing is None
    fields = {
        "request": [request],
        "investigated": [_investigated(turn)],
        "learned": list(filter(None, learned)) or said_first,
        "completed": (done or [title] * bool(did and tells)) if status.holds else [],
        "next_steps": left,
        "notes": [
            *([f"{status.word}: {title}"] if status.word in TAKEN_BACK and title else []),
            *(one.title for one in drafts if WARNING in one.tags and status.word != "talk"),
        ],
    }
    return Item(
        "", "summary", type="turn", epoch=turn.ended, title=title,
        subtitle=status.text if status.word != "talk" else "answered" if left else "",
        body=_find_cause(looked, title, facts)
        or (_last_words(turn) if cut_off else "")
        or (said_first[0] if said_first and _leaves_open(title, request) else "")
        or (_why_in_vain(looked, gate) if status.word in TAKEN_BACK else ""),
        sections=_fill_fields(fields), files_read=turn.looked_at[:MOST_FILES],
        files_modified=files[:MOST_FILES], tags=_find_checks(turn),
    )  # fmt: skip


def _find_checks(turn: View) -> tuple[str, ...]:
    """The tests, lints and builds that passed when the turn last ran them."""
    last = {step.main: step for step in turn.steps if step.checks}
    return tuple(f"`{run}`" for run, step in last.items() if step.passed and len(run) <= _CHECK)


def _is_overtaken(left: str, later: Sequence[View]) -> bool:
    """Has one of the next turns done it? Only a push pushes; of a merge or a review nobody knows
    how it stands once there was more work. Of anything else, if it names what is changed then, or
    what the prompt asks for."""
    steps = [step for turn in later for step in turn.steps]
    if not _pattern("passing").search(left):
        about = telling_terms(left)
        works = (_terms_of_work(turn) for turn in later if turn.edited)
        return any(len(about & done) >= _SHARED for done in works)
    if not _pattern("unpushed").search(left):
        return bool(steps)
    pushes = load_pattern("tools", "pushes")
    parts = (part for one in steps if not one.failed for part in split_command(one.ran.command))
    return any(pushes.match(part) for part in parts)


def _terms_of_work(turn: View) -> frozenset[str]:
    subjects = (commit.subject for step in turn.steps for commit in step.commits)
    return telling_terms(
        " ".join((find_request(turn.prompt), *subjects, *map(file_name, turn.edited)))
    )


def has_news(card: Item) -> bool:
    return not card.sections.keys().isdisjoint(("completed", "learned", "notes", "next_steps"))


def add_todo(card: Item, todo: str) -> Item:
    """The last card of a session with what is left of its list of things to do."""
    pending = ["to do: " + line[4:] for line in todo.split("\n") if line[:3] in ("[ ]", "[>]")]
    more = f" (and {len(pending) - _TODO} more)" if len(pending) > _TODO else ""
    pending = pending[:_TODO]
    left = [*card.sections.get("next_steps", "").split("\n"), *pending[:-1]]
    left += [one + more for one in pending[-1:]]
    steps = _join_lines(left, _ROOM["next_steps"])
    return replace(card, sections={**card.sections, "next_steps": steps}) if pending else card


def make_session_card(turns: Sequence[Item]) -> Item:
    """What a session came to, of what its turns did: the title of the most consequential one, what
    all of them tell, and what the last one leaves open."""
    last = turns[-1]
    read = tuple(dict.fromkeys(file for one in turns for file in one.files_read))
    changed = tuple(dict.fromkeys(file for one in turns for file in one.files_modified))
    fields: dict[str, Iterable[str]] = {
        name: [line for one in turns for line in one.sections.get(name, "").split("\n")]
        for name in FIELDS
    }
    fields["next_steps"] = last.sections.get("next_steps", "").split("\n")
    fields["investigated"] = [_looked_at(read)]
    return Item(
        "", "summary", type="session", epoch=last.epoch + 1, title=max(turns, key=_weight).title,
        sections=_fill_fields(fields, _SESSION), files_read=read[:MOST_FILES],
        files_modified=changed[:MOST_FILES],
    )  # fmt: skip


def _weight(turn: Item) -> tuple[int, int, int]:
    """How much of a session a turn is: what came of it, how many files it changed, how late."""
    return _WEIGHTS.get(turn.subtitle.partition(":")[0], 0), len(turn.files_modified), turn.epoch


def _fill_fields(fields: Mapping[str, Iterable[str]], times: float = 1) -> dict[str, str]:
    kept = {name: _join_lines(fields[name], int(times * room)) for name, room in _ROOM.items()}
    return {name: text for name, text in kept.items() if text}


def _join_lines(texts: Iterable[str], room: int) -> str:
    """As many different ones as there is room for, a line each."""
    kept: list[str] = []
    known: list[set[str]] = []
    for text in texts:
        line = cut_clause(bare_text(text), 240 if kept else min(240, room))
        own = title_words(line)
        said = own and any(len(own & other) >= _SAME * len(own) for other in known)
        if line and not said and len(line) <= room:
            room -= len(line) + 1
            kept.append(line)
            known.append(own)
    return "\n".join(kept)


def _leaves_open(title: str, request: str) -> bool:
    """Does a title say no more than that the answer is yes or no, or only the question itself?"""
    return title.endswith(("? Yes", "? No")) or _is_question(title, request)


def _said_first(turn: View, request: str, gate: Gate) -> list[str]:
    """The first sentences of an answer that say something, where a question of some words was
    asked: what it tells where nothing in it stands out."""
    if turn.closing is None or not is_telling(request):
        return []
    if len(turn.closing.body) < _ANSWER and not _pattern("yes or no").match(turn.closing.body):
        return []
    said = [
        one.text
        for one in split_statements(turn.closing.body)
        if one.kind == "paragraph" and not one.aside and one.text[-1:] in ".!。"
        and count_words(one.text) > _FEW_WORDS and "guess" not in one.tells
        and not is_boilerplate(one.text) and not _pattern("of the agent").search(one.text)
        and not gate.echoes(one.text, turn.closing)
    ]  # fmt: skip
    return said[:2]


def _is_learned(text: str) -> bool:
    return bool(find_cues(text) & _LEARNED) and not text.rstrip(" \"')*_").endswith("?")


def _is_question(title: str, request: str) -> bool:
    """An answer of many parts is named by its question; nobody has learned that."""
    return title.endswith("?") or title_words(title) <= title_words(request)


def _investigated(turn: View) -> str:
    searches = [step.item.body.split("\n", 1)[0] for step in turn.steps if step.searches]
    patterns = ", ".join(f"“{cut_clause(one, 40)}”" for one in dict.fromkeys(searches[:3]))
    searched = f"searched for {patterns}" if patterns else ""
    return "; ".join(filter(None, (_looked_at(turn.looked_at), searched)))


def _looked_at(files: Sequence[str]) -> str:
    return f"read {file_names(files, 6)}" if files else ""


def _find_cause(looked: Looked, title: str, facts: Sequence[Fact]) -> str:
    """The first that the last message names. What was guessed before it, or before a check failed
    once more, may have been refuted; and what is said on the way may be about something in the way,
    unless it speaks of what the turn is about, or of what is wrong."""
    turn, request = looked.turn, looked.request
    if _pattern("review").search(heading_title(turn.closing) if turn.closing else ""):
        return ""  # it has many findings
    names = "explained away", "of the agent", "commit refused", "of a check"
    *never, check = (_pattern(name) for name in names)
    failed = max((one.item.epoch for one in turn.steps if one.failing and one.checks), default=0)
    midway = {item.id: item.epoch for item in turn.said if item is not turn.closing}
    wrong = looked.status.word in TAKEN_BACK or names_fault(request)
    about = telling_terms(f"{title} {request}")
    tests = load_pattern("tools", "test file")
    writes_tests = any(tests.search(file) for file in turn.edited)
    if writes_tests:  # that they failed at first is over
        facts = [
            one
            for one in facts
            if one.source not in midway or not _pattern("tests fail").search(one.text)
        ]
    causes = [
        fact
        for fact in facts
        if is_reason(fact.text) and not any(one.search(fact.text) for one in never)
        and midway.get(fact.source, failed) >= failed
        and (fact.source not in midway or (
            not check.search(fact.text) and (wrong or about & telling_terms(fact.text))
        ))
    ]  # fmt: skip
    return next((bare_text(one.text) for one in causes if one.source == causes[-1].source), "")


def _why_in_vain(looked: Looked, gate: Gate) -> str:
    """Why work was taken back, or did not come to its end: what its own last message says of it,
    where it took the work back itself or speaks of what does not work; else what the user said who
    had it taken back, and what the agent said then."""
    turn, status = looked.turn, looked.status
    after = [one for one in looked.later if status.word == "reverted" and _takes_back(one, looked)]
    if not after and (told := _explanation(turn, gate, aloud=status.word == "failed")):
        return told
    if not after:
        return _last_error(looked)
    prompt, undone = after[0].prompt, _explanation(after[0], gate, aloud=True)
    said = split_statements(prompt.body[:_OBJECTION]) if prompt is not None else ()
    telling = (cut_clause(one.text, _LEAD) for one in said if count_words(one.text) > _FEW_WORDS)
    return next(telling, "") or undone


def _last_error(looked: Looked) -> str:
    """What the run by which a turn failed says of it, where that is a sentence."""
    evidence = looked.status.evidence
    failed = [step for step in looked.turn.steps if step.failing and step.errors]
    runs = [step for step in failed if f"`{cut_clause(step.main, _CHECK)}`" in evidence]
    told = (error_title(error.text) for error in runs[-1].errors) if runs else ()
    return next((one for one in told if count_words(one) > 2), "")


def _takes_back(turn: View, looked: Looked) -> bool:
    by = looked.status.evidence.strip("`")
    runs = by and any(by in step.ran.command for step in turn.steps)
    return bool(runs) or not set(looked.turn.edited).isdisjoint(turn.edited)


def _explanation(turn: View, gate: Gate, aloud: bool) -> str:
    """What the closing message says of why something was in vain: the sentence that says that it
    does not work, or names a cause (`aloud`); else the first one that is more than an announcement.
    Nothing that was a guess."""
    said = split_statements(turn.closing.body) if turn.closing is not None else ()
    never = [_pattern(name) for name in ("explained away", "puts back")]
    told = [
        one
        for one in said
        if one.kind != "heading" and one.text[-1:] in ".!。" and count_words(one.text) > _FEW_WORDS
        and "guess" not in one.tells and not is_boilerplate(one.text)
        and not any(pattern.search(one.text) for pattern in never)
        and turn.closing is not None and not gate.echoes(one.text, turn.closing)
    ]  # fmt: skip
    loud = [
        one
        for one in told
        if one.tells & {"cause", "failed"} or _pattern("comes from").search(one.text)
        or ("result" not in one.tells and _pattern("does not work").search(one.text))
    ]  # fmt: skip
    chosen = loud or ([] if aloud else told)
    return bare_text(chosen[0].text) if chosen else ""


def _broken_off(turn: View, wanted: str) -> list[str]:
    """What a turn leaves open: what the user has to decide, with the choices, else the sentence
    before it; else what was wanted, where that says what to do."""
    said = [one.text for one in split_statements(turn.closing.body)] if turn.closing else []
    if said:
        choices = [cut_clause(one, _CHOICE) for one in said if _pattern("a choice").match(one)]
        at = max((at for at, one in enumerate(said) if one[-1:] in "?？"), default=len(said) - 1)
        either = at > 1 and said[at - 1].lower().startswith("or ")  # what it is asked instead of
        before = [cut_clause(one, _LEAD) for one in said[max(at - 1 - either, 0) : at]]
        lead = "; ".join(choices) + "." if len(choices) > 1 else " ".join(before)
        return [f"{lead} {said[at]}".lstrip()]
    if turn.edited and not is_imperative(wanted):  # "Your way is fine" is nothing that is left
        return [f"broken off in {file_names(turn.edited)}"]
    return [wanted]


def _last_words(turn: View) -> str:
    """The last that was said of how things are, where a turn was broken off."""
    said = (one for item in reversed(turn.said) for one in reversed(split_statements(item.body)))
    return next((one.text for one in said if _tells_state(one)), "")


def _tells_state(one: Statement) -> bool:
    whole = one.kind == "paragraph" and one.text[-1:] in ".!。" and not is_boilerplate(one.text)
    never = (_pattern(name) for name in ("of the agent", "explained away"))
    long = count_words(one.text) > _FEW_WORDS
    return whole and long and not any(pattern.search(one.text) for pattern in never)


def _find_sentence(turn: View, name: str) -> str:
    """The first of the closing message that a pattern takes."""
    said = split_statements(turn.closing.body) if turn.closing is not None else ()
    told = (cut_clause(one.text, _LEAD) for one in said if _pattern(name).search(one.text))
    return next(told, "")


def _uncommitted(turn: View) -> str:
    """The files that were changed after its last commit; "" where it has made none."""
    made = [at for at, step in enumerate(turn.steps) if step.commits]
    since = turn.steps[made[-1] :] if made else ()
    return file_names(file for step in since for file in step.edited)


def _plan_title(turn: View) -> str:
    """The heading of the plan that was refused; some clients tell it only where it was written."""
    written = (step.item for step in reversed(turn.steps) if step.item.tool in (*PLANS, "Write"))
    bodies = (replace(item, body=_FENCE.sub("", item.body)) for item in written)
    return next(filter(None, map(heading_title, bodies)), "")


# --- what is stored ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Distilled:
    """An item and what it was made of."""

    item: Item
    sources: Sources


def is_kept_once(item: Item) -> bool:
    """For a project, whichever session has met it last."""
    return item.ref.startswith("project:")


def turn_sources(turn: View) -> Sources:
    """What title, text and sections are made of."""
    return tuple((-1, item.id) for item in (turn.prompt, turn.closing) if item is not None)
