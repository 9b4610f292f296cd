"""A session's stored items as turns: a prompt, what was done about it, and how it ended.

Made of items alone, so what hooks told and what was read from a transcript later give the same. Of
events only what a session's own switch decided is looked at: which tools it skips.
Of what a tool wrote only what it tells is held, so that long sessions need little memory.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yester.agents.values import digest, trim_text
from yester.cards import tools
from yester.cards.tools import CHECKS, NO_COUNTS, NOTHING_RAN, Commit, Error, Ran, RunCounts
from yester.config import Config
from yester.ingest.prepare import SHELLS, no_observation
from yester.model import COMMENTARY, DISTILLED, Event, Filters, Item, Paging, Turn, replace
from yester.store.contract import Store
from yester.tables import load_pattern
from yester.text.document import tokens_of_length

if TYPE_CHECKING:
    from yester.text.reader import TitleFinder

LOOK_BACK = 5  # turns within which work is committed and errors end
# Of these only where they looked is of use, not what they saw; nor of what was thought.
BRIEF_TOOLS = frozenset(
    {
        "Read", "read", "read_file", "read_file_v2", "view", "Grep", "grep", "grep_search", "Glob",
        "glob", "LS", "list", "WebFetch", "webfetch", "WebSearch", "web_search", "ToolSearch",
        "Skill", "TaskOutput", "view_image",
    }
)  # fmt: skip
BRIEF_CHARS = 400
PLANS = frozenset({"ExitPlanMode", "exit_plan_mode"})
_SHORTEST = 8  # characters of an edit; less may be exchanged by chance
_REFUSAL = 1_500  # characters at the end of an answer
_ASKS = frozenset({"AskUserQuestion", "ask_user", "request_user_input"})
_SEARCHES = frozenset({"grep", "glob", "grep_search", "file_search", "codebase_search", "search"})
_TO_CHECK = re.compile(r"\brun\b.*\b(?:tests?|lint|build)\b", re.I)
_NOT_POPPED = re.compile(r"stash entry is kept|could not restore untracked files")


@dataclass(frozen=True, slots=True)
class Step:
    """One use of a tool. `why_not` says why it makes no observation of its own.

    Of a shell's output only what it tells is kept, and the item's text is the command; of what
    other tools said only the beginning, but for edits and questions.
    """

    item: Item
    edited: tuple[str, ...] = ()
    ran: Ran = NOTHING_RAN
    kind: str = ""  # of the command
    main: str = ""  # the part of it that matters
    folder: str = ""  # in which it was run; "": the session's
    errors: tuple[Error, ...] = ()
    counted: RunCounts = NO_COUNTS
    commits: tuple[Commit, ...] = ()
    passed: bool | None = None  # of a check
    rewrites: str = ""  # how it has made commits anew
    printed: tuple[Commit, ...] = ()  # commits that it names with their ids
    pull_request: str = ""  # the number of the one that it has opened
    why_not: str = ""
    put_back: tuple[str, ...] = ()  # files that it changed, as they were before within its turn

    @property
    def failed(self) -> bool:
        return self.ran.failed if self.ran.command else "error" in self.item.tags

    @property
    def failing(self) -> bool:
        """Did what was run fail? A pipe hides the status; then the counts tell."""
        return not self.ran.refused and (self.ran.failed or self.counted.failed > 0)

    @property
    def checks(self) -> bool:
        return not self.ran.refused and self.kind in CHECKS

    @property
    def typed(self) -> str:
        """The command as it was typed."""
        return tools.command_line(self.ran.command)

    @property
    def asks(self) -> bool:
        return self.item.tool in _ASKS

    @property
    def searches(self) -> bool:
        return self.item.tool.lower() in _SEARCHES


@dataclass(frozen=True, slots=True)
class View:
    """A turn as the distiller sees it."""

    key: str  # the same whenever the turn is looked at again
    number: int
    prompt: Item | None
    said: tuple[Item, ...]  # by the main agent, in order; the last one closes the turn
    steps: tuple[Step, ...]  # in order, sub-agents' among them
    started: int
    ended: int
    tokens: int  # of everything in it
    answer: Item | None = None  # what was said before its last deeds and is all that came of it

    @property
    def ids(self) -> frozenset[int]:
        """The items it is made of."""
        prompt = [self.prompt] if self.prompt is not None else []
        steps = [step.item for step in self.steps]
        return frozenset(item.id for item in (*prompt, *self.said, *steps))

    @property
    def closing(self) -> Item | None:
        """The agent's last word, if it came after its last deed."""
        if not self.said or self.answer is not None:
            return self.answer
        last = self.said[-1]
        done = self.last_deed.item.epoch if self.last_deed is not None else 0
        return last if last.epoch >= done and last.type != COMMENTARY else None

    @property
    def last_deed(self) -> Step | None:
        """Of the main agent."""
        return next((step for step in reversed(self.steps) if not step.item.actor), None)

    @property
    def is_stopped(self) -> bool:
        """Was its last deed refused by the user, and nothing said of it?"""
        deed = self.last_deed
        return deed is not None and deed.ran.refused and self.closing is None

    @property
    def edited(self) -> tuple[str, ...]:
        return unite_paths(file for step in self.steps for file in step.edited)

    @property
    def put_back(self) -> tuple[str, ...]:
        """What was changed and is again as it was before; rather what is still there."""
        files = [file for step in self.steps for file in step.put_back]
        gone = {word for step in self.steps for word in tools.removed_files(step.ran.command)}
        return unite_paths([*(one for one in files if one not in gone), *files])

    @property
    def looked_at(self) -> tuple[str, ...]:
        changed = set(self.edited)
        files = (file for step in self.steps if not step.failed for file in step.item.files_read)
        return unite_paths(f for f in own_files(files) if f not in changed)


