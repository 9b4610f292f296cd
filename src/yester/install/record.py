"""installed.json in yester's home: where yester has been installed, and which folders it made for
that, so that nothing is left of it afterwards."""

from __future__ import annotations

from pathlib import Path

import msgspec

from yester.capture.rules import replace_file
from yester.errors import InstallError


class Installed(msgspec.Struct, frozen=True):
    agent: str
    folder: str  # the agent's own
    made: tuple[str, ...] = ()  # outermost first


def _path(home: Path) -> Path:
    return home / "installed.json"


def read(home: Path) -> list[Installed]:
    try:
        return msgspec.json.decode(_path(home).read_bytes(), type=list[Installed])
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InstallError(
            f"{_path(home)} cannot be understood ({error}); "
            "delete it, and `yester install` writes it anew"
        ) from None


def add(home: Path, one: Installed) -> None:
    """Folders made before stay ours: the second time they are there already."""
    known = read(home)
    for old in known:
        if (old.agent, old.folder) == (one.agent, one.folder):
            made = dict.fromkeys((*old.made, *one.made))
            one = Installed(one.agent, one.folder, tuple(made))
    _write(home, [*_without(known, one.agent, one.folder), one])


def drop(home: Path, agent: str, folder: str) -> None:
    known = read(home)
    left = _without(known, agent, folder)
    if not left:
        _path(home).unlink(missing_ok=True)
    elif left != known:
        _write(home, left)


def _without(known: list[Installed], agent: str, folder: str) -> list[Installed]:
    return [one for one in known if (one.agent, one.folder) != (agent, folder)]


def _write(home: Path, rows: list[Installed]) -> None:
    text = msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()
    replace_file(_path(home), text + "\n")
