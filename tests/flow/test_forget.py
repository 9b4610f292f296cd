"""What is forgotten is gone from every byte, with all that came of it, and stays gone."""

from __future__ import annotations

import json
import shutil
import time

import pytest

import yester
from tests.serving import serving
from tests.stores import with_store
from yester.errors import NotYours, UsageError
from yester.ingest.prepare import prepare_item
from yester.known_secrets import KnownSecrets
from yester.llm.archive import short_key
from yester.memory import Memory
from yester.model import Change, Entry, Filters, Item, Memo, Turn, replace
from yester.operations.forget import (
    ForgetRequest,
    RedactRequest,
    forget_items,
    redact_again,
    redact_secret,
)
from yester.operations.privacy import VerifyRequest, verify_absence
from yester.text.document import content_hash, expand_item

pytestmark = pytest.mark.requirement("STO-07")

SECRET = "falconmerger"
ONE, OTHER = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000001"


def bytes_of(home) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


def holds(home, text=SECRET) -> bool:
    """By our own eyes, in the bytes that are there."""
    found = bytes_of(home).lower()
    return any(text.encode(form) in found for form in ("utf-8", "utf-16-le", "utf-16-be"))


@pytest.fixture
def talked(run, transcript, home):
    """Two sessions, what was distilled of them, a backup, and traces of the first everywhere."""
    first = transcript(ONE, branch=f"feat/{SECRET}")
    first.other("custom-title", customTitle=f"Plan the {SECRET}")
    first.user(f"From now on always call the deal {SECRET} in the contract folder.")
    first.assistant(f"The {SECRET} contract is in place; I changed deal.py for it.")
    first.result(first.call("Write", file_path="/home/sam/code/shop/deal.py", content=SECRET), "ok")
    first.talk(2, SECRET)
    transcript(OTHER).talk(2, "plover")
    for words in (("index",), ("distil", "--backfill"), ("worker", "drain"), ("backup",)):
        assert run(*words).code == 0
    archive = home / "archive" / "shop"
    archive.mkdir(parents=True)
    (archive / "2026-02-03.md").write_text(
        f"My own words\n\n## Session {short_key(ONE)} (10:00)\n\n- Bug: {SECRET}\n\n"
        f"## Session {short_key(OTHER)} (11:00)\n\n- Bug: plover\n"
    )
    (home / "spool" / "bad").mkdir(parents=True, exist_ok=True)
    (home / "spool" / "bad" / "1-1").write_text(json.dumps({"session_id": ONE, "x": SECRET}))
    (home / "logs" / "worker.log").write_text(f"read /tmp/{SECRET}.jsonl\n")
    assert holds(home)
    return first


@pytest.mark.requirement("DIS-10", "STO-06")
def test_a_forgotten_session_is_in_no_byte_and_does_not_come_back(run, home, talked):
    before = bytes_of(home / "backups")
    shown = run("forget", "--session", ONE[:8])
    assert shown.code == 0
    assert "There is no undo" in shown.out
    assert f"rm -- {talked.path}" in shown.out
    assert bytes_of(home / "backups") == before
    assert run("forget", "--verify", SECRET.upper()).code == 1
    assert run("forget", "--session", ONE[:8], "--yes").code == 0
    for step in ((), ("index",), ("distil", "--backfill"), ("restore", "latest"), ("index",)):
        assert not step or run(*step).code == 0
        assert not holds(home), step
    proof = run("forget", "--verify", SECRET, "--json")
    assert (proof.code, proof.json["absent"], proof.json["databases"]) == (0, True, 3)
    assert "plover" in run("recall", "plover").out
    kept = (home / "archive" / "shop" / "2026-02-03.md").read_text()
    assert "My own words" in kept
    assert "plover" in kept
    assert run("doctor", "--json").json["findings"]
    talked.clock = int(time.time()) + 60
    talked.user(f"Said anew: {SECRET}")
    run("index")
    assert "Said anew" in run("recall", SECRET).out


