"""What the user wants gone, taken out of everything that is ours, byte by byte: forget, and redact
again.

    rows, vectors and terms → the full text → the log → backups → spool, logs, archives

The wish is written down before anything is done (`forgetting`, beside the database) and struck out
when all of it is: whoever kills the process, or pulls the plug, finds it unfinished, and the next
call finishes it. Every step can be done twice. What was forgotten is known by `yester.tombstones`
from the first step on; a wish names sessions and words, so it goes with the last.

Nothing of this is a model's to do: there is no MCP tool for it, and a program may look, not act.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from shutil import rmtree
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from yester.capture.question import ask_worker
from yester.capture.spool import LARGEST, open_spool, redact_file
from yester.errors import NotFound, StoreBusy, UsageError, YesterError
from yester.files import read_bytes, replace_file
from yester.folders import open_folders
from yester.known_secrets import KnownSecrets
from yester.llm.archive import edit_archives, short_key
from yester.memories.files import INSIDE
from yester.memory import Memory, missing_items
from yester.model import CURATED, DISTILLED, Filters, Forgotten, Item, Session, replace
from yester.operate.backups import list_backups
from yester.operate.purge import open_copy, purge_store, redact_store
from yester.operations import fields
from yester.operations.request import DatedRequest, Request, make_filters
from yester.redact import redact, secret_kinds, strip_private
from yester.sharing.exchange import Progress
from yester.store import file_store, rewrite_texts, scrub_store, store_files, walk_items
from yester.store.contract import Store
from yester.store.lock import write_lock
from yester.text.sentences import count_noun, shorten_text
from yester.tombstones import Key, Tombstones, label_keys, ref_key, text_key

_NO_UNDO = "There is no undo, and no copy is kept."
_WORD = re.compile(r'"([^"]+)"|(\S+)')
_SAMPLES, _TITLE = 8, 100


class ForgetRequest(DatedRequest, kw_only=True):
    ids: Annotated[list[fields.Id], Meta(max_length=fields.MOST_IDS)] = field(default_factory=list)
    query: fields.Text = ""
    session: fields.Name = ""
    project: fields.ProjectName = ""
    files: fields.Names = field(default_factory=list)
    agent: fields.AgentName = ""
    yes: bool = False


class RedactRequest(Request, kw_only=True):
    yes: bool = False


class Sample(Struct):
    id: int
    kind: str
    date: int
    project: str
    title: str


class Elsewhere(Struct):
    """What is not yester's to remove, and the command that would."""

    path: str
    whose: str
    command: str


class Removal(Struct, kw_only=True):
    """What both say."""

    done: bool
    backups: list[str]
    dropped: dict[str, str]
    message: str


class Forgetting(Removal, kw_only=True):
    items: int
    kinds: dict[str, int]
    derived: int
    sessions: int
    oldest: int
    newest: int
    samples: list[Sample]
    marked: list[int]
    elsewhere: list[Elsewhere]


class Redacted(Removal, kw_only=True):
    secrets: dict[str, int]


# --- forget --------------------------------------------------------------------------------------


class _Chosen(Struct):
    """What a request means."""

    items: list[Item]
    sessions: list[Session] = []  # whole ones
    projects: list[str] = []  # whole ones, by their keys
    words: list[str] = []  # wherever they stand
    titled: list[Session] = []  # only what they are called goes


def forget_items(
    memory: Memory, request: ForgetRequest, progress: Progress = lambda *_: None
) -> Forgetting:
    """Take something out for good, with all that came of it, also from backups; shows what would
    go unless `yes`. There is no undo."""
    finished = request.yes and _finish_wish(memory, progress)
    try:
        chosen = _choose_items(memory, request)
    except (NotFound, UsageError):
        if not finished:
            raise
        chosen = _Chosen([])  # it was this that was begun before
    store, projects = memory.reading, chosen.projects
    whole = [one.id for one in (*chosen.sessions, *chosen.titled)]
    found = store.forget([one.id for one in chosen.items], whole, projects, dry_run=True)
    gone = store.get(found.items)
    answer = _describe_forgetting(memory, request.yes, gone, found)
    for one in store.projects() if chosen.words else ():
        if has_words(f"{one.name} {one.root}", chosen.words):
            name = quote(one.name)
            answer.message += f"\nThe project of this name as well: yester forget --project {name}"
    if request.yes and (gone or found.sessions or projects or chosen.words):
        roots = [one.root for one in store.projects() if one.key in projects and one.root]
        keys = sorted({one.key for one in found.sessions})
        wish = Wish("forget", memory.now, keys, roots, chosen.words)
        open_folders(memory.home).drop(
            lambda one: one.project in projects or has_words(one.path, chosen.words)
        )
        _bury_items(memory, chosen, found, gone, wish.made)
        answer.dropped = grant_wish(memory, wish, progress)
    return answer


