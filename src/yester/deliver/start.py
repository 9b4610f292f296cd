"""What an agent gets when a session begins, goes on after compaction, or starts a sub-agent.

    rules       what the user wants observed, in a block of its own
    last        the last sessions: how they ended, what was asked, what is open
    at hand     what is known about the branch and the files that are changed
    timeline    an index of what was recorded, by day, with the cost of the whole

Nothing in it depends on the clock but the year: the same memory gives the same text, so that a
model's prompt cache survives.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import TYPE_CHECKING

from yester.clock import Calendar
from yester.deliver.gate import trivial
from yester.deliver.lines import (
    ICONS,
    TITLE,
    hit_line,
    index_row,
    item_line,
    item_sort,
    join_title,
    one_line,
    quote_text,
    short_name,
)
from yester.deliver.page import Context, Page, join_contexts
from yester.fence import MOST_UNITS, count_units, fence_text
from yester.git import Signals
from yester.memories.places import is_curated_note
from yester.model import CURATED, Filters, Item, Paging, Probe, Project, Session
from yester.recall.beginning import relevant_hits
from yester.recall.rank import Weights
from yester.recall.recall import Fates
from yester.store.contract import Store
from yester.text.document import estimate_tokens, reading_cost

if TYPE_CHECKING:
    from yester.text.embed import Embedder

_LISTED, _LOOKED_AT = 40, 10  # last sessions; those of them that were more than opened and closed
_FEW = 3  # items of a session in which nothing was typed
_TAIL = 40  # last messages of a session among which its closing words are looked for
_PROMPTS = (4, 2, 2)  # shown of the newest session, of the one before, …: so many sessions
_RELEVANT = 5  # about the work at hand
_INDEX = 30  # rows of the timeline, at most
_RULES = 400  # tokens of all rules together
_ENDING, _PROMPT, _NOTE, _SECTION, _RULE = 500, 160, 300, 220, 240  # characters
_SUMMARY = (
    ("request", "asked"), ("completed", "done"), ("learned", "learned"), ("next_steps", "open"),
)  # fmt: skip
_INDEXED = ("observation", "memory", "note")


@dataclass(frozen=True, slots=True)
class Here:
    """Where and when a session begins, and what is known besides the store."""

    project: Project
    session: str
    now: int
    zone: tzinfo | None = None
    signals: Signals | None = None
    rules: Sequence[Item] = ()  # standing ones that apply here, the most important first
    weights: Weights | None = None
    embedder: Embedder | None = None
    fates: Fates | None = None


def at_start(
    store: Store,
    here: Here,
    budget: int = 2_000,
    exchange: bool = False,
    of_session: bool = False,
    again: bool = False,
) -> Context:
    """`exchange`: with the last words of user and agent. `of_session`: what the session itself said
    is told too, since compaction has taken it from the agent. `again`: the session is taken up
    again and has its words back, so only what others did meanwhile is told."""
    calendar = Calendar(here.now, here.zone)
    project = Filters(projects=(here.project.key,))
    rules_told = here.rules
    if again:
        left_off = _left_off(store, here)
        project = replace(project, since=left_off + 1)
        rules_told = [rule for rule in here.rules if rule.updated > left_off]
        here = replace(here, signals=None)
    rules = _rules(rules_told, calendar, min(_RULES, budget))
    number = store.probe(Probe(replace(project, since=None))).statistics.items
    name = short_name(here.project.name)
    if not number:
        if again or of_session:
            return rules
        nothing = f"Project {name}: nothing is recorded yet. What happens in this session will be."
        return join_contexts(rules, Context(fence_text("memory", nothing)))
    foot = (
        f'{number:,} items are recorded here. More: yester recall "words"; one as a whole: '
        "yester show ID."
    )
    reserved = min(_RESERVED, budget // 4)
    page = Page(
        "memory", f"{name}, what happened last",
        f"Project {name}: what happened last, the newest session first.",
        foot + " " * reserved, budget - estimate_tokens(rules.text),
        MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    own = "" if of_session else here.session
    place = _sessions(store, project, own, page, calendar, exchange)
    told = {one.item for one in page.shown}
    if here.signals is not None:
        place = _at_hand(store, here, own, page, calendar, told, place)
        told = {one.item for one in page.shown}
    indexed = _index(store, project, own, page, calendar, told, place)
    left = f" {len(page.left)} more did not fit." if page.left else ""
    more = (left + _economics(indexed), left, "")
    page.foot = foot + next(text for text in more if len(text) <= reserved)
    return join_contexts(rules, page.finish_page())


def _left_off(store: Store, here: Here) -> int:
    """When the session had last said something by now; now, where it is not known."""
    mine = Filters(projects=(here.project.key,), session=here.session, until=here.now)
    last = store.select(mine, Paging(1)) if here.session else []
    return last[0].epoch if last else here.now


def for_agent(store: Store, here: Here, budget: int = 400) -> Context:
    """What a sub-agent gets: the rules, and what is known about the work at hand."""
    calendar = Calendar(here.now, here.zone)
    rules = _rules(here.rules, calendar, min(_RULES, budget // 2))
    if here.signals is None:
        return rules
    page = Page(
        "memory", "the work at hand", "", "One as a whole: yester show ID.",
        budget - estimate_tokens(rules.text), MOST_UNITS - count_units(rules.text),
    )  # fmt: skip
    _at_hand(store, here, "", page, calendar, set(), 0)
    return join_contexts(rules, page.finish_page())


def _rules(rules: Sequence[Item], calendar: Calendar, budget: int) -> Context:
    page = Page("rules", "", "", "", budget)
    for number, rule in enumerate(rules):
        # Only what a user typed may speak as a user: whatever else calls itself a rule is none.
        if rule.origin == "user":
            text = one_line(rule.body or rule.title, _RULE)
            page.add_line(f"- {text} (#{rule.id}, {calendar.day_label(rule.epoch)})",
                     rule.id, "rule", (0, number, 0))  # fmt: skip
    return page.finish_page()


# --- what happened last ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    item: Item
    reason: str
    text: str
    label: str = ""


def _sessions(
    store: Store, project: Filters, own: str, page: Page, calendar: Calendar, exchange: bool
) -> int:
    place = looked_at = 0
    for session in store.sessions(project, Paging(_LISTED)):
        if place == len(_PROMPTS) or looked_at == _LOOKED_AT:
            break
        looked_at += bool(session.prompts) or session.items > _FEW
        entries = _story(store, session, place, exchange) if session.key != own else []
        if not entries:
            continue
        heading = _heading(session, calendar, [entry.item for entry in entries])
        for entry in entries:
            item = entry.item
            text = item_line(item, calendar, entry.text, entry.label)
            page.add_line(
                text, item.id, entry.reason, (place, item.epoch, item.id), heading=heading
            )
        place += 1
    return place


def _story(store: Store, session: Session, place: int, exchange: bool) -> list[_Entry]:
    """What tells a session's story, the most telling first."""

    def last(kinds: tuple[str, ...], limit: int) -> list[Item]:
        filters = Filters(
            projects=(session.project,), kinds=kinds, session=session.key, agent=session.agent
        )
        return [item for item in store.select(filters, Paging(limit)) if not item.actor]

    def entry(item: Item, reason: str, most: int, label: str = "") -> _Entry:
        return _Entry(item, reason, one_line(item.body or item.title, most), label)

    summaries = last(("summary",), 4)
    whole = [item for item in summaries if any(name in item.sections for name, _ in _SUMMARY)]
    spoken = [item for item in last(("message",), _TAIL) if item.role == "assistant"]
    prompts = [item for item in last(("prompt",), 4 * _PROMPTS[place]) if _telling(item.body)]
    if whole:
        entries = [_Entry(whole[0], "summary", _told(whole[0]))]
        if exchange and place == 0:
            entries += [entry(item, "prompt", _ENDING) for item in prompts[:1]]
            entries += [entry(item, "ending", _ENDING, ", at the end") for item in spoken[:1]]
        return entries
    entries = [entry(item, "ending", _ENDING, ", at the end") for item in spoken[:1]]
    entries += [entry(item, "prompt", _PROMPT) for item in prompts[: _PROMPTS[place]]]
    if place == 0:
        entries += [entry(item, "summary", _NOTE) for item in summaries]
        entries += [entry(item, item.type or "note", _NOTE) for item in last(("note",), 4)]
    return entries