def test_a_backup_from_elsewhere_obeys_as_well(run, home, talked, tmp_path):
    (backup,) = (home / "backups").iterdir()
    elsewhere = tmp_path / "copy.db"
    elsewhere.write_bytes(backup.read_bytes())
    assert run("forget", "--project", "shop", "--yes").code == 0
    assert run("restore", str(elsewhere)).code == 0
    assert not holds(home)
    assert not holds(home, "plover")
    assert run("index").code == 0
    assert not holds(home, "/home/sam/code/shop")


def add(memory, **more):
    defaults = {"kind": "message", "project": "shop", "source": "t", "agent": "codex"}
    memory.add([defaults | {"session": ONE, "ref": ref, **one} for ref, one in more.items()])


def left(memory) -> set[str]:
    return {hit.ref for hit in memory.recall("", k=50)}


@pytest.mark.requirement("DEL-13")
def test_each_condition_chooses_what_it_names_and_nothing_else(memory):
    add(
        memory,
        words={"text": "The red kite flies at noon", "epoch": 1_000},
        phrase={"text": "noon is when the kite is red", "epoch": 2_000},
        file={"text": "About a file", "files_modified": ["src/kite.py"], "epoch": 3_000},
        agent={"text": "From another agent", "agent": "cursor", "epoch": 4_000},
        late={"text": "Long after that", "epoch": 9_000},
    )
    for condition, gone in (
        ({"query": '"red kite" noon'}, {"words"}),
        ({"files": ["kite.py"]}, {"file"}),
        ({"agent": "cursor"}, {"agent"}),
        ({"dateStart": "1970-01-01T02:00:00Z"}, {"late"}),
    ):
        before = left(memory)
        shown = memory.forget(**condition)
        assert (shown.done, shown.items, left(memory)) == (False, 1, before)
        assert memory.forget(**condition, yes=True).done
        assert left(memory) == before - gone
    (last,) = memory.recall("kite")
    assert memory.forget(ids=[last.id], yes=True).items == 1
    with pytest.raises(UsageError, match="nothing says what"):
        memory.forget(yes=True)


def test_what_is_brought_again_is_not_stored_unless_it_is_newer(memory):
    told = {"text": "The tender is due on the ninth of May", "epoch": 1_000}
    add(memory, one=told)
    assert memory.forget(query="tender", yes=True).items == 1
    add(memory, one=told, under_another_name=told)
    assert not memory.recall("tender")
    add(memory, anew=told | {"epoch": int(time.time()) + 60})
    assert len(memory.recall("tender")) == 1
    kept = memory.remember("The tender is due in May", project="shop")
    (item,) = memory.store.get([kept])
    assert memory.forget(ids=[kept], yes=True).items == 1
    assert memory.store.was_dropped(item.source, item.ref)
    assert memory.remember("The tender is due in May", project="shop") > kept


def test_a_memory_that_stays_loses_the_words_of_what_is_forgotten(memory):
    add(memory, p={"kind": "prompt", "text": "Forget the rule about bun, we use pnpm again"})
    store = memory.store
    item = Item("rule:x:0", "memory", project="name:shop", type="rule", title="Use bun", body="bun")
    why = f"taken back in session {ONE[:8]}: Forget the rule about bun, we use pnpm again"
    with store.transaction("memories"):
        memo = Memo(item, "use-bun", content={"rule": "Use bun"}, since=1, reason=why)
        change = Change(0, 1, "sam", "retire", why, None, {"reason": why})
        id_ = store.put_memo(Entry(item, content_hash(item), expand_item(item)), memo, change)
    found = memory.forget(query="pnpm", yes=True)
    assert found.marked == [id_]
    (memo,) = store.memos(ids=[id_])
    assert memo.reason == f"taken back in session {ONE[:8]} (its words were forgotten)"
    assert store.entries(Change, {"item": id_})[0].after == {"reason": memo.reason}
    assert not holds(memory.home, "pnpm")


