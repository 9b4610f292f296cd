"""Signals and staleness of real repositories, and of those that were made to harm."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capturing import until
from yester import git
from yester.ingest.transcripts import add_items
from yester.model import Item
from yester.project import Projects
from yester.recall.staleness import Facts, GitFacts, Staleness, Work, judge_staleness

LATER = 10.0  # seconds; no test waits for it
DAY = 86_400
START = 1_770_000_000  # seconds; the first commit
PERSON = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "t"), ("EMAIL", "t@example.org"))
}


def soon() -> float:
    return time.monotonic() + LATER


def plain(folder: Path, *words: str, day: float = 0, code: int | None = 0, **more: str) -> str:
    """Git as anybody would run it."""
    moment = f"{START + int(day * DAY)} +0000"
    dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words],
        cwd=folder,
        env={**os.environ, **PERSON, **dates, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert code is None or done.returncode == code, done.stderr
    return done.stdout.strip()


def commit(repo: Path, day: float = 0, **files: str | None) -> str:
    """A commit with these files; their names with _ for a dot. None deletes."""
    for name, text in files.items():
        path = repo / name.replace("__", "/").replace("_", ".")
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    plain(repo, "add", "--all")
    plain(repo, "commit", "--allow-empty", "--message", f"day {day}", day=day)
    return plain(repo, "rev-parse", "HEAD")


def moved(repo: Path, old: str, new: str, day: float) -> None:
    (repo / new).parent.mkdir(parents=True, exist_ok=True)
    plain(repo, "mv", old, new)
    plain(repo, "commit", "--message", "move", day=day)


def lines(number: int, mark: str = "") -> str:
    return "".join(f"line {line} {mark}\n" for line in range(number))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two files, two commits, one change that is not committed and one new file."""
    folder = tmp_path / "shop"
    folder.mkdir()
    plain(folder, "init")
    commit(folder, 0, a_txt=lines(9), src__b_py="b = 1\n")
    commit(folder, 1, src__b_py="b = 2\n")
    (folder / "a.txt").write_text(lines(9, "changed"))
    (folder / "new.txt").write_text("new\n")
    return folder


def made(day: float, *modified: str, read: tuple[str, ...] = ()) -> Work:
    return Work(1, int((START + day * DAY) * 1000), modified, read)


def judged(repo: Path, one: Work, cache: GitFacts | None = None) -> Staleness | None:
    """With as much time as it takes: a busy machine must not change what is true."""
    cache = cache or GitFacts()
    for _ in range(50):
        facts = cache.gather_facts(str(repo), [one], soon())
        if facts.reach is not None:
            break
    return judge_staleness([one], facts).get(1)


def patient(name: str, there: git.Repository, *values: int | str) -> git.Answer:
    """An answer, asked for again where a busy machine did not let git finish."""
    for _ in range(50):
        answer = git.ask_git(name, there, *values, deadline=soon())
        if answer.end != "late":
            break
    return answer


