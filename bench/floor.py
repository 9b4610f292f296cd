"""The floor measured: what passes that should, and what passes that should not.

    python bench/floor.py [FOLDER] [--set NAME …] [--limit N] [--files] [--embedder none]
    python bench/floor.py [FOLDER] --whole [--set NAME …] [--limit N] [--files]

FOLDER and the sets (codemem, codemem:short, locomo, beam, sessionmem) are those of
`bench/quality.py`. Of the first five hits of a question:

kept          right ones that pass, of all right ones among them
lines, right  how many pass for a question, and the share of them that are right
foreign       questions asked of another project's (or conversation's) memories, of which any passes
no answer     the same of their own, the right ones and all that says the same taken away
unanswerable  of those the set itself calls so (locomo: category 5, beam: abstention, sessionmem:
              the prompts of sessions that share no file with an earlier one)
generic       of prompts that name nothing (GENERIC)

--whole asks the whole way to the agent instead of the floor alone: gate, both searches, floor, what
was given before, turns, at most two lines, budget (`context.prompt.at_prompt`); what counts is
which memories have a line in the final text. Other projects may answer too, as they may in life,
but for foreign questions, whose own project is one of them.

`bench/pairs.py` finds the constants of `recall/floor.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yester
from yester.context.block import Here
from yester.context.prompt import Given, at_prompt
from yester.context.talk import trivial
from yester.faces.python import Memory
from yester.git import Signals
from yester.model import Hit
from yester.project import named_project
from yester.recall.floor import LEAST_CHANCE, judge_hits
from yester.text.terms import text_terms

sys.path.append(str(Path(__file__).parent))
from quality import LATER, Group, NotThere, Question, lines, loaded, place

TOP = 5
DEPTH = 30  # hits asked for, as for a prompt
SAME = 0.8  # share of common terms from which a text says the same as the one taken away
DEFAULT = ("codemem", "codemem:short", "locomo", "beam")
KINDS = ("foreign", "no answer", "unanswerable", "generic")

GENERIC = (
    "please run the whole test suite and tell me which ones fail",
    "explain what the code in this file does, step by step",
    "could you write a commit message for what we have changed so far?",
    "clean up the code you have just written and remove what is not needed",
    "what would you suggest as the next thing to do here?",
    "is there anything else that we should improve before we finish?",
    "add a few more comments so that a newcomer can follow it",
    "think about it again carefully and then propose a better solution",
    "I do not like this approach, please try a simpler one",
    "why did you do it this way and not differently?",
    "make a plan first and wait until I have agreed to it",
    "write some unit tests for the function above",
    "it still does not work, the same thing happens as before",
    "give me a short summary of what you have done today",
    "translate the following paragraph into German for me",
    "what is the weather going to be like in Lisbon tomorrow?",
    "rename the variables so that they are easier to understand",
    "how long do you think all of this is going to take?",
    "please be more careful and double check your work this time",
    "write a haiku about the sea in autumn",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A question put to a store, and what it found there."""

    kind: str  # own, or one of KINDS
    project: str  # of the question: what is fitted must hold for others
    question: Question
    hits: tuple[Hit, ...]
    lines: tuple[Hit, ...] | None = None  # of the final text, where that was asked for

    def right(self) -> int:
        return sum(hit.ref in self.question.relevant for hit in self.hits[:TOP])

    def shown(self) -> list[Hit]:
        if self.lines is not None:
            return list(self.lines)
        now = int(self.question.epoch * 1000)
        project = self.hits[0].project if self.hits else ""
        judged = judge_hits(self.hits, self.question.text, project, now)
        return [one.hit for one in judged if one.chance >= LEAST_CHANCE][:TOP]


@dataclass(frozen=True, slots=True)
class Way:
    """How questions are asked."""

    files: bool = False  # with their files
    whole: bool = False  # all the way to the text an agent gets


# --- questions and stores --------------------------------------------------------------------


