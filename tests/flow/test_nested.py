"""An agent started inside another inherits its variables, and is still booked as itself."""

from __future__ import annotations

import pytest

from tests.capturing import hook, made, waiting
from yester.model import Filters, Paging
from yester.store import open_store

pytestmark = pytest.mark.requirement("CAP-15")

OUTER, INNER = "0aaaaaaa-0000-4000-8000-000000000001", "1bbbbbbb-0000-4000-8000-000000000002"


@pytest.fixture
def folders(tmp_path):
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
    return tmp_path / "outer", tmp_path / "inner"


@pytest.fixture
def inherited(home, own_home, folders):
    """What a Claude Code session at work in `outer` leaves to the programs it starts."""
    (own_home / ".yester").symlink_to(made(home))
    return {
        "HOME": str(own_home), "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": OUTER,
        "CLAUDE_PROJECT_DIR": str(folders[0]),
    }  # fmt: skip


def told(cwd, **more):
    return {"session_id": INNER, "cwd": str(cwd), "prompt": "Rename the orders table", **more}


def booked(home, run):
    """The sessions in the store once the spool is taken in: agent and folder of each."""
    assert run("worker", "drain").code == 0
    store = open_store(home, now=1)
    try:
        keys = {project.key: project.root for project in store.projects()}
        return [(one.agent, keys[one.project]) for one in store.sessions(Filters(), Paging(9))]
    finally:
        store.close()


@pytest.mark.parametrize(
    ("words", "payload", "agent"),
    [
        (("codex",), {}, "codex"),
        (("gemini-cli",), {}, "gemini-cli"),
        ((), {"turn_id": "t-1"}, "codex"),
        (("claude-code",), {"transcript_path": "/c/sessions/2026/01/02/rollout-x.jsonl"}, "codex"),
        (("claude-code",), {"transcript_path": f"/c/projects/-in/{INNER}.jsonl"}, "claude-code"),
    ],
)
def test_the_inner_agent_is_booked_as_itself_in_its_own_folder(
    run, home, inherited, folders, words, payload, agent
):
    inner = folders[1]
    hook("UserPromptSubmit", *words, cwd=inner, env=inherited, payload=told(inner, **payload))
    assert booked(home, run) == [(agent, str(inner))]


def test_an_inner_copilot_that_runs_the_plugin_made_for_claude_code_is_copilot(
    run, home, inherited, folders
):
    env = inherited | {"COPILOT_CLI": "1"}
    hook("UserPromptSubmit", "claude-code", cwd=folders[0], env=env, payload=told(folders[1]))
    assert booked(home, run) == [("copilot-cli", str(folders[1]))]


def test_an_inner_claude_code_is_itself_whatever_has_started_it(run, home, inherited, folders):
    env = inherited | {
        "COPILOT_CLI": "1", "GEMINI_SESSION_ID": OUTER,
        "CLAUDE_CODE_SESSION_ID": INNER, "CLAUDE_PROJECT_DIR": str(folders[1]),
    }  # fmt: skip
    went = told(folders[0])  # its agent has gone to another folder; the session began elsewhere
    hook("UserPromptSubmit", cwd=folders[0], env=env, payload=went)
    assert booked(home, run) == [("claude-code", str(folders[1]))]


def test_what_is_switched_off_for_the_outer_session_is_not_for_the_inner_one(
    home, inherited, folders
):
    rules = home / "run" / "rules"
    rules.write_text(f"session {OUTER}\n")
    for words in (("codex",), ("claude-code",), ()):
        hook("PostToolUse", *words, cwd=folders[1], env=inherited, payload=told(folders[1]))
    assert len(waiting(home)) == 3
    rules.write_text(f"session {INNER}\n")
    hook("PostToolUse", "codex", cwd=folders[1], env=inherited, payload=told(folders[1]))
    assert len(waiting(home)) == 3


def test_a_client_with_a_name_of_its_own_is_not_told_what_is_meant_for_claude_code(
    inherited, folders
):
    assert hook("SessionStart", "codex", cwd=folders[1], env=inherited).silent
    assert b"systemMessage" in hook("SessionStart", cwd=folders[1], env=inherited).out
