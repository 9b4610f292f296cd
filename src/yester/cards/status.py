"""What came of a turn, by evidence: what was run, committed and taken back decides, and what the
agent said of it never does.

    reverted    its changes were taken back, by itself or by one of the next turns
    open        the session ended in the midst of its changes, or with a question for the user;
                the next prompt broke into it; its commit was refused
    failed      the last check of its changes failed
    done        a check of its changes passed, or the last of them were committed
    changed     files were changed, and nothing has verified it, or no more than a linter
    answered    nothing was changed: a question and its answer
    talk        nothing was changed, and nothing worth keeping was said

The first that fits. A turn's status may change with the next `back` turns, and with no later one,
so that looking at the last turns alone gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from yester.cards.titles import find_request, heading_title, is_imperative
from yester.cards.tools import (
    CHECKS,
    Commit,
    check_parts,
    file_name,
    is_missing_tool,
    is_prose,
    makes_file,
    program_name,
    removed_files,
    split_command,
)
from yester.cards.turns import LOOK_BACK, PLANS, Step, View, inverts_edit, rewrites_edit
from yester.model import Item, replace
from yester.tables import load_pattern
from yester.text.statements import cut_clause

_pattern = partial(load_pattern, "tools")

STATUSES = ("reverted", "open", "failed", "done", "changed", "answered", "talk")
_NO_NAME = re.compile(r"^-|[*$]")
# Not files: a branch is made or a side is taken.
_OTHER_CHECKOUT = {"-b", "-B", "--orphan", "--track", "-t", "--ours", "--theirs", "--detach"}
UNSTARTED = "plan not started"
BROKEN_OFF = "broken off"
BROKEN_INTO = "broken into by the next prompt"
ASKS = "asks the user"
_EDITED_BACK = "edited back"
_OVERRULED = "changed again at the next prompts"
COMMIT_FAILED = "`git commit` failed"
_ANSWER = 160  # characters of a closing message that says something
_EARLY_ANSWER = 500  # … of one that more was done after
_COMMAND = 60
_PROMPT = 300  # characters at the beginning of a prompt or an answer


@dataclass(frozen=True, slots=True)
class Status:
    """`evidence` says what it rests on, in a few words; "" where that is nothing but the lack of
    any."""

    word: str
    evidence: str = ""
    undoes: bool = False  # all it did was to put back what earlier turns had changed

    @property
    def text(self) -> str:
        return f"{self.word}: {self.evidence}" if self.evidence else self.word

    @property
    def is_committed(self) -> bool:
        return self.evidence.startswith("committed")

    @property
    def holds(self) -> bool:
        """Is there a result that was not taken back?"""
        return self.word in ("done", "changed")


@dataclass(slots=True)
class _Edit:
    """A change of one file, and in which turn what became of it."""

    turn: int
    file: str
    step: Step
    committed: int = -1
    commit: _Made | None = None
    gone: int = -1
    by: str = ""  # what took it back
    stashed: bool = False
    undoes: int = -LOOK_BACK - 1  # the earlier turn whose change it puts back
    rewritten: int = -1  # in which turn something else was put in its place


@dataclass(slots=True)
class _Made:
    """A commit, what it holds, and its id from which turn on: "" where it was made anew and nobody
    has told the new one."""

    turn: int
    step: Step
    commit: Commit
    edits: list[_Edit]
    ids: list[tuple[int, str]]
    pull_request: tuple[int, str] = (0, "")  # opened with it, in which turn

    def id_until(self, turn: int) -> str:
        return next((id_ for since, id_ in reversed(self.ids) if since <= turn), "")

    def named_until(self, turn: int) -> str:
        """`4be1c02 in PR #12`"""
        opened, number = self.pull_request
        within = f"in PR #{number}" if number and opened <= turn else ""
        return " ".join(filter(None, (self.id_until(turn), within)))


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit and the steps of the work it holds; its own turn may be a later one."""

    step: Step
    commit: Commit
    edits: tuple[Step, ...]
    turn: View  # in which it was committed


