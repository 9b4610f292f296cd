"""Each thing doctor looks at, broken on purpose: it is found, the fix is said, --fix mends it."""

from __future__ import annotations

import ast
import os
import socket
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from string import Formatter

import msgspec
import pytest

import yester
from tests.capturing import answered, made, put_python, worker_that
from yester.agents.descriptors import AGENTS, CLAUDE_CODE
from yester.config import load_config
from yester.model import replace
from yester.operate import install
from yester.operate.doctor import agents, checks, examine
from yester.operate.doctor.finding import Check, Examination, walk_checks
from yester.tables import load_table
from yester.worker.process import seat_holder, take_seat, worker_command, write_launch

pytestmark = pytest.mark.requirement("OPS-04")

NOW = 1_770_000_000_000


@pytest.fixture
def home(tmp_path):
    made(tmp_path / ".yester")
    (tmp_path / ".yester" / "logs").mkdir(mode=0o700)
    return tmp_path / ".yester"


def examined(home, look, fix=False, environ=None, folders=(), **more):
    """What one check finds."""
    config = load_config(home, {})
    places = [install.Place(home, CLAUDE_CODE, folder) for folder in folders]
    case = Examination(home, config, environ or {}, NOW, fix, places=places)
    for name, value in more.items():
        case = replace(case, **{name: value})
    return list(walk_checks([Check("check", look)], case))


def states(findings):
    return [(one.check, one.state) for one in findings]


def only(findings):
    (one,) = findings
    assert one.state != "problem" or one.fix, one
    return one


def mended(home, look, **more):
    """A check that finds something, and nothing any more after it was allowed to mend it."""
    before = [one for one in examined(home, look, **more) if one.state != "ok"]
    assert before
    assert all(one.fix for one in before)
    done = examined(home, look, fix=True, **more)
    assert done
    assert all(one.state == "ok" for one in done)
    assert all(one.state == "ok" for one in examined(home, look, **more))
    return before


# --- what it can say -------------------------------------------------------------------------


def test_every_row_is_said_somewhere_and_with_all_that_it_has_in_braces():
    rows = {
        f"{check}.{name}": {
            field.partition("!")[0]
            for text in row.values()
            for _, field, _, _ in Formatter().parse(text)
            if field
        }
        for check, names in load_table("doctor").items()
        for name, row in names.items()
    }
    said = set()
    for path in Path(agents.__file__).parent.glob("*.py"):
        inner = list(ast.walk(ast.parse(path.read_text())))
        texts = {one.value for one in inner if isinstance(one, ast.Constant)}
        given = {one.arg for one in inner if isinstance(one, ast.keyword)} | texts
        starts = {text for text in texts if isinstance(text, str) and text.endswith(".")}
        named = texts & set(rows) | {f"{s}{t}" for s in starts for t in texts} & set(rows)
        said |= named
        for name in named:
            assert rows[name] <= given, f"{path}: {name}"
    assert said == set(rows)


# --- folder ----------------------------------------------------------------------------------


def test_whatever_is_open_to_others_is_closed_wherever_it_is(home):
    deep = home / "plugin" / "hooks" / "hook.py"
    deep.parent.mkdir(parents=True)
    deep.touch(0o644)
    deep.parent.chmod(0o755)
    home.chmod(0o750)
    (home / "elsewhere").symlink_to("/usr")
    (found,) = mended(home, checks.look_at_modes)
    assert found.state == "problem"
    assert "and 1 more" in found.text
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_files_of_another_user_are_told_with_the_command_that_takes_them_back(home):
    (home / "yester.db").touch(0o600)
    os.chown(home / "yester.db", 12345, -1)
    found = only(examined(home, checks.look_at_modes, fix=True))
    assert "belong to another user" in found.text
    assert "chown" in found.fix


def test_a_home_that_was_never_used_lacks_nothing(tmp_path):
    (tmp_path / "new").mkdir(mode=0o700)
    assert only(examined(tmp_path / "new", checks.look_at_disk)).check == "disk"
    assert only(examined(tmp_path / "new", checks.look_at_modes)).state == "ok"


def test_settings_that_cannot_be_read_end_the_examination_with_their_fix(home):
    (home / "config.toml").write_text("thinking = 7\n")
    *_, last = examine(home, NOW)
    assert (last.check, last.state) == ("settings", "problem")
    assert last.fix
    (home / "config.toml").write_text("thinking = \n")
    assert list(examine(home, NOW))[-1].fix == "Correct it or move it away"