def test_what_it_had_taken_the_place_of_holds_again(memory):
    add(memory, old={"text": "Carts live in Redis"}, new={"text": "We dropped Redis for Postgres"})
    store = memory.store
    (old,), (new,) = store.find_by_ref("old"), store.find_by_ref("new")
    with store.transaction("items"):
        changed = replace(old, status="superseded"), replace(new, supersedes=old.id)
        store.put([prepare_item(one) for one in changed])
    assert left(memory) == {"new"}
    memory.forget(query="postgres", yes=True)
    assert left(memory) == {"old"}


def test_a_forgotten_note_leaves_its_name_nowhere_and_the_file_is_named(memory, run, tmp_path):
    notes = tmp_path / "shop" / "CLAUDE.md"
    notes.parent.mkdir()
    notes.write_text("# Deals\n\n- The falconmerger closes in May\n\n- Plovers land at noon\n")
    assert run("import", "notes", str(notes)).code == 0
    found = memory.forget(query=SECRET, yes=True)
    assert [(one.path, one.command) for one in found.elsewhere] == [(str(notes), f"edit {notes}")]
    notes.write_text(notes.read_text() + "\n- Kites fly at dawn\n")  # it still stands there
    assert run("import", "notes", str(notes)).code == 0
    assert not holds(memory.home)
    assert "Kites" in run("recall", "kites dawn").out


def test_a_forgotten_memory_leaves_its_name_to_no_sync(memory, run, tmp_path):
    for text in (f"The {SECRET} runs on Postgres", "Plovers land at noon"):
        memory.remember(text, type="decision", project="shop")
    folder = tmp_path / "shop" / ".claude" / "memory"
    folder.mkdir(parents=True)
    sync = ("memory", "sync", str(folder), "--project", "shop")
    assert run(*sync).code == 0
    assert len(list(folder.rglob("*.json"))) == 2
    assert memory.forget(query=SECRET, yes=True).items == 1
    assert not holds(memory.home)
    for step in (sync, ("import", "claude-memory", str(folder), "--project", "shop")):
        assert run(*step).code in (0, 3)
        assert not holds(memory.home), step
    assert [memo.slug for memo in memory.store.memos()] == ["plovers-land-at-noon"]


def test_an_agent_may_look_and_not_act(memory):
    add(memory, one={"text": "Something to keep"})
    with Memory(memory.home, {}, who="claude-code", origin="agent") as agent:
        assert forget_items(agent, ForgetRequest(query="something")).items == 1
        for act in (
            lambda: forget_items(agent, ForgetRequest(query="something", yes=True)),
            lambda: redact_again(agent, RedactRequest(yes=True)),
            lambda: redact_secret(agent, "correct horse"),
        ):
            with pytest.raises(NotYours):
                act()
    assert left(memory) == {"one"}


def test_words_go_from_titles_and_from_what_a_memory_once_said(memory, run, transcript):
    titled = transcript(ONE)
    titled.other("custom-title", customTitle=f"Plan the {SECRET}")
    titled.talk(1, "plover")
    assert run("index").code == 0
    id_ = memory.remember(f"The {SECRET} is in May", type="note", project="shop")
    memory.memories.edit(id_, {"title": "The deal", "content": {"text": "The deal is in May"}})
    assert memory.forget(query=SECRET, yes=True).items == 0
    assert not holds(memory.home)
    assert "deal" in memory.get([id_])[0].text
    assert run("index").code == 0
    assert not holds(memory.home)


def test_a_branch_called_so_does_not_come_back_with_its_transcript(run, home, transcript):
    for name, word in ((ONE, SECRET), (OTHER, "plover")):
        transcript(name, branch=f"feat/{SECRET}").talk(1, word)
    assert run("index").code == 0
    assert run("forget", "--query", SECRET, "--yes").code == 0
    assert not holds(home)
    assert run("index").code == 0
    assert not holds(home)
    assert "plover" in run("recall", "plover").out


