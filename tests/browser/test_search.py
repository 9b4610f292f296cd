"""Searching in a real browser: everything in the address, reasons for every score."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import yester
from tests.browser.conftest import PHONE

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

COLOURS = ("red", "green", "blue", "white")
HOSTILE = '<img src=x onerror="document.title=1"> lantern'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    now = time.time()
    with yester.open(tmp_path / "memory") as memory:
        memory.add(
            [
                {
                    "ref": f"o{n}", "kind": "observation", "title": f"Lantern {n} was relit",
                    "text": f"The lantern of room {n} went out and was relit by hand.",
                    "type": "bugfix" if n % 3 else "decision", "project": "harbour",
                    "concepts": ["gotcha"], "files": [f"rooms/{n}.py"], "epoch": now - n * 3600,
                }
                for n in range(45)
            ]
            + [
                {
                    "ref": "p", "kind": "prompt", "text": "Why do lanterns go out at night?",
                    "project": "harbour", "role": "user", "session": "s-1", "epoch": now,
                    "agent": "claude-code",
                },
                {
                    "ref": "q", "kind": "prompt", "text": "Paint the gate in the colour of moss.",
                    "project": "garden", "role": "user", "session": "s-2", "epoch": now - 9e6,
                    "agent": "codex",
                },
                {
                    "ref": "c", "kind": "note", "title": "The porter authenticates every guest",
                    "text": "He authenticated the author too.", "project": "castle",
                    "epoch": now - 9e6,
                },
                {
                    "ref": "h", "kind": "note", "title": HOSTILE, "text": HOSTILE,
                    "project": "garden", "epoch": now,
                },
            ],
            embed="later",
        )  # fmt: skip
    return tmp_path / "memory"


def hits(page: Page) -> list[str]:
    page.wait_for_selector(".hit")
    return page.locator(".hit a.title").all_inner_texts()


def expect_count(page: Page, said: str) -> None:
    """How many there are is counted after the hits are there."""
    expect(page.locator(".count")).to_have_text(re.compile(f"^{said} ·"))


def test_from_the_field_above_to_marked_hits(viewer):
    page = viewer.page
    page.wait_for_selector("main h1")
    page.keyboard.press("/")
    page.keyboard.type("relit lanterns")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/search\?query=relit\+lanterns$"))
    expect(page.locator(".count")).to_have_text(re.compile(r"The first 20 of \d+ · [\d.]+ ms"))
    assert {text.lower() for text in page.locator(".hit a.title mark").all_inner_texts()} == {
        "lantern", "relit",
    }  # fmt: skip
    assert page.title() == "relit lanterns · Search · yester"


def test_other_forms_of_a_word_are_marked_and_words_that_only_begin_alike_are_not(viewer):
    viewer.to("/search?query=authentication&project=castle")
    hits(viewer.page)
    marks = {text.lower() for text in viewer.page.locator(".hit mark").all_inner_texts()}
    assert "authenticates" in marks
    assert "author" not in marks


def test_after_enter_the_keys_are_for_the_hits_and_escape_empties_nothing(viewer):
    page = viewer.page
    page.wait_for_selector("main h1")
    field = page.locator("header input[type=search]")
    page.keyboard.press("/")
    page.keyboard.type("lantern relit")
    page.keyboard.press("Enter")
    hits(page)
    page.keyboard.press("j")
    expect(page.locator(".hit a.title").first).to_be_focused()
    expect(field).to_have_value("lantern relit")
    page.keyboard.press("/")
    page.keyboard.type("other")  # of which as much was asked as there was time for
    page.keyboard.press("Escape")
    expect(field).not_to_be_focused()
    expect(page.locator(".asked")).to_have_text(field.input_value())
    expect(page).to_have_url(re.compile(r"query=(lantern\+relit|o[ther]*)$"))


def test_another_view_takes_the_focus_out_of_the_field(viewer):
    page = viewer.page
    page.wait_for_selector("main h1")
    page.keyboard.press("/")
    viewer.to("/projects")
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("next and previous prompt")
    expect(page.locator("header input[type=search]")).to_have_value("")


def test_a_facet_narrows_its_chip_widens_and_both_are_addresses(viewer, server):
    page = viewer.page
    viewer.to("/search?query=lantern")
    hits(page)
    numbers = server.get("/api/facets", query="lantern")["kinds"]
    assert numbers["observation"] == 45
    aside = page.get_by_role("complementary", name="Filters")
    for kind, number in numbers.items():
        expect(aside.get_by_role("link", name=f"{kind} {number}", exact=True)).to_be_visible()
    aside.get_by_role("link", name=re.compile("^prompt")).click()
    expect(page).to_have_url(re.compile(r"kinds=prompt"))
    expect(page.locator(".count")).to_contain_text("1 found")
    aside.get_by_role("link", name=re.compile("^note")).click()
    expect(page.locator(".count")).to_contain_text("2 found")
    page.get_by_role("link", name="Remove Kind: prompt").click()
    expect(page.locator(".count")).to_contain_text("1 found")
    expect(page).to_have_url(re.compile(r"kinds=note(&|$)"))
    page.go_back()
    expect(page.locator(".count")).to_contain_text("2 found")


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("project=garden", 2),
        ("obs_type=decision&query=lantern", 15),
        ("type=decision&kind=observation", 15),
        ("agent=codex", 1),
        ("files=rooms/7.py", 1),
        ("file=7.py", 1),
        ("concepts=gotcha&dateStart=2h&query=lantern", 2),
        ("what=prompts", 2),
    ],
)
def test_every_filter_is_an_address_with_a_chip(viewer, address, wanted):
    viewer.to(f"/search?{address}")
    expect(viewer.page.locator(".count")).to_contain_text(f"{wanted} found")
    chips = viewer.page.locator(".set .chip.on")
    assert chips.count() == sum(not p.startswith(("query", "what")) for p in address.split("&"))


def test_a_file_and_days_are_filled_in_by_hand(viewer):
    page = viewer.page
    viewer.to("/search?query=lantern")
    hits(page)
    page.get_by_label("A file, or the end of its path").fill("rooms/3.py")
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_contain_text("1 found")
    expect(page).to_have_url(re.compile(r"query=lantern.*files=rooms%2F3.py"))
    page.get_by_label("To", exact=True).fill("2020-01-01")
    expect(page.get_by_role("heading", name="Nothing fits all of that")).to_be_visible()
    expect(page.get_by_role("link", name="Remove Until: 2020-01-01")).to_be_visible()


def test_more_adds_the_next_page_goes_to_it_and_survives_a_reload(viewer):
    page = viewer.page
    viewer.to("/search?query=lantern+relit&kinds=observation")
    hits(page)
    page.get_by_role("button", name="More").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(40)
    expect(page.locator(".hit a.title").nth(20)).to_be_focused()
    assert len(set(hits(page))) == 40
    expect_count(page, "The first 40 of 45")
    page.reload()
    expect(page.locator(".hit")).to_have_count(40)
    page.get_by_role("button", name="More").click()
    expect(page.locator(".hit")).to_have_count(45)
    expect_count(page, "45 found")
    expect(page.get_by_role("button", name="More")).to_be_hidden()


@pytest.mark.requirement("REC-15")
def test_of_a_session_three_hits_are_shown_and_more_on_request(viewer, home):
    with yester.open(home) as memory:
        memory.add([
            {"ref": f"t{n}", "kind": "message", "text": f"Tide gauge {n} reads {n * 7} low",
             "project": "harbour", "session": f"tides-{n // 5}", "agent": "codex"}
            for n in range(7)
        ])  # fmt: skip
    page = viewer.page
    viewer.to("/search?query=tide+gauge")
    hits(page)
    expect(page.locator(".hit:visible")).to_have_count(5)
    expect(page.locator(".count")).to_contain_text("7 found")
    page.get_by_role("button", name="2 more of this session").click()
    expect(page.locator(".hit:visible")).to_have_count(7)


def test_the_order_is_chosen_and_kept(viewer):
    page = viewer.page
    viewer.to("/search?query=lantern&kinds=observation")
    hits(page)
    page.get_by_label("Order").select_option("date_asc")
    expect(page).to_have_url(re.compile("orderBy=date_asc.*kinds=observation|kinds.*orderBy"))
    expect(page.locator(".hit a.title").first).to_have_text("Lantern 44 was relit")
    expect(page.locator(".count")).to_contain_text("The first 20 of 45")

    def times() -> list[str]:
        found = page.eval_on_selector_all(".hit time", "all => all.map((one) => one.dateTime)")
        return [str(one) for one in found]

    assert times() == sorted(times())
    for number in (40, 45):
        page.get_by_role("button", name="More").click()
        expect(page.locator(".hit")).to_have_count(number)
        assert times() == sorted(times())
        assert len(set(hits(page))) == number


@pytest.mark.requirement("REC-16")
def test_every_factor_of_a_score_by_keyboard_with_an_address(viewer, server):
    page = viewer.page
    viewer.to("/search?query=lantern+relit")
    hits(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator(".hit").nth(1)
    expect(second.locator("a.title")).to_be_focused()
    page.keyboard.press("Tab")
    button = second.get_by_role("button", name="Why here?")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    panel = second.locator(".explain")
    expect(panel.locator(".factor").first).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    id_ = second.get_attribute("id").removeprefix("hit-")
    expect(page).to_have_url(re.compile(rf"explain={id_}$"))

    told = server.get("/api/search", query="lantern relit", explain="true")
    row = next(one for one in told["results"] if str(one["id"]) == id_)
    names = {*row["factors"], *told["explain"]["weights"]}
    assert panel.locator(".factor").count() == len(names)
    outputs = panel.locator(".factor output").all_inner_texts()
    added = [float(re.match(r"[+−][\d.]+", text)[0].replace("−", "-")) for text in outputs]
    assert sum(added) == pytest.approx(row["score"], abs=0.002 * len(added))
    for most in told["explain"]["weights"].values():
        assert any(f"of {most:.3f}" in text for text in outputs)
    expect(panel).to_contain_text("Found by words")
    panel.get_by_text(re.compile("^Left out")).click()
    expect(panel.locator(".cut li").first).to_contain_text(told["explain"]["cut"][0]["why"])
    panel.get_by_text("Also known").click()
    expect(panel).to_contain_text(f"Matched {row['signs']['matched']:.3f}")

    page.reload()
    expect(page.locator(f"#why-{id_} .factor").first).to_be_visible()
    page.locator(f"#hit-{id_} .why").focus()
    page.keyboard.press("Escape")
    expect(page.locator(f"#why-{id_}")).to_be_hidden()
    expect(page.locator(f"#hit-{id_} .why")).to_be_focused()
    assert "explain" not in page.url


def test_nothing_asked_teaches_the_language_by_links_that_work(viewer):
    page = viewer.page
    page.wait_for_selector("main h1")
    page.get_by_role("link", name="Search", exact=True).click()
    expect(page.get_by_role("heading", name="Ask as you would ask a colleague")).to_be_visible()
    expect(page.locator("header input[type=search]")).to_be_focused()
    page.get_by_role("link", name="migrat*").click()
    expect(page).to_have_url(re.compile(r"query=migrat"))
    expect(page.locator("header input[type=search]")).to_have_value("migrat*")


def test_nothing_found_offers_only_what_finds_something(viewer):
    page = viewer.page
    viewer.to("/search?query=moss&project=harbour&agent=codex")
    expect(page.get_by_role("heading", name="Nothing fits all of that")).to_be_visible()
    offers = page.locator(".notice li a").all_inner_texts()
    assert offers == ["without Project: harbour", "with the words alone"]
    page.locator(".notice li a").first.click()
    expect(page.locator(".count")).to_contain_text("1 found")
    viewer.to("/search?query=xylophone")
    expect(page.locator(".notice")).to_contain_text("Try other words")


def test_what_cannot_be_looked_for_is_said_beside_the_filters(viewer):
    page = viewer.page
    viewer.to("/search?query=lantern&project=harbor")
    expect(page.get_by_role("alert")).to_contain_text("no project is called 'harbor'")
    page.get_by_role("link", name="Remove Project: harbor").click()
    hits(page)
    viewer.complaints.clear()  # the browser's own, of the 404


def test_hostile_words_are_words(viewer):
    viewer.to("/search?query=lantern&kinds=note")
    assert hits(viewer.page) == [HOSTILE]
    assert viewer.page.locator("main img").count() == 0


def test_on_a_phone_in_the_dark_nothing_is_wider_than_the_page(viewer):
    page = viewer.page
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    for place in ("/search", "/search?query=lantern&dateStart=30d&concepts=gotcha"):
        viewer.to(place)
        page.wait_for_selector(".search :is(.hit, .notice)")
        assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 400
        assert page.evaluate("() => document.querySelector('main').scrollWidth") <= 400
    page.locator(".why").first.click()
    page.wait_for_selector(".factor")
    assert page.evaluate("() => document.querySelector('main').scrollWidth") <= 400
    expect(page.locator(".facet").first).to_be_hidden()
    page.get_by_text("Filters (2)").click()
    expect(page.locator(".facet").first).to_be_visible()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == (
        "rgb(24, 26, 25)"
    )


def test_hits_come_as_one_types_in_one_step_of_the_history_and_the_last_letters_win(viewer):
    page, field = viewer.page, viewer.page.locator("header input[type=search]")
    asked: list[str] = []
    page.on("request", lambda one: "/api/search/grouped" in one.url and asked.append(one.url))
    before = page.evaluate("history.length")
    held = []
    page.route("**/api/search/grouped?query=mo&*", lambda route: held.append(route))
    with page.expect_request(lambda one: one.url.endswith("query=mo&limit=20&offset=0")):
        page.keyboard.press("/")
        page.keyboard.type("mo")
    page.wait_for_url("**/#/search?query=mo")
    page.keyboard.type("ss", delay=5)
    expect(page.locator(".hit")).to_contain_text("colour of moss")
    page.keyboard.press("Backspace")
    expect(field).to_be_focused()
    expect(field).to_have_value("mos")
    page.wait_for_url("**/#/search?query=mos")
    assert page.evaluate("history.length") == before + 1
    assert len(asked) <= 4  # not one a letter
    page.keyboard.press("Escape")
    page.go_back()
    expect(page.get_by_role("heading", name="Now", level=1)).to_be_visible()
    expect(field).to_have_value("")
    assert held  # the first question was let go before its answer: nothing of it was drawn


def test_the_field_has_the_words_of_an_address_that_comes_while_it_has_the_focus(viewer):
    field = viewer.page.locator("header input[type=search]")
    viewer.to("#/search")
    expect(field).to_be_focused()
    viewer.to("#/search?query=moss")
    expect(field).to_have_value("moss")


def test_hits_of_a_session_stand_together_say_who_speaks_and_the_histogram_filters(viewer, home):
    page, now = viewer.page, time.time()
    said = {"kind": "message", "session": "s-1", "agent": "claude-code", "project": "harbour"}
    with yester.open(home) as memory:
        memory.add([
            said | {"ref": f"m{n}", "role": ("assistant", "user")[n % 2], "epoch": now - n,
                    "text": f"The beacon number {n} shows {COLOURS[n]}."}
            for n in range(4)
        ] + [said | {"ref": "t", "role": "tool", "tool": "Bash", "epoch": now - 9e6,
                     "text": "grep beacon lights.txt"}], embed="later")  # fmt: skip
    viewer.to("/search?query=beacon")
    group = page.locator(".group[data-session]")
    expect(group).to_have_count(1)
    expect(group.locator(".hit:visible")).to_have_count(3)
    group.get_by_role("button", name="2 more of this session").click()
    expect(group.locator(".hit:visible")).to_have_count(5)
    speakers = set(group.locator(".speaker").all_inner_texts())
    assert speakers == {"claude-code", "You", "Bash by claude-code"}
    bars = page.locator(".histogram a.bin")
    expect(bars).to_have_count(2)
    bars.first.focus()
    page.keyboard.press("ArrowRight")
    expect(bars.last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit .speaker")).to_have_text("Bash by claude-code")
    expect(page.get_by_role("list", name="Filters that are set")).to_contain_text("Since: 20")


def test_a_search_is_saved_in_this_browser_and_taken_off_again(viewer):
    page = viewer.page
    viewer.to("/search?query=moss&project=garden")
    page.get_by_role("button", name="☆ Save").click()
    expect(page.get_by_role("button", name="★ Saved")).to_be_visible()
    viewer.to("/search")
    page.get_by_role("link", name="moss · Project: garden").click()
    expect(page.locator(".hit")).to_contain_text("colour of moss")
    page.reload()
    page.get_by_role("button", name="Remove the saved search moss · Project: garden").click()
    expect(page.get_by_role("button", name="☆ Save")).to_be_visible()
    expect(page.locator(".saved")).to_have_count(0)
