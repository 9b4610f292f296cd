"""Putting the plugin into Claude Code's folder and taking it out: nothing of the user's changes."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yester
from tests.capturing import ROOT, answered, made, put_python, waiting, worker_that
from tests.table import each
from yester.agents.descriptors import AGENTS, CLAUDE_CODE, INSTALLABLE
from yester.capture.spool import Spool
from yester.config import load_config
from yester.errors import InstallError
from yester.operate import install
from yester.operate.doctor import agents as client
from yester.operate.install import Place

pytestmark = pytest.mark.requirement("DEL-12")

SOURCE = ROOT / "plugin"


@pytest.fixture
def home(tmp_path):
    return made(tmp_path / ".yester")


@pytest.fixture
def files(home):
    return install.read_files(home, SOURCE, sys.executable)


def tree(folder):
    """Everything below a folder: bytes, modes, where links lead to."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


# --- the copy --------------------------------------------------------------------------------


def test_the_copy_is_the_plugin_closed_to_others(home, files):
    assert {change.sign for change in install.place_copy(home, files)} == {"+"}
    copy = install.copy_folder(home)
    for path in SOURCE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".mcp.json":
            assert (copy / path.relative_to(SOURCE)).read_bytes() == path.read_bytes()
    assert {mode for mode, _ in tree(copy).values()} == {0o600, 0o700}
    assert install.plan_copy(home, files) == []
    assert install.place_copy(home, files) == []


def test_an_older_copy_is_brought_up_to_date_and_a_missing_one_is_not_made(home, files):
    assert install.refresh_copy(home, sys.executable) == []
    assert not install.copy_folder(home).exists()
    install.place_copy(home, files)
    copy = install.copy_folder(home)
    (copy / "hooks" / "hook.py").write_text("pass\n")
    (copy / "README.md").unlink()
    (copy / "hooks" / "old.py").write_text("pass\n")
    byte_code = copy / "hooks" / "__pycache__" / "ask.pyc"
    byte_code.write_bytes(b"")
    signs = {change.path.name: change.sign for change in install.refresh_copy(home, sys.executable)}
    assert signs == {"hook.py": "~", "README.md": "+", "old.py": "-"}
    assert install.plan_copy(home, files) == []
    assert byte_code.exists()


def test_the_copy_starts_servers_by_our_interpreter_since_an_agents_path_may_not_have_us(tmp_path):
    servers = {
        "yester": {"command": "yester", "args": ["mcp"], "alwaysLoad": True},
        "other": {"command": "node", "args": ["yester"]},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    made_of = install.read_files(tmp_path, tmp_path, "/opt/python")
    assert json.loads(made_of[".mcp.json"])["mcpServers"] == {
        "yester": {
            "command": "/opt/python", "args": ["-I", "-m", "yester", "mcp"], "alwaysLoad": True,
        },
        "other": servers["other"],
    }  # fmt: skip


def test_the_plugin_is_of_the_version_of_the_package():
    manifest = json.loads(
        (install.packaged_folder() / ".claude-plugin" / "plugin.json").read_text()
    )
    assert (manifest["name"], manifest["version"]) == ("yester", yester.__version__)


# --- the link --------------------------------------------------------------------------------

NAMES = st.text("abcz._- ", min_size=1, max_size=6).filter(lambda name: name.strip(". "))
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=30), max_size=6
)


@given(files_there=TREES, skills=st.booleans())
@settings(max_examples=12)
def test_after_uninstalling_the_agents_folder_is_byte_for_byte_what_it_was(
    tmp_path_factory, files_there, skills
):
    root = tmp_path_factory.mktemp("user")
    home, folder = made(root / ".yester"), root / "claude"
    for name, data in files_there.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:  # one of the names is a file already
            continue
    if skills:
        (folder / "skills" / "mine").mkdir(parents=True)
        (folder / "skills" / "mine" / "SKILL.md").write_text("mine")
    before, was_there = tree(root), folder.exists()
    install.place_copy(home, {"hooks/hook.py": b""})
    install.install_agent(Place(home, CLAUDE_CODE, folder))
    assert Place(home, CLAUDE_CODE, folder).is_installed
    once = tree(root)
    install.install_agent(Place(home, CLAUDE_CODE, folder))
    assert tree(root) == once
    install.uninstall_agent(Place(home, CLAUDE_CODE, folder))
    install.remove_copy(home)
    assert tree(root) == before
    assert folder.exists() == was_there
    install.uninstall_agent(Place(home, CLAUDE_CODE, folder))
    assert tree(root) == before


