"""Members of a team for tests: homes with stores that share a project over a server."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from tests.roaming import SHOP as SHARED
from tests.roaming import Box
from tests.teams import TeamServing
from yester.errors import SourceError
from yester.ingest.prepare import prepare_item
from yester.model import Item, Memo
from yester.operate.purge import purge_store
from yester.sharing.exchange import Side
from yester.sharing.server import TeamServer
from yester.sharing.share import Share, ShareReport, Sharing, Unshared
from yester.sharing.wire import ItemLine, MemoryLine, form_line, hash_item, tell_team
from yester.store.contract import Store

SHOP = "git:example.com/acme/shop"


def make_item(ref: str, text: str, project: str = SHOP, **more: Any) -> Item:
    values = {
        "session": "one", "source": "claude-code", "agent": "claude-code", "role": "assistant",
        "epoch": 1_000, "body": text,
    }  # fmt: skip
    return prepare_item(Item(ref, "message", project, **{**values, **more})).item


def item_form(user: str, item: Item) -> dict[str, Any]:
    return as_sent(form_line(tell_team(ItemLine(item, hash_item(item)), user)))


def as_sent(form: dict[str, Any]) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(json.dumps(form))
    return sent


def memory_form(
    user: str, ref: str, text: str, mark: str, parents: tuple[str, ...] = (),
    type_: str = "decision", owner: str = "",
) -> dict[str, Any]:  # fmt: skip
    """A version of a memory as this user tells it."""
    item = Item(ref, "memory", SHOP, type=type_, title=text, body=text, epoch=1)
    memo = Memo(item, ref, content={"decision": text}, version=1)
    form = form_line(tell_team(MemoryLine("", ref, mark, parents, memo), owner or user))
    form["memory"]["who"] = user
    return form


class Sender:
    """Somebody who asks the server by hand."""

    numbers = count(1)

    def __init__(self, server: TeamServing, token: str, origin: str = "") -> None:
        self.server, self.token = server, token
        self.origin = origin or f"origin-{next(self.numbers)}"
        self.cursor = ""

    def push(self, *forms: dict[str, Any], batch: int = 0, project: str = SHOP, **more: Any) -> Any:
        body = {
            "project": project, "origin": self.origin, "batch": batch or next(self.numbers),
            "lines": list(forms), "cursor": self.cursor, **more,
        }  # fmt: skip
        said = self.server.send("/v1/sync/push", body, token=self.token)
        assert said.status == 200, said.body
        return said.json

    def pull(self, cursor: str | None = None, project: str = SHOP, **more: Any) -> list[Any]:
        """The lines behind what was read, and read on from there."""
        at = self.cursor if cursor is None else cursor
        found = self.server.by(self.token).get("/v1/sync/pull", project=project, cursor=at, **more)
        self.cursor = found["cursor"]
        return [one["line"] for one in found["lines"]]

    def texts(self, **more: Any) -> list[str]:
        forms = [one.get("item") or one.get("memory") for one in self.pull("", **more)]
        told = [one.get("item") or one.get("memo", {}).get("item") for one in forms if one]
        return [one["body"] for one in told if one]

    def found(self, words: str) -> list[str]:
        rows = self.server.by(self.token).get("/api/search", query=words)["results"]
        return [row["title"] or row["text"] for row in rows]


class Unplugged(SourceError):
    """The way to the server broke."""


class Cutting(TeamServer):
    """A way that breaks at a request: before it, or before its answer. What is pushed may come
    twice, or late: `deliver` sends it then."""

    def __init__(self, url: str, token: str, at: int = 1_000, kind: str = "before") -> None:
        super().__init__(url, token)
        self.left, self.kind = at, kind
        self.late: list[tuple[Any, ...]] = []

    def push(self, *sent: Any) -> Any:
        if self.kind == "twice":
            super().push(*sent)
        if self.kind == "late":
            self.late.append(sent)
            raise Unplugged
        return super().push(*sent)

    def deliver(self) -> None:
        for sent in self.late:
            with suppress(SourceError):
                super().push(*sent)
        self.late = []

    def _request(self, *asked: Any) -> Any:
        self.left -= 1
        if self.left < 0 and self.kind == "before":
            raise Unplugged
        answer = super()._request(*asked)
        if self.left < 0 and self.kind == "after":
            raise Unplugged
        return answer


class Peer(Box):
    """A user's home that shares `tests.roaming.SHOP` over a server."""

    numbers = count(1)

    def __init__(self, folder: Path, server: TeamServing, token: str, skew: int = 0) -> None:
        super().__init__(folder, folder, skew)
        self.server, self.token, self.private = server, token, set[str]()
        self.shared: Share | None = None

    @property
    def url(self) -> str:
        return f"http://{self.server.host}"

    def share(self) -> None:
        self.shared = Share(SHARED.key, self.url, "", f"origin-{next(self.numbers)}-{id(self)}")

    def exchange(self, now: int = 1_000, way: TeamServer | None = None) -> ShareReport:
        assert self.shared is not None

        def forget() -> Store:
            purge_store(self.store, self.home)
            return self.reopen()

        side = Side(self.home, self.store, now + self.skew, forget)
        server = way or TeamServer(self.url, self.token)
        sharing = Sharing(side, self.shared, server, self.private.__contains__)
        try:
            return sharing.exchange()
        finally:
            self.store = sharing.store

    def stop(self, now: int = 1_000) -> ShareReport:
        assert self.shared is not None
        self.shared.ending = "it was enough"
        return self.exchange(now)

    def waiting(self) -> int:
        assert self.shared is not None
        return Unshared(Side(self.home, self.store, 1), self.shared).count()

    def told(self) -> list[Any]:
        """What the server tells whoever begins to read."""
        return Sender(self.server, self.token).pull("", project=SHARED.key)
