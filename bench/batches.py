"""Uses of tools grouped by the batch window, to measure what merging them would take out. Cards are
made of whole turns, so nothing in the product merges them.
"""

from __future__ import annotations

from collections.abc import Iterable

from yester.model import Event


def group_events(events: Iterable[Event]) -> list[list[Event]]:
    """Uses of one tool by one agent that follow each other closely, together.

    The events are those of one turn, in order: a batch never goes across a prompt. What is not
    worth an observation neither makes nor breaks one.
    """
    found: list[list[Event]] = []
    last: dict[str, list[Event]] = {}  # actor → the batch at hand
    for event in events:
        if not event.tool or event.skipped:
            continue
        batch = last.get(event.actor)
        if batch and batch[-1].tool == event.tool and event.epoch - batch[-1].epoch <= event.window:
            batch.append(event)
        else:
            last[event.actor] = [event]
            found.append(last[event.actor])
    return found
