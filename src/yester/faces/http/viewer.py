"""The viewer's files, by a table made once: a name that is not in it does not exist, so no path can
lead anywhere else."""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "viewer"
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml",
          ".woff2": "font/woff2", ".map": "application/json"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class File:
    body: bytes
    type: str
    etag: str


def load_files(folder: Path = FOLDER) -> dict[str, File]:
    """/path → the file. `index.html` is also `/`. Links and hidden files are left out."""
    found: dict[str, File] = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_symlink() or not path.is_file() or any(p.startswith((".", "_")) for p in parts):
            continue
        if path.suffix == ".py":
            continue
        body = path.read_bytes()
        found["/" + "/".join(parts)] = File(
            body, _content_type(path), f'"{hashlib.sha256(body).hexdigest()[:24]}"'
        )
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def _content_type(path: Path) -> str:
    known = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name, strict=True)[0]
    if known is None:
        return "application/octet-stream"
    return f"{known}; charset=utf-8" if known.startswith("text/") else known
