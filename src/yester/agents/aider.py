"""Aider's `.aider.chat.history.md`: one file for each project, sessions one after the other.

    # aider chat started at TIME      a new session
    #### text                         what the user typed, every line of it
    > text                            what Aider says about itself, asks, and runs
    anything else                     the answer, thinking first: ► **THINKING** … ► **ANSWER**

Aider ends its own lines with two spaces; a heading or quotation of the model's does not, and so
stays part of the answer (unless an editor has stripped the spaces everywhere). Checked with Aider's
own writer (0.86) and against public histories of versions 0.37 to 0.86. There are no ids and only
one time a session, in local time. Left out, and counted: the banner before the first
prompt, commands that only steer Aider, and its talk about tokens and models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from yester.agents.base import Reading, State
from yester.agents.sources import Markdown, make_reader
from yester.agents.values import digest, parse_local_time
from yester.model import Item, ToolCall

HEADER = "# aider chat started at "

# Commands with something said behind them; `/run` and `!` start a program; the rest steers Aider.
ASKING = ("/ask", "/code", "/architect", "/context")
RUNNING = ("/run", "/test", "/git")

# What Aider says about itself, by how the line begins.
CHATTER = re.compile(
    r"\A(?:Tokens: |Cost: |[\d,.k]+ prompt tokens|Aider v|(?:Main |Weak |Editor )?[Mm]odels?:? "
    r"|Git repo: |Repo-map|Use /help|https://aider\.chat|Initial repo scan|Warning: |VSCode "
    r"|Update git name|You can skip this check|Open documentation url|Add .* to the chat\?|\^C"
    r"|Add \.aider|Creating empty file|Attempt to fix |Copied |Can't initialize|Terminal does)"
)
_STARTED = re.compile(re.escape(HEADER) + r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?")
_EDITED = re.compile(r"\AApplied edit to (?P<file>\S(?:.*\S)?)\s*$")
_ADDED = re.compile(r"\AAdded (?P<file>\S.{0,400}?) to the chat(?: \(read-only\))?\.?\s*$")
_FAILED = re.compile(r"^(?:Traceback |# Fix any errors|FAILED |.{0,40}\bError: )", re.M)
_ANSWER = re.compile(r"^(?:-{3,}\n)?► \*\*ANSWER\*\*\s*$", re.M)
_THINKING = re.compile(r"\A(?:-{3,}\n)?► \*\*THINKING\*\*\s*$", re.M)


class HistoryState(State):
    """The session the next block belongs to."""

    started: str = ""
    blocks: int = 0
    bare: bool | None = None  # the spaces at the end of lines are gone; None is not known yet


class History(Markdown):
    agent = "aider"
    state_type = HistoryState
    state: HistoryState
    begins = HEADER

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.kind = ""  # of the block we are in
        self.unfinished = False  # it goes on until a line that ends with two spaces
        self._begin_session()

    def _begin_session(self) -> None:
        path, started = self.reading.path.absolute(), self.state.started
        self.state.session = f"aider:{digest(str(path))}:{started}"
        self.place_session(str(path.parent))
        self.epoch = parse_local_time(started)

    def block_kind(self, text: str) -> str | None:
        kind = self._line_kind(text, text.endswith("  "))
        if kind == self.kind != "session":
            return None
        self.kind = kind
        return kind

    def _line_kind(self, text: str, ended: bool) -> str:
        if _STARTED.fullmatch(text.rstrip()):
            self.unfinished = False
            self.state.bare = None
            return "session"
        marked = "user" if text.startswith("####") else "aider" if text.startswith(">") else ""
        if self.unfinished and not (ended and marked == "user"):
            self.unfinished = not ended
            return "aider"
        self.unfinished = False
        if not marked:
            return "answer"
        if self.state.bare is None:
            self.state.bare = not ended
        if ended or self.state.bare:
            return marked
        # Output of several lines is marked on its first one and ended on its last.
        self.unfinished = marked == self.kind == "aider"
        return "aider" if self.unfinished else "answer"

    def read_block(self, kind: str, lines: list[str]) -> Iterator[Item]:
        text = "\n".join(lines).strip()
        if kind == "session":
            started = text.removeprefix(HEADER).strip()
            if started != self.state.started:  # two starts within one second are one session
                self.state = HistoryState(started=started, bare=self.state.bare)
                self._begin_session()
            return
        if not text:
            return
        ref = f"{self.state.session}:{self.state.blocks}"
        self.state.blocks += 1
        if kind == "user":
            yield from self._read_prompt(ref, _strip_marks(lines, "####"))
        elif not self.state.prompts:
            self.reading.skip("banner")
        elif kind == "aider":
            yield from self._read_remarks(ref, _strip_marks(lines, ">"))
        else:
            yield from self._read_answer(ref, text)

    def _read_prompt(self, ref: str, text: str) -> Iterator[Item]:
        command, _, rest = text.partition(" ")
        if text.startswith("!") or (command in RUNNING and rest.strip()):
            begin = len(text) - len(rest.lstrip()) if command in RUNNING else 1
            call = ToolCall((("command", begin, len(text)),))
            yield self.make_notice(ref, text, "run", "user", call)
        elif command in ASKING and rest.strip():
            yield self.make_prompt(ref, rest.strip())
        elif re.match(r"/[a-z-]+(?:\s|$)", text):
            self.reading.skip("command")
        elif text and text != "<blank>":
            yield self.make_prompt(ref, text)
        else:
            self.reading.skip("empty")

    def _read_remarks(self, ref: str, text: str) -> Iterator[Item]:
        """What Aider did and what its programs printed; the files it names are those touched."""
        kept = [line for line in text.splitlines() if not CHATTER.match(line)]
        body = "\n".join(kept).strip()
        if not body:
            self.reading.skip("Aider's own remarks")
            return
        edited, added = (
            self.file_paths(match["file"] for match in map(mark.match, kept) if match)
            for mark in (_EDITED, _ADDED)
        )
        yield self.make_item(
            ref, "message", "tool", body, tool="aider", files_read=added, files_modified=edited,
            tags=("error",) if _FAILED.search(body) else (), call=ToolCall(result=(0, len(body))),
        )  # fmt: skip

    def _read_answer(self, ref: str, text: str) -> Iterator[Item]:
        if begun := _THINKING.match(text):
            parts = _ANSWER.split(text[begun.end() :], maxsplit=1)
            yield self.make_message(f"{ref}:thinking", parts[0], "thinking")
            text = parts[1] if len(parts) > 1 else ""
        yield self.make_message(ref, text)


def _strip_marks(lines: list[str], mark: str) -> str:
    stripped = (line.removeprefix(mark).removeprefix(" ").rstrip() for line in lines)
    return "\n".join(stripped).strip()


READER = make_reader(History)
