"""Large libraries, loaded when they are wanted."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_loading = threading.Lock()
_whole: set[str] = set()


def load_numpy() -> Any:
    """numpy, with one thread: with two, a product of 0.24 ms was seen to take 48."""
    return load_library("numpy")


def load_library(name: str) -> Any:
    """The libraries beneath read the variables once, when loaded; the environment is put back.

    What `sys.modules` holds may not be whole yet, and of two threads that import at the same time
    both can get a half: one loads at a time.
    """
    if name in _whole and (found := sys.modules.get(name)):
        return found
    with _loading:
        before = {variable: os.environ.get(variable) for variable in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        try:
            found = importlib.import_module(name)
        finally:
            for variable, value in before.items():
                if value is None:
                    del os.environ[variable]
                else:
                    os.environ[variable] = value
    _whole.add(name)
    return found
