"""Secrets that are known by their value, not by their shape: those the user has named once
(`yester redact --secret`), kept out for ever (the file `secrets` of a home), and those that
redaction has found, kept out of the session they were found in (`found-secrets`). Neither file
holds them: of each way to write one (as it is, in JSON, in a URL) it has the length, 16 bits that
say where a look is worth it, and a keyed digest.

What was found in a session is remembered as it is by the process that found it, and nowhere else.

Every place of a text is looked at: a secret may stand behind `-p` or within a word. The 16 bits
come from a sum that rolls over the text, so that a megabyte takes some hundredths of a second.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b, pbkdf2_hmac
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct
from msgspec import json as codec

from yester.errors import ConfigError, UsageError
from yester.files import replace_file
from yester.libraries import load_numpy
from yester.machine import QUIET
from yester.redact import find_all, use_named_secrets

if TYPE_CHECKING:
    import numpy as np

SHORTEST = 6  # characters; what is shorter stands in words and numbers everywhere
_BASE, _WRAP = 0x9E3779B97F4A7C15, 1 << 48
_LOOKED_AT = 32  # bytes
_ROUNDS = 2_000  # a millisecond: little for one look in 65,536, much for who wants to guess
_NAME, _FOUND = "named-secret", "secret-of-session"
_MOST_FOUND, _LONGEST_FOUND = 200, 500  # values of a session; characters of one


def secrets_file(home: Path) -> Path:
    return home / "secrets"


def keep_out_secrets(home: Path) -> bool:
    """From now on `redact` knows those of this home, in all of this process; are there any?"""
    if not secrets_file(home).exists():
        return False
    use_named_secrets(str(home.absolute()), KnownSecrets(home).find)
    return True


class _Named(Struct, frozen=True):
    length: int
    gate: int
    digest: str


class _File(Struct):
    key: str
    named: list[_Named]


class KnownSecrets:
    """Those of a home; none where there is no file."""

    def __init__(self, home: Path) -> None:
        self._path = secrets_file(home)
        self._file = _File("", [])
        if self._path.exists():
            try:
                self._file = codec.decode(self._path.read_bytes(), type=_File)
            except ValueError as error:
                raise ConfigError(
                    f"{self._path} cannot be read ({error}); remove it, and name the secrets "
                    "again: yester redact --secret"
                ) from None

    def __len__(self) -> int:
        return len(self._file.named)

    def add(self, value: str) -> None:
        """Know it from now on. On the disk when this returns."""
        if len(value) < SHORTEST:
            raise UsageError(
                f"a secret of {len(value)} characters stands in too many words; it needs {SHORTEST}"
            )
        key = self._file.key or os.urandom(32).hex()
        forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {quote(value, safe=""), quote(value)}
        new = [_make_named(bytes.fromhex(key), form.encode()) for form in sorted(forms)]
        known = [one for one in self._file.named if one not in new]
        self._file = _File(key, [*known, *new])
        replace_file(self._path, codec.encode(self._file), sync=True)

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Where they stand in a text: (start, end, name), in order, disjoint."""
        if not self._file.named:
            return []
        raw = text.encode("utf-8", "surrogatepass")
        places = _find_bytes(raw, bytes.fromhex(self._file.key), self._file.named)
        return _drop_overlaps(_places_in_text(raw, places, _NAME))


