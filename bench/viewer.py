"""The viewer measured in a real browser: how even its list scrolls, how long each view takes, and
what searching while one types costs beside one search.

    python -m bench.viewer [--items 100000] [--seconds 20] [--before FOLDER]

`--before` is the viewer's folder of an earlier version, measured in the same run against the same
server; of it only the views are.

A store with so many items is made, served and looked at with chromium (without a screen). A script
scrolls the whole timeline from end to end in so many seconds, which asks for a place anew in every
frame, then by the wheel's own steps; requestAnimationFrame tells how long each frame took.
Told: the share of frames over 50 ms, the slowest one, the most rows in the page, and how long the
last rows took to be there after the scrollbar was dragged to the end.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

import yester
from tests.browser.conftest import chromium
from tests.browser.views import COUNTING, opened
from tests.serving import Serving, serving
from yester.faces.http.app import FOLDER
from yester.faces.http.login import new_code

VIEWS = (
    "#/search?query=found+step", "#/search?project=project-3", "#/sessions", "#/memories",
    "#/shown", "#/stats?days=30", "#/projects", "#/settings", "#/",
)  # fmt: skip
_BATCH = 5_000
_WHEEL = 100  # px a step
_PLACE = "#/timeline?show=items"  # every item in one list

_THROUGH = """async ([seconds, step]) => {
  const box = document.querySelector(".list"), frames = [];
  let rows = 0;
  box.scrollTop = 0;
  const began = performance.now(), far = box.scrollHeight - box.clientHeight;
  let last = await new Promise(requestAnimationFrame);
  for (;;) {
    const past = (performance.now() - began) / 1000 / seconds;
    if (past >= 1) break;
    box.scrollTop = step ? box.scrollTop + step : past * far;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
    rows = Math.max(rows, document.querySelectorAll(".list .row").length);
  }
  return {frames, rows, at: box.scrollTop};
}"""


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--items", type=int, default=100_000)
    given.add_argument("--seconds", type=int, default=20)
    given.add_argument("--before", type=Path)
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        home = _store(Path(folder), asked.items)
        for name, files in (("before", asked.before), ("now", FOLDER)):
            if files is not None:
                with serving(home, folder=files) as run:
                    _measure_views(play, run, name)
        _measure_list(play, home, asked.seconds)


def _open(play: Playwright, run: Serving) -> tuple[Browser, Page]:
    browser = play.chromium.launch(
        executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
    )
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(COUNTING)
    page.goto(f"http://{run.host}/#code={new_code(run.home)}")
    page.wait_for_selector("main h1")
    return browser, page


def _measure_views(play: Playwright, run: Serving, name: str) -> None:
    """The median of three, from the address to the last answer."""
    browser, page = _open(play, run)
    for place in VIEWS:
        took = []
        for _ in range(3):
            opened(page, "#/doctor")
            began = time.perf_counter()
            opened(page, place)
            took.append((time.perf_counter() - began) * 1000)
        print(f"{name}: {place} {sorted(took)[1]:,.0f} ms")
    if name == "now":
        _measure_typing(page)
    browser.close()


def _measure_typing(page: Page) -> None:
    """From the last letter, or Enter, until the hits are drawn; the server's part besides."""
    field = page.locator("header input[type=search]")
    took: dict[str, list[float]] = {"one search": [], "as one types": []}
    for turn in range(5):
        for how, times in took.items():
            opened(page, "#/search")
            words = f"found step {turn * 7 + len(times) + 11}"
            field.focus()
            if how == "one search":
                field.evaluate("(field, words) => { field.value = words }", words)
                began = time.perf_counter()
                page.keyboard.press("Enter")
            else:
                page.keyboard.type(words, delay=60)
                began = time.perf_counter()
            page.wait_for_function(
                "(words) => document.querySelector('.search .asked')?.textContent === words",
                arg=words,
            )
            times.append((time.perf_counter() - began) * 1000)
    for how, times in took.items():
        print(f"{how}: {sorted(times)[2]:,.0f} ms until the hits are there")


def _measure_list(play: Playwright, home: Path, seconds: int) -> None:
    with serving(home) as run:
        browser, page = _open(play, run)
        page.evaluate("location.hash = '#/timeline?show=items'")
        page.wait_for_selector(".list .row:not(.missing)")
        print(f"dragged to the end: rows there after {_dragged(page):,.0f} ms")
        _told("end to end", page.evaluate(_THROUGH, [seconds, 0]))
        _told("by the wheel", page.evaluate(_THROUGH, [seconds, _WHEEL]))
        browser.close()


def _store(home: Path, items: int) -> Path:
    now = int(time.time())
    with yester.open(home) as memory:
        for start in range(0, items, _BATCH):
            memory.add(
                (
                    {
                        "kind": "observation" if number % 5 else "prompt",
                        "type": "discovery" if number % 5 else "",
                        "title": f"Item {number} of a long life",
                        "text": f"What was found out in step {number}, in about as many words.",
                        "project": f"project-{number % 7}",
                        "epoch": now - (items - number) * 60,
                    }
                    for number in range(start, min(items, start + _BATCH))
                ),
                embed="later",
            )
    return home


def _told(name: str, measured: dict[str, Any]) -> None:
    frames = sorted(measured["frames"])
    slow = sum(frame > 50 for frame in frames)
    print(
        f"{name}: {len(frames):,} frames, {slow} over 50 ms ({slow / len(frames):.2%}), median"
        f" {frames[len(frames) // 2]:.1f} ms, p99 {frames[int(len(frames) * 0.99)]:.1f} ms, slowest"
        f" {frames[-1]:.1f} ms; at most {measured['rows']} rows in the page"
    )


def _dragged(page: Page) -> float:
    page.evaluate("() => { document.querySelector('.list').scrollTop = 0 }")
    page.wait_for_function("() => document.querySelector('.list [data-place=\"0\"] a')")
    began = time.perf_counter()
    page.evaluate("() => { const box = document.querySelector('.list'); box.scrollTop = 1e9 }")
    page.wait_for_function(
        "() => { const rows = document.querySelectorAll('.list .row');"
        " return rows.length && rows[rows.length - 1].querySelector('a')"
        " && +rows[rows.length - 1].ariaPosInSet === +rows[rows.length - 1].ariaSetSize }"
    )
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
