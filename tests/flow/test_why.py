"""`why`: which turns wrote a file's lines, what came before, on every face."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import yester
from tests.distilling import Story, distilled, made
from tests.flow.test_surroundings import git
from tests.serving import serving
from tests.stores import with_store
from yester.errors import NotFound
from yester.faces.mcp.calls import ToolMemory, show_timeline
from yester.ingest.prepare import prepare_item
from yester.memory import Memory
from yester.operations.files import (
    NOBODY,
    LinesRequest,
    blame_lines,
    explain_lines,
    history_lines,
)
from yester.operations.search import TimelineRequest
from yester.project import Projects
from yester.store import open_store

pytestmark = pytest.mark.requirement("REC-23")

BY_HAND = '"""Talking to the payment provider."""'
START = "def open_link(host):\n    link = connect(host, timeout=8)\n    return link\n"
POOLED = "    link = POOL.take(host) or connect(host)\n    POOL.keep(link)\n"
FRESH = "    link = connect(host, timeout=8, fresh=True)\n    link.on_close(forget_link)\n"
OLD_LINE = "    link = connect(host, timeout=8)\n"
FILE = f"{BY_HAND}\n\n\ndef open_link(host):\n{FRESH}    return link\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "src" / "link.py").write_text(FILE)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Open a link for each call")
    return folder


@pytest.fixture
def memory(home: Path, repo: Path):
    """Three sessions: the function is written, pooling fails, a link for each call holds."""
    store = open_store(with_store(home), now=1)
    project = Projects({}).by_folder(str(repo))
    file = "src/link.py"
    for number, (old, new) in enumerate((("", START), (OLD_LINE, POOLED), (POOLED, FRESH)), 1):
        story = Story(f"{number}aaaaaaa-0000-4000-8000-00000000000{number}", project.key,
                      1_770_000_000_000 + number * 86_400_000)  # fmt: skip
        story.prompt(f"Make the link to the provider work, attempt {number}")
        story.replaces(file, old, new)
        if number == 2:
            story.fails("pytest -q", "E  ConnectionError: idle link was dropped\n2 failed")
            story.says("Pooling does not work because the provider drops idle links after 10 s.")
        else:
            story.ran("pytest -q", "9 passed in 0.1s")
            story.ran(f"git commit -am 'Step {number} of the link'", f"[main 123456{number}] Step")
            story.says(f"Step {number} is done because every call opens a link of its own.")
        with store.transaction("items"):
            store.put_project(project)
            store.put(list(map(prepare_item, story.items)))
    distilled(store)
    store.close()
    with Memory(home, os.environ, cwd=str(repo), ask_worker=None) as opened:
        yield opened


def ask(memory: Memory, file: str):
    return explain_lines(memory, LinesRequest(file=file))


def test_each_stretch_names_its_turn_what_it_replaced_and_what_had_failed(memory):
    found = ask(memory, "src/link.py")
    cards = {one.session[0]: one for one in made(memory.store, "summary") if one.type == "turn"}
    assert [(one.first, one.last, one.turn and one.turn.id) for one in found.stretches] == [
        (1, 3, None), (4, 4, cards["1"].id), (5, 6, cards["3"].id), (7, 7, cards["1"].id),
    ]  # fmt: skip
    fresh = found.stretches[2]
    assert fresh.turn.status == "done"
    assert [one.id for one in fresh.former] == [cards["2"].id]
    assert fresh.former[0].status == "failed"
    assert fresh.replaced.startswith("link = POOL.take(host)")
    text = "\n".join(history_lines(found))
    assert NOBODY in text
    assert f"{cards['3'].id} done" in text
    assert f"which was {cards['2'].id} failed" in text


def test_lines_can_be_named_and_a_file_from_its_root(memory):
    assert [one.first for one in ask(memory, "src/link.py:5").stretches] == [5]
    assert [one.first for one in ask(memory, "src/link.py:4-3").stretches] == [1, 4]
    memory.cwd += "/src"
    assert ask(memory, "src/link.py:5").file == ask(memory, "link.py:5").file == "src/link.py"
    margin = [line.split()[0] for line in blame_lines(ask(memory, "link.py:4-6"))]
    assert margin[0] != margin[1] == margin[2]


def test_a_renamed_file_keeps_its_authors(memory, repo):
    git(repo, "mv", "src/link.py", "src/provider.py")
    git(repo, "commit", "-qm", "Name it by what it talks to")
    found = ask(memory, "src/provider.py")
    assert found.former_names == ["src/link.py"]
    assert found.recorded == 4


def test_what_cannot_be_asked_is_refused_with_its_name(memory, tmp_path):
    (tmp_path / "elsewhere.py").write_text("x = 1\n")
    with pytest.raises(NotFound, match=r"there is no file src/gone\.py"):
        ask(memory, "src/gone.py")
    with pytest.raises(NotFound, match="has 7 lines"):
        ask(memory, "src/link.py:90")
    memory.cwd = ""
    with pytest.raises(NotFound, match="could be a file of any project"):
        ask(memory, "src/link.py")
    with pytest.raises(NotFound, match="no project that is recorded"):
        ask(memory, str(tmp_path / "elsewhere.py"))


def test_every_face_tells_the_same(memory, run, home, repo):
    told = ask(memory, "src/link.py:5")
    line = told.stretches[0].turn.line
    printed = run("why", "src/link.py:5", cwd=repo)
    assert (printed.code, line in printed.out) == (0, True)
    as_json = json.loads(run("why", "src/link.py:5", "--json", cwd=repo).out)
    assert as_json["stretches"][0]["turn"]["line"] == line
    with ToolMemory(home, os.environ, cwd=str(repo)) as tools:
        assert line in show_timeline(tools, TimelineRequest(anchor="src/link.py:5"))
    with yester.open(home) as opened:
        assert opened.why(f"{repo}/src/link.py:5").stretches[0].turn.line == line
    with serving(home) as api:
        answer = api.get("/api/why", file="src/link.py:5", project=told.project)
        assert answer["stretches"][0]["turn"]["line"] == line
