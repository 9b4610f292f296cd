"""`yester mcp` as a client starts it: a process, two pipes, and whatever comes through them."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import yester
from tests.capturing import made, until, worker_that
from tests.stores import with_store

T = 1_770_000_000
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test"}}


class Peer:
    """A client of the server, as plain as can be."""

    def __init__(self, home: Path, cwd: Path, env: dict[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "yester", "--home", str(home), *(words or ("mcp",))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env,
            # Tests started in the background are deaf to an interrupt, and so are their children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        self.count = 0

    def raw(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, **more: Any) -> int:
        self.count += 1
        self.raw(json.dumps(
            {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params or {}, **more}
        ).encode())  # fmt: skip
        return self.count

    def read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        return json.loads(line)

    def ask(self, method: str, params: Any = None) -> Any:
        id_ = self.send(method, params)
        answer = self.read()
        assert answer["id"] == id_
        return answer

    def call(self, name: str, **given: Any) -> str:
        result = self.ask("tools/call", {"name": name, "arguments": given})["result"]
        assert not result["isError"], result
        return result["content"][0]["text"]

    def end(self) -> tuple[int, bytes, bytes]:
        """Close the input and wait; exit code and what was left to read."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def store(home: Path) -> Path:
    with yester.open(with_store(home)) as memory:
        memory.add(
            [
                {"ref": str(n), "kind": "message", "project": "shop", "text": text, "epoch": T + n}
                for n, text in enumerate(("We dropped redis.", "Locks in key order.", "\x00 </x>"))
            ],
            embed="later",
        )
    return home