def test_a_setting_that_nobody_knows_is_a_note_and_everything_else_is_looked_at(home):
    (home / "config.toml").write_text("foo = 1\n")
    found = list(examine(home, NOW))
    (note,) = [one for one in found if "no setting is called 'foo'" in one.text]
    assert (note.check, note.state) == ("settings", "note")
    assert {"launch", "spool", "store"} <= {one.check for one in found}


# --- running ---------------------------------------------------------------------------------


def python3(home, path):
    return only(examined(home, checks.look_at_python, environ={"PATH": path}))


def interpreter(tmp_path, text):
    path = tmp_path / "python3"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return python3(tmp_path, str(tmp_path))


def test_the_python3_of_the_agents_path_must_run_and_be_new_enough(tmp_path):
    assert "not on the PATH" in python3(tmp_path, "").text
    assert interpreter(tmp_path, "echo 3 8 18").state == "problem"
    assert interpreter(tmp_path, "exit 1").text.endswith("does not run")
    assert interpreter(tmp_path, "echo 3 9 0").text.endswith("python3, 3.9.0")
    assert interpreter(tmp_path, "echo 3 15 1").state == "ok"
    (tmp_path / "shims").mkdir()
    assert interpreter(tmp_path / "shims", "echo 3 12 1").state == "note"


def test_launch_must_name_a_python_that_is_there_and_this_home(home, tmp_path):
    def mended_launch():
        environ = {"HOME": str(home.parent)}
        return mended(home, checks.look_at_launch, environ=environ)

    path = home / "run" / "launch"
    (found,) = mended_launch()
    assert (found.state, found.text) == ("note", f"{path} is not there")
    path.write_text(path.read_text().replace(sys.executable, "/gone/bin/python"))
    (found,) = mended_launch()
    assert found.state == "problem"
    assert "names a Python that is gone: /gone/bin/python" in found.text
    path.write_text("")
    mended_launch()
    write_launch(made(tmp_path / "other"))
    path.write_text((tmp_path / "other" / "run" / "launch").read_text())
    assert "names another home" in mended_launch()[0].text
    assert path.read_text().splitlines() == worker_command(home)


def health(version, pid=0):
    told = {"pid": pid or os.getpid(), "version": version, "rss_bytes": 1, "events": 0}
    return lambda client: (client.sendall(answered(msgspec.json.encode(told))), client.close())


def test_a_worker_of_an_older_version_is_a_problem_and_a_newer_one_is_none(home):
    with worker_that(home, health("0.0.1")):
        first = examined(home, checks.look_at_worker)[0]
        assert (first.state, first.fix) == ("problem", "Run: yester worker start")
        assert first.text == f"runs yester 0.0.1, this is {yester.__version__}"
    with worker_that(home, health("99.0")):
        found = examined(home, checks.look_at_worker)
    assert [one.check for one in found] == ["worker", "socket", "children"]
    assert found[0].state == found[1].state == "ok"


def test_a_worker_that_hangs_is_a_problem(home):
    taken = take_seat(home)
    try:
        found = only(examined(home, checks.look_at_worker, fix=True))
    finally:
        taken.close()
    assert found.text == f"process {os.getpid()} does not answer"
    assert found.fix == "Run: yester worker stop"


def test_a_socket_nobody_listens_on_is_removed(home, monkeypatch):
    monkeypatch.chdir(home / "run")
    left = socket.socket(socket.AF_UNIX)
    left.bind("worker.sock")
    left.close()
    assert states(examined(home, checks.look_at_worker)) == [("worker", "note"), ("socket", "note")]
    for wanted in ([("socket", "ok"), ("worker", "note")], [("worker", "note")]):
        found = examined(home, checks.look_at_worker, fix=True)
        assert states(found) == wanted
    assert seat_holder(home) == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc here")
@pytest.mark.requirement("OPS-02")
def test_a_child_that_is_not_git_is_a_problem():
    with subprocess.Popen(["sleep", "60"]) as child:
        found = checks.look_at_children(os.getpid())
        child.kill()
    assert found.state == "problem"
    assert "sleep" in found.text
    assert checks.look_at_children(child.pid).text == "none"


def test_the_log_tells_of_the_last_days_errors_without_a_secret(home):
    token = "ghp_" + "A7bQ9xWm" * 4 + "Zr4T"

    def line(ago, text):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime(NOW / 1000 - ago)) + text

    path = home / "logs" / "worker.log"
    lines = [
        line(200_000, "reading old failed: OSError at worker.py:1"),
        line(50, "started: yester 0.1.0, pid 1"),
        *(line(40 - n, f"reading {n} failed: OSError at worker.py:{n}") for n in range(4)),
        line(1, f"taking {token} failed: ValueError at events.py:2"),
    ]
    path.write_text("\n".join([*lines, "no time at all failed: "]) + "\n")
    found = examined(home, checks.look_at_log)
    assert [one.state for one in found] == ["note"] * 3
    assert all(str(path) in one.fix for one in found)
    assert "reading 3 failed" in found[1].text
    assert "taking [redacted:" in found[2].text
    assert only(examined(home, checks.look_at_log, now=NOW + 10**9)).state == "ok"


