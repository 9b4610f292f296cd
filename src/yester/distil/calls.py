"""A stored use of a tool: what it was given, what it gave back, and a title for it.

Uses are stored with their structure (`model.ToolCall`). What was stored before schema 15 and whose
transcript is gone has none: there, and only here, input and output are guessed from the text.
"""

from __future__ import annotations

import re

from yester.agents.values import decode_json, find_shell_call, text_at
from yester.distil.commands import kind, main_part, program
from yester.ingest.prepare import SHELLS
from yester.model import Item

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
# Tools that take names, patterns and addresses, in lower case; none that changes a file.
_LOOKS = frozenset(
    {
        "codebase_search", "file_search", "glob", "google_web_search", "grep", "grep_search",
        "list", "list_directory", "ls", "read", "read_bash", "read_file", "read_file_v2",
        "read_many_files", "readfile", "search_file_content", "semanticsearch", "view",
        "view_image", "web_search", "websearch",
    }
)  # fmt: skip
OLD_TEXT = ("old_string", "oldString", "old_str")
NEW_TEXT = ("new_string", "newString", "new_str")
_PATCH = ("patchText", "patch", "input")
_PATCH_LINE = re.compile(r"^([+-])(?!\+\+ |-- )(.*)", re.M)


def split_call(item: Item) -> tuple[str, str | None]:
    """Input and output of a use of a tool; "" where there was none, None where it is not known or
    cannot be told apart."""
    if item.call is None:
        return _guess_parts(item.tool.lower(), item.body)
    if item.call.result is None:
        return item.body, None
    start, end = item.call.result
    given = item.body[:start]
    if given and not given.endswith("\n\n"):  # other marks between the two, or what was left out
        given = "\n".join(item.body[begin:to] for _, begin, to in item.call.fields)
    return given.removesuffix("\n\n"), item.body[start:end]


def shell_command(item: Item) -> str:
    """What a shell was told to run."""
    command = item.call_field("command", "cmd")
    return split_call(item)[0] if command is None else command


def call_title(item: Item) -> str:
    """`Edit git_test.go +3 −1`, `pytest: 2 failed`, `Bash: git push`; "" where nothing tells."""
    call = item.call
    if call is None or not item.tool:
        return ""
    if item.tool.lower() in SHELLS:
        return _shell_title(item)
    failed = " (failed)" if "error" in item.tags else ""
    if item.files_modified:
        name = _file_name(item.files_modified[0])
        return f"{item.tool} {name}{failed or _count_changes(item)}"
    if item.files_read:
        return f"{item.tool} {_file_name(item.files_read[0])}{failed}"
    texts = (item.body[start:end].strip() for _, start, end in call.fields)
    said = next(filter(None, texts), "")
    return f"{item.tool}: {said.splitlines()[0]}{failed}" if said else ""


def _shell_title(item: Item) -> str:
    command = (item.call_field("command", "cmd") or "").strip()
    if not command:
        return ""
    if kind(command) == "test":
        from yester.distil.runners import counted  # many patterns, seldom needed

        if tests := counted(item.call_result or ""):
            outcome = f"{tests.failed} failed" if tests.failed else f"{tests.passed} passed"
            return f"{program(command)}: {outcome}"
    status = item.call.status if item.call else None
    failed = f" (exit {status})" if status else " (failed)" if "error" in item.tags else ""
    return f"{item.tool}: {main_part(command)}{failed}"


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def _count_changes(item: Item) -> str:
    """` +3 −1`, the lines that an edit added and took away; "" where it does not tell."""
    if item.call is None or item.call.cut:
        return ""
    if patch := item.call_field(*_PATCH):
        signs = [sign for sign, _ in _PATCH_LINE.findall(patch)]
        added, removed = signs.count("+"), signs.count("-")
    else:
        pairs = replaced_texts(item)
        counts = [_count_lines(old, new) for old, new in pairs]
        added, removed = sum(one[0] for one in counts), sum(one[1] for one in counts)
    return f" +{added} −{removed}" if added or removed else ""


def replaced_texts(item: Item) -> list[tuple[str, str]]:
    """(before, after) of each place that an edit changed; none where it does not tell."""
    old, new = item.call_field(*OLD_TEXT), item.call_field(*NEW_TEXT)
    if old is not None or new is not None:
        return [(old or "", new or "")]
    if patch := item.call_field(*_PATCH):
        lines = _PATCH_LINE.findall(patch)
        old, new = ("\n".join(text for sign, text in lines if sign == one) for one in "-+")
        return [(old, new)]
    edits = decode_json(item.call_field("edits") or "")
    if not isinstance(edits, list):
        return []
    pairs = [(text_at(edit, *OLD_TEXT), text_at(edit, *NEW_TEXT)) for edit in edits]
    return [pair for pair in pairs if any(pair)]


def _count_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and taken away, without those that both begin and end with."""
    before, after = old.splitlines(), new.splitlines()
    for end in (0, -1):
        while before and after and before[end] == after[end]:
            before.pop(end)
            after.pop(end)
    return len(after), len(before)


# --- what was stored without its structure ------------------------------------------------------


def _guess_parts(tool: str, text: str) -> tuple[str, str | None]:
    """Input and output were joined by a blank line, and the new text of an edit has blank lines of
    its own. So only tools whose input is known to have none, and shells, whose documents can be
    recognised, are taken apart."""
    if tool in _LOOKS:
        given, _, output = text.partition("\n\n")
        return given, output
    if tool not in SHELLS:
        return text, None
    given, output = guess_shell_parts(text)
    unsure = not output and "\n\n" in text  # a document without its end: long texts are cut
    return (text, None) if unsure else (given, output)


def guess_shell_parts(text: str) -> tuple[str, str]:
    """Input and output. Documents in the command may hold blank lines of their own."""
    call = find_shell_call(text)
    if call.result:
        _, start, end = call.fields[0]
        return text[start:end], text[slice(*call.result)].strip("\n")
    at = 0
    while True:
        at = text.find("\n\n", at)
        if at < 0:
            return text, ""
        head = text[:at]
        if not _is_unfinished(head) or text.startswith("Exit code ", at + 2):
            return head, text[at + 2 :]
        at += 2


def _is_unfinished(head: str) -> bool:
    for opened in _HEREDOC.finditer(head):
        end = re.compile(rf"^\s*{re.escape(opened[2])}\b", re.M)
        if not end.search(head, opened.end()):
            return True
    if "<<" in head:
        return False
    return head.replace('\\"', "").count('"') % 2 == 1
