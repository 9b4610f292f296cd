"""Files that others write too: read without being led astray, replaced whole and only as expected.

A link is never followed and a pipe never waited for. A file appears under its name complete or not
at all, and one that has changed since it was read is left as it is: whoever changed it meant it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from errno import ELOOP, EMLINK
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from stat import S_IMODE

from yester.errors import SourceError
from yester.files import read_bytes

LARGEST = 1 << 20  # bytes of a memory, an index, a MEMORY.md: a hundred times what is usual
_LINKED = (ELOOP, EMLINK)  # what systems answer where O_NOFOLLOW meets a link


def contents(path: Path, most: int = LARGEST) -> bytes | None:
    """The bytes of a regular file; None where there is none. Anything else is an error that says
    what stands there instead."""
    try:
        return read_bytes(path, most, follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = "is a link, which is not followed" if error.errno in _LINKED else _why(error)
        raise SourceError(f"{path}: {reason}") from None


def replaced(path: Path, data: bytes, expected: bytes | None) -> bool:
    """Put `data` in place of `expected` (None: no file); False, and nothing done, where something
    else stands there by now. What was there keeps its mode."""
    if contents(path) != expected:
        return False
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # hidden: nobody takes it for a memory
    part.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o666), "wb") as file:
            file.write(data)
            if expected is not None:
                os.fchmod(file.fileno(), S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(file.fileno())
        if contents(path) != expected:
            return False
        if expected is None:
            return _named(part, path)
        part.replace(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({_why(error)})") from None
    finally:
        part.unlink(missing_ok=True)
    _sync(path.parent)
    return True


def appended(path: Path, make: Callable[[bytes], bytes]) -> bool:
    """Add to the end of a file what `make` says for what stands there, in one write; False where
    that is nothing. Where somebody else is appending, it is an error, and to be tried again."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(path, flags, 0o600)
    except OSError as error:
        reason = "is a link, which is not followed" if error.errno in _LINKED else _why(error)
        raise SourceError(f"{path}: {reason}") from None
    try:
        flock(number, LOCK_EX | LOCK_NB)
        before = contents(path) or b""
        data = make(before)
        if data:
            size = os.fstat(number).st_size
            if os.write(number, data) < len(data):  # half a block would look like a whole one
                os.ftruncate(number, size)
                raise SourceError(f"{path}: cannot be written (no space)")
            os.fsync(number)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({_why(error)})") from None
    finally:
        os.close(number)
    if data and not before:
        _sync(path.parent)
    return bool(data)


def removed(path: Path, expected: bytes) -> bool:
    """Take a file away; False where it is another one by now."""
    if contents(path) != expected:
        return False
    try:
        path.unlink()
    except OSError as error:
        raise SourceError(f"{path}: cannot be removed ({_why(error)})") from None
    _sync(path.parent)
    return True


def folder(root: Path, below: str) -> Path:
    """A folder below the root, made where it is missing; none of its parts may be a link, or the
    root would be left through it."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        here = root
        for part in Path(below).parts:
            here = here / part
            if part in ("..", "/") or here.is_symlink():
                raise SourceError(f"{here}: leads out of {root}; nothing is written there")
            here.mkdir(exist_ok=True)
    except OSError as error:
        raise SourceError(f"{root / below}: cannot be made ({_why(error)})") from None
    return here


def _named(part: Path, path: Path) -> bool:
    """A new file under its name, unless somebody has been faster."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links; the moment between look and rename is short
        part.replace(path)
    _sync(path.parent)
    return True


def _sync(path: Path) -> None:
    """The folder's entry onto the disk, where the file system can; the file itself is there."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _why(error: OSError) -> str:
    return error.strerror or str(error)
