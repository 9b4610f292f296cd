"""The pictures of docs/viewer.md: the viewer over the sample sessions, moved to these days.

    python docs/pictures.py                        the pictures of the guide, into docs/pictures
    python docs/pictures.py --look FOLDER [--home HOME]   every view, narrow to wide, light and dark

Needs chromium, as the tests of the viewer do. Colours are reduced, which keeps a picture small.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser.conftest import chromium  # noqa: E402
from tests.serving import Serving, serving  # noqa: E402
from yester.faces.http.login import new_code  # noqa: E402

_COLOURS = 120
LARGEST = 60_000  # bytes of a picture
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_STAMP = re.compile(r'"timestamp":"([^"]+)"')
_UNDER_WAY = "d96b3a1e-8f57-4c20-a2d4-50e7f1b98c6d"  # the session that is not over yet
_STEP = timedelta(hours=31)  # from one session's end to the next one's
_MEMORIES = [
    ("Always run the tests of the shop with the in-memory cache.", "rule", "tidepool"),
    ("Prices are integer cents, because the terminal speaks cents.", "decision", "tidepool"),
    ("Releases are cut on Tuesdays: the warehouse counts on Wednesdays.", "constraint", "tidepool"),
    ("Recipes keep their amounts in grams; cups are converted when they are read.", "decision",
     "larder"),
    ("Prefer small commits with a reason in the body.", "preference", ""),
]  # fmt: skip
# The guide's pictures: name, view, size, what is done first.
GUIDE: list[tuple[str, str, tuple[int, int], str]] = [
    ("now", "#/", (1200, 760), ""),
    ("search", "#/search?query=redis", (1200, 820), ""),
    ("session", f"#/session/{_UNDER_WAY}", (1200, 660), "second prompt"),
    ("memories", "#/memories", (1200, 560), ""),
    ("palette", "#/timeline", (1200, 620), "palette"),
    ("statistics", "#/stats", (1200, 900), ""),
    ("phone", "#/search?query=deadlock", (400, 760), ""),
]
VIEWS = {
    "now": "#/", "search": "#/search?query={query}", "searching": "#/search",
    "nothing": "#/search?query=xyzzyplugh", "memories": "#/memories", "review": "#/review",
    "memory": "#/memory/{memory}", "stats": "#/stats", "settings": "#/settings",
    "projects": "#/projects", "timeline": "#/timeline", "shown": "#/shown",
}  # fmt: skip


def make_home(folder: Path) -> Path:
    """A home with the sample sessions as if they were of the last days, the newest under way."""
    now, moved = datetime.now(UTC), folder / "sessions"
    shutil.copytree(ROOT / "examples/sessions", moved)
    ends = {path: _times(path)[-1] for path in moved.rglob("*.jsonl")}
    own = [path for path in ends if "subagents" not in path.parts]
    order = sorted(own, key=lambda path: (path.stem == _UNDER_WAY, ends[path]))
    for place, path in enumerate(reversed(order)):
        if place == 0:
            _cut_short(path)
        by = now - timedelta(seconds=40) - place * _STEP - _times(path)[-1]
        for one in (path, *(path.parent / path.stem).rglob("*.jsonl")):
            _move(one, by)
    home = folder / "home"
    _yester(home, "index", "--no-vectors", str(moved))
    _yester(home, "distil", "--backfill")
    return home


def _times(path: Path) -> list[datetime]:
    return [datetime.fromisoformat(one) for one in _STAMP.findall(path.read_text("utf-8"))]


def _cut_short(path: Path) -> None:
    """Up to the last use of a tool, which is under way then."""
    lines = path.read_text("utf-8").splitlines()
    last = max(at for at, line in enumerate(lines) if '"tool_use"' in line)
    path.write_text("\n".join(lines[: last + 1]) + "\n", "utf-8")


def _move(path: Path, by: timedelta) -> None:
    def later(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[1]) + by
        return f'"timestamp":"{at.isoformat(timespec="milliseconds").replace("+00:00", "Z")}"'

    path.write_text(_STAMP.sub(later, path.read_text("utf-8")), "utf-8")


def _yester(home: Path, *words: str) -> None:
    command = [sys.executable, "-m", "yester", "--home", str(home), *words]
    env = {**os.environ, "HOME": str(home)}
    subprocess.run(command, check=True, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)


def fill_home(run: Serving) -> None:
    """What a user and agents add to it: memories, lines shown and what came of them."""
    import yester
    from yester.model import Event, Feedback, Injection

    for text, type_, project in _MEMORIES:
        sent = {"text": text, "type": type_, "project": project}
        run.send("/api/memory/save", sent, token=run.user())
    now = int(time.time() * 1000)
    sessions = run.get("/api/sessions", limit=20)["sessions"]
    rows = run.get("/api/items", kinds="observation", limit=60)["results"]
    lines: list[Any] = []
    for place, session in enumerate(sessions):
        end = session["ended"]
        fit = [one for one in rows if one["project"] == session["project"]][: 3 + place % 3]
        lines += [
            Injection(session["db_id"], "SessionStart", one["id"], 0.6, 30, end, "newest", 1)
            for one in fit
        ]
        lines += [
            Feedback(one["id"], "acted", end + 1, session["db_id"])
            for at, one in enumerate(fit)
            if (at + place) % 3
        ]
    lines.append(Event("1", "SessionStart", now, sessions[0]["db_id"]))
    with yester.open(run.home) as memory, memory.store.transaction("ledger"):
        memory.store.append(lines)


def enter(browser: Browser, run: Serving, width: int, height: int, dark: bool) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": height}, reduced_motion="reduce",
        color_scheme="dark" if dark else "light",
    )  # fmt: skip
    page.goto(f"http://{run.host}/#code={new_code(run.home)}")
    page.wait_for_selector("main h1")
    return page


def open_view(page: Page, place: str) -> None:
    page.evaluate("place => { location.hash = place }", place)
    page.wait_for_timeout(700)
    page.wait_for_selector("main:not([aria-busy]) h1")


def take(page: Page, path: Path) -> None:
    """With a palette: the colours that most is drawn in, and the nearest of them for the others."""
    width, height, pixels, size = _decode(page.screenshot())
    colours = [bytes(pixels[at : at + 3]) for at in range(0, len(pixels), size)]
    palette = [colour for colour, _ in Counter(colours).most_common(_COLOURS)]
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in set(colours) - places.keys():
        near = min(palette, key=lambda one: sum((a - b) ** 2 for a, b in zip(one, colour)))  # noqa: B905
        places[colour] = palette.index(near)
    rows = bytearray()
    for start in range(0, len(colours), width):
        rows.append(0)  # no filter: flat areas are pressed best as they are
        rows += bytes(places[colour] for colour in colours[start : start + width])
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(rows, 9)),
              (b"IEND", b""))  # fmt: skip
    path.write_bytes(_SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    ))  # fmt: skip
    if path.stat().st_size > LARGEST:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes; show less of the view")


def _decode(png: bytes) -> tuple[int, int, bytearray, int]:
    """Width, height, pixels and bytes a pixel of a PNG as the browser makes it: 8 bits, not
    interlaced."""
    at, data = len(_SIGNATURE), b""
    width = height = size = 0
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if name == b"IHDR":
            width, height, _, kind = struct.unpack(">IIBB", body[:10])
            size = {2: 3, 6: 4}[kind]
        elif name == b"IDAT":
            data += body
        at += length + 12
    raw, line, pixels = zlib.decompress(data), width * size, bytearray()
    above = bytearray(line)
    for row in range(height):
        kind, now = raw[row * (line + 1)], bytearray(raw[row * (line + 1) + 1 :][:line])
        for place in range(line) if kind else ():
            left = now[place - size] if place >= size else 0
            corner = above[place - size] if place >= size else 0
            now[place] = (now[place] + _predict(kind, left, above[place], corner)) & 255
        pixels += now
        above = now
    return width, height, pixels, size


def _predict(kind: int, left: int, above: int, corner: int) -> int:
    if kind < 4:
        return (0, left, above, (left + above) // 2)[kind]
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--look", type=Path)
    given.add_argument("--home", type=Path)
    given.add_argument("--only", default="")
    given.add_argument("--query", default="redis")
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        home = asked.home or make_home(Path(folder))
        with serving(home) as run:
            if asked.home is None:
                fill_home(run)
            browser = play.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
            )
            if asked.look:
                _look(
                    browser, run, asked.look, set(filter(None, asked.only.split(","))), asked.query
                )
            else:
                for name, place, (width, height), does in GUIDE:
                    page = enter(browser, run, width, height, False)
                    open_view(page, place)
                    if does == "palette":
                        page.keyboard.press("Control+k")
                        page.keyboard.type("mem")
                        page.wait_for_timeout(500)
                    elif does == "second prompt":
                        page.keyboard.press("n")
                        page.keyboard.press("n")
                        page.wait_for_timeout(500)
                    take(page, ROOT / "docs/pictures" / f"{name}.png")
                    page.close()
            browser.close()


def _look(browser: Browser, run: Serving, folder: Path, only: set[str], query: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = run.get("/api/memories", limit=1)["results"]
    memory = found[0]["id"] if found else 0
    for width, height in ((400, 860), (1280, 860), (2560, 1300)):
        for dark in (False, True):
            page = enter(browser, run, width, height, dark)
            for name, place in VIEWS.items():
                if only and name not in only:
                    continue
                open_view(page, place.format(memory=memory, query=query))
                page.screenshot(
                    path=str(folder / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                )
            page.close()


if __name__ == "__main__":
    main()
