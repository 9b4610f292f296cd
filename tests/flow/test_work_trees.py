"""Work trees that are gone: what was told in them is told in their repository, also where an older
version has stored it as a project of its own; and that can be undone."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

import yester
from tests.capturing import Told, hook, leave, made, until
from tests.flow.test_worker import Running
from yester.config import load_config
from yester.ingest.projects import join_all
from yester.ingest.transcripts import add_items
from yester.memories.remember import Draft
from yester.model import Filters, Injection, Item, Paging, Project, Turn
from yester.project import Projects
from yester.store import maintenance_of, open_store

pytestmark = pytest.mark.requirement("CAP-07")

NOW = 1_770_000_000_000
UTC = "Always store times in UTC"


@pytest.fixture
def shop(tmp_path):
    """A repository, whose work trees are gone."""
    folder = tmp_path / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    with open(folder / ".git" / "config", "a") as file:
        file.write('[remote "origin"]\n\turl = https://example.org/acme/shop.git\n')
    return folder


def said(ref, project, session):
    item = Item(
        ref, "observation", project.key, session=session, agent="claude-code", type="bugfix",
        title=f"Basket {ref}", body=f"The basket forgot its vouchers, case {ref}.", epoch=NOW,
    )  # fmt: skip
    return item, project


@pytest.fixture
def old(home, shop):
    """A store as an older version has left it: two work trees are projects called by a number."""
    places = [Project("git:example.org/acme/shop", "shop", str(shop))]
    for name in ("2", "3"):
        root = f"{shop}/.worktrees/{name}"
        places.append(Project(f"dir:{root}", name, root))
    store = open_store(made(home), now=1)
    main, two, three = places
    add_items(
        store,
        [said("m", main, "both"), said("a", two, "both"), said("b", two, "own"),
         said("c", three, "else")],
    )  # fmt: skip
    for session in store.sessions(Filters(projects=(two.key,)), Paging(9)):
        with store.transaction("items"):
            store.append([Turn(f"t-{session.key}", session.id, started=NOW)])
            store.append([Injection(session.id, "SessionStart", 1, 0.5, 9, NOW)])
    store.close()
    with yester.open(home) as memory:
        for place, text in ((main, "Orders are never deleted"), (two, UTC)):
            draft = Draft(text, "constraint", slug="times")
            memory.memories.keep(draft, place.name)
    return home


def contents(home):
    """Who has what: items, sessions with their turns and ledger, memories."""
    store = open_store(home, now=1)
    try:
        found = {}
        for project in store.projects():
            within = Filters(projects=(project.key,))
            sessions = {
                one.key: (
                    len(store.entries(Turn, {"session": one.id}, Paging(oldest_first=True))),
                    len(store.entries(Injection, {"session": one.id}, Paging(oldest_first=True))),
                )
                for one in store.sessions(within, Paging(9))
            }
            items = {(item.id, item.ref, item.session) for item in store.select(within, Paging(99))}
            slugs = sorted(memo.slug for memo in store.memos(within))
            found[project.name] = (items, sessions, slugs)
        assert maintenance_of(store).check() == []
        return found
    finally:
        store.close()


def test_a_rule_told_in_a_work_tree_that_is_gone_is_told_in_its_repository(run, old, shop):
    assert UTC not in run("context", cwd=shop).out
    before = contents(old)
    run("index")
    after = contents(old)
    assert set(after) == {"shop"}
    assert {one[:2] for one in after["shop"][0]} == {
        one[:2] for items, _, _ in before.values() for one in items
    }
    assert set(after["shop"][1]) == {"both", "own", "else"}
    assert after["shop"][2] == ["times", "times-2"]
    assert UTC in run("context", cwd=shop).out


def test_what_was_joined_is_told_and_one_command_undoes_it_for_good(run, old, shop, transcript):
    before = contents(old)
    said = run("index").err
    assert "2, 3 with shop (undo: yester doctor --undo-join NAME)" in said
    told = run("doctor").out
    assert "2, 3 with shop" in told
    assert "yester doctor --undo-join NAME" in told

    undone = run("doctor", "--undo-join", "2")
    assert (undone.code, undone.out.split(",")[0]) == (
        0, "shop/2 is a project of its own again"
    )  # fmt: skip
    place = f"{shop}/.worktrees/2"
    assert load_config(old, {}).projects == {place: "shop/2"}
    after = contents(old)
    assert after["shop/2"] == before["2"]  # every item under its id, every session and name
    assert after["shop"][1].keys() == {"both", "else"}

    run("index")
    transcript("9aaaaaaa-0000-4000-8000-000000000001", cwd=f"{place}/src").user("Rename the till")
    assert run("index", "--json").json["added"] == 1
    now = contents(old)
    assert set(now) == {"shop", "shop/2"}
    assert "9aaaaaaa-0000-4000-8000-000000000001" in now["shop/2"][1]
    again = run("doctor", "--undo-join", "2")
    assert again.code == 2
    assert "no joined project is called '2'; name one of 3" in again.err


def test_the_users_word_counts_before_any_path(run, old, shop):
    (old / "config.toml").write_text(f'[projects]\n"{shop}/.worktrees/2" = "second"\n')
    run("index")
    assert set(contents(old)) == {"shop", "second"}


def test_names_in_one_line_of_the_config_are_added_to_there(run, old):
    run("index")
    (old / "config.toml").write_text("projects = {'/a' = 'b'}\n")
    assert run("doctor", "--undo-join", "2").code == 0
    assert (old / "config.toml").read_text().startswith("projects = {'/a' = 'b',")
    assert set(contents(old)) > {"shop"}


def test_killed_while_it_joins_nothing_has_happened_and_the_next_run_does_it(old):
    before = contents(old)
    child = os.fork()
    if not child:
        try:
            store = open_store(old, now=NOW)
            project = next(one for one in store.projects() if one.name == "2")
            with store.transaction("places"):
                store.merge_project(project.key, Project("git:example.org/acme/shop", "shop"), NOW)
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert contents(old) == before
    store = open_store(old, now=NOW)
    try:
        assert [join.name for join in join_all(store, Projects({}), NOW)] == ["2", "3"]
        assert join_all(store, Projects({}), NOW) == []
    finally:
        store.close()
    assert set(contents(old)) == {"shop"}


def test_a_worker_joins_them_when_it_has_nothing_else_to_do(
    old, own_home, shop, zygote_of_commands
):
    running = Running(old, zygote_of_commands).ready()
    try:
        until(lambda: set(contents(old)) == {"shop"})
        env = {"HOME": str(own_home), "YESTER_HOME": str(old), "CLAUDECODE": "1"}
        payload = Told(cwd=str(shop)).payload("SessionStart", source="startup")
        until(lambda: UTC.encode() in hook("SessionStart", cwd=shop, env=env, payload=payload).out)
    finally:
        running.close()


def test_a_transcript_that_grows_after_the_join_goes_on_in_the_repository(
    run, home, shop, transcript, own_home
):
    """Its place was kept by an older version, under the work tree's own key."""
    place = f"{shop}/.worktrees/2"
    session = transcript(cwd=place)
    session.talk(1)
    run("index")
    key = f"dir:{place}"
    store = open_store(home, now=1)
    with store.transaction("places"):
        store.merge_project("git:example.org/acme/shop", Project(key, "2", place))
        store._db.execute("UPDATE source SET state = json_set(state, '$.project', ?)", (key,))
    store.close()
    session.talk(1, "delivery")
    run("index")
    assert set(contents(home)) == {"shop"}


