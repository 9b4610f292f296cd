"""What a tool was given and what came of it: shell commands, commits, test runs, errors, edits.

The tables are in tables/tools.toml. Uses are stored with their structure (`model.ToolCall`). What
was stored before schema 15 and whose transcript is gone has none: there, and only here, what a
shell was given and gave is guessed from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from yester.ingest.prepare import SHELLS
from yester.model import Item
from yester.tables import load_pattern, load_rows
from yester.text.edits import PATCH, find_edits
from yester.text.edits import is_prose as is_prose

_pattern = partial(load_pattern, "tools")

CHECKS = frozenset({"test", "lint", "build"})

# --- a use of a tool -----------------------------------------------------------------------------

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


def split_call(item: Item) -> tuple[str, str | None]:
    """Input and output of a use of a tool; "" where there was none, None where it is not known or
    cannot be told apart."""
    if item.call is None:
        return _guess_parts(item.body) if item.tool.lower() in SHELLS else (item.body, None)
    if item.call.result is None:
        return item.body, None
    start, end = item.call.result
    given = item.body[:start]
    if given and not given.endswith("\n\n"):  # other marks between the two, or what was left out
        given = "\n".join(item.body[begin:to] for _, begin, to in item.call.fields)
    return given.removesuffix("\n\n"), item.body[start:end]


def _guess_parts(text: str) -> tuple[str, str | None]:
    """Input and output of a shell, which were joined by a blank line. Documents in the command may
    hold blank lines of their own; one without its end was cut, and nothing is certain then."""
    at = text.find("\n\n")
    if at < 0:
        return text, ""
    while at >= 0:
        if not _is_unfinished(text[:at]) or text.startswith("Exit code ", at + 2):
            return text[:at], text[at + 2 :]
        at = text.find("\n\n", at + 2)
    return text, None


def _is_unfinished(head: str) -> bool:
    for opened in _HEREDOC.finditer(head):
        end = re.compile(rf"^\s*{re.escape(opened[2])}\b", re.M)
        if not end.search(head, opened.end()):
            return True
    return "<<" not in head and head.replace('\\"', "").count('"') % 2 == 1


def shell_command(item: Item) -> str:
    """What a shell was told to run."""
    command = item.call_field("command", "cmd")
    return split_call(item)[0] if command is None else command


def typed_command(item: Item) -> str:
    """The first line of what a shell was told; "" for every other item."""
    return command_line(shell_command(item)) if item.tool.lower() in SHELLS else ""


def find_folder(item: Item) -> str:
    """Where a shell was told to run it; "" where that is not said."""
    found = _pattern("folder").search(shell_command(item))
    return (found[1] if found else item.call_field("workdir", "cwd") or "").rstrip("/")


def call_title(item: Item) -> str:
    """`Edit git_test.go +3 −1`, `pytest: 2 failed`, `Bash: git push`; "" where nothing tells."""
    call = item.call
    if call is None or not item.tool:
        return ""
    if item.tool.lower() in SHELLS:
        return _shell_title(item)
    failed = " (failed)" if "error" in item.tags else ""
    if item.files_modified:
        name = file_name(item.files_modified[0])
        return f"{item.tool} {name}{failed or _count_changes(item)}"
    if item.files_read:
        return f"{item.tool} {file_name(item.files_read[0])}{failed}"
    texts = (item.body[start:end].strip() for _, start, end in call.fields)
    said = next(filter(None, texts), "")
    return f"{item.tool}: {said.splitlines()[0]}{failed}" if said else ""


def _shell_title(item: Item) -> str:
    command = (item.call_field("command", "cmd") or "").strip()
    if not command:
        return ""
    if command_kind(command) == "test" and (tests := count_tests(item.call_result or "")):
        outcome = f"{tests.failed} failed" if tests.failed else f"{tests.passed} passed"
        return f"{program_name(command)}: {outcome}"
    status = item.call.status if item.call else None
    failed = f" (exit {status})" if status else " (failed)" if "error" in item.tags else ""
    return f"{item.tool}: {main_part(command)}{failed}"


def file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def file_names(files: Iterable[str], most: int = 3) -> str:
    """Some files by name, and how many more."""
    names = list(dict.fromkeys(map(file_name, files)))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count_changes(item: Item) -> str:
    """` +3 −1`, the lines that an edit added and took away; "" where it does not tell."""
    if item.call is None or item.call.cut:
        return ""
    if patch := item.call_field(*PATCH):
        signs = [sign for sign, _ in _pattern("patch line").findall(patch)]
        added, removed = signs.count("+"), signs.count("-")
    else:
        counts = [_count_lines(old, new) for old, new in replaced_texts(item)]
        added, removed = sum(one[0] for one in counts), sum(one[1] for one in counts)
    return f" +{added} −{removed}" if added or removed else ""


def replaced_texts(item: Item) -> list[tuple[str, str]]:
    """(before, after) of each place that an edit changed; none where it does not tell."""
    return [(one.before, one.after) for one in find_edits(item) if not one.blind]


def _count_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and taken away, without those that both begin and end with."""
    before, after = old.splitlines(), new.splitlines()
    for end in (0, -1):
        while before and after and before[end] == after[end]:
            before.pop(end)
            after.pop(end)
    return len(after), len(before)


