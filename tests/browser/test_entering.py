"""Getting in: by a link that works once, and by nothing else."""

from __future__ import annotations

import os
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import yester
from tests.serving import NO_MODEL, at_once
from yester.faces.http.app import App
from yester.faces.http.guard import Slowdown
from yester.faces.http.login import Grants, Keys, load_token, new_code
from yester.faces.http.server import Server, open_socket
from yester.memory import Memory

pytestmark = [pytest.mark.browser, pytest.mark.requirement("DEL-10", "OPS-03")]
SECRET = "The walrus keeps the keys"


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "memory"
    with yester.open(path) as memory:
        now, said = time.time(), {"ref": "1", "project": "shop", "kind": "observation"}
        memory.add([said | {"type": "decision", "epoch": now, "title": SECRET}])
    return path


def link(server, code=None):
    return f"http://{server.host}/#code={code or new_code(server.home)}"


def entered(page: Page) -> None:
    expect(page.get_by_text(SECRET)).to_be_visible()


def locked(page: Page) -> None:
    expect(page.get_by_role("heading", name="Locked")).to_be_visible()
    expect(page.locator("main")).to_contain_text("yester ui")
    expect(page.get_by_text(SECRET)).to_have_count(0)


# --- the code -------------------------------------------------------------------------------------


def test_a_one_time_link_leads_in(window, server):
    page = window.new_page()
    page.goto(link(server))
    entered(page)


def test_without_a_link_nothing_is_shown_but_how_to_get_one(window, server):
    page = window.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://{server.host}/")
    locked(page)
    assert asked
    assert not [url for url in asked if "/api/" in url or url.endswith("/stream")]


def test_a_link_works_once(window, browser, server):
    code = new_code(server.home)
    page = window.new_page()
    page.goto(link(server, code))
    entered(page)
    other = browser.new_context()  # another profile: no tab there has a bearer
    late = other.new_page()
    late.goto(link(server, code))
    locked(late)
    expect(late.locator("main")).to_contain_text("used before")
    other.close()


def test_a_link_that_is_older_than_a_minute_is_refused(window, server):
    code = new_code(server.home)
    for path in (server.home / "run" / "codes").iterdir():
        os.utime(path, (time.time() - 90,) * 2)
    page = window.new_page()
    page.goto(link(server, code))
    locked(page)
    expect(page.locator("main")).to_contain_text("older than a minute")


def test_the_code_vanishes_from_the_address_and_the_history(window, server):
    page = window.new_page()
    page.goto("about:blank")
    page.goto(link(server))
    entered(page)
    assert page.url == f"http://{server.host}/#/"
    page.go_back()
    assert page.url == "about:blank"
    page.go_forward()
    entered(page)
    assert "code" not in page.url


def test_a_refused_code_vanishes_as_well(window, server):
    page = window.new_page()
    page.goto(link(server, "wrong"))
    locked(page)
    assert "wrong" not in page.url


def test_a_new_link_in_a_tab_that_is_locked_leads_in(window, server):
    page = window.new_page()
    page.goto(f"http://{server.host}/")
    locked(page)
    page.goto(link(server))  # the same page: only what is behind the # is different
    entered(page)
    assert "code" not in page.url


# --- the grant ------------------------------------------------------------------------------------

GRANT = "sessionStorage.getItem('yester.grant')"


def test_the_grant_is_kept_in_this_tab_alone_and_no_cookie_is_set(window, server):
    page = window.new_page()
    headers = []
    page.on("response", lambda response: headers.append(response.all_headers()))
    page.goto(link(server))
    entered(page)
    assert window.cookies() == []
    assert not [one for one in headers if "set-cookie" in one]
    grant = page.evaluate(GRANT)
    assert len(grant) > 60
    assert page.evaluate("sessionStorage.length") == 1
    assert grant not in page.evaluate("JSON.stringify({...localStorage}) + document.cookie")
    assert grant not in page.url
    assert page.evaluate("async () => (await caches.keys()).length") == 0
    assert page.evaluate("async () => (await indexedDB.databases()).length") == 0


def test_no_secret_is_ever_part_of_an_address(window, server):
    page = window.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link(server))
    entered(page)
    name, _, secret = page.evaluate(GRANT).partition(".")
    assert asked
    assert not [url for url in asked if secret in url or name in url]


def test_a_second_tab_gets_in_through_the_first_with_a_grant_of_its_own(window, server):
    first, second = window.new_page(), window.new_page()
    first.goto(link(server))
    entered(first)
    second.goto(f"http://{server.host}/")
    entered(second)
    assert first.evaluate(GRANT) != second.evaluate(GRANT)


