"""What the worker answers: the context a hook asks for, what the command line wants to know.

Whatever goes wrong here, the agent goes on without us: no answer is an answer.

An answer is in the ledger, and what it shows counts as known, when it is known to have arrived. A
start block that has not is owed: the session's next answer that the agent itself reads brings it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yester import __version__, git, model
from yester.agents.descriptors import CLAUDE_CODE, find_agent
from yester.agents.hooks import TRIAL, HookEvent
from yester.capture.spool import NewerFormat, Spool, peek_event, read_event
from yester.cards.tools import typed_command
from yester.clock import DAY
from yester.config import Config
from yester.context.block import Context, Shown, join_contexts
from yester.context.cards import find_open_ends, read_cards
from yester.errors import SourceError, StoreError
from yester.fence import MOST_UNITS, count_units
from yester.ingest.events import Events, is_off
from yester.memory import Memory
from yester.model import (
    Event,
    Feedback,
    Filters,
    Injection,
    Item,
    OwedStart,
    Paging,
    Project,
    Session,
    replace,
)
from yester.operations import actions
from yester.operations.actions import build_action_context
from yester.operations.context import EVENTS, ContextRequest, build_context
from yester.recall.recall import Asked, answer_question
from yester.recall.staleness import GitFacts, Work
from yester.store.contract import Store
from yester.store.figures import has_vectors
from yester.worker.process import Log

if TYPE_CHECKING:
    from yester.text.embed import Embedder
    from yester.worker.jobs import Background

_GLANCE, _MOST_OPEN = 10_000, 9  # ms for which a status line's count holds; what it counts to
_ACTIONS = frozenset(actions.EVENTS.values())
ASKING = _ACTIONS.union(EVENTS.values())
_EVENT_NAMES = {what: name for name, what in EVENTS.items()}
_LONGEST_RECENT = 200_000  # characters of an event that is held for its hook
_ANNOUNCING = ("start", "prompt", "stop")  # with which a user is told what became of rules
_MOST_NEWS = 3
_LAST_PROMPTS = 3  # typed before a turn's end
_MANY = 20  # answers whose times wait to be written
_RECENT = 64  # events whose hook may still ask
_LOOKED_THROUGH = 256  # files of the spool, for a start that is not taken in yet
_START = "SessionStart"
_NOTHING = Context()
_LATE_START = 600  # tokens; beside it there is room for what fits the prompt
# Seconds git may take: before the first prompt, at a prompt (what was read ahead must do), and
# where a person waits who has asked.
_AT_START, _AT_PROMPT, _ASKED = 0.05, 0.03, 0.1
_LOOKING = 0.15  # the same for a look at a folder, in the background
_BACK = 90 * DAY  # of history read ahead


def render_answer(
    client: str, event: str, text: str, message: str = "", decision: Mapping[str, str] | None = None
) -> bytes:
    """The bytes to print, b"" for nothing to say or for an event that takes no context. The message
    is for the user: the client shows it, and no model reads it. What the user has decided about a
    tool goes to the client that is known to take it; elsewhere the rule is told."""
    agent = find_agent(client)
    answer: dict[str, Any] = {}
    if text and event in agent.answerable:
        sound = text.encode("utf-8", "replace").decode()  # a lone surrogate: no reason for silence
        if agent.answer_form == "plain":
            return sound.encode()
        answer = {agent.answer_form: sound}
        if agent.answer_form == "nested":
            output = {"hookEventName": event, "additionalContext": sound}
            if decision and client == CLAUDE_CODE.name:
                output |= decision
            answer = {"hookSpecificOutput": output}
    if message:
        answer["systemMessage"] = message
    return msgspec.json.encode(answer) if answer else b""


def describe_decision(context: Context) -> dict[str, str]:
    """The user's own word about a tool: the client asks, or does not use it."""
    if not context.decision:
        return {}
    return {
        "permissionDecision": "deny" if context.decision == "block" else context.decision,
        "permissionDecisionReason": f"yester: {context.why}",
    }


