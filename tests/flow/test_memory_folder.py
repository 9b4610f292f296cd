"""A `.claude/memory/` folder as others leave it: read with care, written without harm."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.written import HOSTILE, index_paths, memory
from yester.errors import SourceError
from yester.files import SMALL
from yester.memories.files import MemoryFolder

pytestmark = pytest.mark.requirement("MEM-06")

FOLDERS = {
    "decision": "decisions",
    "session_summary": "sessions",
    "runbook": "runbooks",
    "constraint": "constraints",
    "tech_debt": "tech-debt",
    "preference": "preferences",
}


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "shop" / ".claude" / "memory"


def write(root: Path, path: str, data) -> Path:
    at = root / path
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_bytes(data if isinstance(data, bytes) else data.to_bytes())
    return at


def put(folder: MemoryFolder, one):
    folder.put_memory(one)
    return folder


def problems(folder: MemoryFolder) -> list[str]:
    return [*folder.warnings, *folder.unread.values()]


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_each_category_has_its_folder(root):
    tree = MemoryFolder(root)
    for category in FOLDERS:
        tree = put(tree, memory("one", category))
    assert {str(p.relative_to(root)) for p in root.rglob("*.json")} == {
        f"{folder}/one.json" for folder in FOLDERS.values()
    }
    again = MemoryFolder(root)
    assert sorted(again.memories) == sorted(f"{category}/one" for category in FOLDERS)
    assert problems(again) == []


def test_a_tree_of_somebody_else_is_read_and_written_back_byte_for_byte(root):
    other = json.dumps({**memory("b").values, "x-tool": {"a": [1.50]}}, indent=4).encode()
    write(root, "decisions/use-postgres.json", memory())
    write(root, "decisions/b.json", other)
    before = snapshot(root)
    tree = MemoryFolder(root)
    for one in tree.memories.values():
        tree = put(tree, one)
    assert snapshot(root) == before


def test_one_unreadable_file_is_named_and_left_out(root):
    write(root, "decisions/good.json", memory("good"))
    bad = write(root, "decisions/bad.json", b'{"category": "decision", ')
    write(root, "runbooks/worse.json", b"\xff\xfe")
    tree = MemoryFolder(root)
    assert list(tree.memories) == ["decision/good"]
    assert problems(tree)[0].startswith(f"{bad}: is not JSON (Expecting property name")
    assert len(problems(tree)) == 2


def test_links_are_not_followed_out_of_the_tree(root, tmp_path):
    secret = write(tmp_path, "secret.json", memory("secret"))
    outside = write(tmp_path, "outside/x.json", memory("x")).parent
    write(root, "decisions/good.json", memory("good"))
    (root / "decisions" / "linked.json").symlink_to(secret)
    (root / "runbooks").symlink_to(outside)
    tree = MemoryFolder(root)
    assert list(tree.memories) == ["decision/good"]
    assert sorted(p for p in problems(tree) if "is a link, which is not followed" in p) == [
        f"{root / 'decisions/linked.json'}: is a link, which is not followed",
        f"{root / 'runbooks'}: is a link, which is not followed",
    ]
    with pytest.raises(SourceError, match="leads out of"):
        put(tree, memory("new", "runbook"))
    with pytest.raises(SourceError, match="so it is kept; rename or mend it"):
        put(tree, memory("linked"))
    assert sorted(p.name for p in outside.iterdir()) == ["x.json"]
    assert secret.read_bytes() == memory("secret").to_bytes()


def test_a_file_that_is_too_large_or_no_file_is_refused(root):
    write(root, "decisions/huge.json", memory("huge", blob="x" * SMALL))
    os.mkfifo(root / "decisions" / "pipe.json")
    (root / "decisions" / "folder.json").mkdir()
    tree = MemoryFolder(root)
    assert tree.memories == {}
    assert ["larger than" in p or "not a regular file" in p for p in problems(tree)] == [True, True]


def test_hidden_files_and_files_beside_the_folders_are_somebody_elses(root):
    for path in (".staging/a.json", "decisions/.b.json.tmp", "decisions/.c.json", "state.json"):
        write(root, path, b"not ours")
    write(root, "memory-config.json", b"{}")
    write(root, "decisions/readme.md", b"hello")
    assert problems(MemoryFolder(root)) == []
    assert MemoryFolder(root).memories == {}


def test_of_the_same_memory_in_two_files_the_first_counts(root):
    write(root, "decisions/a-copy.json", memory(title="copy"))
    write(root, "decisions/use-postgres.json", memory(title="original"))
    tree = MemoryFolder(root)
    assert tree.memories["decision/use-postgres"].title == "copy"
    assert "use-postgres.json: is decision/use-postgres once more" in problems(tree)[0]


def test_a_memory_stays_in_the_file_it_has_whatever_that_is_called(root):
    at = write(root, "decisions/0001-old-name.json", memory())
    folder = MemoryFolder(root)
    put(folder, folder.memories["decision/use-postgres"].with_values(title="New"))
    assert json.loads(at.read_bytes())["title"] == "New"
    assert [p.name for p in at.parent.iterdir()] == ["0001-old-name.json"]


def test_a_name_another_memory_has_is_not_taken(root):
    write(root, "decisions/use-postgres.json", memory("something-else"))
    before = snapshot(root)
    with pytest.raises(SourceError, match=r"stands where decision/use-postgres would be written"):
        put(MemoryFolder(root), memory())
    assert snapshot(root) == before


def test_what_has_changed_since_it_was_read_is_left_alone(root):
    at = write(root, "decisions/use-postgres.json", memory())
    tree = MemoryFolder(root)
    at.write_bytes(memory(title="the agent was faster").to_bytes())
    for change in (lambda: put(tree, memory(title="mine")), lambda: tree.drop_memory(memory().key)):
        with pytest.raises(SourceError, match="has changed while it was looked at"):
            change()
    assert MemoryFolder(root).memories[memory().key].title == "the agent was faster"
    empty = MemoryFolder(root.parent / "other")
    write(empty.root, "decisions/use-postgres.json", memory(title="somebody else was faster"))
    with pytest.raises(SourceError, match="has changed"):
        put(empty, memory(title="mine"))


def test_a_file_keeps_its_mode_and_leaves_nothing_behind(root):
    at = write(root, "decisions/use-postgres.json", memory())
    at.chmod(0o640)
    put(MemoryFolder(root), memory(title="New"))
    assert at.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in at.parent.iterdir()] == ["use-postgres.json"]
    MemoryFolder(root).drop_memory(memory().key)
    assert list(at.parent.iterdir()) == []


@pytest.mark.parametrize("wrong", [{"id": "../../up"}, {"category": "../x"}, {"title": ""}])
def test_what_nobody_could_read_back_is_not_written(root, wrong):
    with pytest.raises(SourceError):
        put(MemoryFolder(root), memory(**wrong))
    assert not root.exists()


def test_a_folder_that_cannot_be_written_to_is_named(root):
    root.parent.mkdir(parents=True)
    root.write_text("a file where the folder should be")
    with pytest.raises(SourceError, match=str(root)):
        put(MemoryFolder(root), memory())


def test_a_missing_index_is_rebuilt_and_a_right_one_left_alone(root):
    for number, title in enumerate(HOSTILE.values()):
        put(MemoryFolder(root), memory(f"m{number}", title=title))
    put(MemoryFolder(root), memory("old", record_status="retired"))
    tree = MemoryFolder(root)
    assert tree.write_index()
    text = (root / "index.md").read_text("utf-8")
    assert set(index_paths(text)) == {
        f".claude/memory/decisions/m{n}.json" for n in range(len(HOSTILE))
    }
    assert len(text.splitlines()) == 2 + len(HOSTILE)
    assert not tree.write_index()


def test_an_index_that_lists_the_same_is_left_alone_and_another_keeps_what_is_no_entry(root):
    put(put(MemoryFolder(root), memory("a")), memory("b"))
    line = "- [DECISION] Use Postgres for the ledger -> .claude/memory/decisions/{}.json"
    a, b = (f"{line} #tags:postgres,data-base\n".format(name) for name in "ab")
    index = root / "index.md"
    index.write_text(f"# Ours\n\n{b}{a}\n- [ ] Mind the order.\n")
    assert not MemoryFolder(root).write_index()
    put(MemoryFolder(root), memory("b", title="Other"))
    assert MemoryFolder(root).write_index()
    b = b.replace("Use Postgres for the ledger", "Other")
    assert index.read_text() == f"# Ours\n\n\n- [ ] Mind the order.\n{a}{b}"


def test_a_linked_index_is_not_written_through(root, tmp_path):
    (tmp_path / "victim").write_text("keep")
    put(MemoryFolder(root), memory())
    (root / "index.md").symlink_to(tmp_path / "victim")
    with pytest.raises(SourceError, match="is a link"):
        MemoryFolder(root).write_index()
    assert (tmp_path / "victim").read_text() == "keep"


@pytest.mark.parametrize("data", [b"{", b"[1]", b"\xff", b"[" * 100_000, b'{"retrieval": 5}'])
def test_the_config_says_where_new_memories_go_and_a_bad_one_is_a_warning(root, data):
    write(root, "memory-config.json", b'{"categories": {"decision": {"folder": "adr/of-ours"}}}')
    tree = put(put(MemoryFolder(root), memory()), memory("fix", "runbook"))
    assert sorted(tree.paths.values()) == ["adr/of-ours/use-postgres.json", "runbooks/fix.json"]
    assert sorted(MemoryFolder(root).memories) == ["decision/use-postgres", "runbook/fix"]
    write(root, "memory-config.json", data)
    (told,) = problems(MemoryFolder(root))
    assert told.startswith(f"{root / 'memory-config.json'}: the defaults are used, since")


@pytest.mark.parametrize(
    "folder", ["../out", "/etc", "a/../../b", "", ".", "..", ".hidden", "a/.b", 5, "a\0b", "a\\b"]
)
def test_a_folder_outside_of_the_tree_is_refused(root, folder):
    config = {"categories": {"decision": {"folder": folder}}}
    write(root, "memory-config.json", json.dumps(config).encode())
    tree = put(MemoryFolder(root), memory())
    assert list(tree.paths.values()) == ["decisions/use-postgres.json"]
    assert "categories" in problems(tree)[0]
