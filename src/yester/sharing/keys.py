"""The key of a log, its recovery code, and the box that a segment is: all by PyNaCl (libsodium)."""

from __future__ import annotations

import os
from base64 import b32decode, b32encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from yester.errors import ConfigError, UsageError
from yester.files import read_bytes, replace_file

SIZE = 32  # bytes
NONCE = 24
_CHECKSUM = 4  # letters of 5 bits
_GROUP = 4
_LETTERS = 52 + _CHECKSUM


class Key:
    """32 random bytes. Its code is those in base32, in groups, with a checksum."""

    def __init__(self, raw: bytes) -> None:
        assert len(raw) == SIZE
        self.raw = raw

    @classmethod
    def make(cls) -> Key:
        return cls(os.urandom(SIZE))

    @classmethod
    def from_code(cls, code: str) -> Key:
        """UsageError says what is wrong with it, and never repeats it."""
        letters = "".join(code.split()).replace("-", "").upper()
        # What base32 does not have is what these are taken for.
        letters = letters.translate(str.maketrans("018", "OIB"))
        if len(letters) != _LETTERS:
            raise UsageError(
                f"the recovery code has {len(letters)} letters and should have {_LETTERS}"
            )
        try:
            raw = b32decode(letters[:-_CHECKSUM] + "====")
        except ValueError:
            raise UsageError("the recovery code has a sign that is none of A-Z and 2-7") from None
        if _checksum(raw) != letters[-_CHECKSUM:]:
            raise UsageError("the recovery code has a mistake: its last group does not fit")
        return cls(raw)

    @property
    def code(self) -> str:
        letters = b32encode(self.raw).decode().rstrip("=") + _checksum(self.raw)
        return "-".join(letters[at : at + _GROUP] for at in range(0, _LETTERS, _GROUP))

    @property
    def id(self) -> str:
        """Tells keys apart, and says nothing about them."""
        return sha256(b"yester: which key\n" + self.raw).hexdigest()[:16]

    def seal(self, data: bytes, about: bytes) -> tuple[bytes, bytes]:
        """A nonce and the box. `about` is not in it, but it opens with the same alone."""
        nonce = os.urandom(NONCE)
        seal = load_sodium().crypto_aead_xchacha20poly1305_ietf_encrypt
        return nonce, seal(data, about, nonce, self.raw)

    def open(self, box: bytes, about: bytes, nonce: bytes) -> bytes | None:
        """None: it was made with another key, or a bit of it or of `about` is another one."""
        from nacl.exceptions import CryptoError

        try:
            unseal = load_sodium().crypto_aead_xchacha20poly1305_ietf_decrypt
            return bytes(unseal(box, about, nonce, self.raw))
        except CryptoError:
            return None


def _checksum(raw: bytes) -> str:
    digest = sha256(b"yester: checksum of a recovery code\n" + raw).digest()
    return b32encode(digest[:5]).decode()[:_CHECKSUM]


def load_sodium() -> Any:
    """ConfigError where the extra is not installed."""
    try:
        import nacl.bindings
    except ImportError:
        raise ConfigError("roaming needs PyNaCl; install it: pip install 'yester[roam]'") from None
    return nacl.bindings


def key_file(home: Path) -> Path:
    return home / "roam.key"


def load_key(home: Path, path: Path | None = None) -> Key:
    path = path or key_file(home)
    try:
        return Key.from_code(read_bytes(path).decode("ascii", "replace"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}); yester roam --join URL"
        ) from None


def save_key(home: Path, key: Key) -> None:
    replace_file(key_file(home), f"{key.code}\n", sync=True)
