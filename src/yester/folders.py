"""Which folders of this machine belong to which repository: `folders.json` in the home.

A repository names its remote itself, in a file that anybody can write. So the first folder that
names a remote is taken for it, and another one only if it holds the first commit of a folder that
was taken before, or if the user says so (`{ joined = true }` in [projects]). It is a project of its
own until then, and what was stored of it meanwhile is joined afterwards (`ingest.projects`).

git is asked once for a folder that is new. A home of an older version begins with the folders of
its sessions: they stay joined.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from yester import git
from yester.config import Config
from yester.errors import StoreBusy
from yester.files import read_text, replace_file
from yester.model import Project, replace
from yester.project import Projects, find_claim
from yester.redact import redact
from yester.store.lock import write_lock

_SECONDS = 2.0  # for git: once for a folder, and a long history is walked to its beginning
_PATIENCE = 1.0  # for another process that writes


class Folder(Struct):
    """A folder and the project whose remote it names. `first`: its first commit, where that could
    be told. `apart`: it is, or was, a project of its own."""

    path: str
    project: str
    first: str = ""
    joined: bool = True
    apart: bool = False


class Folders:
    """What is recorded of a home. Without its file nothing is known, and every folder is taken at
    its word."""

    def __init__(self, home: Path) -> None:
        self._file = home / "folders.json"
        self._lock = home / "run" / "folders.lock"
        self._judged: dict[tuple[str, str], Folder] = {}

    @property
    def is_new(self) -> bool:
        return not self._file.exists()

    def read_all(self) -> list[Folder]:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(read_text(self._file, 16 << 20), type=list[Folder])
        return []

    def list_apart(self) -> list[Folder]:
        """Those that name the remote of a project and are none of its folders."""
        return [one for one in self.read_all() if not one.joined]

    def begin(self, folders: Iterable[tuple[str, Project]]) -> None:
        """With folders that are joined already."""
        claims = (find_claim(cwd, found) for cwd, found in folders if _names_remote(found))
        self._change_all(lambda known: [*known, *(Folder(*one) for one in set(claims))])

    def drop(self, is_meant: Callable[[Folder], bool]) -> None:
        """What is to be forgotten is recorded no more."""
        self._judged.clear()
        if not self.is_new:
            self._change_all(lambda known: [one for one in known if not is_meant(one)])

    def judge(self, cwd: str, found: Project, joined: bool) -> Folder:
        """Is a folder what it says it is? `joined` is the user's word."""
        claim = find_claim(cwd, found)
        if self.is_new:
            return Folder(*claim)
        known = self._judged.get(claim)
        if known is None or (joined and not known.joined):
            known = self._judged[claim] = self._judge_anew(cwd, Folder(*claim, joined=joined))
        return known

    def _judge_anew(self, cwd: str, claim: Folder) -> Folder:
        recorded = self.read_all()
        before = next((one for one in recorded if _same_claim(one, claim)), None)
        if before and before.joined and before.first:
            return before
        others = [one for one in recorded if one.project == claim.project and one.joined]
        there = find_own_repository(cwd, claim.path)
        joined = claim.joined or (before is not None and before.joined) or not others
        joined = joined or (there is not None and _share_beginning(there, others))
        first = find_first_commit(there) if there and joined else ""
        apart = not joined or (before is not None and before.apart)
        now = replace(claim, first=first, joined=joined, apart=apart)
        if now != before:
            self._change_all(lambda all_: [*(x for x in all_ if not _same_claim(x, now)), now])
        return now

    def _change_all(self, change: Callable[[list[Folder]], list[Folder]]) -> None:
        # What cannot be written down now is judged anew by the next process.
        with suppress(OSError, StoreBusy):
            self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with write_lock(self._lock, _PATIENCE):
                before = self.read_all()
                after = change(before)
                if self.is_new or after != before:
                    replace_file(self._file, msgspec.json.format(msgspec.json.encode(after)))


@cache
def open_folders(home: Path) -> Folders:
    """One for a process: git is asked once."""
    return Folders(home)


def open_projects(
    config: Config, refuses: Callable[[str, Project], bool] = lambda _cwd, _project: False
) -> Projects:
    """Folders as projects, as the settings and what is recorded of folders say."""
    folders = open_folders(config.home)
    joined = {str(Path(line).expanduser()) for line in config.joined}

    def belongs(cwd: str, found: Project) -> bool:
        path, _ = find_claim(cwd, found)
        return folders.judge(cwd, found, path in joined).joined

    def was_apart(path: str) -> bool:
        return any(one.apart for one in folders.read_all() if one.path == path)

    return Projects(config.projects, refuses, config.private, belongs, was_apart, redact)


def _same_claim(one: Folder, other: Folder) -> bool:
    return (one.path, one.project) == (other.path, other.project)


def _names_remote(found: Project) -> bool:
    return found.key.startswith("git:")


# --- what a folder holds --------------------------------------------------------------------------


def find_own_repository(cwd: str, path: str) -> git.Repository | None:
    """The repository of a folder, if all of it is there: what a folder leads to by a link or by
    naming it, another's repository, proves nothing."""
    found = git.find_repository(cwd) or git.find_repository(path)
    if found is None:
        return None
    common = found.common.resolve()
    parts = common.parts
    owner = Path(*parts[: parts.index(".git")]) if ".git" in parts else common
    objects = common / "objects"
    borrows = (objects / "info" / "alternates").exists() or _has_links(common, objects)
    return None if borrows or not Path(path).resolve().is_relative_to(owner) else found


def _has_links(*folders: Path) -> bool:
    try:
        return any(one.is_symlink() for folder in folders for one in folder.iterdir())
    except OSError:
        return True


def find_first_commit(there: git.Repository) -> str:
    """The commit that its history begins with; "" where it ends before that, or is too long."""
    if not there.head or git.shallow_commits(there):
        return ""
    found = _ask("first", there).decode("ascii", "replace").split()
    return found[0] if found and git.is_commit(found[0]) else ""


def holds_commit(there: git.Repository, commit: str) -> bool:
    """Is it really there? An object could be given any name: its content says what it is."""
    found = _ask("commit", there, commit)
    data = b"commit %d\0%b" % (len(found), found)
    kind = hashlib.sha256 if len(commit) == 64 else hashlib.sha1
    return bool(found) and kind(data, usedforsecurity=False).hexdigest() == commit


def _share_beginning(there: git.Repository, others: Sequence[Folder]) -> bool:
    """Does a repository hold the first commit of one of these? What is recorded may be of before
    a history was written anew."""
    firsts = {one.first for one in others}
    if any(first and holds_commit(there, first) for first in firsts):
        return True
    owned = (find_own_repository(one.path, one.path) for one in others)
    now = {find_first_commit(one) for one in owned if one} - firsts - {""}
    return any(holds_commit(there, first) for first in now)


def _ask(name: str, there: git.Repository, *values: str) -> bytes:
    until = time.monotonic() + _SECONDS
    return git.ask_git(name, there, *values, deadline=until, most=_SECONDS).whole_output or b""
