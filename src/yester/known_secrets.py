"""Secrets that the user has named once (`yester redact --secret`), kept out for ever: the file
`secrets` of a home. It does not hold them: of each way to write one (as it is, in JSON, in a URL)
it has the length, 16 bits that say where a look is worth it, and a keyed digest.

Every place of a text is looked at: a secret may stand behind `-p` or within a word. The 16 bits
come from a sum that rolls over the text, so that a megabyte takes some hundredths of a second.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct
from msgspec import json as codec

from yester.errors import ConfigError, UsageError
from yester.files import replace_file
from yester.redact import use_named_secrets

if TYPE_CHECKING:
    import numpy as np

SHORTEST = 6  # characters; what is shorter stands in words and numbers everywhere
_BASE, _WRAP = 0x9E3779B97F4A7C15, 1 << 48
_LOOKED_AT = 32  # bytes
_ROUNDS = 2_000  # a millisecond: little for one look in 65,536, much for who wants to guess
_NAME = "named-secret"


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
        found = sorted(set(self._find_bytes(raw)))
        places: list[tuple[int, int, str]] = []
        for start, end in found:
            begin = len(raw[:start].decode("utf-8", "surrogatepass"))
            finish = begin + len(raw[start:end].decode("utf-8", "surrogatepass"))
            if not places or begin >= places[-1][1]:
                places.append((begin, finish, _NAME))
        return places

    def _find_bytes(self, raw: bytes) -> Iterator[tuple[int, int]]:
        key = bytes.fromhex(self._file.key)
        gates: dict[int, np.ndarray[Any, Any]] = {}  # by length
        for one in self._file.named:
            if one.length > len(raw):
                continue
            if one.length not in gates:
                gates[one.length] = _roll_gates(raw, one.length)
            for at in (gates[one.length] == one.gate).nonzero()[0].tolist():
                if _digest(key, raw[at : at + one.length]) == one.digest:
                    yield at, at + one.length


def _make_named(key: bytes, raw: bytes) -> _Named:
    return _Named(len(raw), int(_roll_gates(raw, len(raw))[0]), _digest(key, raw))


def _digest(key: bytes, raw: bytes) -> str:
    return pbkdf2_hmac("sha256", raw, key, _ROUNDS).hex()


def _roll_gates(raw: bytes, length: int) -> np.ndarray[Any, Any]:
    """16 bits for each place at which so many bytes begin, made of the first and the last of them;
    the same for the same bytes."""
    import numpy as np

    powers = np.array([pow(_BASE, at, _WRAP) for at in range(min(length, _LOOKED_AT))])
    sums = np.convolve(np.frombuffer(raw, np.uint8).astype(np.int64), powers, "valid")
    both = sums[: len(raw) - length + 1] * 3 + sums[length - len(powers) :]
    return both >> 24 & 0xFFFF
