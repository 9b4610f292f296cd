"""Settings: ONE table (`tables/settings.toml`), read once.

Defaults < `config.toml` in yester's home < YESTER_* variables. A repository can set environment
variables for an agent's hooks, so the environment may only change settings that neither send data,
name a path, nor widen what is read: `env` marks those.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, cast

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import replace

from yester.errors import ConfigError
from yester.files import replace_file
from yester.tables import load_table

Value = bool | int | float | str | tuple[str, ...]
Plain = bool | int | float | str | list[str] | dict[str, Any]  # as TOML and JSON write it


class Setting(Struct, frozen=True):
    """A row of the table, whose head says what the fields mean."""

    name: str
    default: Value
    help: str
    env: bool = False
    also: str = ""
    env_only: tuple[Value, ...] = ()
    secret: bool = False
    web: bool = False
    least: int | None = None
    most: int | None = None
    lenient: bool = False

    @property
    def section(self) -> str:
        """The section of config.toml it stands in; "" is the top."""
        return self.name.rpartition(".")[0]

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


def _read_settings() -> Iterator[Setting]:
    """The rows of the table; one of a section is called SECTION.NAME."""
    for name, row in load_table("settings").items():
        rows = {name: row} if "default" in row else {f"{name}.{key}": row[key] for key in row}
        for full_name, values in rows.items():
            yield convert({"name": full_name, **values}, Setting)


SETTINGS = tuple(_read_settings())
SECTIONS = tuple(dict.fromkeys(s.section for s in SETTINGS if s.section))
_BY_NAME = {setting.name: setting for setting in SETTINGS}
TABLES = ("projects", "retention")  # whose names are the user's own


class ProjectLine(Struct, forbid_unknown_fields=True):
    """What [projects] may say of a path or a key besides a name."""

    name: str = ""
    private: bool = False
    joined: bool = False


class Config(Struct, frozen=True):
    """The settings in force. `projects` maps paths and project keys to names the user gave,
    `private` are those whose memory is shown nowhere else (`project.Projects` knows which),
    `joined` folders that are of the project whose remote they name (`yester.folders`),
    `retention` the types of memories to what happens to old ones (`yester.memories.lifecycle`)."""

    home: Path
    values: Mapping[str, Value]
    origins: Mapping[str, str]
    projects: Mapping[str, str] = field(default_factory=dict)
    private: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    retention: Mapping[str, int | str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def number(self, name: str) -> int:
        return cast(int, self.values[name])

    def decimal(self, name: str) -> float:
        return cast(float, self.values[name])

    def text(self, name: str) -> str:
        return cast(str, self.values[name])

    def texts(self, name: str) -> tuple[str, ...]:
        return cast(tuple[str, ...], self.values[name])


def load_config(home: Path, environ: Mapping[str, str]) -> Config:
    """Read config.toml and the environment; a bad value is an error that says the fix, a name that
    nobody knows a warning."""
    path = home / "config.toml"
    try:
        return _parse_config(read_config_text(path), path, environ)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check its mode") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML ({error}); correct it or move it away") from None


def _parse_config(text: str, path: Path, environ: Mapping[str, str]) -> Config:
    table = tomllib.loads(text)

    def take_table(name: str, kind: Any, meaning: str) -> Any:
        try:
            return convert(table.pop(name, {}), kind)
        except ValidationError:
            raise ConfigError(f"{path}: {meaning}") from None

    lines: dict[str, str | ProjectLine] = take_table(
        "projects",
        dict[str, Annotated[str, Meta(min_length=1)] | ProjectLine],
        '[projects] must map paths or project keys to names ("~/code/api" = "api"), or to '
        "{ private = true } or { joined = true }",
    )
    known = {
        line: ProjectLine(name=one) if isinstance(one, str) else one for line, one in lines.items()
    }
    projects = {line: one.name for line, one in known.items() if one.name}
    private = tuple(line for line, one in known.items() if one.private)
    joined = tuple(line for line, one in known.items() if one.joined)
    retention = take_table(
        "retention",
        dict[str, int | str],
        "[retention] must map types of memories to what happens to old ones "
        '(note = 90, session_summary = "keep 50")',
    )
    for name in SECTIONS:
        wrong = f"{name} must be a section: [{name}] on a line of its own"
        for key, value in take_table(name, dict[str, Any], wrong).items():
            table[f"{name}.{key}"] = value  # [llm] model = … is the setting `llm.model`
    values: dict[str, Value] = {}
    origins: dict[str, str] = {}
    warnings = [_explain_unknown(path, name) for name in table if name not in _BY_NAME]
    for setting in SETTINGS:
        values[setting.name], origins[setting.name] = setting.default, "default"
        if setting.name in table:
            values[setting.name] = _check_value(setting, table[setting.name], str(path), warnings)
            origins[setting.name] = "config.toml"
        variable, value = _read_variable(setting, environ, warnings)
        if value is not None:
            values[setting.name], origins[setting.name] = value, variable
    return Config(
        path.parent, values, origins, projects, private, joined, retention, tuple(warnings)
    )


def _read_variable(
    setting: Setting, environ: Mapping[str, str], warnings: list[str]
) -> tuple[str, Value | None]:
    """The variable that sets a setting, and to what; None: none does, or it would widen what the
    user's file allows."""
    variable = next(filter(environ.get, setting.variables), "")
    if not variable:
        return "", None
    value = _check_value(setting, _parse_text(setting, environ[variable]), variable, warnings)
    return variable, None if setting.env_only and value not in setting.env_only else value


