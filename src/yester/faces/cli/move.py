"""The command that takes a store to another engine: move."""

from __future__ import annotations

import sys
from pathlib import Path

from yester.errors import NotYours, StoreError, UsageError
from yester.faces.cli.app import App, Output, command
from yester.operate.move import ALIKE, move_store
from yester.store import is_server_url, store_location


@command("move")
def move_command(app: App, to: str, verify: bool, use: bool) -> Output:
    """Copy the whole store to a server, from there into a folder, or between servers.

    The other store must be empty. Ids, history, vectors and what was shown go along; the index is
    built anew. This store stays as it is, and stays the one in use unless you say --use: then the
    file `database` in yester's folder names the server; it is taken away by a move back into that
    folder. Nobody writes to either store meanwhile; hooks wait in the spool.
    """
    memory = app.memory
    if memory.origin != "user":
        raise NotYours("where a memory is kept is the user's to say", "yester move is theirs")
    place, server = store_location(to), is_server_url(to)
    if use and not server and Path(to).expanduser().resolve() != app.home.resolve():
        raise UsageError(
            f"--use names the server that is in use from now on, and {to} is a folder;"
            f" leave it out, and say yester --home {to}"
        )

    def tell(table: str, rows: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{table}: {rows:,} rows\033[K")

    moved = move_store(memory, to, verify, use, tell)
    lines = [f"{moved.items:,} items copied to {place}"]
    value: dict[str, object] = {"to": place, "items": moved.items}
    error = None
    if found := moved.compared:
        lines.append(
            f"{found.same} of {found.questions} questions are answered with the same list;"
            f" scores differ by at most {found.difference:.1e}"
        )
        value |= {"questions": found.questions, "same": found.same, "difference": found.difference}
        if not found.equal:
            error = StoreError(
                f"{place} does not answer as {memory.store.location} does, e.g. {found.example!r}"
                if found.example
                else f"{place}: scores differ by more than {ALIKE:.0e}",
                "keep the one you have, and report this",
            )
    if use and error is None:
        named = app.home / "database" if server else app.home
        lines.append(f"from now on it is the one in use ({named})")
    return Output(value, lines, error=error)