@dataclass(slots=True)
class Changes:
    """The changes of a session, as they come and go."""

    turns: Sequence[View]
    edits: list[_Edit] = field(default_factory=list)
    commits: list[_Made] = field(default_factory=list)
    deeds: dict[int, str] = field(default_factory=dict)  # turn → what it did beside its files
    removed: dict[int, list[str]] = field(default_factory=dict)  # by a shell, in each turn
    staged: set[str] = field(default_factory=set)  # what the turn has added to the index

    def follow(self) -> Changes:
        for at, turn in enumerate(self.turns):
            self.staged = set()
            for step in turn.steps:
                self.add(at, step)
                self.follow_command(at, step)
        return self

    def commits_by_turn(self, back: int) -> list[list[Committed]]:
        """For each turn the commits of its work. Work is often committed in a turn of its own
        ("commit this"): then it counts where most of it was done, else where the last of it was, at
        most so many turns earlier."""
        found: list[list[Committed]] = [[] for _ in self.turns]
        for made in self.commits:
            near_by = [one for one in made.edits if made.turn - one.turn <= back]
            turns = [one.turn for one in near_by] or [made.turn]
            place = max(turns, key=turns.count)
            place = place if 3 * turns.count(place) >= 2 * len(turns) else turns[-1]
            steps = tuple({one.step.item.id: one.step for one in near_by}.values())
            commit = replace(made.commit, hash=made.id_until(place + back))
            found[place].append(Committed(made.step, commit, steps, self.turns[made.turn]))
        return found

    def find_subject(self, turn: int, back: int) -> str:
        """Of the commit that holds most of a turn's work, or that it has made."""
        held = [
            one.commit
            for one in self.edits
            if one.turn == turn and one.commit is not None and one.commit.turn <= turn + back
        ]
        made = sorted(held, key=held.count) or [one for one in self.commits if one.turn == turn]
        return made[-1].commit.subject if made and not made[-1].commit.fixes_up else ""

    def acts(self, turn: int) -> bool:
        """Was something committed in it, or done beside the project's files?"""
        return turn in self.deeds or any(one.turn == turn for one in self.commits)

    def add(self, turn: int, step: Step) -> None:
        for file in step.edited:
            live = (one for one in self.edits if one.gone < 0 and one.file == file)
            undone = next((one for one in live if inverts_edit(one.step, step)), None)
            if undone is not None:
                undone.gone, undone.by = turn, _EDITED_BACK
                self._remove_files(turn)
            for one in self._uncommitted():
                if one.file == file and one.rewritten < 0 and rewrites_edit(one.step, step):
                    one.rewritten = turn
            for one in self.edits:
                if one.file == file and one.step.item.body == step.item.body:
                    one.gone = -1  # done once more
            self.edits.append(_Edit(turn, file, step))
            if undone is not None and undone.turn < turn:
                self.edits[-1].undoes = undone.turn

    def follow_command(self, turn: int, step: Step) -> None:
        if step.ran.refused:
            return
        parts = split_command(step.ran.command)
        self._note_deeds(turn, step, parts)
        if not step.ran.failed:
            self.removed.setdefault(turn, []).extend(removed_files(step.ran.command))
            self._remove_files(turn)
        if step.ran.failed:  # what was put away first stays away: it was not brought back
            parts = parts[:1] if len(parts) > 1 and parts[0].startswith("git stash") else []
        kept = any(_pattern("keeps commits").match(part) for part in parts)
        for part in parts:
            found = _pattern("git changes").match(part)
            if found is None or (found[1] == "reset" and kept):
                continue
            words = [word.strip("'\"") for word in found[2].split()]
            if found[1] == "add":
                self.staged.update(words)
            elif found[1] == "stash" and {"pop", "apply"} & set(words):
                for one in self.edits:
                    one.gone = -1 if one.stashed else one.gone
            else:
                by = f"`{cut_clause(part, _COMMAND)}`"
                for one in self._taken_back(found[1], words):
                    one.gone, one.by, one.stashed = turn, by, found[1] == "stash"
                if found[1] == "revert":
                    self.deeds.setdefault(turn, by)
        self._follow_commits(turn, step)

    def _remove_files(self, turn: int) -> None:
        """What a turn made and never committed is taken back with its file, where this one has put
        back an edit of it, too. A file that is only removed may have been there for a while."""
        paths = self.removed.get(turn, ())
        back = {one.turn for one in self.edits if (one.gone, one.by) == (turn, _EDITED_BACK)}
        for one in self._uncommitted() if paths and back else ():
            first = next(other for other in self.edits if other.file == one.file)
            named = any(_names(path, one.file) for path in paths)
            if named and one.turn in back - {turn} and makes_file(first.step.item):
                one.gone, one.by = turn, _EDITED_BACK

    def _follow_commits(self, turn: int, step: Step) -> None:
        self._rename(turn, step)
        if step.pull_request and self.commits:
            self.commits[-1].pull_request = turn, step.pull_request
        for commit in step.commits:
            held = self._held_by(turn, step)
            if step.rewrites == "amend" and self.commits:  # under another name
                held = [*self.commits.pop().edits, *held]
            self.commits.append(_Made(turn, step, commit, held, [(turn, commit.hash)]))
            if step.ran.status is not None:  # else nobody knows whether it was made
                self._mark(held, self.commits[-1], turn)
        if step.rewrites == "amend" and not step.commits:
            self._amend(turn, step)

    def _note_deeds(self, turn: int, step: Step, parts: Iterable[str]) -> None:
        """What changes something outside of the project's files, as far as the agent tells of it at
        the end. A merge stands for what else was done with it, and all else for a push."""
        if step.failed:
            return
        if _pattern("acting tool").match(step.item.tool):
            self.deeds.setdefault(turn, f"`{step.item.tool}`")
        closing = self.turns[turn].closing
        for part in parts:
            found = _pattern("acts").match(part) or _pattern("removes folder").match(part)
            if found is None:
                continue
            told = closing is not None and file_name(found["of"] or "") in closing.body
            if told or not found["of"]:
                merges = part.startswith("gh pr merge")
                did = f"`{cut_clause(part if merges else part.partition(' -')[0], _COMMAND)}`"
                did = "`git push`" if found[0].endswith("push") else did
                known = self.deeds.get(turn, "")
                better = merges or known in ("", "`git push`")
                self.deeds[turn] = did if better else known

    def _amend(self, turn: int, step: Step) -> None:
        """What is added to a commit is told of where that was made."""
        made = self.commits[-1] if self.commits else None
        if step.printed:
            commit = step.printed[0]
            same = [one for one in self.commits if one.commit.subject == commit.subject]
            made = same[-1] if same else _Made(turn, step, commit, [], [(turn, commit.hash)])
        if made is not None:
            self._mark(self._held_by(turn, step), made, turn)

    def _rename(self, turn: int, step: Step) -> None:
        """Commits that were made anew have lost their ids; the new ones stand next to their
        subjects."""
        lost = {"rebase": self.commits, "amend": self.commits[-1:]}.get(step.rewrites, [])
        for made in lost:
            made.ids.append((turn, ""))
        for commit in step.printed:
            for made in self.commits:
                lost_id = made.commit.hash and (step.rewrites or not made.ids[-1][1])
                if lost_id and made.commit.subject == commit.subject:
                    made.ids.append((turn, commit.hash))

    def _mark(self, held: Iterable[_Edit], made: _Made, turn: int) -> None:
        for one in held:
            one.committed, one.commit = turn, made
        self.staged = set()

    def _held_by(self, turn: int, step: Step) -> list[_Edit]:
        """What was added by name in this turn is in it, and nothing else; where nothing was, or not
        by name, everything is. Names that mean no file we know say only that it is this turn's."""
        open_ = self._uncommitted()
        if step.folder:  # of several repositories only this one is committed
            near = [one for one in open_ if one.file.startswith(f"{step.folder}/")]
            open_ = near or open_
        by_name = self.staged and not any(_NO_NAME.search(path) for path in self.staged)
        held = [one for one in open_ if any(_names(path, one.file) for path in self.staged)]
        if not by_name or _pattern("commits all").search(step.ran.command):
            held = open_
        return held or [one for one in open_ if one.turn == turn] or open_

    def _uncommitted(self) -> list[_Edit]:
        return [one for one in self.edits if one.gone < 0 and one.committed < 0]

    def _taken_back(self, name: str, words: Sequence[str]) -> list[_Edit]:
        """What a command of git takes back."""
        named = [word for word in words if not word.startswith("-")]
        options = set(words) - set(named)
        if name == "revert":
            last = self.commits[-1:] if "HEAD" in named else []
            ids = [(made, id_) for made in self.commits for _, id_ in made.ids if id_]
            last += [made for made, id_ in ids if any(word.startswith(id_) for word in named)]
            return [one for made in last for one in made.edits]
        if name == "reset":
            if "--hard" not in options:
                return []
            back = _pattern("back by").search(" ".join(named))
            number = (len(back[2]) if back[2] else int(back[1] or 1)) if back else 0
            held = [one for made in self.commits[::-1][:number] for one in made.edits]
            return [*self._uncommitted(), *held]
        if name == "stash":
            return self._uncommitted() if (named or ["push"])[0] in ("push", "save") else []
        only_staged = "--staged" in options and not options & {"--worktree", "-W"}
        if options & _OTHER_CHECKOUT or only_staged:
            return []
        return [one for one in self._uncommitted() if any(_names(path, one.file) for path in named)]


