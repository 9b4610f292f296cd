"""What programs rely on, word by word: the OpenAPI document and the MCP tools.

After a change that is meant: YESTER_GOLDEN=1 pytest …
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from yester.faces.http.table import make_document
from yester.faces.http.table import ENDPOINTS
from yester.faces.mcp.server import load_tools

HERE = Path(__file__).parent


def assert_golden(name: str, text: str) -> None:
    path = HERE / name
    if os.environ.get("YESTER_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def as_json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@pytest.mark.requirement("DEL-07")
def test_the_http_api_is_the_one_that_was_written_down():
    told = make_document(ENDPOINTS)
    told["info"] = {**told["info"], "version": "*"}
    assert_golden("openapi.json", as_json(told))


@pytest.mark.requirement("DEL-06")
def test_the_mcp_tools_are_those_that_were_written_down():
    assert_golden("mcp-tools.json", as_json([*load_tools().values()]))
