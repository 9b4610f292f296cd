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
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any

import msgspec

from yester.errors import UsageError
from yester.fence import strip_hidden
from yester.memories import categories
from yester.model import SCOPES, Change, Memo, Paging, Project, replace
from yester.store.contract import Store
from yester.text.query import other_names
from yester.text.sentences import first_sentence, shorten_text
from yester.text.terms import text_terms

GLOBAL = Project("yester:global", "global")  # what is true everywhere belongs to no other project
# How far what was written this way is believed.
TRUST: Mapping[str, float] = {"user": 1.0, "agent": 0.5, "file": 0.5, "import": 0.3, "tool": 0.2}
_ROLES = {"user": "user", "agent": "assistant"}
_LONGEST_PATH = 400
# What a memory has besides the content of its category and may be edited.
PARTS = (
    categories.Field("title", default="", most=categories.LONGEST_TITLE),
    categories.Field("type"),
    categories.Field("tags", "texts", default=()),
    categories.Field("files", "texts", default=(), most=_LONGEST_PATH),
    categories.Field("confidence", "share", default=1.0),
    categories.Field("scope", "choice", choices=SCOPES, default="project"),
    categories.Field("path", default="", most=_LONGEST_PATH),
)
EDIT_KEYS = (*(part.name for part in PARTS), "content")
EDITABLE = ("project", *EDIT_KEYS)
Plain = dict[str, Any]


class Author(msgspec.Struct, frozen=True):
    """Who changes something, when and why. `origin` is how it came, and says what it may do."""

    who: str
    now: int
    origin: str = "user"
    why: str = ""
    # When it was written, and got its status, where it comes from; 0: now.
    updated: int = 0
    since: int = 0


# --- the plain form ------------------------------------------------------------------------------


def read_history(store: Store, item: int = 0, limit: int | None = None) -> list[Change]:
    """The history of one memory, or (0) of all, the newest first."""
    return store.entries(Change, {"item": item} if item else {}, Paging(limit))


def plain_form(memo: Memo) -> Plain:
    item = memo.item
    return {
        "project": item.project, "type": item.type, "title": item.title, "tags": list(item.tags),
        "files": list(item.files), "confidence": item.confidence, "scope": memo.scope,
        "path": memo.path, "content": msgspec.to_builtins(memo.content), "status": item.status,
        "reason": memo.reason, "supersedes": item.supersedes, "origin": item.origin,
        "said": item.epoch,
    }  # fmt: skip


def normalise_form(values: Mapping[str, Any], root: str = "") -> Plain:
    """Plain values checked and in their normal form; UsageError names the field, value and fix."""
    category = categories.get_category(str(values["type"]))
    content = category.check_content(values["content"])
    stated = {part.name: values.get(part.name, "") for part in PARTS}
    given = categories.check_fields(
        "", PARTS, {k: None if v == "" else v for k, v in stated.items()}
    )
    parts = {part.name: given.get(part.name, part.default) for part in PARTS}
    scope, path, project = parts["scope"], parts["path"], values["project"]
    if (scope == "path") != bool(path):
        raise UsageError(
            "scope path needs a path to apply to, such as src/db/** or *.sql"
            if scope == "path"
            else f"path {path!r} is for scope path, but the scope is {scope}"
        )
    if path and (path.startswith(("/", "~")) or ".." in path.split("/") or "\n" in path):
        raise UsageError(
            f"path {path!r} must be relative to the project, without .. (src/db/**, *.sql)"
        )
    if (scope == "global") != (project == GLOBAL.key):
        raise UsageError(f"scope is {scope}, but the project is {project!r}; name one of the two")
    above = f"{root.rstrip('/')}/" if root else ""
    files = (" ".join(file.split("\n")).removeprefix(above) for file in parts["files"])
    return {
        **values,
        **parts,
        "type": category.name,
        "title": " ".join(parts["title"].split()) or title_from_text(category.lead_text(content)),
        "tags": list(normalise_tags(parts["tags"])),
        "files": list(dict.fromkeys(filter(None, (file.removeprefix("./") for file in files)))),
        "confidence": round(parts["confidence"], 4),
        "path": path.removeprefix("./"),
        "content": content,
    }


def title_from_text(text: str) -> str:
    """The first sentence of a text's first line, as long as a title may be."""
    line = next(iter(text.strip().splitlines()), "").strip("# ")
    return first_sentence(line, categories.LONGEST_TITLE)


# --- the memory ----------------------------------------------------------------------------------


def make_slug(text: str) -> str:
    """A title as an id: kebab case of at most 80 characters; never empty."""
    split = unicodedata.normalize("NFKD", " ".join(text.lower().split()))
    latin = "".join(char for char in split if not unicodedata.combining(char))
    words = "-".join(re.findall(r"[a-z0-9]+", latin))
    if len(words) > categories.LONGEST_SLUG and "-" in words[: categories.LONGEST_SLUG]:
        words = words[: categories.LONGEST_SLUG].rsplit("-", 1)[0]
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return words[: categories.LONGEST_SLUG].strip("-") or f"memory-{digest}"


