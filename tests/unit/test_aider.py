"""Aider's history: what was typed, what was answered, and what is only Aider's own talk."""

from __future__ import annotations

import pytest

from tests.readings import by_identity, reading, resumed
from yester.agents.aider import READER
from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")

# Aider ends its own lines with two spaces, which an editor would take away: hence the "·".
HISTORY = """
# aider chat started at 2026-02-03 10:00:00

> Aider v0.86.1··
> Main model: m-4 with diff edit format··
> Git repo: .git with 36 files··
> Added src/early.py to the chat··

#### /add src/cart.py··
> Added src/cart.py to the chat··

#### Why is the total wrong?··
####···
#### It was right before.··

The total is rounded too early.

#### Where

In `src/cart.py`:

> as the manual says

# aider chat started at noon, it says

src/cart.py
```python
<<<<<<< SEARCH
x = 1
=======
x = 2
>>>>>>> REPLACE
```

> Tokens: 2.1k sent, 99 received. Cost: $0.01 message, $0.01 session.··
> Applied edit to src/cart.py··
> Commit 84bcc8c fix: round late

as a program prints it··

#### /run pytest -q··
> ============ test session starts ============··
> FAILED tests/test_cart.py··
> Add command output to the chat? (Y)es/(N)o [Yes]: n··

#### /ask is it tested?··

--------------
► **THINKING**

Let me see.

------------
► **ANSWER**

No.

# aider chat started at 2026-02-04 09:00:00

> Aider v0.86.1··

# aider chat started at 2026-02-04 09:00:00

> Aider v0.86.1 --message Fix this:··

1. and that

#### Fix this:··
####···
#### 1. and that··

Done.

> Tokens: 1k sent··
""".replace("·", " ")


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "shop" / AGENTS["aider"].transcripts[0]
    path.parent.mkdir()

    def put(text):
        path.write_text(text, "utf-8")
        return path

    return put


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def test_a_history_is_told_session_by_session(write):
    path = write(HISTORY)
    now = reading(path)
    prompt, answer, remarks, ran, output, asked, thought, short, second, done = READER.read_items(
        now
    )
    assert (prompt.kind, prompt.type, prompt.origin) == ("prompt", "first_prompt", "user")
    assert prompt.body == "Why is the total wrong?\n\nIt was right before."
    assert prompt.project == f"dir:{path.parent}"
    assert answer.body.startswith("The total is rounded too early.\n\n#### Where\n")
    assert "> as the manual says" in answer.body
    assert answer.body.endswith("REPLACE\n```")
    assert remarks.body.startswith("Applied edit to src/cart.py\nCommit 84bcc8c fix: round late\n")
    assert remarks.body.endswith("as a program prints it")
    assert (remarks.role, remarks.tool) == ("tool", "aider")
    assert remarks.files_modified == ("src/cart.py",)
    assert (ran.body, ran.tool, ran.origin) == ("/run pytest -q", "run", "user")
    assert output.tags == ("error",)
    assert (asked.body, asked.prompt_number) == ("is it tested?", 2)
    assert (thought.role, thought.body) == ("thinking", "Let me see.")
    assert short.body == "No."
    assert (second.type, second.body) == ("first_prompt", "Fix this:\n\n1. and that")
    assert done.body == "Done."
    first, later = list(now.sessions.values())
    assert (first.title, first.started) == ("Why is the total wrong?", 1_770_112_800_000)
    assert first.key.startswith("aider:")
    assert first.key.endswith(":2026-02-03 10:00:00")
    assert (later.title, later.key[-8:]) == ("Fix this:", "09:00:00")
    assert now.skipped == {"banner": 5, "command": 1, "Aider's own remarks": 1}


def test_thinking_can_be_switched_off(write):
    off = reading(write(HISTORY), thinking=False)
    assert not [item for item in READER.read_items(off) if item.role == "thinking"]
    assert off.skipped["thinking"] == 1


def test_a_history_whose_trailing_spaces_were_stripped_is_still_read(write):
    plain = "\n".join(line.rstrip() for line in HISTORY.splitlines()) + "\n"
    prompts = [item.body for item in items(write(plain)) if item.kind == "prompt"]
    assert prompts[0] == "Why is the total wrong?\n\nIt was right before."
    assert prompts[-1] == "Fix this:\n\n1. and that"


def test_two_starts_within_one_second_are_one_session(write):
    again = "\n# aider chat started at 2026-02-05 09:00:00\n\n#### {}  \n\nYes.\n"
    found = items(write(again.format("first") + again.format("second")))
    assert [item.body for item in found] == ["first", "Yes.", "second", "Yes."]
    assert len({item.ref for item in found}) == 4
    assert [item.prompt_number for item in found] == [1, 1, 2, 2]


def test_files_added_to_the_chat_count_as_read(write):
    text = (
        HISTORY
        + "\n#### go on  \n> Added lib/tax.py to the chat  \n> Added docs/a.md to the chat.  \n"
    )
    (added,) = [item for item in items(write(text)) if item.files_read]
    assert added.files_read == ("lib/tax.py", "docs/a.md")


def test_reading_on_gives_what_reading_all_at_once_gives(write):
    whole = by_identity(items(write(HISTORY)))
    for cut in range(0, len(HISTORY), 23):
        path = write(HISTORY[:cut])
        first = reading(path)
        list(READER.read_items(first))
        path.write_text(HISTORY, "utf-8")
        found = by_identity(READER.read_items(resumed(first)))
        earlier = by_identity(items(write(HISTORY.encode()[: first.offset].decode())))
        assert earlier | found == whole, cut


def test_what_an_earlier_run_stored_is_replaced_not_left_behind(write):
    whole = by_identity(items(write(HISTORY)))
    raw = HISTORY.encode()
    stored = {}
    now = None
    for end in [*range(50, len(raw), 50), len(raw)]:
        path = write(raw[:end].decode("utf-8", "ignore"))
        now = resumed(now) if now else reading(path)
        stored |= by_identity(READER.read_items(now))
    assert stored == whole


def test_a_file_that_was_changed_before_its_end_is_read_again(write):
    path = write(HISTORY)
    first = reading(path)
    list(READER.read_items(first))
    path.write_text(HISTORY.replace("too early", "too late!"), "utf-8")
    assert by_identity(READER.read_items(resumed(first))) == by_identity(items(path))


def test_only_aiders_own_files_are_found_and_accepted(write, tmp_path):
    path = write(HISTORY)
    config = Config(tmp_path, {"transcript_dirs": (str(path.parent), str(tmp_path))}, {})
    assert list(find_transcripts(AGENTS["aider"], config)) == [path]
    assert READER.is_transcript(path)
    other = tmp_path / "notes.md"
    other.write_text("# Notes\n\n# aider chat started at 2026-02-03 10:00:00\n")
    assert not READER.is_transcript(other)
