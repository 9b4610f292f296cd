"""What the tests of all readers share: a pass over a file, the next one, and looking things up."""

from __future__ import annotations

from itertools import islice

import msgspec
from hypothesis import strategies as st

from yester.agents.base import Options, Reading, load_reader
from yester.agents.descriptors import AGENTS
from yester.model import Filters, Paging
from yester.project import Projects

# Values that nobody expects in a field.
ODD = st.sampled_from(
    [None, True, 0, -1, 10**30, 1.5, float("nan"), "", "x", "\ud800", [], [None], [[]], {}, [{}],
     [{"text": 7}], [{"text": "a"}], {"text": "a"}, {"a": {"b": [1]}}, ["a", 1, None]]
)  # fmt: skip


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
    return sorted(store.select(Filters(), Paging(statuses=())), key=lambda item: item.id)


def one(found, **wanted):
    matching = [i for i in found if all(getattr(i, k) == v for k, v in wanted.items())]
    assert len(matching) == 1, f"{len(matching)} items with {wanted}"
    return matching[0]


def accepted_by(path):
    """The agents whose transcript this file is taken for."""
    return [name for name in AGENTS if load_reader(name).is_transcript(path)]


def loses_nothing_when_stopped(reader, path):
    """A run that is stopped at any item and the next one give together what one run gives."""
    whole = _stored(reader.read_items(reading(path)))
    for stop in range(1, len(whole) + 1):
        now = reading(path)
        found = _stored(islice(reader.read_items(now), stop))
        assert found | _stored(reader.read_items(resumed(now))) == whole, stop


def _stored(found):
    return {(item.kind, item.ref): item for item in found}
