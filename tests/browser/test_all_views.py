"""What holds for every view: names, headings, titles, focus, colours, width, back and forward."""

from __future__ import annotations

import time
from pathlib import Path

import axe_core_python
import pytest
from playwright.sync_api import expect

import yester
from tests.browser.conftest import PHONE, WIDE
from tests.browser.test_reader import AFTER, BEFORE, SAID
from tests.browser.views import COUNTING, VIEWS, address, opened, whole
from tests.distilling import Story
from yester.ingest.prepare import prepare_item
from yester.model import Change, Injection, Item, Memo, Project, Session
from yester.project import Projects

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path, now = tmp_path_factory.mktemp("views") / "memory", int(time.time() * 1000)
    with yester.open(path) as memory, memory.store.transaction("memories"):
        store = memory.store
        for name in ("shop", "garden"):
            store.put_project(Project(f"name:{name}", name, f"/home/sam/{name}"))
        session = store.put_session(
            Session("s-one", "claude-code", "name:shop", now - 60_000, now, "/home/sam/shop",
                    "main", "Why totals were wrong")
        )  # fmt: skip

        def item(kind, **more):
            return Item(
                f"{kind}-1", kind, "name:shop", "s-one", agent="claude-code", epoch=now - 1_000,
                title="Totals are rounded once", body="Totals are rounded once, at the end.",
                facts=("Prices are integers",), concepts=("gotcha",), tags=("money",),
                files_read=("src/total.py",), discovery_tokens=900, **more,
            )  # fmt: skip

        store.put([
            prepare_item(item("prompt", role="user", prompt_number=1)),
            prepare_item(item("message", role="assistant")),
            prepare_item(item("observation", type="bugfix")),
            prepare_item(Item("rose", "note", "name:garden", epoch=now - 2_000, body="Roses")),
        ])  # fmt: skip
        memo = Memo(
            item("memory", type="decision", origin="user"), "totals", content={"decision": "Once."}
        )
        change = Change(0, now, "sam", "create", "", None, {"title": "Totals"})
        id_ = store.put_memo(prepare_item(memo.item), memo, change)
        store.append([Injection(session, "SessionStart", id_, 0.5, 20, now, "newest")])
        _tell_story(store, path.parent / "pier", now - 3_600_000)
    return path


def _tell_story(store, folder, began):
    """A session with everything a transcript can hold, of a project that is on disk."""
    folder.mkdir()
    (folder / "pay.py").write_text(f"# by hand\n{AFTER}")
    project = Projects({}).by_folder(str(folder))
    store.put_project(project)
    story = Story("story", project.key, began)
    story.prompt("Why does the webhook charge twice?")
    for name in ("key.py", "hook.py"):
        story.reads(name)
    story.says(SAID)
    story.replaces("pay.py", BEFORE, AFTER)
    story.ran("pytest -x", "E  KeyError: key\n1 failed", failed=True, ref="failing")
    store.put([prepare_item(one) for one in story.items])


# Of some views there is more than one.
MORE = (
    "#/search?query=totals", "#/search?query=xyzzyplugh", "#/timeline?show=items",
    "#/memories?new=1", "#/memory/{memory}?edit=1", "#/shown?preview=1&project=shop",
    "#/session/story", "#/session/story?only=errors", "#/session/story?find=charge",
    "#/file?project=pier&path=pay.py", "#/file?project=pier&path=hook.py", "#/item/{call}",
)  # fmt: skip


@pytest.fixture(autouse=True)
def counting(window):
    window.add_init_script(COUNTING)


@pytest.fixture
def at(server):
    with yester.open(server.home) as memory:
        ids = [memory.store.find_by_ref(f"{kind}-1")[0].id for kind in ("observation", "memory")]
    session = server.get("/api/sessions")["sessions"][0]["db_id"]

    def at(route):
        return address(route, ids[0], session, ids[1])

    return at


@pytest.fixture
def every_view(viewer, at):
    """Each view in turn, in one page: a server and a browser profile for each would cost more
    than what is asked of it. A failure names the view by its address."""
    with yester.open(viewer.server.home) as memory:
        (memo,), (call,) = map(memory.store.find_by_ref, ("memory-1", "failing"))
    more = [one.format(memory=memo.id, call=call.id) for one in MORE]

    def every_view():
        for place in (*map(at, VIEWS), *more):
            opened(viewer.page, place)
            yield place

    return every_view


_UNNAMED = """() => {
  const text = (one) => (one?.textContent ?? "").trim();
  const ids = (one) => (one.getAttribute("aria-labelledby") ?? "").split(" ");
  const inside = (one) => !one.matches("input, select, textarea, dialog, [role]") && text(one);
  const named = (one) => one.getAttribute("aria-label")?.trim() || inside(one) || one.title
    || ids(one).some((id) => text(document.getElementById(id)))
    || [...(one.labels ?? [])].some(text);
  const used = "input, select, textarea, button, a[href], summary, [role=slider], dialog";
  return [...document.querySelectorAll(used)]
    .filter((one) => one.type !== "hidden" && !named(one)).map((one) => one.cloneNode().outerHTML);
}"""


def test_everything_that_can_be_used_has_a_name(viewer, every_view):
    for view in every_view():
        assert viewer.page.evaluate(_UNNAMED) == [], view


