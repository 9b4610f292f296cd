"""What is asked of every reader of files: it loses nothing, and nothing in a file stops it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readings import ODD, accepted_by, reading, resumed
from tests.unit.test_aider import HISTORY
from tests.unit.test_codex import TALK as CODEX
from tests.unit.test_copilot_cli import Log, write_talk
from tests.unit.test_gemini_cli import TALK as GEMINI
from tests.unit.test_specstory import EXTENSION, FIRST, TALK
from yester.agents.base import load_reader

pytestmark = pytest.mark.requirement("IMP-05", "STO-05")

CLAUDE = Path("examples/sessions/tidepool/7be40d19-52c6-4f8d-9c31-a8d05e6f2b04.jsonl")


def write_lines(records) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


@pytest.fixture(scope="module")
def samples(request, tmp_path_factory) -> dict[str, tuple[str, bytes]]:
    """Agent → the name of one of its files, and the file."""
    log = Log(tmp_path_factory.mktemp("log") / "events.jsonl")
    write_talk(log)
    claude = (request.config.rootpath / CLAUDE).read_bytes().splitlines(keepends=True)
    return {
        "claude-code": ("s.jsonl", b"".join(claude[:16])),
        "codex": ("rollout-1.jsonl", write_lines(CODEX)),
        "copilot-cli": ("events.jsonl", log.path.read_bytes()),
        "gemini-cli": ("session-1.jsonl", write_lines(GEMINI)),
        "specstory": ("a.md", "\n".join((TALK, EXTENSION, FIRST)).encode()),
        "aider": (".aider.chat.history.md", HISTORY.encode()),
    }


AGENTS = ["claude-code", "codex", "copilot-cli", "gemini-cli", "specstory", "aider"]
LINES = AGENTS[:4]


@pytest.fixture
def write(samples, tmp_path):
    def write(agent: str, raw: bytes | None = None) -> Path:
        name, whole = samples[agent]
        path = tmp_path / agent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(whole if raw is None else raw)
        return path

    return write


def read(agent, now, most=None):
    """What the store holds after this run: the later of one identity wins."""
    found = {}
    for item in filter(None, load_reader(agent).read_items(now)):
        assert item.body.strip()
        item.body.encode("utf-8")
        found[item.kind, item.ref] = item
        if most is not None and len(found) >= most:
            break
    return found


@pytest.mark.parametrize("agent", AGENTS)
def test_a_run_stopped_at_any_item_goes_on_there(agent, write):
    path = write(agent)
    whole = read(agent, reading(path))
    assert len(whole) > 5
    for stop in range(1, len(whole) + 1):
        now = reading(path)
        found = read(agent, now, stop)
        assert found | read(agent, resumed(now)) == whole, stop


@pytest.mark.parametrize("agent", AGENTS)
def test_reading_on_after_the_file_grew_gives_what_reading_it_at_once_gives(agent, samples, write):
    raw = samples[agent][1]
    whole = read(agent, reading(write(agent)))
    for cut in range(0, len(raw), max(97, len(raw) // 60)):
        now = reading(write(agent, raw[:cut]))
        found = read(agent, now)
        write(agent)
        assert found | read(agent, resumed(now)) == whole, cut


# One call of each sample: tool, input by name, what is in no text, result, status, failed.
PATCH = "*** Begin Patch\n*** Update File: src/cart.py\n+x\n*** End Patch"
CALLS = {
    "claude-code": ("Task", {"description": "List stock locks", "prompt": "List every place in"},
                    {"subagent_type": "Explore"}, "Three places touch rows", None, False),
    "codex": ("apply_patch", {"input": PATCH}, {}, "Success.", 0, False),
    "copilot-cli": ("edit", {"path": "/home/sam/code/shop/src/cart.py", "old_str": "x = 1",
                             "new_str": "x = 2"}, {}, "No match found", None, True),
    "gemini-cli": ("run_shell_command", {"command": "pytest -q"}, {}, "2 failed\nExit Code: 1", 1,
                   True),
    "specstory": ("Bash", {"command": "pytest -q"}, {}, "Exit code 1\n1 failed", 1, True),
    "aider": ("run", {"command": "pytest -q"}, {}, None, None, False),
}  # fmt: skip


@pytest.mark.requirement("CAP-16")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_call_is_told_as_input_by_name_result_and_status(agent, write):
    """Texts are compared by their beginning."""
    tool, fields, options, result, status, failed = CALLS[agent]
    found = read(agent, reading(write(agent))).values()
    item = next(item for item in found if item.tool == tool)
    assert [name for name, _, _ in item.call.fields] == list(fields)
    for name, text in fields.items():
        assert item.call_field(name).startswith(text)
    assert (dict(item.call.options), item.call.status, item.call.cut) == (options, status, False)
    assert (item.call_result or "").startswith(result or "")
    assert (item.call_result is None) == (result is None)
    assert ("error" in item.tags) is failed


@pytest.mark.requirement("CAP-16")
@pytest.mark.parametrize("agent", AGENTS)
def test_every_use_of_a_tool_has_its_structure(agent, write):
    for item in read(agent, reading(write(agent))).values():
        assert (item.call is not None) == (item.role == "tool")
        for start, end in item.call.spans if item.call else ():
            assert 0 <= start <= end <= len(item.body)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_file_is_accepted_by_its_own_reader_alone(agent, write):
    path = write(agent)
    assert accepted_by(path) == [agent]
    assert accepted_by(path.with_name("missing" + path.suffix)) == []
    assert accepted_by(write(agent, b"")) == []


@given(data=st.data())
def test_nothing_in_a_file_stops_the_run(samples, write, data):
    """Neither bytes between its own, nor lines in another order, nor lines of another kind."""
    agent = data.draw(st.sampled_from(AGENTS))
    whole = samples[agent][1]
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(whole)))
        raw = whole[:at] + data.draw(st.binary(max_size=400)) + whole[at:]
    else:
        line = st.sampled_from(whole.splitlines(keepends=True)) | st.text(max_size=20).map(
            lambda text: text.encode("utf-8", "surrogatepass")
        )
        raw = b"".join(data.draw(st.lists(line, max_size=40)))
    path = write(agent, raw)
    if agent == "gemini-cli" and data.draw(st.booleans()):
        path = path.rename(path.with_suffix(".json"))  # as older versions had it
    now = reading(path)
    read(agent, now)
    read(agent, resumed(now))
    accepted_by(path)


@given(data=st.data())
def test_values_of_any_type_in_any_field_never_stop_the_run(samples, write, data):
    agent = data.draw(st.sampled_from(LINES))
    records = [json.loads(line) for line in samples[agent][1].splitlines()]
    for _ in range(data.draw(st.integers(1, 12))):
        into, key = records, data.draw(st.integers(0, len(records) - 1))
        while isinstance(into[key], dict | list) and into[key] and data.draw(st.booleans()):
            into = into[key]
            keys = sorted(into) if isinstance(into, dict) else range(len(into))
            key = data.draw(st.sampled_from(keys))
        into[key] = deepcopy(data.draw(ODD))
    path = write(agent, write_lines(records))
    now = reading(path)
    read(agent, now)
    read(agent, resumed(now))
    accepted_by(path)