USERS_OWN = {
    "hooks.json": b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}',
    "mcp-config.json": b'{ "mcpServers": {"mine": {"command": "mine"}} }\n',
    "notes.txt": b"mine",
}


@pytest.mark.requirement("DEL-12")
@pytest.mark.parametrize("agent", INSTALLABLE, ids=lambda agent: agent.name)
@pytest.mark.parametrize("started_before", [True, False])
def test_every_agent_has_its_files_back_after_uninstalling(
    home, files, tmp_path, monkeypatch, agent, started_before
):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", "")
    place = Place(home, agent, tmp_path / "user" / "agent")
    (tmp_path / "user").mkdir()
    if started_before:
        place.folder.mkdir()
        for name, data in USERS_OWN.items():
            (place.folder / name).write_bytes(data)
    before = tree(tmp_path / "user")
    install.place_copy(home, files)
    install.install_agent(place)
    assert place.is_installed
    assert install.plan_agent(place) == []
    once = tree(tmp_path / "user")
    install.install_agent(place)
    assert tree(tmp_path / "user") == once != before
    install.uninstall_agent(place)
    assert tree(tmp_path / "user") == before


@pytest.mark.requirement("DEL-12")
@pytest.mark.parametrize("agent", INSTALLABLE, ids=lambda agent: agent.name)
def test_a_hook_has_seconds_in_the_unit_of_its_client(home, agent):
    unit = 1_000 if agent.name in ("gemini-cli", "qwen-code") else 1
    for rows in install.make_hooks(agent, home).get("hooks", {}).values():
        for hook in (one for row in rows for one in row.get("hooks", [])):
            assert 3 * unit <= hook["timeout"] <= 10 * unit


@pytest.mark.requirement("DEL-12")
def test_of_a_file_that_somebody_else_has_changed_only_our_entries_go(home, files, tmp_path):
    place = Place(home, AGENTS["codex"], tmp_path / "codex")
    place.folder.mkdir()
    path = place.folder / "hooks.json"
    path.write_bytes(USERS_OWN["hooks.json"])
    install.place_copy(home, files)
    install.install_agent(place)
    document = json.loads(path.read_text())
    commands = [hook["command"] for one in document["hooks"]["Stop"] for hook in one["hooks"]]
    assert commands == ["mine", f"python3 -I -S {home}/plugin/hooks/hook.py Stop codex"]
    document["hooks"]["Stop"].append({"hooks": []})
    path.write_text(json.dumps(document))
    install.uninstall_agent(place)
    left = json.loads(path.read_text())["hooks"]
    assert left == {"Stop": [*json.loads(USERS_OWN["hooks.json"])["hooks"]["Stop"], {"hooks": []}]}


def test_a_skill_that_two_agents_share_goes_with_the_last_of_them(
    home, files, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    install.place_copy(home, files)
    places = [Place(home, AGENTS[name], tmp_path / name) for name in ("pi", "opencode")]
    for place in places:
        install.install_agent(place)
    skill = tmp_path / ".agents" / "skills" / "mem-search"
    assert (skill / "SKILL.md").is_file()
    install.uninstall_agent(places[0])
    assert skill.is_symlink()
    install.uninstall_agent(places[1])
    assert not (tmp_path / ".agents").exists()


def test_what_others_put_into_a_folder_we_made_stays(home, tmp_path):
    folder = tmp_path / "claude"
    install.install_agent(Place(home, CLAUDE_CODE, folder))
    (folder / "skills" / "mine").mkdir()
    (folder / "settings.json").write_text("{}")
    install.uninstall_agent(Place(home, CLAUDE_CODE, folder))
    assert set(tree(folder)) == {"skills", "skills/mine", "settings.json"}
    assert install.read_installed(home) == {}


def test_folders_behind_links_are_followed_and_stay_links(home, tmp_path):
    (tmp_path / "dotfiles" / "skills").mkdir(parents=True)
    folder = tmp_path / "claude"
    folder.symlink_to(tmp_path / "dotfiles")
    before = tree(tmp_path)
    install.install_agent(Place(home, CLAUDE_CODE, folder))
    assert (tmp_path / "dotfiles" / "skills" / "yester").is_symlink()
    install.uninstall_agent(Place(home, CLAUDE_CODE, folder))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_is_not_ours_is_never_replaced(home, tmp_path, what):
    link = install.plugin_link(tmp_path / "claude")
    link.parent.mkdir(parents=True)
    if what == "folder":
        link.mkdir()
        (link / "SKILL.md").write_text("the user's own")
    elif what == "file":
        link.write_text("the user's own")
    else:
        link.symlink_to(tmp_path)
    before = tree(tmp_path / "claude")
    with pytest.raises(InstallError, match=str(link)):
        install.install_agent(Place(home, CLAUDE_CODE, tmp_path / "claude"))
    install.uninstall_agent(Place(home, CLAUDE_CODE, tmp_path / "claude"))
    assert tree(tmp_path / "claude") == before


def test_a_link_that_leads_nowhere_is_replaced(home, tmp_path):
    link = install.plugin_link(tmp_path / "claude")
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "a home that is gone" / "plugin")
    (change,) = install.plan_agent(Place(home, CLAUDE_CODE, tmp_path / "claude"))
    install.install_agent(Place(home, CLAUDE_CODE, tmp_path / "claude"))
    assert str(change) == f"~ {link} -> {install.copy_folder(home)}"
    assert Place(home, CLAUDE_CODE, tmp_path / "claude").is_installed


