"""What the user wants gone, taken out of everything that is ours, byte by byte:

    rows, vectors and terms → the full text → the log → backups → spool, logs, archives

The wish is written down before anything is done (`forgetting`, beside the database) and struck out
when all of it is: whoever kills the process, or pulls the plug, finds it unfinished, and the next
call finishes it. Every step can be done twice. What was forgotten is known by `yester.tombstones`
from the first step on; a wish names sessions and words, so it goes with the last.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Literal

import msgspec
from msgspec import Struct, field

from yester.capture.question import ask_worker
from yester.capture.spool import LARGEST, open_spool, redact_file
from yester.errors import StoreBusy, YesterError
from yester.files import read_bytes, replace_file
from yester.llm.archive import edit_archives, short_key
from yester.memory import Memory
from yester.operate.backups import list_backups
from yester.operate.purge import open_copy, purge_store, redact_store
from yester.redact import find_named, find_secrets, redact, strip_private
from yester.sharing.exchange import Progress
from yester.store import file_store, rewrite_texts, scrub_store, store_files, walk_items
from yester.store.contract import Store
from yester.store.lock import write_lock

_STOPPING = 20.0  # seconds a worker may take to finish what it has
# Half of something, by processes that were killed.
_LEFT_BEHIND = (
    "backups/*.part*", "yester-before-restore-*.part", "run/restore-*", ".forgetting.*",
    ".forgotten.*", ".secrets.*",
)  # fmt: skip


_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")  # as JSON may write a letter


def _read_escape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


class Wish(Struct):
    """What is to be done, in words of the user's: it is on the disk only until it is done."""

    what: Literal["forget", "redact"]
    made: int
    sessions: list[str] = field(default_factory=list)  # keys; something of each goes
    places: list[str] = field(default_factory=list)  # folders of which nothing stays
    words: list[str] = field(default_factory=list)  # what stands with all of them goes
    backups: list[str] = field(default_factory=list)  # those that are done

    def names(self, text: str) -> bool:
        """Is this a text of one of the sessions or places, or one with these words?"""
        places = [os.path.join(place, "") for place in self.places]  # noqa: PTH118 -- ends with /
        return (
            any(key in text for key in self.sessions)
            or any(place in text or f'"{place[:-1]}"' in text for place in places)
            or bool(self.words and has_words(_ESCAPE.sub(_read_escape, text), self.words))
        )


def _wish_file(home: Path) -> Path:
    return home / "forgetting"


def load_wish(home: Path) -> Wish | None:
    """What was begun and not finished."""
    with suppress(FileNotFoundError):
        return msgspec.json.decode(_wish_file(home).read_bytes(), type=Wish)
    return None


def _save_wish(home: Path, wish: Wish) -> None:
    replace_file(_wish_file(home), msgspec.json.encode(wish), sync=True)


def grant_wish(memory: Memory, wish: Wish, progress: Progress) -> dict[str, str]:
    """Do all of it; what could not be rewritten, and why. Nobody takes events in meanwhile: the
    worker ends first, and hooks leave theirs in the spool."""
    home, store = memory.home, memory.store
    _save_wish(home, wish)
    with no_worker(home):
        _change_store(store, wish, home)
        for path in store_files(memory.target):
            progress("the store is written anew", 0, 1)
            scrub_store(path, home)
        with write_lock(home / "run" / "restore.lock", _STOPPING):
            dropped = _rewrite_backups(home, wish, progress)
        progress("spool, logs, archives", 0, 1)
        _clean_spool(memory, wish)
        (home / "run" / "armed").unlink(missing_ok=True)  # words of errors; the next worker's
        for log in home.glob("logs/*"):  # nothing that was captured; paths and sessions may be
            with suppress(OSError):
                os.truncate(log, 0)
        names = {short_key(key) for key in wish.sessions}

        def change(name: str, block: str) -> str:
            if wish.what == "redact":
                return redact(block)
            return "" if name in names or wish.names(block) else block

        edit_archives(memory.config, change)
        _wish_file(home).unlink(missing_ok=True)
    return dropped


