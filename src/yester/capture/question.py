"""Questions to the worker over run/worker.sock, in the least of HTTP/1.0."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_NAME = 100  # bytes of a socket's path; systems allow 104 or 108


def ask_worker(run: Path, request: str, patience: float) -> bytes | None:
    """What the worker answers; None where there is none, or not in time."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(patience)
    try:
        _connect(client, run / "worker.sock")
        client.sendall(f"{request} HTTP/1.0\r\n\r\n".encode())
        answer = b""
        while part := client.recv(1 << 16):
            answer += part
    except OSError:
        return None
    finally:
        client.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.startswith(b"HTTP/1.0 200") else None


def _connect(client: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) <= _LONGEST_NAME:
        client.connect(str(path))
        return
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        client.connect(path.name)
    finally:
        os.fchdir(here)
        os.close(here)
