"""Is it gone? Every byte that yester owns is looked at, and every value of its databases: one may
lie on several pages, where no search in the file finds it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from yester.errors import StoreError
from yester.memory import Memory
from yester.operations import fields
from yester.operations.fields import about
from yester.operations.request import Request
from yester.operations.wish import own_files
from yester.store import search_values

_CHUNK = 1 << 23  # bytes of a file that are looked at together
_DATABASE = b"SQLite format 3\0"


class VerifyRequest(Request, kw_only=True):
    strings: Annotated[
        list[Annotated[str, about("A text.", min_length=1, max_length=4_000)]],
        about("What must be nowhere.", min_length=1, max_length=fields.MOST_IDS),
    ]


class Occurrence(Struct, kw_only=True):
    path: str
    string: Annotated[int, about("Which of the strings, from 1.")]
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
    forms = {string: [one.lower() for one in _encode_string(string)] for string in request.strings}
    longest = max(len(one) for some in forms.values() for one in some)

    def holds(data: bytes) -> list[str]:
        folded = data.lower()
        return [string for string, some in forms.items() if any(one in folded for one in some)]

    numbers = {string: number for number, string in enumerate(request.strings, 1)}
    files = own_files(memory)
    found: list[Occurrence] = []
    size = databases = 0
    for path in files:
        times: Counter[str] = Counter()
        with suppress(FileNotFoundError):  # others come and go meanwhile
            for chunk in _read_chunks(path, longest):
                times.update(holds(chunk))
            size += path.stat().st_size
        if _is_database(path):
            databases += 1
            with suppress(StoreError):  # damaged, or another program's: its bytes were looked at
                times |= search_values(path, holds)
        found += [
            Occurrence(path=str(path), string=numbers[string], times=number)
            for string, number in times.items()
        ]
    where = f"{len(files):,} files, {size:,} bytes, {databases} databases row by row"
    told = "found in " + ", ".join(sorted({one.path for one in found})) if found else "not found"
    return Verified(
        absent=not found, files=len(files), bytes=size, databases=databases,
        forms=["UTF-8", "JSON, escaped and not", "UTF-16, both orders"], found=found,
        message=f"{told}; looked at {where}",
    )  # fmt: skip


def _encode_string(string: str) -> set[bytes]:
    texts = {string, string.lower()}
    texts |= {
        json.dumps(one, ensure_ascii=ascii_)[1:-1] for one in set(texts) for ascii_ in (False, True)
    }
    encodings = ("utf-8", "utf-16-le", "utf-16-be")
    return {one.encode(name, "surrogatepass") for one in texts for name in encodings}


def _read_chunks(path: Path, overlap: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        last = b""
        while chunk := file.read(_CHUNK):
            yield last + chunk
            last = chunk[-overlap:]


def _is_database(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE
    return False
