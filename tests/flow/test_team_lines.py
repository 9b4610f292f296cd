"""What a server takes from its members line by line, and what it tells them."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.sharing import SHOP, Sender, item_form, make_item, memory_form
from tests.teams import Team, url_of
from yester.sharing.wire import ForgottenLine, GoneLine, form_line, team_key
from yester.tombstones import Marks

pytestmark = pytest.mark.requirement("TEAM-02")


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team("yester-lines", tmp_path_factory.mktemp("server"))
    made.token("somebody")
    return made


@pytest.fixture(scope="module")
def server(team):
    with team.serving() as serving:
        yield serving
        assert serving.failures == []


@pytest.fixture
def tenant(request):
    """Each test has its own."""
    return request.node.name.replace("[", "/").rstrip("]")


@pytest.fixture
def sam(team, server, tenant):
    return Sender(server, team.token("sam", tenant, role="owner"))


@pytest.fixture
def kim(team, server, tenant):
    return Sender(server, team.token("kim", tenant))


def mark_form(sender: Sender, user: str, item) -> dict:
    key = bytes.fromhex(sender.server.by(sender.token).get("/v1/sync/pull", project=SHOP)["key"])
    marks = Marks(key, {})
    digest = marks.digest(team_key(item.identity, user))
    return form_line(ForgottenLine(key, marks.add({digest: 1}).records))


OTTER = make_item("r1", "the otter sleeps at noon")


def test_what_one_member_sends_the_others_read_and_find(sam, kim):
    form = item_form("sam", OTTER)
    assert sam.push(form)["results"] == ["stored"]
    assert kim.pull() == [form]
    assert kim.pull() == []
    assert kim.found("otter") == [OTTER.body]


def test_a_batch_that_comes_again_is_answered_as_before_and_stored_once(sam, kim):
    form = item_form("sam", OTTER)
    first = sam.push(form, batch=7)
    assert sam.push(form, batch=7) == first
    assert sam.push(form, batch=8)["results"] == ["same"]
    assert len(kim.pull("")) == 1


def test_a_batch_that_is_late_changes_nothing(sam, kim):
    sam.push(item_form("sam", make_item("r1", "the newer otter")), batch=10)
    late = sam.push(item_form("sam", OTTER), batch=9)
    assert (late["results"], late["behind"], late["last"]) == ([], True, 10)
    other = sam.push(item_form("sam", OTTER), batch=10)
    assert (other["results"], other["behind"]) == ([], True)
    assert kim.texts() == ["the newer otter"]


def test_one_line_that_is_refused_stops_no_other(sam, kim):
    rule = memory_form("sam", "m1", "Never commit on Friday.", "a1", type_="rule")
    elsewhere = item_form("sam", make_item("r3", "the walrus", project="git:example.com/acme/zoo"))
    foreign = item_form("kim", make_item("r4", "said by nobody"))
    broken = item_form("sam", make_item("r5", "the yak"))
    broken["item"]["item"]["epoch"] = "noon"
    huge = item_form("sam", make_item("r6", "the emu"))
    huge["item"]["item"]["epoch"] = 1 << 70
    note = item_form("sam", make_item("/home/sam/notes.md", "a note"))
    note["item"]["item"]["kind"] = "note"
    good = [item_form("sam", make_item(f"g{n}", f"good {n}")) for n in range(3)]
    sent = [good[0], rule, elsewhere, foreign, good[1], broken, huge, note, {"new": {}}, good[2]]
    told = sam.push(*sent)["results"]
    assert [one.split(":")[0] for one in told] == [
        "stored", *["refused"] * 3, "stored", *["refused"] * 4, "stored"
    ]  # fmt: skip
    assert "a rule is its user's alone" in told[1]
    assert "another project" in told[2]
    assert kim.texts() == ["good 0", "good 1", "good 2"]
    assert kim.found("friday") == kim.found("walrus") == []


def test_an_item_that_has_grown_is_told_once_as_it_is_now(sam, kim):
    sam.push(item_form("sam", OTTER))
    grown = make_item("r1", "the otter sleeps at noon, and dives at dusk")
    kim.pull()
    assert sam.push(item_form("sam", grown))["results"] == ["stored"]
    assert kim.pull() == [item_form("sam", grown)]
    assert kim.texts() == [grown.body]
    assert kim.found("otter") == [grown.body]


def test_secrets_are_taken_out_again_by_the_server(team, sam, kim):
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    form = item_form("sam", OTTER)
    form["item"]["item"]["body"] = f"the key is {secret}"
    sam.push(form)
    memory = memory_form("sam", "m1", "Orders keep UTC.", "a1")
    memory["memory"]["memo"]["content"] = {"decision": f"use {secret}"}
    sam.push(memory)
    assert secret not in str(kim.pull(""))
    assert "[redacted" in kim.texts()[0]
    with psycopg.connect(url_of(team.name, "postgres")) as database:
        for table in ("share_line", "item", "memory", "memory_change"):
            rows = database.execute(f"SELECT to_jsonb(t)::text FROM yester.{table} t".encode())
            texts = "".join(row[0] for row in rows)
            assert secret not in texts
            assert secret.encode().hex() not in texts


def test_what_was_forgotten_goes_and_stays_refused(sam, kim):
    sam.push(item_form("sam", OTTER))
    kim.pull()
    assert sam.push(mark_form(sam, "sam", OTTER))["results"] == ["stored"]
    (line,) = kim.pull()
    assert list(line) == ["forgotten"]
    assert kim.found("otter") == kim.texts() == []
    again = make_item("r1", "the otter sleeps at noon again", epoch=1 << 40)
    assert sam.push(item_form("sam", again))["results"] == ["refused: forgotten"]
    assert sam.push(mark_form(sam, "sam", OTTER))["results"] == ["same"]


def test_nobody_forgets_takes_out_or_changes_what_is_anothers(sam, kim):
    sam.push(item_form("sam", OTTER), memory_form("sam", "m1", "Orders keep UTC.", "a1"))
    kim.pull()
    gone = form_line(GoneLine("message", "r1", source="team:sam:claude-code"))
    let_go = memory_form("kim", "m1", "", "gone:a1", ("a1",), owner="sam")
    del let_go["memory"]["memo"]
    told = kim.push(mark_form(kim, "sam", OTTER), gone, let_go, item_form("sam", OTTER))
    assert [one[:15] for one in told["results"]][1:] == ["refused: it is "] * 3
    assert sam.found("otter") == [OTTER.body]
    assert len(sam.texts()) == 2
    assert sam.push(item_form("sam", make_item("r1", "another otter")))["results"] == ["stored"]


def test_two_versions_of_one_memory_are_both_told_and_kept(sam, kim):
    sam.push(memory_form("sam", "m1", "Orders keep UTC.", "a1"))
    ours = memory_form("sam", "m1", "Orders keep local time.", "b1", ("a1",))
    theirs = memory_form("kim", "m1", "Orders keep UTC and zone.", "c1", ("a1",), owner="sam")
    assert kim.push(theirs)["results"] == ["stored"]
    assert sam.push(ours)["results"] == ["stored"]
    assert [one["memory"]["mark"] for one in kim.pull("")] == ["a1", "c1", "b1"]
    assert sorted(kim.found("orders")) == ["Orders keep UTC and zone.", "Orders keep local time."]
    stranger = memory_form("kim", "m9", "It was never shared.", "d1", owner="sam")
    assert kim.push(stranger)["results"] == ["refused: it is not shared here"]


def test_what_is_withdrawn_goes_and_what_was_on_its_way_is_not_taken(sam, kim):
    sam.push(item_form("sam", OTTER), memory_form("sam", "m1", "Orders keep UTC.", "a1"))
    kim.push(item_form("kim", make_item("k1", "the badger digs")))
    kim.pull()
    end = {"project": SHOP, "origin": sam.origin}
    assert sam.server.send("/v1/sync/withdraw", end, token=sam.token).json == {"lines": 2}
    assert sam.server.send("/v1/sync/withdraw", end, token=sam.token).json == {"lines": 0}
    assert kim.pull() == [{"withdrawn": {"user": "sam"}}]
    assert kim.texts() == ["the badger digs"]
    assert kim.found("otter") == kim.found("orders") == []
    late = sam.push(item_form("sam", OTTER))
    assert (late["results"], late["withdrawn"]) == ([], True)
    again = Sender(sam.server, sam.token)
    assert again.push(item_form("sam", OTTER))["results"] == ["stored"]
    assert kim.pull() == [item_form("sam", OTTER)]


def test_a_store_need_not_read_what_it_has_sent_unless_others_came_between(sam, kim):
    first = sam.push(item_form("sam", OTTER))
    sam.cursor = first["cursor"]
    assert sam.pull() == []
    kim.push(item_form("kim", make_item("k1", "the badger digs")))
    assert sam.push(item_form("sam", make_item("r2", "the owl")))["cursor"] == ""
    assert len(sam.pull()) == 2


def test_a_cursor_that_the_database_never_gave_says_begin_anew(team, sam, kim):
    sam.push(item_form("sam", OTTER))
    kim.pull()
    with psycopg.connect(url_of(team.name, "postgres"), autocommit=True) as database:
        database.execute("DELETE FROM yester.share_batch")
    for cursor in (kim.cursor, "1-ffff", "x", "9"):
        path = f"/v1/sync/pull?project={SHOP}&cursor={cursor}"
        assert kim.server.status(path, kim.token) == 410
    assert len(kim.texts()) == 1


def test_of_a_private_project_or_another_tenant_nobody_learns_anything(
    team, server, tenant, sam, kim
):
    sam.push(item_form("sam", OTTER))
    other = Sender(server, team.token("eve", "other", role="owner"))
    with team.directory(tenant) as directory:
        directory.limit_project(SHOP, ["sam"])
    narrow = Sender(server, team.token("lee", tenant, projects=("git:example.com/acme/zoo",)))
    for stranger in (kim, other, narrow):
        for project in (SHOP, "git:example.com/acme/none"):
            said = server.ask("GET", f"/v1/sync/pull?project={project}", token=stranger.token)
            assert (said.status, said.json["detail"]) == (404, f"no project is called '{project}'")
        end = {"project": SHOP, "origin": "origin-of-a-stranger"}
        assert server.send("/v1/sync/withdraw", end, token=stranger.token).json == {"lines": 0}
    body = {"project": SHOP, "origin": kim.origin, "batch": 1, "lines": []}
    assert server.send("/v1/sync/push", body, token=kim.token).status in (403, 409)
    assert server.send("/v1/sync/push", body, token=narrow.token).status in (403, 409)
    assert sam.texts() == [OTTER.body]
    reader = Sender(server, team.token("pat", tenant, role="reader"))
    assert server.send("/v1/sync/push", body, token=reader.token).status == 403


def test_who_waits_is_told_as_soon_as_there_is_something(sam, kim):
    sam.push(item_form("sam", OTTER))
    kim.pull()
    told: list = []
    thread = threading.Thread(target=lambda: told.extend(kim.pull(wait=20)))
    thread.start()
    sam.push(item_form("sam", make_item("r2", "the owl")))
    thread.join(15)
    assert [one["item"]["item"]["body"] for one in told] == ["the owl"]


@pytest.mark.parametrize("told", ["before", "after", "never"])
def test_what_moves_to_another_shared_project_is_gone_from_the_first_for_who_reads_that_late(
    sam, kim, told
):
    other = "git:example.com/acme/shed"
    gone = form_line(GoneLine("message", "r1", source="team:sam:claude-code"))
    moved = item_form("sam", make_item("r1", OTTER.body, other))
    sam.push(item_form("sam", OTTER))
    assert kim.pull() != []
    if told == "before":
        assert sam.push(gone)["results"] == ["stored"]
    assert sam.push(moved, project=other)["results"] == ["stored"]
    if told == "after":
        assert sam.push(gone)["results"] == ["same"]
    first = kim.cursor
    assert [next(iter(form)) for form in kim.pull()] == ["gone"]
    assert kim.pull("", project=other) == [moved]
    assert kim.found("otter") == [OTTER.body]
    assert sam.push(item_form("sam", OTTER))["results"] == ["stored"]  # and back
    assert [next(iter(form)) for form in kim.pull(first)] == ["item"]
    assert [next(iter(form)) for form in kim.pull("", project=other)] == ["gone"]
