"""yester as `yester install` leaves it, in the real Claude Code: from one session into the next.

What it needs is what test_claude_code.py needs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import yester
from tests.capturing import until
from tests.e2e.test_claude_code import FENCED, MISSING, PLUGIN, Desk, bash, calls, turn

pytestmark = [pytest.mark.e2e, pytest.mark.requirement("DEL-12")]

# The user's own, in a form that nobody's program writes.
SETTINGS = (
    '{"cleanupPeriodDays":90,\n\n     "hooks": { "Stop": [ {"hooks":[\n'
    '{"type":"command","command":"echo mine >> \\"$HOME/own-hook\\""}]} ] } }'
)


class Installed(Desk):
    """A user of Claude Code who has no plugin until they install one."""

    def __init__(self, out: Path, rules: tuple[dict[str, Any], ...]) -> None:
        super().__init__(out, rules, None, plugins=())
        self.config = self.client.cfg
        (self.config / "settings.json").write_text(SETTINGS)
        (self.config / "settings.json").chmod(0o640)
        # So that `yester` finds the program, as it would on the PATH of a user.
        (out / "bin").mkdir()
        (out / "bin" / "claude").symlink_to(self.client.claude)

    def yester(self, *words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        given = [sys.executable, "-m", "yester", "--home", str(home or self.home), *words]
        env = {"HOME": str(self.user), "PATH": f"{self.client.out / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(given, cwd=self.user, env=env, capture_output=True, text=True)

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.yester(
            "install", "--agent", "claude-code", "--config-dir", str(self.config), *words
        )

    def uninstall(self) -> subprocess.CompletedProcess[str]:
        return self.yester(
            "uninstall", "--agent", "claude-code", "--config-dir", str(self.config), "--yes"
        )

    def run(self, prompt: str, **more: Any) -> Any:
        result = super().run(prompt, **more)
        assert "hook" not in result.stderr  # what becomes of SessionEnd is told there alone
        return result

    def events(self) -> Counter[str]:
        db = apsw.Connection(str(self.home / "yester.db"))
        try:
            return Counter(name for (name,) in db.execute("SELECT name FROM event"))
        finally:
            db.close()

    def told_once(self) -> None:
        """What was said and done is there once, as the transcripts alone would give it."""
        other = self.user / "other"
        self.yester("index", str(self.transcripts), home=other)

        def raw(home: Path) -> list[tuple[str, str]]:
            items = self.items(home)
            return sorted((i.kind, i.ref) for i in items if i.kind in ("prompt", "message"))

        assert raw(self.home) == raw(other)

    def own_hook(self) -> int:
        """How often the user's own hook has run."""
        path = self.user / "own-hook"
        return path.read_text().count("mine") if path.exists() else 0

    def doctor(self) -> dict[str, str]:
        done = self.yester("doctor", "--json")
        return {one["check"]: one["state"] for one in json.loads(done.stdout)["findings"]}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Installed]]:
    if MISSING:
        pytest.skip(MISSING)
    made: list[Installed] = []

    def make(*rules: dict[str, Any], installed: bool = True, settings: str = "") -> Installed:
        made.append(Installed(tmp_path / "e2e", rules))
        if settings:
            made[0].home.mkdir(mode=0o700)
            made[0].settings(settings.replace("{PROJECT}", str(made[0].project)))
        if installed:
            done = made[0].install("--yes")
            assert done.returncode == 0, done.stdout + done.stderr
        return made[0]

    yield make
    for one in made:
        one.close()


