"""The process that serves: one socket on the loopback interface, one loop, until it is told to end.

uvicorn speaks HTTP; what it leaves open is closed here: a client that begins a request and never
ends it, or takes no answer, is dropped.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from yester import machine
from yester.errors import UsageError, YesterError
from yester.faces.http.app import Router
from yester.faces.http.login import ADDRESS, read_port
from yester.faces.http.request import CONTENT_TYPE, Refusal, make_problem
from yester.files import replace_file

_TRIED = 20  # ports behind the one that is wanted
_HEAD_SECONDS = 10.0  # from the first byte of a request to the last of its head
_STALLED_SECONDS = 30.0  # an answer that nobody takes
_KEEP_ALIVE = 30
_MOST_CONNECTIONS = 1_000
_MOST_UNKNOWN = 200  # connections without a token; the oldest is dropped for a new one
_FINISHING = 30  # seconds that requests may go on when a server for many is told to end
_CHECKED = 30  # seconds between looks at whether anybody is there


def open_socket(port: int, exactly: bool = False, address: str = ADDRESS) -> socket.socket:
    """A socket on this port or, unless it must be this one, the next that is free."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for tried in range(port, port + 1 if exactly or not port else min(port + _TRIED, 65_536)):
        # The protocol is named: only then asyncio switches Nagle's algorithm off, which would hold
        # back every answer's body for 40 ms.
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((address, tried))
            found.listen(512)
            return found
        except OSError as error:
            found.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    if exactly:
        raise UsageError(f"port {port} is taken; name another one, or leave out --port")
    raise YesterError(f"no port from {port} to {port + _TRIED - 1} is free; set http_port")


class Protocol(H11Protocol):
    """HTTP/1.1 with deadlines."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._known = False

    def _set_deadline(self, what: str, seconds: float) -> None:
        """The connection ends unless it has come by then."""
        if what not in self._deadlines:
            self._deadlines[what] = self.loop.call_later(seconds, self.transport.abort)

    def _clear_deadline(self, what: str) -> None:
        if deadline := self._deadlines.pop(what, None):
            deadline.cancel()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made = self.loop.time()
        unknown = [one for one in self.connections if isinstance(one, Protocol) and one.is_unknown]
        if len(unknown) > _MOST_UNKNOWN:
            min(unknown, key=lambda one: one._made).transport.abort()
        self._set_deadline("head", _HEAD_SECONDS)

    @property
    def is_unknown(self) -> bool:
        """Nothing that it asked for came with a token. The scope is that of the last request, which
        may not have been looked at yet."""
        self._known = self._known or "yester.origin" in (self.scope or ())
        return not self._known

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline("head")
        self._clear_deadline("reader")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        _ = self.is_unknown  # what is known of it by the request before
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._clear_deadline("head")
        elif not self.transport.is_closing():
            self._set_deadline("head", _HEAD_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_deadline("reader", _STALLED_SECONDS)

    def resume_writing(self) -> None:
        self._clear_deadline("reader")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        problem, _ = make_problem(Refusal("protocol", what=msg))
        headers = [("content-type", CONTENT_TYPE), ("connection", "close")]
        head = h11.Response(status_code=400, headers=headers)
        for event in (head, h11.Data(data=msgspec.json.encode(problem)), h11.EndOfMessage()):
            with suppress(h11.LocalProtocolError):  # an answer is on its way already
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class Server(uvicorn.Server):
    """Serves an App until a signal comes or, with `idle`, nobody has asked for so many seconds."""

    def __init__(self, app: Router, idle: float | None = None, grace: int = 2, **tls: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app.guard, http=Protocol, ws="none", lifespan="off", loop="asyncio",
                log_config=None, log_level="critical", access_log=False, proxy_headers=False,
                server_header=False, timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=grace, limit_concurrency=_MOST_CONNECTIONS,
                callback_notify=self._look_after, timeout_notify=_CHECKED,
                h11_max_incomplete_event_size=16 * 1024, **tls,
            )
        )  # fmt: skip
        self._app, self._idle = app, idle

    async def _look_after(self) -> None:
        self._app.release_unused()
        idle = self._idle is not None and self._app.idle_seconds() > self._idle
        if idle or self._app.is_lost():
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.close()
        await super().shutdown(sockets)
        # Whoever has not hung up by now is hung up on: else its socket outlives the loop.
        for connection in list(self.server_state.connections):
            if (transport := connection.transport) is not None:
                transport.abort()
        await asyncio.sleep(0)


def serve(
    run: Path, app: Callable[[int], Router], sock: socket.socket, idle: float | None = None
) -> None:
    """Until it ends. `run/port` says where it is as long as it is there."""
    port = sock.getsockname()[1]
    made = app(port)
    with suppress(OSError):  # hooks and the worker come first
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), 5))
    # uvicorn ends in good order and then raises the signal again, which would end us before that.
    signal.signal(signal.SIGTERM, lambda *_: None)
    machine.look_less_for_cycles()
    replace_file(run / "port", f"{port}\n")
    try:
        Server(made, idle).run(sockets=[sock])
    finally:
        made.end()
        if read_port(run) == port:
            (run / "port").unlink(missing_ok=True)


def serve_many(app: Router, sock: socket.socket, **tls: Any) -> None:
    """Until a signal comes; what is being answered then is finished first."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # as in `serve`
    machine.look_less_for_cycles()
    try:
        Server(app, grace=_FINISHING, **tls).run(sockets=[sock])
    finally:
        app.end()
