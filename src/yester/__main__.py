"""The front door: the command `yester`, and `python -m yester`.

`yester mcp` goes in here and not through the command line: the first turn of an agent waits for it,
and importing the libraries of the command line takes longer than the server needs to answer.
"""

from __future__ import annotations

import sys


def main() -> None:
    home, rest = _home(sys.argv[1:])
    if rest == ["mcp"]:
        sys.exit(serve_mcp(home))
    from yester.faces.cli import main as command_line

    command_line()


def _home(words: list[str]) -> tuple[str | None, list[str]]:
    """`--home FOLDER` before the command, and the words behind it."""
    if words[:1] == ["--home"] and len(words) > 1:
        return words[1], words[2:]
    if words and words[0].startswith("--home="):
        return words[0].removeprefix("--home="), words[1:]
    return None, words


def serve_mcp(home: str | None) -> int:
    """Be the MCP server on stdin and stdout until the client leaves; the exit code."""
    from yester.faces.mcp.server import serve_stdio

    return serve_stdio(home)


if __name__ == "__main__":
    main()
