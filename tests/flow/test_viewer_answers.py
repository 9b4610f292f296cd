"""Turns, days, files and transcripts over HTTP: what the viewer is made of."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import yester
from tests.distilling import Story, distilled
from tests.flow.test_surroundings import git
from tests.serving import Serving, serving
from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.model import Project
from yester.project import Projects
from yester.store import open_store

pytestmark = pytest.mark.requirement("DEL-07", "DEL-10")

FILE = "src/link.py"
KEY = "sk-ant-api03-" + "Zq7Wd2Lm9Xc4Vb6N" * 5 + "AA"
WRITTEN = "def open_link(host):\n    return connect(host, timeout=8)\n"
BEGAN = 1_770_000_000_000


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / FILE).write_text(f"{WRITTEN}KEY = '{KEY}'\n")
    (folder / "src" / "unheard.py").write_text("x = 1\n")
    (tmp_path / "secret.txt").write_text("nobody has recorded this\n")
    (folder / "src" / "linked.txt").symlink_to(tmp_path / "secret.txt")
    return folder


@pytest.fixture
def api(home: Path, shop: Path):
    project = Projects({}).by_folder(str(shop))
    story = Story(project=project.key, clock=BEGAN)
    story.prompt("Open a link for each call")
    story.replaces(FILE, "", WRITTEN)
    story.ran("pytest -q", "9 passed in 0.1s")
    story.says("Done because every call opens a link of its own.")
    story.prompt("And why does it time out?")
    story.reads("src/linked.txt")
    story.fails("pytest -q", "1 failed")
    story.says("The provider drops idle links.")
    store = open_store(with_store(home), now=1)
    with store.transaction("items"):
        store.put_project(project)
        store.put_project(Project("name:bakery", "bakery"))
        store.put([prepare_item(one) for one in story.items])
    distilled(store)
    store.close()
    with serving(home) as running:
        yield running


def test_a_turn_is_a_prompt_with_what_came_of_it(api: Serving):
    first, second = api.get("/api/turns", session="S1", orderBy="date_asc")["turns"]
    assert (first["prompt"], first["status"], first["files"]) == (
        "Open a link for each call", "done", [FILE],
    )  # fmt: skip
    assert first["evidence"].startswith("`pytest -q` 9 passed")
    assert first["types"]
    assert (second["number"], second["files"]) == (2, [])
    page = api.get("/api/turns", project="shop", limit=1)
    assert ([one["id"] for one in page["turns"]], page["more"]) == ([second["id"]], True)
    assert api.get("/api/turns", project="bakery")["turns"] == []


def test_days_are_those_of_the_servers_clock(api: Serving):
    day = time.strftime("%Y-%m-%d", time.localtime(BEGAN / 1000))
    assert api.get("/api/days") == {"days": [{"day": day, "turns": 2}]}
    assert len(api.get("/api/turns", dateStart=day, dateEnd=day)["turns"]) == 2
    assert api.get("/api/days", project="bakery") == {"days": []}


def test_days_tell_what_comes_in_and_an_empty_memory_has_none(tmp_path: Path):
    with yester.open(tmp_path / "memory") as memory, serving(tmp_path / "memory") as api:
        assert api.get("/api/days") == {"days": []}
        for number, epoch in enumerate((time.time(), BEGAN / 1000, BEGAN / 1000 + 60)):
            prompt = {"kind": "prompt", "role": "user", "ref": str(number), "text": "So?"}
            memory.add([prompt | {"epoch": epoch, "project": "shop"}], embed="later")
            assert sum(one["turns"] for one in api.get("/api/days")["days"]) == number + 1


def test_a_transcript_is_narrowed_to_what_is_asked_for(api: Serving):
    def narrowed(**query):
        found = api.get("/api/sessions/S1/transcript", kinds="message,prompt", **query)
        return found["total"], [one["narrative"].split("\n")[0] for one in found["results"]]

    assert narrowed(only="prompts") == (
        2, ["Open a link for each call", "And why does it time out?"],
    )  # fmt: skip
    assert narrowed(only="errors") == (1, ["pytest -q"])
    assert narrowed(only="said")[0] == 4
    assert narrowed(find="IDLE links") == (1, ["The provider drops idle links."])
    assert narrowed(only="edits", limit=1)[0] == 1
    files = api.get("/api/sessions/S1/files")["files"]
    assert [(one["path"], one["edits"], one["reads"]) for one in files] == [
        (FILE, 1, 0), ("src/linked.txt", 0, 1),
    ]  # fmt: skip


def test_a_call_tells_its_command_and_what_it_changed(api: Serving):
    rows = api.get("/api/sessions/S1/transcript")["results"]
    edit, run, *_ = (row["call"] for row in rows if "call" in row)
    assert run["command"] == "pytest -q"
    assert [(one["file"], one["before"], one["after"]) for one in edit["changes"]] == [
        (FILE, "", WRITTEN.rstrip())
    ]
    assert api.get("/api/sessions/S1")["resume"].startswith("claude --resume ")


@pytest.mark.requirement("REC-23")
def test_a_file_is_shown_with_the_turns_that_wrote_it_and_without_secrets(api: Serving):
    file = api.ask("GET", f"/api/file?project=shop&path={FILE}").json
    assert file["lines"][:2] == WRITTEN.splitlines()
    assert KEY not in file["lines"][2]
    assert file["lines"][2].startswith("KEY = '[redacted:")
    assert file["history"]["stretches"][0]["turn"]["status"] == "done"
    assert [one["prompt"] for one in file["turns"]] == ["Open a link for each call"]
    assert [one["db_id"] for one in file["sessions"]] == [1]


@pytest.mark.requirement("OPS-03")
def test_no_file_is_read_that_is_not_recorded_in_its_own_project(api: Serving, shop: Path):
    def ask(path, project="shop"):
        return api.ask("GET", f"/api/file?project={project}&path={path}")

    refused = (
        "src/unheard.py",
        "../secret.txt",
        "/etc/passwd",
        "src/../src/link.py",
        ".git/config",
    )
    for path in refused:
        assert (ask(path).status, ask(path).json["parameter"]) == (404, "path")
    assert ask(FILE, "bakery").status == 404
    # A name that is recorded, but leads out of the project.
    linked = ask("src/linked.txt").json
    assert (linked["lines"], "nobody has recorded" in str(linked)) == ([], False)
    assert linked["missing"]
    (shop / FILE).unlink()
    gone = ask(FILE).json
    assert gone["missing"].startswith("there is no file src/link.py")
    assert [one["call"]["changes"][0]["after"] for one in gone["edits"]] == [WRITTEN.rstrip()]
