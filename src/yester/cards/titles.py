"""What a turn is called, what kind of work it is, and what was asked for.

A title says the result: the commit's subject, else a plan's own heading, else what the reader model
finds, else what the agent says at its end. The request names a turn where nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from yester.memories.utterances import find_kind
from yester.model import Item
from yester.tables import load_pattern, load_rows
from yester.text.prose import prose_sentences
from yester.text.statements import (
    TITLE,
    Statement,
    as_title,
    count_words,
    drop_asides,
    drop_label,
    find_cues,
    is_boilerplate,
    is_fragment,
    is_generic_heading,
    split_statements,
    title_words,
)

_pattern = partial(load_pattern, "statements")

_QUOTED = re.compile(r"\"\"\"|'''")
# What stands before and after a clause: nothing, a mark, or a word that begins another one.
_JOINTS = (
    r"\s(?:across|after|alongside|although|and|as|at|because|before|but|by|for|from|in|instead|into"
    r"|on|rather|regardless|since|so|that|to|using|via|when|where|which|while|with|without)"
)
_LEADS_ON = re.compile(_JOINTS + r"\Z", re.I)
_GOES_ON = re.compile(_JOINTS + r"\s")
_LEADS_TO = re.compile(r"\s(?:across|alongside|for|from|in|into|on|to)\s")
_CLAUSE_BEGINS = re.compile(
    r"(?:\A|[.:;,!?—–)]\s|\s--?\s|\b(?:i|we)(?:'ve| have)?(?: also| now)?\s)\W*\Z"
)
_CLAUSE_ENDS = re.compile(
    rf"(?<![^\w\s,;:.!?—–])[^\w\s,;:.!?—–]*+(?=\Z|(?<![.:;,!?—–])[.:;,!?—–]+(?:\s|\Z)|\s(?:--?\s|[—–(])|{_JOINTS}\s)"
)
_ASIDE_BEGINS = re.compile(r"\s(?:--?|[—–(])|:(?:\s|\Z)")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|now|does|did|can|will|must|should|cannot)\b|\A\w+ed\b|n't\b",
    re.I,
)
_DID = re.compile(r"\A(?:[A-Z]\w+ed|Made|Wrote|Set)\b")
_CLAUSES = re.compile(r"[,;] | [-–—] ")
_NAME_BEGINS = re.compile(r"(?<!\S)(?:--?|[.@/~$]{1,2})\Z")
_FEW_WORDS = 4
_ASKED = 0.85  # a title with so many words of the request says nothing of what came of it
_SHORTEST_HEADING = 20
_REQUEST, _CLOSING = 3_000, 6_000  # characters of each: as much as the reader looks at


# --- what was asked for --------------------------------------------------------------------------


def find_request(prompt: Item | None) -> str:
    """What a prompt asks for, in a sentence of its own words; "" where none says it."""
    if prompt is None:
        return ""
    if title := plan_title(prompt.body):
        return title
    text = _pattern("slash command").sub("", prompt.body.strip(), count=1)
    text = _QUOTED.split(text, maxsplit=1)[0] or text
    best = long = ""
    for statement in split_statements(text[:6_000]):
        said = statement.text
        pasted = _pattern("pasted").search(said) or (said.isascii() and " " not in said)
        if pasted or count_words(said) < 2:
            continue
        if is_telling(said) and not find_kind(said, "decision"):
            if is_imperative(said) or (not long and len(said) <= TITLE):
                return said
            long = long or said  # what is wrong; what to do about it may come after it
        best = best or said
    return long or best


def plan_title(text: str) -> str:
    """The name of a plan that is handed in as a prompt."""
    rest = _pattern("plan").sub("", text, count=1)
    if rest == text:
        return ""
    for statement in split_statements(rest[:4_000]):
        if statement.kind == "heading":
            title = drop_label(statement.text).strip()
            # Without its "Fix:" a heading that names a fault would say that it is there.
            fixes = names_fault(statement.text.removesuffix(title)) and not is_imperative(title)
            if not is_generic_heading(title):
                return statement.text if fixes else title
        elif not is_boilerplate(statement.text):
            return statement.text
    return ""


def is_telling(request: str) -> bool:
    """Can somebody who reads only this know what was wanted?"""
    bare = _drop_politeness(request)
    pointing = _pattern("pointing").findall(bare)
    return count_words(bare) - len(pointing) >= _FEW_WORDS


def request_title(request: str) -> str:
    """A request as a title, where it tells what was wanted; a polite question asks for something,
    another one stays a question."""
    if not is_telling(request):
        return ""
    if len(request) > TITLE and not is_imperative(request):  # what is wrong, then what to do
        clauses = _CLAUSES.split(request)[1:]
        request = next((one for one in clauses if is_imperative(one) and is_telling(one)), request)
    bare = _drop_politeness(request) or request
    if bare != request or is_imperative(request):
        bare = _pattern("please").sub("", bare)
    return _close_pairs(as_title(bare))


def _close_pairs(title: str) -> str:
    """Without half a pair: an open bracket goes with what follows it, a quote alone."""
    for opened, closed in ("()", "[]", "{}"):
        if title.count(opened) > title.count(closed):
            title = title[: title.rindex(opened)].rstrip(" ,:;")
    return title if title.count('"') % 2 == 0 or "'\"'" in title else title.replace('"', "")


def _drop_politeness(text: str) -> str:
    return _pattern("polite").sub("", text)


def is_imperative(text: str) -> bool:
    """Does a request say what to do, so that it can name what was done?"""
    bare = _drop_politeness(text).lower()
    return bool(find_type(bare) or _pattern("verb").match(bare))


# --- what kind of work it is ---------------------------------------------------------------------


def find_type(title: str) -> str:
    """By how it begins; "" where that says nothing."""
    begin = title.lstrip("[`\"' ").lower()
    rows = load_rows("statements", "types")
    return next((row.name for row in rows if row.pattern.match(begin)), "")


def commit_type(subject: str) -> str:
    """The type a commit says itself to be (`fix(web): …`); "" where it does not."""
    prefix = _pattern("conventional commit").match(subject)
    return find_type(prefix[1]) or "change" if prefix else ""


def says_fixed(title: str) -> bool:
    """Does it say of something that it was fixed?"""
    return _pattern("says fixed").match(title) is not None


def names_fault(text: str) -> bool:
    return _pattern("fault").search(text) is not None


def is_housekeeping(subject: str) -> bool:
    return _pattern("housekeeping").match(subject) is not None


def heading_title(item: Item) -> str:
    """The first heading of a message, where it says what the message is about."""
    for statement in split_statements(item.body):
        if statement.kind == "heading":
            title = drop_label(statement.text)
            short = len(title) < _SHORTEST_HEADING
            vague = short or is_generic_heading(title) or is_fragment(title)
            vague = vague or _pattern("numbered").match(title) is not None
            return "" if vague else as_title(title)
    return ""


def title_mender(request: str, closing: str, answers: bool = False) -> Callable[[str], str]:
    """What of a title of the reader is taken: whole clauses of the closing message. "": nothing,
    where it cannot stand alone or says only what the request says, since a title says the result.
    Of what `answers` a question only sentences are one.
    """
    asked = [title_words(one.text) for one in prose_sentences(request[:_REQUEST])]
    closing = closing[:_CLOSING]
    told = [one for one in split_statements(closing) if not says_undone(one)]
    said = [one.text for one in told if not answers or _may_answer(one)]
    letters = _letters_of(closing)

    def mend(title: str) -> str:
        if _letters_of(title) not in letters or _pattern("commit id").search(title):
            return ""
        whole = next(filter(None, (_complete_clause(one, title) for one in said)), "")
        if is_fragment(whole) or _pattern("numbered").match(whole):
            return ""
        own = title_words(whole)
        repeats = any(len(own & one) >= _ASKED * len(own) for one in asked)
        unsure = repeats or is_fragment(title)
        return "" if unsure and "result" not in find_cues(whole) else whole

    return mend


def says_something(text: str) -> bool:
    """Does a point of a list or a heading say something of what it names?"""
    bare = drop_label(text)
    return bool(_VERB.search(bare) or find_type(bare) or "result" in find_cues(bare))


def says_undone(one: Statement) -> bool:
    """Is it about something that is left to do? That names no result."""
    below = _pattern("left below").match(one.heading)
    return below is not None or _pattern("undone").search(one.text) is not None


def _may_answer(one: Statement) -> bool:
    """A point of a list is a part of an answer; a heading seldom says anything."""
    stands = one.kind == "paragraph" or _DID.match(one.text) is not None
    stands = stands or (one.kind == "heading" and says_something(one.text))
    return stands and not one.aside and not is_boilerplate(one.text)


def _complete_clause(sentence: str, title: str) -> str:
    """A title up to the end of the sentence, or where the last clause that fits ends; "" where it
    does not begin with one. What only leads up to a list is none, unless it is a sentence."""
    title = _LEADS_ON.sub("", title)
    if _letters_of(title) in _letters_of(bare := drop_asides(sentence)):
        sentence = bare
    low, letters = sentence.lower(), _letters_of(title)
    places = [at for at, letter in enumerate(low) if letter.isalnum()]
    at = _letters_of(low).find(letters)
    close = len(sentence.rstrip(" .!;"))
    if at > 0 and letters and not _CLAUSE_BEGINS.search(low[: places[at]]) and close <= TITLE:
        letters = _letters_of(low[: places[at]]) + letters
        at, title = 0, sentence[: places[len(letters) - 1] + 1]
    if at < 0 or not letters or not _CLAUSE_BEGINS.search(low[: places[at]]):
        return ""
    if at and _pattern("only if").match(low):  # what holds on a condition does not stand alone
        return ""
    if low[: places[at]].endswith(", ") and not (says_something(title) or is_imperative(title)):
        return ""  # the second of two words, and no clause
    begin, end = places[at], places[at + len(letters) - 1] + 1
    stops = [one.end() for one in _CLAUSE_ENDS.finditer(low, begin)]
    half, more = (
        _pattern("half a pair"),
        _pattern("wants more"),
    )  # "between 1.9" wants the other one
    fits = [
        stop
        for stop in stops
        if stop - begin <= TITLE
        and not (low.startswith((" and", " or"), stop) and half.search(low, begin, stop))
        and not (_GOES_ON.match(low, stop) and more.search(low[begin:stop]))
    ]
    stop = next((stop for stop in fits if stop >= end), fits[-1] if fits else begin)
    for longer in fits:  # where it is, what for and by what belong to it
        leads_up = ":" in low[longer - 1 : longer + 1] and not _VERB.search(low, begin, longer)
        if longer > stop and _LEADS_TO.match(low, stop) and not leads_up:
            stop = longer
    aside = _ASIDE_BEGINS.search(low, stop)
    close = aside.start() if aside else close
    rest = low[begin:close]
    if stop >= end and len(rest) <= TITLE and rest.count("(") == rest.count(")"):
        stop = close
    same = stop >= end and not _letters_of(low[end:stop]) and "→" not in sentence[begin:end]
    whole = title if same else title[:1] + sentence[begin + 1 : stop]
    if name := _NAME_BEGINS.search(sentence[:begin]):  # `--clean` and `.env`
        whole = name[0] + sentence[begin] + whole[1:]
    leads_up = low.startswith(":", stop) and not _VERB.search(whole)
    return "" if leads_up else whole


def _letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