def test_a_link_leads_back_to_the_view_that_was_asked_for_and_unlocks_the_tab_that_waits(
    window, server
):
    waiting = window.new_page()
    waiting.goto(f"http://{server.host}/#/projects?sort=name")
    locked(waiting)
    page = window.new_page()
    page.goto(link(server))
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
    assert page.url.endswith("#/projects?sort=name")
    expect(waiting.get_by_role("heading", name="Projects", level=1)).to_be_visible()


def test_a_tab_that_is_locked_in_settings_is_out_at_once(window, server):
    first, second = window.new_page(), window.new_page()
    first.goto(link(server))
    entered(first)
    second.goto(f"http://{server.host}/")
    entered(second)
    second.evaluate("location.hash = '#/settings'")
    second.get_by_role("button", name="Lock all other tabs").click()
    expect(second.get_by_role("button", name="Lock all other tabs")).to_have_count(0)
    first.bring_to_front()
    first.evaluate("location.hash = '#/projects'")
    locked(first)
    assert first.evaluate(GRANT) is None


def test_another_profile_gets_nothing(window, browser, server):
    page = window.new_page()
    page.goto(link(server))
    entered(page)
    other = browser.new_context()
    alone = other.new_page()
    alone.goto(f"http://{server.host}/")
    locked(alone)
    other.close()


def test_reloading_stays_in_and_on_the_same_view(window, server):
    page = window.new_page()
    page.goto(link(server))
    entered(page)
    page.evaluate("location.hash = '#/projects?sort=name'")
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
    assert page.url.endswith("#/projects?sort=name")


# --- the server goes away -------------------------------------------------------------------------


@contextmanager
def running(home: Path, keys: Keys, port: int = 0) -> Iterator[int]:
    """A server on this port; the keys are the caller's, so that they can outlive it."""
    failures: list[BaseException] = []
    sock = open_socket(port, exactly=bool(port))
    found = sock.getsockname()[1]
    app = App(
        Memory(home, NO_MODEL, who="http", ask_worker=None, recreates=False), keys, found,
        lambda _, error: failures.append(error),
        slowdown=Slowdown(sleep=at_once),
    )  # fmt: skip
    server = Server(app)
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    try:
        yield found
    finally:
        server.should_exit = True
        thread.join()
        app.end()
        assert not failures


def test_a_server_that_is_gone_is_said_and_comes_back_by_itself(window, home):
    keys = Keys(load_token(home), Grants(home))
    page = window.new_page()
    live = page.locator(".live")
    with running(home, keys) as port:
        page.goto(f"http://127.0.0.1:{port}/#code={new_code(home)}")
        entered(page)
        expect(live).to_have_text("live")
    expect(live).to_have_text("not connected")
    page.evaluate("location.hash = '#/projects'")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    expect(page.get_by_role("alert")).to_contain_text("yester ui")
    with running(home, keys, port):
        expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
        expect(live).to_have_text("live")
        with yester.open(home) as memory:
            memory.add([{"ref": "2", "kind": "observation", "title": "After the pause"}])
        page.evaluate("location.hash = '#/timeline'")
        expect(page.get_by_text("After the pause")).to_be_visible()


def new_keys(home: Path) -> Keys:
    """Of a server that was started anew."""
    return Keys(load_token(home), Grants(home))


def test_a_tab_stays_unlocked_when_the_server_is_started_anew_and_after_a_reload(window, home):
    page = window.new_page()
    with running(home, new_keys(home)) as port:
        page.goto(f"http://127.0.0.1:{port}/#code={new_code(home)}")
        entered(page)
        expect(page.locator(".live")).to_have_text("live")
    expect(page.locator(".live")).to_have_text("not connected")
    with running(home, new_keys(home), port):
        page.evaluate("location.hash = '#/projects'")
        expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()
        expect(page.locator(".live")).to_have_text("live")
    with running(home, new_keys(home), port):
        page.reload()
        expect(page.get_by_role("heading", name="Projects", level=1)).to_be_visible()


