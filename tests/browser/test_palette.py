"""The command palette: everything one can go to or do, without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import yester

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def home(tmp_path):
    with yester.open(tmp_path / "memory") as memory:
        memory.remember("Orders keep their own key", type="decision", project="shop")
        memory.add([
            {"ref": "1", "kind": "prompt", "role": "user", "text": "Why are lanterns blue?",
             "session": "s-1", "agent": "codex", "project": "harbour"},
            {"ref": "2", "kind": "note", "title": "A note", "project": HOSTILE},
        ])  # fmt: skip
    return tmp_path / "memory"


def test_views_projects_sessions_memories_and_actions_are_found_by_letters(viewer, window):
    page = viewer.page
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    options = page.locator("dialog.palette").get_by_role("option")

    def choose(words: str, name: str, heading: str) -> None:
        page.keyboard.press("Control+k")
        page.keyboard.type(words)
        expect(options.filter(has_text=name).first).to_be_visible()
        while name not in page.locator("[aria-selected=true]").inner_text():
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)

    choose("stat", "Statistics", "Statistics")
    choose("own key", "Orders keep their own key", "Orders keep their own key")
    choose("harb search", "harbour: search", "Search")
    choose("lanterns", "Why are lanterns blue?", "")
    choose("new mem", "Write a new memory", "Memories")
    page.keyboard.press("Control+k")
    page.keyboard.type("img")
    expect(options.first).to_contain_text(HOSTILE)
    assert page.locator("dialog img").count() == 0
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    viewer.to("/projects")
    page.keyboard.press("c")
    expect(page.get_by_role("status").last).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"{viewer.address}#/projects"
