"""Vectors from a server; imported only where the settings name one."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from yester.errors import ModelError
from yester.text.arrays import arrays
from yester.text.embed import DOCUMENT_TOKENS, QUERY_TOKENS, normalised

if TYPE_CHECKING:
    from yester.text.embed import Vectors

_BATCH = 32
_SECONDS = 30.0
_QUERY_SECONDS = 2.0
_MOST_BYTES = 64 << 20


class HttpEmbedder:
    """A server that speaks OpenAI's `/v1/embeddings`.

    No proxy, no redirect and no variable is followed: texts go to the address in config.toml or
    nowhere. A failure is one ModelError; when to try again is the caller's business.
    """

    def __init__(
        self,
        url: str,
        model: str,
        dims: int,
        key: str = "",
        seconds: float = _SECONDS,
        query_seconds: float = _QUERY_SECONDS,
    ) -> None:
        self.name, self.dims, self.band = f"http:{model}", dims, (0.0, 1.0)
        self.sha = hashlib.sha256(f"{url}\n{model}\n{dims}".encode()).hexdigest()
        self._model, self._key = model, key
        self._seconds, self._query_seconds = seconds, query_seconds
        self._np = arrays()
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ModelError(f"embed_url is {url!r}, but must be like https://host/v1")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ModelError(
                f"embed_url is {url!r}, but plain http goes to this machine only; use https"
            )
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = (parts.path.rstrip("/") or "/v1") + "/embeddings"
        if parts.query:
            self._path += f"?{parts.query}"

    def embed(self, texts: Sequence[str], most_tokens: int = DOCUMENT_TOKENS) -> Vectors:  # noqa: ARG002
        rows = self._np.zeros((len(texts), self.dims), self._np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            rows[start : start + len(batch)] = self._ask(batch, self._seconds)
        return normalised(rows)

    def embed_query(self, text: str, most_tokens: int = QUERY_TOKENS) -> Vectors:  # noqa: ARG002
        row = self._np.array(self._ask([text], self._query_seconds), self._np.float32)
        vector: Vectors = normalised(row)[0]
        return vector

    def _ask(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        # A server may refuse an empty text; a blank one has no meaning either.
        body = msgspec.json.encode(
            {"model": self._model, "input": [_sendable(text) or " " for text in texts]}
        )
        answer = self._post(body, seconds)
        try:
            found = msgspec.json.decode(answer, type=dict[str, Any])["data"]
            rows = msgspec.convert([row["embedding"] for row in found], list[list[float]])
            order = msgspec.convert(
                [row.get("index", at) for at, row in enumerate(found)], list[int]
            )
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
            raise self._error("the answer is not a list of embeddings") from None
        if sorted(order) != list(range(len(texts))):
            raise self._error(f"{len(rows)} vectors came for {len(texts)} texts")
        for row in rows:
            if len(row) != self.dims:
                raise self._error(
                    f"the vectors have {len(row)} numbers, but embed_dims is {self.dims}; "
                    "correct it in config.toml"
                )
        return [row for _, row in sorted(zip(order, rows, strict=True))]

    def _post(self, body: bytes, seconds: float) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = make(self._host, self._port, timeout=seconds)
        until = time.monotonic() + seconds
        try:
            connection.request("POST", self._path, body, headers)
            with connection.getresponse() as response:
                read = _read(response, until)
        except TimeoutError:
            raise self._error(f"no answer within {seconds:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise self._error(str(error) or type(error).__name__) from None
        finally:
            connection.close()
        if response.status == 429:
            wait = response.headers.get("Retry-After", "")
            raise self._error("too many requests" + (f", wait {wait} s" if wait.isdigit() else ""))
        if response.status in (401, 403):
            raise self._error(f"not allowed ({response.status}); check embed_key in config.toml")
        if response.status != 200:
            raise self._error(f"answered {response.status} {response.reason}")
        return read

    def _error(self, reason: str) -> ModelError:
        return ModelError(f"embeddings from {self._host}: {reason}")


def _read(response: http.client.HTTPResponse, until: float) -> bytes:
    """The whole body before `until`; a socket's own timeout starts anew with every byte."""
    blocks: list[bytes] = []
    size = 0
    while block := response.read1(1 << 16):
        blocks.append(block)
        size += len(block)
        if size > _MOST_BYTES:
            raise http.client.HTTPException("the answer is too long")
        if time.monotonic() > until:
            raise TimeoutError
    return b"".join(blocks)


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # lone surrogates have no form in JSON


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
