"""What the worker answers: the context a hook asks for, what the command line wants to know.

Whatever goes wrong here, the agent goes on without us: no answer is an answer.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Container
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yester import git
from yester.agents.hooks import Told
from yester.capture.spool import NewerFormat, Spool, read
from yester.config import Config
from yester.deliver.context import Context, at_prompt, at_start
from yester.deliver.hooks import answer
from yester.errors import SourceError
from yester.ingest.events import Events
from yester.model import Injection, Project
from yester.recall.beginning import at_hand
from yester.recall.rank import Weights
from yester.recall.recall import Asked
from yester.recall.recall import answer as recalled
from yester.store.base import Store
from yester.worker.log import Log
from yester.worker.surroundings import Surroundings

if TYPE_CHECKING:
    from yester.text.embed import Embedder
    from yester.worker.embedding import Embedding

ASKING = ("start", "prompt")
_RECENT = 64  # events whose hook may still ask
# Seconds git may take: before the first prompt, at a prompt (what was read ahead must do), and
# where a person waits who has asked.
_AT_START, _AT_PROMPT, _ASKED = 0.05, 0.03, 0.1


class Answers:
    """Give it the settings with `use` before anything is asked; `close` it at the end."""

    def __init__(self, spool: Spool, store: Store, log: Log) -> None:
        self._spool = spool
        self._store = store
        self._log = log
        self._recent: OrderedDict[str, Told] = OrderedDict()
        self._owed: dict[str, tuple[Told, Context]] = {}  # shown, and still to be written down
        self._surroundings = Surroundings(log)
        self.embedding: Embedding | None = None

    def use(self, config: Config, intake: Events) -> None:
        self._config, self._intake = config, intake

    def close(self) -> None:
        self._surroundings.close()

    def remember(self, id_: str, told: Told) -> None:
        """An event that has left the spool; its hook may yet ask."""
        if told.what in ASKING:
            self._recent[id_] = told
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)

    def told(self, id_: str) -> Told | None:
        """What the asking hook has told: still in the spool, or just taken in."""
        if id_ in self._recent:
            return self._recent[id_]
        path = self._spool.find(id_)
        try:
            return self._intake.understand(read(path))[0] if path else None
        except (OSError, ValueError, NewerFormat, SourceError):
            return None

    def hook(self, id_: str, told: Told) -> bytes:
        """The bytes the hook prints. May raise anything: the caller answers nothing then."""
        if self._intake.refused(told):
            return b""
        if self.embedding is not None:
            self.embedding.want()
        context = self._context(told)
        if context.text:
            self._owed[id_] = (told, context)
        return answer(told.agent, told.name, context.text)

    def recall(self, text: str, root: str) -> bytes | None:
        """For the command line, which would have to load the model first."""
        if self.embedding is not None and self._embedder is None:
            self.embedding.want()
            if self._store.has_vectors():
                return None  # not loaded yet: the command does it itself
        try:
            asked = msgspec.json.decode(text, type=Asked)
        except msgspec.MsgspecError:
            return None
        fates = partial(self._surroundings.fates, root, patience=_ASKED) if root else None
        found = recalled(self._store, asked, self._weights, self._embedder, fates)
        return msgspec.json.encode(found)

    def write_down(self, left: Container[str]) -> None:
        """The ledger of what was shown; written after the event, since only then the session is
        sure to be known, and the agent does not wait for it. `left`: files that stay in the spool.
        """
        owed = {
            id_: one
            for id_, one in self._owed.items()
            if id_ in left or self._spool.find(id_) is None
        }
        rows = []
        for told, context in owed.values():
            session = self._store.session(told.session, told.agent)
            if session is None:
                continue
            rows += [
                Injection(
                    session.id, told.name, one.item, one.score, one.tokens, told.epoch, one.reason,
                    session.prompts,
                )
                for one in context.shown
            ]  # fmt: skip
        if rows:
            with self._store.transaction():
                self._store.put_injections(rows)
        for id_ in owed:
            del self._owed[id_]

    def _context(self, told: Told) -> Context:
        now = int(time.time() * 1000)
        session = self._intake.session(told)
        project = self._intake.projects.by_key(session.project)
        fates = partial(self._surroundings.fates, _root(told.cwd, project), patience=_AT_PROMPT)
        if told.what == "start":
            signals = self._surroundings.around(told.cwd, _AT_START)
            if told.source == "resume":  # the agent has its own words back
                return Context("", ())
            return at_start(
                self._store, project, told.session, now, signals=signals, weights=self._weights,
                embedder=self._embedder, fates=fates,
            )  # fmt: skip
        if told.what != "prompt":
            return Context("", ())
        signals = self._surroundings.around(told.cwd)
        shown = self._store.injections(session.id) if session.id else []
        return at_prompt(
            self._store, told.prompt, project, told.session, {one.item for one in shown},
            sum(one.tokens for one in shown), now, files=at_hand(signals), weights=self._weights,
            embedder=self._embedder, fates=fates, everywhere=self._config.flag("cross_project"),
        )  # fmt: skip

    @property
    def _weights(self) -> Weights:
        return Weights().with_half_life(self._config.number("recency_halflife_days"))

    @property
    def _embedder(self) -> Embedder | None:
        return self.embedding.embedder if self.embedding is not None else None


def _root(cwd: str, project: Project) -> str:
    """Where the project's files are: in the work tree at hand, which need not be the main one."""
    if project.root and Path(cwd).is_relative_to(project.root):
        return project.root
    repository = git.find(cwd)
    return str(repository.top) if repository else project.root