def forget_marked(memory: Memory, progress: Progress) -> Callable[[], Store]:
    """What takes out, everywhere, what somebody else's word has had marked as forgotten here, and
    gives back the store, opened anew."""

    def forget() -> Store:
        for wish in (load_wish(memory.home), Wish("forget", memory.now)):
            if wish is not None:
                grant_wish(memory, wish, progress)
        return memory.store

    return forget


@contextmanager
def no_worker(home: Path) -> Iterator[None]:
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    ask_worker(home / "run", "POST /stop", 2.0)
    try:
        with write_lock(home / "run" / "worker.lock", _STOPPING):
            yield
    except StoreBusy as busy:
        if "worker.lock" not in str(busy):
            raise
        raise StoreBusy(
            f"{home}: the worker does not end, and it may write; yester worker stop, then ask again"
        ) from None


def _change_store(store: Store, wish: Wish, home: Path) -> None:
    if wish.what == "redact":
        redact_store(store)
        return
    purge_store(store, home)
    if wish.words:
        with store.transaction("items"):
            blank_quotes(store, wish.words, apply=True)


def blank_quotes(store: Store, words: Sequence[str], apply: bool = False) -> int:
    """Lines of histories and ledgers in which all these words stand, made empty; how many."""

    def blank(text: str) -> str:
        return "(forgotten)" if has_words(text, words) else text

    return rewrite_texts(store, blank, None, apply, only_quotes=True)


def has_words(text: str, words: Sequence[str]) -> bool:
    """Do all of them stand there, whatever their case? They are folded."""
    folded = text.casefold() if words else ""
    return all(word in folded for word in words)


def list_copies(home: Path) -> list[Path]:
    """Every copy of the store: backups, and former stores that a restore has put aside."""
    return [*list_backups(home), *sorted(home.glob("yester-before-restore-*.db"))]


def _rewrite_backups(home: Path, wish: Wish, progress: Progress) -> dict[str, str]:
    """Each backup without what goes; one that cannot be read is dropped, with the reason."""
    for left in (path for pattern in _LEFT_BEHIND for path in home.glob(pattern)):
        rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    copies, dropped = list_copies(home), dict[str, str]()
    for number, path in enumerate(copies):
        progress("backups", number, len(copies))
        if path.name in wish.backups:
            continue
        try:
            with open_copy(path, home, wish.made) as (store, copy):
                _change_store(store, wish, home)
                scrub_store(copy, copy.parent)
                file_store(store).backup(path)
        except YesterError as error:
            dropped[path.name] = str(error)
            path.unlink(missing_ok=True)
        Path(f"{path}-wal").unlink(missing_ok=True)
        wish.backups.append(path.name)
        _save_wish(home, wish)
    progress("backups", len(copies), len(copies))
    return dropped


def _clean_spool(memory: Memory, wish: Wish) -> None:
    """What waits, and what was set aside, without what is meant; for a redaction without its
    secrets."""
    for folder in open_spool(memory.home, memory.environ).folders:
        for path in (*folder.glob("new/*"), *folder.glob("bad/*"), *folder.glob("tmp/*")):
            with suppress(OSError):
                if wish.what == "redact":
                    redact_file(path)
                elif wish.names(read_bytes(path, LARGEST).decode("utf-8", "replace")):
                    path.unlink()
                    (folder / "reasons").unlink(missing_ok=True)


# --- what is there -------------------------------------------------------------------------------


def count_secrets(store: Store) -> Counter[str]:
    """What today's rules would take out of what is stored, by its kind; never a value."""
    found: Counter[str] = Counter()

    def look(text: str) -> str:
        clean = strip_private(text)
        found.update(name for _, _, name in (*find_secrets(clean), *find_named(clean)))
        found["private"] += clean != text
        return text

    for item in walk_items(store):
        for text in item.texts:
            look(text)
    rewrite_texts(store, look, None, apply=False)
    return +found


def own_files(memory: Memory) -> list[Path]:
    """Every file that yester writes: its home, the second spools, and blocks in archives that stand
    beside an agent's own notes."""
    roots = [memory.home, *open_spool(memory.home, memory.environ).folders[1:]]
    found = {path for root in roots for path in root.rglob("*") if path.is_file()}
    for folder in memory.config.texts("claude_code_dirs"):
        found.update(Path(folder).expanduser().glob("projects/*/memory/sessions/*.md"))
    return sorted(path for path in found if not path.is_symlink())
