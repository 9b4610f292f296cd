"""The parameters of endpoints, each defined once: `given` validates by these types, and `openapi`
and the reference describe them.

A list in a query is written with commas. Names are those of the seeds where they have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field

from yester.config import SETTINGS, Setting
from yester.memories.categories import CATEGORIES
from yester.model import KINDS
from yester.operations.context import EVENTS

MOST_IDS = 100
LONGEST_TEXT = 20_000  # characters of a memory
_LARGEST = 2**53 - 1  # what every JSON reader can count to

# --- words parameters are made of -----------------------------------------------------------------

Kind = Literal["message", "prompt", "observation", "summary", "memory", "note"]
Event = Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart"]
Form = Literal["index", "full"]
Order = Literal["relevance", "date_desc", "date_asc"]
assert set(Kind.__args__) == set(KINDS)  # type: ignore[attr-defined]
assert set(Event.__args__) == set(EVENTS)  # type: ignore[attr-defined]

Name = Annotated[str, Meta(max_length=400)]
# Of a list that is written with commas nobody can tell later where a comma was meant as such: any
# text is one, and the length of a request's head is the limit.
Names = list[str]
Text = Annotated[str, Meta(max_length=4_000)]
Since = Annotated[str, Meta(max_length=40, extra_json_schema={"format": "yester-since"})]
Until = Annotated[str, Meta(max_length=40, extra_json_schema={"format": "yester-until"})]
Id = Annotated[int, Meta(ge=1, le=_LARGEST)]
Count = Annotated[int, Meta(ge=1, le=100, description="At most so many.")]
Offset = Annotated[int, Meta(ge=0, le=1_000_000, description="Leave out the first ones.")]
Shape = Annotated[
    Form, Meta(description="index: a row each, ~75 tokens; full: everything, so ask for few.")
]
Category = Literal[
    "decision", "constraint", "preference", "runbook", "tech_debt", "session_summary", "rule",
    "note",
]  # fmt: skip
assert set(Category.__args__) == set(CATEGORIES)  # type: ignore[attr-defined]
Kept = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT, pattern=r"\w")]
Why = Annotated[str, Meta(max_length=400, description="The reason, for the history.")]
Depth = Annotated[int, Meta(ge=0, le=100)]
Days = Annotated[int, Meta(ge=1, le=3_650)]

_TIME = "1h, 3d, 1w, 2m, today, yesterday, 2026-03-01, an ISO time, or seconds or ms since 1970"


class Given(Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of an endpoint; those its path names stand there, the others in query or body.
    `refused` are names that exist and are not taken, each with the reason."""

    refused: ClassVar[Mapping[str, str]] = {}


class Nothing(Given):
    """No parameters."""


class Dated(Given, kw_only=True):
    start: Annotated[Since, Meta(description=f"Not older than this: {_TIME}.")] = field(
        default="", name="dateStart"
    )
    end: Annotated[
        Until, Meta(description="Not newer than this, written as dateStart; a whole day counts.")
    ] = field(default="", name="dateEnd")
    range: Annotated[
        str,
        Meta(
            max_length=200,
            description='Both at once as JSON: {"start": "2026-03-01", "end": "2026-03-08"}.',
            extra_json_schema={"format": "yester-range"},
        ),
    ] = field(default="", name="dateRange")
    range_start: Annotated[Since, Meta(description="The same in bracket form.")] = field(
        default="", name="dateRange[start]"
    )
    range_end: Annotated[Until, Meta(description="The same in bracket form.")] = field(
        default="", name="dateRange[end]"
    )


class Filtered(Dated, kw_only=True):
    project: Annotated[Name, Meta(description="Only this project, by its name or key.")] = ""
    concepts: Annotated[Names, Meta(description="Only items with one of these concepts.")] = []
    files: Annotated[
        Names, Meta(description="Only items about one of these files; the end of a path will do.")
    ] = []
    session: Annotated[
        Name, Meta(description="Only this session: its id, or 6 characters of it.")
    ] = ""
    agent: Annotated[Name, Meta(description="Only this agent, e.g. claude-code.")] = ""
    tool: Annotated[Name, Meta(description="Only calls of this tool, e.g. Bash.")] = ""


