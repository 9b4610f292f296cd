"""What an agent is told at the moment of action: after a failure, before a command, an edit or a
plan. One line, and only where something is known; each fact once in a session.

Nothing is looked for by meaning here: an error is known by its mark, a command by what is run, a
file by the rule that names it. `run/armed` holds words without which there is nothing to say, so
that a hook asks only where one of them stands in what has happened (`list_armed`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yester.agents.values import relative_path, text_at
from yester.cards import tools
from yester.cards.failures import command_mark, error_mark
from yester.context.block import Context, Here, Page
from yester.context.cards import find_open_ends, find_turns, is_finished, read_cards
from yester.context.endings import ending_lines, find_ending
from yester.context.lines import card_line, card_status, one_line, quote_text, replace_quotes
from yester.files import read_bytes
from yester.ingest.prepare import SHELLS
from yester.memories.memory import GLOBAL
from yester.memories.rules import list_rules, match_glob
from yester.model import Failure, Filters, Item, Memo, Paging, replace
from yester.recall.authors import Stretch, find_line_authors
from yester.redact import redact
from yester.store.contract import Store
from yester.text.edits import Edit, normalise_line, normalise_lines, planned_edits
from yester.text.statements import title_words
from yester.text.terms import query_terms

BUDGET = 120  # tokens, all that is around the line among them
PLANS = ("ExitPlanMode", "exit_plan_mode")
_TWICE = 2  # times that a command has failed in the same way before anything is said
_NAMED = 0.75  # share of the words of what was tried that a line of a plan has
_WORDS = 3  # that it has at least
_RULE, _ERROR, _COMMAND = 160, 80, 90  # characters
_MOST_LINES = 400  # of a plan
_LONG_WHY, _SHORT_WHY = 160, 80  # characters
# Words that a reason, or what else a turn has learnt, has in common with the lines it is told for.
_REASON, _LEARNED = 2, 3
_LARGEST_FILE = 1 << 20  # bytes of one that is about to be written over


@dataclass(frozen=True, slots=True)
class Action:
    """A use of a tool, before it or behind it."""

    tool: str
    given: Mapping[str, Any] = field(default_factory=dict)  # input, as the client names it
    output: str | None = None  # None: it is still to come
    failed: bool = False

    @property
    def command(self) -> str:
        return text_at(self.given, "command", "cmd") if self.tool.lower() in SHELLS else ""

    @property
    def file(self) -> str:
        return text_at(self.given, "file_path", "filePath", "path", "notebook_path")


# What is known before or after an action: line after line, each with the item it is of, its fact
# and what is to become of the tool ("": it goes on). The line that fits is told. A fact is what it
# is about, and its mark: an error that a command was warned of is not told once more.
Line = tuple[str, int, str, str]
Reflex = Callable[[Store, Action, Here], Iterator[Line]]


def at_action(
    store: Store, action: Action, here: Here, known: Iterable[str], switched_off: Iterable[str] = ()
) -> Context:
    """The first reflex that has something to say. `known`: the facts that the session was told."""
    told, off = {fact.partition(" ")[2] for fact in known}, set(switched_off)
    after = action.output is not None
    for setting, reflex in _REFLEXES:
        if setting in off or (setting == "tell.endings") is not after:
            continue
        for line, item, fact, decision in reflex(store, action, here):
            page = Page("memory", "", "", "", BUDGET)
            # What is forbidden stays so, however often it was said.
            if (fact.partition(" ")[2] not in told or decision) and page.add_line(line, item, fact):
                return replace(page.finish_page(), decision=decision, why=line if decision else "")
    return Context()


# --- after a failure ------------------------------------------------------------------------------


def _tell_ending(store: Store, action: Action, here: Here) -> Iterator[Line]:
    """What ended the same error before."""
    kind = tools.command_kind(action.command) if action.command else "look"
    if kind == "look" or not (action.failed or kind in tools.CHECKS):
        return
    run = tools.read_run(action.command, action.output or "", action.failed)
    errors = tools.find_errors(run.output)
    # A pipe, or a client that tells no status, hides a failure; what is known to pass is none.
    counts = tools.count_tests(run.output) if kind == "test" else tools.NO_COUNTS
    if run.refused or (not action.failed and tools.judge_check(run, counts, errors)):
        return
    # As they are stored: without secrets.
    marks = [
        error_mark(replace(error, fingerprint=tools.error_fingerprint(redact(error.text))))
        for error in errors
    ]
    ending = find_ending(store, marks, here)
    if ending is None:
        return
    for line in ending_lines(ending, here.calendar):
        yield line, ending.shown_item, f"error {ending.failure.mark}", ""


# --- before a command -----------------------------------------------------------------------------


def _tell_substitute(store: Store, action: Action, here: Here) -> Iterator[Line]:
    """A command that failed here in the same way again and again, and what worked instead."""
    if not action.command:
        return
    typed = tools.command_line(action.command)
    met = store.entries(Failure, {"command": command_mark(typed)})
    items = {item.id: item for item in store.get([one.item for one in met])}
    own = [
        one for one in met
        if one.item in items and items[one.item].project == here.project.key
        and items[one.item].session != here.session and one.epoch < here.now
    ]  # fmt: skip
    instead = [one for one in own if one.came == "instead" and one.ended < here.now]
    if 2 * len(instead) <= len([one for one in own if one.came not in ("left", "printed")]):
        return  # it works by now, or did not fail because of how it was run
    last = max(instead, key=lambda one: one.epoch)
    times = len({items[one.item].session for one in own if one.mark == last.mark})
    worked = next(iter(store.get([last.run])), None)
    if times < _TWICE or worked is None:
        return
    other = tools.typed_command(worked)
    if other == typed:
        return
    day = here.calendar.day_label(last.epoch)
    head = f"{quote_text(one_line(typed, _COMMAND))} failed here in {times} sessions (last {day})"
    tail = f"{quote_text(one_line(other, _COMMAND))} worked instead."
    error = quote_text(one_line(last.text, _ERROR))
    for line in (f"{head}: {error}; {tail}", f"{head}; {tail}"):
        yield line, worked.id, f"command {last.mark}", ""


# --- before an edit -------------------------------------------------------------------------------


def _tell_rule(store: Store, action: Action, here: Here) -> Iterator[Line]:
    """The user's standing rule about a file that is about to be changed."""
    if not action.file or action.command:
        return
    file = relative_path(action.file, here.project.root)
    for memo in list_rules(store, (here.project.key, GLOBAL.key)):
        if any(match_glob(name, file) for name in _rule_files(memo)):
            name = replace_quotes(one_line(file.rsplit("/", 1)[-1], 60))
            line = f"The user's rule about {name}: {quote_text(one_line(memo.item.body, _RULE))}"
            enforce = str(memo.content.get("enforce", "")) if memo.scope == "path" else ""
            yield line, memo.item.id, f"rule {memo.item.id}", enforce.replace("tell", "")


