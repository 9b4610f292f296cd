"""A store without what its home has forgotten, whichever store it is: the present one, a backup,
one from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from yester.ingest.prepare import prepare_item
from yester.known_secrets import keep_out_secrets
from yester.model import ANYTHING, Filters, Item, Paging, replace
from yester.redact import redact
from yester.store import rewrite_texts
from yester.store.contract import Store
from yester.tombstones import Tombstones

_PAGE, _BATCH = 1_000, 500


def purge_store(store: Store, tombstones: Tombstones) -> int:
    """Take out whatever the tombstones hide; how many items that were."""
    if not tombstones:
        return 0
    sessions = [
        one.id
        for one in store.sessions(Filters())
        if tombstones.hides_session(one) or tombstones.hides_title(one.key, one.title)
    ]
    projects = [one.key for one in store.projects() if tombstones.hides_project(one.key)]
    hidden = [item.id for item in every_item(store) if tombstones.hides(item)]
    number = 0
    for start in range(0, len(hidden), _BATCH):
        with store.transaction("items"):
            gone = store.forget(hidden[start : start + _BATCH])
            again = [replace(item, status="active") for item in store.get(gone.freed)]
            store.put([prepare_item(item) for item in again])
            number += len(gone.items)
    if sessions or projects:
        with store.transaction("items"):
            known = {one.id for one in store.sessions(Filters())}
            store.forget((), [id_ for id_ in sessions if id_ in known], projects)
    return number


def obey_wishes(home: Path, store: Store) -> None:
    """A store from elsewhere, or from before, without what this home has forgotten, and without
    secrets that were named since."""
    purge_store(store, Tombstones(home))
    if keep_out_secrets(home):
        with store.transaction("items"):
            rewrite_texts(store, redact, prepare_item, apply=True)


def every_item(store: Store, filters: Filters = ANYTHING) -> Iterator[Item]:
    """All there is, whatever its status; a page at a time."""
    page = Paging(_PAGE, oldest_first=True, statuses=())
    while found := store.select(filters, page):
        yield from found
        page = replace(page, behind=(found[-1].epoch, found[-1].id))
