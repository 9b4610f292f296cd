"""Taking things out for good: rows, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from yester.model import DISTILLED, Entry, Filters, Forgotten, Item, Source
from yester.store.rows import rows
from yester.store.rows.memories import MemoryRows
from yester.tables import fill_parts, load_table
from yester.tombstones import lost_words

Change = Callable[[str], str]  # of a text

_IDS = "IN (SELECT value FROM json_each(?))"
_NAMES = "IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
_TEXTS = "IN (SELECT value FROM json_each(?, '$'))"
_QUOTED = "its words were forgotten"
_PAGE = 500


@cache
def _statements(name: str) -> list[str]:
    parts = {"IDS": _IDS, "NAMES": _NAMES, "DISTILLED": DISTILLED}
    return [fill_parts(sql, parts) for sql in load_table("forget")[name]]


def _change_text(form: str, value: Any, change: Change) -> Any:
    """What a column holds, in its form, changed."""
    if form == "json":
        from yester.redact import change_texts  # which whoever only opens a store does not need

        data = msgspec.json.decode(value)
        clean = change_texts(data, change)
        return value if clean == data else rows.json_text(clean)
    if form == "bytes":
        clean = change((value or b"").decode("utf-8", "surrogateescape"))
        return clean.encode("utf-8", "surrogateescape") or value
    return change(value)


def _cut_quotes(marks: Collection[str], text: str) -> str:
    """A reason that names a session, and what was said in it, without that."""
    for mark in marks:
        if mark in text:
            text = f"{text.partition(mark)[0]}{mark} ({_QUOTED})"
    return text


class ForgetRows(MemoryRows):
    """The part of `SqliteStore` that takes things out for good."""

    def forget(
        self,
        ids: Sequence[int],
        sessions: Sequence[int] = (),
        projects: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Forgotten:
        named = self._ids_by("there", ids)
        derived = self._find_derived(named)
        gone = named | derived
        touched = self._ids_by("sessions", gone) | {*sessions}
        found = [one for id_ in sorted(touched) for one in self.sessions(Filters(session_id=id_))]
        held = f"SELECT session FROM item WHERE session {_IDS} AND NOT id {_IDS}"
        emptied = touched - {*self._all_ids(held, str(list(touched)), str(list(gone)))}
        keys = {one.key for one in found if one.id in emptied}
        alive = f"SELECT key FROM session WHERE key {_TEXTS} AND NOT id {_IDS}"  # of other agents
        keys -= {*self._all_ids(alive, rows.json_text(list(keys)), str(list(emptied)))}
        marks = {f"in session {one.key[:8]}" for one in found}
        quoting = _statements("quoting")
        marked = {id_ for mark in marks for sql in quoting for id_ in self._all_ids(sql, mark)}
        marked -= gone
        result = Forgotten(
            tuple(sorted(gone)), tuple(sorted(derived)), tuple(sorted(marked)), tuple(found),
            tuple(sorted(keys)), tuple(sorted(self._ids_by("freed", gone) - gone)),
        )  # fmt: skip
        if dry_run:
            return result
        self._require_lock("items")
        self._keep_ids()
        again = touched | self._ids_by("behind", derived)
        self._run_each("of_items", str(list(gone)))
        self._forget_names(gone)
        self._run_each("of_touched", str(list(touched)))
        for one in found:
            branch = self._tombstones.clean_session(one).branch
            self._db.execute("UPDATE session SET branch = ? WHERE id = ?", (branch, one.id))
        if marked:
            self._rewrite_table("memory", {"reason": "text"}, partial(_cut_quotes, marks))
            history = load_table("forget")["quotes"]["memory_change"]
            self._rewrite_table("memory_change", history, partial(_cut_quotes, marks))
        self.remove(result.items)
        self._run_each("of_sessions", str(list(emptied)))
        for key in projects:
            parts = [f"SELECT 1 FROM {name} WHERE project = ?" for name in ("item", "session")]
            if not any(self._first_row(sql, self._project_id(key)) for sql in parts):
                self._run_each("of_project", key)
        self._count_move()
        self.queue_sessions(dict.fromkeys(again - emptied, 0))
        self._count_restore()
        return result

    def _ids_by(self, name: str, ids: Collection[int]) -> set[int]:
        given = str(list(ids))
        return {id_ for sql in _statements(name) for id_ in self._all_ids(sql, given)}

    def _run_each(self, name: str, value: str) -> None:
        for sql in _statements(name):
            self._db.execute(sql, (value,))

    def _forget_names(self, ids: Collection[int]) -> None:
        """What a sync knows of memories in files, by their names."""
        found = self._db.execute(
            f"SELECT i.type, m.slug FROM memory m JOIN item i ON i.id = m.item WHERE m.item {_IDS}",
            (str(list(ids)),),
        )
        names = {f"{type_}/{slug}" for type_, slug in found}
        for source in self.entries(Source, {"agent": "memory-sync"}) if names else ():
            base: Any = source.state.get("base", {})
            if names & base.keys():
                left = {name: value for name, value in base.items() if name not in names}
                state = rows.json_text({**source.state, "base": left})
                self._db.execute("UPDATE source SET state = ? WHERE path = ?", (state, source.path))

    def _find_derived(self, named: set[int]) -> set[int]:
        found: set[int] = set()
        new = named
        while new:
            new = self._ids_by("derived", new) - found - named
            found |= new
        return found

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
        change: Change,
        prepare: Callable[[Item], Entry] | None,
        apply: bool,
        only_quotes: bool = False,
    ) -> int:
        """Every text that is stored, changed: items by preparing them anew, the rest column by
        column. How many rows are, or would be, different. Inside a transaction."""
        taken: set[str] = set()  # words that stood there, as a memory may be called

        def watch(text: str) -> str:
            clean = change(text)
            if clean != text and not only_quotes:
                taken.update(lost_words(text, clean))
            return clean

        number = 0
        for page in self._item_pages() if prepare else ():
            # Looked at first: preparing takes five times as long.
            held = [item for item in page if [*map(watch, item.texts)] != [*item.texts]]
            number += len(held)
            if apply and prepare:
                self.put([prepare(item) for item in held], lifted=True)
        for part in ("quotes",) if only_quotes else ("quotes", "names"):
            for table, columns in load_table("forget")[part].items():
                number += self._rewrite_table(table, columns, watch, apply)
        number += self._rename_memories(change, taken, apply)
        if apply:
            self._count_restore()
        return number

    def _item_pages(self) -> Iterator[list[Item]]:
        last = 0
        while page := self._read_items(" WHERE i.id > ? ORDER BY i.id LIMIT ?", last, _PAGE):
            last = page[-1].id
            yield page

    def _rewrite_table(
        self, table: str, columns: Mapping[str, str], change: Change, apply: bool = True
    ) -> int:
        described = self._columns_of(table)
        names = ", ".join(described)
        keys = " AND ".join(f"{name} = :{name}" for name, is_key in described.items() if is_key)
        number = 0
        for row in list(self._db.execute(f"SELECT {names} FROM {table}")):
            values = dict(zip(described, row, strict=True))
            new = {name: _change_text(form, values[name], change) for name, form in columns.items()}
            if new.items() <= values.items():
                continue
            number += 1
            if apply:  # lines of a history refuse an UPDATE: they are never edited but here
                self._db.execute(f"DELETE FROM {table} WHERE {keys}", values)
                marks = ", ".join(f":{name}" for name in values)
                self._db.execute(f"INSERT INTO {table}({names}) VALUES ({marks})", values | new)
        return number

    def _rename_memories(self, change: Change, taken: set[str], apply: bool) -> int:
        """Memories called by words that they do not say any more."""
        named = [
            (f"memory-{item}", item, slug)
            for item, slug in list(self._db.execute("SELECT item, slug FROM memory"))
            if change(words := slug.replace("-", " ")) != words or {*words.split()} & taken
        ]
        for new, item, slug in named if apply else ():
            self._forget_names([item])
            self._db.execute("UPDATE memory SET slug = ? WHERE item = ?", (new, item))
            sql = "UPDATE item SET ref = replace(ref, ?, ?) WHERE id = ?"
            self._db.execute(sql, (slug, new, item))
        return len(named)
