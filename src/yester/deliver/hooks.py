"""What a hook prints: the same context in the form each client takes it in."""

from __future__ import annotations

import msgspec

from yester.agents.descriptors import hooks_of


def answer(client: str, event: str, text: str) -> bytes:
    """The bytes to print, b"" for nothing to say or for an event that takes no context."""
    hooks = hooks_of(client)
    if not text or event not in hooks.answerable:
        return b""
    sound = text.encode("utf-8", "replace").decode()  # a lone surrogate is no reason to be silent
    if hooks.answer_form == "plain":
        return sound.encode()
    if hooks.answer_form == "top":
        return msgspec.json.encode({"additionalContext": sound})
    output = {"hookEventName": event, "additionalContext": sound}
    return msgspec.json.encode({"hookSpecificOutput": output})
