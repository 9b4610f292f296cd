"""A turn into observations: what was decided, done or found, and what trouble there was.

A fact is somebody's statement: it occurs in the item it points to. What does not, or what only
repeats (the session itself, or what yester had shown to it), is not taken. The line of an error is
a fact, too, so that whoever meets it again finds what ended it by its text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from yester.agents.values import digest
from yester.cards.drafts import (
    MOST_FILES,
    NEAR,
    TAKEN_BACK,
    Draft,
    Fact,
    Gate,
    Looked,
    Taken,
    choose_facts,
    filled_sections,
    statement_worth,
)
from yester.cards.outcomes import edited_files
from yester.cards.statements import (
    TITLE,
    as_title,
    cut_clause,
    drop_fixed,
    drop_interjection,
    find_cues,
    is_boilerplate,
    is_fragment,
    is_reason,
    split_statements,
)
from yester.cards.status import Committed
from yester.cards.titles import (
    commit_title,
    commit_type,
    find_type,
    heading_title,
    is_housekeeping,
    list_concepts,
    names_fault,
    plan_title,
    request_title,
    says_fixed,
    title_words,
    word_overlap,
)
from yester.cards.tools import CHECKS, file_names, list_names
from yester.cards.trouble import describe_outcome, observe_checks, observe_trouble
from yester.cards.turns import View
from yester.memories.utterances import find_kind
from yester.model import Item, replace
from yester.tables import load_pattern

_SUBTITLE, _BODY = 140, 480  # characters
_STEPS_PER_DRAFT = 16  # beyond the first two, one observation for so many uses of tools
_MOST_DRAFTS = 6
_SHORTEST = 20  # characters of a title that was said
_EXPLAINS = 1.2  # what a statement is worth besides, right after something failed
# The sections of a plan that say why it was made.
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
    drafts = _decisions(looked, gate)
    for draft in drafts:
        gate.tell(draft.facts)  # what is said as a decision is not said again as a fact of the work
    if looked.commits or turn.edited:
        work = _committed_work(looked, gate) if looked.commits else [_loose_work(looked, gate)]
        drafts += _mark_attempts(looked, work)
    else:
        drafts += _answer(looked, gate)
    drafts += observe_trouble(looked, gate)
    drafts = drafts or observe_checks(looked)
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


def _mark_attempts(looked: Looked, work: Sequence[Draft]) -> list[Draft]:
    """Work that failed or was taken back says so, and is called what was asked for: what the agent
    claims of it did not come true. A commit keeps its name."""
    word, request = looked.status.word, looked.request
    if word not in TAKEN_BACK:
        return list(work)
    wanted = request_title(request) or f"Changed {file_names(looked.turn.edited)}"
    marked = []
    for draft in work:
        own = title_words(draft.title)
        claimed = draft.slot == "work" and len(own & title_words(request)) < 0.8 * len(own)
        title = wanted if claimed else draft.title
        marked.append(replace(draft, title=title, tags=(*draft.tags, word)))
    return marked


# --- decided -------------------------------------------------------------------------------------

_ANSWERS = re.compile(r"\"(?P<question>[^\"\n]{6,400})\"\s*=\s*\"(?P<answer>[^\"\n]{1,300})\"")
_HEADER = re.compile(r"\"header\": ?\"(?P<text>[^\"]{2,40})\"")
_UNDECIDED = re.compile(r"(?:you (?:decide|choose)|hm+|not sure|no idea|whatever|up to you)", re.I)
_MOST_TYPED = 3  # decisions of one prompt
_LONGEST_CHOICE = 1_500  # characters; a longer prompt is pasted
_LABEL = re.compile(r"\A(?:decision|decided)\s*[:—–-]\s*", re.I)


def _decisions(looked: Looked, gate: Gate) -> list[Draft]:
    """What the user chose, by an answer to a question or in so many words, and what the agent puts
    into words with its reason."""
    turn, prompt = looked.turn, looked.turn.prompt
    drafts = []
    asks = [step.item for step in turn.steps if step.asks and not step.failed]
    answers = [one for item in asks for one in _find_answers(item) if gate.is_new(one[2].text)]
    title = cut_clause("; ".join(f"{header}: {answer}" for header, answer, _ in answers), TITLE)
    if len(title) >= 12:
        facts = tuple(fact for _, _, fact in answers)[:8]
        drafts.append(_decision("answers", title, asks[-1].epoch, 2.2, facts, looked.request))
    closing = turn.closing
    for taken in gate.take(closing) if closing is not None else ():
        text = taken.statement.text
        stated = load_pattern("utterances", "stated").search(text)
        title = as_title(_LABEL.sub("", text))
        if stated and taken.statement.tells & {"cause", "why", "decision"} and len(title) >= 24:
            drafts.append(
                _decision("stated", title, taken.item.epoch, 2.3, (taken.fact,), looked.request)
            )
            break
    # A longer prompt, or a plan, is pasted: somebody else's words.
    own = prompt is not None and len(prompt.body) <= _LONGEST_CHOICE
    if prompt is not None and own and not plan_title(prompt.body):
        typed = [one for one in find_kind(prompt.body, "decision") if gate.lets(one.text, prompt)]
        for number, one in enumerate(typed[:_MOST_TYPED]):
            rest = one.text[len(one.label) :]
            title = request_title(rest) or as_title(rest)
            slot = f"chosen:{number + 1}" if number else "chosen"
            facts = (Fact(one.text, prompt.id),)
            drafts.append(_decision(slot, title, prompt.epoch, 2.6, facts))
    return [replace(draft, files_modified=turn.edited[:MOST_FILES]) for draft in drafts]


def _decision(
    slot: str, title: str, epoch: int, worth: float, facts: tuple[Fact, ...], request: str = ""
) -> Draft:
    concepts = list_concepts("decision", [find_cues(fact.text) for fact in facts], False)
    about = cut_clause(request, _SUBTITLE)
    return Draft(slot, "decision", title, epoch, worth, about, facts=facts, concepts=concepts)


def _find_answers(item: Item) -> Iterator[tuple[str, str, Fact]]:
    """What it is about, the answer, and the text that says so."""
    given, _, output = item.body.partition("\n\n")
    headers = [match["text"] for match in _HEADER.finditer(given)]
    for at, match in enumerate(_ANSWERS.finditer(output)):
        # How to go on now is no decision that anybody asks for later, and "you decide" is none.
        passing = load_pattern("utterances", "what now").search(match["question"])
        if not passing and not _UNDECIDED.match(match["answer"]):
            header = headers[at] if at < len(headers) else cut_clause(match["question"], 40)
            yield header, match["answer"], Fact(match[0], item.id)


# --- done ----------------------------------------------------------------------------------------


def _loose_work(looked: Looked, gate: Gate) -> Draft:
    """Work that was not committed, as far as is known."""
    said = _told_of_work(looked, gate)
    title, source = _work_title(looked, said, gate)
    return _work(looked, "work", title, choose_facts(_without_title(said, title, source)), gate)


def _committed_work(looked: Looked, gate: Gate) -> list[Draft]:
    """One observation per commit; what the agent told goes to the one it fits best."""
    commits = looked.commits
    telling = [one for one in commits if not is_housekeeping(one.commit.subject)]
    telling = telling or list(commits)[-1:]
    shares: list[list[Taken]] = [[] for _ in telling]
    about = [_commit_words(one) for one in telling]
    for taken in _told_of_work(looked, gate):
        said = title_words(taken.statement.text)
        best = max(range(len(telling)), key=lambda at: (len(said & about[at]), -at))
        shares[best].append(taken)
    main = max(range(len(telling)), key=lambda at: (len(shares[at]), len(telling[at].edits)))
    drafts = []
    for at, one in enumerate(telling):
        title = commit_title(one.commit.subject)
        facts = choose_facts([*_message_facts(one, gate), *_without_title(shares[at], title, "")])
        slot = f"commit:{digest(one.step.item.ref, one.commit.subject)}"
        draft = _work(looked, slot, title, facts, gate, one, main=at == main)
        drafts.append(draft)
    return drafts


def _work(
    looked: Looked,
    slot: str,
    title: str,
    facts: Sequence[Taken],
    gate: Gate,
    commit: Committed | None = None,
    main: bool = True,
) -> Draft:
    """A piece of work; `main` is what the turn is about, of several."""
    turn, request = looked.turn, looked.request
    type_ = _work_type(looked, title, request if main else "", commit, facts)
    committed = f"committed as {commit.commit.hash}" if commit and commit.commit.hash else ""
    outcome = "\n".join(filter(None, (describe_outcome(looked) if main else "", committed)))
    steps = commit.edits if commit else turn.steps
    changed = list_names(step.item.body for step in steps if step.edited)
    epoch = commit.step.item.epoch if commit else turn.ended
    return Draft(
        slot, type_, title, max(turn.ended, epoch) if main else epoch,
        1.0 if commit and is_housekeeping(commit.commit.subject) else 3.0 if commit else 2.5,
        subtitle=_subtitle(title, looked),
        body=_narrative(turn, facts, title, gate) if main else "",
        facts=tuple(one.fact for one in facts),
        concepts=list_concepts(type_, [one.statement.tells for one in facts], True),
        files_read=turn.looked_at[:MOST_FILES] if main else (),
        files_modified=(edited_files(steps) if commit else turn.edited)[:MOST_FILES],
        sections=filled_sections({"changed": changed, "outcome": outcome}),
    )  # fmt: skip


def _told_of_work(looked: Looked, gate: Gate) -> list[Taken]:
    """What the agent told of its work: all at the end, and where it was committed later; before
    that only causes and traps, and what explains a failure. A plan says itself why it was made."""
    turn = looked.turn
    found: list[Taken] = []
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
    if turn.prompt is not None and plan_title(turn.prompt.body):
        reasons = [
            replace(one, worth=one.worth + 1.5)
            for one in gate.take(turn.prompt, least=-2.0)
            if one.statement.heading.lower() in _REASONS and one.statement.kind == "paragraph"
        ]
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
            failed = steps[at].failing and steps[at].kind in CHECKS
            at += 1
        if failed:
            found.add(item.id)
            failed = False
    return found


def _work_title(looked: Looked, said: Sequence[Taken], gate: Gate) -> tuple[str, str]:
    """The title and what it was taken from."""
    turn = looked.turn
    if turn.prompt is not None and (plan := plan_title(turn.prompt.body)):
        return as_title(plan), "plan"
    if read := _read_title(turn, gate):
        return read
    closing = turn.closing
    results = [
        one
        for one in said
        if one.item is closing and "result" in (told := one.statement.tells) and "next" not in told
    ]
    lead = [one for one in results if one.statement.lead and one.statement.specific]
    if found := _first_title(lead):
        return found
    if closing is not None and (heading := heading_title(closing)):
        return heading, "heading"
    if found := _first_title(results):
        return found
    wanted = request_title(looked.request)
    if not wanted or is_fragment(wanted):
        wanted = f"Changed {file_names(turn.edited)}"
    return wanted, ""


def _read_title(turn: View, gate: Gate) -> tuple[str, str] | None:
    """What the reader model calls the turn, and the statement that holds it. None where it found
    nothing, or where the agent only says again what the session was shown before."""
    if not turn.read_title or turn.closing is None:
        return None
    low = turn.read_title.lower()
    holds = (one.text for one in gate.statements(turn.closing) if low in one.text.lower())
    source = next(holds, "")
    if gate.echoes(source or turn.read_title, turn.closing):
        return None
    return turn.read_title, source


def _first_title(found: Sequence[Taken]) -> tuple[str, str] | None:
    """The first statement that can stand alone: not one that leans on something said before or is
    about the speaker."""
    leans = load_pattern("statements", "leans")
    for one in found:
        title = as_title(one.statement.text)
        if len(title) >= 24 and not leans.match(drop_fixed(title)):
            return title, one.statement.text
    return None


def _without_title(found: Sequence[Taken], title: str, source: str) -> list[Taken]:
    """Without the statement the title says in full already."""
    return [
        one
        for one in found
        if one.statement.text != source or len(one.statement.text) > len(title) + 24
    ]


def _commit_words(one: Committed) -> set[str]:
    names = file_names(edited_files(one.edits), most=20)
    return title_words(f"{one.commit.subject} {one.commit.body} {names}")


def _message_facts(one: Committed, gate: Gate) -> list[Taken]:
    item = one.step.item
    return [
        Taken(statement, item, 1.2 + statement_worth(statement))
        for statement in split_statements(one.commit.body)
        if not is_boilerplate(statement.text) and gate.lets(statement.text, item)
    ]


def _work_type(
    looked: Looked, title: str, request: str, commit: Committed | None, facts: Sequence[Taken]
) -> str:
    """As the commit or the title says; else as was asked for, or as most of the facts say."""
    if commit is not None and (said := commit_type(commit.commit.subject)):
        return said
    named, closing = find_type(title), looked.turn.closing
    if named in ("bugfix", "refactor"):
        return named
    fixes = says_fixed(title) or (closing is not None and says_fixed(closing.body[:200]))
    mended = bool(looked.outcomes.ended or looked.outcomes.passed)
    if fixes and named != "feature":
        return "bugfix"
    if names_fault(request) and (mended or named != "feature"):
        return "bugfix"
    wanted = find_type(request_title(request)) if named in ("", "change") else ""
    told = Counter(filter(None, (find_type(one.statement.text) for one in facts)))
    return wanted or named or max(told, key=lambda type_: told[type_], default="change")


def _subtitle(title: str, looked: Looked) -> str:
    """What was asked for, where the title does not say it."""
    request, turn = looked.request, looked.turn
    said = word_overlap(title_words(title), title_words(request)) > NEAR
    if said or not request_title(request):
        return f"in {file_names(turn.edited)}" if turn.edited else ""
    return cut_clause(request, _SUBTITLE)


def _narrative(turn: View, facts: Sequence[Taken], title: str, gate: Gate) -> str:
    """What the agent said first at the end, as far as title and facts do not say it."""
    closing = turn.closing
    if closing is None:
        return ""
    used = {one.statement.text for one in facts}
    kept: list[str] = []
    room = _BODY
    for one in gate.statements(closing):
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


def _answer(looked: Looked, gate: Gate) -> list[Draft]:
    """What an answer says that was not known; small talk and reports of progress say nothing."""
    turn, closing = looked.turn, looked.turn.closing
    if closing is None:
        return []
    taken = gate.take(closing)
    facts = choose_facts(taken)
    value = sum(one.worth for one in facts)
    causes = any("cause" in one.statement.tells for one in facts)
    used_tools = any(not step.why_not for step in turn.steps)
    if not facts or value < ((3.0 if causes else 5.0) if used_tools else 7.0):
        return []
    title = find_answer(looked, gate)
    if not title:
        return []
    type_ = "bugfix" if says_fixed(title) else "discovery"  # by a command, say: no file was edited
    return [
        Draft(
            "found", type_, title, turn.ended, 1.8 if causes else 1.5,
            subtitle=_subtitle(title, looked), body=_narrative(turn, facts, title, gate),
            facts=tuple(one.fact for one in facts), files_read=turn.looked_at[:MOST_FILES],
            concepts=list_concepts(type_, [one.statement.tells for one in facts], False),
        )
    ]  # fmt: skip


def find_answer(looked: Looked, gate: Gate) -> str:
    """The answer in a sentence; else the question, which an answer of many parts has in common. ""
    where nothing is told that was not known."""
    turn = looked.turn
    taken = gate.take(turn.closing) if turn.closing is not None else []
    title = _answer_title(looked, taken, gate) if taken else ""
    return title if len(title) >= _SHORTEST else ""


def find_reason(looked: Looked, gate: Gate) -> str:
    """The first cause that an answer names."""
    taken = gate.take(looked.turn.closing) if looked.turn.closing is not None else []
    return next((one.statement.text for one in taken if is_reason(one.statement.text)), "")


def _answer_title(looked: Looked, taken: Sequence[Taken], gate: Gate) -> str:
    turn = looked.turn
    lead = [one for one in taken if one.statement.lead and one.statement.specific]
    lead.sort(key=lambda one: "cause" not in one.statement.tells)
    if found := _first_title(lead):
        return found[0]
    if (read := _read_title(turn, gate)) and "guess" not in find_cues(read[1] or read[0]):
        return read[0]
    heading = heading_title(turn.closing) if turn.closing is not None else ""
    if title := heading or request_title(looked.request):
        return title
    found = _first_title(sorted(taken, key=lambda one: -one.worth))
    return found[0] if found else ""
