"""Test runners: how many tests passed and failed, by what each of them prints at its end."""

from __future__ import annotations

import re
from dataclasses import dataclass

from yester.tables import load_rows


@dataclass(frozen=True, slots=True)
class Counted:
    passed: int
    failed: int


_GO_OK = re.compile(r"^ok  \t", re.M)
_GO_FAIL = re.compile(r"^FAIL\t\S", re.M)
_GO_CASE = re.compile(r"^--- (PASS|FAIL): ", re.M)


def counted(output: str) -> Counted | None:
    """What a test run counted; several runners in one output are added up."""
    for row in load_rows("tools", "runners"):
        found = [m.groupdict() for m in row.pattern.finditer(output)]
        if any(any(match.values()) for match in found):
            failed = sum(int(match.get("failed") or 0) for match in found)
            passed = sum(int(match.get("passed") or 0) for match in found)
            if row.values.get("counts_all"):
                passed = max(passed - failed, 0)
            return Counted(passed, failed)
    cases = _GO_CASE.findall(output)
    good, bad = len(_GO_OK.findall(output)), len(_GO_FAIL.findall(output))
    if good or bad:
        failed = max(cases.count("FAIL"), bad)
        return Counted(max(good, cases.count("PASS")), failed)
    return None
