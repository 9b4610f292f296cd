"""`yester doctor` where this user may not look: it says so, goes on, and mends what it can."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys

import pytest

from tests.capturing import made
from yester.worker.process import write_launch

pytestmark = pytest.mark.requirement("OPS-04")

# What root may do in spite of a folder's mode: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH.
_DROP_CAPABILITY, _REACHING = 24, (1, 2)


def like_anybody():
    for capability in _REACHING if os.geteuid() == 0 else ():
        ctypes.CDLL(None).prctl(_DROP_CAPABILITY, capability, 0, 0, 0)


@pytest.fixture
def home(own_home):
    home = made(own_home / ".yester")
    (home / "logs").mkdir(mode=0o700)
    write_launch(home)
    yield home
    for name in ("", "run", "spool", "spool/new"):
        os.chown(home / name, os.getuid(), -1)
        (home / name).chmod(0o700)


@pytest.fixture
def doctor(home, own_home):
    """The command, by a user whom modes stop."""

    def doctor(*words):
        done = subprocess.run(
            [sys.executable, "-m", "yester", "doctor", *words],
            capture_output=True, text=True, cwd=own_home, preexec_fn=like_anybody,
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout.startswith("✓ versions: ")
        return done

    return doctor


@pytest.mark.parametrize(("name", "mode"), [("", 0), ("spool/new", 0o500)])
def test_a_folder_that_is_closed_to_its_owner_is_named_and_opened_again(doctor, home, name, mode):
    (home / name).chmod(mode)
    done = doctor()
    assert done.returncode == 3
    assert f"✗ permissions: closed to you, who own it: {home / name}\n" in done.stdout
    assert f"yester doctor --fix, or: chmod u+rwx '{home / name}'" in done.stdout
    mended = doctor("--fix")
    assert f"✓ permissions: {home / name} opened to you again" in mended.stdout
    assert mended.returncode == 0, mended.stdout
    assert stat.S_IMODE((home / name).stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_a_finding_and_the_rest_is_looked_at(doctor, home):
    os.chown(home / "run", 65534, -1)
    done = doctor("--fix")
    assert (done.returncode, done.stderr) == (3, "")
    assert f"✗ permissions: belong to another user: {home / 'run'}" in done.stdout
    assert f"{home / 'run' / 'launch'} cannot be read" in done.stdout
    assert "transcripts: none of Claude Code, Codex" in done.stdout
    assert "store: nothing is indexed yet" in done.stdout
