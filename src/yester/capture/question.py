"""Questions to the worker over run/worker.sock, in the least of HTTP/1.0."""

from __future__ import annotations

import os
import socket

_LONGEST_NAME = 88  # bytes of a socket's folder; systems allow paths of 104 or 108


def ask_worker(run: str | os.PathLike[str], request: str, patience: float) -> bytes | None:
    """What the worker answers; None where there is none, or not in time."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(patience)
    try:
        _connect(client, os.fspath(run))
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


def _connect(client: socket.socket, run: str) -> None:
    if len(os.fsencode(run)) <= _LONGEST_NAME:
        client.connect(f"{run}/worker.sock")
        return
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(run)
        client.connect("worker.sock")
    finally:
        os.fchdir(here)
        os.close(here)
