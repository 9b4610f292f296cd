"""What is stored about what, since when, how much, and what would leave the machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Struct

from yester.known_secrets import KnownSecrets
from yester.memory import Memory
from yester.operations.fields import about
from yester.operations.request import NoRequest
from yester.operations.wish import list_copies, load_wish, own_files
from yester.project import Projects
from yester.redact import redact
from yester.tombstones import Tombstones


class Stored(Struct, kw_only=True):
    """What there is of one project."""

    project: str
    private: Annotated[bool, about("Is it shown nowhere else?")]
    items: int
    kinds: dict[str, int]
    characters: int
    oldest: int
    newest: int


class Sized(Struct, kw_only=True):
    what: str
    files: int
    bytes: int


class Leaving(Struct, kw_only=True):
    """What is sent off this machine, or would be, and the setting that says so."""

    what: str
    where: str
    setting: str


class Privacy(Struct, kw_only=True):
    home: str
    projects: list[Stored]
    files: list[Sized]
    excluded: Annotated[list[str], about("Folders of which nothing is kept.")]
    leaves: list[Leaving]
    named_secrets: Annotated[int, about("Ways to write secrets that the user has named.")]
    forgotten: Annotated[int, about("Marks of what must not come back.")]
    unfinished: Annotated[bool, about("A forget or redact was interrupted; ask again.")]


def show_privacy(memory: Memory, request: NoRequest) -> Privacy:  # noqa: ARG001
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
    private = Projects(memory.config.projects, private=memory.config.private).private
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
    if config["embedder"] == "http":
        yield Leaving(
            what="the text of every item, and of every question",
            where=_name_host(config.text("embed.url")), setting="embedder = http, embed.url",
        )  # fmt: skip
    if (provider := config.text("llm.provider")) != "none":
        where = _name_host(config.text("llm.url")) or f"{provider}'s own address"
        yield Leaving(
            what="excerpts of sessions that are distilled, digests and archives, without secrets",
            where=where, setting=f"llm.provider = {provider}",
        )  # fmt: skip


def _name_host(url: str) -> str:
    """The host alone: a URL may hold a password."""
    host = urlsplit(url).hostname or ""
    return f"{host} (this machine)" if host in ("localhost", "127.0.0.1", "::1") else host
