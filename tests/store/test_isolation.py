"""What one tenant or member keeps no other sees: by no search, by no id, in no number."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from tests import postgres
from tests.readings import every_item
from tests.store.test_store import item, put
from tests.store.test_store_vectors import MODEL, QUERY, embed
from yester.ingest.prepare import prepare_item
from yester.model import (
    Change,
    Event,
    Feedback,
    Filters,
    Injection,
    Memo,
    Paging,
    Probe,
    Source,
    Turn,
)
from yester.store.figures import content_counts, filter_facets, project_parts, tag_counts
from yester.store.postgres.store import PostgresStore
from yester.store.records import LEDGER

pytestmark = pytest.mark.requirement("STO-04")


@pytest.fixture
def opened(tmp_path):
    """Opens stores of tenants of this test, for accounts."""
    stores = []

    def open_(tenant="one", account=0):
        url = postgres.address(tmp_path / tenant)
        stores.append(PostgresStore.open_url(url, now=1, account=account))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


def fill(store, project="name:secret", word="walrus"):
    """Something of everything that a project can have."""
    told = {"project": project, "session": f"s-{word}", "agent": "codex", "prompt_number": 1}
    put(
        store,
        item(
            f"{word}-1", f"the {word} sings", kind="prompt", files_modified=(f"{word}.py",), **told
        ),
        item(f"{word}-2", f"{word}ology", concepts=(word,), type=f"{word}-type", **told),
    )
    embed(store, {f"{word}-1": [QUERY]})
    first = store.find_by_ref(f"{word}-1")[0].id
    session = store.session(f"s-{word}", "codex").id
    memo = Memo(item(f"{word}-m", word, kind="memory", project=project, tags=(word,)), word)
    with store.transaction("memories"):
        store.put_memo(prepare_item(memo.item), memo, Change(0, 7, "sam", "create"))
        store.append(
            [
                Event(f"{word}-1-a", "Stop", 5, session), Turn(word, session, first, started=1),
                Injection(session, "Stop", first, 1.0, 9, 5), Feedback(first, "useful", 5),
                Source(f"/{word}", "codex", 1, 1, 1, 1, "", {"project": project}),
            ]
        )  # fmt: skip


def everything_seen(store, guesses=range(1, 30)):
    """All that a reader can get out of a store."""
    probe = Probe(
        terms={"walru": 1.0, "walrus": 1.0, "carpent": 1.0}, begin={"walr": 1.0}, words=50,
        vector=lambda: QUERY, model=MODEL, nearest=50, files=("walrus.py",), most_files=9,
        names=("walrus",), worked=("walrus.py",),
    )  # fmt: skip
    found, counts = store.probe(probe), content_counts(store)
    around = store.around(probe, guesses, guesses, ())
    return {
        "found": [one.id for one in found.candidates], "statistics": found.statistics,
        "alike": found.alike, "near": found.near, "touching": found.touching,
        "concepts": found.concepts, "edited": found.edited, "beside": around.pairs,
        "passing": around.candidates, "cosines": around.near,
        "items": [one.ref for one in every_item(store)],
        "guessed": [one.ref for one in store.get(list(guesses))],
        "by ref": store.find_by_ref("walrus-1"), "evidence": store.evidence(list(guesses)),
        "use": store.texts([], list(guesses)).used, "projects": store.projects(),
        "sessions": store.sessions(Filters()), "by key": store.session("s-walrus", "codex"),
        "prefix": store.sessions(Filters(session="s-walr")),
        "memos": store.memos(ids=list(guesses)), "tags": tag_counts(store),
        "ledgers": {kind.__name__: store.entries(kind, {}, Paging()) for kind in LEDGER},
        "counts": (counts.items, counts.sessions, counts.events, counts.vectors, counts.sources),
        "facets": filter_facets(store, 99), "parts": project_parts(store),
        "history": store.history(1, (), 9, (0, 0), 99),
        "files": store.select(Filters(files=("walrus.py",))),
    }  # fmt: skip


def test_another_tenants_rows_are_seen_by_no_way_of_asking(opened):
    fresh = everything_seen(opened("two"))
    fill(opened("one"))
    assert everything_seen(opened("one")) != fresh
    assert everything_seen(opened("two")) == fresh
    assert b"walrus" not in b" ".join(opened("two").read_values())


def test_a_private_project_is_as_if_it_were_not_there_for_all_but_its_members(opened):
    plain, both = opened("plain"), opened("both")
    for store in (plain, both):
        fill(store, "name:open", "carpenter")
    expected = everything_seen(opened("plain", account=2))
    fill(both)
    with both.transaction("places"):
        both.limit_project("name:secret", [1])
    assert everything_seen(opened("both", account=2)) == expected
    assert everything_seen(opened("both", account=1)) == everything_seen(both)
    assert opened("both", account=2).size == 0
    with both.transaction("places"):
        both.limit_project("name:secret", [])
    assert everything_seen(opened("both", account=2)) == everything_seen(both)


def test_a_connection_that_is_used_again_knows_nothing_of_its_last_user(opened):
    first = opened("one")
    fill(first)
    server = first._db.connection.info.backend_pid
    first.close()
    second = opened("two")
    assert second._db.connection.info.backend_pid == server
    assert every_item(second) == []
    connection = second._db.connection  # nothing is set outside of a transaction
    tables = connection.execute(
        "SELECT table_name FROM information_schema.columns"
        " WHERE table_schema = 'yester' AND column_name = 'tenant'"
    ).fetchall()
    assert len(tables) > 35
    for (table,) in tables:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


def test_who_works_with_the_tables_cannot_put_the_wall_away(opened):
    store = opened()
    connection = store._db.connection
    user = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    assert connection.execute(user).fetchone() == (False,)
    for command in (
        "ALTER TABLE item DISABLE ROW LEVEL SECURITY", "SELECT * FROM tenant", "TRUNCATE item",
        "SET row_security = off; SELECT * FROM item", "ALTER ROLE yester_app BYPASSRLS",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(command.encode())
    with closing(opened("two")) as other, pytest.raises(psycopg.Error), connection.transaction():
        fill(other)
        store._db._set_tenant()
        connection.execute(
            "INSERT INTO project(id, key, name, tenant) VALUES (9, 'k', 'n', tenant() + 1)"
        )
