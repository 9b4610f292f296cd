"""The page of an item in a real browser: what it says, whence it is, what came of it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import yester
from tests.browser.conftest import PHONE
from tests.distilling import Story, distilled, fixed_bug
from tests.serving import Serving
from yester.model import Injection
from yester.store import open_store

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

HOSTILE = "<b onclick=alert(1)>bold</b> `code <i>` javascript:alert(2)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "memory", now=1)
    fixed_bug(Story()).store(store)
    distilled(store)
    store.close()
    with yester.open(tmp_path / "memory") as memory:
        memory.add(
            [
                {
                    "ref": "whole", "kind": "observation", "type": "decision", "project": "harbour",
                    "title": "Tides are kept in UTC", "subtitle": "And shown in local time",
                    "text": HOSTILE, "facts": ["The table has `utc_ms`.", "Clocks differ."],
                    "concepts": ["gotcha", "pattern"], "files_modified": ["src/tides.py"],
                    "files_read": ["docs/clock.md"], "sections": {"next_steps": "Test in June"},
                    "discovery_tokens": 4321, "session": "s-1", "agent": "claude-code",
                    "prompt_number": 3, "epoch": time.time() - 7200,
                },
                {
                    "ref": "long", "kind": "message", "text": "word " * 3000, "project": "harbour",
                    "epoch": time.time() - 3600,
                },
            ],
            embed="later",
        )  # fmt: skip
    return tmp_path / "memory"


def named(server: Serving, title: str) -> dict[str, Any]:
    rows = server.get("/api/items", limit=100)["results"]
    return next(row for row in rows if title in row["title"])


def show(store: Path, item: int, **more: Any) -> None:
    now = int(time.time() * 1000)
    line = {"session": 1, "event": "SessionStart", "score": 0.5, "tokens": 21, "epoch": now} | more
    with yester.open(store) as memory, memory.store.transaction("items"):
        memory.store.append([Injection(item=item, **line)])


def test_everything_known_of_an_item_and_where_it_leads(viewer, server):
    page = viewer.page
    id_ = named(server, "Tides")["id"]
    viewer.to(f"/item/{id_}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Tides are kept in UTC")
    assert page.title() == "Tides are kept in UTC · yester"
    said = page.locator(".said-whole")
    for text in ("And shown in local time", "Clocks differ.", "Next steps", "Test in June"):
        expect(said).to_contain_text(text)
    expect(said.locator(".markdown").first).to_have_text(HOSTILE.replace("`", ""))
    assert said.locator("b").count() == 0
    expect(said.locator("code").first).to_have_text("code <i>")
    aside = page.get_by_role("complementary")
    number = server.get(f"/api/items/{id_}")["item"]["session_db_id"]
    link = aside.get_by_role("link", name=f"S{number}, prompt 3")
    assert link.get_attribute("href") == f"#/session/S{number}?at={id_}"
    for name in ("src/tides.py", "docs/clock.md", "gotcha"):
        aside.get_by_role("link", name=name).click()
        found = page.locator(".hit a.title, .file-view aside").first
        expect(found).to_contain_text("Tides are kept in UTC")
        assert page.locator(".hit").count() < 3
        page.go_back()
        page.wait_for_selector(".item-view")


@pytest.mark.requirement("STO-07")
def test_an_item_and_a_session_are_forgotten_on_a_second_word(viewer, server, home):
    page = viewer.page
    id_ = named(server, "Tides")["id"]
    session = server.get("/api/sessions")["sessions"][-1]["db_id"]
    box = page.get_by_role("dialog")
    for place in (f"/item/{id_}", f"/session/S{session}"):
        viewer.to(place)
        for answer in ("Cancel", "Forget for good"):
            page.get_by_role("button", name="Forget for good").click()
            expect(box).to_contain_text("would go. There is no undo")
            assert server.get("/api/sessions")["count"] > 0
            box.get_by_role("button", name=answer).click()
            expect(box).to_have_count(0)
        expect(page.locator("#notices")).to_contain_text("gone, and every backup written anew")
    assert b"Tides are kept" not in (home / "yester.db").read_bytes()


@pytest.mark.requirement("DEL-11")
def test_tokens_are_told_and_no_saving_is_claimed(viewer, server):
    row = named(server, "Tides")
    viewer.to(f"/item/{row['id']}")
    aside = viewer.page.get_by_role("complementary")
    expect(aside).to_contain_text(f"~{row['tokens']}")
    expect(aside).to_contain_text("~4,321")
    expect(aside).to_contain_text("no saving")
    viewer.to(f"/item/{named(server, 'word')['id']}")
    expect(aside).to_contain_text("not made from anything")


def test_messages_and_what_was_made_of_them_lead_to_each_other(viewer, server):
    page = viewer.page
    row = server.get("/api/items", kinds="observation", project="shop", limit=1)["results"][0]
    sources = server.get(f"/api/items/{row['id']}")["sources"]
    assert sources
    viewer.to(f"/item/{row['id']}")
    section = page.locator("section", has=page.get_by_role("heading", name="Made from"))
    expect(section.locator("a.title")).to_have_count(len(sources))
    section.locator("a.title").first.click()
    section = page.locator("section", has=page.get_by_role("heading", name="What was made of it"))
    links = section.locator("a.title")
    expect(links.first).to_be_visible()
    hrefs = [link.get_attribute("href") for link in links.all()]
    assert f"#/item/{row['id']}" in hrefs


@pytest.mark.requirement("REC-18")
def test_a_word_on_its_use_by_keyboard_and_taken_back(viewer, server):
    page = viewer.page
    id_ = named(server, "Tides")["id"]
    viewer.to(f"/item/{id_}")
    aside = page.get_by_role("complementary")
    expect(aside).to_contain_text("looked at here")
    aside.get_by_role("button", name="Useful", exact=True).focus()
    page.keyboard.press("Enter")
    useful = aside.get_by_role("button", name="Useful", exact=True)
    expect(useful).to_have_attribute("aria-pressed", "true")
    expect(useful).to_be_focused()
    expect(aside).to_contain_text("you said it is useful")
    assert server.get(f"/api/items/{id_}")["use"]["feedback"] == {"opened": 1, "useful": 1}
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(aside.get_by_role("button", name="Not useful")).to_have_attribute("aria-pressed", "true")
    expect(aside).to_contain_text("In the way")
    assert server.get(f"/api/items/{id_}")["use"]["feedback"] == {"opened": 1, "useless": 1}
    aside.get_by_role("button", name="Take it back").click()
    expect(aside.get_by_role("button", name="Take it back")).to_have_count(0)
    assert server.get(f"/api/items/{id_}")["use"]["feedback"] == {"opened": 1}


@pytest.mark.requirement("REC-18")
def test_looking_at_it_counts_once_a_visit(viewer, server):
    page = viewer.page
    told: list[str | None] = []
    page.on("request", lambda one: one.url.endswith("/api/feedback") and told.append(one.post_data))
    id_ = named(server, "Tides")["id"]
    for _ in range(2):
        viewer.to(f"/item/{id_}")
        expect(page.get_by_role("complementary")).to_contain_text("looked at here")
        viewer.to("/timeline")
        page.wait_for_selector(".timeline")
    viewer.to(f"/item/{id_}")
    page.reload()
    expect(page.get_by_role("complementary")).to_contain_text("looked at here")
    assert server.get(f"/api/items/{id_}")["use"]["feedback"] == {"opened": 1}
    assert told == [f'{{"ids":[{id_}],"what":"opened"}}']


def test_where_it_was_shown_also_while_one_looks(viewer, server, home):
    page = viewer.page
    id_ = named(server, "Tides")["id"]
    show(home, id_, event="UserPromptSubmit", reason="fits: tides", prompt_number=1)
    viewer.to(f"/item/{id_}")
    lines = page.locator(".shown-lines li")
    expect(lines).to_have_count(1)
    expect(lines.first).to_contain_text("with a prompt in S1, prompt 1")
    expect(lines.first).to_contain_text("fits: tides · score 0.50 · ~21 tokens")
    expect(page.locator("header .live")).to_have_text("live")
    show(home, id_)
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("at the start of a session")


def test_what_is_around_it_is_walked_by_keyboard(viewer, server):
    page = viewer.page
    rows = server.get("/api/items", project="shop", orderBy="date_asc", limit=100)["results"]
    middle = rows[4]
    viewer.to(f"/item/{middle['id']}")
    around = page.locator("section", has=page.get_by_role("heading", name="Around it"))
    expect(around.locator("[aria-current]")).to_have_attribute("href", f"#/item/{middle['id']}")
    hrefs = [link.get_attribute("href") for link in around.locator("a.title").all()]
    assert hrefs == [f"#/item/{row['id']}" for row in rows[:10]]
    around.locator("a.title").first.focus()
    page.keyboard.press("j")
    expect(around.locator("a.title").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile(rf"/item/{middle['id']}$"))
    page.wait_for_selector(".item-view")


def test_a_long_text_begins_and_is_shown_whole_on_demand(viewer, server):
    viewer.to(f"/item/{named(server, 'word')['id']}")
    text = viewer.page.locator(".said-whole .markdown")
    assert len(text.inner_text()) <= 6_100
    viewer.page.get_by_role("button", name=re.compile("Show all of it .1.,... characters")).click()
    assert len(text.inner_text()) > 14_000


def test_an_item_that_does_not_exist_is_said(viewer):
    viewer.to("/item/99999")
    expect(viewer.page.get_by_role("alert").first).to_contain_text("No item #99999")
    viewer.complaints.clear()  # the browser's own, of the 404


def test_on_a_phone_in_the_dark_nothing_is_wider_than_the_page(viewer, server, home):
    page = viewer.page
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    id_ = named(server, "Tides")["id"]
    show(home, id_, reason="a" * 300)
    for place in (id_, named(server, "word")["id"]):
        viewer.to(f"/item/{place}")
        page.wait_for_selector(".item-view")
        assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 400
        assert page.evaluate("() => document.querySelector('main').scrollWidth") <= 400
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == (
        "rgb(24, 26, 25)"
    )
