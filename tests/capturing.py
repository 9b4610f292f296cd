"""What the tests of capture share: hooks as a client runs them, payloads, and stand-in workers."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yester.capture.homes import record_home
from yester.capture.spool import Spooled, read_event

ROOT = Path(__file__).parent.parent
HOOK = ROOT / "src" / "yester" / "capture" / "hook.py"
# Where no `yester` lies beside it: a hook would start that one.
BARE = getattr(sys, "_base_executable", sys.executable)
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
    "PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "Stop", "SessionEnd",
)  # fmt: skip
# The script where the system knows this user under another home, so that no test writes into the
# developer's own or starts the yester that is installed there.
ANOTHER_USER = """
import sys
class pwd:
    class entry:
        pw_dir = sys.argv[1]
    getpwuid = staticmethod(lambda uid: pwd.entry)
sys.modules["pwd"] = pwd
del sys.argv[1], sys.argv[0]
__file__ = sys.argv[0]
exec(compile(open(__file__).read(), __file__, "exec"))
"""
SESSION = "aaaaaaaa-0000-4000-8000-000000000001"
_DROP_CAPABILITY, _OVERRIDE_MODES = 24, 1


@dataclass
class Hooked:
    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def silent(self) -> bool:
        return (self.code, self.out, self.err) == (0, b"", b"")


def hook(
    *words: str,
    cwd: Path,
    payload: bytes | dict[str, Any] = b"{}",
    env: dict[str, str] | None = None,
    python: str = BARE,
    script: Path = HOOK,
    passwd_home: Path = Path("/nonexistent"),
    before: Callable[[], None] | None = None,
) -> Hooked:
    """`python -I -S hook.py WORDS` with exactly this environment, as a client would run it."""
    command = [python, "-I", "-S", "-c", ANOTHER_USER, str(passwd_home), str(script), *words]
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    began = time.monotonic()
    done = subprocess.run(
        command, input=data, capture_output=True, cwd=cwd, env=env or {}, timeout=60,
        preexec_fn=before,
    )  # fmt: skip
    return Hooked(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def modes_count() -> None:
    """For `before`: root, too, may not write where a folder's mode forbids it."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_DROP_CAPABILITY, _OVERRIDE_MODES, 0, 0, 0)


def put_python(folder: Path) -> None:
    """A `python3` for hooks that finds no yester: neither beside itself nor in the account that the
    system knows, which may be a developer's own."""
    folder.mkdir(exist_ok=True)
    script = folder / "python3"
    words = shlex.join([BARE, "-I", "-S", "-c", ANOTHER_USER, "/nonexistent"])
    missing = f'[ -f "$3" ] || exec {BARE} "$@"'
    script.write_text(f'#!/bin/sh\n{missing}\nshift 2\nexec {words} "$@"\n')
    script.chmod(0o755)


