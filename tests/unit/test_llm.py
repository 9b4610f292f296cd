"""Backends of language models against servers that speak their wire formats and misbehave."""

from __future__ import annotations

import traceback

import pytest

from tests.models import KEY, Reply, serving
from tests.table import each
from yester.config import load_config
from yester.errors import Busy, ConfigError, LlmError, Malformed, Unreachable
from yester.llm.client import Anthropic, OpenAi, open_model, read_key
from yester.llm.questions import Prompt, turn_prompt

TURN_SCHEMA = turn_prompt("", (), ()).schema
pytestmark = pytest.mark.requirement("DIS-04")

MAKE = {"anthropic": Anthropic, "openai": OpenAi}
MODEL = {"anthropic": "claude-haiku-5-5", "openai": "qwen3:8b"}
TEXT = "the words of the turn"
PROMPT = Prompt("turn/1", "what to do", TEXT, TURN_SCHEMA, 500)


@pytest.fixture(params=MAKE)
def wire(request):
    return request.param


@pytest.fixture
def server(wire):
    with serving(wire) as scripted:
        yield scripted


@pytest.fixture
def model(server):
    return MAKE[server.wire](MODEL[server.wire], KEY, server.url)


def ask(model, seconds=5.0):
    return model.complete(PROMPT, seconds)


def test_an_answer_comes_with_what_it_cost(model, server):
    server.say('{"a": 1}')
    answer = ask(model)
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ('{"a": 1}', 120, 30)
    assert answer.stop == "done"
    (asked,) = server.asked
    assert asked.body["model"] == model.name
    assert TEXT in str(asked.body["messages"])
    assert "temperature" not in asked.body


def test_anthropic_is_asked_in_its_own_format():
    with serving("anthropic") as server:
        server.say("{}")
        ask(Anthropic("claude-haiku-5-5", KEY, server.url))
        ask(Anthropic("claude-haiku-4-5", KEY, server.url.removesuffix("/v1")))
        new, old = server.asked
    assert new.path == old.path == "/v1/messages"
    assert new.headers["x-api-key"] == KEY
    assert new.headers["anthropic-version"] == "2023-06-01"
    assert new.body["system"] == "what to do"
    assert new.body["messages"] == [{"role": "user", "content": TEXT}]
    assert new.body["max_tokens"] == 500
    form = {"type": "json_schema", "schema": TURN_SCHEMA}
    assert new.body["output_config"] == {"format": form, "effort": "low"}
    assert old.body["output_config"] == {"format": form}  # that generation knows no effort


def test_a_compatible_server_is_asked_in_openais_format():
    with serving("openai") as server:
        server.say("{}")
        ask(OpenAi("qwen3:8b", "", server.url))
        ask(OpenAi("qwen3:8b", KEY, server.url.removesuffix("/v1")))
        bare, keyed = server.asked
    assert bare.path == keyed.path == "/v1/chat/completions"
    assert "authorization" not in bare.headers
    assert keyed.headers["authorization"] == f"Bearer {KEY}"
    assert [m["role"] for m in bare.body["messages"]] == ["system", "user"]
    assert bare.body["max_tokens"] == 500  # a name that every one of them knows
    assert bare.body["response_format"]["json_schema"]["schema"] == TURN_SCHEMA
    assert bare.body["response_format"]["json_schema"]["strict"] is True
    assert "reasoning_effort" not in bare.body


def test_openai_itself_is_limited_by_the_name_its_models_take():
    _, _, new = OpenAi("gpt-6-luna", KEY)._write_request(PROMPT)
    _, _, old = OpenAi("gpt-4.1-mini", KEY)._write_request(PROMPT)
    assert new["max_completion_tokens"] == old["max_completion_tokens"] == 500
    assert (new["reasoning_effort"], "reasoning_effort" in old) == ("low", False)


@pytest.mark.parametrize("stop", ["length", "refusal"])
def test_an_answer_that_was_cut_off_or_refused_says_so_and_what_it_cost(model, server, stop):
    server.say(Reply('{"a": ', stop=stop))
    answer = ask(model)
    assert (answer.stop, answer.tokens_in) == (stop, 120)


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("soon", None), ("nan", None)]
)
def test_a_busy_server_says_how_long_to_wait(model, server, status, header, seconds):
    server.say(Reply(status=status, message="slow down", headers={"Retry-After": header}))
    with pytest.raises(Busy, match=rf"127.0.0.1 is busy \({status}\): slow down") as caught:
        ask(model)
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b'"text"', b"<html>gateway</html>", b'{"content": 3}',
     b'{"choices": []}', b'{"choices": [{"message": 3}]}', b'{"content": [], "usage": []}',
     b'{"choices": [{"message": {"content": 3}}]}', b"\xff\xfe"],
)  # fmt: skip
def test_what_is_not_of_the_protocol_is_malformed(model, server, raw):
    server.say(Reply(raw=raw))
    with pytest.raises(Malformed, match="not of its protocol"):
        ask(model)


