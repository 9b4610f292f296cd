"""Being the one worker of a home: an flock on run/worker.lock. (And the one server, on another.)

The kernel lets go of it when its holder dies, however it dies, so there is no stale lock and no
pid to be mistaken for another process. The file's text is for people and for `yester worker stop`.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path


class Seat:
    def __init__(self, handle: int) -> None:
        self._handle = handle

    def leave(self) -> None:
        os.close(self._handle)


WORKER, SERVER = "worker.lock", "serve.lock"


def take(home: Path, patience: float = 0.0, name: str = WORKER) -> Seat | None:
    """The seat, or None where another process has it for longer than `patience` seconds."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)  # the mode is that of the last one alone
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    handle = os.open(home / "run" / name, flags, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                return None
            time.sleep(0.005)
    with suppress(OSError):  # never shorter than before: on a full disk the old block is still ours
        os.pwrite(handle, f"{os.getpid():<10}\n".encode(), 0)
    return Seat(handle)


def holder(home: Path, name: str = WORKER) -> int:
    """The process that has it, or 0. The pid in the file counts only while the lock is held."""
    try:
        handle = os.open(home / "run" / name, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return 0
    except BlockingIOError:
        text = os.pread(handle, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)
