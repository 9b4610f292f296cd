"""What was remembered for its own sake: listed, shown, changed, put away and brought back.

All of it goes through `yester.memories`: every change has a line in the history that says who and
why, and what a program must not do it cannot do here either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType, field

from yester.capture.rules import load_rules
from yester.errors import NotFound, NotYours, UsageError
from yester.memories import lifecycle, remember, review
from yester.memories.categories import CATEGORIES, LONGEST_TITLE, clean_text, get_category
from yester.memories.chains import list_memory_chain
from yester.memories.memory import GLOBAL, normalise_tags, read_history
from yester.memories.remember import Draft
from yester.memory import Memory, unknown_name
from yester.model import STATUSES, Filters, Memo, Paging, Project, replace
from yester.operations import fields, memory_rows
from yester.operations.answer import make_answer
from yester.operations.fields import about
from yester.operations.ledger import Use, describe_use
from yester.operations.memory_rows import (
    Action,
    Changed,
    Field,
    describe_memory,
    list_actions,
    list_fields,
)
from yester.operations.request import DatedRequest, ItemRequest, Request, make_filters
from yester.project import Projects, named_project
from yester.recall.recall import Asked
from yester.redact import redact
from yester.text.sentences import shorten_text
from yester.text.terms import query_terms, text_terms

LONGEST_TEXT = 20_000  # characters of a memory
_HISTORY = 200  # changes that are shown
Act = Literal["CREATE", "UPDATE", "NOOP"]
_ACTS: dict[str, Act] = {"created": "CREATE", "updated": "UPDATE"}
_EDITED = ("title", "text", "content", "tags", "files", "confidence")

# --- requests -------------------------------------------------------------------------------------

Category = Literal[
    "decision", "constraint", "preference", "runbook", "tech_debt", "session_summary", "rule",
    "note",
]  # fmt: skip
assert set(Category.__args__) == set(CATEGORIES)  # type: ignore[attr-defined]
Kept = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT, pattern=r"\w")]
Title = Annotated[str, about("A heading.", max_length=400)]
Why = Annotated[str, about("The reason, for the history.", max_length=400)]
FewNames = Annotated[list[fields.Name], Meta(max_length=fields.MOST_IDS)]


class MemoriesRequest(DatedRequest, kw_only=True):
    status: Annotated[
        Literal["active", "proposed", "archived", "retired", "superseded", "all"],
        about("Only those with this status."),
    ] = "active"
    query: Annotated[fields.Text, about("Words to look for; without, the last written.")] = ""
    limit: fields.Count = 20
    offset: fields.Offset = 0
    format: fields.Shape = "index"
    project: fields.ProjectName = ""
    types: Annotated[fields.Names, about("Only these types: decision, rule …")] = field(
        default=[], name="type"
    )


class ReviewRequest(Request, kw_only=True):
    project: fields.ProjectName = ""


class CandidateRequest(Request, kw_only=True):
    type: Annotated[Category, about("The category it would have.")]
    text: Annotated[fields.Text, about("What would be kept.", min_length=1)]
    title: Annotated[fields.Name, about("Its heading.")] = ""
    tags: Annotated[fields.Names, about("Its tags.")] = field(default_factory=list)
    project: Annotated[
        fields.Name,
        about(
            "Where it would belong: it is compared with what is there and with what "
            "holds everywhere; without, with what there is of every project."
        ),
    ] = ""


class EditRequest(ItemRequest, kw_only=True):
    version: Annotated[
        int, about("The version that was read; others may write too.", ge=0, le=fields.LARGEST)
    ]
    title: Annotated[str, about("Another title.", max_length=400)] | UnsetType = UNSET
    text: (
        Annotated[str, about("The field of the content that is the text.", max_length=LONGEST_TEXT)]
        | UnsetType
    ) = UNSET
    content: (
        Annotated[
            dict[str, Any], about("Fields of the content that are different; null takes one away.")
        ]
        | UnsetType
    ) = UNSET
    tags: Annotated[FewNames, about("All its tags.")] | UnsetType = UNSET
    files: Annotated[FewNames, about("All its files.")] | UnsetType = UNSET
    confidence: Annotated[float, about("How sure.", ge=0, le=1)] | UnsetType = UNSET
    why: Why = ""


class StepRequest(ItemRequest, kw_only=True):
    why: Why = ""
    force: Annotated[bool, about("Changes nothing here; retiring knows it.")] = False


class RetireRequest(ItemRequest, kw_only=True):
    why: Why = ""
    force: Annotated[bool, about("Retire what is otherwise kept for good; the user's alone.")] = (
        False
    )


class SupersedeRequest(ItemRequest, kw_only=True):
    text: Annotated[Kept, about("What stands in its place.")]
    title: Title = ""
    why: Why = ""


class SaveRequest(Request, kw_only=True):
    text: Annotated[Kept, about("What to keep.")]
    type: Annotated[
        Literal[""] | Category, about("Its category; without, what it obviously is.")
    ] = ""
    tags: Annotated[FewNames, about("Its tags.")] = field(default_factory=list)
    files: Annotated[FewNames, about("Files it is about.")] = field(default_factory=list)
    title: Title = ""
    project: Annotated[
        fields.Name,
        about("Where it belongs, by its name or key; without, it is global: it holds everywhere."),
    ] = ""
    create: Annotated[bool, about("Make the project where there is none so called.")] = False


# --- answers --------------------------------------------------------------------------------------


class Memories(Struct, kw_only=True):
    count: int
    more: bool
    format: fields.Form
    results: list[memory_rows.Memory]


class MemoryShown(Struct, kw_only=True):
    memory: memory_rows.Memory
    chain: Annotated[
        list[memory_rows.Memory],
        about("What it replaces and is replaced by, in order, itself included; the oldest first."),
    ]
    history: Annotated[list[Changed], about("The newest first.")]
    use: Use
    actions: Annotated[list[Action], about("What you can do with it now.")]
    fields: list[Field]


class Candidate(Struct, kw_only=True):
    """What would become of a text. CREATE: nothing is like it; NOOP: it is known."""

    action: Literal["CREATE", "UPDATE", "UPDATE_OR_DELETE", "NOOP"]
    match: memory_rows.Memory | None
    score: Annotated[int, about("3 for a tag, 2 for a word of the title, 1 alike.")]
    reasons: list[str]
    others: list[memory_rows.Memory]
    compared: int


class Deserving(Struct, kw_only=True):
    memory: memory_rows.Memory
    check: str
    text: str
    fix: str


class Review(Struct, kw_only=True):
    count: int
    findings: list[Deserving]


class Saved(Struct, kw_only=True):
    success: bool
    id: int
    title: str
    project: str
    new: Annotated[bool, about("false: it was known already.")]
    message: str
    type: str
    action: Annotated[
        Act, about("What was done: a new one, tags and files added to a known one, nothing.")
    ]
    alike: Annotated[
        list[int], about("Memories that are like it and stay as they are; supersede or edit one.")
    ]


# --- reading --------------------------------------------------------------------------------------


def list_memories(memory: Memory, request: MemoriesRequest) -> Memories:
    """What was remembered for its own sake."""
    filters = make_filters(memory, request, kinds=("memory",))
    statuses = STATUSES if request.status == "all" else (request.status,)
    most, offset = request.limit + 1, request.offset
    if request.query.strip():
        found = _search_memos(memory, request.query, filters, statuses, offset + most)[offset:]
    else:
        found = memory.reading.memos(filters, Paging(most, offset=offset, statuses=statuses))
    if not found:
        memory.check_names(filters)
    full = request.format == "full"
    results = [describe_memory(memory, memo, full) for memo in found[: request.limit]]
    more = len(found) > request.limit
    return Memories(count=len(results), more=more, format=request.format, results=results)


def _search_memos(
    memory: Memory, query: str, filters: Filters, statuses: Sequence[str], most: int
) -> list[Memo]:
    """The search finds what is active, the best first; of the rest, whatever has all the words."""
    found: list[Memo] = []
    if "active" in statuses:
        hits = memory.answer(Asked(query, filters, most, now=memory.now)).hits
        found = memory.reading.memos(ids=[hit.id for hit in hits])
    put_away = tuple(status for status in statuses if status != "active")
    if put_away and len(found) < most:
        asked = set(query_terms(query))
        for memo in memory.reading.memos(filters, Paging(statuses=put_away)):
            item = memo.item
            if asked <= set(text_terms(f"{item.title} {item.body} {' '.join(item.tags)}")):
                found.append(memo)
    return found[:most]


def show_memory(memory: Memory, request: ItemRequest) -> MemoryShown:
    """One memory, its history, and what can be done with it."""
    return _describe_memo(memory, _find_memo(memory, request.id))


def _find_memo(memory: Memory, id_: int) -> Memo:
    for memo in memory.reading.memos(ids=[id_]):
        return memo
    for item in memory.reading.get([id_]):
        raise NotFound(
            f"item #{id_} is no memory but a {item.kind}", f"GET /api/items/{id_} shows it",
            parameter="id", value=str(id_),
        )  # fmt: skip
    raise NotFound(
        f"no memory #{id_}", "GET /api/memories?status=all lists them",
        parameter="id", value=str(id_),
    )  # fmt: skip


def _describe_memo(memory: Memory, memo: Memo) -> MemoryShown:
    store = memory.reading
    return MemoryShown(
        memory=describe_memory(memory, memo),
        chain=[describe_memory(memory, one) for one in list_memory_chain(store, memo)],
        history=[make_answer(Changed, one) for one in read_history(store, memo.item.id, _HISTORY)],
        use=describe_use(store, [memo.item.id])[0],
        actions=list_actions(store, memo, memory.origin),
        fields=list_fields(memo),
    )


def find_candidate(memory: Memory, request: CandidateRequest) -> Candidate:
    """What saving a text would meet; writes nothing.

    A title is looked at where the text alone is like nothing.
    """
    category, text = get_category(request.type), clean_text(request.text)
    tags = normalise_tags(request.tags)
    where = memory.find_project(request.project).key if request.project else ""
    choice = remember.find_candidate(memory.reading, category, text, where, tags)
    if choice.best is None and request.title:
        text = f"{clean_text(request.title)} {text}"
        choice = remember.find_candidate(memory.reading, category, text, where, tags)
    best, action = choice.best, cast(Any, choice.action)
    return Candidate(
        action=action,
        match=describe_memory(memory, best.memo, full=False) if best else None,
        score=best.points if best else 0,
        reasons=[redact(reason) for reason in best.reasons] if best else [],
        others=[describe_memory(memory, other.memo, full=False) for other in choice.others],
        compared=choice.compared,
    )


def review_memories(memory: Memory, request: ReviewRequest) -> Review:
    """Memories that deserve a look."""
    found = review.review_memories(
        memory.reading, replace(make_filters(memory, request), without_projects=()), memory.now
    )
    findings = [
        make_answer(Deserving, one, memory=describe_memory(memory, one.memo, full=False))
        for one in found
    ]
    return Review(count=len(findings), findings=findings)


# --- writing --------------------------------------------------------------------------------------


def edit_memory(memory: Memory, request: EditRequest) -> MemoryShown:
    """Change what it says. 409 where somebody else has changed the same since `version`.

    What others have changed since that version is kept, where both agree.
    """
    memo, store = _find_memo(memory, request.id), memory.store
    given = {name: getattr(request, name) for name in _EDITED}
    changes = {name: one for name, one in given.items() if one is not UNSET}
    base = lifecycle.form_at_version(store, memo, request.version)
    by = memory.by(request.why)
    new = lifecycle.edit_memory(store, memo.item.id, changes, by, base=base)
    return _describe_memo(memory, new)


def retire_memory(memory: Memory, request: RetireRequest) -> MemoryShown:
    """Take it out of use; it is let go after 30 days."""
    return _change_status(memory, request, "retire")


def archive_memory(memory: Memory, request: StepRequest) -> MemoryShown:
    """Put it away for good, without losing it."""
    return _change_status(memory, request, "archive")


def restore_memory(memory: Memory, request: StepRequest) -> MemoryShown:
    """Bring it back into use."""
    return _change_status(memory, request, "restore")


def _change_status(memory: Memory, request: StepRequest | RetireRequest, step: str) -> MemoryShown:
    id_, by = _find_memo(memory, request.id).item.id, memory.by(request.why)
    memo = lifecycle.change_status(memory.store, id_, step, by, force=request.force)
    return _describe_memo(memory, memo)


def undo_memory(memory: Memory, request: StepRequest) -> MemoryShown:
    """Take back the last change; twice brings it back.

    Whatever was done together with it is taken back as well.
    """
    id_ = _find_memo(memory, request.id).item.id
    if not read_history(memory.store, id_, 1):
        raise UsageError(f"nothing has been done to memory #{id_} yet")
    lifecycle.undo_change(memory.store, memory.by(request.why), id_)
    return _describe_memo(memory, _find_memo(memory, id_))


def supersede_memory(memory: Memory, request: SupersedeRequest) -> MemoryShown:
    """Put another in its place; answers with that."""
    memo, title = _find_memo(memory, request.id), _shorten_title(request.title)
    kept = remember.remember_instead(
        memory.store, memo, request.text, memory.by(request.why), title
    )
    return _describe_memo(memory, kept.memo)


def save_memory(memory: Memory, request: SaveRequest, place: Project | None = None) -> Saved:
    """Keep something.

    Unless it is known; what is like it is named, and stays as it is. It belongs to the `place`,
    else to the project that the request names.
    """
    project, there = (place, True) if place else find_place(memory, request.project.strip())
    allowed = load_rules(memory.config)
    folders = dict.fromkeys((memory.cwd or project.root, project.root))
    excluded = any(allowed.excludes(folder, project) for folder in folders)
    if excluded or allowed.is_off(project.root, "", memory.now):
        raise NotYours(
            f"nothing is kept of {project.name}: the user has said so (`exclude`, or `yester off`)",
            "name another project", parameter="project", value=project.name,
        )  # fmt: skip
    if not (there or request.create):
        known = memory.project_names().values()
        refused = unknown_name("project", request.project, known, "project")
        refused.fix += "; create: true makes a new one"
        raise refused
    draft = Draft(
        request.text, request.type, _shorten_title(request.title), tags=request.tags,
        files=request.files, scope="global" if project == GLOBAL else "",
    )  # fmt: skip
    kept = remember.remember(memory.store, draft, project, memory.by())
    item, new = kept.memo.item, kept.done == "created"
    alike = [
        other.memo.item.id
        for other in (kept.choice.best, *kept.choice.others)
        if other is not None and other.memo.item.id != item.id
    ]
    done = {"created": "Saved as", "updated": "Added to"}.get(kept.done, "Known already:")
    message = f"{done} #{item.id}."
    if project == GLOBAL:
        message += " It holds everywhere: no project was named."
    if alike and new:
        like = ", ".join(f"#{one}" for one in alike)
        message += f" Like it: {like}; nothing of that was changed."
    if redact(request.text) != request.text:
        message += " Secrets in it were left out."
    return Saved(
        success=True, id=item.id, title=redact(item.title), type=item.type,
        project=redact(memory.project_names().get(item.project, project.name)), new=new,
        message=message, action=_ACTS.get(kept.done, "NOOP"), alike=alike,
    )  # fmt: skip


def _shorten_title(text: str) -> str:
    """As long as a title may be, also where something in it has been blackened."""
    return shorten_text(clean_text(text), LONGEST_TITLE)


def find_place(memory: Memory, name: str) -> tuple[Project, bool]:
    """The project of this name, and whether it is known; without a name it is true everywhere."""
    if not name:
        return GLOBAL, True
    known = memory.reading.projects()
    for project in known:
        if name in (project.name, project.key):
            return project, True
    meant = Projects(memory.config.projects).apply_names(named_project(name))
    return meant, any(project.key == meant.key for project in known)
