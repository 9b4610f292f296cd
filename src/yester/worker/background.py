"""What the worker's threads do: vectors and, where a language model is set, notes of turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from yester.config import ARCHIVE, EMBED, LLM, Config, Value
from yester.worker.log import Log

if TYPE_CHECKING:
    from yester.worker.embedding import Embedding
    from yester.worker.refining import Refining

_EMBEDS = ("embedder", *(setting.name for setting in EMBED))
_REFINES = tuple(setting.name for setting in (*LLM, *ARCHIVE))


class Background:
    """Nothing runs before `use`; `close` it at the end. `refined` is called, by a thread, when a
    language model's notes of a turn were stored."""

    def __init__(self, log: Log, refined: Callable[[], None]) -> None:
        self.embedding: Embedding | None = None
        self._refining: Refining | None = None
        self._log = log
        self._refined = refined
        self._used: dict[str, Value] = {}

    def use(self, config: Config) -> None:
        """Begin, or begin anew with other settings."""
        before, self._used = self._used, {name: config[name] for name in (*_EMBEDS, *_REFINES)}
        if any(before.get(name) != config[name] for name in _EMBEDS):
            self._embed(config)
        if any(before.get(name) != config[name] for name in _REFINES):
            self._refine(config)

    def _embed(self, config: Config) -> None:
        if self.embedding is not None:
            self.embedding.close()
            self.embedding = None
        if config["embedder"] != "none":
            from yester.worker.embedding import Embedding

            now = int(time.time() * 1000)
            self.embedding = Embedding(config.home, config.values, now, self._log)

    def _refine(self, config: Config) -> None:
        if self._refining is not None:
            self._refining.close()
            self._refining = None
        if config["llm.provider"] != "none":
            from yester.worker.refining import Refining

            self._refining = Refining(config, self._log, self._refined)

    def stored(self) -> None:
        """Items were."""
        if self.embedding is not None:
            self.embedding.wake()

    def distilled(self, session: int) -> None:
        if self._refining is not None:
            self._refining.wake(session)

    def close(self) -> None:
        if self._refining is not None:
            self._refining.close()
        if self.embedding is not None:
            self.embedding.close()
