"""The tools of the MCP server on real stores: what they find, leave out, and say of it."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import yester
from tests.capturing import answered, made, worker_that
from tests.stores import with_store
from yester.faces.mcp.calls import WORKFLOW, answer_call, open_for_tools
from yester.faces.mcp.server import Server, load_tools
from yester.faces.mcp.text import most_tokens
from yester.faces.python import open_memory
from yester.fence import strip_fenced
from yester.llm.questions import TYPES
from yester.memories.categories import CATEGORIES
from yester.model import Filters, Paging
from yester.store.figures import has_vectors

TOOLS = load_tools()
T = 1_770_000_000
Call = Callable[..., str]


def item(ref: int, text: str, **more: Any) -> dict[str, Any]:
    return {"ref": str(ref), "text": text, "project": "shop", "epoch": T + 60 * ref, **more}


RAW = [
    item(1, "Product pages are slow, can we cache them?", kind="prompt", role="user", session="s1"),
    item(2, "Redis keeps the pages for a minute.", kind="message", session="s1"),
    item(3, "Use redis, but never from the models.", kind="prompt", role="user", session="s1"),
    item(4, "# Plan\nDrop redis again.", kind="note", type="plan", title="Plan", session="s2"),
    item(5, "We dropped redis: stale prices.", kind="message", session="s2"),
    item(6, "Session about redis.", kind="summary", title="Without redis", session="s2"),
    item(7, "The pantry is one file.", kind="message", project="larder", session="s3"),
]
DISTILLED = item(
    8, "Pages come from a view.", kind="observation", type="decision", title="No redis any more",
    facts=["hit rate 31 %"], concepts=["trade-off"], files_modified=["shop/pages.py"],
    discovery_tokens=2400, session="s2",
)  # fmt: skip


@pytest.fixture
def call(home: Path, tmp_path: Path) -> Iterator[Call]:
    """A tool called in a folder of its own; an answer that tells of an error fails the test."""
    folder = tmp_path / "desk"
    folder.mkdir()
    memory = open_for_tools(str(home), str(folder), {"YESTER_EMBEDDER": "none"})

    def call(name: str, wrong: bool = False, /, **given: Any) -> str:
        text, failed = answer_call(TOOLS[name], lambda: memory, given)
        assert failed == wrong, text
        assert most_tokens(text) <= 2_500
        return text

    yield call
    memory.close()


@pytest.fixture
def store(home: Path) -> Path:
    fill(home, *RAW)
    return home


def fill(home: Path, *items: dict[str, Any]) -> None:
    with yester.open(with_store(home)) as memory:
        memory.add(items, embed="later")


def ids(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^(?:▶ )?#(\d+)", text, re.M)]


# --- search -----------------------------------------------------------------------------------


@pytest.mark.requirement("DEL-06", "DEL-05", "REC-09")
def test_a_search_gives_an_index_and_says_how_to_go_on(call, store):
    text = call("search", query="redis")
    assert sorted(ids(text)) == [2, 3, 4, 5, 6]
    assert re.search(r"^#5 · message, 2026-02-02, shop, 0\.\d\d, ~\d+t: “We dropped", text, re.M)
    assert "timeline(anchor=ID)" in text
    assert "get_observations(ids=[…])" in text
    assert strip_fenced(text) == "", "captured again it leaves nothing"


@pytest.mark.requirement("DEL-06", "REC-09")
def test_without_a_query_the_newest_come_first(call, store):
    assert ids(call("search", limit=3)) == [7, 6, 5]
    assert ids(call("search", limit=2, orderBy="date_asc")) == [1, 2]
    assert ids(call("search", limit=2, offset=6)) == [1]
    assert "No more items beyond offset 7" in call("search", offset=7)


@pytest.mark.requirement("DEL-06", "REC-09")
def test_filters_say_what_may_be_found(call, store):
    assert ids(call("search", project="larder")) == [7]
    assert ids(call("search", type="prompts")) == [3, 1]
    assert ids(call("search", obs_type="plan")) == [4]
    assert ids(call("search", obs_type="plan,decision")) == [4]
    assert ids(call("search", dateStart="2026-02-02", dateEnd="2026-02-02", limit=2)) == [7, 6]
    assert "No items" in call("search", dateEnd="2026-02-01")
    assert "No items" in call("search", dateStart="2026-02-03")
    assert "no project is called 'shpo'; did you mean shop?" in call("search", True, project="shpo")


@pytest.mark.requirement("DEL-06", "REC-09")
def test_a_type_that_nothing_can_have_is_an_error_and_one_that_nothing_has_is_not(call, store):
    wrong = call("search", True, obs_type="plan,bogus")
    assert "no type is called 'bogus'" in wrong
    for known in (*TYPES, *CATEGORIES, "todo", "compact"):
        assert "No items" in call("search", obs_type=known), known
    fill(store, item(10, "Somebody's own", type="bogus"))
    assert len(ids(call("search", obs_type="bogus"))) == 1


@pytest.mark.requirement("DEL-06")
def test_as_long_as_nothing_is_distilled_messages_stand_for_observations(call, store):
    text = call("search", query="redis", type="observations")
    assert sorted(ids(text)) == [2, 4, 5]
    assert "Nothing is distilled here yet: messages stand for observations." in text


@pytest.mark.requirement("DEL-06")
def test_distilled_observations_are_alone_where_they_fit_and_messages_where_none_does(call, store):
    fill(store, DISTILLED, item(9, "Kept by hand: redis", kind="memory"))
    found = call("search", query="redis", type="observations")
    assert sorted(ids(found)) == [4, 8, 9]
    assert "messages" not in found
    assert "beyond offset 3" in call("search", query="redis", type="observations", offset=3)
    pages = call("search", query="minute", type="observations")
    assert ids(pages) == [2]
    assert "No observation fits: these are messages." in pages
    # Of a project of which nothing is distilled, too.
    assert ids(call("search", query="pantry", type="observations", project="larder")) == [7]


@pytest.mark.requirement("DEL-06")
def test_sessions_are_found_by_what_was_said_in_them(call, home, transcript, run):
    for number, topic in ((1, "redis"), (2, "pantry")):
        name = f"{number}aaaaaaa-0000-4000-8000-00000000000{number}"
        transcript(name, clock=T + number * 10_000).talk(2, topic)
    assert run("index").code == 0
    text = call("search", query="redis", type="sessions")
    assert re.findall(r"^S\w+", text, re.M) == ["S1aaaaaaa"]
    assert "2 prompts" in text
    best = int(re.search(r"best #(\d+)", text)[1])
    assert "redis" in call("get_observations", ids=[best])
    newest = call("search", type="sessions", limit=1)
    assert re.findall(r"^S\w+", newest, re.M) == ["S2aaaaaaa"]
    assert "There may be more: offset=1." in newest
    assert "pantry" in call("timeline", anchor="S2aaaaaaa")


@pytest.mark.requirement("DEL-06")
def test_an_index_that_does_not_fit_says_how_many_are_left_and_how_to_get_them(call, home):
    words = "the box had no memory left and every page was built again from the database "
    fill(home, *(item(n, f"redis {n} " + words * 6, kind="message") for n in range(1, 61)))
    first = call("search", limit=60, orderBy="date_asc")
    said = re.search(r"(\d+) more not shown: call search again with offset=(\d+)", first)
    left, offset = said.groups()
    assert int(left) + int(offset) == 60
    assert ids(first) == list(range(1, int(offset) + 1))
    second = call("search", limit=60, orderBy="date_asc", offset=int(offset))
    assert ids(second)[0] == int(offset) + 1
    usual = call("search", query="redis")
    assert len(ids(usual)) == 20, "the usual twenty always fit"
    assert "There may be more: offset=20." in usual


@pytest.mark.requirement("DEL-06")
def test_a_search_that_finds_nothing_says_what_to_try(call, store):
    text = call("search", query="kubernetes")
    assert 'No items for "kubernetes"' in text
    assert "say so rather than guess" in text


@pytest.mark.requirement("REC-06")
def test_with_cross_project_off_only_the_project_at_hand_is_searched(call, store):
    (store / "config.toml").write_text("cross_project = false\n")
    assert "No items" in call("search", query="redis")
    assert ids(call("search", query="redis", project="shop"))


# --- timeline and whole items -----------------------------------------------------------------


@pytest.mark.requirement("DEL-06", "REC-11")
def test_a_timeline_has_three_on_each_side_and_marks_the_anchor(call, home):
    fill(home, *(item(n, f"step {n}", kind="message") for n in range(1, 21)))
    text = call("timeline", anchor=10)
    assert ids(text) == [7, 8, 9, 10, 11, 12, 13]
    assert re.search(r"^▶ #10 · message, 2026-02-02 \d\d:\d\d, shop", text, re.M)
    assert ids(call("timeline", anchor="#10", depth_before=0, depth_after=1)) == [10, 11]
    assert ids(call("timeline", query="step 4", depth_after=0)) == [1, 2, 3, 4]
    assert ids(call("timeline", anchor="latest")) == [17, 18, 19, 20]
    assert ids(call("timeline", anchor="2026-02-03")) == [18, 19, 20]
    assert "no item #99" in call("timeline", True, anchor="99")
    assert "both missing" in call("timeline", True)
    assert "no other anchor" in call("timeline", True, anchor="10", query="step")


@pytest.mark.requirement("DEL-06")
def test_a_timeline_that_does_not_fit_loses_what_is_farthest_and_says_how_to_go_on(call, home):
    words = "the box had no memory left and every page was built again from the database "
    fill(home, *(item(n, f"step {n} " + words * 6, kind="message") for n in range(1, 102)))
    text = call("timeline", anchor=51, depth_before=50, depth_after=50)
    shown = ids(text)
    assert 51 in shown
    assert shown == list(range(shown[0], shown[-1] + 1))
    assert f"{shown[0] - 1} earlier not shown: call timeline with anchor={shown[0]}, " in text
    assert f"{101 - shown[-1]} later not shown: call timeline with anchor={shown[-1]}, " in text
    before = call("timeline", anchor=shown[0], depth_before=5, depth_after=0)
    assert ids(before) == list(range(shown[0] - 5, shown[0] + 1))


@pytest.mark.requirement("DEL-06", "DEL-11")
def test_whole_items_have_all_that_is_known_of_them(call, store):
    fill(store, DISTILLED)
    text = call("get_observations", ids=[8, "5", 404])
    assert ids(text) == [8, 5]
    for part in (
        "No redis any more", "Pages come from a view.", "- hit rate 31 %", "concepts: trade-off",
        "files changed: shop/pages.py", "made from about 2,400 tokens of work",
        "There is no #404", "We dropped redis",
    ):  # fmt: skip
        assert part in text
    assert "no item #404, #405" in call("get_observations", True, ids=[404, 405])


@pytest.mark.requirement("DEL-06")
def test_whole_items_that_do_not_fit_are_left_for_the_next_call(call, home):
    fill(home, *(item(n, f"item {n} " + "word " * 900, kind="message") for n in range(1, 6)))
    text = call("get_observations", ids=[1, 2, 3, 4, 5])
    shown = ids(text)
    left = [n for n in range(1, 6) if n not in shown]
    assert shown
    assert f"{len(left)} more not shown: call get_observations with ids=[{left[0]}" in text
    assert ids(call("get_observations", ids=left))[0] == left[0]


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize("lump", ["words and more ", "a1B2", "潮風ランプ", "\n- line"])
def test_an_item_larger_than_an_answer_is_read_in_parts(call, home, lump):
    body = "".join(f"{lump}{n} " for n in range(1_500)).strip()
    fill(home, item(1, body, kind="message"))
    parts, wanted = [], "1"
    while wanted:
        text = call("get_observations", ids=[wanted])
        lines = text.splitlines()
        start = next(at for at, line in enumerate(lines) if line.startswith("#1 "))
        end = next(at for at, line in enumerate(lines[start + 1 :]) if not line.startswith("> "))
        parts.append("\n".join(line[2:] for line in lines[start + 1 : start + 1 + end]))
        more = re.search(r'ids=\["(1@\d+)"\]', text)
        wanted = more[1] if more else ""
    assert "".join(parts) == body
    assert len(parts) > 1


@pytest.mark.requirement("DEL-05", "DEL-06")
def test_the_workflow_is_a_tool_of_its_own(call, home):
    assert call("__IMPORTANT") == WORKFLOW
    order = [WORKFLOW.index(word) for word in ("search(", "timeline(", "get_observations(")]
    assert order == sorted(order)


# --- saving -----------------------------------------------------------------------------------


@pytest.mark.requirement("DEL-06")
def test_what_is_saved_is_found_again_in_the_project_at_hand(call, home):
    text = call("save_memory", text="Times are stored in UTC.", title="UTC everywhere")
    assert text == "Saved in project desk: #1."
    found = call("search", query="times utc", type="observations")
    assert "#1 ★ memory" in found
    assert "UTC everywhere" in found
    again = call("save_memory", text="Times are stored in UTC.", title="UTC everywhere")
    assert again == "Known already in project desk: #1. Nothing was changed."
    with yester.open(home) as memory:
        (kept,) = memory.store.select(Filters(), Paging(10))
        (project,) = memory.store.projects()
    assert (kept.origin, kept.kind) == ("agent", "memory"), "not a word of the user"
    assert project.key.startswith("dir:"), "the folder's own project, not another of its name"


@pytest.mark.requirement("DEL-06")
def test_saving_names_what_is_wrong(call, store):
    empty = call("save_memory", True, text="  ")
    assert "text is '', but must be a text, not empty" in empty
    assert empty.count("not empty") == 1  # what it must be is said once
    assert "at most 20,000 characters" in call("save_memory", True, text="x" * 20_001)
    assert "no project is called 'nowhere'" in call(
        "save_memory", True, text="x", project="nowhere"
    )
    assert call("save_memory", text="Kept", project="larder").startswith("Saved in project larder")
    assert ids(call("search", query="kept", project="larder"))


@pytest.mark.requirement("CAP-10")
def test_secrets_are_not_saved_and_it_is_said(call, home):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert "Secrets in it were left out" in call("save_memory", text=f"The token is {secret}")
    assert secret not in call("get_observations", ids=[1])
    assert secret.encode() not in b"".join(path.read_bytes() for path in home.glob("yester.db*"))


# --- where there is nothing, or nobody may look ------------------------------------------------


@pytest.mark.requirement("DEL-06")
def test_without_a_store_reading_makes_nothing_and_says_what_to_do(call, home):
    for name, given in (
        ("search", {}), ("timeline", {"anchor": "1"}), ("get_observations", {"ids": [1]}),
    ):  # fmt: skip
        assert "yester index" in call(name, **given)
    assert not home.exists()


@pytest.mark.requirement("CAP-14")
def test_where_yester_is_off_nothing_is_shown_and_nothing_kept(home, tmp_path, store, run):
    here = tmp_path / "desk"
    here.mkdir()
    for env, words in (({"YESTER_OFF": "1"}, ()), ({}, ("off", "--all"))):
        if words:
            assert run(*words).code == 0
        memory = open_for_tools(str(home), str(here), env)
        for name, given in (("search", {}), ("save_memory", {"text": "x"})):
            text, failed = answer_call(TOOLS[name], lambda: memory, given)  # noqa: B023
            assert failed
            assert "switched off" in text
        memory.close()


@pytest.mark.requirement("CAP-14")
def test_nothing_is_saved_for_an_excluded_project(call, store):
    (store / "config.toml").write_text('exclude = ["desk"]\n')
    assert "`exclude`" in call("save_memory", True, text="x")
    assert ids(call("search", query="redis")), "but other projects may be asked"


def test_what_is_wrong_with_the_installation_is_told_to_the_model(call, store, tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    answers: list[Any] = []
    env = {"YESTER_HOME": str(tmp_path / "open")}
    server = Server(TOOLS, lambda: open_for_tools(None, "/", env), answers.append)
    server.take_line(
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search"}}'
    )
    assert answers[0]["result"]["isError"]
    assert "is open to other users" in answers[0]["result"]["content"][0]["text"]
    (store / "config.toml").write_text("thinking = 7\n")
    assert "thinking is 7, but must be true or false" in call("search", True)
    (store / "config.toml").unlink()
    (store / "yester.db").write_bytes(b"not a database, but long enough to be looked at" * 99)
    assert "yester.db" in call("search", True, query="redis")


def test_a_store_that_was_restored_meanwhile_is_opened_anew(call, home, store, run):
    assert run("backup").code == 0
    call("save_memory", text="Gone after the restore")
    assert ids(call("search", query="gone restore"))
    assert run("restore", "latest").code == 0
    assert "No items" in call("search", query="gone restore")
    assert call("save_memory", text="And it can be written to").startswith("Saved")


@pytest.mark.requirement("STO-01")
def test_a_store_that_a_newer_yester_has_changed_meanwhile_is_refused_in_a_sentence(call, store):
    call("save_memory", text="Stays as it is")
    db = apsw.Connection(str(store / "yester.db"))
    db.execute("PRAGMA user_version = 9999")
    db.close()
    for name, given in (("search", {"query": "stays"}), ("save_memory", {"text": "Too late"})):
        assert "has schema version 9999, this yester knows up to" in call(name, True, **given)


@pytest.mark.requirement("DEL-06")
def test_an_answer_uses_its_2_500_tokens_and_no_more(call, home):
    with yester.open(home) as memory:
        memory.add([item(100, "a long account of the migration of the ledger. " * 900)])
    text = call("get_observations", ids=[1])
    assert 2_100 < most_tokens(text) <= 2_500
    assert "characters of #1 are left" in text


# --- the worker, and without one ---------------------------------------------------------------


@pytest.mark.requirement("DEL-06", "REC-04")
def test_a_worker_that_runs_is_asked_and_one_that_fails_is_done_without(home, tmp_path, store):
    """It has the model loaded; here it says one hit, nonsense, or nothing at all."""
    said = (
        b'{"hits":[{"id":7,"ref":"7","kind":"message","type":"","project":"larder","session":"s3",'
        b'"title":"","text":"By meaning","epoch":1770000000.0,"score":0.9}]}'
    )

    def say(client: socket.socket) -> None:
        client.sendall(answered(body))
        client.shutdown(socket.SHUT_WR)

    made(home)
    for body, expected in ((said, 7), (b"{", 5), (b"", 5)):  # noqa: B007
        memory = open_for_tools(str(home), str(tmp_path), {})
        with worker_that(home, say) as asked:
            text, failed = answer_call(
                TOOLS["search"],
                lambda: memory,  # noqa: B023
                {"query": "dropped stale prices"},
            )
        assert not failed
        assert ids(text)[0] == expected
        assert asked[0].startswith(b"POST /recall?asked=")
        memory.close()


@pytest.mark.requirement("DEL-06", "REC-04")
def test_without_a_worker_the_server_loads_the_model_itself_and_lets_it_go_again(home, tmp_path):
    """The store has vectors: the question shares no word with what it finds."""
    env = {"HOME": str(tmp_path)}
    with open_memory(home, env) as memory:  # with the model
        memory.add([item(1, "The customer was charged twice."), item(2, "The lamp is blue.")])
        assert has_vectors(memory.store)
    memory = open_for_tools(str(home), str(tmp_path), env)
    for _ in range(2):
        asked = {"query": "duplicate payment", "limit": 1, "near": True}
        text, failed = answer_call(TOOLS["search"], lambda: memory, asked)
        assert not failed
        assert ids(text) == [1]
        memory.release_unused()
    memory.close()