def describe_given(block: Context, fitting: Context) -> str:
    """One line for the user: what is open at a start, what was found for a prompt or a file; ""
    where there is neither."""
    left = dict.fromkeys(f"#{one.item}" for one in block.shown if one.reason == "open")
    found = dict.fromkeys(f"#{one.item}" for one in fitting.shown if one.tokens)
    parts = (
        f"{len(left)} open from earlier sessions ({', '.join(left)})" if left else "",
        f"{len(found)} given to the agent ({', '.join(found)})" if found else "",
    )
    return "yester: " + "; ".join(filter(None, parts)) if left or found else ""


class Delivery(msgspec.Struct, frozen=True):
    """An answer, and what is to be written down once it has arrived."""

    event: HookEvent  # that is answered
    body: bytes = b""
    lines: tuple[tuple[str, Shown], ...] = ()  # by the event they belong to
    start: str = ""  # the SessionStart whose block it brings
    news: tuple[Feedback, ...] = ()  # of what the user is told


class Answers:
    """`close` it at the end."""

    def __init__(
        self, home: Path, spool: Spool, events: Events, background: Background, log: Log
    ) -> None:
        self._spool = spool
        self._store = events.store
        self._events, self._background = events, background
        self._recent: deque[HookEvent] = deque(maxlen=_RECENT)
        self._arrived: list[Delivery] = []  # and still to be written down
        self._starts: set[str] = set()  # whose block is on its way, or has arrived
        self._took: list[model.Answered] = []  # after how many ms hooks were answered
        self.awaited: set[str] = set()  # sessions at whose next end of a turn a rule is announced
        self._memory = WorkerMemory(home, events, background, log)
        self._open_ends: dict[str, tuple[int, int]] = {}  # project → when counted, how many

    def close(self) -> None:
        self._memory.stop_looking()
        if self._took:
            with suppress(StoreError, OSError), self._store.transaction("ledger"):
                self._store.append(self._took)

    def remember_event(self, event: HookEvent) -> None:
        """An event that has left the spool; its hook may yet ask."""
        shows = find_agent(event.agent).shows_messages and not event.actor
        if event.what == "prompt" and shows and self._speaks_of_rules(event.prompt):
            self.awaited.add(event.session)
        asks = event.what in ASKING or (event.what == "stop" and event.session in self.awaited)
        if asks and event.size < _LONGEST_RECENT:
            self._recent.append(event)

    @staticmethod
    def _speaks_of_rules(prompt: str) -> bool:
        from yester.memories.typed import is_command
        from yester.memories.utterances import find_utterances

        return is_command(prompt) or any(one.kind != "decision" for one in find_utterances(prompt))

    def note_deeds(self, events: Sequence[HookEvent]) -> None:
        """An edited file that something shown in this session is about, a command that it is: it
        was acted on."""
        rows = []
        find_shown = cache(self._shown_items)
        for one in events:
            edited = {name for item in one.items for name in item.files_modified}
            typed = {typed_command(item) for item in one.items if not one.failed} - {""}
            rows += [
                Feedback(item.id, "acted", one.epoch, session)
                for session, item in (find_shown(one.session, one.agent) if edited or typed else ())
                if edited & set(item.files_modified) or typed_command(item) in typed
            ]
        if rows:
            with self._store.transaction("ledger"):
                self._store.append(rows)

    def _shown_items(self, key: str, agent: str) -> list[tuple[int, Item]]:
        """What a session was shown unasked, each with the session's number."""
        session = self._store.session(key, agent)
        if session is None:
            return []
        ledger = self._store.entries(Injection, {"session": session.id})
        ids = {row.item for row in ledger if row.event != model.ON_REQUEST}
        return [(session.id, item) for item in self._store.get(sorted(ids))]

    def find_event(self, id_: str) -> HookEvent | None:
        """What the asking hook has told: still in the spool, or just taken in."""
        if path := self._spool.find_event(id_):
            return self._read_spooled(path)
        return next((event for event in self._recent if event.id == id_), None)

    def _read_spooled(self, path: Path) -> HookEvent | None:
        with suppress(OSError, ValueError, NewerFormat, SourceError):
            return self._events.read_event(read_event(path))[0]
        return None

    def answer_hook(self, event: HookEvent) -> Delivery:
        """What the hook prints; `settle_delivery` when it is known whether it has. May raise
        anything: the caller answers nothing then."""
        if event.session == TRIAL:
            body = render_answer(event.agent, event.name, f"yester {__version__} answers")
            return Delivery(event, body)
        began = time.perf_counter()
        try:
            return self._make_delivery(event)
        finally:
            ms = round((time.perf_counter() - began) * 1000)
            self._took.append(model.Answered(event.epoch // DAY, ms))

    def settle_delivery(self, delivery: Delivery, arrived: bool) -> None:
        """The hook has printed it, or it has not."""
        if arrived and (delivery.lines or delivery.start or delivery.news):
            self._arrived.append(delivery)
        else:
            self._starts.discard(delivery.start)

    def _make_delivery(self, event: HookEvent) -> Delivery:
        if self._events.refusal(event):
            return Delivery(event)
        if event.what == "stop":
            return self._announce_rules(event)
        if event.what not in _ACTIONS:
            self._background.work.load_soon()
        start = self._start_to_give(event)
        block = self._start_block(event, start) if start is not None else _NOTHING
        fitting = _NOTHING
        if event.what in _ACTIONS:
            fitting = self._action_context(event)
        elif event.what != "start":
            fitting = self._event_context(event, block)
        if event.what not in _ACTIONS:
            self._memory.look_again(event.cwd)
        shows = find_agent(event.agent).shows_messages and not event.actor
        shows = shows and self._memory.config.flag("announce")
        news = self._find_news(event) if shows else []
        given = describe_given(block, fitting) if shows else ""
        message = "\n".join(filter(None, (*(text for _, text in news), given)))
        whole = join_contexts(block, fitting)
        decision = describe_decision(whole)
        body = render_answer(event.agent, event.name, whole.text, message, decision)
        lines = [(_START, one) for one in block.shown] + [
            (event.name, one) for one in fitting.shown
        ]
        told = tuple(one for one, _ in news)
        delivery = Delivery(event, body, tuple(lines) if body else (), news=told)
        if start is None or (block.text and not body):  # (this client takes no text here)
            return delivery
        self._starts.add(start.event)
        if not block.text:  # nothing to say is owed to nobody, whatever becomes of the rest
            self._arrived.append(Delivery(event, start=start.event))
            return delivery
        return replace(delivery, start=start.event)

    def has_typed(self, event: HookEvent) -> bool:
        """Is the session's last prompt in its transcript?"""
        from yester.memories.typed import is_forged

        prompts = self._last_prompts(self._events.session_of(event))
        return bool(prompts) and any(
            one.body == prompts[0].body and not is_forged(one) for one in prompts
        )

    def _last_prompts(self, session: Session) -> list[Item]:
        """The newest first."""
        last = Filters(session_id=session.id, kinds=("prompt",))
        return self._store.select(last, Paging(_LAST_PROMPTS)) if session.id else []

    def _announce_rules(self, event: HookEvent) -> Delivery:
        """At the end of a turn in which the user typed one; the transcript has been read."""
        from yester.memories.typed import keep_rules

        self.awaited.discard(event.session)
        if not self._memory.config.flag("announce"):
            return Delivery(event)
        session = self._events.session_of(event)
        keep_rules(self._store, session, reversed(self._last_prompts(session)), event.epoch)
        news = self._find_news(event)
        message = "\n".join(text for _, text in news)
        body = render_answer(event.agent, event.name, "", message)
        return Delivery(event, body, news=tuple(one for one, _ in news))

    def _find_news(self, event: HookEvent) -> list[tuple[Feedback, str]]:
        """What became of rules that the user typed: in this session, at a start in any."""
        if event.what not in _ANNOUNCING:
            return []
        from yester.memories.typed import find_news

        session = "" if event.what == "start" else event.session
        return find_news(self._store, session, event.epoch)[:_MOST_NEWS]

    def _start_to_give(self, event: HookEvent) -> OwedStart | None:
        """The start whose block is to be given now. What a sub-agent is told only it reads."""
        if event.what not in ("start", "prompt", "read") or event.actor or not event.session:
            return None
        session = self._events.session_of(event)
        owed = self._store.entries(OwedStart, {"session": session.id}) if session.id else []
        known = next((one for one in owed if one.event not in self._starts), None)
        if event.what == "start":
            new: OwedStart | None = OwedStart(event.id, event.source, event.epoch)
        else:
            new = self._start_in_spool(event)
        return known.followed_by(new) if known and new else new or known

    def _start_in_spool(self, event: HookEvent) -> OwedStart | None:
        """A start of the same session that has not been taken in: nobody was there, or too busy."""
        before = [path for path in self._spool.list_waiting() if path.name < event.id]
        for path in reversed(before[-_LOOKED_THROUGH:]):
            start = self._read_spooled(path) if peek_event(path)[1] == _START else None
            if start is None or (start.session, start.agent) != (event.session, event.agent):
                continue
            settled = path.name in self._starts or self._store.entries(Event, {"id": path.name})
            if settled or is_off(start) or self._events.refusal(start):
                return None
            return OwedStart(path.name, start.source, start.epoch)
        return None

    def answer_recall(self, text: str, root: str) -> bytes | None:
        """For the command line, which would have to load the model first."""
        memory = self._patient_memory()
        if memory.search_embedder is None and memory.config["embedder"] != "none":
            self._background.work.load_soon()
            if has_vectors(self._store):
                return None  # not loaded yet: the command does it itself
        asked = msgspec.json.decode(text, type=Asked)
        fates = memory.judge_staleness(root) if root else None
        found = answer_question(self._store, asked, memory.weights, memory.search_embedder, fates)
        return msgspec.json.encode(found)

    def print_recall(self, words: Sequence[str], cwd: str) -> bytes | None:
        """What `yester recall WORDS` prints in this folder. None: the command does it itself, as it
        must where something is to be said besides."""
        memory = self._patient_memory(cwd)
        if memory.search_embedder is None or memory.config.warnings:
            return None
        from yester.faces.cli.recall import print_recall

        return print_recall(memory, words)

    def describe_session(self, key: str, cwd: str) -> str:
        """yester: 2 open · 3 given: what is open in the folder's project, how many memories this
        session was given."""
        store, now = self._store, self._memory.now
        project = self._events.projects.by_folder(cwd).key if cwd else ""
        epoch, ends = self._open_ends.get(project, (0, 0))
        if project and now > epoch + _GLANCE:
            cards = read_cards(store, Filters(projects=(project,)))
            ends = sum(1 for _ in islice(find_open_ends(cards), _MOST_OPEN))
            self._open_ends[project] = now, ends
        mine = store.sessions(Filters(session=key), Paging(1)) if key else []
        rows = store.entries(Injection, {"session": mine[0].id}) if mine else []
        given = len({row.item for row in rows})
        told = [f"{number} {what}" for number, what in ((ends, "open"), (given, "given")) if number]
        return f"yester: {' · '.join(told) or 'on'}"

    def _patient_memory(self, cwd: str = "") -> WorkerMemory:
        """The same for a person who has asked, in this folder."""
        memory = copy(self._memory)
        memory.cwd, memory.patience = cwd, _ASKED
        memory.origin = "agent"  # who asks is not known: the command may be more generous
        return memory

    def write_ledger(self, left: Container[str]) -> None:
        """The ledger of what was shown; written after the event, since only then the session is
        sure to be known, and the agent does not wait for it. `left`: files that stay in the spool.
        """
        stored = [
            one
            for one in self._arrived
            if one.event.id in left or self._spool.find_event(one.event.id) is None
        ]
        rows: list[Injection | Feedback] = []
        starts = []
        for delivery in stored:
            event = delivery.event
            session = self._store.session(event.session, event.agent)
            if session is None:
                continue
            rows += [
                Injection(
                    session.id, name, one.item, one.score, one.tokens, event.epoch, one.reason,
                    session.prompts,
                )
                for name, one in delivery.lines
            ]  # fmt: skip
            rows += delivery.news
            if delivery.start:
                starts.append((session.id, delivery.start))
        if rows or starts or len(self._took) >= _MANY:  # a number is not worth a write of its own
            with self._store.transaction("ledger"):
                self._store.append(rows)
                for id_, start in starts:
                    self._store.retract(OwedStart, {"session": id_, "event": start})
                self._store.append(self._took)
            self._took.clear()
        for delivery in stored:
            self._arrived.remove(delivery)
            self._starts.discard(delivery.start)

    def _start_block(self, event: HookEvent, start: OwedStart) -> Context:
        """What this start should have been answered; as of then, where it is late."""
        request = replace(self._make_request(event), event=_START, source=start.source)
        if event.what != "start":
            request = replace(request, now=start.epoch, budget=_LATE_START)
        return build_context(self._memory, request)

    def _event_context(self, event: HookEvent, block: Context) -> Context:
        """What is given for an event; `block`: what the same answer brings besides."""
        shown = self._shown_lines(event) if event.what in ("prompt", "read") else []
        beside = count_units(block.text) + 1 if block.text else 0
        request = replace(
            self._make_request(event),
            known={one.item for one in shown} | {one.item for one in block.shown},
            spent=sum(one.tokens for one in shown if one.event != model.ON_REQUEST),
            known_files={one.reason.removeprefix("file ") for one in shown},
            units=MOST_UNITS - beside,
        )
        return build_context(self._memory, request)

    def _action_context(self, event: HookEvent) -> Context:
        """What is known about a use of a tool. Of lines that have arrived some may not be in the
        ledger yet: uses of tools follow each other closely."""
        own = [one for one in self._arrived if one.event.session == event.session]
        facts = {line.reason for one in own for _, line in one.lines}
        facts |= {one.reason for one in self._shown_lines(event)}
        return build_action_context(self._memory, event, self._project_of(event), facts)

    def _shown_lines(self, event: HookEvent) -> list[Injection]:
        session = self._events.session_of(event)
        return self._store.entries(Injection, {"session": session.id}) if session.id else []

    def _project_of(self, event: HookEvent) -> Project:
        return self._events.projects.by_key(self._events.session_of(event).project)

    def _make_request(self, event: HookEvent) -> ContextRequest:
        return ContextRequest(
            _EVENT_NAMES[event.what], event.cwd, event.prompt, event.file,
            project=self._project_of(event), session=event.session, source=event.source,
            variables=event.hints, client=event.agent,
        )  # fmt: skip


class WorkerMemory(Memory):
    """The worker's own store, settings and model. Git is asked in the background: a hook does not
    wait for it, or not longer than `patience` seconds. What it said last is used, and it is asked
    again for the next time. This belongs to the worker: do not close it."""

    patience = _AT_PROMPT

    def __init__(self, home: Path, events: Events, background: Background, log: Log) -> None:
        super().__init__(home, {}, who="worker", ask_worker=None)
        self._events, self._background, self._log = events, background, log
        self._signals: dict[str, git.Signals] = {}  # of folders, as they were last
        self._looks: dict[str, Future[None]] = {}
        self._thread = ThreadPoolExecutor(1, "git")
        self._git_facts = GitFacts()  # also for those who are more patient

    @property
    def store(self) -> Store:
        return self._events.store

    @property
    def reading(self) -> Store:
        return self._events.store

    @property
    def config(self) -> Config:
        return self._events.config

    @property
    def search_embedder(self) -> Embedder | None:
        """The model, once it is loaded."""
        return self._background.work.embedder

    def git_signals(self, folder: str, wait: bool = True) -> git.Signals:
        """What a folder looks like, where that is known soon enough, else looked like last."""
        if wait:
            with suppress(TimeoutError):
                self.look_again(folder).result(max(self.patience, _AT_START))
        return self._signals.get(folder, git.Signals())

    def look_again(self, folder: str) -> Future[None]:
        """For the next time. Not while an answer is made: git and Python would slow it down."""
        look = self._looks.get(folder)
        if look is None or look.done():
            look = self._looks[folder] = self._thread.submit(self._look, folder)
        return look

    def stop_looking(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _look(self, folder: str) -> None:
        with self._log.survive("asking git"):
            found = git.collect_signals(folder, time.monotonic() + _LOOKING)
            self._signals[folder] = found
            if found.head and found.recent:
                # The history, before a hook needs it to judge what it found.
                work = Work(0, int(time.time() * 1000) - _BACK, found.recent[:1])
                deadline = time.monotonic() + _LOOKING
                self._thread.submit(self.git_facts.gather_facts, folder, [work], deadline)
