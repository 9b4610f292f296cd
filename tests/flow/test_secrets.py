"""Every kind of secret, in every form it comes in, leaves no byte in yester's home."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256

import pytest

import yester
from tests.capturing import Told, leave
from tests.redaction import list_examples
from yester.redact import load_rules

pytestmark = pytest.mark.requirement("CAP-10")

# One of each kind: what else a kind looks like is shown by the tests of the rules.
EXAMPLES = [(rule.name, list_examples(rule)[0]) for rule in load_rules()]


def bytes_of(home) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


def left_behind(home) -> list[str]:
    """The kinds of secret of which something longer than a few characters is still there."""
    stored = bytes_of(home)
    return sorted(
        {
            name
            for name, example in EXAMPLES
            for line in example.secret.splitlines()
            if len(line) >= 8 and line.encode() in stored
        }
    )


def test_no_secret_of_a_session_reaches_the_store(run, transcript, home):
    t = transcript()
    for name, example in EXAMPLES:
        text = example.text
        t.user(f"Here is {name}:\n{text}\nuse it")
        t.assistant(f"I will use it. {text}", {"type": "thinking", "thinking": text})
        t.result(t.call("Bash", command=f"cat <<'EOF'\n{text}\nEOF", description=name), text)
        t.result(t.call("Write", file_path=f"/home/sam/code/shop/{name}.env", content=text), "ok")
        diff = "\n".join(f"+{line}" for line in text.splitlines())
        t.result(t.call("Bash", command="git diff"), f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n{diff}\n")
        t.result(t.call("Read", file_path="/x.json"), json.dumps({"config": text}))
        todos = [{"content": text, "status": "pending"}]
        t.result(t.call("TodoWrite", todos=todos), "ok")
        t.other("queue-operation", operation="enqueue", content=text)
        t.result(t.call("ExitPlanMode", plan=f"# Plan\n{text}"), "ok")
    t.other("custom-title", customTitle=f"title {EXAMPLES[0][1].text}")
    assert run("index").code == 0
    assert run("backup").code == 0
    assert left_behind(home) == []
    hits = run("recall", "use it", "-n", "1000", "--raw").out
    assert "[redacted:" in hits


def test_no_name_title_or_field_carries_a_secret(run, transcript, home, tmp_path):
    """A token in each place that is not the text of a message, and what every command says."""
    tokens: dict[str, str] = {}

    def token(place: str) -> str:
        return tokens.setdefault(place, "ghp_" + sha256(place.encode()).hexdigest()[:36])

    told = Told(cwd=f"/home/sam/{token('folder of a hook')}")
    t = transcript(cwd=f"/home/sam/{token('folder')}", branch=f"feature/{token('branch')}")
    t.user("Why does the checkout fail?")
    t.result(t.call("Read", file_path=f"/x/{token('file')}.env"), "empty")
    edit = {"old_string": f"a = '{token('old text')}'", "new_string": f"a = '{token('new text')}'"}
    t.result(t.call("Edit", file_path="/x/a.py", **edit), "ok")
    t.result(t.call("Bash", command="x", description=token("description")), token("error"), True)
    t.result(t.call("WebFetch", url=f"https://x.example/?t={token('address')}", prompt="x"), "ok")
    t.result(t.call("mcp__a__b", headers={token("name of a field"): [token("field")]}), "ok")
    t.result(t.call("Task", prompt=token("task"), subagent_type=token("sub-agent")), "done")
    t.result(t.call(token("name of a tool"), pattern=token("pattern")), "none")
    t.assistant(f"Fixed the checkout; {token('answer')} was old.")
    t.other("custom-title", customTitle=token("title"))
    t.other("summary", summary=token("summary"), leafUuid="x")
    t.other("user", slug=token("slug"), uuid="u", message={"role": "user", "content": "Go on"})
    leave(
        home, told.prompt("Use it", permission_mode=token("mode")),
        told.tool("Bash", {"command": "x"}, {"stdout": token("output of a hook"), "stderr": ""}),
        told.failed("x", token("error of a hook")), told.stop(token("end of a turn")),
    )  # fmt: skip
    for words in (
        ("index",), ("worker", "drain"), ("distil", "--backfill"), ("backup",), ("sessions",),
        ("recall", "checkout"), ("recent",), ("status",), ("doctor",), ("projects",),
        ("export", "jsonl", str(tmp_path / "all.jsonl")),
    ):  # fmt: skip
        done = run(*words)
        assert not [place for place, one in tokens.items() if one in done.out + done.err], words
    kept = bytes_of(home) + (tmp_path / "all.jsonl").read_bytes()
    kept += b"".join(gzip.decompress(path.read_bytes()) for path in home.rglob("*.gz"))
    assert b"checkout" in kept
    assert [place for place, one in tokens.items() if one[8:40].encode() in kept.lower()] == []


def test_a_secret_across_the_place_where_output_is_cut_leaves_no_half(run, transcript, home):
    t = transcript()
    for _, example in EXAMPLES:
        text = example.text
        for before in (6_000 - len(text) // 2, 5_995, 6_001 - len(text)):
            output = "x " * (max(before, 2) // 2) + "\n" + text + "\n" + "y " * 3_000
            t.result(t.call("Bash", command="cat log"), output)
        output = "x " * 6_000 + "\n" + text + "\n" + "y " * 990
        t.result(t.call("Bash", command="cat log"), output)
    assert run("index").code == 0
    stored = bytes_of(home)
    halves = {
        name
        for name, example in EXAMPLES
        for line in example.secret.splitlines()
        if len(line) >= 24 and (line[: len(line) // 2 + 4].encode() in stored)
    }
    assert halves == set()


def test_no_secret_of_a_program_reaches_the_store(home):
    with yester.open(home) as memory:
        for number, (_, example) in enumerate(EXAMPLES):
            memory.add([{
                "ref": str(number), "title": example.text, "text": example.text,
                "subtitle": example.text, "facts": [example.text], "sections": {"a": example.text},
                "tags": [example.text], "concepts": [example.text], "files": [example.text],
            }])  # fmt: skip
        assert (home / "yester.db-wal").stat().st_size > 0
        assert left_behind(home) == []
    assert left_behind(home) == []


def test_what_an_older_version_stored_is_redacted_on_the_way_out(run, home):
    from yester.model import Entry, Item, Session
    from yester.text.document import expand_item

    _, example = EXAMPLES[0]
    with yester.open(home) as memory:
        item = Item(
            "old", "message", project="name:p", session="s", agent="a", epoch=1,
            title=f"title {example.text}", body=f"needle {example.text}",
        )  # fmt: skip
        with memory.store.transaction("items"):
            memory.store.put_session(Session("s", "a", "name:p", 1, 1, title=example.text))
            memory.store.put([Entry(item, b"x" * 16, expand_item(item))])
        (hit,) = memory.recall("needle")
        assert example.secret not in repr(hit)
        assert example.secret not in repr(memory.get([hit.id]))
    for words in (("recall", "needle", "--raw"), ("recall", "needle", "--json"), ("show", "1"),
                  ("sessions",), ("sessions", "--json"),
                  ("recent",), ("recent", "--json")):  # fmt: skip
        done = run(*words)
        assert done.code == 0
        assert example.secret not in done.out + done.err, words


@pytest.mark.requirement("CAP-09")
@pytest.mark.parametrize(
    "form",
    [
        "<private>{}</private>",
        "<PRIVATE>{}</PRIVATE>",
        "<private>{}",
        "<private><private>{}</private> {}</private>",
        '<private reason="mine">{}</private >',
        "< private >{}</ private>",
    ],
)
def test_private_text_is_stored_nowhere_in_any_form(run, transcript, home, form):
    t = transcript()
    hidden = form.replace("{}", "the wombat password is mauve")
    t.user(f"Remember the budget. {hidden}")
    t.result(t.call("Bash", command=f"echo '{hidden}'"), f"out {hidden}")
    t.other("queue-operation", operation="enqueue", content=hidden)
    assert run("index").code == 0
    assert b"wombat" not in bytes_of(home)
    assert run("recall", "budget").code == 0


@pytest.mark.requirement("CAP-10")
def test_nothing_printed_about_a_bad_line_shows_what_is_in_it(run, transcript):
    t = transcript()
    t.user("hello")
    for _, example in EXAMPLES:
        t.raw(
            '{"type": "user", "message": ' + json.dumps(example.text)[:-1].replace("\n", " ") + "\n"
        )
    done = run("index")
    for name, example in EXAMPLES:
        assert example.secret not in done.err, name
