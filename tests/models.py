"""Scripted servers that speak the wire formats of language models, on real sockets."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

KEY = "sk-ant-api03-" + "Zt7Qk2" * 12  # of the shape of a key, and nobody's


@dataclass
class Reply:
    """What a server does once. `text` goes into the wire format; the rest goes around it."""

    text: str = ""
    stop: str = "done"
    status: int = 200
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    tokens: tuple[int, int] | None = (120, 30)
    raw: bytes | None = None  # instead of the wire format
    silent: bool = False  # says nothing until the test is over
    drip: bool = False  # a byte now and then, without an end
    cut: bool = False  # promises more than it sends


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, wire: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.wire = wire
        self.replies: list[Reply] = []
        self.asked: list[Asked] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def say(self, *replies: Reply | str | dict[str, Any]) -> None:
        """What to do with the next requests; the last one is done again and again."""
        for one in replies:
            if isinstance(one, dict):
                one = json.dumps(one)
            self.replies.append(Reply(one) if isinstance(one, str) else one)


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        given = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.path, headers, json.loads(given)))
        replies = self.server.replies
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if reply.silent:
            self.server.over.wait(20)
            return
        body = _WIRES[self.server.wire](reply) if reply.raw is None else reply.raw
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + (100 if reply.cut else 0)))
        if not reply.drip:
            self.end_headers()
            self.wfile.write(body)
            return
        self.flush_headers()
        try:
            while not self.server.over.wait(0.01):
                self.wfile.write(b"X-More: 1\r\n")
        except OSError:
            pass  # the other end has hung up, as it should

    def log_message(self, *words: object) -> None:
        pass


def anthropic(reply: Reply) -> bytes:
    if reply.status != 200:
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(reply.status, "api_error")
        body: dict[str, Any] = {
            "type": "error",
            "error": {"type": kind, "message": reply.message},
            "request_id": "req_1",
        }
        return json.dumps(body).encode()
    stops = {"done": "end_turn", "length": "max_tokens", "refusal": "refusal"}
    read, written = reply.tokens or (0, 0)
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "c2ln"},
            {"type": "text", "text": reply.text},
        ],
        "stop_reason": stops[reply.stop],
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }
    return json.dumps(body).encode()


def openai(reply: Reply) -> bytes:
    if reply.status != 200:
        body: dict[str, Any] = {
            "error": {"message": reply.message, "type": "x", "param": None, "code": None}
        }
        return json.dumps(body).encode()
    stops = {"done": "stop", "length": "length", "refusal": "stop"}
    refused = reply.stop == "refusal"
    message = {
        "role": "assistant",
        "content": None if refused else reply.text,
        "refusal": "I cannot help with that." if refused else None,
    }
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_794_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": stops[reply.stop]}],
    }
    if reply.tokens is not None:
        read, written = reply.tokens
        body["usage"] = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }
    return json.dumps(body).encode()


_WIRES = {"anthropic": anthropic, "openai": openai}


@contextmanager
def serving(wire: str) -> Iterator[Server]:
    with Server(wire) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
