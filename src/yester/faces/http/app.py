"""All of it together: the endpoints of the table, the pool of threads they run in, the files of the
viewer, and the guard.

The files go by a table made once: a name that is not in it does not exist, so no path can lead
anywhere else.
"""

from __future__ import annotations

import asyncio
import mimetypes
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from yester import __version__
from yester.errors import NotYours, UsageError
from yester.faces.http import login, table
from yester.faces.http.guard import Failed, Guard, Slowdown, read_method
from yester.faces.http.request import Refusal, read_body, read_query
from yester.faces.http.stream import Stream, is_cursor
from yester.memory import Memory
from yester.redact import redact
from yester.tables import load_table

T = TypeVar("T")
FOLDER = Path(__file__).parent.parent / "viewer"
MOST_STREAMS = 50
_THREADS = 2  # one more than computes at a time: what waits or takes long holds nobody up
_MOST_WAITING = 64
_PATIENCE = 30.0  # seconds for an answer
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml",
          ".woff2": "font/woff2", ".map": "application/json"}  # fmt: skip


class Threads:
    """The loop itself never touches a database."""

    def __init__(self, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="answer")
        self.waiting = 0

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        if self.waiting >= _MOST_WAITING:
            raise Refusal("busy")
        loop = asyncio.get_running_loop()
        self.waiting += 1
        future = loop.run_in_executor(self._executor, call, *args)
        future.add_done_callback(self._forget)
        try:
            return await asyncio.wait_for(asyncio.shield(future), _PATIENCE)
        except TimeoutError:
            raise Refusal("late", seconds=_PATIENCE) from None

    def _forget(self, future: asyncio.Future[Any]) -> None:
        self.waiting -= 1
        if not future.cancelled():
            future.exception()  # nobody may be waiting for it any more

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)


class Pool(Threads):
    """Threads with a store of their own each."""

    def __init__(self, memory: Memory, threads: int) -> None:
        super().__init__(threads)
        self._memory = memory
        self._own = threading.local()
        self._made: list[Memory] = []

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        return await super().run(self._call_here, call, *args)

    def _call_here(self, call: Callable[..., T], *args: Any) -> T:
        memory = getattr(self._own, "memory", None)
        if memory is None:
            memory = self._own.memory = self._memory.for_thread()
            self._made.append(memory)
        return call(memory, *args)

    def close(self) -> None:
        super().close()
        for memory in self._made:
            memory.close()


def answer_request(memory: Memory, endpoint: table.Endpoint, request: Any, origin: str) -> bytes:
    """In the pool: encoding a large answer takes a while, too."""
    assert endpoint.operation is not None
    memory.origin = origin
    if memory.caller is None:
        memory.who = "viewer" if origin == login.USER else "http"
    try:
        answer = endpoint.operation(memory, request)
    except NotYours:
        raise
    except UsageError as error:
        if not endpoint.conflict:
            raise
        fix = error.fix or endpoint.conflict
        raise Refusal("conflict", None, error.parameter, what=error.what, fix=fix) from None
    return answer.encode() if isinstance(answer, str) else msgspec.json.encode(answer)


