"""A file's page and the timeline by turns, in a real browser, over a project that is on disk."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

import yester
from tests.browser.conftest import PHONE
from tests.distilling import Story, distilled
from tests.flow.test_surroundings import git
from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.project import Projects
from yester.store import open_store

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10", "REC-23")]

TIMELINE = "#/timeline"
DAY = 86_400_000
BEGAN = int(time.time() * 1000) // DAY * DAY - 40 * DAY + DAY // 2
FIRST = "def open_link(host):\n    link = connect(host, timeout=8)\n    return link\n"
LATER = "    link = connect(host, timeout=8, fresh=True)\n    link.on_close(forget_link)\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("file")
    shop = folder / "shop"
    shop.mkdir()
    git(shop, "init", "-q")
    changed = FIRST.replace("    link = connect(host, timeout=8)\n", LATER)
    (shop / "link.py").write_text(f'"""By hand."""\n{changed}')
    project = Projects({}).by_folder(str(shop))
    store = open_store(with_store(folder / "memory"), now=1)
    steps = (("", FIRST), ("    link = connect(host, timeout=8)\n", LATER))
    for number, (old, new) in enumerate(steps):
        story = Story(f"{number}aaaaaaa-0000-4000-8000-000000000001", project.key,
                      BEGAN + number * 9 * DAY)  # fmt: skip
        story.prompt(f"Make the link work, attempt {number}")
        story.replaces("link.py", old, new)
        story.ran("pytest -q", "9 passed in 0.1s")
        story.prompt(f"Thanks, what is left of attempt {number}?")
        story.says("Nothing is left.")
        with store.transaction("items"):
            store.put_project(project)
            store.put(list(map(prepare_item, story.items)))
    distilled(store)
    store.close()
    return folder / "memory"


def test_each_line_of_a_file_stands_beside_the_turn_that_wrote_it(viewer):
    page = viewer.page
    viewer.to(TIMELINE)
    page.locator(".turn .file", has_text="link.py").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("link.py")
    stretches = page.locator(".stretch")
    expect(stretches).to_have_count(4)
    expect(stretches.nth(0)).to_contain_text("no recorded session")
    expect(stretches.nth(2).locator(".author")).to_contain_text("replaced 1 line")
    expect(stretches.nth(2).locator(".line")).to_have_count(2)
    expect(stretches.nth(2).locator("[aria-label=done]")).to_have_count(1)
    expect(page.locator(".turn")).to_have_count(2)
    viewer.page.set_viewport_size(PHONE)
    assert page.evaluate("document.querySelector('main').scrollWidth") <= 400
    stretches.nth(2).locator(".author a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("attempt 1")


def test_a_year_of_days_leads_to_sessions_and_their_turns(viewer, home):
    page = viewer.page
    viewer.to(TIMELINE)
    days = page.locator(".day-block")
    expect(days).to_have_count(2)
    expect(page.locator(".heat-head")).to_contain_text("4 turns on 2 days")
    cell = page.locator(".heat svg a").first
    expect(cell).to_have_attribute("aria-label", re.compile(": 2 turns$"))
    cell.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("day="))
    expect(days).to_have_count(2)  # the later one comes in above it
    expect(days.nth(1)).to_be_in_viewport()
    turns = days.nth(1).locator(".turn-session .turn")
    expect(turns).to_have_count(2)
    expect(turns.first.locator(".status")).to_have_attribute("aria-label", "done")
    expect(turns.first.locator(".status-chip")).to_have_text("✓ done")
    turns.first.locator("a.title").click()
    expect(page.locator("article.entry.here")).to_contain_text("attempt 0")
    viewer.to(TIMELINE)
    expect(page.locator("header .live")).to_have_text("live")
    with yester.open(home) as memory:
        today = {"ref": "now", "kind": "prompt", "role": "user", "text": "And of today?"}
        memory.add([today | {"project": "shop", "epoch": time.time()}], embed="later")
    expect(page.locator(".day-block").first).to_contain_text("And of today?")