def unanswerable(folder: Path, name: str) -> dict[str, list[Question]]:
    """project → questions of the set that have no answer in it."""
    found: dict[str, list[Question]] = {}
    if name == "locomo":
        talks = json.loads(
            place(folder, "locomo/locomo10.json", "locomo10.json").read_text("utf-8")
        )
        for talk in talks:
            project = talk["sample_id"]
            found[project] = [
                Question(f"{project}#{number}", asked["question"], project, frozenset())
                for number, asked in enumerate(talk["qa"])
                if asked.get("category") == 5
            ]
    elif name == "beam":
        for chat in place(folder, "beam/chats/100K", "chats/100K").iterdir():
            path = chat / "probing_questions" / "probing_questions.json"
            some = json.loads(path.read_text("utf-8")).get("abstention", [])
            found[chat.name] = [
                Question(f"{chat.name}/{number}", one["question"], chat.name, frozenset())
                for number, one in enumerate(some)
            ]
    elif name == "sessionmem":
        path = place(folder, "sessionmem/data/memories.jsonl", "sessionmem/memories.jsonl")
        asked_of = {q["qid"].partition(":")[2] for q in lines(path.with_name("queries.jsonl"))}
        for one in lines(path):
            if one["id"] not in asked_of and one.get("title"):
                question = Question(
                    one["id"], one["title"], one["project"], frozenset(), one["epoch"]
                )
                found.setdefault(one["project"], []).append(question)
    return found


def cases(
    folder: Path,
    name: str,
    limit: int = 0,
    files: bool = False,
    embedder: str = "",
    whole: bool = False,
) -> Iterator[Case]:
    groups, extra = loaded(folder, name, limit), unanswerable(folder, name)
    chance, way = random.Random(7), Way(files, whole)
    for group in groups:
        with tempfile.TemporaryDirectory(prefix="yester-floor-") as home:
            if embedder:
                (Path(home) / "config.toml").write_text(f'embedder = "{embedder}"\n')
            with yester.open(home) as memory:
                if group.replay:
                    yield from _replayed(memory, group, extra, way)
                    continue
                others = [q for other in groups for q in other.questions if other is not group]
                strange = chance.sample(others, min(len(group.questions), len(others)))
                project = group.questions[0].project
                yield from _asked_at_once(
                    memory, group, strange, extra.get(project, []), Way(whole=whole)
                )


def _asked_at_once(
    memory: Memory,
    group: Group,
    strange: Sequence[Question],
    extra: Sequence[Question],
    way: Way,
) -> Iterator[Case]:
    items = group.items()
    memory.add(items)
    texts = _texts(items)
    project = group.questions[0].project
    for question in group.questions:
        yield from _own(memory, question, texts, way)
    for kind, some in (("foreign", strange), ("unanswerable", extra)):
        yield from (_case(memory, kind, question, project, way) for question in some)
    yield from _generic(memory, project, way)


def _replayed(
    memory: Memory, group: Group, extra: Mapping[str, Sequence[Question]], way: Way
) -> Iterator[Case]:
    items, added = group.items(), 0
    texts = _texts(items)
    unanswered = [(q, "unanswerable") for some in extra.values() for q in some]
    every = [*((q, "own") for q in group.questions), *unanswered]
    for question, kind in sorted(every, key=lambda pair: pair[0].epoch):
        upto = added
        while upto < len(items) and items[upto]["epoch"] < question.epoch:
            upto += 1
        if upto > added:
            memory.add(items[added:upto], embed="now")
            added = upto
        names = sorted(project.name for project in memory.store.projects())
        if question.project not in names:
            continue  # the first of its project
        if kind != "own":
            yield _case(memory, kind, question, question.project, way)
            continue
        yield from _own(memory, question, texts, way)
        others = [name for name in names if name != question.project]
        if others:
            elsewhere = random.Random(question.qid).choice(others)
            yield _case(memory, "foreign", question, elsewhere, way)
    for project in memory.store.projects():
        yield from _generic(memory, project.name, way)


