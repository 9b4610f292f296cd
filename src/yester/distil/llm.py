"""A language model: one question, one answer. Off unless the section [llm] of config.toml says so.

Everything about it comes from that file and nothing from the environment, which a repository can
set. A backend knows one wire format; what a call may cost, what is asked and whether an answer is
good is decided elsewhere (`budget`, `prompts`, `validate`).
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from yester.config import Config
from yester.errors import Busy, ConfigError, LlmError, Malformed, Unreachable
from yester.redact import redact

if TYPE_CHECKING:
    from yester.text.post import Reply

PROVIDERS = ("none", "anthropic", "openai", "claude")
DEFAULT_MODEL = "claude-haiku-5-5"
_LONGEST_KEY = 4096
_SAID = 200  # characters of what a server says about a failure
_LONGEST_WAIT = 1e9  # seconds; more than anybody waits


@dataclass(frozen=True, slots=True)
class Answer:
    """`stop` is done, length (cut off) or refusal; `cost` where the provider tells it itself."""

    text: str
    tokens_in: int
    tokens_out: int
    stop: str = "done"
    cost: float | None = None


class Model(Protocol):
    @property
    def name(self) -> str:
        """What it is called in prices and in what was spent."""

    @property
    def here(self) -> bool:
        """Does it answer on this machine, where nobody is paid?"""

    @property
    def calls(self) -> int:
        """How many times the price of one request a question may cost."""

    def complete(
        self, system: str, text: str, schema: Mapping[str, Any], most_tokens: int, seconds: float
    ) -> Answer:
        """The answer to a text, if it comes within `seconds`.

        `schema` is asked for where the provider can be; the answer may differ all the same. Raises
        Busy, Unreachable or Malformed, or a plain LlmError where asking again is no use. No error
        quotes the key or the text.
        """


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
        from yester.distil.llm_openai import OpenAi

        if not model:
            raise ConfigError("llm.provider openai needs llm.model, the name of the model there")
        return OpenAi(model, key, url)
    if provider == "anthropic":
        from yester.distil.llm_anthropic import Anthropic

        return Anthropic(model or DEFAULT_MODEL, key, url)
    from yester.distil.llm_claude import Claude, installed

    program = installed(config.text("llm.program"))
    return Claude(
        model or DEFAULT_MODEL, key, url, program, config.home, config.texts("claude_code_dirs")
    )


def read_key(text: str) -> str:
    """The key itself, or what stands in the file it names; nobody else may read that file."""
    if text.startswith(("/", "~/")):
        path = Path(text).expanduser()
        try:
            mode = path.stat().st_mode
            found = path.read_text("utf-8")[:_LONGEST_KEY].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"llm.key names {path}, which cannot be read ({error})") from None
        if stat.S_IMODE(mode) & 0o077:
            raise ConfigError(f"llm.key names {path}, which others may read; chmod 600 {path}")
        text = found
    if not text.isascii() or not text.isprintable():
        raise ConfigError("llm.key holds characters that no key has; copy it anew")
    return text


# --- what both servers have in common ----------------------------------------------------------


def refuse(reply: Reply, who: str, message: str, key: str) -> None:
    """Raise what a status other than 200 means; `message` is what the server says about it."""
    if reply.status == 200:
        return
    said = f": {shortened(message, key)}" if message else ""
    if reply.status in (429, 503, 529):
        raise Busy(f"{who} is busy ({reply.status}){said}", retry_after(reply.headers))
    if reply.status in (401, 403):
        raise LlmError(f"{who} does not take this key ({reply.status}); check llm.key")
    if 300 <= reply.status < 400:
        raise LlmError(f"{who} points elsewhere ({reply.status}), which is not followed")
    if reply.status >= 500:
        raise Unreachable(f"{who} failed ({reply.status}){said}")
    raise LlmError(f"{who} answered {reply.status} {reply.reason}{said}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: a number, or a date, which counts from the server's own."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            until = parsedate_to_datetime(text)
            seconds = (until - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds < _LONGEST_WAIT else None  # nor what is not a number


def shortened(message: str, key: str) -> str:
    """What a server says, on one line and without secrets: some quote what they were sent."""
    if key:
        message = message.replace(key, "…")
    line = " ".join(redact(message).split())
    return line if len(line) <= _SAID else line[: _SAID - 1] + "…"


def whole(number: object) -> int:
    """A count of tokens as a server gives it; some leave it out."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 1e12:
        return 0
    return int(number)


def not_understood(who: str) -> Malformed:
    return Malformed(f"{who} gave an answer that is not of its protocol", sent=True)
