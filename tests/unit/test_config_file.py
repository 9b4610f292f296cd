"""config.toml changed for the user: the values asked for, and nothing else."""

from __future__ import annotations

import tomllib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.table import each
from yester.config import edit_config_text
from yester.errors import ConfigError
from yester.model import Project
from yester.operations.projects import lines_for
from yester.project import Projects

OFF = {"thinking": False}


@pytest.mark.requirement("CAP-07")
@each(
    ("section", "text", "changes", "new"),
    [
        ("", "", OFF, "thinking = false\n"),
        ("", "# a\n", OFF, "# a\nthinking = false\n"),
        ("", "thinking = true # why\n", OFF, "thinking = false # why\n"),
        ("", 'x = "a # b"\nthinking=true\n', OFF, 'x = "a # b"\nthinking=false\n'),
        ("", "[llm]\nkey = 1\n", OFF, "thinking = false\n\n[llm]\nkey = 1\n"),
        ("", "[llm]\nthinking = 1\n", OFF, "thinking = false\n\n[llm]\nthinking = 1\n"),
        ("", "skip_tools = [\n  'a',\n]\n", {"skip_tools": ["b"]}, 'skip_tools = ["b"]\n'),
        ("", 'x = """\nthinking = true\n"""\n', OFF,
         'x = """\nthinking = true\n"""\nthinking = false\n'),
        ("", "broken = = 1\n", OFF, None),
        ("", "e = 'x'\r\nthinking = true\r\n", {"e": "y"}, 'e = "y"\r\nthinking = true\r\n'),
        ("", 'e = """x"""\n', {"e": "y"}, 'e = "y"\n'),
        ("", 'e = "y"', {"e": "y"}, 'e = "y"'),
        ("projects", "", {"git:a/b": "x"}, '[projects]\n"git:a/b" = "x"\n'),
        ("projects", "a = 1\n", {"git:a/b": "x"}, 'a = 1\n\n[projects]\n"git:a/b" = "x"\n'),
        ("projects", "[projects]\n'~/a' = 'b'  # mine\n", {"~/a": "c"},
         "[projects]\n'~/a' = \"c\"  # mine\n"),
        ("projects", "[projects]\n'~/a' = 'b'\n\n[llm]\nmodel = 'x'\n", {"d": "e"},
         "[projects]\n'~/a' = 'b'\nd = \"e\"\n\n[llm]\nmodel = 'x'\n"),
        ("projects", "[projects]  # p\n'~/a' = 'b'\nc = 'd'\n", {"~/a": None},
         "[projects]  # p\nc = 'd'\n"),
        ("projects", "projects = {a = 'b'}\n", {"c": "d"}, "projects = {a = 'b',c = \"d\"}\n"),
        ("projects", "broken = = 1\n", {"c": "d"}, None),
    ],
)  # fmt: skip
def test_what_was_asked_for_changes_and_nothing_else(section, text, changes, new):
    assert edit_text(text, changes, section) == new


def edit_text(text, changes, section):
    with suppress(ConfigError):
        return edit_config_text(text, changes, section)


_WRITTEN = (
    "# note", "", "thinking = true", "skip_tools = ['LS',", "]", "[projects]", "'~/a' = 'b'",
    "c = 'd' # why", "[llm]", 'model = "x"', "projects.e = 'f'", "  [ projects ]",
)  # fmt: skip
_VALUES = st.none() | st.booleans() | st.integers(0, 9) | st.lists(st.text(max_size=5), max_size=3)
_NAMES = st.sampled_from(["~/a", "c", "git:x/y", 'q"\\', "ü", "thinking", "skip_tools"])


@given(
    st.lists(st.sampled_from(_WRITTEN)),
    st.dictionaries(_NAMES, _VALUES | st.text()),
    st.sampled_from(["", "projects"]),
)
@example(["thinking = true", "[llm]", "projects.e = 'f'", "[projects]"], {"c": "d"}, "projects")
def test_an_edit_gives_the_old_settings_with_the_changes_or_none(lines, changes, section):
    text = "\n".join(lines)
    new = edit_text(text, changes, section)
    if new is not None:
        wanted = tomllib.loads(text)
        table = wanted.setdefault(section, {}) if section else wanted
        table |= changes
        for name in [name for name, value in changes.items() if value is None]:
            del table[name]
        assert tomllib.loads(new) == wanted


_KEYS = st.sampled_from(["git:x/a", "git:x/b", "dir:/c", "name:a", "name:b", "name:c"])


@pytest.mark.requirement("CAP-07")
@given(st.lists(st.tuples(_KEYS, _KEYS), max_size=6))
def test_whatever_is_merged_in_whatever_order_leads_to_where_it_was_merged(steps):
    """A model of it: each key stands for what was captured under it."""
    overrides: dict[str, str] = {}
    now = {key: key for key in _KEYS.elements}
    for source, target in steps:
        one, two = now[source], now[target]
        if one == two:
            continue
        name = two.split(":")[1].rpartition("/")[2]
        given_names = lines_for(overrides, [Project(two, name), Project(one, "x")], name)
        merged = {**overrides, **given_names}
        overrides = {key: name for key, name in merged.items() if name is not None}
        into = f"name:{name}"
        now = {key: into if at in (one, two) else at for key, at in now.items()}
        known = Projects(overrides)
        for key, at in now.items():
            if key.startswith(("git:", "dir:")):
                assert known.apply_names(Project(key, "")).key == at
