"""yester in Claude Code: a link in its skills folder to a copy of the plugin in yester's home.

Claude Code loads every folder of `skills/` that holds a plugin's manifest, as NAME@skills-dir. So
not one of its files is edited: there is nothing to parse, to merge or to put back, and one link
more or less is done at once, for sessions that run as well.

A copy, because the package can move (another Python, another way of installing) and is taken away
before it is replaced, while sessions go on calling their hooks: `python3` ends with 2 where a
script is missing, and to Claude Code a 2 forbids what was to be done. In the copy a file is always
there, the old one or the new one.

installed.json in yester's home says where yester has been installed, and which folders it made for
that, so that nothing is left of it afterwards.
"""

from __future__ import annotations

import shutil
import site
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import yester
from yester.agents.descriptors import CLAUDE_CODE
from yester.config import Config
from yester.errors import InstallError
from yester.files import replace_file

PLUGIN = "yester@skills-dir"
_MANIFEST = ".claude-plugin/plugin.json"
_SERVERS = ".mcp.json"


@dataclass(frozen=True, slots=True)
class Change:
    """A line of what is to be done, or has been."""

    sign: str  # + comes, ~ becomes another, - goes
    path: Path
    target: Path | None = None  # of a link

    def __str__(self) -> str:
        return f"{self.sign} {self.path}" + (f" -> {self.target}" if self.target else "")


# --- the copy of the plugin --------------------------------------------------------------------


def copy_folder(home: Path) -> Path:
    return home / "plugin"


def packaged_folder() -> Path:
    """Where the plugin's files came with yester: in the package, or beside a checkout's source."""
    package = Path(yester.__file__).parent
    for folder in (package / "plugin", package.parent.parent / "plugin"):
        if (folder / _MANIFEST).is_file():
            return folder
    raise InstallError(f"{package} has no plugin folder; install yester again")


def read_files(source: Path, python: str) -> dict[str, bytes]:
    """Every file that the copy should have. An agent's PATH need not have `yester`, so the copy
    starts servers by this interpreter."""
    files = {name: (source / name).read_bytes() for name in sorted(_file_names(source))}
    if _SERVERS in files:
        manifest: dict[str, Any] = msgspec.json.decode(files[_SERVERS])
        for server in manifest.get("mcpServers", {}).values():
            if server.get("command") == "yester":
                server["command"] = python
                server["args"] = [_isolation_flag(), "-m", "yester", *server.get("args", [])]
        files[_SERVERS] = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    return files


def _file_names(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not path.is_dir() and "__pycache__" not in path.parts
    }


def _isolation_flag() -> str:
    """The flag that keeps out what a repository's variables name: PYTHONPATH, or HOME, below which
    a user's own packages lie. Where yester is one of those they must stay in reach."""
    own = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return "-EP" if own and Path(yester.__file__).is_relative_to(own) else "-I"


def plan_copy(home: Path, files: Mapping[str, bytes]) -> list[Change]:
    """What `place_copy` would do."""
    folder = copy_folder(home)
    present = _file_names(folder)
    changes = []
    for name, data in files.items():
        if name not in present:
            changes.append(Change("+", folder / name))
        elif (folder / name).read_bytes() != data:
            changes.append(Change("~", folder / name))
    return changes + [Change("-", folder / name) for name in sorted(present - files.keys())]


def place_copy(home: Path, files: Mapping[str, bytes]) -> list[Change]:
    """Make the copy what it should be; what was done."""
    folder = copy_folder(home)
    changes = plan_copy(home, files)
    for change in changes:
        if change.sign == "-":
            change.path.unlink()
        else:
            for above in reversed([p for p in change.path.parents if p.is_relative_to(home)]):
                above.mkdir(mode=0o700, exist_ok=True)
            data = files[str(change.path.relative_to(folder))]
            replace_file(change.path, data, sync=True)
    # Byte code of the hooks lands here: a folder that an interpreter makes would be open to
    # others.
    (folder / "hooks" / "__pycache__").mkdir(mode=0o700, exist_ok=True)
    return changes


