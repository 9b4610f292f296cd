"""What was decided: the user chose, by an answer to a question, or in so many words."""

from __future__ import annotations

import re

from yester.distil.cues import tells
from yester.distil.drafts import TITLE, Draft, Fact, Gate, Taken
from yester.distil.phrases import as_title, cut, plain
from yester.distil.telling import MOST_FILES, SUBTITLE
from yester.distil.titles import asked, concepts_of, plan_title, request_title
from yester.distil.turns import View
from yester.distil.typed import decisions_in
from yester.model import Item

_ANSWERS = re.compile(r"\"(?P<question>[^\"\n]{6,400})\"\s*=\s*\"(?P<answer>[^\"\n]{1,300})\"")
_HEADER = re.compile(r"\"header\": ?\"(?P<text>[^\"]{2,40})\"")
_MOST_TYPED = 3  # decisions of one prompt
_LONGEST_CHOICE = 1_500  # characters; a longer prompt is pasted
# How to go on now is no decision that anybody asks for later.
_WHAT_NOW = re.compile(
    r"\b(?:what would you like to do|ready to|shall (?:i|we)|proceed|continue|next"
    r"|start(?:ing)? (?:with|now)|look (?:good|right|ok)|commit|approve|more questions)\b",
    re.I,
)
_LABEL = re.compile(r"\A(?:decision|decided)\s*[:—–-]\s*", re.I)
_DECIDED = re.compile(
    r"\Adecision\b|\b(?:we|i)(?:'ve| have)? (?:dropped|chose|decided|went with|settled on|picked"
    r"|rejected|kept|switched (?:to|from)|gave up|ruled out)\b"
    r".*\b(?:because|since|so that|instead of|rather than|as it|to avoid)\b",
    re.I,
)
_CHOOSES = re.compile(
    r"\b(?:let'?s (?:not|go with|use|keep|drop|do|stick|skip|leave|make|move|have)"
    r"|we (?:should(?:n't| not)?|want(?: to)?|don't want|do not want|must(?:n't| not)?"
    r"|never|always|will not|won't)"
    r"|(?:i|we)(?:'d| would)? (?:prefer|rather)|i don'?t (?:think|want|like)|instead of"
    r"|rather than|option [a-z0-9]\b|go with|should(?:n't| not) |better to"
    r"|makes (?:more )?sense to"
    r"|no need (?:to|for)|keep \w+)\b",
    re.I,
)
_COMPARES = re.compile(r"\b(?:instead|rather than)\b", re.I)
_DIRECTS = re.compile(
    r"\b(?:let'?s|should|use|name|call|put|make|do|keep|want|prefer|move|go|need|don'?t)\b", re.I
)
_REASON = re.compile(
    r"\b(?:because|since|so that|so we|so it|as it|as we|instead|rather|otherwise|but"
    r"|to avoid|the point is|in this case|only|never|always|not)\b",
    re.I,
)
_IMPERSONAL = re.compile(
    r"\b(?:can you|could you|please|why|what|how|when i|i get|i see|error|failed|look(?:s"
    r"|ing)? (?:at|like)|is there|are there|did you|do you)\b",
    re.I,
)


def decided(turn: View, gate: Gate) -> list[Draft]:
    drafts = []
    answers: list[tuple[Item, str, str, str]] = []
    for step in turn.steps:
        if step.asks and not step.failed:
            answers += _answers(step.item)
    if answers:
        title = cut("; ".join(f"{header}: {answer}" for _, header, answer, _ in answers), TITLE)
        facts = tuple(Fact(text, item.id) for item, _, _, text in answers if gate.lets(text, item))
        if facts and len(title) >= 12:
            drafts.append(
                Draft(
                    "answers",
                    "decision",
                    title,
                    answers[-1][0].epoch,
                    2.2,
                    subtitle=cut(asked(turn.prompt), SUBTITLE),
                    facts=facts[:8],
                    concepts=concepts_of("decision", [], False, False),
                )
            )
    drafts += _stated(turn, gate)
    if turn.prompt is not None and not plan_title(turn.prompt.body):
        typed = _typed(turn, turn.prompt, gate)
        # A first prompt says what is wanted; only what it calls decided is a decision.
        if not typed and turn.number > 1:
            typed = _chosen_in_words(turn, turn.prompt, gate)
        drafts += typed
    return drafts


def _typed(turn: View, prompt: Item, gate: Gate) -> list[Draft]:
    """What the user says to be decided, each by itself."""
    if len(prompt.body) > _LONGEST_CHOICE:
        return []  # pasted: somebody else's words
    drafts: list[Draft] = []
    for one in decisions_in(prompt.body):
        title = request_title(plain(one.text[len(one.label) :]))
        if len(drafts) == _MOST_TYPED or not title or not gate.lets(one.text, prompt):
            continue
        drafts.append(
            Draft(
                f"chosen:{len(drafts) + 1}" if drafts else "chosen",
                "decision",
                title,
                prompt.epoch,
                2.6,
                facts=(Fact(one.text, prompt.id),),
                concepts=concepts_of("decision", [tells(one.text)], False, False),
                files_modified=turn.edited[:MOST_FILES],
            )
        )
    return drafts


def _stated(turn: View, gate: Gate) -> list[Draft]:
    """A decision the agent puts into words, with its reason."""
    closing = turn.closing
    if closing is None:
        return []
    for taken in gate.take(closing):
        text = plain(taken.statement.text)
        if not (_DECIDED.search(text) and taken.statement.tells & {"cause", "why", "decision"}):
            continue
        title = as_title(_LABEL.sub("", text))
        if len(title) >= 24:
            return [
                Draft(
                    "stated", "decision", title, closing.epoch, 2.3,
                    subtitle=cut(asked(turn.prompt), SUBTITLE), facts=(taken.fact,),
                    concepts=concepts_of("decision", [taken.statement.tells], False, False),
                    files_modified=turn.edited[:MOST_FILES],
                )
            ]  # fmt: skip
    return []


def _answers(item: Item) -> list[tuple[Item, str, str, str]]:
    """(item, what it is about, answer, the text that says so)"""
    given, _, output = item.body.partition("\n\n")
    headers = [match["text"] for match in _HEADER.finditer(given)]
    found = []
    for at, match in enumerate(_ANSWERS.finditer(output)):
        question, answer = match["question"], match["answer"]
        if _WHAT_NOW.search(question):
            continue
        header = headers[at] if at < len(headers) else cut(question, 40)
        found.append((item, header, answer, match[0]))
    return found


def _chosen_in_words(turn: View, prompt: Item, gate: Gate) -> list[Draft]:
    if len(prompt.body) > _LONGEST_CHOICE:
        return []  # pasted: somebody else's words
    kept = []
    for statement in gate.statements(prompt)[:12]:
        text = statement.text
        if not 40 <= len(text) <= 320 or text[-1] in "?:" or statement.kind == "heading":
            continue
        if _COMPARES.search(text) and not _DIRECTS.search(text):
            continue
        if not (_CHOOSES.search(text) and _REASON.search(text)) or _IMPERSONAL.search(text):
            continue
        if gate.lets(text, prompt):
            kept.append(Taken(statement, prompt, 1.0))
    if not kept:
        return []
    title = request_title(kept[0].statement.text)
    if len(title) < 24:
        return []
    return [
        Draft(
            "chosen",
            "decision",
            title,
            prompt.epoch,
            2.0,
            facts=tuple(one.fact for one in kept[:3]),
            concepts=concepts_of("decision", [t.statement.tells for t in kept], False, False),
            files_modified=turn.edited[:MOST_FILES],
        )
    ]
