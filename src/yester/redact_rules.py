"""The table of secret shapes that `yester.redact` takes out of a text, and the judges it needs.

Data, not machinery: a rule is a name, the literals that must be present before its pattern is
worth running, the pattern, and texts that prove it (an example must lose its secret, a near miss
must stay as it is). The tests walk this table.

Everything is bytes. Lowercasing bytes touches ASCII only and keeps every offset, so one lowercased
copy of the text serves all case-blind gates and patterns, at a sixth of the price of `str.lower`.

Three families:

- TOKENS      begin with a fixed, case-exact prefix followed by a long run. All their gates go into
              one combined search, so a new kind of token costs next to nothing.
- STRUCTURED  known by what stands around them: headers, URLs, key blocks.
- ASSIGNED    known by the name they are assigned to.

Patterns are kept linear: every repetition is bounded, possessive, or runs over a class that the
next element cannot match.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

Judge = Callable[[bytes, "re.Match[bytes]"], bool]

MARK = "§"  # stands for the secret in the text of an example
MIN_RUN = 15  # token characters that follow the gate of every rule in TOKENS


class Example(NamedTuple):
    """A text with a secret in it: `around` is the text, with MARK where the secret goes."""

    around: str
    secret: str

    @property
    def text(self) -> str:
        return self.around.replace(MARK, self.secret)


@dataclass(frozen=True, eq=False)
class Rule:
    """One kind of secret.

    `gate`: any of these must be in the text before the pattern runs. The gates of TOKENS are
    compared case-exact; all others are in lower case and compared with the lowercased text.
    `source`: the pattern; the group `secret`, or without one the whole match, is replaced. With
    `folded` it is matched against the lowercased text, otherwise case-exact.
    `judge`: the last word on a match, given the text in its own case; None accepts every match.
    """

    name: str
    gate: tuple[bytes, ...]
    source: bytes
    examples: tuple[Example, ...]
    near_misses: tuple[str, ...] = ()
    folded: bool = False
    judge: Judge | None = None

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Compiled when first needed: most processes never meet most kinds of secret."""
        return re.compile(self.source)


# --- judges: what a value looks like ----------------------------------------------------------

