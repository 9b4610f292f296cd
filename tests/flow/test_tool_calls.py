"""What a tool was given and what it gave back: as stored, as shown, and in older stores."""

from __future__ import annotations

import apsw
import pytest

from tests.serving import serving
from tests.tool_calls import NEW_TEXT, SCRIPT, make_calls
from yester.agents.base import TOOLS
from yester.cards.tools import split_call
from yester.model import Filters, Item, replace
from yester.store import open_store
from yester.text.document import content_hash

pytestmark = pytest.mark.requirement("DEL-10", "CAP-16")


def test_the_api_tells_output_from_input_whatever_either_holds(home, run, transcript):
    make_calls(transcript())
    assert run("index").code == 0
    with serving(home) as api:
        (session,) = api.get("/api/sessions")["sessions"]
        path = f"/api/sessions/S{session['db_id']}/transcript"
        rows = [row for row in api.get(path)["results"] if row["role"] == "tool"]
    for row in rows:
        whole = f"{row['input']}\n\n{row['output']}" if row["output"] else row["input"]
        assert row["narrative"] == whole
    assert [(row["title"], row["output"]) for row in rows] == [
        ("Edit pay.py +3 −2", ""),
        ("Write key.py (failed)", "Error: EACCES: permission denied"),
        ("MultiEdit pay.py +4 −3", "Applied 1 edit to /home/sam/shop/pay.py"),
        ("mcp__editor__insert: pay.py", "inserted 4 lines"),
        ("Bash: cat > key.py", "1 passed\n\nall well"),
        ("Read pay.py", "def charge(order):\n\n    pass"),
        ("Bash: true", ""),
    ]
    assert rows[0]["input"].endswith(NEW_TEXT)
    assert rows[4]["input"] == SCRIPT


def tool_items(home) -> list[Item]:
    store = open_store(home, now=1)
    try:
        return store.select(Filters(kinds=("message",)))
    finally:
        store.close()


def make_old(home) -> None:
    """The store as it was before uses of tools had a structure."""
    hashes = [(content_hash(replace(one, call=None)), one.id) for one in tool_items(home)]
    db = apsw.Connection(str(home / "yester.db"))
    db.executemany("UPDATE item SET hash = ? WHERE id = ?", hashes)
    for name in ("machine", "segment", "item", "version"):
        db.execute(f"DROP TABLE roam_{name}")
    db.execute("DROP TABLE share_item; DROP TABLE share_cursor")
    db.execute("DROP TABLE line_edit; DELETE FROM meta WHERE key = 'line_key'")
    db.execute("DROP INDEX item_turn; DROP INDEX item_counted; DROP INDEX item_put_away")
    db.execute("DROP TABLE failure; ALTER TABLE item DROP COLUMN call")
    db.execute("DELETE FROM migration WHERE version >= 15; PRAGMA user_version = 14")
    db.close()


@pytest.mark.requirement("STO-01")
def test_an_older_store_gets_the_structure_by_reading_again_and_nothing_twice(
    home, run, transcript
):
    written = transcript()
    make_calls(written)
    gone = transcript("bbbbbbbb-0000-4000-8000-000000000002")
    make_calls(gone)
    assert run("index").code == 0
    before = tool_items(home)
    make_old(home)
    gone.path.unlink()
    assert {one.call for one in tool_items(home)} == {None}
    assert run("index").code == 0
    after = tool_items(home)
    lost = [replace(one, call=None) for one in before if one.session == gone.session]
    assert [one for one in after if one.session == gone.session] == lost
    kept = [one for one in before if one.session == written.session]
    assert [one for one in after if one.session == written.session] == kept
    assert any(one.call for one in kept)
    assert run("index").out == "nothing new in 1 transcript\n"


def test_a_call_of_an_older_store_is_taken_apart_only_where_that_is_certain():
    edits = {t: row for t, row in TOOLS.items() if row.file == "changed" or "patch" in t}
    assert len(edits) > 15
    body = f"{NEW_TEXT}\n{NEW_TEXT}\n\ndone"
    for name in (*edits, *map(str.upper, edits), *map(str.title, edits), "mcp__editor__insert"):
        assert split_call(old_call(name, body)) == (body, None), name
    assert split_call(old_call("Bash", f"{SCRIPT}\n\n1\n\n2")) == (SCRIPT, "1\n\n2")
    assert split_call(old_call("Bash", "true")) == ("true", "")
    assert split_call(old_call("Read", "a.py\n\na")) == ("a.py\n\na", None)


def test_a_command_that_was_cut_before_its_end_is_not_said_to_have_no_output():
    body = (
        "cat <<'EOF'\none\n\n[… 9,000 characters left out, see the transcript …]\nEnd\n\n3 passed"
    )
    assert split_call(old_call("Bash", body)) == (body, None)


def old_call(tool: str, body: str) -> Item:
    return Item("a", "message", role="tool", tool=tool, body=body)
