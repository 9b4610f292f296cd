"""What doctor looks at in yester's own house: its folder, what runs, the store."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from yester import __version__
from yester.agents.base import find_transcripts, list_folders
from yester.agents.descriptors import AGENTS, CLAUDE_CODE
from yester.capture.homes import find_python, is_usual, record_home, usual_home
from yester.capture.question import ask_health, ask_worker
from yester.capture.spool import ENDED_WORKER, FORMAT, Spool, event_age, open_spool, peek_event
from yester.clock import DAY, format_minute
from yester.errors import NO_DATABASE, ModelError, StoreDamaged, StoreError
from yester.folders import open_folders
from yester.ingest.projects import describe_joins
from yester.machine import is_own, user_number
from yester.memory import Memory
from yester.model import Join, Paging
from yester.operate import backups
from yester.operate.doctor.finding import Examination, Finding, list_paths, make_finding
from yester.operate.doctor.trial import time_program
from yester.operate.install import recorded_places
from yester.operate.purge import open_copy
from yester.operations.forget import load_wish, no_worker
from yester.operations.roam import show_roam
from yester.operations.share import show_sharing
from yester.redact import redact
from yester.sharing.roam import load_roaming
from yester.sharing.share import load_shares
from yester.store import (
    engine_version,
    find_target,
    maintenance_of,
    store_exists,
    store_files,
    store_location,
)
from yester.store.contract import Store
from yester.store.figures import project_parts, vector_backlog
from yester.worker import process

_LITTLE_SPACE = 500 * 1024 * 1024
_FOLDERS = ("run", "logs", "spool", "spool/tmp", "spool/new")  # of a home that has been used
OLDEST_PYTHON = (3, 9)  # that runs hook.py and ask.py
_OLD_EVENT = 60.0  # seconds; a worker takes an event in at once
_A_DAY = 86_400
_STEP = DAY  # ms for which machines may be out of step: this one may have been off
_LOG_LINES = 3
_MAY_RUN = ("git", "claude")
_MISSING = "is not there"


# --- yester's folder, and what is read --------------------------------------------------------


def look_at_versions(_: Examination) -> list[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    engine = engine_version()
    return [make_finding("versions.present", yester=__version__, python=python, engine=engine)]


def look_at_settings(case: Examination) -> Iterator[Finding]:
    changed = [name for name, origin in case.config.origins.items() if origin != "default"]
    name = "settings.changed" if changed else "settings.defaults"
    yield make_finding(name, names=", ".join(changed))
    yield from (make_finding("settings.warning", text=text) for text in case.config.warnings)


def look_at_roaming(case: Examination) -> Iterator[Finding]:
    """The user's other machines, where there are any."""
    if load_roaming(case.home) is None:
        return
    with closing(Memory(case.home, case.environ)) as memory:
        state = show_roam(memory)
    others = sum(not one.own for one in state.machines)
    waiting = state.waiting - state.private
    late = case.now - state.last > _STEP
    yield from (make_finding("roam.problem", text=text) for text in state.problems)
    if late and not state.problems:
        last = format_minute(state.last) if state.last else "its beginning"
        yield make_finding("roam.behind", to=state.to, last=last, waiting=waiting)
    elif not state.problems:
        yield make_finding("roam.instep", machines=others, to=state.to, waiting=waiting)


def look_at_sharing(case: Examination) -> Iterator[Finding]:
    """Projects that a team shares, where there are any."""
    if not load_shares(case.home).projects:
        return
    with closing(Memory(case.home, case.environ)) as memory:
        shared = show_sharing(memory).projects
    for one in shared:
        yield from (make_finding("share.problem", text=text) for text in one.problems)
        refused = sum(len(some.items) for some in one.refused)
        if refused:
            yield make_finding("share.refused", project=one.project, to=one.to, items=refused)
        if one.state == "ended":
            yield make_finding("share.ended", project=one.project, why=one.ended)
        elif case.now - one.last > _STEP and not one.problems:
            last = format_minute(one.last) if one.last else "its beginning"
            yield make_finding("share.behind", project=one.project, to=one.to, last=last)
        elif not one.problems:
            yield make_finding("share.instep", project=one.project, to=one.to, waiting=one.waiting)


def look_at_disk(case: Examination) -> list[Finding]:
    if not case.home.exists():
        return [make_finding("home.missing", home=case.home)]
    free = shutil.disk_usage(case.home).free
    name = "disk.little" if free < _LITTLE_SPACE else "disk.enough"
    return [make_finding(name, free=free / 1e9)]


