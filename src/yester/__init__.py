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

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def open(home: str | Path | None = None) -> OpenMemory:  # noqa: A001
    """Open the memory in a folder (default: $YESTER_HOME, else ~/.yester); made if needed."""
    import os
    from pathlib import Path

    from yester.capture.homes import home_folder
    from yester.faces.python import open_memory

    return open_memory(home_folder(home, os.environ, Path.cwd()), os.environ)
