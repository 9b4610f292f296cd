"""Which home hooks and commands use, which program a hook starts, and where events wait."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capturing import (
    ANOTHER_USER,
    BARE,
    HOOK,
    Told,
    files_below,
    hook,
    installed,
    leave,
    made,
    modes_count,
    until,
    waiting,
)
from tests.readings import every_item
from yester.capture.question import ask_worker
from yester.store import open_store
from yester.worker.process import PATH, seat_holder


@pytest.fixture
def user(tmp_path):
    """A user who has used yester before."""
    made(tmp_path / "user" / ".yester")
    return tmp_path / "user"


@pytest.fixture
def project(tmp_path):
    """A repository."""
    folder = tmp_path / "code" / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "deep").mkdir()
    folder.chmod(0o700)
    return folder


@pytest.fixture
def command(user, tmp_path, zygote_of_commands):
    """`yester WORDS` as somebody types it, with exactly this environment; (code, out, err)."""
    printed = [tmp_path.with_name(f"{tmp_path.name}-printed.{end}") for end in ("out", "err")]

    def run(*words, cwd=tmp_path, **env):
        for path in printed:
            path.unlink(missing_ok=True)
        env = {"HOME": str(user), "YESTER_EMBEDDER": "none", **env}
        code = zygote_of_commands.call(list(words), cwd, env, *printed)
        return code, *(path.read_text() for path in printed)

    return run


@pytest.fixture
def ended():
    """Homes whose worker a test may have started: none of them is left."""
    homes = []
    yield homes.append
    for home in homes:
        if ask_worker(home / "run", "POST /stop", 5.0) is not None:
            until(lambda home=home: not seat_holder(home))


def bodies(home):
    store = open_store(home, now=1)
    try:
        return [item.body for item in every_item(store)]
    finally:
        store.close()


# --- one rule for both ---------------------------------------------------------------------------

# what is named → the name, the folder worked in, whether both use it
HOMES = {
    "a folder of one's own": ("{tmp}/memory", "{tmp}/code/shop", True),
    "through a link in the repository": ("{tmp}/code/shop/link", "{tmp}/code/shop", True),
    "worked in /": ("{tmp}/memory", "/", True),
    "worked in ~": ("{tmp}/user/work", "{tmp}/user", True),
    "beside the repository": ("{tmp}/code/memory", "{tmp}/code/shop/deep", True),
    "relative": ("../memory", "{tmp}/code/shop", False),
    "relative to ~": ("~/work", "{tmp}/code/shop", False),
    "in the current folder": ("{tmp}/plain/memory", "{tmp}/plain", False),
    "in the repository": ("{tmp}/code/shop/memory", "{tmp}/code/shop/deep", False),
    "in the repository by a detour": ("{tmp}/link/memory", "{tmp}/code/shop/deep", False),
    "in the client's project": ("{tmp}/client/memory", "{tmp}/plain", False),
    "open to the group": ("{tmp}/group", "{tmp}/code/shop", False),
    "missing": ("{tmp}/missing", "{tmp}/code/shop", False),
    "a file": ("{tmp}/file", "{tmp}/code/shop", False),
    "another user's": ("{tmp}/theirs", "{tmp}/code/shop", False),
}


@pytest.mark.requirement("OPS-03", "CAP-02")
@pytest.mark.parametrize("which", HOMES)
def test_hook_and_command_judge_a_home_by_one_rule(which, command, user, project, tmp_path):
    name, folder, good = HOMES[which]
    places = ("memory", "user/work", "code/memory", "code/shop/memory", "plain/memory",
              "client/memory", "group", "theirs")  # fmt: skip
    for place in places:
        made(tmp_path / place)
    (project / "link").symlink_to(tmp_path / "memory")
    (tmp_path / "link").symlink_to(project)
    (tmp_path / "file").touch(0o600)
    (tmp_path / "group").chmod(0o750)
    if which == "another user's":
        if os.geteuid():
            pytest.skip("needs root to give a folder away")
        os.chown(tmp_path / "theirs", 65534, 65534)
    env = {"YESTER_HOME": name.format(tmp=tmp_path)}
    if which == "in the client's project":
        env["CLAUDE_PROJECT_DIR"] = str(tmp_path / "client")
    cwd = Path(folder.format(tmp=tmp_path))
    code, _, err = command("status", cwd=cwd, **env)
    done = hook("PostToolUse", cwd=cwd, env={"HOME": str(user), **env}, passwd_home=user)
    assert done.silent
    spooled = {path.resolve() for path in files_below(tmp_path) if "spool" in path.parts}
    (file,) = spooled  # somewhere, and once
    if good:
        assert (code, err) == (0, "")
        assert file.is_relative_to(Path(env["YESTER_HOME"]).resolve())
    else:
        assert code == 2
        assert err.startswith(f"yester: YESTER_HOME={env['YESTER_HOME']}: ")
        assert err.count("\n") == 1
        assert file.is_relative_to(user / ".yester")


@pytest.mark.requirement("OPS-03")
def test_a_session_is_told_that_the_named_home_is_not_used(user, project):
    env = {"HOME": str(user), "CLAUDECODE": "1", "YESTER_HOME": str(made(project / "memory"))}
    done = hook("SessionStart", cwd=project, env=env, passwd_home=user)
    said = json.loads(done.out)["systemMessage"]
    assert f"YESTER_HOME={project / 'memory'} is not used" in said
    assert str(user / ".yester") in said
    assert hook("UserPromptSubmit", cwd=project, env=env, passwd_home=user).silent


@pytest.mark.requirement("OPS-03")
def test_events_meant_for_a_home_that_was_used_before_go_into_no_other(
    user, project, command, tmp_path
):
    home = made(tmp_path / "memory")
    assert command("status", YESTER_HOME=str(home), cwd=project)[0] == 0
    home.chmod(0o755)
    env = {"HOME": str(user), "CLAUDECODE": "1", "YESTER_HOME": str(home)}
    done = hook("SessionStart", cwd=project, env=env, passwd_home=user)
    said = json.loads(done.out)["systemMessage"]
    assert f"YESTER_HOME={home} is open to other users" in said
    assert waiting(home) == waiting(user / ".yester") == []


@pytest.mark.requirement("OPS-03")
def test_an_agents_shell_does_not_make_a_home_one_that_hooks_use(user, project, command, tmp_path):
    home = made(tmp_path / "memory")
    env = {"YESTER_HOME": str(home), "CLAUDECODE": "1"}
    code, _, err = command("status", cwd=project, **env)
    assert code == 2
    assert f"{user / '.yester' / 'homes'}" in err
    assert hook("PostToolUse", cwd=project, env={"HOME": str(user), **env}).silent
    assert waiting(home) == []
    assert command("--home", str(home), "status", cwd=project)[0] == 0  # the user, elsewhere
    assert command("status", cwd=project, **env)[0] == 0
    assert hook("PostToolUse", cwd=project, env={"HOME": str(user), **env}).silent
    assert len(waiting(home)) == 1


@pytest.mark.requirement("OPS-03")
def test_a_copy_of_a_home_is_not_the_home_that_was_recorded(user, project, command, tmp_path):
    home = made(tmp_path / "memory")
    assert command("status", YESTER_HOME=str(home), cwd=project)[0] == 0
    home.rename(tmp_path / "elsewhere")
    made(home)  # unpacked by somebody where the old one was
    env = {"HOME": str(user), "YESTER_HOME": str(home)}
    assert hook("PostToolUse", cwd=project, env=env, passwd_home=user).silent
    assert waiting(home) == []


# --- what a repository can have run --------------------------------------------------------------


def trap(home, marker):
    """A home with a way to start its worker that is none."""
    made(home)
    words = ("/bin/sh", "-c", f"touch '{marker}'", "--home", str(home), "worker", "run")
    (home / "run" / "launch").write_text("".join(f"{word}\n" for word in words))
    (home / "run" / "launch").chmod(0o600)
    return home


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize("variable", ["YESTER_HOME", "HOME"])
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
@pytest.mark.parametrize("how", ["relative", "absolute"])
def test_a_repository_has_no_program_run_by_naming_a_home(
    user, project, tmp_path, variable, event, how
):
    """As it comes in an archive: the project, and beside it, or around it, what is to be run."""
    if variable == "HOME" and how == "absolute":  # around it: the top of the repository
        folder, project = project, project / "deep"
    else:
        folder = project.parent
    marker = tmp_path / "ran"
    home = trap(folder / (".state" if variable == "YESTER_HOME" else ".yester"), marker)
    os.utime(home / "run" / "launch", (0, 0))
    name = "../.state" if variable == "YESTER_HOME" else ".."
    if how == "absolute":
        name = str(home if variable == "YESTER_HOME" else folder)
    env = {"HOME": str(user), variable: name}
    assert hook(event, cwd=project, env=env, passwd_home=user).silent
    with pytest.raises(AssertionError, match="not happened"):
        until(marker.exists, 0.5)  # it would run beside us
    assert waiting(home) == []
    assert len(waiting(user / ".yester")) == 1


def run_under_client(tmp_path, user, words, env, cwd):
    """Run these words as a client would that has the user's own variables and is told by a
    repository's settings to give its hooks others."""
    client = tmp_path / "claude"  # a process is called what it is started as
    client.symlink_to(BARE)
    code = "import json, subprocess, sys; told = json.load(sys.stdin); subprocess.run(**told)"
    told = {"args": ["/bin/sh", "-c", shlex.join(words) + "; true"], "env": env, "cwd": str(cwd)}
    told["input"], told["text"] = json.dumps({"session_id": "s", "cwd": str(cwd)}), True
    return subprocess.run(
        [str(client), "-c", code], input=json.dumps(told), text=True, capture_output=True,
        env={"HOME": str(user)}, check=True,
    ).stdout  # fmt: skip


