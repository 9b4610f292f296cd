"""At the moment of action: a hook asks where words of run/armed stand in what happened, the agent
is told one line, and it is booked. What followed is counted."""

from __future__ import annotations

import json
import os
import re

import pytest

from tests.capturing import HOOK, Told, hook, leave, until, use_home
from tests.distilling import Story, distilled
from tests.flow.test_delivery import store as store
from tests.flow.test_worker import Running
from yester.capture.question import ask_worker
from yester.context.actions import BUDGET, Action, at_action, list_armed
from yester.context.block import Here
from yester.memories.remember import Draft, remember
from yester.model import Failure, Feedback, Injection, Project, replace
from yester.operations.actions import FixRequest, find_fixes, switched_off
from yester.operations.request import make_request
from yester.store.figures import reflex_totals
from yester.text.document import estimate_tokens

pytestmark = pytest.mark.requirement("DEL-15")

BROKEN = "Exit code 1\nTypeError: link is closed after 30 idle seconds\n1 failed, 4 passed in 0.10s"


def told_before(project, session):
    """A session in which an error was met and ended, as its hooks told it."""
    one = Told(session, str(project), turn=f"turn-{session[:2]}")
    edit = {"file_path": f"{project}/link.py", "old_string": "pool.take()", "new_string": "dial()"}
    return one, [
        one.prompt("Make the import stop dropping its connection"),
        one.failed("rtk pytest -q", "Exit code 2\nerror: unrecognized subcommand 'pytest'"),
        one.failed("pytest -q", BROKEN),
        one.tool("Edit", edit, {"filePath": edit["file_path"]}),
        one.ran("pytest -q", "5 passed in 0.09s"),
        one.event("Stop", last_assistant_message="It dials for each call now."),
    ]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def env(home, own_home):
    use_home(home, own_home)
    return {"HOME": str(own_home), "YESTER_HOME": str(home), "CLAUDECODE": "1"}


@pytest.fixture
def begun(home, env, project, zygote_of_commands):
    """A worker that has distilled two earlier sessions."""
    for session in ("aaaaaaaa-1", "bbbbbbbb-2"):
        leave(home, *told_before(project, session)[1])
    running = Running(home, zygote_of_commands).ready()
    until(lambda: (home / "run" / "armed").exists())
    until(lambda: "rtk pytest" in (home / "run" / "armed").read_text())
    yield running
    running.close()


def acts(event, project, env, *words, tool="Bash", session="cccccccc-3", **more):
    """What the hook of a tool's event prints."""
    payload = Told(session, str(project)).payload(event, tool_name=tool, **more)
    done = hook(event, "claude-code", *words, cwd=project, env=env, payload=payload, script=HOOK)
    assert (done.code, done.err) == (0, b"")
    return json.loads(done.out)["hookSpecificOutput"] if done.out else {}


def test_what_ended_an_error_is_told_once_and_what_followed_is_counted(
    begun, home, project, env, store
):
    failure = {"tool_input": {"command": "pytest -q"}, "tool_use_id": "t1"}
    first = acts("PostToolUseFailure", project, env, error=BROKEN, **failure)
    assert "Seen 2 times" in first["additionalContext"]
    assert "ended by" in first["additionalContext"]
    assert "link.py" in first["additionalContext"]
    assert "permissionDecision" not in first
    again = {**failure, "tool_use_id": "t2"}
    assert acts("PostToolUseFailure", project, env, error=BROKEN, **again) == {}
    assert ask_worker(home / "run", "POST /drain", 10.0) is not None
    session = store().session("cccccccc-3", "claude-code")
    line = until(lambda: store().entries(Injection, {"session": session.id}))[0]
    mark = line.reason.removeprefix("error ")
    assert store().entries(Failure, {"mark": mark})[0].text.startswith("TypeError: link is closed")
    assert [(one.about, one.told, one.used, one.ignored) for one in reflex_totals(store(), 0)] == [
        ("error", 1, 0, 1)
    ]
    edit = {"file_path": f"{project}/link.py", "old_string": "a", "new_string": "b"}
    acts("PostToolUse", project, env, tool="Edit", tool_input=edit, tool_use_id="t3",
         tool_response={"filePath": edit["file_path"]})  # fmt: skip
    until(lambda: store().entries(Feedback, {"item": line.item, "what": "acted"}))
    assert [(one.told, one.used, one.wrong) for one in reflex_totals(store(), 0)] == [(1, 1, 0)]


