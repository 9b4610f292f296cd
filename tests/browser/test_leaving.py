"""What is open when another view is gone to: questions end with no, typed words are asked about."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

import yester
from yester.memories import lifecycle
from yester.memories.memory import Author
from yester.memories.remember import Draft, remember
from yester.model import Project

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

SHOP = Project("name:shop", "shop")
NOON = 1_772_000_000_000


@pytest.fixture
def filled(tmp_path):
    home = tmp_path / "memory"
    with yester.open(home) as memory:
        with memory.store.transaction("items"):
            memory.store.put_project(SHOP)
        kept = remember(
            memory.store, Draft("The staging machine sleeps on Sundays", "note"), SHOP,
            Author("sam", NOON),
        )  # fmt: skip
    return home, kept.memo.item.id


@pytest.fixture
def home(filled):
    return filled[0]


@pytest.fixture
def id_(filled):
    return filled[1]


def known(home, id_):
    with yester.open(home) as memory:
        return memory.store.memos(ids=[id_])[0].item


def opened_to_edit(viewer, id_):
    """The form, with the list of memories one step back, and other words in its title."""
    viewer.to("#/memories")
    expect(viewer.page.locator(".memory-row")).to_have_count(1)
    viewer.to(f"#/memory/{id_}?edit=1")
    field = viewer.page.locator("main form input[name=title]")
    field.fill("Typed and not saved")
    return field


def test_going_back_answers_an_open_question_with_no(viewer, home, id_):
    page = viewer.page
    viewer.to("#/memories")
    expect(page.locator(".memory-row")).to_have_count(1)
    viewer.to(f"#/memory/{id_}")
    page.get_by_role("button", name="Retire…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".memory-row")).to_have_count(1)
    assert known(home, id_).status == "active"


def test_the_list_of_keys_goes_with_its_view(viewer):
    page = viewer.page
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    viewer.to("#/projects")
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("way", ["link", "back", "key"])
def test_typed_words_are_asked_about_before_they_are_lost(viewer, home, id_, way):
    page = viewer.page
    field = opened_to_edit(viewer, id_)

    def leave():
        if way == "link":
            page.locator("nav#views").get_by_role("link", name="Statistics").click()
        elif way == "back":
            page.go_back()
        else:
            field.blur()
            page.keyboard.press("r")

    leave()
    asks = page.get_by_role("dialog", name="Leave without saving?")
    asks.get_by_role("button", name="Stay").click()
    expect(asks).to_have_count(0)
    expect(field).to_have_value("Typed and not saved")
    assert page.url.endswith(f"#/memory/{id_}?edit=1")

    leave()
    asks.get_by_role("button", name="Leave").click()
    if way == "key":
        expect(field).to_have_value(re.compile("^The staging machine"))
    else:
        name = {"link": "Statistics", "back": "Memories"}[way]
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    assert known(home, id_).title.startswith("The staging machine")


def test_what_is_saved_or_cancelled_or_untouched_is_not_asked_about(viewer, home, id_):
    page = viewer.page
    opened_to_edit(viewer, id_)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Retire…")).to_be_visible()
    opened_to_edit(viewer, id_)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_contain_text("Typed and not saved")
    assert known(home, id_).title == "Typed and not saved"
    viewer.to(f"#/memory/{id_}?edit=1")
    expect(page.locator("main form")).to_be_visible()
    viewer.to("#/projects")
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_new_memory_half_written_is_asked_about(viewer):
    page = viewer.page
    viewer.to("#/memories?new=1")
    page.get_by_label("What to remember").fill("Half a thought")
    page.locator("nav#views").get_by_role("link", name="Statistics").click()
    asks = page.get_by_role("dialog", name="Leave without saving?")
    asks.get_by_role("button", name="Stay").click()
    expect(page.get_by_label("What to remember")).to_have_value("Half a thought")


@pytest.mark.parametrize("place", ["#/memories", "#/memory/{}"])
def test_what_was_done_in_a_terminal_is_seen_on_coming_back(viewer, home, id_, place):
    page = viewer.page
    viewer.to(place.format(id_))
    there = page.locator(".memories, .memory").get_by_text("The staging machine sleeps on Sundays")
    expect(there.first).to_be_visible()
    with yester.open(home) as memory:
        lifecycle.change_status(memory.store, id_, "retire", Author("sam", NOON + 1, why="awake"))
    page.evaluate("dispatchEvent(new Event('focus'))")
    if "{" in place:
        expect(page.locator(".chips")).to_contain_text("Retired")
    else:
        expect(there).to_have_count(0)
