"""Settings: ONE table, read once. Defaults < `config.toml` in yester's home < YESTER_* variables.

A repository can set environment variables for an agent's hooks, so the environment may only change
settings that neither send data, name a path, nor widen what is read: `env=True` marks those.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from yester.errors import ConfigError

Value = bool | int | float | str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: Value
    help: str
    env: bool = False
    also: str = ""  # a variable of another program that is read as well, where ours is not set
    env_only: tuple[Value, ...] = ()  # what the environment may set it to; () is anything
    secret: bool = False  # never printed
    web: bool = False  # may be changed over HTTP: sends nothing, names no path
    least: float | None = None
    most: float | None = None
    lenient: bool = False  # out of range becomes the nearest, nonsense the default; with a warning

    @property
    def variable(self) -> str:
        return f"YESTER_{self.name.upper()}"

    @property
    def variables(self) -> tuple[str, ...]:
        """What the environment may set it by, the first one first."""
        return tuple(filter(None, (self.variable, self.also))) if self.env else ()

    @property
    def type_name(self) -> str:
        return {
            bool: "true or false",
            int: "a whole number",
            float: "a number",
            str: "a text",
            tuple: "a list of texts",
        }[type(self.default)]


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "claude_code_dirs",
        ("~/.claude",),
        "Claude Code's configuration folders; their `projects/` are read by `yester index`.",
    ),
    Setting(
        "codex_dirs",
        ("~/.codex",),
        "Codex's folders; their `sessions/` and `archived_sessions/` are read.",
    ),
    Setting(
        "copilot_dirs", ("~/.copilot",), "Copilot CLI's folders; their `session-state/` is read."
    ),
    Setting(
        "gemini_dirs", ("~/.gemini",), "Gemini CLI's folders; the chats in their `tmp/` are read."
    ),
    Setting(
        "opencode_dirs",
        ("~/.local/share/opencode",),
        "opencode's data folders; their databases and `storage/` are read.",
    ),
    Setting(
        "cursor_dirs",
        ("~/.cursor", "~/.config/Cursor", "~/Library/Application Support/Cursor"),
        "Cursor's folders: agent transcripts, the CLI's chats and the editor's database.",
    ),
    Setting(
        "transcript_dirs",
        (),
        "Project folders in which SpecStory and Aider histories are looked for.",
    ),
    Setting(
        "thinking",
        True,
        "Index the agent's thinking (it weighs less than what was said).",
        env=True,
        web=True,
    ),
    Setting(
        "recency_window_days",
        0,
        "Items older than this count less in recall, but are never left out; 0: age is nothing.",
        env=True,
        web=True,
        least=0,
    ),
    Setting(
        "recency_halflife_days",
        0,
        "Days after which something counts half as new in recall; 0: by its type, 35 for most.",
        env=True,
        web=True,
        also="CLAUDE_MEM_RECENCY_HALFLIFE_DAYS",
        least=0,
    ),
    Setting(
        "cross_project",
        True,
        "Recall looks in all projects where none is named; false: in the current one alone.",
        env=True,
        web=True,
        env_only=(False,),
        also="CLAUDE_MEM_CROSS_PROJECT",
    ),
    Setting("subagents", True, "Keep what sub-agents said and did.", env=True, web=True),
    Setting(
        "exclude",
        (),
        "Folders (globs; everything below them) and project names of which nothing is kept.",
    ),
    Setting(
        "skip_tools",
        (
            "TodoRead",
            "TodoWrite",
            "LS",
            "TaskCreate",
            "TaskUpdate",
            "TaskList",
            "ToolSearch",
            "Skill",
        ),
        "Tools whose use is not worth an observation; $YESTER_SKIP_TOOLS sets it for a session.",
        env=True,
        web=True,
    ),
    Setting(
        "batch_window_ms",
        3000,
        "Uses of one tool that follow each other within so many ms are one piece of work; "
        "$YESTER_BATCH_WINDOW_MS sets it for a session.",
        env=True,
        web=True,
        least=0,
        most=600_000,
    ),
    Setting(
        "spool_fsync",
        True,
        "A hook's event is on the disk, not only in its cache, before the hook ends.",
    ),
    Setting(
        "worker_idle_minutes",
        240,
        "The worker ends after so many minutes without an event; the next prompt starts it.",
        web=True,
        least=1,
    ),
    Setting(
        "http_port",
        36363,
        "The port of `yester serve` on 127.0.0.1; the next free one where it is taken.",
        least=1024,
        most=65_535,
    ),
    Setting(
        "embedder",
        "yester-embed-1",
        "What turns texts into vectors: yester-embed-1, arctic-embed-s, potion-base-8M, http or "
        "none (see `yester model`). The environment can only set it to none.",
        env=True,
        env_only=("none",),
    ),
    Setting(
        "max_inject",
        5,
        "At most so many items of all kinds are shown for a prompt, 0 to 20; 0: none.",
        env=True,
        least=0,
        most=20,
        lenient=True,
    ),
    Setting(
        "last_exchange",
        False,
        "A session begins with the last words of the user and the agent before, at most 500 "
        "characters of each.",
        web=True,
    ),
    Setting(
        "backups_kept",
        5,
        "How many backups stay in `backups/`; the oldest go first.",
        web=True,
        least=1,
    ),
)

# The section [embed]: of interest to those alone whose embedder is a server of theirs.
EMBED: tuple[Setting, ...] = (
    Setting(
        "embed.url",
        "",
        "For embedder http: an OpenAI-compatible server, such as http://localhost:11434/v1; plain "
        "http only to this machine.",
    ),
    Setting("embed.model", "", "For embedder http: the model's name there."),
    Setting("embed.dims", 0, "For embedder http: the length of its vectors.", least=0),
    Setting("embed.key", "", "For embedder http: the key sent as a bearer token.", secret=True),
)
# The section [llm] of config.toml: of interest to those alone who want a language model. None of it
# can be set by the environment, since all of it sends data or spends money.
LLM: tuple[Setting, ...] = (
    Setting(
        "llm.provider",
        "none",
        "The language model that refines what is distilled: none, anthropic, openai (any server "
        "that speaks its protocol, such as Ollama) or claude (the program).",
    ),
    Setting("llm.model", "", "Its name there; with anthropic and claude: claude-haiku-5-5."),
    Setting(
        "llm.url",
        "",
        "Where it answers, such as http://localhost:11434/v1; plain http only to this machine. "
        "Empty: the provider's own address.",
    ),
    Setting(
        "llm.key",
        "",
        "The key, or the path (`/…` or `~/…`) of a file of yours that holds nothing else.",
        secret=True,
    ),
    Setting(
        "llm.program",
        "",
        "For claude: the path of the program; empty: where its installers put it.",
    ),
    Setting(
        "llm.price",
        "",
        'Dollars for a million tokens in and out, such as "0.10/0.50"; empty: by the table in '
        "`yester stats --prices`, and nothing on this machine.",
    ),
    Setting(
        "llm.daily_dollars",
        0.20,
        "No call that could cost more than what is left of this for the day (UTC).",
        least=0,
    ),
    Setting(
        "llm.daily_tokens",
        2_000_000,
        "The same for tokens, in and out together.",
        least=0,
    ),
    Setting("llm.in_flight", 1, "Calls under way at the same time.", least=1, most=8),
)
# The section [archive]: it writes into folders of others, so no environment can switch it on.
ARCHIVE: tuple[Setting, ...] = (
    Setting(
        "archive.on",
        False,
        "When a session has ended, its decisions, bugs, failed approaches and lessons are added to "
        "`memory/sessions/YYYY-MM-DD.md` beside the agent's notes on the project.",
    ),
    Setting(
        "archive.messages",
        50,
        "With a language model: how many of the session's last messages it sees.",
        least=1,
        most=500,
    ),
)
EVERY = (*SETTINGS, *EMBED, *LLM, *ARCHIVE)

_BY_NAME = {setting.name: setting for setting in EVERY}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force. `projects` maps paths and project keys to names the user gave,
    `retention` the types of memories to what happens to old ones (`yester.memories.lifecycle`)."""

    home: Path
    values: Mapping[str, Value]
    origins: Mapping[str, str]
    projects: Mapping[str, str] = field(default_factory=dict)
    retention: Mapping[str, int | str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def number(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def decimal(self, name: str) -> float:
        value = self.values[name]
        assert isinstance(value, float)
        return value

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values[name]
        assert isinstance(value, tuple)
        return value


def load(home: Path, environ: Mapping[str, str]) -> Config:
    """Read config.toml and the environment; a bad value is an error that says the fix, a name that
    nobody knows a warning."""
    path = home / "config.toml"
    table: dict[str, Any] = {}
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        pass
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML ({error}); correct it or move it away") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check its mode") from None
    projects = _projects(path, table.pop("projects", {}))
    retention = _retention(path, table.pop("retention", {}))
    warnings: list[str] = []
    for name in ("embed", "llm", "archive"):
        table |= _section(path, name, table.pop(name, {}))
    values: dict[str, Value] = {}
    origins: dict[str, str] = {}
    warnings += [_unknown(path, name) for name in table if name not in _BY_NAME]
    for setting in EVERY:
        values[setting.name], origins[setting.name] = setting.default, "default"
        if setting.name in table:
            values[setting.name] = _checked(setting, table[setting.name], str(path), warnings)
            origins[setting.name] = "config.toml"
        for variable in setting.variables:
            if text := environ.get(variable):
                value = _checked(setting, _from_text(setting, text), variable, warnings)
                if setting.env_only and value not in setting.env_only:
                    break  # it would widen what the user's file allows
                values[setting.name] = value
                origins[setting.name] = variable
                break
    return Config(home, values, origins, projects, retention, tuple(warnings))


def narrowed(config: Config, variables: Mapping[str, str]) -> Config:
    """The settings for the answers to one session, whose environment has these variables.

    A repository may have set them: they can have less shown, never more, and how soon things are
    old tells nobody anything. A wrong value counts as none.
    """
    values = dict(config.values)
    if _said_in("cross_project", variables) is False:
        values["cross_project"] = False
    if isinstance(most := _said_in("max_inject", variables), int):
        values["max_inject"] = min(config.number("max_inject"), most)
    if days := _said_in("recency_halflife_days", variables):
        values["recency_halflife_days"] = days
    return replace(config, values=values)


def _said_in(name: str, variables: Mapping[str, str]) -> Value | None:
    """What these variables set a setting to; None where they do not, or to what it cannot be."""
    setting, warnings = _BY_NAME[name], list[str]()
    text = next(filter(None, map(variables.get, setting.variables)), "")
    if not text or len(text) > 6:  # no sensible value is longer, and int() must not be kept busy
        return None
    try:
        value = _checked(setting, _from_text(setting, text), "", warnings)
    except (ConfigError, ValueError):  # "²" is a digit, and no number
        return None
    return None if warnings else value


def _projects(path: Path, table: Any) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(v, str) and v for v in table.values()):
        raise ConfigError(
            f'{path}: [projects] must map paths or project keys to names ("~/code/api" = "api")'
        )
    return dict(table)


