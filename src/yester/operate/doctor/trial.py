"""A program on trial: what it is given, what it printed, how long it took."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from yester.agents.hooks import TRIAL

_TRIED_SECONDS = 15.0  # the client waits 10

# What events carry, each some of it: a hook looks at what its event has.
TRIAL_PAYLOAD: Mapping[str, Any] = {
    "session_id": TRIAL,
    "source": "startup",
    "prompt": "Do the hooks of yester answer?",
    "tool_name": "Read",
    "tool_input": {"file_path": "trial.txt"},
    "tool_response": {"type": "text", "file": {"filePath": "trial.txt", "content": ""}},
    "tool_use_id": "trial",
    "trigger": "manual",
    "agent_id": "trial",
    "agent_type": "trial",
    "last_assistant_message": "",
    "reason": "other",
}


class Trial(NamedTuple):
    """What a program printed, how long it took, and what was wrong."""

    out: bytes
    seconds: float
    wrong: str = ""
    silent: bool = False  # wrong because an answer should have come, and nothing did


def time_program(
    words: Sequence[str],
    sent: bytes,
    cwd: Path,
    environ: Mapping[str, str],
    patience: float = _TRIED_SECONDS,
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
