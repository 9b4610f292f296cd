"""A structured memory as a whole: made from plain values, and back.

The plain form is what people edit, what the history keeps and what two writers are merged by:

    project, type, title, tags, files, confidence, scope, path, content
    status, reason, supersedes, origin, said    changed by the lifecycle alone

`said` is when its words were spoken or typed: the date of a memory wherever one is shown. When the
store came to know of it is `updated`, which only its history tells.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import msgspec

from yester.errors import UsageError
from yester.memories import tags as tagging
from yester.memories.categories import (
    CATEGORIES,
    LONGEST_REASON,
    LONGEST_SLUG,
    LONGEST_TITLE,
    Category,
    category,
)
from yester.memories.content import checked, clean, known
from yester.memories.wording import lead, readable, sections
from yester.model import SCOPES, Item, Memo, Project
from yester.text.sentences import first_sentence

GLOBAL = Project("yester:global", "global")  # what is true everywhere belongs to no other project
# How far what was written this way is believed.
TRUST: Mapping[str, float] = {"user": 1.0, "agent": 0.5, "file": 0.5, "import": 0.3, "tool": 0.2}
_ROLES = {"user": "user", "agent": "assistant"}
MOST_FILES = 100
_LONGEST_PATH = 400
_NOT_IN_A_SLUG = re.compile(r"[^a-z0-9]+")

EDITABLE = ("project", "type", "title", "tags", "files", "confidence", "scope", "path", "content")
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class By:
    """Who changes something, when and why. `origin` is how it came, and says what it may do."""

    who: str
    now: int
    origin: str = "user"
    why: str = ""
    # When it was written, and got its status, where it comes from; 0: now.
    updated: int = 0
    since: int = 0

    def because(self, why: str) -> By:
        return replace(self, why=self.why or why)


def plain(memo: Memo) -> Plain:
    item = memo.item
    return {
        "project": item.project, "type": item.type, "title": item.title, "tags": list(item.tags),
        "files": list(item.files), "confidence": item.confidence, "scope": memo.scope,
        "path": memo.path, "content": msgspec.to_builtins(memo.content), "status": item.status,
        "reason": memo.reason, "supersedes": item.supersedes, "origin": item.origin,
        "said": item.epoch,
    }  # fmt: skip


def different(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Plain, Plain]:
    """What of the one became what of the other."""
    names = [name for name in after if before.get(name) != after[name]]
    return {name: before.get(name) for name in names}, {name: after[name] for name in names}


def settled(values: Mapping[str, Any], root: str = "") -> Plain:
    """Plain values checked and in their normal form; UsageError names the field, value and fix."""
    category = known(str(values["type"]))
    content = checked(category, values["content"])
    scope, path = values.get("scope") or "project", clean(str(values.get("path") or ""))
    if scope not in SCOPES:
        raise UsageError(f"scope is {scope!r}, but must be one of {', '.join(SCOPES)}")
    if (scope == "path") != bool(path):
        raise UsageError(
            "scope path needs a path to apply to, such as src/db/** or *.sql"
            if scope == "path"
            else f"path {path!r} is for scope path, but the scope is {scope}"
        )
    project = values["project"]
    if (scope == "global") != (project == GLOBAL.key):
        raise UsageError(f"scope is {scope}, but the project is {project!r}; name one of the two")
    return {
        **values,
        "type": category.name,
        "title": title(str(values.get("title") or ""), category, content),
        "tags": list(tagging.normalised(map(clean, _list("tags", values.get("tags"))))),
        "files": _files(_list("files", values.get("files")), root),
        "confidence": _confidence(values.get("confidence", 1.0)),
        "scope": scope,
        "path": _glob(path),
        "content": content,
    }


def title(given: str, category: Category, content: Mapping[str, Any]) -> str:
    """The title on one line; without one, the first sentence, cut."""
    line = " ".join(clean(given).split())
    if len(line) > LONGEST_TITLE:
        raise UsageError(
            f"title has {len(line)} characters; write at most {LONGEST_TITLE} and leave the rest "
            "to the text"
        )
    return line or title_from(lead(category, content))


def title_from(text: str) -> str:
    """The first sentence of a text's first line, as long as a title may be."""
    line = next(iter(text.strip().splitlines()), "").strip("# ")
    return first_sentence(line, LONGEST_TITLE)


