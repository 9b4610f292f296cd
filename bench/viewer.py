"""The viewer's timeline measured in a real browser: how even it scrolls through many items.

    python -m bench.viewer [--items 100000] [--seconds 20]

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

from playwright.sync_api import Page, sync_playwright

import yester
from tests.browser.conftest import chromium
from tests.serving import serving
from yester.faces.http.login import new_code

_BATCH = 5_000
_WHEEL = 100  # px a step

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
    asked = given.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(_store(Path(folder), asked.items)) as run,
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://{run.host}/#code={new_code(run.home)}")
        page.wait_for_selector(".list .row:not(.missing)")
        print(f"dragged to the end: rows there after {_dragged(page):,.0f} ms")
        _told("end to end", page.evaluate(_THROUGH, [asked.seconds, 0]))
        _told("by the wheel", page.evaluate(_THROUGH, [asked.seconds, _WHEEL]))
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
