"""Standing rules: what the user has told their agents once, for good.

No search finds them, since the prompt they apply to need not name them; so all that apply are
shown, in a small budget. Of two rules about the same the newer one stands: within a scope it takes
the other's place when it is written, between scopes the narrower one is heard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from yester.agents.values import relative_path
from yester.memories.chains import find_contradiction, name_terms, overlap, parse_claims
from yester.memories.frames import answer_differently
from yester.memories.memory import GLOBAL
from yester.model import SCOPES, Filters, Item, Memo, Paging, Project
from yester.store.contract import Store

BUDGET = 300  # tokens
_SAME = 0.75  # share of common terms from which two rules are about the same


def rules_compete(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Are two rules (the contents) about the same, so that only one of them can stand?"""
    if one.get("subject") and other.get("subject"):
        return overlap(name_terms(one["subject"]), name_terms(other["subject"])) >= _SAME
    mine, theirs = parse_claims(one["rule"]), parse_claims(other["rule"])
    opposed = find_contradiction(mine, theirs) or find_contradiction(theirs, mine)
    alike = bool(opposed) or overlap(mine.terms, theirs.terms) >= _SAME
    return alike or answer_differently(one["rule"], other["rule"])


def rules_agree(one: str, other: str) -> bool:
    """Do two rules say the same, or nearly?"""
    mine, theirs = parse_claims(one), parse_claims(other)
    return overlap(mine.terms, theirs.terms) >= _SAME and mine.negated == theirs.negated


def find_same_rule(store: Store, values: Mapping[str, Any]) -> Memo | None:
    """The active rule of the same scope that a new one (plain values) takes the place of."""
    if values["type"] != "rule":
        return None
    scope, content = (values["scope"], values["path"]), values["content"]
    for memo in list_rules(store, (values["project"],)):
        if (memo.scope, memo.path) == scope and rules_compete(memo.content, content):
            return memo
    return None


def applicable_rules(
    store: Store, project: Project, files: Sequence[str] = (), budget: int = BUDGET
) -> list[Item]:
    """The rules that apply here, as many as the budget (tokens) allows.

    Those for the files that are touched first, then the project's, then those for everywhere; the
    newest first. `files` are relative to the project or absolute below its root.
    """
    here = [relative_path(path, project.root) for path in files]
    applying = [
        memo
        for memo in list_rules(store, (project.key, GLOBAL.key))
        if memo.scope != "path" or any(match_glob(memo.path, path) for path in here)
    ]
    # By when they were said: a backfill makes the oldest last.
    applying.sort(key=lambda memo: (-SCOPES.index(memo.scope), -memo.item.epoch))
    heard: list[Memo] = []
    left = 4 * budget  # characters
    for memo in applying:
        if any(rules_compete(memo.content, other.content) for other in heard):
            continue
        if (size := len(memo.item.body) + 1) <= left:
            left -= size
            heard.append(memo)
    return [memo.item for memo in heard]


def list_rules(
    store: Store, projects: tuple[str, ...], statuses: tuple[str, ...] = ("active",)
) -> list[Memo]:
    """Without projects, of all of them."""
    filters = Filters(projects=projects, types=("rule",))
    # Only what the user said is a rule, whatever another program has stored as one.
    return [
        memo
        for memo in store.memos(filters, Paging(statuses=statuses))
        if memo.item.origin == "user" and memo.version
    ]


def match_glob(glob: str, path: str) -> bool:
    """`*` within a folder, `**` over folders; a pattern without a slash fits a name anywhere, and
    what names a folder fits everything in it."""
    globs, parts = glob.strip("/").split("/"), path.strip("/").split("/")
    if len(globs) == 1:
        return any(fnmatchcase(part, globs[0]) for part in parts)
    return _match_parts(globs, parts)


def _match_parts(globs: Sequence[str], parts: Sequence[str]) -> bool:
    if not globs:
        return True
    if globs[0] == "**":
        return any(_match_parts(globs[1:], parts[at:]) for at in range(len(parts) + 1))
    fits = bool(parts) and fnmatchcase(parts[0], globs[0])
    return fits and _match_parts(globs[1:], parts[1:])
