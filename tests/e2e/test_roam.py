"""Two real homes in step over ssh to this machine, and over a bare git repository: the command in
processes of its own, the system's sshd, sftp and git."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.capturing import until
from yester.sharing.segments import MOST_BYTES

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
pytestmark = [pytest.mark.e2e, pytest.mark.requirement("TEAM-05")]
SAMPLES = Path(__file__).parent.parent.parent / "examples" / "sessions"


class Desk:
    """A home, and the command as a user gives it there."""

    def __init__(self, folder: Path, ssh: str = "") -> None:
        self.home, self.user = folder / "memory", folder / "user"
        self.home.mkdir(parents=True)
        self.user.mkdir()
        if ssh:
            (self.home / "roam.ssh_config").write_text(ssh)

    def yester(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        env = {"HOME": str(self.user), "PATH": os.environ["PATH"], "YESTER_EMBEDDER": "none"}
        # What a repository could have set must not be heard of.
        env |= {"GIT_DIR": "/nowhere", "GIT_SSH_COMMAND": "false", "GIT_INDEX_FILE": "/nowhere"}
        return subprocess.run(
            [sys.executable, "-m", "yester", "--home", str(self.home), *words],
            cwd=self.user, env=env, input=given, capture_output=True, text=True,
        )  # fmt: skip

    def roam(self, *words: str, given: str = "") -> str:
        done = self.yester("roam", *words, given=given)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def recall(self, words: str) -> str:
        return self.yester("recall", words).stdout

    @property
    def code(self) -> str:
        return (self.home / "roam.key").read_text()


def keep_in_step(one: Desk, other: Desk, place: str) -> None:
    """The whole story, over whatever the place is."""
    assert one.yester("index", str(SAMPLES)).returncode == 0
    assert "Recovery code" in one.roam("--to", place)
    refused = other.yester("roam", "--join", place, given="WRONG\n")
    assert refused.returncode == 2
    assert "recovery code" in refused.stderr
    assert "stored" in other.roam("--join", place, given=one.code)
    found = other.recall("drop redis")
    assert "Redis" in found
    assert f" · from {socket.gethostname()}" in found
    other.yester("remember", "--project", "tidepool", "We keep the otter in the bath")
    other.roam()
    one.roam()
    assert "otter" in one.recall("otter bath")
    assert one.yester("forget", "--query", "otter", "--yes").returncode == 0
    one.roam()
    other.roam()
    assert other.yester("forget", "--verify", "the otter in the bath").returncode == 0
    assert "Recovery code" in one.roam("--new-key")
    shut_out = other.yester("roam")
    assert shut_out.returncode
    assert "another key" in shut_out.stderr
    other.roam("--join", place, given=one.code)
    assert "waiting: 0 items" in other.roam()
    assert "Stopped" in other.roam("--stop")
    assert "Redis" in other.recall("drop redis")


@pytest.fixture
def desks(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "other"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The system's sshd for this user alone: what ssh's configuration says of it, and a folder."""
    if SSHD is None:
        pytest.skip("no sshd is installed")
    with TemporaryDirectory(prefix="yester-sshd-") as name:
        folder = Path(name)
        for key in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True
            )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\n"
            f"AuthorizedKeysFile {folder / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            f"PidFile {folder / 'pid'}\nSubsystem sftp internal-sftp\n"
        )
        if os.geteuid() == 0:  # where it puts itself before anybody has logged in
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        words = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
        with open(folder / "log", "wb") as log:
            daemon = subprocess.Popen(words, stderr=log, stdout=log)
        try:
            until(lambda: _answers(port) or daemon.poll() is not None)
            assert daemon.poll() is None, (folder / "log").read_text()
            host = (folder / "host.pub").read_text().split()
            (folder / "known").write_text(f"[127.0.0.1]:{port} {host[0]} {host[1]}\n")
            yield (
                f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
                f"  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n"
                f"  UserKnownHostsFile {folder / 'known'}\n",
                tmp_path / "there",
            )
        finally:
            daemon.terminate()
            daemon.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_two_homes_are_kept_in_step_over_ssh(desks, server):
    config, there = server
    one, other = (Desk(folder, config) for folder in desks)
    there.mkdir()
    keep_in_step(one, other, f"ssh://box{there}/a log")
    assert (there / "a log" / "LOG").exists()
    folder = next(path.parent for path in (there / "a log").glob("*/*/*"))
    with open(folder / f"00000099-{'0' * 16}", "wb") as file:
        file.truncate(MOST_BYTES + 1)  # is not even fetched
    one.roam()


def test_two_homes_are_kept_in_step_over_a_bare_git_repository(desks, tmp_path):
    repository = tmp_path / "log.git"
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    one, other = (Desk(folder) for folder in desks)
    keep_in_step(one, other, f"git+file://{repository}")
    words = ["git", "-C", str(repository), "rev-list", "--count", "yester"]
    assert subprocess.check_output(words, text=True).strip() == "1"


def test_two_homes_are_kept_in_step_over_git_behind_ssh(desks, server, tmp_path):
    config, _ = server
    repository = tmp_path / "log.git"
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    one, other = (Desk(folder, config) for folder in desks)
    keep_in_step(one, other, f"git+ssh://box{repository}")