@pytest.mark.parametrize(
    ("reply", "said", "kind"),
    [
        (Reply(status=401, message="no"), "does not take this key .401.; check llm.key", LlmError),
        (Reply(status=403), "does not take this key", LlmError),
        (Reply(status=404, message="no such"), "answered 404 Not Found: no such", LlmError),
        (Reply(status=500, message="oops"), "failed .500.: oops", Unreachable),
        (Reply(status=502, raw=b"<html>"), "failed .502.", Unreachable),
        (Reply("{}", cut=True), "ends in the middle", Unreachable),
        (Reply(silent=True), "no answer within 0.2 s", Unreachable),
        (Reply(drip=True), "no answer within 0.2 s", Unreachable),
    ],
)  # fmt: skip
def test_whatever_goes_wrong_is_one_sentence_without_the_key_or_the_text(
    model, server, reply, said, kind
):
    server.say(reply)
    with pytest.raises(kind, match=said) as caught:
        ask(model, 0.2 if reply.silent or reply.drip else 5.0)
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told
    assert TEXT not in str(caught.value)


def test_a_server_that_quotes_the_key_is_not_repeated(model, server):
    server.say(Reply(status=400, message=f"the key {KEY} may not do this, nor {KEY[:-1]}"))
    with pytest.raises(LlmError, match="answered 400") as caught:
        ask(model)
    assert KEY[13:-2] not in str(caught.value)


def test_a_redirect_to_another_host_is_not_followed(model, server):
    with serving(server.wire) as other:
        other.say("{}")
        server.say(Reply(status=307, headers={"Location": f"{other.url}/messages"}))
        with pytest.raises(LlmError, match=r"points elsewhere \(307\), which is not followed"):
            ask(model)
        assert other.asked == []


def test_a_server_that_is_not_there_was_sent_nothing(wire):
    with pytest.raises(Unreachable, match=r"127.0.0.1: .*refused") as caught:
        ask(MAKE[wire](MODEL[wire], KEY, "http://127.0.0.1:9/v1"))
    assert not caught.value.sent


def test_a_question_that_was_never_answered_may_have_arrived(model, server):
    server.say(Reply(silent=True))
    with pytest.raises(Unreachable) as caught:
        ask(model, 0.1)
    assert caught.value.sent


@each(
    ("wire", "message"),
    [
        ("anthropic", "this model does not support the effort parameter"),
        ("anthropic", "output_config.format: Extra inputs are not permitted"),
        ("openai", "response_format: json_schema is not supported here"),
    ],
)
def test_a_model_that_does_not_know_a_wish_is_asked_without_it_the_next_time(wire, message):
    with serving(wire) as server:
        model = MAKE[wire](MODEL[wire], KEY, server.url)
        server.say(Reply(status=400, message=message), "{}")
        with pytest.raises(Malformed, match="does not know all that was asked of it"):
            ask(model)
        assert ask(model).text == "{}"
        body = server.asked[1].body
    assert "output_config" not in body
    assert "response_format" not in body


def test_a_router_that_fails_behind_a_good_head_is_no_answer():
    with serving("openai") as server:
        model = OpenAi("anthropic/claude-haiku-4.5", KEY, server.url)
        failed = b'{"error": {"code": 429, "message": "upstream is busy"}, "choices": []}'
        server.say(Reply(raw=failed, headers={"Retry-After": "3"}))
        with pytest.raises(Busy, match="upstream is busy") as caught:
            ask(model)
        assert caught.value.retry_after == 3
        server.say(Reply(raw=b'[{"error": {"message": "wrapped"}}]', status=404))
        server.replies.pop(0)
        with pytest.raises(LlmError, match="answered 404 Not Found: wrapped"):
            ask(model)


def test_a_local_server_that_counts_no_tokens_is_no_failure():
    with serving("openai") as server:
        server.say(Reply("{}", tokens=None))
        answer = ask(OpenAi("m", "", server.url))
    assert (answer.tokens_in, answer.tokens_out) == (0, 0)


