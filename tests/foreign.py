"""Memories of other programs, as their schemas have them: built by tests, a few rows each."""

from __future__ import annotations

import json
import sqlite3

MS = 1_770_000_000_000
SESSION = "5f0c1c52-90b1-4c3c-8f5e-2b1f3f9f0a11"

# claude-mem's tables over time, by its migration: what a version added to the one before it.
_OLD = {
    "sdk_sessions": "id INTEGER PRIMARY KEY, claude_session_id TEXT, sdk_session_id TEXT,"
    " project TEXT, user_prompt TEXT, started_at TEXT, started_at_epoch INTEGER,"
    " completed_at TEXT, completed_at_epoch INTEGER, status TEXT",
    "observations": "id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT, text TEXT,"
    " type TEXT, created_at TEXT, created_at_epoch INTEGER",
    "session_summaries": "id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT,"
    " request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,"
    " files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT, created_at_epoch INTEGER",
    "user_prompts": "id INTEGER PRIMARY KEY, claude_session_id TEXT, prompt_number INTEGER,"
    " prompt_text TEXT, created_at TEXT, created_at_epoch INTEGER",
}
_STRUCTURED = (
    ", title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,"
    " files_modified TEXT, prompt_number INTEGER"
)
_SERVER = {
    "projects": "id TEXT PRIMARY KEY, name TEXT, root_path TEXT",
    "server_sessions": "id TEXT PRIMARY KEY, project_id TEXT, content_session_id TEXT,"
    " memory_session_id TEXT, platform_source TEXT, title TEXT, started_at_epoch INTEGER",
    "memory_items": "id TEXT PRIMARY KEY, project_id TEXT, server_session_id TEXT,"
    " legacy_observation_id INTEGER, kind TEXT, type TEXT, title TEXT, text TEXT, narrative TEXT,"
    " facts TEXT, concepts TEXT, created_at_epoch INTEGER",
}


def claude_mem_schema(version):
    """table → columns, as after this migration of claude-mem."""
    tables = dict(_OLD)
    if version >= 8:
        tables["observations"] += _STRUCTURED
    if version >= 11:
        tables["observations"] += ", discovery_tokens INTEGER"
        tables["session_summaries"] += ", discovery_tokens INTEGER"
    if version >= 16:
        tables["pending_messages"] = (
            "id INTEGER PRIMARY KEY, claude_session_id TEXT, tool_name TEXT, tool_input TEXT,"
            " tool_response TEXT, cwd TEXT, created_at_epoch INTEGER"
        )
    if version >= 17:
        tables = {
            name: columns.replace("claude_session_id", "content_session_id").replace(
                "sdk_session_id", "memory_session_id"
            )
            for name, columns in tables.items()
        }
    if version >= 24:
        tables["sdk_sessions"] += ", custom_title TEXT, platform_source TEXT"
        tables["observations"] += ", content_hash TEXT"
    if version >= 33:
        tables |= _SERVER
    if version >= 49:
        tables["observations"] += ", agent_type TEXT, metadata TEXT, synced_at INTEGER"
    return tables


def build_database(path, tables, rows):
    """A database of these tables; of a row only what its table has a column for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as db:
        for name, columns in tables.items():
            db.execute(f"CREATE TABLE {name} ({columns})")
        for table, found in rows.items():
            if table not in tables:
                continue
            known = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            for row in found:
                kept = {name: value for name, value in row.items() if name in known}
                marks = ", ".join("?" * len(kept))
                db.execute(
                    f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({marks})", [*kept.values()]
                )
    db.close()
    return path


def claude_mem_rows(number=1):
    """What a short session of claude-mem leaves, under all the names its columns have had."""
    ids = {
        "memory_session_id": "mem-1", "sdk_session_id": "mem-1",
        "content_session_id": SESSION, "claude_session_id": SESSION,
    }  # fmt: skip
    linked = {name: ids[name] for name in ("memory_session_id", "sdk_session_id")}
    observation = {
        **linked, "project": "harbour", "type": "bugfix", "title": "Refunds are idempotent",
        "text": "Refunds are idempotent: the key is the order's number.", "subtitle": "by key",
        "narrative": "A second refund with the same key answers what the first did.",
        "facts": json.dumps(["The key is the order's number"]),
        "concepts": json.dumps(["gotcha: looks harmless", "refunds"]),
        "files_read": '["payments/client.py"]', "files_modified": '["payments/refund.py"]',
        "discovery_tokens": 900, "created_at": "2026-02-02T02:40:00Z", "created_at_epoch": MS,
    }  # fmt: skip
    return {
        "sdk_sessions": [
            {**ids, "id": 1, "project": "harbour", "started_at_epoch": MS - 60_000,
             "platform_source": "claude", "custom_title": "Refund work"}
        ],
        "observations": [
            {**observation, "id": n + 1, "title": f"{observation['title']} {n or ''}".strip()}
            for n in range(number)
        ],
        "session_summaries": [
            {**linked, "id": 1, "project": "harbour", "request": "Make refunds safe to repeat",
             "completed": "The refund key is sent", "next_steps": "Ask for the limit",
             "created_at_epoch": MS + 1}
        ],
        "user_prompts": [
            {**ids, "id": 1, "prompt_number": 1, "prompt_text": "Always refund by hand, please",
             "created_at_epoch": MS - 50_000},
            {**ids, "id": 2, "prompt_number": 2, "created_at_epoch": MS - 40_000,
             "prompt_text": "You are a Claude-Mem, a specialized observer tool"},
        ],
        "pending_messages": [
            {**ids, "id": 1, "tool_name": "Bash", "tool_input": "make check",
             "tool_response": "4 passed", "cwd": "/home/sam/harbour", "created_at_epoch": MS}
        ],
        "projects": [{"id": "p1", "name": "harbour"}],
        "server_sessions": [{"id": "s1", "project_id": "p1", "content_session_id": SESSION}],
        "memory_items": [
            {"id": "m1", "project_id": "p1", "server_session_id": "s1", "kind": "manual",
             "type": "note", "title": "The port office closes at noon", "text": "Call before noon.",
             "created_at_epoch": MS},
            {"id": "m2", "project_id": "p1", "legacy_observation_id": 1, "kind": "observation",
             "type": "bugfix", "title": "Refunds are idempotent", "created_at_epoch": MS},
        ],
    }  # fmt: skip


RECALL_SCHEMA = {
    "sessions": "id TEXT, project_path TEXT, jsonl_path TEXT UNIQUE, created_at INTEGER,"
    " updated_at INTEGER, message_count INTEGER, title TEXT",
    "messages": "id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, session_id TEXT, type TEXT,"
    " content TEXT, tool_name TEXT, file_paths TEXT, timestamp INTEGER",
    "content": "id INTEGER PRIMARY KEY, content_type TEXT, source_id TEXT, project_path TEXT,"
    " title TEXT, content TEXT, timestamp INTEGER",
    "index_meta": "key TEXT, value TEXT",
}
