"""Redaction: no secret and nothing private gets through, and nothing else is touched."""

from __future__ import annotations

import json
import re
import time
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.redaction import Example, list_examples, list_near_misses
from yester import redact as engine
from yester.ingest.prepare import prepare_item
from yester.model import Item, replace
from yester.redact import (
    find_secrets,
    load_rules,
    may_hold_secrets,
    redact,
    redact_again,
    strip_private,
    use_named_secrets,
)

pytestmark = pytest.mark.requirement("CAP-10")

RULES = load_rules()
EXAMPLES = [example for rule in RULES for example in list_examples(rule)]
NEAR_MISSES = [text for rule in RULES for text in list_near_misses(rule)]
PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9-]+\]|\[private\]")

# The texts here are no leaks: neither key nor password was ever used for anything.
HEX40, HEX64 = "0f1e2d3c4b5a69788796a5b4c3d2e1f001234567", "9b74c9897bac770ffc029102a200c5de" * 2
BASE64 = "ztsxKxt/kkIaAs+2i0Vb0Q9oJ1n8mPq3rYwLxGfEdHcBaTzUvKjIhNlMoSpRqWeX"
BEGIN, END = (f"-----{edge} " + "PRIVATE KEY-----" for edge in ("BEGIN", "END"))


def leaks(secret: str, text: str) -> list[str]:
    """What is left of a secret that must not be; one of several lines is checked line by line."""
    lines = [line for line in re.split(r"\s|\\n", secret) if len(line) > 15]
    return [piece for piece in (lines if len(lines) > 1 else [secret]) if piece in text]


# --- the table --------------------------------------------------------------------------------


def test_every_row_of_the_table_takes_its_examples_and_leaves_its_near_misses() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9-]+", rule.name)
        assert list_examples(rule), rule.name
        assert list_near_misses(rule), rule.name
        for text, secret in list_examples(rule):
            raw = text.encode()
            searched = raw if rule.is_token else raw.lower()
            assert any(gate in searched for gate in rule.gates), rule.name
            left = raw
            matches = engine._find_matches(rule, raw, raw.lower() if rule.ignore_case else raw)
            for start, end in reversed(list(matches)):
                left = left[:start] + left[end:]
            assert not leaks(secret, left.decode()), f"{rule.name} needs the help of others"
            assert not leaks(secret, redact(text)), rule.name
            assert PLACEHOLDER.search(redact(text)), rule.name
        for text in list_near_misses(rule):
            assert redact(text) == text, rule.name


def test_the_placeholder_of_a_rule_matches_no_rule() -> None:
    for rule in RULES:
        mark = f"[redacted:{rule.name}]"
        for text in (
            mark,
            f"password={mark}",
            f'"password": "{mark}"',
            f"TOKEN={mark}",
            f"Authorization: Bearer {mark}",
            f"https://{mark}@host/x",
            f"postgres://user:{mark}@host/x",
            f"Cookie: {mark}; theme={mark}",
            f"curl -u me:{mark} https://x",
            f"--api-key {mark}",
            f"<password>{mark}</password>",
            f"{BEGIN}\n{mark}\n{END}",
            f"machine x login y password {mark}",
            f"Server=db;Password={mark};",
        ):
            assert redact(text) == text, rule.name


def test_gates_outside_the_tokens_are_in_lower_case_and_looked_for() -> None:
    for gate in (gate for rule in RULES if not rule.is_token for gate in rule.gates):
        assert gate == gate.lower()
        assert len(gate) <= engine._REACH
        assert any(
            gate in dict(one.gates) for _, words in engine._load_gates().searches for one in words
        )


def test_only_the_secret_goes_and_its_name_stands_in_its_place() -> None:
    assert redact('a password = "hunter2", b') == 'a password = "[redacted:password]", b'
    assert redact("x postgres://u:hunter2@h/d y") == (
        "x postgres://u:[redacted:database-url-password]@h/d y"
    )


# --- what must stay ---------------------------------------------------------------------------

