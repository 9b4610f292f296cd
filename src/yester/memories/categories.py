"""The categories of structured memories (tables/categories.toml), and contents by their fields:
drafted from what people write, checked, put into words, joined and merged. What is wrong is told by
field, value and fix."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from yester.errors import UsageError
from yester.fence import strip_fenced, strip_hidden
from yester.model import Hit
from yester.redact import redact
from yester.tables import load_table
from yester.text.sentences import shorten_text
from yester.text.terms import text_terms

LONGEST_TITLE, LONGEST_SLUG, LONGEST_REASON = 120, 80, 300
UNSTATED = "not stated"  # where a field must hold something and nobody has said anything
TIE = 0.01  # of the better score: hits that are so close fit equally well
_OTHER_PRIORITY = 10
_MOST = 100  # texts or records in a list
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_BECAUSE = re.compile(r"(?<!\s)[,;]?\s+because\s+", re.I)
Content = dict[str, Any]
# kind of a field → the type of its values, and what to call it
_KINDS: Mapping[str, tuple[Any, str]] = {
    "text": (str, "a text"),
    "texts": (list[str], "a list of texts"),
    "choice": (str, "one of"),
    "flag": (bool, "true or false"),
    "share": (Annotated[float, msgspec.Meta(ge=0, le=1)], "a number from 0 to 1"),
    "record": (Content, "a record of"),
    "records": (list[Any], "a list of records of"),
}


class Field(msgspec.Struct, frozen=True):
    """`kind` is one of _KINDS; a record has `fields`."""

    name: str
    kind: str = "text"
    required: bool = False
    choices: Sequence[str] = ()
    default: Any = None  # what a plain text leaves open; None: the field is left out
    label: str = ""
    least: int = 0  # texts
    most: int = 20_000  # characters of one text
    fields: Sequence[Field] = ()

    @property
    def description(self) -> str:
        names = self.choices or [one.name for one in self.fields]
        least = f" (at least {self.least})" if self.least else ""
        return f"{_KINDS[self.kind][1]} {', '.join(names)}".rstrip() + least


class Category(msgspec.Struct, frozen=True):
    """`text` is the field a plain text fills, `because` the one for what follows "because", `lines`
    the one for all lines but the first."""

    name: str
    priority: int  # the smaller one comes first among equals
    deletable: bool  # may be deleted where something new contradicts it; else it is superseded
    help: str
    text: str
    fields: Sequence[Field]
    folder: str = ""  # in the files form; "": it has none
    because: str = ""
    lines: str = ""

    def field(self, name: str) -> Field | None:
        return next((one for one in self.fields if one.name == name), None)

    @property
    def defaults(self) -> Content:
        """What a content holds where nothing was said."""
        return {one.name: one.default for one in self.fields if one.default is not None}

    def draft_content(self, text: str, given: Mapping[str, Any]) -> Content:
        """What a plain text says in these fields, over it what was given field by field, under it
        what the category takes where nothing was said."""
        content, text = self.defaults, text.strip()
        if self.lines and "\n" in text:
            text, _, rest = text.partition("\n")
            lines = [_BULLET.sub("", line).strip() for line in rest.splitlines()]
            content[self.lines] = list(filter(None, lines)) or content.get(self.lines)
        if self.because and self.because not in given:
            said, *why = _BECAUSE.split(text, maxsplit=1)
            if said and why and "\n" not in said:
                text = said
                field = self.field(self.because)
                content[self.because] = why if field and field.kind == "texts" else why[0]
        if text:
            content[self.text] = text
        return {**content, **given}

    def parse_settings(self, pairs: Sequence[str]) -> Content:
        """`FIELD=VALUE` as people write it on a command line; a list grows by repetition."""
        content = Content()
        for pair in pairs:
            name, sign, value = pair.partition("=")
            field = self.field(name.strip())
            if not sign or field is None or field.fields:
                simple = [one.name for one in self.fields if not one.fields]
                raise UsageError(
                    f"--set {pair!r} sets nothing; write FIELD=VALUE with a field of a {self.name}:"
                    f" {', '.join(simple)}"
                )
            many = field.kind == "texts"
            content[field.name] = [*content.get(field.name, ()), value] if many else value
        return content

    def check_content(self, content: Any) -> Content:
        """The content clean and complete, in the order of the table; UsageError names what is
        wrong."""
        return check_fields(self.name, self.fields, content)

    def lead_text(self, content: Mapping[str, Any]) -> str:
        """The sentence it is about."""
        return str(content.get(self.text, ""))

    def section_texts(self, content: Mapping[str, Any]) -> dict[str, str]:
        """Each field as a text of its own, except the one the whole begins with."""
        walked = _walk_lines(self.fields, content)
        return {field.name: "\n".join(lines) for field, lines in walked if field.name != self.text}

    def render_content(self, content: Mapping[str, Any]) -> str:
        """The whole as somebody would write it down."""
        marks = [
            str(content[field.name])
            for field in self.fields
            if field.kind == "choice" and content.get(field.name, field.default) != field.default
        ]
        if content.get("active") is False:
            marks.append("no longer")
        said = [self.lead_text(content) + (f" ({', '.join(marks)})" if marks else "")]
        for field, lines in _walk_lines(self.fields, content):
            if field.name == self.text:
                continue
            if len(lines) == 1 and "\n" not in lines[0]:
                said.append(f"{field.label}: {lines[0]}")
            else:
                said += [f"{field.label}:", *(f"- {line}" for line in lines)]
        return "\n".join(filter(None, said))

    def list_texts(self, content: Mapping[str, Any]) -> list[str]:
        """Every text in it."""
        return [text for _, lines in _walk_lines(self.fields, content) for text in lines]


def _make_fields(rows: Mapping[str, Mapping[str, Any]]) -> list[Field]:
    return [
        Field(name, **{**row, "fields": _make_fields(row.get("fields", {}))})
        for name, row in rows.items()
    ]


CATEGORIES: Mapping[str, Category] = {
    name: Category(name, **{**row, "fields": _make_fields(row["fields"])})
    for name, row in load_table("categories")["categories"].items()
}
_NOTE = CATEGORIES["note"]


def category_of(name: str) -> Category:
    """The row of this name; memories that a program gave another type count as notes."""
    return CATEGORIES.get(name, _NOTE)


def get_category(name: str) -> Category:
    """The category somebody has named, however it is spelled; UsageError where there is none."""
    folded = name.strip().lower().replace("-", "_")
    if folded not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        raise UsageError(f"type {name!r} is no category; the categories are {known}")
    return CATEGORIES[folded]


def category_priority(kind: str, type_: str) -> int:
    """Who comes first among equals: 1 before 10. Only memories have a category."""
    return category_of(type_).priority if kind == "memory" else _OTHER_PRIORITY


def order_hits(hits: Sequence[Hit], own: Container[int] = ()) -> list[Hit]:
    """The best first; of those within 1 % of each other what is `own` (ids: of the project that is
    asked in) before others, then decisions before constraints and so on.

    A category adds nothing to a score: it decides between hits that fit equally well, so none can
    bring in its entries by itself."""
    ranked = sorted(hits, key=lambda hit: (-hit.score, hit.id))
    ordered: list[Hit] = []
    while ranked:
        floor = ranked[0].score - TIE * abs(ranked[0].score)
        tied = [hit for hit in ranked if hit.score >= floor]
        ordered += sorted(
            tied,
            key=lambda hit: (hit.id not in own, category_priority(hit.kind, hit.type), -hit.score),
        )
        ranked = ranked[len(tied) :]
    return ordered


# --- checking ------------------------------------------------------------------------------------


def clean_text(text: str) -> str:
    """Without what hides or steers, what we injected ourselves, and secrets: in this order, since a
    character nobody sees may stand in the middle of a tag or of a key."""
    return redact(strip_fenced(strip_hidden(drop_surrogates(text)))).strip()


def drop_surrogates(text: str) -> str:
    """Without halves of characters, which have no form in a file."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def check_fields(where: str, fields: Sequence[Field], content: Any) -> Content:
    """The values of these fields, clean; UsageError names the first that is wrong."""
    names = ", ".join(field.name for field in fields)
    if not isinstance(content, Mapping):
        raise UsageError(f"{where} is {_show_value(content)}, but must hold the fields {names}")
    for name in content.keys() - {field.name for field in fields}:
        raise UsageError(f"{where} has no field {_show_value(name)}; its fields are {names}")
    found = Content()
    for field in fields:
        place, value = f"{where}.{field.name}".lstrip("."), content.get(field.name)
        if value is not None:
            found[field.name] = _check_value(place, field, value)
        elif field.required:
            raise UsageError(f"{place} is missing; give it {field.description}")
    return {name: value for name, value in found.items() if value is not None}


