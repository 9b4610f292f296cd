"""A team's server, as a store asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from yester.errors import LlmError, SourceError, UsageError
from yester.redact import redact
from yester.sharing.team import Pushed, Told
from yester.text.sentences import shorten_text
from yester.text.server import Server

_SECONDS = 120.0  # for one answer
_PATIENCE = 120.0  # seconds of waiting in all, where the server says that it is asked too much
_LONGEST = 300  # characters of what it says
A = TypeVar("A")


class NotAdmitted(SourceError):
    """The server answers, and does not do it."""

    def __init__(self, what: str, fix: str = "", status: int = 0) -> None:
        super().__init__(what, fix)
        self.status = status


class ServerGone(SourceError):
    """Its database is another one than the cursor was given by."""


class Me(Struct):
    user: str
    scopes: list[str]


class _Withdrawn(Struct):
    lines: int


class TeamServer:
    """Every failure is a SourceError that says what to do, and holds nothing of what was sent."""

    def __init__(
        self, url: str, token: str, *, plain: bool = False, trust: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self.url = url
        self._server = Server(url, token, "the server's address", "", plain=plain, trust=trust)
        self._sleep, self._patience = sleep, _PATIENCE

    def show_caller(self) -> Me:
        return self._request("GET", "/v1/me", Me)

    def pull(self, project: str, cursor: str, limit: int) -> Told:
        asked = {"project": project, "cursor": cursor, "limit": str(limit)}
        return self._request("GET", f"/v1/sync/pull?{urlencode(asked)}", Told)

    def push(
        self, project: str, origin: str, batch: int, lines: Sequence[Mapping[str, Any]], cursor: str
    ) -> Pushed:
        body = {
            "project": project, "origin": origin, "batch": batch, "lines": lines, "cursor": cursor,
        }  # fmt: skip
        return self._request("POST", "/v1/sync/push", Pushed, body)

    def withdraw(self, project: str, origin: str) -> int:
        body = {"project": project, "origin": origin}
        return self._request("POST", "/v1/sync/withdraw", _Withdrawn, body).lines

    def _request(self, method: str, path: str, kind: type[A], body: object = None) -> A:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Authorization": f"Bearer {self._server.key}"}
        while True:
            try:
                said, content = self._server.exchange(method, path, data, _SECONDS, headers)
            except LlmError as error:
                raise SourceError(f"{redact(self.url)} cannot be reached ({error})") from None
            if said.status != 429 or not self._wait(said.headers.get("Retry-After", "")):
                break
        if said.status != 200:
            raise self._explain(said.status, content)
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError:
            raise SourceError(f"{redact(self.url)} is no server of yester's, or too old") from None

    def _wait(self, asked: str) -> bool:
        """As long as it asks for, while that is bearable."""
        seconds = float(asked) if asked.isdecimal() else 1.0
        if seconds > self._patience:
            return False
        self._patience -= seconds
        self._sleep(seconds)
        return True

    def _explain(self, status: int, content: bytes) -> SourceError:
        where = redact(self.url)
        try:
            told = msgspec.json.decode(content, type=dict[str, Any])
        except msgspec.MsgspecError:
            told = {}
        why = shorten_text(redact(str(told.get("detail", ""))), _LONGEST)
        why = why.replace(self._server.key, "…") if self._server.key else why
        match status:
            case 410:
                return ServerGone(f"{where}: its database is another one than before")
            case 401:
                fix = "share the project again with another one: yester share PROJECT --to URL"
                return NotAdmitted(
                    f"{where} does not take the token ({why or status})", fix, status
                )
            case 403 | 404 | 409:
                return NotAdmitted(f"{where}: {why or f'refused ({status})'}", "", status)
            case 429:
                return SourceError(f"{where} is asked too often; what is left goes next time")
            case _ if 300 <= status < 400:
                return SourceError(f"{where} points elsewhere ({status}), which is not followed")
        return SourceError(f"{where} failed ({status}{f': {why}' if why else ''})")


def check_address(url: str, plain: bool) -> str:
    """Without what stands behind the host's folder; UsageError where nothing can be sent there."""
    clean = url.rstrip("/")
    if "?" in clean or "#" in clean:
        raise UsageError("the server's address ends with its folder: https://memory.example.org")
    Server(clean, "", "the server's address", "", plain=plain)
    return clean
