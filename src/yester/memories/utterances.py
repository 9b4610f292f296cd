"""What a user says for good, found in the sentences of a typed prompt that are the user's own:

    rule        what is asked for beyond the task at hand: "Never commit to main."
    decision    what is said to be decided: "Decision: prices are integer cents"
    withdrawal  what takes one of these back: "forget the rule about bun", "we use pnpm again"

The words are the user's own, taken and never rewritten. A rule that an agent is shown is obeyed, so
a wrong one does harm and a missed one costs a reminder. Only a plain rule that stands alone in the
user's own paragraph is `sure`; anything else is proposed and waits for the user's yes. What stands
in a prompt that may be somebody else's text takes nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from yester.memories.chains import cut_reason, find_contradiction, name_terms, parse_claims
from yester.memories.own_words import MASK, Sentence, has_foreign_lines, own_sentences
from yester.model import replace
from yester.tables import Row, load_pattern, load_rows, load_table

LONGEST_RULE = 240  # characters of a rule
_LONGEST = {"rule": 600, "decision": 320, "withdrawal": 300}  # characters of a sentence
_FEWEST_WORDS = 2
_LONG_PROMPT = 600  # characters; who writes more, pastes
_WORD = re.compile(r"[\u3040-\u9fff]|\w+")  # a character is a word where none are written apart
_PART = re.compile(r"[,;]\s+(?:and |but |so )?|\s[–—-]\s|\.\s")
_HERE = re.compile(r"\b(?:this|our) (?:repo(?:sitory)?|project|code ?base|monorepo)\b", re.I)


@dataclass(frozen=True, slots=True)
class Utterance:
    """`text` is prompt[span] on one line."""

    kind: str  # rule, decision, withdrawal
    text: str
    row: str  # of the table, that found it
    span: tuple[int, int]
    sure: bool = False
    scope: str = ""  # of a rule: global, project
    label: str = ""  # of a decision: what of the text only says that it is one
    about: str = ""  # of a withdrawal: words of what it ends; "": what it contradicts
    own: bool = True  # no other paragraph may be, or speak of, somebody else's text


def find_utterances(prompt: str) -> list[Utterance]:
    """What a typed prompt says for good, in order, nothing twice."""
    found: dict[tuple[str, str, str], Utterance] = {}
    sentences = list(own_sentences(prompt))
    for sentence in sentences:
        for one in _judge_sentence(prompt, sentence):
            found.setdefault((one.kind, one.text, one.about), one)
    if not found:
        return []
    typed = len(prompt) <= _LONG_PROMPT and not has_foreign_lines(prompt)
    spans = {one.span for one in found.values()}
    judged = []
    for one in found.values():
        apart = typed and not _is_spoken_of(one, sentences)
        own = apart and _stands_alone(one, sentences, spans, elsewhere=True)
        alone = own and _stands_alone(one, sentences, spans, elsewhere=False)
        sure = one.sure and (alone if one.kind == "rule" else apart)
        judged.append(replace(one, sure=sure, own=own))
    return judged


def find_kind(prompt: str, kind: str) -> list[Utterance]:
    return [one for one in find_utterances(prompt) if one.kind == kind]


def is_only_ruling(prompt: str) -> bool:
    """Does a prompt say rules, or take some back, and nothing else? What became of it tells the
    rule; the prompt itself may say what does not hold any more."""
    if len(prompt) > _LONG_PROMPT:
        return False
    spans = [one.span for one in find_utterances(prompt) if one.kind != "decision"]
    return bool(spans) and all(_is_ruling(one, spans) for one in own_sentences(prompt))


def takes_back(withdrawal: Utterance, text: str) -> bool:
    """Can it mean this rule or decision?"""
    if withdrawal.about:
        about = name_terms(withdrawal.about)
        return bool(about) and about <= name_terms(text)
    return bool(find_contradiction(parse_claims(text), parse_claims(withdrawal.text)))


def weakens_safety(text: str) -> bool:
    """Does a rule ask for less care: no tests, no checks, no questions?"""
    careless, risky, forbids = (
        load_pattern("utterances", name).search(text) for name in ("careless", "risky", "forbids")
    )
    return bool(careless or (risky and not forbids))


# --- one sentence --------------------------------------------------------------------------------


def _judge_sentence(prompt: str, sentence: Sentence) -> Iterator[Utterance]:
    if sentence.asked:
        return
    text = sentence.text.replace("’", "'")
    span = sentence.start, sentence.end
    said = " ".join(prompt[slice(*span)].split())
    withdrawals = list(_find_withdrawals(text))
    for row, about in withdrawals:
        yield Utterance("withdrawal", said, row, span, sure=True, about=about)
    if any(about for _, about in withdrawals):
        return
    if rule := _find_rule(prompt, sentence.start, text):
        yield rule
    elif (row := _find_decision(text)) and len(said) <= _LONGEST["decision"]:
        label = _match_label(said)
        if len(said[len(label) :].split()) >= _FEWEST_WORDS:
            yield Utterance("decision", said, row, span, label=label)


def _is_vetoed(kind: str, text: str) -> bool:
    rows = load_rows("utterances", "vetoes")
    return any(kind in row.values["of"] and row.pattern.search(text) for row in rows)


@cache
def _load_rows(section: str) -> tuple[tuple[Row, re.Pattern[str]], ...]:
    """The rows of a section as they begin a sentence, after words that only lead in."""
    lead = "".join(load_table("utterances")["parts"]["LEAD"])
    anywhere = r"(?:.{0,300}?(?:^|[\s,(]))??"
    found = []
    for row in load_rows("utterances", section):
        before = anywhere if row.values.get("anywhere") else lead
        found.append((row, re.compile(f"{before}(?P<core>{row.source})", re.I | re.S)))
    return tuple(found)


def _find_rule(prompt: str, start: int, text: str, alone: bool = False) -> Utterance | None:
    """The rule that a sentence is, which begins there; it must be found again in its own words."""
    if len(text) > _LONGEST["rule"] or _is_vetoed("rule", text):
        return None
    for row, pattern in _load_rows("rules"):
        if match := pattern.match(text):
            core = match["core"] + text[match.end() :]
            masked = core.count(MASK) * 2 > len(core) or core.endswith(":")
            if masked or len(_WORD.findall(core)) < _FEWEST_WORDS or len(core) > LONGEST_RULE:
                return None
            rule = _make_rule(row, prompt, (start + len(text) - len(core), start + len(text)))
            return rule if alone or _is_found_again(rule) else None
    return None


def _is_found_again(rule: Utterance) -> bool:
    sentences = list(own_sentences(rule.text))
    if len(sentences) != 1 or sentences[0].asked:
        return False
    again = _find_rule(rule.text, sentences[0].start, sentences[0].text.replace("’", "'"), True)
    return again is not None and (again.text, again.row) == (rule.text, rule.row)


def _make_rule(row: Row, prompt: str, span: tuple[int, int]) -> Utterance:
    text = " ".join(prompt[slice(*span)].split())
    scope = row.values["scope"]
    if load_pattern("utterances", "everywhere").search(text):
        scope = "global"
    elif _HERE.search(text):
        scope = "project"
    sure = row.values["plain"] and not weakens_safety(text)
    return Utterance("rule", text, row.name, span, sure, scope)


def _find_decision(text: str) -> str:
    """The row by which a sentence says that something is decided, or ""."""
    # Hedges in a reason are about what would have been, not about what is decided.
    head = cut_reason(text)
    label = _match_label(text)
    if _is_vetoed("decision", head[len(label) :]) or text.count(MASK) * 2 > len(text):
        return ""
    if not label and load_pattern("utterances", "report").search(head):
        return ""  # what is wrong now, told with how it came to be
    rows = _load_rows("decisions")
    return next((row.name for row, pattern in rows if pattern.match(text)), "")


def _match_label(text: str) -> str:
    ((_, pattern),) = _load_rows("labels")
    match = pattern.match(text.replace("’", "'"))
    return match[0] if match else ""


def _find_withdrawals(text: str) -> Iterator[tuple[str, str]]:
    """(the row, what it is about)"""
    if len(text) > _LONGEST["withdrawal"] or MASK in text or _is_vetoed("withdrawal", text):
        return
    for part in _PART.split(text):
        for row, pattern in _load_rows("withdrawals"):
            if match := pattern.match(part):
                what = (text for name, text in match.groupdict().items() if name != "core")
                yield row.name, next(filter(None, what), "").strip(" .!")
                break


# --- in the prompt -------------------------------------------------------------------------------


def _is_ruling(sentence: Sentence, spans: Iterable[tuple[int, int]]) -> bool:
    """Is a sentence said for good, or no more than "thanks!"?"""
    return load_pattern("utterances", "courtesy").fullmatch(sentence.text) is not None or any(
        start >= sentence.start and end <= sentence.end for start, end in spans
    )


def _find_own_sentence(one: Utterance, sentences: list[Sentence]) -> Sentence:
    return next(sentence for sentence in sentences if sentence.end >= one.span[1])


def _is_spoken_of(one: Utterance, sentences: list[Sentence]) -> bool:
    """Does another paragraph point at a text, which this may be part of?"""
    paragraph = _find_own_sentence(one, sentences).paragraph
    points = load_pattern("utterances", "pointing").search
    others = (other for other in sentences if other.paragraph != paragraph)
    return any(other.asked or points(other.text) for other in others)


def _stands_alone(
    one: Utterance, sentences: list[Sentence], spans: set[tuple[int, int]], *, elsewhere: bool
) -> bool:
    """Does nothing but rules stand in its paragraph, or (elsewhere) in the others? In a paragraph
    of its own it may follow a plain task, or say itself that the same person goes on ("and from now
    on …"): anything else may speak of a text that it is part of, in whatever language."""
    own = _find_own_sentence(one, sentences)
    goes_on, is_task = (load_pattern("utterances", name).match for name in ("goes on", "task"))
    beside = [other for other in sentences if (other.paragraph != own.paragraph) == elsewhere]
    return all(
        _is_ruling(other, spans) or (elsewhere and (goes_on(own.text) or is_task(other.text)))
        for other in beside
    )
