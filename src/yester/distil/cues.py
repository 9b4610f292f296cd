"""What a statement tells, by its words, and which statements tell nothing.

The rows of tables/statements.toml know English, and of other languages the commonest words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from yester.distil.phrases import plain, without_fixed, without_interjection
from yester.tables import load_rows

SHORTEST = 18
_FINDINGS = ("cause", "gotcha", "failed")
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def may_find(text: str) -> bool:
    """Could a message tell a cause, a trap or a failure? Looks at all of it at once."""
    rows = load_rows("statements", "cues")
    return any(row.pattern.search(text) for row in rows if row.name in _FINDINGS)


@lru_cache(maxsize=4_096)
def tells(text: str) -> frozenset[str]:
    bare = plain(text)
    rows = load_rows("statements", "cues")
    return frozenset(row.name for row in rows if row.pattern.search(bare))


def word_count(text: str) -> int:
    """Words; of scripts without spaces three characters count as one."""
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + len(_UNSPACED.findall(text)) // 3


@lru_cache(maxsize=4_096)
def boilerplate(text: str) -> bool:
    """Nothing that could be worth keeping: too short, a question, or talk about the talk."""
    bare = without_fixed(without_interjection(plain(text))).strip(" *#:—–-")
    if bare[-1:] in "?？" or word_count(bare) < 3:
        return True
    if len(bare) < SHORTEST and not _UNSPACED.search(bare):
        return True
    return any(row.pattern.search(bare) for row in load_rows("statements", "boilerplate"))