def _names(path: str, file: str) -> bool:
    """Does a path on the command line mean this file, a folder above it, or everything?"""
    if path in (".", "*", ":/"):
        return True
    return f"/{path.removeprefix('./').rstrip('/')}/" in f"/{file}/"


def narrow_turn(turn: View, status: Status) -> View:
    """A turn as it is told of: without changes that only put back what earlier turns had changed,
    and with the answer that it gave before it went on with something else."""
    if status.undoes:
        turn = replace(turn, steps=tuple(replace(one, edited=()) for one in turn.steps))
    if status.word == "answered" and turn.closing is None:
        return replace(turn, answer=_early_answer(turn))
    return turn


def _early_answer(turn: View) -> Item | None:
    """Of a turn without a last word the longest of what was said, if it is no mere announcement."""
    longest = max(turn.said, key=lambda item: len(item.body), default=None)
    return longest if longest is not None and len(longest.body) >= _EARLY_ANSWER else None


def judge_turns(changes: Changes, back: int) -> list[Status]:
    """The status of each turn."""
    own: dict[int, list[_Edit]] = {}
    for one in changes.edits:
        own.setdefault(one.turn, []).append(one)
    return [_judge(changes, at, own.get(at, []), back) for at in range(len(changes.turns))]


def _judge(changes: Changes, at: int, edits: Sequence[_Edit], back: int) -> Status:
    turns = changes.turns
    turn, until = turns[at], at + back
    left = [one for one in edits if not at <= one.gone <= until]
    if taken_back := _taken_back_by(changes, at, edits, left, back):
        return Status("reverted", taken_back)
    committed = [one for one in left if at <= one.committed <= until]
    last = at == len(turns) - 1  # what came after it has gone on from there
    broken = _broken_off(turns, at, left, back)
    if broken and (not left or len(committed) < len(left)):
        return Status("open", broken)
    failing, passing = _checks(turn, left)
    if not last and turn.is_stopped:
        if left and failing is not None and _is_broken_into(turns, at):
            return Status("open", BROKEN_INTO)
        failing = None  # what the user stopped in the middle has not come to its end
    if failing is not None and (left or not _commits_after(turn, failing)):
        again = _checked_later(turns, at, left, back) if left else None
        same = again is not None and (again.main == failing.main or bool(again.commits))
        # What somebody commits later in spite of it has been found good enough; and that it fails
        # may be the very answer.
        fine = left and all(at < one.committed <= until for one in left)
        if not (same or fine or (not left and _is_answer(turn))):
            return Status("failed", _run_text(failing))
        passing = again if same else None  # nothing had to be changed for it
    refusing = None if passing is not None or committed else _refusing(changes, at, left)
    if refusing is not None:
        return Status("failed", _run_text(refusing))
    if left and not committed and _is_review(turn, left):
        return _said_only(turns, at, passing)
    if left:
        judged = _judge_left(changes, at, left, passing, back)
        undoes = judged.word == "changed" and all(one.undoes >= at - back for one in left)
        return replace(_said_only(turns, at, None), undoes=True) if undoes else judged
    own = (made for made in changes.commits if made.turn == at)
    if mine := [made for made in own if made.step.ran.status is not None]:
        last_id = [made.named_until(until) for made in mine if made.step is mine[0].step][-1]
        return Status("done", f"committed {last_id}".strip())
    if at in changes.deeds:  # of a commit of another session, or of an earlier turn
        return Status("done", "; ".join(filter(None, (changes.deeds[at], _run_text(passing)))))
    committed_later = any(at < made.turn <= until for made in changes.commits)
    if _is_commit_refused(turn) and not committed_later:
        return Status("open", COMMIT_FAILED)
    return _said_only(turns, at, passing)


