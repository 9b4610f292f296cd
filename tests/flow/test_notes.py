"""The curated notes as a user meets them: indexed, kept in step with their file, promoted into."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from string import ascii_lowercase

import pytest

import yester
from tests.readings import every_item
from tests.written import HOSTILE
from yester.config import load_config
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.context.start import at_start
from yester.project import identify_project
from yester.store import open_store
from yester.worker.jobs import FollowingNotes
from yester.worker.process import Log

PAGE = """\
# Shop

## Tools

- Use pnpm for all installs
- The heron deploy script needs VPN

## People

Sam decides about releases.
"""
NOW = 1_770_000_000_000
SLUG = "-home-sam-code-shop"  # of the folder that the transcript fixture names


@pytest.fixture
def memory_md(own_home):
    """MEMORY.md where Claude Code keeps it; each writing is later than the one before."""
    path = own_home / ".claude" / "projects" / SLUG / "memory" / "MEMORY.md"
    path.parent.mkdir(parents=True)
    clock = iter(range(1_770_000_000, 1_780_000_000, 1_000))

    def write(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (moment := next(clock), moment))
        return path

    return write


def hits(run, *words):
    return run("recall", *words, "--json", "--format", "full").json["hits"]


@pytest.mark.requirement("MEM-07", "IMP-04")
def test_index_finds_the_notes_beside_the_transcripts(run, transcript, memory_md):
    transcript().user("What about the release?")
    path = memory_md(PAGE)
    done = run("index", "--json")
    assert done.code == 0
    assert (done.json["files"], done.json["added"]) == (1, 1)
    assert done.json["notes"]["added"] == 3
    (hit,) = hits(run, "heron")
    assert (hit["kind"], hit["type"], hit["project"]) == ("note", "note", "shop")
    assert (hit["title"], hit["text"]) == ("Shop › Tools", "The heron deploy script needs VPN")
    assert hit["ref"].startswith(f"{path}#")
    assert "pnpm" in run("show", str(hits(run, "pnpm installs")[0]["id"])).out
    assert run("status", "--json").json["transcripts"] == 1


@pytest.mark.requirement("IMP-04")
def test_nothing_new_changes_nothing(run, transcript, memory_md, home):
    transcript().talk(1)
    memory_md(PAGE)
    assert "3 new notes in 1 file\n" in run("index").out
    before = (home / "yester.db").read_bytes()
    again = run("index")
    assert again.out == "nothing new in 1 transcript\n"
    assert (home / "yester.db").read_bytes() == before


@pytest.mark.requirement("IMP-04")
def test_an_edited_line_is_another_note_and_a_removed_one_is_not_found_any_more(run, memory_md):
    memory_md(PAGE)
    run("index")
    memory_md(PAGE.replace("Use pnpm", "Use bun").replace("heron", "stork"))
    done = run("index", "--json")
    assert {k: done.json["notes"][k] for k in ("added", "changed", "gone")} == {
        "added": 2, "changed": 0, "gone": 2,
    }  # fmt: skip
    assert [hit["text"] for hit in hits(run, "bun")] == ["Use bun for all installs"]
    assert run("recall", "pnpm").code == run("recall", "heron").code == 1
    memory_md("# Shop\n\n## Tools\n\n- Use bun for all installs\n")
    assert run("index", "--json").json["notes"]["gone"] == 2
    assert run("recall", "releases").code == 1
    assert run("doctor").code == 0
    memory_md(PAGE)
    assert run("index", "--json").json["notes"]["changed"] == 3
    assert hits(run, "releases")[0]["text"] == "Sam decides about releases."


@pytest.mark.requirement("IMP-04")
def test_the_notes_of_a_file_that_is_gone_are_gone_unless_all_is(run, memory_md, own_home):
    path = memory_md(PAGE)
    run("index")
    kept = path.read_bytes()
    (own_home / ".claude").rename(own_home / "unmounted")
    run("index")
    assert run("recall", "heron").code == 0
    (own_home / "unmounted").rename(own_home / ".claude")
    path.unlink()
    assert "3 gone" in run("index").out
    assert run("recall", "heron").code == 1
    path.write_bytes(kept)
    os.utime(path, (1_770_000_000, 1_770_000_000))
    assert run("index", "--json").json["notes"]["changed"] == 3
    assert run("recall", "heron").code == 0


@pytest.mark.requirement("IMP-04")
def test_the_project_is_the_folder_the_notes_are_about(run, memory_md, own_home):
    folder = own_home / "code" / "my_shop"
    folder.mkdir(parents=True)
    path = memory_md(PAGE)
    from yester.memories.memory_md import project_slug

    path.parent.parent.rename(path.parent.parent.parent / project_slug(str(folder)))
    run("index")
    assert hits(run, "heron")[0]["project"] == "my_shop"


def test_excluded_projects_and_secrets_stay_out(run, transcript, memory_md, home):
    transcript().talk(1)
    memory_md(
        "- The key is ghp_0123456789abcdefghijABCDEFGHIJ012345 for heron\n"
        "- <private>wolverine</private>\n- keep <private>badger</private> otter\n"
    )
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('exclude = ["shop"]\n')
    assert run("index", "--json").json["notes"]["files"] == 0
    assert run("recall", "heron").code == 1
    (home / "config.toml").unlink()
    run("index")
    assert run("recall", "heron").code == run("recall", "otter").code == 0
    data = b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())
    assert not [word for word in (b"ghp_0123", b"wolverine", b"badger") if word in data]


def test_a_file_that_cannot_be_read_is_named_and_costs_nothing_else(run, transcript, memory_md):
    transcript().talk(1)
    path = memory_md(b"x" * 2_000_000)
    done = run("index")
    assert done.code == 0
    assert f"{path}: is larger than" in done.err
    path.unlink()
    os.mkfifo(path)
    assert "is not a regular file" in run("index").err


def test_a_hostile_heading_or_note_is_only_text(run, memory_md, home):
    names = [f"{letter}{letter}wombat" for letter in ascii_lowercase[: len(HOSTILE)]]
    rows = [f"# {t}\n\n- {name} {t}\n\n" for name, t in zip(names, HOSTILE.values(), strict=True)]
    memory_md("\ufeff" + "".join(rows).encode("utf-8", "replace").decode())
    assert run("index").code == 0
    with yester.open(home) as memory:
        for name in names:
            assert [hit.kind for hit in memory.recall(name)] == ["note"]


def test_named_folders_and_other_agents_bring_only_their_own(run, transcript, memory_md, own_home):
    transcript().talk(1)
    memory_md(PAGE)
    assert run("index", "--agent", "codex", "--json").json["notes"]["files"] == 0
    (own_home / "repo" / "memory").mkdir(parents=True)
    (own_home / "repo" / "memory" / "MEMORY.md").write_text("- somebody's documentation\n")
    assert run("index", str(own_home / "repo")).code == 1
    named = run("index", str(own_home / ".claude" / "projects"), "--json")
    assert named.json["notes"]["added"] == 3


@pytest.mark.requirement("IMP-04")
def test_import_notes_reads_a_projects_own_files(run, own_home):
    project = own_home / "code" / "larder"
    (project / ".claude").mkdir(parents=True)
    (project / "CLAUDE.md").write_text("# Rules\n\n- Ferrets count as guests\n")
    (project / ".claude" / "CLAUDE.md").write_text("Weasels do not.\n")
    done = run("import", "notes", "--json", cwd=project)
    assert (done.code, done.json["files"], done.json["added"]) == (0, 2, 2)
    (hit,) = hits(run, "ferrets")
    assert (hit["project"], hit["title"]) == ("larder", "Rules")
    assert run("import", "notes", str(project)).out == "nothing new in 2 files\n"
    (project / "CLAUDE.md").write_text("# Rules\n\n- Ferrets count as staff\n- Doors stay shut\n")
    again = run("import", "notes", str(project / "CLAUDE.md"))
    assert again.out == "2 new notes, 1 gone in 1 file\n"
    (project / "CLAUDE.md").write_text("# Rules\n\n- Doors stay shut\n")
    assert run("import", "notes", str(project)).out == "1 gone in 2 files\n"
    assert run("recall", "ferrets").code == 1
    (project / "CLAUDE.md").unlink()
    run("index")
    assert run("recall", "doors shut").code == 0, "what was imported stays until it is forgotten"


@pytest.mark.requirement("IMP-04")
def test_import_notes_says_what_it_cannot_read(run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("import", "notes", str(empty)).code == 1
    assert run("import", "notes", str(tmp_path / "gone.md")).code == 3
    (tmp_path / "x.txt").write_text("x")
    assert "is not a Markdown file" in run("import", "notes", str(tmp_path / "x.txt")).err


@pytest.mark.requirement("MEM-07")
def test_what_the_agent_loads_by_itself_is_not_injected_again(run, memory_md, home):
    memory_md(PAGE)
    run("index")
    with yester.open(home) as memory:
        store, now = memory.store, 1_770_000_000_000
        (here,) = store.projects()
        assert at_start(store, Here(here, "s1", now)).text == ""
        prompt = "Does the heron deploy script need VPN or not?"
        assert at_prompt(store, prompt, Here(here, "s1", now)).text == ""
        other = at_prompt(store, prompt, Here(identify_project("/elsewhere"), "s1", now))
        assert "heron deploy script needs VPN" in other.text


# --- promote -----------------------------------------------------------------------------------


@pytest.fixture
def shop(own_home):
    folder = own_home / "code" / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


@pytest.fixture
def said(run, transcript):
    """The id of an answer worth keeping."""
    t = transcript()
    t.user("Why is the cache gone?")
    t.assistant("We dropped Redis because it served stale prices. Much more was said about it.")
    run("index")
    return str(hits(run, "dropped redis")[0]["id"])


def place(own_home, folder):
    from yester.memories.memory_md import project_slug

    return own_home / ".claude" / "projects" / project_slug(str(folder)) / "memory" / "MEMORY.md"


@pytest.mark.requirement("MEM-07")
def test_promote_adds_one_line_and_touches_nothing_else(run, own_home, shop, said):
    path = place(own_home, shop)
    path.parent.mkdir(parents=True)
    path.write_bytes(
        b"\xef\xbb\xbf# Shop\r\n\r\n## Decisions\r\n\r\n* Keep it \xff small\r\n\r\n## Z"
    )
    path.chmod(0o640)
    done = run("promote", said, "--under", "decisions", cwd=shop / "src")
    assert done.code == 0
    line = "- We dropped Redis because it served stale prices."
    assert done.out == f"{path}:6: {line}\n"
    assert path.read_bytes() == (
        b"\xef\xbb\xbf# Shop\r\n\r\n## Decisions\r\n\r\n* Keep it \xff small\r\n"
        + line.encode()
        + b"\r\n\r\n## Z"
    )
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == ["MEMORY.md"]
    again = run("promote", f"#{said}", "--under", "decisions", cwd=shop)
    assert again.code == 2
    assert "line 6 says so already" in again.err


@pytest.mark.requirement("MEM-07")
def test_promote_makes_a_file_only_when_told_to(run, own_home, shop, said):
    path = place(own_home, shop)
    refused = run("promote", said, cwd=shop)
    assert refused.code == 1
    assert "to make it: --create" in refused.err
    assert not path.exists()
    assert run("promote", said, "--create", "--as", "No Redis, ever", cwd=shop).code == 0
    assert path.read_text() == "## From earlier sessions\n\n- No Redis, ever\n"


@pytest.mark.requirement("MEM-07")
def test_a_dry_run_shows_the_change_and_makes_none(run, shop, said):
    file = shop / "NOTES.md"
    file.write_text("# Notes\n- a\n")
    done = run("promote", said, "--to", str(file), "--under", "Notes", "--dry-run", cwd=shop)
    assert done.code == 0
    assert "\n+- We dropped Redis because it served stale prices.\n" in done.out
    assert file.read_text() == "# Notes\n- a\n"
    fresh = run("promote", said, "--create", "--dry-run", cwd=shop)
    assert "+## From earlier sessions" in fresh.out


@pytest.mark.requirement("MEM-07")
def test_there_is_no_promoting_beyond_200_lines(run, shop, said):
    file = shop / "MEMORY.md"
    text = "# Notes\n" + "".join(f"- note {n}\n" for n in range(199))
    file.write_text(text)
    done = run("promote", said, "--to", str(file), "--under", "Notes", cwd=shop)
    assert done.code == 2
    assert f"{file}: it has 200 lines, and 1 more would pass the 200" in done.err
    assert file.read_text() == text
    file.write_text(text[: text.index("- note 190")])
    near = run("promote", said, "--to", str(file), "--under", "Notes", cwd=shop)
    assert (near.code, "192 of the 200 lines" in near.err) == (0, True)


@pytest.mark.requirement("MEM-07")
def test_a_repository_cannot_choose_where_promote_writes(run, own_home, shop, said):
    (shop / ".claude" / "projects").mkdir(parents=True)
    env = {"CLAUDE_CONFIG_DIR": str(shop / ".claude")}
    done = run("promote", said, "--create", cwd=shop, env=env)
    assert done.code == 2
    assert "is not among claude_code_dirs" in done.err
    allowed = {"CLAUDE_CONFIG_DIR": str(own_home / ".claude")}
    assert run("promote", said, "--create", cwd=shop, env=allowed).code == 0
    assert place(own_home, shop).exists()
    assert list((shop / ".claude" / "projects").iterdir()) == []


def test_promote_follows_a_link_the_user_has_made(run, own_home, shop, said):
    path = place(own_home, shop)
    path.parent.mkdir(parents=True)
    (own_home / "dotfiles.md").write_text("# Notes\n")
    path.symlink_to(own_home / "dotfiles.md")
    assert run("promote", said, "--under", "Notes", cwd=shop).code == 0
    assert path.is_symlink()
    assert "We dropped Redis" in (own_home / "dotfiles.md").read_text()


def test_promote_says_what_it_cannot_do(run, shop, said):
    assert "no item 999" in run("promote", "999", cwd=shop).err
    (shop / "b.md").write_bytes(b"a\0b")
    binary = run("promote", said, "--to", str(shop / "b.md"), cwd=shop)
    assert (binary.code, "is not a text file" in binary.err) == (3, True)
    nothing = run("promote", said, "--to", str(shop / "c.md"), "--create", "--as", " ", cwd=shop)
    assert (nothing.code, "says nothing" in nothing.err) == (2, True)
    assert not (shop / "c.md").exists()


def test_a_secret_is_not_promoted(run, shop, said):
    file = shop / "MEMORY.md"
    key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    run("promote", said, "--to", str(file), "--create", "--as", f"The key is {key}", cwd=shop)
    assert key not in file.read_text()
    assert "The key is [redacted:" in file.read_text()


# --- of other agents, followed by the worker -----------------------------------------------------


@pytest.mark.requirement("IMP-07")
def test_the_worker_follows_what_agents_and_repositories_have_noted(
    home, own_home, tmp_path, run, transcript
):
    shop = tmp_path / "shop"
    files = {
        shop / "AGENTS.md": "- Run `make check` before a commit\n- Prices are integer cents\n",
        shop / "CLAUDE.md": "- Prices are integer cents.\n- The heron needs the VPN\n",
        own_home / ".gemini" / "GEMINI.md": "- I write British English\n",
        own_home / ".codex" / "memories" / "habits.md": "- Prefers small commits\n",
        own_home / ".claude" / "agent-memory" / "reviewer" / "MEMORY.md": "- Look at locks first\n",
        shop / ".claude" / "memory" / "decisions" / "one.json": json.dumps(
            {"schema_version": "1.0", "category": "decision", "id": "one", "title": "One ledger",
             "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
             "tags": ["ledger"], "related_files": [], "confidence": 0.9,
             "content": {"status": "accepted", "context": "two drifted", "decision": "one ledger",
                         "alternatives": [], "rationale": ["drift"], "consequences": []}}),
    }  # fmt: skip
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    told = transcript(cwd=str(shop), clock=int(time.time()) - 60)
    told.user("What about the release?")
    assert run("index", str(told.path)).code == 0
    store = open_store(home, now=1)
    with closing(store):
        config = load_config(home, {})
        log = Log(home / "logs")

        def follow():
            job = FollowingNotes(store, log)
            while job.step(config):
                pass
            found = [one for one in every_item(store) if one.status == "active"]
            return {(one.body.partition("\n")[0], one.agent) for one in found if one.kind == "note"}

        notes = {
            ("Run `make check` before a commit", "codex"),
            ("The heron needs the VPN", "claude-code"),
            ("I write British English", "gemini-cli"), ("Prefers small commits", "codex"),
            ("Look at locks first", "claude-code"),
        }  # fmt: skip
        cents = follow() - notes
        assert {words.rstrip(".") for words, _ in cents} == {"Prices are integer cents"}
        assert len(cents) == 1  # it stands in two files
        assert [one.title for one in every_item(store) if one.kind == "memory"] == ["One ledger"]
        assert not [one for one in every_item(store) if one.type == "rule"]
        assert follow() == notes | cents
        owner = next(iter(cents))[1]
        first = shop / ("CLAUDE.md" if owner == "claude-code" else "AGENTS.md")
        first.write_text("- Nothing of it any more\n")
        follow()
        (again,) = [one for one in follow() if "integer cents" in one[0]]
        assert again[1] != owner  # the copy that was left out has taken its place
        first.unlink()
        assert not [one for one in follow() if "Nothing of it" in one[0]]
    for path, (data, stamp) in before.items():
        assert path == first or (path.read_bytes(), path.stat().st_mtime_ns) == (data, stamp)


@pytest.mark.requirement("IMP-07")
def test_lint_shows_copies_and_stale_notes_as_a_diff_and_writes_nothing(run, home, tmp_path):
    shop = tmp_path / "shop"
    (shop / "src").mkdir(parents=True)
    (shop / "src" / "here.py").touch()
    (shop / "CLAUDE.md").write_text("- Use pnpm\n- See `src/here.py`\n- See `src/gone.py`\n")
    (shop / "AGENTS.md").write_text("# All\n\n- use  pnpm.\n- Ask first\n")
    run("remember", "--type", "decision", "We keep one ledger.", cwd=shop)
    before = {path.name: path.read_bytes() for path in shop.glob("*.md")}
    done = run("memory", "lint", "--diff", cwd=shop)
    assert done.code == 3
    assert f"{shop}/CLAUDE.md:3: stale: src/gone.py is not there" in done.out
    assert f"{shop}/AGENTS.md:3: copy: stands in {shop}/CLAUDE.md:1 as well" in done.out
    assert "\n-- use  pnpm.\n" in done.out
    assert "\n-- See `src/gone.py`" in done.out
    assert {path.name: path.read_bytes() for path in shop.glob("*.md")} == before


@pytest.mark.requirement("IMP-07")
def test_a_note_is_told_to_the_agents_that_do_not_load_it(run, home, tmp_path):
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "CLAUDE.md").write_text("- The heron deploy script needs the VPN of the harbour\n")
    assert run("import", "notes", str(shop)).code == 0
    store = open_store(home, now=1)
    with closing(store):

        def told(client):
            here = Here(identify_project(str(shop)), "s", NOW, client=client)
            words = "Why does the heron deploy script fail without the VPN of the harbour?"
            return "heron" in at_prompt(store, words, here).text

        assert [told(client) for client in ("claude-code", "codex", "")] == [False, True, False]
