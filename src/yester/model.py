"""The words yester is written in: what is remembered, where it came from, what is found.

Frozen, without I/O and without opinions. Times are integer milliseconds since 1970 (UTC) inside;
only the Python interface speaks seconds. The records are Structs, since every command defines them
before it does anything: as many dataclasses take ten times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct, field, structs

if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: TID251 -- mypy checks the fields by it
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """The same record, a Struct or a dataclass, with other values in these fields."""
        if isinstance(record, Struct):
            return structs.replace(record, **changes)
        import dataclasses

        return dataclasses.replace(record, **changes)  # noqa: TID251


KINDS = ("message", "prompt", "observation", "summary", "memory", "note")
STATUSES = ("active", "proposed", "retired", "archived", "superseded")
ECHO = "echo"  # the status of what an agent only said again: kept and shown, never ranked
COMMENTARY = "commentary"  # the type of a message that its client says is not the agent's last
DISTILLED = "yester"  # the source of what was distilled from other items
# How the source of what a member of a team has shared begins, and the key of its session; the user
# and the name it has there follow.
TEAM = "team:"
SCOPES = ("global", "project", "path")
CURATED = ("memory-md", "claude-md")  # sources that are files an agent loads by itself


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """What a tool was given and what came of it, as places in its item's body: nothing is stored
    twice, and what is redacted or cut there is so here."""

    fields: tuple[tuple[str, int, int], ...] = ()  # input, as the client names it: name, from, to
    result: tuple[int, int] | None = None  # None: not known; an empty one said nothing
    options: Mapping[str, str] = field(default_factory=dict)  # input that the body does not have
    status: int | None = None  # exit status, where the client told it
    cut: bool = False  # something was left out

    @property
    def spans(self) -> list[tuple[int, int]]:
        """All its places, to be moved along with the body; `move_to` takes them back."""
        return [(start, end) for _, start, end in self.fields] + [self.result or (0, 0)]

    def move_to(self, spans: Sequence[tuple[int, int]]) -> ToolCall:
        names = [name for name, _, _ in self.fields]
        return replace(
            self,
            fields=tuple((name, *span) for name, span in zip(names, spans[:-1], strict=True)),
            result=self.result and spans[-1],
        )


Identity = tuple[str, str, str]  # source, kind, ref


class Item(Struct, frozen=True):
    """One recallable thing. All but its identity may be replaced."""

    ref: str
    kind: str
    project: str = ""  # Project.key
    session: str = ""  # the client's own session id
    source: str = ""  # who delivered it: "claude-code", "" for the Python interface …
    agent: str = ""  # the client it happened in
    actor: str = ""  # the sub-agent that did it; "" is the main agent
    role: str = ""  # user, assistant, thinking, tool, task
    prompt_number: int = 0
    epoch: int = 0
    updated: int = 0
    type: str = ""
    title: str = ""
    subtitle: str = ""
    body: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    tool: str = ""
    call: ToolCall | None = None  # of a tool's use; None where it was stored without
    origin: str = "agent"  # user, agent, tool, file, import
    trust: float = 0.5
    confidence: float = 1.0
    status: str = "active"
    supersedes: int = 0
    discovery_tokens: int = 0
    alias: str = ""  # the ref a hook gave the same thing; not kept
    id: int = 0  # given by the store
    # (before, after) of the places that an edit has changed, in whole lines, where the client tells
    # that besides; not kept
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> Identity:
        return self.source, self.kind, self.ref

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.files_modified + self.files_read))

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything it says or names, text by text."""
        options = self.call.options if self.call else {}
        return (
            self.title, self.subtitle, self.body, *self.facts, *self.sections.values(), *self.tags,
            *self.concepts, *self.files, self.tool, self.type, self.actor,
            *(f"{name}: {value}" for name, value in options.items()),
        )  # fmt: skip

    def call_field(self, *names: str) -> str | None:
        """What a tool was given under the first of these names that it was given."""
        if self.call is None:
            return None
        places = {name: (start, end) for name, start, end in self.call.fields}
        for name in names:
            if name in places:
                return self.body[slice(*places[name])]
            if name in self.call.options:
                return self.call.options[name]
        return None

    @property
    def call_result(self) -> str | None:
        """What came of a tool's use; None where that is not known."""
        return self.body[slice(*self.call.result)] if self.call and self.call.result else None


