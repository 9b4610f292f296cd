"""A session of tool calls as Claude Code writes it, for the tests of how they are shown."""

from __future__ import annotations

from tests.conftest import Transcript

NEW_TEXT = "def charge(order):\n    key = order.id\n\n    return post(order, key)"
SCRIPT = "cat > key.py <<'EOF'\nimport uuid\n\nKEY = uuid.uuid4()\nEOF\npytest -x"

# tool, input, output. New text has blank lines, as files have.
CALLS = (
    ("Edit", {"file_path": "/home/sam/shop/pay.py", "old_string": "def charge(order):\n\n    pass",
              "new_string": NEW_TEXT}, "The file /home/sam/shop/pay.py has been updated."),
    ("Write", {"file_path": "/home/sam/shop/key.py", "content": NEW_TEXT},
     "Error: EACCES: permission denied"),
    ("MultiEdit", {"file_path": "/home/sam/shop/pay.py",
                   "edits": [{"old_string": "a\n\nb", "new_string": NEW_TEXT}]},
     "Applied 1 edit to /home/sam/shop/pay.py"),
    ("mcp__editor__insert", {"path": "pay.py", "text": NEW_TEXT}, "inserted 4 lines"),
    ("Bash", {"command": SCRIPT}, "1 passed\n\nall well"),
    ("Read", {"file_path": "/home/sam/shop/pay.py"}, "def charge(order):\n\n    pass"),
    ("Bash", {"command": "true"}, "(Bash completed with no output)"),
)  # fmt: skip


def make_calls(written: Transcript) -> None:
    written.user("make the calls idempotent")
    for tool, given, output in CALLS:
        written.result(written.call(tool, **given), output, error=output.startswith("Error"))
