"""A session read in a real browser: markdown, diffs, terminals, reads, prompts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.distilling import SESSION, Story, distilled
from tests.stores import with_store
from yester.ingest.prepare import prepare_item
from yester.model import Project, Session, replace
from yester.store import open_store

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

SAID = """## What I found

1. The **key** is `null`:
   - in `charge()`
   - and *never* set
2. See [the docs](https://docs.example/keys "keys"), not [this](javascript:alert(1)).

| call | key |
|---|--:|
| charge | 1 |

> quoted words

```python
def charge(order):  # twice
    return "key"
```
"""
BEFORE = "def charge(order):\n    return post(order)\n"
AFTER = "def charge(order):\n    key = order.id\n    return post(order, key)\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("reader") / "memory"
    story = Story()
    story.prompt("Why does the webhook charge twice?")
    for name in ("pay.py", "key.py", "hook.py"):
        story.reads(f"src/{name}")
    story.says(SAID)
    story.prompt("And now fix it")
    story.replaces("src/pay.py", BEFORE, AFTER)
    failed = story.fails("pytest -x", "E  KeyError: key\n1 failed", status=2)
    story.items[-1] = replace(failed, call=replace(failed.call, status=2))
    for place in range(30):
        story.says(f"Thought number {place} about it.\n\nAnd more of it.")
    story.prompt("Is it done?")
    story.says("Nearly.")
    store = open_store(with_store(path), now=1)
    with store.transaction("items"):
        store.put_project(Project(story.project, "shop"))
        store.put_session(
            Session(story.session, "claude-code", story.project, story.items[0].epoch, story.clock,
                    cwd="/home/sam/shop", title="Webhooks")
        )  # fmt: skip
        store.put([prepare_item(one) for one in story.items])
    distilled(store)
    store.close()
    return path


@pytest.fixture
def page(viewer):
    viewer.to("#/session/S1")
    expect(viewer.page.locator("article.entry.is-user")).to_have_count(3)
    return viewer.page


def test_what_was_said_is_markdown_and_its_links_lead_to_the_web_alone(page):
    said = page.locator(".entry.is-assistant .markdown").first
    expect(said.locator("p.heading.level-2")).to_have_text("What I found")
    expect(said.locator("ol > li > ul > li")).to_have_count(2)
    expect(said.locator("strong")).to_have_text("key")
    expect(said.locator("em")).to_have_text("never")
    expect(said.locator("blockquote")).to_have_text("quoted words")
    expect(said.locator("td").last).to_have_css("text-align", "right")
    link = said.get_by_role("link")
    expect(link).to_have_count(1)
    expect(link).to_have_attribute("href", "https://docs.example/keys")
    expect(link).to_have_attribute("rel", re.compile("noopener noreferrer"))
    expect(said).to_contain_text("[this](javascript:alert(1))")
    for kind, words in (("keyword", "def"), ("comment", "# twice"), ("string", '"key"')):
        expect(said.locator(f"pre.code .tok-{kind}").first).to_have_text(words)


def test_edits_are_diffs_commands_terminals_and_reads_are_folded(page):
    diff = page.locator(".diff")
    expect(diff.locator("ins.line")).to_have_count(2)
    expect(diff.locator("del.line")).to_have_text(re.compile(r"^-\s+return post\(order\)"))
    expect(diff.locator(".diff-head")).to_contain_text("src/pay.py+2 −1")
    expect(diff.get_by_role("link", name="src/pay.py")).to_have_attribute(
        "href", "#/file?project=shop&path=src%2Fpay.py"
    )
    reads = page.locator(".entry-run")
    expect(reads.locator("> details > summary")).to_have_text("3 readspay.py, key.py, hook.py")
    reads.locator("> details > summary").click()
    expect(reads.locator("article.entry")).to_have_count(3)
    failed = page.locator("article.is-tool", has_text="pytest -x")
    expect(failed.locator("summary .chip.bad")).to_have_text("exit 2")
    failed.locator("summary").click()
    expect(failed.locator(".terminal .command")).to_have_text("$ pytest -x")
    expect(failed.locator(".terminal")).to_contain_text("KeyError: key")
    expect(failed.locator(".terminal .exit.bad")).to_have_text("exit 2")


def test_it_is_narrowed_and_searched_by_the_address(page):
    page.get_by_label("Show", exact=True).select_option("errors")
    expect(page.locator("article.entry")).to_have_count(1)
    expect(page).to_have_url(re.compile("only=errors"))
    page.get_by_label("Show", exact=True).select_option("edits")
    expect(page.locator("article.entry .diff")).to_have_count(1)
    page.get_by_label("Show", exact=True).select_option("")
    expect(page.locator("article.entry.is-user")).to_have_count(3)
    field = page.get_by_label("Search in this session")
    field.fill("number 2")
    field.press("Enter")
    expect(page.locator(".tools.sticky [role=status]").first).to_have_text("11 entries")
    expect(page.locator("article.entry mark").first).to_have_text("number 2")
    page.locator("article.entry .clock").last.click()  # to its place in the whole
    expect(page.locator("article.entry.here")).to_contain_text("number 29")
    expect(page.locator("article.entry.is-user")).to_have_count(3)


def test_prompts_stand_beside_it_with_their_status_and_keys_bring_them_to_the_top(page):
    outline = page.locator(".outline li")
    expect(outline).to_have_count(3)
    expect(outline.nth(1).get_by_role("img")).to_have_attribute("aria-label", "failed")
    top = "one => one.getBoundingClientRect().top - document.querySelector('main').offsetTop"
    for place in range(2):
        page.keyboard.press("n")
        expect(page.locator("article.is-user").nth(place)).to_be_focused()
    assert 0 <= page.locator("article.is-user").nth(1).evaluate(top) < 90
    expect(outline.nth(1)).to_have_class("now")
    outline.nth(0).get_by_role("link").click()
    expect(page.locator("article.is-user").first).to_be_focused()
    files = page.locator(".files-panel li")
    expect(files).to_have_count(3)
    expect(files.first).to_contain_text("pay.pysrc1 edit, 1 read")


def test_it_is_replayed_by_arrows_and_copied_as_markdown(viewer, page, window):
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    first, second = page.locator("article.entry.is-user").first, page.locator(".diff").first
    page.keyboard.press("ArrowRight")
    expect(first).to_be_focused()
    expect(second).not_to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("article.entry.now")).to_contain_text("What I found")
    page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()
    page.keyboard.press("Escape")
    expect(second).to_be_visible()
    page.get_by_role("button", name="Copy the session as markdown").click()
    expect(page.locator("#notices")).to_contain_text("Copied.")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("# Webhooks\n")
    assert "## You, " in text
    assert "```diff\n def charge(order):\n-    return post(order)\n+    key = order.id" in text
    assert "```console\n$ pytest -x\n" in text
    expect(page.locator(".copyable code")).to_have_text(
        re.compile(r"^cd /home/sam/shop && claude --resume ")
    )


def test_a_turn_stands_once_beside_it_and_is_a_place(viewer, page):
    titles = page.locator(".found .found-title a").all_inner_texts()
    assert len(titles) == len(set(titles))
    card = page.locator(".found[data-card]").first.get_attribute("data-card")
    viewer.to(f"#/session/S1?at={card}")
    expect(page.locator(".found.here")).to_have_attribute("data-card", str(card))


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("Copy the code", 'def charge(order):  # twice\n    return "key"'),
        ("Copy the changes", " def charge(order):\n-    return post(order)\n+    key = order.id\n"
         "+    return post(order, key)"),
        ("Copy the session’s id", SESSION),
    ],
)  # fmt: skip
def test_blocks_and_ids_are_copied(page, window, name, copied):
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=name).first.click()
    expect(page.locator("#notices")).to_contain_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == copied
