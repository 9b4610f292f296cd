"""A question for the worker, which has the embedding model loaded: for processes that do not."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec

from yester.recall.recall import Answer, Asked
from yester.worker.door import ask

_LONGEST = 16_000  # characters of a request
_PATIENCE = 2.0  # seconds


def answered(home: Path, asked: Asked, root: str) -> Answer | None:
    """The worker's answer; None where there is none, it is of another version, or is not asked.

    With the `root` of the project it is asked in the hits say what has become of their files.
    """
    try:
        request = f"POST /recall?asked={quote(msgspec.json.encode(asked))}&root={quote(root)}"
    except UnicodeEncodeError:  # an argument that is no text has no form in JSON
        return None
    if len(request) > _LONGEST:
        return None
    said = ask(home / "run", request, _PATIENCE)
    try:
        return None if said is None else msgspec.json.decode(said, type=Answer)
    except msgspec.MsgspecError:
        return None
