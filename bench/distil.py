"""Distilling measured: what comes of real sessions, how much of it, how fast, and is it enough.

    python bench/distil.py FOLDER [--keep HOME] [--show N] [--embedder NAME|none]

FOLDER holds `sessions/` (transcripts of any agent) and, for recall, `sessionmem/data/` (questions
with the sessions that answer them; see bench/quality.py). Real data is not part of this repository.

The sessions are indexed and distilled in a store of their own. Then

- every fact is looked for in the item it points to, word for word;
- every distilled text is searched for secrets, private spans and our own blocks;
- each question is asked of the distilled items alone and of the raw messages alone (SQLite's own
  BM25 with stop words dropped, and yester's words), among the sessions that ended before it.

--show N prints N observations drawn with a fixed seed: read them before you believe the figures.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import yester
from bench.batches import group_events
from tests.readings import every_item
from yester.cards.repeats import is_same_insight
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.turns import (
    BRIEF_CHARS,
    BRIEF_TOOLS,
    DistilRules,
    Step,
    distilled_items,
    group_turns,
    read_step,
)
from yester.config import load_config
from yester.fence import strip_fenced
from yester.ingest.prepare import prepare_item
from yester.model import DISTILLED, Event, Filters, Item, Paging, Queue, replace
from yester.project import named_project
from yester.redact import redact, strip_private
from yester.store import open_store
from yester.store.contract import Store
from yester.store.figures import content_counts
from yester.text.document import tokens_of_length
from yester.text.prose import strip_marks
from yester.text.terms import STOP

_SEED = 1
_DEPTH = 300  # hits that are turned into sessions
_LATER = 1 << 50
_WINDOW = 3_000  # ms, the default of batch_window_ms


def text_of(item: Item) -> str:
    parts = (item.title, item.subtitle, item.body, *item.facts, *item.sections.values())
    return "\n".join(filter(None, parts))


# --- making --------------------------------------------------------------------------------------


def indexed(folder: Path, home: Path) -> None:
    command = [sys.executable, "-m", "yester", "--home", str(home), "index", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def distilled(store: Store, rules: DistilRules) -> tuple[DistilReport, float, float, float]:
    """(what was done, CPU seconds, the longest step, the 99th percentile of steps in ms)"""
    with store.transaction("items"):
        store.queue_sessions()
    report, steps = DistilReport(), []
    began = last = time.process_time()
    for waiting in store.queued_sessions(Queue("distil", quiet_since=_LATER, limit=1 << 30)):
        for _ in distil_session(store, waiting, rules, report):
            now = time.process_time()
            steps.append(now - last)
            last = now
        now = time.process_time()
        steps.append(now - last)
        last = now
    steps.sort()
    return report, last - began, steps[-1] * 1000, steps[len(steps) * 99 // 100] * 1000


def as_event(step: Step) -> Event:
    item = step.item
    return Event(
        str(item.id), "PostToolUse", item.epoch, actor=item.actor, tool=item.tool,
        skipped=step.why_not, window=_WINDOW,
    )  # fmt: skip


def removed(store: Store, rules: DistilRules) -> Counter[str]:
    """How many uses of tools the rules of capture take out before anything is distilled."""
    counts: Counter[str] = Counter()
    for session in store.sessions(Filters(), Paging(1 << 30)):
        items, after = [], (-1, 0)
        while page := store.history(session.id, BRIEF_TOOLS, BRIEF_CHARS, after, 1_000):
            items += page
            after = (page[-1][0].epoch, page[-1][0].id)
        steps = {
            item.id: step
            for item, length in items
            if (step := read_step(item, length, rules.skipped)) is not None
        }
        for turn in group_turns(items, steps):
            counts["uses"] += len(turn.steps)
            counts["batches"] += len(group_events(as_event(step) for step in turn.steps))
            counts.update(step.why_not for step in turn.steps if step.why_not)
    # The readers leave bookkeeping tools out already; they count as skipped.
    for name, number in content_counts(store).skipped.items():
        if name.endswith(" call"):
            counts["uses"] += number
            counts["skipped tool"] += number
    return counts


# --- looking at what was made --------------------------------------------------------------------


def facts_elsewhere(store: Store, made: list[Item]) -> list[str]:
    """Facts that do not stand in the item they point to, but for marks."""
    bad = []
    for item in made:
        evidence = store.evidence([item.id]).get(item.id, ())
        for number, fact in enumerate(item.facts):
            sources = store.get([i for n, i in evidence if n == number])
            texts = [bare for i in sources for bare in (words_of(i.body), plain_words_of(i.body))]
            if not any(words_of(fact) in text for text in texts):
                bad.append(f"#{item.id}: {fact}")
    return bad


def words_of(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def plain_words_of(text: str) -> str:
    """Without addresses of links, as a fact is taken."""
    return words_of(" ".join(map(strip_marks, text.split("\n"))))


def forbidden(made: list[Item]) -> list[str]:
    """Distilled texts with something in them that may not be stored."""
    bad = []
    for item in made:
        for text in (text_of(item), *item.files, *item.tags):
            if redact(text) != text or strip_private(text) != text or strip_fenced(text) != text:
                bad.append(f"#{item.id}")
    return bad


def alike(made: list[Item]) -> int:
    """Pairs of a session that should be one: nearly the same title, the same files, one hour."""
    before: defaultdict[str, list[Item]] = defaultdict(list)
    pairs = 0
    for item in made:
        pairs += sum(is_same_insight(item, other) for other in before[item.session])
        before[item.session].append(item)
    return pairs


def over_the_turn(store: Store, made: list[Item]) -> int:
    """Sessions whose distilled items claim more tokens than the session has."""
    claimed: Counter[str] = Counter()
    for item in made:
        claimed[item.session] += item.discovery_tokens
    held: Counter[str] = Counter()
    for item in every_item(store):
        if item.source != DISTILLED:
            held[item.session] += tokens_of_length(len(item.body))
    return sum(claimed[session] > held[session] for session in claimed)


# --- recall --------------------------------------------------------------------------------------


def questions(folder: Path, known: set[str]) -> Iterator[tuple[dict, frozenset[str]]]:
    path = folder / "sessionmem" / "data" / "queries.jsonl"
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines():
        asked = json.loads(line)
        relevant = frozenset(i.split(":", 1)[1] for i in asked["relevant_ids"]) & known
        if relevant:
            yield asked, relevant


def grouped(folder: Path) -> dict[str, str]:
    """session → the project the questions know it by"""
    path = folder / "sessionmem" / "data" / "memories.jsonl"
    if not path.exists():
        return {}
    found = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return {one["id"].split(":", 1)[1]: one["project"] for one in found}


class Fts:
    """SQLite's own BM25 over texts, stop words dropped from the question."""

    def __init__(self, items: list[tuple[Item, str, str]]) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE t USING fts5(body, session UNINDEXED, project UNINDEXED,"
            " epoch UNINDEXED, tokenize='porter unicode61')"
        )
        self._db.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)",
            [(text, item.session, project, item.epoch) for item, project, text in items],
        )

    def __call__(self, text: str, project: str, until: int) -> list[str]:
        kept = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        words = [word for word in dict.fromkeys(kept) if word not in STOP] or kept
        query = " OR ".join(f'"{word}"' for word in words[:400])
        rows = self._db.execute(
            "SELECT session FROM t WHERE t MATCH ? AND project = ? AND epoch < ?"
            " ORDER BY bm25(t) LIMIT ?", (query, project, until, _DEPTH),
        )  # fmt: skip
        return [row[0] for row in rows]