def look_at_modes(case: Examination) -> Iterator[Finding]:
    """What is ours by its owner, but by its mode not to be entered, read or written; what others
    may read or write; and what belongs to others. A folder comes before what is in it, which can
    only be seen once it is open."""
    needed = dict.fromkeys(store_files(case.home), 0o600)
    needed |= {case.home / name: 0o700 for name in ("", *_FOLDERS)}
    closed, exposed, foreign = [], [], []
    for path in chain([case.home], case.home.rglob("*")):
        try:
            status = path.lstat()
        except OSError:
            continue  # taken in by the worker just now
        mode, wanted = stat.S_IMODE(status.st_mode), needed.get(path, 0)
        if stat.S_ISLNK(status.st_mode):
            continue
        if not is_own(status):
            foreign.append(path)
        elif mode & wanted != wanted:
            closed.append(path)
            yield make_finding("permissions.closed", partial(path.chmod, mode | wanted), path=path)
        elif mode & 0o077:
            exposed.append(path)

    def close_paths() -> None:
        for path in exposed:
            path.chmod(0o700 if path.is_dir() else 0o600)

    if foreign:
        paths, user = list_paths(foreign), user_number()
        yield make_finding("permissions.foreign", paths=paths, user=user, home=case.home)
    if exposed:
        yield make_finding("permissions.exposed", close_paths, paths=list_paths(exposed))
    if not (closed or foreign or exposed) and case.home.exists():
        yield make_finding("permissions.private")


def look_at_transcripts(case: Examination) -> Iterator[Finding]:
    none = []
    for agent in AGENTS.values():
        if number := sum(1 for _ in find_transcripts(agent, case.config)):
            yield make_finding("transcripts.present", agent=agent.label, number=number)
        else:
            none.append(agent.label)
    if none:
        yield make_finding("transcripts.none", agents=", ".join(none))
    other = case.environ.get("CLAUDE_CONFIG_DIR")
    known = list_folders(CLAUDE_CODE, case.config)
    if other and Path(other) not in known:
        setting, file = CLAUDE_CODE.folders, case.home / "config.toml"
        yield make_finding("transcripts.elsewhere", folder=other, setting=setting, file=file)


# --- the hooks' interpreter, and how they start the worker -------------------------------------


def look_at_python(case: Examination) -> list[Finding]:
    """Hooks are run by the python3 of the agent's PATH."""
    path = shutil.which("python3", path=case.environ.get("PATH"))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    if path is None:
        return [make_finding("python3.missing", oldest=oldest)]
    cwd = case.home if case.home.exists() else Path("/")
    # As a hook would be run.
    words = [path, "-I", "-S", "-c", "import sys; print(*sys.version_info[:3])"]
    printed = time_program(words, b"", cwd, case.environ).out.split()
    version = tuple(int(word) for word in printed if word.isdigit())
    name = "usable" if "/shims/" not in path else "shim"
    if version < OLDEST_PYTHON:
        name = "old" if version else "broken"
    shown = ".".join(map(str, version))
    return [make_finding(f"python3.{name}", path=path, version=shown, oldest=oldest)]


def look_at_launch(case: Examination) -> list[Finding]:
    """How a session starts the worker: by run/launch, a named home's by what is recorded of it."""
    if not is_usual(case.home, case.environ):
        return [_look_at_recorded(case)]
    path = case.home / "run" / "launch"
    wrong = _find_fault(path, case.home)

    def renew_launch() -> None:
        path.unlink(missing_ok=True)
        process.write_launch(case.home)

    if not wrong:
        return [make_finding("launch.right", path=path)]
    name = "launch.missing" if wrong == _MISSING else "launch.wrong"
    return [make_finding(name, renew_launch, path=path, wrong=wrong)]


def _look_at_recorded(case: Examination) -> Finding:
    record = usual_home(case.environ) / "homes"
    python = find_python(case.home, case.environ)
    if python and os.access(python, os.X_OK):
        return make_finding("launch.recorded", python=python)
    name = "launch.gone" if python else "launch.unrecorded"
    mend = partial(record_home, case.home, case.environ, sys.executable)
    return make_finding(name, mend, home=case.home, record=record, python=python)


def _find_fault(path: Path, home: Path) -> str:
    try:
        words = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return _MISSING
    except (OSError, UnicodeDecodeError):
        return "cannot be read"
    if not words or not os.access(words[0], os.X_OK):
        return f"names a Python that is gone: {words[0] if words else 'none'}"
    same = "--home" in words[:-1] and Path(words[words.index("--home") + 1]).resolve()
    return "" if same == home.resolve() else "names another home"


