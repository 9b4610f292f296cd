"""The commands that explain: help, and completion, which lets the shell explain: what the Tab key
offers, and how a shell is told of it.

The scripts are click's. Completing never writes, starts nothing, and says nothing when it fails.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from yester.clock import format_minute
from yester.config import SETTINGS
from yester.errors import UsageError
from yester.faces.cli.app import (
    COMMANDS,
    MORE,
    SECTIONS,
    App,
    cli,
    command,
    find_command,
    write_commands,
)
from yester.faces.cli.screen import cut_text
from yester.memory import Memory
from yester.model import Filters, Paging
from yester.tables import load_table

TOPICS = load_table("commands")["topics"]


@command("help", plain=True)
def help_command(app: App, topic: tuple[str, ...]) -> None:  # noqa: ARG001
    """Explain a command, a section of commands, or a topic."""
    root = click.get_current_context().find_root()
    text, name = _explain(root, topic), " ".join(topic)
    if text is None:
        known = [*COMMANDS, *(one.lower() for one in SECTIONS), *TOPICS]
        alike = get_close_matches(name.lower(), known, 2, 0.6)
        meant = f"did you mean {' or '.join(alike)}?" if alike else "`yester help topics` lists all"
        raise UsageError(f"there is no help about {name!r}; {meant}")
    click.echo(text)


def _explain(root: click.Context, topic: tuple[str, ...]) -> str | None:
    if not topic:
        return root.get_help()
    name = " ".join(topic).lower()
    section = name.capitalize()
    formatter = root.make_formatter()
    if section in SECTIONS:
        write_commands(formatter, section, SECTIONS[section] | MORE[section])
        return formatter.getvalue().rstrip()
    if name in TOPICS:
        return f"{TOPICS[name].rstrip()}"
    if name == "topics":
        formatter.write_text("yester help COMMAND, or one of:")
        rows = [(part.lower(), ", ".join(SECTIONS[part] | MORE[part])) for part in SECTIONS]
        rows += [(one, text.split("\n", 1)[0]) for one, text in TOPICS.items()]
        formatter.write_dl(rows)
        return formatter.getvalue().rstrip()
    context = root
    for number, word in enumerate(topic):
        below = find_command(topic[: number + 1])
        if below is None:
            return None
        context = click.Context(below, parent=context, info_name=word)
    return context.get_help()


@command("completion", plain=True)
def completion_command(app: App, shell: str | None, install: bool, remove: bool, yes: bool) -> None:
    """Have the Tab key complete commands, options, projects, sessions and ids, in bash, zsh, fish.

    Prints the script for SHELL (default: the shell you use). With --install it is put where that
    shell finds it: you are shown what is written and asked first. --remove takes it out again, and
    leaves the files as they were.
    """
    app.records = False
    chosen = shell or find_shell(os.environ)
    if not chosen:
        raise UsageError("which shell? Say bash, zsh or fish")
    if not (install or remove):
        click.echo(write_script(chosen), nl=False)
        return
    files = plan_completion(chosen, Path.home(), os.environ, remove)
    if not files:
        click.echo("nothing to do: it is " + ("not installed" if remove else "in place"))
        return
    _show_files(files)
    if not yes and sys.stdin.isatty():
        click.confirm("Go ahead?", default=True, abort=True)
    for path, text in files.items():
        if text or path.suffix not in SCRIPTS:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        else:
            path.unlink()
    click.echo(f"Done. Shells that you start from now on {'complete' if install else 'do not'}.")


def _show_files(files: Files) -> None:
    """What becomes of the user's own file as a diff; of ours that it comes or goes."""
    from yester.faces.cli.notes import format_diff

    for path, text in files.items():
        if path.suffix in SCRIPTS:
            click.echo(f"{'+' if text else '-'} {path}")
        else:
            click.echo(format_diff(path, _present(path), text))


# --- what the Tab key offers ----------------------------------------------------------------------

