"""Projects renamed and merged over HTTP: in the store, and for what is captured later."""

from __future__ import annotations

import subprocess

import pytest

import yester
from tests.readings import every_item
from tests.serving import serving
from tests.stores import with_store
from yester.config import load_config
from yester.memories.remember import Draft
from yester.model import Filters, Paging
from yester.project import Projects
from yester.store import maintenance_of

pytestmark = pytest.mark.requirement("CAP-07", "DEL-07")


@pytest.fixture
def folders(tmp_path):
    """Two repositories with a remote, and a plain folder."""
    found = {}
    for name in ("shop", "shop-old"):
        (tmp_path / name).mkdir()
        subprocess.run(["git", "init", "-q", tmp_path / name], check=True)
        with open(tmp_path / name / ".git" / "config", "a") as file:
            file.write(f'[remote "origin"]\n\turl = https://example.org/acme/{name}.git\n')
        found[name] = str(tmp_path / name)
    (tmp_path / "notes").mkdir()
    return found | {"notes": str(tmp_path / "notes")}


@pytest.fixture
def api(folders, home, run, transcript):
    for number, folder in enumerate(folders.values()):
        transcript(f"{number}aaaaaaa-0000-4000-8000-000000000001", cwd=folder).talk(2, "checkout")
    assert run("index").code == 0
    with serving(home) as found:
        found.sam = found.user()
        yield found
        assert found.failures == []


def keys(api):
    return {one["name"]: one["key"] for one in api.get("/api/projects")["projects"]}


def ids(home):
    with yester.open(with_store(home)) as memory:
        return {item.id: (item.ref, item.body) for item in every_item(memory.store)}


def merge(api, source, into, **more):
    return api.send("/api/projects/merge", {"from": source, "into": into, **more}, token=api.sam)


def test_a_merge_is_shown_first_and_then_moves_everything_for_good(
    api, home, folders, run, transcript
):
    with yester.open(with_store(home)) as memory:
        for name in ("shop", "shop-old"):
            memory.memories.keep(Draft(f"Orders keep UTC in {name}", "note", slug="utc"), name)
    before, everything = keys(api), ids(home)
    old = before["shop-old"]
    would = merge(api, old, "shop").json
    assert would["done"] is False
    assert (would["sessions"], would["memories"]) == (1, 1)
    assert keys(api) == before
    assert not (home / "config.toml").exists()

    done = merge(api, old, before["shop"], dry_run=False).json
    assert done["done"] is True
    assert (done["items"], done["sessions"]) == (would["items"], would["sessions"])
    assert keys(api) == {"shop": "name:shop", "notes": before["notes"]}
    assert ids(home) == everything  # every item under its id
    with yester.open(with_store(home)) as memory:
        assert len(memory.store.sessions(Filters(projects=("shop",)), Paging(9))) == 2
        slugs = [memo.slug for memo in memory.memories.list("shop")]
        assert sorted(slugs) == ["utc", "utc-2"]
        assert maintenance_of(memory.store).check() == []
    turns = api.get("/api/search", query="checkout", project="shop")["results"]
    assert sum(1 + len(turn.get("parts", ())) for turn in turns) > 4

    again = run("index", "--json").json
    assert (again["added"], again["changed"]) == (0, 0)
    later = transcript("9aaaaaaa-0000-4000-8000-000000000001", cwd=folders["shop-old"])
    later.talk(1, "delivery")
    assert run("index", "--json").json["added"] > 0
    assert set(keys(api)) == {"shop", "notes"}
    found = api.get("/api/search", query="delivery", project="shop")["results"]
    assert found
    known = Projects(load_config(home, {}).projects)
    assert {known.by_folder(folders[name]).key for name in ("shop", "shop-old")} == {"name:shop"}


def test_reading_every_transcript_again_after_a_merge_adds_nothing(api, home, run):
    assert merge(api, "shop-old", "shop", dry_run=False).status == 200
    before = ids(home)
    with yester.open(home) as memory, memory.store.transaction("items"):
        memory.store._db.execute("DELETE FROM source")  # as if none had been read
    again = run("index", "--json").json
    assert (again["added"], again["changed"]) == (0, 0)
    assert again["unchanged"] == 0  # all of them were read
    assert ids(home) == before


