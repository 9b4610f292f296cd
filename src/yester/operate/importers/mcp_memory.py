"""The MCP memory server's graph: a file of JSON lines, entities and the relations between them.

An entity is one memory: its observations as text, and what it is related to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from yester.agents.sources import BadLine, read_records
from yester.agents.values import Record, dict_at, load_object, text_at
from yester.memories.memory import normalise_tags
from yester.model import Item
from yester.operate.importers.base import Import, MemoryReader, read_texts

# Where the user has told a client which file the server is to use.
_SETTINGS = (
    ".claude.json", ".cursor/mcp.json", ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)  # fmt: skip
_FIRST = 5  # records that tell whose file it is


def _is_own_file(path: Path) -> bool:
    if path.suffix in (".json", ".jsonl"):
        with suppress(OSError):
            found = islice(read_records(path, 0, 0), _FIRST)
            return any(isinstance(one, dict) and _is_own_record(one) for *_, one in found)
    return False


def _is_own_record(record: Record) -> bool:
    entity = record.get("type") == "entity" and "entityType" in record
    return entity or (record.get("type") == "relation" and "relationType" in record)


def _read_graph(graph: Import) -> Iterator[Item]:
    reading = graph.reading
    related: dict[str, list[str]] = {}
    for *_, record in read_records(reading.path, 0, 0):
        if isinstance(record, dict) and record.get("type") == "relation":
            said = f"{text_at(record, 'relationType')} {text_at(record, 'to')}"
            related.setdefault(text_at(record, "from"), []).append(said)
    for _, end, number, record in read_records(reading.path, 0, 0):
        reading.offset = end
        if isinstance(record, BadLine):
            reading.report_bad(number, record.reason)
        elif record.get("type") == "entity":
            name = text_at(record, "name").strip()
            if name:
                yield _make_memory(graph, record, name, related.get(name, []))
            else:
                reading.report_bad(number, "an entity without a name")
        elif record.get("type") != "relation":
            reading.report_bad(number, "neither entity nor relation")


def _make_memory(graph: Import, record: Record, name: str, related: list[str]) -> Item:
    observations, kind = read_texts(record.get("observations")), text_at(record, "entityType")
    said = (*observations, *dict.fromkeys(f"{name} {one}" for one in related))
    return graph.make_item(
        name, "memory", "mcp-memory", type="note", title=name,
        body="\n".join(f"- {one}" for one in said) or name, tags=normalise_tags([kind]),
        epoch=graph.reading.modified_at,
    )  # fmt: skip


def _list_more(home: Path) -> Iterator[Path]:
    for settings in _SETTINGS:
        servers = dict_at(load_object(home / settings) or {}, "mcpServers")
        for server in servers.values():
            path = text_at(dict_at(server, "env"), "MEMORY_FILE_PATH")
            if path.startswith(("/", "~")):
                yield Path(path).expanduser()


READERS = {"mcp-memory": MemoryReader(_is_own_file, _read_graph, _list_more)}
