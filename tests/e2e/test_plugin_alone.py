"""The plugin alone in the real Claude Code: the package is installed for the account, `yester
install` was never run.

What it needs is what test_claude_code.py needs, and a package registry.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_claude_code import FENCED, MISSING, PLUGIN, Desk, bash, calls, turn

pytestmark = [pytest.mark.e2e, pytest.mark.requirement("DEL-17")]

ROOT = Path(__file__).parent.parent.parent
DECIDED = "We decided that prices are integer cents, because the terminal speaks cents"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    (found,) = folder.glob("yester-*.whl")
    return found


@pytest.fixture
def desk(tmp_path):
    if MISSING:
        pytest.skip(MISSING)
    made = []

    def make(*rules):
        made.append(Desk(tmp_path / "desk", rules, None, plugins=(PLUGIN,)))
        # Beside the Python that runs these tests lies a yester, and a hook would find it.
        made[0].client.extra_env["PATH"] = f"{Path(sys._base_executable).parent}:/usr/bin:/bin"
        return made[0]

    yield make
    for one in made:
        one.close()


def install_for_account(user: Path, wheel: Path) -> None:
    """`pip install --user`, for the account whose home folder this is."""
    base = sys._base_executable  # a virtual environment has no user's packages
    env = {"HOME": str(user), "PATH": os.environ["PATH"]}
    env |= {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    words = [base, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--user"]
    subprocess.run([*words, "--no-warn-script-location", str(wheel)], env=env, check=True)
    assert (user / ".local" / "bin" / "yester").exists()


def test_a_decision_is_in_the_first_request_of_the_next_session_and_no_secret_anywhere(desk, wheel):
    token = "ghp_" + "A7bQ9xWm" * 4 + "Zr4T"
    private = "zarquon vermilion passphrase"
    user = desk(
        turn(
            "integer cents",
            calls(bash(f"echo 'GITHUB_TOKEN={token}'; echo '<private>{private}</private>'")),
            "Understood: prices are integer cents, because the terminal speaks cents.",
        ),
    )
    install_for_account(user.user, wheel)
    assert not user.home.exists()
    first = user.run(f"{DECIDED}. Use {token} for it. <private>{private}</private>")
    assert all("systemMessage" not in hook["stdout"] for hook in first.hook_runs("SessionStart"))

    second = user.run("Good morning, what shall we do today?")
    assert first.session_id != second.session_id
    blocks = "".join(FENCED.findall(second.context(0)))
    assert "integer cents" in blocks
    words = [token, *private.split()]
    for request in second.requests:
        assert not [word for word in words if word in json.dumps(request["body"])]
    user.drain()
    user.yester("worker", "stop")
    assert (user.home.stat().st_mode & 0o777) == 0o700
    for path in user.home.rglob("*"):
        if path.is_file():
            found = path.read_bytes().lower()
            assert not [word for word in words if word.lower().encode() in found], path


def test_without_the_package_one_sentence_names_the_command_and_nothing_is_written(desk):
    user = desk(turn("colour", calls(bash("echo teal")), "It is teal."))
    result = user.run("Which colour has the door?")
    (started,) = result.hook_runs("SessionStart")
    assert "install yester" in json.loads(started["stdout"])["systemMessage"]
    assert not [hook for hook in result.hook_runs() if hook["stdout"] and hook is not started]
    assert not user.home.exists()