def team_name(user: str, name: str) -> str:
    """What is called so by a user of a server, as it is called in the team."""
    escaped = user.replace("%", "%25").replace(":", "%3A")
    return f"{TEAM}{escaped}:{name}"


def team_user(name: str) -> str:
    """Whose something is that is called so; "" where it is no name of a team's."""
    if not name.startswith(TEAM):
        return ""
    return name.removeprefix(TEAM).partition(":")[0].replace("%3A", ":").replace("%25", "%")


def sharer_of(item: Item) -> str:
    """The user who has shared an item with this store, or has last written this memory; "" where it
    is this store's own."""
    if item.origin != "import":
        return ""
    return team_user(item.actor) or team_user(item.source)


class Memo(Struct, frozen=True):
    """A structured memory: an item of kind memory, and what an item has no place for."""

    item: Item
    slug: str = ""  # a readable id, unique in its project
    scope: str = "project"
    path: str = ""  # the glob of scope "path"
    content: Mapping[str, Any] = field(default_factory=dict)  # by the fields of its category
    version: int = 0  # how often it has been written; 0: it came as a plain item
    since: int = 0  # when it got its status
    reason: str = ""  # why it has it


class Change(Struct, frozen=True):
    """A line of a memory's history. `before` and `after` hold what became different; `before` is
    None where there was nothing. What was done together has one `act`."""

    item: int
    epoch: int
    who: str
    what: str  # create, update, retire, archive, restore, supersede, undo
    why: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] = field(default_factory=dict)
    act: int = 0  # the id of the first change of it; given by the store
    id: int = 0


class Project(Struct, frozen=True):
    """`key` is the identity, `name` what people read; a submodule names its parent's key."""

    key: str
    name: str
    root: str = ""
    parent: str = ""


class Join(Struct, frozen=True):
    """A project that yester has joined with another one by itself, as it was before."""

    key: str
    name: str
    root: str
    into: str  # key of the other one
    items: int
    sessions: int
    epoch: int
    undone: int = 0  # ms; 0: it is joined
    id: int = 0


class Session(Struct, frozen=True):
    key: str
    agent: str
    project: str = ""
    started: int = 0
    ended: int = 0
    cwd: str = ""
    branch: str = ""
    title: str = ""
    transcript: str = ""
    prompts: int = 0
    items: int = 0
    id: int = 0

    def widen_to(self, epoch: int) -> Session:
        """With something of this time in it; 0 is not known."""
        started = min(self.started or epoch, epoch or self.started)
        return replace(self, started=started, ended=max(self.ended, epoch))


class Turn(Struct, frozen=True):
    """A prompt, what was done about it, and how it ended: the unit that is distilled."""

    key: str  # the client's id of the turn, or the id of its first event
    session: int = 0
    prompt: int = 0  # items
    closing: int = 0
    started: int = 0
    ended: int = 0
    state: str = "open"  # open, done, interrupted, failed
    transcript: str = ""
    id: int = 0


class Event(Struct, frozen=True):
    """What a hook told, as it is kept; `skipped` says why no observation is made of it."""

    id: str  # the spool's
    name: str
    epoch: int
    session: int = 0
    turn: int = 0
    actor: str = ""
    tool: str = ""
    failed: bool = False
    item: int = 0
    skipped: str = ""
    window: int = 0  # ms within which the same tool again is the same piece of work
    lag: int = 0  # ms from the hook to the store


# The event of lines that the agent itself has asked for, through MCP. They were not pushed at it:
# they spend no budget of ours, and that nothing came of them says nothing against them.
ON_REQUEST = "mcp"
WHOLE = "whole"  # the reason of such a line where the item was asked for by its id


