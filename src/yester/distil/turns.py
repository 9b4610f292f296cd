"""A session's stored items as turns: a prompt, what was done about it, and how it ended.

Made of items alone, so what hooks told and what was read from a transcript later give the same. Of
events only what a session's own switches decided is looked at: which tools it skips, its window.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from yester.agents.transcript import digest
from yester.distil.commands import Ran, kind, ran
from yester.ingest import noise
from yester.model import Event, Item

# Of these only where they looked is of use, not what they saw; nor of what was thought.
BRIEF_TOOLS = frozenset(
    {
        "Read", "read", "read_file", "read_file_v2", "view", "Grep", "grep", "grep_search", "Glob",
        "glob", "LS", "list", "WebFetch", "webfetch", "WebSearch", "web_search", "ToolSearch",
        "Skill", "TaskOutput", "view_image",
    }
)  # fmt: skip
BRIEF_CHARS = 400
_ASKS = frozenset({"AskUserQuestion", "ask_user", "request_user_input"})
_SEARCHES = frozenset({"grep", "glob", "grep_search", "file_search", "codebase_search", "search"})
# Files that are nobody's work: notes of the client and scratch.
_SCRATCH = re.compile(
    r"(?:^|[/\\])(?:tmp|scratchpad|node_modules|Temp)[/\\]|[/\\]\.claude[/\\](?:plans"
    r"|projects|todos)[/\\]"
    r"|^/var/folders/|^~$"
)
_TOKEN_CHARS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One use of a tool. `why_not` says why it makes no observation of its own."""

    item: Item
    ran: Ran | None = None  # of a shell
    kind: str = ""  # of the command
    why_not: str = ""
    window: int = 0

    @property
    def failed(self) -> bool:
        if self.ran is not None:
            return self.ran.failed
        return "error" in self.item.tags

    @property
    def edited(self) -> tuple[str, ...]:
        return () if "error" in self.item.tags else own_files(self.item.files_modified)

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

    @property
    def closing(self) -> Item | None:
        """The agent's last word, if it came after its last deed."""
        if not self.said:
            return None
        last = self.said[-1]
        done = max((step.item.epoch for step in self.steps if not step.item.actor), default=0)
        return last if last.epoch >= done else None

    @property
    def edited(self) -> tuple[str, ...]:
        return as_one(file for step in self.steps for file in step.edited)

    @property
    def looked_at(self) -> tuple[str, ...]:
        changed = set(self.edited)
        files = (file for step in self.steps if not step.failed for file in step.item.files_read)
        return as_one(f for f in own_files(files) if f not in changed)

    @property
    def batches(self) -> list[list[Step]]:
        """What is worth an observation, with the uses of one tool that follow each other closely
        taken together."""
        by_item = {step.item.id: step for step in self.steps}
        return [
            [by_item[event.item] for event in batch]
            for batch in noise.batches(map(_as_event, self.steps))
        ]


def own_files(files: Iterable[str]) -> tuple[str, ...]:
    """Without scratch, each once."""
    return tuple(dict.fromkeys(file for file in files if not _SCRATCH.search(file)))


def as_one(files: Iterable[str]) -> tuple[str, ...]:
    """Each file once, by its shortest name: some are named from the root and from the project."""
    found = tuple(dict.fromkeys(files))
    return tuple(
        file for file in found if not any(file.endswith(f"/{other}") for other in found)
    )  # fmt: skip


def tokens(characters: int) -> int:
    return (characters + _TOKEN_CHARS - 1) // _TOKEN_CHARS


def views(
    items: Sequence[tuple[Item, int]],
    told: Mapping[int, Event],
    skipped: frozenset[str],
    window: int,
) -> list[View]:
    """The turns of a session, of its items by time, each with the length of its whole text.

    `told` has the event of an item that a hook told of; `skipped` and `window` are what holds where
    no session said otherwise. Items before the first prompt are a turn of their own.
    """
    starts: list[tuple[int, int, Item | None]] = []  # time, number, prompt
    for item, _ in items:
        if item.kind == "prompt" and not item.actor:
            starts.append((item.epoch, item.prompt_number, item))
    parts: dict[int, list[tuple[Item, int]]] = {}
    times = [epoch for epoch, _, _ in starts]
    for item, length in items:
        parts.setdefault(_place(item, starts, times), []).append((item, length))
    made = []
    for at in sorted(parts):
        prompt = starts[at][2] if at >= 0 else None
        made.append(_view(prompt, parts[at], told, skipped, window))
    return made


def _place(item: Item, starts: list[tuple[int, int, Item | None]], times: list[int]) -> int:
    """Which turn an item belongs to: that of its number, else the one that was going on. A result
    may come when the next prompt is already typed."""
    at = bisect_right(times, item.epoch) - 1
    if item.kind == "prompt" and not item.actor:
        while at >= 0 and starts[at][2] is not item:
            at -= 1
        return at
    if item.prompt_number and not item.actor:
        for near in (at, at - 1, at + 1):
            if 0 <= near < len(starts) and starts[near][1] == item.prompt_number:
                return near
    return at


def _view(
    prompt: Item | None,
    parts: list[tuple[Item, int]],
    told: Mapping[int, Event],
    skipped: frozenset[str],
    window: int,
) -> View:
    said, steps = [], []
    for item, length in parts:
        if item.role == "tool" and item.kind == "message":
            steps.append(_step(item, length, told.get(item.id), skipped, window))
        elif item.role == "assistant" and item.kind == "message" and not item.actor:
            said.append(item)
    epochs = [item.epoch for item, _ in parts]
    return View(
        digest(prompt.ref) if prompt is not None else "0",
        prompt.prompt_number if prompt is not None else 0,
        prompt,
        tuple(said),
        tuple(steps),
        min(epochs),
        max(epochs),
        sum(tokens(length) for _, length in parts),
    )


def _step(
    item: Item, length: int, event: Event | None, skipped: frozenset[str], window: int
) -> Step:
    failed = "error" in item.tags
    why_not = noise.no_observation(item.tool, length, failed, skipped)
    if event is not None:
        window = event.window
        if event.skipped not in ("", "short"):
            why_not = event.skipped
    step = Step(item, why_not=why_not, window=window)
    if item.tool.lower() in noise.SHELLS:
        one = ran(item.body, failed)
        return replace(step, ran=one, kind=kind(one.command))
    return step


def _as_event(step: Step) -> Event:
    item = step.item
    return Event(
        str(item.id),
        "PostToolUse",
        item.epoch,
        actor=item.actor,
        tool=item.tool,
        failed=step.failed,
        item=item.id,
        skipped=step.why_not,
        window=step.window,
    )
