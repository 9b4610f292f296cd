"""Memories of other programs brought in: each of their forms, again and again, and never a rule."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from tests.foreign import MS, RECALL_SCHEMA, SESSION, build_database, claude_mem_rows
from tests.foreign import claude_mem_schema as schema
from tests.readings import every_item
from yester.capture.rules import Rules
from yester.model import Archived, Filters, Queue, Session
from yester.operate.importers.base import (
    Places,
    find_memories,
    import_files,
    list_worked_folders,
    load_importers,
    name_files,
    open_import,
)
from yester.project import Projects
from yester.store import open_store

IMPORTERS = load_importers()


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path / "memory", now=MS)
    yield opened
    opened.close()


def bring(store, name, *paths, rules=None, folders=()):
    importer = IMPORTERS[name]
    places = Places(name, store, Projects({}), rules or Rules(), folders=folders)
    ingest = open_import(store, importer, places)
    sum(import_files(ingest, importer, name_files(importer, paths)))
    return ingest.report


def by_kind(store):
    return {item.kind: item for item in every_item(store)}


@pytest.mark.requirement("IMP-01")
@pytest.mark.parametrize("version", [5, 8, 16, 17, 24, 33, 49])
def test_every_schema_of_claude_mem_is_read(store, tmp_path, version):
    path = build_database(tmp_path / "claude-mem.db", schema(version), claude_mem_rows())
    before = path.read_bytes()
    report = bring(store, "claude-mem", path)
    assert report.problems == []
    found = by_kind(store)
    note = found["observation"]
    assert (note.source, note.session, note.agent) == ("claude-mem", SESSION, "claude-code")
    assert (note.project, note.type, note.epoch) == ("name:harbour", "bugfix", MS)
    assert (note.origin, note.trust) == ("import", 0.3)
    if version < 8:
        assert note.body.startswith("Refunds are idempotent: the key")
    else:
        assert note.title == "Refunds are idempotent"
        assert note.body.startswith("A second refund")
        assert note.facts == ("The key is the order's number",)
        assert note.concepts == ("gotcha", "refunds")
        assert (note.files_read, note.files_modified) == (
            ("payments/client.py",), ("payments/refund.py",)
        )  # fmt: skip
    assert found["summary"].sections["next_steps"] == "Ask for the limit"
    assert found["prompt"].body == "Always refund by hand, please"
    assert ("message" in found) is (version >= 16)
    assert report.skipped["the observer's own"] == 1
    if version >= 33:
        assert found["memory"].title == "The port office closes at noon"
        assert report.skipped["there twice"] == 1
    if version >= 24:
        (session,) = store.sessions(Filters(session=SESSION))
        assert (session.title, session.started) == ("Refund work", MS - 60_000)
    path.touch()
    again = bring(store, "claude-mem", path)
    assert (again.put.added, again.put.changed) == (0, 0)
    assert path.read_bytes() == before


@pytest.mark.requirement("IMP-01")
def test_an_export_holds_the_same_records_as_its_database(store, tmp_path):
    rows = claude_mem_rows(3)
    bring(store, "claude-mem", build_database(tmp_path / "claude-mem.db", schema(49), rows))
    number = len(every_item(store))
    export = {
        "exportedAt": "2026-02-02", "query": "", "observations": [*rows["observations"], 7],
        "sessions": rows["sdk_sessions"], "summaries": rows["session_summaries"],
        "prompts": rows["user_prompts"],
    }  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps(export))
    report = bring(store, "claude-mem", path)
    assert (report.put.added, len(every_item(store))) == (0, number)
    (problem,) = report.problems
    assert problem.startswith(f"{path}:observations[4]: ")


@pytest.mark.requirement("IMP-01")
def test_a_copy_that_names_no_session_takes_none_from_what_is_there(store, tmp_path):
    rows = claude_mem_rows()
    bring(store, "claude-mem", build_database(tmp_path / "claude-mem.db", schema(49), rows))
    before = every_item(store)
    bare = {name: rows["observations"][0][name] for name in ("id", "title", "created_at_epoch")}
    corpus = tmp_path / "harbour.corpus.json"
    corpus.write_text(json.dumps({"version": 1, "observations": [bare, {**bare, "id": 9}]}))
    report = bring(store, "claude-mem", corpus)
    assert (report.put.added, report.skipped["known already"]) == (1, 1)
    assert every_item(store)[: len(before)] == before


@pytest.mark.requirement("IMP-01")
def test_what_waited_to_be_summed_up_is_the_agents_message(store, tmp_path):
    rows = claude_mem_rows()
    (waiting,) = rows["pending_messages"]
    said = {"id": 2, "tool_name": None, "last_assistant_message": "The refund key is sent."}
    rows["pending_messages"] = [{**waiting, **said}]
    tables = schema(49)
    tables["pending_messages"] += ", last_assistant_message TEXT"
    bring(store, "claude-mem", build_database(tmp_path / "claude-mem.db", tables, rows))
    assert by_kind(store)["message"].role == "assistant"
    assert by_kind(store)["message"].body == "The refund key is sent."


@pytest.mark.requirement("IMP-01")
def test_the_fork_is_read_by_the_ids_that_its_rows_have(store, tmp_path):
    rows = claude_mem_rows()
    for table in ("observations", "session_summaries"):
        rows[table] = [{**row, "sdk_session_id": SESSION} for row in rows[table]]
    path = build_database(tmp_path / ".claude-mem" / "memory.db", schema(11), rows)
    bring(store, "rageltd", path)
    note = by_kind(store)["observation"]
    assert (note.source, note.session) == ("rageltd", SESSION)


@pytest.mark.requirement("IMP-01")
def test_a_database_is_read_while_its_program_writes_it(store, tmp_path):
    path = build_database(tmp_path / "claude-mem.db", schema(49), claude_mem_rows())
    with sqlite3.connect(path) as program:
        program.execute("PRAGMA journal_mode = wal")
        program.execute("UPDATE observations SET title = 'Only in the log'")
        program.commit()
        bring(store, "claude-mem", path)
        assert by_kind(store)["observation"].title == "Only in the log"
    program.close()


@pytest.mark.requirement("IMP-01", "OPS-03")
def test_what_is_imported_is_redacted_belongs_to_its_session_and_makes_no_rule(store, tmp_path):
    with store.transaction("items"):
        store.put_session(Session(SESSION, "claude-code", "git:example.org/acme/harbour", MS, MS))
    rows = claude_mem_rows(2)
    rows["observations"][0]["narrative"] = (
        "The token is ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    )
    rows["observations"][1]["facts"] = 12
    path = build_database(tmp_path / "claude-mem.db", schema(49), rows)
    bring(store, "claude-mem", path)
    items = every_item(store)
    assert {item.project for item in items if item.session} == {"git:example.org/acme/harbour"}
    assert not any("a1B2c3D4" in item.body for item in items)
    assert store.queued_sessions(Queue("distil")) == []
    assert [memo.item.type for memo in store.memos()] == ["note"]


def test_a_name_is_the_folder_in_which_the_user_has_worked(store, tmp_path, own_home):
    folder = tmp_path / "code" / "harbour"
    folder.mkdir(parents=True)
    known = {"projects": {str(folder): {}, "/gone/harbour": {}, str(tmp_path): {}}}
    (own_home / ".claude.json").write_text(json.dumps(known))
    path = build_database(tmp_path / "claude-mem.db", schema(49), claude_mem_rows())
    bring(store, "claude-mem", path, folders=list_worked_folders(own_home))
    assert {item.project for item in every_item(store)} == {f"dir:{folder}"}


def test_what_the_user_keeps_out_stays_out(store, tmp_path):
    path = build_database(tmp_path / "claude-mem.db", schema(49), claude_mem_rows())
    report = bring(store, "claude-mem", path, rules=Rules(names=("harbour",)))
    assert every_item(store) == []
    assert report.skipped["excluded"] > 0


@pytest.mark.requirement("IMP-03")
def test_recall_gives_what_no_transcript_has_any_more(store, tmp_path):
    there = tmp_path / "there.jsonl"
    there.write_text("{}\n")
    session = {"project_path": "/home/sam/harbour", "created_at": MS}
    message = {"type": "user", "timestamp": MS, "content": "Where do refunds live?"}
    rows = {
        "sessions": [
            {**session, "id": "gone", "jsonl_path": "/nowhere/gone.jsonl"},
            {**session, "id": "there", "jsonl_path": str(there)},
        ],
        "messages": [
            {**message, "uuid": "u1", "session_id": "gone"},
            {**message, "uuid": "u2", "session_id": "gone", "type": "assistant",
             "content": "In payments/refund.py"},
            {**message, "uuid": "u3", "session_id": "there"},
            {**message, "uuid": "u4", "session_id": "gone", "content": None},
        ],
        "content": [
            {"content_type": "plan", "source_id": "plans/refunds.md", "timestamp": MS,
             "project_path": "/home/sam/harbour", "title": "Refunds", "content": "First the key."}
        ],
    }  # fmt: skip
    path = build_database(tmp_path / "session-index.db", RECALL_SCHEMA, rows)
    report = bring(store, "recall", path)
    found = by_kind(store)
    assert found["prompt"].session == found["message"].session == "gone"
    assert found["note"].title == "Refunds"
    assert report.skipped["its transcript is there"] == 1
    assert report.problems == [f"{path}:messages/4: holds no text"]


@pytest.mark.requirement("IMP-03")
def test_session_archives_are_read_but_for_those_that_yester_wrote(store, tmp_path, own_home):
    with store.transaction("places"):
        own = store.put_session(Session("0badcafe-1", "claude-code", "name:shop", MS, MS))
        store.append([Archived(own, MS, MS)])
    folder = own_home / ".claude" / "projects" / "-home-sam-harbour" / "memory" / "sessions"
    folder.mkdir(parents=True)
    (folder / "2026-02-02.md").write_text(
        "## Session 1f3a9c2e (17:40)\n\n- Decision: One key an order\n\n"
        "## Session 0badcafe (18:00)\n\n- Lesson: ours\n"
    )
    (found,) = find_memories(own_home, [IMPORTERS["recall-archive"]])
    report = bring(store, "recall-archive", *found.files)
    (item,) = every_item(store)
    assert item.facts == ("Decision: One key an order",)
    assert report.skipped["an archive of yester's"] == 1


NOTE = """---
title: Search design
permalink: design/search
tags: [Search, ranking]
---

