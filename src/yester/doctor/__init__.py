"""Looks at everything yester stands on and says what is wrong and how to put it right."""

from __future__ import annotations

from yester.doctor.examine import examine, examining, glance, walk
from yester.doctor.finding import Finding

__all__ = ["Finding", "examine", "examining", "glance", "walk"]
