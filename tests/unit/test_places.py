"""Where Claude Code keeps a project's MEMORY.md."""

from __future__ import annotations

import pytest

from tests.table import each
from yester.memories.memory_md import (
    folder_from_slug,
    is_curated_note,
    list_instruction_files,
    list_memory_files,
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


def test_every_memory_and_the_projects_own_files_are_found(tmp_path):
    for path in ("projects/-a/memory/MEMORY.md", "projects/-b/memory/MEMORY.md",
                 "projects/-b/memory/topic.md", "projects/-c/x.jsonl"):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert [p.parent.parent.name for p in list_memory_files([tmp_path, tmp_path / "no"])] == [
        "-a",
        "-b",
    ]
    (tmp_path / ".claude").mkdir()
    for name in ("CLAUDE.md", ".claude/CLAUDE.md"):
        (tmp_path / name).touch()
    assert [str(p.relative_to(tmp_path)) for p in list_instruction_files(tmp_path)] == [
        "CLAUDE.md", ".claude/CLAUDE.md",
    ]  # fmt: skip


def test_a_curated_note_is_known_by_its_identity():
    assert is_curated_note("/home/sam/.claude/projects/-x/memory/MEMORY.md#ab12")
    assert is_curated_note("/x/CLAUDE.md#ab12")
    assert not is_curated_note("f795b6de-67c2-44ce-ab37-2a3db90f8a9c")
    assert not is_curated_note("/x/NOT-MEMORY.md#ab")
