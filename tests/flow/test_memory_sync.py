"""`yester memory sync` and `yester import claude-memory`: files of other tools and the store."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yester
from tests.written import HOSTILE, index_paths, memory
from yester.memories.files import (
    FILED,
    MemoryFile,
    MemoryFolder,
    narrow_limit,
    parse_memory_file,
    redact_memory_file,
)
from yester.memories.memory import plain_form
from yester.operations.context import ContextRequest, build_context

pytestmark = pytest.mark.requirement("MEM-06")

CONTENTS = {
    "decision": {"status": "accepted", "context": "ledger", "decision": "Use Postgres",
                 "alternatives": [{"option": "SQLite", "rejected_reason": "one writer"}],
                 "rationale": ["we know it"], "consequences": ["a server to run"]},
    "session_summary": {"goal": "Ship the ledger", "outcome": "partial", "completed": ["schema"],
                        "next_actions": ["indexes"]},
    "runbook": {"trigger": "Disk full", "steps": ["look", "clean"], "verification": "df"},
    "constraint": {"kind": "policy", "rule": "No PII in logs", "impact": ["mask it"],
                   "severity": "high", "active": True, "expires": "none"},
    "tech_debt": {"status": "open", "priority": "low", "description": "Two date formats",
                  "reason_deferred": "time", "suggested_fix": ["one of them"]},
    "preference": {"topic": "naming", "value": "Short names", "reason": "readable",
                   "strength": "strong", "examples": {"prefer": ["id"], "avoid": ["identifier"]}},
}  # fmt: skip
FOLDERS = {"decision": "decisions", "session_summary": "sessions", "runbook": "runbooks",
           "constraint": "constraints", "tech_debt": "tech-debt",
           "preference": "preferences"}  # fmt: skip


@pytest.fixture
def shop(tmp_path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


@pytest.fixture
def root(shop) -> Path:
    return shop / ".claude" / "memory"


@pytest.fixture
def sync(run, shop):
    def sync(*words, code=0, cwd=shop):
        ran = run("memory", "sync", *map(str, words), "--json", cwd=cwd)
        assert ran.code == code, ran.err
        return ran.json

    return sync


def put(root: Path, one: MemoryFile, data: bytes = b"") -> Path:
    path = root / FOLDERS.get(one.category, one.category) / f"{one.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data or one.to_bytes())
    return path


def theirs(root: Path) -> dict[str, bytes]:
    """A tree as another tool leaves it: its own indentation, order, escapes and keys."""
    for number, category in enumerate(FILED):
        one = memory(f"one-{number}", category, content={**CONTENTS[category], "x_extra": [1.50]},
                     title=f"Größe of {category}", related_files=["a b.py"])  # fmt: skip
        raw = json.dumps({"zebra": {"a": 1}, **one.values}, indent=4, ensure_ascii=True)
        put(root, one, raw.replace("\n", "\r\n" if number % 2 else "\n").encode())
    return snapshot(root)


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*.json")}


def what(done) -> list[str]:
    return [f"{one['what']} {one['key']}" for one in done["done"]]


def shown(shop, name) -> dict:
    """What the store of these tests has of a memory."""
    with yester.open(shop.parent / "memory") as opened:
        memo = opened.memories.get(name)
    return {
        **plain_form(memo), "version": memo.version, "since": memo.since // 1000,
        "epoch": memo.item.epoch // 1000, "updated": memo.item.updated // 1000,
        "trust": memo.item.trust,
    }  # fmt: skip


@pytest.mark.requirement("IMP-02")
def test_a_tree_of_another_tool_goes_in_and_comes_out_byte_for_byte(run, sync, shop, root):
    before = theirs(root)
    keys = sorted(f"{category}/one-{number}" for number, category in enumerate(FILED))
    assert what(sync()) == [f"take {key}" for key in keys]
    assert snapshot(root) == before
    assert len(index_paths((root / "index.md").read_text("utf-8"))) == 6
    assert sync()["done"] == []
    fresh = shop.parent / "fresh"
    assert len(sync(fresh)["done"]) == 6
    assert snapshot(fresh) == before
    hit = run("recall", "disk full", "--json", cwd=shop).json["hits"][0]
    assert (hit["type"], hit["project"]) == ("runbook", "shop")
    kept = shown(shop, "one-0")
    assert (kept["origin"], kept["trust"], kept["content"]) == ("file", 0.5, CONTENTS["decision"])
    (change,) = run("memory", "history", "one-0", "--json", cwd=shop).json["changes"]
    assert (change["who"], change["what"]) == ("sync", "create")
    assert str(root) in change["why"]


def test_dates_come_along_so_an_old_memory_is_not_a_new_one(run, sync, shop, root):
    put(root, memory(created_at="2025-01-01T00:00:00Z", updated_at="2025-02-01T00:00:00Z"))
    put(root, memory("late", title="Later", updated_at="2999-01-01T00:00:00Z"))
    sync()
    kept = shown(shop, "use-postgres")
    assert (kept["epoch"], kept["updated"]) == (1_735_689_600, 1_738_368_000)
    assert shown(shop, "late")["updated"] < 32_000_000_000, "nothing comes from the future"


def test_an_edit_in_the_store_changes_a_file_only_where_it_must(run, sync, root, shop):
    theirs(root)
    sync()
    path = root / "decisions" / "one-0.json"
    before = json.loads(path.read_bytes())
    assert run("memory", "edit", "one-0", "--tag", "money", "--why", "for finance",
               cwd=shop).code == 0  # fmt: skip
    assert what(sync()) == ["write decision/one-0"]
    values = json.loads(path.read_bytes())
    same = [name for name in before if values[name] == before[name]]
    assert same == [name for name in before if name not in ("updated_at", "tags")]
    assert list(values)[: len(before)] == list(before)
    assert values["tags"] == ["postgres", "data-base", "money"]
    assert (values["zebra"], values["content"]["x_extra"]) == ({"a": 1}, [1.5])
    assert values["changes"][0]["summary"] == "for finance"
    assert (values["times_updated"], values["created_at"]) == (1, "2026-03-01T09:00:00Z")
    assert sync()["done"] == []
    assert run("memory", "undo", "one-0", cwd=shop).code == 0
    sync()
    assert json.loads(path.read_bytes())["tags"] == ["postgres", "data-base"]


def test_a_field_edited_in_the_store_leaves_the_fields_of_others_alone(run, sync, root, shop):
    theirs(root)
    sync()
    run("memory", "edit", "one-0", "--set", "context=the ledger of 2026", cwd=shop)
    sync()
    values = json.loads((root / "decisions" / "one-0.json").read_bytes())
    assert values["content"] == {
        **CONTENTS["decision"], "context": "the ledger of 2026", "x_extra": [1.5],
    }  # fmt: skip


def test_an_edited_file_goes_into_the_store(run, sync, root, shop):
    theirs(root)
    sync()
    path = next(root.glob("runbooks/*.json"))
    path.write_bytes(path.read_bytes().replace(b"clean", b"clean up").replace(b"zebra", b"yak"))
    raw = path.read_bytes()
    assert what(sync()) == [f"take runbook/{path.stem}"]
    kept = shown(shop, path.stem)
    assert kept["content"]["steps"] == ["look", "clean up"]
    assert kept["version"] == 2
    assert path.read_bytes() == raw
    assert sync()["done"] == []
    fresh = shop.parent / "fresh"
    sync(fresh)
    assert (fresh / "runbooks" / path.name).read_bytes() == raw


def test_what_was_remembered_gets_a_file_and_rules_and_notes_do_not(run, sync, root, shop):
    for words in (("--type", "decision", "Use UTC because reports broke"),
                  ("--type", "note", "x"), ("--type", "rule", "Never push"),
                  ("--global", "--type", "decision", "Everywhere the same")):  # fmt: skip
        assert run("remember", *words, cwd=shop).code == 0
    assert run("memory", "sync", cwd=shop).code == 1, "nothing is made unless it is named"
    assert not (shop / ".claude").exists()
    assert what(sync(shop)) == ["write decision/use-utc"]
    one = parse_memory_file((root / "decisions" / "use-utc.json").read_bytes())
    assert one.content["rationale"] == ["reports broke"]
    assert one.status == "active"
    assert "- [DECISION] Use UTC -> .claude/memory/decisions/use-utc.json" in (
        root / "index.md"
    ).read_text("utf-8")
    assert sync()["done"] == []


def test_changed_on_both_sides_both_versions_stay_on_both_sides(run, sync, root, shop):
    put(root, memory())
    sync()
    run("memory", "edit", "use-postgres", "--title", "Postgres it is", cwd=shop)
    put(root, memory(title="MySQL it is", updated_at="2026-03-02T00:00:00Z"))
    ran = run("memory", "sync", cwd=shop)
    assert ran.code == 3
    assert "conflict decision/use-postgres: changed on both sides; the store's version" in ran.out
    titles = {one.title for one in MemoryFolder(root).memories.values()}
    listed = run("memory", "list", "--json", "-p", "shop", cwd=shop).json["hits"]
    assert titles == {hit["title"] for hit in listed} == {"Postgres it is", "MySQL it is"}
    assert sync()["done"] == []


def test_deleted_on_one_side(run, sync, root, shop):
    theirs(root)
    sync()
    (debt,) = root.glob("tech-debt/*.json")
    (decision,) = root.glob("decisions/*.json")
    raw = debt.read_bytes()
    debt.unlink()
    decision.unlink()
    assert what(sync()) == [f"retire decision/{decision.stem}", f"retire tech_debt/{debt.stem}"]
    assert shown(shop, debt.stem)["status"] == "retired"
    assert shown(shop, decision.stem)["status"] == "archived", "never deleted"
    assert sync()["done"] == []
    assert not debt.exists()
    debt.write_bytes(raw)  # another branch, say
    assert what(sync()) == [f"take tech_debt/{debt.stem}"]
    assert shown(shop, debt.stem)["status"] == "active"
    assert debt.read_bytes() == raw


def test_statuses_with_reasons_and_dates_go_both_ways(run, sync, root, shop):
    put(root, memory("a", record_status="retired", retired_at="2026-04-01T00:00:00Z",
                     retired_reason="moved on"))  # fmt: skip
    put(root, memory("b", title="B", record_status="archived", archived_reason="old"))
    path = put(root, memory("c", title="C"))
    sync()
    kept = shown(shop, "a")
    assert (kept["status"], kept["reason"], kept["since"]) == ("retired", "moved on", 1_775_001_600)
    assert (shown(shop, "b")["status"], shown(shop, "b")["reason"]) == ("archived", "old")
    run("memory", "archive", "c", "--why", "done with", cwd=shop)
    sync()
    values = json.loads(path.read_bytes())
    assert (values["record_status"], values["archived_reason"]) == ("archived", "done with")
    assert values["archived_at"] == values["updated_at"]
    run("memory", "restore", "c", cwd=shop)
    sync()
    values = json.loads(path.read_bytes())
    assert values["record_status"] == "active"
    assert "archived_at" not in values
    put(root, memory("c", title="C", record_status="retired", retired_at="2001-01-01T00:00:00Z",
                     updated_at="2999-01-01T00:00:00Z"))  # fmt: skip
    sync()
    assert shown(shop, "c")["status"] == "retired"
    gone = run("memory", "gc", "--json", cwd=shop)
    assert [one["slug"] for one in gone.json["due"]] == ["a"], "its grace begins when it is met"


def test_what_was_superseded_is_retired_in_its_file_and_says_by_what(run, sync, root, shop):
    put(root, memory())
    sync()
    run("remember", "Use MySQL", "--type", "decision", "--supersedes", "use-postgres", cwd=shop)
    sync()
    values = json.loads((root / "decisions" / "use-postgres.json").read_bytes())
    assert (values["record_status"], values["retired_reason"]) == (
        "retired", "superseded by use-mysql",
    )  # fmt: skip
    assert sync()["done"] == []
    run("memory", "edit", "use-mysql", "--title", "MySQL", cwd=shop)
    assert what(sync()) == ["write decision/use-mysql"]


@pytest.mark.requirement("MEM-02", "IMP-02")
def test_what_is_retired_does_not_come_back_with_an_old_file(run, sync, root, shop):
    path = put(root, memory("x", "constraint", content=CONTENTS["constraint"]))
    old = path.read_bytes()
    sync()
    run("memory", "retire", "x", cwd=shop)
    sync()
    assert json.loads(path.read_bytes())["record_status"] == "retired"
    path.write_bytes(old)  # as git does on a checkout
    done = sync(code=3)
    assert (
        "since this file was written; to bring it back: yester memory restore"
        in (done["problems"][0])
    )
    assert run("import", "claude-memory", str(root), "--json", cwd=shop).json["stayed"] == 1
    assert shown(shop, "x")["status"] == "retired"
    fresh = shop.parent / "other" / ".claude" / "memory"
    put(fresh, memory("x"), old)
    sync(fresh, "--project", "shop")
    assert shown(shop, "x")["status"] == "retired"


@pytest.mark.requirement("MEM-02", "IMP-02")
def test_what_was_let_go_does_not_come_back(run, sync, root, shop, home):
    long_ago = {"record_status": "retired", "retired_at": "2020-01-01T00:00:00Z"}
    path = put(root, memory("x", "constraint", content=CONTENTS["constraint"], **long_ago))
    sync()
    assert run("memory", "gc", "--apply", cwd=shop).code == 0
    assert what(sync()) == ["delete constraint/x"]
    put(root, memory("x", "constraint", content=CONTENTS["constraint"]))
    assert "was let go" in sync(code=3)["problems"][0]
    assert path.exists(), "and the file is left alone"
    assert run("import", "claude-memory", str(root), "--json").json["stayed"] == 1
    assert run("memory", "list", "--status", "all", cwd=shop).code == 1


def test_what_cannot_be_read_or_kept_is_named_and_stands_in_nobodys_way(run, sync, root, shop):
    put(root, memory("good"))
    bad = put(root, memory("bad"), b'{"category": "decision", ')
    put(root, memory("odd", "recipe"))
    put(root, memory("wrong", content={"decision": "x", "status": "perhaps"}))
    (root / "memory-config.json").write_text("{")
    ran = run("memory", "sync", cwd=shop)
    assert ran.code == 3
    assert f"yester: {bad}: is not JSON (Expecting" in ran.err
    assert "category is 'recipe', but must be one of decision" in ran.err
    assert "decision.status is 'perhaps', but must be one of proposed" in ran.err
    assert "memory-config.json: the defaults are used, since it cannot be: Expecting" in ran.err
    assert ran.err.count("\n") == 4
    assert "taken    decision/good" in ran.out
    assert bad.read_bytes() == b'{"category": "decision", '
    assert len(sync(code=3)["problems"]) == 3


def test_an_emptied_side_stops_the_sync_and_names_the_fix(run, sync, root, shop):
    theirs(root)
    sync()
    shutil.rmtree(root)
    root.mkdir()
    ran = run("memory", "sync", cwd=shop)
    assert ran.code == 2
    assert "holds no memory, but held 6 at the last sync" in ran.err
    assert ran.err.strip().endswith("say so: --emptied")
    assert len(run("memory", "list", "--json", cwd=shop).json["hits"]) == 6
    assert len(sync("--emptied")["done"]) == 6
    assert run("memory", "list", cwd=shop).code == 1


def test_a_dry_run_tells_and_does_nothing(run, sync, root, shop, home):
    before = theirs(root)
    done = sync("--dry-run")
    assert len(done["done"]) == 6
    assert not (root / "index.md").exists()
    assert not (home / "yester.db").exists()
    sync()
    run("memory", "archive", "one-0", cwd=shop)
    assert what(sync("--dry-run")) == ["write decision/one-0"]
    assert snapshot(root) == before
    assert what(sync()) == ["write decision/one-0"]


@pytest.mark.requirement("MEM-04")
def test_hostile_titles_come_through_and_break_nothing(run, sync, root, shop):
    for number, title in enumerate(HOSTILE.values()):
        content = {**CONTENTS["decision"], "decision": f"choice {number}"}
        put(root, memory(f"m{number}", title=title, content=content))
    before = snapshot(root)
    assert len(sync()["done"]) == len(HOSTILE)
    assert snapshot(root) == before
    index = (root / "index.md").read_text("utf-8")
    assert len(index.splitlines()) == 2 + len(HOSTILE)
    assert sync()["done"] == []
    listed = run("memory", "list", "--json", "-n", "99", cwd=shop).json["hits"]
    assert len(listed) == len(HOSTILE)
    for hit in listed:
        assert hit["title"].isprintable()
        assert 0 < len(hit["title"]) <= 120
        assert hit["tags"] == ["postgres", "data-base"]
    run("memory", "edit", "m0", "--tag", "more", cwd=shop)
    assert what(sync()) == ["write decision/m0"]
    fresh = shop.parent / "fresh"
    sync(fresh)
    ours = {f"decisions/m{n}.json" for n, name in enumerate(HOSTILE) if name == "our own fence"}
    changed = {path for path, data in snapshot(fresh).items() if before[path] != data}
    assert changed == {"decisions/m0.json", *ours}


@pytest.mark.requirement("STO-05")
def test_a_secret_in_a_file_stays_out_of_the_store_and_the_file_stays_as_it_is(
    run, sync, root, shop, home
):
    secret = "ghp_" + "a1B2c3D4e5F6a7B8c9D0" + "e1F2a3B4c5D6e7F8"
    path = put(root, memory("x", note=f"token {secret}", title=f"Login with {secret}"))
    raw = path.read_bytes()
    sync()
    assert path.read_bytes() == raw
    assert sync()["done"] == []
    assert not [
        file for file in home.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()
    ]
    fresh = shop.parent / "fresh"
    sync(fresh)
    values = json.loads((fresh / "decisions" / "x.json").read_bytes())
    assert values["note"].startswith("token [redacted:")


def test_two_syncs_at_once_lose_nothing(run, sync, root, shop, home, tmp_path, zygote_of_commands):
    theirs(root)
    for number in range(4):
        put(root, memory(f"m{number}", title=f"Title {number}"))
        run("remember", f"Choice {number}", "--type", "decision", cwd=shop)
    before = snapshot(root)
    words, printed = ["--home", str(home), "memory", "sync"], tmp_path / "printed"
    both = [
        zygote_of_commands.start(words, shop, dict(os.environ), printed, printed) for _ in range(2)
    ]
    assert [one.wait() for one in both] == [0, 0], printed.read_text()
    after = snapshot(root)
    assert {path: after[path] for path in before} == before
    assert len(after) == 6 + 4 + 4
    assert len(run("memory", "list", "--json", "-n", "99", cwd=shop).json["hits"]) == 14
    assert sync()["done"] == []


def test_two_syncs_from_different_stores_meet_in_the_files(run, sync, root, shop, tmp_path):
    put(root, memory())
    sync()
    other = ["--home", str(tmp_path / "other"), "memory"]
    assert run(*other, "sync", cwd=shop).code == 0
    run(*other, "edit", "use-postgres", "--title", "From the other one", cwd=shop)
    assert run(*other, "sync", cwd=shop).code == 0
    assert what(sync()) == ["take decision/use-postgres"]
    assert shown(shop, "use-postgres")["title"] == "From the other one"


def test_a_project_is_found_by_the_folder_that_is_named(run, sync, root, shop, tmp_path):
    put(root, memory())
    assert sync(root, cwd=tmp_path)["project"] == "shop"
    assert sync(shop, cwd=tmp_path)["folder"] == str(root)
    assert run("memory", "sync", str(tmp_path / "no" / "where"), cwd=shop).code == 3
    (tmp_path / "link").symlink_to(root)
    assert "is not a folder, or a link" in run("memory", "sync", str(tmp_path / "link")).err


def test_an_excluded_project_is_not_synced(run, shop, root, home):
    put(root, memory())
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f'exclude = ["{shop}"]\n')
    ran = run("memory", "sync", cwd=shop)
    assert ran.code == 2
    assert "is excluded" in ran.err


# --- what a repository may say -----------------------------------------------------------------


def test_a_repository_deletes_nothing_by_its_retention_days(run, sync, root, shop, home):
    put(root, memory(created_at="2020-01-01T00:00:00Z", updated_at="2020-01-01T00:00:00Z"))
    rows = {"decision": {"retention_days": 1, "folder": "adr"}}
    (root / "memory-config.json").write_text(json.dumps({"categories": rows}))
    done = sync()
    assert "wants decision kept for 1 days; that is yours to decide" in done["notes"][0]
    assert run("memory", "gc", "--apply", cwd=shop).code == 1
    assert shown(shop, "use-postgres")["status"] == "active"
    (home / "config.toml").write_text("[retention]\ndecision = 1\n")
    assert sync()["notes"] == []
    assert run("memory", "gc", "--apply", cwd=shop).code == 0
    run("remember", "Later", "--type", "decision", cwd=shop)
    sync()
    assert (root / "adr" / "later.json").is_file(), "folders inside the tree are its own matter"


@pytest.mark.parametrize(
    ("own", "theirs_", "used"), [(5, 20, 5), (5, 2, 2), (5, 0, 0), (7, None, 7)]
)
def test_a_repository_can_make_what_is_shown_less_and_never_more(
    home, tmp_path, own, theirs_, used
):
    root = tmp_path / "shop" / ".claude" / "memory"
    root.mkdir(parents=True)
    said = {} if theirs_ is None else {"retrieval": {"max_inject": theirs_}}
    (root / "memory-config.json").write_text(json.dumps(said))
    assert narrow_limit(own, str(tmp_path / "shop")) == used
    home.mkdir()
    (home / "config.toml").write_text(f"max_inject = {own}\n")
    with yester.open(home) as opened:
        opened.add(
            {"ref": str(n), "kind": "memory", "project": "shop", "title": f"ledger {n} {n * 'x'}",
             "text": f"the ledger number {n}: " + " ".join(f"w{n}x{i}" for i in range(9))}
            for n in range(9)
        )  # fmt: skip
        given = build_context(
            opened,
            ContextRequest("UserPromptSubmit", str(tmp_path / "shop"), "what about the ledger?"),
        )
    assert len(given.shown) == used


def test_a_configuration_that_is_a_link_steers_nothing(tmp_path):
    root = tmp_path / ".claude" / "memory"
    root.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text('{"retrieval": {"max_inject": 0}}')
    (root / "memory-config.json").symlink_to(tmp_path / "elsewhere.json")
    assert narrow_limit(5, str(tmp_path)) == 5
    assert narrow_limit(5, "") == 5


# --- import ------------------------------------------------------------------------------------


@pytest.mark.requirement("IMP-02")
def test_a_tree_is_imported_once_brought_up_to_date_and_left_alone(run, root, shop):
    before = theirs(root)
    put(root, memory("bad"), b"{")
    again = ("import", "claude-memory", "--json")
    ran = run(*again, cwd=shop)
    assert (ran.code, ran.json["added"], len(ran.json["problems"])) == (0, 6, 1)
    assert (root / "decisions" / "bad.json").read_bytes() == b"{"
    assert not (root / "index.md").exists(), "nothing is written"
    ran = run(*again, cwd=shop)
    assert (ran.json["added"], ran.json["changed"], ran.json["unchanged"]) == (0, 0, 6)
    (root / "decisions" / "bad.json").unlink()
    (path,) = root.glob("runbooks/*.json")
    path.write_bytes(path.read_bytes().replace(b"clean", b"sweep"))
    assert run(*again, cwd=shop).json["changed"] == 1
    assert shown(shop, path.stem)["content"]["steps"] == ["look", "sweep"]
    assert shown(shop, path.stem)["origin"] == "import"
    run("memory", "edit", path.stem, "--title", "Mine", cwd=shop)
    assert run(*again, cwd=shop).json["unchanged"] == 6, "what was edited here stays"
    path.write_bytes(path.read_bytes().replace(b"sweep", b"wipe"))
    ran = run("import", "claude-memory", cwd=shop)
    assert ran.code == 0
    assert f"is another one in the store; to keep both: yester memory sync {root}" in ran.err
    assert len(before) == 6


@pytest.mark.requirement("IMP-02")
def test_what_was_imported_is_known_to_a_sync(run, sync, root, shop):
    theirs(root)
    run("import", "claude-memory", cwd=shop)
    assert sync()["done"] == []
    run("memory", "archive", "one-0", cwd=shop)
    put(root, memory("two", title="Two"))
    assert what(sync()) == ["write decision/one-0", "take decision/two"]


@pytest.mark.requirement("IMP-02")
def test_an_import_of_nothing_is_exit_code_1_and_of_nothing_readable_3(run, root, shop, tmp_path):
    assert run("import", "claude-memory", cwd=shop).code == 1
    assert run("import", "claude-memory", str(tmp_path / "none")).code == 3
    put(root, memory("bad"), b"{")
    ran = run("import", "claude-memory", cwd=shop)
    assert ran.code == 3
    assert ran.err.count("\n") == 2


# --- MEMORY.md ---------------------------------------------------------------------------------


# --- one memory --------------------------------------------------------------------------------


@settings(max_examples=12)
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3))
def test_a_file_without_secrets_is_kept_as_it_is(more):
    values = {**memory().values, **{f"x{name}": value for name, value in more.items()}}
    raw = json.dumps(values, indent=3).encode()
    assert redact_memory_file(parse_memory_file(raw)) == raw
