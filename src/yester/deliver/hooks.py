"""What a hook prints: the same context in the form each client takes it in."""

from __future__ import annotations

import msgspec

from yester.agents.descriptors import find_agent


def answer(client: str, event: str, text: str) -> bytes:
    """The bytes to print, b"" for nothing to say or for an event that takes no context."""
    agent = find_agent(client)
    if not text or event not in agent.answerable:
        return b""
    sound = text.encode("utf-8", "replace").decode()  # a lone surrogate is no reason to be silent
    if agent.answer_form == "plain":
        return sound.encode()
    if agent.answer_form == "top":
        return msgspec.json.encode({"additionalContext": sound})
    output = {"hookEventName": event, "additionalContext": sound}
    return msgspec.json.encode({"hookSpecificOutput": output})
