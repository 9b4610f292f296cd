"""What a session leaves for good: the rules its user typed, and what the user took back.

A rule that a prompt plainly says is active at once. Anything else that sounds like one is proposed:
it waits for the user's yes (the terminal, the viewer, a typed `/yester:keep 28`) or for a second
utterance in another session, on another day, in another text. Nothing an agent can run says yes.
What was refused, or has waited for 14 days, is put away and never proposed again.

Sessions are distilled in any order, the newest first when there are many. So what is older never
takes the place of what is newer, whichever is met first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from yester.clock import DAY
from yester.errors import YesterError
from yester.memories.chains import link_items
from yester.memories.lifecycle import PATIENCE, change_status
from yester.memories.memory import GLOBAL, Author, read_history, shorten_reason
from yester.memories.remember import Draft, remember
from yester.memories.rules import list_rules, rules_agree, rules_compete
from yester.memories.utterances import Utterance, find_utterances, takes_back, weakens_safety
from yester.model import STATUSES, Feedback, Filters, Item, Memo, Paging, Session, replace
from yester.project import bare_project
from yester.recall.recall import Asked, recall_hits
from yester.store.contract import Store

_A_PROMPT, _A_DAY = 1, 3  # proposals at most
_ALIKE = 15  # items that may be about the same
_COMMAND = re.compile(r"\A\s*/yester:(?P<step>keep|drop)\s+#?(?P<id>\d{1,15})\s*\Z")
_REMEMBER = re.compile(r"\A\s*/yester:remember\s+(?P<text>\S[\s\S]{0,3999})\Z")
_WHO, _SOURCE = "prompt", "typed"
_BY_PROGRAM = "given by a program"
_NEWS = 20  # changes that are looked through for what to announce


def keep_rules(store: Store, session: Session, prompts: Iterable[Item], now: int) -> int:
    """The rules of typed prompts as memories with the user's own words, and what the prompts take
    back; how many rules are new, proposals among them."""
    expire_proposals(store, now)
    typed = _TypedRules(store, session, now)
    return sum(typed.read_prompt(one) for one in prompts if one.kind == "prompt" and not one.actor)


def expire_proposals(store: Store, now: int) -> None:
    """Put away what nobody has said yes to."""
    by = Author("yester", now, "user", "nobody said yes within 14 days")
    for memo in list_rules(store, (), ("proposed",)):
        if memo.since + PATIENCE < now:
            change_status(store, memo.item.id, "drop", by)


def find_news(store: Store, session: str, now: int) -> list[tuple[Feedback, str]]:
    """What became of rules by what the user typed, in this session ("": in any) within a day, each
    once: what to write down when the user was told, and what to tell."""
    news: dict[int, tuple[Feedback, str]] = {}
    for change in read_history(store, limit=_NEWS):
        typed = change.who == _WHO and not change.why.startswith(_BY_PROGRAM)
        if not typed or change.epoch < now - DAY or f"session {session[:8]}" not in change.why:
            continue
        for memo in store.memos(ids=[change.item]):
            status = memo.item.status
            told = Feedback(change.item, f"announced {status}", now)
            known = store.entries(Feedback, {"item": told.item, "what": told.what})
            if status in _ANNOUNCED and not known:
                kept = status == "active" and memo.item.type != "rule"
                form = _REMEMBERED if kept else _ANNOUNCED[status]
                text = form.format(text=memo.item.title, id=change.item)
                news.setdefault(change.item, (told, text))
    return list(news.values())


_ANNOUNCED = {
    "active": "yester keeps a rule: {text}  /yester:drop {id}",
    "proposed": "yester proposes a rule: {text}  /yester:keep {id} or /yester:drop {id}",
    "retired": "yester dropped a rule: {text}  Undo: yester memory restore {id}",
    "archived": "yester dropped a rule: {text}  Undo: yester memory restore {id}",
}


_REMEMBERED = "yester remembers: {text}  Undo: yester memory undo {id}"


def is_command(prompt: str) -> bool:
    return any(pattern.match(prompt) for pattern in (_COMMAND, _REMEMBER))


def is_forged(prompt: Item) -> bool:
    """An agent can forge a hook's event: only what the transcript has too was typed."""
    return prompt.ref.startswith("hook:")


