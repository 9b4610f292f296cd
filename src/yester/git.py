"""Git, asked without trusting the repository. The only place that starts it.

A repository's configuration can make git run programs (fsmonitor, hooks, filters, textconv,
helpers, commands of remotes …), and every version of git adds a way. So none of it is read: git
works on a folder of our own, made for one question, with a HEAD and three lines of configuration;
the repository's objects, index and files are shown to it through the environment. What
.gitattributes names then has no command behind it, and a missing object has nowhere to come from.

Who owns what is checked here, because git does not check a folder it has been given; branch and
HEAD are read from files without a process. Whatever fails, is late or is too much is no answer.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from yester.files import read_text
from yester.machine import is_own, kill_group
from yester.project import walk_work_trees
from yester.tables import load_table

MOST_SECONDS = 0.150  # one question, however late the caller's own deadline is
_MOST_BYTES = 4 << 20
_MOST_NAMES = 500
_RECENT_COMMITS = 20

_TABLE = load_table("git")
PATH: str = _TABLE["path"].get(sys.platform, _TABLE["path"]["linux"])
COMMANDS: Mapping[str, str] = {
    name: words.replace("LOG", _TABLE["log"]) for name, words in _TABLE["commands"].items()
}
_NUMBER = re.compile(r"[0-9]{1,9}", re.A)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.A)
_ONE_AT_A_TIME = threading.Lock()


class Repository(NamedTuple):
    """A work tree as its `.git` files describe it at one moment."""

    top: Path
    folder: Path  # of this work tree: HEAD, index
    common: Path  # of all its work trees: objects, refs
    branch: str = ""  # "" when HEAD is a commit
    head: str = ""  # "" before the first commit


class Answer(NamedTuple):
    """What git printed; only the beginning of it when it did not end as it should."""

    out: bytes
    end: str  # whole, late (or too much), failed, not begun

    @property
    def whole_output(self) -> bytes | None:
        """All of it, or None."""
        return self.out if self.end == "whole" else None


class Change(NamedTuple):
    how: str  # A added, M changed, D deleted, R renamed, T another kind of file
    path: str
    old: str = ""  # the name before, where it was renamed
    same: bool = False  # renamed, and not a byte changed


class Commit(NamedTuple):
    id: str
    committed: int  # ms
    authored: int  # ms; stays the same when a commit is moved to another place
    changes: tuple[Change, ...]


class Signals(NamedTuple):
    """What a folder tells about the work at hand. Files are named from that folder."""

    branch: str = ""
    head: str = ""
    changed: tuple[str, ...] = ()  # not committed; a folder that is new as a whole ends with /
    recent: tuple[str, ...] = ()  # in the last commits, newest first
    manifests: tuple[tuple[str, str], ...] = ()  # (file, the project's name in it)


def collect_signals(root: str, deadline: float, path: str = PATH) -> Signals:
    """The signals of a folder by `deadline` (time.monotonic()); what is late is left out."""
    manifests = tuple(_read_manifests(Path(root)))
    repository = find_repository(root)
    if repository is None:
        return Signals(manifests=manifests)

    def run_here(name: str, *values: int | str) -> bytes:
        return ask_git(name, repository, *values, deadline=deadline, path=path).whole_output or b""

    changed = [name[3:] for name in run_here("changed").split(b"\0")]
    changed += run_here("untracked").split(b"\0")
    log = run_here("history", _RECENT_COMMITS, 0, repository.head) if repository.head else b""
    recent = (change.path for commit in parse_commits(log) for change in commit.changes)
    prefix = path_prefix(repository, root)
    return Signals(
        repository.branch,
        repository.head,
        _select_names(map(_decode_name, changed), prefix),
        _select_names(recent, prefix),
        manifests,
    )


def _select_names(names: Iterator[str], prefix: str) -> tuple[str, ...]:
    found = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return tuple(dict.fromkeys(filter(None, found)))[:_MOST_NAMES]


def path_prefix(repository: Repository, root: str) -> str:
    """What git's names of the files under `root` begin with."""
    path = os.path.relpath(os.path.realpath(root), os.path.realpath(repository.top))
    return "" if path == "." else f"{path}/"


