"""The answers of endpoints, each defined once: what is encoded is what the OpenAPI document says.

Times are milliseconds since 1970 unless their name says otherwise. What is UNSET is left out.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from yester.faces.http.parameters import Form

Came = Literal["", "fetched", "opened", "acted-on", "useful", "useless"]


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


class Row(Struct, kw_only=True):
    """An item, a session (kind session) or the place of an anchor (type anchor). What stands behind
    `anchor` is there in the full form alone."""

    id: Annotated[
        int, Meta(description="An item's; of a session, that of an item that tells most of it.")
    ]
    kind: str
    type: str
    icon: str
    title: str
    subtitle: str
    date: str
    created_at_epoch: int
    project: str
    tokens: Annotated[int, Meta(description="What the full form costs to read, about.")]
    score: float | UnsetType = UNSET
    snippet: str | UnsetType = UNSET
    concepts: list[str] | UnsetType = UNSET
    stale: str | UnsetType = UNSET
    duplicates: int | UnsetType = UNSET
    factors: dict[str, float] | UnsetType = UNSET  # what each added to the score
    signs: dict[str, float] | UnsetType = UNSET  # what else is known of how well it fits
    arms: list[str] | UnsetType = UNSET
    session: str | UnsetType = UNSET
    session_db_id: (
        Annotated[int, Meta(description="The session's number: /api/sessions/S12.")] | UnsetType
    ) = UNSET
    agent: str | UnsetType = UNSET
    prompts: int | UnsetType = UNSET
    timestamp: int | UnsetType = UNSET
    anchor: bool | UnsetType = UNSET
    narrative: str | UnsetType = UNSET
    input: (
        Annotated[str, Meta(description="Of a tool: what of the narrative it was given.")]
        | UnsetType
    ) = UNSET
    output: (
        Annotated[
            str, Meta(description="What it gave back; missing where the two cannot be told apart.")
        ]
        | UnsetType
    ) = UNSET
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
    sources: (
        Annotated[list[int], Meta(description="In a transcript: the items it was made of.")]
        | UnsetType
    ) = UNSET


class LeftOut(Struct, kw_only=True):
    id: int
    score: float
    why: str


class Explained(Struct, kw_only=True):
    """How many candidates each search found, the most each factor can add, what was left out."""

    arms: dict[str, int]
    weights: dict[str, float]
    cut: list[LeftOut]
    more: int


class Found(Struct, kw_only=True):
    query: str
    count: int
    format: Form
    results: list[Row]
    more: Annotated[bool, Meta(description="Is there more behind them? Then go on with offset.")]
    took_ms: float
    type: str | UnsetType = UNSET
    file_path: str | UnsetType = field(default=UNSET, name="filePath")
    concept: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    explain: Explained | UnsetType = UNSET


class Timeline(Struct, kw_only=True):
    """Oldest first. A row of type anchor stands where the anchor is, before the item itself."""

    anchor: str
    anchor_timestamp: int
    depth_before: int
    depth_after: int
    format: Form
    timeline: list[Row]
    took_ms: float


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


class RecentSession(Struct, kw_only=True):
    session: Session
    summary: Summary | None
    observations: list[Row]


class Recent(Struct, kw_only=True):
    limit: int
    project: str
    sessions: list[RecentSession]


class Line(Struct, kw_only=True):
    """A line of a context: what it shows and why."""

    item: int
    score: float
    tokens: int
    reason: str


class ContextShown(Struct, kw_only=True):
    text: str
    tokens: int
    shown: list[Line]
    left: list[LeftOut]
    why: Annotated[str, Meta(description='Why there is no text; "" where there is one.')]


class Use(Struct, kw_only=True):
    """What is known of an item's use: from -1 (in the way) over 0 (nothing) to 1."""

    id: int
    use: float
    shown: int
    used_in: int
    feedback: dict[str, int]


class Item(Struct, kw_only=True):
    item: Row
    use: Use
    sources: Annotated[list[Row], Meta(description="What it was made of.")]
    made: Annotated[list[Row], Meta(description="What was made of it.")]


class Items(Struct, kw_only=True):
    count: int
    format: Form
    results: list[Row]
    more: bool
    missing: list[int] | UnsetType = UNSET


class Sessions(Struct, kw_only=True):
    count: int
    sessions: list[Session]
    more: bool


class SessionShown(Struct, kw_only=True):
    session: Session
    summary: Summary | None
    shown: Annotated[int, Meta(description="Lines of memory its agent was shown.")]
    shown_tokens: int


class Transcript(Struct, kw_only=True):
    session: Session
    count: int
    offset: int
    results: list[Row]
    more: bool


class Saved(Struct, kw_only=True):
    success: bool
    id: int
    title: str
    project: str
    new: Annotated[bool, Meta(description="false: it was known already.")]
    message: str
    type: str
    action: Annotated[
        Literal["CREATE", "UPDATE", "NOOP"],
        Meta(description="What was done: a new one, tags and files added to a known one, nothing."),
    ]
    alike: Annotated[
        list[int],
        Meta(description="Memories that are like it and stay as they are; supersede or edit one."),
    ]