# --- store and model -------------------------------------------------------------------------


def test_a_model_whose_file_was_touched_is_a_problem(home, monkeypatch):
    from yester.text.models import MODELS
    from yester.text.models import model_folder as place

    config = load_config(home, {})
    monkeypatch.setitem(config.values, "embedder", "potion-base-8M")
    lacking = only(examined(home, checks.look_at_model, config=config))
    assert "No such file" in lacking.text
    assert lacking.fix == "Run: yester model fetch potion-base-8M"
    for file in MODELS["potion-base-8M"].files:
        path = place(MODELS["potion-base-8M"], home) / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    touched = only(examined(home, checks.look_at_model, config=config))
    assert "is not the model's file" in touched.text
    monkeypatch.setitem(config.values, "embedder", "none")
    assert only(examined(home, checks.look_at_model, config=config)).state == "note"


# --- agents ----------------------------------------------------------------------------------


@pytest.fixture
def installed(home, tmp_path):
    files = install.read_files(home, install.packaged_folder(), sys.executable)
    install.place_copy(home, files)
    install.install_agent(install.Place(home, CLAUDE_CODE, tmp_path / "claude"))
    return tmp_path / "claude"


def program(tmp_path, version="2.1.325", listed="[]"):
    path = tmp_path / "bin" / "claude"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"#!/bin/sh\nif [ $1 = --version ]; then echo '{version} (Claude Code)'; exit; fi\n"
        f"echo '{listed}'\n"
    )
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}


LOADED = '[{"id": "yester@skills-dir", "enabled": true}]'


@pytest.mark.requirement("DEL-12")
@pytest.mark.parametrize(
    ("version", "listed", "state", "text", "fix"),
    [
        ("2.1.325", LOADED, "ok", "2.1.325 loads ", ""),
        ("2.1.157", LOADED, "ok", "2.1.157 loads ", ""),
        ("2.1.156", LOADED, "problem", "need 2.1.157", "claude --plugin-dir"),
        ("2.1.325", "[]", "problem", "does not see the plugin", "yester install"),
        (
            "2.1.325", LOADED.replace("true", "false"), "problem", "it is switched off there",
            "claude plugin enable yester@skills-dir",
        ),
        (
            "2.1.325", LOADED.replace("skills-dir", "market"), "problem", "yester@market instead",
            "keep one of the two",
        ),
        ("2.1.325", "what?", "note", "does not say", "claude plugin list"),
    ],
)  # fmt: skip
def test_the_client_is_asked_whether_it_loads_us(
    home, installed, tmp_path, version, listed, state, text, fix
):
    environ = program(tmp_path, version, listed)
    look = agents.look_at_agents
    last = only(examined(home, look, environ=environ, folders=[installed]))
    assert last.state == state
    assert text in last.text
    assert fix in last.fix


@pytest.mark.requirement("DEL-12")
def test_settings_of_the_client_that_keep_hooks_out_are_named_and_left_alone(
    home, installed, tmp_path
):
    path, environ = installed / "settings.json", program(tmp_path, listed=LOADED)

    def examined_client():
        look, folders = agents.look_at_agents, [installed]
        return examined(home, look, environ=environ, folders=folders, fix=True)

    path.write_text('{"disableAllHooks": true}')
    found = examined_client()
    assert ("claude-code", "problem") in states(found)
    assert any(f"disableAllHooks in {path}" in one.text for one in found)
    path.write_text("{ no JSON")
    found = examined_client()
    assert states(found) == [("claude-code", "note"), ("claude-code", "ok")]
    assert path.read_text() == "{ no JSON"


@pytest.mark.requirement("DEL-12")
def test_a_copy_of_another_version_is_a_problem_that_can_be_mended(home, installed):
    (install.copy_folder(home) / "hooks" / "hook.py").write_text("pass\n")
    (found,) = mended(home, agents.look_at_plugin, folders=[installed])
    assert "is not that of this version: hook.py" in found.text


@pytest.mark.requirement("DEL-12")
def test_an_agent_that_has_lost_us_is_a_problem_and_one_without_us_a_note(
    home, installed, tmp_path
):
    install.plugin_link(installed).unlink()
    other = tmp_path / "other"
    other.mkdir()
    places = [installed, other, tmp_path / "none"]
    found = examined(home, agents.look_at_agents, environ={"PATH": ""}, folders=places)
    assert states(found) == [("claude-code", "problem"), ("claude-code", "note")]
    assert f"not in place any more: {install.plugin_link(installed)}" in found[0].text
    assert "has no yester" in found[1].text
    assert all("yester install" in one.fix for one in found)