def _taken_back_by(
    changes: Changes, at: int, edits: Sequence[_Edit], left: Sequence[_Edit], back: int
) -> str:
    """What took back the changes of a turn; "": they are still there, or there were none."""
    turn, until = changes.turns[at], at + back
    if turn.edited and (not left or _is_mostly_back(edits, at, until)):
        return edits[-1].by if edits and not left else _EDITED_BACK
    if left and (later := _given_up(changes.turns, at, left, back)):
        return later
    if left and not turn.is_stopped and _is_overruled(changes.turns, left, until):
        return _OVERRULED
    tried = turn.put_back and not (turn.edited or changes.acts(at))
    return _EDITED_BACK if tried and not _is_answer(turn) else ""


def _is_review(turn: View, left: Sequence[_Edit]) -> bool:
    """Did it only try the tests of what it reports on? A client may not tell that it put them
    back."""
    tests = load_pattern("tools", "test file")
    heading = heading_title(turn.closing) if turn.closing is not None else ""
    reviews = load_pattern("statements", "review").search(heading) is not None
    return reviews and all(tests.search(one.file) for one in left)


def _judge_left(
    changes: Changes, at: int, left: Sequence[_Edit], passing: Step | None, back: int
) -> Status:
    """Something was changed, was not taken back, and no check has failed since."""
    turns, turn, until = changes.turns, changes.turns[at], at + back
    committed = [one for one in left if at <= one.committed <= until]
    ids = [one.commit.named_until(until) for one in committed if one.commit is not None]
    named = ", ".join(dict.fromkeys(ids)) if all(ids) else ""  # one id would stand for another's
    loose = _changed_since(turn, left, committed)
    told, lacks = f"committed {named}".strip() if committed and not loose else "", ""
    if loose or (not committed and _is_commit_refused(turn)):
        lacks = _lacking(turn, named, bool(loose))
    if passing is None and not told:
        passing = _checked_later(turns, at, loose or left, back)
    deed = turn.last_deed
    unfinished = deed is not None and not (deed.commits or deed.checks or deed.ran.command)
    later = any(at < one.committed <= until for one in left)  # then it was found good as it was
    broken_into = _is_broken_into(turns, at) and not _goes_on(turns, at, left, back)
    if unfinished and not later and broken_into:
        return Status("open", BROKEN_INTO)
    if passing is not None or (not loose and 2 * len(committed) > len(left)):
        return Status("done", "; ".join(filter(None, (told or lacks, _run_text(passing)))))
    if broken_into:
        return Status("open", BROKEN_INTO)
    return Status("changed", "; ".join(filter(None, (_verified_by(turn, left), lacks))))


