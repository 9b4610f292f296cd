"""One test for each rule of the door, with real requests on a real socket."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import re
import socket
import threading
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yester
from tests.serving import serving
from tests.table import each
from yester.faces.http.guard import LARGEST_BODY, Slowdown
from yester.faces.http.login import is_another_user, new_code
from yester.faces.http.table import ENDPOINTS
from yester.ingest.prepare import prepare_item
from yester.model import Injection, Item, Project, Session

pytestmark = pytest.mark.requirement("OPS-03")
HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\r\nX-Injected: yes\r\n\r\n"
    "<html>\u202e\u200b\x00\x1b[31m ${jndi:x} {{7*7}} ../../etc/passwd\u2028data: evil\n\n"
)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    home = tmp_path_factory.mktemp("door") / "memory"
    with yester.open(home) as memory:
        memory.add([{"ref": "1", "project": "shop", "title": "Times are UTC", "text": "UTC"}])
    with serving(home) as found:
        yield found
        assert found.failures == []


LOCKED = [one for one in ENDPOINTS if not one.open]


def filled(path):
    return path.replace("{id}", "1").replace("{session}", "S1")


# --- the token ------------------------------------------------------------------------------------


@each("one", LOCKED)
def test_without_the_token_nothing_is_answered(api, one):
    for token in (None, "x" * 43):
        said = api.ask(one.method, filled(one.path), token=token)
        assert said.status == 401, one.path
        assert said.headers["content-type"] == "application/problem+json"
        assert said.headers["www-authenticate"].startswith("Bearer")
        assert b"UTC" not in said.body


WRITING = [one for one in ENDPOINTS if one.has_body]


@each("one", WRITING)
def test_nothing_is_written_for_another_page_a_form_or_a_name_that_leads_here(api, one):
    body, bearer = (one.example or "{}").encode(), api.user()
    kind = {"Content-Type": "application/json"}
    for headers, status in (
        (kind | {"Origin": "https://evil.example"}, 403),
        (kind | {"Origin": "null"}, 403),
        (kind | {"Sec-Fetch-Site": "cross-site"}, 403),
        (kind | {"Host": f"evil.example:{api.port}"}, 421),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "text/plain"}, 415),
    ):
        said = api.ask(one.method, filled(one.path), headers, body, bearer)
        assert said.status == status, headers
    assert not (api.home / "config.toml").exists()
    assert api.get("/api/memories", status="all")["results"] == []


def test_what_does_not_exist_is_not_told_from_what_does_without_a_token(api):
    assert api.ask("GET", "/api/nothing", token=None).status == 401
    assert api.ask("GET", "/api/nothing").status == 404


@each(
    "header",
    ["Bearer", "Bearer ", "Basic {}", "{}", "Bearer {} x", "Bearer x{}", "bearer\t{}"],
)
def test_a_token_in_another_form_is_no_token(api, header):
    said = api.ask("GET", "/api/projects", {"Authorization": header.format(api.token)})
    assert said.status == 401


def test_a_token_in_the_address_is_no_token(api):
    said = api.ask("GET", f"/api/projects?token={api.token}", token=None)
    assert said.status == 401


def test_two_tokens_are_none(api):
    head = f"GET /api/projects HTTP/1.1\r\nHost: {api.host}\r\nConnection: close\r\n"
    twice = head + f"Authorization: Bearer {api.token}\r\n" * 2 + "\r\n"
    assert api.raw(twice.encode()).startswith(b"HTTP/1.1 401")


def test_health_and_the_files_of_the_viewer_need_none_and_tell_nothing(api):
    health = api.ask("GET", "/health", token=None)
    assert (health.status, health.json) == (200, {"status": "ok", "version": yester.__version__})
    page = api.ask("GET", "/", token=None)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert api.ask("HEAD", "/", token=None).body == b""


def test_wrong_tokens_are_answered_later_and_later_and_right_ones_never(tmp_path):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    with serving(tmp_path / "memory", slowdown=Slowdown(lambda: 0.0, sleep)) as api:
        for _ in range(12):
            assert api.ask("GET", "/api/projects", token="wrong").status == 401
        assert waited == sorted(waited)
        assert waited[0] == 0.0
        assert waited[-1] > 1.0
        assert api.ask("GET", "/api/projects").status == 200
        assert len(waited) == 12


def test_a_flood_of_wrong_tokens_does_not_pile_up(tmp_path):
    held = threading.Event()

    async def sleep(_):
        import asyncio

        await asyncio.to_thread(held.wait, 30)

    slowdown = Slowdown(lambda: 0.0, sleep)
    with serving(tmp_path / "memory", slowdown=slowdown) as api:
        slowdown.waiting = 50
        said = api.ask("GET", "/api/projects", token="wrong")
        assert (said.status, said.headers["retry-after"]) == (429, "10")
        assert api.ask("GET", "/api/projects").status == 200
        held.set()


@given(st.lists(st.floats(0, 3), max_size=30))
@settings(max_examples=20)
def test_the_delay_grows_with_failures_and_is_forgotten_with_time(pauses):
    level = 0.0
    for pause in pauses:
        level = max(0.0, level - pause) + 1
        assert 0 <= Slowdown.delay_for(level) <= 5.0
        assert Slowdown.delay_for(level) <= Slowdown.delay_for(level + 1)
    assert Slowdown.delay_for(5) == 0.0


# --- Host, Origin ---------------------------------------------------------------------------------


@each("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_this_server_is_asked_by_its_own_names(api, name):
    said = api.ask("GET", "/api/projects", {"Host": f"{name}:{api.port}"})
    assert said.status == 200


@each(
    "host",
    ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{}",
     "localhost.:{}", "0.0.0.0:{}", "127.0.0.1:{}@evil.example", "127.0.0.1:{}, evil", ""],
)  # fmt: skip
@each("path", ["/api/projects", "/health", "/"])
def test_a_name_that_only_leads_here_is_refused(api, host, path):
    """DNS rebinding: a page's own host name is made to point to this machine."""
    said = api.ask("GET", path, {"Host": host.format(api.port)})
    assert said.status == 421
    assert said.json["parameter"] == "Host"


