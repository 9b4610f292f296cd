"""Sessions into what is distilled from them: read, observe, write; in small steps.

A session is written in one transaction with the mark that it is done, so it can be stopped at any
time. Distilled again, it gives the same items under the same refs; what no longer comes of it goes.
Of a long session only the turns since something new, and some before them, are made anew, and none
that a language model has noted since it last grew (`refining`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from yester.config import Config
from yester.distil.dedup import distinct, stored_already
from yester.distil.drafts import Draft, Gate
from yester.distil.keeping import keep_rules, link_decisions
from yester.distil.observe import observe
from yester.distil.outcomes import outcomes
from yester.distil.summaries import Summary, as_session, session_summary, turn_summary
from yester.distil.turns import BRIEF_CHARS, BRIEF_TOOLS, View, views
from yester.distil.work import Committed, assigned
from yester.ingest.noise import shown_words
from yester.ingest.prepare import prepared
from yester.model import DISTILLED, Item, Session
from yester.store.base import Entry, Put, Store, Waiting

LOOK_BACK = 8  # turns within which work is committed and errors end
_PAGE = 400  # items read at once
_MESSAGES = 12  # taken apart at once


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds where a session did not say otherwise."""

    skipped: frozenset[str] = frozenset()
    window: int = 3_000
    most: int = 0  # items looked at, the last ones; 0: all there are

    @classmethod
    def of(cls, config: Config) -> Rules:
        return cls(frozenset(config.texts("skip_tools")), config.number("batch_window_ms"))


@dataclass(slots=True)
class Report:
    sessions: int = 0
    turns: int = 0
    steps: int = 0  # uses of tools
    observations: int = 0
    summaries: int = 0
    repeated: int = 0  # left out: stored before
    rules: int = 0  # that a user typed
    links: int = 0  # between a decision and the one it undoes
    put: Put = field(default_factory=Put)


@dataclass(frozen=True, slots=True)
class Made:
    """An item and what it was made of: (number of the fact or -1, id of an item)."""

    item: Item
    sources: tuple[tuple[int, int], ...]


def distil(
    store: Store, waiting: Waiting, rules: Rules, report: Report, now: int = 0
) -> Iterator[None]:
    """Distil a session and store what comes of it, in steps of a few milliseconds. `now` dates
    what is kept for good; 0: the session's end."""
    session = waiting.session
    noted = _noted(store, session)
    known = store.distilled(session.id)
    # Turns before those that are made anew are read for what they have to do with them.
    first = store.prompt_before(session.id, waiting.since, LOOK_BACK) if known else 0
    begin = store.prompt_before(session.id, first, LOOK_BACK) if first else 0
    items: list[tuple[Item, int]] = []
    after = (begin - 1, 0)
    while page := store.history(session.id, BRIEF_TOOLS, BRIEF_CHARS, after, _PAGE):
        items += page
        if 0 < rules.most < len(items):
            items = _last(items, rules.most)
            first = max(first, items[0][0].epoch)  # what came of earlier turns stays as it is
        after = (page[-1][0].epoch, page[-1][0].id)
        yield
    turns = views(items, store.told(session.id), rules.skipped, rules.window)
    yield
    commits = assigned(turns, LOOK_BACK)
    stay = {
        turn.key
        for turn, done in zip(turns, commits, strict=True)
        if turn.started < first or noted.get(turn.key) == shape(turn, done)
    }
    older = [item for item in known if _older(item, turns, stay, first)]
    gate = Gate(shown_words(store, session.id), (fact for item in older for fact in item.facts))
    todo = next(
        (item.body for item, _ in reversed(items) if item.type == "todo" and not item.actor), ""
    )
    earlier = tuple(
        (-1, source)
        for item in _told(older)
        for source in store.evidence(item.id).get(-1, ())
    )  # fmt: skip
    made: list[Made] = []
    for step in _compose(session, turns, commits, stay, gate, todo, older):
        if step is None:
            yield
        else:
            made.append(step)
    made = [
        replace(one, sources=one.sources + earlier) if one.item.type == "session" else one
        for one in made
    ]
    yield
    made = [_as_before(one, known) for one in _new(store, made, known, older, report)]
    entries = [prepared(one.item) for one in made]
    yield
    kept = {item.ref for item in older}
    before = [item for item in known if item.ref not in kept]
    if not _write(store, waiting, noted, made, entries, before, report):
        yield from distil(store, waiting, rules, report, now)
        return
    yield
    typed = [turn for turn in turns if turn.started >= first]
    report.rules += keep_rules(store, session, typed, now or session.ended)
    yield
    for links in link_decisions(store, session):
        report.links += links
        yield
    report.sessions += 1
    fresh = [turn for turn in turns if turn.key not in stay]
    report.turns += len(fresh)
    report.steps += sum(len(turn.steps) for turn in fresh)