def _tell_authors(store: Store, action: Action, here: Here) -> Iterator[Line]:
    """Who wrote the lines that are about to be changed, and what had failed there: of the turns of
    earlier sessions the one with most of these lines that has something to say."""
    file = relative_path(action.file, here.project.root)
    edits = planned_edits(action.given, file) if file and not action.command else []
    edits = [_whole_lines(edit, action.file) for edit in edits]
    lines = [line for edit in edits for line in edit.before.split("\n")]
    if not any(lines):
        return
    filters = Filters(projects=(here.project.key,), without_session=here.session, until=here.now)
    stretches = find_line_authors(store, [file], lines, filters)
    kept = {line for edit in edits for line in normalise_lines(edit.after)}
    words = list(map(normalise_line, lines))
    gone = {at for at, word in enumerate(words, 1) if word and word not in kept}
    touched: list[tuple[int, Stretch]] = []
    for one in stretches:
        # Where nothing goes, something comes between: then it is about all of them.
        places = {at for at in range(one.first, one.last + 1) if at in gone or not gone}
        if one.turn is not None and places.difference(one.ambiguous):
            touched.append((len(places), one))
    asked = set(query_terms("\n".join((file, *lines))))
    turns = {turn for _, one in touched for turn in (one.turn, *one.former, *one.others) if turn}
    cards = find_turns(store, turns) if turns else {}
    for _, one in sorted(touched, key=lambda pair: -pair[0]):
        card = cards.get(one.turn) if one.turn else None
        before = [cards[turn] for turn in (*one.former, *one.others) if turn in cards]
        tried = [other for other in before if has_failed(other)]
        why = _choose_reason(store, card, here, asked) if card is not None else ""
        if card is None or not (why or tried or has_failed(card)):
            continue
        said = [
            _short_card(replace(card, body=why), here, most) for most in (_LONG_WHY, _SHORT_WHY)
        ]
        failed = f"; {_short_card(tried[-1], here, _SHORT_WHY)}" if tried else ""
        for text in (*(f"{text}{failed}" for text in said), *said):
            yield f"These lines: {text}", card.id, f"lines {card.id}", ""


