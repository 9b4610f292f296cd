"""One machine's part in the log: what others have written is read and merged, then what the log
lacks is written.

    what is ready   run/outbox → the log, since a segment that was committed here must get there
    read            each machine's segments in their chain; each merged in transactions of its own
    written         what differs from the log's rows, in segments: first a file of the outbox, then
                    a row that says it is written, then the log

All of it can be done again after a kill at any point. Numbers are never used twice: a store or a
home that was put back finds segments of its own in the log that it does not know, and goes on as a
machine of another name.
"""

from __future__ import annotations

import os
import socket
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from yester import model
from yester.errors import SourceError, UsageError
from yester.files import replace_file
from yester.redact import redact
from yester.sharing import segments, wire
from yester.sharing.exchange import Part, Side, add_counts, exchange_lock, load_state, save_state
from yester.sharing.keys import Key, load_key, load_sodium, save_key
from yester.sharing.merge import (
    Merge,
    Place,
    Teller,
    Version,
    is_same_machine,
    kept_ref,
    tell_dropped,
)
from yester.sharing.transports import Transport
from yester.store import file_store
from yester.tombstones import Tombstones

_MOST_LINES, _MOST_BYTES = 2_000, 4_000_000  # of a segment, unpacked
_PAGE = 500  # items
_FETCHED = 20  # segments that are read together


class Roaming(Struct):
    """The file `roam.json` of a home: where the log is, and how the last run ended."""

    to: str
    log: str
    last: int = 0  # ms; when machines were last in step
    problems: list[str] = []


def state_file(home: Path) -> Path:
    return home / "roam.json"


def load_roaming(home: Path) -> Roaming | None:
    """None: this home does not roam."""
    path = state_file(home)
    return load_state(path, Roaming, "remove it, then join again: yester roam --join URL")


class Report(Struct):
    """What a run has done."""

    read: int = 0  # segments
    written: int = 0
    bytes_written: int = 0
    outcome: dict[str, int] = {}  # of lines that were read
    told: dict[str, int] = {}  # lines that were written, by kind
    beside: list[str] = []  # memories that are kept beside another version
    problems: list[str] = []


