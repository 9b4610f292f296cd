"""How the worker is started: by a hook of SessionStart or of a prompt, which reads
run/launch, or by the command.

Either way it begins in a session of its own, without our files, folder and environment: a
repository can put variables into an agent's hooks, and PATH or PYTHONPATH would be enough.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from yester.agents.descriptors import detect_agent
from yester.capture.homes import account_folder
from yester.capture.question import ask_worker
from yester.capture.rules import replace_file
from yester.capture.spool import trusted_runtime

PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"


def words(home: Path) -> list[str]:
    """The command line of the worker of this home; -P: nothing is imported from where it runs."""
    return [sys.executable, "-P", "-m", "yester", "--home", str(home), "worker", "run"]


def write_launch(home: Path) -> None:
    """run/launch for the hooks, one word a line; untouched where it is right already."""
    path = home / "run" / "launch"
    text = "".join(f"{word}\n" for word in words(home))
    try:
        if path.read_text("utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    with suppress(OSError):  # no room, or not ours to write: sessions do without it
        replace_file(path, text)


def tell_trouble(home: Path, reason: str) -> None:
    """run/trouble: why the worker cannot start, ready for the hook of a session that has started
    it, which prints the file as it is."""
    told = {
        "systemMessage": f"yester: the worker cannot start ({reason}), so nothing is remembered "
        "for this session yet. Run: yester doctor"
    }
    with suppress(OSError):
        replace_file(home / "run" / "trouble", msgspec.json.encode(told).decode())


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    clean = {
        "HOME": str(account_folder(environ, detect_agent(environ) != "")),
        "PATH": PATH,
        "LANG": "C.UTF-8",
    }
    if environ.get("YESTER_EMBEDDER") == "none":
        clean["YESTER_EMBEDDER"] = "none"
    if runtime := trusted_runtime(environ, os.getuid()):
        clean["XDG_RUNTIME_DIR"] = str(runtime)
    return clean


def start(home: Path, environ: Mapping[str, str], patience: float = 10.0) -> bool:
    """Start the worker and wait until it answers; False if it does not in time."""
    write_launch(home)
    process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
        words(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment(environ),
        start_new_session=True,
        umask=0o077,
    )
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if ask_worker(home / "run", "GET /health", 1.0) is not None:
            return True
        if process.poll() is not None and process.returncode != 0:
            return False
        time.sleep(0.01)
    return False
