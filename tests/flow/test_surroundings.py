"""What is being changed in a repository tells what a prompt is about."""

from __future__ import annotations

import os
import subprocess

import pytest

from yester.capture.rules import load_rules
from yester.config import load_config
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.git import Signals
from yester.ingest.events import Events
from yester.project import named_project
from yester.recall.beginning import MOST_FILES, changed_files
from yester.worker.answers import WorkerMemory
from yester.worker.jobs import Background
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
def worker_memory(memory, tmp_path):
    config, log = load_config(memory.home, {}), Log(tmp_path / "logs")
    events = Events(memory.store, config, load_rules(config))
    opened = WorkerMemory(memory.home, events, Background(config, log, lambda: None), log)
    opened.patience = 30
    yield opened
    opened.stop_looking()


def test_what_is_changed_is_known_after_the_first_look(repository, worker_memory):
    (repository / "payments" / "charge.py").write_text("two\n")
    before = worker_memory.git_signals(str(repository), wait=False)  # nobody waits for git
    assert changed_files(before) == ()
    seen = worker_memory.git_signals(str(repository))
    assert changed_files(seen) == ("payments/charge.py",)
    assert seen.recent == ("payments/charge.py", "payments/refund.py")


def test_a_folder_without_git_or_with_too_many_changes_tells_nothing(
    repository, worker_memory, tmp_path
):
    for number in range(MOST_FILES + 1):
        (repository / "payments" / f"new{number}.py").write_text("x\n")
        git(repository, "add", ".")
    for folder in (str(repository), str(tmp_path), "/nonexistent/place"):
        assert changed_files(worker_memory.git_signals(folder)) == ()


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