HARMLESS = {
    "commit id": f"commit {HEX40}\nAuthor: me",
    "sha-256": f"{HEX64}  yester.tar.gz",
    "uuid": "id 123e4567-e89b-12d3-a456-426614174000",
    "lock file": f'"integrity": "sha512-{BASE64}{BASE64[:22]}=="',
    "go.sum": f"github.com/a/b v1.2.3 h1:{BASE64[:43]}=\ngithub.com/a/b v1.2.3/go.mod h1:x=",
    "docker digest": f"FROM python@sha256:{HEX64}",
    "etag": f'ETag: W/"{HEX40[:32]}"',
    "base64 image": f'<img src="data:image/png;base64,{BASE64 * 20}">',
    "css": ".token{color:#0f1e2d;background:url(a.png)}.key--primary:hover{top:0}",
    "minified code": "!function(e,t){var n=e.key||t.token;return n?a(n):r.secret=t}(window,o);",
    "ssh public key": f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{BASE64 * 4} me@host",
    "ssh public key assigned": f"key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{BASE64[:43]}",
    "public key": f"-----BEGIN PUBLIC KEY-----\n{BASE64}\n-----END PUBLIC KEY-----",
    "certificate": f"-----BEGIN CERTIFICATE-----\n{BASE64}\n-----END CERTIFICATE-----",
    "prose": "The token expires after an hour; keep the password and the key in a safe place.",
    "prose with a colon": "Password: choose one you can remember. Token: see below.",
    "library": "pip install sk-learn && import sk-video",
    "model name": "model: claude-opus-4-20250514, tokens: 12345, max_tokens=4096",
    "parser": "token = lexer.next()\nwhile token.kind != Token.EOF: token = self.advance(1)",
    "annotations": "def login(user: str, password: str, token: Optional[str] = None) -> bool:",
    "arguments": "connect(password=password, token=token, api_key=self.api_key, secret=secret)",
    "typescript": "interface A { apiKey: string; token?: string | null; password: Password }",
    "python environment": 'PASSWORD = os.environ["PASSWORD"]\nTOKEN = os.getenv("TOKEN")',
    "node environment": "const apiKey = process.env.API_KEY ?? config.get('apiKey')",
    "shell": 'export TOKEN=$TOKEN KEY=${KEY:-} SECRET="$(pass show x)" PASSWORD=$1',
    "workflow": "token: ${{ secrets.GITHUB_TOKEN }}\npassword: ${{ secrets.DOCKER_PASSWORD }}",
    "template": 'password: "{{ .Values.password }}"\napi_key = "<your-api-key>"',
    "masks": "password=********\ntoken: xxxxxxxxxxxxxxxx\napi_key: ...\nsecret=•••••••",
    "stand-ins": 'api_key="your_api_key_here" password="changeme" secret="REPLACE_ME_PLEASE"',
    "nothing": "password: null\ntoken = None\nsecret: true\napi_key: undefined\nkey = ''",
    "rust": "let token: Option<Vec<u8>> = None; private_key: &[u8; 32], secret: SecretKey::new(&a)",
    "go": "token := os.Getenv(\"TOKEN\")\nif password == \"\" { return ErrPassword }",
    "sql": "CREATE TABLE users (password TEXT NOT NULL, token VARCHAR(64), api_key UUID)",
    "urls": "http://localhost:80/@id/x https://a.b/c?key=name&token_type=bearer git@github.com:a/b",
    "shell positions": "awk '{print $1, $2}' | sed 's/$/x/' # costs $5 or $6",
    "file names": "secret: config/secret.yaml, private_key_path = /etc/ssl/private/server.key",
    "react": '<li key={item.id} token="primary"><input type="password" name="password" /></li>',
    "kubernetes": "secretKeyRef:\n  name: db-credentials\n  key: password\nsecretName: my-tls",
    "cookie words": "Set a cookie; the cookie: SameSite=Lax. Accept cookies=true",
    "basic words": "Authorization: Basic authentication is required; Bearer tokens are better",
}  # fmt: skip


def test_what_is_no_secret_stays() -> None:
    assert {label: redact(text) for label, text in HARMLESS.items()} == HARMLESS