@pytest.fixture
def start(home: Path, tmp_path: Path, own_home: Path) -> Iterator[Callable[..., Peer]]:
    peers: list[Peer] = []

    def start(*words: str, **env: str) -> Peer:
        peers.append(Peer(home, tmp_path, {**os.environ, **env}, *words))
        return peers[-1]

    yield start
    for peer in peers:
        if peer.process.poll() is None:
            peer.process.kill()
            peer.process.wait()
        for pipe in (peer.process.stdin, peer.process.stdout, peer.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.mark.requirement("DEL-06")
def test_a_session_from_the_handshake_to_the_end_of_input(start, store):
    peer = start()
    assert peer.ask("initialize", HELLO)["result"]["protocolVersion"] == "2025-11-25"
    peer.raw(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    names = [tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]]
    assert names == ["__IMPORTANT", "search", "timeline", "get_observations", "save_memory"]
    assert "We dropped redis." in peer.call("search", query="redis")
    assert "Locks in key order." in peer.call("timeline", anchor="1")
    assert "We dropped redis." in peer.call("get_observations", ids=[1])
    assert peer.call("save_memory", text="Redis is gone").startswith("Saved in project ")
    assert "Redis is gone" in peer.call("search", query="redis", type="observations")
    assert peer.end() == (0, b"", b"")


@pytest.mark.requirement("DEL-06", "OPS-05")
def test_no_line_ends_the_server_and_nothing_but_json_comes_out(start, store):
    peer = start()
    long = json.dumps({"query": "x" * (10 << 20)})
    wrong = [
        (b"\xff\xfe\x00 not text", -32700),
        (b"[" * 1_000_000, -32700),
        (b'{"a":' * 300_000 + b"1" + b"}" * 300_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + long.encode() + b"}", None),
        (b"x" * (17 << 20), -32600),
    ]
    for line, code in wrong:
        peer.raw(line)
        answer = peer.read()
        assert answer.get("error", {}).get("code") == code, line[:40]
    assert 'No items for "xxxx' in peer.call("search", query="x" * 100_000)
    assert peer.ask("ping")["result"] == {}
    assert peer.end()[:2] == (0, b"")


@pytest.mark.requirement("DEL-06")
def test_what_was_asked_before_the_end_of_input_is_answered(start, store):
    peer = start()
    sent = [peer.send("tools/call", {"name": "search", "arguments": {}}) for _ in range(3)]
    code, out, _ = peer.end()
    assert code == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == sent


@pytest.mark.requirement("DEL-06")
def test_sigterm_ends_it_cleanly_while_a_call_runs(start, store):
    go_on = threading.Event()
    with worker_that(made(store), lambda client: (go_on.wait(30), client.close())) as asked:
        peer = start(YESTER_EMBEDDER="")
        peer.send("tools/call", {"name": "search", "arguments": {"query": "redis"}})
        until(lambda: asked)
        peer.process.send_signal(signal.SIGTERM)
        go_on.set()
        assert peer.process.wait(30) == 0
        assert peer.process.stderr.read() == b""


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_without_a_complaint_while_it_waits(start, sent, code):
    peer = start()
    peer.ask("ping")
    peer.process.send_signal(sent)
    assert peer.process.wait(30) == code
    assert peer.process.stderr.read() == b""


@pytest.mark.requirement("DEL-06")
@pytest.mark.parametrize("method", ["ping", "tools/call"])
def test_a_client_that_no_longer_listens_ends_it_without_a_complaint(start, store, method):
    peer = start()
    peer.ask("ping")
    peer.process.stdout.close()
    peer.send(method, {"name": "search", "arguments": {}})
    assert peer.process.wait(30) == 0
    assert peer.process.stderr.read() == b""


def test_what_other_code_prints_does_not_reach_the_client(tmp_path, store):
    """A library that prints on import, here through a module every interpreter looks for."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\natexit.register(lambda: os.write(1, b'from C'))\n"
        "atexit.register(print, 'from Python')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "yester", "--home", str(store), "mcp"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', capture_output=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert b"from Python" in done.stderr
    assert b"from C" in done.stderr


@pytest.mark.requirement("DEL-06")
def test_the_first_answer_loads_neither_the_command_line_nor_the_store(tmp_path):
    code = (
        "import sys\nsys.argv = ['yester', '--home', 'x', 'mcp']\n"
        "from yester.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as stop: print(stop.code, file=sys.stderr)\n"
        "heavy = {'click', 'numpy', 'apsw', 'msgspec', 'dataclasses', 'typing'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    asked = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'
        b"\n"
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], input=asked, capture_output=True, cwd=tmp_path,
        env={"PYTHONPATH": str(Path(yester.__file__).parent.parent)},
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.decode().split("\n", 1) == ["0", "[]\n"]
    assert list(tmp_path.iterdir()) == [], "and makes nothing"


def test_the_command_line_leads_to_the_same_server(start, store, run):
    assert "MCP server" in run("mcp", "--help").out
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from yester.faces.cli.app import main; main()",
         "--home", str(store), "mcp"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["result"]["tools"]) == 5


CLIENT = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def talk(mode):
    command, *words = sys.argv[1:]
    server = StdioServerParameters(command=command, args=words, env={"HOME": "/nonexistent"})
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("search", {"query": "redis", "limit": 2})
        wrong = await client.call_tool("search", {"limit": 0})
        whole = await client.call_tool("get_observations", {"ids": [1]})
        return {
            "version": client.protocol_version, "name": client.server_info.name,
            "tools": [tool.name for tool in tools],
            "reading": [tool.name for tool in tools if tool.annotations.read_only_hint],
            "found": found.content[0].text, "failed": [found.is_error, wrong.is_error],
            "wrong": wrong.content[0].text, "whole": whole.content[0].text,
        }

async def main():
    print(json.dumps([await talk("legacy"), await talk("auto")]))

asyncio.run(main())
"""


@pytest.mark.requirement("DEL-06")
@pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None,
    reason="the official client is not installed: pip install -e '.[dev]'",
)
def test_the_official_client_works_with_and_without_a_handshake(store, tmp_path):
    server = [sys.executable, "-m", "yester", "--home", str(store), "mcp"]
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, *server], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    old, new = json.loads(done.stdout)
    assert (old["version"], new["version"]) == ("2025-11-25", "2026-07-28")
    for told in (old, new):
        assert told["name"] == "yester"
        assert told["reading"] == [name for name in told["tools"] if name != "save_memory"]
        assert "We dropped redis." in told["found"]
        assert "We dropped redis." in told["whole"]
        assert told["failed"] == [False, True]
        assert "from 1 to 100" in told["wrong"]
