"""The `claude` program as a language model: alone, contained, and gone when its time is over."""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

import pytest

from tests.models import KEY
from yester.config import load_config
from yester.errors import Busy, ConfigError, LlmError, Malformed, Unreachable
from yester.llm.client import Claude, account_home, find_claude, open_model
from yester.llm.questions import Prompt, turn_prompt
from yester.store.lock import write_lock

TURN_SCHEMA = turn_prompt("", (), ()).schema
pytestmark = pytest.mark.requirement("DIS-04")

# What the real program (2.1.325) prints at the end, without the fields nobody looks at.
GOOD = {
    "type": "result", "subtype": "success", "is_error": False, "result": '{"a": 1}',
    "stop_reason": "end_turn", "api_error_status": None, "num_turns": 1, "total_cost_usd": 0.0021,
    "usage": {"input_tokens": 200, "cache_creation_input_tokens": 30,
              "cache_read_input_tokens": 4, "output_tokens": 12},
}  # fmt: skip

# Writes down how it was called, then does as it is told in a file beside it.
PROGRAM = """\
import json, os, subprocess, sys
from pathlib import Path
here = Path(__file__).parent
seen = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(),
        "stdin": sys.stdin.read(), "pgid": os.getpgid(0), "pid": os.getpid()}
(here / "seen.json").write_text(json.dumps(seen))
told = json.loads((here / "told.json").read_text())
if told.get("hang"):
    child = subprocess.Popen(["sleep", "600"], stdout=None if told["hang"] == "all" else 2)
    (here / "child").write_text(str(child.pid))
    if told["hang"] == "all":
        print("half an ans", flush=True)
        os.mkfifo(here / "never")
        open(here / "never").read()
print(told["out"], end="")
sys.exit(told.get("code", 0))
"""


class Program:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "claude"
        self.path.write_text(f"#!{sys.executable} -IS\n{PROGRAM}")
        self.path.chmod(0o700)

    def tell(self, out="", **more):
        text = out if isinstance(out, str) else json.dumps(out)
        (self.folder / "told.json").write_text(json.dumps({"out": text, **more}))

    @property
    def seen(self):
        return json.loads((self.folder / "seen.json").read_text())


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    return Program(folder)


@pytest.fixture
def claude(program, home):
    (home / "run").mkdir(parents=True)
    return Claude("claude-haiku-5-5", KEY, "", program.path, home, ())


def ask(claude, seconds=20.0):
    prompt = Prompt("turn/1", "what to do", "the words of the turn", TURN_SCHEMA, 500)
    return claude.complete(prompt, seconds)


