"""What is wrong with a request is said by its name, its value and what would be right; and an
answer that is not quite one says so."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from urllib.parse import urlencode

import pytest

import yester
from tests.serving import serving
from tests.table import each
from yester.faces.mcp.calls import answer_call, open_for_tools
from yester.faces.mcp.server import load_tools
from yester.store.figures import has_vectors

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
pytestmark = pytest.mark.requirement("DEL-07")


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    home = tmp_path_factory.mktemp("errors") / "memory"
    with yester.open(home) as memory:
        memory.add([
            {"ref": "1", "text": "The webhook is retried five times", "project": "shop",
             "session": "aaaaaa-1", "agent": "claude-code", "kind": "message", "tool": "Bash"},
            {"ref": "2", "text": "Dough rises over night", "project": "bakery", "type": "bugfix",
             "kind": "observation", "title": "Dough"},
            *({"ref": f"p{n}", "text": f"word{n}", "project": f"part{n}"} for n in range(12)),
        ])  # fmt: skip
    with serving(home) as found:
        yield found
        assert found.failures == []


def problem(api, path, status, **query):
    said = api.ask("GET", f"{path}?{urlencode(query)}")
    assert said.status == status, said.body
    return said.json


@each(
    ("path", "query", "status", "parameter", "value", "fix"),
    [
        ("/api/search", {"format": "json", "limit": "9999"}, 400, "format", "json", "export jsonl"),
        ("/api/search", {"platformSource": "claude"}, 400, "platformSource", "claude", "agent="),
        ("/api/search", {"projects": "a,b"}, 400, "projects", "a,b", "use project"),
        ("/api/observation/7", {}, 404, "path", "/api/observation/7", "/api/items/ID"),
        ("/api/import", {}, 404, "path", "/api/import", "yester import claude-mem"),
        ("/api/search", {"dateStart": "lastweek"}, 400, "dateStart", "lastweek", "3d"),
        ("/api/search", {"dateRange[end]": "soon"}, 400, "dateRange[end]", "soon", "3d"),
        ("/api/search", {"dateRange": '{"begin": 1}'}, 400, "dateRange", '{"begin": 1}', "start"),
        ("/api/search", {"dateRange": '{"start": "x"}'}, 400, "dateRange", "x", "3d"),
        ("/api/timeline", {"anchor": "2026-13-45"}, 400, "anchor", "2026-13-45", "2026-03-01"),
        ("/api/timeline", {"anchor": "99999"}, 404, "anchor", "99999", "item's id"),
        ("/api/timeline", {"anchor": "S99999"}, 404, "anchor", "S99999", "a session's id"),
        ("/api/search/timeline-by-query", {"query": "zzzqqqxx"}, 404, "query", "zzzqqqxx", "words"),
        ("/api/context/preview", {"cwd": "relative"}, 400, "cwd", "relative", "absolute"),
        ("/api/items/99999", {}, 404, "id", "99999", "search"),
        ("/api/memories/99999", {}, 404, "id", "99999", "/api/memories"),
        ("/api/memories/1", {}, 404, "id", "1", "/api/items/1"),
        ("/api/sessions/nobody", {}, 404, "session", "nobody", "/api/sessions"),
        ("/api/search", {"project": "shpo"}, 404, "project", "shpo", "did you mean shop?"),
        ("/api/search", {"obs_type": "bugfixx"}, 404, "type", "bugfixx", "did you mean bugfix?"),
        ("/api/search/by-type", {"type": "xyz"}, 404, "type", "xyz", "and"),
        ("/api/items", {"session": "zzzz"}, 404, "session", "zzzz", "/api/sessions"),
        ("/api/search", {"agent": "claude"}, 404, "agent", "claude", "claude-code"),
        ("/api/sessions", {"agent": "nonagent"}, 404, "agent", "nonagent", "/api/facets"),
        ("/api/search/prompts", {"tool": "Bsh"}, 404, "tool", "Bsh", "Bash"),
        ("/api/memories", {"type": "decsion"}, 404, "type", "decsion", "decision"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_parameter_its_value_and_the_fix(
    api, path, query, status, parameter, value, fix
):
    found = problem(api, path, status, **query)
    assert (found["parameter"], found["value"]) == (parameter, value)
    assert fix in found["fix"]
    assert "yester recall" not in json.dumps(found)
    assert found["fix"] not in found["detail"]


def test_of_many_projects_some_are_named_and_the_others_counted(api):
    found = problem(api, "/api/search", 404, project="zzzzzz")
    assert found["detail"] == "no project is called 'zzzzzz'"
    assert "bakery, part0, " in found["fix"]
    assert " and 6 more (GET /api/projects)" in found["fix"]


@each(
    "query", [{"agent": "codex"}, {"obs_type": "feature"}, {"type": "feature"}, {"kinds": "note"}]
)
def test_what_is_known_and_has_nothing_yet_is_an_empty_answer(api, query):
    assert api.get("/api/search", **query)["results"] == []


@each(
    ("query", "note"),
    [
        ("webhook", None),
        ("webhookx", "no item has this word; these begin alike"),
        ("the", "the question names nothing to look for; these are the newest"),
        ("AND", "the question names nothing to look for; these are the newest"),
        ("", None),
    ],
)
def test_a_search_says_how_far_it_had_to_go(api, query, note):
    found = api.get("/api/search", query=query)
    assert found["results"]
    assert found.get("note") == note


@pytest.mark.requirement("REC-05", "REC-14", "REC-22")
def test_what_is_only_nearest_in_meaning_is_shown_when_asked_for_and_is_no_anchor(
    home, run, monkeypatch
):
    monkeypatch.delenv("YESTER_EMBEDDER")
    texts = [
        "The webhook is retried five times", "Dough rises over night in the cellar",
        "We dropped Redis because prices were stale", "Log in with a passkey instead of a password",
        "The invoice is sent as PDF", "Deploys happen on Tuesdays", "Ovens are cleaned weekly",
        "Use tabs in Makefiles", "The queue is drained before a restart", "Photos are resized once",
        "Maps are cached for a day", "Names are sorted by surname",
    ]  # fmt: skip
    with yester.open(home) as memory:
        memory.add([{"ref": str(n), "text": text} for n, text in enumerate(texts)])
        assert has_vectors(memory.store)
    with serving(home, environ={}) as api:
        found = api.get("/api/search", query="authentication", near=True)
        assert found["results"][0]["title"].startswith("Log in")
        assert found["note"] == "no item has this word; these are nearest in meaning"
        found = api.get("/api/search", query="authentication")
        assert found["results"] == []
        assert found["note"] == "no item has this word; near shows what is nearest in meaning"
        assert api.get("/api/facets", query="authentication")["total"] == 0
        found = api.get("/api/search", query="webhook", kinds="message")
        assert "note" not in found
        for query in ({"query": "zzzqqqxx"}, {"query": "zzzqqqxx", "anchor": "latest"}):
            said = problem(api, "/api/search/timeline-by-query", 404, **query)
            assert said["detail"] == "nothing fits 'zzzqqqxx'"
        assert api.get("/api/search/timeline-by-query", query="passkey")["timeline"]
    done = run("recall", "authentication", "--all-projects")
    assert done.out == ""
    assert done.err.startswith("Nothing found.")
    assert "what is near in meaning: --near" in done.err
    said = run("recall", "authentication", "--all-projects", "--near").err
    assert said.startswith("None of these has such a word; they are nearest in meaning:")
    tools = open_for_tools(str(home), str(home.parent), {})
    assert "near=true" in ask_tool(tools, query="authentication")
    assert "Log in with a passkey" in ask_tool(tools, query="authentication", near="true")
    tools.close()


def ask_tool(tools, **given):
    tool = load_tools()["search"]
    return answer_call(tool, lambda: tools, given)[0]


# --- the help -------------------------------------------------------------------------------------


def test_every_example_of_the_help_can_be_run_as_it_stands(api):
    found = api.get("/api/search/help")
    for one in found["operations"]:
        words = shlex.split(one["example"])
        method, path = one["endpoint"].split()
        said_so = [words[n + 1].split(": ") for n, word in enumerate(words) if word == "-H"]
        sent = {pair[0]: pair[1] for pair in said_so if len(pair) == 2}
        address = next(word for word in words if word.startswith("http"))
        assert "$AUTH" in words
        if method == "POST":
            body = words[words.index("-d") + 1].encode()
            said = api.ask("POST", path, sent, body)
        else:
            said = api.ask("GET", address.removeprefix(f"http://{api.host}"))
        # What it names need not be here; everything else about it is right.
        assert said.status in (200, 404), (one["example"], said.body)
        if "query" in address or path.startswith("/api/search/by-"):
            assert "limit=5" in address or "timeline" in path


def test_the_help_has_filters_allowed_values_and_defaults(api):
    found = api.get("/api/search/help")
    by_path = {one["endpoint"]: one for one in found["operations"]}
    assert {"project", "files", "dateStart", "session"} <= found["filters"].keys()
    assert "default `20`" in found["search"]["limit"]
    assert "date_desc" in found["search"]["orderBy"]
    assert by_path["GET /api/search"]["also"] == "search and filters"
    assert by_path["GET /api/timeline"]["also"] == "filters"
    assert "project" in by_path["POST /api/memory/save"]["parameters"]
    assert "project" in by_path["GET /api/search/recent-context"]["parameters"]
    assert "session_summary" in by_path["GET /api/memory/candidate"]["parameters"]["type"]


def test_the_reference_says_what_values_are_and_the_document_knows_the_streams_header(api):
    page = REFERENCE.read_text("utf-8")
    assert "| `event` | query | one of PreToolUse, SessionStart" in page
    assert "| `SessionStart` | What happens. |" in page
    assert "| `content` | body | an object |" in page
    assert "| `confidence` | body | a number from 0 to 1 |" in page
    assert page.count("Retire what is otherwise kept for good") == 1
    document = api.get("/api/openapi.json")
    (header,) = document["paths"]["/stream"]["get"]["parameters"]
    assert (header["name"], header["in"]) == ("Last-Event-ID", "header")
    for event in ("ready", "item", "injection", "memory", "gap"):
        assert f"`{event}`" in document["paths"]["/stream"]["get"]["description"]
