"""Which project a folder belongs to, read from `.git` files alone: no process is started.

    git work tree         key git:HOST/OWNER/NAME (remote "origin", else the first one)
                          key dir:PATH of the repository where it has no remote
    linked work tree      its main repository
    one that is gone      the repository that its path names: X/.worktrees/NAME, X/worktrees/NAME,
                          X/.claude/worktrees/NAME, X.worktrees/NAME, X__worktrees/NAME
    submodule             a project of its own that names its parent
    no repository         key dir:PATH, name = the folder's
    the user's word       [projects] in config.toml: "~/code/api" or "git:…" = "NAME"; key name:NAME

Two repositories with the same folder name differ in their key; the store gives the later one a
longer readable name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath, PureWindowsPath

from yester.files import read_text
from yester.model import Project, replace

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_REMOTE = re.compile(r'^[ \t]*\[remote\s+"([^"]*)"\].*((?:\n(?![ \t]*\[).*)*)', re.M)
_URL = re.compile(r"^[ \t]*url[ \t]*=[ \t]*(\S(?:.*\S)?)\s*$", re.M)
_SCP = re.compile(r"^(?:[^@/\s]+@)?(?P<host>[^:/\s]+):(?!//)(?P<path>.+)$")
_SCHEME = re.compile(
    r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+)$", re.I
)
# A folder of work trees that stands beside its repository and has its name.
_BESIDE = re.compile(r"\A(?P<name>[^.].*?)(?:\.|__)worktrees")
_HOMES = ("home", "Users")
_KEYS = ("git:", "dir:", "name:")

EXCLUDED = Project("excluded:", "excluded")


class Projects:
    """Identities by folder, each looked at once. `overrides` is the user's [projects] table.

    A folder of which nothing may be kept (`refuses`) belongs to the project EXCLUDED. `private` are
    the lines of that table which say so, keys and folders. A repository names its remote itself, so
    that does not make it a private project: where the user has named folders of it, only these and
    their work trees are. Whether a folder is of a repository whose remote it names, `belongs` says.
    What is kept of a path passes through `clean`: a folder may be called by a secret.
    """

    def __init__(
        self,
        overrides: Mapping[str, str],
        refuses: Callable[[str, Project], bool] = lambda _cwd, _project: False,
        private: Iterable[str] = (),
        belongs: Callable[[str, Project], bool] = lambda _cwd, _project: True,
        was_apart: Callable[[str], bool] = lambda _path: False,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._refuses, self._belongs, self.was_apart = refuses, belongs, was_apart
        self._clean = clean
        self._names = {key: overrides[key] for key in overrides if key.startswith(_KEYS)}
        paths = [
            (Path.home() / key[2:] if key.startswith("~/") else Path(key), name)
            for key, name in overrides.items()
            if not key.startswith(_KEYS)
        ]
        # The innermost folder decides.
        self._paths = sorted(paths, key=lambda pair: -len(pair[0].parts))
        self._seen: dict[str, Project] = {}
        self._keys: dict[str, Project] = {}
        self._private: dict[str, set[str]] = {}  # key → folders of it
        for line in private:
            if line.startswith(_KEYS):
                self._private.setdefault(self.apply_names(bare_project(line)).key, set())
            else:
                found = self._find_project(str(Path(line).expanduser()))
                self._private.setdefault(found.key, set()).add(found.root)

    @property
    def private(self) -> frozenset[str]:
        """Keys of projects whose memory is shown nowhere else."""
        return frozenset(self._private)

    def by_folder(self, cwd: str) -> Project:
        if cwd not in self._seen:
            found = self._seen[cwd] = self._identify_folder(cwd)
            self._keys[found.key] = found
        return self._seen[cwd]

    def by_key(self, key: str) -> Project:
        """A project by its key: as it was met, or what the key alone tells."""
        return self._keys.get(key) or bare_project(key)

    def _identify_folder(self, cwd: str) -> Project:
        found = self._find_project(cwd)
        folders = self._private.get(found.key)
        if folders and (found.root not in folders or _linked_elsewhere(cwd)):
            found = _own_project(cwd, found)
        if self._is_refused(cwd, found):
            return EXCLUDED
        return Project(*map(self._clean, (found.key, found.name, found.root, found.parent)))

    def _find_project(self, cwd: str) -> Project:
        if named := self._named_path(cwd):
            return named
        found = identify_project(cwd)
        if found.key.startswith("git:") and not self._belongs(cwd, found):
            found = _own_project(cwd, found)
        return self.apply_names(found)

    def _is_refused(self, cwd: str, found: Project) -> bool:
        """A user who excludes a folder by its name means it also where its project has another: a
        work tree that is its repository's, a number that is called by more of its path."""
        names = [found.name]
        names += [_pure_path(cwd).name] if work_tree_place(cwd) else []
        names += [name for name in (_pure_path(found.root).name,) if name.isdigit()]
        return any(self._refuses(cwd, replace(found, name=name)) for name in names)

    def apply_names(self, project: Project) -> Project:
        """The project under the name the user gave its key or its folder, else as it is."""
        if project.key in self._names:
            return named_project(self._names[project.key], project.root)
        return (self._named_path(project.root) if project.root else None) or project

    def _named_path(self, cwd: str) -> Project | None:
        for path, name in self._paths:
            if Path(cwd) == path or path in Path(cwd).parents:
                return named_project(name, str(path))
        return None


