"""A language model: one question, one answer. Off unless the section [llm] of config.toml says so.

Everything about it comes from that file and nothing from the environment, which a repository can
set. What a call may cost, what is asked and whether an answer is good is decided elsewhere
(`budget`, `questions`). Import it only where a model is set: it loads what can send.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yester.config import Config
from yester.errors import Busy, ConfigError, LlmError, Malformed, StoreBusy, Unreachable
from yester.llm.questions import Prompt
from yester.machine import account_home, kill_group
from yester.store.lock import write_lock
from yester.tables import load_table
from yester.text.server import BUSY, Server, clean_message, protocol_error, sendable_text

PROVIDERS = ("none", "anthropic", "openai", "claude")
DEFAULT_MODEL = "claude-haiku-5-5"
_TABLE = load_table("llm")
CLAUDE_PLACES: Sequence[str] = _TABLE["claude"]["places"]
CLAUDE_QUIET: Mapping[str, str] = _TABLE["claude"]["quiet"]
_Request = tuple[str, dict[str, str] | None, dict[str, Any]]  # path, headers, body
_LONGEST_KEY = 4096
_WISHES = re.compile(r"effort|reasoning|output_config|format|schema", re.I)


class Answer(msgspec.Struct, frozen=True):
    """`stop` is done, length (cut off) or refusal; `cost` where the provider tells it itself."""

    text: str
    tokens_in: int
    tokens_out: int
    stop: str = "done"
    cost: float | None = None


def open_model(config: Config) -> Model | None:
    """What the settings name; None where they name nothing. ConfigError says what to correct."""
    provider = config.text("llm.provider")
    if provider not in PROVIDERS:
        raise ConfigError(f"llm.provider is {provider!r}, but must be {', '.join(PROVIDERS)}")
    if provider == "none":
        return None
    model, url = config.text("llm.model"), config.text("llm.url")
    key = read_key(config.text("llm.key"))
    if provider == "openai":
        if not model:
            raise ConfigError("llm.provider openai needs llm.model, the name of the model there")
        return OpenAi(model, key, url)
    model = model or DEFAULT_MODEL
    if provider == "anthropic":
        return Anthropic(model, key, url)
    program = find_claude(config.text("llm.program"))
    return Claude(model, key, url, program, config.home, config.texts("claude_code_dirs"))


def read_key(text: str) -> str:
    """The key itself, or what stands in the file it names; nobody else may read that file."""
    if text.startswith(("/", "~/")):
        path = Path(text).expanduser()
        try:
            mode = path.stat().st_mode
            text = path.read_text("utf-8")[:_LONGEST_KEY].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"llm.key names {path}, which cannot be read ({error})") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ConfigError(f"llm.key names {path}, which others may read; chmod 600 {path}")
    if not text.isascii() or not text.isprintable():
        raise ConfigError("llm.key holds characters that no key has; copy it anew")
    return text


# --- servers -----------------------------------------------------------------------------------


class _ServedModel:
    """A model behind HTTP. A dialect says how a question is written and an answer read."""

    calls = 1  # how many times the price of one request a question may cost
    provider: str
    url: str  # where the provider's own server is
    domain: str
    thinks: re.Pattern[str]  # models that are told to think little

    def __init__(self, model: str, key: str, url: str = "") -> None:
        self.name = model  # in prices and in what was spent
        self._server = Server(url or self.url, key, "llm.url")
        self.here = self._server.here  # does it answer on this machine, where nobody is paid?
        self._is_own = self._server.host.endswith(self.domain)
        if self._is_own and not key:
            raise ConfigError(
                f"llm.provider {self.provider} needs llm.key, or llm.url of another server"
            )
        self._asks_format, self._asks_effort = True, self.thinks.search(model) is not None

    def complete(self, prompt: Prompt, seconds: float) -> Answer:
        """The answer to a question, if it comes within `seconds`.

        Its schema is asked for where the provider can be; the answer may differ all the same.
        Raises Busy, Unreachable or Malformed, or a plain LlmError where asking again is no use. No
        error quotes the key or the text.
        """
        path, headers, body = self._write_request(prompt)
        try:
            found = self._server.post(path, {"model": self.name, **body}, seconds, headers)
            return self._read_answer(found)
        except LlmError as error:
            if error.status in (400, 422) and self._asks_format and _WISHES.search(str(error)):
                # What it does not know it is not asked for the next time.
                self._asks_format = self._asks_effort = False
                raise Malformed(f"{self.name} does not know all that was asked of it") from None
            raise
        except (KeyError, IndexError, TypeError, AttributeError):
            raise protocol_error(self._server.host) from None

    def _write_request(self, prompt: Prompt) -> _Request:
        raise NotImplementedError

    def _read_answer(self, found: dict[str, Any]) -> Answer:
        """Whatever is not of the protocol may raise what looking into it raises."""
        raise NotImplementedError


class Anthropic(_ServedModel):
    """The Messages API."""

    provider, url, domain = "anthropic", "https://api.anthropic.com", "anthropic.com"
    # Models of this generation think by themselves; how much is said by `effort`, which older ones
    # refuse. Forcing a tool, a temperature or a beginning of the answer are errors with them.
    thinks = re.compile(r"claude-[a-z]+-(?:[5-9]|\d\d)\b")

    def _write_request(self, prompt: Prompt) -> _Request:
        config: dict[str, Any] = {}
        if self._asks_format:
            config["format"] = {"type": "json_schema", "schema": prompt.schema}
        if self._asks_effort:
            config["effort"] = "low"
        body = {
            "max_tokens": prompt.most_tokens,
            "system": sendable_text(prompt.system),
            "messages": [{"role": "user", "content": sendable_text(prompt.text)}],
            **({"output_config": config} if config else {}),
        }
        # The version that its own client sends, and that compatible servers know.
        headers = {"anthropic-version": "2023-06-01"}
        if self._server.key:
            headers["x-api-key"] = self._server.key
        path = "/messages" if self._server.path.endswith("/v1") else "/v1/messages"
        return path, headers, body

    def _read_answer(self, found: dict[str, Any]) -> Answer:
        # By their type: thinking may come first.
        texts = [block["text"] for block in found["content"] if block["type"] == "text"]
        return _make_answer("".join(texts), found["usage"], str(found.get("stop_reason")))


class OpenAi(_ServedModel):
    """Chat completions: OpenAI, OpenRouter, Gemini, Ollama, LM Studio."""

    provider, url, domain = "openai", "https://api.openai.com/v1", ".openai.com"
    thinks = re.compile(r"^(?:gpt-(?:[5-9]|\d\d)|o\d)")

    def _write_request(self, prompt: Prompt) -> _Request:
        parts = {"system": prompt.system, "user": prompt.text}
        messages = [{"role": role, "content": sendable_text(text)} for role, text in parts.items()]
        # OpenAI's newer models refuse the old name of the limit; others ignore the new one, and
        # then there would be no limit.
        limit = "max_completion_tokens" if self._is_own else "max_tokens"
        body: dict[str, Any] = {limit: prompt.most_tokens, "messages": messages}
        if self._asks_format:
            named = {"name": "answer", "strict": True, "schema": prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if self._is_own and self._asks_effort:
            body["reasoning_effort"] = "low"
        return "/chat/completions", None, body

    def _read_answer(self, found: dict[str, Any]) -> Answer:
        choice = found["choices"][0]
        message = choice["message"]
        stop = "refusal" if message.get("refusal") else str(choice.get("finish_reason"))
        return _make_answer(message.get("content") or "", found.get("usage") or {}, stop)


def _make_answer(text: Any, usage: Mapping[str, Any], stop: str, cost: Any = None) -> Answer:
    """Some leave the counts of tokens out, or write nonsense. TypeError where there is no text."""
    if not isinstance(text, str):
        raise TypeError
    counts = {name: n for name, n in usage.items() if isinstance(n, int) and 0 <= n < 1e12}
    read, written = (
        sum(counts.get(name, 0) for name in names) for names in _TABLE["counted"].values()
    )
    paid = float(cost) if isinstance(cost, int | float) and cost >= 0 else None
    return Answer(text, read, written, _TABLE["stops"].get(stop, "done"), paid)


# --- the user's own `claude` program -----------------------------------------------------------


def find_claude(program: str) -> Path:
    """The program's path; ConfigError where it is not."""
    for place in [program] if program else CLAUDE_PLACES:
        path = account_home() / place[2:] if place.startswith("~/") else Path(place)
        if path.is_absolute() and os.access(path, os.X_OK) and path.is_file():
            return path
    if program:
        raise ConfigError(f"llm.program is {program!r}, but must be the full path of a program")
    raise ConfigError(f"claude is not at {', '.join(CLAUDE_PLACES)}; say where as llm.program")


