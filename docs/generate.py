"""Writes the reference pages from the code and the outputs shown in the other pages from runs.

`--check` fails when something is not up to date.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.agents.descriptors import AGENTS, CLAUDE_EVENTS, INSTALLABLE, Agent
from yester.config import SETTINGS
from yester.faces.cli.app import cli
from yester.faces.http.table import ALL_ENDPOINTS, SEARCH, SHARED, write_default
from yester.faces.mcp.server import HANDSHAKE, MODERN, load_tools
from yester.faces.mcp.text import MOST
from yester.operations.request import (
    FilteredRequest,
    Parameter,
    describe_schema,
    list_parameters,
)
from yester.operations.search import SearchRequest
from yester.redact import load_rules

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.layers.test_layers import GROUPS  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
_NOTE = "<!-- Written by docs/generate.py from the code; change it there. -->\n"


def commands() -> str:
    parts = [
        "# Commands",
        _NOTE,
        "Exit codes: 0 found or done, 1 nothing found, 2 the call was wrong, 3 something failed.",
        f"```text\n{_help(cli, 'yester')}```",
    ]
    context = click.Context(cli, info_name="yester")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        parts += [f"## yester {name}", f"```text\n{_help(command, f'yester {name}')}```"]
        group = command if isinstance(command, click.Group) else click.Group()
        for part in group.commands or group.list_commands(context):
            below = group.get_command(context, part)
            assert below is not None
            full = f"{name} {part}"
            parts += [f"### yester {full}", f"```text\n{_help(below, f'yester {full}')}```"]
    return "\n\n".join(parts) + "\n"


def _help(command: click.Command, name: str, width: int = 96) -> str:
    with click.Context(command, info_name=name, terminal_width=width, max_content_width=96) as one:
        return command.get_help(one) + "\n"


def help_page() -> str:
    """What `yester --help` prints on a terminal of 80 columns and more."""
    return _help(cli, "yester", 78)


def settings() -> str:
    parts = [
        "# Settings",
        _NOTE,
        "Settings stand in `config.toml` in yester's folder. Those with a variable may also be set"
        "\nin the environment, the others may not: a repository can set variables for an agent's"
        "\nhooks, and must not be able to say where data comes from or goes to.",
        "| setting | default | variable | what it does |\n|---|---|---|---|",
    ]
    parts[-1] += "\n" + _rows("")
    parts.append(
        "Besides, the table `[projects]` gives names: a folder (`~` may begin it) or a project key"
        "\non the left, the name on the right. What is below the folder then belongs to that name."
        '\n\n```toml\n[projects]\n"~/code/api" = "shop-api"\n```'
    )
    parts.append(
        "The table `[retention]` says what happens to old memories, by their type: a number of days"
        "\nafter the last change, or `retire DAYS`, `archive DAYS`, `keep NUMBER` (the newest of"
        "\neach project). `yester memory gc` does it; without a rule nothing goes."
        '\n\n```toml\n[retention]\nnote = 90\ntech_debt = "archive 365"\n'
        'session_summary = "keep 50"\n```'
    )
    parts += [
        "## The section [tell]",
        "What an agent is told [at the moment of"
        " action](../explanation.md#at-the-moment-of-action).\n"
        "`tell.endings` is `endings` below `[tell]`.",
        "| setting | default | variable | what it does |\n|---|---|---|---|\n" + _rows("tell"),
        "## The section [embed]",
        'For those whose embedder is a server of theirs (`embedder = "http"`). `embed.url` is `url`'
        "\nbelow `[embed]`.",
        "| setting | default | variable | what it does |\n|---|---|---|---|\n" + _rows("embed"),
        "## The section [llm]",
        "For those who want a [language model](../how-to/models.md#use-a-language-model)."
        "\n`llm.model` is `model` below `[llm]`.",
        "| setting | default | variable | what it does |\n|---|---|---|---|\n" + _rows("llm"),
        "## The section [archive]",
        "For those who want an "
        "[archive of their sessions](../how-to/models.md#keep-an-archive-of-sessions).",
        "| setting | default | variable | what it does |\n|---|---|---|---|\n" + _rows("archive"),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(section: str) -> str:
    rows = []
    for setting in (one for one in SETTINGS if one.section == section):
        value = setting.default
        shown = ", ".join(value) if isinstance(value, tuple) else str(value).lower()
        variables = ", ".join(f"`{name}`" for name in setting.variables) or "–"
        rows.append(f"| `{setting.name}` | `{shown}` | {variables} | {setting.help} |")
    return "\n".join(rows)


def agents() -> str:
    rows = [
        f"| `{one.name}` | {one.label} | {_live(one)} | {_places(one)} |"
        f" {' '.join(one.cannot) or '–'} |"
        for one in AGENTS.values()
    ]
    table = "\n".join(rows)
    able = "\n".join(f"| {one.label} | {_abilities(one)} |" for one in AGENTS.values())
    return (
        f"# Agents\n\n{_NOTE}\n"
        "The transcripts of every agent here are read by `yester index`. *Live* means that `yester"
        " install` puts yester\ninto it: it is told what fits at the start of a session and at each"
        " prompt, and what happens in it is\nremembered at once. For Claude Code the hooks'"
        " payloads are stored; for the others a hook only asks and rings,\nand what happened is"
        " read from the transcript.\n\n"
        "| `--agent` | name | live | what is put where | what it cannot do |\n"
        f"|---|---|---|---|---|\n{table}\n\n"
        "What works in each, and how that is known. *Run*: `make e2e` starts the program itself, of"
        " the version named, and\nfinds two memories in its request to the model, what happened in"
        " the store once, and nothing left after\n`yester uninstall`. *Recorded*: files as the"
        " program writes them are part of the tests. *Documented*: written after its\ndocumentation"
        " or other readers of its files; not tried with the program.\n\n"
        "| agent | told at the start | told at a prompt | captured | after a compaction |"
        " sub-agents | MCP | skill | resume | how verified |\n"
        f"|---|---|---|---|---|---|---|---|---|---|\n{able}\n"
    )


def _abilities(agent: Agent) -> str:
    """One row: what the descriptor says that it can."""
    setup, ours = agent.setup, set(agent.events.values())
    claude = agent.name == "claude-code"
    again = claude or ({"SessionStart", "PostCompact"} <= ours and not agent.owes_start)
    script = any(name.endswith(".js") for name in setup.links)
    manifest = "manifest" in setup.files.values()
    server = bool(claude or script or manifest or setup.servers or setup.add)
    skill = claude or manifest or any("mem-search" in name for name in setup.links)
    cells = [
        "yes" if claude or "SessionStart" in ours else "–",
        "yes" if claude or {"UserPromptSubmit"} <= ours.intersection(agent.answerable) else "–",
        "at once" if claude else "by a bell" if agent.bell else "`yester index`",
        "told again" if again else "told again with the next prompt" if agent.owes_start else "–",
        "told" if claude or "SubagentStart" in ours else "–",
        *("yes" if able else "–" for able in (server, skill, agent.resume)),
        f"run, {agent.tried}" if agent.tried else "recorded" if agent.name in _RECORDED
        else "documented",
    ]  # fmt: skip
    return " | ".join(cells)


_RECORDED = ("specstory", "aider")


def _live(agent: Agent) -> str:
    if agent not in INSTALLABLE:
        return "no"
    return "yes, by a bell" if agent.bell else "yes"


def _places(agent: Agent) -> str:
    setup = agent.setup
    if agent not in INSTALLABLE:
        return "–"
    links = [f"link `{place}`" for place in setup.links]
    merged = [f"entries in `{name}`" for name in (setup.hooks, setup.servers) if name]
    told = [f"`{agent.program} {' '.join(setup.add[:3])}`"] if setup.add else []
    return ", ".join((*links, *merged, *told))


_EFFECTS = {
    "start": "event; starts the worker; answered with what happened last in the project and what is"
    " known about the work at hand; what does not arrive comes with the next prompt or reading",
    "prompt": "event; the prompt; a turn begins; answered with what fits the prompt; starts the"
    " worker where it has ended, for the next one",
    "read": "event; answered with what is recorded about the file, once a session. Before a tool"
    " that does something: kept and answered only where something is known about what it is about"
    " to do",
    "agent start": "event; answered with what the sub-agent should know",
    "tool": "event; the call with its result; answered where it shows an error that ended before",
    "failure": "event; the call with its error; answered in the same way",
    "compaction": "event; the summary; the transcript is read",
    "agent end": "event; the sub-agent's closing message; its transcript is read",
    "stop": "event; the closing message; the turn ends; the transcript is read",
    "end": "event; a turn still open was interrupted; the transcript is read",
    "other": "event",
}


def hooks() -> str:
    registered = msgspec.json.decode((ROOT / "plugin" / "hooks" / "hooks.json").read_bytes())
    rows = "\n".join(
        f"| `{name}`{_only(entries)} | {_EFFECTS[CLAUDE_EVENTS.get(name, 'other')]} |"
        for name, entries in registered["hooks"].items()
    )
    return (
        f"# Hooks\n\n{_NOTE}\nThe plugin's hooks call `hook.py EVENT CLIENT`, which leaves the"
        " payload in the spool and ends.\nWhose hook it was is decided by what the payload proves,"
        " then by CLIENT, and last by variables,\nwhich an agent started inside another inherits."
        " What is kept of it:\n\n| event | what is kept, and the answer |\n"
        f"|---|---|\n{rows}\n"
    )


def _only(entries: list[dict[str, str]]) -> str:
    matcher = entries[0].get("matcher", "*")
    return "" if matcher == "*" else f" ({matcher})"


def redaction() -> str:
    rows = "\n".join(f"- {rule.name}" for rule in load_rules())
    return (
        f"# What is redacted\n\n{_NOTE}\n`<private>…</private>` is never stored. Of the rest,"
        " these kinds of secret are replaced by\n`[redacted:KIND]` before anything is stored:\n\n"
        f"{rows}\n"
    )


def mcp() -> str:
    parts = [
        "# MCP tools",
        _NOTE,
        "`yester mcp` is an MCP server on standard input and output. Protocol versions: with a\n"
        f"handshake (`initialize`) {', '.join(HANDSHAKE)};\nwithout one, named in every request, "
        f"{', '.join(MODERN)}.\nAn `initialize` that asks for this one or for any other is "
        f"answered with {HANDSHAKE[-1]},\nthe newest that has a handshake. "
        f"No answer is longer than {MOST:,} tokens: what does not\nfit is counted, and the last "
        "line says how to get it.",
    ]
    for name, tool in load_tools().items():
        reads, schema = tool["annotations"]["readOnlyHint"], tool["inputSchema"]
        told = "Changes nothing." if reads else "Adds, and removes nothing."
        parts += [f"## {name}", f"{tool['description']} ({told})"]
        required = schema.get("required", ())
        rows = [
            f"| `{name}` | {one['type']}{' (required)' if name in required else ''} | "
            f"{_meaning(one)} |"
            for name, one in schema["properties"].items()
        ]
        if rows:
            parts.append("\n".join(["| parameter | type | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _meaning(schema: Mapping[str, Any]) -> str:
    said = [schema.get("description", ""), ", ".join(f"`{one}`" for one in schema.get("enum", ()))]
    if "maximum" in schema:
        said.append(f"{schema['minimum']} to {schema['maximum']}")
    if "default" in schema:
        said.append(f"default {schema['default']}")
    return "; ".join(filter(None, said)) or "–"


_SHOWN = re.compile(r"```sh\n(?P<command>yester [^\n]+)\n```\n\n```text\n(?P<output>.*?)```", re.S)
_CHANGING = ("doctor", "--json", "status")  # free space, time taken, sizes


_TODAY = 1794816000.0  # 2026-11-16, the day on which the commands of the pages are run


def refreshed(page: str, home: Path) -> str:
    """A page whose outputs (a `text` block right after one command) are what comes out now."""

    def again(match: re.Match[str]) -> str:
        command = match["command"]
        if any(word in command for word in _CHANGING):
            return match[0]
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, cwd=home,
            env={"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                 "TZ": "UTC", "YESTER_EMBEDDER": "none", "LANG": "C.UTF-8",
                 "PYTHONPATH": str(home / "clock")},
        )  # fmt: skip
        return f"```sh\n{command}\n```\n\n```text\n{done.stdout or done.stderr}```"

    return _SHOWN.sub(again, page)


def sample_home(folder: str) -> Path:
    home, samples = Path(folder), ROOT / "examples" / "sessions"
    # Scores fall with age: without a day of its own the pages would be out of date every week.
    (home / "clock").mkdir()
    (home / "clock" / "sitecustomize.py").write_text(f"import time\ntime.time = lambda: {_TODAY}\n")
    command = [
        sys.executable,
        "-m",
        "yester",
        "--home",
        str(home / ".yester"),
        "index",
        "--no-vectors",
        str(samples),
    ]
    env = {**os.environ, "HOME": str(home)}  # else the account would record it as a home in use
    subprocess.run(command, check=True, capture_output=True, env=env)
    return home


def _render_endpoints() -> str:
    groups = dict.fromkeys(one.group for one in ALL_ENDPOINTS)
    return "\n\n".join(part for group in groups for part in _render_group(group)) + "\n"


def _render_group(group: str) -> Iterator[str]:
    yield f"## {group}"
    for one in ALL_ENDPOINTS:
        if one.group != group:
            continue
        yield f"### {one.method} {one.path}"
        yield one.does + (" No token is needed." if one.open else "")
        if one.scope:
            alone = "of it alone, with" if one.team else "with"
            yield f"On a [server for many](../how-to/teams.md): {alone} the scope `{one.scope}`."
        searches = issubclass(one.request, SearchRequest)
        shared = SHARED | SEARCH if searches else SHARED
        where = "body" if one.has_body else "query"
        rows = [_render_row(p, "path") for p in one.path_parameters.values()]
        rows += [
            _render_row(p, where)
            for p in one.other_parameters.values()
            if p.attribute not in shared
        ]
        if rows:
            yield _render_table(rows)
        others = [f"`{n}`" for n, p in one.other_parameters.items() if p.attribute in SHARED]
        if searches:
            yield "And the parameters of [every search](#searches) and [filters](#filters)."
        elif others:
            yield f"And [filters](#filters): {', '.join(others)}."
        if one.example and one.has_body:
            yield f"```json\n{one.example}\n```"


def _render_search_parameters() -> str:
    found = list_parameters(SearchRequest).values()
    return _render_table([_render_row(one, "query") for one in found if one.attribute in SEARCH])


def _render_filters() -> str:
    return _render_table(
        [_render_row(one, "query") for one in list_parameters(FilteredRequest).values()]
    )


def _render_table(rows: list[str]) -> str:
    return "\n".join(["| parameter | in | must be | default | |", "|---|---|---|---|---|", *rows])


def _render_row(one: Parameter, where: str) -> str:
    default = "required" if one.required else write_default(one)
    cells = (f"`{one.name}`", where, describe_schema(one.schema), default, one.help)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def http() -> str:
    return (
        f"# HTTP API\n\n{_NOTE}\n"
        "`yester serve` answers on `http://127.0.0.1:36363` (setting `http_port`; the next free"
        "\nport where it is taken, see `run/port` in yester's folder). Send `Authorization: Bearer"
        "\nTOKEN`; the token stands in the file `token` there. Answers are JSON;"
        "\n`GET /api/openapi.json` describes every field of them. How to ask:"
        "\n[The HTTP API](../http.md).\n\n"
        "What is wrong is answered as `application/problem+json` with `detail` and, where they"
        "\napply, `parameter`, `value` and `fix`: 400 (a parameter), 401 (the token), 403 (Origin,"
        "\na setting that is not changed here, or what is the user's alone), 404, 405, 408 and 413"
        "\n(a body that is late or over 256 KB), 409 (it cannot be done to what is there now), 415,"
        "\n421 (Host), 429 (many wrong tokens), 503 (busy).\n\n"
        f"## Searches\n\n{_render_search_parameters()}\n\n"
        f"## Filters\n\nLists are written with commas.\n\n{_render_filters()}\n\n"
        f"{_render_endpoints()}"
    )


PAGES = {
    "commands.md": commands,
    "settings.md": settings,
    "agents.md": agents,
    "redaction.md": redaction,
    "hooks.md": hooks,
    "mcp.md": mcp,
    "http.md": http,
}


def tree_map(text: str) -> str:
    """CONTRIBUTING.md with its map of the tree: every package and top-level module in the order of
    reading, with the first sentence of its docstring."""
    rows = ["| where | what |", "|---|---|"]
    for name in (name for group in GROUPS for name in group):
        place = ROOT.joinpath("src", "yester", *name.split("."))
        for path in (place.with_suffix(".py"), *sorted(place.rglob("__init__.py"))):
            if path.exists():
                where = path.parent if path.name == "__init__.py" else path
                told = ast.get_docstring(ast.parse(path.read_text("utf-8")))
                assert told, f"{where} does not say what it is"
                slash = "/" if where.is_dir() else ""
                what = re.split(r"(?<=\.)\s", " ".join(told.split()))[0]
                rows.append(f"| `{where.relative_to(ROOT / 'src' / 'yester')}{slash}` | {what} |")
    begin, end = "<!-- map -->\n", "<!-- end of the map -->"
    before, _, rest = text.partition(begin)
    return before + begin + "\n".join(rows) + "\n" + end + rest.partition(end)[2]


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    wanted = {FOLDER / name: make() for name, make in PAGES.items()}
    wanted[ROOT / "src" / "yester" / "faces" / "cli" / "help.txt"] = help_page()
    with tempfile.TemporaryDirectory() as folder:
        home = sample_home(folder)
        docs = ROOT / "docs"
        for path in (ROOT / "README.md", *docs.glob("*.md"), *docs.glob("how-to/*.md")):
            wanted[path] = refreshed(path.read_text("utf-8"), home)
    contributing = ROOT / "CONTRIBUTING.md"
    wanted[contributing] = tree_map(contributing.read_text("utf-8"))
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text("utf-8") != text]
    if "--check" not in sys.argv:
        for path in stale:
            path.write_text(wanted[path], "utf-8")
    elif stale:
        print(f"out of date: {', '.join(str(p.relative_to(ROOT)) for p in stale)}; run: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
