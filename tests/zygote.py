"""Runs `yester` commands in processes of their own without starting an interpreter for each.

One process imports the command line and forks a child for every call it reads: a real process, with
the working folder, the environment and the files it is given. Starting Python and importing it all
again took two thirds of the time of the tests that call commands.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yester

_NOT_FOR_COMMANDS = ("yester.faces.http", "yester.__main__", "yester.capture.hook")


def import_everything() -> None:
    """What a command may need is there before the fork, and what is read once has been read."""
    for module in pkgutil.walk_packages(yester.__path__, "yester."):
        if not module.name.startswith(_NOT_FOR_COMMANDS):
            importlib.import_module(module.name)
    from yester.redact import redact
    from yester.text.query import other_names

    redact("password: hunter2")
    other_names(("db",))


class Zygote:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def call(self, words: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path) -> int:
        """The exit code of `yester WORDS`; what it prints goes into the two files."""
        assert self._process.stdin
        assert self._process.stdout
        wanted = {"words": words, "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)}
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _child(wanted: dict[str, Any]) -> int:
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    for number, name in ((0, os.devnull), (1, wanted["out"]), (2, wanted["err"])):
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["yester", *wanted["words"]]
    from yester.faces.cli.commands import main

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


def _serve() -> None:
    import_everything()
    gc.freeze()  # a collection in a child would copy every page it looks at
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_child(json.loads(line)))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
