"""What real clients sent and wrote in one short session, recorded: that yester understands them is
proven where they are not installed.

tests/golden/clients/NAME has what each hook got (hooks.jsonl: the event that its command names, the
folder, the variables, the payload as it came) and the files that the client wrote below its user's
home (transcript/; a database as SQL). The user is called sam, and the long prompts of the system
are cut. Recorded with Codex 0.169.0, Copilot CLI 1.0.102, Gemini CLI 0.61.0, opencode 1.18.33,
pi 0.73.1 and Qwen Code 0.24.4; in all of them yester told two memories.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.capturing import leave
from tests.readings import accepted_by, every_item, reading
from yester.agents.base import load_reader
from yester.agents.hooks import read_payload
from yester.capture.spool import Spooled
from yester.fence import strip_fenced
from yester.model import Event, Filters
from yester.store import open_store

pytestmark = pytest.mark.requirement("CAP-01", "IMP-05")

RECORDED = Path(__file__).parent.parent / "golden" / "clients"
PROMPT = "please run the demo with the zorbulator hydration table of the sourdough recipes"
TOLD = ("integer cents", "recipes use the zorbulator", "yester-memory", "Notes from earlier")
COMMAND, PRINTED = "echo hello-from-shell", "hello-from-shell"


@dataclass(frozen=True)
class Recorded:
    """A client's session as yester must understand it."""

    name: str
    session: str
    tool: str  # as the transcript calls it
    hook_tool: str  # as the hook does
    call: str
    prompt: str = PROMPT
    asked: str = PROMPT  # by the hook
    source: str = "startup"
    told: tuple[str, ...] = ("start", "prompt", "tool", "stop", "end")


SESSIONS = (
    Recorded(
        "codex", "01a1eeef-e86c-71e3-a14e-c99086541026", "exec_command", "Bash",
        f"{COMMAND}\n\n{PRINTED}",
    ),
    Recorded(
        "copilot-cli", "98ab1068-4acb-4410-8154-c909d16a0920", "bash", "Bash",
        f"{COMMAND}\nx\n\n{PRINTED}", source="new",
    ),
    Recorded(
        "gemini-cli", "845e9151-d96a-4c31-8190-eba9af096ce1", "run_shell_command",
        "run_shell_command", f"{COMMAND}\nx\n\n{PRINTED}",
    ),
    Recorded(
        "opencode", "ses_e110fc2e7ffe8vD2bcvbYusenP", "bash", "bash",
        f"{COMMAND}\nx\n\n{PRINTED}", asked=f'"{PROMPT}"',
        told=("start", "prompt", "tool", "stop"),
    ),
    Recorded(
        "pi", "01a1eeef-da70-7647-9fca-47f45e1434ae", "bash", "bash", f"{COMMAND}\n\n{PRINTED}",
    ),
    # It asks again, without a prompt, when it hands a result on.
    Recorded(
        "qwen-code", "0f6a5328-4ca0-413a-bd90-7aa5f54b69a9", "run_shell_command",
        "run_shell_command",
        f"{COMMAND}\nx\n\n{PRINTED}",
        told=("start", "prompt", "tool", "prompt", "stop"),
    ),
)  # fmt: skip


def lay_out(name: str, user: Path) -> Path:
    """The client's files in this user's home; the transcript among them."""
    recorded = RECORDED / name / "transcript"
    for path in filter(Path.is_file, recorded.rglob("*")):
        text = path.read_text("utf-8").replace("/home/sam", str(user))
        copy = user / path.relative_to(recorded)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".sql":
            with closing(sqlite3.connect(copy.with_suffix(".db"))) as database:
                database.executescript(text)
        else:
            copy.write_text(text, "utf-8")
    (found,) = (path for path in user.rglob("*") if path.is_file() and accepted_by(path))
    return found


def load_events(name: str, user: Path) -> Iterator[Spooled]:
    """What the hooks got, as it lies in the spool."""
    text = (RECORDED / name / "hooks.jsonl").read_text("utf-8").replace("/home/sam", str(user))
    for count, line in enumerate(text.splitlines()):
        got = json.loads(line)
        id_ = f"{1_795_009_900_000 + count}000000-{count}-abcd"
        payload = json.dumps(got["payload"]).encode()
        yield Spooled(id_, got["event"], got["cwd"], got["hints"], payload)


def test_every_recording_is_looked_at():
    assert sorted(path.name for path in RECORDED.iterdir()) == [one.name for one in SESSIONS]


@pytest.mark.parametrize("one", SESSIONS, ids=lambda one: one.name)
def test_every_recorded_payload_is_understood_as_the_event_it_is(one, own_home):
    path = lay_out(one.name, own_home)
    told = [
        read_payload(got.event, got.cwd, got.hints, json.loads(got.payload), got.epoch)
        for got in load_events(one.name, own_home)
    ]
    assert tuple(event.what for event in told) == one.told
    assert {(event.agent, event.session, event.cwd, event.actor) for event in told} == {
        (one.name, one.session, str(own_home / "code" / "shop"), "")
    }
    assert {named for event in told for named in event.transcripts} <= {path}
    assert [event.source for event in told] == [one.source] + [""] * (len(told) - 1)
    assert [event.tool for event in told if event.what == "tool"] == [one.hook_tool]
    assert not any(event.failed or event.interrupted for event in told)
    asked = [strip_fenced(event.prompt).strip() for event in told if event.prompt]
    assert asked == [one.asked]


@pytest.mark.parametrize("one", SESSIONS, ids=lambda one: one.name)
def test_a_recorded_session_is_stored_once_and_without_what_yester_told(one, run, home, own_home):
    path = lay_out(one.name, own_home)
    assert accepted_by(path) == [one.name]
    expected = [
        ("prompt", "user", "", one.prompt),
        ("message", "assistant", "", "Running"),
        ("message", "tool", one.tool, one.call),
        ("message", "assistant", "", "All finished."),
    ]
    now = reading(path)
    read = list(load_reader(one.name).read_items(now))
    assert [(i.kind, i.role, i.tool) for i in read] == [row[:3] for row in expected]
    events = list(load_events(one.name, own_home))
    leave(home, *events)
    assert run("worker", "drain").out == f"{len(events)} events taken in\n"
    assert run("index").out == "nothing new in 1 transcript\n"
    with closing(open_store(home, now=1)) as store:
        items = every_item(store)
        (session,) = store.sessions(Filters())
        kept = store.entries(Event, {"session": session.id})
    assert [(i.kind, i.role, i.tool, i.body) for i in items] == expected
    project = f"dir:{own_home}/code/shop"
    assert {(i.agent, i.session, i.project, i.prompt_number, i.actor) for i in items} == {
        (one.name, one.session, project, 1, "")
    }
    assert not any(words in item.body + item.title for item in items for words in TOLD)
    assert (session.key, session.agent, session.project) == (one.session, one.name, project)
    assert (session.prompts, session.items, session.transcript) == (1, 4, str(path))
    assert sorted(event.id for event in kept) == [event.id for event in events]
    assert {event.skipped for event in kept} == {""}


@pytest.mark.parametrize("one", SESSIONS, ids=lambda one: one.name)
def test_the_recordings_hold_what_yester_told(one):
    """Else nothing would be proven by its absence from the store."""
    files = filter(Path.is_file, (RECORDED / one.name / "transcript").rglob("*"))
    assert "recipes use the zorbulator" in "".join(path.read_text("utf-8") for path in files)
