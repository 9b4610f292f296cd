"""What every request passes before anything is looked at: where it is addressed to, which page sent
it, who asks, how large it is and how long it takes. ASGI, around everything else.

    Host           this very server, so that a name that leads here (DNS rebinding) is refused
    Origin         this very server, or none: no page of another site, port or file speaks to it
    token          on everything but /health, the login and the viewer's files; wrong ones are
                   answered ever more slowly, right ones never
    body           at most 256 KB of JSON within ten seconds
    answers        headers that keep a browser from doing anything else with them
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from yester.errors import YesterError
from yester.faces.http.login import Keys
from yester.faces.http.request import Refusal, make_problem_response
from yester.faces.http.table import LARGEST_BODY

Failed = Callable[[str, BaseException], None]
LARGEST_HEAD = 16 * 1024
_BODY_SECONDS = 10.0
_MOST_OPEN = 200  # requests that are being answered; streams are counted apart
_NAMES = ("127.0.0.1", "localhost", "[::1]")

_PAGE = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_DATA = "default-src 'none'; frame-ancestors 'none'"
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


class Slowdown:
    """Wrong tokens: the first few are answered at once, then each a little later than the last. A
    token has 256 bits, so this is no lock but a brake; it never stops who has the right one."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._level, self._at = 0.0, clock()
        self.waiting = 0

    @staticmethod
    def delay_for(level: float) -> float:
        """Seconds for so many failures, of which one is forgotten each second."""
        return 0.0 if level <= 5 else min(0.05 * 2 ** (min(level, 20) - 6), 5.0)

    async def delay_answer(self) -> None:
        now = self._clock()
        self._level = max(0.0, self._level - (now - self._at)) + 1
        self._at = now
        if self.waiting >= 50:
            raise Refusal("tokens")
        self.waiting += 1
        try:
            await self._sleep(self.delay_for(self._level))
        finally:
            self.waiting -= 1


class Guard:
    """`unlocked` are (method, path) that need no token."""

    def __init__(
        self,
        app: ASGIApp,
        port: int,
        keys: Keys | None,
        unlocked: Collection[tuple[str, str]],
        failed: Failed,
        slowdown: Slowdown,
    ) -> None:
        self._app, self._keys, self._failed = app, keys, failed
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)
        if port == 80:
            self._hosts |= frozenset(_NAMES)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._unlocked = frozenset(unlocked)
        self._slowdown = slowdown
        self.open = 0
        self.last = time.monotonic()  # when something was last asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.last = time.monotonic()
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), *_policy_headers(message)]
            await send(message)

        counted = scope["path"] != "/stream"
        self.open += counted
        try:
            await self._check_request(scope, receive, send_guarded)
        except YesterError as error:
            if not started:
                await make_problem_response(error)(scope, receive, send_guarded)
        except (asyncio.CancelledError, _GoneError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, no traceback leaves the house
            self._failed(f"answering {scope['method']}", error)
            if not started:
                await make_problem_response(Refusal("failed"))(scope, receive, send_guarded)
        finally:
            self.open -= counted

    async def _check_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if sum(len(name) + len(value) for name, value in headers.raw) > LARGEST_HEAD:
            raise Refusal("head")
        self._check_host(headers.getlist("host"))
        self._check_origin(scope, headers)
        if self.open > _MOST_OPEN:
            raise Refusal("busy")
        if (read_method(scope), scope["path"]) not in self._unlocked:
            await self._admit(scope, headers)
        scope["yester.body"] = await _read_body(scope, headers, receive, self._largest_body(scope))
        await self._app(scope, receive, send)

    def _check_host(self, given: Sequence[str]) -> None:
        if len(given) == 1 and given[0].lower() in self._hosts:
            return
        raise Refusal("host", ", ".join(given), hosts=", ".join(sorted(self._hosts)))

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origins = headers.getlist("origin")
        site = headers.getlist("sec-fetch-site")
        foreign = any(one not in ("same-origin", "none") for one in site)
        # A link from elsewhere may open the viewer, and nothing but it.
        page = not scope["path"].startswith(("/api", "/stream", "/health"))
        navigates = headers.getlist("sec-fetch-mode") == ["navigate"]
        if any(one.lower() not in self._origins for one in origins):
            raise Refusal("page", ", ".join(origins), "Origin")
        if foreign and not (page and navigates and read_method(scope) == "GET"):
            raise Refusal("page", ", ".join(site), "Sec-Fetch-Site")

    def _largest_body(self, scope: Scope) -> int:  # noqa: ARG002
        return LARGEST_BODY

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        """Whose word it is, from now on in the scope."""
        token = read_bearer(headers)
        assert self._keys is not None
        if token and (origin := self._keys.find_origin(token)):
            scope["yester.origin"] = origin
            return
        await self._slowdown.delay_answer()
        given = headers.getlist("authorization")
        raise Refusal("token", what="the token is wrong" if given else "a token is needed")


class _GoneError(Exception):
    """The client has left while it was still sending."""


def read_bearer(headers: Headers) -> bytes:
    given = headers.getlist("authorization")
    kind, _, token = (given[0] if len(given) == 1 else "").encode("latin-1").partition(b" ")
    return token.strip() if kind.lower() == b"bearer" else b""


def read_method(scope: Scope) -> str:
    """What is asked for without a body is asked for all the same."""
    return "GET" if scope["method"] == "HEAD" else str(scope["method"])


async def _read_body(scope: Scope, headers: Headers, receive: Receive, most: int) -> bytes:
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return b""
    if length.isdigit() and int(length) > most:
        raise Refusal("large", most=most)
    if scope["method"] in ("POST", "PATCH", "PUT"):
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal("kind", kind)
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _GoneError
                body += message.get("body", b"")
                if len(body) > most:
                    raise Refusal("large", most=most)
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise Refusal("slow", seconds=_BODY_SECONDS) from None


def _policy_headers(message: Message) -> list[tuple[bytes, bytes]]:
    """What every answer says; a page may load what is ours, data nothing at all."""
    given = dict(message.get("headers", ()))
    page = given.get(b"content-type", b"").startswith(b"text/html")
    found = [*_ALWAYS, (b"content-security-policy", (_PAGE if page else _DATA).encode())]
    if b"cache-control" not in given:
        found.append((b"cache-control", b"no-store"))
    return found