def _changed_since(turn: View, left: Sequence[_Edit], committed: Sequence[_Edit]) -> list[_Edit]:
    """What a turn has changed after its last commit, and nobody has committed since; no prose,
    where there is anything else."""
    made = [step for step in turn.steps if step.commits or step.rewrites]
    later = any(one.commit and one.commit.turn > left[-1].turn for one in committed)
    if not committed or not made or later:
        return []
    since = turn.steps.index(made[-1])
    telling = [one for one in left if not is_prose(one.file)] or left
    loose = (one for one in telling if not any(one is other for other in committed))
    return [one for one in loose if turn.steps.index(one.step) > since]


def _is_commit_refused(turn: View) -> bool:
    """Did its last try to commit fail? Where the agent has looked at the log then, it may have
    found it there: a hook may fail after the commit."""
    tries = [one for one in turn.steps if _pattern("git commit").search(one.ran.command)]
    if not tries or not tries[-1].ran.failed or tries[-1].ran.refused:
        return False
    after = turn.steps[turn.steps.index(tries[-1]) + 1 :]
    looks = (part for one in after for part in split_command(one.ran.command))
    return not any(part.startswith(("git log", "git show")) for part in looks)


def _lacking(turn: View, named: str, loose: bool) -> str:
    """What is to be said of changes that are in no commit, though there was one or a try."""
    what = f"changes after {named} " if named else "later changes " if loose else ""
    return f"{what}not committed" + (f", {COMMIT_FAILED}" if _is_commit_refused(turn) else "")


def _is_broken_into(turns: Sequence[View], at: int) -> bool:
    """Did the next prompt come before the agent had come to its end? A plan that was refused is
    carried out there. Of a client that does not tell what the agent said nobody knows."""
    turn = turns[at]
    deed = turn.last_deed
    if deed is None or at == len(turns) - 1 or not turn.said:
        return False
    return turn.closing is None and deed.item.tool not in PLANS


