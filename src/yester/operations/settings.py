"""Settings: shown with secrets masked; those that send nothing and name no path can be changed."""

from __future__ import annotations

from typing import Annotated, Any, cast

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, structs

from yester import config
from yester.config import SETTINGS, Config
from yester.memory import Memory
from yester.operations.request import Request, make_answer
from yester.redact import redact_value

MASK = "(set, not shown)"


class Setting(Struct, kw_only=True):
    name: str
    value: bool | int | float | str | list[str]
    default: bool | int | float | str | list[str]
    origin: str
    help: str
    writable: bool
    secret: bool


class Settings(Struct, kw_only=True):
    file: str
    settings: list[Setting]


def _value_type(setting: config.Setting) -> Any:
    """The type of a setting that may be changed, from its row in the table."""
    match setting.default:
        case bool():
            kind: Any = bool
        case int():
            least = int(setting.least or 0)
            kind = Annotated[int, Meta(ge=least, le=int(setting.most or 1_000_000))]
        case tuple():
            kind = Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)]
        case _:
            raise AssertionError(f"{setting.name} has a type that is not written over HTTP")
    return Annotated[kind, Meta(description=setting.help)] | UnsetType


_REFUSED = {
    setting.name: f"{setting.name} cannot be changed over HTTP: what sends data, names a path or "
    "guards what is stored is set in config.toml alone"
    for setting in SETTINGS
    if not setting.web
}
SettingsRequest = cast(
    type[Request],
    defstruct(
        "SettingsRequest",
        [(setting.name, _value_type(setting), UNSET) for setting in SETTINGS if setting.web],
        bases=(Request,),
        namespace={"refused": _REFUSED},
        kw_only=True,
        module=__name__,
    ),
)


def list_settings(memory: Memory) -> Settings:
    """Every setting; secrets are masked."""
    return Settings(
        file=str(memory.home / "config.toml"),
        settings=[_describe_setting(setting, memory.config) for setting in SETTINGS],
    )


def _describe_setting(setting: config.Setting, known: Config) -> Setting:
    value = known[setting.name]
    return make_answer(
        Setting, setting,
        # Without the password an address may hold.
        value=(MASK if value else "") if setting.secret else redact_value(value),
        origin=known.origins[setting.name], writable=setting.web,
    )  # fmt: skip


def change_settings(memory: Memory, request: Request) -> Settings:
    """Change some; not those that send data or name a path.

    All that is given, or nothing.
    """
    given = structs.asdict(request).items()
    if values := {name: value for name, value in given if value is not UNSET}:
        config.change_config(memory.home, values)
    memory.reload_config()
    return list_settings(memory)
