"""Cline's tasks, after its documentation; not tried with the program itself.

tasks/ID/api_conversation_history.json is a list of messages in the form of the models' interfaces,
and state/taskHistory.json tells the folder of each task. Left out is what Cline puts into messages:
the state of the editor around what was typed, and its remarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yester.agents.base import Reading
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import decode_json, digest, parse_time, text_at, to_text
from yester.files import read_bytes
from yester.model import Item

_MOST = 16 << 20  # bytes of the list of tasks


class Task(Transcript):
    agent = "cline"

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        task = reading.path.absolute().parent
        self.epoch = parse_time(int(task.name) if task.name.isdecimal() else 0)
        self.place_session(_find_folder(task))

    @classmethod
    def is_own_file(cls, path: Path) -> bool:
        return path.name == "api_conversation_history.json"

    @staticmethod
    def name_session(path: Path) -> str:
        return path.absolute().parent.name

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        self.epoch = parse_time(record.get("ts")) or self.epoch
        own = digest(text_at(record, "role"), to_text(record.get("content")))
        yield from self.read_message(f"{self.state.session}:{own}", record)


def _find_folder(task: Path) -> str:
    try:
        listed = decode_json(read_bytes(task.parent.parent / "state" / "taskHistory.json", _MOST))
    except OSError:
        return ""
    found = [one for one in listed or () if text_at(one, "id") == task.name]
    return text_at(found[0], "cwdOnTaskInitialization") if found else ""


READER = make_reader(Task)