def _goes_on(turns: Sequence[View], at: int, left: Sequence[_Edit], back: int) -> bool:
    """Does one of the next turns change the same files?"""
    files = {one.file for one in left}
    return any(files & set(turn.edited) for turn in turns[at + 1 : at + 1 + back])


def _is_mostly_back(edits: Sequence[_Edit], at: int, until: int) -> bool:
    """Has a later turn put back most changes of code? The rest may be written otherwise there."""
    code = [one for one in edits if not is_prose(one.file)]
    back = [one for one in code if at < one.gone <= until and one.by == _EDITED_BACK]
    return len(back) > 1 and 3 * len(back) >= 2 * len(code)


def _is_overruled(turns: Sequence[View], left: Sequence[_Edit], until: int) -> bool:
    """Was something else put in the place of all that it has changed, by turns that begin with an
    objection?"""
    by = {one.rewritten for one in left if not is_prose(one.file)}
    prompts = [turns[at].prompt for at in by if 0 <= at <= until]
    objects = load_pattern("statements", "objects")
    return (
        bool(by)
        and len(prompts) == len(by)
        and all(prompt is not None and objects.search(prompt.body[:_PROMPT]) for prompt in prompts)
    )


def _is_answer(turn: View) -> bool:
    """Was a question asked, and answered?"""
    asked, closing = find_request(turn.prompt), turn.closing
    if closing is None or not closing.body.strip():
        return False
    says_so = load_pattern("statements", "yes or no").match(closing.body)
    return says_so is not None or (asked[-1:] in ("?", "？") and not is_imperative(asked))


def _refusing(changes: Changes, at: int, left: Sequence[_Edit]) -> Step | None:
    """The last command of the turn, if it is no look at anything and has failed, and the closing
    message says of it that it does not work. Of what it was, its kind need not be known."""
    turn = changes.turns[at]
    if turn.closing is None or changes.acts(at) or _is_answer(turn):
        return None
    since = turn.steps.index(left[-1].step) if left else 0
    ran = [one for one in turn.steps[since:] if one.ran.command and one.kind not in ("look", "vcs")]
    own = [one for one in ran if not one.item.actor]
    if not own or own[-1].kind in CHECKS or not own[-1].failing:
        return None
    said = load_pattern("statements", "does not work").search(turn.closing.body[:_PROMPT])
    return own[-1] if said else None


def _commits_after(turn: View, run: Step) -> bool:
    """Was work of other turns committed in spite of a run that failed?"""
    after = turn.steps[turn.steps.index(run) :]
    return any(step.commits for step in after)


def _asks_user(closing: str) -> bool:
    """Does it end with what only the user can say or try? An offer decides nothing."""
    names = "asks to decide", "asks to try"
    if any(load_pattern("statements", name).search(closing) for name in names):
        return True
    if not closing.rstrip(" *_)\"'").endswith("?"):
        return False
    last = closing[:-1].rpartition(". ")[2]
    return load_pattern("statements", "idle question").search(last) is None


def _said_only(turns: Sequence[View], at: int, passing: Step | None) -> Status:
    """Nothing was changed."""
    turn, last = turns[at], at == len(turns) - 1
    closing = turn.closing.body.rstrip() if turn.closing is not None else ""
    said = closing or (turn.is_stopped and turn.said)
    if last and _asks_user(closing[-400:]):
        return Status("open", ASKS)
    looked = any(not step.why_not for step in turn.steps)
    early = None if closing or said else _early_answer(turn)
    telling = len(closing) >= _ANSWER or (said and looked) or early is not None
    if passing is None and not telling:
        return Status("talk")
    if early is None and _is_broken_into(turns, at):
        return Status("open", BROKEN_INTO)
    return Status("answered", _run_text(passing))


def _given_up(turns: Sequence[View], at: int, left: Sequence[_Edit], back: int) -> str:
    """Does the next turn that touches most of its files say that it goes back?"""
    files = {one.file for one in left}
    for later in turns[at + 1 : at + 1 + back]:
        if touched := files & set(later.edited):
            typed = later.prompt.body[:_PROMPT] if later.prompt is not None else ""
            found = load_pattern("statements", "go back").search(typed)
            most = 2 * len(touched) >= len(files)
            told = cut_clause(found[0], _COMMAND) if found else ""
            return f"“{told}” in the next prompts" if found and most else ""
    return ""