def test_a_text_without_anything_to_redact_comes_back_as_the_same_object() -> None:
    text = "Nothing to see here, only prose about tokens and keys. " * 100
    assert redact(text) is text


@given(st.text())
def test_a_text_without_any_gate_comes_back_as_the_same_object(text: str) -> None:
    raw = text.encode()
    for rule in RULES:
        searched = raw if rule.is_token else raw.lower()
        assume(not any(gate in searched for gate in rule.gates))
    assert redact(text) is text


# --- any secret, anywhere ---------------------------------------------------------------------


def quoted(text: str) -> str:
    return json.dumps({"role": "user", "content": text}, ensure_ascii=False)


SURROUNDINGS = {
    "alone": lambda text: text,
    "in JSON": quoted,
    "in JSON in JSON": lambda text: quoted(quoted(text)),
    "in ASCII JSON": lambda text: json.dumps([text, text]),
    "on lines added in a diff": lambda text: "@@ -1 +1 @@\n+" + text.replace("\n", "\n+") + "\n",
    "on lines removed in a diff": lambda text: "-" + text.replace("\n", "\n-") + "\n context",
    "in a shell command": lambda text: f"$ cd /x && echo {text} | tee out.log",
    "in single quotes": lambda text: f"'{text}'",
    "in double quotes": lambda text: f'"{text}"',
    "in backticks": lambda text: f"see `{text}` above",
    "in a URL": lambda text: f"https://example.com/path?q=1&next={text}",
    "in a Markdown block": lambda text: f"Here it is:\n\n```sh\n{text}\n```\n\nDone.",
    "in a listing with line numbers": lambda text: "\n".join(
        f"  {n}→{line}" for n, line in enumerate(text.split("\n"), 1)
    ),
    "after a tab and before a carriage return": lambda text: f"\t{text}\r\nnext",
    "between other scripts": lambda text: f"Пароль: 密码 😀 {text} — конец",
    "in brackets": lambda text: f"[{text}] ({text})",
    "in a long text": lambda text: f"{'word and ' * 300}\n{text}\n{'more text ' * 200}",
    "in colour": lambda text: f"\x1b[31m{text}\x1b[0m",
    "twice": lambda text: f"{text}\n{text}",
}  # fmt: skip


def test_a_secret_goes_in_every_surrounding() -> None:
    for (text, secret), surroundings in product(EXAMPLES, SURROUNDINGS):
        redacted = redact(SURROUNDINGS[surroundings](text))
        assert not leaks(secret, redacted), (text, surroundings)
        assert redact(redacted) == redacted, (text, surroundings)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(EXAMPLES),
    st.text(st.characters(exclude_categories=["L", "N"]), max_size=40),
    st.text(max_size=200),
    st.sampled_from(sorted(SURROUNDINGS)),
    st.sampled_from(["\n", " \n", "\r\n", "\n\n"]),
)
def test_a_secret_goes_between_any_other_texts(
    example: Example, before: str, after: str, surroundings: str, line_break: str
) -> None:
    assume("'" not in before and '"' not in before and "`" not in before)
    text = before + line_break + SURROUNDINGS[surroundings](example.text) + line_break + after
    assert not leaks(example.secret, redact(text))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=6), st.sampled_from("\n ;,\t|"))
def test_several_secrets_go_together(examples: list[Example], gap: str) -> None:
    redacted = redact("\n".join(example.text + gap for example in examples))
    assert not [piece for example in examples for piece in leaks(example.secret, redacted)]


fragments = st.one_of(
    st.sampled_from([example.text for example in EXAMPLES]),
    st.sampled_from(NEAR_MISSES),
    st.sampled_from([gate.decode() for rule in RULES for gate in rule.gates]),
    st.sampled_from(["<private>", "</private>", "[redacted:token]", "[private]", "password=", '"']),
    st.text(st.characters(exclude_categories=[]), max_size=20),
)
mixtures = st.lists(fragments, max_size=8).map("".join)