class Injection(Struct, frozen=True):
    """An item that was shown to an agent; `session` is 0 where it is not known."""

    session: int
    event: str
    item: int
    score: float
    tokens: int
    epoch: int
    reason: str = ""
    prompt_number: int = 0
    id: int = 0  # given by the store


# Sources of a SessionStart after which the agent has the words of the session so far.
TAKEN_UP = ("resume", "fork")


class OwedStart(Struct, frozen=True):
    """A SessionStart whose block is not known to have reached the agent."""

    event: str  # the spool's id
    source: str  # startup, resume, clear, compact, fork
    epoch: int
    session: int = 0

    def followed_by(self, later: OwedStart) -> OwedStart:
        """Taken up again, the session still lacks what it should have got before."""
        return replace(later, source=self.source) if later.source in TAKEN_UP else later


class Feedback(Struct, frozen=True):
    """Something came of an item; `session` is the agent's, 0 where it was not an agent."""

    item: int
    what: str  # fetched, opened, acted, useful, useless
    epoch: int
    session: int = 0
    id: int = 0  # given by the store


class Failure(Struct, frozen=True):
    """A run that showed an error, and what came of that: what is behind its ids tells the rest."""

    item: int  # the run
    mark: str  # what the error has in common with its like, as a digest
    text: str  # the error's own line
    command: str  # a digest of what was run
    epoch: int
    # fixed: a run of the same passed after changes; instead: another way of running it worked;
    # itself: it passed again without a change; meant: a test written to fail; left: nothing ended
    # it; printed: by a run that passed
    came: str
    ended: int = 0  # when a run showed it no more
    run: int = 0  # that run
    changes: tuple[int, ...] = ()  # after which it was gone
    tried: tuple[int, ...] = ()  # changes after which it was still there


class Spend(Struct, frozen=True):
    """A call of a language model: the most it can cost, and once it has an outcome, what it did."""

    epoch: int
    model: str
    purpose: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0  # dollars
    until: int = 0  # it has ended by then, whatever happened
    outcome: str = ""  # "": under way
    id: int = 0  # given by the store; with it, what the call has cost in the end


class Answered(Struct, frozen=True):
    """How long hooks waited for answers: on a day (UTC, counted from 1970), and how many did."""

    day: int
    ms: int
    answers: int = 1


class Muted(Struct, frozen=True):
    """The user has switched yester off for this session of a client."""

    session: str
    epoch: int


class Skipped(Struct, frozen=True):
    """So many records of an agent were left out for a reason."""

    agent: str
    reason: str
    records: int


class Refinement(Struct, frozen=True):
    """That a language model was asked about a turn which had come so far; `reason` says why what
    was found without it stays, "" where its notes took the place of that."""

    session: int
    turn: str
    shape: str
    epoch: int
    model: str
    reason: str = ""


class Archived(Struct, frozen=True):
    """What happened in a session until then stands in its archive."""

    session: int
    ended: int
    epoch: int


class Source(Struct, frozen=True):
    """How far a transcript has been read. `state` is the reader's own small memory between runs."""

    path: str
    agent: str
    size: int
    mtime_ns: int
    offset: int
    line: int
    head: str  # fingerprint of the first bytes: a rewritten file starts again
    state: Mapping[str, object] = field(default_factory=dict)


class Machine(Struct, frozen=True):
    """One of the owner's machines that write the log. `own`: it is this one, or was, before a
    backup was restored."""

    key: str  # random; what follows the first - is newer where it sorts later
    name: str
    seen: int = 0  # when it last wrote, by its own clock
    own: bool = False


class LogSegment(Struct, frozen=True):
    """A segment of the log that has been read, or written."""

    machine: str
    number: int
    mark: str  # a digest of its bytes


class LogItem(Struct, frozen=True):
    """An item as the log has it."""

    item: int
    origin: str  # the machine that it is from
    place: int  # the number of that machine's segment
    sent: bool  # does the present log have it?
    hash: str
    kind: str
    ref: str = ""  # of what may be taken out again, or be called otherwise
    root: str = ""  # of a structured memory: a digest of what it is called
    version: int = 0  # of that memory, here
    head: str = ""  # the version in the log that it is