def test_a_folder_that_cannot_be_written_is_one_sentence(home, tmp_path):
    (tmp_path / "claude").write_text("no folder")
    with pytest.raises(NotADirectoryError):
        install.install_agent(Place(home, CLAUDE_CODE, tmp_path / "claude"))


def test_the_settings_name_the_folder_and_a_repository_cannot(home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/srv/of-a-repository")
    monkeypatch.setenv("HOME", "/home/sam")
    assert install.agent_folders(load_config(home, os.environ)) == [Path("/home/sam/.claude")]
    (home / "config.toml").write_text('claude_code_dirs = ["/a", "~/b", "/a"]\n')
    assert install.agent_folders(load_config(home, {})) == [Path("/a"), Path("/home/sam/b")]
    assert install.agent_folders(load_config(home, {}), [Path("/c")]) == [Path("/c")]


def test_a_damaged_record_is_said_and_never_guessed_about(home):
    (home / "installed.json").write_text('[{"agent": 3}]')
    with pytest.raises(InstallError, match=r"installed\.json cannot be understood"):
        install.read_installed(home)


# --- what the client says --------------------------------------------------------------------


def listed(**more):
    return {"id": install.PLUGIN, "enabled": True, **more}


@each(
    ("known", "why"),
    [
        ([listed()], ""),
        ([{"id": "other@market", "enabled": True}, listed()], ""),
        ([], "it does not see the plugin"),
        ([listed(enabled=False)], "it is switched off there"),
        ([listed(enabled=False, errors=["Manifest parse error"])], "Manifest parse error"),
        ([{"id": "yester@market", "enabled": True}, listed(errors=["taken"])], "yester@market"),
        ([{"id": "yester@market", "enabled": False}, listed()], ""),
    ],
)
def test_the_clients_own_list_says_whether_it_loads_us(known, why):
    name, said = client.judge_listing(known)
    assert why in said
    assert bool(why) == bool(said) == (name != "loaded")


def program(folder, text):
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_client_that_was_never_started_is_asked_about_a_double_of_its_folder(home, tmp_path):
    folder = tmp_path / "claude-config"
    install.install_agent(Place(home, CLAUDE_CODE, folder))
    (folder / "settings.json").write_text('{"mine": 1}')
    before = tree(folder)
    asked = program(
        tmp_path,
        'touch "$CLAUDE_CONFIG_DIR/.claude.json"; cat "$CLAUDE_CONFIG_DIR/settings.json" >&2\n'
        'echo "[{\\"id\\": \\"$(readlink "$CLAUDE_CONFIG_DIR/skills/yester")\\"}]"',
    )
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    (one,) = client.list_plugins(asked, folder, environ, home) or []
    assert one["id"] == str(install.copy_folder(home))
    assert tree(folder) == before
    (folder / ".claude.json").write_text("{}")
    asked = program(tmp_path, 'echo "[{\\"id\\": \\"$CLAUDE_CONFIG_DIR\\"}]"')
    assert client.list_plugins(asked, folder, environ, home) == [{"id": str(folder)}]


def test_a_client_that_does_not_answer_says_nothing(home, tmp_path):
    environ = {"PATH": "/usr/bin:/bin"}
    broken = program(tmp_path, "exit 1")
    assert client.list_plugins(broken, tmp_path, environ, home) is None
    assert client.read_version(broken, environ, home) == ()
    assert client.read_version(tmp_path / "none", environ, home) == ()
    assert client.read_version(program(tmp_path, "echo '2.1.9 (x)'"), environ, home) == (2, 1, 9)


def test_settings_that_switch_hooks_off_are_named(tmp_path):
    def told():
        return [finding.text for finding in client.look_at_settings(tmp_path)]

    path = tmp_path / "settings.json"
    assert told() == []
    path.write_text('{"disableAllHooks": true}')
    assert told() == [f"disableAllHooks in {path} switches off all hooks, ours too"]
    path.write_text('{"disableAllHooks": ')
    (text,) = told()
    assert f"{path} is not a JSON object" in text


# --- hooks on trial --------------------------------------------------------------------------


@pytest.fixture
def environ(home, tmp_path):
    put_python(tmp_path / "bin")
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path),
        "YESTER_HOME": str(home),
    }  # fmt: skip


