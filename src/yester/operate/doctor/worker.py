"""What runs: the interpreter of the hooks, the worker, and what lies between the two."""

from __future__ import annotations

import os
import shutil
import sys
import time
from calendar import timegm
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from yester import __version__
from yester.capture.homes import find_python, is_usual, record_home, usual_home
from yester.capture.question import ask_health, ask_worker
from yester.capture.spool import ENDED_WORKER, FORMAT, Spool, event_age, open_spool, peek_event
from yester.operate.doctor.claude_code import time_program
from yester.operate.doctor.finding import Examination, Finding, make_finding
from yester.redact import redact
from yester.worker.process import (
    seat_holder,
    start_worker,
    take_seat,
    version_numbers,
    write_launch,
)

OLDEST_PYTHON = (3, 9)  # that runs hook.py and ask.py
_OLD_EVENT = 60.0  # seconds; a worker takes an event in at once
_A_DAY = 86_400
_LOG_LINES = 3
_MAY_RUN = ("git", "claude")
_MISSING = "is not there"


# --- the hooks' interpreter, and how they start the worker -------------------------------------


def look_at_python(case: Examination) -> list[Finding]:
    """Hooks are run by the python3 of the agent's PATH."""
    path = shutil.which("python3", path=case.environ.get("PATH"))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    if path is None:
        return [make_finding("python3.missing", oldest=oldest)]
    cwd = case.home if case.home.exists() else Path("/")
    # As a hook would be run.
    words = [path, "-I", "-S", "-c", "import sys; print(*sys.version_info[:3])"]
    printed = time_program(words, b"", cwd, case.environ).out.split()
    version = tuple(int(word) for word in printed if word.isdigit())
    name = "usable" if "/shims/" not in path else "shim"
    if version < OLDEST_PYTHON:
        name = "old" if version else "broken"
    shown = ".".join(map(str, version))
    return [make_finding(f"python3.{name}", path=path, version=shown, oldest=oldest)]


def look_at_launch(case: Examination) -> list[Finding]:
    """How a session starts the worker: by run/launch, a named home's by what is recorded of it."""
    if not is_usual(case.home, case.environ):
        return [_look_at_recorded(case)]
    path = case.home / "run" / "launch"
    wrong = _find_fault(path, case.home)

    def renew_launch() -> None:
        with suppress(OSError):  # then it stays as it is, and that is said
            path.unlink(missing_ok=True)
        write_launch(case.home)

    if not wrong:
        return [make_finding("launch.right", path=path)]
    name = "launch.missing" if wrong == _MISSING else "launch.wrong"
    if case.fix:  # shown where it was in vain
        name = "launch.unwritable"
    return [make_finding(name, renew_launch, path=path, wrong=wrong)]


def _look_at_recorded(case: Examination) -> Finding:
    record = usual_home(case.environ) / "homes"
    python = find_python(case.home, case.environ)
    if python and os.access(python, os.X_OK):
        return make_finding("launch.recorded", python=python)
    name = "launch.gone" if python else "launch.unrecorded"
    mend = partial(record_home, case.home, case.environ, sys.executable)
    return make_finding(name, mend, home=case.home, record=record, python=python)


def _find_fault(path: Path, home: Path) -> str:
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


# --- the worker --------------------------------------------------------------------------------


def look_at_worker(case: Examination) -> Iterator[Finding]:
    path, health = case.home / "run" / "worker.sock", ask_health(case.home)
    if health is None and (pid := seat_holder(case.home)):
        yield make_finding("worker.hangs", pid=pid)
        return
    if health is None:
        has_launch = (case.home / "run" / "launch").exists()
        yield make_finding("worker.idle" if has_launch else "worker.stopped")
        if path.is_socket():
            yield make_finding("socket.left", partial(_remove_socket, case.home), path=path)
        return
    version = health["version"]
    if version_numbers(version) < version_numbers(__version__):
        replace_worker = partial(start_worker, case.home, case.environ)
        yield make_finding("worker.older", replace_worker, version=version, present=__version__)
    size = health["rss_bytes"] / 1e6
    yield make_finding("worker.runs", pid=health["pid"], version=version, size=size)
    yield make_finding("socket.answers", path=path)
    yield look_at_children(health["pid"])


