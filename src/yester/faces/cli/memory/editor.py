"""The user's editor, on a file nobody else can read."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from yester.errors import UsageError

_USUAL = ("nano", "vim", "vi")


def edited(home: Path, text: str) -> tuple[str, Path]:
    """What the user has made of a text, and the file it stands in."""
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not words and sys.stdin.isatty():
        words = [name for name in _USUAL if shutil.which(name)][:1]
    if not words:
        raise UsageError("there is no editor; set EDITOR, or use the options of this command")
    handle, name = tempfile.mkstemp(".toml", "memory-", home / "run")  # mode 0600
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        code = subprocess.run([*words, name], check=False).returncode  # noqa: S603
    except OSError as error:
        path.unlink()
        raise UsageError(f"EDITOR={words[0]} cannot be started ({error.strerror})") from None
    if code:
        path.unlink()
        raise UsageError(f"EDITOR={words[0]} ended with code {code}; nothing was changed")
    return path.read_text("utf-8", "replace"), path


def text_of(source: str) -> str:
    """The text of a file, or of the standard input (-)."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read ({error.strerror})") from None
    return data.decode("utf-8", "replace")
