"""`yester worker`: the process that takes in what the hooks leave, and answers them."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.capture.homes import record_home
from yester.capture.question import ask_worker
from yester.capture.spool import trusted_runtime
from yester.clock import format_minute
from yester.errors import StoreBusy, YesterError
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.operate import install
from yester.worker.process import (
    Seat,
    clean_environment,
    seat_holder,
    signal_holder,
    start_worker,
    take_seat,
    worker_command,
    write_launch,
    write_trouble,
)
from yester.worker.watchdog import clear_marks

_STOPPING = 15.0  # seconds a worker may take to finish what it has
_FINISHING, _HANGING = 10.0, 4.0  # the same for `stop`: one that answers, and one that does not


@click.group("worker")
def command() -> None:
    """Start, stop and look at the worker.

    Hooks only leave events in the spool; the worker takes them in and answers hooks that ask. It
    is started by the first session and ends by itself after some hours without work; the next
    prompt starts it again.
    """


@command.command("run")
@click.option("--idle", type=float, hidden=True, help="Seconds without an event to end after.")
@click.option("--hung", type=float, hidden=True, help="Seconds a step may take; 0: any time.")
@pass_app
def run(app: App, idle: float | None, hung: float | None) -> None:
    """Be the worker, in the foreground (for a service, or to look for a fault)."""
    # Nothing of the caller's environment may change what a worker does or starts, but which home.
    clean = clean_environment(os.environ)
    # Where there is nothing else, a hook or a command has started it, and nobody has typed it.
    app.records = not set(os.environ.items()) <= set(clean.items())
    _ = app.home
    os.environ.clear()
    os.environ.update(clean)
    # `status` looks at the seat by touching it, for a moment: that is nobody.
    taken = take_seat(app.home, 0.05) or _relieve(app)
    if taken is None:
        click.echo(f"the worker is running already (pid {seat_holder(app.home)})")
        return
    from yester.worker.watchdog import HUNG
    from yester.worker.worker import Worker

    os.umask(0o077)
    write_launch(app.home)
    _refresh_plugin(app.home)
    try:
        worker = Worker(
            app.home,
            trusted_runtime(os.environ, os.getuid()),
            idle,
            hung=HUNG if hung is None else hung,
        )
    except (YesterError, OSError) as error:
        _say_why(app.home, error)
        raise
    try:
        reason = worker.run()
    finally:
        worker.close()
        taken.leave()
    if reason == "new version":
        words = worker_command(app.home)
        os.execve(words[0], words, clean)  # noqa: S606 -- the same command, as installed now


def _say_why(home: Path, error: YesterError | OSError) -> None:
    """Nobody sees what a worker prints that a hook has started."""
    from yester.redact import redact
    from yester.worker.process import Log

    reason = redact(str(error))
    with suppress(OSError):
        Log(home / "logs").say(f"starting failed: {reason}")
    write_trouble(home, reason)


def _refresh_plugin(home: Path) -> None:
    """Hooks of the same version as their worker. Those of another one work as well: no matter what
    is wrong, it can wait for `doctor`."""
    with suppress(YesterError, OSError):
        # Installed by hand into this home, perhaps by 0.1.
        if install.refresh_copy(home, sys.executable):
            record_home(home, os.environ, sys.executable)


def _relieve(app: App) -> Seat | None:
    """The seat of an older worker, which finishes its batch first; a newer one keeps it."""
    from yester import __version__

    said = ask_worker(app.home / "run", f"POST /leave?version={__version__}", 1.0)
    if said is None or not msgspec.json.decode(said)["leaving"]:
        return None
    return take_seat(app.home, _STOPPING)


@command.command("start")
@pass_app
def start(app: App) -> None:
    """Start the worker in the background, if it is not running."""
    running = health(app)
    if running is not None and not _older(running):
        click.echo(f"the worker is running already (pid {running['pid']})")
        return
    _ = app.store  # a damaged or newer store is said here, not in a log
    if not start_worker(app.home, os.environ):
        raise YesterError(
            f"the worker did not start; see {app.home / 'logs' / 'worker.log'}, "
            "or run it in the foreground: yester worker run"
        )
    running = health(app) or {}
    click.echo(f"the worker is running (pid {running.get('pid')})")


def make_room(app: App) -> None:
    """A worker of an older version, if there is one, gives way to ours."""
    running = health(app)
    if running is not None and _older(running):
        start_worker(app.home, os.environ)


def _older(running: dict[str, Any]) -> bool:
    from yester import __version__
    from yester.worker.process import version_numbers

    return version_numbers(str(running.get("version"))) < version_numbers(__version__)


@command.command("stop")
@pass_app
def stop(app: App) -> None:
    """Let the worker finish what the spool holds, and end."""
    pid = end(app)
    click.echo(f"the worker has ended (pid {pid})" if pid else "no worker is running")


def end(app: App) -> int:
    """Its process, which is no more; 0 where there was none. Asked first, killed at last: a worker
    may be killed at any point without loss."""
    pid = seat_holder(app.home)
    if not pid:
        return 0
    answered = ask_worker(app.home / "run", "POST /stop", 2.0) is not None
    if not answered:
        signal_holder(app.home, pid, signal.SIGTERM)
    if _has_ended(app.home, pid, _FINISHING if answered else _HANGING):
        return pid
    if signal_holder(app.home, pid, signal.SIGKILL) and _has_ended(app.home, pid, 2.0, True):
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
        free = take_seat(home, 0.05)
        if free is not None:
            if killed:
                clear_marks(home / "run" / "working")
            free.leave()
            return True
        if seat_holder(home) not in (pid, 0):
            return True  # a session has started another one meanwhile
    return False


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_app
def status(app: App, as_json: bool) -> None:
    """Say whether the worker is running. Exit code 1: it is not."""
    found = summary(app)
    if as_json:
        print_json(found)
    elif found["running"]:
        since = format_minute(int(found["started"] * 1000)) if "started" in found else "?"
        click.echo(
            f"running since {since}: pid {found['pid']}, yester {found.get('version', '?')}, "
            f"{found.get('rss_bytes', 0) / 1e6:.0f} MB, {count(found.get('events', 0), 'event')}"
        )
    elif found["pid"]:
        click.echo(f"does not answer (pid {found['pid']}); end it with: yester worker stop")
    else:
        click.echo("not running; the next session or prompt starts it, or: yester worker start")
    if not found["running"]:
        click.get_current_context().exit(1)


@command.command("drain")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_app
def drain(app: App, as_json: bool) -> None:
    """Take in what the spool holds, now and in the foreground, and end."""
    events = 0
    deadline = time.monotonic() + 600
    while True:
        free = take_seat(app.home)
        if free is None:
            said = ask_worker(app.home / "run", "POST /drain", 600)
            if said is not None:
                told = msgspec.json.decode(said)
                events += told["events"]
                if not told["resting"]:
                    break
        else:
            try:
                taken, finished = _drain_here(app, deadline)
            finally:
                free.leave()
            events += taken
            if finished:
                break
        if time.monotonic() > deadline:
            raise StoreBusy(f"{app.home}: the store could not be written to for 10 minutes")
        time.sleep(0.05)
    if as_json:
        print_json({"events": events})
    else:
        click.echo(f"{count(events, 'event')} taken in")


def _drain_here(app: App, deadline: float) -> tuple[int, bool]:
    from yester.worker.worker import Worker

    write_launch(app.home)
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


def health(app: App) -> dict[str, Any] | None:
    said = ask_worker(app.home / "run", "GET /health", 1.0)
    return None if said is None else msgspec.json.decode(said)


def summary(app: App) -> dict[str, Any]:
    """For `status`: is it running, and if so how it is."""
    found = health(app)
    if found is None:
        return {"running": False, "pid": seat_holder(app.home) or None}
    return {"running": True, **found}
