"""The commands that serve others: serve (HTTP), ui (the viewer), mcp."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import click

from yester.errors import YesterError
from yester.faces.cli.app import App, pass_app
from yester.faces.cli.options import flag_option
from yester.worker.process import (
    SERVER,
    clean_environment,
    seat_holder,
    start_detached,
    take_seat,
    worker_command,
)

_STARTING, _STOPPING = 15.0, 10.0  # seconds


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65_535), default=None,
              help="Exactly this port; by default the setting http_port, or the next free one."
              )  # fmt: skip
@flag_option("--background", "Start it, say where it is, and end.")
@flag_option("--stop", "End the one that is running.", "stopping")
@click.option("--idle", type=float, default=None, hidden=True,
              help="Seconds without a question to end after.")  # fmt: skip
@pass_app
def serve_command(
    app: App, port: int | None, background: bool, stopping: bool, idle: float | None
) -> None:
    """Serve the HTTP API on 127.0.0.1, in the foreground, until it is interrupted.

    It is a process of its own: whatever is asked here, the worker that answers hooks goes on. Every
    request needs the token that stands in the file `token` in yester's folder:

        curl -H "Authorization: Bearer $(cat ~/.yester/token)" http://127.0.0.1:36363/api/search/help

    In the background it ends by itself after some hours without a question (worker_idle_minutes).
    """
    if stopping:
        pid = stop_server(app.home)
        click.echo(f"the server has ended (pid {pid})" if pid else "no server is running")
        return
    if background:
        click.echo(f"http://127.0.0.1:{start_server(app, port)}")
        return
    _ = app.store  # a damaged or newer store is said here; and there is one from now on
    wanted = app.config.number("http_port") if port is None else port
    # As with the worker, nothing of the caller's environment changes what it does.
    clean = clean_environment(os.environ)
    os.environ.clear()
    os.environ.update(clean)
    taken = take_seat(app.home, 0.05, SERVER)
    if taken is None:
        where = server_port(app.home)
        raise YesterError(
            f"the server is running already at http://127.0.0.1:{where}; end it with: "
            "yester serve --stop"
        )
    try:
        _run_server(app.home, wanted, port is not None, idle)
    finally:
        taken.leave()


def _run_server(home: Path, port: int, exactly: bool, idle: float | None) -> None:
    from yester.faces.http.app import App as Served
    from yester.faces.http.login import PROGRAM, Keys, token
    from yester.faces.http.server import listening, serve
    from yester.memory import Memory
    from yester.worker.process import Log

    os.umask(0o077)
    log = Log(home / "logs", name="serve.log")
    sock = listening(port, exactly)
    keys = Keys(token(home))
    memory = Memory(home, os.environ, who="http", origin=PROGRAM, recreates=False)

    def make_app(port: int) -> Served:
        return Served(memory, keys, port, log.say_failure)

    number = sock.getsockname()[1]
    click.echo(f"http://127.0.0.1:{number}  (token: {home / 'token'}; viewer: yester ui)")
    log.say(f"started: port {number}, pid {os.getpid()}")
    try:
        serve(home / "run", make_app, sock, idle)
    except Exception as error:  # whatever it is, it is written down before it goes on
        log.say_failure("serving", error)
        raise
    finally:
        log.say("ended")


@click.command("ui")
@flag_option("--print", "Print the link; open nothing.", "only_print")
@pass_app
def ui_command(app: App, only_print: bool) -> None:
    """Open the viewer in a browser, starting the server where it is not running.

    The link holds a code that is good for one use within a minute; the browser exchanges it for a
    token of its own, which ends with the server. Where there is no terminal it is printed alone.
    Changes made in the viewer are yours; opened from an agent's shell, they count as the agent's,
    which can neither make nor change rules.
    """
    port = start_server(app)
    from yester.faces.http.login import new_code

    link = f"http://127.0.0.1:{port}/#code={new_code(app.home, app.by().origin)}"
    click.echo(link)
    if app.terminal and not only_print:
        import webbrowser

        webbrowser.open(link)


@click.command("mcp")
@pass_app
def mcp_command(app: App) -> None:
    """Be an MCP server on standard input and output, for an agent to start.

    Tools: search, timeline, get_observations, save_memory. It needs no worker, but asks one that
    runs. It ends when the client does.
    """
    from yester.__main__ import serve_mcp

    click.get_current_context().exit(serve_mcp(app.named_home))


# --- in the background ----------------------------------------------------------------------------


def server_port(home: Path) -> int:
    """The port of the server of this home, or 0. The file alone proves nothing: after a crash
    another program may have the port, and it must not be sent a token."""
    from yester.faces.http.login import read_port

    return read_port(home / "run") if seat_holder(home, SERVER) else 0


def start_server(app: App, port: int | None = None) -> int:
    """Start the server, if there is none; its port."""
    if where := server_port(app.home):
        return where
    _ = app.store
    idle = app.config.number("worker_idle_minutes") * 60
    words = [*worker_command(app.home)[:-2], "serve", "--idle", str(idle)]
    if port is not None:
        words += ["--port", str(port)]
    process = start_detached(words, os.environ)
    deadline = time.monotonic() + _STARTING
    while time.monotonic() < deadline:
        where = server_port(app.home)
        if where and _is_answering(where):
            return where
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise YesterError(
        f"the server did not start; see {app.home / 'logs' / 'serve.log'}, or run it in the "
        "foreground: yester serve"
    )


def _is_answering(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as client:
            client.sendall(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            return client.recv(16).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def stop_server(home: Path) -> int:
    """Its process, which is no more; 0 where there was none."""
    pid = seat_holder(home, SERVER)
    if not pid:
        return 0
    os.kill(pid, signal.SIGTERM)
    free = take_seat(home, _STOPPING, SERVER)
    if free is None:
        raise YesterError(f"the server (pid {pid}) has not ended; end it with: kill -9 {pid}")
    free.leave()
    return pid
