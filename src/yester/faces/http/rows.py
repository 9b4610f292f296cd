"""Items and sessions as rows: the index form of about 75 tokens, and the full form.

Everything is redacted once more on its way out: it may be older than the newest rule. Texts are
otherwise as they were recorded, whatever they hold: whoever shows them must treat them as data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import UNSET

from yester.clock import format_day, format_iso
from yester.deliver.lines import item_icon
from yester.deliver.tool_call import split_call
from yester.faces.http import shapes
from yester.faces.http.shapes import Row
from yester.ingest.prepare import redact_value
from yester.model import Filters, Hit, Item, Paging, Session
from yester.recall.rank import TOLD
from yester.recall.recall import Answer
from yester.redact import redact
from yester.store.contract import Store
from yester.text.document import item_text, reading_cost
from yester.text.sentences import glimpse_finder, shorten_text

_TITLE, _SUBTITLE, _NAME = 100, 80, 40  # characters of an index row
_ROOM, _SNIPPET = 180, 40  # characters of all its texts; fewer are not worth a snippet
_CONCEPTS = 3
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


class Rows:
    """Rows of one answer: names and sessions are looked up once."""

    def __init__(self, store: Store, asked: Collection[str] = (), full: bool = False) -> None:
        self._store = store
        self._names = {project.key: redact(project.name) for project in store.projects()}
        self._glimpse = glimpse_finder(asked)
        self._full = full
        self._sessions: dict[tuple[str, str], int] = {}

    def of(self, items: Iterable[Item]) -> list[Row]:
        return [self.row(item) for item in items]

    def found(self, answer: Answer, explain: bool = False) -> list[Row]:
        """The hits of an answer, in their order."""
        items = {item.id: item for item in self._store.get([hit.id for hit in answer.hits])}
        rows = []
        for hit in answer.hits:
            if item := items.get(hit.id):
                rows.append(self._scored(self.row(item, hit.text, hit.title), hit, explain))
        return rows

    @staticmethod
    def _scored(row: Row, hit: Hit, explain: bool) -> Row:
        if hit.score:
            row.score = round(hit.score, 4)
        if hit.duplicates:
            row.duplicates = hit.duplicates
        if hit.stale:
            row.stale = hit.stale
        if explain:
            known = {name: round(value, 4) for name, value in hit.factors.items()}
            row.factors = {name: value for name, value in known.items() if name not in TOLD}
            row.signs = {name: value for name, value in known.items() if name in TOLD}
            row.arms = list(hit.arms)
        return row

    def row(self, item: Item, text: str | None = None, title: str | None = None) -> Row:
        """`text` and `title` are its own where those are redacted already."""
        text = redact(item_text(item)) if text is None else text
        title = shorten_text(redact(item.title) if title is None else title, _TITLE)
        spoken = title or shorten_text(self._glimpse(text, _TITLE), _TITLE)
        row = Row(
            id=item.id, kind=item.kind, type=redact(item.type),
            icon=item_icon(item.kind, item.type),
            title=spoken, subtitle=shorten_text(redact(item.subtitle), _SUBTITLE),
            date=format_day(item.epoch), created_at_epoch=item.epoch,
            project=shorten_text(self._called(item.project), _NAME), tokens=reading_cost(item),
        )  # fmt: skip
        if item.concepts:
            row.concepts = [redact(one) for one in item.concepts[:_CONCEPTS]]
        if self._full:
            self._whole(row, item, text)
        elif title and not item.subtitle and not _repeats(title, text):
            room = _ROOM - len(title) - sum(len(one) + 3 for one in item.concepts[:_CONCEPTS])
            if room >= _SNIPPET:
                row.snippet = shorten_text(self._glimpse(text, room - 8), room)
        return row

    def _whole(self, row: Row, item: Item, text: str) -> None:
        row.title, row.subtitle = redact(item.title) or row.title, redact(item.subtitle)
        row.project = self._called(item.project)
        row.narrative = text
        if item.role == "tool":
            row.input, output = split_call(item.tool, text)
            row.output = UNSET if output is None else output
        row.facts, row.concepts = _clean(item.facts), _clean(item.concepts)
        row.files, row.tags = _clean(item.files), _clean(item.tags)
        row.files_read, row.files_modified = _clean(item.files_read), _clean(item.files_modified)
        row.sections = {redact(name): redact(part) for name, part in item.sections.items()}
        row.created_at_iso, row.updated_at_epoch = format_iso(item.epoch), item.updated
        row.session, row.session_db_id = item.session, self._number(item)
        row.agent, row.actor, row.role = item.agent, redact(item.actor), item.role
        row.prompt_number, row.tool = item.prompt_number, redact(item.tool)
        row.origin, row.confidence = item.origin, item.confidence
        row.status, row.supersedes = item.status, item.supersedes
        row.discovery_tokens, row.read_tokens = item.discovery_tokens, row.tokens
        row.ref, row.source = item.ref, item.source
        if item.kind == "summary":
            told = summary(item)
            row.request, row.investigated = told.request, told.investigated
            row.learned, row.completed = told.learned, told.completed
            row.next_steps, row.notes = told.next_steps, told.notes
            row.completion, row.learnings = told.completion, told.learnings
            row.files_edited = told.files_edited

    def _called(self, project: str) -> str:
        """The name of a project, without secrets; what is no key is one already."""
        return self._names.get(project) or redact(project)

    def _number(self, item: Item) -> int:
        if not item.session:
            return 0
        key = (item.session, item.agent)
        if key not in self._sessions:
            found = self._store.session(*key)
            self._sessions[key] = found.id if found else 0
        return self._sessions[key]

    # --- sessions -------------------------------------------------------------------------------

    def session(self, session: Session) -> shapes.Session:
        return shapes.Session(
            db_id=session.id, session=session.key, agent=session.agent,
            project=self._called(session.project),
            title=redact(session.title), created_at=format_iso(session.started),
            started=session.started, ended=session.ended, cwd=session.cwd, branch=session.branch,
            transcript=session.transcript, prompts=session.prompts, items=session.items,
        )  # fmt: skip

    def session_row(self, session: Session, best: Hit | None, told: Item | None) -> Row:
        """A session as a row: `id` is an item of it that can be read, its summary before others."""
        text = redact(told.body) if told else best.text if best else ""
        title = redact(session.title or (told.title if told else ""))
        row = Row(
            id=told.id if told else best.id if best else 0,
            kind="session", type="", icon=item_icon("summary"),
            title=shorten_text(title, _TITLE) or "(untitled)",
            subtitle=shorten_text(self._glimpse(text, _SUBTITLE), _SUBTITLE + 8),
            date=format_day(session.started), created_at_epoch=session.started,
            project=shorten_text(self._called(session.project), _NAME),
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
                parts = row.summary = summary(told)
                row.request, row.next_steps = parts.request, parts.next_steps
                row.completed, row.completion = parts.completed, parts.completion
                row.learned, row.learnings = parts.learned, parts.learnings
        return row


def summary_of(store: Store, session: Session) -> Item | None:
    """The newest summary of a session; one with sections before one without."""
    here = Filters(
        projects=(session.project,), session=session.key, agent=session.agent, kinds=("summary",)
    )
    found = store.select(here, Paging(5))
    return next((one for one in found if one.sections), found[0] if found else None)


def summary(item: Item) -> shapes.Summary:
    parts = {name: redact(item.sections.get(name, "")) for name in _SECTIONS}
    return shapes.Summary(
        id=item.id, **parts, completion=parts["completed"], learnings=parts["learned"],
        files_read=_clean(item.files_read), files_edited=_clean(item.files_modified),
        discovery_tokens=item.discovery_tokens, created_at_epoch=item.epoch,
        text=redact(item.body),
    )  # fmt: skip


def anchor_row(epoch: int) -> Row:
    """The place in a timeline at which the anchor stands."""
    return Row(
        id=0, kind="", type="anchor", icon="▶", title="", subtitle="", date=format_day(epoch),
        created_at_epoch=epoch, project="", tokens=0, timestamp=epoch,
    )  # fmt: skip


def explained(answer: Answer) -> shapes.Explained:
    return shapes.Explained(
        arms=dict(answer.arms),
        weights={name: round(value, 4) for name, value in answer.weights.items()},
        cut=[
            shapes.LeftOut(id=one.item, score=round(one.score, 4), why=one.why)
            for one in answer.cut
        ],
        more=answer.more,
    )


def _repeats(title: str, text: str) -> bool:
    return " ".join(text[: 4 * _TITLE].split()).lstrip("# ").startswith(title.rstrip("…"))


def _clean(values: Sequence[str]) -> list[str]:
    return list(redact_value(tuple(values)) or values)