# --- what an edit defines ------------------------------------------------------------------------

_MOST_NAMES = 10
_READ_CHARS = 8_000


def defined_names(text: str) -> list[str]:
    """The functions, classes and types whose definition a change holds, in order."""
    found = [
        (match.start(), match["name"])
        for row in load_rows("tools", "definitions")
        for match in row.pattern.finditer(text[:_READ_CHARS])
    ]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def list_names(texts: Iterable[str]) -> str:
    """What changes define, in one line."""
    names = list(dict.fromkeys(name for text in texts for name in defined_names(text)))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


# --- a command -----------------------------------------------------------------------------------

_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""")
_SEPARATOR = re.compile(r"(&&|\|\||;|\n)")
_WORD = re.compile(r"[\w./:@-]+")
_PLACE = re.compile(r"/|\.\w")
_FIRST_WORD = re.compile(r"[ \t]*(\w*)")
_WRAPPED = 50  # characters of a line that may go on in the next one
_NOT_FOUND = 127  # the status of a shell that does not find a program


@dataclass(frozen=True, slots=True)
class Ran:
    """A command and what came of it; `status` is None where nobody told."""

    command: str = ""
    output: str = ""
    status: int | None = None
    refused: bool = False

    @property
    def failed(self) -> bool:
        return self.status not in (0, None)


NOTHING_RAN = Ran()


def read_run(command: str, output: str, failed: bool, status: int | None = None) -> Ran:
    """A command and what came of it. `status` is what the client told; else the output may."""
    if _pattern("refused").search(output[:600]):
        return Ran(command, refused=True)
    if status is None:
        told = _pattern("exit status").search(output[:300])
        status = int(told[1]) if told else int(failed)
    if failed and not status:
        status = 1
    if output.startswith(("Exit code", "Error: Exit code")):
        output = output.split("\n", 1)[1] if "\n" in output else ""
    return Ran(command, output, status)


def split_command(command: str) -> list[str]:
    """The commands of a line, without what only shapes their output or changes the folder."""
    return [part for part, _, _ in _split_parts(command)]


def _split_parts(command: str) -> list[tuple[str, bool, str]]:
    """Each command of a line, whether its output goes through a pipe, and what stands before it:
    && where it runs only if the one before has passed."""
    line = command.split("<<", 1)[0].replace("\\\n", " ")
    shapes_output = _pattern("shapes output")
    wrapper = _pattern("wrapper")
    found = []
    pieces = ["", *_SEPARATOR.split(line)]
    for before, raw in zip(pieces[::2], pieces[1::2], strict=True):
        part = wrapper.sub("", shapes_output.sub("", raw).strip().lstrip("({ "))
        if part and not _pattern("changes folder").match(part):
            found.append((" ".join(part.split()), "|" in raw, before))
    return found


def is_missing_tool(error: str) -> bool:
    """A check that was not there to be run has checked nothing."""
    return _pattern("not run").search(error) is not None


def judge_check(run: Ran, counts: RunCounts, errors: Iterable[Error]) -> bool | None:
    """Has a check passed? None where that is not known: the status may be that of a pipe, or of
    something else in the same command, or nothing was checked."""
    if run.refused or run.status in (None, _NOT_FOUND):
        return None
    if counts:
        agrees = bool(counts.failed) or not run.failed
        return not counts.failed if agrees else None
    errors = list(errors)
    if run.failed and any(is_missing_tool(error.text) for error in errors):
        return None
    parts, main = _split_parts(run.command), main_part(run.command)
    complaints = _pattern("complaints").search(run.output)
    if complaints and not run.failed and _kind_of_part(main) != "test":  # a linter's beside them
        return not int(complaints["number"] or 0)
    at = next((at for at, (part, _, _) in enumerate(parts) if part == main), None)
    if at is None:
        return None
    if run.failed:
        only_checks = all(_kind_of_part(part) in CHECKS for part, _, _ in parts)
        return False if only_checks or at == len(parts) - 1 else None
    said = _pattern("says it passed").search(run.output)
    if said and said.lastgroup == _kind_of_part(main) and not any(errors):
        return True
    proven = not parts[at][1] and all(before == "&&" for _, _, before in parts[at + 1 :])
    return True if proven else None


def command_kind(command: str) -> str:
    """test, lint, build, install, look, vcs or "": the first of these that a part of it is."""
    kinds = {_kind_of_part(part) for part in split_command(command)}
    for name in ("test", "lint", "build", "install", "vcs", ""):
        if name in kinds:
            return name
    return "look"


def _kind_of_part(part: str) -> str:
    rows = load_rows("tools", "commands")
    return next((row.name for row in rows if row.pattern.match(part)), "")


def check_parts(command: str) -> set[str]:
    """The tests, lints and builds among the commands of a line."""
    return {part for part in split_command(command) if _kind_of_part(part) in CHECKS}


def main_part(command: str) -> str:
    """The one that matters: the first of the command's kind, else the first that does something."""
    parts = split_command(command) or [command.split("\n", 1)[0]]
    for wanted in (frozenset({command_kind(command)}) & CHECKS, frozenset({"install", "vcs", ""})):
        for part in parts:
            if _kind_of_part(part) in wanted:
                return part
    return parts[0]