def _told(summary: Item) -> str:
    """asked: …; done: …; learned: …; open: …"""
    parts = (
        f"{name}: {one_line(summary.sections[section], _SECTION).rstrip('.')}"
        for section, name in _SUMMARY
        if summary.sections.get(section, "").strip()
    )
    return "; ".join(parts) or one_line(summary.body or summary.title, _NOTE)


def _telling(prompt: str) -> bool:
    return trivial(prompt) in ("", "short")


def _heading(session: Session, calendar: Calendar, shown: Iterable[Item]) -> str:
    title = one_line(session.title, TITLE)
    told = title.rstrip("…")
    if any(told and one_line(item.body, len(told) + 1).startswith(told) for item in shown):
        title = ""  # its first prompt says it as well
    prompts = f"{session.prompts} prompt{'' if session.prompts == 1 else 's'}"
    called = f", titled {quote_text(title)}" if title else ""
    agent = short_name(session.agent) or "an agent"
    return f"Session of {calendar.day_label(session.ended)} with {agent}{called} ({prompts}):"


# --- the work at hand -----------------------------------------------------------------------------


def _at_hand(
    store: Store,
    here: Here,
    own: str,
    page: Page,
    calendar: Calendar,
    told: Container[int],
    place: int,
) -> int:
    assert here.signals is not None
    hits = relevant_hits(
        store, here.project.key, here.signals, here.now, 2 * _RELEVANT, here.weights,
        here.embedder, here.fates,
    )  # fmt: skip
    new = [
        hit
        for hit in hits
        if hit.id not in told and not (own and hit.session == own) and not is_curated_note(hit.ref)
    ]
    heading = f"About the work at hand{_signs(here.signals)}:"
    for number, hit in enumerate(new[:_RELEVANT]):
        text = hit_line(hit, calendar, join_title(hit.title, one_line(hit.text, _NOTE)))
        page.add_line(text, hit.id, "at hand", (place, number, 0), hit.score, heading)
    return place + 1


