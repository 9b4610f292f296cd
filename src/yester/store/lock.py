"""The write lock: one writer at a time over all processes, held for one short batch.

An flock on `run/write.lock`: the kernel lets go of it when its holder dies, so there is no stale
lock to recognise. The holder's pid is written into the file for the message alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from yester import machine
from yester.errors import StoreBusy

_POLL = 0.002


@contextmanager
def write_lock(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock; StoreBusy after `patience` seconds, naming the process that has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | machine.QUIET, 0o600)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                machine.lock_file(handle)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    holder = machine.read_start(handle, 32).decode("ascii", "replace").strip()
                    raise StoreBusy(
                        f"{path}: process {holder or 'unknown'} has been writing for over "
                        f"{patience:g} s; wait for it or stop it"
                    ) from None
                time.sleep(_POLL)
        with suppress(OSError):  # a full disk; there may be room where it matters
            machine.write_start(handle, f"{os.getpid():<10}\n".encode())
        yield
    finally:
        os.close(handle)  # lets go of the lock
