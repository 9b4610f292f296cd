"""Tags: one spelling for one thing, none left out, and the words that are already in use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from yester.fence import strip_hidden
from yester.text.query import other_names
from yester.text.terms import text_terms

MOST, LONGEST = 30, 40
_FILLED = 8  # tags that are put in where none is given
_NOT_IN_A_TAG = re.compile(r"[^\w.+#-]+|_+")
_ALIKE = 0.8
_NO_NAMES = frozenset({"index", "main", "init", "__init__", "readme", "mod", "lib"})


def normalise_tag(tag: str) -> str:
    """`Docker Compose`, `docker_compose`, `#docker-compose` are docker-compose; "" is no tag."""
    folded = unicodedata.normalize("NFKC", strip_hidden(tag)).casefold()
    plain = _NOT_IN_A_TAG.sub("-", unicodedata.normalize("NFKC", folded))
    cut = re.sub(r"-{2,}", "-", plain).lstrip("-_#")[:LONGEST]
    end = cut.rstrip("-._")
    # C# and F# end so; anything longer that does is an accident.
    return end if end.endswith("#") and len(end) <= 3 else end.rstrip("#-._")


def normalise_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order; what is written with commas is several."""
    found = (normalise_tag(part) for tag in tags for part in tag.split(","))
    return tuple(dict.fromkeys(filter(None, found)))[:MOST]


def fill_tags(
    category: str, concepts: Sequence[str], files: Sequence[str], text: str, used: Mapping[str, int]
) -> tuple[str, ...]:
    """Tags for what came without any: its concepts, the names of its files and the tags in use that
    its text names. Only where all of these are empty, its category."""
    names = [_file_stem(path) for path in files]
    found = normalise_tags(
        (*concepts, *(n for n in names if n.lower() not in _NO_NAMES), *find_named_tags(text, used))
    )
    return found[:_FILLED] or (normalise_tag(category),)


def _file_stem(path: str) -> str:
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return name.split(".", 1)[0] or name.strip(".")


def find_named_tags(text: str, used: Mapping[str, int]) -> list[str]:
    """The tags in use that a text names, the most used first."""
    said = set(text_terms(text))
    return [tag for tag in used if (parts := set(text_terms(tag))) and parts <= said]


def suggest_tags(tags: Sequence[str], used: Mapping[str, int]) -> dict[str, str]:
    """tag → the tag in use that means the same: another spelling, a longer or a shorter form, or
    another name of the same thing."""
    found = {}
    for tag in tags:
        if tag in used:
            continue
        if alike := _find_alike(tag, [other for other in used if other not in tags]):
            found[tag] = alike
    return found


def _find_alike(tag: str, used: Sequence[str]) -> str:
    own = tuple(text_terms(tag))
    names = {group for groups in other_names(own).values() for group in groups}
    for other in used:
        same = tuple(text_terms(other))
        if same == own or same in names:
            return other
    for other in used:
        shorter, longer = sorted((tag, other), key=len)
        if len(shorter) >= 4 and longer.startswith(shorter):
            return other
    return next(iter(get_close_matches(tag, used, 1, _ALIKE)), "")
