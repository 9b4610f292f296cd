"""What one tenant, or one member of a private project, keeps no other sees through the server: by
no endpoint, no filter, no guess, in no number."""

from __future__ import annotations

import json
import re
from contextlib import closing
from urllib.parse import quote

import pytest

from tests.store.test_isolation import fill
from tests.teams import SERVER, Counting, Team
from yester.faces.http.table import TEAM_ENDPOINTS

pytestmark = pytest.mark.requirement("TEAM-01", "MEM-09")

READING = [one for one in TEAM_ENDPOINTS if one.scope == "read" and one.path != "/v1/me"]
WRITING = [one for one in TEAM_ENDPOINTS if one.scope == "write"]
IDS = range(1, 9)
VALUES = {
    "query": [
        "walrus", "walr*", '"the walrus sings"', "sings NOT carpenter", "project:secret walrus"
    ],
    "project": ["secret", "name:secret"], "projects": ["secret"],
    "session": ["s-walrus", "S1", "S2"],
    "files": ["walrus.py"], "filePath": ["walrus.py"], "path": ["walrus.py"],
    "concepts": ["walrus"], "concept": ["walrus"], "type": ["walrus-type", "decision"],
    "obs_type": ["walrus-type"], "kinds": ["prompt", "memory"], "agent": ["codex"],
    "anchor": ["1", "4", "S1", "S2"], "text": ["the walrus sings"], "status": ["all"],
    "explain": ["true"], "near": ["true"], "orderBy": ["date_asc"], "days": ["3650"],
    "format": ["full"], "ids": [list(IDS)],
}  # fmt: skip
# What else is needed where one of these is asked.
ALONE = {
    "query": {"limit": "50"},
    "near": {"query": "singing walrus"},
    "explain": {"query": "walrus"},
}


def questions():
    """(method, path, body) of what can be asked of the reading endpoints: of an operation's first
    one with every value, of its others with one of each."""
    operations = set()
    for one in READING:
        paths = [one.path]
        for name in one.path_parameters:
            guesses = IDS if name == "id" else VALUES[name]
            paths = [path.replace(f"{{{name}}}", str(guess)) for path in paths for guess in guesses]
        most = None if one.operation not in operations else 1
        operations.add(one.operation)
        others = one.other_parameters
        needed = {name: VALUES[name][0] for name, known in others.items() if known.required}
        asked = [needed]
        for name in others.keys() & VALUES.keys():
            for value in VALUES[name][:most]:
                more = {key: it for key, it in ALONE.get(name, {}).items() if key in others}
                if others[name].schema.get("enum", [value]).count(value):
                    asked.append({**needed, **more, name: value})
        for path in paths:
            for values in asked:
                if one.has_body:
                    yield one.method, path, json.dumps(values).encode()
                else:
                    pairs = "&".join(f"{k}={quote(str(v))}" for k, v in values.items())
                    yield one.method, f"{path}?{pairs}", None


QUESTIONS = list(questions())
_TIME = re.compile(rb'"took_ms":[0-9.e-]+')


def answers(server):
    kind = {"Content-Type": "application/json"}
    found = {}
    for method, path, body in QUESTIONS:
        said = server.ask(method, path, kind if body else None, body)
        assert said.status < 500, (path, said.body)
        found[path, body] = said.status, _TIME.sub(b"", said.body)
    return found


def find_walrus(server):
    return server.get("/api/search", query="walrus")["count"]


def differences(one, other):
    return [(key, one[key], other[key]) for key in one if one[key] != other[key]]


@pytest.fixture
def team(tmp_path):
    return Team("yester-team", tmp_path)


def test_questions_reach_every_endpoint_and_find_what_is_there(team):
    """Else the tests below prove nothing."""
    token = team.token("sam", role="owner")
    with team.store() as store:
        fill(store)
    with team.serving() as server:
        found = answers(server.by(token))
    paths = {path.partition("?")[0] for path, _ in found}
    assert len(QUESTIONS) > 200
    assert len(paths) >= len(READING)
    for one in READING:
        head = one.path.partition("{")[0]
        mine = [said for (path, _), said in found.items() if path.startswith(head)]
        assert any(status == 200 for status, _ in mine), one.path
    telling = [path for (path, _), (_, body) in found.items() if b"walrus" in body]
    assert len(telling) > 100


def test_another_tenants_rows_are_in_no_answer(team):
    own, other = team.token("sam", "one", role="owner"), team.token("kim", "two", role="owner")
    with team.serving(threads=1) as server:  # one thread: every connection is used again
        before = answers(server.by(other))
        with team.store("one") as store:
            fill(store)
        assert find_walrus(server.by(own)) == 2
        assert differences(before, answers(server.by(other))) == []
        assert server.failures == []


def test_a_private_project_is_in_no_answer_to_others(team):
    own, other = team.token("sam"), team.token("kim")
    limited = team.token("kim", projects=("name:open",))
    with team.store() as store:
        fill(store, "name:open", "carpenter")
    with team.serving(threads=1) as server:
        answers(server.by(other))  # what was fetched once is ranked otherwise
        before = answers(server.by(other))
        with team.store() as store:
            fill(store)
        with team.directory() as directory:
            directory.limit_project("secret", ["sam"])
        assert find_walrus(server.by(own)) == 2
        assert differences(before, answers(server.by(other))) == []
        with team.directory() as directory:
            directory.limit_project("name:secret", [])
        assert find_walrus(server.by(other)) == 2
        assert differences(before, answers(server.by(limited))) == []


@pytest.mark.parametrize("tenant", ["one", "two"])
def test_what_is_foreign_and_what_is_absent_is_answered_alike_and_as_fast(team, tenant):
    """The same answer, by the same number of statements: to another tenant, and in the same one to
    who is no member of a private project."""
    own, other = team.token("sam", "one"), team.token("kim", tenant)
    with team.store("one") as store:
        fill(store)
        memory = store.memos()[0].item.id
    with team.directory("one") as directory:
        directory.limit_project("secret", ["sam"])
    bodies = {"text": "x", "what": "useful", "version": 1, "title": "x"}
    database = Counting(team.name, SERVER)

    def ask(one, id_):
        names = one.other_parameters
        values = {name: bodies[name] for name in names if name in bodies and one.has_body}
        values |= {"ids": [id_]} if "ids" in names else {}
        values |= {"anchor": str(id_)} if "anchor" in names else {}
        path = one.path.replace("{id}", str(id_)).replace("{session}", f"S{id_}")
        before = database.settle().statements
        if one.has_body:
            said = server.send(path, values, one.method, other)
        else:
            said = server.ask(one.method, f"{path}?anchor={id_}" if values else path, token=other)
        body = re.sub(rb"\b(S?)%d\b" % id_, rb"\1ID", _TIME.sub(b"", said.body))
        return said.status, body, database.settle().statements - before

    with closing(database), team.serving(url=database.url, threads=1) as server:
        named = {"ids", "anchor"}
        for one in [*READING, *WRITING]:
            if "{" in one.path or named & one.other_parameters.keys():
                for foreign, absent in ((memory, 9_999), (1, 9_998)):
                    ask(one, 9_997)  # whatever is asked for the first time
                    assert ask(one, foreign) == ask(one, absent), one.path
        assert database.statements > 100
        assert server.failures == []
        kept = server.by(own).get(f"/api/memories/{memory}")
    assert (kept["memory"]["version"], len(kept["history"])) == (1, 1)
