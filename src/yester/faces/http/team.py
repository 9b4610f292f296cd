"""The server that many use: the endpoints of the table that have a scope, each answered as the
caller's token allows and as the database shows it to them.

Nothing is kept between two requests but figures, the embedding model and idle connections, so any
number of processes answer beside each other. No page is served, and none may ask.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from yester.caller import PREFIX, Caller
from yester.errors import StoreError, YesterError
from yester.faces.http import table
from yester.faces.http.app import Router, Threads, answer_request
from yester.faces.http.guard import Failed, Guard, Slowdown, read_bearer, read_method
from yester.faces.http.login import PROGRAM
from yester.faces.http.request import Refusal, make_problem
from yester.memory import Memory
from yester.model import replace
from yester.store.postgres.team import Gate, Identified
from yester.tables import load_table

THREADS = 8
_PROBE_SECONDS = 6.0
_NO_TOKEN = {
    "unknown": "the token is wrong", "expired": "the token has expired",
    "revoked": "the token was revoked",
}  # fmt: skip


class TeamApp(Router):
    """What answers many."""

    def __init__(
        self,
        memory: Memory,
        gate: Gate,
        failed: Failed,
        *,
        metrics_token: str = "",
        threads: int = THREADS,
        slowdown: Slowdown | None = None,
        endpoints: Sequence[table.Endpoint] = table.TEAM_ENDPOINTS,
    ) -> None:
        super().__init__(memory, endpoints, _encode_manual, _encode_document)
        self._gate, self._metrics_token = gate, metrics_token
        self._threads, self._probe = Threads(threads), ThreadPoolExecutor(1, "probe")
        self._probing: asyncio.Future[None] | None = None
        self._closed = False
        self._figures = Figures()
        self.guard = TeamGuard(self, endpoints, failed, slowdown or Slowdown())

    def close(self) -> None:
        """From now on it is not ready; what runs is finished."""
        self._closed = True

    def end(self) -> None:
        self._threads.close()
        self._probe.shutdown(wait=True, cancel_futures=True)

    # --- who asks ---------------------------------------------------------------------------------

    async def identify(self, token: bytes) -> Caller:
        """Whose token it is; a Refusal where it opens nothing, or has asked too much."""
        found = Identified(None, "unknown", 0.0)
        if token.startswith(PREFIX.encode()):
            found = await self._threads.run(self._gate.identify, token)
        if found.wait:
            self._figures.count_event("rate_limited")
            raise Refusal("rate", seconds=math.ceil(found.wait))
        if found.caller is not None and found.state == "good":
            return found.caller
        self._figures.count_event("token_refused")
        if found.caller is not None:
            await self._record(found.caller, "token", "", found.state)
        raise Refusal("team_token", what=_NO_TOKEN[found.state] if token else "a token is needed")

    async def _record(self, caller: Caller, action: str, about: str, outcome: str) -> None:
        await self._threads.run(self._gate.record, caller, action, about, outcome)

    async def _check_scope(self, endpoint: table.Endpoint, scope: Scope) -> None:
        if endpoint.open:
            return
        caller: Caller = scope["yester.caller"]
        if endpoint.scope not in caller.scopes:
            await self._record(caller, f"{endpoint.method} {endpoint.path}", "", "refused: scope")
            allowed = " and ".join(sorted(caller.scopes)) or "nothing"
            raise Refusal("scope", allowed=allowed, scope=endpoint.scope)

    # --- answers ----------------------------------------------------------------------------------

    async def _answer_call(self, endpoint: table.Endpoint, request: Any, scope: Scope) -> Response:
        if endpoint.path == "/ready":
            await self._check_ready()
            body = self._constants["/health"]()
        elif endpoint.path == "/metrics":
            body = self._show_figures(Headers(scope=scope))
        elif endpoint.path in self._constants:
            body = self._constants[endpoint.path]()
        else:
            whose, path = scope["yester.caller"], scope["path"]
            body = await self._threads.run(self._answer_caller, endpoint, request, whose, path)
        return Response(body, media_type=endpoint.content)

    def _answer_caller(
        self, endpoint: table.Endpoint, request: Any, caller: Caller, path: str
    ) -> bytes:
        """In a thread. What changes something stands in the log before it is done, so that nothing
        is done of which there is no trace; what came of it, where that was nothing, behind it."""
        logged = endpoint.scope != "read"
        action = f"{endpoint.method} {endpoint.path}"
        if logged:
            self._gate.record(caller, action, path, "asked")
        try:
            store = self._gate.open_store(caller)
            try:
                memory = self._memory.for_caller(caller, store)
                return answer_request(memory, endpoint, request, PROGRAM)
            finally:
                store.close()
        except YesterError as error:
            if logged:
                self._gate.record(caller, action, path, f"refused: {make_problem(error)[0].status}")
            raise

    async def _check_ready(self) -> None:
        """One look at a time: a database that hangs must not use up the threads."""
        if self._closed:
            raise Refusal("unready")
        if self._probing is None or self._probing.done():
            loop = asyncio.get_running_loop()
            self._probing = loop.run_in_executor(self._probe, self._gate.check_database)
        try:
            await asyncio.wait_for(asyncio.shield(self._probing), _PROBE_SECONDS)
        except (StoreError, TimeoutError):
            raise Refusal("unready") from None

    def _show_figures(self, headers: Headers) -> bytes:
        given = read_bearer(headers)
        if not self._metrics_token or not hmac.compare_digest(given, self._metrics_token.encode()):
            raise Refusal("team_token", what="figures need the token of --metrics-token")
        return self._figures.render(
            requests_open=self.guard.open, threads_waiting=self._threads.waiting
        ).encode()

    def count_answer(self, scope: Scope, status: int, seconds: float) -> None:
        endpoint = scope.get("yester.endpoint")
        path = endpoint.path if endpoint else "other"
        method = scope["method"] if endpoint else "other"
        self._figures.count_request(method, path, status, seconds)


class TeamGuard(Guard):
    """As on one's own machine, but for the name by which the server is asked, which is its proxy's
    to say, and for pages: there are none here, and none elsewhere may ask."""

    def __init__(
        self,
        app: TeamApp,
        endpoints: Sequence[table.Endpoint],
        failed: Failed,
        slowdown: Slowdown,
    ) -> None:
        unlocked = {(one.method, one.path) for one in endpoints if one.open}
        super().__init__(app._answer, 0, None, unlocked, failed, slowdown)
        self._team = app
        self._bodies = {(one.method, one.path): one.largest for one in endpoints}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.monotonic(), 499  # the client has left

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await super().__call__(scope, receive, send_counted)
        finally:
            self._team.count_answer(scope, status, time.monotonic() - began)

    def _check_host(self, given: Sequence[str]) -> None:
        if len(given) != 1:
            raise Refusal("host", ", ".join(given), hosts="one Host")

    def _check_origin(self, scope: Scope, headers: Headers) -> None:  # noqa: ARG002
        if origins := [*headers.getlist("origin"), *headers.getlist("sec-fetch-site")]:
            raise Refusal("page", ", ".join(origins), "Origin")

    def _largest_body(self, scope: Scope) -> int:
        return self._bodies.get((read_method(scope), scope["path"]), table.LARGEST_BODY)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        try:
            scope["yester.caller"] = await self._team.identify(read_bearer(headers))
        except Refusal as refused:
            if refused.row["status"] == 401:
                await self._slowdown.delay_answer()
            raise
        scope["yester.origin"] = PROGRAM


@cache
def _encode_manual() -> bytes:
    manual = table.make_manual("https://SERVER")
    return msgspec.json.encode(replace(manual, headers=load_table("api")["many"]["headers"]))


@cache
def _encode_document() -> bytes:
    words, document = load_table("api")["many"], table.make_document(table.TEAM_ENDPOINTS)
    bearer = document["components"]["securitySchemes"]["bearer"] | {"description": words["bearer"]}
    document["info"] |= {"description": words["description"]}
    document["components"] |= {"securitySchemes": {"bearer": bearer}}
    return msgspec.json.encode(document)


# --- figures --------------------------------------------------------------------------------------

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Figures:
    """Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self._events: Counter[str] = Counter({"token_refused": 0, "rate_limited": 0})

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, path, status] += 1
            self._seconds += seconds
            for bound in _BOUNDS:
                self._buckets[bound] += seconds <= bound

    def count_event(self, name: str) -> None:
        with self._lock:
            self._events[name] += 1

    def render(self, **gauges: float) -> str:
        with self._lock:
            return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        yield "# TYPE yester_requests_total counter"
        for (method, path, status), number in sorted(self._requests.items()):
            labels = f'method="{method}",path="{path}",status="{status}"'
            yield f"yester_requests_total{{{labels}}} {number}"
        total = sum(self._requests.values())
        yield "# TYPE yester_request_seconds histogram"
        for bound in _BOUNDS:
            yield f'yester_request_seconds_bucket{{le="{bound:g}"}} {self._buckets[bound]}'
        yield f'yester_request_seconds_bucket{{le="+Inf"}} {total}'
        yield f"yester_request_seconds_sum {self._seconds:.6f}"
        yield f"yester_request_seconds_count {total}"
        for name, number in self._events.items():
            yield f"# TYPE yester_{name}_total counter"
            yield f"yester_{name}_total {number}"
        for name, value in gauges.items():
            yield f"# TYPE yester_{name} gauge"
            yield f"yester_{name} {value:g}"