class Ours:
    """yester's own recall over a store of these items alone."""

    def __init__(self, items: list[tuple[Item, str, str]], home: Path, embedder: str) -> None:
        home.mkdir(parents=True)
        (home / "config.toml").write_text(f'embedder = "{embedder}"\n', "utf-8")
        self._memory = yester.open(home)
        store = self._memory.store
        for at in range(0, len(items), 2_000):
            with store.transaction("items"):
                for _, project, _ in items[at : at + 2_000]:
                    store.put_project(named_project(project))
                store.put(
                    [
                        prepare_item(replace(item, project=named_project(project).key))
                        for item, project, _ in items[at : at + 2_000]
                    ]
                )
        if self._memory.embedder is not None:
            from yester.ingest.vectors import embed_waiting

            for _ in embed_waiting(store, self._memory.embedder):
                pass

    def __call__(self, text: str, project: str, until: int) -> list[str]:
        hits = self._memory.recall(
            "\n".join(text.split()), k=_DEPTH, project=project, scope="project",
            until=until / 1000, now=until / 1000,
        )  # fmt: skip
        return [hit.session for hit in hits]


def recall_at_10(
    engine: Callable[[str, str, int], list[str]], asked: list[tuple[dict, frozenset[str]]]
) -> float:
    """Of the sessions that answer, the share among the first ten."""
    found = []
    for question, relevant in asked:
        own = question["qid"].split(":", 2)[2]
        ranked = engine(question["text"], question["project"], int(question["epoch"]) * 1000)
        first = [s for s in dict.fromkeys(ranked) if s != own][:10]
        found.append(len(relevant & set(first)) / min(len(relevant), 10))
    return statistics.mean(found)


# --- the run -------------------------------------------------------------------------------------


class Table:
    """Figures, and whether they are what they must be."""

    def __init__(self) -> None:
        self.good = True
        print("| figure | measured | bound | |\n|---|---|---|---|")

    def row(self, name: str, value: object, bound: str = "", good: bool = True) -> None:
        self.good = self.good and good
        print(f"| {name} | {value} | {bound} | {'' if good else 'MISSED'} |", flush=True)


