"""Items as rows of an answer, in the index form of about 75 tokens and in the full form; items by
their ids, and by what they are; what agents were shown, and what came of it.

Everything is redacted once more on its way out: it may be older than the newest rule. Texts are
otherwise as they were recorded, whatever they hold: whoever shows them must treat them as data.
Times are milliseconds since 1970 unless their name says otherwise. What is UNSET is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from yester import model
from yester.cards.tools import call_title, shell_command, split_call
from yester.clock import format_day, format_iso
from yester.context.lines import ESTIMATE_NOTE, item_icon
from yester.errors import StoreError
from yester.ingest.prepare import SHELLS
from yester.memories.chains import list_chain
from yester.memory import Memory, missing_items
from yester.model import Feedback, Filters, Hit, Injection, Paging, UseCounts
from yester.operations import fields
from yester.operations import request as requests
from yester.recall.feedback import GIVEN_BY_HAND, WORTH, usefulness
from yester.recall.rank import TOLD
from yester.redact import redact, redact_again, redact_value
from yester.store.contract import Store
from yester.store.figures import name_origins
from yester.text.document import item_text, reading_cost
from yester.text.edits import find_edits
from yester.text.sentences import find_snippet, shorten_text

_TITLE, _SUBTITLE, _NAME = 100, 80, 40  # characters of an index row
_ROOM, _SNIPPET = 180, 40  # characters of all its texts; fewer are not worth a snippet
_CONCEPTS = 3
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_MOST = 200  # items something was made of
_PATIENCE = 0.2  # seconds for another writer


class Summary(Struct, kw_only=True):
    """What a session's summary says; `completion` and `learnings` are `completed` and `learned`
    under the names other tools know."""

    id: int
    request: str
    investigated: str
    learned: str
    completed: str
    next_steps: str
    notes: str
    completion: str
    learnings: str
    files_read: list[str]
    files_edited: list[str]
    discovery_tokens: int
    created_at_epoch: int
    text: str


class ChangedPlace(Struct):
    """A place of a file that a tool has changed."""

    file: str
    before: str
    after: str
    known: bool


class Call(Struct, kw_only=True):
    """What a tool was told: a shell its command, an editor its changes."""

    command: str = ""
    status: int | None = None
    changes: list[ChangedPlace] = []
    cut: bool = False


class Row(Struct, kw_only=True):
    """An item, a session (kind session) or the place of an anchor (type anchor). What stands behind
    `anchor` is there in the full form alone."""

    id: int
    kind: str
    type: str
    icon: str
    title: str
    subtitle: str
    date: str
    created_at_epoch: int
    project: str
    tokens: int
    score: float | UnsetType = UNSET
    snippet: str | UnsetType = UNSET
    concepts: list[str] | UnsetType = UNSET
    stale: str | UnsetType = UNSET
    duplicates: int | UnsetType = UNSET
    parts: list[int] | UnsetType = UNSET
    factors: dict[str, float] | UnsetType = UNSET  # what each added to the score
    signs: dict[str, float] | UnsetType = UNSET  # what else is known of how well it fits
    arms: list[str] | UnsetType = UNSET
    session: str | UnsetType = UNSET
    session_db_id: int | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    prompts: int | UnsetType = UNSET
    timestamp: int | UnsetType = UNSET
    anchor: bool | UnsetType = UNSET
    narrative: str | UnsetType = UNSET
    input: str | UnsetType = UNSET
    output: str | UnsetType = UNSET
    call: Call | UnsetType = UNSET
    facts: list[str] | UnsetType = UNSET
    files: list[str] | UnsetType = UNSET
    files_read: list[str] | UnsetType = UNSET
    files_modified: list[str] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    sections: dict[str, str] | UnsetType = UNSET
    created_at_iso: str | UnsetType = UNSET
    updated_at_epoch: int | UnsetType = UNSET
    prompt_number: int | UnsetType = UNSET
    role: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    actor: str | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    status: str | UnsetType = UNSET
    supersedes: int | UnsetType = UNSET
    discovery_tokens: int | UnsetType = UNSET
    read_tokens: int | UnsetType = UNSET
    ref: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    summary: Summary | UnsetType | None = UNSET
    request: str | UnsetType = UNSET
    investigated: str | UnsetType = UNSET
    learned: str | UnsetType = UNSET
    completed: str | UnsetType = UNSET
    next_steps: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    completion: str | UnsetType = UNSET
    learnings: str | UnsetType = UNSET
    files_edited: list[str] | UnsetType = UNSET
    sources: list[int] | UnsetType = UNSET
    machine: str | UnsetType = UNSET
    shared_by: str | UnsetType = UNSET


# What the full form has of an item as it is there, and what of that must stay as it is.
_SAME = [
    one.name
    for one in structs.fields(Row)
    if not one.required and one.name != "call" and hasattr(model.Item, one.name)
]
_IDENTITY = ("session", "ref", "source")


class Session(Struct, kw_only=True):
    db_id: int
    session: str
    agent: str
    project: str
    title: str
    created_at: str
    started: int
    ended: int
    cwd: str
    branch: str
    transcript: str
    prompts: int
    items: int


class Rows:
    """Rows of one answer: names and sessions are looked up once."""

    def __init__(self, store: Store, asked: Collection[str] = (), full: bool = False) -> None:
        self._store = store
        self._names = {project.key: redact(project.name) for project in store.projects()}
        self._asked = asked
        self._full = full
        self._sessions: dict[tuple[str, str], model.Session] = {}
        self._machines: dict[int, str] = {}

    def _look_up(self, found: Sequence[model.Item], sessions: bool, prompts: bool = False) -> None:
        """What of these stands elsewhere, asked for all of them at once: the store may be far."""
        if not found:
            return
        self._machines |= name_origins(self._store, [item.id for item in found])
        if sessions:
            wanted = {(item.session, item.agent) for item in found if item.session}
            self._sessions |= self._store.find_sessions(wanted - self._sessions.keys(), prompts)

    def item_rows(self, items: Iterable[model.Item]) -> list[Row]:
        found = list(items)
        self._look_up(found, self._full)
        return [self._item_row(item) for item in found]

    def hit_rows(
        self, hits: Sequence[Hit], explain: bool = False, speakers: bool = False
    ) -> list[Row]:
        """With `speakers`, who speaks in each, which tool, and in which agent; `sessions_of` then
        tells of their sessions."""
        items = {item.id: item for item in self._store.get([hit.id for hit in hits])}
        self._look_up(list(items.values()), sessions=True, prompts=speakers)
        found = [self._hit_row(hit, items[hit.id], explain) for hit in hits if hit.id in items]
        for row in found if speakers else ():
            item = items[row.id]
            row.role, row.tool = redact(item.role) or UNSET, redact(item.tool) or UNSET
            row.actor, row.agent = redact(item.actor) or UNSET, item.agent or UNSET
        return found

    def sessions_of(self, hits: Sequence[Hit]) -> list[Session]:
        """The sessions that hits belong to which have rows here, each once."""
        found = [self._sessions.get((hit.session, hit.agent)) for hit in hits]
        known = {session.id: session for session in found if session is not None}
        return [self.describe_session(session) for session in known.values()]

    def _hit_row(self, hit: Hit, item: model.Item, explain: bool) -> Row:
        row = self._item_row(item, hit.text, hit.title)
        row.score = round(hit.score, 4) or UNSET
        row.duplicates, row.stale = hit.duplicates or UNSET, hit.stale or UNSET
        row.parts = list(hit.parts) or UNSET
        if session := self._sessions.get((hit.session, hit.agent)):
            row.session_db_id = session.id
        if explain:
            known = {name: round(value, 4) for name, value in hit.factors.items()}
            row.factors = {name: value for name, value in known.items() if name not in TOLD}
            row.signs = {name: value for name, value in known.items() if name in TOLD}
            row.arms = list(hit.arms)
        return row

    def _item_row(self, item: model.Item, text: str | None = None, title: str | None = None) -> Row:
        """`text` and `title` are its own where those are redacted already."""
        text = redact_again(item_text(item)) if text is None else text
        title = (redact_again(item.title) if title is None else title) or redact(call_title(item))
        title = shorten_text(title, _TITLE)
        row = Row(
            id=item.id, kind=item.kind, type=redact(item.type),
            icon=item_icon(item.kind, item.type),
            title=title or shorten_text(find_snippet(text, self._asked, _TITLE), _TITLE),
            subtitle=shorten_text(redact(item.subtitle), _SUBTITLE),
            date=format_day(item.epoch), created_at_epoch=item.epoch,
            project=shorten_text(self._project_name(item.project), _NAME),
            tokens=reading_cost(item),
        )  # fmt: skip
        row.machine = redact(self._machines.get(item.id, "")) or UNSET
        row.shared_by = redact(model.sharer_of(item)) or UNSET
        if item.concepts:
            row.concepts = [redact(one) for one in item.concepts[:_CONCEPTS]]
        if self._full:
            self._add_everything(row, item, text)
        elif title and not item.subtitle and not _repeats_title(title, text):
            room = _ROOM - len(title) - sum(len(one) + 3 for one in item.concepts[:_CONCEPTS])
            if room >= _SNIPPET:
                row.snippet = shorten_text(find_snippet(text, self._asked, room - 8), room)
        return row

    def _add_everything(self, row: Row, item: model.Item, text: str) -> None:
        for name in _SAME:
            value = getattr(item, name)
            setattr(row, name, value if name in _IDENTITY else redact_value(value))
        row.title, row.subtitle = redact(item.title) or row.title, redact(item.subtitle)
        row.project = self._project_name(item.project)
        row.narrative = text
        if item.role == "tool":
            given, output = split_call(item)
            row.input = redact(given)
            row.output = UNSET if output is None else redact(output)
            row.call = describe_call(item)
        row.created_at_iso, row.updated_at_epoch = format_iso(item.epoch), item.updated
        session = self._sessions.get((item.session, item.agent))
        row.session_db_id, row.read_tokens = session.id if session else 0, row.tokens
        if item.kind == "summary":
            _add_summary(row, make_summary(item))

    def _project_name(self, project: str) -> str:
        """The name of a project, without secrets; what is no key is one already."""
        return self._names.get(project) or redact(project)

    # --- sessions -------------------------------------------------------------------------------

    def describe_session(self, session: model.Session) -> Session:
        return requests.make_answer(
            Session, session, db_id=session.id, session=session.key, agent=session.agent,
            project=self._project_name(session.project), created_at=format_iso(session.started),
        )  # fmt: skip

    def session_row(self, session: model.Session, best: Hit | None) -> Row:
        """`id` is an item of it that can be read: its summary, else the `best` of what was said in
        it, else the first."""
        told = find_summary(self._store, session)
        text = redact(told.body) if told else best.text if best else ""
        title = redact(session.title or (told.title if told else ""))
        row = Row(
            id=told.id if told else best.id if best else self._first_item(session),
            kind="session", type="", icon=item_icon("summary"),
            title=shorten_text(title, _TITLE) or "(untitled)",
            subtitle=shorten_text(find_snippet(text, self._asked, _SUBTITLE), _SUBTITLE + 8),
            date=format_day(session.started), created_at_epoch=session.started,
            project=shorten_text(self._project_name(session.project), _NAME),
            tokens=reading_cost(told) if told else 0,
            session=session.key, session_db_id=session.id, prompts=session.prompts,
        )  # fmt: skip
        if best is not None and best.score:
            row.score = round(best.score, 4)
        if self._full:
            row.agent, row.created_at_iso = session.agent, format_iso(session.started)
            row.title = title or row.title
            row.narrative, row.summary = text, None
            if told:
                row.summary = make_summary(told)
                _add_summary(row, row.summary)
        return row

    def _first_item(self, session: model.Session) -> int:
        found = self._store.select(session_filters(session), Paging(1, oldest_first=True))
        return found[0].id if found else 0


def describe_call(item: model.Item) -> Call | UnsetType:
    if item.call is None:
        return UNSET
    command = shell_command(item) if item.tool.lower() in SHELLS else ""
    cut, edits = item.call.cut, find_edits(item) if item.files_modified and not command else ()
    changes = [
        ChangedPlace(redact(one.file), redact(one.before), redact(one.after), one.blind == 0 or cut)
        for one in edits
    ]
    return Call(command=redact(command), status=item.call.status, changes=changes, cut=cut)


def _add_summary(row: Row, summary: Summary) -> None:
    for name in (*_SECTIONS, "completion", "learnings", "files_edited"):
        setattr(row, name, getattr(summary, name))


def session_filters(session: model.Session, kinds: Sequence[str] = ()) -> Filters:
    """What was recorded of a session."""
    return Filters((session.project,), tuple(kinds), session=session.key, agent=session.agent)


def find_summary(store: Store, session: model.Session) -> model.Item | None:
    """The newest summary of a session; one with sections before one without."""
    found = store.select(session_filters(session, ("summary",)), Paging(5))
    return next((one for one in found if one.sections), found[0] if found else None)


def make_summary(item: model.Item) -> Summary:
    parts = {name: redact(item.sections.get(name, "")) for name in _SECTIONS}
    return Summary(
        id=item.id, **parts, completion=parts["completed"], learnings=parts["learned"],
        files_read=redact_value(item.files_read), files_edited=redact_value(item.files_modified),
        discovery_tokens=item.discovery_tokens, created_at_epoch=item.epoch,
        text=redact(item.body),
    )  # fmt: skip


def anchor_row(epoch: int) -> Row:
    """The place in a timeline at which the anchor stands."""
    return Row(
        id=0, kind="", type="anchor", icon="▶", title="", subtitle="", date=format_day(epoch),
        created_at_epoch=epoch, project="", tokens=0, timestamp=epoch,
    )  # fmt: skip


def _repeats_title(title: str, text: str) -> bool:
    return " ".join(text[: 4 * _TITLE].split()).lstrip("# ").startswith(title.rstrip("…"))


# --- by id, and by what they are -----------------------------------------------------------------


class ItemsRequest(requests.FormattedRequest, kw_only=True):
    limit: fields.Count = 20
    offset: fields.Offset = 0
    kinds: fields.Kinds = field(default_factory=list)
    types: fields.Names = field(default=[], name="type")
    order: Literal["date_desc", "date_asc"] = field(default="date_desc", name="orderBy")


class BatchRequest(requests.Request, kw_only=True):
    ids: Annotated[
        list[fields.Id | Annotated[str, Meta(pattern="^#?[0-9]{1,15}$", examples=["#12"])]],
        Meta(min_length=1, max_length=fields.MOST_IDS),
    ]
    format: fields.Shape = "full"
    order: Literal["given", "date_desc", "date_asc"] = field(default="given", name="orderBy")


class Item(Struct, kw_only=True):
    item: Row
    use: Use
    sources: list[Row]
    made: list[Row]
    chain: list[Row]


class Items(requests.Page, kw_only=True):
    format: fields.Form
    results: list[Row]
    missing: list[int] | UnsetType = UNSET


def list_items(memory: Memory, request: ItemsRequest) -> Items:
    """Items by what they are, the newest first."""
    filters = requests.make_filters(memory, request, echoes=True)
    page = Paging(request.limit + 1, request.offset, oldest_first=request.order == "date_asc")
    found = memory.reading.select(filters, page)
    if not found:
        memory.check_names(filters)
    rows = Rows(memory.reading, full=request.format == "full")
    results = rows.item_rows(found[: request.limit])
    more = len(found) > request.limit
    return Items(count=len(results), format=request.format, results=results, more=more)


def show_item(memory: Memory, request: requests.ItemRequest) -> Item:
    """One item whole, and what is known of its use."""
    store, id_ = memory.reading, request.id
    for item in store.get([id_]):
        others = Rows(store)
        sources = distinct_items(store.evidence([id_])).get(id_, ())
        made = distinct_items(store.evidence([id_], into=True)).get(id_, ())
        chain = list_chain(store, item)
        return Item(
            item=Rows(store, full=True).item_rows([item])[0],
            use=describe_use(store, [id_])[0],
            sources=others.item_rows(store.get(sources[:_MOST])),
            made=others.item_rows(store.get(made[:_MOST])),
            chain=others.item_rows(chain) if len(chain) > 1 else [],
        )
    raise missing_items([id_], "id")


def distinct_items(
    evidence: Mapping[int, Sequence[tuple[int, int]]],
) -> dict[int, tuple[int, ...]]:
    """Each item on the other side of evidence once, in its order."""
    return {id_: tuple(dict.fromkeys(one for _, one in pairs)) for id_, pairs in evidence.items()}


def show_items(memory: Memory, request: BatchRequest) -> Items:
    """Whole items by their ids."""
    ids = list(dict.fromkeys(int(str(one).removeprefix("#")) for one in request.ids))
    found = memory.reading.get(ids)
    if not found:
        raise missing_items(ids)
    if request.order != "given":
        found.sort(key=lambda item: (item.epoch, item.id), reverse=request.order == "date_desc")
    if request.format == "full":
        record_fetched(memory.reading, [item.id for item in found], memory.now)
    results = Rows(memory.reading, full=request.format == "full").item_rows(found)
    known = {item.id for item in found}
    return Items(
        count=len(results), format=request.format, results=results, more=False,
        missing=[one for one in ids if one not in known],
    )  # fmt: skip


def record_fetched(store: Store, ids: Sequence[int], now: int, session: int = 0) -> None:
    """Of what an agent was shown, somebody wanted the whole: it was of use. Not worth waiting for,
    and no reason to fail where nothing can be written."""
    shown = [id_ for id_, used in store.texts(ids).used.items() if used.shown or used.listed]
    if shown:
        with suppress(StoreError, OSError), store.transaction("ledger", patience=_PATIENCE):
            store.append([Feedback(id_, "fetched", now, session) for id_ in shown])


# --- what agents were shown, and what came of it --------------------------------------------------

Came = Literal["", "fetched", "opened", "acted-on", "useful", "useless"]
_NOTHING = UseCounts(0, 0, {})
_GONE = model.Item("", "", title="(gone)")
_BEGINNING = 200  # characters of a prompt
# What may have come of something, the strongest sign first, and its name here.
_USES: Sequence[tuple[str, Came]] = (
    ("useless", "useless"), ("useful", "useful"), ("acted", "acted-on"), ("opened", "opened"),
    ("fetched", "fetched"),
)  # fmt: skip


class FeedbackRequest(requests.Request, kw_only=True):
    before: fields.Number = 0
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    item: fields.Number = 0


class LedgerRequest(FeedbackRequest, kw_only=True):
    session: fields.Name = ""


class GiveFeedback(requests.Request, kw_only=True):
    ids: Annotated[list[fields.Id], Meta(min_length=1, max_length=fields.MOST_IDS)]
    what: Literal["useful", "useless", "opened", "undo"]


class LedgerLine(Struct, kw_only=True):
    """A line of the ledger: an item that an agent was shown."""

    id: int
    epoch: int
    event: str
    item: int
    kind: str
    type: str
    title: str
    project: str
    session: str
    session_db_id: int
    prompt_number: int
    score: float
    tokens: int
    discovery_tokens: int
    reason: str
    used: Came
    prompt: str


class Ledger(Struct, kw_only=True):
    count: int
    injections: list[LedgerLine]
    next_before: int
    note: str


class FeedbackLine(Struct, kw_only=True):
    id: int
    item: int
    what: str
    epoch: int
    session_db_id: int


class FeedbackLines(Struct, kw_only=True):
    count: int
    feedback: list[FeedbackLine]
    next_before: int


class Use(Struct, kw_only=True):
    """What is known of an item's use: from -1 (in the way) over 0 (nothing) to 1."""

    id: int
    use: float
    shown: int
    used_in: int
    feedback: dict[str, int]
    listed: int