def refresh_copy(home: Path, python: str) -> list[Change]:
    """The same where an agent uses the copy: yester has been replaced by another version."""
    if not (copy_folder(home) / _MANIFEST).exists():
        return []
    return place_copy(home, read_files(packaged_folder(), python))


def remove_copy(home: Path) -> None:
    shutil.rmtree(copy_folder(home), ignore_errors=True)


# --- where it is installed ---------------------------------------------------------------------


class Installed(msgspec.Struct, frozen=True):
    agent: str
    folder: str  # the agent's own
    made: tuple[str, ...] = ()  # folders that were not there before, outermost first


def read_installed(home: Path) -> dict[str, Installed]:
    """By the agent's folder."""
    path = home / "installed.json"
    try:
        rows = msgspec.json.decode(path.read_bytes(), type=list[Installed])
    except FileNotFoundError:
        return {}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InstallError(
            f"{path} cannot be understood ({error}); delete it, and `yester install` writes it anew"
        ) from None
    return {row.folder: row for row in rows}


def _write_installed(home: Path, rows: Mapping[str, Installed]) -> None:
    path = home / "installed.json"
    if rows:
        data = msgspec.json.encode(list(rows.values()))
        replace_file(path, msgspec.json.format(data, indent=2) + b"\n")
    else:
        path.unlink(missing_ok=True)


# --- the link ----------------------------------------------------------------------------------


def agent_folders(config: Config, named: Sequence[Path] = ()) -> list[Path]:
    """Claude Code's configuration folders: those the user names, else those of the settings.

    $CLAUDE_CONFIG_DIR does not count: a repository can set it.
    """
    folders = named or [Path(text) for text in config.texts(CLAUDE_CODE.folders)]
    return list(dict.fromkeys(path.expanduser().absolute() for path in folders))


def plugin_link(folder: Path) -> Path:
    return folder / "skills" / "yester"


def is_installed(home: Path, folder: Path) -> bool:
    link = plugin_link(folder)
    return link.is_symlink() and link.resolve() == copy_folder(home).resolve()


def plan_link(home: Path, folder: Path) -> list[Change]:
    """What `install_link` would do; InstallError where something is in its way."""
    link, target = plugin_link(folder), copy_folder(home)
    if is_installed(home, folder):
        return []
    if link.is_symlink() and not link.exists():
        return [Change("~", link, target)]
    if link.exists():
        raise InstallError(
            f"{link} was not put there by `yester install` of {home}; uninstall that yester, move "
            f"it away, or keep it and use: claude --plugin-dir '{packaged_folder()}'"
        )
    return [Change("+", link, target)]


def install_link(home: Path, folder: Path) -> None:
    """The copy must be there already."""
    steps, link = plan_link(home, folder), plugin_link(folder)
    missing = [path for path in (link.parent, *link.parent.parents) if not path.exists()][::-1]
    for path in missing:
        path.mkdir(mode=0o700)
    rows, name = read_installed(home), str(folder)
    # Folders made before stay ours: the second time they are there already.
    before = rows[name].made if name in rows else ()
    made = tuple(dict.fromkeys([*before, *map(str, missing)]))
    _write_installed(home, rows | {name: Installed(CLAUDE_CODE.name, name, made)})
    for step in steps:
        link.unlink(missing_ok=True)
        link.symlink_to(step.target or "")


def uninstall_link(home: Path, folder: Path) -> None:
    if is_installed(home, folder):
        plugin_link(folder).unlink()
    rows = read_installed(home)
    own = rows.pop(str(folder), None)
    for path in map(Path, reversed(own.made if own else ())):
        with suppress(OSError):  # others have put something there meanwhile, or removed it
            path.rmdir()
    with suppress(OSError):  # made by the client for our plugin, which keeps nothing there
        (folder / "plugins" / "data" / "yester-skills-dir").rmdir()
    if own:
        _write_installed(home, rows)
