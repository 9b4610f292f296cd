"""What a hook prints: the same context in the form each client takes it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Answers:
    """`form` is nested, top or plain; an event that is not listed gets no answer at all.

    Context in answer to Stop makes Claude Code go on (one stop became nine), and elsewhere it is
    an error or lost: so the events are named, not excluded.
    """

    form: str
    events: frozenset[str]


_CLAUDE = frozenset(
    {"SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUse"}
)

CLIENTS: Mapping[str, Answers] = {
    "claude-code": Answers("nested", _CLAUDE),
    "codex": Answers("nested", _CLAUDE),  # takes no key it does not know
    "gemini-cli": Answers("nested", frozenset({"SessionStart", "BeforeAgent"})),
    # Its own names, and those it uses for the hooks of a plugin in Claude Code's format.
    "copilot-cli": Answers(
        "top",
        frozenset({"sessionStart", "userPromptSubmitted", "SessionStart", "UserPromptSubmit"}),
    ),
}
OTHERS = Answers("plain", _CLAUDE)


def answer(client: str, event: str, text: str) -> bytes:
    """The bytes to print, b"" for nothing to say or for an event that takes no context."""
    answers = CLIENTS.get(client, OTHERS)
    if not text or event not in answers.events:
        return b""
    sound = text.encode("utf-8", "replace").decode()  # a lone surrogate is no reason to be silent
    if answers.form == "plain":
        return sound.encode()
    if answers.form == "top":
        return msgspec.json.encode({"additionalContext": sound})
    output = {"hookEventName": event, "additionalContext": sound}
    return msgspec.json.encode({"hookSpecificOutput": output})
