"""What runs: the interpreter of the hooks, the worker, and what lies between the two."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from calendar import timegm
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from yester import __version__
from yester.capture.homes import find_python, is_usual, record_home, usual_home
from yester.capture.question import ask_worker
from yester.capture.spool import ENDED_WORKER, Spool, age, is_newer, trusted_runtime
from yester.doctor.finding import Finding
from yester.redact import redact
from yester.worker import launch, seat
from yester.worker.worker import release

OLDEST_PYTHON = (3, 9)  # that runs hook.py and ask.py
_OLD_EVENT = 60.0  # seconds; a worker takes an event in at once
_A_DAY = 86_400
_MAY_RUN = ("git", "claude")
_FIXING = "Run: yester doctor --fix"
_MISSING = "is not there"


def interpreter(environ: Mapping[str, str], cwd: Path) -> Iterator[Finding]:
    """Hooks are run by the python3 of the agent's PATH."""
    found = shutil.which("python3", path=environ.get("PATH"))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    fix = f"Put Python {wanted} or newer as python3 on the PATH your agent is started with."
    if found is None:
        yield Finding("python3", "problem", "not on the PATH, so hooks cannot run", fix)
        return
    version = _version_of(found, environ, cwd if cwd.exists() else Path("/"))
    shown = f"{found}, {'.'.join(map(str, version))}" if version else found
    if not version:
        yield Finding("python3", "problem", f"{found} does not run", fix)
    elif version < OLDEST_PYTHON:
        yield Finding("python3", "problem", f"{shown} is too old for the hooks", fix)
    elif "/shims/" in found:
        yield Finding(
            "python3", "note", f"{found} is a script that looks for Python at every hook",
            "Put a real python3 before it on the PATH your agent is started with.",
        )  # fmt: skip
    else:
        yield Finding("python3", "ok", shown)