Files = Mapping[Path, str]  # what a file is to hold; "": it goes
SCRIPTS = (".bash", ".zsh", ".fish")  # how ours end
_MOST = 50  # sessions and items that are offered
_BEGIN, _END = "# >>> yester completion >>>", "# <<< yester completion <<<"


def list_values(kind: str, context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Those that begin like what was typed; an id may be written #12, for which zsh types \\#12."""
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


def _sessions(memory: Memory) -> Iterator[tuple[str, str]]:
    found = memory.reading.sessions(Filters(), Paging(_MOST))
    return ((one.key[:8], f"{format_minute(one.ended)} {one.title}") for one in found)


def _items(memory: Memory) -> Iterator[tuple[str, str]]:
    told = Filters(kinds=("summary", "observation", "memory"))
    return ((str(one.id), one.title) for one in memory.reading.select(told, Paging(_MOST)))


def _memories(memory: Memory) -> Iterator[tuple[str, str]]:
    found = memory.reading.memos(page=Paging(_MOST, statuses=("active", "proposed")))
    return ((str(memo.item.id), memo.item.title) for memo in found)


def _types(_: Memory) -> Iterator[tuple[str, str]]:
    from yester.memories.categories import CATEGORIES  # what these import, `yester help` need not

    names = ("bugfix", "feature", "refactor", "change", "discovery", "plan", "todo", "compact")
    return ((name, "") for name in dict.fromkeys((*CATEGORIES, *names)))


def _agents(_: Memory) -> Iterator[tuple[str, str]]:
    from yester.agents.descriptors import AGENTS

    return ((one.name, one.label) for one in AGENTS.values())


def _backups(memory: Memory) -> Iterator[tuple[str, str]]:
    from yester.operate.backups import list_backups

    return ((name, "") for name in ("latest", *(one.name for one in list_backups(memory.home))))


def _topics(_: Memory) -> Iterator[tuple[str, str]]:
    yield from ((part.lower(), "") for part in SECTIONS)
    yield from ((name, row[1]) for name, row in COMMANDS.items())
    yield from ((name, text.split("\n", 1)[0]) for name, text in TOPICS.items())


_VALUES: Mapping[str, Callable[[Memory], Iterable[tuple[str, str]]]] = {
    "projects": lambda memory: ((one.name, one.root) for one in memory.reading.projects()),
    "settings": lambda _: ((one.name, one.help) for one in SETTINGS),
    "sessions": _sessions, "items": _items, "memories": _memories, "types": _types,
    "agents": _agents, "backups": _backups, "topics": _topics,
}  # fmt: skip


# --- the shells -----------------------------------------------------------------------------------


def find_shell(environ: Mapping[str, str]) -> str:
    name = Path(environ.get("SHELL", "")).name
    return name if name in ("bash", "zsh", "fish") else ""


def write_script(shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "yester", "_YESTER_COMPLETE").source().lstrip() + "\n"
    # fish would end a description at its first comma.
    return script.replace('string split ","', 'string split -m 1 ","')


def plan_completion(shell: str, home: Path, environ: Mapping[str, str], remove: bool) -> Files:
    """The files that are to change, and to what. fish finds a script in a folder of its own; bash
    and zsh are told of theirs by a block in their rc file."""
    data = _folder(environ, "XDG_DATA_HOME", home / ".local" / "share")
    script, wanted = data / "yester" / f"completion.{shell}", dict[Path, str]()
    if shell == "fish":
        config = _folder(environ, "XDG_CONFIG_HOME", home / ".config")
        script = config / "fish" / "completions" / "yester.fish"
    else:
        rc = home / ".bashrc" if shell == "bash" else _folder(environ, "ZDOTDIR", home) / ".zshrc"
        block = "" if remove else _render_block(shell, script)
        wanted[rc] = _put_block(_present(rc), block)
    wanted = {script: "" if remove else write_script(shell)} | wanted
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
