"""The viewer's files by themselves: they fit together, and none of them can do what a page that
shows foreign text must never do."""

from __future__ import annotations

import re

import pytest

from tests.browser.views import ROUTES
from yester.faces.http.viewer import FOLDER, files

pytestmark = pytest.mark.requirement("DEL-10")
FILES = files(FOLDER)
TEXTS = {
    name: file.body.decode()
    for name, file in FILES.items()
    if name != "/" and name.endswith((".js", ".css", ".html", ".svg"))
}
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}
PAGE = TEXTS["/index.html"]
_IMPORT = re.compile(
    r"""^(?:import|export)\b[^;"'=()]*["']([^"']+)["'];|\bimport\(\s*["']([^"']+)["']""", re.M
)
_LINK = re.compile(r"""(?:src|href)="(?!#)([^"]+)\"""")
_NAMESPACE = "http://www.w3.org/2000/svg"
# Ways for text to become markup or code, and ways out of this machine.
FORBIDDEN = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
             "createContextualFragment", "DOMParser", "srcdoc", "http://", "https://", "@import",
             "url(", "WebSocket", "sendBeacon")  # fmt: skip


def exported(text: str) -> set[str]:
    named = re.findall(r"^export (?:async )?(?:function|const|class|let) (\w+)", text, re.M)
    listed = re.findall(r"^export \{([^}]*)\}", text, re.M)
    return {*named, *(name.split()[-1] for part in listed for name in part.split(",") if name)}


def test_there_are_files_to_look_at():
    assert len(SCRIPTS) > 10
    assert len(ROUTES) > 10


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_imports_is_there(name):
    paths = ["".join(found) for found in _IMPORT.findall(SCRIPTS[name])]
    assert [path for path in paths if path not in FILES] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_only_names_that_exist(name):
    for names, path in re.findall(r'^import \{([^}]*)\} from "([^"]+)"', SCRIPTS[name], re.M):
        wanted = {part.split()[0] for part in names.split(",") if part.strip()}
        assert wanted <= exported(SCRIPTS[path]), f"{name} from {path}"


def test_what_the_page_loads_is_there():
    assert [path for path in _LINK.findall(PAGE) if path not in FILES] == []


def test_every_stylesheet_is_loaded():
    assert [
        name for name in TEXTS if name.endswith(".css") and name not in _LINK.findall(PAGE)
    ] == []


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_route_has_a_page_with_a_title_and_something_to_show(route):
    assert route.page in SCRIPTS
    assert {"title", "show"} <= exported(SCRIPTS[route.page])


def test_every_script_is_used():
    used = {"".join(found) for text in SCRIPTS.values() for found in _IMPORT.findall(text)}
    used |= {route.page for route in ROUTES} | {"/main.js"}
    assert set(SCRIPTS) <= used


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_can_make_markup_of_text_or_reach_another_machine(name):
    text = TEXTS[name].replace(_NAMESPACE, "")
    assert [word for word in FORBIDDEN if word in text] == []


def test_the_page_has_no_script_or_style_of_its_own():
    assert not re.search(r"""\s(style|on\w+)\s*=""", PAGE)
    assert "<style" not in PAGE
    assert re.findall(r"<script[^>]*>([^<]*)</script>", PAGE) == [""]


def test_no_script_sets_a_style_or_an_event_by_an_attribute():
    found = re.compile(r"""setAttribute\(\s*["'](style|on\w+)["']""")
    assert [name for name, text in SCRIPTS.items() if found.search(text)] == []
