"""The built package in a fresh environment, used as a stranger would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parent.parent.parent


def size(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files)


def test_the_wheel_installs_alone_indexes_and_answers(tmp_path, samples):
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(wheels), str(ROOT)], check=True)
    (wheel,) = wheels.glob("yester-*.whl")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    empty = size(venv)  # pip and setuptools are there before we are
    python = str(venv / "bin" / "python")
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", str(wheel)],
        check=True,
    )

    def yester(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(venv / "bin" / "yester"), *words], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip

    assert yester("recall", "anything").returncode == 1
    done = yester("index", str(samples))
    assert done.returncode == 0, done.stderr
    found = yester("recall", "redis")
    assert found.returncode == 0
    assert yester("doctor").returncode == 0
    assert size(venv) - empty < 220e6

    done = yester("install", "--agent", "claude-code", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ hooks: Claude Code: 11 of 11" in done.stdout
    copy = (tmp_path / ".claude" / "skills" / "yester").resolve()
    for path in (ROOT / "plugin").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".mcp.json":
            assert (copy / path.relative_to(ROOT / "plugin")).read_bytes() == path.read_bytes()
    launch = (tmp_path / ".yester" / "run" / "launch").read_text().splitlines()
    assert launch[0] == python
    assert yester("doctor").returncode == 0
    assert yester("uninstall", "--yes").returncode == 0
    assert not (tmp_path / ".claude").exists()
