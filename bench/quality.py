"""Quality measured: how often the right memory is among the first ten.

    python bench/quality.py [FOLDER] [--set NAME …] [--limit N] [--scope project|all] [--files]
                            [--embedder NAME|none] [--out FILE] [--against FILE]

FOLDER (default: $MEMDATA) holds public data sets, which are not part of this repository. Without
--set, every set that is found there is run:

    codemem[:short]   codemem/dev/{memories,queries}.jsonl, or these two files in FOLDER itself:
                      memories, and later questions that point back at them; replayed in time
                      order, so that only older memories can be found. `:short` asks the one line
    sessionmem[:short]  sessionmem/data/…, the same format, with sessions as memories
    locomo            locomo/locomo10.json: turns of long conversations (categories 1 to 4)
    beam              beam/chats/100K/N/{chat.json,probing_questions/probing_questions.json}
    longmemeval[:oracle]  longmemeval/longmemeval_s.json (or …_s_cleaned.json): turns are stored,
                      sessions are what counts as found; `:oracle` is longmemeval_oracle.json.
                      hit@k is its recall_any@k, all@k its recall_all@k; questions without an
                      answer (…_abs) are left out

Everything goes through `yester.open()`, `add` and `recall`, in a store of its own. --out writes one
line per question; --against reads such a file of another run and adds the paired difference on the
questions both have. Intervals: bootstrap over questions. $YESTER_VECTOR_CACHE names a folder that
keeps vectors between runs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yester
from yester.operate.bench import bootstrap_mean, rank_figures

sys.path.append(str(Path(__file__).parent))

LATER = 2.0**33  # a question that is asked after everything
METRICS = ("recall@10", "mrr@10", "hit@5", "hit@10", "all@5", "all@10")
_SEED = 1
# Hits asked for where sessions are counted: several hits may be of one.
_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Question:
    qid: str
    text: str
    project: str
    relevant: frozenset[str]
    epoch: float = LATER
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A store of its own with its questions; `replay` adds items only up to a question's time.

    `items` is called when it is the group's turn: some sets have a store for every question.
    """

    items: Callable[[], list[dict[str, Any]]]
    questions: tuple[Question, ...]
    replay: bool = False
    sessions: bool = False  # what counts as found is the session of a hit, not the hit


@dataclass(frozen=True, slots=True)
class Row:
    qid: str
    ranked: tuple[str, ...]
    figures: dict[str, float]
    ms: float


# --- the sets --------------------------------------------------------------------------------


class NotThere(Exception):
    """The folder does not hold this set."""


def place(folder: Path, *paths: str) -> Path:
    """The first of these that is there."""
    for path in paths:
        if (folder / path).exists():
            return folder / path
    raise NotThere(f"{folder} holds none of {', '.join(paths)}")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        yield from map(json.loads, file)


def codemem(folder: Path, variant: str) -> Iterator[Group]:
    found = place(folder, "codemem/dev/memories.jsonl", "codemem/memories.jsonl", "memories.jsonl")
    yield _replayed(found, variant or "text", with_files=True)


def sessionmem(folder: Path, variant: str) -> Iterator[Group]:
    found = place(folder, "sessionmem/data/memories.jsonl", "sessionmem/memories.jsonl")
    # Its labels were made of the files: a question that came with them would give them away.
    yield _replayed(found, variant or "text", with_files=False)


def _replayed(memories: Path, text: str, with_files: bool) -> Group:
    items = [
        {
            "ref": m["id"], "kind": "observation", "project": m["project"], "epoch": m["epoch"],
            "title": m.get("title") or "", "text": m.get("body") or "",
            "files": m.get("files") or [], "type": m.get("type"),
        }
        for m in lines(memories)
    ]  # fmt: skip
    questions = [
        Question(
            q["qid"], q[text], q["project"], frozenset(q["relevant_ids"]), q["epoch"],
            tuple(q.get("files") or ()) if with_files else (),
        )
        for q in lines(memories.with_name("queries.jsonl"))
    ]  # fmt: skip
    items.sort(key=lambda item: item["epoch"])
    questions.sort(key=lambda question: question.epoch)
    return Group(partial(list, items), tuple(questions), replay=True)


def locomo(folder: Path, _: str) -> Iterator[Group]:
    found = place(folder, "locomo/locomo10.json", "locomo10.json")
    for talk in json.loads(found.read_text("utf-8")):
        project, said = talk["sample_id"], talk["conversation"]
        items = list(_locomo_turns(project, said))
        known = {item["ref"] for item in items}
        questions = []
        for number, asked in enumerate(talk["qa"]):
            named = re.findall(r"D:?(\d+):(\d+)", " ".join(map(str, asked.get("evidence") or [])))
            relevant = frozenset(f"D{int(a)}:{int(b)}" for a, b in named) & known
            if relevant and asked.get("category") in (1, 2, 3, 4):
                name = f"{project}#{number}"
                questions.append(Question(name, asked["question"], project, relevant))
        yield Group(partial(list, items), tuple(questions))