class Claude:
    """Asked once and without tools, hooks, plugins or a transcript.

    It runs alone (a lock over all processes), in a process group of its own, in a folder of ours,
    with an environment that we make, and is killed with everything it started when its time is
    over. What it is asked cannot come back as something new: YESTER_OFF stops our hooks, no session
    is kept, and the text stands in a fence that no reader of transcripts lets in.

    With a key it is `--bare` and keeps its files in yester's folder; without one it is
    `--safe-mode` and uses the login of the user, which --bare does not read."""

    here = False
    # It asks on by itself up to three times when an answer is cut off, with all that came before,
    # and what a provider keeps in its cache costs a quarter more.
    calls = 6

    def __init__(
        self, model: str, key: str, url: str, program: Path, home: Path, folders: Sequence[str]
    ) -> None:
        self.name = model
        self._key, self._url, self._program, self._home = key, url, program, home
        if url:
            Server(url, key, "llm.url")  # may texts go there?
        self._folder = folders[0] if folders else ""

    def complete(self, prompt: Prompt, seconds: float) -> Answer:
        # The shape is asked for in words: its option for that costs another round.
        shape = "The answer is one JSON object of this schema and nothing else:"
        asked = f"{prompt.system}\n\n{shape}\n{msgspec.json.encode(prompt.schema).decode()}"
        words = [str(self._program), "--bare" if self._key else "--safe-mode"]
        words += [*_TABLE["claude"]["options"], "--model", self.name, "--system-prompt", asked]
        run = self._home / "run"
        try:
            with write_lock(run / "claude.lock", 0.0):
                folder = run / "claude"
                folder.mkdir(mode=0o700, exist_ok=True)
                environ = self._make_environment(folder, prompt.most_tokens)
                printed = _run_program(words, prompt.text, environ, folder, seconds)
        except StoreBusy:
            raise Busy("claude is answering another question") from None
        except OSError as error:
            raise Unreachable(f"claude: {error.strerror or type(error).__name__}") from None
        return self._read_answer(printed)

    def _make_environment(self, folder: Path, most_tokens: int) -> dict[str, str]:
        made = {**CLAUDE_QUIET, **_TABLE["claude"]["environment"], "HOME": str(account_home())}
        made["PATH"] = f"{self._program.parent}:{made['PATH']}"
        made["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(most_tokens)
        if self._url:
            made["ANTHROPIC_BASE_URL"] = self._url
        if self._key:
            made["ANTHROPIC_API_KEY"] = self._key
            made["CLAUDE_CONFIG_DIR"] = str(folder)
        elif self._folder not in ("", "~/.claude"):
            made["CLAUDE_CONFIG_DIR"] = str(Path(self._folder).expanduser())
        return made

    def _read_answer(self, printed: bytes) -> Answer:
        try:
            found = msgspec.json.decode(printed, type=dict[str, Any])
            text, stop = found.get("result") or "", str(found.get("stop_reason"))
            if found.get("is_error") and stop != "refusal":
                stop = "length" if _TABLE["claude"]["cut_off"] in text else "failed"
            answer = _make_answer(text, found.get("usage") or {}, stop, found.get("total_cost_usd"))
        except (msgspec.MsgspecError, AttributeError, TypeError):
            raise protocol_error("claude") from None
        if stop == "failed":
            kind = Busy if found.get("api_error_status") in BUSY else LlmError
            raise kind(f"claude: {clean_message(text, self._key)}")
        return answer


Model = _ServedModel | Claude


def _run_program(
    words: Sequence[str], text: str, environ: Mapping[str, str], folder: Path, seconds: float
) -> bytes:
    """What a program prints; it and whatever it started are gone when this returns."""
    with subprocess.Popen(  # noqa: S603 -- a path from the settings, options from above
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environ,
        start_new_session=True,
    ) as child:
        try:
            return child.communicate(text.encode("utf-8", "replace"), seconds)[0]
        except subprocess.TimeoutExpired:
            raise Unreachable("claude gave no answer in time", sent=True) from None
        finally:
            kill_group(child.pid)