def failed_part(command: str) -> str:
    """The one that most likely ended it where it failed: the last that does something."""
    whole = _QUOTED.sub(lambda quoted: _SEPARATOR.sub(" ", quoted[0]), command)
    parts = [part for part in split_command(whole) if _kind_of_part(part) != "look"]
    return parts[-1] if parts else main_part(command)


def command_line(command: str) -> str:
    """The first line as it was typed, without what only shapes its output."""
    return _pattern("shapes output").sub("", command.split("\n", 1)[0]).strip()


def command_words(command: str) -> list[str]:
    return _WORD.findall(command)


@lru_cache(maxsize=512)
def program_name(command: str) -> str:
    """`go test`, `pnpm`, `gh pr`: what must be the same for two runs to be comparable."""
    found = command_words(main_part(command))
    names = [word for word in found[:5] if not word.startswith("-") and not _PLACE.search(word)]
    return " ".join(names[: 3 if "run" in names[:2] else 2])


# --- what a command changes by itself ------------------------------------------------------------

_IN_PLACE = re.compile(
    r"(?:^|[;&|(])[^\S\n]{0,99}(?:sed|perl) -\w*i\S*"
    rf"(?:\s+(?:-\w+|{_QUOTED.pattern}))+\s+(?P<files>[^;&|<>\n]+)", re.M
)  # fmt: skip
_FILE = re.compile(r"\A(?!-)[\w./~@+-]*\.\w+")


def changed_files(command: str) -> list[str]:
    """The files that a shell edits in place, moves, removes or writes, as far as they are named.
    Notes are put from folder to folder: that is no work."""
    if _pattern("elsewhere").search(command):
        return []
    line = command.split("<<", 1)[0]
    found = [*_IN_PLACE.finditer(line), *_pattern("writes document").finditer(command)]
    found += [
        match for part in split_command(command) if (match := _pattern("moves files").match(part))
    ]
    if _pattern("inline script").search(command) and load_pattern("tools", "script writes").search(
        command
    ):
        found += _pattern("script opens").finditer(command)
    words = [word for match in found for word in match["files"].split()]
    return [word for word in words if _FILE.fullmatch(word) and not is_prose(word)]


