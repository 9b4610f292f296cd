"""The real Claude Code in a terminal: users see what became of a rule, and say yes by typing."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capturing import until
from tests.e2e.test_claude_code import MISSING, PLUGIN, Desk

pytestmark = [pytest.mark.e2e, pytest.mark.requirement("MEM-08", "DEL-16")]


class Terminal:
    """The client in a terminal of its own."""

    def __init__(self, desk: Desk, *options: str) -> None:
        client = desk.client
        config = {
            "hasCompletedOnboarding": True, "theme": "dark",
            "customApiKeyResponses": {"approved": ["dummy-key"], "rejected": []},
            "projects": {str(desk.project): {"hasTrustDialogAccepted": True}},
        }  # fmt: skip
        programs = desk.user / ".local" / "bin"
        if not programs.exists():  # the first session of this user
            (client.cfg / ".claude.json").write_text(json.dumps(config), "utf-8")
            programs.mkdir(parents=True)
            (programs / "yester").symlink_to(Path(sys.executable).parent / "yester")
        self._socket = str(client.out / "tmux")
        self._env = {**client.env(), "TERM": "xterm-256color"}
        command = shlex.join([client.claude, "--plugin-dir", str(PLUGIN), *options])
        self._run("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "90",
                  "-c", str(desk.project), command)  # fmt: skip
        until(lambda: "❯" in self.text())

    def _run(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, *words]
        return subprocess.run(command, env=self._env, capture_output=True, text=True).stdout

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-S", "-200")

    def type(self, text: str) -> None:
        """Type it, and wait until it is answered."""
        before = self.text().count(" · done ")
        self._run("send-keys", "-l", text)
        until(lambda: text in self.text())
        self._run("send-keys", "Enter")
        until(lambda: self.text().count(" · done ") > before, 90)

    def leave(self) -> None:
        """End the session as a user does."""
        self._run("send-keys", "-l", "/exit")
        until(lambda: "/exit" in self.text())
        self._run("send-keys", "Enter")
        until(lambda: not self._run("list-sessions"))

    def close(self) -> None:
        self._run("kill-server")


@pytest.mark.skipif(bool(MISSING) or not shutil.which("tmux"), reason=MISSING or "no tmux")
def test_a_user_sees_what_became_of_a_rule_and_says_yes_by_typing(tmp_path):
    desk = Desk(tmp_path / "e2e", (), None)
    desk.home.mkdir(mode=0o700)
    terminal = Terminal(desk)

    def rules(status: str) -> list[str]:
        listed = desk.json("memory", "list", "-p", "project", "--status", status)
        return [one["title"] for one in listed["hits"]]

    try:
        kept = "Stop says: yester keeps a rule: Never commit to main.  /yester:drop"
        terminal.type("Never commit to main.")
        until(lambda: kept in terminal.text())  # with the end of the turn, before another prompt
        assert rules("active") == ["Never commit to main."]
        terminal.type("Fix the import. Always use tabs.")
        until(lambda: "Stop says: yester proposes a rule: Always use tabs." in terminal.text())
        assert rules("proposed") == ["Always use tabs."]
        terminal.type("and the parser too please")
        shown = terminal.text()
        assert shown.count("says: yester keeps a rule") == 1  # once
        number = re.search(r"proposes a rule: Always use tabs\.  /yester:keep (\d+)", shown)
        assert number is not None
        terminal.type(f"/yester:keep {number[1]}")
        until(lambda: "Always use tabs." in rules("active"))
    finally:
        terminal.close()
        desk.close()


@pytest.mark.skipif(bool(MISSING) or not shutil.which("tmux"), reason=MISSING or "no tmux")
def test_commands_that_are_typed_reach_the_memory_and_the_status_line_shows_it(tmp_path):
    desk = Desk(tmp_path / "e2e", (), None)
    desk.home.mkdir(mode=0o700)
    line = {"type": "command", "command": "yester statusline"}
    (desk.client.cfg / "settings.json").write_text(json.dumps({"statusLine": line}), "utf-8")
    terminal = Terminal(desk)

    def kept() -> list[tuple[str, str]]:
        listed = desk.json("memory", "list", "--all-projects", "--format", "full")["hits"]
        return [(one["title"], one["origin"]) for one in listed]

    def asked() -> str:
        return json.dumps(desk.client.api.requests[-1], ensure_ascii=False)

    try:
        terminal.type("/yester:remember We decided on whole cents because floats lost money.")
        until(lambda: kept() == [("We decided on whole cents", "user")])
        until(lambda: "yester: " in terminal.text())
        terminal.type("/yester:recall whole cents")
        assert "with the tool `search`" in asked()
        terminal.type("/yester:why prices.py:4-9")
        assert "prices.py:4-9" in asked()
        terminal.type("/yester:status")
        assert "transcripts" in asked()
        assert "remembers: We decided on whole cents" in terminal.text()
    finally:
        terminal.close()
        desk.close()
