"""The projects that a team shares, in Settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import yester
from yester.sharing.share import Share, Shares, save_shares

pytestmark = [pytest.mark.browser, pytest.mark.requirement("TEAM-02", "DEL-10")]


@pytest.fixture
def home(tmp_path) -> Path:
    folder = tmp_path / "memory"
    with yester.open(folder) as memory:
        memory.add([{"ref": "1", "kind": "observation", "title": "Here", "project": "shop"}])
    return folder


def test_settings_show_how_to_share_then_what_is_shared_and_what_is_wrong(viewer, home):
    viewer.to("/settings")
    expect(viewer.page.get_by_text("yester share PROJECT --to URL --dry-run")).to_be_visible()
    share = Share(
        "name:shop", "https://memory.example.org", "sam", "origin",
        problems=["it cannot be reached"], refused={"forgotten": [1]},
    )  # fmt: skip
    save_shares(home, Shares([share]))
    viewer.page.reload()
    viewer.page.wait_for_selector("main:not([aria-busy])")
    table = viewer.page.get_by_role("table", name="Shared with a team")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table.get_by_text("https://memory.example.org")).to_be_visible()
    expect(viewer.page.get_by_text("it cannot be reached")).to_be_visible()
    expect(viewer.page.get_by_text("shop: not taken: 1 (forgotten)")).to_be_visible()