class Formed(Filtered, kw_only=True):
    format: Shape = "index"


class Asking(Formed, kw_only=True):
    limit: Count = 20
    offset: Offset = 0
    query: Annotated[
        Text, Meta(description='Words; also AND OR NOT "phrase" prefix*. Without: newest first.')
    ] = ""
    order: Annotated[Order, Meta(description="In which order.")] = field(
        default="relevance", name="orderBy"
    )
    explain: Annotated[bool, Meta(description="Where scores come from, what was left out.")] = False


# --- parameters -----------------------------------------------------------------------------------


class SearchObservations(Asking, kw_only=True):
    types: Annotated[Names, Meta(description="Only these types: decision, bugfix …")] = field(
        default=[], name="type"
    )


class SearchSessions(Asking, kw_only=True):
    pass


class SearchPrompts(Asking, kw_only=True):
    pass


class SearchAll(Asking, kw_only=True):
    what: Annotated[
        Literal["", "observations", "sessions", "prompts"],
        Meta(description="Only these; without, everything."),
    ] = field(default="", name="type")
    types: Annotated[Names, Meta(description="Only these types: decision, bugfix …")] = field(
        default=[], name="obs_type"
    )
    kinds: Annotated[list[Kind], Meta(description="Only these kinds; narrower than type.")] = []


class ByType(Asking, kw_only=True):
    types: Annotated[
        Name, Meta(min_length=1, description="bugfix, feature, decision … also several.")
    ] = field(name="type")


class ByFile(Asking, kw_only=True):
    path: Annotated[
        Name, Meta(min_length=1, description="The file; the end of its path will do.")
    ] = field(name="filePath")


class ByConcept(Asking, kw_only=True):
    concept: Annotated[Name, Meta(min_length=1, description="gotcha, pattern … also several.")]


class Near(Formed, kw_only=True):
    before: Annotated[Depth, Meta(description="How many before it.")] = field(
        default=10, name="depth_before"
    )
    after: Annotated[Depth, Meta(description="How many after it.")] = field(
        default=10, name="depth_after"
    )
    everywhere: Annotated[bool, Meta(description="Of all projects, not of the anchor's own.")] = (
        False
    )


class TimelineAt(Near, kw_only=True):
    anchor: Annotated[
        Name,
        Meta(
            description="An item's id (12), S and a session's id or number (S12), a time, latest, "
            "or words: what fits them best. Default: latest."
        ),
    ] = ""
    query: Annotated[
        Text,
        Meta(
            description="Without an anchor: around what fits this best; with anchor=latest: around "
            "the newest that fits."
        ),
    ] = ""


class TimelineBy(Near, kw_only=True):
    query: Annotated[Text, Meta(min_length=1, description="Words to look for.")]
    anchor: Annotated[
        Literal["", "latest"], Meta(description="latest: the newest that fits well, not the best.")
    ] = ""


class RecentOf(Given, kw_only=True):
    project: Annotated[Name, Meta(description="Only this project, by its name or key.")] = ""
    limit: Annotated[int, Meta(ge=1, le=50, description="How many sessions.")] = 3
    rows: Annotated[int, Meta(ge=1, le=100, description="How many rows of each.")] = 12


class ContextFor(Given, kw_only=True):
    event: Annotated[Event, Meta(description="What happens.")] = "SessionStart"
    project: Annotated[
        Name, Meta(description="For this project, by its name or key; default: that of the newest.")
    ] = ""
    cwd: Annotated[
        str,
        Meta(
            max_length=4_000,
            pattern=r"^(/[^\x00]*)?$",
            description="For this folder, an absolute path; it goes before the project.",
            extra_json_schema={"format": "yester-folder"},
        ),
    ] = ""
    prompt: Annotated[Text, Meta(description="At UserPromptSubmit: what is typed.")] = ""
    file: Annotated[Name, Meta(description="At PreToolUse: the file about to be read.")] = ""
    budget: Annotated[int, Meta(ge=100, le=10_000, description="Tokens at a start.")] = 2_000


