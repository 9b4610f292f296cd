"""Files that others write too: read without being led astray, replaced whole and only as expected.

A link is never followed and a pipe never waited for. A file appears under its name complete or not
at all, and one that has changed since it was read is left as it is: whoever changed it meant it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP, EMLINK
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from stat import S_IMODE

from yester.errors import SourceError
from yester.files import read_bytes

LARGEST = 1 << 20  # bytes of a memory, an index, a MEMORY.md: a hundred times what is usual
_LINKED = (ELOOP, EMLINK)  # what systems answer where O_NOFOLLOW meets a link


@contextmanager
def _naming(path: Path, failure: str = "{}") -> Iterator[None]:
    """What goes wrong with a file, said of that file."""
    try:
        yield
    except OSError as error:
        linked = error.errno in _LINKED
        reason = "is a link, which is not followed" if linked else error.strerror or str(error)
        raise SourceError(f"{path}: {reason if linked else failure.format(reason)}") from None


def read_file(path: Path, most: int = LARGEST) -> bytes | None:
    """The bytes of a regular file; None where there is none. Anything else is an error that says
    what stands there instead."""
    with _naming(path), suppress(FileNotFoundError):
        return read_bytes(path, most, follow=False)
    return None


def replace_file(path: Path, data: bytes, expected: bytes | None) -> bool:
    """Put `data` in place of `expected` (None: no file); False, and nothing done, where something
    else stands there by now. What was there keeps its mode."""
    if read_file(path) != expected:
        return False
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # hidden: nobody takes it for a memory
    part.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with _naming(path, "cannot be written ({})"):
            with os.fdopen(os.open(part, flags, 0o666), "wb") as file:
                file.write(data)
                if expected is not None:
                    os.fchmod(file.fileno(), S_IMODE(path.stat().st_mode))
                file.flush()
                os.fsync(file.fileno())
            if read_file(path) != expected:
                return False
            if expected is None:
                try:
                    os.link(part, path)
                except FileExistsError:  # somebody has been faster
                    return False
                except OSError:  # no links there; the moment between look and rename is short
                    part.replace(path)
            else:
                part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return True


def append_to_file(path: Path, make: Callable[[bytes], bytes]) -> bool:
    """Add to the end of a file what `make` says for what stands there, in one write; False where
    that is nothing. Where somebody else is appending, it is an error, and to be tried again."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _naming(path):
        number = os.open(path, flags, 0o600)
    try:
        with _naming(path, "cannot be written ({})"):
            flock(number, LOCK_EX | LOCK_NB)
            before = read_file(path) or b""
            data = make(before)
            if data:
                size = os.fstat(number).st_size
                if os.write(number, data) < len(data):  # half a block would look like a whole one
                    os.ftruncate(number, size)
                    raise SourceError(f"{path}: cannot be written (no space)")
                os.fsync(number)
    finally:
        os.close(number)
    if data and not before:
        _sync_folder(path.parent)
    return bool(data)


def remove_file(path: Path, expected: bytes) -> bool:
    """Take a file away; False where it is another one by now."""
    if read_file(path) != expected:
        return False
    with _naming(path, "cannot be removed ({})"):
        path.unlink()
    _sync_folder(path.parent)
    return True


def make_folder(root: Path, below: str) -> Path:
    """A folder below the root, made where it is missing; none of its parts may be a link, or the
    root would be left through it."""
    with _naming(root / below, "cannot be made ({})"):
        root.mkdir(parents=True, exist_ok=True)
        here = root
        for part in Path(below).parts:
            here = here / part
            if part in ("..", "/") or here.is_symlink():
                raise SourceError(f"{here}: leads out of {root}; nothing is written there")
            here.mkdir(exist_ok=True)
    return here


def _sync_folder(path: Path) -> None:
    """The folder's entry onto the disk, where the file system can; the file itself is there."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)
