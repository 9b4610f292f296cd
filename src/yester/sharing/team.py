"""What a server does with the lines its members send, and which lines it tells them.

    an item     its owner's alone to tell, to take out and to forget; the newest telling counts
    a memory    its owner's to share first; then whoever may write writes a version beside or behind
    forgotten   stays: what has this mark is refused for ever, and everybody is told

Each line is answered by itself: one that is refused, or that the store cannot take, stops no other.
A batch is one transaction. What is told is read from the same rows that were written with it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import msgspec
from msgspec import Struct

from yester import errors, model
from yester.project import bare_project
from yester.sharing import wire
from yester.sharing.exchange import Side
from yester.sharing.merge import Merge, Place
from yester.store import find_item, sharing_of, team_lines_of
from yester.store.contract import Store
from yester.tombstones import Marks

STORED, SAME = "stored", "same"
_ENDS = ("gone", "forgotten")  # kinds of lines behind which nothing is left of an item
_PAGE = 500  # lines
Rows = Sequence[model.TeamLine]
Named = tuple[wire.Line, model.TeamLine]  # a line as it will be told, and its row
_WITHDRAWN = (1 << 53) - 1  # the batch that no other follows
_MOST_BYTES = 4_000_000  # of an answer
_MARK_BYTES = 16
_PAUSE = 0.25  # seconds between two looks for something new
_WAITING = BoundedSemaphore(2)  # each has a thread that others need
# What a line may hold that no store takes: it must cost that line alone.
_BAD_LINE = (
    errors.StoreError, errors.UsageError, errors.NotFound, ValueError, TypeError, KeyError,
    AttributeError,
)  # fmt: skip
_NOT_THE_LINE = (errors.StoreBusy, errors.NotYours)


class Pushed(Struct, kw_only=True):
    """What became of a batch: for each line "stored", "same", or "refused: " and why."""

    results: list[str]
    last: int  # the number of the last batch from there
    behind: bool = False  # it was late: a later batch was there before
    withdrawn: bool = False  # nothing more is taken from there
    cursor: str = ""  # where to read on, if nothing else was told since that of the request


class Told(Struct, kw_only=True):
    lines: list[dict[str, Any]]
    cursor: str
    more: bool
    key: str  # of the digests of what is the caller's, in hex


class Member:
    """Somebody who asks a server, in its store."""

    def __init__(self, store: Store, home: Path, user: str, now: int) -> None:
        self._store, self._rows = store, team_lines_of(store)
        self._home, self._user, self._now = home, user, now
        self._keys: dict[str, bytes] = {}

    def _digest_line(self, source: str, kind: str, ref: str) -> str:
        """Under the key of whose it is."""
        owner = model.team_user(source)
        if owner not in self._keys:
            self._keys[owner] = self._rows.user_key(owner)
        key = wire.team_key((source, kind, ref), owner)
        return Marks(self._keys[owner], {}).digest(key).hex()

    # --- what is sent -----------------------------------------------------------------------------

    def push_lines(
        self, project: str, origin: str, batch: int, forms: Sequence[dict[str, Any]], cursor: str
    ) -> Pushed:
        if not project.startswith(("git:", "name:")):
            raise errors.UsageError(
                "a project is shared by its remote or its name", "give it a name"
            )
        body = sha256(msgspec.json.encode([project, forms])).hexdigest()
        named = (origin, batch, body)
        if (known := self._find_answer(*named)) is not None:
            return known
        with self._store.transaction("places"):
            if not self._rows.find_project_id(project):
                self._store.put_project(bare_project(project))
        anchor = secrets.token_hex(8)
        try:
            with self._store.transaction("memories"):
                # Another one may have come with the same number meanwhile.
                if (known := self._find_answer(*named)) is not None:
                    return known
                results, told = self._take_batch(anchor, project, forms, cursor)
                pushed = Pushed(results=results, last=batch, cursor=told)
                return self._keep_answer(anchor, named, pushed)
        except _NOT_THE_LINE:
            raise
        except _BAD_LINE:
            pass
        pushed = Pushed(results=self._take_apart(anchor, project, forms), last=batch)
        with self._store.transaction("memories"):
            return self._keep_answer(anchor, named, pushed)

    def _find_answer(self, origin: str, batch: int, body: str) -> Pushed | None:
        """What was answered before; or that nothing is taken."""
        known = self._rows.find_batch(origin, batch)
        if known is not None and known[0] == body:
            return msgspec.json.decode(known[1], type=Pushed)
        last = self._rows.last_batch(origin)
        if last == _WITHDRAWN:
            return Pushed(results=[], last=last, withdrawn=True)
        return Pushed(results=[], last=last, behind=True) if batch <= last else None

    def _keep_answer(self, anchor: str, named: tuple[str, int, str], pushed: Pushed) -> Pushed:
        """For whoever asks the same again."""
        self._rows.put_batch(anchor, *named, msgspec.json.encode(pushed).decode())
        return pushed

    def _take_apart(self, anchor: str, project: str, forms: Sequence[dict[str, Any]]) -> list[str]:
        """By halves, to find the line that nothing can be done with."""
        try:
            with self._store.transaction("memories"):
                return self._take_lines(anchor, project, forms)
        except _NOT_THE_LINE:
            raise
        except _BAD_LINE as error:
            if len(forms) == 1:
                what = error.what if isinstance(error, errors.YesterError) else "it makes no sense"
                return [f"refused: {what}"]
        half = len(forms) // 2
        parts = (forms[:half], forms[half:])
        return [one for part in parts for one in self._take_apart(anchor, project, part)]

    def _take_batch(
        self, anchor: str, project: str, forms: Sequence[dict[str, Any]], cursor: str
    ) -> tuple[list[str], str]:
        """What became of each line, and the cursor behind them where nothing else was told since
        this one."""
        number = self._rows.find_project_id(project)
        seen = self._rows.last_team_line(number)
        results = self._take_lines(anchor, project, forms)
        at, _ = _parse_cursor(cursor) or (0, "")
        last = self._rows.last_team_line(number)
        return results, _form_cursor(last, anchor) if at >= seen and last > seen else ""

    def _take_lines(self, anchor: str, project: str, forms: Sequence[dict[str, Any]]) -> list[str]:
        """Inside a transaction: into the store, then beside it, for the others."""
        results, wanted = [""] * len(forms), list[tuple[int, wire.Line, model.TeamLine]]()
        number = self._rows.find_project_id(project)
        for at, form in enumerate(forms):
            try:
                line = wire.parse_line(form)
                if line is None:
                    raise errors.SourceError("this server does not know such a line; update it")
                line, row = self._name_line(anchor, project, wire.clean_line(line))
                wanted.append((at, line, model.replace(row, project=number)))
            except errors.SourceError as error:
                results[at] = f"refused: {error.what}"
        rows = self._rows.find_team_lines({row.digest for _, _, row in wanted})
        forgotten = {row.digest for _, _, row in wanted if row.kind == "forgotten"}
        here, elsewhere, known = (
            list[model.TeamLine](),
            list[model.TeamLine](),
            dict[str, list[model.TeamLine]](),
        )
        for row in rows:
            everywhere = row.kind in ("memory", "forgotten") or row.digest in forgotten
            if row.project == number or everywhere:
                here.append(row)
                known.setdefault(row.digest, []).append(row)
            elif row.kind == "item":
                elsewhere.append(row)
        new: list[Named] = []
        for at, line, row in wanted:
            outcome = self._judge_line(row, known.get(row.digest, []))
            results[at] = outcome
            if outcome == STORED:
                new.append((line, row))
                others = known.setdefault(row.digest, [])
                others[:] = [row] if row.kind != "memory" else [*others, row]
        if new:
            self._write_lines(project, new, here, elsewhere)
        return results

    def _name_line(self, anchor: str, project: str, line: wire.Line) -> Named:
        """As it will be told and stand in the rows; SourceError where it is not this member's to
        tell."""
        owner, kind, mark = self._user, "", ""
        match line:
            case wire.ItemLine(item=item):
                check_place(item, project)
                kind, mark = "item", line.hash
                if model.team_user(item.source) != owner or not _is_own_session(
                    item.session, owner
                ):
                    raise errors.SourceError("it is not yours")
                digest = self._digest_line(*item.identity)
            case wire.MemoryLine():
                if line.memo is not None:
                    check_place(line.memo.item, project)
                    if line.memo.item.source != line.source:
                        raise errors.SourceError("it is called otherwise than its versions")
                owner, kind, mark = model.team_user(line.source), "memory", line.mark
                if line.memo is None and owner != self._user:
                    raise errors.SourceError("it is not yours to let go")
                line = model.replace(line, who=self._user)
                digest = self._digest_line(line.source, "memory", line.ref)
            case wire.GoneLine():
                kind, mark = "gone", ""
                if model.team_user(line.source) != owner:
                    raise errors.SourceError("it is not yours")
                digest = self._digest_line(line.source, line.kind, line.ref)
            case wire.ForgottenLine():
                kind, marks = "forgotten", Marks.from_records(b"", line.marks)
                if len(marks.times) != 1:
                    raise errors.SourceError("a mark stands in a line of its own")
                digest = next(iter(marks.times)).hex()
                key = self._rows.user_key(owner)
                records = Marks(key, {bytes.fromhex(digest): wire.FOR_EVER}).records
                line = wire.ForgottenLine(key, records, owner)
            case model.Session():
                kind, mark = "session", sha256(wire.encode_line(line)).hexdigest()[:32]
                if line.project != project or not _is_own_session(line.key, owner):
                    raise errors.SourceError("it is not yours")
                digest = self._digest_line(line.key, "session", f"{line.agent} {project}")
            case _:
                raise errors.SourceError("this is no line to send")
        row = model.TeamLine(
            owner, self._user, digest, kind, mark, wire.encode_line(line), anchor, 0
        )
        return line, row

    def _judge_line(self, row: model.TeamLine, known: Rows) -> str:
        if row.kind == "forgotten":
            return SAME if any(one.kind == "forgotten" for one in known) else STORED
        if any(one.kind == "forgotten" for one in known):
            return "refused: forgotten"
        if row.kind == "gone":
            return STORED if any(one.kind == "item" for one in known) else SAME
        if row.kind == "memory":
            if row.owner != self._user and not any(one.kind == "memory" for one in known):
                return "refused: it is not shared here"
            return SAME if any(one.mark == row.mark for one in known) else STORED
        found = [one for one in known if one.kind == row.kind]
        return SAME if found and found[-1].mark == row.mark else STORED

    def _write_lines(self, project: str, new: Sequence[Named], old: Rows, elsewhere: Rows) -> None:
        latest = {(row.digest, row.mark if row.kind == "memory" else ""): row for _, row in new}
        chosen = [pair for pair in new if any(pair[1] is row for row in latest.values())]
        over = {row.digest for _, row in chosen if row.kind in _ENDS}
        # Into the store, which the members search …
        place = Place(model.TEAM, self._rows.next_team_line())
        merge = Merge(Side(self._home, self._store, self._now), "")
        merge.merge_lines(
            [wire.read_team(line, "") for line, row in chosen if row.digest not in over], place
        )
        self._take_out(project, [row for row in old if row.digest in over])
        # … and beside it, for their own stores. What was in another project is gone from there:
        # the members may read that one alone. Whoever reads both knows by the order where it is.
        told = [row for _, row in chosen if row.kind in _ENDS or row.digest not in over]
        items = {row.digest: row for row in told if row.kind == "item"}
        moved = [row for row in elsewhere if row.digest in items]
        replaced = {row.digest for _, row in chosen if row.kind != "memory"}
        before = [row for row in old if row.digest in replaced and row.kind != "forgotten"]
        self._rows.drop_team_lines([row.id for row in (*before, *moved)])
        gone = [model.replace(_form_gone(row), anchor=items[row.digest].anchor) for row in moved]
        self._rows.put_team_lines([*gone, *told])

    def _take_out(self, project: str, rows: Rows) -> None:
        """Items of these lines, and every version of a memory, with all that is known of them."""
        ids, roots = set[int](), set[str]()
        for row in rows:
            match wire.parse_line(msgspec.json.decode(row.line)):
                case wire.ItemLine(item=item):
                    here = find_item(self._store, item.identity)
                    ids |= {here.id} if here is not None else set()
                case wire.MemoryLine() as line:
                    roots.add(wire.root_of(line.source, line.ref))
        if rows:
            take_out(self._store, project, ids, roots)
            self._rows.scrub_terms()

    def withdraw_project(self, project: str, origin: str) -> int:
        """Nothing of this member's is left there, and everybody is told; nothing more is taken from
        there. How many lines there were."""
        with self._store.transaction("memories"):
            number = self._rows.find_project_id(project)
            ids = self._rows.find_lines_of(number, self._user) if number else []
            if self._rows.last_batch(origin) != _WITHDRAWN:
                self._rows.put_batch(secrets.token_hex(8), origin, _WITHDRAWN, "", "")
            if ids:
                anchor, at, own = secrets.token_hex(8), 0, set(ids)
                self._rows.put_batch(anchor, f"withdrawn {anchor}", 0, "", "")
                while lines := self._rows.read_team_lines(number, at, _PAGE, _MOST_BYTES):
                    self._take_out(project, [one for one in lines if one.id in own])
                    at = lines[-1].id
                self._rows.drop_team_lines(ids)
                line = wire.encode_line(wire.WithdrawnLine(self._user))
                digest = self._digest_line(f"{model.TEAM}{self._user}:", "withdrawn", project)
                user = self._user
                told = model.TeamLine(user, user, digest, "withdrawn", "", line, anchor, number)
                self._rows.put_team_lines([told])
        return len(ids)

    # --- what is told -----------------------------------------------------------------------------

    def read_lines(self, project: str, cursor: str, most: int, wait: float) -> Told:
        """What was told behind a cursor, and the cursor behind the last."""
        known = _parse_cursor(cursor)
        number = self._rows.find_project_id(project)
        if cursor and (known is None or not self._rows.knows_anchor(known[1])):
            raise errors.FeedExpired("the cursor is of another life of this server's database")
        at = known[0] if known else 0
        rows = self._wait_for(
            lambda: self._rows.read_team_lines(number, at, most, _MOST_BYTES), wait
        )
        return Told(
            lines=[{"id": row.id, "line": msgspec.json.decode(row.line)} for row in rows],
            cursor=_form_cursor(rows[-1].id, rows[-1].anchor) if rows else cursor,
            more=bool(rows) and self._rows.last_team_line(number) > rows[-1].id,
            key=self._rows.user_key(self._user).hex(),
        )

    def _wait_for(
        self, read: Callable[[], list[model.TeamLine]], wait: float
    ) -> list[model.TeamLine]:
        rows = read()
        if rows or not wait or not _WAITING.acquire(blocking=False):
            return rows
        try:
            until = time.monotonic() + wait
            while not rows and time.monotonic() < until:
                time.sleep(_PAUSE)
                rows = read()
            return rows
        finally:
            _WAITING.release()


def _form_gone(row: model.TeamLine) -> model.TeamLine:
    """That this item is gone from where it was told."""
    line = wire.parse_line(msgspec.json.decode(row.line))
    assert isinstance(line, wire.ItemLine)
    gone = wire.GoneLine(line.item.kind, line.item.ref, source=line.item.source)
    return model.replace(row, kind="gone", mark="", line=wire.encode_line(gone))


def take_out(store: Store, project: str, items: Collection[int], roots: Collection[str]) -> None:
    """Items, and all versions of memories, as if they had never been told: inside a transaction."""
    rows = store.entries(model.LogItem, {"root": list(roots)}) if roots else []
    ids = sorted({*items, *(row.item for row in rows)})
    if ids:
        store.remove(ids)
        store.retract(model.LogItem, {"item": ids})
    if roots:
        store.retract(model.LogVersion, {"root": list(roots)})
    sharing_of(store).drop_team_sessions(project)


def check_place(item: model.Item, project: str) -> None:
    """SourceError where it is nothing that is shared of this project."""
    if item.project != project:
        raise errors.SourceError("it is of another project")
    if item.kind not in model.KINDS or item.kind == "note":
        raise errors.SourceError("this is kept where it was written")
    if item.kind == "memory" and item.type == "rule":
        raise errors.SourceError("a rule is its user's alone")


def _is_own_session(key: str, user: str) -> bool:
    return not key or model.team_user(key) == user


def _form_cursor(number: int, anchor: str) -> str:
    return f"{number}-{anchor}"


def _parse_cursor(cursor: str) -> tuple[int, str] | None:
    number, _, anchor = cursor.partition("-")
    return (int(number), anchor) if number.isascii() and number.isdigit() and anchor else None
