"""What was done: files were changed. Work is named by its commit, its plan, what the reader model
finds, what the agent said at the end, or the request, in this order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from yester.agents.values import digest
from yester.distil.commands import CHECKS, Commit
from yester.distil.cues import boilerplate
from yester.distil.drafts import TITLE, Draft, Gate, Taken, chosen, worth
from yester.distil.outcomes import Outcomes
from yester.distil.phrases import as_title, plain, shortened, without_interjection
from yester.distil.symbols import touched
from yester.distil.telling import (
    MOST_FILES,
    first_title,
    narrative,
    read_title,
    sections,
    subtitle,
    without_title,
)
from yester.distil.titles import (
    about_a_fault,
    asked,
    concepts_of,
    conventional,
    file_names,
    fixed,
    heading_title,
    housekeeping,
    imperative,
    plan_title,
    request_title,
    telling_request,
    type_of,
    words,
)
from yester.distil.trouble import outcome_text
from yester.distil.turns import Step, View
from yester.model import Item, replace
from yester.text.sentences import split_sentences

_FAULT = re.compile(r"\b(?:bug|fix|race condition|regression|root cause)\b", re.I)
_WRITING = re.compile(r"\.(?:md|mdx|txt|rst|adoc)$|(?:^|/)(?:docs?|\.planning)/", re.I)


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit and the steps of the work it holds; its own turn may be a later one."""

    step: Step
    commit: Commit
    edits: tuple[Step, ...]
    turn: View  # in which it was committed


def assigned(turns: Sequence[View], back: int) -> list[list[Committed]]:
    """For each turn the commits of its work. Work is often committed in a turn of its own ("commit
    this"): then it counts where it was done, at most so many turns earlier."""
    found: list[list[Committed]] = [[] for _ in turns]
    open_: list[tuple[int, Step]] = []
    for at, turn in enumerate(turns):
        for step in turn.steps:
            if step.edited:
                open_.append((at, step))
            for commit in step.commits:
                near_by = [(place, edit) for place, edit in open_ if at - place <= back]
                place = near_by[-1][0] if near_by else at
                found[place].append(
                    Committed(step, commit, tuple(edit for _, edit in near_by), turn)
                )
                open_ = []
    return found


def work(turn: View, commits: Sequence[Committed], came_out: Outcomes, gate: Gate) -> list[Draft]:
    request = asked(turn.prompt)
    said = _said(turn, gate)
    later = {id(one.turn): one.turn for one in commits if one.turn is not turn}
    for other in later.values():
        said += gate.take(other.closing) if other.closing is not None else []
    if commits:
        return _committed(turn, commits, request, said, came_out, gate)
    title, source = _work_title(turn, request, said, gate)
    facts = chosen(without_title(said, title, source))
    type_ = _work_type(turn, title, request, said, came_out)
    return [
        Draft(
            "work",
            type_,
            title,
            turn.ended,
            2.5,
            subtitle=subtitle(title, request, turn),
            body=narrative(turn, facts, title, gate),
            facts=tuple(one.fact for one in facts),
            files_read=turn.looked_at[:MOST_FILES],
            files_modified=turn.edited[:MOST_FILES],
            concepts=concepts_of(type_, [t.statement.tells for t in facts], True, False),
            sections=sections(touched(turn.steps), outcome_text(turn, came_out)),
        )
    ]


def _said(turn: View, gate: Gate) -> list[Taken]:
    """What the agent told of its work: all at the end, before that only causes and traps."""
    found: list[Taken] = []
    closing = turn.closing or (turn.said[-1] if turn.said else None)
    failed = _after_failures(turn)
    for item in turn.said:
        if item.id in failed:
            found += gate.explaining(item)
        elif item is closing:
            found += gate.take(item)
        else:
            found += gate.findings(item, 1.8)
    if not found and closing is not None:
        found = gate.report(closing)  # a fix that was recalled and is used here as well
    if turn.prompt is not None and plan_title(turn.prompt.body):
        found = _reasons(turn.prompt, gate) + found
    return found


def _after_failures(turn: View) -> set[int]:
    """The first thing that was said after each check that failed."""
    found: set[int] = set()
    steps = sorted(turn.steps, key=lambda step: step.item.epoch)
    at, failed = 0, False
    for item in turn.said:
        while at < len(steps) and steps[at].item.epoch <= item.epoch:
            failed = steps[at].failing and steps[at].kind in CHECKS
            at += 1
        if failed:
            found.add(item.id)
            failed = False
    return found


def _reasons(plan: Item, gate: Gate) -> list[Taken]:
    """Why a plan was made: it says so at its beginning."""
    context = [
        Taken(statement, plan, 1.5 + worth(statement))
        for statement in gate.statements(plan)
        if statement.heading.lower()
        in (
            "context",
            "problem",
            "goal",
            "background",
            "summary",
            "issue",
            "root cause",
            "motivation",
            "overview",
            "why",
        )
        and statement.kind == "sentence"
        and not boilerplate(statement.text)
        and gate.lets(statement.text, plan)
    ]
    return context[:2]


