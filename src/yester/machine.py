"""What systems do differently, in one place: locks, the account, who owns a file, ending a process.

yester is made for Linux and macOS. What is said here for Windows is written after the documentation
and has not been run there; nothing in yester needs a module of POSIX to be imported.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

# How a file is opened: as bytes, not passed on to programs that we start; without waiting for it.
QUIET = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_WAIT, NO_FOLLOW = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_NOFOLLOW", 0)
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
HAS_WORKER = hasattr(os, "mkfifo")  # it waits at a FIFO and a socket in its folder
_LOCKED_BYTE = 1 << 30  # on Windows a lock hides what it covers: nothing is there


def lock_file(number: int, shared: bool = False) -> None:
    """Lock an open file, or BlockingIOError where another process has it. The system lets go of it
    when its holder closes the file or dies."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(number, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None
    else:
        import fcntl

        fcntl.flock(number, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def read_start(number: int, most: int) -> bytes:
    """The first bytes of an open file."""
    os.lseek(number, 0, os.SEEK_SET)
    return os.read(number, most)


def write_start(number: int, data: bytes) -> None:
    os.lseek(number, 0, os.SEEK_SET)
    os.write(number, data)


def set_mode(number: int, mode: int) -> None:
    """Of an open file; on Windows a file has what its folder gives it."""
    if hasattr(os, "fchmod"):
        os.fchmod(number, mode)


def user_number() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def is_own(status: os.stat_result) -> bool:
    """Does a file belong to the user of this process?"""
    return status.st_uid == user_number()


def account_home() -> Path:
    """The account's own folder, whatever HOME says."""
    if sys.platform == "win32":
        return Path.home()
    import pwd

    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def kill_group(pid: int) -> None:
    """End a process that was started in a session of its own, with all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, KILL)
        else:
            os.kill(pid, KILL)


def most_memory() -> int:
    """The most memory that this process has ever had, as the system counts it; 0: it does not."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def on_battery(supplies: Path = Path("/sys/class/power_supply")) -> bool:
    """What nobody waits for can wait then. False where it cannot be told, as elsewhere than on
    Linux."""

    def read_word(one: Path, name: str) -> str:
        with suppress(OSError):
            return (one / name).read_text("ascii").strip()
        return ""

    found = sorted(supplies.iterdir()) if supplies.is_dir() else []
    kinds = {one: read_word(one, "type") for one in found}
    if any(kind != "Battery" and read_word(one, "online") == "1" for one, kind in kinds.items()):
        return False
    return any(
        kind == "Battery" and read_word(one, "status") == "Discharging"
        for one, kind in kinds.items()
    )


def look_less_for_cycles() -> None:
    """For a process that answers: a question makes thousands of objects and hardly a cycle, and to
    look for those among all that the process holds costs a twentieth of it."""
    gc.freeze()
    gc.set_threshold(20_000)
