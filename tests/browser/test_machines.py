"""The machines that are kept in step, in Settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import yester
from tests.roaming import Box

pytestmark = [pytest.mark.browser, pytest.mark.requirement("TEAM-05", "DEL-10")]


@pytest.fixture
def home(tmp_path) -> Path:
    folder = tmp_path / "memory"
    with yester.open(folder) as memory:
        memory.add([{"ref": "1", "kind": "observation", "title": "Here", "project": "shop"}])
    return folder


def test_settings_show_how_to_begin_then_the_machines_and_what_waits(viewer, home, tmp_path):
    viewer.to("/settings")
    expect(viewer.page.get_by_text("yester roam --to FOLDER")).to_be_visible()
    one, other = (Box(folder, tmp_path / "log") for folder in (home, tmp_path / "other"))
    one.begin()
    other.join(one)
    other.roam()
    one.roam()
    one.close()
    other.close()
    with yester.open(home) as memory:
        memory.add([{"ref": "2", "kind": "observation", "title": "Later", "project": "shop"}])
    viewer.page.reload()
    viewer.page.wait_for_selector("main:not([aria-busy])")
    table = viewer.page.get_by_role("table", name="Your machines")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table.get_by_text("this one")).to_be_visible()
    expect(viewer.page.get_by_text("1 item waits to be sent")).to_be_visible()