class Uses(Struct, kw_only=True):
    items: list[Use]


def list_injections(memory: Memory, request: LedgerRequest) -> Ledger:
    """What agents were shown, the newest first."""
    session = memory.find_session(request.session).id if request.session else 0
    where = {name: id_ for name, id_ in (("session", session), ("item", request.item)) if id_}
    lines = memory.reading.entries(Injection, where, _make_page(request))
    shown = describe_injections(memory.reading, lines)
    return Ledger(
        count=len(lines), injections=shown, next_before=_next_page(request, lines),
        note=ESTIMATE_NOTE,
    )  # fmt: skip


def _make_page(request: FeedbackRequest) -> Paging:
    return Paging(request.limit, behind=(request.before,) if request.before else ())


def _next_page(request: FeedbackRequest, lines: Sequence[Injection | Feedback]) -> int:
    return lines[-1].id if len(lines) == request.limit else 0


def describe_injections(store: Store, lines: Sequence[Injection]) -> list[LedgerLine]:
    items = {item.id: item for item in store.get(sorted({line.item for line in lines}))}
    names = {project.key: project.name for project in store.projects()}
    feedback: defaultdict[int, list[Feedback]] = defaultdict(list)
    for one in store.entries(Feedback, {"item": list(items)}):
        feedback[one.item].append(one)
    sessions = {
        number: next(iter(store.sessions(Filters(session_id=number))), None)
        for number in {line.session for line in lines}
    }
    prompts = {
        (number, prompt): _prompt_beginning(store, sessions[number], prompt)
        for number, prompt in {(line.session, line.prompt_number) for line in lines}
    }
    return [
        requests.make_answer(
            LedgerLine, line, kind=item.kind, type=redact(item.type),
            title=shorten_text(redact(item.title or item.body), _TITLE),
            project=redact(names.get(item.project, item.project)),
            session=session.key if session else "", session_db_id=line.session,
            score=round(line.score, 4), discovery_tokens=item.discovery_tokens,
            used=_strongest_use(line, feedback[line.item]),
            prompt=prompts[line.session, line.prompt_number],
        )
        for line in lines
        for item, session in [(items.get(line.item, _GONE), sessions[line.session])]
    ]  # fmt: skip


