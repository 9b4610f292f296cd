"""The views there are, from the viewer's own table of routes; a test over them covers new ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import Page

from yester.faces.http.app import FOLDER


@dataclass(frozen=True)
class Route:
    path: str
    page: str

    @property
    def is_there(self) -> bool:
        return (FOLDER / self.page.removeprefix("/")).is_file()


def _routes() -> tuple[Route, ...]:
    text = (FOLDER / "routes.js").read_text("utf-8")
    return tuple(Route(*found) for found in re.findall(r'path: "([^"]+)", page: "([^"]+)"', text))


ROUTES = _routes()
VIEWS = tuple(route for route in ROUTES if route.is_there)


def address(route: Route, item: int = 1, session: int = 1, memory: int = 1) -> str:
    """The route with numbers of things that exist."""
    numbers = {"/item/:id": str(item), "/session/:id": f"S{session}", "/memory/:id": str(memory)}
    return "#" + (
        route.path.replace(":id", numbers[route.path]) if ":" in route.path else route.path
    )


# Counts what is being asked, so that a test can wait for a view to be whole. The stream never ends.
COUNTING = """(() => {
  const real = window.fetch;
  window.asking = 0;
  window.fetch = (address, ...more) => {
    if (address === "/stream") return real(address, ...more);
    window.asking += 1;
    return real(address, ...more).finally(() => setTimeout(() => (window.asking -= 1)));
  };
})()"""
_DRAWN = """() => document.querySelector("main > :not([data-old])")
  && !document.querySelector("main[aria-busy]")"""
_WHOLE = f"""() => window.asking === 0 && ({_DRAWN})()
  && !document.querySelector("main [aria-busy=true]")"""


def open_view(page: Page, place: str) -> None:
    """Another view, or the same one anew; what stood there before does not count."""
    page.evaluate(
        """place => {
          document.querySelectorAll("main > *").forEach((one) => { one.dataset.old = "" });
          if (location.hash === place) dispatchEvent(new HashChangeEvent("hashchange"));
          else location.hash = place;
        }""",
        place,
    )
    page.wait_for_function(_DRAWN)


def opened(page: Page, place: str) -> None:
    """Another view, when all of it is there; the page must have had COUNTING from its start."""
    open_view(page, place)
    whole(page)


def whole(page: Page) -> None:
    page.wait_for_function(_WHOLE)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    page.wait_for_function(_WHOLE)
