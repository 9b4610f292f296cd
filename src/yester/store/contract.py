"""The Store contract: what a backend must do. One test suite (`tests/store`) runs on all of them.

A store keeps items and supplies candidates; it does not rank. Text arrives expanded (Document), so
every backend indexes the same terms and one ranker scores them all. Ids name things within one
store; they are no clock (`Store.feed` has cursors for that).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from yester import model
from yester.model import ANYTHING, EVERYTHING, Filters, Item, Paging, Probe

# What a transaction protects: rows written down as they happen, money that is left, the slugs and
# versions of memories, which project is whose and how far transcripts were read, which events are
# known, items that are looked at before they are written, what was distilled of a session, the
# whole index.
Lock = Literal["ledger", "spend", "memories", "places", "events", "items", "work", "index"]


# What `append` writes down. Projects that were joined and the history of memories are read in the
# same way.
Row = (
    model.Injection | model.Feedback | model.Spend | model.Event | model.Turn | model.OwedStart
    | model.Refinement | model.Archived | model.Muted | model.Skipped | model.Answered
    | model.Source | model.Failure | model.Machine | model.LogSegment | model.LogItem
    | model.LogVersion | model.SharedItem | model.ShareCursor
)  # fmt: skip
R = TypeVar("R", bound=Struct)


class Items(Protocol):
    """What is remembered, and what it was made of."""

    def put(self, entries: Sequence[model.Entry]) -> model.PutCounts:
        """Insert or replace by (source, kind, ref), rows and index in step.

        The same content again is a no-op. An item with an alias takes over the one a hook stored
        under that ref. Projects and sessions that the items name are put before; an unknown one is
        made from its key alone. A structured memory is left as it is (`put_memo`), and so is one
        that is no longer active or was let go. What was forgotten (`yester.tombstones`) is passed
        over, and counts as unchanged.
        """

    def remove(self, ids: Sequence[int], gone: tuple[int, str] | None = None) -> None:
        """Take items out, rows and index in step, and the failures of runs among them (as `put`
        does for a run that has changed); unknown ids are passed over. With `gone` (when, why)
        memories are let go: their refs stay known, so that they do not come back, and no other item
        ever gets their ids."""

    def forget(
        self,
        ids: Sequence[int],
        sessions: Sequence[int] = (),
        projects: Sequence[str] = (),
        dry_run: bool = False,
    ) -> model.Forgotten:
        """Take items out with all that came of them and all that is known of them: what was
        distilled from them (its sessions wait to be distilled anew of what is left), rules that
        were read in them, lines of ledgers and histories that quote them, how far their transcripts
        were read, titles of their sessions and of these. Those sessions, and these projects (keys),
        of which nothing is left go as well. Whoever has the store open must open it anew."""

    def get(self, ids: Sequence[int]) -> list[Item]:
        """The items with these ids, in this order; unknown ids are left out."""

    def find_by_ref(self, ref: str) -> list[Item]:
        """Items by the caller's own id, over all sources and kinds."""

    def select(self, filters: Filters, page: Paging = EVERYTHING) -> list[Item]:
        """Items that pass the filters, by time (then id); with `filters.echoes` also those an agent
        only said again, which no search gives."""

    def history(
        self, session: int, brief: Collection[str], chars: int, after: tuple[int, int], limit: int
    ) -> list[tuple[Item, int]]:
        """The next items of a session by (time, id), without what came of it (distilled items,
        memories, what another program has noted of it), each with the length of its text; of
        thinking and of these tools only so many characters of it, of other tools that wrote much
        the beginning and the end; the places of a call (`Item.call`) are those in what is given."""

    def evidence(
        self, items: Sequence[int], into: bool = False
    ) -> dict[int, tuple[tuple[int, int], ...]]:
        """Distilled item → (number of the fact, item it was made of), in the order of time. With
        `into`, item → (number of the fact, active item made of it). Others are left out."""


