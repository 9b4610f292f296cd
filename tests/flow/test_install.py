"""`yester install` and `uninstall` as a user runs them: a real worker, a scripted client."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.capturing import ROOT, Told, leave, made, until, use_home
from yester.agents.hooks import TRIAL
from yester.capture.question import ask_worker
from yester.worker.process import seat_holder

pytestmark = pytest.mark.requirement("DEL-12")

# As a user may have written it: our eyes are not meant to like it.
SETTINGS = (
    '{"model":"opus",\n\n    "hooks": {"Stop": [ {"hooks":[{"type":"command","command":"true"}]}]},'
    '\r\n "z": 1.50 }'
)
LOADED = '[{"id": "yester@skills-dir", "enabled": true}]'


@pytest.fixture
def claude(tmp_path):
    """A program that says what Claude Code would; give it another list of plugins."""
    path = tmp_path / "bin" / "claude"
    path.parent.mkdir()

    def says(listed):
        path.write_text(
            "#!/bin/sh\nif [ $1 = --version ]; then echo '2.1.325 (Claude Code)'; exit; fi\n"
            f"echo '{listed}'\n"
        )
        path.chmod(0o755)

    says(LOADED)
    (path.parent / "python3").symlink_to(sys.executable)
    return says


@pytest.fixture
def run(run, own_home):
    """From the user's home: a memory inside the current folder is not trusted."""
    return partial(run, cwd=own_home)


@pytest.fixture
def user(home, own_home, tmp_path, monkeypatch):
    """A user of Claude Code, whose shell knows where this memory is."""
    use_home(home, own_home)
    (home / "config.toml").write_text('embedder = "none"\n')
    (home / "config.toml").chmod(0o600)
    monkeypatch.setenv("YESTER_HOME", str(home))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    folder = own_home / ".claude"
    (folder / "skills" / "mine").mkdir(parents=True)
    (folder / "skills" / "mine" / "SKILL.md").write_text("mine")
    (folder / "settings.json").write_bytes(SETTINGS.encode())
    (folder / "settings.json").chmod(0o640)
    yield folder
    if ask_worker(home / "run", "POST /stop", 5.0) is not None:
        until(lambda: not seat_holder(home))


def tree(folder):
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


def rows(home):
    db = apsw.Connection(str(home / "yester.db"))
    try:
        names = ("item", "event", "session", "turn", "skipped", "injection")
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    finally:
        db.close()


@pytest.mark.requirement("OPS-04")
def test_installing_tries_the_whole_way_keeps_nothing_of_it_and_can_be_taken_back(
    run, home, own_home, user, claude
):
    before = tree(own_home)
    shown = run("install", "--dry-run")
    assert shown.out.splitlines()[1:] == [
        f"+ {home / 'plugin'}",
        f"+ {user / 'skills' / 'yester'} -> {home / 'plugin'}",
    ]
    assert tree(own_home) == before
    assert not (home / "plugin").exists()

    done = run("install", "--agent", "claude-code", "--yes")
    assert (done.code, done.err) == (0, ""), done.out
    assert done.out.startswith(shown.out)
    assert "✓ hooks: Claude Code: 11 of 11 do what they should" in done.out
    assert "✓ claude-code: 2.1.325 loads" in done.out
    assert "✓ worker: pid " in done.out
    after = tree(own_home)
    assert after.pop(".claude/skills/yester")[1] == home / "plugin"
    assert after == before
    assert run("worker", "drain").code == 0
    assert set(rows(home).values()) == {0}
    assert list((home / "spool" / "new").iterdir()) == []

    again = run("install")
    assert again.code == 0
    assert again.out.startswith("everything is in place\n")
    assert after | {".claude/skills/yester": tree(own_home)[".claude/skills/yester"]} == tree(
        own_home
    )
    well = run("doctor", "--json")
    assert well.code == 0, well.out
    found = {one["check"]: one["state"] for one in well.json["findings"]}
    names = ("hooks", "plugin", "claude-code", "worker", "socket", "children", "python3", "launch")
    assert {found[name] for name in names} == {"ok"}

    claude(LOADED.replace("true", "false"))
    shut = run("install")
    assert shut.code == 3
    assert "✗ claude-code: 2.1.325 does not load" in shut.out
    assert "Run: claude plugin enable yester@skills-dir" in shut.out
    assert shut.err == (
        "yester: yester is in place, but 1 thing above is in the way; then run: yester install\n"
    )

    gone = run("uninstall", "--agent", "claude-code", "--yes")
    assert gone.code == 0
    assert "the worker has ended" in gone.out
    assert seat_holder(home) == 0
    assert tree(own_home) == before
    assert not (home / "plugin").exists()
    assert not (home / "installed.json").exists()
    second = run("uninstall", "--agent", "claude-code")
    assert (second.code, second.out) == (0, "yester is not installed in claude-code\n")
    assert tree(own_home) == before
    assert (home / "yester.db").exists()


