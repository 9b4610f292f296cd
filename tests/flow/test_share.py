"""Stores of several users that share a project over a server."""

from __future__ import annotations

import time

import psycopg
import pytest

from tests.roaming import Box
from tests.sharing import SHARED, Cutting, Peer, Unplugged
from tests.teams import Team, url_of
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.context.start import at_start
from yester.errors import SourceError
from yester.ingest.prepare import prepare_item
from yester.memories.lifecycle import edit_memory
from yester.memories.memory import Author
from yester.memories.remember import Draft, remember
from yester.memories.rules import list_rules
from yester.memory import Memory
from yester.model import Filters, Item, Memo, Project, Session, replace, sharer_of
from yester.operations.request import ProjectRequest
from yester.operations.share import preview_share
from yester.operations.turns import show_now
from yester.sharing.server import TeamServer
from yester.sharing.team import Told
from yester.sharing.wire import (
    FOR_EVER,
    ForgottenLine,
    GoneLine,
    ItemLine,
    MachineLine,
    MemoryLine,
    WithdrawnLine,
    form_line,
    hash_item,
    team_key,
)
from yester.store import walk_items
from yester.text.document import content_hash
from yester.tombstones import Marks

pytestmark = pytest.mark.requirement("TEAM-02")


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team("yester-share", tmp_path_factory.mktemp("server"))
    made.token("somebody")
    return made


@pytest.fixture(scope="module")
def server(team):
    with team.serving() as serving:
        yield serving
        assert serving.failures == []


@pytest.fixture
def peers(team, server, request, tmp_path):
    """Makes a peer of this test's tenant."""
    made = []

    def make(user, folder="", **more):
        token = team.token(user, request.node.name, role="owner", **more)
        made.append(Peer(tmp_path / (folder or user), server, token))
        made[-1].share()
        return made[-1]

    yield make
    for one in made:
        one.close()


def step(*some):
    for _ in range(2):
        for one in some:
            one.exchange()


