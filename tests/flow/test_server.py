"""The memory on a server: commands answer as in a folder, and a store moves there and back."""

from __future__ import annotations

from contextlib import closing

import pytest

import yester
from tests import postgres
from tests.store.test_store_vectors import MODEL, QUERY, embed
from yester.errors import StoreReplaced
from yester.memory import Memory
from yester.model import Filters, Paging, Probe
from yester.store import open_store
from yester.store.figures import content_counts

pytestmark = pytest.mark.requirement("STO-04")

ALIKE = (
    ("recall", "redis", "cache"),
    ("recall", '"checkout"', "project:tidepool"),
    ("recent",),
    ("show", "3"),
    ("sessions",),
    ("timeline",),
    ("memory", "list"),
    ("review",),
    ("projects",),
)


@pytest.mark.requirement("TEAM-03")
def test_a_store_moves_to_a_server_and_back_and_answers_the_same(run, samples, tmp_path, home):
    url = postgres.address(tmp_path)
    assert run("index", str(samples)).code == 0
    assert run("distil", "--backfill").code == 0
    assert run("remember", "Prices are integer cents").code == 0
    with closing(open_store(home, now=1)) as store:
        embed(store, {item.ref: [QUERY] for item in store.select(Filters(), Paging(20))})
    moved = run("move", "--to", url, "--verify", "--json")
    assert moved.code == 0, moved.err
    assert moved.json["same"] == moved.json["questions"] == 100
    assert moved.json["difference"] < 1e-6
    for words in ALIKE:
        there, here = (run(*given, *words, "--json") for given in (("--database", url), ()))
        assert (there.code, there.err) == (here.code, here.err)
        both = there.json, here.json
        for answer in both:
            answer.pop("took_ms", None)
        assert both[0] == both[1], words
    status = run("--database", url, "status", "--json").json
    assert status["database"].startswith("postgresql://")
    assert status["items"] == run("status", "--json").json["items"]
    assert run("--database", url, "doctor").code == run("doctor").code
    with closing(open_store(home, now=1)) as here, closing(open_store(url, now=1)) as there:
        counts = [(content_counts(one).vectors, nearest(one)) for one in (here, there)]
        assert counts[0] == counts[1]
        assert counts[0][0] == len(counts[0][1]) == 20
    again = run("move", "--to", url)
    assert again.code == 2
    assert "holds a memory already" in again.err

    assert run("--database", url, "remember", "The server keeps this one").code == 0
    gone = run("--database", url, "forget", "3", "--yes")
    assert gone.code == 0, gone.err
    assert run("--database", url, "show", "3").code == 1
    assert not (home / "database").exists()
    back = run("--database", url, "move", "--to", str(tmp_path / "back"), "--verify", "--json")
    assert back.code == 0, back.err
    assert back.json["same"] == 100
    found = run("--home", str(tmp_path / "back"), "recall", "server keeps", "--json").json
    assert found["hits"][0]["snippet"].startswith("The server keeps")
    assert run("--home", str(tmp_path / "back"), "show", "3").code == 1


def nearest(store):
    probe = Probe(vector=lambda: QUERY, model=MODEL, nearest=50)
    return sorted((id_, round(near.cosine, 6)) for id_, near in store.probe(probe).near.items())


@pytest.mark.requirement("TEAM-03")
def test_what_comes_while_a_store_moves_is_in_the_one_in_use(run, tmp_path, home):
    url = postgres.address(tmp_path)
    assert run("remember", "Prices are integer cents").code == 0
    assert run("remember", "Seats are released after a day").code == 0
    assert run("forget", "2", "--yes").code == 0
    with closing(Memory(home, {}, who="cli")) as opened:
        assert len(opened.store.select(Filters())) == 1
        assert run("move", "--to", url, "--use").code == 0
        with pytest.raises(StoreReplaced), opened._store.transaction("items"):
            pass
        assert opened.store.location.startswith("postgresql://")
    assert run("remember", "Ferries wait for the train").code == 0
    elsewhere = run("move", "--to", str(tmp_path / "other"), "--use")
    assert elsewhere.code == 2
    assert "--home" in elsewhere.err
    (home / "yester.db").rename(home / "before.db")
    assert run("move", "--to", str(home), "--verify", "--use").code == 0
    assert not (home / "database").exists()
    kept = run("memory", "list").out
    assert [word in kept for word in ("Prices", "Seats", "Ferries")] == [True, False, True]
    assert run("--database", url, "remember", "Tabs").code == 0
    assert "Tabs" not in run("memory", "list").out


def test_what_works_with_a_file_says_so_in_a_line(run, tmp_path):
    url = postgres.address(tmp_path)
    for words in (("backup",), ("restore", "latest"), ("mcp",)):
        refused = run("--database", url, *words)
        assert refused.code == 2
        assert len(refused.err.splitlines()) == 1
        assert "pg_dump" in refused.err or "--use" in refused.err


def test_the_home_names_the_server_and_variables_do_not(run, tmp_path, home, monkeypatch):
    url = postgres.address(tmp_path)
    home.mkdir()
    (home / "database").write_text(f"{url}\n")
    assert run("remember", "Prices are integer cents").code == 0
    # As a repository could set them for an agent.
    for name, value in {
        "YESTER_DATABASE": "postgresql://127.0.0.1:1/other", "PGHOSTADDR": "127.0.0.1",
        "PGPORT": "1", "PGSERVICE": "other", "PGDATABASE": "other",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert "Prices are integer cents" in run("memory", "list").out
    assert not (home / "yester.db").exists()
    with yester.open(url) as memory:
        assert memory.recall("integer cents")[0].title.startswith("Prices")
    assert "everything that is kept" in run("privacy").out


def test_a_wrong_address_is_a_line_with_the_fix(run, home):
    home.mkdir()
    (home / "database").write_text("mysql://x\n")
    told = run("status")
    assert told.code == 2
    assert "postgresql://USER@HOST/DATABASE" in told.err


def test_an_agent_moves_nothing(run, tmp_path):
    told = run("move", "--to", str(tmp_path / "other"), env={"CLAUDECODE": "1"})
    assert told.code == 2
    assert not (tmp_path / "other").exists()


def test_what_is_no_address_makes_no_store_in_the_folder_one_is_in(run, tmp_path):
    told = run("--database", "foo", "remember", "Tabs")
    assert told.code == 2
    assert "postgresql://USER@HOST/DATABASE" in told.err
    assert not list(tmp_path.rglob("foo"))