def _locomo_turns(project: str, said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number in sorted(int(m[1]) for key in said if (m := re.fullmatch(r"session_(\d+)", key))):
        begun = _spoken_date(said.get(f"session_{number}_date_time", ""))
        for at, turn in enumerate(said[f"session_{number}"]):
            shown = turn.get("blip_caption")
            picture = f" [shares image: {shown}]" if shown else ""
            yield {
                "ref": turn["dia_id"], "kind": "message", "project": project,
                "session": str(number), "epoch": begun + 30 * at,
                "text": f"{turn['speaker']}: {turn['text']}{picture}",
            }  # fmt: skip


def _spoken_date(text: str) -> float:
    try:
        read = datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y")
    except ValueError:
        return 0.0
    return read.replace(tzinfo=UTC).timestamp()


def beam(folder: Path, _: str) -> Iterator[Group]:
    chats = place(folder, "beam/chats/100K", "chats/100K")
    for chat in sorted(chats.iterdir(), key=lambda path: int(path.name)):
        items: dict[str, dict[str, Any]] = {}
        for batch in json.loads((chat / "chat.json").read_text("utf-8")):
            for message in (message for turn in batch["turns"] for message in turn):
                text = re.sub(r"\s*->->\s*[\d,N/A\s]+$", "", message["content"])
                items.setdefault(str(message["id"]), {
                    "ref": str(message["id"]), "kind": "message", "project": chat.name,
                    "epoch": int(message["id"]), "text": f"{message['role']}: {text}",
                })  # fmt: skip
        asked = json.loads(
            (chat / "probing_questions" / "probing_questions.json").read_text("utf-8")
        )
        questions = []
        for kind, some in asked.items():
            if kind in ("abstention", "summarization", "event_ordering"):
                continue  # they have no single source message
            for number, one in enumerate(some):
                relevant = frozenset(_numbers(one.get("source_chat_ids"))) & items.keys()
                if relevant:
                    name = f"{chat.name}/{kind}/{number}"
                    questions.append(Question(name, one["question"], chat.name, relevant))
        yield Group(partial(list, items.values()), tuple(questions))


def _numbers(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif not isinstance(value, bool) and str(value).isdigit():
        yield str(int(value))


def longmemeval(folder: Path, variant: str) -> Iterator[Group]:
    name = f"longmemeval_{variant or 's'}"
    files = (f"{name}.json", f"{name}_cleaned.json")
    found = place(folder, *(f"longmemeval/{file}" for file in files), *files)
    for entry in json.loads(found.read_text("utf-8")):
        relevant = frozenset(entry["answer_session_ids"]) & set(entry["haystack_session_ids"])
        if entry["question_id"].endswith("_abs") or not relevant:
            continue
        asked = _written_date(entry["question_date"]) or LATER
        question = Question(
            entry["question_id"], entry["question"], entry["question_id"], relevant, asked
        )
        yield Group(partial(_longmemeval_turns, entry), (question,), sessions=True)


def _longmemeval_turns(entry: dict[str, Any]) -> list[dict[str, Any]]:
    sessions = zip(
        entry["haystack_session_ids"],
        entry["haystack_dates"],
        entry["haystack_sessions"],
        strict=True,
    )
    return [
        {
            "ref": f"{session}#{number}", "kind": "message", "project": entry["question_id"],
            "session": session, "role": turn["role"], "epoch": _written_date(date) + 30 * number,
            "text": turn["content"],
        }
        for session, date, turns in sessions
        for number, turn in enumerate(turns)
    ]  # fmt: skip


def _written_date(text: str) -> float:
    """`2023/05/20 (Sat) 02:21`"""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return datetime(*numbers[:5], tzinfo=UTC).timestamp() if len(numbers) >= 3 else 0.0


SETS: dict[str, Callable[[Path, str], Iterator[Group]]] = {
    "codemem": codemem,
    "sessionmem": sessionmem,
    "locomo": locomo,
    "beam": beam,
    "longmemeval": longmemeval,
}


# --- the measurement -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    scope: str = "project"
    files: bool = False
    embedder: str = ""  # what yester itself would take
    limit: int = 0


def loaded(folder: Path, name: str, limit: int = 0) -> list[Group]:
    """The groups of a set; with a limit, those of so many questions drawn with a fixed seed."""
    kind, _, variant = name.partition(":")
    groups = list(SETS[kind](folder, variant))
    every = [(number, at) for number, g in enumerate(groups) for at in range(len(g.questions))]
    if not limit or limit >= len(every):
        return groups
    # Shuffled, then cut: a larger sample holds the smaller one.
    drawn = set(random.Random(_SEED).sample(every, len(every))[:limit])
    kept = []
    for number, group in enumerate(groups):
        questions = tuple(q for at, q in enumerate(group.questions) if (number, at) in drawn)
        if questions:
            kept.append(Group(group.items, questions, group.replay, group.sessions))
    return kept


def answered(group: Group, options: Options) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="yester-quality-") as home:
        if options.embedder:
            (Path(home) / "config.toml").write_text(f'embedder = "{options.embedder}"\n')
        with yester.open(home) as memory:
            items, added = group.items(), 0
            for question in group.questions:
                upto = added if group.replay else len(items)
                while upto < len(items) and items[upto]["epoch"] < question.epoch:
                    upto += 1
                if upto > added:
                    memory.add(items[added:upto], embed="now")
                    added = upto
                yield _asked(memory, question, group.sessions, options)


def _asked(memory: Any, question: Question, sessions: bool, options: Options) -> Row:
    began = time.perf_counter()
    hits = memory.recall(
        question.text, _DEPTH if sessions else 10, project=question.project, scope=options.scope,
        files=question.files if options.files else (), now=question.epoch,
    )  # fmt: skip
    took = (time.perf_counter() - began) * 1000
    names = (hit.session if sessions else hit.ref for hit in hits)
    ranked = tuple(dict.fromkeys(names))[:10]
    return Row(question.qid, ranked, rank_figures(ranked, question.relevant), took)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


# --- what is printed and kept ----------------------------------------------------------------

HEAD = (
    "| set | scope | questions | R@10 | 95 % interval | MRR@10 | 95 % interval | hit@5 | hit@10 |"
    " all@5 | all@10 | p50 ms | p95 ms |\n|" + "---|" * 13
)


def summary(name: str, options: Options, rows: Sequence[Row]) -> str:
    means = {metric: bootstrap_mean([row.figures[metric] for row in rows]) for metric in METRICS}
    found, rank = means["recall@10"], means["mrr@10"]
    times = [row.ms for row in rows]
    cells = [
        name + (", files" if options.files else ""),
        options.scope,
        f"{len(rows):,}",
        f"{found.mean:.3f}", f"{found.low:.3f} to {found.high:.3f}",
        f"{rank.mean:.3f}", f"{rank.low:.3f} to {rank.high:.3f}",
        *(f"{means[metric].mean:.3f}" for metric in METRICS[2:]),
        f"{percentile(times, 0.5):.1f}", f"{percentile(times, 0.95):.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def line_of(name: str, options: Options, row: Row) -> str:
    told = {"set": name, "qid": row.qid, **asdict(options), "ids": row.ranked, **row.figures}
    return json.dumps({**told, "ms": round(row.ms, 2)}) + "\n"


def kept(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What --out wrote: (set, question) → its line."""
    return {(row["set"], row["qid"]): row for row in lines(path)}


def difference(
    name: str, rows: Sequence[Row], others: dict[tuple[str, str], dict[str, Any]]
) -> list[str]:
    """This run minus the other one, on the questions both have."""
    both = [(row, others[name, row.qid]) for row in rows if (name, row.qid) in others]
    if not both:
        return [f"{name}: the other run has none of these questions"]
    said = []
    for metric in ("recall@10", "mrr@10", "hit@5"):
        gain = bootstrap_mean([row.figures[metric] - other[metric] for row, other in both])
        said.append(
            f"{name} {metric}: {gain.mean:+.3f} ({gain.low:+.3f} to {gain.high:+.3f}) "
            f"on {len(both):,} questions"
        )
    return said


def measured(folder: Path, name: str, options: Options) -> Iterator[Row]:
    for group in loaded(folder, name, options.limit):
        yield from answered(group, options)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="default: $MEMDATA")
    parser.add_argument("--set", dest="sets", action="append", metavar="NAME")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="questions of each set")
    parser.add_argument("--scope", choices=["project", "all"], default="project")
    parser.add_argument("--files", action="store_true", help="give recall the question's files")
    parser.add_argument("--embedder", default="", metavar="NAME", help="a model, or none")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a line of JSON per question")
    parser.add_argument("--against", type=Path, metavar="FILE", help="such a file of another run")
    given = parser.parse_args(words)
    folder = given.folder or Path(os.environ.get("MEMDATA") or parser.error("name a FOLDER"))
    for name in given.sets or ():
        if name.partition(":")[0] not in SETS:
            parser.error(f"no set is called {name}; there is {', '.join(SETS)}")
    options = Options(given.scope, given.files, given.embedder, given.limit)
    others = kept(given.against) if given.against else {}  # before --out, which may be the same
    names, differences, ran = given.sets or list(SETS), list[str](), 0
    with open(given.out or os.devnull, "w", encoding="utf-8", buffering=1) as out:
        for name in names:
            rows = []
            try:
                for row in measured(folder, name, options):
                    rows.append(row)
                    out.write(line_of(name, options, row))
            except NotThere as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            print(f"{HEAD}\n" * (not ran) + summary(name, options, rows), flush=True)
            ran += 1
            differences += difference(name, rows, others) if given.against else []
    for line in differences:
        print(line)
    return 0 if ran == len(names) or (ran and not given.sets) else 1


if __name__ == "__main__":
    sys.exit(main())
