"""The real Claude Code with our plugin, against a scripted model: what reaches the store, and back.

Neither the client nor the runner is part of this repository. $YESTER_CLIENTS names the folder with
the runner (run_session.py), $HARNESS_CLAUDE the client's native binary where the runner does not
find it by itself. Every test is a user of its own: HOME, yester's home and project are in tmp_path.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import yester
from yester.model import Filters, Item, Paging, Session, Turn, replace

PLUGIN = Path(__file__).parent.parent.parent / "plugin"
CLIENTS = os.environ.get("YESTER_CLIENTS", "")  # every test runs without it (see conftest.py)
HOW = (
    "get the client with `npm install @anthropic-ai/claude-code` in an empty folder, set "
    "YESTER_CLIENTS to the folder with the runner (run_session.py) and HARNESS_CLAUDE to "
    "node_modules/@anthropic-ai/claude-code-*/claude"
)
FENCED = re.compile(r"<yester-memory.*?</yester-memory>", re.S)


def _runner() -> tuple[Any, str]:
    """The runner's module, or why there is none."""
    path = Path(CLIENTS) / "run_session.py"
    if not CLIENTS:
        return None, f"YESTER_CLIENTS is not set: {HOW}"
    if not path.is_file():
        return None, f"YESTER_CLIENTS={CLIENTS} has no run_session.py: {HOW}"
    spec = importlib.util.spec_from_file_location("yester_clients_run_session", path)
    assert spec is not None
    assert spec.loader is not None
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    try:
        client = runner.find_claude()
    except SystemExit:
        client = ""
    if not os.access(client, os.X_OK):
        return None, f"Claude Code is not installed: {HOW}"
    return runner, ""


RUNNER, MISSING = _runner()
pytestmark = pytest.mark.e2e


def turn(when: str, *steps: dict[str, Any] | str) -> dict[str, Any]:
    """What the model does about a prompt: replies, one after the other."""
    replies = [{"text": step} if isinstance(step, str) else step for step in steps]
    return {"when": when, "tools_required": True, "steps": replies}


def calls(*tools: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    return {"text": text, "tools": [{"name": name, "input": given} for name, given in tools]}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command}


