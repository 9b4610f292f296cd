"""`yester serve` and `yester ui`: the process, its port, its seat."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket

import pytest

import yester
from yester.errors import UsageError
from yester.faces.http.login import read_port
from yester.faces.http.server import open_socket
from yester.worker.process import SERVER, seat_holder, take_seat


def ask(port, method, path, body=None, token=""):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    client.request(method, path, json.dumps(body) if body is not None else None, sent)
    answer = client.getresponse()
    found = answer.status, json.loads(answer.read())
    client.close()
    return found


@pytest.mark.requirement("DEL-07", "OPS-03")
def test_the_server_runs_in_the_background_opens_for_a_link_and_ends(run, home):
    with yester.open(home) as memory:
        memory.add([{"ref": "1", "text": "the walrus sings"}])
    with socket.create_server(("127.0.0.1", 0)) as free:
        wanted = free.getsockname()[1]
    if wanted < 60_000:  # the setting names a port, and the next free one is taken
        (home / "config.toml").write_text(f"http_port = {wanted}\n")
    began = run("serve", "--background")
    assert began.code == 0, began.err
    try:
        port = read_port(home / "run")
        assert began.out.strip() == f"http://127.0.0.1:{port}"
        for name in ("token", "run/port", "run/serve.lock", "logs/serve.log"):
            assert (home / name).stat().st_mode & 0o777 == 0o600, name
        token = (home / "token").read_text().strip()
        status, found = ask(port, "GET", "/api/search?query=walrus", token=token)
        assert (status, found["count"]) == (200, 1)
        link = run("ui")
        match = re.fullmatch(rf"http://127\.0\.0\.1:{port}/#code=([\w-]+)\n", link.out)
        assert match, link.out
        status, bearer = ask(port, "POST", "/api/login", {"code": match[1]})
        assert status == 200
        assert ask(port, "GET", "/api/projects", token=bearer["token"])[0] == 200
        rule = {"text": "Never push to main", "type": "rule"}
        agents = run("ui", env={"CLAUDECODE": "1"}).out.strip().rpartition("=")[2]
        _, other = ask(port, "POST", "/api/login", {"code": agents})
        assert ask(port, "POST", "/api/memory/save", rule, other["token"])[0] == 403
        assert ask(port, "POST", "/api/memory/save", rule, token)[0] == 403
        assert ask(port, "POST", "/api/memory/save", rule, bearer["token"])[0] == 200
        assert ask(port, "GET", "/api/doctor", token=token)[1]["findings"]
        assert run("serve", "--background").out == began.out  # there is one already
        again = run("serve")
        assert (again.code, f"127.0.0.1:{port}" in again.err) == (3, True)
        assert token not in (home / "logs" / "serve.log").read_text()
    finally:
        ended = run("serve", "--stop")
    assert "has ended" in ended.out
    assert read_port(home / "run") == 0
    assert run("serve", "--stop").out == "no server is running\n"


@pytest.mark.requirement("OPS-03")
def test_a_port_file_without_a_server_is_not_believed(tmp_path):
    """Another program may have the port by now; it must not be sent a token."""
    from yester.faces.cli.services import server_port

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "port").write_text("36363\n")
    assert server_port(tmp_path) == 0
    taken = take_seat(tmp_path, name=SERVER)
    assert server_port(tmp_path) == 36363
    assert seat_holder(tmp_path, SERVER) == os.getpid()
    assert seat_holder(tmp_path) == 0  # the worker's seat is another one
    taken.close()


def test_a_port_that_is_taken_is_passed_over_unless_it_was_asked_for():
    first = open_socket(0)
    port = first.getsockname()[1]
    try:
        if port < 65_000:
            second = open_socket(port)
            assert port < second.getsockname()[1] <= port + 20
            assert second.getsockname()[0] == "127.0.0.1"
            second.close()
        with pytest.raises(UsageError, match=f"port {port} is taken"):
            open_socket(port, exactly=True)
    finally:
        first.close()


@pytest.mark.parametrize("text", ["", "x", "-1", "ü"])
def test_a_port_file_that_is_none_is_no_port(tmp_path, text):
    (tmp_path / "port").write_text(text)
    assert read_port(tmp_path) == 0
