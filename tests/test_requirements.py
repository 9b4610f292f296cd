"""The table in docs/requirements.md and the tests' markers agree, both ways."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "docs" / "requirements.md"
_ROW = re.compile(r"^\| (?P<id>[A-Z]{3,4}-\d\d) \| (?P<status>\w+)(?P<note>[^|]*) \| ", re.M)
_LINE = re.compile(
    r"^(?:(?P<of_module>pytestmark = .*)|(?P<of_test>@pytest\.mark\..*)"
    r"|(?P<defined>def (?P<test>test_\w+)?|class ))",
    re.M,
)
_REQUIREMENT = re.compile(r"pytest\.mark\.requirement\(([^()]+)\)")
# A test that never runs in `make test` proves nothing there.
_NOT_RUN = re.compile(r"pytest\.mark\.(?:e2e|browser)\b")


def table() -> dict[str, str]:
    rows = [(m["id"], m["status"]) for m in _ROW.finditer(TABLE.read_text("utf-8"))]
    assert len(rows) == len(dict(rows)), "an id stands twice in the table"
    return dict(rows)


@cache
def marked() -> dict[str, set[str]]:
    """id → the tests that name it, line by line: parsing all tests takes two seconds."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        source = path.read_text("utf-8")
        of_module, of_test, tests = "", "", 0
        for line in _LINE.finditer(source):
            of_module += line["of_module"] or ""
            of_test += line["of_test"] or ""
            if line["test"]:
                tests += 1
                marks = of_module + of_test
                for ids in [] if _NOT_RUN.search(marks) else _REQUIREMENT.findall(marks):
                    for id_ in ids.split(", "):
                        found[id_.strip('"')].add(f"{path.name}::{line['test']}")
            if line["defined"]:
                of_test = ""
        assert tests, f"{path} has no tests"
    return found


def test_every_status_is_a_known_one():
    assert set(table().values()) <= {"done", "part", "open"}


def test_what_is_called_done_or_part_has_a_test():
    tests = marked()
    missing = [id_ for id_, status in table().items() if status != "open" and not tests.get(id_)]
    assert not missing


def test_a_test_names_only_ids_that_exist():
    assert set(marked()) <= set(table())


def test_what_a_test_proves_is_not_called_open():
    statuses = table()
    assert not [id_ for id_ in marked() if statuses[id_] == "open"]