def _texts(items: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {item["ref"]: f"{item.get('title', '')}\n{item['text']}" for item in items}


def _own(memory: Memory, question: Question, texts: Mapping[str, str], way: Way) -> Iterator[Case]:
    found = _case(memory, "own", question, question.project, way)
    yield found
    gone = [set(text_terms(texts[ref])) for ref in question.relevant if ref in texts]
    left = tuple(
        hit
        for hit in found.hits
        if hit.ref not in question.relevant and not _says(f"{hit.title}\n{hit.text}", gone)
    )
    lines = None
    if way.whole:
        kept = {hit.id for hit in left}
        taken = {hit.id for hit in found.hits if hit.id not in kept}
        lines = _delivered(memory, question, question.project, way, taken)
    yield Case("no answer", found.project, question, left, lines)


def _says(text: str, gone: Sequence[set[str]]) -> bool:
    words = set(text_terms(text))
    return any(len(words & one) >= SAME * len(words | one) for one in gone)


def _generic(memory: Memory, project: str, way: Way) -> Iterator[Case]:
    newest = memory.recall(project=project, scope="project", k=1)
    now = newest[0].epoch if newest else LATER
    for number, prompt in enumerate(GENERIC):
        if not trivial(prompt):
            question = Question(f"generic/{number}", prompt, project, frozenset(), now)
            yield _case(memory, "generic", question, project, Way(whole=way.whole))


def _case(memory: Memory, kind: str, question: Question, project: str, way: Way) -> Case:
    hits = memory.recall(
        question.text, DEPTH, project=project, scope="project",
        files=question.files if way.files else (), now=question.epoch, explain=True,
    )  # fmt: skip
    lines = None
    if way.whole:
        lines = _delivered(memory, question, project, way, (), everywhere=kind != "foreign")
    return Case(kind, question.project, question, tuple(hits), lines)


def _delivered(
    memory: Memory,
    question: Question,
    project: str,
    way: Way,
    known: Collection[int],
    everywhere: bool = True,
) -> tuple[Hit, ...]:
    """What has a line in the text an agent would get for the question as its prompt."""
    place = next(
        (one for one in memory.store.projects() if one.name == project), named_project(project)
    )
    signals = Signals(changed=tuple(question.files) if way.files else ())
    here = Here(
        place, "", int(question.epoch * 1000), signals=signals, embedder=memory.embedder,
        everywhere=everywhere,
    )  # fmt: skip
    given = at_prompt(memory.store, question.text, here, Given(known))
    hits = memory.get([one.item for one in given.shown])
    assert all(f"#{hit.id} " in given.text for hit in hits)
    return tuple(hits)


# --- figures ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    questions: int
    kept: float
    lines: float
    right: float  # share of the lines
    passed: Mapping[str, float]  # kind → share of its questions of which anything passes


def measured(found: Sequence[Case]) -> Figures:
    own = [case for case in found if case.kind == "own"]
    shown = [case.shown() for case in own]
    good = sum(
        hit.ref in case.question.relevant
        for case, some in zip(own, shown, strict=True)
        for hit in some
    )
    number = sum(map(len, shown))
    passed = {}
    for kind in KINDS:
        some = [bool(case.shown()) for case in found if case.kind == kind]
        if some:
            passed[kind] = sum(some) / len(some)
    return Figures(
        len(own), good / max(sum(case.right() for case in own), 1), number / max(len(own), 1),
        good / max(number, 1), passed,
    )  # fmt: skip


HEAD = (
    "| set | questions | kept | lines | right | foreign | no answer | unanswerable | generic |\n|"
    + "---|" * 9
)


def row(name: str, figures: Figures) -> str:
    shares = (
        f"{100 * figures.passed[kind]:.1f} %" if kind in figures.passed else "–" for kind in KINDS
    )
    cells = (
        name, f"{figures.questions:,}", f"{figures.kept:.3f}", f"{figures.lines:.2f}",
        f"{figures.right:.2f}", *shares,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="default: $MEMDATA")
    parser.add_argument("--set", dest="sets", action="append", help="may be given several times")
    parser.add_argument("--limit", type=int, default=0, help="questions per set, drawn")
    parser.add_argument("--files", action="store_true", help="codemem: with the question's files")
    parser.add_argument("--embedder", default="", help="a model's name, or none")
    parser.add_argument("--whole", action="store_true", help="all the way to the final text")
    given = parser.parse_args(words)
    folder = given.folder or Path(os.environ.get("MEMDATA") or parser.error("name a FOLDER"))
    found = 0
    for name in given.sets or DEFAULT:
        title = name + (", files" if given.files else "")
        try:
            some = list(cases(folder, name, given.limit, given.files, given.embedder, given.whole))
        except NotThere as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        print(f"{HEAD}\n" * (not found) + row(title, measured(some)), flush=True)
        found += 1
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
