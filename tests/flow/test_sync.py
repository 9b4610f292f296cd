"""Two keepers in step: after a sync both agree, nothing is lost, and a second sync does nothing."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.written import HOSTILE, index_paths, memory
from yester.errors import SourceError, UsageError
from yester.memories.files import MemoryFolder, canonical_json
from yester.memories.sync import Action, plan_sync, sync_keepers

pytestmark = pytest.mark.requirement("MEM-06")

NAMES = ("a", "b", "c")
TITLES = ("first", "second", "third", "fourth")


class Pair:
    """Two trees and what they had at their last sync, as a caller keeps it."""

    def __init__(self, folder: Path) -> None:
        self.left, self.right = folder / "left", folder / "right"
        self.base: dict = {}

    def sync(self, **more):
        right = MemoryFolder(self.right)
        done = sync_keepers(MemoryFolder(self.left), right, self.base, **more)
        right.write_index()
        # As it comes back from a file.
        self.base = {k: tuple(v) for k, v in json.loads(json.dumps(done.base)).items()}
        return done

    def put(self, root: Path, one) -> Path:
        path = root / "decisions" / f"{one.id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.to_bytes())
        return path


@pytest.fixture
def pair(tmp_path) -> Pair:
    return Pair(tmp_path)


def titles(root: Path) -> dict[str, str]:
    return {one.id: one.title for one in MemoryFolder(root).memories.values()}


def everything(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_what_one_has_the_other_gets_byte_for_byte(pair):
    raw = json.dumps({"x-first": 1, **memory("a").values}, indent=3).encode()
    pair.put(pair.left, memory("a")).write_bytes(raw)
    pair.put(pair.right, memory("b"))
    assert [str(action) for action in pair.sync().done] == ["take decision/a", "write decision/b"]
    assert everything(pair.left) == everything(pair.right)
    assert everything(pair.right)["decisions/a.json"] == raw
    assert "index.md" in everything(pair.left)


def test_a_change_goes_over_and_a_deletion_too(pair):
    for name in NAMES:
        pair.put(pair.left, memory(name))
    pair.sync()
    pair.put(pair.right, memory("a", title="changed"))
    (pair.left / "decisions" / "b.json").unlink()
    (pair.right / "decisions" / "c.json").unlink()
    done = pair.sync()
    assert [action.what for action in done.done] == ["write", "retire", "delete"]
    assert titles(pair.left) == titles(pair.right) == {"a": "changed"}
    assert not pair.sync().done


def test_a_conflict_keeps_both_versions_and_says_so(pair):
    pair.put(pair.left, memory("a"))
    pair.sync()
    pair.put(pair.left, memory("a", title="left", updated_at="2026-05-01T10:00:00+02:00"))
    pair.put(pair.right, memory("a", title="right", updated_at="2026-05-01T09:00:00Z"))
    (action,) = pair.sync().done
    (copy,) = set(titles(pair.left)) - {"a"}
    assert titles(pair.left) == titles(pair.right) == {"a": "right", copy: "left"}
    assert copy.startswith("a-conflict-")
    assert str(action) == (
        "conflict decision/a: changed on both sides; the store's version keeps the name, "
        f"the other is decision/{copy}"
    )
    assert not pair.sync().done


def test_a_change_outlives_a_deletion_on_the_other_side(pair):
    for name in ("a", "b"):
        pair.put(pair.left, memory(name))
    pair.sync()
    (pair.left / "decisions" / "a.json").unlink()
    pair.put(pair.right, memory("a", title="changed"))
    (pair.right / "decisions" / "b.json").unlink()
    pair.put(pair.left, memory("b", title="changed too"))
    done = pair.sync()
    assert ["gone" in action.why for action in done.done] == [True, True]
    assert titles(pair.left) == titles(pair.right) == {"a": "changed", "b": "changed too"}


def test_two_that_never_met_agree_on_what_is_the_same_and_keep_what_is_not(pair):
    pair.put(pair.left, memory("a"))
    pair.put(pair.right, memory("a")).write_text(json.dumps(memory("a").values))
    assert not pair.sync().done, "the same values, written in another way"
    pair.put(pair.left, memory("b", title="left"))
    pair.put(pair.right, memory("b", title="right"))
    assert [action.what for action in pair.sync().done] == ["conflict"]


def test_while_a_file_cannot_be_read_nothing_counts_as_gone(pair):
    for name in NAMES:
        pair.put(pair.left, memory(name))
    pair.sync()
    broken = pair.left / "decisions" / "a.json"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:40])
    (pair.left / "decisions" / "b.json").unlink()
    pair.put(pair.right, memory("c", title="changed"))
    done = pair.sync()
    assert [str(action) for action in done.done] == ["write decision/c"]
    assert str(broken) in done.problems[0]
    assert broken.read_bytes() == whole[:40]
    assert sorted(titles(pair.right)) == ["a", "b", "c"]
    broken.write_bytes(whole)
    assert [str(action) for action in pair.sync().done] == ["retire decision/b: its file is gone"]


def test_an_empty_folder_does_not_empty_the_other_side(pair):
    for name in NAMES:
        pair.put(pair.left, memory(name))
    pair.sync()
    shutil.rmtree(pair.left)
    with pytest.raises(UsageError, match="holds no memory, but held 3 at the last sync"):
        pair.sync()
    assert len(titles(pair.right)) == 3
    assert len(pair.sync(emptied=True).done) == 3
    assert titles(pair.right) == {}


@pytest.mark.requirement("MEM-04")
def test_hostile_titles_go_over_unharmed_and_break_no_index(pair):
    for number, title in enumerate(HOSTILE.values()):
        pair.put(pair.left, memory(f"m{number}", title=title))
    pair.sync()
    assert everything(pair.left) == everything(pair.right)
    assert titles(pair.right) == {f"m{n}": title for n, title in enumerate(HOSTILE.values())}
    index = (pair.right / "index.md").read_text("utf-8")
    assert len(index.splitlines()) == 2 + len(HOSTILE)
    assert set(index_paths(index)) == {f"decisions/m{n}.json" for n in range(len(HOSTILE))}
    assert not pair.sync().done


class Meddled(MemoryFolder):
    """A folder in which somebody writes a file after it was read."""

    def __init__(self, root: Path, meddle) -> None:
        super().__init__(root)
        meddle()


def test_what_is_changed_during_a_sync_is_met_by_the_next_one(pair):
    pair.put(pair.left, memory("a"))
    pair.sync()
    pair.put(pair.left, memory("a", title="from the left"))
    late = memory("a", title="meanwhile on the right", updated_at="2026-06-01T00:00:00Z")
    right = Meddled(pair.right, lambda: pair.put(pair.right, late))
    done = sync_keepers(MemoryFolder(pair.left), right, pair.base)
    assert done.done == []
    assert "has changed while it was looked at" in done.problems[0]
    pair.base = done.base
    pair.sync()
    assert sorted(titles(pair.left).values()) == ["from the left", "meanwhile on the right"]
    assert titles(pair.left) == titles(pair.right)


def test_a_conflict_that_was_interrupted_is_finished_without_a_third_version(pair):
    pair.put(pair.left, memory("a", title="left"))
    pair.put(pair.right, memory("a", title="right"))

    class Full(MemoryFolder):
        def put_memory(self, one):  # noqa: ARG002 -- a full disk asks for nothing
            raise SourceError("no space left")

    done = sync_keepers(MemoryFolder(pair.left), Full(pair.right), {})
    assert (done.done, len(done.problems)) == ([], 1)
    assert len(titles(pair.left)) == 2, "the copy came first"
    pair.base = done.base
    assert [action.what for action in pair.sync().done] == ["conflict"]
    assert titles(pair.left) == titles(pair.right)
    assert sorted(titles(pair.left).values()) == ["left", "right"]
    assert not pair.sync().done


def test_an_index_that_cannot_be_written_costs_nothing_else(pair, tmp_path):
    pair.put(pair.left, memory("a"))
    (pair.left / "index.md").symlink_to(tmp_path / "elsewhere")
    done = pair.sync()
    assert "index.md: is a link" in done.problems[0]
    assert "decision/a" in done.base
    assert not (tmp_path / "elsewhere").exists()


# --- properties --------------------------------------------------------------------------------

states = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TITLES), max_size=3)
times = st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "no time"])


def versions(state, time="2026-01-01T00:00:00Z"):
    found = (memory(name, title=title, updated_at=time) for name, title in state.items())
    return {one.key: one for one in found}


def holding(memories: dict) -> SimpleNamespace:
    return SimpleNamespace(memories=memories, unread={})


def said(one) -> str:
    """A version without its name."""
    return canonical_json({**one.values, "id": ""})


def carried_out(actions: list[Action], left: dict, right: dict) -> tuple[dict, dict]:
    """The plan by its own words, on plain values."""
    left, right = dict(left), dict(right)
    for action in actions:
        for side in (left, right):
            if action.other:
                side[action.other.key] = action.other
            if action.version:
                side[action.key] = action.version
            else:
                side.pop(action.key, None)
    return left, right


def base_of(left: dict, right: dict):
    keys = {*left, *right}
    return {
        key: (left[key].hash if key in left else "", right[key].hash if key in right else "")
        for key in keys
    }


@given(states, states, states, times, times)
def test_after_a_plan_both_sides_agree_and_every_version_is_somewhere(had, left, right, one, two):
    before = versions(had)
    here, there = versions(left, one), versions(right, two)
    base = base_of(before, before)
    actions = plan_sync(base, holding(here), holding(there))
    assert actions == plan_sync(base, holding(here), holding(there)), "deterministic"
    mine, theirs = carried_out(actions, here, there)
    assert {k: v.hash for k, v in mine.items()} == {k: v.hash for k, v in theirs.items()}
    after = {said(version) for version in mine.values()}
    unchanged = {key: version.hash for key, version in before.items()}
    for side in (here, there):
        for key, version in side.items():
            # What a side has changed is never lost; what it has not changed may be replaced.
            assert said(version) in after or unchanged.get(key) == version.hash
    assert not plan_sync(base_of(mine, theirs), holding(mine), holding(theirs)), (
        "a second one does nothing"
    )


steps = st.lists(
    st.tuples(st.sampled_from(["left", "right"]), st.sampled_from(NAMES),
              st.sampled_from([*TITLES, None])),
    max_size=4,
)  # fmt: skip


@settings(max_examples=10)
@given(st.lists(steps, min_size=1, max_size=3))
def test_two_folders_stay_in_step_whatever_happens_in_them(tmp_path_factory, rounds):
    pair = Pair(tmp_path_factory.mktemp("pair"))
    clock = iter(range(10, 60))
    for edits in rounds:
        written = defaultdict(set)
        for side, name, title in edits:
            root = getattr(pair, side)
            path = root / "decisions" / f"{name}.json"
            if title is None:
                path.unlink(missing_ok=True)
                written[side, name] = set()
            else:
                one = memory(name, title=title, updated_at=f"2026-01-01T00:00:{next(clock)}Z")
                pair.put(root, one)
                written[side, name] = {said(one)}
        pair.sync(emptied=True)
        assert everything(pair.left) == everything(pair.right)
        kept = {said(one) for one in MemoryFolder(pair.left).memories.values()}
        assert all(versions <= kept for versions in written.values())
        again = pair.sync(emptied=True)
        assert (again.done, again.problems) == ([], [])
