"""Spooled events into the store: each exactly once, as items, turns and a row of its own.

A batch is one transaction. Its spool files go after the commit; when the worker is killed between
the two, the events' ids are in the store, and the second time nothing happens.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from yester import model
from yester.agents import hooks
from yester.agents.base import Options
from yester.agents.descriptors import find_agent
from yester.agents.hooks import HookEvent
from yester.agents.values import decode_object
from yester.capture.rules import Rules
from yester.capture.spool import Spooled
from yester.config import Config
from yester.errors import SourceError
from yester.folders import open_projects
from yester.ingest import prepare
from yester.ingest.projects import begin_folders
from yester.ingest.transcripts import Ingest
from yester.known_secrets import FoundSecrets
from yester.model import Entry, Event, Filters, Item, OwedStart, Paging, Session, Turn, replace
from yester.project import EXCLUDED
from yester.redact import redact
from yester.store import find_item
from yester.store.contract import Store

SAME_TIME = 10 * 60_000  # ms between a hook and the record of the same thing in the transcript


class _Judged(Struct):
    """An event, what is to be kept of it, and what it became."""

    told: HookEvent
    entries: tuple[Entry, ...] = ()
    skipped: str = ""
    session: int = 0
    items: list[int] = []


class Batch(Struct, frozen=True):
    """What became of a batch: the events that were new, those that were met again (what follows
    from them may not have happened) or made up for a trial, and those that are no JSON objects."""

    new: Sequence[HookEvent]
    again: Sequence[HookEvent]
    unreadable: Container[str]  # their ids


class Events(Struct, dict=True):
    """The way in for events. Knows the settings; keeps nothing that is not in the store."""

    store: Store
    config: Config
    rules: Rules
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._found = FoundSecrets(self.config.home)
        self._found.refresh()
        self.use_settings(self.config, self.rules)

    def use_settings(self, config: Config, rules: Rules) -> None:
        self.config, self.rules = config, rules
        self._options = Options(config.flag("thinking"), config.flag("subagents"))
        begin_folders(self.store, config.home)
        self.projects = open_projects(config, rules.excludes)

    def open_ingest(self, before_storing: Callable[[], None]) -> Ingest:
        """The way in for the transcripts that events name."""
        return Ingest(
            self.store, self.projects, self._options, self.rules, before_storing, self._found
        )

    def read_event(self, spooled: Spooled) -> tuple[HookEvent, dict[str, Any]]:
        """Raises SourceError for a payload that is no JSON object."""
        payload: dict[str, Any] | None = {}
        if spooled.payload.strip():
            payload = decode_object(spooled.payload.decode("utf-8", "replace"))
        if payload is None:
            raise SourceError(f"event {spooled.id} is not a JSON object")
        told = hooks.read_payload(spooled.event, spooled.cwd, spooled.hints, payload, spooled.epoch)
        return replace(told, id=spooled.id), payload

    def refusal(self, told: HookEvent) -> str:
        """Why nothing of this event may be kept, or ""."""
        if self.rules.is_off(told.cwd, told.session, told.epoch):
            return "off"
        if told.session and self.store.entries(model.Muted, {"session": told.session}):
            return "off"
        return "excluded" if self.projects.by_folder(told.cwd) == EXCLUDED else ""

    def session_of(self, told: HookEvent) -> Session:
        """The session as it is known, or as it begins: its first folder decides its project."""
        known = self.store.session(told.session, told.agent) if told.session else None
        if known is not None:
            return known
        project = self.projects.by_folder(told.cwd)
        path = str(told.transcripts[0]) if told.transcripts else ""
        return Session(
            told.session, told.agent, project.key, told.epoch, told.epoch, told.cwd, "", "", path
        )

    def take_batch(
        self, batch: Sequence[Spooled], before_storing: Callable[[], None] = lambda: None
    ) -> Batch:
        """Store a batch, all of it or nothing. `before_storing` is called when every event has been
        understood: from then on it may have to wait for other writers."""
        ids = [spooled.id for spooled in batch]
        known = {event.id for event in self.store.entries(Event, {"id": ids})}
        again: list[HookEvent] = []
        sessions: dict[tuple[str, str], Session] = {}
        new: list[_Judged] = []
        unreadable: set[str] = set()
        for spooled in batch:
            try:
                told, payload = self.read_event(spooled)
            except SourceError:
                unreadable.add(spooled.id)
                if spooled.id not in known:
                    name, cwd, epoch = spooled.event, spooled.cwd, spooled.epoch
                    nobody = HookEvent(name, "other", "", "", cwd, epoch, id=spooled.id)
                    new.append(_Judged(nobody, skipped="unreadable"))
                continue
            # Of a trial the hook may yet ask, and that is all; what is known must not count for the
            # numbers of prompts a second time.
            if told.session == hooks.TRIAL or spooled.id in known:
                again.append(told)
                continue
            key = (told.session, told.agent)
            session = sessions.get(key) or self.session_of(told)
            one = self._judge_event(told, payload, session)
            if told.what == "prompt" and one.entries:
                first = one.entries[0].item
                title = session.title or first.title
                session = replace(session, prompts=first.prompt_number, title=title)
            sessions[key] = session
            new.append(one)
        before_storing()
        with self.store.transaction("events"):
            self._put_sessions(new, sessions)
            self._put_items(new)
            self._put_events(new)
            prepare.spread_secrets(self.store, self._found)
        self._found.changed.clear()
        return Batch([one.told for one in new], again, unreadable)

    # --- outside the lock --------------------------------------------------------------------

    def _judge_event(self, told: HookEvent, payload: dict[str, Any], session: Session) -> _Judged:
        tools = prepare.skipped_tools(told.hints, self.config.texts("skip_tools"))
        reason = "off" if is_off(told) else self.refusal(told)
        if not payload:
            reason = reason or "empty"
        elif told.actor and not self._options.subagents:
            reason = reason or "sub-agent"
        elif told.tool in tools and not told.failed:
            reason = reason or "skipped tool"
        if reason or find_agent(told.agent).bell:
            return _Judged(told, skipped=reason)
        told = hooks.add_items(told, payload, session, self.projects, self._options)
        if any(map(prepare.is_own_answer, told.items)):
            return _Judged(replace(told, items=()), skipped="own answer")
        if told.tool:
            reason = prepare.no_observation(told.tool, told.size, told.failed, tools)
        entries = tuple(prepare.prepare_item(item, found=self._found) for item in told.items)
        return _Judged(told, entries, reason)

    # --- inside ------------------------------------------------------------------------------

    def _put_sessions(
        self, new: Sequence[_Judged], sessions: Mapping[tuple[str, str], Session]
    ) -> None:
        for one in new:
            told = one.told
            if one.skipped == "off" and is_off(told) and told.session:
                self.store.append([model.Muted(told.session, told.epoch)])
            if one.skipped in ("off", "excluded") or not told.session:
                continue
            session = sessions[told.session, told.agent]
            self.store.put_project(self.projects.by_folder(session.cwd))
            known = self._found.of_session(session.key)
            span = replace(session, started=session.started or told.epoch, ended=told.epoch)
            one.session = self.store.put_session(
                replace(
                    span,
                    title=redact(session.title, known=known),
                    cwd=redact(session.cwd, known=known),
                )
            )

    def _put_items(self, new: Sequence[_Judged]) -> None:
        """Unless the transcript was there first."""
        entries: list[tuple[_Judged, Entry]] = []
        skipped: dict[str, Counter[str]] = {}
        for one in new:
            counts = skipped.setdefault(one.told.agent, Counter())
            counts.update(one.told.skipped)
            if one.skipped:
                counts[one.skipped] += 1
            for entry in one.entries:
                if known := self._find_known(entry.item, one.session, one.told.epoch):
                    one.items.append(known)
                else:
                    shown = partial(
                        prepare.shown_texts, self.store, one.session, entry.item.session
                    )
                    entries.append((one, prepare.mark_echo(entry, shown)))
        self.store.put([entry for _, entry in entries])
        for one, entry in entries:
            stored = find_item(self.store, entry.item.identity)
            one.items += [stored.id] if stored else []
        for agent, counts in skipped.items():
            self.store.append([model.Skipped(agent, reason, n) for reason, n in counts.items()])

    def _find_known(self, item: Item, session: int, epoch: int) -> int:
        """The item as the transcript gave it, if it did; it is the whole truth. A call without its
        result is not."""
        if old := find_item(self.store, item.identity):
            return 0 if prepare.is_beginning(old, item) and item.role == "tool" else old.id
        if item.role == "tool" or not session:
            return 0
        return find_said(self.store, session, item, epoch)

    def _put_events(self, new: Sequence[_Judged]) -> None:
        rows = []
        window = self.config.number("batch_window_ms")
        for one in new:
            told = one.told
            item = one.items[0] if one.items else 0
            turn = 0
            if one.session:
                agent = find_agent(told.agent)
                turn = 0 if agent.bell else self._put_turn(one, item)
                lost = told.what == "compaction" and agent.owes_start
                if (told.what == "start" or lost) and not one.skipped:
                    source = "compact" if lost else told.source
                    self._owe_start(OwedStart(told.id, source, told.epoch, one.session))
            rows.append(
                Event(
                    told.id, told.name, told.epoch, one.session, turn, told.actor, told.tool,
                    told.failed, item, one.skipped, prepare.batch_window(told.hints, window),
                    max(0, int(self.clock() * 1000) - told.epoch),
                )
            )  # fmt: skip
        self.store.append(rows)

    def owe_compacted(self, compactions: Sequence[Item]) -> None:
        """A client that tells nobody of compactions has lost what was said at the start, too."""
        for item in compactions:
            agent = find_agent(item.agent)
            known = self.store.session(item.session, item.agent)
            if known and not item.actor and agent.owes_start and not agent.tells_of("compaction"):
                with self.store.transaction("events"):
                    self._owe_start(OwedStart(item.ref, "compact", item.epoch, known.id))

    def _owe_start(self, start: OwedStart) -> None:
        """Until a hook has said that it printed the block of this start."""
        known = next(iter(self.store.entries(OwedStart, {"session": start.session})), None)
        self.store.append([known.followed_by(start) if known else start])

    def _put_turn(self, one: _Judged, item: int) -> int:
        """The turn an event belongs to, brought up to date with it."""
        told, session, key = one.told, one.session, one.told.turn or one.told.id
        if told.what in ("start", "read", "act", "agent start", "other"):
            return 0
        if told.what == "end":
            return self._end_open_turn(session, told.epoch)
        turn = self._open_turn(session, told.turn) if told.turn else None
        if told.what == "prompt":
            if turn is None:
                self._end_open_turn(session, told.epoch)
                turn = Turn(key, session, item, started=told.epoch)
            turn = replace(turn, prompt=turn.prompt or item)
        else:
            if turn is None and not told.turn:
                turn = self._open_turn(session)
            if turn is None and told.what == "compaction":
                return 0  # /compact, between two turns
            turn = turn or Turn(key, session, started=told.epoch)
        if told.what in ENDS and not told.actor:
            turn = replace(
                turn, ended=told.epoch, state=ENDS[told.what], closing=item or turn.closing,
                transcript=str(told.transcripts[0]) if told.transcripts else turn.transcript,
            )  # fmt: skip
        elif told.interrupted:
            turn = replace(turn, ended=told.epoch, state="interrupted")
        return self.store.append([turn])[0]

    def _open_turn(self, session: int, key: str = "") -> Turn | None:
        """The turn with this key; without one, the last that is open."""
        where = {"key": key} if key else {"state": "open"}
        found = self.store.entries(Turn, {"session": session, **where}, Paging(1))
        return found[0] if found else None

    def _end_open_turn(self, session: int, epoch: int) -> int:
        """A turn whose Stop never came was interrupted."""
        turn = self._open_turn(session)
        if turn is None:
            return 0
        return self.store.append([replace(turn, state="interrupted", ended=epoch)])[0]

    def find_prompts(self, session: str, agent: str) -> None:
        """Give turns that began unseen their prompt, once the transcript has been read."""
        known = self.store.session(session, agent)
        if known is None:
            return
        turns = self.store.entries(Turn, {"session": known.id}, Paging(oldest_first=True))
        answered = {turn.prompt for turn in turns}
        for turn in turns:
            if turn.prompt or not turn.ended:
                continue
            filters = Filters(session=session, kinds=("prompt",), until=turn.started + 1)
            for prompt in self.store.select(filters, Paging(1)):
                if prompt.id not in answered:
                    with self.store.transaction("events"):
                        self.store.append([replace(turn, prompt=prompt.id)])


ENDS = {"stop": "done", "stop failure": "failed", "interrupt": "interrupted"}


def is_off(told: HookEvent) -> bool:
    """Has the user switched yester off for its session, where that began?"""
    return told.hints.get("off") == "1"


def find_said(store: Store, session: int, item: Item, epoch: int) -> int:
    """What somebody has said in this session in exactly the words of the item, white space aside,
    and no event has told yet; the one nearest to this time, or 0."""
    since, until = epoch - SAME_TIME, epoch + SAME_TIME + 1
    around = Filters(kinds=(item.kind,), since=since, until=until, session_id=session)
    text, end = item.body.strip(), item.actor.rpartition(":")[2]
    alike = [
        old
        for old in store.select(around, Paging(statuses=()))
        if old.body.strip(" \t\n\r") == text and (old.actor.endswith(end) if end else not old.actor)
    ]
    if not alike:
        return 0
    turns = [turn.id for turn in store.entries(Turn, {"session": session})]
    told = {event.item for event in store.entries(Event, {"turn": turns})}
    free = [old for old in alike if old.id not in told]
    nearest = min(free, key=lambda old: abs(old.epoch - epoch), default=None)
    return nearest.id if nearest else 0