def _choose_reason(store: Store, card: Item, here: Here, asked: set[str]) -> str:
    """Of what a turn says of why, has learnt and left open, what speaks most of these words."""
    learned = card.sections.get("learned", "").split("\n")
    least = dict.fromkeys(learned, _LEARNED)
    least |= dict.fromkeys((card.body, *_open_texts(store, card, here)), _REASON)
    shared = {text: len(asked.intersection(query_terms(text))) for text in least}
    fitting = [text for text in least if shared[text] >= least[text]]
    return max(fitting, key=lambda text: shared[text], default="")


def _open_texts(store: Store, card: Item, here: Here) -> list[str]:
    """What a turn has left open, and nobody has closed since."""
    if not card.sections.get("next_steps"):
        return []
    cards = read_cards(store, Filters(projects=(card.project,), until=here.now))
    ends = [one.text for one in find_open_ends(cards) if one.card.id == card.id]
    return [f"Open: {text}" for text in ends if text and not text.startswith("not pushed")]


def _whole_lines(edit: Edit, path: str) -> Edit:
    """The same in lines of the file as it is now: an edit may name a part of one, and one that
    writes all of the file names none."""
    try:
        text = read_bytes(Path(path), _LARGEST_FILE).decode("utf-8", "replace")
    except (OSError, ValueError):  # there is none, or no file that can be read
        return edit
    if edit.blind > 1:
        return edit._replace(before=text)
    head, found, tail = text.partition(edit.before) if edit.before else ("", "", "")
    left, right = head.rpartition("\n")[2], tail.partition("\n")[0]
    if not found:
        return edit
    return edit._replace(before=f"{left}{edit.before}{right}", after=f"{left}{edit.after}{right}")


def _short_card(card: Item, here: Here, most: int) -> str:
    """`45 done: “One connection per call” “Idle ones are dropped.” (2 Nov)`"""
    short = replace(
        card, subtitle=f"{card_status(card)}: ", files_modified=(), body=one_line(card.body, most)
    )
    return card_line(short, here.calendar)


def says_why(card: Item) -> bool:
    """Is there more to tell of a turn than what it did: why, what is open, that it failed?"""
    return card.kind == "summary" and bool(
        card.body or card.sections.keys() & {"learned", "next_steps"} or has_failed(card)
    )


def has_failed(card: Item) -> bool:
    return card_status(card) in ("failed", "reverted")


def _rule_files(memo: Memo) -> list[str]:
    """Files and folders that a rule is for, by its scope or because it names them: what has a slash
    or an ending."""
    if memo.scope == "path":
        return [memo.path]
    words = re.findall(r"[\w*./@+-]*[\w*]", str(memo.content.get("rule", "")))
    return [one for one in words if re.search(r"[\w*]/[\w*]|\w\.[a-z]\w{0,4}$|^\*\.", one)]


# --- before a plan --------------------------------------------------------------------------------