def made(home: Path) -> Path:
    """A home as a hook makes it."""
    for folder in ("", "run", "spool", "spool/tmp", "spool/new"):
        (home / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def use_home(home: Path, user: Path, python: str = sys.executable) -> Path:
    """A home as a command of this user makes it one that hooks use where $YESTER_HOME names it."""
    record_home(made(home), {"HOME": str(user)}, python)
    return home


def installed(account: Path) -> Path:
    """The account has the package, as far as a hook can see; what it starts does nothing."""
    script = account / ".local" / "bin" / "yester"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def waiting(home: Path) -> list[Spooled]:
    """What the hooks have left, in order."""
    return [read_event(path) for path in sorted((home / "spool" / "new").glob("*"))]


def leave(home: Path, *events: Spooled) -> None:
    """Put events into the spool, as hooks do."""
    for one in events:
        words = ["yester/1", one.event, f"cwd={one.cwd}", *map("=".join, one.hints.items())]
        path = made(home) / "spool" / "tmp" / one.id
        path.write_bytes("\t".join(words).encode() + b"\n" + one.payload)
        path.rename(home / "spool" / "new" / one.id)


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


@contextmanager
def worker_that(home: Path, serve: Callable[[socket.socket], None]) -> Iterator[list[bytes]]:
    """Something that listens where the worker would; yields the requests it has got."""
    asked: list[bytes] = []
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = Path.cwd()
    os.chdir(home / "run")  # the name of a socket must be short
    try:
        listening.bind("worker.sock")
    finally:
        os.chdir(here)
    listening.listen(16)
    ended = threading.Event()
    kept: list[socket.socket] = []

    def accept() -> None:
        while True:
            client, _ = listening.accept()
            kept.append(client)
            if ended.is_set():
                return
            client.settimeout(5)
            try:
                asked.append(client.recv(4096))
                serve(client)
            except OSError:
                pass  # the hook has gone

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        ended.set()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
            os.chdir(home / "run")
            try:
                last.connect("worker.sock")
            finally:
                os.chdir(here)
        thread.join(10)
        for client in kept:
            client.close()
        listening.close()
        (home / "run" / "worker.sock").unlink()


def connected(home: Path) -> socket.socket:
    """A hook's end of the worker's socket, in the test's hands."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(10)
    here = Path.cwd()
    os.chdir(home / "run")
    try:
        client.connect("worker.sock")
    finally:
        os.chdir(here)
    return client


def within(seconds: float, run: Callable[[], Hooked], attempts: int = 4) -> Hooked:
    """What a hook did that must be quick; one that a busy machine has kept waiting runs again."""
    for _ in range(attempts):
        if (done := run()).seconds < seconds:
            return done
    raise AssertionError(f"it took {done.seconds:.2f} s, not {seconds} s")


def answered(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.0 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def until(true: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for something another process does; what `true` gave when it was."""
    deadline, pause = time.monotonic() + seconds, 0.004
    while not (found := true()):
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(pause)
        pause = min(pause * 1.2, 0.025)  # who asks all the time takes it from who is asked
    return found


@dataclass
class Told:
    """A session of Claude Code as its hooks tell it: payloads, and events as they lie in a spool.

    Every event is a second after the one before.
    """

    session: str = SESSION
    cwd: str = "/home/sam/code/shop"
    transcript: str = ""
    turn: str = "turn-1"
    clock: int = 1_770_000_000_000
    count: int = 0

    def payload(self, event: str, **more: Any) -> dict[str, Any]:
        told = {
            "session_id": self.session, "transcript_path": self.transcript, "cwd": self.cwd,
            "hook_event_name": event, "prompt_id": self.turn, "permission_mode": "default",
        }  # fmt: skip
        if event == "SessionStart":
            del told["prompt_id"]
        return {**told, **more}

    def event(
        self, event: str, hints: dict[str, str] | None = None, after: int = 1_000, **more: Any
    ) -> Spooled:
        self.clock += after
        self.count += 1
        hints = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": self.cwd, **(hints or {})}
        name = f"{self.clock}000000-{self.count}-{self.session[:4]}"
        data = json.dumps(self.payload(event, **more)).encode()
        return Spooled(name, event, self.cwd, hints, data)

    def prompt(self, text: str, turn: str = "", **more: Any) -> Spooled:
        self.turn = turn or self.turn
        return self.event("UserPromptSubmit", prompt=text, **more)

    def ran(self, command: str, output: str = "", key: str = "", **more: Any) -> Spooled:
        return self.tool("Bash", {"command": command}, _printed(output), key, **more)

    def tool(self, name: str, given: Any, response: Any, key: str = "", **more: Any) -> Spooled:
        key = key or f"toolu_{self.session[:8]}{self.count:04d}"
        return self.event(
            "PostToolUse", tool_name=name, tool_input=given, tool_response=response,
            tool_use_id=key, duration_ms=5, **more,
        )  # fmt: skip

    def failed(self, command: str, error: str, key: str = "", **more: Any) -> Spooled:
        key = key or f"toolu_{self.session[:8]}{self.count:04d}"
        more = {"is_interrupt": False, **more}
        return self.event(
            "PostToolUseFailure", tool_name="Bash", tool_input={"command": command},
            tool_use_id=key, error=error, duration_ms=5, **more,
        )  # fmt: skip

    def stop(self, text: str, **more: Any) -> Spooled:
        return self.event("Stop", stop_hook_active=False, last_assistant_message=text, **more)


def _printed(stdout: str) -> dict[str, Any]:
    return {
        "stdout": stdout, "stderr": "", "interrupted": False, "isImage": False,
        "noOutputExpected": False,
    }  # fmt: skip