def _as_before(made: Made, known: Sequence[Item]) -> Made:
    """With the place in a chain of decisions that it had."""
    had = next((item for item in known if item.ref == made.item.ref), None)
    if had is None or (had.status == "active" and not had.supersedes):
        return made
    return replace(made, item=replace(made.item, status=had.status, supersedes=had.supersedes))


def _last(items: list[tuple[Item, int]], most: int) -> list[tuple[Item, int]]:
    """The last ones, and the prompt of the turn they begin in."""
    earlier, kept = items[:-most], items[-most:]
    prompts = [one for one in earlier if one[0].kind == "prompt" and not one[0].actor]
    return prompts[-1:] + kept


def shape(turn: View, commits: Sequence[Committed]) -> str:
    """How far a turn has come: another one when something was added to it, or its work was
    committed later."""
    return f"{turn.ended}-{turn.tokens}-{len(turn.steps)}-{len(commits)}"


def _noted(store: Store, session: Session) -> dict[str, str]:
    """The turns whose notes are a language model's, and how far they had come."""
    made = store.refined(session.id)
    return {turn: one.shape for turn, one in made.items() if not one.reason}


def _older(item: Item, turns: Sequence[View], stay: Collection[str], first: int) -> bool:
    """Is it of a turn that is not made anew?"""
    for turn in turns:
        if f":{turn.key}:" in item.ref:
            return turn.key in stay
    own = any(turn.key in stay for turn in turns if turn.number == item.prompt_number != 0)
    return own or item.epoch < first