class LogVersion(Struct, frozen=True):
    """A version of a structured memory, and those that it was made of."""

    root: str
    mark: str
    parents: tuple[str, ...] = ()


class SharedItem(Struct, frozen=True):
    """An item as the team of its project has it. The row outlives its item: that it is gone is told
    then."""

    project: str  # key
    item: int
    digest: str  # of what it is called, under the key of its user
    mark: str  # the hash of its content; of a memory its version
    kind: str
    ref: str = ""  # of what may be taken out again, without words
    root: str = ""  # of a structured memory
    forgotten: bool = False


class ShareCursor(Struct, frozen=True):
    """How far this store has read what the team of a project shares."""

    project: str
    place: str  # the server's cursor


class TeamLine(Struct, frozen=True):
    """What a member of a team has told the others, on their server. `id` says when: 0 where it is
    new."""

    owner: str  # whose it is
    who: str  # who has told it
    digest: str
    kind: str
    mark: str
    line: bytes
    anchor: str  # of the batch
    project: int
    id: int = 0


# In place of a session: the one that goes on in the project it is asked in; an agent may follow.
RUNNING = "?"


class Filters(Struct, frozen=True):
    """What may be found at all. Empty means everything; applied before ranking, never after."""

    projects: tuple[str, ...] = ()  # names or keys
    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    session: str = ""
    agent: str = ""
    tool: str = ""
    since: int | None = None
    until: int | None = None
    echoes: bool = False  # what an agent only said again as well: where what happened is shown
    session_id: int = 0  # a session by its number in the store
    source: str = ""  # who delivered it
    supersedes: int = 0  # what takes the place of this item
    without_session: str = ""  # all but this session, the one that asks, or that is RUNNING
    without_projects: tuple[str, ...] = ()  # keys: private ones of which nothing is shown here


ANYTHING = Filters()


class Paging(Struct, frozen=True):
    """Which of the rows that fit, and in which order: by time, then id."""

    limit: int | None = None  # None: all
    offset: int = 0
    oldest_first: bool = False
    # Only what comes behind this place in that order: (time, id) of an item, (id,) of a row.
    behind: tuple[int, ...] = ()
    statuses: tuple[str, ...] = ("active",)  # of items; (): any


EVERYTHING = Paging()


class Hit(Struct, frozen=True):
    """One answer. `factors` says where its score came from, `arms` which searches found it (both
    only where it was asked to explain itself), `duplicates` how many are alike."""

    id: int
    ref: str
    kind: str
    type: str
    project: str
    session: str
    title: str
    text: str
    epoch: float  # seconds
    score: float
    factors: Mapping[str, float] = field(default_factory=dict)
    duplicates: int = 0
    role: str = ""
    tool: str = ""
    agent: str = ""
    files: tuple[str, ...] = ()
    prompt_number: int = 0
    rung: str = ""  # stem, prefix or recent: how far the search had to go
    arms: tuple[str, ...] = ()
    stale: str = ""  # what has happened to its files since, where that was looked up
    # Where a turn is the answer: what was found of it besides, the best first; and where its card
    # is shown, the text that was found, and who had said it.
    parts: tuple[int, ...] = ()
    excerpt: str = ""
    speaker: str = ""
    sharer: str = ""  # the user of a team who has shared it


# --- what a store is given and gives back ---------------------------------------------------------


class Document(Struct, frozen=True):
    terms: Sequence[str]  # the distinct terms of all fields
    vector: bytes
    lengths: tuple[tuple[int, int], ...]  # (field number, number of terms)


class EditedLines(Struct, frozen=True):
    """The lines of one place that an edit has changed, as they are compared (`text/edits.py`)."""

    path: str
    lines: tuple[str, ...]  # in the order in which they stand there now
    added: bytes = b""  # for each of them 1, where the edit has put it there; empty: all
    removed: tuple[str, ...] = ()
    blind: int = 0  # 1: what was there before is not known; 2: and this is all of the file now


