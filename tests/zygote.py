"""Runs `yester` commands in processes of their own without starting an interpreter for each.

One process imports the command line and forks a child for every test that calls commands, and one
for each worker: a real process, with the working folder, the environment and the files it is given.
Starting Python and importing it all again took two thirds of the time of the tests that call
commands. The commands of one test that are waited for run in its child one after another: most of
what a command costs is the copying of the pages that it is the first one to touch.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import pkgutil
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yester

_NOT_FOR_COMMANDS = ("yester.faces.http", "yester.capture.hook")


def import_everything() -> None:
    """What a command may need is there before the fork, and what is read once has been read."""
    for module in pkgutil.walk_packages(yester.__path__, "yester."):
        if not module.name.startswith(_NOT_FOR_COMMANDS):
            importlib.import_module(module.name)
    from yester.redact import redact
    from yester.text.query import other_names

    redact("password: hunter2")
    other_names(("db",))


class Forked:
    """A process that a zygote has started; as of `subprocess.Popen`, but its parent is another."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self._zygote = zygote
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._zygote.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float = 30.0) -> int:
        if self.poll() is None:
            self._sleep_until_it_ends(timeout)
        code = self.poll()
        assert code is not None, f"{self.pid} has not ended in {timeout} s"
        return code

    def _sleep_until_it_ends(self, timeout: float) -> None:
        """Asking the zygote again and again would keep two processes busy."""
        if hasattr(os, "pidfd_open"):
            ends = os.pidfd_open(self.pid)  # a zombie at worst: only the zygote can bury it
            select.select([ends], [], [], timeout)
            os.close(ends)
            return
        deadline = time.monotonic() + timeout
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Zygote:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, wanted: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(
        self, words: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path
    ) -> Forked:
        """`yester WORDS`; what it prints goes into the two files."""
        wanted = {"words": words, "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)}
        return Forked(self, self.ask(wanted))

    def start_worker(self, home: Path) -> Forked:
        """`yester worker run` of this home; what it prints is lost."""
        words, lost = ["--home", str(home), "worker", "run"], Path(os.devnull)
        return self.start(words, home.parent, dict(os.environ), lost, lost)

    def call(self, words: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path) -> int:
        """The exit code of `yester WORDS`, when it has ended."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] or "none"
        wanted = {"words": words, "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)}
        return int(self.ask({"test": test, **wanted}))

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _open_streams(out: str, err: str) -> None:
    for number, name in ((0, os.devnull), (1, out), (2, err)):
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(handle, number)
        os.close(handle)


def _child(wanted: dict[str, Any]) -> int:
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    _open_streams(wanted["out"], wanted["err"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["yester", *wanted["words"]]
    from yester.__main__ import main

    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 -- as an interpreter ends
        import traceback

        traceback.print_exc()
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    return code


# They are run once before the first fork: what a command does for the first time -- compiling
# patterns, reading tables, filling the caches of the interpreter -- took a fifth of each.
_PRACTICE = (
    ("remember", "Queues are drained before a deployment."),
    ("recall", "queues"),
    ("recall", "--json", "queues"),
    ("index",),
    ("timeline",),
    ("memory", "list"),
    ("doctor",),
)


def _practise() -> None:
    """In a process that a fork of this one does not share anything with but what it has in memory:
    the folder is gone afterwards, and so are the streams that the commands have made."""
    kept = [os.dup(number) for number in range(3)]
    streams, env, cwd = (sys.stdin, sys.stdout, sys.stderr), dict(os.environ), Path.cwd()
    with TemporaryDirectory() as folder:
        lost = {"cwd": folder, "out": os.devnull, "err": os.devnull}
        own = {"PATH": os.defpath, "HOME": folder, "YESTER_EMBEDDER": "none", "TZ": "UTC"}
        for words in _PRACTICE:
            _child({"words": ["--home", f"{folder}/memory", *words], "env": own, **lost})
        os.chdir(cwd)
    for number, handle in enumerate(kept):
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin, sys.stdout, sys.stderr = streams
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    assert threading.active_count() == 1, "a fork would leave the threads behind"


class _Series:
    """A child that runs commands of one test, one after another."""

    def __init__(self, test: str) -> None:
        self.test = test
        asked, asks = os.pipe()
        answers, answered = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(asks)
            os.close(answers)
            with open(asked) as lines:
                while wanted := json.loads(lines.readline() or "null"):
                    code = _child(wanted)
                    _open_streams(os.devnull, os.devnull)  # who reads a terminal waits for its end
                    os.write(answered, b"%d\n" % code)
            os._exit(0)
        os.close(asked)
        os.close(answered)
        self._asks, self._answers = open(asks, "w"), open(answers)  # noqa: SIM115

    def call(self, wanted: str) -> int:
        self._asks.write(wanted)
        self._asks.flush()
        if answer := self._answers.readline():
            return int(answer)
        self.test = ""  # the command has taken the whole process with it
        return self._bury()

    def end(self) -> None:
        if self.test:
            self._asks.write("null\n")  # others may have the pipe: its end may never come
            self._asks.flush()
            self._bury()

    def _bury(self) -> int:
        self._asks.close()
        self._answers.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _take_terminal() -> int:
    """Commands are typed by a person, so there is a terminal behind them, wherever tests run. It
    lives as long as the other end of it, which is returned."""
    os.setsid()
    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    return keyboard


def _serve() -> None:
    _take_terminal()
    import_everything()
    _practise()
    gc.freeze()  # a collection in a child would copy every page it looks at
    series: _Series | None = None
    for line in sys.stdin:
        wanted = json.loads(line)
        answer: int | None
        if "test" in wanted:
            if series is None or series.test != wanted["test"]:
                if series:
                    series.end()
                series = _Series(wanted["test"])
            answer = series.call(line)
        elif "words" in wanted:
            answer = os.fork()
            if answer == 0:
                os._exit(_child(wanted))
        else:
            waits = "wait" in wanted
            pid = wanted["wait" if waits else "poll"]
            ended, status = os.waitpid(pid, 0 if waits else os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
