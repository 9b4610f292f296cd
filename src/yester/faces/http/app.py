"""All of it together: the routes of the table, the pool of threads they run in, and the guard."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.routing import Route, Router

from yester import __version__
from yester.errors import ConfigError, NotYours, UsageError
from yester.faces.http import viewer
from yester.faces.http.guard import (
    Asgi,
    Failed,
    Guard,
    Message,
    Receive,
    Scope,
    Send,
    Slowdown,
    send_response,
)
from yester.faces.http.login import PROGRAM, USER, Keys, is_another_user, take_code
from yester.faces.http.manual import make_manual
from yester.faces.http.openapi import make_document
from yester.faces.http.problem import Refusal
from yester.faces.http.request import read_body, read_query
from yester.faces.http.stream import Stream, Told, find_missed, is_cursor
from yester.faces.http.table import ENDPOINTS, EVENTS, Bearer, Endpoint, Health, Login
from yester.memory import Memory

T = TypeVar("T")
Own = Callable[[Scope, Any], Awaitable[bytes]]
MOST_STREAMS = 400
_THREADS = 2  # one more than computes at a time: what waits or takes long holds nobody up
_MOST_WAITING = 64
_PATIENCE = 30.0  # seconds for an answer


class Pool:
    """Threads with a store of their own each; the loop itself never touches a database."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._own = threading.local()
        self._made: list[Memory] = []
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="answer")
        self._waiting = 0

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        if self._waiting >= _MOST_WAITING:
            raise Refusal(
                503, "too much is being asked at once", fix="try again",
                headers={"retry-after": "1"},
            )  # fmt: skip
        loop = asyncio.get_running_loop()
        self._waiting += 1
        future = loop.run_in_executor(self._executor, self._call_here, call, *args)
        future.add_done_callback(self._forget)
        try:
            return await asyncio.wait_for(asyncio.shield(future), _PATIENCE)
        except TimeoutError:
            raise Refusal(
                503, f"there was no answer within {_PATIENCE:g} seconds", fix="ask for less"
            ) from None

    def _forget(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # nobody may be waiting for it any more

    def _call_here(self, call: Callable[..., T], *args: Any) -> T:
        memory = getattr(self._own, "memory", None)
        if memory is None:
            memory = self._own.memory = self._memory.for_thread()
            self._made.append(memory)
        return call(memory, *args)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        for memory in self._made:
            memory.close()


class Served:
    """What stands at one path: an endpoint for each method. `own` needs no store."""

    def __init__(
        self, endpoints: Mapping[str, Endpoint], pool: Pool, own: Mapping[str, Own], events: Asgi
    ) -> None:
        self._endpoints, self._pool, self._own, self._events = endpoints, pool, own, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        endpoint = self._endpoints.get(method)
        if endpoint is None:
            allowed = ", ".join(sorted(self._endpoints))
            raise Refusal(
                405, f"{scope['path']} cannot be asked with this method", parameter="method",
                fix=f"use {allowed}", headers={"allow": allowed},
            )  # fmt: skip
        path = scope.get("path_params", {})
        if endpoint.has_body:
            request = read_body(endpoint.request, scope["yester.body"], path)
        else:
            request = read_query(endpoint.request, scope["query_string"], path)
        if endpoint.content == EVENTS:
            await self._events(scope, receive, send)
            return
        own = self._own.get(endpoint.path)
        if own is not None:
            body = await own(scope, request)
        else:
            origin = scope.get("yester.origin", PROGRAM)
            body = await self._pool.run(_answer_request, endpoint, request, origin)
        await send_response(send, body, endpoint.content)


def _answer_request(memory: Memory, endpoint: Endpoint, request: Any, origin: str) -> bytes:
    """In the pool: encoding a large answer takes a while, too."""
    assert endpoint.operation is not None
    memory.origin = origin
    memory.who = "viewer" if origin == USER else "http"
    try:
        answer = endpoint.operation(memory, request)
    except NotYours:
        raise
    except UsageError as error:
        if not endpoint.conflict:
            raise
        config = isinstance(error, ConfigError)
        fix = "correct config.toml with an editor" if config else error.fix or endpoint.conflict
        raise Refusal(409, error.what, fix, parameter=error.parameter) from None
    return answer.encode() if isinstance(answer, str) else msgspec.json.encode(answer)


class App:
    """The ASGI application. `close` it in the loop, `end` it when the loop is over."""

    def __init__(
        self,
        memory: Memory,
        keys: Keys,
        port: int,
        failed: Failed,
        *,
        folder: Path = viewer.FOLDER,
        slowdown: Slowdown | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._memory, self._keys, self._clock = memory, keys, clock
        self._slowdown = slowdown or Slowdown()
        self._pool = Pool(memory)
        self.stream = Stream(memory, self._find_missed, failed)
        self._files = viewer.load_files(folder)
        own: dict[str, Own] = {
            "/health": self._make_constant(Health(status="ok", version=__version__)),
            "/api/search/help": self._make_constant(make_manual(f"http://127.0.0.1:{port}")),
            "/api/openapi.json": self._make_constant(make_document(ENDPOINTS)),
            "/api/login": self._log_in,
        }
        by_path: dict[str, dict[str, Endpoint]] = {}
        for one in ENDPOINTS:
            by_path.setdefault(one.path, {})[one.method] = one
        routes = [
            Route(path, Served(endpoints, self._pool, own, self._send_events))
            for path, endpoints in by_path.items()
        ]
        router = Router(routes, redirect_slashes=False, default=self._send_file)
        unlocked = {(one.method, one.path) for one in ENDPOINTS if one.open}
        unlocked |= {("GET", name) for name in self._files}
        self.guard = Guard(router, port, keys, unlocked, failed, self._slowdown)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)

    def rest(self) -> None:
        self._memory.rest(time.monotonic())

    def is_lost(self) -> bool:
        """Is what was served no longer there? Then nobody could find this server to stop it."""
        return self._memory.lost

    def idle_seconds(self) -> float:
        """Seconds since something was asked, 0 while somebody listens."""
        return 0.0 if self.stream.clients else time.monotonic() - self.guard.last

    def close(self) -> None:
        self.stream.close()

    def end(self) -> None:
        self._pool.close()

    # --- what needs no store ----------------------------------------------------------------------

    @staticmethod
    def _make_constant(value: object) -> Own:
        body = msgspec.json.encode(value)

        async def answer_same(scope: Scope, request: Any) -> bytes:  # noqa: ARG001
            return body

        return answer_same

    async def _log_in(self, scope: Scope, request: Login) -> bytes:
        foreign = is_another_user(scope.get("client"))
        origin = "" if foreign else take_code(self._memory.home, request.code, self._clock())
        if not origin:
            await self._slowdown.punish()
            raise Refusal(
                401, "the code is wrong, older than a minute, or was used before",
                parameter="code", fix="get another one: yester ui",
                headers={"www-authenticate": 'Bearer realm="yester"'},
            )  # fmt: skip
        bearer = Bearer(token=self._keys.issue_bearer(origin), expires_in=self._keys.bearer_seconds)
        return msgspec.json.encode(bearer)

    async def _send_file(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        file = self._files.get(scope["path"])
        if file is None:
            raise Refusal(
                404, "there is nothing at this path", parameter="path", value=scope["path"],
                fix="GET /api/search/help says what there is",
            )  # fmt: skip
        if scope["method"] not in ("GET", "HEAD"):
            raise Refusal(405, "a file can only be read", fix="use GET", headers={"allow": "GET"})
        # The type also of what is still the same: the guard's policy goes by it, and what it says
        # with a 304 takes the place of what the browser has kept.
        headers = [(b"etag", file.etag.encode()), (b"cache-control", b"no-cache")]
        asked = dict(scope["headers"]).get(b"if-none-match", b"")
        if file.etag.encode() in asked:
            headers.append((b"content-type", file.type.encode()))
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await send_response(send, file.body, file.type, headers=headers)

    # --- the stream -------------------------------------------------------------------------------

    async def _find_missed(self, since: str, until: str) -> list[Told]:
        return await self._pool.run(find_missed, since, until)

    async def _send_events(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.stream.clients >= MOST_STREAMS:
            raise Refusal(
                503, f"{MOST_STREAMS} clients are listening already", fix="close some of them",
                headers={"retry-after": "10"},
            )  # fmt: skip
        headers = dict(scope["headers"])
        last = headers.get(b"last-event-id", b"").decode("latin-1")
        if last and not is_cursor(last):
            raise Refusal(
                400, "Last-Event-ID is none of ours", parameter="Last-Event-ID", value=last,
                fix="send the id of the last event, or leave it out",
            )  # fmt: skip
        await send({
            "type": "http.response.start", "status": 200,
            "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
        })  # fmt: skip
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        gone = asyncio.ensure_future(_wait_for_leaving(receive))
        events = self.stream.follow(last.strip() or None)
        try:
            while True:
                coming = asyncio.ensure_future(anext(events))
                await asyncio.wait({coming, gone}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    coming.cancel()
                    await asyncio.wait({coming})
                    return
                data = coming.result()
                await send({"type": "http.response.body", "body": data, "more_body": True})
        except StopAsyncIteration:
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            await events.aclose()


async def _wait_for_leaving(receive: Receive) -> None:
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            return