class Entry(Struct, frozen=True):
    """An item ready to be stored: hash and terms are worked out outside the lock."""

    item: Item
    hash: bytes
    document: Document
    # What a distilled item was made of: (number of the fact, item it was taken from), -1 for what
    # is no fact. None: what is known of it stays.
    evidence: tuple[tuple[int, int], ...] | None = None
    edits: tuple[EditedLines, ...] = ()


class Forgotten(Struct, frozen=True):
    """What was taken out, or would be."""

    items: tuple[int, ...] = ()  # all of them
    derived: tuple[int, ...] = ()  # those that nobody named: what came of the others
    marked: tuple[
        int, ...
    ] = ()  # memories that stay, with words of the others cut from their history
    sessions: tuple[Session, ...] = ()  # something of each was taken out
    emptied: tuple[str, ...] = ()  # keys: of these nothing is left
    freed: tuple[int, ...] = ()  # what one of the items stood in the place of; it is still put away


class PutCounts(Struct, frozen=True):
    added: int = 0
    changed: int = 0
    unchanged: int = 0

    @property
    def total_written(self) -> int:
        return self.added + self.changed

    def __add__(self, other: PutCounts) -> PutCounts:
        return PutCounts(
            self.added + other.added,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
        )


TurnKey = tuple[int, int]  # (session, prompt number), as an engine numbers sessions


class Candidate(NamedTuple):
    """What the ranker needs to know of an item; hundreds are made per question."""

    id: int
    kind: str
    role: str
    type: str
    project: int
    session: int
    epoch: int  # of a memory: when it was last written
    hash: bytes
    vector: bytes
    prompt_number: int = 0

    @property
    def turn(self) -> TurnKey | None:
        """None for what stands for itself: a memory, the summary of a whole session, and what was
        said in no numbered turn."""
        if not (self.session and self.prompt_number) or self.kind == "memory":
            return None
        return None if self.type == "session" else (self.session, self.prompt_number)


class LineEdit(NamedTuple):
    """A place that an edit has changed. A line is a number, the same for the same words within one
    store and in no other."""

    item: int
    turn: TurnKey
    epoch: int
    path: str
    lines: Sequence[int]
    added: bytes
    removed: Sequence[int]
    blind: int


class Word(Struct, frozen=True):
    """Must hold every one of these terms."""

    terms: tuple[str, ...]


class Phrase(Struct, frozen=True):
    """Must hold the terms side by side, in this order; `distance` 0, or within so many words."""

    terms: tuple[str, ...]
    distance: int = 0


class Prefix(Struct, frozen=True):
    """Must hold a term that begins so."""

    text: str


class Every(Struct, frozen=True):
    parts: tuple[Expression, ...]


class Some(Struct, frozen=True):
    parts: tuple[Expression, ...]


class Without(Struct, frozen=True):
    part: Expression


Expression = Word | Phrase | Prefix | Every | Some | Without


class Nearness(NamedTuple):
    """How near an item is to a vector: by its nearest part, and of how many."""

    cosine: float
    parts: int


class Statistics(Struct, frozen=True):
    """What scoring needs to know of the collection (or of the projects filtered for)."""

    items: int
    frequencies: Mapping[str, int]  # term → items that hold it
    lengths: Mapping[tuple[str, int], float]  # (kind, field number) → mean number of terms


class Queue(Struct, frozen=True):
    """Which sessions are asked for.

    distil    those that wait, newest first: none whose turn is still going on (it has not ended,
              and something has happened since `quiet_since`); `hooked`: only those hooks told of
    refine    those hooks told of in which something has happened since then, oldest first
    archive   those hooks told of that are over since then and distilled, and of which the archive
              does not have the end: their end was told before `ended_before`, or they have been
              quiet since `quiet_since`. `Waiting.since` is up to when the archive has them
    any       those with this id, else those whose id begins with it, waiting or not
    """

    stage: Literal["distil", "refine", "archive", "any"]
    hooked: bool = False
    since: int = 0
    ended_before: int = 0
    quiet_since: int = 0
    key: str = ""
    limit: int | None = None