def slug(text: str) -> str:
    """A title as an id: kebab case of at most 80 characters; never empty."""
    words = "-".join(filter(None, _NOT_IN_A_SLUG.split(" ".join(_latin(text)))))
    if len(words) > LONGEST_SLUG:
        words = words[:LONGEST_SLUG].rsplit("-", 1)[0] if "-" in words[:LONGEST_SLUG] else words
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return words[:LONGEST_SLUG].strip("-") or f"memory-{digest}"


def _latin(text: str) -> list[str]:
    split = unicodedata.normalize("NFKD", text.lower())
    return "".join(c for c in split if not unicodedata.combining(c)).split()


def _list(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{name} is {value!r}, but must be a list of texts")
    for one in value:
        if not isinstance(one, str):
            raise UsageError(f"{name} holds {one!r}, but must be a list of texts")
    return list(value)


def _files(paths: Sequence[str], root: str) -> list[str]:
    found = []
    for path in paths:
        one = " ".join(clean(path).split("\n"))
        if root and one.startswith(f"{root.rstrip('/')}/"):
            one = one[len(root.rstrip("/")) + 1 :]
        if len(one) > _LONGEST_PATH:
            raise UsageError(f"file {one[:40]!r}… is longer than {_LONGEST_PATH} characters")
        found.append(one.removeprefix("./"))
    known_ = list(dict.fromkeys(filter(None, found)))
    if len(known_) > MOST_FILES:
        raise UsageError(f"{len(known_)} files are too many; name at most {MOST_FILES}")
    return known_


def _glob(path: str) -> str:
    if path and (path.startswith(("/", "~")) or ".." in path.split("/") or "\n" in path):
        raise UsageError(
            f"path {path!r} must be relative to the project, without .. (src/db/**, *.sql)"
        )
    if len(path) > _LONGEST_PATH:
        raise UsageError(f"path {path[:40]!r}… is longer than {_LONGEST_PATH} characters")
    return path.removeprefix("./")


def _confidence(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # type: ignore[operator]
        raise UsageError(f"confidence is {value!r}, but must be a number from 0 to 1")
    return round(float(value), 4)  # type: ignore[arg-type]


def reason(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def applied(memo: Memo, values: Mapping[str, Any], by: By, replaces: Memo | None) -> Memo:
    """The memory with these (settled) values, as of now; `replaces` is what it supersedes."""
    content, row = values["content"], category(values["type"])
    # A program's item need not have the form of any category.
    plain_text = values["type"] not in CATEGORIES or not lead(row, content)
    body = str(content.get("text", "")) if plain_text else readable(row, content)
    if replaces is not None and row.name != "rule":  # a rule that no longer holds is not told
        body += f"\nReplaces: {replaces.item.title}"
    origin = values["origin"]
    item = replace(
        memo.item, project=values["project"], type=values["type"], title=values["title"],
        body=body, tags=tuple(values["tags"]), files_read=tuple(values["files"]),
        files_modified=(), confidence=values["confidence"], status=values["status"],
        sections=memo.item.sections if plain_text else sections(row, content),
        supersedes=values["supersedes"], updated=by.updated or by.now, origin=origin,
        trust=TRUST.get(origin, 0.0), role=_ROLES.get(origin, ""),
        epoch=values.get("said", memo.item.epoch),
    )  # fmt: skip
    moved = values["status"] != memo.item.status or not memo.version
    return replace(
        memo, item=item, scope=values["scope"], path=values["path"], content=content,
        since=(by.since or by.now) if moved else memo.since, reason=values["reason"],
    )  # fmt: skip


def less_trusted(one: str, other: str) -> str:
    """Of two origins the one that is believed less: what both have written is no better."""
    return min(one, other, key=lambda origin: TRUST.get(origin, 0.0))


def fresh(project: str, slug_: str, by: By, source: str = "", ref: str = "") -> Memo:
    """The beginning of a memory that is not stored yet."""
    item = Item(
        ref or f"memo:{project}#{slug_}", "memory", project=project, source=source, epoch=by.now,
        updated=by.now, origin=by.origin,
    )  # fmt: skip
    return Memo(item, slug_, since=by.now)
