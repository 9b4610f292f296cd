"""Empty stores. Making one takes five times as long as opening it: it is made once and copied."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests import postgres
from yester.store import open_store
from yester.store.contract import Store


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        open_store(Path(folder), now=1).close()
        return (Path(folder) / "yester.db").read_bytes()


def with_store(folder: Path) -> Path:
    """This folder, with the store in it that opening it would make, if it has none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "yester.db"
    if not file.exists():
        file.touch(0o600)
        file.write_bytes(_empty())
    return folder


def _open_sqlite(folder: Path) -> Store:
    return open_store(with_store(folder), now=1_000)


def _open_postgres(folder: Path) -> Store:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_store(postgres.address(folder), now=1_000, home=folder)


# Every engine there is, and how to open the store of a folder with it.
BACKENDS = {"sqlite": _open_sqlite, "postgresql": _open_postgres}
