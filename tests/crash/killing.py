"""What the crash tests share: processes to kill, events to lose, and stores to compare."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import apsw

import yester
from yester.capture.homes import record_home
from yester.store import maintenance_of

HOOK = Path(yester.__file__).parent / "capture" / "hook.py"
ZYGOTE = Path(__file__).with_name("zygote.py")
BEGAN = 1_770_000_000_000_000_000  # ns: when the stories of these tests take place


def kills(usual: int) -> int:
    """How many processes a test kills; $YESTER_KILLS can only make it more."""
    return max(usual, int(os.environ.get("YESTER_KILLS", "0")))


class Zygote:
    """Real processes that run yester, one at a time, quick to start (see zygote.py)."""

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self._said = folder / f"zygote-{time.monotonic_ns()}.err"
        self._out = folder / f"zygote-{time.monotonic_ns()}.out"
        with open(self._said, "wb") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(ZYGOTE)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
                env={**os.environ, **(environ or {})}, cwd=folder, bufsize=0,
            )  # fmt: skip
        self._heard = b""
        self.killed = 0
        assert self._line(60) == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        assert self._said.read_text() == ""

    def start(self, home: Path, *words: str, kill_at: int = 0, **environ: str) -> int:
        wanted = ["--home", str(home), *words]
        return self._begin(
            {"words": wanted, "out": str(self._out), "environ": environ, "kill_at": kill_at}
        )

    def run(self, home: Path, *words: str, **environ: str) -> Any:
        """To its end, which must be a good one; the JSON it printed."""
        self.start(home, *words, **environ)
        assert self.finish() == 0, self._said.read_text()
        return json.loads(self._out.read_text())

    def open(self, home: Path, steps: list[tuple[int, str, str]]) -> int:
        return self._begin({"open": str(home), "steps": steps})

    def _begin(self, wanted: dict[str, Any]) -> int:
        self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
        self._pid = int(self._line(60))
        self._ended: int | None = None
        return self._pid

    def wait(self, seconds: float) -> bool:
        """Has it ended by itself in this time?"""
        if self._ended is None and (said := self._line(seconds)):
            self._ended = int(said)
        return self._ended is not None

    def kill(self) -> bool:
        """SIGKILL, unless it has ended; did that end it?"""
        if self._ended is None:
            os.kill(self._pid, signal.SIGKILL)  # a zombie at worst, see zygote.py
            assert self.wait(60)
            self.killed += self._ended == -signal.SIGKILL
        return self._ended == -signal.SIGKILL

    def finish(self) -> int:
        assert self.wait(120)
        return self._ended

    def _line(self, seconds: float) -> str:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._heard:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0.0, deadline - time.monotonic())
            )
            if not ready:
                return ""
            part = os.read(self._process.stdout.fileno(), 4096)
            assert part, self._said.read_text()
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()


class Command:
    """The command as a user starts it, to be killed like a zygote's child."""

    def __init__(self, home: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "yester", "--home", str(home), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def wait(self, seconds: float) -> bool:
        try:
            return self._process.wait(seconds) is not None
        except subprocess.TimeoutExpired:
            return False

    def kill(self) -> bool:
        self._process.kill()
        assert self._process.communicate()[1] == b""
        return self._process.returncode == -signal.SIGKILL


class Commits:
    """How often others have committed to a database since we began to look."""

    def __init__(self, path: Path) -> None:
        self._path, self._db, self._last, self.seen = path, None, None, 0

    def look(self) -> int:
        try:
            self._db = self._db or read_only(self._path)
            version = self._db.execute("PRAGMA data_version").fetchone()
        except apsw.Error:
            return self.seen  # it is not there yet
        self.seen += self._last not in (None, version)
        self._last = version
        return self.seen

    def close(self) -> None:
        if self._db is not None:
            self._db.close()


def live(
    process: Zygote | Command,
    home: Path,
    rng: random.Random,
    meanwhile: Callable[[], None] = lambda: None,
) -> bool:
    """Let the process that was started live until a moment that chance chooses: some time after
    its start, its n-th commit, or the first file it takes from the spool. Was it killed there?"""
    moment = rng.choice(("start", "commit", "file"))
    deadline = time.monotonic() + (rng.uniform(0, 0.1) if moment == "start" else 1.0)
    commits, after, before = Commits(home / "yester.db"), rng.randrange(1, 4), set(waiting(home))
    while (left := deadline - time.monotonic()) > 0:
        if process.wait(min(left, rng.uniform(0, 0.001))):
            break
        if rng.random() < 0.04:
            meanwhile()
        if (moment == "commit" and commits.look() >= after) or (
            moment == "file" and before and not before <= set(waiting(home))
        ):
            process.wait(rng.choice((0.0, rng.uniform(0, 0.002), rng.uniform(0, 0.02))))
            break
    commits.close()
    return process.kill()


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """What a client tells a hook, and when."""

    event: str
    payload: dict[str, Any]
    at: int  # ns

    @property
    def data(self) -> bytes:
        return json.dumps(self.payload).encode()


def story(
    session: str,
    turns: int,
    transcript: str = "/nowhere.jsonl",
    tools: int = 3,
    start: int = BEGAN,
) -> Iterator[Told]:
    """A session as Claude Code tells it, everything in it said only once in the world."""
    clock = start
    common = {"session_id": session, "transcript_path": transcript, "cwd": "/home/sam/code/shop"}

    def told(event: str, **more: Any) -> Told:
        nonlocal clock
        clock += 137_000_000
        return Told(event, {**common, "hook_event_name": event, **more}, clock)

    yield told("SessionStart", source="startup")
    for turn in range(turns):
        token = f"{session}n{turn}"
        here = {"prompt_id": f"prompt-{token}", "permission_mode": "default"}
        yield told("UserPromptSubmit", prompt=f"Please repair the basket ask{token}", **here)
        for number in range(tools):
            word, key = f"{token}t{number}", {"tool_use_id": f"toolu_{token}t{number}"}
            given = {"command": f"pytest tests/basket -k case{word}"}
            yield told("PreToolUse", tool_name="Bash", tool_input=given, **here, **key)
            kind = (turn + number) % 5
            if kind == 3:
                yield told(
                    "PostToolUseFailure", tool_name="Bash", tool_input=given, is_interrupt=False,
                    error=f"Exit code 1\nassertion failed in case{word}", **here, **key,
                )  # fmt: skip
            elif kind == 4:
                todos = {"todos": [{"content": f"look at {word}", "status": "pending"}]}
                yield told(
                    "PostToolUse", tool_name="TodoWrite", tool_input=todos,
                    tool_response={"newTodos": []}, **here, **key,
                )  # fmt: skip
            elif kind == 2:
                yield told(
                    "PostToolUse", tool_name="Bash", tool_input={"command": f"true {word}"},
                    tool_response={"stdout": "", "stderr": ""}, **here, **key,
                )  # fmt: skip
            else:
                answer = {"stdout": f"12 passed, none failed, out{word}", "stderr": ""}
                yield told(
                    "PostToolUse", tool_name="Bash", tool_input=given, tool_response=answer,
                    **here, **key,
                )  # fmt: skip
        if turn % 7 != 5:  # some turns are interrupted, and nothing tells of it
            said = f"The basket is repaired, every test passes: end{token}"
            yield told("Stop", stop_hook_active=False, last_assistant_message=said, **here)
    yield told("SessionEnd", reason="other", prompt_id=f"prompt-{session}n{turns - 1}")


def use(number: int, output: str = "12 passed, none failed in the basket") -> Told:
    """The use of a tool that is told apart from all others by its number."""
    payload = {
        "session_id": f"hooks-{number % 3}",
        "transcript_path": "/nowhere.jsonl",
        "cwd": "/home/sam/code/shop",
        "prompt_id": f"hooks-{number % 3}-{number // 30}",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": f"pytest tests/basket -k case{number}"},
        "tool_response": {"stdout": output, "stderr": ""},
        "tool_use_id": f"toolu_hook{number:06d}",
    }
    return Told("PostToolUse", payload, 0)


def spooled(told: Told, head: str = "yester/1") -> bytes:
    """The file a hook makes of it."""
    first = [head, told.event, f"cwd={told.payload['cwd']}", "CLAUDECODE=1"]
    return "\t".join(first).encode() + b"\n" + told.data


def name_of(told: Told) -> str:
    return f"{told.at}-4711-{crc32(told.data):08x}"


def put(home: Path, name: str, data: bytes) -> str:
    """An event in the spool, as a hook leaves it there."""
    for folder in ("tmp", "new"):
        (home / "spool" / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    (home / "spool" / "tmp" / name).write_bytes(data)
    (home / "spool" / "tmp" / name).rename(home / "spool" / "new" / name)
    return name


def wake(home: Path) -> None:
    try:
        handle = os.open(home / "run" / "wake", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return  # nobody is there
    os.write(handle, b".")
    os.close(handle)


def hook(
    home: Path, told: Told, payload: Path, cwd: Path, limits: Any = None, **environ: str
) -> subprocess.Popen[bytes]:
    """The real hook in a process of its own; the payload is a file, so that nobody waits."""
    record_home(home, {"HOME": str(cwd.parent)}, sys.executable)
    with open(payload, "wb") as file:
        file.write(told.data)
    with open(payload, "rb") as file:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(HOOK), told.event],
            stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
            preexec_fn=limits,
            env={"HOME": str(cwd.parent), "PATH": os.environ["PATH"], "CLAUDECODE": "1",
                 "YESTER_HOME": str(home), **environ},
        )  # fmt: skip


def ended(process: subprocess.Popen[bytes], until: float) -> int:
    """How the hook has ended: by itself, or killed at that moment. It says nothing either way."""
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
    assert process.communicate() == (b"", b"")
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode


def waiting(home: Path) -> list[Path]:
    return sorted((home / "spool" / "new").glob("*"))


# --- stores -------------------------------------------------------------------------------------

ITEM = """i.source || ' ' || i.kind || ' ' || i.ref"""
PICTURE = {
    "items": f"""SELECT {ITEM}, i.body, i.title, i.role, i.tool, i.status, i.agent, i.actor,
        i.epoch, i.prompt_number, s.key, p.key FROM item i JOIN project p ON p.id = i.project
        LEFT JOIN session s ON s.id = i.session""",
    "events": f"""SELECT e.id, e.name, e.epoch, e.actor, e.tool, e.failed, e.skipped, e.window,
        s.key, t.key, {ITEM} FROM event e LEFT JOIN session s ON s.id = e.session
        LEFT JOIN turn t ON t.id = e.turn LEFT JOIN item i ON i.id = e.item""",
    "turns": """SELECT s.key, t.key, t.started, t.ended, t.state, t.transcript,
        (SELECT ref FROM item WHERE id = t.prompt), (SELECT ref FROM item WHERE id = t.closing)
        FROM turn t JOIN session s ON s.id = t.session""",
    "sessions": """SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.title, s.transcript
        FROM session s JOIN project p ON p.id = s.project""",
    "skipped": "SELECT agent, reason, records FROM skipped",
    "sources": "SELECT path, agent, size, offset, line, head, state FROM source",
    "muted": "SELECT session FROM muted",
    "owed starts": """SELECT s.key, o.event, o.source, o.epoch FROM owed_start o
        JOIN session s ON s.id = o.session""",
}


def read_only(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


def picture(home: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """Everything a store knows, without the numbers of its rows and what the clock said."""
    with yester.open(home) as memory:
        assert maintenance_of(memory.store).check() == []
    db = read_only(home / "yester.db")
    try:
        return {name: Counter(db.execute(sql)) for name, sql in PICTURE.items()}
    finally:
        db.close()


def unnumbered(told: dict[str, Counter[Any]]) -> dict[str, Counter[Any]]:
    """The same but for the number of the prompt an item belongs to, which depends on how much of
    the transcript had been read when its hook told of it."""
    items = Counter((*row[:9], *row[10:]) for row in told["items"].elements())
    return {**told, "items": items}


def same(one: dict[str, Counter[Any]], other: dict[str, Counter[Any]]) -> None:
    """The two stores tell the same; if not, say what differs."""
    for name, rows in one.items():
        more, less = rows - other[name], other[name] - rows
        lines = [f"+ {row}" for row in more] + [f"- {row}" for row in less]
        assert not lines, "\n".join([f"{len(lines)} {name} differ:", *sorted(lines)[:20]])


def found(home: Path, word: str) -> int:
    """How many items does keyword search find for this word?"""
    with yester.open(home) as memory:
        return len(memory.recall(f'"{word}"', k=20))