def named_project(name: str, root: str = "") -> Project:
    """A project that is nothing but the name a person or program gave it."""
    return Project(f"name:{name}", name, root)


def bare_project(key: str) -> Project:
    """A project of which only the key is known."""
    return Project(key, readable_name(key.split(":", 1)[-1].rstrip("/").split("/")) or "unknown")


def readable_name(parts: Sequence[str]) -> str:
    """The last part of a path, with those before it while it is nothing but a number."""
    for at in reversed(range(len(parts))):
        if not parts[at].isdigit():
            return "/".join(parts[at:]).replace("//", "/")
    return "/".join(parts)


def identify_project(cwd: str) -> Project:
    """The project of a folder, which need not exist any more (its nearest repository counts)."""
    if not cwd:
        return named_project("unknown")
    for top, own, common in walk_work_trees(Path(cwd)):
        return _repository_project(top, own, common)
    if found := _owner_of_work_tree(cwd):
        return found
    name = readable_name(_pure_path(cwd).parts) if _pure_path(cwd).name else "unknown"
    return Project(f"dir:{Path(cwd)}", name, str(Path(cwd)))


def _pure_path(path: str) -> PurePath:
    return PureWindowsPath(path) if _DRIVE.match(path) else Path(path)


def find_claim(cwd: str, found: Project) -> tuple[str, str]:
    """The folder that says it is this project, and the project's key. A work tree speaks for its
    repository if that knows it, and a submodule for itself."""
    top = next((str(top) for top, _, _ in walk_work_trees(Path(cwd))), "")
    return top if top and _linked_elsewhere(cwd) else found.root, found.key


def _own_project(cwd: str, found: Project) -> Project:
    """What a folder is that is not taken for what it names: nothing but itself."""
    path, _ = find_claim(cwd, found)
    return Project(f"dir:{path}", _pure_path(path).name, path)


def _linked_elsewhere(cwd: str) -> bool:
    """Does a folder say that it is a work tree of a repository which does not know it?"""
    for top, own, common in walk_work_trees(Path(cwd)):
        known = own.parent == common / "worktrees"
        return own != common and not (
            known and Path(read_text(own / "gitdir").strip()) == top / ".git"
        )
    return False


def work_tree_place(path: str) -> tuple[PurePath, bool] | None:
    """The folder whose work tree a path lies in, as far as the path can tell, and whether nothing
    but a repository has such a folder in it."""
    for folder in _pure_path(path).parents:
        above = folder.parent
        if folder.name == ".worktrees":
            return above, True
        if folder.name == "worktrees" and above.name == ".claude":
            return above.parent, True
        if folder.name == "worktrees" and not above.name.startswith("."):  # a tool's, not a user's
            return above, False
        if beside := _BESIDE.fullmatch(folder.name):
            return folder.with_name(beside["name"]), False
    return None


