"""What is stored about what, since when, how much, what would leave the machine; and whether
something is really gone: every byte that yester owns is looked at, and every value of its
databases, since one may lie on several pages, where no search in the file finds it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from yester.agents.sources import is_database
from yester.errors import StoreError
from yester.files import open_unpacked
from yester.known_secrets import KnownSecrets
from yester.memory import Memory
from yester.operations import fields
from yester.operations.forget import list_copies, load_wish, own_files
from yester.operations.request import Request
from yester.redact import redact
from yester.sharing.roam import load_roaming
from yester.sharing.share import load_shares
from yester.store import is_server_url, keeps_file, read_values, store_values
from yester.tombstones import Tombstones

_CHUNK = 1 << 23  # bytes of a file that are looked at together


class Stored(Struct, kw_only=True):
    """What there is of one project."""

    project: str
    private: bool
    items: int
    kinds: dict[str, int]
    characters: int
    oldest: int
    newest: int


class Sized(Struct, kw_only=True):
    what: str
    files: int
    bytes: int


class Leaving(Struct):
    """What is sent off this machine, or would be, and the setting that says so."""

    what: str
    where: str
    setting: str


class Privacy(Struct, kw_only=True):
    home: str
    projects: list[Stored]
    files: list[Sized]
    excluded: list[str]
    leaves: list[Leaving]
    named_secrets: int
    forgotten: int
    unfinished: bool


def show_privacy(memory: Memory) -> Privacy:
    """What is stored about what, since when, how big, and what would leave the machine."""
    return Privacy(
        home=str(memory.home),
        projects=_list_stored(memory),
        files=_measure_files(memory),
        excluded=[redact(one) for one in memory.config.texts("exclude")],
        leaves=list(_list_leaving(memory)),
        named_secrets=len(KnownSecrets(memory.home)),
        forgotten=len(Tombstones(memory.home)),
        unfinished=load_wish(memory.home) is not None,
    )


def _list_stored(memory: Memory) -> list[Stored]:
    store, names = memory.reading, memory.project_names()
    private = memory.private_projects
    kinds: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for project, kind, number in store.totals("item", ("project", "kind")):
        kinds[project][kind] = number
    sums = ("number", "characters", "oldest", "newest")
    found = [
        Stored(
            project=redact(names.get(key, key)), private=key in private, items=number,
            kinds=kinds[key], characters=characters, oldest=oldest, newest=newest,
        )
        for key, number, characters, oldest, newest in store.totals("item", ("project",), sums)
    ]  # fmt: skip
    return sorted(found, key=lambda one: -one.items)


def _measure_files(memory: Memory) -> list[Sized]:
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    copies = set(list_copies(memory.home))
    for path in own_files(memory):
        sizes[_name_file(memory.home, path, path in copies)].append(path.stat().st_size)
    return [Sized(what=what, files=len(some), bytes=sum(some)) for what, some in sizes.items()]


def _name_file(home: Path, path: Path, copy: bool) -> str:
    if copy:
        return "backups"
    if not path.is_relative_to(home):
        return "spool" if "spool" in path.parts else "archives beside an agent's notes"
    first = path.relative_to(home).parts[0]
    return "store" if first.startswith("yester.db") else first


def _list_leaving(memory: Memory) -> Iterator[Leaving]:
    config = memory.config
    if (roaming := load_roaming(memory.home)) is not None:
        where = _name_host(roaming.to) or redact(roaming.to)
        what = "every item, encrypted, but those of private projects"
        yield Leaving(what, where, "yester roam")
    for share in load_shares(memory.home).projects:
        if not share.ended:
            project = redact(memory.project_names().get(share.project, share.project))
            what = f"everything of {project} but its rules and notes"
            yield Leaving(what, _name_host(share.to), "yester share")
    if is_server_url(memory.target):
        what, where = "everything that is kept, and every question", _name_host(str(memory.target))
        yield Leaving(what, where, "the file database in yester's folder")
    if config["embedder"] == "http":
        what, where = "the text of every item, and of every question", config.text("embed.url")
        yield Leaving(what, _name_host(where), "embedder = http, embed.url")
    if (provider := config.text("llm.provider")) != "none":
        where = _name_host(config.text("llm.url")) or f"{provider}'s own address"
        what = "excerpts of sessions that are distilled, digests and archives, without secrets"
        yield Leaving(what, where, f"llm.provider = {provider}")


def _name_host(url: str) -> str:
    """The host alone: a URL may hold a password."""
    host = urlsplit(url).hostname or ""
    return f"{host} (this machine)" if host in ("localhost", "127.0.0.1", "::1") else host


# --- is it gone? ----------------------------------------------------------------------------------


class VerifyRequest(Request, kw_only=True):
    strings: Annotated[
        list[Annotated[fields.GivenText, Meta(description="A text.")]],
        Meta(min_length=1, max_length=fields.MOST_IDS),
    ]


class Occurrence(Struct):
    path: str
    string: int
    times: int


class Verified(Struct, kw_only=True):
    absent: bool
    files: int
    bytes: int
    databases: int
    forms: list[str]
    found: list[Occurrence]
    message: str


def verify_absence(memory: Memory, request: VerifyRequest) -> Verified:
    """Look for strings in every byte that yester owns, and in every value of its databases; upper
    and lower case are the same."""
    forms = [[one.lower() for one in _encode_string(string)] for string in request.strings]
    longest = max(len(one) for some in forms for one in some)
    files, times, size = own_files(memory), Counter[tuple[str, int]](), 0
    databases = [path for path in files if path.suffix == ".gz" or is_database(path)]

    def look_through(place: str, parts: Iterable[bytes]) -> None:
        for part in map(bytes.lower, parts):
            met = (n for n, some in enumerate(forms, 1) if any(one in part for one in some))
            times.update((place, number) for number in met)

    for path in files:
        # Others come and go meanwhile; of one that is damaged the bytes were looked at.
        with suppress(FileNotFoundError, StoreError):
            size += path.stat().st_size
            values = read_values(path) if path in databases else ()
            look_through(str(path), chain(_read_chunks(path, longest), values))
    store = memory.reading
    if not keeps_file(store):
        look_through(store.location, store_values(store))
        databases.append(Path(store.location))
    found = [Occurrence(place, number, many) for (place, number), many in times.items()]
    where = f"{len(files):,} files, {size:,} bytes, {len(databases)} databases row by row"
    told = "found in " + ", ".join(sorted({one.path for one in found})) if found else "not found"
    return Verified(
        absent=not found, files=len(files), bytes=size, databases=len(databases),
        forms=["UTF-8", "JSON, escaped and not", "UTF-16, both orders"], found=found,
        message=f"{told}; looked at {where}",
    )  # fmt: skip


def _encode_string(string: str) -> set[bytes]:
    texts = {string, string.lower(), string.upper()}
    texts |= {
        json.dumps(one, ensure_ascii=ascii_)[1:-1] for one in set(texts) for ascii_ in (False, True)
    }
    encodings = ("utf-8", "utf-16-le", "utf-16-be")
    return {one.encode(name, "surrogatepass") for one in texts for name in encodings}


def _read_chunks(path: Path, overlap: int) -> Iterator[bytes]:
    with open_unpacked(path) as file:
        last = b""
        while chunk := file.read(_CHUNK):
            yield last + chunk
            last = chunk[-overlap:]
