"""The timeline: a list of thousands in a real browser, and what comes in while one looks."""

from __future__ import annotations

import re
import shutil
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import yester
from tests.browser.conftest import PHONE, Viewer

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

MANY = 5_000
BEGAN = time.time()
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def item(number: int, age: int, **more: Any) -> dict[str, Any]:
    return {
        "ref": str(number), "kind": "observation", "type": "discovery", "title": f"Item {number}",
        "text": f"What {number} says.", "project": f"project-{number % 3}",
        "epoch": BEGAN - age, **more,
    }  # fmt: skip


def fresh(number: int, after: int = 1, **more: Any) -> dict[str, Any]:
    """What happens while somebody looks."""
    return item(number, 0, **more) | {"epoch": time.time() + after}


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many items, ten minutes apart; number 0 is the oldest."""
    home = tmp_path_factory.mktemp("many") / "memory"
    with yester.open(home) as memory:
        memory.add((item(n, (MANY - n) * 600) for n in range(MANY)), embed="later")
    return home


@pytest.fixture
def home(tmp_path: Path, many: Path) -> Path:
    return shutil.copytree(many, tmp_path / "memory")


@pytest.fixture
def viewer(viewer: Viewer) -> Viewer:
    viewer.to("/timeline")
    viewer.page.wait_for_selector(".view.timeline")
    return viewer


def drawn(page: Page) -> list[tuple[int, str]]:
    """(place, title) of the rows in the page, once none of them is empty."""
    page.wait_for_function(
        "() => { const rows = [...document.querySelectorAll('.list .row')];"
        " return rows.length && rows.every((row) => !row.classList.contains('missing')) }"
    )
    found = page.evaluate(
        "() => [...document.querySelectorAll('.list .row')].map("
        "(row) => [+row.dataset.place, row.querySelector('a.title').textContent])"
    )
    return [(place, title) for place, title in found]


def scroll(page: Page, share: float) -> None:
    page.evaluate(
        "(share) => { const box = document.querySelector('.list');"
        " box.scrollTop = share * (box.scrollHeight - box.clientHeight) }",
        share,
    )


def in_sight(page: Page) -> str:
    """The title of the first row that is not above the upper edge."""
    found = page.evaluate(
        "() => { const edge = document.querySelector('.list').getBoundingClientRect().top;"
        " return [...document.querySelectorAll('.list .row')]"
        ".find((row) => row.getBoundingClientRect().top >= edge - 1)"
        ".querySelector('a.title').textContent }"
    )
    return str(found)


def add(home: Path, *items: dict[str, Any]) -> None:
    with yester.open(home) as memory:
        memory.add(items, embed="later")


def live(viewer: Viewer) -> Page:
    """The page once the stream has begun: what is added from now on is told."""
    expect(viewer.page.locator("header .live")).to_have_text("live")
    drawn(viewer.page)
    return viewer.page


def test_dragging_the_scrollbar_shows_the_right_rows_and_few_are_in_the_page(viewer):
    page = viewer.page
    for share in (0.0, 0.5, 1.0, 0.25):
        scroll(page, share)
        middle = round(share * (MANY - 1))
        page.wait_for_function(
            "(place) => [...document.querySelectorAll('.list .row')].some("
            "(row) => Math.abs(row.dataset.place - place) < 12)",
            arg=middle,
        )
        rows = drawn(page)
        assert len(rows) < 100
        assert all(title == f"Item {MANY - 1 - place}" for place, title in rows)
        assert [place for place, _ in rows] == list(range(rows[0][0], rows[-1][0] + 1))
        assert rows[0][0] <= middle <= rows[-1][0]
    scroll(page, 1.0)
    page.wait_for_function("(n) => document.querySelector(`.list [data-place='${n}'] a`)",
                           arg=MANY - 1)  # fmt: skip
    last = page.locator(f".list [data-place='{MANY - 1}']")
    expect(last).to_contain_text("Item 0")
    box = page.locator(".list").bounding_box()
    at = last.bounding_box()
    assert at["y"] + at["height"] <= box["y"] + box["height"] + 1
    assert last.get_attribute("aria-setsize") == str(MANY)


def test_a_drag_over_everything_asks_only_for_where_it_goes(viewer):
    page, held, asked = viewer.page, [], []
    drawn(page)
    page.on("request", lambda request: "/api/items" in request.url and asked.append(request.url))
    # Nothing is answered while it is dragged.
    page.route("**/api/items?*", lambda route: held.append(route))
    page.evaluate(
        "async () => { const box = document.querySelector('.list');"
        " for (let at = 0; at <= 60; at++) { box.scrollTop = at / 60 * box.scrollHeight;"
        " await new Promise(requestAnimationFrame) } }"
    )
    assert 1 <= len(asked) <= 2
    page.unroute("**/api/items?*")  # which lets them go
    rows = drawn(page)
    assert rows[-1] == (MANY - 1, "Item 0")
    assert len(asked) <= 6  # of the 50 pages there are


def test_what_is_new_comes_in_at_the_top(viewer, home):
    page = live(viewer)
    add(home, fresh(90_001, 1, title=HOSTILE))
    first = page.locator(".list [data-place='0'] a.title")
    expect(first).to_have_text(HOSTILE)
    expect(page.locator(".pill")).to_be_hidden()
    expect(page.locator(".where")).to_contain_text(f"1 of {MANY + 1:,}")
    rows = drawn(page)
    assert rows[1] == (1, f"Item {MANY - 1}")


def test_who_has_scrolled_away_stays_and_is_told_how_many_are_new(viewer, home):
    page = live(viewer)
    scroll(page, 0.5)
    page.wait_for_function(
        "() => +document.querySelector('.list .row').dataset.place > 2000"
        " && !document.querySelector('.list .missing')"
    )
    before = in_sight(page)
    add(home, fresh(90_001, 1), fresh(90_002, 2))
    pill = page.locator(".pill")
    expect(pill).to_have_text("↑ 2 new ones")
    assert in_sight(page) == before
    pill.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".list [data-place='0'] a.title")).to_be_focused()
    expect(page.locator(".list [data-place='0']")).to_contain_text("Item 90002")
    expect(pill).to_be_hidden()


def test_what_is_told_late_stands_where_it_belongs(viewer, home):
    """A session that is indexed afterwards is not news of today."""
    page = live(viewer)
    add(home, item(90_001, 605))  # between the two newest
    expect(page.locator(".list [data-place='1'] a.title")).to_have_text("Item 90001")
    rows = drawn(page)
    assert rows[0] == (0, f"Item {MANY - 1}")
    assert rows[2] == (2, f"Item {MANY - 2}")
    scroll(page, 1.0)
    page.wait_for_selector(f".list [data-place='{MANY}'] a")
    assert drawn(page)[-1] == (MANY, "Item 0")


def test_the_focus_stays_on_its_row_while_others_come_in(viewer, home):
    page = live(viewer)
    for _ in range(3):
        page.keyboard.press("j")
    held = page.locator(".list a.title", has_text=re.compile(rf"^Item {MANY - 3}$"))
    expect(held).to_be_focused()
    add(home, fresh(90_001, 1))
    expect(page.locator(".list [data-place='0']")).to_contain_text("Item 90001")
    expect(held).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator(":focus")).to_have_text(f"Item {MANY - 2}")


def test_days_are_marked_where_they_begin_and_named_above(viewer, home):
    page = viewer.page
    drawn(page)
    days = page.evaluate(
        "() => [...document.querySelectorAll('.list .row')].map((row) => row.dataset.group ?? '')"
    )
    assert days[0]
    scroll(page, 0.5)
    page.wait_for_function("() => +document.querySelector('.list .row').dataset.place > 2000")
    drawn(page)
    halfway = BEGAN - MANY / 2 * 600
    name = time.strftime("%b ", time.localtime(halfway))
    expect(page.locator(".where strong")).to_contain_text(name)
    # Ten minutes apart: a day has 144 rows, and each day begins exactly once.
    begins = page.evaluate(
        "async () => { const found = new Set(), box = document.querySelector('.list');"
        " for (let place = 0; place < 600; place += 10) { box.scrollTop = place * 56;"
        " await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);"
        " while (document.querySelector('.list .missing'))"
        "  await new Promise(requestAnimationFrame);"
        " for (const row of document.querySelectorAll('.list .row[data-group]'))"
        "  found.add(+row.dataset.place) }"
        " return [...found].sort((a, b) => a - b) }"
    )
    gaps = [b - a for a, b in pairwise(begins[1:])]
    assert gaps
    assert all(138 <= gap <= 150 for gap in gaps)  # 150: an hour more, by the clock


def test_filters_stand_in_the_address_and_back_takes_them_off(viewer):
    page = viewer.page
    drawn(page)
    page.get_by_label("Project").select_option("project-1")
    expect(page).to_have_url(re.compile(r"project=project-1"))
    page.wait_for_function("() => /of 1,667$/.test(document.querySelector('.where').textContent)")
    assert all(int(title.split()[1]) % 3 == 1 for _, title in drawn(page))
    page.get_by_label("Show").select_option("prompts")
    expect(page.get_by_role("heading", name="Nothing of this kind")).to_be_visible()
    page.go_back()
    page.wait_for_function("() => /of 1,667$/.test(document.querySelector('.where').textContent)")
    page.go_back()
    page.wait_for_function("() => /of 5,000$/.test(document.querySelector('.where').textContent)")


def test_by_keyboard_into_an_item_and_back_to_the_same_place(viewer):
    page = viewer.page
    drawn(page)
    page.keyboard.press("j")
    for _ in range(4):
        page.keyboard.press("PageDown")
    focused = page.locator(":focus")
    expect(focused).to_have_text(f"Item {MANY - 41}")
    before = page.evaluate("() => document.querySelector('.list').scrollTop")
    assert before > 0
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Item {MANY - 41}")
    page.go_back()
    page.wait_for_selector(".timeline .list a")
    page.wait_for_function(
        "(at) => document.querySelector('.list').scrollTop === at", arg=before
    )  # fmt: skip
    page.keyboard.press("j")
    expect(page.locator(":focus")).to_have_text(f"Item {MANY - 42}")
    page.keyboard.press("End")
    expect(page.locator(":focus")).to_have_text("Item 0")


def test_a_server_that_fails_is_said_and_asked_again(viewer):
    page = viewer.page
    drawn(page)
    page.route("**/api/items*", lambda route: route.abort())
    scroll(page, 0.5)
    alert = page.locator(".list-failed")
    expect(alert).to_contain_text("the server does not answer")
    page.unroute("**/api/items*")
    alert.get_by_role("button", name="Try again").click()
    rows = drawn(page)
    assert all(title == f"Item {MANY - 1 - place}" for place, title in rows)
    expect(alert).to_be_empty()
    viewer.complaints.clear()  # the browser's own, of the request that failed


def test_on_a_phone_nothing_is_wider_than_the_page_and_dark_is_dark(viewer, home):
    page = viewer.page
    add(home, item(90_001, 0, project="/".join(["a-long-name-of-a-project"] * 6)))
    page.reload()
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    drawn(page)
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 400
    assert page.evaluate("() => document.querySelector('main').scrollWidth") <= 400
    row = page.locator(".list .row a.title").first.bounding_box()
    assert row["x"] + row["width"] <= 400
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == (
        "rgb(24, 26, 25)"
    )


class TestNothing:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        yester.open(tmp_path / "memory").close()
        return tmp_path / "memory"

    def test_an_empty_memory_says_how_it_fills_and_fills(self, viewer, home):
        page = viewer.page
        expect(page.get_by_text("yester index")).to_be_visible()
        expect(page.locator("header .live")).to_have_text("live")
        add(home, fresh(1, 1))
        expect(page.locator(".list [data-place='0']")).to_contain_text("Item 1")


class TestBusyDay:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        noon = (time.time() // 86_400 - 3) * 86_400 + 43_200
        with yester.open(tmp_path / "memory") as memory:
            memory.add(
                [
                    {"ref": f"p{n}", "kind": "prompt", "role": "user", "project": "shop",
                     "session": f"s{n % 7}", "text": f"Prompt {n}",
                     "epoch": noon + n}
                    for n in range(130)
                ],
                embed="later",
            )  # fmt: skip
        return tmp_path / "memory"

    def test_of_a_day_of_many_turns_the_latest_stand_there_and_the_others_on_request(self, viewer):
        page = viewer.page
        viewer.to("#/timeline")
        turns = page.locator(".day-block .turn")
        expect(turns).to_have_count(50)
        expect(page.locator(".day-block h2")).to_contain_text("130 turns")
        expect(page.get_by_text("Prompt 129", exact=True)).to_be_visible()
        page.get_by_role("button", name="80 earlier turns of this day").click()
        expect(turns).to_have_count(130)
        expect(page.locator(".day-block h2")).to_contain_text("130 turns")
        expect(page.get_by_role("button", name="of this day")).to_have_count(0)
