"""The start page: what agents do at this moment, and the first steps where there is nothing yet."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

import yester
from yester.ingest.prepare import prepare_item
from yester.model import Event, Feedback, Injection, Item, Project, Session, ToolCall, Turn

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "memory"
    with yester.open(path):
        return path


def write(home, *items, rows=(), session=None):
    """What an agent does, as the reader of its transcript stores it."""
    now = int(time.time() * 1000)
    with yester.open(home) as memory, memory.store.transaction("ledger"):
        memory.store.put_project(Project("name:shop", "shop", "/home/sam/shop"))
        number = memory.store.put_session(
            session or Session("s-one", "claude-code", "name:shop", now - 300_000, now,
                               "/home/sam/shop", "retry", "Fix the retries")
        )  # fmt: skip
        memory.store.put([prepare_item(item) for item in items])
        memory.store.append([row(number) for row in rows])
    return number


def part(ref, kind="message", age=0, **more):
    return Item(
        ref, kind, "name:shop", "s-one", agent="claude-code", prompt_number=1,
        epoch=int(time.time() * 1000) - age, **more,
    )  # fmt: skip


def call(ref, command, result, tags=(), age=0):
    body = f"{command}\n\n{result}" if result is not None else command
    places = (len(command) + 2, len(body)) if result is not None else None
    told = ToolCall(fields=(("command", 0, len(command)),), result=places)
    return part(ref, age=age, role="tool", tool="Bash", body=body, call=told, tags=tags)


def test_an_empty_memory_leads_through_the_first_steps_in_order(viewer, home):
    page = viewer.page
    expect(page.locator(".live")).to_have_text("live")
    steps = page.locator(".guide li")
    expect(steps.locator("code")).to_have_text(
        ["yester install", "yester index", 'yester recall "what did we decide about …"']
    )
    expect(steps.get_by_role("button")).to_have_count(3)
    expect(page.locator(".guide [aria-current=step]")).to_contain_text("Connect your agents")
    write(home, part("p1", "prompt", role="user", body="Why are orders paid twice?"))
    expect(page.get_by_role("heading", name="No agent is connected yet")).to_be_visible()
    expect(page.locator(".session-card")).to_contain_text("Why are orders paid twice?")


def test_a_session_is_followed_without_a_reload_until_it_ends(viewer, home):
    page, now = viewer.page, int(time.time() * 1000)
    expect(page.locator(".live")).to_have_text("live")
    write(home, Item("m1", "observation", "name:shop", type="decision", epoch=now,
                     title="Orders keep their own key"))  # fmt: skip
    with yester.open(home) as memory:
        (given,) = memory.store.find_by_ref("m1")
    write(
        home, part("p1", "prompt", 60_000, role="user", body="Why are orders paid twice?"),
        call("t1", "pytest tests/test_orders.py", None),
        rows=[
            lambda session: Turn("t", session, state="open", started=now, ended=now),
            lambda session: Event("1", "UserPromptSubmit", now, session),
            lambda session: Injection(session, "UserPromptSubmit", given.id, 0.7, 40, now),
        ],
    )  # fmt: skip
    card = page.locator(".session-card")
    expect(card).to_contain_text("claude-code")
    expect(card).to_contain_text("shop on retry")
    expect(card).to_contain_text("at work")
    expect(card).to_contain_text("pytest tests/test_orders.py")
    expect(card).to_contain_text("is running")
    expect(card).to_contain_text("1 memory given")
    expect(card).to_contain_text("none used so far")
    expect(page.locator("section[aria-label^=Decided] li")).to_contain_text("keep their own key")
    write(
        home, call("t1", "pytest tests/test_orders.py", "Exit code 1", ("error",)),
        rows=[lambda session: Feedback(given.id, "acted", now, session)],
    )  # fmt: skip
    expect(card).to_contain_text("failed")  # no new item: it is looked at anew
    expect(card).to_contain_text("1 error")
    expect(card).to_contain_text("1 used")
    write(home, rows=[lambda session: Event("2", "SessionEnd", now, session)])
    write(home, part("a1", role="assistant", body="Done."))
    working = page.locator("section[aria-label^=Working]")
    expect(working).to_contain_text("No agent is working")
    expect(working.locator(".turn")).to_contain_text("Why are orders paid twice?")  # the last one


def test_a_look_that_failed_is_made_again_soon(viewer, home):
    page, refused = viewer.page, []

    def refuse_once(route):
        refused.append(route)
        if len(refused) == 1:
            route.fulfill(status=503, json={"detail": "busy"})
        else:
            route.fallback()

    page.route("**/api/now*", refuse_once)
    write(home, part("p1", "prompt", role="user", body="Why are orders paid twice?"))
    card = page.locator(".session-card")
    expect(card).to_contain_text("Why are orders paid twice?", timeout=10_000)
    assert len(refused) > 1
    assert len(viewer.complaints) == 1
    assert "503" in viewer.complaints.pop()


_HEAR = """async () => {
  const { listen } = await import("/core/stream.js");
  listen((event, data) => (window.heard = data.title), new AbortController().signal);
}"""


def test_what_happens_while_a_view_is_asked_for_is_in_it(viewer, home):
    page, held = viewer.page, []
    write(home, part("p1", "prompt", 5_000, role="user", body="Why are orders paid twice?"))
    page.evaluate(_HEAR)
    page.route("**/api/turns?*", lambda route: held.append((route, route.fetch())))
    page.evaluate("location.hash = '#/timeline'")
    while not held:  # until there is an answer, which is held back
        page.evaluate("new Promise(requestAnimationFrame)")
    write(home, part("p2", "prompt", role="user", title="Meanwhile", body="And meanwhile?"))
    page.wait_for_function("() => window.heard === 'Meanwhile'")
    for route, response in held:
        route.fulfill(response=response)
    page.unroute("**/api/turns?*")
    expect(page.locator(".day-block").first).to_contain_text("Why are orders paid twice?")
    expect(page.locator(".day-block").first).to_contain_text("And meanwhile?")