def _broken_off(turns: Sequence[View], at: int, left: Sequence[_Edit], back: int) -> str:
    """Was its last deed refused by the user, and no later turn goes on with it, on the same files
    or with the very command; or did the session end with a change, or while it only looked around?
    What was said of it is an end, and so is a check that passed. Where nothing was changed, the
    next prompt goes on with it."""
    turn, ends = turns[at], at == len(turns) - 1
    deed = turn.last_deed
    if deed is None or turn.closing is not None:
        return ""
    later = turns[at + 1 : at + 1 + back]
    goes_on = _goes_on(turns, at, left, back)
    goes_on |= any(step.main and step.main == deed.main for turn in later for step in turn.steps)
    if deed.ran.refused and (ends or (left and not goes_on)):
        return UNSTARTED if deed.item.tool in PLANS else BROKEN_OFF
    looks = not left and not deed.ran.command and not any(step.commits for step in turn.steps)
    return BROKEN_OFF if ends and (deed.edited or looks) else ""


def _checks(turn: View, left: Sequence[_Edit]) -> tuple[Step | None, Step | None]:
    """The last check since its last change, as one that failed or as one that passed. A linter
    counts where nothing else was run; that it is content proves something where it was not before,
    and its complaints are no failure of what was committed after them."""
    # No test looks at prose.
    telling = [one for one in left if not is_prose(one.file)] or left
    last = telling[-1].step if telling else None
    names = {file_name(one.file) for one in left}
    after = last is None
    best: Step | None = None
    complained: set[str] = set()
    for step in turn.steps:
        if step.kind == "lint" and step.passed is False:
            complained.add(program_name(step.main))
        tells = step.passed is not None and step.kind in CHECKS
        if after and tells and not _is_foreign(step, names):
            better = step.kind != "lint" or best is None or best.kind == "lint"
            best = step if better else best
        elif after and best is None and _refuses_file(step, names):
            best = step
        after = after or step is last
    if best is None:
        return None, None
    passed = bool(best.passed)
    if best.kind == "lint" and passed and program_name(best.main) not in complained:
        return None, None  # that it is tidy does not say that it works
    if best.kind == "lint" and not passed and left and all(one.committed >= 0 for one in left):
        return None, None
    return (None, best) if passed else (best, None)


def _verified_by(turn: View, left: Sequence[_Edit]) -> str:
    """What has at least looked at the code since its last change, and not only formatted it."""
    checks = [one for one in turn.steps[turn.steps.index(left[-1].step) :] if one.checks]
    if not checks or any(one.failing for one in checks):
        return "not verified"
    parts = [part for one in checks if one.passed for part in split_command(one.ran.command)]
    linting = [one for one in parts if check_parts(one) and not _pattern("formats").search(one)]
    return f"only `{cut_clause(linting[-1], _COMMAND)}` passed" if linting else "not verified"


def _is_foreign(step: Step, names: Collection[str]) -> bool:
    """Does a linter complain, and only of files that were not changed?"""
    if step.kind != "lint" or step.passed or not step.errors or not names:
        return False
    places = [_pattern("place of an error").match(error.text) for error in step.errors]
    return all(place is not None and file_name(place[0]) not in names for place in places)


def _refuses_file(step: Step, names: Collection[str]) -> bool:
    """Did an interpreter that was given a changed file fail?"""
    interpreter = _pattern("interpreter")
    if not step.ran.failed or step.kind or not interpreter.match(step.main):
        return False
    missing = any(is_missing_tool(error.text) for error in step.errors)
    return not missing and any(name in step.ran.command for name in names)


def _checked_later(turns: Sequence[View], at: int, left: Sequence[_Edit], back: int) -> Step | None:
    """The first run of a test in the next turns, before these files are changed again."""
    files = {one.file for one in left}
    if not any(_pattern("code file").search(file) for file in files):
        return None  # tests do not look at it
    for later in turns[at + 1 : at + 1 + back]:
        for step in later.steps:
            if files & set(step.edited):
                return None
            if (step.kind == "test" or step.commits) and step.passed is not None:
                return step if step.passed else None
    return None


def _run_text(step: Step | None) -> str:
    """`pytest -q` 2 failed"""
    if step is None:
        return ""
    told = "tests at the commit" if step.commits else f"`{cut_clause(step.main, _COMMAND)}`"
    if step.counted:
        return f"{told} {step.counted}"
    return f"{told} {'passed' if step.passed else 'failed'}"