def shorten_reason(text: str) -> str:
    return shorten_text(categories.clean_text(text), categories.LONGEST_REASON)


def apply_form(memo: Memo, values: Mapping[str, Any], by: Author, replaces: Memo | None) -> Memo:
    """The memory with these (normal) values, as of now; `replaces` is what it supersedes."""
    content, category = values["content"], categories.category_of(values["type"])
    # A program's item need not have the form of any category.
    formless = values["type"] not in categories.CATEGORIES or not category.lead_text(content)
    body = str(content.get("text", "")) if formless else category.render_content(content)
    if replaces is not None and category.name != "rule":  # a rule that has ended is not told
        body += f"\nReplaces: {replaces.item.title}"
    origin = values["origin"]
    item = replace(
        memo.item, project=values["project"], type=values["type"], title=values["title"],
        body=body, tags=tuple(values["tags"]), files_read=tuple(values["files"]),
        files_modified=(), confidence=values["confidence"], status=values["status"],
        sections=memo.item.sections if formless else category.section_texts(content),
        supersedes=values["supersedes"], updated=by.updated or by.now, origin=origin,
        trust=TRUST.get(origin, 0.0), role=_ROLES.get(origin, ""),
        epoch=values.get("said", memo.item.epoch),
    )  # fmt: skip
    moved = values["status"] != memo.item.status or not memo.version
    return replace(
        memo, item=item, scope=values["scope"], path=values["path"], content=content,
        since=(by.since or by.now) if moved else memo.since, reason=values["reason"],
    )  # fmt: skip


# --- tags: one spelling for one thing, none left out, and the words that are already in use -------

_MOST_TAGS, LONGEST_TAG = 30, 40
_FILLED = 8  # tags that are put in where none is given
_NOT_IN_A_TAG = re.compile(r"[^\w.+#-]+|_+")
_ALIKE = 0.8
_NO_NAMES = frozenset({"index", "main", "init", "__init__", "readme", "mod", "lib"})


def normalise_tag(tag: str) -> str:
    """`Docker Compose`, `docker_compose`, `#docker-compose` are docker-compose; "" is no tag."""
    folded = unicodedata.normalize("NFKC", strip_hidden(tag)).casefold()
    plain = _NOT_IN_A_TAG.sub("-", unicodedata.normalize("NFKC", folded))
    cut = re.sub(r"-{2,}", "-", plain).lstrip("-_#")[:LONGEST_TAG]
    end = cut.rstrip("-._")
    # C# and F# end so; anything longer that does is an accident.
    return end if end.endswith("#") and len(end) <= 3 else end.rstrip("#-._")


def normalise_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order; what is written with commas is several."""
    found = (normalise_tag(part) for tag in tags for part in tag.split(","))
    return tuple(dict.fromkeys(filter(None, found)))[:_MOST_TAGS]


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
    others = [other for other in used if other not in tags]
    found = {tag: _find_alike(tag, others) for tag in tags if tag not in used}
    return {tag: alike for tag, alike in found.items() if alike}


def _find_alike(tag: str, used: Sequence[str]) -> str:
    own = tuple(text_terms(tag))
    names = {group for groups in other_names(own).values() for group in groups}
    for other in used:
        same = tuple(text_terms(other))
        if same == own or same in names:
            return other
    return next(iter(get_close_matches(tag, used, 1, _ALIKE)), "")


# --- the form an editor gets, in TOML as config.toml is ------------------------------------------


def render_edit_form(values: Mapping[str, Any], head: str) -> str:
    """The editable part of a plain form, below what may stand in it."""
    import tomlkit  # here, since only an editor's form needs it

    category = categories.category_of(values["type"])
    fields = [f"    {one.name}: {one.description}" for one in category.fields]
    lines = [*head.splitlines(), "", f"The content of a {category.name} may have:", *fields]
    comments = "\n".join(f"# {line}".rstrip() for line in lines)
    form = tomlkit.dumps({name: _toml_item(values[name]) for name in EDIT_KEYS})
    return f"{comments}\n\n{form}"


def parse_edit_form(text: str, name: str = "the text") -> Plain:
    """What was written or edited; UsageError says where it cannot be read."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} cannot be read: {error}; correct it and save again") from None
    for key in values.keys() - {*EDIT_KEYS}:
        known = ", ".join(EDIT_KEYS)
        raise UsageError(f"{name}: {key!r} is no part of a memory; they are {known}")
    if not isinstance(values.get("content", {}), dict):
        raise UsageError(f"{name}: content must be a table, [content]")
    return values


def _toml_item(value: Any) -> Any:
    """A value as people like to edit it: what has several lines stands on lines of its own."""
    import tomlkit

    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(value, multiline=True)
    if isinstance(value, Mapping):
        return {name: _toml_item(part) for name, part in value.items()}
    return [*map(_toml_item, value)] if isinstance(value, list | tuple) else value
