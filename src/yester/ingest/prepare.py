"""An item made ready for the store: without secrets and our own words, cut, hashed, expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from yester.fence import strip_fenced
from yester.model import Entry, Item
from yester.redact import redact, strip_private
from yester.text.document import expand_item

# Tool output longer than this is cut in the middle; the transcript keeps the rest.
HEAD_CHARS, TAIL_CHARS = 6_000, 2_000
_HUGE = 400_000  # characters; of more, only the ends are looked at
_SHORT_TEXTS = (
    "title", "subtitle", "facts", "sections", "concepts", "tags", "files_read",
    "files_modified", "tool", "type", "actor",
)  # fmt: skip


def prepared(item: Item) -> Entry:
    """Redact, then cut (never the other way round: half a secret has no shape), hash, expand."""
    clean: dict[str, Any] = {}
    body = strip_fenced(item.body)
    body = cut(redact(_ends(body)), len(body)) if item.role == "tool" else redact(body)
    if body is not item.body:
        clean["body"] = body
    for name in _SHORT_TEXTS:
        value = getattr(item, name)
        if value and (text := redacted(value)) is not None:
            clean[name] = text
    if clean:
        item = replace(item, **clean)
    return Entry(item, content_hash(item), expand_item(item))


def redacted(value: Any) -> Any:
    """The value without secrets, or None where it has none: most have none."""
    if not value:
        return None
    if isinstance(value, str):
        clean = redact(value)
        return None if clean is value else clean
    if isinstance(value, Mapping):
        parts = {key: redacted(part) for key, part in value.items()}
        if all(part is None for part in parts.values()):
            return None
        return {key: value[key] if part is None else part for key, part in parts.items()}
    if isinstance(value, tuple | list):
        found = [redacted(part) for part in value]
        if all(part is None for part in found):
            return None
        return type(value)(
            old if part is None else part for old, part in zip(value, found, strict=True)
        )
    return None


def _ends(text: str) -> str:
    """Of output far longer than what is kept, the ends a secret in the kept part can reach into.

    Looking for secrets in 50 MB takes seconds. Private spans have no longest length, so they go
    first, from the whole.
    """
    if len(text) <= _HUGE:
        return text
    text = strip_private(text)
    if len(text) <= _HUGE:
        return text
    return text[: _HUGE // 2] + text[-_HUGE // 2 :]


def cut(text: str, length: int = 0) -> str:
    """Long output with its middle left out, saying how much; `length` is what it had before."""
    left_out = max(len(text), length if len(text) >= _HUGE else 0) - HEAD_CHARS - TAIL_CHARS
    if left_out <= 0:
        return text
    return (
        f"{text[:HEAD_CHARS]}\n[… {left_out:,} characters left out, see the transcript …]\n"
        f"{text[-TAIL_CHARS:]}"
    )


def content_hash(item: Item) -> bytes:
    """Equal for equal content, whoever said it and when."""
    lists = (item.facts, item.concepts, item.tags, item.files_read, item.files_modified)
    content = "\x1e".join(
        (
            item.type, item.tool, item.role, item.status, item.title, item.subtitle, item.body,
            *("\x1f".join(values) for values in lists),
            *(f"{name}\x1f{text}" for name, text in item.sections.items()),
            f"{item.confidence} {item.supersedes} {item.discovery_tokens}",
        )
    )  # fmt: skip
    return blake2b(content.encode("utf-8", "replace"), digest_size=16).digest()
