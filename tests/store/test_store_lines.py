"""Written lines in a store: with the item, gone with the item, and no other store's."""

from __future__ import annotations

import pytest

from tests.store.test_store import put
from tests.stores import BACKENDS
from tests.unit.test_edits import NEW, OLD, used
from yester.model import Filters, Probe, replace
from yester.store import open_store

pytestmark = pytest.mark.requirement("REC-23")

EDIT = replace(used(file_path="src/pay.py", old_string=OLD, new_string=NEW),
               files_modified=("src/pay.py",), project="name:shop", session="s", prompt_number=2,
               epoch=5_000)  # fmt: skip


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    store = BACKENDS[request.param](tmp_path / "store")
    yield store
    store.close()


def found(store, path="src/pay.py", **filters):
    return store.probe(Probe(Filters(**filters), written=(path,))).written


def test_lines_are_written_replaced_and_removed_with_their_item(store):
    put(store, EDIT)
    (edit,) = found(store)
    (number,) = store.probe(Probe(lines=("retry(order, times=3)",))).lines
    assert [line for at, line in enumerate(edit.lines) if edit.added[at]] == [number]
    assert (edit.turn[1], edit.epoch, edit.blind) == (2, 5_000, 0)
    put(store, replace(EDIT, body=EDIT.body.replace("times=3", "times=4")))
    assert number not in found(store)[0].lines
    put(store, replace(EDIT, tags=("error",)))  # it failed after all
    assert found(store) == []
    put(store, EDIT)
    with store.transaction("items"):
        store.remove([edit.item])
    assert found(store) == []


def test_lines_are_those_of_the_very_file_and_project(store):
    put(store, EDIT, replace(EDIT, ref="whole", files_modified=("/tree/src/pay.py",)),
        replace(EDIT, ref="root", files_modified=("pay.py",)),
        replace(EDIT, ref="other", project="name:other"))  # fmt: skip
    assert len(found(store, projects=("name:shop",))) == 2  # and one named with its whole path
    assert len(found(store, "pay.py", projects=("name:other",))) == 0
    assert len(found(store, "lib/src/pay.py")) == 0


@pytest.mark.parametrize("path", ["src/pay.py", "/tree/src/pay.py"])
def test_of_the_turns_that_edited_a_sessions_files_those_count_more_whose_lines_it_has_changed(
    store, path
):
    wrote = replace(EDIT, ref="a", session="a", prompt_number=1, files_modified=(path,))
    beside = used(file_path="src/pay.py", old_string="", new_string="refund(order, reason)")
    beside = replace(beside, ref="b", session="b", prompt_number=1, epoch=6_000,
                     project="name:shop", files_modified=("src/pay.py",))  # fmt: skip
    change = used(file_path="src/pay.py", old_string=NEW, new_string="give_up(order, at=3)")
    change = replace(change, ref="c", session="c", prompt_number=1, epoch=7_000,
                     project="name:shop", files_modified=("src/pay.py",))  # fmt: skip
    put(store, wrote, beside, change)
    probe = Probe(Filters(without_session="c"), worked=("src/pay.py",), most_files=9)
    edited = store.probe(probe).edited
    refs = {item.id: item.ref for item in store.get([id_ for _, id_ in edited.values()])}
    assert {refs[id_]: files for files, id_ in edited.values()} == {"a": 2, "b": 1}


def test_another_store_has_other_numbers_for_the_same_line(tmp_path):
    lines, numbers = Probe(lines=("retry(order, times=3)",)), set()
    for name in ("one", "other"):
        fresh = open_store(tmp_path / name, now=1)
        numbers.update(fresh.probe(lines).lines)
        fresh.close()
    assert len(numbers) == 2
