"""Text that wants to be more than text, in every field that is stored, on every view there is."""

from __future__ import annotations

import json
import time
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import yester
from tests.browser.views import COUNTING, VIEWS, address, opened
from tests.distilling import Story
from yester.ingest.prepare import prepare_item
from yester.model import (
    Change,
    Event,
    Injection,
    Item,
    Memo,
    Project,
    Session,
    Skipped,
    Spend,
    ToolCall,
    replace,
)
from yester.project import Projects

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10", "OPS-03")]
MARK = "<img src=x onerror="
HOSTILE = {
    "image": f"{MARK}window.owned=1> and words",
    "script": '</script><script src="//evil.example/x.js">window.owned=2</script><!--',
    "address": "javascript:window.owned=3//https://evil.example/",
    "svg": "<svg onload=window.owned=4><style>*{display:none}</style><a href=javascript:1>x</a>",
    "bidi": "\u202egnp.exe\u2066\u200b\u200d\u2028\u0007 turned around",
    "long": "W" * 10_000,
    "emoji": "🧨👩‍👩‍👧‍👦 שלום עולם مرحبا بالعالم 你好",
    "template": "${window.owned=5} {{7*7}} `window.owned=6` %s %d \\u003cimg\\u003e &lt;b&gt;",
    "style": "} * { display: none !important } /* url(https://evil.example/a.png) expression(1)",
    "quotes": "\"'><input autofocus onfocus=window.owned=7><iframe src=//evil.example>",
    "spaces": "   ",
    "markdown": f"# {MARK}window.owned=9>\n\n| <b>a</b> | [x](javascript:window.owned=10) |\n"
    "|---|---|\n| ![p](https://evil.example/p.png) | <style>* {}</style> |\n\n"
    "- > <script>window.owned=11</script>\n\n```js\nfetch('//evil.example/c')</script>"
    "<img src=//evil.example/d>\n```\n" + "> " * 400 + "deep",
    "links": "[a](data:text/html,<script>window.owned=12</script>) [b](vbscript:1)"
    " [c](//evil.example/e) [d](\tjavascript:1) <javascript:1> https://evil.example/h_'><img src=x>"
    ' [e](https://evil.example/"onmouseover="window.owned=13)'
    " [![f](https://evil.example/f.png)](https://evil.example/g)",
    "diff": f"*** Begin Patch\n*** Update File: {MARK}window.owned=14>\n@@ <svg onload=1>\n"
    "-<script>window.owned=16</script>\n+[x](javascript:window.owned=17)\n```diff\n"
    "+<img src=//evil.example/i>",
}
# Each text in every place that markdown has.
FORMATS = """# §

- § [§](§) ![§](§) [§](https://evil.example/§) <https://evil.example/§> `§` **§** *§* ~~§~~
  1. [ ] §

> §

| § | § |
|---|--:|
| § | [§](§) |

```§
§
```

```html
§
```

```diff
-§
+§
```
"""
UNNAMEABLE = ("address", "long", "markdown")
SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A project, a session, and an item of each kind for each text, which is in all their fields;
    number n of each belongs to the n-th text. The image is the newest, so that it is in sight."""
    path, now = tmp_path_factory.mktemp("hostile") / "memory", int(time.time() * 1000)
    with yester.open(path) as memory, memory.store.transaction("memories"):
        for number, text in enumerate(HOSTILE.values()):
            _fill(memory.store, number, text, now - number * 60_000)
        _write_lines(memory.store, path.parent / "written", now - 3_600_000)
    lists = json.dumps(
        [text for text in HOSTILE.values() if "\u2028" not in text], ensure_ascii=False
    )
    (path / "config.toml").write_text(f"exclude = {lists}\n", "utf-8")
    (path / "config.toml").chmod(0o600)
    open_to_all = path / f"{MARK}window.owned=8>"  # the doctor names it
    open_to_all.touch()
    open_to_all.chmod(0o666)
    return path


def _fill(store, number, text, now):
    key = f"dir:/{number}/{text}"
    store.put_project(Project(key, text, f"/{text}", text))
    session = store.put_session(
        Session(
            f"session-{number}", text, key, now - 5_000, now, f"/{text}", text, text, text, 1, 4
        )
    )

    def item(kind, **more):
        return Item(
            f"{kind}-{number}", kind, key, f"session-{number}", text, text, text, epoch=now,
            title=text, subtitle=text, body=f"{text}\n{text}", facts=(text, text),
            concepts=(text,), tags=(text,), files_read=(text,), files_modified=(f"src/{text}",),
            discovery_tokens=100, **more,
        )  # fmt: skip

    both, size = f"{text}\n\n{text}", len(text)
    spans = ((0, size), (size + 2, 2 * size + 2))
    old_new = ToolCall((("old_string", *spans[0]), ("new_string", *spans[1])))
    edit = replace(item("message", role="tool", tool="Edit"), ref=f"edit-{number}", call=old_new,
                   body=both)  # fmt: skip
    run = replace(edit, ref=f"run-{number}", tool="Bash", files_modified=(), tags=("error", text),
                  call=ToolCall((("command", *spans[0]),), spans[1], status=1))  # fmt: skip
    lines = "".join(f"{sign}{line}\n" for sign in "-+" for line in text.split("\n"))
    patch = f"*** Begin Patch\n*** Update File: src/{text}\n@@\n{lines}*** End Patch"
    patched = replace(edit, ref=f"patch-{number}", tool="apply_patch", body=patch,
                      call=ToolCall((("patch", 0, len(patch)),)))  # fmt: skip
    store.put([
        prepare_item(item("prompt", role="user", prompt_number=1)),
        prepare_item(patched),
        prepare_item(replace(edit, ref=f"formats-{number}", role="assistant", tool="", call=None,
                             files_modified=(), body=FORMATS.replace("§", text))),
        prepare_item(item("message", role="tool", tool=text)),
        prepare_item(edit),
        prepare_item(run),
        prepare_item(item("observation", type=text)),
        prepare_item(item("summary", sections=dict.fromkeys(SECTIONS, text))),
        prepare_item(item("note", type=text)),
    ])  # fmt: skip
    memo = Memo(
        item("memory", type="decision", origin="user"), f"slug-{number}", "path", text,
        {"decision": text, "rationale": [text, text], "context": text}, since=now, reason=text,
    )  # fmt: skip
    change = Change(0, now, text, "create", text, None, {"title": text, "text": text})
    id_ = store.put_memo(prepare_item(memo.item), memo, change)
    found = store.find_by_ref(f"observation-{number}")[0].id
    store.append([
        Injection(session, "UserPromptSubmit", one, 0.5, 20, now, text, 1) for one in (found, id_)
    ])  # fmt: skip
    store.append([Event(f"e{number}", text, now, session, tool=text, skipped=text, lag=5)])
    store.append([Skipped(text, reason, n) for reason, n in {text: 100 - number}.items()])
    store.append([Spend(now, text, text, 5, 5, 0.01, outcome=text)])


def _write_lines(store, folder, began):
    """A file on disk whose lines are the texts, beside the turn that wrote them."""
    lines = "".join(f"{one}\n" for text in HOSTILE.values() for one in text.splitlines())
    folder.mkdir()
    (folder / "lines.html").write_text(lines, "utf-8")
    project = Projects({}).by_folder(str(folder))
    store.put_project(project)
    story = Story("lines", project.key, began)
    story.prompt(HOSTILE["image"])
    story.replaces("lines.html", "", lines)
    store.put([prepare_item(one) for one in story.items])


@pytest.fixture
def watched(window, server):
    """What the browser does that it must not."""
    window.add_init_script(COUNTING)
    seen: list[str] = []
    own = f"http://{server.host}/"
    window.on(
        "request",
        lambda one: None if one.url.startswith((own, "data:")) else seen.append(f"asks {one.url}"),
    )
    window.on("dialog", lambda one: (seen.append(f"says {one.message}"), one.dismiss()))
    window.on("page", lambda page: seen.append(f"opens {page.url}") if len(window.pages) > 1 else 0)
    return seen


def numbers(server, place):
    """An item, a session and a memory whose fields hold the text at this place."""
    ids = {}
    with yester.open(server.home) as memory:
        for kind in ("observation", "summary", "message", "memory"):
            ids[kind] = memory.store.find_by_ref(f"{kind}-{place}")[0].id
    found = {
        one["session"]: one["db_id"] for one in server.get("/api/sessions", limit=100)["sessions"]
    }
    return ids, found[f"session-{place}"]


def file_address(server, place):
    """The page of the file that is named like the text, of the project that is."""
    with yester.open(server.home) as memory:
        found = memory.store.get([memory.store.find_by_ref(f"edit-{place}")[0].id])[0]
    named = {"project": found.project[:390], "path": found.files_modified[0][:3900]}
    return f"#/file?{urlencode(named)}"


def places(server, route):
    """The addresses at which a view shows the texts."""
    if route.path == "/file":
        # A name of many pages is no address, and one with // is stored as another.
        named = (place for place, one in enumerate(HOSTILE) if one not in UNNAMEABLE)
        return [(file_address(server, place), place) for place in named]
    if ":" not in route.path:
        shown = address(route)
        return [(shown + "?query=words", 0)] if route.path == "/search" else [(shown, 0)]
    found: list[tuple[str, int]] = []
    for place in range(len(HOSTILE)):
        ids, session = numbers(server, place)
        kinds = ("observation", "summary", "message") if route.path == "/item/:id" else ("memory",)
        found += [(address(route, ids[kind], session, ids["memory"]), place) for kind in kinds]
    return list(dict.fromkeys(found))


_UNFOLD = "document.querySelectorAll('main details').forEach((one) => { one.open = true })"
_STRANGE = """() => [...document.querySelectorAll(
    "img, iframe, object, embed, base, form[action], main script, main style, main input[onfocus]")]
  .concat([...document.querySelectorAll("a")].filter((one) => !/^#/.test(one.getAttribute("href"))
    && !(one.matches(".outside[target=_blank][rel*=noopener][rel*=noreferrer]")
         && /^(https?:|mailto:)/.test(one.getAttribute("href")))))
  .concat([...document.querySelectorAll("*")].filter((one) =>
    [...one.attributes].some(({ name }) => name.startsWith("on"))))
  .map((one) => one.cloneNode().outerHTML)"""
_WIDE = """() => [document.scrollingElement, document.querySelector("main")]
  .map((one) => one.scrollWidth - one.clientWidth)"""
_WIDEST = """() => [...document.querySelectorAll("main *")].filter((one) =>
    one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".wide, pre, .list"))
  .slice(0, 3).map((one) => `${one.tagName}.${one.className}`)"""


def harmless(page: Page, watched: list[str]) -> None:
    assert page.evaluate("window.owned") is None
    assert page.evaluate(_STRANGE) == []
    assert watched == []


def places_of_all_views(server):
    found = [place for route in VIEWS for place in places(server, route)]
    ids, session = numbers(server, 0)
    more = (
        "#/timeline?show=items", "#/shown?preview=1", "#/memories?new=1&status=all",
        f"#/memory/{ids['memory']}?edit=1", f"#/session/S{session}?find=words",
        f"#/session/S{session}?only=errors", "#/file?project=written&path=lines.html",
    )  # fmt: skip
    return found + [(place, 0) for place in more]


def test_hostile_text_stays_text_on_every_view(watched, viewer):
    for place, number in places_of_all_views(viewer.server):
        opened(viewer.page, place)
        viewer.page.evaluate(_UNFOLD)
        expect(viewer.page.get_by_role("heading", level=1)).to_have_count(1)
        harmless(viewer.page, watched)
        if number == 0 and place != "#/review":  # it may have nothing to say of them
            named = MARK if "edit=1" not in place else "Save"  # there the texts are in fields
            expect(viewer.page.locator("main")).to_contain_text(named)
    viewer.page.keyboard.press("Control+k")
    viewer.page.keyboard.type("owned")
    expect(viewer.page.get_by_role("option", name=MARK).first).to_be_visible()
    harmless(viewer.page, watched)


def test_hostile_text_makes_no_view_wider_than_a_phone(watched, viewer):
    viewer.page.set_viewport_size({"width": 400, "height": 800})
    for place, _ in places_of_all_views(viewer.server):
        opened(viewer.page, place)
        viewer.page.evaluate(_UNFOLD)
        assert max(viewer.page.evaluate(_WIDE)) <= 0, (place, viewer.page.evaluate(_WIDEST))


def test_hostile_text_that_comes_in_live_stays_text(watched, viewer):
    page = viewer.page
    expect(page.locator(".live")).to_have_text("live")
    with yester.open(viewer.server.home) as memory:
        memory.add(
            [{"ref": f"live-{name}", "kind": "observation", "title": f"{text} live", "text": text}
             for name, text in HOSTILE.items()], embed="later",
        )  # fmt: skip
    opened(page, "#/timeline?show=items")
    expect(page.get_by_text("window.owned=1> and words live").first).to_be_visible()
    harmless(page, watched)


def test_hostile_text_in_the_address_stays_text(watched, viewer):
    """What a link from elsewhere can bring."""
    for text in HOSTILE.values():
        quoted = viewer.page.evaluate("encodeURIComponent", text)
        for place in (f"#/search?query={quoted[:1500]}", f"#/timeline?project={quoted[:300]}",
                      f"#/stats?days={quoted[:300]}", f"#/projects?sort={quoted[:300]}",
                      f"#/file?project={quoted[:300]}&path={quoted[:300]}",
                      f"#/session/S1?find={quoted[:300]}&only={quoted[:300]}",
                      f"#/settings?show={quoted[:300]}", f"#/{quoted[:300]}"):  # fmt: skip
            viewer.page.evaluate("place => { location.hash = place }", place)
            expect(viewer.page.get_by_role("heading", level=1)).to_have_count(1)
            harmless(viewer.page, watched)
    viewer.complaints[:] = [one for one in viewer.complaints if "Failed to load" not in one]


@pytest.mark.requirement("DEL-04")
def test_what_turns_text_round_or_hides_in_it_is_shown_as_a_mark(viewer):
    ids, _ = numbers(viewer.server, [*HOSTILE].index("bidi"))
    viewer.to(f"/item/{ids['observation']}")
    expect(viewer.page.locator("main")).to_contain_text("⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+200B⟩")
    assert not viewer.page.evaluate("/[\\u200b\\u202e\\u2066]/.test(document.body.innerText)")
