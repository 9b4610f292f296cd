"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from yester.distil.llm import Answer, not_understood, refuse, whole
from yester.errors import ConfigError, Malformed, Unreachable
from yester.text.post import Reply, Unanswered, address, post, sendable

URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"  # what its own client sends, and what compatible servers know
_STOPS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
# Models of this generation think by themselves; how much is said by `effort`, which older ones
# refuse. Forcing a tool, a temperature or a beginning of the answer are errors with them.
_THINKS = re.compile(r"claude-[a-z]+-(?:[5-9]|\d\d)\b")


class Anthropic:
    """`x-api-key` goes to the address in the settings and nowhere else."""

    calls = 1

    def __init__(self, model: str, key: str, url: str = "") -> None:
        self.name = model
        self._key = key
        self._to = address(url or URL, "llm.url")
        if not key and not self._to.here:
            raise ConfigError("llm.provider anthropic needs llm.key")
        self.here = self._to.here
        self._path = self._to.below(
            "/messages" if self._to.path.endswith("/v1") else "/v1/messages"
        )
        self._effort = _THINKS.search(model) is not None
        self._format = True

    def complete(
        self, system: str, text: str, schema: Mapping[str, Any], most_tokens: int, seconds: float
    ) -> Answer:
        config: dict[str, Any] = {}
        if self._format:
            config["format"] = {"type": "json_schema", "schema": schema}
        if self._effort:
            config["effort"] = "low"
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": most_tokens,
            "system": sendable(system),
            "messages": [{"role": "user", "content": sendable(text)}],
        }
        if config:
            body["output_config"] = config
        headers = {"anthropic-version": _VERSION}
        if self._key:
            headers["x-api-key"] = self._key
        try:
            reply = post(self._to, self._path, msgspec.json.encode(body), headers, seconds)
        except Unanswered as error:
            raise Unreachable(f"{self._to.host}: {error}", error.sent) from None
        return self._understood(reply)

    def _understood(self, reply: Reply) -> Answer:
        who = self._to.host
        try:
            found = msgspec.json.decode(reply.body, type=dict[str, Any])
        except msgspec.MsgspecError:
            refuse(reply, who, "", self._key)
            raise not_understood(who) from None
        error = found.get("error")
        message = str(error.get("message", "")) if isinstance(error, dict) else ""
        if reply.status == 400:
            self._ask_for_less(message)
        refuse(reply, who, message, self._key)
        blocks, usage = found.get("content"), found.get("usage")
        if not isinstance(blocks, list) or not isinstance(usage, dict):
            raise not_understood(who)
        # By their type: thinking may come first.
        texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
        read = sum(
            whole(usage.get(name))
            for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        )
        return Answer(
            "".join(text for text in texts if isinstance(text, str)),
            read,
            whole(usage.get("output_tokens")),
            _STOPS.get(str(found.get("stop_reason")), "done"),
        )

    def _ask_for_less(self, message: str) -> None:
        """A model that does not know what we asked for is asked without it the next time."""
        low = message.lower()
        if self._effort and "effort" in low:
            self._effort = False
        elif self._format and re.search(r"output_config|format|schema", low):
            self._format = False
        else:
            return
        raise Malformed(f"{self.name} does not know all that was asked of it")
