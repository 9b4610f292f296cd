"""Kimi Code's contexts, after its documentation; not tried with the program itself.

sessions/MD5/SESSION/context.jsonl holds messages without ids and times, between marks of the client
(`_checkpoint`, `_usage`). MD5 is that of the folder, which kimi.json lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

from yester.agents.base import Reading
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import dicts_at, digest, load_object, text_at, to_text
from yester.model import Item


class Context(Transcript):
    agent = "kimi-code"

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.epoch = reading.modified_at
        if not self.state.project:
            self.place_session(_find_folder(reading.path.absolute()))

    @classmethod
    def is_own_file(cls, path: Path) -> bool:
        return path.name == "context.jsonl" and super().is_own_file(path)

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        return text_at(record, "role") in ("_checkpoint", "_usage", "_system_prompt")

    @staticmethod
    def name_session(path: Path) -> str:
        return path.absolute().parent.name

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        # A compaction writes the file anew: lines are no identity, words are.
        own = digest(text_at(record, "role"), to_text(record.get("content")))
        yield from self.read_message(f"{self.state.session}:{own}", record)


def _find_folder(path: Path) -> str:
    above = path.parents[min(3, len(path.parents) - 1)]
    listed = dicts_at(load_object(above / "kimi.json"), "work_dirs")
    for folder in (text_at(one, "path") for one in listed):
        if md5(folder.encode(), usedforsecurity=False).hexdigest() == path.parent.parent.name:
            return folder
    return ""


READER = make_reader(Context)
