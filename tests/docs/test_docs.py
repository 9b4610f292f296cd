"""Documentation that is not true fails the build."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.table import each
from yester import __version__
from yester.agents.descriptors import AGENTS
from yester.config import SETTINGS
from yester.faces.cli.app import COMMANDS, GROUPS, MORE, SECTIONS, cli, find_rows
from yester.faces.http.table import ENDPOINTS
from yester.memories.categories import CATEGORIES
from yester.model import KINDS, STATUSES
from yester.operate.bench import LEAST_QUESTIONS
from yester.operations.context import EVENTS
from yester.recall.rank import Signals, Weights
from yester.recall.recall import ORDERS
from yester.tables import load_table
from yester.text.embed import NAMES

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("how-to/*.md"))]
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```", re.M | re.S)
_LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)#\s]*)(?:#(?P<part>[^)\s]+))?\)")
_FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def blocks(kind: str) -> list[tuple[str, str]]:
    return [
        (path.name, match["text"])
        for path in PAGES
        for match in _BLOCK.finditer(path.read_text("utf-8"))
        if match["kind"] == kind
    ]


def everything() -> str:
    return "\n".join(
        p.read_text("utf-8") for p in [*PAGES, *(ROOT / "docs" / "reference").glob("*.md")]
    )


@pytest.fixture(scope="module")
def sample_store(tmp_path_factory, zygote_of_commands) -> Path:
    """A user's home whose memory holds the samples; written once, copied for each block."""
    folder = tmp_path_factory.mktemp("samples")
    words = ["--home", str(folder / ".yester"), "index", str(ROOT / "examples" / "sessions")]
    env = {**os.environ, "HOME": str(folder), "YESTER_EMBEDDER": "none"}
    printed = folder / "printed"
    assert zygote_of_commands.call(words, folder, env, printed, printed) == 0
    return folder


SHELL = [
    (page, command)
    for page, text in blocks("sh")
    for command in text.replace("\\\n", " ").splitlines()
    if command.strip() and not command.startswith("#")
]


@pytest.mark.requirement("OPS-01")
@pytest.mark.parametrize(("page", "command"), SHELL, ids=[f"{p}: {c}" for p, c in SHELL])
def test_a_command_in_the_documentation_works(
    page, command, sample_store, zygote_of_commands, tmp_path
):
    words = shlex.split(command, comments=True)
    if words[0] in ("make", "git", "cd", "pip"):
        assert words[0] != "make" or f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), command
        return
    assert words[0] == "yester", f"{page}: {command} is not a command a test can run"
    assert not set("|&;<>$") & set("".join(words)), f"{page}: {command} wants a shell"
    words = [str(sample_store / w[2:]) if w.startswith("~/") else w for w in words[1:]]
    env = {**os.environ, "HOME": str(sample_store)}
    out, err = tmp_path / "out", tmp_path / "err"
    code = zygote_of_commands.call(words, sample_store, env, out, err)
    assert code in (0, 1), f"{command}: {err.read_text()}"
    lately = re.search(r"--since (\d+[hdwmy]|today|yesterday)", command)  # the samples grow old
    if words[0] in ("recall", "show", "sessions", "recent") and not lately:
        assert code == 0, f"{command} finds nothing"


@pytest.mark.requirement("OPS-01")
def test_the_readme_has_the_two_commands_and_the_main_job():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert len([c for p, c in SHELL if p == "README.md" and c.startswith("yester recall")]) >= 2


PYTHON = blocks("python")


