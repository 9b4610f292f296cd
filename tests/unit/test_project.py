"""Project identity, against repositories made by the real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.table import each
from yester.capture.rules import Rules
from yester.project import EXCLUDED, Projects, bare_project, identify_project, normal_remote

pytestmark = pytest.mark.requirement("CAP-07")


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c",
         "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def test_a_subfolder_belongs_to_its_repository(tmp_path):
    repo = repository(tmp_path / "shop")
    (repo / "src" / "deep").mkdir(parents=True)
    found = identify_project(str(repo / "src" / "deep"))
    assert (found.name, found.key) == ("shop", f"dir:{repo}")
    assert found == identify_project(str(repo))


def test_a_linked_work_tree_is_its_main_repository(tmp_path):
    repo = repository(tmp_path / "shop", "git@example.org:acme/shop.git")
    git(repo, "worktree", "add", str(tmp_path / "shop-hotfix"))
    assert identify_project(str(tmp_path / "shop-hotfix")) == identify_project(str(repo))
    assert identify_project(str(tmp_path / "shop-hotfix")).name == "shop"


def test_a_work_tree_without_a_remote_is_its_main_repository_too(tmp_path):
    repo = repository(tmp_path / "shop")
    git(repo, "worktree", "add", str(tmp_path / "elsewhere"))
    assert identify_project(str(tmp_path / "elsewhere")).key == identify_project(str(repo)).key


def test_a_work_tree_of_a_bare_repository_is_that_repository(tmp_path):
    source = repository(tmp_path / "source")
    git(tmp_path, "clone", "--bare", str(source), "shop.git")
    bare_project = tmp_path / "shop.git"
    git(bare_project, "worktree", "add", str(tmp_path / "tree"))
    assert identify_project(str(tmp_path / "tree")).name == "shop"


def test_a_submodule_is_a_project_of_its_own_that_names_its_parent(tmp_path):
    library = repository(tmp_path / "library")
    shop = repository(tmp_path / "shop", "https://example.org/acme/shop")
    git(shop, "submodule", "add", str(library), "vendor/library")
    found = identify_project(str(shop / "vendor" / "library"))
    assert found.name == "library"
    assert found.key != identify_project(str(shop)).key
    assert found.parent == "git:example.org/acme/shop"


def test_two_repositories_with_one_folder_name_stay_apart(tmp_path):
    one = repository(tmp_path / "a" / "api", "git@example.org:acme/api.git")
    two = repository(tmp_path / "b" / "api", "git@example.org:other/api.git")
    assert identify_project(str(one)).key != identify_project(str(two)).key


def test_two_clones_of_one_remote_are_one_project(tmp_path):
    one = repository(tmp_path / "a" / "api", "git@example.org:acme/api.git")
    two = repository(tmp_path / "b" / "api-again", "https://example.org/acme/api")
    assert identify_project(str(one)).key == identify_project(str(two)).key


def test_without_a_repository_the_folder_is_the_project(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    assert identify_project(str(folder)).name == "notes"


def test_a_folder_that_is_gone_belongs_to_the_repository_above_it(tmp_path):
    repo = repository(tmp_path / "shop")
    assert (
        identify_project(str(repo / ".worktrees" / "gone")).key == identify_project(str(repo)).key
    )
    assert identify_project("/no/such/place").name == "place"
    assert identify_project("D:\\code\\shop").name == "shop"
    assert identify_project("").name == "unknown"


WORK_TREES = [
    "shop/.worktrees/2", "shop/.worktrees/sam/fix-login/src", "shop/worktrees/fix-login",
    "shop/.claude/worktrees/agent-a1/src", "shop.worktrees/fix", "shop__worktrees/fix/src",
    "shop/.worktrees/2/.claude/worktrees/agent-b2",
]  # fmt: skip


@pytest.mark.parametrize("place", WORK_TREES)
def test_a_work_tree_that_is_gone_belongs_to_its_repository_there_or_gone(tmp_path, place):
    gone = identify_project(str(tmp_path / "gone" / place))
    assert gone == identify_project(str(tmp_path / "gone" / "shop"))
    assert (gone.key, gone.name) == (f"dir:{tmp_path}/gone/shop", "shop")
    repo = repository(tmp_path / "there" / "shop", "git@example.org:acme/shop.git")
    assert identify_project(str(tmp_path / "there" / place)) == identify_project(str(repo))
    assert identify_project(str(tmp_path / "there" / place)).key == "git:example.org/acme/shop"


def test_a_work_tree_that_is_gone_on_another_machine_is_known_by_its_path():
    assert identify_project(r"D:\shop\.claude\worktrees\agent-a1\src") == identify_project(
        r"D:\shop"
    )
    assert identify_project("/Users/sam/code/shop/.worktrees/2").key == "dir:/Users/sam/code/shop"


def test_a_folder_that_is_only_called_like_a_work_tree_stays_its_own(tmp_path):
    """Folders of work trees of several repositories, and tools' own."""
    code = tmp_path / "code"
    own = repository(code / "worktrees" / "blog")
    assert identify_project(str(own)).root == str(own)
    for gone in (code / "worktrees" / "shop-fix", tmp_path / "x" / ".cursor" / "worktrees" / "a1"):
        assert identify_project(str(gone)).key == f"dir:{gone}"
    for gone in ("/Users/sam/worktrees/shop", "/home/sam/.worktrees/shop", "/data/worktrees/shop"):
        assert identify_project(gone).key == f"dir:{gone}"
    (tmp_path / "notes").mkdir()
    for beside in (tmp_path / "notes.worktrees" / "fix", tmp_path / "my-worktrees" / "shop"):
        assert identify_project(str(beside)).key == f"dir:{beside}"


