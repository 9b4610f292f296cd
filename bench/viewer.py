"""The viewer measured in a real browser: how even its list scrolls, how long each view takes, and
what searching while one types costs beside one search.

    python -m bench.viewer [--items 100000] [--seconds 20]
    python -m bench.viewer --home HOME [--before PYTHON HOME] [--times 7]

Without `--home` a store with so many items is made and its timeline is scrolled: a script goes from
end to end in so many seconds, which asks for a place anew in every frame, then by the wheel's own
steps; requestAnimationFrame tells how long each frame took. Told: the share of frames over 50 ms,
the slowest one, the most rows in the page, and how long the last rows took to be there after the
scrollbar was dragged to the end.
With `--home` each view of that store is opened in turn. `--before` is the Python of an environment
with an earlier version, and a store of the same items for it; both serve at once, each in a process
of its own, and are asked by turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import yester
from tests.browser.conftest import chromium
from tests.browser.views import COUNTING, open_view, opened
from tests.browser.views import whole as wait_whole
from yester.model import Filters, Paging

VIEWS = {
    "start page": "#/", "timeline": "#/timeline", "every item": "#/timeline?show=items",
    "search": "#/search?query={words}",
    "search in a project": "#/search?query={words}&project={project}",
    "everything of a project": "#/search?project={project}",
    "sessions": "#/sessions", "a session": "#/session/S{session}", "an item": "#/item/{item}",
    "memories": "#/memories", "injected": "#/shown", "statistics": "#/stats?days=30",
    "projects": "#/projects", "settings": "#/settings",
}  # fmt: skip
BEFORE = {"timeline": "#/", "every item": "#/"}  # where they were in 0.1
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
    given.add_argument("--home", type=Path)
    given.add_argument("--times", type=int, default=7)
    given.add_argument("--before", type=Path, nargs=2, metavar=("PYTHON", "HOME"))
    asked = given.parse_args()
    with ExitStack() as ends:
        play = ends.enter_context(sync_playwright())
        browser = play.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        ends.callback(browser.close)
        own = Path(sys.executable)
        if asked.home is None:
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
            _measure_list(ends.enter_context(_open(browser, own, _store(folder, asked.items))),
                          asked.seconds)  # fmt: skip
            return
        pages = {"now": ends.enter_context(_open(browser, own, asked.home))}
        if asked.before:
            pages["before"] = ends.enter_context(_open(browser, *asked.before))
        _measure_views(pages, asked.home, asked.times)
        _measure_typing(pages["now"], asked.times)


@contextmanager
def _open(browser: Browser, python: Path, home: Path) -> Iterator[Page]:
    """The viewer of this version over this store, its server in a process of its own."""
    command = [str(python), "-m", "yester", "--home", str(home)]
    environ = {**os.environ, "YESTER_EMBEDDER": "none"}
    try:
        link = subprocess.run(
            [*command, "ui", "--print"], env=environ, check=True, capture_output=True, text=True
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.add_init_script(COUNTING)
        page.goto(link.stdout.split()[-1])
        page.wait_for_selector("main h1")
        yield page
        page.close()
    finally:
        subprocess.run([*command, "serve", "--stop"], env=environ, stdout=subprocess.DEVNULL)


def _measure_views(pages: dict[str, Page], home: Path, times: int) -> None:
    """Medians, from the address until the view stands there, and until its last answer has come."""
    with yester.open(home) as memory:
        words = "error when the test runs again"
        hit = memory.recall(words, k=1)[0]
        session = memory.store.sessions(Filters(), Paging(1))[0].id
    names = {"words": words.replace(" ", "+"), "project": hit.project, "item": hit.id,
             "session": session}  # fmt: skip
    for name, now in VIEWS.items():
        drawn: dict[str, list[float]] = {which: [] for which in pages}
        whole: dict[str, list[float]] = {which: [] for which in pages}
        for _ in range(times):
            for which, page in pages.items():
                place = (now if which == "now" else BEFORE.get(name, now)).format_map(names)
                opened(page, "#/nowhere")
                began = time.perf_counter()
                open_view(page, place)
                drawn[which].append((time.perf_counter() - began) * 1000)
                wait_whole(page)
                whole[which].append((time.perf_counter() - began) * 1000)
        figures = [f"{statistics.median(of[one]):,.0f}" for of in (drawn, whole) for one in pages]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


def _measure_typing(page: Page, turns: int) -> None:
    """From the last letter, or Enter, until the hits are drawn."""
    field = page.locator("header input[type=search]")
    took: dict[str, list[float]] = {"one search": [], "as one types": []}
    for turn in range(turns):
        for how, times in took.items():
            opened(page, "#/search")
            words = f"error in step {turn * 7 + len(times) + 11}"
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
        print(f"{how}: {statistics.median(times):,.0f} ms until the hits are there")


def _measure_list(page: Page, seconds: int) -> None:
    page.evaluate("place => { location.hash = place }", _PLACE)
    page.wait_for_selector(".list .row:not(.missing)")
    print(f"dragged to the end: rows there after {_dragged(page):,.0f} ms")
    _told("end to end", page.evaluate(_THROUGH, [seconds, 0]))
    _told("by the wheel", page.evaluate(_THROUGH, [seconds, _WHEEL]))


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