@settings(deadline=None, max_examples=60)
@given(mixtures)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@settings(deadline=None, max_examples=60)
@given(mixtures)
def test_what_is_left_was_there_before_and_in_the_same_order(text: str) -> None:
    assume("private" not in text.lower())  # a dropped tag joins what stood around it
    assume(not PLACEHOLDER.search(text))
    position = 0
    for kept in PLACEHOLDER.split(redact(text)):
        found = text.find(kept, position)
        assert found >= 0
        position = found + len(kept)


def test_what_has_taken_the_place_of_a_password_tells_of_no_other() -> None:
    text = "postgres://app:p@ssw0rd!fake@db/appAKIAFAKE0Q7ZR2XW9LM4"
    kept = "postgres://app:[redacted:database-url-password]@db/appAKIAFAKE0Q7ZR2XW9LM4"
    assert redact(text) == kept
    text = "http -redis-cli -h cache -a fakew0rd ping"
    assert redact(text) == text.replace("fakew0rd", "[redacted:option-password]")


def test_a_value_longer_than_any_limit_goes_as_a_whole() -> None:
    secret = "Fk3q7Zr2Xw9Lm4Tb8Vn1Yc6H" * 400
    for text in (f'token = "{secret}"', f"API_KEY={secret}", f"Authorization: Bearer {secret}"):
        assert not re.search(r"Fk3q|Yc6H", redact(text))


def test_lone_surrogates_and_other_scripts_survive() -> None:
    text = '\udc80 密码 password="hunter2" 😀\ud800'
    assert redact(text) == '\udc80 密码 password="[redacted:password]" 😀\ud800'


def test_a_secret_that_ends_within_a_limit_of_bytes_leaves_whole_characters() -> None:
    text = 'password = "' + "é" * 600 + "1x" + '" rest'
    assert redact(text).encode().endswith(b"rest")


def test_a_key_block_that_was_cut_off_goes_without_the_text_after_it() -> None:
    head = f"{BEGIN}\nMII{BASE64[:61]}\n{BASE64[3:]}"
    redacted = redact(f"{head}\n\nThe key ends here.")
    assert redacted.endswith("The key ends here.")
    assert not leaks(head, redacted)


def test_a_beginning_that_is_turned_down_does_not_hide_the_secret_after_it() -> None:
    assert "hunter2" not in redact('password: password="hunter2"')
    assert "hunter2" not in redact('secret=secret="hunter2"')


# --- reporting --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(mixtures)
def test_found_secrets_are_in_order_disjoint_and_within_the_text(text: str) -> None:
    end = 0
    for start, stop, name in find_secrets(text):
        assert end <= start < stop <= len(text)
        assert name in {rule.name for rule in RULES}
        end = stop


def test_found_secrets_count_characters_not_bytes() -> None:
    text = 'Пароль password="hunter2" 密 password="hunter3"'
    assert [text[start:end] for start, end, _ in find_secrets(text)] == ["hunter2", "hunter3"]


# --- judging values ---------------------------------------------------------------------------


def test_entropy_is_in_bits_per_byte() -> None:
    assert engine.shannon_entropy(b"") == 0
    assert engine.shannon_entropy(b"aaaaaaaa") == 0
    assert engine.shannon_entropy(b"abababab") == pytest.approx(1)
    assert engine.shannon_entropy(bytes(range(256))) == pytest.approx(8)


def test_a_value_drawn_by_a_machine_looks_random_and_one_made_of_words_or_numbers_does_not() -> (
    None
):
    random = "Fk3q7Zr2Xw9Lm4Tb8Vn1 0f1e2d3c4b5a69788796a5b4 123e4567-e89b-12d3-a456-426614174000"
    words = (
        "color-primary-500-hover AuthenticationServiceProvider short1 my_module_v2.function"
        " 1234567890123456 aaaaaaaaaaaaaaaa1 ApiGatewayApiKey"
    )
    assert [value for value in random.split() if not engine.looks_random(value.encode())] == []
    assert [value for value in words.split() if engine.looks_random(value.encode())] == []


# --- private ----------------------------------------------------------------------------------

