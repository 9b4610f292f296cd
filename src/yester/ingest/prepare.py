"""An item made ready for the store: without secrets and our own words, cut, hashed, expanded; and
what is not worth showing, though it is kept: noise and echoes.

The rules for noise work on what is stored, in event time, so a replay or a backfill gives the same
result.

An echo only says again, word for word, what the agent was shown. Nobody is shown it again, so
nothing that says anything else may be one: a word more, less or in another place can turn a
statement round ("Failed: …", "It is wrong that …", two ports changed over), in any language. Hence
whole sentences are compared, as they stand. A frame around a quotation makes it a new message;
where it is found, it is folded with what it is like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from yester.fence import strip_fenced
from yester.known_secrets import FoundSecrets
from yester.model import ECHO, EditedLines, Entry, Filters, Injection, Item, ToolCall, replace
from yester.redact import Known, may_hold_secrets, redact, redact_value, strip_private
from yester.spans import Span, apply_edits
from yester.store import walk_items
from yester.store.contract import Store
from yester.tables import load_table
from yester.text.document import content_hash, expand_item
from yester.text.edits import edited_lines
from yester.text.sentences import split_sentences

# Tool output longer than this is cut in the middle; the transcript keeps the rest.
HEAD_CHARS, TAIL_CHARS = 6_000, 2_000
_HUGE = 400_000  # characters; of more, only the ends are looked at
_SHORT_TEXTS = (
    "title", "subtitle", "facts", "sections", "concepts", "tags", "files_read",
    "files_modified", "tool", "type", "actor",
)  # fmt: skip
_FIELDS, _NAME = 50, 80  # of a tool's input that are told apart; characters of a field's name
SHORTEST = 50  # characters of a tool's input and output that can be worth an observation
_TOOLS = load_table("transcripts")["tool"]
SHELLS = frozenset(name for row in _TOOLS if "command" in row["input"] for name in row["names"])
# `yester recall …` in a shell prints what is stored already; so does our MCP server.
_OWN_COMMAND = re.compile(
    r"(?:^|[;&|(`])[^\S\n]{0,99}"
    r"(?:(?:\w{1,40}=\S{0,200}|env|exec|sudo|time|uvx|uv run|pipx run)\s{1,99}){0,8}"
    r"(?:\S{0,200}/)?(?:yester|python\S{0,9} -m yester)\s{1,99}[\w-]",
    re.M,
)
_OWN_TOOL = re.compile(r"mcp__(?:plugin_)?yester_", re.IGNORECASE)
_FEWEST = 24  # characters; fewer are said again by chance
_MARK = re.compile(r"\A(?:[-*•>]\s+)+")


def prepare_item(item: Item, cut: bool = True, found: FoundSecrets | None = None) -> Entry:
    """Redact, then cut (never the other way round: half a secret has no shape), hash, expand.
    Without `cut`, what was cut before stays as it is. What was `found` in the item's session goes,
    and what is found in it is told."""
    known = found.of_session(item.session) if found else None
    spans = item.call.spans if item.call else None
    whole = body = strip_fenced(item.body, spans)
    edited: Item | None = None
    if item.role == "tool":
        whole = redact(_kept_ends(body, spans) if cut else body, spans, True, known)
        if item.call and spans and item.files_modified:
            call = replace(item.call.move_to(spans), cut=item.call.cut or len(body) > _HUGE)
            changes = tuple(
                (redact(before, known=known), redact(after, known=known))
                for before, after in item.changes
            )
            edited = replace(item, body=whole, call=call, changes=changes)
        body = cut_output(whole, len(body), spans) if cut else whole
    else:
        body = whole = redact(body, spans, known=known)
    clean: dict[str, Any] = {"body": body, "changes": ()}
    short = {name: value for name in _SHORT_TEXTS if (value := getattr(item, name))}
    # A value is known to be a secret by its name.
    options = [f"{name}: {value}" for name, value in item.call.options.items()] if item.call else []
    beside = "\n".join([*_flatten_texts(short.values()), *options])
    suspect = may_hold_secrets(beside) or bool(known and known.stand_in([beside]))
    if item.call and spans is not None:
        clean["call"] = _prepare_call(item.call.move_to(spans), body is not whole, suspect, known)
    if suspect:
        clean |= {
            name: text
            for name, value in short.items()
            if (text := redact_value(value, known)) != value
        }
    item = replace(item, **clean)
    edits: tuple[EditedLines, ...] = ()
    if edited is not None:  # of all of it, not of what is kept
        edits = edited_lines(replace(edited, files_modified=item.files_modified))
    return Entry(item, content_hash(item), expand_item(item), edits=edits)


def hide_found(entry: Entry, found: FoundSecrets) -> Entry:
    """The same without what was found in its session after it was prepared."""
    known = found.of_session(entry.item.session)
    if known is None or not known.stand_in(entry.item.texts):
        return entry
    return replace(prepare_item(entry.item, cut=False, found=found), edits=entry.edits)


def spread_secrets(store: Store, found: FoundSecrets) -> int:
    """What was found in a session since the last time goes from all that is stored of it; the
    number of items that held it. Inside a transaction; when it has ended, nothing is `changed`.
    Structured memories stay: they are the user's to write."""
    number = 0
    for key in found.changed:
        known = found.of_session(key)
        if known is None:
            continue
        of_session = walk_items(store, Filters(session=key))
        held = [
            one
            for one in of_session
            if one.session == key and one.kind != "memory" and known.stand_in(one.texts)
        ]
        number += len(held)
        store.put([prepare_item(one, cut=False, found=found) for one in held])
        for session in store.sessions(Filters(session=key)):
            labels = {"title": session.title, "branch": session.branch}
            clean = redact_value(labels, known)
            if clean != labels and session.key == key:
                store.put_session(replace(session, **clean))
    return number


