"""Statistics, projects, settings and doctor, as somebody uses them."""

from __future__ import annotations

import re
import time
import tomllib

import pytest
from playwright.sync_api import Page, expect

import yester
from yester.config import SETTINGS
from yester.ingest.prepare import prepare_item
from yester.model import (
    Answered,
    Event,
    Feedback,
    Injection,
    Item,
    Project,
    Session,
    Skipped,
    Spend,
    replace,
)
from yester.store.figures import project_parts

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]
DAY = 86_400_000
PLACES = ("stats", "projects", "settings", "doctor")
HEADINGS = dict(zip(PLACES, ("Statistics", "Projects", "Settings", "Doctor"), strict=True))


@pytest.fixture
def home(tmp_path):
    """Three days with something, two projects, lines that were shown, a model that was paid."""
    path, now = tmp_path / "memory", int(time.time() * 1000)
    with yester.open(path) as memory:
        store = memory.store
        with store.transaction("items"):
            for name in ("shop", "garden"):
                store.put_project(Project(f"name:{name}", name, f"/home/sam/{name}"))
            session = store.put_session(
                Session("s1", "claude-code", "name:shop", now - 2 * DAY, now, title="Checkout")
            )
            rows = [("decision", 0), ("decision", 1), ("bugfix", 1), ("bugfix", 40)]
            found = [
                Item(f"r{n}", "observation", "name:shop", "s1", agent="claude-code", type=type_,
                     epoch=now - ago * DAY, title=f"Number {n}", body="x" * 400,
                     discovery_tokens=5_000)
                for n, (type_, ago) in enumerate(rows)
            ]  # fmt: skip
            found.append(Item("m1", "message", "name:garden", epoch=now, body="Roses"))
            store.put([prepare_item(one) for one in found])
            ids = [item.id for item in store.find_by_ref("r0") + store.find_by_ref("r1")]
            store.append(
                [Injection(session, "SessionStart", id_, 0.5, 120, now - DAY) for id_ in ids]
            )
            store.append([Answered(at // DAY, ms) for at, ms in [(now, 12), (now, 14), (now, 90)]])
            store.append([Event("e1", "PostToolUse", now, session, lag=700)])
            store.append(
                [
                    Skipped("claude-code", reason, n)
                    for reason, n in {"progress": 31, "empty": 4}.items()
                ]
            )
            call = Spend(now, "small-model", "refine", 900, 100, 0.5)
            (spent,) = store.append([call])
            store.append([replace(call, cost=0.03, outcome="ok", id=spent)])
    path.joinpath("config.toml").write_text("thinking = false  # mine\n")
    path.joinpath("config.toml").chmod(0o600)
    return path


def at(viewer, place: str) -> Page:
    viewer.to(f"#/{place}")
    heading = HEADINGS[place.partition("?")[0]]
    expect(viewer.page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    return viewer.page


def wide(page: Page) -> list[int]:
    return page.evaluate(
        "[document, document.querySelector('main')].map((one) => one === document"
        " ? one.scrollingElement.scrollWidth : one.scrollWidth)"
    )


# --- statistics -----------------------------------------------------------------------------------


def test_figures_stand_above_the_plots(viewer):
    page = at(viewer, "stats")
    figures = page.locator(".figures")
    expect(figures).to_contain_text("4 observation")
    expect(figures.locator("div", has_text="Sessions")).to_contain_text("1")


def test_items_are_stacked_by_type_and_the_range_stands_in_the_address(viewer):
    page = at(viewer, "stats?days=7")
    plot = page.locator("figure", has=page.get_by_role("heading", name="Items per day"))
    expect(plot.locator(".legend li")).to_have_text(
        [re.compile("decision.*2"), re.compile("bugfix.*1")]
    )
    expect(plot.locator("svg g rect")).to_have_count(3)
    page.get_by_role("link", name="All 42 days").click()
    expect(plot.locator("svg g rect")).to_have_count(4)
    assert page.url.endswith("#/stats?days=42")
    expect(page.get_by_role("link", name="All 42")).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(plot.locator("svg g rect")).to_have_count(3)
    at(viewer, "stats?days=365")
    expect(page.get_by_role("heading", name="Items per week")).to_be_visible()


def test_whether_it_helped_is_said_first_and_bars_lead_to_the_timeline(viewer, home):
    with yester.open(home) as memory:
        (one,) = memory.store.find_by_ref("r0")
        (line,) = memory.store.entries(Injection, {"item": one.id})
        with memory.store.transaction("ledger"):
            memory.store.append([Feedback(one.id, "acted", line.epoch + 1, line.session)])
    page = at(viewer, "stats")
    expect(page.get_by_role("link", name="All 42")).to_have_attribute("aria-current", "true")
    helped = page.get_by_role("region", name="Did it help?")
    expect(helped).to_contain_text("50 % was used")
    expect(helped).to_contain_text("1 of 2 lines")
    expect(helped).to_contain_text("Agents read ~240 tokens. The sessions")
    expect(helped.locator(".of-two")).to_contain_text("shop1 of 2, 50 %")
    plot = page.locator("figure", has=page.get_by_role("heading", name="Lines given per day"))
    plot.get_by_role("slider").focus()
    for key in ("End", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86_400))
    expect(page).to_have_url(re.compile(f"#/timeline.day={day}$"))


def test_messages_are_drawn_only_when_they_are_wanted(viewer):
    page = at(viewer, "stats?days=7")
    legend = page.locator("figure", has_text="Items per day").locator(".legend")
    expect(legend).not_to_contain_text("message")
    page.get_by_role("link", name="With 1 message").click()
    expect(legend).to_contain_text("message")
    assert "show=all" in page.url


def test_a_plot_is_read_out_by_keyboard_and_by_pointer(viewer):
    page = at(viewer, "stats?days=7")
    plot = page.locator("figure", has=page.get_by_role("heading", name="Items per day"))
    area, said = plot.get_by_role("slider"), plot.locator(".plot-said")
    area.focus()
    page.keyboard.press("End")
    expect(said).to_contain_text("1 decision")
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("2 in all: 1 decision, 1 bugfix")
    expect(area).to_have_attribute("aria-valuetext", re.compile("2 in all"))
    expect(area).to_have_attribute("aria-valuenow", "6")
    page.keyboard.press("Home")
    expect(said).to_contain_text("nothing")
    page.keyboard.press("Escape")
    expect(said).to_contain_text("arrow keys")
    box = area.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 15, box["y"] + 50)
    expect(said).to_contain_text("1 decision")


def test_the_same_figures_are_there_as_a_table(viewer):
    page = at(viewer, "stats?days=7")
    plot = page.locator("figure", has=page.get_by_role("heading", name="Items per day"))
    plot.get_by_text("As a table").click()
    rows = plot.locator("tbody tr")
    expect(rows).to_have_count(2)  # days with nothing are left out
    expect(rows.nth(1).locator("td")).to_have_text(["1", "1"])
    expect(plot.locator("thead th")).to_have_text(["Day", "decision", "bugfix"])


@pytest.mark.requirement("DEL-11")
def test_what_was_read_stands_against_what_was_discovered_in_honest_words(viewer):
    page = at(viewer, "stats?days=7")
    plot = page.locator("figure", has_text="read against discovered")
    expect(plot).to_contain_text("not what you save")
    plot.get_by_text("As a table").click()
    expect(plot.locator("tbody td")).to_have_text(["~240", "~10,000"])


def test_latency_lag_and_spend_are_drawn(viewer):
    page = at(viewer, "stats?days=7")
    for title, figures in (
        ("Time to answer an agent", ["14 ms", "90 ms"]),
        ("Lag: from an event", ["700 ms", "700 ms"]),
        ("Spend per day", ["$0.03"]),
    ):
        plot = page.locator("figure", has_text=title)
        plot.get_by_text("As a table").click()
        expect(plot.locator(".plot-table td")).to_have_text(figures)
    today = page.locator(".today")
    expect(today).to_contain_text("$0.03 of $0.20")
    today.get_by_text("By model and purpose").click()
    expect(today.locator("tbody")).to_contain_text("small-model")


def test_reasons_for_leaving_out_and_vectors_are_told(viewer):
    page = at(viewer, "stats")
    expect(
        page.locator("section", has_text="Left out of what was read").locator(".bar")
    ).to_have_text([re.compile("progress.*31"), re.compile("empty.*4")])
    expect(page.get_by_role("heading", name="Search by meaning")).to_be_visible()


# --- projects -------------------------------------------------------------------------------------


def project(page: Page, name: str):
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


def test_projects_are_listed_and_lead_to_what_is_theirs(viewer):
    page = at(viewer, "projects")
    row = project(page, "shop")
    expect(row).to_contain_text("name:shop")
    expect(row).to_contain_text("4 observation")
    links = row.get_by_role("link")
    expect(links).to_have_text(["Timeline", "Search", "Sessions", "Memories"])
    for place in range(4):
        expect(links.nth(place)).to_have_attribute("href", re.compile(r"\?project=shop$"))
    links.first.click()
    expect(page.get_by_role("heading", name="Timeline", level=1)).to_be_visible()
    expect(page.get_by_text("Roses")).to_have_count(0)


def test_the_order_of_projects_stands_in_the_address(viewer):
    page = at(viewer, "projects")
    names = page.get_by_role("rowheader").locator(".name")
    page.get_by_label("Order").select_option("name")
    expect(names).to_have_text(["garden", "shop"])
    assert page.url.endswith("?sort=name")
    page.get_by_label("Order").select_option("items")
    expect(names).to_have_text(["shop", "garden"])


def test_a_project_is_renamed(viewer, home):
    page = at(viewer, "projects")
    page.get_by_role("button", name="Rename garden").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("allotment")
    page.keyboard.press("Enter")
    expect(page.get_by_role("rowheader", name="allotment")).to_be_visible()
    with yester.open(home) as memory:
        assert "allotment" in {one.name for one in memory.store.projects()}


def test_a_name_that_is_taken_is_asked_for_again_with_the_reason(viewer):
    page = at(viewer, "projects")
    page.get_by_role("button", name="Rename garden").click()
    page.get_by_role("textbox", name="Name").fill("shop")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text(
        "another project is called"
    )
    expect(page.get_by_role("textbox", name="Name")).to_have_value("shop")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    viewer.complaints.clear()  # the browser says that 409 was answered


def test_a_merge_says_what_would_move_before_anything_does(viewer, home):
    page = at(viewer, "projects")
    page.get_by_role("button", name="Merge shop").click()
    page.get_by_role("dialog").get_by_label("Into").select_option(label="garden (name:garden)")
    page.get_by_role("button", name="See what would move").click()
    dialog = page.get_by_role("dialog", name="Merge shop into garden?")
    expect(dialog).to_contain_text("4 items of 1 session")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    with yester.open(home) as memory:
        assert len(project_parts(memory.store)) == 2  # nothing has moved
    dialog.get_by_role("button", name="Merge", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("are now part of garden")
    expect(page.get_by_role("rowheader")).to_have_count(1)
    expect(project(page, "garden")).to_contain_text("4 observation")


def test_a_merge_that_is_given_up_moves_nothing(viewer, home):
    page = at(viewer, "projects")
    page.get_by_role("button", name="Merge shop").click()
    page.get_by_role("button", name="See what would move").click()
    expect(page.get_by_role("dialog", name="Merge shop into garden?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    with yester.open(home) as memory:
        assert len(project_parts(memory.store)) == 2


# --- settings -------------------------------------------------------------------------------------


def setting(page: Page, name: str):
    return page.get_by_role("group", name=name, exact=True)


def test_every_setting_of_the_table_is_shown_in_a_group_of_its_own(viewer):
    page = at(viewer, "settings")
    names = page.locator(".setting h3").all_inner_texts()
    assert sorted(names) == sorted(one.name for one in SETTINGS)
    expect(page.get_by_role("heading", name="More", exact=True)).to_have_count(0)


def test_value_default_and_origin_are_told(viewer):
    page = at(viewer, "settings")
    row = setting(page, "thinking")
    expect(row.get_by_role("checkbox")).not_to_be_checked()
    expect(row).to_contain_text("from config.toml · default true")
    expect(setting(page, "backups_kept")).to_contain_text("from default")
    expect(setting(page, "embedder")).to_contain_text("from $YESTER_EMBEDDER")


def test_only_what_was_changed_can_be_shown(viewer):
    page = at(viewer, "settings")
    page.get_by_role("link", name="Changed").click()
    expect(page.locator(".setting h3")).to_have_text(["thinking", "embedder"])
    page.go_back()
    expect(page.locator(".setting")).to_have_count(len(SETTINGS))


def test_a_switch_is_written_to_the_file_and_what_stands_beside_it_stays(viewer, home):
    page = at(viewer, "settings")
    setting(page, "thinking").get_by_role("checkbox").check()
    expect(page.locator("#notices")).to_contain_text("thinking is true now")
    assert home.joinpath("config.toml").read_text() == "thinking = true  # mine\n"
    expect(setting(page, "thinking").get_by_role("checkbox")).to_be_focused()


def test_a_number_is_saved_by_the_keyboard_and_set_back_to_its_default(viewer, home):
    page = at(viewer, "settings")
    row = setting(page, "backups_kept")
    expect(row.get_by_role("button", name="Save")).to_be_disabled()
    row.get_by_role("textbox").fill("9")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("from config.toml · default 5")
    assert tomllib.loads(home.joinpath("config.toml").read_text())["backups_kept"] == 9
    row.get_by_role("button", name="Set backups_kept to its default").click()
    expect(row.get_by_role("textbox")).to_have_value("5")


def test_a_list_is_written_line_by_line(viewer, home):
    page = at(viewer, "settings")
    row = setting(page, "skip_tools")
    row.get_by_role("textbox").fill("LS\n\n  My Tool \n")
    row.get_by_role("button", name="Save").click()
    expect(page.locator("#notices")).to_contain_text("skip_tools is LS, My Tool now")
    assert tomllib.loads(home.joinpath("config.toml").read_text())["skip_tools"] == [
        "LS",
        "My Tool",
    ]


@pytest.mark.parametrize("value", ["never", "-1", "600001", "1.5", ""])
def test_a_wrong_value_is_refused_beside_its_field_and_nothing_is_written(viewer, home, value):
    before = home.joinpath("config.toml").read_text()
    page = at(viewer, "settings")
    row = setting(page, "batch_window_ms")
    row.get_by_role("textbox").fill(value)
    page.keyboard.press("Enter")
    expect(row.get_by_role("alert")).to_contain_text("must be a whole number from 0 to 600,000")
    expect(row.get_by_role("textbox")).to_have_attribute("aria-invalid", "true")
    expect(row.get_by_role("textbox")).to_have_value(value)
    assert home.joinpath("config.toml").read_text() == before
    viewer.complaints.clear()  # the browser says that 400 was answered


def test_what_cannot_be_changed_here_says_how(viewer):
    page = at(viewer, "settings")
    row = setting(page, "llm.model")
    expect(row.get_by_role("textbox")).to_have_count(0)
    row.get_by_text("How to change it").click()
    expect(row).to_contain_text("[llm]")
    expect(row).to_contain_text('model = ""')
    expect(row).to_contain_text("config.toml")


def test_a_secret_is_never_shown(viewer, home):
    home.joinpath("config.toml").write_text('embed.key = "hunter2hunter2"\n')
    viewer.server.app._memory.reload_config()
    page = at(viewer, "settings")
    expect(setting(page, "embed.key")).to_contain_text("(set, not shown)")
    assert "hunter2" not in page.content()


# --- doctor ---------------------------------------------------------------------------------------


def test_the_doctor_says_what_is_wrong_in_words_and_how_to_put_it_right(viewer, home, window):
    home.joinpath("config.toml").chmod(0o644)
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    page = at(viewer, "doctor")
    row = page.get_by_role("listitem").filter(has_text="permissions")
    expect(row).to_contain_text("Problem")
    expect(row).to_contain_text("open to other users")
    expect(page.get_by_role("heading", name="Something is wrong")).to_be_visible()
    row.get_by_role("button", name="Copy: yester doctor --fix").click()
    expect(page.locator("#notices")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "yester doctor --fix"


def test_the_doctor_groups_and_shows_what_is_fine_and_looks_again(viewer):
    page = at(viewer, "doctor")
    row = page.get_by_role("listitem").filter(has_text="versions:")
    expect(row).to_contain_text("Fine")
    expect(page.get_by_role("heading", name="Store", exact=True)).to_be_visible()
    with page.expect_response("**/api/doctor"):
        page.get_by_role("button", name="Look again").click()
    expect(row).to_contain_text(yester.__version__)


# --- all four -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_wider_than_a_phone(viewer, place):
    viewer.page.set_viewport_size({"width": 400, "height": 800})
    page = at(viewer, place)
    if place == "stats":
        for one in page.get_by_text("As a table").all():
            one.click()
    if place == "settings":
        for one in page.get_by_text("How to change it").all():
            one.click()
    if place == "doctor":
        expect(page.get_by_role("listitem").first).to_be_visible()
    assert max(wide(page)) <= 400


@pytest.mark.parametrize("place", PLACES)
def test_the_keyboard_alone_reaches_everything(viewer, place):
    page = at(viewer, place)
    if place == "doctor":
        expect(page.get_by_role("listitem").first).to_be_visible()
    key = {"stats": "x", "projects": "p", "settings": "c", "doctor": "d"}[place]
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", name="Timeline", level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press(key)
    expect(page.get_by_role("heading", name=HEADINGS[place], level=1)).to_be_visible()
    if place == "doctor":
        expect(page.get_by_role("listitem").first).to_be_visible()
    page.wait_for_selector("main:not(:has([aria-busy=true]))")
    wanted = page.evaluate(_COUNT)
    page.evaluate("document.querySelector('main').focus()")
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        page.evaluate(_SEEN)
    assert page.evaluate("window.seen.size") == wanted


_COUNT = """() => {
  window.seen = new Set();
  const kinds = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  return [...document.querySelectorAll(`main :is(${kinds})`)]
    .filter((one) => !one.disabled && one.checkVisibility())
    .filter((one) => !one.closest("details:not([open]) > :not(summary)")).length;
}"""
_SEEN = """() => {
  const is = document.activeElement;
  if (is.closest("main") && is.tagName !== "MAIN") seen.add(is);
}"""
