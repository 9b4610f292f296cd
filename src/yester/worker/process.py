"""The worker as a process: the one of its home, how it is started, its log, its version.

Being the one worker of a home is an flock on run/worker.lock (and being the one server, on another
file). The kernel lets go of it when its holder dies, however it dies, so there is no stale lock and
no pid to be mistaken for another process. The file's text is for people and for `yester worker
stop`.

It is started by a hook of SessionStart or of a prompt, which reads run/launch, or by a command.
Either way it begins in a session of its own, without our files, folder and environment: a
repository can put variables into an agent's hooks, and PATH or PYTHONPATH would be enough.

Its log says what it did and where it failed, never what it captured: an exception is logged by its
kind and the places it went through; its message may quote a text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeVar

import msgspec

import yester
from yester import machine
from yester.capture.homes import account_folder
from yester.capture.question import ask_health
from yester.capture.spool import open_spool, trusted_runtime
from yester.errors import StoreBusy, StoreError
from yester.files import append_text, replace_file, update_file
from yester.store.lock import write_lock

_LATE = 60.0  # seconds for which an event waits without anything being wrong
T = TypeVar("T")
PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
WORKER, SERVER = "worker.lock", "serve.lock"
LARGEST_LOG, LOGS_KEPT = 1_000_000, 3


# --- the seat ------------------------------------------------------------------------------------


Seat = ExitStack  # left at the end of a `with`, or by `close`


def take_seat(home: Path, patience: float = 0.0, name: str = WORKER) -> Seat | None:
    """The seat, or None where another process has it for longer than `patience` seconds."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)  # the mode is that of the last one alone
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    seat = Seat()
    try:
        seat.enter_context(write_lock(home / "run" / name, patience))
    except StoreBusy:
        return None
    return seat


def seat_holder(home: Path, name: str = WORKER) -> int:
    """The process that has it, or 0. The pid in the file counts only while the lock is held."""
    try:
        handle = os.open(home / "run" / name, os.O_RDWR | machine.QUIET)
    except OSError:
        return 0
    try:
        machine.lock_file(handle, shared=True)
        return 0
    except BlockingIOError:
        text = machine.read_start(handle, 32).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)


def signal_holder(home: Path, pid: int, number: int, name: str = WORKER) -> bool:
    """A signal to the process that has the seat; False, and none is sent, where that is not `pid`.

    The lock's file names its holder a moment late, and on a full disk not at all, so the process
    must have that file open."""
    if seat_holder(home, name) != pid or not _has_file_open(pid, home / "run" / name):
        return False
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def _has_file_open(pid: int, path: Path) -> bool:
    """Where the system shows it; elsewhere the name in the file must do."""
    if not Path("/proc/self/fd").exists():
        return True
    wanted = path.stat()
    with suppress(OSError):  # it has ended
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if os.path.samestat(one.stat(), wanted):
                    return True
    return False


# --- starting ------------------------------------------------------------------------------------


def worker_command(home: Path) -> list[str]:
    """The command line of the worker of this home; -P: nothing is imported from where it runs."""
    return [sys.executable, "-P", "-m", "yester", "--home", str(home), "worker", "run"]


def _start_apart(
    words: Sequence[str], cwd: Path, environ: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """In a session of its own: it may outlive us, or have to end us."""
    null = subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603 -- our own interpreter and module
        words, stdin=null, stdout=null, stderr=null, cwd=cwd, env=environ,
        start_new_session=True, umask=0o077,
    )  # fmt: skip


def start_exchange(home: Path, command: str) -> subprocess.Popen[bytes]:
    """roam or share."""
    words = [sys.executable, "-P", "-m", "yester", "--home", str(home), command, "--quietly"]
    return _start_apart(words, home, os.environ)


def write_launch(home: Path) -> None:
    """run/launch for the hooks, one word a line; untouched where it is right already."""
    with suppress(OSError):  # no room, or not ours to write: sessions do without it
        update_file(home / "run" / "launch", "".join(f"{word}\n" for word in worker_command(home)))