class Desk:
    """A user with the client, the plugin and yester."""

    def __init__(
        self,
        out: Path,
        rules: tuple[dict[str, Any], ...],
        settings: dict[str, Any] | None,
        plugins: tuple[Path, ...] = (PLUGIN,),
    ) -> None:
        # Our interpreter first, so that no version manager's script stands before each hook.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.client = RUNNER.Session(
            plugins=plugins, scenario={"default": "Nothing to add.", "rules": list(rules)},
            project_settings=settings, out=out, recorder=False, env={"PATH": path},
        )  # fmt: skip
        self.project, self.user = self.client.project, self.client.home
        self.transcripts = self.client.cfg / "projects"
        self.home = self.user / ".yester"
        self.stopped = 0

    def close(self) -> None:
        if self.stopped:
            os.kill(self.stopped, signal.SIGCONT)
        self.yester("worker", "stop")
        self.client.close()
        self.client.api.server_close()

    def yester(self, *words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "yester", "--home", str(home or self.home), *words]
        env = {"HOME": str(self.user), "PATH": os.environ["PATH"]}
        return subprocess.run(command, cwd=self.user, env=env, capture_output=True, text=True)

    def json(self, *words: str, home: Path | None = None) -> Any:
        done = self.yester(*words, "--json", home=home)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def settings(self, text: str) -> None:
        (self.home / "config.toml").write_text(text, "utf-8")

    def drain(self) -> None:
        assert self.yester("worker", "drain").returncode == 0
        assert self.json("status")["spool"] == {"waiting": 0, "oldest_s": None, "bad": 0}

    def run(self, prompt: str, **more: Any) -> Any:
        """A session, or what `more` says; every hook of it must have gone well."""
        return unharmed(self.client.run(prompt, **more))

    def items(self, home: Path | None = None, session: str = "") -> list[Item]:
        with yester.open(home or self.home) as memory:
            found = memory.store.select(Filters(session=session), Paging(10_000))
        return sorted(found, key=lambda item: (item.epoch, item.id))

    def bodies(self) -> list[str]:
        return [item.body for item in self.items()]

    def turns(self, key: str) -> list[Turn]:
        with yester.open(self.home) as memory:
            session = memory.store.session(key, "claude-code")
            assert session
            return memory.store.entries(Turn, {"session": session.id}, Paging(oldest_first=True))

    def sessions(self) -> list[Session]:
        with yester.open(self.home) as memory:
            return memory.store.sessions(Filters(), Paging(100))

    def worker(self) -> int:
        return int(self.json("worker", "status")["pid"] or 0)

    def stop_the_clock(self) -> None:
        """The worker hangs: it holds its seat and its socket, and does nothing."""
        self.stopped = self.worker()
        os.kill(self.stopped, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.stopped, signal.SIGCONT)
        self.stopped = 0

    def live(self, *prompts: str) -> tuple[Any, dict[str, list[float]]]:
        """One process that gets each prompt after the answer to the one before; and how long its
        hooks took, by event."""
        command = [
            self.client.claude, "-p", "--output-format", "stream-json", "--input-format",
            "stream-json", "--verbose", "--include-hook-events", "--permission-mode", "acceptEdits",
            "--allowedTools", "Bash,Read,Write",
            *(word for path in self.client.plugins for word in ("--plugin-dir", path)),
        ]  # fmt: skip
        before = len(self.client.api.requests)
        lines: list[tuple[float, str]] = []
        with subprocess.Popen(
            command, cwd=self.project, env=self.client.env(), text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as client:  # fmt: skip
            assert client.stdin is not None
            assert client.stdout is not None
            guard = threading.Timer(60, client.kill)
            guard.start()
            for prompt in prompts:
                message = {"role": "user", "content": prompt}
                client.stdin.write(json.dumps({"type": "user", "message": message}) + "\n")
                client.stdin.flush()
                for line in client.stdout:
                    lines.append((time.monotonic(), line))
                    if '"type":"result"' in line:
                        break
            client.stdin.close()
            lines += [(time.monotonic(), line) for line in client.stdout]
            code = client.wait()
            guard.cancel()
        result = RUNNER.Result(
            code, "".join(line for _, line in lines), "", 0.0,
            list(self.client.api.requests)[before:], [], [],
        )  # fmt: skip
        began: dict[str, float] = {}
        took: dict[str, list[float]] = {}
        for at, line in lines:
            event = json.loads(line)
            if event.get("subtype") == "hook_started":
                began[event["hook_id"]] = at
            elif event.get("subtype") == "hook_response":
                took.setdefault(event["hook_event"], []).append(at - began[event["hook_id"]])
        return unharmed(result), took


def unharmed(result: Any) -> Any:
    """The session went to its end, and no hook failed, said anything or was cancelled."""
    assert result.rc == 0, result.stderr
    assert result.hook_runs("SessionStart")
    for hook in result.hook_runs():
        ended = (hook["outcome"], hook["exit_code"], hook["stderr"])
        assert ended == ("success", 0, ""), hook
    return result


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Make a user; `indexed`: who has run `yester index` once, as the README says."""
    if MISSING:
        pytest.skip(MISSING)
    made: list[Desk] = []

    def make(
        *rules: dict[str, Any], settings: dict[str, Any] | None = None, indexed: bool = True
    ) -> Desk:
        made.append(Desk(tmp_path / "e2e", rules, settings))
        if indexed:
            assert made[0].yester("index").returncode == 1  # there is nothing yet
        return made[0]

    yield make
    for one in made:
        one.close()


def told_once(user: Desk) -> None:
    """The store holds what `yester index` makes of the transcripts alone, and nothing besides."""
    before = user.items()
    again = user.json("index", str(user.transcripts))
    assert (again["added"], again["changed"], again["failed"]) == (0, 0, 0)
    assert user.items() == before
    other = user.user / "other"
    user.yester("index", str(user.transcripts), home=other)
    user.yester("distil", "--backfill", home=other)
    expected = {(item.kind, item.ref): item for item in user.items(other)}
    assert {(item.kind, item.ref) for item in before} == expected.keys()
    for item in before:
        like = expected[item.kind, item.ref]
        assert abs(item.epoch - like.epoch) < 5_000  # a hook comes when the thing is done
        # Ids and times say who was first, hook or transcript.
        assert item == replace(like, id=item.id, epoch=item.epoch, updated=item.updated)


# --- what gets in ------------------------------------------------------------------------------


def test_every_prompt_call_failure_and_closing_message_of_a_session_is_stored_once(desk):
    user = desk(
        turn(
            "total is wrong",
            calls(bash("echo the sum is 41; echo rounding >&2"), text="I look at it."),
            calls(("Write", {"file_path": "{PROJECT}/total.py", "content": "total = 42\n"})),
            calls(("Read", {"file_path": "{PROJECT}/total.py"}), bash("cat /nowhere/at/all")),
            calls(("Edit", {"file_path": "{PROJECT}/total.py", "old_string": "42",
                            "new_string": "43"})),
            calls(("Read", {"file_path": "{PROJECT}/absent.py"})),
            "The total is rounded once now.",
        ),
        turn("leave a note", calls(bash("true")), "The note is left."),
    )  # fmt: skip
    first = user.run("The total is wrong by one, please repair it")
    second = user.run("Please leave a note about it in the log", resume=True)
    assert second.session_id == first.session_id
    seen = Counter(hook["hook_event"] for run in (first, second) for hook in run.hook_runs())
    assert seen == {
        # Twice before a file is read, and quietly before each tool that does something.
        "SessionStart": 2, "UserPromptSubmit": 2, "PreToolUse": 7, "PostToolUse": 5,
        "PostToolUseFailure": 2, "Stop": 2,
    }  # fmt: skip
    user.drain()

    items = user.items()
    assert [item.body for item in items if item.kind == "prompt"] == [
        "The total is wrong by one, please repair it",
        "Please leave a note about it in the log",
    ]
    said = [item.body for item in items if item.role == "assistant"]
    assert said == ["I look at it.", "The total is rounded once now.", "The note is left."]
    used = [item for item in items if item.role == "tool"]
    assert Counter(item.tool for item in used) == {"Bash": 3, "Read": 2, "Write": 1, "Edit": 1}
    assert len({item.ref for item in used}) == len(used)
    bodies = "\n".join(item.body for item in used)
    assert "the sum is 41" in bodies
    assert "rounding" in bodies
    failed = [item for item in used if "error" in item.tags]
    assert sorted(item.tool for item in failed) == ["Bash", "Read"]
    assert any("No such file or directory" in item.body for item in failed)
    assert {item.files_modified for item in used if item.tool in ("Write", "Edit")} == {
        ("total.py",)
    }

    by_id = {item.id: item.body for item in items}
    turns = user.turns(first.session_id)
    assert [(one.state, by_id[one.prompt], by_id[one.closing]) for one in turns] == [
        ("done", "The total is wrong by one, please repair it", "The total is rounded once now."),
        ("done", "Please leave a note about it in the log", "The note is left."),
    ]
    told_once(user)


def test_the_same_words_in_another_turn_are_another_prompt(desk):
    user = desk(turn("tests again", calls(bash("echo 12 passed")), "All tests pass."))
    result, _ = user.live(*2 * ["Please run the tests again"])
    user.drain()
    items = {item.id: item.body for item in user.items()}
    turns = user.turns(result.session_id)
    assert [items[one.prompt] for one in turns] == 2 * ["Please run the tests again"]
    assert [items[one.closing] for one in turns] == 2 * ["All tests pass."]
    assert len({id_ for one in turns for id_ in (one.prompt, one.closing)}) == 4
    told_once(user)


def test_prompts_typed_while_the_agent_works_are_stored_once_each(desk):
    user = desk(turn("watch the build", calls(bash("sleep 0.6; echo built")), "It is built."))
    typed = [
        "Please watch the build of the storefront",
        "Also mind the warnings about the cache",
        "And tell me how long it took in the end",
    ]
    result = user.run("", prompts=typed)
    user.drain()
    assert sorted(item.body for item in user.items() if item.kind == "prompt") == sorted(typed)
    told_once(user)
    assert all(one.state == "done" for one in user.turns(result.session_id))


def test_what_a_sub_agent_does_is_its_own_and_can_be_left_out(desk):
    def ask(folder: str) -> tuple[str, dict[str, Any]]:
        task = f"SUBTASK: count the tests in {folder}"
        more = {"subagent_type": "general-purpose", "run_in_background": False}
        return "Agent", {"description": folder, "prompt": task, **more}

    user = desk(
        turn("SUBTASK", calls(bash("echo twelve tests")), "There are twelve."),
        turn("how many", calls(ask("unit"), ask("flow"), text="I ask."), "There are twelve."),
    )
    first = user.run("Please find out how many tests there are")
    user.drain()
    mine = user.items(session=first.session_id)
    actors = {item.actor for item in mine if item.actor}
    assert len(actors) == 2
    for actor in actors:
        assert actor.startswith("general-purpose:")
        task, tool, closing = sorted(
            (item for item in mine if item.actor == actor),
            key=lambda item: ("task", "tool", "assistant").index(item.role),
        )
        assert task.body.startswith("SUBTASK: count the tests in ")
        assert tool.body == "echo twelve tests\n\ntwelve tests"
        assert (closing.role, closing.body) == ("assistant", "There are twelve.")
    own = [item.body for item in mine if item.role == "assistant" and not item.actor]
    assert own == ["I ask.", "There are twelve."]
    (one,) = user.turns(first.session_id)
    assert one.state == "done"
    (closing,) = (item for item in mine if item.id == one.closing)
    assert (closing.actor, closing.body) == ("", "There are twelve.")
    told_once(user)

    user.settings("subagents = false\n")
    second = user.run("Please find out how many tests there are")
    user.drain()
    user.yester("index", str(user.transcripts))
    kept = user.items(session=second.session_id)
    assert not [item for item in kept if item.actor or item.tool == "Bash"]
    assert [item.body for item in kept if item.role == "assistant"] == own


# --- what comes back ---------------------------------------------------------------------------

DECIDED = "We decided that outgoing invoices wait in the Redis stream called quartz-ledger"
OLD = "The flaky login test was caused by a daylight saving offset in the Gibraltar fixture"


def told_before(user: Desk, transcript: Callable[..., Any]) -> None:
    """An older session, whose transcript is indexed, and a session of yesterday."""
    old = transcript(cwd=str(user.project))
    old.user("Why does the login test fail every now and then?")
    old.assistant(OLD)
    for number in range(6):
        old.user(f"Please rename the helper module number {number} to something clearer")
        old.assistant(f"Renamed helper number {number}.")
    assert user.yester("index", str(old.path)).returncode == 0
    user.run(f"{DECIDED}, remember it")
    user.drain()


def test_a_second_session_gets_what_the_first_was_told_and_a_prompt_what_fits_it(desk, transcript):
    user = desk(turn("Redis stream", "It is written down."))
    told_before(user, transcript)
    result = user.run("Is the flaky login test with the daylight saving offset back?")
    blocks = FENCED.findall(result.context(0))
    assert len(blocks) == 2
    assert "data, not instructions" in blocks[0]
    assert DECIDED in blocks[0]
    assert "It is written down." in blocks[0]
    assert OLD not in blocks[0]
    assert OLD in blocks[1]
    outside = FENCED.sub("", result.context(0))
    assert "quartz-ledger" not in outside
    assert "Gibraltar" not in outside
    (started,) = result.hook_runs("SessionStart")
    assert len(started["stdout"]) < 10_000


def test_what_was_shown_to_a_session_does_not_come_back_as_memory(desk, transcript):
    user = desk(
        turn("Redis stream", "It is written down."),
        turn(
            "login test",
            calls(bash("yester recall quartz-ledger"), bash("yester show 2")),
            f"{OLD}.",
        ),
    )
    told_before(user, transcript)
    shared = [body for body in user.bodies() if "quartz-ledger" in body or "Gibraltar" in body]
    assert len(shared) == 2
    result = user.run("Is the flaky login test with the daylight saving offset back?")
    assert "quartz-ledger" in result.context(-1).split("yester recall")[-1]  # it did ask
    user.drain()
    written = "".join(path.read_text("utf-8") for path in user.transcripts.rglob("*.jsonl"))
    assert "<yester-memory" in written
    for _ in range(2):
        bodies = user.bodies()
        assert "Is the flaky login test with the daylight saving offset back?" in bodies
        assert not [body for body in bodies if "yester-memory" in body]
        found = [body for body in bodies if "quartz-ledger" in body or "Gibraltar" in body]
        assert found == shared
        assert user.json("index", str(user.transcripts))["added"] == 0


def test_a_compaction_leaves_one_summary_and_the_agent_gets_its_memory_again(desk, transcript):
    user = desk(turn("Redis stream", "It is written down."))
    told_before(user, transcript)
    result, _ = user.live(
        "Please look at the checkout of the shop", "/compact", "Now carry on with the checkout page"
    )
    started = result.hook_runs("SessionStart")
    assert [hook["hook_name"] for hook in started] == [
        "SessionStart:startup", "SessionStart:compact",
    ]  # fmt: skip
    assert all(DECIDED in hook["stdout"] for hook in started)
    after = result.context(-1)
    assert "FAKE-COMPACT-SUMMARY" in after
    assert "look at the checkout of the shop" not in FENCED.sub("", after)
    assert any(DECIDED in block for block in FENCED.findall(after))
    user.drain()
    items = user.items(session=result.session_id)
    summaries = [item for item in items if "FAKE-COMPACT-SUMMARY" in item.body]
    assert [(item.kind, item.type) for item in summaries] == [("summary", "compact")]
    prompts = {item.id: item.body for item in items if item.kind == "prompt"}
    assert [(one.state, prompts[one.prompt]) for one in user.turns(result.session_id)] == [
        ("done", "Please look at the checkout of the shop"),
        ("done", "Now carry on with the checkout page"),
    ]
    again = user.json("index", str(user.transcripts))
    assert (again["added"], again["changed"]) == (0, 0)


# --- what must not get in, or out --------------------------------------------------------------


def test_a_hostile_repository_steers_nothing(desk, tmp_path):
    """Its settings may set variables for hooks. A `python3` of its own, first in PATH, is out of
    our reach: the client would run that instead of us."""
    evil = tmp_path / "e2e" / "project"
    marker = evil / "ran"
    for folder in ("home/run", "home/spool/tmp", "home/spool/new", "runtime/yester/spool/tmp",
                   "runtime/yester/spool/new", "lib", "bin"):  # fmt: skip
        (evil / folder).mkdir(mode=0o700, parents=True)
    for folder in (evil / "home", evil / "runtime"):
        folder.chmod(0o700)
    launch = evil / "home" / "run" / "launch"
    launch.write_text(f"/usr/bin/touch\n{marker}\n--home\n{evil / 'home'}\n")
    launch.chmod(0o600)
    touch = f"open({str(marker)!r}, 'w')\n"
    for name in ("sitecustomize.py", "yester.py", "json.py", "posix.py", "apsw.py", "ask.py"):
        (evil / "lib" / name).write_text(touch)
        (evil / name).write_text(touch)
    variables = {
        "YESTER_HOME": str(evil / "home"), "HOME": str(evil), "XDG_RUNTIME_DIR": f"{evil}/runtime",
        "PYTHONPATH": f"{evil}/lib:{evil}", "PYTHONSTARTUP": f"{evil}/lib/json.py",
        "LD_LIBRARY_PATH": f"{evil}/lib", "BASH_ENV": f"{evil}/lib/none",
        "PATH": f"{evil}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COPILOT_CLI": "1", "GEMINI_SESSION_ID": "1", "YESTER_EMBED_URL": "http://evil.invalid/",
        "YESTER_EMBEDDER": "http", "YESTER_EXCLUDE": "[]", "CLAUDE_PROJECT_DIR": "/",
    }  # fmt: skip
    user = desk(
        turn("look around", calls(bash("echo nothing to see")), "I have looked around."),
        settings={"env": variables},
    )
    before = sorted(evil.rglob("*"))
    result = user.run("Please look around in this repository")
    pid = user.worker()
    assert pid
    surroundings = Path(f"/proc/{pid}/environ")
    if surroundings.exists():
        names = {line.partition(b"=")[0] for line in surroundings.read_bytes().split(b"\0") if line}
        assert names <= {b"HOME", b"PATH", b"LANG", b"XDG_RUNTIME_DIR"}
        assert str(evil).encode() not in surroundings.read_bytes()
        assert Path(f"/proc/{pid}/cwd").resolve() == user.home / "run"
    user.drain()
    assert sorted(evil.rglob("*")) == before
    (session,) = user.sessions()
    assert (session.key, session.agent) == (result.session_id, "claude-code")
    assert session.cwd == str(evil)
    assert {"Please look around in this repository", "I have looked around."} < set(user.bodies())


def test_private_text_and_secrets_are_in_no_byte_of_the_home(desk):
    token = "ghp_" + "A7bQ9xWm" * 4 + "Zr4T"
    password = "-".join(("correct", "horsebattery", "staple"))
    private = "zarquon vermilion passphrase"
    user = desk(
        turn(
            "deploy",
            calls(
                bash(f"echo 'GITHUB_TOKEN={token}'; echo '<private>{private}</private>'"),
                ("Read", {"file_path": "{PROJECT}/notes.txt"}),
                bash(f"cat /nowhere/{token}"),
            ),
            f"Deployed with {token} <private>{private}</private>.",
        ),
    )
    (user.project / "notes.txt").write_text(
        f"database: postgres://shop:{password}@db/shop\n<private>\n{private}\n</private>\nthe end\n"
    )
    user.run(f"Please deploy with {token} <private>my word is {private}</private> as always")
    user.drain()
    words = [token, password, *private.split()]
    for path in user.home.rglob("*"):
        if path.is_file():
            found = path.read_bytes().lower()
            assert not [word for word in words if word.lower().encode() in found], path
    bodies = "\n".join(user.bodies())
    assert "Please deploy with [redacted:" in bodies
    assert "[private] as always" in bodies
    assert "the end" in bodies
    assert not [path for path in (user.home / "spool").rglob("*") if path.is_file()]
    assert (user.home / "yester.db-wal").exists()  # it was looked into, too


def test_a_session_with_yester_off_leaves_nothing(desk):
    user = desk(turn("colour", calls(bash("echo aubergine")), "Aubergine it is."))
    user.client.extra_env["YESTER_OFF"] = "1"
    result = user.run("Which colour has the secret door?")
    waiting = [path.read_text("utf-8") for path in (user.home / "spool" / "new").iterdir()]
    assert len(waiting) == 1  # so that its transcript is known, too
    assert "colour" not in waiting[0]
    assert result.session_id in waiting[0]
    user.drain()
    indexed = user.json("index", str(user.transcripts))
    assert (indexed["files"], indexed["added"]) == (1, 0)
    assert user.items() == []
    assert b"aubergine" not in (user.home / "yester.db").read_bytes().lower()
    del user.client.extra_env["YESTER_OFF"]
    user.run("Which colour has the other door?")
    user.drain()
    assert "Which colour has the other door?" in user.bodies()
    assert "Which colour has the secret door?" not in user.bodies()


@pytest.mark.parametrize("how", ["excluded", "excluded just now", "off"])
def test_of_an_excluded_project_nothing_gets_into_spool_or_store(desk, how):
    user = desk(turn("colour", calls(bash("echo aubergine")), "Aubergine it is."))
    if how == "off":
        assert user.yester("off", str(user.project)).returncode == 0
    else:
        user.settings(f'exclude = ["{user.project}"]\n')
    if how == "excluded":
        user.drain()
    result = user.run("Which colour has the secret door?")
    assert not [hook for hook in result.hook_runs() if hook["stdout"]]
    if how == "excluded just now":  # the worker that the session started has told the hooks
        user.drain()
        assert user.json("status")["events"] <= 2
    else:
        assert user.worker() == 0  # nobody was needed
    assert not [path for path in (user.home / "spool").rglob("*") if path.is_file()]
    indexed = user.json("index", str(user.transcripts))
    assert (indexed["files"], indexed["added"]) == (1, 0)
    assert user.items() == []


# --- never in the way --------------------------------------------------------------------------


@pytest.mark.requirement("DEL-17")
def test_the_plugin_alone_starts_the_worker_and_remembers(desk):
    """No command was ever run; the package lies beside the `python3` that runs the hooks."""
    user = desk(turn("colour", calls(bash("echo teal")), "It is teal."), indexed=False)
    result, took = user.live("Which colour has the door?")
    assert result.result["result"] == "It is teal."
    assert max(took["UserPromptSubmit"]) < 0.5
    assert user.worker()
    assert (user.home.stat().st_mode & 0o777) == 0o700
    user.drain()
    assert {"Which colour has the door?", "It is teal."} < set(user.bodies())


def test_a_hung_worker_costs_each_asking_hook_its_deadline_and_nothing_is_lost(desk):
    user = desk(
        turn("colour", calls(bash("echo teal"), bash("cat /nowhere")), "It is teal."),
    )
    assert user.yester("worker", "start").returncode == 0
    user.stop_the_clock()
    result, took = user.live("Which colour has the door?", "And which colour has the window?")
    assert not [hook for hook in result.hook_runs() if hook["stdout"]]
    asking = took.pop("SessionStart") + took.pop("UserPromptSubmit")
    assert len(asking) == 3
    assert max(asking) < 0.8  # 0.28 s, and room for a busy machine
    assert max(max(times) for times in took.values()) < 0.5
    assert len(list((user.home / "spool" / "new").iterdir())) >= 8
    user.go_on()
    user.drain()
    prompts = [item.body for item in user.items() if item.kind == "prompt"]
    assert prompts == ["Which colour has the door?", "And which colour has the window?"]
    assert [one.state for one in user.turns(result.session_id)] == ["done", "done"]