def _strongest_use(line: Injection, feedback: Sequence[Feedback]) -> Came:
    """What came of it where it was shown; the user's word (of no session) counts everywhere."""
    known = {one.what for one in feedback if one.session in (0, line.session)}
    return next((name for what, name in _USES if what in known), "")


def _prompt_beginning(store: Store, session: model.Session | None, number: int) -> str:
    """The beginning of the prompt of this number in a session."""
    if session is None or not number:
        return ""
    prompts = Filters((session.project,), ("prompt",), session=session.key, agent=session.agent)
    found = store.select(prompts, Paging(1, number - 1, oldest_first=True))
    return redact(found[0].body)[:_BEGINNING] if found else ""


def list_feedback(memory: Memory, request: FeedbackRequest) -> FeedbackLines:
    """What came of it, the newest first."""
    where = {"item": request.item} if request.item else {}
    lines = memory.reading.entries(Feedback, where, _make_page(request))
    told = [requests.make_answer(FeedbackLine, one, session_db_id=one.session) for one in lines]
    return FeedbackLines(count=len(lines), feedback=told, next_before=_next_page(request, lines))


def give_feedback(memory: Memory, request: GiveFeedback) -> Uses:
    """Say whether items were of use.

    The last word of the user counts; having looked at something adds to what is known.
    """
    ids = list(dict.fromkeys(request.ids))
    record_feedback(memory, ids, request.what)
    return Uses(items=describe_use(memory.store, ids))


def record_feedback(memory: Memory, ids: Sequence[int], what: str) -> None:
    """What the user says of items, or takes back: by `undo` his own word, by `reset` all that came
    of them. With what="" it only makes sure that they are there."""
    known = {item.id for item in memory.reading.get(ids)}
    if missing := [id_ for id_ in ids if id_ not in known]:
        raise missing_items(missing)
    if not what:
        return
    with memory.store.transaction("ledger"):
        if what != "opened":
            taken_back = tuple(WORTH) if what == "reset" else GIVEN_BY_HAND
            for id_ in ids:
                memory.store.retract(Feedback, {"item": id_, "what": taken_back})
        if what not in ("undo", "reset"):
            memory.store.append([Feedback(id_, what, memory.now) for id_ in ids])


def describe_use(store: Store, ids: Sequence[int]) -> list[Use]:
    known = store.texts(ids).used
    return [
        requests.make_answer(Use, one, id=id_, use=round(usefulness(one), 4))
        for id_ in ids
        for one in [known.get(id_, _NOTHING)]
    ]