def test_a_project_that_is_called_so_is_named_and_goes_by_its_own_word(run, home, transcript):
    transcript(ONE, cwd=f"/home/sam/code/{SECRET}").talk(1, "plover")
    run("index")
    transcript(OTHER).talk(1, SECRET)
    run("index")
    shown = run("forget", "--query", SECRET, "--yes")
    assert f"The project of this name as well: yester forget --project {SECRET}" in shown.out
    assert holds(home)
    assert run("forget", "--project", SECRET, "--yes").code == 0
    assert run("index").code == 0
    assert not holds(home)


@pytest.mark.requirement("IMP-06")
@pytest.mark.parametrize("what", [("--session", ONE), ("--project", "shop"), ("--query", SECRET)])
def test_an_export_made_before_brings_nothing_back(run, home, talked, tmp_path, what):
    notes = talked.path.parent / "memory" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_text("- The plover closes in May\n")
    lines = tmp_path / "all.jsonl"
    assert run("import", "notes", str(notes)).code == 0
    assert run("export", "jsonl", str(lines)).code == 0
    assert run("forget", *what, "--yes").code == 0
    assert not holds(home)
    assert run("import", "yester", str(lines), "--mine").code == 0
    assert not holds(home)
    assert holds(home, "code-shop") is (what[0] != "--project")
    with yester.open(home) as memory:
        kept = {one.id for one in memory.store.sessions(Filters())}
        assert {one.session for one in memory.store.entries(Turn)} <= kept


def test_an_event_that_waits_goes_however_its_letters_are_written(memory):
    add(memory, one={"text": "Grüße an den Falken"})
    for place in ("new", "bad"):
        event = memory.home / "spool" / place / "1-1"
        event.parent.mkdir(parents=True, exist_ok=True)
        event.write_text(json.dumps({"session_id": OTHER, "prompt": "Viele Grüße"}))
    memory.forget(query="grüße", yes=True)
    assert verify_absence(memory_of(memory.home), VerifyRequest(strings=["Grüße"])).absent


def test_it_is_found_in_every_form_a_file_can_have(memory):
    found = memory.home / "logs" / "other.log"
    found.parent.mkdir(exist_ok=True)
    for form in (
        "Grüße 4711",
        "GRÜSSE 4711",
        json.dumps("Grüße 4711"),
        "Grüße 4711".encode("utf-16-be"),
    ):
        found.write_bytes(b"x" * 99 + (form.encode() if isinstance(form, str) else form))
        proof = verify_absence(memory, VerifyRequest(strings=["nowhere", "grüße 4711"]))
        assert [(one.path, one.string) for one in proof.found] == [(str(found), 2)]
    found.unlink()
    assert verify_absence(memory, VerifyRequest(strings=["grüße 4711"])).absent


def test_the_viewers_server_forgets_on_the_users_word(home, run, transcript):
    transcript(ONE).talk(1, SECRET)
    run("index")
    with serving(home) as api:
        sam = api.user()
        assert api.send("/api/forget", {"session": ONE, "yes": True}).status == 403  # a program's
        assert api.send("/api/forget", {"session": ONE}).json["items"] == 3
        assert api.send("/api/forget", {"session": ONE, "yes": True}, token=sam).json["done"]
        assert api.send("/api/forget/verify", {"strings": [SECRET]}).json["absent"]
        assert api.get("/api/items")["count"] == 0
        assert api.failures == []


# --- redaction -----------------------------------------------------------------------------------

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.mark.requirement("OPS-07")
def test_todays_rules_are_applied_to_what_was_stored_before_and_to_backups(memory, run):
    item = Item("one", "message", project="name:shop", session=ONE, body=f"export T={TOKEN} done")
    with memory.store.transaction("items"):  # as a version did that knew no such token
        memory.store.put([Entry(item, content_hash(item), expand_item(item))])
    assert run("backup").code == 0
    assert TOKEN.encode() in bytes_of(memory.home)
    shown = run("redact", "--again")
    assert "1 secret in the store would be taken out" in shown.out
    assert TOKEN not in shown.out
    assert run("redact", "--again", "--yes").code == 0
    assert TOKEN.encode() not in bytes_of(memory.home)
    assert TOKEN[4:].lower().encode() not in bytes_of(memory.home)
    assert run("recall", "done").out.count("[redacted:")