def _finish_wish(memory: Memory, progress: Progress) -> bool:
    """Something was begun and not finished: it is now. Only a user may act."""
    memory.require_user("what is forgotten is the user's word; a program can only look")
    wish = load_wish(memory.home)
    if wish is not None:
        grant_wish(memory, wish, progress)
    return wish is not None


def _choose_items(memory: Memory, request: ForgetRequest) -> _Chosen:
    store = memory.reading
    if request.ids:
        found = store.get(request.ids)
        known = {item.id for item in found}
        if missing := [one for one in request.ids if one not in known]:
            raise missing_items(missing)
    words = [(phrase or word).casefold() for phrase, word in _WORD.findall(request.query)]
    session = memory.find_session(request.session) if request.session else None
    filters = make_filters(memory, request, session=session.key if session else "")
    narrowed = [
        name for name in ("projects", "files", "agent", "session", "since", "until")
        if getattr(filters, name) not in (None, "", ())
    ]  # fmt: skip
    if request.ids:
        if words or narrowed:
            raise UsageError("items by id and other conditions exclude each other; say one of both")
        return _Chosen(found)
    if not words and not narrowed:
        raise UsageError(
            "nothing says what is to be forgotten",
            "name items, a query, a session, a project, a file, a time or an agent",
        )
    items = [one for one in walk_items(store, filters) if has_words("\n".join(one.texts), words)]
    chosen = _Chosen(items, words=[] if narrowed else words)
    if words and not request.files:
        chosen.titled = [
            one for one in store.sessions(filters)
            if has_words(one.title, words) or has_words(one.branch, words)
        ]  # fmt: skip
    quoted = chosen.words and blank_quotes(store, chosen.words)
    if narrowed == ["session"] and session and not words:
        chosen.sessions = store.sessions(Filters(session=session.key))
    elif narrowed == ["projects"] and not words:
        chosen.sessions = store.sessions(filters)
        chosen.projects = list(filters.projects)
    elif not (items or chosen.titled or quoted):
        memory.check_names(filters)
        raise NotFound("nothing of the kind is stored; `--verify` looks at every byte")
    return chosen


def _bury_items(
    memory: Memory, chosen: _Chosen, found: Forgotten, gone: Sequence[Item], now: int
) -> None:
    """From now on whoever brings it again brings it in vain: items by where they stood and what
    they said; what came of others by what it said alone, since it may be made anew of what is left;
    what went with its session or project by that, but for memories, which may come without."""
    sessions = {one.key for one in chosen.sessions} | {*found.emptied}
    keys: dict[Key, int] = {("project", key): now for key in chosen.projects}
    keys |= {("session", key): now for key in sessions}
    for item in gone:  # what another machine has said, whose clock may run ahead
        for key in (("project", item.project), ("session", item.session)):
            if key in keys:
                keys[key] = max(keys[key], item.epoch, item.updated)
    for one in found.sessions:
        named = one.key in sessions or has_words(one.branch, chosen.words or ["\0"])
        keys |= dict.fromkeys(label_keys(one if named else replace(one, branch="")), now)
    derived = {*found.derived}
    for item in gone:
        whole = item.session in sessions or item.project in chosen.projects
        if item.source != DISTILLED and (item.kind == "memory" or not whole):
            made = max(now, item.epoch, item.updated)
            keys |= {ref_key(item): made, text_key(item): made}
        elif item.source == DISTILLED or item.id in derived:
            keys[text_key(item)] = now
    Tombstones(memory.home).add(keys)


