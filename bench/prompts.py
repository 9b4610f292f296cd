"""Prompts of real sessions: is the turn found that wrote the lines which are changed now, and is it
told?

    python bench/prompts.py FOLDER [--words] [--foreign] [--least P …] [--without STEP …]
                            [--out FILE] [--against FILE]

FOLDER holds `turns-*.jsonl` (project, session, turn, ts, prompt, texts, edits, files, and branch
where it is known) and `queries.json` (session, turn, rel: the turns of other sessions whose lines
this one changes). Real data is not part of this repository. All turns are gone through in time
order; a prompt is asked as a hook asks: with the end of what the agent said before it, the branch
and the files of its session so far.

found      share of the wanted turns among the first ten (95 % by 2,000 samples of the sessions)
told       prompts with at least one of at most two lines that pass the floor, for several floors
right      share of these lines that are wanted turns; of the other prompts nothing is known
--words    without vectors
--foreign  only what other projects have: nothing of it is wanted
--without  one step left out: what was said in a turn as one text, the files of the session, the end
           of the agent's last message, the branch, or what was stored of edits
--against  such a file as --out of another run: the paired difference of what was found
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any

import yester
from yester.git import Signals
from yester.model import Filters, Hit, replace
from yester.project import named_project
from yester.recall.beginning import branch_words
from yester.recall.floor import LEAST_CHANCE, judge_hits
from yester.recall.recall import Asked, recall_hits

_FIRST = 40  # turns that are there before anything is asked
_SHORTEST = 20  # characters of a prompt
_LINES, _JUDGED = 2, 12  # told, and looked at for it
_SAMPLES = 2_000
_STEPS = ("said", "files", "before", "branch", "edits")
_FLOORS = (0.2, 0.3, LEAST_CHANCE, 0.5, 0.6)


@dataclass
class Session:
    said: str = ""
    edited: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys([*reversed(self.edited), *reversed(self.read)]))


@dataclass(frozen=True)
class Told:
    turn: tuple[str, int]
    wanted: frozenset[tuple[str, int]]  # none: not known
    hits: Sequence[Hit]
    chances: Sequence[float]

    def lines(self, least: float) -> list[Hit]:
        both = sorted(zip(self.chances, self.hits, strict=True), key=lambda pair: -pair[0])
        return [hit for chance, hit in both if chance >= least][:_LINES]


def read_turns(folder: Path) -> list[dict[str, Any]]:
    paths = sorted(folder.glob("turns-*.jsonl"))
    rows = [json.loads(line) for path in paths for line in path.open(encoding="utf-8")]
    return sorted((row for row in rows if row["ts"]), key=lambda row: str(row["ts"]))


def make_items(turn: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = datetime.fromisoformat(turn["ts"]).timestamp()
    base = {
        "project": turn["project"], "session": turn["session"], "prompt_number": turn["turn"],
        "epoch": at,
    }  # fmt: skip
    ref = f"{turn['session']}|{turn['turn']}"
    yield base | {"ref": ref, "kind": "prompt", "role": "user", "text": turn["prompt"][:8_000]}
    for number, text in enumerate(turn["texts"]):
        message = {"ref": f"{ref}|{number}", "kind": "message", "role": "assistant"}
        yield base | message | {"text": text[:8_000]}
    for number, (file, _, new) in enumerate(turn["edits"]):
        edit = {"ref": f"{ref}|e{number}", "kind": "message", "role": "tool", "tool": "Edit"}
        text = f"Edit {file}\n{new[:2_000]}"
        yield base | edit | {"text": text, "files_modified": [file]}


def ask_prompts(
    folder: Path, words: bool, foreign: bool, without: Collection[str] = ()
) -> Iterator[Told]:
    labels = {
        (row["session"], row["turn"]): frozenset(
            (one["session"], one["turn"]) for one in row["rel"]
        )
        for row in json.loads((folder / "queries.json").read_text("utf-8"))
    }
    sessions: defaultdict[str, Session] = defaultdict(Session)
    turns, waiting = 0, list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as home:
        if words:
            Path(home, "config.toml").write_text('embedder = "none"\n')
        with yester.open(Path(home, "memory") if not words else home) as memory:
            weights = replace(memory.weights, said=0.0) if "said" in without else memory.weights
            for turn in read_turns(folder):
                session, key = sessions[turn["session"]], (turn["session"], turn["turn"])
                if key in labels or (turns > _FIRST and len(turn["prompt"]) >= _SHORTEST):
                    memory.add(waiting)
                    waiting.clear()
                    prompt = turn["prompt"][:4_000]
                    branch = "" if "branch" in without else turn.get("branch", "")
                    question = "\n".join((prompt, *branch_words(Signals(branch))))
                    now = int(datetime.fromisoformat(turn["ts"]).timestamp() * 1000)
                    here = named_project(turn["project"]).key
                    filters = Filters(projects=() if foreign else (here,))
                    asked = Asked(question, filters, 20, now=now, project=here)
                    asked = asked.in_conversation(
                        "" if "before" in without else session.said, turn["session"],
                        () if "files" in without else session.files,
                    )  # fmt: skip
                    hits = recall_hits(memory.store, asked, weights, memory.search_embedder)
                    judged = judge_hits(hits[:_JUDGED], prompt, turn["project"], now)
                    chances = {one.hit.id: one.chance for one in judged}
                    if foreign:
                        hits = [hit for hit in hits if hit.project != turn["project"]]
                    found = [chances.get(hit.id, 0.0) for hit in hits]
                    yield Told(key, labels.get(key, frozenset()), hits, found)
                items = make_items(turn)
                waiting += [one for one in items if one["role"] != "tool" or "edits" not in without]
                turns += 1
                session.said = turn["texts"][-1] if turn["texts"] else session.said
                session.edited += [edit[0] for edit in turn["edits"]]
                session.read += turn["files"]


def sample_interval(values: Sequence[tuple[str, float]]) -> tuple[float, float]:
    """95 %, sessions drawn again and again."""
    by_session: defaultdict[str, list[float]] = defaultdict(list)
    for session, value in values:
        by_session[session].append(value)
    keys, dice, means = sorted(by_session), random.Random(1), []
    for _ in range(_SAMPLES):
        means.append(mean(v for key in dice.choices(keys, k=len(keys)) for v in by_session[key]))
    means.sort()
    return means[int(_SAMPLES * 0.025)], means[int(_SAMPLES * 0.975)]


def describe_mean(shares: Mapping[tuple[str, int], float]) -> str:
    low, high = sample_interval([(session, share) for (session, _), share in shares.items()])
    return f"{mean(shares.values()):.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", action="store_true", help="without vectors")
    parser.add_argument("--foreign", action="store_true", help="only what other projects have")
    parser.add_argument("--least", type=float, nargs="*", default=_FLOORS, help="floors to try")
    parser.add_argument("--without", nargs="*", choices=_STEPS, default=(), help="steps left out")
    parser.add_argument("--out", type=Path, help="what was found, a line of JSON per prompt")
    parser.add_argument("--against", type=Path, help="such a file of another run")
    given = parser.parse_args()
    asked = list(ask_prompts(given.folder, given.words, given.foreign, given.without))
    known = [one for one in asked if one.wanted]

    def turns(hits: Sequence[Hit]) -> list[tuple[str, int]]:
        return [(hit.session, hit.prompt_number) for hit in hits]

    if not given.foreign:
        shares = {
            one.turn: len(one.wanted & set(turns(one.hits[:10]))) / len(one.wanted) for one in known
        }
        print(f"found {describe_mean(shares)} of {len(known)} prompts")
        if given.against:
            other = {(s, t): share for s, t, share in map(json.loads, given.against.open())}
            gain = {turn: share - other[turn] for turn, share in shares.items() if turn in other}
            print(f"against {given.against.name}: {describe_mean(gain)} of {len(gain)} prompts")
        if given.out:
            rows = (json.dumps([*turn, share]) for turn, share in shares.items())
            given.out.write_text("".join(f"{row}\n" for row in rows))
    print("| floor | told, of all prompts | told, of those with a wanted turn | lines | right |")
    print("|---|---|---|---|---|")
    for least in given.least:
        told = [mean(bool(one.lines(least)) for one in group) for group in (asked, known)]
        shown = [(turn, one.wanted) for one in known for turn in turns(one.lines(least))]
        right = mean(turn in wanted for turn, wanted in shown) if shown else 0.0
        print(f"| {least:.2f} | {told[0]:.2f} | {told[1]:.2f} | {len(shown)} | {right:.2f} |")


if __name__ == "__main__":
    main()