class Shown(Struct, kw_only=True):
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
    tokens: Annotated[int, Meta(description="What the line cost to read, about.")]
    discovery_tokens: Annotated[int, Meta(description="What the item was made from, about.")]
    reason: str
    used: Annotated[Came, Meta(description="The most that is known to have come of it.")]
    prompt: Annotated[str, Meta(description="The beginning of the prompt it was shown for.")]


class Ledger(Struct, kw_only=True):
    count: int
    injections: list[Shown]
    next_before: Annotated[int, Meta(description="The next page: before=…; 0: there is none.")]
    note: str


class Told(Struct, kw_only=True):
    id: int
    item: int
    what: str
    epoch: int
    session_db_id: int


class Feedback(Struct, kw_only=True):
    count: int
    feedback: list[Told]
    next_before: int


class Uses(Struct, kw_only=True):
    items: list[Use]


class Spending(Struct, kw_only=True):
    day: str
    model: str
    purpose: str
    outcome: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float


class Limits(Struct, kw_only=True):
    dollars: float
    tokens: int
    in_flight: int


class Today(Struct, kw_only=True):
    cost: float
    tokens: int
    in_flight: int


class Spend(Struct, kw_only=True):
    """What language models have cost; nothing where none is set."""

    days: int
    provider: str
    today: Today
    limits: Limits
    spend: list[Spending]


class Distilled(Struct, kw_only=True):
    kind: str
    items: int
    discovery_tokens: int
    read_tokens: int


class ShownAt(Struct, kw_only=True):
    event: str
    times: int
    items: int
    tokens: int
    discovery_tokens: int


class Waiting(Struct, kw_only=True):
    done: int
    waiting: int


class Lag(Struct, kw_only=True):
    p50: int | None
    p99: int | None


class Stats(Struct, kw_only=True):
    days: int
    items: dict[str, int]
    projects: int
    sessions: int
    transcripts: int
    events: int
    skipped: dict[str, int]
    vectors: Waiting
    lag_ms: Lag
    bytes: int
    oldest: int | None
    newest: int | None
    distilled: list[Distilled]
    shown: list[ShownAt]
    note: str


class Middles(Struct, kw_only=True):
    """Milliseconds for each day; null where nothing was measured."""

    p50: list[int | None]
    p99: list[int | None]


class Series(Struct, kw_only=True):
    """A number for each of `days` (UTC), the oldest first."""

    days: list[str]
    items: Annotated[dict[str, list[int]], Meta(description="By type, else by kind.")]
    shown_tokens: Annotated[list[int], Meta(description="What agents were shown.")]
    discovered_tokens: Annotated[list[int], Meta(description="What that was made from.")]
    shown_lines: list[int]
    lag_ms: Annotated[Middles, Meta(description="From a hook to the store.")]
    answer_ms: Annotated[Middles, Meta(description="What the worker took to answer a hook.")]
    spend: Annotated[list[float], Meta(description="Dollars for language models.")]
    note: str


class Finding(Struct, kw_only=True):
    """What the doctor says of one thing."""

    area: str
    name: str
    state: Literal["ok", "warn", "bad"]
    text: str
    fix: str


class Doctor(Struct, kw_only=True):
    ok: bool
    findings: list[Finding]
    note: str


class Project(Struct, kw_only=True):
    name: str
    key: str
    root: str
    parent: str
    items: int
    kinds: dict[str, int]
    sessions: int
    last: int


class Projects(Struct, kw_only=True):
    projects: list[Project]


class Merged(Struct, kw_only=True):
    """What was moved, or would be."""

    items: int
    sessions: int
    memories: int
    done: bool
    message: str


class Facets(Struct, kw_only=True):
    """What there is to filter for, and how often; the most frequent first."""

    kinds: dict[str, int]
    types: dict[str, int]
    concepts: dict[str, int]
    agents: dict[str, int]
    projects: dict[str, int]


class Setting(Struct, kw_only=True):
    name: str
    value: bool | int | float | str | list[str]
    default: bool | int | float | str | list[str]
    origin: str
    help: str
    writable: Annotated[bool, Meta(description="May it be changed here?")]
    secret: bool


class Settings(Struct, kw_only=True):
    file: str
    settings: list[Setting]


class Bearer(Struct, kw_only=True):
    token: str
    expires_in: int


class Health(Struct, kw_only=True):
    status: Literal["ok"]
    version: str


class Operation(Struct, kw_only=True):
    endpoint: str
    does: str
    parameters: dict[str, str]
    also: Annotated[str, Meta(description="Which of the parameters many share it takes as well.")]
    example: str


class Manual(Struct, kw_only=True):
    """How to use the API, for a model."""

    title: str
    workflow: list[str]
    rules: list[str]
    headers: str
    search: Annotated[dict[str, str], Meta(description="Parameters of every search.")]
    filters: Annotated[dict[str, str], Meta(description="What narrows it.")]
    operations: list[Operation]
    more: str