def test_a_command_that_failed_twice_in_the_same_way_is_warned_of_once(begun, home, project, env):
    def asks(command):
        given = {"tool_input": {"command": command}, "tool_use_id": "t1"}
        return acts("PreToolUse", project, env, "armed", **given)

    assert "“pytest -q” worked instead" in asks("rtk pytest -q")["additionalContext"]
    assert ask_worker(home / "run", "POST /drain", 10.0) is not None
    assert asks("rtk pytest -q") == {}
    assert asks("ls -la") == {}


# --- in process -----------------------------------------------------------------------------------


@pytest.fixture
def shop(memory):
    with memory.store.transaction("places"):
        memory.store.put_project(Project("name:shop", "shop", "/home/sam/shop"))
    return Here(Project("name:shop", "shop", "/home/sam/shop"), "s", 1_790_000_000_000)


def change(file):
    return Action("Edit", {"file_path": file, "old_string": "a", "new_string": "b"})


@pytest.mark.requirement("MEM-08")
def test_a_rule_about_a_file_is_told_and_only_the_users_word_stops_a_tool(memory, shop):
    store, by = memory.store, memory.by("")
    told = Draft("Never edit generated files by hand", "rule", path="src/gen/**")
    remember(store, told, shop.project, by)
    found = at_action(store, change("/home/sam/shop/src/gen/api.py"), shop, ())
    assert "The user's rule about api.py" in found.text
    assert "Never edit generated files" in found.text
    assert found.decision == ""
    assert estimate_tokens(found.text) <= BUDGET
    known = [one.reason for one in found.shown]
    assert at_action(store, change("/home/sam/shop/src/gen/api.py"), shop, known).text == ""
    assert at_action(store, change("/home/sam/shop/src/api.py"), shop, ()).text == ""
    assert "PreToolUse src/gen" in list_armed(store)
    content = {"rule": "Migrations are never changed", "enforce": "block"}
    remember(store, Draft(type="rule", content=content, path="sql/*.sql"), shop.project, by)
    stops = at_action(store, change("/home/sam/shop/sql/001.sql"), shop, ())
    assert (stops.decision, "Migrations" in stops.why) == ("block", True)
    again = at_action(store, change("/home/sam/shop/sql/001.sql"), shop, [stops.shown[0].reason])
    assert again.decision == "block"


OLD, POOLED = "link = pool.take(timeout=30)", "link = pool.take(timeout=30, check=True)"
NEW = "link = dial(gateway, attempts=3)"


def link_story(store, session="dddddddd-4"):
    """A pool is tried in vain and taken back; then each call dials, because …"""
    story = Story(session, clock=1_780_000_000_000)
    story.prompt("Let the pool check its links")
    story.replaces("src/link.py", OLD, POOLED)
    story.fails("pytest -q", BROKEN)
    story.says("The pool cannot check its links, the tests still fail.")
    story.prompt("Dial for each call then")
    story.says("It fails because the gateway drops idle links after 10 seconds.")
    story.replaces("src/link.py", POOLED, NEW)
    story.ran("pytest -q", "5 passed in 0.09s")
    story.says("One connection per call, because the gateway drops idle links after 10 seconds.")
    story.store(store)
    distilled(store)


def edit_lines(old, new="gone = True", file="/home/sam/shop/src/link.py"):
    return Action("Edit", {"file_path": file, "old_string": old, "new_string": new})


def told_lines(context):
    return [line for line in context.text.split("\n") if line.startswith("These lines: ")]


def test_before_lines_are_changed_the_turn_that_wrote_them_says_why_and_what_had_failed(
    memory, shop
):
    store = memory.store
    link_story(store)
    found = at_action(store, edit_lines(f"def call():\n    {NEW}\n    return 1"), shop, ())
    (line,) = told_lines(found)
    assert re.match(r"These lines: \d+ done: “.*the gateway drops idle links.*”", line), line
    assert re.search(r"; \d+ failed: “.*pool", line), line
    assert estimate_tokens(found.text) <= BUDGET
    known = [one.reason for one in found.shown]
    assert at_action(store, edit_lines(NEW), shop, known).text == ""  # once
    own = replace(shop, session="dddddddd-4")
    assert at_action(store, edit_lines(NEW), own, ()).text == ""  # it knows that itself
    early = replace(shop, now=1_700_000_000_000)
    assert at_action(store, edit_lines(NEW), early, ()).text == ""
    for other in (edit_lines("x = another_line_of(it)"), edit_lines(NEW, file="/etc/link.py")):
        assert at_action(store, other, shop, ()).text == ""
    several = {"file_path": "/home/sam/shop/src/link.py",
               "edits": [{"old_string": "a", "new_string": "b"},
                         {"old_string": NEW, "new_string": "gone = True"}]}  # fmt: skip
    assert told_lines(at_action(store, Action("MultiEdit", several), shop, ())) == [line]


