"""run/worker.sock: hooks and commands of this user ask here, in the least of HTTP/1.0.

Nothing here blocks: a client that is slow, silent or gone costs the others nothing.

    POST /hook?id=N&ack=1     the hook says one byte when it has printed the answer

Whoever asks with ack=1 gets the whole answer and an end to it (the worker's side is shut), and has
two seconds to say that byte; without it the answer has not arrived. For those who do not say ack=1
(hooks of 0.1, scripts) it has arrived when all of it is written.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from yester.capture.rules import replace_file

_LARGEST_REQUEST = 16_384
_MOST_CLIENTS = 128
PATIENCE = 2.0  # seconds for a client that is to say something, or to read


@dataclass(frozen=True, slots=True)
class Reply:
    """A body, and who is to know whether it has arrived: told once, True or False."""

    body: bytes
    settle: Callable[[bool], None] = lambda _: None


Answer = Callable[[str, dict[str, str]], "Reply | None"]  # ("POST /hook", {"id": …}) → reply


@dataclass(slots=True)
class _Client:
    socket: socket.socket
    since: float  # when it last did something
    asked: bytes = b""
    reply: Reply | None = None
    answer: bytes = b""  # what is still to be written
    acknowledges: bool = False

    @property
    def awaited(self) -> bool:
        """Is a byte all that is missing?"""
        return self.reply is not None and not self.answer


class Door:
    """A listening socket and its clients, driven by the caller's selector."""

    def __init__(
        self,
        run: Path,
        selector: selectors.BaseSelector,
        answer: Answer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._selector = selector
        self._answer = answer
        self._clock = clock
        self._clients: dict[int, _Client] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        # A socket's name must be short, the folder's need not be: bind from inside the folder.
        os.chdir(run)
        Path("worker.sock").unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._socket.bind("worker.sock")
        finally:
            os.umask(mask)
        self._path = run / "worker.sock"
        self._inode = self._path.stat().st_ino
        with suppress(OSError):  # no room; it stands there from the last time
            replace_file(run / "sock", f"{self._path}\n")
        self._socket.listen(_MOST_CLIENTS)
        selector.register(self._socket, selectors.EVENT_READ, self._accept)

    def still_ours(self) -> bool:
        """Can we still be found? Not if the folder is gone or another one listens there."""
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        if self.still_ours():
            self._path.unlink(missing_ok=True)
        self._selector.unregister(self._socket)
        self._socket.close()
        for client in list(self._clients.values()):
            self._drop(client)

    def patience(self) -> float:
        """Seconds until the first client's time is up."""
        oldest = min((client.since for client in self._clients.values()), default=float("inf"))
        return max(0.0, oldest + PATIENCE - self._clock())

    def drop_overdue(self) -> None:
        """Call it after the selector's events, not before: what was said in time has been heard."""
        until = self._clock() - PATIENCE
        for client in [one for one in self._clients.values() if one.since <= until]:
            self._drop(client)

    def await_acknowledgements(self) -> None:
        """The last thing before `close`: who has an answer may say that it has arrived, as long as
        its time is not up; nobody new is let in."""
        while awaited := self._awaited():
            select.select([client.socket for client in awaited], [], [], self.patience())
            self._hear_acknowledgements()
            self.drop_overdue()

    def _accept(self, _: int) -> None:
        try:
            accepted, _address = self._socket.accept()
        except OSError:
            return
        if not _same_user(accepted):
            accepted.close()
            return
        if len(self._clients) >= _MOST_CLIENTS:  # a new one has something to say, the first has not
            self._drop(next(iter(self._clients.values())))
        accepted.setblocking(False)
        client = _Client(accepted, self._clock())
        self._clients[accepted.fileno()] = client
        self._selector.register(
            accepted, selectors.EVENT_READ, lambda mask: self._serve(client, mask)
        )
        self._serve(client, selectors.EVENT_READ)  # a hook has written before we get here

    def _serve(self, client: _Client, mask: int) -> None:
        try:
            if client.awaited:
                self._drop(client, arrived=bool(client.socket.recv(1)))
            elif mask & selectors.EVENT_READ and not client.answer:
                self._read(client)
            if client.answer:
                self._write(client)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)

    def _read(self, client: _Client) -> None:
        part = client.socket.recv(_LARGEST_REQUEST)
        client.asked += part
        if b"\r\n\r\n" not in client.asked:
            if not part or len(client.asked) > _LARGEST_REQUEST:
                self._drop(client)
            return
        line = client.asked.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
        reply, given = None, {}
        if len(line) == 3:
            self._hear_acknowledgements()
            with suppress(ValueError):  # an address that is none
                url = urlsplit(line[1])
                given = dict(parse_qsl(url.query))
                reply = self._answer(f"{line[0]} {url.path}", given)
        status = "404 Not Found" if reply is None else "200 OK"
        client.acknowledges = reply is not None and given.get("ack") == "1"
        client.reply = reply or Reply(b"")
        body = client.reply.body
        client.answer = (
            f"HTTP/1.0 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode() + body
        client.since = self._clock()

    def _hear_acknowledgements(self) -> None:
        """Who asks now may have waited for one of them to end: what it printed is known first."""
        for client in self._awaited():
            self._serve(client, selectors.EVENT_READ)

    def _awaited(self) -> list[_Client]:
        return [client for client in self._clients.values() if client.awaited]

    def _write(self, client: _Client) -> None:
        with suppress(BlockingIOError):
            client.answer = client.answer[client.socket.send(client.answer) :]
            client.since = self._clock()
        events = selectors.EVENT_WRITE
        if not client.answer:
            if not client.acknowledges:
                self._drop(client, arrived=True)
                return
            client.socket.shutdown(socket.SHUT_WR)
            events = selectors.EVENT_READ
        self._selector.modify(client.socket, events, lambda mask: self._serve(client, mask))

    def _drop(self, client: _Client, arrived: bool = False) -> None:
        if self._clients.pop(client.socket.fileno(), None) is not None:
            self._selector.unregister(client.socket)
            client.socket.close()
            if client.reply is not None:
                client.reply.settle(arrived)


def _same_user(client: socket.socket) -> bool:
    """The folder is closed to others; where the system tells who it is, we look all the same."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    found = client.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return bool(struct.unpack("3i", found)[1] == os.getuid())
