"""config.toml changed line by line: [projects]."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yester.deliver.config_file import with_projects
from yester.deliver.projects import lines_for
from yester.model import Project
from yester.project import Projects


@pytest.mark.requirement("CAP-07")
@pytest.mark.parametrize(
    ("text", "names", "new"),
    [
        ("", {"git:a/b": "x"}, '[projects]\n"git:a/b" = "x"\n'),
        ("a = 1\n", {"git:a/b": "x"}, 'a = 1\n\n[projects]\n"git:a/b" = "x"\n'),
        ("[projects]\n'~/a' = 'b'  # mine\n", {"~/a": "c"}, '[projects]\n"~/a" = "c"  # mine\n'),
        ("[projects]\n'~/a' = 'b'\n\n[llm]\nmodel = 'x'\n", {"d": "e"},
         "[projects]\n'~/a' = 'b'\n\"d\" = \"e\"\n\n[llm]\nmodel = 'x'\n"),
        ("[projects]  # p\n'~/a' = 'b'\nc = 'd'\n", {"~/a": None}, "[projects]  # p\nc = 'd'\n"),
        ("projects = {a = 'b'}\n", {"c": "d"}, None),
        ("broken = = 1\n", {"c": "d"}, None),
    ],
)  # fmt: skip
def test_lines_of_projects_change_and_nothing_else(text, names, new):
    assert with_projects(text, names) == new


_WRITTEN = (
    "# note", "", "thinking = true", "skip_tools = ['LS',", "]", "[projects]", "'~/a' = 'b'",
    "c = 'd' # why", "[llm]", 'model = "x"', "projects.e = 'f'", "  [ projects ]",
)  # fmt: skip
_NAMES = st.dictionaries(
    st.sampled_from(["~/a", "c", "git:x/y", 'q"\\', "ü"]), st.none() | st.text()
)


@given(st.lists(st.sampled_from(_WRITTEN)), _NAMES)
@settings(max_examples=150)
def test_an_edit_gives_the_old_settings_with_the_names_or_none(lines, names):
    text = "\n".join(lines)
    new = with_projects(text, names)
    if new is not None:
        wanted = tomllib.loads(text)
        table = wanted.setdefault("projects", {}) | names
        wanted["projects"] = {key: name for key, name in table.items() if name is not None}
        assert tomllib.loads(new) == wanted


_KEYS = st.sampled_from(["git:x/a", "git:x/b", "dir:/c", "name:a", "name:b", "name:c"])


@pytest.mark.requirement("CAP-07")
@given(st.lists(st.tuples(_KEYS, _KEYS), max_size=6))
@settings(max_examples=150)
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
                assert known.renamed(Project(key, "")).key == at
