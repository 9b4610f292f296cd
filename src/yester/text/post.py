"""A text to a server and its answer back, for the few places that may send anything at all.

No proxy, no redirect and no variable is followed: what is sent goes to the address in config.toml
or nowhere. Plain http goes to this machine only. Imported where the settings name a server.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from yester.errors import ConfigError

_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Address:
    secure: bool
    host: str
    port: int | None
    path: str  # without a slash at its end
    query: str = ""

    @property
    def here(self) -> bool:
        """Is it this machine?"""
        return _is_loopback(self.host)

    def path_below(self, path: str) -> str:
        return f"{self.path}{path}" + (f"?{self.query}" if self.query else "")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    reason: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Unanswered(Exception):
    """Nothing came back; the text says why, and holds nothing of what was sent.

    `sent`: the request may have arrived all the same."""

    def __init__(self, text: str, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


def parse_address(url: str, setting: str) -> Address:
    """Where a setting says that texts go; ConfigError where they must not go."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or parts.username or parts.password:
        # A key in the address would be quoted here.
        shown = repr(url) if "@" not in url else "an address with a name or password in it"
        raise ConfigError(f"{setting} is {shown}, but must be like https://host/v1")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ConfigError(
            f"{setting} is {url!r}, but plain http goes to this machine only; use https"
        )
    return Address(parts.scheme == "https", host, port, parts.path.rstrip("/"), parts.query)


def post_body(
    to: Address, path: str, body: bytes, headers: Mapping[str, str], seconds: float
) -> Reply:
    """The answer to one request, whole and within `seconds`, or Unanswered.

    A socket's own timeout starts anew with every byte, so a clock beside it hangs up.
    """
    make = http.client.HTTPSConnection if to.secure else http.client.HTTPConnection
    connection = make(to.host, to.port, timeout=max(seconds, 0.001))
    until = time.monotonic() + seconds
    clock: threading.Timer | None = None
    sent = False
    try:
        connection.connect()
        sent = True
        clock = threading.Timer(max(until - time.monotonic(), 0), _hang_up, (connection.sock,))
        clock.daemon = True
        clock.start()
        given = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        connection.request("POST", path, body, given)
        with connection.getresponse() as response:
            read = _read_body(response, until)
            named = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status, response.reason, named, read)
    except (OSError, http.client.HTTPException, ValueError) as error:
        # ValueError: a header's value that cannot be sent; its text would quote it
        if isinstance(error, TimeoutError) or time.monotonic() >= until:
            raise Unanswered(f"no answer within {seconds:g} s", sent) from None
        told = type(error).__name__ if isinstance(error, ValueError) else str(error)
        raise Unanswered(told or type(error).__name__, sent) from None
    finally:
        if clock is not None:
            clock.cancel()
        connection.close()


def _hang_up(connected: socket.socket) -> None:
    # The plain socket's method: that of an encrypted one changes what another thread reads from.
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _read_body(response: http.client.HTTPResponse, until: float) -> bytes:
    blocks: list[bytes] = []
    size = 0
    while block := response.read1(1 << 16):
        blocks.append(block)
        size += len(block)
        if size > _MOST_BYTES:
            raise http.client.HTTPException("the answer is too long")
        if time.monotonic() > until:
            raise TimeoutError
    if response.length:  # read1 does not notice by itself that the other end has hung up
        raise http.client.HTTPException("the answer ends in the middle")
    return b"".join(blocks)


def sendable_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # lone surrogates have no form in JSON


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
