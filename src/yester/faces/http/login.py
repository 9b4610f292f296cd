"""Where the server is, and who may ask: the token of the home, bearers that a browser gets for a
one-time code, and grants that let its tabs come back.

    token        in yester's home, 0600, made when first wanted; for programs of this user
    run/port     where the server says it is; whoever reads it looks at the server's seat as well
    run/codes/   a file per code, named by its hash: `yester ui` makes it, whoever brings the code
                 first removes it, and the removing is what counts; good for a minute. It holds who
                 made it: the user, or an agent in whose shell `yester ui` was run
    bearer       kept in this process alone, so that it ends with it, or after some hours unused
    run/grants/  a file per tab that may come back: its secret hashed, whose word it is, which
                 browser; good for 30 days, and less where the file is removed

A grant is `NAME.SECRET`. A tab sends its name first, with a random nonce, and the secret only after
the server has shown that it knows the grant: an HMAC with the hash as its key, over the address and
the nonce. The address is part of it, so that a program which has taken the port cannot ask a server
elsewhere for the answer. After that the grant is worth a new bearer.

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
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from yester.clock import DAY
from yester.files import open_file, replace_file
from yester.machine import is_own, user_number

ADDRESS = "127.0.0.1"
_TOKEN_BYTES = 32
_CODE_SECONDS = 60.0
BEARER_SECONDS = 12 * 3600
_MOST_BEARERS = 100
GRANT_DAYS = 30
_MOST_GRANTS = 200
_GRANT_NAME = 24  # characters
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
    closed = not stat.S_IMODE(about.st_mode) & 0o077 and is_own(about)
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


# --- grants ---------------------------------------------------------------------------------------


class Grant(Struct, kw_only=True):
    """What is kept of one: a file in `run/grants`. Times are milliseconds."""

    hash: str
    origin: str
    browser: str
    created: int


class GrantUse(Struct, kw_only=True):
    """A grant as it is listed."""

    name: str
    origin: str
    browser: str
    created: int
    used: int
    expires: int


class Grants:
    """Those of a home. Everything stands in the files, so any process may list and remove them."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = home / "run" / "grants", now

    def create(self, origin: str, browser: str) -> str:
        """`NAME.SECRET`; the secret is written down nowhere."""
        known = self.list_grants()
        for old in known[_MOST_GRANTS - 1 :]:
            self.remove(old.name)
        name, secret = secrets.token_hex(_GRANT_NAME // 2), secrets.token_urlsafe(_TOKEN_BYTES)
        key, now = _hash_code(secret), int(self._now() * 1000)
        grant = Grant(hash=key, origin=origin, browser=browser, created=now)
        replace_file(self._folder / name, msgspec.json.encode(grant).decode())
        return f"{name}.{secret}"

    def find(self, name: str) -> Grant | None:
        """The grant of this name, if it is still good."""
        if len(name) != _GRANT_NAME or not name.isalnum():
            return None  # a name of ours is hexadecimal: it leads into no other folder
        try:
            grant = msgspec.json.decode((self._folder / name).read_bytes(), type=Grant)
        except (OSError, msgspec.DecodeError):
            return None
        if 0 <= self._now() * 1000 - grant.created <= GRANT_DAYS * DAY:
            return grant
        self.remove(name)
        return None

    def prove(self, name: str, address: str, nonce: str) -> str:
        """What only who knows this grant can answer; "" where it is not known."""
        grant = self.find(name)
        if grant is None:
            return ""
        words = f"{address}\n{nonce}".encode()
        return hmac.new(bytes.fromhex(grant.hash), words, hashlib.sha256).hexdigest()

    def find_origin(self, given: str) -> str:
        """Whose word it is that comes with the whole grant; "" where it is wrong."""
        name, _, secret = given.partition(".")
        grant = self.find(name)
        if grant is None or not hmac.compare_digest(grant.hash, _hash_code(secret)):
            return ""
        with suppress(OSError):
            os.utime(self._folder / name, (self._now(),) * 2)
        return USER if grant.origin == USER else PROGRAM

    def remove(self, name: str) -> bool:
        try:
            (self._folder / name).unlink()
        except OSError:
            return False
        return True

    def list_grants(self) -> list[GrantUse]:
        """Those that are still good, the last used first; the others are removed."""
        return sorted(self._walk(), key=lambda one: -one.used)

    def _walk(self) -> Iterator[GrantUse]:
        with suppress(OSError):
            for path in self._folder.iterdir():
                if (grant := self.find(path.name)) is not None:
                    yield GrantUse(
                        name=path.name, origin=grant.origin, browser=grant.browser,
                        created=grant.created, used=int(path.stat().st_mtime * 1000),
                        expires=grant.created + GRANT_DAYS * DAY,
                    )  # fmt: skip


# --- bearers --------------------------------------------------------------------------------------


class Keys:
    """What opens the door: the token, and the bearers given out. A bearer that came of a grant ends
    with it."""

    def __init__(
        self, token: str, grants: Grants, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._token = token.encode()
        self.grants, self._clock = grants, clock
        self._lock = threading.Lock()
        # hash → last used, origin, grant
        self._bearers: dict[bytes, tuple[float, str, str]] = {}

    def issue_bearer(self, origin: str = USER, grant: str = "") -> str:
        bearer = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            if len(self._bearers) >= _MOST_BEARERS:
                del self._bearers[min(self._bearers, key=lambda one: self._bearers[one])]
            self._bearers[_hash_bearer(bearer.encode())] = (self._clock(), origin, grant)
        return bearer

    def find_origin(self, given: bytes) -> str:
        """Whose word it is that comes with it; "" where it is wrong."""
        if hmac.compare_digest(given, self._token):
            return PROGRAM
        key = _hash_bearer(given)  # looked up by its hash, so that time tells nothing of it
        with self._lock:
            used, origin, grant = self._bearers.get(key, (0.0, "", ""))
            now = self._clock()
            revoked = grant and self.grants.find(grant) is None
            if origin and (revoked or now - used > BEARER_SECONDS):
                del self._bearers[key]
                return ""
            if origin:
                self._bearers[key] = (now, origin, grant)
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
                    return words[7].isdigit() and int(words[7]) != user_number()
    except (OSError, ValueError):
        pass
    return False