def gone(pid: int) -> bool:
    """Killed, and if the kernel is still at it, soon."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)


def test_an_answer_comes_with_what_the_program_says_it_cost(claude, program):
    program.tell(GOOD)
    answer = ask(claude)
    assert (answer.text, answer.stop, answer.cost) == ('{"a": 1}', "done", 0.0021)
    assert (answer.tokens_in, answer.tokens_out) == (234, 12)


def test_it_is_called_without_tools_hooks_plugins_or_a_transcript(claude, program, home):
    program.tell(GOOD)
    ask(claude)
    seen = program.seen
    words = seen["argv"]
    assert words[:2] == ["--bare", "-p"]
    assert words[words.index("--tools") + 1] == ""
    for option in ("--no-session-persistence", "--strict-mcp-config", "--disable-slash-commands"):
        assert option in words
    assert words[words.index("--output-format") + 1] == "json"
    assert words[words.index("--model") + 1] == "claude-haiku-5-5"
    assert "what to do" in words[words.index("--system-prompt") + 1]
    assert seen["stdin"] == "the words of the turn"  # not among the words, which all may see
    assert KEY not in " ".join(words)
    assert seen["cwd"] == str(home / "run" / "claude")


@pytest.mark.requirement("CAP-12", "OPS-03")
def test_its_environment_is_ours_and_switches_capture_off(claude, program, home, monkeypatch):
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "NODE_OPTIONS", "LD_PRELOAD_X"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("PATH", f"/evil:{os.environ['PATH']}")
    program.tell(GOOD)
    ask(claude)
    env = program.seen["env"]
    assert env.pop("LC_CTYPE", "") in ("", "C.UTF-8")  # Python's own
    assert env["YESTER_OFF"] == "1"
    assert env["HOME"] == str(account_home())
    assert env["ANTHROPIC_API_KEY"] == KEY
    assert env["CLAUDE_CONFIG_DIR"] == str(home / "run" / "claude")
    assert env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "500"
    assert "/evil" not in env["PATH"]
    assert set(env) == {
        "HOME", "PATH", "LANG", "YESTER_OFF", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_RETRIES", "ANTHROPIC_API_KEY",
        "CLAUDE_CONFIG_DIR",
    }  # fmt: skip


def test_without_a_key_it_uses_the_users_login(program, home):
    (home / "run").mkdir(parents=True)
    program.tell(GOOD)
    ask(Claude("claude-haiku-5-5", "", "", program.path, home, ("~/.claude",)))
    seen = program.seen
    assert seen["argv"][0] == "--safe-mode"  # --bare reads no login
    assert "ANTHROPIC_API_KEY" not in seen["env"]
    assert "CLAUDE_CONFIG_DIR" not in seen["env"]
    ask(Claude("claude-haiku-5-5", "", "", program.path, home, ("/srv/claude",)))
    assert program.seen["env"]["CLAUDE_CONFIG_DIR"] == "/srv/claude"


@pytest.mark.parametrize(
    ("change", "code", "kind", "said"),
    [
        ({"is_error": True, "api_error_status": 529, "result": "over"}, 1, Busy, "claude: over"),
        ({"is_error": True, "api_error_status": 429, "result": "slow"}, 1, Busy, "slow"),
        ({"is_error": True, "result": "Not logged in"}, 1, LlmError, "claude: Not logged in"),
        ({"is_error": True, "result": f"bad {KEY}"}, 1, LlmError, "claude: bad …"),
        ({"result": 3}, 0, Malformed, "not of its protocol"),
        ({"usage": 3}, 0, Malformed, "not of its protocol"),
    ],
)  # fmt: skip
def test_what_it_says_of_a_failure_is_one_sentence(claude, program, change, code, kind, said):
    program.tell(GOOD | change, code=code)
    with pytest.raises(kind, match=said) as caught:
        ask(claude)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("out", ["", "no json", "[]", "{", "\x00"])
def test_what_is_not_its_protocol_is_malformed(claude, program, out):
    program.tell(out)
    with pytest.raises(Malformed):
        ask(claude)


@pytest.mark.parametrize(
    ("change", "stop"),
    [
        ({"is_error": True, "stop_reason": "refusal", "result": "API Error: no"}, "refusal"),
        ({"is_error": True, "result": "… exceeded the 500 output token maximum."}, "length"),
    ],
)  # fmt: skip
def test_a_refusal_and_a_cut_are_told_apart_and_paid(claude, program, change, stop):
    program.tell(GOOD | change, code=1)
    answer = ask(claude)
    assert (answer.stop, answer.cost) == (stop, 0.0021)


@pytest.mark.skipif(sys.platform != "linux", reason="waits for somebody else's child")
@pytest.mark.parametrize("hang", ["all", "child"])
def test_it_and_what_it_started_are_gone_when_it_returns(claude, program, hang):
    program.tell(GOOD, hang=hang)
    if hang == "all":
        with pytest.raises(Unreachable, match="no answer in time") as caught:
            ask(claude, 1.0)
        assert caught.value.sent
    else:
        assert ask(claude).text == '{"a": 1}'
    assert program.seen["pgid"] == program.seen["pid"]
    assert gone(program.seen["pid"])
    assert gone(int((program.folder / "child").read_text()))


def test_only_one_runs_at_a_time_over_all_processes(claude, program, home):
    program.tell(GOOD)
    with (
        write_lock(home / "run" / "claude.lock", 0),
        pytest.raises(Busy, match="answering another question"),
    ):
        ask(claude)
    assert ask(claude).text == '{"a": 1}'


def test_a_program_that_cannot_be_started_is_one_sentence(claude, program):
    program.path.write_text("#!/nonexistent/interpreter\n")
    with pytest.raises(Unreachable, match="claude: No such file"):
        ask(claude)


def test_it_is_looked_for_where_installers_put_it_and_not_on_the_path(program, monkeypatch, home):
    monkeypatch.setenv("PATH", str(program.folder))
    assert find_claude(str(program.path)) == program.path
    with pytest.raises(ConfigError, match="must be the full path"):
        find_claude("claude")
    home.mkdir()
    (home / "config.toml").write_text(
        f"[llm]\nprovider = 'claude'\nprogram = '{program.path}'\nkey = 'k'\n"
    )
    model = open_model(load_config(home, {}))
    assert (model.name, model.here) == ("claude-haiku-5-5", False)
    (home / "config.toml").write_text(
        f"[llm]\nprovider = 'claude'\nprogram = '{program.path}'\nurl = 'http://example.org'\n"
    )
    with pytest.raises(ConfigError, match="plain http"):
        open_model(load_config(home, {}))