def _retention(path: Path, table: Any) -> dict[str, int | str]:
    if not isinstance(table, dict) or not all(isinstance(v, int | str) for v in table.values()):
        raise ConfigError(
            f"{path}: [retention] must map types of memories to what happens to old ones "
            '(note = 90, session_summary = "keep 50")'
        )
    return dict(table)


def _section(path: Path, name: str, table: Any) -> dict[str, Any]:
    """[llm] model = … is the setting `llm.model`."""
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {name} must be a section: [{name}] on a line of its own")
    return {f"{name}.{key}": value for key, value in table.items()}


def _unknown(path: Path, name: str) -> str:
    """Of another version perhaps: no reason to remember nothing at all."""
    from difflib import get_close_matches

    alike = get_close_matches(name, _BY_NAME, 1)
    meant = f"did you mean {alike[0]}?" if alike else "`yester config` lists those there are"
    return f"{path}: no setting is called {name!r}, so it changes nothing; {meant}"


_FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def _from_text(setting: Setting, text: str) -> object:
    if isinstance(setting.default, bool):
        return _FLAGS.get(text.lower(), text)
    if isinstance(setting.default, int):
        return int(text) if text.lstrip("-").isdigit() else text
    if isinstance(setting.default, tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _checked(setting: Setting, value: object, where: str, warnings: list[str]) -> Value:
    if setting.lenient:
        return _nearest(setting, value, where, warnings)
    wrong = ConfigError(
        f"{where}: {setting.name} is {'(not shown)' if setting.secret else repr(value)}, "
        f"but must be {setting.type_name}"
        + (f" of at least {setting.least}" if setting.least is not None else "")
        + (f" and at most {setting.most}" if setting.most is not None else "")
    )
    if isinstance(setting.default, tuple):
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return tuple(value)
        raise wrong
    if isinstance(setting.default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(setting.default) or (
        isinstance(value, float) and not isfinite(value)
    ):
        raise wrong
    if isinstance(value, int | float) and not isinstance(value, bool):
        too_small = setting.least is not None and value < setting.least
        too_large = setting.most is not None and value > setting.most
        if too_small or too_large:
            raise wrong
    assert isinstance(value, bool | int | float | str)
    return value


def _nearest(setting: Setting, value: object, where: str, warnings: list[str]) -> int:
    """What was meant, about: a hook must not fail over a number."""
    default, least, most = setting.default, setting.least, setting.most
    assert isinstance(default, int)
    assert least is not None
    assert most is not None
    try:
        found = default if isinstance(value, bool) else int(float(value))  # type: ignore[arg-type]
        nonsense = isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        found, nonsense = default, True
    used = int(min(max(found, least), most))
    if nonsense or used != value:
        warnings.append(
            f"{where}: {setting.name} is {value!r}, but must be a whole number from {least} to "
            f"{most}; {used} is used"
        )
    return used
