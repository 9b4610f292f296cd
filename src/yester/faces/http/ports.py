"""run/port: where the server says it is. Whoever reads it looks at the server's seat as well."""

from __future__ import annotations

from pathlib import Path


def port_of(run: Path) -> int:
    """The port, or 0."""
    try:
        text = (run / "port").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdigit() else 0