@pytest.fixture
def place(home, files, tmp_path):
    install.place_copy(home, files)
    return Place(home, CLAUDE_CODE, tmp_path / "claude")


def test_a_hook_is_run_as_the_client_would_and_its_event_is_a_trial(home, place, environ):
    command = client.hook_commands(place)["PostToolUse"]
    outcome = client.try_hook(place, "PostToolUse", command, environ)
    assert outcome.wrong == ""
    (told,) = waiting(home)
    assert json.loads(told.payload)["session_id"] == client.TRIAL
    assert Path(told.cwd).is_relative_to(home)
    assert told.hints["CLAUDECODE"] == "1"
    assert client.clear_trials(Spool(home)) == 1
    assert waiting(home) == []


@pytest.mark.parametrize(
    ("said", "wrong", "silent"),
    [
        (b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}', "", 0),
        (b'{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"x"}}', "printed", 0),
        (b'{"hookSpecificOutput":{"hookEventName":"SessionStart"}}', "an empty answer", 0),
        (b"not JSON", "printed", 0),
        (b"[]", "printed", 0),
        (b"", "got no answer", 1),
    ],
)
def test_an_answer_must_have_the_form_the_client_takes(home, place, environ, said, wrong, silent):
    command = client.hook_commands(place)["SessionStart"]
    with worker_that(home, lambda c: (c.sendall(answered(said)), c.close())):
        outcome = client.try_hook(place, "SessionStart", command, environ)
    assert wrong in outcome.wrong
    assert bool(outcome.wrong) == bool(wrong)
    assert outcome.silent == bool(silent)


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("no-such-program", "ended with 127"),
        ("python3 -I -S /no/such/hook.py Stop", "ended with 2"),
        ("echo hello", "printed b'hello"),
    ],
)
def test_a_hook_that_cannot_run_or_talks_is_wrong(place, environ, command, wrong):
    assert wrong in client.try_hook(place, "Stop", command, environ).wrong


def test_without_a_worker_the_hint_is_told_apart_from_silence(place, environ):
    command = client.hook_commands(place)["SessionStart"]
    outcome = client.try_hook(place, "SessionStart", command, environ)
    assert (outcome.wrong, outcome.silent) == ("found no worker and could not start one", True)


@pytest.mark.requirement("DEL-12")
@each(
    ("name", "said", "wrong"),
    [
        ("copilot-cli", b'{"additionalContext":"x"}', ""),
        ("copilot-cli", b'{"hookSpecificOutput":{"additionalContext":"x"}}', "an empty answer"),
        ("codex", b'{"additionalContext":"x"}', "printed"),
        ("pi", b"x", ""),
        ("pi", b"", "got no answer"),
    ],
)
def test_the_answer_must_have_the_form_of_each_client(home, place, environ, name, said, wrong):
    other = Place(home, AGENTS[name], place.folder)
    command = client.hook_commands(other)["SessionStart"]
    with worker_that(home, lambda c: (c.sendall(answered(said)), c.close())):
        outcome = client.try_hook(other, "SessionStart", command, environ)
    assert wrong in outcome.wrong
    assert bool(outcome.wrong) == bool(wrong)


SERVER = """
import json, sys
told = json.loads(sys.stdin.readline())
assert told["method"] == "initialize"
print(json.dumps({"jsonrpc": "2.0", "id": told["id"], "result": {"serverInfo": {}}}), flush=True)
"""


@pytest.mark.parametrize(
    ("code", "wrong"),
    [(SERVER, ""), ("import sys; sys.exit('no module yester')", "no module yester"), ("", "gave")],
)
def test_a_server_must_answer_the_first_request(tmp_path, code, wrong):
    words = [sys.executable, "-c", code]
    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"yester": {"command": words[0], "args": words[1:]}}})
    )
    ((name, found),) = client.server_commands(tmp_path).items()
    assert (name, found) == ("yester", words)
    outcome = client.try_server(found, {}, tmp_path)
    assert wrong in outcome.wrong
    assert bool(outcome.wrong) == bool(wrong)
    assert client.server_commands(tmp_path / "none") == {}
