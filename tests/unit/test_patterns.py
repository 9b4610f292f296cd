"""No text makes a regular expression of the product run away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parent.parent / "fuzz" / "patterns.py"


@pytest.mark.requirement("OPS-05")
def test_no_pattern_takes_longer_for_each_letter_of_a_longer_text_whatever_the_text():
    """Measured in processor time as a ratio of two lengths, so a busy machine changes nothing. One
    that runs away for good is ended, and was not printed."""
    done = subprocess.run([sys.executable, str(FUZZER)], capture_output=True, timeout=900)
    *faults, counts = map(json.loads, done.stdout.splitlines())
    assert faults == []
    assert counts["patterns"] > 700
    assert counts["attacks"] > 10 * counts["patterns"]