def test_what_stays_in_a_place_that_is_changed_is_not_what_is_told_of(memory, shop):
    link_story(memory.store)
    text = f"{NEW}\nlast_of_all(link)"
    kept = edit_lines(text, f"{NEW}\nfirst_of_all(link)")
    assert at_action(memory.store, kept, shop, ()).text == ""
    between = edit_lines(NEW, f"{NEW}\nfirst_of_all(link)")
    assert told_lines(at_action(memory.store, between, shop, ()))


def test_a_part_of_a_line_and_a_whole_file_are_known_by_the_lines_they_replace(
    memory, shop, tmp_path
):
    link_story(memory.store)
    here = replace(shop, project=replace(shop.project, root=str(tmp_path)))
    path = tmp_path / "src" / "link.py"
    given = {"file_path": str(path), "content": "gone = True\n"}
    assert at_action(memory.store, Action("Write", given), here, ()).text == ""
    path.parent.mkdir()
    path.write_text(f"def call():\n    {NEW}\n")
    assert told_lines(at_action(memory.store, Action("Write", given), here, ()))
    part = edit_lines("attempts=3", "attempts=5", str(path))
    assert told_lines(at_action(memory.store, part, here, ()))
    path.unlink()
    os.mkfifo(path)  # nobody waits for it
    assert at_action(memory.store, Action("Write", given), here, ()).text == ""


def test_hooks_ask_before_edits_of_files_whose_turns_have_something_to_say(memory, shop):
    link_story(memory.store)
    story = Story("eeeeeeee-5", clock=1_781_000_000_000)
    story.prompt("Show the tide beside each berth")
    story.replaces("src/tide.py", "show = None", "show = tide_of(berth)")
    story.says("Done.")
    story.store(memory.store)
    distilled(memory.store)
    armed = list_armed(memory.store)
    assert 'PreToolUse /src/link.py"' in armed
    assert not [line for line in armed if "tide" in line]
    assert not [line for line in list_armed(memory.store, ["tell.lines"]) if 'link.py"' in line]
    off = at_action(memory.store, edit_lines(NEW), shop, (), ["tell.lines"])
    assert off.text == ""


@pytest.mark.requirement("MEM-09")
def test_what_a_private_project_has_met_is_told_nowhere_else(memory, shop):
    link_story(memory.store)
    failing = Action("Bash", {"command": "pytest -q"}, BROKEN, True)
    own = at_action(memory.store, failing, shop, ())
    assert "Seen before" in own.text
    elsewhere = replace(shop, project=Project("name:port", "port", "/home/sam/port"))
    assert "Seen before" in at_action(memory.store, failing, elsewhere, ()).text
    private = replace(elsewhere, private=("name:shop",))
    assert at_action(memory.store, failing, private, ()).text == ""


def test_a_reflex_that_is_switched_off_says_nothing_and_arms_nothing(memory, shop):
    store = memory.store
    remember(store, Draft("Never edit api.py", "rule"), shop.project, memory.by(""))
    assert at_action(store, change("api.py"), shop, (), ["tell.before"]).text == ""
    assert list_armed(store, ["tell.before", "tell.endings", "tell.lines"]) == []
    assert switched_off(memory.config) == []


def test_every_face_says_the_same_of_an_error_that_is_asked_about(memory, home, run):
    story = Story(project="name:shop")
    story.prompt("Fix the totals in the cart")
    story.fails("pytest -q", BROKEN)
    story.replaces("src/cart.py", "count", "int(count)")
    story.ran("pytest -q", "5 passed in 0.09s")
    story.store(memory.store)
    distilled(memory.store)
    error = "TypeError: link is closed after 99 idle seconds"
    (found,) = memory.fix(error, project="name:shop")
    assert (found.ended, found.files, found.times) == (True, ["src/cart.py"], 1)
    assert memory.fix("TypeError: nobody has met this one") == []
    answer = find_fixes(memory, make_request(FixRequest, {"text": error, "project": "shop"}, {}))
    assert answer.fixes == [found]
    printed = run("fix", error, "--project", "shop", "--json").json
    assert printed["fixes"][0]["line"] == found.line
    assert run("fix", "no such error", "--project", "shop").code == 1