def removed_files(command: str) -> tuple[str, ...]:
    """The files that a shell removes, as they are named."""
    removes = (_pattern("removes files").match(part) for part in split_command(command))
    return tuple(word for match in removes if match for word in match["files"].split())


def makes_file(item: Item) -> bool:
    """Does it write a whole file, or put text where none was?"""
    edits = find_edits(item)
    return bool(edits) and all(not one.before for one in edits)


def find_rename(command: str) -> tuple[str, str]:
    """A file's name before and after a command that gives it another one; ("", "") if none does."""
    for part in split_command(command):
        if found := _pattern("moves files").match(part):
            names = [file_name(word) for word in found["files"].split() if _FILE.fullmatch(word)]
            if len(names) == 2 and names[0] != names[1] and "mv " in found[0]:
                return names[0], names[1]
    return "", ""


# --- a commit ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Commit:
    subject: str
    body: str
    hash: str = ""
    fixes_up: bool = False  # it goes into an older commit, and only names that


def find_commits(one: Ran) -> Iterator[Commit]:
    """What a command has committed: the messages as they were written."""
    if one.failed or one.refused:
        return
    trial = _pattern("trial repository").search(one.command)
    for found in _pattern("git commit").finditer(one.command):
        if trial and trial.end() <= found.start():
            return
        if "--dry-run" in found["rest"]:
            continue
        made = [each for each in _pattern("printed commit").finditer(one.output) if each["made"]]
        message = _commit_message(one.command[found.start("rest") :])
        if made and "--amend" not in found["rest"]:  # what was merged has its message already
            message = message or made[-1]["subject"]
        if message:
            subject, _, body = message.partition("\n")
            older = subject.removeprefix("fixup! ").removeprefix("squash! ")
            id_ = made[-1]["made"] if made else ""
            yield Commit(older.strip(), _unwrap_lines(body), id_, fixes_up=older != subject)


def is_commit_refused(one: Ran) -> bool:
    """Was a commit tried and not made? Wrappers and pipes hide the status."""
    if one.refused or not _pattern("git commit").search(one.command):
        return False
    made = any(each["made"] for each in _pattern("printed commit").finditer(one.output))
    return not made and (one.failed or _pattern("commit refused").search(one.output) is not None)


def find_rewrite(one: Ran) -> str:
    """How a command has made commits anew, under other ids: rebase, amend, pick or ""."""
    if "Successfully rebased" in one.output:
        return "rebase"
    if one.failed or one.refused:
        return ""
    return (
        "amend"
        if _pattern("amends").search(one.command)
        else "pick"
        if _pattern("picks").search(one.command)
        else ""
    )


def find_pull_request(one: Ran) -> str:
    """The number of the pull request that a command has opened; "" where it has opened none."""
    opens = not one.failed and any("gh pr create" in part for part in split_command(one.command))
    found = _pattern("pull request").findall(one.output) if opens else []
    return found[-1] if found else ""


def printed_commits(one: Ran) -> list[Commit]:
    """The commits that git names in its output, with their ids."""
    if "git" not in one.command:
        return []
    found = _pattern("printed commit").finditer(one.output)
    return [Commit(match["subject"], "", match["made"] or match["listed"]) for match in found]


def _unwrap_lines(text: str) -> str:
    """A line as long as lines may be goes on in the next one, unless that begins a point."""
    lines: list[str] = []
    before = 0
    for line in text.strip().split("\n"):
        goes_on = before >= _WRAPPED and line.strip() and not _pattern("begins a point").match(line)
        if goes_on:
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
        before = len(line)
    return "\n".join(lines)


def _commit_message(rest: str) -> str:
    end = rest.find("git commit", 1)
    rest = rest if end < 0 else rest[:end]
    texts = []
    if from_input := _pattern("message from input").search(rest):
        texts = _read_document(rest, from_input)
    for found in _pattern("commit message").finditer(rest) if not texts else ():
        if found["mark"]:
            texts += _read_document(rest, found)
            break
        text = found["double"] or found["single"] or found["ansi"] or ""
        texts.append(text.replace('\\"', '"').replace("\\`", "`"))
    message = _pattern("trailer").sub("", "\n\n".join(texts)).strip()
    return "" if message.startswith("$(") else message


