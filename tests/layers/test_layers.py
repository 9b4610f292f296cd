"""Reading order = data flow = import direction: a module imports only from the groups above it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent.parent / "src" / "yester"

# group → modules and packages, as docs/explanation.md draws them; a module of a package may have a
# place of its own
GROUPS = (
    (
        "model",
        "errors",
        "files",
        "tables",
        "config",
        "project",
        "git",
        "redact",
        "fence",
        "clock",
    ),
    ("capture",),
    ("agents",),
    ("text",),
    ("store",),
    ("ingest",),
    ("recall",),
    ("memories",),
    ("distil",),
    ("llm",),
    ("bench", "operate.backups", "operate.notes"),
    ("memory",),
    ("deliver",),
    ("operations",),
    ("worker", "operate", "faces", "__main__"),
)
GROUP = {name: number for number, names in enumerate(GROUPS) for name in names}
MODULES = sorted(SOURCE.rglob("*.py"))
NOT_OUR_WORDS = ("manager", "service", "helper", "util", "handler")


def part(path: Path) -> str:
    return place(".".join(path.relative_to(SOURCE).with_suffix("").parts))


def place(name: str) -> str:
    """The entry of GROUPS that a module belongs to: its own, else its package's."""
    inner = ".".join(name.split(".")[:2])
    return inner if inner in GROUP else name.split(".")[0]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            if node.module in ("yester", "yester.operate"):
                found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module or ""))
    return found


def test_a_module_imports_only_from_groups_above_it():
    for path in MODULES:
        if path.parent == SOURCE and path.name == "__init__.py":
            continue  # the front door: imports lazily, inside functions
        assert part(path) in GROUP, f"{part(path)} has no place in the reading order"
        own = GROUP[part(path)]
        for line, name in imports(path):
            other = place(name.removeprefix("yester."))
            if not name.startswith("yester.") or other == part(path) or other not in GROUP:
                continue
            # within the first group the order is that of its line
            if GROUP[other] == own == 0:
                order = GROUPS[0]
                assert order.index(other) < order.index(part(path)), f"{path}:{line}: {name}"
                continue
            assert GROUP[other] <= own, f"{path}:{line} imports {name}, which comes later"


def test_importing_yester_loads_nothing_else():
    import subprocess
    import sys

    code = (
        "import sys, yester; print([m for m in sys.modules if m.startswith('yester.')"
        " or m in ('apsw', 'click', 'rich', 'msgspec')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_asking_who_the_agents_are_loads_no_reader():
    import subprocess
    import sys

    code = (
        "import sys, yester.agents.descriptors\n"
        "print([m for m in sys.modules if m.startswith('yester.') or m in ('apsw', 'msgspec')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['yester.agents', 'yester.tables', 'yester.agents.descriptors']"


def test_a_plain_answer_does_not_load_rich():
    import subprocess
    import sys

    code = (
        "import sys\nsys.argv = ['yester', '--version']\n"
        "from yester.faces.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "print('rich' in sys.modules, 'apsw' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


def test_names_come_from_the_domain():
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                low = node.name.lower()
                assert not any(word in low for word in NOT_OUR_WORDS), f"{path}: {node.name}"


def test_every_module_says_what_it_is():
    for path in MODULES:
        assert not path.read_text("utf-8").strip() or ast.get_docstring(parsed(path)), path


def test_no_broad_except_without_a_reason():
    for path in MODULES:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if "except Exception" in line or line.strip() == "except:":
                assert "#" in line, f"{path}:{number}"
