"""yester in the agents: links to a copy of the plugin in yester's home, by their descriptors.

Where an agent loads what lies in a folder of its own, one link is all: none of its files is edited,
and there is nothing to parse, to merge or to put back. Claude Code loads every folder of `skills/`
that holds a plugin's manifest, as NAME@skills-dir. Where an agent has no such folder, our entries
are merged into its JSON, or its own program is told to add them; what stood there before is kept.

A copy, because the package can move (another Python, another way of installing) and is taken away
before it is replaced, while sessions go on calling their hooks: `python3` ends with 2 where a
script is missing, and to Claude Code a 2 forbids what was to be done. In the copy a file is always
there, the old one or the new one.

installed.json in yester's home says where yester has been installed, which folders it made for
that, and what the files were like that it changed, so that nothing is left of it afterwards.
"""

from __future__ import annotations

import os
import shlex
import shutil
import site
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

import yester
from yester.agents.base import list_folders
from yester.agents.descriptors import CLAUDE_CODE, INSTALLABLE, Agent, find_agent
from yester.config import Config
from yester.errors import InstallError
from yester.files import replace_file

PLUGIN = "yester@skills-dir"
_MANIFEST = ".claude-plugin/plugin.json"
_SERVERS = ".mcp.json"
_SKILL = "skills/mem-search"
_TOLD_SECONDS = 30.0  # that an agent's own program may take


class Change(msgspec.Struct, frozen=True):
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


def read_files(home: Path, source: Path, python: str) -> dict[str, bytes]:
    """Every file that the copy should have. An agent's PATH need not have `yester`, so the copy
    starts servers by this interpreter."""
    files = {name: (source / name).read_bytes() for name in sorted(_file_names(source))}
    if _SERVERS in files:
        manifest: dict[str, Any] = msgspec.json.decode(files[_SERVERS])
        for server in manifest.get("mcpServers", {}).values():
            if server.get("command") == "yester":
                server["command"] = python
                server["args"] = [_isolation_flag(), "-m", "yester", *server.get("args", [])]
        files[_SERVERS] = _write_json(manifest)
        for agent in INSTALLABLE:
            files |= dict(_make_own_files(agent, home, files))
    return files


def _make_own_files(
    agent: Agent, home: Path, files: Mapping[str, bytes]
) -> Iterator[tuple[str, bytes]]:
    """What an agent wants to find in a folder or file of its own."""
    for name, kind in agent.setup.files.items():
        place = f"clients/{agent.name}/{name}"
        if kind == "hooks":
            yield place, _write_json(make_hooks(agent, home))
        elif kind == "manifest":
            about = {"name": "yester", "version": yester.__version__}
            yield place, _write_json(about | msgspec.json.decode(files[_SERVERS]))
        else:
            for own in [name for name in files if name.startswith(f"{_SKILL}/")]:
                yield place + own.removeprefix(_SKILL), files[own]


def make_hooks(agent: Agent, home: Path) -> dict[str, Any]:
    """The hooks of an agent in its own form. The command carries our name of the event and the
    agent's: an agent that was started inside another inherits what would tell them apart."""
    setup = agent.setup
    hooks: dict[str, list[Any]] = {}
    for theirs, ours in agent.events.items():
        command = hook_command(agent, home, ours)
        if setup.form in ("claude", "events"):
            last = setup.end_timeout if ours == "SessionEnd" else 0
            entry = {"type": "command", "command": command, "timeout": last or setup.timeout}
            hooks[theirs] = [{"hooks": [entry]}]
        elif setup.form == "copilot":
            hooks[theirs] = [{"type": "command", "bash": command, "timeoutSec": setup.timeout}]
        elif setup.form == "cursor":
            hooks[theirs] = [{"command": command}]
    if setup.form == "events":
        return hooks
    return {"hooks": hooks} if setup.form == "claude" else {"version": 1, "hooks": hooks}


def hook_command(agent: Agent, home: Path, event: str) -> str:
    script = shlex.quote(str(copy_folder(home) / "hooks" / "hook.py"))
    return f"python3 -I -S {script} {event} {agent.name}"


def _write_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


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
    return place_copy(home, read_files(home, packaged_folder(), python))


def remove_copy(home: Path) -> None:
    shutil.rmtree(copy_folder(home), ignore_errors=True)


# --- where it is installed ---------------------------------------------------------------------


class Changed(msgspec.Struct, frozen=True):
    """A file of an agent's that holds something of ours."""

    path: str
    before: str | None  # what it held before; None: it was not there
    after: str  # digest of what we left there
    ours: dict[str, Any] = {}  # what was merged into it


class Installed(msgspec.Struct, frozen=True):
    agent: str
    folder: str  # the agent's own
    made: tuple[str, ...] = ()  # folders that were not there before, outermost first
    changed: tuple[Changed, ...] = ()


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
        replace_file(path, _write_json(list(rows.values())))
    else:
        path.unlink(missing_ok=True)


