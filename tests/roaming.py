"""Machines of one owner for tests: homes with stores that roam through one log."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.memories.lifecycle import edit_memory
from yester.memories.memory import Author
from yester.memories.remember import Draft, remember
from yester.model import Filters, Item, Memo, Paging, Project
from yester.operate.purge import purge_store
from yester.sharing.exchange import Side
from yester.sharing.keys import Key, load_key
from yester.sharing.roam import Report, Roam
from yester.sharing.transports import Folder
from yester.store import open_store, walk_items
from yester.tombstones import Tombstones, ref_key, text_key

SHOP = Project("git:example.com/sam/shop", "shop")


class Unplugged(Exception):
    """The way to the log breaks in the middle."""


class Breaking(Folder):
    """A folder that is gone after so many files have been written."""

    def __init__(self, root: Path, files: int) -> None:
        super().__init__(root)
        self.left = files

    def write_files(self, files):
        for path, data in files.items():
            if not self.left:
                raise Unplugged
            self.left -= 1
            super().write_files({path: data})


class Box:
    """A machine. `skew` is by how much its clock is wrong."""

    def __init__(self, folder: Path, log: Path, skew: int = 0) -> None:
        self.home, self.log, self.skew = with_store(folder), log, skew
        self.store = open_store(self.home, now=1)

    def close(self) -> None:
        self.store.close()

    def reopen(self):
        self.store.close()
        self.store = open_store(self.home, now=1)
        return self.store

    def _roam(self, transport: Folder | None, now: int) -> Roam:
        def forget():
            purge_store(self.store, self.home)
            return self.reopen()

        side = Side(self.home, self.store, now + self.skew, forget)
        return Roam(side, transport or Folder(self.log))

    def roam_over(self, transport: Folder) -> Roam:
        return self._roam(transport, 1)

    def begin(self) -> Key:
        self.log.mkdir(exist_ok=True)
        return self._roam(None, 1).begin_log()

    def join(self, other: Box) -> None:
        self._roam(None, 1).join_log(Key.from_code(load_key(other.home).code))

    def roam(self, now: int = 1_000, transport: Folder | None = None) -> Report:
        return self._roam(transport, now).exchange()

    def change_key(self, now: int = 1_000) -> Key:
        return self._roam(None, now).change_key()

    # --- what a user and an agent do -------------------------------------------------------------

    def say(self, ref: str, text: str, epoch: int, session: str = "", **more: object) -> None:
        item = Item(
            ref, "message", SHOP.key, session or f"session-{self.home.name}", source="claude-code",
            agent="claude-code", role="assistant", epoch=epoch + self.skew, body=text,
        )  # fmt: skip
        item = Item(**{**{f: getattr(item, f) for f in item.__struct_fields__}, **more})
        with self.store.transaction("items"):
            self.store.put([prepare_item(item)])

    def note(self, text: str, now: int) -> int:
        by = Author("sam", now + self.skew)
        draft = Draft(text=text, type="decision", title=text)
        return remember(self.store, draft, SHOP, by).memo.item.id

    def edit(self, id_: int, text: str, now: int) -> None:
        edit_memory(self.store, id_, {"title": text}, Author("sam", now + self.skew))

    def forget(self, id_: int, now: int) -> None:
        (item,) = self.store.get([id_])
        made = max(now + self.skew, item.epoch, item.updated)
        Tombstones(self.home).add({ref_key(item): made, text_key(item): made})
        with self.store.transaction("items"):
            self.store.forget([id_])
        self.reopen()

    # --- what there is ---------------------------------------------------------------------------

    def items(self) -> dict[str, str]:
        """ref → text of what was said; each once."""
        found = [i for i in walk_items(self.store) if i.kind != "memory"]
        assert len({i.ref for i in found}) == len(found)
        return {i.ref: i.body for i in found}

    def memos(self) -> list[Memo]:
        return self.store.memos(Filters(), Paging(statuses=()))

    def titles(self) -> set[str]:
        found = [memo.item.title for memo in self.memos()]
        assert len({*found}) == len(found)
        return {*found}

    # --- copies ----------------------------------------------------------------------------------

    def back_up(self) -> Path:
        copy = self.home.parent / f"{self.home.name}.copy"
        with closing(open_store(self.home, now=1)) as store:
            store.backup(copy)  # type: ignore[attr-defined]
        return copy

    def restore(self, copy: Path) -> None:
        self.store.close()
        for left in self.home.glob("yester.db*"):
            left.unlink()
        shutil.copy(copy, self.home / "yester.db")
        self.store = open_store(self.home, now=1)
        purge_store(self.store, self.home)
        self.reopen()
