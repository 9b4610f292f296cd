"""What every test stands on: a home of its own, real files, real processes."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.zygote import Zygote

# Each run makes other examples, so that few are enough for one; before a release, have many:
# pytest --hypothesis-profile=thorough
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.register_profile("yester", _UNHURRIED, max_examples=20)
settings.register_profile("thorough", _UNHURRIED, max_examples=1000)
settings.load_profile("yester")

ROOT = Path(__file__).parent.parent
if sys.dont_write_bytecode:
    # Where no bytecode may stand beside the sources (as in many containers), every worker would
    # rewrite six thousand asserts, and every process of a test would compile yester again.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(ROOT / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
_RAM = Path("/dev/shm")
_ROOM = 2 << 30
_FOREIGN = ("YESTER_", "CLAUDE", "CODEX", "GEMINI", "COPILOT", "OPENCODE", "XDG_")


def _in_memory() -> bool:
    """Whether folders of tests may stand in memory: enough of it, and programs run there."""
    if not os.access(_RAM, os.W_OK):
        return False
    found = os.statvfs(_RAM)
    return found.f_bavail * found.f_frsize >= _ROOM and not found.f_flag & os.ST_NOEXEC


if _in_memory():
    # Every commit waits for the disk, and tests for little else.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_RAM))

_PYTHON3 = shutil.which("python3")
if _PYTHON3 and Path(_PYTHON3).read_bytes()[:2] == b"#!":
    # A script, as of pyenv, looks for Python at every start: `doctor` waits for little else.
    os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Folders whose tests are all left out by `-m "not …"` are not even imported."""
    folder = collection_path.parent == ROOT / "tests" and collection_path.name
    return (folder and f"not {folder}" in config.option.markexpr.split(" and ")) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: the garbage collector need not look at it
    again and again."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.fixture(autouse=True)
def nobodys_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's home or an agent's variables."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN) and name not in ("YESTER_KILLS", "YESTER_GOLDEN"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("YESTER_EMBEDDER", "none")  # loading a model takes longer than most tests
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home for tests that need one."""
    home = tmp_path / "user"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture(scope="session")
def zygote_of_commands() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def run(
    home: Path, tmp_path: Path, own_home: Path, zygote_of_commands: Zygote
) -> Callable[..., Ran]:
    """The real command in a process of its own, with a store of its own."""
    calls = count()

    def run(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
        printed = tmp_path.parent / f"{tmp_path.name}-printed-{next(calls)}"
        out, err = Path(f"{printed}.out"), Path(f"{printed}.err")
        code = zygote_of_commands.call(
            ["--home", str(home), *words], cwd or tmp_path, {**os.environ, **(env or {})}, out, err
        )
        return Ran(code, out.read_text("utf-8"), err.read_text("utf-8"))

    return run


@dataclass
class Transcript:
    """Writes a Claude Code transcript line by line, as the client does."""

    path: Path
    session: str = "aaaaaaaa-0000-4000-8000-000000000001"
    cwd: str = "/home/sam/code/shop"
    branch: str = "main"
    clock: int = 1_770_000_000
    count: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    def _write(self, record: dict[str, Any]) -> dict[str, Any]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
        self.lines.append(record)
        return record

    def raw(self, text: str | bytes) -> None:
        with open(self.path, "ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def base(self, kind: str, **more: Any) -> dict[str, Any]:
        self.count += 1
        self.clock += 7
        seconds = self.clock
        import datetime

        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        return {
            "parentUuid": None,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.100",
            "gitBranch": self.branch,
            "type": kind,
            "uuid": f"{self.session[:8]}-{self.count:04d}",
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            **more,
        }

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
        return self._write(self.base("user", message={"role": "user", "content": content}, **more))

    def assistant(self, *blocks: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        message = {"role": "assistant", "model": "claude-x", "content": content}
        return self._write(self.base("assistant", message=message, **more))

    def call(self, tool: str, key: str | None = None, **given: Any) -> str:
        key = key or f"toolu_{self.session[:8]}{self.count:04d}"
        self.assistant({"type": "tool_use", "id": key, "name": tool, "input": given})
        return key

    def result(self, key: str, content: Any, error: bool = False) -> None:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": key, "content": content}
        if error:
            block["is_error"] = True
        self.user([block], toolUseResult={"stdout": "not looked at"})

    def other(self, kind: str, **more: Any) -> dict[str, Any]:
        return self._write({"type": kind, "sessionId": self.session, **more})

    def talk(self, turns: int, topic: str = "checkout") -> None:
        """Turns of a plain session: prompt, answer, one command with output."""
        for turn in range(turns):
            self.user(f"Please look at the {topic} again, round {self.count} number {turn}")
            self.assistant(f"I looked at {topic} in round {self.count}: the total was wrong.")
            key = self.call("Bash", command=f"pytest tests/{topic} -k case{self.count}")
            self.result(key, f"{self.count} passed in {topic}")


@pytest.fixture
def transcript(own_home: Path) -> Callable[..., Transcript]:
    """Transcripts where Claude Code keeps them in this test's home."""

    def make(name: str = "aaaaaaaa-0000-4000-8000-000000000001", **more: Any) -> Transcript:
        folder = own_home / ".claude" / "projects" / "-home-sam-code-shop"
        return Transcript(folder / f"{name}.jsonl", session=more.pop("session", name), **more)

    return make


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 3 MB; mounting one needs rights a developer may not have."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs root to mount a small file system")
    yield folder
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], capture_output=True)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="session")
def samples() -> Path:
    return ROOT / "examples" / "sessions"


@pytest.fixture
def memory(home: Path) -> Iterator[Any]:
    import yester
    from tests.stores import with_store

    with yester.open(with_store(home)) as opened:
        yield opened
