"""The table in docs/requirements.md and the tests' markers agree, both ways."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "docs" / "requirements.md"
_ROW = re.compile(r"^\| (?P<id>[A-Z]{3,4}-\d\d) \| (?P<status>\w+)(?P<note>[^|]*) \| ", re.M)
# A test that never runs in `make test` proves nothing there.
_NOT_RUN = ("e2e", "browser")


def table() -> dict[str, str]:
    rows = [(m["id"], m["status"]) for m in _ROW.finditer(TABLE.read_text("utf-8"))]
    assert len(rows) == len(dict(rows)), "an id stands twice in the table"
    return dict(rows)


@cache
def marked() -> dict[str, set[str]]:
    """id → the tests that name it, by walking the tests' source."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        module_marks = _marks(tree.body)
        tests = [
            n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
        ]
        assert tests, f"{path} has no tests"
        for test in tests:
            marks = module_marks + [m for d in test.decorator_list for m in _marks([d])]
            if any(name in _NOT_RUN for name, _ in marks):
                continue
            for name, ids in marks:
                if name == "requirement":
                    for id_ in ids:
                        found[id_].add(f"{path.name}::{test.name}")
    return found


def _marks(nodes: list[ast.AST]) -> list[tuple[str, list[str]]]:
    marks = []
    for node in nodes:
        value = node.value if isinstance(node, ast.Assign) else node
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") != "pytestmark":
            continue
        for inner in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            call = inner if isinstance(inner, ast.Call) else None
            name = ast.unparse(call.func if call else inner)
            if name.startswith("pytest.mark."):
                ids = [a.value for a in call.args if isinstance(a, ast.Constant)] if call else []
                marks.append((name.removeprefix("pytest.mark."), ids))
    return marks


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
