"""What was recorded steers no terminal and hides from no reader, whichever command prints it."""

from __future__ import annotations

import json
import os
import re
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.faces.cli.screen import strip_steering
from yester.fence import escape_hidden

pytestmark = pytest.mark.requirement("DEL-09")

HOSTILE = (
    "\x1b]52;c;cHduZWQ=\x07" "\x1b[2J" "\x1bc" "\x1b[8m" "\x1bP1;1|17/ab\x1b\\" "\x1b]0;pwned\x1b\\"
    "\x9b2J" "\x9d0;pwned\x9c" "\x07\x08\x00" "\u202e\u2066\u200b\u200e\ufeff\u00ad" "\x7f"
)  # fmt: skip
OURS = re.compile(r"\x1b\[(?:0|1|2|3[1-6])m")
KEEP = "\n\t"
SESSION = "aaaaaaaa-0000-4000-8000-000000000001"


def steering(text: str) -> set[str]:
    """Controls and what has no width, by what Unicode says of them."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in KEEP}


READING = (
    ("recall", "quokka"), ("recall", "quokka", "--format", "full"), ("recall", "quokka", "--raw"),
    ("recall", "quokka", "--explain"), ("recall", "quokka", "--digest"), ("search", "quokka"),
    ("recall", "--type", "decision"), ("recall", "-p", "nowhere"),
    ("show", "1", "2", "3", "4", "5", "6"), ("show", "1", "2", "--format", "index"),
    ("timeline", "latest", "--all-projects"), ("timeline", "where does the quokka live"),
    ("timeline", "latest", "--all-projects", "--format", "full"),
    ("context",), ("context", "--why"),
    ("context", "where does the quokka of the zoo live?"),
    ("sessions",), ("sessions", "--format", "full"), ("recent",), ("stats",), ("status",),
    ("memory", "list"), ("memory", "list", "--format", "full"),
    ("memory", "history"), ("memory", "show", "7"),
    ("memory", "lint"), ("memory", "review"),
    ("memory", "candidate", "quokka", "--type", "decision"),
    ("distil", "--session", SESSION, "--show"), ("off", "--list"), ("config",),
)  # fmt: skip


@pytest.fixture
def hostile(run, transcript, own_home, tmp_path):
    """A store in which everything that has a name or a text is hostile."""
    folder = str(tmp_path / f"zoo{HOSTILE.replace(chr(0), '')}")
    said = transcript(cwd=folder)
    for _ in range(2):
        said.user(f"{HOSTILE}Where does the quokka{HOSTILE} live?", gitBranch=f"main{HOSTILE}")
        said.assistant(f"The quokka lives in house 4{HOSTILE}, because house 3 is{HOSTILE} full.")
        key = said.call(f"Bash{HOSTILE}", command=f"ls quokka{HOSTILE}")
        said.result(key, f"quokka.py{HOSTILE} error: no such house")
    said.other("custom-title", customTitle=f"The quokka{HOSTILE} house")
    assert run("index").code == 0
    run("remember", f"quokka{HOSTILE.replace(chr(0), '')} sleeps by day", "--type", "decision")
    return run


def on_a_terminal(home: Path, tmp_path: Path, zygote, words: tuple[str, ...], **more: str) -> str:
    """What a terminal is sent, standard output and standard error together."""
    master, slave = os.openpty()
    name, got = os.ttyname(slave), []

    def read() -> None:
        while True:
            try:
                got.append(os.read(master, 65_536))
            except OSError:
                return

    reader = threading.Thread(target=read)
    reader.start()
    tty = Path(name)
    env = {k: v for k, v in os.environ.items() if k not in ("CLAUDECODE", "NO_COLOR")}
    zygote.call(["--home", str(home), *words], tmp_path, {**env, "TERM": "xterm", **more}, tty, tty)
    os.close(slave)
    reader.join()
    os.close(master)
    return b"".join(got).decode("utf-8").replace("\r\n", "\n")


def test_nothing_recorded_steers_a_terminal_or_a_pipe(hostile, home, tmp_path, zygote_of_commands):
    coloured = seen = 0
    for words in READING:
        piped = hostile(*words)
        assert piped.code in (0, 1), (words, piped.err)
        assert "Traceback" not in piped.err, (words, piped.err)
        assert not steering(piped.out + piped.err), words
        if words[0] == "distil":
            continue  # a bar is drawn there
        shown = on_a_terminal(home, tmp_path, zygote_of_commands, words)
        assert not steering(OURS.sub("", shown)), words
        coloured += len(OURS.findall(shown))
        seen += "quokka" in piped.out
    assert coloured > 20  # our own colours are still there
    assert seen > 15  # and what is strip_steering of what was recorded


def test_json_says_it_all_and_steers_nothing(hostile):
    for words in READING:
        if words[0] in ("recall", "show", "sessions", "timeline"):
            printed = hostile(*words, "--json")
            assert not steering(printed.out), words
            told = json.dumps(json.loads(printed.out or "null"), ensure_ascii=False)
            assert ("\u202e" in told) == ("decision" not in words and "-p" not in words), words


marks = st.sampled_from([
    "\x1b", "[", "]", "2J", "1m", "8m", "\x1b[1m", "\x1b[0m", "P", "\\", "\x9b", "\x9c", "\x07",
    "\u202e", "\u200d", "👩", "❤", "\ufe0f", "\u2028", "\r", "\n", "a", "é", "\U000e0041",
])  # fmt: skip


@given(st.lists(marks, max_size=12).map("".join) | st.text(max_size=40))
def test_only_our_colours_pass_and_nothing_is_left_after_a_second_time(text):
    passed = strip_steering(text)
    assert strip_steering(passed) == passed
    left = steering(OURS.sub("", passed))
    assert left <= {"\u200d"}  # where it holds two emoji together
    assert json.loads(escape_hidden(json.dumps(text, ensure_ascii=False))) == text