def _describe_forgetting(
    memory: Memory, done: bool, gone: Sequence[Item], found: Forgotten
) -> Forgetting:
    names, derived = memory.project_names(), {*found.derived}
    samples = [
        Sample(item.id, item.kind, item.epoch, redact(names.get(item.project, item.project)), title)
        for item in gone
        if item.id not in derived
        for title in [shorten_text(redact(item.title or item.body), _TITLE)]
    ]
    many = f"{count_noun(len(gone), 'item')} of {count_noun(len(found.sessions), 'session')}"
    told = "gone, and every backup written anew" if done else "would go"
    return Forgetting(
        done=done, items=len(gone), kinds=dict(Counter(item.kind for item in gone)),
        derived=len(found.derived), sessions=len(found.sessions),
        oldest=min((item.epoch for item in gone), default=0),
        newest=max((item.epoch for item in gone), default=0),
        samples=[] if done else samples[:_SAMPLES], marked=list(found.marked),
        backups=[path.name for path in list_copies(memory.home)], dropped={},
        elsewhere=[
            *_list_transcripts(memory, found), *_list_notes(memory, gone),
            *_list_log(memory, gone), *_list_teams(memory, gone),
        ],
        message=f"{many} {told}. {_NO_UNDO}",
    )  # fmt: skip


# --- what is not ours ----------------------------------------------------------------------------


def _list_transcripts(memory: Memory, found: Forgotten) -> Iterator[Elsewhere]:
    """Transcripts that are still there. One that holds other sessions as well is no file to
    remove; its agent can delete the session."""
    touched = {one.id for one in found.sessions}
    users: defaultdict[str, list[Session]] = defaultdict(list)
    for one in memory.reading.sessions(Filters()):
        users[one.transcript].append(one)
    for path in sorted({one.transcript for one in found.sessions if one.transcript}):
        if not Path(path).is_file():
            continue
        own = all(one.id in touched for one in users[path])
        agent = users[path][0].agent if users[path] else "the agent"
        plain = own and Path(path).suffix in (".jsonl", ".json", ".md")
        command = f"rm -- {quote(path)}" if plain else f"delete the session in {agent}"
        yield Elsewhere(path, agent, command)


def _list_log(memory: Memory, gone: Sequence[Item]) -> Iterator[Elsewhere]:
    """The log of the user's machines, which has it under its key until there is another."""
    from yester.sharing.roam import load_roaming  # as below: they load the network, to no use here

    state = load_roaming(memory.home) if gone else None
    if state is not None:
        yield Elsewhere(redact(state.to), "yours, encrypted", "yester roam --new-key")


def _list_teams(memory: Memory, gone: Sequence[Item]) -> Iterator[Elsewhere]:
    """Servers that have it and the stores of their members: they hear of it at the next run."""
    from yester.sharing.share import load_shares

    projects = {item.project for item in gone}
    for share in load_shares(memory.home).projects:
        if share.project in projects and not share.ended:
            yield Elsewhere(redact(share.to), "your team's", "yester share --now")


def _list_notes(memory: Memory, gone: Sequence[Item]) -> Iterator[Elsewhere]:
    """Files that the user or an agent keeps, and memories that were written into a repository."""
    noted = {item.ref.partition("#")[0] for item in gone if item.source in CURATED}
    for path in sorted(noted):
        if Path(path).is_file():
            yield Elsewhere(path, "yours", f"edit {quote(path)}")
    roots = {one.key: one.root for one in memory.reading.projects()}
    for memo in memory.reading.memos(ids=[item.id for item in gone if item.kind == "memory"]):
        if root := roots.get(memo.item.project):
            for file in Path(root, INSIDE).glob(f"*/{glob.escape(memo.slug)}.json"):
                yield Elsewhere(str(file), "yours", f"rm -- {quote(str(file))}")


# --- redact again --------------------------------------------------------------------------------