PRIVATE_TEXTS = {
    "mentioned": ("a `<private>` b `</private>` c", "a `<private>` b `</private>` c"),
    "half quoted": ("a `<private> b", "a `[private]"),
    "closed": ("a <private>x</private> b", "a [private] b"),
    "two": ("a <private>x</private> b <private>y</private> c", "a [private] b [private] c"),
    "unclosed": ("a <private>x\ny\nz", "a [private]"),
    "upper case": ("a <PRIVATE>x</PRIVATE> b", "a [private] b"),
    "mixed case": ("a <Private>x</pRIVATE> b", "a [private] b"),
    "nested": ("a <private>x <private>y</private> z</private> b", "a [private] b"),
    "nested and unclosed": ("a <private>x <private>y</private> z", "a [private]"),
    "attributes": ('a <private reason="x" level=2>y</private> b', "a [private] b"),
    "attribute with a tag": ('a <private reason="a<b">y</private> b', "a [private] b"),
    "attribute with an end": ('a <private reason="a>b">y</private> b', "a [private] b"),
    "white space": ("a < private >x</private > b < / private > c", "a [private] b  c"),
    "line breaks": ("a <private\n>x\n</private\n> b", "a [private] b"),
    "empty element": ("a <private/> b", "a [private] b"),
    "empty span": ("a <private></private> b", "a [private] b"),
    "escaped": ("a \\u003cprivate\\u003ex\\u003c/private\\u003e b", "a [private] b"),
    "escaped in upper case": ("a \\u003Cprivate\\u003Ex\\u003C/private\\u003E b", "a [private] b"),
    "escaped with an attribute": ('a \\u003cprivate r=\\"x\\"\\u003ey\\u003c/private\\u003e b',
                                  "a [private] b"),
    "escaped and unclosed": ("a \\u003cprivate\\u003ex", "a [private]"),
    "as HTML": ("a &lt;private&gt;x&lt;/private&gt; b", "a [private] b"),
    "in a URL": ("a=%3Cprivate%3Ex%3C/private%3E&b", "a=[private]&b"),
    "opened plainly, closed escaped": ("a <private>x\\u003c/private\\u003e b", "a [private] b"),
    "stray end": ("a </private> b", "a  b"),
    "stray end, then a span": ("a </private> b <private>x</private> c", "a  b [private] c"),
    "one end too many": ("a <private>x</private></private> b", "a [private] b"),
    "tag put together by dropping one": ("a <</private>private>x</private> b", "a [private]"),
    "whole text": ("<private>x</private>", "[private]"),
}  # fmt: skip

NOT_PRIVATE = [
    "a private matter", "private: true", "private key", "List<private_t>",
    "<privateKey>x</privateKey>", "class A { private int x; }", "<public>x</public>",
    "if a < private_limit and b > 2", "",
]  # fmt: skip


@pytest.mark.requirement("CAP-09")
def test_private_spans_are_never_stored() -> None:
    for label, (text, expected) in PRIVATE_TEXTS.items():
        assert (strip_private(text), redact(text)) == (expected, expected), label


@pytest.mark.requirement("CAP-09")
def test_in_the_output_of_a_tool_a_span_that_nobody_closes_ends_with_its_line() -> None:
    item = Item("1", "message", "p", role="tool", tool="Bash", body="a <private>x\ny <private>z")
    assert prepare_item(item).item.body == "a [private]\ny [private]"
    closed = replace(item, body="a <private>x\ny</private> z\n<private>q")
    assert prepare_item(closed).item.body == "a [private] z\n[private]"
    typed = replace(item, role="user", kind="prompt", tool="")
    assert prepare_item(typed).item.body == "a [private]"


@pytest.mark.requirement("CAP-09")
def test_the_word_private_alone_hides_nothing() -> None:
    for text in NOT_PRIVATE:
        assert strip_private(text) is text
        assert redact(text) is text


@pytest.mark.requirement("CAP-09")
@settings(deadline=None)
@given(st.text(), st.text(), st.text(), st.booleans())
def test_nothing_of_a_private_span_is_left(
    before: str, inside: str, after: str, shut: bool
) -> None:
    secret = f"q{inside}q-hidden-4711"
    text = f"{before}<private>{secret}{'</private>' if shut else ''}{after}"
    redacted = redact(text)
    assert "hidden-4711" not in redacted
    assert "[private]" in redacted


