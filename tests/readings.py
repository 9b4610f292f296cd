"""What the tests of all readers share: a pass over a file, the next one, and looking things up."""

from __future__ import annotations

import msgspec

from yester.agents.base import Options, Reading
from yester.model import Filters, Paging
from yester.project import Projects


def reading(path, **options):
    return Reading(path, Projects({}), Options(**options))


def resumed(earlier, path=None):
    """What the next run starts from: place and state as the store keeps them."""
    later = reading(path or earlier.path)
    later.offset, later.line = earlier.offset, earlier.line
    later.state = msgspec.to_builtins(earlier.state)
    return later


def by_identity(found):
    """What the store holds after these items: the later of one identity wins."""
    return {(item.kind, item.ref): item.body for item in found}


def every_item(store):
    """All that is stored, by id, whatever its status."""
    return store.select(Filters(), Paging(oldest_first=True, by_id=True, statuses=()))


def one(found, **wanted):
    matching = [i for i in found if all(getattr(i, k) == v for k, v in wanted.items())]
    assert len(matching) == 1, f"{len(matching)} items with {wanted}"
    return matching[0]