class Search(Protocol):
    """Candidates for a question. Which of many come back is no engine's own choice:

    words     Terms by (items that hold them, place in the question), rarest first, while they are
              at most 32 and their lists at most 3,500 items long together; always one. A list is
              that of the filtered projects, complete up to 3,500, then its newest. Where filters
              leave fewer than wanted: further terms, one by one. By summed weight, then newer id
    meaning   Codes by distance, then the newer item; three for each one wanted and never fewer than
              300 are compared by value
    files     Those about most of them, then the newest
    lines     All edits of the files that pass the filters, the oldest first
    """

    def probe(self, probe: Probe) -> model.ProbeResult:
        """Everything that is found for a question before anything is scored."""

    def around(
        self,
        probe: Probe,
        likeliest: Sequence[int],
        known: Collection[int],
        near: Collection[int],
        turns: Collection[model.TurnKey] = (),
    ) -> model.Neighbours:
        """What stands beside the likeliest, and how near all are: those found (`known`) without
        those whose nearness is known already (`near`). And what was said in these turns."""

    def texts(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> model.Texts:
        """Items in this order and what is known of the use of these and of others: the last that a
        search asks for."""

    def use_model(self, model: str) -> int:
        """Vectors of this model are wanted from now on; the number of items still without them.

        Items told in words want vectors; what tools print, and thinking, does not.
        """

    def unembedded(self, limit: int, since: int = 0, model: str = "") -> list[int] | None:
        """Items whose vectors are still to be made, newest first; only those stored since then.
        None where not this model's are wanted, but another's or none's yet."""

    def put_vectors(self, item: int, model: str, vectors: Sequence[Any]) -> None:
        """The vectors of an item's parts, instead of those it had."""


class Places(Protocol):
    """Projects and sessions: where things happened."""

    def put_project(self, project: model.Project) -> int:
        """Its id. A known key keeps its readable name; a name already taken is made longer. 0, and
        nothing done, where it was forgotten: the next item of it makes it again."""

    def projects(self) -> list[model.Project]:
        """All projects, by name."""

    def merge_project(self, key: str, into: model.Project, now: int = 0) -> int:
        """Make all items, sessions and memories of one project another one's, under their ids; the
        number of items moved. Where there is no such other project, it is only called so.
        Memories with a name that the other project has get another one.

        With a time, what was whose is written down as well, so that `part_project` can undo it; the
        id of that Join then, 0 where there was nothing to join."""

    def part_project(self, join: model.Join, into: model.Project, now: int) -> int:
        """Make everything that a join has moved, and what its sessions have got since, a project of
        its own again, under this key and name; the number of items moved."""

    def put_session(self, session: model.Session) -> int:
        """Its id. A known one is widened: earliest start, latest end, last title that is not "".
        0, and nothing done, where all of it was forgotten."""

    def session(self, key: str, agent: str) -> model.Session | None:
        """A client's session with its number of prompts; where it has several projects, the first.

        The number of items is not counted."""

    def find_sessions(
        self, wanted: Collection[tuple[str, str]], prompts: bool = True
    ) -> dict[tuple[str, str], model.Session]:
        """Those that are known of these (key, agent), as `session` gives each; asked at once. To
        count their prompts takes longer than all else: without it they have none."""

    def sessions(self, filters: Filters, page: Paging = EVERYTHING) -> list[model.Session]:
        """Sessions that pass the filters by their end, with their numbers of items and prompts."""


class Memories(Protocol):
    """Structured memories, their history and the files they were read from."""

    def put_memo(self, entry: model.Entry, memo: model.Memo, change: model.Change) -> int:
        """Write a structured memory, its item and the line of its history together; its id.

        `memo` is to be stored with the id and version it was read with (0 and 0: it is new): where
        the store has another version, StoreChanged. Changes with one `act` belong together;
        without one it begins an act of its own.
        """

    def memos(
        self,
        filters: Filters = ANYTHING,
        page: Paging = EVERYTHING,
        *,
        ids: Sequence[int] | None = None,
        slug: str = "",
        tags: Sequence[str] = (),
    ) -> list[model.Memo]:
        """Memories that pass the filters, the last written first; of these ids (then in their
        order) or with this slug, whatever their status; with all tags.

        An item of kind memory that was put as a plain item is one too: version 0, its body as the
        content."""

    def free_slug(self, project: str, slug: str) -> str:
        """The slug, with a number where a memory of the project (a key) has or had it."""

    def was_dropped(self, source: str, ref: str) -> bool:
        """Was there a memory of this identity that was let go, or forgotten?"""

    def put_memo_file(self, item: int, raw: bytes, hash_: str) -> None:
        """This is the file a memory, as it is now, was read from."""

    def memo_files(self, items: Sequence[int]) -> dict[int, model.MemoFile]:
        """The files memories were read from; those that never were in one are left out."""


class Ledger(Protocol):
    """Rows that are written down as they happen, and sums over everything there is."""

    def append(self, rows: Sequence[Row]) -> list[int]:
        """Write rows down, inside a transaction; their ids, 0 where one has none or was known.

        Known already, so that the row stays as it is: an event, a muted session, feedback of the
        same kind on an item in a session, a segment of the log, a version in it. Replaced: a turn
        (session, key), an owed start (session),
        a refinement (session, turn), an archived session, how far a transcript was read (path), a
        spend (id), a failure (item, mark), a machine (key), an item of the log (item), of a team's
        (project, item), how far a team's lines were read (project). Added up:
        skipped records, answers. Passed over: how far a transcript was read of a project that was
        forgotten."""

    def retract(self, kind: type[Row], where: Mapping[str, object]) -> int:
        """Take back rows with these values, inside a transaction; how many there were."""

    def entries(
        self, kind: type[R], where: Mapping[str, object] = {}, page: Paging = EVERYTHING
    ) -> list[R]:
        """Rows of a kind with these values (a value, or several of which one), newest first; those
        without a number by what names them, backwards."""

    def totals(
        self,
        table: str,
        by: Sequence[str] = (),
        sums: Sequence[str] = ("number",),
        where: Mapping[str, object] = {},
        since: int = 0,
        filters: Filters = ANYTHING,
    ) -> list[tuple[Any, ...]]:
        """Sums over a table of those with these values, from a time on: a row for each group, which
        holds what it was grouped by, then the sums; in the order of what it was grouped by. What
        there is to sum up: `figures.py` says it by using it. Of items and concepts, with `filters`,
        only active ones that pass them."""


class Work(Protocol):
    """Sessions that are to be distilled, refined and archived."""

    def queue_sessions(self, since: Mapping[int, int] | None = None) -> None:
        """Sessions wait to be distilled: something of that time is different now. Without them, all
        there are."""

    def queued_sessions(self, queue: model.Queue) -> list[model.Waiting]:
        """What there is to do."""

    def settle_session(self, waiting: model.Waiting, rest: int = 0) -> None:
        """A session has been distilled as it was then; it waits still where it has changed since.
        With `rest`, only up to that time: it waits still, since then."""


class Store(Items, Search, Places, Memories, Ledger, Work, Protocol):
    """All writing happens inside `transaction`; reading needs nothing."""

    @property
    def location(self) -> str:
        """Where the store is, for messages; never with a password in it."""

    @property
    def size(self) -> int:
        """Bytes that the store takes."""

    def in_place(self) -> bool:
        """False: open it anew. A restored backup has taken its place, and its rows are others; or a
        newer yester has changed the schema. Whoever writes is told by StoreReplaced, StoreNewer."""

    def close(self) -> None:
        """Let go of everything. Calling it twice is harmless."""

    def transaction(
        self, lock: Lock, patience: float | None = None
    ) -> AbstractContextManager[None]:
        """The one way to write: commits at the end, rolls back on an error.

        What is read under a named lock stays true until then: nobody else has a transaction of that
        name. Name what is protected, also where an engine has but one writer. StoreBusy where
        another writer keeps it waiting for longer than `patience` (seconds).

        All or nothing, also under kill -9. Keep it short: prepare outside, write inside.
        """

    def feed(self, cursor: str = "", limit: int = 500) -> tuple[list[model.FeedLine], str]:
        """What was committed behind a cursor, each line at least once, and the cursor behind the
        last; without one nothing, and the cursor behind everything there is. A cursor is opaque: it
        says nothing about time, and two of them cannot be compared but for being the same. Asking
        in vain costs next to nothing. FeedExpired where it is of another life of the store."""


class Maintenance(Protocol):
    """Looking after what a store has made of its rows (`yester.store.maintenance_of`)."""

    def check(self, by_hash: bool = False) -> list[str]:
        """What is broken, a sentence each; empty when all is well. Reads everything; by hash it is
        also seen whether each item is what was stored."""

    def stale(self) -> str:
        """Why the index no longer fits this yester (another tokenizer …), or ""."""

    def reindex(self) -> int:
        """Build the whole index anew from the rows, which stay untouched; the number of items.
        Needs a transaction."""
