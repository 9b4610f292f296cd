"""What the tests of distilling share: a made-up session, told step by step, as stored items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.readings import every_item
from yester.agents.base import complete_call
from yester.agents.values import join_fields
from yester.distil.distil import Report, distil
from yester.distil.drafts import Draft, Gate
from yester.distil.history import LOOK_BACK, Rules
from yester.distil.observe import observe
from yester.distil.outcomes import outcomes
from yester.distil.turns import View, step_of, views
from yester.distil.work import assigned
from yester.ingest.prepare import prepare_item
from yester.model import DISTILLED, Event, Item, Queue, Session, ToolCall, replace

SESSION = "aaaaaaaa-0000-4000-8000-00000000000a"
SKIPPED = frozenset({"TodoWrite", "LS", "Skill"})
RULES = Rules(SKIPPED, 3_000)
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
        body, places = join_fields(given.items(), named=False)
        call = ToolCall(tuple(places))
        item = self._add("message", "tool", body, tool=tool, call=call, **more)
        self.items[-1] = complete_call(item, output, failed)
        return self.items[-1]

    def fails(self, command: str, output: str, status: int = 1) -> Item:
        return self.ran(command, f"Exit code {status}\n{output}", failed=True)

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
            step = step_of(item, len(item.body), told.get(item.id), SKIPPED, 3_000)
            if step is not None:
                steps[item.id] = step
            items.append((item, len(item.body)))
        return views(items, steps)

    def drafts(self, gate: Gate | None = None) -> list[list[Draft]]:
        """The observations of each turn."""
        turns, gate = self.turns(), gate or Gate()
        every = zip(turns, assigned(turns, LOOK_BACK), outcomes(turns, LOOK_BACK), strict=True)
        found = []
        for turn, commits, came_out in every:
            found.append(observe(turn, commits, came_out, gate))
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


def distilled(store: Any, hooked: bool = False, now: int = 0) -> Report:
    """Distil all that waits; `now`: when, else as its sessions end."""
    report = Report()
    for waiting in store.queued_sessions(
        Queue("distil", hooked=hooked, quiet_since=LATER, limit=1_000)
    ):
        for _ in distil(store, waiting, RULES, report, now):
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
