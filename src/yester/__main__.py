"""The front door: the command `yester`, and `python -m yester`.

What is asked most often is answered before anything is imported: loading the libraries of the
command line takes longer than all else. `--version` and `--help` are a line and a page that is
written beforehand (docs/generate.py), the first turn of an agent waits for `yester mcp`, and
`yester recall --json` is what the worker says it would print, where there is one. `yester status`
needs no options, and so no command line.
"""

from __future__ import annotations

import os
import sys

_HELP = os.path.join(os.path.dirname(__file__), "faces", "cli", "help.txt")  # noqa: PTH118, PTH120
_PATIENCE = 2.0  # seconds for the worker
_MOST_BYTES = 16_000  # of a request, as the worker reads them
_GLANCE = 0.2  # seconds for a status line


def main() -> None:
    words = sys.argv[1:]
    if words == ["mcp"] or (words[:1] == ["--home"] and words[2:] == ["mcp"]):
        from yester.faces.mcp.server import serve_stdio

        sys.exit(serve_stdio(words[1] if words[1:] else None))
    printed = None if "_YESTER_COMPLETE" in os.environ else _answer_at_once(words)
    if printed is not None:
        _print_bytes(printed)
        return
    try:
        from yester.faces.cli.app import main as command_line
    except KeyboardInterrupt:  # nothing has begun
        os.write(2, b"yester: stopped\n")
        sys.exit(130)
    command_line()


def _answer_at_once(words: list[str]) -> bytes | None:
    if words in (["--version"], ["-V"]):
        from yester import __version__

        return f"yester, version {__version__}\n".encode()
    if words in (["--help"], ["-h"]):
        with open(_HELP, "rb") as file:
            return file.read()
    if words == ["status"]:
        return _print_status()
    if words == ["statusline"]:
        return _print_statusline()
    if words[:1] in (["recall"], ["search"]) and "--json" in words:
        return _ask_worker(words[1:])
    return None


def _usual_home() -> str:
    """The account's own home folder, where nothing but the user has a say in that; "" elsewhere,
    and where the environment may change an answer. The command line then finds out."""
    named = any(name.startswith(("YESTER_", "CLAUDE_MEM_")) for name in os.environ)
    if named or not hasattr(os, "environb"):  # Windows
        return ""
    from yester.capture import ask

    env = dict(os.environb)
    try:
        accounts = ask.find_accounts(env, ask.find_projects(env))
    except OSError:
        return ""
    known = env.get(b"HOME", b"") in accounts[:1]
    return os.environ["HOME"] + "/.yester" if known else ""


def _ask_worker(words: list[str]) -> bytes | None:
    """What the worker would have `recall` print here. None: the command is to do it itself."""
    home = _usual_home()
    if not home:
        return None
    from yester.capture.question import ask_worker

    try:
        place = _quote_bytes(os.getcwdb())  # noqa: PTH109
    except OSError:
        return None
    quoted = "%00".join(_quote_bytes(os.fsencode(word)) for word in words)
    request = f"POST /recall/print?cwd={place}&words={quoted}"
    return ask_worker(f"{home}/run", request, _PATIENCE) if len(request) < _MOST_BYTES else None


def _print_statusline() -> bytes | None:
    """What an agent shows below its prompt; it gives us what it knows of its session. None: another
    home is meant than the usual one."""
    home = _usual_home()
    if not home:
        return None
    from yester.capture.question import ask_worker

    given = b"" if os.isatty(0) else os.read(0, _MOST_BYTES)
    session = given.partition(b'"session_id"')[2].partition(b'"')[2].partition(b'"')[0]
    folder = given.partition(b'"cwd"')[2].partition(b'"')[2].partition(b'"')[0]
    request = f"GET /statusline?session={_quote_bytes(session)}&cwd={_quote_bytes(folder)}"
    return (ask_worker(f"{home}/run", request, _GLANCE) or b"yester: no worker yet") + b"\n"


def _print_status() -> bytes | None:
    """What `status` prints. None where the command line has more to say."""
    home = _usual_home()
    if not home:
        return None
    from pathlib import Path

    from yester.errors import YesterError
    from yester.faces.cli.screen import fit_line, strip_steering, terminal_width
    from yester.faces.cli.status import describe_status, status_lines
    from yester.memory import Memory

    try:
        with Memory(Path(home), os.environ) as memory:
            if memory.config.warnings or not memory.exists():
                return None
            lines = list(status_lines(memory, describe_status(memory)))
    except (YesterError, OSError):
        return None
    width = terminal_width(sys.stdout)
    return strip_steering("\n".join([*(fit_line(line, width) for line in lines), ""])).encode()


def _quote_bytes(text: bytes) -> str:
    """As urllib.parse would, which takes as long to import as all of this."""
    return "".join(chr(one) if chr(one).isalnum() and one < 128 else f"%{one:02x}" for one in text)


def _print_bytes(printed: bytes) -> None:
    try:
        while printed:
            printed = printed[os.write(1, printed) :]
    except BrokenPipeError:
        pass  # the reader has had enough


if __name__ == "__main__":
    main()
