"""Secrets do not get into the store: text in, the same text without them out.

What it knows is `tables/redact.toml`: tokens of well known services, key blocks, passwords in URLs,
headers, cookies and configuration, on command lines, in SQL and in sentences (in the languages that
have a row), and values assigned to a name that says secret. A value that was found goes wherever
else it stands in the same text. Colours and broken lines do not hide anything. What stands between
`<private>` and `</private>` goes as well, what the user has named, and what was found elsewhere in
the session of the text (`known_secrets`).
What it refuses to know: it asks no network, reads no environment and no file but its table, and
does not guess that a lone random string is a secret, since commit ids, digests and checksums look
the same and are worth remembering. A single word of small letters stays where a sentence calls it a
password, and so does every password that has no word for it beside it.

Each secret becomes `[redacted:NAME]`, each private span `[private]`. Neither matches a rule, so
redacting twice changes nothing.

Redact first, cut afterwards: half a key block or half a token is not recognised any more. Callers
that store only the beginning and the end of a long text redact the whole of it before they cut.

It runs on everything that is stored, so a text in which nothing can match leaves after a few scans
for literals, as the very object that came in. The table is read when the first text comes, and a
pattern compiled when a text first has one of its gates: most processes meet few kinds of secret.

Everything is bytes. Lowercasing bytes touches ASCII only and keeps every offset, so one lowercased
copy of the text serves all case-blind gates and patterns, at a sixth of the price of `str.lower`.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, groupby, islice, pairwise, takewhile
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from yester.spans import Span, apply_edits, cut_blocks
from yester.tables import load_table

Judge = Callable[["Found"], bool]
Finder = Callable[[str], list[tuple[int, int, str]]]

_SHORTEST = 8  # characters; nothing shorter holds both the sign of a secret and the secret
_MIN_RUN = 15  # token characters that follow the gate of every token
_MANY = 500  # beginnings of tokens in one text, after which all kinds are taken to be there
_MANY_GATES = 3  # that hold one word: then it is found once for all of them
_REACH = 32  # bytes; no gate is longer
_MOST_AGAIN = 500  # values of a text that are looked for elsewhere in it; a dump has more
_PASSES = 6  # a replacement may free a neighbour; only a made-up text needs more rounds

_TAG = re.compile(
    r"(?!(?<=`)<[^<>`\n]{0,40}>`)"  # not where a text speaks of it
    r"<\s{0,20}(?P<close>/)?\s{0,20}private(?:\s[^>]{0,200}+|(?P<empty>/))?>"
    r"|(?:\\u003c|&lt;|%3c)\s{0,20}(?P<close2>/)?\s{0,20}private(?:\s[^<>]{0,200}?|(?P<empty2>/))?"
    r"(?:\\u003e|&gt;|%3e)",
    re.IGNORECASE,
)
_TAG_BEGINS, _TAG_BLANKS = ("<", "\\u003c", "&lt;", "%3c"), 42


class Known(Protocol):
    """Values that were found elsewhere in the session of a text, and must not stand in it."""

    def learn(self, values: Mapping[str, str]) -> None:
        """Value → the name of its kind."""

    def find(self, text: str) -> list[tuple[int, int, str]]: ...


def redact(
    text: str,
    spans: list[Span] | None = None,
    by_lines: bool = False,
    known: Known | None = None,
) -> str:
    """The text without private spans and without secrets; the same object if it had neither.
    `by_lines`: a private span that nobody closes ends with its line.
    `spans` are places in it that are to stay right."""
    if len(text) < _SHORTEST and not _named:
        return text
    raw = _encode_text(text)
    folded = raw.lower()
    if (stripped := _strip_private(text, folded, spans, by_lines)) is not text:
        text, raw, folded = stripped, b"", b""
    for _ in range(_PASSES):
        if not raw:
            raw = _encode_text(text)
            folded = raw.lower()
        found = _find_in(text, raw, folded)
        if _hides_something(raw):
            found = _unite_places(found + _find_hidden(text))
        if _MARK in raw:
            found = _spare_marks(text, found)
        found = found or find_named(text) or (known.find(text) if known else [])
        if not found:
            break
        found = _find_again(text, found, known)
        edits = [(start, end, f"[redacted:{name}]") for start, end, name in found]
        text, raw = apply_edits(text, edits, spans), b""
    return text


_PLACEHOLDER = re.compile(r"\[redacted:[\w-]{1,60}\]")


def _spare_marks(text: str, found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """What was found, without parts of what has taken the place of a secret: "[redacted:password]"
    looks like a name, a colon and a password."""
    marks = [m.span() for m in _PLACEHOLDER.finditer(text)]
    spared = []
    for start, end, name in found:
        start = max([start, *(last for first, last in marks if first < start < last)])
        end = min([end, *(first for first, last in marks if first < end < last)])
        if start < end:
            spared.append((start, end, name))
    return spared


_clean: set[int] = set()
_MOST_CLEAN = 20_000


def redact_again(text: str) -> str:
    """The same for what is stored and shown again and again: a text in which the rules have found
    nothing is looked through once in a process, and afterwards only for what the user has named."""
    if (mark := hash(text)) in _clean and not find_named(text):
        return text
    redacted = redact(text)
    if redacted is text:
        if len(_clean) >= _MOST_CLEAN:
            _clean.clear()
        _clean.add(mark)
    return redacted


# What stands in a text for a terminal, a shell, a compiler or a parser: colours, the end of a line
# that goes on, a text in two pieces, a letter by its number.
_BREAKS = re.compile(
    r"[\x1b\\\"'](?:(?<=\x1b)\[[0-9;:?]{0,40}[A-Za-z]"
    r"|(?<=\\)(?:(?P<goes_on>\r?\n[ \t]{0,40})"
    r"|\\?[uU](?P<code>(?!00[01]|[dD][89a-fA-F])[0-9a-fA-F]{4}))"
    r"|(?<=\")(?:[ ]?\+\s{0,40}|[ \t]{0,8}\r?\n\s{0,40})\""
    r"|(?<=')(?:[ ]?\+\s{0,40}|[ \t]{0,8}\r?\n\s{0,40})')"
    r"|%(?P<byte>[2-7][0-9A-Fa-f])|&(?:#(?P<number>[0-9]{2,3})|#[xX](?P<digits>[2-7][0-9A-Fa-f])|quot);"
)
_ESCAPED = (b"%3A", b"%3D", b"%3a", b"%3d", b"%22")  # what stands between a name and its value
_GOES_ON = re.compile(
    rb"""["'][ \t]{0,8}\+?[ \t]{0,8}\r?\n[ \t]{0,40}["']"""
)  # a text in two lines
_BLANKS = 8  # before the end of a line that goes on


