"""The log: each machine's segments, in a chain of their own.

    LOG                                  which log this is, and which key it has
    LOG-ID/MACHINE/00000012-9f3a…        a segment: its number, the beginning of its digest

A segment is a head and ONE authenticated box of compressed lines. The head (form, machine, number,
digest of the machine's segment before it) is what the box was sealed about, so whatever was forged,
cut off, put in another's place or left out is seen. A name says nothing of what is in it.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec import Struct

from yester.errors import SourceError
from yester.sharing.keys import NONCE, Key
from yester.sharing.wire import Line, decode_line, encode_line

FORM = 1
HEAD = "LOG"
FIRST = bytes(32)  # in place of the digest of a former segment
MOST_BYTES = 64 << 20  # of a segment, unpacked; ours have a tenth
_HEAD = struct.Struct(">8s32sQ32s")  # about the box; then the nonce, and how long the box is
_MAGIC = b"yester-" + bytes([FORM])
_LENGTH = struct.Struct(">I")
_PATH = re.compile(r"([0-9a-f]{16})/([0-9a-f]{12}-[0-9a-f]{12})/([0-9]{8,})-([0-9a-f]{16})")


class LogHead(Struct, frozen=True):
    """The file LOG. Whoever can write there can change it: it is believed of nothing but which
    files to look at."""

    log: str
    key: str
    form: int = FORM


class SegmentName(NamedTuple):
    log: str
    machine: str
    number: int
    start: str  # of the digest

    @property
    def path(self) -> str:
        return f"{self.log}/{self.machine}/{self.number:08d}-{self.start}"

    @property
    def label(self) -> str:
        """What people are told of it."""
        return f"segment {self.number} of machine {self.machine[:4]} ({self.path})"


class Segment(NamedTuple):
    former: str  # hex
    mark: str  # hex, of all its bytes
    lines: list[Line]
    unknown: int  # lines that a newer yester knows


class BadSegment(SourceError):
    """A segment that is not what it should be; the message names it."""


def read_name(path: str) -> SegmentName | None:
    """None: something else that lies there."""
    found = _PATH.fullmatch(path)
    return SegmentName(found[1], found[2], int(found[3]), found[4]) if found else None


def encode_head(head: LogHead) -> bytes:
    return msgspec.json.encode(head) + b"\n"


def decode_head(data: bytes, where: str) -> LogHead:
    try:
        head = msgspec.json.decode(data, type=LogHead)
    except msgspec.MsgspecError as error:
        raise SourceError(f"{where}/{HEAD} is not that of a log of yester's ({error})") from None
    if head.form != FORM or not re.fullmatch(r"[0-9a-f]{16}", head.log):
        raise SourceError(
            f"{where} has the form {head.form}, and this yester knows {FORM}; update yester"
        )
    return head


def seal_segment(
    key: Key, log: str, machine: str, number: int, former: str, lines: Iterable[Line]
) -> tuple[SegmentName, str, bytes]:
    """Its name, its mark, its bytes."""
    packed = zlib.compress(b"".join(map(encode_line, lines)), 6)
    about = _HEAD.pack(_MAGIC, machine.encode("ascii"), number, bytes.fromhex(former))
    nonce, box = key.seal(packed, about)
    data = about + nonce + _LENGTH.pack(len(box)) + box
    mark = sha256(data).hexdigest()
    return SegmentName(log, machine, number, mark[:16]), mark, data


def open_segment(key: Key, name: SegmentName, data: bytes) -> Segment:
    """BadSegment says what is wrong with it."""
    start = _HEAD.size + NONCE + _LENGTH.size
    if len(data) < start:
        raise BadSegment(f"{name.label} is cut off: it has {len(data)} bytes")
    magic, machine, number, former = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise BadSegment(f"{name.label} has another form; a newer yester may have written it")
    length = _LENGTH.unpack_from(data, _HEAD.size + NONCE)[0]
    if len(data) - start < length:
        raise BadSegment(
            f"{name.label} is cut off: {start + length - len(data):,} bytes are missing"
        )
    about, nonce = data[: _HEAD.size], data[_HEAD.size : _HEAD.size + NONCE]
    packed = key.open(data[start:], about, nonce)
    if packed is None:
        raise BadSegment(f"{name.label} is forged or damaged: it does not open with the log's key")
    told = (machine.rstrip(b"\0").decode("ascii"), number)
    mark = sha256(data).hexdigest()
    if told != (name.machine, name.number) or mark[:16] != name.start:
        raise BadSegment(
            f"{name.label} is replayed: it is segment {number} of machine {told[0][:4]}"
        )
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, MOST_BYTES)
        rows = [decode_line(row) for row in raw.splitlines()]
    except (zlib.error, SourceError) as error:
        raise BadSegment(f"{name.label} cannot be read ({error})") from None
    if not unpacker.eof:
        raise BadSegment(f"{name.label} is too large: more than {MOST_BYTES:,} bytes unpacked")
    lines = [row for row in rows if row is not None]
    return Segment(former.hex(), mark, lines, len(rows) - len(lines))
