"""The skill `mem-search`: what stands in it is short enough, complete, and works when it is run."""

from __future__ import annotations

import importlib
import os
import re
import shlex
from pathlib import Path

import pytest

import yester
from tests.table import each
from tests.zygote import Zygote
from yester.context.lines import ICONS
from yester.faces.cli.app import COMMANDS
from yester.text.wordpiece import WordPiece

ROOT = Path(__file__).parent.parent.parent
SKILL = ROOT / "plugin" / "skills" / "mem-search"
HUB = SKILL / "SKILL.md"
OPERATIONS = (
    "observations", "sessions", "prompts", "by-type", "by-file", "by-concept", "recent-context",
    "timeline", "timeline-by-query", "help", "common-workflows", "formatting",
)  # fmt: skip
PRINCIPLES = ("progressive-disclosure", "anti-patterns")
GUIDES = [SKILL / "operations" / f"{name}.md" for name in OPERATIONS]
PAGES = [HUB, *GUIDES, *(SKILL / "principles" / f"{name}.md" for name in PRINCIPLES)]
# What tells it from an agent's own memory, and what tells a question about other sessions.
IDENTIFIERS = (
    "yester", "cross-session memory", "~/.yester/yester.db", "yester recall", "yester timeline",
    "yester show", "mem-search",
)  # fmt: skip
SCOPE = (
    "already", "last time", "last week", "last month", "before", "previously", "earlier sessions",
    "previous conversations", "past work", "history", "yesterday", "months ago",
)  # fmt: skip
READING = ("recall", "search", "timeline", "show", "recent")
# Commands of guides that are not built yet; must be empty when the skill is called complete.
PENDING: tuple[str, ...] = ()

_BLOCK = re.compile(r"^```sh\n(?P<text>.*?)^```", re.M | re.S)
_INLINE = re.compile(r"`yester (?P<command>[a-z]+)[^`]*`")
_GUIDE = re.compile(r"(?:operations|principles)/[a-z-]+\.md")
VOCABULARY = WordPiece.read_vocabulary(
    ROOT / "src" / "yester" / "models" / "yester-embed-1" / "vocab.txt"
)

# The samples hold raw sessions; these are what distilling them would add.
DISTILLED = [
    {"type": "bugfix", "title": "SQLite: begin immediate, else two writers deadlock",
     "concepts": ["gotcha", "problem-solution"], "project": "larder"},
    {"type": "decision", "title": "No more Redis: product pages from a materialised view",
     "concepts": ["trade-off", "why-it-exists"], "project": "tidepool"},
]  # fmt: skip


def text(path: Path) -> str:
    return path.read_text("utf-8")


def commands(path: Path) -> list[list[str]]:
    lines = [line for block in _BLOCK.finditer(text(path)) for line in block["text"].splitlines()]
    return [shlex.split(line) for line in lines if line.strip()]


def parts() -> tuple[dict[str, str], str, str]:
    """The frontmatter's fields, the frontmatter, the hub."""
    _, front, hub = text(HUB).split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    return fields, front, hub


