"""Lines of another machine into the store (`Merge`), and those of a store for others (`Teller`). In
whatever order they come, and however often, the outcome is the same; no clock says which of two is
newer:

    forgotten   beats everything. What it names goes, and is refused whenever it comes
    an item     stays as it was told first, by its machine's own count; of two machines that have
                the same one, each keeps its own, and a third that of the smaller name
    a memory    a version follows those it was made of; two of the same one are both kept, the
                second beside the first, and its reason says so
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from yester import model
from yester.errors import UsageError
from yester.ingest.prepare import prepare_item
from yester.memories.lifecycle import form_at_version
from yester.memories.memory import plain_form, read_history
from yester.redact import redact
from yester.sharing import wire
from yester.sharing.exchange import Part, Side
from yester.store import find_item, walk_items
from yester.store.contract import Store
from yester.tombstones import Marks, Tombstones, ref_key

_BATCH = 500  # lines of one kind in a transaction
_BESIDE = "written on another machine at the same time as {}"


class Place(NamedTuple):
    """Where something was told: the machine, and the number of its segment."""

    machine: str
    number: int

    def is_newer(self, known: Place) -> bool:
        """Of one machine, the later; of two, that of the smaller name."""
        if not is_same_machine(self.machine, known.machine):
            return self.machine < known.machine
        return (self.machine, self.number) > (known.machine, known.number)


def is_same_machine(one: str, other: str) -> bool:
    """A machine gets another name when it begins anew; what stands before the first - stays."""
    return one.partition("-")[0] == other.partition("-")[0]


class Merge(Part):
    """Of lines into a store on the machine `own`."""

    def __init__(self, side: Side, own: str) -> None:
        super().__init__(side)
        self.own = own
        self.outcome: Counter[str] = Counter()  # stored, same, refused: why
        self.beside: list[str] = []  # slugs of memories that are kept beside another
        self._tombstones = Tombstones(self._home)
        self._names: dict[str, str] = {}  # of machines

    def merge_lines(self, lines: Iterable[wire.Line], place: Place) -> None:
        """All of one segment."""
        for (kind, _), group in groupby(lines, _group_of):
            while batch := list(islice(group, _BATCH)):
                if kind is wire.ItemLine:
                    self._merge_items(
                        [one for one in batch if isinstance(one, wire.ItemLine)], place
                    )
                    continue
                for line in batch if kind is wire.ForgottenLine else ():
                    self._merge_forgotten(line)
                with self.store.transaction("memories"):
                    for line in batch:
                        self._merge_line(line, place)

    def _merge_line(self, line: wire.Line, place: Place) -> None:
        match line:
            case wire.MachineLine():
                self._names[place.machine] = line.name
                own = is_same_machine(place.machine, self.own)
                self.store.append([model.Machine(place.machine, redact(line.name), line.at, own)])
            case model.Project():
                self.store.put_project(model.replace(line, name=redact(line.name), root=""))
            case model.Session():
                self.store.put_session(wire.clean_session(line))
            case wire.MemoryLine():
                self.outcome[self._merge_memory(line, place)] += 1
            case wire.GoneLine():
                self.outcome[self._take_out(line, place)] += 1

    # --- what was forgotten ----------------------------------------------------------------------

    def _merge_forgotten(self, line: wire.Line) -> None:
        """Marks of another home. What they name goes here as well, whatever has become of it
        meanwhile; what is newer than its mark gets one of this home as well."""
        assert isinstance(line, wire.ForgottenLine)
        theirs = Marks.from_records(line.key, line.marks)
        new = self._tombstones.find_new(theirs)
        hit = [item for item in walk_items(self.store) if self._is_named(new, item)]
        own = {
            ref_key(one): max(self._now, one.epoch, one.updated)
            for one in hit
            if max(one.epoch, one.updated) > new.times.get(new.digest(ref_key(one)), -1)
        }
        if new.times:
            self._tombstones.add(own, theirs)
            self.outcome["forgotten"] += len(new.times)
        with self.store.transaction("ledger"):
            self.store.append([model.LogVersion(wire.FORGOTTEN, wire.mark_of_set(theirs))])
        if hit or any(map(self._tombstones.hides, walk_items(self.store))):
            self.store = self.side.forget_marked()

    def _is_named(self, marks: Marks, item: model.Item) -> bool:
        family = ("ref", item.source, item.kind, wire.family_ref(item.ref))
        keys = {ref_key(item), family} if marks.times else ()
        return any(marks.digest(key) in marks.times for key in keys)

    def _is_refused(self, identity: model.Identity, anew: bool) -> bool:
        return self._tombstones.knows("ref", *identity) and not anew

    # --- items -----------------------------------------------------------------------------------

    def _merge_items(self, lines: Sequence[wire.ItemLine], place: Place) -> None:
        store = self.store
        entries: list[tuple[model.Entry, model.LogItem]] = []
        known: list[model.LogItem] = []
        replaced: list[int] = []
        for line in lines:
            told = Place(line.origin, line.place) if line.origin else place
            row = model.LogItem(0, *told, True, line.hash, line.item.kind, kept_ref(line.item))
            if self._is_refused(line.item.identity, line.anew) or self._tombstones.hides(line.item):
                self.outcome["refused: forgotten"] += 1
                continue
            here = find_item(store, line.item.identity)
            if here is None and line.was:
                former = find_item(store, (line.item.source, line.item.kind, line.was))
                replaced += [former.id] if former is not None else []
            if here is not None and (same := self._compare(line, row, here)) is not None:
                known += same
                self.outcome["same"] += 1
                continue
            entries.append((self._prepare(line), row))
        keys = {entry.item.session for entry, _ in entries if entry.item.session}
        waiting = {one.session.id for one in self._waiting(keys)}
        with store.transaction("items"):
            if replaced:
                store.remove(replaced)
                store.retract(model.LogItem, {"item": replaced})
            put = store.put([entry for entry, _ in entries])
            rows = [*known]
            for entry, row in entries:
                now = find_item(store, entry.item.identity)
                rows += [model.replace(row, item=now.id)] if now is not None else []
            store.append(rows)
            for one in self._waiting(keys):  # it is distilled where it happened
                if one.session.id not in waiting:
                    store.settle_session(one)
        self.outcome["stored"] += put.total_written
        self.outcome["same"] += put.unchanged

    def _compare(
        self, line: wire.ItemLine, row: model.LogItem, here: model.Item
    ) -> list[model.LogItem] | None:
        """What the log's rows say from now on where the item stays as it is here; None: it is to be
        written."""
        told = Place(row.origin, row.place)
        known = next(iter(self.store.entries(model.LogItem, {"item": here.id})), None)
        row = model.replace(row, item=here.id)
        if known is None:  # ours, and the log did not know
            same = wire.hash_item(here) == line.hash or is_same_machine(told.machine, self.own)
            return [row] if same else []
        have = Place(known.origin, known.place)
        own, theirs = (is_same_machine(one.machine, self.own) for one in (have, told))
        if told == have:
            return [] if known.sent else [model.replace(known, sent=True)]
        if (own and not theirs) or not told.is_newer(have):
            return []
        return [row] if known.hash == line.hash else None

    def _prepare(self, line: wire.ItemLine) -> model.Entry:
        over = find_item(self.store, line.supersedes) if line.supersedes else None
        item = model.replace(line.item, id=0, supersedes=over.id if over is not None else 0)
        pairs = ((n, find_item(self.store, name)) for n, name in line.of)
        evidence = tuple((n, one.id) for n, one in pairs if one is not None)
        entry = prepare_item(item, cut=False)
        return model.replace(entry, evidence=evidence) if item.source == model.DISTILLED else entry

    def _waiting(self, keys: Collection[str]) -> list[model.Waiting]:
        found = (self.store.queued_sessions(model.Queue("any", key=key)) for key in sorted(keys))
        return [one for some in found for one in some if one.changes]

    def _take_out(self, line: wire.GoneLine, place: Place) -> str:
        told = Place(line.origin, line.place) if line.origin else place
        here = find_item(self.store, (line.source, line.kind, line.ref))
        rows = self.store.entries(model.LogItem, {"item": here.id}) if here is not None else []
        if here is None or not rows or not told.is_newer(Place(rows[0].origin, rows[0].place)):
            return "same"
        if not is_same_machine(rows[0].origin, told.machine):
            return "same"
        self.store.remove([here.id])
        self.store.retract(model.LogItem, {"item": here.id})
        return "stored"

    # --- memories --------------------------------------------------------------------------------

    def _merge_memory(self, line: wire.MemoryLine, place: Place) -> str:
        store, root = self.store, wire.root_of(line.source, line.ref)
        if self._is_refused((line.source, "memory", line.ref), line.anew):
            return "refused: forgotten"
        versions = read_versions(store, root)
        told_before = {line.mark: line.parents, **versions}
        note_versions(store, root, (line.source, "memory", line.ref), self.own, told_before)
        versions = read_versions(store, root)
        rows = {row.head: row for row in store.entries(model.LogItem, {"root": root})}
        if line.mark in versions:
            known = rows.get(line.mark)
            if known is not None and not known.sent and place.machine != model.TEAM:
                store.append([model.replace(known, sent=True)])
            return "same"
        store.append([model.LogVersion(root, line.mark, line.parents)])
        versions[line.mark] = line.parents
        heads, names = wire.find_heads(versions), wire.name_heads(line.ref, versions)
        memos = {mark: memo for mark, row in rows.items() for memo in store.memos(ids=[row.item])}
        for mark in heads:
            ref, row = names[mark], rows.get(mark)
            told = line.memo if mark == line.mark else memos.get(mark)
            if row is not None and mark in memos and memos[mark].item.ref == ref:
                continue
            if mark == line.mark or told is not None:
                sent = model.replace(line, memo=told) if mark == line.mark else wire.MemoryLine(
                    line.source, line.ref, mark, memo=told, at=self._now
                )  # fmt: skip
                # The log of the owner's machines has nothing of what a team has told of theirs.
                in_log = place.machine != model.TEAM or line.source.startswith(model.TEAM)
                in_log = in_log and (row is None or row.sent)
                self._write_memory(sent, ref, root, place, sent_=in_log)
        # Of what is no head any more, or stands under another name now.
        kept = {names[mark] for mark in heads if not mark.startswith(wire.GONE)}
        for memo in memos.values():
            if memo.item.ref not in kept:
                self._let_go(memo.item, line)
        return "stored" if line.mark in heads else "same"

    def _write_memory(
        self, line: wire.MemoryLine, ref: str, root: str, place: Place, sent_: bool
    ) -> None:
        store = self.store
        here = find_item(store, (line.source, "memory", ref))
        if line.memo is None:
            if here is not None:
                self._let_go(here, line)
            return
        if self._is_refused((line.source, "memory", ref), line.anew):
            return
        told = wire.clean_memo(line.memo)
        known = next(iter(store.memos(ids=[here.id])), None) if here is not None else None
        over = find_item(store, line.supersedes) if line.supersedes else None
        item = model.replace(
            told.item, id=here.id if here is not None else 0, ref=ref,
            supersedes=over.id if over is not None else told.item.supersedes,
        )  # fmt: skip
        before = plain_form(known) if known is not None and known.version else None
        slug = known.slug if known and before else store.free_slug(item.project, told.slug)
        reason = told.reason
        if ref != wire.family_ref(ref) and not reason:
            reason = _BESIDE.format(told.slug)
            self.beside.append(slug)
        entry = prepare_item(item)
        version = known.version if known is not None else 0
        memo = model.replace(told, item=entry.item, slug=slug, reason=reason, version=version)
        after = plain_form(memo)
        change = model.Change(
            0, line.at or self._now, self._who(line, place), "update" if before else "create",
            redact(line.why),
            before and {name: old for name, old in before.items() if after[name] != old},
            {name: new for name, new in after.items() if not before or before[name] != new},
        )  # fmt: skip
        id_ = store.put_memo(entry, memo, change)
        former = store.entries(model.LogItem, {"item": id_})
        if former and place.machine == model.TEAM:  # whoever writes it last: it was made here
            place = Place(former[0].origin, former[0].place)
        store.append([
            model.LogItem(
                id_, *place, sent_, "", "memory", "", root, version=memo.version + 1,
                head=line.mark,
            )
        ])  # fmt: skip

    def _who(self, line: wire.MemoryLine, place: Place) -> str:
        if place.machine == model.TEAM:
            return line.who or "team"
        name = self._names.get(place.machine) or place.machine[:8]
        return f"{line.who or 'roam'} on {name}"

    def _let_go(self, item: model.Item, line: wire.MemoryLine) -> None:
        self.store.remove([item.id], (line.at or self._now, redact(line.why)))
        self.store.retract(model.LogItem, {"item": item.id})


def _group_of(line: wire.Line) -> tuple[type[wire.Line], bool]:
    """What can be merged together: what was distilled names what must be there before."""
    return type(line), isinstance(line, wire.ItemLine) and line.item.source == model.DISTILLED


def kept_ref(item: model.Item) -> str:
    """A note's and a memory's may hold words, and words may have to be forgotten."""
    return "" if item.kind in ("memory", "note") else item.ref


# --- out -----------------------------------------------------------------------------------------


class Version(NamedTuple):
    """A structured memory as it is now, with what is known of it."""

    line: wire.MemoryLine
    row: model.LogItem


class Teller(Part):
    """Tells of a store's items in lines, by names that hold everywhere. `own` is this machine's in
    the log; `private` are projects of which not even names are told."""

    def __init__(self, side: Side, own: str, private: Collection[str]) -> None:
        super().__init__(side)
        self._own, self._private = own, private
        self._tombstones = Tombstones(self._home)
        self._places: set[tuple[str, ...]] = set()  # that were told

    def tell_places(self, items: Sequence[model.Item]) -> Iterator[model.Project | model.Session]:
        """The projects and sessions of items, each once."""
        for key in dict.fromkeys(item.project for item in items):
            if (key,) not in self._places:
                self._places.add((key,))
                named = (one for one in self.store.projects() if one.key == key)
                yield from (model.replace(one, name=redact(one.name), root="") for one in named)
        for item in items:
            place = (item.session, item.agent)
            if item.session and place not in self._places:
                self._places.add(place)
                found = self.store.session(*place)
                if found is not None and found.project == item.project:
                    yield wire.clean_session(found)

    def tell_items(
        self, items: Sequence[model.Item]
    ) -> Iterator[tuple[model.Item, wire.ItemLine | Version]]:
        """What is to be told of items, in this order; ids have become names."""
        store, ids = self.store, [one.id for one in items]
        memos = {one.item.id: one for one in store.memos(ids=ids) if one.version}
        evidence = store.evidence([one.id for one in items if one.source == model.DISTILLED])
        named = {id_ for pairs in evidence.values() for _, id_ in pairs}
        names = self._name_items({*named, *(one.supersedes for one in items)})
        for item in items:
            if item.id in memos:
                yield item, self._tell_version(memos[item.id])
                continue
            of = tuple((n, names[id_]) for n, id_ in evidence.get(item.id, ()) if id_ in names)
            plain = model.replace(wire.clean_item(item), id=0, supersedes=0)
            over, anew = names.get(item.supersedes), self._is_anew(item)
            yield (
                item,
                wire.ItemLine(plain, wire.hash_item(item), of=of, supersedes=over, anew=anew),
            )

    def _tell_version(self, memo: model.Memo) -> Version:
        store, root = self.store, wire.root_of(memo.item.source, memo.item.ref)
        name = (memo.item.source, "memory", wire.family_ref(memo.item.ref))
        with store.transaction("memories"):
            note_versions(store, root, name, self._own)
        (row,) = store.entries(model.LogItem, {"item": memo.item.id})
        (memo,) = store.memos(ids=[memo.item.id])
        item = memo.item
        versions = store.entries(model.LogVersion, {"root": root, "mark": row.head})
        parents = versions[0].parents if versions else ()
        (last,) = read_history(store, item.id, 1) or [model.Change(0, 0, "", "")]
        clean = wire.clean_memo(model.replace(memo, item=model.replace(item, id=0, supersedes=0)))
        over = self._name_items({item.supersedes}).get(item.supersedes)
        line = wire.MemoryLine(
            name[0], name[2], row.head, parents, clean, over, last.who, redact(last.why),
            last.epoch, self._is_anew(item),
        )  # fmt: skip
        return Version(line, row)

    def _name_items(self, ids: Collection[int]) -> dict[int, model.Identity]:
        found = self.store.get(sorted(set(ids) - {0}))
        return {one.id: one.identity for one in found if one.project not in self._private}

    def _is_anew(self, item: model.Item) -> bool:
        """Was it forgotten, and said again since?"""
        return self._tombstones.knows("ref", *item.identity) and not self._tombstones.hides(item)


def tell_dropped(store: Store, heads: Mapping[int, tuple[str, str]]) -> dict[int, wire.MemoryLine]:
    """Memories of these items (root, version) as far as they were let go, each a version more."""
    dropped = {
        wire.root_of(source, ref): (source, wire.family_ref(ref), epoch, why)
        for source, ref, epoch, why, _ in store.totals(
            "memory_gone", by=("source", "ref", "epoch", "why")
        )
    }
    lines = {}
    for item, (root, mark) in heads.items():
        if root not in dropped:
            continue
        source, ref, epoch, why = dropped[root]
        former = mark.removeprefix(wire.GONE)
        with store.transaction("memories"):
            store.append([model.LogVersion(root, f"{wire.GONE}{former}", (former,))])
        lines[item] = wire.MemoryLine(
            source, ref, f"{wire.GONE}{former}", (former,), why=redact(why), at=epoch
        )
    return lines


# --- versions ------------------------------------------------------------------------------------


def read_versions(store: Store, root: str) -> dict[str, Collection[str]]:
    return {one.mark: one.parents for one in store.entries(model.LogVersion, {"root": root})}


def note_versions(
    store: Store, root: str, identity: model.Identity, own: str, known: wire.Versions | None = None
) -> None:
    """What has been written of a memory here since the log last had it is a version of its own.
    `known` are those in the log; by default what has been read of them."""
    rows = {row.item: row for row in store.entries(model.LogItem, {"root": root})}
    if not rows and (here := find_item(store, identity)) is not None:
        rows[here.id] = model.LogItem(here.id, own, 0, False, "", "memory", "", root)
    memos = {memo.item.id: memo for memo in store.memos(ids=list(rows))}
    for id_, row in rows.items():
        memo = memos.get(id_)
        parents: tuple[str, ...] = (row.head,) if row.head else ()
        if memo is not None and not row.head:
            known = read_versions(store, root) if known is None else known
            parents = find_ancestors(store, memo, known)
        if memo is None:
            if not row.head.startswith(wire.GONE):
                mark = f"{wire.GONE}{row.head}"
                store.append([model.LogVersion(root, mark, parents)])
                store.append([model.replace(row, head=mark, sent=False)])
        elif memo.version != row.version:
            over = store.get([memo.item.supersedes]) if memo.item.supersedes else []
            mark = wire.mark_form(plain_form(memo), over[0].identity if over else None, parents)
            store.append([model.LogVersion(root, mark, parents)])
            store.append(
                [model.replace(row, head=mark, sent=False, version=memo.version, origin=own)]
            )


def find_ancestors(store: Store, memo: model.Memo, known: wire.Versions) -> tuple[str, ...]:
    """What a memory was made of that this store does not know to be in the log, as after a backup
    was restored: its own history says whether it once was what stands there."""
    for version in range(memo.version, 0, -1):
        try:
            form = form_at_version(store, memo, version)
        except UsageError:
            break
        over = next(iter(store.get([form["supersedes"]])), None) if form["supersedes"] else None
        for mark, parents in known.items():
            if mark == wire.mark_form(form, over.identity if over else None, parents):
                return tuple(parents) if version == memo.version else (mark,)
    return ()
