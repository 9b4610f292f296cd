"""Servers that speak OpenAI's chat completions: OpenAI, OpenRouter, Gemini, Ollama, LM Studio."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from yester.distil.llm import Answer, not_understood, refuse, whole
from yester.errors import ConfigError, Malformed, Unreachable
from yester.text.post import Reply, Unanswered, address, post, sendable

URL = "https://api.openai.com/v1"
_STOPS = {"length": "length", "content_filter": "refusal"}
_THINKS = re.compile(r"(?:^|/)(?:gpt-(?:[5-9]|\d\d)|o\d)")


class OpenAi:
    """A key is sent as a bearer token to the address in the settings and nowhere else."""

    calls = 1

    def __init__(self, model: str, key: str, url: str = "") -> None:
        self.name = model
        self._key = key
        self._to = address(url or URL, "llm.url")
        self.here = self._to.here
        own = self._to.host.endswith(".openai.com")
        if own and not key:
            raise ConfigError("llm.provider openai needs llm.key, or llm.url of another server")
        self._path = self._to.below(
            "/chat/completions" if self._to.path else "/v1/chat/completions"
        )
        # OpenAI's newer models refuse the old name of the limit; others ignore the new one, and
        # then there would be no limit.
        self._limit = "max_completion_tokens" if own else "max_tokens"
        self._effort = own and _THINKS.search(model) is not None
        self._format = True

    def complete(
        self, system: str, text: str, schema: Mapping[str, Any], most_tokens: int, seconds: float
    ) -> Answer:
        body: dict[str, Any] = {
            "model": self.name,
            self._limit: most_tokens,
            "messages": [
                {"role": "system", "content": sendable(system)},
                {"role": "user", "content": sendable(text)},
            ],
        }
        if self._format:
            named = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if self._effort:
            body["reasoning_effort"] = "low"
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            reply = post(self._to, self._path, msgspec.json.encode(body), headers, seconds)
        except Unanswered as error:
            raise Unreachable(f"{self._to.host}: {error}", error.sent) from None
        return self._understood(reply)

    def _understood(self, reply: Reply) -> Answer:
        who = self._to.host
        try:
            found = msgspec.json.decode(reply.body, type=dict[str, Any] | list[dict[str, Any]])
        except msgspec.MsgspecError:
            refuse(reply, who, "", self._key)
            raise not_understood(who) from None
        if isinstance(found, list):  # Gemini wraps its errors
            found = found[0] if found else {}
        error = found.get("error")
        message = str(error.get("message", "")) if isinstance(error, dict) else str(error or "")
        if reply.status in (400, 422):
            self._ask_for_less(message)
        if reply.status == 200 and isinstance(error, dict):
            # OpenRouter: the server behind it failed after the head was sent.
            code = error.get("code")
            status = code if isinstance(code, int) and code >= 400 else 502
            reply = Reply(status, "", reply.headers, b"")
        refuse(reply, who, message, self._key)
        try:
            choice, usage = found["choices"][0], found.get("usage") or {}
            said = choice["message"]
            text = said.get("content") or ""
            stop = _STOPS.get(str(choice.get("finish_reason")), "done")
            if said.get("refusal"):
                stop = "refusal"
            counts = whole(usage.get("prompt_tokens")), whole(usage.get("completion_tokens"))
        except (KeyError, IndexError, TypeError, AttributeError):
            raise not_understood(who) from None
        if not isinstance(text, str):
            raise not_understood(who)
        return Answer(text, *counts, stop)

    def _ask_for_less(self, message: str) -> None:
        """A model that does not know what we asked for is asked without it the next time."""
        low = message.lower()
        if self._effort and "reasoning" in low:
            self._effort = False
        elif self._format and re.search(r"response_format|json_schema|schema|format", low):
            self._format = False
        else:
            return
        raise Malformed(f"{self.name} does not know all that was asked of it")
