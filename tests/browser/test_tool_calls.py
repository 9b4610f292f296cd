"""Tool calls in a real browser: what was put in is never shown as what came out."""

from __future__ import annotations

import re

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
    for fold in calls.locator("details").all():
        fold.evaluate("(one) => { one.open = true }")
    edit, write, multi, other, script, read, silent = calls.all()
    first, key, _, last = NEW_TEXT.split("\n")  # the blank line was there before in two of them
    added = ((edit, [key, last]), (write, [first, key, "", last]), (multi, [first, key, last]))
    for one, lines in added:
        assert one.locator("ins.line").all_inner_texts() == [f"+{line}\n" for line in lines]
    assert multi.locator("del.line").all_inner_texts() == ["-a\n", "-b\n"]
    expect(edit.locator("del.line")).to_have_text(re.compile(r"^-\s+pass"))
    expect(write).to_contain_text("what was there before is not recorded")
    expect(write.locator("summary .chip.bad")).to_be_visible()
    expect(write.locator("pre").last).to_have_text("Error: EACCES: permission denied")
    assert other.locator("pre").count() == 2
    expect(other.locator("pre").last).to_have_text("inserted 4 lines")
    assert script.locator("pre").all_inner_texts() == [f"$ {SCRIPT}", "1 passed\n\nall well"]
    for one in (write, other, read):
        expect(one.locator(".label")).to_have_text("Output")
    assert read.locator("pre").last.inner_text() == "def charge(order):\n\n    pass"
    expect(silent).to_contain_text("It printed nothing.")
