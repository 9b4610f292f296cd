"""Three machines of one owner, in any order, with whatever goes wrong: nothing is lost, doubled or
comes back."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.roaming import Box, Breaking, Unplugged
from yester.sharing.keys import load_key
from yester.sharing.roam import list_segments, load_roaming
from yester.sharing.segments import open_segment
from yester.sharing.transports import Folder
from yester.sharing.wire import ItemLine, MemoryLine

pytestmark = pytest.mark.requirement("TEAM-05")

# Each example opens three stores and writes files with fsync: few, unless many are asked for.
_EXAMPLES = settings().max_examples
EXAMPLES = _EXAMPLES if _EXAMPLES >= 1_000 else 6

STEP = st.tuples(
    st.sampled_from(
        ["say", "say", "grow", "note", "edit", "edit", "forget", "back up", "restore", "roam",
         "roam", "roam", "break"]
    ),
    st.integers(0, 2),
    st.integers(0, 5),
)  # fmt: skip


class World:
    """What ought to be: told by what was done, without any of the code that does it."""

    def __init__(self, folder: Path, skews: tuple[int, ...]) -> None:
        self.log = folder / "log"
        self.boxes = [Box(folder / f"m{n}", self.log, skew) for n, skew in enumerate(skews)]
        self.boxes[0].begin()
        for other in self.boxes[1:]:
            other.join(self.boxes[0])
        self.copies: dict[int, Path] = {}
        self.names = count(1)
        self.texts: dict[str, list[str]] = {}  # ref → what it has said, the newest last
        self.homes: dict[str, int] = {}  # ref → its machine
        self.above: dict[str, frozenset[str]] = {}  # title → those it was made of
        self.forgotten: set[str] = set()  # refs and titles

    def do(self, what: str, machine: int, which: int, now: int) -> None:
        box = self.boxes[machine]
        name = f"{next(self.names)}"
        own = sorted(r for r in box.items() if self.homes[r] == machine)
        memos = sorted(box.memos(), key=lambda memo: memo.item.title)
        if what == "say":
            text = f"words of number {name} that nobody else has said"
            box.say(f"r{name}", text, now)
            self.texts[f"r{name}"], self.homes[f"r{name}"] = [text], machine
        elif what == "grow" and own:
            ref = own[which % len(own)]
            text = f"{box.items()[ref]} and {name}"
            self.texts[ref].append(text)
            box.say(ref, text, now)
        elif what == "note":
            title = f"Zebra{name} quokka{name} numbat{name}"
            box.note(title, now)
            self.above[title] = frozenset()
        elif what == "edit" and memos:
            memo = memos[which % len(memos)]
            title = f"Edited{name} otter{name}"
            box.edit(memo.item.id, title, now)
            old = memo.item.title
            self.above[title] = self.above[old] | {old}
        elif what == "forget":
            items = sorted(i.ref for i in _said(box))
            if memos and which % 2:
                memo = memos[which % len(memos)]
                self.forgotten |= self._family(memo.item.title)
                box.forget(memo.item.id, now)
            elif items:
                ref = items[which % len(items)]
                (item,) = box.store.find_by_ref(ref)
                self.forgotten.add(ref)
                box.forget(item.id, now)
        elif what == "back up":
            self.copies[machine] = box.back_up()
        elif what == "restore" and machine in self.copies:
            box.restore(self.copies[machine])
        elif what == "roam":
            box.roam(now)
        elif what == "break":
            with_break = Breaking(self.log, which % 2)
            try:
                box.roam(now, with_break)
            except Unplugged:
                box.reopen()

    def _family(self, title: str) -> set[str]:
        first = {t for t in {*self.above[title], title} if not self.above[t]}
        return {t for t, above in self.above.items() if first & {t, *above}}

    def in_log(self) -> tuple[dict[str, list[str]], set[str]]:
        """What the log holds: texts by ref, and titles."""
        key, state = load_key(self.boxes[0].home), load_roaming(self.boxes[0].home)
        assert state is not None
        folder = Folder(self.log)
        texts: dict[str, list[str]] = {}
        titles: set[str] = set()
        for name in list_segments(state.log, folder.list_files()):
            data = folder.read_files([name.path])[name.path]
            for line in open_segment(key, name, data).lines:
                if isinstance(line, ItemLine):
                    texts.setdefault(line.item.ref, []).append(line.item.body)
                elif isinstance(line, MemoryLine) and line.memo is not None:
                    titles.add(line.memo.item.title)
        return texts, titles

    def check(self, now: int) -> None:
        there, known = self.in_log()
        for box in self.boxes:
            known |= box.titles()
            for ref, text in box.items().items():
                there.setdefault(ref, []).append(text)
        for _ in range(3):
            for box in self.boxes:
                box.roam(now)
        # A memory's family is known by its first title, and titles by what they were made of.
        lost = {t for t in self.forgotten if t in self.above}
        roots = {r for t in lost for r in {t, *self.above[t]} if not self.above[r]}
        gone = {t for t, above in self.above.items() if roots & {t, *above}}
        heads = {t for t in known - gone if not any(t in self.above[o] for o in known - gone)}
        for box in self.boxes:
            items = box.items()
            assert set(items) == set(there) - self.forgotten
            for ref, text in items.items():
                assert text in there[ref]
            assert box.titles() == heads
            assert not box.roam(now).written
        first = self.boxes[0].items()
        assert all(box.items() == first for box in self.boxes)


def _said(box: Box):
    from yester.store import walk_items

    return [i for i in walk_items(box.store) if i.kind != "memory"]


# What the log had already was changed in a store that had forgotten sending it.
RESTORED_AND_EDITED = [
    *[("say", 0, 0)] * 3,
    *[(what, 0, 0) for what in ("note", "back up", "roam", "restore", "edit")],
]


@settings(max_examples=EXAMPLES)
@given(
    st.lists(STEP, min_size=8, max_size=30),
    st.tuples(*[st.sampled_from([0, -7_200_000, 7_200_000])] * 3),
)
@example(steps=RESTORED_AND_EDITED, skews=(0, 0, 0))
def test_whatever_happens_between_three_machines_nothing_is_lost_doubled_or_comes_back(
    steps, skews
):
    with TemporaryDirectory() as folder:
        world = World(Path(folder), skews)
        try:
            for at, (what, machine, which) in enumerate(steps):
                world.do(what, machine, which, 10_000_000 + at * 1_000)
            world.check(20_000_000)
        finally:
            for box in world.boxes:
                box.close()
