"""Standing rules measured on real prompts: of the rules found, how many are right.

    python bench/standing.py MESSAGES.jsonl [--beam FOLDER] [--half develop|held-out] [--missed]

MESSAGES.jsonl has one message a line (id, role, kind, text); FOLDER is BEAM's `chats/100K`. The
labels (`bench/standing-labels.tsv`) are keyed by message: rule, unsure or no, and for a rule where
its sentences stand. They hold nothing of the texts.

A rule found is right if it shares at least half of the shorter of both with a labelled sentence.
`unsure` counts as wrong. Sessions are split into two halves by a checksum of their id. Below the
table: rules found in what else was sent in the user's name (notices, commands, summaries, plans,
prompts typed again) and in the answers of agents, none of which is one; and how many of the
instructions and preferences that BEAM asks about are found.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from yester.memories.utterances import Utterance, find_kind

LABELS = Path(__file__).with_name("standing-labels.tsv")
HALVES = ("develop", "held-out")


@dataclass
class Label:
    id: str
    stratum: str
    label: str
    spans: list[tuple[int, int]]

    @property
    def half(self) -> str:
        session = self.id.partition("#")[0]
        return "develop" if zlib.crc32(session.encode()) % 2 else "held-out"


@dataclass
class Tally:
    prompts: int = 0
    right: int = 0
    unsure: int = 0
    wrong: int = 0
    sentences: int = 0
    found: int = 0
    wrong_ids: list[str] = field(default_factory=list)
    missed_ids: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        rules = self.right + self.unsure + self.wrong
        precision = f"{self.right / rules:.3f}" if rules else "–"
        recall = f"{self.found / self.sentences:.3f}" if self.sentences else "–"
        low, high = interval(self.right, rules)
        return (
            f"{name:24} {self.prompts:7} {rules:6} {self.right:6} {self.unsure:7} {precision:>10}"
            f"  {low:.2f} to {high:.2f} {self.sentences:10} {recall:>7}"
        )


def interval(right: int, of: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    margin = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - margin), min(1.0, middle + margin)


def labels() -> Iterator[Label]:
    for line in LABELS.read_text("utf-8").splitlines()[1:]:
        id_, stratum, label, spans = line.split("\t")
        pairs = [part.split("-") for part in spans.split()]
        yield Label(id_, stratum, label, [(int(a), int(b)) for a, b in pairs])


def texts(messages: Path, beam: Path | None) -> dict[str, str]:
    """id → text of all that users sent; of an id that stands twice, the first."""
    found: dict[str, str] = {}
    for line in messages.read_text("utf-8").splitlines():
        message = json.loads(line)
        if message["role"] == "user" and message["kind"] == "text":
            found.setdefault(message["id"], message["text"])
    for chat in beam.glob("*/chat.json") if beam else ():
        for batch in json.loads(chat.read_text("utf-8")):
            for message in (message for turn in batch["turns"] for message in turn):
                if message["role"] == "user":
                    text = re.sub(r"\s*->->.*$", "", message["content"], flags=re.S)
                    found[f"beam-{chat.parent.name}#{message['id']}"] = text
    return found


def answers(messages: Path) -> Iterator[str]:
    for line in messages.read_text("utf-8").splitlines():
        message = json.loads(line)
        if message["role"] == "assistant" and message["kind"] == "text":
            yield message["text"]


def told_of(beam: Path, kind: str, text: dict[str, str]) -> Iterator[list[str]]:
    """For each question of a kind, the user's messages that BEAM names as its source."""
    for path in sorted(beam.glob("*/probing_questions/probing_questions.json")):
        chat = path.parent.parent.name
        for question in json.loads(path.read_text("utf-8"))[kind]:
            ids = question["source_chat_ids"]
            ids = ids if isinstance(ids, list) else [id_ for part in ids.values() for id_ in part]
            told = [text[name] for id_ in ids if (name := f"beam-{chat}#{id_}") in text]
            if told:
                yield told


def found_in(texts: list[str]) -> int:
    return sum(len(find_kind(words, "rule")) for words in texts)


def overlap(rule: tuple[int, int], span: tuple[int, int]) -> bool:
    shared = min(rule[1], span[1]) - max(rule[0], span[0])
    return shared * 2 >= min(rule[1] - rule[0], span[1] - span[0])


def count(tally: Tally, label: Label, rules: list[Utterance]) -> None:
    tally.prompts += 1
    hits = {span for span in label.spans for rule in rules if overlap(rule.span, span)}
    tally.sentences += len(label.spans)
    tally.found += len(hits)
    if len(hits) < len(label.spans):
        tally.missed_ids.append(label.id)
    for rule in rules:
        if any(overlap(rule.span, span) for span in label.spans):
            tally.right += 1
            continue
        tally.unsure += label.label == "unsure"
        tally.wrong += label.label != "unsure"
        tally.wrong_ids.append(f"{label.id} {rule.span[0]}-{rule.span[1]} ({rule.row})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("messages", type=Path)
    parser.add_argument("--beam", type=Path, metavar="FOLDER")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--missed", action="store_true", help="the ids of what was not found too")
    options = parser.parse_args()
    text = texts(options.messages, options.beam)
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    known = {label.id: label for label in labels()}
    for label in known.values():
        if label.id not in text or (options.half and label.half != options.half):
            continue
        rules = find_kind(text[label.id], "rule")
        kind = label.stratum.partition("-")[0]
        for half in (label.half, "both"):
            for stratum in (label.stratum, kind, "all"):
                count(tallies[half, stratum], label, rules)
    print(
        f"{'':24} {'prompts':>7} {'rules':>6} {'right':>6} {'unsure':>7} {'precision':>10}"
        f"  {'95 %':12} {'sentences':>10} {'recall':>7}"
    )
    for half in (options.half,) if options.half else (*HALVES, "both"):
        for (which, stratum), tally in sorted(tallies.items()):
            if which == half:
                print(tally.row(f"{half}, {stratum}"))
        print("  wrong:", *(tallies[half, "all"].wrong_ids or ["none"]), sep="\n    ")
        if options.missed:
            print("  missed:", *(tallies[half, "all"].missed_ids or ["none"]), sep="\n    ")
    others = [words for id_, words in text.items() if id_ not in known and "beam" not in id_]
    print(f"others in the user's name: {len(others)}, rules in them {found_in(others)}")
    said = list(answers(options.messages))
    print(f"answers of agents: {len(said)}, rules in them {found_in(said)}")
    for kind in ("instruction_following", "preference_following") if options.beam else ():
        asked = list(told_of(options.beam, kind, text))
        print(f"BEAM, {kind}: {len(asked)}, found {sum(map(bool, map(found_in, asked)))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
