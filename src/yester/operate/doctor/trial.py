"""A program on trial: what it is given, what it printed, how long it took."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import msgspec

from yester.agents.hooks import TRIAL
from yester.tables import load_table

Environ = Mapping[str, str]
_TRIED_SECONDS = 15.0  # the client waits 10

TRIAL_PAYLOAD: Mapping[str, Any] = {"session_id": TRIAL, **load_table("agents")["trial"]}
_VERSION = {"protocolVersion": "2025-06-18", "capabilities": {}}
_INITIALIZE = {**_VERSION, "clientInfo": {"name": "yester-trial", "version": "1"}}


class Trial(NamedTuple):
    """What a program printed, how long it took, and what was wrong."""

    out: bytes
    seconds: float
    wrong: str = ""
    silent: bool = False  # wrong because an answer should have come, and nothing did


def time_program(
    words: Sequence[str], sent: bytes, cwd: Path, environ: Environ, patience: float = _TRIED_SECONDS
) -> Trial:
    began = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 -- of our own plugin, or the user's with our words
            words, input=sent + b"\n", capture_output=True, cwd=cwd, env=dict(environ),
            timeout=patience,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Trial(b"", patience, f"did not answer and end within {patience:g} s")
    except OSError as error:
        return Trial(b"", 0.0, f"{words[0]} cannot be run ({error.strerror})")
    wrong = ""
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
        wrong = f"ended with {done.returncode}: {last[0][:200]}"
    return Trial(done.stdout, time.monotonic() - began, wrong)


def find_answer(out: bytes, number: int) -> Any:
    """The result of a JSON-RPC request in what a server printed; None where there is none."""
    for line in out.splitlines():
        with suppress(msgspec.MsgspecError):
            answer = msgspec.json.decode(line, type=dict[str, Any])
            if answer.get("id") == number and "result" in answer:
                return answer["result"]
    return None


def encode_request(method: str, number: int | None = None, params: Any = _INITIALIZE) -> bytes:
    request = {"jsonrpc": "2.0", "method": method, "params": params}
    return msgspec.json.encode(request if number is None else {**request, "id": number})


def ask_server(words: Sequence[str], method: str, params: Any, environ: Environ, cwd: Path) -> Any:
    """What a server answers to one request after the usual beginning; None where it does not. It is
    kept open until then: some end with their input, whatever they were about to say."""
    sent = [encode_request("initialize", 1), encode_request("initialized", params={})]
    sent.append(encode_request(method, 2, params))
    pipe, null, found = subprocess.PIPE, subprocess.DEVNULL, None
    with (
        suppress(OSError),
        subprocess.Popen(  # noqa: S603 -- the user's own, with our words
            words, stdin=pipe, stdout=pipe, stderr=null, env=dict(environ), cwd=cwd
        ) as server,
    ):
        timer = Timer(_TRIED_SECONDS, server.kill)
        timer.start()
        if server.stdin and server.stdout:
            server.stdin.write(b"\n".join(sent) + b"\n")
            server.stdin.flush()
            answers = (find_answer(line, 2) for line in server.stdout)
            found = next(filter(None, answers), None)
        timer.cancel()
        server.kill()
    return found