# Search design

- [decision] Terms are weighted by field #ranking
- implements [[Search spec]]
"""


def test_notes_of_basic_memory_are_memories_that_follow_their_files(store, own_home):
    folder = own_home / "notes"
    folder.mkdir()
    (folder / "search.md").write_text(NOTE)
    (folder / "other.md").write_text("# Not one of its notes\n")
    (own_home / ".basic-memory").mkdir()
    settings = {"projects": {"work": {"path": str(folder)}}}
    (own_home / ".basic-memory" / "config.json").write_text(json.dumps(settings))
    (found,) = find_memories(own_home, [IMPORTERS["basic-memory"]])
    bring(store, "basic-memory", *found.files)
    (item,) = every_item(store)
    assert (item.kind, item.title, item.project) == ("memory", "Search design", "name:work")
    assert item.tags == ("search", "ranking")
    assert item.facts == ("decision: Terms are weighted by field #ranking",)
    (folder / "search.md").write_text(NOTE.replace("by field", "by place"))
    report = bring(store, "basic-memory", folder)
    assert (report.put.changed, len(every_item(store))) == (1, 1)


@pytest.mark.parametrize("name", ["memory.json", "memory.jsonl"])
def test_the_graph_of_the_mcp_memory_server_is_read_line_by_line(store, tmp_path, name):
    path = tmp_path / name
    entity = {"type": "entity", "name": "Harbour", "entityType": "System",
              "observations": ["Written in Go"]}  # fmt: skip
    relation = {"type": "relation", "from": "Harbour", "to": "Ledger", "relationType": "uses"}
    lines = [json.dumps(entity), "{broken}", json.dumps(relation), json.dumps({"type": "entity"})]
    path.write_text("\n".join([*lines, ""]))
    report = bring(store, "mcp-memory", path)
    (item,) = every_item(store)
    assert item.body == "- Written in Go\n- Harbour uses Ledger"
    assert [problem.split(": ")[0] for problem in report.problems] == [f"{path}:2", f"{path}:4"]


@pytest.mark.requirement("IMP-01")
def test_import_alone_shows_what_there_is_and_imports_what_is_named(run, own_home):
    path = own_home / ".claude-mem" / "claude-mem.db"
    build_database(path, schema(49), claude_mem_rows(3))
    shown = run("import")
    assert (shown.code, "claude-mem" in shown.out) == (0, True)
    (row,) = run("import", "--json").json["found"]
    assert (row["records"], row["already_in"], row["oldest"]) == (7, 0, "2026-02-02")
    dry = run("import", "claude-mem", "--dry-run", "--json").json
    assert (dry["records"], dry["known"], dry["kinds"]["observation"]) == (7, 0, 3)
    assert run("recall", "refunds").code == 1
    done = run("import", "claude-mem")
    assert done.out.strip() == "7 new, 2 left out"
    assert "Refunds are idempotent" in run("recall", "idempotent refunds").out
    assert run("import", "--json").json["found"][0]["already_in"] == 7
    assert run("import", "claude-mem").out.strip() == "nothing new in 1 file"
    assert run("import", "rageltd").code == 1


def test_on_a_terminal_each_source_is_asked_for_and_silence_means_no(home, own_home, tmp_path):
    build_database(own_home / ".claude-mem" / "claude-mem.db", schema(49), claude_mem_rows())
    note = own_home / "basic-memory" / "search.md"
    note.parent.mkdir()
    note.write_text(NOTE)
    here, there = os.openpty()
    words = [sys.executable, "-m", "yester", "--home", str(home), "import"]
    # On standard error there is nobody: a bar would be in the way.
    process = subprocess.Popen(words, stdin=there, stdout=subprocess.PIPE, cwd=tmp_path)
    os.write(here, b"\ny\n")
    printed = process.communicate()[0].decode()
    os.close(here)
    os.close(there)
    assert printed.count("[y/N]") == 2
    opened = open_store(home, now=MS)
    assert [item.source for item in every_item(opened)] == ["basic-memory"]
    opened.close()
