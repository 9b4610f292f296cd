"""Test runners: how many tests passed and failed, by what each of them prints at its end."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counted:
    passed: int
    failed: int


# How test runners sum up: name, pattern with `passed` and `failed`, example, what it tells.
RUNNERS: tuple[tuple[str, str, str, tuple[int, int]], ...] = (
    (
        "pytest",
        r"^=*+[ \t]*+(?:(?P<failed>\d+) failed,? ?)?(?:(?P<passed>\d+) passed)?(?:, )?.*\bin"
        r" [\d.]+s\b",
        "=== 2 failed, 10 passed in 0.31s ===",
        (10, 2),
    ),
    (
        "jest",
        r"^Tests:\s+(?:(?P<failed>\d+) failed, )?(?:\d+ (?:skipped"
        r"|todo), )*(?:(?P<passed>\d+) passed, )?\d+ total",
        "Tests:       1 failed, 5 passed, 6 total",
        (5, 1),
    ),
    (
        "vitest",
        r"^[ \t]*+Tests[ \t]++(?:(?P<failed>\d+) failed \| )?(?:(?P<passed>\d+) passed)?.*\(\d+\)",
        "      Tests  1 failed | 5 passed (6)",
        (5, 1),
    ),
    (
        "bun",
        r"^ +(?P<passed>\d+) pass\n(?: +\d+ (?:skip|todo)\n)* +(?P<failed>\d+) fail",
        " 124 pass\n 1 fail\n",
        (124, 1),
    ),
    (
        "cargo",
        r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        (3, 1),
    ),
    (
        "unittest",
        r"^Ran (?P<passed>\d+) tests? in [\d.]+s\s+FAILED \((?:failures=(?P<failed>\d+))?.*\)",
        "Ran 5 tests in 0.01s\n\nFAILED (failures=1)",
        (4, 1),
    ),
    (
        "unittest, all well",
        r"^Ran (?P<passed>\d+) tests? in [\d.]+s\s+OK",
        "Ran 5 tests in 0.01s\n\nOK",
        (5, 0),
    ),
    (
        "mocha",
        r"^[ \t]++(?P<passed>\d+) passing\b.*(?:\n[ \t]+\d+ pending)?(?:\n[ \t]+(?P<failed>\d+)"
        r" failing)?",
        "  7 passing (20ms)\n  2 failing",
        (7, 2),
    ),
    (
        "rspec",
        r"^(?P<passed>\d+) examples?, (?P<failed>\d+) failures?",
        "10 examples, 1 failure",
        (9, 1),
    ),
    (
        "exunit",
        r"^(?P<passed>\d+) tests?, (?P<failed>\d+) failures?",
        "10 tests, 1 failure",
        (9, 1),
    ),
    (
        "maven",
        r"Tests run: (?P<passed>\d+), Failures: (?P<failed>\d+)",
        "Tests run: 5, Failures: 1, Errors: 0",
        (4, 1),
    ),
    (
        "dotnet",
        r"Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+)",
        "Failed!  - Failed:     1, Passed:     5, Skipped: 0",
        (5, 1),
    ),
    (
        "ctest",
        r"tests passed, (?P<failed>\d+) tests failed out of (?P<passed>\d+)",
        "80% tests passed, 1 tests failed out of 5",
        (4, 1),
    ),
    (
        "phpunit",
        r"^Tests: (?P<passed>\d+), Assertions: \d+(?:, (?:Errors|Failures): (?P<failed>\d+))?",
        "Tests: 5, Assertions: 9, Failures: 1.",
        (4, 1),
    ),
    ("tap", r"^# pass\s+(?P<passed>\d+)\n# fail\s+(?P<failed>\d+)", "# pass  5\n# fail  1", (5, 1)),
)
_COUNTS_ALL = frozenset({"unittest", "rspec", "exunit", "maven", "ctest", "phpunit"})
_RUNNERS = tuple((name, re.compile(pattern, re.M)) for name, pattern, _, _ in RUNNERS)
_GO_OK = re.compile(r"^ok  \t", re.M)
_GO_FAIL = re.compile(r"^FAIL\t\S", re.M)
_GO_CASE = re.compile(r"^--- (PASS|FAIL): ", re.M)


def counted(output: str) -> Counted | None:
    """What a test run counted; several runners in one output are added up."""
    for name, pattern in _RUNNERS:
        found = [m.groupdict() for m in pattern.finditer(output)]
        if any(any(match.values()) for match in found):
            failed = sum(int(match.get("failed") or 0) for match in found)
            passed = sum(int(match.get("passed") or 0) for match in found)
            return Counted(max(passed - failed, 0) if name in _COUNTS_ALL else passed, failed)
    cases = _GO_CASE.findall(output)
    good, bad = len(_GO_OK.findall(output)), len(_GO_FAIL.findall(output))
    if good or bad:
        failed = max(cases.count("FAIL"), bad)
        return Counted(max(good, cases.count("PASS")), failed)
    return None