class Router:
    """Which endpoint is asked, with what; `_answer_call` says how it is answered. `close` it in the
    loop, `end` it when the loop is over."""

    guard: Guard  # the ASGI application

    def __init__(
        self,
        memory: Memory,
        endpoints: Sequence[table.Endpoint],
        manual: Callable[[], bytes],
        document: Callable[[], bytes],
    ) -> None:
        self._memory = memory
        health = msgspec.json.encode(table.Health(status="ok", version=__version__))
        self._constants: Mapping[str, Callable[[], bytes]] = {
            "/health": lambda: health,
            "/api/search/help": manual,
            "/api/openapi.json": document,
        }
        by_path: dict[str, dict[str, table.Endpoint]] = {}
        for one in endpoints:
            by_path.setdefault(one.path, {})[one.method] = one
        self._endpoints = [(_path_pattern(path), by_path[path]) for path in by_path]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        for pattern, endpoints in self._endpoints:
            if match := pattern.fullmatch(scope["path"]):
                response = await self._answer_endpoint(endpoints, match.groupdict(), scope)
                break
        else:
            response = self._find_file(scope)
        await response(scope, receive, send)

    async def _answer_endpoint(
        self, endpoints: Mapping[str, table.Endpoint], path: Mapping[str, str], scope: Scope
    ) -> Response:
        endpoint = endpoints.get(read_method(scope))
        if endpoint is None:
            allowed = ", ".join(sorted(endpoints))
            raise Refusal("method", path=scope["path"], allowed=allowed)
        scope["yester.endpoint"] = endpoint
        await self._check_scope(endpoint, scope)
        request: Any
        path = {**path, **endpoint.fixed}
        if endpoint.has_body:
            request = read_body(endpoint.request, scope["yester.body"], path)
        else:
            request = read_query(endpoint.request, scope["query_string"], path)
        return await self._answer_call(endpoint, request, scope)

    def release_unused(self) -> None:
        self._memory.release_unused(time.monotonic())

    def is_lost(self) -> bool:
        """Is what was served no longer there? Then nobody could find this server to stop it."""
        return False

    def idle_seconds(self) -> float:
        """Seconds since something was asked, 0 while somebody listens."""
        return 0.0

    def close(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    async def _check_scope(self, endpoint: table.Endpoint, scope: Scope) -> None:
        """A Refusal where whoever asks may not."""

    async def _answer_call(self, endpoint: table.Endpoint, request: Any, scope: Scope) -> Response:
        raise NotImplementedError

    def _find_file(self, scope: Scope) -> Response:
        path, rows = scope["path"], load_table("api")["elsewhere"]
        other = rows.get(path) or rows.get(path.rpartition("/")[0] + "/")
        raise Refusal("path", path, fix=other or "GET /api/search/help says what there is")


class App(Router):
    """What answers on one's own machine."""

    def __init__(
        self,
        memory: Memory,
        keys: login.Keys,
        port: int,
        failed: Failed,
        *,
        folder: Path = FOLDER,
        slowdown: Slowdown | None = None,
    ) -> None:
        super().__init__(
            memory,
            table.ENDPOINTS,
            lambda: msgspec.json.encode(table.make_manual(f"http://127.0.0.1:{port}")),
            _encode_document,
        )
        self._keys, self._port = keys, port
        self._slowdown = slowdown or Slowdown()
        self._pool, self._stream_pool = Pool(memory, _THREADS), Pool(memory, 1)
        self.stream = Stream(self._stream_pool.run, failed)
        self._files = load_files(folder)
        self._own: dict[str, Callable[[Scope, Any], Awaitable[object]]] = {
            "/api/login": self._log_in, "/api/login/prove": self._prove_grant,
            "/api/grants": self._create_grant,
        }  # fmt: skip
        unlocked = {(one.method, one.path) for one in table.ENDPOINTS if one.open}
        unlocked |= {("GET", name) for name in self._files}
        self.guard = Guard(self._answer, port, keys, unlocked, failed, self._slowdown)

    def is_lost(self) -> bool:
        return self._memory.lost

    def idle_seconds(self) -> float:
        return 0.0 if self.stream.clients else time.monotonic() - self.guard.last

    def close(self) -> None:
        self.stream.close()

    def end(self) -> None:
        self._pool.close()
        self._stream_pool.close()

    # --- answers ----------------------------------------------------------------------------------

    async def _answer_call(self, endpoint: table.Endpoint, request: Any, scope: Scope) -> Response:
        if endpoint.content == table.EVENTS:
            return self._follow_stream(scope)
        if endpoint.path in self._constants:
            body = self._constants[endpoint.path]()
        elif endpoint.operation is None:
            body = msgspec.json.encode(await self._own[endpoint.path](scope, request))
        else:
            origin = scope.get("yester.origin", login.PROGRAM)
            body = await self._pool.run(answer_request, endpoint, request, origin)
        return Response(body, media_type=endpoint.content)

    async def _log_in(self, scope: Scope, request: table.Login) -> table.Bearer:
        """By a one-time code, or by a grant. Neither helps another user of this machine: a link can
        be seen, and a page that another program serves can read what its tab has kept."""
        origin, grant = "", request.grant.partition(".")[0]
        if not login.is_another_user(scope.get("client")):
            if grant:
                origin = self._keys.grants.find_origin(request.grant)
            elif request.code:
                origin = login.take_code(self._memory.home, request.code, time.time())
        if not origin:
            await self._slowdown.delay_answer()
            raise Refusal("grant" if grant else "code")
        token = self._keys.issue_bearer(origin, grant)
        return table.Bearer(token=token, expires_in=login.BEARER_SECONDS)

    async def _prove_grant(self, scope: Scope, request: table.Prove) -> table.Proof:  # noqa: ARG002
        address = f"{login.ADDRESS}:{self._port}"  # never what Host says: a relay could choose that
        proof = self._keys.grants.prove(request.grant, address, request.nonce)
        if not proof:
            await self._slowdown.delay_answer()
            raise Refusal("grant")
        return table.Proof(proof=proof)

    async def _create_grant(self, scope: Scope, request: table.NewGrant) -> table.NewGranted:
        origin = scope["yester.origin"]
        return table.NewGranted(grant=self._keys.grants.create(origin, redact(request.browser)))

    def _follow_stream(self, scope: Scope) -> Response:
        if self.stream.clients >= MOST_STREAMS:
            raise Refusal("listeners", most=MOST_STREAMS)
        last = Headers(scope=scope).get("last-event-id", "")
        if last and not is_cursor(last):
            raise Refusal("event", last)
        if scope["method"] == "HEAD":
            return Response(media_type=table.EVENTS)
        return StreamingResponse(self.stream.follow(last.strip()), media_type=table.EVENTS)

    def _find_file(self, scope: Scope) -> Response:
        file = self._files.get(scope["path"])
        if file is None:
            return super()._find_file(scope)
        if read_method(scope) != "GET":
            raise Refusal("file")
        return file


@cache
def _encode_document() -> bytes:
    """Made when it is first asked for: it takes longer than all else a server does to start."""
    return msgspec.json.encode(table.make_document(table.ENDPOINTS))


def _path_pattern(path: str) -> re.Pattern[str]:
    """`/api/items/{id}` → a pattern with a group for each name."""
    parts = re.split(r"\{(\w+)\}", path)
    names = (f"(?P<{part}>[^/]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.compile("".join(names))


def load_files(folder: Path = FOLDER) -> dict[str, Response]:
    """/path → the viewer's file. `index.html` is also `/`. Links and hidden files are left out."""
    found: dict[str, Response] = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = path.suffix == ".py" or any(part.startswith((".", "_")) for part in parts)
        if hidden or path.is_symlink() or not path.is_file():
            continue
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path)[0]
        file = Response(path.read_bytes(), media_type=kind or "application/octet-stream")
        found["/" + "/".join(parts)] = file
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found
