"""What developers call by several names. Looked up for questions only, and counted for less.

A group is a set of names for one thing; a name of two words counts where both are found.
"""

from __future__ import annotations

from collections.abc import Sequence

from yester.text.terms import terms

GROUPS: tuple[tuple[str, ...], ...] = (
    ("auth", "authentication", "login", "signin"),
    ("authz", "authorization", "permission"),
    ("db", "database"),
    ("config", "configuration", "settings", "preferences"),
    ("env", "environment"),
    ("repo", "repository"),
    ("dir", "directory", "folder"),
    ("param", "parameter", "argument", "arg"),
    ("fn", "func", "function", "method"),
    ("var", "variable"),
    ("impl", "implementation"),
    ("dep", "dependency"),
    ("pkg", "package"),
    ("lib", "library"),
    ("app", "application"),
    ("msg", "message"),
    ("req", "request"),
    ("resp", "response"),
    ("err", "error", "failure"),
    ("exc", "exception"),
    ("perf", "performance"),
    ("async", "asynchronous"),
    ("sync", "synchronous"),
    ("init", "initialize", "initialise", "initialization"),
    ("doc", "documentation"),
    ("docs", "documentation"),
    ("prod", "production"),
    ("dev", "development"),
    ("stage", "staging"),
    ("infra", "infrastructure"),
    ("k8s", "kubernetes"),
    ("ts", "typescript"),
    ("js", "javascript"),
    ("py", "python"),
    ("ui", "interface", "frontend"),
    ("api", "endpoint"),
    ("cert", "certificate"),
    ("creds", "credential"),
    ("pwd", "password"),
    ("regex", "regexp", "regular expression"),
    ("i18n", "internationalization", "localization"),
    ("a11y", "accessibility"),
    ("ci", "continuous integration", "pipeline"),
    ("cd", "deployment"),
    ("deploy", "release", "rollout"),
    ("pr", "pull request"),
    ("mr", "merge request"),
    ("throttle", "rate limit", "ratelimit"),
    ("delete", "remove", "drop"),
    ("bug", "defect", "issue"),
    ("crash", "panic", "segfault"),
    ("hang", "freeze", "deadlock"),
    ("slow", "latency", "performance"),
    ("cache", "memoize"),
    ("queue", "backlog"),
    ("cron", "scheduler", "schedule"),
    ("test", "spec"),
    ("mock", "stub", "fake"),
    ("refactor", "restructure", "cleanup"),
    ("rename", "renamed"),
    ("revert", "rollback", "undo"),
    ("version", "release"),
    ("upgrade", "update", "bump"),
    ("secret", "token", "credential"),
    ("encrypt", "cipher", "crypto"),
    ("timezone", "tz", "time zone"),
    ("utc", "gmt"),
    ("serialize", "marshal", "encode"),
    ("parse", "decode", "unmarshal"),
    ("log", "logging"),
    ("metric", "telemetry"),
    ("oom", "out of memory"),
    ("gc", "garbage collection"),
    ("vm", "virtual machine"),
    ("os", "operating system"),
    ("fs", "filesystem", "file system"),
    ("ws", "websocket"),
    ("tls", "ssl", "https"),
    ("id", "identifier"),
    ("num", "number"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("temp", "temporary"),
    ("prev", "previous"),
    ("admin", "administrator"),
)


Names = tuple[str, ...]


def _tables() -> tuple[dict[str, tuple[Names, ...]], dict[Names, tuple[Names, ...]]]:
    """Other names by a single term, and by the terms of a name of several words."""
    single: dict[str, dict[Names, None]] = {}
    several: dict[Names, dict[Names, None]] = {}
    for group in GROUPS:
        expanded = [tuple(terms(name)) for name in group]
        for names in expanded:
            others = dict.fromkeys(other for other in expanded if other and other != names)
            if len(names) == 1:
                single.setdefault(names[0], {}).update(others)
            elif names:
                several.setdefault(names, {}).update(others)
    return (
        {term: tuple(others) for term, others in single.items()},
        {names: tuple(others) for names, others in several.items()},
    )


_SINGLE, _SEVERAL = _tables()


def alternatives(asked: Sequence[str]) -> dict[str, tuple[Names, ...]]:
    """term → other names, for the terms of a question; "rate limit" is one thing, "rate" is not."""
    found = {term: list(_SINGLE.get(term, ())) for term in asked}
    there = set(asked)
    for names, others in _SEVERAL.items():
        if there.issuperset(names):
            for term in names:
                found[term] += others
    return {term: tuple(dict.fromkeys(others)) for term, others in found.items() if others}
