"""Coverage-guided fuzzing of every reader (`make fuzz`): no input may raise or hang.

The first byte chooses the reader; the rest is the file. Findings become examples in tests/unit.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["yester"]):
    from yester.agents.base import Options, Reading, load_reader
    from yester.agents.descriptors import AGENTS
    from yester.ingest.prepare import prepare_item
    from yester.project import Projects
    from yester.text.query import parse_query

    READERS = [(name, load_reader(name)) for name in AGENTS]

NAMES = {
    "claude-code": "s.jsonl",
    "codex": "rollout-2026-01-01T00-00-00-0.jsonl",
    "gemini-cli": "session-1.json",
    "copilot-cli": "events.jsonl",
    "opencode": "opencode.db",
    "cursor": "store.db",
    "specstory": "h.md",
    "aider": ".aider.chat.history.md",
}
FOLDER = Path(tempfile.mkdtemp(prefix="yester-fuzz-"))


def one(data: bytes) -> None:
    if not data:
        return
    name, reader = READERS[data[0] % len(READERS)]
    path = FOLDER / NAMES[name]
    path.write_bytes(data[1:])
    reader.is_transcript(path)
    for item in filter(None, reader.read_items(Reading(path, Projects({}), Options()))):
        prepare_item(item).item.body.encode("utf-8")
    parse_query(data[1:200].decode("utf-8", "replace"))


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
