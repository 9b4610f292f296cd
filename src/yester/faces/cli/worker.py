"""`yester worker`, the process that takes in what the hooks leave and answers them; and status."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from yester.capture.question import ask_worker
from yester.errors import StoreBusy, YesterError
from yester.faces.cli.app import App, Output, command, pass_app
from yester.faces.cli.screen import count_noun
from yester.faces.cli.status import ask_health, describe_status, describe_worker, status_lines
from yester.worker import process

_STOPPING = 15.0  # seconds a worker may take to finish what it has
_FINISHING, _HANGING = 10.0, 4.0  # the same for `stop`: one that answers, and one that does not


@click.group("worker")
def worker_command() -> None:
    """Start, stop and look at the worker.

    Hooks only leave events in the spool; the worker takes them in and answers hooks that ask. It
    is started by the first session and ends by itself after some hours without work; the next
    prompt starts it again.
    """


@worker_command.command("run")
@click.option("--idle", type=float, hidden=True, help="Seconds without an event to end after.")
@click.option("--hung", type=float, hidden=True, help="Seconds a step may take; 0: any time.")
@pass_app
def run_command(app: App, idle: float | None, hung: float | None) -> None:
    """Be the worker, in the foreground (for a service, or to look for a fault)."""
    # Nothing of the caller's environment may change what a worker does or starts, but which home.
    clean = process.clean_environment(os.environ)
    # Where there is nothing else, a hook or a command has started it, and nobody has typed it.
    app.records = not set(os.environ.items()) <= set(clean.items())
    _ = app.home
    os.environ.clear()
    os.environ.update(clean)
    # `status` looks at the seat by touching it, for a moment: that is nobody.
    taken = process.take_seat(app.home, 0.05) or _relieve_older(app)
    if taken is None:
        click.echo(f"the worker is running already (pid {process.seat_holder(app.home)})")
        return
    from yester.capture.spool import trusted_runtime
    from yester.worker.watchdog import HUNG
    from yester.worker.worker import Worker

    os.umask(0o077)
    process.write_launch(app.home)
    _refresh_plugin(app.home)
    try:
        runtime = trusted_runtime(os.environ, os.getuid())
        worker = Worker(app.home, runtime, idle, hung=HUNG if hung is None else hung)
    except (YesterError, OSError) as error:
        _record_failure(app.home, error)
        raise
    try:
        reason = worker.run()
    finally:
        worker.close()
        taken.leave()
    if reason == "new version":
        words = process.worker_command(app.home)
        os.execve(words[0], words, clean)  # noqa: S606 -- the same command, as installed now


def _record_failure(home: Path, error: YesterError | OSError) -> None:
    """Nobody sees what a worker prints that a hook has started."""
    from yester.redact import redact
    from yester.worker.process import Log

    reason = redact(str(error))
    with suppress(OSError):
        Log(home / "logs").say(f"starting failed: {reason}")
    process.write_trouble(home, reason)


def _refresh_plugin(home: Path) -> None:
    """Hooks of the same version as their worker. Those of another one work as well: no matter what
    is wrong, it can wait for `doctor`."""
    from yester.capture.homes import record_home
    from yester.operate import install

    with suppress(YesterError, OSError):
        # Installed by hand into this home, perhaps by 0.1.
        if install.refresh_copy(home, sys.executable):
            record_home(home, os.environ, sys.executable)


def _relieve_older(app: App) -> process.Seat | None:
    """The seat of an older worker, which finishes its batch first; a newer one keeps it."""
    from yester import __version__

    said = ask_worker(app.home / "run", f"POST /leave?version={__version__}", 1.0)
    if said is None or not json.loads(said)["leaving"]:
        return None
    return process.take_seat(app.home, _STOPPING)


@worker_command.command("start")
@pass_app
def start_command(app: App) -> None:
    """Start the worker in the background, if it is not running."""
    running = ask_health(app.home)
    if running is not None and not _is_older(running):
        click.echo(f"the worker is running already (pid {running['pid']})")
        return
    _ = app.store  # a damaged or newer store is said here, not in a log
    if not process.start_worker(app.home, os.environ):
        raise YesterError(
            f"the worker did not start; see {app.home / 'logs' / 'worker.log'}, "
            "or run it in the foreground: yester worker run"
        )
    running = ask_health(app.home) or {}
    click.echo(f"the worker is running (pid {running.get('pid')})")


def replace_older_worker(app: App) -> None:
    """A worker of an older version, if there is one, gives way to ours."""
    running = ask_health(app.home)
    if running is not None and _is_older(running):
        process.start_worker(app.home, os.environ)


def _is_older(running: dict[str, Any]) -> bool:
    from yester import __version__

    own = process.version_numbers(__version__)
    return process.version_numbers(str(running.get("version"))) < own


@worker_command.command("stop")
@pass_app
def stop_command(app: App) -> None:
    """Let the worker finish what the spool holds, and end."""
    pid = end_worker(app)
    click.echo(f"the worker has ended (pid {pid})" if pid else "no worker is running")


def end_worker(app: App) -> int:
    """Its process, which is no more; 0 where there was none. Asked first, killed at last: a worker
    may be killed at any point without loss."""
    pid = process.seat_holder(app.home)
    if not pid:
        return 0
    answered = ask_worker(app.home / "run", "POST /stop", 2.0) is not None
    if not answered:
        process.signal_holder(app.home, pid, signal.SIGTERM)
    if _has_ended(app.home, pid, _FINISHING if answered else _HANGING):
        return pid
    if process.signal_holder(app.home, pid, signal.SIGKILL) and _has_ended(
        app.home, pid, 2.0, True
    ):
        click.echo(
            f"the worker (pid {pid}) did not end when it was asked, so it was killed; "
            "what it had not taken in is still in the spool",
            err=True,
        )
        return pid
    raise YesterError(
        f"{app.home / 'run' / 'worker.lock'} is held by a worker that does not end, and process "
        f"{pid}, which it names, is another; find out who has it: fuser that file"
    )


def _has_ended(home: Path, pid: int, patience: float, killed: bool = False) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        free = process.take_seat(home, 0.05)
        if free is not None:
            if killed:
                from yester.worker.watchdog import clear_marks

                clear_marks(home / "run" / "working")
            free.leave()
            return True
        if process.seat_holder(home) not in (pid, 0):
            return True  # a session has started another one meanwhile
    return False


@command("status", group=worker_command)
def worker_status_command(app: App) -> Output:
    """Say whether the worker is running. Exit code 1: it is not."""
    from yester.clock import format_minute

    found = describe_worker(app.home)
    if found["running"]:
        since = format_minute(int(found["started"] * 1000)) if "started" in found else "?"
        line = (
            f"running since {since}: pid {found['pid']}, yester {found.get('version', '?')}, "
            f"{found.get('rss_bytes', 0) / 1e6:.0f} MB, "
            f"{count_noun(found.get('events', 0), 'event')}"
        )
    elif found["pid"]:
        line = f"does not answer (pid {found['pid']}); end it with: yester worker stop"
    else:
        line = "not running; the next session or prompt starts it, or: yester worker start"
    return Output(found, [line], code=int(not found["running"]))


@command("drain", group=worker_command)
def drain_command(app: App) -> Output:
    """Take in what the spool holds, now and in the foreground, and end."""
    events = 0
    deadline = time.monotonic() + 600
    while True:
        free = process.take_seat(app.home)
        if free is None:
            said = ask_worker(app.home / "run", "POST /drain", 600)
            if said is not None:
                told = json.loads(said)
                events += told["events"]
                if not told["resting"]:
                    break
        else:
            try:
                taken, finished = _drain_spool(app, deadline)
            finally:
                free.leave()
            events += taken
            if finished:
                break
        if time.monotonic() > deadline:
            raise StoreBusy(f"{app.home}: the store could not be written to for 10 minutes")
        time.sleep(0.05)
    return Output({"events": events}, [f"{count_noun(events, 'event')} taken in"])


def _drain_spool(app: App, deadline: float) -> tuple[int, bool]:
    from yester.capture.spool import trusted_runtime
    from yester.worker.worker import Worker

    process.write_launch(app.home)
    worker = Worker(app.home, trusted_runtime(os.environ, os.getuid()))
    here = Path.cwd()
    try:
        events = worker.drain()
        while worker.resting and time.monotonic() < deadline:
            time.sleep(0.05)
            events += worker.drain()
        return events, not worker.resting
    finally:
        worker.close()
        os.chdir(here)


@command("status")
def status_command(app: App) -> Output:
    """Show what the memory holds, how big it is and what waits to be taken in."""
    status = describe_status(app.memory)
    return Output(status, status_lines(app.memory, status))
