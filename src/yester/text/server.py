"""A server that a setting names, and vectors from such a one: the few places that send anything.

No proxy, no redirect and no variable is followed: what is sent goes to the address in config.toml
or nowhere. Plain http goes to this machine only. Imported where the settings name a server.
"""

from __future__ import annotations

import hashlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from yester.errors import Busy, ConfigError, LlmError, Malformed, ModelError, Unreachable
from yester.libraries import load_numpy
from yester.redact import redact
from yester.text.embed import normalise_rows
from yester.text.sentences import shorten_text

if TYPE_CHECKING:
    from yester.text.embed import Vectors

BUSY = (429, 503, 529)
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_MOST_BYTES = 64 << 20
_LONGEST_MESSAGE = 200  # characters of what a server says about a failure
_EMBEDDED_AT_ONCE = 32
_EMBED_SECONDS, _QUERY_SECONDS = 30.0, 2.0


class Server:
    """An address, which is called `named` in messages, and the key for it, which goes nowhere else.
    ConfigError where texts must not go there; `plain`: also over http to another machine. `trust`:
    the file of those who vouch for it, instead of the system's."""

    def __init__(
        self, url: str, key: str, named: str, base: str = "/v1", *, plain: bool = False,
        trust: str = "",
    ) -> None:  # fmt: skip
        try:
            parts = urlsplit(url)
            host, self._port = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https") or parts.username or parts.password:
            # A key in the address would be quoted here.
            shown = repr(url) if "@" not in url else "an address with a name or password in it"
            raise ConfigError(f"{named} is {shown}, but must be like https://host{base}")
        self.here = host in _THIS_MACHINE
        if parts.scheme == "http" and not self.here and not plain:
            raise ConfigError(
                f"{named} is {url!r}, but plain http goes to this machine only; use https"
            )
        self.host, self.key, self.named = host, key, named
        self.path = parts.path.rstrip("/") or base
        self._query = f"?{parts.query}" if parts.query else ""
        self._secure, self._trust = parts.scheme == "https", trust

    def post(
        self, path: str, body: object, seconds: float, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The JSON object that is the answer to one request; LlmError says what another one means.
        Without `headers` the key goes as most servers want it."""
        if headers is None:
            headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        target, data = f"{path}{self._query}", msgspec.json.encode(body)
        response, content = self.exchange("POST", target, data, seconds, headers)
        found, status = _decode_object(content), response.status
        error = found.get("error") if found else None
        if status == 200 and isinstance(error, dict):
            # OpenRouter: the server behind it failed after the head was sent.
            code = error.get("code")
            status = code if isinstance(code, int) and code >= 400 else 502
        if status != 200:
            message = error.get("message") if isinstance(error, dict) else error
            raise self._failure(status, response, clean_message(str(message or ""), self.key))
        if found is None:
            raise protocol_error(self.host)
        return found

    def exchange(
        self, method: str, path: str, body: bytes | None, seconds: float,
        headers: Mapping[str, str],
    ) -> tuple[http.client.HTTPResponse, bytes]:  # fmt: skip
        """The whole answer within `seconds`; else Unreachable, which holds nothing of what was
        sent. A socket's own timeout starts anew with every byte, so a clock beside it hangs up."""
        connection = self._connect(max(seconds, 0.001))
        until = time.monotonic() + seconds
        clock: threading.Timer | None = None
        try:
            connection.connect()
            clock = threading.Timer(max(until - time.monotonic(), 0), _hang_up, (connection.sock,))
            clock.daemon = True
            clock.start()
            given = {"Content-Type": "application/json", "Accept": "application/json", **headers}
            connection.request(method, f"{self.path}{path}", body, given)
            with connection.getresponse() as response:
                return response, _read_body(response, until)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: a header's value that cannot be sent; its text would quote it
            reason = str(error) if isinstance(error, OSError | http.client.HTTPException) else ""
            if isinstance(error, TimeoutError) or time.monotonic() >= until:
                reason = f"no answer within {seconds:g} s"
            sent = clock is not None
            raise Unreachable(f"{self.host}: {reason or type(error).__name__}", sent) from None
        finally:
            if clock is not None:
                clock.cancel()
            connection.close()

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self.host, self._port, timeout=seconds)
        context = make_tls_context(self._trust)
        return http.client.HTTPSConnection(self.host, self._port, timeout=seconds, context=context)

    def _failure(self, status: int, response: http.client.HTTPResponse, message: str) -> LlmError:
        said = f": {message}" if message else ""
        if status in BUSY:
            wait = _retry_seconds(response.headers.get("Retry-After", ""))
            return Busy(f"{self.host} is busy ({status}){said}", wait)
        if status in (401, 403):
            key = f"{self.named.removesuffix('url')}key"
            return LlmError(f"{self.host} does not take this key ({status}); check {key}")
        if 300 <= status < 400:
            return LlmError(f"{self.host} points elsewhere ({status}), which is not followed")
        if status >= 500:
            return Unreachable(f"{self.host} failed ({status}){said}")
        return LlmError(f"{self.host} answered {status} {response.reason}{said}", status=status)


