"""The real Claude Code at the moment of action: a session meets an error and ends it; the next one
meets it again and is told, once. Pytest is real."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import yester
from tests.capturing import until
from tests.e2e.test_claude_code import MISSING, RUNNER, Desk, bash, calls, turn
from yester.memories.remember import Draft, remember
from yester.project import Projects

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.requirement("DEL-15", "MEM-08"),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

LINK = "def dial():\n    raise ConnectionError('the gateway drops idle links')\n"
TESTS = "from link import dial\n\n\ndef test_dial():\n    assert dial() == 1\n"
FIRST = "Let the import dial the gateway"
SECOND = "Show the tide beside each berth"
CHECK = calls(bash("python -m pytest -q test_link.py"))


def write(name: str, content: str, text: str = "") -> dict[str, Any]:
    return calls(("Write", {"file_path": f"{{PROJECT}}/{name}", "content": content}), text=text)


def edit(old: str, new: str) -> dict[str, Any]:
    given = {"file_path": "{PROJECT}/link.py", "old_string": old, "new_string": new}
    return calls(("Edit", given))


RULES = (
    turn(
        re.escape(FIRST),
        CHECK,
        calls(
            ("Read", {"file_path": "{PROJECT}/link.py"}),
            text="It fails because the gateway drops idle links.",
        ),
        write("link.py", "def dial():\n    return 1\n"),
        CHECK,
        "It dials for each call now.",
    ),
    turn(re.escape(SECOND), CHECK, CHECK, "It was met again."),
)


def ours(request: dict[str, Any], begins: str = "Seen ") -> list[str]:
    text = RUNNER._all_text(request["body"])
    return re.findall(rf"(?m)^{begins}.*$", text)


def test_what_ended_an_error_arrives_once_after_the_next_session_has_met_it(tmp_path: Path) -> None:
    user = Desk(tmp_path / "e2e", RULES, None)
    try:
        user.home.mkdir(mode=0o700)
        (user.project / "link.py").write_text(LINK)
        (user.project / "test_link.py").write_text(TESTS)
        assert user.yester("worker", "start").returncode == 0
        user.run(FIRST)
        user.drain()
        until(lambda: (user.home / "run" / "armed").exists())
        (user.project / "link.py").write_text(LINK)
        before = len(user.client.api.requests)
        user.run(SECOND)
        told = [ours(request) for request in user.client.api.requests[before:]]
    finally:
        user.close()
    lines = [lines for lines in told if lines]
    assert told[0] == []  # nothing has failed yet
    assert {len(found) for found in lines} == {1}, told  # once, though it failed twice
    assert "link.py" in lines[0][0]
    assert "the gateway drops idle links" in lines[0][0]


POOL = "def dial():\n    return pool.take(timeout=30)\n"
DIAL = "def dial():\n    return link(gateway=3)\n\n\ndef link(gateway):\n    return gateway - 2\n"
WHY = "the gateway drops idle links after 10 seconds"
TRIED, WRITTEN = "Take the links from a pool", "Dial for each call instead"
CHANGED = "Let the gateway be dialled five times"
LOOK = calls(("Read", {"file_path": "{PROJECT}/link.py"}))
LATER = (
    turn(re.escape(TRIED), LOOK, write("link.py", POOL), CHECK, "The test still fails."),
    turn(
        re.escape(WRITTEN),
        LOOK,
        CHECK,
        write("link.py", DIAL, f"It fails because {WHY}."),
        CHECK,
        f"One connection for each call, because {WHY}.",
    ),
    turn(
        re.escape(CHANGED),
        LOOK,
        edit("link(gateway=3)", "pool.take(timeout=50)"),
        CHECK,
        edit("def link(gateway):", "def link(gateway=5):"),
        CHECK,
        "It was met again.",
    ),
)


@pytest.mark.requirement("REC-23")
def test_who_changes_a_function_and_meets_its_error_is_told_both_each_at_its_moment_once(
    tmp_path: Path,
) -> None:
    user = Desk(tmp_path / "e2e", LATER, None)
    try:
        user.home.mkdir(mode=0o700)
        (user.project / "link.py").write_text("def dial():\n    return None\n")
        (user.project / "test_link.py").write_text(TESTS)
        assert user.yester("worker", "start").returncode == 0
        user.run(TRIED)
        user.drain()
        user.run(WRITTEN)
        user.drain()
        until(lambda: '/link.py"' in _read_armed(user.home))
        before = len(user.client.api.requests)
        user.run(CHANGED)
        asked = [one for one in user.client.api.requests[before:] if one["body"].get("tools")]
    finally:
        user.close()
    lines = [ours(request, "These lines: ") for request in asked]
    errors = [ours(request) for request in asked]
    # Requests: the prompt, behind Read, behind the edit, behind the failing run …
    assert [len(found) for found in lines[:3]] == [0, 0, 1], lines
    assert {len(found) for found in lines[2:]} == {1}, lines  # once, though two places are edited
    assert "done: " in lines[2][0]
    assert "the gateway drops idle links" in lines[2][0]
    assert re.search(r"; \d+ failed: ", lines[2][0]), lines[2][0]
    assert [len(found) for found in errors[:4]] == [0, 0, 0, 1], errors
    assert {len(found) for found in errors[3:]} == {1}, errors  # once, though it failed twice
    assert "link.py" in errors[3][0]


def test_a_plan_that_names_what_failed_before_is_told_so_before_anybody_approves_it(
    tmp_path: Path,
) -> None:
    """The client keeps the plan in a file of its own, and shows it to the hook."""
    user = Desk(tmp_path / "e2e", LATER, None)
    planning = ("--permission-mode", "plan", "--permission-prompt-tool", "stdio")
    try:
        user.home.mkdir(mode=0o700)
        (user.project / "link.py").write_text("def dial():\n    return None\n")
        (user.project / "test_link.py").write_text(TESTS)
        assert user.yester("worker", "start").returncode == 0
        user.run(TRIED)
        user.drain()
        until(lambda: '"ExitPlanMode"' in _read_armed(user.home))
        asked = user.client.run("", prompts=["Think about links"], args=planning).requests
        text = "\n".join(RUNNER._all_text(request["body"]) for request in asked)
        place = re.findall(r"/\S+/plans/[\w-]+\.md", text)[0]
        plan = {"file_path": place, "content": f"# Links\n\n1. {TRIED}\n2. Test it\n"}
        user.client.api.scenario["rules"].append(
            turn("Plan it now", calls(("Write", plan)), calls(("ExitPlanMode", {})), "Planned.")
        )
        asked = user.client.run("", prompts=["Plan it now"], resume=True, args=planning).requests
        told = [ours(request, "The plan names what was tried: ") for request in asked]
    finally:
        user.close()
    assert [len(lines) for lines in told] == [0, 0, 1], told
    assert f"failed: “{TRIED}”" in told[2][0]


def _read_armed(home: Path) -> str:
    path = home / "run" / "armed"
    return path.read_text() if path.exists() else ""


def test_a_rule_that_blocks_keeps_a_file_as_it_is_and_a_told_one_does_not(tmp_path: Path) -> None:
    edits = (write("gen/api.py", "changed = 1\n"), write("notes.py", "changed = 1\n"))
    user = Desk(tmp_path / "e2e", (turn("Change both", *edits, "Done."),), None)
    try:
        assert user.yester("index").returncode == 1  # makes the store
        with yester.open(user.home) as memory:
            place = Projects({}).by_folder(str(user.project))
            for path, enforce in (("gen/**", "block"), ("notes.py", "tell")):
                content = {"rule": f"Do not change {path} by hand", "enforce": enforce}
                remember(memory.store, Draft(type="rule", content=content, path=path), place,
                         memory.by(""))  # fmt: skip
        assert user.yester("worker", "start").returncode == 0
        until(lambda: (user.home / "run" / "armed").exists())
        user.client.run("Change both")
        said = RUNNER._all_text(user.client.api.requests[-1]["body"])
    finally:
        user.close()
    assert not (user.project / "gen" / "api.py").exists()
    assert (user.project / "notes.py").read_text() == "changed = 1\n"
    assert said.count("The user's rule about notes.py") == 1
    assert "yester: The user's rule about api.py" in said
