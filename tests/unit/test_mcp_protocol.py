"""JSON-RPC as the MCP server speaks it: every message gets the answer it must have, or none."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.faces.mcp.calls import ToolMemory, open_for_tools
from yester.faces.mcp.server import HANDSHAKE, MODERN, Server, load_tools, read_lines

META = "io.modelcontextprotocol/"
ENVELOPE = {f"{META}protocolVersion": MODERN[-1], f"{META}clientCapabilities": {}}
EXACT = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


TOOLS = load_tools()


def fail_to_open() -> Any:
    raise ZeroDivisionError("stored words")


@pytest.fixture
def ask(tmp_path):
    """What the server sends for some lines; without a store, a worker or a process."""

    def open_memory() -> ToolMemory:
        return open_for_tools(str(tmp_path / "home"), str(tmp_path), {}, lambda *_: None)

    def ask(*sent: Any, open_memory=open_memory) -> list[Any]:
        answers: list[Any] = []
        server = Server(TOOLS, open_memory, answers.append)
        for one in sent:
            server.take_line(one if isinstance(one, bytes | None) else json.dumps(one).encode())
        server.close()
        return answers

    return ask


def code(answer: dict[str, Any]) -> int:
    assert answer["jsonrpc"] == "2.0"
    assert isinstance(answer["error"]["message"], str)
    return answer["error"]["code"]


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_handshake_gets_the_version_it_asks_for(ask, version):
    (answer,) = ask(EXACT | {"method": "initialize", "params": {"protocolVersion": version}})
    assert answer["id"] == 1
    result = answer["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "yester"
    assert result["capabilities"] == {"tools": {}}


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", "later", ""])
def test_a_handshake_for_a_version_unknown_gets_the_newest_that_has_one(ask, version):
    (answer,) = ask(EXACT | {"method": "initialize", "params": {"protocolVersion": version}})
    assert answer["result"]["protocolVersion"] == HANDSHAKE[-1]


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}, {"protocolVersion": None}])
def test_a_handshake_without_a_version_says_what_is_missing(ask, params):
    (answer,) = ask(EXACT | {"method": "initialize", "params": params})
    assert code(answer) == -32602
    assert "protocolVersion" in answer["error"]["message"]


@pytest.mark.requirement("DEL-06")
def test_a_client_without_a_handshake_is_told_what_there_is_and_served(ask):
    found, listed, called = ask(
        {**EXACT, "method": "server/discover", "params": {"_meta": ENVELOPE}},
        {**EXACT, "method": "tools/list", "params": {"_meta": ENVELOPE}},
        {**EXACT, "method": "tools/call", "params": {"name": "search", "_meta": ENVELOPE}},
    )
    assert found["result"]["supportedVersions"] == list(MODERN)
    assert found["result"]["capabilities"] == {"tools": {}}
    for answer in (found, listed, called):
        assert answer["result"]["resultType"] == "complete"
        assert answer["result"]["_meta"][f"{META}serverInfo"]["name"] == "yester"
    for answer in (found, listed):
        assert answer["result"]["ttlMs"] >= 0
        assert answer["result"]["cacheScope"] == "public"
    plain = ask({**EXACT, "method": "tools/list"})[0]["result"]
    assert set(plain) == {"tools"}, "an older client gets nothing it does not know"


@pytest.mark.requirement("DEL-06")
def test_a_request_for_a_version_unknown_is_told_which_there_are(ask):
    meta = ENVELOPE | {f"{META}protocolVersion": "2031-01-01"}
    (answer,) = ask({**EXACT, "method": "tools/list", "params": {"_meta": meta}})
    assert code(answer) == -32022
    assert answer["error"]["data"] == {"supported": list(MODERN), "requested": "2031-01-01"}


def test_ping_is_answered_with_nothing_and_is_gone_in_the_newest_version(ask):
    old, new = ask(EXACT, EXACT | {"params": {"_meta": ENVELOPE}})
    assert old == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert code(new) == -32601


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize(
    ("line", "expected", "id_"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe{}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32600, None),
        (b"[" * 200_000, -32700, None),
        (b'{"a":' * 200_000, -32700, None),
        (b'{"id":' + b"9" * 10_000 + b"}", -32700, None),
        (None, -32600, None),
        (b"[]", -32600, None),
        (b"42", -32600, None),
        (b'"ping"', -32600, None),
        (b"null", -32600, None),
        (b'{"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601, 1),
        (b'{"jsonrpc":"2.0","id":"x","method":""}', -32601, "x"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[1]}}', -32602, 1),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
            b'"params":{"name":"search","arguments":[1]}}',
            -32602,
            1,
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_what_cannot_be_answered_gets_the_error_of_the_protocol(ask, line, expected, id_):
    answers = ask(line, EXACT | {"id": "after"})
    found = {answer.get("id"): answer for answer in answers}
    assert found.pop("after")["result"] == {}, "and the next message is answered"
    assert list(found) == [id_]
    assert code(found[id_]) == expected


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/whatever", "params": [1]},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "search"}},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
    ],
    ids=str,
)
def test_notifications_and_answers_get_no_answer(ask, message):
    assert ask(message, open_memory=fail_to_open) == []


def test_blank_lines_are_passed_over(ask):
    assert ask(b"", b"  \t ") == []


@pytest.mark.requirement("DEL-06")
def test_a_failure_nobody_expected_is_an_internal_error_and_not_the_end(ask, capsys):
    call = {**EXACT, "method": "tools/call", "params": {"name": "search"}}
    failed, again = ask(call, call | {"id": 2}, open_memory=fail_to_open)
    assert code(failed) == code(again) == -32603
    assert "ZeroDivisionError" in failed["error"]["message"]
    assert "stored words" not in json.dumps(failed), "what is stored goes out by tools alone"
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.requirement("DEL-06")
def test_a_batch_is_answered_by_a_batch_without_its_notifications(ask):
    (answers,) = ask([
        EXACT, {"jsonrpc": "2.0", "method": "notifications/initialized"}, 7,
        {**EXACT, "id": "b", "method": "tools/call", "params": {"name": "__IMPORTANT"}},
        {**EXACT, "id": 4, "method": "no/such"},
    ])  # fmt: skip
    assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert code(answers[1]) == -32600
    assert answers[2]["id"] == "b"
    assert "search" in answers[2]["result"]["content"][0]["text"]
    assert (answers[3]["id"], code(answers[3])) == (4, -32601)
    assert ask([{"jsonrpc": "2.0", "method": "notifications/initialized"}]) == []


def test_lines_may_be_as_long_as_the_limit_and_no_longer():
    source = io.BytesIO(b"0123456789\n" + b"x" * 30 + b"\nlast\r\n" + b"y" * 11)
    assert list(read_lines(source, 10)) == [b"0123456789", None, b"last", None]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | JSON,
            "id": st.integers() | JSON,
            "method": st.sampled_from(["ping", "initialize", "tools/list", "tools/call"]) | JSON,
            "params": st.fixed_dictionaries(
                {}, optional={"name": st.sampled_from([*TOOLS]) | JSON, "arguments": JSON,
                              "_meta": JSON, "protocolVersion": JSON},
            ) | JSON,
        },
    )
    | JSON
)  # fmt: skip
def test_any_json_gets_one_sound_answer_or_none(ask, message):
    try:
        line = json.dumps(message, allow_nan=False).encode()
    except ValueError:  # not a number
        return
    answers = ask(line)
    assert len(answers) <= 1
    for answer in answers:
        json.dumps(answer, allow_nan=False)
        for one in answer if isinstance(answer, list) else [answer]:
            assert one["jsonrpc"] == "2.0"
            assert ("result" in one) != ("error" in one)
