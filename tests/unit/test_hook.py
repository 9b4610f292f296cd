"""hook.py and ask.py as a client runs them: they store, stay silent and exit 0, whatever is."""

from __future__ import annotations

import json
import os
import pwd
import re
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capturing import (
    EVENTS,
    HOOK,
    ROOT,
    answered,
    files_below,
    hook,
    installed,
    made,
    modes_count,
    put_python,
    until,
    waiting,
    within,
    worker_that,
)
from tests.table import each
from yester.capture.spool import Spool

pytestmark = pytest.mark.requirement("CAP-02")

PLUGIN = ROOT / "plugin" / "hooks"
ASKING = ("SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def user(tmp_path):
    """The home of a user who has used yester before."""
    made(tmp_path / "user" / ".yester")
    return tmp_path / "user"


@pytest.fixture
def env(user):
    return {"HOME": str(user)}


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_dir()}


# --- what it is ----------------------------------------------------------------------------------


def loaded(*words, cwd, env):
    """The modules an interpreter loads for these words, by its own account."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", *words],
        input=b"{}", capture_output=True, cwd=cwd, env=env, check=True,
    )  # fmt: skip
    lines = done.stderr.decode().splitlines()
    return {line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")}


@pytest.fixture
def installed_hook(user):
    """Where a client has its plugins: below the account's own folder."""
    folder = user / ".claude" / "plugins" / "yester"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return str(folder / "hook.py")


def test_it_loads_nothing_that_the_interpreter_has_not_loaded_by_itself(
    project, env, installed_hook
):
    bare = loaded("-c", "pass", cwd=project, env=env)
    assert "encodings.utf_8" in bare
    more = loaded(installed_hook, "PostToolUse", cwd=project, env=env) - bare
    assert more <= {"posix", "sys", "time"}
    assert len(waiting(Path(env["HOME"]) / ".yester")) == 1


@pytest.mark.parametrize("event", ASKING)
def test_an_asking_event_needs_a_socket_more(project, env, event, installed_hook):
    home = Path(env["HOME"]) / ".yester"
    bare = loaded("-c", "pass", cwd=project, env=env)
    with worker_that(home, lambda c: (c.sendall(answered(b"")), c.close())) as asked:
        more = loaded(installed_hook, event, cwd=project, env=env) - bare
    assert len(asked) == 1
    assert more - {"posix", "sys", "time"} == {"ask", "_socket"}


@each("name", ["hook.py", "ask.py"])
def test_the_plugin_has_the_same_bytes(name):
    assert (PLUGIN / name).read_bytes() == HOOK.with_name(name).read_bytes()


@pytest.mark.requirement("CAP-01")
def test_the_plugin_hooks_every_event_with_its_own_name():
    hooks = json.loads((PLUGIN / "hooks.json").read_text())["hooks"]
    assert set(hooks) == set(EVENTS)
    for event, entries in hooks.items():
        quiet = ["", " armed"] if event == "PreToolUse" else [""]
        for entry, word in zip(entries, quiet, strict=True):
            (handler,) = entry["hooks"]
            assert handler["type"] == "command"
            assert handler["command"] == (
                f'python3 -I -S "${{CLAUDE_PLUGIN_ROOT}}/hooks/hook.py" {event} claude-code{word}'
            )
            assert 0 < handler["timeout"] <= 10
    matchers = {event: [entry.get("matcher") for entry in hooks[event]] for event in hooks}
    acts = "Bash|Edit|Write|MultiEdit|NotebookEdit|ExitPlanMode"
    assert matchers["PreToolUse"] == ["Read", acts]
    assert matchers["PostToolUse"] == matchers["PostToolUseFailure"] == ["*"]


