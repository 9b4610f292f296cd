"""The command line as a person meets it: help, settings, completion, what fits a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.flow.test_screen import on_a_terminal
from tests.table import each
from yester.faces.cli.screen import Whole, align_rows, cut_text, fit_line, text_width
from yester.model import Filters, Injection
from yester.store import open_store
from yester.store.lock import write_lock

pytestmark = pytest.mark.requirement("DEL-09")
YESTER = [sys.executable, "-m", "yester"]


def on_terminal(
    words: list[str], cwd: Path, watch: Callable[[str], None] | None = None, **env: str
) -> tuple[int, str]:
    """Exit code and screen of a command that runs at a terminal of 80 columns."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLAUDECODE", "COLUMNS")}
    process = subprocess.Popen(
        words, cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
        env={**clean, "TERM": "xterm", **env}, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    printed = []
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:
            break
        if not part:
            break
        printed.append(part)
        if watch is not None:
            watch(b"".join(printed).decode("utf-8", "replace"))
    os.close(master)
    return process.wait(), b"".join(printed).decode("utf-8").replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[mK]|\x1b\]8;[^\x1b]*\x1b\\", "", text)


# --- help -----------------------------------------------------------------------------------------


def test_a_mistyped_command_option_or_topic_is_answered_with_what_was_meant(run):
    for words, meant in (
        (("recal", "x"), "Did you mean recall?"), (("memory", "lst"), "Did you mean list?"),
        (("recall", "x", "--limt", "3"), "--limit"), (("help", "recal"), "did you mean recall?"),
        (("config", "get", "max_injct"), "did you mean max_inject?"),
    ):  # fmt: skip
        ran = run(*words)
        assert ran.code in (2, 3), words
        assert meant in ran.err, (words, ran.err)


def test_help_explains_commands_sections_and_topics(run):
    assert run("help").out == run("--help").out.replace("--help    ", "--help    ")
    for words, told in (
        (("recall",), "Usage: yester recall "), (("memory", "edit"), "Usage: yester memory edit "),
        (("ask",), "handoff"), (("times",), "2026-03-01"), (("topics",), "questions"),
        (("sessions", "resume"), "The same: `yester resume`"),
    ):  # fmt: skip
        assert told in " ".join(run("help", *words).out.split()), words


def test_all_that_is_wrong_with_a_call_is_said_at_once(run):
    ran = run("recall", "x", "--since", "whenever", "--limit", "many", "--format", "fancy")
    assert ran.code == 2
    assert [word for word in ("whenever", "many", "fancy") if word not in ran.err] == []


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_changed_and_their_comments_stay(run, home):
    home.mkdir(mode=0o700)
    text = "# mine\nmax_inject = 1  # few\n\n[llm]\n# a model\nmodel = 'm'\n"
    (home / "config.toml").write_text(text)
    assert run("config", "get", "max_inject").out == "1\n"
    done = run("config", "set", "max_inject=4", "llm.model=other", "projects.~/code/api=shop")
    assert done.code == 0, done.err
    after = (home / "config.toml").read_text()
    assert after.startswith("# mine\nmax_inject = 4  # few\n\n[llm]\n# a model\nmodel = ")
    assert '"~/code/api" = "shop"' in after
    assert run("config", "get", "llm.model", "--json").json["settings"]["llm.model"] == {
        "value": "other", "from": "config.toml",
    }  # fmt: skip
    assert run("config", "unset", "max_inject", "projects.~/code/api").code == 0
    assert "max_inject" not in (home / "config.toml").read_text()


def test_of_wrong_settings_all_reasons_are_said_and_nothing_is_written(run, home):
    ran = run("config", "set", "max_inject=99", "tell.ending=x", "backups_kept=none")
    assert ran.code != 0
    for told in ("max_inject is 99", "did you mean tell.endings?", "backups_kept is 'none'"):
        assert told in ran.err
    assert not (home / "config.toml").exists()