def test_events_of_a_trial_are_taken_in_and_leave_nothing(run, home):
    told = Told(TRIAL, "/home/sam/code/shop")
    leave(home, told.prompt("does it work"), told.ran("ls"), told.stop("yes"))
    assert run("worker", "drain", "--json").json == {"events": 0}
    assert list((home / "spool" / "new").iterdir()) == []
    assert set(rows(home).values()) == {0}


def test_a_worker_that_starts_brings_the_copy_of_the_plugin_up_to_date(run, home, user, claude):
    hook = home / "plugin" / "hooks" / "hook.py"
    assert run("worker", "run", "--idle", "0").code == 0
    assert not hook.exists()  # nobody has installed it
    manifest = home / "plugin" / ".claude-plugin" / "plugin.json"
    for path in (manifest, hook):
        path.parent.mkdir(parents=True, mode=0o700)
        path.write_text("of an older version")
    assert run("worker", "run", "--idle", "0").code == 0
    assert hook.read_bytes() == (ROOT / "plugin" / "hooks" / "hook.py").read_bytes()


def test_a_home_that_hooks_would_not_use_is_refused(run, home, user, monkeypatch):
    monkeypatch.delenv("YESTER_HOME")
    done = run("install", "--agent", "claude-code")
    assert done.code == 2
    assert f"hooks would use {user.parent / '.yester'}, not {home}" in done.err
    assert "YESTER_HOME" in done.err


def test_without_an_agent_it_says_what_it_has_looked_for(run, home, own_home, monkeypatch):
    made(home)
    monkeypatch.setenv("YESTER_HOME", str(home))
    done = run("install")
    assert done.code == 3
    assert f"no agent was found (Claude Code: {own_home / '.claude'}, Codex: " in done.err
    named = run("install", "--agent", "claude-code", "--dry-run")
    assert f"+ {own_home / '.claude' / 'skills' / 'yester'} -> " in named.out
    other = run("install", "--config-dir", str(own_home / "work"), "--dry-run")
    assert f"+ {own_home / 'work' / 'skills' / 'yester'} -> " in other.out
    assert [path.name for path in own_home.iterdir()] == [".yester"]  # where the home is recorded


def test_what_stands_in_the_way_is_said_before_anything_is_done(run, home, user):
    (user / "skills" / "yester").mkdir()
    before = tree(user)
    done = run("install")
    assert done.code == 3
    assert "was not put there by `yester install`" in done.err
    advised = done.err.split("--plugin-dir '")[1].split("'")[0]
    assert (Path(advised) / ".claude-plugin" / "plugin.json").exists()
    assert tree(user) == before
    assert not (home / "plugin").exists()


def test_somebody_at_a_terminal_is_asked_first(home, user):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "yester", "install"], stdin=theirs, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=user,
    ) as process:  # fmt: skip
        os.write(ours, b"n\n")
        out, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert "Go ahead? [Y/n]" in out
    assert (process.returncode, err) == (130, "yester: stopped\n")
    assert not (home / "plugin").exists()
    assert not (user / "skills" / "yester").exists()