def patient_signals(folder: Path) -> git.Signals:
    """The fullest of several answers, for the same reason."""
    tries = [git.collect_signals(str(folder), soon()) for _ in range(5)]
    return max(tries, key=lambda told: (bool(told.recent), len(told.changed), len(told.recent)))


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.requirement("REC-07")
def test_a_work_tree_tells_branch_changes_and_recent_files(repo):
    (repo / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    found = patient_signals(repo)
    assert found.branch == "main"
    assert found.head == plain(repo, "rev-parse", "HEAD")
    assert found.changed == ("a.txt", "new.txt", "pyproject.toml")
    assert found.recent == ("src/b.py", "a.txt")
    assert found.manifests == (("pyproject.toml", "shop"),)


@pytest.mark.requirement("REC-07")
def test_staged_deleted_and_oddly_named_files_are_changes(repo):
    (repo / "src" / "b.py").unlink()
    odd = "ü ?? \n -> x.txt"
    (repo / odd).write_text("odd\n")
    plain(repo, "add", "--", odd)
    assert set(patient_signals(repo).changed) == {"a.txt", "src/b.py", odd, "new.txt"}


@pytest.mark.requirement("REC-07")
def test_ignored_files_are_no_signal_and_a_new_folder_is_one(repo):
    (repo / ".gitignore").write_text("*.log\n")
    (repo / ".git" / "info" / "exclude").write_text("private/\n")
    for name in ("x.log", "private/x", "fresh/x", "fresh/y"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("x")
    assert patient_signals(repo).changed == ("a.txt", ".gitignore", "fresh/", "new.txt")


@pytest.mark.requirement("REC-07")
def test_a_part_of_a_repository_sees_its_own_files_from_where_it_is(repo):
    (repo / "src" / "c.py").write_text("c\n")
    found = patient_signals(repo / "src")
    assert found.changed == ("c.py",)
    assert found.recent == ("b.py",)


@pytest.mark.requirement("REC-07")
def test_a_folder_without_git_tells_its_manifests_alone(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "shop"}')
    assert git.collect_signals(str(tmp_path), soon()) == git.Signals(
        manifests=(("package.json", "shop"),)
    )


def worktree(repo: Path) -> Path:
    plain(repo, "worktree", "add", "-b", "side", "../side")
    (repo.parent / "side" / "a.txt").write_text("changed\n")
    return repo.parent / "side"


def split_index(repo: Path) -> Path:
    plain(repo, "update-index", "--split-index")
    assert list((repo / ".git").glob("sharedindex.*"))
    return repo


def packed(repo: Path) -> Path:
    plain(repo, "gc")
    assert not (repo / ".git" / "refs" / "heads" / "main").exists()
    return repo


def detached(repo: Path) -> Path:
    plain(repo, "checkout", "--detach")
    return repo


def shallow(repo: Path) -> Path:
    plain(repo.parent, "clone", "--depth", "1", f"file://{repo}", "shallow")
    (repo.parent / "shallow" / "a.txt").write_text("changed\n")
    return repo.parent / "shallow"


def borrowed(repo: Path) -> Path:
    plain(repo.parent, "clone", "--shared", "shop", "borrowed")
    (repo.parent / "borrowed" / "a.txt").write_text("changed\n")
    return repo.parent / "borrowed"


def submodule(repo: Path) -> Path:
    plain(repo.parent, "init", "above")
    plain(repo.parent / "above", "submodule", "add", str(repo), "part")
    (repo.parent / "above" / "part" / "a.txt").write_text("changed\n")
    return repo.parent / "above" / "part"


@pytest.mark.requirement("REC-07")
@pytest.mark.parametrize(
    "kind", [worktree, split_index, packed, detached, shallow, borrowed, submodule]
)
def test_every_kind_of_repository_answers(repo, kind):
    folder = kind(repo)
    found = patient_signals(folder)
    assert found.head == plain(folder, "rev-parse", "HEAD")
    assert found.branch == plain(folder, "branch", "--show-current")
    assert found.changed[0] == "a.txt"
    assert "src/b.py" in found.recent


def test_a_repository_with_long_ids_answers(tmp_path):
    plain(tmp_path, "init", "--object-format=sha256")
    commit(tmp_path, 0, a_txt="a")
    (tmp_path / "a.txt").write_text("b")
    found = patient_signals(tmp_path)
    assert len(found.head) == 64
    assert (found.changed, found.recent) == (("a.txt",), ("a.txt",))


def test_a_repository_without_commits_tells_what_is_there(tmp_path):
    plain(tmp_path, "init")
    (tmp_path / "a.txt").write_text("a")
    plain(tmp_path, "add", "--all")
    (tmp_path / "b.txt").write_text("b")
    found = patient_signals(tmp_path)
    assert (found.branch, found.head) == ("main", "")
    assert (found.changed, found.recent) == (("a.txt", "b.txt"), ())
    assert (
        judge_staleness(
            [made(0, "a.txt")], GitFacts().gather_facts(str(tmp_path), [made(0, "a.txt")], soon())
        )
        == {}
    )


# --- staleness -----------------------------------------------------------------------------------


@pytest.mark.requirement("REC-19")
@pytest.mark.parametrize(
    ("one", "state", "text"),
    [
        (made(1, "a.py"), "changed", "a.py changed once since"),
        (made(-1, "a.py"), "changed", "a.py changed 2 times since"),
        (made(0.5, "a.py"), "changed", "a.py changed once since"),
        (made(2, "a.py"), "", ""),
        (made(9, "a.py"), "", ""),
        (made(0.5, read=("a.py",)), "changed", "a.py changed 2 times since"),
        (made(1, "old.py"), "renamed", "old.py renamed to new.py"),
        (made(1, "bye.py"), "gone", "bye.py is gone"),
        (made(1, "steady.py"), "", ""),
    ],
)
def test_an_item_says_what_became_of_its_file(tmp_path, one, state, text):
    plain(tmp_path, "init")
    same = {"old_py": lines(40), "bye_py": "bye\n", "steady_py": "s\n"}
    commit(tmp_path, 0, a_py="0\n", **same)
    commit(tmp_path, 1, a_py="1\n")
    moved(tmp_path, "old.py", "new.py", 2)
    commit(tmp_path, 2, a_py="2\n")
    commit(tmp_path, 3, bye_py=None)
    found = judged(tmp_path, one)
    assert found is not None
    assert (found.state, found.text) == (state, text)


@pytest.mark.requirement("REC-19")
def test_a_file_is_followed_through_moves_and_edits(tmp_path):
    plain(tmp_path, "init")
    commit(tmp_path, 0, a_py=lines(40))
    moved(tmp_path, "a.py", "b.py", 2)
    (tmp_path / "b.py").write_text(lines(40) + "one more\n")
    moved(tmp_path, "b.py", "src/c.py", 3)
    commit(tmp_path, 4, src__c_py=lines(42))
    found = judged(tmp_path, made(1, read=("a.py",)))
    assert found is not None
    assert found.text == "a.py renamed to src/c.py, changed once since"


@pytest.mark.requirement("REC-19")
def test_a_rebase_changes_nothing(tmp_path):
    plain(tmp_path, "init")
    commit(tmp_path, 0, a_py="0\n", other_py="0\n")
    plain(tmp_path, "checkout", "-b", "side")
    commit(tmp_path, 1, a_py="1\n")
    plain(tmp_path, "checkout", "main")
    commit(tmp_path, 2, other_py="2\n")
    plain(tmp_path, "rebase", "main", "side", day=5)
    found = judged(tmp_path, made(1.5, "a.py", read=("other.py",)))
    assert found is not None
    assert found.text == "other.py changed once since"


@pytest.mark.requirement("REC-19")
def test_the_edge_of_a_shallow_clone_is_not_taken_for_a_change(tmp_path):
    source = tmp_path / "source"
    plain(tmp_path, "init", "source")
    for day in range(5):
        commit(source, day, a_py=f"{day}\n", steady_py="s\n")
    plain(tmp_path, "clone", "--depth", "2", f"file://{source}", "clone")
    assert judged(tmp_path / "clone", made(0.5, read=("steady.py",))) is None
    changed = judged(tmp_path / "clone", made(0.5, read=("a.py",)))
    assert changed is not None
    assert changed.text == "a.py changed at least once since"


@pytest.mark.requirement("REC-19")
def test_a_folder_without_git_knows_only_what_is_gone(tmp_path):
    (tmp_path / "a.py").write_text("a")
    assert judged(tmp_path, made(0, "a.py")) == Staleness()
    gone = judged(tmp_path, made(0, "b.py"))
    assert gone is not None
    assert gone.text == "b.py is gone"


@pytest.mark.requirement("REC-19")
def test_a_project_that_is_a_part_of_a_repository_is_judged_from_where_it_is(tmp_path):
    plain(tmp_path, "init")
    commit(tmp_path, 0, api__a_py=lines(40), a_py="other\n")
    commit(tmp_path, 1, a_py="other 2\n")
    moved(tmp_path, "api/a.py", "api/b.py", 2)
    found = judged(tmp_path / "api", made(0.5, read=("a.py",)))
    assert found is not None
    assert found.text == "a.py renamed to b.py"


@pytest.mark.requirement("REC-19")
def test_new_commits_are_added_to_what_was_read(tmp_path):
    plain(tmp_path, "init")
    commit(tmp_path, 0, a_py="0\n")
    cache, one = GitFacts(), made(0.5, read=("a.py",))
    texts = []
    for day in range(1, 4):
        commit(tmp_path, day, a_py=f"{day}\n")
        found = judged(tmp_path, one, cache)
        texts.append(found.text if found else "")
    plain(tmp_path, "reset", "--hard", "HEAD~2")
    back = judged(tmp_path, one, cache)
    texts.append(back.text if back else "")
    assert texts == [
        "a.py changed once since",
        "a.py changed 2 times since",
        "a.py changed 3 times since",
        "a.py changed once since",
    ]


# --- nothing of a repository's own is run --------------------------------------------------------


class Trap:
    """A program that leaves a mark when it is run."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "sprung"
        self.path = folder / "trap.sh"
        self.then("exec cat")  # a filter
        self.path.chmod(0o755)

    def then(self, command: str) -> None:
        self.path.write_text(f"#!/bin/sh\necho run >> {self.mark}\n{command}\n")

    @property
    def sprung(self) -> bool:
        return self.mark.exists()


def config(repo: Path, **settings: str) -> None:
    for name, value in settings.items():
        plain(repo, "config", name.replace("__", "."), value)


def noted_otherwise(repo: Path) -> None:
    """The index has another time for this file: git compares contents, and would write it down."""
    os.utime(repo / "src" / "b.py", (START, START))


def fsmonitor(repo: Path, trap: Trap) -> Path:
    config(repo, core__fsmonitor=str(trap.path))
    return repo


def hook(repo: Path, trap: Trap) -> Path:
    shutil.copy(trap.path, repo / ".git" / "hooks" / "post-index-change")
    noted_otherwise(repo)
    return repo


def hooks_folder(repo: Path, trap: Trap) -> Path:
    (repo / "hooks").mkdir()
    shutil.copy(trap.path, repo / "hooks" / "post-index-change")
    noted_otherwise(repo)
    config(repo, core__hooksPath="hooks")
    return repo


def clean_filter(repo: Path, trap: Trap) -> Path:
    (repo / ".gitattributes").write_text("*.py filter=evil\n")
    noted_otherwise(repo)
    config(repo, filter__evil__clean=str(trap.path), filter__evil__smudge=str(trap.path))
    return repo


def process_filter(repo: Path, trap: Trap) -> Path:
    (repo / ".git" / "info" / "attributes").write_text("*.py filter=evil\n")
    noted_otherwise(repo)
    config(repo, filter__evil__process=str(trap.path), filter__evil__required="true")
    return repo


def textconv(repo: Path, trap: Trap) -> Path:
    (repo / ".gitattributes").write_text("*.txt diff=evil\n")
    config(repo, diff__evil__textconv=str(trap.path))
    return repo


def external_diff(repo: Path, trap: Trap) -> Path:
    config(repo, diff__external=str(trap.path))
    return repo


def diff_driver(repo: Path, trap: Trap) -> Path:
    (repo / ".gitattributes").write_text("*.txt diff=evil\n")
    config(repo, diff__evil__command=str(trap.path))
    return repo


def included(repo: Path, trap: Trap) -> Path:
    (repo / "more.cfg").write_text(f"[core]\n\tfsmonitor = {trap.path}\n")
    config(repo, include__path="../more.cfg")
    return repo


def included_where(repo: Path, trap: Trap) -> Path:
    (repo / "more.cfg").write_text(f"[core]\n\tfsmonitor = {trap.path}\n")
    plain(repo, "config", f"includeIf.gitdir:{repo}/.path", "../more.cfg")
    return repo


def of_the_work_tree(repo: Path, trap: Trap) -> Path:
    config(repo, extensions__worktreeConfig="true")
    plain(repo, "config", "--worktree", "core.fsmonitor", str(trap.path))
    return repo


def pointed_elsewhere(repo: Path, trap: Trap) -> Path:
    config(repo, core__fsmonitor=str(trap.path))
    (repo / ".git").rename(repo / "innocent")
    (repo / ".git").write_text("gitdir: innocent\n")
    return repo


def alias(repo: Path, trap: Trap) -> Path:
    config(repo, alias__st=f"!{trap.path}", alias__status=f"!{trap.path}")
    return repo


def signature(repo: Path, trap: Trap) -> Path:
    tree = plain(repo, "rev-parse", "HEAD^{tree}")
    parent = plain(repo, "rev-parse", "HEAD")
    (repo.parent / "signed").write_text(
        f"tree {tree}\nparent {parent}\nauthor t <t@example.org> {START} +0000\n"
        f"committer t <t@example.org> {START} +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n"
        " \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    )
    signed = plain(repo, "hash-object", "-t", "commit", "-w", str(repo.parent / "signed"))
    plain(repo, "update-ref", "HEAD", signed)
    config(repo, gpg__program=str(trap.path), log__showSignature="true")
    return repo


def ssh(repo: Path, trap: Trap) -> Path:
    trap.then("exit 1")  # git and a mere echo would wait for each other
    config(repo, core__sshCommand=str(trap.path), remote__origin__url="ssh://example.org/x")
    return repo


def submodule_inside(repo: Path, trap: Trap) -> Path:
    plain(repo.parent, "init", "part")
    commit(repo.parent / "part", 0, p_txt="p")
    plain(repo, "submodule", "add", str(repo.parent / "part"), "part")
    config(repo / "part", core__fsmonitor=str(trap.path))
    return repo


def submodule_update(repo: Path, trap: Trap) -> Path:
    submodule_inside(repo, trap)
    plain(repo / "part", "config", "--unset", "core.fsmonitor")
    commit(repo / "part", 1, p_txt="q")
    config(repo, submodule__part__update=f"!{trap.path}", submodule__recurse="true")
    return repo


def missing_objects(repo: Path, trap: Trap) -> Path:
    """A partial clone: what is missing would be fetched by the remote's own command."""
    plain(repo, "stash", "--include-untracked")
    plain(repo, "stash", "drop")
    moved(repo, "a.txt", "c.txt", 2)
    commit(repo, 3, c_txt=lines(9, "x") + lines(9))
    moved(repo, "c.txt", "a.txt", 4)
    (repo / "d.txt").write_text(lines(10, "x"))
    (repo / "a.txt").unlink()
    plain(repo, "add", "--all")
    plain(repo, "commit", "--message", "moved and changed", day=5)
    commit(repo, 6, a_txt=lines(9), d_txt=None)
    config(repo, uploadpack__allowFilter="true")
    clone = repo.parent / "partial"
    plain(repo.parent, "clone", "--filter=blob:none", "--no-checkout", f"file://{repo}", "partial")
    plain(clone, "reset")
    (clone / "src").mkdir()
    (clone / "src" / "b.py").write_text("b = 3\n")
    trap.then("exit 1")
    config(clone, remote__origin__uploadpack=str(trap.path))
    return clone


TRAPS: list[tuple[Callable[[Path, Trap], Path], tuple[str, ...]]] = [
    (fsmonitor, ("status",)),
    (hook, ("status",)),
    (hooks_folder, ("status",)),
    (clean_filter, ("status",)),
    (process_filter, ("status",)),
    (textconv, ("diff",)),
    (external_diff, ("diff",)),
    (diff_driver, ("diff",)),
    (included, ("status",)),
    (included_where, ("status",)),
    (of_the_work_tree, ("status",)),
    (pointed_elsewhere, ("status",)),
    (alias, ("st",)),
    (signature, ("log",)),
    (ssh, ("fetch",)),
    (submodule_inside, ("status",)),
    (submodule_update, ("submodule", "update")),
    (missing_objects, ("log", "--patch")),
]


@pytest.mark.requirement("OPS-02")
@pytest.mark.parametrize(("build", "spring"), TRAPS, ids=[build.__name__ for build, _ in TRAPS])
def test_no_program_of_a_repository_is_run(repo, tmp_path, build, spring):
    trap = Trap(tmp_path)
    folder = build(repo, trap)
    trap.mark.unlink(missing_ok=True)  # the building may have run it
    found = patient_signals(folder)
    there = git.find_repository(str(folder))
    assert there is not None
    ends = {
        name: patient(name, there, *values).end
        for name, values in {
            "changed": (),
            "untracked": (),
            "history": (20, 0, there.head),
            "history by name": (20, 0, there.head),
            "news": (20, 0, there.head, there.head),
            "base": (there.head, there.head),
            "first": (),
            "commit": (there.head,),
        }.items()
    }
    judged(folder, made(0.5, "src/b.py", read=("a.txt",)))
    assert not trap.sprung
    assert ("src/b.py" if build is missing_objects else "a.txt") in found.changed
    assert build is missing_objects or "src/b.py" not in found.changed  # looked into, and the same
    assert set(ends) == set(git.COMMANDS)
    assert [name for name, end in ends.items() if end != "whole"] in ([], ["history"])
    # The trap is a real one: git as anybody runs it does step into it.
    plain(folder, *spring, code=None)
    assert trap.sprung


@pytest.mark.requirement("REC-19")
def test_a_history_with_missing_contents_is_read_by_name(repo, tmp_path):
    clone = missing_objects(repo, Trap(tmp_path))
    there = git.find_repository(str(clone))
    assert there is not None
    assert patient("history", there, 20, 0, there.head).end == "failed"
    found = judged(clone, made(2.5, read=("src/b.py", "a.txt")))
    assert found is not None
    assert found.state == "changed"


@pytest.mark.requirement("OPS-02")
def test_replaced_commits_are_not_believed(repo):
    real = plain(repo, "rev-parse", "HEAD")
    plain(repo, "replace", real, plain(repo, "rev-parse", "HEAD~1"))
    assert plain(repo, "log", "--format=%s", "-1") == "day 0"
    assert patient_signals(repo).recent == ("src/b.py", "a.txt")


@pytest.mark.requirement("OPS-02")
def test_the_environment_does_not_reach_git(repo, tmp_path, monkeypatch):
    trap = Trap(tmp_path)
    evil = tmp_path / "evil"
    evil.mkdir()
    shutil.copy(trap.path, evil / "git")
    (evil / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {trap.path}\n")
    for name, value in {
        "PATH": str(evil),
        "HOME": str(evil),
        "TMPDIR": str(evil),
        "GIT_DIR": str(evil),
        "GIT_EXEC_PATH": str(evil),
        "GIT_EXTERNAL_DIFF": str(trap.path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(trap.path),
        "GIT_TRACE": str(evil / "trace"),
    }.items():
        monkeypatch.setenv(name, value)
    found = patient_signals(repo)
    assert found.changed == ("a.txt", "new.txt")
    assert not trap.sprung
    assert sorted(path.name for path in evil.iterdir()) == [".gitconfig", "git"]


@pytest.mark.requirement("OPS-02")
def test_asking_leaves_no_trace_in_the_repository_or_elsewhere(repo):
    head = commit(repo, 2, own_txt=f"no other test has this commit: {repo}")
    noted_otherwise(repo)

    def everything() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in repo.rglob("*")
        }

    before = everything()
    patient_signals(repo)
    judged(repo, made(0, "a.txt"))
    assert everything() == before
    assert head not in [
        git.read_text(path).strip() for path in Path("/tmp").glob("yester-git-*/HEAD")
    ]


# --- deadlines -----------------------------------------------------------------------------------


def fake(folder: Path, script: str) -> str:
    """A lookup path with another git in it."""
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    return str(folder)


def closed(pipe: int) -> bool:
    """Has every process that held the other end ended? Waits for it, within reason."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        select.select([pipe], [], [], 1)
        if not os.read(pipe, 100):
            return True
    return False


@pytest.mark.requirement("OPS-02")
def test_a_git_that_hangs_is_ended_with_its_children(repo, tmp_path):
    there = git.find_repository(str(repo))
    assert there is not None
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    # The children keep the pipe open as long as one of them lives, and ignore a polite end.
    path = fake(
        tmp_path / "bin",
        f"trap '' TERM INT HUP; exec 9>{alive}; sleep 300 & sleep 300 & printf begun; sleep 300",
    )
    pipe = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for _ in range(50):  # until the machine lets it begin in time
            began = time.monotonic()
            answer = git.ask_git("changed", there, deadline=began + LATER, path=path)
            took = time.monotonic() - began
            assert answer.end == "late"
            assert took < 2.0  # 150 ms and whatever a busy machine adds; not 300 s, not 10 s
            assert closed(pipe)
            if answer.out == b"begun":
                break
        assert answer.out == b"begun"
    finally:
        os.close(pipe)


@pytest.mark.requirement("OPS-02")
@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1, LATER])
def test_a_caller_in_a_hurry_is_not_kept_waiting(repo, tmp_path, seconds):
    path = fake(tmp_path / "bin", "sleep 300")
    one = made(0, "a.txt")
    cache = GitFacts(path=path)
    least = LATER
    for _ in range(5):  # a busy machine adds to some, not to all
        began = time.monotonic()
        assert git.collect_signals(str(repo), began + seconds / 2, path).changed == ()
        facts = cache.gather_facts(str(repo), [one], time.monotonic() + seconds / 2)
        least = min(least, time.monotonic() - began)
        assert judge_staleness([one], facts) == {}
    # three questions of signals, two of a history, 150 ms each at most
    assert least < min(seconds, 5 * git.MOST_SECONDS) + 0.15


@pytest.mark.requirement("OPS-02")
def test_a_git_that_is_given_up_leaves_no_process_behind(repo, tmp_path):
    there = git.find_repository(str(repo))
    assert there is not None
    path = fake(tmp_path / "bin", "echo $$; sleep 300")
    out = b""
    while not out:  # until the machine lets it begin in time
        out = git.ask_git("changed", there, deadline=soon(), path=path).out
    with pytest.raises(ProcessLookupError):  # one that has ended is there until it is waited for
        until(lambda: os.kill(int(out), 0))


@pytest.mark.requirement("OPS-02")
def test_one_git_runs_at_a_time(repo, tmp_path):
    there = git.find_repository(str(repo))
    assert there is not None
    started = tmp_path / "started"
    os.mkfifo(started)
    path = fake(tmp_path / "bin", f"echo x > {started}; sleep 300")
    second = git.Answer(b"", "")
    for _ in range(50):  # until this thread is quick enough to ask while the first one runs
        first = threading.Thread(
            target=lambda: git.ask_git("changed", there, deadline=soon(), path=path)
        )
        pipe = os.open(started, os.O_RDONLY | os.O_NONBLOCK)
        first.start()
        ready, _, _ = select.select([pipe], [], [], 5)
        if ready:
            second = git.ask_git("changed", there, deadline=time.monotonic() + 0.01)
        first.join()
        os.close(pipe)
        if second.end == "not begun":
            break
    assert second.end == "not begun"


@pytest.mark.requirement("OPS-02")
def test_a_git_that_never_stops_talking_is_cut_off(repo, tmp_path):
    there = git.find_repository(str(repo))
    assert there is not None
    path = fake(tmp_path / "bin", "exec yes")
    answer = git.ask_git("changed", there, deadline=soon(), path=path)
    assert answer.end == "late"
    assert len(answer.out) < 5 << 20
    assert git.ask_git("changed", there, deadline=soon(), path=path).whole_output is None


@pytest.mark.requirement("OPS-02")
def test_a_pipe_in_the_place_of_the_index_costs_its_deadline_and_no_more(repo):
    (repo / ".git" / "index").unlink()
    os.mkfifo(repo / ".git" / "index")
    began = time.monotonic()
    assert git.collect_signals(str(repo), began + LATER).changed == ()
    assert time.monotonic() - began < 3.0


@pytest.mark.requirement("REC-19", "OPS-02")
def test_what_was_read_in_time_is_kept_and_the_next_question_reads_on(repo, tmp_path):
    """A git that prints two commits and then hangs, whatever it is asked."""
    head = plain(repo, "rev-parse", "HEAD")
    when = [START + day * DAY for day in (9, 8, 7)]
    log = "".join(f"{head} {at} {at}\\0\\nM\\0a.txt\\0" for at in when)
    path = fake(tmp_path / "bin", f"printf '{log}'; sleep 300")
    cache, one = GitFacts(path=path), made(0, read=("a.txt",))
    counts = []
    for _ in range(50):
        facts = cache.gather_facts(str(repo), [one], time.monotonic() + 0.16)
        counts.append(len(facts.touches.get("a.txt", ())))
        if len(counts) > 1 and counts[-1] > counts[0] > 0:
            break
        if counts[-1] == 0:
            counts.clear()
    assert counts[0] % 2 == 0  # the third commit may not be complete
    assert counts[-1] > counts[0]
    found = judge_staleness([one], facts)[1]
    assert found.text == f"a.txt changed at least {counts[-1]} times since"


def test_a_cache_keeps_only_so_many_repositories(tmp_path):
    real = str(Path(shutil.which("git") or "").parent)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "git").symlink_to(f"{real}/git")
    cache, one = GitFacts(size=2, path=str(bin_)), made(0, "a.py")
    for name in "abc":
        plain(tmp_path, "init", name)
        commit(tmp_path / name, 0, a_py="0\n")
        assert judged(tmp_path / name, one, cache) == Staleness()
    (bin_ / "git").unlink()
    known = {
        name: judge_staleness([one], cache.gather_facts(str(tmp_path / name), [one], soon()))
        for name in "bca"
    }
    assert known == {"a": {}, "b": {1: Staleness()}, "c": {1: Staleness()}}


def test_facts_of_a_folder_that_is_gone_are_none(tmp_path):
    assert GitFacts().gather_facts(str(tmp_path / "gone"), [made(0, "a.py")], soon()) == Facts()


@pytest.mark.requirement("REC-19")
def test_recall_says_what_has_happened_to_the_files_of_a_hit(run, home, tmp_path):
    import yester

    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "charge.py").write_text("one\n")
    plain(folder, "init", "-q")
    plain(folder, "add", ".")
    plain(folder, "commit", "-qm", "begin")
    key = f"dir:{folder}"
    with yester.open(home) as memory:
        from yester.model import Item
        from yester.project import identify_project

        gone = Item("1", "observation", project=key, epoch=1_000, body="retry the charge",
                    files_modified=("refund.py",))  # fmt: skip
        add_items(memory.store, [(gone, identify_project(str(folder)))])
    (hit,) = run("recall", "retry charge", "--json", cwd=folder).json["hits"]
    assert "refund.py" in hit["stale"]
    assert f"! {hit['stale']}" in run("recall", "retry charge", cwd=folder).out
    (elsewhere,) = run("recall", "retry charge", "--json").json["hits"]
    assert "stale" not in elsewhere


@pytest.mark.requirement("REC-07")
@pytest.mark.parametrize("place", ["../side", ".worktrees/side"])
def test_a_question_in_a_linked_work_tree_knows_what_is_changed_there(repo, memory, run, place):
    """Wherever it lies: beside the main one or in a folder of it."""
    plain(repo, "worktree", "add", "-b", "side", place)
    side = (repo / place).resolve()
    (side / "side.txt").write_text("only here\n")
    project = Projects({}).by_folder(str(side))
    notes = [
        Item(name, "observation", project.key, body=f"The till rounds {name} to cents.",
             files_modified=(name,))
        for name in ("side.txt", "a.txt")  # the second is changed in the main one
    ]  # fmt: skip
    add_items(memory.store, [(note, project) for note in notes])
    assert git.find_top(str(side), project.root) == str(side)
    assert git.find_top(str(side / "src"), project.root) == str(side)
    for _ in range(50):  # on a busy machine git may be late, and is left out then
        hits = run("recall", "till cents", "--explain", "--json", cwd=side).json["hits"]
        touched = {hit["ref"]: hit["factors"].get("files", 0) > 0 for hit in hits}
        if any(touched.values()):
            break
    assert touched == {"side.txt": True, "a.txt": False}