# --- what can be read without a process ----------------------------------------------------------


def find_repository(folder: str) -> Repository | None:
    """The repository a folder is in, if it belongs to this user. A bare one is none."""
    if not os.path.isdir(folder):  # noqa: PTH112 -- that one never raises
        return None
    for top, found, common in walk_work_trees(Path(folder)):
        head = read_text(found / "HEAD").strip()
        if not head:
            continue
        if not all(_is_ours(place) for place in (top, top / ".git", found, common)):
            return None
        if not head.startswith("ref:"):
            return Repository(top, found, common, "", head if is_commit(head) else "")
        ref = head.removeprefix("ref:").strip()
        branch = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""
        return Repository(top, found, common, branch, _resolve_ref(found, common, ref))
    return None


def find_top(folder: str, root: str) -> str:
    """Where a project's files are, seen from a folder: `root` if it is in there, else the work tree
    at hand, which need not be the main one. A linked work tree may lie inside the main one."""
    repository = find_repository(folder)
    linked = repository is not None and repository.folder != repository.common
    if root and Path(folder).is_relative_to(root) and not linked:
        return root
    return str(repository.top) if repository else root


def shallow_commits(repository: Repository) -> frozenset[str]:
    """The commits at which a shallow clone ends: they look as if they had added every file."""
    return frozenset(read_text(repository.common / "shallow").split())


def _is_ours(path: Path) -> bool:
    try:
        return is_own(path.stat())
    except OSError:
        return False


def _resolve_ref(folder: Path, common: Path, ref: str) -> str:
    parts = ref.split("/")
    if parts[0] != "refs" or any(part in ("", ".", "..") for part in parts) or "\0" in ref:
        return ""
    value = (read_text(common / ref) or read_text(folder / ref)).strip()
    if not value:
        packed, found, _ = read_text(common / "packed-refs", 16 << 20).partition(f" {ref}\n")
        value = packed.rpartition("\n")[2] if found else ""
    return value if is_commit(value) else ""


def is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None


# --- manifests -----------------------------------------------------------------------------------


def _read_manifests(root: Path) -> Iterator[tuple[str, str]]:
    for file, pattern in _TABLE["manifests"].items():
        if name := re.search(pattern, read_text(root / file, 200_000), re.M):
            yield file, "".join(filter(str.isprintable, name[1]))[:200]


# --- the process ---------------------------------------------------------------------------------


def ask_git(
    name: str,
    repository: Repository,
    *values: int | str,
    deadline: float,
    path: str = PATH,
    most: float = MOST_SECONDS,
) -> Answer:
    """Run a command of the table until `deadline` (time.monotonic()), for so many seconds."""
    safe = all(_NUMBER.fullmatch(str(value)) or is_commit(str(value)) for value in values)
    program = shutil.which("git", path=path)
    if not safe or program is None:
        return Answer(b"", "failed")
    words = COMMANDS[name].format(*values).split()
    left = deadline - time.monotonic()
    if left <= 0 or not _ONE_AT_A_TIME.acquire(timeout=left):
        return Answer(b"", "not begun")
    try:
        # Not where TMPDIR says: a repository may set that, too.
        with tempfile.TemporaryDirectory(prefix="yester-git-", dir="/tmp") as own:
            environment = _prepare_folder(Path(own), repository)
            until = min(deadline, time.monotonic() + most)
            return _collect_answer(
                [program, *_TABLE["before"].split(), *words], repository.top, environment, until
            )
    except (OSError, ValueError):
        return Answer(b"", "failed")
    finally:
        _ONE_AT_A_TIME.release()


