"""What agents would have been told at the moment of action: past sessions, use by use of a tool.

    python bench/reflex.py FOLDER [--keep HOME] [--show N] [--hooks N]

FOLDER holds `sessions/` (transcripts of any agent; real data is not part of this repository). They
are indexed and distilled in a store of their own, without a language model. Then every use of a
tool is replayed in the order of time through the code that answers hooks, each as of its moment:
what happened later is not known, and of the session itself nothing is told.

    met again   a session's first run with an error that an earlier session had met and ended; how
                often it is told what ended it. An error that a run which passed has printed as well
                was none (a test's own log); those are counted beside it
    false       what was told and proved wrong: the command passed after all, or the error went away
                by itself. Whether the rest would have helped has to be read: --show prints it

--hooks N runs hook.py N times each as a client does and compares CPU time: an event that is only
stored, the same with run/armed of this store, and a quiet one before a tool. And what the worker
needs to answer: a failure that is known against a prompt.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from yester.agents.values import decode_object
from yester.cards.failures import error_mark
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.tools import find_errors, shell_command, split_call
from yester.cards.turns import PLANS, DistilRules
from yester.context.actions import Action, at_action, list_armed
from yester.context.block import Context, Here
from yester.context.prompt import at_prompt
from yester.ingest.prepare import SHELLS
from yester.model import Failure, Filters, Item, Paging, Project, Queue
from yester.store import open_store
from yester.store.contract import Store
from yester.text.edits import find_edits

HOOK = Path(__file__).parent.parent / "plugin" / "hooks" / "hook.py"
_LATER = 1 << 50
_ENDED = ("fixed", "instead")


@dataclass
class Replay:
    store: Store
    projects: dict[str, Project]
    failures: dict[int, list[Failure]]  # of each run
    sessions: dict[int, str]  # run → its session
    facts: dict[str, set[str]] = field(default_factory=dict)  # session → what it was told
    counts: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)  # error → how often something was told
    met_marks: list[tuple[frozenset[str], bool]] = field(default_factory=list)  # and was it told?
    shown: list[str] = field(default_factory=list)
    met: set[tuple[str, str]] = field(default_factory=set)

    def use_tool(self, item: Item) -> None:
        self.counts["uses of tools"] += 1
        output = split_call(item)[1]
        failed = "error" in item.tags or bool(item.call and item.call.status)
        shell = item.tool.lower() in SHELLS
        if shell:
            given = {"command": shell_command(item)}
            self.ask(item, Action(item.tool, given))
            found = self.ask(item, Action(item.tool, given, output or "", failed))
            self.count_met(item, found)
        elif item.tool in PLANS:
            plan = decode_object(item.body.split("\n\n")[0]) or {"plan": item.body}
            self.ask(item, Action(item.tool, plan))
        elif item.files_modified:
            self.counts["edits"] += 1
            for edit in find_edits(item)[:1]:
                given = {"file_path": edit.file, "old_string": edit.before,
                         "new_string": edit.after}  # fmt: skip
                self.ask(item, Action(item.tool, given))

    def ask(self, item: Item, action: Action) -> Context:
        here = Here(self.projects[item.project], item.session, item.epoch)
        facts = self.facts.setdefault(item.session, set())
        found = at_action(self.store, action, here, facts)
        for line in found.shown:
            about, _, mark = line.reason.partition(" ")
            facts.add(line.reason)
            if about in ("error", "command"):
                self.marks[mark] += 1
            self.counts[f"told: {about}"] += 1
            false = self.is_false(item, about, mark)
            self.counts["false"] += false
            text = found.text.split("\n")[2] + " FALSE" * false
            self.shown.append(f"{self.projects[item.project].name} #{item.id} {about}: {text}")
        return found

    def is_false(self, item: Item, about: str, mark: str) -> bool:
        own = [one for one in self.failures.get(item.id, ()) if one.came != "printed"]
        if about == "command":  # a pipe may hide that it failed: then the output says so
            output = split_call(item)[1] or ""
            return mark not in {error_mark(one) for one in find_errors(output)}
        return about == "error" and any(
            one.came in ("itself", "meant") for one in own if one.mark == mark
        )

    def count_met(self, item: Item, found: Context) -> None:
        """Was this the first run of its session with an error that had ended before?"""
        own = [one for one in self.failures.get(item.id, ()) if one.came != "printed"]
        known = [one for one in own if self.had_ended(one, item)]
        new = [one for one in known if (item.session, one.mark) not in self.met]
        self.met |= {(item.session, one.mark) for one in own}
        if not new:
            return
        logs = all(self.was_printed(one, item) for one in new)
        name = "test logs met again" if logs else "met again"
        self.counts[name] += 1
        told = {fact for fact in self.facts[item.session] if fact.startswith("error ")}
        before = any(f"error {one.mark}" in told for one in known)
        # What was said before the command itself was said in time, too.
        warned = any(f"command {one.mark}" in self.facts[item.session] for one in known)
        in_time = bool(found.text or before or warned)
        self.counts[f"{name}: told"] += in_time
        if not logs:
            self.met_marks.append((frozenset(one.mark for one in new), in_time))

    def had_ended(self, one: Failure, item: Item) -> bool:
        return any(
            other.came in _ENDED and other.ended < item.epoch
            for other in self.store.entries(Failure, {"mark": one.mark})
            if self.sessions[other.item] != item.session
        )

    def was_printed(self, one: Failure, item: Item) -> bool:
        return any(
            other.came == "printed" and other.epoch < item.epoch
            for other in self.store.entries(Failure, {"mark": one.mark})
        )


def fill_store(folder: Path, home: Path) -> None:
    command = [sys.executable, "-m", "yester", "--home", str(home), "index", str(folder)]
    env = {**os.environ, "YESTER_EMBEDDER": "none"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)


def distil_store(store: Store) -> None:
    with store.transaction("work"):
        store.queue_sessions()
    for waiting in store.queued_sessions(Queue("distil", quiet_since=_LATER, limit=1 << 30)):
        for _ in distil_session(store, waiting, DistilRules(), DistilReport()):
            pass


def tool_uses(store: Store) -> Iterator[Item]:
    page = Paging(2_000, oldest_first=True)
    while found := store.select(Filters(kinds=("message",)), page):
        yield from (item for item in found if item.role == "tool")
        page = Paging(2_000, oldest_first=True, behind=(found[-1].epoch, found[-1].id))


def replay_uses(store: Store) -> Replay:
    rows = store.entries(Failure)
    failures: dict[int, list[Failure]] = {}
    for one in rows:
        failures.setdefault(one.item, []).append(one)
    sessions = {item.id: item.session for item in store.get(sorted(failures))}
    projects = {one.key: one for one in store.projects()}
    replay = Replay(store, projects, failures, sessions)
    for item in tool_uses(store):
        replay.use_tool(item)
    return replay


def report(replay: Replay, show: int) -> None:
    counts = replay.counts
    for line in replay.shown[: show or 0]:
        print(line)
    print(f"{counts['uses of tools']:,} uses of tools")
    for name in ("met again", "test logs met again"):
        met, told = counts[name], counts[f"{name}: told"]
        print(f"{name}: {met}, told {told} ({told / max(met, 1):.0%})")
    for name in sorted(name for name in counts if name.startswith("told: ")):
        print(f"{name}: {counts[name]}")
    if replay.marks:
        most, often = replay.marks.most_common(1)[0]
        others = [told for marks, told in replay.met_marks if most not in marks]
        print(
            f"without the error that most was told of ({often} of {replay.marks.total()} lines): "
            f"met again {len(others)}, told {sum(others)}; lines {replay.marks.total() - often} "
            f"of {len(replay.marks) - 1} errors"
        )
    print(f"edits {counts['edits']:,}")
    rate = 200 * counts["false"] / max(counts["uses of tools"], 1)
    print(f"false: {counts['false']} ({rate:.2f} in 200 uses)")


# --- what it costs --------------------------------------------------------------------------------


def cpu_of(words: Sequence[str], payload: bytes, env: dict[str, str], cwd: Path) -> float:
    """CPU milliseconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, input=payload, env=env, cwd=cwd, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure_hooks(store: Store, folder: Path, number: int) -> None:
    user, project = folder / "user", folder / "project"
    home, plugin = user / ".yester", user / "plugin"
    project.mkdir()
    for part in ("run", "spool/tmp", "spool/new"):
        (home / part).mkdir(mode=0o700, parents=True)
    home.chmod(0o700)
    plugin.mkdir()
    for name in ("hook.py", "ask.py"):
        (plugin / name).write_bytes((HOOK.parent / name).read_bytes())
    env = {"HOME": str(user), "PATH": os.environ["PATH"]}
    python = [os.path.realpath(sys.executable), "-I", "-S", str(plugin / "hook.py")]
    payload = (
        b'{"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "%b"}}'
    )
    payload %= b"a line of output\\n" * 250
    lines = list_armed(store)
    kinds: dict[str, tuple[list[str], bool]] = {
        "stored, nothing armed": ([*python, "PostToolUse", "claude-code"], False),
        f"stored, {len(lines)} armed": ([*python, "PostToolUse", "claude-code"], True),
        "quiet, before a tool": ([*python, "PreToolUse", "claude-code", "armed"], True),
    }
    took: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(number):  # by turns: the machine is not always the same
        for name, (words, armed) in kinds.items():
            path = home / "run" / "armed"
            path.write_text("".join(f"{line}\n" for line in lines)) if armed else path.unlink(True)
            took[name].append(cpu_of(words, payload, env, project))
    for name, times in took.items():
        print(f"hook, {name}: {statistics.median(times):.1f} ms CPU")


