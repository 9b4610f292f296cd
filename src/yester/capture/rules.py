"""What must not be captured: excluded folders and projects, and what the user has switched off.

    config.toml   exclude = ["~/secret", "~/clients/*", "payroll"]   paths, globs, project names
    off           in yester's home, kept by `yester off`; lines of kind, from, to (0: still), what:
                  `all 1770000000000 0`, `path 1770000000000 1770000900000 /home/sam/code/shop`,
                  `session 1770000000000 0 ID`
    run/rules     what a hook can decide by its folder alone, written for it; absent when empty

A path stands for everything below it. What happened while it was off stays out for good: the
transcripts are read without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from yester.capture.ask import covers
from yester.config import Config
from yester.files import replace_file, update_file
from yester.model import Project, replace

_PAUSE = re.compile(r"(all|path|session) (\d{1,15}) (\d{1,15})(?: (.*))?", re.ASCII)


class Pause(Struct, frozen=True):
    kind: str  # all, path, session
    since: int
    until: int = 0  # 0: it still is
    what: str = ""

    def line(self) -> str:
        return f"{self.kind} {self.since} {self.until} {self.what}".rstrip()


class Rules(Struct, frozen=True):
    home: str = ""  # what yester itself has an agent do is no memory
    excluded: tuple[str, ...] = ()  # globs of absolute paths
    names: tuple[str, ...] = ()  # of projects
    pauses: tuple[Pause, ...] = ()
    sync: bool = True

    def is_off(self, cwd: str, session: str, epoch: int) -> bool:
        return any(
            pause.since <= epoch and (not pause.until or epoch < pause.until)
            for pause in self.pauses
            if pause.kind == "all"
            or (pause.kind == "session" and pause.what == session)
            or (pause.kind == "path" and covers(pause.what, cwd))
        )

    def excludes(self, cwd: str, project: Project) -> bool:
        return any(covers(glob, cwd) for glob in (self.home, *self.excluded)) or any(
            fnmatchcase(text, glob) for glob in self.names for text in (project.name, project.key)
        )

    def fingerprint(self) -> str:
        """Changes when the excluded change: what was left out may be wanted now."""
        text = "\n".join((*self.excluded, "", *self.names))
        return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def hook_lines(self) -> list[str]:
        now = [pause for pause in self.pauses if not pause.until]
        return [
            *([] if self.sync else ["nosync"]),
            *(f"path {glob}" for glob in self.excluded),
            *(f"{pause.kind} {pause.what}".rstrip() for pause in now),
        ]


def load_rules(config: Config) -> Rules:
    exclude = config.texts("exclude")
    # The key of a project has slashes, too: git:example.org/acme/shop.
    paths = [text for text in exclude if text.startswith(("/", "~", "*/", "**/"))]
    return Rules(
        home=str(config.home),
        excluded=tuple(dict.fromkeys(form for text in paths for form in _forms(text))),
        names=tuple(text for text in exclude if text not in paths),
        pauses=tuple(load_pauses(config.home)),
        sync=config.flag("spool_fsync"),
    )


def is_off_here(environ: Mapping[str, str]) -> bool:
    """Has the user switched yester off for what is started with these variables?"""
    return environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false")


def load_pauses(home: Path) -> list[Pause]:
    try:
        lines = (home / "off").read_text("utf-8", "replace").split("\n")
    except OSError:
        return []
    found = [match.groups("") for match in map(_PAUSE.fullmatch, lines) if match]
    return [Pause(kind, int(since), int(until), what) for kind, since, until, what in found]


def change_pause(home: Path, kind: str, what: str, now: int, off: bool = True) -> bool:
    """Switch off, or on again; False where it was so already. What happened while it was off stays
    out."""
    known = load_pauses(home)
    begun = [one for one in known if (one.kind, one.what, one.until) == (kind, what, 0)]
    if off is bool(begun):
        return False
    if off:
        known.append(Pause(kind, now, 0, what))
    for one in begun:
        known[known.index(one)] = replace(one, until=max(now, one.since + 1))
    replace_file(home / "off", "".join(f"{one.line()}\n" for one in known))
    return True


def write_hook_rules(home: Path, found: Rules) -> None:
    """run/rules as it must be; whole or not at all, and untouched where nothing has changed."""
    path = home / "run" / "rules"
    if lines := found.hook_lines():
        update_file(path, "".join(f"{line}\n" for line in lines))
    else:
        path.unlink(missing_ok=True)


def _forms(text: str) -> Iterator[str]:
    """A path as it is written, and as it is called where links have been followed."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # nobody is called so
        path = Path(text)
    yield str(path)
    if path.is_absolute():
        yield str(path.resolve())  # of a glob, as far as it names folders