@pytest.mark.requirement("OPS-07")
def test_a_named_secret_goes_everywhere_and_never_comes_back(home, run, tmp_path):
    value = 'hunter2"pass'
    with yester.open(with_store(home)) as memory:
        add(memory, one={"text": f"Log in with -p{value} please", "title": f"About {value}"})
        assert run("backup").code == 0
        (backup,) = (home / "backups").iterdir()
        elsewhere = str(shutil.copy(backup, tmp_path / "copy.db"))
        found = redact_secret(memory_of(home), value)
    assert found.secrets == {"named-secret": 2}
    with yester.open(home) as memory:
        add(memory, two={"text": f"Again: {json.dumps(value)} and {value}"})
        assert "hunter2" not in "".join(hit.text for hit in memory.recall("again"))
    assert run("restore", elsewhere).code == 0
    assert not holds(home, "hunter2")
    assert KnownSecrets(home).find(f"x{value}") == [(1, 1 + len(value), "named-secret")]
    with pytest.raises(UsageError, match="needs 6"):
        KnownSecrets(home).add("abc")


@pytest.mark.requirement("OPS-07")
def test_secrets_that_begin_and_end_alike_are_both_known(tmp_path):
    keys = [
        f"-----BEGIN RSA PRIVATE KEY-----\n{word * 40}\n-----END PRIVATE KEY-----" for word in "ab"
    ]
    for key in keys:
        KnownSecrets(tmp_path).add(key)
    text = f"one {keys[0]} two {keys[1]}x"
    found = KnownSecrets(tmp_path).find(text)
    assert [text[start:end] for start, end, _ in found] == keys


@pytest.mark.requirement("OPS-07")
def test_a_named_secret_goes_from_what_a_memory_is_called(memory, run, tmp_path):
    id_ = memory.remember("The gate opens with Sesame7Open", type="note", project="shop")
    memory.memories.edit(id_, {"title": "The gate", "content": {"text": "Ask the porter"}})
    other = memory.remember("The gate opens at noon", type="note", project="shop")
    called = memory.store.memos(ids=[other])[0].slug
    memory.remember("The door opens with Sesame7Open", type="note", project="shop")
    assert run("export", "jsonl", str(tmp_path / "all.jsonl")).code == 0
    redact_secret(memory_of(memory.home), "Sesame7Open")
    assert not holds(memory.home, "sesame7open")
    assert run("import", "yester", str(tmp_path / "all.jsonl"), "--mine").out == "nothing new\n"
    assert not holds(memory.home, "sesame7open")
    with yester.open(memory.home) as again:
        assert again.store.memos(ids=[other])[0].slug == called


def memory_of(home):
    return Memory(home, {}, who="sam", origin="user")


def test_privacy_says_what_is_stored_and_what_would_leave(home, run, transcript):
    transcript(ONE).talk(1, "plover")
    run("index")
    assert "private" not in run("privacy").out
    (home / "config.toml").write_text('[projects]\n"/home/sam/code/shop" = { private = true }\n')
    assert "shop (private)" in run("privacy").out
    told = run("privacy", "--json").json
    (shop,) = told["projects"]
    assert shop["private"]
    assert 1_770_000_000 < shop["oldest"] < shop["newest"] < 1_770_000_100
    assert shop["characters"] > 50
    assert [(one["project"], one["items"]) for one in told["projects"]] == [("shop", 3)]
    assert told["leaves"] == []
    (home / "config.toml").write_text(
        '[llm]\nprovider = "openai"\nurl = "http://sam:pw@127.0.0.1:9/v1"\n'
    )
    lines = run("privacy").out
    assert "127.0.0.1 (this machine)" in lines
    assert "pw@" not in lines
