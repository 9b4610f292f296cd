"""pi's sessions: JSON lines that form a tree, versions 1 to 3.

Indexed: prompts, answers, thoughts, each tool call together with its result, what the user ran with
`!`, the summaries of compactions and of branches that were left. Left out, and counted: what
extensions have put in (our own injected memory among it), models, labels and names of sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yester.agents.base import Result, State
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import Record, dict_at, nested_text, text_at
from yester.model import Item


class PiSession(Transcript):
    agent = "pi"
    state: State

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Only pi begins a file with a typed head that names version and folder."""
        return record.get("type") == "session" and "cwd" in record and "version" in record

    @staticmethod
    def name_session(path: Path) -> str:
        return path.stem.rpartition("_")[2]

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        kind = text_at(record, "type")
        if kind == "session":
            self.state.session = text_at(record, "id") or self.state.session
            self.place_record(record.get("timestamp"), record.get("cwd"))
            self.reading.skip("session head")
            return
        self.place_record(record.get("timestamp"))
        own = f"{self.state.session}:{record.get('id')}"  # ids are short, and each session's own
        if kind == "message":
            yield from self._read_message(own, dict_at(record, "message"))
        elif kind in ("compaction", "branch_summary"):
            yield self.make_summary(own, record.get("summary"))
        else:
            self.reading.skip(kind.replace("_", " ") or "untyped")

    def _read_message(self, ref: str, message: Record) -> Iterator[Item]:
        role, content = text_at(message, "role"), message.get("content")
        if role in ("user", "assistant"):
            yield from self.read_message(ref, message)
        elif role == "toolResult":
            result = Result(nested_text(content), message.get("isError") is True)
            yield from self.add_result(message.get("toolCallId"), result)
        elif role == "bashExecution":
            given = {"command": text_at(message, "command")}
            status = message.get("exitCode")
            failed = bool(status) or message.get("cancelled") is True
            code = status if isinstance(status, int) else None
            result = Result(text_at(message, "output"), failed, code)
            yield self.make_answered_call(ref, ref, "bash", given, result)
        else:
            self.reading.skip(f"{role or 'untyped'} message")


READER = make_reader(PiSession)
