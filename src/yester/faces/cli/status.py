"""`yester status`: numbers about the memory.

People look at it often: nothing is imported here that it does not need, nor the command line.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from yester.capture.question import ask_health
from yester.faces.cli.screen import count_noun, describe_items, fact_lines, join_kinds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from yester.memory import Memory


def describe_worker(home: Path) -> dict[str, Any]:
    """Is it running, and if so how it is."""
    found = ask_health(home)
    if found is not None:
        return {"running": True, **found}
    from yester.worker.process import seat_holder

    return {"running": False, "pid": seat_holder(home) or None}


def explain_silence(worker: dict[str, Any]) -> str:
    """Why it does not answer."""
    if worker["pid"]:
        return f"does not answer (pid {worker['pid']}); end it with: yester worker stop"
    return "not running"


def describe_status(memory: Memory) -> dict[str, Any]:
    from msgspec.structs import asdict

    from yester.store import keeps_file
    from yester.store.figures import content_counts, middle_lag

    store = memory.reading
    counts = content_counts(store)
    return {
        "home": str(memory.home), "database": store.location if not keeps_file(store) else "",
        "spool": _describe_spool(memory.home), "events": counts.events,
        "skipped": dict(counts.skipped), "items": dict(counts.items), "projects": counts.projects,
        "sessions": counts.sessions, "transcripts": counts.sources,
        "undistilled": {
            "sessions": store.totals("undistilled")[0][0],
            "of_hooks": store.totals("undistilled", where={"hooked": 1})[0][0],
        },
        "vectors": {"done": counts.vectors, "waiting": counts.unembedded},
        "lag_ms": asdict(middle_lag(store, 1_000)), **_describe_exchange(memory),
        "worker": describe_worker(memory.home), "spend": _describe_spending(memory),
        "bytes": counts.bytes,
        "oldest": counts.oldest / 1000 if counts.oldest else None,
        "newest": counts.newest / 1000 if counts.newest else None,
    }  # fmt: skip


def status_lines(memory: Memory, status: dict[str, Any]) -> Iterator[str]:
    from yester.clock import format_minute
    from yester.store.figures import Backlog

    names = ("items", "lag_ms", "spool", "spend", "worker", "vectors")
    items, late, spool, paid, worker, left = (status[name] for name in names)
    times = filter(None, (status["oldest"], status["newest"]))
    ends = [format_minute(round(time_ * 1000)) for time_ in times]
    sessions, skipped = status["undistilled"]["sessions"], status["skipped"].items()
    most = sorted(skipped, key=lambda pair: -pair[1])[:8]
    yield from fact_lines(11, {
        "home": status["home"],
        "database": status["database"],
        "items": describe_items(items),
        "sessions": f"{status['sessions']:,} in {count_noun(status['projects'], 'project')}",
        "transcripts": f"{status['transcripts']:,}",
        "from": " to ".join(ends),
        "size": f"{status['bytes'] / 1e6:,.1f} MB",
        "events": status["events"] and f"{status['events']:,}; recallable after {late['p50']} ms "
                  f"(half of them), {late['p99']} ms (99 of 100)",
        "undistilled": sessions and f"{count_noun(sessions, 'session')}: yester distil --backfill",
        "spool": (spool["waiting"] or spool["bad"])
                 and f"{spool['waiting']:,} waiting, {spool['bad']:,} unreadable",
        "spent today": (paid["today"] or memory.config["llm.provider"] != "none")
                       and f"${paid['today']:.4f} of ${paid['limit']:.2f} (yester stats)",
        "vectors": memory.config["embedder"] != "none" and left["waiting"]
                   and str(Backlog(left["waiting"], sum(left.values()))),
        "machines": _tell_roaming(status["roam"]),
        "shared": _tell_sharing(status["share"]),
        "worker": f"running, pid {worker['pid']}" if worker["running"] else explain_silence(worker),
        "left out": join_kinds(dict(most)),
    }.items())  # fmt: skip
    if not any(items.values()):
        yield "Nothing is indexed yet. Run: yester index"


def _describe_exchange(memory: Memory) -> dict[str, Any]:
    """The user's other machines, None where this home does not roam; and projects that are shared
    with a team, or were."""
    from msgspec import to_builtins

    found: dict[str, Any] = {"roam": None, "share": []}
    if (memory.home / "share.json").exists():
        from yester.operations.share import show_sharing

        found["share"] = to_builtins(show_sharing(memory).projects)
    if (memory.home / "roam.json").exists():
        from yester.operations.roam import show_roam

        found["roam"] = to_builtins(show_roam(memory))
    return found


def _tell_roaming(state: dict[str, Any] | None) -> str:
    if state is None:
        return ""
    names = ", ".join(one["name"] for one in state["machines"] if not one["own"])
    waiting = state["waiting"] - state["private"]
    trouble = "; yester roam says what is wrong" if state["problems"] else ""
    return f"{names or 'none but this one yet'}; {count_noun(waiting, 'item')} waiting{trouble}"


def _tell_sharing(projects: list[dict[str, Any]]) -> str:
    names = ", ".join(one["project"] for one in projects if one["state"] != "ended")
    if not names:
        return ""
    waiting = sum(one["waiting"] for one in projects)
    wrong = any(one["problems"] or one["refused"] for one in projects)
    trouble = "; yester share says what is wrong" if wrong else ""
    return f"{names}; {count_noun(waiting, 'line')} waiting{trouble}"


def _describe_spool(home: Path) -> dict[str, Any]:
    """What the hooks have left and nobody has taken in yet, and what nobody can."""
    from yester.capture.spool import event_age, open_spool

    spool = open_spool(home, os.environ)
    waiting, now = spool.list_waiting(), time.time()
    return {
        "waiting": len(waiting),
        "oldest_s": round(max(event_age(path, now) for path in waiting), 1) if waiting else None,
        "bad": len(spool.list_bad()),
    }


def _describe_spending(memory: Memory) -> dict[str, float]:
    """Dollars for language models today (UTC), and how many there may be."""
    from yester.clock import DAY
    from yester.store.figures import spent_since

    now = memory.now
    today = spent_since(memory.reading, now // DAY * DAY, now)
    return {"today": round(today.cost, 6), "limit": memory.config.decimal("llm.daily_dollars")}