def _compose(
    session: Session,
    turns: Sequence[View],
    commits: Sequence[Sequence[Committed]],
    stay: Collection[str],
    gate: Gate,
    todo: str,
    older: Sequence[Item],
) -> Iterator[Made | None]:
    """The items of a session's turns but those that stay, with None where others may have a
    turn."""
    came_out = outcomes(turns)
    yield None
    told = _told(older)
    drafted: list[tuple[View, list[Draft], Summary]] = []
    for turn, done, outcome in zip(turns, commits, came_out, strict=True):
        if turn.key not in stay:
            yield from _taken_apart(turn, gate)
            drafts = observe(turn, done, outcome, gate)
            drafted.append((turn, drafts, turn_summary(turn, drafts, gate)))
            yield None
    telling = sum(bool(one) for _, _, one in drafted)
    if told and told[0].type == "session" and not telling:
        return  # it has one turn still, and its summary stands
    several = len(told) + telling > 1
    if told and told[0].type == "session":  # it had one turn, and its summary is that turn's now
        told = [replace(told[0], discovery_tokens=told[0].discovery_tokens // 2)]
        for turn in turns:
            if turn.number == told[0].prompt_number and turn.key in stay:
                yield _summary(session, turn, _as_summary(told[0]), told[0].discovery_tokens)
    shares = sum(item.discovery_tokens for item in told)
    for turn, drafts, summary in drafted:
        # A turn's tokens are shared out among all that was made of it: none are counted twice.
        parts = len(drafts) + (1 + several if summary else 0)
        share = turn.tokens // parts if parts else 0
        for draft in drafts:
            yield _observation(session, turn, draft, share)
        if summary:
            shares += share
            if several:
                yield _summary(session, turn, summary, share)
    if several or told:
        every = [*map(_as_summary, told), *(one for _, _, one in drafted)]
        last = session_summary(sorted(every, key=lambda one: one.epoch), todo)
    else:
        last = next((as_session(one) for _, _, one in drafted if one), Summary("", 0, {}))
    if last:
        numbers = [turn.number for turn, _, one in drafted if one]
        numbers += [item.prompt_number for item in told]
        yield _session(session, turns, max(numbers), last, shares)


def _taken_apart(turn: View, gate: Gate) -> Iterator[None]:
    """The messages of a turn, a few at a time."""
    for number, item in enumerate(turn.said):
        gate.findings(item)
        if number % _MESSAGES == _MESSAGES - 1:
            yield None


def _told(older: Sequence[Item]) -> list[Item]:
    """The summaries of turns that are not looked at again; one turn alone had its session's."""
    kept = [item for item in older if item.kind == "summary" and item.type == "turn"]
    return kept or [item for item in older if item.kind == "summary" and item.type == "session"]


def _observation(session: Session, turn: View, draft: Draft, tokens: int) -> Made:
    ref = f"turn:{session.key}:{turn.key}:{draft.slot}"
    if draft.slot.startswith("/"):
        ref = f"project:{session.project}:{draft.slot[1:]}"
    item = _item(
        session, ref, "observation", turn.number, draft.epoch, type=draft.type, title=draft.title,
        subtitle=draft.subtitle, body=draft.body, facts=tuple(fact.text for fact in draft.facts),
        concepts=draft.concepts, tags=draft.tags, files_read=draft.files_read,
        files_modified=draft.files_modified, sections=dict(draft.sections), discovery_tokens=tokens,
    )  # fmt: skip
    facts = tuple((number, fact.source) for number, fact in enumerate(draft.facts))
    return Made(item, facts + _whole(turn))


def _summary(session: Session, turn: View, one: Summary, tokens: int) -> Made:
    ref = f"turn:{session.key}:{turn.key}:summary"
    item = _item(
        session, ref, "summary", turn.number, one.epoch, type="turn", title=one.title,
        sections=one.sections, files_read=one.files_read, files_modified=one.files_edited,
        discovery_tokens=tokens,
    )  # fmt: skip
    return Made(item, _whole(turn))


def _session(
    session: Session, turns: Sequence[View], number: int, one: Summary, tokens: int
) -> Made:
    ref = f"session:{session.key}:{session.project}"
    item = _item(
        session, ref, "summary", number, one.epoch, type="session", title=one.title,
        sections=one.sections, files_read=one.files_read, files_modified=one.files_edited,
        discovery_tokens=tokens,
    )  # fmt: skip
    return Made(item, tuple(dict.fromkeys(source for turn in turns for source in _whole(turn))))


def _item(session: Session, ref: str, kind: str, number: int, epoch: int, **more: object) -> Item:
    base = Item(
        ref, kind, project=session.project, session=session.key, source=DISTILLED,
        agent=session.agent, prompt_number=number, epoch=epoch,
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


def _whole(turn: View) -> tuple[tuple[int, int], ...]:
    """What title, text and sections are made of."""
    return tuple((-1, item.id) for item in (turn.prompt, turn.closing) if item is not None)


def _as_summary(item: Item) -> Summary:
    return Summary(
        item.title, item.epoch, dict(item.sections), item.files_read, item.files_modified
    )


def _new(
    store: Store, made: Sequence[Made], known: Sequence[Item], older: Sequence[Item], report: Report
) -> list[Made]:
    """Without what is stored already: told before in this session, by another within the hour, or,
    of what is kept once for a project, more recently."""
    own = {item.ref for item in known}
    observed = [item for item in older if item.kind == "observation"]
    made = sorted(made, key=lambda one: one.item.epoch)
    kept = {
        id(item)
        for item in distinct(
            [*observed, *(one.item for one in made if one.item.kind == "observation")]
        )
    }
    found = []
    for one in made:
        item = one.item
        if item.kind == "observation" and (
            id(item) not in kept
            or (item.ref.startswith("project:") and _newer(store, item))
            or (item.ref not in own and stored_already(store, item, own))
        ):
            report.repeated += 1
            continue
        found.append(one)
    return found


def _newer(store: Store, item: Item) -> bool:
    return any(old.source == DISTILLED and old.epoch > item.epoch for old in store.find(item.ref))


def _write(
    store: Store,
    waiting: Waiting,
    noted: Mapping[str, str],
    made: Sequence[Made],
    entries: Sequence[Entry],
    before: Sequence[Item],
    report: Report,
) -> bool:
    """False, and nothing done, where a language model has noted a turn meanwhile."""
    refs = {one.item.ref for one in made}
    gone = [item for item in before if item.ref not in refs]
    # What a decision had undone that is none any more holds again.
    freed = store.get([item.supersedes for item in gone if item.supersedes])
    with store.transaction():
        if _noted(store, waiting.session) != noted:
            return False
        if gone:
            store.remove([item.id for item in gone])
            store.put([prepared(replace(item, status="active")) for item in freed])
        report.put += store.put(entries)
        store.put_distilled(
            waiting.session.id, waiting.changes, {one.item.ref: one.sources for one in made}
        )
    report.observations += sum(1 for one in made if one.item.kind == "observation")
    report.summaries += sum(1 for one in made if one.item.kind == "summary")
    return True
