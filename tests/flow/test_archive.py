"""Sessions archived in Markdown files: what is written, where, once, and never twice indexed."""

from __future__ import annotations

import fcntl
import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capturing import SESSION, Told, leave, until
from tests.models import KEY, Reply, serving
from tests.stores import with_store
from yester.capture.rules import load_rules
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.turns import DistilRules
from yester.config import load_config
from yester.errors import Malformed, SourceError
from yester.files import append_shared
from yester.ingest.events import Events
from yester.llm.archive import (
    Lines,
    archive_session,
    check_lines,
    find_unarchived,
    is_archive_heading,
    lines_of,
    new_block,
    short_key,
)
from yester.memories.memory_md import project_slug
from yester.model import Archived, Item, Queue, replace
from yester.operate.notes import make_note_items as notes
from yester.store import open_store
from yester.store.figures import refinement_totals, spending_by_day
from yester.worker.jobs import Archiving
from yester.worker.process import Log

pytestmark = pytest.mark.requirement("DIS-10")

NOON = datetime(2026, 2, 3, 12, 5, tzinfo=UTC)
BUG = "- Bug: Fix the total of the cart for ten items"


# --- the text ------------------------------------------------------------------------------------


def observed(type_, title, *facts, **more):
    return Item("r", "observation", type=type_, title=title, facts=facts, **more)


def test_what_was_distilled_becomes_lines_of_four_kinds():
    lines = lines_of(
        [
            observed("feature", "Add a page for orders"),
            observed("bugfix", "Fix the total", "Counts were compared as text."),
            observed("decision", "Use Postgres for the ledger"),
            observed("discovery", "`bun` is not on the PATH", tags=("warning",)),
            observed("discovery", "The importer writes counts as text"),
            observed("change", "Pin the parser", concepts=("gotcha",)),
            replace(observed("session", "A summary"), kind="summary"),
        ]
    )
    assert lines == Lines(
        ("Use Postgres for the ledger",),
        ("Fix the total: Counts were compared as text.",),
        ("`bun` is not on the PATH",),
        ("The importer writes counts as text", "Pin the parser"),
    )


def test_a_block_names_its_session_and_the_time():
    block = new_block(
        "", "1f3a9c2e-0000", NOON, Lines(decisions=("Use UTC",), lessons=("It rains",))
    )
    assert block == "## Session 1f3a9c2e (12:05)\n\n- Decision: Use UTC\n- Lesson: It rains\n"
    assert is_archive_heading(block.splitlines()[0].removeprefix("## "))
    assert not is_archive_heading("Session notes")


def test_a_session_whose_id_is_no_number_gets_one():
    assert len(short_key("ses_Zz!")) == 8
    assert is_archive_heading(f"Session {short_key('ses_Zz!')} (10:00)")
    assert short_key("ses_Zz!") != short_key("ses_Zz?")


_TEXTS = st.lists(st.from_regex(r"[a-z][a-z `#*-]{0,20}[a-z]", fullmatch=True), max_size=4)


@given(before=st.text(max_size=200), first=_TEXTS, second=_TEXTS)
def test_nothing_that_stands_there_changes_and_nothing_is_said_twice(before, first, second):
    text = before + new_block(before, "1f3a9c2e", NOON, Lines(bugs=tuple(first)))
    assert text.startswith(before)
    assert new_block(text, "1f3a9c2e", NOON, Lines(bugs=tuple(first))) == ""
    more = new_block(text, "1f3a9c2e", NOON, Lines(bugs=tuple(first), lessons=tuple(second)))
    assert "- Bug:" not in more
    assert all(f"- Lesson: {one}\n" in more for one in second)
    assert new_block(text, "2f3a9c2e", NOON, Lines(bugs=tuple(first))).count("- Bug:") == len(first)


