"""What is being changed in a repository tells what a prompt is about."""

from __future__ import annotations

import os
import subprocess

import pytest

from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.git import Signals
from yester.project import named_project
from yester.recall.beginning import MOST_FILES, changed_files
from yester.worker.answers import Surroundings
from yester.worker.process import Log

pytestmark = pytest.mark.requirement("REC-08", "OPS-02")


def git(folder, *words):
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Sam", "GIT_AUTHOR_EMAIL": "sam@example.org",
        "GIT_COMMITTER_NAME": "Sam", "GIT_COMMITTER_EMAIL": "sam@example.org",
    }  # fmt: skip
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=env)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "shop"
    (folder / "payments").mkdir(parents=True)
    for name in ("charge", "refund"):
        (folder / "payments" / f"{name}.py").write_text("one\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "begin")
    return folder


@pytest.fixture
def surroundings(tmp_path):
    opened = Surroundings(Log(tmp_path / "logs"))
    yield opened
    opened.close()


def test_what_is_changed_is_known_after_the_first_look(repository, surroundings):
    (repository / "payments" / "charge.py").write_text("two\n")
    assert changed_files(surroundings.last_signals(str(repository))) == ()  # nobody waits for git
    seen = surroundings.current_signals(str(repository), patience=30)
    assert changed_files(seen) == ("payments/charge.py",)
    assert seen.recent == ("payments/charge.py", "payments/refund.py")


def test_a_folder_without_git_or_with_too_many_changes_tells_nothing(
    repository, surroundings, tmp_path
):
    for number in range(MOST_FILES + 1):
        (repository / "payments" / f"new{number}.py").write_text("x\n")
        git(repository, "add", ".")
    for folder in (str(repository), str(tmp_path), "/nonexistent/place"):
        assert changed_files(surroundings.current_signals(folder, patience=30)) == ()


def test_a_memory_about_the_file_at_hand_comes_first(memory):
    notes = [
        {"ref": name, "project": "shop", "text": f"Retries of the {name} must carry the same key.",
         "files": [f"payments/{name}.py"], "epoch": 1_770_000_000}
        for name in ("refund", "charge")
    ]  # fmt: skip
    memory.add(notes)
    asked = "do retries carry the same key?"
    now = 1_770_000_100_000
    for first in ("charge", "refund"):
        signals = Signals(changed=(f"payments/{first}.py",))
        here = Here(named_project("shop"), "s", now, signals=signals)
        context = at_prompt(memory.store, asked, here)
        lines = [line for line in context.text.splitlines() if line.startswith("#")]
        assert f"Retries of the {first}" in lines[0]