def own_files(files: Iterable[str]) -> tuple[str, ...]:
    """Without scratch, each once."""
    scratch = load_pattern("tools", "scratch file")
    return tuple(dict.fromkeys(file for file in files if not scratch.search(file)))


def unite_paths(files: Iterable[str]) -> tuple[str, ...]:
    """Each file once, by its shortest name: some are named from the root and from the project."""
    found = dict.fromkeys(files)
    return tuple(file for file in found if not any(end in found for end in _path_ends(file)))


def _path_ends(path: str) -> Iterator[str]:
    """What is left of a path without its first folders."""
    at = path.find("/")
    while at >= 0:
        yield path[at + 1 :]
        at = path.find("/", at + 1)


def group_turns(items: Sequence[tuple[Item, int]], steps: Mapping[int, Step]) -> list[View]:
    """The turns of a session, of its items by time, each with the length of its whole text, and the
    steps among them (`read_step`). Items before the first prompt are a turn of their own."""
    starts = [item for item, _ in items if is_typed_prompt(item)]
    times = [prompt.epoch for prompt in starts]
    parts: dict[int, list[tuple[Item, int]]] = {}
    for item, length in items:
        parts.setdefault(_turn_index(item, starts, times), []).append((item, length))
    return [_make_view(starts[at] if at >= 0 else None, parts[at], steps) for at in sorted(parts)]


def _works(step: Step) -> bool:
    """Does it change or try something? Looking around and committing do not."""
    return bool(step.edited) or (bool(step.ran.command) and step.kind not in ("look", "vcs"))


def is_typed_prompt(item: Item) -> bool:
    return item.kind == "prompt" and not item.actor


def _turn_index(item: Item, starts: Sequence[Item], times: Sequence[int]) -> int:
    """Which turn an item belongs to: that of its number, else the one that was going on. A result
    may come when the next prompt is already typed."""
    at = bisect_right(times, item.epoch) - 1
    if is_typed_prompt(item):
        while at >= 0 and starts[at] is not item:
            at -= 1
        return at
    if item.prompt_number and not item.actor:
        for near in (at, at - 1, at + 1):
            if 0 <= near < len(starts) and starts[near].prompt_number == item.prompt_number:
                return near
    return at


def inverts_edit(one: Step, other: Step) -> bool:
    """Does an edit put back what another one of the same file has replaced? Of one that was stored
    without structure, or cut, nobody knows."""
    if any(call is None or call.cut for call in (one.item.call, other.item.call)):
        return False
    former, now = (_replacements(each) for each in (one, other))
    long = sum(len(old) + len(new) for old, new in now) > _SHORTEST
    return long and former != now and sorted((new, old) for old, new in former) == now


def rewrites_edit(one: Step, other: Step) -> bool:
    """Does an edit put something else in the place of every line that another one has added?"""
    if any(call is None or call.cut for call in (one.item.call, other.item.call)):
        return False
    now = _replacements(other)
    added = {
        line.strip()
        for old, new in _replacements(one)
        for line in new.split("\n")
        if line.strip() and line not in old.split("\n")
    }
    return bool(added) and all(
        any(old and old in line and new not in line for old, new in now)
        or any(line in old and line not in new for old, new in now)
        for line in added
    )


