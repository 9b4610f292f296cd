"""yester: long-term memory for coding agents.

import yester

with yester.open() as memory:
    memory.add([{"ref": "1", "project": "shop", "title": "Use UTC everywhere", "text": "…"}])
    for hit in memory.recall("time zones", project="shop"):
        print(hit.title, hit.score)
"""

from __future__ import annotations

TYPE_CHECKING = False  # the name type checkers know: `yester mcp` starts without typing
if TYPE_CHECKING:
    from pathlib import Path

    from yester.faces.python import OpenMemory

__version__ = "0.2.0"
__all__ = ["__version__", "open"]


def open(home: str | Path | None = None) -> OpenMemory:  # noqa: A001
    """Open the memory in a folder (default: $YESTER_HOME, else ~/.yester), or on a server
    (postgresql://USER@HOST/DATABASE); made if needed."""
    import os
    from pathlib import Path

    from yester.capture.homes import home_folder
    from yester.faces.python import open_memory

    database = str(home) if str(home).startswith(("postgresql://", "postgres://")) else ""
    folder = home_folder(None if database else home, os.environ, Path.cwd())
    return open_memory(folder, os.environ, database)
