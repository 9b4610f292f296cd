"""What the doctor says, for whoever looks. Nothing is put right over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from yester.faces.http import shapes
from yester.memory import Memory
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


class Seen(Protocol):
    """What a doctor has found: `state` is ok, note or problem."""

    @property
    def check(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def fix(self) -> str: ...


Examine = Callable[[Path, int], Sequence[Seen]]


def doctor(memory: Memory, examine: Examine) -> shapes.Doctor:
    return memory.cached("doctor", _KEPT, lambda: _report(memory, examine))


def _report(memory: Memory, examine: Examine) -> shapes.Doctor:
    findings = [
        shapes.Finding(
            area=_AREAS.get(one.check, "agents"), name=one.check, state=_state(one.state, one.fix),
            text=redact(one.text), fix=redact(one.fix),
        )
        for one in examine(memory.home, memory.now)
    ]  # fmt: skip
    ok = all(one.state != "bad" for one in findings)
    return shapes.Doctor(ok=ok, findings=findings, note=_NOTE.format(home=Path.home()))


def _state(state: str, fix: str) -> Literal["ok", "warn", "bad"]:
    """A note with something to do is a warning; one without is no more than said."""
    if state == "problem":
        return "bad"
    return "warn" if state == "note" and fix else "ok"
