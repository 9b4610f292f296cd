"""Secrets do not get into the store: text in, the same text without them out.

What it knows is the table in `redact_rules`: tokens of well known services, key blocks, passwords
in URLs, headers, cookies and configuration, and values assigned to a name that says secret. What
stands between `<private>` and `</private>` goes as well. What it refuses to know: it asks no
network, reads no file and no environment, remembers nothing between calls, and does not guess that
a lone random string is a secret, since commit ids, digests and checksums look the same and are
worth remembering. A password with spaces in it, one in prose with no name before it, and one given
to a short option such as -p stay.

Each secret becomes `[redacted:NAME]`, each private span `[private]`. Neither matches a rule, so
redacting twice changes nothing.

Redact first, cut afterwards: half a key block or half a token is not recognised any more. Callers
that store only the beginning and the end of a long text redact the whole of it before they cut.

It runs on everything that is stored, so a text in which nothing can match leaves after a few scans
for literals, as the very object that came in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from yester.redact_rules import (
    ASSIGNED,
    MIN_RUN,
    RULES,
    SEARCHES,
    STRUCTURED,
    TOKENS,
    Example,
    Rule,
)

__all__ = ["PRIVATE", "RULES", "Example", "Rule", "count", "redact", "spans", "strip_private"]

PRIVATE = "[private]"

_SHORTEST = 8  # characters; nothing shorter holds both the sign of a secret and the secret
_MANY = 500  # beginnings of tokens in one text, after which all kinds are taken to be there
_PASSES = 6  # a replacement may free a neighbour; only a made-up text needs more rounds

_TAG = re.compile(
    r"<\s{0,20}(?P<close>/)?\s{0,20}private(?:\s[^>]{0,200}+|(?P<empty>/))?>"
    r"|(?:\\u003c|&lt;|%3c)\s{0,20}(?P<close2>/)?\s{0,20}private(?:\s[^<>]{0,200}?|(?P<empty2>/))?"
    r"(?:\\u003e|&gt;|%3e)",
    re.IGNORECASE,
)


def strip_private(text: str) -> str:
    """The text without its `<private>` spans; each leaves `[private]` behind.

    The outermost span counts, an unclosed one reaches to the end of the text, and a closing tag
    without an opening one is dropped by itself.
    """
    for _ in range(_PASSES):
        if _TAG.search(text) is None:
            return text
        text = _strip_once(text)  # a dropped tag may bring the halves of another together
    tag = _TAG.search(text)
    return text[: tag.start()] + PRIVATE if tag else text


def _strip_once(text: str) -> str:
    kept: list[str] = []
    position = depth = 0
    for tag in _TAG.finditer(text):
        if depth == 0:
            kept.append(text[position : tag.start()])
            position = tag.end()
        if tag["close"] or tag["close2"]:
            if depth == 1:
                kept.append(PRIVATE)
                position = tag.end()
            depth = max(0, depth - 1)
        elif tag["empty"] or tag["empty2"]:
            kept.append("" if depth else PRIVATE)
        else:
            depth += 1
    kept.append(PRIVATE if depth else text[position:])
    return "".join(kept)


def redact(text: str) -> str:
    """The text without private spans and without secrets; the same object if it had neither."""
    if len(text) < _SHORTEST:
        return text
    for step in range(_PASSES):
        raw = text.encode("utf-8", "surrogatepass")
        folded = raw.lower()
        awake = _awake(raw, folded)
        if not awake:
            break  # not even private: the word is the gate of rules about keys
        if step == 0 and b"private" in folded:
            stripped = strip_private(text)
            if stripped is not text:
                text = stripped
                continue
        found = _find(raw, folded, awake)
        if not found:
            break
        text = _replace(raw, found).decode("utf-8", "surrogatepass")
    return text


def count(text: str) -> dict[str, int]:
    """How many secrets of which kind `redact` takes out of a text, without a word of them."""
    return dict(Counter(name for _, _, name in spans(strip_private(text))))


def spans(text: str) -> list[tuple[int, int, str]]:
    """Where the secrets of a text are and of what kind: (start, end, name), in order, disjoint.

    Private spans are not looked at: strip them first.
    """
    raw = text.encode("utf-8", "surrogatepass")
    folded = raw.lower()
    found = _find(raw, folded, _awake(raw, folded))
    if len(raw) == len(text):
        return found
    in_characters = []
    at = reached = 0
    for start, end, name in found:
        begin = reached + len(raw[at:start].decode("utf-8", "surrogatepass"))
        at, reached = end, begin + len(raw[start:end].decode("utf-8", "surrogatepass"))
        in_characters.append((begin, reached, name))
    return in_characters


# --- which rules can match at all -------------------------------------------------------------


def _head(gate: bytes) -> bytes:
    """A gate up to its last character that is rare in text, which small letters are not."""
    return gate.rstrip(b"abcdefghijklmnopqrstuvwxyz")


def _token_gate(heads: dict[bytes, list[Rule]]) -> re.Pattern[bytes]:
    """One search for the gates of all tokens.

    It looks for the last character of a head, then for the run that must follow, and for the whole
    head only then, when it hardly ever comes to that. Heads of one width make one lookbehind.
    """
    last = re.escape(bytes(sorted({head[-1] for head in heads})))
    by_size: dict[int, list[bytes]] = {}
    for head in sorted(heads):
        by_size.setdefault(len(head), []).append(re.escape(head))
    behind = b"|".join(b"(?<=" + b"|".join(same) + b")" for same in by_size.values())
    return re.compile(b"[%s](?=[A-Za-z0-9_.~+/%%\\-]{%d})(?:%s)" % (last, MIN_RUN, behind))


def _by_gate(rules: tuple[Rule, ...]) -> dict[bytes, list[Rule]]:
    """Gates with their rules: a gate that several rules share is looked for once."""
    gates: dict[bytes, list[Rule]] = {}
    for rule in rules:
        for gate in rule.gate:
            gates.setdefault(gate, []).append(rule)
    return gates


_PLACE = {rule: place for place, rule in enumerate(RULES)}
_TOKENS_BY_HEAD = {_head(gate): rules for gate, rules in _by_gate(TOKENS).items()}
_HEAD_SIZES = sorted({len(head) for head in _TOKENS_BY_HEAD})
_TOKEN_GATE = _token_gate(_TOKENS_BY_HEAD)
_GATES = _by_gate(STRUCTURED + ASSIGNED)
_SEARCHED = tuple(
    (re.compile(source).search, {g: r for g, r in _GATES.items() if any(w in g for w in words)})
    for words, source in SEARCHES
)
_ALONE = tuple(
    (gate, rules) for gate, rules in _GATES.items() if not any(gate in s for _, s in _SEARCHED)
)


def _awake(raw: bytes, folded: bytes) -> list[Rule]:
    """The rules of which a gate is in the text, in the order of the table."""
    awake: set[Rule] = set()
    for gate, rules in _ALONE:
        if gate in folded:
            awake.update(rules)
    for search, gates in _SEARCHED:
        if search(folded):
            for gate, rules in gates.items():
                if gate in folded:
                    awake.update(rules)
    for seen, m in enumerate(_TOKEN_GATE.finditer(raw)):
        if seen == _MANY:
            awake.update(TOKENS)
            break
        for size in _HEAD_SIZES:
            awake.update(_TOKENS_BY_HEAD.get(raw[m.end() - size : m.end()], ()))
    return sorted(awake, key=_PLACE.__getitem__) if awake else []


# --- what they match --------------------------------------------------------------------------


def _find(raw: bytes, folded: bytes, awake: list[Rule]) -> list[tuple[int, int, str]]:
    """The secrets, in order and disjoint; where matches overlap, all of it goes by one name."""
    found = sorted(
        (start, end, place, rule.name)
        for place, rule in enumerate(awake)
        for start, end in _matches(rule, raw, folded if rule.folded else raw)
    )
    merged: list[tuple[int, int, str]] = []
    best = 0
    for start, end, place, name in found:
        if merged and start < merged[-1][1]:
            first, last, known = merged[-1]
            merged[-1] = (first, max(end, last), name if place < best else known)
            best = min(place, best)
        else:
            merged.append((start, end, name))
            best = place
    return merged


def _matches(rule: Rule, raw: bytes, searched: bytes) -> Iterator[tuple[int, int]]:
    pattern, judge = rule.pattern, rule.judge
    group = "secret" if "secret" in pattern.groupindex else 0
    position = again = 0
    while (m := pattern.search(searched, position)) is not None:
        start, end = m.span(group)
        position = m.end()
        if judge is None or judge(raw, m):
            yield _whole_characters(raw, start, end)
        elif group and again <= len(raw):
            # What was turned down may have begun too early: look inside it as well, but not so
            # often that a text of nothing but beginnings takes quadratic time.
            again += position - start
            position = start


def _whole_characters(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """A bounded repetition may stop within a character of several bytes."""
    while start and raw[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(raw) and raw[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def _replace(raw: bytes, found: list[tuple[int, int, str]]) -> bytes:
    kept: list[bytes] = []
    position = 0
    for start, end, name in found:
        kept += (raw[position:start], b"[redacted:%s]" % name.encode())
        position = end
    kept.append(raw[position:])
    return b"".join(kept)