def _hides_something(raw: bytes) -> bool:
    """A character alone is found at memory speed, so it is looked for first."""
    return (
        (b"\x1b" in raw and b"\x1b[" in raw)
        or (b"\\" in raw and (b"\\\n" in raw or b"\\\r" in raw or b"\\u" in raw))
        or (b"+" in raw and (b'" + "' in raw or b"' + '" in raw))
        or _GOES_ON.search(raw) is not None
        or (b"%" in raw and any(one in raw for one in _ESCAPED))
        or (b"&" in raw and (b"&quot;" in raw or b"&#" in raw))
    )


def _find_hidden(text: str) -> list[tuple[int, int, str]]:
    """Where secrets are that are seen only in the text as it is meant."""
    edits: list[tuple[int, int, str]] = []
    for m in _BREAKS.finditer(text):
        start, end = m.span()
        code = m["code"] or m["byte"] or m["digits"]
        new = (
            chr(int(m["number"] or code, 10 if m["number"] else 16)) if m["number"] or code else ""
        )
        if m[0] == "&quot;":
            new = '"'
        if m["goes_on"]:
            reached = edits[-1][1] if edits else 0
            new, before = " ", text[max(reached, start - _BLANKS) : start]
            start -= len(before) - len(before.rstrip(" \t"))
        edits.append((start, end, new))
    found = find_secrets(apply_edits(text, edits, None)) if edits else []
    place = _place_before(edits)
    return [(place(start), place(end, end=True), name) for start, end, name in found]


def _place_before(edits: Sequence[tuple[int, int, str]]) -> Callable[..., int]:
    """Tells where a place of the edited text is in the text as it was."""
    begins: list[int] = []  # of what each edit has written
    shift = 0
    for start, stop, new in edits:
        begins.append(start + shift)
        shift += len(new) - (stop - start)

    def place_before(place: int, end: bool = False) -> int:
        at = (bisect_left if end else bisect_right)(begins, place) - 1
        if at < 0:
            return place
        start, stop, new = edits[at]
        behind = place - begins[at] - len(new)
        return stop + behind if behind >= 0 else stop if end else start

    return place_before