class Step(msgspec.Struct, frozen=True):
    """A link of ours, a file of the user's that is to hold our entries, or, where it is neither,
    one that the agent's own program writes."""

    path: Path
    target: Path | None = None
    ours: dict[str, Any] = {}
    holds: str = ""  # by which we know that the program has written it

    @property
    def is_done(self) -> bool:
        if self.target:
            return self.path.is_symlink() and self.path.resolve() == self.target.resolve()
        if not self.ours:
            return self.path.exists() and self.holds in self.path.read_text("utf-8", "replace")
        document = _read_document(self.path)
        return bool(merge_entries(document, self.ours) == document)


class Place(msgspec.Struct, frozen=True):
    """An agent's folder, into which yester of this home is put."""

    home: Path
    agent: Agent
    folder: Path

    def steps(self) -> list[Step]:
        copy, setup = copy_folder(self.home), self.agent.setup
        steps = [Step(self._find_path(name), copy / to) for name, to in setup.links.items()]
        if setup.hooks:
            hooks = make_hooks(self.agent, self.home)
            steps.append(Step(self._find_path(setup.hooks), ours=hooks))
        if setup.servers:
            server = {**_read_server(self.home), **setup.server_fields}
            ours = {"mcpServers": {"yester": server}}
            steps.append(Step(self._find_path(setup.servers), ours=ours))
        if setup.add and shutil.which(self.agent.program):
            steps.append(Step(self._find_path(setup.changes), holds=setup.holds))
        return steps

    def links(self) -> list[Path]:
        return [self._find_path(name) for name in self.agent.setup.links]

    def _find_path(self, name: str) -> Path:
        return Path(name).expanduser() if name.startswith("~") else self.folder / name

    @property
    def recorded(self) -> Installed | None:
        return read_installed(self.home).get(str(self.folder))

    @property
    def is_installed(self) -> bool:
        return all(step.is_done for step in self.steps())


def recorded_places(home: Path) -> list[Place]:
    rows = read_installed(home).values()
    return [Place(home, find_agent(row.agent), Path(row.folder)) for row in rows]


def _read_server(home: Path) -> dict[str, Any]:
    """As it stands in the copy; nothing where that is still to come."""
    try:
        manifest = msgspec.json.decode((copy_folder(home) / _SERVERS).read_bytes())
    except FileNotFoundError:
        return {}
    server: dict[str, Any] = manifest["mcpServers"]["yester"]
    return server


def agent_folders(
    config: Config, named: Sequence[Path] = (), agent: Agent = CLAUDE_CODE
) -> list[Path]:
    """An agent's configuration folders: those the user names, else those of the settings.

    $CLAUDE_CONFIG_DIR and its like do not count: a repository can set them.
    """
    own = agent.setup.folder
    folders = named or ([Path(own)] if own else list_folders(agent, config))
    return list(dict.fromkeys(path.expanduser().absolute() for path in folders))


def plan_agent(place: Place) -> list[Change]:
    """What `install_agent` would do; InstallError where something is in its way."""
    changes = []
    for step in place.steps():
        there = step.path.exists()
        if step.target and there and not step.is_done:
            raise InstallError(
                f"{step.path} was not put there by `yester install` of {place.home}; uninstall "
                f"that yester, move it away, or keep it{_other_way(place.agent)}"
            )
        if not step.is_done:
            known = there or step.path.is_symlink()
            changes.append(Change("~" if known else "+", step.path, step.target))
    return changes


def _other_way(agent: Agent) -> str:
    if agent is not CLAUDE_CODE:
        return ""
    return f" and use: claude --plugin-dir '{packaged_folder()}'"


def install_agent(place: Place) -> None:
    """The copy must be there already."""
    plan_agent(place)  # or say what is in the way
    steps, name = place.steps(), str(place.folder)
    above = {folder for step in steps for folder in step.path.parents if not folder.exists()}
    missing = sorted(above, key=lambda path: len(path.parts))
    for path in missing:
        path.mkdir(mode=0o700)
    rows = read_installed(place.home)
    # Folders made before stay ours: the second time they are there already.
    known = rows.get(name, Installed(place.agent.name, name))
    made = tuple(dict.fromkeys([*known.made, *map(str, missing)]))
    row = Installed(place.agent.name, name, made, known.changed)
    _write_installed(place.home, rows | {name: row})
    changed = {one.path: one for one in known.changed}
    for step in steps:
        if step.is_done:
            continue
        if step.target:
            step.path.unlink(missing_ok=True)
            step.path.symlink_to(step.target)
            continue
        file = str(step.path)
        former = changed.get(file) or Changed(file, _read_text(step.path), "")
        if step.ours:
            _rewrite_document(step.path, former.ours, step.ours)
        else:
            server = _read_server(place.home)
            _run_program(place, [*place.agent.setup.add, server["command"], *server["args"]])
        after = _hash_text(_read_text(step.path) or "")
        changed[file] = Changed(file, former.before, after, step.ours)
    row = msgspec.structs.replace(row, changed=tuple(changed.values()))
    _write_installed(place.home, read_installed(place.home) | {name: row})


