"""The real `claude` program as a language model, against a scripted API: one question, no traces.

What it needs is what test_claude_code.py needs.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_claude_code import CLIENTS, MISSING, RUNNER
from yester.config import load_config
from yester.errors import Busy, LlmError
from yester.llm.budget import open_asker
from yester.llm.client import open_model
from yester.llm.questions import Prompt
from yester.llm.refine import Draft, refine_draft
from yester.model import Item
from yester.store import open_store
from yester.store.figures import spending_by_day

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

TEXT = "Fix the totals.\n\nThe totals were rounded twice in cart/total.py; now once, at the end."
NOTES = {
    "observations": [
        {
            "type": "bugfix", "title": "Totals were rounded twice in cart/total.py",
            "subtitle": "", "narrative": "The totals are rounded once, at the end.",
            "facts": ["The totals were rounded twice."], "concepts": ["problem-solution"],
            "files": ["cart/total.py"],
        }
    ],
    "summary": dict.fromkeys(
        ("request", "investigated", "learned", "completed", "next_steps", "notes"), ""
    ),
}  # fmt: skip


def api(scenario: dict[str, Any]) -> Any:
    spec = importlib.util.spec_from_file_location(
        "yester_clients_api", Path(CLIENTS, "fake_api.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    server = module.FakeAPI(scenario)
    server.start()
    return server


def settings(home: Path, url: str) -> Any:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f"[llm]\nprovider = 'claude'\nkey = 'nobodys'\nurl = '{url}'\n"
        f"program = '{RUNNER.find_claude()}'\n"
    )
    return load_config(home, {})


def test_the_real_program_answers_once_and_leaves_no_transcript(home):
    server = api({"default": json.dumps(NOTES)})
    config = settings(home, server.url)
    store = open_store(home, now=1)
    found = Item("o1", "observation", title="cart", files_modified=("cart/total.py",))
    draft = Draft((found,), text=TEXT)
    try:
        asker = open_asker(config, store)
        assert asker is not None
        refined = refine_draft(asker, draft)
        assert refined.reason == ""
        assert refined.value.observations[0].title == NOTES["observations"][0]["title"]
        assert refined.value.observations[0].files_modified == ("cart/total.py",)
        (row,) = spending_by_day(store, 0)
        assert (row.model, row.purpose, row.outcome) == ("claude-haiku-5-5", "turn/1", "ok")
        assert 0 < row.cost < 0.01
    finally:
        store.close()
        server.shutdown()
        server.server_close()
    (asked,) = [r for r in server.requests if "messages" in str(r)]
    assert "<yester-memory" in json.dumps(asked)
    assert list(home.rglob("*.jsonl")) == []
    assert not (home / "spool").exists()


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"error": 529, "message": "overloaded", "times": 99}, Busy),
        ({"error": 429, "message": "slow", "times": 99}, Busy),
        ({"error": 401, "message": "bad key", "times": 99}, LlmError),
        ({"text": "", "stop_reason": "refusal"}, "refusal"),
        ({"text": '{"a": ', "stop_reason": "max_tokens"}, "length"),
    ],
)
def test_the_real_programs_failures_are_told_apart(home, step, kind):
    server = api({"default": "x", "rules": [{"when": ".", "steps": [step] * 6}]})
    config = settings(home, server.url)
    (home / "run").mkdir()
    model = open_model(config)
    assert model is not None
    prompt = Prompt("turn/1", "s", "t", {}, 500)
    try:
        if isinstance(kind, str):
            assert model.complete(prompt, 60).stop == kind
        else:
            with pytest.raises(kind):
                model.complete(prompt, 60)
    finally:
        server.shutdown()
        server.server_close()