def test_without_a_host_or_with_two_nothing_is_answered(api):
    assert api.raw(b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421")
    twice = f"GET /health HTTP/1.1\r\nHost: {api.host}\r\nHost: evil\r\n\r\n"
    assert api.raw(twice.encode()).split()[1] in (b"400", b"421")


def test_an_address_in_the_request_line_changes_nothing(api):
    head = f"GET http://evil.example/health HTTP/1.1\r\nHost: {api.host}\r\nConnection: close\r\n"
    assert api.raw((head + "\r\n").encode()).startswith(b"HTTP/1.1 401")


@each(
    "origin",
    ["null", "http://evil.example", "https://127.0.0.1:{}", "http://127.0.0.1", "http://localhost",
     "http://127.0.0.1:1", "file://", "chrome-extension://x", "http://127.0.0.1:{}.evil", ""],
)  # fmt: skip
@each("path", ["/api/projects", "/health", "/stream", "/"])
def test_a_foreign_or_null_origin_is_refused(api, origin, path):
    said = api.ask("GET", path, {"Origin": origin.format(api.port)})
    assert said.status == 403
    assert said.json["parameter"] == "Origin"
    assert not [name for name in said.headers if name.startswith("access-control")]


def test_the_viewers_own_origin_may_ask(api):
    for name in ("127.0.0.1", "localhost", "[::1]"):
        own = {"Origin": f"http://{name}:{api.port}", "Sec-Fetch-Site": "same-origin"}
        assert api.ask("GET", "/api/projects", own).status == 200


@each("site", ["cross-site", "same-site", "nonsense"])
def test_what_another_page_makes_a_browser_send_is_refused(api, site):
    sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    for path in ("/api/projects", "/health", "/"):
        assert api.ask("GET", path, sent).status == 403
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert api.ask("GET", "/", link, token=None).status == 200  # a link may open the viewer
    assert api.ask("GET", "/api/projects", link).status == 403


def test_a_preflight_gets_no_permission(api):
    asks = {"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
    said = api.ask("OPTIONS", "/api/projects", asks, token=None)
    assert said.status == 403
    assert not [name for name in said.headers if name.startswith("access-control")]


# --- sizes, times, forms --------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_not_read(api):
    kind = {"Content-Type": "application/json"}
    said = api.ask("POST", "/api/memory/save", kind | {"Content-Length": str(LARGEST_BODY + 1)})
    assert said.status == 413
    head = (
        f"POST /api/memory/save HTTP/1.1\r\nHost: {api.host}\r\nAuthorization: Bearer {api.token}"
        "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", api.port), 30) as client:
        client.sendall(head)
        try:
            for _ in range(8):
                client.sendall(chunk)
        except OSError:  # it has hung up already
            pass
        assert client.recv(64).startswith(b"HTTP/1.1 413")


def test_a_body_must_be_json_and_say_so(api):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        said = api.ask("POST", "/api/memory/save", {"Content-Type": kind}, b'{"text": "x"}')
        assert said.status == 415
    for body in (b"{", b"[]", b"null", b'"x"', b"\xff", b'{"text": NaN}', b"[" * 100_000):
        said = api.ask("POST", "/api/memory/save", {"Content-Type": "application/json"}, body)
        assert said.status == 400, body[:20]
        assert said.json["fix"]


@pytest.mark.requirement("OPS-03")
def test_more_than_16_kb_of_headers_are_refused_however_they_come(api):
    said = api.ask("GET", "/api/stats", {"X-Long": "y" * 17_000})
    assert said.status in (400, 431)
    assert api.ask("GET", "/api/stats", {"X-Long": "y" * 12_000}).status == 200


@pytest.mark.requirement("OPS-03")
def test_connections_without_a_token_are_dropped_and_who_has_one_is_not(api):
    """The oldest first, so any number of them keeps nobody out."""
    ours = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
    headers = {"Authorization": f"Bearer {api.token}"}
    with ExitStack() as opened:
        opened.callback(ours.close)
        ours.request("GET", "/api/stats", headers=headers)
        assert ours.getresponse().read()
        idle = [
            opened.enter_context(socket.create_connection(("127.0.0.1", api.port), 30))
            for _ in range(260)
        ]
        assert idle[0].recv(1) == b""
        ours.request("GET", "/api/stats", headers=headers)
        assert ours.getresponse().status == 200
        assert api.ask("GET", "/api/stats").status == 200


def test_a_head_without_end_is_not_kept(api):
    long = b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X-Long: " + b"y" * 70_000
    assert api.raw(long).startswith(b"HTTP/1.1 400")


@each("data", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n"])
def test_what_is_not_http_gets_a_problem_and_is_dropped(api, data):
    said = api.raw(data)
    assert said.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in said


def test_a_websocket_is_not_opened(api):
    head = (
        f"GET /stream HTTP/1.1\r\nHost: {api.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert api.raw(head.encode()).startswith(b"HTTP/1.1 401")


@each(
    "path",
    ["/../token", "/..%2ftoken", "/%2e%2e/token", "/%2e%2e%2f%2e%2e%2ftoken", "//token", "/./token",
     "/static/../../token", "/..\\token", "/%5c..%5ctoken", "/index.html/../../../token",
     "/%00", "/index.html%00.js", "/C:/windows/win.ini", "/etc/passwd", "/file:///etc/passwd"],
)  # fmt: skip
def test_no_path_leads_out_of_the_viewers_folder(api, path):
    for token in (None, ""):
        said = api.ask("GET", path, token=token)
        assert said.status in (401, 404)
        assert api.token.encode() not in said.body


def test_links_and_hidden_files_in_the_viewers_folder_are_not_served(tmp_path):
    folder = tmp_path / "viewer"
    (folder / "sub").mkdir(parents=True)
    (folder / "index.html").write_text("<p>hello")
    (folder / "sub" / "a.js").write_text("1")
    (folder / ".secret").write_text("secret")
    (folder / "link.txt").symlink_to("/etc/passwd")
    with serving(tmp_path / "memory", folder=folder) as api:
        assert (
            api.ask("GET", "/sub/a.js", token=None)
            .headers["content-type"]
            .startswith("text/javascript")
        )
        for path in ("/.secret", "/link.txt", "/sub", "/sub/"):
            assert api.ask("GET", path).status == 404
        assert api.ask("POST", "/index.html", token="").status == 405


# --- answers --------------------------------------------------------------------------------------


def test_a_page_may_load_only_what_is_ours_and_no_inline_script(api):
    policy = api.ask("GET", "/", token=None).headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    page = api.ask("GET", "/", token=None).body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+\s*=|javascript:|\bstyle\s*=", page)


@each("path", ["/health", "/", "/api/projects", "/api/nothing"])
def test_every_answer_tells_browsers_to_keep_their_hands_off(api, path):
    headers = api.ask("GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert "set-cookie" not in headers
    assert "server" not in headers


@each("method", ["PUT", "DELETE", "TRACE", "PATCH", "POST", "OPTIONS"])
def test_a_method_that_is_not_there_names_those_that_are(api, method):
    said = api.ask(method, "/api/facets")
    assert said.status == 405
    assert said.headers["allow"] == "GET"


@each(
    "where", ["/api/search?query={}", "/api/{}", "/api/search?{}=1", "/api/sessions/{}",
              "/api/timeline?anchor={}", "/api/search?project={}", "/api/search?limit={}"]
)  # fmt: skip
def test_nothing_that_is_asked_gets_into_the_headers_of_an_answer(api, where):
    evil = "x%0d%0aX-Injected:%20yes%0d%0a%0d%0a%3Cscript%3E"
    said = api.ask("GET", where.format(evil))
    assert said.status in (200, 400, 404)
    assert "x-injected" not in said.headers
    assert said.headers["content-type"] in ("application/json", "application/problem+json")
    assert b"\r\nX-Injected" not in said.body


def test_hostile_text_in_every_field_stays_text(tmp_path):
    home = tmp_path / "memory"
    with yester.open(home) as memory:
        store, project = memory.store, Project(f"name:{HOSTILE}", HOSTILE)
        with store.transaction("items"):
            store.put_project(project)
            session = store.put_session(
                Session(HOSTILE, HOSTILE, project.key, 1, 2, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
            )
            for kind in ("observation", "summary", "memory", "prompt", "message", "note"):
                store.put([prepare_item(Item(
                    HOSTILE + kind, kind, project=project.key, session=HOSTILE, source=HOSTILE,
                    agent=HOSTILE, actor=HOSTILE, role=HOSTILE, epoch=2**60, type=HOSTILE,
                    title=HOSTILE, subtitle=HOSTILE, body=HOSTILE, facts=(HOSTILE,),
                    concepts=(HOSTILE,), tags=(HOSTILE,), files_read=(HOSTILE,),
                    files_modified=(HOSTILE,), sections={HOSTILE: HOSTILE, "learned": HOSTILE},
                    tool=HOSTILE,
                ))])  # fmt: skip
            store.append([
                Injection(session, HOSTILE, 1, 0.5, 1, 2**60, HOSTILE)
            ])  # fmt: skip
    with serving(home) as api:
        for one in ENDPOINTS:
            if one.method != "GET" or one.path == "/stream":
                continue
            path = filled(one.path)
            for query in ("", "?format=full", "?query=alert&format=full&explain=true"):
                said = api.ask("GET", path + query)
                assert said.status in (200, 400, 404), (path, query, said.body)
                assert said.headers["content-type"].split(";")[0] in (
                    "application/json", "application/problem+json", "text/plain",
                )  # fmt: skip
                assert "x-injected" not in said.headers
                if "json" in said.headers["content-type"]:
                    json.loads(said.body)
        assert api.failures == []


def test_a_failure_inside_shows_nothing_of_the_inside(tmp_path):
    home = tmp_path / "memory"
    with yester.open(home) as memory:
        memory.add([{"ref": "1", "text": "walrus"}])
    with serving(home) as api:
        api.get("/api/stats")
        import apsw

        db = apsw.Connection(str(home / "yester.db"))
        db.execute("ALTER TABLE session RENAME TO gone")
        db.close()
        said = api.ask("GET", "/api/sessions")
        assert said.status == 500
        assert b"Traceback" not in said.body
        assert b".py" not in said.body
        assert said.json["fix"] == "run: yester doctor"


def test_a_fault_of_ours_is_logged_by_its_place_and_answered_without_it(tmp_path):
    async def broken(_):
        raise ZeroDivisionError("something nobody has thought of")

    with serving(tmp_path / "memory", slowdown=Slowdown(sleep=broken)) as api:
        said = api.ask("GET", "/api/sessions", token="wrong")
        assert said.status == 500
        assert b"thought" not in said.body
        assert [type(error) for error in api.failures] == [ZeroDivisionError]


# --- logging in -----------------------------------------------------------------------------------


def test_a_code_opens_once_and_what_it_gives_is_not_the_token(api):
    code = new_code(api.home)
    own = {"Origin": f"http://127.0.0.1:{api.port}", "Content-Type": "application/json"}
    said = api.ask("POST", "/api/login", own, json.dumps({"code": code}).encode(), token=None)
    assert said.status == 200
    bearer = said.json["token"]
    assert bearer not in (api.token, code)
    assert "set-cookie" not in said.headers
    assert api.ask("GET", "/api/projects", token=bearer).status == 200
    again = api.ask("POST", "/api/login", own, json.dumps({"code": code}).encode(), token=None)
    assert again.status == 401
    for wrong in ("x", "../token", code[:-1]):
        sent = json.dumps({"code": wrong}).encode()
        assert api.ask("POST", "/api/login", own, sent, token=None).status == 401
    foreign = own | {"Origin": "http://evil.example"}
    assert api.ask("POST", "/api/login", foreign, b"{}", token=None).status == 403


def test_a_grant_is_proved_before_it_is_sent_and_then_worth_a_bearer(api):
    """A program's token makes a program's grant; locking tabs is the user's."""
    bearer, own = api.user(), {"Content-Type": "application/json"}
    grant = api.send("/api/grants", {"browser": "here"}, token=bearer).json["grant"]
    name = grant.partition(".")[0]
    asked = json.dumps({"grant": name, "nonce": "n" * 20}).encode()
    proof = api.ask("POST", "/api/login/prove", own, asked, token=None).json["proof"]
    key = hashlib.sha256(grant.partition(".")[2].encode()).digest()
    assert proof == hmac.digest(key, f"{api.host}\n{'n' * 20}".encode(), "sha256").hex()
    other = json.dumps({"grant": "0" * 24, "nonce": "n" * 20}).encode()
    assert api.ask("POST", "/api/login/prove", own, other, token=None).status == 401
    sent = json.dumps({"grant": grant}).encode()
    mine = api.ask("POST", "/api/login", own, sent, token=None).json["token"]
    assert [one["name"] for one in api.get("/api/grants")["grants"]] == [name]
    assert api.ask("GET", "/api/projects", token=mine).status == 200
    assert api.send("/api/grants/revoke", {"names": [name]}).status == 403
    assert api.send("/api/grants/revoke", {"names": [name]}, token=mine).json == {"revoked": 1}
    assert api.ask("GET", "/api/projects", token=mine).status == 401
    assert api.ask("POST", "/api/login", own, sent, token=None).status == 401


def test_a_code_brought_by_another_user_of_the_machine_is_seen(tmp_path):
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        own = client.getsockname()
        assert is_another_user(own) is False
        table = tmp_path / "tcp"
        numbers = "01 00000000:00000000 00:00000000 00000000"
        table.write_text(
            "  sl  local_address rem_address st queues tr retrnsmt uid\n"
            f"   1: 0100007F:{own[1]:04X} 0100007F:0050 {numbers} 4242 0 1 1\n"
        )
        assert is_another_user(own, table) is True
    assert is_another_user(None) is False
    assert is_another_user(("127.0.0.1", 1), tmp_path / "none") is False


# --- garbage --------------------------------------------------------------------------------------

_word = st.text(st.characters(codec="utf-8"), max_size=20)
_known = [name for one in ENDPOINTS for name in one.other_parameters]


@given(
    one=st.sampled_from([e for e in ENDPOINTS if e.path != "/stream"]),
    query=st.dictionaries(st.sampled_from(_known) | _word, _word, max_size=4),
    at=st.from_regex(r"[A-Za-z0-9_.~%-]{1,12}", fullmatch=True),
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | _word,
        lambda part: (
            st.lists(part, max_size=3)
            | st.dictionaries(st.sampled_from(_known) | _word, part, max_size=4)
        ),
        max_leaves=6,
    ),
)
def test_garbage_never_breaks_anything(api, one, query, at, body):
    from urllib.parse import urlencode

    path = re.sub(r"\{\w+\}", at, one.path)
    if one.has_body:
        sent = json.dumps(body, allow_nan=True).encode()
        said = api.ask(one.method, path, {"Content-Type": "application/json"}, sent)
    else:
        said = api.ask(one.method, path + "?" + urlencode(query))
    assert said.status < 500, said.body
    if said.status >= 400:
        problem = said.json
        assert problem["status"] == said.status
        assert problem["detail"]
