"""What a session has said and touched so far: a prompt is asked with it."""

from __future__ import annotations

from yester.model import Filters, Paging
from yester.store.contract import Store

_LOOKED_AT = 60  # items; what is older is not what the prompt is about


def read_conversation(store: Store, session: str) -> tuple[str, tuple[str, ...]]:
    """What the agent said last, and the files of the session so far: edited ones first, then those
    that were read, the newest first."""
    if not session:
        return "", ()
    items = store.select(Filters(session=session, kinds=("message",)), Paging(_LOOKED_AT))
    said = next((item.body for item in items if item.role == "assistant"), "")
    edited = (name for item in items for name in item.files_modified)
    read = (name for item in items for name in item.files_read)
    return said, tuple(dict.fromkeys((*edited, *read)))
