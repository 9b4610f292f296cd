"""The content of a memory, by the fields of its category: drafted from what people write, checked,
put into words, joined and merged. What is wrong is told by field, value and fix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from yester.errors import UsageError
from yester.fence import strip_fenced, strip_hidden
from yester.memories.categories import UNSTATED, Category, Field
from yester.redact import redact
from yester.text.terms import text_terms

Content = dict[str, Any]
_MOST = 100  # texts or records in a list
_SHOWN = 60  # characters of a wrong value in a message
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_BECAUSE = re.compile(r"[,;]?\s+because\s+", re.I)
_FLAGS: Mapping[object, bool] = {"true": True, "false": False}


def clean_text(text: str) -> str:
    """Without what hides or steers, what we injected ourselves, and secrets: in this order, since a
    character nobody sees may stand in the middle of a tag or of a key."""
    return redact(strip_fenced(strip_hidden(drop_surrogates(text)))).strip()


def drop_surrogates(text: str) -> str:
    """Without halves of characters, which have no form in a file."""
    return text.encode("utf-8", "replace").decode()


# --- drafted -------------------------------------------------------------------------------------


def draft_content(category: Category, text: str, given: Mapping[str, Any]) -> Content:
    """What a plain text says in the fields of a category, over it what was given field by field,
    under it what the category takes where nothing was said."""
    content = {one.name: one.default for one in category.fields if one.default is not None}
    text = text.strip()
    if category.lines and "\n" in text:
        text, _, rest = text.partition("\n")
        lines = [_BULLET.sub("", line).strip() for line in rest.splitlines()]
        content[category.lines] = list(filter(None, lines)) or content.get(category.lines)
    if category.because and category.because not in given:
        said, *why = _BECAUSE.split(text, maxsplit=1)
        if said and why and "\n" not in said:
            text = said
            field = category.field(category.because)
            content[category.because] = why if field and field.kind == "texts" else why[0]
    if text:
        content[category.text] = text
    return {**content, **given}


def parse_settings(category: Category, pairs: Sequence[str]) -> Content:
    """`FIELD=VALUE` as people write it on a command line; a list grows by repetition."""
    content = Content()
    for pair in pairs:
        name, sign, value = pair.partition("=")
        field = category.field(name.strip())
        if not sign or field is None or field.fields:
            simple = [one.name for one in category.fields if not one.fields]
            raise UsageError(
                f"--set {pair!r} sets nothing; write FIELD=VALUE with a field of a {category.name}:"
                f" {', '.join(simple)}"
            )
        if field.kind == "texts":
            content.setdefault(field.name, []).append(value)
        else:
            content[field.name] = parse_flag(field, value)
    return content


def parse_flag(field: Field | None, value: Any) -> Any:
    """What a form or a command line says of a field that is true or false; others as they are."""
    flag = field is not None and field.kind == "flag" and isinstance(value, str)
    return _FLAGS.get(value.lower(), value) if flag else value


# --- checked -------------------------------------------------------------------------------------


def check_content(category: Category, content: Mapping[str, Any]) -> Content:
    """The content clean and complete, in the order of the table; UsageError names what is wrong."""
    wrong: list[str] = []
    found = _check_fields(category.name, category.fields, content, wrong)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UsageError(wrong[0] + more)
    return found


def find_problems(category: Category, content: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with it, a sentence each: field, value, fix."""
    wrong: list[str] = []
    _check_fields(category.name, category.fields, content, wrong)
    return wrong


def _check_fields(
    where: str, fields: Sequence[Field], content: object, wrong: list[str]
) -> Content:
    names = ", ".join(field.name for field in fields)
    found = Content()
    if not isinstance(content, Mapping):
        wrong.append(f"{where} is {_show_value(content)}, but must hold the fields {names}")
        return found
    for name in content:
        if not any(field.name == name for field in fields):
            wrong.append(f"{where} has no field {_show_value(name)}; its fields are {names}")
    for field in fields:
        place, value = f"{where}.{field.name}", content.get(field.name)
        if value is not None:
            kept = _check_value(place, field, value, wrong)
            if kept is not None:
                found[field.name] = kept
        elif field.required:
            wrong.append(f"{place} is missing; give it {_describe_field(field)}")
    return found


def _check_value(place: str, field: Field, value: Any, wrong: list[str]) -> Any:
    """The value clean; None where there is nothing to keep."""
    if field.kind == "record":
        return _check_fields(place, field.fields, value, wrong) or None
    if not _is_of_kind(field, value):
        wrong.append(f"{place} is {_show_value(value)}, but must be {_describe_field(field)}")
        return None
    if field.kind == "text":
        text = clean_text(value)
        if not text and field.required:
            wrong.append(f"{place} is empty; give it {_describe_field(field)}")
        elif len(text) > field.most:
            wrong.append(f"{place} has {len(text):,} characters; at most {field.most:,} are kept")
        return text or None
    if field.kind == "texts":
        texts = list(filter(None, map(clean_text, value)))
        if len(texts) < field.least:
            wrong.append(f"{place} is empty; give it {_describe_field(field)}")
        elif len(texts) > _MOST:
            wrong.append(f"{place} has {len(texts)} texts; at most {_MOST} are kept")
        elif any(len(text) > field.most for text in texts):
            wrong.append(f"{place} has a text of over {field.most:,} characters; make it shorter")
        return texts if texts or field.required else None
    if field.kind == "records":
        if len(value) > _MOST:
            wrong.append(f"{place} has {len(value)} records; at most {_MOST} are kept")
            return None
        rows = enumerate(value, 1)
        return [_check_fields(f"{place}[{n}]", field.fields, one, wrong) for n, one in rows] or None
    return value