class Roam(Part):
    """The log of a home, reached by a transport. `private` are projects that never leave."""

    def __init__(self, side: Side, transport: Transport, private: Collection[str] = ()) -> None:
        super().__init__(side)
        self.transport, self.report = transport, Report()
        self._private = private
        # What was read of each machine's segments: their marks, by machine and number.
        self._known: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        self._outbox = self._home / "run" / "outbox"
        self._outbox.mkdir(mode=0o700, parents=True, exist_ok=True)

    # --- beginning and ending --------------------------------------------------------------------

    def begin_log(self) -> Key:
        """A new log where there is none; its key is on the disk when this returns."""
        load_sodium()
        if segments.HEAD in self.transport.list_files():
            raise UsageError(
                f"{self.transport.where} has a log already; join it: "
                f"yester roam --join {self.transport.where}"
            )
        key, log = Key.make(), os.urandom(8).hex()
        with exchange_lock(self._home):
            self._prepare(key)
            self.transport.write_files(
                {segments.HEAD: segments.encode_head(segments.LogHead(log, key.id))}
            )
            save_state(state_file(self._home), Roaming(self.transport.where, log))
        return key

    def join_log(self, key: Key) -> None:
        load_sodium()
        head = self._read_head(self.transport.list_files())
        if head.key != key.id:
            raise UsageError(
                f"this recovery code is not that of the log in {self.transport.where}; after "
                "`yester roam --new-key` there is a new one"
            )
        with exchange_lock(self._home):
            self._enter(key, head.log)

    def _enter(self, key: Key, log: str) -> None:
        self._prepare(key)
        save_state(state_file(self._home), Roaming(self.transport.where, log))

    def _prepare(self, key: Key) -> None:
        with self.store.transaction("ledger"):
            file_store(self.store).forget_log()
            self._name_machine()
        for left in self._outbox.iterdir():
            left.unlink()
        save_key(self._home, key)

    def _name_machine(self) -> None:
        """This machine under a new name, inside a transaction: nothing of it is in the log."""
        stem, _, rest = self.own.partition("-")
        number = int(rest[:4], 16) + 1 if rest else 1
        self._note_writing(f"{stem or os.urandom(6).hex()}-{number:04x}{os.urandom(4).hex()}")

    def _note_writing(self, name: str) -> None:
        self.store.append([model.Machine(name, redact(socket.gethostname()), self._now, True)])

    @property
    def names(self) -> list[str]:
        """This machine's, the present one last."""
        return sorted(one.key for one in self.store.entries(model.Machine, {"own": 1}))

    @property
    def own(self) -> str:
        return self.names[-1] if self.names else ""

    # --- a run -----------------------------------------------------------------------------------

    def exchange(self) -> Report:
        """Read, merge, write. What is wrong with a segment is a problem of the report; what is
        wrong with the log or the way there is raised, and nothing is written then."""
        load_sodium()
        with exchange_lock(self._home):
            state = load_roaming(self._home)
            if state is None:
                raise UsageError("this home does not roam; yester roam --to FOLDER begins it")
            try:
                self._exchange(state)
            except SourceError as error:
                self.report.problems.append(str(error))
                raise
            finally:
                state.problems = self.report.problems
                state.last = state.last if self.report.problems else self._now
                save_state(state_file(self._home), state)
        return self.report

    def _exchange(self, state: Roaming) -> None:
        files, key = self.transport.list_files(), load_key(self._home)
        head, following = self._read_head(files), self._home / "roam.next"
        if following.exists():  # a new key was being made
            new = load_key(self._home, following)
            if new.id == head.key:  # and was killed when the log had it
                key, state.log = new, head.log
                self._enter(key, head.log)
            following.unlink()
        if head.log != state.log or head.key != key.id:
            raise SourceError(
                f"{self.transport.where} has another key since, or an old one was put back; join "
                f"it with the new recovery code: yester roam --join {self.transport.where}"
            )
        listed = list_segments(state.log, files)
        self._settle_outbox(listed)
        self._check_own(listed)
        self._read_segments(key, listed)
        self._write(key, state.log)

    def _read_head(self, files: Collection[str]) -> segments.LogHead:
        found = self.transport.read_files([segments.HEAD]) if segments.HEAD in files else {}
        if not found:
            raise SourceError(
                f"{self.transport.where} has no log; is the drive connected, has it been synced?"
            )
        return segments.decode_head(found[segments.HEAD], self.transport.where)

    def _settle_outbox(self, listed: Sequence[segments.SegmentName]) -> None:
        """Segments that a killed run has left: those that are committed here belong into the log,
        of the others nobody knows."""
        for path, name in self._outbox_files():
            if name is None or name in listed or not self._is_written(name):
                path.unlink()

    def _is_written(self, name: segments.SegmentName) -> bool:
        where = {"machine": name.machine, "number": name.number}
        found = self.store.entries(model.LogSegment, where)
        return any(one.mark.startswith(name.start) for one in found)

    def _outbox_files(self) -> list[tuple[Path, segments.SegmentName | None]]:
        files = sorted(self._outbox.iterdir())
        return [(path, segments.read_name(path.name.replace(":", "/"))) for path in files]

    def _check_own(self, listed: Sequence[segments.SegmentName]) -> None:
        """The log has segments of ours that are not known here: this store was put back, or there
        is a copy of it. It lacks some: they are lost, and told again."""
        own, names = self.own, self.names
        known = {
            (one.number, one.mark[:16])
            for one in self.store.entries(model.LogSegment, {"machine": own})
        }
        ready = {(name.number, name.start) for _, name in self._outbox_files() if name}
        there = {(one.number, one.start) for one in listed if one.machine == own}
        later = [
            one.machine
            for one in listed
            if is_same_machine(one.machine, own) and one.machine not in names
        ]
        lost = known - there - ready
        if own and not (there - known or lost or later):
            return
        with self.store.transaction("ledger"):
            for number, _ in lost:
                rows = self.store.entries(model.LogItem, {"origin": own, "place": number})
                self.store.append([model.replace(row, sent=False) for row in rows])
            for machine in sorted(set(later)):
                self.store.append([model.Machine(machine, "", 0, True)])
            self._name_machine()
        if lost:
            self.report.problems.append(
                f"{len(lost)} segments of this machine are gone from {self.transport.where}; what "
                "was in them is written again"
            )

    # --- reading ---------------------------------------------------------------------------------

    def _read_segments(self, key: Key, listed: Sequence[segments.SegmentName]) -> None:
        known = self._known
        known.clear()
        for one in self.store.entries(model.LogSegment):
            known[one.machine, one.number].append(one.mark)
        merge = Merge(self.side, self.own)
        new = [
            name
            for name in listed
            if not any(mark.startswith(name.start) for mark in known[name.machine, name.number])
        ]
        self._report_lost(listed)
        fetched: dict[str, bytes] = {}
        stopped: set[str] = set()
        for at, name in enumerate(new):
            if name.machine in stopped:
                continue
            self.side.progress("segments read", at, len(new))
            if name.path not in fetched:
                paths = [one.path for one in new[at : at + _FETCHED]]
                fetched = self.transport.read_files(paths)
            try:
                mark = self._read_segment(key, name, fetched.pop(name.path, None), merge)
            except segments.BadSegment as error:
                self.report.problems.append(str(error))
                stopped.add(name.machine)
                continue
            if known[name.machine, name.number]:
                self.report.problems.append(
                    f"{name.label} has a number that was used before: a home was copied or put "
                    "back; both are kept"
                )
            known[name.machine, name.number].append(mark)
        self.side.progress("segments read", len(new), len(new))
        self.store = merge.store
        add_counts(self.report.outcome, merge.outcome)
        self.report.beside = merge.beside

    def _report_lost(self, listed: Sequence[segments.SegmentName]) -> None:
        """Segments of other machines that were read, and are there no more."""
        there = {(name.machine, name.number) for name in listed}
        lost = [
            (machine, number)
            for (machine, number), marks in self._known.items()
            if marks and (machine, number) not in there and machine not in self.names
        ]
        if lost:
            machine, number = min(lost)
            self.report.problems.append(
                f"{len(lost)} segments that were read before are gone from the log, the first is "
                f"{number} of machine {machine[:4]}; what was read stays; --new-key settles it"
            )

    def _read_segment(
        self, key: Key, name: segments.SegmentName, data: bytes | None, merge: Merge
    ) -> str:
        if data is None:
            raise segments.BadSegment(
                f"{name.label} is none: a link or a folder, or larger than "
                f"{segments.MOST_BYTES:,} bytes"
            )
        segment = segments.open_segment(key, name, data)
        former = self._known.get((name.machine, name.number - 1), [])
        before = former if name.number > 1 else [segments.FIRST.hex()]
        if not before:
            raise segments.BadSegment(
                f"segment {name.number - 1} of machine {name.machine[:4]} is missing; what follows "
                "it waits"
            )
        if segment.former not in before:
            raise segments.BadSegment(
                f"{name.label} does not follow the one before it: one was exchanged"
            )
        merge.merge_lines(segment.lines, Place(name.machine, name.number))
        if segment.unknown:
            self.report.problems.append(
                f"{name.label} has {segment.unknown} lines of a newer yester; update this one"
            )
        with merge.store.transaction("ledger"):
            merge.store.append([model.LogSegment(name.machine, name.number, segment.mark)])
        self.report.read += 1
        return segment.mark

    # --- writing ---------------------------------------------------------------------------------

    def _write(self, key: Key, log: str) -> None:
        outgoing = Outgoing(self.side, self.own, self.names, self._private)
        waiting = len(outgoing.unsent)
        for number, part in enumerate(outgoing.parts()):
            self.side.progress("segments written", number, max(number + 1, waiting // _MOST_LINES))
            self._seal(key, log, part)
            add_counts(self.report.told, Counter(map(wire.kind_of_line, part.lines)))
        if files := [(path, name.path) for path, name in self._outbox_files() if name]:
            data = {name: path.read_bytes() for path, name in files}
            self.transport.write_files(data)
            self.report.written = len(data)
            self.report.bytes_written = sum(map(len, data.values()))
            for path, _ in files:
                path.unlink()

    def _seal(self, key: Key, log: str, part: SegmentLines) -> None:
        """A segment, on the disk and then in the store's books: from there it goes into the log."""
        own = self.own
        written = {
            one.number: one.mark for one in self.store.entries(model.LogSegment, {"machine": own})
        }
        number = max(written, default=0) + 1
        former = written.get(number - 1, segments.FIRST.hex())
        name, mark, data = segments.seal_segment(key, log, own, number, former, part.lines)
        replace_file(self._outbox / name.path.replace("/", ":"), data, sync=True)
        rows = [
            model.replace(row, place=row.place or number) if isinstance(row, model.LogItem) else row
            for row in part.rows
        ]
        with self.store.transaction("ledger"):
            self._note_writing(own)
            self.store.append([model.LogSegment(own, number, mark)])
            self.store.append(rows)
            if part.gone:
                self.store.retract(model.LogItem, {"item": list(part.gone)})

    # --- a new key -------------------------------------------------------------------------------

    def change_key(self) -> Key:
        """The whole log anew under a new key, without what was forgotten since; whoever has the old
        one can neither read what is written from now on nor write what others believe."""
        self.exchange()
        with exchange_lock(self._home):
            state = load_roaming(self._home)
            assert state is not None
            old, new = load_key(self._home), Key.make()
            log = os.urandom(8).hex()
            marks = self._seal_anew(old, new, state.log, log)
            replace_file(self._home / "roam.next", f"{new.code}\n", sync=True)
            self.transport.write_files(
                {segments.HEAD: segments.encode_head(segments.LogHead(log, new.id))}
            )
            known = self.store.entries(model.LogSegment)
            with self.store.transaction("ledger"):
                self.store.retract(model.LogSegment, {})
                self.store.append([
                    model.LogSegment(one.machine, one.number, marks[one.mark])
                    for one in known
                    if one.mark in marks
                ])  # fmt: skip
            save_key(self._home, new)
            save_state(state_file(self._home), Roaming(state.to, log, state.last))
            (self._home / "roam.next").unlink()
            left = [path for path in self.transport.list_files() if not path.startswith(log)]
            try:
                self.transport.remove_files([path for path in left if segments.read_name(path)])
            except SourceError as error:  # it is nobody's any more, and the key is to be told
                self.report.problems.append(str(error))
        return new

    def _seal_anew(self, old: Key, new: Key, former: str, log: str) -> dict[str, str]:
        """Every segment of every machine, again and again until there is none that was not there
        before; old mark → new."""
        marks = {segments.FIRST.hex(): segments.FIRST.hex()}
        tombstones, done = Tombstones(self._home), set[segments.SegmentName]()
        while more := [
            name for name in list_segments(former, self.transport.list_files()) if name not in done
        ]:
            for at in range(0, len(more), _FETCHED):
                part = more[at : at + _FETCHED]
                found, files = self.transport.read_files([one.path for one in part]), {}
                for name in part:
                    done.add(name)
                    try:
                        segment = segments.open_segment(old, name, found.get(name.path, b""))
                    except segments.BadSegment as error:
                        self.report.problems.append(f"{error}; it is left out")
                        continue
                    if segment.former not in marks:  # what follows one that was left out
                        continue
                    kept = [one for one in segment.lines if not _is_hidden(one, tombstones)]
                    made, mark, data = segments.seal_segment(
                        new, log, name.machine, name.number, marks[segment.former], kept
                    )
                    marks[segment.mark], files[made.path] = mark, data
                self.transport.write_files(files)
                self.side.progress("segments sealed anew", at + len(part), len(more))
        return marks


def list_segments(log: str, files: Collection[str]) -> list[segments.SegmentName]:
    """In the order of their chains."""
    found = map(segments.read_name, files)
    return sorted(one for one in found if one is not None and one.log == log)


def _is_hidden(line: wire.Line, tombstones: Tombstones) -> bool:
    match line:
        case wire.ItemLine():
            item = line.item
        case wire.MemoryLine() if line.memo is not None:
            item = model.replace(line.memo.item, ref=line.ref)
        case _:
            return False
    known = tombstones.knows("ref", *item.identity) and not line.anew
    return known or tombstones.hides(item)


class SegmentLines(NamedTuple):
    """The lines of a segment, the rows that say of them that they are written, and items that are
    here no more, of which no row is needed then."""

    lines: list[wire.Line]
    rows: list[model.LogItem | model.LogVersion]
    gone: Sequence[int] = ()


class Outgoing(Teller):
    """What the log lacks of a store, as lines."""

    def __init__(
        self, side: Side, own: str, names: Sequence[str], private: Collection[str]
    ) -> None:
        super().__init__(side, own, private)
        self._names = names
        self.unsent = file_store(self.store).find_unsent(names)

    def summarise(self) -> tuple[Counter[tuple[str, str]], int]:
        """How many items of each project and kind, and how many stay since they are private."""
        found: Counter[tuple[str, str]] = Counter()
        stays = 0
        for page in self._pages():
            for item in page:
                if item.project in self._private:
                    stays += 1
                else:
                    found[item.project, item.kind] += 1
        return found, stays

    def _pages(self) -> Iterator[list[model.Item]]:
        for at in range(0, len(self.unsent), _PAGE):
            found = self.store.get(self.unsent[at : at + _PAGE])
            # What a team has shared reaches each machine from its server, and is taken back there.
            yield [item for item in found if not item.source.startswith(model.TEAM)]

    def parts(self) -> Iterator[SegmentLines]:
        """One for each segment."""
        head = wire.MachineLine(redact(socket.gethostname()), self._now)
        marks = list(self._list_marks())
        part = SegmentLines([head, *(line for line, _ in marks)], [row for _, row in marks])
        size = 0
        for page in self._pages():
            kept = [item for item in page if item.project not in self._private]
            part.lines.extend(self.tell_places(kept))
            for line, row in self._tell_page(kept):
                part.lines.append(line)
                part.rows.append(row)
                size += len(wire.encode_line(line)) if isinstance(line, wire.ItemLine) else 1_000
                if len(part.lines) >= _MOST_LINES or size >= _MOST_BYTES:
                    yield part
                    part, size = SegmentLines([head], []), 0
        gone_lines, gone = self._list_gone()
        part = SegmentLines([*part.lines, *gone_lines], part.rows, gone)
        new = not self.store.entries(model.LogSegment, {"machine": self._own}, model.Paging(1))
        if len(part.lines) > 1 or gone or new:  # one that has nothing to say says that it is there
            yield part

    def _list_marks(self) -> Iterator[tuple[wire.Line, model.LogVersion]]:
        known = {one.mark for one in self.store.entries(model.LogVersion, {"root": wire.FORGOTTEN})}
        for one in (self._tombstones.own, *self._tombstones.others):
            if one.times and (mark := wire.mark_of_set(one)) not in known:
                yield (
                    wire.ForgottenLine(one.key, one.records),
                    model.LogVersion(wire.FORGOTTEN, mark),
                )

    def _tell_page(self, items: Sequence[model.Item]) -> Iterator[tuple[wire.Line, model.LogItem]]:
        store, own = self.store, self._own
        known = {
            row.item: row for row in store.entries(model.LogItem, {"item": [i.id for i in items]})
        }
        for item, line in self.tell_items(items):
            if isinstance(line, Version):
                yield line.line, model.replace(line.row, sent=True, origin=own, place=0)
                continue
            row = known.get(item.id)
            if row is not None and not row.sent and row.origin not in self._names:  # for another
                line = model.replace(line, origin=row.origin, place=row.place, hash=row.hash)
                yield line, model.replace(row, sent=True)
                continue
            was = row.ref if row is not None and row.ref != item.ref else ""
            log = model.LogItem(item.id, own, 0, True, line.hash, item.kind, kept_ref(item))
            yield model.replace(line, was=was), log

    def _list_gone(self) -> tuple[list[wire.Line], list[int]]:
        """What was distilled and is otherwise by now, and memories that were let go."""
        departed = file_store(self.store).find_departed()
        dropped = tell_dropped(
            self.store, {row.item: (row.root, row.head) for row in departed if row.root}
        )
        lines: list[wire.Line] = [
            one for one in dropped.values() if not one.source.startswith(model.TEAM)
        ]
        lines += [
            wire.GoneLine(row.kind, row.ref)
            for row in departed
            if row.item not in dropped
            and row.kind not in ("message", "prompt", "memory", "note")
            and row.origin in self._names
        ]
        return lines, [row.item for row in departed]