def _check_value(place: str, field: Field, value: Any) -> Any:
    """The value clean; None where there is nothing to keep. A flag or a number may come as a text,
    from a form or a command line."""
    try:
        kept = msgspec.convert(value, _KINDS[field.kind][0], strict=False)
    except msgspec.ValidationError:
        kept = None
    if kept is None or (field.choices and kept not in field.choices):
        raise UsageError(f"{place} is {_show_value(value)}, but must be {field.description}")
    many = field.kind in ("texts", "records")
    parts = kept if many else [kept]
    if len(parts) > _MOST:
        raise UsageError(f"{place} has {len(parts)} {field.kind}; at most {_MOST} are kept")
    if field.fields:
        places = [f"{place}[{at}]" if many else place for at in range(1, len(parts) + 1)]
        rows = zip(places, parts, strict=True)
        parts = [check_fields(at, field.fields, part) for at, part in rows]
    elif field.kind in ("text", "texts"):
        parts = list(filter(None, map(clean_text, parts)))
        longest = max(map(len, parts), default=0)
        if len(parts) < field.least or (field.kind == "text" and field.required and not parts):
            raise UsageError(f"{place} is empty; give it {field.description}")
        if longest > field.most:
            raise UsageError(f"{place} has {longest:,} characters; at most {field.most:,} are kept")
    if many:
        return parts if parts or field.required else None
    return parts[0] if parts and parts[0] not in ("", {}) else None


