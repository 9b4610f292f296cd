"""Who wrote a line: how much can be attributed, what it costs, and attributions to be read.

    python bench/lines.py FOLDER [--show 50]   transcripts: every file that a session has read as a
                                               whole is a picture of it at that moment
    python bench/lines.py --chain FOLDER       turns-*.jsonl and queries.json: for each turn that
                                               changes lines, the earlier turns that wrote them
    python bench/lines.py --large 350000       `why` for a file of 2,000 lines in a large store

Of a picture those lines count that an earlier picture of the same file did not have: they were
written in the time that is recorded, by a session, by hand, or by a program.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yester.agents.base import Options, Reading, load_reader
from yester.agents.descriptors import AGENTS
from yester.ingest.prepare import prepare_item
from yester.ingest.transcripts import Ingest
from yester.memory import Memory
from yester.model import DISTILLED, Filters, Item, ToolCall
from yester.operations.files import LinesRequest, explain_lines
from yester.project import Projects
from yester.recall.authors import find_line_authors
from yester.store import open_store
from yester.store.contract import Store
from yester.text.edits import edited_lines, find_edits, normalise_line

_CUT = 2_000  # lines, of which clients show no more


# --- transcripts ----------------------------------------------------------------------------------


def read_transcripts(folder: Path) -> Iterator[Item]:
    projects = Projects({})
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        for name in AGENTS:
            reader = load_reader(name)
            if reader.is_transcript(path):
                yield from reader.read_items(Reading(path, projects, Options()))
                break


def picture(item: Item) -> list[str]:
    """The lines of a file that was read from its beginning to its end, else none."""
    call = item.call
    if item.role != "tool" or len(item.files_read) != 1 or call is None or "error" in item.tags:
        return []
    if {"offset", "limit"} & (call.options.keys() | {name for name, _, _ in call.fields}):
        return []
    lines = (item.call_result or "").splitlines()
    return lines if 5 <= len(lines) < _CUT and item.tool.lower() in ("read", "view") else []


def measure_folder(folder: Path, show: int, seed: int) -> None:
    items = sorted(read_transcripts(folder), key=lambda item: item.epoch)
    whole = {item.ref: item for item in items}
    texts: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        for file in item.files_modified if item.role == "tool" else ():
            texts[Path(file).name].append(item)
    with tempfile.TemporaryDirectory() as home:
        store = open_store(Path(home), now=0)
        measure_cost(store, items)
        known: dict[tuple[str, str], set[str]] = {}
        nobodys: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        counts: Counter[str] = Counter()
        shown: list[tuple[Item, list[str], int, Any]] = []
        for item in items:
            if not (lines := picture(item)):
                continue
            where = (item.project, item.files_read[0])
            words = [normalise_line(line) for line in lines]
            often = Counter(words)
            new = set(words) - known.setdefault(where, set(words))
            known[where] |= set(words)
            counts["pictures"] += 1
            filters = Filters(projects=(item.project,), until=item.epoch)
            for one in find_line_authors(store, [where[1]], lines, filters):
                for number in range(one.first, one.last + 1):
                    if not (word := words[number - 1]):
                        continue
                    if word in new:
                        counts["new"] += 1
                        counts["attributed"] += one.turn is not None
                        counts["ambiguous"] += number in one.ambiguous
                        text = lines[number - 1].strip()
                        counts["in an edit"] += one.turn is not None or any(
                            text in edit.body and edit.epoch <= item.epoch
                            for edit in texts[Path(where[1]).name]
                        )
                    once = often[word] == 1
                    if one.turn is None and once:
                        nobodys[where].setdefault(word, item.epoch)
                    elif one.turn and number not in one.ambiguous:
                        shown.append((item, lines, number, one.edits))
                        counts["once"] += once
                        seen = nobodys[where].get(word, item.epoch)
                        counts["seen before"] += once and seen < min(e.epoch for e in one.edits)
        for at in random.Random(seed).sample(shown, min(show, len(shown))):
            print(describe(store, whole, *at))
        store.close()
    print(
        f"pictures {counts['pictures']}; new lines {counts['new']}, attributed to a turn "
        f"{counts['attributed'] / counts['new']:.1%}, of those whose text stands in a recorded "
        f"edit of such a file {counts['attributed'] / counts['in an edit']:.1%}; "
        f"ambiguous {counts['ambiguous']}"
    )
    before = counts["seen before"]
    print(
        f"attributed lines that stand once in their file {counts['once']}, of which an older "
        f"picture had {before} already ({before / counts['once']:.1%})"
    )


def describe(
    store: Store, whole: dict[str, Item], item: Item, lines: list[str], number: int, edits: Any
) -> str:
    """A line in the file as it was read, and in the edit that is said to have written it."""
    word = normalise_line(lines[number - 1])
    around = "\n".join(
        f"   {'>' if at == number else ' '} {at:4} {lines[at - 1][:110]}"
        for at in range(max(number - 3, 1), min(number + 3, len(lines)) + 1)
    )
    told = []
    for edit in store.get([one.item for one in edits]):
        for one in find_edits(whole[edit.ref]):
            after = one.after.splitlines()
            hits = [at for at, line in enumerate(after) if normalise_line(line) == word]
            old = word in map(normalise_line, one.before.splitlines())
            told += [
                f"   #{edit.id} {edit.tool} {edit.session[:8]}/{edit.prompt_number}"
                f"{' (kept)' if old else ''}\n"
                + "\n".join(f"        | {line[:110]}" for line in after[max(at - 2, 0) : at + 3])
                for at in hits
            ]
    head = f"== {item.files_read[0]}:{number} read in {item.session[:8]}/{item.prompt_number}"
    return "\n".join([head, around, *told[:3]])


def measure_cost(store: Store, items: list[Item]) -> None:
    """Index all of it; what of that is for lines, and what they take."""
    began = time.process_time()
    ingest = Ingest(store, Projects({}), Options())
    for item in items:
        ingest.add_entry(prepare_item(item))
        if ingest.is_full:
            ingest.flush()
    ingest.flush()
    whole = time.process_time() - began
    began = time.process_time()
    edits = [lines for item in items if (lines := edited_lines(item))]
    with store.transaction("index"):  # written once more, under one item, and taken back
        last = store._next_id("item") - 1  # type: ignore[attr-defined]
        number, size = store._db.execute(  # type: ignore[attr-defined]
            "SELECT count(*), sum(length(path) + length(lines) + length(added) + length(removed))"
            " FROM line_edit"
        ).fetchone()
        store._put_lines((last, one) for one in edits)  # type: ignore[attr-defined]
        own = time.process_time() - began
        store._forget_lines(last)  # type: ignore[attr-defined]
    pages = store._db.execute(  # type: ignore[attr-defined]
        "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'line_edit%'"
    ).get
    print(f"items {len(items)}, edits with lines {len(edits)}, places {number}")
    print(f"indexing {whole:.2f} s CPU, of which lines {own:.2f} s ({own / whole:.1%})")
    print(f"bytes per edit {size / len(edits):.0f}, with pages and index {pages / len(edits):.0f}")


# --- chains of turns ------------------------------------------------------------------------------


def measure_chain(folder: Path) -> None:
    """Of the turns that wrote what a turn changes, how many are named; and who is named first."""
    asked = {
        (q["session"], q["turn"]): q for q in json.loads((folder / "queries.json").read_text())
    }
    turns = [json.loads(line) for file in folder.glob("turns-*.jsonl") for line in file.open()]
    turns.sort(key=lambda turn: turn["ts"] or "")
    counts: Counter[str] = Counter()
    spent = 0.0
    with tempfile.TemporaryDirectory() as home:
        store = open_store(Path(home), now=0)
        ingest = Ingest(store, Projects({}), Options())
        for at, turn in enumerate(turns):
            edits = [edit for edit in turn["edits"] if edit[0]]
            if query := asked.get((turn["session"], turn["turn"])):
                ingest.flush()
                filters = Filters(without_session=turn["session"])
                named: Counter[tuple[str, int]] = Counter()
                begun = time.process_time()
                for file, old, _ in edits:
                    for one in find_line_authors(store, [file], old.splitlines(), filters):
                        counts["stretches"] += 1
                        if one.turn:
                            (item,) = store.get([one.edits[-1].item])
                            named[item.session, item.prompt_number] += one.last - one.first + 1
                spent += time.process_time() - begun
                right = {(one["session"], one["turn"]) for one in query["rel"]}
                best = named.most_common(1)[0][0] if named else None
                counts["asked"] += 1
                counts["labelled"] += len(right)
                counts["named"] += len(right & named.keys())
                counts["first"] += best in right
                counts["edits"] += len(edits)
            for number, (file, old, new) in enumerate(edits):
                body, old_end = f"{file}\n{old}\n{new}", len(file) + 1 + len(old)
                call = ToolCall((
                    ("file_path", 0, len(file)), ("old_string", len(file) + 1, old_end),
                    ("new_string", old_end + 1, len(body)),
                ))  # fmt: skip
                ingest.add_entry(prepare_item(Item(
                    f"{at}-{number}", "message", project=f"name:{turn['project']}",
                    session=turn["session"], agent="claude-code", role="tool", tool="Edit",
                    prompt_number=turn["turn"], epoch=1_000_000 + at, body=body, call=call,
                    files_modified=(file,),
                )))  # fmt: skip
        store.close()
    print(f"turns asked {counts['asked']}, of the {counts['labelled']} turns that wrote the lines "
          f"named {counts['named'] / counts['labelled']:.1%}; "
          f"first named is one of them {counts['first'] / counts['asked']:.1%}; "
          f"{1000 * spent / counts['edits']:.2f} ms CPU an edit")  # fmt: skip


# --- a large store --------------------------------------------------------------------------------


def measure_large(total: int) -> None:
    """One edit in ten items; one in sixty edits is of the file that is asked for."""
    draw = random.Random(1)
    words = [f"{draw.choice('abcdefgh')}{number:04x}" for number in range(4_000)]
    text = [
        f"    value_{n} = make_{draw.choice(words)}({draw.choice(words)})" for n in range(2_000)
    ]
    text[::20] = ["    if err != nil {"] * 100
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "repo"), Path(folder, "home")
        root.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / "big.py").write_text("\n".join(text) + "\n")
        project = Projects({}).by_folder(str(root))
        store = open_store(home, now=0)
        ingest = Ingest(store, Projects({}), Options())
        counts: defaultdict[str, int] = defaultdict(int)
        for number in range(total):
            name = "big.py" if number % 600 == 0 else f"src/file_{number % 997}.py"
            lines = draw.choices(text, k=30)
            if name == "big.py":
                counts["edits"] += 1
                start = draw.randrange(len(text) - 30)
                lines = text[start : start + 30]
            shared: Any = {
                "project": project.key, "session": f"s{number // 500}", "agent": "claude-code",
                "prompt_number": number // 50 % 10 + 1, "epoch": number * 1000,
            }  # fmt: skip
            if number % 50 == 49:  # the card of its turn
                item = Item(f"c{number}", "summary", type="turn", source=DISTILLED,
                            title=" ".join(draw.choices(words, k=8)), subtitle="done: 9 passed",
                            body=" ".join(draw.choices(words, k=12)), files_modified=(name,),
                            sections={"completed": "all of it"}, **shared)  # fmt: skip
            elif number % 10:
                body = " ".join(draw.choices(words, k=12))
                item = Item(f"m{number}", "message", role="assistant", body=body, **shared)
            else:
                body = "\n".join(lines)
                call = ToolCall((("new_string", 0, len(body)),))
                item = Item(f"e{number}", "message", role="tool", tool="Edit", body=body, call=call,
                            files_modified=(name,), **shared)  # fmt: skip
            ingest.add_entry(prepare_item(item))
            if ingest.is_full:
                ingest.flush()
        ingest.flush()
        store.close()
        for asked in ("big.py", "big.py:1000-1010"):
            spent = []
            for _ in range(5):
                with Memory(home, os.environ, cwd=str(root), ask_worker=None) as memory:
                    _ = memory.reading
                    begun = time.process_time()
                    found = explain_lines(memory, LinesRequest(file=asked))
                    spent.append(1000 * (time.process_time() - begun))
            print(
                f"{total} items, {counts['edits']} edits of the file: why {asked}: "
                f"{sorted(spent)[2]:.0f} ms CPU (median of 5, each with a store just opened), "
                f"{len(found.stretches)} stretches, {found.recorded} of {found.lines} lines"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--large", type=int)
    given = parser.parse_args()
    if given.folder:
        measure_folder(given.folder, given.show, given.seed)
    if given.chain:
        measure_chain(given.chain)
    if given.large:
        measure_large(given.large)


if __name__ == "__main__":
    main()