@pytest.mark.requirement("OPS-03")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolUse"])
def test_only_the_home_that_the_client_itself_has_is_the_account(user, project, tmp_path, event):
    """Beside the project, as it comes in an archive, and in no repository."""
    marker = tmp_path / "ran"
    evil = trap(project.parent / ".state" / ".yester", marker)
    os.utime(evil / "run" / "launch", (0, 0))
    words = [BARE, "-I", "-S", "-c", ANOTHER_USER, str(user), str(HOOK), event]
    run_under_client(tmp_path, user, words, {"HOME": str(evil.parent)}, project)
    with pytest.raises(AssertionError, match="not happened"):
        until(marker.exists, 0.5)
    assert waiting(evil) == []
    assert len(waiting(user / ".yester")) == 1


@pytest.mark.requirement("OPS-03")
def test_no_path_that_leads_from_the_current_folder_is_a_home(user, project, tmp_path):
    marker = tmp_path / "ran"
    evil = trap(project.parent / ".state" / ".yester", marker)
    os.utime(evil / "run" / "launch", (0, 0))
    for name in ("/proc/self/cwd/../.state", f"{project}/../.state"):
        env = {"HOME": name, "CLAUDE_PROJECT_DIR": str(project)}
        hook("SessionStart", cwd=project, env=env, passwd_home=user)
    with pytest.raises(AssertionError, match="not happened"):
        until(marker.exists, 0.5)
    assert waiting(evil) == []


