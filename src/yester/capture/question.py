"""Questions to the worker over run/worker.sock, in the least of HTTP/1.0."""

from __future__ import annotations

import os
import time

from yester.capture import ask

TYPE_CHECKING = False  # as in ask.py: importing typing would cost more than all else
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def ask_worker(run: str | os.PathLike[str], request: str, patience: float) -> bytes | None:
    """What the worker answers; None where there is none, or not in time."""
    wanted, deadline = f"{request} HTTP/1.0\r\n\r\n".encode(), time.monotonic() + patience
    body, worker = ask.exchange(os.fsencode(run), wanted, deadline)
    if worker is None:
        return None
    worker.close()
    return body


def ask_health(home: Path) -> dict[str, Any] | None:
    """What the worker of a home says of itself; None where none answers."""
    import msgspec

    answer = ask_worker(home / "run", "GET /health", 1.0)
    found: dict[str, Any] | None = msgspec.json.decode(answer) if answer else None
    return found
