"""What was remembered for its own sake: listed, shown, changed, put away and brought back.

All of it goes through `yester.memories`: every change has a line in the history that says who and
why, and what a program must not do it cannot do here either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType, field

from yester.capture.rules import load_rules
from yester.context.lines import item_icon
from yester.errors import NotFound, NotYours, UsageError
from yester.memories import categories, lifecycle, remember, review
from yester.memories.chains import list_memory_chain
from yester.memories.memory import GLOBAL, normalise_tags, read_history
from yester.memories.remember import Draft
from yester.memory import Memory as OpenedMemory
from yester.memory import quote_value, unknown_name
from yester.model import STATUSES, Change, Filters, Injection, Memo, Paging, Project, replace
from yester.operations import fields
from yester.operations import request as requests
from yester.operations.items import Use, describe_use
from yester.project import named_project
from yester.recall.recall import Asked
from yester.redact import redact, redact_value
from yester.store.contract import Store
from yester.text.document import reading_cost
from yester.text.sentences import shorten_text
from yester.text.terms import query_terms, text_terms

LONGEST_TEXT = 20_000  # characters of a memory
_BEGINNING = 240  # characters of the text in an index
_HISTORY = 200  # changes that are shown
_EDITED = ("title", "text", "content", "tags", "files", "confidence")
Act = Literal["CREATE", "UPDATE", "NOOP"]
Action = Literal["edit", "retire", "archive", "restore", "supersede", "undo"]
_STEPS: tuple[Action, ...] = ("retire", "archive", "restore")
Part = Literal["memory", "content"]
FormKind = Literal["text", "long", "list", "number", "choice"]
# The kinds of fields that are edited one by one. A record in a record is sent as a whole.
_KINDS: Mapping[str, FormKind] = {
    "text": "text", "texts": "list", "choice": "choice", "flag": "choice",
}  # fmt: skip
# What became of a text, and how that is said.
_SAVED: Mapping[str, tuple[Act, str]] = {
    "created": ("CREATE", "Saved as"), "updated": ("UPDATE", "Added to"),
}  # fmt: skip
_KNOWN: tuple[Act, str] = ("NOOP", "Known already:")

# --- requests -------------------------------------------------------------------------------------

Category = Literal[
    "decision", "constraint", "preference", "runbook", "tech_debt", "session_summary", "rule",
    "note",
]  # fmt: skip
assert set(Category.__args__) == set(categories.CATEGORIES)  # type: ignore[attr-defined]
Kept = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT, pattern=r"\w")]
Title = Annotated[fields.Name, Meta(description="A heading.")]
Why = Annotated[fields.Name, Meta(description="The reason, for the history.")]
FewNames = Annotated[list[fields.Name], Meta(max_length=fields.MOST_IDS)]


class MemoriesRequest(requests.DatedRequest, kw_only=True):
    status: Literal["active", "proposed", "archived", "retired", "superseded", "all"] = "active"
    query: fields.Text = ""
    limit: fields.Count = 20
    offset: fields.Offset = 0
    format: fields.Shape = "index"
    project: fields.ProjectName = ""
    types: fields.Names = field(default=[], name="type")
    use: bool = False


class CandidateRequest(requests.Request, kw_only=True):
    type: Category
    text: fields.GivenText
    title: fields.Name = ""
    tags: fields.Names = field(default_factory=list)
    project: fields.Name = ""


class EditRequest(requests.ItemRequest, kw_only=True):
    version: fields.Number
    title: fields.Name | UnsetType = UNSET
    text: Annotated[str, Meta(max_length=LONGEST_TEXT)] | UnsetType = UNSET
    content: dict[str, Any] | UnsetType = UNSET
    tags: FewNames | UnsetType = UNSET
    files: FewNames | UnsetType = UNSET
    confidence: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    why: Why = ""


class StepRequest(requests.ItemRequest, kw_only=True):
    step: Literal["retire", "archive", "restore", "undo"]
    why: Why = ""
    force: bool = False


class RetireRequest(StepRequest, kw_only=True):
    """Take it out of use; it is let go after 30 days."""


class SupersedeRequest(requests.ItemRequest, kw_only=True):
    text: Kept
    title: Title = ""
    why: Why = ""


class SaveRequest(requests.Request, kw_only=True):
    text: Kept
    type: Literal[""] | Category = ""
    tags: FewNames = field(default_factory=list)
    files: FewNames = field(default_factory=list)
    title: Title = ""
    project: fields.Name = ""
    create: bool = False


# --- answers --------------------------------------------------------------------------------------


class Memory(Struct, kw_only=True):
    """In the index form `text` is its beginning and `content` is left out."""

    id: int
    slug: str
    title: str
    type: str
    icon: str
    status: str
    scope: str
    path: str
    project: str
    text: str
    content: dict[str, Any] | UnsetType = UNSET
    tags: list[str]
    files: list[str]
    confidence: float
    origin: str
    version: int
    created: int
    updated: int
    since: int
    reason: str
    supersedes: int
    superseded_by: int
    tokens: int
    kept: bool
    given: int | UnsetType = UNSET
    used_in: int | UnsetType = UNSET
    last_given: int | UnsetType = UNSET


class Field(Struct):
    """Something of a memory that can be edited: part of `content`, or of the memory itself."""

    name: str
    label: str
    kind: FormKind
    choices: list[str]
    required: bool
    part: Part


class Memories(requests.Page, kw_only=True):
    format: fields.Form
    results: list[Memory]


class MemoryShown(Struct, kw_only=True):
    memory: Memory
    chain: list[Memory]
    history: list[Change]
    use: Use
    actions: list[Action]
    fields: list[Field]


class Candidate(Struct, kw_only=True):
    """What would become of a text. CREATE: nothing is like it; NOOP: it is known."""

    action: Literal["CREATE", "UPDATE", "UPDATE_OR_DELETE", "NOOP"]
    match: Memory | None
    score: int
    reasons: list[str]
    others: list[Memory]
    compared: int


class Deserving(Struct, kw_only=True):
    memory: Memory
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
    new: bool
    message: str
    type: str
    action: Act
    alike: list[int]


# --- one of them, described -----------------------------------------------------------------------


def describe_memory(opened: OpenedMemory, memo: Memo, full: bool = True) -> Memory:
    item, text = memo.item, redact(memo.item.body)
    return requests.make_answer(
        Memory, item, title=redact(item.title) or shorten_text(text, 100),
        icon=item_icon(item.kind, item.type),
        project=redact(opened.project_names().get(item.project, item.project)),
        text=text if full else shorten_text(text, _BEGINNING),
        content=redact_value(memo.content) if full else UNSET,
        slug=redact(memo.slug), scope=memo.scope, path=redact(memo.path), version=memo.version,
        created=item.epoch, since=memo.since, reason=redact(memo.reason),
        superseded_by=lifecycle.successor_id(opened.reading, item.id), tokens=reading_cost(item),
        kept=not categories.category_of(item.type).deletable,
    )  # fmt: skip


def _describe_memo(memory: OpenedMemory, memo: Memo) -> MemoryShown:
    store = memory.reading
    return MemoryShown(
        memory=describe_memory(memory, memo),
        chain=[describe_memory(memory, one) for one in list_memory_chain(store, memo)],
        history=[
            requests.make_answer(Change, one) for one in read_history(store, memo.item.id, _HISTORY)
        ],
        use=describe_use(store, [memo.item.id])[0],
        actions=_list_actions(memory, memo),
        fields=_list_fields(memo),
    )


def _list_actions(memory: OpenedMemory, memo: Memo) -> list[Action]:
    """What whoever asks can do with it now."""
    type_, status, user = memo.item.type, memo.item.status, memory.origin == "user"
    if type_ == "rule" and not user:
        return []
    found: list[Action] = ["edit"] if type_ in categories.CATEGORIES else []
    for step in _STEPS:
        kept = step == "retire" and not categories.category_of(type_).deletable and not user
        if status in lifecycle.STEPS[step][0] and not kept:
            found.append(step)
    if status == "active" and type_ in categories.CATEGORIES:
        found.append("supersede")
    store = memory.reading
    last = {change.item for change in lifecycle.find_undoable(store, memo.item.id)}
    if last and (user or all(one.item.type != "rule" for one in store.memos(ids=sorted(last)))):
        found.append("undo")
    return found


def _list_fields(memo: Memo) -> list[Field]:
    """What of a memory can be edited, as a form shows it."""
    category = categories.category_of(memo.item.type)
    content = [
        _form_field(
            one.name, "long" if one.name == category.text else _KINDS[one.kind], "content",
            required=one.required, choices=("true", "false") if one.kind == "flag" else one.choices,
        )
        for one in category.fields
        if one.kind in _KINDS
    ]  # fmt: skip
    own = _form_field("tags", "list"), _form_field("confidence", "number")
    return [_form_field("title", "text", required=True), *content, *own]


def _form_field(
    name: str, kind: FormKind, part: Part = "memory", required: bool = False,
    choices: Sequence[str] = (),
) -> Field:  # fmt: skip
    label = name.replace("_", " ").capitalize()
    return Field(name, label, kind, [*choices], required, part)


# --- reading --------------------------------------------------------------------------------------


def list_memories(memory: OpenedMemory, request: MemoriesRequest) -> Memories:
    """What was remembered for its own sake."""
    filters = requests.make_filters(memory, request, kinds=("memory",))
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
    if request.use:
        _add_use(memory.reading, results)
    more = len(found) > request.limit
    return Memories(count=len(results), more=more, format=request.format, results=results)


def _add_use(store: Store, results: Sequence[Memory]) -> None:
    """In how many sessions each was given and used, and when it was given last."""
    for one, known in zip(results, describe_use(store, [one.id for one in results]), strict=True):
        last = store.entries(Injection, {"item": one.id}, Paging(1))
        one.given, one.used_in = known.shown, known.used_in
        one.last_given = last[0].epoch if last else 0


def _search_memos(
    memory: OpenedMemory, query: str, filters: Filters, statuses: Sequence[str], most: int
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


def show_memory(memory: OpenedMemory, request: requests.ItemRequest) -> MemoryShown:
    """One memory, its history, and what can be done with it."""
    return _describe_memo(memory, _find_memo(memory, request.id))


def _find_memo(memory: OpenedMemory, id_: int) -> Memo:
    for memo in memory.reading.memos(ids=[id_]):
        return memo
    what, fix = f"no memory #{id_}", "GET /api/memories?status=all lists them"
    for item in memory.reading.get([id_]):
        what, fix = f"item #{id_} is no memory but a {item.kind}", f"GET /api/items/{id_} shows it"
    raise NotFound(what, fix, parameter="id", value=str(id_))


def find_candidate(memory: OpenedMemory, request: CandidateRequest) -> Candidate:
    """What saving a text would meet; writes nothing.

    A title is looked at where the text alone is like nothing.
    """
    category, text = categories.get_category(request.type), categories.clean_text(request.text)
    tags = normalise_tags(request.tags)
    where = memory.find_project(request.project).key if request.project else ""
    choice = remember.find_candidate(memory.reading, category, text, where, tags)
    if choice.best is None and request.title:
        text = f"{categories.clean_text(request.title)} {text}"
        choice = remember.find_candidate(memory.reading, category, text, where, tags)
    best = choice.best
    return Candidate(
        action=cast(Any, choice.action),
        match=describe_memory(memory, best.memo, full=False) if best else None,
        score=best.points if best else 0,
        reasons=[redact(reason) for reason in best.reasons] if best else [],
        others=[describe_memory(memory, other.memo, full=False) for other in choice.others],
        compared=choice.compared,
    )


def review_memories(memory: OpenedMemory, request: requests.ProjectRequest) -> Review:
    """Memories that deserve a look."""
    filters = replace(requests.make_filters(memory, request), without_projects=())
    findings = [
        requests.make_answer(Deserving, one, memory=describe_memory(memory, one.memo, full=False))
        for one in review.review_memories(memory.reading, filters, memory.now)
    ]
    return Review(count=len(findings), findings=findings)


# --- writing --------------------------------------------------------------------------------------


def edit_memory(memory: OpenedMemory, request: EditRequest) -> MemoryShown:
    """Change what it says. 409 where somebody else has changed the same since `version`.

    What others have changed since that version is kept, where both agree.
    """
    memo, store = _find_memo(memory, request.id), memory.store
    given = {name: getattr(request, name) for name in _EDITED}
    changes = {name: one for name, one in given.items() if one is not UNSET}
    base = lifecycle.form_at_version(store, memo, request.version)
    by = memory.by(request.why)
    return _describe_memo(memory, lifecycle.edit_memory(store, request.id, changes, by, base=base))


def change_memory(memory: OpenedMemory, request: StepRequest) -> MemoryShown:
    """Another status, or the last change taken back, with whatever was done together with it."""
    memo, by = _find_memo(memory, request.id), memory.by(request.why)
    store, id_, step = memory.store, memo.item.id, request.step
    if step != "undo":
        memo = lifecycle.change_status(store, id_, step, by, force=request.force)
    elif read_history(store, id_, 1):
        lifecycle.undo_change(store, by, id_)
        memo = _find_memo(memory, id_)
    else:
        raise UsageError(f"nothing has been done to memory #{id_} yet")
    return _describe_memo(memory, memo)


def supersede_memory(memory: OpenedMemory, request: SupersedeRequest) -> MemoryShown:
    """Put another in its place; answers with that."""
    memo, by = _find_memo(memory, request.id), memory.by(request.why)
    title = _shorten_title(request.title)
    kept = remember.remember_instead(memory.store, memo, request.text, by, title)
    return _describe_memo(memory, kept.memo)


def save_memory(memory: OpenedMemory, request: SaveRequest, place: Project | None = None) -> Saved:
    """Keep something.

    Unless it is known; what is like it is named, and stays as it is. It belongs to the `place`,
    else to the project that the request names.
    """
    project, there = (place, True) if place else find_place(memory, request.project.strip())
    allowed = load_rules(memory.config)
    folders = {memory.cwd or project.root, project.root}
    excluded = any(allowed.excludes(folder, project) for folder in folders)
    if excluded or allowed.is_off(project.root, "", memory.now):
        raise NotYours(
            f"nothing is kept of {project.name}: the user has said so (`exclude`, or `yester off`)",
            "name another project", parameter="project", value=project.name,
        )  # fmt: skip
    if not there and request.create and memory.caller and "admin" not in memory.caller.scopes:
        raise NotYours(  # whether somebody else keeps it private, or it is new
            f"this token cannot make the project {quote_value(request.project)}",
            "name one that is there", parameter="project", value=request.project,
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
    others = [other.memo.item.id for other in (kept.choice.best, *kept.choice.others) if other]
    alike = [id_ for id_ in others if id_ != item.id]
    action, done = _SAVED.get(kept.done, _KNOWN)
    message = f"{done} #{item.id}."
    if project == GLOBAL:
        message += " It holds everywhere: no project was named."
    if alike and new:
        like = ", ".join(f"#{one}" for one in alike)
        message += f" Like it: {like}; nothing of that was changed."
    if redact(request.text) != request.text:
        message += " Secrets in it were left out."
    return requests.make_answer(
        Saved, item, success=True, new=new, message=message, action=action, alike=alike,
        project=redact(memory.project_names().get(item.project, project.name)),
    )  # fmt: skip


def _shorten_title(text: str) -> str:
    """As long as a title may be, also where something in it has been blackened."""
    return shorten_text(categories.clean_text(text), categories.LONGEST_TITLE)


def find_place(memory: OpenedMemory, name: str) -> tuple[Project, bool]:
    """The project of this name, and whether it is known; without a name it is true everywhere."""
    if not name:
        return GLOBAL, True
    known = memory.reading.projects()
    for project in known:
        if name in (project.name, project.key):
            return project, True
    meant = memory.projects.apply_names(named_project(name))
    return meant, any(project.key == meant.key for project in known)
