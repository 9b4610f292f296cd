"""Which folder is yester's home. The rule itself stands in ask.py, for hooks and commands alike.

    homes    in the account's own home (~/.yester): lines of PATH, TAB, PYTHON. The homes that the
             user has used with a command, and the Python that ran it; the last line counts
    path     in such a home: its own path, so that nothing put in its place is taken for it

A repository can set variables for the agents that run in it, but not write these two. Inside an
agent (a hook, the MCP server, a command in its shell) $YESTER_HOME counts only when it is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from yester.capture import ask
from yester.errors import UsageError
from yester.files import append_text, update_file


def home_folder(
    given: str | Path | None, environ: Mapping[str, str], cwd: Path, inside_agent: bool = False
) -> Path:
    """Where yester lives: the caller's word, else $YESTER_HOME by the rule, else ~/.yester."""
    if given is not None:
        if str(given).partition("/")[0].endswith(":"):  # an address, or the rest of one in a Path
            raise UsageError(f"the home is {str(given)!r}, but must be a folder")
        return Path(given).expanduser().absolute()
    env = _encode_names(environ)
    projects = ask.find_projects(env, os.fsencode(cwd))
    if named := environ.get("YESTER_HOME"):
        if inside_agent:
            reason, _ = ask.judge_home(os.fsencode(named), env, projects)
        else:
            spared = env.get(b"HOME", b"")
            reason = ask.explain_refusal(os.fsencode(named), projects, spared)
        if reason:
            raise UsageError(
                f"YESTER_HOME={named}: {reason}; make it a folder of your own with mode 0700 "
                "outside the project, or unset it"
            )
        return Path(named)
    if inside_agent:
        return account_folder(environ, inside_agent) / ".yester"
    return usual_home(environ)


def is_usual(home: Path, environ: Mapping[str, str]) -> bool:
    """Is it the account's own home, which needs no record?"""
    return ask.is_usual(os.fsencode(home), _list_accounts(environ))


def record_home(home: Path, environ: Mapping[str, str], python: str) -> None:
    """The user has used this home with a command that `python` ran: hooks may use it from now on.
    Where it cannot be written down they do not, and say so."""
    path, own = str(home.resolve()), usual_home(environ)
    line = f"{path}\t{python}\n"
    one_line = (line.count("\t"), line.count("\n")) == (1, 1)
    with suppress(OSError, UnicodeEncodeError):
        if is_usual(home, environ) or not home.is_dir() or not one_line:
            return
        update_file(home / "path", f"{path}\n")
        known = ask.find_record(path.encode(), [os.fsencode(own.parent)])
        if known == (path.encode(), python.encode()):
            return
        own.mkdir(mode=0o700, exist_ok=True)
        append_text(own / "homes", line)


def find_python(home: Path, environ: Mapping[str, str]) -> str | None:
    """The Python that a hook starts the worker of this home with, as recorded; None: it is not."""
    found = ask.find_record(os.fsencode(home.resolve()), _list_accounts(environ))
    return None if found is None else os.fsdecode(found[1])


def account_folder(environ: Mapping[str, str], inside_agent: bool) -> Path:
    """The user's home folder: $HOME, unless the project that an agent works in may have named it.
    Of somebody who types a command it is theirs, wherever they are."""
    env = _encode_names(environ)
    projects = ask.find_projects(env) if inside_agent else set()
    accounts = ask.find_accounts(env, projects)
    return Path(os.fsdecode(accounts[0])) if accounts else Path.home()


def usual_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or str(Path.home())) / ".yester"


def _list_accounts(environ: Mapping[str, str]) -> list[bytes]:
    return ask.find_accounts(_encode_names(environ), set())


def _encode_names(environ: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