def test_a_project_is_renamed_and_keeps_the_name(api, home, folders, run, transcript):
    (home / "config.toml").write_text("# mine\nthinking = true  # yes\n\n[llm]\nmodel = 'x'\n")
    key = keys(api)["shop"]
    said = api.send("/api/projects", {"key": key, "name": "the shop"}, "PATCH", api.sam)
    assert said.status == 200
    assert {one["name"]: one["key"] for one in said.json["projects"]}["the shop"] == "name:the shop"
    text = (home / "config.toml").read_text()
    assert text.startswith("# mine\nthinking = true  # yes\n\n[llm]\nmodel = 'x'\n")
    assert f'[projects]\n"{key}" = "the shop"\n' in text
    transcript("9aaaaaaa-0000-4000-8000-000000000001", cwd=folders["shop"]).talk(1, "delivery")
    run("index")
    assert "shop" not in keys(api)
    assert api.get("/api/search", query="delivery", project="the shop")["results"]
    again = api.send("/api/projects", {"key": "the shop", "name": "bazaar"}, "PATCH", api.sam)
    assert again.status == 200
    run("index")
    assert set(keys(api)) == {"bazaar", "shop-old", "notes"}
    assert Projects(load_config(home, {}).projects).by_folder(folders["shop"]).key == "name:bazaar"


def test_a_folder_without_a_repository_merges_too_and_names_can_be_used_again(api, home, folders):
    assert merge(api, "notes", "shop", dry_run=False).status == 200
    assert merge(api, "shop-old", "shop", dry_run=False).status == 200
    assert keys(api) == {"shop": "name:shop"}
    api.send("/api/projects", {"key": "shop", "name": "notes"}, "PATCH", api.sam)
    assert keys(api) == {"notes": "name:notes"}
    api.send("/api/projects", {"key": "notes", "name": "shop"}, "PATCH", api.sam)
    known = Projects(load_config(home, {}).projects)
    assert {known.by_folder(folder).key for folder in folders.values()} == {"name:shop"}
    saved = api.send("/api/memory/save", {"text": "Said by a program", "project": "notes"}).json
    assert saved["project"] == "shop"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/projects", {"key": "shop", "name": "notes"}),
        ("/api/projects", {"key": "shop", "name": "global"}),
        ("/api/projects/merge", {"from": "shop", "into": "shop", "dry_run": False}),
        ("/api/projects/merge", {"from": "global", "into": "shop", "dry_run": False}),
        ("/api/projects/merge", {"from": "shop", "into": "global", "dry_run": False}),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(api, home, path, body):
    api.send("/api/memory/save", {"text": "Tests come first."})
    before = keys(api)
    said = api.send(path, body, "POST" if "merge" in path else "PATCH", api.sam)
    assert said.status == 409
    assert said.json["detail"]
    assert keys(api) == before
    assert not (home / "config.toml").exists()


def test_a_file_that_cannot_be_changed_safely_stays_and_so_does_the_store(api, home):
    before, text = keys(api), "[projects]\na = = 1\n"
    (home / "config.toml").write_text(text)
    assert merge(api, "shop-old", "shop", dry_run=False).status in (409, 500)
    assert (home / "config.toml").read_text() == text
    (home / "config.toml").unlink()
    assert keys(api) == before


def test_names_are_the_users_word(api, home):
    before = keys(api)
    body = {"from": "shop-old", "into": "shop"}
    assert api.send("/api/projects/merge", body).status == 200  # looking is free
    assert api.send("/api/projects/merge", body | {"dry_run": False}).status == 403
    assert api.send("/api/projects", {"key": "shop", "name": "x"}, "PATCH").status == 403
    assert keys(api) == before
    assert not (home / "config.toml").exists()
    assert merge(api, "nothing", "shop").status == 404


def test_a_merge_counts_what_is_put_away_too(api, home):
    with yester.open(home) as memory:
        one = memory.memories.keep(Draft("Orders keep UTC", "note"), "stall").memo.item.id
        memory.memories.keep(Draft("Prices are gross", "note"), "stall")
        memory.memories.retire(one)
    would = merge(api, "stall", "shop").json
    assert (would["items"], would["memories"]) == (2, 2)
    assert would["message"].startswith("2 items of 0 sessions, 2 memories among them")
    assert "of 1 session, 0 memories" in merge(api, "shop-old", "shop").json["message"]