def test_a_repository_that_is_gone_too_is_known_by_where_it_was(run, home, tmp_path):
    """Its remote was met while it was there; the work tree's path leads to its folder alone."""
    gone = tmp_path / "gone" / "shop"
    main = Project("git:example.org/acme/shop", "shop", str(gone))
    tree = Project(f"dir:{gone}/.worktrees/7", "7", f"{gone}/.worktrees/7")
    alone = Project("dir:/reports/2026", "2026", "/reports/2026")
    store = open_store(made(home), now=1)
    add_items(store, [said("m", main, "x"), said("a", tree, "y"), said("r", alone, "z")])
    store.close()
    run("index")
    assert set(contents(home)) == {"shop", "reports/2026"}


def test_an_event_of_a_work_tree_that_is_gone_and_its_transcript_agree_on_files(
    run, home, shop, transcript
):
    place = f"{shop}/.worktrees/2"
    session = transcript(cwd=place)
    key = session.call("Edit", file_path=f"{place}/src/till.py", old_string="a", new_string="b")
    session.result(key, "The file has been updated.")
    told = Told(session.session, place, transcript=str(session.path))
    given = {"file_path": f"{place}/src/till.py", "old_string": "a", "new_string": "b"}
    leave(home, told.tool("Edit", given, {}, key))
    assert run("worker", "drain").code == 0
    run("index")
    with yester.open(home) as memory:
        (item,) = memory.store.find_by_ref(key)
    assert item.files_modified == ("src/till.py",)
