"""The whole viewer without a mouse: each thing one opens it for, by keys alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

import yester
from tests.distilling import Story, distilled
from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.model import Project, Session
from yester.store import open_store

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "memory"
    story = Story()
    for number in range(2):
        story.prompt(f"Why does lantern {number} flicker?")
        story.ran(f"pytest -k lantern_{number}", "3 passed")
        story.replaces("src/lantern.py", f"wick = {number}\n", f"wick = {number + 1}\n")
        story.says(f"The wick of lantern {number} was too short.")
    store = open_store(with_store(path), now=1)
    with store.transaction("items"):
        store.put_project(Project(story.project, "shop"))
        store.put_session(
            Session(story.session, "claude-code", story.project, story.items[0].epoch, story.clock,
                    title="Lanterns")
        )  # fmt: skip
        store.put(list(map(prepare_item, story.items)))
    distilled(store)
    store.close()
    with yester.open(path) as memory:
        memory.remember("Lanterns burn oil", type="decision", project="shop")
    return path


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, name: str) -> None:
    """With the Tab key to what has this name (a pattern), wherever that is in the view."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if re.search(name, page.evaluate(_NAME)):
            return
    raise AssertionError(f"Tab never came to {name!r}")


_NAME = """(({ariaLabel, labels, tagName, textContent}) => tagName === "BODY" ? ""
  : ariaLabel ?? labels?.[0]?.textContent ?? textContent)(document.activeElement)"""


def heading(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    expect(page.locator("main:not([aria-busy])")).to_be_visible()


def test_finding_reading_and_tidying_up_need_no_mouse(viewer):
    page, focused = viewer.page, viewer.page.locator(":focus")
    press(page, "/")
    page.keyboard.type("wick flicker")
    press(page, "Enter")
    expect(page.locator(".hit").first).to_be_visible()
    press(page, "j")
    expect(focused).to_have_class(re.compile("title"))
    press(page, "Enter")
    expect(page.locator(".item-view")).to_be_visible()

    press(page, "g", "s")
    heading(page, "Sessions")
    expect(page.get_by_role("link", name="Lanterns")).to_be_visible()
    press(page, "j")
    expect(focused).to_have_text("Lanterns")
    press(page, "Enter")
    heading(page, "Lanterns")
    press(page, "n", "n")
    expect(focused).to_contain_text("Why does lantern 1 flicker?")
    press(page, "j", "Enter")
    expect(page.locator(".terminal")).to_contain_text("pytest -k lantern_1")
    press(page, "ArrowRight")
    expect(page.locator(".replay")).to_have_class(re.compile("on"))
    press(page, "Escape")
    tab_to(page, r"^(src/)?lantern\.py$")
    press(page, "Enter")
    heading(page, "lantern.py")

    press(page, "g", "t")
    heading(page, "Timeline")
    tab_to(page, ": 2 turns$")  # of the year of days
    press(page, "Enter")
    expect(page).to_have_url(re.compile("day="))

    press(page, "g", "m")
    heading(page, "Memories")
    press(page, "j", "x")
    tab_to(page, "^Retire 1")
    press(page, "Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    tab_to(page, "Also the one")
    press(page, "Space")
    tab_to(page, "^Retire$")
    press(page, "Enter")
    expect(page.locator("main")).to_contain_text("Nothing is remembered yet")

    press(page, "Control+k")
    page.keyboard.type("what would")
    expect(page.locator("[aria-selected=true]")).to_contain_text("What would an agent be given")
    press(page, "Enter")
    heading(page, "What would be injected now")