def _replacements(step: Step) -> list[tuple[str, str]]:
    """What an edit replaced by what; the text at an item's end has lost its last line breaks."""
    return sorted((trim_text(old), trim_text(new)) for old, new in tools.replaced_texts(step.item))


def _own_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps of a turn, with the changes that are its work: not those that it has put back, nor
    what a shell has moved, patched or cleared away beside other work."""
    steps = list(steps)
    shells_count = not any(one.commits or (one.edited and not one.ran.command) for one in steps)
    undone: set[int] = set()
    edits = [one for one in steps if one.edited and not one.ran.command]
    for at, step in enumerate(edits):
        live = (one for one in edits[:at] if one.edited == step.edited and id(one) not in undone)
        if former := next((one for one in live if inverts_edit(one, step)), None):
            undone |= {id(former), id(step)}
    for step in steps:
        removed = () if step.failed else tools.removed_files(step.ran.command)
        for file in {file for one in edits for file in one.edited if _ends_in(file, removed)}:
            made = [one for one in edits if one.edited == (file,)]
            before = all(one.item.epoch <= step.item.epoch for one in made)
            if made and before and tools.makes_file(made[0].item):
                undone |= {id(one) for one in (*made, step)}
    for step in steps:
        if id(step) in undone:
            yield replace(step, edited=(), put_back=step.edited)
        else:
            counts = shells_count or not step.ran.command
            yield step if counts or not step.edited else replace(step, edited=())


def _ends_in(file: str, paths: Iterable[str]) -> bool:
    return any(f"/{file}".endswith(f"/{path.removeprefix('./')}") for path in paths)


def _make_view(
    prompt: Item | None, parts: list[tuple[Item, int]], steps: Mapping[int, Step]
) -> View:
    epochs = [item.epoch for item, _ in parts]
    return View(
        key=digest(prompt.ref) if prompt is not None else "0",
        number=prompt.prompt_number if prompt is not None else 0,
        prompt=prompt,
        said=tuple(
            item
            for item, _ in parts
            if (item.kind, item.role, item.actor) == ("message", "assistant", "")
        ),
        steps=tuple(_own_steps(steps[item.id] for item, _ in parts if item.id in steps)),
        started=min(epochs),
        ended=max(epochs),
        tokens=sum(tokens_of_length(length) for _, length in parts),
    )


def read_step(
    item: Item, length: int, skipped: frozenset[str], event: Event | None = None
) -> Step | None:
    """A use of a tool taken apart; None for anything else.

    `event` is what a hook told of it; `skipped` is what holds where the session said nothing else.
    """
    if item.role != "tool" or item.kind != "message":
        return None
    failed = "error" in item.tags
    why_not = no_observation(item.tool, length, failed, skipped)
    if event is not None and event.skipped not in ("", "short"):
        why_not = event.skipped
    edited = () if failed else own_files(item.files_modified)
    step = Step(item, edited, why_not=why_not)
    if item.tool.lower() not in SHELLS:
        if failed and load_pattern("tools", "refused").search(item.body[-_REFUSAL:]):
            step = replace(step, ran=Ran(refused=True))
        elif edited or step.asks:
            return step
        return replace(step, item=replace(item, body=item.body[:BRIEF_CHARS]))
    given, output = tools.split_call(item)
    status = item.call.status if item.call else None
    one = tools.read_run(tools.shell_command(item), output or "", failed, status)
    if item.call is not None and output is None and not one.status and status is None:
        one = replace(one, status=None)  # it was never told what came of it
    if tools.is_commit_refused(one):
        one = replace(one, status=one.status or 1)
    named = tools.command_kind(one.command)
    check = named in CHECKS
    commits = tuple(tools.find_commits(one))
    # A commit's hooks may run the tests.
    counts = tools.count_tests(one.output) if named == "test" or commits else NO_COUNTS
    errors = tuple(tools.find_errors(one.output)) if one.failed or check else ()
    if "stash" in one.command and _NOT_POPPED.search(output or ""):
        one = replace(one, status=1)
    changed = () if one.failed or one.refused else own_files(tools.changed_files(one.command))
    return replace(
        step,
        item=replace(item, body=given, call=None),
        edited=changed,
        ran=replace(one, output=""),
        kind=named,
        folder=tools.find_folder(item),
        main=tools.failed_part(one.command)
        if one.failed and not check
        else tools.main_part(one.command),
        errors=errors,
        counted=counts,
        commits=commits,
        rewrites=tools.find_rewrite(one),
        printed=tuple(tools.printed_commits(one)),
        pull_request=tools.find_pull_request(one),
        passed=tools.judge_check(one, counts, errors) if check or (commits and counts) else None,
    )


# --- read from the store -------------------------------------------------------------------------

# A result may come when the next prompt is already typed: then it belongs to the turn before.
_READ_BACK = LOOK_BACK + 1
_PAGE = 200  # items read at once
_STEPS = 25  # taken apart at once


@dataclass(frozen=True, slots=True)
class DistilRules:
    """What holds where a session did not say otherwise."""

    skipped: frozenset[str] = frozenset()
    most: int = 0  # new items looked at in one go, to the end of their turn; 0: all there are
    reader: TitleFinder | None = None  # names turns that have no commit; None: rules do

    @classmethod
    def of(cls, config: Config, reader: TitleFinder | None = None) -> DistilRules:
        return cls(frozenset(config.texts("skip_tools")), reader=reader)


def distilled_items(store: Store, session: int) -> list[Item]:
    """What a session was distilled into, by time, whatever became of it."""
    made = Filters(session_id=session, source=DISTILLED)
    return store.select(made, Paging(oldest_first=True, statuses=()))


def _earlier_prompt(store: Store, session: int, epoch: int, back: int) -> int:
    """When the prompt so many before the last one of that time was typed; 0: there is none, or so
    many of sub-agents lie between that all is read again."""
    filters = Filters(kinds=("prompt",), until=epoch + 1, session_id=session)
    prompts = store.select(filters, Paging(_PAGE, statuses=()))
    typed = [item.epoch for item in prompts if not item.actor]
    return typed[back] if back < len(typed) else 0


class History:
    """The turns since `first` can be made anew; those before them, as far as they have to do with
    them, are there, too."""

    def __init__(self, store: Store, session: int, since: int) -> None:
        self._store = store
        self._session = session
        self._since = since
        self.first = _earlier_prompt(store, session, since, _READ_BACK) if since else 0
        self.rest = 0  # where to go on another time; 0: this was all
        self.texts: dict[int, str] = {}  # item → the beginning of what a tool was given and gave
        self._items: list[tuple[Item, int]] = []
        self._steps: dict[int, Step] = {}
        self._todo: Item | None = None
        self._new = 0  # items since then

    def read_items(self, rules: DistilRules, excerpt: int = 0) -> Iterator[None]:
        """In small steps; `texts` has so many characters of each use of a tool."""
        store = self._store
        turns = store.entries(Turn, {"session": self._session})
        events = store.entries(Event, {"turn": [turn.id for turn in turns]})
        told = {event.item: event for event in events if event.item}
        begin = _earlier_prompt(store, self._session, self.first, _READ_BACK) if self.first else 0
        after = (begin - 1, 0)
        number = 0
        while page := store.history(self._session, BRIEF_TOOLS, BRIEF_CHARS, after, _PAGE):
            yield
            for item, length in page:
                if self._enough(item, rules.most):
                    self.rest = item.epoch
                    return
                self._new += item.epoch >= self._since
                step = read_step(item, length, rules.skipped, told.get(item.id))
                if step is None:
                    if item.type == "todo" and not item.actor:
                        self._todo = item
                    self._items.append((item, length))
                    continue
                self._items.append((step.item, length))
                self._steps[item.id] = step
                if excerpt:
                    self.texts[item.id] = item.body[:excerpt]
                number += 1
                if number % _STEPS == 0:
                    yield
            after = (page[-1][0].epoch, page[-1][0].id)

    def _enough(self, item: Item, most: int) -> bool:
        """Is here a turn to stop before, with enough that is new behind us?"""
        return (
            0 < most <= self._new
            and is_typed_prompt(item)
            and item.epoch > max(self._since, self._items[0][0].epoch)
        )

    def turns(self) -> list[View]:
        return group_turns(self._items, self._steps)

    def todo(self, turns: list[View]) -> str:
        """What was left to do when it was last said; not what nobody has spoken of for long, nor
        where a later turn has gone on from there. What was under way and was worked on since is
        done, and so is a check that passed."""
        if self._todo is None:
            return ""
        said = self._todo.epoch
        last = next((turn for turn in reversed(turns) if any(map(_works, turn.steps))), None)
        if last is None or said < max(last.started, turns[-LOOK_BACK:][0].started):
            return ""
        worked = any(step.edited or step.passed for step in last.steps if step.item.epoch > said)
        checked = any(step.passed for step in last.steps)
        return "\n".join(
            line
            for line in self._todo.body.split("\n")
            if not (worked and line.startswith("[>]")) and not (checked and _TO_CHECK.search(line))
        )
