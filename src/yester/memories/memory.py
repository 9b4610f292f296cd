"""A structured memory as a whole: made from plain values, and back.

The plain form is what people edit, what the history keeps and what two writers are merged by:

    project, type, title, tags, files, confidence, scope, path, content
    status, reason, supersedes, origin, said    changed by the lifecycle alone

`said` is when its words were spoken or typed: the date of a memory wherever one is shown. When the
store came to know of it is `updated`, which only its history tells.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from yester.errors import UsageError
from yester.memories.categories import (
    CATEGORIES,
    LONGEST_REASON,
    LONGEST_SLUG,
    LONGEST_TITLE,
    Category,
    Field,
    category_of,
    get_category,
)
from yester.memories.content import (
    check_content,
    clean_text,
    lead_text,
    render_content,
    section_texts,
)
from yester.memories.tags import normalise_tags
from yester.model import SCOPES, Item, Memo, Project, replace
from yester.text.sentences import first_sentence

GLOBAL = Project("yester:global", "global")  # what is true everywhere belongs to no other project
# How far what was written this way is believed.
TRUST: Mapping[str, float] = {"user": 1.0, "agent": 0.5, "file": 0.5, "import": 0.3, "tool": 0.2}
_ROLES = {"user": "user", "agent": "assistant"}
MOST_FILES = 100
_LONGEST_PATH = 400

EDITABLE = ("project", "type", "title", "tags", "files", "confidence", "scope", "path", "content")
EDIT_KEYS = ("title", "type", "tags", "files", "confidence", "scope", "path")  # and the content
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes something, when and why. `origin` is how it came, and says what it may do."""

    who: str
    now: int
    origin: str = "user"
    why: str = ""
    # When it was written, and got its status, where it comes from; 0: now.
    updated: int = 0
    since: int = 0

    def with_reason(self, why: str) -> Author:
        return replace(self, why=self.why or why)


# --- the plain form ------------------------------------------------------------------------------


def plain_form(memo: Memo) -> Plain:
    item = memo.item
    return {
        "project": item.project, "type": item.type, "title": item.title, "tags": list(item.tags),
        "files": list(item.files), "confidence": item.confidence, "scope": memo.scope,
        "path": memo.path, "content": msgspec.to_builtins(memo.content), "status": item.status,
        "reason": memo.reason, "supersedes": item.supersedes, "origin": item.origin,
        "said": item.epoch,
    }  # fmt: skip


def diff_forms(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Plain, Plain]:
    """What of the one became what of the other."""
    names = [name for name in after if before.get(name) != after[name]]
    return {name: before.get(name) for name in names}, {name: after[name] for name in names}


def normalise_form(values: Mapping[str, Any], root: str = "") -> Plain:
    """Plain values checked and in their normal form; UsageError names the field, value and fix."""
    category = get_category(str(values["type"]))
    content = check_content(category, values["content"])
    scope, path = values.get("scope") or "project", clean_text(str(values.get("path") or ""))
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
        "title": _check_title(str(values.get("title") or ""), category, content),
        "tags": list(normalise_tags(map(clean_text, _check_list("tags", values.get("tags"))))),
        "files": _check_files(_check_list("files", values.get("files")), root),
        "confidence": _check_confidence(values.get("confidence", 1.0)),
        "scope": scope,
        "path": _check_glob(path),
        "content": content,
    }


def _check_title(given: str, category: Category, content: Mapping[str, Any]) -> str:
    """The title on one line; without one, the first sentence, cut."""
    line = " ".join(clean_text(given).split())
    if len(line) > LONGEST_TITLE:
        raise UsageError(
            f"title has {len(line)} characters; write at most {LONGEST_TITLE} and leave the rest "
            "to the text"
        )
    return line or title_from_text(lead_text(category, content))


def title_from_text(text: str) -> str:
    """The first sentence of a text's first line, as long as a title may be."""
    line = next(iter(text.strip().splitlines()), "").strip("# ")
    return first_sentence(line, LONGEST_TITLE)


