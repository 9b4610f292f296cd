"""Where Claude Code keeps a project's MEMORY.md."""

from __future__ import annotations

import pytest

from tests.table import each
from yester.agents.notes import EVERYWHERE, list_note_files, loads_itself
from yester.config import load_config
from yester.memories.memory_md import (
    folder_from_slug,
    memory_paths,
    project_slug,
)

pytestmark = pytest.mark.requirement("MEM-07")


@each(
    ("folder", "name"),
    [
        ("/home/sam/code/shop", "-home-sam-code-shop"),
        ("/home/sam/my_app.v2/a b", "-home-sam-my-app-v2-a-b"),
        ("/home/sam/größe", "-home-sam-gr--e"),
        ("/home/sam/🙂", "-home-sam---"),
        ("C:\\Users\\sam\\shop", "C--Users-sam-shop"),
        ("/x" * 150, "-x" * 100),
    ],
)
def test_a_slug_is_the_folder_with_dashes(folder, name):
    assert project_slug(folder) == name


def test_a_long_folder_is_known_by_its_beginning():
    folder = "/home/" + "x" * 300
    assert folder_from_slug(project_slug(folder) + "-k3j2h1", [folder]) == folder
    assert folder_from_slug(project_slug("/home/sam") + "-k3j2h1", ["/home/sam"]) == ""


def test_a_folder_is_found_by_hints_and_on_the_disk(tmp_path):
    below = tmp_path / "my-app" / "sub_one"
    below.mkdir(parents=True)
    (tmp_path / "my").mkdir()
    name = project_slug(str(below))
    assert folder_from_slug(name, ["/elsewhere", str(below)]) == str(below)
    assert folder_from_slug(project_slug("/my-app/sub_one"), above=tmp_path) == str(below)
    assert folder_from_slug(project_slug("/my-app/gone"), above=tmp_path) == ""


def test_work_trees_and_folders_below_share_the_memory_of_the_repository(tmp_path):
    repository, config = tmp_path / "shop", tmp_path / ".claude"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "src").mkdir()
    places = memory_paths([config], repository / "src")
    names = [place.parent.parent.name for place in places]
    assert names == [project_slug(str(repository)), project_slug(str(repository / "src"))]
    assert all(place.name == "MEMORY.md" for place in places)


def test_the_folder_of_a_long_path_is_looked_up(tmp_path):
    cwd, config = tmp_path / ("y" * 220), tmp_path / ".claude"
    there = config / "projects" / f"{project_slug(str(cwd))}-abc123"
    there.mkdir(parents=True)
    assert memory_paths([config], cwd)[0] == there / "memory" / "MEMORY.md"


@pytest.mark.requirement("IMP-07")
def test_the_notes_of_every_agent_and_of_repositories_are_found_with_what_they_are_about(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    shop = tmp_path / "shop"
    names = (
        ".claude/projects/-a/memory/MEMORY.md", ".claude/projects/-b/memory/topic.md",
        ".claude/projects/-c/x.jsonl", ".claude/agent-memory/reviewer/MEMORY.md",
        ".claude/CLAUDE.md", ".codex/memories/habits.md", ".gemini/GEMINI.md", "shop/CLAUDE.md",
        "shop/AGENTS.md", "shop/.cursor/rules/style.mdc", "shop/.claude/rules/tests.md",
        "shop/.github/copilot-instructions.md", "shop/src/README.md",
    )  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files = list_note_files(load_config(tmp_path / ".yester", {}), [str(shop)])
    found = {str(path.relative_to(tmp_path)): about for path, about in files}
    assert found.keys() == {*names} - {".claude/projects/-c/x.jsonl", "shop/src/README.md"}
    by_slug = [name for name, about in found.items() if not about]
    assert by_slug == [*names[:2]]
    assert {name for name, about in found.items() if about == str(shop)} == {
        name for name in found if name.startswith("shop/")
    }
    assert found[".gemini/GEMINI.md"] == found[".claude/CLAUDE.md"] == EVERYWHERE


@pytest.mark.requirement("IMP-07")
@each(
    ("client", "ref", "loaded"),
    [
        ("claude-code", "/home/sam/.claude/projects/-x/memory/MEMORY.md#ab12", True),
        ("claude-code", "/home/sam/.claude/projects/-x/memory/topic.md#ab12", False),
        ("claude-code", "/x/CLAUDE.md#ab12", True),
        ("", "/x/CLAUDE.md#ab12", True),
        ("codex", "/x/CLAUDE.md#ab12", False),
        ("codex", "/x/AGENTS.md#ab12", True),
        ("gemini-cli", "/home/sam/.gemini/GEMINI.md#ab12", True),
        ("claude-code", "f795b6de-67c2-44ce-ab37-2a3db90f8a9c", False),
        ("claude-code", "/x/NOT-CLAUDE.md#ab", False),
    ],
)
def test_who_loads_a_note_by_itself_is_known_by_its_file(client, ref, loaded):
    assert loads_itself(client, ref) is loaded
