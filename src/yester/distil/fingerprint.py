"""Errors in the output of tools: which lines tell them, and what makes two of them the same.

A fingerprint is an error's words without what differs from run to run and machine to machine:
paths, numbers, addresses, times. Both tables are walked by the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 300  # characters of an error's line
_MOST_LINES = 400  # of an output, from its end and its beginning
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f]")

# What is not the same twice: name, pattern, what stands instead, an example and what it becomes.
PLACEHOLDERS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "address of a page",
        r"\bhttps?://[^\s'\"<>)\]]+",
        "URL",
        "GET https://x.test/a?b=1 failed",
        "GET URL failed",
    ),
    (
        "uuid",
        r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
        "ID",
        "no row 3e110024-118b-478e-9c21-6b0c1dc2c45a",
        "no row ID",
    ),
    (
        "time",
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
        "TIME",
        "2026-02-04T07:13:56.961Z boom",
        "TIME boom",
    ),
    ("time of day", r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "TIME", "[12:00:01] boom", "[TIME] boom"),
    ("memory address", r"\b0x[0-9a-fA-F]+\b", "ADDRESS", "at 0x7ffde3 in f", "at ADDRESS in f"),
    (
        "path",
        r"(?:\b[A-Za-z]:)?(?:(?<![\w<])[.~]{0,2}"
        r"|[\w.@+-]+)[/\\](?:[\w.@+-]+[/\\])*[\w.@+-]+(?::\d+(?::\d+)?|\(\d+,\d+\))?",
        "PATH",
        "src/a/b.go:12:3: undefined: x",
        "PATH: undefined: x",
    ),
    (
        "file and place",
        r"\b[\w.@+-]+\.[A-Za-z]\w{0,4}(?::\d+(?::\d+)?|\(\d+,\d+\))",
        "PATH",
        "a_test.go:347: want 3",
        "PATH: want N",
    ),
    (
        "hash",
        r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b",
        "HASH",
        "bad object 1e86cebd",
        "bad object HASH",
    ),
    (
        "number",
        r"(?<![A-Za-z_])[+-]?\d+(?:[.,]\d+)*(?:[µnm]?s\b|%)?",
        "N",
        "took 12.5ms, line 3",
        "took N, line N",
    ),
)
_PLACEHOLDERS = tuple((re.compile(pattern), put) for _, pattern, put, _, _ in PLACEHOLDERS)

# The line that tells an error, by the tool that prints it; `told` is the telling part. The first
# row that matches a line counts; rows further up are more telling than those below.
LINES: tuple[tuple[str, str, str], ...] = (
    (
        "pytest",
        r"^E   +(?P<told>(?:\w+(?:\.\w+)*(?:Error|Exception|Failed)\b|assert|Failed:).*)",
        "E   AssertionError: assert 3 == 4",
    ),
    (
        "pytest summary",
        r"^(?:FAILED|ERROR) (?P<told>\S+(?: - .+)?)$",
        "FAILED tests/test_a.py::test_b - KeyError: 'x'",
    ),
    (
        "python",
        r"^(?P<told>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|NotFound"
        r"|Warning)\b(?:: .*)?)$",
        "ModuleNotFoundError: No module named 'yaml'",
    ),
    (
        "go test",
        r"^\s+(?P<told>\w+_test\.go:\d+: .*\b(?i:want|got|expect\w*|should|fail\w*|unexpected"
        r"|errors?|not|mismatch|timed out|nil|missing|panic\w*|no)\b.*)",
        "    agent_test.go:67: DetectPresence() = false, want true",
    ),
    (
        "go panic",
        r"^(?P<told>panic: .+)",
        "panic: runtime error: index out of range [3] with length 3",
    ),
    (
        "typescript",
        r"^(?P<told>\S+?(?:\(\d+,\d+\)|:\d+:\d+)(?: -)?:? error TS\d+: .+)",
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable.",
    ),
    (
        "compiler",
        r"^(?P<told>\S+?:\d+(?::\d+)?: (?:fatal )?error: .+)",
        "main.c:3:10: fatal error: x.h: No such file or directory",
    ),
    ("rust", r"^(?P<told>error\[E\d+\]: .+)", "error[E0382]: borrow of moved value: `x`"),
    (
        "rust panic",
        r"^(?P<told>thread '.+' panicked at .+)",
        "thread 'main' panicked at src/main.rs:2:5:",
    ),
    (
        "linker",
        r"^.*\bld(?:\.\w+)?: (?P<told>(?:cannot find|library not found|undefined reference).*)",
        "  = note: /usr/bin/ld: cannot find -lsqlite3: No such file or directory",
    ),
    (
        "eslint",
        r"^\s+(?P<told>\d+:\d+\s+error\s+.+)",
        "  12:3  error  'x' is never used  no-unused-vars",
    ),
    (
        "linter",
        r"^(?:\[[\w:.-]+\] )?(?P<told>[\w./@+-]+\.\w+:\d+(?::\d+)?:? [^\s/].{8,})",
        "cmd/a.go:108:3: error is not nil but it returns nil (nilerr)",
    ),
    (
        "bun and vitest",
        r"^\s*(?P<told>(?:AssertionError|TypeError|ReferenceError|SyntaxError|RangeError"
        r"|Error): .+)",
        "  TypeError: undefined is not an object (evaluating 'x.y')",
    ),
    ("jest", r"^\s+● (?P<told>.+ › .+)", "  ● cart › adds up"),
    (
        "a failed test",
        r"^\s*(?:\(fail\)|✗|✘|×|not ok \d+ -|--- FAIL:|FAIL:) (?P<told>.+)",
        "(fail) eval CLI > writes results [1208.98ms]",
    ),
    ("rust test", r"^(?P<told>test \S+ \.\.\. FAILED)", "test cart::adds ... FAILED"),
    (
        "npm",
        r"^npm (?:ERR!|error) (?P<told>(?!A complete log|code |path |command |errno |syscall "
        r"|signal |This is )\S.{10,})",
        'npm ERR! Missing script: "tset"',
    ),
    (
        "java",
        r"^(?:Caused by: |Exception in thread \S+ )(?P<told>.+)",
        "Caused by: java.lang.NullPointerException: x",
    ),
    (
        "git conflict",
        r"^(?P<told>CONFLICT \(.+)",
        "CONFLICT (content): Merge conflict in README.md",
    ),
    (
        "shell",
        r"^(?P<told>(?:\S+: )+(?:line \d+: )?(?:.*: )?(?:command not found"
        r"|No such file or directory|Permission denied|not a directory|illegal option"
        r"|invalid option|cannot ).*)",
        "bash: line 1: frob: command not found",
    ),
    (
        "zsh",
        r"^(?P<told>(?:zsh|\(eval\)|bash|sh):(?:\w+:)?\d+: .+)",
        "zsh:1: no such file or directory: a.sh",
    ),
    (
        "said so",
        r"^\s*(?:\[[\w:.-]+\] )?(?P<told>(?:fatal|error|panic|ERROR|FATAL|Error|Fatal"
        r"|E(?=:)):? ?(?:\[[^\]]+\])?:? .{6,})",
        "fatal: Not possible to fast-forward, aborting.",
    ),
    (
        "another program's",
        r"^(?P<told>(?:Unknown|Unrecognized|Unexpected|Invalid|Cannot|Could not|Failed to"
        r"|No such|Missing|Unable to|Refusing to|no )\b.{8,})",
        'Unknown JSON field: "actor"',
    ),
)
_LINES = tuple((name, re.compile(pattern)) for name, pattern, _ in LINES)
# What only says that something failed.
_EMPTY_WORDS = re.compile(
    r"script \"?[\w:.-]+\"? exited with code|task failed|pre-commit script failed"
    r"|exit(?:ed)? (?:code|status)|lifecycle"
    r"|command failed|Some errors were emitted|process completed with|Found \d+ errors?\b"
    r"|^\d+ (?:errors?|problems?)\b"
    r"|errors? occurred$|failed with (?:exit )?code|^error: (?:test|tests) failed"
    r"|Recipe .* failed|aborting due to"
    r"|could not compile|build failed|^ERROR$|Command failed|coverage|would have printed"
    r"|differs from formatting|not formatted",
    re.I,
)
_NOTHING_BUT_A_PLACE = re.compile(r"\S+?:\d+(?::\d+)?:\s*(?::|#|$)")


@dataclass(frozen=True, slots=True)
class Error:
    """`text` is the line as it was printed; `fingerprint` what it has in common with its like."""

    text: str
    fingerprint: str
    rank: int  # of the row that matched: the lower, the more telling


def fingerprint(text: str) -> str:
    for pattern, put in _PLACEHOLDERS:
        text = pattern.sub(put, text)
    return " ".join(text.split()).strip(" .:;,!")


def clean(output: str) -> str:
    """Without what steers a terminal; a line that was overwritten counts as several."""
    return _ESCAPES.sub("", output.replace("\r", "\n"))


def errors(output: str, most: int = 4) -> list[Error]:
    """The most telling errors of an output, each once, in the order of their worth."""
    lines = clean(output).split("\n")
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 4] + lines[-_MOST_LINES * 3 // 4 :]
    found: dict[str, Error] = {}
    for line in dict.fromkeys(lines):
        if len(line) < 8:
            continue
        one = _told(line)
        if one is not None and one.fingerprint not in found:
            found[one.fingerprint] = one
    return sorted(found.values(), key=lambda error: error.rank)[:most]


def _told(line: str) -> Error | None:
    line = line[: LONGEST * 2]
    for rank, (_, pattern) in enumerate(_LINES):
        match = pattern.match(line)
        if match:
            text = match["told"].strip()[:LONGEST].rstrip()
            if _EMPTY_WORDS.search(text) or _NOTHING_BUT_A_PLACE.match(text):
                return None
            return Error(text, fingerprint(text), rank)
    return None