def test_no_project_is_called_by_a_number_alone(tmp_path):
    assert identify_project("/no/such/2").name == "such/2"
    assert identify_project("/reports/2026/11").name == "reports/2026/11"
    assert identify_project(r"D:\code\7").name == "code/7"
    assert identify_project("/3").name == "/3"
    assert identify_project(str(repository(tmp_path / "kata" / "42"))).name == "kata/42"
    assert bare_project("git:example.org/acme/7").name == "acme/7"
    assert Projects({"/no/such/2": "2"}).by_folder("/no/such/2").name == "2"  # the user's word


@pytest.mark.parametrize("text", ["", "gitdir: ", "gitdir: /no/where", "nonsense", "\0\xff"])
def test_a_broken_git_file_is_no_repository_and_no_error(tmp_path, text):
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / ".git").write_text(text, encoding="latin-1")
    assert identify_project(str(folder)).name == "odd"


@each(
    "url",
    [
        "git@Example.org:Acme/Shop.git",
        "https://example.org/acme/shop",
        "https://user:secret@example.org/acme/shop.git",
        "ssh://git@example.org:2222/acme/shop/",
        "git://example.org/acme/shop.git/",
    ],
)
def test_all_ways_to_write_a_remote_are_one_place_without_the_password(url):
    assert normal_remote(url) == "example.org/acme/shop"


@each("url", ["/srv/git/shop.git", "../shop", "file:///srv/shop", ""])
def test_a_local_remote_is_no_place(url):
    assert normal_remote(url) == ""


def test_the_user_may_name_a_folder_and_the_innermost_name_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    projects = Projects({"~/code": "all", "~/code/shop/api": "the-api"})
    assert projects.by_folder(str(tmp_path / "code" / "x")).name == "all"
    assert projects.by_folder(str(tmp_path / "code" / "shop" / "api" / "src")).key == "name:the-api"
    assert projects.by_folder(str(tmp_path / "codex")).name == "codex"


def test_the_user_may_merge_two_repositories_under_one_name(tmp_path):
    one = repository(tmp_path / "old", "git@example.org:acme/old.git")
    two = repository(tmp_path / "new", "git@example.org:acme/new.git")
    projects = Projects({"git:example.org/acme/old": "app", str(two): "app"})
    assert projects.by_folder(str(one)).key == projects.by_folder(str(two)).key == "name:app"


def test_no_process_is_started_and_each_folder_is_looked_at_once(tmp_path):
    repo = repository(tmp_path / "shop")
    projects = Projects({})
    first = projects.by_folder(str(repo))
    (repo / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.org:a/b\n')
    assert projects.by_folder(str(repo)) is first
    assert Projects({}).by_folder(str(repo)).key == "git:example.org/a/b"


@pytest.mark.requirement("CAP-14")
@each("folder", ["/no/shop/.worktrees/payroll", "/no/such/2026", "/no/shop/.worktrees/2026"])
def test_a_folder_excluded_by_its_name_stays_so_whatever_its_project_is_called_now(folder):
    rules = Rules(names=("payroll", "2026"))
    assert Projects({}, refuses=rules.excludes).by_folder(folder) == EXCLUDED
    assert Projects({}, refuses=rules.excludes).by_folder("/no/shop") != EXCLUDED
