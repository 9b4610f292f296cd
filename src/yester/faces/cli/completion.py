"""What the Tab key offers, and how a shell is told of it.

The scripts are click's. Completing never writes, starts nothing, and says nothing when it fails.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from yester.clock import format_minute
from yester.faces.cli.screen import cut_text
from yester.memory import Memory
from yester.model import Filters, Paging
from yester.tables import load_table

Files = Mapping[Path, str]  # what a file is to hold; "": it goes
SCRIPTS = (".bash", ".zsh", ".fish")  # how ours end
_MOST = 50  # sessions and items that are offered
_BEGIN, _END = "# >>> yester completion >>>", "# <<< yester completion <<<"


def list_values(kind: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Those that begin like what was typed; an id may be written #12, for which zsh types \\#12."""
    from yester.faces.cli.app import App

    app = App(context.find_root().params.get("home"))
    app.records = False
    bare = incomplete.removeprefix("\\")
    mark = "#" if bare.startswith("#") else ""
    typed = bare.removeprefix("#").lower()
    try:
        with Memory(app.home, os.environ, cwd=str(Path.cwd()), ask_worker=None) as memory:
            return [
                CompletionItem(mark + value, help=cut_text(" ".join(about.split()), 60))
                for value, about in _VALUES[kind](memory)
                if value.lower().startswith(typed)
            ]
    except Exception:  # noqa: BLE001 -- whatever it is, a shell that completes must not say it
        return []


def _projects(memory: Memory) -> Iterator[tuple[str, str]]:
    for one in memory.reading.projects():
        yield one.name, one.root


def _sessions(memory: Memory) -> Iterator[tuple[str, str]]:
    for one in memory.reading.sessions(Filters(), Paging(_MOST)):
        yield one.key[:8], f"{format_minute(one.ended)} {one.title}"


def _items(memory: Memory) -> Iterator[tuple[str, str]]:
    told = Filters(kinds=("summary", "observation", "memory"))
    for one in memory.reading.select(told, Paging(_MOST)):
        yield str(one.id), one.title


def _memories(memory: Memory) -> Iterator[tuple[str, str]]:
    for memo in memory.reading.memos(page=Paging(_MOST, statuses=("active", "proposed"))):
        yield str(memo.item.id), memo.item.title


def _types(_: Memory) -> Iterator[tuple[str, str]]:
    from yester.memories.categories import CATEGORIES

    names = ("bugfix", "feature", "refactor", "change", "discovery", "plan", "todo", "compact")
    yield from ((name, "") for name in dict.fromkeys((*CATEGORIES, *names)))


def _agents(_: Memory) -> Iterator[tuple[str, str]]:
    from yester.agents.descriptors import AGENTS

    yield from ((one.name, one.label) for one in AGENTS.values())


def _settings(_: Memory) -> Iterator[tuple[str, str]]:
    from yester.config import SETTINGS

    yield from ((one.name, one.help) for one in SETTINGS)


def _backups(memory: Memory) -> Iterator[tuple[str, str]]:
    from yester.operate.backups import list_backups

    yield from (("latest", ""), *((path.name, "") for path in list_backups(memory.home)))


def _topics(_: Memory) -> Iterator[tuple[str, str]]:
    table = load_table("commands")
    for part in table["sections"]:
        yield part.lower(), ""
        yield from (
            (n, row[1]) for n, row in (table["sections"][part] | table["more"][part]).items()
        )
    yield from ((name, text.split("\n", 1)[0]) for name, text in table["topics"].items())


_VALUES = {
    "projects": _projects, "sessions": _sessions, "items": _items, "memories": _memories,
    "types": _types, "agents": _agents, "settings": _settings, "backups": _backups,
    "topics": _topics,
}  # fmt: skip


# --- the shells -----------------------------------------------------------------------------------


def find_shell(environ: Mapping[str, str]) -> str:
    name = Path(environ.get("SHELL", "")).name
    return name if name in ("bash", "zsh", "fish") else ""


def write_script(shell: str) -> str:
    from yester.faces.cli.app import cli

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "yester", "_YESTER_COMPLETE").source().lstrip() + "\n"
    # fish would end a description at its first comma.
    return script.replace('string split ","', 'string split -m 1 ","')


def plan_completion(shell: str, home: Path, environ: Mapping[str, str], remove: bool) -> Files:
    """The files that are to change, and to what. fish finds a script in a folder of its own; bash
    and zsh are told of theirs by a block in their rc file."""
    data = _folder(environ, "XDG_DATA_HOME", home / ".local" / "share")
    if shell == "fish":
        config = _folder(environ, "XDG_CONFIG_HOME", home / ".config")
        wanted = {
            config / "fish" / "completions" / "yester.fish": "" if remove else write_script(shell)
        }
    else:
        script = data / "yester" / f"completion.{shell}"
        rc = home / ".bashrc" if shell == "bash" else _folder(environ, "ZDOTDIR", home) / ".zshrc"
        before = rc.read_text("utf-8") if rc.exists() else ""
        block = "" if remove else _render_block(shell, script)
        wanted = {script: "" if remove else write_script(shell), rc: _put_block(before, block)}
    return {path: text for path, text in wanted.items() if text != _present(path)}


def _folder(environ: Mapping[str, str], name: str, usual: Path) -> Path:
    found = Path(environ.get(name) or usual)
    return found if found.is_absolute() else usual


def _present(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _render_block(shell: str, script: Path) -> str:
    lines = [_BEGIN, f"[ -r {shlex.quote(str(script))} ] && . {shlex.quote(str(script))}", _END]
    if shell == "zsh":
        ready = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
        lines.insert(1, ready)
    return "\n".join(lines) + "\n"


def _put_block(text: str, block: str) -> str:
    """The text with this block in place of the one it has, at the end where it has none."""
    head, begin, rest = text.partition(_BEGIN)
    if begin:
        tail = rest.partition(f"{_END}\n")[2]
        return head + block + tail
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}{block}" if block else text
