"""Files read that somebody else has put there (a repository's, an agent's, whatever a payload
names), files of our own replaced, and files that others write too.

In a file's place may stand a pipe nobody writes into, a device without an end, a link to either or
something larger than memory. All of it is read here and nowhere else: a plain file, never more of
it than was meant, and without waiting. What does not fit raises OSError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EFBIG, EINVAL, ELOOP
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO, cast

from yester import machine
from yester.errors import SourceError

SMALL = 1 << 20  # bytes; a hundred times what a file of settings has


def open_file(path: Path, follow: bool = True) -> BinaryIO:
    """A plain file, to be read; with `follow` false no link to one either."""
    try:
        # Looked at before it is opened: opening alone makes some devices act.
        _check_plain(path, path.stat(follow_symlinks=follow).st_mode)
        flags = os.O_RDONLY | machine.NO_WAIT | machine.QUIET
        number = os.open(path, flags if follow else flags | machine.NO_FOLLOW)
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


def open_unpacked(path: Path) -> BinaryIO:
    """A file of our own, to be read; where it is compressed, what it was made of."""
    with open(path, "rb") as file:
        if file.read(2) != b"\x1f\x8b":
            return open(path, "rb")
    import gzip

    return cast("BinaryIO", gzip.open(path))


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
    """The same as text; "" where that cannot be read."""
    try:
        return read_bytes(path, most).decode("utf-8", "replace")
    except OSError:
        return ""


def replace_file(path: Path, data: str | bytes, sync: bool = False, mode: int = 0o600) -> None:
    """The whole of it or nothing, closed to others; with `sync` also after a power cut."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)  # in a folder of others: perhaps a link to something else
    try:
        number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | machine.QUIET, 0o600)
        with open(number, "wb") as file:
            machine.set_mode(number, mode)
            file.write(data.encode() if isinstance(data, str) else data)
            if sync:
                file.flush()
                os.fsync(number)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def update_file(path: Path, text: str) -> None:
    """The same, and untouched where it says so already."""
    with suppress(OSError):
        if read_bytes(path) == text.encode():
            return
    replace_file(path, text)


def append_text(path: Path, text: str) -> None:
    """In one write, since others may do so at the same time; closed to others."""
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.QUIET, 0o600)
    with open(number, "wb", 0) as file:
        file.write(text.encode("utf-8", "replace"))


# --- files that others write too: a link is never followed, and what goes wrong is a SourceError --


@contextmanager
def _name_failures(path: Path, failure: str = "{}") -> Iterator[None]:
    """What goes wrong with a file, said of that file."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"{path}: {failure.format(error.strerror or error)}") from None


def read_shared(path: Path) -> bytes | None:
    """The bytes of a regular file; None where there is none. Anything else is an error that says
    what stands there instead."""
    with _name_failures(path), suppress(FileNotFoundError):
        return read_bytes(path, follow=False)
    return None


def swap_shared(path: Path, data: bytes | None, expected: bytes | None) -> bool:
    """Put `data` in place of `expected` (None: no file); False, and nothing done, where something
    else stands there by now: whoever changed it meant it. What was there keeps its mode. A file
    appears under its name complete or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # hidden: nobody takes it for a memory
    with _name_failures(path, f"cannot be {'removed' if data is None else 'written'} ({{}})"):
        try:
            if data is not None:
                part.unlink(missing_ok=True)
                with part.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                with suppress(FileNotFoundError):
                    part.chmod(path.stat().st_mode)
            # The moment between this look and the next step is short; a file that was not there
            # is not overwritten in it, either.
            if read_shared(path) != expected:
                return False
            if data is None:
                path.unlink(missing_ok=True)
            elif expected is None:
                os.link(part, path)
            else:
                part.replace(path)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def append_shared(path: Path, make: Callable[[bytes], bytes]) -> bool:
    """Add to the end of a file what `make` says for what stands there, in one write; False where
    that is nothing. Where somebody else is appending, it is an error, and to be tried again."""
    read_shared(path)  # a link or a pipe is an error
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.QUIET
    flags |= machine.NO_FOLLOW | machine.NO_WAIT
    failure = "cannot be written ({})"
    with _name_failures(path, failure), open(os.open(path, flags, 0o600), "wb", 0) as file:
        machine.lock_file(file.fileno())
        before = read_shared(path) or b""
        data = make(before)
        if file.write(data) < len(data):  # half a block would look like a whole one
            file.truncate(len(before))
            raise SourceError(f"{path}: cannot be written (no space)")
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return bool(data)


def make_folder(root: Path, below: str) -> Path:
    """A folder below the root, made where it is missing; none of its parts may be a link, or the
    root would be left through it."""
    with _name_failures(root / below, "cannot be made ({})"):
        root.mkdir(parents=True, exist_ok=True)
        here = root
        for part in Path(below).parts:
            here = here / part
            if part in ("..", "/") or here.is_symlink():
                raise SourceError(f"{here}: leads out of {root}; nothing is written there")
            here.mkdir(exist_ok=True)
    return here


def sync_folder(path: Path) -> None:
    """The folder's entry onto the disk, where the file system can; the file itself is there."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | machine.QUIET)
        try:
            os.fsync(number)
        finally:
            os.close(number)