def list_traces(place: Place, others: Sequence[Place]) -> list[Path]:
    """What `uninstall_agent` would remove or put back."""
    shared = {link for other in others for link in other.links()}
    links = [one.path for one in place.steps() if one.target and one.is_done]
    changed = place.recorded.changed if place.recorded else ()
    return [link for link in links if link not in shared] + [Path(one.path) for one in changed]


def uninstall_agent(place: Place) -> None:
    own = place.recorded
    for one in own.changed if own else ():
        _put_back(place, one)
    rows = read_installed(place.home)
    rows.pop(str(place.folder), None)
    others = [other for other in recorded_places(place.home) if other.folder != place.folder]
    for path in list_traces(place, others):
        if path in place.links():
            path.unlink()
    for name in reversed(own.made if own else ()):
        with suppress(OSError):  # others have put something there meanwhile, or removed it
            Path(name).rmdir()
            continue
        for other in others:  # an agent that uses it as well: it goes with that one
            if any(link.is_relative_to(name) for link in other.links()):
                row = rows[str(other.folder)]
                made = tuple(sorted({*row.made, name}, key=len))
                rows[str(other.folder)] = msgspec.structs.replace(row, made=made)
    with suppress(OSError):  # made by the client for our plugin, which keeps nothing there
        (place.folder / "plugins" / "data" / "yester-skills-dir").rmdir()
    if own:
        _write_installed(place.home, rows)


# --- files that are not ours -------------------------------------------------------------------


def _read_text(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


def _hash_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _read_document(path: Path) -> dict[str, Any]:
    try:
        text = (_read_text(path) or "").strip()
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InstallError(
            f"{path} is not the JSON object it should be ({error}); mend it, and run the same again"
        ) from None


def _rewrite_document(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Our former entries out of a file of the user's, and the new ones into it."""
    document = merge_entries(remove_entries(_read_document(path), old), new)
    _replace_theirs(path, _write_json(document))


def _replace_theirs(path: Path, data: bytes) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    replace_file(path.resolve(), data, mode=mode)


def merge_entries(document: Any, ours: Any) -> Any:
    """The document with what is ours in it."""
    if isinstance(document, dict) and isinstance(ours, dict):
        mixed = {
            name: merge_entries(document[name], part) if name in document else part
            for name, part in ours.items()
        }
        return document | mixed
    if isinstance(document, list) and isinstance(ours, list):
        return document + [part for part in ours if part not in document]
    return ours


def remove_entries(document: Any, ours: Any) -> Any:
    """The document without what is ours; what has become empty by that goes as well."""
    if isinstance(document, dict) and isinstance(ours, dict):
        rest = {
            name: remove_entries(part, ours[name]) if name in ours else part
            for name, part in document.items()
        }
        return {name: part for name, part in rest.items() if part or name not in ours}
    if isinstance(document, list) and isinstance(ours, list):
        return [part for part in document if part not in ours]
    return None if document == ours else document


def _run_program(place: Place, words: Sequence[str]) -> None:
    program = shutil.which(place.agent.program)
    if not program:
        raise InstallError(
            f"{place.agent.program} is not on PATH, and it has to be asked to do this"
        )
    variable = f"{place.agent.program.upper()}_HOME"
    environ = {**os.environ, variable: str(place.folder)}
    try:
        done = subprocess.run(  # noqa: S603 -- the user's own program, with our words
            [program, *words], capture_output=True, env=environ, cwd=place.home,
            timeout=_TOLD_SECONDS, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"{program} {shlex.join(words)} could not be run ({error})") from None
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
        raise InstallError(f"{program} {shlex.join(words)} ended with {done.returncode}: {last[0]}")


def _put_back(place: Place, one: Changed) -> None:
    """A file as it was before us, where nobody has changed it since; else without our entries."""
    path = Path(one.path)
    text = _read_text(path)
    if text is None:
        return
    if _hash_text(text) != one.after:
        if one.ours:
            _rewrite_document(path, one.ours, {})
        elif place.agent.setup.remove:
            _run_program(place, place.agent.setup.remove)
    elif one.before is None:
        path.unlink()
    else:
        _replace_theirs(path, one.before.encode())


# --- Claude Code's ------------------------------------------------------------------------------


def plugin_link(folder: Path) -> Path:
    return folder / "skills" / "yester"