class Probe(Struct, frozen=True):
    """All of a question that is known before anything is scored."""

    filters: Filters = ANYTHING
    terms: Mapping[str, float] = field(default_factory=dict)  # → the most it can count for
    # Terms that may stand for those that begin alike, and what these count for: where nobody has
    # the term, or (1.0) in any case.
    begin: Mapping[str, float] = field(default_factory=dict)
    rarest: int = 0  # so many of the rarest terms alone choose candidates; 0: all
    words: int = 0  # candidates by words
    must: Expression | None = None  # holds for all; of a phrase only that its terms are there
    # Asked for when the words have been looked up: making a vector takes as long. None: there is
    # none after all.
    vector: Callable[[], Any] | None = None
    model: str = ""
    nearest: int = 0  # candidates by meaning
    files: Sequence[str] = ()  # touched now; the end of a path will do
    paths: Sequence[str] = ()  # named in the question
    most_files: int = 0  # candidates by files
    names: Sequence[str] = ()  # what could be concepts
    project: str = ""  # where it is asked, by name or key
    own: bool = False  # what that project has is found besides what all have: none pushes it out
    worked: Sequence[str] = ()  # files of the session so far: which turns have edited them?
    written: Sequence[str] = ()  # paths from the project's root: which lines were put into them?
    lines: Sequence[str] = ()  # as they are compared: which numbers do they have?


class ProbeResult(Struct, frozen=True):
    """The answer to a Probe."""

    statistics: Statistics
    alike: Mapping[str, Sequence[str]]  # known terms that begin with one, then those it begins with
    candidates: list[Candidate]  # of every arm, each once; with `must`, by words alone
    words: frozenset[int]  # those found by words
    near: Mapping[int, Nearness]
    touching: Mapping[int, int]  # item → how many of the files it is about
    named: Mapping[int, int]  # item → how many of the paths
    concepts: int  # how many of the names are concepts
    having: Mapping[int, int]  # candidate → how many of these it has
    project: int  # what `Candidate.project` is where it is asked; 0: unknown
    projects: Mapping[str, str]  # key → readable name, where there are candidates by words
    # turn → how many of the files of the session so far it has edited, those twice in which it had
    # written lines that the session changed, and the last item of it that did, a candidate
    edited: Mapping[TurnKey, tuple[int, int]]
    written: Sequence[LineEdit] = ()  # edits of the files asked for, the oldest first
    lines: Sequence[int] = ()


class Neighbours(Struct, frozen=True):
    """What stands beside the likeliest, and how near all are."""

    pairs: Mapping[int, tuple[int, int]]  # id → the one before and the one behind it; 0: none
    candidates: Sequence[Candidate]  # those that were not known
    passing: frozenset[int]  # of these, those that pass the filters
    near: Mapping[int, Nearness]
    having: Mapping[int, int]
    # Of the turns asked for: the stored terms of what was said in them, and the items that are
    # their cards.
    said: Mapping[TurnKey, Sequence[bytes]]
    cards: Mapping[TurnKey, int]


class Texts(Struct, frozen=True):
    items: list[Item]
    used: Mapping[int, UseCounts]  # of which it is known whether they were of use


class Waiting(NamedTuple):
    """A session that is to be distilled, how often it had changed when that was asked, and when the
    earliest of what is new happened."""

    session: Session
    changes: int
    since: int


class UseCounts(NamedTuple):
    """In how many sessions an item was shown unasked, in how many of these something came of it,
    what came of it at all (kind of feedback → number), and how often an agent that had asked got it
    as a line of an answer."""

    shown: int
    used_in: int
    feedback: Mapping[str, int]
    listed: int = 0


class MemoFile(NamedTuple):
    """The file a memory was read from: its bytes without secrets, the hash of its values as they
    stood there, and the version of the memory it became."""

    raw: bytes
    hash: str
    version: int


class MemoryChange(NamedTuple):
    """That a memory was written, and what it is by now."""

    id: int  # of the line in the history
    item: int
    status: str
    version: int


class FeedLine(NamedTuple):
    """Something that was stored: an item, a line that an agent was shown, a change of a memory."""

    cursor: str  # behind it
    row: Item | Injection | MemoryChange