@pytest.mark.requirement("CAP-01")
def test_its_commands_work_from_a_folder_with_spaces(project, env, tmp_path):
    root = tmp_path / "plug in's"
    shutil.copytree(PLUGIN.parent, root, ignore=shutil.ignore_patterns("__pycache__"))
    hooks = json.loads((root / "hooks" / "hooks.json").read_text())["hooks"]
    put_python(tmp_path / "bin")
    env |= {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "CLAUDE_PLUGIN_ROOT": str(root)}
    commands = [(event, entry["hooks"][0]["command"]) for event in hooks for entry in hooks[event]]
    for event, command in commands:
        payload = json.dumps({"hook_event_name": event}).encode()
        done = subprocess.run(
            ["sh", "-c", command],
            input=payload, capture_output=True, cwd=project, env=env,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    told = waiting(Path(env["HOME"]) / ".yester")
    assert sorted({one.event for one in told}) == sorted(EVENTS)
    assert all(json.loads(one.payload)["hook_event_name"] == one.event for one in told)


def interpreter(minor):
    """A Python of this version that works, if there is one."""
    versions = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".pyenv" / "versions"
    try:
        found = [str(path) for path in versions.glob(f"3.{minor}.*/bin/python3")]
    except OSError:
        found = []
    code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
    for path in filter(None, [*found, shutil.which(f"python3.{minor}")]):
        if not subprocess.run([path, "-c", code], capture_output=True, env={}).returncode:
            return path
    pytest.skip("no such interpreter here")


@pytest.mark.parametrize("minor", range(9, 16))
def test_any_python_from_3_9_on_runs_it(project, env, minor):
    python = interpreter(minor)
    home = Path(env["HOME"]) / ".yester"
    assert hook("PostToolUse", cwd=project, env=env, python=python).silent
    with worker_that(home, lambda c: (c.sendall(answered(b"hello")), c.close())):
        until(lambda: hook("SessionStart", cwd=project, env=env, python=python).out == b"hello")
    assert {one.event for one in waiting(home)} == {"PostToolUse", "SessionStart"}


# --- what it stores ------------------------------------------------------------------------------


def test_the_payload_arrives_byte_for_byte_with_what_the_hook_knew(project, user, env):
    payload = b'{"a": "\xff\xfe\x00"}\r\n\nyester/1\tStop\n'
    more = {
        "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": "/home/sam/shop", "YESTER_SKIP_TOOLS": "LS,Glob",
        "CLAUDE_MEM_BATCH_WINDOW_MS": "10", "SECRET": "not a hint",
    }  # fmt: skip
    assert hook("Stop", cwd=project, env=env | more, payload=payload).silent
    (told,) = waiting(user / ".yester")
    assert (told.event, told.cwd, told.payload) == ("Stop", str(project), payload)
    assert told.hints == {name: more[name] for name in more if name != "SECRET"}
    assert "off" not in told.hints
    (file,) = files_below(user / ".yester")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.requirement("CAP-15")
def test_the_client_that_the_command_names_stands_in_the_envelope(project, user, env):
    assert hook("Stop", "codex", cwd=project, env=env).silent
    assert hook("Stop", cwd=project, env=env).silent
    assert [one.hints for one in waiting(user / ".yester")] == [{"client": "codex"}, {}]


def test_events_lie_in_the_order_they_happened(project, user, env):
    for number in range(5):
        hook("PostToolUse", cwd=project, env=env, payload={"number": number})
    told = waiting(user / ".yester")
    assert [json.loads(one.payload)["number"] for one in told] == [0, 1, 2, 3, 4]
    assert [one.epoch for one in told] == sorted(one.epoch for one in told)


@pytest.mark.requirement("OPS-03")
def test_a_variable_cannot_pretend_to_be_another(project, user, env):
    hostile = "LS\tCLAUDE_PROJECT_DIR=/home/sam/other\toff=1\nyester/1\tStop"
    hook("Stop", cwd=project, env=env | {"YESTER_SKIP_TOOLS": hostile})
    (told,) = waiting(user / ".yester")
    assert set(told.hints) == {"YESTER_SKIP_TOOLS"}
    assert (told.payload, "off" in told.hints) == (b"{}", False)


@settings(max_examples=12)
@given(payload=st.binary(max_size=3_000), event=st.sampled_from([*EVENTS, "Other"]))
def test_any_bytes_are_a_payload(tmp_path_factory, payload, event):
    folder = tmp_path_factory.mktemp("any")
    home = made(folder / "user" / ".yester")
    (folder / "project").mkdir()
    env = {"HOME": str(folder / "user")}
    assert hook(event, cwd=folder / "project", env=env, payload=payload).silent
    assert [one.payload for one in waiting(home)] == [payload]


def test_fifty_megabytes_are_a_payload(project, user, env):
    payload = b"\x00\xff{" * (50_000_000 // 3)
    assert hook("PostToolUse", cwd=project, env=env, payload=payload).silent
    (told,) = waiting(user / ".yester")
    assert told.payload == payload


@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_a_missing_home_is_made_for_this_user_alone(project, tmp_path, event):
    user = tmp_path / "new"
    user.mkdir(mode=0o755)
    installed(user)
    old = os.umask(0)
    try:
        assert hook(event, cwd=project, env={"HOME": str(user)}).silent
    finally:
        os.umask(old)
    assert len(waiting(user / ".yester")) == 1
    assert modes(user / ".yester") == {0o700}


@pytest.mark.parametrize("missing", ["spool", "spool/tmp", "spool/new", "run"])
def test_a_missing_part_of_the_home_is_made_again(project, user, env, missing):
    shutil.rmtree(user / ".yester" / missing)
    assert hook("PostToolUse", cwd=project, env=env).silent
    assert len(waiting(user / ".yester")) == 1
    assert modes(user) == {0o700}


def test_sixteen_at_once_store_sixteen(project, user, env):
    running = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", str(HOOK), "PostToolUse"], cwd=project, env=env,
            stdin=subprocess.PIPE,
        )
        for _ in range(16)
    ]  # fmt: skip
    for number, one in enumerate(running):
        one.communicate(b"%d" % number)
        assert one.returncode == 0
    told = waiting(user / ".yester")
    assert sorted(int(one.payload) for one in told) == list(range(16))