@each(("page", "code"), PYTHON)
def test_python_in_the_documentation_runs(page, code, sample_store):
    done = subprocess.run(
        [sys.executable, "-c", f"home = {str(sample_store / '.yester')!r}\n{code}"],
        capture_output=True, text=True, env={**os.environ, "HOME": str(sample_store)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_settings_in_the_documentation_can_be_loaded(page, text, tmp_path):
    from yester.config import load_config

    (tmp_path / "config.toml").write_text(text)
    load_config(tmp_path, {})


def test_every_command_is_documented():
    text = everything()
    assert [name for name in COMMANDS if f"## yester {name}" not in text] == []
    assert cli.list_commands(None) == list(COMMANDS)


def test_workflows_call_targets_that_the_makefile_has():
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for called in re.findall(r"\bmake ([a-z0-9 ]+)", path.read_text("utf-8")):
            assert set(called.split()) <= targets, f"{path.name}: make {called}"


def test_every_setting_and_its_variable_is_documented():
    text = everything()
    assert [s.name for s in SETTINGS if f"`{s.name}`" not in text] == []
    assert [s.variable for s in SETTINGS if s.env and f"`{s.variable}`" not in text] == []


def test_every_endpoint_and_its_parameters_are_documented():
    text = (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")
    for one in ENDPOINTS:
        assert f"### {one.method} {one.path}\n" in text
        assert [
            name
            for name in (*one.path_parameters, *one.other_parameters)
            if f"`{name}`" not in text
        ] == []


def test_every_agent_is_documented():
    text = everything()
    assert [name for name in AGENTS if f"`{name}`" not in text] == []


@each("path", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"])
def test_links_between_pages_lead_somewhere(path):
    for match in _LINK.finditer(_FENCED.sub("", path.read_text("utf-8"))):
        target = path.parent / match["target"] if match["target"] else path
        assert target.exists(), f"{path.name}: {match['target']}"
        if match["part"]:
            assert match["part"] in find_anchors(target), f"{path.name}: {match[0]}"


def find_anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: the headings, as they are written in addresses."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def test_settings_are_few():
    assert len([s for s in SETTINGS if not s.section]) <= 25


def test_the_table_of_factors_has_the_weights_in_use():
    names = {
        "words": "keyword", "meaning": "vector", "named files": "named", "same project": "project",
    }  # fmt: skip
    page = (ROOT / "docs" / "explanation.md").read_text("utf-8")
    table = page.partition("| factor | weight |")[2].partition("\n\n")[0]
    rows = re.findall(r"^ *\| ([a-z ]+) \| ([\d.]+) \|", table, re.M)
    assert {names.get(name, name): float(weight) for name, weight in rows} == {
        name: getattr(Weights(), name) for name in Signals._fields
    }


@pytest.mark.requirement("OPS-01")
def test_what_the_first_pages_show_is_what_the_commands_print(zygote_of_commands, tmp_path):
    left_out = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID")
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env |= {"HOME": str(tmp_path), "TZ": "UTC", "YESTER_EMBEDDER": "none"}
    samples, out, err = str(ROOT / "examples" / "sessions"), tmp_path / "out", tmp_path / "err"

    def printed(*words: str) -> str:
        out.write_text("")
        assert zygote_of_commands.call(list(words), tmp_path, env, out, err) == 0
        return out.read_text("utf-8").strip("\n")

    readme, tutorial, how_to = (
        (ROOT / page).read_text("utf-8")
        for page in ("README.md", "docs/tutorial.md", "docs/how-to/memories.md")
    )
    counted = printed("index", samples).partition("; ")[2]
    assert re.findall(r"\d+ records left out", tutorial) == [counted]
    hits = printed("recall", "why did we drop redis", "-n", "3")

    def without_scores(text: str) -> str:  # they fall with age
        return re.sub(r"  \d\.\d\d  ", "  score  ", text)

    first = printed("recall", "why did we drop redis", "--limit", "1")
    assert without_scores(first) in without_scores(readme)
    assert without_scores(hits) in without_scores(tutorial)
    best = re.search(r"#\d+  \S+ \S+  (\d\.\d\d)", readme)
    assert best
    assert f"| `{best[1]}` | its score" in tutorial
    assert best[0] in how_to
    status = printed("status")
    for line in status.splitlines():
        assert line in tutorial or line.startswith(("home ", "size ", "worker "))


ABOUT_COMMANDS = (
    "shared", "sections", "more", "groups", "topics", "about", "stopped", "does", "exclusive",
)  # fmt: skip


def command_rows() -> dict[str, dict]:
    """Command as it is typed → its rows."""
    found = {}
    for name, rows in load_table("commands").items():
        if name in ABOUT_COMMANDS:
            continue
        below = {part: row for part, row in rows.items() if part in GROUPS.get(name, {})}
        found |= {f"{name} {part}": row for part, row in below.items()}
        if own := {key: row for key, row in rows.items() if key not in below}:
            found[name] = own
    return found


def test_the_first_page_is_short_and_says_whole_lines():
    shown = [name for rows in SECTIONS.values() for name in rows]
    assert len(shown) == len(set(shown)) <= 24
    page = (ROOT / "src" / "yester" / "faces" / "cli" / "help.txt").read_text("utf-8")
    assert all(f"{name}:\n" in page for name in SECTIONS)
    parts = (*SECTIONS.values(), *MORE.values(), *GROUPS.values())
    lines = [line for part in parts for _, line in part.values()]
    assert [one for one in lines if not 0 < len(one) <= 60 or one[-1] == "."] == []
    assert max(map(len, page.splitlines())) <= 80


def test_what_stands_in_a_group_and_at_the_top_is_one_command_that_says_so():
    context, both = click.Context(cli), 0
    for group, rows in GROUPS.items():
        for name in rows:
            one = cli.get_command(context, group).get_command(context, name)
            if name in COMMANDS and cli.get_command(context, name) is one:
                both += 1
                page = f"## yester {name}\n"
                text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
                assert f"`yester {group} {name}`" in text.split(page)[1].split("\n## ")[0]
    assert both > 10


def test_every_row_of_a_command_is_an_argument_or_option_of_it():
    for path, rows in command_rows().items():
        context, command = click.Context(cli), cli
        for word in path.split() if path != "yester" else ():
            command = command.get_command(context, word)
        wanted = [name for key, row in rows.items() for name, _ in find_rows(key, row)]
        taken = [one.name for one in command.params]
        assert [name for name in taken if name not in ("as_json", "version")] == wanted, path
        for one in command.params:
            assert isinstance(one, click.Argument) or one.help or one.name == "order", (path, one)


def test_options_that_exclude_each_other_are_options_of_their_command():
    rows = command_rows()
    for path, names in load_table("commands")["exclusive"].items():
        assert set(names) <= rows[path].keys(), path


def test_what_may_be_chosen_is_what_there_is():
    rows, shared = command_rows(), load_table("commands")["shared"]
    assert shared["kinds"]["choices"] == list(KINDS)
    assert rows["recall"]["order"]["choices"] == list(ORDERS)
    assert rows["index"]["only"]["choices"] == list(AGENTS)
    assert rows["context"]["event"]["choices"] == list(EVENTS)
    assert rows["memory list"]["status"]["choices"] == [*STATUSES, "all"]
    assert rows["model use"]["name"]["choices"] == list(NAMES)
    assert rows["bench self"]["limit"]["least"] == LEAST_QUESTIONS
    for row in (rows["remember"]["type"], rows["memory candidate"]["type_"]):
        assert ", ".join(CATEGORIES) in row["help"]


def test_every_test_that_proves_a_promise_is_there():
    named = re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / "trust.md").read_text("utf-8"))
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_package_plugin_and_changelog_name_the_same_version():
    """A tag makes the release of it, and is refused where they differ."""
    manifest = json.loads((ROOT / "plugin" / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    newest = re.search(r"^## (\S+), ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest is not None
    assert {manifest["version"], newest[1]} == {__version__}
