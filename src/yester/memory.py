"""The opened memory: home, settings, store, embedding model. Every face works with one of these.

A question is answered by the worker, which has the embedding model loaded, where there is one and
the store has vectors; else here, with a model of our own. That is loaded when it is first needed (a
third of a second, some 100 MB) and let go when nothing was asked for a while (`release_unused`).

What is imported here is imported when it is needed: the command line and the MCP server start with
this module, and must not wait.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast

from yester.clock import DAY
from yester.config import Config, load_config
from yester.errors import ConfigError, NotFound, NotYours, StoreError, UsageError
from yester.model import ANYTHING, Filters, Item, Paging, Project, Session, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from tempfile import TemporaryDirectory

    from yester.caller import Caller
    from yester.git import Signals
    from yester.memories.memory import Author
    from yester.project import Projects
    from yester.recall.rank import Weights
    from yester.recall.recall import Answer, Asked
    from yester.recall.staleness import GitFacts, Staleness, Work
    from yester.store.contract import Store
    from yester.text.embed import Embedder

    AskWorker = Callable[[Path, "Asked", str], "Answer | None"]

T = TypeVar("T")
_TURN = 0.25  # seconds to wait while another thread asks the worker
_RESTING = 300.0  # seconds without a question, after which our own model is let go
_LISTED_NAMES = 8  # in a message
_LONGEST_REQUEST = 16_000  # characters of a question to the worker
_WORKER_PATIENCE = 2.0  # seconds
_TRANSCRIPT_TYPES = ("todo", "compact", "first_prompt", "session", "turn")


def ask_recall(home: Path, asked: Asked, root: str) -> Answer | None:
    """The worker's answer; None where there is none, it is of another version, or is not asked.

    With the `root` of the project it is asked in the hits say what has become of their files.
    """
    from urllib.parse import quote

    import msgspec

    from yester.capture.question import ask_worker
    from yester.recall.recall import Answer

    try:
        request = f"POST /recall?asked={quote(msgspec.json.encode(asked))}&root={quote(root)}"
    except UnicodeEncodeError:  # an argument that is no text has no form in JSON
        return None
    if len(request) > _LONGEST_REQUEST:
        return None
    answer = ask_worker(home / "run", request, _WORKER_PATIENCE)
    try:
        return None if answer is None else msgspec.json.decode(answer, type=Answer)
    except msgspec.MsgspecError:
        return None


class _Shared:
    """What the memories of several threads have in common."""

    def __init__(self, environ: Mapping[str, str], database: str) -> None:
        self.environ = dict(environ)
        self.database = database
        self.opened = False  # there is a store, or was one
        self.worker_turn = threading.Lock()
        self.loading = threading.Lock()
        self.model: tuple[object, Embedder | None] | None = None
        self.model_used = 0.0
        self.config: Config | None = None
        self.config_stamp = -1
        self.values: dict[str, tuple[float, object]] = {}


class Memory:
    """One thread only; `for_thread` gives another thread its own. Close it, or use `with`.

    `cwd` is the folder in which questions are asked; "" where that is nowhere (HTTP, Python). `who`
    and `origin` stand in the history of what is written: a face, and the user or a program. Without
    `ask_worker` every question is answered here. `database` is a server's address, `caller` who
    asks where many may ask. Unless it
    `recreates`, a home that was moved or removed meanwhile is an error, and no new store is made in
    its place.
    """

    patience = 0.15  # seconds; what git tells later is left out

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        *,
        cwd: str = "",
        who: str = "python",
        origin: str = "user",
        ask_worker: AskWorker | None = ask_recall,
        recreates: bool = True,
        database: str = "",
    ) -> None:
        self.home = home
        self.environ = environ
        self.cwd = cwd
        self.who, self.origin = who, origin
        self._question = None if database else ask_worker  # the worker has another store
        self._recreates = recreates
        self._shared = _Shared(environ, database)
        self._shared.opened = self.exists()
        self._store: Store | None = None
        self._empty: tuple[Store, TemporaryDirectory[str]] | None = None
        self._git_facts: GitFacts | None = None
        self._own_model: tuple[Embedder | None, ...] = ()
        self.caller: Caller | None = None

    def for_thread(self) -> Self:
        """Another memory of the same home: its own store, the same settings and model."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _store=None, _empty=None, _git_facts=None)
        return other

    def for_caller(self, caller: Caller, store: Store) -> Self:
        """For one request of somebody who asks a server: the store as they see it, the same
        settings and model, and nothing else of what others have asked."""
        other = self.for_thread()
        other.__dict__.update(caller=caller, _store=store, who=caller.user)
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._empty is not None:
            store, folder = self._empty
            self._empty = None
            store.close()
            folder.cleanup()

    def release_unused(self, now: float | None = None) -> bool:
        """Let go of what is large, if it was not used lately; without `now`, in any case. Was there
        anything?"""
        shared = self._shared
        if now is not None and now - shared.model_used <= _RESTING:
            return False
        held = shared.model is not None or self._git_facts is not None
        shared.model = self._git_facts = None
        return held

    # --- settings -------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return int(time.time() * 1000)

    @property
    def config(self) -> Config:
        """As it is now; while the file is wrong or half saved, as it was."""
        shared = self._shared
        try:
            stamp = (self.home / "config.toml").stat().st_mtime_ns
        except OSError:
            stamp = 0
        if stamp != shared.config_stamp:
            try:
                shared.config = load_config(self.home, shared.environ)
                shared.config_stamp = stamp
            except ConfigError:
                if shared.config is None:
                    raise
        assert shared.config
        return shared.config

    def reload_config(self) -> Config:
        """After a change that the time of the file may not show."""
        self._shared.config_stamp = -1
        return self.config

    def cached(self, name: str, seconds: float, compute: Callable[[], T]) -> T:
        """A value that may be so many seconds old."""
        if self.caller:
            return compute()
        computed, value = self._shared.values.get(name, (0.0, None))
        now = time.monotonic()
        if value is None or now - computed > seconds:
            value = compute()
            self._shared.values[name] = (now, value)
        return cast(T, value)

    def by(self, why: str = "") -> Author:
        """Who writes now, for the history."""
        from yester.memories.memory import Author

        return Author(self.who, self.now, self.origin, why)

    def require_user(self, what: str, fix: str = "") -> None:
        """Raises where a program asks for what the user alone may say."""
        if self.origin != "user":
            raise NotYours(what, fix)

    # --- the store ------------------------------------------------------------------------------

    @property
    def target(self) -> Path | str:
        """Where the store is: in the home, or on a server."""
        from yester.store import find_target

        return self._shared.database or find_target(self.home)

    def exists(self) -> bool:
        """Is there a store? Reading makes none."""
        from yester.store import store_exists

        try:
            return store_exists(self.target)
        except ConfigError:
            return True  # whoever opens it is told
        except OSError:
            return False

    @property
    def lost(self) -> bool:
        """Was there a store that is there no more?"""
        return self._shared.opened and not self.exists()

    @property
    def store(self) -> Store:
        """Opened, and made where there is none. A restored backup may have taken the place of the
        one that is open."""
        if not self._recreates and self.lost:
            self.close()
            raise StoreError(f"the store in {self.home} is gone", "start anew")
        if self._store is not None and (self.caller or self._store.in_place()):
            return self._store
        self.close()
        from yester.operate.backups import open_safely

        self._store = open_safely(self.home, self.config, self.now, target=self.target)
        self._shared.opened = True
        return self._store

    @property
    def reading(self) -> Store:
        """The store to read from. Reading makes none: where there is none, it is an empty one."""
        missed = self.lost and not self._recreates  # `store` says so
        if self._store is not None or missed or self.exists():
            return self.store
        if self._empty is None:
            from tempfile import TemporaryDirectory

            from yester.store import open_store

            folder = TemporaryDirectory(prefix="yester-")
            self._empty = (open_store(Path(folder.name), now=self.now), folder)
        return self._empty[0]

    # --- names ----------------------------------------------------------------------------------

    def project_names(self) -> dict[str, str]:
        """project key → readable name"""
        return {project.key: project.name for project in self.reading.projects()}

    def find_project(self, name: str, parameter: str = "project") -> Project:
        """The project with this name or key."""
        known = self.reading.projects()
        for project in known:
            if name in (project.name, project.key):
                return project
        raise unknown_name("project", name, [project.name for project in known], parameter)

    def find_session(self, text: str) -> Session:
        """By its number (12, S12), by its id or the beginning of it."""
        from yester.recall.timeline import match_sessions

        found = match_sessions(self.reading, text.removeprefix("S"))
        keys, quoted = list(dict.fromkeys(one.key for one in found)), quote_value(text)
        if len(keys) == 1:  # one id in several projects: the longest of them
            return max(found, key=lambda one: one.items)
        kind: type[UsageError | NotFound] = NotFound
        what, fix = f"no session {quoted!r}", "its number, its id, or 6 characters of it will do"
        if keys:
            kind, what = UsageError, f"session {quoted!r} may be {join_names(keys)}"
            fix = "write more of the id"
        raise kind(what, fix, parameter="session", value=text)

    def check_names(self, filters: Filters) -> None:
        """For an empty answer: it may be a name nobody has, and then that is the answer."""
        from yester.agents.descriptors import AGENTS
        from yester.memories.categories import CATEGORIES
        from yester.recall.rank import IMPORTANCE
        from yester.store.figures import filter_facets

        store, tool = self.reading, filters.tool
        for name in filters.projects:
            self.find_project(name)
        if filters.session and not store.sessions(Filters(session=filters.session), Paging(1)):
            self.find_session(filters.session)
        if tool and not store.select(Filters(tool=tool), Paging(1)):
            raise NotFound(
                f"no call of a tool {quote_value(tool)!r} is recorded",
                "its name as the agent writes it, e.g. Bash", parameter="tool", value=tool,
            )  # fmt: skip
        # Known before anything has them.
        types = {*filter(None, IMPORTANCE), *CATEGORIES, *_TRANSCRIPT_TYPES}
        asked = [("type", one, types, Filters(types=(one,))) for one in filters.types]
        asked.append(("agent", filters.agent, {*AGENTS}, Filters(agent=filters.agent)))
        for what, name, usual, only in asked:
            if name and name not in usual and not store.select(only, Paging(1)):
                known = usual | getattr(filter_facets(store, 200), f"{what}s").keys()
                raise unknown_name(what, name, known, what)

    # --- questions ------------------------------------------------------------------------------

    @property
    def weights(self) -> Weights:
        from yester.recall.rank import Weights

        rankings = {"default": Weights, "seed": Weights.seed_profile}
        chosen = self.config.text("ranking")
        if chosen not in rankings:
            known = " or ".join(rankings)
            raise ConfigError(f"ranking is {quote_value(chosen)!r}, but must be {known}")
        return rankings[chosen]().with_half_life(self.config.number("recency_halflife_days"))

    @property
    def embedder(self) -> Embedder | None:
        """A model of our own, loaded when first wanted; None: search goes by words alone."""
        if self._own_model:
            return self._own_model[0]
        config, shared = self.config, self._shared
        if config["embedder"] == "none":
            return None
        from yester.text.embed import open_embedder

        chosen = [value for name, value in config.values.items() if name.startswith("embed")]
        with shared.loading:
            shared.model_used = time.monotonic()
            if shared.model is None or shared.model[0] != chosen:
                shared.model = (chosen, open_embedder(config.values, self.home))
            return shared.model[1]

    @embedder.setter
    def embedder(self, model: Embedder | None) -> None:
        """Use this one, whatever the settings name."""
        self._own_model = (model,)

    @property
    def search_embedder(self) -> Embedder | None:
        """The model, where there is anything that it could be compared with."""
        return self.embedder if self._compares_vectors() else None

    @property
    def projects(self) -> Projects:
        """Folders as projects."""
        from yester.folders import open_projects

        return open_projects(self.config)

    @property
    def current_project(self) -> Project:
        """The project of the folder in which questions are asked."""
        return self.projects.by_folder(self.cwd)

    @property
    def private_projects(self) -> frozenset[str]:
        """Keys of those whose memory stays in them."""
        return self.projects.private

    def narrow_filters(self, filters: Filters, query: str) -> Filters:
        """Where a question names no project it means all of them or, where the user has set
        `cross_project` to false, the current one."""
        from yester.text.query import parse_query

        named = [value for name, value in parse_query(query).filters if name == "project"]
        filters = self.hide_private(filters, *named)
        if filters.projects or named or not self.cwd or self.config.flag("cross_project"):
            return filters
        return replace(filters, projects=(self.current_project.key,))

    def hide_private(self, filters: Filters, *named: str) -> Filters:
        """The filters without the private projects that do not belong here: all but the current one
        and those that the filters, or somebody else, have `named`. An agent in a folder cannot get
        at one by naming it."""
        if not self.config.private:
            return filters
        private = self.private_projects
        shown = {self.current_project.key} if self.cwd else set()
        if self.origin == "user" or not self.cwd:
            names = {*filters.projects, *named}
            shown |= {one.key for one in self.reading.projects() if {one.key, one.name} & names}
        return replace(filters, without_projects=tuple(sorted(private - shown)))

    def get_items(self, ids: Sequence[int]) -> list[Item]:
        """Items by id. A person may read any; an agent none of another project that is private."""
        hidden = () if self.origin == "user" else self.hide_private(ANYTHING).without_projects
        return [item for item in self.reading.get(ids) if item.project not in hidden]

    def git_signals(self, folder: str, wait: bool = True) -> Signals:  # noqa: ARG002
        """What git says about the work in a folder; without `wait`, what is known already."""
        from yester import git

        if not folder:
            return git.Signals()
        return git.collect_signals(folder, time.monotonic() + self.patience)

    def answer(self, asked: Asked) -> Answer:
        """The worker's answer, else our own. It is ranked for the current project and the files at
        hand; without a current one for the project that is asked about."""
        from yester import git
        from yester.recall.beginning import changed_files

        asked = replace(asked, window=self.config.number("recency_window_days") * DAY)
        root = ""
        if self.cwd:
            project = self.current_project
            root = git.find_top(self.cwd, project.root)
            files = changed_files(self.git_signals(root)) if asked.query else ()
            asked = replace(asked, project=project.key, files=files)
        elif not asked.project and len(asked.filters.projects) == 1:
            asked = replace(asked, project=asked.filters.projects[0])
        found = self._ask_worker(asked, root)
        if found is not None:
            return found
        from yester.recall.recall import answer_question

        embedder = self.search_embedder if asked.query else None
        fates = self.judge_staleness(root) if root else None
        return answer_question(self.reading, asked, self.weights, embedder, fates)

    def _compares_vectors(self) -> bool:
        from yester.store.figures import has_vectors

        return self.config["embedder"] != "none" and has_vectors(self.reading)

    def _ask_worker(self, asked: Asked, root: str) -> Answer | None:
        """One question at a time, so that hooks never wait behind more than one."""
        if self._question is None or not asked.query or self.config["embedder"] == "none":
            return None
        if self._store is not None and not self._compares_vectors():
            return None  # the store is open, and there is nothing the worker could do better
        shared = self._shared
        if not shared.worker_turn.acquire(timeout=_TURN if shared.model is None else 0.0):
            return None
        try:
            return self._question(self.home, asked, root)
        finally:
            shared.worker_turn.release()

    @property
    def git_facts(self) -> GitFacts:
        """What was read of the histories of work trees."""
        from yester.recall.staleness import GitFacts

        if self._git_facts is None:
            self._git_facts = GitFacts()
        return self._git_facts

    def former_names(self, root: str, file: str) -> list[str]:
        """What git says a file of a project's folder was called before."""
        return self.git_facts.former_names(root, file, time.monotonic() + self.patience)

    def judge_staleness(self, root: str) -> Callable[[Sequence[Work]], Mapping[int, Staleness]]:
        """What says which items are about files that have changed since, in a project's folder."""
        from yester.recall.staleness import judge_staleness

        facts = self.git_facts.gather_facts

        def fates(works: Sequence[Work]) -> Mapping[int, Staleness]:
            if not root:
                return {}
            return judge_staleness(works, facts(root, works, time.monotonic() + self.patience))

        return fates


def quote_value(text: str, longest: int = 200) -> str:
    """A value as a message may quote it: short, and without a secret somebody has put there."""
    from yester.redact import redact

    text = redact(text)
    return text if len(text) <= longest else text[:longest] + "…"


def missing_items(ids: Sequence[int], parameter: str = "ids") -> NotFound:
    named, value = join_names([f"#{one}" for one in ids]), ",".join(map(str, ids))
    return NotFound(f"no item {named}", "a search shows ids", parameter=parameter, value=value)


def join_names(names: Sequence[str], most: int = _LISTED_NAMES) -> str:
    """Some of many, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def unknown_name(what: str, value: str, known: Iterable[str], parameter: str) -> NotFound:
    """A name nobody has; those like it, else some there are."""
    from difflib import get_close_matches

    names = sorted(known)
    alike = get_close_matches(value, names, 3, 0.5)
    there = f"there is {join_names(names)}" if names else "nothing is recorded yet"
    fix = f"did you mean {' or '.join(alike)}?" if alike else there
    return NotFound(
        f"no {what} is called {quote_value(value)!r}", quote_value(fix, 1_000),
        parameter=parameter, value=value,
    )  # fmt: skip