def write_trouble(home: Path, reason: str) -> None:
    """run/trouble: why the worker cannot start, ready for the hook of a session that has started
    it, which prints the file as it is."""
    told = {
        "systemMessage": f"yester: the worker cannot start ({reason}), so nothing is remembered "
        "for this session yet. Run: yester doctor"
    }
    with suppress(OSError):
        replace_file(home / "run" / "trouble", msgspec.json.encode(told).decode())


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    from yester.agents.descriptors import detect_agent  # a table that who only looks need not read

    clean = {
        "HOME": str(account_folder(environ, detect_agent(environ) != "")),
        "PATH": PATH,
        "LANG": "C.UTF-8",
    }
    if environ.get("YESTER_EMBEDDER") == "none":
        clean["YESTER_EMBEDDER"] = "none"
    if runtime := trusted_runtime(environ):
        clean["XDG_RUNTIME_DIR"] = str(runtime)
    return clean


def start_process(
    words: Sequence[str],
    environ: Mapping[str, str],
    answers: Callable[[], T | None],
    patience: float,
) -> T | None:
    """Start one that outlives us and wait until it `answers`, with what it does; None where it
    fails or takes too long. One that ends well has found another, which is to answer."""
    process = _start_apart(words, Path("/"), clean_environment(environ))
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if answer := answers():
            return answer
        if process.poll() is not None and process.returncode != 0:
            break
        time.sleep(0.01)
    return None


def start_worker(
    home: Path, environ: Mapping[str, str], patience: float = 10.0
) -> dict[str, Any] | None:
    """Start the worker and wait until it answers; None if it does not in time."""
    if not machine.HAS_WORKER:
        return None
    write_launch(home)
    return start_process(worker_command(home), environ, lambda: ask_health(home), patience)


def start_if_late(home: Path, environ: Mapping[str, str]) -> None:
    """Start the worker where events have waited for a while and there is none: hooks leave them as
    they come, with whatever secrets there are, and theirs may not have been able to start it."""
    with suppress(OSError):
        first = next(iter(open_spool(home, environ).list_waiting()), None)
        if first and time.time() - first.stat().st_mtime > _LATE and not seat_holder(home):
            start_worker(home, environ, patience=0.0)


# --- the log -------------------------------------------------------------------------------------


def describe_failure(what: str, error: BaseException) -> str:
    """Where it happened, and nothing of what was at hand."""
    places = " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in reversed(extract_tb(error.__traceback__))
    )
    return f"{what} failed: {type(error).__name__} at {places or 'unknown'}"


class Log:
    def __init__(
        self, folder: Path, clock: Callable[[], float] = time.time, name: str = "worker.log"
    ) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path = folder / name
        self._clock = clock

    def say(self, text: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        with suppress(OSError):  # a full disk must not stop the worker
            self._rotate()
            append_text(self._path, f"{moment} {text}\n")

    def say_failure(self, what: str, error: BaseException) -> None:
        self.say(describe_failure(what, error))

    @contextmanager
    def survive(
        self, what: str, raises: tuple[type[Exception], ...] = (StoreError,)
    ) -> Iterator[None]:
        """One piece's fault must not stop the others: it is logged, and what stands behind this
        goes on. What is wrong with the store is raised."""
        try:
            yield
        except raises:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is
            self.say_failure(what, error)

    def _rotate(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < LARGEST_LOG:
            return
        older = [self._path.with_name(f"{self._path.name}.{n}") for n in range(LOGS_KEPT, 0, -1)]
        for path, place in zip([*older[1:], self._path], older, strict=True):
            with suppress(FileNotFoundError):
                path.replace(place)


# --- versions ------------------------------------------------------------------------------------


def installed_version() -> str:
    """The version that a new process would run."""
    try:
        text = Path(yester.__file__).read_text("utf-8")
    except OSError:
        return ""
    found = re.search(r'^__version__ = "([^"]+)"', text, re.M)
    return found[1] if found else ""


def version_numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, to see which is newer."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])
