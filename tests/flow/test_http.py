"""The HTTP API: what the endpoints take and answer, over a real socket."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager

import apsw
import msgspec
import pytest

import yester
from tests.redaction import list_examples
from tests.serving import Serving, serving
from tests.stores import with_store
from tests.table import each
from yester.ingest.prepare import prepare_item
from yester.model import Feedback, Injection, Item, Project, Session
from yester.redact import load_rules

DAY = 86_400_000
NOON = 1_772_366_400_000  # 2026-03-01T12:00:00Z
SHOP, BAKERY = Project("name:shop", "shop"), Project("name:bakery", "bakery")


def item(ref, body, **more):
    more.setdefault("kind", "observation")
    more.setdefault("project", SHOP.key)
    more.setdefault("agent", "claude-code")
    more.setdefault("epoch", NOON)
    return Item(ref, body=body, **more)


ITEMS = [
    item("1", "Orders keep UTC; the viewer converts.", type="decision", title="Times are UTC",
         subtitle="one zone in the database", concepts=("pattern", "trade-off"), session="aaaaaa-1",
         facts=("orders.created is UTC",), files_read=("src/time.py",),
         files_modified=("src/orders.py",), discovery_tokens=900, epoch=NOON - 3 * DAY),
    item("2", "The webhook was retried without an idempotency key.", type="bugfix",
         title="Webhooks no longer charge twice", concepts=("gotcha",), session="aaaaaa-1",
         files_modified=("src/webhook.py",), epoch=NOON - 2 * DAY),
    item("3", "Retry the webhook at most five times.", kind="prompt", role="user", origin="user",
         session="aaaaaa-1", prompt_number=1, epoch=NOON - 2 * DAY - 60_000),
    item("4", "Worked on the webhook.", kind="summary", type="session_summary", session="aaaaaa-1",
         sections={"request": "stop double charges", "completed": "a key for each call",
                   "learned": "the provider retries by itself", "next_steps": "measure it"},
         files_read=("src/webhook.py",), files_modified=("src/keys.py",), epoch=NOON - DAY),
    item("5", "The oven is preheated by a timer.", type="feature", title="Oven timer",
         project=BAKERY.key, session="bbbbbb-2", tool="Edit", role="tool", epoch=NOON),
    item("6", "Use British spelling.", kind="memory", type="preference", title="Spelling",
         origin="user", epoch=NOON + 1_000),
]  # fmt: skip


def filled(home):
    with yester.open(with_store(home)) as memory:
        store = memory.store
        with store.transaction("items"):
            for project in (SHOP, BAKERY):
                store.put_project(project)
            first = store.put_session(
                Session("aaaaaa-1", "claude-code", SHOP.key, NOON - 3 * DAY, NOON - DAY,
                        title="Webhooks", branch="main", cwd="/home/sam/code/shop")
            )  # fmt: skip
            store.put_session(Session("bbbbbb-2", "claude-code", BAKERY.key, NOON, NOON))
            store.put([prepare_item(one) for one in ITEMS])
        ids = {ref: store.find_by_ref(ref)[0].id for ref in "123456"}
        with store.transaction("items"):
            store.append([
                Injection(first, "SessionStart", ids["1"], 0.5, 12, NOON, "timeline"),
                Injection(first, "UserPromptSubmit", ids["2"], 0.7, 20, NOON + 1, "fits", 1),
            ])  # fmt: skip
            store.append([Feedback(ids["2"], "acted", NOON, first)])
    return ids


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with _served(tmp_path_factory.mktemp("api") / "memory") as found:
        yield found


@pytest.fixture
def unread(tmp_path):
    """The same, of which nobody has asked for anything yet."""
    with _served(tmp_path / "memory") as found:
        yield found


@contextmanager
def _served(home):
    ids = filled(home)
    with serving(home) as found:
        found.ids = ids
        yield found
        assert found.failures == []


def refs(api: Serving, rows):
    names = {id_: ref for ref, id_ in api.ids.items()}
    return [names[row["id"]] for row in rows]


# --- searching ------------------------------------------------------------------------------------


@pytest.mark.requirement("DEL-07", "DEL-05", "REC-09")
def test_a_search_answers_with_an_index_of_at_most_twenty(api):
    found = api.get("/api/search/observations", query="webhook")
    assert found["format"] == "index"
    assert found["query"] == "webhook"
    assert found["count"] == len(found["results"]) == 1
    (row,) = found["results"]
    assert row["id"] == api.ids["2"]
    assert (row["type"], row["project"], row["kind"]) == ("bugfix", "shop", "observation")
    assert row["title"] == "Webhooks no longer charge twice"
    assert row["created_at_epoch"] == NOON - 2 * DAY
    assert row["date"] == "2026-02-27"
    assert row["icon"] == "✔"
    assert 0 < row["score"] <= 1
    assert row["tokens"] > 0
    assert "narrative" not in row


@pytest.mark.requirement("DEL-05")
def test_a_row_of_the_index_costs_about_75_tokens(tmp_path):
    with yester.open(with_store(tmp_path / "memory")) as memory:
        memory.add([
            {"ref": str(n), "project": "a-service-with-a-name", "type": "refactor",
             "title": f"Changed the {n}. " * (n % 5), "subtitle": "Why it was. " * (n % 7),
             "text": f"A long story about {n}, {n * 37}, {n * 91}. " * 400,
             "concepts": ["how-it-works", "what-changed"]}
            for n in range(20)
        ])  # fmt: skip
    with serving(tmp_path / "memory") as api:
        rows = api.get("/api/search", query="story", limit=20)["results"]
        sizes = [len(msgspec.json.encode(row).decode()) / 4 for row in rows]
        assert len(sizes) == 20
        assert 60 <= sum(sizes) / 20 <= 90
        assert max(sizes) <= 100
        assert all(row["tokens"] > 1_000 for row in rows)


@pytest.mark.requirement("DEL-07", "DEL-11")
def test_the_full_form_has_everything(api):
    found = api.get("/api/search/observations", query="UTC", format="full", limit=1)
    (row,) = found["results"]
    assert row["narrative"] == "Orders keep UTC; the viewer converts."
    assert row["facts"] == ["orders.created is UTC"]
    assert row["files_read"] == ["src/time.py"]
    assert row["files_modified"] == ["src/orders.py"]
    assert sorted(row["files"]) == ["src/orders.py", "src/time.py"]
    assert row["concepts"] == ["pattern", "trade-off"]
    assert row["session"] == "aaaaaa-1"
    assert row["created_at_iso"] == "2026-02-26T12:00:00Z"
    assert row["discovery_tokens"] == 900
    assert 0 < row["read_tokens"] < 900
    assert api.get(f"/api/sessions/S{row['session_db_id']}")["session"]["session"] == "aaaaaa-1"


@pytest.mark.requirement("REC-09", "DEL-07")
@each(
    ("query", "expected"),
    [
        ({"project": "bakery"}, ["5"]),
        ({"project": BAKERY.key}, ["5"]),
        ({"kinds": "prompt,summary"}, ["4", "3"]),
        ({"obs_type": "bugfix,feature"}, ["5", "2"]),
        ({"concepts": "gotcha,pattern"}, ["2", "1"]),
        ({"files": "orders.py"}, ["1"]),
        ({"session": "aaaaaa"}, ["4", "2", "3", "1"]),
        ({"tool": "Edit"}, ["5"]),
        ({"agent": "codex"}, []),
        ({"type": "prompts"}, ["3"]),
        ({"type": "observations"}, ["6", "5", "2", "1"]),
        ({"dateStart": "2026-02-27", "dateEnd": "2026-02-28"}, ["4", "2", "3"]),
        ({"dateRange": '{"start": "2026-02-27", "end": "2026-02-28"}'}, ["4", "2", "3"]),
        ({"dateRange[start]": "2026-02-27", "dateRange[end]": "2026-02-28"}, ["4", "2", "3"]),
        ({"dateRange": json.dumps({"start": NOON})}, ["6", "5"]),
        ({"limit": 2}, ["6", "5"]),
        ({"limit": 2, "offset": 4}, ["3", "1"]),
        ({"orderBy": "date_asc", "limit": 1}, ["1"]),
    ],
)
def test_filters_alone_give_the_newest_first(api, query, expected):
    assert refs(api, api.get("/api/search", **query)["results"]) == expected


@pytest.mark.requirement("REC-09")
def test_filters_hold_before_ranking_and_more_says_that_there_is_more(api):
    found = api.get("/api/search", query="webhook", project="shop", limit=1)
    assert found["more"] is True
    everything = api.get("/api/search", query="webhook", project="shop")
    assert everything["more"] is False
    assert everything["results"][0]["id"] == found["results"][0]["id"]
    second = api.get("/api/search", query="webhook", project="shop", limit=1, offset=1)
    assert second["results"][0]["id"] == everything["results"][1]["id"]
    assert api.get("/api/search", query="webhook", project="bakery")["count"] == 0


@pytest.mark.requirement("REC-13", "DEL-07")
@each(
    ("path", "query", "expected", "said"),
    [
        ("by-type", {"type": "bugfix"}, ["2"], {"type": "bugfix"}),
        ("by-file", {"filePath": "shop/src/webhook.py"}, ["4", "2"], {}),
        ("by-file", {"filePath": "webhook.py", "query": "charge"}, ["2", "4"],
         {"filePath": "webhook.py"}),
        ("by-concept", {"concept": "gotcha"}, ["2"], {"concept": "gotcha"}),
        ("prompts", {"query": "webhook"}, ["3"], {"query": "webhook"}),
    ],
)  # fmt: skip
def test_items_are_found_by_type_file_and_concept(api, path, query, expected, said):
    found = api.get(f"/api/search/{path}", **query)
    assert refs(api, found["results"]) == expected
    assert said.items() <= found.items()


@pytest.mark.requirement("REC-16")
def test_a_score_is_explained_on_request(api):
    found = api.get("/api/search", query="webhook charge", limit=1, explain="true")
    (row,) = found["results"]
    assert sum(row["factors"].values()) == pytest.approx(row["score"], abs=0.001)
    assert row["factors"]["keyword"] <= found["explain"]["weights"]["keyword"]
    assert row["signs"]["matched"] == 1.0
    assert row["arms"] == ["words"]
    assert found["explain"]["arms"]["words"] >= 1
    assert {left["id"] for left in found["explain"]["cut"]}
    assert found["more"] is True
    assert "explain" not in api.get("/api/search", query="webhook")


@pytest.mark.requirement("DEL-07")
def test_sessions_are_found_by_what_was_said_and_tell_their_summary(api):
    (row,) = api.get("/api/search/sessions", query="idempotency", format="full")["results"]
    assert row["kind"] == "session"
    assert row["session"] == "aaaaaa-1"
    assert row["id"] == api.ids["4"]
    assert row["completion"] == row["completed"] == "a key for each call"
    assert row["learnings"] == row["learned"] == "the provider retries by itself"
    assert row["summary"]["files_edited"] == ["src/keys.py"]
    newest = api.get("/api/search", type="sessions")["results"]
    assert [one["session"] for one in newest] == ["bbbbbb-2", "aaaaaa-1"]
    assert all(one["id"] for one in newest)


@pytest.mark.requirement("DEL-07")
def test_messages_stand_in_for_observations_where_there_are_none(tmp_path):
    with yester.open(with_store(tmp_path / "memory")) as memory:
        memory.add([{"ref": "1", "kind": "message", "text": "the walrus sings"}])
    with serving(tmp_path / "memory") as api:
        found = api.get("/api/search/observations", query="walrus")
        assert found["results"][0]["kind"] == "message"
        assert "messages stand for observations" in found["note"]


# --- timelines ------------------------------------------------------------------------------------


@pytest.mark.requirement("REC-11", "DEL-07")
@each(
    ("query", "before", "anchor", "after"),
    [
        ({"anchor": "2"}, ["1", "3"], "2", ["4", "6"]),
        ({"anchor": "2", "depth_before": 1, "depth_after": 0}, ["3"], "2", []),
        ({"anchor": "Saaaaaa"}, [], "1", ["3", "2", "4", "6"]),
        ({"anchor": "latest"}, ["1", "3", "2", "4"], "6", []),
        ({"query": "idempotency"}, ["1", "3"], "2", ["4", "6"]),
        ({"anchor": "latest", "query": "webhook"}, ["1", "3", "2"], "4", ["6"]),
        ({"anchor": "2026-02-28T00:00:00Z", "project": "shop"}, ["1", "3", "2"], None, ["4", "6"]),
    ],
)
def test_a_timeline_shows_what_was_before_and_after(api, query, before, anchor, after):
    query = {name: str(api.ids[v]) if name == "anchor" and v in api.ids else v
             for name, v in query.items()}  # fmt: skip
    for path in ("/api/timeline", "/api/search/timeline"):
        found = api.get(path, **query)
        rows = found["timeline"]
        at = next(place for place, row in enumerate(rows) if row["type"] == "anchor")
        assert rows[at]["timestamp"] == found["anchor_timestamp"]
        own = [row for row in rows if row.get("anchor")]
        assert refs(api, own) == ([anchor] if anchor else [])
        assert refs(api, rows[:at]) == before
        assert refs(api, rows[at + 1 + len(own) :]) == after
        assert (found["depth_before"], found["depth_after"]) == (len(before), len(after))


@pytest.mark.requirement("REC-11")
def test_a_session_is_an_anchor_by_its_number_too(api):
    number = api.get("/api/sessions", project="shop")["sessions"][0]["db_id"]
    found = api.get("/api/timeline", anchor=f"S{number}")
    assert refs(api, [row for row in found["timeline"] if row.get("anchor")]) == ["1"]
    assert api.ask("GET", "/api/timeline?anchor=S999").status == 404


@pytest.mark.requirement("DEL-07", "REC-11")
def test_the_default_depth_is_ten_and_ten(tmp_path):
    with yester.open(with_store(tmp_path / "memory")) as memory:
        memory.add([{"ref": str(n), "text": f"step {n}", "epoch": n + 1} for n in range(30)])
    with serving(tmp_path / "memory") as api:
        found = api.get("/api/search/timeline-by-query", query='"step 15"')
        assert (found["depth_before"], found["depth_after"]) == (10, 10)


@pytest.mark.requirement("REC-12", "DEL-07")
@each("path", ["/api/search/recent-context", "/api/context/recent"])
def test_recent_context_tells_the_last_sessions(api, path):
    found = api.get(path)
    assert (found["limit"], found["project"]) == (3, "all")
    assert [one["session"]["project"] for one in found["sessions"]] == ["bakery", "shop"]
    bakery, shop = found["sessions"]
    assert bakery["summary"] is None
    assert refs(api, bakery["observations"]) == ["5"]
    assert shop["summary"]["completion"] == shop["summary"]["completed"] == "a key for each call"
    assert shop["summary"]["learnings"] == shop["summary"]["learned"]
    assert refs(api, shop["observations"]) == ["1", "2"]
    assert [s["session"]["project"] for s in api.get(path, project="shop")["sessions"]] == ["shop"]


# --- items, sessions, memories --------------------------------------------------------------------


@pytest.mark.requirement("DEL-07")
def test_items_are_fetched_whole_by_their_ids_in_one_call(api):
    wanted = [api.ids["2"], f"#{api.ids['1']}", 999]
    said = api.send("/api/observations/batch", {"ids": wanted})
    assert said.status == 200
    assert refs(api, said.json["results"]) == ["2", "1"]
    assert said.json["missing"] == [999]
    assert said.json["results"][1]["narrative"].startswith("Orders keep UTC")
    oldest = api.send("/api/observations/batch", {"ids": wanted, "orderBy": "date_asc"}).json
    assert refs(api, oldest["results"]) == ["1", "2"]
    assert api.send("/api/observations/batch", {"ids": [999]}).status == 404


@pytest.mark.requirement("DEL-07", "REC-18")
def test_an_item_says_what_is_known_of_its_use(api):
    found = api.get(f"/api/items/{api.ids['2']}")
    assert found["item"]["title"] == "Webhooks no longer charge twice"
    assert found["use"]["shown"] == 1
    assert found["use"]["feedback"]["acted"] == 1
    assert found["use"]["use"] > 0
    assert api.ask("GET", "/api/items/999").status == 404


def test_items_are_listed_by_what_they_are(api):
    found = api.get("/api/items", type="bugfix,decision", orderBy="date_asc", format="full")
    assert refs(api, found["results"]) == ["1", "2"]
    assert found["results"][0]["facts"]


@pytest.mark.requirement("DEL-07")
def test_a_session_is_read_page_by_page(api):
    first = api.get("/api/sessions/aaaaaa-1/transcript", limit=3)
    assert refs(api, first["results"]) == ["1", "3", "2"]
    assert first["more"] is True
    rest = api.get("/api/sessions/aaaaaa-1/transcript", limit=3, offset=3)
    assert refs(api, rest["results"]) == ["4"]
    assert rest["more"] is False
    assert rest["session"]["title"] == "Webhooks"
    asked = api.get("/api/sessions/Saaaaaa-1/transcript", kinds="prompt")
    assert [row["narrative"] for row in asked["results"]] == [
        "Retry the webhook at most five times."
    ]
    whole = api.get("/api/sessions/aaaaaa")
    assert (whole["shown"], whole["shown_tokens"]) == (2, 32)
    assert whole["summary"]["request"] == "stop double charges"


def test_sessions_are_listed_newest_first_within_a_time(api):
    assert [one["session"] for one in api.get("/api/sessions")["sessions"]] == [
        "bbbbbb-2", "aaaaaa-1",
    ]  # fmt: skip
    assert api.get("/api/sessions", dateStart="2026-03-01")["count"] == 1
    assert api.get("/api/sessions", limit=1)["more"] is True


def test_memories_are_listed_and_shown_and_nothing_else_is_one(api):
    found = api.get("/api/memories")
    assert refs(api, found["results"]) == ["6"]
    shown = api.get(f"/api/memories/{api.ids['6']}")["memory"]
    assert (shown["origin"], shown["status"]) == ("user", "active")
    assert api.ask("GET", f"/api/memories/{api.ids['1']}").status == 404


# --- context, ledger, numbers ---------------------------------------------------------------------


@pytest.mark.requirement("DEL-07")
def test_the_text_an_agent_would_get_is_plain_text(api):
    said = api.ask("GET", "/api/context/inject?project=shop")
    assert said.headers["content-type"].startswith("text/plain")
    text = said.body.decode()
    assert "Times are UTC" in text
    shown = api.get("/api/context/preview", project="shop")
    assert shown["text"] == text
    assert shown["tokens"] == (len(text.encode()) + 3) // 4
    assert {line["reason"] for line in shown["shown"]}
    newest = api.get("/api/context/preview")
    assert "bakery" in newest["text"]
    asked = api.get("/api/context/preview", project="shop", event="UserPromptSubmit",
                    prompt="why does the webhook charge customers twice, which key?")  # fmt: skip
    assert api.ids["2"] in {line["item"] for line in asked["shown"]}
    assert api.get("/api/injections")["count"] == 2  # nothing of it was written down


@pytest.mark.requirement("DEL-07", "DEL-11")
def test_the_ledger_says_what_was_shown_and_what_it_cost(unread):
    found = unread.get("/api/injections")
    newest, oldest = found["injections"]
    assert (newest["item"], oldest["item"]) == (unread.ids["2"], unread.ids["1"])
    assert newest["title"] == "Webhooks no longer charge twice"
    assert (newest["event"], newest["reason"]) == ("UserPromptSubmit", "fits")
    assert (oldest["tokens"], oldest["discovery_tokens"]) == (12, 900)
    assert newest["prompt"] == "Retry the webhook at most five times."
    assert (newest["used"], oldest["used"], oldest["prompt"]) == ("acted-on", "", "")
    assert "not what you save" in found["note"]
    page = unread.get("/api/injections", limit=1)
    assert page["next_before"] == newest["id"]
    assert unread.get("/api/injections", before=page["next_before"])["injections"] == [oldest]
    assert unread.get("/api/injections", item=unread.ids["1"])["injections"] == [oldest]
    assert unread.get("/api/injections", session="aaaaaa-1")["count"] == 2


@pytest.mark.requirement("DEL-11")
def test_the_numbers_are_there_for_whoever_draws_them(api):
    stats = api.get("/api/stats", days=3_650)
    assert stats["items"]["observation"] == 3
    assert (stats["projects"], stats["sessions"]) == (2, 2)
    assert stats["distilled"][0]["discovery_tokens"] == 900
    assert {row["event"]: row["tokens"] for row in stats["shown"]} == {
        "SessionStart": 12, "UserPromptSubmit": 20,
    }  # fmt: skip
    projects = {one["name"]: one for one in api.get("/api/projects")["projects"]}
    assert projects["shop"]["kinds"]["observation"] == 2
    assert (projects["shop"]["sessions"], projects["bakery"]["items"]) == (1, 1)
    facets = api.get("/api/facets")
    assert facets["types"]["bugfix"] == 1
    assert facets["concepts"]["gotcha"] == 1
    assert facets["agents"] == {"claude-code": 2}
    # Those of the hits, where something is looked for; by words, and by filters alone.
    for asked in ({"query": "oven timer"}, {"project": "bakery", "kinds": "observation"}):
        found, facets = api.get("/api/search", **asked), api.get("/api/facets", **asked)
        assert facets["total"] == found["count"] > 0
        assert facets["projects"] == {"bakery": found["count"]}
        assert sum(facets["kinds"].values()) == found["count"]
    spend = api.get("/api/spend")
    assert (spend["provider"], spend["spend"], spend["today"]["cost"]) == ("none", [], 0)


@pytest.mark.requirement("DEL-07")
def test_the_help_is_short_and_names_endpoints_that_exist(api):
    said = api.ask("GET", "/api/search/help")
    assert len(said.body) / 4 < 2_200
    document = api.get("/api/openapi.json")
    for operation in said.json["operations"]:
        method, path = operation["endpoint"].split()
        assert method.lower() in document["paths"][path]
    assert any("format=index" in step for step in said.json["workflow"])
    assert document["paths"]["/api/search"]["get"]["parameters"]


# --- writing --------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path):
    ids = filled(tmp_path / "memory")
    with serving(tmp_path / "memory") as found:
        found.ids = ids
        yield found
        assert found.failures == []


@pytest.mark.requirement("DEL-07", "CAP-10")
def test_a_memory_is_saved_once_and_without_its_secrets(own):
    secret = list_examples(load_rules()[0])[0].text
    told = {"text": f"The provider wants five retries; the key is {secret}", "project": "shop"}
    first = own.send("/api/memory/save", told)
    assert first.status == 200
    assert (first.json["success"], first.json["new"], first.json["project"]) == (True, True, "shop")
    again = own.send("/api/memory/save", told).json
    assert (again["id"], again["new"]) == (first.json["id"], False)
    found = own.get(f"/api/memories/{first.json['id']}")["memory"]
    assert secret not in json.dumps(found)
    assert found["origin"] == "agent"  # a program has sent it: never a word of the user
    assert own.get("/api/search", query="provider retries")["results"]
    everywhere = own.send("/api/memory/save", {"text": "Tests come first."}).json
    assert everywhere["project"] == "global"


@pytest.mark.requirement("CAP-14")
def test_nothing_is_saved_of_an_excluded_project(own):
    (own.home / "config.toml").write_text('exclude = ["payroll"]\n')
    said = own.send("/api/memory/save", {"text": "salaries", "project": "payroll"})
    assert said.status == 403
    assert said.json["parameter"] == "project"
    assert "payroll" not in own.get("/api/facets")["projects"]


@pytest.mark.requirement("REC-18")
def test_feedback_is_given_seen_and_taken_back(own):
    id_ = own.ids["1"]
    useful = own.send("/api/feedback", {"ids": [id_], "what": "useful"}).json["items"][0]
    assert useful["use"] > 0.5
    (line,) = own.get("/api/injections", item=id_)["injections"]
    assert line["used"] == "useful"
    useless = own.send("/api/feedback", {"ids": [id_], "what": "useless"}).json["items"][0]
    assert useless["feedback"] == {"useless": 1}
    own.send("/api/feedback", {"ids": [id_], "what": "opened"})
    assert [row["what"] for row in own.get("/api/feedback", item=id_)["feedback"]] == [
        "opened", "useless",
    ]  # fmt: skip
    left = own.send("/api/feedback", {"ids": [id_], "what": "undo"}).json["items"][0]
    assert left["feedback"] == {"opened": 1}
    assert own.send("/api/feedback", {"ids": [999], "what": "useful"}).status == 404
    own.send("/api/observations/batch", {"ids": [id_]})  # what was shown is fetched
    assert own.get("/api/feedback", item=id_)["feedback"][0]["what"] == "fetched"


@pytest.mark.requirement("OPS-03")
def test_settings_are_shown_and_only_harmless_ones_change(own):
    config = own.home / "config.toml"
    config.write_text(
        '# mine\nthinking = true  # for now\nembed.key = "hunter22hunter22"\n'
        'embed.url = "http://sam:hunter22hunter22@localhost/v1"\n\n[llm]\nkey = "sk-very-secret"\n'
    )
    shown = own.ask("GET", "/api/settings")
    assert b"hunter22" not in shown.body
    assert b"sk-very-secret" not in shown.body
    by_name = {one["name"]: one for one in shown.json["settings"]}
    assert by_name["embed.key"]["value"] == "(set, not shown)"
    assert by_name["embed.key"]["secret"] is True
    said = own.send("/api/settings", {"thinking": False, "backups_kept": 7}, "PATCH")
    assert said.status == 200
    after = {one["name"]: one for one in said.json["settings"]}
    assert (after["thinking"]["value"], after["backups_kept"]["value"]) == (False, 7)
    assert config.read_text().splitlines()[:2] == ["# mine", "thinking = false  # for now"]
    assert config.stat().st_mode & 0o777 == 0o600
    before = config.read_text()
    for name in (one for one, setting in by_name.items() if not setting["writable"]):
        assert own.send("/api/settings", {name: by_name[name]["value"]}, "PATCH").status == 403
    assert own.send("/api/settings", {"backups_kept": 0}, "PATCH").status == 400
    assert own.send("/api/settings", {"nonsense": 1}, "PATCH").status == 400
    assert config.read_text() == before


def test_a_restored_backup_is_served_at_once(own, tmp_path):
    other = tmp_path / "other"
    with yester.open(other) as memory:
        memory.add([{"ref": "new", "text": "quite another memory"}])
    own.get("/api/stats")
    (own.home / "yester.db").unlink()
    for end in ("-wal", "-shm"):
        (own.home / f"yester.db{end}").unlink(missing_ok=True)
    (other / "yester.db").rename(own.home / "yester.db")
    assert own.get("/api/search", query="another")["count"] == 1


@pytest.mark.requirement("STO-01")
def test_a_store_that_a_newer_yester_has_changed_meanwhile_is_refused_in_a_sentence(own):
    own.get("/api/stats")
    db = apsw.Connection(str(own.home / "yester.db"))
    db.execute("PRAGMA user_version = 9999")
    db.close()
    said = own.ask("GET", "/api/search?query=webhook")
    assert said.status == 500
    assert "has schema version 9999, this yester knows up to" in said.json["detail"]


def test_the_worker_is_asked_where_there_are_vectors_and_the_words_decide_without_it(tmp_path):
    from yester.recall.recall import Answer

    asked = []

    def worker(home, question, root):
        asked.append((home, question.query))
        return Answer([]) if question.query == "answered" else None

    home = tmp_path / "memory"
    ids = filled(home)
    with yester.open(home) as memory, memory.store.transaction("items"):
        memory.store.use_model("model")
        import numpy

        memory.store.put_vectors(ids["1"], "model", [numpy.ones(8, "float32")])
    (home / "config.toml").write_text('embedder = "http"\n')  # a model that cannot be loaded
    with serving(home, ask_worker=worker, environ={}) as api:
        assert api.get("/api/search", query="answered")["count"] == 0
        assert api.get("/api/search", query="webhook")["count"] == 3
        assert asked == [(home, "answered"), (home, "webhook")]
        api.get("/api/search")  # nothing is asked, so nobody is
        assert len(asked) == 2


@pytest.mark.requirement("DEL-07")
@each(
    ("prompt", "why"),
    [
        ("ok", "too short to look up"),
        ("/compact", "a slash command is not looked up"),
        ("quarterly zebra migration in the botanical garden", "nothing found"),
        ("why is the webhook called so often, and who pays for the oven",
         "unlikely to help: a chance of …, and 0.42 is wanted"),
    ],
)  # fmt: skip
def test_a_preview_without_a_text_says_why(api, prompt, why):
    asked = {"event": "UserPromptSubmit", "project": "shop", "prompt": prompt}
    found = api.get("/api/context/preview", **asked)
    assert (found["text"], re.sub(r"of 0\.\d+", "of …", found["why"])) == ("", why)


@pytest.mark.requirement("DEL-07")
def test_a_session_is_named_by_itself_and_has_its_number(own):
    title = "Webhooks " + "that are retried " * 12
    with yester.open(own.home) as memory, memory.store.transaction("items"):
        memory.store.put_session(
            Session("aaaaaa-1", "claude-code", SHOP.key, NOON, NOON, title=title.strip())
        )
    (row,) = own.get("/api/search/sessions", query="webhook")["results"]
    (full,) = own.get("/api/search/sessions", query="webhook", format="full")["results"]
    assert row["title"].endswith("…")
    assert full["title"] == title.strip()
    number = row["session_db_id"]
    assert own.get(f"/api/sessions/S{number}")["session"]["session"] == "aaaaaa-1"
    assert row["id"] == own.ids["4"]  # its summary


def test_a_home_that_is_gone_is_said_to_be_and_no_new_one_is_made(tmp_path):
    home = tmp_path / "memory"
    with _served(home) as api:
        assert api.get("/api/search", query="webhook")["count"]
        assert not api.app.is_lost()
        home.rename(tmp_path / "moved")
        said = api.ask("GET", "/api/search?query=webhook")
        assert (said.status, "is gone" in said.json["detail"]) == (500, True)
        assert api.app.is_lost()
        assert not home.exists()
        (tmp_path / "moved").rename(home)
        assert api.get("/api/search", query="webhook")["count"]