def redact_again(
    memory: Memory, request: RedactRequest, progress: Progress = lambda *_: None
) -> Redacted:
    """Apply today's rules for secrets to everything stored and to backups; counts what it would
    take out unless `yes`. There is no undo."""
    if request.yes:
        _finish_wish(memory, progress)
    secrets = count_secrets(memory.reading)
    backups = [path.name for path in list_copies(memory.home)]
    dropped = grant_wish(memory, Wish("redact", memory.now), progress) if request.yes else {}
    told = "taken out, and every backup written anew" if request.yes else "would be taken out"
    return Redacted(
        done=request.yes, secrets=dict(sorted(secrets.items())), backups=backups, dropped=dropped,
        message=f"{count_noun(secrets.total(), 'secret')} in the store {told}. {_NO_UNDO}",
    )  # fmt: skip


def redact_secret(memory: Memory, value: str, progress: Progress = lambda *_: None) -> Redacted:
    """Take one value out of everything, and keep it out for ever. It is not kept: a keyed digest
    knows it again."""
    _finish_wish(memory, progress)
    KnownSecrets(memory.home).add(value)
    memory.close()  # whoever opens the store knows it from then on
    _ = memory.store
    return redact_again(memory, RedactRequest(yes=True), progress)


# --- the wish, and all that it means --------------------------------------------------------------

_STOPPING = 20.0  # seconds a worker may take to finish what it has
# Half of something, by processes that were killed.
_LEFT_BEHIND = (
    "backups/*.part*", "yester-before-restore-*.part", "run/restore-*", ".forgetting.*",
    ".forgotten.*", ".secrets.*",
)  # fmt: skip


_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")  # as JSON may write a letter


def _read_escape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


class Wish(Struct):
    """What is to be done, in words of the user's: it is on the disk only until it is done."""

    what: Literal["forget", "redact"]
    made: int
    sessions: list[str] = []  # keys; something of each goes
    places: list[str] = []  # folders of which nothing stays
    words: list[str] = []  # what stands with all of them goes
    backups: list[str] = []  # those that are done

    def names(self, text: str) -> bool:
        """Is this a text of one of the sessions or places, or one with these words?"""
        places = [os.path.join(place, "") for place in self.places]  # noqa: PTH118 -- ends with /
        return (
            any(key in text for key in self.sessions)
            or any(place in text or f'"{place[:-1]}"' in text for place in places)
            or bool(self.words and has_words(_ESCAPE.sub(_read_escape, text), self.words))
        )


def _wish_file(home: Path) -> Path:
    return home / "forgetting"


def load_wish(home: Path) -> Wish | None:
    """What was begun and not finished."""
    with suppress(FileNotFoundError):
        return msgspec.json.decode(_wish_file(home).read_bytes(), type=Wish)
    return None


def _save_wish(home: Path, wish: Wish) -> None:
    replace_file(_wish_file(home), msgspec.json.encode(wish), sync=True)


def grant_wish(memory: Memory, wish: Wish, progress: Progress) -> dict[str, str]:
    """Do all of it; what could not be rewritten, and why. Nobody takes events in meanwhile: the
    worker ends first, and hooks leave theirs in the spool."""
    home, store = memory.home, memory.store
    _save_wish(home, wish)
    with no_worker(home):
        _change_store(store, wish, home)
        for path in store_files(memory.target):
            progress("the store is written anew", 0, 1)
            scrub_store(path, home)
        with write_lock(home / "run" / "restore.lock", _STOPPING):
            dropped = _rewrite_backups(home, wish, progress)
        progress("spool, logs, archives", 0, 1)
        _clean_spool(memory, wish)
        (home / "run" / "armed").unlink(missing_ok=True)  # words of errors; the next worker's
        for log in home.glob("logs/*"):  # nothing that was captured; paths and sessions may be
            with suppress(OSError):
                os.truncate(log, 0)
        names = {short_key(key) for key in wish.sessions}

        def change(name: str, block: str) -> str:
            if wish.what == "redact":
                return redact(block)
            return "" if name in names or wish.names(block) else block

        edit_archives(memory.config, change)
        _wish_file(home).unlink(missing_ok=True)
    return dropped


def forget_marked(memory: Memory, progress: Progress) -> Callable[[], Store]:
    """What takes out, everywhere, what somebody else's word has had marked as forgotten here, and
    gives back the store, opened anew."""

    def forget() -> Store:
        for wish in (load_wish(memory.home), Wish("forget", memory.now)):
            if wish is not None:
                grant_wish(memory, wish, progress)
        return memory.store

    return forget


