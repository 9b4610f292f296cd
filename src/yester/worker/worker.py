"""The worker: one small process that takes in what hooks leave and answers those that ask.

One thread and one selector. Work is done in slices of a few hundredths of a second, so that a hook
that asks is answered between two of them, whatever else there is to do.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

import yester
from yester.agents.base import Options
from yester.agents.descriptors import AGENTS
from yester.agents.hooks import READ_TRANSCRIPT_AFTER, HookEvent
from yester.capture.homes import is_usual
from yester.capture.rules import rules, write_for_hooks
from yester.capture.spool import ENDED_WORKER, NewerFormat, Spool, Spooled, acknowledge, read
from yester.config import load
from yester.errors import ConfigError, StoreBusy, StoreError, StoreNewer, StoreReplaced
from yester.ingest import Ingest, rebuild_if_stale
from yester.ingest.events import Events
from yester.ingest.joins import join_next, names_of
from yester.operate.backups import before_migration
from yester.store import open_store
from yester.worker.answers import Answers
from yester.worker.background import Background
from yester.worker.distilling import Distilling
from yester.worker.door import Door, Reply
from yester.worker.log import Log
from yester.worker.wake import Fifo, Signals
from yester.worker.watchdog import HUNG, Watchdog
from yester.worker.working import TWICE, Piece, Working

SLICE = 0.04  # seconds of work before somebody who asks gets a turn
BATCH = 24  # events in one transaction
TICK = 30.0  # seconds between looks at what no wake-up tells of
SETTLE = 0.15  # seconds a client needs to write down what its hook has told
_BUSY_PAUSE, _ERROR_PAUSE = 0.05, 5.0
_PATIENCE = 0.25  # seconds for another writer's batch; then others get a turn first


@dataclass(slots=True)
class _Due:
    """A transcript that is to be read, when, and the spool files that must stay until it is."""

    when: float
    told: HookEvent
    files: list[Path]


class Worker:
    """Make it, `run` it, `close` it; the caller holds the seat."""

    def __init__(
        self,
        home: Path,
        runtime: Path | None,
        idle: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        hung: float = HUNG,
    ) -> None:
        self.home = home
        self.events = 0
        self.leaving = ""  # why it ends: stopped, idle, new version, lost
        self._log = Log(home / "logs")
        self._stamp = self._settings_stamp()
        self._config = load(home, os.environ)  # scrubbed: it can only have switched vectors off
        self._warn()
        self._started = time.time()
        self._clock = clock
        self._spool = Spool(home, runtime, is_usual(home, os.environ))
        self._spool.make()
        self._left: set[str] = set()  # spool files of a newer yester, or that cannot be removed
        self._due: dict[Path, _Due] = {}  # transcripts to be read
        self._waiting: list[Path] = []  # of the spool, as it was last listed
        self._held: Counter[Path] = Counter()  # spool files that go when theirs have been read
        self._reading: Iterator[None] | None = None
        self._joined = False  # all work trees that are gone, with their repositories
        self._opened = Path()  # the transcript it goes through
        self._background = Background(self._log, self._refined)
        self._running = False  # not where it only drains
        self.resting = 0.0  # until then: the store could not be written to
        self._more = True
        self._last = self._ticked = clock()
        self._installed = installed_version()

        self._selector = selectors.DefaultSelector()
        self._fifo, self._signals = Fifo(home / "run" / "wake"), Signals()
        self._selector.register(self._fifo, selectors.EVENT_READ, self._woken)
        self._selector.register(self._signals, selectors.EVENT_READ, self._signalled)
        self._door = Door(home / "run", self._selector, self._answer, clock)
        _mark_no_gap(home / "run" / "gap")
        self._hung = hung
        self._watchdog = Watchdog(home / "logs" / "worker.log", 0.0)  # not where it only drains
        self._working = Working(home / "run" / "working", yester.__version__, time.time())
        if self._working.found:
            kind = self._working.found[0].kind
            self._log.say(f"the worker before this one failed: it ended in its work ({kind})")
        if self._working.another_version:  # which may manage what the former one could not
            self._spool.put_back()

        kept, now = self._config.number("backups_kept"), int(time.time() * 1000)
        self._store = open_store(
            home, now=now, patience=_PATIENCE, before_migration=before_migration(home, kept, now)
        )
        self._answers = Answers(self._spool, self._store, self._log)
        self._distilling = Distilling(
            self._store, self._log, time.time, self._background.distilled, self._working
        )
        self._use_settings()
        self._idle = self._config.number("worker_idle_minutes") * 60.0 if idle is None else idle

    # --- the loop ----------------------------------------------------------------------------

    def run(self) -> str:
        """Until told to stop, idle for long, or replaced; the reason."""
        self._log.say(f"started: yester {yester.__version__}, pid {os.getpid()}")
        self._running = True
        self._use_threads()
        self._watchdog = Watchdog(self.home / "logs" / "worker.log", self._hung)
        self._working.catch_faults()
        while not self.leaving:
            self._watchdog.sleep()
            ready = self._selector.select(self._timeout())
            self._watchdog.watch()
            for key, mask in ready:
                key.data(mask)
            self._door.drop_overdue()
            until = self._clock() + SLICE
            self._work(until)
            self._distil(until)
            self._tick()
        self._working.mark_no_more()
        self._door.await_acknowledgements()  # else it would be told once more
        self.drain()
        self._watchdog.close()
        return self.leaving

    def _warn(self) -> None:
        for warning in self._config.warnings:
            self._log.say(warning)

    def _use_threads(self) -> None:
        if self._running:
            self._background.use(self._config)
            self._answers.embedding = self._background.embedding

    def _refined(self) -> None:
        """By a thread: the session of a turn is to be summed up anew."""
        self._background.stored()
        self._fifo.poke()

    def close(self) -> None:
        self._watchdog.close()
        self._working.close()
        self._background.close()
        self._answers.close()
        self._door.close()
        self._store.close()
        self._fifo.close()
        self._signals.close()
        self._selector.close()
        self._log.say(f"ended: {self.leaving or 'closed'}, {self.events} events taken")

    def drain(self) -> int:
        """Take in everything the spool and the transcripts hold now; the number of events."""
        before = self.events
        self.resting, self._more = 0.0, True
        while (self._more or self._due or self._reading) and not self.resting:
            for due in self._due.values():
                due.when = 0.0
            self._work(self._clock() + 1.0)
        return self.events - before

    def _timeout(self) -> float:
        return min(self._time_to_rest(), self._door.patience())

    def _time_to_rest(self) -> float:
        now = self._clock()
        if self.resting > now:
            return min(self.resting - now, TICK)
        if self._more or self._reading is not None or self._distilling.busy or not self._joined:
            return 0.0
        due = min((due.when for due in self._due.values()), default=now + TICK)
        return max(0.0, min(TICK, self._idle, due - now))

    def _tick(self) -> None:
        now = self._clock()
        if now - self._last >= self._idle and not self.leaving:
            self.leaving = "idle"
        if now - self._ticked < TICK:
            return
        self._ticked, self._more = now, True
        self._distilling.wake()
        self._left.clear()
        self._spool.sweep(time.time())
        if not self._door.still_ours():
            self.leaving = "lost"
        self._look_for_new_version()

    def _look_for_new_version(self) -> None:
        newer = installed_version() not in (self._installed, "") or not self._store.in_place()
        if newer and not self.leaving:
            self.leaving = "new version"

    def _woken(self, _: int) -> None:
        self._fifo.clear()
        self._more = True
        self._distilling.wake()

    def _signalled(self, _: int) -> None:
        if {signal.SIGTERM, signal.SIGINT} & {*os.read(self._signals.fileno(), 64)}:
            self.leaving = "stopped"  # the watchdog's ticks come here as well

    # --- settings ----------------------------------------------------------------------------

    def _settings_stamp(self) -> tuple[int, ...]:
        stamp = []
        for name in ("config.toml", "off"):
            try:
                stamp.append((self.home / name).stat().st_mtime_ns)
            except OSError:
                stamp.append(0)
        return tuple(stamp)

    def _use_settings(self) -> None:
        self._rules = rules(self._config)
        self._intake = Events(self._store, self._config, self._rules)
        self._answers.use(self._config, self._intake)
        write_for_hooks(self.home, self._rules)

    def _refresh_settings(self) -> None:
        stamp = self._settings_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._config = load(self.home, os.environ)
            self._warn()
        except ConfigError as error:  # half saved, or wrong: the ones we have still hold
            self._log.failed("reading config.toml", error)
        self._use_settings()
        self._use_threads()

    # --- work --------------------------------------------------------------------------------

    def _work(self, until: float) -> None:
        """What is to be done, for a while: events first, then transcripts."""
        if self.resting > self._clock():
            return
        self.resting = 0.0
        self._watchdog.watch()
        try:
            self._refresh_settings()
            with self._watchdog.asleep():  # over all items, in one transaction
                rebuild_if_stale(self._store)
            while self._more and self._clock() < until:
                self._more = self._take_batch()
            while not self._more and self._clock() < until and self._read_on():
                pass
        except StoreBusy:
            self.resting = self._clock() + _BUSY_PAUSE
        except (StoreReplaced, StoreNewer):
            # Begin anew, with the store and the yester that are there now. Where that one is too
            # old for the store, it says so and ends; the spool waits for a newer one.
            self.leaving = self.leaving or "new version"
            self.resting = self._clock() + _BUSY_PAUSE
        except (StoreError, OSError) as error:
            self._log.failed("writing", error)
            self.resting = self._clock() + _ERROR_PAUSE
        except BaseException as error:
            self._working.fail(error)
            raise
        self._working.rest()  # not where an error ends us

    def _distil(self, until: float) -> None:
        """What nobody waits for: only when events and transcripts are taken in."""
        before = self._distilling.made
        try:
            while not (self._more or self._reading or self.resting) and self._clock() < until:
                self._watchdog.watch()
                if not self._join_one() and not self._distilling.step(self._config):
                    break
        except StoreBusy:
            self.resting = self._clock() + _BUSY_PAUSE
        except (StoreReplaced, StoreNewer):
            self.leaving = self.leaving or "new version"
        except (StoreError, OSError) as error:
            self._log.failed("distilling", error)
            self.resting = self._clock() + _ERROR_PAUSE
        self._working.rest()
        if self._distilling.made > before:
            self._background.stored()

    def _join_one(self) -> bool:
        """A project of an older version that is a work tree which is gone; was there one?"""
        if self._joined:
            return False
        try:
            with self._watchdog.asleep():  # over all items of a project, in one transaction
                found = join_next(self._store, self._intake.projects, int(time.time() * 1000))
        except (StoreBusy, StoreReplaced):
            raise
        except Exception as error:  # noqa: BLE001 -- until the next start: events are worth more
            self._log.failed("joining work trees", error)
            found = None
        self._joined = found is None
        if found is not None:
            self._log.say(f"joined: {names_of(self._store, [found])}, {found.items} items")
        return found is not None

    def _take_batch(self) -> bool:
        """A batch from the spool; is there more?"""
        if not self._waiting:  # listed once for many batches: there may be thousands
            self._waiting = [
                path
                for path in self._spool.waiting()
                if path.name not in self._left and path not in self._held
            ]
        now = self._next_batch()
        batch: list[tuple[Path, Spooled]] = []
        self._watchdog.watch()
        self._working.begin(*map(_event, now))
        for path in now:
            if self._working.ended(_event(path)) >= TWICE:
                self._working.settle(_event(path))
                self._set_aside(path, ENDED_WORKER)
                continue
            try:
                batch.append((path, read(path)))
            except FileNotFoundError:
                continue
            except NewerFormat:
                self._left.add(path.name)
            except ValueError:
                self._set_aside(path, "is not an event")
            except OSError as error:
                self._left.add(path.name)
                self._log.failed(f"reading {path.name}", error)
        if batch:
            self._store_batch(batch)
            self._working.settle(*(_event(path) for path, _ in batch))
        self._working.rest()
        self._answers.write_down(self._left)
        return bool(now)  # until a new listing has nothing: more may have come meanwhile

    def _next_batch(self) -> list[Path]:
        """Of what waits. An event at which a worker has ended is taken alone: it may have been one
        of the others in its batch."""
        suspects = [self._working.ended(_event(path)) > 0 for path in self._waiting[:BATCH]]
        size = max(1, suspects.index(True)) if True in suspects else BATCH
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return batch

    def _store_batch(self, batch: list[tuple[Path, Spooled]]) -> None:
        self._working.begin(*(_event(path) for path, _ in batch))
        try:
            taken = self._intake.take([spooled for _, spooled in batch], self._working.rest)
        except (StoreError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 -- one event's fault must not keep the others out
            if len(batch) > 1:
                for one in batch:
                    self._store_batch([one])
                return
            self._log.failed(f"taking {batch[0][1].id}", error)
            self._set_aside(batch[0][0], "could not be taken in")
            return
        self.events += len(taken.told)
        self._last = self._clock()
        self._distilling.wake()
        self._background.stored()
        told = {**taken.told, **taken.again}
        self._answers.noticed(list(taken.told.values()))
        for path, spooled in batch:
            if spooled.id in taken.unreadable:
                self._set_aside(path, "is not a JSON object")
                continue
            self._held[path] = 1
            if spooled.id in told:
                self._remember(path, spooled.id, told[spooled.id])
            self._let_go([path])

    def _set_aside(self, path: Path, why: str, transcript: Path | None = None) -> None:
        try:
            self._spool.set_aside(path, why, transcript)
            self._log.say(f"{path.name} {why}; moved to spool/bad")
        except OSError as error:
            self._left.add(path.name)
            self._log.failed(f"moving {path.name} to spool/bad", error)

    def _let_go(self, paths: Iterable[Path]) -> None:
        """Remove spool files nobody holds any more: all that follows from them is stored."""
        for path in paths:
            self._held[path] -= 1
            if self._held[path] > 0:
                continue
            del self._held[path]
            try:
                acknowledge(path)
            except OSError as error:
                self._left.add(path.name)
                self._log.failed(f"removing {path.name}", error)

    def _remember(self, path: Path, id_: str, told: HookEvent) -> None:
        """What follows from an event: its hook may yet ask, its transcript has something new."""
        self._answers.remember(id_, told)
        if told.what in READ_TRANSCRIPT_AFTER:
            for transcript in told.transcripts:
                self._held[path] += 1
                self._read_later(transcript, told, [path])

    def _read_later(self, transcript: Path, told: HookEvent, files: list[Path]) -> None:
        known = self._due.get(transcript)
        files = [*known.files, *files] if known else files
        self._due[transcript] = _Due(self._clock() + SETTLE, told, files)

    def _read_on(self) -> bool:
        """A few steps through a transcript; False when there is nothing to read now."""
        if self._reading is None:
            path = min(self._due, key=lambda p: self._due[p].when, default=None)
            if path is None or self._due[path].when > self._clock():
                return False
            tried = self._working.ended(self._piece(path))
            due = self._due.pop(path)
            if tried >= TWICE:
                self._leave_unread(path, due.files)
                return True
            self._reading, self._opened = self._read(path, due), path
        self._watchdog.watch()
        self._working.begin(self._piece(self._opened))
        for _ in range(20):
            if next(self._reading, self) is self:
                self._reading = None
                break
        return True

    def _piece(self, path: Path) -> Piece:
        """A transcript from where the store has it: who has come further was not stopped by it."""
        try:
            size = path.stat().st_size
            known = next(iter(self._store.sources(path=str(path))), None)
        except (OSError, ValueError):  # no file, or a name that is none
            return Piece("transcript", str(path))
        reached = known.offset + known.line if known else 0  # some readers count only one of them
        return Piece("transcript", str(path), reached, size)

    def _leave_unread(self, transcript: Path, files: list[Path]) -> None:
        """Until it grows, another version comes, or `doctor --fix` puts its events back."""
        self._log.say("reading a transcript failed: it has ended the worker twice")
        for path in files:
            del self._held[path]
            self._set_aside(path, f"came with a transcript that {ENDED_WORKER}", transcript)

    def _read(self, path: Path, due: _Due) -> Iterator[None]:
        try:
            yield from self._read_transcript(path, due.told)
        except (StoreError, OSError):
            self._reading = None
            self._read_later(path, due.told, due.files)
            raise
        self._working.settle(Piece("transcript", str(path)))
        self._let_go(due.files)
        if self._spool.put_back(path):
            self._more = True

    def _read_transcript(self, path: Path, told: HookEvent) -> Iterator[None]:
        agent = AGENTS.get(told.agent)
        if agent is None or self._intake.refused(told) or not os.path.isfile(path):  # noqa: PTH113
            return  # (Path.is_file() raises where a folder is closed to us)
        options = Options(self._config.flag("thinking"), self._config.flag("subagents"))
        ingest = Ingest(
            self._store, self._intake.projects, options, self._rules,
            before_storing=self._working.rest,
        )  # fmt: skip
        yield from ingest.reading(agent, path)
        ingest.flush()
        self._working.rest()
        self._intake.find_prompts(told.session, told.agent)
        self._distilling.wake()
        self._background.stored()
        if ingest.report.failed:
            self._log.say(f"a transcript of {told.agent} could not be read")

    # --- answers -----------------------------------------------------------------------------

    def _answer(self, request: str, given: dict[str, str]) -> Reply | None:
        if request == "POST /hook":
            return self._answer_hook(given.get("id", ""))
        body = self._answer_command(request, given)
        return None if body is None else Reply(body)

    def _answer_command(self, request: str, given: dict[str, str]) -> bytes | None:
        if request == "GET /health":
            return msgspec.json.encode(self.health())
        if request == "POST /recall":
            return self._answer_recall(given.get("asked", ""), given.get("root", ""))
        if request == "POST /drain":
            return msgspec.json.encode({"events": self.drain(), "resting": bool(self.resting)})
        if request == "POST /retry":
            self._working.forget()
            self._more = True
            return msgspec.json.encode({"events": len(self._spool.put_back())})
        if request == "POST /stop":
            self.leaving = self.leaving or "stopped"
            return b"{}"
        if request == "POST /leave":
            newer = release(given.get("version", "")) > release(yester.__version__)
            if newer and not self.leaving:
                self.leaving = "stopped"
            return msgspec.json.encode({"leaving": newer})
        return None

    def health(self) -> dict[str, object]:
        return {
            "pid": os.getpid(),
            "version": yester.__version__,
            "started": self._started,
            "events": self.events,
            "rss_bytes": _resident(),
        }

    def _answer_recall(self, text: str, root: str) -> bytes | None:
        try:
            self._refresh_settings()
            return self._answers.recall(text, root)
        except Exception as error:  # noqa: BLE001 -- who asks can search alone; others still need us
            self._log.failed("recalling", error)
            return None

    def _answer_hook(self, id_: str) -> Reply:
        self._more = True  # a hook that asks does not poke: its event lies in the spool
        try:
            self._refresh_settings()
            told = self._answers.told(id_)
            if told is None:
                return Reply(b"")
            if told.what == "start":
                self._look_for_new_version()
            delivery = self._answers.hook(id_, told)
        except Exception as error:  # noqa: BLE001 -- the agent goes on without us, whatever it is
            self._log.failed("answering", error)
            return Reply(b"")

        def settle(arrived: bool) -> None:
            self._answers.settle(delivery, arrived)
            self._more = True  # it is to be written down

        return Reply(delivery.body, settle)


def _event(path: Path) -> Piece:
    return Piece("event", path.name)


def installed_version() -> str:
    """The version that a new process would run."""
    try:
        text = Path(yester.__file__).read_text("utf-8")
    except OSError:
        return ""
    found = re.search(r'^__version__ = "([^"]+)"', text, re.M)
    return found[1] if found else ""


def release(version: str) -> tuple[int, ...]:
    """A version as numbers, to see which is newer."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def _mark_no_gap(path: Path) -> None:
    """A hook that can write nowhere touches this file; `doctor` sees it by the time."""
    if not path.exists():
        with suppress(OSError):
            path.touch(0o600)
            os.utime(path, (0, 0))


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource
        import sys

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