def narrow_config(config: Config, variables: Mapping[str, str]) -> Config:
    """The settings for the answers to one session, whose environment has these variables.

    A repository may have set them: they can have less shown, never more, and how soon things are
    old tells nobody anything. A wrong value counts as none.
    """
    values = dict(config.values)
    for name in ("cross_project", "max_inject", "recency_halflife_days"):
        warnings: list[str] = []
        with suppress(ConfigError):
            _, value = _read_variable(_BY_NAME[name], variables, warnings)
            if value is not None and not warnings:
                values[name] = value
    values["max_inject"] = min(config.number("max_inject"), cast(int, values["max_inject"]))
    return replace(config, values=values)


def _explain_unknown(path: Path, name: str) -> str:
    """Of another version perhaps: no reason to remember nothing at all."""
    return f"{path}: no setting is called {name!r}, so it changes nothing; {_guess_meant(name)}"


def _guess_meant(name: str) -> str:
    from difflib import get_close_matches

    alike = get_close_matches(name, _BY_NAME, 1)
    return f"did you mean {alike[0]}?" if alike else "`yester config` lists those there are"


def find_setting(name: str) -> Setting:
    if name not in _BY_NAME:
        raise ConfigError(f"no setting is called {name!r}; {_guess_meant(name)}")
    return _BY_NAME[name]


_FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def _parse_text(setting: Setting, text: str) -> object:
    if isinstance(setting.default, bool):
        return _FLAGS.get(text.lower(), text)
    if isinstance(setting.default, int):
        short = len(text) < 20  # int() must not be kept busy
        return int(text) if short and text.removeprefix("-").isdecimal() else text
    if isinstance(setting.default, tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _check_value(setting: Setting, value: object, where: str, warnings: list[str]) -> Value:
    kind: Any = type(setting.default)
    if kind is tuple:
        kind = tuple[str, ...]
    elif setting.least is not None or setting.most is not None:
        kind = Annotated[kind, Meta(ge=setting.least, le=setting.most)]
    with suppress(ValidationError):
        found: Value = convert(value, kind)
        if not isinstance(found, float) or isfinite(found):
            return found
    if setting.lenient:
        return _use_nearest(setting, value, where, warnings)
    raise ConfigError(
        f"{where}: {setting.name} is {'(not shown)' if setting.secret else repr(value)}, "
        f"but must be {setting.type_name}"
        + (f" of at least {setting.least}" if setting.least is not None else "")
        + (f" and at most {setting.most}" if setting.most is not None else "")
    )


def _use_nearest(setting: Setting, value: Any, where: str, warnings: list[str]) -> Value:
    """What was meant, about: a hook must not fail over a number."""
    used, least, most = setting.default, setting.least or 0, setting.most or 0
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool):
            used = int(min(max(int(float(value)), least), most))
    warnings.append(
        f"{where}: {setting.name} is {value!r}, but must be a whole number from {least} to "
        f"{most}; {used} is used"
    )
    return used