class FoundSecrets:
    """Those that were found in sessions, by a home's file and by this process."""

    def __init__(self, home: Path) -> None:
        self._path = home / "found-secrets"
        self._clear: defaultdict[str, dict[str, str]] = defaultdict(dict)  # value → kind
        self._named: defaultdict[str, list[_Named]] = defaultdict(list)  # by others, before
        self.changed: set[str] = set()  # sessions; what is stored of them may hold what is new
        self._key = b""
        self._read_to = 0

    def of_session(self, session: str) -> SessionSecrets | None:
        return SessionSecrets(self, session) if session else None

    def refresh(self) -> None:
        """What other processes have found."""
        with suppress(FileNotFoundError), open(self._path, "rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read_to += len(line)
                if not self._key:
                    self._key = bytes.fromhex(line.decode())
                    continue
                mark, length, gate, digest = line.decode().split()
                self._named[mark].append(_Named(int(length), int(gate), digest))

    def learn(self, session: str, values: Mapping[str, str]) -> None:
        """They are secrets from now on, in this session."""
        known = self._clear[session]
        new = {
            one: kind for one, kind in values.items()
            if one not in known and len(one) <= _LONGEST_FOUND and "\n" not in one
        }  # fmt: skip
        if not new or len(known) + len(new) > _MOST_FOUND:
            return
        self.refresh()
        if not self._key:
            self._make_file()
        mark = self._mark(session)
        known_already = {one.digest for one in self._named[mark]}
        lines = [
            f"{mark} {one.length} {one.gate} {one.digest}\n"
            for one in (_make_named(self._key, value.encode()) for value in new)
            if one.digest not in known_already
        ]
        with open(self._path, "ab", 0) as file:  # one write: lines of two processes stay whole
            file.write("".join(lines).encode())
        known |= new
        self.changed.add(session)

    def _make_file(self) -> None:
        with suppress(FileExistsError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | QUIET, 0o600)
            os.write(handle, f"{os.urandom(32).hex()}\n".encode())
            os.close(handle)
        self.refresh()

    def _mark(self, session: str) -> str:
        message = session.encode("utf-8", "surrogatepass")
        return blake2b(message, key=self._key, digest_size=16).hexdigest()

    def knows(self, session: str) -> bool:
        """Was anything found in it?"""
        here = self._clear.get(session)
        return bool(here or (self._named and self._named.get(self._mark(session))))

    def find(self, session: str, text: str) -> list[tuple[int, int, str]]:
        places = []
        known = self._clear.get(session)
        for value, kind in known.items() if known else ():
            places += [(at, at + len(value), kind) for at in find_all(text, value)]
        if self._named and (named := self._named.get(self._mark(session))):
            raw = text.encode("utf-8", "surrogatepass")
            places += _places_in_text(raw, _find_bytes(raw, self._key, named), _FOUND)
        return _drop_overlaps(places)


class SessionSecrets:
    """Those of one session, as `redact` asks for them."""

    def __init__(self, found: FoundSecrets, session: str) -> None:
        self._found, self._session = found, session

    def learn(self, values: Mapping[str, str]) -> None:
        self._found.learn(self._session, values)

    def find(self, text: str) -> list[tuple[int, int, str]]:
        return self._found.find(self._session, text)

    def stand_in(self, texts: Iterable[str]) -> bool:
        knows = self._found.knows(self._session)
        return knows and any(self._found.find(self._session, text) for text in texts)


def _find_bytes(raw: bytes, key: bytes, named: Iterable[_Named]) -> Iterator[tuple[int, int]]:
    gates: dict[int, np.ndarray[Any, Any]] = {}  # by length
    for one in named:
        if one.length > len(raw):
            continue
        if one.length not in gates:
            gates[one.length] = _roll_gates(raw, one.length)
        for at in (gates[one.length] == one.gate).nonzero()[0].tolist():
            if _digest(key, raw[at : at + one.length]) == one.digest:
                yield at, at + one.length


def _places_in_text(
    raw: bytes, found: Iterable[tuple[int, int]], kind: str
) -> Iterator[tuple[int, int, str]]:
    """Places in bytes as places in the text they are of."""
    for start, end in found:
        begin = len(raw[:start].decode("utf-8", "surrogatepass"))
        yield begin, begin + len(raw[start:end].decode("utf-8", "surrogatepass")), kind


def _drop_overlaps(places: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order and disjoint."""
    kept: list[tuple[int, int, str]] = []
    for one in sorted(set(places)):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _make_named(key: bytes, raw: bytes) -> _Named:
    return _Named(len(raw), _gate_of(raw), _digest(key, raw))


def _gate_of(raw: bytes) -> int:
    """What `_roll_gates` says of a text as long as the secret, without loading what it needs."""
    size = min(len(raw), _LOOKED_AT)
    powers = [pow(_BASE, at, _WRAP) for at in reversed(range(size))]
    first, last = (
        sum(byte * power for byte, power in zip(part, powers, strict=True))
        for part in (raw[:size], raw[-size:])
    )
    return first * 3 + last >> 24 & 0xFFFF


def _digest(key: bytes, raw: bytes) -> str:
    return pbkdf2_hmac("sha256", raw, key, _ROUNDS).hex()


def _roll_gates(raw: bytes, length: int) -> Any:
    """16 bits for each place at which so many bytes begin, made of the first and the last of them;
    the same for the same bytes."""
    np = load_numpy()
    powers = np.array([pow(_BASE, at, _WRAP) for at in range(min(length, _LOOKED_AT))])
    sums = np.convolve(np.frombuffer(raw, np.uint8).astype(np.int64), powers, "valid")
    both = sums[: len(raw) - length + 1] * 3 + sums[length - len(powers) :]
    return both >> 24 & 0xFFFF