def _is_of_kind(field: Field, value: Any) -> bool:
    match field.kind:
        case "text":
            return isinstance(value, str)
        case "texts":
            return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        case "records":
            return isinstance(value, list | tuple)
        case "flag":
            return isinstance(value, bool)
    return value in field.choices


def _describe_field(field: Field) -> str:
    match field.kind:
        case "choice":
            return f"one of {', '.join(field.choices)}"
        case "flag":
            return "true or false"
        case "texts":
            return f"a list of texts (at least {field.least})" if field.least else "a list of texts"
        case "records":
            return f"a list of records of {', '.join(one.name for one in field.fields)}"
    return "a text"


def _show_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


# --- in words ------------------------------------------------------------------------------------


def lead_text(category: Category, content: Mapping[str, Any]) -> str:
    """The sentence it is about."""
    return str(content.get(category.text, ""))


def section_texts(category: Category, content: Mapping[str, Any]) -> dict[str, str]:
    """Each field as a text of its own, except the one the whole begins with."""
    return {
        field.name: text
        for field in category.fields
        if field.name != category.text
        and (text := "\n".join(_field_lines(field, content.get(field.name))))
    }


def render_content(category: Category, content: Mapping[str, Any]) -> str:
    """The whole as somebody would write it down."""
    marks = [
        str(content[field.name])
        for field in category.fields
        if field.kind == "choice" and content.get(field.name, field.default) != field.default
    ]
    if content.get("active") is False:
        marks.append("no longer")
    said = [lead_text(category, content) + (f" ({', '.join(marks)})" if marks else "")]
    for field in category.fields:
        if field.name != category.text:
            said += _labelled_lines(field, content.get(field.name))
    return "\n".join(filter(None, said))


def list_texts(category: Category, content: Mapping[str, Any]) -> list[str]:
    """Every text in it."""
    return [
        text for field in category.fields for text in _field_lines(field, content.get(field.name))
    ]


def is_same_saying(one: str, other: str) -> bool:
    """The same words in the same order, however they are spelled and ended."""
    return tuple(text_terms(one)) == tuple(text_terms(other))


def _labelled_lines(field: Field, value: Any) -> list[str]:
    if field.kind == "record":
        inner = value or {}
        return [line for one in field.fields for line in _labelled_lines(one, inner.get(one.name))]
    lines = _field_lines(field, value)
    if len(lines) == 1 and "\n" not in lines[0]:
        return [f"{field.label}: {lines[0]}"]
    return [f"{field.label}:", *(f"- {line}" for line in lines)] if lines else []


def _field_lines(field: Field, value: Any) -> list[str]:
    """What a field says, without what nobody has stated; what is one of a few words says nothing
    that could be searched for."""
    match field.kind:
        case "text":
            return [value] if value and value != UNSTATED else []
        case "texts":
            return [one for one in value or () if one != UNSTATED]
        case "records":
            rows = ([one.get(part.name) for part in field.fields] for one in value or ())
            return [": ".join(part for part in row if part and part != UNSTATED) for row in rows]
        case "record":
            inner = value or {}
            return [line for one in field.fields for line in _field_lines(one, inner.get(one.name))]
    return []


# --- two into one --------------------------------------------------------------------------------


def join_contents(
    fields: Sequence[Field], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Content:
    """The old content with what is new: lists grow, other fields take the new value where it says
    something. Nothing of a list is lost; joining twice changes nothing."""
    result = Content(old)
    for field in fields:
        value, have = new.get(field.name), old.get(field.name)
        if value is None or value in (field.default, UNSTATED):
            continue
        if field.kind in ("texts", "records") and have:
            kept = [one for one in have if one != UNSTATED]
            kept += [one for one in value if one not in kept and one != UNSTATED]
            result[field.name] = kept or have
        elif field.kind == "record" and have:
            result[field.name] = join_contents(field.fields, have, value)
        else:
            result[field.name] = value
    return result


def merge_changes(
    base: Mapping[str, Any],
    mine: Mapping[str, Any],
    theirs: Mapping[str, Any],
    *,
    overrule: bool = False,
    where: str = "",
) -> Content:
    """What both have made of the same: of lists what each has added and taken away, of the rest
    what one of them has changed. Where both have, and differ, mine counts if it is to `overrule`;
    else UsageError names it. A None of mine takes something away."""
    result = Content()
    for name in dict.fromkeys((*theirs, *mine)):
        was, own, other = base.get(name), mine.get(name), theirs.get(name)
        if own in (was, other):
            value = other
        elif isinstance(own, dict) and isinstance(other, dict):
            before = was if isinstance(was, dict) else {}
            value = merge_changes(before, own, other, overrule=overrule, where=f"{where}{name}.")
        elif overrule or other == was:
            value = own
        elif isinstance(own, list) and isinstance(other, list):
            had = was if isinstance(was, list) else []
            kept = [one for one in other if one in own or one not in had]
            value = kept + [one for one in own if one not in other and one not in had]
        else:
            raise UsageError(
                f"{where}{name} has been changed to {other!r} meanwhile, and you have written "
                f"{own!r}; decide and edit it again"
            )
        if value is not None or theirs.get(name, "") is None:  # a null that others have written
            result[name] = value
    return result
