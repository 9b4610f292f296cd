"""One owner's machines over a folder: what is refused and named, what stays, what a key does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.roaming import Box
from yester.errors import SourceError, UsageError
from yester.model import Filters, Item, LogItem
from yester.sharing.keys import Key, load_key
from yester.sharing.roam import load_roaming
from yester.sharing.segments import (
    MOST_BYTES,
    BadSegment,
    open_segment,
    read_name,
    seal_segment,
)
from yester.sharing.transports import Folder, Git
from yester.sharing.wire import (
    ItemLine,
    MachineLine,
    decode_line,
    encode_line,
    find_heads,
    name_heads,
)
from yester.store import walk_items

pytestmark = pytest.mark.requirement("TEAM-05")

LOG, MACHINE = "0123456789abcdef", "aaaaaaaaaaaa-0001bbbbbbbb"


@pytest.fixture
def boxes(tmp_path):
    made = [Box(tmp_path / name, tmp_path / "log") for name in ("laptop", "desk")]
    made[0].begin()
    made[1].join(made[0])
    yield made
    for box in made:
        box.close()


def segments(log: Path) -> list[Path]:
    return sorted(path for path in log.glob("*/*/*") if path.is_file())


def of(box: Box) -> list[Path]:
    """The segments of one machine."""
    (stem,) = {one.key for one in box.store.entries(_machine()) if one.own}
    return [path for path in segments(box.log) if path.parent.name == stem]


def _machine():
    from yester.model import Machine

    return Machine


def three_segments(box: Box) -> list[Path]:
    for number in range(3):
        box.say(f"r{number}", f"the words of number {number} are long enough", 1_000 + number)
        box.roam(2_000 + number)
    return of(box)


# --- segments ------------------------------------------------------------------------------------


def test_a_recovery_code_brings_its_key_back_and_a_misread_one_is_refused():
    key = Key.make()
    assert Key.from_code(key.code.lower().replace("-", " ")).raw == key.raw
    assert len(key.code) == 14 * 5 - 1
    wrong = ("A" if key.code[0] != "A" else "B") + key.code[1:]
    with pytest.raises(UsageError, match="has a mistake"):
        Key.from_code(wrong)
    with pytest.raises(UsageError, match="has 4 letters"):
        Key.from_code("ABCD")


def test_a_line_says_only_what_is_not_as_usual_and_is_read_as_it_was():
    line = ItemLine(Item("r1", "message", facts=("one",)), "h")
    data = encode_line(line)
    assert data == b'{"item":{"item":{"ref":"r1","kind":"message","facts":["one"]},"hash":"h"}}\n'
    assert decode_line(data) == line


def test_a_segment_opens_only_as_what_it_was_sealed_as():
    key = Key.make()
    lines = [MachineLine("laptop", 1)]
    name, mark, data = seal_segment(key, LOG, MACHINE, 2, "00" * 32, lines)
    assert open_segment(key, name, data).lines == lines
    assert open_segment(key, name, data).mark == mark
    assert read_name(name.path) == name
    assert b"laptop" not in data
    for damaged, said in (
        (data[:-1], "is cut off: 1 bytes are missing"),
        (data[:20], "is cut off"),
        (data[:-1] + bytes([data[-1] ^ 1]), "is forged or damaged"),
        (data[:60] + bytes([data[60] ^ 1]) + data[61:], "is forged or damaged"),
    ):
        with pytest.raises(BadSegment, match=said) as caught:
            open_segment(key, name, damaged)
        assert name.path in str(caught.value)
    with pytest.raises(BadSegment, match="is forged"):
        open_segment(Key.make(), name, data)
    with pytest.raises(BadSegment, match="is replayed: it is segment 2"):
        open_segment(key, name._replace(number=3), data)


def test_a_segment_that_was_changed_is_named_and_what_follows_it_waits(boxes):
    laptop, desk = boxes
    _, second, _ = three_segments(laptop)
    whole = second.read_bytes()
    second.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    report = desk.roam()
    assert second.name in report.problems[0]
    assert "forged or damaged" in report.problems[0]
    assert set(desk.items()) == {"r0"}
    second.write_bytes(whole)
    assert not desk.roam().problems
    assert set(desk.items()) == {"r0", "r1", "r2"}


def test_a_missing_an_exchanged_and_a_replayed_segment_are_each_named(boxes):
    laptop, desk = boxes
    first, second, third = three_segments(laptop)
    whole = second.read_bytes()
    second.unlink()
    assert "segment 2 of machine" in desk.roam().problems[0]
    assert "is missing" in desk.roam().problems[0]
    shutil.copy(first, second)  # an old one under another's name
    assert "is replayed: it is segment 1" in desk.roam().problems[0]
    second.write_bytes(whole)
    assert not desk.roam().problems
    for path in (second, third):
        path.unlink()
    assert "2 segments that were read before are gone" in desk.roam().problems[0]
    assert set(desk.items()) == {"r0", "r1", "r2"}


def test_a_machine_whose_segments_are_gone_writes_them_again(boxes):
    laptop, desk = boxes
    for path in three_segments(laptop):
        path.unlink()
    report = laptop.roam()
    assert "3 segments of this machine are gone" in report.problems[0]
    assert set(desk.items()) == set()
    desk.roam()
    assert set(desk.items()) == {"r0", "r1", "r2"}
    assert not laptop.roam().problems


def test_a_copied_home_goes_on_under_another_name_and_both_are_kept(boxes, tmp_path):
    laptop, desk = boxes
    laptop.say("before", "what was there before the copy was made", 1_000)
    laptop.roam()
    laptop.store.close()
    shutil.copytree(laptop.home, tmp_path / "clone")
    laptop.reopen()
    clone = Box(tmp_path / "clone", laptop.log)
    laptop.say("one", "what the original has said after that", 2_000)
    clone.say("two", "what the copy has said after that, elsewhere", 2_000)
    laptop.roam()
    clone.roam()
    for _ in range(2):
        for box in (laptop, clone, desk):
            box.roam()
    for box in (laptop, clone, desk):
        assert set(box.items()) == {"before", "one", "two"}
        assert not box.roam().problems
    clone.close()


@pytest.mark.parametrize("put_back", [False, True], ids=["a copy", "its past"])
def test_what_was_forgotten_in_a_copied_home_goes_wherever_its_copies_are(
    boxes, tmp_path, put_back
):
    laptop, desk = boxes
    for ref in ("first", "second"):
        laptop.say(ref, f"what was said {ref} and should not have been", 1_000)
    laptop.roam()
    desk.roam()
    forget(laptop, "first", 1_500)  # from now on the home has a key of its own for that
    laptop.roam(1_600)
    laptop.store.close()
    shutil.copytree(laptop.home, tmp_path / "copy")
    laptop.reopen()
    forget(laptop, "second", 2_000)
    laptop.roam(2_100)
    if put_back:
        laptop.store.close()
        shutil.rmtree(laptop.home)
        shutil.copytree(tmp_path / "copy", laptop.home)
        laptop.reopen()
    copy = laptop if put_back else Box(tmp_path / "copy", laptop.log)
    assert set(copy.items()) == {"second"}
    for box in (copy, desk, laptop):
        box.roam(3_000)
        assert box.items() == {}
    copy.close()


def forget(box: Box, ref: str, now: int) -> None:
    (item,) = box.store.find_by_ref(ref)
    box.forget(item.id, now)


def test_no_segment_is_larger_than_what_is_read_of_one(boxes):
    laptop, desk = boxes
    for number in range(12):
        laptop.say(f"r{number}", f"word{number} and more of it " * 60_000, 1_000 + number)
    assert laptop.roam().written >= 3
    assert not desk.roam().problems
    assert len(desk.items()) == 12


@pytest.mark.parametrize("what", ["a link", "far too large", "a pipe"])
def test_what_stands_in_the_place_of_a_segment_is_not_read_and_others_are(boxes, tmp_path, what):
    laptop, desk = boxes
    _, second, _ = three_segments(laptop)
    second.unlink()
    if what == "a link":
        (tmp_path / "x").write_text("not of the log")
        second.symlink_to(tmp_path / "x")
    elif what == "a pipe":
        os.mkfifo(second)
    else:
        with open(second, "wb") as file:
            file.truncate(MOST_BYTES + 1)
    desk.say("d", "what the desk has to say about all of this", 1)
    report = desk.roam()
    assert "segment 2 of machine" in report.problems[0]
    assert set(desk.items()) == {"r0", "d"}
    assert report.written == 1


def test_nothing_is_written_through_a_link_in_the_folder(boxes, tmp_path):
    laptop, _ = boxes
    three_segments(laptop)
    (tmp_path / "mine").write_text("mine")
    for name in ("LOG", "00000004"):
        (laptop.log / f".{name}.{os.getpid()}").symlink_to(tmp_path / "mine")
    laptop.change_key(5)
    assert (tmp_path / "mine").read_text() == "mine"
    folder = segments(laptop.log)[0].parent
    moved = shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(moved)
    laptop.say("r9", "the words of number nine are long enough", 9_000)
    before = sorted(Path(moved).iterdir())
    laptop.roam(9_000)  # under another name, for its segments are gone
    assert sorted(Path(moved).iterdir()) == before


def test_a_repository_on_a_disk_runs_no_program_of_its_own_here(tmp_path):
    """Its hooks and its configuration are of whoever can write there."""
    place = tmp_path / "log.git"
    git = ["git", "-C", str(place)]
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    act = f"touch {tmp_path}/ran; :"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        (place / "hooks" / name).write_text(f"#!/bin/sh\n{act}\n")
        (place / "hooks" / name).chmod(0o755)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "more.git")], check=True)
    (place / "objects" / "info" / "alternates").write_text(f"{tmp_path}/more.git/objects\n")
    for name in ("core.alternateRefsCommand", "core.fsmonitor", "uploadpack.packObjectsHook"):
        subprocess.run([*git, "config", name, act], check=True)
    subprocess.run([*git, "config", "core.hooksPath", str(place / "hooks")], check=True)
    boxes = [Box(tmp_path / name, tmp_path / "log") for name in ("laptop", "desk")]
    over = [Git(f"git+file://{place}", box.home, os.environ) for box in boxes]
    key = boxes[0].roam_over(over[0]).begin_log()
    boxes[1].roam_over(over[1]).join_log(key)
    for ref, box, there in zip("ab", boxes, over, strict=True):
        box.say(ref, f"what was said {ref} and is long enough", 1_000)
        box.roam(2_000, there)
    boxes[0].roam(3_000, over[0])
    assert set(boxes[0].items()) == set(boxes[1].items()) == {"a", "b"}
    assert not (tmp_path / "ran").exists()
    for box in boxes:
        box.close()


def test_a_file_that_is_no_segment_is_left_alone(boxes):
    laptop, desk = boxes
    three_segments(laptop)
    (segments(laptop.log)[0].parent / "00000002-0123.sync-conflict").write_bytes(b"x")
    (laptop.log / "notes.txt").write_text("mine")
    assert not desk.roam().problems
    assert (laptop.log / "notes.txt").read_text() == "mine"


def test_names_of_files_and_their_bytes_say_nothing_of_what_is_in_them(boxes):
    laptop, _ = boxes
    laptop.say("r1", "the password of the falcon is in the drawer", 1_000, session="talk")
    laptop.roam()
    for path in laptop.log.rglob("*"):
        assert not any(word in str(path).lower() for word in ("falcon", "talk", "laptop", "shop"))
        assert not path.is_file() or b"falcon" not in path.read_bytes()


# --- what is told and what is not ----------------------------------------------------------------


def test_cards_come_along_with_what_they_were_made_of_and_go_when_they_are_made_otherwise(boxes):
    laptop, desk = boxes
    laptop.say("r1", "the words that a card is made of, long enough", 1_000)
    (said,) = laptop.store.find_by_ref("r1")
    from yester.ingest.prepare import prepare_item
    from yester.model import replace

    card = Item(
        "turn:1", "observation", said.project, said.session, source="yester",
        agent="claude-code", epoch=1_001, title="A card", body="what it says of the words",
    )  # fmt: skip
    with laptop.store.transaction("items"):
        laptop.store.put([replace(prepare_item(card), evidence=((0, said.id),))])
    laptop.roam()
    desk.roam()
    (there,) = desk.store.find_by_ref("turn:1")
    (source,) = desk.store.find_by_ref("r1")
    assert desk.store.evidence([there.id]) == {there.id: ((0, source.id),)}
    (made,) = laptop.store.find_by_ref("turn:1")
    with laptop.store.transaction("items"):
        laptop.store.remove([made.id])
    laptop.roam()
    desk.roam()
    assert desk.store.find_by_ref("turn:1") == []
    assert set(desk.items()) == {"r1"}


def test_a_secret_that_an_older_version_has_let_in_does_not_go_out(boxes):
    laptop, desk = boxes
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    from yester.model import Entry
    from yester.text.document import content_hash, expand_item

    item = Item("r1", "message", "git:example.com/sam/shop", "s", body=f"T={secret} done")
    with laptop.store.transaction("items"):
        laptop.store.put([Entry(item, content_hash(item), expand_item(item))])
    laptop.roam()
    key = load_key(laptop.home)
    for path in segments(laptop.log):
        name = read_name(str(path.relative_to(laptop.log)))
        told = open_segment(key, name, path.read_bytes()).lines
        assert secret not in str(told)
    desk.roam()
    assert secret not in desk.items()["r1"]


def test_two_machines_with_the_same_transcript_store_it_once_and_a_third_gets_one(boxes, tmp_path):
    laptop, desk = boxes
    third = Box(tmp_path / "third", laptop.log)
    third.join(laptop)
    for box, more in ((laptop, ""), (desk, " and its end")):
        box.say("same", f"said once, and read by two{more}", 1_000, session="one")
    for _ in range(2):
        for box in (laptop, desk, third):
            box.roam()
    assert laptop.items() == {"same": "said once, and read by two"}
    assert desk.items() == {"same": "said once, and read by two and its end"}
    assert third.items() in (laptop.items(), desk.items())
    assert not third.roam().written
    third.close()


def test_when_a_machine_last_wrote_is_the_same_on_all_of_them(boxes):
    laptop, desk = boxes
    three_segments(laptop)
    desk.roam()
    seen = [{one.key: one.seen for one in box.store.entries(_machine())} for box in boxes]
    (key,) = {one.key for one in laptop.store.entries(_machine()) if one.own}
    assert seen[0][key] == seen[1][key] == 2_002


def test_the_origin_of_what_came_from_elsewhere_is_known(boxes):
    laptop, desk = boxes
    laptop.say("r1", "said on the laptop, as everybody can see", 1_000)
    laptop.roam()
    desk.roam()
    (item,) = desk.store.find_by_ref("r1")
    from yester.store.figures import name_origins

    assert list(name_origins(desk.store, [item.id])) == [item.id]
    (own,) = laptop.store.find_by_ref("r1")
    assert name_origins(laptop.store, [own.id]) == {}


# --- memories ------------------------------------------------------------------------------------


def test_two_children_of_one_version_are_both_kept_and_say_so(boxes):
    laptop, desk = boxes
    id_ = laptop.note("Orders keep UTC", 1_000)
    laptop.roam()
    desk.roam()
    (there,) = desk.memos()
    laptop.edit(id_, "Orders keep UTC, always", 2_000)
    desk.edit(there.item.id, "Orders keep local time", 2_000)
    for box in (laptop, desk, laptop):
        box.roam()
    for box in (laptop, desk):
        assert box.titles() == {"Orders keep UTC, always", "Orders keep local time"}
        (beside,) = [memo for memo in box.memos() if "~" in memo.item.ref]
        assert "written on another machine at the same time" in beside.reason
    assert {m.item.ref for m in laptop.memos()} == {m.item.ref for m in desk.memos()}
    (one,) = [memo for memo in desk.memos() if "~" in memo.item.ref]
    desk.edit(one.item.id, "Orders keep local time and zone", 3_000)
    desk.roam()
    laptop.roam()
    assert laptop.titles() == desk.titles()
    assert "Orders keep local time and zone" in laptop.titles()
    assert len(laptop.memos()) == 2


def test_heads_and_their_names_do_not_depend_on_the_order_in_which_versions_came():
    versions = {"c": ("a",), "b": ("a",), "a": (), "d": ("b",), "gone:x": ("c",)}
    for order in (versions, dict(reversed(versions.items()))):
        assert find_heads(order) == ["d"]
        assert name_heads("m", order)["d"] == "m"
        assert name_heads("m", order)["c"] == "m~c"


def test_a_memory_that_was_let_go_on_one_machine_and_edited_on_another_stays(boxes):
    laptop, desk = boxes
    id_ = laptop.note("Retry webhooks thrice", 1_000)
    laptop.roam()
    desk.roam()
    (there,) = desk.memos()
    with laptop.store.transaction("memories"):
        laptop.store.remove([id_], (2_000, "not needed"))
    desk.edit(there.item.id, "Retry webhooks five times", 2_000)
    for box in (laptop, desk, laptop, desk):
        box.roam()
    assert laptop.titles() == desk.titles() == {"Retry webhooks five times"}
    with laptop.store.transaction("memories"):
        laptop.store.remove([laptop.memos()[0].item.id], (3_000, "not needed"))
    laptop.roam()
    desk.roam()
    assert desk.titles() == set()


# --- forgetting ----------------------------------------------------------------------------------


def test_a_tombstone_arrives_before_its_item_and_wins_against_a_later_edit(boxes, tmp_path):
    laptop, desk = boxes
    third = Box(tmp_path / "third", laptop.log)
    third.join(laptop)
    id_ = laptop.note("The falcon merger", 1_000)
    laptop.roam()
    desk.roam()
    (there,) = desk.memos()
    laptop.forget(id_, 2_000)
    desk.edit(there.item.id, "The falcon merger is off", 9_000_000)
    laptop.roam(3_000)
    third.roam(3_000)  # has never had it
    desk.roam(3_000)
    for box in (laptop, third, desk):
        box.roam(4_000)
        assert box.titles() == set()
    third.close()


def test_what_is_said_anew_after_it_was_forgotten_reaches_the_others(boxes):
    laptop, desk = boxes
    laptop.say("r1", "a thing that was better not said at all", 1_000)
    laptop.roam(1_100)
    desk.roam(1_100)
    (item,) = laptop.store.find_by_ref("r1")
    laptop.forget(item.id, 2_000)
    laptop.roam(2_100)
    desk.roam(2_100)
    assert desk.items() == {}
    laptop.say("r1", "a thing that was said once more, on purpose", 3_000)
    laptop.roam(3_100)
    desk.roam(3_100)
    assert set(desk.items()) == {"r1"}


# --- keys ----------------------------------------------------------------------------------------


def test_a_new_key_shuts_out_who_has_the_old_one_and_leaves_out_what_was_forgotten(boxes):
    laptop, desk = boxes
    three_segments(laptop)
    desk.say("d1", "said at the desk before the key was changed", 1_000)
    desk.roam()
    laptop.roam()
    (item,) = laptop.store.find_by_ref("r1")
    laptop.forget(item.id, 5_000)
    before = {path: path.read_bytes() for path in segments(laptop.log)}
    old = load_key(laptop.home)
    new = laptop.change_key(6_000)
    assert new.id != old.id
    assert not before.keys() & {*segments(laptop.log)}
    for path in segments(laptop.log):
        name = read_name(str(path.relative_to(laptop.log)))
        with pytest.raises(BadSegment, match="does not open"):
            open_segment(old, name, path.read_bytes())
        assert "number 1 are" not in str(open_segment(new, name, path.read_bytes()).lines)
    with pytest.raises(SourceError, match="has another key since"):
        desk.roam()
    desk.say("d2", "said at the desk while it was shut out", 7_000)
    desk.join(laptop)
    desk.roam()
    laptop.roam()
    assert set(laptop.items()) == set(desk.items()) == {"r0", "r2", "d1", "d2"}
    assert all(row.sent for row in desk.store.entries(LogItem))


def test_a_new_log_gets_everything_also_what_came_from_a_machine_that_is_gone(boxes, tmp_path):
    laptop, desk = boxes
    three_segments(laptop)
    desk.roam()
    shutil.rmtree(laptop.log)
    with pytest.raises(SourceError, match="is not there"):
        desk.roam()
    desk.begin()
    desk.roam()
    third = Box(tmp_path / "third", laptop.log)
    third.join(desk)
    third.roam()
    assert third.items() == desk.items()
    (row,) = third.store.entries(
        LogItem, {"item": [i.id for i in walk_items(third.store, Filters()) if i.ref == "r0"]}
    )
    assert row.origin.partition("-")[0] not in {
        one.key.partition("-")[0] for one in desk.store.entries(_machine()) if one.own
    }
    third.close()


class Full(Folder):
    """A place that takes the head of a log, and then nothing."""

    def write_files(self, files):
        if "LOG" not in files:
            raise SourceError("no room there")
        super().write_files(files)


def test_a_log_that_cannot_be_begun_is_not_begun_and_what_was_sealed_gets_there_later(tmp_path):
    box = Box(tmp_path / "laptop", tmp_path / "log")
    box.say("r1", "said before there was any room", 1_000)
    with pytest.raises(SourceError, match="is not there"):
        box.roam_over(Folder(tmp_path / "log")).begin_log()
    assert load_roaming(box.home) is None
    box.begin()
    with pytest.raises(SourceError, match="no room"):
        box.roam(2_000, Full(box.log))
    assert load_roaming(box.home).problems == ["no room there"]
    assert segments(box.log) == []
    assert box.roam(3_000).written == 1
    assert len(segments(box.log)) == 1
    assert load_roaming(box.home).problems == []
    box.close()