def _check_list(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{name} is {value!r}, but must be a list of texts")
    for one in value:
        if not isinstance(one, str):
            raise UsageError(f"{name} holds {one!r}, but must be a list of texts")
    return list(value)


def _check_files(paths: Sequence[str], root: str) -> list[str]:
    above = f"{root.rstrip('/')}/" if root else ""
    found = [" ".join(clean_text(path).split("\n")).removeprefix(above) for path in paths]
    kept = list(dict.fromkeys(filter(None, (path.removeprefix("./") for path in found))))
    for path in kept:
        if len(path) > _LONGEST_PATH:
            raise UsageError(f"file {path[:40]!r}… is longer than {_LONGEST_PATH} characters")
    if len(kept) > MOST_FILES:
        raise UsageError(f"{len(kept)} files are too many; name at most {MOST_FILES}")
    return kept


def _check_glob(path: str) -> str:
    if path and (path.startswith(("/", "~")) or ".." in path.split("/") or "\n" in path):
        raise UsageError(
            f"path {path!r} must be relative to the project, without .. (src/db/**, *.sql)"
        )
    if len(path) > _LONGEST_PATH:
        raise UsageError(f"path {path[:40]!r}… is longer than {_LONGEST_PATH} characters")
    return path.removeprefix("./")


def _check_confidence(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # type: ignore[operator]
        raise UsageError(f"confidence is {value!r}, but must be a number from 0 to 1")
    return round(float(value), 4)  # type: ignore[arg-type]


# --- the memory ----------------------------------------------------------------------------------


def make_slug(text: str) -> str:
    """A title as an id: kebab case of at most 80 characters; never empty."""
    split = unicodedata.normalize("NFKD", " ".join(text.lower().split()))
    latin = "".join(char for char in split if not unicodedata.combining(char))
    words = "-".join(re.findall(r"[a-z0-9]+", latin))
    if len(words) > LONGEST_SLUG and "-" in words[:LONGEST_SLUG]:
        words = words[:LONGEST_SLUG].rsplit("-", 1)[0]
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return words[:LONGEST_SLUG].strip("-") or f"memory-{digest}"


def shorten_reason(text: str) -> str:
    line = " ".join(clean_text(text).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def new_memo(project: str, slug: str, by: Author, source: str = "", ref: str = "") -> Memo:
    """The beginning of a memory that is not stored yet."""
    item = Item(
        ref or f"memo:{project}#{slug}", "memory", project=project, source=source, epoch=by.now,
        updated=by.now, origin=by.origin,
    )  # fmt: skip
    return Memo(item, slug, since=by.now)


def apply_form(memo: Memo, values: Mapping[str, Any], by: Author, replaces: Memo | None) -> Memo:
    """The memory with these (normal) values, as of now; `replaces` is what it supersedes."""
    content, category = values["content"], category_of(values["type"])
    # A program's item need not have the form of any category.
    formless = values["type"] not in CATEGORIES or not lead_text(category, content)
    body = str(content.get("text", "")) if formless else render_content(category, content)
    if replaces is not None and category.name != "rule":  # a rule that has ended is not told
        body += f"\nReplaces: {replaces.item.title}"
    origin = values["origin"]
    item = replace(
        memo.item, project=values["project"], type=values["type"], title=values["title"],
        body=body, tags=tuple(values["tags"]), files_read=tuple(values["files"]),
        files_modified=(), confidence=values["confidence"], status=values["status"],
        sections=memo.item.sections if formless else section_texts(category, content),
        supersedes=values["supersedes"], updated=by.updated or by.now, origin=origin,
        trust=TRUST.get(origin, 0.0), role=_ROLES.get(origin, ""),
        epoch=values.get("said", memo.item.epoch),
    )  # fmt: skip
    moved = values["status"] != memo.item.status or not memo.version
    return replace(
        memo, item=item, scope=values["scope"], path=values["path"], content=content,
        since=(by.since or by.now) if moved else memo.since, reason=values["reason"],
    )  # fmt: skip


def less_trusted_origin(one: str, other: str) -> str:
    """Of two origins the one that is believed less: what both have written is no better."""
    return min(one, other, key=lambda origin: TRUST.get(origin, 0.0))


# --- the form an editor gets, in TOML as config.toml is ------------------------------------------


def render_edit_form(values: Mapping[str, Any], head: str) -> str:
    """The editable part of a plain form; fields it does not have stand as comments."""
    fields, content = category_of(values["type"]).fields, values["content"]
    lines = [f"# {line}" for line in head.splitlines()] + [""]
    lines += [f"{name} = {_toml_value(values[name])}" for name in EDIT_KEYS]
    lines += ["", "[content]"]
    lines += [_toml_field(one, content.get(one.name)) for one in fields if not one.fields]
    for field in fields:
        if field.fields:
            lines += _toml_table(field, content.get(field.name))
    known = {field.name for field in fields}
    lines += [f"{_toml_value(k)} = {_toml_value(v)}" for k, v in content.items() if k not in known]
    return "\n".join(lines) + "\n"


def parse_edit_form(text: str, name: str = "the text") -> Plain:
    """What was written or edited; UsageError says where it cannot be read."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} cannot be read: {error}; correct it and save again") from None
    for key in values:
        if key not in (*EDIT_KEYS, "content"):
            known = ", ".join(EDIT_KEYS)
            raise UsageError(f"{name}: {key!r} is no part of a memory; they are {known}")
    if not isinstance(values.get("content", {}), dict):
        raise UsageError(f"{name}: content must be a table, [content]")
    return values


def _toml_field(field: Field, value: Any) -> str:
    hint = f"  # {', '.join(field.choices)}" if field.choices else ""
    if value is None:
        return f"# {field.name} = {'[]' if field.kind == 'texts' else _toml_value('')}{hint}"
    return f"{field.name} = {_toml_value(value)}{hint}"


def _toml_table(field: Field, value: Any) -> list[str]:
    many = field.kind == "records"
    head = f"[[content.{field.name}]]" if many else f"[content.{field.name}]"
    lines = []
    for record in (value if many else [value]) if value else [{}]:
        lines += ["", head if value else f"# {head}"]
        lines += [_toml_field(inner, record.get(inner.name)) for inner in field.fields]
    return lines


def _toml_value(value: Any) -> str:
    import tomlkit  # here, since only an editor's form needs it
    from tomlkit.items import Array

    if isinstance(value, str) and ("\n" in value or len(value) > 80):
        return tomlkit.string(value, multiline=True).as_string()
    item = tomlkit.item(list(value) if isinstance(value, tuple) else value)
    if isinstance(item, Array) and sum(len(str(one)) for one in value) > 60:
        item.multiline(True)
    return str(item.as_string())