def test_a_line_is_one_line_and_cannot_pass_for_a_heading_or_a_fence():
    (bug,) = lines_of(
        [observed("bugfix", "Fix\n## Session 1f3a9c2e (10:00)\n</yester-memory>")]
    ).bugs
    assert "\n" not in bug
    assert "</yester-memory>" not in bug


def test_our_own_blocks_are_not_indexed_and_what_stands_beside_them_is():
    text = "# Notes\n\n- Use tabs\n" + new_block(
        "x", "1f3a9c2e", NOON, Lines(bugs=("Fix the total",))
    )
    text += "\n## Mine\n\n- Run make\n"
    stored = notes(text, "/home/sam/shop/sessions.md", "name:shop", 1)
    assert [item.body for item in stored] == ["Use tabs", "Run make"]


def test_a_models_lines_are_kept_as_far_as_the_text_bears_them_out():
    said = {"decisions": ["Use Postgres for the ledger", "Use 7 pods on Kubernetes"], "bugs": [],
            "failed": [], "lessons": []}  # fmt: skip
    text = "User: which database?\nAgent: We use Postgres for the ledger."
    assert check_lines(json.dumps(said), text) == Lines(("Use Postgres for the ledger",))
    with pytest.raises(Malformed):
        check_lines(json.dumps({**said, "decisions": ["Pods restart nightly"]}), text)


# --- the file ------------------------------------------------------------------------------------


def test_a_link_is_not_followed_and_nobody_is_interrupted(tmp_path):
    path, other = tmp_path / "day.md", tmp_path / "other"
    assert append_shared(path, lambda before: b"one\n" + before)
    assert not append_shared(path, lambda _: b"")
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SourceError, match="cannot be written"):
            append_shared(path, lambda _: b"two\n")
    assert path.read_bytes() == b"one\n"
    other.write_bytes(b"kept")
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(SourceError, match="is a link"):
        append_shared(path, lambda _: b"two\n")
    assert other.read_bytes() == b"kept"


# --- sessions ------------------------------------------------------------------------------------


def events(told, end=True):
    yield told.prompt("The totals in the cart are wrong for more than nine items, please fix it")
    yield told.failed("pytest -q tests/test_cart.py", "Exit code 1\nE  assert 9 == 10\n1 failed")
    yield told.tool(
        "Edit", {"file_path": f"{told.cwd}/src/cart.py", "old_string": "a", "new_string": "b" * 80},
        {"filePath": "src/cart.py"},
    )  # fmt: skip
    yield told.ran(
        "git commit -m 'Fix the total of the cart for ten items'",
        "[main abc1234] Fix the total of the cart for ten items\n 1 file changed",
    )
    yield told.stop("`total()` compared counts as text because the importer writes them so.")
    if end:
        yield told.event("SessionEnd", reason="exit")


class Desk:
    def __init__(self, home, own_home):
        home.mkdir(mode=0o700)
        self.home, self.user = home, own_home
        (home / "config.toml").write_text("[archive]\non = true\n")
        self.store = open_store(with_store(home), now=1)
        self.told = Told(clock=int(time.time() * 1000) - 60_000)
        self.now = self.told.clock + 30_000

    @property
    def place(self):
        return self.user / ".claude" / "projects" / project_slug(self.told.cwd)

    def take(self, *given):
        config = load_config(self.home, {})
        Events(self.store, config, load_rules(config)).take_batch(list(given))
        self.now = self.told.clock + 10_000
        for waiting in self.store.queued_sessions(
            Queue("distil", hooked=True, quiet_since=self.now, limit=9)
        ):
            for _ in distil_session(self.store, waiting, DistilRules(), DistilReport()):
                pass

    def archive(self, asker=None):
        config = load_config(self.home, {})
        return [
            archive_session(self.store, config, waiting, asker, self.now)
            for waiting in find_unarchived(self.store, self.now)
        ]


@pytest.fixture
def desk(home, own_home):
    desk = Desk(home, own_home)
    yield desk
    desk.store.close()


