"""The spool's reading side. A maildir: hooks write `tmp/N` and rename it to `new/N`; N is the
event's id, and its first number the time. The worker unlinks a file after the store's commit.

    first line    yester/1 TAB EVENT TAB name=value …    what the hook knew: cwd, the client's hints
    the rest      the client's payload, byte for byte

A file of a newer format stays where it is, for a newer worker. One that cannot be understood is
moved to `bad/`, without its secrets, for 30 days.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from yester.capture import ask
from yester.capture.homes import is_usual
from yester.files import append_text, open_file, read_bytes, replace_file
from yester.machine import user_number

FORMAT = 1
ENDED_WORKER = "has ended the worker twice"  # why something was set aside
_HEAD = re.compile(rb"yester/(?P<form>\d{1,9})\t(?P<event>[^\t\n]*)")
_LONGEST_HEAD = 4096  # bytes that are read of it where the name of the event is wanted
_ABANDONED = 3600.0  # seconds after which a file in tmp/ has no hook any more
_SET_ASIDE = 30 * 86_400.0  # seconds for which what cannot be taken in is kept
LARGEST = 1 << 28  # bytes


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
        return event_time(self.id)


def event_time(name: str) -> int:
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

    def make_folders(self) -> None:
        """Where that cannot be done hooks use the second place."""
        with suppress(OSError):
            for name in ("", "tmp", "new", "bad"):
                (self.folders[0] / name).mkdir(mode=0o700, exist_ok=True)

    def list_waiting(self) -> list[Path]:
        """What has been acknowledged and not been taken in, by time."""
        found: list[tuple[str, Path]] = []
        for folder in self.folders:
            try:
                found += [(entry.name, Path(entry.path)) for entry in os.scandir(folder / "new")]
            except OSError:
                continue
        return [path for _, path in sorted(found)]

    def find_event(self, name: str) -> Path | None:
        for folder in self.folders:
            path = folder / "new" / name
            if "/" not in name and path.exists():
                return path
        return None

    def list_bad(self) -> list[Path]:
        return sorted(path for folder in self.folders for path in folder.glob("bad/*"))

    def set_aside(self, path: Path, why: str = "", transcript: Path | None = None) -> None:
        """`transcript`: the fault is not the event's but that of what was to be read after it."""
        if ENDED_WORKER not in why:  # which is tried again as it is, and may end who looks at it
            redact_file(path)
        folder = path.parent.parent / "bad"
        folder.mkdir(mode=0o700, exist_ok=True)
        path.rename(folder / path.name)
        with suppress(OSError):  # no room: the file itself is kept
            cause = f"\t{_in_one_line(transcript)}" if transcript else ""
            append_text(_reasons_file(folder), f"{path.name}\t{why}{cause}\n")

    def put_back(self, transcript: Path | None = None) -> list[Path]:
        """What has ended the worker may be tried again, all of it or what was set aside because of
        this transcript; the files that were."""
        reasons = self.load_reasons()
        back = []
        for path in self.list_bad() if reasons else ():
            why, _, named = reasons.get(path.name, "").partition("\t")
            if ENDED_WORKER in why and (not transcript or named == _in_one_line(transcript)):
                with suppress(OSError):  # it is kept where it is
                    path.rename(path.parent.parent / "new" / path.name)
                    back.append(path)
        return back

    def load_reasons(self) -> dict[str, str]:
        """Why each file was set aside, by its name, as far as that is known; behind a tab the
        transcript that was the cause."""
        found: dict[str, str] = {}
        for folder in self.folders:
            with suppress(OSError), open_file(_reasons_file(folder / "bad")) as file:
                lines = file.read().decode("utf-8", "replace").splitlines()
                found |= dict(line.split("\t", 1) for line in lines if "\t" in line)
        return found

    def remove_abandoned(self, now: float) -> None:
        """Remove what hooks that were killed left half written, which was never acknowledged; and
        what was set aside long ago."""
        for folder in self.folders:
            for pattern, seconds in (("tmp/*", _ABANDONED), ("bad/*", _SET_ASIDE)):
                for path in folder.glob(pattern):
                    with suppress(OSError):  # its hook has finished it meanwhile
                        if now - path.stat().st_mtime > seconds:
                            path.unlink()


def _in_one_line(path: Path) -> str:
    """For `reasons`; what is no UTF-8 or would end a line is replaced."""
    return " ".join(str(path).encode("utf-8", "replace").decode().splitlines())


def _reasons_file(bad: Path) -> Path:
    return bad.with_name("reasons")


def redact_file(path: Path) -> None:
    """A file of a spool without its secrets, in one step."""
    from yester.redact import redact

    with suppress(OSError):
        text = read_bytes(path, LARGEST).decode("utf-8", "surrogateescape")
        if (clean := redact(text)) != text:
            part = path.parent.parent / "tmp" / path.name  # what stands in `new` is an event
            replace_file(part, clean.encode("utf-8", "surrogateescape"))
            part.replace(path)


def read_event(path: Path) -> Spooled:
    """Raises FileNotFoundError (taken by another), NewerFormat, ValueError (not a spool file)."""
    with open_file(path) as file:
        head, _, payload = file.read().partition(b"\n")
    found = _HEAD.match(head)
    if found is None:
        raise ValueError("no envelope")
    if int(found["form"]) > FORMAT:
        raise NewerFormat(found[0].decode())
    words = head[found.end() :].decode("utf-8", "replace").split("\t")
    hints = {name: value for name, _, value in (word.partition("=") for word in words[1:])}
    event = found["event"].decode("utf-8", "replace")
    return Spooled(path.name, event, hints.pop("cwd", ""), hints, payload)


def peek_event(path: Path) -> tuple[int, str]:
    """Its format and name, without reading a payload that may be larger than memory; 0 and ""
    where it has none."""
    try:
        with open_file(path) as file:
            found = _HEAD.match(file.readline(_LONGEST_HEAD))
    except OSError:
        found = None
    return (int(found["form"]), found["event"].decode("utf-8", "replace")) if found else (0, "")


def event_age(path: Path, now: float) -> float:
    """Seconds since the hook began; never negative, clocks are set back."""
    return max(0.0, now - event_time(path.name) / 1000)


def open_spool(home: Path, environ: Mapping[str, str]) -> Spool:
    """The spools of a home, wherever its hooks may have found room."""
    return Spool(home, trusted_runtime(environ), is_usual(home, environ))


def trusted_runtime(environ: Mapping[str, str]) -> Path | None:
    """$XDG_RUNTIME_DIR where it is this user's alone, else the usual place of it."""
    for text in (environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user_number()}"):
        if not ask.explain_refusal(os.fsencode(text), set()):
            return Path(text)
    return None
