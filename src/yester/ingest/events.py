"""Spooled events into the store: each exactly once, as items, turns and a row of its own.

A batch is one transaction. Its spool files go after the commit; when the worker is killed between
the two, the events' ids are in the store, and the second time nothing happens.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from yester.agents import hooks
from yester.agents.base import Options
from yester.agents.hooks import HookEvent
from yester.agents.values import decode_object
from yester.capture.rules import Rules
from yester.capture.spool import Spooled
from yester.config import Config
from yester.errors import SourceError
from yester.ingest import echo, noise
from yester.ingest.prepare import prepared
from yester.model import (
    Entry,
    Event,
    Filters,
    Item,
    Muted,
    OwedStart,
    Paging,
    Session,
    Skipped,
    Turn,
)
from yester.project import EXCLUDED, Projects
from yester.redact import redact
from yester.store.contract import Store

_SAME_TIME = 10 * 60_000  # ms between a hook and the record of the same thing in the transcript


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What is to become of an event."""

    told: HookEvent
    entries: tuple[Entry, ...] = ()
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch: the events that were new, those that were met again (what follows
    from them may not have happened) or made up for a trial, and those that are no JSON objects."""

    told: Mapping[str, HookEvent]  # by event id
    again: Mapping[str, HookEvent] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()


class Events:
    """The way in for events. Knows the settings; keeps nothing that is not in the store."""

    def __init__(
        self,
        store: Store,
        config: Config,
        rules: Rules,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._config = config
        self._rules = rules
        self._clock = clock
        self._options = Options(config.flag("thinking"), config.flag("subagents"))
        self.projects = Projects(config.projects, refuses=rules.excludes)

    def understand(self, spooled: Spooled) -> tuple[HookEvent, dict[str, Any]]:
        """Raises SourceError for a payload that is no JSON object."""
        payload: dict[str, Any] | None = {}
        if spooled.payload.strip():
            payload = decode_object(spooled.payload.decode("utf-8", "replace"))
        if payload is None:
            raise SourceError(f"event {spooled.id} is not a JSON object")
        told = hooks.read_payload(spooled.event, spooled.cwd, spooled.hints, payload, spooled.epoch)
        return told, payload

    def refused(self, told: HookEvent) -> str:
        """Why nothing of this event may be kept, or ""."""
        if self._rules.off(told.cwd, told.session, told.epoch):
            return "off"
        if told.session and self._store.entries(Muted, {"session": told.session}):
            return "off"
        return "excluded" if self.projects.of(told.cwd) == EXCLUDED else ""

    def session(self, told: HookEvent) -> Session:
        """The session as it is known, or as it begins: its first folder decides its project."""
        known = self._store.session(told.session, told.agent) if told.session else None
        if known is not None:
            return known
        project = self.projects.of(told.cwd)
        path = str(told.transcripts[0]) if told.transcripts else ""
        return Session(
            told.session, told.agent, project.key, told.epoch, told.epoch, told.cwd, "", "", path
        )

    def take(
        self, batch: Sequence[Spooled], before_storing: Callable[[], None] = lambda: None
    ) -> Taken:
        """Store a batch, all of it or nothing. `before_storing` is called when every event has been
        understood: from then on it may have to wait for other writers."""
        ids = [spooled.id for spooled in batch]
        known = self._known_events(ids)
        again: dict[str, HookEvent] = {}
        sessions: dict[tuple[str, str], Session] = {}
        weighed: list[tuple[Spooled, _Weighed]] = []
        for spooled in batch:
            try:
                told, payload = self.understand(spooled)
            except SourceError:
                nobody = HookEvent(spooled.event, "other", "", "", spooled.cwd, spooled.epoch)
                weighed.append((spooled, _Weighed(nobody, skipped="unreadable")))
                continue
            if told.session == hooks.TRIAL:  # its hook may yet ask, and that is all
                again[spooled.id] = told
                continue
            if spooled.id in known:  # it must not count for the numbers of prompts a second time
                again[spooled.id] = told
                continue
            key = (told.session, told.agent)
            if key not in sessions:
                sessions[key] = self.session(told)
            one = self._weigh(spooled, told, payload, sessions[key])
            if told.what == "prompt" and one.entries:
                first = one.entries[0].item
                sessions[key] = replace(
                    sessions[key], prompts=first.prompt_number,
                    title=sessions[key].title or first.title,
                )  # fmt: skip
            weighed.append((spooled, one))
        before_storing()
        with self._store.transaction("events"):
            known = self._known_events(ids)
            new = [pair for pair in weighed if pair[0].id not in known]
            rows = self._put_sessions(new, sessions)
            self._put_events(new, rows, self._put_items(new, rows))
        return Taken(
            {spooled.id: one.told for spooled, one in new},
            again,
            frozenset(s.id for s, one in weighed if one.skipped == "unreadable"),
        )

    def _known_events(self, ids: Sequence[str]) -> set[str]:
        return {event.id for event in self._store.entries(Event, {"id": ids})}

    # --- outside the lock --------------------------------------------------------------------

    def _weigh(
        self, spooled: Spooled, told: HookEvent, payload: dict[str, Any], session: Session
    ) -> _Weighed:
        if spooled.off:
            return _Weighed(told, skipped="off")
        if reason := self.refused(told):
            return _Weighed(told, skipped=reason)
        if not payload:
            return _Weighed(told, skipped="empty")
        if told.actor and not self._options.subagents:
            return _Weighed(told, skipped="sub-agent")
        tools = noise.skip_list(spooled.hints, self._config.texts("skip_tools"))
        if told.tool in tools and not told.failed:
            return _Weighed(told, skipped="skipped tool")
        told = hooks.add_items(
            told, payload, session, self.projects, self._options, f"hook:{spooled.id}"
        )
        if any(noise.own_answer(item) for item in told.items):
            return _Weighed(replace(told, items=()), skipped="own answer")
        reason = ""
        if told.tool:
            reason = noise.no_observation(told.tool, told.size, told.failed, tools)
        return _Weighed(told, tuple(map(prepared, told.items)), reason)

    # --- inside ------------------------------------------------------------------------------

    def _put_sessions(
        self, new: Sequence[tuple[Spooled, _Weighed]], sessions: dict[tuple[str, str], Session]
    ) -> dict[tuple[str, str], int]:
        ids: dict[tuple[str, str], int] = {}
        for spooled, one in new:
            told = one.told
            if one.skipped == "off" and spooled.off and told.session:
                self._store.append([Muted(told.session, told.epoch)])
            if one.skipped in ("off", "excluded") or not told.session:
                continue
            session = sessions[told.session, told.agent]
            self._store.put_project(self.projects.of(session.cwd))
            span = replace(session, started=session.started or told.epoch, ended=told.epoch)
            ids[told.session, told.agent] = self._store.put_session(
                replace(span, title=redact(session.title))
            )
        return ids

    def _put_items(
        self, new: Sequence[tuple[Spooled, _Weighed]], ids: dict[tuple[str, str], int]
    ) -> dict[str, tuple[int, ...]]:
        """Event id → its items, stored unless the transcript was there first."""
        found: dict[str, list[int]] = {}
        entries: list[tuple[str, Entry]] = []
        skipped: dict[str, Counter[str]] = {}
        for spooled, one in new:
            told = one.told
            counts = skipped.setdefault(told.agent, Counter())
            counts.update(told.skipped)
            if one.skipped:
                counts[one.skipped] += 1
            session = ids.get((told.session, told.agent), 0)
            for entry in one.entries:
                if known := self._known(entry.item, session, told.epoch):
                    found.setdefault(spooled.id, []).append(known)
                else:
                    again = self._repeats(entry.item, session)
                    entries.append((spooled.id, echo.marked(entry) if again else entry))
        self._store.put([entry for _, entry in entries])
        for event, entry in entries:
            found.setdefault(event, []).extend(
                item.id for item in self._store.find(entry.item.ref) if _same(item, entry.item)
            )
        for agent, counts in skipped.items():
            self._store.append([Skipped(agent, reason, n) for reason, n in counts.items()])
        return {event: tuple(items) for event, items in found.items()}

    def _known(self, item: Item, session: int, epoch: int) -> int:
        """The item as the transcript gave it, if it did; it is the whole truth. A call without its
        result is not."""
        for old in self._store.find(item.ref):
            if _same(old, item):
                grown = item.body.startswith(old.body) and len(item.body) > len(old.body)
                return 0 if grown and item.role == "tool" else old.id
        if item.role == "tool" or not session:
            return 0
        text = item.body.strip()
        return find_said(
            self._store, session, item.kind, item.actor, text, epoch - _SAME_TIME,
            epoch + _SAME_TIME,
        )  # fmt: skip

    def _repeats(self, item: Item, session: int) -> bool:
        return echo.may_repeat(item) and echo.repeats(
            item.body, echo.shown_texts(self._store, session, item.session), item.epoch
        )

    def _put_events(
        self,
        new: Sequence[tuple[Spooled, _Weighed]],
        ids: dict[tuple[str, str], int],
        items: dict[str, tuple[int, ...]],
    ) -> None:
        rows = []
        for spooled, one in new:
            told = one.told
            session = ids.get((told.session, told.agent), 0)
            made = items.get(spooled.id, (0,))[0]
            turn = 0
            if session:
                turn = self._turn(spooled, told, session, made)
                if told.what == "start" and not one.skipped:
                    self._owe(OwedStart(spooled.id, told.source, told.epoch, session))
            rows.append(
                Event(
                    spooled.id, told.name, told.epoch, session, turn, told.actor, told.tool,
                    told.failed, made, one.skipped,
                    noise.window(spooled.hints, self._config.number("batch_window_ms")),
                    max(0, int(self._clock() * 1000) - told.epoch),
                )
            )  # fmt: skip
        self._store.append(rows)

    def _owe(self, start: OwedStart) -> None:
        """Until a hook has said that it printed the block of this start."""
        known = next(iter(self._store.entries(OwedStart, {"session": start.session})), None)
        self._store.append([known.followed_by(start) if known else start])

    def _turn(self, spooled: Spooled, told: HookEvent, session: int, item: int) -> int:
        """The turn an event belongs to, brought up to date with it."""
        if told.what in ("start", "read", "agent start", "other"):
            return 0
        if told.what == "end":
            return self._end_open(session, told.epoch)
        turn = self._open_turn(session, told.turn) if told.turn else None
        if told.what == "prompt":
            if turn is None:
                self._end_open(session, told.epoch)
                turn = Turn(told.turn or spooled.id, session, item, started=told.epoch)
            turn = replace(turn, prompt=turn.prompt or item)
        else:
            if turn is None and not told.turn:
                turn = self._open_turn(session)
            if turn is None and told.what == "compaction":
                return 0  # /compact, between two turns
            turn = turn or Turn(told.turn or spooled.id, session, started=told.epoch)
        if told.what in ENDS and not told.actor:
            turn = replace(
                turn, ended=told.epoch, state=ENDS[told.what], closing=item or turn.closing,
                transcript=str(told.transcripts[0]) if told.transcripts else turn.transcript,
            )  # fmt: skip
        elif told.interrupted:
            turn = replace(turn, ended=told.epoch, state="interrupted")
        return self._store.append([turn])[0]

    def _open_turn(self, session: int, key: str = "") -> Turn | None:
        """The turn with this key; without one, the last that is open."""
        where = {"key": key} if key else {"state": "open"}
        found = self._store.entries(Turn, {"session": session, **where}, Paging(1))
        return found[0] if found else None

    def _end_open(self, session: int, epoch: int) -> int:
        """A turn whose Stop never came was interrupted."""
        turn = self._open_turn(session)
        if turn is None:
            return 0
        return self._store.append([replace(turn, state="interrupted", ended=epoch)])[0]

    def find_prompts(self, session: str, agent: str) -> None:
        """Give turns that began unseen their prompt, once the transcript has been read."""
        known = self._store.session(session, agent)
        if known is None:
            return
        turns = self._store.entries(Turn, {"session": known.id}, Paging(oldest_first=True))
        answered = {turn.prompt for turn in turns}
        for turn in turns:
            if turn.prompt or not turn.ended:
                continue
            filters = Filters(session=session, kinds=("prompt",), until=turn.started + 1)
            for prompt in self._store.select(filters, Paging(1)):
                if prompt.id not in answered:
                    with self._store.transaction("events"):
                        self._store.append([replace(turn, prompt=prompt.id)])


ENDS = {"stop": "done", "stop failure": "failed", "interrupt": "interrupted"}


def find_said(
    store: Store, session: int, kind: str, actor: str, text: str, since: int, until: int
) -> int:
    """The item of this session and actor with exactly this text, white space aside, that no event
    has told yet; the one nearest to the middle of this time, or 0."""
    around = Filters(kinds=(kind,), since=since, until=until + 1, session_id=session)
    end = actor.rpartition(":")[2]
    alike = [
        item
        for item in store.select(around, Paging(statuses=()))
        if item.body.strip(" \t\n\r") == text
        and (item.actor.endswith(end) if end else not item.actor)
    ]
    if not alike:
        return 0
    turns = [turn.id for turn in store.entries(Turn, {"session": session})]
    told = {event.item for event in store.entries(Event, {"turn": turns})}
    free = [item for item in alike if item.id not in told]
    nearest = min(free, key=lambda item: abs(2 * item.epoch - since - until), default=None)
    return nearest.id if nearest else 0


def _same(one: Item, other: Item) -> bool:
    return (one.source, one.kind) == (other.source, other.kind)