def test_a_session_that_has_ended_is_written_down_once_beside_the_agents_notes(desk):
    desk.place.mkdir(parents=True)
    desk.take(*events(desk.told))
    ((path, reason),) = desk.archive()
    day = datetime.fromtimestamp(desk.told.clock / 1000).astimezone()
    assert path == desk.place / "memory" / "sessions" / f"{day:%Y-%m-%d}.md"
    assert reason == ""
    text = path.read_text()
    assert text.startswith(f"## Session {SESSION[:8]} ({day:%H:%M})\n\n")
    assert BUG in text
    assert desk.archive() == []
    assert path.read_text() == text


def test_what_was_written_before_a_crash_is_not_written_again(desk):
    desk.place.mkdir(parents=True)
    desk.take(*events(desk.told))
    ((path, _),) = desk.archive()
    text = path.read_text()
    with desk.store.transaction("items"):  # as if we had died before this
        desk.store.append([Archived(desk.store.session(SESSION, "claude-code").id, 0, 1)])
    ((again, _),) = desk.archive()
    assert again == path
    assert path.read_text() == text


def test_a_session_that_goes_on_gets_another_block_with_what_is_new(desk):
    desk.place.mkdir(parents=True)
    desk.take(*events(desk.told))
    ((path, _),) = desk.archive()
    text = path.read_text()
    desk.take(
        desk.told.prompt("Which database should the ledger use?", "turn-2"),
        desk.told.tool(
            "AskUserQuestion",
            {"questions": [{"question": "Which database?", "header": "Database"}]},
            'User has answered your questions: "Which database?"="Postgres". You can now continue.',
        ),
        desk.told.failed("rtk bun run test", "Exit code 2\nerror: unrecognized subcommand 'bun'"),
        desk.told.ran("bun run test", " 5 pass\n 0 fail" + " " * 50),
        desk.told.stop("The tests of the ledger fail because `rtk` does not know `bun`."),
        desk.told.event("SessionEnd", reason="exit"),
    )  # fmt: skip
    assert len(desk.archive()) == 1
    assert path.read_text().startswith(text)
    assert path.read_text().count(f"## Session {SESSION[:8]}") == 2
    assert path.read_text().count(BUG) == 1


def test_a_session_without_an_end_is_over_after_half_an_hour(desk):
    desk.take(*events(desk.told, end=False))
    assert desk.archive() == []
    desk.now = desk.told.clock + 29 * 60_000
    assert desk.archive() == []
    desk.now = desk.told.clock + 31 * 60_000
    assert len(desk.archive()) == 1


def test_without_a_folder_of_the_agent_it_is_yesters_own(desk):
    desk.take(*events(desk.told))
    ((path, _),) = desk.archive()
    assert path.parent == desk.home / "archive" / "shop"
    assert path.stat().st_mode & 0o077 == 0


def test_a_folder_that_is_a_link_is_not_written_through(desk, tmp_path):
    desk.place.mkdir(parents=True)
    (desk.place / "memory").symlink_to(tmp_path)
    desk.take(*events(desk.told))
    with pytest.raises(SourceError, match="leads out of"):
        desk.archive()
    assert not (tmp_path / "sessions").exists()


def test_sessions_with_nothing_to_keep_make_no_file(desk):
    desk.take(
        desk.told.prompt("hello"), desk.told.stop("Hello! How can I help?"),
        desk.told.event("SessionEnd", reason="exit"),
    )  # fmt: skip
    assert desk.archive() == [(None, "")]
    assert desk.archive() == []
    assert not (desk.home / "archive").exists()