@pytest.mark.requirement("CAP-09")
@settings(deadline=None)
@given(st.lists(st.sampled_from(["<private>", "</private>", "x", " ", "<", "</", ">", "private"])))
def test_stripping_twice_changes_nothing(parts: list[str]) -> None:
    once = strip_private("".join(parts))
    assert strip_private(once) == once
    assert not engine._TAG.search(once)


@pytest.mark.requirement("CAP-09")
def test_a_tag_put_together_again_and_again_hides_what_follows() -> None:
    tag = "<private>"
    for _ in range(20):
        tag = tag[:5] + "</private>" + tag[5:]
    assert strip_private(f"a {tag}x") == "a [private]"


# --- written for a machine --------------------------------------------------------------------


@pytest.mark.requirement("OPS-07")
@pytest.mark.parametrize(
    "text",
    [
        "\x1b[32mDB_PASSWORD\x1b[0m=\x1b[33mfakeW0rd9\x1b[0m",
        'password = \\\n    "fakeW0rd9"',
        "curl -u \\\n  me:fakeW0rd9 https://example.org",
        'token = "ghp_Fake0q7Zr2fakeW0rd9" + "Lm4Tb8Vn1Yc6Hd5Js3Gp"',
        '{"text": "\\u5bc6\\u7801: fakeW0rd9"}',
        "password%3DfakeW0rd9%26user%3Dme",
        "{&quot;password&quot;: &quot;fakeW0rd9&quot;}",
    ],
)
def test_colours_broken_lines_and_escapes_hide_nothing(text: str) -> None:
    assert "fakeW0rd9" not in redact(text)
    assert may_hold_secrets(text)


def test_a_text_without_a_secret_keeps_its_colours_and_broken_lines() -> None:
    text = "\x1b[32mok\x1b[0m\nmake a \\\n  b"
    assert redact(text) is text


@pytest.mark.requirement("OPS-05", "OPS-07")
def test_four_times_as_many_hidden_secrets_take_no_sixteen_times_as_long() -> None:
    def measure(many: int) -> float:
        text = "".join(f"\x1b[1mpassword\x1b[22m: hunT3r{n}xyZ\n" for n in range(many))
        began = time.process_time()
        assert redact(text).count("[redacted:") == many
        return time.process_time() - began

    small, large = (min(measure(many) for _ in range(2)) for many in (1_000, 4_000))
    assert large < 8 * small


# --- the same value elsewhere -----------------------------------------------------------------


@pytest.mark.requirement("OPS-07")
def test_a_value_that_was_found_goes_wherever_else_it_stands_in_the_text() -> None:
    left = redact("DB_PASSWORD=fakeW0rd9xQ\nthen it printed fakeW0rd9xQ and (fakeW0rd9xQ)")
    assert "fakeW0rd9xQ" not in left
    assert left.count("[redacted:password]") == 3


def test_half_a_character_in_a_value_stops_nothing() -> None:
    assert "fakeW0rd" not in redact("DB_PASSWORD=fakeW0rd\ud8009xQ\nthen fakeW0rd\ud8009xQ again")


def test_a_word_that_somebody_took_for_a_password_stays_where_it_is_a_word() -> None:
    left = redact('password = "harbourmaster"\nthe harbourmaster module starts')
    assert left.endswith("the harbourmaster module starts")


def test_a_text_known_to_be_clean_is_looked_through_for_what_the_user_names_since(monkeypatch):
    monkeypatch.setattr(engine, "_named", {})
    text, secret = "The gate opens with heliotrope at noon", "token ghp_" + "a1B2c3D4e5F6" * 3
    assert redact_again(text) is text
    assert redact_again(secret) == redact(secret) != secret
    at = text.index("heliotrope")
    use_named_secrets("home", lambda one: [(at, at + 10, "named")] if one == text else [])
    assert redact_again(text) == "The gate opens with [redacted:named] at noon"
