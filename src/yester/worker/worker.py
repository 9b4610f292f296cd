"""The worker: one small process that takes in what hooks leave and answers those that ask.

One thread and one selector. Work is done in slices of a few hundredths of a second, so that a hook
that asks is answered between two of them, whatever else there is to do. What waits for a model is
done by a thread (`jobs.Work`).
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

import yester
from yester import machine
from yester.agents.hooks import HookEvent
from yester.capture.rules import load_rules, write_hook_rules
from yester.capture.spool import open_spool
from yester.config import Config, load_config
from yester.context.actions import list_armed
from yester.errors import ConfigError, StoreBusy, StoreError, StoreNewer, StoreReplaced
from yester.files import update_file
from yester.ingest.events import Events
from yester.ingest.projects import describe_joins, join_next
from yester.ingest.transcripts import rebuild_if_stale
from yester.operate.backups import open_safely
from yester.operations.actions import switched_off
from yester.store import find_target
from yester.worker.answers import Answers, Delivery
from yester.worker.intake import Intake
from yester.worker.jobs import (
    Background,
    Chore,
    Distilling,
    Exchanging,
    FollowingNotes,
    Step,
    current_ms,
)
from yester.worker.process import Log, installed_version, version_numbers
from yester.worker.socket import Bell, Door, Later, Reply
from yester.worker.watchdog import HUNG, Marks, Watchdog

SLICE = 0.04  # seconds of work before somebody who asks gets a turn
TICK = 30.0  # seconds between looks at what no wake-up tells of
_BUSY_PAUSE, _ERROR_PAUSE = 0.05, 5.0
_AT_STOP = 0.2  # seconds for a transcript whose user has typed a rule; the client waits
_PATIENCE = 0.25  # seconds for another writer's batch; then others get a turn first


class Worker:
    """Make it, `run` it, `close` it; the caller holds the seat."""

    def __init__(
        self,
        home: Path,
        idle: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        hung: float = HUNG,
    ) -> None:
        self.home, self._clock, self._hung = home, clock, hung
        self.leaving = ""  # why it ends: stopped, idle, new version, lost
        self.resting = 0.0  # until then: the store could not be written to
        self._log = Log(home / "logs")
        self._config = self._load_settings()
        self._idle = self._config.number("worker_idle_minutes") * 60.0 if idle is None else idle
        self._started, self._ticked = time.time(), clock()
        self._installed = installed_version()
        self._running = False  # not where it only drains
        self._jobs_wait = True
        self._awaited: frozenset[str] = frozenset()  # sessions whose end of a turn is armed
        self._armed_at = ""  # how far the store had come when run/armed was written
        self._spool = open_spool(home, os.environ)
        self._spool.make_folders()
        self._background = Background(self._config, self._log, self._hear_background)

        self._selector = selectors.DefaultSelector()
        self._bell = Bell(home / "run" / "wake")
        self._selector.register(self._bell, selectors.EVENT_READ, self._hear_bell)
        self._door = Door(home / "run", self._selector, self._answer_request, clock)
        _mark_no_gap(home / "run" / "gap")
        self._watchdog = Watchdog(home / "logs" / "worker.log")
        self._marks = Marks(home / "run" / "working", yester.__version__, time.time())
        if self._marks.found:
            kind = self._marks.found[0].kind
            self._log.say(f"the worker before this one failed: it ended in its work ({kind})")
        if self._marks.another_version:  # which may manage what the former one could not
            self._spool.put_back()

        self._target = find_target(home)
        self._store = open_safely(home, self._config, current_ms(), _PATIENCE, self._target)
        self._events = Events(self._store, self._config, load_rules(self._config))
        self._answers = Answers(home, self._spool, self._events, self._background, self._log)
        self._intake = Intake(
            self._spool, self._events, self._log, self._watchdog, self._marks, self._answers,
            self._items_stored, self._refresh_settings, clock,
        )  # fmt: skip
        self._distilling = Distilling(
            self._store, self._log, self._marks, self._follow_distilled, reader=self._background
        )
        self._arming = Chore("arming hooks", self._arm_hooks, self._log)
        # What nobody waits for, in this order.
        self._jobs: tuple[Step, ...] = (
            Chore("joining work trees", self._join_next, self._log).step,
            self._arming.step,
            self._distilling.step,
            FollowingNotes(self._store, self._log).step,
            Exchanging(self._log, "roam").step,
            Exchanging(self._log, "share").step,
        )
        self._use_settings()

    # --- the loop ----------------------------------------------------------------------------

    def run(self) -> str:
        """Until told to stop, idle for long, or replaced; the reason."""
        self._log.say(f"started: yester {yester.__version__}, pid {os.getpid()}")
        self._running = True
        self._use_settings()
        self._watchdog.start(self._hung)
        self._marks.catch_faults()
        while not self.leaving:
            self._watchdog.sleep()
            ready = self._selector.select(min(self._seconds_to_rest(), self._door.seconds_left()))
            self._watchdog.watch()
            for key, mask in ready:
                key.data(mask)
            self._door.drop_overdue()
            self._door.answer_later_ones()
            until = self._clock() + SLICE
            self._take_in(until)
            self._run_jobs(until)
            self._look_around()
        self._marks.end_marking()
        self._door.await_acknowledgements()  # else it would be told once more
        self.drain()
        self._watchdog.close()
        return self.leaving

    def close(self) -> None:
        for part in (
            self._watchdog, self._marks, self._background, self._answers, self._door, self._store,
            self._bell, self._selector,
        ):  # fmt: skip
            part.close()
        events = self._intake.events
        self._log.say(f"ended: {self.leaving or 'closed'}, {events} events taken")

    def drain(self) -> int:
        """Take in everything the spool and the transcripts hold now; the number of events."""
        before = self._intake.events
        self.resting, self._intake.more = 0.0, True
        while self._intake.make_all_due() and not self.resting:
            self._take_in(self._clock() + 1.0)
        return self._intake.events - before

    def _take_in(self, until: float) -> None:
        """What hooks have left, for a while."""
        if self.resting > self._clock():
            return
        self.resting = 0.0
        self._watchdog.watch()
        with self._rests_after_errors("writing"):
            try:
                self._refresh_settings()
                with self._watchdog.asleep():  # over all items, in one transaction
                    rebuild_if_stale(self._store)
                self._intake.work_until(until)
                if self._answers.awaited != self._awaited:
                    self._arming.waits = self._jobs_wait = True
            except (StoreError, OSError):
                raise
            except BaseException as error:
                self._marks.leave_word(error)
                raise

    def _run_jobs(self, until: float) -> None:
        """What nobody waits for: only when events and transcripts are taken in."""
        with self._rests_after_errors("distilling"):
            while not (self._intake.at_work or self.resting) and self._clock() < until:
                self._watchdog.watch()
                if not any(step(self._config) for step in self._jobs):
                    self._jobs_wait = False
                    break

    def _join_next(self, _: Config) -> bool:
        """A project of an older version that is a work tree which is gone."""
        with self._watchdog.asleep():  # over all items of a project, in one transaction
            found = join_next(self._store, self._events.projects, current_ms())
        if found is not None:
            self._log.say(f"joined: {describe_joins(self._store, [found])}, {found.items} items")
        return found is not None

    def _arm_hooks(self, config: Config) -> bool:
        """run/armed: the words at which hooks of tools ask (`context.actions`)."""
        self._armed_at = self._store.feed()[1]
        path = self.home / "run" / "armed"
        self._awaited = frozenset(self._answers.awaited)
        stops = [f'Stop "{session}"' for session in self._awaited]
        if lines := stops + list_armed(self._store, switched_off(config)):
            update_file(path, "".join(f"{line}\n" for line in lines))
        else:
            path.unlink(missing_ok=True)
        return False

    def _follow_distilled(self, session: int) -> None:
        self._arming.waits = True
        self._background.work.add_session(session)

    @contextmanager
    def _rests_after_errors(self, what: str) -> Iterator[None]:
        """What is wrong with the store or the disk may be over after a while. The marks stay where
        anything else ends us."""
        try:
            yield
        except StoreBusy:
            self.resting = self._clock() + _BUSY_PAUSE
        except (StoreReplaced, StoreNewer):
            # Begin anew, with the store and the yester that are there now. Where that one is too
            # old for the store, it says so and ends; the spool waits for a newer one.
            self._leave("new version")
            self.resting = self._clock() + _BUSY_PAUSE
        except (StoreError, OSError) as error:
            self._log.say_failure(what, error)
            self.resting = self._clock() + _ERROR_PAUSE
        self._marks.begin_work(*self._distilling.at)

    def _seconds_to_rest(self) -> float:
        now = self._clock()
        if self.resting > now:
            return min(self.resting - now, TICK)
        if self._intake.at_work or self._jobs_wait:
            return 0.0
        return max(0.0, min(TICK, self._idle, self._intake.next_due() - now))

    def _look_around(self) -> None:
        now = self._clock()
        if now - self._intake.last >= self._idle:
            self._leave("idle")
        if now - self._ticked < TICK:
            return
        self._ticked, self._jobs_wait = now, True
        self._arming.waits |= self._armed_at != self._store.feed()[1]  # a rule may be new
        self._intake.look_again()
        self._spool.remove_abandoned(time.time())
        if not self._door.is_still_ours():
            self.leaving = "lost"
        self._look_for_new_version()

    def _look_for_new_version(self) -> None:
        if installed_version() not in (self._installed, "") or not self._store.in_place():
            self._leave("new version")

    def _hear_bell(self, _: int) -> None:
        self._bell.clear()
        self._intake.more = self._jobs_wait = True
        if self._bell.signalled:
            self.leaving = "stopped"

    def _leave(self, reason: str) -> None:
        self.leaving = self.leaving or reason

    def _items_stored(self) -> None:
        self._jobs_wait = True
        self._background.work.wake()

    def _hear_background(self) -> None:
        """By its thread: a session can be gone on with, or is to be summed up anew."""
        self._background.work.wake()
        self._bell.ring()

    # --- settings ----------------------------------------------------------------------------

    def _settings_stamp(self) -> list[tuple[int, int]]:
        """Two changes within one tick of the kernel's clock have the same time."""
        paths = [self.home / name for name in ("config.toml", "off", "database")]
        found = [path.stat() if path.exists() else None for path in paths]
        return [(one.st_mtime_ns, one.st_size) if one else (0, 0) for one in found]

    def _load_settings(self) -> Config:
        self._stamp = self._settings_stamp()
        # Scrubbed: the environment can only have switched vectors off.
        config = load_config(self.home, os.environ)
        for warning in config.warnings:
            self._log.say(warning)
        return config

    def _use_settings(self) -> None:
        found = load_rules(self._config)
        self._events.use_settings(self._config, found)
        write_hook_rules(self.home, found)
        self._arming.waits = True
        if self._running:
            self._background.use_settings(self._config)

    def _refresh_settings(self) -> None:
        if self._settings_stamp() == self._stamp:
            return
        try:
            self._config = self._load_settings()
            if find_target(self.home) != self._target:
                self._leave("new store")
        except ConfigError as error:  # half saved, or wrong: the ones we have still hold
            self._log.say_failure("reading config.toml", error)
        self._use_settings()

    # --- answers -----------------------------------------------------------------------------

    def _answer_request(self, request: str, given: dict[str, str]) -> Reply | Later | None:
        match request:
            case "POST /hook":
                return self._answer_hook(given.get("id", ""))
            case "POST /recall" | "POST /recall/print":
                return self._answer_recall(request, given)
            case "GET /statusline":
                return self._answer_glance(given.get("session", ""), given.get("cwd", ""))
            case "GET /health":
                answer: dict[str, object] = {
                    "pid": os.getpid(),
                    "version": yester.__version__,
                    "started": self._started,
                    "events": self._intake.events,
                    "rss_bytes": _resident_bytes(),
                }
            case "POST /drain":
                answer = {"events": self.drain(), "resting": bool(self.resting)}
            case "POST /retry":
                self._marks.forget()
                self._intake.more = True
                answer = {"events": len(self._spool.put_back())}
            case "POST /stop":
                self._leave("stopped")
                answer = {}
            case "POST /leave":
                theirs = version_numbers(given.get("version", ""))
                newer = theirs > version_numbers(yester.__version__)
                if newer:
                    self._leave("stopped")
                answer = {"leaving": newer}
            case _:
                return None
        return Reply(msgspec.json.encode(answer))

    def _answer_recall(self, request: str, given: dict[str, str]) -> Reply | None:
        body = None
        with self._log.survive("recalling", raises=()):  # who asks can search alone
            self._refresh_settings()
            if request == "POST /recall/print":
                words = given.get("words", "").split("\0")
                body = self._answers.print_recall(words, given.get("cwd", ""))
            else:
                root = given.get("root", "")
                body = self._answers.answer_recall(given.get("asked", ""), root)
        return None if body is None else Reply(body)

    def _answer_glance(self, session: str, cwd: str) -> Reply | None:
        with self._log.survive("a status line", raises=()):  # nobody misses it
            return Reply(self._answers.describe_session(session, cwd).encode())
        return None

    def _answer_hook(self, id_: str) -> Reply | Later:
        self._intake.more = True  # a hook that asks does not poke: its event lies in the spool
        with self._log.survive("answering", raises=()):  # the agent goes on without us
            self._refresh_settings()
            event = self._answers.find_event(id_)
            if event is not None:
                if event.what == "start":
                    self._look_for_new_version()
                if event.what == "stop":
                    return partial(self._answer_stop, event, self._clock() + _AT_STOP)
                delivery = self._answers.answer_hook(event)
                return Reply(delivery.body, partial(self._settle_delivery, delivery))
        return Reply(b"")

    def _answer_stop(self, event: HookEvent, until: float) -> Reply | None:
        """Once the client has written down what was typed: what is in no transcript was not."""
        with self._log.survive("answering", raises=()):
            self._intake.read_now(event, self._clock() + SLICE)
            if not self._answers.has_typed(event) and self._clock() < until:
                return None
            delivery = self._answers.answer_hook(event)
            return Reply(delivery.body, partial(self._settle_delivery, delivery))
        return Reply(b"")

    def _settle_delivery(self, delivery: Delivery, arrived: bool) -> None:
        self._answers.settle_delivery(delivery, arrived)
        self._intake.more = True  # it is to be written down


def _mark_no_gap(path: Path) -> None:
    """A hook that can write nowhere touches this file; `doctor` sees it by the time."""
    if not path.exists():
        with suppress(OSError):
            path.touch(0o600)
            os.utime(path, (0, 0))


def _resident_bytes() -> int:
    """As of now; where that cannot be told (a Mac), the most it ever was."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return machine.most_memory()
