"""basic-memory's notes: Markdown with front matter, observations and relations, one file a note.

    ---
    title: Search design
    permalink: design/search
    tags: [search, ranking]
    ---
    - [decision] Terms are weighted by field #ranking
    - implements [[Search spec]]

A note is one memory: its text as it stands, its observations as facts, its tags as tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yester.agents.sources import read_head
from yester.agents.values import dict_at, load_object
from yester.files import read_bytes
from yester.memories.memory import normalise_tags
from yester.model import Item
from yester.operate.importers.base import Import, MemoryReader, read_time

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.S)
_FIELD = re.compile(r"^([A-Za-z_]+):[ \t]*(.*(?:\n[ \t]*-[ \t].*)*)", re.M)
_OBSERVATION = re.compile(r"^[ \t]*[-*] \[([^\]\[\n]{1,60})\] (.+)$", re.M)
_TAG = re.compile(r"(?:^|\s)#([\w/-]+)")
_LARGEST = 1 << 24  # bytes


def _is_own_file(path: Path) -> bool:
    """A note has a permalink; other Markdown may have front matter, too."""
    head = read_head(path, 4096) if path.suffix == ".md" else b""
    found = _FRONT.match(head.decode("utf-8", "replace"))
    return bool(found and "permalink" in _read_fields(found[1]))


def _read_fields(front: str) -> dict[str, str]:
    return {name: value.strip() for name, value in _FIELD.findall(front.replace("\r", ""))}


def _read_list(value: str) -> list[str]:
    """A list as YAML writes it: in brackets, with dashes, or one word."""
    parts = value.strip("[]").split(",") if value.startswith("[") else value.split("\n")
    return [part.strip().removeprefix("- ").strip("\"' ") for part in parts if part.strip()]


def _read_note(source: Import) -> Iterator[Item]:
    reading, path = source.reading, source.reading.path
    text = read_bytes(path, _LARGEST).decode("utf-8", "replace")
    front = _FRONT.match(text)
    if front is None:
        reading.report_bad(0, "has no front matter")
        return
    fields, body = _read_fields(front[1]), text[front.end() :].strip()
    name, root = _find_notebook(path)
    permalink = fields.get("permalink", "").strip("\"'") or str(path.relative_to(root))
    facts = [f"{kind}: {said.strip()}" for kind, said in _OBSERVATION.findall(body)]
    tags = normalise_tags([*_read_list(fields.get("tags", "")), *_TAG.findall(body)])
    yield source.make_item(
        f"{name}/{permalink}", "memory", name, body=body, type="note",
        title=fields.get("title", "").strip("\"'") or path.stem, facts=tuple(dict.fromkeys(facts)),
        tags=tags, epoch=read_time(fields.get("created")) or reading.modified_at,
        updated=reading.modified_at,
    )  # fmt: skip


# --- where its notebooks are ---------------------------------------------------------------------


def _list_notebooks(home: Path) -> dict[Path, str]:
    """folder → name, as its settings say"""
    settings: Any = load_object(home / ".basic-memory" / "config.json") or {}
    found = {}
    for name, place in dict_at(settings, "projects").items():
        folder = place.get("path") if isinstance(place, dict) else place
        if isinstance(folder, str):
            found[Path(folder).expanduser()] = str(name)
    return found


def _find_notebook(path: Path) -> tuple[str, Path]:
    """The name and folder of the notebook that a note stands in."""
    for folder, name in _list_notebooks(Path.home()).items():
        if folder in path.parents:
            return name, folder
    usual = Path.home() / "basic-memory"
    return ("basic-memory", usual) if usual in path.parents else (path.parent.name, path.parent)


def _list_more(home: Path) -> Iterator[Path]:
    for folder in _list_notebooks(home):
        if folder != home / "basic-memory":
            yield from sorted(folder.rglob("*.md"))


READERS = {"basic-memory": MemoryReader(_is_own_file, _read_note, _list_more)}
