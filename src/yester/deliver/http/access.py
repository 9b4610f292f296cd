"""How endpoints get at the memory: a store of their thread, the settings, an answer to a question.

A question is answered here, in the process that serves, unless the store has vectors: then the
worker is asked, which has the model loaded, one question at a time, so that hooks never wait behind
more than one. What comes meanwhile waits a little; only where the worker does not answer, or many
ask at once, a model is loaded here (some 100 MB), shares the work, and is let go after a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from yester.agents.descriptors import AGENTS
from yester.clock import DAY, WRITTEN, parse_bound
from yester.config import Config, load
from yester.deliver.http.login import PROGRAM, USER
from yester.deliver.http.parameters import Dated, Filtered
from yester.deliver.http.problem import Refusal, named, shown, unknown
from yester.deliver.library import open_home
from yester.errors import ConfigError, StoreError, UsageError
from yester.memories.categories import CATEGORIES
from yester.memories.memo import By
from yester.model import Filters, Hit, Paging, Project, Session
from yester.recall.rank import IMPORTANCE, Weights
from yester.recall.recall import Answer, Asked, answer_question
from yester.store import store_exists, store_file
from yester.store.contract import Store
from yester.store.figures import filter_facets, has_vectors

if TYPE_CHECKING:
    from yester.text.embed import Embedder

AskWorker = Callable[[Path, Asked, str], Answer | None]
_TURN = 0.25  # seconds to wait for one's turn with the worker
_RESTING = 300.0  # seconds without a question, after which our own model is let go
_NAMED, _MANY = 8, 200  # names in a message; to look for one that is meant
# Types that are known before anything has them.
TYPES = frozenset(IMPORTANCE) | frozenset(CATEGORIES)


class Seen(Protocol):
    """What a doctor has found: `state` is ok, note or problem."""

    @property
    def check(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def fix(self) -> str: ...


Examine = Callable[[Path, int], Sequence[Seen]]


def _nobody(home: Path, now: int) -> Sequence[Seen]:  # noqa: ARG001
    return ()


class Home:
    """What all threads share."""

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        ask_worker: AskWorker,
        examine: Examine = _nobody,
    ) -> None:
        self.path = path
        self.used = self.there()  # there is a store, or was one
        self.examine = examine
        self._file = path / "config.toml"
        self._environ = dict(environ)
        self._ask_worker = ask_worker
        self._worker = threading.Lock()
        self._loading = threading.Lock()
        self._embedder: tuple[object, Embedder | None] | None = None
        self._used = 0.0
        self._remembered: dict[str, tuple[float, object]] = {}
        self._config = load(path, self._environ)
        self._stamp = self._stamped()

    def _stamped(self) -> int:
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return 0

    @property
    def config(self) -> Config:
        """As it is now; while the file is wrong or half saved, as it was."""
        stamp = self._stamped()
        if stamp != self._stamp:
            try:
                self._config = load(self.path, self._environ)
                self._stamp = stamp
            except ConfigError:
                pass
        return self._config

    def reload(self) -> Config:
        self._stamp = -1
        return self.config

    def there(self) -> bool:
        """Is there a store, still?"""
        try:
            return store_exists(self.path)
        except OSError:
            return False

    def rest(self, now: float) -> None:
        """Let go of what is large and has not been used for a while."""
        if self._embedder is not None and now - self._used > _RESTING:
            self._embedder = None

    def remembered(self, what: str, seconds: float, make: Callable[[], object]) -> object:
        """What it was lately; made anew after so many seconds."""
        made, value = self._remembered.get(what, (0.0, None))
        now = time.monotonic()
        if value is None or now - made > seconds:
            value = make()
            self._remembered[what] = (now, value)
        return value

    def recall(self, store: Store, asked: Asked) -> Answer:
        config = self.config
        embedder = None
        if asked.query and config["embedder"] != "none" and has_vectors(store):
            if self._worker.acquire(timeout=_TURN if self._embedder is None else 0.0):
                try:
                    found = self._ask_worker(self.path, asked, "")
                finally:
                    self._worker.release()
                if found is not None:
                    return found
            embedder = self.embedder(config)
        weights = Weights().with_half_life(config.number("recency_halflife_days"))
        return answer_question(store, asked, weights, embedder)

    def embedder(self, config: Config) -> Embedder | None:
        """A model of our own."""
        from yester.text.embed import open_embedder

        chosen = [value for name, value in config.values.items() if name.startswith("embed")]
        with self._loading:
            self._used = time.monotonic()
            known = self._embedder
            if known is None or known[0] != chosen:
                known = self._embedder = (chosen, open_embedder(config.values, self.path))
            return known[1]


class Access:
    """One thread only."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.origin = PROGRAM  # of what is written for whoever asks now
        self._store: Store | None = None

    @property
    def config(self) -> Config:
        return self.home.config

    @property
    def now(self) -> int:
        return int(time.time() * 1000)

    def by(self, why: str = "") -> By:
        """Who writes: the user in the viewer, or a program."""
        return By("viewer" if self.origin == USER else "http", self.now, self.origin, why)

    @property
    def store(self) -> Store:
        """A restored backup may have taken the place of the one that is open. Where there is none,
        the home was moved or removed: no new one is made in its place."""
        if not self.home.there() and self.home.used:
            self.close()
            raise StoreError(
                f"{store_file(self.home.path)} is gone; start the server anew: yester serve"
            )
        if self._store is None or not self._store.in_place():
            self.close()
            self._store = open_home(self.home.path, self.config).store
            self.home.used = True
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- names ----------------------------------------------------------------------------------

    def names(self) -> dict[str, str]:
        """project key → readable name"""
        return {project.key: project.name for project in self.store.projects()}

    def project(self, name: str, parameter: str = "project") -> Project:
        known = self.store.projects()
        for project in known:
            if name in (project.name, project.key):
                return project
        names = [project.name for project in known]
        raise unknown("project", name, names, parameter, "GET /api/projects")

    def session(self, text: str) -> Session:
        """By its number (12, S12), by its id or the beginning of it."""
        key = text.removeprefix("S")
        found = self.store.sessions(Filters(session=key), Paging(20)) if key else []
        keys = list(dict.fromkeys(one.key for one in found))
        if len(keys) > 1:
            raise Refusal(
                400, f"session {shown(text)!r} may be {named(keys)}", parameter="session",
                value=text, fix="write more of the id",
            )  # fmt: skip
        if len(found) > 1:  # one id in several projects: the longest of them
            found.sort(key=lambda one: -one.items)
        if found:
            return found[0]
        if key.isdecimal() and key.isascii() and len(key) < 16:
            numbered = next(iter(self.store.sessions(Filters(session_id=int(key)))), None)
            if numbered is not None:
                return numbered
        raise Refusal(
            404, f"no session {shown(text)!r}", parameter="session", value=text,
            fix="GET /api/sessions lists them; its number, its id, or 6 characters of it will do",
        )  # fmt: skip

    def check_names(self, filters: Filters) -> None:
        """For an empty answer: it may be a name nobody has, and then that is the answer."""
        store = self.store
        if filters.session and not store.sessions(Filters(session=filters.session), Paging(1)):
            self.session(filters.session)

        def nobody(**one: Any) -> bool:
            return not store.select(Filters(**one), Paging(1))

        if filters.agent and filters.agent not in AGENTS and nobody(agent=filters.agent):
            known = [*AGENTS, *filter_facets(store, _NAMED).agents]
            raise unknown("agent", filters.agent, known, "agent", "GET /api/facets")
        if filters.tool and nobody(tool=filters.tool):
            raise Refusal(
                404, f"no call of a tool {shown(filters.tool)!r} is recorded", parameter="tool",
                value=filters.tool, fix="its name as the agent writes it, e.g. Bash",
            )  # fmt: skip
        for one in filters.types:
            if one not in TYPES and nobody(types=(one,)):
                known = sorted({*TYPES, *filter_facets(store, _MANY).types})
                raise unknown("type", one, known, "type", "GET /api/facets")

    # --- asking ---------------------------------------------------------------------------------

    def filters(self, given: Filtered, **more: Any) -> Filters:
        since, until = span(given, self.now)
        return Filters(
            projects=(self.project(given.project).key,) if given.project else (),
            concepts=tuple(given.concepts),
            files=tuple(given.files),
            session=given.session,
            agent=given.agent,
            tool=given.tool,
            since=since,
            until=until,
            **more,
        )

    def answer(self, asked: Asked) -> Answer:
        """Ranked for the project that is asked about, where it is one."""
        window = self.config.number("recency_window_days") * DAY
        here = asked.filters.projects[0] if len(asked.filters.projects) == 1 else ""
        return self.home.recall(self.store, replace(asked, window=window, project=here))

    def recall(self, store: Store, asked: Asked) -> list[Hit]:  # noqa: ARG002 -- as `build_timeline` asks
        return self.answer(asked).hits


