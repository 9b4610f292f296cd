"""Homes by name: what the caller says, what is refused with which reason, what is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capturing import made, use_home
from yester.capture.homes import find_python, home_folder, is_usual, record_home
from yester.errors import UsageError


def test_the_folder_named_by_the_caller_counts_first(tmp_path):
    assert home_folder(tmp_path / "x", {"YESTER_HOME": "/nowhere"}, tmp_path) == tmp_path / "x"
    assert home_folder(None, {"HOME": "/home/sam"}, tmp_path) == Path("/home/sam/.yester")


@pytest.mark.requirement("OPS-03")
def test_a_home_that_is_refused_is_named_with_the_reason(tmp_path):
    project = tmp_path / "project"
    for place in ("mine", "open", "project/memory"):
        made(tmp_path / place)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "file").touch()
    env = {"HOME": str(tmp_path)}
    named = str(tmp_path / "mine")
    assert home_folder(None, {**env, "YESTER_HOME": named}, project) == tmp_path / "mine"
    for bad, reason in (
        (str(tmp_path / "open"), "is open to other users"),
        (str(project / "memory"), "lies inside the current folder"),
        (str(tmp_path / "missing"), "cannot be used .No such file or directory"),
        (str(tmp_path / "file"), "is not a folder"),
        ("../mine", "is not absolute"),
    ):
        with pytest.raises(UsageError, match=reason):
            home_folder(None, {**env, "YESTER_HOME": bad}, project)
    with pytest.raises(UsageError, match=r"is not recorded in .*/\.yester/homes"):
        home_folder(None, {**env, "YESTER_HOME": named}, project, inside_agent=True)


def test_the_latest_command_says_by_which_python_a_home_is_served(tmp_path):
    env = {"HOME": str(tmp_path / "user")}
    (tmp_path / "user").mkdir()
    home = made(tmp_path / "memory")
    assert find_python(home, env) is None
    for python in ("/one/python", "/two/python", "/two/python"):
        record_home(home, env, python)
        assert find_python(home, env) == python
    record = tmp_path / "user" / ".yester" / "homes"
    assert record.read_text().count("\n") == 2
    assert record.stat().st_mode & 0o777 == 0o600
    assert record.parent.stat().st_mode & 0o777 == 0o700
    record_home(made(tmp_path / "user" / ".yester"), env, "/one/python")
    record_home(made(tmp_path / "two\nlines"), env, "/one/python")
    assert record.read_text().count("\n") == 2
    assert is_usual(tmp_path / "user" / ".yester", env)
    assert not is_usual(home, env)


def test_looking_for_a_home_leaves_no_file_open(tmp_path):
    user = tmp_path / "user"
    user.mkdir()
    use_home(tmp_path / "kept", user)
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        find_python(tmp_path / "kept", {"HOME": str(user)})
    assert len(list(Path("/dev/fd").iterdir())) == before
