"""Tool calls in a real browser: what was put in is never shown as what came out."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.tool_calls import CALLS, NEW_TEXT, SCRIPT, make_calls

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]


@pytest.fixture
def home(home, run, transcript):
    make_calls(transcript())
    assert run("index").code == 0
    return home


def test_what_was_put_in_is_told_from_what_came_out_whatever_either_holds(viewer):
    viewer.to("#/session/S1")
    viewer.page.wait_for_selector("article.is-tool")
    calls = viewer.page.locator("article.is-tool")
    expect(calls).to_have_count(len(CALLS))
    for summary in calls.locator("summary").all():
        summary.click()
    edit, write, multi, other, script, read, silent = calls.all()
    assert [len(one.locator("pre").all()) for one in (edit, write, multi, other)] == [1, 2, 2, 2]
    assert edit.locator("pre").inner_text().endswith(NEW_TEXT)
    assert write.locator("pre").first.inner_text().endswith(NEW_TEXT)
    expect(write.locator("summary .chip.bad")).to_be_visible()
    expect(write.locator("pre").last).to_have_text("Error: EACCES: permission denied")
    expect(other.locator("pre").last).to_have_text("inserted 4 lines")
    assert script.locator("pre").all_inner_texts() == [SCRIPT, "1 passed\n\nall well"]
    for one in (write, multi, other, script, read):
        expect(one.locator(".label")).to_have_text("Output")
    assert read.locator("pre").all_inner_texts() == ["def charge(order):\n\n    pass"]
    for one in (edit, silent):
        expect(one).to_contain_text("No output was recorded.")