def _signs(signals: Signals) -> str:
    """(branch fix/retries, 3 files changed)"""
    number = len(signals.changed)
    changed = f"{number} file{'' if number == 1 else 's'} changed" if number else ""
    branch = f"branch {short_name(signals.branch)}" if signals.branch else ""
    told = ", ".join(filter(None, (branch, changed)))
    return f" ({told})" if told else ""


# --- the index ------------------------------------------------------------------------------------


def _index(
    store: Store,
    project: Filters,
    own: str,
    page: Page,
    calendar: Calendar,
    told: Container[int],
    place: int,
) -> list[Item]:
    """The newest of what was recorded for its own sake, newest first, under their days."""
    items = [
        item
        for item in store.select(replace(project, kinds=_INDEXED), Paging(_INDEX))
        if item.id not in told
        and not (own and item.session == own)
        and not (item.kind == "note" and item.session)  # plans and lists of a session long over
        and item.source not in CURATED  # the agent has it before its eyes
        and item.type != "rule"  # it stands above
    ]
    days: list[str] = []
    shown: list[Item] = []
    for number, item in enumerate(items):
        day = calendar.day_label(item.epoch)
        if day not in days:
            days.append(day)
        heading = f"{day}:" if shown else f"{_legend(items)}\n{day}:"
        order = (place + len(days), number, 0)
        text = index_row(item, calendar)
        if page.add_line(text, item.id, "timeline", order, heading=heading):
            shown.append(item)
    return shown


def _legend(items: Sequence[Item]) -> str:
    """What was recorded, by day (◆ decision, ✔ bugfix; ~85t: about 85 tokens to read whole):"""
    sorts = dict.fromkeys(item_sort(item.kind, item.type) for item in items)
    signs = ", ".join(f"{ICONS[one]} {one}" for one in sorted(sorts))
    return f"Recorded, by day ({signs}; ~85t: about 85 tokens to read whole):"


_RESERVED = 140  # characters for what did not fit and the economics


def _economics(rows: Sequence[Item]) -> str:
    """What the index stands for: what reading it would cost, and what finding it out has cost."""
    read = sum(reading_cost(item) for item in rows)
    spent = sum(item.discovery_tokens for item in rows)
    if not rows or not spent:
        return ""
    return f" The index stands for ~{read:,} tokens of text that took ~{spent:,} to find out."
