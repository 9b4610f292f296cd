"""What vectors are stored as, and how they are compared. Search by words needs no numpy.

Stored: a 32-bit scale and one signed byte a dimension, little endian. A code has one bit a
dimension, its sign; codes are compared first, by the thousand, and values only of the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yester.libraries import load_numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

_SCALE = 4  # bytes
# centre.f32 is the mean of yester-embed-1's vectors over 20,000 texts about code and talk.
CENTRED = "0208c2270dfcb40eeb4c13d47aed8aacd93160ec2a5e6a1cf63cac7076fe2087"
CENTRE_DIMS = 384


def pack_vector(vector: Vector) -> bytes:
    np = load_numpy()
    largest = float(np.abs(vector).max()) or 1.0
    scale = np.array([largest / 127.0], "<f4")
    values = np.round(vector / scale[0]).astype(np.int8)
    return bytes(scale.tobytes() + values.tobytes())


def unpack_vectors(stored: Sequence[bytes]) -> Vector:
    """One row for each; they must have one length."""
    np = load_numpy()
    raw = np.frombuffer(b"".join(stored), np.uint8).reshape(len(stored), -1)
    scales = raw[:, :_SCALE].copy().view("<f4")
    rows: Vector = raw[:, _SCALE:].view(np.int8).astype(np.float32) * scales
    return rows


def sign_code(vector: Vector, model: str = "") -> bytes:
    """The signs of what a vector has beyond the mean of its model's vectors.

    Vectors of one model all point the same way, more or less: the mean of those of the packaged one
    has a length of .84. With signs of the bare vectors, eight times as many values must be read.
    """
    np = load_numpy()
    return bytes(np.packbits(vector > model_centre(model, len(vector))).tobytes())


@cache
def model_centre(model: str, dims: int) -> Any:
    np = load_numpy()
    if model == CENTRED and dims == CENTRE_DIMS:
        return np.frombuffer((Path(__file__).parent / "centre.f32").read_bytes(), "<f4")
    return np.zeros(dims, np.float32)


def differing_bits(codes: Any, wanted: bytes) -> Any:
    """For each code the number of bits it does not share with the wanted one."""
    np = load_numpy()
    differing = codes ^ np.frombuffer(wanted, codes.dtype)
    return np.bitwise_count(differing).sum(axis=1, dtype=np.uint16)
