"""What there is to read of an item, and what reading costs a model: one text and one estimate on
every face, so that the same item never costs two prices."""

from __future__ import annotations

from yester.model import DISTILLED, Hit, Item

_BYTES = 4  # of a text, to a token; closer than characters where a script is not Latin


def item_text(item: Item) -> str:
    """All there is to read of an item: its text, its facts as a list, its sections by name. What
    somebody stored with a text comes back with that text."""
    if item.body and item.source != DISTILLED:
        return item.body
    facts = "\n".join(f"- {fact}" for fact in item.facts)
    sections = "\n".join(
        f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in item.sections.items()
    )
    return "\n\n".join(filter(None, (item.subtitle, item.body, facts, sections)))


def estimate_tokens(text: str) -> int:
    return tokens_of_length(len(text.encode("utf-8", "replace")))


def tokens_of_length(length: int) -> int:
    """For a text of which only the length is known."""
    return (length + _BYTES - 1) // _BYTES


def reading_cost(one: Item | Hit) -> int:
    """Tokens to read all of it, with its title where the text does not begin with that."""
    text = one.text if isinstance(one, Hit) else item_text(one)
    begins = text.lstrip("# ").startswith(one.title.rstrip("…"))
    return estimate_tokens(text if begins else f"{one.title}\n{text}")
