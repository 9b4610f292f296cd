"""Where a log lies: a folder, a folder on another machine over ssh, a branch of a git repository.

    /mnt/drive/memory              a folder: Syncthing's, a cloud drive's, NFS
    ssh://[me@]host[:port]/folder  by the system's sftp; /~/folder is below the home there
    git+ssh://[me@]host/x.git      by the system's git, on the branch "yester"; git+file:///x.git

A file appears under its name complete or not at all. ssh and git are programs of the system's with
the user's own configuration, in a folder of ours: no repository's, and nothing of the environment
that a repository could have set. Where the home has a file `roam.ssh_config`, it is ssh's.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from errno import EFBIG, EINVAL, ELOOP
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import unquote, urlsplit

from yester.errors import SourceError, UsageError
from yester.files import read_bytes, replace_file, sync_folder
from yester.git import PATH
from yester.sharing.segments import HEAD, MOST_BYTES

_BRANCH = "refs/heads/yester"
_PATIENCE = 600.0  # seconds for one program
_ATTEMPTS = 5  # to push, where others push at the same time
_KEPT = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK")
_OWN = (  # settings of git's that a repository could name a program in
    "-c core.hooksPath=/dev/null -c protocol.ext.allow=never -c core.alternateRefsCommand=true"
    " -c core.fsmonitor=false -c receive.autogc=false"
)
_CAUSES = ("ssh: ", "Permission denied (", "verification failed", "fatal: ")
_SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20")


class Transport(Protocol):
    """Files by their paths in the log."""

    where: str

    def list_files(self) -> set[str]:
        """All there are now; those that were looked at are those that `read_files` reads."""

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Those that are there, and can be segments: no links, and not larger."""

    def write_files(self, files: Mapping[str, bytes]) -> None:
        """The head last: it names the others. On the disk there when this returns."""

    def remove_files(self, paths: Collection[str]) -> None:
        """And the folders that they leave empty, where there are such."""


def open_transport(url: str, home: Path, environ: Mapping[str, str]) -> Transport:
    """UsageError where it is none of those above."""
    scheme, found, _ = url.partition("://")
    if not found:
        path = Path(url).expanduser()
        if not path.is_absolute():
            raise UsageError(f"{url!r} is no full path of a folder; write it from / or ~ on")
        return Folder(path)
    try:
        parts = urlsplit(url)
        named, port = bool(parts.hostname), parts.port  # noqa: F841 -- reading it checks it
    except ValueError as error:
        raise UsageError(f"{scheme}://… is no address ({error})") from None
    if parts.password:
        raise UsageError("a password does not belong into the address; use a key, or an agent")
    # None may become an option of ssh's, or a command of sftp's.
    for name in map(unquote, (parts.hostname or "", parts.username or "")):
        if name.startswith("-") or " " in name or not name.isprintable():
            raise UsageError(f"{name!r} is no name of a machine or of its user")
    if not unquote(parts.path).isprintable():
        raise UsageError(f"{unquote(parts.path)!r} is no path of a log")
    if scheme == "ssh" and named and len(parts.path) > 1:
        return Sftp(url, home, environ)
    if scheme == ("git+ssh" if named else "git+file") and len(parts.path) > 1:
        return Git(url, home, environ)
    raise UsageError(
        f"{scheme}://… is none of a folder's path, ssh://HOST/FOLDER, git+ssh://HOST/REPOSITORY"
    )