def files_root(project: Project, cwd: str) -> str:
    """What the paths of a session's files are seen from: the project's root, or the work tree below
    it that the session began in, so that both agree on them."""
    return cwd if cwd and work_tree_place(cwd) else project.root or cwd


def _owner_of_work_tree(path: str) -> Project | None:
    """The repository of a work tree that is gone, with all that could have told.

    Many keep the work trees of all their repositories in one folder, at home or in another that is
    no repository: whether the place is one is looked at, unless it is gone as well.
    """
    place = work_tree_place(path)
    if place is None:
        return None
    owner, certain = place
    if owner.parent.name in _HOMES and len(owner.parts) == 3:
        return None
    if len(owner.parts) < (2 if certain else 3):
        return None
    try:
        there = Path(owner)
        if there.is_absolute() and there.is_dir() and not (there / ".git").exists():
            return None
    except OSError:
        return None
    return identify_project(str(owner))


def walk_work_trees(folder: Path) -> Iterator[tuple[Path, Path, Path]]:
    """The work trees a folder is in, the innermost first: its top, the folder of its HEAD, and the
    folder of all work trees (objects, refs, configuration)."""
    # A path of another kind of machine is relative here, and must not mean our own folder.
    for top in (folder, *folder.parents) if folder.is_absolute() else ():
        try:
            own = _git_folder(top)
            common = _common_folder(own) if own else None
        except (OSError, ValueError, RuntimeError):  # a name with a NUL, a link in a circle
            continue
        if own and common:
            yield top, own, common


def _git_folder(top: Path) -> Path | None:
    """Where the HEAD of a work tree is, or was: its `.git`, or the folder that this file names, as
    it does in a linked work tree and in a submodule."""
    mark = top / ".git"
    if mark.is_dir():
        return mark
    text = read_text(mark).strip() if mark.is_file() else ""
    if not text.startswith("gitdir:"):
        return None
    return (top / text.removeprefix("gitdir:").strip()).resolve()


def _common_folder(own: Path) -> Path | None:
    """Where the main repository is gone or elsewhere, `…/.git/worktrees/NAME` still names it."""
    if (own / "commondir").is_file():
        return (own / read_text(own / "commondir").strip()).resolve()
    if (own / "HEAD").exists():
        return own
    return own.parent.parent if own.parent.name == "worktrees" else None


def _repository_project(top: Path, own: Path, common: Path) -> Project:
    if common != own:
        return _common_project(common, common.parent if common.name == ".git" else common)
    project, parts = _common_project(own, top), own.parts
    if own != top / ".git" and ".git" in parts and "modules" in parts[parts.index(".git") :]:
        parent = Path(*parts[: parts.index(".git") + 1])
        return replace(project, parent=_common_project(parent, parent.parent).key)
    return project


def _common_project(common: Path, root: Path) -> Project:
    name = readable_name(root.parts).removesuffix(".git") if root.name else "unknown"
    url = _origin_url(common / "config")
    if url and (place := normal_remote(url)):
        return Project(f"git:{place}", name, str(root))
    return Project(f"dir:{root}", name, str(root))


def _origin_url(config: Path) -> str:
    """Of the remote "origin", else of the first one; a remote's first URL counts."""
    sections = _REMOTE.findall(read_text(config))
    urls = [(name, found[1]) for name, body in sections if (found := _URL.search(body))]
    own = (url for name, url in urls if name == "origin")
    return next(own, "") or next((url for _, url in urls), "")


def normal_remote(url: str) -> str:
    """`git@host:a/b.git`, `https://me@HOST/a/b`, `ssh://host:22/a/b/` are one place: host/a/b."""
    match = _SCHEME.match(url) or _SCP.match(url)
    if match is None:
        return ""
    path = match["path"].strip("/").removesuffix(".git").strip("/")
    return f"{match['host']}/{path}".lower() if path else ""  # hosts fold case in paths too
