"""From 0.1.0 to this version, with its worker alive and its hooks installed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.capturing import until
from yester import __version__

pytestmark = [pytest.mark.e2e, pytest.mark.requirement("STO-01")]
ROOT = Path(__file__).parent.parent.parent
RELEASED = "d8d5c5d"  # 0.1.0, in the repository's own history
DECIDED = "We decided that prices are integer cents because the terminal speaks cents"


@pytest.fixture
def former_wheel(tmp_path):
    asked = ["git", "-C", str(ROOT), "archive", RELEASED]
    archive = subprocess.run(asked, capture_output=True)
    if archive.returncode:
        pytest.skip("this clone does not hold the history of 0.1.0")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tmp_path / "former", filter="data")
    return build_wheel(tmp_path / "former", tmp_path / "wheels")


def build_wheel(source: Path, folder: Path) -> Path:
    subprocess.run([*pip(sys.executable), "wheel", "--no-deps", "-w", folder, source], check=True)
    return max(folder.glob("yester-*.whl"), key=lambda path: path.stat().st_mtime_ns)


def pip(python: str | Path) -> list[str]:
    return [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]


def test_a_user_of_the_former_version_loses_nothing_and_does_nothing(
    former_wheel, tmp_path, samples
):
    home, project = tmp_path / "home", tmp_path / "home" / "shop"
    project.mkdir(parents=True)
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    env |= {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    install = [*pip(venv / "bin" / "python"), "install"]

    def yester(*words: str) -> str:
        done = subprocess.run(
            [str(venv / "bin" / "yester"), *words], env=env, cwd=home, capture_output=True,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def leave(name: str, session: str, **more: str) -> None:
        """As the client does, with the hook that was installed."""
        plugin = home / ".yester" / "plugin"
        event = {
            "session_id": session, "cwd": str(project), "hook_event_name": name,
            "transcript_path": str(home / "none.jsonl"), **more,
        }  # fmt: skip
        hook = [sys.executable, "-I", "-S", plugin / "hooks" / "hook.py"]
        subprocess.run(
            [*hook, name, "claude-code"], input=json.dumps(event), text=True,
            env=env | {"CLAUDE_PLUGIN_ROOT": str(plugin)}, cwd=project, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def find(words: str) -> list[str]:
        done = subprocess.run(
            [str(venv / "bin" / "yester"), "recall", words, "--kind", "prompt", "--json"],
            env=env, cwd=home, capture_output=True, text=True,
        )  # fmt: skip
        return [hit["snippet"] for hit in json.loads(done.stdout)["hits"]]

    subprocess.run([*install, str(former_wheel)], check=True, env=env)
    yester("install", "--agent", "claude-code", "--yes")
    yester("index", str(samples))
    items = int(re.search(r"^items +(\d+)", yester("status"), re.M)[1])
    worker = int(re.search(r"^worker .*pid (\d+)", yester("status"), re.M)[1])
    try:
        subprocess.run(
            [*install, "--upgrade", str(build_wheel(ROOT, tmp_path / "wheels"))],
            check=True, env=env,
        )  # fmt: skip
        assert __version__ in yester("--version")
        leave("UserPromptSubmit", "first", prompt=DECIDED)
        # This command asks the worker to make room. Nothing is compiled yet after an upgrade, and
        # the machine may be busy: how long it takes is not what is tested.
        until(lambda: DECIDED in find("integer cents"), seconds=90)

        def is_renewed() -> bool:
            manifest = home / ".yester" / "plugin" / ".claude-plugin" / "plugin.json"
            return json.loads(manifest.read_text())["version"] == __version__

        leave("SessionStart", "second", source="startup")  # the next session starts the new one
        leave("UserPromptSubmit", "second", prompt="Are the totals still rounded per line?")
        until(lambda: find("totals rounded"), seconds=90)
        until(is_renewed, seconds=90)
        log = (home / ".yester" / "logs" / "worker.log").read_text()
        assert re.findall(r"started: yester ([\d.]+)", log) == ["0.1.0", __version__]
        assert int(re.search(r"^items +(\d+)", yester("status"), re.M)[1]) == items + 2
        assert f"yester {__version__}" in yester("doctor")
        yester("uninstall", "--yes")
        assert not (home / ".claude").exists()
    finally:
        for pid in {worker, read_pid(home)} - {0}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def read_pid(home: Path) -> int:
    log = (home / ".yester" / "logs" / "worker.log").read_text()
    return max((int(pid) for pid in re.findall(r"started: .* pid (\d+)", log)), default=0)
