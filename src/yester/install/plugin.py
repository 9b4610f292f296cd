"""The plugin's files, and the copy of them in yester's home that agents load.

A copy, because the package can move (another Python, another way of installing) and is taken away
before it is replaced, while sessions go on calling their hooks: `python3` ends with 2 where a
script is missing, and to Claude Code a 2 forbids what was to be done. In the copy a file is always
there, the old one or the new one.
"""

from __future__ import annotations

import os
import shutil
import site
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import yester
from yester.errors import InstallError

_MANIFEST = ".claude-plugin/plugin.json"
_SERVERS = ".mcp.json"


@dataclass(frozen=True, slots=True)
class Change:
    """A line of what is to be done, or has been."""

    sign: str  # + comes, ~ becomes another, - goes
    path: Path
    target: Path | None = None  # of a link

    def line(self) -> str:
        return f"{self.sign} {self.path}" + (f" -> {self.target}" if self.target else "")


def copy_of(home: Path) -> Path:
    return home / "plugin"


def packaged() -> Path:
    """Where the plugin's files came with yester: in the package, or beside a checkout's source."""
    package = Path(yester.__file__).parent
    for folder in (package / "plugin", package.parent.parent / "plugin"):
        if (folder / _MANIFEST).is_file():
            return folder
    raise InstallError(f"{package} has no plugin folder; install yester again")


def wanted(source: Path, python: str) -> dict[str, bytes]:
    """Every file of the copy. An agent's PATH need not have `yester`, so the copy names our
    interpreter."""
    found = {
        str(path.relative_to(source)): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    if _SERVERS in found:
        found[_SERVERS] = _servers(found[_SERVERS], python)
    return found


def _servers(text: bytes, python: str) -> bytes:
    told: dict[str, Any] = msgspec.json.decode(text)
    for server in told.get("mcpServers", {}).values():
        if server.get("command") == "yester":
            server["command"] = python
            server["args"] = [_alone(), "-m", "yester", *server.get("args", [])]
    return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"


def _alone() -> str:
    """The flag that keeps out what a repository's variables name: PYTHONPATH, or HOME, below which
    a user's own packages lie. Where yester is one of those they must stay in reach."""
    own = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return "-EP" if own and Path(yester.__file__).is_relative_to(own) else "-I"


def changes(home: Path, files: Mapping[str, bytes]) -> list[Change]:
    """What `place` would do."""
    folder = copy_of(home)
    there = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not path.is_dir() and "__pycache__" not in path.parts
    }
    found = []
    for name, data in files.items():
        if name not in there:
            found.append(Change("+", folder / name))
        elif (folder / name).read_bytes() != data:
            found.append(Change("~", folder / name))
    return found + [Change("-", folder / name) for name in sorted(there - files.keys())]


def place(home: Path, files: Mapping[str, bytes]) -> list[Change]:
    """Make the copy what it should be; what was done."""
    found = changes(home, files)
    for change in found:
        if change.sign == "-":
            change.path.unlink()
        else:
            _write(change.path, files[str(change.path.relative_to(copy_of(home)))], home)
    # Byte code of the hooks lands here: a folder that an interpreter makes would be open to others.
    (copy_of(home) / "hooks" / "__pycache__").mkdir(mode=0o700, exist_ok=True)
    return found


def refresh(home: Path, python: str) -> list[Change]:
    """The same where an agent uses the copy: yester has been replaced by another version."""
    if not (copy_of(home) / _MANIFEST).exists():
        return []
    return place(home, wanted(packaged(), python))


def remove(home: Path) -> None:
    shutil.rmtree(copy_of(home), ignore_errors=True)


def _write(path: Path, data: bytes, home: Path) -> None:
    """All of it or nothing, also after a power cut."""
    for folder in reversed([one for one in path.parents if one.is_relative_to(home)]):
        folder.mkdir(mode=0o700, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(new, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