class Stranger(BaseHTTPRequestHandler):
    """Another program on the viewer's port: it notes what it is sent and answers as it likes."""

    received: list[str]
    real = ""  # a server of ours elsewhere, whose answers it passes on

    def do_GET(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        self.received.append(f"{self.command} {self.path} {self.headers} {body.decode()}")
        answer = b'{"proof": "0", "token": "0"}'
        if self.real and self.path == "/api/login/prove":
            kind = {"Content-Type": "application/json"}
            asked = urllib.request.Request(self.real + self.path, body, kind)
            with urllib.request.urlopen(asked) as said:
                answer = said.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None: ...


def test_another_program_on_the_port_is_told_no_secret_even_if_it_passes_on_our_answers(
    window, home
):
    page = window.new_page()
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.headers.get("authorization", "")))
    with running(home, new_keys(home)) as port:
        page.goto(f"http://127.0.0.1:{port}/#code={new_code(home)}")
        entered(page)
        expect(page.locator(".live")).to_have_text("live")
    bearers = {one.removeprefix("Bearer ") for one in sent if one}
    secret = page.evaluate(GRANT).partition(".")[2]
    handler = type("Here", (Stranger,), {"received": []})
    with running(home, new_keys(home)) as elsewhere:
        handler.real = f"http://127.0.0.1:{elsewhere}"
        with ThreadingHTTPServer(("127.0.0.1", port), handler) as stranger:
            thread = threading.Thread(target=stranger.serve_forever)
            thread.start()
            page.evaluate("location.hash = '#/sessions'")
            expect(page.get_by_role("alert")).to_contain_text("Another program answers")
            page.get_by_role("button", name="Try again").click()
            expect(page.get_by_role("alert")).to_contain_text("Another program answers")
            stranger.shutdown()
            thread.join()
    received = "\n".join(handler.received)
    asked = {one.split()[1] for one in handler.received}  # no script, which would run in the page
    assert asked - {"/icon.svg"} == {"/api/login/prove"}
    assert "Authorization" not in received
    assert not [one for one in (secret, *bearers) if one in received]
    with running(home, new_keys(home), port):  # and it is let in by its own server as before
        expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()


# --- pages of others ------------------------------------------------------------------------------

_FOREIGN = """<!doctype html><meta charset=utf-8><title>waiting</title><body><script>
const server = new URLSearchParams(location.search).get("server"), got = [];
const channel = new BroadcastChannel("yester");
channel.onmessage = ({data}) => got.push("heard " + JSON.stringify(data));
channel.postMessage({want: true});
const read = (path, more) => fetch("http://" + server + path, more)
  .then(async (said) => said.type === "opaque" || got.push(path + await said.text()), () => {});
const frame = new Promise((done) => {
  const node = document.createElement("iframe");
  node.onload = () => {
    try { if (node.contentDocument?.URL.startsWith("http")) got.push("framed"); } catch {}
    done();
  };
  node.src = "http://" + server + "/";
  document.body.append(node);
});
const script = (path) => new Promise((done) => {
  const node = document.createElement("script");
  node.onload = () => (got.push("ran " + path), done());
  node.onerror = done;
  node.src = "http://" + server + path;
  document.body.append(node);
});
Promise.all([
  read("/health"), read("/api/stats"), read("/api/items"), read("/", {}), read("/stream"),
  read("/api/stats", {mode: "no-cors"}), read("/api/items", {credentials: "include"}),
  read("/api/memory/save", {method: "POST", mode: "no-cors", body: '{"text": "planted"}'}),
  script("/main.js"), script("/api/items"), frame,
]).then(() => { window.got = got; document.title = "done"; });
</script>"""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A page of another origin on the same machine."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(_FOREIGN.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        yield f"http://localhost:{other.server_address[1]}/"
        other.shutdown()
        thread.join()


def test_a_page_from_elsewhere_can_read_nothing_while_the_viewer_is_open(window, server, elsewhere):
    viewer = window.new_page()
    viewer.goto(link(server))
    entered(viewer)
    page = window.new_page()
    page.goto(f"{elsewhere}?server={server.host}")
    expect(page).to_have_title("done")
    assert page.evaluate("window.got") == []
    with yester.open(server.home) as memory:
        assert memory.recall("planted") == []


def test_a_link_from_elsewhere_opens_the_viewer_but_tells_it_nothing(window, server, elsewhere):
    viewer = window.new_page()
    viewer.goto(link(server))
    entered(viewer)
    page = window.new_page()
    page.goto(elsewhere)
    with page.expect_popup() as opened:
        page.evaluate("address => { window.other = open(address) }", f"http://{server.host}/")
    opened.value.wait_for_load_state()
    # Another opener policy: the two windows do not know each other.
    assert page.evaluate("window.other.closed")
    assert opened.value.evaluate("window.opener") is None


def test_another_name_for_this_machine_is_refused(window, server):
    """A name that an attacker lets lead here (DNS rebinding)."""
    page = window.new_page()
    answer = page.goto(f"http://yester.localhost:{server.port}/")
    assert answer is not None
    assert answer.status == 421
    assert not re.search("main.js", page.content())
