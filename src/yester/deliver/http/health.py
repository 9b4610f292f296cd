"""What the doctor says, for whoever looks. Nothing is put right over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from yester.deliver.http import shapes
from yester.deliver.http.access import Access
from yester.deliver.http.parameters import Nothing
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


def doctor(access: Access, given: Nothing) -> shapes.Doctor:  # noqa: ARG001
    found = access.home.remembered("doctor", _KEPT, lambda: _looked(access))
    assert isinstance(found, shapes.Doctor)
    return found


def _looked(access: Access) -> shapes.Doctor:
    findings = [
        shapes.Finding(
            area=_AREAS.get(one.check, "agents"), name=one.check, state=_state(one.state, one.fix),
            text=redact(one.text), fix=redact(one.fix),
        )
        for one in access.home.examine(access.home.path, access.now)
    ]  # fmt: skip
    ok = all(one.state != "bad" for one in findings)
    return shapes.Doctor(ok=ok, findings=findings, note=_NOTE.format(home=Path.home()))


def _state(state: str, fix: str) -> Literal["ok", "warn", "bad"]:
    """A note with something to do is a warning; one without is no more than said."""
    if state == "problem":
        return "bad"
    return "warn" if state == "note" and fix else "ok"
