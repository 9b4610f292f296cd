"""What the store on a server does in its own way; the rest is the contract's (`test_store*`)."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import psycopg
import pytest

from tests import postgres
from tests.crash.test_capture_trouble import fill
from tests.store.test_store import found, item, put, refs
from tests.stores import BACKENDS
from yester.errors import NotFound, StoreAway, StoreBusy, StoreError, StoreNewer
from yester.ingest.prepare import prepare_item
from yester.model import (
    Every,
    Filters,
    Injection,
    Item,
    Paging,
    Phrase,
    Probe,
    Without,
    Word,
    replace,
)
from yester.store import file_store, maintenance_of, open_store, store_location
from yester.store.migrate import Migration, load_migrations
from yester.store.postgres.database import translate_sql

pytestmark = pytest.mark.requirement("STO-04")


@pytest.fixture
def store(tmp_path):
    with closing(BACKENDS["postgresql"](tmp_path / "store")) as store:
        yield store


def own_database(name):
    """The URL of a database of this test's own, empty."""
    with psycopg.connect(postgres.server(), autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        server.execute(f'CREATE DATABASE "{name}"')
        there = server.info
        return f"postgresql://{there.user}@/{name}?host={there.host}&port={there.port}"


def test_what_is_the_servers_to_do_is_refused_with_what_to_do_instead(store, tmp_path):
    with pytest.raises(StoreError, match="pg_dump"):
        file_store(store).backup(tmp_path / "copy")


def test_a_server_that_cannot_be_reached_is_named_without_its_password():
    url = "postgresql://sam:hunter2@127.0.0.1:1/memory?tenant=shop"
    with pytest.raises(StoreError, match="cannot be reached") as told:
        open_store(url, now=1)
    assert "sam@127.0.0.1:1/memory" in str(told.value)
    assert "hunter2" not in str(told.value)
    assert store_location(url) == "postgresql://sam@127.0.0.1:1/memory?tenant=shop"


def test_one_of_many_who_come_at_once_makes_the_schema():
    url, stores, barrier = own_database("yester-at-once"), [], threading.Barrier(3)

    def open_it():
        barrier.wait()
        stores.append(open_store(url, now=1))

    threads = [threading.Thread(target=open_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 3
    put(stores[0], item("1", "apple"))
    assert found(stores[1], "appl") == ["1"]
    for store in stores:
        store.close()
    later = [*load_migrations("postgres"), Migration(900, "later", "SELECT 1")]
    open_store(url, now=2, steps=later).close()
    with pytest.raises(StoreNewer, match="version 900"):
        open_store(url, now=3)


def test_a_store_of_an_older_schema_ranks_what_it_holds_whoever_owns_its_tables():
    url = own_database("yester-older")
    with psycopg.connect(url, autocommit=True) as server:  # row-level security binds its owner
        server.execute("DROP ROLE IF EXISTS yester_owner")
        server.execute("CREATE ROLE yester_owner LOGIN")
        server.execute('ALTER DATABASE "yester-older" OWNER TO yester_owner')
        address = f"postgresql://yester_owner@{url.partition('@')[2]}"
    older = load_migrations("postgres")[:9]
    for tenant in ("one", "two"):
        with closing(open_store(f"{address}&tenant={tenant}", now=1, steps=older)) as store:
            put(store, item("1", f"apple {tenant}"), item("2", "pear"))
    for tenant in ("one", "two"):
        with closing(open_store(f"{address}&tenant={tenant}", now=2)) as store:
            (one,) = store.probe(Probe(Filters(), {"appl": 1.0}, words=9)).candidates
            assert (one.kind, one.project, one.epoch) == ("message", 1, item("1", "").epoch)


def test_what_is_ranked_follows_an_item_that_is_changed_behind_the_index(store):
    put(store, item("1", "apple", project="name:shop"), item("2", "pear", project="name:farm"))
    with store.transaction("items"):
        store._db.execute("UPDATE item SET project = 2, epoch = 77 WHERE id = 1")
    (one,) = store.probe(Probe(Filters(), {"appl": 1.0}, words=9)).candidates
    assert (one.project, one.epoch) == (2, 77)


def test_however_the_server_plans_it_the_same_items_are_chosen_in_the_same_order(store):
    words = [f"word{number}" for number in range(9)]
    chance = random.Random(4)
    texts = (" ".join(chance.sample(words, chance.randrange(1, 9))) for _ in range(600))
    put(store, *(item(str(n), text, project=f"name:p{n % 7}") for n, text in enumerate(texts)))
    chosen = []
    for setting in ("on", "off"):
        store._db.connection.execute(f"SET enable_hashagg = {setting}; DISCARD PLANS")
        terms = {f"word{number}": 1.0 for number in range(9)}
        asked = Probe(Filters(projects=("p1", "p2", "p3", "p4")), terms, words=50)
        chosen.append([one.id for one in store.probe(asked).candidates])
    assert len(chosen[0]) == 50
    assert chosen[0] == chosen[1]


def test_words_that_must_stand_together_are_found_in_lists_of_any_length(store):
    """In parts of 256: of a long list those alone are read in which something rare may be."""
    texts = [f"apple {'pear' if n % 300 == 7 else 'plum'}" for n in range(900)]
    put(store, *(item(str(n), text) for n, text in enumerate(texts)))
    with store.transaction("index"):
        store._db.ask("SELECT fold(0)")
    put(store, item("7", "apple plum"), item("900", "pear apple"))  # not in the lists yet
    must = Every((Phrase(("appl",)), Every((Word(("pear",)),))))
    asked = Probe(Filters(), {"appl": 1.0, "pear": 1.0}, words=9, must=must)
    assert {one.id for one in store.probe(asked).candidates} == {308, 608, 901}
    without = replace(asked, must=Every((Word(("appl",)), Without(Word(("plum",))))))
    assert {one.id for one in store.probe(without).candidates} == {308, 608, 901}


def test_another_writer_of_the_tenant_is_waited_for_and_another_tenants_is_not(store, tmp_path):
    with (
        closing(BACKENDS["postgresql"](tmp_path / "store")) as same,
        closing(BACKENDS["postgresql"](tmp_path / "other")) as other,
        store.transaction("items"),
    ):
        put(other, item("1", "apple"))
        with pytest.raises(StoreBusy, match="too long"), same.transaction("ledger", 0.01):
            pass
    assert put(store, item("1", "apple")).added == 1


def test_a_zero_byte_which_no_text_of_the_server_holds_is_replaced(store):
    put(store, Item("r\0", "message", project="name:shop", epoch=1, body="apple\0pear", tool="\0"))
    (back,) = store.select(Filters())
    assert (back.body, back.tool) == ("apple\ufffdpear", "\ufffd")
    assert refs(store.find_by_ref("r\0")) == ["r\ufffd"]
    tags = ("t\0", "\\u0000")
    put(store, item("2", "apple", kind="memory", project="name:a\0b", tags=tags))
    for wanted in (tags, ("t\ufffd",), ("\\u0000",)):
        assert [memo.item.ref for memo in store.memos(tags=wanted)] == ["2"]
    assert store.memos(tags=("\\ufffd",)) == []
    assert refs(store.select(Filters(without_projects=("name:a\0b",)))) == ["r\ufffd"]


def test_a_number_that_nothing_can_have_is_nothing_that_is_there(store):
    put(store, item("1", "apple"))
    with pytest.raises(NotFound):
        store.get([10**30])
    assert refs(store.select(Filters(), Paging(-1))) == ["1"]


def test_statements_are_put_into_the_servers_words():
    sql = "a = ? AND b = :name AND c COLLATE NOCASE IN (?,?) OR d = '?' LIMIT ? OFFSET ?"
    translated, names = translate_sql(sql.replace(":name", "?"))
    assert names == (0, 1, 2, 3, 4, 5)
    assert translated == (
        "a = $1 AND b = $2 AND lower(c) IN (lower($3), lower($4)) OR d = '?' LIMIT $5 OFFSET $6"
    )
    assert translate_sql("x = :one OR y = :one") == ("x = $1 OR y = $1", ("one",))
    assert translate_sql("UPDATE t SET offset = ?2 WHERE window = ?1") == (
        'UPDATE t SET "offset" = $1 WHERE "window" = $2', (1, 0),
    )  # fmt: skip


def test_a_store_in_a_folder_loads_no_driver(tmp_path):
    code = (
        "import sys, pathlib, yester.store; yester.store.open_store(pathlib.Path(sys.argv[1]),"
        " now=1).close(); print('psycopg' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "home")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


def everything(store):
    return sorted(refs(store.select(Filters())))


def terminate(store):
    """As when the network, an administrator or the system ends the connection."""
    with psycopg.connect(postgres.server(), autocommit=True) as admin:
        process = store._db.connection.info.backend_pid
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", [process])


def test_of_a_batch_whose_connection_is_cut_nothing_stays_and_the_next_one_goes_on(store):
    put(store, item("1", "apple"))
    with pytest.raises(StoreAway), store.transaction("items"):
        store.put([prepare_item(item("2", "apple"))])
        terminate(store)
        store.put([prepare_item(item("3", "apple"))])
    assert found(store, "appl") == ["1"]
    assert put(store, item("2", "apple"), item("3", "apple")).added == 2
    terminate(store)  # between two batches, and nobody is told
    assert sorted(found(store, "appl")) == everything(store) == ["1", "2", "3"]
    assert maintenance_of(store).check() == []


def test_a_server_that_is_killed_in_a_batch_keeps_what_was_committed_alone():
    folder = postgres.own_server(f"yester-killed-{os.getpid()}")
    try:
        url = f"postgresql:///postgres?host={folder}&user=postgres"
        url += "&options=-c%20synchronous_commit%3Don"  # which is off to make tests faster
        with closing(open_store(url, now=1)) as store:
            put(store, item("1", "apple"))
            with pytest.raises(StoreAway), store.transaction("items"):
                store.put([prepare_item(item("2", "apple"))])
                postgres.control_server(folder, "stop", "-m", "immediate")
                store.put([prepare_item(item("3", "apple"))])
            with pytest.raises(StoreAway):
                store.select(Filters())
            postgres.control_server(folder, "start", "-l", str(folder / "server.log"))
            assert found(store, "appl") == ["1"]
            assert put(store, item("2", "apple")).added == 1
            assert maintenance_of(store).check() == []
    finally:
        postgres.control_server(folder, "stop", "-m", "immediate")
        shutil.rmtree(folder)


def test_a_full_disk_is_said_and_what_was_stored_before_stays():
    url = own_database("yester-full")
    with postgres.small_disk("yester-full") as disk:
        with psycopg.connect(postgres.server(), autocommit=True) as server:
            server.execute('ALTER DATABASE "yester-full" SET TABLESPACE "yester-full"')
        with closing(open_store(url, now=1)) as store:
            put(store, item("0", "apple"))
            fill(disk / "filler")
            stored = ["0"]
            with pytest.raises(StoreError, match="disk is full"):
                while len(stored) < 1_000:
                    put(store, item(str(len(stored)), "apple " + "pear " * 2_000))
                    stored.append(str(len(stored)))
            assert everything(store) == sorted(found(store, "appl")) == sorted(stored)
            (disk / "filler").unlink()
            assert put(store, item("last", "apple")).added == 1
            assert maintenance_of(store).check() == []
        with psycopg.connect(postgres.server(), autocommit=True) as server:
            server.execute('DROP DATABASE "yester-full" WITH (FORCE)')


def test_the_feed_loses_and_doubles_nothing_beside_writers_that_dawdle_and_give_up(store, tmp_path):
    kept = set()

    def write(number):
        chance = random.Random(number)
        with closing(BACKENDS["postgresql"](tmp_path / "store")) as own:
            for batch in range(20):
                names = [f"{number}-{batch}-{one}" for one in range(chance.randint(1, 3))]
                with suppress(InterruptedError):
                    with own.transaction("items"):
                        own.put([prepare_item(item(name, "apple")) for name in names])
                        own._db.ask("SELECT pg_sleep($1)", [chance.random() / 100])
                        own.append([Injection(0, "Start", 1, 0.5, 7, 9)])
                        if chance.random() < 0.3:
                            raise InterruptedError
                    kept.update(names)

    told, behind, running = [], store.feed()[1], True
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        while running:
            running = not all(writer.done() for writer in writers)
            more = True
            while more:
                more, behind = store.feed(behind, 5)
                told += [line.row for line in more]
        for writer in writers:
            writer.result()
    items = [row.ref for row in told if isinstance(row, Item)]
    assert sorted(items) == sorted(kept)
    lines = [row.id for row in told if isinstance(row, Injection)]
    assert len(lines) == len(set(lines)) == len(store.entries(Injection)) > 20
