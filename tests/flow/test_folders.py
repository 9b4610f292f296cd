"""A folder that names a project's remote is joined with it when it holds its first commit, or when
the user says so; until then it is a project of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.flow.test_git_repositories import commit, plain
from yester.config import load_config
from yester.folders import Folders, open_folders, open_projects
from yester.ingest.projects import begin_folders
from yester.project import identify_project
from yester.store import open_store

pytestmark = pytest.mark.requirement("MEM-09")
REMOTE = "https://git.example.org/sam/shop.git"
SHOP = "git:git.example.org/sam/shop"
LEVER = "The vault opens with the brass lever"


@pytest.fixture
def shop(tmp_path, home):
    """The first folder of the project, with three commits."""
    folder = tmp_path / "shop"
    folder.mkdir()
    plain(folder, "init")
    plain(folder, "remote", "add", "origin", REMOTE)
    for day in range(3):
        commit(folder, day, a_txt=f"day {day}\n")
    Folders(home).begin([])
    assert key_of(home, folder) == SHOP
    return folder


def key_of(home, folder):
    """As a process that is new sees it."""
    open_folders.cache_clear()
    return open_projects(load_config(home, {})).by_folder(str(folder)).key


def clone(shop, folder, *words, remote=REMOTE):
    plain(shop.parent, "clone", *words, shop.as_uri(), str(folder))
    plain(folder, "remote", "set-url", "origin", remote)
    return folder


def copy_config(shop, folder):
    """All that a stranger needs to name a remote."""
    git = folder / ".git"
    git.mkdir(parents=True)
    shutil.copy(shop / ".git" / "config", git)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    return git


def talk_in(transcript, folder, name, text):
    told = transcript(f"{name}aaaaaaa-0000-4000-8000-000000000001", cwd=str(folder))
    told.user(text)
    told.assistant("I have written that down.")


def test_clones_work_trees_and_moved_folders_are_the_project(shop, home, tmp_path):
    plain(shop, "worktree", "add", str(tmp_path / "fix"))
    assert key_of(home, tmp_path / "fix") == SHOP
    assert key_of(home, clone(shop, tmp_path / "second")) == SHOP
    shutil.rmtree(tmp_path / "second")
    shop.rename(tmp_path / "moved")
    assert key_of(home, tmp_path / "moved") == SHOP
    plain(tmp_path, "init", "--bare", "all.git")
    plain(tmp_path / "moved", "push", "--mirror", str(tmp_path / "all.git"))
    plain(tmp_path / "all.git", "remote", "add", "origin", REMOTE)
    plain(tmp_path / "all.git", "worktree", "add", str(tmp_path / "bare-fix"), "main")
    assert key_of(home, tmp_path / "bare-fix") == SHOP


def test_a_submodule_of_two_clones_is_one_project(tmp_path, home, shop):
    whole = tmp_path / "whole"
    whole.mkdir()
    plain(whole, "init")
    plain(whole, "submodule", "add", shop.as_uri(), "parts/shop")
    plain(whole, "commit", "--message", "a part")
    again = tmp_path / "again"
    plain(tmp_path, "clone", "--recurse-submodules", whole.as_uri(), str(again))
    for part in (whole / "parts" / "shop", again / "parts" / "shop"):
        plain(part, "remote", "set-url", "origin", REMOTE)
        assert key_of(home, part) == SHOP


@pytest.mark.parametrize("with_it", ["commit of its own", "link", "gitdir", "objects", "borrowed"])
def test_a_stranger_that_names_the_remote_is_a_project_of_its_own(shop, home, tmp_path, with_it):
    """Also where it leads to the repository itself."""
    folder = tmp_path / "stranger"
    git, theirs = folder / ".git", shop / ".git"
    if with_it in ("link", "gitdir"):
        folder.mkdir()
    else:
        copy_config(shop, folder)
    if with_it == "commit of its own":
        shutil.rmtree(git)
        plain(folder, "init")
        shutil.copy(theirs / "config", git)
        commit(folder, 0, a_txt="day 0\n", b_txt="and more\n")
    elif with_it == "link":
        git.symlink_to(theirs)
    elif with_it == "gitdir":
        git.write_text(f"gitdir: {theirs}\n")
    elif with_it == "objects":
        for name in ("objects", "refs"):
            (git / name).symlink_to(theirs / name)
    else:
        (git / "objects" / "info").mkdir(parents=True)
        (git / "objects" / "info" / "alternates").write_text(f"{theirs / 'objects'}\n")
        (git / "HEAD").write_text(plain(shop, "rev-parse", "HEAD"))
    assert key_of(home, folder) == f"dir:{folder}"


def test_an_object_that_only_has_the_name_of_the_first_commit_is_not_believed(shop, home, tmp_path):
    folder = tmp_path / "stranger"
    folder.mkdir()
    plain(folder, "init")
    shutil.copy(shop / ".git" / "config", folder / ".git")
    own = commit(folder, 9, a_txt="something else\n")
    first = plain(shop, "rev-list", "--max-parents=0", "HEAD")
    objects = folder / ".git" / "objects"
    (objects / first[:2]).mkdir(exist_ok=True)
    shutil.copy(objects / own[:2] / own[2:], objects / first[:2] / first[2:])
    assert key_of(home, folder) == f"dir:{folder}"


def test_a_fork_is_joined_where_it_names_the_same_remote(shop, home, tmp_path):
    fork = clone(shop, tmp_path / "fork", remote="https://git.example.org/kim/shop.git")
    assert key_of(home, fork) == "git:git.example.org/kim/shop"
    commit(fork, 9, b_txt="another way\n")
    plain(fork, "remote", "set-url", "origin", REMOTE)
    assert key_of(home, fork) == SHOP


def test_a_shallow_clone_is_joined_when_it_has_its_beginning(shop, home, tmp_path):
    shallow = clone(shop, tmp_path / "shallow", "--depth=1")
    assert key_of(home, shallow) == f"dir:{shallow}"
    plain(shallow, "fetch", "--unshallow", shop.as_uri())
    assert key_of(home, shallow) == SHOP


def test_what_was_joined_before_folders_were_recorded_stays_so(home, tmp_path, run, transcript):
    folder = tmp_path / "old"
    git = copy_config_of_nobody(folder)
    talk_in(transcript, folder, "a", LEVER)
    run("index")
    (home / "folders.json").unlink()
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    shutil.copytree(git, stranger / ".git")
    store = open_store(home, now=1)
    open_folders.cache_clear()
    begin_folders(store, home)
    store.close()
    assert key_of(home, folder) == SHOP
    assert key_of(home, stranger) == f"dir:{stranger}"


def copy_config_of_nobody(folder):
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(f'[remote "origin"]\n\turl = {REMOTE}\n')
    return git


def test_the_user_joins_a_folder_with_what_was_stored_of_it(shop, home, tmp_path, run, transcript):
    stranger = tmp_path / "stranger"
    copy_config(shop, stranger)
    talk_in(transcript, shop, "a", LEVER)
    talk_in(transcript, stranger, "b", "The lever of the stranger is made of iron")
    run("index")
    assert "iron" not in run("recall", "lever", "--project", "shop").out
    assert "brass" not in run("context", "lever of the vault", cwd=stranger).out
    told = " ".join(run("doctor").out.split())
    assert f"If it is the same: yester projects --join {stranger}" in told
    refused = run("projects", "--join", str(stranger), env={"CLAUDECODE": "1"})
    assert refused.code != 0
    assert "the user's" in refused.err
    done = run("projects", "--join", str(stranger))
    assert "belongs to shop now, with 2 items stored before" in done.err
    lines = tomllib.loads((home / "config.toml").read_text())["projects"]
    assert lines == {str(stranger): {"joined": True}}
    assert "iron" in run("recall", "lever", "--project", "shop").out
    assert "--join" not in run("doctor").out
    assert key_of(home, stranger) == SHOP
    run("doctor", "--undo-join", "stranger")
    assert "iron" not in run("recall", "lever", "--project", "shop").out
    assert key_of(home, stranger) == "name:stranger"


def test_an_unshallowed_clone_brings_what_was_stored_of_it(shop, home, tmp_path, run, transcript):
    shallow = clone(shop, tmp_path / "shallow", "--depth=1")
    talk_in(transcript, shop, "a", LEVER)
    talk_in(transcript, shallow, "b", "The other lever is made of iron")
    run("index")
    assert "iron" not in run("recall", "lever", "--project", "shop").out
    plain(shallow, "fetch", "--unshallow", shop.as_uri())
    # A process that has looked at a folder does not look again.
    words = [sys.executable, "-m", "yester", "--home", str(home), "index"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "shallow with shop" in done.stderr
    assert "iron" in run("recall", "lever", "--project", "shop").out


def test_a_forgotten_project_leaves_no_folder_behind(shop, home, run, transcript):
    talk_in(transcript, shop, "a", LEVER)
    run("index")
    assert str(shop) in (home / "folders.json").read_text()
    assert run("forget", "--project", "shop", "--yes").code == 0
    assert str(shop) not in (home / "folders.json").read_text()


def test_git_is_asked_once_for_a_folder(shop, home, tmp_path):
    """Later it could tell nothing any more."""
    second = clone(shop, tmp_path / "second")
    assert key_of(home, second) == SHOP
    shutil.rmtree(second / ".git" / "objects")
    assert identify_project(str(second)).key == SHOP
    assert key_of(home, second) == SHOP
