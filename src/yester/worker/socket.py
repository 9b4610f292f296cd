"""What wakes the worker: its socket, the FIFO that hooks poke, and signals.

run/worker.sock is where hooks and commands of this user ask, in the least of HTTP/1.0. Nothing
there blocks: a client that is slow, silent or gone costs the others nothing.

    POST /hook?id=N&ack=1     the hook says one byte when it has printed the answer

Whoever asks with ack=1 gets the whole answer and an end to it (the worker's side is shut), and has
two seconds to say that byte; without it the answer has not arrived. For those who do not say ack=1
(hooks of 0.1, scripts) it has arrived when all of it is written.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import socket
import stat
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from yester.files import replace_file
from yester.machine import user_number

_LARGEST_REQUEST = 16_384
_MOST_CLIENTS = 128
_ASK_AGAIN = 0.01  # seconds after which who waits for a later reply is asked for
PATIENCE = 2.0  # seconds for a client that is to say something, or to read


class Reply(Struct, frozen=True):
    """A body, and who is to know whether it has arrived: told once, True or False."""

    body: bytes
    settle: Callable[[bool], None] = lambda _: None


Later = Callable[[], "Reply | None"]  # None: not yet; it is asked again and again
Answering = Callable[[str, dict[str, str]], "Reply | Later | None"]  # ("POST /hook", {"id": …})


class _Client(Struct):
    socket: socket.socket
    since: float  # when it last did something
    asked: bytes = b""
    later: Later | None = None
    reply: Reply | None = None
    answer: bytes = b""  # what is still to be written
    acknowledges: bool = False

    @property
    def is_awaited(self) -> bool:
        """Is a byte all that is missing?"""
        return self.reply is not None and not self.answer


class Door:
    """A listening socket and its clients, driven by the caller's selector."""

    def __init__(
        self,
        run: Path,
        selector: selectors.BaseSelector,
        answer: Answering,
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
        self._socket.bind("worker.sock")
        self._path = run / "worker.sock"
        self._path.chmod(0o600)  # nobody listens yet, and the folder is closed to others
        self._inode = self._path.stat().st_ino
        with suppress(OSError):  # no room; it stands there from the last time
            replace_file(run / "sock", f"{self._path}\n")
        self._socket.listen(_MOST_CLIENTS)
        selector.register(self._socket, selectors.EVENT_READ, self._accept_client)

    def is_still_ours(self) -> bool:
        """Can we still be found? Not if the folder is gone or another one listens there."""
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        if self.is_still_ours():
            self._path.unlink(missing_ok=True)
        self._selector.unregister(self._socket)
        self._socket.close()
        for client in list(self._clients.values()):
            self._drop_client(client)

    def seconds_left(self) -> float:
        """Seconds until the first client's time is up."""
        oldest = min((client.since for client in self._clients.values()), default=float("inf"))
        left = max(0.0, oldest + PATIENCE - self._clock())
        return min(left, _ASK_AGAIN) if any(one.later for one in self._clients.values()) else left

    def answer_later_ones(self) -> None:
        for client in [one for one in self._clients.values() if one.later]:
            if client.later and (reply := client.later()):
                self._reply(client, reply)
                self._serve_client(client)

    def drop_overdue(self) -> None:
        """Call it after the selector's events, not before: what was said in time has been heard."""
        until = self._clock() - PATIENCE
        for client in [one for one in self._clients.values() if one.since <= until]:
            self._drop_client(client)

    def await_acknowledgements(self) -> None:
        """The last thing before `close`: who has an answer may say that it has arrived, as long as
        its time is not up; nobody new is let in."""
        while awaited := self._awaited_clients():
            select.select([client.socket for client in awaited], [], [], self.seconds_left())
            self._hear_acknowledgements()
            self.drop_overdue()

    def _accept_client(self, _: int) -> None:
        try:
            accepted, _address = self._socket.accept()
        except OSError:
            return
        if not _is_same_user(accepted):
            accepted.close()
            return
        if len(self._clients) >= _MOST_CLIENTS:  # a new one has something to say, the first has not
            self._drop_client(next(iter(self._clients.values())))
        accepted.setblocking(False)
        client = _Client(accepted, self._clock())
        self._clients[accepted.fileno()] = client
        serve = partial(self._serve_client, client)
        self._selector.register(accepted, selectors.EVENT_READ, serve)
        self._serve_client(client)  # a hook has written before we get here

    def _serve_client(self, client: _Client, _: int = 0) -> None:
        """As far as it goes without waiting."""
        try:
            if client.is_awaited or client.later:
                self._drop_client(client, arrived=bool(client.socket.recv(1)))
            elif not client.answer:
                self._read_request(client)
            if client.answer:
                self._write_answer(client)
        except BlockingIOError:
            return
        except OSError:
            self._drop_client(client)

    def _read_request(self, client: _Client) -> None:
        part = client.socket.recv(_LARGEST_REQUEST)
        client.asked += part
        if b"\r\n\r\n" not in client.asked:
            if not part or len(client.asked) > _LARGEST_REQUEST:
                self._drop_client(client)
            return
        line = client.asked.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
        reply: Reply | Later | None = None
        given: dict[str, str] = {}
        if len(line) == 3:
            self._hear_acknowledgements()
            with suppress(ValueError):  # an address that is none
                url = urlsplit(line[1])
                given = dict(parse_qsl(url.query))
                reply = self._answer(f"{line[0]} {url.path}", given)
        client.acknowledges = reply is not None and given.get("ack") == "1"
        if reply is None or isinstance(reply, Reply):
            self._reply(client, reply)
        else:
            client.later = reply

    def _reply(self, client: _Client, reply: Reply | None) -> None:
        status = "404 Not Found" if reply is None else "200 OK"
        client.later, client.reply = None, reply or Reply(b"")
        body = client.reply.body
        client.answer = (
            f"HTTP/1.0 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode() + body
        client.since = self._clock()

    def _hear_acknowledgements(self) -> None:
        """Who asks now may have waited for one of them to end: what it printed is known first."""
        for client in self._awaited_clients():
            self._serve_client(client)

    def _awaited_clients(self) -> list[_Client]:
        return [client for client in self._clients.values() if client.is_awaited]

    def _write_answer(self, client: _Client) -> None:
        with suppress(BlockingIOError):
            client.answer = client.answer[client.socket.send(client.answer) :]
            client.since = self._clock()
        events = selectors.EVENT_WRITE
        if not client.answer:
            if not client.acknowledges:
                self._drop_client(client, arrived=True)
                return
            client.socket.shutdown(socket.SHUT_WR)
            events = selectors.EVENT_READ
        self._selector.modify(client.socket, events, partial(self._serve_client, client))

    def _drop_client(self, client: _Client, arrived: bool = False) -> None:
        if self._clients.pop(client.socket.fileno(), None) is not None:
            self._selector.unregister(client.socket)
            client.socket.close()
            if client.reply is not None:
                client.reply.settle(arrived)


def _is_same_user(client: socket.socket) -> bool:
    """The folder is closed to others; where the system tells who it is, we look all the same."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    found = client.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return bool(struct.unpack("3i", found)[1] == user_number())


class Bell:
    """run/wake, a FIFO: a byte in it means that the spool has something. SIGTERM and SIGINT ring
    it, too, and are an exception nowhere; `signalled` tells of them."""

    def __init__(self, path: Path) -> None:
        if not path.exists() or not stat.S_ISFIFO(path.stat().st_mode):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        # Without a writer of our own the end of the last hook's would wake us for ever.
        self._writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        self.signalled = False
        self._former = {
            number: signal.signal(number, self._hear_signal)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._handle

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._handle, 1 << 16)) == 1 << 16:
                pass

    def ring(self) -> None:
        """As a hook does; a full one wakes as well."""
        with suppress(BlockingIOError):
            os.write(self._writer, b".")

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        for number, former in self._former.items():
            signal.signal(number, former)
        os.close(self._writer)
        os.close(self._handle)

    def _hear_signal(self, *_: object) -> None:
        self.signalled = True
