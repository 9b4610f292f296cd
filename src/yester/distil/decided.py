"""What was decided: the user chose, by an answer to a question, or in so many words."""

from __future__ import annotations

import re

from yester.distil.cues import tells
from yester.distil.drafts import TITLE, Draft, Fact, Gate
from yester.distil.phrases import as_title, cut, plain
from yester.distil.telling import MOST_FILES, SUBTITLE
from yester.distil.titles import asked, concepts_of, plan_title, request_title
from yester.distil.turns import View
from yester.memories.typed import decisions_in
from yester.model import Item
from yester.tables import load_pattern

_ANSWERS = re.compile(r"\"(?P<question>[^\"\n]{6,400})\"\s*=\s*\"(?P<answer>[^\"\n]{1,300})\"")
_HEADER = re.compile(r"\"header\": ?\"(?P<text>[^\"]{2,40})\"")
_MOST_TYPED = 3  # decisions of one prompt
_LONGEST_CHOICE = 1_500  # characters; a longer prompt is pasted
_LABEL = re.compile(r"\A(?:decision|decided)\s*[:—–-]\s*", re.I)


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
        drafts += _typed(turn, turn.prompt, gate)
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
    stated = load_pattern("decisions", "stated")
    for taken in gate.take(closing):
        text = plain(taken.statement.text)
        if not (stated.search(text) and taken.statement.tells & {"cause", "why", "decision"}):
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
        if load_pattern("decisions", "what now").search(question):
            continue  # how to go on now is no decision that anybody asks for later
        header = headers[at] if at < len(headers) else cut(question, 40)
        found.append((item, header, answer, match[0]))
    return found
