"""The built package in a fresh environment, used as a stranger would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from yester import __version__

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


def build_release(source: Path, folder: Path, umask: int) -> dict[str, str]:
    """Name → digest of what is released, built as `make dist` does."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=source, check=True, capture_output=True, umask=umask,
    )  # fmt: skip
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_release_is_the_same_bytes_wherever_it_is_built(tmp_path):
    kept = ("src", "plugin", "docs", "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml")
    elsewhere = tmp_path / "elsewhere"
    for name in kept:
        if (ROOT / name).is_dir():
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, elsewhere / name, ignore=leave, copy_function=shutil.copy)
        else:
            shutil.copy(ROOT / name, elsewhere / name)
    shutil.copy(ROOT / ".gitignore", elsewhere)
    built = build_release(ROOT, tmp_path / "one", 0o022)
    assert sorted(path.rsplit("-", 1)[0].split("-")[0] for path in built) == ["yester"] * 2
    assert build_release(elsewhere, tmp_path / "two", 0o077) == built


def test_pipx_and_uvx_take_the_wheel(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("yester-*.whl")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([*pip, "--python", str(venv), "install", "pipx", "uv"], check=True)
    env = {
        **os.environ, "HOME": str(tmp_path), "UV_LINK_MODE": "copy",
        "PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin"),
    }  # fmt: skip
    tools = venv / "bin"
    subprocess.run([tools / "pipx", "install", str(wheel)], check=True, env=env)
    for command in (
        [tmp_path / "bin" / "yester"],
        [tools / "uvx", "--python", sys.executable, "--from", str(wheel), "yester"],
    ):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, env=env)
        assert (done.stdout, done.returncode) == (f"yester, version {__version__}\n", 0)
