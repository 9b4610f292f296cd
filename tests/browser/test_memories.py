"""Memories in a real browser: kept, found, changed, ended and brought back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import yester
from tests.browser.conftest import PHONE
from yester.memories import lifecycle
from yester.memories.memory import Author
from yester.memories.remember import Draft, remember
from yester.model import Feedback, Injection, Project, Session

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10")]

SHOP = Project("name:shop", "shop")
NOON = 1_772_000_000_000
DAY = 86_400_000
SAID = "2025-12-07T06:13:20.000Z"  # 80 days before
EVIL = '<b onmouseover="boom()">bold</b>'


def by(day: int, why: str = "") -> Author:
    return Author("sam", NOON + day * DAY, why=why)


@pytest.fixture
def filled(tmp_path):
    """Three memories that replaced each other, one that is unsure, one that is soon gone."""
    home, ids = tmp_path / "memory", {}
    with yester.open(home) as memory:
        store = memory.store

        def keep(name: str, text: str, type_: str, day: int, **more) -> None:
            replaces = more.pop("supersedes", 0)
            draft = Draft(text, type_, **more)
            ids[name] = remember(store, draft, SHOP, by(day), supersedes=replaces).memo.item.id

        with store.transaction("items"):
            store.put_project(SHOP)
        keep("first", "Orders keep local time", "decision", 0, tags=["time"])
        keep("second", "Orders keep UTC", "decision", 1, tags=["time"], supersedes=ids["first"])
        keep("third", "Orders keep UTC and the zone of the buyer", "decision", 2, tags=["time"],
             supersedes=ids["second"])  # fmt: skip
        keep("unsure", "The export must stay under 10 MB", "constraint", 3, tags=["export"],
             confidence=0.3)  # fmt: skip
        keep("gone", f"The staging machine sleeps on Sundays {EVIL}", "note", 4, tags=["staging"])
        lifecycle.change_status(store, ids["gone"], "retire", by(5, "it is awake now"))
        with store.transaction("items"):
            session = store.put_session(Session("aaaaaa-1", "claude-code", SHOP.key, NOON, NOON))
            store.append([
                Injection(session, "SessionStart", ids["third"], 0.0, 14, NOON, "decision in use")
            ])  # fmt: skip
            store.append([Feedback(ids["third"], "acted", NOON, session)])
    return home, ids


@pytest.fixture
def home(filled):
    return filled[0]


@pytest.fixture
def ids(filled):
    return filled[1]


def status(home, id_: int) -> str:
    with yester.open(home) as memory:
        return memory.store.memos(ids=[id_])[0].item.status


def test_memories_are_counted_by_status_and_narrowed_by_words(viewer):
    viewer.to("#/memories")
    rows, tabs = viewer.page.locator(".memory-row"), viewer.page.get_by_label("Status")
    expect(rows).to_have_count(2)
    expect(tabs).to_contain_text("Active 2")
    expect(tabs).to_contain_text("Superseded 2")
    tabs.get_by_role("link", name="Retired").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("<b onmouseover")
    viewer.page.go_back()
    expect(rows).to_have_count(2)
    viewer.page.get_by_label("Words in memories").fill("export")
    viewer.page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    expect(rows.locator("mark")).to_have_text("export")
    viewer.page.get_by_label("Type").select_option("rule")
    expect(viewer.page.locator("main")).to_contain_text("No memory fits")


def test_a_rule_has_the_day_it_was_said_in_the_list_and_on_its_page(viewer, home):
    with yester.open(home) as memory:
        draft = Draft("Never commit to main", "rule", epoch=NOON - 90 * DAY)
        rule = remember(memory.store, draft, SHOP, by(9)).memo.item.id
        remember(memory.store, Draft(draft.text, "rule", epoch=NOON - 80 * DAY), SHOP, by(10))
    viewer.to("#/memories")
    row = viewer.page.locator(".memory-row", has_text="Never commit to main")
    expect(row.locator(".side time")).to_have_attribute("datetime", SAID)
    viewer.to(f"#/memory/{rule}")
    expect(viewer.page.locator(f"aside dd time[datetime='{SAID}']")).to_have_count(1)
    expect(viewer.page.locator(f".history ins time[datetime='{SAID}']")).to_have_count(1)


@pytest.mark.requirement("MEM-03")
def test_a_new_memory_is_compared_before_it_is_kept(viewer, home, ids):
    viewer.to("#/memories?new=1")
    text = viewer.page.get_by_label("What to remember")
    expect(text).to_be_focused()
    viewer.page.get_by_label("Holds in").select_option("shop")
    viewer.page.locator("select[name=type]").select_option("decision")
    text.fill("Orders keep UTC and the zone of the shop")
    told = viewer.page.locator(".told")
    expect(told).to_contain_text(f"This would update #{ids['third']}")
    # To keep it needs a decision: saving alone does not go past the likeness.
    viewer.page.get_by_role("button", name="Remember").click()
    replace = viewer.page.get_by_role("button", name="Supersede #")
    expect(replace).to_be_visible()
    replace.click()
    expect(viewer.page.locator("h1")).to_contain_text("the zone of the shop")
    expect(viewer.page.locator(".chain li")).to_have_count(4)
    assert status(home, ids["third"]) == "superseded"


def test_something_new_is_kept_with_the_keyboard_alone(viewer):
    viewer.to("#/memories?new=1")
    expect(viewer.page.get_by_label("What to remember")).to_be_focused()
    viewer.page.keyboard.type("Never deploy on a Friday")
    for _ in range(5):  # type, project, tags, title, the button
        viewer.page.keyboard.press("Tab")
    viewer.page.keyboard.press("Enter")
    expect(viewer.page.locator("h1")).to_contain_text("Never deploy on a Friday")
    expect(viewer.page.locator(".chips")).to_contain_text("rule")
    expect(viewer.page.locator(".chips")).to_contain_text("everywhere")


def test_a_memory_says_everything_and_what_replaced_what(viewer, ids):
    viewer.to(f"#/memory/{ids['second']}")
    chain = viewer.page.locator(".chain li")
    expect(chain).to_have_count(3)
    assert [int(one.split()[0][1:]) for one in chain.locator("a").all_text_contents()] == [
        ids["first"], ids["second"], ids["third"],
    ]  # fmt: skip
    expect(chain.nth(1)).to_have_attribute("aria-current", "true")
    expect(viewer.page.locator("main .notice")).to_contain_text(f"Superseded by #{ids['third']}")
    chain.nth(2).get_by_role("link").click()
    expect(viewer.page.locator("h1")).to_contain_text("the zone of the buyer")
    expect(viewer.page.locator("aside")).to_contain_text("acted on")
    expect(viewer.page.locator("aside")).to_contain_text("decision in use")
    expect(viewer.page.locator(".history")).to_contain_text("supersede")


def test_what_is_edited_is_kept_and_its_history_says_what_was_different(viewer, home, ids):
    viewer.to(f"#/memory/{ids['third']}")
    viewer.page.get_by_role("button", name="Edit").click()
    viewer.page.get_by_label("Title").fill("Orders keep UTC and a zone")
    viewer.page.get_by_label("Rationale").fill("audits\ninvoices")
    viewer.page.get_by_label("Why (for the history)").fill("shorter")
    viewer.page.get_by_role("button", name="Save").click()
    expect(viewer.page.locator("h1")).to_contain_text("Orders keep UTC and a zone")
    expect(viewer.page.locator("dl.record")).to_contain_text("invoices")
    change = viewer.page.locator(".history > li").first
    expect(change).to_contain_text("shorter")
    expect(change.locator("del").first).to_contain_text("the zone of the buyer")
    expect(change.locator("ins").first).to_contain_text("a zone")
    with yester.open(home) as memory:
        memo = memory.store.memos(ids=[ids["third"]])[0]
    assert memo.item.title == "Orders keep UTC and a zone"
    assert memo.content["rationale"] == ["audits", "invoices"]
    viewer.page.get_by_role("button", name="Undo…").click()
    viewer.page.get_by_role("button", name="Undo", exact=True).click()
    expect(viewer.page.locator("h1")).to_contain_text("the zone of the buyer")


def change_title(home, id_: int, title: str) -> None:
    with yester.open(home) as memory:
        lifecycle.edit_memory(memory.store, id_, {"title": title}, by(9, "meanwhile"))


@pytest.mark.parametrize(("kept", "title"), [("Yours", "Mine"), ("There now", "Theirs")])
def test_where_two_change_the_same_the_user_decides(viewer, home, ids, kept, title):
    viewer.to(f"#/memory/{ids['third']}?edit=1")
    viewer.page.get_by_label("Title").fill("Mine")
    viewer.page.get_by_label("Context").fill("the new shop")
    change_title(home, ids["third"], "Theirs")
    viewer.page.get_by_role("button", name="Save").click()
    asked = viewer.page.get_by_role("dialog")
    expect(asked).to_contain_text("Mine")
    expect(asked).to_contain_text("Theirs")
    asked.get_by_label(kept).check()
    asked.get_by_role("button", name="Save what is chosen").click()
    expect(viewer.page.locator("h1")).to_contain_text(title)
    expect(viewer.page.locator("dl.record")).to_contain_text("the new shop")
    # The browser says so by itself of every answer that is a refusal.
    viewer.complaints[:] = [one for one in viewer.complaints if "409" not in one]


def test_what_others_change_elsewhere_is_kept_without_asking(viewer, home, ids):
    viewer.to(f"#/memory/{ids['third']}?edit=1")
    viewer.page.get_by_label("Context").fill("the new shop")
    change_title(home, ids["third"], "Theirs")
    viewer.page.get_by_role("button", name="Save").click()
    expect(viewer.page.locator("h1")).to_contain_text("Theirs")
    expect(viewer.page.locator("dl.record")).to_contain_text("the new shop")


@pytest.mark.requirement("MEM-02")
def test_a_memory_is_retired_and_restored(viewer, home, ids):
    viewer.to(f"#/memory/{ids['unsure']}")
    viewer.page.get_by_role("button", name="Retire…").click()
    viewer.page.get_by_label("Why (for the history)").fill("no limit any more")
    viewer.page.get_by_role("button", name="Retire", exact=True).click()
    expect(viewer.page.locator(".chips")).to_contain_text("Retired")
    expect(viewer.page.locator(".notice.warn")).to_contain_text("no limit any more")
    expect(viewer.page.get_by_role("button", name="Retire…")).to_have_count(0)
    assert status(home, ids["unsure"]) == "retired"
    viewer.page.get_by_role("button", name="Restore…").click()
    viewer.page.get_by_role("button", name="Restore", exact=True).click()
    expect(viewer.page.locator(".chips")).to_contain_text("Active")
    assert status(home, ids["unsure"]) == "active"


def test_before_a_decision_is_retired_it_is_said_that_it_is_meant_to_be_kept(viewer, home, ids):
    viewer.to(f"#/memory/{ids['third']}")
    viewer.page.get_by_role("button", name="Retire…").click()
    expect(viewer.page.get_by_role("dialog")).to_contain_text("are meant to be kept")
    assert status(home, ids["third"]) == "active"
    viewer.page.get_by_role("button", name="Retire all the same").click()
    expect(viewer.page.locator(".chips")).to_contain_text("Retired")


def test_several_are_retired_and_restored_with_one_dialog_each_by_keyboard(viewer, home, ids):
    page = viewer.page
    viewer.to("#/memories")
    third = page.locator(f"tr[data-memory='{ids['third']}']")
    expect(third).to_contain_text("1 of 1")
    expect(third.locator("td[data-label=Confidence]")).to_have_text("certain")
    expect(page.locator(f"tr[data-memory='{ids['unsure']}']")).to_contain_text("not injected")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    bulk = page.locator(".bulk")
    expect(bulk).to_contain_text("2 chosen")
    bulk.get_by_role("button", name="Retire 2").press("Enter")
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Also the one that is meant to be kept")
    asked.get_by_role("checkbox").check()
    asked.get_by_label("Why (for the history)").fill("spring cleaning")
    asked.get_by_role("button", name="Retire").press("Enter")
    expect(page.locator("main")).to_contain_text("Nothing is remembered yet")
    assert {status(home, ids[one]) for one in ("third", "unsure")} == {"retired"}
    viewer.to("#/memories?status=retired")
    page.get_by_label("Choose all").check()
    page.get_by_role("button", name="Restore 3").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.locator("main")).to_contain_text("None here")
    assert {status(home, ids[one]) for one in ("third", "unsure", "gone")} == {"active"}


def test_several_are_forgotten_after_a_preview(viewer, home, ids):
    page = viewer.page
    viewer.to("#/memories")
    page.get_by_label("Choose #").first.check()
    page.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 ")
    expect(page.locator(".memory-row")).to_have_count(2)
    page.get_by_role("dialog").get_by_role("button", name="Forget for good").click()
    expect(page.locator(".memory-row")).to_have_count(1)


def test_one_memory_is_put_in_the_place_of_another(viewer, home, ids):
    viewer.to(f"#/memory/{ids['third']}")
    viewer.page.get_by_role("button", name="Supersede…").click()
    viewer.page.get_by_label("What is true instead").fill("Orders keep what the till says")
    viewer.page.get_by_role("button", name="Supersede", exact=True).click()
    expect(viewer.page.locator("h1")).to_contain_text("Orders keep what the till says")
    expect(viewer.page.locator(".chain li")).to_have_count(4)
    assert status(home, ids["third"]) == "superseded"


def test_the_new_memory_opens_though_its_event_comes_before_the_answer(viewer, ids):
    page = viewer.page

    def hold(route):
        response = route.fetch()
        expect(page.locator(".notice.warn")).to_contain_text("Superseded by")
        route.fulfill(response=response)

    page.route("**/supersede", hold)
    viewer.to(f"#/memory/{ids['third']}")
    page.get_by_role("button", name="Supersede…").click()
    page.get_by_label("What is true instead").fill("Orders keep what the till says")
    page.get_by_role("button", name="Supersede", exact=True).click()
    expect(page.locator("h1")).to_contain_text("Orders keep what the till says")


def test_a_dialog_that_is_left_changes_nothing(viewer, home, ids):
    viewer.to(f"#/memory/{ids['unsure']}")
    viewer.page.get_by_role("button", name="Archive…").click()
    viewer.page.keyboard.press("Escape")
    expect(viewer.page.get_by_role("dialog")).to_have_count(0)
    assert status(home, ids["unsure"]) == "active"


def test_whether_it_was_of_use_can_be_said_and_taken_back(viewer, home, ids):
    viewer.to(f"#/memory/{ids['third']}")
    useful = viewer.page.get_by_role("button", name="Useful", exact=True)
    useful.click()
    expect(useful).to_have_attribute("aria-pressed", "true")
    useful.click()
    expect(useful).to_have_attribute("aria-pressed", "false")


def test_the_review_offers_what_helps_and_teaches_when_it_is_empty(viewer, home, ids):
    viewer.to("#/review")
    unsure = viewer.page.locator(f"[data-memory='{ids['unsure']}']")
    gone = viewer.page.locator(f"[data-memory='{ids['gone']}']")
    expect(unsure).to_contain_text("30% sure")
    unsure.get_by_role("button", name="Confirm").click()
    expect(unsure).to_have_count(0)
    with yester.open(home) as memory:
        assert memory.store.memos(ids=[ids["unsure"]])[0].item.confidence == 1
    gone.get_by_role("button", name="Restore").click()
    viewer.page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(viewer.page.locator("main")).to_contain_text("Nothing needs a look")
    assert status(home, ids["gone"]) == "active"


def test_nothing_is_wider_than_a_phone(viewer, ids):
    viewer.page.set_viewport_size(PHONE)
    memory = f"/memory/{ids['third']}"
    for place, there in (
        ("/memories", ".memory-row"), ("/memories?new=1", ".new-memory"), (memory, ".acts"),
        (f"{memory}?edit=1", "form.card"), ("/review", ".finding"),
    ):  # fmt: skip
        viewer.to(f"#{place}")
        viewer.page.wait_for_selector(there)
        for box in ("document.scrollingElement", "document.getElementById('content')"):
            assert viewer.page.evaluate(f"{box}.scrollWidth") <= 400, place


def test_words_nobody_said_are_neither_shown_nor_to_be_edited(viewer, ids):
    page = viewer.page
    viewer.to(f"#/memory/{ids['third']}")
    expect(page.get_by_label("What it says")).to_contain_text("Orders keep UTC")
    expect(page.get_by_label("What it says")).not_to_contain_text("not stated")
    viewer.to(f"#/memory/{ids['third']}?edit=1")
    field = page.locator("main form [name=context]")
    expect(field).to_have_value("")
    expect(field).to_have_attribute("placeholder", "not stated")


def test_taking_back_a_creation_says_that_it_retires(viewer, ids):
    viewer.to(f"#/memory/{ids['unsure']}")
    viewer.page.get_by_role("button", name="Undo…").click()
    expect(viewer.page.get_by_role("dialog")).to_contain_text("taking that back retires it")