def test_what_was_said_and_noted_comes_to_the_others_as_somebody_elses(peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    sam.note("Orders keep UTC", 2)
    step(sam, kim)
    assert kim.items() == {"r1": "the otter sleeps at noon"}
    assert kim.titles() == {"Orders keep UTC"}
    for item in walk_items(kim.store):
        assert (item.origin, sharer_of(item)) == ("import", "sam")
        assert item.trust <= 0.3
        assert item.session in ("", "team:sam:session-sam")
    assert sam.exchange().outcome == {}
    kim.say("r2", "the badger digs", 3)
    step(kim, sam)
    assert sam.items() == kim.items()
    assert [sharer_of(i) for i in walk_items(sam.store)] == ["", "", "kim"]


def test_what_an_agent_is_told_says_whose_it_is_and_is_never_a_rule(peers):
    sam, kim = peers("sam"), peers("kim")
    by = Author("sam", 1, "user")
    text = "Never commit the ledger of the otters on Friday"
    rule = Draft(text=text, type="rule", title=text)
    remember(sam.store, rule, SHARED, by)
    sam.note("The ledger of the otters keeps UTC, since the harbour clock is in UTC", 2)
    sam.say("r1", "the ledger of the otters is written by the badger alone", 3)
    step(sam, kim)
    assert not any("Friday" in title for title in kim.titles())
    assert list_rules(kim.store, ()) == []
    here = Here(SHARED, "now", 10_000)
    started = at_start(kim.store, here).text
    assert "[from: sam/shop]" in started
    assert "Last session" not in started
    told = at_prompt(kim.store, "who writes the ledger of the otters, and in UTC?", here).text
    lines = [line for line in told.splitlines() if "otters" in line]
    assert lines
    assert all("[from: sam/shop]" in line for line in lines)
    assert "[from" not in at_start(sam.store, here).text


def test_what_is_forgotten_goes_from_the_server_and_from_every_member(peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    note = sam.note("Orders keep UTC", 2)
    step(sam, kim)
    copy = kim.back_up()
    (item,) = sam.store.find_by_ref("r1")
    sam.forget(item.id, 5)
    sam.forget(note, 5)
    step(sam, kim)
    assert kim.items() == sam.items() == {}
    assert kim.titles() == sam.titles() == set()
    assert [list(one) for one in kim.told()] == [["session"], ["forgotten"], ["forgotten"]]
    kim.restore(copy)
    assert kim.items() == {}
    sam.say("r1", "the otter sleeps at noon", 10)
    step(sam, kim)
    assert kim.items() == {}
    assert list(sam.shared.refused) == ["forgotten"]


def test_a_line_that_is_refused_is_listed_and_stops_nothing(peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    sam.exchange()
    (item,) = sam.store.find_by_ref("r1")
    sam.forget(item.id, 2)
    sam.exchange()
    sam.say("r1", "the otter is back", 10)
    sam.say("r2", "x" * 7_600_000, 11)
    sam.say("r3", "the badger digs", 12)
    report = sam.exchange()
    by_ref = {i.ref: i.id for i in walk_items(sam.store)}
    assert sam.shared.refused == {
        "forgotten": [by_ref["r1"]], "it is too large to send": [by_ref["r2"]]
    }  # fmt: skip
    assert report.refused == {"forgotten": 1, "it is too large to send": 1}
    assert sam.exchange().refused == {}
    assert sam.waiting() == 0
    kim.exchange()
    assert kim.items() == {"r3": "the badger digs"}


def test_two_who_change_one_memory_at_the_same_time_are_both_kept_and_linked(peers):
    sam, kim, lee = peers("sam"), peers("kim"), peers("lee")
    note = sam.note("Orders keep UTC", 1)
    step(sam, kim)
    sam.edit(note, "Orders keep local time", 2)
    (memo,) = kim.memos()
    kim.edit(memo.item.id, "Orders keep UTC and a zone", 3)
    step(kim, sam, lee)
    for one in (sam, kim, lee):
        assert one.titles() == {"Orders keep local time", "Orders keep UTC and a zone"}
        assert any("at the same time" in memo.reason for memo in one.memos())
    (theirs,) = (i for i in walk_items(sam.store) if i.title == "Orders keep UTC and a zone")
    assert (theirs.origin, sharer_of(theirs)) == ("import", "kim")


def test_what_breaks_off_goes_on_where_it_was(peers):
    sam, kim = peers("sam"), peers("kim")
    for number in range(1_300):
        sam.say(f"r{number}", f"otter number {number} sleeps", number)
    for at, kind in ((5, "before"), (3, "after")):
        with pytest.raises(Unplugged):
            sam.exchange(way=Cutting(sam.url, sam.token, at, kind))
    assert len(kim.told()) >= 500
    with pytest.raises(Unplugged):
        kim.exchange(way=Cutting(kim.url, kim.token, 3))
    assert 0 < len(kim.items()) < 1_300
    step(sam, kim)
    assert len(kim.items()) == 1_300
    assert sam.waiting() == 0


def test_what_was_withdrawn_goes_from_everybody_and_can_be_shared_again(peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    sam.note("Orders keep UTC", 1)
    kim.say("r2", "the badger digs", 1)
    step(sam, kim)
    report = sam.stop()
    assert report.ended == "it was enough; lines withdrawn there: 3"
    assert report.withdrawn == {"kim": 1}
    assert sam.items() == {"r1": "the otter sleeps at noon"}
    assert kim.exchange().withdrawn == {"sam": 2}
    assert kim.items() == {"r2": "the badger digs"}
    assert kim.titles() == set()
    sam.share()
    step(sam, kim)
    assert kim.items() == sam.items() == {"r1": "the otter sleeps at noon", "r2": "the badger digs"}
    assert kim.titles() == {"Orders keep UTC"}


def test_what_becomes_private_is_withdrawn_and_nothing_more_is_sent(peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    step(sam, kim)
    sam.say("r2", "the badger is a secret", 2)
    sam.private.add(SHARED.key)
    report = sam.exchange()
    assert report.ended.startswith("the project is private now; lines withdrawn there: ")
    assert kim.exchange().withdrawn == {"sam": 1}
    assert kim.items() == {}
    assert not any("item" in one for one in kim.told())
    assert set(sam.items()) == {"r1", "r2"}


def test_what_becomes_private_while_it_is_sent_is_withdrawn_as_well(peers):
    sam = peers("sam")
    for number in range(1_100):
        sam.say(f"r{number}", f"otter number {number} sleeps", number)

    class Watching(TeamServer):
        def push(self, *sent):
            sam.private.add(SHARED.key)
            return super().push(*sent)

    sam.say("first", "the first", 1)
    report = sam.exchange(way=Watching(sam.url, sam.token))
    assert report.ended.startswith("the project is private now")
    assert not any("item" in one for one in sam.told())


def test_a_server_that_begins_another_life_is_told_everything_again(team, peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    sam.note("Orders keep UTC", 1)
    sam.say("r2", "the badger digs", 1)
    step(sam, kim)
    (gone,) = sam.store.find_by_ref("r2")
    sam.forget(gone.id, 5)
    sam.say("r1", "the otter sleeps at noon, and dives at dusk", 6)
    step(sam, kim)
    with psycopg.connect(url_of(team.name, "postgres"), autocommit=True) as database:
        # An older copy was put back: it knows no batch of today, and has less.
        database.execute("DELETE FROM yester.share_batch")
        database.execute("DELETE FROM yester.share_line WHERE kind <> 'memory'")
    step(sam, kim)
    for one in (sam, kim):
        assert one.items() == {"r1": "the otter sleeps at noon, and dives at dusk"}
        assert one.titles() == {"Orders keep UTC"}
    kinds = [next(iter(one)) for one in kim.told()]
    assert sorted(kinds) == ["forgotten", "item", "memory", "session"]


def test_who_may_only_read_follows_and_sends_nothing(peers):
    sam, kim = peers("sam"), peers("kim", scopes=("read",))
    with pytest.raises(SourceError, match="no project is called"):
        kim.exchange()
    sam.say("r1", "the otter sleeps at noon", 1)
    kim.say("r2", "the badger digs", 1)
    step(sam, kim)
    assert set(kim.items()) == {"r1", "r2"}
    assert set(sam.items()) == {"r1"}
    assert kim.waiting() == 0
    assert kim.stop().withdrawn == {"sam": 1}


def test_what_is_moved_to_another_project_or_made_a_rule_ends_there_alone(peers):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", 1)
    note = sam.note("Orders keep UTC always and everywhere", 2)
    step(sam, kim)
    edit_memory(sam.store, note, {"type": "rule"}, Author("sam", 3, "user"))
    step(sam, kim)
    assert kim.titles() == set()
    with sam.store.transaction("places"):
        sam.store.merge_project(SHARED.key, Project("name:diary", "diary"))
    step(sam, kim)
    assert kim.items() == {}
    assert set(sam.items()) == {"r1"}
    assert sam.titles() == {"Orders keep UTC always and everywhere"}
    assert [m.item.type for m in sam.memos()] == ["rule"]


def test_two_machines_of_one_user_keep_what_was_written_on_each(peers):
    desk, lap, kim = peers("sam", "desk"), peers("sam", "lap"), peers("kim")
    desk.say("r1", "the otter sleeps at noon", 1)
    lap.say("r2", "the badger digs", 2)
    for one in (desk, lap):
        one.say("both", f"said on {one.home.name}", 3)
    note = desk.note("Orders keep UTC", 3)
    step(desk, lap, kim)
    for one in (desk, lap, kim):
        assert set(one.items()) == {"r1", "r2", "both"}
        assert one.titles() == {"Orders keep UTC"}
    assert lap.items()["both"] == "said on lap"
    assert desk.items()["both"] == "said on desk"
    assert not any(one.exchange().told for one in (desk, lap, kim))
    (item,) = lap.store.find_by_ref("r1")
    assert (item.source, item.origin, sharer_of(item)) == ("claude-code", "import", "")
    # Forgotten on one: gone from the server and from where it had come from there.
    for ref in ("r1", "both"):
        (item,) = desk.store.find_by_ref(ref)
        desk.forget(item.id, 9)
    desk.forget(note, 9)
    step(desk, lap, kim)
    assert set(kim.items()) == {"r2"}
    assert set(lap.items()) == {"r2", "both"}  # its own words are its own to forget
    assert list(lap.shared.refused) == ["forgotten on another of your machines, and still here"]
    assert kim.titles() == lap.titles() == set()
    # Withdrawn on one: the other does not send it again behind its user's back.
    desk.stop()
    assert lap.exchange().ended == "withdrawn from another of your machines"
    assert kim.exchange().withdrawn == {"sam": 1}


class Lying(TeamServer):
    """A server that tells whatever it likes."""

    def __init__(self, peer: Peer, *lines) -> None:
        super().__init__(peer.url, peer.token)
        self._lines = [{"id": 1_000 + at, "line": form_line(one)} for at, one in enumerate(lines)]

    def pull(self, project, cursor, limit):
        told = super().pull(project, cursor, limit)
        return Told(lines=[*told.lines, *self._lines], cursor=told.cursor, more=False, key=told.key)


def test_a_server_changes_and_takes_out_nothing_that_was_written_here(peers):
    sam = peers("sam")
    sam.say("r1", "the otter sleeps at noon", 1)
    sam.note("Orders keep UTC", 1)
    text = "Never commit on Friday evening"
    rule = remember(sam.store, Draft(text=text, type="rule"), SHARED, Author("sam", 1, "user"))
    sam.exchange()
    before = {item.identity: item for item in walk_items(sam.store)}
    (own,) = sam.store.find_by_ref("r1")
    key = bytes.fromhex(sam.shared.key)

    def forgotten(user, item, by=key):
        digest = Marks(by, {}).digest(team_key(item.identity, "sam"))
        return ForgottenLine(by, Marks(by, {digest: FOR_EVER}).records, user)

    project = Marks(key, {}).digest(("project", SHARED.key))
    item = Item("x1", "message", SHARED.key, source="team:eve:claude-code", body="a foreign word")
    ours = replace(own, id=0, body="changed", source="team:sam:claude-code", session="")
    mine = replace(
        rule.memo.item, id=0, type="decision", source=f"team:sam:{rule.memo.item.source}"
    )
    foreign_rule = Memo(replace(item, kind="memory", type="rule"), "x1", version=1)
    report = sam.exchange(way=Lying(
        sam,
        ItemLine(ours, hash_item(ours)),
        ItemLine(replace(own, id=0, body="under our own name"), "h"),
        ItemLine(replace(item, project="name:diary"), "h"),
        ItemLine(replace(item, kind="note"), "h"),
        ItemLine(replace(item, session="team:sam:one"), "h"),
        ItemLine(replace(item, ref="x2"), "h", was="r1", origin="m", place=1 << 40),
        MemoryLine(item.source, "x1", "m1", memo=foreign_rule),
        MemoryLine(mine.source, mine.ref, "m2", memo=Memo(mine, "x", version=1)),
        MemoryLine(mine.source, mine.ref, "gone:x"),
        GoneLine("message", "r1", "m", 1 << 40, "team:sam:claude-code"),
        forgotten("sam", own), forgotten("eve", own),
        ForgottenLine(key, Marks(key, {project: FOR_EVER}).records, "eve"),
        ForgottenLine(key, Marks(key, {project: FOR_EVER}).records),
        MachineLine("here", 1), SHARED,
        Session("one", "claude-code", SHARED.key),
    ))  # fmt: skip
    after = {item.identity: item for item in walk_items(sam.store)}
    stranger = after.pop(("team:eve:claude-code", "message", "x2"))
    assert (stranger.origin, stranger.trust) == ("import", 0.3)
    assert after == before
    assert sum(report.passed.values()) == 11
    assert [memo.item.body for memo in list_rules(sam.store, ())] == [text]
    report = sam.exchange(way=Lying(sam, WithdrawnLine("sam")))
    assert report.ended == "withdrawn from another of your machines"
    assert {item.identity: item for item in walk_items(sam.store)} == before


def test_a_token_of_somebody_else_sends_nothing(team, peers, request):
    sam = peers("sam")
    sam.say("r1", "the otter sleeps at noon", 1)
    sam.exchange()
    sam.token = team.token("kim", request.node.name)
    with pytest.raises(SourceError, match="this token is kim's, and the project is shared as sam"):
        sam.exchange()
    with team.directory(request.node.name) as directory:
        directory.end_account("sam")
        directory.end_account("kim")
    with pytest.raises(SourceError, match="does not take the token"):
        sam.exchange()
    assert sam.shared.problems
    assert "yst_" not in str(sam.shared.problems)


def test_a_server_that_is_asked_too_often_is_waited_for(team, peers, request):
    sam = peers("sam")
    sam.say("r1", "the otter sleeps at noon", 1)
    waited = []
    with team.serving(rate=0.001, burst=3) as slow:
        sam.server = slow
        with pytest.raises(SourceError, match="is asked too often; what is left goes next time"):
            sam.exchange(way=TeamServer(sam.url, sam.token, sleep=waited.append))
    assert sum(waited) <= 120
    assert sam.shared.problems


def test_what_others_have_done_is_not_what_was_done_here(peers, run, tmp_path):
    sam, kim = peers("sam"), peers("kim")
    sam.say("r1", "the otter sleeps at noon", int(time.time() * 1000), kind="prompt", role="user")
    step(sam, kim)
    assert [one.key for one in kim.store.sessions(Filters())] == ["team:sam:session-sam"]
    kim.close()
    refused = run("--home", str(kim.home), "resume", "team:sam:session-sam")
    assert "the session is sam's" in refused.err
    with Memory(kim.home, {}) as memory:
        assert show_now(memory, ProjectRequest()).running == []


def test_what_is_shared_still_comes_to_ones_own_other_machine(peers, tmp_path):
    desk, kim = peers("sam", "desk"), peers("kim")
    desk.log = tmp_path / "log"
    desk.begin()
    lap = Box(tmp_path / "lap", desk.log)
    lap.join(desk)
    kim.say("r2", "the badger digs", 1)
    kim.exchange()
    desk.say("r1", "the otter sleeps at noon", 1)
    desk.note("Orders keep UTC", 1)
    step(desk, kim)
    desk.share()
    step(desk)  # all of it is read again, its own lines too
    (memo,) = kim.memos()
    kim.edit(memo.item.id, "Orders keep UTC and a zone", 3)
    step(kim, desk)
    for one in (desk, lap, desk, lap):
        one.roam()
    assert lap.items() == {"r1": "the otter sleeps at noon"}
    assert lap.titles() == desk.titles() == {"Orders keep UTC and a zone"}
    assert not desk.roam().written
    lap.close()


def test_secrets_that_were_stored_before_a_rule_knew_them_do_not_leave(peers):
    sam = peers("sam")
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    sam.say("r1", "the otter sleeps at noon", 1)
    with sam.store.transaction("items"):
        entry = prepare_item(Item("r2", "message", SHARED.key, source="pi", body="a key"))
        item = replace(entry.item, body=f"the key is {secret}")
        sam.store.put([replace(entry, item=item, hash=content_hash(item))])
    with Memory(sam.home, {}) as memory:
        seen = preview_share(memory, "shop")
    assert sum(seen.redacted.values()) == 1
    assert secret not in str(seen.lines)
    sent = []

    class Watching(TeamServer):
        def push(self, project, origin, batch, lines, cursor):
            sent.extend(lines)
            return super().push(project, origin, batch, lines, cursor)

    sam.exchange(way=Watching(sam.url, sam.token))
    assert len([one for one in sent if "item" in one]) == 2
    assert secret not in str(sent)
    assert not {"cwd", "transcript", "title", "root"} & {name for one in sent for name in one}
    assert sam.waiting() == 0