def _version_of(python: str, environ: Mapping[str, str], cwd: Path) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:3])"
    try:
        done = subprocess.run(  # noqa: S603 -- as a hook would be run
            [python, "-I", "-S", "-c", code], capture_output=True, text=True, cwd=cwd,
            env=dict(environ), timeout=15,
        )  # fmt: skip
        return tuple(int(word) for word in done.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ()


def launching(home: Path, environ: Mapping[str, str], fix: bool) -> Iterator[Finding]:
    """How a session starts the worker: by run/launch, a named home's by what is recorded of it."""
    if not is_usual(home, environ):
        yield _recorded(home, environ, fix)
        return
    path = home / "run" / "launch"
    wrong = _wrong_with(path, home)
    if not wrong:
        yield Finding("launch", "ok", f"sessions start the worker by {path}")
    elif fix:
        with suppress(OSError):  # then it stays as it is, and that is said
            path.unlink(missing_ok=True)
        launch.write_launch(home)
        still = _wrong_with(path, home)
        text = f"{path} {still or f'written anew (it {wrong})'}"
        state = "problem" if still else "ok"
        yield Finding("launch", state, text, f"Make sure that you may write {path}." * bool(still))
    else:
        missing = wrong == _MISSING
        yield Finding("launch", "note" if missing else "problem", f"{path} {wrong}", _FIXING)


def _recorded(home: Path, environ: Mapping[str, str], fix: bool) -> Finding:
    record = usual_home(environ) / "homes"
    python = find_python(home, environ)
    if fix and not (python and os.access(python, os.X_OK)):
        record_home(home, environ, sys.executable)
        python = find_python(home, environ)
    if python is None:
        return Finding(
            "launch", "problem", f"hooks do not use {home}: it is not recorded in {record}",
            f"In a shell of your own, run: yester --home '{home}' status",
        )  # fmt: skip
    if not os.access(python, os.X_OK):
        return Finding(
            "launch", "problem", f"{record} names a Python that is gone: {python}", _FIXING
        )
    return Finding("launch", "ok", f"where YESTER_HOME names it, sessions start it by {python}")


def _wrong_with(path: Path, home: Path) -> str:
    try:
        words = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return _MISSING
    except (OSError, UnicodeDecodeError):
        return "cannot be read"
    if not words or not os.access(words[0], os.X_OK):
        return f"names a Python that is gone: {words[0] if words else 'none'}"
    same = "--home" in words[:-1] and Path(words[words.index("--home") + 1]).resolve()
    return "" if same == home.resolve() else "names another home"


def worker(home: Path, environ: Mapping[str, str], fix: bool) -> Iterator[Finding]:
    pid = seat.holder(home)
    said = ask_worker(home / "run", "GET /health", 1.0)
    if said is None and pid:
        yield Finding(
            "worker", "problem", f"process {pid} does not answer", "Run: yester worker stop"
        )
        return
    if said is None:
        has_launch = (home / "run" / "launch").exists()
        how = "The next session or prompt starts it." if has_launch else "Run: yester worker start"
        yield Finding("worker", "note", "not running", how)
        yield from _socket(home, fix)
        return
    health = msgspec.json.decode(said)
    if release(health["version"]) < release(__version__):
        if fix and launch.start(home, environ):
            yield Finding("worker", "ok", f"yester {health['version']} has made room")
            health = msgspec.json.decode(ask_worker(home / "run", "GET /health", 5.0) or said)
        else:
            yield Finding(
                "worker", "problem", f"runs yester {health['version']}, this is {__version__}",
                "Run: yester worker start",
            )  # fmt: skip
    yield Finding(
        "worker", "ok",
        f"pid {health['pid']}, yester {health['version']}, {health['rss_bytes'] / 1e6:.0f} MB",
    )  # fmt: skip
    yield Finding("socket", "ok", f"{home / 'run' / 'worker.sock'} answers")
    yield _children(health["pid"])


def _socket(home: Path, fix: bool) -> Iterator[Finding]:
    """Nobody holds the seat: a socket that is there was left by a worker that was killed."""
    path = home / "run" / "worker.sock"
    if not path.is_socket():
        return
    if not fix:
        yield Finding("socket", "note", f"{path} was left by a worker that was killed", _FIXING)
        return
    free = seat.take(home)
    if free is None:
        return  # a worker has come meanwhile
    path.unlink(missing_ok=True)
    free.leave()
    yield Finding("socket", "ok", f"{path} removed: nobody listened there")


def _children(pid: int) -> Finding:
    if not Path("/proc/self/task").exists():
        return Finding("children", "note", "cannot be seen on this system")
    for _ in range(4):  # one that has only just been started has its parent's name for a moment
        names = sorted(_name(child) for child in _child_ids(pid))
        strange = [name for name in names if name not in _MAY_RUN]
        if not strange:
            break
        time.sleep(0.05)
    if strange:
        return Finding(
            "children", "problem", f"the worker has started {', '.join(strange)}",
            "Run: yester worker stop, and report this: it starts nothing but git and claude.",
        )  # fmt: skip
    return Finding("children", "ok", ", ".join(names) or "none")


def _child_ids(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, path.read_text("ascii").split())
        except OSError:
            continue  # that thread has ended


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "git"  # gone already: only git is that quick


def spool(home: Path, now: int, fix: bool) -> Iterator[Finding]:
    """What hooks have left, and whether they ever could not."""
    runtime = trusted_runtime(os.environ, os.getuid())
    place = Spool(home, runtime, is_usual(home, os.environ))
    waiting = place.waiting()
    oldest = max((age(path, now / 1000) for path in waiting), default=0.0)
    foreign = sum(1 for path in waiting if is_newer(path))
    if foreign:
        yield Finding(
            "spool", "problem", f"{foreign:,} events were left by hooks of a newer yester",
            "Update yester: pip install -U yester",
        )  # fmt: skip
    if len(waiting) > foreign and oldest > _OLD_EVENT:
        yield Finding(
            "spool", "problem", f"{len(waiting):,} events wait, the oldest for {oldest:,.0f} s",
            "Run: yester worker start",
        )  # fmt: skip
    elif not foreign:
        yield Finding("spool", "ok", f"{len(waiting):,} events wait")
    reasons = place.why_bad()
    ended = [path for path in place.bad() if ENDED_WORKER in reasons.get(path.name, "")]
    if ended and fix:
        number = _try_again(home, place)
        yield Finding(
            "spool", "ok", f"put back for another try: {number:,} of {len(ended):,} events"
        )
    elif ended:
        yield from _set_aside(ended, [reasons[path.name].partition("\t")[2] for path in ended])
    if bad := [path for path in place.bad() if path not in ended]:
        yield Finding(
            "spool", "note", f"{len(bad):,} events could not be understood",
            f"They are kept in {bad[0].parent}; delete them if you do not want them.",
        )  # fmt: skip
    gap = home / "run" / "gap"
    if gap.exists() and (when := gap.stat().st_mtime) > 0:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(when))
        yield Finding(
            "gap", "problem", f"hooks could not write their events, last on {moment}",
            "Free some space, then: yester index (transcripts have what the hooks could not keep)"
            " and yester doctor --fix",
        )  # fmt: skip
        if fix:
            os.utime(gap, (0, 0))
            yield Finding("gap", "ok", "noted")


def _try_again(home: Path, place: Spool) -> int:
    """Put back what has ended the worker, without suspicion; how many events."""
    said = ask_worker(home / "run", "POST /retry", 5.0)
    if said:
        return int(msgspec.json.decode(said)["events"])
    free = seat.take(home)
    if free is not None:
        (home / "run" / "working").unlink(missing_ok=True)
        free.leave()
    return len(place.put_back())


def _set_aside(ended: list[Path], transcripts: list[str]) -> Iterator[Finding]:
    again = f"Kept in {ended[0].parent}. To have it tried again, run: yester doctor --fix"
    for transcript in sorted({*transcripts} - {""}):
        text = f"reading {transcript} {ENDED_WORKER}, so the rest of it is not read"
        yield Finding("spool", "problem", text, again)
    if number := transcripts.count(""):
        events = "1 event has" if number == 1 else f"{number:,} events have"
        were = "was" if number == 1 else "were"
        text = f"{events} ended the worker twice and {were} set aside"
        yield Finding("spool", "problem", text, again)


def log(home: Path, now: int, most: int = 3) -> Iterator[Finding]:
    """What went wrong in the last day, by the worker's own account."""
    path = home / "logs" / "worker.log"
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    wrong = [line for line in lines if " failed: " in line and _moment(line) > now / 1000 - _A_DAY]
    for line in wrong[-most:]:
        yield Finding("log", "note", redact(line)[:200], f"The log is {path}")
    if not wrong:
        yield Finding("log", "ok", "no errors in the last day")


def _moment(line: str) -> float:
    try:
        return timegm(time.strptime(line.split(" ", 1)[0], "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return 0.0
