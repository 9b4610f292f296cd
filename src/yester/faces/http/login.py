"""Where the server is, and who may ask: the token of the home, and bearers that a browser gets for
a one-time code.

    token        in yester's home, 0600, made when first wanted; for programs of this user
    run/port     where the server says it is; whoever reads it looks at the server's seat as well
    run/codes/   a file per code, named by its hash: `yester ui` makes it, whoever brings the code
                 first removes it, and the removing is what counts; good for a minute. It holds who
                 made it: the user, or an agent in whose shell `yester ui` was run
    bearer       kept in this process alone, so that it ends with it, or after some hours unused

Who has the token is a program ("agent"): whatever it writes is no word of the user. That keeps an
agent from passing its opinion off as the user's; it is no wall against a program that runs as the
user and means harm, which could write into the store itself.

No cookie is ever set: cookies ignore ports, and every program on this machine has one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from yester.files import open_file, replace_file

_TOKEN_BYTES = 32
_CODE_SECONDS = 60.0
BEARER_SECONDS = 12 * 3600
_MOST_BEARERS = 100
PROGRAM, USER = "agent", "user"  # origins of what is written


def load_token(home: Path) -> str:
    """The token of this home; a new one where there is none, or others could have read it."""
    path = home / "token"
    for _ in range(3):
        found = _read_token(path)
        if found:
            return found
        path.unlink(missing_ok=True)
        new = home / f"token.{os.getpid()}.{secrets.token_hex(4)}"
        replace_file(new, secrets.token_urlsafe(_TOKEN_BYTES) + "\n", sync=True)
        try:
            with suppress(FileExistsError):  # somebody was faster: theirs counts
                os.link(new, path)
        finally:
            new.unlink()
    raise OSError(f"{path} cannot be made")


def _read_token(path: Path) -> str:
    try:
        with open_file(path, follow=False) as file:
            about = os.fstat(file.fileno())
            text = file.read(200).decode("ascii", "replace").strip()
    except OSError:
        return ""
    closed = not stat.S_IMODE(about.st_mode) & 0o077 and about.st_uid == os.getuid()
    return text if closed and len(text) >= _TOKEN_BYTES else ""


def read_port(run: Path) -> int:
    """The port, or 0."""
    try:
        text = (run / "port").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdigit() else 0


# --- one-time codes -------------------------------------------------------------------------------


def new_code(home: Path, origin: str = USER) -> str:
    """A code for a browser; whoever knows the folder's files may ask anyway. `origin` is that of
    what will be written with it."""
    code = secrets.token_urlsafe(_TOKEN_BYTES)
    replace_file(home / "run" / "codes" / _hash_code(code), origin)
    return code


def take_code(home: Path, code: str, now: float) -> str:
    """The origin of a code that is one of ours, still good, and brought for the first time; else
    ""."""
    folder = home / "run" / "codes"
    _remove_old_codes(folder, now)
    path = folder / _hash_code(code)
    try:
        said = path.read_bytes()
        path.unlink()
    except OSError:
        return ""
    return USER if said == USER.encode() else PROGRAM


def _remove_old_codes(folder: Path, now: float) -> None:
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                if not 0 <= now - path.stat().st_mtime + 1 <= _CODE_SECONDS:
                    path.unlink()


def _hash_code(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()


# --- bearers --------------------------------------------------------------------------------------


class Keys:
    """What opens the door: the token, and the bearers given out."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token.encode()
        self._clock = clock
        self._lock = threading.Lock()
        self._bearers: dict[bytes, tuple[float, str]] = {}  # hash → last used, origin

    def issue_bearer(self, origin: str = USER) -> str:
        bearer = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            if len(self._bearers) >= _MOST_BEARERS:
                del self._bearers[min(self._bearers, key=lambda one: self._bearers[one])]
            self._bearers[_hash_bearer(bearer.encode())] = (self._clock(), origin)
        return bearer

    def find_origin(self, given: bytes) -> str:
        """Whose word it is that comes with it; "" where it is wrong."""
        if hmac.compare_digest(given, self._token):
            return PROGRAM
        key = _hash_bearer(given)  # looked up by its hash, so that time tells nothing of it
        with self._lock:
            used, origin = self._bearers.get(key, (0.0, ""))
            now = self._clock()
            if origin and now - used > BEARER_SECONDS:
                del self._bearers[key]
                return ""
            if origin:
                self._bearers[key] = (now, origin)
        return origin


def _hash_bearer(bearer: bytes) -> bytes:
    return hashlib.sha256(bearer).digest()


# --- who is at the other end ----------------------------------------------------------------------


def is_another_user(client: tuple[str, int] | None, table: Path = Path("/proc/net/tcp")) -> bool:
    """Does the other end of a loopback connection belong to another user of this machine? A link
    can be seen in the list of processes. Where the system does not tell, it is not known."""
    if client is None or ":" in client[0]:
        return False
    address = "".join(f"{int(part):02X}" for part in reversed(client[0].split(".")))
    wanted = f"{address}:{client[1]:04X}"
    try:
        with open(table, encoding="ascii") as file:
            for line in file:
                words = line.split()
                if len(words) > 7 and words[1] == wanted:
                    return words[7].isdigit() and int(words[7]) != os.getuid()
    except (OSError, ValueError):
        pass
    return False
