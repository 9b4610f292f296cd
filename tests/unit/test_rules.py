"""What must not be captured: folders, projects, pauses, and what the hooks are told of it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.capture.rules import (
    Pause,
    Rules,
    change_pause,
    load_pauses,
    load_rules,
    write_hook_rules,
)
from yester.config import load_config
from yester.model import Project
from yester.project import identify_project

pytestmark = pytest.mark.requirement("CAP-14")

SHOP = Project("git:example.org/acme/shop", "shop", "/home/sam/shop")
EXCLUDED = [
    # glob, folder, is it left out?
    ("/home/sam/secret", "/home/sam/secret", True),
    ("/home/sam/secret", "/home/sam/secret/deep/er", True),
    ("/home/sam/secret/", "/home/sam/secret", True),
    ("/home/sam/secret", "/home/sam/secretary", False),
    ("/home/sam/secret", "/home/sam", False),
    ("/home/sam/secret", "", False),
    ("/home/*/secret", "/home/sam/secret/x", True),
    ("/home/sam/client-*", "/home/sam/client-a/src", True),
    ("/home/sam/client-*", "/home/sam/clients", False),
    ("/home/sam/client-?", "/home/sam/client-a", True),
    ("/home/sam/client-?", "/home/sam/client-ab", False),
    ("/home/sam/client-[ab]", "/home/sam/client-b/x", True),
    ("/home/sam/client-[ab]", "/home/sam/client-c", False),
    ("/home/sam/[odd]", "/home/sam/[odd]/x", True),
    ("*/secret", "/home/sam/secret/x", True),
    ("*/secret", "/home/sam/open", False),
    ("**/secret", "/home/sam/secret", True),
    ("/", "/home/sam", True),
    ("/", "/", True),
    ("~/secret", "/home/sam/secret", False),
    ("shop", "/home/sam/shop", True),
    ("sh*", "/home/sam/shop", True),
    ("Shop", "/home/sam/shop", False),
    ("hop", "/home/sam/shop", False),
    ("git:example.org/acme/*", "/home/sam/shop", True),
    ("git:example.org/other/*", "/home/sam/shop", False),
]


def settings(home, text=""):
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(text, "utf-8")
    return load_rules(load_config(home, {}))


def excluding(home, *globs):
    return settings(home, f"exclude = {list(globs)!r}")


@pytest.mark.parametrize(("glob", "folder", "left_out"), EXCLUDED)
def test_a_glob_leaves_out_exactly_this(home, glob, folder, left_out):
    assert excluding(home, "/other", glob).excludes(folder, SHOP) is left_out


def test_what_is_excluded_by_a_key_is_named_by_project_even_with_a_slash(home):
    assert excluding(home, SHOP.key).excludes("/anywhere", SHOP)
    assert not excluding(home, SHOP.key).excludes("/anywhere", Project("name:x", "x"))


def test_a_tilde_is_the_users_home(home, own_home):
    found = excluding(home, "~/secret", "~nobody-of-this-name/x")
    assert found.excludes(str(own_home / "secret" / "x"), SHOP)
    assert not found.excludes(str(own_home / "open"), SHOP)


def test_a_folder_is_left_out_under_both_its_names(home, tmp_path):
    real, link = tmp_path / "disk" / "secret", tmp_path / "secret"
    real.mkdir(parents=True)
    link.symlink_to(real)
    for glob in (str(link), f"{tmp_path}/secret/*"):
        found = excluding(home, glob)
        assert found.excludes(str(real / "deep"), SHOP)
        assert found.excludes(str(link / "deep"), SHOP)
        assert not found.excludes(str(tmp_path / "disk"), SHOP)


def test_yesters_own_home_is_always_left_out(home):
    found = settings(home)
    assert found.excludes(str(home), SHOP)
    assert found.excludes(str(home / "run"), SHOP)
    assert not found.excludes(str(home.parent), SHOP)


def test_without_rules_nothing_is_left_out():
    assert not Rules().excludes("/home/sam", SHOP)
    assert not Rules().is_off("/home/sam", "s", 5)


def test_the_fingerprint_changes_with_what_is_excluded_and_only_then(home):
    prints = [
        excluding(home, *globs).fingerprint()
        for globs in ((), ("/a",), ("/a", "/b"), ("/a", "b"), ("a", "/b"), ("/ab",))
    ]
    assert len(set(prints)) == len(prints)
    change_pause(home, "all", "", 5)
    assert excluding(home, "/ab").fingerprint() == prints[-1]


# --- pauses --------------------------------------------------------------------------------------


def test_switching_off_twice_is_once_and_on_again_ends_it(home):
    home.mkdir()
    assert change_pause(home, "path", "/home/sam/a b", 100)
    assert not change_pause(home, "path", "/home/sam/a b", 200)
    assert change_pause(home, "session", "s-1", 150)
    assert load_pauses(home) == [
        Pause("path", 100, 0, "/home/sam/a b"),
        Pause("session", 150, 0, "s-1"),
    ]
    assert not change_pause(home, "path", "/home/sam/other", 300, off=False)
    assert not change_pause(home, "all", "", 300, off=False)
    assert change_pause(home, "path", "/home/sam/a b", 300, off=False)
    assert not change_pause(home, "path", "/home/sam/a b", 400, off=False)
    assert load_pauses(home)[0] == Pause("path", 100, 300, "/home/sam/a b")
    assert change_pause(home, "path", "/home/sam/a b", 500)
    assert [one.until for one in load_pauses(home)] == [300, 0, 0]
    assert stat.S_IMODE((home / "off").stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["off"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all 5 0\n", [Pause("all", 5)]),
        ("all 5 0", [Pause("all", 5)]),
        ("path 5 9 /a b  c\n", [Pause("path", 5, 9, "/a b  c")]),
        ("session 5 0 x\n\nall 7 8\n", [Pause("session", 5, 0, "x"), Pause("all", 7, 8)]),
        ("all\nall x 0\nall 5\nall -5 0\nfolder 1 0 x\n", []),
        ("all ² 0\nall 5 " + "9" * 5_000 + "\nall 1 0\n", [Pause("all", 1)]),
        ("", []),
    ],
)
def test_a_line_that_makes_no_sense_is_passed_over(home, text, expected):
    home.mkdir()
    (home / "off").write_text(text, "utf-8")
    assert load_pauses(home) == expected


@given(st.binary(max_size=200))
def test_no_bytes_in_the_file_raise(tmp_path_factory, data):
    home = tmp_path_factory.mktemp("home")
    (home / "off").write_bytes(data)
    load_pauses(home)


PLACES = ("/home/sam/shop", "/home/sam/shop/src", "/home/sam", "/home/sam/shopping", "/")


def test_a_pause_begins_with_its_first_and_ends_before_its_last_millisecond():
    found = Rules(pauses=(Pause("all", 100, 200), Pause("session", 300, 0, "s")))
    moments = (99, 100, 199, 200, 299, 300, 10**15)
    assert [found.is_off("/x", "s", at) for at in moments] == [
        False, True, True, False, False, True, True
    ]  # fmt: skip


@given(
    kind=st.sampled_from(["all", "path", "session"]),
    what=st.sampled_from(["/home/sam/shop", "/home/sam", "s-1", "s-2"]),
    began=st.integers(1, 1_000),
    lasted=st.integers(0, 1_000),
    ended=st.booleans(),
    folder=st.sampled_from(PLACES),
    session=st.sampled_from(["s-1", "s-2", ""]),
    epoch=st.integers(0, 3_000),
)
def test_what_happened_within_a_pause_stays_out_and_nothing_else(
    tmp_path_factory, kind, what, began, lasted, ended, folder, session, epoch
):
    home = tmp_path_factory.mktemp("home")
    change_pause(home, kind, what, began)
    if ended:
        change_pause(home, kind, what, began + lasted, off=False)
    end = began + max(lasted, 1) if ended else float("inf")
    concerned = {
        "all": True,
        "path": Path(folder).is_relative_to(what),
        "session": session == what,
    }[kind]
    off = load_rules(load_config(home, {})).is_off(folder, session, epoch)
    assert off is (concerned and began <= epoch < end)


# --- what the hooks are told ---------------------------------------------------------------------


def told(home):
    path = home / "run" / "rules"
    return path.read_text("utf-8").splitlines() if path.exists() else None


def test_hooks_are_told_what_they_can_decide_and_nothing_is_no_file(home):
    write_hook_rules(home, settings(home))
    assert told(home) is None
    change_pause(home, "all", "", 5)
    change_pause(home, "session", "s-1", 6)
    change_pause(home, "path", "/home/sam/x", 7)
    change_pause(home, "path", "/home/sam/x", 8, off=False)
    found = settings(home, 'exclude = ["/a", "shop", "/b/*"]\nspool_fsync = false')
    write_hook_rules(home, found)
    assert told(home) == ["nosync", "path /a", "path /b/*", "all", "session s-1"]
    assert stat.S_IMODE((home / "run" / "rules").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "run").stat().st_mode) == 0o700
    before = (home / "run" / "rules").stat()
    write_hook_rules(home, found)
    after = (home / "run" / "rules").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    change_pause(home, "all", "", 9, off=False)
    change_pause(home, "session", "s-1", 9, off=False)
    write_hook_rules(home, settings(home))
    assert told(home) is None
    assert [path.name for path in (home / "run").iterdir()] == []


def test_the_command_switches_a_project_off_and_on(run, home, tmp_path):
    folder = tmp_path / "code" / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "src").mkdir()
    assert run("off", cwd=folder / "src").out == f"yester is off in {folder}\n"
    assert told(home) == [f"path {folder}"]
    assert run("off", str(folder)).out == f"yester is off in {folder}, as it was\n"
    listed = run("off", "--list", "--json").json["off"]
    assert [(one["kind"], one["what"]) for one in listed] == [("path", str(folder))]
    (tmp_path / "link").symlink_to(folder)
    assert run("off", "--undo", str(tmp_path / "link" / "src"), "--json").json["changed"]
    assert told(home) is None
    assert run("off", "--list").out == "nothing is switched off\n"
    (one,) = load_pauses(home)
    assert (one.kind, one.what) == ("path", identify_project(str(folder)).root)
    assert one.since < one.until


def test_the_command_switches_a_session_or_everything_off(run, home):
    assert run("off", "--session", "s-1", "--json").json == {
        "kind": "session", "what": "s-1", "state": "off", "changed": True
    }  # fmt: skip
    assert run("off", "--all").out == "yester is off everywhere\n"
    assert told(home) == ["session s-1", "all"]
    assert run("off", "--all", "--session", "s-1").code == 2
    assert run("off", "--all", "--undo").out == "yester is on everywhere\n"
    assert told(home) == ["session s-1"]