# --- changed for the user ------------------------------------------------------------------------


def config_file(home: Path) -> Path:
    return (home / "config.toml").resolve()  # a link stays one


def read_config_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()  # line ends stay as they are
    except FileNotFoundError:
        return ""


def write_config_text(path: Path, text: str) -> None:
    """The whole of it or nothing, closed to others, since it may hold keys; ConfigError where
    yester would not take it."""
    _parse_config(text, Path("config.toml"), {})
    replace_file(path, text, sync=True)


def change_config(home: Path, changes: Mapping[str, Plain | None], section: str = "") -> None:
    """Write these values into config.toml, at the top or in a section; the rest stays as it is."""
    path = config_file(home)
    write_config_text(path, edit_config_text(read_config_text(path), changes, section))


def change_text(text: str, name: str, value: str | None) -> str:
    """The text of config.toml with a setting, or a line of one of `TABLES`, as it was typed; None:
    without it."""
    table, _, key = name.partition(".")
    if table in TABLES and key:
        number = value is not None and value.isascii() and value.isdecimal()
        new = edit_config_text(text, {key: int(value or 0) if number else value}, table)
        _parse_config(new, Path("config.toml"), {})
        return new
    setting, plain = find_setting(name), None
    if value is not None:
        warnings: list[str] = []
        found = _check_value(setting, _parse_text(setting, value), "config", warnings)
        if warnings:
            raise ConfigError(warnings[0].rpartition(";")[0])
        plain = list(found) if isinstance(found, tuple) else found
    return edit_config_text(text, {name.rpartition(".")[2]: plain}, setting.section)


def render_template() -> str:
    """A config.toml to begin with: every setting with its default, behind a #."""
    parts, section = ["# yester's settings: take away the # before what you change.\n"], ""
    for setting in SETTINGS:
        if setting.section != section:
            section = setting.section
            parts.append(f"\n# [{section}]\n")
        value = list(setting.default) if isinstance(setting.default, tuple) else setting.default
        line = edit_config_text("", {setting.name.rpartition(".")[2]: value})
        parts.append(f"\n# {setting.help}\n# {line}")
    return "".join(parts)


def edit_config_text(text: str, changes: Mapping[str, Plain | None], section: str = "") -> str:
    """The text with these values; None: it goes. Comments and order stay. ConfigError where reading
    the new text would not give exactly the old settings with the changes."""
    import tomlkit

    with suppress(tomllib.TOMLDecodeError, tomlkit.exceptions.TOMLKitError):
        wanted, document = tomllib.loads(text), tomlkit.parse(text)
        for target, empty in ((wanted, {}), (document, tomlkit.table())):
            table = target.setdefault(section, empty) if section else target
            for name, value in changes.items():
                if isinstance(value, dict) and target is document:
                    value = tomlkit.inline_table() | value
                table.pop(name, None) if value is None else table.__setitem__(name, value)
        new = tomlkit.dumps(document)
        if tomllib.loads(new) == wanted:
            return new
    lines = ", ".join(f"{name} = {value!r}" for name, value in changes.items())
    where = f" in [{section}]" if section else ""
    raise ConfigError(
        "config.toml is written in a way that cannot be changed here",
        f"write {lines}{where} into it with an editor",
    )
