"""What a user says for good, found in the sentences of a typed prompt that are the user's own:

    rule        what is asked for beyond the task at hand: "Never commit to main."
    decision    what is said to be decided: "Decision: prices are integer cents"
    withdrawal  what takes one of these back: "forget the rule about bun", "we use pnpm again"

The words are the user's own, taken and never rewritten. A rule that an agent is shown is obeyed, so
a wrong one does harm and a missed one costs a reminder. Only a plain rule that stands alone in the
user's own paragraph is `sure`; anything else is proposed and waits for the user's yes. What stands
in a prompt that may be somebody else's text takes nothing back.

A prompt carries much that the user did not write: code, logs, quoted text, a pasted review, a plan
an agent wrote, notices of the client. Nothing in there is an instruction of the user's. It is
masked, character for character, so that every sentence keeps its offsets. How it begins, and where
the user turns to something else, is told by tables/utterances.toml. Kept linear: each pass walks
the text once, and every repetition in a pattern is bounded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial

from msgspec import Struct

from yester.memories.chains import (
    cut_reason,
    find_contradiction,
    parse_claims,
    subject_terms,
)
from yester.model import replace
from yester.tables import Row, load_pattern, load_rows, load_table
from yester.text.sentences import sentence_spans

MASK = "\x1a"  # stands for one character of somebody else's
# People type at the top of what they paste, or below it.
_HEAD, _TAIL = 4_000, 2_000
_PROSE = 0.7  # share of letters and spaces below which a line is output of a program
_SHORT_LINE = 12

# How a line of a list begins.
_MARKER = re.compile(r"\s{0,80}(?:(?:[-*•–]|\d{1,2}[.)]|[A-Za-z][.)]|\[[ x]\])\s{1,4}){0,2}")
_pattern = partial(load_pattern, "utterances")
LONGEST_RULE = 240  # characters of a rule
_LONGEST = {"rule": 600, "decision": 320, "withdrawal": 300}  # characters of a sentence
_FEWEST_WORDS = 2
# Share of the words of a rule by which it is meant where it is not called one, and of those said.
_MOST, _NAMED = 0.5, 0.6
# What stands with its reason is decided for this project, unless it is said for ever.
_REASONED, _ALWAYS = "choice with its reason", "always, never"
_BESIDE = ("most", "demand", "ban")  # the sentence may say a rule, too
_LONG_PROMPT = 600  # characters; who writes more, pastes
_WORD = re.compile(r"[\u3040-\u9fff]|\w+")  # a character is a word where none are written apart
_PART = re.compile(r"[,;]\s+(?:and |but |so )?|\s[–—-]\s|\.\s")
_HERE = re.compile(r"\b(?:this|our) (?:repo(?:sitory)?|project|code ?base|monorepo)\b", re.I)


class Utterance(Struct, frozen=True):
    """`text` is prompt[span] on one line."""

    kind: str  # rule, decision, withdrawal
    text: str
    row: str  # of the table, that found it
    span: tuple[int, int]
    sure: bool = False
    scope: str = ""  # of a rule: global, project
    label: str = ""  # of a decision: what of the text only says that it is one
    about: str = ""  # of a withdrawal: words of what it ends; "": what it contradicts
    ends: str = ""  # of a withdrawal: which rules with most of these words, or "newest"
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
    if withdrawal.ends == "newest":
        return False  # which one that is the order of the prompts tells
    if withdrawal.about:
        about, ruled = subject_terms(withdrawal.about), subject_terms(text)
        ban = _pattern("negated").search(text) is not None
        if withdrawal.ends and ban is not (withdrawal.ends == "ban"):
            return False
        if all(map(str.isascii, about)):  # named within words of another script
            ruled = frozenset(filter(str.isascii, ruled))
        shared = len(about & ruled)
        if withdrawal.ends:
            enough = shared / max(len(ruled), 1)
            named = shared >= _NAMED * len(about)
            return named and (enough > _MOST or (enough == _MOST and withdrawal.ends != "most"))
        # Where words are not written apart, some are cut across their borders.
        least = len(about) if withdrawal.about.isascii() else _NAMED * len(about)
        return bool(about) and shared >= least
    return bool(find_contradiction(parse_claims(text), parse_claims(withdrawal.text)))


def weakens_safety(text: str) -> bool:
    """Does a rule ask for less care: no tests, no checks, no questions?"""
    careless, risky, forbids = (
        _pattern(name).search(text) for name in ("careless", "risky", "forbids")
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
    for row, about, ends in withdrawals:
        yield Utterance("withdrawal", said, row, span, sure=True, about=about, ends=ends)
    if any(about and ends not in _BESIDE for _, about, ends in withdrawals):
        return
    rule = _find_rule(prompt, sentence.start, text)
    if rule is None and withdrawals and (at := text.find(", ") + 2) > 1:
        rule = _find_rule(prompt, sentence.start + at, text[at:])  # "forget yarn, always use npm"
    decided = _find_decision(text) if len(said) <= _LONGEST["decision"] else ""
    if rule and (decided != _REASONED or rule.row == _ALWAYS):
        yield rule
    elif decided:
        label = _match_label(said)
        if len(_WORD.findall(said[len(label) :])) >= _FEWEST_WORDS:
            yield Utterance("decision", said, decided, span, label=label)


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
    if _pattern("everywhere").search(text):
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
    if not label and _pattern("report").search(head):
        return ""  # what is wrong now, told with how it came to be
    rows = _load_rows("decisions")
    return next((row.name for row, pattern in rows if pattern.match(text)), "")


def _match_label(text: str) -> str:
    ((_, pattern),) = _load_rows("labels")
    match = pattern.match(text.replace("’", "'"))
    return match[0] if match else ""


def _find_withdrawals(text: str) -> Iterator[tuple[str, str, str]]:
    """(the row, what it is about, which rules it ends)"""
    if len(text) > _LONGEST["withdrawal"] or MASK in text or _is_vetoed("withdrawal", text):
        return
    parts = _PART.split(text)
    for at, part in enumerate([*parts, text] if len(parts) > 1 else parts):
        for row, pattern in _load_rows("withdrawals"):
            if (match := pattern.match(part)) and (at < len(parts) or row.name == "named alone"):
                what = (text for name, text in match.groupdict().items() if name != "core" and text)
                yield row.name, " ".join(what).strip(" .!"), row.values.get("ends", "")
                break


# --- in the prompt -------------------------------------------------------------------------------


def _is_ruling(sentence: Sentence, spans: Iterable[tuple[int, int]]) -> bool:
    """Is a sentence said for good, or no more than "thanks!"?"""
    return _pattern("courtesy").fullmatch(sentence.text) is not None or any(
        start >= sentence.start and end <= sentence.end for start, end in spans
    )


def _find_own_sentence(one: Utterance, sentences: list[Sentence]) -> Sentence:
    return next(sentence for sentence in sentences if sentence.end >= one.span[1])


def _is_spoken_of(one: Utterance, sentences: list[Sentence]) -> bool:
    """Does another paragraph point at a text, which this may be part of?"""
    paragraph = _find_own_sentence(one, sentences).paragraph
    points = _pattern("pointing").search
    others = (other for other in sentences if other.paragraph != paragraph)
    return any(other.asked or points(other.text) for other in others)


def _stands_alone(
    one: Utterance, sentences: list[Sentence], spans: set[tuple[int, int]], *, elsewhere: bool
) -> bool:
    """Does nothing but rules stand in its paragraph, or (elsewhere) in the others? In a paragraph
    of its own it may follow a plain task, or say itself that the same person goes on ("and from now
    on …"): anything else may speak of a text that it is part of, in whatever language."""
    own = _find_own_sentence(one, sentences)
    goes_on, is_task = (_pattern(name).match for name in ("goes on", "task"))
    beside = [other for other in sentences if (other.paragraph != own.paragraph) == elsewhere]
    return all(
        _is_ruling(other, spans) or (elsewhere and (goes_on(own.text) or is_task(other.text)))
        for other in beside
    )


# --- the user's own words -------------------------------------------------------------------------


class Sentence(Struct, frozen=True):
    """`text` is prompt[start:end] with MASK for what is not the user's own."""

    start: int
    end: int
    text: str
    asked: bool  # ends in a question mark
    paragraph: int  # the number of blank or foreign lines before it


def own_sentences(prompt: str) -> Iterator[Sentence]:
    """The user's own sentences, in order; long ones clause by clause."""
    if _is_by_program(prompt):
        return
    masked = _mask_foreign(prompt)
    for start, end, paragraph in _find_passages(masked):
        for first, last in _cut_sentences(masked, start, end):
            if last <= _HEAD or first >= len(prompt) - _TAIL:
                text = masked[first:last]
                yield Sentence(first, last, text, text.rstrip("\"')]*_").endswith("?"), paragraph)


def has_foreign_lines(prompt: str) -> bool:
    """Does a prompt carry lines that the user did not write?"""
    lines = _mask_foreign(prompt).split("\n")
    return _is_by_program(prompt) or any(
        line.strip() and (not _is_own_line(line) or _announces_paste(line)) for line in lines
    )


def _is_by_program(prompt: str) -> bool:
    return _pattern("by a program").match(prompt) is not None


def _mask_foreign(prompt: str) -> str:
    text = _pattern("block").sub(lambda m: _mask_lines(m[0]), prompt)
    parts: list[str] = []
    at = 0
    for start, end in sorted(_find_tagged(text)):  # what holds others comes before them
        if end > at:
            start = max(start, at)
            parts += (text[at:start], _mask_lines(text[start:end]))
            at = end
    return _pattern("quoted").sub(_mask_quoted, "".join((*parts, text[at:])))


def _mask_quoted(quoted: re.Match[str]) -> str:
    """`pnpm` is a name the user uses; `pnpm test` and "pnpm" are somebody else's words."""
    text = quoted[0]
    return text if text[0] == "`" and len(text.split()) == 1 else MASK * len(text)


def _mask_lines(text: str) -> str:
    """Line by line, so that what stands before and after does not become one line."""
    return "\n".join(MASK * len(line) for line in text.split("\n"))


def _find_tagged(text: str) -> Iterator[tuple[int, int]]:
    """What stands between a tag and its end, tags included."""
    opened: defaultdict[str, list[int]] = defaultdict(list)
    for tag in _pattern("tag").finditer(text):
        if not tag[1]:
            opened[tag[2]].append(tag.start())
        elif opened[tag[2]]:
            yield opened[tag[2]].pop(), tag.end()


def _find_passages(masked: str) -> Iterator[tuple[int, int, int]]:
    """Runs of lines that belong together and are prose, each with its paragraph's number."""
    start = end = at = paragraph = 0
    for line in masked.split("\n"):
        own = _is_own_line(line)
        if start < end and not (own and _continues_line(masked[end - 1], line)):
            yield start, end, paragraph
            start = end = at
        if own:
            start, end = (at if start == end else start), at + len(line)
        else:
            paragraph += 1
        if _announces_paste(line):
            break
        at += len(line) + 1
    if start < end:
        yield start, end, paragraph


def _announces_paste(line: str) -> bool:
    announced = _pattern("pasted").match(line)
    return announced is not None and not _pattern("of rules").search(line)


def _is_own_line(line: str) -> bool:
    bare = line.replace(MASK, "").strip()
    foreign = _pattern("foreign line")
    if not bare or foreign.match(line) or _pattern("indented").match(line):
        return False
    letters = sum(c.isalpha() or c.isspace() for c in bare)
    return len(bare) < _SHORT_LINE or letters >= _PROSE * len(bare)


def _continues_line(last: str, line: str) -> bool:
    """A sentence wrapped by hand: nothing ended the line, and the next begins in lower case."""
    return last not in ".!?:;" and (line[:1] == "(" or "a" <= line[:1] <= "z")


def _cut_sentences(masked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentence by sentence, and clause by clause where the user turns to something else."""
    passage = masked[start:end].replace("\n", " ")
    marker = _MARKER.match(passage)
    begin = marker.end() if marker else 0
    for first, last in sentence_spans(passage[begin:]):
        at = start + begin + first
        turns = _pattern("turn")
        for turn in turns.finditer(passage, begin + first + 1, begin + last):
            yield from _trim_span(masked, at, start + turn.start())
            at = start + turn.end()
        yield from _trim_span(masked, at, start + begin + last)


def _trim_span(masked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if marker := _MARKER.match(masked, start, end):
        start = marker.end()
    if text := masked[start:end].strip(" \t\r\n"):
        start = masked.index(text, start)
        yield start, start + len(text)
