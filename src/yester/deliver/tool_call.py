"""A stored use of a tool, taken apart into what it was given and what it gave back.

Readers join both with a blank line (`agents/values.py`), and the new text of an edit has blank
lines of its own. So only tools whose input is known to have none, and shells, whose documents can
be recognised, are taken apart; of all others the whole is what was put in, with a result perhaps at
its end.
"""

from __future__ import annotations

from yester.distil.commands import split
from yester.ingest.prepare import SHELLS

# Tools that take names, patterns and addresses, in lower case; none that changes a file.
_LOOKS = frozenset(
    {
        "codebase_search", "file_search", "glob", "google_web_search", "grep", "grep_search",
        "list", "list_directory", "ls", "read", "read_bash", "read_file", "read_file_v2",
        "read_many_files", "readfile", "search_file_content", "semanticsearch", "view",
        "view_image", "web_search", "websearch",
    }
)  # fmt: skip


def split_call(tool: str, text: str) -> tuple[str, str | None]:
    """Input and output; "" where there was none, None where it cannot be told apart."""
    name = tool.lower()
    if name in _LOOKS:
        given, _, output = text.partition("\n\n")
    elif name in SHELLS:
        given, output = split(text)
        if not output and "\n\n" in text:  # a document without its end: long texts are cut
            return text, None
    else:
        return text, None
    return given, output
