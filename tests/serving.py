"""The server in a thread of the test, on a real socket, and a client that says exactly what it
sends."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from yester.faces.http.app import FOLDER, App
from yester.faces.http.guard import Slowdown
from yester.faces.http.login import Grants, Keys, load_token
from yester.faces.http.server import Server, open_socket
from yester.memory import Memory

if TYPE_CHECKING:
    from yester.memory import AskWorker

NO_MODEL = {"YESTER_EMBEDDER": "none"}


@dataclass
class Said:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Serving:
    def __init__(
        self, home: Path, app: App, port: int, failures: list[BaseException], keys: Keys
    ) -> None:
        self.home, self.app, self.port, self.failures = home, app, port, failures
        self._keys = keys
        self.token = load_token(home)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        token: str | None = "",
    ) -> Said:
        """`token`: "" is the right one, None is none."""
        sent = {"Host": self.host} | (headers or {})
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token or self.token}")
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            client.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                client.putheader(name, value)
            if body is not None and "Content-Length" not in sent:
                client.putheader("Content-Length", str(len(body)))
            client.endheaders(body)
            answer = client.getresponse()
            return Said(
                answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            )
        finally:
            client.close()

    def get(self, path: str, **query: Any) -> Any:
        """The answer, which is a good one."""
        said = self.ask("GET", path + ("?" + urlencode(query) if query else ""))
        assert said.status == 200, said.body
        return said.json

    def send(self, path: str, table: Any, method: str = "POST", token: str = "") -> Said:
        kind = {"Content-Type": "application/json"}
        return self.ask(method, path, kind, json.dumps(table).encode(), token)

    def user(self) -> str:
        """A bearer of the user's own."""
        return self._keys.issue_bearer()

    @contextmanager
    def stream(self, last: str = "") -> Iterator[Iterator[tuple[str, str, Any]]]:
        """What /stream sends: (event, id, data)."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Authorization": f"Bearer {self.token}"} | ({"Last-Event-ID": last} if last else {})
        client.request("GET", "/stream", headers=sent)
        answer = client.getresponse()
        assert answer.status == 200, answer.read()
        try:
            yield _events(answer)
        finally:
            answer.close()
            client.close()

    def raw(self, data: bytes) -> bytes:
        """Everything that comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            found = b""
            while part := client.recv(1 << 16):
                found += part
            return found


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        if line != "\n":
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


async def at_once(_: float) -> None:
    """A sleep that does not wait."""


@contextmanager
def serving(
    home: Path,
    *,
    slowdown: Slowdown | None = None,
    folder: Path = FOLDER,
    ask_worker: AskWorker | None = None,
    environ: dict[str, str] = NO_MODEL,
) -> Iterator[Serving]:
    failures: list[BaseException] = []
    sock = open_socket(0)
    port = sock.getsockname()[1]
    keys = Keys(load_token(home), Grants(home))
    app = App(
        Memory(home, environ, who="http", ask_worker=ask_worker, recreates=False), keys, port,
        lambda _, error: failures.append(error), folder=folder,
        slowdown=slowdown or Slowdown(sleep=at_once),
    )  # fmt: skip
    server = Server(app)
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    try:
        yield Serving(home, app, port, failures, keys)
    finally:
        server.should_exit = True
        thread.join()
        app.end()
