"""What schemathesis must know of our own formats to make valid requests; imported as its hooks."""

from __future__ import annotations

import schemathesis
from hypothesis import strategies as st

FORMATS = {
    "yester-since": ("", "3d", "1w", "yesterday", "2026-03-01", "2026-03-01T12:00:00Z",
                     "1779179802", "1779179802758"),
    "yester-until": ("", "now", "today", "2027-01-01", "2027-01-01T00:00:00+02:00", "1999179802"),
    "yester-range": ("", "{}", '{"start": "2026-01-01", "end": "2026-12-31"}',
                     '{"start": 1770000000000}'),
}  # fmt: skip
for name, texts in FORMATS.items():
    schemathesis.openapi.format(name, st.sampled_from(texts))
