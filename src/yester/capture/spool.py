"""The spool's reading side. A maildir: hooks write `tmp/N` and rename it to `new/N`; N is the
event's id, and its first number the time. The worker unlinks a file after the store's commit.

    first line    yester/1 TAB EVENT TAB name=value …    what the hook knew: cwd, the client's hints
    the rest      the client's payload, byte for byte

A file of a newer format stays where it is, for a newer worker. One that cannot be understood is
moved to `bad/`, never deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from yester.capture import ask
from yester.files import open_file

FORMAT = 1
ENDED_WORKER = "has ended the worker twice"  # why something was set aside
_LONGEST_HEAD = 4096  # bytes that are read of it where the name of the event is wanted
_ABANDONED = 3600.0  # seconds after which a file in tmp/ has no hook any more


class NewerFormat(Exception):
    """Written by a hook that knows more than this yester."""


class Spooled(Struct, frozen=True):
    id: str
    event: str
    cwd: str
    hints: Mapping[str, str]  # variables of the hook's environment, from a closed list
    payload: bytes

    @property
    def epoch(self) -> int:
        """When the hook began, in milliseconds."""
        return moment(self.id)

    @property
    def off(self) -> bool:
        return self.hints.get("off") == "1"


def moment(name: str) -> int:
    number = name.split("-", 1)[0]
    return int(number) // 1_000_000 if number.isascii() and number.isdigit() else 0


class Spool:
    """The spools of one home: its own, and the second place hooks use when its disk is full.
    Version 0.1 had one such place for all homes: what is left there the usual home takes in."""

    def __init__(self, home: Path, runtime: Path | None = None, usual: bool = False) -> None:
        self.folders = [home / "spool"]
        if runtime is not None:
            second = ask.second_place(os.fsencode(runtime), os.fsencode(home))
            self.folders.append(Path(os.fsdecode(second)) / "spool")
            if usual:
                self.folders.append(runtime / "yester" / "spool")

    def make(self) -> None:
        """Where that cannot be done hooks use the second place."""
        with suppress(OSError):
            self.folders[0].mkdir(mode=0o700, exist_ok=True)
            for name in ("tmp", "new", "bad"):
                (self.folders[0] / name).mkdir(mode=0o700, exist_ok=True)

    def waiting(self) -> list[Path]:
        """What has been acknowledged and not been taken in, by time."""
        found: list[tuple[str, Path]] = []
        for folder in self.folders:
            try:
                found += [(entry.name, Path(entry.path)) for entry in os.scandir(folder / "new")]
            except OSError:
                continue
        return [path for _, path in sorted(found)]

    def find(self, name: str) -> Path | None:
        for folder in self.folders:
            path = folder / "new" / name
            if "/" not in name and path.exists():
                return path
        return None

    def bad(self) -> list[Path]:
        return sorted(path for folder in self.folders for path in folder.glob("bad/*"))

    def set_aside(self, path: Path, why: str = "", transcript: Path | None = None) -> None:
        """`transcript`: the fault is not the event's but that of what was to be read after it."""
        folder = path.parent.parent / "bad"
        folder.mkdir(mode=0o700, exist_ok=True)
        path.rename(folder / path.name)
        with suppress(OSError):  # no room: the file itself is kept
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with os.fdopen(os.open(_reasons(folder), flags, 0o600), "a", encoding="utf-8") as file:
                cause = f"\t{_in_one_line(transcript)}" if transcript else ""
                file.write(f"{path.name}\t{why}{cause}\n")

    def put_back(self, transcript: Path | None = None) -> list[Path]:
        """What has ended the worker may be tried again, all of it or what was set aside because of
        this transcript; the files that were."""
        reasons = self.why_bad()
        back = []
        for path in self.bad() if reasons else ():
            why, _, named = reasons.get(path.name, "").partition("\t")
            if ENDED_WORKER in why and (not transcript or named == _in_one_line(transcript)):
                with suppress(OSError):  # it is kept where it is
                    path.rename(path.parent.parent / "new" / path.name)
                    back.append(path)
        return back

    def why_bad(self) -> dict[str, str]:
        """Why each file was set aside, by its name, as far as that is known; behind a tab the
        transcript that was the cause."""
        found: dict[str, str] = {}
        for folder in self.folders:
            with suppress(OSError), open_file(_reasons(folder / "bad")) as file:
                lines = file.read().decode("utf-8", "replace").splitlines()
                found |= dict(line.split("\t", 1) for line in lines if "\t" in line)
        return found

    def sweep(self, now: float) -> None:
        """Remove what hooks that were killed left half written: it was never acknowledged."""
        for folder in self.folders:
            for path in folder.glob("tmp/*"):
                with suppress(OSError):  # its hook has finished it meanwhile
                    if now - path.stat().st_mtime > _ABANDONED:
                        path.unlink()


def _in_one_line(path: Path) -> str:
    """For `reasons`; what is no UTF-8 or would end a line is replaced."""
    return " ".join(str(path).encode("utf-8", "replace").decode().splitlines())


def _reasons(bad: Path) -> Path:
    return bad.with_name("reasons")


def read(path: Path) -> Spooled:
    """Raises FileNotFoundError (taken by another), NewerFormat, ValueError (not a spool file)."""
    with open_file(path) as file:
        head, _, payload = file.read().partition(b"\n")
    words = head.decode("utf-8", "replace").split("\t")
    name, _, number = words[0].partition("/")
    if name != "yester" or not number.isdigit() or len(words) < 2:
        raise ValueError("no envelope")
    if int(number) > FORMAT:
        raise NewerFormat(words[0])
    hints = dict(_pairs(words[2:]))
    return Spooled(path.name, words[1], hints.pop("cwd", ""), hints, payload)


def is_newer(path: Path) -> bool:
    """Of a newer format? Told by its first bytes: the payload may be larger than memory."""
    try:
        with open_file(path) as file:
            name, _, number = file.readline(_LONGEST_HEAD).split(b"\t", 1)[0].partition(b"/")
    except OSError:
        return False
    return name == b"yester" and number.isdigit() and int(number) > FORMAT


def event_of(path: Path) -> str:
    """The event's name, without reading a payload that may be large; "" where it has none."""
    try:
        with open(path, "rb") as file:
            words = file.readline(_LONGEST_HEAD).split(b"\t", 2)
    except OSError:
        return ""
    return words[1].strip().decode("utf-8", "replace") if len(words) > 1 else ""


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, _, value = word.partition("=")
        yield name, value


def acknowledge(path: Path) -> None:
    path.unlink(missing_ok=True)


def age(path: Path, now: float) -> float:
    """Seconds since the hook began; never negative, clocks are set back."""
    return max(0.0, now - moment(path.name) / 1000)


def trusted_runtime(environ: Mapping[str, str], uid: int) -> Path | None:
    """$XDG_RUNTIME_DIR where it is this user's alone, else the usual place of it."""
    for text in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"):
        try:
            found = Path(text).stat() if text else None
        except OSError:
            continue
        if found and found.st_uid == uid and not found.st_mode & 0o077:
            return Path(text)
    return None
