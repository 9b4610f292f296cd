"""What came of a turn in one line: the sentence of the closing message that states it, whole or
shortened where a clause ends; without such a sentence, the change itself.

A point of a list counts only where it is a sentence or says what was done: "Auth, tokens, scopes"
names things and nothing about them. What was asked for names a turn where nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from yester.cards import titles
from yester.cards.drafts import TAKEN_BACK, Fact, Gate, Looked
from yester.cards.points import combine_points
from yester.cards.status import ASKS
from yester.cards.titles import is_imperative, says_something
from yester.cards.tools import (
    defined_names,
    file_name,
    file_names,
    find_rename,
    is_prose,
    replaced_texts,
)
from yester.cards.turns import View
from yester.model import Item, replace
from yester.tables import load_pattern
from yester.text.prose import strip_marks
from yester.text.statements import (
    TITLE,
    Statement,
    as_title,
    count_words,
    drop_asides,
    drop_fixed,
    drop_interjection,
    drop_label,
    find_cues,
    is_boilerplate,
    is_fragment,
    shorten_title,
    split_statements,
    statement_worth,
    telling_terms,
)

_pattern = partial(load_pattern, "statements")

_SHORTEST, _SHORTEST_TITLE = 20, 24  # characters of an answer, and of a sentence as a title
_FAULTS = frozenset({"cause", "failed"})
_NO_RESULT = _FAULTS | {"next", "guess"}
_RECOMMENDED = 3  # times at most, if it is the answer
_SHARED = 2  # rare words of the request in an answer
_FIRST = 3  # statements of an answer
_BELOW = 9  # statements below a heading
_NAMES = 3  # that a change is called by
_FEW_WORDS = 5  # without a verb among them only name something
_TELLING = 4  # words of an announced change that say something
# Who has done it, and that it is done, are no part of a title; what came of it is.
_CAME_OF_IT = (
    r"now (?!i\b|let\b|that\b|when\b|whenever\b)"
    r"|the (?:fix|change) (?:(?:is|was) (?=\w+ing\b))?(?=\w+(?:s|ing)\b(?<!is|as))"
)
_ASKS_WHETHER = re.compile(
    r"\A(?:(?:but|and|so|or|then)\s+|q:\s*)*+(?!what|how|why|where|when|wh(?:ich|o)\b)([^?]+)\?\Z",
    re.I,
)
_ASKS_FACT = re.compile(
    r"(?:and |but |so )?(?:why|where|when|who|how (?:is|are|do|does|did)|is (?:this|that|it))\b",
    re.I,
)
_DOES = re.compile(
    r"\b(?:is|are|was|were|has|have|had|now|does|did|can|will|must|should|cannot|\w\w+ed)\b|n't\b"
    r"|(?-i:(?:\A|: )[A-Z]\w+(?:es|[^su\W]s)\b)", re.I
)  # fmt: skip
_STATES = re.compile(r"\b(?:is|are|was|were|has|have|does|did|do|can|cannot|only|never)\b|n't\b")
_PROCESS = re.compile(r"(?:i|we)(?:'ve| have)? \w+|based on|looking at|fair\b|good\b", re.I)
_LABELS = re.compile(r": | [-–—→] ")  # `parser.py: Removed the cache`
_DASH, _OPTION = re.compile(r"\s[-—–]\s"), re.compile(r" [-—–(]|: |\. ")
_NOW = re.compile(r"\bnow\b", re.I)
_RESULT_BEGINS = re.compile(_CAME_OF_IT, re.I)
_SPEAKER = re.compile(
    rf"\A(?:{_CAME_OF_IT}|because (?=the\b)|(?:i|we)(?:'ve| have)? (?:also |now |successfully )?"
    r"(?=\w+ed\b|rewrote|split|made|built|wrote|kept)"
    r"|(?-i:[\w/-]+\.\w{1,4}\S* ?[:—–-] (?=[A-Z]\w+ed\b))"
    r"|(?:updated|changed) [\w/-]+\.\w{1,4}\S* ?[:—–] (?=\w+ ))", re.I
)  # fmt: skip


# --- of work -------------------------------------------------------------------------------------


def work_title(looked: Looked, gate: Gate) -> tuple[str, str]:
    """The title and what it was taken from."""
    turn, closing = looked.turn, looked.turn.closing
    if looked.only_notes and looked.commit_title:
        return looked.commit_title, ""
    if turn.prompt is not None and (plan := titles.plan_title(turn.prompt.body)):
        return shorten_title(plan), "plan"
    if closing is None:
        return looked.commit_title or change_title(looked), ""
    heading = titles.heading_title(closing)
    if _pattern("review").search(heading):
        return _review_title(heading, _own_statements(closing, gate)), "heading"
    if found := _choose_result(looked, closing, gate):
        title, source = found
        point = _find_point(closing, source)
        return (point and combine_points(closing.body, point, title)) or title, source
    return looked.commit_title or combine_points(closing.body) or change_title(looked), ""


def _choose_result(looked: Looked, closing: Item, gate: Gate) -> tuple[str, str] | None:
    """What the reader finds, where a message says its result there; else where it does."""
    read, results = _read_title(looked, gate), _find_results(closing, gate)
    undecided = _pattern("asks to decide").search(closing.body[-400:]) is not None
    if read is not None:
        if read[1] in (one.text for one in results) or titles.commit_type(read[0]):
            return read
        if _find_point(closing, read[1]):  # one of many; rather what it is now
            said = [one for one in _own_statements(closing, gate) if one.kind == "paragraph"]
            results += [one for one in said if _NOW.search(one.text) and _says_result(one)]
        return _first_title(results) or read
    if found := _first_title(results):
        return found
    results = [one for one in split_statements(closing.body) if _says_result(one)]
    if not undecided:
        told = _answers(looked, closing, gate)
        bare = (replace(one, text=_pattern("because").split(one.text)[0]) for one in told)
        results += [one for one in bare if not one.tells & _NO_RESULT]
    return _first_title(results)


def change_title(looked: Looked) -> str:
    """The change itself, by what it brings; of what came to no end, what was wanted."""
    wanted, turn = looked.request_title, looked.turn
    wanted = "" if is_fragment(wanted) else wanted
    asks = is_imperative(looked.request) or _pattern("asks for it").match(looked.request)
    if wanted and looked.status.word in (*TAKEN_BACK, "open"):
        return wanted
    announced, aside = _announced_changes(looked)
    only_aside = all(map(_goes_along, turn.edited))
    if named := announced or (only_aside and aside) or _name_changes(turn) or aside:
        return shorten_title(named)
    if wanted and asks:
        return wanted
    if not wanted:
        return f"Changed {file_names(turn.edited)}"
    changed = f"Changed {file_names(turn.edited, 1)}: "
    return changed + shorten_title(wanted, TITLE - len(changed))


def _announced_changes(looked: Looked) -> tuple[str, str]:
    """`Use the CLI for the check instead of go-git`: what the agent said it would do, and then did;
    of several the one nearest to the request, "" where each only points ("fix it"). And the same of
    the tests and pages that went along with it."""
    turn, wanted = looked.turn, telling_terms(looked.request)
    best, before = [("", (-1, 0)), ("", (-1, 0))], 0
    for step in turn.steps:
        if not step.edited or step.item.actor:
            continue
        near = [item for item in turn.said if before < item.epoch <= step.item.epoch]
        before = step.item.epoch
        aside = all(map(_goes_along, step.edited))
        for one in (one for item in near for one in split_statements(item.body)):
            lead = _pattern("announces a change").match(one.text)
            change = one.text[lead.end() :].rstrip(" :.") if lead else ""
            told = telling_terms(change)
            rank = len(told & wanted), len(told)
            if len(told) >= _TELLING and rank > best[aside][1] and is_imperative(change):
                best[aside] = change[:1].upper() + change[1:], rank
    return best[0][0], best[1][0]


def _goes_along(file: str) -> bool:
    """Is it a test or a page?"""
    return is_prose(file) or load_pattern("tools", "test file").search(file) is not None


def _name_changes(turn: View) -> str:
    """`retry.py: ConnectionPerCall, backoff`: of the file in which most was named, or the new name
    of one; "" where no name is new."""
    for step in turn.steps:
        old, new = find_rename(step.ran.command) if step.edited else ("", "")
        if new:
            return f"Renamed {old} to {new}"
    names: dict[str, dict[str, None]] = {}
    for step in turn.steps:
        for file in step.edited[:1]:
            own = names.setdefault(file, {})
            if is_prose(file):
                own |= dict.fromkeys(filter(None, [titles.heading_title(step.item)]))
                continue
            pairs = replaced_texts(step.item) or [("", step.item.body)]
            before, after = ("\n".join(each) for each in zip(*pairs, strict=True))
            defined = defined_names(after)
            own |= dict.fromkeys([name for name in defined if name not in before] or defined)
    named = [file for file, own in names.items() if own]
    file = max(named, key=lambda one: (not _goes_along(one), len(names[one])), default="")
    if not file:
        return ""
    more = len(turn.edited) - 1
    others = f" and {more} other file{'' if more == 1 else 's'}" if more else ""
    return f"{file_name(file)}{others}: {', '.join([*names[file]][:_NAMES])}"


def _find_point(closing: Item, text: str) -> Statement | None:
    said = split_statements(closing.body)
    return next((one for one in said if one.kind == "bullet" and one.text == text), None)


def _only_names(one: Statement) -> bool:
    return one.kind != "paragraph" and not says_something(one.text)


def _own_statements(closing: Item, gate: Gate) -> list[Statement]:
    return [one for one in split_statements(closing.body) if not gate.echoes(one.text, closing)]


def _find_results(closing: Item, gate: Gate) -> list[Statement]:
    """Where a message says the result: before its lists, behind a label, or in its heading."""
    said = _own_statements(closing, gate)
    first = next((one for one in said if one.kind == "heading"), None)
    labelled = [one for one in said if _pattern("labelled result").match(one.text) or one is first]
    leads = [one for one in said if one.lead]
    return [one for one in (*leads, *labelled) if _says_result(one)]


def _drop_condition(text: str) -> str:
    """What comes first in a long sentence, and not what came of it."""
    text = drop_interjection(text)
    return _pattern("condition first").sub(r"\1", text) if len(text) > TITLE else text


def _says_result(one: Statement) -> bool:
    said = drop_label(_drop_condition(one.text))
    bare = as_title(_SPEAKER.sub("", said))
    tells = find_cues(bare)
    result = "result" in tells or _RESULT_BEGINS.match(said) is not None
    # What was fixed may be named by its cause.
    wrong = tells & (_NO_RESULT - _FAULTS if titles.find_type(bare) else _NO_RESULT)
    aside = one.aside or titles.says_undone(one)
    return result and not wrong and not aside and not is_boilerplate(said)


def _read_title(looked: Looked, gate: Gate) -> tuple[str, str] | None:
    """What the reader model calls the turn, and the statement that holds it. None where it found
    nothing, or where the agent only says again what the session was shown before."""
    title, closing = looked.read_title, looked.turn.closing
    if not title or closing is None:
        return None
    low = title.lower()
    holds = [
        one
        for one in split_statements(closing.body)
        if low in one.text.lower() or low in drop_asides(one.text).lower()
    ]
    source = holds[0].text if holds else ""
    parts = _LABELS.split(title)
    names = len(parts) > 1 and not any(map(says_something, parts))
    if holds and all(
        one.aside or is_boilerplate(one.text) or (names and _only_names(one)) for one in holds
    ):
        return None
    if count_words(title) < _FEW_WORDS and not (_DOES.search(title) or is_imperative(title)):
        return None
    if gate.echoes(source or title, closing):
        return None
    said = _SPEAKER.sub("", title)
    return said[:1].upper() + said[1:] if said != title else title, source


def _title_alone(one: Statement) -> str:
    """A statement as a title; "" where it cannot stand alone: it leans on something said before, is
    about the speaker, or leads up to what comes after it."""
    title = as_title(_pattern("to git").sub("", _SPEAKER.sub("", _drop_condition(one.text))))
    if len(title) < _SHORTEST_TITLE or " " not in title:
        return ""
    leads_up = one.text.endswith(f" {title.split()[-1]}:") and not titles.find_type(title)
    leads_up = leads_up and _pattern("says what").search(title) is None
    bare = drop_fixed(title)
    leaning = _pattern("leans").match(bare) and not _pattern("all of them").match(bare)
    broken = is_fragment(title) or _pattern("numbered").match(title) is not None
    names = one.kind != "paragraph" and not says_something(title)
    return "" if broken or leads_up or leaning or names else title


def _first_title(found: Sequence[Statement]) -> tuple[str, str] | None:
    """The first statement that can stand alone; rather one that is not broken off in the middle of
    a clause."""
    alone = [(title, one.text) for one in found if (title := _title_alone(one))]
    whole = (one for one in alone if one[0][-1] != "…")
    return next(whole, next(iter(alone), None))


# --- of a question -------------------------------------------------------------------------------


def find_answer(looked: Looked, gate: Gate) -> tuple[str, list[Fact]]:
    """The answer in a sentence; else the question, which an answer of many parts has in common; and
    what the answer tells. "" where nothing is told that was not known."""
    closing = looked.turn.closing
    if closing is None:
        return "", []
    taken = gate.take(closing)
    said = _own_statements(closing, gate)
    concludes = next(_conclusions(said), None) or _recommendation(said, closing.body)
    title = _answer_title(looked, closing, taken, gate) if taken or concludes else ""
    return (title if len(title) >= _SHORTEST else ""), taken


def name_answer(looked: Looked, gate: Gate) -> str:
    """The first sentence that can stand alone, of an answer that tells nothing to be kept."""
    closing = looked.turn.closing
    said = _own_statements(closing, gate)[:_FIRST] if closing is not None else []
    told = [one for one in said if one.lead and not is_boilerplate(one.text)]
    found = _first_title([one for one in told if "guess" not in one.tells])
    return found[0] if found else ""


def _answer_title(looked: Looked, closing: Item, taken: Sequence[Fact], gate: Gate) -> str:
    if asked := question_title(looked):
        return asked
    heading = titles.heading_title(closing)
    said = _own_statements(closing, gate)
    if _pattern("review").search(heading):
        return _review_title(heading, said)
    if concluded := _first_title([*_conclusions(said)]):
        return concluded[0]
    asks_what_is = _ASKS_FACT.match(looked.request) is not None
    recommended = "" if asks_what_is else _recommendation(said, closing.body)
    if recommended:
        return recommended
    if found := _first_title(_answers(looked, closing, gate)):
        return found[0]
    read = _read_title(looked, gate)
    if read is not None and "guess" not in find_cues(read[1] or read[0]):
        return read[0]
    if heading or (heading := _recommendation(said, closing.body, marked=False)):
        return heading
    first = [
        one
        for one in said
        if looked.request_title and one.kind == "paragraph" and not one.aside
        and not is_boilerplate(one.text) and not _PROCESS.match(one.text)
    ]  # fmt: skip
    best = [one.statement for one in sorted(taken, key=lambda one: -one.worth)]
    last = first[-1:] if looked.status.evidence == ASKS else []
    told = _first_title([*last, *first[:2], *best])
    return told[0] if told else looked.request_title


def question_title(looked: Looked) -> str:
    """`Should it be in a file of its own? Yes`: the only question of a prompt, with the word that
    answers it; "" where there is none, no room for it, or the answer says it in its own words."""
    prompt, closing = looked.turn.prompt, looked.turn.closing
    found = _pattern("yes or no").match(closing.body) if closing is not None else None
    if prompt is None or closing is None or found is None:
        return ""
    asked = [one.text for one in split_statements(prompt.body) if one.text[-1] == "?"]
    bare = _ASKS_WHETHER.match(asked[0]) if len(asked) == 1 else None
    if bare is None or not titles.is_telling(bare[1]):
        return ""
    first = split_statements(closing.body)[:1]
    shared = {term for one in first for term in telling_terms(one.text)} & telling_terms(bare[1])
    if len(shared) >= _SHARED and _first_title(first):
        return ""
    title = f"{bare[1]}? {'No' if found['no'] else 'Yes'}"
    return title[:1].upper() + title[1:] if len(title) <= TITLE else ""


def _review_title(heading: str, said: Sequence[Statement]) -> str:
    """What is reviewed, and the verdict."""
    verdict = next((drop_label(one.text) for one in _conclusions(said)), "").strip(" .:")
    if not verdict:
        return heading
    name = heading
    if len(f"{name}: {verdict}") > TITLE:
        name = re.split(r"(?<=\w)(?:: | [-—–] )", heading)[0]
    return shorten_title(f"{name}: {verdict}")


def _conclusions(said: Sequence[Statement]) -> Iterator[Statement]:
    """What a message says itself to be what it comes to, behind a label or below a heading."""
    for at, one in enumerate(said):
        if one.aside:
            continue
        if found := _pattern("concludes").match(one.text):
            yield replace(one, text=one.text[found.end() :], kind="paragraph")
        elif one.kind == "heading" and _pattern("conclusion").match(one.text):
            for two in said[at + 1 : at + _BELOW]:
                first = two is said[at + 1] and two.kind == "heading"
                if first or (two.kind == "paragraph" and two.heading == one.text):
                    yield replace(two, kind="paragraph")


def _recommendation(said: Sequence[Statement], text: str, marked: bool = True) -> str:
    """`Recommended: a test that covers all actions`: of an option that is named by its number what
    is said of it there, or further up. "" where there are several: they are parts of the answer.
    With `marked` only such an option, or what is labelled as the recommendation."""
    found = [(one.text, _pattern("recommends").search(one.text)) for one in said if not one.aside]
    every = [(text[match.end() :], match) for text, match in found if match]
    if not every or len(every) > _RECOMMENDED:
        return ""
    rest, match = every[-1]
    told = [rest] if not marked or (match.start() == 0 and ":" in match[0]) else []
    if picked := _pattern("picks an option").match(rest):
        line = rf"(?im)^\W*(?:option|approach)?\s*{re.escape(picked['mark'])}\b(?!,)\W*(.*)"
        options = (strip_marks(option) for option in re.findall(line, text))
        told = [*_DASH.split(rest)[1:2], *(_OPTION.split(one)[0] for one in options if one)]
    for title in map(as_title, told):
        broken = any(_pattern(name).match(title) for name in ("leans", "only if"))
        broken = broken or _pattern("begins in the middle").search(title) is not None
        broken = broken or title.split(" ")[0].endswith("ing")
        if len(title.split()) > 1 and not broken and title[-1] not in "…:":
            return shorten_title(f"Recommended: {title[:1].lower()}{title[1:]}")
    return ""


def _answers(looked: Looked, closing: Item, gate: Gate) -> list[Statement]:
    """What answers a request: behind a label, in bold, in the words of the request; or what is told
    before the lists of a message and names something."""
    wanted = telling_terms(looked.request)
    bold = [strip_marks(text) for text in _pattern("bold sentence").findall(closing.body)]
    said = [
        one
        for one in _own_statements(closing, gate)
        if not is_boilerplate(one.text) and not one.aside
    ]
    stated, leads = [], []
    for one in said:
        marked = next((text for text in bold if text in one.text), "")
        if one.kind != "bullet" and _states(marked, one):
            stated.append(replace(one, text=marked, kind="paragraph"))
        elif one.lead and (
            len(wanted & _terms_of(one)) >= _SHARED
            or (one.specific and statement_worth(one) >= (0.0 if one in said[:2] else 1.0))
        ):
            leads.append(one)
    return [*filter(_is_verdict, said), *stated, *leads]


def _terms_of(one: Statement) -> frozenset[str]:
    return telling_terms(one.text)


def _is_verdict(one: Statement) -> bool:
    return _pattern("verdict").match(one.text) is not None


def _states(marked: str, one: Statement) -> bool:
    """Is what is bold in a statement a sentence of its own, and not only stressed?"""
    if not marked or not _STATES.search(marked) or is_imperative(marked):
        return False
    before = one.text[: one.text.find(marked)].rstrip()
    ends = one.kind == "heading" and marked[-1] in ".!"
    return ends or (one.lead and before[-1:] in ("", ":", ",", "—"))
