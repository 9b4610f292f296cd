"""Sessions in a real browser: the list by day, and the page of one with thousands of entries."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

import yester
from tests.browser.conftest import PHONE
from yester.ingest.prepare import prepare_item
from yester.model import Feedback, Injection, Item, Project, Session, replace

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

SHOP, BAKERY = Project("name:shop", "shop"), Project("name:bakery", "bakery")
NOON = 1_772_000_000_000
DAY, MINUTE = 86_400_000, 60_000
LONG = 1_200  # entries of the long session
EVIL = "<img src=x onerror=\"document.title='owned'\"> & `code`"


def said(session: str, place: int, body: str, **more) -> Item:
    fields = {
        "ref": f"{session}-{place}", "kind": "message", "project": SHOP.key, "session": session,
        "agent": "claude-code", "role": "assistant", "prompt_number": 1, "body": body,
        "epoch": NOON + place * 1_000,
    }  # fmt: skip
    return Item(**(fields | more))


SHORT = [
    said("short", 0, "why does the webhook charge twice?", kind="prompt", role="user"),
    said("short", 1, "The user wants the cause.", role="thinking"),
    said("short", 2, "pytest -x\nrun the tests\n\n3 failed, the key is missing", role="tool",
         tool="Bash", tags=("error",)),
    said("short", 3, f"The provider retries; the call needs a key. {EVIL}"),
    said("short", 4, "Look at every caller of charge()", role="task", actor="explorer"),
    said("short", 5, "There are two callers.", actor="explorer"),
    said("short", 6, "and now fix it", kind="prompt", role="user", prompt_number=2),
    said("short", 7, "Fixed: every call has a key now.", prompt_number=2),
]  # fmt: skip
OBSERVED = Item(
    "seen", "observation", project=SHOP.key, session="short", source="yester", agent="claude-code",
    type="bugfix", title="Webhooks no longer charge twice", facts=("The provider retries.",),
    epoch=NOON + 3_000, prompt_number=1, discovery_tokens=900,
)  # fmt: skip
LATER = Item(
    "deep", "observation", project=SHOP.key, session="long", source="yester", agent="claude-code",
    type="discovery", title="Entry 977 mattered", facts=("It did.",), epoch=NOON + 977_000,
)  # fmt: skip


def long_session():
    for place in range(LONG):
        if place % 400 == 0:
            yield said("long", place, f"prompt {place}", kind="prompt", role="user",
                       prompt_number=place // 400 + 1)  # fmt: skip
        elif place % 3:
            yield said("long", place, f"ls {place}\n\nfile of {place}", role="tool", tool="Bash")
        else:
            yield said("long", place, f"entry {place}")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    home = tmp_path_factory.mktemp("session") / "memory"
    with yester.open(home) as memory:
        store = memory.store
        with store.transaction("items"):
            for project in (SHOP, BAKERY):
                store.put_project(project)
            short = store.put_session(
                Session("short", "claude-code", SHOP.key, NOON, NOON + 7_000, title="Webhooks",
                        branch="main", cwd="/home/sam/shop")
            )  # fmt: skip
            store.put_session(
                Session(
                    "long", "claude-code", SHOP.key, NOON, NOON + LONG * 1_000, title="Long one"
                )
            )
            store.put_session(
                Session("other", "codex", BAKERY.key, NOON - 3 * DAY, NOON - 3 * DAY + 90 * MINUTE,
                        title="Ovens")
            )  # fmt: skip
            store.put([prepare_item(one) for one in (*SHORT, OBSERVED, *long_session(), LATER)])
        ids = {one.ref: store.find_by_ref(one.ref)[0].id for one in (*SHORT, OBSERVED, LATER)}
        ids["deep source"] = store.find_by_ref("long-977")[0].id
        with store.transaction("items"):
            behind = {
                "seen": ((-1, ids["short-0"]), (0, ids["short-3"])),
                "deep": ((0, ids["deep source"]),),
            }
            made = {one.ref: prepare_item(one) for one in (OBSERVED, LATER)}
            store.put([replace(made[ref], evidence=pairs) for ref, pairs in behind.items()])
            store.append([
                Injection(short, "SessionStart", ids["deep"], 0.0, 12, NOON - 900, "newest"),
                Injection(short, "UserPromptSubmit", ids["seen"], 0.7, 20, NOON + 6_100,
                          "words: fix", 2),
            ])  # fmt: skip
            store.append([Feedback(ids["seen"], "acted", NOON + 7_000, short)])
    return home, ids


@pytest.fixture
def home(filled):
    return filled[0]


@pytest.fixture
def ids(filled):
    return filled[1]


def test_sessions_stand_by_day_and_are_narrowed_by_the_address(viewer):
    viewer.to("#/sessions")
    rows = viewer.page.locator(".session-row")
    expect(rows).to_have_count(3)
    # The two of one day share its label.
    expect(viewer.page.locator(".session-row.first")).to_have_count(2)
    expect(rows.filter(has_text="Ovens")).to_contain_text("1 h 30 min")
    viewer.page.get_by_label("Project").select_option("bakery")
    expect(rows).to_have_count(1)
    expect(viewer.page).to_have_url(re.compile("project=bakery"))
    viewer.page.go_back()
    expect(rows).to_have_count(3)
    viewer.page.get_by_label("to", exact=True).fill("2001-01-01")
    viewer.page.get_by_label("to", exact=True).dispatch_event("change")
    expect(viewer.page.locator("main")).to_contain_text("No session fits")


def test_a_session_is_opened_with_the_keyboard_alone(viewer):
    viewer.to("#/sessions")
    expect(viewer.page.locator(".session-row")).to_have_count(3)
    viewer.page.locator(".list").focus()
    viewer.page.keyboard.press("j")
    viewer.page.keyboard.press("j")
    expect(viewer.page.locator(".session-row.active a")).to_be_focused()
    viewer.page.keyboard.press("Enter")
    expect(viewer.page.locator("article.entry").first).to_be_visible()
    viewer.page.keyboard.press("j")
    expect(viewer.page.locator("article.entry").first).to_be_focused()
    viewer.page.keyboard.press("n")
    expect(viewer.page.locator("article.entry.is-user").nth(1)).to_be_focused()


def open_short(viewer, at: int = 0) -> None:
    viewer.to("#/sessions")
    viewer.page.get_by_role("link", name="Webhooks", exact=True).click()
    expect(viewer.page.locator("article.entry")).to_have_count(len(SHORT))


def test_thinking_and_tools_are_folded_and_open_to_what_came_of_them(viewer):
    open_short(viewer)
    tool = viewer.page.locator("article.is-tool")
    expect(tool.locator("summary")).to_contain_text("pytest -x")
    expect(tool.locator("summary .chip.bad")).to_be_visible()
    expect(tool).not_to_contain_text("the key is missing")
    tool.focus()
    viewer.page.keyboard.press("Enter")
    expect(tool.locator("pre").last).to_have_text("3 failed, the key is missing")
    viewer.page.keyboard.press("Enter")
    expect(tool.locator("pre").last).not_to_be_visible()
    expect(viewer.page.locator("article.is-thinking details")).not_to_have_attribute("open", "")


def test_an_observation_stands_beside_the_message_it_came_from(viewer, ids):
    open_short(viewer)
    card, source = (
        viewer.page.locator("article.found"),
        viewer.page.locator(f"#at-{ids['short-3']}"),
    )
    expect(card).to_contain_text("Webhooks no longer charge twice")
    beside, message = card.bounding_box(), source.bounding_box()
    assert beside["x"] >= message["x"] + message["width"]
    assert abs(beside["y"] - message["y"]) < 30
    # At the prompt, which it was made from too, a line leads to it.
    prompt = viewer.page.locator(".named a")
    assert (
        abs(
            prompt.bounding_box()["y"]
            - viewer.page.locator(f"#at-{ids['short-0']}").bounding_box()["y"]
        )
        < 30
    )
    prompt.click()
    expect(card).to_have_class("found here")
    expect(card).to_contain_text("The provider retries.")


def test_on_a_phone_it_stands_below_and_nothing_is_wider_than_the_screen(viewer, ids):
    viewer.page.set_viewport_size(PHONE)
    open_short(viewer)
    card = viewer.page.locator("article.found").bounding_box()
    message = viewer.page.locator(f"#at-{ids['short-3']}").bounding_box()
    assert card["y"] >= message["y"] + message["height"] - 1
    assert viewer.page.evaluate("document.scrollingElement.scrollWidth") <= 400
    assert viewer.page.evaluate("document.getElementById('content').scrollWidth") <= 400
    viewer.to("#/sessions")
    expect(viewer.page.locator(".session-row")).to_have_count(3)
    assert viewer.page.evaluate("document.scrollingElement.scrollWidth") <= 400


def test_what_the_agent_was_shown_stands_at_its_turn(viewer, ids):
    open_short(viewer)
    order = viewer.page.locator(".block > .giving, .block > .entry").evaluate_all(
        "all => all.map(one => one.dataset.id ?? one.dataset.giving)"
    )
    start, turn = (place for place, one in enumerate(order) if " " in one)
    assert start == 0
    assert order[turn - 1] == str(ids["short-6"])
    given = viewer.page.locator(".giving").last
    given.locator("summary").click()
    expect(given).to_contain_text("because: words: fix")
    expect(given).to_contain_text("acted on")
    expect(given).to_contain_text("~20 of 900")


def test_sub_agents_are_marked_and_stored_text_is_only_text(viewer):
    open_short(viewer)
    expect(viewer.page.locator(".entry:has(.actor)")).to_have_count(2)
    expect(viewer.page.locator(".chip.actor").first).to_have_text("sub-agent explorer")
    expect(viewer.page.locator("article.is-assistant").first).to_contain_text("<img src=x")
    assert viewer.page.locator("main img").count() == 0
    expect(viewer.page).to_have_title("Webhooks · yester")


def test_a_place_deep_in_a_long_session_is_gone_to_at_once(viewer, ids):
    viewer.to(f"#/session/long?at={ids['deep source']}")
    here = viewer.page.locator("article.entry.here")
    expect(here).to_contain_text("ls 977")
    expect(here).to_be_in_viewport()
    expect(here.locator("pre").last).to_have_text("file of 977")
    assert viewer.page.locator("article.entry").count() < 500
    # An observation is a place as well: it stands beside that message.
    viewer.to(f"#/session/long?at={ids['deep']}")
    expect(viewer.page.locator("article.found.here")).to_contain_text("Entry 977 mattered")
    expect(viewer.page.locator("article.found.here")).to_be_in_viewport()


def test_a_place_of_another_session_is_said_not_to_be_here(viewer, ids):
    viewer.to(f"#/session/short?at={ids['deep source']}")
    expect(viewer.page.locator("#notices")).to_contain_text("is not in this session")
    expect(viewer.page.locator("article.entry")).to_have_count(len(SHORT))


def test_a_long_session_is_read_to_its_end_and_back_with_few_entries_in_the_page(viewer):
    viewer.to("#/session/long")
    expect(viewer.page.locator("article.entry").first).to_contain_text("prompt 0")
    seen = viewer.page.evaluate(
        """async (last) => {
          const box = document.getElementById("content"), seen = new Set();
          let most = 0;
          for (let turn = 0; turn < 4000 && !seen.has(last); turn++) {
            box.scrollTop += 700;
            await new Promise(requestAnimationFrame);
            const all = [...document.querySelectorAll("article.entry")];
            for (const one of all) seen.add(one.textContent.match(/\\d+(?= *(Copy)?$)/)?.[0]);
            most = Math.max(most, all.length);
          }
          return { seen: seen.size, most };
        }""",
        str(LONG - 1),
    )
    assert seen["seen"] >= LONG
    assert seen["most"] <= 500


def test_what_is_looked_at_stays_where_it_is_while_earlier_pages_come_in(viewer, ids):
    viewer.to(f"#/session/long?at={ids['deep source']}")
    here, first = viewer.page.locator("article.entry.here"), viewer.page.locator(".block").first
    expect(here).to_be_in_viewport()
    page, top = int(first.get_attribute("data-page")), here.bounding_box()["y"]
    viewer.page.get_by_role("button", name="Earlier").dispatch_event("click")
    viewer.page.wait_for_function(
        "page => Number(document.querySelector('.block').dataset.page) < page", arg=page
    )
    assert abs(here.bounding_box()["y"] - top) < 2


def test_what_a_live_session_says_appears(viewer, home):
    open_short(viewer)
    with yester.open(home) as memory, memory.store.transaction("items"):
        memory.store.put([prepare_item(said("short", 8, "It is deployed.", prompt_number=2))])
    try:
        expect(viewer.page.locator("article.entry").last).to_contain_text("It is deployed.")
        expect(viewer.page.locator("article.entry")).to_have_count(len(SHORT) + 1)
    finally:  # the store is that of all tests here
        with yester.open(home) as memory, memory.store.transaction("items"):
            memory.store.remove([memory.store.find_by_ref("short-8")[0].id])


def test_only_what_was_said_is_a_switch_that_stays_in_the_address(viewer):
    open_short(viewer)
    viewer.page.get_by_label("Show", exact=True).select_option("said")
    expect(viewer.page.locator("article.is-tool")).not_to_be_visible()
    assert "only=said" in viewer.page.url
    viewer.to("#/sessions")
    expect(viewer.page.locator(".session-row")).to_have_count(3)
    viewer.page.go_back()
    expect(viewer.page.locator("article.is-user").first).to_be_visible()
    expect(viewer.page.locator("article.is-tool")).not_to_be_visible()


def test_dark_is_dark(viewer):
    viewer.page.emulate_media(color_scheme="dark")
    open_short(viewer)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert viewer.page.evaluate(ground) == "rgb(24, 26, 25)"
    card = "getComputedStyle(document.querySelector('.found')).backgroundColor"
    assert viewer.page.evaluate(card) == "rgb(32, 35, 34)"
