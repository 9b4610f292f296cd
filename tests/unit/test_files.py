"""Files that others put there: whatever stands in a file's place, nobody waits for it."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from yester import git
from yester.agents.base import Options, load_reader
from yester.agents.descriptors import AGENTS
from yester.agents.notes import find_instructions
from yester.ingest.transcripts import Ingest
from yester.memories.files import narrow_limit
from yester.project import Projects, identify_project
from yester.store import open_store

pytestmark = pytest.mark.requirement("OPS-02")

KINDS = ("pipe", "device", "socket", "huge", "folder", "loop", "nowhere")
HUGE = 1 << 40  # bytes, none of which is on the disk


def stand(path: Path, kind: str) -> Path:
    """Something else in the place of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket must be short
        try:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "huge":
        path.touch()
        os.truncate(path, HUGE)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path.name if kind == "loop" else "/nonexistent/file")
    return path


def repository(root: Path) -> Path:
    git_dir = root / ".git"
    git_dir.mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "config").write_text('[remote "origin"]\n\turl = https://example.com/a/shop.git\n')
    return root


@pytest.mark.requirement("CAP-07")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_a_repository_holds_up_who_looks_for_its_project(tmp_path, kind):
    shop = repository(tmp_path / "shop")
    stand(shop / ".git" / "config", kind)
    assert identify_project(str(shop / "src")).key == f"dir:{shop}"

    stand(tmp_path / "marked" / ".git", kind)
    assert identify_project(str(tmp_path / "marked")).key == f"dir:{tmp_path / 'marked'}"

    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {tmp_path / 'admin'}\n")
    stand(tmp_path / "admin" / "commondir", kind)
    assert identify_project(str(linked)).name in ("linked", "admin")


@pytest.mark.requirement("REC-07")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_a_repository_holds_up_who_asks_about_the_work_at_hand(tmp_path, kind):
    """git, too, reads files of the repository: it is ended when its time is over."""
    for name in (
        ".git/config", ".git/HEAD", ".git/commondir", ".git/packed-refs", ".git/index",
        ".git/refs/heads/main", ".git/shallow", ".git/info/exclude", ".git/sharedindex.0",
        ".git/objects", ".gitignore", ".gitattributes", ".gitmodules", "package.json",
        ".claude/memory/memory-config.json", "CLAUDE.md",
    ):  # fmt: skip
        shop = repository(tmp_path / name.replace("/", "-"))
        stand(shop / name, kind)
        began = time.monotonic()
        assert git.collect_signals(str(shop), began + 0.5).manifests == ()
        assert time.monotonic() - began < 3
        assert narrow_limit(5, str(shop)) == 5
        assert len(find_instructions(shop)) == (name == "CLAUDE.md" and kind == "huge")


@pytest.mark.requirement("STO-05", "OPS-05")
@pytest.mark.parametrize("kind", sorted({*KINDS} - {"huge"}))
def test_nothing_an_agent_names_as_its_transcript_holds_up_its_reader(tmp_path, kind):
    store = open_store(tmp_path / "home", now=1)
    names = ("t.jsonl", "t.json", "t.md", "t.db", "t.vscdb", "store.db")
    paths = [stand(tmp_path / "transcripts" / name, kind) for name in names]
    try:
        for agent in AGENTS.values():
            ingest = Ingest(store, Projects({}), Options())
            for path in paths:
                assert not load_reader(agent.name).is_transcript(path)
                ingest.read_transcript(agent, path)
            assert ingest.report.failed == len(paths)
    finally:
        store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_beside_a_transcript_holds_up_its_reader(tmp_path, transcript, kind):
    path = tmp_path / "subagents" / "agent-1.jsonl"
    told = transcript()
    told.talk(1)
    path.parent.mkdir()
    path.write_bytes(told.path.read_bytes())
    stand(path.with_suffix(".meta.json"), kind)
    store = open_store(tmp_path / "home", now=1)
    try:
        ingest = Ingest(store, Projects({}), Options())
        ingest.read_transcript(AGENTS["claude-code"], path)
        assert (ingest.report.failed, ingest.report.files) == (0, 1)
    finally:
        store.close()