def test_a_view_has_one_first_heading_a_title_and_no_id_twice(viewer, every_view):
    page = viewer.page
    headings = "[...document.querySelectorAll('main :is(h1, h2, h3, h4)')]"
    for view in every_view():
        expect(page.locator("h1")).to_have_count(1)
        assert page.title().endswith(" · yester"), view
        assert len(page.title()) > len(" · yester"), view
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
        assert len(ids) == len(set(ids)), view
        levels = page.evaluate(f"{headings}.map((one) => Number(one.tagName[1]))")
        steps = zip([0, *levels], levels, strict=False)
        assert all(after - before <= 1 for before, after in steps), view


def test_where_the_focus_is_can_be_seen(viewer, every_view):
    page = viewer.page
    for view in every_view():
        page.evaluate("document.querySelector('main').focus()")
        for _ in range(4):
            page.keyboard.press("Tab")
            seen = page.evaluate(
                """() => { const is = document.activeElement, style = getComputedStyle(is);
                  return is === document.body || is.matches(":focus-visible")
                    && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 }"""
            )
            assert seen, (view, page.evaluate("document.activeElement.cloneNode().outerHTML"))


# For each piece of text in sight: its colour against the nearest ground behind it (WCAG 2).
_PALE = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const found = rgb(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  const found = new Set(), left = "svg, :disabled, .unseen, option, noscript, .skip";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), one = walker.currentNode.parentElement;
    if (!text || !one.checkVisibility() || one.closest(left)) continue;
    const both = [light(rgb(getComputedStyle(one).color)), light(ground(one))];
    const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    if (ratio < 4.5) found.add(`${one.tagName}.${one.className} ${ratio} ${text.slice(0, 30)}`);
  }
  return [...found];
}"""
_GROUND = "getComputedStyle(document.body).backgroundColor"


def test_light_and_dark_differ_and_both_can_be_read(viewer, every_view):
    page = viewer.page
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for view in every_view():
            grounds.append(page.evaluate(_GROUND))
            assert page.evaluate(_PALE) == [], (scheme, view)
    light, dark = grounds[: len(grounds) // 2], grounds[len(grounds) // 2 :]
    assert not set(light) & set(dark)


_UNFOLD = "document.querySelectorAll('main details').forEach((one) => { one.open = true })"
_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`)"""


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_axe_finds_nothing_in_any_view_nor_in_dialogs(viewer, every_view, size, scheme):
    page = viewer.page
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)
    page.evaluate((Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8"))
    for view in every_view():
        page.evaluate(_UNFOLD)
        assert page.evaluate(_AXE) == [], view
    for key, name in (("Control+k", "Go to or do"), ("?", "Keys")):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        assert page.evaluate(_AXE) == [], key
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_no_view_is_wider_than_a_phone(viewer, every_view):
    page = viewer.page
    page.set_viewport_size({"width": 400, "height": 800})
    for view in every_view():
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 400, view
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 400, view


def test_a_very_wide_screen_is_used_in_its_middle_with_lines_that_can_be_read(viewer, every_view):
    page = viewer.page
    page.set_viewport_size({"width": 2560, "height": 1300})
    for view in every_view():
        page.evaluate(_UNFOLD)
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 2560, view
        left, right = page.evaluate(_SIDES)
        assert abs(left - right) <= 20, view  # a scrollbar's width
        assert left >= 300, view
        assert page.evaluate(_LONG_LINES) == [], view


_SIDES = """() => {
  const {left, right} = document.querySelector(".view").getBoundingClientRect();
  return [left, innerWidth - right];
}"""
# Lines of sentences, longer than an eye finds back from.
_LONG_LINES = """() => {
  const width = (one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return Math.max(0, ...[...range.getClientRects()].map((line) => line.width));
  };
  return [...document.querySelectorAll("main p")].filter((one) => width(one) > 1100)
    .map((one) => `${one.className} ${one.textContent.slice(0, 60)}`);
}"""


def test_back_and_forward_lead_through_all_views(viewer, at):
    page = viewer.page
    seen = []
    for route in VIEWS[1:]:
        opened(page, at(route))
        seen.append((page.url, page.locator("h1").inner_text(), page.title()))

    def same(place):
        expect(page).to_have_url(place[0])
        expect(page.locator("h1")).to_have_text(place[1])
        expect(page).to_have_title(place[2])
        whole(page)

    for place in reversed(seen[:-1]):
        page.go_back()
        same(place)
    for place in seen[1:]:
        page.go_forward()
        same(place)


def test_the_view_one_is_in_is_marked_in_the_navigation(viewer, at):
    for route in VIEWS:
        opened(viewer.page, at(route))
        expect(viewer.page.locator("nav#views [aria-current=page]")).to_have_count(1)


def test_an_address_that_leads_nowhere_says_so_and_leads_on(viewer):
    page = viewer.page
    opened(page, "#/nowhere/at/all")
    expect(page.get_by_role("heading", name="Not found", level=1)).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("There is no page at /nowhere/at/all.")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    page.get_by_role("link", name="To the start page").click()
    expect(page.get_by_role("heading", name="Now", level=1)).to_be_visible()
