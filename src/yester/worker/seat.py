"""Being the one worker of a home: an flock on run/worker.lock. (And the one server, on another.)

The kernel lets go of it when its holder dies, however it dies, so there is no stale lock and no
pid to be mistaken for another process. The file's text is for people and for `yester worker stop`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
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


def send(home: Path, pid: int, number: int, name: str = WORKER) -> bool:
    """A signal to the process that has the seat; False, and none is sent, where that is not `pid`.

    The lock's file names its holder a moment late, and on a full disk not at all; and a pid may be
    another process's by the time it is used. So the process is held by a handle first."""
    handle = -1
    if sys.platform == "linux":
        with suppress(OSError):  # not on this kernel, or it has ended
            handle = os.pidfd_open(pid)
    try:
        if holder(home, name) != pid or not _has_open(pid, home / "run" / name):
            return False
        if sys.platform == "linux" and handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)


def _has_open(pid: int, path: Path) -> bool:
    """Where the system shows it; elsewhere the name in the file must do."""
    folder = Path(f"/proc/{pid}/fd")
    if not Path("/proc/self/fd").exists():
        return True
    wanted = path.stat()
    try:
        return any(_is_same(one, wanted) for one in folder.iterdir())
    except OSError:
        return False


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), wanted)
    except OSError:
        return False  # closed meanwhile
