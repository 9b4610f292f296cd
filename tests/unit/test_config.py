"""Settings: one table, three sources, and what a repository may not touch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from yester.config import SETTINGS, load_config
from yester.errors import ConfigError


def test_without_a_file_every_setting_has_its_default(tmp_path):
    config = load_config(tmp_path, {})
    assert {s.name: config[s.name] for s in SETTINGS} == {s.name: s.default for s in SETTINGS}
    assert set(config.origins.values()) == {"default"}


def test_the_file_goes_over_the_default_and_the_variable_over_the_file(tmp_path):
    (tmp_path / "config.toml").write_text("thinking = false\nbackups_kept = 2\n")
    assert load_config(tmp_path, {}).flag("thinking") is False
    config = load_config(tmp_path, {"YESTER_THINKING": "true"})
    assert config.flag("thinking") is True
    assert config.origins["thinking"] == "YESTER_THINKING"
    assert config.number("backups_kept") == 2


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize("setting", [s for s in SETTINGS if not s.env], ids=lambda s: s.name)
def test_the_environment_cannot_change_what_is_not_marked_so(tmp_path, setting):
    config = load_config(tmp_path, {setting.variable: "7"})
    assert config[setting.name] == setting.default


@pytest.mark.requirement("OPS-03")
def test_no_setting_with_a_path_may_come_from_the_environment():
    told = [s.name for s in SETTINGS if s.env and isinstance(s.default, tuple | str)]
    # Names of tools, and a choice of one: both can only make less of what is seen.
    assert told == ["skip_tools", "embedder"]
    assert next(s for s in SETTINGS if s.name == "embedder").env_only == ("none",)


@pytest.mark.requirement("OPS-03")
def test_nothing_that_sends_data_may_come_from_the_environment():
    sections = {s.section for s in SETTINGS}
    assert sections == {"", "tell", "embed", "llm", "archive"}
    assert [s.name for s in SETTINGS if s.section and (s.env or s.web)] == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("thinking = 3", "thinking is 3, but must be true or false"),
        ("backups_kept = 0", "backups_kept is 0, but must be a whole number of at least 1"),
        ("backups_kept = true", "backups_kept is True"),
        ("claude_code_dirs = 'x'", "claude_code_dirs is 'x', but must be a list of texts"),
        ("thinking = ", "not valid TOML"),
        ("[projects]\na = 3", r"\[projects\] must map"),
    ],
)
@pytest.mark.requirement("OPS-04")
def test_a_bad_file_is_named_with_the_value_and_the_fix(tmp_path, text, named):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=named) as caught:
        load_config(tmp_path, {})
    assert str(tmp_path / "config.toml") in str(caught.value)


@pytest.mark.requirement("OPS-04")
@pytest.mark.parametrize(
    ("text", "name", "meant"),
    [
        ("foo = 1", "foo", "`yester config` lists"),
        ('exclde = ["~/secret"]', "exclde", "did you mean exclude?"),
        ("[llm]\npace = 3", "llm.pace", "did you mean llm.price?"),
    ],
)
def test_a_name_that_nobody_knows_is_a_warning_and_the_others_count(tmp_path, text, name, meant):
    (tmp_path / "config.toml").write_text(f"thinking = false\n{text}\n")
    config = load_config(tmp_path, {})
    assert config.flag("thinking") is False
    (warning,) = config.warnings
    assert warning.startswith(f"{tmp_path / 'config.toml'}: no setting is called {name!r}")
    assert meant in warning


def test_a_bad_variable_is_named(tmp_path):
    with pytest.raises(ConfigError, match="YESTER_THINKING: thinking is 'maybe'"):
        load_config(tmp_path, {"YESTER_THINKING": "maybe"})


@pytest.mark.requirement("MEM-05")
@pytest.mark.parametrize(
    ("given", "used", "told"),
    [
        ("7", 7, False), ("0", 0, False), ("20", 20, False), ("-3", 0, True), ("99", 20, True),
        ("5.7", 5, True), ("all", 2, True), ("null", 2, True), ("inf", 2, True), ("nan", 2, True),
        ("1e400", 2, True),
    ],
)  # fmt: skip
def test_max_inject_is_kept_within_0_and_20_and_nonsense_is_2_with_a_warning(
    tmp_path, given, used, told
):
    config = load_config(tmp_path, {"YESTER_MAX_INJECT": given})
    assert config.number("max_inject") == used
    assert len(config.warnings) == told
    if told:
        assert config.warnings[0].startswith("YESTER_MAX_INJECT: max_inject is ")
        assert config.warnings[0].endswith(f"from 0 to 20; {used} is used")


@pytest.mark.requirement("MEM-05")
@pytest.mark.parametrize("given", ["true", '"all"', "[3]", "1979-05-27", "inf"])
def test_nonsense_for_max_inject_in_the_file_is_no_error_either(tmp_path, given):
    (tmp_path / "config.toml").write_text(f"max_inject = {given}\n")
    config = load_config(tmp_path, {})
    assert config.number("max_inject") == 2
    assert str(tmp_path / "config.toml") in config.warnings[0]


@pytest.mark.requirement("STO-08")
@pytest.mark.parametrize("table", ["[retention]\nnote = [1]", "retention = 3"])
def test_a_bad_table_of_retention_is_named_with_the_fix(tmp_path, table):
    (tmp_path / "config.toml").write_text(table)
    with pytest.raises(ConfigError, match=r"\[retention\] must map types of memories"):
        load_config(tmp_path, {})


def test_lists_and_capitals_are_printed_as_they_were_written(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('exclude = ["/Srv/Harbour", "/Opt/Pier"]\n')
    command = [sys.executable, "-m", "yester", "--home", str(home), "config"]
    printed = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout
    assert "exclude = /Srv/Harbour, /Opt/Pier  (" in printed