def test_no_variable_sends_a_question_elsewhere(model, server, monkeypatch):
    server.say("{}")
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-somebody-else")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Steered: 1")
    assert ask(model).text == "{}"
    assert "of-somebody-else" not in str(server.asked)
    assert "x-steered" not in server.asked[0].headers


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("http://localhost:11434/v1", True),
        ("http://[::1]:1234/v1", True),
        ("https://openrouter.ai/api/v1", True),
        ("http://models.example/v1", False),
        ("http://127.0.0.1.models.example", False),
        ("http://10.0.0.5/v1", False),
        ("https://sam:pw@models.example/v1", False),
        ("ftp://localhost/v1", False),
        ("http://localhost:port", False),
        ("http://[", False),
        ("localhost:11434", False),
    ],
)
def test_plain_http_goes_to_this_machine_only(wire, url, fine):
    if fine:
        MAKE[wire]("m", KEY, url)
        return
    with pytest.raises(ConfigError, match=r"llm\.url is") as caught:
        MAKE[wire]("m", KEY, url)
    assert "pw" not in str(caught.value)


# --- settings ------------------------------------------------------------------------------------


def settings(folder, text, environ=None):
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    return load_config(folder, environ or {})


def test_without_a_setting_there_is_no_model(tmp_path):
    environ = {
        "YESTER_LLM_PROVIDER": "anthropic", "YESTER_LLM.PROVIDER": "anthropic",
        "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "YESTER_LLM_KEY": KEY,
    }  # fmt: skip
    assert open_model(load_config(tmp_path, environ)) is None


@pytest.mark.parametrize(
    ("text", "name", "here"),
    [
        ("provider = 'anthropic'\nkey = 'k'", "claude-haiku-5-5", False),
        ("provider = 'anthropic'\nkey = 'k'\nmodel = 'claude-opus-5-5'", "claude-opus-5-5", False),
        ("provider = 'openai'\nmodel = 'm'\nurl = 'http://localhost:11434/v1'", "m", True),
        ("provider = 'openai'\nmodel = 'gpt-6-luna'\nkey = 'k'", "gpt-6-luna", False),
    ],
)
def test_the_settings_name_a_model(tmp_path, text, name, here):
    model = open_model(settings(tmp_path, f"[llm]\n{text}"))
    assert (model.name, model.here) == (name, here)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("provider = 'gemini'", "llm.provider is 'gemini', but must be none, anthropic, openai"),
        ("provider = 'anthropic'", "llm.provider anthropic needs llm.key"),
        ("provider = 'openai'", "needs llm.model"),
        ("provider = 'openai'\nmodel = 'm'", "needs llm.key, or llm.url of another server"),
        ("provider = 'anthropic'\nkey = '/nonexistent/key'", "which cannot be read"),
        ("provider = 'anthropic'\nkey = \"a\\u0007b\"", "holds characters that no key has"),
        ("provider = 'claude'\nprogram = 'claude'", "must be the full path of a program"),
        ("provider = 'claude'\nprogram = '/nonexistent/claude'", "must be the full path"),
        ("provider = 3", r"llm\.provider is 3, but must be a text"),
        ("key = 3", r"llm\.key is \(not shown\), but must be a text"),
        ("daily_dollars = -1", "llm.daily_dollars is -1, but must be a number of at least 0"),
        ("daily_dollars = nan", "llm.daily_dollars is nan"),
        ("in_flight = 0", "of at least 1"),
    ],
)  # fmt: skip
@pytest.mark.requirement("OPS-04")
def test_a_setting_that_cannot_work_is_named_with_the_fix(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        open_model(settings(tmp_path, f"[llm]\n{text}"))


def test_llm_must_be_a_section(tmp_path):
    with pytest.raises(ConfigError, match=r"llm must be a section: \[llm\]"):
        settings(tmp_path, "llm = 'anthropic'")


def test_a_key_may_stand_in_a_file_of_ones_own(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="others may read; chmod 600"):
        read_key(str(path))
    path.chmod(0o600)
    assert read_key(str(path)) == KEY
    assert read_key(KEY) == KEY
    assert read_key("") == ""
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_key(str(path))


def test_the_key_is_never_printed(run, home):
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f"[llm]\nprovider = 'anthropic'\nkey = '{KEY}'\n")
    (home / "config.toml").chmod(0o600)
    for words in (("config",), ("config", "--json"), ("stats",), ("stats", "--json"), ("doctor",)):
        ran = run(*words)
        assert ran.code == 0, ran.err
        assert KEY not in ran.out + ran.err
