"""How the tools of the MCP server get at the memory: opened at the first question, not before.

The worker is asked first: it has the embedding model loaded. Without one the question is answered
here, with a model of our own where the store has vectors: it is loaded at the first such question
(a third of a second, some 100 MB) and let go when nothing has been asked for a while (`rest`), as
every open session of an agent may have a server like this one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from yester.errors import UsageError
from yester.store.figures import has_vectors

if TYPE_CHECKING:
    from yester.config import Config
    from yester.model import Filters, Hit, Project
    from yester.recall.recall import Answer, Asked, Fates
    from yester.recall.staleness import GitFacts, Staleness, Work
    from yester.store.contract import Store
    from yester.text.embed import Embedder

_PATIENCE_TO_WRITE = 0.03  # seconds; the next question may be waiting
_MOST_OWED = 500  # lines that are still to be written down
AskWorker = Callable[[Path, "Asked", str], "Answer | None"]
_PATIENCE = 0.15  # seconds for git; what is late is left out
_NAMED = 8  # projects in a message


class Line(NamedTuple):
    """What an answer told of an item, until it is written down."""

    item: int
    epoch: int
    score: float = 0.0
    tokens: int = 0
    why: str = ""


class Access:
    """One thread only. `cwd` is where the client has started us: the project at hand."""

    def __init__(
        self, home: str | None, cwd: str, environ: Mapping[str, str], ask_worker: AskWorker
    ) -> None:
        self._given, self._cwd, self._environ = home, cwd, environ
        self._ask_worker = ask_worker
        self._store: Store | None = None
        self._embedder: tuple[object, Embedder | None] | None = None
        self._facts: GitFacts | None = None  # what git has told of the project
        self._listed: list[Line] = []
        self._read: list[Line] = []

    def now(self) -> int:
        return int(time.time() * 1000)

    def rest(self) -> None:
        """Let go of what is large, and give the memory back: it is most of what we have."""
        if self._embedder is None and self._facts is None:
            return
        self._embedder = self._facts = None
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps what was freed
        if trim is not None:
            trim(0)

    def close(self) -> None:
        self.settle()
        self._embedder = None
        if self._store is not None:
            self._store.close()
            self._store = None

    @property
    def home(self) -> Path:
        from yester.capture.homes import home_folder

        return home_folder(self._given, self._environ, Path(self._cwd), inside_agent=True)

    def config(self) -> Config:
        """As it is now: a server may run for days."""
        from yester.config import load

        return load(self.home, self._environ)

    def reading(self) -> Store | None:
        """The store; None where there is none yet: reading makes nothing."""
        from yester.store import store_file

        return self._opened() if os.path.exists(store_file(self.home)) else None  # noqa: PTH110

    def writing(self) -> Store:
        return self._opened()

    def _opened(self) -> Store:
        """A restored backup may have taken the place of the one that is open."""
        if self._store is not None and self._store.in_place():
            return self._store
        # Not through the library: what it needs to add items takes long to import.
        from yester.operate.backups import before_migration
        from yester.store import open_store

        if self._store is not None:
            self._store.close()
            self._store = None
        now = self.now()
        copy = before_migration(self.home, self.config().number("backups_kept"), now)
        self._store = open_store(self.home, now=now, before_migration=copy)
        return self._store

    def here(self) -> Project:
        """The project the client has started us in."""
        from yester.project import Projects

        return Projects(self.config().projects).of(self._cwd)

    def project(self, store: Store, name: str) -> Project:
        """The project with this name or key."""
        known = store.projects()
        for project in known:
            if name in (project.name, project.key):
                return project
        from difflib import get_close_matches

        names = [project.name for project in known]
        alike = list(dict.fromkeys((*get_close_matches(name, names, 3, 0.5), *sorted(names))))
        there = f"there is {', '.join(alike[:_NAMED])}" if alike else "nothing is recorded yet"
        raise UsageError(f"project is {name!r}, but no project is called so; {there}")

    def place(self, name: str | None) -> Project:
        """Where something new belongs: here, or in a project that is known."""
        here = self.here()
        store = self.reading()
        if name and name not in (here.name, here.key):
            if store is None:
                raise UsageError(
                    f"project is {name!r}, but nothing is recorded yet; leave it out for the "
                    f"current one, {here.name}"
                )
            here = self.project(store, name)
        from yester.capture.rules import rules

        if rules(self.config()).excludes(self._cwd, here):
            raise UsageError(
                f"nothing is kept of {here.name}: the user's setting `exclude` says so"
            )
        return here

    def allow(self) -> None:
        """Raises where the user has switched yester off for this place or session."""
        from yester.capture.rules import rules

        off = self._environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false")
        session = self._environ.get("CLAUDE_CODE_SESSION_ID", "")
        if off or rules(self.config()).off(self._cwd, session, self.now()):
            raise UsageError(
                "yester is switched off here by the user (YESTER_OFF or `yester off`; "
                "`yester off --list` shows it); go on without it"
            )

    def searched(self, filters: Filters, query: str) -> Filters:
        """Where no project is named it is all of them or, with `cross_project` false, our own."""
        if filters.projects or self.config().flag("cross_project"):
            return filters
        from yester.text.query import parse_query

        if any(name == "project" for name, _ in parse_query(query).filters):
            return filters
        return replace(filters, projects=(self.here().key,))

    # --- what was shown --------------------------------------------------------------------------

    def listed(self, why: str, lines: Iterable[tuple[int, float, int]]) -> None:
        """An answer has these lines: item, score, tokens. Written down by `settle`."""
        now = self.now()
        self._listed += [Line(item, now, score, tokens, why) for item, score, tokens in lines]

    def read(self, items: Iterable[int]) -> None:
        """Somebody wants more of these than a line."""
        now = self.now()
        self._read += [Line(item, now) for item in items]

    def settle(self) -> None:
        """Write down what was listed and read. Called when the answer is out: nobody waits for it,
        and where it cannot be written (another writer, a full disk) the next answer tries again."""
        store = self._store
        if store is None or not (self._listed or self._read):
            return
        from yester.agents.descriptors import detect_session
        from yester.errors import YesterError
        from yester.model import ON_REQUEST, Feedback, Injection

        try:
            key, agent = detect_session(self._environ)
            session = store.session(key, agent) if key else None
            number, prompt = (session.id, session.prompts) if session else (0, 0)
            # Lines come first: what was listed in one answer may be read in the next.
            lines = [
                Injection(number, ON_REQUEST, one.item, one.score, one.tokens, one.epoch, one.why,
                          prompt)
                for one in self._listed
            ]  # fmt: skip
            with store.transaction(patience=_PATIENCE_TO_WRITE):
                store.append(lines)
                known = store.texts([one.item for one in self._read]).used
                store.append([
                    Feedback(one.item, "fetched", one.epoch, number)
                    for one in self._read
                    if (used := known.get(one.item)) and (used.shown or used.listed)
                ])  # fmt: skip
        except (YesterError, OSError):
            self._listed, self._read = self._listed[-_MOST_OWED:], self._read[-_MOST_OWED:]
            return
        self._listed, self._read = [], []

    # --- asking ----------------------------------------------------------------------------------

    def recall(self, store: Store, asked: Asked) -> list[Hit]:
        """The hits, the worker's or our own, ranked for the project and the files at hand."""
        from yester import git
        from yester.clock import DAY
        from yester.recall.beginning import changed_files
        from yester.recall.rank import Weights
        from yester.recall.recall import answer_question

        config, here = self.config(), self.here()
        root = git.top(self._cwd, here.root)
        deadline = time.monotonic() + _PATIENCE
        signals = git.signals(root, deadline) if asked.query and root else None
        asked = replace(
            asked, project=here.key, files=changed_files(signals) if signals else (),
            window=config.number("recency_window_days") * DAY,
        )  # fmt: skip
        if asked.query and config["embedder"] != "none":
            found = self._ask_worker(self.home, asked, root)
            if found is not None:
                return found.hits
        weights = Weights().with_half_life(config.number("recency_halflife_days"))
        embedder = self._own_embedder(config, store) if asked.query else None
        return answer_question(
            store, asked, weights, embedder, self._fates(root) if root else None
        ).hits

    def _fates(self, root: str) -> Fates:
        from yester.recall.staleness import GitFacts, judge_staleness

        if self._facts is None:
            self._facts = GitFacts()
        facts = self._facts.gather_facts

        def fates(works: Sequence[Work]) -> Mapping[int, Staleness]:
            return judge_staleness(works, facts(root, works, time.monotonic() + _PATIENCE))

        return fates

    def _own_embedder(self, config: Config, store: Store) -> Embedder | None:
        if config["embedder"] == "none" or not has_vectors(store):
            return None
        from yester.text.embed import open_embedder

        chosen = [value for name, value in config.values.items() if name.startswith("embed")]
        if self._embedder is None or self._embedder[0] != chosen:
            self._embedder = (chosen, open_embedder(config.values, self.home))
        return self._embedder[1]