def make_tls_context(trust: str = "") -> ssl.SSLContext:
    """Names are checked, and who vouches for them: those in the file `trust`, else the system's. No
    variable that a repository may have set adds others (SSL_CERT_FILE) or has keys written down
    (SSLKEYLOGFILE)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    built_in = ssl.get_default_verify_paths()
    file = trust or _if_there(built_in.openssl_cafile)
    folder = None if trust else _if_there(built_in.openssl_capath)
    if file or folder:
        context.load_verify_locations(file, folder)
    else:
        context.load_default_certs()
    return context


def _if_there(path: str) -> str | None:
    return path if Path(path).exists() else None


def protocol_error(who: str) -> Malformed:
    return Malformed(f"{who} gave an answer that is not of its protocol", sent=True)


def _retry_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if seconds >= 0 else None  # nor what is not a number


def clean_message(message: str, key: str) -> str:
    """What a server says, on one line and without secrets: some quote what they were sent."""
    if key:
        message = message.replace(key, "…")
    return shorten_text(redact(message), _LONGEST_MESSAGE)


def sendable_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # lone surrogates have no form in JSON


def _decode_object(body: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(body, type=dict[str, Any] | list[dict[str, Any]])
    except msgspec.MsgspecError:
        return None
    if isinstance(found, list):  # Gemini wraps its errors
        return found[0] if found else {}
    return found


def _hang_up(connected: socket.socket) -> None:
    # The plain socket's method: that of an encrypted one changes what another thread reads from.
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _read_body(response: http.client.HTTPResponse, until: float) -> bytes:
    body = response.read(_MOST_BYTES)
    if time.monotonic() > until:
        raise TimeoutError
    if response.length:  # read does not notice by itself that the other end has hung up
        raise http.client.HTTPException("the answer is too long, or ends in the middle")
    return body


class _EmbeddedText(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class HttpEmbedder:
    """A server that speaks OpenAI's `/v1/embeddings`.

    A failure is one ModelError; when to try again is the caller's business.
    """

    def __init__(
        self, url: str, model: str, dims: int, key: str = "", query_seconds: float = _QUERY_SECONDS
    ) -> None:
        self.name, self.dims, self.band = f"http:{model}", dims, (0.0, 1.0)
        self.sha = hashlib.sha256(f"{url}\n{model}\n{dims}".encode()).hexdigest()
        self._model, self._query_seconds = model, query_seconds
        self._np = load_numpy()
        self._server = Server(url, key, "embed.url")

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = self._np.zeros((len(texts), self.dims), self._np.float32)
        for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
            batch = texts[start : start + _EMBEDDED_AT_ONCE]
            rows[start : start + len(batch)] = self._request_vectors(batch, _EMBED_SECONDS)
        return normalise_rows(rows)

    def embed_query(self, text: str) -> Vectors:
        row = self._np.array(self._request_vectors([text], self._query_seconds), self._np.float32)
        vector: Vectors = normalise_rows(row)[0]
        return vector

    def _request_vectors(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        # A server may refuse an empty text; a blank one has no meaning either.
        asked = {"model": self._model, "input": [sendable_text(text) or " " for text in texts]}
        try:
            answer = self._server.post("/embeddings", asked, seconds)
            rows = msgspec.convert(answer.get("data"), list[_EmbeddedText])
        except LlmError as error:
            raise ModelError(f"embeddings: {error}") from None
        except msgspec.ValidationError:
            raise self._model_error("the answer is not a list of embeddings") from None
        found = {at if row.index is None else row.index: row for at, row in enumerate(rows)}
        if sorted(found) != list(range(len(texts))):
            raise self._model_error(f"{len(rows)} vectors came for {len(texts)} texts")
        for row in rows:
            if len(row.embedding) != self.dims:
                raise self._model_error(
                    f"the vectors have {len(row.embedding)} numbers, but embed.dims is "
                    f"{self.dims}; correct it in config.toml"
                )
        return [found[at].embedding for at in range(len(texts))]

    def _model_error(self, reason: str) -> ModelError:
        return ModelError(f"embeddings: {self._server.host}: {reason}")
