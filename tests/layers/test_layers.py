"""Reading order = data flow = import direction: a module imports only from the groups above it."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent / "src" / "yester"

# group → modules and packages, as docs/explanation.md draws them; a module of a package may have a
# place of its own
GROUPS = (
    (
        "model",
        "caller",
        "spans",
        "errors",
        "libraries",
        "machine",
        "files",
        "tables",
        "config",
        "project",
        "git",
        "redact",
        "known_secrets",
        "tombstones",
        "fence",
        "clock",
    ),
    ("capture",),
    ("agents",),
    ("text",),
    ("store",),
    ("folders",),
    ("ingest",),
    ("recall",),
    ("memories",),
    ("cards",),
    ("llm",),
    (
        "operate.purge",
        "operate.backups",
        "operate.bench",
        "operate.notes",
    ),
    ("sharing",),
    ("memory",),
    ("context",),
    ("operations",),
    ("worker", "operate", "faces", "__main__"),
)
GROUP = {name: number for number, names in enumerate(GROUPS) for name in names}
_IMPORT = re.compile(
    r"^ *(?P<statement>from [\w.]+ import (?:\([^()]*\)|.*)|import [\w.]+.*)", re.M
)
MODULES = sorted(SOURCE.rglob("*.py"))


def part(path: Path) -> str:
    return place(".".join(path.relative_to(SOURCE).with_suffix("").parts))


def place(name: str) -> str:
    """The entry of GROUPS that a module belongs to: its own, else its package's."""
    inner = ".".join(name.split(".")[:2])
    return inner if inner in GROUP else name.split(".")[0]


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Line and name of what a module imports, anywhere in it. Only these statements are parsed."""
    found = []
    source = path.read_text("utf-8")
    for match in _IMPORT.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        (node,) = ast.parse(match["statement"]).body
        if isinstance(node, ast.Import):
            found += [(line, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{line}: relative import"
            if node.module in ("yester", "yester.operate"):
                found += [(line, f"{node.module}.{alias.name}") for alias in node.names]
            else:
                found.append((line, node.module or ""))
    return found


def test_a_module_imports_only_from_groups_above_it():
    for path in MODULES:
        if path.parent == SOURCE and path.name == "__init__.py":
            continue  # the front door: imports lazily, inside functions
        assert part(path) in GROUP, f"{part(path)} has no place in the reading order"
        own = GROUP[part(path)]
        for line, name in imports(path):
            other = place(name.removeprefix("yester."))
            if not name.startswith("yester.") or other == part(path) or other not in GROUP:
                continue
            # within the first group the order is that of its line
            if GROUP[other] == own == 0:
                order = GROUPS[0]
                assert order.index(other) < order.index(part(path)), f"{path}:{line}: {name}"
                continue
            assert GROUP[other] <= own, f"{path}:{line} imports {name}, which comes later"


def test_importing_yester_loads_nothing_else():
    code = (
        "import sys, yester; print([m for m in sys.modules if m.startswith('yester.')"
        " or m in ('apsw', 'click', 'msgspec')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_asking_who_the_agents_are_loads_no_reader():
    code = (
        "import sys, yester.agents.descriptors\n"
        "print([m for m in sys.modules if m.startswith('yester.') or m in ('apsw', 'msgspec')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['yester.agents', 'yester.tables', 'yester.agents.descriptors']"


def loaded_by(words: list[str], home: Path) -> tuple[str, set[str]]:
    """What `yester WORDS` prints, and the modules that were loaded in the end."""
    code = (
        f"import sys\nsys.argv = ['yester', *{words!r}]\n"
        "from yester.__main__ import main\n"
        "main()\nsys.stderr.write(' '.join(sys.modules))"
    )
    place = home / "project"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=place,
        env={"HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return done.stdout, set(done.stderr.split())


HEAVY = {"click", "msgspec", "apsw", "json", "pathlib", "typing", "dataclasses"}


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_version_and_help_load_nothing(words, tmp_path):
    printed, modules = loaded_by(words, tmp_path)
    assert "yester" in printed
    assert not modules & HEAVY


def test_recall_with_a_worker_loads_nothing(tmp_path, monkeypatch):
    run = tmp_path / ".yester" / "run"
    run.mkdir(parents=True)
    monkeypatch.chdir(run)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as worker:
        worker.bind("worker.sock")
        worker.listen(1)
        requests: list[bytes] = []

        def answer() -> None:
            client, _ = worker.accept()
            with client:
                requests.append(client.recv(1 << 16))
                client.sendall(b'HTTP/1.0 200 OK\r\nContent-Length: 13\r\n\r\n{"hits":[1]}\n')

        thread = threading.Thread(target=answer)
        thread.start()
        printed, modules = loaded_by(["recall", "--json", "why redis?"], tmp_path)
        thread.join()
    assert printed == '{"hits":[1]}\n'
    assert requests[0].startswith(b"POST /recall/print?cwd=%2f")
    assert b"words=%2d%2djson%00why%20redis%3f " in requests[0]
    assert not modules & HEAVY


def reached(module: str, seen: dict[str, None]) -> dict[str, None]:
    """Every module of ours that a module imports, anywhere in it, and those they import."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if module not in seen and path.is_file():
        seen[module] = None
        for _, name in imports(path):
            if name.startswith("yester."):
                reached(name, seen)
    return seen


