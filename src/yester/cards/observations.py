"""A turn into observations: what was decided, done or found, and what trouble there was.

A fact is somebody's statement: it occurs in the item it points to. What does not, or what only
repeats (the session itself, or what yester had shown to it), is not taken. The line of an error is
a fact, too, so that whoever meets it again finds what ended it by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from functools import partial

from yester.agents.values import digest
from yester.cards import titles
from yester.cards.drafts import (
    MOST_FILES,
    NEAR,
    TAKEN_BACK,
    WARNING,
    Draft,
    Fact,
    Gate,
    Looked,
    choose_facts,
    list_concepts,
)
from yester.cards.outcomes import (
    Outcome,
    describe_outcomes,
    edited_files,
    error_title,
    quote_command,
)
from yester.cards.results import change_title, find_answer, work_title
from yester.cards.status import Committed
from yester.cards.titles import request_title
from yester.cards.tools import Error, file_names, list_names
from yester.cards.turns import Step, View
from yester.clock import format_day
from yester.memories.utterances import find_kind
from yester.model import Item, replace
from yester.tables import load_pattern
from yester.text.statements import (
    TITLE,
    Statement,
    as_title,
    cut_clause,
    drop_interjection,
    is_boilerplate,
    is_chore,
    shorten_title,
    split_statements,
    statement_worth,
    title_words,
    word_overlap,
)

_pattern = partial(load_pattern, "statements")

_SUBTITLE, _BODY, _COMMAND_CHARS = 140, 480, 100
_STEPS_PER_DRAFT = 16  # beyond the first two, one observation for so many uses of tools
_MOST_DRAFTS = 6
_EXPLAINS = 1.2  # what a statement is worth besides, right after something failed
# The sections of a plan that say why it was made.
_EXPLAINS_WHY = frozenset({"cause", "why", "decision"})
_REASONS = frozenset(
    {"background", "context", "goal", "issue", "motivation", "overview", "problem", "root cause",
     "summary", "why"}
)  # fmt: skip


# --- a turn --------------------------------------------------------------------------------------


def observe_turn(looked: Looked, gate: Gate) -> list[Draft]:
    """The observations of a turn, the most telling first; none where it has nothing to tell, and at
    least one where files were changed, something was committed or a check failed. Give the facts of
    those that are stored to `gate.keep` before the next turn."""
    turn = looked.turn
    drafts = list(_decisions(looked, gate))
    for draft in drafts:
        gate.tell(draft.facts)  # what is said as a decision is not said again as a fact of the work
    if looked.named_commits or (looked.commits and not turn.edited):
        drafts += _committed_work(looked, gate)
    elif turn.edited:
        drafts.append(_loose_work(looked, gate))
    else:
        drafts += _answer(looked, gate)
    drafts += _trouble(looked, gate)
    drafts = drafts or list(_checks(looked))
    kept: list[Draft] = []
    for draft in sorted(drafts, key=lambda draft: -draft.worth):
        if draft.title and not any(_same_matter(draft, other) for other in kept):
            kept.append(draft)
    return kept[: min(2 + len(turn.steps) // _STEPS_PER_DRAFT, _MOST_DRAFTS)]


def _same_matter(one: Draft, other: Draft) -> bool:
    """The same title, and not two pieces of work about different files."""
    changed, also = set(one.files_modified), set(other.files_modified)
    alike = word_overlap(title_words(one.title), title_words(other.title)) >= NEAR
    return alike and not (changed and also and changed != also)


# --- decided -------------------------------------------------------------------------------------

_MOST_TYPED = 3  # decisions of one prompt
_LONGEST_CHOICE = 1_500  # characters; a longer prompt is pasted


def _decisions(looked: Looked, gate: Gate) -> Iterator[Draft]:
    """What the user chose, by an answer to a question or in so many words, and what the agent puts
    into words with its reason."""
    turn, prompt, closing = looked.turn, looked.turn.prompt, looked.turn.closing
    asks = [step.item for step in turn.steps if step.asks and not step.failed]
    answers = [one for item in asks for one in _find_answers(item) if gate.is_new(one[1].text)]
    title = _join_answers([answer for answer, _ in answers])
    if len(title) >= 12:
        facts = [fact for _, fact in answers[:8]]
        yield _decision(looked, "answers", title, asks[-1].epoch, 2.2, facts)
    for fact in gate.take(closing) if closing is not None else ():
        stated = load_pattern("utterances", "stated").search(fact.text)
        title = as_title(_pattern("decision label").sub("", fact.text))
        if closing and stated and fact.tells & {"cause", "why", "decision"} and len(title) >= 24:
            yield _decision(looked, "stated", title, closing.epoch, 2.3, [fact])
            break
    # A longer prompt, or a plan, is pasted: somebody else's words.
    if prompt is None or len(prompt.body) > _LONGEST_CHOICE or titles.plan_title(prompt.body):
        return
    typed = [one for one in find_kind(prompt.body, "decision") if gate.lets(one.text, prompt)]
    for number, one in enumerate(typed[:_MOST_TYPED]):
        rest = one.text[len(one.label) :]
        slot = f"chosen:{number + 1}" if number else "chosen"
        facts = [Fact(Statement(one.text), prompt.id)]
        title = request_title(rest) or as_title(rest)
        # Whole, with its reason, as its title begins.
        at = max(rest.casefold().find(title.rstrip("….").casefold()), 0)
        draft = _decision(looked, slot, title, prompt.epoch, 2.6, facts)
        yield replace(draft, subtitle="", body=title[:1] + rest[at + 1 :])


def _decision(
    looked: Looked, slot: str, title: str, epoch: int, worth: float, facts: Sequence[Fact]
) -> Draft:
    return Draft(
        slot, "decision", title, epoch, worth, cut_clause(looked.request, _SUBTITLE),
        facts=tuple(facts), concepts=list_concepts("decision", facts, False),
        files_modified=looked.turn.edited[:MOST_FILES],
    )  # fmt: skip


def _join_answers(answers: Sequence[str]) -> str:
    """As many as there is room for: a label without its answer says nothing."""
    title = cut_clause(answers[0], TITLE) if answers else ""
    for answer in answers[1:]:
        if len(title) + len(answer) + 2 <= TITLE:
            title += f"; {answer}"
    return title


def _find_answers(item: Item) -> Iterator[tuple[str, Fact]]:
    """What it is about with the answer, and the text that says so."""
    given, _, output = item.body.partition("\n\n")
    headers = [match["text"] for match in _pattern("question header").finditer(given)]
    for at, match in enumerate(_pattern("answered question").finditer(output)):
        # How to go on now is no decision that anybody asks for later, and "you decide" is none.
        passing = load_pattern("utterances", "what now").search(match["question"])
        if not passing and not _pattern("undecided").match(match["answer"]):
            header = headers[at] if at < len(headers) else cut_clause(match["question"], 40)
            answer = match["answer"].removesuffix(" (Recommended)")
            yield f"{header}: {answer}", Fact(Statement(match[0]), item.id)


# --- done ----------------------------------------------------------------------------------------


def _loose_work(looked: Looked, gate: Gate) -> Draft:
    """Work that was not committed, as far as is known. Work that failed or was taken back is called
    what was asked for: what the agent claims of it did not come true."""
    said = _told_of_work(looked, gate)
    title, source = work_title(looked, gate)
    # Without the statement that the title says in full already.
    rest = [one for one in said if one.text != source or len(one.text) > len(title) + 24]
    draft = _work(looked, "work", title, choose_facts(rest), gate)
    if source not in ("", "plan") and looked.status.word in TAKEN_BACK:
        return replace(draft, title=change_title(looked))
    return draft


def _committed_work(looked: Looked, gate: Gate) -> Iterator[Draft]:
    """One observation per commit; what the agent told goes to the one it fits best. The one with
    the most to tell is what the turn is about, and gives it its name; rather none of tests or
    pages."""
    commits = looked.named_commits or looked.commits
    telling = [one for one in commits if not titles.is_housekeeping(one.commit.subject)]
    telling = telling or list(commits)[-1:]
    about = [_commit_words(one) for one in telling]
    shares: list[list[Fact]] = [[] for _ in telling]
    for fact in _told_of_work(looked, gate):
        said = title_words(fact.text)
        best = max(range(len(telling)), key=lambda at: len(said & about[at]))
        shares[best].append(fact)
    main = max(
        range(len(telling)),
        key=lambda at: (
            not is_chore(telling[at].commit.subject), len(shares[at]), len(telling[at].edits)
        ),
    )  # fmt: skip
    for at, one in enumerate(telling):
        facts = choose_facts([*_message_facts(one, gate), *shares[at]])
        slot = f"commit:{digest(one.step.item.ref, one.commit.subject)}"
        yield _work(looked, slot, as_title(one.commit.subject), facts, gate, one, at == main)


def _work(
    looked: Looked,
    slot: str,
    title: str,
    facts: tuple[Fact, ...],
    gate: Gate,
    commit: Committed | None = None,
    main: bool = True,
) -> Draft:
    """A piece of work; `main` is what the turn is about, of several."""
    turn, word = looked.turn, looked.status.word
    type_ = _work_type(looked, title, looked.request if main else "", commit, facts)
    outcome = [describe_outcomes(turn, looked.outcomes)] if main else []
    steps, files, epoch, worth = turn.steps, turn.edited, turn.ended, 2.5
    if commit is not None:
        steps, files = commit.edits, edited_files(commit.edits)
        own = commit.step.item.epoch
        epoch = max(epoch, own) if main else own
        worth = 1.0 if titles.is_housekeeping(commit.commit.subject) else 3.0 + main / 2
        outcome += [f"committed as {commit.commit.hash}"] if commit.commit.hash else []
    return Draft(
        slot, type_, title, epoch, worth, _subtitle(title, looked),
        body=_narrative(turn, facts, title, gate) if main else "",
        facts=facts, concepts=list_concepts(type_, facts, True),
        files_read=turn.looked_at[:MOST_FILES] if main else (), files_modified=files[:MOST_FILES],
        tags=(word,) if word in TAKEN_BACK else (),
        sections={
            "changed": list_names(step.item.body for step in steps if step.edited),
            "outcome": "\n".join(filter(None, outcome)),
        },
    )  # fmt: skip


def _told_of_work(looked: Looked, gate: Gate) -> list[Fact]:
    """What the agent told of its work: all at the end, and where it was committed later; before
    that only causes and traps, and what explains a failure. A plan says itself why it was made."""
    turn = looked.turn
    found: list[Fact] = []
    closing = turn.closing or (turn.said[-1] if turn.said else None)
    failed = _after_failures(turn)
    for item in turn.said:
        if item.id in failed:
            found += gate.take(item, 1.5, bonus=_EXPLAINS)
        elif item is closing:
            found += gate.take(item)
        else:
            found += gate.findings(item, 1.8)
    if not found and closing is not None:
        found = gate.take(closing, echoes=True)  # a fix that was recalled and is used here as well
    if turn.prompt is not None and titles.plan_title(turn.prompt.body):
        reasons = [
            replace(one, worth=one.worth + 1.5)
            for one in gate.take(turn.prompt, least=-2.0)
            if one.statement.heading.lower() in _REASONS and one.statement.kind == "paragraph"
            and one.tells & _EXPLAINS_WHY  # how it was is over when it is carried out
        ]  # fmt: skip
        found = reasons[:2] + found
    later = {one.turn.key: one.turn for one in looked.commits if one.turn is not turn}
    for other in later.values():
        found += gate.take(other.closing) if other.closing is not None else []
    return found


def _after_failures(turn: View) -> set[int]:
    """The first thing that was said after each check that failed."""
    found: set[int] = set()
    steps = sorted(turn.steps, key=lambda step: step.item.epoch)
    at, failed = 0, False
    for item in turn.said:
        while at < len(steps) and steps[at].item.epoch <= item.epoch:
            failed = steps[at].failing and steps[at].checks
            at += 1
        if failed:
            found.add(item.id)
            failed = False
    return found


def _commit_words(one: Committed) -> set[str]:
    names = file_names(edited_files(one.edits), most=20)
    return title_words(f"{one.commit.subject} {one.commit.body} {names}")


def _message_facts(one: Committed, gate: Gate) -> list[Fact]:
    item = one.step.item
    return [
        Fact(statement, item.id, 1.2 + statement_worth(statement))
        for statement in split_statements(one.commit.body)
        if not is_boilerplate(statement.text) and gate.lets(statement.text, item)
    ]


def _work_type(
    looked: Looked, title: str, request: str, commit: Committed | None, facts: Sequence[Fact]
) -> str:
    """As the commit or the title says; else as was asked for, or as the first of the facts."""
    if commit is not None and (said := titles.commit_type(commit.commit.subject)):
        return said
    named, closing = titles.find_type(title), looked.turn.closing
    if named in ("bugfix", "refactor"):
        return named
    fixes = any(map(titles.says_fixed, (title, closing.body[:200] if closing is not None else "")))
    mended = bool(looked.outcomes.ended or looked.outcomes.passed)
    if named != "feature" and (fixes or titles.names_fault(request)):
        return "bugfix"
    if mended and titles.names_fault(request):
        return "bugfix"
    wanted = titles.find_type(request_title(request)) if named in ("", "change") else ""
    told = next(filter(None, (titles.find_type(one.text) for one in facts)), "change")
    return wanted or named or told


def _subtitle(title: str, looked: Looked) -> str:
    """What was asked for, where the title does not say it."""
    request, turn = looked.request, looked.turn
    said = word_overlap(title_words(title), title_words(request)) > NEAR
    if said or not request_title(request):
        return f"in {file_names(turn.edited)}" if turn.edited else ""
    return cut_clause(request, _SUBTITLE)


def _narrative(turn: View, facts: Sequence[Fact], title: str, gate: Gate) -> str:
    """What the agent said first at the end, as far as title and facts do not say it."""
    closing = turn.closing
    if closing is None:
        return ""
    used = {one.text for one in facts}
    kept: list[str] = []
    room = _BODY
    for one in split_statements(closing.body):
        bare = drop_interjection(one.text)
        if not one.lead or len(kept) == 3:
            break
        says = one.text not in used and not one.text.endswith(":") and "next" not in one.tells
        fits = len(bare) <= room and not bare.startswith(title.rstrip(".…"))
        if says and fits and not is_boilerplate(one.text) and gate.lets(one.text, closing):
            room -= len(bare)
            kept.append(bare)
    return " ".join(kept)


# --- found ---------------------------------------------------------------------------------------


def _answer(looked: Looked, gate: Gate) -> Iterator[Draft]:
    """What an answer says that was not known; small talk and reports of progress say nothing."""
    turn = looked.turn
    title, taken = find_answer(looked, gate)
    facts = choose_facts(taken)
    causes = any("cause" in one.tells for one in facts)
    used_tools = any(not step.why_not for step in turn.steps)
    least = (3.0 if causes else 5.0) if used_tools else 7.0
    if title and sum(one.worth for one in facts) >= least:
        # What is fixed here was fixed by a command: no file was edited.
        type_ = "bugfix" if titles.says_fixed(title) else "discovery"
        yield Draft(
            "found", type_, title, turn.ended, 1.8 if causes else 1.5, _subtitle(title, looked),
            body=_narrative(turn, facts, title, gate), facts=facts,
            concepts=list_concepts(type_, facts, False), files_read=turn.looked_at[:MOST_FILES],
        )  # fmt: skip


# --- trouble -------------------------------------------------------------------------------------
# The error's own line is the fact, so that whoever meets it again finds this by its text.


def _trouble(looked: Looked, gate: Gate) -> Iterator[Draft]:
    """Errors that took several tries, that stayed, and commands that do not work here."""
    turn, found = looked.turn, looked.outcomes
    hard = [one for one in found.ended if one.attempts > 1 and one.failing.kind != "lint"]
    for one in hard[:2]:
        title, body = error_title(one.error.text), f"It ended after {one.changes}."
        draft = _error(turn, "error", title, body, one, gate)
        files = edited_files(one.edits) or draft.files_modified
        yield replace(
            draft, type="bugfix", worth=2.1 if one.attempts > 2 else 1.6, files_modified=files,
            concepts=("problem-solution", "gotcha"), tags=(WARNING,) if one.tries else (),
        )  # fmt: skip
    for one in found.stuck[:1]:
        title = shorten_title(f"Still failing: {error_title((one.shown or one.error).text)}")
        body = "It was still there when the session ended or went on to something else."
        yield _error(turn, "stuck", title, body, one, gate)
    yield from map(_substitute, found.instead[:2])


def _error(turn: View, slot: str, title: str, body: str, one: Outcome, gate: Gate) -> Draft:
    return Draft(
        f"{slot}:{digest(one.error.fingerprint)}", "discovery", title, one.last.item.epoch, 1.7,
        f"{quote_command(one.failing)} failed {one.attempts} times", body,
        facts=_error_facts(turn, one, gate), concepts=("gotcha",), tags=(WARNING,),
        files_modified=edited_files(one.tries), sections={"tried": one.tried},
    )  # fmt: skip


def _error_facts(turn: View, one: Outcome, gate: Gate) -> tuple[Fact, ...]:
    """The error's own line, and what the agent said of it while it lasted."""
    since, until = one.failing.item.epoch, one.last.item.epoch
    during = [item for item in turn.said if since <= item.epoch <= until]
    said = [fact for item in during for fact in gate.findings(item, 1.6)]
    first = _error_fact(one.shown, one.last) if one.shown else _error_fact(one.error, one.failing)
    return (first, *choose_facts(said, most=3, room=600))


