"""numpy, loaded when it is wanted: the search by words does without it."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def arrays() -> Any:
    """numpy, with one thread: with two, a product of 0.24 ms was seen to take 48.

    The libraries beneath read the variables once, when loaded; the environment is put back.
    """
    if loaded := sys.modules.get("numpy"):
        return loaded
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        return importlib.import_module("numpy")
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