# What people write where a secret would go: one of the first anywhere in a value, one of the second
# in a value without digits, or a value that is nothing but one of the third.
_STAND_INS = frozenset(
    b"your yours placeholder changeme insert replace replaceme todo fixme redacted masked removed "
    b"elided omitted censored truncated".split()
)
_SAMPLES = frozenset(b"example examples sample dummy".split())
_BARE_WORDS = frozenset(
    b"password passwd passphrase pass pwd passwort kennwort senha secret secrets token key apikey "
    b"api_key credential credentials string str text none null nil undefined true false required "
    b"optional hidden invalid incorrect missing empty unset default value username user input "
    b"bool boolean bytes number int integer object any array basic bearer oauth jwt env inherit "
    b"prompt ask disabled enabled unknown expired test foo bar foobar here this self plain auto "
    b"uint8array base64 sha256 sha512 utf8 utf-8 md5 hs256 rs256 es256 ed25519 secp256k1 x25519 "
    b"changeit change_me change-me setme set-me some-secret mysecret mypassword".split()
)
# The pairs of letters that words and names in programs are made of: seven in ten of the pairs in
# them are one of these, of those in random text one in seven.
_PAIRS = frozenset(
    b"ac ad al am an ap ar as at ca ce ch cl co ct de di ea ec ed ef el em en er es et ex fi ge ha "
    b"he ic ig il im in io is it ke la le li ll lo lu ma me mp na nc nd ne ng no ns nt od ol om on "
    b"op or ou pa pe pl po pr pt ra re ri rn ro rr rs rt se si ss st ta te th ti to tr ts tt tu ty "
    b"ul un ur ut va ve yp".split()
)
_ALNUM = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORD = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+")
_DIGIT = re.compile(rb"[0-9]")
_SPACE = re.compile(rb"\s")
_REFERENCE = re.compile(
    rb"\A(?:\$\w+-?\Z|--|%\w+%\Z|[<\[({*&!]|\.{1,2}/|~?/|[A-Za-z]:\\)"
    rb"|\$[{(]|[#{%]\{|\}\}|<%|\{\w*\}|%[sdv]\b|%\(|\*{3}|[xX]{4}|\.{3}|\xe2\x80\xa6|\xe2\x80\xa2"
    rb"|\b(?:os\.environ|process\.env|import\.meta|getenv|op://|vault:|arn:aws|data:|sha\d{3}-)"
    rb"|://|\[redacted:|\[private\]"
)
_EXPRESSION = re.compile(
    rb"\A[A-Za-z_$@][\w$]*(?:(?:\??\.|::|->|!\.|:)[A-Za-z_$][\w$]*)+[!?.:]*\Z"
    rb"|(?:=>|[=+]=)(?!=?\Z)|::|&&|->|\?\."
)
_WORDS = re.compile(rb"\A[A-Za-z_][\w./:\-]*[.!?:]*\Z")
_CONSTANT = re.compile(rb"\A[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_HEX_DIGITS = re.compile(rb"\A(?:0x)?[0-9a-fA-F\-]+\Z")
_BASE64 = re.compile(rb"\A(?![0-9a-fA-F\-]+\Z)[A-Za-z0-9+/_\-]+={0,2}\Z")
_FILE_NAME = re.compile(rb"\.(?:pem|key|crt|cer|json|ya?ml|toml|env|txt|md|[jt]sx?|py|go|rs|sh)\Z")
_PUBLIC_KEY = re.compile(rb"\A(?:AAAA[BCE][23]|ssh-|age1|MFkw|MCow|MIGf|MIIB[IC]j|MIICIj|MHYw)")
# Opaque values that open nothing: a place in a listing, a version, a request already made.
_HARMLESS_NAME = re.compile(
    rb"(?:next|page|pagination|continuation|starting|forward|backward|cursor|change|lock|sync|update"
    rb"|idempotency|sequence|action|client[_\-]?request|work[_\-]?unit|cancellation)[_\-]?token\Z"
    rb"|public"
)
_FIELD_WORDS = frozenset(
    b"access and api auth aws client confirm current db factor field hash header id input key "
    b"label name new old or password private public refresh reset secret session token type "
    b"user".split()
)
_NAME_LEFT = re.compile(rb"[A-Za-z0-9_.\-]*\Z")
_COLOUR = re.compile(rb"\A[0-9]{1,2}m")
_PEM_RUN = re.compile(rb"[A-Za-z0-9+/=]{16,}")


def entropy(value: bytes) -> float:
    """Shannon entropy in bits per byte: words below 3.3, hex below 4, long base64 4.5 to 6."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def is_placeholder(value: bytes) -> bool:
    """True if the value says itself that it is no secret: a reference, a mask, a stand-in."""
    low = value.strip(b".,:;?\"'`-_ ").lower()
    if len(low) < 4 or len(set(low)) < 3 or low in _BARE_WORDS or _REFERENCE.search(value):
        return True
    if b"changeme" in low or b"placeholder" in low or low.startswith(b"your"):
        return True
    stand_ins = _STAND_INS if _DIGIT.search(value) else _STAND_INS | _SAMPLES
    return any(word.lower() in stand_ins for word in _WORD.findall(value))


def _names_a_field(value: bytes) -> bool:
    """True for "client_secret" and "passwordField": the name of a thing, not the thing."""
    words = _WORD.findall(value)
    return len(words) > 1 and all(word.lower() in _FIELD_WORDS for word in words)


def looks_random(value: bytes, size: int = 16, bits: float = 2.7) -> bool:
    """True for text drawn by a machine: long enough, mixed, and not made of words."""
    value = value[:512]
    digits = _DIGIT.search(value) is not None
    letters = bytes(c for c in value if c > 64)
    if len(value) < size or len(letters) < 3 or entropy(value) < bits:
        return False
    if not digits and (letters.islower() or letters.isupper()):
        return False
    if digits and _HEX_DIGITS.match(value):
        return True
    low = value.lower()
    pairs = [pair for pair in map(bytes, pairwise(low)) if pair.isalpha()]
    common = sum(pair in _PAIRS for pair in pairs)
    return len(pairs) < 4 or common <= len(pairs) * (0.4 if digits else 0.33)


# --- judges: what a match means ---------------------------------------------------------------


def _value(raw: bytes, m: re.Match[bytes]) -> bytes:
    return raw[m.start("secret") : m.end("secret")]


def _after(raw: bytes, m: re.Match[bytes], size: int = 1) -> bytes:
    return raw[m.end("secret") : m.end("secret") + size]


def _name_start(raw: bytes, start: int) -> int:
    left = _NAME_LEFT.search(raw, max(0, start - 40), start)
    return left.start() if left else start


def _name(raw: bytes, m: re.Match[bytes]) -> bytes:
    """The whole name a value is assigned to; the match begins at the telling part of it.

    Empty if it is no name at all but the middle of a path such as arn:aws:…:secret:db or a::b.
    """
    begin = _name_start(raw, m.start())
    before = raw[max(0, begin - 2) : begin]
    if before == b"::" or (before[-1:] == b":" and m["op"] == b":"):
        return b""
    name = raw[begin : m.end("name")]
    if begin < m.start() and before[-1:] == b"\\":
        return name[1:]  # the n of an escaped line break is not part of the name
    return _COLOUR.sub(b"", name) if before[-1:] in (b"[", b";") else name


def _in_env_form(raw: bytes, m: re.Match[bytes], name: bytes) -> bool:
    """NAME=value as in a .env file or a shell, or NAME: value at the end of a line of YAML."""
    if m["op"] == b": ":
        return name == name.upper() and _after(raw, m) not in (b",", b";", b")", b" ")
    return name == name.upper() and (m["op"] == b"=" or _after(raw, m) not in (b",", b";", b")"))


def _is_code(raw: bytes, m: re.Match[bytes], value: bytes) -> bool:
    """True if an unquoted value is an expression: a call, a member, a type with its default."""
    return (
        _after(raw, m) in (b"(", b"[", b"{", b"<", b">")
        or _after(raw, m, 2) == b" ="
        or (
            _EXPRESSION.search(value) is not None
            and not looks_random(max(value.split(b"."), key=len), 20)
        )
    )


def _literal(raw: bytes, m: re.Match[bytes]) -> bool:
    """For names that can only mean a secret: any literal goes, however weak."""
    value, name = _value(raw, m), _name(raw, m)
    if not name or value == name or is_placeholder(value) or not _ALNUM.intersection(value):
        return False
    if m["quote"]:
        if _SPACE.search(value) or _names_a_field(value):
            return False
        return m["op"].rstrip() != b"," or _sets_variable(raw, m, name, value)
    if _is_code(raw, m, value):
        return False
    if not _WORDS.match(value):
        return len(value) > 5 or _in_env_form(raw, m, name)
    if _DIGIT.search(value) and (b"/" not in value or looks_random(value)):
        closing = (b",", b";", b")", b"?") if m["op"].strip() != b"is" else ()
        return _after(raw, m) not in closing and not _CONSTANT.match(value)
    # Letters only, unquoted: a word of prose or a variable, unless it stands in a .env line.
    return m["op"] in (b"=", b": ") and _in_env_form(raw, m, name) and not _CONSTANT.match(value)


def _sets_variable(raw: bytes, m: re.Match[bytes], name: bytes, value: bytes) -> bool:
    """True for 'DB_PASSWORD', 'hunter2'; not for a list of names, nor if a key comes next."""
    follows = _after(raw, m, 12).replace(m["quote"], b"", 1).lstrip()[:1]
    capitals = value.isupper() and not _DIGIT.search(value)
    return name == name.upper() and not capitals and follows != b":"


def _opaque(raw: bytes, m: re.Match[bytes]) -> bool:
    """For names such as api_key: machine-made; a short one only if quoted or in a .env line."""
    value, name = _value(raw, m), _name(raw, m)
    if not _may_be_random(raw, m, value, name):
        return False
    return looks_random(value) or (
        len(value) >= 8
        and len(_DIGIT.findall(value)) > 1
        and looks_random(value * 2)
        and (bool(m["quote"]) or _in_env_form(raw, m, name))
    )


def _random(raw: bytes, m: re.Match[bytes]) -> bool:
    value = _value(raw, m)
    return _may_be_random(raw, m, value, _name(raw, m)) and looks_random(value)


def _named(raw: bytes, m: re.Match[bytes]) -> bool:
    """For names that belong to one service: anything of the length of its keys."""
    value = _value(raw, m)
    if len(value) < 20 or entropy(value) < 2 or (value.islower() and not _DIGIT.search(value)):
        return False
    return _may_be_random(raw, m, value, _name(raw, m))


def _may_be_random(raw: bytes, m: re.Match[bytes], value: bytes, name: bytes) -> bool:
    if not name or _HARMLESS_NAME.search(name.lower()):
        return False
    if is_placeholder(value) or _SPACE.search(value) or _FILE_NAME.search(value):
        return False
    return not _CONSTANT.match(value) and (bool(m["quote"]) or not _is_code(raw, m, value))


def _high_entropy(raw: bytes, m: re.Match[bytes]) -> bool:
    """For a bare `key` or `auth`: nothing but dense base64 is taken for a secret."""
    value, name = _value(raw, m), _name(raw, m)
    if b"public" in name.lower() or not _BASE64.match(value) or _PUBLIC_KEY.match(value):
        return False
    if value.islower() or value.isupper() or not _DIGIT.search(value):
        return False
    return _may_be_random(raw, m, value, name) and looks_random(value, 24, 4.0)


def _flag(raw: bytes, m: re.Match[bytes]) -> bool:
    """For --password and --token: what follows is a value, but prose has such flags too."""
    if b"pass" in m["name"] or b"secret" in m["name"]:
        return _literal(raw, m)
    value, name = _value(raw, m), _name(raw, m)
    if len(value) < 8 or not _DIGIT.search(value) or not _may_be_random(raw, m, value, name):
        return False
    return b"/" not in value or looks_random(value)


def _random_match(raw: bytes, m: re.Match[bytes]) -> bool:
    """For tokens whose prefix is also the beginning of ordinary words."""
    group = "secret" if "secret" in m.re.groupindex else 0
    return looks_random(raw[m.start(group) : m.end(group)], 20)


def _url_password(raw: bytes, m: re.Match[bytes]) -> bool:
    value = _value(raw, m)
    return len(value) > 2 and not is_placeholder(value + b"-" * (4 - len(value)))


def _header_value(raw: bytes, m: re.Match[bytes]) -> bool:
    """What follows Basic must decode to user:password; anything else must not be a word."""
    value, begin = _value(raw, m), _name_start(raw, m.start())
    if is_placeholder(value) or raw[max(0, begin - 2) : begin] == b"::":
        return False
    scheme = (m["scheme"] or b"").strip()
    if scheme == b"basic":
        try:
            return b":" in base64.b64decode(value + b"=" * (-len(value) % 4))
        except (binascii.Error, ValueError):
            return False
    if scheme and not value.isalpha() and not _names_a_field(value):
        return True
    return looks_random(value)


def _mixed(value: bytes) -> bool:
    return _DIGIT.search(value) is not None and not value.isdigit() and looks_random(value * 2)


def _cookie(raw: bytes, m: re.Match[bytes]) -> bool:
    """At least one of the cookies carries something that could be a session."""
    crumbs = (part.partition(b"=")[2].strip() for part in _value(raw, m).split(b";"))
    return any(not is_placeholder(c) and (looks_random(c) or _mixed(c)) for c in crumbs if c[7:])


def _curl_password(raw: bytes, m: re.Match[bytes]) -> bool:
    """-u means something else to other programs, so a curl must stand before it."""
    start = m.start()
    line = raw[max(0, start - 400) : start].replace(b"\\\n", b"").rpartition(b"\n")[2]
    return b"curl" in line and not _value(raw, m).isdigit() and _url_password(raw, m)


def _ado_password(raw: bytes, m: re.Match[bytes]) -> bool:
    value = _value(raw, m)
    return _url_password(raw, m) and b"(" not in value and not _is_code(raw, m, value)


def _told_phrase(raw: bytes, m: re.Match[bytes]) -> bool:
    """For "the passphrase is …": words in quotation marks or joined by hyphens, no remark on it."""
    value = _value(raw, m)
    if is_placeholder(value) or _names_a_field(value) or value.endswith((b"?", b":")):
        return False
    words = value.split()
    if m["quote"]:
        joined = re.search(rb"[0-9\-_!@#$%^&*+.]", value) is not None
        return len(words) == 1 and joined if m["name"] != b"phrase" else len(words) != 2
    return len(words) == 1 and value.count(b"-") > 1


def _told_login(raw: bytes, m: re.Match[bytes]) -> bool:
    """For "login: name / …": what follows a name must look like what people choose."""
    value, user = _value(raw, m), raw[m.start("user") : m.end("user")]
    if is_placeholder(value) or _FILE_NAME.search(value) or _FILE_NAME.search(user):
        return False
    kinds = (rb"[a-z]", rb"[A-Z]", rb"[0-9]", rb"[!@#$%^&*?+~]")
    has = [re.search(kind, value) is not None for kind in kinds]
    return sum(has) > 2 and (has[0] or has[1]) and (has[2] or has[3])


def _variable(raw: bytes, m: re.Match[bytes]) -> bool:
    """For DB_PASS and the like: pass is a verb everywhere but at the end of a .env name."""
    return _in_env_form(raw, m, _name(raw, m)) and _literal(raw, m)


def _element(raw: bytes, m: re.Match[bytes]) -> bool:
    value = _value(raw, m)
    return not is_placeholder(value) and _DIGIT.search(value) is not None


def _key_material(raw: bytes, m: re.Match[bytes]) -> bool:
    """Programs name the lines of a key block too; only a block with something in it is a key."""
    body = raw[m.start() : m.end()]
    return any(_DIGIT.search(run) or not run.isupper() for run in _PEM_RUN.findall(body))


# --- patterns: the pieces ---------------------------------------------------------------------


def _begin(head: bytes) -> bytes:
    """`head` where a token may begin: not after a letter or digit, except one that ends an escape.

    Escapes are \n in JSON, %3D in a URL, \u0022, and the colour codes of a terminal. The head comes
    first and is looked back at, so that the engine can search for it as a literal.
    """
    escapes = (rb"\\[nrtbf]", rb"%[0-9A-Fa-f]{2}", rb"\\u00[0-9a-f]{2}", rb"[\[;0-9][0-9]m")
    behind = b"|".join(b"(?<=" + escape + head + b")" for escape in escapes)
    return head + b"(?:(?<![A-Za-z0-9]" + head + b")|" + behind + b")"


# What may follow the telling part of a name and still leave it the name of a secret.
_SUFFIX = (
    rb"(?:[_\-]?[0-9]{1,2}|[_\-](?:prod|production|dev|staging|live|test|value|base|b64|base64|hash"
    rb"|main|primary|secondary|default|old|new|raw|plain))?"
)
# What a diff or a listing puts before a line, and white space with it, also escaped.
_NUMBER = rb"[0-9]{1,6}(?:\xe2\x86\x92|[:|\t])"
_BLANK = rb"(?:[\s+\-]|\\{1,4}[nrt]|" + _NUMBER + rb"){1,24}"
_ASSIGNS = (
    rb"[ \t]{0,20}(?::[ ]?&?(?:'static[ ])?(?:str|string|bytes|text|any)[ ]?=|[ ]string[ ]="
    rb"|:=|=>|={1,3}|:)[ \t]{0,20}"
)
# As in {"name": "DB_PASSWORD", "value": "…"}, in YAML and in XML.
_NAME_AND_VALUE = rb",?" + _BLANK + rb"[\"'\\]{0,8}value[\"'\\]{0,8}[ ]?[:=][ ]{0,4}"
# As in define('DB_PASSWORD', '…'); the judge wants a name in capitals.
_COMMA = rb",[ ]{0,4}(?=\\{0,7}[\"'])"
_IS = rb"[ ]is[ ]{1,2}(?=[^\s\"'`]{0,80}[0-9])"


def _op(*more: bytes) -> bytes:
    """What stands between the name and the value."""
    alternatives = b"|".join((_ASSIGNS, _NAME_AND_VALUE, *more))
    return rb"[\"'`\]\\]{0,9}(?P<op>" + alternatives + b")"


_BARE = (
    rb"(?:[^\s\"'`,;<>(){}\[\]|\\&=\x00-\x1f]|=(?!\\{0,7}[\"'`])"
    rb"|[,;&](?=[^\s\"'`\\)\]}])(?![a-z_.\- ]{1,30}[=:]))"
)
_VALUE = (
    rb"(?:[rbuf]{1,2}(?=\\{0,7}[\"']))?(?P<quote>\\{0,7}[\"'`])?(?P<secret>(?(quote)"
    rb"(?:(?!(?P=quote))(?:\\.|[^\r\n\\])){4,512}[A-Za-z0-9+/=_\-.]*+"  # however long it is
    rb"|" + _BARE + rb"{4,512}[A-Za-z0-9+/_\-.]*+))"
)


def _qualified(word: str, qualifiers: str) -> bytes:
    """`word`, but only right after one of the qualifiers, as in api_key, api-key and apikey.

    The word comes first in the pattern, where the engine can search for it as a literal.
    """
    by_size: dict[int, list[str]] = {}
    for qualifier in qualifiers.split():
        by_size.setdefault(len(qualifier), []).append(qualifier)
    behind = [
        f"(?<=(?:{'|'.join(same_size)}){gap}{word})"
        for same_size in by_size.values()
        for gap in ("", r"[_\-. ]")
    ]
    return f"{word}(?:{'|'.join(behind)})".encode()


# Fake on sight, yet of the right shape. Examples are put together from a prefix and a piece of
# these, so that no scanner takes this file for a leak.
_MIXED = "Fake0q7Zr2Xw9Lm4Tb8Vn1Yc6Hd5Js3Gp" * 8
_LOWER = "fake0q7zr2xw9lm4tb8vn1yc6hd5js3gp" * 8
_UPPER = "FAKE0Q7ZR2XW9LM4TB5VN6YC6HD5JS3GP" * 8
_HEX = "facade0192b7c6d5e4f3" * 12
_UUID = f"{_HEX[:8]}-{_HEX[8:12]}-{_HEX[12:16]}-{_HEX[16:20]}-{_HEX[20:32]}"
_PEM_BODY = f"MII{_MIXED[:61]}\n{_MIXED[5:69]}\n{_MIXED[9:40]}="
_PEM_LINE = "-----{} {}PRIVATE KEY{}-----"


def _pem(kind: str = "", body: str = f"\n{_PEM_BODY}\n", block: str = "", cut: bool = False) -> str:
    begin, end = (_PEM_LINE.format(edge, kind, block) for edge in ("BEGIN", "END"))
    return begin + body.rstrip() if cut else begin + body + end


def _examples(texts: Iterable[tuple[str, str]]) -> tuple[Example, ...]:
    return tuple(Example(around, secret) for around, secret in texts)


def _token(
    name: str,
    gates: str,
    tail: bytes,
    sample: str,
    *near_misses: str,
    judge: Judge | None = None,
) -> Rule:
    """A token that is one of the gates followed by `tail`, of which `sample` is one."""
    prefixes = gates.split()
    head = b"|".join(_begin(re.escape(prefix.encode())) for prefix in prefixes)
    return Rule(
        name,
        tuple(prefix.encode() for prefix in prefixes),
        b"(?:" + head + b")" + tail,
        _examples((MARK, prefix + sample) for prefix in prefixes),
        (*near_misses, *(f"{prefix}..." for prefix in prefixes)),
        judge=judge,
    )


def _assigned(
    name: str,
    gate: str,
    telling: bytes,
    judge: Judge,
    examples: Iterable[tuple[str, str]],
    *near_misses: str,
    op: bytes | None = None,
) -> Rule:
    """A secret known by its name: `telling` is the part of the name that gives it away."""
    return Rule(
        name,
        tuple(word.encode() for word in gate.split()),
        b"(?P<name>" + telling + _SUFFIX + b")" + (op or _op()) + _VALUE,
        _examples(examples),
        near_misses,
        folded=True,
        judge=judge,
    )


# --- the table --------------------------------------------------------------------------------

# fmt: off
TOKENS: tuple[Rule, ...] = (
    _token("aws-access-key-id", "AKIA ASIA ABIA ACCA", rb"[A-Z0-9]{16}", _UPPER[:16], "ASIAN"),
    _token("alibaba-key-id", "LTAI", rb"[A-Za-z0-9]{17,30}", _MIXED[:20], "LTAI5t"),
    _token("google-oauth-token", "ya29.", rb"[\w\-]{30,}", _MIXED[:60]),
    _token("google-client-secret", "GOCSPX-", rb"[\w\-]{20,}", _MIXED[:28]),
    _token("google-api-key", "AIza", rb"[\w\-]{30,}", "Sy" + _MIXED[:33], "AIzawa Hiroshi"),
    _token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rb"[0-9a-f]{60,}", _HEX[:64]),
    _token("cloudflare-token", "cfk_ cfut_ cfat_", rb"[A-Za-z0-9]{36,}", _MIXED[:48]),
    _token("cloudflare-origin-key", "v1.0-", rb"[0-9a-f]{20,}-[0-9a-f]{100,}",
           f"{_HEX[:24]}-{_HEX[:146]}", "v1.0-rc1-2024-01-01-linux-x86_64"),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rb"\w{30,}", _MIXED[:36],
           "ghp_your_token"),
    _token("github-fine-grained-token", "github_pat_", rb"\w{40,}",
           f"{_MIXED[:22]}_{_MIXED[:59]}", "github_pat_your_token_here"),
    _token("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glsoat- glimt- glagent- glft- gloas-",
           rb"[\w\-.]{20,}", _MIXED[:20], "glpat-xxxx"),
    _token("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxc- xoxd- xapp-",
           rb"[A-Za-z0-9][A-Za-z0-9\-%]{18,}", f"2123456789-3123456789-{_MIXED[:24]}",
           "xoxb-token"),
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_",
           rb"[A-Za-z0-9]{16,}", _MIXED[:24], "pk_live_" + _MIXED[:24],
           "sk_test_suite_for_payments"),
    _token("webhook-signing-secret", "whsec_", rb"[A-Za-z0-9+/]{24,}=*", _MIXED[:32]),
    _token("elevenlabs-key", "sk_", rb"[0-9a-f]{40,}", _HEX[:48], "sk_buff_head_init_class"),
    _token("anthropic-key", "sk-ant-", rb"[\w\-]{20,}", f"api03-{_MIXED[:93]}AA"),
    _token("openai-key", "sk-proj- sk-svcacct- sk-admin-", rb"[\w\-]{20,}", _MIXED[:120]),
    _token("openrouter-key", "sk-or-v1-", rb"[0-9a-f]{40,}", _HEX[:64]),
    _token("sk-key", "sk-", rb"(?!ssh-|ecdsa-)[\w\-]{20,}", _MIXED[:48], "sk-learn",
           "sk-ecdsa-sha2-nistp256@openssh.com", "sk-folding-cube-container",
           "pip install sk-learn-contrib-hdbscan", "risk-adjusted-return-on-capital",
           judge=_random_match),
    _token("huggingface-token", "hf_ api_org_", rb"[A-Za-z0-9]{30,}", _MIXED[:34],
           "hf_hub_download_with_progress_callbacks"),
    _token("npm-token", "npm_", rb"[A-Za-z0-9]{36,}", _MIXED[:36], "npm_config_user_agent_setting"),
    _token("pypi-token", "pypi-", rb"A[\w\-]{50,}", "AgEIcHlwaS5vcmc" + _MIXED[:80],
           "pypi-publish-action-for-releases"),
    _token("rubygems-key", "rubygems_", rb"[0-9a-f]{40,}", _HEX[:48]),
    _token("clojars-token", "CLOJARS_", rb"[0-9a-z]{50,}", _LOWER[:60]),
    _token("sendgrid-key", "SG.", rb"[\w\-]{16,}\.[\w\-]{30,}", f"{_MIXED[:22]}.{_MIXED[:43]}"),
    _token("twilio-key", "SK AC", rb"[0-9a-f]{32}", _HEX[:32], "SKILL", "ACcessibility"),
    _token("mailgun-key", "key-", rb"[0-9a-f]{32}", _HEX[:32], "key-value-store-implementation"),
    _token("brevo-key", "xkeysib-", rb"[0-9a-f]{60,}", _HEX[:64]),
    _token("resend-key", "re_", rb"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", f"{_MIXED[:8]}_{_MIXED[:24]}",
           "re_compile_pattern_for_tokens", judge=_random_match),
    Rule("telegram-bot-token", (b":AA",), rb"(?<![0-9])[0-9]{8,10}:AA[\w\-]{32,}",
         _examples([(f"bot{MARK}/sendMessage", f"123456789:AA{_MIXED[:33]}"),
                    (MARK, f"1234567890:AA{_LOWER[:33]}")]),
         ("00:1A:2B:AA:BB:CC", "12345678:AAPL")),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_", rb"[0-9a-fA-F]{32,}", _HEX[:32]),
    _token("square-token", "sq0atp- sq0csp-", rb"[\w\-]{22,}", _MIXED[:43]),
    _token("square-access-token", "EAAA", rb"[\w\-]{60}(?![\w+/=\-])", _MIXED[:60],
           "EAAA" + "A" * 60, "EAAA" + _MIXED[:90], judge=_random_match),
    _token("facebook-token", "EAAC EAAM EAAB", rb"[A-Za-z0-9]{60,}", _MIXED[:120]),
    _token("heroku-token", "HRKU-", rb"[\w\-]{30,}", _MIXED[:60]),
    _token("linear-key", "lin_api_ lin_oauth_", rb"[A-Za-z0-9]{30,}", _MIXED[:40]),
    _token("notion-token", "ntn_ secret_", rb"[A-Za-z0-9]{40,}", _MIXED[:46],
           "secret_store_backend_for_tests"),
    _token("figma-token", "figd_ figo_ figu_", rb"[\w\-]{30,}", _MIXED[:43]),
    _token("postman-key", "PMAK-", rb"[0-9a-f]{24}-[0-9a-f]{30,}", f"{_HEX[:24]}-{_HEX[:34]}"),
    _token("vault-token", "hvs. hvb. hvr.", rb"[\w\-]{20,}", _MIXED[:90]),
    _token("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
           rb"(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,}", _MIXED[:43]),
    _token("newrelic-key", "NRAK- NRII- NRIQ- NRRA- NRSP-", rb"[\w\-]{20,}", _UPPER[:27]),
    _token("sentry-token", "sntrys_ sntryu_", rb"[\w+/=\-]{40,}", _MIXED[:64]),
    _token("grafana-token", "glsa_", rb"[A-Za-z0-9]{32}_[0-9a-f]{8}", f"{_MIXED[:32]}_{_HEX[:8]}"),
    _token("grafana-cloud-token", "glc_", rb"eyJ[\w+/=\-]{30,}", "eyJ" + _MIXED[:80]),
    _token("atlassian-token", "ATATT ATCTT", rb"3[\w=\-]{50,}", "3xFf" + _MIXED[:180],
           "ATATTACHMENT"),
    _token("bitbucket-app-password", "ATBB", rb"[A-Za-z0-9]{28,}", _MIXED[:32]),
    _token("age-secret-key", "AGE-SECRET-KEY-", rb"1[0-9A-Z]{40,}", "1" + _UPPER[:58],
           "AGE-SECRET-KEY-1"),
    _token("docker-hub-token", "dckr_pat_ dckr_oat_", rb"[\w\-]{24,}", _MIXED[:27]),
    _token("supabase-token", "sbp_", rb"(?:v0_)?[0-9a-f]{40,}", _HEX[:40]),
    _token("supabase-secret-key", "sb_secret_", rb"[\w\-]{20,}", _MIXED[:31]),
    _token("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", rb"[\w\-.]{30,}",
           _MIXED[:43]),
    _token("fly-token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", rb"[\w+/=,\-]{40,}", _MIXED[:100]),
    _token("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", rb"[A-Za-z0-9]{24,}", _MIXED[:56]),
    _token("netlify-token", "nfp_ nfc_ nfo_", rb"[A-Za-z0-9]{30,}", _MIXED[:36]),
    _token("render-key", "rnd_", rb"[A-Za-z0-9]{28,}", _MIXED[:32]),
    _token("neon-key", "napi_", rb"[a-z0-9]{50,}", _LOWER[:64], "napi_create_external_arraybuffer"),
    _token("groq-key", "gsk_", rb"[A-Za-z0-9]{40,}", _MIXED[:52]),
    _token("cerebras-key", "csk-", rb"[a-z0-9]{40,}", _LOWER[:48]),
    _token("replicate-token", "r8_", rb"[A-Za-z0-9]{36,}", _MIXED[:37]),
    _token("xai-key", "xai-", rb"[A-Za-z0-9]{40,}", _MIXED[:80]),
    _token("perplexity-key", "pplx-", rb"[A-Za-z0-9]{40,}", _MIXED[:48]),
    _token("nvidia-key", "nvapi-", rb"[\w\-]{40,}", _MIXED[:64]),
    _token("tavily-key", "tvly-", rb"[A-Za-z0-9\-]{28,}", _MIXED[:32]),
    _token("jina-key", "jina_", rb"[A-Za-z0-9_\-]{40,}", _MIXED[:60]),
    _token("langsmith-key", "lsv2_pt_ lsv2_sk_", rb"[0-9a-f]{32}_[0-9a-f]{10}",
           f"{_HEX[:32]}_{_HEX[:10]}"),
    _token("posthog-key", "phx_", rb"[A-Za-z0-9]{36,}", _MIXED[:47], "phc_" + _MIXED[:43]),
    _token("pulumi-token", "pul-", rb"[0-9a-f]{40}", _HEX[:40]),
    _token("tailscale-key", "tskey-", rb"[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}",
           f"auth-k{_MIXED[:12]}-{_MIXED[:32]}"),
    Rule("terraform-cloud-token", (b".atlasv1.",), rb"[A-Za-z0-9]{14}\.atlasv1\.[\w\-]{60,}",
         _examples([(MARK, f"{_MIXED[:14]}.atlasv1.{_MIXED[:67]}")]), ("x.atlasv1.y",)),
    _token("dynatrace-token", "dt0c01. dt0s01. dt0s16.", rb"[A-Z0-9]{24}\.[A-Z0-9]{60,}",
           f"{_UPPER[:24]}.{_UPPER[:64]}"),
    _token("onepassword-service-token", "ops_", rb"eyJ[\w\-=+/]{100,}", "eyJ" + _MIXED[:240]),
    _token("sourcegraph-token", "sgp_", rb"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}", _HEX[:40]),
    _token("buildkite-token", "bkua_", rb"[0-9a-f]{40}", _HEX[:40]),
    _token("circleci-token", "CCIPAT_", rb"\w{40,}", f"{_MIXED[:22]}_{_HEX[:40]}"),
    _token("artifactory-token", "AKC", rb"p[A-Za-z0-9]{60,}", "p" + _MIXED[:69]),
    _token("typeform-token", "tfp_", rb"[\w\-.]{40,}", _MIXED[:59]),
    _token("readme-key", "rdme_", rb"[a-z0-9]{60,}", _LOWER[:70]),
    _token("contentful-token", "CFPAT-", rb"[\w\-]{40,}", _MIXED[:43]),
    _token("duffel-token", "duffel_live_ duffel_test_", rb"[\w\-]{40,}", _MIXED[:43]),
    _token("shippo-token", "shippo_live_ shippo_test_", rb"[0-9a-f]{40}", _HEX[:40]),
    _token("hubspot-token", "pat-na1- pat-eu1- pat-na2-", rb"[0-9a-f\-]{36}", _UUID),
    _token("openshift-token", "sha256~", rb"[\w\-]{40,}", _MIXED[:43], "sha256:" + _HEX[:64]),
    Rule("azure-client-secret", (b"Q~",), rb"[\w~.\-]{3}[0-9]Q~[\w~.\-]{31,34}",
         _examples([(MARK, f"abc8Q~{_MIXED[:34]}"),
                    (f'clientSecret: "{MARK}"', f"x.y7Q~{_MIXED[:33]}")]),
         ("8Q~short",)),
    Rule("private-key-base64", (b"LS0tLS1C",),
         rb"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVE|BQUklWQVRF"
         rb"|BFTkNSWVBURUQgUFJJVkFUR|BEU0EgUFJJVkFUR)[A-Za-z0-9+/=]{16,}",
         _examples([(f"client-key-data: {MARK}", "LS0tLS1CRUdJTi" + f"BSU0EgUFJJVkFUR{_MIXED}")]),
         (f"certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{_MIXED}",)),
    Rule("azure-sas-signature", (b"sig=",),
         rb"sig=(?P<secret>[A-Za-z0-9+/%]{40,}(?:=|%3[dD])*)",
         _examples([(f"https://x.blob.core.windows.net/c?sv=1&sig={MARK}", _MIXED[:43] + "%3D")]),
         ("sig=inspect.signature(f)",)),
    Rule("htpasswd-sha", (b"{SHA}",), rb"\{SHA\}[A-Za-z0-9+/]{27}=",
         _examples([(f"me:{MARK}", "{SHA}" + _MIXED[:27] + "=")]), ("{SHA} is a scheme",)),
    Rule("mapbox-secret-token", (b"sk.",), _begin(rb"sk\.eyJ") + rb"[\w\-]{20,}+\.[\w\-]{16,}",
         _examples([(MARK, f"sk.eyJ{_MIXED[:60]}.{_MIXED[:22]}")]),
         (f"pk.eyJ{_MIXED[:60]}.{_MIXED[:22]}", "task.run_everything_in_parallel")),
    # Two parts are no credential (and are how a public Mapbox token looks); three or five are.
    Rule("jwt", (b"eyJ",),
         _begin(b"eyJ") + rb"[\w\-]{12,2000}+\.(?:[\w\-]*+\.){1,3}[\w\-]{16,}",
         _examples([(MARK, f"eyJhbGci{_MIXED[:28]}.eyJzdWIi{_MIXED[:40]}.{_MIXED[:43]}"),
                    (f'"id_token":"{MARK}"', f"eyJ{_MIXED[:30]}.eyJ{_MIXED[:90]}.{_MIXED[:86]}"),
                    (MARK, f"eyJ{_MIXED[:40]}..{_MIXED[:16]}.{_MIXED[:60]}.{_MIXED[:22]}")]),
         ("eyJhbGciOiJIUzI1NiJ9", "eyJ...", f"pk.eyJ{_MIXED[:60]}.{_MIXED[:22]}")),
)

_SLASH = rb"\\{0,8}/"  # some write JSON with escaped ones
_URL_HEAD = _SLASH + _SLASH + rb"[^\s:/@\"'`<>\\\[\]]{0,128}:"
_URL_SECRET = rb"(?P<secret>[^\s/?#\"'`<>\\]{1,1024})@"
_DATABASE_SCHEMES = (
    b"sql gres riadb mongodb +srv redis rediss amqp amqps sqlserver asyncpg psycopg clickhouse"
)
_DATABASE_URL = b"|".join(
    b"(?<=" + re.escape(scheme) + b":)" for scheme in _DATABASE_SCHEMES.split()
)
_PEM_BEGIN = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# Between two lines of a key: a line break, in a diff, a listing with line numbers, a string.
_PEM_GAP = rb"(?:\\[nr]|" + _NUMBER + rb"|[^A-Za-z0-9/=]){0,60}"
_PEM_BREAK = rb"(?:\\[nr]|-(?!----)|[^A-Za-z0-9/=\-]|" + _NUMBER + rb"){1,16}+"

STRUCTURED: tuple[Rule, ...] = (
    Rule("private-key", (b"private key",),
         _PEM_BEGIN + rb"(?:[^-]*+(?:-(?!----)[^-]*+)*+" + _PEM_END
         # No end in sight: the text was cut. Take what can be lines of a key and nothing else.
         + rb"|(?:" + _PEM_GAP
         + rb"(?:(?:Proc-Type|DEK-Info|Version|Comment)[^\r\n\\]{0,120}"
         + rb"|(?=[A-Za-z]{0,15}[0-9+/=])[A-Za-z0-9+/=]{8,}+|[A-Za-z0-9+/=]{16,}+))*+"
         + rb"(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{1,76}(?=[\"'\\\s]{0,8}\Z))?)",
         _examples([*((MARK, _pem(kind)) for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ")),
                    (MARK, _pem("ENCRYPTED ")), (MARK, _pem("RSA ", cut=True)),
                    (MARK, _pem("PGP ", f"\n\n{_PEM_BODY}\n=Fk3q\n", block=" BLOCK")),
                    (MARK, _pem("RSA ", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"
                                f"{_HEX[:32].upper()}\n\n{_PEM_BODY}", cut=True)),
                    (f'{{"private_key": "{MARK}"}}', _pem().replace("\n", "\\n") + "\\n")]),
         (f"-----BEGIN PUBLIC KEY-----\n{_PEM_BODY}\n-----END PUBLIC KEY-----",
          f"-----BEGIN CERTIFICATE-----\n{_PEM_BODY}\n-----END CERTIFICATE-----",
          f'if "{_PEM_LINE.format("BEGIN", "RSA ", "")}" in text: raise ValueError("no keys here")',
          f'START, STOP = "{_pem(body=chr(34) + ", " + chr(34))}"',
          f"ssh-rsa AAAAB3NzaC1yc2E{_MIXED[:200]} me@host"),
         judge=_key_material),
    Rule("private-key-tail", (b"private key",),
         rb"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{16,100}+" + _PEM_BREAK + rb"){1,30}+"
         rb"(?:[A-Za-z0-9+/=]{1,16}" + _PEM_BREAK + rb")?-?" + _PEM_END,
         _examples([(MARK, _PEM_BODY + "\n" + _PEM_LINE.format("END", "RSA ", ""))]),
         ("the line " + _PEM_LINE.format("END", "RSA ", ""),), judge=_key_material),
    Rule("putty-private-key", (b"private",),
         rb"Private-Lines: ?[0-9]+(?P<secret>(?:" + _BLANK + rb"[A-Za-z0-9+/=]{16,}+)++)",
         _examples([(f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n{MARK}\nPrivate-MAC: 0",
                     f"{_MIXED[:64]}\n{_MIXED[3:50]}")]),
         ("Private-Lines: 2 is a header of a PuTTY key",)),
    Rule("databricks-token", (b"dapi",), _begin(b"dapi") + rb"[0-9a-f]{32}(?:-[0-9])?",
         _examples([(MARK, "dapi" + _HEX[:32]), (MARK, "dapi" + _HEX[:32] + "-2")]),
         ("dapic", "dapi-token")),
    Rule("sentry-dsn", (b"@",),
         b":" + _SLASH + _SLASH + rb"(?P<secret>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[\w.\-]{3,80}"
         + _SLASH + rb"[\w.\-]",
         _examples([(f"SENTRY_DSN=https://{MARK}@o12345.ingest.sentry.io/67890", _HEX[:32])]),
         (f"https://example.com/{_HEX[:32]}/x@2x.png",)),
    Rule("url-token", (b"@",),
         b":" + _SLASH + _SLASH + rb"(?P<secret>[\w\-]{20,255})(?::[^\s/@\"'`<>\\]{0,64})?@",
         _examples([(f"git clone https://{MARK}@github.com/me/repo.git", _HEX[:40]),
                    (f"https://{MARK}:x-oauth-basic@github.com/me/repo.git", _HEX[1:41])]),
         ("https://continuous-integration-user@github.com/me/repo.git",), judge=_random_match),
    Rule("database-url-password", (b"@",), b":(?:" + _DATABASE_URL + b")" + _URL_HEAD + _URL_SECRET,
         _examples([(f"{scheme}://app:{MARK}@db.internal:5432/app", "s3cr" + "et-Fake")
                    for scheme in ("postgres", "postgresql", "postgresql+asyncpg", "mysql",
                                   "mysql+pymysql", "mariadb", "mongodb", "mongodb+srv", "redis",
                                   "rediss", "amqp", "amqps", "sqlserver", "clickhouse")]
                   + [(f"redis://:{MARK}@cache:6379/0", "Fake" + "r3dis"),
                      (f"postgres://app:{MARK}@db/app", "p@ss" + "w0rd!fake")]),
         ("postgres://app:${DB_PASSWORD}@db/app", "postgres://app:<password>@db/app",
          "postgres://user:password@localhost/db", "postgres://app@db:5432/app",
          "redis://localhost:6379/0", "mysql://root:***@localhost", "amqp://$USER:$PASS@mq"),
         judge=_url_password),
    Rule("url-password", (b"@",), b":" + _URL_HEAD + _URL_SECRET,
         _examples([(f"curl https://me:{MARK}@example.com/x", "s3cr" + "et-Fake"),
                    (f"https:\\/\\/me:{MARK}@example.com\\/x", "fake" + "Pa55"),
                    (f"ftp://me:{MARK}@example.com", "fake" + "%40pass")]),
         ("http://localhost:3000/@vite/client", "https://cdn.example.com:443/npm/@scope/pkg",
          "ssh://git@github.com:22/me/repo", "https://user:pass@example.com",
          "https://{user}:{password}@example.com", "see http://a.b: mail me@example.com"),
         judge=_url_password),
    Rule("slack-webhook", (b"hook",),
         rb"hooks\.slack(?:-gov)?\.com" + _SLASH + rb"(?:services|workflows|triggers)" + _SLASH
         + rb"(?P<secret>(?:[\w\-]|" + _SLASH + rb"){20,})",
         _examples([(f"https://hooks.slack.com/services/{MARK}",
                     f"T{_UPPER[:8]}/B{_UPPER[:8]}/{_MIXED[:24]}")]),
         ("https://hooks.slack.com/services/T000/B000/XXX",)),
    Rule("discord-webhook", (b"hook",),
         rb"discord(?:app)?\.com" + _SLASH + b"api" + _SLASH + rb"(?:v[0-9]+" + _SLASH + b")?"
         + b"webhooks" + _SLASH + rb"(?P<secret>[0-9]{15,20}" + _SLASH + rb"[\w\-]{40,})",
         _examples([(f"https://discord.com/api/webhooks/{MARK}", f"1234567890123456/{_MIXED[:68]}"),
                    (f"https:\\/\\/discord.com\\/api\\/v10\\/webhooks\\/{MARK}",
                     f"123456789012345678\\/{_MIXED[:68]}")]),
         ("https://discord.com/api/webhooks/{id}/{token}",)),
    Rule("teams-webhook", (b"hook",),
         rb"\.webhook\.office\.com" + _SLASH + b"webhookb2" + _SLASH
         + rb"(?P<secret>[\w@\-]{30,}" + _SLASH + b"IncomingWebhook" + _SLASH
         + rb"(?:[\w\-]|" + _SLASH + rb"){30,})",
         _examples([(f"https://x.webhook.office.com/webhookb2/{MARK}",
                     f"{_UUID}@{_UUID}/IncomingWebhook/{_HEX[:32]}/{_UUID}")]),
         ("https://x.webhook.office.com/webhookb2/...",)),
    Rule("discord-bot-token", (b"discord",),
         rb"(?<![a-z0-9_\-.])[mno][a-z0-9_\-]{22,27}\.[a-z0-9_\-]{6}\.[a-z0-9_\-]{27,45}",
         _examples([(f"discord.login('{MARK}')", f"MTA{_MIXED[:23]}.G{_MIXED[:5]}.{_MIXED[:38]}")]),
         ("discord.gateway.intents.message_content_enabled",), folded=True, judge=_random_match),
    Rule("bearer-token", (b"bearer",), rb"bearer[ ]{1,2}(?P<secret>[a-z0-9_\-.~+/=]{16,})",
         _examples([(f"--header 'X-Auth: bearer {MARK}'", _MIXED[:32])]),
         ("bearer authentication-is-required-here", "Bearer YOUR_ACCESS_TOKEN_HERE_PLEASE"),
         folded=True, judge=_random_match),
    Rule("curl-user", (b"curl",),
         rb"[ ](?:-u|--user|--proxy-user)[ =]?[\"'\\]{0,8}[^\s:\"'\\]{1,64}:"
         rb"(?P<secret>[^\s\"'\\]{3,})",
         _examples([(f"curl -s -u admin:{MARK} https://x", "fake" + "pass1"),
                    (f'curl --user "admin:{MARK}" https://x', "Fake!" + "secret")]),
         ("curl -u user:password https://x", "curl -u $USER:$PASS x",
          "docker run -u 1000:1000 curl", 'curl -u "admin:${PW}" https://x'), judge=_curl_password),
    Rule("cookie-header", (b"cookie",),
         rb"cookie[\"'`\\\]]{0,9}(?:[ ]?[:=,]|(?<=--cookie)[ ])[ ]?[\"'`\\]{0,8}"
         rb"(?P<secret>[a-z0-9_.%!\-]{1,64}=[^\r\n\"'`\\]{8,})",
         _examples([(f"Cookie: {MARK}", f"sessionid={_LOWER[:32]}; theme=dark"),
                    (f"Set-Cookie: {MARK}; Path=/; HttpOnly", f"sid={_MIXED[:32]}"),
                    (f'"cookie": "{MARK}"', f"connect.sid=s%3A{_MIXED[:32]}"),
                    (f"curl --cookie '{MARK}' https://x", f"PHPSESSID={_LOWER[:26]}")]),
         ('document.cookie = "theme=dark; path=/; SameSite=Lax"', "cookie: SameSite=Strict; Secure",
          "the cookie name=value pair", "setCookie(name=session_cookie_name)"),
         folded=True, judge=_cookie),
    Rule("password-hash", (b"$",),
         rb"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{50,60}"
         rb"|apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{20,22}"
         rb"|[156y]\$(?:rounds=[0-9]{1,9}\$|j\w{1,4}\$)?[./A-Za-z0-9]{4,32}\$[./A-Za-z0-9]{20,86}"
         rb"|argon2i?d?\$v=[0-9]+\$[\w=,]{5,40}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{20,128}"
         rb"|[0-9]{3,8}\$[./A-Za-z0-9+=]{8,64}\$[A-Za-z0-9+/]{40,128}=*)",
         _examples([(f"admin:{MARK}", "$2y$" + f"10${_MIXED[:53]}"),
                    (f"admin:{MARK}", "$apr1$" + f"{_MIXED[:8]}${_MIXED[:22]}"),
                    (f"root:{MARK}:19000:0:99999:7:::", "$6$" + f"{_MIXED[:16]}${_MIXED[:86]}"),
                    (MARK, "$argon2id$" + f"v=19$m=65536,t=3,p=4${_MIXED[:22]}${_MIXED[:43]}"),
                    (f"pbkdf2_sha256{MARK}", f"$260000${_MIXED[:12]}${_MIXED[:43]}=")]),
         ("echo $1 $2 $3", "awk '{print $2a}'", "costs $5$ or $6", "$2b$ is the prefix of bcrypt")),
    Rule("mnemonic", (b"mnemonic",),
         rb"mnemonic(?:[_ ]phrase)?[\"'`\\\]]{0,9}[ ]?[:=][ ]?[\"'`\\]{0,8}"
         rb"(?P<secret>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})",
         _examples([(f'MNEMONIC="{MARK}"', "test " + "junk " * 10 + "fake"),
                    (f"mnemonic phrase: {MARK}", "fake " + "word " * 22 + "last")]),
         ("mnemonic: a short word for an opcode", "mnemonic = op.name"), folded=True),
)

_KEY_OWNERS = (
    "api access secret private signing signature encryption encrypt auth account master license "
    "service admin app application client consumer shared sharedaccess preshared storage "
    "subscription deploy webhook integration jwt hmac aes write token project role crypto session"
)
ASSIGNED: tuple[Rule, ...] = (
    _assigned("aws-secret-access-key", "key",
              _qualified("key", "secret_access secret-access secretaccess"), _named,
              [(f"AWS_SECRET_ACCESS_KEY={MARK}", f"{_MIXED[:20]}/{_MIXED[1:20]}"),
               (f"aws_secret_access_key = {MARK}", f"{_MIXED[:20]}+{_MIXED[2:21]}"),
               (f'"SecretAccessKey": "{MARK}"', f"{_MIXED[:40]}")],
              "AWS_SECRET_ACCESS_KEY=${{ secrets.AWS_SECRET_ACCESS_KEY }}",
              'aws_secret_access_key = os.environ["AWS_SECRET_ACCESS_KEY"]'),
    _assigned("gcp-private-key-id", "key", rb"key_id(?<=private_key_id)", _named,
              [(f'"private_key_id": "{MARK}"', _HEX[:40])], '"private_key_id": "..."'),
    _assigned("azure-account-key", "key", _qualified("key", "account sharedaccess"), _named,
              [(f"AccountName=x;AccountKey={MARK};EndpointSuffix=core.windows.net",
                _MIXED[:86] + "=="),
               (f"SharedAccessKeyName=x;SharedAccessKey={MARK}", _MIXED[:43] + "=")],
              "AccountKey=<key>;EndpointSuffix=core.windows.net"),
    _assigned("datadog-key", "key",
              _qualified("key", "dd_api dd_app dd-api dd-app datadog_api datadog_app"), _named,
              [(f"DD_API_KEY={MARK}", _HEX[:32]), (f"datadog_app_key: '{MARK}'", _HEX[:40])],
              "DD_API_KEY=<DATADOG_API_KEY>"),
    _assigned("heroku-api-key", "key", _qualified("key", "heroku_api heroku-api"), _named,
              [(f"HEROKU_API_KEY={MARK}", _UUID)], "HEROKU_API_KEY=$KEY"),
    _assigned("cloudflare-api-key", "key",
              _qualified("key", "cf_api cf_global_api cloudflare_api cloudflare_global_api"),
              _named, [(f"CF_API_KEY={MARK}", _HEX[:37])], "CF_API_KEY=your_key"),
    _assigned("cloudflare-api-token", "token",
              _qualified("token", "cf_api cloudflare_api cloudflare cloudflare_tunnel"), _named,
              [(f"CLOUDFLARE_API_TOKEN={MARK}", _MIXED[:40])], "CLOUDFLARE_API_TOKEN=your_token"),
    _assigned("twilio-auth-token", "token",
              _qualified("token", "twilio_auth twilio-auth twilioauth"), _named,
              [(f"TWILIO_AUTH_TOKEN={MARK}", _HEX[:32])], "TWILIO_AUTH_TOKEN=xxxxxxxx"),
    Rule("authorization-header", (b"auth",),
         rb"authorization[\"'`\\\]]{0,9}[ ]?(?:=>|[:=,])[ ]{0,2}[f\"'`\\]{0,9}"
         rb"(?P<scheme>(?:bearer|basic|token|apikey|digest|ssws|bot|key)[ ]{1,2})?"
         rb"(?P<secret>(?!aws4-)[^\s\"'`\\<>${}()\[\],;]{8,})",
         _examples([(f"Authorization: Bearer {MARK}", _MIXED[:32]),
                    (f'curl -H "Authorization: Basic {MARK}" x', "dXNlcjpw" + "YXNzd29yZA=="),
                    (f"'Authorization': 'token {MARK}'", _HEX[:40]),
                    (f'{{"authorization":"{MARK}"}}', _MIXED[:40]),
                    (f"proxy-authorization: Bearer {MARK}", "fake" + "-t0ken1")]),
         ("Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "Authorization: none",
          'headers["Authorization"] = f"Bearer {token}"', "authorization: required for writes",
          "Authorization: Basic functionality", '"Authorization": "Bearer " + token',
          "authorization: AuthorizationPolicy"), folded=True, judge=_header_value),
    Rule("netrc-password", (b"pass",),
         rb"machine[ \t]+\S{1,200}" + _BLANK + rb"login" + _BLANK + rb"\S{1,200}" + _BLANK
         + rb"password" + _BLANK + rb"(?P<secret>[^\s\"'\\]{3,})",
         _examples([(f"machine github.com login me password {MARK}", "fake" + "pass1"),
                    (f"machine github.com\n  login me\n  password {MARK}\n", "Fake" + "word")]),
         ("machine login page password field",
          "machine github.com login me password <password>"), judge=_url_password),
    Rule("ado-connection-string", (b"pass", b"pwd"),
         rb"=(?:(?<=;password=)|(?<=;[ ]password=)|(?<=;pwd=)|(?<=;[ ]pwd=))"
         rb"(?P<secret>[^\s;\"'`\\<>$]{3,})",
         _examples([(f"Server=db;Database=app;User Id=sa;Password={MARK};", "Fake" + "word"),
                    (f"Data Source=db; Uid=sa; Pwd={MARK}", "fake" + "!Pass1")]),
         ("Server=db;User Id=sa;Password=<password>;", "Server=db;Password={0};",
          "x=1;pwd=this.getPwd();"), folded=True, judge=_ado_password),
    _assigned("password", "pass", rb"pass(?:w(?:or)?d|phrase|wort|code)", _literal,
              [(f'password = "{MARK}"', "hunter" + "2"), (f"DB_PASSWORD={MARK}", "fake" + "horse"),
               (f"password: {MARK}\n", "Tr0ub" + "4dor&3"), (f"passwd='{MARK}'", "fake" + "!word"),
               (f'{{"password": "{MARK}"}}', "fake" + "word"),
               (f"export PGPASSWORD={MARK}", "xF9#fake$" + "vL5n"),
               (f'let password: String = "{MARK}"', "fake" + "word9"),
               (f"password := `{MARK}`", "fake" + "word9"),
               (f"my password is {MARK}", "fake" + "word9"),
               (f'os.environ["SMTP_PASSWORD"] = "{MARK}"', "fake" + "word9"),
               (f'{{"name": "DB_PASSWORD", "value": "{MARK}"}}', "fake" + "word9"),
               (f"- name: DB_PASSWORD\n  value: {MARK}\n", "fake" + "word9"),
               (f"define('DB_PASSWORD', '{MARK}');", "fake" + "word9"),
               (f'<add name="Password" value="{MARK}" />', "fake" + "word9"),
               (f"https://x/login?user=me&password={MARK}&next=1", "fake" + "word9"),
               (f"passphrase: '{MARK}'", "a-fake" + "-passphrase")],
              "password: str", "password=password", "password = getpass()", "password: string;",
              'password = os.environ["DB_PASSWORD"]', "password: process.env.DB_PASSWORD,",
              "password: ${DB_PASSWORD}", 'password: "<your-password>"', 'password = "changeme"',
              'password: "********"', "password = user.password", 'type="password"',
              "Password: must be at least 8 characters", 'password: "Enter your password"',
              'label = {password: "Password"}', "password: required", "password_field = 'login'",
              "password: Optional[str] = None", "1Password: agent returned an error",
              'password: "{{ vault_password }}"', "password=%s", "the password is incorrect",
              'for field in ("password", "email", "name"):', '["PASSWORD", "USERNAME", "EMAIL"]',
              'os.environ.get("DB_PASSWORD", "")',
              "DB_PASSWORD=$(cat /run/secrets/db)", "PASSWORD=/run/secrets/db", "password = null",
              "if password == '': return", 'password = "your_password_here"', "PASSWORD=xxxxxxxx",
              op=_op(_COMMA, _IS)),
    Rule("told-passphrase", (b"pass",),
         rb"pass(?P<name>phrase|word|code)[ ](?:is|was)[ ]{1,2}(?P<quote>\\{0,7}[\"'`])?"
         rb"(?P<secret>(?(quote)[^\"'`\\\r\n]{6,120}(?=(?P=quote))"
         rb"|[a-z0-9]{3,20}(?:-[a-z0-9]{2,20}){2,8}(?![\w(=])))",
         _examples([(f"my passphrase is '{MARK}'", "tangerine-" + "fake-9x"),
                    (f"my passphrase is {MARK}.", "tangerine-" + "fake-falcon"),
                    (f'The passphrase was "{MARK}"', "fake horse " + "battery staple"),
                    (f"the password is '{MARK}'", "fake-" + "tangerine")]),
         ("the passphrase is case-sensitive", "my passphrase is 'required'", "passphrase is empty",
          "the password is 'incorrect'", 'the password is "too short"', "the passphrase is wrong",
          "the password is 'your-password'", "the passphrase is '<your-passphrase>'",
          "the passphrase is `process.env.PASSPHRASE`"),
         folded=True, judge=_told_phrase),
    Rule("told-login", (b"login", b"log in", b"creds", b"credential"),
         rb"(?:(?:login|creds|credentials?)(?:[ ]{0,2}[:=]|[ ](?:is|are|with|as))"
         rb"|log in (?:with|as))[ ]{1,3}\\{0,7}[\"'`]?(?P<user>[a-z0-9][\w.+@\-]{1,60})"
         rb"\\{0,7}[\"'`]?(?:[ ]{1,2}[/|][ ]{1,2}|:|(?:,|[ ]and)[ ]pass(?:word)?[ ]{0,2}[:=]?[ ])"
         rb"\\{0,7}[\"'`]?(?P<secret>[^\s\"'`<>()\[\]{}/:;=,\\]{8,64})",
         _examples([(f"login: admin / {MARK}", "Fake" + "2026word!"),
                    (f"Credentials: sam@example.org / {MARK}", "fake" + "W0rd!x"),
                    (f"log in with admin:{MARK}", "Fake" + "word2026"),
                    (f"the credentials are admin / {MARK}", "fake" + "Word99"),
                    (f"creds: admin, pass: {MARK}", "fake" + "word9!")]),
         ("login: /auth/v2/Sessions1", "login: admin / <password>", "login with google / GitHub",
          "login: src/auth/Login2.tsx", "login: handler.ts:Line4200", "login is broken / TODO-123",
          "login as admin and open Settings", "credentials: include, mode: same-origin",
          "login: admin / your_Password1", "log in with Chrome, Version120 is needed"),
         folded=True, judge=_told_login),
    Rule("password-variable", (b"pass", b"pwd"),
         rb"(?P<name>_(?:pass|pwd)" + _SUFFIX + rb")" + _op() + _VALUE,
         _examples([(f"SMTP_PASS={MARK}", "fake" + "word"),
                    (f"MYSQL_PWD='{MARK}'", "fake" + "word")]),
         ("test_pass = compute()", "OLD_PWD=/home/me", "FIRST_PASS=1"),
         folded=True, judge=_variable),
    _assigned("secret", "secret", rb"secret(?:[_\-]?key(?:[_\-]?base)?)?", _literal,
              [(f"JWT_SECRET={MARK}", "fake" + "-jwt-value"),
               (f'client_secret: "{MARK}"', _MIXED[:32]),
               (f"SECRET_KEY = '{MARK}'", "fake-insecure-" + "k3y!value"),
               (f"SECRET_KEY_BASE={MARK}", _HEX[:128]),
               (f'"clientSecret":"{MARK}"', "fake" + "-client-value")],
              "secret: true", "secret = generate_secret()", "secret: my-tls-certificate",
              "secret: db-credentials",
              "client_secret=${CLIENT_SECRET}", "the secret: never give up",
              "secret_name: db-credentials", 'secret: "<secret>"', "secrets: inherit",
              "arn:aws:secretsmanager:eu-1:123456789012:secret:db-a1b2c3", "A_SECRET: Final = 3",
              'SECRET_FIELD, SECRET = "client_secret_id", "client_secret"',
              'SECRET_KEY = env("SECRET_KEY")', "secret: Option<String>,",
              '{"pattern": "LOGIN_SECRET", "path": "/src/x1"}',
              op=_op(_COMMA)),
    _assigned("api-key", "key", _qualified("key", _KEY_OWNERS), _opaque,
              [(f"OPENAI_API_KEY={MARK}", _MIXED[:32]), (f'apiKey: "{MARK}"', _HEX[:32]),
               (f"X-API-Key: {MARK}", _LOWER[:32]), (f"?api_key={MARK}&q=1", _LOWER[:24]),
               (f'private_key = "{MARK}"', "0x" + _HEX[:64]),
               (f"PrivateKey = {MARK}", _MIXED[:43] + "="),
               (f'"access_key": "{MARK}"', "fk3" + "q7zr2"),
               (f"ENCRYPTION_KEY='{MARK}'", _HEX[:64])],
              "api_key: str", 'apiKey: "YOUR_API_KEY"', "apiKey = process.env.API_KEY",
              'api_key="test-key"', "apiKey: apiKey!,", "API_KEY=$API_KEY",
              "privateKey: Uint8Array", 'api_key = config["api_key"]',
              "PublicKey = " + _MIXED[:43] + "=",
              "private_key: vec![0u8; 32]", 'private_key = "keys/id_rsa_2048.pem"'),
    _assigned("token", "token", rb"token", _opaque,
              [(f'token = "{MARK}"', _MIXED[:32]), (f"ACCESS_TOKEN={MARK}", _LOWER[:24]),
               (f"//registry.example.org/:_authToken={MARK}", _UUID),
               (f"https://x/?access_token={MARK}&x=1", _HEX[:40]),
               (f'\\"refresh_token\\": \\"{MARK}\\"', _MIXED[:64]),
               (f"X-Auth-Token: {MARK}", _LOWER[:32])],
              "token = lexer.next()", "token_type: bearer", "max_tokens=4096", "id-token: write",
              'token: "your-access-token-goes-here"', "TOKEN=$(gh auth token)",
              "token: pi-coding-agent SDK error", "next_token = tokens[i + 1]",
              "the token: a short-lived string", "token: T_CONSTANT_ENCAPSED_STRING_2",
              f'"nextPageToken": "{_MIXED[:60]}"', f'"AWS::X::Token": "{_HEX[:16]}"',
              'token="color-primary-500-hover-state"'),
    _assigned("credentials", "credential", rb"credentials?", _opaque,
              [(f'credentials = "{MARK}"', _MIXED[:32])],
              "credentials: include", "persist-credentials: false",
              "credentials = load_credentials()", "Access-Control-Allow-Credentials: true"),
    _assigned("high-entropy-key", "key", rb"key", _high_entropy,
              [(f"STORAGE_KEY_2={MARK}", _MIXED[:44]), (f"key = '{MARK}'", _MIXED[:40])],
              f"cache_key: {_HEX[:40]}", f'"key": "{_UUID}"', f"public_key = {_MIXED[:44]}",
              'key: "translation.namespace.some.nested.identifier"',
              'integrity_key: "sha512-' + _MIXED[:86] + '=="'),
    _assigned("high-entropy-auth", "auth", rb"auth", _high_entropy,
              [(f'"auth": "{MARK}"', _MIXED[:40] + "==")],
              "auth: AuthenticationServiceProviderFactoryBean2"),
    Rule("xml-element", (b"pass", b"secret", b"token", b"key"),
         rb">(?P<secret>[^<>\s]{4,1024})</(?:password|passphrase|secret|token|api[_\-]?key)>",
         _examples([(f"<password>{MARK}</password>", "fake" + "w0rd"),
                    (f"<apiKey>{MARK}</apiKey>", _HEX[:32])]),
         ("<password>secret</password>", "<token>identifier</token>", "<password>${pw}</password>"),
         folded=True, judge=_element),
    Rule("command-line-secret", (b"pass", b"secret", b"token", b"key"),
         rb"--(?:[a-z0-9]{1,20}-){0,3}(?P<name>passw(?:or)?d|pass|passphrase|secret|token"
         rb"|(?:api|access|secret|private)-?key)(?P<op>=|[ ]{1,4})(?!id=)" + _VALUE,
         _examples([(f"mysqldump --password={MARK} db", "fake" + "w0rd"),
                    (f"docker login --password '{MARK}'", "fake" + "word"),
                    (f"app --api-key {MARK} run", _MIXED[:32]),
                    (f"vault login --token={MARK}", "fake-" + "t0ken-9x")]),
         ("use --password to set one", "--token <token>", "--api-key $KEY", "--password-file x1",
          "--secret id=npm,src=.npmrc"), folded=True, judge=_flag),
)

# How the gates of STRUCTURED and ASSIGNED are looked for: several at once, by a letter they share.
# The engine finds a single leading letter at memory speed, and few letters lead any further. Each
# search is wider than every pattern that waits for it; a gate found by none is looked for alone.
_FOLLOWED = (
    rb"[a-z0-9_\-]{0,24}[\"'`\]\\]{0,9}"
    rb"(?:[ \t]{0,20}[=:>]|,|" + _BLANK + rb"[\"'\\]{0,8}value)"
)
SEARCHES: tuple[tuple[tuple[bytes, ...], bytes], ...] = (
    ((b"key", b"token", b"cookie", b"hook"),
     rb"k(?:(?:ey|en(?<=token))(?:" + _FOLLOWED + rb"|(?<=-key) |(?<=-token) )"
     rb"|ie(?<=cookie)|(?<=hook)(?:s\.slack|s\\{0,8}/|\.office))"),
    ((b"curl", b"discord", b"creds", b"secret", b"credential", b"mnemonic"),
     rb"c(?:url|ord(?<=discord)|reds[ :=]|redentials? (?:is|are|with|as) "
     rb"|(?:ret(?<=secret)|redential)(?:" + _FOLLOWED + rb"|(?<=-secret) )"
     rb"|[^a-z](?<=mnemonic.))"),
    ((b"pass", b"pwd", b"dapi"),
     rb"p(?:ass(?:w|phrase|code|(?<=[_\-]pass)[^a-z])|wd" + _FOLLOWED
     + rb"|i[0-9a-f]{4}(?<=dapi....))"),
    ((b"private",), rb"v(?:ate(?<=private))"),
    ((b"bearer",), rb"b(?:earer )"),
    ((b"login", b"log in"), rb"g(?:in(?<=login)[ :=]|[ ]in (?:with|as) )"),
    ((b"auth",), rb"u(?:th(?<=auth)" + _FOLLOWED + rb")"),
)

# fmt: on

RULES: tuple[Rule, ...] = TOKENS + STRUCTURED + ASSIGNED