def measure_answers(store: Store, number: int, now: int) -> None:
    """By words alone: what a prompt costs besides is its vector."""
    projects = {one.key: one for one in store.projects()}
    ended = [one for one in store.entries(Failure) if one.came in _ENDED][:number]
    runs = store.get([one.item for one in ended])
    prompts = store.select(Filters(kinds=("prompt",)), Paging(number))

    def median(times: Iterator[float]) -> float:
        return 1000 * statistics.median(times)

    def clock(act: Callable[[], object]) -> float:
        began = time.process_time()
        act()
        return time.process_time() - began

    def fail(item: Item) -> None:
        given, output = {"command": shell_command(item)}, split_call(item)[1] or ""
        at_action(
            store, Action("Bash", given, output, True), Here(projects[item.project], "", now), ()
        )

    def change(item: Item) -> None:
        edit = find_edits(item)[0]
        given = {"file_path": edit.file, "old_string": edit.before, "new_string": edit.after}
        at_action(store, Action("Edit", given), Here(projects[item.project], "", now), ())

    def ask(item: Item) -> None:
        at_prompt(store, item.body, Here(projects[item.project], "", now))

    failure, prompt = median(clock(lambda i=i: fail(i)) for i in runs), 0.0
    prompt = median(clock(lambda i=i: ask(i)) for i in prompts)
    edits = [item for item in tool_uses(store) if find_edits(item) and find_edits(item)[0].before]
    edit = median(clock(lambda i=i: change(i)) for i in edits[-number:])
    print(
        f"answer: {failure:.1f} ms CPU after a failure, {edit:.1f} ms before an edit, "
        f"{prompt:.1f} ms at a prompt ({failure / prompt:.2f} and {edit / prompt:.2f} times)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="keep the store here, or use the one there is")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--hooks", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = given.keep or Path(folder) / "home"
        if not (home / "yester.db").exists():
            fill_store(given.folder / "sessions", home)
        now = int(time.time() * 1000)
        store = open_store(home, now=now)
        distil_store(store)
        report(replay_uses(store), given.show)
        if given.hooks:
            measure_hooks(store, Path(folder), given.hooks)
            measure_answers(store, given.hooks, now)
        store.close()


if __name__ == "__main__":
    main()
