"""Where the agent works, and processes that are quick to start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.crash.killing import Zygote


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """On the disk, where other tests may be in memory: a kill must hit one who waits for it."""
    with TemporaryDirectory(prefix="yester-test-") as folder:
        inner = Path(folder) / "test"  # some put files beside it
        inner.mkdir()
        yield inner


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Where the agent works: hooks run here."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that is in memory if that can be had: a kill hits the program, not the disk."""
    ram = Path("/dev/shm")
    if not os.access(ram, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(prefix="yester-test-", dir=ram) as folder:
        yield Path(folder)


@pytest.fixture
def zygote(tmp_path: Path, own_home: Path) -> Iterator[Zygote]:
    with Zygote(tmp_path) as warm:
        yield warm


@pytest.fixture
def drain(zygote: Zygote, home: Path) -> Callable[..., int]:
    """`yester worker drain`; the number of events it took."""

    def drain(where: Path = home, **environ: str) -> int:
        return zygote.run(where, "worker", "drain", "--json", **environ)["events"]

    return drain
