"""The store and what finds texts by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from yester.config import Config
from yester.doctor.finding import Finding, problem
from yester.errors import ModelError, StoreDamaged, YesterError
from yester.ingest.joins import names_of
from yester.model import Join, Paging
from yester.operate import backups
from yester.store import maintenance_of, open_store, store_exists, store_file
from yester.store.contract import Store
from yester.store.figures import content_counts, project_parts


def model(home: Path, config: Config, thoroughly: bool = True) -> Iterator[Finding]:
    """The files of the embedding model, by their hashes, and whether it can be run."""
    from yester.text.embed import why_not
    from yester.text.models import MODELS, verify_files

    name = config.text("embedder")
    if name == "none":
        yield Finding(
            "model",
            "note",
            "none: search goes by words alone",
            "Run: yester model use yester-embed-1",
        )
        return
    try:
        if name in MODELS and thoroughly:
            verify_files(MODELS[name], home)
        reason = why_not(config.values, home)
    except ModelError as error:
        reason = str(error)
    if reason:
        yield problem("model", reason, "Run: yester model list")
    else:
        whole = name in MODELS and thoroughly
        yield Finding("model", "ok", name + (", its files are whole" if whole else ""))


def store(
    home: Path, config: Config, now: int, fix: bool, thoroughly: bool = True
) -> Iterator[Finding]:
    """Thoroughly is everything read, and tried whether it can be written."""
    if not store_exists(home):
        yield Finding("store", "note", "nothing is indexed yet", "Run: yester index")
        return
    try:
        opened = open_store(
            home, now=now,
            before_migration=backups.before_migration(home, config.number("backups_kept"), now),
        )  # fmt: skip
    except StoreDamaged as error:
        yield Finding("store", "problem", str(error).split("; ")[0], _advice("", home))
        return
    except YesterError as error:
        yield problem("store", str(error), f"Look at {store_file(home)}.")
        return
    try:
        yield from _opened(opened, home, fix) if thoroughly else _seen(opened)
        yield from _joined(opened)
        kept = backups.list_backups(home)
        newest = f"{len(kept)}, newest {kept[0].name}" if kept else "none yet"
        yield Finding(
            "backups", "ok" if kept else "note", newest, "" if kept else "Run: yester backup"
        )
    finally:
        opened.close()


def _opened(store: Store, home: Path, fix: bool) -> Iterator[Finding]:
    try:
        with store.transaction():
            pass  # whoever may begin one may write
    except YesterError as error:
        yield problem("store", str(error), f"Make sure that you may write in {home}.")
        return
    care = maintenance_of(store)
    problems = care.check()
    broken_index = [text for text in problems if text.startswith("index:")]
    stale = care.stale()
    if fix and (broken_index or stale) and len(broken_index) == len(problems):
        yield _repaired(lambda: _reindex(store), _advice("", home))
        problems, stale = care.check(), care.stale()
    for text in problems:
        yield Finding("store", "problem", text, _advice(text, home))
    if stale:
        yield Finding("index", "problem", stale, "Run: yester reindex")
    if not problems:
        counts = content_counts(store)
        items = sum(counts.items.values())
        yield Finding("store", "ok", f"{items:,} items, {counts.bytes / 1e6:,.1f} MB, no damage")


def _seen(store: Store) -> Iterator[Finding]:
    try:
        if stale := maintenance_of(store).stale():
            yield Finding("index", "problem", stale, "Run: yester reindex")
        items = sum(sum(part.items.values()) for part in project_parts(store))
        yield Finding("store", "ok", f"{items:,} items in use")
    except YesterError as error:
        yield problem("store", str(error), "Run: yester doctor")


def _joined(store: Store) -> Iterator[Finding]:
    """What was moved without being asked for must be told, and how to undo it."""
    try:
        joins = [
            join for join in store.entries(Join, page=Paging(oldest_first=True)) if not join.undone
        ]
    except YesterError:
        return  # the store is damaged, as was said
    if joins:
        items = sum(join.items for join in joins)
        yield Finding(
            "projects", "note", f"work trees that are gone are joined with their repositories, "
            f"{items:,} items: {names_of(store, joins)}",
            "To have one as a project of its own again: yester doctor --undo-join NAME",
        )  # fmt: skip


def _advice(text: str, home: Path) -> str:
    if text.startswith("index:"):
        return "Run: yester reindex (the items themselves are not affected)"
    if backups.list_backups(home):
        return "Bring a backup back: yester restore latest (the present file is moved aside)"
    return (
        f"There is no backup. Move {store_file(home)} away and run: yester index"
        " (the transcripts are read again)"
    )


def _repaired(repair: Callable[[], int], advice: str) -> Finding:
    try:
        return Finding("index", "ok", f"built anew over {repair():,} items")
    except (YesterError, apsw.Error) as error:
        return Finding("index", "problem", f"could not be built anew: {error}", advice)


def _reindex(store: Store) -> int:
    with store.transaction("index"):
        return maintenance_of(store).reindex()
