"""What a server has done since it began, as Prometheus reads it. No name of a tenant, a user or a
project stands there, and no path but those of the table."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Figures:
    """Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self._events: Counter[str] = Counter({"token_refused": 0, "rate_limited": 0})

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, path, status] += 1
            self._seconds += seconds
            for bound in _BOUNDS:
                self._buckets[bound] += seconds <= bound

    def count_event(self, name: str) -> None:
        with self._lock:
            self._events[name] += 1

    def render(self, **gauges: float) -> str:
        with self._lock:
            return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        yield "# TYPE yester_requests_total counter"
        for (method, path, status), number in sorted(self._requests.items()):
            labels = f'method="{method}",path="{path}",status="{status}"'
            yield f"yester_requests_total{{{labels}}} {number}"
        total = sum(self._requests.values())
        yield "# TYPE yester_request_seconds histogram"
        for bound in _BOUNDS:
            yield f'yester_request_seconds_bucket{{le="{bound:g}"}} {self._buckets[bound]}'
        yield f'yester_request_seconds_bucket{{le="+Inf"}} {total}'
        yield f"yester_request_seconds_sum {self._seconds:.6f}"
        yield f"yester_request_seconds_count {total}"
        for name, number in self._events.items():
            yield f"# TYPE yester_{name}_total counter"
            yield f"yester_{name}_total {number}"
        for name, value in gauges.items():
            yield f"# TYPE yester_{name} gauge"
            yield f"yester_{name} {value:g}"