def _remove_socket(home: Path) -> None:
    """Where nobody holds the seat, a socket is of one that was killed."""
    if free := take_seat(home):
        with free:
            (home / "run" / "worker.sock").unlink(missing_ok=True)


def look_at_children(pid: int) -> Finding:
    if not Path("/proc/self/task").exists():
        return make_finding("children.unseen")
    for _ in range(4):  # one that has only just been started has its parent's name for a moment
        names = sorted(map(_process_name, _child_ids(pid)))
        strange = [name for name in names if name not in _MAY_RUN]
        if not strange:
            return make_finding("children.right", names=", ".join(names) or "none")
        time.sleep(0.05)
    return make_finding("children.strange", names=", ".join(strange))


def _child_ids(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # that thread has ended
            yield from map(int, path.read_text("ascii").split())


def _process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "git"  # gone already: only git is that quick


# --- what hooks have left ----------------------------------------------------------------------


def look_at_spool(case: Examination) -> Iterator[Finding]:
    spool = open_spool(case.home, case.environ)
    waiting = spool.list_waiting()
    oldest = max((event_age(path, case.now / 1000) for path in waiting), default=0.0)
    newer = sum(peek_event(path)[0] > FORMAT for path in waiting)
    if newer:
        yield make_finding("spool.newer", number=newer)
    if len(waiting) > newer and oldest > _OLD_EVENT:
        yield make_finding("spool.old", number=len(waiting), seconds=oldest)
    elif not newer:
        yield make_finding("spool.waiting", number=len(waiting))
    yield from _look_at_bad_events(case.home, spool)


def _look_at_bad_events(home: Path, spool: Spool) -> Iterator[Finding]:
    """Those set aside because the worker has ended over them, perhaps while it read a transcript,
    and those nobody understands."""
    reasons = {path: spool.load_reasons().get(path.name, "") for path in spool.list_bad()}
    ended = [why.partition("\t")[2] for why in reasons.values() if ENDED_WORKER in why]

    def put_back() -> dict[str, object]:
        if answer := ask_worker(home / "run", "POST /retry", 5.0):
            return {"number": msgspec.json.decode(answer)["events"]}
        if free := take_seat(home):
            with free:
                (home / "run" / "working").unlink(missing_ok=True)
        return {"number": len(spool.put_back())}

    say = partial(make_finding, folder=home / "spool" / "bad", ended=len(ended))
    for transcript in sorted({*ended} - {""}):
        yield say("spool.transcript", put_back, transcript=transcript, why=ENDED_WORKER)
    if number := ended.count(""):
        yield say("spool.event" if number == 1 else "spool.events", put_back, number=number)
    if number := len(reasons) - len(ended):
        yield say("spool.not_understood", number=number)


def look_at_gap(case: Examination) -> Iterator[Finding]:
    """Could hooks ever not write their events?"""
    gap = case.home / "run" / "gap"
    when = gap.stat().st_mtime if gap.exists() else 0
    if when > 0:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(when))
        yield make_finding("gap.open", partial(os.utime, gap, (0, 0)), moment=moment)


def look_at_log(case: Examination) -> Iterator[Finding]:
    """What went wrong in the last day, by the worker's own account."""
    path = case.home / "logs" / "worker.log"
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    since = case.now / 1000 - _A_DAY
    failures = [line for line in lines if " failed: " in line and _log_moment(line) > since]
    for line in failures[-_LOG_LINES:]:
        yield make_finding("log.failure", line=redact(line)[:200], path=path)
    if not failures:
        yield make_finding("log.quiet")


def _log_moment(line: str) -> float:
    try:
        return timegm(time.strptime(line.split(" ", 1)[0], "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return 0.0
