"""Sessions told event by event, and what the next one is told of them, word for word.

A story is a TOML file: `[[session]]` tables in the order in which they happened (the same name twice
is the same session, taken up again), the questions asked afterwards (`[[ask]]`; one start in the
first session's project where there is none), and `[expected]`, which is written by
YESTER_GOLDEN=1 pytest tests/golden/test_stories.py and read by whoever reviews the change.
`wrong` in an `[[ask]]` says what is not right yet in what is written there.
"""

from __future__ import annotations

import os
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.distilling import Story, distilled
from yester.context.actions import Action, at_action
from yester.context.block import Here
from yester.git import Signals
from yester.memories.rules import applicable_rules
from yester.operations.context import ContextRequest, choose_context
from yester.project import named_project

pytestmark = pytest.mark.requirement("DEL-01", "DEL-02", "DIS-12", "DIS-13", "DEL-15")

STORIES = sorted((Path(__file__).parent / "stories").glob("*.toml"))
EXPECTED = "\n[expected]\n"


def add_event(story: Story, event: dict[str, Any]) -> None:
    match event:
        case {"prompt": text}:
            story.prompt(text)
        case {"says": text}:
            story.says(text)
        case {"read": file}:
            story.reads(file)
        case {"edit": file, "old": old, "new": new}:
            story.replaces(file, old, new)
        case {"run": command, "status": status}:
            story.fails(command, event.get("output", ""), status)
        case {"run": command}:
            story.ran(command, event.get("output", ""))
        case {"plan": text}:
            story.refuses("ExitPlanMode", {"plan": text})
        case {"asks": question, "chosen": answer}:
            story.asks(event.get("header", "Choice"), question, answer)
        case {"commit": subject, "hash": hash_}:
            story.commits(subject, event.get("body", ""), hash_)
        case {"todo": text}:
            ref = f"{story.session}:todo"  # there is one list, which is written anew
            story.items = [item for item in story.items if item.ref != ref]
            story._add("note", "assistant", text, ref=ref, type="todo")
        case _:
            raise ValueError(f"a story has no event like {event}")


def milliseconds(time: datetime) -> int:
    return int(time.replace(tzinfo=UTC).timestamp() * 1000)


def tell_sessions(store: Any, sessions: list[dict[str, Any]]) -> None:
    """Each is stored and distilled before the next one begins, unless `distilled` is false."""
    known: dict[str, Story] = {}
    for told in sessions:
        name = told["name"]
        project = named_project(told["project"]).key
        story = known.setdefault(name, Story(name, project))
        before = len(story.items)
        story.clock = milliseconds(told["at"])
        for event in told["events"]:
            add_event(story, event)
        story.store(store, before)
        if told.get("distilled", True):
            distilled(store)


def read_action(told: dict[str, Any]) -> Action | None:
    """A question at the moment of action: `after` a command that failed, `before` one, a `plan`."""
    match told:
        case {"after": command, "output": output}:
            return Action("Bash", {"command": command}, output, told.get("status", 1) != 0)
        case {"before": command}:
            return Action("Bash", {"command": command})
        case {"plan": text}:
            return Action("ExitPlanMode", {"plan": text})
    return None


def ask(store: Any, told: dict[str, Any], project: str, now: int) -> str:
    place = named_project(told.get("project", project))
    if action := read_action(told):
        return at_action(store, action, Here(place, "next", now, UTC), ()).text
    event = {"prompt": "UserPromptSubmit", "file": "PreToolUse"}.get(
        next((name for name in told if name in ("prompt", "file")), ""), "SessionStart"
    )
    request = ContextRequest(
        event, prompt=told.get("prompt", ""), file=told.get("file", ""),
        source=told.get("source", "startup"),
    )  # fmt: skip
    rules = applicable_rules(store, place) if event == "SessionStart" else ()
    signals = Signals("main", changed=tuple(told["changed"])) if "changed" in told else None
    here = Here(place, told.get("session", "next"), now, UTC, signals, rules)
    return choose_context(store, request, here).text


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_a_story_is_told_as_it_was_written_down(memory, path):
    text = path.read_text("utf-8")
    told = tomllib.loads(text)
    tell_sessions(memory.store, told["session"])
    project, now = told["session"][0]["project"], milliseconds(told["now"])
    asked = told.get("ask", [{"name": "start"}])
    answers = {one["name"]: ask(memory.store, one, project, now) for one in asked}
    if os.environ.get("YESTER_GOLDEN"):
        head = text.partition(EXPECTED)[0].rstrip("\n")
        blocks = "".join(f"{name} = '''\n{answer}'''\n" for name, answer in answers.items())
        path.write_text(f"{head}\n{EXPECTED}{blocks}", "utf-8")
    assert answers == tomllib.loads(path.read_text("utf-8"))["expected"]


def test_the_stories_are_there():
    assert len(STORIES) >= 12
