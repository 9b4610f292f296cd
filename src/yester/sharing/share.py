"""A store's part in what the team of a project shares over its server.

    read     what the others have told since the cursor, page by page: merged, then the cursor
             beside it in the store; what was forgotten or taken back there goes here
    told     what the server lacks, in batches; what became of each line is noted, and one that is
             refused stops no other

All of it can be done again after a kill at any point. The cursor and what is known of the server
stand in the store, so a backup that is put back goes on from where it was made; what is agreed with
the server stands beside it, in `share.json`. The server is believed little: what it tells is
somebody else's under a name of its own, and it takes out nothing that was not got from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from yester import model
from yester.errors import SourceError, YesterError
from yester.files import replace_file
from yester.sharing import wire
from yester.sharing.exchange import Part, Side, add_counts, load_state, save_state
from yester.sharing.merge import Merge, Place, Teller, Version, kept_ref, tell_dropped
from yester.sharing.server import NotAdmitted, ServerGone, TeamServer
from yester.sharing.team import Pushed, Told, check_place, take_out
from yester.store import find_item, sharing_of
from yester.store.contract import Store
from yester.tombstones import Marks, Tombstones, ref_key

_MOST_BYTES = 1_000_000  # of a batch; a line that is larger goes alone …
_LARGEST = 7_500_000  # … up to what the server takes
_ATTEMPTS = 5  # to send a batch, where another copy of this home sends as well
_TOLD = "told"  # the mark of what was forgotten, once the server knows
_TOO_LARGE = "it is too large to send"
_PRIVATE = "the project is private now"
_STILL_HERE = "forgotten on another of your machines, and still here"


class Share(Struct):
    """What is agreed with a server about a project."""

    project: str  # its key
    to: str
    user: str  # who this is there
    origin: str  # random; another one each time it is begun
    trust: str = ""  # the file of those who vouch for the server, instead of the system's
    plain: bool = False  # over http, though it is another machine
    batch: int = 0  # the last one
    since: int = -1  # the server's number of the last line there was when it was begun
    key: str = ""  # of the digests of what is this user's
    reads: bool = False  # the token may only read: nothing is sent
    last: int = 0  # ms; when both had the same
    ending: str = ""  # why it is to be withdrawn
    ended: str = ""  # what became of that
    problems: list[str] = []
    refused: dict[str, list[int]] = {}  # why → items


class Shares(Struct):
    """The file `share.json` of a home."""

    projects: list[Share] = []

    def find(self, project: str) -> Share | None:
        return next((one for one in self.projects if one.project == project), None)


def shares_file(home: Path) -> Path:
    return home / "share.json"


def save_shares(home: Path, shares: Shares) -> None:
    save_state(shares_file(home), shares)


def load_shares(home: Path) -> Shares:
    return load_state(shares_file(home), Shares, "remove it, then share again") or Shares()


class _Tokens(Struct):
    """The file `share.tokens`: by address."""

    tokens: dict[str, str] = {}


def _tokens_file(home: Path) -> Path:
    return home / "share.tokens"


def load_token(home: Path, url: str) -> str:
    found = load_state(_tokens_file(home), _Tokens, "remove it, then share again")
    return found.tokens.get(url, "") if found else ""


def save_token(home: Path, url: str, token: str) -> None:
    """ "" takes it away."""
    path = _tokens_file(home)
    known = load_state(path, _Tokens, "remove it, then share again") or _Tokens()
    kept = {name: one for name, one in known.tokens.items() if name != url}
    kept |= {url: token} if token else {}
    if kept:
        replace_file(path, msgspec.json.encode(_Tokens(kept)), sync=True)
    else:
        path.unlink(missing_ok=True)


class ShareReport(Struct):
    """What a run has done for a project."""

    project: str
    told: dict[str, int] = field(default_factory=dict)  # lines that were taken, by kind
    refused: dict[str, int] = field(default_factory=dict)  # why → lines, of this run
    outcome: dict[str, int] = field(default_factory=dict)  # of lines that were read
    passed: dict[str, int] = field(default_factory=dict)  # why lines of the server were not
    beside: list[str] = field(default_factory=list)  # memories that are kept beside another version
    forgotten: int = 0  # items taken out here, since their owners forgot them
    withdrawn: dict[str, int] = field(default_factory=dict)  # user → items taken back from here
    ended: str = ""
    problems: list[str] = field(default_factory=list)


class _Ended(SourceError):
    """This project is shared no more; why."""


class _NowPrivate(SourceError):
    """It has become private since this run began."""


# --- what is to be told ---------------------------------------------------------------------------


class Telling(NamedTuple):
    """A line as it is sent, and the row that says what the server has then."""

    line: wire.Line | None  # None: nothing needs to be told
    row: model.SharedItem | None = None  # None: nothing is noted
    mark: str = ""
    ends: bool = False  # nothing is left of it there

    @property
    def form(self) -> dict[str, object]:
        return wire.form_line(self.line) if self.line is not None else {}


class Unshared(Teller):
    """What the team of a project lacks of a store, as lines by its names."""

    def __init__(self, side: Side, share: Share) -> None:
        others = {one.key for one in side.store.projects()} - {share.project}
        super().__init__(side, own_machine(side.store), others)
        self._share, self._rows = share, sharing_of(side.store)
        self._marks = Marks(bytes.fromhex(share.key), {})

    def find_digest(self, identity: model.Identity) -> str:
        """What the server knows it by; "" where it is another's, whose key is not known here."""
        if not self._share.key or self.owner(identity) != self._share.user:
            return ""
        return self._marks.digest(wire.team_key(identity, self._share.user)).hex()

    def owner(self, identity: model.Identity) -> str:
        return model.team_user(wire.to_team(identity[0], self._share.user))

    def count(self) -> int:
        if self._share.reads:
            return 0
        ends = self._rows.find_unshared_ends(self._share.project)
        return len(self._rows.find_unshared(self._share.project)) + len(ends)

    def tellings(self) -> Iterator[Telling]:
        """Ends first: what is told anew may have the name of what has ended."""
        yield from self._ends()
        ids = self._rows.find_unshared(self._share.project)
        for at in range(0, len(ids), wire.MOST_LINES):
            items = self.store.get(ids[at : at + wire.MOST_LINES])
            for place in self.tell_places(items):
                if not isinstance(place, model.Project):
                    yield Telling(wire.tell_team(place, self._share.user))
            yield from self._tell_page(items)

    def _tell_page(self, items: Sequence[model.Item]) -> Iterator[Telling]:
        store, user = self.store, self._share.user
        project = self._share.project
        asked = {"project": project, "item": [one.id for one in items]}
        known = {row.item: row for row in store.entries(model.SharedItem, asked)}
        for item, line in self.tell_items(items):
            row = model.SharedItem(
                project, item.id, self.find_digest(item.identity), "", item.kind, kept_ref(item)
            )
            if isinstance(line, Version):
                row = model.replace(row, root=line.row.root)
                yield Telling(wire.tell_team(line.line, user), row, line.line.mark)
                continue
            former = known.get(item.id)
            if former is not None and former.ref and former.ref != row.ref:  # it has another name
                yield Telling(
                    wire.tell_team(wire.GoneLine(item.kind, former.ref, source=item.source), user)
                )
            yield Telling(wire.tell_team(line, user), row, line.hash)

    def _ends(self) -> Iterator[Telling]:
        """What was forgotten, let go, distilled otherwise or is another project's by now."""
        rows = self._rows.find_unshared_ends(self._share.project)
        here = {one.id: one for one in self.store.get([row.item for row in rows])}
        heads = {row.item: row.head for row in self.store.entries(
            model.LogItem, {"item": [row.item for row in rows if row.root]}
        )}  # fmt: skip
        let_go = {row.item: (row.root, heads.get(row.item) or row.mark) for row in rows if row.root}
        dropped = tell_dropped(self.store, let_go)
        for row in rows:
            line = self._end_of(row, here.get(row.item), dropped.get(row.item))
            told = wire.tell_team(line, self._share.user) if line is not None else None
            yield Telling(told, row, _TOLD if row.forgotten else "", ends=True)

    def _end_of(
        self, row: model.SharedItem, here: model.Item | None, dropped: wire.MemoryLine | None
    ) -> wire.Line | None:
        """None: there is nothing to tell of it, and it need not be asked about again."""
        if not row.digest:  # another's
            return None
        if row.forgotten:
            digest = bytes.fromhex(row.digest)
            return wire.ForgottenLine(self._marks.key, Marks(b"", {digest: wire.FOR_EVER}).records)
        if row.root:
            if here is None:
                return dropped
            mark = f"{wire.GONE}{row.mark}"
            name = wire.family_ref(here.ref)
            return wire.MemoryLine(here.source, name, mark, (row.mark,), at=self._now)
        if here is not None:
            return wire.GoneLine(row.kind, row.ref or here.ref, source=here.source)
        # That something said is here no more says nothing: it may have been read again otherwise.
        said = row.kind in ("message", "prompt", "memory", "note")
        return None if said else wire.GoneLine(row.kind, row.ref, source=model.DISTILLED)