def _tell_approach(store: Store, action: Action, here: Here) -> Iterator[Line]:
    """What a plan wants and what an earlier turn has tried in vain, or was taken back."""
    if action.tool not in PLANS:
        return
    lines = text_at(action.given, "plan").split("\n")[:_MOST_LINES]
    planned = [words for words in map(title_words, lines) if len(words) >= _WORDS]
    cards = read_cards(store, Filters(projects=(here.project.key,), until=here.now))
    for at, card in enumerate(cards):
        own = card.session == here.session
        if own or not has_failed(card) or is_finished(card, cards[:at]):
            continue
        wanted = title_words(card.title)
        enough = max(_WORDS, _NAMED * len(wanted))
        if len(wanted) >= _WORDS and any(len(wanted & line) >= enough for line in planned):
            for one in (card, replace(card, body="")):
                told = card_line(one, here.calendar)
                yield f"The plan names what was tried: {told}", card.id, f"plan {card.id}", ""


# Each with the setting that switches it off, in the order in which they are asked: the user's word
# comes before what is known.
_REFLEXES: Sequence[tuple[str, Reflex]] = (
    ("tell.endings", _tell_ending),
    ("tell.before", _tell_rule),
    ("tell.lines", _tell_authors),
    ("tell.before", _tell_substitute),
    ("tell.before", _tell_approach),
)
SETTINGS = tuple(dict.fromkeys(setting for setting, _ in _REFLEXES))


# --- when a hook is to ask ------------------------------------------------------------------------

_MOST_ARMED = 400  # of a kind
_SHORTEST, _LONGEST = 6, 48  # characters
# What a number, a path … of an error has become, and what JSON writes in another way.
_VARIES = re.compile(r"""\b(?:URL|ID|TIME|ADDRESS|PATH|HASH|N)\b|["\\\x00-\x1f\x7f]|[^\x00-\x7f]""")


def list_armed(store: Store, switched_off: Iterable[str] = ()) -> list[str]:
    """`EVENT words`, a line each: a hook asks where the words stand in what its event tells."""
    off = set(switched_off)
    lines: list[str] = []
    ended = store.entries(Failure, {"came": ("fixed", "instead", "left")}, Paging(3 * _MOST_ARMED))
    if "tell.endings" not in off:
        printed = {one.mark for one in store.entries(Failure, {"came": "printed"})}
        errors = [one for one in ended if one.mark not in printed and (one.run or one.tried)]
        words = dict.fromkeys(_literal(tools.error_fingerprint(one.text)) for one in errors)
        for literal in list(filter(None, words))[:_MOST_ARMED]:
            lines += [f"PostToolUse {literal}", f"PostToolUseFailure {literal}"]
    if "tell.before" not in off:
        ways = Counter((one.command, one.mark) for one in ended)
        instead = [
            one.item for one in ended
            if one.came == "instead" and ways[one.command, one.mark] >= _TWICE
        ]  # fmt: skip
        heads = [_literal(tools.typed_command(item)) for item in store.get(instead)]
        paths = [name for memo in list_rules(store, ()) for name in _rule_files(memo)]
        words = dict.fromkeys([*filter(None, heads[:_MOST_ARMED]), *map(_path_literal, paths)])
        if any(has_failed(card) for card in read_cards(store, Filters())):
            words |= dict.fromkeys(f'"{name}"' for name in PLANS)
        lines += [f"PreToolUse {word}" for word in words]
    if "tell.lines" not in off:
        cards = store.select(Filters(kinds=("summary",)), Paging(_MOST_ARMED))
        files = (file for card in cards if says_why(card) for file in card.files_modified)
        # As the last part of a path that stands in quotes: a command that names it does not ask.
        ends = dict.fromkeys(f'/{"/".join(file.split("/")[-2:])}"' for file in files)
        lines += [f"PreToolUse {end}" for end in list(ends)[:_MOST_ARMED] if end.isascii()]
    return lines


def _literal(text: str) -> str:
    """The longest piece that is the same whenever it is met; "" where none says enough."""
    best = max((part.strip() for part in _VARIES.split(text)), key=len)
    return best[:_LONGEST].strip() if len(best) >= _SHORTEST else ""


def _path_literal(glob: str) -> str:
    """Of a path that may have wildcards; any file, where it is nothing else."""
    best = max(re.split(r"[*?\[\]]", glob), key=len).strip("/")
    return best if len(best) > 1 and best.isascii() else '"tool_input"'