def _read_document(text: str, begin: re.Match[str]) -> list[str]:
    """The here-document that begins there; none where its mark does not come. Line by line: a
    pattern would look for the mark from every beginning to the end of the text."""
    lines = text[begin.end() :].split("\n")
    for at, line in enumerate(lines):
        if (word := _FIRST_WORD.match(line)) and word[1] == begin["mark"]:
            return ["\n".join(lines[:at])]
    return []


# --- a test run ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunCounts:
    passed: int = 0
    failed: int = 0
    unit: str = ""  # what was counted, where it is not tests

    def __bool__(self) -> bool:
        return bool(self.passed or self.failed)

    def __str__(self) -> str:
        """`2 failed`, `9 passed`, `3 packages passed`"""
        number, word = (self.failed, "failed") if self.failed else (self.passed, "passed")
        return f"{number} {self.unit} {word}" if self.unit else f"{number} {word}"


NO_COUNTS = RunCounts()


def count_tests(output: str) -> RunCounts:
    """What a test run counted, if it did; several runners in one output are added up."""
    for row in load_rows("tools", "runners"):
        found = [m.groupdict() for m in row.pattern.finditer(output)]
        if any(any(match.values()) for match in found):
            failed = sum(int(match.get("failed") or 0) for match in found)
            passed = sum(int(match.get("passed") or 0) for match in found)
            if row.values.get("counts_all"):
                passed = max(passed - failed, 0)
            return RunCounts(passed, failed)
    cases = _pattern("go case").findall(output)
    good, bad = (
        len(_pattern("go package passed").findall(output)),
        len(_pattern("go package failed").findall(output)),
    )
    if cases and (good or bad):
        return RunCounts(max(good, cases.count("PASS")), max(cases.count("FAIL"), bad))
    return RunCounts(good, bad, "package" if (bad or good) == 1 else "packages")


# --- an error ------------------------------------------------------------------------------------

_LONGEST_ERROR = 300  # characters of an error's line
_MOST_LINES = 400  # of an output, from its end and its beginning
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f]")
_NOTHING_BUT_A_PLACE = re.compile(r"\A\S+?:\d+(?::\d+)?:\s*(?::|#|$)")


@dataclass(frozen=True, slots=True)
class Error:
    """`text` is the line as it was printed; `fingerprint` what it has in common with its like."""

    text: str
    fingerprint: str
    rank: int  # of the row that matched: the lower, the more telling


def error_fingerprint(text: str) -> str:
    """An error's words without what differs from run to run and machine to machine: paths,
    numbers, addresses, times."""
    for row in load_rows("tools", "placeholders"):
        text = row.pattern.sub(row.values["put"], text)
    return " ".join(text.split()).strip(" .:;,!")


def strip_escapes(output: str) -> str:
    """Without what steers a terminal; a line that was overwritten counts as several."""
    return _ESCAPES.sub("", output.replace("\r", "\n"))


def find_errors(output: str, most: int = 4) -> list[Error]:
    """The most telling errors of an output, each once, in the order of their worth."""
    lines = strip_escapes(output).split("\n")
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 4] + lines[-_MOST_LINES * 3 // 4 :]
    found: dict[str, Error] = {}
    for line in dict.fromkeys(lines):
        one = _match_error(line) if len(line) >= 8 else None
        if one is not None:
            found.setdefault(one.fingerprint, one)
    return sorted(found.values(), key=lambda error: error.rank)[:most]


def _match_error(line: str) -> Error | None:
    for rank, row in enumerate(load_rows("tools", "errors")):
        if match := row.pattern.match(line[: _LONGEST_ERROR * 2]):
            text = match["told"].strip()[:_LONGEST_ERROR].rstrip()
            only_failed = _pattern("says only that it failed")
            if only_failed.search(text) or _NOTHING_BUT_A_PLACE.match(text):
                return None
            return Error(text, error_fingerprint(text), rank)
    return None
