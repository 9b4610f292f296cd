"""What was remembered for its own sake: listed, shown, changed, put away and brought back.

All of it goes through `yester.memories`, as the commands do: every change has a line in the history
that says who and why, and what a program must not do it cannot do here either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import UnsetType

from yester.capture.rules import rules
from yester.errors import ConfigError, NotYours, UsageError
from yester.faces.http import shapes
from yester.faces.http.filters import span
from yester.faces.http.ledger import use
from yester.faces.http.memory_rows import MemoryRows, actions, fields, line
from yester.faces.http.memory_shapes import Candidate, Deserving, Memories, MemoryShown, Review
from yester.faces.http.parameters import (
    EditMemory,
    ItemAt,
    MemoriesOf,
    MemoryStep,
    RetireMemory,
    ReviewOf,
    Save,
    SupersedeMemory,
    WouldBe,
)
from yester.faces.http.problem import Refusal
from yester.memories import lifecycle
from yester.memories.categories import LONGEST_TITLE, get_category
from yester.memories.content import clean_text
from yester.memories.memory import GLOBAL
from yester.memories.remember import Draft, find_candidate, remember, remember_instead
from yester.memories.review import review_memories as reviewed
from yester.memories.tags import normalise_tags
from yester.memory import Memory, unknown_name
from yester.model import STATUSES, Filters, Memo, Paging, Project
from yester.project import Projects, named
from yester.recall.recall import Asked
from yester.redact import redact
from yester.text.sentences import shorten_text
from yester.text.terms import query_terms, text_terms

_HISTORY = 200  # changes that are shown
_DONE: Mapping[str, Any] = {"created": "CREATE", "updated": "UPDATE"}
_T = TypeVar("_T")


# --- reading --------------------------------------------------------------------------------------


def listed(memory: Memory, given: MemoriesOf) -> Memories:
    since, until = span(given, memory.now)
    projects = (memory.find_project(given.project).key,) if given.project else ()
    filters = Filters(projects, ("memory",), tuple(given.types), since=since, until=until)
    statuses = STATUSES if given.status == "all" else (given.status,)
    most = given.limit + 1
    if given.query.strip():
        found = _fitting(memory, given.query, filters, statuses, given.offset + most)
        found = found[given.offset :]
    else:
        found = memory.store.memos(filters, Paging(most, offset=given.offset, statuses=statuses))
    if not found:
        memory.check_names(filters)
    rows = MemoryRows(memory.store, full=given.format == "full").of(found[: given.limit])
    return Memories(
        count=len(rows), more=len(found) > given.limit, format=given.format, results=rows
    )


def _fitting(
    memory: Memory, query: str, filters: Filters, statuses: Sequence[str], most: int
) -> list[Memo]:
    """The search finds what is active, the best first; of the rest, whatever has all the words."""
    found: list[Memo] = []
    if "active" in statuses:
        hits = memory.answer(Asked(query, filters, most, now=memory.now)).hits
        found = memory.store.memos(ids=[hit.id for hit in hits])
    put_away = tuple(status for status in statuses if status != "active")
    if put_away and len(found) < most:
        asked = set(query_terms(query))
        for memo in memory.store.memos(filters, Paging(statuses=put_away)):
            item = memo.item
            if asked <= set(text_terms(f"{item.title} {item.body} {' '.join(item.tags)}")):
                found.append(memo)
    return found[:most]


def one(memory: Memory, given: ItemAt) -> MemoryShown:
    return _shown(memory, _found(memory, given.id))


def _found(memory: Memory, id_: int) -> Memo:
    for memo in memory.store.memos(ids=[id_]):
        return memo
    for item in memory.store.get([id_]):
        raise Refusal(
            404, f"item #{id_} is no memory but a {item.kind}", parameter="id", value=str(id_),
            fix=f"GET /api/items/{id_} shows it",
        )  # fmt: skip
    raise Refusal(
        404, f"no memory #{id_}", parameter="id", value=str(id_),
        fix="GET /api/memories?status=all lists them",
    )  # fmt: skip


def _shown(memory: Memory, memo: Memo) -> MemoryShown:
    store, rows = memory.store, MemoryRows(memory.store)
    older = lifecycle.list_predecessors(store, memo)[::-1]
    return MemoryShown(
        memory=rows.row(memo),
        chain=rows.of([*older, memo, *lifecycle.list_successors(store, memo)]),
        history=[line(change) for change in store.changes(memo.item.id, limit=_HISTORY)],
        use=use(store, [memo.item.id])[0],
        actions=actions(store, memo, memory.origin),
        fields=fields(memo),
    )


def would_be(memory: Memory, given: WouldBe) -> Candidate:
    """What saving a text would meet; nothing is written. A title is looked at where the text alone
    is like nothing."""
    kind, text, tags = get_category(given.type), clean_text(given.text), normalise_tags(given.tags)
    where = memory.find_project(given.project).key if given.project else ""
    choice = find_candidate(memory.store, kind, text, where, tags)
    if choice.best is None and given.title:
        choice = find_candidate(
            memory.store, kind, f"{clean_text(given.title)} {text}", where, tags
        )
    rows, best = MemoryRows(memory.store, full=False), choice.best
    action: Any = choice.action
    return Candidate(
        action=action, match=rows.row(best.memo) if best else None,
        score=best.points if best else 0,
        reasons=[redact(reason) for reason in best.reasons] if best else [],
        others=[rows.row(other.memo) for other in choice.others], compared=choice.compared,
    )  # fmt: skip


def review(memory: Memory, given: ReviewOf) -> Review:
    filters = Filters((memory.find_project(given.project).key,)) if given.project else Filters()
    rows = MemoryRows(memory.store, full=False)
    found = [
        Deserving(memory=rows.row(f.memo), check=f.check, text=redact(f.text), fix=redact(f.fix))
        for f in reviewed(memory.store, filters, memory.now)
    ]
    return Review(count=len(found), findings=found)


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def _fitting_it() -> Iterator[None]:
    """What cannot be done to a memory as it is now is at odds with it, whatever was sent."""
    try:
        yield
    except (NotYours, ConfigError):
        raise
    except UsageError as error:
        raise Refusal(409, redact(str(error)), fix="read it again; `actions` and `fields` say what "
                      "can be done") from None  # fmt: skip


def edit(memory: Memory, given: EditMemory) -> MemoryShown:
    """What others have changed since the version that was read is kept, where both agree."""
    store, memo = memory.store, _found(memory, given.id)
    with _fitting_it():
        edit = lifecycle.Edit(
            title=_unless_unset(given.title), text=_unless_unset(given.text),
            content=_unless_unset(given.content) or {}, tags=_unless_unset(given.tags),
            files=_unless_unset(given.files), confidence=_unless_unset(given.confidence),
        )  # fmt: skip
        base = lifecycle.form_at_version(store, memo, given.version)
        by = memory.by(given.why)
        new = lifecycle.edit_memory(store, memo.item.id, edit.apply_to, by, base=base)
    return _shown(memory, new)


def _unless_unset(value: _T | UnsetType) -> _T | None:
    return None if isinstance(value, UnsetType) else value


def retire(memory: Memory, given: RetireMemory) -> MemoryShown:
    id_ = _found(memory, given.id).item.id
    with _fitting_it():
        by = memory.by(given.why)
        memo = lifecycle.change_status(memory.store, id_, "retire", by, force=given.force)
    return _shown(memory, memo)


def archive(memory: Memory, given: MemoryStep) -> MemoryShown:
    id_ = _found(memory, given.id).item.id
    with _fitting_it():
        memo = lifecycle.change_status(memory.store, id_, "archive", memory.by(given.why))
    return _shown(memory, memo)


def restore(memory: Memory, given: MemoryStep) -> MemoryShown:
    id_ = _found(memory, given.id).item.id
    with _fitting_it():
        memo = lifecycle.change_status(memory.store, id_, "restore", memory.by(given.why))
    return _shown(memory, memo)


def undo(memory: Memory, given: MemoryStep) -> MemoryShown:
    """Whatever was done together with its last change is taken back as well."""
    memo = _found(memory, given.id)
    if not memory.store.changes(memo.item.id, limit=1):
        raise Refusal(409, f"nothing has been done to memory #{memo.item.id} yet")
    with _fitting_it():
        lifecycle.undo_change(memory.store, memory.by(given.why), memo.item.id)
    return _shown(memory, _found(memory, given.id))


def supersede(memory: Memory, given: SupersedeMemory) -> MemoryShown:
    memo = _found(memory, given.id)
    with _fitting_it():
        kept = remember_instead(
            memory.store, memo, given.text, memory.by(given.why), _title(given.title)
        )
    return _shown(memory, kept.memo)


def save(memory: Memory, given: Save) -> shapes.Saved:
    """Keep something, unless it is known; what is like it is named, and stays as it is."""
    project, there = _place(memory, given.project.strip())
    allowed = rules(memory.config)
    if allowed.excludes(project.root, project) or allowed.off(project.root, "", memory.now):
        raise Refusal(
            403, f"nothing is kept of {project.name}: the user has said so (`exclude`, or "
            "`yester off`)", parameter="project", value=project.name, fix="name another project",
        )  # fmt: skip
    if not (there or given.create):
        known = memory.project_names().values()
        refused = unknown_name("project", given.project, known, "project")
        refused.fix += "; create: true makes a new one"
        raise refused
    draft = Draft(
        given.text, given.type, _title(given.title), tags=given.tags, files=given.files,
        scope="global" if project == GLOBAL else "",
    )  # fmt: skip
    kept = remember(memory.store, draft, project, memory.by())
    id_, new = kept.memo.item.id, kept.done == "created"
    said = {"created": "Saved as", "updated": "Added to"}.get(kept.done, "Known already:")
    hidden = " Secrets in it were left out." if redact(given.text) != given.text else ""
    names: Mapping[str, str] = memory.project_names()
    alike = [
        other.memo.item.id
        for other in (kept.choice.best, *kept.choice.others)
        if other is not None and other.memo.item.id != id_
    ]
    where = " It holds everywhere: no project was named." if project == GLOBAL else ""
    like = ", ".join(f"#{one}" for one in alike)
    stay = f" Like it: {like}; nothing of that was changed." if alike and new else ""
    return shapes.Saved(
        success=True, id=id_, title=redact(kept.memo.item.title), type=kept.memo.item.type,
        project=redact(names.get(kept.memo.item.project, project.name)), new=new,
        message=f"{said} #{id_}.{where}{stay}{hidden}", action=_DONE.get(kept.done, "NOOP"),
        alike=alike,
    )  # fmt: skip


def _title(text: str) -> str:
    """As long as a title may be, also where something in it has been blackened."""
    return shorten_text(clean_text(text), LONGEST_TITLE)


def _place(memory: Memory, name: str) -> tuple[Project, bool]:
    """The project of this name, and whether it is known; without a name it is true everywhere."""
    if not name:
        return GLOBAL, True
    known = memory.store.projects()
    for project in known:
        if name in (project.name, project.key):
            return project, True
    meant = Projects(memory.config.projects).renamed(named(name))
    return meant, any(project.key == meant.key for project in known)