def _flatten_texts(values: Iterable[str | Sequence[str] | Mapping[str, str]]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        else:
            yield from value
            yield from value.values() if isinstance(value, Mapping) else ()


def _prepare_call(call: ToolCall, cut: bool, suspect: bool, known: Known | None) -> ToolCall:
    """A call whose places are right, without secrets in what it holds besides."""
    fields = tuple((_redact_name(name), a, b) for name, a, b in call.fields[:_FIELDS])
    options = call.options
    if suspect:
        pairs = [(f"{name}: ", name, value) for name, value in options.items()]
        clean = [(head, name, redact(head + value, known=known)) for head, name, value in pairs]
        options = {n: text.removeprefix(head) for head, n, text in clean if text.startswith(head)}
    cut = cut or call.cut or len(call.fields) > _FIELDS
    return replace(call, fields=fields, options=options, cut=cut)


@lru_cache(1000)
def _redact_name(name: str) -> str:
    return redact(name)[:_NAME]


def _kept_ends(text: str, spans: list[Span] | None = None) -> str:
    """Of output far longer than what is kept, the ends a secret in the kept part can reach into.

    Looking for secrets in 50 MB takes seconds. Private spans have no longest length, so they go
    first, from the whole.
    """
    if len(text) <= _HUGE:
        return text
    text = strip_private(text, spans, by_lines=True)
    if len(text) <= _HUGE:
        return text
    return apply_edits(text, [(_HUGE // 2, len(text) - _HUGE // 2, "")], spans)


def cut_output(text: str, length: int = 0, spans: list[Span] | None = None) -> str:
    """Long output with its middle left out, saying how much; `length` is what it had before."""
    left_out = max(len(text), length if len(text) >= _HUGE else 0) - HEAD_CHARS - TAIL_CHARS
    if left_out <= 0:
        return text
    note = f"\n[… {left_out:,} characters left out, see the transcript …]\n"
    return apply_edits(text, [(HEAD_CHARS, len(text) - TAIL_CHARS, note)], spans)


def is_beginning(item: Item, other: Item) -> bool:
    """Is the other the same with more behind it, as a call with its result is?"""
    return len(other.body) > len(item.body) and other.body.startswith(item.body)


# --- noise ---------------------------------------------------------------------------------------


def session_setting(hints: Mapping[str, str], name: str) -> str | None:
    """A setting that a session's environment may change, under our name or claude-mem's."""
    return hints.get(f"YESTER_{name}", hints.get(f"CLAUDE_MEM_{name}"))


def skipped_tools(hints: Mapping[str, str], default: Sequence[str]) -> frozenset[str]:
    text = session_setting(hints, "SKIP_TOOLS")
    if text is None:
        return frozenset(default)
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def batch_window(hints: Mapping[str, str], default: int) -> int:
    text = session_setting(hints, "BATCH_WINDOW_MS") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else default


def no_observation(tool: str, size: int, failed: bool, skipped: frozenset[str]) -> str:
    """Why a tool's use is not worth an observation, or "". A failure always is."""
    if failed:
        return ""
    if tool in skipped:
        return "skipped tool"
    return "short" if size < SHORTEST else ""


def is_own_answer(item: Item) -> bool:
    """Is this the use of a tool that answers with what yester knows?"""
    if item.role != "tool":
        return False
    if item.tool.lower() not in SHELLS:
        return _OWN_TOOL.match(item.tool) is not None
    given = item.call_field("command", "cmd")
    given = item.body if given is None else given
    command = given.split("\n\n", 1)[0].split("<<", 1)[0]  # without output and documents
    return _OWN_COMMAND.search(command) is not None


# --- echoes --------------------------------------------------------------------------------------


class Shown(Struct, frozen=True):
    """The sentences of what an agent was shown, and since when."""

    sentences: frozenset[str]
    epoch: int = 0

    @classmethod
    def from_text(cls, text: str, epoch: int = 0) -> Shown:
        return cls(_sentence_set(text), epoch)


def shown_texts(store: Store, session: int, key: str) -> list[Shown]:
    """What an agent was shown in a session (its row and its own id), each since when it was first.
    What was made of the session itself does not count: its words would be an echo of themselves."""
    first: dict[int, int] = {}
    for line in store.entries(Injection, {"session": session}):
        first[line.item] = min(line.epoch, first.get(line.item, line.epoch))
    return [
        Shown.from_text(_text_of_item(item), first[item.id])
        for item in store.get(list(first))
        if item.session != key
    ]


def is_repeated(text: str, shown: Iterable[Shown], epoch: int | None = None) -> bool:
    """Has every sentence of it been shown by then? None: whenever it was."""
    known = [one.sentences for one in shown if epoch is None or one.epoch <= epoch]
    if not known:
        return False
    said = _sentence_set(text)
    return sum(map(len, said)) >= _FEWEST and said <= frozenset().union(*known)


def mark_echo(entry: Entry, find_shown: Callable[[], Iterable[Shown]]) -> Entry:
    """The same as an echo, which is kept and in no index, if the agent only says again what it was
    shown in the session."""
    item = entry.item
    if not can_be_echo(item) or not is_repeated(item.body, find_shown(), item.epoch):
        return entry
    item = replace(item, status=ECHO)
    return replace(entry, item=item, hash=content_hash(item))


def can_be_echo(item: Item) -> bool:
    """Only the agent's own words can be an echo; whoever types it means it."""
    return item.role in ("assistant", "thinking")


def _text_of_item(item: Item) -> str:
    parts = (item.title, item.subtitle, item.body, *item.facts, *item.sections.values())
    return "\n".join(filter(None, parts))


def _sentence_set(text: str) -> frozenset[str]:
    """Its sentences without marks: what is distilled has none, and who repeats it may put some."""
    text = text.replace("`", "").replace("**", "")
    parts = (_MARK.sub("", " ".join(part.split())) for part in split_sentences(text))
    return frozenset(filter(None, (part.rstrip(".。 ") for part in parts)))