def _error_fact(error: Error, step: Step) -> Fact:
    return Fact(Statement(error.text), step.item.id)


def _substitute(one: Outcome) -> Draft:
    failed, worked = one.failing.typed, one.last.typed
    status = one.failing.ran.status
    return Draft(
        f"/command:{digest(one.error.fingerprint, one.failing.main)}", "discovery",
        shorten_title(f"{_first_words(one.failing)} fails: {error_title(one.error.text)}"),
        one.last.item.epoch, 1.4, subtitle=f"works instead: {_replacement(failed, worked)}",
        body=f"`{cut_clause(failed, 200)}` ended with status {status}. "
        f"`{cut_clause(worked, 200)}` did it.",
        facts=(_error_fact(one.error, one.failing),), concepts=("gotcha",), tags=(WARNING,),
        sections={"last met": format_day(one.failing.item.epoch, UTC)},
    )  # fmt: skip


def _checks(looked: Looked) -> Iterator[Draft]:
    """How a check came out, where nothing else tells of it."""
    turn, passed, ended = looked.turn, looked.outcomes.passed, looked.outcomes.ended
    failing = [step for step in turn.steps if step.failing and step.checks]
    type_, concept = "bugfix", "problem-solution"
    facts = [_error_fact(one.error, one.failing) for one in ended]
    if passed:
        title = f"{quote_command(passed[-1][1])} passes again"
    elif ended:
        title = error_title(ended[-1].error.text)
    elif failing:
        type_, concept = "discovery", "gotcha"
        facts = [_error_fact(error, failing[-1]) for error in failing[-1].errors]
        why = f": {error_title(facts[0].text)}" if facts else ""
        title = f"{quote_command(failing[-1])} fails{why}"
    else:
        return
    yield Draft(
        "checked", type_, shorten_title(title), turn.ended, 1.0, facts=tuple(facts[:3]),
        concepts=(concept,), files_read=turn.looked_at[:MOST_FILES],
        sections={"outcome": describe_outcomes(turn, looked.outcomes)},
    )  # fmt: skip


def _replacement(failed: str, worked: str) -> str:
    """What worked, without the files of this one time, unless only they tell it from what failed:
    what has a slash may also be a branch."""
    words = worked.split(" ")
    files = (at for at, word in enumerate(words) if at > 1 and "/" in word and word[0] not in "-<$")
    at = next(files, len(words))
    without = " ".join(words[:at])
    if at == len(words) or failed.startswith(without):
        return cut_clause(worked, _COMMAND_CHARS)
    return f"{cut_clause(without, _COMMAND_CHARS)} …"


def _first_words(step: Step) -> str:
    """The beginning of what was run, without what was run before it."""
    parts = re.split(r"&&|\|\||;", step.typed)
    own = next((part for part in parts if step.main in part), parts[0])
    return cut_clause(own.strip(), 32)
