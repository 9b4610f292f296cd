"""Factory droid's sessions, after other readers of them; not tried with the program itself.

A head (`session_start`) with folder and title, then messages in the form of the models' interfaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yester.agents.base import find_title
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import dict_at, text_at
from yester.model import Item


class DroidSession(Transcript):
    agent = "droid"

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Only droid begins a file with this head."""
        return record.get("type") == "session_start" and "cwd" in record

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        if record.get("type") == "session_start":
            self.state.session = text_at(record, "id") or self.state.session
            self.state.title = find_title(record.get("sessionTitle"), record.get("title"))
        self.place_record(record.get("timestamp"), record.get("cwd"))
        if record.get("type") == "message":
            yield from self.read_message(record["id"], dict_at(record, "message"))
        else:
            self.reading.skip(text_at(record, "type") or "untyped")


READER = make_reader(DroidSession)
