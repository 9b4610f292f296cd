"""Members of a team for tests: homes with stores that share a project over a server."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tests.teams import TeamServing
from yester.ingest.prepare import prepare_item
from yester.model import Item, Memo
from yester.sharing.lines import ItemLine, MemoryLine, form_line, hash_item
from yester.sharing.names import tell_team

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