def _work_title(turn: View, request: str, said: Sequence[Taken], gate: Gate) -> tuple[str, str]:
    """The title and what it was taken from."""
    if turn.prompt is not None and (plan := plan_title(turn.prompt.body)):
        return as_title(plan), "plan"
    if read := read_title(turn, gate):
        return read
    closing = turn.closing
    results = [
        one
        for one in said
        if one.item is closing
        and "result" in one.statement.tells
        and "next" not in one.statement.tells
    ]
    lead = [one for one in results if one.statement.lead and one.statement.specific]
    causes = [one for one in said if "cause" in one.statement.tells and one.statement.specific]
    if found := first_title(lead):
        return found
    if telling_request(request) and imperative(request):
        return request_title(request), "request"
    if closing is not None and (heading := heading_title(closing)):
        return heading, "heading"
    if found := first_title(results):
        return found
    if intent := _intention(turn):
        return intent, "intent"
    if telling_request(request):
        return request_title(request), "request"
    if found := first_title(causes):
        return found
    return as_title(f"Changed {file_names(turn.edited)}"), "files"


_INTENDS = re.compile(
    r"\A(?:(?:now|next|first|then|ok|good|great|perfect)[,.:!]?\s+)*(?:i'll|i will|let me"
    r"|let's|i need to|i'm going to|we need to)\s+(?:also |now |then |just "
    r"|quickly )*(?P<what>.+)",
    re.I,
)


def _intention(turn: View) -> str:
    """What the agent said it would do, right before it changed something."""
    for item in turn.said:
        for sentence in split_sentences(plain(item.body[:2_000].split("\n\n", 1)[0])):
            found = _INTENDS.match(without_interjection(sentence))
            if found and type_of(found["what"]):
                title = as_title(found["what"])
                if len(title) >= 28:
                    return title
    return ""


def _committed(
    turn: View,
    commits: Sequence[Committed],
    request: str,
    said: Sequence[Taken],
    came_out: Outcomes,
    gate: Gate,
) -> list[Draft]:
    """One observation per commit; what the agent told goes to the one it fits best."""
    telling = [one for one in commits if not housekeeping(one.commit.subject)] or list(commits)[-1:]
    shares: dict[int, list[Taken]] = {id(one): [] for one in telling}
    for taken in said:
        told = words(taken.statement.text)
        best = max(telling, key=lambda one: (len(told & _about(one)), -telling.index(one)))
        shares[id(best)].append(taken)
    drafts = []
    main = max(telling, key=lambda one: (len(shares[id(one)]), len(one.edits)))
    for one in telling:
        files = tuple(dict.fromkeys(file for edit in one.edits for file in edit.edited))
        title = shortened(plain(one.commit.subject), TITLE)
        message = _message_facts(one, gate)
        facts = chosen([*message, *without_title(shares[id(one)], title, "")])
        type_ = conventional(one.commit.subject) or _work_type(
            turn, title, request if one is main else "", shares[id(one)], came_out
        )
        outcome = outcome_text(turn, came_out) if one is main else ""
        committed = f"committed as {one.commit.hash}" if one.commit.hash else ""
        drafts.append(
            Draft(
                f"commit:{digest(one.step.item.ref, one.commit.subject)}",
                type_,
                title,
                max(turn.ended, one.step.item.epoch) if one is main else one.step.item.epoch,
                1.0 if housekeeping(one.commit.subject) else 3.0,
                subtitle=subtitle(title, request, turn),
                body=narrative(turn, facts, title, gate) if one is main else "",
                facts=tuple(t.fact for t in facts),
                files_read=turn.looked_at[:MOST_FILES] if one is main else (),
                files_modified=files[:MOST_FILES],
                concepts=concepts_of(type_, [t.statement.tells for t in facts], True, False),
                sections=sections(touched(one.edits), outcome, committed),
            )
        )
    return drafts


def _about(one: Committed) -> set[str]:
    names = (file.rsplit("/", 1)[-1] for edit in one.edits for file in edit.edited)
    return words(f"{one.commit.subject} {one.commit.body} {' '.join(names)}")


def _message_facts(one: Committed, gate: Gate) -> list[Taken]:
    message = replace(one.step.item, body=one.commit.body, id=-one.step.item.id)
    found = []
    for statement in gate.statements(message):
        if not boilerplate(statement.text) and gate.lets(statement.text, one.step.item):
            found.append(Taken(statement, one.step.item, 1.2 + worth(statement)))
    return found


def _work_type(
    turn: View, title: str, request: str, said: Sequence[Taken], came_out: Outcomes
) -> str:
    named = type_of(title)
    if named in ("bugfix", "refactor"):
        return named
    if named in ("", "change") and turn.closing and fixed(plain(turn.closing.body[:200])):
        return "bugfix"
    broken = bool(came_out.ended or came_out.passed)
    if about_a_fault(request) and (broken or named != "feature"):
        return "bugfix"
    if named in ("", "change") and (_FAULT.search(title) or _explained(said)):
        return "bugfix"
    asked_for = type_of(request_title(request))
    if named in ("", "change") and asked_for not in ("", "change"):
        return asked_for
    if not named and _adds(turn, said):
        return "feature"
    return named or "change"


def _explained(said: Sequence[Taken]) -> bool:
    """Does a plan begin with what is wrong, or the agent name a bug?"""
    return any(
        (about_a_fault if t.item.kind == "prompt" else _FAULT.search)(t.statement.text)
        for t in said
        if "cause" in t.statement.tells
    )


def _adds(turn: View, said: Sequence[Taken]) -> bool:
    """Is most of what was told about new things, in code?"""
    if all(_WRITING.search(file) for file in turn.edited):
        return False
    kinds = [type_of(plain(t.statement.text)) for t in said if "result" in t.statement.tells]
    kinds = [kind for kind in kinds if kind]
    return bool(kinds) and kinds.count("feature") * 2 > len(kinds)
