"""What edits wrote, whichever tool made them, and the lines that are known again."""

from __future__ import annotations

import pytest

from tests.table import each
from yester.agents.base import Result
from yester.agents.values import join_fields
from yester.ingest.prepare import prepare_item
from yester.model import Item, ToolCall, replace
from yester.text.edits import edited_lines, normalise_line

pytestmark = pytest.mark.requirement("REC-23")

OLD = "def charge(order):\n    return None\n"
NEW = "def charge(order):\n    retry(order, times=3),\n    return None\n"
PATCH = """*** Begin Patch
*** Update File: /home/sam/shop/pay.py
@@
 def charge(order):
-    return old(order)
+    return post(order)
*** Add File: /home/sam/shop/keys.py
+KEY = make_key()
*** End Patch"""


def used(files: tuple[str, ...] = ("pay.py",), **given: str) -> Item:
    body, places = join_fields(given.items(), named=False)
    call = ToolCall(tuple(places))
    return Item(
        "r", "message", role="tool", tool="Edit", body=body, call=call, files_modified=files
    )


def written(item: Item) -> list[tuple[str, str]]:
    return [
        (one.path, line)
        for one in edited_lines(item)
        for at, line in enumerate(one.lines)
        if not one.added or one.added[at]
    ]


@each(("line", "known_as"), [
    ("\t  return   compute( total ) ;", "return compute( total )"),
    ("    name: str,", "name: str"),
    ("}", ""), ("// ---------", ""), ("x = 1", ""), ("", ""),
    ("key = [redacted:aws-key]  # do not log", ""), ("a [private] remark", ""),
    ("größe = breite", "größe = breite"), ("返回空值并且记录日志信息", "返回空值并且记录日志信息"),
])  # fmt: skip
def test_a_line_is_known_by_its_words_and_not_by_indent_or_its_last_comma(line, known_as):
    assert normalise_line(line) == known_as


@each(("item", "lines"), [
    (used(file_path="pay.py", old_string=OLD, new_string=NEW), ["retry(order, times=3)"]),
    (used(filePath="pay.py", oldString=OLD, newString=NEW), ["retry(order, times=3)"]),
    (used(file_path="pay.py", edits='[{"old_string": "a", "new_string": "charge(order)"}]'),
     ["charge(order)"]),
    (used(path="pay.py", edits='[{"oldText": "a", "newText": "charge(order)"}]'),
     ["charge(order)"]),
    (used(file_path="pay.py", content=OLD), ["def charge(order):", "return None"]),
    (used(path="pay.py", file_text=OLD), ["def charge(order):", "return None"]),
    (used(file_path="pay.py", old_string=NEW, new_string=OLD), []),
])  # fmt: skip
def test_the_lines_an_edit_introduced_are_found_whatever_its_tool_calls_them(item, lines):
    assert written(item) == [("pay.py", line) for line in lines]


def test_a_patch_writes_into_each_of_its_files():
    item = used(("pay.py", "keys.py"), input=PATCH)
    assert written(item) == [("pay.py", "return post(order)"), ("keys.py", "KEY = make_key()")]
    assert edited_lines(item)[0].removed == ("return old(order)",)


def test_what_only_moved_was_not_written_and_a_failed_edit_wrote_nothing():
    moved = replace(used(new_string=""), changes=(
        ("def charge(order):\n    check(order)", "def charge(order):"),
        ("def refund(order):", "def refund(order):\n    if order.paid:\n        check(order)"),
    ))  # fmt: skip
    assert written(moved) == [("pay.py", "if order.paid:")]
    failed = Result("no such text", failed=True).complete_call(used(new_string=NEW))
    assert edited_lines(failed) == ()


def test_lines_are_taken_from_the_redacted_text_and_from_all_of_it():
    secret = "ghp_" + "a1B2" * 9
    lines = [f"value_{number} = compute({number})" for number in range(900)]
    text = "\n".join([f'token = "{secret}"', *lines])
    entry = prepare_item(used(file_path="pay.py", content=text))
    assert len(entry.item.body) < len(text)  # what is kept is cut
    assert list(entry.edits[0].lines) == lines
    told = replace(
        used(new_string="x"), changes=(("", f"send_with({secret!r})\nsend_again(order)"),)
    )
    entry = prepare_item(told)
    assert entry.edits[0].lines == ("send_again(order)",)
    assert entry.item.changes == ()