def _prepare_folder(own: Path, repository: Repository) -> dict[str, str]:
    """Make the folder git is to take for the repository's; the environment that shows the rest."""
    (own / "refs").mkdir()
    (own / "HEAD").write_text(f"{repository.head or 'ref: refs/heads/unborn'}\n")
    long_ids = len(repository.head) == 64
    (own / "config").write_text(
        f"[core]\n\trepositoryformatversion = {int(long_ids)}\n\tbare = false\n"
        + ("[extensions]\n\tobjectFormat = sha256\n" if long_ids else "")
    )
    # Data that git looks for beside HEAD, and that says nothing but which files and commits.
    for name in ("shallow", "info/exclude"):
        if (repository.common / name).is_file():
            (own / name).parent.mkdir(exist_ok=True)
            (own / name).symlink_to(repository.common / name)
    for shared in repository.folder.glob("sharedindex.*"):
        (own / shared.name).symlink_to(shared)
    return {
        **_TABLE["environment"],
        "PATH": PATH,
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_OBJECT_DIRECTORY": str(repository.common / "objects"),
        "GIT_INDEX_FILE": str(repository.folder / "index"),
    }


def _collect_answer(
    words: list[str], cwd: Path, environment: dict[str, str], until: float
) -> Answer:
    process = subprocess.Popen(  # noqa: S603 -- absolute path, arguments from the table
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env=environment,
        start_new_session=True,  # a group to end as a whole, and no terminal to ask at
    )
    assert process.stdout is not None
    out = bytearray()
    try:
        with process.stdout as stream:
            ended = _read_output(stream.fileno(), out, until)
        if not ended:
            return Answer(bytes(out), "late")
        code = process.wait(max(until - time.monotonic(), 0.001))
        return Answer(bytes(out), "whole" if code == 0 else "failed")
    except subprocess.TimeoutExpired:
        return Answer(bytes(out), "late")
    finally:
        if process.returncode is None:
            # Not yet waited for, so the number is still its own and its group's.
            kill_group(process.pid)
            # The kernel may take its time, on a busy machine or a dead disk; the caller does not.
            threading.Thread(target=process.wait, daemon=True).start()


def _read_output(file: int, out: bytearray, until: float) -> bool:
    """Read to the end; False when time or room ran out before."""
    with selectors.DefaultSelector() as selector:
        selector.register(file, selectors.EVENT_READ)
        while len(out) <= _MOST_BYTES:
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                return False
            part = os.read(file, 1 << 16)
            if not part:
                return True
            out += part
    return False


# --- the form of the log -------------------------------------------------------------------------


def parse_commits(out: bytes, whole: bool = True) -> Iterator[Commit]:
    """The commits of a log as COMMANDS prints it; of a beginning, those that are surely complete.

    ID TIME TIME NUL, then for each file `HOW NUL path NUL`, or `Rnn NUL old NUL new NUL`; the
    first HOW of a commit has a line break before it.
    """
    *fields, _ = out.split(b"\0")  # behind the last NUL: nothing, or half a field
    rest = iter(fields)
    heading: tuple[str, int, int] | None = None
    changes: list[Change] = []
    for field in rest:
        word = field.lstrip(b"\n").decode("ascii", "replace")
        if word[:1].isupper():
            number = 2 if word[0] in "RC" else 1
            names = [_decode_name(name) for name in islice(rest, number)]
            if len(names) < number:
                return
            if word[0] == "R":
                changes.append(Change("R", names[1], names[0], word == "R100"))
            else:
                changes.append(Change("A" if word[0] == "C" else word[0], names[-1]))
            continue
        if heading:
            yield Commit(*heading, tuple(changes))
        id_, *moments = word.split(" ")
        if len(moments) != 2 or not "".join(moments).isdigit():
            return
        heading, changes = (id_, int(moments[0]) * 1000, int(moments[1]) * 1000), []
    if heading and whole:
        yield Commit(*heading, tuple(changes))


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "replace")
