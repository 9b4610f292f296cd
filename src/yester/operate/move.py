"""A store on another engine: copied, and proven to answer as before."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from yester.files import replace_file
from yester.memory import Memory
from yester.model import Filters, Item, Paging
from yester.recall.recall import Asked, answer_question
from yester.store import is_server_url, open_store
from yester.store.contract import Store
from yester.store.transfer import Progress, leave_store, move_rows

_QUESTIONS = 100
_DEPTH = 20  # answers of each that are compared
_WORD = re.compile(r"[^\W\d_]{4,}")
_FROM, _WORDS = 600, 6  # so many words of the first characters of an item
ALIKE = 1e-6  # what two scores may differ by


class Compared(Struct, frozen=True):
    """Questions that both stores were asked."""

    questions: int
    same: int  # with the same items in the same order
    difference: float  # the most that two scores of those differ by
    example: str = ""  # a question that was answered otherwise

    @property
    def equal(self) -> bool:
        return self.same == self.questions and self.difference <= ALIKE


class Moved(Struct, frozen=True):
    """A store that was copied."""

    items: int
    compared: Compared | None  # where it was verified


def move_store(memory: Memory, to: str, verify: bool, use: bool, progress: Progress) -> Moved:
    """Everything of an opened memory in another, empty store. With `use` that one is in use from
    now on, where it does not answer otherwise: nothing is written to the old one in between."""
    store, server = memory.store, is_server_url(to)
    with closing(_open_target(memory, to)) as target, store.transaction("index"):
        number = move_rows(store, target, progress)
        folder = Path(to).expanduser()
        if not server and not folder.samefile(memory.home):
            for name in ("forgotten", "secrets"):  # what was forgotten must not come back there
                if (memory.home / name).exists():
                    shutil.copy2(memory.home / name, folder / name)
        compared = _compare_stores(memory, store, target) if verify else None
        if use and (compared is None or compared.equal):
            if server:
                replace_file(memory.home / "database", f"{to}\n".encode())
            else:
                (memory.home / "database").unlink(missing_ok=True)
            leave_store(store)
    return Moved(number, compared)


def _compare_stores(memory: Memory, store: Store, target: Store) -> Compared:
    """Ask both stores what stands in the one."""
    same, questions, difference, example = 0, 0, 0.0, ""
    for asked in _draw_questions(store, memory.now):
        one, other = (
            answer_question(each, asked, memory.weights, memory.search_embedder)
            for each in (store, target)
        )
        questions += 1
        if [hit.id for hit in one.hits] != [hit.id for hit in other.hits]:
            example = example or asked.query
            continue
        same += 1
        both = zip(one.hits, other.hits, strict=True)
        difference = max([difference, *(abs(a.score - b.score) for a, b in both)])
    return Compared(questions, same, difference, example)


def _open_target(memory: Memory, to: str) -> Store:
    target = to if is_server_url(to) else Path(to).expanduser()
    return open_store(target, now=memory.now, home=memory.home if is_server_url(to) else None)


def _draw_questions(store: Store, now: int) -> Iterator[Asked]:
    """Words of items from the whole of the store; every third question in the item's project."""
    total = sum(number or 0 for (number,) in store.totals("indexed"))
    step = max(1, total // (2 * _QUESTIONS))
    drawn = 0
    for place in range(0, total, step):
        found = store.select(Filters(), Paging(1, place))
        words = _question_of(found[0]) if found else ""
        if words and drawn < _QUESTIONS:
            drawn += 1
            projects = (found[0].project,) if drawn % 3 == 0 else ()
            yield Asked(words, Filters(projects=projects), _DEPTH, now=now, raw=True)


def _question_of(item: Item) -> str:
    words = dict.fromkeys(_WORD.findall(f"{item.title} {item.body[:_FROM]}".lower()))
    return " ".join(sorted(words, key=len, reverse=True)[:_WORDS])