def test_no_language_model_can_be_reached_from_where_a_prompt_waits():
    entrances = ("operations.context", "context.talk", "capture.ask", "capture.hook")
    found: dict[str, None] = {}
    for module in entrances:
        reached(f"yester.{module}", found)
    assert {f"yester.{module}" for module in entrances} <= set(found)
    assert [name for name in found if name.startswith(("yester.cards", "yester.llm"))] == []
    assert "yester.llm.client" in reached("yester.llm.digest", {})  # the walk works


_WITHOUT_POSIX = """
import asyncio, importlib, multiprocessing.connection, os, pkgutil, signal, socket, sys
import apsw, click, msgspec, numpy, onnxruntime, starlette.applications, tomlkit, uvicorn
import getpass, pathlib, shutil, subprocess, tempfile, webbrowser, zipfile

gone = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in gone:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in gone:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
for module, names in (
    (os, "environb fchmod fork getuid killpg mkfifo O_CLOEXEC O_NOFOLLOW O_NONBLOCK setsid"),
    (signal, "SIGALRM SIGKILL SIGHUP SIGUSR1"), (socket, "AF_UNIX SO_PEERCRED"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
_IMPORTED = """
import yester
for module in pkgutil.walk_packages(yester.__path__, "yester."):
    if module.name != "yester.capture.hook":
        importlib.import_module(module.name)
print("all")
"""


@pytest.mark.requirement("OPS-01")
def test_no_module_needs_posix_to_be_imported():
    """As on Windows, where these modules and names are missing."""
    code = _WITHOUT_POSIX + _IMPORTED
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr


# The locks of Windows are those of this system, by the name that they have there.
_CALLED = """
import fcntl, types
lock, free = fcntl.lockf, fcntl.LOCK_EX | fcntl.LOCK_NB
msvcrt = sys.modules["msvcrt"] = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
msvcrt.locking = lambda number, _, size: lock(number, free, size, os.lseek(number, 0, 1))
"""


@pytest.mark.requirement("OPS-01")
def test_without_posix_sessions_are_indexed_and_found(tmp_path, samples):
    home = ["--home", str(tmp_path / "memory")]
    head, tail = _WITHOUT_POSIX.split("gone = ")
    prelude = f"{head}{_CALLED}gone = {tail}\nsys.platform = 'win32'\n"

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        code = f"from yester.__main__ import main\nsys.argv = ['yester', *{words!r}]\nmain()"
        return subprocess.run(
            [sys.executable, "-c", prelude + code], capture_output=True, text=True, cwd=tmp_path,
            env={"HOME": str(tmp_path), "USERNAME": "sam", "YESTER_EMBEDDER": "none"},
        )  # fmt: skip

    for words in (
        ("index", str(samples)), ("remember", "Use UTC because reports broke"),
        ("forget", "5", "--yes"),
    ):  # fmt: skip
        done = call(*home, *words)
        assert done.returncode == 0, done.stderr
    assert "We dropped Redis" in call(*home, "recall", "why did we drop redis").stdout


def test_the_hook_leaves_an_agent_alone_where_there_is_no_posix():
    hook = SOURCE / "capture" / "hook.py"
    code = f"import sys, runpy; sys.modules['posix'] = None; runpy.run_path({str(hook)!r})"
    done = subprocess.run([sys.executable, "-c", code], input="{}", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
