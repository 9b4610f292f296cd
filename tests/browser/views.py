"""The views there are, from the viewer's own table of routes; a test over them covers new ones."""

from __future__ import annotations

import re
from dataclasses import dataclass

from yester.deliver.http.viewer import FOLDER


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
