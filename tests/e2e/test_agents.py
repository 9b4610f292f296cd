"""Every other real client that is there, offline against a scripted model: two memories in its
request, what happened stored once, nothing left after uninstalling.

$YESTER_CLIENTS names the folder with the scripted model (fake_api.py), $HARNESS_NPM a folder in
which `npm install` has put the clients, $HARNESS_NODE the folder of a Node that runs them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.capturing import until
from tests.readings import every_item
from yester.agents.descriptors import INSTALLABLE, Agent
from yester.store import open_store

CLIENTS = os.environ.get("YESTER_CLIENTS", "")
BINARIES = Path(os.environ.get("HARNESS_NPM", "/none")) / "node_modules" / ".bin"
NODE = os.environ.get("HARNESS_NODE", "")
PATH = f"{Path(sys.executable).parent}:{NODE}:{BINARIES}:{os.environ['PATH']}"
PROMPT = "please run the demo with the zorbulator hydration table of the sourdough recipes"
SHELL = {"codex": ("exec_command", "cmd"), "gemini-cli": ("run_shell_command", "command")}
pytestmark = [pytest.mark.e2e, pytest.mark.requirement("DEL-12", "CAP-13")]


def _start_model(agent: Agent, out: Path) -> Any:
    spec = importlib.util.spec_from_file_location("fake_api", Path(CLIENTS) / "fake_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    usual = ("run_shell_command" if agent.name == "qwen-code" else "bash", "command")
    tool, field = SHELL.get(agent.name, usual)
    given = {field: "echo hello-from-shell"}
    if agent.name not in ("codex", "pi"):
        given["description"] = "x"
    if agent.name == "qwen-code":
        given["is_background"] = False  # type: ignore[assignment]
    steps = [
        {"text": "Running", "tools": [{"name": tool, "input": given}]},
        {"text": "All finished."},
    ]
    rules = [{"when": "(?i)demo", "tools_required": True, "steps": steps}]
    answers = {"default": "ok", "gemini_json": {"reasoning": "x", "model_choice": "flash"}}
    return module.FakeAPI({**answers, "rules": rules}, 0, str(out)).start()


def _prepare_client(agent: Agent, user: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """Settings that a user of the scripted model would have; the command and its variables."""
    api = f"{url}/v1"
    quiet = {
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }  # fmt: skip
    match agent.name:
        case "codex":
            _write(
                user / ".codex/config.toml",
                'model = "fake-model"\nmodel_provider = "fake"\napproval_policy = "never"\n'
                f'[model_providers.fake]\nname = "fake"\nbase_url = "{api}"\n'
                'env_key = "FAKE_KEY"\nwire_api = "responses"\n',
            )
            words = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
            return [*words, PROMPT], {"CODEX_HOME": str(user / ".codex"), "FAKE_KEY": "x"}
        case "gemini-cli":
            security = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
            _write(user / ".gemini/settings.json", {**quiet, **security})
            words = ["-p", PROMPT, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"]
            return words, {
                "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            }  # fmt: skip
        case "copilot-cli":
            words = ["-p", PROMPT, "--allow-tool", "shell", "--no-auto-update"]
            return words, {
                "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
                "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_BASE_URL": api,
                "COPILOT_PROVIDER_API_KEY": "x", "COPILOT_MODEL": "fake-model",
            }  # fmt: skip
        case "opencode":
            model = {"name": "fake", "limit": {"context": 200_000, "output": 8_000}}
            provider = {
                "npm": "@ai-sdk/openai-compatible", "name": "fake",
                "options": {"baseURL": api, "apiKey": "x"},
                "models": {"fake-model": {**model, "tool_call": True}},
            }  # fmt: skip
            settings = {
                "model": "fake/fake-model", "small_model": "fake/fake-model", "autoupdate": False,
                "share": "disabled", "provider": {"fake": provider},
                "permission": {"edit": "allow", "bash": "allow"},
            }  # fmt: skip
            _write(user / ".config/opencode/opencode.json", settings)
            names = ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
            return ["run", "--format", "json", PROMPT], {
                f"OPENCODE_DISABLE_{name}": "1" for name in names
            }
        case "qwen-code":
            security = {"security": {"auth": {"selectedType": "openai"}}}
            _write(user / ".qwen/settings.json", {**quiet, **security})
            return ["-p", PROMPT, "--approval-mode", "yolo"], {
                "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": api, "OPENAI_MODEL": "fake-model",
            }  # fmt: skip
    one = {"id": "fake-model", "name": "fake", "contextWindow": 128_000, "maxTokens": 8_000}
    kind = {"baseUrl": api, "api": "openai-completions", "apiKey": "x", "models": [one]}
    _write(user / ".pi/agent/models.json", {"providers": {"fake": kind}})
    return ["--provider", "fake", "--model", "fake-model", "-p", PROMPT], {"PI_OFFLINE": "1"}


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def _picture(user: Path) -> dict[str, str]:
    """Every file of the user's but yester's own."""
    return {
        str(path.relative_to(user)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(user.rglob("*"))
        if path.is_file() and ".yester" not in path.relative_to(user).parts
    }


OTHERS = [agent for agent in INSTALLABLE if agent.bell]


@pytest.mark.parametrize("agent", OTHERS, ids=lambda agent: agent.name)
def test_a_real_client_is_told_and_remembered(tmp_path, agent):
    if not CLIENTS or not (BINARIES / agent.program).exists():
        pytest.skip(f"{agent.label} is not there: set YESTER_CLIENTS, HARNESS_NPM, HARNESS_NODE")
    user, shop, bakery = tmp_path / "user", tmp_path / "shop", tmp_path / "bakery"
    for folder in (user, shop, bakery):
        folder.mkdir(mode=0o700)
        subprocess.run(["git", "init", "-q", str(folder)], check=True) if folder != user else None
    env = {
        "HOME": str(user), "PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb", "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "of-an-agent-around-it",
    }  # fmt: skip

    def yester(*words: str, cwd: Path = shop) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "yester", *words]
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)

    model = _start_model(agent, tmp_path / "requests.jsonl")
    try:
        words, variables = _prepare_client(agent, user, model.url)
        yester("remember", "--type", "decision", "We keep prices in integer cents, not floats.")
        told = "We decided that sourdough recipes use the zorbulator hydration table."
        yester("remember", "--type", "decision", told, cwd=bakery)
        before = _picture(user)
        installed = yester("install", "--agent", agent.name, "--yes")
        assert installed.returncode == 0, installed.stdout + installed.stderr
        program = shutil.which(agent.program, path=PATH)
        done = subprocess.run(
            [str(program), *words], cwd=shop, env={**env, **variables}, capture_output=True,
            text=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-500:]
        asked = json.dumps([request["body"] for request in model.requests])
        assert "integer cents" in asked
        assert "sourdough recipes use the zorbulator" in asked
        found: list[Any] = []

        def everything_is_there() -> bool:
            store = open_store(user / ".yester", now=1)
            found[:] = [item for item in every_item(store) if item.session]
            store.close()
            return any(item.body == "All finished." for item in found)

        until(everything_is_there)
        kinds = Counter(
            (item.kind, item.role) for item in found if item.kind in ("prompt", "message")
        )
        assert kinds == {("prompt", "user"): 1, ("message", "assistant"): 2, ("message", "tool"): 1}
        assert {(item.agent, item.project == found[0].project) for item in found} == {
            (agent.name, True)
        }
        assert not any("zorbulator hydration table." in item.body for item in found)
        assert "0 new" in yester("index").stdout or not yester("index", "--json").returncode
        everything_is_there()
        assert sum(item.kind in ("prompt", "message") for item in found) == 4
        left = _picture(user)
        gone = yester("uninstall", "--agent", agent.name, "--yes")
        assert gone.returncode == 0, gone.stderr
        after = _picture(user)
        # Some clients rewrite their own settings whenever they run; we changed nothing else.
        assert [name for name in before if after[name] not in (before[name], left[name])] == []
        assert [name for name in left if name in after and "yester" in name] == []
    finally:
        yester("worker", "stop")
        model.shutdown()
        model.server_close()
