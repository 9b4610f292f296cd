"""What runs for longer: `yester worker`, which takes in what the hooks leave and answers them,
`serve` (HTTP), `ui` (the viewer) and `mcp`; and `status`, which asks the worker."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from contextlib import chdir, closing, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click

from yester import __version__, machine
from yester.capture.homes import record_home
from yester.capture.question import ask_health, ask_worker
from yester.capture.spool import open_spool
from yester.clock import format_minute
from yester.errors import StoreBusy, UsageError, YesterError
from yester.faces.cli import status
from yester.faces.cli.app import App, Output, command, print_note, read_address
from yester.faces.cli.screen import count_noun
from yester.memory import Memory
from yester.store import is_server_url, open_gate
from yester.worker import process
from yester.worker.process import SERVER, WORKER, seat_holder, take_seat

_STARTING = 15.0  # seconds the server may take
_STOPPING = 15.0  # seconds a worker may take to finish what it has
_FINISHING, _HANGING = 10.0, 4.0  # the same for `stop`: one that answers, and one that does not
_DRAINING = 600.0
_LEAST_TOKEN = 32  # characters
_SILENT = 3.0  # seconds for which a worker that has the seat may not answer


def _clean_environment() -> None:
    """Nothing of the caller's environment may change what a process does or starts; its home is
    known by now."""
    clean = process.clean_environment(os.environ)
    os.environ.clear()
    os.environ.update(clean)


# --- the worker -----------------------------------------------------------------------------------


@command("worker run", plain=True)
def worker_run_command(app: App, idle: float | None, hung: float | None) -> None:
    """Be the worker, in the foreground (for a service, or to look for a fault)."""
    # Where there is nothing else, a hook or a command has started it, and nobody has typed it.
    app.records = not set(os.environ.items()) <= set(process.clean_environment(os.environ).items())
    _ = app.home
    _clean_environment()
    # `status` looks at the seat by touching it, for a moment: that is nobody.
    taken = take_seat(app.home, 0.05) or _relieve_older(app)
    if taken is None:
        click.echo(f"the worker is running already (pid {seat_holder(app.home)})")
        return
    from yester.worker.watchdog import HUNG
    from yester.worker.worker import Worker

    os.umask(0o077)
    machine.look_less_for_cycles()
    process.write_launch(app.home)
    _refresh_plugin(app.home)
    try:
        worker = Worker(app.home, idle, hung=HUNG if hung is None else hung)
    except (YesterError, OSError) as error:
        _record_failure(app.home, error)
        raise
    with taken, closing(worker):
        reason = worker.run()
    if reason == "new version":
        words = process.worker_command(app.home)
        os.execve(words[0], words, os.environ)  # noqa: S606 -- the same command, as installed now


def _record_failure(home: Path, error: YesterError | OSError) -> None:
    """Nobody sees what a worker prints that a hook has started."""
    from yester.redact import redact

    reason = redact(str(error))
    with suppress(OSError):
        process.Log(home / "logs").say(f"starting failed: {reason}")
    process.write_trouble(home, reason)


def _refresh_plugin(home: Path) -> None:
    """Hooks of the same version as their worker. Those of another one work as well: no matter what
    is wrong, it can wait for `doctor`."""
    from yester.operate import install

    with suppress(YesterError, OSError):
        # Installed by hand into this home, perhaps by 0.1.
        if install.refresh_copy(home, sys.executable):
            record_home(home, os.environ, sys.executable)


def _relieve_older(app: App) -> process.Seat | None:
    """The seat of an older worker, which finishes its batch first; a newer one keeps it."""
    said = ask_worker(app.home / "run", f"POST /leave?version={__version__}", 1.0)
    if said is None or not json.loads(said)["leaving"]:
        return None
    return take_seat(app.home, _STOPPING)


@command("worker start", plain=True)
def worker_start_command(app: App) -> None:
    """Start the worker in the background, if it is not running."""
    running = ask_health(app.home)
    if running is not None and not _is_older(running):
        click.echo(f"the worker is running already (pid {running['pid']})")
        return
    _ = app.store  # a damaged or newer store is said here, not in a log
    running = process.start_worker(app.home, os.environ)
    if running is None:
        raise YesterError(
            f"the worker did not start; see {app.home / 'logs' / 'worker.log'}, "
            "or run it in the foreground: yester worker run"
        )
    click.echo(f"the worker is running (pid {running['pid']})")


def replace_older_worker(app: App) -> None:
    """A worker of an older version, if there is one, gives way to ours."""
    running = ask_health(app.home)
    if running is not None and _is_older(running):
        process.start_worker(app.home, os.environ)


def _is_older(running: dict[str, Any]) -> bool:
    own = process.version_numbers(__version__)
    return process.version_numbers(str(running.get("version"))) < own


@command("worker stop", plain=True)
def worker_stop_command(app: App) -> None:
    """Let the worker finish what the spool holds, and end."""
    pid = end_process(app.home)
    click.echo(f"the worker has ended (pid {pid})" if pid else "no worker is running")


def end_process(home: Path, name: str = WORKER) -> int:
    """The process that had the seat and is no more; 0 where there was none. Asked first, killed at
    last: ours may be killed at any point without loss."""
    pid = seat_holder(home, name)
    if not pid:
        return 0
    what, kept, patience = "server", "", _FINISHING
    if name == WORKER:
        what, kept = "worker", "; what it had not taken in is still in the spool"
        answered = ask_worker(home / "run", "POST /stop", 2.0) is not None
        patience = _FINISHING if answered else _HANGING
    if patience == _HANGING or name == SERVER:
        process.signal_holder(home, pid, signal.SIGTERM, name)
    if _has_ended(home, name, pid, patience):
        return pid
    if process.signal_holder(home, pid, machine.KILL, name) and _has_ended(
        home, name, pid, 2.0, killed=True
    ):
        said = f"the {what} (pid {pid}) did not end when it was asked, so it was killed{kept}"
        print_note(said)
        return pid
    raise YesterError(
        f"{home / 'run' / name} is held by a {what} that does not end, and process {pid}, which it "
        "names, is another; find out who has it: fuser that file"
    )


def rest_worker(home: Path) -> None:
    """So that nobody else writes."""
    if end_process(home):
        print_note("the worker has ended; the next session starts it again")


def _has_ended(home: Path, name: str, pid: int, patience: float, killed: bool = False) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if free := take_seat(home, 0.05, name):
            with free:
                if killed and name == WORKER:
                    from yester.worker.watchdog import clear_marks

                    clear_marks(home / "run" / "working")
            return True
        if seat_holder(home, name) not in (pid, 0):
            return True  # a session has started another one meanwhile
    return False


@command("worker status")
def worker_status_command(app: App) -> Output:
    """Say whether the worker is running. Exit code 1: it is not."""
    found = status.describe_worker(app.home)
    if found["running"]:
        line = (
            f"running since {format_minute(int(found['started'] * 1000))}: pid {found['pid']}, "
            f"yester {found['version']}, {found['rss_bytes'] / 1e6:.0f} MB, "
            f"{count_noun(found['events'], 'event')}"
        )
    else:
        line = status.explain_silence(found)
        if not found["pid"]:
            from yester.operate.install import recorded_places

            used = any(place.is_installed for place in recorded_places(app.home))
            line += "; the next session or prompt starts it, or: yester worker start"
            if not used:
                line = "not running; no agent uses yester: yester install, or: yester worker start"
    return Output(found, [line], code=int(not found["running"]))


@command("worker drain")
def worker_drain_command(app: App) -> Output:
    """Take in what the spool holds, now and in the foreground, and end."""
    events, finished = 0, False
    answered, signs = time.monotonic(), (0, 0)
    deadline = answered + _DRAINING
    while not finished:
        taken, finished = drain_spool(app.home)
        events += taken
        worker = {"running": True} if finished else status.describe_worker(app.home)
        before, signs = signs, _signs_of_work(app.home, worker.get("pid", 0))
        if worker["running"] or not worker["pid"] or signs != before:
            answered = time.monotonic()
        if time.monotonic() > answered + _SILENT:
            raise YesterError(f"the worker {status.explain_silence(worker)}, then ask again")
        if not finished and time.monotonic() > deadline:
            raise StoreBusy(f"{app.home}: the store could not be written to for 10 minutes")
        time.sleep(0.0 if finished else 0.05)
    return Output({"events": events}, [f"{count_noun(events, 'event')} taken in"])


def _signs_of_work(home: Path, pid: int) -> tuple[int, int]:
    """What changes while a process that answers nobody, such as another drain, takes events in: how
    many wait, and its processor time where the system shows it."""
    ticks = 0
    with suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        ticks = int(words[11]) + int(words[12])
    return len(open_spool(home, os.environ).list_waiting()), ticks


def drain_spool(home: Path) -> tuple[int, bool]:
    """How many events were taken in, by us or by the worker there is, and whether that was all."""
    if not machine.HAS_WORKER:  # no hook leaves anything either
        return 0, True
    if free := take_seat(home):
        from yester.worker.worker import Worker

        process.write_launch(home)
        with free, chdir(Path.cwd()), closing(Worker(home)) as worker:
            return worker.drain(), not worker.resting
    if ask_health(home) and (said := ask_worker(home / "run", "POST /drain", _DRAINING)):
        told = json.loads(said)
        return told["events"], not told["resting"]
    return 0, False


@command("status")
def status_command(app: App) -> Output:
    """Show what the memory holds, how big it is and what waits to be taken in."""
    found = status.describe_status(app.memory)
    return Output(found, status.status_lines(app.memory, found))


@command("statusline", plain=True)
def statusline_command(app: App) -> None:
    """Print the line for an agent's status bar: what is open here, what the session was given.

    Reads the JSON that the agent passes on standard input, and asks the worker.
    """
    given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    try:
        about = json.loads(given or b"{}")
        words = {"session": str(about["session_id"]), "cwd": str(about["cwd"])}
    except (ValueError, KeyError, TypeError):
        words = {"session": "", "cwd": str(Path.cwd())}
    from urllib.parse import urlencode

    answer = ask_worker(app.home / "run", f"GET /statusline?{urlencode(words)}", 1.0)
    click.echo(answer.decode() if answer else "yester: no worker yet")


# --- the servers ----------------------------------------------------------------------------------


@command("serve", plain=True)
def serve_command(
    app: App, port: int | None, background: bool, stopping: bool, idle: float | None, **team: Any
) -> None:
    """Serve the HTTP API on 127.0.0.1, in the foreground, until it is interrupted.

    It is a process of its own: whatever is asked here, the worker that answers hooks goes on. Every
    request needs the token that stands in the file `token` in yester's folder:

        curl -H "Authorization: Bearer $(cat ~/.yester/token)" http://127.0.0.1:36363/api/search/help

    In the background it ends by itself after some hours without a question (worker_idle_minutes).

    With --database it answers many, each by a token of theirs (yester team token), and shows each
    what the database lets them see. Any number of such processes may run beside each other.
    """
    if team["database"]:
        _serve_many(app, port, **team)
        return
    if given := [name for name in ("cert", "key", "behind_proxy", "metrics_token") if team[name]]:
        raise UsageError(f"--{given[0].replace('_', '-')} goes with --database: see --help")
    if stopping:
        pid = end_process(app.home, SERVER)
        click.echo(f"the server has ended (pid {pid})" if pid else "no server is running")
        return
    if background:
        click.echo(f"http://127.0.0.1:{_start_server(app, port)}")
        return
    _ = app.store  # a damaged or newer store is said here; and there is one from now on
    wanted = app.config.number("http_port") if port is None else port
    _clean_environment()
    taken = take_seat(app.home, 0.05, SERVER)
    if taken is None:
        where = server_port(app.home)
        raise YesterError(
            f"the server is running already at http://127.0.0.1:{where}; end it with: "
            "yester serve --stop"
        )
    with taken:
        _run_server(app.home, wanted, port is not None, idle, app.database)


def _run_server(home: Path, port: int, exactly: bool, idle: float | None, database: str) -> None:
    from yester.faces.http.app import App as Served
    from yester.faces.http.login import PROGRAM, Grants, Keys, load_token
    from yester.faces.http.server import open_socket, serve

    os.umask(0o077)
    log = process.Log(home / "logs", name="serve.log")
    sock = open_socket(port, exactly)
    keys = Keys(load_token(home), Grants(home))
    memory = Memory(
        home, os.environ, who="http", origin=PROGRAM, recreates=False, database=database
    )
    number = sock.getsockname()[1]
    click.echo(f"http://127.0.0.1:{number}  (token: {home / 'token'}; viewer: yester ui)")
    log.say(f"started: port {number}, pid {os.getpid()}")
    try:
        serve(home / "run", lambda port: Served(memory, keys, port, log.say_failure), sock, idle)
    except Exception as error:  # whatever it is, it is written down before it goes on
        log.say_failure("serving", error)
        raise
    finally:
        log.say("ended")


def _serve_many(
    app: App,
    port: int | None,
    database: str,
    listen: str,
    cert: Path | None,
    key: Path | None,
    behind_proxy: bool,
    rate: int,
    metrics_token: Path | None,
) -> None:
    url = read_address(database)
    if not is_server_url(url):
        raise UsageError(f"--database {database!r}: write postgresql://USER@HOST/DATABASE")
    tls = _load_certificate(cert, key)
    _check_address(listen, bool(tls), behind_proxy)
    app.records = False  # hooks of this account are no business of a server's
    os.umask(0o077)
    app.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    gate = open_gate(url, app.home, rate / 60, max(10.0, rate / 10))
    gate.check_database()
    from yester.faces.http.server import open_socket, serve_many
    from yester.faces.http.team import TeamApp

    token = metrics_token.read_text("utf-8").strip() if metrics_token else ""
    if metrics_token and len(token) < _LEAST_TOKEN:
        raise UsageError(f"{metrics_token}: write a token of {_LEAST_TOKEN} characters or more")
    wanted = app.config.number("http_port") if port is None else port
    environ = process.clean_environment(os.environ)
    _clean_environment()
    sock = open_socket(wanted, exactly=True, address=listen)
    memory = Memory(app.home, environ, who="http", origin="agent", database=url)
    host = f"[{listen}]" if ":" in listen else listen
    where = f"http{'s' if tls else ''}://{host}:{sock.getsockname()[1]}"
    print_note(f"serving {where}, pid {os.getpid()}")  # whoever started it collects its log

    def say_failure(what: str, error: BaseException) -> None:
        print_note(process.describe_failure(what, error))

    serve_many(TeamApp(memory, gate, say_failure, metrics_token=token), sock, **tls)
    print_note("ended")


def _check_address(listen: str, encrypted: bool, behind_proxy: bool) -> None:
    """Nobody may read tokens on their way."""
    try:
        loopback = ip_address(listen).is_loopback
    except ValueError:
        raise UsageError(f"--listen {listen!r}: write an address, e.g. 0.0.0.0") from None
    if not (loopback or encrypted or behind_proxy):
        raise UsageError(
            f"--listen {listen} is reached from elsewhere, and tokens would go there unencrypted;"
            " add --cert and --key, or --behind-proxy where a proxy in front speaks TLS"
        )


def _load_certificate(cert: Path | None, key: Path | None) -> dict[str, str]:
    """As the server wants them; read once here, so that what is wrong is said."""
    if cert is None and key is None:
        return {}
    if cert is None or key is None:
        raise UsageError("--cert and --key belong together; name both")
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(f"{cert} and {key} cannot be used for TLS ({error})") from None
    return {"ssl_certfile": str(cert), "ssl_keyfile": str(key)}


@command("ui", plain=True)
def ui_command(app: App, only_print: bool) -> None:
    """Open the viewer in a browser, starting the server where it is not running.

    The link holds a code that is good for one use within a minute; the browser's tab exchanges it
    for a key of its own, which is good for 30 days; Settings in the viewer lists and locks them.
    Where there is no terminal the link is printed alone.
    Changes made in the viewer are yours; opened from an agent's shell, or without a terminal, they
    count as a program's, which can neither make nor change rules.
    """
    port = _start_server(app)
    from yester.faces.http.login import new_code

    origin = "user" if app.speaks_for_user else "agent"
    link = f"http://127.0.0.1:{port}/#code={new_code(app.home, origin)}"
    click.echo(link)
    if sys.stdout.isatty() and not only_print:
        click.launch(link)


@command("mcp", plain=True)
def mcp_command(app: App) -> None:
    """Be an MCP server on standard input and output, for an agent to start.

    Tools: search, timeline, get_observations, save_memory. It needs no worker, but asks one that
    runs. It ends when the client does.
    """
    from yester.faces.mcp.server import serve_stdio

    home = None if app.named_home is None else str(app.named_home)
    click.get_current_context().exit(serve_stdio(home))


def server_port(home: Path) -> int:
    """The port of the server of this home, or 0. The file alone proves nothing: after a crash
    another program may have the port, and it must not be sent a token."""
    from yester.faces.http.login import read_port

    return read_port(home / "run") if seat_holder(home, SERVER) else 0


def _start_server(app: App, port: int | None = None) -> int:
    """Start the server, if there is none; its port."""
    if where := server_port(app.home):
        return where
    _ = app.store
    idle = app.config.number("worker_idle_minutes") * 60
    words = [*process.worker_command(app.home)[:-2], "serve", "--idle", str(idle)]
    if port is not None:
        words += ["--port", str(port)]
    started = process.start_process(words, os.environ, lambda: _answering_port(app.home), _STARTING)
    if not started:
        raise YesterError(
            f"the server did not start; see {app.home / 'logs' / 'serve.log'}, or run it in the "
            "foreground: yester serve"
        )
    return started


def _answering_port(home: Path) -> int:
    port = server_port(home)
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as client:
            client.sendall(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            return port if client.recv(16).startswith(b"HTTP/1.1 200") else 0
    except OSError:
        return 0