def _put_head_last(files: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    return sorted(files.items(), key=lambda pair: pair[0] == HEAD)


# --- a folder ------------------------------------------------------------------------------------


class Folder:
    def __init__(self, root: Path) -> None:
        self.where, self._root = str(root), root

    def list_files(self) -> set[str]:
        if not self._root.is_dir():
            raise SourceError(f"{self.where} is not there; is the drive connected?")
        # Links lead to where nothing of a log's is: into what else this user may write.
        folders = (path for path in self._root.glob("*/*") if not self._leads_away(path))
        found = (path for folder in folders for path in folder.glob("*") if path.is_file())
        return {str(path.relative_to(self._root)) for path in (*found, *self._root.glob(HEAD))}

    def _leads_away(self, folder: Path) -> bool:
        return any(one.is_symlink() for one in (folder, folder.parent) if self._root in one.parents)

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        found = {}
        for path in paths:
            try:
                found[path] = read_bytes(self._root / path, MOST_BYTES, follow=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in (EFBIG, EINVAL, ELOOP):
                    raise SourceError(f"{self._root / path}: {error.strerror}") from None
        return found

    def write_files(self, files: Mapping[str, bytes]) -> None:
        try:
            for path, data in _put_head_last(files):
                folder = (self._root / path).parent
                if self._leads_away(folder):
                    raise SourceError(f"{folder}: is a link; nothing is written there")
                replace_file(self._root / path, data, sync=True)
                sync_folder(folder)
        except OSError as error:
            raise SourceError(f"{self.where} cannot be written ({error.strerror})") from None

    def remove_files(self, paths: Collection[str]) -> None:
        for path in paths:
            (self._root / path).unlink(missing_ok=True)
        for folder in sorted({(self._root / path).parent for path in paths}):
            for empty in (folder, folder.parent):
                if empty != self._root and empty.is_dir() and not any(empty.iterdir()):
                    empty.rmdir()


# --- programs of the system's --------------------------------------------------------------------


def _clean_environment(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    kept = {name: environ[name] for name in _KEPT if name in environ}
    return {**kept, "PATH": PATH, "LC_ALL": "C", **more}


def _run_program(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which(words[0], path=PATH)
    if program is None:
        raise SourceError(f"{words[0]} is not installed, and the log lies behind it")
    try:
        return subprocess.run(  # noqa: S603 -- a program of the system's, by its full path
            [program, *words[1:]], cwd=cwd, env=dict(env), input=given, capture_output=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SourceError(f"{words[0]} has not answered for {_PATIENCE:.0f} s") from None


def _tell_failure(done: subprocess.CompletedProcess[bytes]) -> str:
    """The line that says why; what ssh and git say behind it is advice."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = (line for line in lines if any(words in line for words in _CAUSES))
    return next(why, lines[-1] if lines else f"exit code {done.returncode}").strip()


def _ssh_config(home: Path) -> list[str]:
    own = home / "roam.ssh_config"
    return ["-F", str(own)] if own.exists() else []


class Sftp:
    """One process for each question, given as a list of sftp's commands."""

    def __init__(self, url: str, home: Path, environ: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        self.where, self._home = url, home
        self._root = unquote(parts.path).rstrip("/").removeprefix("/~/")
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = ["-P", str(parts.port)] if parts.port else []
        user = f"{unquote(parts.username)}@" if parts.username else ""
        self._words = ["sftp", *_ssh_config(home), *_SSH_OPTIONS, *port, "-b", "-"]
        self._words += ["--", f"{user}{host}"]
        self._env = _clean_environment(environ)

    def list_files(self) -> set[str]:
        """Of a folder that is not there, or is empty, a listing fails: it is made first."""
        out = self._run_commands(
            f"-mkdir {self._quote('')}", f"cd {self._quote('')}", "-ls -n LOG", "-ls -n */*/*"
        )
        # -rw------- ? 0 0 SIZE Nov 19 12:53 PATH
        rows = map(str.split, out.decode("utf-8", "replace").splitlines())
        files = [row for row in rows if len(row) == 9 and row[0].startswith("-")]
        return {row[8] for row in files if row[4].isdigit() and int(row[4]) <= MOST_BYTES}

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        with TemporaryDirectory(prefix="roam-", dir=self._home / "run") as name:
            parts = {path: Path(name, str(at)) for at, path in enumerate(paths)}
            gets = (f"-get {self._quote(path)} {_quote(str(to))}" for path, to in parts.items())
            self._run_commands(*gets)
            there = {path: part for path, part in parts.items() if part.exists()}
            sized = {p: part for p, part in there.items() if part.stat().st_size <= MOST_BYTES}
            return {path: part.read_bytes() for path, part in sized.items()}

    def write_files(self, files: Mapping[str, bytes]) -> None:
        with TemporaryDirectory(prefix="roam-", dir=self._home / "run") as name:
            above = (parent for path in files for parent in reversed(Path(path).parents[:-1]))
            commands = [f"-mkdir {self._quote(one)}" for one in dict.fromkeys(map(str, above))]
            for at, (path, data) in enumerate(_put_head_last(files)):
                own, part = Path(name, str(at)), self._quote(f"{path}.part")
                own.write_bytes(data)
                commands.append(f"put -f {_quote(str(own))} {part}")
                commands.append(f"rename {part} {self._quote(path)}")
            self._run_commands(*commands)

    def remove_files(self, paths: Collection[str]) -> None:
        folders = {str(parent) for path in paths for parent in Path(path).parents[:-1]}
        ordered = sorted(folders, key=len, reverse=True)
        self._run_commands(
            *(f"-rm {self._quote(path)}" for path in paths),
            *(f"-rmdir {self._quote(folder)}" for folder in ordered),
        )

    def _quote(self, path: str) -> str:
        return _quote(f"{self._root}/{path}".rstrip("/"))

    def _run_commands(self, *commands: str) -> bytes:
        done = _run_program(self._words, self._home, self._env, "\n".join(commands).encode())
        if done.returncode:
            raise SourceError(f"{self.where}: {_tell_failure(done)}")
        return done.stdout


def _quote(path: str) -> str:
    """As sftp reads it: what stands for many files elsewhere stands for itself."""
    if "\n" in path or "\r" in path:
        raise UsageError(f"{path!r} has the end of a line in it")
    escaped = "".join(f"\\{sign}" if sign in '\\"*?[]' else sign for sign in path)
    return f'"{escaped}"'


class Git:
    """A bare clone in the home. Each push is a commit without parents, which has all files of the
    log: the branch has no history. What a server or another clone keeps of former ones is theirs.
    """

    def __init__(self, url: str, home: Path, environ: Mapping[str, str]) -> None:
        self.where, self._home, self._clone = url, home, home / "roam.git"
        self._url = url.removeprefix("git+")
        # What serves a repository on a disk is a program of this machine, and the repository's own
        # configuration and hooks are of whoever can write there.
        self._serving = "" if self._url.startswith("ssh") else f"GIT_ALLOW_PROTOCOL=none git {_OWN}"
        ssh = shlex.join(["ssh", *_ssh_config(home), *_SSH_OPTIONS])
        self._env = _clean_environment(
            environ, GIT_TERMINAL_PROMPT="0", GIT_SSH_COMMAND=ssh, GIT_DIR=str(self._clone),
            GIT_INDEX_FILE=str(self._clone / "roam.index"), GIT_AUTHOR_NAME="yester",
            GIT_AUTHOR_EMAIL="yester@localhost", GIT_COMMITTER_NAME="yester",
            GIT_COMMITTER_EMAIL="yester@localhost",
        )  # fmt: skip
        self._tip = ""

    def list_files(self) -> set[str]:
        self._fetch()
        if not self._tip:
            return set()
        rows = self._git("ls-tree", "-r", "-z", "-l", self._tip).split("\0")[:-1]
        sized = ((row.partition("\t")[0].split()[-1], row.partition("\t")[2]) for row in rows)
        return {path for size, path in sized if size.isdigit() and int(size) <= MOST_BYTES}

    def _fetch(self) -> None:
        """The branch as it is there now; only where it is another one than we have."""
        if not (self._clone / "HEAD").exists():
            self._git("init", "-q", "--bare", str(self._clone))
        there = self._git("ls-remote", *self._serve("upload"), self._url, _BRANCH).split()
        tip = there[0] if there else ""
        have = self._git("for-each-ref", "--format=%(objectname)", _BRANCH).strip()
        if tip and tip != have:
            words = (*self._serve("upload"), "--no-tags", self._url, f"+{_BRANCH}:{_BRANCH}")
            self._git("fetch", "-q", *words)
        self._tip = tip

    def _serve(self, what: str) -> Sequence[str]:
        return [f"--{what}-pack={self._serving} {what}-pack"] if self._serving else []

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        if not self._tip:
            return {}
        asked = "".join(f"{self._tip}:{path}\n" for path in paths).encode()
        out, found, at = self._read_git("cat-file", "--batch", given=asked), dict[str, bytes](), 0
        for path in paths:
            end = out.index(b"\n", at)
            words = out[at:end].rsplit(b" ", 2)
            at = end + 1
            if words[-1] != b"missing":
                size = int(words[-1])
                found[path], at = out[at : at + size], at + size + 1
        return found

    def write_files(self, files: Mapping[str, bytes]) -> None:
        self._change(files, ())

    def remove_files(self, paths: Collection[str]) -> None:
        self._change({}, paths)

    def _change(self, files: Mapping[str, bytes], gone: Collection[str]) -> None:
        blobs = {
            path: self._git("hash-object", "-w", "--stdin", given=data).strip()
            for path, data in files.items()
        }
        for _ in range(_ATTEMPTS):
            self._fetch()
            self._git("read-tree", *([self._tip] if self._tip else ["--empty"]))
            rows = "".join(f"100644 {blob}\t{path}\0" for path, blob in blobs.items())
            rows += "".join(f"0 {'0' * 40}\t{path}\0" for path in gone)
            self._git("update-index", "-z", "--index-info", given=rows.encode())
            tree = self._git("write-tree").strip()
            commit = self._git("commit-tree", "-m", "yester", tree).strip()
            pushed = self._try(
                "push", "-q", *self._serve("receive"),
                f"--force-with-lease={_BRANCH}:{self._tip}", self._url, f"{commit}:{_BRANCH}",
            )  # fmt: skip
            if not pushed.returncode:
                self._git("update-ref", _BRANCH, commit)
                self._tip = commit
                return
        raise SourceError(f"{self.where}: cannot be pushed to ({_tell_failure(pushed)})")

    def _git(self, *words: str, given: bytes = b"") -> str:
        return self._read_git(*words, given=given).decode("utf-8", "replace")

    def _read_git(self, *words: str, given: bytes = b"") -> bytes:
        done = self._try(*words, given=given)
        if done.returncode:
            raise SourceError(f"{self.where}: git {words[0]}: {_tell_failure(done)}")
        return done.stdout

    def _try(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return _run_program(["git", *_OWN.split(), *words], self._home, self._env, given)