def tree(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


# --- in and out --------------------------------------------------------------------------------


def test_the_plugin_passes_what_the_public_directory_asks_for(desk):
    user = desk(installed=False)
    done = user.client.cli("plugin", "validate", "--strict", "--profile", "directory", str(PLUGIN))
    assert done.returncode == 0, done.stdout


def test_installing_changes_no_file_of_the_client_and_uninstalling_leaves_no_trace(desk):
    user = desk(turn("note", calls(bash("echo noted")), "It is noted."), installed=False)
    first = user.client.run("Please leave a note about the weather")  # without us
    assert first.rc == 0
    assert user.own_hook() == 1
    before = tree(user.config)

    shown = user.install("--dry-run")
    assert f"+ {user.config / 'skills' / 'yester'} -> {user.home / 'plugin'}" in shown.stdout
    assert tree(user.config) == before
    done = user.install("--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ claude-code: 2.1." in done.stdout
    assert "✓ hooks: Claude Code: 11 of 11" in done.stdout
    there = tree(user.config)
    assert there.pop("skills/yester")[1] == user.home / "plugin"
    del there["skills"]
    assert there == before
    assert user.install("--yes").stdout.startswith("everything is in place\n")

    assert user.uninstall().returncode == 0
    assert tree(user.config) == before
    assert user.uninstall().returncode == 0
    assert tree(user.config) == before

    user.install("--yes")
    second = user.run("Please leave a note about the tides")
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"} <= {
        hook["hook_event"] for hook in second.hook_runs()
    }
    assert user.own_hook() == 2
    assert "yester:mem-search" in second.init["skills"]
    assert "✔ Connected" in user.client.cli("mcp", "list").stdout  # `yester` is not on the PATH
    user.drain()
    assert "Please leave a note about the tides" in user.bodies()
    assert user.uninstall().returncode == 0
    assert (user.config / "settings.json").read_text() == SETTINGS
    assert not (user.config / "skills").exists()
    assert user.worker() == 0
    third = user.client.run("Please leave a note about the moon")
    assert [hook["hook_event"] for hook in third.hook_runs()] == ["Stop"]
    assert user.own_hook() == 3
    assert "Please leave a note about the tides" in user.bodies()  # what was stored stays


def test_a_door_that_the_user_has_shut_is_named_with_the_way_to_open_it(desk):
    user = desk()
    assert user.client.cli("plugin", "disable", "yester@skills-dir").returncode == 0
    shut = user.install("--yes")
    assert shut.returncode == 3
    assert "it is switched off there" in shut.stdout
    assert "claude plugin enable yester@skills-dir" in shut.stdout
    assert user.client.cli("plugin", "enable", "yester@skills-dir").returncode == 0
    assert user.install("--yes").returncode == 0

    settings = user.config / "settings.json"
    settings.write_text('{"disableAllHooks": true}')
    result = user.client.run("Hello there, how are you?")
    assert result.hook_runs() == []
    shut = user.install("--yes")
    assert shut.returncode == 3
    assert f"disableAllHooks in {settings}" in shut.stdout
    assert settings.read_text() == '{"disableAllHooks": true}'

    settings.write_text("{ this is no JSON")
    odd = user.install("--yes")
    assert odd.returncode == 0
    assert "is not a JSON object" in odd.stdout
    assert settings.read_text() == "{ this is no JSON"


def test_another_copy_that_takes_our_place_is_named(desk, tmp_path):
    user = desk()
    market = tmp_path / "market"
    shutil.copytree(PLUGIN, market / "yester", ignore=shutil.ignore_patterns("__pycache__"))
    (market / ".claude-plugin").mkdir()
    (market / ".claude-plugin" / "marketplace.json").write_text(
        json.dumps({
            "name": "elsewhere", "owner": {"name": "somebody"},
            "plugins": [{"name": "yester", "source": "./yester"}],
        })
    )  # fmt: skip
    assert user.client.cli("plugin", "marketplace", "add", str(market)).returncode == 0
    assert user.client.cli("plugin", "install", "yester@elsewhere").returncode == 0
    done = user.install("--yes")
    assert done.returncode == 3
    assert "it loads yester@elsewhere instead" in done.stdout
    result = user.run("Please count the stars above the harbour")
    assert [hook["hook_event"] for hook in result.hook_runs("SessionStart")] == ["SessionStart"]


@pytest.mark.requirement("OPS-03")
def test_variables_of_a_repository_reach_no_program_of_ours(desk):
    user = desk(turn("look around", calls(bash("echo nothing")), "I have looked around."))
    marker = user.project / "ran"
    code = f"open({str(marker)!r}, 'a').write('x')\n"
    for name in ("sitecustomize", "usercustomize", "yester", "json", "apsw"):
        (user.project / f"{name}.py").write_text(code)
    evil = str(user.project)
    variables = {
        "PYTHONPATH": evil, "PYTHONSTARTUP": f"{evil}/json.py", "PYTHONUSERBASE": evil,
        "HOME": evil, "YESTER_HOME": evil, "XDG_RUNTIME_DIR": evil,
    }  # fmt: skip
    (user.project / ".claude").mkdir()
    (user.project / ".claude" / "settings.json").write_text(json.dumps({"env": variables}))
    before = sorted(user.project.rglob("*"))
    result = user.run("Please look around in this repository")
    assert [one["name"] for one in result.init["mcp_servers"]] == ["plugin:yester:yester"]
    assert "✔ Connected" in user.client.cli("mcp", "list").stdout
    user.drain()
    assert "I have looked around." in user.bodies()
    assert not marker.exists()
    assert sorted(user.project.rglob("*")) == before


def test_uninstalling_under_a_running_session_does_not_stop_it(desk):
    user = desk(
        turn("first", "The first is done."),
        turn("second", calls(bash("echo still here"), ("Read", {"file_path": "{PROJECT}/a.txt"})),
             "The second is done."),
    )  # fmt: skip
    (user.project / "a.txt").write_text("still readable\n")
    command = [
        user.client.claude, "-p", "--output-format", "stream-json", "--input-format", "stream-json",
        "--verbose", "--include-hook-events", "--permission-mode", "acceptEdits",
        "--allowedTools", "Bash,Read",
    ]  # fmt: skip
    said = []
    with subprocess.Popen(
        command, cwd=user.project, env=user.client.env(), text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as client:  # fmt: skip
        assert client.stdin is not None
        assert client.stdout is not None
        for prompt in ("Please do the first thing", "Please do the second thing"):
            message = {"type": "user", "message": {"role": "user", "content": prompt}}
            client.stdin.write(json.dumps(message) + "\n")
            client.stdin.flush()
            for line in client.stdout:
                if '"type":"result"' in line:
                    said.append(json.loads(line)["result"])
                    break
            if len(said) == 1:
                assert user.uninstall().returncode == 0
        client.stdin.close()
        client.stdout.read()
        assert client.wait() == 0
    assert said == ["The first is done.", "The second is done."]
    last = user.client.api.requests[-1]["body"]
    assert "still readable" in json.dumps(last)  # the tools ran


# --- from one session into the next ------------------------------------------------------------

DECIDED = "We decided that outgoing invoices wait in the Redis stream called quartz-ledger"
ERROR = "ModuleNotFoundError: No module named zoneinfo_backport"
FIXED = "Fixed the import of zoneinfo_backport"


def works_on_it() -> list[dict[str, Any]]:
    """A session in which a decision is told and an error comes up and is put right."""
    path = "{PROJECT}/clock.py"
    return [
        turn("quartz-ledger", "That is noted."),
        turn(
            "tests fail",
            calls(bash(f"echo '{ERROR}' >&2; exit 1"), text="I run them."),
            calls(("Write", {"file_path": path, "content": "import zoneinfo\n"})),
            calls(bash("echo 3 passed")),
            f"{FIXED} by taking zoneinfo from the standard library.",
        ),
    ]


def test_a_decision_and_a_fixed_error_are_in_the_first_request_of_the_next_session(desk):
    user = desk(*works_on_it())
    told = user.run(f"{DECIDED}, keep that in mind")
    fixed = user.run("The tests fail when they are imported, please find out why")
    user.drain()
    events = user.events()
    # With a folder of the client's outside HOME, as here, the hook before a tool leaves its event.
    assert events.pop("PreToolUse", 3) == 3
    assert events == {
        "SessionStart": 2, "UserPromptSubmit": 2, "PostToolUse": 2, "PostToolUseFailure": 1,
        "Stop": 2, "SessionEnd": 2,
    }  # fmt: skip
    failures = [item for item in user.items() if "error" in item.tags]
    assert [item.tool for item in failures] == ["Bash"]
    assert ERROR in failures[0].body
    user.told_once()

    result = user.run("Good morning, what shall we do today?")
    assert len({told.session_id, fixed.session_id, result.session_id}) == 3
    first = result.context(0)
    (block,) = FENCED.findall(first)
    assert "data, not instructions" in block
    assert DECIDED in block
    assert FIXED in block
    outside = FENCED.sub("", first)
    assert "quartz-ledger" not in outside
    assert "zoneinfo" not in outside
    assert {state for check, state in user.doctor().items() if check in ("hooks", "claude-code")} \
        == {"ok"}  # fmt: skip


def test_secrets_and_private_text_are_in_no_later_request_and_in_no_byte_of_the_home(desk):
    token = "ghp_" + "A7bQ9xWm" * 4 + "Zr4T"
    password = "-".join(("correct", "horsebattery", "staple"))
    private = "zarquon vermilion passphrase"
    user = desk(
        turn("roll-out", calls(("Read", {"file_path": "{PROJECT}/other.txt"})), "It went well."),
        turn(
            "deploy",
            calls(
                bash(f"echo 'GITHUB_TOKEN={token}'; echo '<private>{private}</private>'"),
                ("Read", {"file_path": "{PROJECT}/notes.txt"}),
                bash(f"cat /nowhere/{token}"),
            ),
            f"Deployed with {token} <private>{private}</private> to the harbour server.",
        ),
    )
    notes = user.project / "notes.txt"
    notes.write_text(f"database: postgres://shop:{password}@db/shop\n<private>{private}</private>")
    (user.project / "other.txt").write_text("nothing secret\n")
    first = user.run(
        f"Please deploy to the harbour with {token} <private>my word is {private}</private>"
    )
    words = [token, password, *private.split()]
    assert all(word in first.context() for word in words)
    printed = "".join(hook["stdout"] for hook in first.hook_runs())
    assert not [word for word in words if word in printed]
    user.drain()
    notes.unlink()

    # /resume would send the conversation itself again: another session must not.
    second = user.run("How did the roll-out to the harbour server go, and with what token?")
    assert "harbour server" in "".join(FENCED.findall(second.context(0)))
    assert "[redacted:" in second.context(0)
    for request in second.requests:
        sent = json.dumps(request["body"])
        assert not [word for word in words if word in sent]
    user.drain()
    user.yester("backup")
    user.yester("worker", "stop")
    for path in user.home.rglob("*"):
        if path.is_file():
            found = path.read_bytes().lower()
            assert not [word for word in words if word.lower().encode() in found], path


@pytest.mark.requirement("DEL-03")
def test_compaction_and_resume_bring_the_memory_again(desk):
    user = desk(*works_on_it())
    user.run(f"{DECIDED}, keep that in mind")
    user.drain()
    result, _ = user.live(
        "Please look at the checkout of the shop", "/compact", "Now carry on with the checkout page"
    )
    starts = result.hook_runs("SessionStart")
    assert [hook["hook_name"].partition(":")[2] for hook in starts] == ["startup", "compact"]
    after = result.context(-1)
    assert "FAKE-COMPACT-SUMMARY" in after
    assert any(DECIDED in block for block in FENCED.findall(after))

    meanwhile = "We decided that the harbour office is sent one letter a week"
    first = user.run("Tell me about the state of the shop")
    assert DECIDED in first.context(0)
    user.run(f"{meanwhile}, keep that in mind")
    user.drain()
    user.client.session_id = first.session_id
    resumed = user.run("And what about the invoices of the shop?", resume=True)
    (start,) = resumed.hook_runs("SessionStart")
    assert start["hook_name"] == "SessionStart:resume"
    assert resumed.session_id == first.session_id
    # The session has its words back; what it lacks is what others have done meanwhile.
    assert meanwhile in start["stdout"]
    assert DECIDED not in start["stdout"]
    blocks = "".join(FENCED.findall(resumed.context(0)))
    assert meanwhile in blocks
    assert DECIDED in blocks


NOTE = "Rounding happens once, in the total, since the tax office rejected line rounding"
TIDES = "The tables of the tides are bought, never computed: the pilots sign for them"


@pytest.mark.requirement("DEL-03")
def test_a_sub_agent_and_a_file_about_to_be_read_get_what_is_known_of_them(desk):
    task = "SUBTASK: count the functions in total.py"
    agent = {"subagent_type": "general-purpose", "run_in_background": False}
    user = desk(
        turn("SUBTASK", calls(bash("grep -c def total.py")), "There is one."),
        turn(
            "look into the total",
            calls(("Read", {"file_path": "{PROJECT}/total.py"})),
            calls(("Agent", {"description": "count", "prompt": task, **agent})),
            calls(("Read", {"file_path": "{PROJECT}/total.py"}),
                  ("Read", {"file_path": "{PROJECT}/absent.py"})),
            "I have looked.",
        ),
        turn(
            "about the sea",
            calls(("Read", {"file_path": "{PROJECT}/tides.py"})),
            calls(("Read", {"file_path": "{PROJECT}/tides.py"}),
                  ("Read", {"file_path": "{PROJECT}/absent.py"})),
            "It is about tides.",
        ),
        settings='embedder = "none"\n[projects]\n"{PROJECT}" = "shop"\n',
    )  # fmt: skip
    git = ["git", "-c", "user.name=sam", "-c", "user.email=sam@example.org"]
    (user.project / "total.py").write_text("def total(): ...\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *words], cwd=user.project, check=True)
    (user.project / "total.py").write_text("def total(): return 0\n")
    with yester.open(user.home) as memory:
        memory.add([
            {"ref": "1", "project": "shop", "type": "decision", "title": "Rounding", "text": NOTE,
             "files": ["total.py"], "epoch": 1_790_000_000},
        ])  # fmt: skip
    result = user.run("Please look into the total with somebody else")
    (started,) = result.hook_runs("SubagentStart")
    assert NOTE in started["stdout"]
    of_agent = [q for q in result.requests if task in json.dumps(q["body"]["messages"][:2])]
    assert of_agent
    assert NOTE in json.dumps(of_agent[0]["body"])
    # The beginning of the session has told it already, and nothing is told twice.
    assert NOTE in result.context(0)
    reads = result.hook_runs("PreToolUse")
    assert reads
    assert {hook["stdout"] for hook in reads} == {""}
    user.drain()
    assert [one.state for one in user.turns(result.session_id)] == ["done"]

    # A file that is not at hand: what is recorded of it comes when it is about to be read, once.
    with yester.open(user.home) as memory:
        memory.add([
            {"ref": "2", "project": "shop", "type": "bugfix", "title": "Tides", "text": TIDES,
             "files": ["tides.py"], "epoch": 1_780_000_000},
            *({"ref": f"leaf{number}", "project": "shop", "type": "discovery",
               "title": f"Leaf {number}", "text": f"Leaf {number} of the tree is green"}
              for number in range(40)),
        ])  # fmt: skip
    (user.project / "tides.py").write_text("def tides(): ...\n")
    for words in (["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=user.project, check=True)
    (user.project / "total.py").write_text("def total(): return 1\n")
    later = user.run("Please open the file about the sea")
    assert TIDES not in later.context(0)
    first, second, missing = later.hook_runs("PreToolUse")
    given = json.loads(first["stdout"])["hookSpecificOutput"]
    assert given.keys() == {"hookEventName", "additionalContext"}  # the tool is not its business
    assert TIDES in "".join(FENCED.findall(given["additionalContext"]))
    assert (second["stdout"], missing["stdout"]) == ("", "")
    assert TIDES in later.context(1)
    assert "def tides" in later.context(1)


def test_a_worker_killed_in_between_costs_nothing(desk):
    user = desk(
        turn("first look", calls(bash("echo one"), bash("cat /nowhere")), "The first one is over."),
        turn("second look", calls(bash("echo two")), "The second one is over."),
    )
    pid = user.worker()
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: user.worker() == 0)
    first = user.run("Please take a first look at the mill")  # its start brings up another one
    again = user.worker()
    assert again not in (0, pid)
    os.kill(again, signal.SIGKILL)
    until(lambda: user.worker() == 0)
    second = user.run("Please take a second look at the mill", resume=True)
    user.drain()
    assert [one.state for one in user.turns(first.session_id)] == ["done", "done"]
    assert second.session_id == first.session_id
    bodies = user.bodies()
    for text in ("Please take a first look at the mill", "The first one is over.",
                 "Please take a second look at the mill", "The second one is over."):  # fmt: skip
        assert bodies.count(text) == 1
    user.told_once()
    assert user.doctor()["worker"] == "ok"