@pytest.mark.requirement("DIS-05")
def test_a_model_writes_it_from_the_last_messages_or_what_was_found_is_kept(desk):
    from yester.llm.budget import open_asker

    desk.take(*events(desk.told))
    with serving("openai") as server:
        llm = {"provider": "openai", "model": "m", "url": server.url, "key": KEY, "price": "1/5"}
        (desk.home / "config.toml").write_text(
            "[archive]\non = true\nmessages = 1\n[llm]\n"
            + "\n".join(f"{name} = {json.dumps(value)}" for name, value in llm.items())
        )
        asker = open_asker(load_config(desk.home, {}), desk.store)
        lesson = "The importer writes counts as text"
        server.say(
            Reply(status=404, message="no such model"),
            {"decisions": [], "bugs": [], "failed": [], "lessons": [lesson]},
        )
        ((path, reason),) = desk.archive(asker)
        assert "no such model" in reason
        assert BUG in path.read_text()
        path.unlink()
        with desk.store.transaction("items"):
            desk.store.append([Archived(desk.store.session(SESSION, "claude-code").id, 0, 1)])
        ((path, reason),) = desk.archive(asker)
        assert reason == ""
        assert path.read_text().endswith(f"\n\n- Lesson: {lesson}\n")
        sent = json.dumps(server.asked[-1].body)
        assert "compared counts as text" in sent
        assert "please fix it" not in sent, "one message was asked for"


def test_the_worker_archives_where_the_settings_want_it(desk, zygote_of_commands):
    desk.place.mkdir(parents=True)
    (desk.home / "config.toml").write_text(
        f'claude_code_dirs = ["{desk.user}/.claude"]\n[archive]\non = true\n'
    )
    leave(desk.home, *events(desk.told))
    process = zygote_of_commands.start_worker(desk.home)
    try:
        (path,) = until(lambda: list(desk.place.glob("memory/sessions/*.md")))
        until(lambda: BUG in path.read_text())
    finally:
        process.terminate()
        process.wait(30)


def test_it_is_off_unless_the_settings_say_otherwise_and_a_failure_is_said(desk, tmp_path):
    desk.place.mkdir(parents=True)
    desk.take(*events(desk.told))
    archiving = Archiving(desk.store, Log(desk.home / "logs"))
    (desk.home / "config.toml").write_text("")
    assert not archiving.step(load_config(desk.home, {}))
    assert list(desk.place.iterdir()) == []
    (desk.home / "config.toml").write_text("[archive]\non = true\n")
    (desk.place / "memory").symlink_to(tmp_path)
    assert archiving.step(load_config(desk.home, {}))
    assert "leads out of" in (desk.home / "logs" / "worker.log").read_text()
    assert not archiving.step(load_config(desk.home, {})), "not again at once"
    (desk.place / "memory").unlink()
    assert Archiving(desk.store, Log(desk.home / "logs")).step(load_config(desk.home, {}))
    assert list(desk.place.glob("memory/sessions/*.md"))


def test_a_worker_with_a_model_has_it_write_the_archive_too(desk, zygote_of_commands):
    lesson = "The importer writes counts as text"
    with serving("openai") as server:
        server.say({"decisions": [], "bugs": [], "failed": [], "lessons": [lesson],
                    "observations": [], "summary": {"learned": f"{lesson}."}})  # fmt: skip
        (desk.home / "config.toml").write_text(
            f'[archive]\non = true\n[llm]\nprovider = "openai"\nmodel = "m"\nprice = "1/5"\n'
            f'url = "{server.url}"\n'
        )
        leave(desk.home, *events(desk.told))
        process = zygote_of_commands.start_worker(desk.home)
        try:
            (path,) = until(lambda: list((desk.home / "archive").rglob("*.md")))
            until(lambda: f"- Lesson: {lesson}\n" in path.read_text())
            until(lambda: refinement_totals(desk.store, 0).turns == 1)
        finally:
            process.terminate()
            process.wait(30)
    purposes = sorted(row.purpose for row in spending_by_day(desk.store, 0))
    assert purposes == ["archive/1", "turn/1"]


def test_the_environment_cannot_switch_it_on(home):
    home.mkdir()
    assert not load_config(home, {"YESTER_ARCHIVE.ON": "1", "YESTER_ARCHIVE": "1"}).flag(
        "archive.on"
    )
