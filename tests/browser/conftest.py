"""A real browser against a real server with a real store. Debian's chromium is used
(`apt install chromium`); without one these tests are skipped with a message."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from tests.browser.views import open_view
from tests.serving import Serving, serving
from yester.faces.http.login import new_code

_QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
# How long something that is waited for may take where many other things run on few cores.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 400, "height": 800}


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), "")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    if not path:
        pytest.skip("no chromium on this machine (Debian: apt install chromium)")
    with sync_playwright() as play:
        try:
            running = play.chromium.launch(executable_path=path, args=list(_QUIET))
        except Error as error:
            pytest.skip(f"{path} does not start: {error}")
        yield running
        running.close()


@pytest.fixture
def window(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of its own. What the page complains of fails the test."""
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def server(home: Path) -> Iterator[Serving]:
    """Serves the folder of the fixture `home`, which each file of tests fills its own way."""
    with serving(home) as running:
        yield running
        assert not running.failures


class Viewer:
    """A page that has entered by a one-time link, and what it has complained of."""

    def __init__(self, page: Page, server: Serving) -> None:
        self.page, self.server = page, server
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    @property
    def address(self) -> str:
        return f"http://{self.server.host}/"

    def enter(self) -> None:
        self.page.goto(f"{self.address}#code={new_code(self.server.home)}")
        self.page.wait_for_selector("main :is(h1, h2)")

    def to(self, place: str) -> None:
        """Another view, by its address behind the #."""
        open_view(self.page, f"#{place.removeprefix('#')}")


@pytest.fixture
def viewer(window: BrowserContext, server: Serving) -> Iterator[Viewer]:
    shown = Viewer(window.new_page(), server)
    shown.enter()
    yield shown
    assert not shown.complaints