class ItemsOf(Formed, kw_only=True):
    limit: Count = 20
    offset: Offset = 0
    kinds: Annotated[list[Kind], Meta(description="Only these kinds.")] = []
    types: Annotated[Names, Meta(description="Only these types.")] = field(default=[], name="type")
    order: Annotated[Literal["date_desc", "date_asc"], Meta(description="In which order.")] = field(
        default="date_desc", name="orderBy"
    )


class ItemAt(Given, kw_only=True):
    id: Annotated[Id, Meta(description="The item's id.")]


class Batch(Given, kw_only=True):
    ids: Annotated[
        list[Id | Annotated[str, Meta(pattern="^#?[0-9]{1,15}$", examples=["#12"])]],
        Meta(min_length=1, max_length=MOST_IDS, description='12, "12" or "#12".'),
    ]
    format: Shape = "full"
    order: Annotated[
        Literal["given", "date_desc", "date_asc"], Meta(description="In which order.")
    ] = field(default="given", name="orderBy")


class SessionsOf(Dated, kw_only=True):
    limit: Count = 20
    offset: Offset = 0
    project: Annotated[Name, Meta(description="Only this project, by its name or key.")] = ""
    agent: Annotated[Name, Meta(description="Only this agent, e.g. claude-code.")] = ""


class SessionAt(Given, kw_only=True):
    session: Annotated[
        Name,
        Meta(min_length=1, description="Its number (12 or S12), its id, or 6 characters of it."),
    ]


class TranscriptOf(SessionAt, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=200, description="At most so many items.")] = 50
    offset: Offset = 0
    kinds: Annotated[list[Kind], Meta(description="Only these kinds.")] = []
    format: Shape = "full"


class MemoriesOf(Dated, kw_only=True):
    status: Annotated[
        Literal["active", "archived", "retired", "superseded", "all"],
        Meta(description="Only those with this status."),
    ] = "active"
    query: Annotated[Text, Meta(description="Words to look for; without, the last written.")] = ""
    limit: Count = 20
    offset: Offset = 0
    format: Shape = "index"
    project: Annotated[Name, Meta(description="Only this project, by its name or key.")] = ""
    types: Annotated[Names, Meta(description="Only these types: decision, rule …")] = field(
        default=[], name="type"
    )


class ReviewOf(Given, kw_only=True):
    project: Annotated[Name, Meta(description="Only this project, by its name or key.")] = ""


class WouldBe(Given, kw_only=True):
    type: Annotated[Category, Meta(description="The category it would have.")]
    text: Annotated[Text, Meta(min_length=1, description="What would be kept.")]
    title: Annotated[Name, Meta(description="Its heading.")] = ""
    tags: Annotated[Names, Meta(description="Its tags.")] = []
    project: Annotated[
        Name,
        Meta(
            description="Where it would belong: it is compared with what is there and with what "
            "holds everywhere; without, with what there is of every project."
        ),
    ] = ""


class EditMemory(ItemAt, kw_only=True):
    version: Annotated[
        int, Meta(ge=0, le=_LARGEST, description="The version that was read; others may write too.")
    ]
    title: Annotated[str, Meta(max_length=400, description="Another title.")] | UnsetType = UNSET
    text: (
        Annotated[
            str,
            Meta(max_length=LONGEST_TEXT, description="The field of the content that is the text."),
        ]
        | UnsetType
    ) = UNSET
    content: (
        Annotated[
            dict[str, Any],
            Meta(description="Fields of the content that are different; null takes one away."),
        ]
        | UnsetType
    ) = UNSET
    tags: (
        Annotated[list[Name], Meta(max_length=MOST_IDS, description="All its tags.")] | UnsetType
    ) = UNSET
    files: (
        Annotated[list[Name], Meta(max_length=MOST_IDS, description="All its files.")] | UnsetType
    ) = UNSET
    confidence: Annotated[float, Meta(ge=0, le=1, description="How sure.")] | UnsetType = UNSET
    why: Why = ""


class MemoryStep(ItemAt, kw_only=True):
    why: Why = ""
    force: Annotated[bool, Meta(description="Changes nothing here; retiring knows it.")] = False


class RetireMemory(ItemAt, kw_only=True):
    why: Why = ""
    force: Annotated[
        bool, Meta(description="Retire what is otherwise kept for good; the user's alone.")
    ] = False


