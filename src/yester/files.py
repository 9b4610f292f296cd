"""Files read that somebody else has put there (a repository's, an agent's, whatever a payload
names), and files of our own replaced.

In a file's place may stand a pipe nobody writes into, a device without an end, a link to either or
something larger than memory. All of it is read here and nowhere else: a plain file, never more of
it than was meant, and without waiting. What does not fit raises OSError.
"""

from __future__ import annotations

import os
from errno import EFBIG, EINVAL, ELOOP
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO

SMALL = 1 << 20  # bytes; a hundred times what a file of settings has


def open_file(path: Path, follow: bool = True) -> BinaryIO:
    """A plain file, to be read; with `follow` false no link to one either."""
    try:
        # Looked at before it is opened: opening alone makes some devices act.
        _check_plain(path, path.stat(follow_symlinks=follow).st_mode)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        number = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    except ValueError as error:  # a NUL in its name
        raise OSError(EINVAL, str(error), str(path)) from None
    try:
        _check_plain(path, os.fstat(number).st_mode)  # another one may have come between
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _check_plain(path: Path, mode: int) -> None:
    if S_ISLNK(mode):
        raise OSError(ELOOP, "is a link, which is not followed", str(path))
    if not S_ISREG(mode):
        raise OSError(EINVAL, "is not a regular file", str(path))


def read_bytes(path: Path, most: int = SMALL, follow: bool = True) -> bytes:
    """All of a plain file that has at most so many bytes."""
    with open_file(path, follow) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(most + 1) if size <= most else None
        # None: one that says it is empty and then makes its reader wait, as in /proc.
        if data is None or len(data) > most:
            size = max(size, most + 1)
            raise OSError(EFBIG, f"is larger than {most:,} bytes ({size:,})", str(path))
        return data


def read_text(path: Path, most: int = SMALL) -> str:
    return read_bytes(path, most).decode("utf-8", "replace")


def replace_file(path: Path, data: str | bytes, sync: bool = False) -> None:
    """The whole of it or nothing, closed to others; with `sync` also after a power cut."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(number, "wb") as file:
            os.fchmod(number, 0o600)
            file.write(data.encode() if isinstance(data, str) else data)
            if sync:
                file.flush()
                os.fsync(number)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
