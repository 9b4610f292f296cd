"""yester in Claude Code: a link in its skills folder to the plugin's copy in yester's home.

Claude Code loads every folder of `skills/` that holds a plugin's manifest, as NAME@skills-dir. So
not one of its files is edited: there is nothing to parse, to merge or to put back, and one link
more or less is done at once, for sessions that run as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from yester.agents.descriptors import CLAUDE_CODE
from yester.config import Config
from yester.errors import InstallError
from yester.install import plugin, record
from yester.install.plugin import Change

PLUGIN = "yester@skills-dir"


def folders(config: Config, given: Sequence[Path] = ()) -> list[Path]:
    """Claude Code's configuration folders: the caller's word, else those of the settings.

    $CLAUDE_CONFIG_DIR does not count: a repository can set it.
    """
    named = given or [Path(text) for text in config.texts(CLAUDE_CODE.folders)]
    return list(dict.fromkeys(path.expanduser().absolute() for path in named))


def link_in(folder: Path) -> Path:
    return folder / "skills" / "yester"


def is_installed(home: Path, folder: Path) -> bool:
    link = link_in(folder)
    return link.is_symlink() and link.resolve() == plugin.copy_of(home).resolve()


def plan(home: Path, folder: Path) -> list[Change]:
    """What `install` would do besides the copy; InstallError where something is in its way."""
    link, target = link_in(folder), plugin.copy_of(home)
    new = Change("+", link, target)
    if is_installed(home, folder):
        return []
    if link.is_symlink() and not link.exists():
        return [Change("~", link, target)]
    if link.is_symlink():
        raise InstallError(
            f"{link} leads to {link.readlink()}, which is not {target}; "
            f"if it is another yester's, uninstall that one, else remove the link: rm '{link}'"
        )
    if link.exists():
        raise InstallError(
            f"{link} was not put there by `yester install`; move it away, or keep it and use yester"
            f" with: claude --plugin-dir '{plugin.packaged()}'"
        )
    return [new]


def install(home: Path, folder: Path) -> list[Change]:
    """The copy must be there already. What was done; nothing, the second time."""
    steps, link = plan(home, folder), link_in(folder)
    try:
        made = _make(link.parent)
        record.add(home, record.Installed(CLAUDE_CODE.name, str(folder), tuple(map(str, made))))
        for step in steps:
            link.unlink(missing_ok=True)
            link.symlink_to(step.target or "")
    except OSError as error:
        raise InstallError(f"{error.filename or link}: {error.strerror}") from None
    return [*(Change("+", path) for path in made), *steps]


def _make(folder: Path) -> list[Path]:
    """The folder, and which of the folders above it were not there."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700)
    return missing[::-1]


def uninstall(home: Path, folder: Path) -> list[Change]:
    """What was done; nothing where it was not installed."""
    done, link = [], link_in(folder)
    try:
        if is_installed(home, folder):
            link.unlink()
            done.append(Change("-", link))
        made = [
            Path(path)
            for one in record.read(home)
            if (one.agent, one.folder) == (CLAUDE_CODE.name, str(folder))
            for path in one.made
        ]
        for path in reversed(made):
            with suppress(OSError):  # others have put something there meanwhile, or removed it
                path.rmdir()
                done.append(Change("-", path))
        with suppress(OSError):  # made by the client for our plugin, which keeps nothing there
            (folder / "plugins" / "data" / "yester-skills-dir").rmdir()
        record.drop(home, CLAUDE_CODE.name, str(folder))
    except OSError as error:
        raise InstallError(f"{error.filename or link}: {error.strerror}") from None
    return done