# --- the worker --------------------------------------------------------------------------------


def look_at_worker(case: Examination) -> Iterator[Finding]:
    path, health = case.home / "run" / "worker.sock", ask_health(case.home)
    if health is None and (pid := process.seat_holder(case.home)):
        yield make_finding("worker.hangs", pid=pid)
        return
    if health is None:
        used = any(place.is_installed for place in recorded_places(case.home))
        starts = used and (case.home / "run" / "launch").exists()
        yield make_finding("worker.idle" if starts else "worker.stopped")
        if path.is_socket():
            yield make_finding("socket.left", partial(_remove_socket, case.home), path=path)
        return
    version = health["version"]
    if process.version_numbers(version) < process.version_numbers(__version__):
        replace_worker = partial(process.start_worker, case.home, case.environ)
        yield make_finding("worker.older", replace_worker, version=version, present=__version__)
    size = health["rss_bytes"] / 1e6
    yield make_finding("worker.runs", pid=health["pid"], version=version, size=size)
    yield make_finding("socket.answers", path=path)
    yield look_at_children(health["pid"])


def _remove_socket(home: Path) -> None:
    """Where nobody holds the seat, a socket is of one that was killed."""
    if free := process.take_seat(home):
        with free:
            (home / "run" / "worker.sock").unlink(missing_ok=True)


def look_at_children(pid: int) -> Finding:
    if not Path("/proc/self/task").exists():
        return make_finding("children.unseen")
    for _ in range(4):  # one that has only just been started has its parent's name for a moment
        names = sorted(map(_process_name, _child_ids(pid)))
        strange = [name for name in names if name not in _MAY_RUN]
        if not strange:
            return make_finding("children.right", names=", ".join(names) or "none")
        time.sleep(0.05)
    return make_finding("children.strange", names=", ".join(strange))


def _child_ids(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # that thread has ended
            yield from map(int, path.read_text("ascii").split())


def _process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "git"  # gone already: only git is that quick


# --- what hooks have left ----------------------------------------------------------------------


def look_at_spool(case: Examination) -> Iterator[Finding]:
    spool = open_spool(case.home, case.environ)
    waiting = spool.list_waiting()
    oldest = max((event_age(path, case.now / 1000) for path in waiting), default=0.0)
    newer = sum(peek_event(path)[0] > FORMAT for path in waiting)
    if newer:
        yield make_finding("spool.newer", number=newer)
    if len(waiting) > newer and oldest > _OLD_EVENT:
        yield make_finding("spool.old", number=len(waiting), seconds=oldest)
    elif not newer:
        yield make_finding("spool.waiting", number=len(waiting))
    yield from _look_at_bad_events(case.home, spool)


def _look_at_bad_events(home: Path, spool: Spool) -> Iterator[Finding]:
    """Those set aside because the worker has ended over them, perhaps while it read a transcript,
    and those nobody understands."""
    reasons = {path: spool.load_reasons().get(path.name, "") for path in spool.list_bad()}
    ended = [why.partition("\t")[2] for why in reasons.values() if ENDED_WORKER in why]

    def put_back() -> dict[str, object]:
        if answer := ask_worker(home / "run", "POST /retry", 5.0):
            return {"number": msgspec.json.decode(answer)["events"]}
        if free := process.take_seat(home):
            with free:
                (home / "run" / "working").unlink(missing_ok=True)
        return {"number": len(spool.put_back())}

    say = partial(make_finding, folder=home / "spool" / "bad", ended=len(ended))
    for transcript in sorted({*ended} - {""}):
        yield say("spool.transcript", put_back, transcript=transcript, why=ENDED_WORKER)
    if number := ended.count(""):
        yield say("spool.event" if number == 1 else "spool.events", put_back, number=number)
    if number := len(reasons) - len(ended):
        yield say("spool.not_understood", number=number)


def look_at_gap(case: Examination) -> Iterator[Finding]:
    """Could hooks ever not write their events?"""
    gap = case.home / "run" / "gap"
    when = gap.stat().st_mtime if gap.exists() else 0
    if when > 0:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(when))
        yield make_finding("gap.open", partial(os.utime, gap, (0, 0)), moment=moment)


