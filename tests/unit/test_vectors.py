"""The stored form of a vector: what it loses, and how codes are compared."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.text.models import DEFAULT, MODELS
from yester.text.vectors import (
    CENTRE_DIMS,
    CENTRED,
    differing_bits,
    pack_vector,
    sign_code,
    unpack_vectors,
)

pytestmark = pytest.mark.requirement("REC-03")

_dims = st.sampled_from([8, 16, 40, 64, 256, 384])
_seed = st.integers(0, 2**32 - 1)


def units(seed, dims, number=1):
    rows = np.random.default_rng(seed).normal(size=(number, dims)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def table(vectors):
    """Codes as a search has them: whole words where they fill some, else bytes."""
    rows = np.frombuffer(b"".join(sign_code(one) for one in vectors), np.uint8)
    rows = rows.reshape(len(vectors), -1)
    return rows.view(np.uint64) if rows.shape[1] % 8 == 0 else rows


def naive(one, other):
    return sum(bool(a > 0) != bool(b > 0) for a, b in zip(one, other, strict=True))


@given(_seed, _dims)
def test_a_value_comes_back_to_within_half_a_step(seed, dims):
    vector = units(seed, dims)[0]
    (back,) = unpack_vectors([pack_vector(vector)])
    step = float(np.abs(vector).max()) / 127
    assert float(np.abs(back - vector).max()) <= step / 2 * 1.001


@given(_seed, _dims)
def test_a_cosine_of_stored_vectors_is_off_by_less_than_a_hundredth(seed, dims):
    one, other = units(seed, dims, 2)
    (back,) = unpack_vectors([pack_vector(one)])
    assert float(back @ other) == pytest.approx(float(one @ other), abs=0.01)


@given(_seed, st.integers(1, 6))
def test_many_come_back_as_each_alone(seed, number):
    vectors = units(seed, 64, number)
    stored = [pack_vector(one) for one in vectors]
    together = unpack_vectors(stored)
    assert together.dtype == np.float32
    assert together.shape == vectors.shape
    for at, one in enumerate(stored):
        assert np.array_equal(together[at], unpack_vectors([one])[0])


def test_a_stored_vector_has_a_byte_a_dimension_and_four_for_the_scale():
    assert len(pack_vector(units(1, 384)[0])) == 4 + 384
    assert len(sign_code(units(1, 384)[0])) == 48


def test_a_vector_of_nothing_stays_nothing():
    zero = np.zeros(16, np.float32)
    assert not unpack_vectors([pack_vector(zero)]).any()
    assert sign_code(zero) == b"\0\0"


@given(_seed, _dims)
def test_what_is_stored_twice_is_stored_alike(seed, dims):
    vector = units(seed, dims)[0]
    assert pack_vector(vector) == pack_vector(vector.copy())
    assert pack_vector(unpack_vectors([pack_vector(vector)])[0]) == pack_vector(vector)


@given(_seed, _dims)
def test_a_code_has_one_bit_a_dimension_its_sign(seed, dims):
    vector = units(seed, dims)[0]
    bits = "".join(f"{byte:08b}" for byte in sign_code(vector))
    assert bits[:dims] == "".join("1" if value > 0 else "0" for value in vector)
    assert set(bits[dims:]) <= {"0"}


def test_a_code_of_the_packaged_model_says_what_is_beyond_the_mean_of_its_vectors():
    zero = np.zeros(CENTRE_DIMS, np.float32)
    mean = np.array([bit == "0" for byte in sign_code(zero, CENTRED) for bit in f"{byte:08b}"])
    assert mean.any()
    assert not mean.all()  # else nothing would be told by it
    far = np.where(mean, 1.0, -1.0).astype(np.float32)  # beyond it, whichever way it points
    bits = "".join(f"{byte:08b}" for byte in sign_code(far, CENTRED))
    assert bits == "".join("1" if value > 0 else "0" for value in far)
    assert sign_code(zero, "another model") == sign_code(zero) == bytes(48)
    assert sign_code(np.zeros(64, np.float32), CENTRED) == bytes(8)  # of another length: no centre


def test_the_centre_belongs_to_the_packaged_model():
    assert MODELS[DEFAULT].weights_file.sha256 == CENTRED
    assert MODELS[DEFAULT].dims == CENTRE_DIMS


@given(_seed, st.sampled_from([8, 20, 40, 64, 384, 2_048]), st.integers(1, 6))
def test_unlike_bits_are_counted_as_one_by_one(seed, dims, number):
    vectors = units(seed, dims, number)
    wanted = units(seed + 1, dims)[0]
    found = differing_bits(table(vectors), sign_code(wanted))
    assert found.tolist() == [naive(one, wanted) for one in vectors]


def test_opposites_share_no_bit_even_of_the_longest_codes():
    vector = np.ones(4_096, np.float32)
    assert differing_bits(table([vector, -vector]), sign_code(vector)).tolist() == [0, 4_096]


@each("given_", [{}, {"OMP_NUM_THREADS": "3"}])
def test_loading_numpy_leaves_the_environment_as_it_was(given_):
    program = (
        "import os; before = dict(os.environ)\n"
        "from yester.libraries import load_numpy\n"
        "import sys; assert 'numpy' not in sys.modules\n"
        "assert load_numpy() is load_numpy() is sys.modules['numpy']\n"
        "assert dict(os.environ) == before"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **given_}, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_who_wants_a_library_while_another_thread_loads_it_gets_the_whole_of_it():
    code = """
import sys, threading
from yester.libraries import load_numpy
sys.setswitchinterval(1e-5)
first = threading.Thread(target=load_numpy)
first.start()
while "numpy" not in sys.modules:
    pass
print(load_numpy().zeros(3).sum())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "0.0\n", ran.stderr
