"""What the numbers of a store say, for people and for budgets: the same for every engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from yester.clock import DAY, format_day
from yester.model import (
    ANYTHING,
    CURATED,
    ON_REQUEST,
    Event,
    Failure,
    Feedback,
    Filters,
    Injection,
    LogItem,
    Machine,
    Paging,
    Project,
    replace,
)

if TYPE_CHECKING:
    from yester.store.contract import Store


# What a line at the moment of action is about.
REFLEXES = ("error", "command", "rule", "lines", "plan")
_MOST_LINES = 2_000  # of the ledger that are looked at for what followed


class Counts(Struct, frozen=True):
    items: Mapping[str, int] = field(default_factory=dict)  # kind → number
    projects: int = 0
    sessions: int = 0
    sources: int = 0
    events: int = 0
    vectors: int = 0  # items that have them
    unembedded: int = 0  # items that are to have them
    skipped: Mapping[str, int] = field(default_factory=dict)  # reason → number
    oldest: int | None = None
    newest: int | None = None
    bytes: int = 0


class Spent(NamedTuple):
    """What language models have cost, calls under way at the most they can."""

    cost: float
    tokens: int
    in_flight: int


# Those without a docstring are answers of the HTTP API as they are, described there.


class Spending(Struct, frozen=True):  # the calls of a day (UTC) that ended in the same way
    day: str
    model: str
    purpose: str
    outcome: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float


class Refinements(NamedTuple):
    """How many turns a language model has noted, how many it could not, and why not the last."""

    turns: int
    kept: int
    reason: str


class Distilled(Struct, frozen=True):  # items of a kind that were made from something
    kind: str
    items: int
    discovery_tokens: int
    read_tokens: int


# What agents were shown at an event, how often, and what it had taken to find it out. What an item
# was made from counts once for each time it was shown.
class ShownAt(Struct, frozen=True):
    event: str
    times: int
    items: int
    tokens: int
    discovery_tokens: int


# Lines that agents were given unasked, by the project of what was given, and how many were used.
class ProjectUse(Struct, frozen=True):
    project: str
    given: int
    used: int
    tokens: int
    discovery_tokens: int


# What agents were told at the moment of action: error, command, rule or plan; how often something
# was done about it, nothing was, and it did not help or the user called it useless.
class Reflex(Struct, frozen=True):
    about: str
    told: int
    used: int
    ignored: int
    wrong: int


class Lag(Struct, frozen=True):  # milliseconds: half took no longer, all but one of a hundred
    p50: int | None
    p99: int | None


class Daily(NamedTuple):
    """What happened on days (UTC, counted from 1970); a day without anything is left out."""

    items: Mapping[str, Mapping[int, int]]  # type, else kind → day → active items
    # day → lines, their tokens, those behind them, lines of which something came
    shown: Mapping[int, tuple[int, int, int, int]]
    lags: Mapping[int, Lag]  # from hook to store
    answers: Mapping[int, Lag]  # what hooks waited for the worker
    # day → met, how many of these have ended, and how many had been met on an earlier day
    errors: Mapping[int, tuple[int, int, int]]


class Part(NamedTuple):
    """What there is of one project: its items by kind, its sessions, when the last one ended."""

    project: Project
    items: Mapping[str, int]
    sessions: int
    last: int


class Facets(Struct, kw_only=True):
    """What there is to filter for, and how often; the most frequent first."""

    total: int
    kinds: dict[str, int]
    types: dict[str, int]
    concepts: dict[str, int]
    agents: dict[str, int]  # the sessions of each
    projects: dict[str, int]
    days: dict[str, int]  # (UTC) the oldest first; of everything there is none


def content_counts(store: Store) -> Counts:
    """Numbers for `status`."""

    def count_rows(table: str, sums: str = "number") -> int:
        return int(store.totals(table, sums=(sums,))[0][0])

    oldest, newest = store.totals("times", sums=("oldest", "newest"))[0]
    items = Counter(dict(store.totals("indexed", by=("kind",))))
    items.update(dict(store.totals("put away", by=("kind",))))
    return Counts(
        items=dict(sorted(items.items())),
        projects=count_rows("project"),
        sessions=count_rows("session"),
        sources=sum(
            n for agent, n in store.totals("source", by=("agent",)) if agent not in CURATED
        ),
        events=count_rows("event"),
        vectors=count_rows("vector", "items"),
        unembedded=count_rows("unembedded"),
        skipped=dict(store.totals("skipped", by=("reason",))),
        oldest=oldest,
        newest=newest,
        bytes=store.size,
    )


class Backlog(NamedTuple):
    """How many of the items that are to have vectors have none yet."""

    waiting: int
    items: int

    def __str__(self) -> str:
        told = f"{self.waiting:,} of {self.items:,} texts have no vector yet"
        return f"{told}: found by their words, not by meaning"


def vector_backlog(store: Store) -> Backlog:
    waiting = int(store.totals("unembedded")[0][0])
    return Backlog(waiting, waiting + int(store.totals("vector", sums=("items",))[0][0]))


def has_vectors(store: Store) -> bool:
    """Is there anything a vector could be compared with?"""
    return bool(store.totals("vector", sums=("any",))[0][0])


def project_parts(store: Store) -> list[Part]:
    """Every project with what there is of it, by name; active items alone are counted."""
    kinds: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for project, kind, number in store.totals("indexed", by=("project", "kind")):
        kinds[project][kind] = number
    sessions = {
        project: (number, last)
        for project, number, last in store.totals(
            "session", by=("project",), sums=("number", "last")
        )
    }
    return [Part(one, kinds[one.key], *sessions.get(one.key, (0, 0))) for one in store.projects()]


# What to filter for, and the table that counts it without reading every item.
_COUNTED = {
    "kind": "indexed", "type": "typed", "concept": "concept", "agent": "session",
    "project": "indexed",
}  # fmt: skip


def filter_facets(store: Store, most: int, filters: Filters = ANYTHING) -> Facets:
    """What to filter for, of what passes the filters: of types and concepts, the `most` frequent
    ones."""
    counts = {}
    for name, table in _COUNTED.items():
        sums = "number"
        if filters != ANYTHING:
            table = "concept" if name == "concept" else "item"
            sums = "sessions" if name == "agent" else "number"
        found = store.totals(table, (name,), (sums,), filters=filters)
        counts[name] = found if filters == ANYTHING else [row for row in found if row[0]]
    counts["day"] = [] if filters == ANYTHING else store.totals("item", ("day",), filters=filters)
    if filters == ANYTHING:  # one may have sessions and no items
        known = {project.key: 0 for project in store.projects()}
        counts["project"] = list((known | dict(counts["project"])).items())
    return _make_facets(store, most, counts)


def item_facets(store: Store, ids: Sequence[int], most: int) -> Facets:
    """The same of these items."""
    items = store.get(ids)
    sessions = {(item.agent, item.session) for item in items if item.agent}
    counts = {
        "kind": Counter(item.kind for item in items),
        "type": Counter(item.type for item in items if item.type),
        "concept": Counter(concept for item in items for concept in item.concepts),
        "agent": Counter(agent for agent, _ in sessions),
        "project": Counter(item.project for item in items),
    }
    days = Counter(item.epoch // DAY for item in items)
    return _make_facets(
        store, most, {name: count.items() for name, count in counts.items()} | {"day": days.items()}
    )


def _make_facets(store: Store, most: int, counts: Mapping[str, Iterable[Any]]) -> Facets:
    names = {project.key: project.name for project in store.projects()}
    kinds = _most_frequent(counts["kind"])
    return Facets(
        total=sum(kinds.values()),
        kinds=kinds,
        types=_most_frequent(counts["type"], most),
        concepts=_most_frequent(counts["concept"], most),
        agents=_most_frequent(counts["agent"]),
        projects=_most_frequent((names[key], number) for key, number in counts["project"]),
        days={format_day(day * DAY): number for day, number in sorted(counts["day"]) if day},
    )


def tag_counts(store: Store) -> dict[str, int]:
    """The tags of active structured memories and how many have them, most first."""
    return _most_frequent(store.totals("tag", by=("tag",)))


def _most_frequent(rows: Iterable[Sequence[object]], most: int | None = None) -> dict[str, int]:
    found = [(str(name), int(str(number))) for name, number in rows]
    return dict(sorted(found, key=lambda pair: (-pair[1], pair[0]))[:most])


def spent_since(store: Store, since: int, now: int) -> Spent:
    """What was spent from then on; also what a clock that was wrong has put into the future."""
    sums = ("cost", "tokens_in", "tokens_out")
    cost, read, written = store.totals("spend", sums=sums, since=since)[0]
    under_way = store.totals("under way", since=now + 1)[0][0]
    return Spent(cost, read + written, under_way)


def spending_by_day(store: Store, since: int) -> list[Spending]:
    """The calls from then on, by day, model, purpose and outcome; the newest day first."""
    found = store.totals(
        "spend",
        by=("day", "model", "purpose", "outcome"),
        sums=("number", "tokens_in", "tokens_out", "cost"),
        since=since,
    )
    rows = [replace(one, cost=round(one.cost, 6)) for one in (Spending(*row) for row in found)]
    return sorted(rows, key=lambda row: row.day, reverse=True)


def refinement_totals(store: Store, since: int) -> Refinements:
    """What came of asking a language model about turns from then on."""
    found = store.totals("refined", by=("reason",), sums=("number", "last"), since=since)
    kept = [(last, reason, number) for reason, number, last in found if reason]
    return Refinements(
        sum(number for reason, number, _ in found if not reason),
        sum(number for _, _, number in kept),
        max(kept)[1] if kept else "",
    )


def distilled_totals(store: Store) -> list[Distilled]:
    """Kinds with items that say how many tokens they were made from, by name, and what reading them
    costs."""
    from yester.text.document import tokens_of_length

    sums = ("number", "discovery_tokens", "characters")
    found = store.totals("distilled", ("kind",), sums)
    return [
        Distilled(kind, number, spent, tokens_of_length(size))
        for kind, number, spent, size in found
    ]


def shown_totals(store: Store, since: int) -> list[ShownAt]:
    """What agents were shown from then on, by event."""
    sums = ("times", "number", "tokens", "discovery_tokens")
    return [ShownAt(*row) for row in store.totals("shown", ("event",), sums, since=since)]


def use_by_project(store: Store, since: int) -> list[ProjectUse]:
    """Lines that agents were given unasked from then on, and of how many something came; the
    project is that of what was given."""
    sums = ("number", "used", "tokens", "discovery_tokens")
    counts: dict[str, list[int]] = {}
    rows = store.totals("shown", ("event", "project"), sums, since=since)
    for event, key, *numbers in rows:
        if event != ON_REQUEST:
            known = counts.setdefault(key, [0] * len(sums))
            counts[key] = [one + other for one, other in zip(known, numbers, strict=True)]
    names = {project.key: project.name for project in store.projects()}
    found = [ProjectUse(names.get(key, ""), *numbers) for key, numbers in counts.items()]
    return sorted(found, key=lambda one: (-one.given, one.project))


def middle_lag(store: Store, limit: int) -> Lag:
    """What the last events took from hook to store."""
    lags = sorted(event.lag for event in store.entries(Event, page=Paging(limit=limit)))
    return _middle_of([(lag, 1) for lag in lags])


def daily_figures(store: Store, since: int) -> Daily:
    """What happened day by day, from the day of then on."""
    begin = since // DAY * DAY
    items: defaultdict[str, dict[int, int]] = defaultdict(dict)
    where = {"status": "active"}
    for day, label, number in store.totals("item", ("day", "label"), where=where, since=begin):
        items[label][day] = number
    sums = ("number", "tokens", "discovery_tokens", "used")
    shown = {
        day: (lines, tokens, discovered, used)
        for day, lines, tokens, discovered, used in store.totals(
            "shown", ("day",), sums, since=begin
        )
    }
    lags = store.totals("event", ("day", "lag"), since=begin)
    answers = store.totals("answered", ("day", "ms"), since=begin)
    errors: defaultdict[int, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    known: dict[str, int] = {}  # what an error has in common with its like → the day it was met
    for day, came, mark, number in store.totals("failure", ("day", "came", "mark")):
        if came == "printed":
            continue
        first = known.setdefault(mark, day)
        if day >= begin // DAY:
            met, ended, again = errors[day]
            errors[day] = (
                met + number,
                ended + (number if came != "left" else 0),
                again + (number if day > first else 0),
            )
    return Daily(items, shown, _middles_by_day(lags), _middles_by_day(answers), errors)


def reflex_totals(store: Store, since: int) -> list[Reflex]:
    """What became of what agents were told at the moment of action, from then on. An error that was
    met again in the session after something was done about it: that was wrong."""
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    lines = store.entries(Injection, {"event": events}, Paging(_MOST_LINES))
    told = [line for line in lines if line.epoch >= since and line.reason.split(" ")[0] in REFLEXES]
    feedback = store.entries(Feedback, {"item": sorted({line.item for line in told})})
    counts: dict[str, Counter[str]] = {}
    for line in told:
        own = {
            one.what: one.epoch
            for one in feedback
            if one.item == line.item and one.session in (0, line.session)
        }
        about = line.reason.split(" ")[0]
        # Before an edit: that the file is changed then says nothing.
        own.pop("acted" if about == "lines" else "", None)
        came = "used" if own.keys() & {"acted", "fetched", "useful"} else "ignored"
        if "useless" in own or ("acted" in own and _met_again(store, line, own["acted"])):
            came = "wrong"
        counts.setdefault(about, Counter()).update(["told", came])
    names = ("told", "used", "ignored", "wrong")
    return [Reflex(about, *(counts[about][name] for name in names)) for about in sorted(counts)]


def _met_again(store: Store, line: Injection, epoch: int) -> bool:
    about, _, mark = line.reason.partition(" ")
    later = store.entries(Failure, {"mark": mark}) if about == "error" else []
    runs = [one.item for one in later if one.epoch > epoch and one.came != "printed"]
    session = next(iter(store.sessions(Filters(session_id=line.session))), None)
    return any(session and item.session == session.key for item in store.get(runs))


def _middles_by_day(rows: Iterable[Sequence[int]]) -> dict[int, Lag]:
    """(day, ms, how often), in order → the middle and the slowest of a day."""
    days: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for day, ms, number in rows:
        days[day].append((ms, number))
    return {day: _middle_of(one) for day, one in days.items()}


def _middle_of(found: Sequence[tuple[int, int]]) -> Lag:
    """(ms, how often), in order."""
    if not found:
        return Lag(None, None)
    return Lag(_percentile_of(found, 50), _percentile_of(found, 99))


def _percentile_of(found: Sequence[tuple[int, int]], percent: int) -> int:
    wanted = sum(number for _, number in found) * percent // 100
    for ms, number in found:
        if wanted < number:
            return ms
        wanted -= number
    return found[-1][0]


def name_origins(store: Store, items: Sequence[int]) -> dict[int, str]:
    """The machines of those items that came from another one."""
    machines = {one.key: one.name for one in store.entries(Machine) if not one.own}
    rows = store.entries(LogItem, {"item": list(items)}) if machines else []
    return {row.item: machines[row.origin] for row in rows if row.origin in machines}