def own_machine(store: Store) -> str:
    """This machine's name in a log of its owner's; "" where there is none."""
    return max((one.key for one in store.entries(model.Machine, {"own": 1})), default="")


# --- a run ----------------------------------------------------------------------------------------


class Sharing(Part):
    """One run for one project. `is_private` is asked before anything is sent."""

    def __init__(
        self, side: Side, share: Share, server: TeamServer, is_private: Callable[[str], bool]
    ) -> None:
        super().__init__(side)
        self.share, self.report = share, ShareReport(share.project)
        self._server, self._is_private = server, is_private
        self._last = share.since  # the server's number of the last line that was read

    def exchange(self) -> ShareReport:
        """Read, merge, tell; or withdraw what was told, where that is the user's word by now. What
        is wrong with the server or the way there is raised, and stands in the share as well."""
        share, problems = self.share, list[str]()
        try:
            if not share.ending and self._is_private(share.project):
                share.ending = _PRIVATE
            with suppress(_NowPrivate):
                if not share.ending:
                    self._exchange()
            if share.ending:
                self._withdraw()
        except _Ended as error:
            self._leave(str(error))
        except YesterError as error:
            problems = [str(error)]
            raise
        finally:
            self.report.problems = problems
            share.problems = problems
            share.last = share.last if problems else self._now
        return self.report

    def _exchange(self) -> None:
        self.meet()
        if self.share.since < 0:
            self._check_there()
        self._read()
        if not self.share.reads:
            self._tell_rest()

    def meet(self) -> None:
        """Who is asked for with this token, and what it is good for."""
        share, me = self.share, self._server.show_caller()
        if share.user and me.user != share.user:
            raise SourceError(
                f"this token is {me.user}'s, and the project is shared as {share.user}; "
                "`--stop` first, or take a token of the same user"
            )
        share.user, share.reads = me.user, "write" not in me.scopes

    def _check_there(self) -> None:
        """The first of a team makes the project there; whom it is hidden from is refused."""
        try:
            self._server.pull(self.share.project, "", 1)
        except NotAdmitted as error:
            if error.status != 404 or self.share.reads:
                raise
            self._push([])

    # --- reading ----------------------------------------------------------------------------------

    def _read(self) -> None:
        share, anew = self.share, False
        cursor = self._load_cursor()
        while True:
            try:
                told = self._server.pull(share.project, cursor, wire.MOST_LINES)
            except ServerGone:
                if anew:
                    raise
                anew, cursor = True, ""
                self._begin_anew(share.key)
                continue
            if share.key and told.key != share.key:
                self._begin_anew(told.key)
                cursor = ""
                continue
            share.key = told.key
            self._take(told)
            cursor = told.cursor
            if not told.more:
                break
            self.side.progress("pages read", 0, 0)
        share.since = share.since if share.since >= 0 else max(self._last, 0)

    def _load_cursor(self) -> str:
        """ "" where nothing was read, or where what the store knows is of an earlier time of
        sharing this project: a backup of then was put back."""
        asked = {"project": self.share.project}
        found = self.store.entries(model.ShareCursor, asked)
        origin, _, cursor = found[0].place.partition(" ") if found else ("", "", "")
        if origin != self.share.origin:
            with self.store.transaction("ledger"):
                self.store.retract(model.ShareCursor, asked)
                self.store.retract(model.SharedItem, asked)
                self._read_places_anew()
            self._save_cursor("")
        return cursor if origin == self.share.origin else ""

    def _save_cursor(self, cursor: str) -> None:
        with self.store.transaction("ledger"):
            self._note_cursor(cursor)

    def _note_cursor(self, cursor: str) -> None:
        self.store.append([model.ShareCursor(self.share.project, f"{self.share.origin} {cursor}")])

    def _read_places_anew(self) -> None:
        """Whatever number the server gives what it tells now, it is newer than what was read."""
        rows = self.store.entries(model.LogItem, {"origin": model.TEAM})
        self.store.append([model.replace(row, place=0) for row in rows if not row.root])

    def _begin_anew(self, key: str) -> None:
        """The server's database is another one than was read: an older copy of it or, with another
        key, a new one. Nothing is taken out because it is missing there; everything is told again.
        """
        share, store = self.share, self.store
        known, share.key = share.key, key
        share.since = self._last = -1
        unshared = Unshared(self.side, share)
        with store.transaction("ledger"):
            for row in store.entries(model.SharedItem, {"project": share.project}):
                digest = row.digest
                if key != known:
                    here = store.get([row.item])
                    digest = unshared.find_digest(here[0].identity) if here else ""
                store.append([model.replace(row, mark="", digest=digest)])
            self._read_places_anew()
        self._save_cursor("")

    def _take(self, told: Told) -> None:
        """A page, then the cursor behind it."""
        lines, marks, last = list[wire.Line](), dict[str, Marks](), 0
        for one in told.lines:
            last = int(one["id"])
            try:
                line = self._parse(one["line"])
            except SourceError as error:
                add_counts(self.report.passed, {error.what: 1})
                continue
            if isinstance(line, wire.WithdrawnLine):
                self._merge(lines, last)
                lines = []
                self._take_back(line.user, last)
            elif isinstance(line, wire.ForgottenLine):
                new = Marks.from_records(line.key, line.marks)
                marks[line.user] = marks.get(line.user, Marks(line.key, {})).add(new.times)
            elif line is not None:
                lines.append(line)
        self._merge(lines, last)
        self._forget_marked(marks)
        self._last = max(self._last, last)
        self._save_cursor(told.cursor)

    def _parse(self, form: dict[str, object]) -> wire.Line | None:
        """As this store keeps it. SourceError where it is none that a server may tell: whatever it
        is, it must not stand under a name of this store's own."""
        line = wire.parse_line(form)
        line = wire.clean_line(line) if line is not None else None
        match line:
            case None:
                raise SourceError("a newer yester has told it; update this one")
            case wire.ItemLine():
                self._check_item(line.item, line.item.source)
            case wire.MemoryLine():
                _check_name(line.source)
                if line.memo is not None:
                    self._check_item(line.memo.item, line.source)
            case model.Session():
                _check_name(line.key)
                if line.project != self.share.project:
                    raise SourceError("it is of another project")
            case wire.GoneLine():
                _check_name(line.source)
            case wire.ForgottenLine() | wire.WithdrawnLine():
                if not line.user:
                    raise SourceError("it does not say whose it is")
            case _:
                raise SourceError("this is no line for a team")
        line = wire.read_team(line, self.share.user)
        if isinstance(line, wire.MemoryLine) and not self._may_change(line):
            raise SourceError("it is of a memory that is not shared from here")
        if isinstance(line, model.Session) and not line.key.startswith(model.TEAM):
            return line if self.store.session(line.key, line.agent) is None else None
        return line

    def _check_item(self, item: model.Item, source: str) -> None:
        _check_name(item.source)
        check_place(item, self.share.project)
        if item.source != source:
            raise SourceError("it is called otherwise than its versions")
        if item.session and model.team_user(item.session) != model.team_user(source):
            raise SourceError("it is of a session of somebody else's")

    def _may_change(self, line: wire.MemoryLine) -> bool:
        """Not a rule, and not what is of another project here."""
        here = find_item(self.store, (line.source, "memory", line.ref))
        if here is None:
            return True
        return here.project == self.share.project and here.type != "rule"

    def _merge(self, lines: Sequence[wire.Line], number: int) -> None:
        """What is this user's own and here is left as it is: it is the truth here."""
        if not lines:
            return
        merge = Merge(self.side, own_machine(self.store))
        items = [one for one in lines if isinstance(one, wire.ItemLine)]
        own = [one for one in items if not one.item.source.startswith(model.TEAM)]
        unshared = Unshared(self.side, self.share)
        kept = {one.item.identity for one in own if self._is_born_here(one, unshared)}
        merged = [
            one
            for one in lines
            if not (isinstance(one, wire.ItemLine) and one.item.identity in kept)
        ]
        merge.merge_lines(merged, Place(model.TEAM, number))
        add_counts(self.report.outcome, merge.outcome)
        self.report.beside += merge.beside
        with self.store.transaction("ledger"):
            for line in own:
                self._settle_item(line, unshared, line.item.identity in kept)
            for one in lines:
                if isinstance(one, wire.MemoryLine):
                    self._settle_memory(one, unshared)

    def _find_own(self, line: wire.ItemLine, unshared: Unshared) -> model.Item | None:
        """It may be called otherwise by now."""
        here = find_item(self.store, line.item.identity)
        if here is None:
            digest = unshared.find_digest(line.item.identity)
            rows = self.store.entries(
                model.SharedItem, {"project": line.item.project, "digest": digest}
            )
            here = next(iter(self.store.get([row.item for row in rows])), None)
        return here

    def _is_born_here(self, line: wire.ItemLine, unshared: Unshared) -> bool:
        here = self._find_own(line, unshared)
        if here is None:
            return False
        rows = self.store.entries(model.LogItem, {"item": here.id})
        return not rows or rows[0].origin != model.TEAM

    def _settle_item(self, line: wire.ItemLine, unshared: Unshared, born_here: bool) -> None:
        """What the server has of this user's own. Where it has otherwise what is here, another
        machine of theirs, or a server put back, has told it: what was changed here since it was
        told here is told."""
        project, identity = self.share.project, line.item.identity
        digest, here = unshared.find_digest(identity), self._find_own(line, unshared)
        if here is None:
            self._settle_missing(identity, digest)
            return
        rows = self.store.entries(model.SharedItem, {"project": project, "item": here.id})
        mark = wire.hash_item(here)
        if born_here and mark != line.hash:
            mark = rows[0].mark if rows else line.hash
        self.store.append(
            [model.SharedItem(project, here.id, digest, mark, here.kind, kept_ref(here))]
        )

    def _settle_missing(self, identity: model.Identity, digest: str) -> None:
        """Forgotten here, though the server has it: a backup was put back that did not know."""
        if digest and Tombstones(self._home).knows("ref", *identity):
            number = -int(digest[:14], 16)  # no item has it
            row = model.SharedItem(
                self.share.project, number, digest, "", identity[1], forgotten=True
            )
            self.store.append([row])

    def _settle_memory(self, line: wire.MemoryLine, unshared: Unshared) -> None:
        project, root = self.share.project, wire.root_of(line.source, line.ref)
        identity = (line.source, "memory", wire.family_ref(line.ref))
        digest = unshared.find_digest(identity)
        rows = self.store.entries(model.LogItem, {"root": root})
        there = {one.id for one in self.store.get([row.item for row in rows])}
        for row in rows:
            if row.head == line.mark and row.item in there:
                self.store.append(
                    [model.SharedItem(project, row.item, digest, line.mark, "memory", root=root)]
                )
            elif row.head == line.mark:  # it was let go
                self.store.retract(model.SharedItem, {"project": project, "item": row.item})
        if not there and line.memo is not None:
            self._settle_missing(identity, digest)

    # --- what goes --------------------------------------------------------------------------------

    def _from_team(self) -> Iterator[model.Item]:
        """What has come from the server, whoever has written it last."""
        told = {row.item for row in self.store.entries(model.LogItem, {"origin": model.TEAM})}
        asked = {"project": self.share.project, "kind": "memory"}
        ids = iter(sorted(told | {row.item for row in self.store.entries(model.SharedItem, asked)}))
        while page := list(islice(ids, wire.MOST_LINES)):
            yield from (
                one for one in self.store.get(page) if one.id in told or model.team_user(one.source)
            )

    def _forget_marked(self, marks: Mapping[str, Marks]) -> None:
        """Each mark counts for what is its user's alone, and only for what has come from there: a
        server must not be able to take out what was written here."""
        if not marks:
            return
        user, hit = self.share.user, list[model.Item]()
        for item in self._from_team():
            owner = model.team_user(wire.to_team(item.source, user))
            known = marks.get(owner)
            if known and known.digest(wire.team_key(item.identity, owner)) in known.times:
                hit.append(item)
        self._note_forgotten(marks.get(user), {one.id for one in hit})
        if hit:
            made = {ref_key(one): max(self._now, one.epoch, one.updated) for one in hit}
            Tombstones(self._home).add(made)
            self.report.forgotten += len(hit)
            self.store = self.side.forget_marked()

    def _note_forgotten(self, own: Marks | None, gone: Collection[int]) -> None:
        """Of what was written here nobody else can say that it is to be forgotten here."""
        for digest in own.times if own else ():
            asked = {"project": self.share.project, "digest": digest.hex(), "forgotten": 0}
            for row in self.store.entries(model.SharedItem, asked):
                if row.item not in gone and self.store.get([row.item]):
                    self._refuse(row.item, _STILL_HERE)

    def _take_back(self, user: str, number: int) -> None:
        """Somebody shares no more of this project, and nothing is left of what is theirs."""
        share = self.share
        if user == share.user:
            if 0 <= share.since < number:
                raise _Ended("withdrawn from another of your machines")
            return
        found = [
            one
            for one in self._from_team()
            if one.project == share.project and model.team_user(one.source) == user
        ]
        roots = {wire.root_of(one.source, one.ref) for one in found if one.kind == "memory"}
        if found:
            with self.store.transaction("memories"):
                take_out(self.store, share.project, [one.id for one in found], roots)
                self.store.retract(
                    model.SharedItem, {"project": share.project, "item": [one.id for one in found]}
                )
            add_counts(self.report.withdrawn, {user: len(found)})

    # --- telling ----------------------------------------------------------------------------------

    def _tell_rest(self) -> None:
        unshared = Unshared(self.side, self.share)
        waiting, sent = unshared.count(), 0
        batch: list[Telling] = []
        size = 0
        for one in unshared.tellings():
            if one.line is None:
                self._record([one], [""])
                continue
            length = len(msgspec.json.encode(one.form))
            if length > _LARGEST:
                self._record([one], [f"refused: {_TOO_LARGE}"])
                continue
            if batch and (len(batch) >= wire.MOST_LINES or size + length > _MOST_BYTES):
                self._send_batch(batch)
                sent += len(batch)
                self.side.progress("lines sent", sent, max(waiting, sent))
                batch, size = [], 0
            batch.append(one)
            size += length
        if batch:
            self._send_batch(batch)

    def _send_batch(self, batch: Sequence[Telling]) -> None:
        if self._is_private(self.share.project):
            self.share.ending = _PRIVATE
            raise _NowPrivate(_PRIVATE)
        pushed = self._push([one.form for one in batch])
        self._record(batch, pushed.results, pushed.cursor)

    def _push(self, forms: Sequence[dict[str, object]]) -> Pushed:
        share, cursor = self.share, self._load_cursor()
        for _ in range(_ATTEMPTS):
            share.batch += 1
            pushed = self._server.push(share.project, share.origin, share.batch, forms, cursor)
            if pushed.withdrawn:
                raise _Ended("withdrawn before, from a copy of this home")
            if not pushed.behind:
                if len(pushed.results) != len(forms):
                    raise SourceError(f"{share.to} has not answered each line; is it a yester?")
                return pushed
            share.batch = pushed.last
        raise SourceError("another copy of this home shares the same project at the same time")

    def _record(self, batch: Sequence[Telling], results: Sequence[str], cursor: str = "") -> None:
        """What became of each, and how far that is read. Whoever is killed before reads it as
        another's; so it is with what was taken out here meanwhile."""
        store, told, refused = self.store, Counter[str](), Counter[str]()
        with store.transaction("ledger"):
            noted = [(one, one.row) for one in batch if one.row is not None]
            here = {one.id for one in store.get([row.item for _, row in noted])}
            for one, result in zip(batch, results, strict=True):
                told[wire.kind_of_line(one.line)] += result == "stored"
                if one.row is None:
                    continue
                item = one.row.item
                if one.ends:
                    if one.row.forgotten:
                        store.append([model.replace(one.row, mark=one.mark)])
                    else:
                        store.retract(model.SharedItem, {"project": one.row.project, "item": item})
                    self._refuse(item, "")
                elif item in here:
                    store.append([model.replace(one.row, mark=one.mark)])
                    why = result.partition("refused: ")[2] if one.row.digest else ""
                    refused[why] += bool(why)
                    self._refuse(item, why)
            if cursor and here.issuperset(row.item for one, row in noted if not one.ends):
                self._note_cursor(cursor)
        add_counts(self.report.told, told)
        add_counts(self.report.refused, refused)

    def _refuse(self, item: int, why: str) -> None:
        """ "" where it is not refused, or no more."""
        known = self.share.refused
        for reason in [one for one, items in known.items() if item in items]:
            known[reason] = [one for one in known[reason] if one != item]
            if not known[reason]:
                del known[reason]
        if why:
            known.setdefault(why, []).append(item)

    # --- the end ----------------------------------------------------------------------------------

    def _withdraw(self) -> None:
        """From the server and, with that, from every member's store; then from here what is the
        others', since nobody can take it back from here any more."""
        share, why = self.share, self.share.ending
        self.meet()
        lines = 0
        if not share.reads:
            lines = self._server.withdraw(share.project, share.origin)
        self._leave(f"{why}; lines withdrawn there: {lines:,}")

    def _leave(self, ended: str) -> None:
        """Nothing of the others is left here, and nothing that says what they have."""
        self.take_others_out()
        with self.store.transaction("ledger"):
            self.store.retract(model.SharedItem, {"project": self.share.project})
            self.store.retract(model.ShareCursor, {"project": self.share.project})
        self.share.ending, self.share.ended = "", ended
        self.share.refused = {}
        self.report.ended = ended

    def give_up(self) -> ShareReport:
        """The server cannot be asked to withdraw."""
        self._leave(f"ended here; what was sent of it remains on {self.share.to}")
        return self.report

    def take_others_out(self) -> None:
        users = {model.team_user(one.source) for one in self._from_team()} - {"", self.share.user}
        for user in sorted(users):
            self._take_back(user, 0)


def _check_name(name: str) -> None:
    if not model.team_user(name):
        raise SourceError("it does not say whose it is")
