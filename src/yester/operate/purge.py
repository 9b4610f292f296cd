"""A store without what its home has forgotten, whichever store it is: the present one, a backup,
one from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copy2, rmtree
from tempfile import TemporaryDirectory

from yester.ingest.prepare import prepare_item
from yester.known_secrets import keep_out_secrets
from yester.model import Filters, replace
from yester.redact import redact
from yester.store import copy_store, open_store, rewrite_texts, store_files, walk_items
from yester.store.contract import Store
from yester.tombstones import Tombstones, tombstones_file

_BATCH = 500


def purge_store(store: Store, home: Path) -> None:
    """Take out whatever the tombstones of this home hide."""
    tombstones = Tombstones(home)
    if not tombstones:
        return
    hidden = [item.id for item in walk_items(store) if tombstones.hides(item)]
    for start in range(0, len(hidden), _BATCH):
        with store.transaction("items"):
            gone = store.forget(hidden[start : start + _BATCH])
            freed = [replace(item, status="active") for item in store.get(gone.freed)]
            store.put([prepare_item(item) for item in freed])
    sessions = [
        one.id
        for one in store.sessions(Filters())
        if tombstones.hides_session(one) or tombstones.clean_session(one) != one
    ]
    projects = [one.key for one in store.projects() if tombstones.knows("project", one.key)]
    if sessions or projects:
        with store.transaction("items"):
            store.forget((), sessions, projects)


def redact_store(store: Store) -> None:
    """Every text that is stored without what today's rules take out."""
    with store.transaction("items"):
        rewrite_texts(store, redact, prepare_item, apply=True)


def obey_wishes(store: Store, home: Path) -> None:
    """A store from elsewhere, or from before, without what this home has forgotten, and without
    secrets that were named since."""
    purge_store(store, home)
    if keep_out_secrets(home):
        redact_store(store)


@contextmanager
def open_copy(path: Path | None, home: Path, now: int) -> Iterator[tuple[Store, Path]]:
    """A copy of a backup (None: nothing) as a store of its own, which knows what this home has
    forgotten; and its file. One at a time; nothing is left of it afterwards."""
    run = home / "run"
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in run.glob("restore*/"):  # by one that was killed
        rmtree(left, ignore_errors=True)
    with TemporaryDirectory(prefix="restore-", dir=run) as name:
        folder = Path(name)
        copy = copy_store(path, folder) if path else store_files(folder)[0]
        if tombstones_file(home).exists():
            copy2(tombstones_file(home), folder)
        with closing(open_store(folder, now=now)) as store:
            yield store, copy
