"""What the tests of distilling share: a made-up session, told step by step, as stored items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.readings import every_item
from yester.agents.base import Result
from yester.agents.values import join_fields
from yester.cards.drafts import Draft, Gate, Looked
from yester.cards.observations import observe_turn
from yester.cards.outcomes import find_outcomes
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.status import Changes, judge_turns, narrow_turn
from yester.cards.turns import LOOK_BACK, DistilRules, View, group_turns, read_step
from yester.ingest.prepare import prepare_item
from yester.model import DISTILLED, Event, Item, Queue, Session, ToolCall, replace

SESSION = "aaaaaaaa-0000-4000-8000-00000000000a"
SKIPPED = frozenset({"TodoWrite", "LS", "Skill"})
RULES = DistilRules(SKIPPED)
LATER = 1 << 50


@dataclass
class Story:
    """Every step happens ten seconds after the one before."""

    session: str = SESSION
    project: str = "name:shop"
    clock: int = 1_770_000_000_000
    number: int = 0
    items: list[Item] = field(default_factory=list)

    def _add(self, kind: str, role: str, body: str, after: int = 10_000, **more: Any) -> Item:
        self.clock += after
        ref = more.pop("ref", f"{self.session[:4]}-{len(self.items)}")
        item = Item(
            ref, kind, project=self.project, session=self.session, source="claude-code",
            agent="claude-code", role=role, prompt_number=self.number, epoch=self.clock, body=body,
            id=len(self.items) + 1, **more,
        )  # fmt: skip
        self.items.append(item)
        return item

    def prompt(self, text: str) -> Item:
        self.number += 1
        return self._add("prompt", "user", text, origin="user")

    def says(self, text: str, **more: Any) -> Item:
        return self._add("message", "assistant", text, **more)

    def thinks(self, text: str) -> Item:
        return self._add("message", "thinking", text)

    def ran(self, command: str, output: str = "", failed: bool = False, **more: Any) -> Item:
        return self._call("Bash", {"command": command}, output, failed, **more)

    def _call(
        self, tool: str, given: dict[str, str], output: str = "", failed: bool = False, **more: Any
    ) -> Item:
        """A use of a tool with its structure, as readers make it."""
        item = self.starts(tool, given, **more)
        self.items[-1] = Result(output, failed).complete_call(item)
        return self.items[-1]

    def starts(self, tool: str, given: dict[str, str], **more: Any) -> Item:
        """A use of a tool of which nobody has told what came of it."""
        body, places = join_fields(given.items(), named=False)
        call = ToolCall(tuple(places))
        return self._add("message", "tool", body, tool=tool, call=call, **more)

    def fails(self, command: str, output: str, status: int = 1) -> Item:
        return self.ran(command, f"Exit code {status}\n{output}", failed=True)

    def refuses(self, tool: str, given: dict[str, str]) -> Item:
        """The user does not let the agent do it."""
        answer = "The user doesn't want to proceed with this tool use. The tool use was rejected."
        return self._call(tool, given, answer, failed=True)

    def replaces(self, file: str, old: str, new: str) -> Item:
        given = {"file_path": file, "old_string": old, "new_string": new}
        answer = f"The file {file} has been updated successfully."
        return self._call("Edit", given, answer, files_modified=(file,))

    def edits(self, file: str, text: str = "x = 1\nx = 2\n" * 6, **more: Any) -> Item:
        return self._add(
            "message", "tool", f"{file}\n{text}", tool="Edit", files_modified=(file,), **more
        )

    def reads(self, file: str, **more: Any) -> Item:
        body = f"{file}\n\n" + "some code\n" * 20
        return self._add("message", "tool", body, tool="Read", files_read=(file,), **more)

    def asks(self, header: str, question: str, answer: str) -> Item:
        return self._add(
            "message", "tool",
            f'questions: [{{"question": "{question}", "header": "{header}"}}]\n\n'
            f'User has answered your questions: "{question}"="{answer}". You can now continue.',
            tool="AskUserQuestion",
        )  # fmt: skip

    def commits(self, subject: str, body: str = "", hash_: str = "abc1234") -> Item:
        message = f"{subject}\n\n{body}" if body else subject
        return self.ran(
            f"git commit -m \"$(cat <<'EOF'\n{message}\nEOF\n)\"",
            f"[main {hash_}] {subject}\n 1 file changed, 2 insertions(+)",
        )

    # --- looked at -------------------------------------------------------------------------------

    def turns(self, told: dict[int, Event] | None = None) -> list[View]:
        told, items, steps = told or {}, [], {}
        for item in self.items:
            step = read_step(item, len(item.body), SKIPPED, told.get(item.id))
            if step is not None:
                steps[item.id] = step
            items.append((item, len(item.body)))
        return group_turns(items, steps)

    def looked(self) -> list[Looked]:
        turns = self.turns()
        changes = Changes(turns).follow()
        judged = judge_turns(changes, LOOK_BACK)
        commits, came_out = changes.commits_by_turn(LOOK_BACK), find_outcomes(turns, LOOK_BACK)
        found = zip(turns, judged, commits, came_out, strict=True)
        return [
            Looked(
                narrow_turn(one[0], one[1]),
                *one[1:],
                subject=changes.find_subject(at, LOOK_BACK),
            )
            for at, one in enumerate(found)
        ]

    def drafts(self, gate: Gate | None = None) -> list[list[Draft]]:
        """The observations of each turn."""
        gate = gate or Gate()
        found = []
        for looked in self.looked():
            found.append(observe_turn(looked, gate))
            gate.keep(fact.text for draft in found[-1] for fact in draft.facts)
        return found

    def drafted(self) -> list[Draft]:
        return [draft for drafts in self.drafts() for draft in drafts]

    # --- stored ----------------------------------------------------------------------------------

    def store(self, store: Any, since: int = 0) -> None:
        """Put what was told after the first so many items."""
        first, last = self.items[0].epoch, self.items[-1].epoch
        with store.transaction("items"):
            store.put_session(
                Session(self.session, "claude-code", self.project, first, last, "/home/sam/shop")
            )
            store.put([prepare_item(replace(item, id=0)) for item in self.items[since:]])


def letters(text: str) -> str:
    """What a text says, without marks and white space."""
    return "".join(filter(str.isalnum, text))


def distilled(store: Any, hooked: bool = False, now: int = 0) -> DistilReport:
    """Distil all that waits; `now`: when, else as its sessions end."""
    report = DistilReport()
    for waiting in store.queued_sessions(
        Queue("distil", hooked=hooked, quiet_since=LATER, limit=1_000)
    ):
        for _ in distil_session(store, waiting, RULES, report, now):
            pass
    return report


def made(store: Any, kind: str = "") -> list[Item]:
    return [i for i in every_item(store) if i.source == DISTILLED and kind in ("", i.kind)]


def fixed_bug(story: Story) -> Story:
    """A turn as there are many: a failing test, its cause, an edit, the test passes, a commit."""
    story.prompt("The totals in the cart are wrong for more than nine items, please fix it")
    story.reads("src/cart.py")
    story.fails(
        "pytest -q tests/test_cart.py",
        "E       assert 9 == 10\nFAILED tests/test_cart.py::test_ten - assert 9 == 10\n"
        "1 failed, 4 passed in 0.10s",
    )
    story.says(
        'The test fails because `total()` compares item counts as text, so "10" sorts before'
        ' "9".\n\nLet me convert them first.'
    )
    story.edits("src/cart.py")
    story.ran("pytest -q tests/test_cart.py", "5 passed in 0.09s" + " " * 40)
    story.commits(
        "Fix the cart's total for ten and more items",
        "Counts were compared as text.\n- `total()` now converts them to numbers first",
    )
    story.says(
        "All tests pass. Here's a summary:\n\n"
        "- **`src/cart.py`** — `total()` now converts counts before it compares them\n"
        "- Note that `discount()` has the same weakness and was left alone\n\n"
        "Would you like me to fix `discount()` as well?"
    )
    return story