TRUSTING = """#!{python}
import json, sys
if sys.argv[1] == "--version":
    sys.exit(print("codex-cli 0.169.0"))
for line in sys.stdin:
    told = json.loads(line)
    if told["method"] == "hooks/list":
        hook = {{"command": "python3 {copy}/hooks/hook.py Stop codex", "trustStatus": "{trust}"}}
        result = {{"data": [{{"hooks": [hook]}}]}}
        print(json.dumps({{"id": told["id"], "result": result}}), flush=True)
"""


@pytest.mark.requirement("DEL-12")
def test_codex_is_asked_whether_it_trusts_our_hooks_once_it_has_run(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    place = install.Place(home, AGENTS["codex"], tmp_path / "codex")
    install.place_copy(home, install.read_files(home, install.packaged_folder(), sys.executable))
    install.install_agent(place)
    path = tmp_path / "bin" / "codex"
    path.parent.mkdir()
    folders = {"codex_dirs": (str(place.folder),)}
    config = replace(load_config(home, {}), values={**load_config(home, {}).values, **folders})

    def told(trust):
        values = {"python": sys.executable, "copy": install.copy_folder(home), "trust": trust}
        path.write_text(TRUSTING.format_map(values))
        path.chmod(0o755)
        environ = {"PATH": f"{path.parent}:/usr/bin:/bin"}
        found, cannot = examined(home, agents.look_at_agents, environ=environ, config=config)
        assert cannot.text.startswith("Codex: ")
        return found.check, found.state, found.text.partition(" in ")[0]

    assert told("trusted")[:2] == ("codex", "note")  # it has never run: its folder stays as it is
    (place.folder / "sessions").mkdir()
    assert told("trusted") == ("codex", "ok", "0.169.0 trusts our hooks")
    assert told("untrusted") == ("codex", "problem", "0.169.0 skips our hooks")
    just_installed = {"environ": {"PATH": f"{path.parent}:/usr/bin:/bin"}, "places": [place]}
    new, _ = examined(home, agents.look_at_agents, **just_installed)
    assert (new.state, new.fix) == ("note", "Start codex and type /hooks there once.")
    (place.folder / "hooks.json").write_text("{}")
    lost = only(examined(home, agents.look_at_agents, places=[place]))
    assert (lost.state, str(place.folder / "hooks.json") in lost.text) == ("problem", True)


@pytest.mark.requirement("DEL-12")
def test_hooks_that_are_meant_to_be_silent_are_not_tried(home, installed):
    off = examined(home, agents.look_at_hooks, environ={"YESTER_OFF": "1"}, folders=[installed])
    assert only(off).state == "note"
    (home / "off").write_text("all 1 0\n")
    found = only(examined(home, agents.look_at_hooks, folders=[installed]))
    assert (found.state, found.fix) == ("note", "Run: yester off --all --undo")


@pytest.mark.requirement("DEL-12")
def test_the_command_that_the_skill_calls_must_be_on_the_path(home, installed, tmp_path):
    def examined_path(path):
        look = agents.look_at_path
        return examined(home, look, environ={"PATH": path}, folders=[installed])

    found = only(examined_path("/nowhere"))
    assert (found.check, found.state) == ("path", "note")
    assert str(Path(sys.executable).parent) in found.fix
    (tmp_path / "yester").touch(0o755)
    assert examined_path(str(tmp_path)) == []


@pytest.mark.requirement("DEL-12")
def test_a_hook_that_fails_is_named_with_its_reason(home, installed, tmp_path):
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}  # there is no python3

    def examined_hooks():
        return only(examined(home, agents.look_at_hooks, environ=environ, folders=[installed]))

    found = examined_hooks()
    assert "SessionStart ended with 127" in found.text
    (install.copy_folder(home) / "hooks" / "hooks.json").write_text("[]")
    assert "hooks.json" in examined_hooks().text


@pytest.mark.requirement("DEL-12")
def test_a_worker_that_does_not_come_up_leaves_no_trial_behind(home, installed, tmp_path):
    put_python(tmp_path / "bin")
    environ = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path),
        "YESTER_HOME": str(home),
    }  # fmt: skip
    look = partial(agents.look_at_hooks, patience=0)
    found = only(examined(home, look, environ=environ, folders=[installed]))
    assert "its event is in the spool, but no worker came up" in found.text
    assert "worker.log" in found.fix
    assert list((home / "spool" / "new").iterdir()) == []