def told(table: Table, store: Store, rules: DistilRules) -> None:
    """Everything that needs the sessions alone."""
    report, seconds, worst, slow = distilled(store, rules)
    counts = removed(store, rules)
    made = [item for item in every_item(store) if item.source == DISTILLED]
    raw = [item for item in every_item(store) if item.source != DISTILLED]
    observed = [item for item in made if item.kind == "observation"]
    lengths = sorted(len(item.title) for item in observed)
    rate = 100 * len(observed) / report.steps
    share = sum(len(text_of(i)) for i in made) / sum(len(i.body) for i in raw)
    left = 1 - counts["batches"] / counts["uses"]
    elsewhere, wrong, pairs = facts_elsewhere(store, made), forbidden(made), alike(observed)
    over, speed = over_the_turn(store, made), report.sessions / seconds
    table.row("sessions", report.sessions)
    table.row("turns", report.turns)
    table.row("uses of tools", f"{report.steps:,}")
    table.row("observations", len(observed))
    table.row("summaries", len(made) - len(observed))
    table.row("observations per 100 uses of tools", f"{rate:.1f}", "3 to 12", 3 <= rate <= 12)
    table.row("title, median", lengths[len(lengths) // 2])
    table.row("title, longest", lengths[-1], "80", lengths[-1] <= 80)
    table.row("pairs of nearly identical titles in a session", pairs, "0", not pairs)
    table.row("left out: stored within the hour, or said before", report.repeated)
    table.row("uses of tools that skip rules and batches take out", f"{left:.1%}")
    table.row("  of them on the skip list", counts["skipped tool"])
    table.row("  of them too short", counts["short"])
    table.row("distilled text, share of the raw text", f"{share:.2%}", "5 %", share <= 0.05)
    table.row("facts", f"{sum(len(i.facts) for i in made):,}")
    table.row("  that are not in their source", len(elsewhere), "0", not elsewhere)
    table.row("items with secrets, private or injected text", len(wrong), "0", not wrong)
    table.row("sessions that claim more tokens than they have", over, "0", not over)
    table.row("sessions per CPU-second", f"{speed:.1f}", "20", speed >= 20)
    table.row("steps, 99th percentile, ms CPU", f"{slow:.1f}", "40", slow <= 40)
    table.row("  the longest", f"{worst:.0f}")
    again, *_ = distilled(store, rules)
    changed = again.put.total_written
    table.row("items changed by distilling all of it again", changed, "0", not changed)
    for bad in (*elsewhere[:10], *wrong[:10]):
        print("bad:", bad)


def asked_of(table: Table, store: Store, folder: Path, work: Path, embedder: str) -> None:
    """Recall over the distilled items alone, and over the raw messages."""
    groups = grouped(folder)
    every = [item for item in every_item(store) if item.session in groups]
    raw = [(i, groups[i.session], i.body) for i in every if i.source != DISTILLED]
    made = [(i, groups[i.session], text_of(i)) for i in every if i.source == DISTILLED]
    asked = list(questions(folder, {item.session for item, *_ in raw}))
    if not asked:
        return
    part = sum(len(text) for *_, text in made) / sum(len(text) for *_, text in raw)
    base = recall_at_10(Fts(raw), asked)
    table.row(f"R@10 of {len(asked)} questions, BM25 over the raw messages", f"{base:.3f}")
    table.row("  BM25 over the distilled items", f"{recall_at_10(Fts(made), asked):.3f}")
    words = recall_at_10(Ours(raw, work / f"raw-{time.time_ns()}", "none"), asked)
    table.row("  yester's words over the raw messages", f"{words:.3f}")
    ours = recall_at_10(Ours(made, work / f"made-{time.time_ns()}", embedder), asked)
    table.row(
        "  yester over the distilled items", f"{ours:.3f}, {ours / base:.0%}", "90 % of the first",
        ours >= 0.9 * base,
    )  # fmt: skip
    table.row("  which are, of the raw text", f"{part:.2%}", "5 %", part <= 0.05)


def show(observed: list[Item], number: int) -> None:
    for item in random.Random(_SEED).sample(observed, min(number, len(observed))):
        print(f"\n--- {item.type}: {item.title}\n{item.subtitle}\n{item.body}")
        for fact in item.facts:
            print(f"  - {fact}")
        for name, text in item.sections.items():
            print(f"  {name}: {text}")
        print(f"  {', '.join(item.concepts)}; {', '.join(item.files[:5])}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--embedder", default="none")
    given = parser.parse_args()
    work = Path(given.keep or tempfile.mkdtemp(prefix="yester-distil-"))
    home = work / "home"
    if not (home / "yester.db").exists():
        indexed(given.folder / "sessions", home)
    config = load_config(home, {})
    rules = DistilRules.of(config)
    store = open_store(home, now=int(time.time() * 1000))
    for session in store.sessions(
        Filters(), Paging(1 << 30)
    ):  # a kept store is distilled from nothing
        with store.transaction("items"):
            store.remove([item.id for item in distilled_items(store, session.id)])
    table = Table()
    told(table, store, rules)
    asked_of(table, store, given.folder, work, given.embedder)
    observed = [i for i in every_item(store) if i.source == DISTILLED and i.kind == "observation"]
    print("\ntypes:", dict(Counter(i.type for i in observed).most_common()))
    print("concepts:", dict(Counter(c for i in observed for c in i.concepts).most_common()))
    show(observed, given.show)
    store.close()
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
