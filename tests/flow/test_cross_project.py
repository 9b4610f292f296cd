"""One pool: what was learnt in a project helps in another, with its name on it."""

from __future__ import annotations

import pytest

import yester
from yester.config import load_config
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.errors import ConfigError
from yester.project import named_project

pytestmark = pytest.mark.requirement("REC-06")

FIX = {
    "ref": "fix", "project": "A", "kind": "observation", "type": "bugfix",
    "title": "Webhook signatures failed behind the proxy",
    "text": "The proxy decompressed the body; the signature is computed over the raw bytes now.",
    "epoch": 1_770_000_000,
}  # fmt: skip
OTHER = {"ref": "own", "project": "B", "text": "The proxy has a new name.", "epoch": 1_770_000_100}
NOW = 1_771_000_000
PROMPT = "every webhook is refused: the signature does not match since we have the proxy"


def test_a_bugfix_in_project_a_is_recalled_by_a_matching_prompt_in_project_b(memory, run):
    memory.add([FIX, OTHER])
    for more in ({"scope": "all"}, {}):
        best = memory.recall(PROMPT, project="B", **more)[0]
        assert (best.ref, best.type, best.project) == ("fix", "bugfix", "A")
    out = run("recall", PROMPT, "-n", "1").out
    assert out.startswith("A\n  ✔ #1  ")


def test_another_project_is_neither_penalised_nor_capped(memory):
    memory.add([FIX, *({**FIX, "ref": f"n{n}", "text": f"webhook signature case {n} of many "
                        f"number{n} word{n} thing{n} part{n}"} for n in range(12))])  # fmt: skip
    nowhere = memory.recall(PROMPT, k=20, now=NOW)
    elsewhere = memory.recall(PROMPT, k=20, project="B", now=NOW)
    assert [(h.ref, h.score) for h in nowhere] == [(h.ref, h.score) for h in elsewhere]
    assert len(elsewhere) == 13


def test_a_busy_project_cannot_push_the_own_one_out_of_what_an_agent_gets(memory):
    busy = (
        {**FIX, "ref": f"n{n}", "epoch": NOW - n, "title": f"Webhook signature {n}",
         "text": f"webhook refused: the signature does not match the proxy, case{n} part{n} at{n}"}
        for n in range(2_000)
    )  # fmt: skip
    own = {
        **OTHER,
        "text": "Since we have the proxy every webhook is refused, no signature matches.",
    }
    memory.add([*busy, own])
    given = at_prompt(memory.store, PROMPT, Here(named_project("B"), "now", NOW * 1000))
    lines = [line for line in given.text.splitlines() if line.startswith("#")]
    assert any("no signature matches" in line and "[from" not in line for line in lines)


@pytest.mark.parametrize("variable", ["YESTER_CROSS_PROJECT", "CLAUDE_MEM_CROSS_PROJECT"])
def test_the_setting_makes_the_own_project_the_default(home, run, tmp_path, monkeypatch, variable):
    with yester.open(home) as memory:
        memory.add([FIX, OTHER])
    monkeypatch.setenv(variable, "false")
    with yester.open(home) as memory:
        assert [h.ref for h in memory.recall("proxy", project="B")] == ["own"]
        assert len(memory.recall("proxy", project="B", scope="all")) == 2
        assert len(memory.recall("proxy")) == 2


def test_with_it_the_command_looks_in_the_current_folders_project(home, run, transcript, tmp_path):
    for name, said in (("shop", "Rename the proxy"), ("blog", "Does the proxy cache the feed?")):
        folder = tmp_path / name
        folder.mkdir()
        key = f"{name[:1] * 8}-0000-4000-8000-000000000001"
        transcript(key, cwd=str(folder)).user(said)
    assert run("index").code == 0
    off = {"YESTER_CROSS_PROJECT": "0"}

    def projects(*words, **more):
        return {hit["project"] for hit in run(*words, "--json", **more).json["hits"]}

    both, shop = {"shop", "blog"}, {"cwd": tmp_path / "shop", "env": off}
    assert projects("recall", "proxy", cwd=tmp_path / "shop") == both
    assert projects("recall", "proxy", **shop) == {"shop"}
    assert projects("recall", "proxy", "--all-projects", **shop) == both
    assert projects("recall", "proxy", "--project", "blog", **shop) == {"blog"}
    assert projects("recall", "proxy project:blog", **shop) == {"blog"}
    assert projects("timeline", "latest", **shop) == {"shop"}
    nothing = run("recall", "feed", **shop)
    assert (nothing.code, nothing.out) == (1, "")
    assert "To look in all of them: --all-projects" in nothing.err
    assert run("recall", "feed", "--all-projects", "--project", "shop").code == 2


def test_variables_can_narrow_the_scope_and_never_widen_it(tmp_path):
    def setting(**variables):
        config = load_config(tmp_path, variables)
        return config.flag("cross_project"), config.origins["cross_project"]

    assert setting() == (True, "default")
    assert setting(CLAUDE_MEM_CROSS_PROJECT="false") == (False, "CLAUDE_MEM_CROSS_PROJECT")
    both = {"CLAUDE_MEM_CROSS_PROJECT": "true", "YESTER_CROSS_PROJECT": "false"}
    assert setting(**both) == (False, "YESTER_CROSS_PROJECT")
    (tmp_path / "config.toml").write_text("cross_project = false\n")
    assert setting() == (False, "config.toml")
    assert setting(CLAUDE_MEM_CROSS_PROJECT="true") == (False, "config.toml")
    with pytest.raises(ConfigError, match="CLAUDE_MEM_CROSS_PROJECT: cross_project is 'maybe'"):
        setting(CLAUDE_MEM_CROSS_PROJECT="maybe")
