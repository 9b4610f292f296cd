"""The MCP server and the skill with programs that are not part of this repository.

MCP Inspector comes from npm; `npx` fetches it, unless $YESTER_INSPECTOR names its executable
(node_modules/.bin/mcp-inspector). Claude Code is found as in test_claude_code.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_claude_code import MISSING, PLUGIN, RUNNER, Desk, calls, turn

pytestmark = pytest.mark.e2e
SERVER = "mcp__plugin_yester_yester__"


def _inspector() -> list[str]:
    if named := os.environ.get("YESTER_INSPECTOR"):
        return [named, "--cli"]
    npx = shutil.which("npx")
    return [npx, "--yes", "@modelcontextprotocol/inspector", "--cli"] if npx else []


INSPECTOR = _inspector()  # every test runs without the variable (see conftest.py)
NO_NPM = "MCP Inspector needs npm: install Node.js, or set YESTER_INSPECTOR to mcp-inspector"


@pytest.mark.skipif(not INSPECTOR, reason=NO_NPM)
def test_mcp_inspector_lists_and_calls_every_tool(tmp_path, samples):
    env = {**os.environ, "HOME": str(tmp_path)}
    yester = [sys.executable, "-m", "yester", "--home", str(tmp_path / "memory")]
    subprocess.run([*yester, "index", str(samples)], check=True, capture_output=True, env=env)

    def inspect(method: str, *words: str) -> Any:
        done = subprocess.run(
            [*INSPECTOR, *yester, "mcp", "--method", method, *words],
            capture_output=True, text=True, cwd=tmp_path, env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout[done.stdout.index("{") :])

    def call(name: str, *given: str) -> str:
        words = [word for one in given for word in ("--tool-arg", one)]
        result = inspect("tools/call", "--tool-name", name, *words)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    listed = inspect("tools/list")["tools"]
    assert [tool["name"] for tool in listed] == [
        "__IMPORTANT", "search", "timeline", "get_observations", "save_memory",
    ]  # fmt: skip
    assert "get_observations" in call("__IMPORTANT")
    assert "#138" in call("search", "query=why drop redis", "limit=3")
    assert "▶ #138" in call("timeline", "anchor=138", "depth_before=1")
    assert "We dropped Redis because" in call("get_observations", 'ids=["138"]')
    assert "Saved" in call("save_memory", "text=Kept with the inspector")


@pytest.mark.skipif(RUNNER is None, reason=MISSING)
def test_claude_code_finds_the_plugin_sound(tmp_path):
    client = RUNNER.find_claude()
    done = subprocess.run(
        [client, "plugin", "validate", str(PLUGIN)], capture_output=True, text=True,
        env={"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout


@pytest.mark.skipif(RUNNER is None, reason=MISSING)
def test_claude_code_uses_the_server_and_the_skill(tmp_path, samples):
    """`yester` is on the PATH, as after pipx install; the script beside this interpreter is it."""
    assert (Path(sys.executable).parent / "yester").exists()
    script = (
        calls(("ToolSearch", {"query": f"select:{SERVER}search,{SERVER}save_memory"})),
        calls((f"{SERVER}search", {"query": "why drop redis", "limit": 2})),
        calls((f"{SERVER}save_memory", {"text": "Redis is gone for good", "title": "No Redis"})),
        calls(("Skill", {"skill": "yester:mem-search"})),
        "Done.",
    )
    desk = Desk(tmp_path, (turn("look it up", *script),), None)
    try:
        assert desk.yester("index", str(samples)).returncode == 0
        ran = desk.run("Please look it up")
        assert {"name": "plugin:yester:yester", "status": "connected", "source": "plugin"} in (
            ran.init["mcp_servers"]
        )
        assert "yester:mem-search" in ran.init["skills"]
        told = ran.context()
        assert "#138 · message, 2026-05-19, tidepool" in told
        assert "Saved in project " in told
        assert "The way to an answer" in told, "the skill's hub"
        desk.drain()
        kept = [item for item in desk.items() if item.kind == "memory"]
        assert [(item.title, item.body) for item in kept] == [
            ("No Redis", "Redis is gone for good")
        ]
        again = [item for item in desk.items() if SERVER in item.tool]
        assert again == [], "what the server answered is not taken in as something new"
    finally:
        desk.close()