def _show_value(value: object) -> str:
    return shorten_text(repr(value), 60)


def is_same_saying(one: str, other: str) -> bool:
    """The same words in the same order, however they are spelled and ended."""
    return tuple(text_terms(one)) == tuple(text_terms(other))


def _walk_lines(
    fields: Sequence[Field], content: Mapping[str, Any]
) -> Iterator[tuple[Field, list[str]]]:
    """The fields that say something, those of a record in its place, without what nobody has
    stated; what is one of a few words says nothing that could be searched for."""
    for field in fields:
        value = content.get(field.name)
        if field.kind == "record":
            yield from _walk_lines(field.fields, value or {})
            continue
        rows: list[list[Any]] = []
        if field.kind in ("text", "texts"):
            rows = [[one] for one in (value if field.kind == "texts" else [value]) or ()]
        elif field.kind == "records":
            rows = [[one.get(part.name) for part in field.fields] for one in value or ()]
        lines = [": ".join(part for part in row if part and part != UNSTATED) for row in rows]
        if any(lines):
            yield field, list(filter(None, lines))


# --- two into one --------------------------------------------------------------------------------


def merge_changes(
    base: Content, mine: Content, theirs: Content, *, overrule: bool = False, where: str = ""
) -> Content:
    """What both have made of the same: of lists what each has added and taken away, of the rest
    what one of them has changed. Where both have, and differ, mine counts if it is to `overrule`;
    else UsageError names it. A None of mine takes something away.

    With what nobody has stated as the base (`Category.defaults`) it is two said one after the
    other: lists grow, and other fields take the new value where it says something."""
    result = Content()
    for name in dict.fromkeys((*theirs, *mine)):
        was, own, other = base.get(name), mine.get(name), theirs.get(name)
        if own in (was, other):
            value = other
        elif isinstance(own, dict) and isinstance(other, dict):
            before = was if isinstance(was, dict) else {}
            value = merge_changes(before, own, other, overrule=overrule, where=f"{where}{name}.")
        elif other == was:
            value = own
        elif isinstance(own, list) and isinstance(other, list):
            had = was if isinstance(was, list) else []
            kept = [one for one in other if one in own or one not in had]
            value = kept + [one for one in own if one not in other and one not in had]
        elif overrule:
            value = own
        else:
            raise UsageError(
                f"{where}{name} has been changed to {other!r} meanwhile, and you have written "
                f"{own!r}; decide and edit it again"
            )
        if value is not None:
            result[name] = value
    return result
