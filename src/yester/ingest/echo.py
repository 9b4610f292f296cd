"""Whether a text only says again, word for word, what the agent was shown.

An echo is kept, but nobody is shown it again, so nothing that says anything else may be one: a word
more, less or in another place can turn a statement round ("Failed: …", "It is wrong that …", two
ports changed over), in any language. Hence whole sentences are compared, as they stand. A frame
around a quotation makes it a new message; where it is found, it is folded with what it is like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from yester.ingest.prepare import content_hash
from yester.model import ECHO, Entry, Injection, Item
from yester.store.contract import Store
from yester.text.sentences import split_sentences

_FEWEST = 24  # characters; fewer are said again by chance
_MARK = re.compile(r"\A(?:[-*•>]\s+)+")


@dataclass(frozen=True, slots=True)
class Shown:
    """The sentences of what an agent was shown, and since when."""

    sentences: frozenset[str]
    epoch: int = 0

    @classmethod
    def of(cls, text: str, epoch: int = 0) -> Shown:
        return cls(_sentences(text), epoch)


def shown_texts(store: Store, session: int, key: str) -> list[Shown]:
    """What an agent was shown in a session (its row and its own id), each since when it was first.
    What was made of the session itself does not count: its words would be an echo of themselves."""
    first: dict[int, int] = {}
    for line in store.entries(Injection, {"session": session}):
        first[line.item] = min(line.epoch, first.get(line.item, line.epoch))
    return [
        Shown.of(_text(item), first[item.id])
        for item in store.get(list(first))
        if item.session != key
    ]


def repeats(text: str, shown: Iterable[Shown], epoch: int | None = None) -> bool:
    """Has every sentence of it been shown by then? None: whenever it was."""
    known = [one.sentences for one in shown if epoch is None or one.epoch <= epoch]
    if not known:
        return False
    said = _sentences(text)
    return sum(map(len, said)) >= _FEWEST and said <= frozenset().union(*known)


def marked(entry: Entry) -> Entry:
    """The same as an echo: kept, and in no index."""
    item = replace(entry.item, status=ECHO)
    return replace(entry, item=item, hash=content_hash(item))


def may_repeat(item: Item) -> bool:
    """Only the agent's own words can be an echo; whoever types it means it."""
    return item.role in ("assistant", "thinking")


def _text(item: Item) -> str:
    parts = (item.title, item.subtitle, item.body, *item.facts, *item.sections.values())
    return "\n".join(filter(None, parts))


def _sentences(text: str) -> frozenset[str]:
    parts = (_MARK.sub("", " ".join(part.split())) for part in split_sentences(text))
    return frozenset(filter(None, (part.rstrip(".。 ") for part in parts)))
