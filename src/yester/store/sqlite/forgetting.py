"""Taking things out of the SQLite file for good: rows, what came of them, and their last byte.

A deleted row stays on its page, a deleted page in the file, a deleted term in a segment of the full
text, all of it in the log. `scrub_file` writes the file anew without any of that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from yester.errors import StoreBusy
from yester.model import DISTILLED, Entry, Filters, Forgotten, Item, Session
from yester.store.lock import write_lock
from yester.store.sqlite import rows
from yester.store.sqlite.maintenance import PATIENCE, explain_errors, lock_file, open_reader
from yester.store.sqlite.memories import MemoryRows

_IDS = "IN (SELECT value FROM json_each(?))"
_QUOTED = "its words were forgotten"
# Rows of a session, whose column is called so.
_OF_SESSION = ("event", "turn", "injection", "refined", "archived", "owed_start", "undistilled")
# Texts that stand in no item, by table: columns, and columns that are JSON. First what somebody
# said, as it is quoted in histories and ledgers; then also what things are called.
_QUOTES: Sequence[tuple[str, Sequence[str], Sequence[str]]] = (
    ("memory", ("reason",), ()),
    ("memory_change", ("why",), ("before", "after")),
    ("memory_gone", ("slug", "why"), ()),
    ("injection", ("reason",), ()),
    ("refined", ("reason",), ()),
)
_TEXTS = (
    *_QUOTES,
    ("session", ("title", "cwd", "branch"), ()),
    ("memory", ("slug", "path"), ("content",)),
    ("source", (), ("state",)),
    ("project_join_row", ("before",), ()),
)
_PAGE = 500
_POLL = 0.05  # seconds


class ForgetRows(MemoryRows):
    """The part of `SqliteStore` that takes things out for good."""

    def forget(
        self,
        ids: Sequence[int],
        sessions: Sequence[int] = (),
        projects: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Forgotten:
        named = set(self._all_ids(f"SELECT id FROM item WHERE id {_IDS}", str(list(ids))))
        derived = self._find_derived(named)
        gone = sorted(named | derived)
        touched = {*sessions, *self._sessions_of(gone)}
        found = [one for id_ in sorted(touched) if (one := self._session_row(id_)) is not None]
        quoting = self._find_quoting([one.key for one in found]) - set(gone)
        freed = self._find_freed(gone)
        result = Forgotten(
            tuple(gone), tuple(sorted(derived)), tuple(sorted(quoting)), tuple(found), freed
        )
        if dry_run:
            return result
        self._require_lock("items")
        self._keep_ids()
        self._take_traces(gone, touched)
        self._cut_quotes([one.key for one in found])
        again = self._sessions_behind(derived) | touched
        self.remove(gone)
        dead = self._emptied_sessions(touched)
        self._drop_sessions(dead)
        self._drop_projects(projects)
        self.queue_sessions(dict.fromkeys(again - set(dead), 0))
        self._count_restore()
        return result

    # --- what goes -----------------------------------------------------------------------------

    def _find_derived(self, named: Collection[int]) -> set[int]:
        """Whatever was made of these: distilled from them, or in their turn, or from the whole of
        their session; rules that were read in them."""
        found: set[int] = set()
        new = set(named)
        while new:
            ids = str(list(new))
            made = self._all_ids(f"SELECT item FROM item_evidence WHERE source {_IDS}", ids)
            made += self._all_ids(
                "SELECT d.id FROM item s JOIN item d ON d.session = s.session AND d.session <> 0"
                " AND d.source = ? AND (d.type = 'session' OR"
                " (d.prompt_number = s.prompt_number AND d.prompt_number <> 0))"
                f" WHERE s.source <> ? AND s.kind <> 'memory' AND s.id {_IDS}",
                DISTILLED, DISTILLED, ids,
            )  # fmt: skip
            made += self._all_ids(
                "SELECT m.id FROM item s JOIN item m ON m.kind = 'memory'"
                " AND m.ref > 'rule:' || s.ref || ':' AND m.ref < 'rule:' || s.ref || ';'"
                f" WHERE s.kind = 'prompt' AND s.id {_IDS}", ids,
            )  # fmt: skip
            new = set(made) - found - set(named)
            found |= new
        return found

    def _sessions_of(self, ids: Sequence[int]) -> list[int]:
        return self._all_ids(
            f"SELECT DISTINCT session FROM item WHERE session <> 0 AND id {_IDS}", str(list(ids))
        )

    def _sessions_behind(self, derived: Collection[int]) -> set[int]:
        """Sessions from which something was distilled that goes, though its source may stay."""
        return set(
            self._all_ids(
                "SELECT DISTINCT s.session FROM item_evidence e JOIN item s ON s.id = e.source"
                f" WHERE s.session <> 0 AND e.item {_IDS}", str(list(derived)),
            )
        )  # fmt: skip

    def _find_quoting(self, keys: Collection[str]) -> set[int]:
        """Memories whose history gives what was said in one of these sessions as the reason."""
        found: set[int] = set()
        for key in keys:
            found.update(
                self._all_ids(
                    "SELECT item FROM memory_change WHERE instr(why, ?1)"
                    " UNION SELECT item FROM memory WHERE instr(reason, ?1)", _quote_mark(key),
                )
            )  # fmt: skip
        return found

    def _find_freed(self, gone: Sequence[int]) -> tuple[int, ...]:
        """What stood back for one of these; a memory is the user's to bring back."""
        ids = str(list(gone))
        found = self._db.execute(
            "SELECT DISTINCT o.id FROM item i JOIN item o ON o.id = i.supersedes"
            f" WHERE i.supersedes <> 0 AND i.id {_IDS} AND o.status = 'superseded'"
            f" AND o.kind <> 'memory' AND NOT o.id {_IDS}", (ids, ids),
        )  # fmt: skip
        return tuple(id_ for (id_,) in found)

    def _emptied_sessions(self, touched: Collection[int]) -> list[int]:
        return [
            id_
            for id_ in touched
            if not self._first_row("SELECT 1 FROM item WHERE session = ?", id_)
        ]

    # --- taking it out -------------------------------------------------------------------------

    def _take_traces(self, gone: Sequence[int], touched: Collection[int]) -> None:
        ids, sessions = str(list(gone)), str(list(touched))
        for sql, value in (
            (f"DELETE FROM injection WHERE item {_IDS}", ids),
            (f"DELETE FROM feedback WHERE item {_IDS}", ids),
            (f"DELETE FROM item_evidence WHERE source {_IDS}", ids),
            (f"UPDATE event SET item = 0 WHERE item {_IDS}", ids),
            (f"UPDATE turn SET prompt = 0 WHERE prompt {_IDS}", ids),
            (f"UPDATE turn SET closing = 0 WHERE closing {_IDS}", ids),
            (f"DELETE FROM project_join_row WHERE what = 'item' AND id {_IDS}", ids),
            # A reason names words of the prompt; a block in an archive is cut with its file.
            (f"UPDATE injection SET reason = '' WHERE session {_IDS}", sessions),
            (f"DELETE FROM archived WHERE session {_IDS}", sessions),
            (f"DELETE FROM refined WHERE session {_IDS}", sessions),
            # Read again from its beginning, without what was forgotten; a title is in the way.
            ("DELETE FROM source AS t WHERE EXISTS (SELECT 1 FROM session s"
             f" WHERE (s.transcript = t.path OR s.key = t.state ->> 'session') AND s.id {_IDS})",
             sessions),
            ("DELETE FROM source AS t WHERE EXISTS (SELECT 1 FROM json_each(t.state, '$.notes') n"
             f" JOIN item i ON i.ref = n.value WHERE i.id {_IDS})", ids),
            (f"UPDATE session SET title = '' WHERE id {_IDS}", sessions),
            # Memories that were let go before: their names are words of what they said.
            ("DELETE FROM memory_gone AS g WHERE EXISTS (SELECT 1 FROM item s WHERE"
             " g.ref > 'rule:' || s.ref || ':' AND g.ref < 'rule:' || s.ref || ';'"
             f" AND s.id {_IDS})", ids),
        ):  # fmt: skip
            self._db.execute(sql, (value,))

    def _cut_quotes(self, keys: Collection[str]) -> None:
        """Lines of the history are never edited but here."""
        for key in keys:
            mark = _quote_mark(key)
            said = f"{mark} ({_QUOTED})"
            lines = list(
                self._db.execute("SELECT * FROM memory_change WHERE instr(why, ?)", (mark,))
            )
            for id_, act, item, epoch, who, what, why, before, after in lines:
                short = why.partition(mark)[0] + said
                before, after = (
                    text.replace(rows.json_text(why), rows.json_text(short))
                    for text in (before, after)
                )
                self._replace_row(
                    "memory_change", (id_, act, item, epoch, who, what, short, before, after)
                )
            self._db.execute(
                "UPDATE memory SET reason = substr(reason, 1, instr(reason, ?1) - 1) || ?2"
                " WHERE instr(reason, ?1)", (mark, said),
            )  # fmt: skip

    def _replace_row(self, table: str, values: Sequence[Any]) -> None:
        """The same row with other values; an UPDATE is refused where lines are never edited."""
        self._db.execute(f"DELETE FROM {table} WHERE id = ?", values[:1])
        self._db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(values))})", values)

    def _drop_sessions(self, sessions: Collection[int]) -> None:
        ids = str(list(sessions))
        for table in _OF_SESSION:
            self._db.execute(f"DELETE FROM {table} WHERE session {_IDS}", (ids,))
        self._db.execute(f"DELETE FROM project_join_row WHERE what <> 'item' AND id {_IDS}", (ids,))
        self._db.execute(f"DELETE FROM session WHERE id {_IDS}", (ids,))

    def _drop_projects(self, keys: Sequence[str]) -> None:
        for key in keys:
            id_ = self._project_id(key)
            held = [f"SELECT 1 FROM {table} WHERE project = ?" for table in ("item", "session")]
            if not id_ or any(self._first_row(sql, id_) for sql in held):
                continue
            joins = "SELECT id FROM project_join WHERE ?1 IN (key, into_key)"
            self._db.execute(f"DELETE FROM project_join_row WHERE joined IN ({joins})", (key,))
            self._db.execute("DELETE FROM project_join WHERE ?1 IN (key, into_key)", (key,))
            self._db.execute("DELETE FROM memory_gone WHERE project = ?", (key,))
            self._db.execute("DELETE FROM length WHERE project = ?", (id_,))
            self._db.execute("DELETE FROM project WHERE id = ?", (id_,))
        self._count_move()

    def _session_row(self, id_: int) -> Session | None:
        return next(iter(self.sessions(Filters(session_id=id_))), None)

    def _count_restore(self) -> None:
        """Whoever remembers something of the rows, or works with them, opens the store anew; we
        know nothing any more."""
        self._restores += 1
        self._set_meta("restores", str(self._restores))
        self._index.forget_batch()  # terms that nobody has are about to go
        self._forget_rows()

    # --- texts changed everywhere ----------------------------------------------------------------

    def rewrite_texts(
        self,
        change: Callable[[str], str],
        prepare: Callable[[Item], Entry] | None,
        apply: bool,
        only_quotes: bool = False,
    ) -> Counter[str]:
        """Every text that is stored, changed: items by preparing them anew, the rest column by
        column. How many rows of which table are, or would be, different. Inside a transaction."""
        found: Counter[str] = Counter()
        for page in self._item_pages() if prepare else ():
            assert prepare
            # Looked at first: preparing takes five times as long.
            held = [item for item in page if any(change(text) != text for text in item.texts)]
            changed = [prepare(item) for item in held]
            found["item"] += len(changed)
            if apply and changed:
                self.put(changed, lifted=True)
        for table, plain, encoded in _QUOTES if only_quotes else _TEXTS:
            found[table] += self._rewrite_table(table, plain, encoded, change, apply)
        found["memory"] += self._rewrite_files(change, apply)
        if only_quotes:
            found["memory"] += self._rename_memories(change, apply)
        if apply:
            self._count_restore()
        return +found

    def _item_pages(self) -> Iterator[list[Item]]:
        last = 0
        while page := self._read_items(" WHERE i.id > ? ORDER BY i.id LIMIT ?", last, _PAGE):
            last = page[-1].id
            yield page

    def _rewrite_table(
        self,
        table: str,
        plain: Sequence[str],
        encoded: Sequence[str],
        change: Callable[[str], str],
        apply: bool,
    ) -> int:
        from yester.redact import change_texts  # which whoever only opens a store does not need

        number = 0
        described = list(self._db.execute(f"PRAGMA table_info({table})"))
        columns = [row[1] for row in described]
        keys = [row[1] for row in described if row[5]]
        for row in list(self._db.execute(f"SELECT * FROM {table}")):
            values = dict(zip(columns, row, strict=True))
            new = {name: change(values[name]) for name in plain}
            for name in encoded:
                data = msgspec.json.decode(values[name])
                clean = change_texts(data, change)
                new[name] = values[name] if clean == data else rows.json_text(clean)
            if all(values[name] == text for name, text in new.items()):
                continue
            number += 1
            if apply and table == "memory_change":
                self._replace_row(table, tuple((values | new).values()))
            elif apply:
                sets = ", ".join(f"{name} = ?" for name in new)
                where = " AND ".join(f"{name} = ?" for name in keys)
                self._db.execute(
                    f"UPDATE {table} SET {sets} WHERE {where}",
                    (*new.values(), *(values[name] for name in keys)),
                )
        return number

    def _rename_memories(self, change: Callable[[str], str], apply: bool) -> int:
        """Memories called by words that they do not say any more."""
        held = "SELECT m.item, m.slug FROM memory m JOIN item i ON i.id = m.item"
        named = [
            (item, slug, f"memory-{item}")
            for item, slug in list(self._db.execute(held))
            if change(slug.replace("-", " ")) != slug.replace("-", " ")
        ]
        for item, slug, new in named if apply else ():
            self._db.execute("UPDATE memory SET slug = ? WHERE item = ?", (new, item))
            self._db.execute(
                "UPDATE item SET ref = replace(ref, ?, ?) WHERE id = ?", (slug, new, item)
            )
        return len(named)

    def _rewrite_files(self, change: Callable[[str], str], apply: bool) -> int:
        """The files memories were read from, which are kept as bytes."""
        changed = []
        held = "SELECT item, file FROM memory WHERE file NOT NULL"
        for item, raw in list(self._db.execute(held)):
            text = bytes(raw).decode("utf-8", "surrogateescape")
            if (new := change(text)) != text:
                changed.append((new.encode("utf-8", "surrogateescape"), item))
        if apply:
            self._db.executemany("UPDATE memory SET file = ? WHERE item = ?", changed)
        return len(changed)


