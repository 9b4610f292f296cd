"""A private project: what it remembers is shown in it, and nowhere else."""

from __future__ import annotations

import tomllib

import pytest

import yester
from tests.serving import serving
from yester.config import load_config
from yester.errors import NotYours
from yester.faces.mcp.calls import answer_call, open_for_tools
from yester.faces.mcp.server import load_tools
from yester.memory import Memory
from yester.model import Filters
from yester.operations.context import ContextRequest, build_context
from yester.operations.projects import (
    PrivateRequest,
    RenameRequest,
    list_projects,
    rename_project,
    set_private,
)
from yester.project import Project

pytestmark = pytest.mark.requirement("MEM-09")
SECRET = "The vault opens with the brass lever, never the iron one"


@pytest.fixture
def places(tmp_path, home):
    """Two folders, each a project with something about a vault."""
    found = {name: tmp_path / name for name in ("bank", "garden")}
    with yester.open(home) as memory:
        for name, path in found.items():
            path.mkdir()
            with memory.store.transaction("places"):
                memory.store.put_project(Project(f"dir:{path}", name, str(path)))
        memory.add([
            {"ref": "1", "text": SECRET, "project": "bank", "kind": "observation",
             "title": "Brass lever", "session": "bank-one", "agent": "codex", "type": "decision"},
            {"ref": "2", "text": "A vault of roses over the gate", "project": "garden"},
        ])  # fmt: skip
    return found


def memory_in(home, cwd, origin="user"):
    return Memory(home, {}, cwd=str(cwd) if cwd else "", origin=origin, ask_worker=None)


def ask_tool(home, cwd, name, **given):
    memory = open_for_tools(str(home), str(cwd), {}, None)
    try:
        return answer_call(load_tools()[name], lambda: memory, given)[0]
    finally:
        memory.close()


def keep_private(home):
    with memory_in(home, "") as memory:
        set_private(memory, PrivateRequest(key="bank"))


def test_its_memory_is_found_in_its_folder_and_by_nobody_elsewhere(home, places, run):
    keep_private(home)
    with yester.open(home) as memory:
        secret = memory.store.find_by_ref("1")[0].id
        assert [hit.ref for hit in memory.recall("vault lever")] == ["2"]
        assert [hit.ref for hit in memory.recall("vault lever", project="bank")] == ["1", "2"]
        assert memory.recent() == []
        assert [one.key for one in memory.store.sessions(Filters())] == ["bank-one"]
    for cwd, seen in ((places["bank"], True), (places["garden"], False)):
        told = [
            ask_tool(home, cwd, "search", query="vault lever"),
            ask_tool(home, cwd, "search", query="vault lever", project="bank"),
            ask_tool(home, cwd, "search", query="project:bank lever"),
            ask_tool(home, cwd, "search", type="sessions"),
            ask_tool(home, cwd, "get_observations", ids=[secret]),
            ask_tool(home, cwd, "timeline", anchor=str(secret)),
        ]
        assert ["rass lever" in one or "bank-one" in one for one in told] == [seen] * 6
        with memory_in(home, cwd) as memory:
            request = ContextRequest(
                "UserPromptSubmit", str(cwd), "why the brass lever of the vault?"
            )
            assert ("rass lever" in build_context(memory, request).text) is seen
    agent = {"CLAUDECODE": "1"}
    for words in (("recall", "vault lever"), ("show", str(secret)), ("recent",), ("sessions",)):
        done = run(*words, env=agent)
        assert "rass lever" not in done.out
        assert "bank-one" not in done.out
    # The user may name it anywhere.
    assert "rass lever" in run("recall", "lever", "--project", "bank").out
    assert "rass lever" in run("show", str(secret)).out


def test_over_http_it_is_found_where_it_is_named(home, places):
    keep_private(home)
    with serving(home) as api:
        assert [one["title"] for one in api.get("/api/search", query="vault lever")["results"]] == [
            "A vault of roses over the gate"
        ]
        assert api.get("/api/sessions")["sessions"] == []
        facets = api.get("/api/facets")
        assert (facets["total"], facets["projects"]) == (1, {"garden": 1})
        assert api.get("/api/search", query="lever", project="bank")["count"] == 1


def test_the_users_own_configuration_says_so_and_a_new_name_keeps_it(home, places, run):
    done = run("projects", "--private", "bank", "--json")
    assert {one["name"]: one["private"] for one in done.json["projects"]} == {
        "bank": True, "garden": False,
    }  # fmt: skip
    lines = tomllib.loads((home / "config.toml").read_text())["projects"]
    assert lines == {
        f"dir:{places['bank']}": {"private": True},
        str(places["bank"]): {"private": True},
    }
    with memory_in(home, "") as memory:
        rename_project(memory, RenameRequest(key="bank", name="treasury"))
        assert {one.name for one in list_projects(memory).projects if one.private} == {"treasury"}
        # Its folder gets a remote, and so another key: it stays what it was.
    (home / "config.toml").write_text(f'[projects]\n"{places["bank"]}" = {{ private = true }}\n')
    (places["bank"] / ".git").mkdir()
    (places["bank"] / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (places["bank"] / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = git@git.example.org:sam/bank.git\n'
    )
    with memory_in(home, places["garden"]) as memory:
        hidden = memory.hide_private(Filters()).without_projects
        assert hidden == ("git:git.example.org/sam/bank",)
    assert run("projects", "--not-private", "bank").code != 0  # no such project any more
    assert load_config(home, {"YESTER_PROJECTS": "{}"}).private == (str(places["bank"]),)


def test_a_folder_that_names_its_remote_does_not_get_its_memory(home, places, tmp_path):
    """Nor one that claims to be a work tree of it; a work tree that git has made does."""

    def claim(folder, text='[remote "origin"]\n\turl = git@git.example.org:sam/bank.git\n'):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / ".git" / "config").write_text(text)

    claim(places["bank"])
    bank = "git:git.example.org/sam/bank"
    with yester.open(home) as memory, memory.store.transaction("places"):
        memory.store.merge_project(
            f"dir:{places['bank']}", Project(bank, "bank", str(places["bank"]))
        )
    keep_private(home)
    stranger, forged, own = (tmp_path / name for name in ("stranger", "forged", "bank-fix"))
    claim(stranger)
    git = places["bank"] / ".git"
    for folder, entry in ((forged, forged / "own"), (own, git / "worktrees" / "fix")):
        entry.mkdir(parents=True)
        folder.mkdir(exist_ok=True)
        (folder / ".git").write_text(f"gitdir: {entry}\n")
        (entry / "commondir").write_text(f"{git}\n")
        (entry / "HEAD").write_text("ref: refs/heads/fix\n")
    (git / "worktrees" / "fix" / "gitdir").write_text(f"{own}/.git\n")
    for cwd, seen in ((places["bank"], True), (own, True), (stranger, False), (forged, False)):
        assert ("rass lever" in ask_tool(home, cwd, "search", query="lever")) is seen
        with memory_in(home, cwd) as memory:
            start = build_context(memory, ContextRequest("SessionStart", str(cwd), session="new"))
            assert ("rass lever" in start.text) is seen


def test_no_program_can_change_it(home, places):
    with (
        memory_in(home, places["bank"], "agent") as memory,
        pytest.raises(NotYours, match="the user's"),
    ):
        set_private(memory, PrivateRequest(key="bank"))