@pytest.mark.requirement("CAP-03", "OPS-03")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_second_place_that_only_the_repository_names_is_none(user, project, tmp_path):
    runtime = project.parent / "rt"
    runtime.mkdir(mode=0o700)
    code = (
        f"import sys; sys.path.append({str(HOOK.parent)!r}); import ask, posix\n"
        "print(ask._find_runtime(posix.environ, set()))"
    )
    env = {"HOME": str(user), "XDG_RUNTIME_DIR": str(runtime)}
    assert run_under_client(tmp_path, user, [BARE, "-c", code], env, project) == "None\n"
    done = subprocess.run([BARE, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{os.fsencode(runtime)}\n"  # in a shell of the user's own


@pytest.mark.requirement("CAP-03")
@pytest.mark.parametrize("form", ["{}/", "{}/../priv", "/{}"])
def test_a_home_that_is_away_is_known_by_any_of_its_names(user, project, tmp_path, command, form):
    home = made(tmp_path / "vol" / "priv")
    assert command("status", YESTER_HOME=str(home), cwd=project)[0] == 0
    home.rename(tmp_path / "away")
    env = {"HOME": str(user), "YESTER_HOME": form.format(home), "CLAUDECODE": "1"}
    done = hook("SessionStart", cwd=project, env=env, passwd_home=user)
    assert "nothing is remembered for this session" in json.loads(done.out)["systemMessage"]
    assert waiting(user / ".yester") == []


@pytest.mark.requirement("OPS-03")
def test_of_a_home_that_was_named_nothing_is_executed(user, project, tmp_path, command, ended):
    marker = tmp_path / "ran"
    home = trap(tmp_path / "memory", marker)
    ended(home)
    assert command("--home", str(home), "status", cwd=project)[0] == 0
    assert (home / "run" / "launch").read_text().startswith("/bin/sh")
    env = {"HOME": str(user), "YESTER_HOME": str(home)}
    assert hook("SessionStart", cwd=project, env=env, passwd_home=user).err == b""
    until(lambda: ask_worker(home / "run", "GET /health", 1.0))
    assert not marker.exists()


# --- the worker's own home -----------------------------------------------------------------------


@pytest.mark.requirement("OPS-03")
def test_worker_run_works_on_the_home_that_the_environment_names(user, project, tmp_path):
    home = made(tmp_path / "memory")
    running = subprocess.Popen(
        [sys.executable, "-m", "yester", "worker", "run"], cwd=project, stdout=subprocess.DEVNULL,
        env={"HOME": str(user), "YESTER_HOME": str(home), "YESTER_EMBEDDER": "none",
             "PATH": os.environ["PATH"]},
    )  # fmt: skip
    try:
        said = until(lambda: ask_worker(home / "run", "GET /health", 1.0))
        assert json.loads(said)["pid"] == running.pid
        assert not (user / ".yester" / "run" / "worker.sock").exists()
    finally:
        running.terminate()
        running.wait(20)


@pytest.mark.requirement("OPS-03")
def test_only_a_worker_that_somebody_has_typed_is_a_reason_to_record_its_home(user, tmp_path):
    words = [sys.executable, "-m", "yester", "--home", str(made(tmp_path / "memory"))]
    words += ["worker", "run", "--idle", "0"]
    env = {"HOME": str(user), "PATH": PATH, "LANG": "C.UTF-8", "YESTER_EMBEDDER": "none"}
    subprocess.run(words, env=env, cwd="/", check=True)  # as a hook starts it
    assert not (user / ".yester" / "homes").exists()
    subprocess.run(words, env={**env, "TERM": "dumb"}, cwd="/", check=True)
    assert (user / ".yester" / "homes").read_text().startswith(f"{tmp_path / 'memory'}\t")


# --- a second place for each home ----------------------------------------------------------------


def lock(home, mode=0o500):
    """As where the disk is full: the spool takes nothing."""
    for folder in ("spool/new", "spool/tmp", "spool"):
        (home / folder).chmod(mode)


@pytest.fixture
def runtime(tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    return folder


@pytest.mark.requirement("CAP-03", "OPS-05")
def test_events_of_a_full_home_never_end_in_another(
    user, project, tmp_path, runtime, command, ended
):
    full, other = made(tmp_path / "full"), made(tmp_path / "other")
    second = {"XDG_RUNTIME_DIR": str(runtime)}
    for home in (full, other):
        assert command("worker", "drain", YESTER_HOME=str(home), cwd=project, **second)[0] == 0
    ended(other)
    assert command("worker", "start", YESTER_HOME=str(other), cwd=project, **second)[0] == 0
    lock(full)
    told = Told(cwd=str(project))
    env = {"HOME": str(user), "YESTER_HOME": str(full), "CLAUDECODE": "1", **second}
    for number in range(3):
        payload = told.payload("UserPromptSubmit", prompt=f"the heron of the mole {number}")
        hook("Stop", cwd=project, env=env, payload=payload, before=modes_count, passwd_home=user)
        hook(
            "UserPromptSubmit", cwd=project, env=env, payload=payload, before=modes_count,
            passwd_home=user,
        )  # fmt: skip
    assert waiting(full) == []
    assert command("worker", "drain", YESTER_HOME=str(other), cwd=project, **second)[0] == 0
    assert bodies(other) == []
    lock(full, 0o700)
    assert command("worker", "drain", YESTER_HOME=str(full), cwd=project, **second)[0] == 0
    assert sorted(bodies(full)) == [f"the heron of the mole {number}" for number in range(3)]
    assert files_below(runtime) == []


@pytest.mark.requirement("CAP-03")
def test_what_an_older_version_left_in_the_shared_place_belongs_to_the_usual_home(
    user, project, tmp_path, runtime, command
):
    second = {"XDG_RUNTIME_DIR": str(runtime)}
    told = Told(cwd=str(project))
    leave(runtime / "yester", told.prompt("left by 0.1"))
    named = made(tmp_path / "memory")
    assert command("worker", "drain", YESTER_HOME=str(named), cwd=project, **second)[0] == 0
    assert bodies(named) == []
    assert command("worker", "drain", cwd=project, **second)[0] == 0
    assert bodies(user / ".yester") == ["left by 0.1"]
    assert files_below(runtime) == []


# --- the plugin alone ----------------------------------------------------------------------------


def install_for(account):
    """As `pip install --user` does it: a script where the account keeps its programs."""
    script = installed(account)
    script.write_text(f"#!{sys.executable}\nfrom yester.__main__ import main\nmain()\n")
    return script


@pytest.fixture
def newcomer(tmp_path):
    """Somebody who has loaded the plugin and done nothing else."""
    folder = tmp_path / "newcomer"
    folder.mkdir(mode=0o755)
    return folder


@pytest.fixture
def plugin(tmp_path):
    folder = tmp_path / "plugin"
    shutil.copytree(HOOK.parent.parent.parent.parent / "plugin", folder)
    return folder / "hooks" / "hook.py"


@pytest.mark.requirement("DEL-17")
def test_the_plugin_alone_remembers_where_the_package_is_installed(
    newcomer, project, plugin, ended
):
    install_for(newcomer)
    home = newcomer / ".yester"
    ended(home)
    told = Told(cwd=str(project))
    env = {"HOME": str(newcomer), "CLAUDECODE": "1", "PYTHONPATH": str(project)}

    def tell(event, **more):
        payload = told.payload(event, **more)
        return hook(event, cwd=project, env=env, payload=payload, script=plugin, passwd_home=home)

    tell("SessionStart", source="startup")
    assert home.stat().st_mode & 0o777 == 0o700
    pid = json.loads(until(lambda: ask_worker(home / "run", "GET /health", 1.0)))["pid"]
    if Path("/proc/self/environ").exists():
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert {entry.split(b"=")[0] for entry in entries if entry} == {b"HOME", b"PATH", b"LANG"}
    tell("UserPromptSubmit", prompt="Which queue library shall we take for the invoices?")
    tell("Stop", last_assistant_message="arq was chosen over celery, as all the rest is asyncio.")
    tell("SessionEnd", reason="other")
    until(lambda: waiting(home) == [])
    told.session = "bbbbbbbb-0000-4000-8000-00000000000b"
    until(lambda: b"arq was chosen over celery" in tell("SessionStart", source="startup").out)


@pytest.mark.requirement("DEL-17")
def test_the_plugin_alone_keeps_nothing_where_the_package_is_not_installed(
    newcomer, project, plugin
):
    install_for(project)  # nor does a repository install it
    env = {"HOME": str(newcomer), "CLAUDECODE": "1", "PATH": str(project / ".local" / "bin")}
    more = {"cwd": project, "env": env, "script": plugin, "passwd_home": newcomer}
    said = json.loads(hook("SessionStart", payload=b"sk-secret", **more).out)["systemMessage"]
    assert said.count(". ") == 1
    assert said.endswith("Run: pipx install yester")
    for event in ("UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"):
        assert hook(event, payload=b"sk-secret", **more).silent
    assert list(newcomer.rglob("*")) == []


@pytest.mark.requirement("DEL-17", "OPS-03")
@pytest.mark.parametrize("wrong", ["script", "folder", "owner"])
def test_a_program_that_others_may_write_is_not_started(newcomer, project, plugin, wrong):
    script = install_for(newcomer)
    if wrong == "owner":
        if os.geteuid():
            pytest.skip("needs root to give a file away")
        os.chown(script, 65534, 65534)
    else:
        (script if wrong == "script" else script.parent).chmod(0o757)
    env = {"HOME": str(newcomer), "CLAUDECODE": "1"}
    done = hook("SessionStart", cwd=project, env=env, script=plugin, passwd_home=newcomer)
    assert "Run: pipx install yester" in json.loads(done.out)["systemMessage"]
    assert not (newcomer / ".yester").exists()
