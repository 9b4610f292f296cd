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
        terminal.type("Never commit to main.")
        until(lambda: rules("active") == ["Never commit to main."])
        terminal.type("Fix the import. Always use tabs.")
        assert "says: yester keeps a rule: Never commit to main.  /yester:drop" in terminal.text()
        until(lambda: rules("proposed") == ["Always use tabs."])
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