class _TypedRules:
    def __init__(self, store: Store, session: Session, now: int) -> None:
        self._store, self._now = store, now
        known = (one for one in store.projects() if one.key == session.project)
        self._project = next(known, bare_project(session.project))
        self._places = (session.project, GLOBAL.key)

    def read_prompt(self, prompt: Item) -> int:
        """How many rules are new. A headless run was given its prompt by a program: it proposes."""
        if is_forged(prompt):
            return 0  # it comes again with the transcript, if the user typed it
        typed = prompt.origin == "user"
        if command := _COMMAND.match(prompt.body):
            if typed:
                self._obey_command(prompt, command["step"], int(command["id"]))
            return 0
        if told := _REMEMBER.match(prompt.body):
            return self._remember(prompt, told["text"].strip()) if typed else 0
        said = find_utterances(prompt.body)
        kept = proposed = 0
        for place, rule in enumerate(one for one in said if one.kind == "rule"):
            draft = Draft(
                rule.text, "rule", scope=rule.scope, source=_SOURCE,
                content={"rule": rule.text, "reason": ""},  # as typed, with its reason
                ref=f"rule:{prompt.ref}:{place}", session=prompt.session, agent=prompt.agent,
                epoch=prompt.epoch,
            )  # fmt: skip
            if self._is_outdated(draft):
                continue
            if rule.sure and typed:
                kept += self._keep_rule(draft, prompt)
            elif proposed < _A_PROMPT:
                proposed += self._propose_rule(draft, prompt, rule.own)
        if typed:
            self._take_back(said, prompt)
        return kept + proposed

    def _author(self, prompt: Item, what: str = "typed", text: str = "") -> Author:
        if prompt.origin != "user":
            what = _BY_PROGRAM
        why = f"{what} in session {prompt.session[:8]}" + (f": {text}" if text else "")
        return Author(_WHO, self._now, "user", shorten_reason(why))

    def _obey_command(self, prompt: Item, step: str, id_: int) -> None:
        by = self._author(prompt, text=prompt.body.strip())
        for memo in self._store.memos(ids=[id_]):
            if memo.item.type == "rule" and not self._was_done(memo, by):
                with suppress(YesterError):  # it is kept or dropped already
                    change_status(self._store, id_, step, by)

    def _remember(self, prompt: Item, text: str) -> int:
        """What the user wants kept, as `yester remember` would. Once: what was undone since stays
        undone."""
        ref = f"remember:{prompt.ref}"
        if self._store.memos(ids=[item.id for item in self._store.find_by_ref(ref)]):
            return 0
        draft = Draft(
            text, source=_SOURCE, ref=ref, session=prompt.session, agent=prompt.agent,
            epoch=prompt.epoch,
        )  # fmt: skip
        kept = remember(self._store, draft, self._project, self._author(prompt))
        return int(kept.done == "created")

    def _was_done(self, memo: Memo, by: Author) -> bool:
        """Things are done once: what was undone since stays undone."""
        return any(change.why == by.why for change in read_history(self._store, memo.item.id))

    def _is_outdated(self, draft: Draft) -> bool:
        """Has the user said otherwise since, or edited this very one?"""
        where = GLOBAL.key if draft.scope == "global" else self._project.key
        return any(
            memo.item.ref == draft.ref
            or (memo.item.project == where and rules_compete(memo.content, {"rule": draft.text}))
            for memo in list_rules(self._store, self._places)
            if memo.item.epoch > draft.epoch
        )

    def _keep_rule(self, draft: Draft, prompt: Item) -> int:
        by = self._author(prompt)
        for memo in self._find_alike(draft, ("proposed",)):
            change_status(self._store, memo.item.id, "keep", by)
            return 1
        kept = remember(self._store, draft, self._project, by)
        if kept.done != "created":
            return 0
        found = self._recall(draft.text, "prompt")
        for later in sorted(found, key=lambda item: item.epoch):
            if later.epoch > prompt.epoch and later.origin == "user" and not is_forged(later):
                self._take_back(find_utterances(later.body), later)
        return 1

    # --- proposed ----------------------------------------------------------------------------

    def _propose_rule(self, draft: Draft, prompt: Item, own: bool) -> int:
        if draft.epoch < self._now - PATIENCE:
            return 0
        alike = self._find_alike(draft, STATUSES)
        for memo in alike:
            second = own and self._is_second_word(memo, draft, prompt)
            if memo.item.status == "proposed" and second:
                change_status(self._store, memo.item.id, "keep", self._author(prompt, "said again"))
                return 1
        if alike or self._count_today() >= _A_DAY:
            return 0
        by = self._author(prompt)
        kept = remember(self._store, replace(draft, status="proposed"), self._project, by)
        return int(kept.done == "created")

    def _count_today(self) -> int:
        """Proposals of this day, whatever became of them."""
        known = list_rules(self._store, (), STATUSES)
        first = [read_history(self._store, one.item.id)[-1] for one in known]
        today = [one for one in first if one.epoch // DAY == self._now // DAY]
        return sum(one.after.get("status") == "proposed" for one in today)

    def _find_alike(self, draft: Draft, statuses: tuple[str, ...]) -> list[Memo]:
        known = list_rules(self._store, self._places, statuses)
        return [memo for memo in known if rules_agree(memo.content["rule"], draft.text)]

    def _is_second_word(self, memo: Memo, draft: Draft, prompt: Item) -> bool:
        """It is a yes, except to what makes work less safe."""
        if prompt.origin != "user" or weakens_safety(draft.text):
            return False
        ref = memo.item.ref.removeprefix("rule:").rpartition(":")[0]
        return memo.item.epoch // DAY != prompt.epoch // DAY and not any(
            one.session == prompt.session or one.body == prompt.body
            for one in self._store.find_by_ref(ref)
        )

    # --- taken back --------------------------------------------------------------------------

    def _take_back(self, said: Iterable[Utterance], prompt: Item) -> None:
        for one in said:
            if one.kind != "withdrawal" or not one.sure:
                continue
            if one.ends == "newest":
                self._end_newest(one, said, prompt)
            else:
                self._end_rule(one, prompt)
                self._end_decision(one, prompt)

    def _end_newest(self, one: Utterance, said: Iterable[Utterance], prompt: Item) -> None:
        """Where nothing is named, the rule said just before is meant: in the same prompt, or else
        in the one before it."""
        by = self._author(prompt, "taken back", one.text)
        before = Filters(session=prompt.session, kinds=("prompt",), until=prompt.epoch - 1)
        typed = (item for item in self._store.select(before, Paging(5)) if not item.actor)
        here = {rule.text for rule in said if rule.kind == "rule" and rule.span < one.span}
        last = next(typed, None)
        meant = [
            memo
            for memo in list_rules(self._store, self._places, ("active", "proposed"))
            if (memo.item.epoch == prompt.epoch and memo.content["rule"] in here)
            or (not here and last is not None and memo.item.epoch == last.epoch)
        ]
        if meant and not any(self._was_done(memo, by) for memo in meant):
            change_status(self._store, max(memo.item.id for memo in meant), "retire", by)

    def _end_rule(self, one: Utterance, prompt: Item) -> None:
        """Retire the one rule that a prompt takes back; where several can be meant, none. One that
        has been retired is brought back when an older rule turns up that it may mean too."""
        by = self._author(prompt, "taken back", one.text)
        meant = [
            memo
            for memo in list_rules(self._store, self._places, ("active", "proposed", "retired"))
            if memo.item.epoch < prompt.epoch
            and (memo.item.status != "retired" or memo.reason == by.why)
            and takes_back(one, memo.item.body)
        ]
        several = len({memo.item.body for memo in meant}) > 1
        for memo in meant:
            if memo.item.status == "retired" and several:
                unclear = replace(by, why="not clear which rule was meant")
                change_status(self._store, memo.item.id, "restore", unclear)
            elif memo.item.status != "retired" and not several and not self._was_done(memo, by):
                change_status(self._store, memo.item.id, "retire", by)

    def _end_decision(self, one: Utterance, prompt: Item) -> None:
        """The one decision that a prompt takes back: the prompt stands in its place."""
        found = self._recall(one.about or one.text, "observation", ("decision",))
        meant = [
            item for item in found if item.epoch < prompt.epoch and takes_back(one, item.title)
        ]
        if len(meant) == 1 and not prompt.supersedes:
            link_items(self._store, prompt, meant[0])

    def _recall(self, text: str, kind: str, types: tuple[str, ...] = ()) -> list[Item]:
        filters = Filters(projects=(self._project.key,), kinds=(kind,), types=types)
        asked = Asked(text, k=_ALIKE, now=self._now, filters=filters)
        return self._store.get([hit.id for hit in recall_hits(self._store, asked)])