def span(given: Dated, now: int) -> tuple[int | None, int | None]:
    """From when to when, in whichever of the three forms it was said."""
    both = _range(given.range)
    start = given.start or given.range_start or both[0]
    end = given.end or given.range_end or both[1]
    since = _bound("dateStart", given.start, given.range_start, both[0], now)
    until = _bound("dateEnd", given.end, given.range_end, both[1], now)
    if since is not None and until is not None and since >= until:
        raise Refusal(
            400, f"dateStart {start!r} is not before dateEnd {end!r}", parameter="dateStart",
            value=start, fix="exchange them",
        )  # fmt: skip
    return since, until


def _bound(name: str, plain: str, bracketed: str, in_json: str, now: int) -> int | None:
    """An end of a range; what is wrong with it is told of the parameter it stands in."""
    end = name == "dateEnd"
    named_so = {name: plain, f"dateRange[{'end' if end else 'start'}]": bracketed}
    parameter = next((one for one, text in named_so.items() if text), "dateRange")
    text = plain or bracketed or in_json
    if not text.strip():
        return None
    try:
        return parse_bound(text, now, option=parameter, end=end)
    except (UsageError, OverflowError, OSError):
        raise Refusal(
            400, f"{parameter} {shown(text)!r} is not a time", parameter=parameter, value=text,
            fix=f"write {WRITTEN}, or seconds or milliseconds since 1970",
        ) from None  # fmt: skip


class _Range(msgspec.Struct, forbid_unknown_fields=True):
    start: str | int | None = None
    end: str | int | None = None


def _range(text: str) -> tuple[str, str]:
    if not text.strip():
        return "", ""
    try:
        found = msgspec.json.decode(text, type=_Range)
    except msgspec.MsgspecError as error:
        raise Refusal(
            400, f"dateRange is {text!r}, which is not the JSON it must be ({error})",
            parameter="dateRange", value=text,
            fix='{"start": "2026-03-01", "end": "2026-03-08"}, or dateStart and dateEnd',
        ) from None  # fmt: skip
    return str(found.start or ""), str(found.end or "")