# --- whatever is wrong, it is silent -------------------------------------------------------------


@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_an_empty_payload_is_kept(project, user, env, event):
    assert hook(event, cwd=project, env=env, payload=b"").silent
    assert [one.payload for one in waiting(user / ".yester")] == [b""]


def test_without_an_event_it_does_nothing(project, user, env):
    assert hook(cwd=project, env=env).silent
    assert waiting(user / ".yester") == []


@pytest.mark.parametrize("event", ["NeverHeardOf", "", "a b", "ünï", "../../x", "x" * 5_000])
def test_an_event_nobody_knows_is_kept(project, user, env, event):
    assert hook(event, cwd=project, env=env).silent
    assert [one.event for one in waiting(user / ".yester")] == [event]


def closed_stdin():
    os.close(0)


def only_empty_files():
    """Like a full disk: no file may grow."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


# what is wrong → variables (None: not set), or a place in the home and what is there instead
BROKEN = {
    "no home at all": {"HOME": "/dev/null/nowhere"},
    "HOME is empty": {"HOME": ""},
    "HOME is not set": {"HOME": None},
    "HOME is a file": {"HOME": "/etc/passwd"},
    "YESTER_HOME is relative": {"YESTER_HOME": "memory"},
    "YESTER_HOME is missing": {"YESTER_HOME": "/dev/null/nowhere/memory"},
    "YESTER_HOME is a file": {"YESTER_HOME": "/etc/passwd"},
    "YESTER_HOME is too long": {"YESTER_HOME": "/" + "x/" * 4_000},
    "XDG_RUNTIME_DIR is missing": {"XDG_RUNTIME_DIR": "/dev/null/nowhere"},
    "the home is a file": ("", b"x"),
    "the spool is a file": ("spool", b"x"),
    "the spool leads nowhere": ("spool", Path("/dev/null/nowhere/spool")),
    "run is a file": ("run", b"x"),
    "run/wake is a folder": ("run/wake", None),
    "run/wake is a file": ("run/wake", b""),
    "run/worker.sock is a file": ("run/worker.sock", b"x"),
    "run/rules is a folder": ("run/rules", None),
    "run/rules is no text": ("run/rules", b"\xff\x00path\npath \xfe\n\n"),
}


def put_instead(place, what):
    if place.is_dir():
        shutil.rmtree(place)
    if what is None:
        place.mkdir()
    elif isinstance(what, bytes):
        place.write_bytes(what)
    else:
        place.symlink_to(what)


@pytest.mark.requirement("OPS-05")
@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
@pytest.mark.parametrize("broken", BROKEN)
def test_whatever_is_broken_it_exits_0_and_says_nothing(
    project, user, env, tmp_path, event, broken
):
    wrong = BROKEN[broken]
    if isinstance(wrong, dict):
        env = {name: value for name, value in (env | wrong).items() if value is not None}
    else:
        put_instead(user / ".yester" / wrong[0], wrong[1])
    passwd = tmp_path / "passwd"
    passwd.mkdir()
    assert hook(event, cwd=project, env=env, passwd_home=passwd).silent
    assert files_below(project) == []


@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_a_current_folder_that_is_gone_is_no_trouble(tmp_path, env, event):
    gone = tmp_path / "gone"
    gone.mkdir()
    assert hook(event, cwd=gone, env=env, before=gone.rmdir).silent


@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_a_closed_stdin_is_no_trouble(project, env, event):
    assert hook(event, cwd=project, env=env, before=closed_stdin).silent


# --- a disk that takes nothing -------------------------------------------------------------------


def locked(home):
    """A home whose spool nobody may write to."""
    (home / "run" / "gap").touch()
    os.utime(home / "run" / "gap", (0, 0))
    for folder in ("spool/new", "spool/tmp", "spool", ""):
        (home / folder).chmod(0o500)


@pytest.fixture
def full(user):
    locked(user / ".yester")
    yield user / ".yester"
    for folder in ("", "spool", "spool/tmp", "spool/new"):
        (user / ".yester" / folder).chmod(0o700)


@pytest.mark.requirement("OPS-05", "CAP-03")
@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_where_nothing_can_be_written_the_second_place_takes_it(
    project, full, env, tmp_path, event
):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    env["XDG_RUNTIME_DIR"] = str(runtime)
    assert hook(event, cwd=project, env=env, before=modes_count).silent
    place = Spool(full, runtime).folders[1].parent
    assert [one.event for one in waiting(place)] == [event]
    assert modes(runtime) == {0o700}
    assert (full / "run" / "gap").stat().st_mtime == 0


RUNTIMES = {
    "none": "",
    "missing": "{tmp}/missing",
    "inside the project": "{tmp}/project/run",
    "the project itself": "{tmp}/project",
    "open to others": "{tmp}/open",
    "relative": "../closed",
}


@pytest.mark.requirement("OPS-03", "OPS-05")
@pytest.mark.parametrize("which", RUNTIMES)
def test_a_second_place_that_is_not_ours_is_not_used_and_the_gap_is_marked(
    project, full, env, tmp_path, which
):
    for folder, mode in ((project / "run", 0o700), (tmp_path / "open", 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    project.chmod(0o700)
    (tmp_path / "closed").mkdir(mode=0o700)
    if runtime := RUNTIMES[which]:
        env["XDG_RUNTIME_DIR"] = runtime.format(tmp=tmp_path)
    assert hook("PostToolUse", cwd=project, env=env, before=modes_count).silent
    assert [path for path in files_below(tmp_path) if path.name != "gap"] == []
    assert (full / "run" / "gap").stat().st_mtime > 0


@pytest.mark.requirement("OPS-05")
def test_on_a_full_disk_nothing_half_written_stays(project, user, env):
    (user / ".yester" / "run" / "gap").touch()
    os.utime(user / ".yester" / "run" / "gap", (0, 0))
    assert hook("PostToolUse", cwd=project, env=env, before=only_empty_files).silent
    assert [path.name for path in files_below(user / ".yester")] == ["gap"]
    assert (user / ".yester" / "run" / "gap").stat().st_mtime > 0


# --- whom it trusts ------------------------------------------------------------------------------


def another_users(folder):
    if os.geteuid():
        pytest.skip("needs root to give a folder away")
    os.chown(folder, 65534, 65534)


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
@pytest.mark.parametrize("which", ["inside", "itself", "another's", "not set", "empty", "missing"])
def test_a_home_that_cannot_be_the_users_is_replaced_by_the_real_one(
    project, tmp_path, which, event
):
    real = tmp_path / "real"
    installed(real)
    (project / "fake").mkdir()
    (tmp_path / "given").mkdir()
    if which == "another's":
        another_users(tmp_path / "given")
    env = {
        "inside": {"HOME": str(project / "fake")},
        "itself": {"HOME": str(project)},
        "another's": {"HOME": str(tmp_path / "given")},
        "not set": {},
        "empty": {"HOME": ""},
        "missing": {"HOME": "/dev/null/nowhere"},
    }[which]
    assert hook(event, cwd=project, env=env, passwd_home=real).silent
    assert [one.event for one in waiting(real / ".yester")] == [event]
    assert files_below(project) == []


def test_a_user_who_works_in_the_home_folder_is_remembered(tmp_path):
    real = tmp_path / "real"
    made(real / ".yester")
    assert hook("PostToolUse", cwd=real, env={"HOME": str(real)}, passwd_home=real).silent
    assert len(waiting(real / ".yester")) == 1


@pytest.mark.requirement("OPS-03")
def test_its_own_folder_is_where_it_is_and_not_where_it_runs(project, user, env):
    for name in ("ask.py", "posix.py", "time.py", "_socket.py", "pwd.py", "json.py"):
        (project / name).write_text("raise SystemExit('hostile')")
    env |= {"PYTHONPATH": str(project), "PYTHONSTARTUP": str(project / "ask.py")}
    for event in ("SessionStart", "PostToolUse"):
        assert hook(event, cwd=project, env=env).silent
    assert len(waiting(user / ".yester")) == 2


# --- asking --------------------------------------------------------------------------------------

MISBEHAVIOUR = {
    "says nothing": lambda client: client.recv(1),
    "closes at once": lambda client: client.close(),
    "writes garbage": lambda client: (client.sendall(b"\x00\xff garbage"), client.close()),
    "writes an empty line": lambda client: (client.sendall(b"\r\n\r\n"), client.close()),
    "fails": lambda client: (client.sendall(answered(b"no", b"500 Oops")), client.close()),
    "knows nothing": lambda client: (client.sendall(answered(b"", b"404 No")), client.close()),
    "stops half way": lambda client: (client.sendall(answered(b"half")[:-2]), client.recv(1)),
    "dies half way": lambda client: (client.sendall(answered(b"half")[:-2]), client.close()),
    "has another protocol": lambda client: (client.sendall(b"+OK hello\r\n"), client.close()),
    "never ends": lambda client: [client.sendall(b"x" * 4_096) for _ in iter(int, 1)],
}


@pytest.mark.requirement("OPS-02", "DEL-02")
@pytest.mark.parametrize("event", ASKING)
@pytest.mark.parametrize("how", MISBEHAVIOUR)
def test_a_worker_that_misbehaves_costs_little_time_and_no_event(project, user, env, how, event):
    env["CLAUDECODE"] = "1"
    with worker_that(user / ".yester", MISBEHAVIOUR[how]) as asked:
        assert within(1.0, lambda: hook(event, cwd=project, env=env)).silent
    told, *_ = waiting(user / ".yester")
    assert asked[0] == f"POST /hook?id={told.id}&ack=1 HTTP/1.0\r\n\r\n".encode()


@pytest.mark.requirement("OPS-02")
@pytest.mark.parametrize("event", ASKING)
def test_a_worker_that_hangs_costs_little_time_and_no_event(project, user, env, event):
    import socket

    here = Path.cwd()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        os.chdir(user / ".yester" / "run")
        try:
            listening.bind("worker.sock")
        finally:
            os.chdir(here)
        listening.listen(1)  # and nobody ever accepts
        done = within(1.0, lambda: hook(event, cwd=project, env=env))
    assert done.silent
    assert done.seconds > 0.25
    assert waiting(user / ".yester")


@pytest.mark.parametrize("event", ASKING)
def test_a_socket_without_a_worker_costs_nothing(project, user, env, event):
    import socket

    here = Path.cwd()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
        os.chdir(user / ".yester" / "run")
        try:
            gone.bind("worker.sock")
        finally:
            os.chdir(here)
    assert within(0.25, lambda: hook(event, cwd=project, env=env)).silent
    assert waiting(user / ".yester")


@pytest.mark.requirement("DEL-01", "DEL-02")
@pytest.mark.parametrize("event", ASKING)
def test_what_the_worker_answers_is_printed_as_it_is(project, user, env, event):
    body = '{"hookSpecificOutput": "schön"}\r\n\r\n'.encode() + b"x" * 100_000
    with worker_that(user / ".yester", lambda c: (c.sendall(answered(body)), c.close())):
        done = until(lambda: (ran := hook(event, cwd=project, env=env)).out and ran)
    assert (done.code, done.out, done.err) == (0, body, b"")


@pytest.mark.requirement("DEL-15")
def test_a_tool_is_asked_about_where_words_of_its_event_are_armed_and_a_quiet_hook_keeps_nothing(
    project, env, installed_hook
):
    home, script = Path(env["HOME"]) / ".yester", Path(installed_hook)
    (home / "run" / "armed").write_text("PreToolUse rtk npm\nPostToolUseFailure link is closed\n")

    def tell(event, said, *words):
        payload = {"tool_name": "Bash", "tool_input": {"command": said}}
        return hook(event, "claude-code", *words, cwd=project, env=env, payload=payload,
                    script=script)  # fmt: skip

    with worker_that(home, lambda c: (c.sendall(answered(b"known")), c.close())) as asked:
        assert tell("PreToolUse", "cd src && rtk npm test", "armed").out == b"known"
        assert tell("PostToolUseFailure", "link is closed").out == b"known"
        assert (len(asked), len(waiting(home))) == (2, 2)
        assert tell("PreToolUse", "link is closed", "armed").silent
        assert len(waiting(home)) == 2  # what comes of it is told behind it
        assert tell("PostToolUse", "rtk npm test").silent
        assert (len(asked), len(waiting(home))) == (2, 3)


def test_other_events_do_not_ask(project, user, env):
    with worker_that(user / ".yester", lambda c: (c.sendall(answered(b"no")), c.close())) as asked:
        for event in sorted(set(EVENTS) - set(ASKING)):
            assert hook(event, cwd=project, env=env).silent
    assert asked == []


@pytest.mark.parametrize("how", ["open to others", "with rules"])
def test_other_events_do_not_ask_where_something_is_unusual_either(project, user, env, how):
    if how == "with rules":
        (user / ".yester" / "run" / "rules").write_text("nosync\n")
    else:
        (user / ".yester").chmod(0o755)
    os.mkfifo(user / ".yester" / "run" / "wake", 0o600)
    wake = os.open(user / ".yester" / "run" / "wake", os.O_RDONLY | os.O_NONBLOCK)
    with worker_that(user / ".yester", lambda c: (c.sendall(answered(b"no")), c.close())) as asked:
        for event in ("PostToolUse", "Stop"):
            assert hook(event, cwd=project, env=env, passwd_home=user).silent
    assert asked == []
    assert os.read(wake, 10) == b".."
    os.close(wake)
    assert len(waiting(user / ".yester")) == 2


def test_a_home_with_a_very_long_name_is_asked_too(project, tmp_path):
    user = tmp_path / ("x" * 90) / ("y" * 90)
    home = made(user / ".yester")
    assert len(os.fsencode(home)) > 180
    env = {"HOME": str(user)}
    with worker_that(home, lambda c: (c.sendall(answered(b"hello")), c.close())):
        until(lambda: hook("SessionStart", cwd=project, env=env).out == b"hello")
    assert waiting(home)


def test_without_a_worker_and_a_way_to_start_it_the_user_is_told_once(project, user, env):
    env["CLAUDECODE"] = "1"
    done = hook("SessionStart", cwd=project, env=env)
    assert (done.code, done.err) == (0, b"")
    assert re.search("pipx install yester", json.loads(done.out)["systemMessage"])
    assert hook("UserPromptSubmit", cwd=project, env=env).silent
    assert len(waiting(user / ".yester")) == 2


# --- what it must not store ----------------------------------------------------------------------

SAID = {"session_id": "abc", "cwd": "/x", "prompt": "the walrus", "source": "startup"}


@pytest.mark.requirement("CAP-14", "CAP-12")
@pytest.mark.parametrize("value", ["1", "true", "yes", "TRUE"])
def test_switched_off_by_a_variable_only_the_session_is_named(project, user, env, value):
    env["YESTER_OFF"] = value
    for event in EVENTS if value == "1" else ("SessionStart", "UserPromptSubmit", "Stop"):
        assert hook(event, cwd=project, env=env, payload=SAID).silent
    (note,) = waiting(user / ".yester")
    assert (note.event, note.hints["off"]) == ("SessionStart", "1")
    assert json.loads(note.payload) == {"session_id": "abc", "cwd": "/x"}


@pytest.mark.requirement("CAP-14")
@pytest.mark.parametrize("payload", [b"", b"walrus", b'["walrus"]', b'"session_id"', b"\xff", b"7"])
def test_switched_off_no_payload_of_any_kind_is_kept(project, user, env, payload):
    env["YESTER_OFF"] = "1"
    assert hook("SessionStart", cwd=project, env=env, payload=payload).silent
    assert [note.payload for note in waiting(user / ".yester")] == [b"{}"]


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_a_switch_that_says_no_switches_nothing_off(project, user, env, value):
    env["YESTER_OFF"] = value
    assert hook("PostToolUse", cwd=project, env=env, payload=SAID).silent
    (told,) = waiting(user / ".yester")
    assert (json.loads(told.payload), "off" in told.hints) == (SAID, False)


RULES = [
    ("all", True),
    ("path {project}", True),
    ("path {parent}", True),
    ("path /", True),
    ("path {parent}/pro*", True),
    ("path {parent}/proj?ct", True),
    ("path {parent}/proj[e]ct", True),
    ("path {parent}/*/deep", False),
    ("path {project}x", False),
    ("path {project}/deep", False),
    ("path {parent}/pro", False),
    ("path", False),
    ("path ", False),
    ("session s-1", True),
    ("session s-2", False),
    ("session", False),
    ("", False),
    ("nosync", False),
    ("something of a newer version", False),
]


@pytest.mark.requirement("CAP-14")
@pytest.mark.parametrize(("rule", "kept_out"), RULES)
def test_a_rule_keeps_its_folder_or_session_out(project, user, env, rule, kept_out):
    text = rule.format(project=project, parent=project.parent)
    (user / ".yester" / "run" / "rules").write_text(f"nosync\n{text}\n")
    env["CLAUDE_CODE_SESSION_ID"] = "s-1"
    for event in ("PostToolUse", "SessionStart"):
        assert hook(event, cwd=project, env=env).silent
    assert len(waiting(user / ".yester")) == (0 if kept_out else 2)
    assert sorted(path.name for path in files_below(user / ".yester"))[-1] == "rules"


@pytest.mark.requirement("CAP-14")
def test_what_is_kept_out_is_not_asked_about(project, user, env):
    (user / ".yester" / "run" / "rules").write_text("all\n")
    with worker_that(user / ".yester", lambda c: (c.sendall(answered(b"no")), c.close())) as asked:
        assert hook("SessionStart", cwd=project, env=env).silent
    assert asked == []


@pytest.mark.requirement("CAP-03")
@pytest.mark.parametrize("rules", ["", "nosync\n"])
def test_an_event_is_on_the_disk_first_unless_that_is_switched_off(project, user, env, rules):
    if not shutil.which("strace"):
        pytest.skip("needs strace to see system calls")
    if rules:
        (user / ".yester" / "run" / "rules").write_text(rules)
    command = ["strace", "-f", "-e", "trace=fsync,rename", sys.executable, "-I", "-S", str(HOOK)]
    done = subprocess.run(
        [*command, "Stop"], input=b"{}", capture_output=True, cwd=project, env=env
    )
    calls = re.findall(r"^(?:\[pid +\d+\] )?(fsync|rename)\(", done.stderr.decode(), re.M)
    assert calls == ([] if rules else ["fsync"]) + ["rename"]
