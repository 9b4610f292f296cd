"""A server for many: who may ask, and what each may do."""

from __future__ import annotations

import pytest

from tests.teams import Team

pytestmark = pytest.mark.requirement("TEAM-01")


@pytest.fixture
def team(tmp_path):
    return Team("yester-team-server", tmp_path)


def test_a_token_says_who_asks_and_what_it_is_good_for(team):
    owner, reader = team.token("sam", role="owner"), team.token("kim", role="reader")
    with team.serving() as server:
        me = server.by(owner).get("/v1/me")
        assert (me["tenant"], me["user"], me["role"]) == ("acme", "sam", "owner")
        assert me["scopes"] == ["admin", "read", "write"]
        assert server.by(reader).get("/v1/me")["scopes"] == ["read"]
        saved = server.by(owner).send("/api/memory/save", {"text": "Orders keep UTC."})
        assert saved.status == 200, saved.body
        found = server.by(reader).get("/api/search", query="orders utc")
        assert [row["id"] for row in found["results"]] == [saved.json["id"]]
        refused = server.by(reader).send("/api/memory/save", {"text": "Orders keep local time."})
        assert refused.status == 403
        acts = server.by(owner).get("/v1/audit")["acts"]
        assert server.failures == []
    assert ("kim", "POST /api/memory/save", "refused: scope") in [
        (one["user"], one["action"], one["outcome"]) for one in acts
    ]
