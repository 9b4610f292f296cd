"""The command that takes a store to another engine: move."""

from __future__ import annotations

import sys

from yester.errors import NotYours, StoreError
from yester.faces.cli.app import App, Output, command
from yester.files import replace_file
from yester.operate.move import ALIKE, compare_stores, move_store
from yester.store import is_server_url, store_location


@command("move")
def move_command(app: App, to: str, verify: bool, use: bool) -> Output:
    """Copy the whole store to a server, from there into a folder, or between servers.

    The other store must be empty. Ids, history, vectors and what was shown go along; the index is
    built anew. This store stays as it is, and stays the one in use unless you say --use: then the
    file `database` in yester's folder names the server. Nobody writes to either meanwhile; hooks
    wait in the spool.
    """
    memory = app.memory
    if memory.origin != "user":
        raise NotYours("where a memory is kept is the user's to say", "yester move is theirs")
    place = store_location(to)

    def tell(table: str, rows: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{table}: {rows:,} rows\033[K")

    number = move_store(memory, to, tell)
    lines = [f"{number:,} items copied to {place}"]
    value: dict[str, object] = {"to": place, "items": number}
    error = None
    if verify:
        found = compare_stores(memory, to)
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
    if use and error is None and is_server_url(to):
        replace_file(app.home / "database", f"{to}\n".encode())
        lines.append(f"from now on it is the one in use ({app.home / 'database'})")
    return Output(value, lines, error=error)
