"""Standing rules: what the user has told their agents once, for good.

No search finds them, since the prompt they apply to need not name them; so all that apply are
shown, in a small budget. Of two rules about the same the newer one stands: within a scope it takes
the other's place when it is written, between scopes the narrower one is heard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from yester.agents.values import relative_path
from yester.memories.memory import GLOBAL
from yester.model import SCOPES, Filters, Item, Memo, Project
from yester.store.contract import Store
from yester.text.terms import query_terms, text_terms

BUDGET = 300  # tokens
_SAME = 0.75  # share of common terms from which two rules are about the same
# What a rule says about its subject, not the subject itself.
_CUES = frozenset(
    text_terms(
        "always never don't do not from now on stop make sure use instead of rather than over "
        "prefer avoid should must only every any all ever again please"
    )
)


def rule_subject(content: Mapping[str, Any]) -> frozenset[str]:
    """What a rule is about: as it says itself, else the words it is made of."""
    named = content.get("subject")
    text = str(named or content.get("rule", ""))
    said = frozenset(query_terms(text))
    return said if named else (said - _CUES or said)


def contents_share_subject(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if _choose_differently(str(one.get("rule", "")), str(other.get("rule", ""))):
        return True
    mine, theirs = rule_subject(one), rule_subject(other)
    return bool(mine) and len(mine & theirs) >= _SAME * len(mine | theirs)


@lru_cache(1_000)
def _choose_differently(one: str, other: str) -> bool:
    """Do they choose differently: "use pnpm, not npm", "use yarn, not npm"?"""
    # Here, since its table and patterns take long to put together.
    from yester.memories.standing import contradicts_rule, find_rules

    mine, theirs = find_rules(one), find_rules(other)
    return any(contradicts_rule(a, b) or contradicts_rule(b, a) for a in mine for b in theirs)


def find_same_rule(store: Store, values: Mapping[str, Any]) -> Memo | None:
    """The active rule of the same scope that a new one (plain values) takes the place of."""
    if values["type"] != "rule":
        return None
    scope = values["scope"], values["path"]
    for memo in _active_rules(store, (values["project"],)):
        if (memo.scope, memo.path) == scope and contents_share_subject(
            memo.content, values["content"]
        ):
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
        for memo in _active_rules(store, (project.key, GLOBAL.key))
        if memo.scope != "path" or any(match_glob(memo.path, path) for path in here)
    ]
    # By when they were said: a backfill makes the oldest last.
    applying.sort(key=lambda memo: (-SCOPES.index(memo.scope), -memo.item.epoch))
    heard: list[Memo] = []
    left = 4 * budget  # characters
    for memo in applying:
        if any(contents_share_subject(memo.content, other.content) for other in heard):
            continue
        if (size := len(memo.item.body) + 1) <= left:
            left -= size
            heard.append(memo)
    return [memo.item for memo in heard]


def _active_rules(store: Store, projects: tuple[str, ...]) -> list[Memo]:
    filters = Filters(projects=projects, types=("rule",))
    # Only what the user said is a rule, whatever another program has stored as one.
    return [memo for memo in store.memos(filters) if memo.item.origin == "user" and memo.version]


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
