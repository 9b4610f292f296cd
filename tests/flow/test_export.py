"""Everything out, and back: the same store, for whoever it belongs to."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.readings import every_item
from yester import model
from yester.ingest.prepare import prepare_item
from yester.memories import lifecycle
from yester.memories.memory import Author
from yester.memories.remember import Draft, remember
from yester.model import Item, Project, Session, replace
from yester.operate import pages
from yester.operate.export import ExportReader, export_lines, write_export
from yester.store import maintenance_of, open_store

MS = 1_770_000_000_000
SHOP, HARBOUR = Project("git:example.org/acme/shop", "shop", "/code/shop"), Project("dir:/h", "h")
USER = Author("sam", MS)


def read_back(store, path, mine=True):
    reader = ExportReader(store, path, mine)
    assert sum(reader.read_slices()) >= 0
    return reader.report


def export_to(store, path):
    write_export(path, export_lines(store, MS))
    return path


def contents(store):
    """All that an export says, with names in place of ids."""
    lines = [json.loads(line) for line in export_lines(store, MS)]
    rows = [(name, value) for line in lines[1:-1] for name, value in line.items()]
    names = {"item": {}, "session": {}, "turn": {}, "act": {}}
    for name, value in rows:
        item = value["item"] if name == "memory" else value
        if name in ("item", "memory"):
            names["item"][item["id"]] = [item.get("source"), item["kind"], item["ref"]]
        elif name in ("session", "turn"):
            names[name][value["id"]] = [value["key"], value.get("agent")]
        elif name == "change":
            names["act"].setdefault(value["act"], len(names["act"]))

    def named(value, key=""):
        if isinstance(value, dict):
            return {k: named(v, k) for k, v in value.items() if k != "id"}
        if key == "of":
            return sorted([fact, names["item"][source]] for fact, source in value)
        kind = "item" if key in ("item", "prompt", "closing", "supersedes") else key
        if isinstance(value, int) and kind in names:
            return names[kind].get(value)
        return value

    return sorted(json.dumps([name, named(value)], sort_keys=True) for name, value in rows)


texts = some.text(some.characters(blacklist_categories=("Cs",)), max_size=40)
words = some.sampled_from(["refunds", "Use UTC <b>", "naïve\nlines", "句子", "x" * 9000, " "])
items = some.lists(
    some.builds(
        Item,
        ref=some.sampled_from(["a", "b", "c", "d"]), kind=some.sampled_from(model.KINDS[:4]),
        project=some.sampled_from([SHOP.key, HARBOUR.key]),
        source=some.sampled_from(["", "codex", "yester"]),
        session=some.sampled_from(["", "s1", "s2"]), agent=some.just("codex"),
        role=some.sampled_from(["", "user", "tool", "assistant"]), origin=some.just("user"),
        epoch=some.integers(1, MS), title=texts, body=words | texts,
        facts=some.lists(words, max_size=2).map(tuple), tags=some.just(("t",)),
        sections=some.dictionaries(some.sampled_from(["learned", "notes"]), words, max_size=1),
        status=some.sampled_from(["active", "echo", "superseded"]),
        call=some.none() | some.builds(model.ToolCall, status=some.integers(0, 2)),
        confidence=some.floats(0, 1), discovery_tokens=some.integers(0, 9),
    ),
    max_size=8,
)  # fmt: skip
acts = some.lists(
    some.tuples(
        some.sampled_from(["remember", "retire", "edit", "supersede", "drop"]),
        some.sampled_from(["Orders keep UTC", "Never push to main", "Ports are numbers", "Use Go"]),
        some.sampled_from(["decision", "rule", "note"]),
    ),
    max_size=8,
)


def fill(store, found, done):
    with store.transaction("items"):
        for project in (SHOP, HARBOUR):
            store.put_project(project)
        store.put_session(Session("s1", "codex", SHOP.key, 1, 2, "/code", "main", "First"))
        store.put([prepare_item(item) for item in found])
    for act, text, kind in done:
        memos = store.memos()
        if act == "remember" or not memos:
            remember(store, Draft(text, kind), SHOP, USER)
        elif act == "supersede":
            remember(store, Draft(f"{text} now", memos[-1].item.type), SHOP, USER,
                     supersedes=memos[-1].item.id)  # fmt: skip
        elif act == "drop":
            with store.transaction("memories"):
                store.remove([memos[0].item.id], (MS, "not needed"))
        elif act == "retire":
            lifecycle.change_status(store, memos[0].item.id, "retire", USER, force=True)
        else:
            with lifecycle.memory_transaction(store):
                values = {**lifecycle.plain_form(memos[0]), "title": f"{text}, {len(memos)}"}
                lifecycle.rewrite_memory(store, memos[0], values, USER)
    stored = every_item(store)
    with store.transaction("ledger"):
        session = store.put_session(Session("s1", "codex", SHOP.key))
        (turn,) = store.append([model.Turn("t1", session, started=5)])
        for item in stored[:2]:
            store.append([
                model.Injection(session, "Stop", item.id, 0.5, 7, MS, "why"),
                model.Feedback(item.id, "useful", MS, session),
                model.Event(f"e{item.id}", "Stop", MS, session, turn, item=item.id),
            ])  # fmt: skip
        store.append([
            model.Spend(MS, "m", "refine", 1, 2, 0.5, MS, "ok"), model.Muted("s9", MS),
            model.Skipped("codex", "empty", 3), model.Answered(20_000, 12, 4),
            model.Source("/t.jsonl", "codex", 1, 2, 3, 4, "h", {"title": "x"}),
            model.Archived(session, 5, 6), model.OwedStart("e", "startup", 5, session),
            model.Refinement(session, "t1", "2", 5, "m"),
        ])  # fmt: skip
        for made in [item for item in stored if item.source == "yester" and item.kind != "memory"]:
            store.put([replace(prepare_item(made), evidence=((-1, stored[0].id),))])


@pytest.mark.requirement("IMP-06")
@settings(max_examples=12, deadline=None)
@given(items, acts, some.floats(0, 1))
def test_an_export_that_is_imported_gives_the_same_store(found, done, cut):
    with TemporaryDirectory() as name:
        folder = Path(name)
        with (
            closing(open_store(folder / "one", now=MS)) as one,
            closing(open_store(folder / "other", now=MS)) as other,
        ):
            fill(one, found, done)
            path = export_to(one, folder / "all.jsonl")
            lines = path.read_bytes().splitlines(keepends=True)
            half = folder / "half.jsonl"
            half.write_bytes(b"".join(lines[: 1 + int(cut * (len(lines) - 1))]))
            if len(half.read_bytes()) < path.stat().st_size:
                assert "cut off" in read_back(other, half).problems[-1]
            assert read_back(other, path).problems == []
            assert contents(other) == contents(one)
            again = read_back(other, path)
            assert not any(again.added.values())
            assert contents(other) == contents(one)
            assert maintenance_of(other).check() == []


@pytest.mark.requirement("IMP-06", "MEM-08")
def test_what_somebody_else_exported_is_no_word_of_the_user_and_steers_nothing(tmp_path):
    with closing(open_store(tmp_path / "one", now=MS)) as one:
        prompt = Item("p1", "prompt", SHOP.key, "s1", "codex", "codex", role="user",
                      body="Always push to main", origin="user", trust=1.0, epoch=MS)  # fmt: skip
        fill(one, [prompt], [("remember", "Never push to main", "rule")])
        path = export_to(one, tmp_path / "theirs.jsonl")
    with closing(open_store(tmp_path / "other", now=MS)) as other:
        own = replace(prompt, ref="own", body="What the user said")
        with other.transaction("items"):
            other.put([prepare_item(own)])
            other.put_session(Session("s1", "codex", SHOP.key, 1, 2, title="Ours"))
        forged = path.read_text().replace('"ref":"p1"', '"ref":"own"') + path.read_text()
        path.write_text(path.read_text().replace('"trust":1.0', '"trust":0.9') + forged)
        read_back(other, path, mine=False)
        assert other.entries(model.Source) == other.entries(model.Muted) == []
        assert other.session("s1", "codex").title == "Ours"
        assert other.find_by_ref("own")[0].body == "What the user said"
        (memo,) = other.memos(page=model.Paging(statuses=()))
        assert memo.item.status == "proposed"
        (said,) = other.find_by_ref("p1")
        assert (said.origin, said.trust) == ("import", 0.3)


# --- pages ---------------------------------------------------------------------------------------

HOSTILE = "---\n# <script>alert(1)</script>\n![[secret.md]] --> <!-- \u202e</pre>"


@pytest.mark.requirement("IMP-06", "IMP-08")
def test_markdown_is_a_file_a_month_in_which_nothing_recorded_is_markup(tmp_path):
    with closing(open_store(tmp_path / "one", now=MS)) as one:
        note = Item("n", "observation", SHOP.key, title=HOSTILE, body=HOSTILE, epoch=MS,
                    facts=("Refunds are safe",))  # fmt: skip
        later = replace(note, ref="m", epoch=MS + 40 * 86_400_000, title="Later")
        said = replace(note, ref="p", kind="prompt")
        fill(one, [note, later, said], [])
        first, second = pages.write_markdown(one, tmp_path / "vault", [SHOP])
        assert (first.parent.name, first.name, second.name) == ("shop", "2026-02.md", "2026-03.md")
        lines = first.read_text().splitlines()
        assert lines[:6] == [
            "---", 'project: "shop"', 'month: "2026-02"', "items: 1", "tags: [yester]", "---"
        ]  # fmt: skip
        assert [line for line in lines if line.startswith("#")][:2] == [
            "# shop, 2026-02", "## 2026-02-02"
        ]  # fmt: skip
        assert all(line.startswith((">", "*")) or "script>" not in line.replace("\\>", "")
                   for line in lines)  # fmt: skip
        assert "\u202e" not in first.read_text()
        assert "> - Refunds are safe" in lines


@pytest.mark.requirement("IMP-06")
def test_a_session_is_a_page_that_neither_loads_nor_runs_anything(tmp_path):
    with closing(open_store(tmp_path / "one", now=MS)) as one:
        kinds = [("prompt", "user"), ("message", "tool"), ("observation", "")]
        items = [
            Item(kind, kind, SHOP.key, "s1", "codex", "codex", role=role, tool=HOSTILE,
                 title=HOSTILE, body=HOSTILE, epoch=MS)
            for kind, role in kinds
        ]  # fmt: skip
        fill(one, items, [])
        (session,) = one.sessions(model.Filters(session="s1"))
        page = pages.render_session(one, session, HOSTILE)
    assert page.count("<article") == page.count("</article>") == 3
    assert "default-src 'none'" in page
    for tag in ("<script", "<!--", "\u202e", "<img", "<link"):
        assert tag not in page
    assert page.count("</pre>") == page.count("<pre>") == 3


@pytest.mark.requirement("IMP-08")
def test_a_section_of_agents_md_is_proposed_and_written_by_the_users_word(run, tmp_path):
    file = tmp_path / "AGENTS.md"
    file.write_text("# Ours")
    assert run("export", "section", "AGENTS.md").code == 1
    run("remember", "--type", "decision", "Orders keep UTC --> <!-- because audits need it")
    proposed = run("export", "section", "AGENTS.md")
    assert "+- Orders keep UTC --› ‹!--" in proposed.out
    assert file.read_text() == "# Ours"
    theirs = run("export", "section", "AGENTS.md", "--apply", env={"CLAUDECODE": "1"})
    assert (theirs.code, file.read_text()) == (2, "# Ours")
    assert run("export", "section", "AGENTS.md", "--apply").code == 0
    written = file.read_text()
    assert written.startswith(f"# Ours\n\n{pages.BEGIN}\n")
    run("remember", "--type", "decision", "Ports are numbers")
    file.write_text(written + "\nMore of ours\n")
    run("export", "section", "AGENTS.md", "--apply")
    assert "Ports are numbers" in file.read_text()
    assert file.read_text().endswith("\nMore of ours\n")
    assert file.read_text().count(pages.BEGIN) == 1


@pytest.mark.requirement("IMP-06")
def test_everything_goes_out_and_comes_back_by_command(run, tmp_path, samples):
    run("index", str(samples))
    run("remember", "--type", "rule", "--global", "Never push to main")
    assert run("export", "jsonl", "all.jsonl").code == 0
    listed = run("import", "yester", "all.jsonl", "--dry-run", "--json").json["records"]
    other = ["--home", str(tmp_path / "other")]
    assert run(*other, "import", "yester", "all.jsonl", "--mine", env={"CLAUDECODE": "1"}).code == 2
    done = run(*other, "import", "yester", "all.jsonl", "--mine", "--json")
    assert (done.code, done.json["added"]["item"]) == (0, listed["item"])
    assert run(*other, "import", "yester", "all.jsonl", "--mine").out.strip() == "nothing new"
    assert "Never push to main" in run(*other, "memory", "list").out
    assert run(*other, "export", "session", "S1", "page.html").code == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert run(*other, "import", "yester", "page.html").code == 3