def _unite_places(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order and disjoint; where two overlap, all of it goes by the name of the first."""
    united: list[tuple[int, int, str]] = []
    for start, end, name in sorted(found):
        if united and start < united[-1][1]:
            first, last, known = united.pop()
            united.append((first, max(end, last), known))
        else:
            united.append((start, end, name))
    return united


def _find_again(
    text: str, found: list[tuple[int, int, str]], known: Known | None
) -> list[tuple[int, int, str]]:
    """What was found, and the same values wherever else they stand: a password is named once and
    used three lines below. Not one that may be a word of the text, a name or a number in it."""
    kinds = {text[start:end]: name for start, end, name in found if end - start >= _SHORTEST}
    if known:  # everything in a session, not this text alone
        kinds = {one: name for one, name in kinds.items() if _is_telling(_encode_text(one))}
        known.learn(kinds)
    # In a URL it was written otherwise.
    meant = {unquote(one): name for one, name in kinds.items() if "%" in one}
    kinds |= meant
    values = [
        one for one in islice(kinds, _MOST_AGAIN)
        if text.count(one) > (one not in meant) and _is_telling(_encode_text(one))
    ]  # fmt: skip
    again = [(at, at + len(one), kinds[one]) for one in values for at in find_all(text, one)]
    return _unite_places(found + again) if again else found


def find_all(text: str, value: str) -> Iterator[int]:
    """Where it stands in the text."""
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + len(value))


def _is_telling(value: bytes) -> bool:
    """Letters of both cases with digits, or what a machine has drawn: no word, no path, no name."""
    kinds = [re.search(kind, value) is not None for kind in (rb"[a-z]", rb"[A-Z]", rb"[0-9]")]
    if _has_shape("algorithm", value):
        return False
    if _has_shape("no_password", value):
        return _is_drawn(value)
    return all(kinds) or (kinds[2] and sum(kinds) > 1 and looks_random(value * 2))


def _is_drawn(value: bytes) -> bool:
    """Letters of both cases and digits, in no order that words have: it may look like a file, a
    member or a path, and is none."""
    kinds = (re.search(kind, value) for kind in (rb"[a-z]", rb"[A-Z]", rb"[0-9]"))
    return all(kinds) and len(_LETTERS.findall(value)) > 3 and looks_random(value, 8, share=0.3)


def may_hold_secrets(text: str) -> bool:
    """Is there any sign of a secret or of a private span? Where not, none is in any part of it,
    either: several texts are passed with one look."""
    if len(text) < _SHORTEST and not _named:
        return False
    raw = _encode_text(text)
    folded = raw.lower()
    if _named or b"private" in folded or _hides_something(raw):
        return True
    return bool(_find_awake_rules(raw, folded))


# What finds the secrets that the user has named, by the home that knows them. Whoever opens a store
# adds those of its home: this runs where no home is known, and too much is better than too little.
_named: dict[str, Finder] = {}


def use_named_secrets(home: str, find: Finder) -> None:
    """What the user has named in a home is a secret from now on, in all of this process."""
    _named[home] = find


def find_named(text: str) -> list[tuple[int, int, str]]:
    """Where secrets are that the user has named."""
    return next((found for find in _named.values() if (found := find(text))), [])


def redact_value(value: Any, known: Known | None = None) -> Any:
    """Plain data whose texts are without secrets."""
    return change_texts(value, lambda text: redact(text, known=known))


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Plain data with all its texts changed, those that are keys as well."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        pairs = value.items()
        return {change_texts(name, change): change_texts(part, change) for name, part in pairs}
    if isinstance(value, list | tuple):
        return type(value)(change_texts(part, change) for part in value)
    return value


def strip_private(text: str, spans: list[Span] | None = None, by_lines: bool = False) -> str:
    """The text without its `<private>` spans; each leaves `[private]` behind."""
    return _strip_private(text, _encode_text(text).lower(), spans, by_lines)


def _strip_private(text: str, folded: bytes, spans: list[Span] | None, by_lines: bool) -> str:
    at = folded.find(b"private")
    while at >= 0:
        before = folded[max(0, at - 4 * _TAG_BLANKS) : at].decode("utf-8", "ignore").rstrip()
        if before.removesuffix("/").rstrip().endswith(_TAG_BEGINS):
            return cut_blocks(text, _TAG, "[private]", spans, by_lines)
        at = folded.find(b"private", at + 1)
    return text


def find_secrets(text: str) -> list[tuple[int, int, str]]:
    """Where the secrets of a text are and of what kind: (start, end, name), in order, disjoint.

    Private spans are not looked at: strip them first.
    """
    raw = _encode_text(text)
    return _find_in(text, raw, raw.lower())


def secret_kinds(text: str) -> list[str]:
    """Of what kind each secret of a text is, also of those that the user has named."""
    return [name for _, _, name in (*find_secrets(text), *find_named(text))]


def _find_in(text: str, raw: bytes, folded: bytes) -> list[tuple[int, int, str]]:
    awake = _find_awake_rules(raw, folded)
    found = _merge_matches(raw, folded, awake) if awake else []
    if not found or len(raw) == len(text):
        return found
    in_characters = []
    at = reached = 0
    for start, end, name in found:
        begin = reached + len(raw[at:start].decode("utf-8", "surrogatepass"))
        at, reached = end, begin + len(raw[start:end].decode("utf-8", "surrogatepass"))
        in_characters.append((begin, reached, name))
    return in_characters


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# --- the table --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rule:
    """One kind of secret: a row of the table, whose head says what the fields mean."""

    place: int
    is_token: bool
    name: str
    pattern: str
    examples: Sequence[str]
    near_misses: Sequence[str] = ()
    prefix: Sequence[str] = ()
    gate: Sequence[str] = ()
    after: Sequence[str] = ()
    ignore_case: bool = False
    around: bool = False
    quoted: bool = False
    columns: bool = False
    judge: str = ""

    @property
    def gates(self) -> list[bytes]:
        return [gate.encode() for gate in self.gate or self.prefix]

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        own = {
            "prefix": f"(?:{'|'.join(map(_match_beginning, self.prefix))})",
            "after": _match_qualifiers(self.gates[0].decode(), self.after),
            "gates": "|".join(map(re.escape, self.gate)),
        }
        return _compile_pattern(self.pattern, own)

    @cached_property
    def accepts(self) -> Judge | None:
        """The last word on a match; None accepts every match."""
        return _JUDGES[self.judge] if self.judge else None


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules in the order of the table; the earlier one gives its name to what two match."""
    table = load_table("redact")
    rows = [(family == "token", row) for family in ("token", "context") for row in table[family]]
    return tuple(Rule(place, is_token, **row) for place, (is_token, row) in enumerate(rows))


@cache
def _load_words(name: str) -> frozenset[bytes]:
    return frozenset(load_table("redact")["words"][name].encode().split())


def fill_pieces(text: str, own: dict[str, str] | None = None) -> str:
    """The text with each «NAME» and «NAME:SIZE» in it replaced by that piece of the table."""
    pieces = load_table("redact")["pieces"] | (own or {})

    def fill(m: re.Match[str]) -> str:
        piece = fill_pieces(pieces[m[1]])
        return (piece * int(m[2]))[: int(m[2])] if m[2] else piece

    return re.sub(r"«(\w+)(?::(\d+))?»", fill, text)


def _compile_pattern(source: str, own: dict[str, str] | None = None) -> re.Pattern[bytes]:
    return re.compile(fill_pieces(source, own).replace("\n", "").encode())


def _match_beginning(prefix: str) -> str:
    r"""A pattern for `prefix` where a token may begin: not after a letter or digit, unless it ends
    an escape (\n in JSON, %3D in a URL, \u0022, the colour codes of a terminal).

    The prefix comes first and is looked back at: the engine can search for it as a literal.
    """
    head = re.escape(prefix)
    escapes = (r"\\[nrtbf]", r"%[0-9A-Fa-f]{2}", r"\\u00[0-9a-f]{2}", r"[\[;0-9][0-9]m")
    behind = "|".join(f"(?<={escape}{head})" for escape in escapes)
    return f"{head}(?:(?<![A-Za-z0-9]{head})|{behind})"


def _match_qualifiers(word: str, qualifiers: Iterable[str]) -> str:
    """A pattern that looks back at `word` and wants one of the qualifiers right before it.

    The word comes first in the whole pattern, where the engine can search for it as a literal.
    """
    behind = [
        f"(?<=(?:{'|'.join(same_size)}){gap}{word})"
        for same_size in _group_by_size(qualifiers)
        for gap in ("", r"[_\-. ]")
    ]
    return f"(?:{'|'.join(behind)})"


def _group_by_size(words: Iterable[str]) -> list[list[str]]:
    """Words of one length together: what the engine looks back at must have one width."""
    return [list(same) for _, same in groupby(sorted(words, key=len), len)]


# --- which rules can match at all -------------------------------------------------------------


class _Gates(NamedTuple):
    """What is looked for before any pattern runs, with the rules that wait for it."""

    tokens: re.Pattern[bytes]
    rules_by_head: dict[bytes, list[Rule]]
    head_sizes: list[int]
    searches: list[_Search]
    ascii_searches: list[_Search]  # those of them that a text in ASCII can match


_Search = tuple[Callable[[bytes], re.Match[bytes] | None], list["_Waiting"]]


class _Waiting(NamedTuple):
    """The gates that hold a word, and their rules."""

    word: bytes
    gates: list[tuple[bytes, frozenset[Rule]]]


@cache
def _load_gates() -> _Gates:
    by_head: dict[bytes, list[Rule]] = {}
    by_gate: dict[bytes, list[Rule]] = {}
    searches, in_ascii = list[_Search](), list[_Search]()
    for rule in load_rules():
        if rule.around:
            _add_words_search(rule, searches, in_ascii)
            continue
        for gate in rule.gates:
            if rule.is_token:
                # Up to the last character that is rare in text, which small letters are not.
                gate = gate.rstrip(b"abcdefghijklmnopqrstuvwxyz")
            (by_head if rule.is_token else by_gate).setdefault(gate, []).append(rule)
    for row in load_table("redact")["search"]:
        left = {gate: frozenset(rules) for gate, rules in by_gate.items()}
        waiting = []
        for word in (word.encode() for word in row["words"]):
            gates = [(gate, left.pop(gate)) for gate in list(left) if word in gate]
            waiting.append(_Waiting(word, gates))
        searches.append((_compile_pattern(row["pattern"]).search, waiting))
        in_ascii.append(searches[-1])
    sizes = sorted({len(head) for head in by_head})
    return _Gates(_compile_token_search(by_head), by_head, sizes, searches, in_ascii)


def _add_words_search(rule: Rule, searches: list[_Search], in_ascii: list[_Search]) -> None:
    """What wakes a rule of sentences: any of its words. A text in ASCII holds few of them."""
    for found, words in ((searches, rule.gates), (in_ascii, [*filter(bytes.isascii, rule.gates)])):
        waiting = _Waiting(b"", [(word, frozenset({rule})) for word in words])
        found.append((re.compile(b"|".join(map(re.escape, words))).search, [waiting]))


def _compile_token_search(heads: Iterable[bytes]) -> re.Pattern[bytes]:
    """One search for the gates of all tokens.

    It looks for the last character of a head, then for the run that must follow, and for the whole
    head only then, when it hardly ever comes to that.
    """
    texts = sorted(head.decode() for head in heads)
    last = re.escape("".join(sorted({text[-1] for text in texts})))
    behind = "|".join(f"(?<={'|'.join(map(re.escape, same))})" for same in _group_by_size(texts))
    run = f"[A-Za-z0-9_.~+/%\\-]{{{_MIN_RUN}}}"
    return re.compile(f"[{last}](?={run})(?:{behind})".encode())


def _find_awake_rules(raw: bytes, folded: bytes) -> list[Rule]:
    """The rules of which a gate is in the text, in the order of the table."""
    gates = _load_gates()
    awake: set[Rule] = set()
    for search, waiting in gates.ascii_searches if raw.isascii() else gates.searches:
        if search(folded) is None:
            continue
        for word, waiting_gates in waiting:
            near = _cut_around(folded, word) if len(waiting_gates) >= _MANY_GATES else folded
            for gate, rules in waiting_gates:
                if not rules <= awake and gate in near:
                    awake.update(rules)
    for seen, m in enumerate(gates.tokens.finditer(raw)):
        if seen == _MANY:
            awake.update(*gates.rules_by_head.values())
            break
        for size in gates.head_sizes:
            awake.update(gates.rules_by_head.get(raw[m.end() - size : m.end()], ()))
    return sorted(awake, key=lambda rule: rule.place) if awake else []


def _cut_around(folded: bytes, word: bytes) -> bytes:
    """What stands around a word, wherever it does: all that a gate which holds it can reach."""
    pieces = []
    at = folded.find(word)
    while at >= 0:
        pieces.append(folded[max(0, at - _REACH) : at + 2 * _REACH])
        at = folded.find(word, at + _REACH)
    return b"\n".join(pieces)


# --- what they match --------------------------------------------------------------------------


def _merge_matches(raw: bytes, folded: bytes, rules: list[Rule]) -> list[tuple[int, int, str]]:
    """The secrets, in order and disjoint; where matches overlap, all of it goes by one name."""
    found = sorted(
        (start, end, (rule.place, rule.name))
        for rule in rules
        for start, end in _find_matches(rule, raw, folded if rule.ignore_case else raw)
    )
    merged: list[tuple[int, int, tuple[int, str]]] = []
    for start, end, kind in found:
        if merged and start < merged[-1][1]:
            first, last, known = merged.pop()
            merged.append((first, max(end, last), min(kind, known)))
        else:
            merged.append((start, end, kind))
    return [(start, end, name) for start, end, (_, name) in merged]


def _find_matches(rule: Rule, raw: bytes, searched: bytes) -> Iterator[tuple[int, int]]:
    if rule.around or rule.quoted or rule.columns:
        find = _find_around if rule.around else _find_quoted if rule.quoted else _find_in_columns
        yield from find(rule, raw, searched)
        return
    pattern, accepts = rule.compiled, rule.accepts
    group = _secret_group(pattern)
    position = again = 0
    while (m := pattern.search(searched, position)) is not None:
        start, end = m.span(group)
        position = m.end()
        if accepts is None or accepts(Found(raw, m)):
            yield _widen_to_characters(raw, start, end)
        elif group and again <= len(raw):
            # What was turned down may have begun too early: look inside it as well, but not so
            # often that a text of nothing but beginnings takes quadratic time.
            again += position - start
            position = start


# What stands in a sentence with a word for a secret may be the secret: what is written without a
# space, in signs of ASCII, without the marks around it.
_WRITTEN = re.compile(rb"(?P<secret>[!#-&(-\[\]-_a-{}~]{6,256})")
_MARKS_BEFORE = re.compile(rb"""(?:\S{0,200}[?&]\w{1,20}=)?["'`*(\[{<,;:=]*""")
_MARKS_BEHIND = b"\"'`*)]}>([{.,;:!?"
_AFTER, _BEFORE = 120, 60  # bytes
_MARK = b"[redacted:"
_PHRASE = re.compile(
    rb"""[^"'`{}\[\],;=\n\xab\x98-\x9e]{0,60}+(?:["'`]|\xc2\xab|\xe2\x80[\x98\x9a\x9c\x9e])"""
    rb"""(?P<secret>[a-z]{3,24}(?: [a-z]{3,24}){1,7})(?:["'`]|\xc2\xbb|\xe2\x80[\x98-\x9d])"""
)


def _written_before(raw: bytes, at: int, stop: int) -> Iterator[re.Match[bytes]]:
    """What begins before `stop`, to its end."""
    return takewhile(lambda m: m.start() < stop, _WRITTEN.finditer(raw, at, stop + 256))


def _find_around(rule: Rule, raw: bytes, searched: bytes) -> Iterator[tuple[int, int]]:
    """What is told beside each word: the next thing after it in its line that may be a secret, the
    last before it where that is nearer or there is none, and passphrases in quotation marks. No
    further than the next word, so that every place is looked at twice."""
    words = [m.span() for m in rule.compiled.finditer(searched) if not _is_in_mark(raw, m.start())]
    judge = rule.accepts or judge_chosen
    for (_, before), (start, end), (after, _) in zip(
        [(0, 0), *words], words, [*words[1:], (len(raw), 0)], strict=False
    ):
        stop = raw.find(b"\n", end, last := min(after, end + _AFTER))
        first = max(raw.rfind(b"\n", 0, start) + 1, before, start - _BEFORE)
        while first > before and raw[first - 1] > 32 and start - first < 4 * _BEFORE:
            first -= 1  # no half of anything
        behind = _written_before(raw, end, stop if stop >= 0 else last + _REACH)
        ahead = reversed(list(_WRITTEN.finditer(raw, first, start)))
        next_one = next((one for m in behind if judge(one := Told(raw, m))), None)
        if raw.endswith(_MARK, first, start):
            ahead = iter(())  # what has taken the place of a secret tells of nothing before it
        last_one = next((one for m in ahead if judge(one := Told(raw, m))), None)
        if next_one:
            yield next_one.start, next_one.end
        if last_one and (not next_one or start - last_one.end < next_one.start - end):
            yield last_one.start, last_one.end
        while (
            judge is judge_told and (m := _PHRASE.match(raw, end, last)) and _is_phrase(m["secret"])
        ):
            yield m.span("secret")
            end = m.end()


def _is_in_mark(raw: bytes, at: int) -> bool:
    """Is this a part of what has taken the place of a secret? Its kind may be "…-password"."""
    begin = raw.rfind(_MARK, max(at - _BEFORE, 0), at)
    return begin >= 0 and raw.find(b"]", begin, at) < 0


_QUOTED = re.compile(
    rb"""(?P<quote>\\{0,7}["'`])(?P<secret>(?:(?!(?P=quote))[^\n]){0,256})(?P=quote)"""
)
_CALL = 240  # bytes


def _find_quoted(rule: Rule, raw: bytes, searched: bytes) -> Iterator[tuple[int, int]]:
    """What stands in quotation marks behind the beginning of a call or a list, in its line."""
    judge, reached = rule.accepts or judge_password_argument, 0
    for begin in rule.compiled.finditer(searched):
        stop = raw.find(b"\n", begin.end(), begin.end() + _CALL)
        stop = stop if stop >= 0 else begin.end() + _CALL
        for m in _QUOTED.finditer(raw, max(begin.end(), reached), stop):
            reached = m.end()
            if judge(found := Found(raw, m)):
                yield found.start, found.end


# A row of names, and the rows of values below it: of a statement, drawn with bars, with commas.
_INTO = re.compile(
    rb"insert\s{1,8}(?:ignore\s)?into\s{1,8}[^\s(]{1,80}\s{0,8}\((?P<names>[^()]{1,2000})\)"
    rb"\s{0,20}values\s{0,20}(?=\()"
)
_ROW = re.compile(rb"\s{0,40},?\s{0,40}\(")
_VALUE = re.compile(
    rb"(?<=[(,])\s{0,40}(?P<cell>'(?:[^'\\]|\\.|'')*+'|(?:[^'(),]|\([^()]*\))*+)\s{0,40}[,)]"
)
_CELL = re.compile(rb"""[\s'"`*]{0,80}+(?P<secret>[^\s'"`*]{4,200})[\s'"`*]{0,80}""")
_NAME = re.compile(rb"""[\s'"`*\[]{0,40}+[\w .\-]{1,60}[\s'"`*\]]{0,40}""")
_DRAWN = re.compile(rb"[\s|+:=0-9\xe2\x86\x92\-]*+")  # a line between names and values
_LINE_END = re.compile(rb"\r?\n|\\{1,4}n")
_LONGEST_HEAD = 2_000
_Row = list[tuple[int, int]]


def _find_in_columns(rule: Rule, raw: bytes, searched: bytes) -> Iterator[tuple[int, int]]:
    judge, reached = rule.accepts or judge_cell, 0
    for word in rule.compiled.finditer(searched):
        at = word.start()
        if at < reached:
            continue
        first = searched.rfind(b"insert", max(0, at - _LONGEST_HEAD), at)
        into = _INTO.match(searched, first) if first >= 0 else None
        if into and into.start("names") <= at < into.end("names"):
            names, reached = into["names"].split(b","), into.end()
            rows = _rows_of_values(raw, reached)
        else:
            first = max(0, at - _LONGEST_HEAD)
            begin = max((m.end() for m in _LINE_END.finditer(raw, first, at)), default=first)
            end = _LINE_END.search(raw, at, at + _LONGEST_HEAD)
            reached = end.end() if end else at + _LONGEST_HEAD
            if not end:
                continue
            line = searched[begin : end.start()]
            mark = b"|" if b"|" in line else b","
            names = line.split(mark)
            rows = _rows_of_lines(raw, reached, mark, len(names))
        wanted = [n for n, name in enumerate(names) if _is_named(rule, name)]
        if not wanted or len(names) < 2 or not all(map(_NAME.fullmatch, names[1:-1])):
            continue
        for row in rows:
            if any(_is_named(rule, searched[slice(*row[n])]) for n in wanted if n < len(row)):
                break  # the names of another table
            reached = row[-1][1]
            for start, stop in (row[n] for n in wanted if n < len(row)):
                cell = _CELL.fullmatch(raw, start, stop)
                if cell and judge(found := Found(raw, cell)):
                    yield found.start, found.end


def _is_named(rule: Rule, name: bytes) -> bool:
    bare = name.strip(b" \t\r\n`'\"*[]")
    word = rule.compiled.search(bare)
    return word is not None and word.end() == len(bare)


def _rows_of_values(raw: bytes, at: int) -> Iterator[_Row]:
    while (begin := _ROW.match(raw, at)) is not None:
        row, at = _Row(), begin.end()
        while (value := _VALUE.match(raw, at)) is not None:
            row.append(value.span("cell"))
            at = value.end()
            if raw[at - 1 : at] == b")":
                break
        if value is None:
            return
        yield row


def _rows_of_lines(raw: bytes, at: int, mark: bytes, size: int) -> Iterator[_Row]:
    """Those of the lines that have as many cells as their head."""
    while at < len(raw):
        end = _LINE_END.search(raw, at)
        stop = end.start() if end else len(raw)
        if not _DRAWN.fullmatch(raw, at, stop):
            cells = raw[at:stop].split(mark, size)
            if len(cells) != size:
                return
            places = accumulate((len(one) + 1 for one in cells), initial=at)
            yield [(place, place + len(one)) for place, one in zip(places, cells, strict=False)]
        at = end.end() if end else stop


def _secret_group(pattern: re.Pattern[bytes]) -> str | int:
    return "secret" if "secret" in pattern.groupindex else 0


def _widen_to_characters(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """A bounded repetition may stop within a character of several bytes."""
    while start and raw[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(raw) and raw[end] & 0xC0 == 0x80:
        end += 1
    return start, end


# --- judges: what a value looks like ----------------------------------------------------------

_WORD = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+")
_DIGIT = re.compile(rb"[0-9]")
_LETTERS = re.compile(rb"[A-Za-z](?=[A-Za-z])")  # that another follows


@cache
def _load_shape(name: str) -> re.Pattern[bytes]:
    return _compile_pattern(load_table("redact")["shapes"][name])


def _has_shape(name: str, value: bytes) -> bool:
    return _load_shape(name).search(value) is not None


def shannon_entropy(value: bytes) -> float:
    """Shannon entropy in bits per byte: words below 3.3, hex below 4, long base64 4.5 to 6."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def _is_placeholder(value: bytes) -> bool:
    """True if the value says itself that it is no secret: a reference, a mask, a stand-in."""
    low = value.strip(b".,:;?\"'`-_ ").lower()
    if len(low) < 4 or len(set(low)) < 3 or low in _load_words("bare_words"):
        return True
    if _has_shape("stand_in", low):
        return True
    if _has_shape("reference", value):
        return not (value[:1] == b"/" and len(value) > 31 and _is_drawn(value))
    words = {word.lower() for word in _WORD.findall(value)}
    if not words.isdisjoint(_load_words("stand_ins")):
        return True
    return not _DIGIT.search(value) and not words.isdisjoint(_load_words("samples"))


def _is_phrase(value: bytes) -> bool:
    """Some words as people choose them for a passphrase, and no sentence about one."""
    words = value.split(b" ")
    return (
        1 < len(words) < 9
        and all(_has_shape("chosen_word", word) for word in words)
        and _load_words("said").isdisjoint(words)
    )


def _names_a_field(value: bytes) -> bool:
    """True for "client_secret" and "passwordField": the name of a thing, not the thing."""
    words = [word.lower() for word in _WORD.findall(value)]
    return len(words) > 1 and _load_words("field_words").issuperset(words)


def looks_random(
    value: bytes, size: int = 16, bits: float = 2.7, share: float | None = None
) -> bool:
    """True for text drawn by a machine: long enough, mixed, and not made of words. `share`: of the
    pairs of letters that words are made of."""
    value = value[:512]
    digits = _DIGIT.search(value) is not None
    letters = bytes(c for c in value if c > 64)
    if len(value) < size or len(letters) < 3 or shannon_entropy(value) < bits:
        return False
    if not digits and (letters.islower() or letters.isupper()):
        return False
    if digits and _has_shape("hex_digits", value):
        return True
    common = _load_words("letter_pairs")
    pairs = [pair for pair in map(bytes, pairwise(value)) if pair.isalpha()]
    # A capital after a small letter begins another word.
    known = sum(pair.lower() in common for pair in pairs if not (pair[0] > 96 > pair[1]))
    return len(pairs) < 4 or known <= len(pairs) * (share or (0.4 if digits else 0.33))


# --- judges: what a match means ---------------------------------------------------------------


class Found:
    """What a pattern has matched, in the text's own case."""

    def __init__(self, raw: bytes, match: re.Match[bytes]) -> None:
        self.raw, self.match = raw, match
        self.start, self.end = match.span(_secret_group(match.re))
        self.value = raw[self.start : self.end]

    def group(self, name: str) -> bytes:
        """A group of the pattern, as it was searched; empty where it has none or matched none."""
        return self.match.groupdict().get(name) or b""

    def text_after(self, size: int = 1) -> bytes:
        return self.raw[self.end : self.end + size]

    def text_before_name(self) -> tuple[int, bytes]:
        """Where the whole name begins, since a match begins at its telling part; and the two
        characters before it."""
        start = self.match.start()
        left = _load_shape("name_end").search(self.raw, max(0, start - 40), start)
        begin = left.start() if left else start
        return begin, self.raw[max(0, begin - 2) : begin]

    @cached_property
    def name(self) -> bytes:
        """The whole name a value is assigned to.

        Empty if it is no name at all but the middle of a path such as arn:aws:…:secret:db or a::b.
        """
        begin, before = self.text_before_name()
        if before == b"::" or (before[-1:] == b":" and self.group("op") == b":"):
            return b""
        name = self.raw[begin : self.match.end("name")]
        if begin < self.match.start() and before[-1:] == b"\\":
            return name[1:]  # the n of an escaped line break is not part of the name
        return _load_shape("colour").sub(b"", name) if before[-1:] in (b"[", b";") else name

    def is_env_line(self) -> bool:
        """NAME=value as in a .env file or a shell, or NAME: value at the end of a line of YAML."""
        if self.name != self.name.upper():
            return False
        if self.group("op") == b": ":
            return self.text_after() not in (b",", b";", b")", b" ")
        return self.group("op") == b"=" or self.text_after() not in (b",", b";", b")")

    def is_expression(self) -> bool:
        """True if an unquoted value is an expression: a call, a member, a type with its default."""
        after = self.text_after(2)
        goes_on = after[:1] in (b"(", b"[", b"{", b"<", b">") and after != b"</"
        if goes_on or after == b" =":
            return True
        longest = max(self.value.split(b"."), key=len)
        drawn = looks_random(longest, 20) or _is_drawn(self.value)
        return _has_shape("expression", self.value) and not drawn

    def may_be_random(self) -> bool:
        if not self.name or _has_shape("harmless_name", self.name.lower()):
            return False
        if _is_placeholder(self.value) or _has_shape("no_key", self.value):
            return False
        if self.group("op")[:1] == b"," and not self.sets_variable():
            return False
        return bool(self.group("quote")) or not self.is_expression()

    def sets_variable(self) -> bool:
        """True for 'DB_PASSWORD', 'hunter2' and ("password", "hunTer2"); not for a list of names,
        nor if a key comes next."""
        pair = self.text_after(2) == self.group("quote") + b")"
        drawn = judge_chosen(self) or looks_random(self.value)
        if pair and drawn and self.text_before_name()[1][:1] == b"(":
            return True
        follows = self.text_after(12).replace(self.group("quote"), b"", 1).lstrip()[:1]
        capitals = self.value.isupper() and not _DIGIT.search(self.value)
        return self.name == self.name.upper() and not capitals and follows != b":"


class Told(Found):
    """What stands in a sentence, without the marks around it."""

    def __init__(self, raw: bytes, match: re.Match[bytes]) -> None:
        super().__init__(raw, match)
        marks = _MARKS_BEFORE.match(self.value)
        self.start = match.start() + (marks.end() if marks else 0)
        if raw[self.start - 1 : self.start] == b"\\" and raw[self.start] in b"nrt":
            self.start += 1  # the end of a line, escaped
        self.value = raw[self.start : self.end].rstrip(_MARKS_BEHIND)
        self.end = self.start + len(self.value)


def judge_literal(found: Found) -> bool:
    """For names that can only mean a secret: any literal goes, however weak."""
    value, op = found.value, found.group("op")
    if not found.name or value == found.name or _is_placeholder(value):
        return False
    if not _has_shape("letter_or_digit", value):
        return False
    if found.group("quote"):
        if _has_shape("space", value):
            return _is_phrase(value)
        if _names_a_field(value):
            return False
        if op == b" :" and _has_shape("name", value):
            return False  # a variable, in psql
        return op.rstrip() != b"," or found.sets_variable()
    if found.is_expression():
        return False
    if not _has_shape("words", value):
        return len(value) > 5 or found.is_env_line()
    if _DIGIT.search(value) and (b"/" not in value or looks_random(value)):
        closing = (b",", b";", b")", b"?") if op.strip() != b"is" else ()
        last = found.text_after() not in closing or _has_shape("next_option", found.text_after(40))
        return last and not _has_shape("constant", value)
    # Letters only, unquoted: a word of prose or a variable, unless it stands in a .env line.
    in_line = op in (b"=", b": ") and found.is_env_line() and not _has_shape("constant", value)
    return in_line or looks_random(value)


def judge_opaque(found: Found) -> bool:
    """For names such as api_key: machine-made; a short one only if quoted or in a .env line."""
    value = found.value
    if not found.may_be_random():
        return False
    return looks_random(value) or (
        len(value) >= 8
        and len(_DIGIT.findall(value)) > 1
        and looks_random(value * 2)
        and (bool(found.group("quote")) or found.is_env_line())
    )


def judge_vendor_key(found: Found) -> bool:
    """For names that belong to one vendor: anything of the length of its keys."""
    value = found.value
    if len(value) < 20 or shannon_entropy(value) < 2:
        return False
    if value.islower() and not _DIGIT.search(value):
        return False
    return found.may_be_random()


def judge_phrase(found: Found) -> bool:
    return _is_phrase(found.value)


def judge_salt(found: Found) -> bool:
    """WordPress calls keys so."""
    return found.may_be_random() and looks_random(found.value, 32, 3.6)


def judge_dense(found: Found) -> bool:
    """For a bare `key` or `auth`: nothing but dense base64 is taken for a secret."""
    value = found.value
    if b"public" in found.name.lower() or not _has_shape("base64", value):
        return False
    if value.islower() or value.isupper() or not _DIGIT.search(value):
        return False
    return found.may_be_random() and looks_random(value, 20, 3.6)


def judge_dense_or_basic(found: Found) -> bool:
    return judge_dense(found) or judge_basic(found)


def judge_option(found: Found) -> bool:
    """For --password and --token: what follows is a value, but prose has such flags too."""
    value = found.value
    if b"pass" in found.group("name") or b"secret" in found.group("name"):
        return judge_literal(found)
    if len(value) < 8 or not _DIGIT.search(value) or not found.may_be_random():
        return False
    return b"/" not in value or looks_random(value)


def judge_argument(found: Found) -> bool:
    """For what a program or a statement takes as a password: anything but a stand-in."""
    return judge_url_password(found) and not _has_shape("file", found.value)


def judge_chosen(found: Found) -> bool:
    """For a value in a sentence or a cell: such as people choose and machines make, no word, no
    name in a program, no file, no version."""
    value = found.value.rstrip(b".,:;!?")
    return len(value) >= 6 and not _is_placeholder(value) and _is_telling(value)


def _is_chosen(value: bytes) -> bool:
    """Letters in no order that words have, with capitals or signs among them; or joined words with
    a number. Many names in programs have these forms: so it counts beside a word for it alone."""
    if any(_has_shape(shape, value) for shape in ("file", "camel")) or _is_placeholder(value):
        return False
    if _has_shape("chosen_words", value):
        return True
    letters = bytes(c for c in value if chr(c).isalpha())
    mixed = len(value) > 7 and not letters.islower() and not letters.isupper()
    signed = _has_shape("symbol", value)
    return mixed and looks_random(letters, 6, 2.0, share=0.5 if signed else 0.25)


def judge_password_argument(found: Found) -> bool:
    """For an argument of a call that logs in or signs: what people choose or machines make."""
    value = found.value
    if _has_shape("address", value):
        return False
    signed = _has_shape("symbol", value) and _is_chosen(value)
    drawn = (looks_random(value) or signed) and not _has_shape("code", value)
    return len(value) > 3 and (judge_chosen(found) or drawn or _is_phrase(value))


def judge_opaque_or_chosen(found: Found) -> bool:
    return bool(found.name) and (judge_opaque(found) or judge_chosen(found))


def judge_short_password(found: Found) -> bool:
    """For pw and the like: in quotation marks also words, and letters without a digit."""
    value = found.value
    if not found.name or not found.group("quote"):
        return judge_opaque_or_chosen(found)
    drawn = looks_random(value * 2) and not _has_shape("no_password", value)
    return judge_opaque_or_chosen(found) or drawn or _is_chosen(value) or _is_phrase(value)


def judge_configured(found: Found) -> bool:
    """For a setting that takes a password and nothing else: no word of a sentence."""
    value = found.value
    return judge_argument(found) and (
        not value.isalpha() or looks_random(value * 2) or _is_phrase(value)
    )


def judge_encoded_or_chosen(found: Found) -> bool:
    """For what is encoded, or decoded and holds a secret itself."""
    try:
        return bool(find_secrets(base64.b64decode(found.value, validate=True).decode("ascii")))
    except (binascii.Error, ValueError):
        return judge_told(found)


def judge_printed(found: Found) -> bool:
    value = found.value
    return judge_told(found) or (looks_random(value) and not _has_shape("file", value))


def judge_cell(found: Found) -> bool:
    """For what stands in the column of passwords."""
    quoted = found.raw[found.start - 1 : found.start] == b"'"
    return judge_argument(found) if quoted else judge_drawn_cell(found)


def judge_drawn_cell(found: Found) -> bool:
    """For what stands in a column of tokens, of which there are many kinds."""
    return judge_chosen(found) or (looks_random(found.value) and not _is_placeholder(found.value))


def judge_told(found: Found) -> bool:
    """For a value in a sentence, however far from the word."""
    value = found.value
    coloured = found.raw[found.start - 2 : found.start] == b"\x1b["
    if (
        coloured
        or len(value) > 64
        or any(_has_shape(x, value) for x in ("hex_digits", "assignment"))
    ):
        return False
    if not judge_chosen(found) and not _is_chosen(value):
        return False
    return _is_drawn(value) or not _has_shape("code", value)


def judge_told_key(found: Found) -> bool:
    """Not an id, which sentences about keys name as well."""
    return judge_told_token(found) and not _has_shape("id", found.value)


def judge_told_token(found: Found) -> bool:
    value = found.value
    if not looks_random(value, 20) or not _has_shape("key", value):
        return False
    if _is_placeholder(value) or _has_shape("algorithm", value):
        return False
    if _has_shape("id", value) and b"commit" in found.raw[max(0, found.start - 24) : found.start]:
        return False
    return _is_drawn(value) or not _has_shape("no_key_in_prose", value)


def judge_random(found: Found) -> bool:
    """For tokens whose prefix is also the beginning of ordinary words."""
    return looks_random(found.value, 20)


def judge_url_password(found: Found) -> bool:
    value = found.value
    return len(value) > 2 and not _is_placeholder(value + b"-" * (4 - len(value)))


def judge_header(found: Found) -> bool:
    """What follows Basic must be credentials; anything else must not be a word."""
    value, scheme = found.value, found.group("scheme").strip()
    if _is_placeholder(value) or found.text_before_name()[1] == b"::":
        return False
    if scheme == b"basic":
        return judge_basic(found)
    if scheme and not value.isalpha() and not _names_a_field(value):
        return True
    return looks_random(value)


def judge_basic(found: Found) -> bool:
    """In base64 a user, a colon and a password."""
    value = found.value
    try:
        said = base64.b64decode(value + b"=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return False
    return b":" in said and said.isascii()


def judge_cookie(found: Found) -> bool:
    """At least one of the cookies carries something that could be a session."""
    cookies = (part.partition(b"=")[2].strip() for part in found.value.split(b";"))
    return any(
        looks_random(value)
        or (_DIGIT.search(value) and not value.isdigit() and looks_random(value * 2))
        for value in cookies
        if len(value) > 7 and not _is_placeholder(value)
    )


def judge_curl_password(found: Found) -> bool:
    """-u means something else to other programs, so a curl must stand before it."""
    start = found.match.start()
    line = found.raw[max(0, start - 400) : start].replace(b"\\\n", b"").rpartition(b"\n")[2]
    return b"curl" in line and not found.value.isdigit() and judge_url_password(found)


def judge_connection_password(found: Found) -> bool:
    value = found.value
    if b"(" in value and not _is_drawn(value):
        return False
    return judge_url_password(found) and not found.is_expression()


def judge_passphrase(found: Found) -> bool:
    """For "the passphrase is …": words in quotation marks or joined by hyphens, no remark on it."""
    value, words = found.value, found.value.split()
    if _is_placeholder(value) or _names_a_field(value) or value.endswith((b"?", b":")):
        return False
    if found.group("quote"):
        single = len(words) == 1 and _has_shape("joined_words", value)
        return single if found.group("name") != b"phrase" else len(words) != 2
    return len(words) == 1 and value.count(b"-") > 1


def judge_login(found: Found) -> bool:
    """For "login: name / …": what follows a name must look like what people choose."""
    user = found.raw[slice(*found.match.span("user"))]
    if _is_placeholder(found.value) or any(_has_shape("file", x) for x in (found.value, user)):
        return False
    kinds = (rb"[a-z]", rb"[A-Z]", rb"[0-9]", rb"[!@#$%^&*?+~]")
    has = [re.search(kind, found.value) is not None for kind in kinds]
    if _has_shape("chosen_words", found.value):
        return True
    return sum(has) > 2 and (has[0] or has[1]) and (has[2] or has[3])


def judge_env_variable(found: Found) -> bool:
    """For DB_PASS and the like: pass is a verb everywhere but at the end of a .env name."""
    return found.is_env_line() and judge_literal(found)


def judge_element(found: Found) -> bool:
    return not _is_placeholder(found.value) and _DIGIT.search(found.value) is not None


def judge_key_block(found: Found) -> bool:
    """Programs name the lines of a key block too; only a block with something in it is a key."""
    runs = _load_shape("key_lines").findall(found.value)
    return any(_DIGIT.search(run) or not run.isupper() for run in runs)


# A row of the table names its judge without the prefix.
_JUDGES: dict[str, Judge] = {
    name.removeprefix("judge_"): judge
    for name, judge in globals().items()
    if name.startswith("judge_")
}