def look_at_log(case: Examination) -> Iterator[Finding]:
    """What went wrong in the last day, by the worker's own account."""
    path = case.home / "logs" / "worker.log"
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    since, until = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(case.now / 1000 + seconds))
        for seconds in (-_A_DAY, _A_DAY)  # clocks differ; what begins with no time is neither
    )
    failures = [line for line in lines if " failed: " in line and since < line[:20] < until]
    for line in failures[-_LOG_LINES:]:
        yield make_finding("log.failure", line=redact(line)[:200], path=path)
    if not failures:
        yield make_finding("log.quiet")


# --- the store, and what finds texts by meaning --------------------------------------------------


def look_at_model(case: Examination) -> list[Finding]:
    """The files of the embedding model, by their hashes, and whether it can be run."""
    from yester.text.embed import why_not
    from yester.text.models import MODELS, READER, verify_files

    name = case.config.text("embedder")
    if name == "none":
        return [make_finding("model.none")]
    verified = name in MODELS and case.thorough
    if verified:
        verify_files(MODELS[name], case.home)
        verify_files(READER, case.home)
    if reason := why_not(case.config.values, case.home):
        raise ModelError(reason)
    return [make_finding("model.whole" if verified else "model.present", name=name)]


def look_at_store(case: Examination) -> Iterator[Finding]:
    """Thoroughly is everything read, and tried whether it can be written."""
    if not store_exists(find_target(case.home)):
        yield make_finding("store.none")
        return
    kept = backups.list_backups(case.home) if store_files(find_target(case.home)) else []
    if store_files(find_target(case.home)):
        name = "backups.kept" if kept else "backups.none"
        yield make_finding(name, number=len(kept), newest=kept[0].name if kept else "")
    if wish := load_wish(case.home):
        yield make_finding("store.forgetting", what=wish.what)
    try:
        store = backups.open_safely(case.home, case.config, case.now)
    except StoreDamaged as error:
        yield _explain_damage(str(error).split("; ")[0], case)
        return
    with closing(store):
        if kept and not backups.count_items(store):
            with open_copy(kept[0], case.home, case.now) as (former, _):
                items = backups.count_items(former)
            if items:
                yield make_finding("store.emptied", items=items, newest=kept[0].name)
                return
        yield from _read_store(store, case)


def _read_store(store: Store, case: Examination) -> Iterator[Finding]:
    care, problems = maintenance_of(store), list[str]()
    if case.thorough:
        with store.transaction("ledger"):
            pass  # whoever may begin one may write
        problems = care.check(by_hash=True)

    # The index can be built anew out of the items, where those are whole.
    whole = all(text.startswith("index:") for text in problems)

    def put_right() -> dict[str, object]:
        if whole:
            with suppress(StoreError), store.transaction("index"):
                number = care.reindex()
                if not care.check(by_hash=True):
                    return {"number": number, "missing": ""}
        store.close()
        return _salvage(case)

    for text in problems:
        if whole or not text.startswith("index:"):
            name = "index.damaged" if whole else "store.damaged"
            yield make_finding(name, put_right, text=text.partition(": ")[2])
    if (stale := care.stale()) and whole:
        yield make_finding("index.stale", put_right, text=stale)
    if problems:
        return
    backlog = vector_backlog(store)
    if backlog.waiting and case.config["embedder"] != "none":
        yield make_finding("model.waiting", backlog=backlog)
    items = sum(sum(part.items.values()) for part in project_parts(store))
    name = "store.whole" if case.thorough else "store.used"
    yield make_finding(name, items=items, size=store.size / 1e6)
    if joins := store.entries(Join, {"undone": 0}, Paging(oldest_first=True)):
        # What was moved without being asked for must be told, and how to undo it.
        moved = sum(join.items for join in joins)
        yield make_finding("projects.joined", items=moved, names=describe_joins(store, joins))
    names = {one.key: one.name for one in store.projects()}
    for one in open_folders(case.home).list_apart():
        if one.project in names:
            yield make_finding("projects.apart", folder=one.path, name=names[one.project])


def _explain_damage(text: str, case: Examination) -> Finding:
    """Of a file that cannot be opened."""
    if not text.endswith(NO_DATABASE):
        return make_finding("store.damaged", partial(_salvage, case), text=text)
    name = "store.restorable" if backups.list_backups(case.home) else "store.foreign"
    return make_finding(name, text=text, file=store_location(case.home))


def _salvage(case: Examination) -> dict[str, object]:
    with no_worker(case.home):
        number, lost, aside = backups.salvage_store(case.home, case.now)
    rows = ", ".join(f"{table} {rows if rows > 0 else '(some)'}" for table, rows in lost.items())
    missing = f"; lost or damaged: {rows}" if rows else ""
    return {"number": number, "missing": f"{missing}; the damaged file is {aside}"}
