"""Every regular expression of the product against texts that are made to be slow for it: prints, as
JSON lines, those whose time grows faster than the text's length.

Which texts: the pattern is taken apart, and each of its open repetitions is pumped up behind what
comes before it, and then not ended as the pattern wants; and some characters on their own.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import re._compiler as compiler
import re._constants as op
import re._parser as parser
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPEN = 100  # a repetition that may be longer
SIZES = (250, 1000, 4000, 16000)  # characters, four times as many each
TELLING = 0.002  # seconds, below which a ratio says nothing
FASTER = 9  # times as long for four times the text: 4 is linear, 16 quadratic
SLOWEST = 0.5  # seconds for the longest
# Patterns that begin a sentence see no longer one (`memories.utterances`): no growth, a bound.
OF_SENTENCES, SENTENCE, SLOWEST_SENTENCE = "memories/utterances.py", 600, 0.02
PUMPS = (" ", "a", "0", "\n", "-", ".", "/", "a ", "\n ", "<", '"', "=")
CATEGORIES = {op.CATEGORY_DIGIT: "5", op.CATEGORY_SPACE: " ", op.CATEGORY_NOT_WORD: "-"}
_ROW = ("name", "pattern", "examples", "near_misses")  # of a table that is read as rows
Attack = tuple[str, str]  # what stands first, what is pumped


def collect_patterns() -> dict[str, re.Pattern[Any]]:
    """Those that any module compiles when it is imported, or its tables when they are loaded."""
    found: dict[str, re.Pattern[Any]] = {}
    compile_pattern = compiler.compile

    def compile_noted(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        made = compile_pattern(pattern, flags)
        frame: Any = sys._getframe(1)
        while frame and "/re/" in frame.f_code.co_filename:
            frame = frame.f_back
        if frame and "/yester/" in frame.f_code.co_filename:
            place = f"{frame.f_code.co_filename.rpartition('/yester/')[2]}:{frame.f_lineno}"
            found[f"{place} {made.pattern!r}"] = made
        return made

    compiler.compile = compile_noted
    import yester

    for module in pkgutil.walk_packages(yester.__path__, "yester."):
        if not module.name.endswith(("__main__", "capture.hook")):  # which are programs
            importlib.import_module(module.name)
    compile_what_waits()
    return found


def compile_what_waits() -> None:
    """Patterns of tables are compiled when a text first needs them."""
    from yester import redact, tables
    from yester.context.talk import _compile_phrases
    from yester.llm.digest import load_signs
    from yester.memories import utterances

    for section in ("rules", "decisions", "labels", "withdrawals"):
        utterances._load_rows(section)
    for rule in redact.load_rules():
        _ = rule.compiled
    for shape in tables.load_table("redact")["shapes"]:
        redact._load_shape(shape)
    redact.redact("password = hunter2")
    for path in Path(tables.__file__).parent.glob("*.toml"):
        for section, rows in tables.load_table(path.stem).items():
            in_rows = isinstance(rows, list) and all(one in rows[0] for one in _ROW)
            if in_rows and path.stem != "redact":
                _ = [row.pattern for row in tables.load_rows(path.stem, section)]
    load_signs()
    _compile_phrases()


def sample_set(items: list[Any]) -> str:
    """A character that a set matches."""
    negated = items[0][0] is op.NEGATE
    for kind, value in items:
        if not negated and kind is op.LITERAL:
            return chr(value)
        if not negated and kind is op.RANGE:
            return chr(value[0])
        if not negated and kind is op.CATEGORY:
            return CATEGORIES.get(value, "a")
    out = {chr(value) for kind, value in items if kind is op.LITERAL}
    spans = [value for kind, value in items if kind is op.RANGE]
    words = any(value is op.CATEGORY_WORD for _, value in items)
    return next(
        (one for one in "-!~" + ("" if words else "a5Zx_") + " "
         if one not in out and not any(low <= ord(one) <= high for low, high in spans)), "é",
    )  # fmt: skip


def sample_tree(tree: Any, before: str, open_ones: list[Attack], groups: dict[Any, str]) -> str:
    """A text that the tree matches, more or less; its open repetitions are added to `open_ones`."""
    text = ""
    for kind, value in tree:
        if kind is op.LITERAL:
            text += chr(value)
        elif kind in (op.ANY, op.NOT_LITERAL):
            text += "b" if value == ord("a") else "a"
        elif kind is op.IN:
            text += sample_set(value)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            least, most, body = value
            inner = sample_tree(body, before + text, open_ones, groups)
            if most >= OPEN and inner:
                open_ones.append((before + text, inner))
            text += inner * max(least, int(most < OPEN))
        elif kind is op.SUBPATTERN:
            groups[value[0]] = sample_tree(value[3], before + text, open_ones, groups)
            text += groups[value[0]]
        elif kind is op.BRANCH:
            more = [sample_tree(one, before + text, open_ones, groups) for one in value[1]]
            text += more[0]
        elif kind is op.GROUPREF:
            text += groups.get(value, "")
        elif kind is op.ATOMIC_GROUP:
            text += sample_tree(value, before + text, open_ones, groups)
    return text


def make_attacks(pattern: re.Pattern[Any]) -> Iterator[Attack]:
    open_ones: list[Attack] = []
    whole = sample_tree(parser.parse(pattern.pattern, pattern.flags), "", open_ones, {})
    wanted = [("", pump) for pump in (whole, whole[:-1], *PUMPS) if pump]
    for before, pump in open_ones:
        wanted += [(before, pump), ("", before + pump), (before, pump + " ")]
    return iter(dict.fromkeys(wanted))


def measure(pattern: re.Pattern[Any], attack: Attack, size: int) -> float:
    """Seconds of the processor's."""
    before, pump = attack
    text: Any = before + pump * (size // len(pump)) + "\0"
    if isinstance(pattern.pattern, bytes):
        text = text.encode("utf-8", "replace")
    began = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - began


def find_fault(pattern: re.Pattern[Any], attack: Attack, of_sentence: bool) -> str:
    if of_sentence:
        seconds = min(measure(pattern, attack, SENTENCE) for _ in range(3))
        return f"{seconds:.3f} s for a sentence" if seconds > SLOWEST_SENTENCE else ""
    last = 0.0
    for size in SIZES:
        seconds = measure(pattern, attack, size)
        if last and seconds > TELLING and seconds / last > FASTER:
            again = [
                min(measure(pattern, attack, one) for _ in range(3)) for one in (size // 4, size)
            ]
            if again[1] / again[0] > FASTER:
                return f"{seconds / last:.0f} times as long for {size} characters as for a quarter"
        if seconds > SLOWEST:
            return f"{seconds:.1f} s for {size} characters"
        if size >= SIZES[1] and seconds < TELLING / 40:
            break  # four times as many could not tell
        last = max(seconds, 1e-6)
    return ""


def main() -> None:
    patterns = collect_patterns()
    attacks = 0
    for name, pattern in patterns.items():
        of_sentence = name.startswith(OF_SENTENCES)
        for attack in make_attacks(pattern):
            attacks += 1
            if fault := find_fault(pattern, attack, of_sentence):
                told = {
                    "pattern": name[:200],
                    "attack": [part[:60] for part in attack],
                    "fault": fault,
                }
                sys.stdout.write(f"{json.dumps(told)}\n")
                break
    sys.stdout.write(f"{json.dumps({'patterns': len(patterns), 'attacks': attacks})}\n")


if __name__ == "__main__":
    main()