@contextmanager
def no_worker(home: Path) -> Iterator[None]:
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    ask_worker(home / "run", "POST /stop", 2.0)
    try:
        with write_lock(home / "run" / "worker.lock", _STOPPING):
            yield
    except StoreBusy as busy:
        if "worker.lock" not in str(busy):
            raise
        raise StoreBusy(
            f"{home}: the worker does not end, and it may write; yester worker stop, then ask again"
        ) from None


def _change_store(store: Store, wish: Wish, home: Path) -> None:
    if wish.what == "redact":
        redact_store(store)
        return
    purge_store(store, home)
    if wish.words:
        with store.transaction("items"):
            blank_quotes(store, wish.words, apply=True)


def blank_quotes(store: Store, words: Sequence[str], apply: bool = False) -> int:
    """Lines of histories and ledgers in which all these words stand, made empty; how many."""

    def blank(text: str) -> str:
        return "(forgotten)" if has_words(text, words) else text

    return rewrite_texts(store, blank, None, apply, only_quotes=True)


def has_words(text: str, words: Sequence[str]) -> bool:
    """Do all of them stand there, whatever their case? They are folded."""
    folded = text.casefold() if words else ""
    return all(word in folded for word in words)


def list_copies(home: Path) -> list[Path]:
    """Every copy of the store: backups, and former stores that a restore has put aside."""
    return [*list_backups(home), *sorted(home.glob("yester-before-restore-*.db"))]


def _rewrite_backups(home: Path, wish: Wish, progress: Progress) -> dict[str, str]:
    """Each backup without what goes; one that cannot be read is dropped, with the reason."""
    for left in (path for pattern in _LEFT_BEHIND for path in home.glob(pattern)):
        rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    copies, dropped = list_copies(home), dict[str, str]()
    for number, path in enumerate(copies):
        progress("backups", number, len(copies))
        if path.name in wish.backups:
            continue
        try:
            with open_copy(path, home, wish.made) as (store, copy):
                _change_store(store, wish, home)
                scrub_store(copy, copy.parent)
                file_store(store).backup(path)
        except YesterError as error:
            dropped[path.name] = str(error)
            path.unlink(missing_ok=True)
        Path(f"{path}-wal").unlink(missing_ok=True)
        wish.backups.append(path.name)
        _save_wish(home, wish)
    progress("backups", len(copies), len(copies))
    return dropped


def _clean_spool(memory: Memory, wish: Wish) -> None:
    """What waits, and what was set aside, without what is meant; for a redaction without its
    secrets."""
    for folder in open_spool(memory.home, memory.environ).folders:
        for path in (*folder.glob("new/*"), *folder.glob("bad/*"), *folder.glob("tmp/*")):
            with suppress(OSError):
                if wish.what == "redact":
                    redact_file(path)
                elif wish.names(read_bytes(path, LARGEST).decode("utf-8", "replace")):
                    path.unlink()
                    (folder / "reasons").unlink(missing_ok=True)


# --- what is there -------------------------------------------------------------------------------


def count_secrets(store: Store) -> Counter[str]:
    """What today's rules would take out of what is stored, by its kind; never a value."""
    found: Counter[str] = Counter()

    def look(text: str) -> str:
        clean = strip_private(text)
        found.update(secret_kinds(clean))
        found["private"] += clean != text
        return text

    for item in walk_items(store):
        for text in item.texts:
            look(text)
    rewrite_texts(store, look, None, apply=False)
    return +found


def own_files(memory: Memory) -> list[Path]:
    """Every file that yester writes: its home, the second spools, and blocks in archives that stand
    beside an agent's own notes."""
    roots = [memory.home, *open_spool(memory.home, memory.environ).folders[1:]]
    found = {path for root in roots for path in root.rglob("*") if path.is_file()}
    for folder in memory.config.texts("claude_code_dirs"):
        found.update(Path(folder).expanduser().glob("projects/*/memory/sessions/*.md"))
    return sorted(path for path in found if not path.is_symlink())
