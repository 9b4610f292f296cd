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
from yester.agents.descriptors import AGENTS, INSTALLABLE, Agent
from yester.store import open_store

CLIENTS = os.environ.get("YESTER_CLIENTS", "")
BINARIES = Path(os.environ.get("HARNESS_NPM", "/none")) / "node_modules" / ".bin"
NODE = os.environ.get("HARNESS_NODE", "")
PATH = f"{Path(sys.executable).parent}:{NODE}:{BINARIES}:{os.environ['PATH']}"
PROMPT = "please run the demo with the zorbulator hydration table of the sourdough recipes"
SHELL = {"codex": ("exec_command", "cmd"), "gemini-cli": ("run_shell_command", "command")}
pytestmark = [pytest.mark.e2e, pytest.mark.requirement("DEL-12", "CAP-13")]


def _start_scripted(rules: list[dict[str, Any]], out: Path) -> Any:
    spec = importlib.util.spec_from_file_location("fake_api", Path(CLIENTS) / "fake_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answers = {"default": "ok", "gemini_json": {"reasoning": "x", "model_choice": "flash"}}
    return module.FakeAPI({**answers, "rules": rules}, 0, str(out)).start()


def _start_model(agent: Agent, out: Path) -> Any:
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
    return _start_scripted([{"when": "(?i)demo", "tools_required": True, "steps": steps}], out)


def _prepare_client(
    agent: Agent, user: Path, url: str, prompt: str = PROMPT, session: str = ""
) -> tuple[list[str], dict[str, str]]:
    """Settings that a user of the scripted model would have; the command and its variables. With a
    session it is the command that takes that one up again."""
    api = f"{url}/v1"
    again = [word.format(session=session) for word in agent.resume] if session else []
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
            return [*words, *again, prompt], {"CODEX_HOME": str(user / ".codex"), "FAKE_KEY": "x"}
        case "gemini-cli":
            security = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
            _write(user / ".gemini/settings.json", {**quiet, **security})
            words = ["-p", prompt, "-m", "gemini-2.5-flash", "--approval-mode", "yolo", *again]
            return words, {
                "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            }  # fmt: skip
        case "copilot-cli":
            words = ["-p", prompt, "--allow-tool", "shell", "--no-auto-update", *again]
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
            return ["run", "--format", "json", *again, prompt], {
                f"OPENCODE_DISABLE_{name}": "1" for name in names
            }
        case "qwen-code":
            security = {"security": {"auth": {"selectedType": "openai"}}}
            _write(user / ".qwen/settings.json", {**quiet, **security})
            return ["-p", prompt, "--approval-mode", "yolo", *again], {
                "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": api, "OPENAI_MODEL": "fake-model",
            }  # fmt: skip
    one = {"id": "fake-model", "name": "fake", "contextWindow": 128_000, "maxTokens": 8_000}
    kind = {"baseUrl": api, "api": "openai-completions", "apiKey": "x", "models": [one]}
    _write(user / ".pi/agent/models.json", {"providers": {"fake": kind}})
    return ["--provider", "fake", "--model", "fake-model", *again, "-p", prompt], {
        "PI_OFFLINE": "1"
    }


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


OTHERS = [agent for agent in INSTALLABLE if agent.bell and agent.tried]


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
        _prepare_client(agent, user, model.url)
        yester("remember", "--type", "decision", "We keep prices in integer cents, not floats.")
        told = "We decided that sourdough recipes use the zorbulator hydration table."
        yester("remember", "--type", "decision", told, cwd=bakery)
        before = _picture(user)
        installed = yester("install", "--agent", agent.name, "--yes")
        assert installed.returncode == 0, installed.stdout + installed.stderr

        def run_client(**more: str) -> None:
            words, variables = _prepare_client(agent, user, model.url, **more)
            done = subprocess.run(
                [str(shutil.which(agent.program, path=PATH)), *words], cwd=shop,
                env={**env, **variables}, capture_output=True, text=True, timeout=120,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-500:]
            assert "timed out" not in done.stderr

        run_client()
        asked = json.dumps([request["body"] for request in model.requests])
        assert "integer cents" in asked
        assert "sourdough recipes use the zorbulator" in asked
        found: list[Any] = []

        def everything_is_there(answers: int = 1) -> bool:
            store = open_store(user / ".yester", now=1)
            found[:] = [item for item in every_item(store) if item.session]
            store.close()
            return sum(item.body == "All finished." for item in found) == answers

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
        session = found[0].session
        told = len(model.requests)
        run_client(session=session, prompt="please run the demo once more")
        until(lambda: everything_is_there(2))
        assert {item.session for item in found} == {session}
        assert sum(item.kind in ("prompt", "message") for item in found) == 8
        prompts = [item.prompt_number for item in found if item.kind == "prompt"]
        assert sorted(prompts) == [1, 2]
        resumed = json.dumps([request["body"] for request in model.requests[told:]])
        assert "integer cents" in resumed
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


class Desk:
    """A user of one client and a scripted model."""

    def __init__(self, agent: Agent, folder: Path, rules: list[dict[str, Any]]) -> None:
        if not CLIENTS or not (BINARIES / agent.program).exists():
            pytest.skip(f"{agent.label} is not there")
        self.agent, self.user, self.shop = agent, folder / "user", folder / "shop"
        for one in (self.user, self.shop):
            one.mkdir(mode=0o700)
        subprocess.run(["git", "init", "-q", str(self.shop)], check=True)
        self.env = {"HOME": str(self.user), "PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb"}
        self.model = _start_scripted(rules, folder / "requests.jsonl")
        _prepare_client(agent, self.user, self.model.url)
        self.yester("remember", "--type", "decision", "We keep prices in integer cents.")
        self.yester("install", "--agent", agent.name, "--yes")

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.yester("worker", "stop")
        self.model.shutdown()
        self.model.server_close()

    def yester(self, *words: str) -> None:
        command = [sys.executable, "-m", "yester", *words]
        subprocess.run(command, cwd=self.shop, env=self.env, capture_output=True)

    def run_client(self, **more: str) -> list[str]:
        """What the model was asked."""
        before = len(self.model.requests)
        words, variables = _prepare_client(self.agent, self.user, self.model.url, **more)
        if self.agent.name == "codex":
            path = self.user / ".codex" / "config.toml"
            path.write_text(f"model_auto_compact_token_limit = 100000\n{path.read_text()}")
        done = subprocess.run(
            [str(shutil.which(self.agent.program, path=PATH)), *words], cwd=self.shop, text=True,
            env={**self.env, **variables}, capture_output=True, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-500:]
        assert "Extension error" not in done.stderr
        return [json.dumps(request["body"]) for request in self.model.requests[before:]]

    def items(self, wanted: str) -> list[Any]:
        """What is stored, when so many answers are there."""
        found: list[Any] = []

        def are_there() -> bool:
            store = open_store(self.user / ".yester", now=1)
            found[:] = [item for item in every_item(store) if item.session]
            store.close()
            return any(item.body == wanted for item in found)

        until(are_there)
        return found


@pytest.mark.parametrize("name", ["codex", "opencode", "pi"])
def test_a_compaction_leaves_one_summary_and_the_memory_comes_again(tmp_path, name):
    steps = [{"text": "First done.", "usage": {"input_tokens": 195_000}}]
    rules = [
        {"when": "(?i)demo once more", "steps": [{"text": "Second done."}]},
        {"when": "(?i)demo", "steps": steps},
    ]
    with Desk(AGENTS[name], tmp_path, rules) as desk:
        assert "integer cents" in desk.run_client()[-1] or name == "pi"
        session = desk.items("First done.")[0].session
        asked = desk.run_client(session=session, prompt="please run the demo once more")
        found = desk.items("Second done.")
        assert [item.type for item in found if item.kind == "summary"] == ["compact"]
        assert [item.prompt_number for item in found if item.kind == "prompt"] == [1, 2]
        told = [one for one in asked if "demo once more" in one]
        assert "integer cents" in told[-1]


@pytest.mark.parametrize("name", ["opencode", "qwen-code"])
def test_what_a_sub_agent_is_asked_is_no_prompt(tmp_path, name):
    kind = "general" if name == "opencode" else "general-purpose"
    given = {"description": "look", "prompt": "subquest: find the callers", "subagent_type": kind}
    call = {"text": "Running", "tools": [{"name": "task", "input": given}]}
    rules = [
        {"when": "(?i)subquest", "steps": [{"text": "Three callers."}]},
        {"when": "(?i)demo", "tools_required": True, "steps": [call, {"text": "All finished."}]},
    ]
    with Desk(AGENTS[name], tmp_path, rules) as desk:
        desk.run_client()
        found = desk.items("All finished.")
        assert [item.body for item in found if item.kind == "prompt"] == [PROMPT]
        assert len({item.session for item in found}) == 1


@pytest.mark.requirement("DEL-12", "DEL-14", "DIS-14")
def test_one_memory_serves_all_clients(tmp_path):
    """Decided in Codex, recalled in Gemini CLI, corrected in Claude Code, seen in opencode."""
    names = ("codex", "gemini-cli", "opencode")
    claude = os.environ.get("HARNESS_CLAUDE", "")
    there = all((BINARIES / AGENTS[name].program).exists() for name in names)
    if not (CLIENTS and claude and there):
        pytest.skip("set YESTER_CLIENTS, HARNESS_CLAUDE, HARNESS_NPM, HARNESS_NODE")
    user, shop, programs = tmp_path / "user", tmp_path / "shop", tmp_path / "bin"
    for folder in (user, shop, programs):
        folder.mkdir(mode=0o700)
    subprocess.run(["git", "init", "-q", str(shop)], check=True)
    (programs / "claude").symlink_to(claude)
    path = f"{programs}:{PATH}"
    env = {"HOME": str(user), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}
    steps = [{"text": "Agreed: the ferry timetable is kept in that file."}]
    rules = [{"when": "(?i)keep the ferry timetable in", "steps": steps}]
    model = _start_scripted(rules, tmp_path / "requests.jsonl")

    def yester(*words: str) -> str:
        command = [sys.executable, "-m", "yester", *words]
        return subprocess.run(command, cwd=shop, env=env, capture_output=True, text=True).stdout

    def asked(name: str, prompt: str) -> str:
        """What the model was sent."""
        before, agent = len(model.requests), AGENTS[name]
        words, variables = ["-p", prompt], {
            "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": model.url, "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        if name != "claude-code":
            words, variables = _prepare_client(agent, user, model.url, prompt)
        done = subprocess.run(
            [str(shutil.which(agent.program, path=path)), *words], cwd=shop, text=True,
            env={**env, **variables}, capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-500:]
        return json.dumps([request["body"] for request in model.requests[before:]])

    def is_known(words: str, agent: str) -> bool:
        hits = json.loads(yester("recall", words, "--agent", agent, "--json") or "{}").get("hits")
        return bool(hits)

    try:
        for name in names:
            _prepare_client(AGENTS[name], user, model.url)
        assert "yester is installed" in yester("install", "--yes")
        asked("codex", "We decided to keep the ferry timetable in tide.toml for the port office.")
        until(lambda: is_known("ferry timetable tide.toml", "codex"))
        question = "Where does the ferry timetable live, and who reads it?"
        assert "keep the ferry timetable in tide.toml" in asked("gemini-cli", question)
        asked("claude-code", "We decided to keep the ferry timetable in tide.json, not tide.toml.")
        until(lambda: is_known("ferry timetable tide.json", "claude-code"))
        told = asked("opencode", "Where does the ferry timetable live now, and in which file?")
        assert "keep the ferry timetable in tide.json" in told
        titles = [one["body"] for one in model.requests if "title generator" in str(one["body"])]
        assert not [one for one in titles if "yester-memory" in str(one["messages"][0])]
        sessions = yester("sessions", "--json")
        assert all(f'"{name}"' in sessions for name in (*names, "claude-code"))
    finally:
        yester("worker", "stop")
        model.shutdown()
        model.server_close()
