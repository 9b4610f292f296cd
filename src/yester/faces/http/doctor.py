"""What the doctor says, for whoever looks. Nothing is put right over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from yester.memory import Memory
from yester.operate.doctor import examine_quickly
from yester.operations.request import NoRequest
from yester.redact import redact

_KEPT = 15.0  # seconds: it looks at many files
_NOTE = (
    "A glance: hooks are not run and the store is not read through; `yester doctor` does both. The "
    "server knows the HOME of your account ({home}) and the system's PATH, not those of your shell."
)
_AREAS: Mapping[str, str] = {
    "versions": "yester", "settings": "yester", "home": "yester", "disk": "yester",
    "folders": "yester", "permissions": "yester", "python3": "capture", "launch": "capture",
    "worker": "capture", "socket": "capture", "spool": "capture", "log": "capture",
    "transcripts": "capture", "model": "store", "store": "store", "index": "store",
    "backups": "store",
}  # fmt: skip


class Finding(Struct, kw_only=True):
    """What the doctor says of one thing."""

    area: str
    name: str
    state: Literal["ok", "warn", "bad"]
    text: str
    fix: str


class Doctor(Struct, kw_only=True):
    ok: bool
    findings: list[Finding]
    note: str


def show_health(memory: Memory, request: NoRequest) -> Doctor:  # noqa: ARG001
    """Is everything as it should be? Nothing is changed."""
    return memory.cached("doctor", _KEPT, lambda: _examine_home(memory))


def _examine_home(memory: Memory) -> Doctor:
    findings = [
        Finding(
            area=_AREAS.get(one.check, "agents"), name=one.check,
            state=_name_state(one.state, one.fix), text=redact(one.text), fix=redact(one.fix),
        )
        for one in examine_quickly(memory.home, memory.now)
    ]  # fmt: skip
    ok = all(one.state != "bad" for one in findings)
    return Doctor(ok=ok, findings=findings, note=_NOTE.format(home=Path.home()))


def _name_state(state: str, fix: str) -> Literal["ok", "warn", "bad"]:
    """A note with something to do is a warning; one without is no more than said."""
    if state == "problem":
        return "bad"
    return "warn" if state == "note" and fix else "ok"
