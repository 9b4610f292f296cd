"""Looks at everything yester stands on and says what is wrong and how to put it right."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw
import msgspec

from yester import __version__, backups
from yester.agents import AGENTS
from yester.capture.spool import NewerFormat, Spool, age, read, trusted_runtime
from yester.config import Config, load
from yester.errors import StoreDamaged, YesterError
from yester.store.sqlite import SqliteStore
from yester.worker import seat
from yester.worker.door import ask

_OLD_EVENT = 60.0  # seconds; a worker takes an event in at once
_LITTLE_SPACE = 500 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: str  # ok, note, problem
    text: str
    fix: str = ""


def examine(home: Path, now: int, fix: bool = False) -> list[Finding]:
    """All checks in order; a check that itself fails is a finding, never an exception."""
    findings: list[Finding] = [_versions()]
    findings += _home(home, fix)
    try:
        config = load(home, os.environ)
    except YesterError as error:
        return [*findings, Finding("settings", "problem", str(error))]
    findings.append(Finding("settings", "ok", _settings(config)))
    findings += [Finding("settings", "note", warning) for warning in config.warnings]
    findings += _transcripts(config)
    findings += _spool(home, now, fix)
    findings += _interpreter(os.environ)
    findings += _worker(home)
    findings += _store(home, config, now, fix)
    return findings


def _versions() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "versions",
        "ok",
        f"yester {__version__}, Python {python}, SQLite {apsw.sqlite_lib_version()}",
    )


def _settings(config: Config) -> str:
    changed = [name for name, origin in config.origins.items() if origin != "default"]
    return f"changed: {', '.join(changed)}" if changed else "all defaults"


def _home(home: Path, fix: bool) -> Iterator[Finding]:
    if not home.exists():
        yield Finding("home", "note", f"{home} does not exist yet", "It is made by: yester index")
        return
    free = shutil.disk_usage(home).free
    state = "problem" if free < _LITTLE_SPACE else "ok"
    yield Finding(
        "disk", state, f"{free / 1e9:.1f} GB free", "Free some space." if state == "problem" else ""
    )
    open_ones = [
        path
        for path in (
            home,
            *home.glob("yester.db*"),
            *home.glob("config.toml"),
            *home.glob("run/*"),
            *home.glob("logs/*"),
            *home.glob("spool/*"),
            *home.glob("off"),
            *home.glob("backups/*"),
        )
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    if not open_ones:
        yield Finding("permissions", "ok", "closed to other users")
    elif fix:
        for path in open_ones:
            path.chmod(0o700 if path.is_dir() else 0o600)
        yield Finding(
            "permissions",
            "ok",
            f"closed to other users now: {', '.join(p.name for p in open_ones)}",
        )
    else:
        yield Finding(
            "permissions", "problem", f"open to other users: {', '.join(map(str, open_ones[:3]))}",
            "Run: yester doctor --fix",
        )  # fmt: skip


def _transcripts(config: Config) -> Iterator[Finding]:
    for agent in AGENTS.values():
        number = sum(1 for _ in agent.find(config))
        yield Finding("transcripts", "ok" if number else "note", f"{agent.label}: {number:,} found")
    other = os.environ.get("CLAUDE_CONFIG_DIR")
    known = [Path(folder).expanduser() for folder in config.texts("claude_code_dirs")]
    if other and Path(other) not in known:
        yield Finding(
            "transcripts", "note", f"CLAUDE_CONFIG_DIR={other} is not among claude_code_dirs",
            f"If its transcripts are yours, add it in {config.home / 'config.toml'}.",
        )  # fmt: skip


def _spool(home: Path, now: int, fix: bool) -> Iterator[Finding]:
    """What hooks have left, and whether they ever could not."""
    spool = Spool(home, trusted_runtime(os.environ, os.getuid()))
    waiting = spool.waiting()
    oldest = max((age(path, now / 1000) for path in waiting), default=0.0)
    foreign = sum(1 for path in waiting if _is_newer(path))
    if foreign:
        yield Finding(
            "spool", "problem", f"{foreign:,} events were left by hooks of a newer yester",
            "Update yester: pip install -U yester",
        )  # fmt: skip
    if len(waiting) > foreign and oldest > _OLD_EVENT:
        yield Finding(
            "spool", "problem", f"{len(waiting):,} events wait, the oldest for {oldest:,.0f} s",
            "Run: yester worker start",
        )  # fmt: skip
    elif not foreign:
        yield Finding("spool", "ok", f"{len(waiting):,} events wait")
    if bad := spool.bad():
        yield Finding(
            "spool", "note", f"{len(bad):,} events could not be understood",
            f"They are kept in {bad[0].parent}; delete them if you do not want them.",
        )  # fmt: skip
    gap = home / "run" / "gap"
    if gap.exists() and (when := gap.stat().st_mtime) > 0:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(when))
        yield Finding(
            "gap", "problem", f"hooks could not write their events, last on {moment}",
            "Free some space, then: yester index (transcripts have what the hooks could not keep)"
            " and yester doctor --fix",
        )  # fmt: skip
        if fix:
            os.utime(gap, (0, 0))
            yield Finding("gap", "ok", "noted")


def _is_newer(path: Path) -> bool:
    try:
        read(path)
    except NewerFormat:
        return True
    except (OSError, ValueError):
        pass
    return False


def _interpreter(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Hooks are run by the python3 of the agent's PATH."""
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is None:
        yield Finding("python3", "problem", "not on the PATH, so hooks cannot run", "Install it.")
    elif "/shims/" in found:
        yield Finding(
            "python3", "note", f"{found} is a script that looks for Python at every hook",
            "Put a real python3 before it on the PATH your agent is started with.",
        )  # fmt: skip
    else:
        yield Finding("python3", "ok", found)


