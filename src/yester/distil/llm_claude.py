"""The user's own `claude` program, asked once and without tools, hooks, plugins or a transcript.

It runs alone (a lock over all processes), in a process group of its own, in a folder of ours, with
an environment that we make, and is killed with everything it started when its time is over. What
it is asked cannot come back as something new: YESTER_OFF stops our hooks, no session is kept, and
the text stands in a fence that no reader of transcripts lets in.
"""

from __future__ import annotations

import os
import pwd
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec

from yester.distil.llm import Answer, not_understood, shortened, whole
from yester.errors import Busy, ConfigError, LlmError, StoreBusy, Unreachable
from yester.store.lock import write_lock
from yester.text.post import address

# Where its installers put it; $PATH is what a repository may have written.
PLACES = (
    "~/.local/bin/claude",
    "~/.claude/local/claude",
    "/usr/local/bin/claude",
    "/opt/homebrew/bin/claude",
    "/usr/bin/claude",
)
_PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin"
_MOST_BYTES = 8 << 20
_BUSY = (429, 503, 529)
_CUT_OFF = "output token maximum"  # it says so in words alone


def user_home() -> Path:
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def installed(program: str) -> Path:
    """The program's path; ConfigError where it is not."""
    places = [program] if program else PLACES
    for place in places:
        path = user_home() / place[2:] if place.startswith("~/") else Path(place)
        if path.is_absolute() and os.access(path, os.X_OK) and path.is_file():
            return path
    if program:
        raise ConfigError(f"llm.program is {program!r}, but must be the full path of a program")
    raise ConfigError(f"claude is not at {', '.join(PLACES)}; say where as llm.program")


class Claude:
    """With a key it is `--bare` and keeps its files in yester's folder; without one it is
    `--safe-mode` and uses the login of the user, which --bare does not read."""

    here = False
    # It asks on by itself up to three times when an answer is cut off, with all that came before,
    # and what a provider keeps in its cache costs a quarter more.
    calls = 6

    def __init__(
        self,
        model: str,
        key: str,
        url: str,
        program: Path,
        home: Path,
        folders: Sequence[str] = ("~/.claude",),
    ) -> None:
        self.name = model
        self._key, self._program, self._home = key, program, home
        if url:
            address(url, "llm.url")
        self._url = url
        self._folder = folders[0] if folders else ""

    def complete(
        self, system: str, text: str, schema: Mapping[str, Any], most_tokens: int, seconds: float
    ) -> Answer:
        # The shape is asked for in words: its option for that costs another round.
        asked = f"{system}\n\nThe answer is one JSON object of this schema and nothing else:\n"
        words = [
            str(self._program), "--bare" if self._key else "--safe-mode", "-p",
            "--output-format", "json", "--model", self.name, "--effort", "low", "--tools", "",
            "--no-session-persistence", "--strict-mcp-config", "--disable-slash-commands",
            "--system-prompt", asked + msgspec.json.encode(schema).decode(),
        ]  # fmt: skip
        run = self._home / "run"
        until = time.monotonic() + seconds
        try:
            with write_lock(run / "claude.lock", 0.0):
                folder = run / "claude"
                folder.mkdir(mode=0o700, exist_ok=True)
                said = _run(words, text, self._environment(folder, most_tokens), folder, until)
        except StoreBusy:
            raise Busy("claude is answering another question") from None
        except OSError as error:
            raise Unreachable(f"claude: {error.strerror or type(error).__name__}") from None
        return self._understood(said)

    def _environment(self, folder: Path, most_tokens: int) -> dict[str, str]:
        made = {
            "HOME": str(user_home()),
            "PATH": f"{self._program.parent}:{_PATH}",
            "LANG": "C.UTF-8",
            "YESTER_OFF": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(most_tokens),
            "CLAUDE_CODE_MAX_RETRIES": "0",  # when to ask again is decided here
        }
        if self._url:
            made["ANTHROPIC_BASE_URL"] = self._url
        if self._key:
            made["ANTHROPIC_API_KEY"] = self._key
            made["CLAUDE_CONFIG_DIR"] = str(folder)
        elif self._folder not in ("", "~/.claude"):
            made["CLAUDE_CONFIG_DIR"] = str(Path(self._folder).expanduser())
        return made

    def _understood(self, said: bytes) -> Answer:
        try:
            found = msgspec.json.decode(said, type=dict[str, Any])
            usage, text = found.get("usage") or {}, found.get("result") or ""
            read = sum(
                whole(usage.get(f"{name}input_tokens"))
                for name in ("", "cache_creation_", "cache_read_")
            )
            written = whole(usage.get("output_tokens"))
        except (msgspec.MsgspecError, AttributeError):
            raise not_understood("claude") from None
        cost = found.get("total_cost_usd")
        paid = float(cost) if isinstance(cost, int | float) and cost >= 0 else None
        if not isinstance(text, str):
            raise not_understood("claude")
        if found.get("stop_reason") == "refusal":
            return Answer("", read, written, "refusal", paid)
        if not found.get("is_error"):
            return Answer(text, read, written, "done", paid)
        if _CUT_OFF in text:
            return Answer("", read, written, "length", paid)
        told = shortened(text, self._key)
        if found.get("api_error_status") in _BUSY:
            raise Busy(f"claude: {told}")
        raise LlmError(f"claude: {told}")


def _run(
    words: Sequence[str], text: str, environ: Mapping[str, str], folder: Path, until: float
) -> bytes:
    """What a program prints; it and whatever it started are gone when this returns."""
    with TemporaryFile(dir=folder) as given:  # without a name, and ours alone
        given.write(text.encode("utf-8", "replace"))
        given.seek(0)
        child = subprocess.Popen(  # noqa: S603 -- a path from the settings, options from above
            words,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
    assert child.stdout is not None
    try:
        with child.stdout as stream:
            return _drained(stream.fileno(), until)
    finally:
        # Not yet waited for, so the number is still its own and its group's.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _drained(file: int, until: float) -> bytes:
    out = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(file, selectors.EVENT_READ)
        while len(out) <= _MOST_BYTES:
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise Unreachable("claude gave no answer in time", sent=True)
            part = os.read(file, 1 << 16)
            if not part:
                return bytes(out)
            out += part
    raise not_understood("claude")