def test_what_an_editor_leaves_is_written_only_where_yester_takes_it(run, home, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s" "$TEXT" > "$1"\n')
    editor.chmod(0o755)
    wrong = run("config", "edit", env={"EDITOR": str(editor), "TEXT": "backups_kept = 'x'"})
    assert wrong.code != 0
    assert not (home / "config.toml").exists()
    (kept,) = re.findall(r"kept in (\S+)", wrong.err)
    assert Path(kept).read_text() == "backups_kept = 'x'"
    right = run("config", "edit", env={"EDITOR": str(editor), "TEXT": "# hm\nmax_inject = 3\n"})
    assert (right.code, (home / "config.toml").read_text()) == (0, "# hm\nmax_inject = 3\n")


def test_an_agent_changes_no_setting_that_sends_data_or_names_a_path(run):
    under = {"CLAUDECODE": "1"}
    ran = run("config", "set", "llm.url", "http://127.0.0.1:9", env=under)
    assert ran.code != 0
    assert "set by you alone" in ran.err


# --- completion -----------------------------------------------------------------------------------

ASK = {
    "bash": (
        "_get() {{ COMP_WORDS=({words}); COMP_CWORD={at}; COMPREPLY=(); _yester_completion yester; "
        'printf "%s\\n" "${{COMPREPLY[@]}}"; }}; _get'
    ),
    "fish": "complete -C '{words}'",
}


@pytest.fixture
def completing(run, transcript, home, own_home, tmp_path):
    said = transcript()
    said.talk(2)
    assert run("index").code == 0
    remembered = run("remember", "Prices are whole cents", "--type", "decision", "--json").json
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "yester"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m yester "$@"\n')
    script.chmod(0o755)
    return folder, str(remembered["id"])


@each("shell", ["bash", "fish", "zsh"])
def test_the_tab_key_completes_commands_projects_and_ids(
    completing, home, own_home, tmp_path, shell
):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    folder, memory = completing
    path = f"{folder}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(own_home), "YESTER_HOME": str(home), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [folder / "yester", "completion", shell, "--install"], capture_output=True, text=True,
        env=env, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert str(own_home) in done.stdout  # it says what it writes
    wanted = {
        "yester rec": "recall", "yester recall -p sh": "shop",
        f"yester memory show {memory[0]}": memory, "yester config get max_inj": "max_inject",
        "yester recall --session aaa": "aaaaaaaa",
    }  # fmt: skip
    if shell == "fish":
        wanted = {"yester memory dr": "rules, or put active ones away"} | wanted
    if shell == "zsh":  # which gives the function the word with its backslash
        wanted = {f"yester memory show \\\\#{memory[0]}": f"#{memory}"} | wanted
    for typed, offered in list(wanted.items())[: 5 if shell == "bash" else 3]:
        found = _complete(shell, typed, own_home, env)
        assert offered in found, (typed, found)
    removed = subprocess.run(
        [folder / "yester", "completion", shell, "--remove"], capture_output=True, text=True,
        env=env, cwd=tmp_path,
    )  # fmt: skip
    assert removed.returncode == 0, removed.stderr
    ours = {".claude", ".yester", ".zcompdump"}
    files = [one for one in own_home.rglob("*") if one.is_file() and not ours & {*one.parts}]
    assert [one for one in files if b"yester" in one.read_bytes()] == []


def _complete(shell: str, typed: str, home: Path, env: dict[str, str]) -> str:
    words = typed.split()
    if shell == "bash":
        code = f". {home}/.bashrc; " + ASK["bash"].format(words=typed, at=len(words) - 1)
        command = ["bash", "--norc", "-c", code]
    elif shell == "fish":
        command = ["fish", "-c", ASK["fish"].format(words=typed)]
    else:
        # zle runs in a terminal alone: so the function is asked for what it would offer.
        code = (
            f"autoload -Uz compinit; compinit -u -D; . {home}/.zshrc; "
            "compadd() { print -l -- $completions }; "
            "_describe() { print -l -- $completions_with_descriptions }; "
            f"words=({typed}); CURRENT={len(words)}; _yester_completion"
        )
        command = ["zsh", "-f", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=home)
    return done.stdout + done.stderr


def test_an_installed_completion_leaves_the_rc_file_as_it_was(run, own_home):
    rc = own_home / ".bashrc"
    rc.write_text("alias ll='ls -l'")  # without a line end
    assert run("completion", "bash", "--install").code == 0
    assert "alias ll='ls -l'\n# >>> yester" in rc.read_text()
    assert "in place" in run("completion", "bash", "--install").out
    assert run("completion", "bash", "--remove").code == 0
    assert rc.read_text().rstrip("\n") == "alias ll='ls -l'"


# --- a terminal -----------------------------------------------------------------------------------


@pytest.fixture
def filled(run, transcript, home):
    for number in range(6):
        said = transcript(f"{number}" * 8 + "-0000-4000-8000-000000000001")
        said.user("Why does the export of all orders of the last quarter end in the middle? " * 3)
        said.assistant("The export ends in the middle because the cursor is closed too early. " * 4)
    assert run("index").code == 0
    return [*YESTER, "--home", str(home)]


@each("columns", [80, 140])
def test_what_is_printed_fits_the_terminal(filled, home, tmp_path, zygote_of_commands, columns):
    for words in (
        ("recall", "export"), ("sessions",), ("timeline",), ("recent",), ("status",), ("doctor",),
        ("config",), ("projects",), ("privacy",), ("recall", "export", "--format", "full"), (),
        ("recall", "quokka"), ("memory", "list"), ("import",), ("why", "x"), ("context", "--why"),
    ):  # fmt: skip
        shown = on_a_terminal(
            home, tmp_path, zygote_of_commands, ("--no-pager", *words), COLUMNS=str(columns)
        )
        assert shown.strip()
        assert "Traceback" not in shown, words
        wide = [line for line in plain(shown).split("\n") if text_width(line) > columns]
        assert wide == [], words


def test_no_color_and_a_pipe_take_the_colours_away(filled, home, tmp_path, zygote_of_commands, run):
    def shown(**more: str) -> str:
        return on_a_terminal(home, tmp_path, zygote_of_commands, ("recall", "export"), **more)

    assert "\x1b[" in shown()
    assert "\x1b" not in shown(NO_COLOR="1")
    assert "\x1b" not in run("recall", "export").out


def test_what_is_long_goes_through_the_pager_and_what_is_short_does_not(filled, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o755)
    given = {"PAGER": str(pager)}
    assert "PAGED" in on_terminal([*filled, "config"], tmp_path, **given)[1]
    assert "PAGED" not in on_terminal([*filled, "--no-pager", "config"], tmp_path, **given)[1]
    assert "PAGED" not in on_terminal([*filled, "sessions", "-n", "1"], tmp_path, **given)[1]


def test_numbers_of_items_are_links_where_the_terminal_knows_links(
    filled, tmp_path, home, zygote_of_commands
):
    port = subprocess.run([*filled, "serve", "--background"], capture_output=True, text=True)
    try:
        address = port.stdout.strip()
        words = home, tmp_path, zygote_of_commands, ("recall", "export")
        known = on_a_terminal(*words, TERM_PROGRAM="iTerm.app")
        assert re.search(rf"\x1b\]8;id=\w+;{re.escape(address)}/#/item/\d+\x1b\\#\d+", known)
        assert "\x1b]8" not in on_a_terminal(*words)
    finally:
        subprocess.run([*filled, "serve", "--stop"], check=True, capture_output=True)


def test_a_command_that_takes_a_while_says_so(filled, tmp_path, home):
    lock = ExitStack()
    lock.enter_context(write_lock(home / "run" / "write.lock", 5.0))

    def let_go(shown: str) -> None:
        if "yester remember … 1 s" in shown:
            lock.close()

    _, shown = on_terminal([*filled, "remember", "a b c"], tmp_path, watch=let_go)
    assert "yester remember … 1 s" in shown
    assert "remembered ★" in shown


def test_ctrl_c_says_what_is_kept(run, transcript, home, tmp_path):
    said = transcript()
    said.talk(1200)
    words = [*YESTER, "--home", str(home), "index", "--no-vectors"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    deadline = time.monotonic() + 30
    while not (home / "yester.db").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    if process.returncode == 0:
        pytest.skip("it was faster")
    assert process.returncode == 130, told
    assert told.endswith(
        "yester: stopped; what was read is kept, and the next `yester index` goes on there\n"
    )
    assert run("index", "--no-vectors").code == 0
    assert run("status", "--json").json["items"]["prompt"] == 1200


def test_a_command_to_copy_is_not_broken_where_the_terminal_ends():
    """A line break within quotes would become part of what is remembered."""
    typed = "yester remember --type rule 'Never guess a unit, always ask or leave it empty'"
    assert "\n" in fit_line(typed, 60)
    assert fit_line(Whole(typed), 60) == typed


def test_columns_stand_below_each_other_whatever_is_in_them():
    rows = [["a", "東京の注文", "x"], ["bbb", "short", "y" * 50]]
    lines = list(align_rows(rows, 40, 2))
    assert all(text_width(line) <= 40 for line in lines)
    assert text_width(lines[0].split("x")[0]) == text_width(lines[1].split("y")[0])
    assert list(align_rows(rows, 0, 2))[1] == f"bbb  short  {'y' * 50}"
    assert text_width(cut_text("東京の注文を確認する", 9)) <= 9
    assert max(map(text_width, fit_line("x  " + "東京 " * 40, 40).split("\n"))) <= 40
    marked = fit_line("\x1b[32m✓\x1b[0m log: " + "nothing " * 9, 40).split("\n")
    assert [line[:3] for line in marked[1:]] == ["  n"] * 2


# --- times ----------------------------------------------------------------------------------------


def test_every_time_is_told_in_seconds_and_in_iso(filled, run):
    for words in (
        ("recall", "export"), ("sessions",), ("recent",), ("projects",), ("privacy",), ("status",),
        ("stats",), ("timeline",), ("forget", "--query", "export"),
    ):  # fmt: skip
        found = re.findall(
            r'"(\w+)":(\d{9,}(?:\.\d+)?),"(\w+)":"(\d{4}-[^"]+Z)"', run(*words, "--json").out
        )
        assert found, words
        for name, seconds, other, iso in found:
            assert other == f"{name}_iso"
            assert 1_700_000_000 < float(seconds) < 2_000_000_000
            assert time.strftime("%Y-%m-%dT%H:%M", time.gmtime(float(seconds))) in iso


# --- on and off -----------------------------------------------------------------------------------


def test_on_undoes_off_and_says_what_else_keeps_it_off(run, own_home, tmp_path):
    assert run("off", "--all").code == 0
    assert run("off").code == 0
    told = run("on")
    assert "yester is on in" in told.out
    assert "off for another reason: yester is off everywhere" in told.out
    assert run("on", "--all").code == 0
    assert run("off", "--list", "--json").json == {"off": []}


# --- the first minute -----------------------------------------------------------------------------


def test_alone_it_says_what_it_found_on_the_machine_and_the_next_step(run, transcript, home):
    assert "nothing to read yet" in run().out
    transcript().talk(2)
    told = run()
    assert told.code == 0
    assert "Found 1 session: 1 of Claude Code" in told.out
    assert "yester index" in told.out
    assert not (home / "yester.db").exists()  # looking makes nothing
    run("index")
    assert "yester remembers 1 session in 1 project" in run().out


def test_history_shows_what_was_typed_again_and_again_until_it_is_judged(run, transcript):
    for number in range(3):
        said = transcript(f"{number}" * 8 + "-0000-4000-8000-000000000001")
        said.user(("Where are the prices?", "Draw the harbour", "Why is it slow today?")[number])
        said.assistant("There is a cart.")
        said.user("Commit it and update the changelog file")
        said.assistant("Done.")
    run("index")
    shown = run().out
    assert "typed this in 3 sessions" in shown
    (keep,) = re.findall(r"keep: +yester (remember .*)", shown)
    (dismiss,) = re.findall(r"dismiss: yester (feedback .*)", shown)
    # As a rule it would be done in every session, unasked.
    start = "remember --type preference --project shop 'Commit it and update the chang"
    assert keep.startswith(start)
    assert run(*dismiss.split()).code == 0
    assert "typed this" not in run().out
    assert run("feedback", dismiss.split()[1], "--undo").code == 0
    assert "typed this" in run().out
    assert run(*shlex.split(keep)).code == 0
    assert "typed this" not in run().out


def test_history_shows_an_error_that_came_back_with_what_ended_it(run, transcript):
    for number in range(3):
        said = transcript(f"{number}" * 8 + "-0000-4000-8000-000000000001")
        said.user(f"Make round {number} of the checkout tests pass")
        said.result(said.call("Bash", command="npm test"), MISSING, error=True)
        said.result(said.call("Bash", command="npm install left-pad"), "added 1 package")
        said.result(said.call("Bash", command="npm test"), "12 passed")
        said.assistant("All 12 tests pass now.")
    run("index")
    assert "left-pad" not in run().out  # nothing has looked at it yet
    assert run("distil", "--backfill").code == 0
    shown = run().out
    assert re.search(
        "Cannot find module 'left-pad'.* met in 3 sessions; ended by .*npm install", shown
    )
    item = re.findall(r"dismiss: yester feedback (\d+) --useless", shown)[0]
    assert run("feedback", item, "--useless").code == 0
    assert "left-pad" not in run().out


def test_history_shows_one_open_end_of_a_turn(run, transcript):
    said = transcript(clock=int(time.time()) - 3600)
    said.user("Make the refunds of old orders work")
    key = said.call("Edit", file_path="/home/sam/code/shop/pay.py", old_string="a", new_string="b")
    said.result(key, "The file has been updated")
    said.assistant(
        "The order page shows them. The translation of the refund codes still needs to be reviewed "
        "by the bank. The printed receipt is not yet implemented for two currencies."
    )
    assert run("index").code == 0
    assert run("distil", "--backfill").code == 0
    assert run().out.count("left open: ") == 1


def test_history_shows_a_question_that_the_user_has_not_answered(run, transcript):
    said = transcript(clock=int(time.time()) - 3600)
    said.user("Find out how we could pay a refund out in two parts")
    said.assistant("The bank offers transfers and vouchers. Which of the two do you want to use?")
    assert run("index").code == 0
    assert run("distil", "--backfill").code == 0
    shown = run().out
    assert "two parts” ended with a question to you: " in shown
    assert "Which of the two do you want to use?" in shown


def test_history_shows_instructions_that_no_rule_says_and_none_that_was_taken_back(run, transcript):
    said = transcript()
    for words in ("Never change the generated schema", "Always answer in French", "Draw a harbour"):
        said.user(f"{words}.")
        said.assistant("All right, it is done.")
    assert run("index").code == 0
    shown = run().out
    assert "“Never change the generated schema” — you typed this on " in shown
    assert "French" in shown
    said.user("You don't have to answer in French any more.")
    assert run("index").code == 0
    shown = run().out
    assert "schema” — you typed" in shown
    assert "French" not in shown


def test_indexing_a_place_without_transcripts_names_it(run, tmp_path):
    told = run("index", str(tmp_path))
    assert (told.code, told.out.startswith(f"No transcripts found in {tmp_path}.")) == (1, True)
    missing = run("index", str(tmp_path / "a"), str(tmp_path / "b"))
    assert f"{tmp_path / 'a'}, {tmp_path / 'b'}: no such file or folder" in missing.err


MISSING = "Exit code 1\nError: Cannot find module 'left-pad'\n    at require (internal)"


# --- the status line ------------------------------------------------------------------------------


def test_the_status_line_tells_what_is_open_here_and_what_was_given(
    run, transcript, home, tmp_path
):
    said = transcript(clock=int(time.time()) - 3600)
    said.user("Make the refunds of old orders work and run the tests")
    key = said.call("Edit", file_path="/home/sam/code/shop/pay.py", old_string="a", new_string="b")
    said.result(key, "The file has been updated")
    said.result(said.call("Bash", command="pytest -q"), "Exit code 1\n1 failed", error=True)
    said.assistant("The test of refunds still fails: the provider answers 409.")
    assert run("index").code == 0
    assert run("distil", "--backfill").code == 0
    with closing(open_store(home, now=1)) as store, store.transaction("ledger"):
        (session,) = store.sessions(Filters())
        shown = [Injection(session.id, "SessionStart", n, 0, 10, 1, "last") for n in (1, 1, 2)]
        store.append(shown)

    def line(given: object) -> str:
        done = subprocess.run(
            [*YESTER, "--home", str(home), "statusline"], input=json.dumps(given),
            capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    about = {"session_id": session.key, "cwd": "/home/sam/code/shop", "model": {"id": "m"}}
    assert line(about) == "yester: no worker yet\n"
    assert run("worker", "start").code == 0
    try:
        assert line(about) == "yester: 1 open · 2 given\n"
        assert line(about | {"session_id": "another"}) == "yester: 1 open\n"
        assert line({"cwd": str(tmp_path)}) == "yester: on\n"
    finally:
        run("worker", "stop")
