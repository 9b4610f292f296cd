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


def test_an_edit_is_never_shown_as_output_and_a_commands_output_is(viewer):
    viewer.to("#/session/S1")
    viewer.page.wait_for_selector("article.is-tool")
    calls = viewer.page.locator("article.is-tool")
    expect(calls).to_have_count(len(CALLS))
    for summary in calls.locator("summary").all():
        summary.click()
    edit, write, multi, other, script, read, silent = calls.all()
    for one in (edit, write, multi, other):
        expect(one.locator("pre")).to_have_count(1)
        expect(one.locator(".label")).to_have_count(0)
        expect(one).not_to_contain_text("No output was recorded.")
    assert edit.locator("pre").inner_text().endswith(NEW_TEXT)
    assert NEW_TEXT in write.locator("pre").inner_text()
    expect(write.locator("summary .chip.bad")).to_be_visible()
    expect(write.locator("pre")).to_contain_text("permission denied")
    assert script.locator("pre").all_inner_texts() == [SCRIPT, "1 passed\n\nall well"]
    for one in (script, read):
        expect(one.locator(".label")).to_have_text("Output")
    assert read.locator("pre").all_inner_texts() == ["def charge(order):\n\n    pass"]
    expect(silent).to_contain_text("No output was recorded.")