class SupersedeMemory(ItemAt, kw_only=True):
    text: Annotated[Kept, Meta(description="What stands in its place.")]
    title: Annotated[str, Meta(max_length=400, description="A heading.")] = ""
    why: Why = ""


class Save(Given, kw_only=True):
    text: Annotated[Kept, Meta(description="What to keep.")]
    type: Annotated[
        Literal[""] | Category, Meta(description="Its category; without, what it obviously is.")
    ] = ""
    tags: Annotated[list[Name], Meta(max_length=MOST_IDS, description="Its tags.")] = []
    files: Annotated[list[Name], Meta(max_length=MOST_IDS, description="Files it is about.")] = []
    title: Annotated[str, Meta(max_length=400, description="A heading.")] = ""
    project: Annotated[
        Name,
        Meta(
            description="Where it belongs, by its name or key; without, it is global: it holds "
            "everywhere."
        ),
    ] = ""
    create: Annotated[bool, Meta(description="Make the project where there is none so called.")] = (
        False
    )


class LedgerOf(Given, kw_only=True):
    session: Annotated[
        Name, Meta(description="Only this session: its number, its id, or 6 characters of it.")
    ] = ""
    item: Annotated[int, Meta(ge=0, le=_LARGEST, description="Only this item.")] = 0
    before: Annotated[
        int, Meta(ge=0, le=_LARGEST, description="Only lines before this one: the next page.")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="At most so many lines.")] = 50


class FeedbackOf(Given, kw_only=True):
    item: Annotated[int, Meta(ge=0, le=_LARGEST, description="Only of this item.")] = 0
    before: Annotated[
        int, Meta(ge=0, le=_LARGEST, description="Only lines before this one: the next page.")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="At most so many lines.")] = 50


class GiveFeedback(Given, kw_only=True):
    ids: Annotated[list[Id], Meta(min_length=1, max_length=MOST_IDS, description="Items.")]
    what: Annotated[
        Literal["useful", "useless", "opened", "undo"],
        Meta(description="Whether they were of use; opened: looked at; undo: takes a word back."),
    ]


class Within(Given, kw_only=True):
    days: Annotated[Days, Meta(description="How far back, today included.")] = 7


class Series(Given, kw_only=True):
    days: Annotated[int, Meta(ge=1, le=366, description="How many days (UTC), today included.")] = (
        30
    )


class RenameProject(Given, kw_only=True):
    key: Annotated[Name, Meta(min_length=1, description="The project, by its key or name.")]
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=80,
            pattern=r"^[\w.~/@+-]+( [\w.~/@+-]+)*$",
            description="What it is called from now on.",
        ),
    ]


class MergeProjects(Given, kw_only=True):
    source: Annotated[Name, Meta(min_length=1, description="What is merged, by key or name.")] = (
        field(name="from")
    )
    into: Annotated[Name, Meta(min_length=1, description="What it becomes part of.")]
    dry_run: Annotated[bool, Meta(description="Only say what would be moved.")] = True


def _writable(setting: Setting) -> Any:
    """The type of a setting over HTTP, from its row in the table."""
    match setting.default:
        case bool():
            kind: Any = bool
        case int():
            least = int(setting.least or 0)
            kind = Annotated[int, Meta(ge=least, le=int(setting.most or 1_000_000))]
        case tuple():
            kind = Annotated[list[Annotated[str, Meta(max_length=200)]], Meta(max_length=100)]
        case _:
            raise AssertionError(f"{setting.name} has a type that is not written over HTTP")
    return Annotated[kind, Meta(description=setting.help)] | UnsetType


_REFUSED = {
    setting.name: f"{setting.name} cannot be changed over HTTP: what sends data, names a path or "
    "guards what is stored is set in config.toml alone"
    for setting in SETTINGS
    if not setting.web
}
Change = cast(
    type[Given],
    defstruct(
        "Change",
        [(setting.name, _writable(setting), UNSET) for setting in SETTINGS if setting.web],
        bases=(Given,),
        namespace={"refused": _REFUSED},
        kw_only=True,
        module=__name__,
    ),
)


class Login(Given, kw_only=True):
    code: Annotated[str, Meta(min_length=1, max_length=200, description="The one-time code.")]
