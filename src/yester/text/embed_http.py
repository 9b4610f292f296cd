"""Vectors from a server; imported only where the settings name one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yester.errors import ConfigError, ModelError
from yester.text.embed import DOCUMENT_TOKENS, QUERY_TOKENS, normalise_rows
from yester.text.post import Unanswered, parse_address, post_body, sendable_text
from yester.text.vectors import load_numpy

if TYPE_CHECKING:
    from yester.text.embed import Vectors

_BATCH = 32
_SECONDS = 30.0
_QUERY_SECONDS = 2.0


class HttpEmbedder:
    """A server that speaks OpenAI's `/v1/embeddings`.

    A failure is one ModelError; when to try again is the caller's business.
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
        self._np = load_numpy()
        try:
            self._to = parse_address(url, "embed.url")
        except ConfigError as error:
            raise ModelError(str(error)) from None
        self._path = self._to.path_below("/embeddings" if self._to.path else "/v1/embeddings")

    def embed(self, texts: Sequence[str], most_tokens: int = DOCUMENT_TOKENS) -> Vectors:  # noqa: ARG002
        rows = self._np.zeros((len(texts), self.dims), self._np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            rows[start : start + len(batch)] = self._request_vectors(batch, self._seconds)
        return normalise_rows(rows)

    def embed_query(self, text: str, most_tokens: int = QUERY_TOKENS) -> Vectors:  # noqa: ARG002
        row = self._np.array(self._request_vectors([text], self._query_seconds), self._np.float32)
        vector: Vectors = normalise_rows(row)[0]
        return vector

    def _request_vectors(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        # A server may refuse an empty text; a blank one has no meaning either.
        body = msgspec.json.encode(
            {"model": self._model, "input": [sendable_text(text) or " " for text in texts]}
        )
        answer = self._post_request(body, seconds)
        try:
            found = msgspec.json.decode(answer, type=dict[str, Any])["data"]
            rows = msgspec.convert([row["embedding"] for row in found], list[list[float]])
            order = msgspec.convert(
                [row.get("index", at) for at, row in enumerate(found)], list[int]
            )
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
            raise self._model_error("the answer is not a list of embeddings") from None
        if sorted(order) != list(range(len(texts))):
            raise self._model_error(f"{len(rows)} vectors came for {len(texts)} texts")
        for row in rows:
            if len(row) != self.dims:
                raise self._model_error(
                    f"the vectors have {len(row)} numbers, but embed.dims is {self.dims}; "
                    "correct it in config.toml"
                )
        return [row for _, row in sorted(zip(order, rows, strict=True))]

    def _post_request(self, body: bytes, seconds: float) -> bytes:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            reply = post_body(self._to, self._path, body, headers, seconds)
        except Unanswered as error:
            raise self._model_error(str(error)) from None
        if reply.status == 429:
            wait = reply.headers.get("retry-after", "")
            raise self._model_error(
                "too many requests" + (f", wait {wait} s" if wait.isdigit() else "")
            )
        if reply.status in (401, 403):
            raise self._model_error(f"not allowed ({reply.status}); check embed.key in config.toml")
        if reply.status != 200:
            raise self._model_error(f"answered {reply.status} {reply.reason}")
        return reply.body

    def _model_error(self, reason: str) -> ModelError:
        return ModelError(f"embeddings from {self._to.host}: {reason}")
