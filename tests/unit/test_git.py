"""What is read of `.git` and manifests without a process, the table of commands, the log's form."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester import git
from yester.git import Change, Commit, Repository, collect_signals, find_repository, parse_commits

ID = "a" * 40
LATER = 10.0  # seconds; no test waits for it


def soon() -> float:
    return time.monotonic() + LATER


def repository(top: Path, head: str = "ref: refs/heads/main\n") -> Path:
    """A `.git` as far as it is read without git."""
    (top / ".git" / "refs" / "heads").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text(head)
    return top / ".git"


# --- branch and HEAD -----------------------------------------------------------------------------


@pytest.mark.requirement("REC-07")
@pytest.mark.parametrize(
    ("head", "refs", "packed", "branch", "commit"),
    [
        ("ref: refs/heads/main\n", {"main": ID}, "", "main", ID),
        ("ref: refs/heads/fix/a\n", {"fix/a": f"{ID}\n"}, "", "fix/a", ID),
        ("ref: refs/heads/main\n", {}, f"# pack-refs\n{ID} refs/heads/main\n", "main", ID),
        ("ref: refs/heads/main\n", {}, f"{ID} refs/heads/other-main\n", "main", ""),
        ("ref: refs/heads/main\n", {"main": ID}, f"{'b' * 40} refs/heads/main\n", "main", ID),
        ("ref: refs/heads/main\n", {"main": "ref: refs/heads/main"}, "", "main", ""),
        ("ref: refs/heads/main\n", {"main": "-oops"}, "", "main", ""),
        ("ref: refs/heads/main\n", {}, "", "main", ""),
        (f"{ID}\n", {}, "", "", ID),
        (f"{'c' * 64}\n", {}, "", "", "c" * 64),
        ("--upload-pack=x\n", {}, "", "", ""),
        ("ref: refs/heads/../../../secret\n", {}, "", "../../../secret", ""),
    ],
)
def test_branch_and_head_are_read_from_files(tmp_path, head, refs, packed, branch, commit):
    folder = repository(tmp_path, head)
    (tmp_path / "secret").write_text(ID)
    for name, value in refs.items():
        path = folder / "refs" / "heads" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(value)
    (folder / "packed-refs").write_text(packed)
    found = find_repository(str(tmp_path))
    assert found is not None
    assert (found.branch, found.head) == (branch, commit)


def test_a_folder_below_belongs_to_the_repository_above(tmp_path):
    repository(tmp_path)
    (tmp_path / "src" / "deep").mkdir(parents=True)
    found = find_repository(str(tmp_path / "src" / "deep"))
    assert found is not None
    assert found.top == tmp_path


@each("folder", ["", "src", "/nonexistent/folder", "\0"])
def test_a_folder_that_is_none_is_in_no_repository(folder):
    assert find_repository(folder) is None


@pytest.mark.requirement("OPS-02")
def test_a_repository_of_another_user_is_none_of_ours(tmp_path, monkeypatch):
    repository(tmp_path)
    assert find_repository(str(tmp_path)) is not None
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert find_repository(str(tmp_path)) is None


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs", "shallow"])
def test_a_pipe_in_the_place_of_a_file_does_not_hold_us_up(tmp_path, name):
    folder = repository(tmp_path)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    found = find_repository(str(tmp_path))
    assert found is None or (found.head == "" and git.shallow_commits(found) == frozenset())


# --- manifests -----------------------------------------------------------------------------------


@pytest.mark.requirement("REC-07")
@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("pyproject.toml", '[project]\nname = "shop"\n', "shop"),
        ("pyproject.toml", '[tool.poetry]\nname = "shop"\n', "shop"),
        ("package.json", '{"name": "@acme/shop", "version": "1.0.0"}', "@acme/shop"),
        ("Cargo.toml", '[package]\nname = "shop"\n', "shop"),
        ("go.mod", "// a shop\nmodule example.org/acme/shop\n\ngo 1.22\n", "example.org/acme/shop"),
    ],
)
def test_a_manifest_names_its_project(tmp_path, file, text, name):
    (tmp_path / file).write_text(text)
    assert collect_signals(str(tmp_path), soon()).manifests == ((file, name),)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[project"),
        ("pyproject.toml", "name = 3"),
        ("pyproject.toml", "project = 3"),
        ("package.json", "[" * 100_000),
        ("package.json", '{"name": ["shop"]}'),
        ("package.json", '{"name": "shop"}' + " " * 300_000),
        ("Cargo.toml", "[workspace]\n"),
        ("go.mod", "go 1.22\n"),
    ],
)
def test_a_manifest_that_names_nothing_is_left_out(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    assert collect_signals(str(tmp_path), soon()) == git.Signals()


def test_a_name_in_a_manifest_is_one_short_line(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "a\\nb\\u001b[31m' + "x" * 500 + '"}')
    ((_, name),) = collect_signals(str(tmp_path), soon()).manifests
    assert name.isprintable()
    assert len(name) == 200


# --- the table -----------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-02")
def test_the_table_holds_commands_that_read_and_nothing_else():
    assert {words.split()[0] for words in git.COMMANDS.values()} == {
        "status", "ls-files", "log", "merge-base", "rev-list", "cat-file",
    }  # fmt: skip


@pytest.mark.requirement("OPS-02")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("base", ("--all", ID)),
        ("base", ("main", ID)),
        ("base", (f"{ID}\n", ID)),
        ("base", (ID[:39], ID)),
        ("history", (20, 0, "--output=/tmp/x")),
        ("history", (20, 0, "")),
        ("history", (-1, 0, ID)),
        ("history", ("20 --all", 0, ID)),
    ],
)
def test_a_value_that_could_be_anything_but_a_number_or_a_commit_starts_nothing(
    tmp_path, name, values
):
    started = tmp_path / "started"
    fake = tmp_path / "git"
    fake.write_text(f"#!/bin/sh\necho > {started}\n")
    fake.chmod(0o755)
    there = Repository(tmp_path, repository(tmp_path), tmp_path / ".git", "main", ID)
    answer = git.ask_git(name, there, *values, deadline=soon(), path=str(tmp_path))
    assert answer == git.Answer(b"", "failed")
    assert not started.exists()


def test_without_git_there_is_no_answer(tmp_path):
    there = Repository(tmp_path, repository(tmp_path), tmp_path / ".git", "main", ID)
    assert git.ask_git("changed", there, deadline=soon(), path=str(tmp_path)).whole_output is None


# --- the log's form ------------------------------------------------------------------------------

paths = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
times = st.integers(min_value=0, max_value=2**33)
changes = st.one_of(
    st.tuples(st.sampled_from("AMDT"), paths).map(lambda given: Change(*given)),
    st.tuples(st.just("R"), paths, paths, st.booleans()).map(lambda given: Change(*given)),
)
logs = st.lists(
    st.builds(
        lambda id_, committed, authored, several: Commit(
            f"{id_:040x}", committed * 1000, authored * 1000, tuple(several)
        ),
        st.integers(0, 2**160 - 1), times, times, st.lists(changes, max_size=4),
    ),
    max_size=5,
)  # fmt: skip


def printed(log: list[Commit]) -> bytes:
    """As git prints it."""
    out = ""
    for commit in log:
        out += f"{commit.id} {commit.committed // 1000} {commit.authored // 1000}\0"
        for number, change in enumerate(commit.changes):
            how = change.how + (("100" if change.same else "087") if change.old else "")
            names = f"{change.old}\0{change.path}" if change.old else change.path
            out += ("" if number else "\n") + f"{how}\0{names}\0"
    return out.encode()


@given(logs)
def test_a_log_is_read_whatever_the_files_are_called(log):
    assert list(parse_commits(printed(log))) == log


@given(logs, st.data())
def test_of_a_log_that_was_cut_only_complete_commits_are_taken(log, data):
    out = printed(log)
    cut = out[: data.draw(st.integers(0, len(out)))]
    found = list(parse_commits(cut, whole=False))
    assert found == log[: len(found)]
    assert len(found) >= len([1 for end in range(len(log)) if printed(log[: end + 1]) in cut]) - 1


@given(st.binary())
def test_no_bytes_upset_the_reader_of_logs(out):
    list(parse_commits(out))
    list(parse_commits(out, whole=False))