def _worker(home: Path) -> Iterator[Finding]:
    pid = seat.holder(home)
    said = ask(home / "run", "GET /health", 1.0)
    if said is None and pid:
        yield Finding(
            "worker", "problem", f"process {pid} does not answer", "Run: yester worker stop"
        )
        return
    if said is None:
        launch = (home / "run" / "launch").exists()
        fix = "The next session starts it." if launch else "Run: yester worker start"
        yield Finding("worker", "note", "not running", fix)
        return
    health = msgspec.json.decode(said)
    if health["version"] != __version__:
        yield Finding(
            "worker", "note", f"runs yester {health['version']}", "Run: yester worker start"
        )
    children = _children(health["pid"])
    yield Finding(
        "worker", "problem" if children else "ok",
        f"pid {health['pid']}, {health['rss_bytes'] / 1e6:.0f} MB, "
        f"child processes: {', '.join(map(str, children)) or 'none'}",
    )  # fmt: skip


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    except OSError:
        return []  # not on this system
    return [int(word) for word in text.split()]


def _store(home: Path, config: Config, now: int, fix: bool) -> Iterator[Finding]:
    if not (home / "yester.db").exists():
        yield Finding("store", "note", "nothing is indexed yet", "Run: yester index")
        return
    try:
        store = SqliteStore.open(
            home, now=now,
            before_migration=backups.before_migration(home, config.number("backups_kept"), now),
        )  # fmt: skip
    except StoreDamaged as error:
        yield Finding("store", "problem", str(error).split("; ")[0], _advice("", home))
        return
    except YesterError as error:
        yield Finding("store", "problem", str(error))
        return
    try:
        yield from _opened(store, home, fix)
    finally:
        store.close()


def _opened(store: SqliteStore, home: Path, fix: bool) -> Iterator[Finding]:
    problems = store.check()
    broken_index = [text for text in problems if text.startswith("index:")]
    stale = store.stale()
    if fix and (broken_index or stale) and len(broken_index) == len(problems):
        yield _repaired(lambda: _reindex(store))
        problems, stale = store.check(), store.stale()
    for text in problems:
        yield Finding("store", "problem", text, _advice(text, home))
    if stale:
        yield Finding("index", "problem", stale, "Run: yester reindex")
    if not problems:
        counts = store.counts()
        items = sum(counts.items.values())
        yield Finding("store", "ok", f"{items:,} items, {counts.bytes / 1e6:,.1f} MB, no damage")
    kept = backups.listed(home)
    newest = f"{len(kept)}, newest {kept[0].name}" if kept else "none yet"
    yield Finding("backups", "ok" if kept else "note", newest, "" if kept else "Run: yester backup")


def _advice(text: str, home: Path) -> str:
    if text.startswith("index:"):
        return "Run: yester reindex (the items themselves are not affected)"
    if backups.listed(home):
        return "Bring a backup back: yester restore latest (the present file is moved aside)"
    return (
        f"There is no backup. Move {home / 'yester.db'} away and run: yester index"
        " (the transcripts are read again)"
    )


def _repaired(repair: Callable[[], int]) -> Finding:
    try:
        return Finding("index", "ok", f"built anew over {repair():,} items")
    except (YesterError, apsw.Error) as error:
        return Finding("index", "problem", f"could not be built anew: {error}")


def _reindex(store: SqliteStore) -> int:
    with store.transaction():
        return store.reindex()
