"""What wakes the worker: the FIFO hooks poke, and signals."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import suppress
from pathlib import Path


class Fifo:
    """run/wake: a byte in it means that the spool has something."""

    def __init__(self, path: Path) -> None:
        if not path.exists() or not stat.S_ISFIFO(path.stat().st_mode):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._handle = os.open(path, os.O_RDONLY | flags)
        # Without a writer of our own the end of the last hook's would wake us for ever.
        self._writer = os.open(path, os.O_WRONLY | flags)

    def fileno(self) -> int:
        return self._handle

    def clear(self) -> None:
        try:
            while len(os.read(self._handle, 1 << 16)) == 1 << 16:
                pass
        except BlockingIOError:
            pass

    def poke(self) -> None:
        """As a hook does; a full one wakes as well."""
        with suppress(BlockingIOError):
            os.write(self._writer, b"\0")

    def close(self) -> None:
        os.close(self._writer)
        os.close(self._handle)


class Signals:
    """SIGTERM and SIGINT as something to select on, not as an exception anywhere."""

    def __init__(self) -> None:
        self._handle, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._former = {
            number: signal.signal(number, lambda *_: None)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._handle

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        for number, former in self._former.items():
            signal.signal(number, former)
        os.close(self._writer)
        os.close(self._handle)
