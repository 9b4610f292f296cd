"""The ledger and the preview in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import yester
from tests.browser.conftest import PHONE, Viewer
from tests.serving import serving
from yester.ingest.prepare import prepare_item
from yester.model import Feedback, Injection, Item, Project, Session

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10", "DEL-11")]

SHOP = Project("name:shop", "shop")
NOON = 1_772_000_000_000


def item(ref: str, title: str, **more) -> Item:
    fields = {"kind": "observation", "project": SHOP.key, "type": "bugfix", "epoch": NOON}
    return Item(ref, title=title, body=f"{title}, told at length.", **(fields | more))


ITEMS = [
    item("key", "The webhook needs an idempotency key", discovery_tokens=900),
    item("utc", "Orders keep UTC", type="decision", discovery_tokens=400),
    item("ask", "How are webhooks retried?", kind="prompt", role="user", type="",
         session="aaaaaa-1", agent="claude-code", prompt_number=1),
]  # fmt: skip


def fill(home):
    with yester.open(home) as memory:
        store = memory.store
        with store.transaction("items"):
            store.put_project(SHOP)
            one = store.put_session(
                Session("aaaaaa-1", "claude-code", SHOP.key, NOON, NOON + 9_000)
            )
            two = store.put_session(
                Session("bbbbbb-2", "claude-code", SHOP.key, NOON, NOON + 9_000)
            )
            store.put([prepare_item(one_) for one_ in ITEMS])
        ids = {ref: store.find_by_ref(ref)[0].id for ref in ("key", "utc", "ask")}
        with store.transaction("items"):
            store.append([
                Injection(one, "SessionStart", ids["utc"], 0.0, 12, NOON, "newest of the project"),
                Injection(one, "UserPromptSubmit", ids["key"], 0.71, 20, NOON + 1,
                          "words: webhook", 1),
                *(Injection(two, "SessionStart", ids["utc"], 0.0, 12, NOON + 2, f"line {n}")
                  for n in range(250)),
            ])  # fmt: skip
            store.append([Feedback(ids["key"], "acted", NOON + 5, one)])
    return ids, one, two


@pytest.fixture
def filled(tmp_path):
    home = tmp_path / "memory"
    return home, *fill(home)


@pytest.fixture
def home(filled):
    return filled[0]


def test_the_ledger_says_what_why_at_what_cost_and_what_came_of_it(viewer, filled):
    _, ids, one, _ = filled
    viewer.to(f"#/shown?session=S{one}")
    turn = viewer.page.locator(".given").filter(has_text="with prompt 1")
    expect(turn.locator("blockquote")).to_contain_text("How are webhooks retried?")
    # The prompt stands above its lines, in the whole width.
    assert turn.locator("blockquote").bounding_box()["width"] > 1_000
    line = turn.locator(".shown-line")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("The webhook needs an idempotency key")
    expect(line).to_contain_text("because: words: webhook")
    expect(line).to_contain_text("0.71")
    expect(line).to_contain_text("~20 of 900")
    expect(line.locator(".chip.good")).to_have_text("acted on")
    start = viewer.page.locator(".given").filter(has_text="at the start").locator(".shown-line")
    expect(start.locator(".chip")).to_have_text("no sign of use")
    # The cost of all of it, without a claim of what it saved.
    expect(viewer.page.locator("main")).to_contain_text("made from ~1,300 tokens")
    expect(line.get_by_role("link")).to_have_attribute("href", f"#/item/{ids['key']}")


def test_the_ledger_is_narrowed_and_paged_by_its_address(viewer, filled):
    _, ids, one, _ = filled
    viewer.to("#/shown")
    lines = viewer.page.locator(".shown-line")
    expect(lines).to_have_count(200)
    viewer.page.get_by_role("link", name="Older").click()
    expect(lines).to_have_count(52)
    expect(viewer.page.locator(f"[data-session='{one}']")).to_have_count(1)
    viewer.page.go_back()
    expect(lines).to_have_count(200)
    viewer.page.get_by_label("Event").select_option("UserPromptSubmit")
    expect(lines).to_have_count(1)
    viewer.page.get_by_role("link", name="Clear").click()
    expect(lines).to_have_count(200)
    viewer.page.get_by_label("Item", exact=True).fill(str(ids["key"]))
    viewer.page.keyboard.press("Enter")
    expect(lines).to_have_count(1)
    viewer.to("#/shown?item=999999")
    expect(viewer.page.locator("main")).to_contain_text("Nothing fits")


def test_the_preview_shows_the_text_and_the_reason_of_each_line(viewer, filled):
    _, ids, *_ = filled
    viewer.to("#/shown")
    viewer.page.get_by_role("link", name="Preview").click()
    viewer.page.get_by_label("Project").select_option("shop")
    expect(viewer.page.locator("pre.context")).to_contain_text("Orders keep UTC")
    expect(viewer.page.locator("table.reasons").first).to_contain_text("Orders keep UTC")
    viewer.page.get_by_label("When").select_option("UserPromptSubmit")
    expect(viewer.page.locator("main")).to_contain_text("Type what you would say")
    viewer.page.get_by_label("What is typed").fill("which idempotency key does the webhook need?")
    viewer.page.get_by_role("button", name="Show").click()
    expect(viewer.page.locator("pre.context")).to_contain_text("idempotency key")
    row = viewer.page.locator("table.reasons").first.locator("tbody tr").first
    expect(row.get_by_role("link")).to_contain_text("idempotency key")
    # It is a preview: nothing of it stands in the ledger.
    viewer.to(f"#/shown?item={ids['key']}")
    expect(viewer.page.locator(".shown-line")).to_have_count(1)


def test_the_ledger_on_a_phone_and_in_the_dark(viewer):
    viewer.page.emulate_media(color_scheme="dark")
    viewer.page.set_viewport_size(PHONE)
    for place, there in (
        ("/shown", ".shown-line"),
        ("/shown?preview=1&project=shop", "pre.context"),
    ):
        viewer.to(f"#{place}")
        viewer.page.wait_for_selector(there)
        for box in ("document.scrollingElement", "document.getElementById('content')"):
            assert viewer.page.evaluate(f"{box}.scrollWidth") <= 400, place
    ground = "getComputedStyle(document.querySelector('pre.context')).backgroundColor"
    assert viewer.page.evaluate(ground) == "rgb(20, 22, 21)"


def test_what_is_shown_now_appears(viewer, home, filled):
    _, ids, one, _ = filled
    viewer.to(f"#/shown?session=S{one}")
    lines = viewer.page.locator(".shown-line")
    expect(lines).to_have_count(2)
    with yester.open(home) as memory, memory.store.transaction("items"):
        memory.store.append([Injection(one, "PreToolUse", ids["key"], 0.5, 9, NOON + 8, "file")])
    expect(lines).to_have_count(3)


def test_an_empty_ledger_says_how_it_fills(window, tmp_path):
    with serving(tmp_path / "memory") as server:
        shown = Viewer(window.new_page(), server)
        shown.enter()
        shown.to("#/shown")
        expect(shown.page.locator("main")).to_contain_text("yester install")
        assert not shown.complaints