def _quote_mark(key: str) -> str:
    """How the history of a memory names the session it was changed in."""
    return f"in session {key[:8]}"


# --- the file ------------------------------------------------------------------------------------


def scrub_file(path: Path, home: Path) -> None:
    """Write the file anew without what was deleted: terms nobody has, segments of the full text,
    free pages, the log. Others may have it open; StoreBusy where one reads for too long."""
    with (
        explain_errors(path),
        write_lock(lock_file(home), PATIENCE),
        closing(apsw.Connection(str(path))) as db,
    ):
        db.set_busy_timeout(int(PATIENCE * 1000))
        db.execute("PRAGMA secure_delete = ON")
        with db:
            db.execute(
                "DELETE FROM term WHERE NOT EXISTS (SELECT 1 FROM frequency"
                " WHERE key BETWEEN hash << 24 AND (hash << 24) | 0xffffff)"
            )
            db.execute("INSERT INTO item_text(item_text) VALUES ('optimize')")
        db.execute("VACUUM")
        deadline = time.monotonic() + PATIENCE
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]:
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"{path}: another program reads it, so its log cannot be emptied; end that "
                    "program and ask again: what was begun is finished then"
                )
            time.sleep(_POLL)


def search_values(path: Path, holds: Callable[[bytes], Collection[str]]) -> Counter[str]:
    """Which of the wanted strings stand in a value of any row, by string: a value may lie on
    several pages, where no search in the bytes of the file finds it. And the terms of the index."""
    found: Counter[str] = Counter()
    with explain_errors(path), open_reader(path) as db:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
        for (table,) in list(db.execute(tables)):
            for row in db.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, str | bytes):
                        data = value.encode("utf-8", "replace") if isinstance(value, str) else value
                        found.update(holds(data))
        if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'item_text'").fetchone():
            db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, item_text, row)")
            for (term,) in db.execute("SELECT term FROM vocabulary"):
                found.update(holds(str(term).encode("utf-8", "replace")))
    return found