def tokens(words: str) -> int:
    """Two ways to count, and the larger counts."""
    return max(-(-len(words) // 4), sum(1 for _ in VOCABULARY.piece_numbers(words)))


@pytest.fixture(scope="module")
def skill_store(tmp_path_factory, zygote_of_commands: Zygote) -> Path:
    folder = tmp_path_factory.mktemp("skill")
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "TZ": "UTC", "YESTER_EMBEDDER": "none"}
    out, err = folder / "out", folder / "err"
    samples = str(ROOT / "examples" / "sessions")
    assert zygote_of_commands.call(["index", samples], folder, env, out, err) == 0
    with yester.open(folder / ".yester") as memory:
        rows = [{"ref": str(n), "kind": "observation", "text": row["title"], **row}
                for n, row in enumerate(DISTILLED)]  # fmt: skip
        assert memory.add(rows, embed="later") == 2
    return folder


@pytest.mark.requirement("DEL-08")
@each("path", PAGES)
def test_every_command_of_a_guide_works_and_finds_something(path, skill_store, zygote_of_commands):
    env = {"HOME": str(skill_store), "PATH": "", "TZ": "UTC", "YESTER_EMBEDDER": "none"}
    out, err = skill_store / f"{path.stem}.out", skill_store / f"{path.stem}.err"
    assert commands(path), "a guide without a command is no guide"
    for words in commands(path):
        if " ".join(words) in PENDING:
            continue
        assert words[0] == "yester", words
        out.unlink(missing_ok=True)
        err.unlink(missing_ok=True)
        code = zygote_of_commands.call(words[1:], skill_store, env, out, err)
        assert code == 0, f"{shlex.join(words)}: {text(err)}"
        assert text(out).strip(), shlex.join(words)


@pytest.mark.requirement("DEL-08")
def test_nothing_in_the_skill_waits_to_be_built():
    assert PENDING == ()


@pytest.mark.requirement("DEL-08")
def test_the_frontmatter_is_short_and_says_when_to_use_it():
    fields, front, _ = parts()
    assert fields["name"] == SKILL.name == "mem-search"
    assert tokens(front) <= 250
    assert len(fields["description"]) <= 1024, "clients cut it there"
    assert "NOT in the current conversation" in fields["description"]
    told = front.lower()
    assert len([one for one in IDENTIFIERS if one in told]) >= 5
    assert len([one for one in SCOPE if one in told]) >= 9


@pytest.mark.requirement("DEL-08")
def test_the_skill_may_run_what_reads_and_nothing_else():
    allowed = re.findall(r"Bash\(yester ([a-z]+):\*\)", parts()[0]["allowed-tools"])
    assert set(allowed) == {"recall", "timeline", "show", "recent", "sessions", "status"}
    assert {words[1] for page in PAGES for words in commands(page)} <= set(allowed)
    assert parts()[0]["allowed-tools"].count("(") == len(allowed)


@pytest.mark.requirement("DEL-08")
def test_every_sign_of_a_row_is_explained_in_the_skill_and_in_the_help():
    help_page = importlib.import_module("yester.faces.cli.recall").recall_command.help
    for explained in (text(HUB), help_page):
        for kind, sign in ICONS.items():
            name = {"note": "plan", "observation": "any other"}.get(kind, kind)
            assert f"{sign} {name}" in " ".join(explained.split()), kind


@pytest.mark.requirement("DEL-08")
def test_the_hub_is_short_and_leads_to_every_guide():
    _, _, hub = parts()
    assert tokens(hub) <= 1_500
    named = set(_GUIDE.findall(hub))
    assert named == {str(path.relative_to(SKILL)) for path in PAGES[1:]}


@pytest.mark.requirement("DEL-08")
def test_there_are_twelve_guides_and_two_principles_of_about_400_tokens():
    found = {str(path.relative_to(SKILL)) for path in SKILL.rglob("*.md")}
    assert found == {str(path.relative_to(SKILL)) for path in PAGES}
    assert (len(OPERATIONS), len(PRINCIPLES)) == (12, 2)
    for path in PAGES[1:]:
        assert 320 <= tokens(text(path)) <= 480, f"{path.name}: {tokens(text(path))}"


@pytest.mark.requirement("DEL-08", "DEL-05")
@each("path", GUIDES)
def test_a_guide_begins_with_a_small_index(path):
    asked = next((words for words in commands(path) if words[1] in READING), None)
    assert asked, path
    if "--help" in asked:
        asked = next(words for words in commands(path) if "--limit" in words)
    assert asked[asked.index("--format") + 1] == "index"
    size = "--before" if asked[1] == "timeline" else "--limit"
    assert 3 <= int(asked[asked.index(size) + 1]) <= 5


@pytest.mark.requirement("DEL-08")
@each("path", PAGES)
def test_a_guide_uses_the_commands_and_no_other_way_in(path):
    words = text(path)
    for never in ("curl", "wget", "localhost", "127.0.0.1", "http", "/api", "Bearer", "sqlite3"):
        assert never not in words
    assert not re.search(r"\btoken\b", words, re.I)
    for command in commands(path):
        if command[1] in READING and "--help" not in command:
            assert "--format" in command, shlex.join(command)
            if "full" in command:
                assert command[1] == "show", "whole items are fetched by their number"
    for match in _INLINE.finditer(words):
        assert match["command"] in COMMANDS, match[0]
    for guide in _GUIDE.findall(words):
        assert (SKILL / guide).exists(), guide


@pytest.mark.requirement("DEL-08")
def test_progressive_disclosure_has_four_steps():
    steps = re.findall(
        r"^## (\d)\. ", text(SKILL / "principles" / "progressive-disclosure.md"), re.M
    )
    assert steps == ["1", "2", "3", "4"]
    assert re.findall(r"^(\d)\. ", parts()[2], re.M) == steps
